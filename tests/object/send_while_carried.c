/* Goal: a main program that carries an object from rank to rank may send to it, and to others,
 * between uninstalling and installing it: the call never waits for what only this program can do.
 * Method: rank 0 uninstalls an object, sends it far more than `backlog_bytes`, then hands it over;
 * rank 1 sends as much before it installs it. All messages are handled in order. With a small limit
 * of what waits the calls return FERRY_EAGAIN with a reason instead of waiting; the rest is sent
 * later.
 *
 * Run as FERRY_RANKS=2 send_while_carried COUNT BYTES [refused]. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ferry/ferry.h>

#include "../support/failed.h"

enum { BYTES_MAX = 1 << 20 };

typedef struct thing {
    uint64_t next[2]; /* number of the message due from each rank */
} thing;

typedef struct account {
    ferry_handler take, carry;
    ferry_object carried, other; /* of rank 0 */
    ferry_move_info info;        /* of `carried`, once rank 1 has it in hand */
    void *data;
    uint64_t refused, wrong;
    uint64_t count, size_bytes;
    uint64_t sent[2]; /* to `carried` and to `other` */
} account;

static const unsigned char bytes[BYTES_MAX];

static void check(ferry *f, int error)
{
    ((account *)ferry_user_data(f))->wrong += failed(f, error);
}

static void on_take(ferry *f, ferry_object object, void *data, int source, const ferry_message *m)
{
    thing *t = data;
    (void)object;
    ((account *)ferry_user_data(f))->wrong += m->words[0] != t->next[source]++;
}

/* Sends what is left of `count` messages to both objects, as far as there is room. */
static void send_some(ferry *f, account *a)
{
    for (int i = 0; i < 2; i++)
        while (a->sent[i] < a->count) {
            const ferry_message m = {.handler = a->take,
                                     .word_count = 1,
                                     .words = {a->sent[i]},
                                     .data = bytes,
                                     .size_bytes = a->size_bytes};
            int error = ferry_object_send(f, i == 0 ? a->carried : a->other, &m, NULL);
            if (error == FERRY_EAGAIN) {
                a->refused++;
                a->wrong += strstr(ferry_error_message(f), "not installed yet") == NULL;
                break;
            }
            check(f, error);
            a->sent[i]++;
        }
}

static void *copy_of(const void *from, size_t size_bytes)
{
    void *to = malloc(size_bytes);
    return to == NULL ? NULL : memcpy(to, from, size_bytes);
}

static void on_carry(ferry *f, int source, const ferry_message *m)
{
    account *a = ferry_user_data(f);
    (void)source;
    a->info.size_bytes = m->size_bytes - sizeof(thing);
    a->info.bytes = copy_of(m->data, a->info.size_bytes);
    a->data = copy_of((const char *)m->data + a->info.size_bytes, sizeof(thing));
}

static void give(ferry *f, account *a)
{
    ferry_move_info info;
    void *data;
    check(f, ferry_object_uninstall(f, a->carried, 1, &info, &data));
    send_some(f, a);
    unsigned char *both = malloc(info.size_bytes + sizeof(thing));
    if (both == NULL)
        abort();
    memcpy(both, info.bytes, info.size_bytes);
    memcpy(both + info.size_bytes, data, sizeof(thing));
    const ferry_message m = {
        .handler = a->carry, .data = both, .size_bytes = info.size_bytes + sizeof(thing)};
    check(f, ferry_request_send(f, 1, &m, NULL));
    free(both);
    free(info.bytes);
    free(data);
}

static void take(ferry *f, account *a)
{
    while (a->data == NULL)
        (void)ferry_wait(f, FERRY_FOREVER);
    send_some(f, a);
    check(f, ferry_object_install(f, &a->info, a->data, 0));
    free(a->info.bytes);
}

static void set_up(ferry *f, account *a)
{
    static const ferry_object_ops ops = {
        .size = sizeof ops, .name = "thing", .flat_bytes = sizeof(thing)};
    ferry_object_type type = {0};
    ferry_user_data_set(f, a);
    check(f, ferry_object_type_register(f, &ops, &type));
    check(f, ferry_object_handler_register(f, "take", on_take, &a->take));
    check(f, ferry_handler_register(f, "carry", on_carry, &a->carry));
    if (ferry_rank(f) == 0) {
        check(f, ferry_object_create(f, type, calloc(1, sizeof(thing)), &a->carried));
        check(f, ferry_object_create(f, type, calloc(1, sizeof(thing)), &a->other));
    }
    check(f, ferry_broadcast(f, 0, &a->carried, sizeof a->carried));
    check(f, ferry_broadcast(f, 0, &a->other, sizeof a->other));
}

static int rank_main(ferry *f, int argc, char **argv)
{
    if (argc < 3 || ferry_ranks(f) != 2) {
        fprintf(stderr, "usage: between COUNT BYTES [refused], on 2 ranks\n");
        return 2;
    }
    account a = {.count = strtoull(argv[1], NULL, 10),
                 .size_bytes = strtoull(argv[2], NULL, 10) % BYTES_MAX};
    set_up(f, &a);
    if (ferry_rank(f) == 0)
        give(f, &a);
    else
        take(f, &a);
    while (a.sent[0] < a.count || a.sent[1] < a.count) {
        (void)ferry_wait(f, 1000000);
        send_some(f, &a);
    }
    check(f, ferry_quiesce(f));
    const thing *here = ferry_object_data(f, ferry_rank(f) == 0 ? a.other : a.carried);
    if (here == NULL || here->next[0] != a.count || here->next[1] != a.count)
        a.wrong++;
    if ((argc > 3) != (a.refused != 0)) {
        fprintf(stderr, "send_while_carried: rank %d was refused %llu times\n", ferry_rank(f),
                (unsigned long long)a.refused);
        a.wrong++;
    }
    return a.wrong != 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
