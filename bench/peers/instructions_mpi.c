/* An MPI library's side of the instructions benchmark, built once with each library: two processes,
 * each under callgrind. The process that a case is about counts itself. It is told in memory that
 * both see that a message is there, so that no call of MPI takes the message before:
 *
 *   nothing            counting begins and ends
 *   poll-2             MPI_Iprobe that finds nothing
 *   request-8B-sent    MPI_Send
 *   request-8B-taken   MPI_Recv from any rank of a message that is there; -batch: of many
 *   reduce-value       MPI_Reduce_local, for each number of type double
 *
 * Calls that wait for the other process are left out, since how often they look is no measure. With
 * Open MPI a send of 1 KiB waits, with MPICH the flush of a put or a get. */
#include <mpi.h>

#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <valgrind/callgrind.h>

enum { ROUNDS = 16, BATCH = 32, OPERATIONS = ROUNDS * BATCH };
enum { WAIT_US = 20, SECONDS_MAX = 120 };

typedef struct shared {
    _Atomic uint64_t sent, taken; /* batches */
} shared;

typedef struct side {
    int rank;
    shared *both;
    uint64_t begun;
} side;

static void begin(side *s)
{
    s->begun++;
    CALLGRIND_TOGGLE_COLLECT;
}

static void end(void)
{
    CALLGRIND_TOGGLE_COLLECT;
}

/* Acquire: pairs with announce. */
static void await(const _Atomic uint64_t *word, uint64_t value)
{
    while (atomic_load_explicit(word, memory_order_acquire) < value)
        usleep(WAIT_US);
}

/* Release: what was sent before is there. */
static void announce(_Atomic uint64_t *word, uint64_t value)
{
    atomic_store_explicit(word, value, memory_order_release);
}

static void nothing(side *s)
{
    for (int i = 0; i < OPERATIONS; i++) {
        begin(s);
        end();
    }
}

static void poll(side *s)
{
    int here;
    if (s->rank != 0)
        return;
    begin(s);
    for (int i = 0; i < OPERATIONS; i++)
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &here, MPI_STATUS_IGNORE);
    end();
}

/* Requests of rank 0 to rank 1, `batch` at a time, of which rank `counts` counts its part. */
static void requests(side *s, int batch, int counts)
{
    uint64_t word = 0;
    uint64_t sent = 0, taken = 0;
    for (int i = 0; i < OPERATIONS; i += batch) {
        if (s->rank == 1 && counts == 1)
            await(&s->both->sent, ++sent);
        if (s->rank == counts)
            begin(s);
        for (int k = 0; k < batch; k++)
            if (s->rank == 0)
                MPI_Send(&word, sizeof word, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
            else
                MPI_Recv(&word, sizeof word, MPI_BYTE, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
        if (s->rank == counts)
            end();
        if (s->rank == 0) {
            announce(&s->both->sent, ++sent);
            await(&s->both->taken, ++taken);
        } else {
            announce(&s->both->taken, ++taken);
        }
    }
}

static void request_sent(side *s)
{
    requests(s, BATCH, 0);
}

static void request_taken(side *s)
{
    requests(s, 1, 1);
}

static void request_batch(side *s)
{
    requests(s, BATCH, 1);
}

static void reduce(side *s)
{
    double low[OPERATIONS] = {0}, high[OPERATIONS] = {0};
    if (s->rank != 0)
        return;
    begin(s);
    MPI_Reduce_local(high, low, OPERATIONS, MPI_DOUBLE, MPI_SUM);
    end();
}

static const struct {
    const char *name;
    int counts; /* the rank that does */
    void (*run)(side *s);
} cases[] = {
    {"nothing", 2, nothing}, /* both */
    {"poll-2", 0, poll},
    {"request-8B-sent", 0, request_sent},
    {"request-8B-taken", 1, request_taken},
    {"request-8B-batch", 1, request_batch},
    {"reduce-value", 0, reduce},
};

static void measure(side *s, int index)
{
    char label[96];
    /* The first time is for what is set up when first needed. */
    for (int pass = 0; pass < 2; pass++) {
        s->begun = 0;
        if (s->rank == 0)
            memset(s->both, 0, sizeof *s->both);
        MPI_Barrier(MPI_COMM_WORLD);
        CALLGRIND_ZERO_STATS;
        cases[index].run(s);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    if (cases[index].counts != 2 && cases[index].counts != s->rank)
        return;
    snprintf(label, sizeof label, "%s %d %llu", cases[index].name, OPERATIONS,
             (unsigned long long)s->begun);
    CALLGRIND_DUMP_STATS_AT(label);
}

int main(int argc, char **argv)
{
    side s = {0};
    MPI_Win common;
    MPI_Aint bytes;
    int unit;
    void *base;
    alarm(SECONDS_MAX); /* a job that hangs ends */
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &s.rank);
    MPI_Win_allocate_shared(s.rank == 0 ? sizeof(shared) : 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD,
                            &base, &common);
    MPI_Win_shared_query(common, 0, &bytes, &unit, &s.both);
    CALLGRIND_START_INSTRUMENTATION;
    for (int i = 1; i < argc; i++)
        for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
            if (strcmp(argv[i], cases[k].name) == 0)
                measure(&s, (int)k);
    MPI_Win_free(&common);
    MPI_Finalize();
    return 0;
}
