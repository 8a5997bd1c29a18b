/* Goal: quiescence needs two waves in a row that are balanced, and by the same sum. One wave alone,
 * and two by different sums, may be balanced while a message is in flight. Method: messages that
 * cross waves, each at its time (crossing.net). Rank 4 holds waves up: it computes from 10 ms to 30
 * and from 31 to 51, after it asked rank 1 and before messages come there at 20 and at 40 ms. So
 * rank 1 counts what it sends then in the next wave only. But rank 4 immediately counts that it has
 * handled most of that: 4 messages are sent at the start, 4 were handled by 30 ms; 8 and 8 by 51.
 * One message of the rest is in flight until 220 ms. For the simulator alone.
 *
 * Run as ferry sim -n 5 --net crossing.net crossing. */
#include <stdio.h>
#include <stdlib.h>

#include <ferry/ferry.h>

enum { WRONG_STATUS = 3, BUSY = 4, LATE = 3 };

/* The actions of a handler. */
enum { COMPUTE_MS, SEND_BUSY, SEND_LATE, WORDS };

static int under_way; /* on any rank */

static void send(ferry *f, ferry_handler handler, int rank, const uint64_t words[WORDS])
{
    ferry_message message = {.handler = handler, .word_count = WORDS};
    for (int i = 0; i < WORDS; i++)
        message.words[i] = words[i];
    under_way++;
    if (ferry_request_send(f, rank, &message, NULL) != 0)
        exit(WRONG_STATUS);
}

static void on_request(ferry *f, int source, const ferry_message *message)
{
    static const uint64_t nothing[WORDS] = {0};
    (void)source;
    for (uint64_t i = 0; i < message->words[SEND_BUSY]; i++)
        send(f, message->handler, BUSY, nothing);
    for (uint64_t i = 0; i < message->words[SEND_LATE]; i++)
        send(f, message->handler, LATE, nothing);
    ferry_compute(f, (double)message->words[COMPUTE_MS] / 1e3);
    under_way--;
}

static int rank_main(ferry *f, int argc, char **argv)
{
    static const uint64_t busy[WORDS] = {20, 0, 0}, first[WORDS] = {0, 3, 1},
                          second[WORDS] = {0, 2, 0};
    ferry_handler handler;
    (void)argc, (void)argv;
    if (ferry_handler_register(f, "on_request", on_request, &handler) != 0)
        return WRONG_STATUS;
    if (ferry_rank(f) == 2 || ferry_rank(f) == 3) {
        send(f, handler, BUSY, busy);
        send(f, handler, 1, ferry_rank(f) == 2 ? first : second);
    }
    if (ferry_quiesce(f) != 0 || under_way != 0) {
        fprintf(stderr, "crossing: rank %d: %d in flight at %.1f ms\n", ferry_rank(f), under_way,
                (double)ferry_now(f) / 1e6);
        return WRONG_STATUS;
    }
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
