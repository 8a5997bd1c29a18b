/* Indices, their keys, and the maps from an index to its home. */
#include <stdio.h>

#include "base/mix.h"
#include "collection/state.h"
#include "core/fail.h"

static const unsigned key_bits[FY_DIMS + 1] = {0, 61, 30, 20};

void fy_index_bound(ferry_collection *c)
{
    int dims = c->options.dims;
    int64_t limit = INT64_C(1) << (key_bits[dims] - 1);
    for (int d = 0; d < dims; d++) {
        c->low[d] = c->dense ? 0 : -limit;
        c->span[d] = (uint64_t)(c->dense && c->extents[d] < limit ? c->extents[d] : limit) - 1;
        c->span[d] += c->dense ? 0 : (uint64_t)limit;
    }
    uint64_t scale = 1;
    c->key_base = 1;
    for (int d = dims - 1; d >= 0; d--, scale <<= key_bits[dims]) {
        c->key_scale[d] = scale;
        c->key_base += scale * (uint64_t)limit;
    }
}

uint64_t fy_index_key(const ferry_collection *c, ferry_index index)
{
    bool outside = false;
    uint64_t key = c->key_base;
    for (int d = 0; d < FY_DIMS; d++) {
        outside |= (uint64_t)index.at[d] - (uint64_t)c->low[d] > c->span[d];
        key += (uint64_t)index.at[d] * c->key_scale[d];
    }
    return outside ? 0 : key;
}

ferry_index fy_key_index(const ferry_collection *c, uint64_t key)
{
    ferry_index index = {{0, 0, 0}};
    unsigned bits = key_bits[c->options.dims];
    key--;
    for (int d = c->options.dims - 1; d >= 0; d--, key >>= bits)
        index.at[d] = (int64_t)(key & ((UINT64_C(1) << bits) - 1)) - (INT64_C(1) << (bits - 1));
    return index;
}

const char *fy_index_text(const ferry_collection *c, ferry_index index, char *out)
{
    int used = snprintf(out, FY_TEXT_BYTES, "(%lld", (long long)index.at[0]);
    for (int d = 1; d < c->options.dims && used < FY_TEXT_BYTES; d++)
        used +=
            snprintf(out + used, (size_t)(FY_TEXT_BYTES - used), ", %lld", (long long)index.at[d]);
    if (used < FY_TEXT_BYTES)
        (void)snprintf(out + used, (size_t)(FY_TEXT_BYTES - used), ")");
    return out;
}

int fy_index_refuse(const ferry_collection *c, const char *call, ferry_index index)
{
    const int64_t *e = c->extents;
    const long long i = index.at[0], j = index.at[1], k = index.at[2];
    if (c->dense)
        return fy_fail(c->f, FERRY_EINVAL,
                       "%s: index (%lld, %lld, %lld) is outside the collection of %lld x %lld x "
                       "%lld elements",
                       call, i, j, k, (long long)e[0], (long long)(c->options.dims > 1 ? e[1] : 1),
                       (long long)(c->options.dims > 2 ? e[2] : 1));
    return fy_fail(c->f, FERRY_EINVAL,
                   "%s: index (%lld, %lld, %lld): in %d dimension%s each entry is from -2^%u to "
                   "2^%u - 1, and further entries are 0",
                   call, i, j, k, c->options.dims, c->options.dims == 1 ? "" : "s",
                   key_bits[c->options.dims] - 1, key_bits[c->options.dims] - 1);
}

/* The place of an index on the Z curve of the box: halves along the longest axis, the lower one
 * first. */
static uint64_t curve_place(const ferry_collection *c, ferry_index index)
{
    int64_t low[FY_DIMS], size[FY_DIMS];
    uint64_t place = 0, volume = 1;
    for (int d = 0; d < FY_DIMS; d++) {
        low[d] = 0;
        size[d] = d < c->options.dims ? c->extents[d] : 1;
        volume *= (uint64_t)size[d];
    }
    while (volume > 1) {
        int axis = 0;
        for (int d = 1; d < FY_DIMS; d++)
            if (size[d] > size[axis])
                axis = d;
        int64_t half = size[axis] / 2;
        uint64_t below = volume / (uint64_t)size[axis] * (uint64_t)half;
        if (index.at[axis] < low[axis] + half) {
            size[axis] = half;
            volume = below;
        } else {
            place += below;
            low[axis] += half;
            size[axis] -= half;
            volume -= below;
        }
    }
    return place;
}

static uint64_t volume_of(const ferry_collection *c)
{
    uint64_t volume = 1;
    for (int d = 0; d < c->options.dims; d++)
        volume *= (uint64_t)c->extents[d];
    return volume;
}

static int block_home(const ferry_collection *c, ferry_index index)
{
    int home = 0;
    for (int d = 0; d < c->options.dims; d++)
        home = home * c->grid[d] + (int)(index.at[d] * c->grid[d] / c->extents[d]);
    return home;
}

int fy_collection_place(const ferry_collection *c, int rank)
{
    int low = 0, high = c->ranks;
    if (rank >= 0 && rank < c->ranks && c->members[rank] == rank)
        return rank;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (c->members[middle] < rank)
            low = middle + 1;
        else
            high = middle;
    }
    return low < c->ranks && c->members[low] == rank ? low : -1;
}

int fy_home_refuse(const ferry_collection *c, const char *call, ferry_index index)
{
    char text[FY_TEXT_BYTES];
    return fy_fail(c->f, FERRY_EINVAL,
                   "%s: the map gives no rank for %s: it gives %d; expected one of the %d members "
                   "of the collection, from %d to %d",
                   call, fy_index_text(c, index, text),
                   c->options.map_fn(c->options.map_arg, index, c->ranks), c->ranks, c->members[0],
                   c->members[c->ranks - 1]);
}

/* The place of the home among the members, by a map of this layer. */
static int home_place(const ferry_collection *c, ferry_index index)
{
    uint64_t place = 0;
    switch (c->options.map) {
    case FERRY_MAP_BLOCK:
        return block_home(c, index);
    case FERRY_MAP_CYCLIC:
        for (int d = 0; d < c->options.dims; d++)
            place = place * (uint64_t)c->extents[d] + (uint64_t)index.at[d];
        return (int)(place % (uint64_t)c->ranks);
    case FERRY_MAP_CURVE:
        return (int)(curve_place(c, index) * (uint64_t)c->ranks / volume_of(c));
    case FERRY_MAP_HASH:
    case FERRY_MAP_DEFAULT:
        break;
    }
    return (int)(fy_mix(fy_mix(0, fy_index_key(c, index)), 1) % (uint64_t)c->ranks);
}

int fy_index_home(const ferry_collection *c, ferry_index index)
{
    if (c->options.map_fn == NULL)
        return c->members[home_place(c, index)];
    int home = c->options.map_fn(c->options.map_arg, index, c->ranks);
    return fy_collection_place(c, home) >= 0 ? home : -1;
}

/* The cost of a grid of ranks: the most elements that a rank has, and with little weight the
 * surface of its box. */
static double grid_cost(const ferry_collection *c, const int *grid)
{
    double volume = 1, surface = 0, side[FY_DIMS];
    for (int d = 0; d < c->options.dims; d++) {
        side[d] = (double)((c->extents[d] + grid[d] - 1) / grid[d]);
        volume *= side[d];
    }
    for (int d = 0; d < c->options.dims; d++)
        surface += volume / side[d];
    return volume * 16 + surface;
}

static void try_grid(ferry_collection *c, const int *grid, double *best)
{
    double cost = grid_cost(c, grid);
    if (*best >= 0 && cost >= *best)
        return;
    *best = cost;
    for (int d = 0; d < FY_DIMS; d++)
        c->grid[d] = grid[d];
}

static void choose_grid(ferry_collection *c)
{
    double best = -1;
    int dims = c->options.dims, grid[FY_DIMS] = {c->ranks, 1, 1};
    if (dims == 1)
        try_grid(c, grid, &best);
    for (int a = 1; dims > 1 && a <= c->ranks; a++) {
        if (c->ranks % a != 0)
            continue;
        grid[0] = a;
        grid[1] = c->ranks / a;
        if (dims == 2)
            try_grid(c, grid, &best);
        for (int b = 1; dims == 3 && b <= c->ranks / a; b++) {
            if (c->ranks / a % b != 0)
                continue;
            grid[1] = b;
            grid[2] = c->ranks / a / b;
            try_grid(c, grid, &best);
        }
    }
}

int fy_map_init(ferry_collection *c)
{
    if (c->options.map == FERRY_MAP_DEFAULT)
        c->options.map = c->dense ? FERRY_MAP_BLOCK : FERRY_MAP_HASH;
    if ((int)c->options.map < 0 || c->options.map > FERRY_MAP_HASH)
        return fy_fail(c->f, FERRY_EINVAL,
                       "collection_create: map %d is unknown; expected FERRY_MAP_DEFAULT to "
                       "FERRY_MAP_HASH, 0..%d",
                       (int)c->options.map, (int)FERRY_MAP_HASH);
    if (!c->dense && c->options.map != FERRY_MAP_HASH && c->options.map_fn == NULL)
        return fy_fail(c->f, FERRY_EINVAL,
                       "collection_create: this map needs extents; without them use "
                       "FERRY_MAP_HASH or a map_fn");
    if (c->dense)
        choose_grid(c);
    return 0;
}

void fy_map_box(const ferry_collection *c, ferry_index *low, ferry_index *high)
{
    int rest = c->place;
    bool block = c->options.map == FERRY_MAP_BLOCK && c->options.map_fn == NULL;
    *low = *high = ferry_index_of(0, 0, 0);
    for (int d = c->options.dims - 1; d >= 0; d--) {
        int64_t n = c->extents[d], parts = c->grid[d], part = rest % c->grid[d];
        rest /= c->grid[d];
        low->at[d] = block ? (part * n + parts - 1) / parts : 0;
        high->at[d] = block ? ((part + 1) * n + parts - 1) / parts - 1 : n - 1;
    }
}
