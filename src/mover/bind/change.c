/* Changes of owners. With whole floor plans every rank knows all changes, and nothing is sent. With
 * shares the end that knows of a change tells the other one. Then each rank asks again for the
 * blocks near its own, as when the share was made (share.c). */
#include "mover/bind/change.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "mover/bind/exchange.h"
#include "mover/bind/link.h"
#include "mover/geometry/array.h"
#include "mover/geometry/fail.h"
#include "mover/plan/plan.h"

int fy_changes_add(fy_changes *list, int32_t number, const ferry_block *block, int to)
{
    int error = fy_array_reserve((void **)&list->items, &list->capacity, list->count + 1,
                                 sizeof *list->items);
    if (error == 0)
        list->items[list->count++] = (fy_owner_change){
            .region = block->region, .number = number, .from = block->owner, .to = to};
    return error;
}

int fy_changes_between(ferry *f, const ferry_floorplan *old, const int32_t *owners,
                       fy_changes *list)
{
    const int self = ferry_rank(f);
    int error = 0;
    for (size_t i = 0; i < old->count && error == 0; i++) {
        const ferry_block *block = &old->blocks[i];
        if (block->owner != owners[i] && (block->owner == self || owners[i] == self))
            error = fy_changes_add(list, fy_block_number(old, i), block, owners[i]);
    }
    return error;
}

static int by_number(const void *a, const void *b)
{
    const fy_owner_change *x = a, *y = b;
    return (x->number > y->number) - (x->number < y->number);
}

static void sort(fy_changes *list)
{
    if (list->count > 0)
        qsort(list->items, list->count, sizeof *list->items, by_number);
}

static int other_of(const fy_owner_change *c, int self)
{
    return c->from == self ? c->to : c->from;
}

/* Sends each rank the changes that concern it. Sorts them by that rank first. */
static int send_changes(fy_exchange *x, fy_changes *list, const bool *marks)
{
    const int self = ferry_rank(x->f), ranks = ferry_ranks(x->f);
    fy_owner_change *of = fy_malloc((list->count + 1) * sizeof *of);
    int error = of == NULL ? FERRY_ENOMEM : 0;
    for (int rank = 0; rank < ranks; rank++) {
        size_t count = 0;
        for (size_t i = 0; i < list->count && marks[rank] && error == 0; i++)
            if (other_of(&list->items[i], self) == rank)
                of[count++] = list->items[i];
        int sent = marks[rank]
                       ? fy_exchange_send(x, rank, FY_EXCHANGE_ASK, error, of, count * sizeof *of)
                       : 0;
        error = error ? error : sent;
    }
    free(of);
    return error;
}

/* Takes the changes that other ranks have sent. Data of another rank may be wrong: a change that
 * does not concern both ranks is left out. */
static int take_changes(const fy_exchange *x, fy_changes *list)
{
    const int self = ferry_rank(x->f);
    int error = 0;
    for (const fy_exchange_post *p = x->inbox[FY_EXCHANGE_ASK]; p != NULL; p = p->next) {
        const fy_owner_change *items = (const fy_owner_change *)(const void *)p->data;
        for (size_t i = 0; i < p->size_bytes / sizeof *items && error == 0; i++) {
            const ferry_block block = {.region = items[i].region, .owner = items[i].from};
            if ((items[i].from == self || items[i].to == self) && items[i].number >= 0 &&
                other_of(&items[i], self) == p->source &&
                fy_box_is_sound(&items[i].region, items[i].region.dims))
                error = fy_changes_add(list, items[i].number, &block, items[i].to);
        }
    }
    return error;
}

int fy_changes_swap(ferry *f, int error, fy_changes *list)
{
    fy_exchange x;
    size_t expected;
    bool *marks = fy_calloc((size_t)ferry_ranks(f), sizeof *marks);
    fy_exchange_begin(&x, f);
    if (marks == NULL && error == 0)
        error = fy_mover_no_memory(f, FERRY_ENOMEM, "change of owners");
    for (size_t i = 0; i < list->count && error == 0; i++)
        marks[other_of(&list->items[i], ferry_rank(f))] = true;
    error = fy_exchange_expect(&x, error, marks, &expected);
    if (error == 0) {
        error = send_changes(&x, list, marks);
        int heard = fy_exchange_receive(&x, FY_EXCHANGE_ASK, expected);
        error = error ? error : heard;
        if (error == 0)
            error = take_changes(&x, list);
        error = fy_mover_agree(f, fy_mover_no_memory(f, error, "change of owners"));
    }
    fy_exchange_end(&x);
    free(marks);
    sort(list);
    return error;
}

/* Lists the blocks that belong to this rank from now on, with their numbers, in `own`, and the
 * regions of all known blocks in `near`. */
static int list_own(ferry *f, const ferry_floorplan *old, const fy_changes *list,
                    ferry_floorplan *own, ferry_regions *near)
{
    const int self = ferry_rank(f);
    const size_t most = old->count + list->count + 1;
    size_t k = 0;
    own->numbers = fy_malloc(most * sizeof *own->numbers);
    own->blocks = fy_malloc(most * sizeof *own->blocks);
    if (own->numbers == NULL || own->blocks == NULL)
        return FERRY_ENOMEM;
    int error = 0;
    for (size_t i = 0; i < old->count && error == 0; i++) {
        const ferry_block *block = &old->blocks[i];
        while (k < list->count && list->items[k].number < old->numbers[i])
            k++;
        const bool changes = k < list->count && list->items[k].number == old->numbers[i];
        error = ferry_regions_add(near, block->region);
        if (block->owner == self && !changes) {
            own->numbers[own->count] = old->numbers[i];
            own->blocks[own->count++] = *block;
        }
    }
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i].to == self) {
            own->numbers[own->count] = list->items[i].number;
            own->blocks[own->count++] =
                (ferry_block){.region = list->items[i].region, .owner = self};
        }
    return error;
}

int fy_changes_apply(ferry *f, const ferry_floorplan *old, const fy_changes *list,
                     ferry_floorplan *out)
{
    ferry_floorplan own = {.dims = old->dims, .total = old->total, .rank = old->rank};
    ferry_regions near = {0};
    int error = list_own(f, old, list, &own, &near);
    error = fy_floorplan_share(f, error, &own, &near, out);
    ferry_regions_fini(&near);
    ferry_floorplan_fini(&own);
    return error;
}

int fy_floorplan_learn(ferry_floorplan *share, fy_changes *known)
{
    const size_t capacity = share->count + known->count;
    size_t i = 0, count = 0;
    sort(known);
    int32_t *numbers = fy_malloc((capacity + 1) * sizeof *numbers);
    ferry_block *blocks = fy_malloc((capacity + 1) * sizeof *blocks);
    if (numbers == NULL || blocks == NULL) {
        free(numbers);
        free(blocks);
        return FERRY_ENOMEM;
    }
    for (size_t k = 0; i < share->count || k < known->count;) {
        const fy_owner_change *c = k < known->count ? &known->items[k] : NULL;
        if (c == NULL || (i < share->count && share->numbers[i] <= c->number)) {
            numbers[count] = share->numbers[i];
            blocks[count++] = share->blocks[i++];
        } else {
            numbers[count] = c->number;
            blocks[count++] = (ferry_block){.region = c->region, .owner = c->from};
        }
        while (k < known->count && known->items[k].number <= numbers[count - 1])
            k++;
    }
    free(share->numbers);
    free(share->blocks);
    share->numbers = numbers;
    share->blocks = blocks;
    share->count = count;
    share->capacity = capacity + 1;
    return 0;
}

static int by_value(const void *a, const void *b)
{
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/* Returns how many ends of copies of its movers are blocks of `x`. Writes the blocks' numbers to
 * `out` if that is not NULL. */
static size_t name_all(ferry *f, ferry_xarray *x, int32_t *out)
{
    const fy_arrays self = {.items = &x, .count = 1};
    size_t count = 0;
    for (ferry_mover *m = NULL; (m = fy_movers_next(f, self, m)) != NULL;) {
        fy_copies_walk walk = {.list = &m->plan.kept};
        if (out == NULL)
            count += (size_t)((m->plan.source == x) + (m->plan.target == x)) * m->plan.kept.count;
        while (out != NULL && fy_copies_next(&walk)) {
            if (m->plan.source == x)
                out[count++] = walk.copy.source;
            if (m->plan.target == x)
                out[count++] = walk.copy.target;
        }
    }
    return count;
}

static void prune(ferry *f, ferry_xarray *x)
{
    ferry_floorplan *share = &x->blocks;
    if (share->numbers == NULL)
        return;
    const size_t named = name_all(f, x, NULL);
    int32_t *numbers = fy_malloc((named + 1) * sizeof *numbers);
    size_t kept = 0, k = 0;
    if (numbers == NULL)
        return;
    (void)name_all(f, x, numbers);
    qsort(numbers, named, sizeof *numbers, by_value);
    for (size_t i = 0; i < share->count; i++) {
        while (k < named && numbers[k] < share->numbers[i])
            k++;
        if (share->blocks[i].owner != ferry_rank(f) &&
            (k == named || numbers[k] != share->numbers[i]))
            continue;
        share->numbers[kept] = share->numbers[i];
        share->blocks[kept++] = share->blocks[i];
    }
    free(numbers);
    share->count = kept;
    /* If it cannot be made smaller, it stays as it is. */
    void *less = fy_realloc(share->blocks, (kept + 1) * sizeof *share->blocks);
    if (less == NULL)
        return;
    share->blocks = less;
    share->capacity = kept + 1;
    less = fy_realloc(share->numbers, (kept + 1) * sizeof *share->numbers);
    if (less != NULL)
        share->numbers = less;
}

void fy_arrays_prune(ferry *f, fy_arrays arrays)
{
    for (size_t i = 0; i < arrays.count; i++)
        prune(f, arrays.items[i]);
    for (ferry_mover *m = NULL; (m = fy_movers_next(f, arrays, m)) != NULL;) {
        if (!fy_arrays_have(arrays, m->plan.source))
            prune(f, m->plan.source);
        if (!fy_arrays_have(arrays, m->plan.target))
            prune(f, m->plan.target);
    }
}
