/* Ferry's windows, and with BENCH_REFERENCE in the environment what each operation is compared
 * with:
 *
 *   window put      rank 0 puts `size`, and flushes once at the end      a copy to shared memory
 *   window fetch    both ranks add to one number                         a bare atomic on one line
 *   window fence    of all ranks                                         one hand-off of a line
 *   window swap     both ranks put `size` to each other, and a fence     -
 *
 * With BENCH_ORDERED the window is not direct: puts wait for the end of their epoch. */
#include <ferry/ferry.h>

#include "common/team.h"
#include "peers/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DATA_BYTES = 1 << 20, QUEUE_MAX = 1024 };

typedef struct lines {
    bench_line call, reply, sum;
    _Alignas(64) unsigned char bytes[DATA_BYTES];
} lines;

typedef struct state {
    ferry *f;
    int rank;
    ferry_window *window;
    lines *shared;
    unsigned char *own;
    uint64_t flag;
} state;

static double put(void *context, const bench_job *job)
{
    state *s = context;
    const uint64_t warm = bench_warmup(job);
    const ferry_window_value value = {s->own, job->size_bytes};
    uint64_t start = 0, end = 0;
    check(s->f, ferry_window_lock(s->window, FERRY_WINDOW_SHARED, 1));
    for (uint64_t i = 0; i < warm + job->count && s->rank == 0; i++) {
        if (i == warm)
            start = bench_now();
        check(s->f, ferry_window_put(s->window, 1, 0, &value, NULL));
        if (i % QUEUE_MAX == 0) /* an ordered window keeps them until then */
            check(s->f, ferry_window_flush(s->window, 1));
    }
    check(s->f, ferry_window_flush(s->window, 1));
    end = bench_now();
    check(s->f, ferry_window_unlock(s->window, 1));
    check(s->f, ferry_barrier(s->f));
    return (double)(end - start);
}

static double fetch(void *context, const bench_job *job)
{
    state *s = context;
    const uint64_t warm = bench_warmup(job);
    const int64_t one = 1;
    const ferry_window_change change = {FERRY_INT64, FERRY_SUM, &one, 1};
    uint64_t start = 0;
    int64_t old;
    check(s->f, ferry_window_lock(s->window, FERRY_WINDOW_SHARED, 1));
    check(s->f, ferry_barrier(s->f));
    for (uint64_t i = 0; i < warm + job->count; i++) {
        if (i == warm)
            start = bench_now();
        check(s->f, ferry_window_fetch(s->window, 1, 1, &change, &old, NULL));
    }
    uint64_t end = bench_now();
    check(s->f, ferry_window_unlock(s->window, 1));
    check(s->f, ferry_barrier(s->f));
    return (double)(end - start);
}

static double fences(state *s, const bench_job *job, bool puts)
{
    const uint64_t warm = bench_warmup(job);
    const ferry_window_value value = {s->own, job->size_bytes};
    uint64_t start = 0;
    check(s->f, ferry_window_fence(s->window)); /* opens the first epoch */
    for (uint64_t i = 0; i < warm + job->count; i++) {
        if (i == warm)
            start = bench_now();
        if (puts)
            check(s->f, ferry_window_put(s->window, 1 - s->rank, 2, &value, NULL));
        check(s->f, ferry_window_fence(s->window));
    }
    return (double)(bench_now() - start);
}

static double fence(void *context, const bench_job *job)
{
    return fences(context, job, false);
}

static double swap(void *context, const bench_job *job)
{
    return fences(context, job, true);
}

static double copy(void *context, const bench_job *job)
{
    state *s = context;
    const uint64_t warm = bench_warmup(job);
    uint64_t start = 0;
    for (uint64_t i = 0; i < warm + job->count && s->rank == 0; i++) {
        if (i == warm)
            start = bench_now();
        memcpy(s->shared->bytes, s->own, job->size_bytes);
        __asm__ volatile("" : : "r"(s->shared->bytes) : "memory");
    }
    return (double)(bench_now() - start);
}

static double add(void *context, const bench_job *job)
{
    state *s = context;
    const uint64_t warm = bench_warmup(job);
    uint64_t start = 0;
    check(s->f, ferry_barrier(s->f));
    for (uint64_t i = 0; i < warm + job->count; i++) {
        if (i == warm)
            start = bench_now();
        (void)atomic_fetch_add_explicit(&s->shared->sum.word, 1, memory_order_acq_rel);
    }
    uint64_t end = bench_now();
    check(s->f, ferry_barrier(s->f));
    return (double)(end - start);
}

/* Half a round trip of a cache line. */
static double hand_off(void *context, const bench_job *job)
{
    state *s = context;
    bench_line *first = &s->shared->call, *second = &s->shared->reply;
    const uint64_t warm = bench_warmup(job);
    uint64_t start = 0;
    for (uint64_t i = 0; i < warm + job->count; i++) {
        if (i == warm)
            start = bench_now();
        s->flag++;
        if (s->rank == 0)
            atomic_store_explicit(&first->word, s->flag, memory_order_release);
        while (atomic_load_explicit(s->rank == 0 ? &second->word : &first->word,
                                    memory_order_acquire) < s->flag)
            ;
        if (s->rank == 1)
            atomic_store_explicit(&second->word, s->flag, memory_order_release);
    }
    return (double)(bench_now() - start) / 2;
}

static void open_shared(state *s)
{
    void *address = NULL;
    if (s->rank == 0) {
        check(s->f, ferry_alloc(s->f, sizeof(lines), &address));
        memset(address, 0, sizeof(lines));
    }
    check(s->f, ferry_broadcast(s->f, 0, &address, sizeof address));
    s->shared = address;
}

/* Elements 0 and 2 are put to, element 1 is added to; they are there before. */
static void open_window(state *s)
{
    const int64_t number = 0;
    const ferry_window_value values[] = {{&number, 8}, {&number, 8}, {NULL, 0}};
    ferry_window_options options = FERRY_WINDOW_OPTIONS_DEFAULTS;
    options.values = values;
    options.count = sizeof(values) / sizeof(*values);
    options.direct = getenv("BENCH_ORDERED") == NULL;
    check(s->f, ferry_window_create(s->f, &options, &s->window));
}

static int rank_main(ferry *f, int argc, char **argv)
{
    state s = {.f = f, .rank = ferry_rank(f)};
    bench_board *board = bench_board_open();
    (void)argc;
    (void)argv;
    s.own = aligned_alloc(4096, DATA_BYTES);
    if (!board || !s.own)
        return 1;
    memset(s.own, 1, DATA_BYTES);
    bench_pin(s.rank);
    bench_team team = {.board = board, .rank = s.rank, .context = &s};
    if (getenv("BENCH_REFERENCE") != NULL) {
        open_shared(&s);
        team.kinds[BENCH_WINDOW_PUT] = copy;
        team.kinds[BENCH_WINDOW_FETCH] = add;
        team.kinds[BENCH_WINDOW_FENCE] = hand_off;
    } else {
        open_window(&s);
        team.kinds[BENCH_WINDOW_PUT] = put;
        team.kinds[BENCH_WINDOW_FETCH] = fetch;
        team.kinds[BENCH_WINDOW_FENCE] = fence;
        team.kinds[BENCH_WINDOW_SWAP] = swap;
    }
    bench_team_serve(&team);
    free(s.own);
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
