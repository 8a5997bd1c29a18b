/* Goal: what Ferry promises when ranks die. Those that live are told once, of no rank that lives,
 * and after all messages of the dead rank. Each tracked request ends once, as failed only when its
 * target is gone. Requests between the living are handled exactly once and in order. A quiescence
 * covers them all, and ends. Other collectives end with 0 or FERRY_EPEER; ferry_close ends. Method:
 * every rank sends at random from its program and from handlers, in rounds that end with a
 * quiescence. The account of what was sent and handled stands outside the ranks. One runs
 * at a time: ferry sim -n N -f die=... death, ferry swarm --all, or tests/interleave/turns.c. */
#include "oracle.h"

/* Where a sending is called from: a call may poll before it sends, and handlers that run then send
 * first, so order is promised within each stream. */
enum { FROM_MAIN, FROM_HANDLER, STREAMS };

enum { ROUNDS = 4, MESSAGES = 30 };

typedef struct oracle {
    int ranks;
    uint32_t *sent, *seen;             /* by source, target and stream: the next number */
    uint32_t *round_sent, *round_seen; /* by round, source and target */
    bool *left;                        /* ranks that are done */
    bool *dead;                        /* somebody was told so, or refused */
    uint64_t tracked, failed, told;
    uint64_t members[ROUNDS]; /* a mark of the set that the round's quiescence ended among */
    struct account *accounts; /* they outlive their ranks: peers go in ferry_close too */
    struct watch *watches;    /* all that ever were */
} oracle;

/* All ranks' truth. */
static oracle truth;

typedef struct account {
    uint64_t random;
    ferry_handler request;
    bool *told; /* by rank */
    uint64_t tracked, ended;
    bool in_handler;
} account;

/* A tracked request, from its start to its end. */
typedef struct watch {
    struct watch *next;
    int target;
    bool ended;
} watch;

static size_t pair_of(int source, int target)
{
    return (size_t)source * (size_t)truth.ranks + (size_t)target;
}

static size_t round_pair_of(uint64_t round, int source, int target)
{
    return (size_t)round * (size_t)truth.ranks * (size_t)truth.ranks + pair_of(source, target);
}

/* Somebody takes `rank` for gone: it may not act any more, unless it is done. */
static void declare_gone(int rank)
{
    if (!truth.left[rank])
        truth.dead[rank] = true;
}

static void check_alive(ferry *f)
{
    if (truth.dead[ferry_rank(f)])
        wrong(f, "declared dead, and alive", (uint64_t)ferry_rank(f), 0);
}

static void on_peer(ferry *f, void *arg, const ferry_peer_event *event)
{
    account *a = arg;
    if (a->told[event->rank])
        wrong(f, "told twice of one rank", (uint64_t)event->rank, event->died);
    if (!ferry_peer_is_gone(f, event->rank))
        wrong(f, "told of a rank that is not gone", (uint64_t)event->rank, event->died);
    a->told[event->rank] = true;
    if (!event->died && !truth.left[event->rank])
        wrong(f, "left, one says, before it was done", (uint64_t)event->rank, 0);
    declare_gone(event->rank);
    truth.told += event->died;
}

static void on_end(ferry *f, watch *w, const ferry_receipt *receipt, bool failed)
{
    account *a = ferry_user_data(f);
    if (w->ended)
        wrong(f, "a request ended twice", (uint64_t)w->target, failed);
    w->ended = true;
    a->ended++;
    if (failed && receipt->error != FERRY_EPEER)
        wrong(f, "a request failed otherwise", (uint64_t)w->target, (uint64_t)-receipt->error);
    if (failed)
        declare_gone(w->target);
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

static watch *watch_make(int target)
{
    watch *w = calloc(1, sizeof *w);
    *w = (watch){.next = truth.watches, .target = target};
    truth.watches = w;
    return w;
}

static void send_one(ferry *f, account *a, uint64_t round, uint64_t hops)
{
    int target = (int)draw(&a->random, (uint64_t)truth.ranks);
    uint64_t stream = a->in_handler ? FROM_HANDLER : FROM_MAIN;
    size_t pair = pair_of(ferry_rank(f), target) * STREAMS + stream;
    watch *w = draw(&a->random, 2) == 0 ? watch_make(target) : NULL;
    ferry_track track = FERRY_TRACK_DEFAULTS;
    track.completed = on_completed;
    track.failed = on_failed;
    track.completed_arg = track.failed_arg = w;
    ferry_message message = {
        .handler = a->request, .word_count = 4, .words = {truth.sent[pair]++, round, hops, stream}};
    truth.round_sent[round_pair_of(round, ferry_rank(f), target)]++;
    a->tracked += w != NULL;
    truth.tracked += w != NULL;
    int error = ferry_request_send(f, target, &message, w != NULL ? &track : NULL);
    if (error == 0)
        return;
    if (error != FERRY_EPEER)
        wrong(f, "a request was refused", (uint64_t)target, (uint64_t)-error);
    declare_gone(target);
    a->tracked -= w != NULL;
}

static void on_request(ferry *f, int source, const ferry_message *message)
{
    account *a = ferry_user_data(f);
    size_t pair = pair_of(source, ferry_rank(f)) * STREAMS + message->words[3];
    uint64_t round = message->words[1], hops = message->words[2];
    check_alive(f);
    if (a->told[source])
        wrong(f, "a request from a rank that is gone", (uint64_t)source, message->words[0]);
    if (message->words[0] != truth.seen[pair]++)
        wrong(f, "request out of order, lost or doubled", message->words[0], truth.seen[pair] - 1);
    truth.round_seen[round_pair_of(round, source, ferry_rank(f))]++;
    if (draw(&a->random, 4) == 0)
        ferry_compute(f, (double)draw(&a->random, 5000) * 1e-9);
    a->in_handler = true;
    if (hops > 0 && draw(&a->random, 5) != 0)
        send_one(f, a, round, hops - 1);
    a->in_handler = false;
}

/* All that the living sent each other in `round` has been handled. */
static void check_quiescence(ferry *f, uint64_t round)
{
    for (int source = 0; source < truth.ranks; source++)
        for (int target = 0; target < truth.ranks; target++) {
            size_t pair = round_pair_of(round, source, target);
            if (truth.round_sent[pair] != truth.round_seen[pair] &&
                !ferry_peer_is_gone(f, source) && !ferry_peer_is_gone(f, target))
                wrong(f, "quiescence declared with requests in flight", (uint64_t)source,
                      (uint64_t)target);
        }
}

static void check_collective(ferry *f, const account *a, int error)
{
    bool some_gone = false;
    for (int i = 0; i < truth.ranks; i++)
        some_gone |= a->told[i] || truth.dead[i]; /* others may know before */
    if (error != 0 && error != FERRY_EPEER)
        wrong(f, "a collective failed", (uint64_t)-error, 0);
    if (error == FERRY_EPEER && !some_gone)
        wrong(f, "a collective failed though nobody is gone", 0, 0);
}

/* All ranks that come out of a round's quiescence must name the same members, themselves among
 * them. */
static void check_members(ferry *f, uint64_t round)
{
    uint64_t mark = 1;
    for (int place = 0; place < ferry_member_count(f); place++)
        mark = mark * UINT64_C(0x100000001b3) + (uint64_t)ferry_member_rank(f, place);
    if (ferry_member_place(f, ferry_rank(f)) < 0)
        wrong(f, "no member of its own group", round, mark);
    if (truth.members[round] != 0 && truth.members[round] != mark)
        wrong(f, "two groups in one round", round, mark);
    truth.members[round] = mark;
}

static void play_round(ferry *f, account *a, uint64_t round)
{
    for (int i = 0; i < MESSAGES; i++) {
        send_one(f, a, round, draw(&a->random, 5));
        if (draw(&a->random, 3) == 0)
            ferry_poll(f);
        if (draw(&a->random, 4) == 0)
            ferry_compute(f, (double)draw(&a->random, 100000) * 1e-9);
    }
    check_alive(f);
    int error = ferry_quiesce(f);
    if (error != 0)
        wrong(f, "quiesce failed", (uint64_t)-error, 0);
    check_quiescence(f, round);
    check_members(f, round);
    uint64_t one = 1, all = 0;
    error = ferry_allreduce(f, FERRY_UINT64, FERRY_SUM, &one, &all, 1);
    check_collective(f, a, error);
    if (error == 0 && all != (uint64_t)ferry_member_count(f))
        wrong(f, "allreduce counted", all, (uint64_t)ferry_member_count(f));
    check_collective(f, a, ferry_barrier(f));
}

static void open_truth(ferry *f)
{
    if (truth.ranks != 0)
        return;
    truth.ranks = ferry_ranks(f);
    size_t pairs = (size_t)truth.ranks * (size_t)truth.ranks;
    truth.sent = calloc(pairs * STREAMS, sizeof(uint32_t));
    truth.seen = calloc(pairs * STREAMS, sizeof(uint32_t));
    truth.round_sent = calloc(pairs * ROUNDS, sizeof(uint32_t));
    truth.round_seen = calloc(pairs * ROUNDS, sizeof(uint32_t));
    truth.dead = calloc((size_t)truth.ranks, sizeof(bool));
    truth.left = calloc((size_t)truth.ranks, sizeof(bool));
    truth.accounts = calloc((size_t)truth.ranks, sizeof(account));
}

static int rank_main(ferry *f, int argc, char **argv)
{
    (void)argc;
    (void)argv;
    open_truth(f);
    account *a = &truth.accounts[ferry_rank(f)];
    a->random = first_random(ferry_rank(f));
    a->told = calloc((size_t)truth.ranks, sizeof(bool));
    ferry_user_data_set(f, a);
    if (ferry_peer_watch(f, on_peer, a) != 0 ||
        ferry_handler_register(f, "request", on_request, &a->request) != 0)
        wrong(f, "cannot begin", 0, 0);
    for (uint64_t round = 0; round < ROUNDS; round++)
        play_round(f, a, round);
    while (a->ended < a->tracked)
        if (ferry_wait(f, 1000000) < 0)
            wrong(f, "wait failed", 0, 0);
    check_alive(f);
    truth.left[ferry_rank(f)] = true;
    if (ferry_rank(f) == 0)
        printf("%" PRIu64 " tracked, %" PRIu64 " of them failed, told of deaths %" PRIu64
               " times\n",
               truth.tracked, truth.failed, truth.told);
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
