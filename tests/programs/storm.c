/* Goal: requests that breed requests are all handled before ferry_quiesce returns, on real ranks.
 * Method: each rank starts some; a handler passes two on until the life in its word is over; the
 * sum over ranks must be what the lives say. storm [LIFE [ROUNDS]] */
#include <stdio.h>
#include <stdlib.h>

#include <ferry/ferry.h>

typedef struct state {
    ferry_handler breed;
    uint64_t handled, random;
    int error;
} state;

static void send_one(ferry *f, state *s, uint64_t life)
{
    s->random = s->random * UINT64_C(6364136223846793005) + 1442695040888963407u;
    int target = (int)((s->random >> 33) % (uint64_t)ferry_ranks(f));
    const ferry_message message = {.handler = s->breed, .word_count = 1, .words = {life}};
    if (ferry_request_send(f, target, &message, NULL) != 0)
        s->error = 1;
}

static void breed(ferry *f, int source, const ferry_message *message)
{
    (void)source;
    state *s = ferry_user_data(f);
    s->handled++;
    for (int i = 0; i < 2 && message->words[0] > 0; i++)
        send_one(f, s, message->words[0] - 1);
}

static int rank_main(ferry *f, int argc, char **argv)
{
    uint64_t life = argc > 1 ? strtoull(argv[1], NULL, 10) : 10;
    uint64_t rounds = argc > 2 ? strtoull(argv[2], NULL, 10) : 5;
    state s = {.random = (uint64_t)ferry_rank(f)};
    ferry_user_data_set(f, &s);
    if (ferry_handler_register(f, "breed", breed, &s.breed) != 0)
        return 1;
    for (uint64_t round = 1; round <= rounds && s.error == 0; round++) {
        send_one(f, &s, life);
        uint64_t total = 0;
        if (ferry_quiesce(f) != 0 ||
            ferry_allreduce(f, FERRY_UINT64, FERRY_SUM, &s.handled, &total, 1) != 0)
            return 1;
        if (total != round * (uint64_t)ferry_ranks(f) * ((UINT64_C(2) << life) - 1)) {
            fprintf(stderr, "round %llu: %llu handled\n", (unsigned long long)round,
                    (unsigned long long)total);
            return 1;
        }
    }
    return s.error;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
