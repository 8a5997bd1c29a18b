/* Goal: the death of a rank within an epoch blocks nobody and is told. Method: the last rank kills
 * itself as the argument says:
 * - 0: in a fence epoch
 * - 1: with the exclusive lock of rank 0
 * - 2: after ferry_window_post
 * - 3: after ferry_window_start
 * - 4: no rank does, for the swarm
 * - 5: at any time in a large put
 * - 6: the same into a view
 * - 7: any rank, at any time in epochs of fences and locks
 * - 8: any rank, at any time in epochs of post and start
 * - 9: in the simulator, which ends it, while rank 0 has its lock and that of rank 1
 *
 * The others must come back with FERRY_EPEER, or with the lock, and can use the element. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include <ferry/ferry.h>

#include "../support/check.h"
#include "../support/survive.h"

#define CHECK(f, condition) check(f, condition, #condition)

static const int64_t one = 1;
static const ferry_window_value value = {&one, sizeof(one)};

static void in_fence(ferry *f, ferry_window *w, int victim)
{
    ferry_op op;
    ferry_track track = FERRY_TRACK_DEFAULTS;
    track.op = &op;
    CHECK(f, ferry_window_fence(w) == 0);
    if (ferry_rank(f) == victim)
        (void)raise(SIGKILL);
    CHECK(f, ferry_window_put(w, 0, 0, &value, NULL) == 0);
    int error = ferry_window_put(w, victim, 0, &value, &track);
    CHECK(f, error == 0 || error == FERRY_EPEER);
    CHECK(f, ferry_window_fence(w) == FERRY_EPEER);
    CHECK(f, error == FERRY_EPEER || ferry_op_wait(f, &op) == FERRY_EPEER);
    CHECK(f, ferry_window_put(w, victim, 0, &value, NULL) == FERRY_EPEER);
}

static void with_lock(ferry *f, ferry_window *w, int victim)
{
    if (ferry_rank(f) == victim) {
        CHECK(f, ferry_window_lock(w, FERRY_WINDOW_EXCLUSIVE, 0) == 0);
        CHECK(f, ferry_barrier(f) == 0);
        (void)raise(SIGKILL);
    }
    /* The victim may die before all others have left the barrier. */
    int error = ferry_barrier(f);
    CHECK(f, error == 0 || error == FERRY_EPEER);
    for (int i = 0; i < 5; i++) {
        CHECK(f, ferry_window_lock(w, FERRY_WINDOW_EXCLUSIVE, 0) == 0);
        CHECK(f, ferry_window_put(w, 0, i, &value, NULL) == 0);
        CHECK(f, ferry_window_unlock(w, 0) == 0);
    }
    error = ferry_window_lock(w, FERRY_WINDOW_SHARED, victim);
    CHECK(f, error == FERRY_EPEER || (error == 0 && ferry_window_unlock(w, victim) == FERRY_EPEER));
}

/* Whether `error` is that of a death, and its text begins with `begin` and names `rank`. */
static bool names(ferry *f, int error, const char *begin, int rank)
{
    char text[80];
    const int length = snprintf(text, sizeof(text), "%s: rank %d", begin, rank);
    return error == FERRY_EPEER && strncmp(ferry_error_message(f), text, (size_t)length) == 0;
}

/* The victim has posted, and the others complete; or they have posted, and it does not complete. */
static void in_exposure(ferry *f, ferry_window *w, int victim, bool starts)
{
    const int others[] = {0, 1, 2};
    if (ferry_rank(f) == victim) {
        CHECK(f,
              (starts ? ferry_window_start(w, others, 3) : ferry_window_post(w, others, 3)) == 0);
        (void)raise(SIGKILL);
    }
    if (starts) {
        int error = ferry_window_post(w, &victim, 1);
        if (error != 0) {
            CHECK(f, names(f, error, "window_post", victim));
        } else if (ferry_rank(f) == 0) {
            while ((error = ferry_window_test(w)) == 0)
                CHECK(f, ferry_wait(f, 1000000) >= 0);
            CHECK(f, names(f, error, "window_test", victim));
        } else {
            CHECK(f, names(f, ferry_window_wait(w), "window_wait", victim));
        }
        return;
    }
    int error = ferry_window_start(w, &victim, 1);
    if (error != 0) {
        CHECK(f, names(f, error, "window_start", victim));
        return;
    }
    error = ferry_window_put(w, victim, 0, &value, NULL);
    CHECK(f, error == 0 || error == FERRY_EPEER);
    while (!ferry_peer_is_gone(f, victim))
        CHECK(f, ferry_wait(f, 1000000) >= 0);
    CHECK(f, names(f, ferry_window_complete(w), "window_complete", victim));
}

static void end_now(int signal)
{
    (void)signal;
    (void)raise(SIGKILL);
}

enum { ELEMENT_BYTES = 2 << 20 };

/* A timer ends this rank some milliseconds from now. */
static void die_soon(ferry *f)
{
    enum { SHARE_US = 700, FIRST_US = 3000 };
    const struct itimerval soon = {{0, 0}, {0, FIRST_US + getpid() % 16 * SHARE_US}};
    CHECK(f, signal(SIGALRM, end_now) != SIG_ERR && setitimer(ITIMER_REAL, &soon, NULL) == 0);
}

/* Changes one element of rank 0 without end, until a timer ends it. */
static _Noreturn void put_until_death(ferry *f, ferry_window *w, bool view)
{
    unsigned char *bytes = calloc(1, ELEMENT_BYTES);
    CHECK(f, bytes != NULL);
    CHECK(f, ferry_window_lock(w, FERRY_WINDOW_SHARED, 0) == 0);
    die_soon(f);
    for (size_t i = 0;; i++) {
        const size_t less = view ? 0 : i % 2 * ELEMENT_BYTES / 2;
        const ferry_window_value large = {bytes, ELEMENT_BYTES - less};
        CHECK(f, ferry_window_put(w, 0, 0, &large, NULL) == 0);
        CHECK(f, ferry_window_flush(w, 0) == 0);
    }
}

/* The element of a rank that died in its put has a value or none, and can be used. */
static void in_put(ferry *f, ferry_window *w, int victim, bool view)
{
    const ferry_window_change add = {FERRY_INT64, FERRY_SUM, &one, 1};
    int64_t number = 0;
    size_t size = 0;
    void *memory = NULL;
    if (view && ferry_rank(f) == 0)
        CHECK(f, ferry_window_view(w, 0, 1, ELEMENT_BYTES, &memory) == 0);
    CHECK(f, ferry_barrier(f) == 0);
    if (ferry_rank(f) == victim)
        put_until_death(f, w, view);
    CHECK(f, ferry_window_lock(w, FERRY_WINDOW_SHARED, 0) == 0);
    const ferry_window_target target = {NULL, 0, &size};
    int error = 0;
    while (error != FERRY_EPEER) {
        error = ferry_window_get(w, 0, 0, &target, NULL);
        CHECK(f, error == 0 || error == FERRY_ETOOLONG || error == FERRY_EPEER);
        error = ferry_window_put(w, victim, 0, &value, NULL);
        CHECK(f, error == FERRY_ESTATE || error == FERRY_EPEER);
        (void)ferry_wait(f, 100000);
    }
    /* One rank is told that the death has spoiled the element, once. */
    error = ferry_window_get(w, 0, 0, &target, NULL);
    if (error == FERRY_EPEER)
        error = ferry_window_get(w, 0, 0, &target, NULL);
    CHECK(f, error == 0 || error == FERRY_ETOOLONG);
    CHECK(f, !view || size == ELEMENT_BYTES);
    CHECK(f, ferry_window_put(w, 0, 0, NULL, NULL) == 0);
    error = ferry_window_unlock(w, 0);
    CHECK(f, error == (view ? FERRY_EINVAL : 0) || error == FERRY_EPEER);
    CHECK(f, ferry_window_lock(w, FERRY_WINDOW_SHARED, 0) == 0);
    error = ferry_window_fetch(w, 0, 1 + ferry_rank(f), &add, &number, NULL);
    CHECK(f, error == 0 && number == 0);
    CHECK(f, ferry_window_unlock(w, 0) == 0);
}

static bool goes_on(ferry *f, int error)
{
    CHECK(f, error == 0 || error == FERRY_EPEER || error == FERRY_ENOMEM);
    return error != FERRY_EPEER;
}

/* Some rank dies at any time: each call works or says FERRY_EPEER. Under the swarm the heap refuses
 * memory, too: that fails an operation, and the epoch ends. Whether all fences worked. */
static bool at_any_time(ferry *f, ferry_window *w)
{
    const ferry_window_change add = {FERRY_INT64, FERRY_SUM, &one, 1};
    const int ranks = ferry_ranks(f);
    bool fences = goes_on(f, ferry_window_fence(w));
    for (int i = 0; i < 20; i++) {
        const int to = (ferry_rank(f) + i) % ranks;
        int64_t old = 0;
        (void)goes_on(f, ferry_window_accumulate(w, to, i, &add, NULL));
        fences = fences && goes_on(f, ferry_window_fence(w));
        int error = ferry_window_lock(w, (ferry_window_lock_kind)(i % 2), to);
        (void)goes_on(f, error);
        if (error != 0)
            continue;
        (void)goes_on(f, ferry_window_put(w, to, 2 * i, &value, NULL));
        (void)goes_on(f, ferry_window_fetch(w, to, 0, &add, &old, NULL));
        (void)goes_on(f, ferry_window_unlock(w, to));
    }
    return fences;
}

/* The rank that dies, drawn by rank 0. It may die before all others have left the barrier. */
static int draw_victim(ferry *f)
{
    int victim = getpid() % ferry_ranks(f);
    CHECK(f, ferry_broadcast(f, 0, &victim, sizeof(victim)) == 0);
    int error = ferry_barrier(f);
    CHECK(f, error == 0 || error == FERRY_EPEER);
    if (ferry_rank(f) == victim)
        die_soon(f);
    return victim;
}

/* One epoch of post and start between two ranks; the error that any of its calls tells. */
static int trade(ferry *f, ferry_window *w, int other)
{
    int error = ferry_window_post(w, &other, 1);
    if (error != 0)
        return error;
    error = ferry_window_start(w, &other, 1);
    if (error == 0) {
        error = ferry_window_put(w, other, 3, &value, NULL);
        CHECK(f, error == 0 || error == FERRY_EPEER);
        error = ferry_window_complete(w);
    }
    const int later = ferry_window_wait(w);
    return error != 0 ? error : later;
}

/* Pairs trade: that of the victim learns of the death, the others of nothing. */
static void in_trades(ferry *f, ferry_window *w)
{
    enum { TRADES = 20 };
    const int victim = draw_victim(f), other = ferry_rank(f) ^ 1;
    const bool lives = victim != other && victim != ferry_rank(f);
    int error = 0;
    for (int i = 0; error == 0 && (!lives || i < TRADES); i++)
        error = trade(f, w, other);
    CHECK(f, error == (lives ? 0 : FERRY_EPEER));
}

/* The death of the victim does not hide that a get from rank 1 has failed. After a quiescence the
 * others go on with the window. */
static void with_two_locks(ferry *f, ferry_window *w, int victim)
{
    char little[sizeof(one) / 2];
    const ferry_window_target target = {little, sizeof(little), NULL};
    if (ferry_rank(f) == 1) {
        CHECK(f, ferry_window_lock(w, FERRY_WINDOW_SHARED, 1) == 0);
        CHECK(f, ferry_window_put(w, 1, 0, &value, NULL) == 0);
        CHECK(f, ferry_window_unlock(w, 1) == 0);
    }
    CHECK(f, ferry_barrier(f) == 0);
    if (ferry_rank(f) == 0) {
        CHECK(f, ferry_window_lock(w, FERRY_WINDOW_SHARED, 1) == 0);
        CHECK(f, ferry_window_lock(w, FERRY_WINDOW_SHARED, victim) == 0);
        CHECK(f, ferry_window_get(w, 1, 0, &target, NULL) == 0);
    }
    while (!ferry_peer_is_gone(f, victim))
        CHECK(f, ferry_wait(f, 1000000) >= 0);
    if (ferry_rank(f) == 0) {
        CHECK(f, ferry_window_unlock(w, victim) == FERRY_EPEER);
        CHECK(f, ferry_window_unlock(w, 1) == FERRY_ETOOLONG);
    }
    CHECK(f, ferry_quiesce(f) == 0);
    CHECK(f, ferry_window_fence(w) == 0);
}

/* No rank closes while others still make collective calls: those would differ. */
static int end_together(ferry *f)
{
    (void)goes_on(f, ferry_quiesce(f));
    return 0;
}

static int rank_main(ferry *f, int argc, char **argv)
{
    const int mode = argc > 1 ? atoi(argv[1]) : 0, victim = ferry_ranks(f) - 1;
    ferry_window *w;
    CHECK(f, survive_deaths(f) == 0);
    int error = ferry_window_create(f, NULL, &w);
    (void)goes_on(f, error);
    if (error != 0)
        return end_together(f);
    if (mode == 4)
        (void)at_any_time(f, w);
    else if (mode == 7)
        for (int drawn = draw_victim(f); drawn >= 0 && at_any_time(f, w);)
            ;
    else if (mode == 8)
        in_trades(f, w);
    else if (mode == 9)
        with_two_locks(f, w, victim);
    else if (mode >= 5)
        in_put(f, w, victim, mode == 6);
    else if (mode == 0)
        in_fence(f, w, victim);
    else if (mode == 1)
        with_lock(f, w, victim);
    else
        in_exposure(f, w, victim, mode == 3);
    const int freed = ferry_window_free(w);
    CHECK(f, mode == 9 ? freed == 0 : freed == FERRY_EPEER || (mode == 4 && freed == 0));
    return mode == 4 ? end_together(f) : 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
