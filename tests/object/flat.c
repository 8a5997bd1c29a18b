/* Goal: objects of one block move without callbacks: of a fixed length, of one each, and in the
 * shared heap; and a kind with too few callbacks is refused.
 * Method: every rank makes one of each and sends it around all ranks; wherever it stops its bytes
 * are looked at, and it is destroyed where it began.
 *
 * Run as FERRY_RANKS=N [FERRY_THREADS=1] flat. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ferry/ferry.h>

enum { KINDS = 3, BYTES = 200 };

typedef struct thing {
    uint32_t size_bytes; /* of all */
    uint32_t hops;
    unsigned char first; /* each of `bytes` is one more than the last */
    unsigned char bytes[];
} thing;

typedef struct account {
    ferry_handler visit;
    uint64_t visits, wrong;
} account;

static void check(ferry *f, bool right, const char *what)
{
    if (right)
        return;
    ((account *)ferry_user_data(f))->wrong++;
    fprintf(stderr, "rank %d: %s; %s\n", ferry_rank(f), what, ferry_error_message(f));
}

static void visit(ferry *f, ferry_object object, void *data, int source,
                  const ferry_message *message)
{
    account *a = ferry_user_data(f);
    thing *t = data;
    (void)source;
    a->visits++;
    check(f, t->size_bytes == message->words[0], "another length");
    for (uint32_t i = 0; i < t->size_bytes - sizeof *t; i++)
        check(f, t->bytes[i] == (unsigned char)(t->first + i), "another byte");
    if (t->hops++ == (uint32_t)ferry_ranks(f)) {
        check(f, ferry_object_destroy(f, object) == 0, "destroy");
        return;
    }
    check(f, ferry_object_send(f, object, message, NULL) == 0, "send");
    check(f, ferry_object_move(f, object, (ferry_rank(f) + 1) % ferry_ranks(f)) == 0, "move");
}

static size_t thing_bytes(ferry *f, const void *data)
{
    (void)f;
    return ((const thing *)data)->size_bytes;
}

static void never(ferry *f, const void *data, void *buffer, size_t size_bytes)
{
    (void)data, (void)buffer, (void)size_bytes;
    check(f, false, "a kind that was refused is packed");
}

static void start(ferry *f, ferry_object_type type, size_t size_bytes, bool shared)
{
    ferry_object object;
    void *data = NULL;
    if (shared ? ferry_alloc(f, size_bytes, &data) != 0 : (data = malloc(size_bytes)) == NULL)
        abort();
    thing *t = data;
    *t = (thing){.size_bytes = (uint32_t)size_bytes, .first = (unsigned char)ferry_rank(f)};
    for (size_t i = 0; i < size_bytes - sizeof *t; i++)
        t->bytes[i] = (unsigned char)(t->first + i);
    check(f, ferry_object_create(f, type, data, &object) == 0, "create");
    const ferry_message message = {
        .handler = ((account *)ferry_user_data(f))->visit, .word_count = 1, .words = {size_bytes}};
    check(f, ferry_object_send(f, object, &message, NULL) == 0, "first send");
}

static int rank_main(ferry *f, int argc, char **argv)
{
    static const ferry_object_ops kinds[KINDS] = {
        {.size = sizeof *kinds, .name = "fixed", .flat_bytes = BYTES},
        {.size = sizeof *kinds, .name = "own", .packed_size = thing_bytes},
        {.size = sizeof *kinds, .name = "heap", .flat_bytes = BYTES, .flags = FERRY_OBJECT_SHARED}};
    static const ferry_object_ops without_size = {.size = sizeof without_size};
    static const ferry_object_ops one_way = {
        .size = sizeof one_way, .flat_bytes = BYTES, .pack = never};
    account a = {0};
    ferry_object_type types[KINDS], none;
    (void)argc, (void)argv;
    ferry_user_data_set(f, &a);
    check(f, ferry_object_type_register(f, &without_size, &none) == FERRY_EINVAL, "no size");
    check(f, strstr(ferry_error_message(f), "expected flat_bytes or packed_size") != NULL, "why");
    check(f, ferry_object_type_register(f, &one_way, &none) == FERRY_EINVAL, "pack alone");
    check(f, strstr(ferry_error_message(f), "has pack, expected unpack too") != NULL, "why");
    for (int i = 0; i < KINDS; i++)
        check(f, ferry_object_type_register(f, &kinds[i], &types[i]) == 0, "type");
    check(f, ferry_object_handler_register(f, "visit", visit, &a.visit) == 0, "handler");
    start(f, types[0], BYTES, false);
    start(f, types[1], BYTES + (size_t)ferry_rank(f), false);
    start(f, types[2], BYTES, true);
    check(f, ferry_quiesce(f) == 0, "quiesce");
    uint64_t all = (uint64_t)ferry_ranks(f), sums[2] = {a.visits, ferry_object_count(f)};
    check(f, ferry_allreduce(f, FERRY_UINT64, FERRY_SUM, sums, sums, 2) == 0, "allreduce");
    check(f, sums[0] == KINDS * all * (all + 1) && sums[1] == 0, "not all came round");
    return a.wrong != 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
