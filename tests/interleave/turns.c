/* Turns: the schedule of ranks that are threads of one process, over the port for shared memory.
 * Goal: no wake-up is lost, no rank waits forever and no message is lost, wherever a thread is
 * stopped and however late its stores are seen (stores.h). Method: the linker puts functions of
 * this file and of calls.c in place of the system's that wait, tell the time, or read and write
 * files. One thread runs at a time; the seed (TURNS_SEED) says for how long, and which goes on
 * then. It also says how long a disk takes, which waiting threads a signal wakes, and which wake
 * without one. With some seeds threads stop at plain accesses to memory too, so a lock that is
 * missing is found. Time is virtual: it passes with each operation, and when all wait. A thread
 * that sleeps for a second has missed its wake-up, and ends the process with status 3. So do
 * threads that all wait for each other.
 *
 * With TURNS_DEATHS=N up to N ranks die where the seed says: their threads never go on. Some time
 * later the launcher's mark is set, by the thread that was running. The launcher itself is not
 * tested, and ends nobody. */
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "port/shm/layout.h"
#include "port/shm/shm.h"
#include "stores.h"
#include "turns.h"

enum { TURNS_MAX = 64, LOST_STATUS = 3 };
enum { STEP_NS = 10, CALL_NS = 100, SHORT_BITS = 19, LONG_NS = 3000000, MISSED_NS = 900000000 };
#define LIMIT_NS UINT64_C(200000000000)
enum { DEATH_BITS = 24, NOTICE_BITS = 20, PLAIN_ODDS = 4 };

/* A thread. */
typedef struct turn {
    int rank; /* to which it belongs; -1: the main program, which starts the ranks */
    sem_t go;
    turn_state state;
    const volatile void *waits_for;
    uint64_t until_ns;
    pthread_t thread;
    void *(*entry)(void *arg);
    void *arg;
} turn;

static turn turns[TURNS_MAX];
static int turn_count;
static __thread turn *self;
static uint64_t now_ns = 1000000000;
static uint64_t dies_ns[TURNS_MAX]; /* by rank; 0: it does not die */
static int rank_count, deaths, deaths_left;
static int processors;
static const fy_segment *segment;

static int number_of(const turn *t)
{
    return (int)(t - turns);
}

int interleave_actor(void)
{
    return self == NULL ? -1 : number_of(self);
}

/* The heaps hold the program's data, and are left out. */
bool interleave_shares(const volatile void *at)
{
    return segment != NULL &&
           (size_t)((uintptr_t)at - (uintptr_t)segment->base) < segment->heaps_offset;
}

void turns_fail(const char *what)
{
    static const char *const names[] = {
        "is ready",  "is stopped", "sleeps", "waits for a condition", "waits for a mutex", "joins",
        "has ended", "dies",       "is dead"};
    fprintf(stderr, "turns: at %llu ns %s\n", (unsigned long long)now_ns, what);
    for (int i = 0; i < turn_count; i++)
        fprintf(stderr, "turns: thread %d of rank %d %s\n", i, turns[i].rank,
                names[turns[i].state]);
    fflush(NULL);
    _exit(LOST_STATUS);
}

static bool has_time(const turn *t)
{
    return t->until_ns != TURNS_NEVER &&
           (t->state == TURN_STOPPED || t->state == TURN_SLEEPS || t->state == TURN_AWAITS);
}

/* Lets the thread go on whose time comes first. */
static turn *pass_time(void)
{
    turn *first = NULL;
    for (turn *t = turns; t < turns + turn_count; t++)
        if (has_time(t) && (first == NULL || t->until_ns < first->until_ns))
            first = t;
    if (first == NULL)
        turns_fail("all threads wait for each other");
    if (first->state != TURN_STOPPED && first->until_ns > now_ns + MISSED_NS)
        turns_fail("all threads sleep: a wake-up was lost");
    if (first->until_ns > now_ns)
        now_ns = first->until_ns;
    first->state = TURN_READY;
    return first;
}

static turn *choose(void)
{
    if (now_ns > LIMIT_NS)
        turns_fail("the program does not end");
    int ready = 0;
    for (turn *t = turns; t < turns + turn_count; t++) {
        if (has_time(t) && t->until_ns <= now_ns)
            t->state = TURN_READY;
        ready += t->state == TURN_READY;
    }
    if (ready == 0)
        return pass_time();
    uint64_t which = stores_draw((uint64_t)ready);
    for (turn *t = turns;; t++)
        if (t->state == TURN_READY && which-- == 0)
            return t;
}

/* Lets a thread go on, perhaps this one. */
static void pass(void)
{
    turn *next = choose(), *own = self;
    if (next == own)
        return;
    sem_post(&next->go);
    while (own->state == TURN_DEAD)
        pause();
    if (own->state != TURN_ENDED)
        while (sem_wait(&own->go) != 0)
            continue;
}

/* Its stores stay where they are. */
static void stop(turn_state state, const volatile void *waits_for, uint64_t until_ns)
{
    self->state = state;
    self->waits_for = waits_for;
    self->until_ns = until_ns;
    pass();
}

bool turns_rest(turn_state state, const volatile void *waits_for, uint64_t until_ns)
{
    stores_let_out(number_of(self));
    stop(state, waits_for, until_ns);
    return self->waits_for == NULL;
}

static void wake(turn *t)
{
    t->state = TURN_READY;
    t->waits_for = NULL;
}

static bool waits(const turn *t, turn_state state, const volatile void *waits_for)
{
    return t->state == state && t->waits_for == waits_for;
}

void turns_wake_all(turn_state state, const volatile void *waits_for)
{
    for (turn *t = turns; t < turns + turn_count; t++)
        if (waits(t, state, waits_for))
            wake(t);
}

static uint64_t count_waiting(turn_state state, const volatile void *waits_for)
{
    uint64_t count = 0;
    for (turn *t = turns; t < turns + turn_count; t++)
        count += waits(t, state, waits_for);
    return count;
}

bool turns_has(turn_state state, const volatile void *waits_for)
{
    return count_waiting(state, waits_for) != 0;
}

void turns_wake_one(turn_state state, const volatile void *waits_for)
{
    uint64_t which = stores_draw(count_waiting(state, waits_for));
    for (turn *t = turns; t < turns + turn_count; t++)
        if (waits(t, state, waits_for) && which-- == 0) {
            wake(t);
            return;
        }
}

/* The rank of this thread dies if its time has come. */
static void die_in_time(void)
{
    int rank = self->rank;
    if (rank < 0 || dies_ns[rank] == 0 || now_ns < dies_ns[rank] || segment == NULL)
        return;
    dies_ns[rank] = 0;
    deaths++;
    fprintf(stderr, "turns: rank %d dies at %llu ns\n", rank, (unsigned long long)now_ns);
    for (turn *t = turns; t < turns + turn_count; t++) {
        if (t->rank != rank || t->state == TURN_ENDED)
            continue;
        stores_let_out(number_of(t));
        if (t != self)
            t->state = TURN_DIES;
    }
    stop(TURN_STOPPED, NULL, now_ns + (UINT64_C(1) << stores_draw(NOTICE_BITS)));
    if (shm_state_in(atomic_load(&rank_at(segment->base, (uint32_t)rank)->state)) != SHM_LEFT)
        fy_controls_mark(segment->base, segment->ranks, (uint32_t)rank, SHM_DEAD);
    for (turn *t = turns; t < turns + turn_count; t++) {
        if (t->state == TURN_DIES)
            t->state = TURN_DEAD;
        if (t->rank == rank)
            turns_wake_all(TURN_JOINS, t);
    }
    (void)turns_rest(TURN_DEAD, NULL, 0);
}

void interleave_step(int actor)
{
    now_ns += STEP_NS;
    die_in_time();
    if (!stores_draw_stop(actor))
        return;
    uint64_t kind = stores_draw(8);
    if (kind == 0) /* another thread has its processor */
        (void)turns_rest(TURN_STOPPED, NULL, now_ns + stores_draw(LONG_NS));
    else if (kind < 4)
        stop(TURN_STOPPED, NULL, now_ns + (UINT64_C(1) << stores_draw(SHORT_BITS)));
    else
        pass();
}

bool turns_are_taken(void)
{
    return self != NULL;
}

uint64_t turns_time(void)
{
    return now_ns += STEP_NS;
}

int turns_processors(void)
{
    return processors == 0 ? 1 : processors;
}

void turns_enter(void)
{
    now_ns += CALL_NS;
    stores_let_out(number_of(self));
}

void turns_step(void)
{
    interleave_step(number_of(self));
}

void turns_yield(void)
{
    pass();
}

static turn *turn_add(void)
{
    if (turn_count == TURNS_MAX)
        turns_fail("there are too many threads");
    turn *t = &turns[turn_count++];
    t->rank = self == NULL ? -1 : self->rank;
    if (sem_init(&t->go, 0, 0) != 0)
        abort();
    return t;
}

/* Since one thread runs at a time, one processor is enough, and hands over sooner. */
static void stay_here(void)
{
    cpu_set_t here;
    CPU_ZERO(&here);
    CPU_SET((size_t)sched_getcpu(), &here);
    (void)sched_setaffinity(0, sizeof here, &here);
}

static void begin(void)
{
    stay_here();
    const char *seed = getenv("TURNS_SEED");
    stores_open(TURNS_MAX, seed == NULL ? 1 : strtoull(seed, NULL, 10));
    const char *most = getenv("TURNS_DEATHS");
    deaths_left = most == NULL ? 0 : (int)stores_draw(strtoull(most, NULL, 10) + 1);
    processors = stores_draw(2) == 0 ? 1 : TURNS_MAX;
    if (stores_draw(PLAIN_ODDS) == 0)
        stores_stop_plain();
    self = turn_add();
}

/* The main program starts a rank. */
static void rank_add(turn *t)
{
    t->rank = rank_count++;
    if (deaths_left == 0 || stores_draw(2) == 0)
        return;
    deaths_left--;
    dies_ns[t->rank] = now_ns + (UINT64_C(1) << stores_draw(DEATH_BITS)) + stores_draw(1000);
}

static void *run(void *arg)
{
    turn *t = arg;
    while (sem_wait(&t->go) != 0)
        continue;
    self = t;
    void *result = t->entry(t->arg);
    stores_let_out(number_of(t));
    turns_wake_all(TURN_JOINS, t);
    t->state = TURN_ENDED;
    pass();
    return result;
}

/* The linker calls these by the names of the functions that they replace, and those by the other
 * names. */
int __real_pthread_create(pthread_t *out, const pthread_attr_t *attributes,
                          void *(*entry)(void *arg), void *arg);
int __wrap_pthread_create(pthread_t *out, const pthread_attr_t *attributes,
                          void *(*entry)(void *arg), void *arg);
int __wrap_pthread_create(pthread_t *out, const pthread_attr_t *attributes,
                          void *(*entry)(void *arg), void *arg)
{
    if (turn_count == 0)
        begin();
    turn *t = turn_add();
    t->entry = entry;
    t->arg = arg;
    if (self->rank < 0)
        rank_add(t);
    int error = __real_pthread_create(&t->thread, attributes, run, t);
    *out = t->thread;
    if (error != 0)
        turns_fail("a thread cannot be started");
    return 0;
}

int __real_pthread_join(pthread_t thread, void **result);
int __wrap_pthread_join(pthread_t thread, void **result);
int __wrap_pthread_join(pthread_t thread, void **result)
{
    for (turn *t = turns; t < turns + turn_count; t++)
        while (t != self && t->thread == thread && t->state != TURN_ENDED) {
            if (t->state == TURN_DEAD)
                return 0;
            (void)turns_rest(TURN_JOINS, t, 0);
        }
    return __real_pthread_join(thread, result);
}

int __real_fy_segment_map(int fd, fy_segment **out);
int __wrap_fy_segment_map(int fd, fy_segment **out);
int __wrap_fy_segment_map(int fd, fy_segment **out)
{
    int error = __real_fy_segment_map(fd, out);
    if (error == 0)
        segment = *out;
    return error;
}

/* The library's own function for the end of the process would find ranks that are open: the dead.
 */
static void end(int status, void *arg)
{
    (void)arg;
    fflush(NULL);
    _exit(status);
}

void __real_fy_segment_unmap(fy_segment *old);
void __wrap_fy_segment_unmap(fy_segment *old);
void __wrap_fy_segment_unmap(fy_segment *old)
{
    stores_let_all_out();
    segment = NULL;
    __real_fy_segment_unmap(old);
    if (deaths != 0)
        (void)on_exit(end, NULL);
}
