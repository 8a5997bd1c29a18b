/* Goal: cells mean the same wherever their rank is. Method: one program, run with ranks as
 * processes and as threads, which share memory, and in the simulator, where they do not; every rank
 * works on cells of every rank. */
#include <stdlib.h>
#include <string.h>

#include <ferry/ferry.h>

#include "../support/check_at.h"

static ferry_parcel make(ferry *f, uint64_t value)
{
    ferry_parcel parcel;
    void *data;
    CHECK(f, ferry_parcel_create(f, sizeof(value), &parcel, &data) == 0);
    memcpy(data, &value, sizeof(value));
    return parcel;
}

static uint64_t value_of(ferry *f, ferry_parcel parcel)
{
    uint64_t value;
    size_t size;
    const void *data = ferry_parcel_data(f, parcel, &size);
    CHECK(f, data != NULL && size == sizeof(value));
    memcpy(&value, data, sizeof(value));
    return value;
}

static void release(ferry *f, ferry_parcel parcel)
{
    CHECK(f, ferry_parcel_release(f, parcel) == 0);
}

/* Each operation, on a cell of the next rank. */
static void each_operation(ferry *f)
{
    const ferry_cell cell = {(ferry_rank(f) + 1) % ferry_ranks(f), 20};
    ferry_parcel parcel, again;
    size_t count;
    CHECK(f, ferry_cell_dequeue(f, cell, &parcel, 0) == FERRY_EAGAIN);
    CHECK(f, ferry_cell_dequeue(f, cell, &parcel, 2000000) == FERRY_ETIMEDOUT);
    for (uint64_t i = 0; i < 10; i++)
        CHECK(f, ferry_cell_enqueue(f, cell, make(f, i), FERRY_GIVE, FERRY_FOREVER) == 0);
    CHECK(f, ferry_cell_count(f, cell, &count) == 0 && count == 10);
    CHECK(f, ferry_cell_read(f, cell, &parcel, 0) == 0 && value_of(f, parcel) == 0);
    CHECK(f, ferry_cell_read(f, cell, &again, 0) == 0);
    CHECK(f, again.word == parcel.word); /* copied once */
    release(f, parcel);
    release(f, again);
    for (uint64_t i = 0; i < 10; i++) {
        CHECK(f, ferry_cell_dequeue(f, cell, &parcel, 0) == 0 && value_of(f, parcel) == i);
        release(f, parcel);
    }
    parcel = make(f, 77);
    CHECK(f, ferry_cell_enqueue(f, cell, parcel, FERRY_KEEP, 0) == 0);
    CHECK(f, ferry_cell_write(f, cell, parcel, FERRY_KEEP) == 0);
    CHECK(f, ferry_cell_count(f, cell, &count) == 0 && count == 1);
    CHECK(f, value_of(f, parcel) == 77);
    release(f, parcel);
    CHECK(f, ferry_cell_clear(f, cell) == 0);
    CHECK(f, ferry_cell_count(f, cell, &count) == 0 && count == 0);
    CHECK(f, ferry_barrier(f) == 0);
}

/* Nobody sees another rank's writes. */
static void isolation(ferry *f)
{
    const ferry_cell cell = {0, 21};
    ferry_parcel parcel;
    void *data;
    if (ferry_rank(f) == 0)
        CHECK(f, ferry_cell_enqueue(f, cell, make(f, 5), FERRY_GIVE, 0) == 0);
    CHECK(f, ferry_barrier(f) == 0);
    CHECK(f, ferry_cell_read(f, cell, &parcel, 0) == 0);
    CHECK(f, value_of(f, parcel) == 5);
    CHECK(f, ferry_parcel_modify(f, &parcel, &data) == 0);
    *(uint64_t *)data = 100 + (uint64_t)ferry_rank(f);
    CHECK(f, ferry_barrier(f) == 0);
    ferry_parcel seen;
    CHECK(f, ferry_cell_read(f, cell, &seen, 0) == 0);
    CHECK(f, value_of(f, seen) == 5);
    CHECK(f, value_of(f, parcel) == 100 + (uint64_t)ferry_rank(f));
    release(f, seen);
    release(f, parcel);
    CHECK(f, ferry_barrier(f) == 0);
    CHECK(f, ferry_cell_clear(f, cell) == 0);
    CHECK(f, ferry_barrier(f) == 0);
}

/* Owners change what they take and add it again, in place where they can: readers that have a copy
 * see each content, and who takes it has the last one. */
static void owners_modify(ferry *f, int count)
{
    const ferry_cell own = {ferry_rank(f), 26};
    const ferry_cell other = {(ferry_rank(f) + 1) % ferry_ranks(f), 26};
    ferry_parcel parcel, read[3];
    void *data;
    CHECK(f, ferry_cell_enqueue(f, own, make(f, 0), FERRY_GIVE, 0) == 0);
    for (uint64_t i = 1; i < (uint64_t)count; i++) {
        CHECK(f, ferry_barrier(f) == 0);
        for (int r = 0; r < 3; r++) {
            CHECK(f, ferry_cell_read(f, other, &read[r], 0) == 0);
            CHECK(f, value_of(f, read[r]) == i - 1);
        }
        for (int r = 0; r < 3; r++)
            release(f, read[r]);
        CHECK(f, ferry_barrier(f) == 0);
        const ferry_cell mine = i % 3 == 0 ? other : own;
        CHECK(f, ferry_cell_dequeue(f, mine, &parcel, 0) == 0 && value_of(f, parcel) == i - 1);
        CHECK(f, ferry_parcel_modify(f, &parcel, &data) == 0);
        *(uint64_t *)data = i;
        CHECK(f, ferry_cell_enqueue(f, mine, parcel, FERRY_GIVE, FERRY_FOREVER) == 0);
    }
    CHECK(f, ferry_barrier(f) == 0);
    CHECK(f, ferry_cell_clear(f, own) == 0);
    CHECK(f, ferry_barrier(f) == 0);
}

/* The content of the parcel at the start of the operation is added, wherever the operation waits.
 */
static void waits_to_be_added(ferry *f)
{
    const ferry_cell own = {ferry_rank(f), 27};
    const ferry_cell other = {(ferry_rank(f) + 1) % ferry_ranks(f), 27};
    ferry_parcel parcel, out;
    void *data;
    ferry_op op;
    const ferry_track track = {.size = sizeof(track), .op = &op};
    CHECK(f, ferry_cell_limit_set(f, own.number, 1) == 0);
    CHECK(f, ferry_cell_enqueue(f, own, make(f, 1), FERRY_GIVE, 0) == 0);
    CHECK(f, ferry_barrier(f) == 0);
    parcel = make(f, 2);
    CHECK(f, ferry_cell_enqueue_start(f, other, parcel, FERRY_KEEP, &track) == 0);
    CHECK(f, ferry_parcel_modify(f, &parcel, &data) == 0);
    *(uint64_t *)data = 3;
    CHECK(f, ferry_barrier(f) == 0);
    CHECK(f, ferry_cell_dequeue(f, own, &out, 0) == 0 && value_of(f, out) == 1);
    release(f, out);
    CHECK(f, ferry_cell_dequeue(f, own, &out, FERRY_FOREVER) == 0 && value_of(f, out) == 2);
    release(f, out);
    CHECK(f, ferry_op_wait(f, &op) == 0);
    CHECK(f, value_of(f, parcel) == 3);
    release(f, parcel);
    CHECK(f, ferry_barrier(f) == 0);
}

/* A write, a zap and a count do not wait behind those that wait for a parcel. */
static void write_passes_waiting_takers(ferry *f)
{
    const ferry_cell cell = {(ferry_rank(f) + 1) % ferry_ranks(f), 28};
    ferry_parcel out;
    size_t count;
    ferry_op op;
    const ferry_track track = {.size = sizeof(track), .op = &op};
    CHECK(f, ferry_cell_dequeue_start(f, cell, &out, &track) == 0);
    CHECK(f, ferry_cell_count(f, cell, &count) == 0 && count == 0);
    CHECK(f, ferry_cell_clear(f, cell) == 0);
    CHECK(f, ferry_cell_write(f, cell, make(f, 8), FERRY_GIVE) == 0);
    CHECK(f, ferry_op_wait(f, &op) == 0 && value_of(f, out) == 8);
    release(f, out);
    CHECK(f, ferry_barrier(f) == 0);
}

/* A tracked deq that is given up leaves the parcel with the caller, if `out` is set, or in the
 * cell, whole, when ferry_quiesce has returned. */
static void given_up(ferry *f, int count)
{
    const ferry_cell cell = {(ferry_rank(f) + 1) % ferry_ranks(f), 29};
    ferry_parcel out, read;
    ferry_op op;
    for (int i = 0; i < count; i++) {
        const ferry_track track = {
            .size = sizeof(track), .op = &op, .timeout_ns = i % 2 == 0 ? 1000 : 0};
        CHECK(f, ferry_cell_enqueue(f, cell, make(f, (uint64_t)i), FERRY_GIVE, FERRY_FOREVER) == 0);
        CHECK(f, ferry_cell_read(f, cell, &read, 0) == 0 && value_of(f, read) == (uint64_t)i);
        CHECK(f, ferry_cell_dequeue_start(f, cell, &out, &track) == 0);
        for (int polls = i % 5; polls > 0; polls--)
            ferry_poll(f);
        CHECK(f, ferry_op_cancel(f, &op) == 0);
        if (out.word == 0) {
            CHECK(f, ferry_quiesce(f) == 0);
            CHECK(f, ferry_cell_dequeue(f, cell, &out, 0) == 0);
        } else {
            CHECK(f, ferry_quiesce(f) == 0);
        }
        CHECK(f, value_of(f, out) == (uint64_t)i && value_of(f, read) == (uint64_t)i);
        release(f, out);
        release(f, read);
    }
    CHECK(f, ferry_barrier(f) == 0);
}

/* Takes one, if there is one; returns its value, or -1. */
static int64_t take(ferry *f, ferry_cell cell, uint64_t timeout_ns)
{
    ferry_parcel parcel;
    int error = ferry_cell_dequeue(f, cell, &parcel, timeout_ns);
    CHECK(f, error == 0 || error == (timeout_ns > 0 ? FERRY_ETIMEDOUT : FERRY_EAGAIN));
    if (error != 0)
        return -1;
    int64_t value = (int64_t)value_of(f, parcel);
    release(f, parcel);
    return value;
}

/* A parcel comes back from a tracked deq that was cancelled while it was in flight. Its cell, which
 * takes one, is full again by then. */
static void given_up_full(ferry *f)
{
    const ferry_cell own = {ferry_rank(f), 30};
    const ferry_cell next = {(ferry_rank(f) + 1) % ferry_ranks(f), 30};
    ferry_parcel out = {0};
    ferry_op op;
    const ferry_track track = {.size = sizeof(track), .op = &op};
    size_t here = 1;
    CHECK(f, ferry_cell_limit_set(f, own.number, 1) == 0);
    CHECK(f, ferry_cell_enqueue(f, own, make(f, 1), FERRY_GIVE, 0) == 0);
    CHECK(f, ferry_barrier(f) == 0);
    CHECK(f, ferry_cell_dequeue_start(f, next, &out, &track) == 0);
    CHECK(f, ferry_op_cancel(f, &op) == 0);
    for (int i = 0; i < 1000 && here == 1; i++) {
        ferry_wait(f, 1000);
        CHECK(f, ferry_cell_count(f, own, &here) == 0);
    }
    if (here == 0) {
        ferry_parcel second = make(f, 2);
        int error = ferry_cell_enqueue(f, own, second, FERRY_GIVE, 0);
        CHECK(f, error == 0 || error == FERRY_EAGAIN); /* it has come back already */
        if (error != 0)
            release(f, second);
    }
    CHECK(f, ferry_quiesce(f) == 0);
    if (out.word != 0)
        release(f, out);
    while (take(f, own, 0) >= 0)
        ;
    CHECK(f, ferry_cell_limit_set(f, own.number, FERRY_CELL_LIMIT) == 0);
    CHECK(f, ferry_barrier(f) == 0);
}

/* All ranks add to and take from one cell with little room: who finds it full takes. */
static void exactly_once(ferry *f, int count)
{
    const ferry_cell cell = {ferry_ranks(f) - 1, 22};
    int64_t sum = 0, got, total = (int64_t)count * ferry_ranks(f);
    if (ferry_rank(f) == cell.rank)
        CHECK(f, ferry_cell_limit_set(f, cell.number, 3) == 0);
    CHECK(f, ferry_barrier(f) == 0);
    for (int i = 0; i < count;) {
        ferry_parcel parcel = make(f, (uint64_t)ferry_rank(f) * (uint64_t)count + (uint64_t)i);
        int error = ferry_cell_enqueue(f, cell, parcel, FERRY_GIVE, 0);
        CHECK(f, error == 0 || error == FERRY_EAGAIN);
        i += error == 0;
        if (error == 0)
            continue;
        release(f, parcel);
        if ((got = take(f, cell, 0)) >= 0)
            sum += got;
    }
    CHECK(f, ferry_barrier(f) == 0);
    while ((got = take(f, cell, 0)) >= 0)
        sum += got;
    CHECK(f, ferry_allreduce(f, FERRY_INT64, FERRY_SUM, &sum, &sum, 1) == 0);
    CHECK(f, sum == total * (total - 1) / 2);
}

/* Waiting operations get the parcels that come later, in the order in which they began to wait. */
static void waiting(ferry *f, int count)
{
    const ferry_cell cell = {0, 23};
    CHECK(f, ferry_barrier(f) == 0);
    for (int i = 0; i < count; i++) {
        if (ferry_rank(f) != 0)
            CHECK(f, take(f, cell, FERRY_FOREVER) >= 0);
        for (int r = 1; r < ferry_ranks(f) && ferry_rank(f) == 0; r++) {
            ferry_wait(f, (uint64_t)(i % 3) * 100000);
            CHECK(f, ferry_cell_enqueue(f, cell, make(f, 1), FERRY_GIVE, FERRY_FOREVER) == 0);
        }
    }
    CHECK(f, ferry_barrier(f) == 0);
}

/* Tracked operations on the cells of all ranks at once. */
static void tracked(ferry *f)
{
    enum { RANKS_MAX = 64 };
    ferry_op ops[RANKS_MAX][2];
    ferry_parcel out[RANKS_MAX];
    int ranks = ferry_ranks(f) < RANKS_MAX ? ferry_ranks(f) : RANKS_MAX;
    for (int r = 0; r < ranks; r++) {
        const ferry_cell cell = {r, 100 + ferry_rank(f)};
        const ferry_track deq = {.size = sizeof(deq), .op = &ops[r][0]};
        const ferry_track enq = {.size = sizeof(enq), .op = &ops[r][1]};
        CHECK(f, ferry_cell_dequeue_start(f, cell, &out[r], &deq) == 0);
        CHECK(f, ferry_cell_enqueue_start(f, cell, make(f, (uint64_t)r), FERRY_GIVE, &enq) == 0);
    }
    for (int r = 0; r < ranks; r++) {
        CHECK(f, ferry_op_wait(f, &ops[r][0]) == 0 && ferry_op_wait(f, &ops[r][1]) == 0);
        CHECK(f, value_of(f, out[r]) == (uint64_t)r);
        release(f, out[r]);
    }
    const ferry_cell cell = {ferry_ranks(f) - 1, 100 + ferry_rank(f)};
    const ferry_track track = {.size = sizeof(track), .op = &ops[0][0]};
    CHECK(f, ferry_cell_read_start(f, cell, &out[0], &track) == 0);
    CHECK(f, ferry_op_cancel(f, &ops[0][0]) == 0);
    /* One that was cancelled takes nothing, and nothing is lost. */
    CHECK(f, ferry_cell_dequeue_start(f, cell, &out[0], &track) == 0);
    CHECK(f, ferry_op_cancel(f, &ops[0][0]) == 0);
    CHECK(f, ferry_cell_enqueue(f, cell, make(f, 3), FERRY_GIVE, FERRY_FOREVER) == 0);
    CHECK(f, take(f, cell, FERRY_FOREVER) == 3);
    CHECK(f, ferry_barrier(f) == 0);
}

static void send_and_recv(ferry *f)
{
    const ferry_cell cell = {(ferry_rank(f) + 1) % ferry_ranks(f), 24};
    const ferry_cell own = {ferry_rank(f), 24};
    const int numbers[] = {1, 3, FERRY_INT32, 0, 0};
    int conversion, error, got[3], sent[3] = {1, -2, ferry_rank(f)};
    while ((error = ferry_conversion_find(f, ferry_rank(f), cell.rank, &conversion)) ==
           FERRY_EAGAIN)
        ferry_wait(f, 1000000);
    CHECK(f, error == 0);
    const ferry_layout layout = {numbers, 5, conversion, 0};
    CHECK(f, ferry_cell_send(f, cell, sent, sizeof(sent), &layout, FERRY_FOREVER) == 0);
    size_t size = sizeof(got);
    CHECK(f, ferry_cell_receive(f, own, got, &size, NULL, FERRY_FOREVER) == 0);
    CHECK(f, size == sizeof(got) && got[0] == 1 && got[1] == -2);
    CHECK(f, got[2] == (ferry_rank(f) + ferry_ranks(f) - 1) % ferry_ranks(f));
    CHECK(f, ferry_barrier(f) == 0);
}

typedef struct tally {
    int64_t done;
    ferry_op op;
} tally;

/* Passes on what it finds, one step less. */
static void on_token(ferry *f, ferry_cell cell, size_t count, void *arg)
{
    tally *t = arg;
    ferry_parcel parcel;
    (void)count;
    while (ferry_cell_dequeue(f, cell, &parcel, 0) == 0) {
        void *data;
        t->done++;
        CHECK(f, ferry_parcel_modify(f, &parcel, &data) == 0);
        const ferry_cell next = {(cell.rank + 1) % ferry_ranks(f), cell.number};
        const ferry_track track = FERRY_TRACK_DEFAULTS;
        if (--*(uint64_t *)data == 0)
            release(f, parcel);
        else
            CHECK(f, ferry_cell_enqueue_start(f, next, parcel, FERRY_GIVE, &track) == 0);
    }
}

static void handlers(ferry *f, uint64_t hops)
{
    tally t = {0};
    const ferry_cell own = {ferry_rank(f), 25};
    const ferry_cell_handler handler = {
        .size = sizeof(handler), .fn = on_token, .arg = &t, .high = 0};
    CHECK(f, ferry_cell_handler_set(f, own.number, &handler) == 0);
    CHECK(f, ferry_barrier(f) == 0);
    CHECK(f, ferry_cell_enqueue(f, own, make(f, hops), FERRY_GIVE, 0) == 0);
    CHECK(f, ferry_quiesce(f) == 0);
    CHECK(f, ferry_allreduce(f, FERRY_INT64, FERRY_SUM, &t.done, &t.done, 1) == 0);
    CHECK(f, t.done == (int64_t)hops * ferry_ranks(f));
    CHECK(f, ferry_cell_handler_set(f, own.number, NULL) == 0);
}

/* The last rank leaves; whoever never heard its format is not left asking for it. */
static void part(ferry *f)
{
    const int last = ferry_ranks(f) - 1;
    int conversion, error;
    if (ferry_rank(f) == last && last > 0)
        CHECK(f, ferry_leave(f) == 0);
    if (ferry_rank(f) == last)
        return;
    while (!ferry_peer_is_gone(f, last))
        ferry_wait(f, 1000000);
    while ((error = ferry_conversion_find(f, ferry_rank(f), last, &conversion)) == FERRY_EAGAIN)
        ferry_wait(f, 1000000);
    CHECK(f, error == FERRY_EPEER || (error == 0 && conversion == 0));
}

static int rank_main(ferry *f, int argc, char **argv)
{
    int count = argc > 1 ? atoi(argv[1]) : 200;
    each_operation(f);
    isolation(f);
    owners_modify(f, 12);
    waits_to_be_added(f);
    write_passes_waiting_takers(f);
    given_up(f, 20);
    given_up_full(f);
    exactly_once(f, count);
    waiting(f, count / 10);
    tracked(f);
    send_and_recv(f);
    handlers(f, (uint64_t)count);
    CHECK(f, ferry_barrier(f) == 0);
    /* A parcel that was read is kept while it may be read again. */
    size_t alive = ferry_parcel_count(f);
    CHECK(f, alive <= 2);
    CHECK(f, ferry_barrier(f) == 0);
    part(f);
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
