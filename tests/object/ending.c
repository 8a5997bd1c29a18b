/* Goal: what becomes of messages to objects that are destroyed, move while they have messages, or
 * never existed; and that a handler may destroy and move its own object.
 * Method: rank 0 creates and tracks; every end is counted; each step ends in a quiescence.
 *
 * Run as FERRY_RANKS=N [FERRY_THREADS=1] outcome. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ferry/ferry.h>

#define CHECK(account, condition)                                                                  \
    ((condition) ? (void)0                                                                         \
                 : (fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition),                \
                    (void)(account)->wrong++))

enum { WHAT_COUNT, WHAT_DESTROY, WHAT_MOVE, WHAT_SELF };

typedef struct account {
    ferry_object_type type;
    ferry_handler handler;
    uint64_t handled, moved_value, alive, wrong;
    int completed, failed, last_error;
} account;

static void *unpack(ferry *f, ferry_object object, const void *buffer, size_t size_bytes)
{
    (void)object;
    uint64_t *data = malloc(sizeof *data);
    if (data != NULL)
        memcpy(data, buffer, size_bytes);
    ((account *)ferry_user_data(f))->alive++;
    return data;
}

static void destroy(ferry *f, void *data)
{
    ((account *)ferry_user_data(f))->alive--;
    free(data);
}

static void handle(ferry *f, ferry_object object, void *data, int source,
                   const ferry_message *message)
{
    account *a = ferry_user_data(f);
    uint64_t *value = data;
    (void)source;
    a->handled++;
    ++*value;
    int next = (ferry_rank(f) + 1) % ferry_ranks(f);
    ferry_message self = {.handler = a->handler, .word_count = 1, .words = {WHAT_COUNT}};
    switch (message->words[0]) {
    case WHAT_DESTROY:
        CHECK(a, ferry_object_destroy(f, object) == 0);
        CHECK(a, ferry_object_data(f, object) == data);
        break;
    case WHAT_MOVE:
        CHECK(a, ferry_object_move(f, object, next) == 0);
        CHECK(a, ferry_object_data(f, object) == data);
        break;
    case WHAT_SELF:
        CHECK(a, ferry_object_send(f, object, &self, NULL) == 0);
        CHECK(a, ferry_object_move(f, object, next) == 0);
        break;
    default:
        break;
    }
}

static void completed(ferry *f, void *arg, const ferry_receipt *receipt)
{
    (void)f;
    (void)receipt;
    ((account *)arg)->completed++;
}

static void failed(ferry *f, void *arg, const ferry_receipt *receipt)
{
    (void)f;
    ((account *)arg)->failed++;
    ((account *)arg)->last_error = receipt->error;
}

static ferry_object create(ferry *f, account *a)
{
    ferry_object object = {0};
    a->alive++;
    CHECK(a, ferry_object_create(f, a->type, calloc(1, sizeof(uint64_t)), &object) == 0);
    return object;
}

static int send_tracked(ferry *f, account *a, ferry_object object, uint64_t what)
{
    const ferry_message message = {.handler = a->handler, .word_count = 1, .words = {what}};
    const ferry_track track = {.size = sizeof track,
                               .completed = completed,
                               .completed_arg = a,
                               .failed = failed,
                               .failed_arg = a};
    return ferry_object_send(f, object, &message, &track);
}

static uint64_t sum(ferry *f, account *a, uint64_t value)
{
    CHECK(a, ferry_allreduce(f, FERRY_UINT64, FERRY_SUM, &value, &value, 1) == 0);
    return value;
}

static ferry_object share(ferry *f, account *a, ferry_object object, int root)
{
    CHECK(a, ferry_broadcast(f, root, &object, sizeof object) == 0);
    return object;
}

/* Pending messages travel with the object, and those that follow it are handled as well. */
static void pending_messages_travel(ferry *f, account *a)
{
    uint64_t before = sum(f, a, a->handled);
    int last = ferry_ranks(f) - 1;
    if (ferry_rank(f) == 0) {
        ferry_object object = create(f, a);
        for (int i = 0; i < 10; i++)
            CHECK(a, send_tracked(f, a, object, WHAT_COUNT) == 0);
        CHECK(a, ferry_object_move(f, object, last) == 0);
        for (int i = 0; i < 5; i++)
            CHECK(a, send_tracked(f, a, object, WHAT_COUNT) == 0);
        CHECK(a, last == 0 || ferry_object_data(f, object) == NULL);
        int place = -1;
        CHECK(a, ferry_object_locate(f, object, &place) == 0);
        CHECK(a, place == last);
    }
    CHECK(a, ferry_quiesce(f) == 0);
    while (a->completed < (ferry_rank(f) == 0 ? 15 : 0))
        (void)ferry_poll(f);
    CHECK(a, sum(f, a, a->handled) == before + 15);
    CHECK(a, a->failed == 0);
}

/* The handler moves its object around all ranks, sending to it each time. */
static void handlers_move_their_object(ferry *f, account *a)
{
    uint64_t before = sum(f, a, a->handled);
    int ends = a->completed + 20;
    ferry_object object = share(f, a, ferry_rank(f) == 0 ? create(f, a) : (ferry_object){0}, 0);
    for (int i = 0; i < 20; i++)
        CHECK(a, send_tracked(f, a, object, i % 2 == 0 ? WHAT_MOVE : WHAT_SELF) == 0);
    CHECK(a, ferry_quiesce(f) == 0);
    while (a->completed < ends) /* they may be told after the quiescence */
        (void)ferry_poll(f);
    CHECK(a, sum(f, a, a->handled) == before + (uint64_t)ferry_ranks(f) * 30);
    CHECK(a, sum(f, a, ferry_object_count(f)) == 2);
    CHECK(a, a->failed == 0);
}

/* All ranks send; one of the messages destroys the object. Each message has exactly one end. */
static void messages_to_the_dead_fail(ferry *f, account *a)
{
    a->completed = 0;
    a->failed = 0;
    uint64_t before = sum(f, a, a->handled);
    ferry_object object = share(f, a, ferry_rank(f) == 0 ? create(f, a) : (ferry_object){0}, 0);
    int refused = 0;
    for (int i = 0; i < 30; i++) {
        int error = send_tracked(f, a, object, i == 15 ? WHAT_DESTROY : WHAT_MOVE);
        CHECK(a, error == 0 || error == FERRY_ENOENT);
        refused += error != 0;
    }
    CHECK(a, ferry_quiesce(f) == 0);
    while (a->completed + a->failed + refused < 30)
        (void)ferry_poll(f);
    CHECK(a, a->failed == 0 || a->last_error == FERRY_ENOENT);
    CHECK(a, sum(f, a, (uint64_t)a->completed) == sum(f, a, a->handled) - before);
    CHECK(a, sum(f, a, (uint64_t)(a->failed + refused)) > 0);
    CHECK(a, sum(f, a, ferry_object_count(f)) == 2);
    /* Everyone hears of it sooner or later. */
    int error = 0;
    for (int i = 0; i < 100 && error == 0; i++) {
        a->failed = 0;
        error = send_tracked(f, a, object, WHAT_COUNT);
        while (error == 0 && a->failed == 0)
            (void)ferry_poll(f);
    }
    CHECK(a, error == FERRY_ENOENT || (error == 0 && a->last_error == FERRY_ENOENT));
}

/* Names that nobody was given. */
static void messages_to_nobody_fail(ferry *f, account *a)
{
    a->failed = 0;
    ferry_object none = {0};
    ferry_object far = {UINT64_MAX};
    ferry_object never = {(uint64_t)(ferry_ranks(f) - 1) << 44 | 123456};
    CHECK(a, send_tracked(f, a, none, WHAT_COUNT) == FERRY_EINVAL);
    CHECK(a, send_tracked(f, a, far, WHAT_COUNT) == FERRY_EINVAL);
    int error = send_tracked(f, a, never, WHAT_COUNT);
    if (ferry_rank(f) == ferry_ranks(f) - 1) {
        CHECK(a, error == FERRY_ENOENT);
    } else {
        CHECK(a, error == 0);
        while (a->failed == 0)
            (void)ferry_poll(f);
        CHECK(a, a->last_error == FERRY_ENOENT);
    }
    CHECK(a, ferry_object_destroy(f, never) == FERRY_ENOENT);
    CHECK(a, ferry_object_data(f, never) == NULL);
    CHECK(a, ferry_quiesce(f) == 0);
}

/* Names are used again by the next generation; old ones stay dead. */
static void names_do_not_come_back(ferry *f, account *a)
{
    ferry_object first = create(f, a);
    CHECK(a, ferry_object_destroy(f, first) == 0);
    for (int i = 0; i < 10000; i++) {
        ferry_object object = create(f, a);
        CHECK(a, !ferry_object_equal(object, first));
        CHECK(a, ferry_object_data(f, first) == NULL);
        CHECK(a, ferry_object_destroy(f, object) == 0);
    }
    CHECK(a, send_tracked(f, a, first, WHAT_COUNT) == FERRY_ENOENT);
    CHECK(a, ferry_barrier(f) == 0);
}

static int rank_main(ferry *f, int argc, char **argv)
{
    static const ferry_object_ops ops = {.size = sizeof ops,
                                         .name = "thing",
                                         .flat_bytes = sizeof(uint64_t),
                                         .unpack = unpack,
                                         .destroy = destroy};
    static account accounts[64];
    account *a = &accounts[ferry_rank(f) % 64];
    (void)argc;
    (void)argv;
    ferry_user_data_set(f, a);
    CHECK(a, ferry_object_type_register(f, &ops, &a->type) == 0);
    CHECK(a, ferry_object_handler_register(f, "handle", handle, &a->handler) == 0);
    CHECK(a, ferry_barrier(f) == 0);
    pending_messages_travel(f, a);
    handlers_move_their_object(f, a);
    messages_to_the_dead_fail(f, a);
    messages_to_nobody_fail(f, a);
    names_do_not_come_back(f, a);
    CHECK(a, sum(f, a, a->alive) == 2);
    return a->wrong != 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
