/* Reads the tasks of objects from a trace into memory that a simulation can map. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cmd/scale/scale.h"

/* Each first rank has an equal part of the line from 0 to 1. Spreads its objects evenly over it,
 * but those that tasks create. */
static void scale_trace_place(scale_object *objects, size_t count, int ranks)
{
    for (size_t first = 0; first < count;) {
        int home = objects[first].home;
        size_t end = first, early = 0, at = 0;
        for (; end < count && objects[end].home == home; end++)
            early += !objects[end].late;
        for (size_t i = first; i < end; i++) {
            double part = early == 0 ? 0.5 : fmin((double)at, (double)early - 0.5) / (double)early;
            objects[i].place = (home + part) / (double)ranks;
            at += !objects[i].late;
        }
        first = end;
    }
}

/* Makes the plan, in memory that a child process can map by its descriptor. */
static bool share(scale_trace *t, const scale_graph *g, uint64_t bytes, int ranks)
{
    const scale_plan plan = {.bytes = bytes,
                             .objects = g->object_count,
                             .tasks = g->task_count,
                             .sends = g->send_count,
                             .roots = g->root_count,
                             .own_roots = g->own_roots,
                             .phases = g->phases,
                             .ranks = ranks,
                             .loaded = g->loaded};
    size_t size = (size_t)((char *)(scale_names(&plan) + plan.objects) - (char *)&plan);
    t->fd = memfd_create("ferry scale", 0);
    if (t->fd < 0 || ftruncate(t->fd, (off_t)size) != 0)
        return false;
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, t->fd, 0);
    if (at == MAP_FAILED)
        return false;
    t->plan = at;
    *t->plan = plan;
    memcpy(scale_objects(t->plan), g->objects, g->object_count * sizeof *g->objects);
    memcpy(scale_tasks(t->plan), g->tasks, (g->task_count + 1) * sizeof *g->tasks);
    memcpy(scale_sends(t->plan), g->sends, g->send_count * sizeof *g->sends);
    memcpy(scale_roots(t->plan), g->roots, g->root_count * sizeof *g->roots);
    return true;
}

static void sum_up(scale_trace *t, const trace_run *run, const scale_graph *g)
{
    double counted = 0;
    for (size_t i = 0; i < g->object_count; i++) {
        double seconds = 0;
        for (uint64_t k = 0; k < g->objects[i].tasks; k++)
            seconds += (double)g->tasks[g->objects[i].first_task + k].ns * 1e-9;
        t->seconds += seconds;
        t->late += g->objects[i].late;
        t->heaviest = fmax(t->heaviest, seconds);
    }
    for (int i = 0; i < run->ranks; i++) {
        counted += (double)trace_stat_of(&run->rank[i], "task_ns") * 1e-9;
        t->missed += trace_stat_of(&run->rank[i], "trail_missed");
    }
    t->left_out = fmax(0, counted - t->seconds);
}

/* False, with a line in `error`: the graph has too many tasks, or none with time. */
static bool is_good(const scale_graph *g, double seconds, const char *folder, char *error)
{
    if (g->task_count > SCALE_TASKS_MAX || g->object_count > UINT32_MAX)
        (void)snprintf(error, SCALE_ERROR_BYTES, "%.4000s: %zu tasks; expected at most %d", folder,
                       g->task_count, SCALE_TASKS_MAX);
    else if (!(seconds > 0))
        (void)snprintf(error, SCALE_ERROR_BYTES,
                       "%.4000s: %zu objects had tasks, of 0 s together; expected a trace with "
                       "tasks of objects",
                       folder, g->object_count);
    else
        return true;
    return false;
}

bool scale_trace_read(const char *folder, uint64_t bytes, scale_trace *out,
                      char error[SCALE_ERROR_BYTES])
{
    trace_run run;
    scale_graph graph;
    scale_trace t = {.fd = -1};
    if (!trace_run_read(folder, &run, error))
        return false;
    t.strangers = run.strangers;
    bool made = scale_graph_make(&run, &graph);
    if (made && graph.tasks != NULL) {
        scale_trace_place(graph.objects, graph.object_count, run.ranks);
        sum_up(&t, &run, &graph);
    }
    uint64_t chain_ns = 0;
    bool good = made && is_good(&graph, t.seconds, folder, error);
    made = made && (!good || scale_chain(&graph, &chain_ns));
    t.chain = fmax((double)chain_ns * 1e-9, t.heaviest);
    if (!made || (good && !share(&t, &graph, bytes, run.ranks))) {
        (void)snprintf(error, SCALE_ERROR_BYTES, "%.4000s: no memory for its tasks: %s", folder,
                       strerror(errno));
        good = false;
    }
    scale_graph_fini(&graph);
    trace_run_fini(&run);
    *out = t;
    return good;
}
