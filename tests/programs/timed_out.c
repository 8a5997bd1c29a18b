/* Goal: an operation that was started reports once that its data may be reused, and its receipt
 * names what was sent, also if its timeout passes while the call waits for room.
 * Method: rank 0 sends requests, two-sided messages and puts that time out soon to rank 1. Each
 * has memory of its own, which is freed when it is reported. Rank 1 has little room, and is slow.
 * Some operations must have timed out, or the test has shown nothing. */
#include <stdio.h>
#include <stdlib.h>

#include <ferry/ferry.h>
#include <ferry/memory.h>
#include <ferry/two_sided.h>

#include "../mover/check_that.h"

enum { ROUNDS = 60, KINDS = 3, BYTES = 48 };

typedef struct transfer {
    void *data; /* NULL: it has been reported that it may be reused */
    int kind, ends, error;
} transfer;

typedef struct session {
    ferry_handler handler;
    transfer transfers[ROUNDS][KINDS];
    int ends;
    char *room; /* on rank 1 */
} session;

static void on_request(ferry *f, int source, const ferry_message *message)
{
    (void)f, (void)source, (void)message;
}

static void on_submitted(ferry *f, void *arg, const ferry_receipt *receipt)
{
    transfer *t = arg;
    CHECK(t->data != NULL);
    CHECK(receipt->local_address == t->data);
    free(t->data);
    t->data = NULL;
}

static void on_end(ferry *f, void *arg, const ferry_receipt *receipt)
{
    session *s = ferry_user_data(f);
    transfer *t = arg;
    t->ends++;
    s->ends++;
    t->error = receipt->error;
    CHECK(t->kind != 0 || receipt->handler.index == s->handler.index);
    CHECK(t->error == 0 || t->error == FERRY_ETIMEDOUT);
}

static void transfer_start(ferry *f, session *s, transfer *t, int kind)
{
    ferry_track track = FERRY_TRACK_DEFAULTS;
    ferry_message message = {.handler = s->handler, .size_bytes = BYTES};
    track.submitted = on_submitted;
    track.completed = track.failed = on_end;
    track.submitted_arg = track.completed_arg = track.failed_arg = t;
    track.timeout_ns = 1000 * (uint64_t)(1 + kind + 7 * (s->ends % 9));
    *t = (transfer){.kind = kind, .data = calloc(1, BYTES)};
    CHECK(t->data != NULL);
    message.data = t->data;
    const int error = kind == 0   ? ferry_request_send(f, 1, &message, &track)
                      : kind == 1 ? ferry_send(f, 1, 5, t->data, BYTES, &track)
                                  : ferry_put(f, 1, s->room, t->data, BYTES, &track);
    CHECK(error == 0);
}

static void look(ferry *f, const session *s)
{
    int late = 0;
    for (int i = 0; i < ROUNDS; i++)
        for (int k = 0; k < KINDS; k++) {
            const transfer *t = &s->transfers[i][k];
            CHECK(t->ends == 1);
            CHECK(t->data == NULL);
            late += t->error != 0;
        }
    CHECK(late > 0);
}

static int rank_main(ferry *f, int argc, char **argv)
{
    (void)argc, (void)argv;
    char room[BYTES];
    session *s = calloc(1, sizeof *s);
    CHECK(s != NULL);
    ferry_user_data_set(f, s);
    CHECK(ferry_handler_register(f, "on_request", on_request, &s->handler) == 0);
    s->room = room;
    CHECK(ferry_memory_register(f, room, sizeof room) == 0);
    CHECK(ferry_broadcast(f, 1, &s->room, sizeof s->room) == 0);
    for (int i = 0; i < ROUNDS && ferry_rank(f) == 0; i++)
        for (int k = 0; k < KINDS; k++)
            transfer_start(f, s, &s->transfers[i][k], k);
    CHECK(ferry_quiesce(f) == 0);
    /* Nobody receives the two-sided messages: they time out in polls. */
    while (ferry_rank(f) == 0 && s->ends < ROUNDS * KINDS)
        CHECK(ferry_wait(f, 1000) >= 0);
    if (ferry_rank(f) == 0)
        look(f, s);
    CHECK(ferry_quiesce(f) == 0);
    CHECK(ferry_memory_unregister(f, room) == 0);
    free(s);
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
