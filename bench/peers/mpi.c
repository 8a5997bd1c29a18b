/* The MPI side, built once with each MPI library that is installed. Each job is written the way
 * that library does best: receives are posted before the data comes, one-sided operations go to
 * memory that MPI allocated. The answer is the data that has come, as on Ferry's side: data that
 * nobody has written since they were last sent would be in the receiver's cache still. */
#include <mpi.h>

#include "common/team.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    BUFFER_BYTES = 8 << 20,
    LATE_NS = 1000 * 1000,
    WINDOW = 64,
    BLOCKS = 4,
    BLOCK_BYTES = 4 << 20
};

typedef struct state {
    int rank, ranks;
    unsigned char *own;
    MPI_Win window;
    unsigned char *base; /* of the window */
    bool window_made;
    uint64_t sum;
} state;

/* `reads`: the receiver reads each message whole. */
static double round_trips(state *s, const bench_job *job, bool reads)
{
    uint64_t warm = bench_warmup(job), start = 0;
    int size = (int)job->size_bytes;
    for (uint64_t i = 0; i < warm + job->count && s->rank < 2; i++) {
        if (i == warm)
            start = bench_now();
        if (s->rank == 0)
            MPI_Send(s->own, size, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
        MPI_Recv(s->own, size, MPI_BYTE, 1 - s->rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (reads)
            s->sum += bench_read(s->own, job->size_bytes);
        if (s->rank == 1)
            MPI_Send(s->own, size, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
    }
    return (double)(bench_now() - start);
}

static double strided(void *context, const bench_job *job)
{
    state *s = context;
    uint64_t warm = bench_warmup(job), start = 0;
    int size = (int)job->size_bytes;
    MPI_Datatype blocks;
    MPI_Type_vector(BENCH_BLOCKS, size, 2 * size, MPI_BYTE, &blocks);
    MPI_Type_commit(&blocks);
    for (uint64_t i = 0; i < warm + job->count && s->rank < 2; i++) {
        if (i == warm)
            start = bench_now();
        if (s->rank == 0) {
            MPI_Send(s->own, 1, blocks, 1, 1, MPI_COMM_WORLD);
            MPI_Recv(NULL, 0, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(s->own, 1, blocks, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(NULL, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
        }
    }
    MPI_Type_free(&blocks);
    return (double)(bench_now() - start);
}

static double request(void *context, const bench_job *job)
{
    return round_trips(context, job, false);
}

static double read_there(void *context, const bench_job *job)
{
    return round_trips(context, job, true);
}

static void swap(unsigned char **a, unsigned char **b)
{
    unsigned char *was = *a;
    *a = *b;
    *b = was;
}

/* As request, by a receive from any rank that is posted before and tested, and a send that does
 * not wait (BENCH_POSTED). */
static double posted_request(void *context, const bench_job *job)
{
    state *s = context;
    uint64_t warm = bench_warmup(job), start = 0;
    int size = (int)job->size_bytes, done = 0;
    unsigned char *out = s->own, *in = s->own + BUFFER_BYTES / 2;
    MPI_Request received, sent;
    MPI_Status status;
    MPI_Irecv(in, size, MPI_BYTE, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &received);
    for (uint64_t i = 0; i < 2 * (warm + job->count); i++) {
        if (i == 2 * warm)
            start = bench_now();
        if ((int)(i % 2) == s->rank) {
            MPI_Isend(out, size, MPI_BYTE, 1 - s->rank, 1, MPI_COMM_WORLD, &sent);
            for (done = 0; !done;)
                MPI_Test(&sent, &done, MPI_STATUS_IGNORE);
            continue;
        }
        for (done = 0; !done;)
            MPI_Test(&received, &done, &status);
        swap(&out, &in);
        MPI_Irecv(in, size, MPI_BYTE, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &received);
    }
    uint64_t end = bench_now();
    MPI_Cancel(&received);
    MPI_Wait(&received, MPI_STATUS_IGNORE);
    return (double)(end - start);
}

typedef int send_fn(const void *data, int count, MPI_Datatype type, int rank, int tag,
                    MPI_Comm communicator);
typedef int start_fn(const void *data, int count, MPI_Datatype type, int rank, int tag,
                     MPI_Comm communicator, MPI_Request *request);

/* As request, with receives posted before; a synchronous send is one that waits for completion. */
static double pong(state *s, const bench_job *job, send_fn *send, unsigned char *out, bool late)
{
    uint64_t warm = bench_warmup(job), start = 0;
    int size = (int)job->size_bytes, other = 1 - s->rank;
    unsigned char *in = out + BUFFER_BYTES / 2;
    for (uint64_t i = 0; i < warm + job->count; i++) {
        MPI_Request received;
        if (i == warm)
            start = bench_now();
        MPI_Irecv(in, size, MPI_BYTE, other, 1, MPI_COMM_WORLD, &received);
        if (s->rank == 0)
            send(out, size, MPI_BYTE, other, 1, MPI_COMM_WORLD);
        MPI_Wait(&received, MPI_STATUS_IGNORE);
        if (late && s->rank == 1)
            nanosleep(&(struct timespec){.tv_nsec = LATE_NS}, NULL);
        if (s->rank == 1)
            send(in, size, MPI_BYTE, other, 1, MPI_COMM_WORLD);
        swap(&out, &in);
    }
    return (double)(bench_now() - start);
}

static double ping(state *s, const bench_job *job, start_fn *start_send)
{
    uint64_t warm = bench_warmup(job), start = 0;
    int size = (int)job->size_bytes, other = 1 - s->rank;
    unsigned char *out = s->own, *in = s->own + BUFFER_BYTES / 2;
    for (uint64_t i = 0; i < warm + job->count; i++) {
        MPI_Request requests[2];
        MPI_Status statuses[2];
        if (i == warm)
            start = bench_now();
        MPI_Irecv(in, size, MPI_BYTE, other, 1, MPI_COMM_WORLD, &requests[0]);
        start_send(out, size, MPI_BYTE, other, 1, MPI_COMM_WORLD, &requests[1]);
        MPI_Waitall(2, requests, statuses);
        swap(&out, &in);
    }
    return (double)(bench_now() - start);
}

static double pong_submit(void *context, const bench_job *job)
{
    state *s = context;
    return pong(s, job, MPI_Send, s->own, false);
}

static double pong_complete(void *context, const bench_job *job)
{
    state *s = context;
    return pong(s, job, MPI_Ssend, s->own, false);
}

static double pong_late(void *context, const bench_job *job)
{
    state *s = context;
    return pong(s, job, MPI_Ssend, s->own, true);
}

static double ping_submit(void *context, const bench_job *job)
{
    return ping(context, job, MPI_Isend);
}

static double ping_complete(void *context, const bench_job *job)
{
    return ping(context, job, MPI_Issend);
}

/* Windows of WINDOW messages. */
static void rate_stream(state *s, int size, uint64_t count)
{
    MPI_Request requests[WINDOW];
    MPI_Status statuses[WINDOW];
    for (uint64_t at = 0; at < count;) {
        int n = 0;
        for (; n < WINDOW && at < count; n++, at++) {
            if (s->rank == 0)
                MPI_Isend(s->own, size, MPI_BYTE, 1, 2, MPI_COMM_WORLD, &requests[n]);
            else
                MPI_Irecv(s->own + (size_t)n * (size_t)size, size, MPI_BYTE, 0, 2, MPI_COMM_WORLD,
                          &requests[n]);
        }
        MPI_Waitall(n, requests, statuses);
    }
}

/* Each block is read while the next ones may arrive. */
static void block_stream(state *s, int size, uint64_t count)
{
    MPI_Request requests[BLOCKS];
    uint64_t posted = 0;
    for (uint64_t i = 0; i < count; i++) {
        for (; posted < count && posted < i + (s->rank == 0 ? 2 : BLOCKS / 2); posted++) {
            if (s->rank == 0)
                MPI_Isend(s->own, size, MPI_BYTE, 1, 3, MPI_COMM_WORLD, &requests[posted % BLOCKS]);
            else
                MPI_Irecv(s->own + posted % 2 * BLOCK_BYTES, size, MPI_BYTE, 0, 3, MPI_COMM_WORLD,
                          &requests[posted % BLOCKS]);
        }
        MPI_Wait(&requests[i % BLOCKS], MPI_STATUS_IGNORE);
        if (s->rank == 1)
            s->sum += bench_read(s->own + i % 2 * BLOCK_BYTES, (size_t)size);
    }
}

typedef void stream_fn(state *s, int size, uint64_t count);

static double streamed(state *s, const bench_job *job, stream_fn *stream)
{
    bench_job answer = {.count = 1, .size_bytes = 8};
    if (s->rank > 1)
        return 0;
    stream(s, (int)job->size_bytes, bench_warmup(job));
    request(s, &answer);
    uint64_t start = bench_now();
    stream(s, (int)job->size_bytes, job->count);
    if (s->rank == 0)
        MPI_Recv(s->own, 8, MPI_BYTE, 1, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else
        MPI_Send(s->own, 8, MPI_BYTE, 0, 4, MPI_COMM_WORLD);
    return (double)(bench_now() - start);
}

static double rate(void *context, const bench_job *job)
{
    return streamed(context, job, rate_stream);
}

static double buffer(void *context, const bench_job *job)
{
    return streamed(context, job, block_stream);
}

/* Made by the first job that needs it: until then the memory case counts what MPI takes by
 * itself. */
static void window_make(state *s)
{
    if (s->window_made)
        return;
    MPI_Win_allocate(BUFFER_BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &s->base, &s->window);
    memset(s->base, 1, BUFFER_BYTES);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, s->window);
    s->window_made = true;
}

typedef int flush_fn(int rank, MPI_Win window);

/* The target waits inside MPI, as some of its one-sided operations need. */
static double one_sided(state *s, const bench_job *job, bool put, flush_fn *flush)
{
    uint64_t warm = bench_warmup(job), start = 0;
    int size = (int)job->size_bytes;
    window_make(s);
    for (uint64_t i = 0; i < warm + job->count && s->rank == 0; i++) {
        if (i == warm)
            start = bench_now();
        if (put)
            MPI_Put(s->own, size, MPI_BYTE, 1, 0, size, MPI_BYTE, s->window);
        else
            MPI_Get(s->own, size, MPI_BYTE, 1, 0, size, MPI_BYTE, s->window);
        flush(1, s->window);
    }
    uint64_t end = bench_now();
    if (s->rank == 0)
        MPI_Send(s->own, 8, MPI_BYTE, 1, 6, MPI_COMM_WORLD);
    else if (s->rank == 1)
        MPI_Recv(s->own, 8, MPI_BYTE, 0, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return (double)(end - start);
}

static double put(void *context, const bench_job *job)
{
    return one_sided(context, job, true, MPI_Win_flush);
}

static double put_submit(void *context, const bench_job *job)
{
    return one_sided(context, job, true, MPI_Win_flush_local);
}

static double get(void *context, const bench_job *job)
{
    return one_sided(context, job, false, MPI_Win_flush);
}

/* From memory that MPI may share between processes. */
static double pong_shared(void *context, const bench_job *job)
{
    state *s = context;
    window_make(s);
    return pong(s, job, MPI_Ssend, s->base, false);
}

static double barrier(void *context, const bench_job *job)
{
    uint64_t warm = bench_warmup(job), start = 0;
    (void)context;
    for (uint64_t i = 0; i < warm + job->count; i++) {
        if (i == warm)
            start = bench_now();
        MPI_Barrier(MPI_COMM_WORLD);
    }
    return (double)(bench_now() - start);
}

static double allreduce(void *context, const bench_job *job)
{
    uint64_t warm = bench_warmup(job), start = 0;
    double in = 1, out = 0;
    (void)context;
    for (uint64_t i = 0; i < warm + job->count; i++) {
        if (i == warm)
            start = bench_now();
        MPI_Allreduce(&in, &out, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
    return (double)(bench_now() - start);
}

static double ring(void *context, const bench_job *job)
{
    state *s = context;
    uint64_t warm = bench_warmup(job), start = 0;
    int next = (s->rank + 1) % s->ranks, previous = (s->rank + s->ranks - 1) % s->ranks;
    int size = (int)job->size_bytes;
    for (uint64_t i = 0; i < warm + job->count; i++) {
        if (i == warm)
            start = bench_now();
        if (s->rank == 0)
            MPI_Send(s->own, size, MPI_BYTE, next, 5, MPI_COMM_WORLD);
        MPI_Recv(s->own, size, MPI_BYTE, previous, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (s->rank != 0)
            MPI_Send(s->own, size, MPI_BYTE, next, 5, MPI_COMM_WORLD);
    }
    return (double)(bench_now() - start);
}

static double idle(void *context, const bench_job *job)
{
    state *s = context;
    uint64_t warm = bench_warmup(job), start = 0;
    int found;
    if (s->rank != 0)
        MPI_Send(s->own, 8, MPI_BYTE, 0, 7, MPI_COMM_WORLD);
    for (int i = 1; i < s->ranks && s->rank == 0; i++)
        MPI_Recv(s->own, 8, MPI_BYTE, MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (uint64_t i = 0; i < warm + job->count && s->rank == 0; i++) {
        if (i == warm)
            start = bench_now();
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
    }
    return (double)(bench_now() - start);
}

static int serve(bench_board *board)
{
    state s = {0};
    MPI_Comm_rank(MPI_COMM_WORLD, &s.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &s.ranks);
    s.own = aligned_alloc(4096, BUFFER_BYTES);
    if (!s.own)
        return 1;
    bench_pin(s.rank);
    bench_team team = {.board = board, .rank = s.rank, .context = &s, .sized = true};
    team.kinds[BENCH_REQUEST] = getenv("BENCH_POSTED") ? posted_request : request;
    team.kinds[BENCH_READ] = read_there;
    team.kinds[BENCH_STRIDED] = strided;
    team.kinds[BENCH_QUIESCE] = request;
    team.kinds[BENCH_RATE] = rate;
    team.kinds[BENCH_BUFFER] = buffer;
    team.kinds[BENCH_PUT] = team.kinds[BENCH_PUT_COMPLETE] = put;
    team.kinds[BENCH_PUT_SUBMIT] = put_submit;
    team.kinds[BENCH_PONG_SUBMIT] = pong_submit;
    team.kinds[BENCH_PONG_COMPLETE] = pong_complete;
    team.kinds[BENCH_PING_SUBMIT] = ping_submit;
    team.kinds[BENCH_PING_COMPLETE] = ping_complete;
    team.kinds[BENCH_PONG_SHARED] = pong_shared;
    team.kinds[BENCH_PONG_LATE] = pong_late;
    team.kinds[BENCH_GET] = team.kinds[BENCH_GET_COMPLETE] = get;
    team.kinds[BENCH_IDLE] = idle;
    team.kinds[BENCH_BARRIER] = barrier;
    team.kinds[BENCH_ALLREDUCE] = allreduce;
    team.kinds[BENCH_RING] = team.kinds[BENCH_RING_BUSY] = ring;
    bench_team_serve(&team);
    if (s.window_made) {
        MPI_Win_unlock_all(s.window);
        MPI_Win_free(&s.window);
    }
    free(s.own);
    return s.sum == 1 ? 2 : 0;
}

/* Two threads may take turns to test a receive again and again (BENCH_POSTED). */
int main(int argc, char **argv)
{
    int level = getenv("BENCH_POSTED") ? MPI_THREAD_SERIALIZED : MPI_THREAD_SINGLE;
    MPI_Init_thread(&argc, &argv, level, &level);
    bench_board *board = bench_board_open();
    int status = board ? serve(board) : bench_team_empty(argc, argv) ? 0 : 1;
    MPI_Finalize();
    return status;
}
