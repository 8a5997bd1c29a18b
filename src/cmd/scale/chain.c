/* The longest chain: the run time of a replay with a rank for each handler of each object and
 * without a network.
 *
 * A handler of an object runs one task at a time, and its k-th task after its k-th message has
 * come. A phase begins when the one before it has ended. Here each task begins as soon as that
 * allows. More time for a task or a message never lets another task begin earlier. So no schedule
 * is shorter. */
#include <stdlib.h>

#include "cmd/scale/scale.h"

/* The end of a task that runs. */
typedef struct ending {
    uint64_t time_ns;
    uint32_t task;
} ending;

/* The progress of a handler of an object. */
typedef struct state {
    uint32_t come, begun; /* messages that have come, tasks that have begun */
    bool runs;
} state;

typedef struct game {
    const scale_graph *g;
    state *states; /* by the first task */
    ending *heap;  /* of tasks that run, at most one for each state */
    size_t count;
} game;

static bool before(const ending *a, const ending *b)
{
    return a->time_ns < b->time_ns || (a->time_ns == b->time_ns && a->task < b->task);
}

static void push(game *p, ending e)
{
    size_t at = p->count++;
    for (; at > 0 && before(&e, &p->heap[(at - 1) / 2]); at = (at - 1) / 2)
        p->heap[at] = p->heap[(at - 1) / 2];
    p->heap[at] = e;
}

static ending pop(game *p)
{
    ending first = p->heap[0], last = p->heap[--p->count];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < p->count; at = child) {
        if (child + 1 < p->count && before(&p->heap[child + 1], &p->heap[child]))
            child++;
        if (!before(&p->heap[child], &last))
            break;
        p->heap[at] = p->heap[child];
    }
    p->heap[at] = last;
    return first;
}

static void go_on(game *p, uint32_t first, uint64_t now_ns)
{
    state *s = &p->states[first];
    uint64_t task = first + (uint64_t)s->begun;
    if (s->runs || s->begun == s->come || task >= p->g->task_count ||
        p->g->tasks[task].first != first)
        return;
    s->runs = true;
    s->begun++;
    push(p, (ending){now_ns + p->g->tasks[task].ns, (uint32_t)task});
}

/* A message has come to the handler of `task`. */
static void come(game *p, uint64_t task, uint64_t now_ns)
{
    uint32_t first = p->g->tasks[task].first;
    p->states[first].come++;
    go_on(p, first, now_ns);
}

/* Runs tasks until no message is left. Returns the end of the last task. */
static uint64_t play(game *p, uint64_t now_ns)
{
    const scale_task *tasks = p->g->tasks;
    while (p->count > 0) {
        ending e = pop(p);
        now_ns = e.time_ns;
        p->states[tasks[e.task].first].runs = false;
        for (uint64_t i = tasks[e.task].first_send; i < tasks[e.task + 1].first_send; i++)
            come(p, p->g->sends[i].task, now_ns);
        go_on(p, tasks[e.task].first, now_ns);
    }
    return now_ns;
}

static int by_phase(const void *left, const void *right)
{
    const scale_root *a = *(scale_root *const *)left, *b = *(scale_root *const *)right;
    return (a->phase > b->phase) - (a->phase < b->phase);
}

bool scale_chain(const scale_graph *graph, uint64_t *ns)
{
    game p = {.g = graph};
    p.states = calloc(graph->task_count + 1, sizeof *p.states);
    p.heap = malloc((graph->task_count + 1) * sizeof *p.heap);
    const scale_root **roots = malloc((graph->root_count + 1) * sizeof *roots);
    bool good = p.states != NULL && p.heap != NULL && roots != NULL;
    for (size_t i = 0; i < graph->root_count && good; i++)
        roots[i] = &graph->roots[i];
    if (good)
        qsort(roots, graph->root_count, sizeof *roots, by_phase);
    *ns = 0;
    for (size_t i = 0; i < graph->root_count && good;) {
        uint32_t phase = roots[i]->phase;
        for (; i < graph->root_count && roots[i]->phase == phase; i++)
            come(&p, roots[i]->task, *ns);
        *ns = play(&p, *ns);
    }
    free(p.states);
    free(p.heap);
    free(roots);
    return good;
}
