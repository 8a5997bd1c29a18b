/* Blocks as objects: each holds the grids of one block number; see mover_blocks.h.
 *
 * Between two settlings the objects own the grids, and an xarray's own list of grids is out of
 * date. Data and grids stand in the shared heap, so that on a node an object goes by its pointer;
 * elsewhere the grids are packed one behind the other. At settling each rank asks which objects it
 * has. One sum says whether all are somewhere and whether any is where it was not; only then a
 * second one tells all ranks the owners, and xarrays and movers follow. What a rank found before a
 * collective is what it uses after it: others may send the next messages as soon as they are out of
 * the last one, and blocks then move again while this rank is still in it. */
#include <stdlib.h>
#include <string.h>

#include <ferry/memory.h>

#include "base/alloc.h"
#include "mover/fail.h"
#include "mover/link.h"

enum { LENT = 1 }; /* flag of a block's data: the grids are the xarrays' */

struct ferry_blocks {
    ferry_blocks *next;
    ferry *f;
    uint32_t number;
    fy_arrays arrays;
    size_t count;             /* of blocks */
    ferry_object *objects;    /* by block */
    ferry_block_data **found; /* at settling: by block, NULL when it is elsewhere */
    uint64_t *owners;         /* at settling: by block, rank + 1 */
    ferry_xarray **items;     /* the arrays */
};

/* What a packed block begins with; its grids follow, dense. */
typedef struct packed_block {
    uint32_t set;
    int32_t block;
} packed_block;

static size_t grid_bytes(const ferry_grid *grid)
{
    return (size_t)ferry_region_size(grid->region) * grid->element_bytes;
}

static size_t packed_size(ferry *f, const void *data)
{
    (void)f;
    const ferry_block_data *block = data;
    size_t bytes = sizeof(packed_block);
    for (uint32_t i = 0; i < block->count; i++)
        bytes += grid_bytes(&block->grids[i]);
    return bytes;
}

static void pack(ferry *f, const void *data, void *buffer, size_t size_bytes)
{
    (void)f;
    (void)size_bytes;
    const ferry_block_data *block = data;
    char *at = buffer;
    const packed_block head = {.set = block->set, .block = block->block};
    memcpy(at, &head, sizeof head);
    at += sizeof head;
    for (uint32_t i = 0; i < block->count; i++) {
        memcpy(at, block->grids[i].data, grid_bytes(&block->grids[i]));
        at += grid_bytes(&block->grids[i]);
    }
}

static ferry_blocks *set_of(ferry *f, uint32_t number)
{
    fy_movers *movers = fy_movers_of(f);
    ferry_blocks *set = movers != NULL ? movers->blocks : NULL;
    while (set != NULL && set->number != number)
        set = set->next;
    return set;
}

static void set_astray(const ferry_blocks *set, bool astray)
{
    for (ferry_mover *m = NULL; (m = fy_movers_next(set->f, set->arrays, m)) != NULL;)
        m->astray = astray;
}

static void release(ferry *f, void *data)
{
    ferry_block_data *block = data;
    const ferry_blocks *set = set_of(f, block->set);
    if (set != NULL && (block->flags & LENT) == 0)
        set_astray(set, true); /* the xarrays still name the grids that go */
    for (uint32_t i = 0; i < block->count && (block->flags & LENT) == 0; i++)
        (void)ferry_free(f, block->grids[i].data);
    (void)ferry_free(f, block);
}

static ferry_block_data *make_data(const ferry_blocks *set, int32_t number)
{
    const size_t bytes = sizeof(ferry_block_data) + set->arrays.count * sizeof(ferry_grid);
    void *place;
    if (ferry_alloc(set->f, bytes, &place))
        return NULL;
    ferry_block_data *data = memset(place, 0, bytes);
    data->grids = (ferry_grid *)(void *)(data + 1);
    data->block = number;
    data->set = set->number;
    return data;
}

static void *unpack(ferry *f, ferry_object object, const void *buffer, size_t size_bytes)
{
    packed_block head;
    (void)object;
    if (size_bytes < sizeof head)
        return NULL;
    memcpy(&head, buffer, sizeof head);
    const ferry_blocks *set = set_of(f, head.set);
    if (set == NULL || head.block < 0 || (size_t)head.block >= set->count)
        return NULL;
    ferry_block_data *data = make_data(set, head.block);
    const char *at = (const char *)buffer + sizeof head, *end = (const char *)buffer + size_bytes;
    for (size_t i = 0; i < set->arrays.count && data != NULL; i++) {
        const ferry_xarray *x = set->items[i];
        ferry_grid *grid = &data->grids[i];
        int error =
            ferry_grid_alloc(f, ferry_region_grow(x->blocks.blocks[head.block].region, x->ghosts),
                             x->element_bytes, grid);
        data->count += error == 0;
        if (error || grid_bytes(grid) > (size_t)(end - at)) {
            release(f, data);
            return NULL;
        }
        memcpy(grid->data, at, grid_bytes(grid));
        at += grid_bytes(grid);
    }
    return data;
}

static int prepare_type(ferry *f)
{
    static const ferry_object_ops ops = {.size = sizeof ops,
                                         .name = "block",
                                         .packed_size = packed_size,
                                         .pack = pack,
                                         .unpack = unpack,
                                         .destroy = release,
                                         .flags = FERRY_OBJECT_SHARED};
    fy_movers *movers = fy_movers_of(f);
    int error = movers->typed ? 0 : ferry_object_type_register(f, &ops, &movers->type);
    movers->typed = error == 0;
    return error;
}

static bool same_plan(const ferry_floorplan *a, const ferry_floorplan *b)
{
    bool same = a->count == b->count;
    for (size_t i = 0; i < a->count && same; i++)
        same = a->blocks[i].owner == b->blocks[i].owner &&
               ferry_region_equal(a->blocks[i].region, b->blocks[i].region);
    return same;
}

static int check_arrays(ferry *f, ferry_xarray *const *arrays, size_t count)
{
    if (count == 0)
        return fy_mover_fail(f, FERRY_EINVAL, "blocks_create: no arrays");
    for (size_t i = 0; i < count; i++) {
        const ferry_xarray *x = arrays[i];
        if (x->borrowed || x->mobile || fy_arrays_have((fy_arrays){.items = arrays, .count = i}, x))
            return fy_mover_fail(f, FERRY_EINVAL, "blocks_create: array %zu %s", i,
                                 x->borrowed ? "has grids of the caller's" : "is in a set already");
        int error = fy_xarray_check_whole(x, "blocks_create");
        if (error)
            return error;
        if (!same_plan(&x->blocks, &arrays[0]->blocks))
            return fy_mover_fail(f, FERRY_EINVAL,
                                 "blocks_create: array %zu has another floor plan than the first",
                                 i);
    }
    return 0;
}

static void free_set(ferry_blocks *set)
{
    if (set == NULL)
        return;
    for (ferry_blocks **at = &fy_movers_of(set->f)->blocks; *at != NULL; at = &(*at)->next)
        if (*at == set) {
            *at = set->next;
            break;
        }
    free(set->objects);
    free(set->found);
    free(set->owners);
    free(set->items);
    free(set);
}

static int make_set(ferry *f, ferry_xarray *const *arrays, size_t count, ferry_blocks **out)
{
    ferry_blocks *set = *out = fy_calloc(1, sizeof *set);
    if (set == NULL)
        return FERRY_ENOMEM;
    set->f = f;
    set->count = arrays[0]->blocks.count;
    set->objects = fy_calloc(set->count + 1, sizeof *set->objects);
    set->found = fy_calloc(set->count + 1, sizeof *set->found);
    set->owners = fy_calloc(set->count + 1, sizeof *set->owners);
    set->items = fy_calloc(count, sizeof *set->items);
    if (set->objects == NULL || set->found == NULL || set->owners == NULL || set->items == NULL)
        return FERRY_ENOMEM;
    memcpy(set->items, arrays, count * sizeof *set->items);
    set->arrays = (fy_arrays){.items = set->items, .count = count};
    return prepare_type(f);
}

static int make_objects(ferry_blocks *set)
{
    const ferry_xarray *x = set->items[0];
    for (size_t i = 0; i < x->local_count; i++) {
        ferry_block_data *data = make_data(set, x->local[i]);
        if (data == NULL)
            return FERRY_ENOMEM;
        data->flags = LENT;
        data->count = (uint32_t)set->arrays.count;
        for (size_t k = 0; k < set->arrays.count; k++)
            data->grids[k] = set->items[k]->grids[i];
        int error = ferry_object_create(set->f, fy_movers_of(set->f)->type, data,
                                        &set->objects[x->local[i]]);
        if (error) {
            release(set->f, data);
            return error;
        }
    }
    return 0;
}

/* From now on the grids are the objects', or with `lent` the xarrays' again. */
static void lend(ferry_blocks *set, bool lent)
{
    const ferry_xarray *x = set->items[0];
    for (size_t i = 0; i < x->local_count; i++) {
        ferry_block_data *data = ferry_object_data(set->f, set->objects[x->local[i]]);
        if (data != NULL)
            data->flags = lent ? LENT : 0;
    }
    for (size_t k = 0; k < set->arrays.count; k++)
        set->items[k]->mobile = !lent;
}

static void end_objects(ferry_blocks *set)
{
    const ferry_xarray *x = set->items[0];
    for (size_t i = 0; i < x->local_count; i++)
        if (!ferry_object_is_none(set->objects[x->local[i]]))
            (void)ferry_object_destroy(set->f, set->objects[x->local[i]]);
}

int ferry_blocks_create(ferry *f, ferry_xarray *const *arrays, size_t count, ferry_blocks **out)
{
    ferry_blocks *set = NULL;
    fy_movers *movers = fy_movers_of(f);
    if (fy_in_handler(f))
        return fy_fail(f, FERRY_ESTATE, "blocks_create: not allowed inside a handler or callback");
    const uint32_t number = ++movers->next_set;
    int error = check_arrays(f, arrays, count);
    if (error == 0 && (error = make_set(f, arrays, count, &set)) != 0)
        error =
            fy_fail(f, error, "blocks_create: no memory for %zu blocks", arrays[0]->blocks.count);
    if (error == 0) {
        set->number = number;
        set->next = movers->blocks;
        movers->blocks = set;
        error = make_objects(set);
    }
    error = fy_mover_agree(f, error);
    if (error == 0)
        error = ferry_allreduce(f, FERRY_UINT64, FERRY_MAX, set->objects, set->objects, set->count);
    if (error == 0) {
        lend(set, false);
        *out = set;
    } else if (set != NULL) {
        if (set->items != NULL && set->arrays.count > 0)
            end_objects(set);
        free_set(set);
    }
    return error;
}

ferry_object ferry_blocks_object(const ferry_blocks *set, int32_t block)
{
    const ferry_object none = {0};
    return block >= 0 && (size_t)block < set->count ? set->objects[block] : none;
}

int ferry_blocks_send(ferry_blocks *set, const ferry_message *message)
{
    if (fy_in_handler(set->f))
        return fy_fail(set->f, FERRY_ESTATE, "blocks_send: not allowed inside a handler");
    if (fy_mover_any_under_way(set->f, set->arrays))
        return fy_fail(set->f, FERRY_ESTATE, "blocks_send: a mover of the xarrays is under way");
    const ferry_xarray *x = set->items[0];
    int error = 0;
    set_astray(set, true);
    for (size_t i = 0; i < x->local_count && error == 0; i++)
        error = ferry_object_send(set->f, set->objects[x->local[i]], message, NULL);
    return error;
}

/* Notes the objects that are here; returns how many, and how many of them are new here. */
static size_t find(ferry_blocks *set, uint64_t *arrived)
{
    const ferry_floorplan *blocks = &set->items[0]->blocks;
    const int self = ferry_rank(set->f);
    size_t here = 0;
    *arrived = 0;
    for (size_t b = 0; b < set->count; b++) {
        int rank;
        bool close = ferry_object_locate(set->f, set->objects[b], &rank) == 0 && rank == self;
        set->found[b] = close ? ferry_object_data(set->f, set->objects[b]) : NULL;
        set->owners[b] = set->found[b] != NULL ? (uint64_t)self + 1 : 0;
        here += set->found[b] != NULL;
        *arrived += set->found[b] != NULL && blocks->blocks[b].owner != self;
    }
    return here;
}

/* An xarray's lists as they will be. */
typedef struct lists {
    int32_t *local;
    ferry_grid *grids;
} lists;

static void drop_lists(lists *of, size_t count)
{
    for (size_t k = 0; of != NULL && k < count; k++) {
        free(of[k].local);
        free(of[k].grids);
    }
    free(of);
}

static lists *make_lists(const ferry_blocks *set, size_t here)
{
    lists *next = fy_calloc(set->arrays.count, sizeof *next);
    bool good = next != NULL;
    for (size_t k = 0; k < set->arrays.count && good; k++) {
        size_t count = 0;
        next[k].local = fy_calloc(here + 1, sizeof *next[k].local);
        next[k].grids = fy_calloc(here + 1, sizeof *next[k].grids);
        good = next[k].local != NULL && next[k].grids != NULL;
        for (size_t b = 0; b < set->count && good; b++)
            if (set->found[b] != NULL) {
                next[k].local[count] = (int32_t)b;
                next[k].grids[count++] = set->found[b]->grids[k];
            }
    }
    if (good)
        return next;
    drop_lists(next, set->arrays.count);
    return NULL;
}

/* Makes the xarrays what the lists and owners say; leaves the lists that were. */
static void take_lists(const ferry_blocks *set, lists *next, size_t here)
{
    for (size_t k = 0; k < set->arrays.count; k++) {
        ferry_xarray *x = set->items[k];
        lists old = {.local = x->local, .grids = x->grids};
        x->local = next[k].local;
        x->grids = next[k].grids;
        x->local_count = here;
        next[k] = old;
        for (size_t b = 0; b < set->count; b++)
            x->blocks.blocks[b].owner = (int)set->owners[b] - 1;
    }
}

/* The blocks in `found` are here now, those of the others with them. */
static int resettle(ferry_blocks *set, size_t here)
{
    ferry *f = set->f;
    ferry_floorplan old = {0};
    lists *next = make_lists(set, here);
    bool *marks = fy_calloc((size_t)ferry_ranks(f), sizeof *marks);
    int error = 0;
    if (next == NULL || marks == NULL || ferry_floorplan_copy(&set->items[0]->blocks, &old))
        error = fy_fail(f, FERRY_ENOMEM, "blocks_settle: no memory for %zu blocks", set->count);
    error = fy_mover_agree(f, error);
    if (error == 0)
        error = ferry_allreduce(f, FERRY_UINT64, FERRY_MAX, set->owners, set->owners, set->count);
    if (error == 0) {
        take_lists(set, next, here);
        error = fy_mover_agree(f, fy_mover_follow(f, set->arrays, &old, marks));
    }
    drop_lists(next, set->arrays.count);
    ferry_floorplan_fini(&old);
    free(marks);
    return error;
}

int ferry_blocks_settle(ferry_blocks *set, size_t *moved)
{
    ferry *f = set->f;
    uint64_t sums[3]; /* blocks found, new ones among them, ranks with a mover under way */
    size_t here;
    if (fy_in_handler(f))
        return fy_fail(f, FERRY_ESTATE, "blocks_settle: not allowed inside a handler");
    do {
        int error = ferry_quiesce(f);
        if (error)
            return error;
        here = find(set, &sums[1]);
        sums[0] = here;
        sums[2] = fy_mover_any_under_way(f, set->arrays);
        error = ferry_allreduce(f, FERRY_UINT64, FERRY_SUM, sums, sums, 3);
        if (error)
            return error;
        if (sums[2] > 0)
            return fy_fail(f, FERRY_ESTATE, "blocks_settle: a mover of the xarrays is under way");
    } while (sums[0] != set->count);
    int error = sums[1] > 0 ? resettle(set, here) : 0;
    if (error == 0)
        set_astray(set, false);
    if (error == 0 && moved != NULL)
        *moved = (size_t)sums[1];
    return error;
}

int ferry_blocks_destroy(ferry_blocks *set)
{
    if (set == NULL)
        return 0;
    int error = ferry_blocks_settle(set, NULL);
    if (error)
        return error;
    lend(set, true);
    end_objects(set);
    free_set(set);
    return 0;
}

void fy_block_sets_close(fy_movers *movers)
{
    while (movers->blocks != NULL)
        free_set(movers->blocks);
}
