/* The plug-in: the tables of one MPI library. Compiled once per library; NAME is its name. */
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "port/nodes/mpi/library.h"
#include "port/port.h"

#ifndef FY_MPI_NAME
#error "FY_MPI_NAME names the library"
#endif

struct fy_nodes_net {
    MPI_Comm comm;
    int key; /* of the attribute that MPI_Finalize deletes; MPI_KEYVAL_INVALID: none */
    bool closes;
};

_Static_assert(sizeof(MPI_Request) <= sizeof(fy_nodes_request), "a request fits into a word");

/* More than a count can say goes as one element of a type made for it. */
#define CHUNK_BYTES (1 << 30)

static void library(char *out, size_t size)
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    MPI_Get_library_version(text, &length);
    text[strcspn(text, "\n,")] = '\0';
    for (char *tab = strchr(text, '\t'); tab != NULL; tab = strchr(tab, '\t'))
        *tab = ' ';
    strncpy(out, text, size - 1);
    out[size - 1] = '\0';
}

static void state(bool *initialized, bool *finalized)
{
    int is = 0, was = 0;
    MPI_Initialized(&is);
    MPI_Finalized(&was);
    *initialized = is != 0;
    *finalized = was != 0;
}

static const int levels[] = {MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED,
                             MPI_THREAD_MULTIPLE};

static int mpi_start(fy_mpi_level *level, bool *started)
{
    int is = 0, provided = MPI_THREAD_SINGLE, error;
    *started = false;
    MPI_Initialized(&is);
    if (is)
        error = MPI_Query_thread(&provided);
    else
        error = MPI_Init_thread(NULL, NULL, levels[*level], &provided);
    if (error != MPI_SUCCESS)
        return error;
    *started = !is;
    *level = FY_MPI_SINGLE;
    for (fy_mpi_level at = FY_MPI_SINGLE; at <= FY_MPI_MULTIPLE; at++)
        if (levels[at] <= provided)
            *level = at;
    return 0;
}

static void mpi_finish(void)
{
    MPI_Finalize();
}

static void mpi_describe(int error, char *out, size_t size)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(error, text, &length);
    text[strcspn(text, "\n")] = '\0';
    strncpy(out, text, size - 1);
    out[size - 1] = '\0';
}

/* Takes `comm`, also when there is no memory. */
static int wrap(MPI_Comm comm, fy_nodes_net **out)
{
    fy_nodes_net *c = malloc(sizeof(*c));
    if (c == NULL) {
        MPI_Comm_free(&comm);
        return MPI_ERR_NO_MEM;
    }
    *c = (fy_nodes_net){.comm = comm, .key = MPI_KEYVAL_INVALID};
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    *out = c;
    return 0;
}

/* MPI_Finalize deletes the attributes of MPI_COMM_SELF first. Between nodes a later call of MPI may
 * crash, so this is the last chance to say why. */
static int on_delete(MPI_Comm self, int key, void *value, void *extra)
{
    const fy_nodes_net *c = value;
    (void)self;
    (void)key;
    (void)extra;
    if (!c->closes)
        fprintf(stderr, "ferry: MPI_Finalize was called before ferry_close; expected ferry_close "
                        "first, since a rank may still need MPI\n");
    return MPI_SUCCESS;
}

static void watch_finalize(fy_nodes_net *c)
{
    if (MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_delete, &c->key, NULL) == MPI_SUCCESS)
        MPI_Comm_set_attr(MPI_COMM_SELF, c->key, c);
}

static int comm_open(const void *communicator, fy_nodes_net **out)
{
    MPI_Comm from = MPI_COMM_WORLD, comm;
    int inter = 0;
    if (communicator != NULL)
        memcpy(&from, communicator, sizeof(from));
    if (from == MPI_COMM_NULL)
        return FY_MPI_NO_COMMUNICATOR;
    MPI_Comm_test_inter(from, &inter);
    if (inter)
        return FY_MPI_BETWEEN_GROUPS;
    int error = MPI_Comm_dup(from, &comm);
    if (error == MPI_SUCCESS)
        error = wrap(comm, out);
    if (error == MPI_SUCCESS)
        watch_finalize(*out);
    return error;
}

static int node(fy_nodes_net *c, fy_nodes_net **out)
{
    MPI_Comm near;
    int error = MPI_Comm_split_type(c->comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &near);
    return error != MPI_SUCCESS ? error : wrap(near, out);
}

/* The program may have called MPI_Finalize before ferry_close. */
static void close_net(fy_nodes_net *c)
{
    int was;
    MPI_Finalized(&was);
    c->closes = true;
    if (!was && c->key != MPI_KEYVAL_INVALID) {
        MPI_Comm_delete_attr(MPI_COMM_SELF, c->key);
        MPI_Comm_free_keyval(&c->key);
    }
    if (!was)
        MPI_Comm_free(&c->comm);
    free(c);
}

static void mpi_place(const fy_nodes_net *c, int *rank, int *ranks)
{
    MPI_Comm_rank(c->comm, rank);
    MPI_Comm_size(c->comm, ranks);
}

static void mpi_leave(fy_nodes_net *c)
{
    close_net(c);
    MPI_Finalize();
}

static int allgather(fy_nodes_net *c, const void *mine, size_t size_bytes, void *all)
{
    return MPI_Allgather(mine, (int)size_bytes, MPI_BYTE, all, (int)size_bytes, MPI_BYTE, c->comm);
}

static __attribute__((noinline)) int make_type(size_t size_bytes, MPI_Datatype *type)
{
    MPI_Datatype chunk;
    int error = MPI_Type_contiguous(CHUNK_BYTES, MPI_BYTE, &chunk);
    if (error != MPI_SUCCESS)
        return error;
    int chunks = (int)(size_bytes / CHUNK_BYTES);
    int lengths[2] = {chunks, (int)(size_bytes % CHUNK_BYTES)};
    MPI_Aint places[2] = {0, (MPI_Aint)chunks * CHUNK_BYTES};
    MPI_Datatype types[2] = {chunk, MPI_BYTE};
    error = MPI_Type_create_struct(2, lengths, places, types, type);
    MPI_Type_free(&chunk);
    return error != MPI_SUCCESS ? error : MPI_Type_commit(type);
}

/* The type and count for `size_bytes`. A type that was made is the caller's to free. */
static inline int choose_type(size_t size_bytes, MPI_Datatype *type, int *count)
{
    bool small = size_bytes <= CHUNK_BYTES;
    *type = MPI_BYTE;
    *count = small ? (int)size_bytes : 1;
    return small ? MPI_SUCCESS : make_type(size_bytes, type);
}

static MPI_Request mpi_load(const fy_nodes_request *request)
{
    MPI_Request r;
    memcpy(&r, request, sizeof(r));
    return r;
}

static void store(fy_nodes_request *request, MPI_Request r)
{
    *request = (fy_nodes_request){0};
    if (r != MPI_REQUEST_NULL)
        memcpy(request, &r, sizeof(r));
}

static int begin_send(fy_nodes_net *c, const void *data, size_t size_bytes, int rank, int tag,
                      fy_nodes_request *request)
{
    MPI_Datatype type;
    MPI_Request r = MPI_REQUEST_NULL;
    int count, done = 0;
    int error = choose_type(size_bytes, &type, &count);
    if (error != MPI_SUCCESS)
        return error;
    error = MPI_Isend(data, count, type, rank, tag, c->comm, &r);
    if (type != MPI_BYTE)
        MPI_Type_free(&type);
    if (error == MPI_SUCCESS)
        error = MPI_Test(&r, &done, MPI_STATUS_IGNORE);
    store(request, r);
    return error;
}

static int begin_receive(fy_nodes_net *c, void *data, size_t size_bytes, int rank, int tag,
                         fy_nodes_request *request)
{
    MPI_Datatype type;
    MPI_Request r = MPI_REQUEST_NULL;
    int count;
    int error = choose_type(size_bytes, &type, &count);
    if (error != MPI_SUCCESS)
        return error;
    int source = rank == FY_NODES_ANY ? MPI_ANY_SOURCE : rank;
    error = MPI_Irecv(data, count, type, source, tag, c->comm, &r);
    if (type != MPI_BYTE)
        MPI_Type_free(&type);
    store(request, r);
    return error;
}

static void take_status(const MPI_Status *status, int *source, size_t *size_bytes)
{
    if (source != NULL)
        *source = status->MPI_SOURCE;
    if (size_bytes == NULL)
        return;
    int count = 0;
    MPI_Get_count(status, MPI_BYTE, &count);
    MPI_Count long_count = count;
    if (count < 0) /* more than an int says */
        MPI_Get_elements_x(status, MPI_BYTE, &long_count);
    *size_bytes = long_count < 0 ? 0 : (size_t)long_count;
}

static int test(fy_nodes_request *request, bool *done, int *source, size_t *size_bytes)
{
    MPI_Request r = mpi_load(request);
    MPI_Status status;
    int flag = 0;
    int error = MPI_Test(&r, &flag, &status);
    *done = flag != 0;
    if (!flag)
        return error;
    store(request, r);
    take_status(&status, source, size_bytes);
    return error;
}

static int mpi_test_any(fy_nodes_request *const requests[], int count, int *which, int *source,
                        size_t *size_bytes)
{
    MPI_Request all[FY_NODES_TESTED_MAX];
    MPI_Status status;
    int flag = 0, at = MPI_UNDEFINED;
    for (int i = 0; i < count; i++)
        all[i] = mpi_load(requests[i]);
    int error = MPI_Testany(count, all, &at, &flag, &status);
    *which = flag && at != MPI_UNDEFINED ? at : -1;
    if (*which < 0)
        return error;
    store(requests[at], all[at]);
    take_status(&status, source, size_bytes);
    return error;
}

static void cancel(fy_nodes_request *request)
{
    MPI_Request r = mpi_load(request);
    MPI_Cancel(&r);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    *request = (fy_nodes_request){0};
}

/* MPI_Abort while others are in MPI_Finalize makes mpirun of Open MPI before 5 wait forever in
 * PMIx_server_finalize. It ends the others just so when a process ends without MPI_Finalize. */
static void abort_closing(int status)
{
#if defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION < 5
    if (getenv("OMPI_MCA_orte_hnp_uri") != NULL) { /* mpirun started this process */
        fflush(NULL);
        _exit(status);
    }
#endif
    MPI_Abort(MPI_COMM_WORLD, status);
}

static void abort_job(int status)
{
    MPI_Abort(MPI_COMM_WORLD, status);
}

__attribute__((visibility("default"))) extern const fy_mpi_library ferry_mpi_library;

const fy_mpi_library ferry_mpi_library = {
    .version = FY_PORT_VERSION,
    .name = FY_MPI_NAME,
    .library = library,
    .state = state,
    .start = mpi_start,
    .finish = mpi_finish,
    .comm_open = comm_open,
    .binding =
        {
            .port = "mpi",
            .describe = mpi_describe,
            .place = mpi_place,
            .node = node,
            .close = close_net,
            .leave = mpi_leave,
            .allgather = allgather,
            .send = begin_send,
            .receive = begin_receive,
            .test = test,
            .test_any = mpi_test_any,
            .cancel = cancel,
            .abort = abort_job,
            .abort_closing = abort_closing,
        },
};
