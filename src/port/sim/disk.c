/* Disk: how long the simulated disk of a rank takes for a read or write, and when it fails.
 *
 * The disk works on up to `depth` reads and writes at a time. Their latencies pass at the same
 * time. Their bytes follow each other. With a depth of 1 a call begins when the one before ends. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "port/sim/world.h"

enum { DEPTH = 4, DEPTH_MAX = 1024 };

static bool disk_take(const char **at, const char *text)
{
    size_t length = strlen(text);
    bool found = strncmp(*at, text, length) == 0;
    *at += found ? length : 0;
    return found;
}

static bool read_latency(const char **at, fy_sim_disk *disk)
{
    uint64_t ps = 0;
    bool right = fy_net_time(*at, &ps, at);
    disk->latency_ns = ps / 1000;
    return right;
}

/* Bytes per second: a number from 1 to 10^15, with K, M or G. */
static bool read_bandwidth(const char **at, fy_sim_disk *disk)
{
    char *end;
    disk->bytes_per_s = **at >= '0' && **at <= '9' ? strtod(*at, &end) : 0;
    if (disk->bytes_per_s <= 0)
        return false;
    *at = end;
    disk->bytes_per_s *= disk_take(at, "K")   ? 1e3
                         : disk_take(at, "M") ? 1e6
                         : disk_take(at, "G") ? 1e9
                                              : 1;
    return disk->bytes_per_s >= 1 && disk->bytes_per_s <= 1e15;
}

static bool read_depth(const char **at, fy_sim_disk *disk)
{
    char *end;
    long depth = **at >= '0' && **at <= '9' ? strtol(*at, &end, 10) : 0;
    if (depth < 1 || depth > DEPTH_MAX)
        return false;
    *at = end;
    disk->depth = (int)depth;
    return true;
}

static bool read_item(const char **at, fy_sim_disk *disk)
{
    if (disk_take(at, "latency="))
        return read_latency(at, disk);
    if (disk_take(at, "bandwidth="))
        return read_bandwidth(at, disk);
    return disk_take(at, "depth=") && read_depth(at, disk);
}

int fy_sim_disk_read(fy_world *world, const char *text)
{
    fy_sim_disk *disk = &world->disk;
    if (text == NULL)
        return 0;
    *disk = (fy_sim_disk){.depth = DEPTH};
    const char *at = text;
    bool right = read_item(&at, disk);
    while (right && disk_take(&at, ","))
        right = read_item(&at, disk);
    if (right && *at == '\0')
        return 0;
    return fy_error_set(FERRY_EINVAL,
                        "disk \"%s\": expected latency=TIME, bandwidth=BYTES and depth=N, with "
                        "commas; BYTES per second with K, M or G, N from 1 to %d; at \"%s\"",
                        text, DEPTH_MAX, at);
}

/* The place in the queue that is free first. NULL: no memory; the call then takes no time. */
static uint64_t *first_free(fy_sim_rank *rank, int depth)
{
    if (rank->disk_free_ns == NULL)
        rank->disk_free_ns = calloc((size_t)depth, sizeof *rank->disk_free_ns);
    uint64_t *best = rank->disk_free_ns;
    for (int i = 1; best != NULL && i < depth; i++)
        if (rank->disk_free_ns[i] < *best)
            best = &rank->disk_free_ns[i];
    return best;
}

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* When a call that begins now ends; 0: the disk takes no time. */
static uint64_t end_of(fy_sim_rank *rank, uint64_t now_ns, uint64_t size_bytes)
{
    const fy_sim_disk *disk = &rank->world->disk;
    uint64_t slow = fy_faults_next(&rank->world->faults, FY_FAULT_DISK_SLOW);
    uint64_t *place = disk->depth == 0 ? NULL : first_free(rank, disk->depth);
    if (place == NULL)
        return 0;
    uint64_t bytes_ns =
        disk->bytes_per_s > 0 ? (uint64_t)((double)size_bytes * 1e9 / disk->bytes_per_s) : 0;
    uint64_t begin_ns = later(now_ns, *place);
    rank->disk_bytes_ns = later(begin_ns, rank->disk_bytes_ns) + bytes_ns;
    *place = rank->disk_bytes_ns + disk->latency_ns;
    if (slow > 1)
        *place += (disk->latency_ns + bytes_ns) * (slow - 1);
    return *place;
}

void fy_sim_disk_call(fy_sim_rank *rank, uint64_t now_ns, bool writes, uint64_t size_bytes,
                      fy_disk_outcome *out)
{
    fy_faults *faults = &rank->world->faults;
    *out = (fy_disk_outcome){.end_ns = end_of(rank, now_ns, size_bytes)};
    if (writes)
        out->error = fy_faults_next(faults, FY_FAULT_DISK_FULL) != 0 ? ENOSPC : 0;
    else if (fy_faults_next(faults, FY_FAULT_DISK_ERROR) != 0)
        out->error = EIO;
    else
        out->damage = fy_faults_next(faults, FY_FAULT_DISK_DAMAGE);
}
