/* Goal: requests between two ranks arrive, answered one by one, whatever carries them. Method: rank
 * 0 sends a counter to each other rank in turn, whose handler sends it back; counts and values are
 * checked. Prints the half round trip of the last partner. pingpong [ROUNDS [tracked]] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ferry/ferry.h>

typedef struct state {
    ferry_handler ping, pong;
    uint64_t pongs, expected;
    bool wrong;
} state;

static void ping(ferry *f, int source, const ferry_message *message)
{
    state *s = ferry_user_data(f);
    const ferry_message answer = {
        .handler = s->pong, .word_count = 1, .words = {message->words[0] + 1}};
    if (ferry_request_send(f, source, &answer, NULL) != 0)
        s->wrong = true;
}

static void pong(ferry *f, int source, const ferry_message *message)
{
    (void)source;
    state *s = ferry_user_data(f);
    s->wrong = s->wrong || message->words[0] != s->expected + 1;
    s->pongs++;
}

static void play(ferry *f, state *s, int partner, uint64_t rounds, bool tracked)
{
    for (uint64_t i = 0; i < rounds; i++) {
        ferry_op op = {0};
        const ferry_track track = {.size = sizeof(track), .op = &op};
        const ferry_message message = {.handler = s->ping, .word_count = 1, .words = {i}};
        uint64_t before = s->pongs;
        s->expected = i;
        if (ferry_request_send(f, partner, &message, tracked ? &track : NULL) != 0)
            s->wrong = true;
        while (s->pongs == before)
            if (ferry_wait(f, FERRY_FOREVER) < 0)
                s->wrong = true;
        if (ferry_op_wait(f, &op) != 0)
            s->wrong = true;
    }
}

static int rank_main(ferry *f, int argc, char **argv)
{
    uint64_t rounds = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000;
    bool tracked = argc > 2 && strcmp(argv[2], "tracked") == 0;
    state s = {0};
    ferry_user_data_set(f, &s);
    if (ferry_handler_register(f, "ping", ping, &s.ping) != 0 ||
        ferry_handler_register(f, "pong", pong, &s.pong) != 0 || ferry_barrier(f) != 0)
        return 1;
    for (int partner = 0; ferry_rank(f) == 0 && partner < ferry_ranks(f); partner++) {
        uint64_t start = ferry_now(f);
        play(f, &s, partner, rounds, tracked);
        uint64_t passed = ferry_now(f) - start;
        if (partner == ferry_ranks(f) - 1)
            printf("half round trip %.3f us\n", (double)passed / (double)rounds / 2000);
    }
    if (ferry_barrier(f) != 0)
        return 1;
    uint64_t total = 0;
    if (ferry_allreduce(f, FERRY_UINT64, FERRY_SUM, &s.pongs, &total, 1) != 0)
        return 1;
    return s.wrong || total != rounds * (uint64_t)ferry_ranks(f);
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
