/* Goal: a quiescence ends when all messages are handled, and not before; a collective gives what
 * all ranks have put in. Method: many short rounds. In each, every rank sends a few messages, whose
 * handlers send more, and calls ferry_quiesce, some of them late. The count of what was sent and
 * handled stands outside the ranks. A barrier or a sum follows, in which no rank may be a round
 * ahead. For the simulator alone. Run as ferry sim -n N rounds. */
#include "oracle.h"

enum { ROUNDS = 60, MESSAGES = 3, HOPS = 4, LATE_NS = 2000 };

/* All ranks' truth. */
static struct {
    uint64_t sent[ROUNDS], handled[ROUNDS], come[ROUNDS];
} truth;

typedef struct account {
    uint64_t random, common; /* of this rank; the same on all */
    ferry_handler request;
} account;

static void send_on(ferry *f, account *a, uint64_t round, uint64_t hops)
{
    const ferry_message message = {.handler = a->request, .word_count = 2, .words = {round, hops}};
    truth.sent[round]++;
    must(f, ferry_request_send(f, (int)draw(&a->random, (uint64_t)ferry_ranks(f)), &message, NULL),
         "send");
}

static void on_request(ferry *f, int source, const ferry_message *message)
{
    (void)source;
    account *a = ferry_user_data(f);
    uint64_t round = message->words[0], hops = message->words[1];
    if (hops > 0)
        send_on(f, a, round, draw(&a->random, hops));
    truth.handled[round]++;
}

static void send_and_quiesce(ferry *f, account *a, uint64_t round)
{
    for (uint64_t i = draw(&a->random, MESSAGES + 1); i > 0; i--)
        send_on(f, a, round, draw(&a->random, HOPS + 1));
    if (draw(&a->random, 3) == 0)
        ferry_compute(f, (double)draw(&a->random, LATE_NS) * 1e-9);
    truth.come[round]++;
    must(f, ferry_quiesce(f), "quiesce");
    if (truth.come[round] != (uint64_t)ferry_ranks(f))
        wrong(f, "a quiescence ended without a rank", round, truth.come[round]);
    if (truth.sent[round] != truth.handled[round])
        wrong(f, "messages are left", truth.sent[round], truth.handled[round]);
}

static void combine(ferry *f, account *a)
{
    int64_t n = ferry_ranks(f), first = (int64_t)draw(&a->common, 1000);
    int64_t sum = 0, expected = n * first + n * (n - 1) / 2, value = first + ferry_rank(f);
    if (draw(&a->common, 2) == 0) {
        must(f, ferry_barrier(f), "barrier");
        return;
    }
    must(f, ferry_allreduce(f, FERRY_INT64, FERRY_SUM, &value, &sum, 1), "allreduce");
    if (sum != expected)
        wrong(f, "the sum is wrong", (uint64_t)sum, (uint64_t)expected);
}

static int rank_main(ferry *f, int argc, char **argv)
{
    (void)argc;
    (void)argv;
    account a = {.random = first_random(ferry_rank(f)), .common = first_random(-1)};
    ferry_user_data_set(f, &a);
    must(f, ferry_handler_register(f, "request", on_request, &a.request), "register");
    for (uint64_t round = 0; round < ROUNDS; round++) {
        send_and_quiesce(f, &a, round);
        for (uint64_t calls = draw(&a.common, 3); calls > 0; calls--)
            combine(f, &a);
    }
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
