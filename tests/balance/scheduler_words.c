/* Goal: the words of schedulers reach a rank that runs a task, at any time and however many. Some
 * wait for room. Some come while the rank waits for room itself. Some came just before the task
 * began. Method: a scheduler of the test's own. A task ends when its rank has heard all words that
 * it is to hear; meanwhile it does not call Ferry. The modes:
 * - burst: rank 1 runs a task. Rank 0, asked by one word, sends more words than a ring has room
 *   for.
 * - both: both ranks run a task, and answer each word with two, until there were more than the
 *   rings have room for in both directions.
 * - gap: rank 0 sends a word while rank 1 picks its task, which is not to hear any other.
 * - turns, for ranks of two nodes: rank 1 runs a task, and both answer each word with one. Its
 *   helper hears one each time it looks, so the task takes as many quanta.
 *
 * Run as FERRY_RANKS=2 FERRY_THREADS=1 FERRY_RING_SLOTS=8 FERRY_SCHEDULER=words scheduler_words
 * burst|both|gap, or under mpirun as FERRY_MPI_SHM=0 FERRY_QUANTUM_US=US FERRY_SCHEDULER=words
 * scheduler_words turns. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <ferry/ferry.h>

enum { RANKS = 2, BURST = 64, BOTH = 4000, TURNS = 20 };

typedef struct talk {
    ferry_schedulable *item; /* that waits */
} talk;

typedef enum stage { BEGINNING, PICKING, SENDING, SENT } stage;

static enum { IN_BURST, IN_BOTH, IN_GAP, IN_TURNS } mode;       /* constant while there are ranks */
static _Atomic int heard[RANKS], sent[RANKS], stage_now, wrong; /* seq_cst throughout */

static int to_hear(int rank)
{
    switch (mode) {
    case IN_BURST:
        return rank == 0 ? 1 : BURST;
    case IN_BOTH:
        return BOTH;
    case IN_GAP:
        return rank == 0 ? 0 : 1;
    case IN_TURNS:
        break;
    }
    return TURNS;
}

/* Until `*word` is so much, without a call of Ferry's. */
static void await(const _Atomic int *word, int value)
{
    const struct timespec nap = {.tv_nsec = 50 * 1000};
    for (int left = 60 * 20000; *word < value; left--) {
        if (left == 0 || wrong != 0) {
            wrong++;
            return;
        }
        nanosleep(&nap, NULL);
    }
}

static void say(ferry_scheduling *s, int count)
{
    const uint64_t words[FERRY_SCHEDULER_WORDS] = {0};
    int rank = ferry_scheduling_rank(s);
    for (; count > 0 && sent[rank] < to_hear(1 - rank); count--) {
        sent[rank]++;
        ferry_scheduling_send(s, 1 - rank, words);
    }
}

static int create(ferry_scheduling *s, void **state)
{
    (void)s;
    *state = calloc(1, sizeof(talk));
    return *state == NULL ? FERRY_ENOMEM : 0;
}

static void destroy(ferry_scheduling *s, void *state)
{
    (void)s;
    free(state);
}

/* Words that are sent here leave when this has returned: so when rank 0 is here again. */
static ferry_schedulable *next(ferry_scheduling *s, void *state)
{
    talk *t = state;
    ferry_schedulable *item = t->item;
    if (mode == IN_GAP && ferry_scheduling_rank(s) == 0) {
        if (stage_now == SENDING)
            stage_now = SENT;
        if (stage_now == PICKING) {
            stage_now = SENDING;
            say(s, 1);
        }
    }
    if (item == NULL)
        return NULL;
    if (mode == IN_GAP) {
        stage_now = PICKING;
        await(&stage_now, SENT);
    } else {
        say(s, 1);
    }
    item->queued = false;
    t->item = NULL;
    return item;
}

static void activate(ferry_scheduling *s, void *state, ferry_schedulable *item)
{
    (void)s;
    if (item->pending == 0 || item->queued)
        return;
    item->queued = true;
    ((talk *)state)->item = item;
}

static void take_out(ferry_scheduling *s, void *state, ferry_schedulable *item)
{
    talk *t = state;
    (void)s;
    if (t->item == item)
        t->item = NULL;
    item->queued = false;
}

static bool empty(ferry_scheduling *s, void *state)
{
    (void)s;
    return ((talk *)state)->item == NULL;
}

static void message(ferry_scheduling *s, void *state, int source,
                    const uint64_t words[FERRY_SCHEDULER_WORDS])
{
    (void)state, (void)source, (void)words;
    heard[ferry_scheduling_rank(s)]++;
    say(s, mode == IN_BURST ? BURST : mode == IN_TURNS ? 1 : 2);
}

static void task(ferry *f, ferry_object object, void *data, int source, const ferry_message *m)
{
    (void)object, (void)data, (void)source, (void)m;
    const char *quantum = getenv("FERRY_QUANTUM_US");
    uint64_t start_ns = ferry_now(f);
    await(&heard[ferry_rank(f)], to_hear(ferry_rank(f)));
    /* The first may have come already, and the next look after less than a quantum. */
    int took_us = (int)((ferry_now(f) - start_ns) / 1000), least = TURNS - 2;
    if (mode == IN_TURNS && (quantum == NULL || took_us < least * atoi(quantum))) {
        fprintf(stderr, "scheduler_words: %d words in %d us\n", TURNS, took_us);
        wrong++;
    }
}

static int run(ferry *f)
{
    static const ferry_object_ops ops = {.size = sizeof ops, .name = "x", .flat_bytes = 1};
    ferry_object_type type;
    ferry_object object;
    ferry_handler handler;
    int error = ferry_object_type_register(f, &ops, &type);
    if (error == 0)
        error = ferry_object_handler_register(f, "task", task, &handler);
    if (error == 0)
        error = ferry_balance_enable(f, true);
    if (error == 0 && (mode == IN_BOTH || ferry_rank(f) == 1)) {
        error = ferry_object_create(f, type, calloc(1, 1), &object);
        if (error == 0)
            error = ferry_balance_add(f, object, NULL);
        const ferry_message note = {.handler = handler};
        if (error == 0)
            error = ferry_object_send(f, object, &note, NULL);
    }
    while (error >= 0 && mode == IN_GAP && ferry_rank(f) == 0 && stage_now != SENT && wrong == 0)
        error = ferry_poll(f);
    return error >= 0 ? ferry_quiesce(f) : error;
}

static int rank_main(ferry *f, int argc, char **argv)
{
    static const ferry_scheduler scheduler = {.size = sizeof scheduler,
                                              .name = "words",
                                              .create = create,
                                              .destroy = destroy,
                                              .next = next,
                                              .activate = activate,
                                              .notify = activate,
                                              .remove = take_out,
                                              .empty = empty,
                                              .message = message};
    (void)argc, (void)argv;
    int error = ferry_scheduler_register(f, &scheduler);
    if (error == 0)
        error = run(f);
    if (error != 0)
        fprintf(stderr, "scheduler_words: %s\n", ferry_error_message(f));
    if (wrong != 0)
        fprintf(stderr, "scheduler_words: rank %d has heard %d of %d words\n", ferry_rank(f),
                heard[ferry_rank(f)], to_hear(ferry_rank(f)));
    return error != 0 || wrong != 0;
}

int main(int argc, char **argv)
{
    const char *how = argc == 2 ? argv[1] : "";
    mode = strcmp(how, "burst") == 0   ? IN_BURST
           : strcmp(how, "both") == 0  ? IN_BOTH
           : strcmp(how, "turns") == 0 ? IN_TURNS
                                       : IN_GAP;
    return ferry_main(argc, argv, rank_main, NULL);
}
