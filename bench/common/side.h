/* Side: one side of a comparison as the benchmark sees it: a team that is started when first needed
 * and sleeps while it is not asked. */
#ifndef BENCH_SIDE_H
#define BENCH_SIDE_H

#include "common/board.h"

#include <sys/types.h>

enum { BENCH_ARGUMENTS_MAX = 24 };

/* How a side's ranks are started: PREFIX... -n RANKS PROGRAM; without a prefix the program is
 * started alone and finds the number in `ranks_variable`. */
typedef struct bench_launcher {
    const char *peer;    /* "ferry", "openmpi", ... */
    const char *program; /* path below the benchmark's folder */
    const char *ranks_variable;
    int ranks_max; /* more it cannot; 0: any number */
    bool starts;   /* its start is worth comparing */
    const char *prefix[12];
    const char *oversubscribed[4]; /* further words when there are more ranks than cores */
    const char *environment[6];    /* NAME=value */
} bench_launcher;

typedef struct bench_side {
    const bench_launcher *launcher;
    int ranks;
    pid_t pid; /* 0: not started */
    bool failed;
    char reason[160]; /* why it failed */
    bench_board *board;
    int board_fd;
    uint32_t turn;
} bench_side;

/* Whether the side's program was built. */
bool bench_side_exists(const bench_launcher *launcher);

/* Starts the team if it does not run. False, with `reason`, when it cannot. */
bool bench_side_start(bench_side *side);

/* Whether the running team measures `kind`. */
bool bench_side_can(const bench_side *side, bench_kind kind);

/* Has the team do `job`. False, and the side failed, when it dies or does not answer in time. */
bool bench_side_run(bench_side *side, const bench_job *job, bench_answer *answer);

/* Ends the team. */
void bench_side_stop(bench_side *side);

/* Milliseconds from starting an empty program of `ranks` ranks to its end; negative on failure. */
double bench_side_start_ms(const bench_launcher *launcher, int ranks);

/* Path of `name` below the folder of the running benchmark. */
void bench_path(const char *name, char *out, size_t size_bytes);

#endif
