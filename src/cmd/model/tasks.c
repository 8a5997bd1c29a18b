/* Reads task times from a list, or from the trace of a run. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cmd/model/model.h"
#include "cmd/report/trace.h"

enum { SHOWN_BYTES = 64 }; /* of a line that an error quotes */

bool model_time_read(const char *text, bool plain, double *out)
{
    static const struct unit {
        const char *name;
        double seconds;
    } units[] = {{"ps", 1e-12}, {"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}, {"", 1}};
    char *end;
    if (*text != '.' && (*text < '0' || *text > '9'))
        return false;
    if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X'))
        return false;
    double value = strtod(text, &end);
    size_t unit_count = sizeof units / sizeof *units - (plain ? 0 : 1);
    for (size_t i = 0; i < unit_count; i++)
        if (strcmp(end, units[i].name) == 0 && isfinite(value * units[i].seconds)) {
            *out = value * units[i].seconds;
            return true;
        }
    return false;
}

static bool model_tasks_append(model_tasks *tasks, size_t *room, double seconds)
{
    if (tasks->count == *room) {
        size_t wider = *room == 0 ? 1024 : *room * 2;
        double *larger = realloc(tasks->seconds, wider * sizeof *larger);
        if (larger == NULL)
            return false;
        tasks->seconds = larger;
        *room = wider;
    }
    tasks->seconds[tasks->count++] = seconds;
    return true;
}

static int tasks_compare(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* Sorts and adds up the tasks. False, with a line in `error`: there are none, or their sum is 0 or
 * infinite. */
static bool model_tasks_finish(model_tasks *tasks, const char *name, char *error)
{
    if (tasks->count == 0) {
        (void)snprintf(error, MODEL_ERROR_BYTES, "%s: it has no tasks; expected one or more", name);
        return false;
    }
    qsort(tasks->seconds, tasks->count, sizeof *tasks->seconds, tasks_compare);
    tasks->total = 0;
    for (size_t i = 0; i < tasks->count; i++)
        tasks->total += tasks->seconds[i];
    if (tasks->total > 0 && isfinite(tasks->total))
        return true;
    (void)snprintf(error, MODEL_ERROR_BYTES,
                   "%s: its %zu tasks take %g s together; expected more than 0 s and a sum that a "
                   "number can hold",
                   name, tasks->count, tasks->total);
    return false;
}

static bool tasks_no_memory(const char *name, size_t count, char *error)
{
    (void)snprintf(error, MODEL_ERROR_BYTES, "%s: no memory for more than %zu tasks", name, count);
    return false;
}

/* Cuts comment and blanks off a line. Returns the rest. */
static char *strip(char *line)
{
    line[strcspn(line, "#\r\n")] = '\0';
    line += strspn(line, " \t");
    for (size_t n = strlen(line); n > 0 && (line[n - 1] == ' ' || line[n - 1] == '\t'); n--)
        line[n - 1] = '\0';
    return line;
}

static bool parse_lines(FILE *file, const char *name, model_tasks *tasks, char *error)
{
    char *line = NULL;
    size_t line_room = 0, room = 0, number = 0;
    bool good = true;
    ssize_t got;
    while (good && (got = getline(&line, &line_room, file)) >= 0) {
        double seconds;
        number++;
        bool text = strlen(line) == (size_t)got;
        char *word = strip(line);
        if (text && *word == '\0')
            continue;
        if (!text || !model_time_read(word, true, &seconds)) {
            (void)snprintf(
                error, MODEL_ERROR_BYTES,
                "%s:%zu: \"%.*s\": expected the time of a task, such as 1.5 (seconds) or "
                "20ms",
                name, number, SHOWN_BYTES, word);
            good = false;
        } else if (!model_tasks_append(tasks, &room, seconds)) {
            good = tasks_no_memory(name, tasks->count, error);
        }
    }
    free(line);
    if (good && ferror(file)) {
        (void)snprintf(error, MODEL_ERROR_BYTES, "%s: %s; expected a file or the folder of a trace",
                       name, strerror(errno));
        good = false;
    }
    return good;
}

bool model_tasks_parse(FILE *file, const char *name, model_tasks *out,
                       char error[MODEL_ERROR_BYTES])
{
    model_tasks tasks = {0};
    if (parse_lines(file, name, &tasks, error) && model_tasks_finish(&tasks, name, error)) {
        *out = tasks;
        return true;
    }
    model_tasks_fini(&tasks);
    return false;
}

/* Appends the tasks of one rank. A task lasts from its stretch's start to the next stretch's. */
static bool append_rank(model_tasks *tasks, size_t *room, const trace_rank *rank,
                        const char *handler)
{
    for (size_t i = 0; i < rank->stretch_count; i++) {
        const trace_stretch *s = &rank->stretches[i];
        if (s->kind != TRACE_TASK)
            continue;
        const char *name = s->handler < TRACE_HANDLERS_MAX ? rank->handlers[s->handler] : NULL;
        if (handler != NULL && (name == NULL || strcmp(name, handler) != 0))
            continue;
        double seconds = (double)(trace_stretch_end(rank, i) - s->start_ns) * 1e-9;
        if (!model_tasks_append(tasks, room, seconds))
            return false;
    }
    return true;
}

static bool read_trace(const char *path, const char *handler, model_tasks *out,
                       model_traced *traced, char *error)
{
    trace_run run;
    model_tasks tasks = {0};
    size_t room = 0;
    if (!trace_run_read(path, &run, error))
        return false;
    bool good = true;
    for (int i = 0; i < run.ranks && good; i++)
        good = !run.rank[i].present || append_rank(&tasks, &room, &run.rank[i], handler);
    const model_traced known = {run.ranks, run.strangers};
    char handlers[512];
    trace_handlers_list(&run, handlers, sizeof(handlers));
    trace_run_fini(&run);
    if (!good)
        (void)tasks_no_memory(path, tasks.count, error);
    if (good && handler != NULL && tasks.count == 0) {
        (void)snprintf(error, MODEL_ERROR_BYTES,
                       "%s: no task of a handler \"%s\" is in this run; handlers with tasks: %s",
                       path, handler, handlers);
        good = false;
    }
    if (!good || !model_tasks_finish(&tasks, path, error)) {
        model_tasks_fini(&tasks);
        return false;
    }
    *out = tasks;
    *traced = known;
    return true;
}

bool model_tasks_read(const char *path, const char *handler, model_tasks *out, model_traced *traced,
                      char error[MODEL_ERROR_BYTES])
{
    struct stat about;
    if (stat(path, &about) == 0 && S_ISDIR(about.st_mode))
        return read_trace(path, handler, out, traced, error);
    if (handler != NULL) {
        (void)snprintf(
            error, MODEL_ERROR_BYTES,
            "%s: --handler %s: a list of times has no handlers; expected the folder of a "
            "trace",
            path, handler);
        return false;
    }
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "r");
    if (file == NULL) {
        (void)snprintf(error, MODEL_ERROR_BYTES,
                       "\"%s\": %s; expected a list of times or the folder of a trace", path,
                       strerror(errno));
        return false;
    }
    bool good = model_tasks_parse(file, path, out, error);
    if (file != stdin)
        (void)fclose(file);
    return good;
}

void model_tasks_fini(model_tasks *tasks)
{
    free(tasks->seconds);
    *tasks = (model_tasks){0};
}
