/* Goal: a packed object is copied once on each side, by its own `pack` and `unpack`, and small
 * objects that go to one rank together are one message. Time spent waiting for objects is counted.
 * Method: a large object notes where it was packed: it has to be unpacked from that very memory.
 * Small ones are given away several at once by a scheduler of the test's own: frames are counted.
 *
 * Run as FERRY_RANKS=2 FERRY_HELPER=0 FERRY_PROFILE=1 FERRY_SCHEDULER=lump travel. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ferry/ferry.h>

#include "../support/failed.h"
#include "core/head.h"
#include "core/profile.h"
#include "object/kinds.h"

enum { LUMP = 8, LARGE_BYTES = 256 * 1024 };

typedef struct thing {
    size_t size_bytes;
    const void *packed_at;
} thing;

typedef struct account {
    ferry_handler work, go;
    ferry_object large;
    uint64_t wrong, unpacked, worked;
} account;

static void check(ferry *f, int error)
{
    ((account *)ferry_user_data(f))->wrong += failed(f, error);
}

static size_t packed_size(ferry *f, const void *data)
{
    (void)f;
    return ((const thing *)data)->size_bytes;
}

static void pack(ferry *f, const void *data, void *buffer, size_t size_bytes)
{
    const thing *t = data;
    const thing there = {.size_bytes = t->size_bytes, .packed_at = buffer};
    (void)f;
    memset(buffer, 1, size_bytes);
    memcpy(buffer, &there, sizeof there);
}

static thing *make(size_t size_bytes)
{
    thing *t = malloc(sizeof *t);
    if (t == NULL)
        abort();
    *t = (thing){.size_bytes = size_bytes};
    return t;
}

static void *unpack(ferry *f, ferry_object object, const void *buffer, size_t size_bytes)
{
    account *a = ferry_user_data(f);
    thing there;
    (void)object;
    memcpy(&there, buffer, sizeof there);
    a->unpacked++;
    a->wrong += there.size_bytes != size_bytes;
    if (size_bytes == LARGE_BYTES && there.packed_at != buffer) {
        fprintf(stderr, "packed at %p, unpacked from %p\n", there.packed_at, buffer);
        a->wrong++;
    }
    return make(size_bytes);
}

static void destroy(ferry *f, void *data)
{
    (void)f;
    free(data);
}

static void on_work(ferry *f, ferry_object object, void *data, int source, const ferry_message *m)
{
    (void)object, (void)data, (void)source, (void)m;
    ((account *)ferry_user_data(f))->worked++;
}

static void on_go(ferry *f, ferry_object object, void *data, int source, const ferry_message *m)
{
    (void)data, (void)source;
    if (m->words[0] == 0)
        return;
    const ferry_message next = {.handler = m->handler, .word_count = 1, .words = {m->words[0] - 1}};
    check(f, ferry_object_send(f, object, &next, NULL));
    check(f, ferry_object_move(f, object, (ferry_rank(f) + 1) % ferry_ranks(f)));
}

/* Gives the first LUMP objects with work to rank 1, all at once, and runs what comes after. */
typedef struct lump {
    ferry_schedulable *held[LUMP];
    int count;
    bool given;
    ferry_schedulable *ready;
} lump;

static int lump_create(ferry_scheduling *s, void **out)
{
    (void)s;
    *out = calloc(1, sizeof(lump));
    return *out != NULL ? 0 : FERRY_ENOMEM;
}

static void lump_destroy(ferry_scheduling *s, void *state)
{
    (void)s;
    free(state);
}

static ferry_schedulable *lump_next(ferry_scheduling *s, void *state)
{
    lump *l = state;
    ferry_schedulable *item = l->ready;
    (void)s;
    if (item != NULL)
        l->ready = item->next;
    return item;
}

static void lump_notify(ferry_scheduling *s, void *state, ferry_schedulable *item)
{
    lump *l = state;
    if (item->pending == 0)
        return;
    if (ferry_scheduling_rank(s) != 0 || l->given) {
        for (ferry_schedulable *at = l->ready; at != NULL; at = at->next)
            if (at == item)
                return;
        item->next = l->ready;
        l->ready = item;
        return;
    }
    for (int i = 0; i < l->count; i++)
        if (l->held[i] == item)
            return;
    l->held[l->count++] = item;
    if (l->count < LUMP)
        return;
    l->given = true;
    for (int i = 0; i < LUMP; i++)
        ferry_scheduling_migrate(s, l->held[i], 1);
}

static void lump_remove(ferry_scheduling *s, void *state, ferry_schedulable *item)
{
    (void)s, (void)state, (void)item;
}

static bool lump_empty(ferry_scheduling *s, void *state)
{
    (void)s;
    return ((const lump *)state)->ready == NULL;
}

static void lump_message(ferry_scheduling *s, void *state, int source, const uint64_t *words)
{
    (void)s, (void)state, (void)source, (void)words;
}

static const ferry_scheduler lump_scheduler = {.size = sizeof lump_scheduler,
                                               .name = "lump",
                                               .create = lump_create,
                                               .destroy = lump_destroy,
                                               .next = lump_next,
                                               .activate = lump_notify,
                                               .notify = lump_notify,
                                               .remove = lump_remove,
                                               .empty = lump_empty,
                                               .message = lump_message};

static uint64_t migrations_sent(const ferry *f)
{
    return fy_head_of(f)->profile->sent[FY_KIND_ARRIVAL].calls;
}

static void lumps_are_one_message(ferry *f, account *a, ferry_object_type type)
{
    uint64_t before = migrations_sent(f);
    for (int i = 0; i < LUMP && ferry_rank(f) == 0; i++) {
        ferry_object object;
        const ferry_message m = {.handler = a->work};
        check(f, ferry_object_create(f, type, make(64), &object));
        check(f, ferry_balance_add(f, object, NULL));
        check(f, ferry_object_send(f, object, &m, NULL));
    }
    check(f, ferry_quiesce(f));
    a->wrong += a->worked != (ferry_rank(f) == 1 ? LUMP : 0);
    a->wrong += a->unpacked != (ferry_rank(f) == 1 ? LUMP : 0);
    a->wrong += migrations_sent(f) - before != (ferry_rank(f) == 0);
}

static void large_ones_are_copied_once(ferry *f, account *a, ferry_object_type type)
{
    uint64_t before = a->unpacked;
    check(f, ferry_barrier(f)); /* all have looked at what came before */
    if (ferry_rank(f) == 0) {
        const ferry_message m = {.handler = a->go, .word_count = 1, .words = {9}};
        check(f, ferry_object_create(f, type, make(LARGE_BYTES), &a->large));
        check(f, ferry_object_send(f, a->large, &m, NULL));
    }
    check(f, ferry_quiesce(f));
    a->wrong += a->unpacked - before != (ferry_rank(f) == 0 ? 4 : 5);
}

/* The time that a rank waits for objects in flight is a part of its idle time. A wait counts from
 * when the object left its rank until it came here. No time counts twice. */
static void waits_count_once(ferry *f, account *a)
{
    fy_profile *p = fy_head_of(f)->profile;
    fy_profile *saved = malloc(sizeof *saved);
    static const fy_idle waits[] = {{100, 200}, {300, 400}, {500, 600}};
    static const uint64_t left_ns[] = {550, 520, 560, 450, 700, 350, 50, 60, 0};
    static const uint64_t counted_ns[] = {50, 80, 80, 100, 100, 150, 300, 300, 300};
    if (saved == NULL)
        abort();
    *saved = *p;
    for (size_t i = 0; i < sizeof waits / sizeof *waits; i++)
        p->idles[p->idle_count++ % FY_IDLES_KEPT] = waits[i];
    /* The waits before are not to be looked at. */
    p->idles[(p->idle_count - 4) % FY_IDLES_KEPT] = (fy_idle){0, 0};
    for (size_t i = 0; i < sizeof left_ns / sizeof *left_ns; i++) {
        fy_profile_awaited(f, left_ns[i]);
        a->wrong += p->other[FY_PROFILE_AWAITING].ns !=
                    saved->other[FY_PROFILE_AWAITING].ns + counted_ns[i];
    }
    *p = *saved;
    free(saved);
    a->wrong += p->other[FY_PROFILE_AWAITING].ns > p->other[FY_PROFILE_IDLE].ns;
}

static int rank_main(ferry *f, int argc, char **argv)
{
    static const ferry_object_ops ops = {.size = sizeof ops,
                                         .name = "thing",
                                         .packed_size = packed_size,
                                         .pack = pack,
                                         .unpack = unpack,
                                         .destroy = destroy};
    account a = {.wrong = 0};
    ferry_object_type type;
    (void)argc, (void)argv;
    ferry_user_data_set(f, &a);
    check(f, ferry_scheduler_register(f, &lump_scheduler));
    check(f, ferry_object_type_register(f, &ops, &type));
    check(f, ferry_object_handler_register(f, "work", on_work, &a.work));
    check(f, ferry_object_handler_register(f, "go", on_go, &a.go));
    check(f, ferry_balance_enable(f, true));
    lumps_are_one_message(f, &a, type);
    large_ones_are_copied_once(f, &a, type);
    waits_count_once(f, &a);
    if (a.wrong != 0)
        fprintf(stderr, "travel: rank %d: %llu wrong, %llu unpacked, %llu worked, %llu messages\n",
                ferry_rank(f), (unsigned long long)a.wrong, (unsigned long long)a.unpacked,
                (unsigned long long)a.worked, (unsigned long long)migrations_sent(f));
    return a.wrong != 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
