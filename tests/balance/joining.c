/* Goal: ranks that join during a quiescence get tasks in it, without another balance phase,
 * whatever the scheduler. When ranks leave, or die, those that stay go on balancing. If nobody
 * dies, each task runs once. Method: tasks send themselves on until every rank that is there has
 * run one and has said so to rank 0, which then broadcasts the end. Rounds in which a task has
 * ranks started, and rounds in which ranks leave or kill themselves, follow each other. A rank that
 * gets no task lets the test hang.
 *
 * Run with FERRY_RANKS and FERRY_RANKS_MAX; argument `die`: a rank that joined dies too. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ferry/ferry.h>

#include "../support/check.h"

enum { OBJECTS = 60, NAP_US = 50, RANKS_MAX = 64 };

/* Rank 0 tells the members this between rounds. */
typedef struct plan {
    int32_t leaver; /* a rank, or -1 */
    int32_t last;   /* whether the next round is the last */
} plan;

typedef struct state {
    ferry_object_type type;
    ferry_handler work, worked, over, spawn, die, account;
    uint64_t sent, ran; /* on this rank; on rank 0 also on those that have left */
    bool told, finished, leaves;
    /* On rank 0: */
    ferry_object objects[OBJECTS];
    bool worked_by[RANKS_MAX];
    int awaited; /* ranks that are to join or to die */
    int used;    /* numbers of ranks */
    int victim;  /* dies in this round; -1: nobody */
    int round;
} state;

/* Hands what is counted here over to rank 0. */
static void send_account(ferry *f, state *s)
{
    const ferry_message m = {.handler = s->account, .word_count = 2, .words = {s->sent, s->ran}};
    s->sent = s->ran = 0;
    check(f, ferry_request_send(f, 0, &m, NULL) == 0, "send");
}

/* A task that has sent itself on `age` times. */
static void send_work(ferry *f, state *s, ferry_object object, uint64_t age)
{
    const ferry_message m = {.handler = s->work, .word_count = 1, .words = {age}};
    s->sent++;
    check(f, ferry_object_send(f, object, &m, NULL) == 0, "send");
}

static void work(ferry *f, ferry_object object, void *data, int source,
                 const ferry_message *message)
{
    (void)source;
    state *s = ferry_user_data(f);
    uint64_t age = message->words[0], doublings = age / 8 < 10 ? age / 8 : 10;
    ++*(uint64_t *)data;
    s->ran++;
    if (!s->told) {
        const ferry_message m = {.handler = s->worked};
        s->told = true;
        check(f, ferry_request_send(f, 0, &m, NULL) == 0, "send");
    }
    /* Longer and longer: a rank that the simulator makes slow must be able to hear of all. */
    ferry_compute(f, (double)(NAP_US << doublings) * 1e-6);
    if (!s->finished)
        send_work(f, s, object, age + 1);
    if (s->leaves)
        send_account(f, s);
}

/* Rank 0: whether all that are there have run a task in this round, or since one was told to die.
 */
static void look(ferry *f, state *s)
{
    for (int rank = 1; rank < ferry_ranks(f); rank++)
        if (!ferry_peer_is_gone(f, rank) && !s->worked_by[rank])
            return;
    if (s->finished || s->awaited != 0)
        return;
    const ferry_message end = {.handler = s->over}, kill = {.handler = s->die};
    s->finished = s->victim < 0;
    if (s->finished) {
        check(f, ferry_request_broadcast(f, &end, NULL) == 0, "broadcast");
        return;
    }
    memset(s->worked_by, 0, sizeof s->worked_by);
    s->awaited++;
    check(f, ferry_request_send(f, s->victim, &kill, NULL) == 0, "send");
    s->victim = -1;
}

static void worked(ferry *f, int source, const ferry_message *message)
{
    (void)message;
    state *s = ferry_user_data(f);
    s->worked_by[source] = true;
    look(f, s);
}

/* After a death all say once more that they work: those that live must go on getting tasks. */
static void on_peer(ferry *f, void *arg, const ferry_peer_event *event)
{
    state *s = arg;
    s->told = s->told && !event->died;
    if (ferry_rank(f) != 0)
        return;
    s->awaited -= event->joined || event->died;
    look(f, s);
}

static void account(ferry *f, int source, const ferry_message *message)
{
    state *s = ferry_user_data(f);
    (void)source;
    s->sent += message->words[0];
    s->ran += message->words[1];
}

static void over(ferry *f, int source, const ferry_message *message)
{
    (void)source;
    (void)message;
    ((state *)ferry_user_data(f))->finished = true;
}

static void spawn(ferry *f, int source, const ferry_message *message)
{
    (void)source;
    int first;
    check(f, ferry_spawn(f, (int)message->words[0], NULL, &first) == 0, "spawn");
}

static void die(ferry *f, int source, const ferry_message *message)
{
    (void)f;
    (void)source;
    (void)message;
    raise(SIGKILL);
}

static void open_state(ferry *f, state *s)
{
    static const ferry_object_ops ops = {
        .size = sizeof ops, .name = "counter", .flat_bytes = sizeof(uint64_t)};
    ferry_user_data_set(f, s);
    check(f, ferry_object_type_register(f, &ops, &s->type) == 0, "type");
    check(f, ferry_object_handler_register(f, "work", work, &s->work) == 0, "register");
    check(f, ferry_handler_register(f, "worked", worked, &s->worked) == 0, "register");
    check(f, ferry_handler_register(f, "over", over, &s->over) == 0, "register");
    check(f, ferry_handler_register(f, "spawn", spawn, &s->spawn) == 0, "register");
    check(f, ferry_handler_register(f, "die", die, &s->die) == 0, "register");
    check(f, ferry_handler_register(f, "account", account, &s->account) == 0, "register");
    check(f, ferry_peer_watch(f, on_peer, s) == 0, "on_peer");
    for (int i = 0; i < OBJECTS && ferry_rank(f) == 0; i++) {
        uint64_t *counter = calloc(1, sizeof *counter);
        check(f, ferry_object_create(f, s->type, counter, &s->objects[i]) == 0, "create");
        check(f, ferry_balance_add(f, s->objects[i], NULL) == 0, "balance_add");
    }
}

/* Rank 0, at the start of a round: the last of the members has more started, as room is left;
 * `dies` is one that is to die in it, or -1. */
static void begin(ferry *f, state *s, int dies)
{
    int room = ferry_ranks(f) - s->used, more = room < 2 ? room : 2;
    memset(s->worked_by, 0, sizeof s->worked_by);
    s->awaited = more;
    s->used += more;
    s->victim = dies;
    for (int i = 0; i < OBJECTS; i++)
        send_work(f, s, s->objects[i], 0);
    const ferry_message m = {
        .handler = s->spawn, .word_count = 1, .words = {(uint64_t)(uint32_t)more}};
    int last = ferry_member_rank(f, ferry_member_count(f) - 1);
    if (more != 0)
        check(f, ferry_request_send(f, last, &m, NULL) == 0, "send");
}

/* Rank 0, between rounds: in every other the member behind it leaves. */
static plan decide(ferry *f, state *s)
{
    bool leaves = ++s->round % 2 == 0 && ferry_member_count(f) > 2;
    return (plan){.leaver = leaves ? ferry_member_rank(f, 1) : -1,
                  .last = s->used == ferry_ranks(f)};
}

/* Each round ends when the tasks do. False: this rank has left. */
static bool play(ferry *f, state *s, bool with_death)
{
    for (plan p = {.leaver = -1};;) {
        bool last = p.last != 0;
        if (ferry_rank(f) == 0)
            begin(f, s, with_death && last ? ferry_member_rank(f, 1) : -1);
        check(f, ferry_quiesce(f) == 0, "quiesce");
        s->told = s->finished = false;
        check(f, ferry_barrier(f) == 0, "barrier");
        p = ferry_rank(f) == 0 ? decide(f, s) : p;
        check(f, ferry_broadcast(f, 0, &p, sizeof p) == 0, "broadcast");
        if (last)
            return true;
        if (p.leaver == ferry_rank(f)) {
            s->leaves =
                true; /* tasks of the next round may run here before their objects have gone */
            send_account(f, s);
            check(f, ferry_leave(f) == 0, "leave");
            return false;
        }
    }
}

static int run(ferry *f, int argc, char **argv)
{
    bool with_death = argc > 1 && strcmp(argv[1], "die") == 0;
    uint64_t own[2], sums[2] = {0, 1};
    state *s = calloc(1, sizeof *s);
    check(f, s != NULL && ferry_ranks(f) <= RANKS_MAX, "memory");
    open_state(f, s);
    s->used = ferry_member_count(f);
    if (ferry_member_place(f, ferry_rank(f)) >= 0)
        check(f, ferry_balance_enable(f, true) == 0, "phase");
    if (!play(f, s, with_death)) {
        free(s); /* nobody is told anything any more */
        return 0;
    }
    check(f, ferry_balance_enable(f, false) == 0, "phase");
    check(f, ferry_quiesce(f) == 0, "quiesce"); /* the accounts of those that have left */
    own[0] = s->sent;
    own[1] = s->ran;
    check(f, ferry_allreduce(f, FERRY_UINT64, FERRY_SUM, own, sums, 2) == 0, "allreduce");
    check(f, with_death || sums[0] == sums[1], "tasks are lost or run twice");
    if (ferry_rank(f) == 0)
        printf("%d members in the end, %llu tasks\n", ferry_member_count(f),
               (unsigned long long)sums[1]);
    check(f, ferry_peer_watch(f, NULL, NULL) == 0, "on_peer"); /* others close before this one */
    free(s);
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, run, NULL);
}
