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
#include "base/play.h"

enum { MODEL_ERROR_BYTES = 4608, MODEL_RANKS_MAX = 1 << 20, MODEL_RUNS_MAX = 32 };

typedef fy_play_tasks model_tasks;
typedef fy_play_costs model_parameters;
typedef fy_play_scheduler model_scheduler;

extern const char *const model_scheduler_names[FY_PLAY_SCHEDULERS];

/* The terms of (6.6), for the rank that ends last. */
typedef struct model_terms {
    double work, thread, messages, asking, moving, deciding, overlap, total;
    double moves; /* tasks that this rank gives or takes */
} model_terms;

typedef struct model_prediction {
    model_terms lower, upper;
    double average;
    double played;     /* the run time of the schedule that fy_play simulates */
    size_t migrations; /* of all ranks in that schedule */
} model_prediction;

/* Reads a decimal number with the unit ps, ns, us, ms or s. `plain`: without a unit it is seconds.
 * False: it is not a time, or it is negative or infinite. */
bool model_time_read(const char *text, bool plain, double *out);

/* Reads a list: a time per line, `#` begins a comment. `name` is for errors. False, with a line in
 * `error`, if a line is no time, or if there are no tasks, or if all take no time. */
bool model_tasks_parse(FILE *file, const char *name, model_tasks *out,
                       char error[MODEL_ERROR_BYTES]);
/* A traced run tells this besides its tasks. */
typedef struct model_traced {
    int ranks;
    int strangers; /* files of another run, which were left out */
} model_traced;

/* Reads a list, or the tasks of a traced run if `path` is a folder. `handler`: only its tasks;
 * NULL: all. `*traced` is set for a traced run and is left alone otherwise. */
bool model_tasks_read(const char *path, const char *handler, model_tasks *out, model_traced *traced,
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

#endif
