/* ferry scale: the tasks of a traced run, run again in the simulator by replay.c. */
#ifndef FY_CMD_SCALE_H
#define FY_CMD_SCALE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SCALE_ERROR_BYTES = 4608 };

/* An object, and the tasks that it had: equal ones, as a trace tells their sum only. */
typedef struct scale_object {
    uint64_t name;
    uint64_t task_ns; /* of all its tasks */
    uint64_t tasks;   /* at least 1 */
    double place;     /* of its first rank among all, from 0 to below 1 */
} scale_object;

/* Shared with the simulation: it reads the objects and writes the result. */
typedef struct scale_plan {
    uint64_t bytes; /* of an object's data */
    uint64_t makespan_ns, moves;
    uint64_t count;
    scale_object objects[]; /* in the order of their places */
} scale_plan;

typedef struct scale_trace {
    scale_plan *plan;
    int fd;
    int ranks;       /* of the traced run */
    uint64_t tasks;  /* of all objects */
    double seconds;  /* of all tasks */
    double heaviest; /* of all tasks of one object */
    double left_out; /* of tasks and handlers of no object */
} scale_trace;

/* Reads the trace in `folder`. False, with a line in `error`: it cannot be read, or has no task of
 * an object. */
bool scale_trace_read(const char *folder, uint64_t bytes, scale_trace *out,
                      char error[SCALE_ERROR_BYTES]);

/* Simulates so many ranks. The exit status; not 0: what is wrong has been said. */
int scale_replay(const scale_trace *trace, int ranks, const char *scheduler);

/* The program of that simulation: `ferry scale replay FD SCHEDULER`. */
int scale_replay_main(int argc, char **argv);

#endif
