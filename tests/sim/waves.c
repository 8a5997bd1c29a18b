/* Goal: while a message is long on its way, waves of termination do not follow each other without
 * end. The announcement is not late for that: at most 4 waves begin once nothing is left. Method:
 * chains of requests, and one from the first rank to the last, which may be far away (waves.net).
 * The account of what is in flight stands outside the ranks; the count of waves is read from the
 * root. For the simulator alone.
 *
 * Run as ferry sim -n N waves CHAINS WAVES_MAX LATE_NS_MAX. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <ferry/ferry.h>

#include "core/rank.h"

enum { WAVES_AFTER_MAX = 4, ROUNDS = 3, LIFE = 5, WRONG_STATUS = 3 };

/* All ranks' truth. */
static struct {
    ferry *root;
    ferry_handler handler;
    uint64_t random, under_way;
    uint32_t begun;    /* waves, when something was last in flight or outside ferry_quiesce */
    uint64_t ended_ns; /* when that was */
} truth;

static void note(ferry *f)
{
    truth.begun = truth.root->quiescence.begun;
    truth.ended_ns = ferry_now(f);
}

static uint64_t draw(uint64_t bound)
{
    truth.random = truth.random * 6364136223846793005u + 1442695040888963407u;
    return (truth.random >> 33) % bound;
}

static void send_on(ferry *f, int target, uint64_t life)
{
    const ferry_message message = {.handler = truth.handler, .word_count = 1, .words = {life}};
    truth.under_way++;
    if (ferry_request_send(f, target, &message, NULL) != 0)
        exit(WRONG_STATUS);
}

static void on_request(ferry *f, int source, const ferry_message *message)
{
    (void)source;
    if (message->words[0] > 0 && draw(3) > 0)
        send_on(f, (int)draw((uint64_t)ferry_ranks(f)), message->words[0] - 1);
    truth.under_way--;
    note(f);
}

static int check(ferry *f, uint32_t before, uint32_t waves_max, uint64_t late_ns_max)
{
    uint32_t waves = truth.root->quiescence.begun - before;
    uint32_t after = truth.root->quiescence.begun - truth.begun;
    uint64_t late_ns = ferry_now(f) - truth.ended_ns;
    printf("%" PRIu32 " waves, %" PRIu32 " after the end, announced %" PRIu64 " ns behind it\n",
           waves, after, late_ns);
    if (truth.under_way == 0 && after <= WAVES_AFTER_MAX && waves <= waves_max &&
        late_ns <= late_ns_max)
        return 0;
    fprintf(stderr,
            "oracle: %" PRIu64 " in flight; at most %d waves after the end, %" PRIu32
            " in all, and %" PRIu64 " ns behind\n",
            truth.under_way, WAVES_AFTER_MAX, waves_max, late_ns_max);
    return WRONG_STATUS;
}

static int rank_main(ferry *f, int argc, char **argv)
{
    if (argc != 4)
        return 2;
    uint64_t chains = strtoull(argv[1], NULL, 10);
    const char *seed = getenv("FERRY_SIM_SEED");
    int status = 0;
    if (ferry_rank(f) == 0) {
        truth.root = f;
        truth.random = seed == NULL ? 0 : strtoull(seed, NULL, 10);
    }
    if (ferry_handler_register(f, "request", on_request, &truth.handler) != 0)
        return WRONG_STATUS;
    for (int round = 0; round < ROUNDS && status == 0; round++) {
        if (ferry_barrier(f) != 0)
            return WRONG_STATUS;
        uint32_t before = truth.root->quiescence.begun;
        for (uint64_t i = 0; i < chains; i++)
            send_on(f, (int)draw((uint64_t)ferry_ranks(f)), LIFE);
        if (ferry_rank(f) == 0)
            send_on(f, ferry_ranks(f) - 1, 0);
        note(f);
        if (ferry_quiesce(f) != 0)
            return WRONG_STATUS;
        if (ferry_rank(f) == 0)
            status =
                check(f, before, (uint32_t)strtoul(argv[2], NULL, 10), strtoull(argv[3], NULL, 10));
    }
    return status;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
