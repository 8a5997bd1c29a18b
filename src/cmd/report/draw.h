/* Draw: the pictures of `ferry report`, as pieces of text for a file.
 *
 * Each function writes what it can; whoever opened the file looks for its errors at the end. */
#ifndef FY_CMD_DRAW_H
#define FY_CMD_DRAW_H

#include <stdio.h>

#include "cmd/report/trace.h"

/* What a rank's time went to, as bars and tables show it. */
typedef enum draw_share {
    DRAW_TASK,    /* in a task or handler, on the processor */
    DRAW_WAITING, /* in a task, without the processor: others had it, or the task slept */
    DRAW_PROGRAM, /* in the program, outside Ferry */
    DRAW_RUNTIME,
    DRAW_IDLE,
    DRAW_SHARES
} draw_share;

typedef struct draw_shares {
    uint64_t ns[DRAW_SHARES];
} draw_shares;

extern const char *const draw_share_names[DRAW_SHARES];
extern const char *const draw_share_colours[DRAW_SHARES];

/* Sums up the stretches of a rank. */
draw_shares draw_shares_of(const trace_rank *rank);

/* Text with what XML reserves replaced; bytes outside ASCII become '?'. */
void draw_text(FILE *out, const char *text);

/* The name of a handler; `buffer` holds it when the trace has none. */
const char *draw_handler_name(const trace_rank *rank, uint32_t index, char buffer[32]);

/* A length of time with a unit; the step of a time axis up to `end_ns` with 4 to 10 ticks. */
void draw_duration(char buffer[32], double ns);
double draw_step(double end_ns);

/* An svg element: per run the bars of all ranks (Figures 7.1 to 7.10 of prema.txt), the runs on one
 * scale. */
void draw_bars(FILE *out, const trace_run *runs, int run_count);

/* An svg element: what each rank did when, above it how many ranks were busy. */
void draw_timeline(FILE *out, const trace_run *run);

/* One page with both pictures and tables, which needs no other file. */
void draw_page(FILE *out, const trace_run *runs, int run_count);

/* The first run in the trace event format, which Chrome's tracing page and Perfetto read. */
void draw_chrome(FILE *out, const trace_run *run);

#endif
