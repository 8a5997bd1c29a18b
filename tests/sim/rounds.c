/* Goal: a quiescence ends when all messages are handled and all data have arrived, and not before;
 * a collective gives what all ranks have put in. Method: many short rounds. In each, every rank
 * sends a few messages, whose handlers send more, and writes to its neighbour by a put and an
 * atomic update, none of them tracked. Then it calls ferry_quiesce, sometimes late. An account of
 * all this stands outside the ranks. A barrier or a sum follows. For the simulator and for
 * tests/interleave. Run as ferry sim -n N rounds. */
#include <ferry/memory.h>

#include "oracle.h"

enum { ROUNDS = 60, MESSAGES = 3, HOPS = 4, LATE_NS = 2000, RANKS_MAX = 64, BULK = 3000 };

/* Here the rank before this one writes: a mark into the last of `bulk`, which grows, and a sum. */
typedef struct window {
    uint64_t bulk[BULK], sum;
} window;

/* All ranks' truth. `mark` and `sum`: what was written to a rank up to the end of a round. */
static struct {
    uint64_t sent[ROUNDS], handled[ROUNDS], come[ROUNDS];
    window windows[RANKS_MAX];
    uint64_t mark[ROUNDS][RANKS_MAX], sum[ROUNDS][RANKS_MAX];
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

/* A window is its rank's own memory, so what is written travels. */
static void write_on(ferry *f, account *a, uint64_t round)
{
    int rank = (ferry_rank(f) + 1) % ferry_ranks(f);
    uint64_t *mark = &truth.mark[round][rank], *sum = &truth.sum[round][rank];
    window *there = &truth.windows[rank];
    uint64_t bulk[BULK] = {0}, count = 1 + draw(&a->random, BULK);
    *mark = round == 0 ? 0 : truth.mark[round - 1][rank];
    *sum = round == 0 ? 0 : truth.sum[round - 1][rank];
    if (draw(&a->random, 2) == 0)
        return;
    bulk[count - 1] = *mark = round + 1;
    must(f, ferry_put(f, rank, &there->bulk[BULK - count], bulk, count * sizeof *bulk, NULL),
         "put");
    *sum += count;
    const ferry_atomic add = {.verb = FERRY_FETCH_ADD, .target = &there->sum, .operand = count};
    must(f, ferry_atomic_update(f, rank, &add, NULL, NULL), "update");
}

/* Later rounds may have written too. */
static void check_window(ferry *f, uint64_t round)
{
    int self = ferry_rank(f);
    const window *own = &truth.windows[self];
    if (own->bulk[BULK - 1] < truth.mark[round][self])
        wrong(f, "a put has not arrived", own->bulk[BULK - 1], truth.mark[round][self]);
    if (own->sum < truth.sum[round][self])
        wrong(f, "an update has not arrived", own->sum, truth.sum[round][self]);
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
    write_on(f, a, round);
    if (draw(&a->random, 3) == 0)
        ferry_compute(f, (double)draw(&a->random, LATE_NS) * 1e-9);
    truth.come[round]++;
    must(f, ferry_quiesce(f), "quiesce");
    if (truth.come[round] != (uint64_t)ferry_ranks(f))
        wrong(f, "a quiescence ended without a rank", round, truth.come[round]);
    if (truth.sent[round] != truth.handled[round])
        wrong(f, "messages are left", truth.sent[round], truth.handled[round]);
    check_window(f, round);
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
    if (ferry_ranks(f) > RANKS_MAX)
        return 2;
    account a = {.random = first_random(ferry_rank(f)), .common = first_random(-1)};
    ferry_user_data_set(f, &a);
    must(f, ferry_handler_register(f, "request", on_request, &a.request), "register");
    window *own = &truth.windows[ferry_rank(f)];
    must(f, ferry_memory_register(f, own, sizeof *own), "register");
    must(f, ferry_barrier(f), "barrier");
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
