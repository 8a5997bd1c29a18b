/* Goal: a rank joins while the job balances. It hears from the schedulers of all others what they
 * told it before it had a scheduler, and its own scheduler is told who is there. Method: a
 * scheduler of the test's own sends a word to each rank that it hears of. The joining rank makes
 * its scheduler only after all others have sent it a word in vain. A task does not end before all
 * have sent it another word, and by then its scheduler has been told of them.
 *
 * Run as FERRY_RANKS=N FERRY_RANKS_MAX=N+1 FERRY_THREADS=1 FERRY_SCHEDULER=census newcomer. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <ferry/ferry.h>

#include "../support/check.h"

enum { RANKS_MAX = 8 };

/* The state of the rank that joins, which is the last; seq_cst throughout. */
static _Atomic bool named[RANKS_MAX]; /* to the scheduler of each rank */
static _Atomic bool told[RANKS_MAX];  /* its scheduler by that of each rank, once it was made */
static _Atomic bool made, welcomed;
static const uint64_t give_up_ns = UINT64_C(60000000000);

typedef struct state {
    ferry_schedulable *item; /* that waits */
} state;

static bool is_newcomer(const ferry_scheduling *s)
{
    return ferry_scheduling_rank(s) == ferry_scheduling_ranks(s) - 1;
}

static bool by_all(const _Atomic bool *marks, int ranks)
{
    int rank = 0;
    while (rank < ranks && marks[rank])
        rank++;
    return rank == ranks;
}

static int create(ferry_scheduling *s, void **out)
{
    const struct timespec nap = {.tv_nsec = 50 * 1000};
    uint64_t start_ns = ferry_scheduling_now(s);
    *out = calloc(1, sizeof(state));
    while (is_newcomer(s) && !by_all(named, ferry_scheduling_ranks(s) - 1)) {
        if (ferry_scheduling_now(s) - start_ns > give_up_ns)
            return FERRY_EINVAL;
        nanosleep(&nap, NULL);
    }
    made = made || is_newcomer(s);
    return *out == NULL ? FERRY_ENOMEM : 0;
}

static void destroy(ferry_scheduling *s, void *arg)
{
    (void)s;
    free(arg);
}

static void members(ferry_scheduling *s, void *arg)
{
    const uint64_t words[FERRY_SCHEDULER_WORDS] = {made};
    int last = ferry_scheduling_ranks(s) - 1;
    (void)arg;
    if (is_newcomer(s)) {
        welcomed = welcomed || ferry_scheduling_acceptor_count(s) == last;
    } else if (ferry_scheduling_accepts(s, last)) {
        ferry_scheduling_send(s, last, words);
        named[ferry_scheduling_rank(s)] = true;
    }
}

static void message(ferry_scheduling *s, void *arg, int source,
                    const uint64_t words[FERRY_SCHEDULER_WORDS])
{
    (void)arg;
    if (is_newcomer(s) && words[0] == 1)
        told[source] = true;
}

static ferry_schedulable *next(ferry_scheduling *s, void *arg)
{
    state *st = arg;
    ferry_schedulable *item = st->item;
    (void)s;
    st->item = NULL;
    if (item != NULL)
        item->queued = false;
    return item;
}

static void activate(ferry_scheduling *s, void *arg, ferry_schedulable *item)
{
    (void)s;
    item->queued = item->pending != 0;
    ((state *)arg)->item = item->queued ? item : NULL;
}

static void take_out(ferry_scheduling *s, void *arg, ferry_schedulable *item)
{
    (void)s;
    item->queued = false;
    ((state *)arg)->item = NULL;
}

static bool empty(ferry_scheduling *s, void *arg)
{
    (void)s;
    return ((state *)arg)->item == NULL;
}

/* Sends itself on, so that the quiescence does not end, at whose end all are told who is there. */
static void task(ferry *f, ferry_object object, void *data, int source, const ferry_message *m)
{
    uint64_t *start_ns = data;
    (void)source;
    if (*start_ns == 0)
        *start_ns = ferry_now(f);
    bool all_told = by_all(told, ferry_ranks(f) - 1);
    check(f, ferry_now(f) - *start_ns < give_up_ns, "a scheduler does not tell the newcomer");
    check(f, !all_told || welcomed, "the newcomer's scheduler is not told who is there");
    if (!all_told)
        check(f, ferry_object_send(f, object, m, NULL) == 0, "send");
}

static int rank_main(ferry *f, int argc, char **argv)
{
    static const ferry_scheduler scheduler = {.size = sizeof scheduler,
                                              .name = "census",
                                              .create = create,
                                              .destroy = destroy,
                                              .next = next,
                                              .activate = activate,
                                              .notify = activate,
                                              .remove = take_out,
                                              .empty = empty,
                                              .message = message,
                                              .members = members};
    static const ferry_object_ops ops = {
        .size = sizeof ops, .name = "clock", .flat_bytes = sizeof(uint64_t)};
    ferry_object_type type;
    ferry_handler handler;
    (void)argc, (void)argv;
    check(f, ferry_ranks(f) <= RANKS_MAX, "too many ranks");
    check(f, ferry_scheduler_register(f, &scheduler) == 0, "scheduler_register");
    check(f, ferry_object_type_register(f, &ops, &type) == 0, "type");
    check(f, ferry_object_handler_register(f, "task", task, &handler) == 0, "register");
    if (ferry_member_place(f, ferry_rank(f)) >= 0)
        check(f, ferry_balance_enable(f, true) == 0, "phase");
    if (ferry_rank(f) == 0) {
        int first;
        ferry_object object;
        const ferry_message m = {.handler = handler};
        check(f, ferry_object_create(f, type, calloc(1, sizeof(uint64_t)), &object) == 0, "create");
        check(f, ferry_balance_add(f, object, NULL) == 0, "balance_add");
        check(f, ferry_object_send(f, object, &m, NULL) == 0, "send");
        check(f, ferry_spawn(f, 1, NULL, &first) == 0, "spawn");
    }
    check(f, ferry_quiesce(f) == 0, "quiesce");
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
