/* Simulates a schedule, task by task, on ranks that have nothing but clocks.
 *
 * Each rank has a block of the sorted tasks, the heaviest first, and runs it in order. When its
 * last task ends it asks for another; with Ferry's own scheduler when its last task begins. The
 * answer comes after the time of one attempt. Then the most loaded of the ranks asked gives the
 * last task of its queue. To an idle rank it gives even its only waiting task; to a rank that still
 * runs a task only if two or more wait. If no rank can give, an idle rank asks the next ranks,
 * until no task waits anywhere.
 *
 * Diffusion asks `neighbours` ranks at a time. Stealing asks one rank at a time, in an order that
 * differs from rank to rank. Ferry's own scheduler knows the most loaded rank.
 *
 * Events are kept in a heap by time, then by rank, so equal input gives equal output. */
#include "base/play.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/alloc.h"

typedef enum event_kind { ENDED, ANSWERED, ARRIVED } event_kind;

typedef struct event {
    double time;
    int rank;
    event_kind kind;
    double seconds; /* ARRIVED: the task's time */
} event;

/* A rank. The tasks that wait there are [first, end) of its block, and one from another rank. */
typedef struct player {
    size_t first, end;
    double taken;
    bool has_taken, running, asking;
    double ends;  /* when the task that runs ends */
    double delay; /* to be added to `ends`: the cost of giving tasks meanwhile */
    int next;     /* distance to the rank that it asks next */
    int stride;   /* from that rank to the one after it */
} player;

typedef struct game {
    const fy_play_tasks *tasks;
    const fy_play_costs *p;
    player *players;
    event *heap;
    size_t heap_count;
    size_t waiting, in_flight; /* tasks in queues, and between two ranks */
    int ranks;
    int asked;     /* how many ranks one attempt asks */
    bool knows;    /* an attempt finds the most loaded of all ranks */
    bool ahead;    /* a rank asks when its last task begins; else when that has ended */
    bool balanced; /* ranks ask for tasks */
    double attempt, giving, installing, factor, overhead;
    double makespan;
    size_t migrations;
} game;

static bool before(const event *a, const event *b)
{
    return a->time < b->time ||
           (a->time == b->time && (a->rank < b->rank || (a->rank == b->rank && a->kind < b->kind)));
}

static void push(game *g, event e)
{
    size_t at = g->heap_count++;
    for (; at > 0 && before(&e, &g->heap[(at - 1) / 2]); at = (at - 1) / 2)
        g->heap[at] = g->heap[(at - 1) / 2];
    g->heap[at] = e;
}

static event pop(game *g)
{
    event first = g->heap[0], last = g->heap[--g->heap_count];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < g->heap_count; at = child) {
        if (child + 1 < g->heap_count && before(&g->heap[child + 1], &g->heap[child]))
            child++;
        if (!before(&g->heap[child], &last))
            break;
        g->heap[at] = g->heap[child];
    }
    g->heap[at] = last;
    return first;
}

static size_t queue_length(const player *q)
{
    return q->end - q->first + q->has_taken;
}

static double nth_heaviest(const game *g, size_t n)
{
    return g->tasks->seconds[g->tasks->count - 1 - n];
}

static void play_ask(game *g, int rank, double now)
{
    player *q = &g->players[rank];
    if (!g->balanced || q->asking || g->waiting + g->in_flight == 0)
        return;
    q->asking = true;
    push(g, (event){.time = now + g->attempt, .rank = rank, .kind = ANSWERED});
}

/* Begins the next task of the queue. If no more wait, asks for another (see `ahead`). */
static void play_start(game *g, int rank, double now)
{
    player *q = &g->players[rank];
    if (q->running)
        return;
    if (queue_length(q) > 0) {
        bool own = q->first < q->end;
        double seconds = own ? nth_heaviest(g, q->first++) : q->taken;
        q->has_taken = q->has_taken && own;
        g->waiting--;
        q->running = true;
        q->ends = now + seconds * g->factor + g->overhead + q->delay;
        q->delay = 0;
        push(g, (event){.time = q->ends, .rank = rank, .kind = ENDED});
    }
    if (queue_length(q) == 0 && (g->ahead || !q->running))
        play_ask(g, rank, now);
}

/* The rank with the longest queue among the `count` ranks at rank + first, each `stride` further.
 * -1: none has `least` tasks. */
static int most_loaded(const game *g, int rank, int first, int count, int stride, size_t least)
{
    int best = -1;
    for (int i = 0; i < count; i++) {
        int other = (int)(((long)rank + first + (long)i * stride) % g->ranks);
        if (other != rank && queue_length(&g->players[other]) >= least &&
            (best < 0 || queue_length(&g->players[other]) > queue_length(&g->players[best])))
            best = other;
    }
    return best;
}

static double play_give(game *g, int victim)
{
    player *q = &g->players[victim];
    double seconds = q->has_taken ? q->taken : nth_heaviest(g, --q->end);
    q->has_taken = false;
    q->delay += g->giving;
    g->waiting--;
    g->in_flight++;
    g->migrations++;
    return seconds;
}

static void play_answer(game *g, int rank, double now)
{
    player *q = &g->players[rank];
    size_t least = q->running ? 2 : 1;
    int victim = g->knows ? most_loaded(g, rank, 1, g->ranks - 1, 1, least)
                          : most_loaded(g, rank, q->next, g->asked, q->stride, least);
    q->asking = false;
    if (victim >= 0) {
        q->asking = true; /* until the task has come */
        push(g, (event){now + g->giving + g->installing, rank, ARRIVED, play_give(g, victim)});
        return;
    }
    q->next = (int)((q->next + (long)g->asked * q->stride) % g->ranks);
    if (!q->running)
        play_ask(g, rank, now);
}

static void arrive(game *g, int rank, const event *e)
{
    player *q = &g->players[rank];
    q->asking = false;
    q->taken = e->seconds;
    q->has_taken = true;
    g->in_flight--;
    g->waiting++;
    play_start(g, rank, e->time);
}

static void handle(game *g, const event *e)
{
    player *q = &g->players[e->rank];
    if (e->kind == ANSWERED) {
        play_answer(g, e->rank, e->time);
    } else if (e->kind == ARRIVED) {
        arrive(g, e->rank, e);
    } else if (q->delay > 0) { /* giving interrupted the task */
        q->ends = e->time + q->delay;
        q->delay = 0;
        push(g, (event){.time = q->ends, .rank = e->rank, .kind = ENDED});
    } else {
        q->running = false;
        g->makespan = e->time > g->makespan ? e->time : g->makespan;
        play_start(g, e->rank, e->time);
    }
}

/* A stride for stealing, prime to the number of ranks, so that it visits all of them. It differs
 * from rank to rank, so that two thieves ask different ranks. */
static int stride_of(int rank, int ranks)
{
    uint64_t state = ((uint64_t)rank + 1) * UINT64_C(0x9e3779b97f4a7c15);
    for (;;) {
        state ^= state >> 31;
        state *= UINT64_C(0xbf58476d1ce4e5b9);
        int stride = 1 + (int)((state >> 33) % (uint64_t)(ranks - 1));
        int a = stride, b = ranks;
        while (b != 0) {
            int rest = a % b;
            a = b;
            b = rest;
        }
        if (a == 1)
            return stride;
    }
}

size_t fy_play_block(size_t count, int ranks, int rank)
{
    size_t each = count / (size_t)ranks, more = count % (size_t)ranks, at = (size_t)rank;
    return at * each + (at < more ? at : more);
}

double fy_play_attempt(const fy_play_costs *p, fy_play_scheduler scheduler)
{
    double asked = scheduler == FY_PLAY_DIFFUSION ? p->neighbours : 1;
    double wait = scheduler == FY_PLAY_FERRY ? 0 : p->quantum / 2;
    return asked * p->startup + p->byte * p->request_bytes + wait + p->reply;
}

static void set_costs(game *g, fy_play_scheduler scheduler)
{
    const fy_play_costs *p = g->p;
    double wanted = scheduler == FY_PLAY_DIFFUSION ? p->neighbours : 1;
    g->asked = wanted < g->ranks - 1 ? (int)wanted : g->ranks - 1;
    g->knows = scheduler == FY_PLAY_FERRY;
    g->ahead = scheduler == FY_PLAY_FERRY;
    g->balanced = scheduler != FY_PLAY_NONE && g->ranks > 1;
    g->attempt = fy_play_attempt(p, scheduler) + p->decide;
    g->giving = p->uninstall + p->pack + p->startup + p->byte * p->task_bytes;
    g->installing = p->unpack + p->install;
    g->factor = p->quantum > 0 ? 1 + (p->poll + 2 * p->change) / p->quantum : 1;
    g->overhead = p->messages * (p->startup + p->byte * p->message_bytes + p->message_work);
}

bool fy_play(const fy_play_tasks *tasks, const fy_play_costs *p, int ranks,
             fy_play_scheduler scheduler, double *makespan, size_t *migrations)
{
    game g = {.tasks = tasks, .p = p, .ranks = ranks, .waiting = tasks->count};
    g.players = fy_calloc((size_t)ranks, sizeof *g.players);
    g.heap = fy_calloc((size_t)ranks * 2 + 2, sizeof *g.heap); /* a rank has a task and a request */
    bool good = g.players != NULL && g.heap != NULL;
    if (good) {
        set_costs(&g, scheduler);
        for (int i = 0; i < ranks; i++)
            g.players[i] = (player){.first = fy_play_block(tasks->count, ranks, i),
                                    .end = fy_play_block(tasks->count, ranks, i + 1),
                                    .next = 1,
                                    .stride = 1};
        for (int i = 0; i < ranks && ranks > 1 && scheduler == FY_PLAY_STEALING; i++)
            g.players[i].stride = g.players[i].next = stride_of(i, ranks);
        for (int i = 0; i < ranks; i++)
            play_start(&g, i, 0);
        while (g.heap_count > 0) {
            event e = pop(&g);
            handle(&g, &e);
        }
        *makespan = g.makespan;
        *migrations = g.migrations;
    }
    free(g.players);
    free(g.heap);
    return good;
}
