/* Response: how long a rank waits for an answer of another's scheduler while a task runs there.
 *
 * A scheduler of its own: rank 1's asks once a millisecond, rank 0's answers at once. Answers given
 * while no task ran are not counted. Prints the median and the 99th percentile, and how much of the
 * task's time other threads of its rank computed. */
#include <ferry/ferry.h>

#include "common/board.h"
#include "common/report.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SAMPLES_MAX = 10000, ASK, ANSWER };

#define INTERVAL_NS 1000000u

/* State of a rank, of its scheduler and of its program alike. */
typedef struct state {
    ferry_schedulable *waiting; /* singly linked by next */
    bool running;
    int count;
    double samples[SAMPLES_MAX];
} state;

static int create(ferry_scheduling *s, void **out)
{
    *out = calloc(1, sizeof(state));
    if (ferry_scheduling_rank(s) == 1)
        ferry_scheduling_wake(s, ferry_scheduling_now(s) + INTERVAL_NS);
    return *out ? 0 : FERRY_ENOMEM;
}

static void destroy(ferry_scheduling *s, void *arg)
{
    state *own = arg;
    double median = bench_median(own->samples, own->count); /* sorts */
    if (ferry_scheduling_rank(s) == 1 && own->count > 0)
        printf("median %.1f late %.1f ns of %d\n", median, own->samples[own->count * 99 / 100],
               own->count);
    free(own);
}

static void put_in(state *own, ferry_schedulable *item)
{
    if (item->queued || item->pending == 0)
        return;
    item->queued = true;
    item->next = own->waiting;
    own->waiting = item;
}

static ferry_schedulable *next(ferry_scheduling *s, void *arg)
{
    state *own = arg;
    ferry_schedulable *item = own->waiting;
    (void)s;
    if (!item)
        return NULL;
    own->waiting = item->next;
    item->queued = false;
    own->running = true;
    return item;
}

static void activate(ferry_scheduling *s, void *arg, ferry_schedulable *item)
{
    state *own = arg;
    (void)s;
    own->running = false;
    put_in(own, item);
}

static void notify(ferry_scheduling *s, void *arg, ferry_schedulable *item)
{
    (void)s;
    put_in(arg, item);
}

static void take_out(ferry_scheduling *s, void *arg, ferry_schedulable *item)
{
    state *own = arg;
    (void)s;
    for (ferry_schedulable **at = &own->waiting; *at; at = &(*at)->next)
        if (*at == item) {
            *at = item->next;
            break;
        }
    item->queued = false;
}

static bool empty(ferry_scheduling *s, void *arg)
{
    (void)s;
    return ((state *)arg)->waiting == NULL;
}

static void message(ferry_scheduling *s, void *arg, int source,
                    const uint64_t words[FERRY_SCHEDULER_WORDS])
{
    state *own = arg;
    uint64_t answer[FERRY_SCHEDULER_WORDS] = {ANSWER, words[1], own->running};
    if (words[0] == ASK)
        ferry_scheduling_send(s, source, answer);
    else if (words[2] && own->count < SAMPLES_MAX)
        own->samples[own->count++] = (double)(ferry_scheduling_now(s) - words[1]);
}

static void wake(ferry_scheduling *s, void *arg)
{
    uint64_t now = ferry_scheduling_now(s), words[FERRY_SCHEDULER_WORDS] = {ASK, now, 0};
    (void)arg;
    ferry_scheduling_send(s, 0, words);
    ferry_scheduling_wake(s, now + INTERVAL_NS);
}

static const ferry_scheduler scheduler = {.size = sizeof scheduler,
                                          .name = "response",
                                          .create = create,
                                          .destroy = destroy,
                                          .next = next,
                                          .activate = activate,
                                          .notify = notify,
                                          .remove = take_out,
                                          .empty = empty,
                                          .message = message,
                                          .wake = wake};

/* Processor time of this process's other threads. */
static uint64_t others_ns(void)
{
    struct timespec all, own;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &all);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &own);
    return (uint64_t)((all.tv_sec - own.tv_sec) * 1000000000 + all.tv_nsec - own.tv_nsec);
}

/* words[0]: nanoseconds; words[1]: whether it computes meanwhile or sleeps. */
static void on_task(ferry *f, ferry_object object, void *data, int source, const ferry_message *m)
{
    struct timespec nap = {.tv_sec = (time_t)(m->words[0] / 1000000000u),
                           .tv_nsec = (long)(m->words[0] % 1000000000u)};
    uint64_t end = bench_now() + m->words[0], before = others_ns();
    (void)f;
    (void)object;
    (void)data;
    (void)source;
    if (!m->words[1])
        nanosleep(&nap, NULL);
    while (bench_now() < end) {
    }
    printf("helper %.4f %%\n", 100 * (double)(others_ns() - before) / (double)m->words[0]);
}

/* response sleep|spin MILLISECONDS */
static int rank_main(ferry *f, int argc, char **argv)
{
    static const ferry_object_ops ops = {.size = sizeof ops, .name = "task", .flat_bytes = 1};
    ferry_object_type type;
    ferry_object object;
    ferry_message m = {.word_count = 2};
    if (argc != 3 || ferry_ranks(f) != 2)
        return 2;
    bench_pin(ferry_rank(f));
    m.words[0] = strtoull(argv[2], NULL, 10) * 1000000u;
    m.words[1] = strcmp(argv[1], "spin") == 0;
    if (ferry_scheduler_register(f, &scheduler) || ferry_object_type_register(f, &ops, &type) ||
        ferry_object_handler_register(f, "task", on_task, &m.handler) ||
        ferry_object_create(f, type, calloc(1, 1), &object) || ferry_balance_add(f, object, NULL) ||
        ferry_balance_enable(f, true))
        return 1;
    if (ferry_rank(f) == 0 && ferry_object_send(f, object, &m, NULL))
        return 1;
    return ferry_quiesce(f) ? 1 : 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
