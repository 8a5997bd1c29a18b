/* Parameter studies: predictions for several values of one parameter. */
#ifndef FY_CMD_MODEL_STUDY_H
#define FY_CMD_MODEL_STUDY_H

#include "cmd/model/print.h"

enum { STUDY_VALUES_MAX = 256, STUDY_WORD_BYTES = 32 };

typedef enum study_form { STUDY_TABLE, STUDY_CSV, STUDY_JSON } study_form;

/* A parameter (or "tasks", the number of tasks per rank) and the values that it takes in turn. */
typedef struct model_study {
    char name[STUDY_WORD_BYTES];
    char values[STUDY_VALUES_MAX][STUDY_WORD_BYTES];
    int count;
} model_study;

/* Reads NAME, or NAME=VALUE,VALUE... False, with a line in `error`: the parameter does not exist, a
 * value does not fit it, or NAME alone has no default values. */
bool model_study_read(const char *text, model_study *out, char error[MODEL_ERROR_BYTES]);

/* Predicts for each number of ranks and each value, and prints each result. False: no memory, or
 * too many tasks. A line on standard error says so. */
bool model_study_run(FILE *out, const model_report *report, const model_study *study,
                     study_form form);

#endif
