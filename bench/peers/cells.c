/* Ferry's cells, and with BENCH_REFERENCE in the environment what each operation is compared with:
 *
 *   request  hand a parcel over and back     two cache lines, each there and back
 *   wake     of a rank that waits for a cell the same by a bare futex
 *   local    enq and deq by one rank         the four compare-exchanges of that, on own lines
 *   lookup   mod of an unshared parcel       one load
 *   rate     half of the ranks add, half take,   a ring of words under a mutex that processes
 *            each as many as the others          share, with two conditions
 *   shares   half add, half take, who comes      the same
 *            first: how even their shares are
 */
#include <ferry/ferry.h>

#include "common/team.h"
#include "peers/check.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct line {
    _Alignas(64) _Atomic uint64_t word;
} line;

enum { RING = 65536, SHARE_ROOM = 1024, SHARE_COUNT = 1000000 };

/* A cell is compared with this where many ranks use it. */
typedef struct ring {
    pthread_mutex_t lock;
    pthread_cond_t filled, emptied;
    uint64_t head, tail, room;
    uint64_t words[RING];
} ring;

/* All ranks see this. */
typedef struct lines {
    line call, reply, own[2], drawn;
    uint64_t woken_ns;
    uint64_t done[BENCH_RANKS_MAX]; /* by each rank */
    ring ring;
} lines;

typedef struct state {
    ferry *f;
    int rank;
    lines *shared;
    uint64_t flag, sum;
} state;

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
            check(s->f, ferry_cell_enqueue(s->f, other, parcel, FERRY_GIVE, 0));
        check(s->f, ferry_cell_dequeue(s->f, own, &parcel, FERRY_FOREVER));
        if (s->rank == 1)
            check(s->f, ferry_cell_enqueue(s->f, other, parcel, FERRY_GIVE, 0));
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
            check(s->f, ferry_cell_dequeue(s->f, (ferry_cell){1, 1}, &parcel, FERRY_FOREVER));
            s->shared->woken_ns = bench_now();
            check(s->f, ferry_parcel_release(s->f, parcel));
            set(&s->shared->reply, s->flag);
            continue;
        }
        check(s->f, ferry_parcel_create(s->f, 64, &parcel, NULL));
        pause_ns(200000);
        uint64_t start = bench_now();
        check(s->f, ferry_cell_enqueue(s->f, (ferry_cell){1, 1}, parcel, FERRY_GIVE, 0));
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
        check(s->f, ferry_cell_enqueue(s->f, own, parcel, FERRY_GIVE, 0));
        check(s->f, ferry_cell_dequeue(s->f, own, &parcel, 0));
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
        for (int k = 0; k < 2; k++) {
            uint64_t free = 0;
            _Atomic uint64_t *word = &s->shared->own[0].word;
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
        check(s->f, ferry_parcel_modify(s->f, &parcel, &data));
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

/* One way from those who add to those who take; `last` ends one who takes. */
typedef struct way {
    void (*room)(state *s, uint64_t count); /* rank 0, before the others come */
    void (*add)(state *s, bool last);
    bool (*take)(state *s); /* false: it was a last one */
} way;

static const ferry_cell crowded = {0, 3};

static void cell_room(state *s, uint64_t count)
{
    check(s->f, ferry_cell_limit_set(s->f, crowded.number, count));
}

static void cell_add(state *s, bool last)
{
    ferry_parcel parcel;
    void *data;
    check(s->f, ferry_parcel_create(s->f, 64, &parcel, &data));
    *(uint64_t *)data = last;
    check(s->f, ferry_cell_enqueue(s->f, crowded, parcel, FERRY_GIVE, FERRY_FOREVER));
}

static bool cell_take(state *s)
{
    ferry_parcel parcel;
    check(s->f, ferry_cell_dequeue(s->f, crowded, &parcel, FERRY_FOREVER));
    uint64_t last = *(const uint64_t *)ferry_parcel_data(s->f, parcel, NULL);
    check(s->f, ferry_parcel_release(s->f, parcel));
    return last == 0;
}

static void ring_room(state *s, uint64_t count)
{
    s->shared->ring.room = count;
}

static void ring_add(state *s, bool last)
{
    ring *r = &s->shared->ring;
    pthread_mutex_lock(&r->lock);
    while (r->tail - r->head == r->room)
        pthread_cond_wait(&r->emptied, &r->lock);
    r->words[r->tail++ % RING] = last;
    pthread_mutex_unlock(&r->lock);
    pthread_cond_signal(&r->filled);
}

static bool ring_take(state *s)
{
    ring *r = &s->shared->ring;
    pthread_mutex_lock(&r->lock);
    while (r->tail == r->head)
        pthread_cond_wait(&r->filled, &r->lock);
    uint64_t last = r->words[r->head++ % RING];
    pthread_mutex_unlock(&r->lock);
    pthread_cond_signal(&r->emptied);
    return last == 0;
}

static void open_ring(ring *r)
{
    pthread_mutexattr_t mutex;
    pthread_condattr_t condition;
    pthread_mutexattr_init(&mutex);
    pthread_mutexattr_setpshared(&mutex, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&r->lock, &mutex);
    pthread_condattr_init(&condition);
    pthread_condattr_setpshared(&condition, PTHREAD_PROCESS_SHARED);
    pthread_cond_init(&r->filled, &condition);
    pthread_cond_init(&r->emptied, &condition);
}

static void meet(state *s, const way *w, uint64_t room)
{
    if (s->rank == 0) {
        w->room(s, room);
        atomic_store(&s->shared->drawn.word, 0);
    }
    check(s->f, ferry_barrier(s->f));
}

/* Every consumer takes its share: as many as each producer adds. */
static double crowd(state *s, const way *w, const bench_job *job)
{
    uint64_t half = (uint64_t)ferry_ranks(s->f) / 2, each = (job->count + half - 1) / half;
    meet(s, w, RING);
    uint64_t start = bench_now();
    for (uint64_t i = 0; i < each; i++) {
        if ((uint64_t)s->rank < half)
            w->add(s, false);
        else
            s->sum += !w->take(s);
    }
    check(s->f, ferry_barrier(s->f));
    return (double)(bench_now() - start) * (double)job->count / (double)(each * half);
}

/* Jain's index, in percent: 100 for equal shares, 100 / count when one has all. */
static double evenness(const uint64_t *done, uint64_t count)
{
    double sum = 0, squares = 0;
    for (uint64_t i = 0; i < count; i++) {
        sum += (double)done[i];
        squares += (double)done[i] * (double)done[i];
    }
    return 100 * sum * sum / ((double)count * squares);
}

/* Each adds and takes as long as there is something to do; then each who takes gets a last one. */
static double shares(state *s, const way *w)
{
    uint64_t half = (uint64_t)ferry_ranks(s->f) / 2, done = 0;
    meet(s, w, SHARE_ROOM);
    if ((uint64_t)s->rank < half) {
        /* relaxed: a ticket says nothing of other memory */
        while (atomic_fetch_add_explicit(&s->shared->drawn.word, 1, memory_order_relaxed) <
               SHARE_COUNT) {
            w->add(s, false);
            done++;
        }
        w->add(s, true);
    } else {
        while (w->take(s))
            done++;
    }
    s->shared->done[s->rank] = done;
    check(s->f, ferry_barrier(s->f));
    double adders = evenness(s->shared->done, half);
    double takers = evenness(s->shared->done + half, (uint64_t)ferry_ranks(s->f) - half);
    check(s->f, ferry_barrier(s->f));
    return adders < takers ? adders : takers;
}

static const way cell_way = {cell_room, cell_add, cell_take};
static const way ring_way = {ring_room, ring_add, ring_take};

static double crowd_cell(void *context, const bench_job *job)
{
    return crowd(context, &cell_way, job);
}

static double crowd_ring(void *context, const bench_job *job)
{
    return crowd(context, &ring_way, job);
}

static double shares_cell(void *context, const bench_job *job)
{
    (void)job;
    return shares(context, &cell_way);
}

static double shares_ring(void *context, const bench_job *job)
{
    (void)job;
    return shares(context, &ring_way);
}

static void share_lines(state *s)
{
    void *address = NULL;
    if (s->rank == 0) {
        check(s->f, ferry_alloc(s->f, sizeof(lines), &address));
        memset(address, 0, sizeof(lines));
        open_ring(&((lines *)address)->ring);
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
    team.kinds[BENCH_RATE] = reference ? crowd_ring : crowd_cell;
    team.kinds[BENCH_SHARES] = reference ? shares_ring : shares_cell;
    bench_team_serve(&team);
    return s.sum == 1 ? 2 : 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
