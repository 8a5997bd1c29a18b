/* A table of an MPI library's calls, one of which fails. It stands in front of the real plug-in, in
 * a folder that comes first in FERRY_PLUGIN_PATH. FAILING_BINDING is the real plug-in's file.
 * FAILING_PLAN is WHAT:COUNT:RANK: at this rank the COUNTth call of that kind fails, once:
 *
 *      send     a message is not sent
 *      receive  a receive of a payload is not posted
 *      come     a message of any source is lost
 *      payload  a payload is lost
 *      short    a payload is shorter than said
 *      reap     MPI fails to end a send
 *
 * With FAILING_DEAR each look takes as long as over TCP, so that payloads go in pieces. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "port/nodes/mpi/library.h"

enum { FAILURE = 1, LOOK_NS = 1000 };

static const fy_mpi_library *real;
static char what[16];
static int left, at_rank = -1, own_rank = -1;
static bool dear;

__attribute__((visibility("default"))) extern fy_mpi_library ferry_mpi_library;
fy_mpi_library ferry_mpi_library;

/* Whether this call, of the sort `sort`, is the one that fails. */
static bool fails(const char *sort)
{
    if (own_rank != at_rank || strcmp(sort, what) != 0 || left == 0 || --left > 0)
        return false;
    fprintf(stderr, "failing: %s at rank %d\n", sort, own_rank);
    return true;
}

static int fail_send(fy_nodes_net *comm, const void *data, size_t size_bytes, int rank, int tag,
                     fy_nodes_request *request)
{
    return fails("send") ? FAILURE : real->binding.send(comm, data, size_bytes, rank, tag, request);
}

static int fail_receive(fy_nodes_net *comm, void *data, size_t size_bytes, int rank, int tag,
                        fy_nodes_request *request)
{
    if (rank != FY_NODES_ANY && fails("receive"))
        return FAILURE;
    return real->binding.receive(comm, data, size_bytes, rank, tag, request);
}

static int64_t now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int fail_test(fy_nodes_request *request, bool *done, int *source, size_t *size_bytes)
{
    for (int64_t begin_ns = now_ns(); dear && now_ns() < begin_ns + LOOK_NS;)
        continue;
    int error = real->binding.test(request, done, source, size_bytes);
    if (error != 0 || !*done)
        return error;
    if (source == NULL && size_bytes != NULL && fails("short"))
        *size_bytes -= 1;
    return fails(source != NULL ? "come" : size_bytes != NULL ? "payload" : "reap") ? FAILURE : 0;
}

static int fail_test_any(fy_nodes_request *const requests[], int count, int *which, int *source,
                         size_t *size_bytes)
{
    int error = 0;
    *which = -1;
    for (int i = 0; i < count && *which < 0 && error == 0; i++) {
        bool done = false;
        error = fail_test(requests[i], &done, source, size_bytes);
        *which = done ? i : -1;
    }
    return error;
}

static void place(const fy_nodes_net *comm, int *rank, int *ranks)
{
    real->binding.place(comm, rank, ranks);
    own_rank = own_rank < 0 ? *rank : own_rank;
}

__attribute__((constructor)) static void load(void)
{
    const char *file = getenv("FAILING_BINDING"), *plan = getenv("FAILING_PLAN");
    void *handle = file == NULL ? NULL : dlopen(file, RTLD_NOW | RTLD_GLOBAL);
    real = handle == NULL ? NULL : dlsym(handle, FY_MPI_LIBRARY_SYMBOL);
    if (real == NULL || plan == NULL ||
        sscanf(plan, "%15[a-z]:%d:%d", what, &left, &at_rank) != 3) {
        fprintf(stderr, "failing: FAILING_BINDING or FAILING_PLAN is wrong\n");
        abort();
    }
    dear = getenv("FAILING_DEAR") != NULL;
    ferry_mpi_library = *real;
    ferry_mpi_library.binding.send = fail_send;
    ferry_mpi_library.binding.receive = fail_receive;
    ferry_mpi_library.binding.test = fail_test;
    ferry_mpi_library.binding.test_any = dear ? fail_test_any : NULL;
    ferry_mpi_library.binding.place = place;
}
