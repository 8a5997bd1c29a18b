#include "common/report.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { RUNS_MAX = 1000 };

static void usage(const bench_about *about)
{
    printf("%s: measures Ferry and its peers in the same run (docs/performance.md)\n"
           "usage: %s [--case NAME]... [--runs N] [--quick] [--json]\n"
           "  --list       names of the cases\n"
           "  --case NAME  this case only; may be repeated\n"
           "  --runs N     measures each side N times; %d, with --quick %d\n"
           "  --quick      a look: short runs\n"
           "  --smoke      each case once, to see that it works; the figures mean nothing\n"
           "  --json       one object per line\n",
           about->bench, about->bench, about->runs_long, about->runs_quick);
}

static int bad(const char *bench, const char *what, const char *value)
{
    fprintf(stderr, "%s: %s%s%s; --help lists the options\n", bench, what, value ? " " : "",
            value ? value : "");
    return 2;
}

static bool exists(const bench_about *about, const char *name)
{
    const char *known;
    for (int i = 0; (known = about->name_of(about->context, i)) != NULL; i++)
        if (strcmp(known, name) == 0)
            return true;
    return false;
}

static int add_case(bench_options *out, const bench_about *about, const char *name)
{
    if (!name)
        return bad(about->bench, "--case needs a name", NULL);
    if (!exists(about, name)) {
        fprintf(stderr, "%s: no case \"%s\"; --list shows them\n", about->bench, name);
        return 2;
    }
    if (out->case_count == (int)(sizeof out->cases / sizeof *out->cases))
        return bad(about->bench, "too many cases at", name);
    out->cases[out->case_count++] = name;
    return -1;
}

static int read_runs(bench_options *out, const char *bench, const char *text)
{
    char *end = NULL;
    if (!text)
        return bad(bench, "--runs needs a number", NULL);
    errno = 0;
    long n = strtol(text, &end, 10);
    if (errno || end == text || *end || n < 1 || n > RUNS_MAX) {
        fprintf(stderr, "%s: --runs %s is not a number from 1 to %d\n", bench, text, RUNS_MAX);
        return 2;
    }
    out->runs = (int)n;
    return -1;
}

static int list(const bench_about *about)
{
    const char *name;
    for (int i = 0; (name = about->name_of(about->context, i)) != NULL; i++)
        puts(name);
    return 0;
}

int bench_options_read(int argc, char **argv, const bench_about *about, bench_options *out)
{
    int status = -1;
    bool listing = false;
    memset(out, 0, sizeof *out);
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (int i = 1; i < argc && status < 0; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            out->json = true;
        } else if (strcmp(argv[i], "--quick") == 0) {
            out->quick = true;
        } else if (strcmp(argv[i], "--smoke") == 0) {
            out->quick = out->smoke = true;
        } else if (strcmp(argv[i], "--list") == 0) {
            listing = true;
        } else if (strcmp(argv[i], "--case") == 0) {
            status = add_case(out, about, argv[++i]);
        } else if (strcmp(argv[i], "--runs") == 0) {
            status = read_runs(out, about->bench, argv[++i]);
        } else if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            usage(about);
            return 0;
        } else {
            status = bad(about->bench, "unknown option", argv[i]);
        }
    }
    if (out->smoke)
        out->runs = 1;
    else if (out->runs == 0)
        out->runs = out->quick ? about->runs_quick : about->runs_long;
    return status >= 0 ? status : listing ? list(about) : -1;
}

bool bench_wanted(const bench_options *options, const char *name)
{
    for (int i = 0; i < options->case_count; i++)
        if (strcmp(options->cases[i], name) == 0)
            return true;
    return options->case_count == 0;
}

void bench_report_head(const bench_options *options, const char *bench, const char *figures)
{
    if (options->json)
        return;
    printf("%s: %s; ratio is ours / theirs\n", bench, figures);
    printf("%-20s %10s %-5s %-12s %10s %8s  %-14s %-4s %4s  %s\n", "case", "ours", "unit", "peer",
           "theirs", "ratio", "target", "met", "runs", "machine");
}

static void number(char *out, size_t size_bytes, double value, int digits, const char *none)
{
    if (value < 0)
        snprintf(out, size_bytes, "%s", none);
    else
        snprintf(out, size_bytes, "%.*g", digits, value);
}

/* Writes the target, and says whether it is met. */
static const char *verdict(const bench_row *row, double ratio, char *text, size_t size_bytes)
{
    static const char *const forms[] = {
        "", "<= %.4g", ">= %.4g", "ours <= %.4g", "+ %.4g at most", "<= %.4g, + 1"};
    const bench_target *t = &row->target;
    double value = ratio;
    text[0] = 0;
    switch (t->bound) {
    case BENCH_NONE:
        return "";
    case BENCH_RATIO_MAX:
    case BENCH_RATIO_MIN:
        break;
    case BENCH_OURS_MAX:
        value = row->ours;
        break;
    case BENCH_MORE_MAX:
        value = ratio < 0 ? -1 : row->ours > row->theirs ? row->ours - row->theirs : 0;
        break;
    case BENCH_BOUND_MAX:
        value = ratio < 0 ? -1 : row->ours > 1 ? (row->ours - 1) / row->theirs : 0;
        break;
    }
    snprintf(text, size_bytes, forms[t->bound], t->value);
    if (value < 0)
        return "?";
    return (t->bound == BENCH_RATIO_MIN ? value >= t->value : value <= t->value) ? "yes" : "no";
}

void bench_report(const bench_options *options, const char *bench, const bench_row *row)
{
    char ours[32], theirs[32], ratio_text[32], target[48];
    double ratio = row->ours < 0 || row->theirs <= 0 ? -1 : row->ours / row->theirs;
    if (options->json) {
        number(ours, sizeof ours, row->ours, 6, "null");
        number(theirs, sizeof theirs, row->theirs, 6, "null");
        number(ratio_text, sizeof ratio_text, ratio, 6, "null");
        printf("{\"bench\":\"%s\",\"case\":\"%s\",\"ours\":%s,\"theirs\":%s,\"peer\":\"%s\","
               "\"unit\":\"%s\",\"ratio\":%s,\"runs\":%d}\n",
               bench, row->name, ours, theirs, row->peer, row->unit, ratio_text, row->runs);
        return;
    }
    number(ours, sizeof ours, row->ours, 4, "-");
    number(theirs, sizeof theirs, row->theirs, 4, row->runs ? "-" : "absent");
    number(ratio_text, sizeof ratio_text, ratio, 4, "-");
    const char *met = verdict(row, ratio, target, sizeof target);
    printf("%-20s %10s %-5s %-12s %10s %8s  %-14s %-4s %4d  %s\n", row->name, ours, row->unit,
           row->peer, theirs, ratio_text, target, met, row->runs, row->state ? row->state : "");
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_median(double *values, int count)
{
    if (count == 0)
        return -1;
    qsort(values, (size_t)count, sizeof *values, ascending);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

double bench_percentile(double *values, int count, int percent)
{
    if (count == 0)
        return -1;
    qsort(values, (size_t)count, sizeof *values, ascending);
    return values[(count * percent + 99) / 100 - 1];
}
