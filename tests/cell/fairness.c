/* Goal: of many parcels that half of the ranks add to one cell and the other half take, none is
 * lost, none comes twice, and those of one producer come in order. Method: a parcel has a ticket,
 * drawn from a counter that all share, and its producer's number; whoever takes it marks the ticket
 * in a shared set of bits. Prints operations per second, and how evenly producers and consumers
 * came to turn: the least and the most that one did, and Jain's index of them (1: all the same).
 * The number of parcels is the argument; FERRY_RANKS says how many ranks. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <ferry/ferry.h>

#include "../support/check.h"

enum { LIMIT = 1024, PATIENCE_NS = 1000000 };

typedef struct shared {
    uint64_t count;
    _Alignas(64) _Atomic uint64_t drawn;
    _Alignas(64) _Atomic uint64_t taken;
    _Atomic uint64_t marks[];
} shared;

typedef struct content {
    uint64_t ticket;
    uint64_t producer;
} content;

static shared *share(ferry *f, uint64_t count)
{
    void *address = NULL;
    size_t bytes = sizeof(shared) + (count / 64 + 1) * sizeof(uint64_t);
    if (ferry_rank(f) == 0) {
        check(f, ferry_alloc(f, bytes, &address) == 0, "alloc");
        memset(address, 0, bytes);
        ((shared *)address)->count = count;
        check(f, ferry_cell_limit_set(f, 0, LIMIT) == 0, "limit");
    }
    check(f, ferry_broadcast(f, 0, &address, sizeof address) == 0, "broadcast");
    return address;
}

static uint64_t produce(ferry *f, shared *s)
{
    uint64_t done = 0;
    for (;; done++) {
        ferry_parcel parcel;
        void *data;
        content own = {.producer = (uint64_t)ferry_rank(f)};
        /* relaxed: a ticket is nobody's before, and says nothing of other memory */
        own.ticket = atomic_fetch_add_explicit(&s->drawn, 1, memory_order_relaxed);
        if (own.ticket >= s->count)
            return done;
        check(f, ferry_parcel_create(f, sizeof own, &parcel, &data) == 0, "create");
        memcpy(data, &own, sizeof own);
        check(f, ferry_cell_enqueue(f, (ferry_cell){0, 0}, parcel, FERRY_GIVE, FERRY_FOREVER) == 0,
              "enq");
    }
}

static uint64_t consume(ferry *f, shared *s)
{
    uint64_t done = 0;
    uint64_t *next = calloc((size_t)ferry_ranks(f), sizeof *next);
    check(f, next != NULL, "no memory");
    while (atomic_load_explicit(&s->taken, memory_order_relaxed) < s->count) {
        ferry_parcel parcel;
        int error = ferry_cell_dequeue(f, (ferry_cell){0, 0}, &parcel, PATIENCE_NS);
        if (error == FERRY_ETIMEDOUT)
            continue;
        check(f, error == 0, "deq");
        content it;
        memcpy(&it, ferry_parcel_data(f, parcel, NULL), sizeof it);
        check(f, it.ticket < s->count && it.producer < (uint64_t)ferry_ranks(f), "strange data");
        check(f, it.ticket >= next[it.producer], "parcels of one producer came out of order");
        next[it.producer] = it.ticket + 1;
        uint64_t bit = UINT64_C(1) << it.ticket % 64;
        /* relaxed: counted after a barrier */
        uint64_t before =
            atomic_fetch_or_explicit(&s->marks[it.ticket / 64], bit, memory_order_relaxed);
        check(f, (before & bit) == 0, "a parcel was taken twice");
        check(f, ferry_parcel_release(f, parcel) == 0, "release");
        atomic_fetch_add_explicit(&s->taken, 1, memory_order_relaxed);
        done++;
    }
    free(next);
    return done;
}

static void say_shares(const char *who, const uint64_t *done, int count)
{
    double sum = 0, squares = 0;
    uint64_t least = done[0], most = done[0];
    for (int i = 0; i < count; i++) {
        sum += (double)done[i];
        squares += (double)done[i] * (double)done[i];
        least = done[i] < least ? done[i] : least;
        most = done[i] > most ? done[i] : most;
    }
    printf("%s: least %.3f, most %.3f of an even share; Jain's index %.4f\n", who,
           (double)least * count / sum, (double)most * count / sum, sum * sum / (count * squares));
}

static void say(const shared *s, const uint64_t *done, int ranks, uint64_t ns)
{
    printf("%llu parcels through one cell, %d ranks: %.3f million operations per second\n",
           (unsigned long long)s->count, ranks, 2e3 * (double)s->count / (double)ns);
    say_shares("producers", done, ranks / 2);
    say_shares("consumers", done + ranks / 2, ranks - ranks / 2);
}

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int run(ferry *f, int argc, char **argv)
{
    int ranks = ferry_ranks(f);
    shared *s = share(f, argc > 1 ? strtoull(argv[1], NULL, 10) : 100000);
    uint64_t *all = calloc((size_t)ranks, sizeof *all);
    check(f, all != NULL && ranks >= 2, "two ranks at least are needed");
    check(f, ferry_barrier(f) == 0, "barrier");
    uint64_t start = now_ns();
    uint64_t done = ferry_rank(f) < ranks / 2 ? produce(f, s) : consume(f, s);
    check(f, ferry_barrier(f) == 0, "barrier");
    uint64_t end = now_ns();
    check(f, ferry_allgather(f, &done, sizeof done, all) == 0, "allgather");
    check(f, ferry_parcel_count(f) == 0, "parcels are lost");
    for (uint64_t i = 0; ferry_rank(f) == 0 && i < s->count; i++)
        check(f, atomic_load(&s->marks[i / 64]) >> i % 64 & 1, "a parcel was never taken");
    if (ferry_rank(f) == 0)
        say(s, all, ranks, end - start);
    check(f, ferry_barrier(f) == 0, "barrier");
    if (ferry_rank(f) == 0)
        check(f, ferry_free(f, s) == 0, "free");
    free(all);
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, run, NULL);
}
