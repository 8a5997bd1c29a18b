#include "core/place.h"

#include <inttypes.h>
#include <stdint.h>
#include <string.h>

#include "base/env.h"
#include "base/error.h"
#include "base/sized.h"
#include "launch/join.h"
#include "launch/launch.h"

#define DEFAULT_SCHEDULER "ferry"

/* Zero stays zero: the port has the defaults, and checks what is asked of it. */
static int read_numbers(ferry_options *o)
{
    uint64_t heap = o->heap_bytes, slots = o->ring_slots, bytes = o->ring_bytes;
    uint64_t backlog = o->backlog_bytes;
    int error = fy_env_check();
    if (error == 0)
        error = fy_env_number("FERRY_HEAP_BYTES", &heap);
    if (error == 0)
        error = fy_env_number("FERRY_RING_SLOTS", &slots);
    if (error == 0)
        error = fy_env_number("FERRY_RING_BYTES", &bytes);
    if (error == 0)
        error = fy_env_number("FERRY_BACKLOG_BYTES", &backlog);
    uint64_t waiting = o->waiting_bytes;
    if (error == 0)
        error = fy_env_number("FERRY_WAITING_BYTES", &waiting);
    uint64_t stall_s = 0;
    if (error == 0)
        error = fy_env_number("FERRY_STALL_S", &stall_s);
    if (error != 0)
        return error;
    if (stall_s != 0)
        o->stall_ns = stall_s * 1000000000u;
    o->backlog_bytes = (size_t)backlog;
    o->waiting_bytes = (size_t)waiting;
    o->heap_bytes = (size_t)heap;
    o->ring_slots = (uint32_t)slots;
    o->ring_bytes = (uint32_t)bytes;
    return 0;
}

int fy_options_read(const ferry_options *given, ferry_options *out)
{
    *out = (ferry_options)FERRY_OPTIONS_DEFAULTS;
    if (given != NULL) {
        int error = fy_sized_read("open: ferry_options", given, out, sizeof *out);
        if (error != 0)
            return error;
    }
    const char *scheduler = fy_env_get("FERRY_SCHEDULER");
    if (scheduler != NULL)
        out->scheduler = scheduler;
    if (out->scheduler == NULL)
        out->scheduler = DEFAULT_SCHEDULER;
    return read_numbers(out);
}

static bool is_port(const char *name)
{
    const char *port = fy_env_get("FERRY_PORT");
    return port != NULL && strcmp(port, name) == 0;
}

const char *fy_place_port(void)
{
    return is_port("shm") || is_port("mpi") ? NULL : fy_env_get("FERRY_PORT");
}

fy_compute fy_compute_read(void)
{
    const char *text = fy_env_get("FERRY_COMPUTE");
    if (text == NULL || strcmp(text, "none") == 0)
        return FY_COMPUTE_NONE;
    return strcmp(text, "sleep") == 0 ? FY_COMPUTE_SLEEP : FY_COMPUTE_SPIN;
}

static int read_place(fy_place *out)
{
    uint64_t fd = 0, rank = 0, ranks = 1, threads = 0, ranks_max = 0, socket = 0;
    int error = fy_env_number_within(FY_ENV_RANKS, 1, FY_RANKS_MAX, &ranks);
    if (error == 0)
        error = fy_env_number(FY_ENV_THREADS, &threads);
    if (error == 0)
        error = fy_env_number(FY_ENV_JOB_FD, &fd);
    if (error == 0)
        error = fy_env_number_within(FY_ENV_RANK, 0, ranks - 1, &rank);
    if (error == 0)
        error = fy_env_number(FY_ENV_JOB_SOCKET, &socket);
    if (error == 0)
        error = fy_env_number_within(FY_ENV_RANKS_MAX, 1, FY_RANKS_MAX, &ranks_max);
    if (error != 0)
        return error;
    bool launched = fy_env_get(FY_ENV_JOB_FD) != NULL;
    *out = (fy_place){.launched = launched,
                      .threads = !launched && threads == 1,
                      .ranks = (int)ranks,
                      .ranks_max = (int)ranks_max,
                      .join = launched ? NULL : fy_env_get(FY_ENV_JOIN),
                      .join_socket = fy_env_get(FY_ENV_RANKS_JOIN),
                      .socket = fy_env_get(FY_ENV_JOB_SOCKET) != NULL ? (int)socket : -1,
                      .rank = (int)rank,
                      .fd = (int)fd};
    return 0;
}

int fy_place_find(fy_place *out)
{
    *out = (fy_place){.ranks = 1};
    int error = read_place(out);
    if (error != 0 || out->launched)
        return error;
    if (out->join != NULL && (out->threads || out->ranks > 1 || is_port("mpi")))
        return fy_error_set(FERRY_ELAUNCH,
                            "%s is set: one process joins a job of port shm; it makes no ranks",
                            FY_ENV_JOIN);
    if (out->join != NULL)
        return 0;
    out->announced = fy_env_foreign_ranks(&out->variable);
    out->mpi = out->announced > 1 || is_port("mpi");
    if (out->join_socket != NULL && (out->threads || out->mpi))
        return fy_error_set(FERRY_ELAUNCH,
                            "%s is set: only ranks can be joined that are processes of port shm",
                            FY_ENV_RANKS_JOIN);
    if (out->announced > 1 && is_port("shm"))
        return fy_error_set(FERRY_ELAUNCH,
                            "the environment (%s) says that this is one of %" PRIu64
                            " ranks, but FERRY_PORT=shm cannot reach the others; start it with "
                            "\"ferry run -n %" PRIu64 "\" instead",
                            out->variable, out->announced, out->announced);
    return 0;
}
