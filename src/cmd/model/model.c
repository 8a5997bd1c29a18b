/* ferry model: predicts the run time under each scheduler from a list of task times or a trace. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "cmd/model/print.h"
#include "cmd/model/study.h"
#include "cmd/report/trace.h"

static const char help[] =
    "usage: ferry model [-n RANKS[,RANKS]...] [OPTION]... TASKS\n"
    "\n"
    "Predicts how long tasks take on given numbers of ranks: without balancing, and under the\n"
    "schedulers diffusion, stealing and ferry. TASKS is a file with one time per line, such as "
    "1.5\n"
    "(seconds) or 20ms, or the folder that FERRY_TRACE named in a run. - is the standard input.\n"
    "\n"
    "  -n, --ranks LIST        numbers of ranks; by default the ranks of the trace\n"
    "  -H, --handler HANDLER   only the tasks of HANDLER; for the folder of a trace\n"
    "  -p, --parameters FILE   lines of a name and a value, such as `ferry calibrate` writes\n"
    "  -s, --set NAME=VALUE    set one parameter; overrides the file\n"
    "  -y, --study NAME[=VALUE,VALUE...]\n"
    "                          predict for each value of a parameter; NAME may be tasks, which\n"
    "                          divides the same work into that many tasks per rank\n"
    "  -t, --terms             print the terms of each bound\n"
    "  -j, --json              print JSON\n"
    "  -c, --csv               print a line for each prediction, in seconds\n"
    "  -h, --help              print this text\n"
    "\n"
    "Exit status: 0; 1 if TASKS or FILE cannot be read or is empty; 2 for wrong usage.\n";

enum { SETTINGS_MAX = 64 };

typedef struct request {
    const char *ranks, *handler, *parameters, *study;
    const char *settings[SETTINGS_MAX];
    int setting_count;
    bool terms, json, csv;
} request;

static bool add_setting(const char *command, int letter, char *value, void *arg)
{
    request *r = arg;
    if (r->setting_count == SETTINGS_MAX) {
        fprintf(stderr, "ferry %s: -%c %s: expected at most %d settings\n", command, letter, value,
                SETTINGS_MAX);
        return false;
    }
    r->settings[r->setting_count++] = value;
    return true;
}

static int model_read_options(int argc, char **argv, request *r)
{
    const cmd_option list[] = {
        {"ranks", 'n', .text = &r->ranks},
        {"handler", 'H', .text = &r->handler},
        {"set", 's', .read = add_setting},
        {"parameters", 'p', .text = &r->parameters},
        {"study", 'y', .text = &r->study},
        {"terms", 't', .flag = &r->terms},
        {"json", 'j', .flag = &r->json},
        {"csv", 'c', .flag = &r->csv},
        {.name = NULL},
    };
    return cmd_read_options(argc, argv, &(cmd_options){"model", help, list, .arg = r});
}

static bool read_ranks(const char *text, model_report *report)
{
    int ranks[MODEL_RUNS_MAX];
    if (!cmd_read_list("model", text, MODEL_RUNS_MAX, MODEL_RANKS_MAX, ranks, &report->run_count))
        return false;
    for (int i = 0; i < report->run_count; i++)
        report->runs[i].ranks = ranks[i];
    return true;
}

static bool read_parameters_file(const char *path, model_parameters *p, char *error)
{
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        (void)snprintf(error, MODEL_ERROR_BYTES, "\"%s\": %s; expected a file of parameters", path,
                       strerror(errno));
        return false;
    }
    bool good = model_parameters_parse(file, path, p, error);
    (void)fclose(file);
    return good;
}

static bool set_parameter(const char *setting, model_parameters *p, char *error)
{
    char name[64];
    const char *equals = strchr(setting, '=');
    if (equals == NULL || (size_t)(equals - setting) >= sizeof name) {
        (void)snprintf(error, MODEL_ERROR_BYTES, "-s %.64s: expected NAME=VALUE", setting);
        return false;
    }
    (void)snprintf(name, sizeof name, "%.*s", (int)(equals - setting), setting);
    return model_parameter_set(p, name, equals + 1, error);
}

/* Reads the file of parameters and then the settings. CMD_GO; else the exit status, and a line on
 * standard error says what is wrong. */
static int read_parameters(const request *r, model_report *report)
{
    char error[MODEL_ERROR_BYTES];
    report->parameters = model_parameters_default();
    report->measured = r->parameters != NULL;
    if (r->parameters != NULL && !read_parameters_file(r->parameters, &report->parameters, error)) {
        fprintf(stderr, "ferry model: %s\n", error);
        return EXIT_FAILURE;
    }
    for (int i = 0; i < r->setting_count; i++)
        if (!set_parameter(r->settings[i], &report->parameters, error)) {
            fprintf(stderr, "ferry model: %s\n", error);
            return cmd_wrong_usage("model");
        }
    return CMD_GO;
}

/* Reads the tasks. False: a line on standard error says what is wrong. */
static bool read_tasks(const request *r, const char *path, model_report *report)
{
    char error[MODEL_ERROR_BYTES];
    model_traced traced = {0};
    bool good = model_tasks_read(path, r->handler, &report->tasks, &traced, error);
    if (!good)
        fprintf(stderr, "ferry model: %s\n", error);
    else
        trace_strangers_tell("model", path, traced.strangers);
    if (good && report->run_count == 0) {
        report->run_count = 1;
        report->runs[0].ranks = traced.ranks;
    }
    return good;
}

static bool predict_all(model_report *report)
{
    for (int i = 0; i < report->run_count; i++)
        for (int k = 0; k < FY_PLAY_SCHEDULERS; k++)
            if (!model_predict(&report->tasks, &report->fit, &report->parameters,
                               report->runs[i].ranks, (model_scheduler)k,
                               &report->runs[i].predictions[k])) {
                fprintf(stderr, "ferry model: no memory for %d ranks\n", report->runs[i].ranks);
                return false;
            }
    return true;
}

static int print_report(const request *r, const model_study *study, model_report *report)
{
    if (report->runs[0].ranks == 0) {
        fprintf(stderr, "ferry model: a list of times does not tell how many ranks; expected -n\n");
        return cmd_wrong_usage("model");
    }
    report->fit = model_fit_tasks(&report->tasks);
    if (study->count > 0)
        return model_study_run(stdout, report, study,
                               r->json  ? STUDY_JSON
                               : r->csv ? STUDY_CSV
                                        : STUDY_TABLE)
                   ? EXIT_SUCCESS
                   : EXIT_FAILURE;
    if (!predict_all(report))
        return EXIT_FAILURE;
    if (r->json)
        model_print_json(stdout, report);
    else if (r->csv)
        model_print_csv(stdout, report);
    else
        model_print(stdout, report, r->terms);
    return EXIT_SUCCESS;
}

static int command(int argc, char **argv, model_report *report)
{
    request r = {0};
    model_study study = {.count = 0};
    char error[MODEL_ERROR_BYTES];
    int status = model_read_options(argc, argv, &r);
    if (status != CMD_GO)
        return status;
    if (argc - optind != 1) {
        fprintf(stderr, "ferry model: %d lists of tasks: expected one\n", argc - optind);
        return cmd_wrong_usage("model");
    }
    if (r.ranks != NULL && !read_ranks(r.ranks, report))
        return cmd_wrong_usage("model");
    if (r.study != NULL && !model_study_read(r.study, &study, error)) {
        fprintf(stderr, "ferry model: %s\n", error);
        return cmd_wrong_usage("model");
    }
    status = read_parameters(&r, report);
    if (status != CMD_GO)
        return status;
    if (!read_tasks(&r, argv[optind], report))
        return EXIT_FAILURE;
    status = print_report(&r, &study, report);
    model_tasks_fini(&report->tasks);
    return status;
}

int cmd_model(int argc, char **argv)
{
    model_report *report = calloc(1, sizeof *report);
    if (report == NULL) {
        fprintf(stderr, "ferry model: no memory for a report of %zu bytes\n", sizeof *report);
        return EXIT_FAILURE;
    }
    int status = command(argc, argv, report);
    free(report);
    return status;
}
