/* A study changes one parameter and predicts the run time for each value.
 *
 * The study "tasks" cuts the same work into another number of tasks. Draw the sorted tasks side by
 * side, each with its time as height: each new task is an equal part of the width. So the shape of
 * the imbalance stays the same. */
#include "cmd/model/study.h"

#include <stdlib.h>
#include <string.h>

enum { TASKS_MAX = 100000000, EACH_MAX = 1000000 };

static const struct grid {
    const char *name, *values;
} grids[] = {
    {"tasks", "1,2,3,4,6,8,12,16,24,32,48,64"},
    {"quantum", "100us,200us,500us,1ms,2ms,5ms,10ms,20ms,50ms,100ms,200ms,500ms,1s,2s,5s,10s"},
    {"neighbours", "1,2,4,8,16,32,64"},
    {"startup", "1us,2us,5us,10us,20us,50us,100us,200us,500us,1ms,2ms,5ms,10ms"},
};

static bool is_tasks(const model_study *s)
{
    return strcmp(s->name, "tasks") == 0;
}

/* The number of tasks per rank; 0: `value` is not a number from 1 to EACH_MAX. */
static size_t tasks_of(const char *value)
{
    char *end;
    if (strspn(value, "0123456789") != strlen(value) || strlen(value) > 9)
        return 0;
    unsigned long each = strtoul(value, &end, 10);
    return each <= EACH_MAX ? each : 0;
}

static bool study_check(const model_study *s, char *error)
{
    model_parameters scratch = model_parameters_default();
    for (int i = 0; i < s->count; i++) {
        if (!is_tasks(s) && !model_parameter_set(&scratch, s->name, s->values[i], error))
            return false;
        if (is_tasks(s) && tasks_of(s->values[i]) == 0) {
            (void)snprintf(error, MODEL_ERROR_BYTES,
                           "tasks \"%s\": expected a number of tasks per rank from 1 to %d",
                           s->values[i], EACH_MAX);
            return false;
        }
    }
    return true;
}

static bool split(const char *text, model_study *out, char *error)
{
    for (const char *at = text;; at++) {
        size_t length = strcspn(at, ",");
        if (length == 0 || length >= STUDY_WORD_BYTES || out->count == STUDY_VALUES_MAX) {
            (void)snprintf(error, MODEL_ERROR_BYTES,
                           "-y %s=%.1024s: expected at most %d values, with commas between them",
                           out->name, text, STUDY_VALUES_MAX);
            return false;
        }
        (void)snprintf(out->values[out->count++], STUDY_WORD_BYTES, "%.*s", (int)length, at);
        at += length;
        if (*at == '\0')
            return true;
    }
}

bool model_study_read(const char *text, model_study *out, char error[MODEL_ERROR_BYTES])
{
    const char *equals = strchr(text, '=');
    size_t length = equals != NULL ? (size_t)(equals - text) : strlen(text);
    *out = (model_study){.count = 0};
    (void)snprintf(out->name, sizeof out->name, "%.*s", (int)length, text);
    if (equals != NULL)
        return split(equals + 1, out, error) && study_check(out, error);
    for (size_t i = 0; i < sizeof grids / sizeof *grids; i++)
        if (strcmp(grids[i].name, text) == 0)
            return split(grids[i].values, out, error);
    (void)snprintf(error, MODEL_ERROR_BYTES,
                   "-y %.64s: expected tasks, quantum, neighbours or startup, or a parameter with "
                   "values, such as poll=1us,10us",
                   text);
    return false;
}

/* The same work in `count` tasks. False: no memory. */
static bool cut(const model_tasks *from, size_t count, model_tasks *out)
{
    double width = (double)from->count / (double)count; /* of a new task, in old ones */
    double left = 1;                                    /* the part of the old task not used yet */
    size_t at = 0;
    *out = (model_tasks){.seconds = malloc(count * sizeof *out->seconds), .count = count};
    for (size_t i = 0; i < count && out->seconds != NULL; i++) {
        double wanted = width, sum = 0;
        while (wanted > left && at + 1 < from->count) {
            sum += left * from->seconds[at++];
            wanted -= left;
            left = 1;
        }
        left -= wanted;
        sum += wanted * from->seconds[at];
        out->seconds[i] = i > 0 && sum < out->seconds[i - 1] ? out->seconds[i - 1] : sum;
        out->total += out->seconds[i];
    }
    return out->seconds != NULL;
}

static bool predict(const model_report *r, const model_study *s, const char *value, int ranks,
                    model_prediction out[FY_PLAY_SCHEDULERS])
{
    char error[MODEL_ERROR_BYTES];
    model_tasks tasks = r->tasks;
    model_parameters p = r->parameters;
    size_t each = is_tasks(s) ? tasks_of(value) : 0;
    if (each > TASKS_MAX / (size_t)ranks) {
        fprintf(stderr, "ferry model: %zu tasks on each of %d ranks; expected at most %d tasks\n",
                each, ranks, TASKS_MAX);
        return false;
    }
    bool good = each == 0 ? model_parameter_set(&p, s->name, value, error)
                          : cut(&r->tasks, each * (size_t)ranks, &tasks);
    if (good) {
        fy_fit fit = model_fit_tasks(&tasks);
        for (int k = 0; k < FY_PLAY_SCHEDULERS && good; k++)
            good = model_predict(&tasks, &fit, &p, ranks, (model_scheduler)k, &out[k]);
    }
    if (each > 0)
        free(tasks.seconds);
    if (!good)
        fprintf(stderr, "ferry model: no memory for %d ranks\n", ranks);
    return good;
}

/* The least time of a scheduler so far, and the value that gave it. */
typedef struct best {
    double played;
    const char *value;
} best;

static void print_row(FILE *out, const model_study *s, study_form form, int ranks,
                      const char *value, const model_prediction *p)
{
    char text[MODEL_SHOWN_BYTES];
    if (form == STUDY_TABLE)
        fprintf(out, "  %-12s", value);
    for (int k = 0; k < FY_PLAY_SCHEDULERS; k++, p++) {
        if (form == STUDY_TABLE)
            fprintf(out, " %12s", model_show(text, p->played));
        else if (form == STUDY_CSV)
            fprintf(out, "%s,%s,%d,%s,%.9g,%.9g,%.9g,%.9g,%zu\n", s->name, value, ranks,
                    model_scheduler_names[k], p->lower.total, p->average, p->upper.total, p->played,
                    p->migrations);
        else
            fprintf(out,
                    "\n  {\"value\": \"%s\", \"ranks\": %d, \"scheduler\": \"%s\", \"lower\": "
                    "%.9g, \"average\": %.9g, \"upper\": %.9g, \"played\": %.9g, \"migrations\": "
                    "%zu}%s",
                    value, ranks, model_scheduler_names[k], p->lower.total, p->average,
                    p->upper.total, p->played, p->migrations,
                    k + 1 < FY_PLAY_SCHEDULERS ? "," : "");
    }
    if (form == STUDY_TABLE)
        fputc('\n', out);
}

static void print_head(FILE *out, const model_study *s, int ranks)
{
    fprintf(out, "\n%d rank%s\n  %-12s", ranks, ranks == 1 ? "" : "s", s->name);
    for (int k = 0; k < FY_PLAY_SCHEDULERS; k++)
        fprintf(out, " %12s", model_scheduler_names[k]);
    fputc('\n', out);
}

static void print_best(FILE *out, const best *least)
{
    fprintf(out, "  %-12s", "best");
    for (int k = 0; k < FY_PLAY_SCHEDULERS; k++)
        fprintf(out, " %12s", least[k].value);
    fputc('\n', out);
}

static bool run_ranks(FILE *out, const model_report *r, const model_study *s, study_form form,
                      int ranks)
{
    model_prediction p[FY_PLAY_SCHEDULERS];
    best least[FY_PLAY_SCHEDULERS] = {{0}};
    if (form == STUDY_TABLE)
        print_head(out, s, ranks);
    for (int i = 0; i < s->count; i++) {
        if (!predict(r, s, s->values[i], ranks, p))
            return false;
        for (int k = 0; k < FY_PLAY_SCHEDULERS; k++)
            if (i == 0 || p[k].played < least[k].played * (1 - 1e-6)) /* by more than rounding */
                least[k] = (best){p[k].played, s->values[i]};
        if (form == STUDY_JSON && i > 0)
            fputc(',', out);
        print_row(out, s, form, ranks, s->values[i], p);
    }
    if (form == STUDY_TABLE)
        print_best(out, least);
    return true;
}

bool model_study_run(FILE *out, const model_report *report, const model_study *study,
                     study_form form)
{
    if (form == STUDY_TABLE)
        model_print_tasks(out, report);
    if (form == STUDY_CSV)
        fprintf(out, "parameter,value,ranks,scheduler,lower_s,average_s,upper_s,played_s,"
                     "migrations\n");
    if (form == STUDY_JSON)
        fprintf(out, "{\"parameter\": \"%s\", \"runs\": [", study->name);
    for (int i = 0; i < report->run_count; i++) {
        if (form == STUDY_JSON && i > 0)
            fputc(',', out);
        if (!run_ranks(out, report, study, form, report->runs[i].ranks))
            return false;
    }
    if (form == STUDY_JSON)
        fprintf(out, "]}\n");
    return true;
}
