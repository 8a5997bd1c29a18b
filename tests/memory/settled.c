/* Goal: puts without an operation, into registered memory, are there when ferry_quiesce returns, if
 * it ends by the board (core/rest.c). Method: in each round every rank puts its round and rank into
 * all others, small and in pieces, and after the quiescence each rank finds all of them. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../support/check.h"

enum { RANKS_MAX = 16, ROUNDS = 200, LONG_WORDS = 4096, LONG_EVERY = 8 };

typedef struct place {
    uint64_t words[RANKS_MAX][LONG_WORDS];
} place;

/* Puts `words` words, all of them `value`, to all others. */
static void put_all(ferry *f, const uint64_t *places, uint64_t *from, uint64_t value, int words)
{
    int self = ferry_rank(f);
    for (int i = 0; i < words; i++)
        from[i] = value;
    for (int distance = 1; distance < ferry_ranks(f); distance++) {
        int rank = (self + distance) % ferry_ranks(f);
        place *there = (place *)(uintptr_t)places[rank];
        check(f, ferry_put(f, rank, there->words[self], from, (size_t)words * 8, NULL) == 0, "put");
    }
}

static int run(ferry *f, int argc, char **argv)
{
    (void)argc, (void)argv;
    int self = ferry_rank(f), ranks = ferry_ranks(f);
    place *here = calloc(1, sizeof *here);
    uint64_t *from = malloc(LONG_WORDS * sizeof *from), own = (uintptr_t)here, places[RANKS_MAX];
    check(f, ranks <= RANKS_MAX && here != NULL && from != NULL, "memory");
    check(f, ferry_memory_register(f, here, sizeof *here) == 0, "register");
    check(f, ferry_allgather(f, &own, sizeof own, places) == 0, "allgather");
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        int words = round % LONG_EVERY == 0 ? LONG_WORDS : 1;
        put_all(f, places, from, round * RANKS_MAX + (uint64_t)self, words);
        check(f, ferry_quiesce(f) == 0, "quiesce");
        for (int rank = 0; rank < ranks; rank++)
            check(f,
                  rank == self ||
                      here->words[rank][words - 1] == round * RANKS_MAX + (uint64_t)rank,
                  "a put is not there");
        check(f, ferry_barrier(f) == 0, "barrier");
    }
    check(f, ferry_memory_unregister(f, here) == 0, "unregister");
    free(here);
    free(from);
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, run, NULL);
}
