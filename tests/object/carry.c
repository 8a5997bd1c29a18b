/* Goal: objects in the shared heap migrate by their pointer, and objects that the program carries
 * by requests of its own keep their messages and their order. Method: one object of each sort goes
 * round all ranks while every rank sends it numbered messages; each object checks that the numbers
 * of each source come in order. Callbacks of the shared sort count how often they are called for a
 * migration: never, where memory is shared. In the end the last rank leaves.
 *
 * Run as FERRY_RANKS=N carry. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ferry/ferry.h>

#include "../support/failed.h"

enum { MESSAGES = 300, RANKS_MAX = 16, BALLAST_BYTES = 1 << 20 };

typedef struct thing {
    uint64_t seen[RANKS_MAX]; /* per source: messages handled */
    uint64_t moves;
} thing;

typedef struct account {
    ferry_handler count, carry;
    ferry_object shared, carried;
    uint64_t packed, wrong, handled;
} account;

static size_t packed_size(ferry *f, const void *data)
{
    (void)f;
    (void)data;
    return sizeof(thing);
}

static void pack(ferry *f, const void *data, void *buffer, size_t size_bytes)
{
    ((account *)ferry_user_data(f))->packed++;
    memcpy(buffer, data, size_bytes);
}

static void *unpack(ferry *f, ferry_object object, const void *buffer, size_t size_bytes)
{
    void *data = NULL;
    (void)object;
    if (ferry_alloc(f, BALLAST_BYTES, &data) == 0)
        memcpy(data, buffer, size_bytes);
    return data;
}

/* When the rank leaves that has it. */
static void *unpack_carried(ferry *f, ferry_object object, const void *buffer, size_t size_bytes)
{
    (void)f;
    (void)object;
    void *data = malloc(size_bytes);
    return data == NULL ? NULL : memcpy(data, buffer, size_bytes);
}

static void destroy_shared(ferry *f, void *data)
{
    (void)ferry_free(f, data);
}

static void destroy_carried(ferry *f, void *data)
{
    (void)f;
    free(data);
}

static void check(ferry *f, int error)
{
    ((account *)ferry_user_data(f))->wrong += failed(f, error);
}

/* Words: number, and whether the object is the shared one. */
static void count(ferry *f, ferry_object object, void *data, int source,
                  const ferry_message *message)
{
    account *a = ferry_user_data(f);
    thing *t = data;
    a->wrong += t->seen[source] != message->words[0];
    t->seen[source]++;
    a->handled++;
    if (message->words[1] != 0 && message->words[0] % 4 == 0)
        check(f, ferry_object_move(f, object, (ferry_rank(f) + 1) % ferry_ranks(f)));
}

/* Takes the carried object from here to the next rank, in a request: its info, then its data. */
static void send_on(ferry *f, account *a)
{
    int next = (ferry_rank(f) + 1) % ferry_ranks(f);
    ferry_move_info info;
    void *data = NULL;
    if (ferry_object_data(f, a->carried) == NULL)
        return;
    int error = ferry_object_uninstall(f, a->carried, next, &info, &data);
    if (error != 0) {
        check(f, error);
        return;
    }
    unsigned char *both = malloc(info.size_bytes + sizeof(thing));
    if (both == NULL)
        abort();
    memcpy(both, info.bytes, info.size_bytes);
    memcpy(both + info.size_bytes, data, sizeof(thing));
    const ferry_message message = {
        .handler = a->carry, .data = both, .size_bytes = info.size_bytes + sizeof(thing)};
    check(f, ferry_request_send(f, next, &message, NULL));
    free(both);
    free(info.bytes);
    free(data);
}

/* If the information was changed on its way, or came to another rank, the call changes nothing. The
 * test flips each of its bits, adds and cuts bytes, gives none, and names the wrong rank. */
static void refuse_wrong_info(ferry *f, account *a, const ferry_move_info *info, int source)
{
    unsigned char data[1], *bytes = calloc(2, info->size_bytes);
    if (bytes == NULL)
        abort();
    memcpy(bytes, info->bytes, info->size_bytes);
    memcpy(bytes + info->size_bytes, info->bytes, info->size_bytes);
    ferry_move_info wrong = {.bytes = bytes, .size_bytes = info->size_bytes};
    for (size_t bit = 0; bit < 8 * info->size_bytes; bit++) {
        bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
        a->wrong += ferry_object_install(f, &wrong, data, source) != FERRY_EINVAL;
        bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
    for (wrong.size_bytes = 0; wrong.size_bytes <= 2 * info->size_bytes; wrong.size_bytes++)
        if (wrong.size_bytes != info->size_bytes)
            a->wrong += ferry_object_install(f, &wrong, data, source) != FERRY_EINVAL;
    for (int rank = -1; rank <= ferry_ranks(f); rank++)
        if (rank != source)
            a->wrong += ferry_object_install(f, info, data, rank) != FERRY_EINVAL;
    free(bytes);
}

static void carry(ferry *f, int source, const ferry_message *message)
{
    size_t size_bytes = message->size_bytes - sizeof(thing);
    unsigned char *bytes = malloc(size_bytes);
    thing *t = malloc(sizeof *t);
    if (bytes == NULL || t == NULL)
        abort();
    memcpy(bytes, message->data, size_bytes);
    memcpy(t, (const unsigned char *)message->data + size_bytes, sizeof *t);
    t->moves++;
    const ferry_move_info info = {.bytes = bytes, .size_bytes = size_bytes};
    account *a = ferry_user_data(f);
    if (t->moves <= (uint64_t)ferry_ranks(f))
        refuse_wrong_info(f, a, &info, source);
    check(f, ferry_object_install(f, &info, t, source));
    /* A second time it is not due. */
    a->wrong += ferry_object_install(f, &info, t, source) != FERRY_EINVAL;
    free(bytes);
}

static void refuse_wrong_calls(ferry *f, account *a)
{
    ferry_move_info info;
    void *data = NULL;
    const ferry_object none = {0};
    a->wrong += ferry_object_uninstall(f, a->carried, ferry_rank(f), &info, &data) != FERRY_EINVAL;
    a->wrong += ferry_object_uninstall(f, a->carried, ferry_ranks(f), &info, &data) != FERRY_EINVAL;
    if (ferry_ranks(f) > 1)
        a->wrong += ferry_object_uninstall(f, none, (ferry_rank(f) + 1) % ferry_ranks(f), &info,
                                           &data) != FERRY_ENOENT;
    a->wrong +=
        ferry_object_install(f, &(ferry_move_info){.bytes = &info, .size_bytes = 3}, a, 0) == 0;
}

static void create_objects(ferry *f, account *a)
{
    const ferry_object_ops shared = {.size = sizeof shared,
                                     .name = "shared",
                                     .packed_size = packed_size,
                                     .pack = pack,
                                     .unpack = unpack,
                                     .destroy = destroy_shared,
                                     .flags = FERRY_OBJECT_SHARED};
    ferry_object_ops carried = shared;
    carried.name = "carried";
    carried.unpack = unpack_carried;
    carried.destroy = destroy_carried;
    carried.flags = 0;
    ferry_object_type types[2];
    void *data = NULL;
    check(f, ferry_object_type_register(f, &shared, &types[0]));
    check(f, ferry_object_type_register(f, &carried, &types[1]));
    if (ferry_rank(f) == 0) {
        check(f, ferry_alloc(f, BALLAST_BYTES, &data));
        memset(data, 0, sizeof(thing));
        check(f, ferry_object_create(f, types[0], data, &a->shared));
        check(f, ferry_object_create(f, types[1], calloc(1, sizeof(thing)), &a->carried));
    }
    check(f, ferry_broadcast(f, 0, &a->shared, sizeof a->shared));
    check(f, ferry_broadcast(f, 0, &a->carried, sizeof a->carried));
}

/* A rank that has left takes nothing: the object stays. */
static bool is_refused_by_the_gone(ferry *f, ferry_object object)
{
    ferry_move_info info;
    void *data = ferry_object_data(f, object), *taken;
    int gone = ferry_ranks(f) - 1;
    while (data != NULL && !ferry_peer_is_gone(f, gone))
        ferry_wait(f, FERRY_FOREVER);
    return data == NULL || (ferry_object_uninstall(f, object, gone, &info, &taken) == FERRY_EPEER &&
                            ferry_object_data(f, object) == data);
}

static int rank_main(ferry *f, int argc, char **argv)
{
    account *a = calloc(1, sizeof *a);
    (void)argc;
    (void)argv;
    ferry_user_data_set(f, a);
    check(f, ferry_object_handler_register(f, "count", count, &a->count));
    check(f, ferry_handler_register(f, "carry", carry, &a->carry));
    create_objects(f, a);
    refuse_wrong_calls(f, a);
    for (uint64_t i = 0; i < MESSAGES; i++) {
        ferry_message message = {.handler = a->count, .word_count = 2, .words = {i, 1}};
        check(f, ferry_object_send(f, a->shared, &message, NULL));
        message.words[1] = 0;
        check(f, ferry_object_send(f, a->carried, &message, NULL));
        (void)ferry_poll(f);
        if (ferry_ranks(f) > 1 && i % 3 == 0)
            send_on(f, a);
    }
    check(f, ferry_quiesce(f));
    uint64_t sums[3] = {a->handled, a->wrong, a->packed};
    check(f, ferry_allreduce(f, FERRY_UINT64, FERRY_SUM, sums, sums, 3));
    bool right = sums[0] == (uint64_t)(2 * MESSAGES * ferry_ranks(f)) && sums[1] == 0 &&
                 a->wrong == 0 && sums[2] == 0;
    if (!right && ferry_rank(f) == 0)
        fprintf(stderr, "%llu handled, %llu wrong, %llu packed\n", (unsigned long long)sums[0],
                (unsigned long long)sums[1], (unsigned long long)sums[2]);
    /* Objects were carried to it: it knows that none is still on its way. */
    bool leaves = ferry_ranks(f) > 1 && ferry_rank(f) == ferry_ranks(f) - 1;
    if ((leaves ? ferry_leave(f) : ferry_quiesce(f)) != 0)
        right = false;
    if (!leaves && ferry_ranks(f) > 1 && !is_refused_by_the_gone(f, a->carried))
        right = false;
    free(a);
    return right ? 0 : 1;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
