/* Goal: what a source has given up is not received, not even in part, while the target copies it
 * from the source's memory, or asks for it in pieces. Every other message is received.
 * Method: rank 0 offers as many blocks as the first argument says. It gives most of them up at a
 * random moment and writes nonsense over them. Rank 1 receives whole blocks alone, in order, and
 * each that was not given up. Ranks are processes: between threads the nonsense would be a race,
 * which is harmless, since what was read then is discarded. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ferry/ferry.h>

enum { KEPT = 16, WORDS = 16 * 1024, TAG = 1 };

static void need(ferry *f, bool condition, const char *what)
{
    if (condition)
        return;
    fprintf(stderr, "rank %d: %s (%s)\n", ferry_rank(f), what, ferry_error_message(f));
    exit(1);
}

static void fill(uint64_t *block, uint64_t value)
{
    for (int i = 0; i < WORDS; i++)
        block[i] = value;
}

static void offer_blocks(ferry *f, uint64_t rounds)
{
    uint64_t *block;
    uint32_t random = 1;
    need(f, ferry_alloc(f, sizeof(*block) * WORDS, (void **)&block) == 0, "no memory");
    for (uint64_t i = 1; i <= rounds; i++) {
        ferry_op op;
        const ferry_track track = {.size = sizeof(track), .op = &op};
        fill(block, i);
        need(f, ferry_send(f, 1, TAG, block, sizeof(*block) * WORDS, &track) == 0, "send");
        random = random * 1103515245u + 12345;
        for (volatile uint32_t spent = random >> 17; spent > 0; spent = spent - 1)
            continue;
        if (i % KEPT == 0)
            need(f, ferry_op_wait(f, &op) == 0, "a message failed that was not given up");
        else
            need(f, ferry_op_cancel(f, &op) == 0, "cancel");
        fill(block, UINT64_MAX);
        need(f, ferry_poll(f) >= 0, "poll");
    }
    fill(block, 0);
    need(f, ferry_send(f, 1, TAG, block, sizeof(*block) * WORDS, NULL) == 0, "the last message");
    need(f, ferry_free(f, block) == 0, "free");
}

static void receive_blocks(ferry *f, uint64_t rounds)
{
    uint64_t *block = malloc(sizeof(*block) * WORDS), last = 0;
    uint64_t kept = 0;
    need(f, block != NULL, "no memory");
    for (uint64_t value = 1; value != 0;) {
        ferry_op op;
        const ferry_track track = {.size = sizeof(track), .op = &op};
        need(f, ferry_receive(f, 0, TAG, block, sizeof(*block) * WORDS, &track) == 0, "receive");
        need(f, ferry_op_wait(f, &op) == 0, "a receive failed");
        value = block[0];
        for (int i = 0; i < WORDS; i++)
            need(f, block[i] == value, "a message in parts");
        need(f, value == 0 || value > last, "a message given up, twice, or out of order");
        last = value;
        kept += value > 0 && value % KEPT == 0;
    }
    need(f, kept == rounds / KEPT, "a message is missing");
    free(block);
}

static int rank_main(ferry *f, int argc, char **argv)
{
    uint64_t rounds = argc > 1 ? strtoull(argv[1], NULL, 10) : 2000;
    if (ferry_rank(f) == 0)
        offer_blocks(f, rounds);
    else
        receive_blocks(f, rounds);
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
