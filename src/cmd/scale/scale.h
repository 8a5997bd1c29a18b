/* ferry scale: the tasks of a traced run, run again in the simulator by replay.c. */
#ifndef FY_CMD_SCALE_H
#define FY_CMD_SCALE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cmd/report/trace.h"

enum { SCALE_ERROR_BYTES = TRACE_ERROR_BYTES, SCALE_TASKS_MAX = 20000000, SCALE_HOME_SHIFT = 44 };

/* An object, and its tasks: a range of all tasks, in the order in which they ran. */
typedef struct scale_object {
    uint64_t name; /* from SCALE_HOME_SHIFT on the rank that made it */
    uint64_t first_task, tasks;
    int home;     /* its first rank in the traced run */
    double place; /* of its first rank among all, from 0 to below 1 */
} scale_object;

/* The k-th message to an object starts its k-th task. That ends with its sends: they reach to the
 * `first_send` of the next task. */
typedef struct scale_task {
    uint64_t ns;
    uint64_t first_send;
    double load; /* as the scheduler was told; 0: it was not */
} scale_task;

typedef struct scale_send {
    uint32_t object; /* its index */
    uint32_t bytes;
    uint64_t task; /* that it started in the traced run; for its load */
} scale_send;

/* A message of the program itself, when so many quiescences have ended. */
typedef struct scale_root {
    uint32_t object, bytes, phase;
    int32_t sender; /* the rank of the traced run; -1: the first rank of the object */
    uint64_t task;
} scale_root;

/* Shared with the simulation: it reads the arrays behind, and writes the results and the names of
 * its objects. In order: objects; tasks, one more than there are; sends; roots, first those without
 * a sender, by object, then by sender; names. */
typedef struct scale_plan {
    uint64_t bytes;                   /* of an object's data */
    uint64_t makespan_ns, moves, ran; /* results; ran: tasks */
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
    double heaviest; /* of all tasks of one object */
    double chain;    /* the run time on any number of ranks, if messages took no time */
    double left_out; /* of tasks and handlers of no object */
    uint64_t missed; /* entries of the trail that had no room in the trace */
} scale_trace;

/* Reads the trace in `folder`. False, with a line in `error`: it cannot be read, or has no task of
 * an object. */
bool scale_trace_read(const char *folder, uint64_t bytes, scale_trace *out,
                      char error[SCALE_ERROR_BYTES]);

/* The tasks and the messages between them, as graph.c finds them. All arrays are freed by
 * scale_graph_fini. */
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

/* When all tasks have run if every object has a rank of its own and messages take no time: no
 * schedule is shorter. False: no memory. */
bool scale_chain(const scale_graph *graph, uint64_t *ns);

/* Simulates so many ranks. `free_net`: messages take no time. The exit status; not 0: what is wrong
 * has been said. */
int scale_replay(const scale_trace *trace, int ranks, const char *scheduler, bool free_net);

/* The program of that simulation: `ferry scale replay FD SCHEDULER`. */
int scale_replay_main(int argc, char **argv);

#endif
