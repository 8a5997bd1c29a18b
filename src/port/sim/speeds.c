/* Speeds of ranks: "FIRST[-LAST]=FACTOR[@TIME],...": FACTOR 0.5 computes half as fast; with @TIME
 * from then on. Later items replace earlier ones. */
#include <stdlib.h>

#include "base/error.h"
#include "port/sim/world.h"

enum { SPEED_MAX = 1000000 };

static bool read_rank(const char **at, int ranks, int *rank)
{
    char *end;
    if (**at < '0' || **at > '9')
        return false;
    long value = strtol(*at, &end, 10);
    if (value >= ranks)
        return false;
    *at = end;
    *rank = (int)value;
    return true;
}

/* A decimal with up to three places, per mille. */
static bool read_factor(const char **at, uint32_t *speed)
{
    uint32_t value = 0;
    const char *p = *at;
    if (*p < '0' || *p > '9')
        return false;
    for (; *p >= '0' && *p <= '9' && value <= SPEED_MAX; p++)
        value = value * 10 + (uint32_t)(*p - '0');
    value *= 1000;
    if (*p == '.') {
        uint32_t scale = 100;
        for (p++; *p >= '0' && *p <= '9' && scale > 0; p++, scale /= 10)
            value += (uint32_t)(*p - '0') * scale;
    }
    if (value == 0 || value > SPEED_MAX * 1000u)
        return false;
    *at = p;
    *speed = value;
    return true;
}

static bool read_item(fy_world *world, const char **at)
{
    int first, last;
    uint32_t speed;
    uint64_t later_ps = 0;
    if (!read_rank(at, world->rank_count, &first))
        return false;
    last = first;
    if (**at == '-') {
        (*at)++;
        if (!read_rank(at, world->rank_count, &last) || last < first)
            return false;
    }
    if (**at != '=')
        return false;
    (*at)++;
    if (!read_factor(at, &speed))
        return false;
    bool later = **at == '@';
    if (later && (!fy_net_time(*at + 1, &later_ps, at)))
        return false;
    for (int i = first; i <= last; i++) {
        fy_sim_rank *rank = &world->ranks[i];
        *(later ? &rank->speed_later : &rank->speed) = speed;
        rank->speed_later_ns = later ? later_ps / 1000 : rank->speed_later_ns;
    }
    return **at == ',' || **at == '\0';
}

int fy_speeds_read(fy_world *world, const char *text)
{
    if (text == NULL)
        return 0;
    for (const char *at = text; *at != '\0'; at += *at == ',')
        if (!read_item(world, &at))
            return fy_error_set(FERRY_EINVAL,
                                "speeds \"%s\": expected FIRST[-LAST]=FACTOR[@TIME],... for %d "
                                "ranks, with factors from 0.001 to %d, at \"%s\"",
                                text, world->rank_count, SPEED_MAX, at);
    return 0;
}
