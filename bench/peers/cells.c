/* Ferry's cells, and with BENCH_REFERENCE in the environment what each operation is compared with:
 *
 *   request  hand a parcel over and back     two cache lines, each there and back
 *   wake     of a rank that waits for a cell the same by a bare futex
 *   local    enq and deq by one rank         the four compare-exchanges of that, on own lines
 *   lookup   mod of an unshared parcel       one load
 *   rate     half of the ranks add, half take; every fourth taken parcel is read
 */
#include <ferry/ferry.h>

#include "common/team.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct line {
    _Alignas(64) _Atomic uint64_t word;
} line;

/* What both ranks of the reference see. */
typedef struct lines {
    line call, reply, own[2];
    uint64_t woken_ns;
} lines;

typedef struct state {
    ferry *f;
    int rank;
    lines *shared;
    uint64_t flag, sum;
} state;

static void check(ferry *f, int error)
{
    if (error < 0) {
        fprintf(stderr, "bench: %s: %s\n", ferry_strerror(error), ferry_error_message(f));
        exit(1);
    }
}

static double pass(void *context, const bench_job *job)
{
    state *s = context;
    const ferry_cell own = {s->rank, 0}, other = {1 - s->rank, 0};
    ferry_parcel parcel;
    uint64_t start = 0, warm = bench_warmup(job);
    if (s->rank > 1)
        return 0;
    if (s->rank == 0)
        check(s->f, ferry_parcel_create(s->f, job->size_bytes, &parcel, NULL));
    for (uint64_t i = 0; i < warm + job->count; i++) {
        if (i == warm)
            start = bench_now();
        if (s->rank == 0)
            check(s->f, ferry_cell_enq(s->f, other, parcel, FERRY_GIVE, 0));
        check(s->f, ferry_cell_deq(s->f, own, &parcel, FERRY_FOREVER));
        if (s->rank == 1)
            check(s->f, ferry_cell_enq(s->f, other, parcel, FERRY_GIVE, 0));
    }
    uint64_t end = bench_now();
    if (s->rank == 0)
        check(s->f, ferry_parcel_release(s->f, parcel));
    return (double)(end - start);
}

static void until(line *where, uint64_t value)
{
    /* acquire: pairs with the release in set */
    while (atomic_load_explicit(&where->word, memory_order_acquire) != value) {
    }
}

static void set(line *where, uint64_t value)
{
    atomic_store_explicit(&where->word, value, memory_order_release);
}

static double pass_lines(void *context, const bench_job *job)
{
    state *s = context;
    uint64_t start = 0, warm = bench_warmup(job);
    for (uint64_t i = 0; i < 2 * (warm + job->count) && s->rank < 2; i++) {
        if (i == 2 * warm)
            start = bench_now();
        s->flag++;
        if (s->rank == 0) {
            set(&s->shared->call, s->flag);
            until(&s->shared->reply, s->flag);
        } else {
            until(&s->shared->call, s->flag);
            set(&s->shared->reply, s->flag);
        }
    }
    return (double)(bench_now() - start);
}

static void pause_ns(uint64_t ns)
{
    for (uint64_t end = bench_now() + ns; bench_now() < end;) {
    }
}

/* Rank 1 says when it had the parcel. */
static double wake(void *context, const bench_job *job)
{
    state *s = context;
    uint64_t sum = 0, warm = bench_warmup(job);
    ferry_parcel parcel;
    for (uint64_t i = 0; i < warm + job->count && s->rank < 2; i++) {
        s->flag++;
        if (s->rank == 1) {
            check(s->f, ferry_cell_deq(s->f, (ferry_cell){1, 1}, &parcel, FERRY_FOREVER));
            s->shared->woken_ns = bench_now();
            check(s->f, ferry_parcel_release(s->f, parcel));
            set(&s->shared->reply, s->flag);
            continue;
        }
        check(s->f, ferry_parcel_create(s->f, 64, &parcel, NULL));
        pause_ns(200000);
        uint64_t start = bench_now();
        check(s->f, ferry_cell_enq(s->f, (ferry_cell){1, 1}, parcel, FERRY_GIVE, 0));
        until(&s->shared->reply, s->flag);
        if (i >= warm)
            sum += s->shared->woken_ns - start;
    }
    return (double)sum;
}

static double wake_futex(void *context, const bench_job *job)
{
    state *s = context;
    uint64_t sum = 0, warm = bench_warmup(job);
    _Atomic uint32_t *word = (_Atomic uint32_t *)(void *)&s->shared->call.word;
    for (uint64_t i = 0; i < warm + job->count && s->rank < 2; i++) {
        s->flag++;
        if (s->rank == 1) {
            while (atomic_load(word) != (uint32_t)s->flag)
                bench_sleep_on(word, (uint32_t)(s->flag - 1), 1000000000);
            s->shared->woken_ns = bench_now();
            set(&s->shared->reply, s->flag);
            continue;
        }
        pause_ns(200000);
        uint64_t start = bench_now();
        atomic_store(word, (uint32_t)s->flag);
        bench_wake_all(word);
        until(&s->shared->reply, s->flag);
        if (i >= warm)
            sum += s->shared->woken_ns - start;
    }
    return (double)sum;
}

static double pass_own(void *context, const bench_job *job)
{
    state *s = context;
    const ferry_cell own = {s->rank, 2};
    ferry_parcel parcel;
    uint64_t start = 0, warm = bench_warmup(job);
    check(s->f, ferry_parcel_create(s->f, 64, &parcel, NULL));
    for (uint64_t i = 0; i < warm + job->count; i++) {
        if (i == warm)
            start = bench_now();
        check(s->f, ferry_cell_enq(s->f, own, parcel, FERRY_GIVE, 0));
        check(s->f, ferry_cell_deq(s->f, own, &parcel, 0));
    }
    uint64_t end = bench_now();
    check(s->f, ferry_parcel_release(s->f, parcel));
    return (double)(end - start);
}

static double exchange_own(void *context, const bench_job *job)
{
    state *s = context;
    uint64_t start = 0, warm = bench_warmup(job);
    for (uint64_t i = 0; i < warm + job->count; i++) {
        if (i == warm)
            start = bench_now();
        for (int k = 0; k < 4; k++) {
            uint64_t free = 0;
            _Atomic uint64_t *word = &s->shared->own[k % 2].word;
            atomic_compare_exchange_strong(word, &free, 1);
            atomic_store_explicit(word, 0, memory_order_release);
        }
    }
    return (double)(bench_now() - start);
}

static double mod(void *context, const bench_job *job)
{
    state *s = context;
    ferry_parcel parcel;
    void *data;
    uint64_t start = 0, warm = bench_warmup(job);
    check(s->f, ferry_parcel_create(s->f, 64, &parcel, NULL));
    for (uint64_t i = 0; i < warm + job->count; i++) {
        if (i == warm)
            start = bench_now();
        check(s->f, ferry_parcel_mod(s->f, &parcel, &data));
    }
    uint64_t end = bench_now();
    check(s->f, ferry_parcel_release(s->f, parcel));
    return (double)(end - start);
}

static double load_own(void *context, const bench_job *job)
{
    state *s = context;
    uint64_t start = bench_now();
    for (uint64_t i = 0; i < job->count; i++)
        s->sum += atomic_load_explicit(&s->shared->own[0].word, memory_order_acquire);
    return (double)(bench_now() - start);
}

/* Every consumer takes its share: as many as each producer adds. */
static double crowd(void *context, const bench_job *job)
{
    state *s = context;
    const ferry_cell cell = {0, 3};
    uint64_t half = (uint64_t)ferry_ranks(s->f) / 2, each = (job->count + half - 1) / half;
    ferry_parcel parcel;
    check(s->f, ferry_barrier(s->f));
    uint64_t start = bench_now();
    for (uint64_t i = 0; i < each; i++) {
        if ((uint64_t)s->rank < half) {
            check(s->f, ferry_parcel_create(s->f, 64, &parcel, NULL));
            check(s->f, ferry_cell_enq(s->f, cell, parcel, FERRY_GIVE, FERRY_FOREVER));
            continue;
        }
        check(s->f, ferry_cell_deq(s->f, cell, &parcel, FERRY_FOREVER));
        const uint64_t *data = ferry_parcel_data(s->f, parcel, NULL);
        s->sum += i % 4 == 0 ? *data : 0;
        check(s->f, ferry_parcel_release(s->f, parcel));
    }
    check(s->f, ferry_barrier(s->f));
    return (double)(bench_now() - start) * (double)job->count / (double)(each * half);
}

static void share_lines(state *s)
{
    void *address = NULL;
    if (s->rank == 0) {
        check(s->f, ferry_alloc(s->f, sizeof(lines), &address));
        memset(address, 0, sizeof(lines));
    }
    check(s->f, ferry_broadcast(s->f, 0, &address, sizeof address));
    s->shared = address;
}

static int rank_main(ferry *f, int argc, char **argv)
{
    state s = {.f = f, .rank = ferry_rank(f)};
    bench_board *board = bench_board_open();
    bool reference = getenv("BENCH_REFERENCE") != NULL;
    (void)argc;
    (void)argv;
    if (!board)
        return 1;
    share_lines(&s);
    bench_pin(s.rank);
    bench_team team = {.board = board, .rank = s.rank, .context = &s};
    team.kinds[BENCH_REQUEST] = reference ? pass_lines : pass;
    team.kinds[BENCH_WAKE] = reference ? wake_futex : wake;
    team.kinds[BENCH_LOCAL] = reference ? exchange_own : pass_own;
    team.kinds[BENCH_LOOKUP] = reference ? load_own : mod;
    team.kinds[BENCH_RATE] = reference ? NULL : crowd;
    bench_team_serve(&team);
    return s.sum == 1 ? 2 : 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main);
}
