/* Ask: a request that is answered by a request, and messages that meet a receive.
 *
 * Each rank asks the next one for a square. The handler there answers. Then the other ranks send
 * what they got to rank 0, which receives it rank by rank.
 *
 *     cc ask.c $(pkg-config --cflags --libs ferry) -o ask
 *     ferry run -n 4 ./ask */
#include <stdio.h>

#include <ferry/ferry.h>

enum { TAG_RESULT = 1 };

typedef struct state {
    ferry_handler question, answer;
    uint64_t square;
    bool answered;
} state;

static void check(ferry *f, int error)
{
    if (error < 0)
        ferry_abort(f, 1, ferry_error_message(f));
}

static void on_question(ferry *f, int source, const ferry_message *message)
{
    const state *s = ferry_user_data(f);
    uint64_t n = message->words[0];
    const ferry_message reply = {.handler = s->answer, .word_count = 1, .words = {n * n}};
    check(f, ferry_request_send(f, source, &reply, NULL));
}

static void on_answer(ferry *f, int source, const ferry_message *message)
{
    (void)source;
    state *s = ferry_user_data(f);
    s->square = message->words[0];
    s->answered = true;
}

/* Receives one number from each other rank. */
static void collect(ferry *f)
{
    for (int rank = 1; rank < ferry_ranks(f); rank++) {
        uint64_t square;
        ferry_op op;
        ferry_track track = FERRY_TRACK_DEFAULTS;
        track.op = &op;
        check(f, ferry_receive(f, rank, TAG_RESULT, &square, sizeof square, &track));
        check(f, ferry_op_wait(f, &op));
        printf("rank %d was told %d\n", rank, (int)square);
    }
}

static int rank_main(ferry *f, int argc, char **argv)
{
    (void)argc, (void)argv;
    state s = {.answered = false};
    ferry_user_data_set(f, &s);
    check(f, ferry_handler_register(f, "question", on_question, &s.question));
    check(f, ferry_handler_register(f, "answer", on_answer, &s.answer));

    int rank = ferry_rank(f), next = (rank + 1) % ferry_ranks(f);
    const ferry_message ask = {
        .handler = s.question, .word_count = 1, .words = {(uint64_t)rank + 10}};
    check(f, ferry_request_send(f, next, &ask, NULL));
    while (!s.answered)
        check(f, ferry_wait(f, FERRY_FOREVER)); /* runs handlers, also those of other ranks */

    if (rank == 0)
        collect(f);
    else
        check(f, ferry_send(f, 0, TAG_RESULT, &s.square, sizeof s.square, NULL));
    return ferry_quiesce(f) == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
