/* The events benchmark's side: tracked requests, pending timeouts, two-sided messages that wait for
 * submission or completion, and progress in the background. With BENCH_REFERENCE, what each of the
 * first and the last is made of. */
#include <ferry/ferry.h>

#include "common/team.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUFFER_BYTES = 4 << 20, TIMEOUTS = 100000, PING_TAG = 1 };
#define HOUR_NS (UINT64_C(3600) * 1000 * 1000 * 1000)

typedef struct state {
    ferry *f;
    int rank;
    bool reference;
    ferry_handler mark, ask, answer, done;
    uint64_t answers, submitted;
    _Atomic bool over; /* relaxed: says only when to stop */
    unsigned char *out, *in;
    int timeouts;
} state;

static void check(ferry *f, int error)
{
    if (error >= 0)
        return;
    fprintf(stderr, "bench: rank %d: %s\n", ferry_rank(f), ferry_error_message(f));
    exit(1);
}

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

/* Sends to the other rank, and waits until the buffer is free, or the message received. */
static void send_and_wait(state *s, size_t size_bytes, bool completion)
{
    ferry_op op;
    const ferry_track track = {.size = sizeof(track),
                               .op = completion ? &op : NULL,
                               .submitted = completion ? NULL : on_submitted,
                               .submitted_arg = &s->submitted};
    uint64_t before = s->submitted;
    check(s->f, ferry_send(s->f, 1 - s->rank, PING_TAG, s->out, size_bytes, &track));
    if (completion)
        check(s->f, ferry_op_wait(s->f, &op));
    while (!completion && s->submitted == before)
        check(s->f, ferry_poll(s->f));
}

static void post(state *s, size_t size_bytes, ferry_op *op)
{
    const ferry_track track = {.size = sizeof(track), .op = op};
    check(s->f, ferry_receive(s->f, 1 - s->rank, PING_TAG, s->in, size_bytes, &track));
}

/* There and back; or, with `both`, at once. */
static double two_sided(state *s, const bench_job *job, bool both, bool completion)
{
    uint64_t warm = bench_warmup(job), start = 0;
    for (uint64_t i = 0; i < warm + job->count; i++) {
        ferry_op op;
        if (i == warm)
            start = bench_now();
        post(s, job->size_bytes, &op);
        if (s->rank == 0 || both)
            send_and_wait(s, job->size_bytes, completion);
        check(s->f, ferry_op_wait(s->f, &op));
        if (s->rank == 1 && !both)
            send_and_wait(s, job->size_bytes, completion);
    }
    return (double)(bench_now() - start);
}

static double pong_submit(void *context, const bench_job *job)
{
    return two_sided(context, job, false, false);
}

static double pong_complete(void *context, const bench_job *job)
{
    return two_sided(context, job, false, true);
}

static double ping_submit(void *context, const bench_job *job)
{
    return two_sided(context, job, true, false);
}

static double ping_complete(void *context, const bench_job *job)
{
    return two_sided(context, job, true, true);
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
    s.out = calloc(2, BUFFER_BYTES);
    if (!board || !s.out)
        return 1;
    s.in = s.out + BUFFER_BYTES;
    memset(s.out, 1, (size_t)2 * BUFFER_BYTES);
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
        team.kinds[BENCH_PING_SUBMIT] = ping_submit;
        team.kinds[BENCH_PING_COMPLETE] = ping_complete;
    }
    bench_team_serve(&team);
    free(s.out);
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main);
}
