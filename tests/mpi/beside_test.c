/* Goal: ferry_open beside a program's own MPI code: a communicator of the caller's, several times
 * in one process, objects balanced by helpers, and MPI of the caller's before, between and after.
 * Method: the first and the other ranks open jobs of their own; each sends requests round, and
 * talks over MPI inside and outside handlers. `mpirun -n 4 beside_test`. */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ferry/ferry.h>

static void expect(int is, const char *what)
{
    if (is)
        return;
    fprintf(stderr, "not so: %s: %s\n", what, ferry_error_message(NULL));
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static int sum_of_ranks(MPI_Comm comm)
{
    int rank, sum = 0;
    MPI_Comm_rank(comm, &rank);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
    return sum;
}

static void count(ferry *f, int source, const ferry_message *message)
{
    uint64_t *sum = ferry_user_data(f);
    int flag;
    (void)source;
    MPI_Iprobe(MPI_ANY_SOURCE, 7, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
    const unsigned char *data = message->data;
    for (size_t i = 0; i < message->size_bytes; i += 4096)
        *sum += data[i];
    *sum += message->words[0];
}

/* Each rank puts into the heap of each, and gets it back. The addresses travel by MPI. */
static void put_and_get(ferry *f, MPI_Comm comm)
{
    enum { BYTES = 300000, RANKS_MAX = 16 };
    static unsigned char out[BYTES], in[BYTES];
    int rank = ferry_rank(f), ranks = ferry_ranks(f);
    void *own, *heaps[RANKS_MAX];
    expect(ranks <= RANKS_MAX && ferry_alloc(f, (size_t)ranks * BYTES, &own) == 0, "alloc");
    MPI_Allgather(&own, sizeof own, MPI_BYTE, heaps, sizeof own, MPI_BYTE, comm);
    memset(out, 1 + rank, BYTES);
    for (int to = 0; to < ranks; to++) {
        ferry_op op;
        const ferry_track track = {.size = sizeof track, .op = &op};
        unsigned char *place = (unsigned char *)heaps[to] + (size_t)rank * BYTES;
        expect(ferry_put(f, to, place, out, BYTES, &track) == 0 && ferry_op_wait(f, &op) == 0,
               "put");
        memset(in, 0, BYTES);
        expect(ferry_get(f, to, in, place, BYTES, NULL) == 0, "get");
        expect(memcmp(in, out, BYTES) == 0, "what was put");
        expect(ferry_get(f, to, in, place + (size_t)ranks * BYTES, BYTES, NULL) == FERRY_ERANGE,
               "a get outside");
    }
    expect(ferry_barrier(f) == 0, "barrier");
    for (int from = 0; from < ranks; from++)
        expect(((unsigned char *)own)[(size_t)from * BYTES + 299999] == 1 + from, "what came");
    expect(ferry_free(f, own) == 0, "free");
}

/* One job on `comm`: each rank tells each other, in sizes that take every way. */
static void run_job(MPI_Comm comm)
{
    static const size_t sizes[] = {0, 100, 60000, 3000000};
    static unsigned char data[3000000];
    int rank, ranks;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    uint64_t sum = 0, total = 0;
    ferry_options options = FERRY_OPTIONS_DEFAULTS;
    options.communicator = &comm;
    options.user_data = &sum;
    options.heap_bytes = (size_t)1 << 28;
    ferry *f = NULL;
    expect(ferry_open(&options, &f) == 0, "open");
    expect(ferry_rank(f) == rank && ferry_ranks(f) == ranks, "the communicator's ranks");
    ferry_handler handler;
    expect(ferry_handler_register(f, "count", count, &handler) == 0, "register");
    for (int to = 0; to < ranks; to++)
        for (int i = 0; i < 4; i++) {
            const ferry_message message = {.handler = handler,
                                           .word_count = 1,
                                           .words = {1},
                                           .data = data,
                                           .size_bytes = sizes[i]};
            expect(ferry_request_send(f, to, &message, NULL) == 0, "send");
        }
    expect(sum_of_ranks(comm) == ranks * (ranks - 1) / 2, "MPI beside Ferry");
    expect(ferry_quiesce(f) == 0, "quiesce");
    expect(ferry_allreduce(f, FERRY_UINT64, FERRY_SUM, &sum, &total, 1) == 0, "allreduce");
    expect(total == 4 * (uint64_t)ranks * (uint64_t)ranks, "every request was handled");
    put_and_get(f, comm);
    expect(ferry_close(f) == 0, "close");
}

/* Communicators that make no job are refused before MPI ends the program. */
static void refuse(MPI_Comm comm, const char *text)
{
    ferry_options options = FERRY_OPTIONS_DEFAULTS;
    options.communicator = &comm;
    ferry *f = NULL;
    expect(ferry_open(&options, &f) == FERRY_EINVAL && f == NULL, "a communicator of no job");
    expect(strstr(ferry_error_message(NULL), text) != NULL, text);
}

static void refuse_communicators(MPI_Comm part, int rank)
{
    MPI_Comm between;
    refuse(MPI_COMM_NULL, "the communicator is MPI_COMM_NULL");
    /* Rank 0 is alone in its part. The last rank is the first of the other part. */
    int ranks;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Intercomm_create(part, 0, MPI_COMM_WORLD, rank == 0 ? ranks - 1 : 0, 5, &between);
    refuse(between, "the communicator is an inter-communicator");
    MPI_Comm_free(&between);
}

int main(int argc, char **argv)
{
    int rank, level;
    refuse(MPI_COMM_WORLD, "MPI_Init was not called; expected a program that has initialised MPI");
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm part;
    MPI_Comm_split(MPI_COMM_WORLD, rank == 0, -rank, &part);
    refuse_communicators(part, rank);
    for (int i = 0; i < 3; i++) {
        run_job(part);
        run_job(MPI_COMM_WORLD);
    }
    MPI_Comm_free(&part);
    int left = sum_of_ranks(MPI_COMM_WORLD);
    MPI_Finalize();
    return left < 0;
}
