/* Goal: in a program that has not said that it goes on after deaths (ferry_peer_watch), no rank is
 * told of success when work was lost with a rank, and none waits forever. After the first
 * collective that fails on a rank, every collective, ferry_quiesce and ferry_close of that rank
 * fail, with FERRY_EPEER and a reason; the job ends with another status than 0. Method: the seed
 * draws the same sequence of collectives of all kinds, quiescences and phases of the balancer on
 * every rank. It also draws what each rank sends between them: from its main function, from
 * handlers and from tasks of objects that move. Ranks die at drawn times. The oracle stands outside
 * the ranks, in memory that all of them share: who has begun each call, and how many messages of
 * each round were sent and handled. A rank that fails stops with a status, returns 0, or goes on
 * with the calls, which must fail too.
 *
 *      ferry sim -n N lost     FERRY_RANKS=N lost SEED (ranks are killed by timers)
 *
 * Exit status: 0 when all promises were kept, 3 when one was not. */
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include <ferry/collective.h>

#include "oracle.h"

enum { RANKS_MAX = 16, CALLS_MAX = 64, OBJECTS = 3, WORDS_MAX = 1500, DEATHS_MAX = 2 };
enum { WAIT_NS = 1000000, LIMIT_S = 60 };

/* The ways in which a rank goes on after a call has failed. */
typedef enum after { STOPS, RETURNS, GOES_ON, AFTERS } after;

typedef struct plan {
    uint64_t seed, calls, burst, hops, compute_ns;
    bool large, balances;
    after after;
    int deaths;
    struct death {
        int rank;
        uint64_t at_ns;
    } death[DEATHS_MAX];
} plan;

typedef struct truth {
    plan plan;
    atomic_uint begun[CALLS_MAX];                 /* ranks, as bits */
    atomic_uint sent[CALLS_MAX], seen[CALLS_MAX]; /* by round: quiescences that came before */
    atomic_uint gone, failed, returned;           /* ranks, as bits */
    atomic_bool broken;
} truth;

static truth *t;

typedef struct account {
    uint64_t random, common;
    uint64_t call, round;
    int error; /* of the first call that failed */
    ferry_handler request, task;
    ferry_object_type type;
    ferry_object objects[RANKS_MAX * OBJECTS];
    bool has_objects;
    ferry_group *group;
    int ended; /* of a started call: 1, or its error */
} account;

static unsigned bit(int rank)
{
    return 1u << rank;
}

static void broken(ferry *f, const char *what, uint64_t a, uint64_t b)
{
    atomic_store(&t->broken, true);
    wrong(f, what, a, b);
}

static void check_alive(ferry *f)
{
    if (atomic_load(&t->gone) & bit(ferry_rank(f)))
        broken(f, "declared dead, and alive", 0, 0);
}

static bool is_one_gone(const ferry *f)
{
    bool gone = false;
    for (int rank = 0; rank < ferry_ranks(f); rank++)
        gone = gone || ferry_peer_is_gone(f, rank);
    return gone;
}

/* Notes a call that has failed. */
static void fail(ferry *f, account *a, const char *call, int error)
{
    const char *text = ferry_error_message(f);
    for (int rank = 0; rank < ferry_ranks(f); rank++)
        if (ferry_peer_is_gone(f, rank))
            atomic_fetch_or(&t->gone, bit(rank));
    /* Ranks of which some have gone on after a failure do not make the same calls any more. */
    bool expected = error == FERRY_EPEER || (error == FERRY_EINVAL && atomic_load(&t->failed) != 0);
    if (!expected || strstr(text, "rank") == NULL) {
        fprintf(stderr, "lost: rank %d: call %d: %s: %s: %s\n", ferry_rank(f), (int)a->call, call,
                ferry_strerror(error), text);
        broken(f, "a call failed in another way", (uint64_t)-error, a->call);
    }
    if (a->error != FERRY_EPEER)
        a->error = error;
    atomic_fetch_or(&t->failed, bit(ferry_rank(f)));
}

static uint64_t value_of(uint64_t call, int rank, uint64_t i)
{
    return (call * 17 + (uint64_t)rank) * 4096 + i;
}

static void send_one(ferry *f, account *a, uint64_t round, uint64_t hops)
{
    ferry_message m = {.handler = a->request, .word_count = 2, .words = {round, hops}};
    int error, count = ferry_ranks(f);
    bool to_object = a->has_objects && draw(&a->random, 2) == 0;
    atomic_fetch_add(&t->sent[round], 1);
    if (to_object) {
        m.handler = a->task;
        error = ferry_object_send(f, a->objects[draw(&a->random, (uint64_t)(count * OBJECTS))], &m,
                                  NULL);
    } else {
        error = ferry_request_send(f, (int)draw(&a->random, (uint64_t)count), &m, NULL);
    }
    if (error == 0)
        return;
    atomic_fetch_sub(&t->sent[round], 1);
    /* An object may be known to be lost with a rank. */
    bool lost = error == FERRY_ENOENT && to_object && is_one_gone(f);
    if (error != FERRY_EPEER && error != FERRY_EAGAIN && !lost)
        broken(f, "a message was refused", (uint64_t)-error, 0);
}

static void handle(ferry *f, const ferry_message *message)
{
    account *a = ferry_user_data(f);
    uint64_t round = message->words[0], hops = message->words[1];
    check_alive(f);
    atomic_fetch_add(&t->seen[round], 1);
    if (draw(&a->random, 3) == 0)
        ferry_compute(f, (double)draw(&a->random, 3000) * 1e-9);
    for (uint64_t i = draw(&a->random, 3); hops > 0 && i > 0; i--)
        send_one(f, a, round, hops - 1);
}

static void on_request(ferry *f, int source, const ferry_message *message)
{
    (void)source;
    handle(f, message);
}

static void on_task(ferry *f, ferry_object object, void *data, int source,
                    const ferry_message *message)
{
    account *a = ferry_user_data(f);
    (void)data;
    (void)source;
    handle(f, message);
    int target = (int)draw(&a->random, (uint64_t)ferry_ranks(f));
    if (draw(&a->random, 8) == 0 && ferry_object_move(f, object, target) == FERRY_ENOENT)
        broken(f, "an object is not where its handler runs", 0, 0);
}

static void on_end(ferry *f, void *arg, const ferry_receipt *receipt)
{
    account *a = arg;
    (void)f;
    a->ended = receipt->error == 0 ? 1 : receipt->error;
}

/* A started call, waited for. */
static int run_started(ferry *f, account *a, const ferry_collective *what)
{
    ferry_track track = FERRY_TRACK_DEFAULTS;
    track.completed = track.failed = on_end;
    track.completed_arg = track.failed_arg = a;
    a->ended = 0;
    int error = ferry_collective_start(f, what, &track);
    while (error == 0 && a->ended == 0)
        (void)ferry_wait(f, WAIT_NS);
    return error != 0 ? error : a->ended < 0 ? a->ended : 0;
}

/* The ranks that `kind` cannot succeed without, on this rank. */
static unsigned needed(const ferry *f, const ferry_collective *what)
{
    int self = ferry_rank(f), ranks = ferry_ranks(f);
    unsigned all = bit(ranks) - 1;
    switch (what->kind) {
    case FERRY_BROADCAST:
        return bit(what->root);
    case FERRY_REDUCE:
    case FERRY_GATHER:
        return self == what->root ? all : bit(self);
    case FERRY_SCAN:
        return bit(self) - 1;
    default:
        if (what->group == NULL)
            return all;
        all = 0;
        for (int i = 0; i < ferry_group_count(f, what->group); i++)
            all |= bit(ferry_group_rank(f, what->group, i));
        return all;
    }
}

static uint64_t expected_sum(const ferry *f, uint64_t call, unsigned ranks, uint64_t i)
{
    uint64_t sum = 0;
    for (int rank = 0; rank < ferry_ranks(f); rank++)
        sum += ranks & bit(rank) ? value_of(call, rank, i) : 0;
    return sum;
}

static bool is_right(const ferry *f, const ferry_collective *what, uint64_t call, uint64_t i)
{
    const uint64_t *out = what->out;
    int self = ferry_rank(f), place = (int)(i / what->count), ranks = ferry_ranks(f);
    uint64_t at = i % what->count;
    switch (what->kind) {
    case FERRY_BARRIER:
        return true;
    case FERRY_BROADCAST:
        return i >= what->count || out[i] == value_of(call, what->root, i);
    case FERRY_REDUCE:
    case FERRY_ALLREDUCE:
    case FERRY_SCAN:
        return i >= what->count || (what->kind == FERRY_REDUCE && self != what->root) ||
               (what->kind == FERRY_SCAN && self == 0) ||
               out[i] == expected_sum(f, call, needed(f, what), i);
    case FERRY_ALLTOALL:
        return out[i] == value_of(call, place, at + (uint64_t)self * what->count);
    default:
        return place >= ranks || (what->kind == FERRY_GATHER && self != what->root) ||
               out[i] == value_of(call, place, at);
    }
}

static const ferry_collective_kind kinds[] = {FERRY_BARRIER,   FERRY_BROADCAST, FERRY_ALLREDUCE,
                                              FERRY_REDUCE,    FERRY_SCAN,      FERRY_GATHER,
                                              FERRY_ALLGATHER, FERRY_ALLTOALL};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

static int run_collective(ferry *f, account *a, bool in_group, unsigned *must_have)
{
    static uint64_t in[RANKS_MAX][WORDS_MAX * RANKS_MAX], out[RANKS_MAX][WORDS_MAX * RANKS_MAX];
    int self = ferry_rank(f), ranks = ferry_ranks(f);
    uint64_t bound = t->plan.large && draw(&a->common, 3) == 0 ? WORDS_MAX : 8;
    ferry_collective what = FERRY_COLLECTIVE_DEFAULTS;
    what.kind = kinds[draw(&a->common, KINDS)];
    what.root = (int)draw(&a->common, (uint64_t)ranks);
    what.count = 1 + draw(&a->common, bound);
    what.type = FERRY_UINT64;
    bool started = draw(&a->common, 3) == 0;
    if (in_group) {
        what.kind = FERRY_ALLREDUCE;
        what.group = a->group;
        what.root = ferry_group_rank(f, a->group, 0);
    }
    for (uint64_t i = 0; i < what.count * (uint64_t)ranks; i++)
        in[self][i] = value_of(a->call, self, i);
    what.in = in[self];
    what.out = what.kind == FERRY_BROADCAST && self == what.root ? in[self] : out[self];
    *must_have = needed(f, &what);
    int error = started ? run_started(f, a, &what) : ferry_collective_run(f, &what);
    for (uint64_t i = 0; error == 0 && i < what.count * (uint64_t)ranks; i++)
        if (!is_right(f, &what, a->call, i))
            broken(f, "a result is wrong", what.kind, i);
    return error;
}

static int run_quiesce(ferry *f, account *a)
{
    uint64_t round = a->round;
    int error = ferry_quiesce(f);
    if (error == 0 && atomic_load(&t->sent[round]) != atomic_load(&t->seen[round]))
        broken(f, "quiescence with messages in flight", atomic_load(&t->sent[round]),
               atomic_load(&t->seen[round]));
    a->round += error == 0;
    return error;
}

/* The next call of the sequence. */
static void call_next(ferry *f, account *a)
{
    unsigned self = bit(ferry_rank(f)), must_have = bit(ferry_ranks(f)) - 1;
    uint64_t which = draw(&a->common, 8);
    int before = a->error, error;
    check_alive(f);
    atomic_fetch_or(&t->begun[a->call], self);
    if (which < 2)
        error = run_quiesce(f, a);
    else if (which == 2 && t->plan.balances)
        error = ferry_balance_enable(f, draw(&a->common, 2) == 0);
    else
        error = run_collective(f, a, which == 3 && a->group != NULL, &must_have);
    check_alive(f);
    if (error == 0 && before == FERRY_EPEER)
        broken(f, "a call succeeded after one had failed", a->call, which);
    if (error == 0 && (atomic_load(&t->begun[a->call]) & must_have) != must_have)
        broken(f, "a call succeeded that a rank did not begin", a->call, which);
    if (error != 0)
        fail(f, a, "collective", error);
    a->call++;
}

static void burst(ferry *f, account *a)
{
    for (uint64_t i = draw(&a->random, t->plan.burst + 1); i > 0 && a->error == 0; i--) {
        send_one(f, a, a->round, draw(&a->random, t->plan.hops + 1));
        if (draw(&a->random, 4) == 0)
            (void)ferry_poll(f);
    }
    if (draw(&a->random, 2) == 0)
        ferry_compute(f, (double)draw(&a->random, t->plan.compute_ns) * 1e-9);
}

/* Objects and a group, by calls that may fail already. */
static void begin(ferry *f, account *a)
{
    static const ferry_object_ops ops = {.size = sizeof ops, .name = "thing", .flat_bytes = 8};
    ferry_object mine[OBJECTS];
    if (ferry_handler_register(f, "request", on_request, &a->request) != 0 ||
        ferry_object_handler_register(f, "task", on_task, &a->task) != 0 ||
        ferry_object_type_register(f, &ops, &a->type) != 0)
        broken(f, "cannot begin", 0, 0);
    for (int i = 0; i < OBJECTS; i++)
        if (ferry_object_create(f, a->type, calloc(1, 8), &mine[i]) != 0 ||
            (t->plan.balances && ferry_balance_add(f, mine[i], NULL) != 0))
            broken(f, "no object", 0, 0);
    int error = ferry_allgather(f, mine, sizeof mine, a->objects);
    a->has_objects = error == 0;
    if (error != 0)
        fail(f, a, "allgather", error);
    if (error == 0 || t->plan.after == GOES_ON)
        error = ferry_group_split(f, NULL, ferry_rank(f) % 2, 0, &a->group);
    if (error != 0)
        fail(f, a, "split", error);
}

/* Waits for the others to see what this rank has seen: whoever ends first ends a simulated job. */
static void await_others(ferry *f)
{
    unsigned all = bit(ferry_ranks(f)) - 1;
    time_t end = time(NULL) + LIMIT_S;
    while ((atomic_load(&t->failed) | atomic_load(&t->returned) | atomic_load(&t->gone)) != all) {
        for (int rank = 0; rank < ferry_ranks(f); rank++)
            if (ferry_peer_is_gone(f, rank))
                atomic_fetch_or(&t->gone, bit(rank));
        (void)ferry_wait(f, WAIT_NS);
        if (time(NULL) > end)
            broken(f, "a rank waits forever", atomic_load(&t->failed), atomic_load(&t->returned));
    }
}

/* Processes die by a timer of their own. */
static void set_timer(int rank)
{
    for (int i = 0; i < t->plan.deaths; i++) {
        const struct death *d = &t->plan.death[i];
        struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL};
        struct itimerspec at = {
            .it_value = {(time_t)(d->at_ns / 1000000000u), (long)(d->at_ns % 1000000000u)}};
        timer_t timer;
        if (d->rank == rank && (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0 ||
                                timer_settime(timer, 0, &at, NULL) != 0))
            abort();
    }
}

static int rank_main(ferry *f, int argc, char **argv)
{
    static account accounts[RANKS_MAX]; /* handlers run in ferry_close too */
    (void)argv;
    account *a = &accounts[ferry_rank(f)];
    if (ferry_ranks(f) > RANKS_MAX)
        return 2;
    a->common = t->plan.seed * 0x9e3779b97f4a7c15u + 1;
    a->random = (t->plan.seed * 1000003 + (uint64_t)ferry_rank(f)) * 0x9e3779b97f4a7c15u + 1;
    ferry_user_data_set(f, a);
    if (argc > 1)
        set_timer(ferry_rank(f));
    begin(f, a);
    while (a->call < t->plan.calls && (a->error == 0 || t->plan.after == GOES_ON)) {
        burst(f, a);
        call_next(f, a);
    }
    if (a->error == 0)
        burst(f, a);
    if (a->error == 0)
        atomic_fetch_or(&t->returned, bit(ferry_rank(f)));
    if (a->error != 0 && t->plan.after != STOPS)
        await_others(f);
    return a->error != 0 && t->plan.after == STOPS ? 1 : 0;
}

static void choose_plan(uint64_t seed, int ranks, bool processes)
{
    uint64_t random = (seed * 2 + 1) * 0x9e3779b97f4a7c15u;
    plan *p = &t->plan;
    for (int i = 0; i < 8; i++)
        (void)draw(&random, 2);
    *p = (plan){.seed = seed,
                .calls = 1 + draw(&random, CALLS_MAX - 1),
                .burst = draw(&random, 30),
                .hops = draw(&random, 4),
                .compute_ns = 1 + draw(&random, 50000),
                .large = draw(&random, 2) == 0,
                .balances = draw(&random, 2) == 0,
                .after = (after)draw(&random, AFTERS)};
    /* `ferry swarm --all` has another simulated rank die. */
    p->deaths = (int)draw(&random, DEATHS_MAX + 1);
    for (int i = 0; i < p->deaths; i++) {
        uint64_t most_ns = (processes ? 1000000 : 20000) * (1 + draw(&random, 40));
        p->death[i] =
            (struct death){(int)draw(&random, (uint64_t)ranks), 1 + draw(&random, most_ns)};
    }
}

/* Adds the deaths to the faults of the simulator, unless the run is repeated: then they are there.
 */
static void plan_deaths(void)
{
    char text[512];
    const char *faults = getenv("FERRY_SIM_FAULTS");
    if (faults != NULL && (faults[0] == '@' || strstr(faults, "die=") != NULL))
        return;
    size_t length = (size_t)snprintf(text, sizeof text, "%.300s", faults == NULL ? "" : faults);
    for (int i = 0; i < t->plan.deaths; i++)
        length +=
            (size_t)snprintf(text + length, sizeof text - length, "%sdie=%d@%" PRIu64 "ns",
                             length == 0 ? "" : ",", t->plan.death[i].rank, t->plan.death[i].at_ns);
    if (t->plan.deaths > 0 && setenv("FERRY_SIM_FAULTS", text, 1) != 0)
        abort();
}

/* Whether the job's status is true. */
static int judge(int status, int ranks, bool processes)
{
    unsigned all = bit(ranks) - 1, failed = atomic_load(&t->failed);
    unsigned returned = atomic_load(&t->returned), sent = 0, seen = 0;
    for (int i = 0; i < CALLS_MAX; i++) {
        sent += atomic_load(&t->sent[i]);
        seen += atomic_load(&t->seen[i]);
    }
    bool well = status != 0 || (failed == 0 && returned == all);
    if (!processes && status >= 120 && status < 128)
        return status; /* the simulator has found something */
    if (!well || atomic_load(&t->broken) || status == 2) {
        fprintf(stderr,
                "lost: seed %" PRIu64 ": status %d, failed %x, returned %x of %x, %u sent, "
                "%u handled\n",
                t->plan.seed, status, failed, returned, all, sent, seen);
        return WRONG_STATUS;
    }
    printf("lost: seed %" PRIu64 ": status %d, %d deaths, failed %x, returned %x of %x, %u sent, "
           "%u handled\n",
           t->plan.seed, status, t->plan.deaths, failed, returned, all, sent, seen);
    return 0;
}

int main(int argc, char **argv)
{
    const char *seed = getenv("FERRY_SIM_SEED"), *count = getenv("FERRY_RANKS");
    int ranks = count == NULL ? 1 : atoi(count);
    bool processes = argc > 1;
    t = mmap(NULL, sizeof *t, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (t == MAP_FAILED || ranks < 1 || ranks > RANKS_MAX)
        return 2;
    choose_plan(strtoull(processes      ? argv[1]
                         : seed == NULL ? "1"
                                        : seed,
                         NULL, 10),
                ranks, processes);
    if (!processes)
        plan_deaths();
    return judge(ferry_main(argc, argv, rank_main, NULL), ranks, processes);
}
