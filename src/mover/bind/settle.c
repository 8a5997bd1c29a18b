/* Settling blocks that are objects: the xarrays get the present owners and grids. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "core/fail.h"
#include "mover/bind/blocks.h"
#include "mover/bind/exchange.h"
#include "mover/geometry/array.h"
#include "mover/geometry/fail.h"
#include "mover/plan/plan.h"
#include "object/object.h"

void fy_blocks_set_unsettled(const ferry_blocks *set, bool unsettled)
{
    for (ferry_mover *m = NULL; (m = fy_movers_next(set->f, set->arrays, m)) != NULL;)
        m->run.unsettled = unsettled;
}

ferry_object *fy_blocks_place(const ferry_blocks *set, int32_t number)
{
    size_t low = 0, high = set->known_count;
    if (set->numbers == NULL)
        return number >= 0 && (size_t)number < set->count ? &set->objects[number] : NULL;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (set->numbers[middle] < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low < set->known_count && set->numbers[low] == number ? &set->objects[low] : NULL;
}

/* Names. */

/* Asks the owner of each block that is not here, in the order of numbers. */
static int ask_names(fy_exchange *x, const ferry_floorplan *blocks, const bool *marks)
{
    int32_t *numbers = fy_malloc((blocks->count + 1) * sizeof *numbers);
    int error = numbers == NULL ? FERRY_ENOMEM : 0;
    for (int rank = 0; rank < ferry_ranks(x->f); rank++) {
        size_t count = 0;
        for (size_t i = 0; i < blocks->count && marks[rank] && error == 0; i++)
            if (blocks->blocks[i].owner == rank)
                numbers[count++] = blocks->numbers[i];
        int sent = marks[rank] ? fy_exchange_send(x, rank, FY_EXCHANGE_ASK, error, numbers,
                                                  count * sizeof *numbers)
                               : 0;
        error = error ? error : sent;
    }
    free(numbers);
    return error;
}

/* Answers the ranks that asked. After an error they get that, since they wait. */
static int answer_names(fy_exchange *x, const ferry_blocks *set, int error)
{
    for (const fy_exchange_post *p = x->inbox[FY_EXCHANGE_ASK]; p != NULL; p = p->next) {
        const int32_t *numbers = (const int32_t *)(const void *)p->data;
        const size_t count = p->size_bytes / sizeof *numbers;
        ferry_object *names = fy_malloc((count + 1) * sizeof *names);
        int failed = error ? error : names == NULL ? FERRY_ENOMEM : 0;
        for (size_t i = 0; i < count && failed == 0; i++)
            names[i] = ferry_blocks_object(set, numbers[i]);
        int sent = fy_exchange_send(x, p->source, FY_EXCHANGE_ANSWER, failed, names,
                                    failed ? 0 : count * sizeof *names);
        free(names);
        error = failed ? failed : sent;
    }
    return error;
}

static int take_names(const fy_exchange *x, const ferry_blocks *set)
{
    const ferry_floorplan *blocks = &set->items[0]->blocks;
    for (const fy_exchange_post *p = x->inbox[FY_EXCHANGE_ANSWER]; p != NULL; p = p->next) {
        const ferry_object *names = (const ferry_object *)(const void *)p->data;
        size_t taken = 0;
        for (size_t i = 0; i < blocks->count; i++)
            if (blocks->blocks[i].owner == p->source && taken < p->size_bytes / sizeof *names)
                *fy_blocks_place(set, blocks->numbers[i]) = names[taken++];
    }
    return 0;
}

static int exchange_names(ferry_blocks *set, int error, bool *marks)
{
    const ferry_floorplan *blocks = &set->items[0]->blocks;
    fy_exchange x;
    size_t asked = 0, asking;
    fy_exchange_begin(&x, set->f);
    for (size_t i = 0; i < blocks->count && error == 0; i++) {
        bool *mark = &marks[blocks->blocks[i].owner];
        if (blocks->blocks[i].owner != ferry_rank(set->f) && !*mark) {
            *mark = true;
            asked++;
        }
    }
    error = fy_exchange_expect(&x, error, marks, &asking);
    if (error == 0) {
        error = ask_names(&x, blocks, marks);
        int heard = fy_exchange_receive(&x, FY_EXCHANGE_ASK, asking);
        error = error ? error : heard;
        int answered = heard == FERRY_EPEER ? heard : answer_names(&x, set, error);
        if (answered == 0)
            answered = fy_exchange_receive(&x, FY_EXCHANGE_ANSWER, asked);
        error = error ? error : answered;
        if (error == 0)
            error = take_names(&x, set);
        error = fy_mover_agree(set->f, fy_mover_no_memory(set->f, error, "names of blocks"));
    }
    fy_exchange_end(&x);
    return error;
}

int fy_blocks_name(ferry_blocks *set, int error)
{
    ferry *f = set->f;
    if (set->numbers == NULL) {
        error = fy_mover_agree(f, error);
        return error ? error
                     : ferry_allreduce(f, FERRY_UINT64, FERRY_MAX, set->objects, set->objects,
                                       set->count);
    }
    bool *marks = fy_calloc((size_t)ferry_ranks(f), sizeof *marks);
    if (marks == NULL)
        error = FERRY_ENOMEM;
    error = exchange_names(set, fy_mover_no_memory(f, error, "names of blocks"), marks);
    free(marks);
    set->nameless = error != 0;
    return error;
}

/* Makes the table of names for the present blocks. Takes the names of the `here` objects on this
 * rank, and learns the others. */
static int rename_all(ferry_blocks *set, size_t here)
{
    const ferry_floorplan *blocks = &set->items[0]->blocks;
    int32_t *numbers = fy_malloc((blocks->count + 1) * sizeof *numbers);
    ferry_object *objects = fy_calloc(blocks->count + 1, sizeof *objects);
    if (numbers == NULL || objects == NULL) {
        free(numbers);
        free(objects);
        return fy_blocks_name(set, FERRY_ENOMEM);
    }
    memcpy(numbers, blocks->numbers, blocks->count * sizeof *numbers);
    free(set->numbers);
    free(set->objects);
    set->numbers = numbers;
    set->objects = objects;
    set->known_count = blocks->count;
    for (size_t i = 0; i < here; i++)
        *fy_blocks_place(set, set->found[i].number) = set->found[i].object;
    return fy_blocks_name(set, 0);
}

/* Blocks on this rank. */

static int by_block(const void *a, const void *b)
{
    const fy_found *x = a, *y = b;
    return (x->number > y->number) - (x->number < y->number);
}

/* Whether the xarrays have other grids for a block than its object has. Then the block has come, or
 * it was on another node and has come back. */
static bool has_other_grids(const ferry_blocks *set, const ferry_block_data *data)
{
    for (size_t k = 0; k < set->arrays.count; k++) {
        const ferry_grid *grid = ferry_xarray_grid(set->items[k], data->block);
        if (grid == NULL || grid->data != data->grids[k].data)
            return true;
    }
    return false;
}

/* Lists the objects on this rank, in the order of numbers. Sets how many there are, how many have
 * arrived since the last settling, and how many have other grids. FERRY_ENOMEM. */
static int settle_find(ferry_blocks *set, size_t *here, uint64_t *arrived, uint64_t *changed)
{
    const ferry_object_type type = fy_movers_of(set->f)->type;
    ferry_object object;
    size_t index = 0, count = 0, capacity = 0;
    free(set->found);
    set->found = NULL;
    *arrived = *changed = 0;
    while (fy_object_next(set->f, type, &index, &object)) {
        ferry_block_data *data = ferry_object_data(set->f, object);
        if (data == NULL || data->set != set->number)
            continue;
        if (fy_array_reserve((void **)&set->found, &capacity, count + 1, sizeof *set->found))
            return FERRY_ENOMEM;
        const int settled = (int)(data->flags >> FY_SETTLED_SHIFT);
        set->found[count++] =
            (fy_found){.data = data, .object = object, .number = data->block, .settled = settled};
        *arrived += settled != ferry_rank(set->f);
        *changed += has_other_grids(set, data);
    }
    if (count > 0)
        qsort(set->found, count, sizeof *set->found, by_block);
    *here = count;
    return 0;
}

/* The lists and the floor plan of an xarray: the next ones, or the last ones. */
typedef struct lists {
    int32_t *local;
    ferry_grid *grids;
    ferry_floorplan blocks;
} lists;

static void drop_lists(lists *of, size_t count)
{
    for (size_t k = 0; of != NULL && k < count; k++) {
        free(of[k].local);
        free(of[k].grids);
        ferry_floorplan_fini(&of[k].blocks);
    }
    free(of);
}

static lists *make_lists(const ferry_blocks *set, size_t here)
{
    lists *next = fy_calloc(set->arrays.count, sizeof *next);
    bool good = next != NULL;
    for (size_t k = 0; k < set->arrays.count && good; k++) {
        next[k].local = fy_calloc(here + 1, sizeof *next[k].local);
        next[k].grids = fy_calloc(here + 1, sizeof *next[k].grids);
        good = next[k].local != NULL && next[k].grids != NULL &&
               (set->numbers != NULL ||
                ferry_floorplan_copy(&set->items[k]->blocks, &next[k].blocks) == 0);
        for (size_t i = 0; i < here && good; i++) {
            next[k].local[i] = set->found[i].number;
            next[k].grids[i] = set->found[i].data->grids[k];
        }
    }
    if (good)
        return next;
    drop_lists(next, set->arrays.count);
    return NULL;
}

/* Swaps the xarrays' lists with those of `next`. Notes the present rank in the objects. */
static void take_lists(const ferry_blocks *set, lists *next, size_t here)
{
    for (size_t k = 0; k < set->arrays.count; k++) {
        ferry_xarray *x = set->items[k];
        const lists old = {.local = x->local, .grids = x->grids, .blocks = x->blocks};
        x->local = next[k].local;
        x->grids = next[k].grids;
        x->blocks = next[k].blocks;
        x->local_count = here;
        next[k] = old;
    }
    for (size_t i = 0; i < here; i++) {
        ferry_block_data *data = ferry_object_data(set->f, set->found[i].object);
        if (data != NULL)
            data->flags = fy_block_flags(ferry_rank(set->f), false);
    }
}

/* Whole floor plans: a sum with one word per block tells all ranks its owner. */
static int agree_whole(ferry_blocks *set, int error, size_t here, lists *next, fy_changes *changes)
{
    ferry *f = set->f;
    int32_t *owners = fy_malloc((set->count + 1) * sizeof *owners);
    if (error == 0 && owners == NULL)
        error = FERRY_ENOMEM;
    for (size_t b = 0; b < set->count && error == 0; b++)
        owners[b] = -1;
    for (size_t i = 0; i < here && error == 0; i++)
        owners[set->found[i].number] = ferry_rank(f);
    error = fy_mover_agree(f, fy_mover_no_memory(f, error, "blocks_settle"));
    if (error == 0)
        error = ferry_allreduce(f, FERRY_INT32, FERRY_MAX, owners, owners, set->count);
    if (error == 0) {
        error = fy_changes_between(f, &set->items[0]->blocks, owners, changes);
        error = fy_mover_agree(f, fy_mover_no_memory(f, error, "blocks_settle"));
    }
    for (size_t k = 0; k < set->arrays.count && error == 0; k++)
        for (size_t b = 0; b < set->count; b++)
            next[k].blocks.blocks[b].owner = owners[b];
    free(owners);
    return error;
}

/* Shares: the rank that has a block tells the rank that had it. */
static int agree_share(ferry_blocks *set, int error, size_t here, lists *next, fy_changes *changes)
{
    const int self = ferry_rank(set->f);
    for (size_t i = 0; i < here && error == 0; i++) {
        const fy_found *found = &set->found[i];
        const ferry_block block = {.region = fy_block_region(set, found->data->grids[0].region),
                                   .owner = found->settled};
        if (found->settled != self)
            error = fy_changes_add(changes, found->number, &block, self);
    }
    error = fy_changes_swap(set->f, fy_mover_no_memory(set->f, error, "blocks_settle"), changes);
    for (size_t k = 0; k < set->arrays.count && error == 0; k++)
        error = fy_changes_apply(set->f, &set->items[k]->blocks, changes, &next[k].blocks);
    return error;
}

static void follow(ferry_blocks *set, const lists *old, const fy_changes *changes,
                   ferry_floorplan *plans, bool *marks)
{
    const fy_outcome outcome = {.changes = changes, .old = plans, .marks = marks};
    for (size_t k = 0; k < set->arrays.count; k++)
        plans[k] = old[k].blocks;
    fy_mover_follow(set->f, set->arrays, &outcome);
    fy_arrays_prune(set->f, set->arrays);
}

/* Brings xarrays, floor plans and movers into line with the blocks in `found`. Collective. */
static int resettle(ferry_blocks *set, size_t here)
{
    ferry *f = set->f;
    fy_changes changes = {0};
    lists *next = make_lists(set, here);
    ferry_floorplan *plans = fy_calloc(set->arrays.count, sizeof *plans);
    bool *marks = fy_calloc((size_t)ferry_ranks(f), sizeof *marks);
    int error = 0;
    if (next == NULL || marks == NULL || plans == NULL)
        error = FERRY_ENOMEM;
    fy_mover_give_up(f, set->arrays, false);
    error = set->numbers == NULL ? agree_whole(set, error, here, next, &changes)
                                 : agree_share(set, error, here, next, &changes);
    if (error == 0) {
        take_lists(set, next, here);
        follow(set, next, &changes, plans, marks);
    } else {
        fy_mover_give_up(f, set->arrays, true);
    }
    drop_lists(next, set->arrays.count);
    free(changes.items);
    free(plans);
    free(marks);
    return error;
}

/* If ranks have died, a block may be in flight for so many looks. Then it is lost. */
enum { LOOKS_MAX = 3 };

/* In the sum of ranks with a mover in flight: this rank knows of a death. */
#define AFTER_DEATH (UINT64_C(1) << 32)

int ferry_blocks_settle(ferry_blocks *set, size_t *moved)
{
    ferry *f = set->f;
    /* Sums over the ranks: blocks found; those that have arrived; ranks with a mover in flight;
     * ranks without memory; ranks without names; blocks with other grids. */
    uint64_t sums[6];
    size_t here = 0;
    int looks = 0;
    if (fy_in_handler(f))
        return fy_fail(f, FERRY_ESTATE, "blocks_settle: not allowed inside a handler");
    /* If a mover is in flight here, the call fails. Until then it waits for all messages. */
    fy_blocks_release_held(set);
    do {
        int error = ferry_quiesce(f);
        if (error)
            return error;
        sums[3] = settle_find(set, &here, &sums[1], &sums[5]) != 0;
        sums[0] = sums[3] ? 0 : here;
        sums[2] = fy_mover_any_in_flight(f, set->arrays);
        sums[2] += fy_objects_of(f)->after_death ? AFTER_DEATH : 0;
        sums[4] = set->nameless;
        error = ferry_allreduce(f, FERRY_UINT64, FERRY_SUM, sums, sums, 6);
        if (error)
            return error;
        if (sums[2] % AFTER_DEATH > 0)
            return fy_fail(f, FERRY_ESTATE, "blocks_settle: a mover of the xarrays is in flight");
        if (sums[3] > 0)
            return fy_fail(f, FERRY_ENOMEM, "blocks_settle: no memory");
        if (sums[2] > 0 && sums[0] < set->count && ++looks == LOOKS_MAX)
            return fy_fail(f, FERRY_EPEER,
                           "blocks_settle: %llu of %zu blocks are lost with a rank that has died",
                           (unsigned long long)(set->count - sums[0]), set->count);
    } while (sums[0] != set->count);
    int error = sums[1] + sums[5] > 0 ? resettle(set, here) : 0;
    if (error == 0)
        set->moved += sums[1];
    if (error == 0 && sums[1] + sums[4] > 0 && set->numbers != NULL)
        error = rename_all(set, here);
    if (error)
        return error;
    fy_blocks_set_unsettled(set, false);
    if (moved != NULL)
        *moved = (size_t)set->moved;
    set->moved = 0;
    return 0;
}
