/* Draw: the pictures of `ferry report`, as pieces of text for a file.
 *
 * Each function writes what it can; whoever opened the file looks for its errors at the end. */
#ifndef FY_CMD_DRAW_H
#define FY_CMD_DRAW_H

#include <stdbool.h>
#include <stdio.h>

#include "cmd/report/trace.h"

/* The uses of a rank's time, as bars and tables show them. */
typedef enum draw_share {
    DRAW_TASK,    /* in a task or handler, on the processor */
    DRAW_WAITING, /* in a task, without the processor: others had it, or the task slept */
    DRAW_PROGRAM, /* in the program, outside Ferry */
    DRAW_RUNTIME, /* in Ferry, on the processor */
    DRAW_DELAYED, /* in Ferry, without the processor: others had it */
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

/* The part of a stretch that had the processor, 0 to 1. Each task has its own measured. For
 * the runtime only the sum is known, so each of its stretches has the same part. Handlers count
 * whole. */
double draw_processor_part(const trace_rank *rank, size_t index);

/* A row of a picture of what was when. Time is divided into bins, each coloured by what filled most
 * of it. Neighbours of one colour are one stroke. So the size of a picture goes with its rows, not
 * with the length of the record. */
typedef struct draw_row {
    int bins, colours;
    double bin_ns, width; /* of a bin, in time and in the picture */
    double *ns;           /* bins x colours */
} draw_row;

typedef struct draw_span {
    double from_ns, to_ns; /* since the row's beginning */
} draw_span;

/* A row of time up to `end_ns`, for a picture of that width and as many rows; false without memory.
 * The caller frees `ns`. */
bool draw_row_init(draw_row *row, int colours, double end_ns, int width, int rows);

/* How high each of so many rows is, and which of them have room for a line of text: 1 is all, 2
 * every second. */
double draw_row_height(int rows);
int draw_row_every(double height);

void draw_row_clear(const draw_row *row);

/* Counts that `part` of the span, 0 to 1, is of the colour. */
void draw_row_fill(const draw_row *row, draw_span at, int colour, double part);

/* Paths around the height y, as thick as the element around them says. */
void draw_row_put(FILE *out, const draw_row *row, const char *const *colours, double x, double y);

/* The keys of the shares from x on; returns where the last ends. */
double draw_share_keys(FILE *out, double x);

/* Text with what XML reserves replaced; bytes outside ASCII become '?'. */
void draw_text(FILE *out, const char *text);

/* A rank that left a trace; NULL when there is none. */
const trace_rank *draw_told(const trace_run *run);

/* The end of a text, as much as `room` characters hold: what tells commands apart stands there. All
 * of it shows where the pointer rests. Inside a text element. */
void draw_text_end(FILE *out, const char *text, size_t room);

/* The name of a handler; `buffer` holds it when the trace has none. */
const char *draw_handler_name(const trace_rank *rank, uint32_t index, char buffer[32]);

/* A length of time with a unit; the step of a time axis up to `end_ns` with 4 to 10 ticks. */
void draw_duration(char buffer[32], double ns);
double draw_step(double end_ns);

/* An svg element: per run the bars of all ranks (Figures 7.1 to 7.10 of prema.txt), the runs on one
 * scale. */
void draw_bars(FILE *out, const trace_run *runs, int run_count);

/* An svg element: what each rank did when, a panel per run below each other on one time axis, and
 * beside each rank what its time went to. */
void draw_load(FILE *out, const trace_run *runs, int run_count);

/* An svg element: what each rank did when, above it how many ranks were busy. */
void draw_timeline(FILE *out, const trace_run *run);

enum { DRAW_FORECASTS = 4 };

/* The times to be expected under a scheduler, in seconds. */
typedef struct draw_forecast_row {
    const char *scheduler;
    double lower, average, upper, played;
    double replayed; /* 0: it was not simulated */
} draw_forecast_row;

typedef struct draw_forecast {
    draw_forecast_row rows[DRAW_FORECASTS];
    int count; /* 0: nothing is known of this run */
} draw_forecast;

/* One page with the pictures and tables, which needs no other file. `forecasts`: one for each run;
 * NULL: none. */
void draw_page(FILE *out, const trace_run *runs, int run_count, const draw_forecast *forecasts);

/* The first run in the trace event format, which Chrome's tracing page and Perfetto read. */
void draw_chrome(FILE *out, const trace_run *run);

#endif
