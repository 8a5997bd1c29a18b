#include "port/waiting.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int fy_waiting_read(fy_waiting *waiting, char *line, char **words)
{
    char *end = line, *tag = strstr(line, "tag -2147483648"); /* FERRY_ANY_TAG: ends the line */
    if (tag != NULL)
        memcpy(tag, "any tag", sizeof("any tag"));
    long rank = line[0] == '>' ? strtol(line + 1, &end, 10) : -1;
    (void)sscanf(line, "nothing to do for %lf s", &waiting->quiet_s);
    if (rank < 0 || rank > INT32_MAX || end == line + 1)
        return -1;
    if (waiting->count < FY_AWAITED_MAX && rank != waiting->rank)
        waiting->awaited[waiting->count++] = (int32_t)rank;
    *words = end;
    return (int)rank;
}

bool fy_waiting_misses(const fy_waiting *waiting, const fy_waiting *other)
{
    return waiting->lives && other->lives && waiting->rank != other->rank &&
           waiting->doing >= FY_DOING_BARRIER && waiting->doing <= FY_DOING_CLOSE &&
           other->doing != waiting->doing;
}

static bool waits_for(const fy_waiting *waiting, const fy_waiting *other)
{
    for (int i = 0; i < waiting->count; i++)
        if (waiting->awaited[i] == other->rank)
            return true;
    return fy_waiting_misses(waiting, other);
}

/* Follows who waits for whom from `start`, nearest first. True when that leads back to it: the way
 * stands in `from`, backwards. */
static bool leads_back(const fy_waiting *all, uint32_t count, uint32_t start, uint32_t *from,
                       uint32_t *queue)
{
    uint32_t first = 0, queued = 0;
    memset(from, 0xff, count * sizeof(*from));
    for (queue[queued++] = start; first < queued; first++)
        for (uint32_t other = 0; other < count; other++) {
            if (from[other] != UINT32_MAX || !waits_for(&all[queue[first]], &all[other]))
                continue;
            from[other] = queue[first];
            if (other == start)
                return true;
            queue[queued++] = other;
        }
    return false;
}

int fy_waiting_deadlock(const fy_waiting *all, uint32_t count, uint32_t start, char *out,
                        size_t size)
{
    uint32_t *from = calloc((size_t)count * 2, sizeof(*from)), *way = from + count, length = 0;
    int lowest = -1;
    if (from != NULL && leads_back(all, count, start, from, way)) {
        lowest = all[start].rank;
        for (uint32_t at = from[start]; at != start; at = from[at]) {
            way[length++] = at;
            lowest = all[at].rank < lowest ? all[at].rank : lowest;
        }
        size_t used = (size_t)snprintf(out, size, "rank %d waits", all[start].rank);
        while (length-- > 0 && used < size)
            used += (size_t)snprintf(out + used, size - used, " for rank %d, which waits",
                                     all[way[length]].rank);
        if (used < size)
            (void)snprintf(out + used, size - used, " for rank %d", all[start].rank);
    }
    free(from);
    return lowest;
}

/* An index that is in a deadlock. Depth first, and each once: `next` has 1 + the index that is
 * looked at next from there, 0 where none was, and `left` when all were. */
static bool find_deadlock(const fy_waiting *all, uint32_t count, uint32_t *next, uint32_t *way,
                          uint32_t *out)
{
    const uint32_t left = UINT32_MAX;
    uint32_t depth = 0;
    for (uint32_t start = 0; start < count; start++) {
        if (next[start] == 0)
            next[way[depth++] = start] = 1;
        while (depth > 0) {
            uint32_t at = way[depth - 1], other = next[at]++ - 1;
            if (other == count) {
                next[at] = left;
                depth--;
            } else if (next[other] != left && waits_for(&all[at], &all[other])) {
                *out = other;
                if (next[other] != 0)
                    return true;
                next[way[depth++] = other] = 1;
            }
        }
    }
    return false;
}

bool fy_waiting_any_deadlock(const fy_waiting *all, uint32_t count, char *out, size_t size)
{
    uint32_t *next = calloc((size_t)count * 2, sizeof(*next)), start = 0;
    bool found = next != NULL && find_deadlock(all, count, next, next + count, &start);
    free(next);
    return found && fy_waiting_deadlock(all, count, start, out, size) >= 0;
}
