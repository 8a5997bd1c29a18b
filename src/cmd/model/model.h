/* The run-time model of prema.txt chapter 6. It sorts the times of tasks into two classes, and
 * derives bounds on the run time under a scheduler from the classes. docs/model.md derives every
 * formula, and says where it differs from the thesis. Numbers in parentheses are the thesis's.
 *
 * All times are seconds. */
#ifndef FY_CMD_MODEL_H
#define FY_CMD_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/fit.h"

enum { MODEL_ERROR_BYTES = 4608, MODEL_RANKS_MAX = 1 << 20, MODEL_RUNS_MAX = 32 };

/* The times of all tasks, the lightest first. */
typedef struct model_tasks {
    double *seconds;
    size_t count;
    double total;
} model_tasks;

/* The costs of a message, a poll and a move. Times in seconds, sizes in bytes. */
typedef struct model_parameters {
    double quantum;       /* between two polls while a task runs; 0: a message wakes the poller */
    double poll, change;  /* one poll; one switch of threads */
    double startup, byte; /* a message takes `startup` + its bytes * `byte` */
    double reply, decide; /* the runtime's work on a reply; its choice of a partner */
    double uninstall, pack, unpack, install;
    double request_bytes, task_bytes;
    double messages, message_bytes; /* what one task sends */
    double message_work;            /* the work of a task on a message that it gets */
    double neighbours;              /* how many ranks diffusion asks at a time */
    double overlap;                 /* subtracted from the run time, (6.6) */
} model_parameters;

typedef enum model_scheduler {
    MODEL_NONE,
    MODEL_DIFFUSION,
    MODEL_STEALING,
    MODEL_FERRY,
    MODEL_SCHEDULERS
} model_scheduler;

extern const char *const model_scheduler_names[MODEL_SCHEDULERS];

/* The terms of (6.6), for the rank that ends last. */
typedef struct model_terms {
    double work, thread, messages, asking, moving, deciding, overlap, total;
    double moves; /* tasks that this rank gives or takes */
} model_terms;

typedef struct model_prediction {
    model_terms lower, upper;
    double average;
    double played;     /* the run time of the schedule that model_play simulates */
    size_t migrations; /* of all ranks in that schedule */
} model_prediction;

/* Reads a decimal number with the unit ps, ns, us, ms or s. `plain`: without a unit it is seconds.
 * False: it is not a time, or it is negative or infinite. */
bool model_time_read(const char *text, bool plain, double *out);

/* Reads a list: a time per line, `#` begins a comment. `name` is for errors. False, with a line in
 * `error`, if a line is no time, or if there are no tasks, or if all take no time. */
bool model_tasks_parse(FILE *file, const char *name, model_tasks *out,
                       char error[MODEL_ERROR_BYTES]);
/* Reads a list, or the tasks of a traced run if `path` is a folder. `handler`: only its tasks;
 * NULL: all. `*ranks` becomes the number of ranks of a traced run and is left alone otherwise. */
bool model_tasks_read(const char *path, const char *handler, model_tasks *out, int *ranks,
                      char error[MODEL_ERROR_BYTES]);
void model_tasks_fini(model_tasks *tasks);

/* The two classes of the tasks. */
static inline fy_fit model_fit_tasks(const model_tasks *tasks)
{
    return fy_fit_classes(tasks->seconds, tasks->count, tasks->total);
}

/* Parameters for a machine that was not measured. */
model_parameters model_parameters_default(void);
/* Sets the parameter `name`. False, with a line in `error`, if there is no such name or the value
 * does not fit it. */
bool model_parameter_set(model_parameters *p, const char *name, const char *value,
                         char error[MODEL_ERROR_BYTES]);
/* Reads lines of a name and a value, or a network file that `ferry calibrate` wrote. */
bool model_parameters_parse(FILE *file, const char *name, model_parameters *p,
                            char error[MODEL_ERROR_BYTES]);

/* Predicts the run time on `ranks`, from 1 to MODEL_RANKS_MAX. False: no memory. */
bool model_predict(const model_tasks *tasks, const fy_fit *fit, const model_parameters *p,
                   int ranks, model_scheduler scheduler, model_prediction *out);

/* Simulates the schedule, task by task (play.c). False: no memory. */
bool model_play(const model_tasks *tasks, const model_parameters *p, int ranks,
                model_scheduler scheduler, double *makespan, size_t *migrations);

/* The cost of one attempt to find a task, for the rank that asks, (6.18). */
double model_attempt(const model_parameters *p, model_scheduler scheduler);

/* The first task of a rank, if each rank has an equal block of `count` tasks, in their order. */
size_t model_block_begin(size_t count, int ranks, int rank);

#endif
