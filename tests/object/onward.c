/* Goal: a rank that sends messages larger than `backlog_bytes` to an object, and meanwhile passes
 * such messages on to where the object has gone, goes on as soon as it may. Method: rank 0 sends
 * COUNT messages to an object that moves now and then. A rank 0 that waits until rank 1 speaks by
 * itself, once in a second, takes longer than LIMIT_S.
 *
 *      onward COUNT LIMIT_S     on 2 ranks */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <ferry/ferry.h>

#include "../support/failed.h"

enum { BYTES = 8000 };

typedef struct account {
    ferry_handler take;
    uint64_t wrong, dice;
} account;

static const unsigned char bytes[BYTES];

static void check(ferry *f, int error)
{
    ((account *)ferry_user_data(f))->wrong += failed(f, error);
}

static uint64_t roll(account *a, uint64_t bound)
{
    a->dice = a->dice * 6364136223846793005u + 1442695040888963407u;
    return (a->dice >> 33) % bound;
}

static void on_take(ferry *f, ferry_object object, void *data, int source, const ferry_message *m)
{
    account *a = ferry_user_data(f);
    uint64_t *next = data;
    (void)source;
    a->wrong += m->words[0] != *next || m->size_bytes != BYTES;
    ++*next;
    if (roll(a, 3) == 0)
        check(f, ferry_object_move(f, object, (int)roll(a, 2)));
}

static void send_all(ferry *f, const account *a, ferry_object_type type, uint64_t count)
{
    ferry_object object = {0};
    check(f, ferry_object_create(f, type, calloc(1, sizeof(uint64_t)), &object));
    for (uint64_t i = 0; i < count; i++) {
        const ferry_message m = {
            .handler = a->take, .word_count = 1, .words = {i}, .data = bytes, .size_bytes = BYTES};
        check(f, ferry_object_send(f, object, &m, NULL));
    }
}

static int rank_main(ferry *f, int argc, char **argv)
{
    static const ferry_object_ops ops = {
        .size = sizeof(ops), .name = "counter", .flat_bytes = sizeof(uint64_t)};
    account a = {.dice = (uint64_t)ferry_rank(f) + 1};
    ferry_object_type type;
    if (argc != 3 || ferry_ranks(f) != 2) {
        fprintf(stderr, "usage: onward COUNT LIMIT_S, on 2 ranks\n");
        return 2;
    }
    ferry_user_data_set(f, &a);
    check(f, ferry_object_handler_register(f, "take", on_take, &a.take));
    check(f, ferry_object_type_register(f, &ops, &type));
    check(f, ferry_barrier(f));
    uint64_t start_ns = ferry_now(f);
    if (ferry_rank(f) == 0)
        send_all(f, &a, type, strtoull(argv[1], NULL, 10));
    check(f, ferry_quiesce(f));
    double took_s = (double)(ferry_now(f) - start_ns) / 1e9;
    if (ferry_rank(f) == 0)
        printf("%s messages took %.3f s, at most %s s expected\n", argv[1], took_s, argv[2]);
    return a.wrong != 0 || took_s > atof(argv[2]);
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
