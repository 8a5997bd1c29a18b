/* Goal: no promise is broken when a program does everything at once. Method: in each round every
 * rank does random things by itself, and all members do some things together, which the seed draws.
 * A round ends with a quiescence, after which the account must be even, and with an agreement on
 * the next round. There ranks that have joined come in, and there others leave. Where ranks may
 * die, a round ends early after a death.
 *
 *      mixed [SEED] [PART]...     the parts named (part_names), or all but deaths
 *      mixed [SEED] no-PART...    all but these and deaths
 *      mixed [SEED] more ...      with those after deaths too, which are else named or left out;
 *                                 shares are always named
 *
 * ferry sim -n N -m M mixed; FERRY_RANKS=N FERRY_RANKS_MAX=M mixed SEED; ferry swarm -k -n N mixed;
 * ferry swarm --all -n N mixed deaths. */

#include "mixed.h"
#include "../support/truth.h"

enum { TRIES = 2000 };

static const char *const part_names[PARTS] = {
    "objects",   "requests",    "memory", "cells",   "collectives", "groups", "windows",
    "two-sided", "collections", "steps",  "balance", "joins",       "leaves", "deaths",
    "tags",      "carried",     "stores", "locks",   "blocks",      "queues", "shares"};

truth *t;

/* The accounts of the ranks in this process. They last until callbacks can no longer run. */
static account accounts[RANKS_MAX];

/* Limits that the environment does not give are drawn. */
static void choose_limits(uint64_t *random)
{
    static const char *const backlogs[] = {"", "", "1", "64", "4096", "65536"};
    static const char *const waitings[] = {"", "", "", "65536", "1048576"};
    static const char *const slots[] = {"", "2", "4", "16"};
    static const char *const bytes[] = {"", "1024", "4096"};
    static const char *const directories[] = {"lazy", "home", "eager"};
    static const char *const schedulers[] = {"ferry", "none", "stealing", "diffusion"};
    default_to("FERRY_BACKLOG_BYTES", backlogs[draw(random, 6)]);
    default_to("FERRY_WAITING_BYTES", waitings[draw(random, 5)]);
    default_to("FERRY_RING_SLOTS", slots[draw(random, 4)]);
    default_to("FERRY_RING_BYTES", bytes[draw(random, 3)]);
    default_to("FERRY_DIRECTORY", directories[draw(random, 3)]);
    default_to("FERRY_SCHEDULER", schedulers[draw(random, 4)]);
}

/* The number of the part of that name, or -1. */
static int part_of(const char *name)
{
    for (int p = 0; p < PARTS; p++)
        if (strcmp(name, part_names[p]) == 0)
            return p;
    return -1;
}

static unsigned parts_of(int argc, char **argv)
{
    const unsigned deaths = 1u << DEATHS, shares = 1u << SHARES, later = shares - 2 * deaths;
    unsigned named = 0, more = 0, left_out = 0;
    for (int i = 1; i < argc; i++) {
        bool without = strncmp(argv[i], "no-", 3) == 0;
        int p = part_of(argv[i] + (without ? 3 : 0));
        if (strcmp(argv[i], "more") == 0) {
            more = later;
        } else if (p >= 0) {
            left_out |= without ? 1u << p : 0;
            named |= without ? 0 : 1u << p;
        } else if (argv[i][0] < '0' || argv[i][0] > '9') {
            fprintf(stderr, "mixed: there is no part '%s'\n", argv[i]);
            exit(2);
        }
    }
    if ((named & ~(deaths | shares)) == 0)
        named |= deaths - 1;
    return (named | more) & ~left_out;
}

static void choose_plan(uint64_t seed, unsigned parts)
{
    uint64_t random = (seed * 2 + 1) * 0x9e3779b97f4a7c15u;
    plan *p = &t->plan;
    for (int i = 0; i < 8; i++)
        (void)draw(&random, 2);
    choose_limits(&random);
    p->seed = seed;
    p->parts = parts;
    p->rounds = 2 + draw(&random, 5);
    p->steps = CHOOSE(&random, 2, 10, 30);
    p->sizes = 1 + draw(&random, 6);
    p->hops = draw(&random, 5);
    p->fan = CHOOSE(&random, 1, 1, 2, 3);
    p->move_one_in = CHOOSE(&random, 1, 3, 10, 1000);
    p->end_one_in = CHOOSE(&random, 20, 200, 100000);
    p->track_one_in = CHOOSE(&random, 1, 2, 8);
    p->cancel_one_in = CHOOSE(&random, 5, 100000, 100000);
    p->spawn_one_in = CHOOSE(&random, 5, 30, 200);
    p->leave_one_in = CHOOSE(&random, 3, 10);
    p->together = draw(&random, 6);
    /* A step that is refused would be lost. */
    if (getenv("FERRY_WAITING_BYTES") != NULL)
        p->parts &= ~(1u << STEPS);
    p->bytes_max = CHOOSE(&random, 1 << 18, 1 << 20, 4 << 20);
}

/* Ranks that come and go. */

static void on_peer(ferry *f, void *arg, const ferry_peer_event *event)
{
    account *a = arg;
    (void)f;
    if (event->died && !has(DEATHS))
        wrong(f, "a rank has died", (uint64_t)event->rank, 0);
    a->deaths += event->died;
    if (event->died)
        atomic_store(&t->places[event->rank].died, true);
    if (event->died && !atomic_exchange(&t->places[event->rank].leaving, true)) {
        atomic_fetch_add(&t->deaths, 1);
        atomic_fetch_sub(&t->living, 1);
        if (!atomic_load(&t->places[event->rank].here))
            atomic_fetch_add(&t->arrived, 1); /* it will not come */
    }
}

static void on_leave(ferry *f, int source, const ferry_message *message)
{
    account *a = ferry_user_data(f);
    (void)source, (void)message;
    if (!a->may_leave)
        return;
    a->goes = true;
    ferry_quiesce_break(f);
}

/* Tells a rank to leave, if it is in the quiescence in which ranks leave. */
static void send_leave(ferry *f, account *a)
{
    const ferry_message message = {.handler = a->leave};
    int rank = draw_rank(f, a);
    int error = rank < 0 ? 0 : ferry_request_send(f, rank, &message, NULL);
    if (error != FERRY_EPEER || (!has(DEATHS) && !is_leaving(rank)))
        must(f, error, "send leave");
}

static void spawn(ferry *f, account *a)
{
    int first;
    if (a->collection != NULL || !one_in(&a->random, t->plan.spawn_one_in))
        return;
    atomic_fetch_add(&t->spawned, 1);
    atomic_fetch_add(&t->living, 1);
    int error = ferry_spawn(f, 1, NULL, &first);
    if (error == 0) {
        atomic_fetch_add(&t->joins, 1);
        return;
    }
    atomic_fetch_sub(&t->spawned, 1);
    atomic_fetch_sub(&t->living, 1);
    if (error != FERRY_ENOMEM && error != FERRY_ENOTSUP && error != FERRY_ESTATE)
        must(f, error, "spawn");
}

/* Whether this rank leaves now: not all may. */
static bool leaves(account *a)
{
    if (!a->goes && (!has(LEAVES) || !one_in(&a->random, t->plan.leave_one_in)))
        return false;
    a->goes = false;
    if (atomic_fetch_sub(&t->living, 1) > 2)
        return true;
    atomic_fetch_add(&t->living, 1);
    return false;
}

static void go(ferry *f, account *a)
{
    atomic_store(&mine(f)->leaving, true);
    ops_take(f, a, true);
    if (has(QUEUES)) {
        queues_settle(f, a);
        free(a->queue);
    }
    int rank = ferry_rank(f);
    must(f, ferry_leave(f), "leave");
    watches_free(rank);
    atomic_fetch_add(&t->leaves, 1);
}

/* The same of the parts after DEATHS. */
static void act_more(ferry *f, account *a)
{
    switch (draw(&a->random, 5)) {
    case 0:
        if (has(TAGS))
            tags_poll(f, a);
        break;
    case 1:
        if (has(CARRIED))
            carried_act(f, a);
        break;
    case 2:
        if (has(STORES))
            stores_act(f, a);
        break;
    default:
        if (has(QUEUES))
            queues_act(f, a);
        break;
    }
}

/* One thing that a rank does by itself. */
void act(ferry *f, account *a)
{
    if (has_more() && one_in(&a->random, 4)) {
        act_more(f, a);
        return;
    }
    switch (draw(&a->random, 12)) {
    case 0:
    case 1:
        (void)ferry_poll(f);
        break;
    case 2:
        ferry_compute(f, (double)draw(&a->random, 20000) * 1e-9);
        break;
    case 3:
        (void)ferry_wait(f, draw(&a->random, 20000));
        break;
    case 4:
        ops_take(f, a, false);
        break;
    case 5:
        if (has(REQUESTS) && one_in(&a->random, 2))
            send_broadcast(f, FROM_MAIN);
        else if (has(LEAVES) && one_in(&a->random, 10))
            send_leave(f, a);
        else if (has(JOINS) && a->in_round)
            spawn(f, a);
        break;
    case 6:
    case 7:
        if (has(REQUESTS))
            (void)send_request(f, FROM_MAIN, t->plan.hops);
        break;
    case 8:
        if (has(MEMORY))
            memory_act(f, a, FROM_MAIN);
        break;
    case 9:
        if (has(CELLS))
            cell_act(f, a, FROM_MAIN);
        break;
    default:
        if (has(OBJECTS))
            object_act(f, a);
        break;
    }
}

/* Rounds. */

static void play_round(ferry *f, account *a)
{
    uint64_t random = (t->plan.seed * 1000 + a->round * 2 + 1) * 0x9e3779b97f4a7c15u;
    a->in_round = true;
    (void)draw(&random, 2);
    for (uint64_t i = 0; i <= t->plan.together; i++) {
        for (uint64_t step = 0; step < t->plan.steps; step++)
            act(f, a);
        a->in_round = false;
        if (i < t->plan.together && together(f, a, &random) != 0)
            break;
        a->in_round = i + 1 < t->plan.together;
    }
    a->in_round = false;
}

/* The account of the round is even. */
static void check_round(ferry *f, account *a)
{
    ops_take(f, a, true);
    check_watches(f, ferry_rank(f), false);
    memory_check(f, a);
    if (has(CARRIED))
        carried_check(f, a);
}

/* 1: all agree on the next round; 0: this rank has left; negative: the others close. */
static int agree(ferry *f, account *a)
{
    uint64_t next = a->round + 1, agreed;
    for (int tries = 0; tries < TRIES; tries++) {
        while (a->dequeues != 0)
            (void)ferry_wait(f, 10000);
        if (has(QUEUES))
            queues_settle(f, a);
        int error = ferry_quiesce(f);
        uint64_t deaths = a->deaths;
        if (error == 0) {
            /* Others may be in the next round before this call returns, and their messages come. */
            check_round(f, a);
            watches_clear(f);
            a->round = a->round == 0 ? 0 : next;
            error = ferry_allreduce(f, FERRY_UINT64, FERRY_MAX, &next, &agreed, 1);
        }
        if (error == 0) {
            a->agreed_deaths = deaths;
            a->round = agreed;
            if (agreed >= t->plan.rounds)
                atomic_store(&t->finished, true);
            return 1;
        }
        if (error == FERRY_ECANCELED && a->goes) {
            if (!leaves(a))
                continue;
            go(f, a);
            return 0;
        }
        if (atomic_load(&t->finished) && (error == FERRY_EPEER || has(DEATHS)))
            return -1;
        (void)allowed(f, error, "agree");
    }
    wrong(f, "no agreement", a->round, 0);
}

/* False: this rank has left, or the job is over. */
static bool next_round(ferry *f, account *a, bool may_leave)
{
    if (may_leave && leaves(a)) {
        go(f, a);
        return false;
    }
    a->may_leave = may_leave;
    int agreed = agree(f, a);
    a->may_leave = false;
    return agreed > 0 && a->round < t->plan.rounds;
}

static void open_all(ferry *f, account *a)
{
    must(f, ferry_peer_watch(f, on_peer, a), "watch");
    messages_open(f, a);
    elements_open(f, a);
    must(f, ferry_handler_register(f, "leave", on_leave, &a->leave), "handler");
    memory_open(f, a);
    a->polled = FERRY_ANY_TAG;
    if (has(CARRIED))
        carried_open(f, a);
    if (has(BLOCKS))
        blocks_open(f, a);
    if (has(QUEUES))
        queues_open(f, a);
    atomic_store(&mine(f)->here, true);
}

static void tell(void)
{
    printf("mixed: seed %" PRIu64 ": %llu handled, %llu ended, %llu refused, %llu moves, "
           "%llu sessions, %llu steps, %llu joins, %llu leaves, %llu deaths\n",
           t->plan.seed, atomic_load(&t->handled), atomic_load(&t->ended), atomic_load(&t->refused),
           atomic_load(&t->moves), atomic_load(&t->sessions), atomic_load(&t->steps_done),
           atomic_load(&t->joins), atomic_load(&t->leaves), atomic_load(&t->deaths));
    if (has_more())
        printf("mixed: and %llu tag polls, %llu carries, %llu stores, %llu locks, %llu blocks, "
               "%llu parcels\n",
               atomic_load(&t->polls), atomic_load(&t->carries), atomic_load(&t->stored),
               atomic_load(&t->locked), atomic_load(&t->blocks), atomic_load(&t->taken));
}

static int rank_main(ferry *f, int argc, char **argv)
{
    (void)argc, (void)argv;
    if (ferry_ranks(f) > RANKS_MAX)
        return 2;
    int me = ferry_rank(f);
    account *a = &accounts[me];
    a->random = (t->plan.seed * 1000003 + (uint64_t)ferry_rank(f)) * 0x9e3779b97f4a7c15u + 1;
    ferry_user_data_set(f, a);
    bool joins = ferry_member_count(f) == 0, goes_on = true;
    if (!joins)
        atomic_fetch_add(&t->living, 1);
    atomic_store(&mine(f)->joined, joins);
    atomic_store(&mine(f)->comes, joins);
    open_all(f, a);
    goes_on = next_round(f, a, false);
    atomic_store(&mine(f)->comes, false);
    if (joins)
        atomic_fetch_add(&t->arrived, 1);
    while (goes_on) {
        play_round(f, a);
        goes_on = next_round(f, a, true);
    }
    if (has(QUEUES) && !is_leaving(me))
        queues_close(f, a);
    if (!is_leaving(me) && ferry_member_place(f, me) == 0) {
        for (int rank = 0; rank < RANKS_MAX; rank++)
            if (is_leaving(rank) && !atomic_load(&t->places[rank].died))
                check_watches(f, rank, false);
        tell();
    }
    return 0;
}

int main(int argc, char **argv)
{
    bool first;
    const char *seed =
        argc > 1 && argv[1][0] >= '0' && argv[1][0] <= '9' ? argv[1] : getenv("FERRY_SIM_SEED");
    t = truth_map(sizeof *t, &first);
    if (first)
        choose_plan(seed == NULL ? 1 : strtoull(seed, NULL, 10), parts_of(argc, argv));
    return ferry_main(argc, argv, rank_main, NULL);
}
