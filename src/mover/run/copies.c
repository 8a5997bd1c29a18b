#include "mover/run/copies.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "mover/plan/plan.h"

/* An entry begins with a byte: the dimensions of `to`, plus those of `from` times 8, plus PLAIN if
 * the entry is plain. */
enum { PLAIN = 64, DIMS_FACTOR = 8 };

/* Where entries are written. `bytes` NULL: only count. */
typedef struct sink {
    unsigned char *bytes;
    size_t at;
} sink;

static void put_byte(sink *out, unsigned value)
{
    if (out->bytes != NULL)
        out->bytes[out->at] = (unsigned char)value;
    out->at++;
}

/* Writes a number: seven bits per byte, so that small ones of either sign take one. */
static void sink_put(sink *out, int64_t value)
{
    uint64_t bits = ((uint64_t)value << 1) ^ (value < 0 ? UINT64_MAX : 0);
    for (; bits >= 128; bits >>= 7)
        put_byte(out, (unsigned)(bits & 127) | 128);
    put_byte(out, (unsigned)bits);
}

static int64_t get(fy_copies_walk *walk)
{
    uint64_t bits = 0;
    unsigned char byte;
    int shift = 0;
    do {
        byte = walk->list->bytes[walk->at++];
        bits |= (uint64_t)(byte & 127) << shift;
        shift += 7;
    } while (byte >= 128);
    return (int64_t)(bits >> 1) ^ -(int64_t)(bits & 1);
}

static bool is_plain(const ferry_plan_entry *copy)
{
    bool plain = copy->relation == FERRY_PLAIN;
    for (int d = 0; d < FERRY_DIMS_MAX; d++)
        plain &= copy->ratio[d] == 1 && copy->axis[d] == d;
    return plain;
}

/* Coordinates of `from` are stored relative to this: the coordinate of `to`, if it has dimension
 * `d`. */
static int64_t beside(const ferry_plan_entry *copy, int d)
{
    return d < copy->to.dims ? copy->to.low.at[d] : 0;
}

static void write_copy(sink *out, const ferry_plan_entry *copy, const ferry_plan_entry *before)
{
    const bool plain = is_plain(copy);
    put_byte(out, (unsigned)copy->to.dims + DIMS_FACTOR * (unsigned)copy->from.dims +
                      (plain ? PLAIN : 0));
    sink_put(out, copy->source - (int64_t)before->source);
    sink_put(out, copy->target - (int64_t)before->target);
    for (int d = 0; d < copy->to.dims; d++) {
        sink_put(out, copy->to.low.at[d] - before->to.low.at[d]);
        sink_put(out, copy->to.high.at[d] - copy->to.low.at[d]);
    }
    for (int d = 0; d < copy->from.dims; d++) {
        sink_put(out, copy->from.low.at[d] - beside(copy, d));
        sink_put(out, copy->from.high.at[d] - copy->from.low.at[d]);
    }
    if (plain)
        return;
    put_byte(out, copy->relation);
    for (int d = 0; d < FERRY_DIMS_MAX; d++) {
        sink_put(out, copy->axis[d]);
        sink_put(out, copy->ratio[d]);
    }
}

bool fy_copies_next(fy_copies_walk *walk)
{
    ferry_plan_entry *copy = &walk->copy;
    const ferry_plan_entry before = *copy;
    if (walk->index == walk->list->count)
        return false;
    walk->index++;
    const unsigned head = walk->list->bytes[walk->at++];
    *copy = (ferry_plan_entry){.to.dims = (int32_t)(head % DIMS_FACTOR),
                               .from.dims = (int32_t)(head / DIMS_FACTOR % DIMS_FACTOR)};
    copy->source = (int32_t)(before.source + get(walk));
    copy->target = (int32_t)(before.target + get(walk));
    for (int d = 0; d < copy->to.dims; d++) {
        copy->to.low.at[d] = before.to.low.at[d] + get(walk);
        copy->to.high.at[d] = copy->to.low.at[d] + get(walk);
    }
    for (int d = 0; d < copy->from.dims; d++) {
        copy->from.low.at[d] = beside(copy, d) + get(walk);
        copy->from.high.at[d] = copy->from.low.at[d] + get(walk);
    }
    fy_copy_plain(copy);
    if (head & PLAIN)
        return true;
    copy->relation = walk->list->bytes[walk->at++];
    for (int d = 0; d < FERRY_DIMS_MAX; d++) {
        copy->axis[d] = (int8_t)get(walk);
        copy->ratio[d] = (int32_t)get(walk);
    }
    return true;
}

static void sink_write_all(sink *out, const ferry_plan *plan, const uint32_t *which, size_t count)
{
    ferry_plan_entry copies[2] = {0};
    for (size_t i = 0; i < count; i++) {
        ferry_plan_entry *copy = &copies[i % 2];
        fy_plan_read(plan, which[i], copy);
        write_copy(out, copy, &copies[(i + 1) % 2]);
    }
}

int fy_copies_make(fy_copies *list, const ferry_plan *plan, const uint32_t *which, size_t count)
{
    sink out = {0};
    sink_write_all(&out, plan, which, count);
    unsigned char *bytes = fy_malloc(out.at + 1);
    if (bytes == NULL)
        return FERRY_ENOMEM;
    *list = (fy_copies){.bytes = bytes, .size_bytes = out.at, .count = count};
    out = (sink){.bytes = bytes};
    sink_write_all(&out, plan, which, count);
    return 0;
}

void fy_copies_fini(fy_copies *list)
{
    free(list->bytes);
    *list = (fy_copies){0};
}
