/* Keys of the centres of regions on space-filling curves. Each coordinate is reduced to so many
 * bits that the key has 64. The Hilbert curve is computed in its transposed form: the coordinates
 * become the bits of the key in place, and are then interleaved as for Morton. */
#include "mover/geometry/curve.h"

#include <stdlib.h>

/* Bits per dimension. */
static int bits_of(int dims)
{
    return dims == 1 ? 62 : 63 / dims;
}

/* The place of the centre of `r` in the hull, each coordinate scaled to `bits` bits. */
static void place(const ferry_region *hull, const ferry_region *r, int bits, uint64_t *out)
{
    uint64_t longest = 0;
    for (int d = 0; d < hull->dims; d++) {
        uint64_t extent = (uint64_t)hull->high.at[d] - (uint64_t)hull->low.at[d];
        longest = extent > longest ? extent : longest;
    }
    int shift = 0;
    while (shift < 63 && (longest >> shift) >> bits)
        shift++;
    for (int d = 0; d < hull->dims; d++) {
        uint64_t low = (uint64_t)r->low.at[d] - (uint64_t)hull->low.at[d];
        uint64_t high = (uint64_t)r->high.at[d] - (uint64_t)hull->low.at[d];
        out[d] = (low + (high - low) / 2) >> shift;
    }
}

static uint64_t interleave(const uint64_t *x, int dims, int bits)
{
    uint64_t key = 0;
    for (int b = bits - 1; b >= 0; b--)
        for (int d = 0; d < dims; d++)
            key = key << 1 | (x[d] >> b & 1);
    return key;
}

uint64_t fy_curve_morton(const ferry_region *hull, const ferry_region *r)
{
    uint64_t x[FERRY_DIMS_MAX];
    int bits = bits_of(hull->dims);
    place(hull, r, bits, x);
    return interleave(x, hull->dims, bits);
}

uint64_t fy_curve_hilbert(const ferry_region *hull, const ferry_region *r)
{
    uint64_t x[FERRY_DIMS_MAX], t;
    int dims = hull->dims, bits = bits_of(dims);
    place(hull, r, bits, x);
    uint64_t top = UINT64_C(1) << (bits - 1);
    for (uint64_t q = top; q > 1; q >>= 1) {
        for (int d = 0; d < dims; d++) {
            if (x[d] & q) {
                x[0] ^= q - 1;
            } else {
                t = (x[0] ^ x[d]) & (q - 1);
                x[0] ^= t;
                x[d] ^= t;
            }
        }
    }
    for (int d = 1; d < dims; d++)
        x[d] ^= x[d - 1];
    t = 0;
    for (uint64_t q = top; q > 1; q >>= 1)
        if (x[dims - 1] & q)
            t ^= q - 1;
    for (int d = 0; d < dims; d++)
        x[d] ^= t;
    return interleave(x, dims, bits);
}

static int by_key(const void *a, const void *b)
{
    const fy_curve_item *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

void fy_curve_sort(fy_curve_item *items, size_t count)
{
    qsort(items, count, sizeof *items, by_key);
}
