/* Blocks as objects: their creation, packing and end. settle.c has ferry_blocks_settle. */
#include <stdlib.h>
#include <string.h>

#include <ferry/memory.h>

#include "base/alloc.h"
#include "core/fail.h"
#include "mover/bind/blocks.h"
#include "mover/bind/link.h"
#include "mover/geometry/array.h"
#include "mover/geometry/fail.h"
#include "object/object.h"

/* Greater than each number of a type. */
static const uint64_t TYPED = 0x8000;

/* The head of a packed block. Its grids follow, dense. */
typedef struct packed_block {
    uint32_t set, flags;
    int32_t block;
    ferry_region region; /* of the first grid */
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

static void blocks_pack(ferry *f, const void *data, void *buffer, size_t size_bytes)
{
    (void)f;
    (void)size_bytes;
    const ferry_block_data *block = data;
    char *at = buffer;
    const packed_block head = {.set = block->set,
                               .flags = block->flags,
                               .block = block->block,
                               .region = block->grids[0].region};
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

/* Whether an xarray of the set names a grid of the block. */
static bool is_named(const ferry_blocks *set, const ferry_block_data *block)
{
    for (uint32_t i = 0; i < block->count; i++) {
        const ferry_grid *grid = ferry_xarray_grid(set->items[i], block->block);
        if (grid != NULL && grid->data == block->grids[i].data)
            return true;
    }
    return false;
}

void fy_block_free(ferry *f, ferry_block_data *block)
{
    for (uint32_t i = 0; i < block->count && (block->flags & FY_BLOCK_LENT) == 0; i++)
        (void)ferry_free(f, block->grids[i].data);
    (void)ferry_free(f, block);
}

/* Keeps a block that a mover in flight uses until that has ended. A block leaves then only if the
 * program has called ferry_blocks_settle or ferry_leave too early. */
static bool keep_block(ferry_blocks *set, ferry_block_data *block)
{
    if (fy_array_reserve((void **)&set->kept, &set->kept_capacity, set->kept_count + 1,
                         sizeof *set->kept))
        return false;
    set->kept[set->kept_count++] = block;
    return true;
}

/* Frees a block that has left, when its new rank has confirmed the move. That may be after
 * ferry_blocks_settle, when the xarrays no longer have its grids and movers run. */
static void blocks_release(ferry *f, void *data)
{
    ferry_block_data *block = data;
    ferry_blocks *set = set_of(f, block->set);
    const bool named = set != NULL && (block->flags & FY_BLOCK_LENT) == 0 && is_named(set, block);
    if (named)
        fy_blocks_set_unsettled(set, true);
    if (!named || !fy_mover_any_in_flight(f, set->arrays) || !keep_block(set, block))
        fy_block_free(f, block);
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

static void *blocks_unpack(ferry *f, ferry_object object, const void *buffer, size_t size_bytes)
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
    const ferry_region region = fy_block_region(set, head.region);
    const char *at = (const char *)buffer + sizeof head, *end = (const char *)buffer + size_bytes;
    for (size_t i = 0; i < set->arrays.count && data != NULL; i++) {
        const ferry_xarray *x = set->items[i];
        ferry_grid *grid = &data->grids[i];
        int error =
            ferry_grid_alloc(f, ferry_region_grow(region, x->ghosts), x->element_bytes, grid);
        data->flags = head.flags;
        data->count += error == 0;
        if (error || grid_bytes(grid) > (size_t)(end - at)) {
            blocks_release(f, data);
            return NULL;
        }
        memcpy(grid->data, at, grid_bytes(grid));
        at += grid_bytes(grid);
    }
    return data;
}

/* The number that this rank proposes for the type: of two ranks, the one with the type has the
 * greater. */
static uint64_t propose_type(ferry *f)
{
    const fy_movers *movers = fy_movers_of(f);
    return movers->typed ? TYPED | movers->type.index : fy_objects_of(f)->type_count;
}

static int prepare_type(ferry *f, uint16_t number)
{
    static const ferry_object_ops ops = {.size = sizeof ops,
                                         .name = "block",
                                         .packed_size = packed_size,
                                         .pack = blocks_pack,
                                         .unpack = blocks_unpack,
                                         .destroy = blocks_release,
                                         .flags = FERRY_OBJECT_SHARED};
    fy_movers *movers = fy_movers_of(f);
    if (movers->typed && movers->type.index == number)
        return 0;
    if (movers->typed || fy_type_is_known(fy_objects_of(f), number))
        return fy_fail(f, FERRY_EINVAL,
                       "blocks_create: type %u is \"%s\" here and of blocks on another rank; "
                       "register types before the first set of blocks",
                       number, fy_objects_of(f)->types[number].name);
    int error = fy_type_register_as(f, &ops, number);
    movers->type.index = number;
    movers->typed = error == 0;
    return error;
}

/* Whether two xarrays have the same blocks. With shares only the blocks known here are compared. */
static bool same_plan(const ferry_xarray *x, const ferry_xarray *y)
{
    const ferry_floorplan *a = &x->blocks, *b = &y->blocks;
    const bool whole = a->numbers == NULL;
    const size_t count = whole ? a->count : x->local_count;
    bool same = whole == (b->numbers == NULL) && a->total == b->total && a->dims == b->dims &&
                (whole ? a->count == b->count : x->local_count == y->local_count);
    for (size_t i = 0; i < count && same; i++) {
        const ferry_block *p = ferry_floorplan_block(a, whole ? (int32_t)i : x->local[i]);
        const ferry_block *q = ferry_floorplan_block(b, whole ? (int32_t)i : x->local[i]);
        same = q != NULL && p->owner == q->owner && ferry_region_equal(p->region, q->region);
    }
    return same;
}

static int check_arrays(ferry *f, ferry_xarray *const *arrays, size_t count)
{
    if (count == 0)
        return fy_mover_fail(f, FERRY_EINVAL, "blocks_create: no arrays");
    for (size_t i = 0; i < count; i++) {
        const ferry_xarray *x = arrays[i];
        const bool twice = fy_arrays_have((fy_arrays){.items = arrays, .count = i}, x);
        if (x->borrowed || x->mobile || twice)
            return fy_mover_fail(f, FERRY_EINVAL, "blocks_create: array %zu %s", i,
                                 twice         ? "is given twice"
                                 : x->borrowed ? "has grids of the caller's"
                                               : "is in a set already");
        if (!same_plan(arrays[0], x))
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
    free(set->numbers);
    free(set->objects);
    while (set->kept_count > 0)
        fy_block_free(set->f, set->kept[--set->kept_count]);
    free(set->kept);
    free(set->found);
    free(set->items);
    free(set);
}

ferry_object ferry_blocks_object(const ferry_blocks *set, int32_t block)
{
    const ferry_object none = {0}, *place = fy_blocks_place(set, block);
    return place != NULL ? *place : none;
}

static int make_set(ferry *f, ferry_xarray *const *arrays, size_t count, ferry_blocks **out)
{
    const ferry_floorplan *blocks = &arrays[0]->blocks;
    ferry_blocks *set = *out = fy_calloc(1, sizeof *set);
    if (set == NULL)
        return FERRY_ENOMEM;
    set->f = f;
    fy_list_init(&set->held);
    set->count = blocks->numbers != NULL ? blocks->total : blocks->count;
    set->known_count = blocks->count;
    if (blocks->numbers != NULL) {
        set->numbers = fy_malloc((blocks->count + 1) * sizeof *set->numbers);
        if (set->numbers == NULL)
            return FERRY_ENOMEM;
        memcpy(set->numbers, blocks->numbers, blocks->count * sizeof *set->numbers);
    }
    set->objects = fy_calloc(set->known_count + 1, sizeof *set->objects);
    set->items = fy_calloc(count, sizeof *set->items);
    if (set->objects == NULL || set->items == NULL)
        return FERRY_ENOMEM;
    memcpy(set->items, arrays, count * sizeof *set->items);
    set->arrays = (fy_arrays){.items = set->items, .count = count};
    return 0;
}

static int make_objects(ferry_blocks *set)
{
    const ferry_xarray *x = set->items[0];
    for (size_t i = 0; i < x->local_count; i++) {
        ferry_block_data *data = make_data(set, x->local[i]);
        if (data == NULL)
            return FERRY_ENOMEM;
        data->flags = fy_block_flags(ferry_rank(set->f), true);
        data->count = (uint32_t)set->arrays.count;
        for (size_t k = 0; k < set->arrays.count; k++)
            data->grids[k] = set->items[k]->grids[i];
        int error = ferry_object_create(set->f, fy_movers_of(set->f)->type, data,
                                        fy_blocks_place(set, x->local[i]));
        if (error) {
            blocks_release(set->f, data);
            return error;
        }
    }
    return 0;
}

/* From now on the objects own the grids; with `lent` the xarrays own them again. */
static void lend(ferry_blocks *set, bool lent)
{
    const ferry_xarray *x = set->items[0];
    for (size_t i = 0; i < x->local_count; i++) {
        ferry_block_data *data = ferry_object_data(set->f, ferry_blocks_object(set, x->local[i]));
        if (data != NULL)
            data->flags = fy_block_flags(ferry_rank(set->f), lent);
    }
    for (size_t k = 0; k < set->arrays.count; k++)
        set->items[k]->mobile = !lent;
}

static void end_objects(ferry_blocks *set)
{
    const ferry_xarray *x = set->items[0];
    for (size_t i = 0; i < x->local_count; i++)
        if (!ferry_object_is_none(ferry_blocks_object(set, x->local[i])))
            (void)ferry_object_destroy(set->f, ferry_blocks_object(set, x->local[i]));
}

int ferry_blocks_create(ferry *f, ferry_xarray *const *arrays, size_t count, ferry_blocks **out)
{
    ferry_blocks *set = NULL;
    fy_movers *movers = fy_movers_of(f);
    if (fy_in_handler(f))
        return fy_fail(f, FERRY_ESTATE, "blocks_create: not allowed inside a handler or callback");
    /* After a death, or if ranks have joined, ranks have counted different numbers of sets, and of
     * types. A rank without the type has no sets: so the number of sets matters between equals. */
    uint64_t both = propose_type(f) << 32 | ++movers->next_set;
    int error = fy_mover_agree_on(f, check_arrays(f, arrays, count), &both);
    const uint32_t number = (uint32_t)both;
    movers->next_set = number;
    if (error == 0)
        error = prepare_type(f, (uint16_t)(both >> 32 & ~TYPED));
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
        error = fy_blocks_name(set, 0);
    if (error == 0) {
        lend(set, false);
        if (fy_mover_any_in_flight(f, set->arrays))
            (void)fy_blocks_hold_all(set);
        *out = set;
    } else if (set != NULL) {
        if (set->items != NULL && set->arrays.count > 0)
            end_objects(set);
        free_set(set);
    }
    return error;
}

int ferry_blocks_send(ferry_blocks *set, const ferry_message *message)
{
    if (fy_in_handler(set->f))
        return fy_fail(set->f, FERRY_ESTATE, "blocks_send: not allowed inside a handler");
    if (fy_mover_any_in_flight(set->f, set->arrays))
        return fy_fail(set->f, FERRY_ESTATE, "blocks_send: a mover of the xarrays is in flight");
    const ferry_xarray *x = set->items[0];
    int error = 0;
    fy_blocks_set_unsettled(set, true);
    for (size_t i = 0; i < x->local_count && error == 0; i++)
        error = ferry_object_send(set->f, ferry_blocks_object(set, x->local[i]), message, NULL);
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
