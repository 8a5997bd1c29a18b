/* ferry scale: reads the tasks of a traced run, and runs them again in the simulator (replay.c). */
#ifndef FY_CMD_SCALE_H
#define FY_CMD_SCALE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cmd/report/trace.h"

enum { SCALE_ERROR_BYTES = TRACE_ERROR_BYTES, SCALE_TASKS_MAX = 20000000, SCALE_HOME_SHIFT = 44 };

#define SCALE_NONE UINT32_MAX /* no object */

/* An object. Its tasks are a range of all tasks. Those of one handler stand together, in the order
 * in which they ran. */
typedef struct scale_object {
    uint64_t name; /* the bits from SCALE_HOME_SHIFT on are the rank that made it */
    uint64_t first_task, tasks;
    int home;       /* its first rank in the traced run */
    bool late;      /* a task creates it, on its own rank */
    uint32_t after; /* the next object that the same task creates, or SCALE_NONE */
    double place;   /* from 0 to below 1: where it begins, on any number of ranks */
} scale_object;

/* A task. The k-th message to a handler of an object starts the k-th task of that handler. At its
 * end the task creates objects, and sends the messages from `first_send` to the `first_send` of the
 * next task. */
typedef struct scale_task {
    uint64_t ns;
    uint64_t first_send;
    double load;      /* as the scheduler was told; 0: it was told none */
    uint32_t creates; /* the first object that it creates, or SCALE_NONE */
    uint32_t first;   /* task of its object and handler */
} scale_task;

typedef struct scale_send {
    uint32_t object; /* index of the target */
    uint32_t bytes;
    uint64_t task; /* the task that it started in the traced run; for the load */
} scale_send;

/* A message of the program itself. */
typedef struct scale_root {
    uint32_t object, bytes;
    uint32_t phase; /* how many quiescences have ended before it is sent */
    int32_t sender; /* the rank of the traced run; -1: the first rank of the object */
    uint64_t task;
} scale_root;

/* The plan is shared with the simulation, which reads the arrays after the struct, and writes the
 * results and the names of its objects. The arrays, in this order:
 *
 * - objects
 * - tasks, and one more as the end of the last one's sends
 * - sends
 * - roots: `own_roots` without a sender, by object; then the others, by sender
 * - names of objects */
typedef struct scale_plan {
    uint64_t bytes;                   /* of an object's data */
    uint64_t makespan_ns, moves, ran; /* results; ran: how many tasks */
    uint64_t objects, tasks, sends, roots, own_roots;
    uint32_t phases;
    int ranks;   /* of the traced run */
    bool loaded; /* its scheduler was told loads */
} scale_plan;

static inline scale_object *scale_objects(const scale_plan *plan)
{
    return (scale_object *)(uintptr_t)(plan + 1);
}

static inline scale_task *scale_tasks(const scale_plan *plan)
{
    return (scale_task *)(void *)(scale_objects(plan) + plan->objects);
}

static inline scale_send *scale_sends(const scale_plan *plan)
{
    return (scale_send *)(void *)(scale_tasks(plan) + plan->tasks + 1);
}

static inline scale_root *scale_roots(const scale_plan *plan)
{
    return (scale_root *)(void *)(scale_sends(plan) + plan->sends);
}

static inline uint64_t *scale_names(const scale_plan *plan)
{
    return (uint64_t *)(void *)(scale_roots(plan) + plan->roots);
}

typedef struct scale_trace {
    scale_plan *plan;
    int fd;
    double seconds;  /* of all tasks */
    double heaviest; /* the most seconds of one object's tasks */
    double chain;    /* the least run time on any number of ranks (scale_chain) */
    double left_out; /* seconds of tasks and handlers without an object */
    uint64_t missed; /* entries of the trail for which the trace had no room */
    uint64_t late;   /* objects that tasks create */
    int strangers;   /* files of another run, which were left out */
} scale_trace;

/* Reads the trace in `folder`. False, with a line in `error`: it cannot be read, or has no task of
 * an object. */
bool scale_trace_read(const char *folder, uint64_t bytes, scale_trace *out,
                      char error[SCALE_ERROR_BYTES]);

/* The tasks and the messages between them (graph.c). scale_graph_fini frees the arrays. */
typedef struct scale_graph {
    scale_object *objects;
    scale_task *tasks;
    scale_send *sends;
    scale_root *roots;
    size_t object_count, task_count, send_count, root_count, own_roots;
    uint32_t phases;
    bool loaded;
} scale_graph;

/* False: no memory. */
bool scale_graph_make(const trace_run *run, scale_graph *out);
void scale_graph_fini(scale_graph *graph);

/* The run time if every handler of every object has a rank of its own and messages take no time. No
 * schedule is shorter. False: no memory. */
bool scale_chain(const scale_graph *graph, uint64_t *ns);

/* Simulates the plan on `ranks`. `free_net`: messages take no time. Returns the exit status. If it
 * is not 0, a line on standard error says why. */
int scale_replay(const scale_trace *trace, int ranks, const char *scheduler, bool free_net);

/* The program of that simulation: `ferry scale replay FD SCHEDULER`. */
int scale_replay_main(int argc, char **argv);

#endif
