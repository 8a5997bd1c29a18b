/* Prints the output of `ferry model`. */
#ifndef FY_CMD_MODEL_PRINT_H
#define FY_CMD_MODEL_PRINT_H

#include "cmd/model/model.h"

typedef struct model_run {
    int ranks;
    model_prediction predictions[FY_PLAY_SCHEDULERS];
} model_run;

typedef struct model_report {
    model_tasks tasks;
    fy_fit fit;
    model_parameters parameters;
    bool measured; /* the parameters came from a file */
    model_run runs[MODEL_RUNS_MAX];
    int run_count;
} model_report;

enum { MODEL_SHOWN_BYTES = 32 };

/* Writes a time with four digits and the largest unit in which it is 1 or more. Returns `text`. */
const char *model_show(char text[MODEL_SHOWN_BYTES], double seconds);
/* The tasks and their two classes. */
void model_print_tasks(FILE *out, const model_report *report);
/* Tables for people. `terms`: also the terms of each bound. */
void model_print(FILE *out, const model_report *report, bool terms);
/* One JSON object. All times are seconds. */
void model_print_json(FILE *out, const model_report *report);
/* A head line, and a line for each number of ranks and scheduler. All times are seconds. */
void model_print_csv(FILE *out, const model_report *report);

#endif
