/* Progressive model: the simulation of progressive-messages.txt 6.1, as the thesis has it.
 *
 *      progressive_model > model.csv
 *
 * A step takes one task from every rank's queue and adds its length to the rank's clock. Then every
 * rank whose queue is worth less than the threshold picks a rank at random and balances with it, in
 * one of three ways. The speed-up is the sum of all tasks over the latest clock. The listing of the
 * thesis contradicts its text in two places, so there are two versions of it. As printed: a target
 * refuses when it has MORE than three thresholds, and the tasks that a clock ran over before a
 * refusal stay in the queue and are run again. As meant: it refuses when it has less, and a task is
 * run once. */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TASKS = 128 * 1024, RANKS_MAX = 16384 };

static const double latency = 0.5;

typedef enum discipline { PASSING, DRIVEN, PROGRESSIVE } discipline;

/* Tasks of one rank, at [first, end) of `tasks`. */
typedef struct queue {
    double *tasks;
    size_t first, end, room;
    double sum;
} queue;

typedef struct model {
    discipline discipline;
    double threshold;
    bool as_printed;
    int ranks;
    uint64_t random;
    double *clocks;
    queue *queues;
    uint64_t messages;
} model;

static uint64_t random_word(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static double random_unit(uint64_t *state)
{
    return ((double)(random_word(state) >> 11) + 0.5) / 9007199254740992.0;
}

static void *need(void *memory)
{
    if (memory == NULL) {
        perror("progressive_model");
        exit(1);
    }
    return memory;
}

/* The right half of a normal distribution times ten, rounded down, at least 1: median 6. */
static void make_tasks(double *tasks)
{
    uint64_t state = 1;
    for (int i = 0; i < TASKS; i++) {
        double radius = sqrt(-2 * log(random_unit(&state)));
        double turn = 6.283185307179586 * random_unit(&state);
        tasks[i] = fmax(1, floor(10 * fabs(radius * cos(turn))));
    }
}

static void push(queue *q, const double *tasks, size_t count)
{
    if (q->end + count > q->room && q->first != 0) {
        memmove(q->tasks, q->tasks + q->first, (q->end - q->first) * sizeof *q->tasks);
        q->end -= q->first;
        q->first = 0;
    }
    if (q->end + count > q->room) {
        q->room = 2 * (q->end + count);
        q->tasks = need(realloc(q->tasks, q->room * sizeof *q->tasks));
    }
    memcpy(q->tasks + q->end, tasks, count * sizeof *tasks);
    q->end += count;
    for (size_t i = 0; i < count; i++)
        q->sum += tasks[i];
}

/* Takes the first task; 0 when there is none. */
static double pop(queue *q)
{
    if (q->first == q->end)
        return 0;
    double task = q->tasks[q->first++];
    q->sum -= task;
    return task;
}

/* Message passing: the target hears of a request, and the source of its answer, between tasks. */
static void finish_tasks(model *m, int source, int target, queue *mine, queue *theirs)
{
    while (m->clocks[source] > m->clocks[target] && theirs->first < theirs->end)
        m->clocks[target] += pop(theirs);
    double met = fmax(m->clocks[source], m->clocks[target]);
    while (met > m->clocks[source] && mine->first < mine->end)
        m->clocks[source] += pop(mine);
}

static void balance(model *m, int source, int target)
{
    if (source == target)
        return;
    queue mine = m->queues[source], theirs = m->queues[target];
    if (m->discipline == PASSING)
        finish_tasks(m, source, target, &mine, &theirs);
    if (m->discipline != PROGRESSIVE) {
        m->clocks[source] += latency;
        m->clocks[target] += latency;
    }
    m->messages++;
    bool refuses = m->as_printed ? theirs.sum > 3 * m->threshold : theirs.sum < 3 * m->threshold;
    if (!m->as_printed || !refuses) {
        m->queues[source] = mine;
        m->queues[target] = theirs;
    }
    if (refuses)
        return;
    queue *from = &m->queues[target];
    size_t count = (from->end - from->first + 1) / 2;
    push(&m->queues[source], from->tasks + from->first, count);
    for (size_t i = 0; i < count; i++)
        pop(from);
}

/* False when all is done. */
static bool step(model *m)
{
    bool some = false;
    for (int i = 0; i < m->ranks; i++) {
        some |= m->queues[i].first < m->queues[i].end;
        m->clocks[i] += pop(&m->queues[i]);
    }
    static int sources[RANKS_MAX];
    int count = 0;
    for (int i = 0; i < m->ranks; i++)
        if (m->queues[i].sum < m->threshold)
            sources[count++] = i;
    for (int i = 0; some && i < count; i++)
        balance(m, sources[i], (int)(random_word(&m->random) % (uint64_t)m->ranks));
    return some;
}

static double speed_up(model *m, const double *tasks)
{
    m->clocks = need(calloc((size_t)m->ranks, sizeof *m->clocks));
    m->queues = need(calloc((size_t)m->ranks, sizeof *m->queues));
    double sum = 0, latest = 0;
    size_t each = (size_t)(TASKS / m->ranks);
    for (int i = 0; i < m->ranks; i++) {
        push(&m->queues[i], tasks + (size_t)i * each, each);
        sum += m->queues[i].sum;
    }
    while (step(m))
        continue;
    for (int i = 0; i < m->ranks; i++) {
        latest = fmax(latest, m->clocks[i]);
        free(m->queues[i].tasks);
    }
    free(m->queues);
    free(m->clocks);
    return sum / latest;
}

int main(void)
{
    static const char *const names[] = {"passing", "driven", "progressive"};
    static const double thresholds[] = {10, 100, 1000};
    static double tasks[TASKS];
    make_tasks(tasks);
    printf("version,discipline,threshold,ranks,speedup,requests\n");
    for (int printed = 0; printed < 2; printed++)
        for (int t = 0; t < 3; t++)
            for (int d = 0; d < 3; d++)
                for (int ranks = 1; ranks <= RANKS_MAX; ranks *= 2) {
                    model m = {.discipline = (discipline)d,
                               .threshold = thresholds[t],
                               .as_printed = printed,
                               .ranks = ranks,
                               .random = 7};
                    double speed = speed_up(&m, tasks);
                    printf("%s,%s,%g,%d,%.2f,%llu\n", printed ? "printed" : "meant", names[d],
                           thresholds[t], ranks, speed, (unsigned long long)m.messages);
                }
    return 0;
}
