/* Copies by descriptor: an array of integers that comes from this program, or from another one.
 *
 * A descriptor is read twice by the same rules. The first reading checks it and finds how far it
 * reaches in source and target. If it stays inside both, the second reading carries it out.
 * Elements of a structure may not overlap in the target. So the work is bounded by the size of the
 * target and the length of the descriptor, whatever counts it has. */
#include <string.h>

#include <ferry/convert.h>

#include "cell/state.h"
#include "core/fail.h"

enum { DEPTH_MAX = 16, FIELD_WORDS = 4, STRUCT_WORDS = 2 };

/* How far a descriptor reaches, in bytes from the start of source and target. */
typedef struct reach {
    uint64_t source, target;
} reach;

typedef struct reader {
    const int *at, *end;
    int conversion;
    const char *wrong; /* NULL, or what is wrong */
    const int *where;  /* the wrong word; `end`: words are missing */
} reader;

typedef struct field {
    uint64_t count, source_at, target_at, source_step, target_step;
    ferry_type type;
} field;

static uint32_t long_bytes(int conversion, bool target)
{
    int bit = target ? FERRY_CONVERT_TO_LONG4 : FERRY_CONVERT_FROM_LONG4;
    return conversion & bit ? 4 : 8;
}

static uint32_t scalar_bytes(ferry_type type, int conversion, bool target)
{
    switch (type) {
    case FERRY_BYTE:
        return 1;
    case FERRY_INT16:
        return 2;
    case FERRY_INT32:
    case FERRY_FLOAT:
        return 4;
    case FERRY_LONG:
    case FERRY_ULONG:
        return long_bytes(conversion, target);
    default:
        return 8;
    }
}

static bool copy_refuse(reader *r, const char *why, const int *where)
{
    if (r->wrong == NULL) {
        r->wrong = why;
        r->where = where;
    }
    return false;
}

/* Whether none of `count` words is negative. */
static bool are_natural(reader *r, const char *why, const int *words, int count)
{
    for (int i = 0; i < count; i++)
        if (words[i] < 0)
            return copy_refuse(r, why, &words[i]);
    return true;
}

/* Reads the words of one field. */
static bool read_field(reader *r, field *out)
{
    if (r->end - r->at < FIELD_WORDS)
        return copy_refuse(r, "ends inside a field", r->end);
    if (r->at[1] < 0 || r->at[1] > FERRY_STRUCT)
        return copy_refuse(r, "has a type that is none of 0..9", &r->at[1]);
    if (!are_natural(r, "has a negative count or displacement", r->at, FIELD_WORDS))
        return false;
    *out = (field){.count = (uint64_t)r->at[0],
                   .type = (ferry_type)r->at[1],
                   .source_at = (uint64_t)r->at[2],
                   .target_at = (uint64_t)r->at[3]};
    r->at += FIELD_WORDS;
    if (out->type != FERRY_STRUCT) {
        out->source_step = scalar_bytes(out->type, r->conversion, false);
        out->target_step = scalar_bytes(out->type, r->conversion, true);
        return true;
    }
    if (r->end - r->at < STRUCT_WORDS)
        return copy_refuse(r, "ends inside a structure", r->end);
    if (!are_natural(r, "has a negative stride", r->at, STRUCT_WORDS))
        return false;
    out->source_step = (uint64_t)r->at[0];
    out->target_step = (uint64_t)r->at[1];
    r->at += STRUCT_WORDS;
    return true;
}

/* Counts, displacements and strides are below 2^31, and an element reaches no further than 2^62. So
 * these sums stay below 2^64. */
static uint64_t span(uint64_t at, uint64_t count, uint64_t step, uint64_t element)
{
    return count == 0 || element == 0 ? 0 : at + (count - 1) * step + element;
}

static void reach_widen(reach *r, uint64_t source, uint64_t target)
{
    const uint64_t most = UINT64_C(1) << 62;
    source = source < most ? source : most;
    target = target < most ? target : most;
    r->source = source > r->source ? source : r->source;
    r->target = target > r->target ? target : r->target;
}

/* Checks a descriptor and moves `r` to its end. `room` NULL: the descriptor is of no element, so it
 * may reach anywhere. Recursion is bounded by DEPTH_MAX. */
static bool copy_measure(reader *r, int depth, const reach *room, reach *out)
{
    *out = (reach){0};
    if (depth > DEPTH_MAX)
        return copy_refuse(r, "is nested deeper than 16", r->at);
    if (r->at == r->end)
        return copy_refuse(r, "ends before a field count", r->end);
    if (!are_natural(r, "has a negative count", r->at, 1))
        return false;
    for (int left = *r->at++; left > 0; left--) {
        field f;
        reach element;
        const int *first = r->at;
        if (!read_field(r, &f))
            return false;
        element = (reach){f.source_step, f.target_step};
        if (f.type == FERRY_STRUCT &&
            !copy_measure(r, depth + 1, f.count == 0 ? NULL : room, &element))
            return false;
        if (f.count > 1 && element.target > f.target_step)
            return copy_refuse(r, "has structures that overlap in the target, by their stride",
                               first + FIELD_WORDS + 1);
        reach_widen(out, span(f.source_at, f.count, f.source_step, element.source),
                    span(f.target_at, f.count, f.target_step, element.target));
        if (room != NULL && (out->source > room->source || out->target > room->target))
            return copy_refuse(r, "reaches beyond the source or the target, with its count", first);
    }
    return true;
}

static uint64_t copy_load(const unsigned char *from, uint32_t bytes, bool big)
{
    uint64_t value = 0;
    for (uint32_t i = 0; i < bytes; i++)
        value |= (uint64_t)from[big ? bytes - 1 - i : i] << (8 * i);
    return value;
}

static void store(unsigned char *to, uint32_t bytes, bool big, uint64_t value)
{
    for (uint32_t i = 0; i < bytes; i++)
        to[big ? bytes - 1 - i : i] = (unsigned char)(value >> (8 * i));
}

/* Changes the size of a long. Returns whether the value fits: one of 8 bytes may not fit into 4. */
static bool resize(ferry_type type, uint32_t from, uint32_t to, uint64_t *value)
{
    if (from == 4 && to == 8 && type == FERRY_LONG)
        *value = (uint64_t)(int64_t)(int32_t)*value;
    if (from <= to)
        return true;
    if (type == FERRY_ULONG)
        return *value <= UINT32_MAX;
    return (int64_t)*value >= INT32_MIN && (int64_t)*value <= INT32_MAX;
}

static bool copy_scalars(const field *f, int conversion, unsigned char *target,
                         const unsigned char *source)
{
    bool from_big = conversion & FERRY_CONVERT_FROM_BIG, to_big = conversion & FERRY_CONVERT_TO_BIG;
    uint32_t from = (uint32_t)f->source_step, to = (uint32_t)f->target_step;
    if (f->count == 0)
        return true;
    if (from == to && (from_big == to_big || from == 1)) {
        memcpy(target + f->target_at, source + f->source_at, f->count * from);
        return true;
    }
    for (uint64_t i = 0; i < f->count; i++) {
        uint64_t value = copy_load(source + f->source_at + i * from, from, from_big);
        if (!resize(f->type, from, to, &value))
            return false;
        store(target + f->target_at + i * to, to, to_big, value);
    }
    return true;
}

/* Moves `r` to the end of a checked descriptor. */
static void skip(reader *r)
{
    for (int left = *r->at++; left > 0; left--) {
        field f;
        if (read_field(r, &f) && f.type == FERRY_STRUCT)
            skip(r);
    }
}

/* Whether the descriptor at `r` covers no byte. The work is bounded as in measure. */
static bool reader_is_empty(reader r)
{
    reach out;
    return copy_measure(&r, 0, NULL, &out) && out.target == 0;
}

/* Carries out a checked descriptor, and moves `r` to its end. Returns false if a value does not
 * fit. */
static bool copy(reader *r, unsigned char *target, const unsigned char *source)
{
    for (int left = *r->at++; left > 0; left--) {
        field f;
        if (!read_field(r, &f))
            return false;
        if (f.type != FERRY_STRUCT) {
            if (!copy_scalars(&f, r->conversion, target, source))
                return false;
            continue;
        }
        const int *inner = r->at;
        uint64_t count = reader_is_empty(*r) ? 0 : f.count;
        for (uint64_t i = 0; i < count; i++) {
            r->at = inner;
            if (!copy(r, target + f.target_at + i * f.target_step,
                      source + f.source_at + i * f.source_step))
                return false;
        }
        if (count == 0)
            skip(r);
    }
    return true;
}

int ferry_fields_copy(ferry *f, ferry_extent target, ferry_extent source, const int *descriptor,
                      size_t length, int conversion)
{
    const int conversions = FERRY_CONVERT_FROM_BIG | FERRY_CONVERT_TO_BIG |
                            FERRY_CONVERT_FROM_LONG4 | FERRY_CONVERT_TO_LONG4;
    if (conversion < 0 || conversion > conversions)
        return fy_fail(f, FERRY_EINVAL, "fields_copy: conversion %d is unknown; expected 0..%d",
                       conversion, conversions);
    if (descriptor == NULL || length == 0 || length > PTRDIFF_MAX / sizeof(int))
        return fy_fail(f, FERRY_EINVAL,
                       "fields_copy: a descriptor of %zu words%s; expected 1 to %zu", length,
                       descriptor == NULL ? " at NULL" : "", PTRDIFF_MAX / sizeof(int));
    reader r = {.at = descriptor, .end = descriptor + length, .conversion = conversion};
    const reach room = {source.data == NULL ? 0 : source.size_bytes,
                        target.data == NULL ? 0 : target.size_bytes};
    reach out;
    if (copy_measure(&r, 0, &room, &out) && r.at != r.end)
        (void)copy_refuse(&r, "goes on after its last field", r.at);
    if (r.wrong != NULL && r.where == r.end)
        return fy_fail(f, FERRY_EINVAL, "fields_copy: the descriptor %s (it has %zu words)",
                       r.wrong, length);
    if (r.wrong != NULL)
        return fy_fail(f, FERRY_EINVAL, "fields_copy: the descriptor %s (word %td of %zu is %d)",
                       r.wrong, r.where - descriptor, length, *r.where);
    r.at = descriptor;
    if (out.target > 0 && !copy(&r, target.data, source.data))
        return fy_fail(f, FERRY_ERANGE, "fields_copy: a long does not fit into 4 bytes");
    return 0;
}

static int format_of(fy_cells *c, int rank, uint8_t *format)
{
    const fy_board *board = c->boards[rank];
    /* All ranks of a node have one format. */
    *format = board != NULL ? c->board->format : c->formats[rank];
    if (*format != 0)
        return 0;
    if (c->ops->members.peer(c->port, rank) != FY_PEER_ALIVE)
        return fy_fail(c->f, FERRY_EPEER,
                       "conversion_find: rank %d is gone, and its format not known", rank);
    fy_remote_ask_format(c, rank);
    return FERRY_EAGAIN;
}

int ferry_conversion_find(ferry *f, int from, int to, int *conversion)
{
    fy_cells *c = fy_cells_of(f);
    int ranks = ferry_ranks(f);
    if (conversion == NULL)
        return fy_fail(f, FERRY_EINVAL, "conversion_find: the result is missing");
    if (from < 0 || from >= ranks || to < 0 || to >= ranks)
        return fy_fail(f, FERRY_EINVAL, "conversion_find: ranks %d and %d; there are 0..%d", from,
                       to, ranks - 1);
    uint8_t a, b;
    int error = format_of(c, from, &a);
    int other = format_of(c, to, &b);
    if (error != 0 || other != 0)
        return error == FERRY_EPEER || other == FERRY_EPEER ? FERRY_EPEER : FERRY_EAGAIN;
    *conversion = (a & FY_FORMAT_BIG ? FERRY_CONVERT_FROM_BIG : 0) |
                  (b & FY_FORMAT_BIG ? FERRY_CONVERT_TO_BIG : 0) |
                  (a & FY_FORMAT_LONG4 ? FERRY_CONVERT_FROM_LONG4 : 0) |
                  (b & FY_FORMAT_LONG4 ? FERRY_CONVERT_TO_LONG4 : 0);
    return 0;
}
