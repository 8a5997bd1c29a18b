/* Flags: a ring and a barrier of flags in shared memory, with one simple way to wait (BENCH_WAY):
 *
 *      spin    looks until the flag is set
 *      yield   calls sched_yield between two looks
 *      futex   sleeps if the first look finds nothing
 *      both    spins for about the time of a sleep and its end, then sleeps
 *
 * With the last two the rank that sets a flag wakes. */
#include "common/team.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { LOOKS = 1000 };

typedef struct flag {
    _Alignas(64) _Atomic uint32_t value;
} flag;

typedef struct shared {
    flag hops[BENCH_RANKS_MAX];
    flag arrived, round;
} shared;

typedef struct state {
    int rank, ranks;
    shared *shared;
    void (*until)(flag *f, uint32_t value);
    bool wakes;
    uint32_t laps, rounds; /* made so far, in all jobs */
} state;

static bool is_set(flag *f, uint32_t value)
{
    return atomic_load_explicit(&f->value, memory_order_acquire) == value;
}

static void spin(flag *f, uint32_t value)
{
    while (!is_set(f, value))
        __asm__ volatile("" ::: "memory");
}

static void yield(flag *f, uint32_t value)
{
    while (!is_set(f, value))
        sched_yield();
}

/* A flag steps from `value` - 1 to `value`. */
static void doze(flag *f, uint32_t value)
{
    while (!is_set(f, value))
        bench_sleep_on(&f->value, value - 1, 1000000000);
}

static void spin_and_doze(flag *f, uint32_t value)
{
    for (int i = 0; i < LOOKS; i++)
        if (is_set(f, value))
            return;
    doze(f, value);
}

static void set(const state *s, flag *f, uint32_t value)
{
    atomic_store_explicit(&f->value, value, memory_order_release);
    if (s->wakes)
        bench_wake_all(&f->value);
}

/* The warming up is timed too: a rank that spins may leave it so late that it waits no more. */
static double share_of(const bench_job *job, uint64_t ns)
{
    return (double)ns * (double)job->count / (double)(bench_warmup(job) + job->count);
}

static double ring(void *context, const bench_job *job)
{
    state *s = context;
    uint64_t all = bench_warmup(job) + job->count, start = bench_now();
    flag *mine = &s->shared->hops[s->rank], *next = &s->shared->hops[(s->rank + 1) % s->ranks];
    for (uint64_t i = 0; i < all; i++) {
        s->laps++;
        if (s->rank == 0)
            set(s, next, s->laps);
        s->until(mine, s->laps);
        if (s->rank != 0)
            set(s, next, s->laps);
    }
    return share_of(job, bench_now() - start);
}

static void meet(state *s)
{
    uint32_t round = ++s->rounds, all = round * (uint32_t)s->ranks;
    /* acquire and release: the last rank sets the flag after all have come */
    if (atomic_fetch_add(&s->shared->arrived.value, 1) + 1 == all)
        set(s, &s->shared->round, round);
    else
        s->until(&s->shared->round, round);
}

static double barrier(void *context, const bench_job *job)
{
    uint64_t all = bench_warmup(job) + job->count, start = bench_now();
    for (uint64_t i = 0; i < all; i++)
        meet(context);
    return share_of(job, bench_now() - start);
}

static bool choose_way(state *s, const char *way)
{
    static const struct {
        const char *name;
        void (*until)(flag *f, uint32_t value);
        bool wakes;
    } ways[] = {
        {"spin", spin, false},
        {"yield", yield, false},
        {"futex", doze, true},
        {"both", spin_and_doze, true},
    };
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        if (way == NULL || strcmp(way, ways[i].name) != 0)
            continue;
        s->until = ways[i].until;
        s->wakes = ways[i].wakes;
        return true;
    }
    return false;
}

int main(int argc, char **argv)
{
    const char *text = getenv("BENCH_RANKS");
    state s = {.ranks = text ? atoi(text) : 1};
    if (s.ranks < 2 || s.ranks > BENCH_RANKS_MAX || !choose_way(&s, getenv("BENCH_WAY")))
        return 1;
    s.shared =
        mmap(NULL, sizeof *s.shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    s.rank = s.shared == MAP_FAILED ? -1 : bench_team_fork(s.ranks);
    bench_board *board = bench_board_open();
    if (s.rank >= 0 && board) {
        bench_pin(s.rank);
        bench_team team = {.board = board, .rank = s.rank, .context = &s};
        team.kinds[BENCH_RING] = ring;
        team.kinds[BENCH_BARRIER] = barrier;
        bench_team_serve(&team);
    }
    while (s.rank == 0 && (wait(NULL) > 0 || errno == EINTR)) {
    }
    return bench_team_empty(argc, argv) || board ? 0 : 1;
}
