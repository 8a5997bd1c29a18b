/* Goal: ranks may be killed at any time while they work on cells. No cell is blocked, and what the
 * dead ranks held, or were about to free, is neither lost nor freed twice. Method: processes do
 * random operations on a few cells; one after the other is killed at a random time. The survivors
 * go on, empty the cells at the end, and count. In every other job the cells have handlers with
 * high and low water marks and two priorities. The handlers work on cells too, so ranks die in
 * handlers and while they set alarms. No alarm of a dead rank may be lost or keep the survivors
 * from a quiescence. The seed and the number of kills are arguments. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../support/busy.h"
#include "../support/must.h"
#include "base/error.h"
#include "cell/state.h"
#include "port/shm/layout.h"
#include "ranks.h"

enum { RANKS = 8, SURVIVORS = 2, CELLS = 3, HELD_MAX = 6, PATIENCE_S = 60 };
enum { HIGH = 2, LOW = 1 }; /* marks */

/* The processes tell each other this. */
typedef struct shared {
    _Atomic uint32_t stop, arrived[4];
    _Atomic uint64_t handled; /* runs of handlers */
    _Atomic uint32_t in_handler[RANKS];
    uint64_t inside; /* kills that hit one */
    _Atomic uint64_t operations[RANKS];
} shared;

typedef struct worker {
    ferry *f;
    shared *s;
    uint64_t random;
    ferry_parcel held[HELD_MAX];
    int count;
    bool handlers;
} worker;

static ferry_parcel make(worker *w)
{
    ferry_parcel parcel;
    void *data;
    size_t size = 8 + next_random(&w->random) % 2000;
    must(ferry_parcel_create(w->f, size, &parcel, &data) == 0, "create");
    memset(data, (int)(size & 0xff), size);
    return parcel;
}

/* Every byte of a parcel is its size, whoever made or changed it. */
static void check_bytes(worker *w, ferry_parcel parcel)
{
    size_t size;
    const unsigned char *data = ferry_parcel_data(w->f, parcel, &size);
    must(data != NULL, "a parcel that was taken is not held");
    for (size_t i = 0; i < size; i++)
        must(data[i] == (size & 0xff), "a parcel changed under its holder");
}

static void let_go(worker *w, int at)
{
    w->held[at] = w->held[--w->count];
}

/* Writes nonsense and then what it has to be. */
static void change(worker *w, ferry_parcel *parcel)
{
    size_t size;
    void *data;
    must(ferry_parcel_modify(w->f, parcel, &data) == 0, "mod");
    must(ferry_parcel_data(w->f, *parcel, &size) == data, "data");
    memset(data, ~(int)(size & 0xff), size);
    memset(data, (int)(size & 0xff), size);
}

/* One of the first or last rank, or with handlers of any, since only their own ranks run them. */
static ferry_cell a_cell(const worker *w, uint64_t dice)
{
    int rank = w->handlers ? (int)(dice >> 32) & (RANKS - 1) : (int)(dice % 2) * (RANKS - 1);
    return (ferry_cell){rank, (int)(dice / 2 % CELLS)};
}

static void operate(worker *w)
{
    uint64_t dice = next_random(&w->random);
    ferry_cell cell = a_cell(w, dice);
    int at = w->count == 0 ? -1 : (int)(dice / 64 % (uint64_t)w->count);
    ferry_hold hold = dice / 1024 % 2 ? FERRY_KEEP : FERRY_GIVE;
    uint64_t patience = dice >> 20 & 1 ? 50000 : 0;
    int what = (int)(dice / 4096 % 16), error = 0;
    if (what < 5 && w->count < HELD_MAX) {
        error = what < 4 ? ferry_cell_dequeue(w->f, cell, &w->held[w->count], patience)
                         : ferry_cell_read(w->f, cell, &w->held[w->count], patience);
        if (error == 0)
            check_bytes(w, w->held[w->count++]);
    } else if (what < 9 && at >= 0) {
        error = ferry_cell_enqueue(w->f, cell, w->held[at], hold, patience);
        if (error == 0 && hold == FERRY_GIVE)
            let_go(w, at);
    } else if (what == 9 && at >= 0) {
        error = ferry_cell_write(w->f, cell, w->held[at], hold);
        if (error == 0 && hold == FERRY_GIVE)
            let_go(w, at);
    } else if (what == 10) {
        error = ferry_cell_clear(w->f, cell);
    } else if (what < 13 && at >= 0) {
        change(w, &w->held[at]);
    } else if (what < 15 && at >= 0) {
        must(ferry_parcel_release(w->f, w->held[at]) == 0, "release");
        let_go(w, at);
    } else if (w->count < HELD_MAX) {
        w->held[w->count++] = make(w);
    }
    must(error == 0 || error == (patience > 0 ? FERRY_ETIMEDOUT : FERRY_EAGAIN) ||
             error == FERRY_EPEER,
         "an operation failed");
}

static size_t count_of(ferry *f, ferry_cell cell)
{
    size_t count = 0;
    must(ferry_cell_count(f, cell, &count) == 0, "count");
    return count;
}

/* Gives a parcel away, or lets it go. */
static void dispose(worker *w, ferry_parcel parcel, ferry_cell cell)
{
    if (atomic_load(&w->s->stop) != 0 || ferry_cell_enqueue(w->f, cell, parcel, FERRY_GIVE, 0) != 0)
        must(ferry_parcel_release(w->f, parcel) == 0, "release");
}

/* Takes what is too much, changes it and passes it on, lets a more urgent handler run, and adds
 * what is missing. It interrupts operations of its rank, whose parcels it leaves alone. */
static void on_mark(ferry *f, ferry_cell cell, size_t count, void *arg)
{
    worker *w = arg;
    ferry_parcel parcel;
    (void)count;
    atomic_fetch_add(&w->s->in_handler[ferry_rank(f)], 1);
    while (count_of(f, cell) > HIGH && ferry_cell_dequeue(f, cell, &parcel, 0) == 0) {
        check_bytes(w, parcel);
        change(w, &parcel);
        dispose(w, parcel, a_cell(w, next_random(&w->random)));
        (void)ferry_cell_yield(f);
    }
    if (count_of(f, cell) < LOW)
        dispose(w, make(w), cell);
    atomic_fetch_add(&w->s->handled, 1);
    atomic_fetch_sub(&w->s->in_handler[ferry_rank(f)], 1);
}

static void on_peer(ferry *f, void *arg, const ferry_peer_event *event)
{
    (void)f;
    (void)arg;
    (void)event;
}

static void handlers_set(worker *w, bool on)
{
    for (int i = 0; i < CELLS; i++) {
        ferry_cell_handler h = FERRY_CELL_HANDLER_DEFAULTS;
        h.fn = on_mark;
        h.arg = w;
        h.high = HIGH;
        h.low = LOW;
        h.priority = i % 2;
        must(ferry_cell_handler_set(w->f, i, on ? &h : NULL) == 0, "handler_set");
    }
}

/* Waits until all survivors are here; the launcher sees to those that never come. */
static void meet(worker *w, int stage)
{
    atomic_fetch_add(&w->s->arrived[stage], 1);
    while (atomic_load(&w->s->arrived[stage]) < SURVIVORS)
        usleep(100);
}

static void drop_all(worker *w)
{
    while (w->count > 0)
        must(ferry_parcel_release(w->f, w->held[--w->count]) == 0, "release");
}

/* Handlers that are due are work, whoever has said so: behind a quiescence no mark is passed. */
static void finish_handlers(worker *w)
{
    meet(w, 2);
    must(ferry_quiesce(w->f) == 0, "quiesce");
    for (int i = 0; i < CELLS; i++)
        must(count_of(w->f, (ferry_cell){ferry_rank(w->f), i}) <= HIGH, "a handler was not called");
    meet(w, 3);
    handlers_set(w, false);
    drop_all(w);
}

static void settle(worker *w)
{
    drop_all(w);
    ferry_poll(w->f);
    if (w->handlers)
        finish_handlers(w);
    meet(w, 0);
    for (int i = 0; i < RANKS * CELLS; i++)
        must(ferry_cell_clear(w->f, (ferry_cell){i % RANKS, i / RANKS}) == 0, "zap");
    meet(w, 1);
    /* The other may have released something of ours in its last operation. */
    ferry_poll(w->f);
    size_t alive = ferry_parcel_count(w->f);
    if (alive != 0)
        fprintf(stderr, "kill_test: %zu parcels of rank %d were lost\n", alive, ferry_rank(w->f));
    must(alive == 0, "parcels were lost");
}

static bool has_handlers(uint64_t seed)
{
    return seed % 2 == 1;
}

static void work(fy_segment *segment, shared *s, int rank, uint64_t seed)
{
    worker w = {.s = s, .random = seed * RANKS + (uint64_t)rank, .handlers = has_handlers(seed)};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    w.f = open_rank(segment, rank, "none");
    /* Some cells are full now and then, so that there is somebody who waits for room. */
    must(ferry_cell_limit_set(w.f, 0, 4) == 0, "limit");
    must(ferry_peer_watch(w.f, on_peer, NULL) == 0, "on_peer");
    if (w.handlers)
        handlers_set(&w, true);
    for (uint64_t i = 1; atomic_load(&s->stop) == 0; i++) {
        operate(&w);
        atomic_store(&s->operations[rank], i);
        if (i % 64 == 0)
            ferry_poll(w.f);
    }
    settle(&w);
    _exit(0);
}

static void await_progress(const shared *s, int rank)
{
    time_t end = time(NULL) + PATIENCE_S;
    uint64_t before = atomic_load(&s->operations[rank]);
    while (atomic_load(&s->operations[rank]) < before + 200) {
        must(time(NULL) < end, "a cell is wedged: no progress");
        usleep(100);
    }
}

static void kill_one(fy_segment *segment, pid_t pid, int rank)
{
    int status;
    kill(pid, SIGKILL);
    must(waitpid(pid, &status, 0) == pid, "wait");
    must(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "a rank ended by itself");
    fy_controls_mark(segment->base, RANKS, (uint32_t)rank, SHM_DEAD);
}

static void await_end(pid_t pid)
{
    int status;
    time_t end = time(NULL) + PATIENCE_S;
    while (waitpid(pid, &status, WNOHANG) == 0) {
        must(time(NULL) < end, "a survivor does not come to its end");
        usleep(200);
    }
    must(WIFEXITED(status) && WEXITSTATUS(status) == 0, "a survivor failed");
}

/* One job; returns how many ranks it killed, and adds how many of them in handlers. */
static int run_job(shared *s, uint64_t seed, uint64_t *in_handlers)
{
    const fy_shm_options options = {
        .ranks = RANKS, .heap_bytes = (size_t)64 << 20, .ring_slots = 8, .ring_bytes = 1024};
    uint64_t random = seed;
    fy_segment *segment;
    pid_t pids[RANKS];
    int fd;
    memset(s, 0, sizeof(*s));
    must(fy_segment_create(&options, &fd) == 0 && fy_segment_map(fd, &segment) == 0, "segment");
    close(fd);
    for (int rank = 0; rank < RANKS; rank++) {
        pids[rank] = fork();
        must(pids[rank] >= 0, "fork");
        if (pids[rank] == 0)
            work(segment, s, rank, seed);
    }
    for (int rank = 0; rank < RANKS; rank++)
        await_progress(s, rank);
    /* Rank RANKS - 1, which has cells, survives or not. */
    int spared = (int)(next_random(&random) % 2) ? RANKS - 1 : 1;
    for (int rank = 1; rank < RANKS; rank++) {
        if (rank == spared)
            continue;
        usleep((useconds_t)(next_random(&random) % 1500));
        kill_one(segment, pids[rank], rank);
        if (atomic_load(&s->in_handler[rank]) != 0)
            s->inside++;
        await_progress(s, 0);
    }
    atomic_store(&s->stop, 1);
    await_end(pids[0]);
    await_end(pids[spared]);
    fy_segment_unmap(segment);
    must(!has_handlers(seed) || atomic_load(&s->handled) > 0, "no handler has run");
    *in_handlers += s->inside;
    return RANKS - SURVIVORS;
}

int main(int argc, char **argv)
{
    long kills = argc > 1 ? atol(argv[1]) : KILLS;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
    shared *s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    must(s != MAP_FAILED, "mmap");
    printf("%s %ld %llu\n", argv[0], kills, (unsigned long long)seed);
    fflush(stdout);
    /* As many as asked for; else as many of the usual as a busy machine has time for. */
    time_t end = time(NULL) + PATIENCE_S;
    uint64_t in_handlers = 0;
    long done = 0;
    for (; done < kills && (argc > 1 || done == 0 || time(NULL) < end); seed++)
        done += run_job(s, seed, &in_handlers);
    if (done < kills)
        left_out("%ld of %ld kills", done, kills);
    printf("%llu were killed in handlers\n", (unsigned long long)in_handlers);
    return 0;
}
