/* A newcomer that has died when the others look.
 *
 * Goal: it counts as joined and as gone again on all ranks: what it has sent is handled, operations
 * that name it end, the program hears of both, and no ferry_quiesce waits for it. Method: ranks 0
 * and 1 compute while rank 2 joins, sends and dies at 30 ms. Rank 0 sends to it between. For the
 * simulator: sim -n 2 -m 4 --faults die=2@30ms. */
#include <ferry/ferry.h>

#include "../support/check_at.h"

enum { OLD = 2, NEWCOMER = 2, REQUESTS = 10 };

typedef struct seen {
    ferry_handler note;
    int requests, joined, died, ends;
} seen;

static void on_note(ferry *f, int source, const ferry_message *message)
{
    seen *s = ferry_user_data(f);
    (void)message;
    CHECK(f, source == NEWCOMER && s->died == 0);
    s->requests++;
}

static void on_peer(ferry *f, void *arg, const ferry_peer_event *event)
{
    seen *s = arg;
    CHECK(f, event->rank == NEWCOMER);
    s->joined += event->joined;
    s->died += event->died;
}

static void on_end(ferry *f, void *arg, const ferry_receipt *receipt)
{
    seen *s = arg;
    (void)f, (void)receipt;
    s->ends++;
}

static void join_and_die(ferry *f, const ferry_message *note)
{
    for (int i = 0; i < REQUESTS; i++)
        for (int rank = 0; rank < OLD; rank++)
            CHECK(f, ferry_request_send(f, rank, note, NULL) == 0);
    ferry_compute(f, 1);
}

static void stay(ferry *f, seen *s, const ferry_message *note)
{
    ferry_track track = FERRY_TRACK_DEFAULTS;
    int first, sent = 0;
    track.completed = track.failed = on_end;
    track.completed_arg = track.failed_arg = s;
    CHECK(f, ferry_barrier(f) == 0);
    CHECK(f, ferry_rank(f) != 0 || (ferry_spawn(f, 1, NULL, &first) == 0 && first == NEWCOMER));
    ferry_compute(f, 0.01);
    if (ferry_rank(f) == 0)
        sent = ferry_request_send(f, NEWCOMER, note, &track) == 0;
    ferry_compute(f, 0.05);
    int error = ferry_quiesce(f);
    while (error == FERRY_EPEER)
        error = ferry_quiesce(f);
    CHECK(f, error == 0 && ferry_member_count(f) == OLD);
    CHECK(f, s->requests == REQUESTS && s->joined == 1 && s->died == 1 && s->ends == sent);
}

static int rank_main(ferry *f, int argc, char **argv)
{
    seen s = {0};
    ferry_message note = {.word_count = 0};
    (void)argc, (void)argv;
    ferry_user_data_set(f, &s);
    CHECK(f, ferry_peer_watch(f, on_peer, &s) == 0);
    CHECK(f, ferry_handler_register(f, "note", on_note, &s.note) == 0);
    note.handler = s.note;
    if (ferry_rank(f) == NEWCOMER)
        join_and_die(f, &note);
    else
        stay(f, &s, &note);
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
