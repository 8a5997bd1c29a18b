/* The events benchmark's side: tracked requests, pending timeouts, two-sided messages that wait for
 * submission or completion, and progress in the background. With BENCH_REFERENCE, what each of the
 * first and the last is made of. */
#include <ferry/ferry.h>

#include "common/team.h"
#include "peers/check.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BUFFER_BYTES = 4 << 20, LATE_NS = 1000 * 1000, TIMEOUTS = 100000, PING_TAG = 1 };
#define HOUR_NS (UINT64_C(3600) * 1000 * 1000 * 1000)

typedef struct state {
    ferry *f;
    int rank;
    bool reference;
    ferry_handler mark, ask, answer, done;
    uint64_t answers, submitted;
    _Atomic bool over;              /* relaxed: says only when to stop */
    unsigned char *out, *in;        /* one after the other */
    unsigned char *shared, *theirs; /* in this rank's heap, for two, and in rank 1's */
    int timeouts;
} state;

static void on_mark(ferry *f, int source, const ferry_message *message)
{
    (void)f;
    (void)source;
    (void)message;
}

static void on_ask(ferry *f, int source, const ferry_message *message)
{
    const state *s = ferry_user_data(f);
    const ferry_message answer = {.handler = s->answer};
    (void)message;
    check(f, ferry_request_send(f, source, &answer, NULL));
}

static void on_answer(ferry *f, int source, const ferry_message *message)
{
    state *s = ferry_user_data(f);
    (void)source;
    (void)message;
    s->answers++;
}

static void on_done(ferry *f, int source, const ferry_message *message)
{
    state *s = ferry_user_data(f);
    (void)source;
    (void)message;
    atomic_store_explicit(&s->over, true, memory_order_relaxed);
}

static bool is_over(state *s)
{
    return atomic_load_explicit(&s->over, memory_order_relaxed);
}

/* Rank 0 asks rank 1, tracked or by a request that is answered by one; rank 1 runs `serve`. */
static double asked(state *s, const bench_job *job, bool tracked, void serve(state *s))
{
    uint64_t warm = bench_warmup(job), start = 0;
    const ferry_message mark = {.handler = s->mark, .word_count = 1};
    const ferry_message ask = {.handler = s->ask, .word_count = 1};
    if (s->rank == 1) {
        serve(s);
        atomic_store_explicit(&s->over, false, memory_order_relaxed);
        return 0;
    }
    for (uint64_t i = 0; i < warm + job->count; i++) {
        if (i == warm)
            start = bench_now();
        uint64_t before = s->answers;
        check(s->f, tracked ? ferry_request_sync(s->f, 1, &mark)
                            : ferry_request_send(s->f, 1, &ask, NULL));
        while (!tracked && s->answers == before)
            check(s->f, ferry_poll(s->f));
    }
    uint64_t end = bench_now();
    const ferry_message done = {.handler = s->done};
    check(s->f, ferry_request_send(s->f, 1, &done, NULL));
    return (double)(end - start);
}

static void serve_by_polls(state *s)
{
    while (!is_over(s))
        check(s->f, ferry_poll(s->f));
}

/* The program computes; it looks at nothing of Ferry. */
static void serve_in_background(state *s)
{
    check(s->f, ferry_background_begin(s->f));
    for (volatile uint64_t work = 0; !is_over(s);)
        work = work + 1;
    check(s->f, ferry_background_end(s->f));
}

static double tracked(void *context, const bench_job *job)
{
    state *s = context;
    return asked(s, job, !s->reference, serve_by_polls);
}

static double background(void *context, const bench_job *job)
{
    state *s = context;
    return asked(s, job, true, s->reference ? serve_by_polls : serve_in_background);
}

static void ignore(ferry *f, void *arg, const ferry_receipt *receipt)
{
    (void)f;
    (void)arg;
    (void)receipt;
}

/* Polls with nothing to do, but many receives that would time out in an hour. */
static double polls(void *context, const bench_job *job)
{
    state *s = context;
    const ferry_track track = {.size = sizeof(track), .timed_out = ignore, .timeout_ns = HOUR_NS};
    for (; !s->reference && s->timeouts < TIMEOUTS; s->timeouts++)
        check(s->f, ferry_receive(s->f, s->rank, s->timeouts, s->in, 8, &track));
    uint64_t warm = bench_warmup(job), start = 0;
    for (uint64_t i = 0; i < warm + job->count; i++) {
        if (i == warm)
            start = bench_now();
        check(s->f, ferry_poll(s->f));
    }
    return (double)(bench_now() - start);
}

static void on_submitted(ferry *f, void *arg, const ferry_receipt *receipt)
{
    (void)f;
    (void)receipt;
    ++*(uint64_t *)arg;
}

/* The event of an operation that is waited for: that the buffer is free, or its end. */
static ferry_track track_of(state *s, bool completion, ferry_op *op)
{
    return (ferry_track){.size = sizeof(ferry_track),
                         .op = completion ? op : NULL,
                         .submitted = completion ? NULL : on_submitted,
                         .submitted_arg = &s->submitted};
}

static void wait_for(state *s, bool completion, uint64_t before, ferry_op *op)
{
    if (completion)
        check(s->f, ferry_op_wait(s->f, op));
    while (!completion && s->submitted == before)
        check(s->f, ferry_poll(s->f));
}

/* Sends to the other rank. */
static void send_and_wait(state *s, const unsigned char *data, size_t size_bytes, bool completion)
{
    ferry_op op;
    const ferry_track track = track_of(s, completion, &op);
    uint64_t before = s->submitted;
    check(s->f, ferry_send(s->f, 1 - s->rank, PING_TAG, data, size_bytes, &track));
    wait_for(s, completion, before, &op);
}

static void post(state *s, unsigned char *in, size_t size_bytes, ferry_op *op)
{
    const ferry_track track = {.size = sizeof(track), .op = op};
    check(s->f, ferry_receive(s->f, 1 - s->rank, PING_TAG, in, size_bytes, &track));
}

static void swap(unsigned char **a, unsigned char **b)
{
    unsigned char *was = *a;
    *a = *b;
    *b = was;
}

/* There and back. The answer is the data that has come: data that nobody has written since they
 * were last sent would be in the receiver's cache still. `out` has room for two. */
static double pong(state *s, const bench_job *job, unsigned char *out, bool completion, bool late)
{
    uint64_t warm = bench_warmup(job), start = 0;
    unsigned char *in = out + BUFFER_BYTES;
    for (uint64_t i = 0; i < warm + job->count; i++) {
        ferry_op op;
        if (i == warm)
            start = bench_now();
        post(s, in, job->size_bytes, &op);
        if (s->rank == 0)
            send_and_wait(s, out, job->size_bytes, completion);
        check(s->f, ferry_op_wait(s->f, &op));
        if (late && s->rank == 1)
            nanosleep(&(struct timespec){.tv_nsec = LATE_NS}, NULL);
        if (s->rank == 1)
            send_and_wait(s, in, job->size_bytes, completion);
        swap(&out, &in);
    }
    return (double)(bench_now() - start);
}

/* Both at once. */
static double ping(state *s, const bench_job *job, bool completion)
{
    uint64_t warm = bench_warmup(job), start = 0;
    unsigned char *out = s->out, *in = s->in;
    for (uint64_t i = 0; i < warm + job->count; i++) {
        ferry_op op;
        if (i == warm)
            start = bench_now();
        post(s, in, job->size_bytes, &op);
        send_and_wait(s, out, job->size_bytes, completion);
        check(s->f, ferry_op_wait(s->f, &op));
        swap(&out, &in);
    }
    return (double)(bench_now() - start);
}

static double pong_submit(void *context, const bench_job *job)
{
    state *s = context;
    return pong(s, job, s->out, false, false);
}

static double pong_complete(void *context, const bench_job *job)
{
    state *s = context;
    return pong(s, job, s->out, true, false);
}

static double pong_shared(void *context, const bench_job *job)
{
    state *s = context;
    return pong(s, job, s->shared, true, false);
}

static double pong_late(void *context, const bench_job *job)
{
    state *s = context;
    return pong(s, job, s->out, true, true);
}

static double ping_submit(void *context, const bench_job *job)
{
    return ping(context, job, false);
}

static double ping_complete(void *context, const bench_job *job)
{
    return ping(context, job, true);
}

/* Rank 1's program does nothing meanwhile. */
static double one_sided(state *s, const bench_job *job, bool put, bool completion)
{
    uint64_t warm = bench_warmup(job), start = 0;
    for (uint64_t i = 0; i < warm + job->count && s->rank == 0; i++) {
        ferry_op op;
        const ferry_track track = track_of(s, completion, &op);
        uint64_t before = s->submitted;
        if (i == warm)
            start = bench_now();
        check(s->f, put ? ferry_put(s->f, 1, s->theirs, s->out, job->size_bytes, &track)
                        : ferry_get(s->f, 1, s->in, s->theirs, job->size_bytes, &track));
        wait_for(s, completion, before, &op);
    }
    return (double)(bench_now() - start);
}

static double put_submit(void *context, const bench_job *job)
{
    return one_sided(context, job, true, false);
}

static double put_complete(void *context, const bench_job *job)
{
    return one_sided(context, job, true, true);
}

static double get_complete(void *context, const bench_job *job)
{
    return one_sided(context, job, false, true);
}

static void allocate(state *s)
{
    s->out = calloc(2, BUFFER_BYTES);
    if (!s->out)
        exit(1);
    s->in = s->out + BUFFER_BYTES;
    memset(s->out, 1, (size_t)2 * BUFFER_BYTES);
    check(s->f, ferry_alloc(s->f, (size_t)2 * BUFFER_BYTES, (void **)&s->shared));
    memset(s->shared, 1, (size_t)2 * BUFFER_BYTES);
    s->theirs = s->shared;
    check(s->f, ferry_broadcast(s->f, ferry_ranks(s->f) - 1, &s->theirs, sizeof s->theirs));
}

static void register_all(state *s)
{
    check(s->f, ferry_handler_register(s->f, "mark", on_mark, &s->mark));
    check(s->f, ferry_handler_register(s->f, "ask", on_ask, &s->ask));
    check(s->f, ferry_handler_register(s->f, "answer", on_answer, &s->answer));
    check(s->f, ferry_handler_register(s->f, "done", on_done, &s->done));
}

static int rank_main(ferry *f, int argc, char **argv)
{
    state s = {.f = f, .rank = ferry_rank(f), .reference = getenv("BENCH_REFERENCE") != NULL};
    bench_board *board = bench_board_open();
    (void)argc;
    (void)argv;
    if (!board)
        return 1;
    allocate(&s);
    ferry_user_data_set(f, &s);
    register_all(&s);
    bench_pin(s.rank);
    bench_team team = {.board = board, .rank = s.rank, .context = &s};
    team.kinds[BENCH_TRACKED] = tracked;
    team.kinds[BENCH_BACKGROUND] = background;
    team.kinds[BENCH_POLL] = polls;
    if (!s.reference) {
        team.kinds[BENCH_PONG_SUBMIT] = pong_submit;
        team.kinds[BENCH_PONG_COMPLETE] = pong_complete;
        team.kinds[BENCH_PONG_SHARED] = pong_shared;
        team.kinds[BENCH_PONG_LATE] = pong_late;
        team.kinds[BENCH_PING_SUBMIT] = ping_submit;
        team.kinds[BENCH_PING_COMPLETE] = ping_complete;
        team.kinds[BENCH_PUT_SUBMIT] = put_submit;
        team.kinds[BENCH_PUT_COMPLETE] = put_complete;
        team.kinds[BENCH_GET_COMPLETE] = get_complete;
    }
    bench_team_serve(&team);
    free(s.out);
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
