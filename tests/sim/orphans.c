/* Goal: what Ferry promises when ranks die that hold objects. Each message to an object ends once,
 * as completed only when its handler has run, as failed only when somebody is gone. No message is
 * handled twice or before one that was sent earlier. After a quiescence, messages reach each object
 * that lives, by whatever ranks it has come. No object is doubled, and none is lost but with a
 * rank that dies. A quiescence covers all that the living have sent, and ends; the ends of
 * all that a rank sent have been reported then. Method: every rank sends tracked messages at random
 * to objects that move at random, from its program and from handlers, in rounds that end with a
 * quiescence. The account stands outside the ranks: what was sent, handled and ended, and where the
 * objects are. One rank runs at a time: ferry sim -n N -f die=... orphans, ferry swarm --all, or
 * tests/interleave/turns.c. */
#include <string.h>

#include "oracle.h"

/* Where a sending is called from: see death.c. */
enum { FROM_MAIN, FROM_HANDLER, STREAMS };

enum { ROUNDS = 4, MESSAGES = 25, OBJECTS = 3 };

/* How long later messages wait for one that a dead rank may have had. */
enum { GAP_NS = 20000000 };

/* A message, from its sending to its end. */
typedef struct watch {
    struct watch *next;
    uint64_t number; /* among those of its source and stream to its object */
    size_t round;
    int source, object;
    uint64_t sent_ns;
    bool handled, ended;
    bool lost;   /* it failed, and did not come too late (object/gaps.c) */
    bool closed; /* a quiescence has ended that covers it */
} watch;

typedef struct oracle {
    int ranks, objects;
    ferry_object *names;
    uint64_t *sent, *seen; /* by source, stream and object: the next number */
    int *copies;           /* by object and rank */
    bool *left;            /* ranks that are done */
    bool *dead;            /* somebody was told so, or refused */
    int dead_count;
    bool *early;  /* by rank: a quiescence did not wait for a message of it */
    int *owners;  /* by object, as ranks end: rank + 1 */
    int ended;    /* ranks */
    bool refused; /* a message was, or failed: somebody is gone, told yet or not */
    uint64_t handled, failed, moves;
    watch *watches; /* all that ever were */
    struct account *accounts;
} oracle;

/* All ranks' truth. */
static oracle truth;

typedef struct account {
    uint64_t random;
    ferry_handler message;
    size_t round;
    uint64_t tracked, ended;
    bool in_handler;
    int agreed; /* how many had died when all had agreed on it, before this round */
} account;

static size_t stream_of(int source, bool in_handler, int object)
{
    return ((size_t)source * STREAMS + (in_handler ? FROM_HANDLER : FROM_MAIN)) *
               (size_t)truth.objects +
           (size_t)object;
}

static int *copies_at(int object, int rank)
{
    return &truth.copies[(size_t)object * (size_t)truth.ranks + (size_t)rank];
}

/* Somebody takes `rank` for gone: it may not act any more, unless it is done. */
static void declare_gone(int rank)
{
    if (truth.left[rank] || truth.dead[rank])
        return;
    truth.dead[rank] = true;
    truth.dead_count++;
}

static void check_alive(ferry *f)
{
    if (truth.dead[ferry_rank(f)])
        wrong(f, "declared dead, and alive", (uint64_t)ferry_rank(f), 0);
}

static void on_peer(ferry *f, void *arg, const ferry_peer_event *event)
{
    (void)arg;
    check_alive(f);
    declare_gone(event->rank);
}

static bool somebody_is_gone(const ferry *f)
{
    for (int rank = 0; rank < truth.ranks; rank++)
        if (ferry_peer_is_gone(f, rank) || truth.dead[rank] || truth.left[rank])
            return true;
    return false;
}

/* Whether a rank that may live has the object. */
static bool is_somewhere(int object)
{
    for (int rank = 0; rank < truth.ranks; rank++)
        if (*copies_at(object, rank) > 0 && !truth.dead[rank])
            return true;
    return false;
}

/* Whether `error` says truly that the object is nowhere any more. */
static bool is_lost(const ferry *f, int error, int object)
{
    return error == FERRY_ENOENT && somebody_is_gone(f) && !is_somewhere(object);
}

static void on_end(ferry *f, watch *w, const ferry_receipt *receipt, bool failed)
{
    account *a = ferry_user_data(f);
    check_alive(f);
    if (w->ended)
        wrong(f, "a message ended twice", (uint64_t)w->object, failed);
    if (!failed && !w->handled)
        wrong(f, "a message completed that was not handled", (uint64_t)w->object, w->number);
    if (failed && receipt->error != FERRY_EPEER && !is_lost(f, receipt->error, w->object))
        wrong(f, "a message failed otherwise", (uint64_t)w->object, (uint64_t)-receipt->error);
    truth.refused |= failed;
    w->ended = true;
    w->lost = failed && ferry_now(f) - w->sent_ns < GAP_NS;
    a->ended++;
    truth.failed += failed;
}

static void on_completed(ferry *f, void *arg, const ferry_receipt *receipt)
{
    on_end(f, arg, receipt, false);
}

static void on_failed(ferry *f, void *arg, const ferry_receipt *receipt)
{
    on_end(f, arg, receipt, true);
}

static void send_one(ferry *f, account *a, size_t round, uint64_t hops)
{
    int object = (int)draw(&a->random, (uint64_t)truth.objects);
    watch *w = calloc(1, sizeof *w);
    if (truth.names[object].word == 0 || w == NULL) {
        free(w); /* its rank has died before it made it */
        return;
    }
    *w = (watch){.next = truth.watches,
                 .number = truth.sent[stream_of(ferry_rank(f), a->in_handler, object)]++,
                 .round = round,
                 .sent_ns = ferry_now(f),
                 .source = ferry_rank(f),
                 .object = object};
    ferry_track track = FERRY_TRACK_DEFAULTS;
    track.completed = on_completed;
    track.failed = on_failed;
    track.completed_arg = track.failed_arg = w;
    const ferry_message message = {
        .handler = a->message,
        .word_count = 3,
        .words = {(uint64_t)(uintptr_t)w, hops, a->in_handler ? FROM_HANDLER : FROM_MAIN}};
    truth.watches = w;
    a->tracked++;
    int error = ferry_object_send(f, truth.names[object], &message, &track);
    if (error == 0)
        return;
    if (error != FERRY_EPEER && !is_lost(f, error, object))
        wrong(f, "a message was refused", (uint64_t)object, (uint64_t)-error);
    truth.refused = true;
    w->ended = w->lost = true;
    truth.failed++;
    a->ended++;
}

static void on_message(ferry *f, ferry_object object, void *data, int source,
                       const ferry_message *message)
{
    account *a = ferry_user_data(f);
    watch *w = (watch *)(uintptr_t)message->words[0];
    int index = *(int *)data;
    size_t stream = stream_of(source, message->words[2] == FROM_HANDLER, index);
    check_alive(f);
    if (w->handled || w->object != index || w->source != source)
        wrong(f, "a message handled twice, or elsewhere", (uint64_t)index, w->number);
    if (w->number < truth.seen[stream])
        wrong(f, "a message overtaken by a later one", w->number, truth.seen[stream] - 1);
    if (w->number > truth.seen[stream] && !somebody_is_gone(f) && !truth.refused)
        wrong(f, "a message overtook an earlier one", w->number, truth.seen[stream]);
    truth.early[source] |= w->closed; /* as it may be when the source is dead by now */
    truth.seen[stream] = w->number + 1;
    w->handled = true;
    truth.handled++;
    if (draw(&a->random, 4) == 0)
        ferry_compute(f, (double)draw(&a->random, 5000) * 1e-9);
    a->in_handler = true;
    if (message->words[1] > 0 && draw(&a->random, 4) != 0)
        send_one(f, a, w->round, message->words[1] - 1);
    a->in_handler = false;
    if (draw(&a->random, 3) != 0)
        return;
    int to = (int)draw(&a->random, (uint64_t)truth.ranks), error = ferry_object_move(f, object, to);
    truth.moves += error == 0;
    if (error != 0 && (error != FERRY_EPEER || !ferry_peer_is_gone(f, to)))
        wrong(f, "a move was refused", (uint64_t)to, (uint64_t)-error);
}

static void *thing_make(ferry *f, int index)
{
    int *data = malloc(sizeof *data);
    *data = index;
    if (++*copies_at(index, ferry_rank(f)) > 1)
        wrong(f, "an object twice on a rank", (uint64_t)index, 0);
    return data;
}

static void *unpack(ferry *f, ferry_object object, const void *buffer, size_t size_bytes)
{
    int index;
    (void)object;
    if (size_bytes != sizeof index)
        wrong(f, "unpack", size_bytes, 0);
    memcpy(&index, buffer, sizeof index);
    return thing_make(f, index);
}

static void destroy(ferry *f, void *data)
{
    if (--*copies_at(*(int *)data, ferry_rank(f)) < 0)
        wrong(f, "an object freed twice", (uint64_t) * (int *)data, 0);
    free(data);
}

/* All messages of the living up to this round are handled by now, or never will be, and the ends of
 * this rank's have been reported. */
static void close_round(ferry *f, const account *a)
{
    for (watch *w = truth.watches; w != NULL; w = w->next) {
        w->closed |= w->round <= a->round;
        if (w->closed && w->source == ferry_rank(f) && !w->ended)
            wrong(f, "quiescence declared before an end was reported", (uint64_t)w->object,
                  w->number);
        if (w->round == a->round && w->source == ferry_rank(f) && w->lost &&
            is_somewhere(w->object) && a->agreed == truth.dead_count)
            wrong(f, "a message failed to an object that lives", (uint64_t)w->object, w->number);
    }
}

/* A death may be told after the collective; the simulator says if it never is. */
static void check_collective(ferry *f, int error)
{
    if (error != 0 && error != FERRY_EPEER)
        wrong(f, "a collective failed", (uint64_t)-error, 0);
    while (error != 0 && !somebody_is_gone(f))
        if (ferry_wait(f, 1000000) < 0)
            wrong(f, "wait failed", 0, 0);
}

static void play_round(ferry *f, account *a)
{
    for (int i = 0; i < MESSAGES; i++) {
        send_one(f, a, a->round, draw(&a->random, 4));
        if (draw(&a->random, 3) == 0)
            ferry_poll(f);
        if (draw(&a->random, 4) == 0)
            ferry_compute(f, (double)draw(&a->random, 100000) * 1e-9);
    }
    check_alive(f);
    int error = ferry_quiesce(f);
    if (error != 0)
        wrong(f, "quiesce failed", (uint64_t)-error, 0);
    close_round(f, a);
    a->round++;
    a->agreed = truth.ranks - ferry_member_count(f) == truth.dead_count ? truth.dead_count : -1;
    check_collective(f, ferry_barrier(f));
}

/* This rank has lived to its end: what it says of itself is true. */
static void check_end(ferry *f)
{
    int me = ferry_rank(f);
    check_alive(f);
    if (truth.early[me])
        wrong(f, "quiescence declared with a message of this rank in flight", (uint64_t)me, 0);
    for (int object = 0; object < truth.objects; object++) {
        if (*copies_at(object, me) == 0)
            continue;
        if (truth.owners[object] != 0)
            wrong(f, "an object doubled", (uint64_t)object, (uint64_t)truth.owners[object] - 1);
        truth.owners[object] = me + 1;
    }
    if (truth.refused && !somebody_is_gone(f))
        wrong(f, "a message failed though nobody is gone", (uint64_t)me, 0);
    truth.left[me] = true;
    if (++truth.ended < truth.ranks)
        return;
    for (int object = 0; object < truth.objects; object++)
        if (truth.owners[object] == 0)
            wrong(f, "an object lost though nobody died", (uint64_t)object, 0);
}

static void open_truth(ferry *f)
{
    if (truth.ranks != 0)
        return;
    truth.ranks = ferry_ranks(f);
    truth.objects = truth.ranks * OBJECTS;
    size_t ranks = (size_t)truth.ranks, objects = (size_t)truth.objects;
    truth.names = calloc(objects, sizeof *truth.names);
    truth.sent = calloc(ranks * STREAMS * objects, sizeof *truth.sent);
    truth.seen = calloc(ranks * STREAMS * objects, sizeof *truth.seen);
    truth.copies = calloc(ranks * objects, sizeof *truth.copies);
    truth.owners = calloc(objects, sizeof *truth.owners);
    truth.dead = calloc(ranks, sizeof(bool));
    truth.left = calloc(ranks, sizeof(bool));
    truth.early = calloc(ranks, sizeof(bool));
    truth.accounts = calloc(ranks, sizeof(account));
}

/* Every other object of a rank is its scheduler's to move as well. */
static void create_objects(ferry *f, ferry_object_type type)
{
    for (int i = 0; i < OBJECTS; i++) {
        int index = ferry_rank(f) * OBJECTS + i;
        if (ferry_object_create(f, type, thing_make(f, index), &truth.names[index]) != 0 ||
            (i == 1 && ferry_balance_add(f, truth.names[index], NULL) != 0))
            wrong(f, "cannot create", (uint64_t)index, 0);
    }
    check_collective(f, ferry_barrier(f));
}

static account *begin(ferry *f)
{
    static const ferry_object_ops ops = {.size = sizeof ops,
                                         .name = "thing",
                                         .flat_bytes = sizeof(int),
                                         .unpack = unpack,
                                         .destroy = destroy};
    ferry_object_type type;
    open_truth(f);
    account *a = &truth.accounts[ferry_rank(f)];
    a->random = first_random(ferry_rank(f));
    ferry_user_data_set(f, a);
    if (ferry_peer_watch(f, on_peer, a) != 0 || ferry_object_type_register(f, &ops, &type) != 0 ||
        ferry_object_handler_register(f, "message", on_message, &a->message) != 0)
        wrong(f, "cannot begin", 0, 0);
    create_objects(f, type);
    return a;
}

static int rank_main(ferry *f, int argc, char **argv)
{
    (void)argc;
    (void)argv;
    account *a = begin(f);
    while (a->round < ROUNDS)
        play_round(f, a);
    while (a->ended < a->tracked)
        if (ferry_wait(f, 1000000) < 0)
            wrong(f, "wait failed", 0, 0);
    check_collective(f, ferry_barrier(f));
    check_end(f);
    if (truth.ended == 1)
        printf("%" PRIu64 " handled, %" PRIu64 " failed, %" PRIu64 " moves\n", truth.handled,
               truth.failed, truth.moves);
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
