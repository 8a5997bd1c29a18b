/* Goal: a rank leaves a quiescence that has ended, although others send to it without a pause.
 * Method: in each round one rank is a target. The others leave the quiescence, and send to the
 * target, whose handler computes, until it has left too. For the simulator and for
 * tests/interleave. Run as ferry sim -n N restless. */
#include "oracle.h"

enum { ROUNDS = 8, LIMIT_NS = 200000000 };

/* The target of a round has left its quiescence. */
static bool left[ROUNDS];

static void on_request(ferry *f, int source, const ferry_message *message)
{
    (void)source, (void)message;
    ferry_compute(f, 2e-6);
}

static void disturb(ferry *f, ferry_handler handler, int round)
{
    const ferry_message message = {.handler = handler};
    uint64_t until_ns = ferry_now(f) + LIMIT_NS;
    while (!left[round]) {
        int error = ferry_request_send(f, round % ferry_ranks(f), &message, NULL);
        if (error != FERRY_EAGAIN)
            must(f, error, "send");
        if (ferry_now(f) > until_ns)
            wrong(f, "a rank stays in a quiescence that has ended", (uint64_t)round, 0);
    }
}

static int rank_main(ferry *f, int argc, char **argv)
{
    (void)argc, (void)argv;
    uint64_t random = first_random(ferry_rank(f));
    ferry_handler request;
    must(f, ferry_handler_register(f, "request", on_request, &request), "register");
    for (int round = 0; round < ROUNDS; round++) {
        if (draw(&random, 2) == 0)
            ferry_compute(f, (double)draw(&random, 3000) * 1e-9);
        must(f, ferry_quiesce(f), "quiesce");
        if (round % ferry_ranks(f) == ferry_rank(f))
            left[round] = true;
        else
            disturb(f, request, round);
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (setenv("FERRY_COMPUTE", "spin", 0) != 0)
        return 2;
    return ferry_main(argc, argv, rank_main, NULL);
}
