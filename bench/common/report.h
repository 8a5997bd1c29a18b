/* Report: what every benchmark takes on its command line and how it prints what it finds.
 *
 * For people a table; with --json one object per line with the members bench, case, ours, theirs,
 * peer, unit, ratio (ours / theirs), runs. A figure that does not exist is null. */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include <stdbool.h>
#include <stdio.h>

typedef struct bench_options {
    bool json, quick;
    bool smoke;     /* each case once, to see that it works: its figures mean nothing */
    int runs;       /* how often each side is measured */
    int case_count; /* 0: all */
    const char *cases[64];
} bench_options;

/* The quantity that a target bounds, and the kind of bound. */
typedef enum bench_bound {
    BENCH_NONE,
    BENCH_RATIO_MAX, /* ours / theirs */
    BENCH_RATIO_MIN,
    BENCH_OURS_MAX,
    BENCH_MORE_MAX, /* ours - theirs */
    BENCH_BOUND_MAX /* ours / theirs, after 1 is taken from ours */
} bench_bound;

typedef struct bench_target {
    bench_bound bound;
    double value;
} bench_target;

typedef struct bench_row {
    const char *name, *peer, *unit;
    double ours, theirs; /* negative: there is none */
    int runs;
    bench_target target;
    const char *state; /* of the machine, or why a side is absent */
} bench_row;

/* Lends the name of a case until the next call; NULL behind the last. */
typedef const char *bench_namer(const void *context, int index);

/* The options of the command line. */
typedef struct bench_about {
    const char *bench;
    bench_namer *name_of;
    const void *context; /* of name_of */
    int runs_long;       /* without --runs */
    int runs_quick;      /* with --quick */
} bench_about;

/* Reads the command line. Returns -1 to go on, else the exit status: 0 after --help and --list, 2
 * after an error, which it prints. */
int bench_options_read(int argc, char **argv, const bench_about *about, bench_options *out);

/* Whether the case was asked for. */
bool bench_wanted(const bench_options *options, const char *name);

/* `figures`: what the columns hold, as "medians". */
void bench_report_head(const bench_options *options, const char *bench, const char *figures);
void bench_report(const bench_options *options, const char *bench, const bench_row *row);

/* Middle of `count` values, which it sorts; negative when there are none. */
double bench_median(double *values, int count);

/* The smallest value that `percent` of them do not exceed; likewise. */
double bench_percentile(double *values, int count, int percent);

#endif
