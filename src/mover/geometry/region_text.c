/* Regions and points as text. */
#include <inttypes.h>
#include <stdio.h>

#include "mover/geometry/box.h"
#include "mover/geometry/fail.h"

/* Appends `text` as far as there is room. `*length` counts all its characters, as snprintf does.
 * The text has no end mark until `finish` is called. */
static void append_text(char *buffer, size_t size_bytes, int *length, const char *text)
{
    for (; *text != '\0'; text++, ++*length)
        if ((size_t)*length + 1 < size_bytes)
            buffer[*length] = *text;
}

static void region_text_append(char *buffer, size_t size_bytes, int *length, const char *before,
                               int64_t value)
{
    char digits[24];
    (void)snprintf(digits, sizeof digits, "%" PRId64, value);
    append_text(buffer, size_bytes, length, before);
    append_text(buffer, size_bytes, length, digits);
}

static int region_text_finish(char *buffer, size_t size_bytes, int length, char open, char close)
{
    const char tail[3] = {length > 0 ? close : open, length > 0 ? '\0' : close, '\0'};
    if (length > 0 && size_bytes > 1)
        buffer[0] = open;
    append_text(buffer, size_bytes, &length, tail);
    if (size_bytes > 0)
        buffer[(size_t)length < size_bytes ? (size_t)length : size_bytes - 1] = '\0';
    return length;
}

int ferry_region_format(ferry_region r, char *buffer, size_t size_bytes)
{
    int length = 0;
    for (int d = 0; d < r.dims && d < FERRY_DIMS_MAX; d++) {
        region_text_append(buffer, size_bytes, &length, ",", r.low.at[d]);
        region_text_append(buffer, size_bytes, &length, ":", r.high.at[d]);
    }
    return region_text_finish(buffer, size_bytes, length, '[', ']');
}

int ferry_point_format(ferry_point p, int dims, char *buffer, size_t size_bytes)
{
    int length = 0;
    for (int d = 0; d < dims && d < FERRY_DIMS_MAX; d++)
        region_text_append(buffer, size_bytes, &length, ",", p.at[d]);
    return region_text_finish(buffer, size_bytes, length, '(', ')');
}

static const char *skip(const char *text)
{
    while (*text == ' ' || *text == '\t' || *text == '\n')
        text++;
    return text;
}

/* Reads one character. */
static bool region_text_take(const char **text, char wanted)
{
    const char *at = skip(*text);
    if (*at != wanted)
        return false;
    *text = at + 1;
    return true;
}

/* Reads a coordinate within the limit. */
static bool number(const char **text, int64_t *out)
{
    const char *at = skip(*text);
    bool negative = *at == '-';
    at += negative;
    if (*at < '0' || *at > '9')
        return false;
    int64_t value = 0;
    for (; *at >= '0' && *at <= '9'; at++)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, *at - '0', &value))
            return false;
    if (value > FERRY_COORDINATE_MAX)
        return false;
    *text = at;
    *out = negative ? -value : value;
    return true;
}

static bool read_region(const char *text, ferry_region *r)
{
    if (!region_text_take(&text, '['))
        return false;
    while (!region_text_take(&text, ']')) {
        if (r->dims == FERRY_DIMS_MAX || (r->dims > 0 && !region_text_take(&text, ',')) ||
            !number(&text, &r->low.at[r->dims]) || !region_text_take(&text, ':') ||
            !number(&text, &r->high.at[r->dims]))
            return false;
        r->dims++;
    }
    return *skip(text) == '\0';
}

int ferry_region_parse(const char *text, ferry_region *out)
{
    const fy_given given[] = {{"text", text}, {"out", out}};
    const int error = fy_mover_given("region_parse", given, 2);
    ferry_region r = {0};
    if (error)
        return error;
    if (!read_region(text, &r))
        return fy_mover_fail(NULL, FERRY_EINVAL,
                             "region_parse: \"%.80s\" is no region, expected text as [0:9,0:4] "
                             "with at most %d dimensions and no coordinate beyond %lld",
                             text, FERRY_DIMS_MAX, (long long)FERRY_COORDINATE_MAX);
    *out = r;
    return 0;
}

static bool read_point(const char *text, ferry_point *p, int *count)
{
    if (!region_text_take(&text, '('))
        return false;
    while (!region_text_take(&text, ')')) {
        if (*count == FERRY_DIMS_MAX || (*count > 0 && !region_text_take(&text, ',')) ||
            !number(&text, &p->at[*count]))
            return false;
        ++*count;
    }
    return *skip(text) == '\0';
}

int ferry_point_parse(const char *text, ferry_point *out, int *dims)
{
    const fy_given given[] = {{"text", text}, {"out", out}, {"dims", dims}};
    const int error = fy_mover_given("point_parse", given, 3);
    ferry_point p = {{0}};
    int count = 0;
    if (error)
        return error;
    if (!read_point(text, &p, &count))
        return fy_mover_fail(NULL, FERRY_EINVAL,
                             "point_parse: \"%.80s\" is no point, expected text as (1,2,3) with at "
                             "most %d coordinates and none beyond %lld",
                             text, FERRY_DIMS_MAX, (long long)FERRY_COORDINATE_MAX);
    *out = p;
    *dims = count;
    return 0;
}
