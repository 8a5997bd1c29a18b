/* A table of an MPI library's calls that counts the messages which this rank sends. It stands in
 * front of the real plug-in, as failing.c does. COUNTING_BINDING is the real plug-in's file. The
 * program exports the counter, `mpi_counts_sent`. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "port/nodes/mpi/library.h"

static const fy_mpi_library *real;
static unsigned *sent;

__attribute__((visibility("default"))) extern fy_mpi_library ferry_mpi_library;
fy_mpi_library ferry_mpi_library;

static int count_send(fy_nodes_net *comm, const void *data, size_t size_bytes, int rank, int tag,
                      fy_nodes_request *request)
{
    ++*sent;
    return real->binding.send(comm, data, size_bytes, rank, tag, request);
}

__attribute__((constructor)) static void load(void)
{
    const char *file = getenv("COUNTING_BINDING");
    void *handle = file == NULL ? NULL : dlopen(file, RTLD_NOW | RTLD_GLOBAL);
    real = handle == NULL ? NULL : dlsym(handle, FY_MPI_LIBRARY_SYMBOL);
    sent = dlsym(RTLD_DEFAULT, "mpi_counts_sent");
    if (real == NULL || sent == NULL) {
        fprintf(stderr, "counting: COUNTING_BINDING is wrong, or the program has no counter\n");
        abort();
    }
    ferry_mpi_library = *real;
    ferry_mpi_library.binding.send = count_send;
}
