/* How operations on cells end where memory is short, and ranks leave or close.
 *
 * Goal: every operation ends once, and no rank waits forever. Method, by the first argument:
 *
 * - answer: rank 0 has no memory for the answer to a read that does not wait, behind dequeues that
 *   do. It answers once there is memory. Needs a heap of 1 MiB.
 * - leave: rank 1 answers some of the others' dequeues and leaves. Its answers count, although the
 *   others learn early that it has gone.
 * - close, close-leave: a tracked enqueue on a full cell is cancelled, here and on another rank.
 * - wrong: calls with wrong sizes and holds are refused, and lose nothing. */
#include <string.h>

#include <ferry/ferry.h>

#include "../support/check_at.h"
#include "../support/survive.h"

enum { PARCEL_BYTES = 300000, FILLERS = 64, DEQUEUES = 40 };

/* In the simulator all ranks share it; otherwise each has its own. */
typedef struct shared {
    ferry_handler go_on;
    bool has_word[2];
    int started, ended;
} shared;

static shared *shared_of(ferry *f)
{
    return ferry_user_data(f);
}

static void go_on(ferry *f, int source, const ferry_message *message)
{
    (void)source, (void)message;
    shared_of(f)->has_word[ferry_rank(f)] = true;
}

static void await_word(ferry *f)
{
    while (!shared_of(f)->has_word[ferry_rank(f)])
        CHECK(f, ferry_wait(f, FERRY_FOREVER) >= 0);
}

static void tell(ferry *f, int rank)
{
    const ferry_message message = {.handler = shared_of(f)->go_on};
    CHECK(f, ferry_request_send(f, rank, &message, NULL) == 0);
}

static void fill_heap_and_answer(ferry *f, ferry_cell cell)
{
    void *fillers[FILLERS];
    int count = 0;
    ferry_parcel parcel;
    CHECK(f, ferry_parcel_create(f, PARCEL_BYTES, &parcel, NULL) == 0);
    for (size_t bytes = 1 << 18; bytes >= 1 << 12; bytes /= 2)
        while (count < FILLERS && ferry_alloc(f, bytes, &fillers[count]) == 0)
            count++;
    CHECK(f, ferry_cell_enqueue(f, cell, parcel, FERRY_GIVE, 0) == 0);
    tell(f, 1);
    ferry_compute(f, 0.01);
    for (int i = 0; i < 100; i++) /* takes in the read, which it cannot answer */
        (void)ferry_poll(f);
    for (int i = 0; i < count; i++)
        CHECK(f, ferry_free(f, fillers[i]) == 0);
    await_word(f);
}

static void answer_late(ferry *f)
{
    const ferry_cell cell = {.rank = 0};
    ferry_parcel parcel, waiting[2];
    ferry_op op[2];
    for (int i = 0; i < 2 && ferry_rank(f) == 1; i++) {
        ferry_track track = FERRY_TRACK_DEFAULTS;
        track.op = &op[i];
        CHECK(f, ferry_cell_dequeue_start(f, cell, &waiting[i], &track) == 0);
    }
    CHECK(f, ferry_barrier(f) == 0);
    if (ferry_rank(f) == 0) {
        fill_heap_and_answer(f, cell);
    } else {
        await_word(f);
        int error = ferry_cell_read(f, cell, &parcel, 0);
        CHECK(f, error == 0 || error == FERRY_EAGAIN);
        CHECK(f, error != 0 || ferry_parcel_release(f, parcel) == 0);
        tell(f, 0);
        for (int i = 0; i < 2; i++) {
            (void)ferry_op_cancel(f, &op[i]);
            CHECK(f, waiting[i].word == 0 || ferry_parcel_release(f, waiting[i]) == 0);
        }
    }
    CHECK(f, ferry_quiesce(f) == 0);
}

static void answer_and_leave(ferry *f)
{
    const ferry_cell cell = {.rank = 1};
    ferry_parcel parcel, taken[DEQUEUES];
    ferry_op op[DEQUEUES];
    CHECK(f, survive_deaths(f) == 0);
    for (int i = 0; i < DEQUEUES && ferry_rank(f) == 1; i++)
        CHECK(f, ferry_parcel_create(f, 300, &parcel, NULL) == 0 &&
                     ferry_cell_enqueue(f, cell, parcel, FERRY_GIVE, 0) == 0);
    CHECK(f, ferry_barrier(f) == 0);
    if (ferry_rank(f) == 1) {
        for (int i = 0; i < 3; i++)
            (void)ferry_poll(f);
        CHECK(f, ferry_leave(f) == 0);
        return;
    }
    int started = 0;
    for (; started < DEQUEUES; started++) {
        ferry_track track = FERRY_TRACK_DEFAULTS;
        track.op = &op[started];
        if (ferry_cell_dequeue_start(f, cell, &taken[started], &track) != 0)
            break; /* rank 1 has gone */
        if (started % 4 == 0)
            (void)ferry_poll(f);
    }
    for (int i = 0; i < started; i++) {
        int error = ferry_op_wait(f, &op[i]);
        CHECK(f, error == 0 || error == FERRY_EPEER);
        CHECK(f, (error == 0) == (taken[i].word != 0));
        CHECK(f, error != 0 || ferry_parcel_release(f, taken[i]) == 0);
    }
    CHECK(f, ferry_quiesce(f) == 0);
}

static void on_end(ferry *f, void *arg, const ferry_receipt *receipt)
{
    (void)arg;
    CHECK(f, receipt->error == FERRY_ECANCELED);
    shared_of(f)->ended++;
}

static void enqueue_in_vain(ferry *f, bool leaves)
{
    ferry_cell cell = {.rank = ferry_rank(f)};
    ferry_parcel parcel;
    CHECK(f, ferry_cell_limit_set(f, 0, 1) == 0);
    CHECK(f, ferry_parcel_create(f, 8, &parcel, NULL) == 0);
    CHECK(f, ferry_cell_enqueue(f, cell, parcel, FERRY_GIVE, 0) == 0);
    CHECK(f, ferry_barrier(f) == 0);
    for (cell.rank = 0; cell.rank < ferry_ranks(f); cell.rank++) {
        ferry_track track = FERRY_TRACK_DEFAULTS;
        track.completed = track.failed = on_end;
        CHECK(f, ferry_parcel_create(f, 8, &parcel, NULL) == 0);
        CHECK(f, ferry_cell_enqueue_start(f, cell, parcel, FERRY_GIVE, &track) == 0);
        shared_of(f)->started++;
    }
    CHECK(f, !leaves || ferry_leave(f) == 0);
}

static void call_wrongly(ferry *f)
{
    const ferry_cell cell = {.rank = ferry_rank(f)};
    ferry_layout layout = {.parcel_bytes = 4};
    char text[16] = "";
    size_t bytes = 3;
    ferry_parcel parcel;
    CHECK(f, ferry_cell_send(f, cell, "abcdefgh", 8, &layout, 0) == FERRY_EINVAL);
    CHECK(f, strstr(ferry_error_message(f), "4 bytes") != NULL);
    layout.parcel_bytes = 8;
    CHECK(f, ferry_cell_send(f, cell, "abcdefgh", 8, &layout, 0) == 0);
    CHECK(f, ferry_cell_receive(f, cell, text, &bytes, NULL, 0) == FERRY_ETOOLONG && bytes == 8);
    CHECK(f, ferry_parcel_create(f, 1, &parcel, NULL) == 0);
    CHECK(f, ferry_cell_enqueue(f, cell, parcel, (ferry_hold)7, 0) == FERRY_EINVAL);
    CHECK(f, strstr(ferry_error_message(f), "7") != NULL);
    CHECK(f, ferry_parcel_release(f, parcel) == 0);
}

static int rank_main(ferry *f, int argc, char **argv)
{
    CHECK(f, argc == 2);
    const char *what = argv[1];
    CHECK(f, ferry_handler_register(f, "go on", go_on, &shared_of(f)->go_on) == 0);
    if (strcmp(what, "answer") == 0)
        answer_late(f);
    else if (strcmp(what, "leave") == 0)
        answer_and_leave(f);
    else if (strcmp(what, "wrong") == 0)
        call_wrongly(f);
    else
        enqueue_in_vain(f, strcmp(what, "close-leave") == 0);
    return 0;
}

int main(int argc, char **argv)
{
    shared s = {0};
    ferry_options options = FERRY_OPTIONS_DEFAULTS;
    options.user_data = &s;
    int status = ferry_main(argc, argv, rank_main, &options);
    return s.started == s.ended ? status : 1;
}
