#include "cmd/model/print.h"

#include <math.h>
#include <string.h>

enum { TIME_BYTES = MODEL_SHOWN_BYTES };

typedef struct term {
    const char *name;
    size_t offset;
} term;

static const term terms[] = {
    {"work", offsetof(model_terms, work)},         {"thread", offsetof(model_terms, thread)},
    {"messages", offsetof(model_terms, messages)}, {"asking", offsetof(model_terms, asking)},
    {"moving", offsetof(model_terms, moving)},     {"deciding", offsetof(model_terms, deciding)},
    {"overlap", offsetof(model_terms, overlap)},   {"total", offsetof(model_terms, total)},
};

enum { TERM_COUNT = sizeof terms / sizeof *terms };

static double term_of(const model_terms *t, int which)
{
    double value;
    memcpy(&value, (const char *)t + terms[which].offset, sizeof value);
    return value;
}

const char *model_show(char text[MODEL_SHOWN_BYTES], double seconds)
{
    static const struct unit {
        const char *name;
        double seconds;
    } units[] = {{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}};
    int unit = 0;
    while (unit < 3 && seconds < units[unit].seconds * 0.9995 && seconds > 0)
        unit++;
    (void)snprintf(text, TIME_BYTES, "%.4g %s", seconds / units[unit].seconds, units[unit].name);
    return text;
}

void model_print_tasks(FILE *out, const model_report *r)
{
    char a[TIME_BYTES], b[TIME_BYTES], c[TIME_BYTES];
    const model_tasks *t = &r->tasks;
    fprintf(out, "%zu task%s from %s to %s, %s together\n", t->count, t->count == 1 ? "" : "s",
            model_show(a, t->seconds[0]), model_show(b, t->seconds[t->count - 1]),
            model_show(c, t->total));
    if (r->fit.uniform)
        fprintf(out, "all tasks are equal: there is nothing to balance but their number\n");
    else
        fprintf(out, "two classes: %zu light tasks of %s, %zu heavy tasks of %s; error %.4g s^2\n",
                r->fit.gamma, model_show(a, r->fit.beta), t->count - r->fit.gamma,
                model_show(b, r->fit.alpha), r->fit.error);
    if (!r->measured)
        fprintf(out, "costs of messages are assumed; `ferry calibrate -o FILE` measures them for "
                     "-p FILE\n");
}

static void print_run(FILE *out, const model_report *r, const model_run *run)
{
    char text[4][TIME_BYTES], mean[TIME_BYTES];
    double even = r->tasks.total / run->ranks;
    fprintf(out, "\n%d rank%s, %s of work each on average\n", run->ranks,
            run->ranks == 1 ? "" : "s", model_show(mean, even));
    fprintf(out, "  %-10s %11s %11s %11s %11s %11s %11s\n", "scheduler", "lower", "average",
            "upper", "played", "efficiency", "migrations");
    for (int i = 0; i < FY_PLAY_SCHEDULERS; i++) {
        const model_prediction *p = &run->predictions[i];
        fprintf(out, "  %-10s %11s %11s %11s %11s %10.1f%% %11zu\n", model_scheduler_names[i],
                model_show(text[0], p->lower.total), model_show(text[1], p->average),
                model_show(text[2], p->upper.total), model_show(text[3], p->played),
                100 * even / p->played, p->migrations);
    }
}

static void print_terms(FILE *out, const model_run *run)
{
    char text[TIME_BYTES];
    fprintf(out, "\n  %-10s %-6s", "terms", "bound");
    for (int k = 0; k < TERM_COUNT; k++)
        fprintf(out, " %10s", terms[k].name);
    fprintf(out, " %10s\n", "moves");
    for (int i = 0; i < FY_PLAY_SCHEDULERS; i++)
        for (int upper = 0; upper < 2; upper++) {
            const model_prediction *p = &run->predictions[i];
            const model_terms *t = upper ? &p->upper : &p->lower;
            fprintf(out, "  %-10s %-6s", model_scheduler_names[i], upper ? "upper" : "lower");
            for (int k = 0; k < TERM_COUNT; k++)
                fprintf(out, " %10s", model_show(text, term_of(t, k)));
            fprintf(out, " %10.4g\n", t->moves);
        }
}

void model_print(FILE *out, const model_report *report, bool with_terms)
{
    model_print_tasks(out, report);
    for (int i = 0; i < report->run_count; i++) {
        print_run(out, report, &report->runs[i]);
        if (with_terms)
            print_terms(out, &report->runs[i]);
    }
}

static void json_terms(FILE *out, const char *name, const model_terms *t)
{
    fprintf(out, "\"%s\": {", name);
    for (int k = 0; k < TERM_COUNT; k++)
        fprintf(out, "\"%s\": %.9g, ", terms[k].name, term_of(t, k));
    fprintf(out, "\"moves\": %.9g}", t->moves);
}

static void json_prediction(FILE *out, int scheduler, const model_prediction *p)
{
    fprintf(out, "    {\"scheduler\": \"%s\", ", model_scheduler_names[scheduler]);
    json_terms(out, "lower", &p->lower);
    fprintf(out, ",\n     ");
    json_terms(out, "upper", &p->upper);
    fprintf(out, ",\n     \"average\": %.9g, \"played\": %.9g, \"migrations\": %zu}", p->average,
            p->played, p->migrations);
}

void model_print_json(FILE *out, const model_report *r)
{
    fprintf(out,
            "{\"tasks\": {\"count\": %zu, \"least\": %.9g, \"most\": %.9g, \"total\": %.9g},\n"
            " \"fit\": {\"uniform\": %s, \"gamma\": %zu, \"alpha\": %.9g, \"beta\": %.9g, "
            "\"error\": %.9g},\n \"runs\": [",
            r->tasks.count, r->tasks.seconds[0], r->tasks.seconds[r->tasks.count - 1],
            r->tasks.total, r->fit.uniform ? "true" : "false", r->fit.gamma, r->fit.alpha,
            r->fit.beta, r->fit.error);
    for (int i = 0; i < r->run_count; i++) {
        fprintf(out, "%s\n  {\"ranks\": %d, \"predictions\": [\n", i > 0 ? "," : "",
                r->runs[i].ranks);
        for (int k = 0; k < FY_PLAY_SCHEDULERS; k++) {
            json_prediction(out, k, &r->runs[i].predictions[k]);
            fprintf(out, k + 1 < FY_PLAY_SCHEDULERS ? ",\n" : "]}");
        }
    }
    fprintf(out, "]}\n");
}

void model_print_csv(FILE *out, const model_report *r)
{
    fprintf(out, "ranks,scheduler,lower_s,average_s,upper_s,played_s,migrations\n");
    for (int i = 0; i < r->run_count; i++)
        for (int k = 0; k < FY_PLAY_SCHEDULERS; k++) {
            const model_prediction *p = &r->runs[i].predictions[k];
            fprintf(out, "%d,%s,%.9g,%.9g,%.9g,%.9g,%zu\n", r->runs[i].ranks,
                    model_scheduler_names[k], p->lower.total, p->average, p->upper.total, p->played,
                    p->migrations);
        }
}
