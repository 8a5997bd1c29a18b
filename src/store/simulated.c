/* Simulated: the disk of a simulated rank. FERRY_SIM_DISK gives its latency, its bandwidth and its
 * faults. The file is real, and read and written when a job begins. The job ends later in virtual
 * time. Jobs of a disk follow each other.
 *
 * Each fault depends on the seed, the rank and the number of the call alone. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/env.h"
#include "base/error.h"
#include "store/state.h"

enum { MILLION = 1000000 };

static const char EXPECTED[] =
    "expected latency=TIME, bandwidth=BYTES, full=P, error=P, damage=P and slow=P:FACTOR, with "
    "commas; TIME with ns, us, ms or s, BYTES per second with K, M or G, P from 0 to 1";

/* Reads a number from `low` to `high`; `*text` moves behind it. */
static bool read_number(const char **text, double low, double high, double *out)
{
    char *end;
    *out = strtod(*text, &end);
    bool right = end != *text && *out >= low && *out <= high;
    *text = end;
    return right;
}

typedef struct unit {
    const char *name;
    double factor;
} unit;

/* Multiplies by the unit that follows; false: there is none. The last of `units` has no name. */
static bool read_unit(const char **text, const unit *units, double *value)
{
    while (units->name != NULL && strncmp(*text, units->name, strlen(units->name)) != 0)
        units++;
    if (units->name == NULL)
        return false;
    *text += strlen(units->name);
    *value *= units->factor;
    return true;
}

static bool read_latency(const char **text, fy_disk_model *m)
{
    static const unit units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {NULL, 0}};
    double ns;
    bool right = read_number(text, 0, 1e9, &ns) && read_unit(text, units, &ns);
    m->latency_ns = right ? (uint64_t)ns : 0;
    return right;
}

static bool read_bandwidth(const char **text, fy_disk_model *m)
{
    static const unit units[] = {{"K", 1e3}, {"M", 1e6}, {"G", 1e9}, {NULL, 0}};
    double bytes;
    bool right = read_number(text, 1e-3, 1e9, &bytes) && read_unit(text, units, &bytes);
    m->bytes_per_us = bytes * 1e-6;
    return right;
}

static bool read_odds(const char **text, uint32_t *odds)
{
    double p;
    bool right = read_number(text, 0, 1, &p);
    *odds = right ? (uint32_t)(p * MILLION) : 0;
    return right;
}

static bool begins(const char **text, const char *name)
{
    bool found = strncmp(*text, name, strlen(name)) == 0;
    *text += found ? strlen(name) : 0;
    return found;
}

/* Reads one part of the description, and moves `*text` behind it. */
static bool read_part(const char **text, fy_disk_model *m)
{
    if (begins(text, "latency="))
        return read_latency(text, m);
    if (begins(text, "bandwidth="))
        return read_bandwidth(text, m);
    if (begins(text, "full="))
        return read_odds(text, &m->full);
    if (begins(text, "error="))
        return read_odds(text, &m->error);
    if (begins(text, "damage="))
        return read_odds(text, &m->damage);
    return begins(text, "slow=") && read_odds(text, &m->slow) && begins(text, ":") &&
           read_number(text, 1, 1e6, &m->slow_factor);
}

int fy_disk_model_read(fy_disk_model *m, int rank)
{
    const char *given = fy_env_get("FERRY_SIM_DISK"), *text = given;
    uint64_t seed = 0;
    *m = (fy_disk_model){.slow_factor = 1};
    fy_list_init(&m->later);
    if (text == NULL)
        return 0;
    bool right;
    do
        right = read_part(&text, m);
    while (right && begins(&text, ","));
    if (!right || *text != '\0')
        return fy_error_set(FERRY_EINVAL, "FERRY_SIM_DISK is \"%s\"; %s", given, EXPECTED);
    int error = fy_env_number("FERRY_SIM_SEED", &seed);
    fy_random_init(&m->random, seed ^ 0x6469736b, (uint64_t)rank); /* not the network's numbers */
    return error;
}

static bool happens(fy_disk_model *m, uint32_t odds)
{
    return odds != 0 && fy_random_below(&m->random, MILLION) < odds;
}

uint64_t fy_disk_model_due(fy_disk_model *m, uint64_t now_ns, uint64_t size_bytes)
{
    double ns = (double)m->latency_ns;
    if (m->bytes_per_us > 0)
        ns += (double)size_bytes / m->bytes_per_us * 1e3;
    if (happens(m, m->slow))
        ns *= m->slow_factor;
    if (m->free_ns < now_ns)
        m->free_ns = now_ns;
    m->free_ns += (uint64_t)ns;
    return m->free_ns;
}

ssize_t fy_disk_model_pwrite(fy_disk_model *m, int fd, const void *buffer, size_t size_bytes,
                             off_t offset)
{
    if (!happens(m, m->full))
        return pwrite(fd, buffer, size_bytes, offset);
    errno = ENOSPC;
    return -1;
}

ssize_t fy_disk_model_pread(fy_disk_model *m, int fd, void *buffer, size_t size_bytes, off_t offset)
{
    if (happens(m, m->error)) {
        errno = EIO;
        return -1;
    }
    ssize_t count = pread(fd, buffer, size_bytes, offset);
    if (count > 0 && happens(m, m->damage))
        ((unsigned char *)buffer)[fy_random_below(&m->random, (uint64_t)count)] ^= 1;
    return count;
}
