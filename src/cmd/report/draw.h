/* Draw: the pictures of `ferry report`, as text that is written to a file.
 *
 * The functions report no errors of the file: its opener asks ferror at the end. */
#ifndef FY_CMD_DRAW_H
#define FY_CMD_DRAW_H

#include <stdbool.h>
#include <stdio.h>

#include "cmd/report/trace.h"

/* The uses of a rank's time, as bars and tables show them. */
typedef enum draw_share {
    DRAW_TASK,    /* in a task or handler, on the processor */
    DRAW_WAITING, /* in a task, without the processor: other programs had it, or the task slept */
    DRAW_PROGRAM, /* in the program, outside Ferry */
    DRAW_RUNTIME, /* in Ferry, on the processor */
    DRAW_DELAYED, /* in Ferry, without the processor: other programs had it */
    DRAW_IDLE,
    DRAW_SHARES
} draw_share;

typedef struct draw_shares {
    uint64_t ns[DRAW_SHARES];
} draw_shares;

extern const char *const draw_share_names[DRAW_SHARES];
extern const char *const draw_share_colours[DRAW_SHARES];

/* Adds up the stretches of a rank by use. */
draw_shares draw_shares_of(const trace_rank *rank);

/* The part of a stretch that had the processor, 0 to 1. It was measured for each task. For the
 * runtime only the sum was measured, so each of its stretches gets the same part. For a handler
 * that is not a task it is 1. */
double draw_processor_part(const trace_rank *rank, size_t index);

/* A row of a picture over time. Time is divided into bins. A bin gets the colour that filled most
 * of it, and neighbours of one colour become one stroke. So the size of a picture depends on the
 * number of rows, not on the length of the trace. */
typedef struct draw_row {
    int bins, colours;
    double bin_ns, width; /* of a bin, in time and in the picture */
    double *ns;           /* bins x colours */
} draw_row;

typedef struct draw_span {
    double from_ns, to_ns; /* since the row's beginning */
} draw_span;

/* Makes a row from time 0 to `end_ns`, for a picture of `width` with `rows` rows. False: no memory.
 * The caller frees `ns`. */
bool draw_row_init(draw_row *row, int colours, double end_ns, int width, int rows);

/* The height of a row, if there are `rows`; and which rows of that height have room for a line of
 * text: 1 is all, 2 every second. */
double draw_row_height(int rows);
int draw_row_every(double height);

void draw_row_clear(const draw_row *row);

/* Counts `part` of the span, 0 to 1, for the colour. */
void draw_row_fill(const draw_row *row, draw_span at, int colour, double part);

/* Writes the row as paths at height y. The element around them sets the width of the stroke. */
void draw_row_put(FILE *out, const draw_row *row, const char *const *colours, double x, double y);

/* Writes the legend of the shares from x on. Returns where it ends. */
double draw_share_keys(FILE *out, double x);

/* Writes the character at `text`, or '?' for a control character and a byte that is not UTF-8.
 * Returns where the next one begins. */
const char *draw_character(FILE *out, const char *text);

/* Writes text, with XML's reserved characters replaced. */
void draw_text(FILE *out, const char *text);

/* A rank that left a trace; NULL when there is none. */
const trace_rank *draw_told(const trace_run *run);

/* Writes the last `room` characters of a text, where commands differ, and all of it as a title that
 * shows when the pointer rests there. Inside a text element. */
void draw_text_end(FILE *out, const char *text, size_t room);

/* The name of a handler. If the trace has none, it is made in `buffer`. */
const char *draw_handler_name(const trace_rank *rank, uint32_t index, char buffer[32]);

/* Writes a length of time with a unit. */
void draw_duration(char buffer[32], double ns);
/* The step of a time axis from 0 to `end_ns`, for 4 to 10 ticks. */
double draw_step(double end_ns);

/* Writes an svg element: for each run the bars of all ranks (prema.txt figures 7.1 to 7.10), all on
 * one scale. */
void draw_bars(FILE *out, const trace_run *runs, int run_count);

/* Writes an svg element: a panel per run, one below the other, on one time axis. A row per rank
 * shows its activity over time. Beside the row stand the parts of its time. */
void draw_load(FILE *out, const trace_run *runs, int run_count);

/* Writes an svg element: the activity of each rank over time, and above it how many were busy. */
void draw_timeline(FILE *out, const trace_run *run);

enum { DRAW_FORECASTS = 4 };

/* The predicted run times under a scheduler, in seconds (cmd/model/model.h). */
typedef struct draw_forecast_row {
    const char *scheduler;
    double lower, average, upper, played;
    double replayed; /* 0: it was not simulated */
} draw_forecast_row;

typedef struct draw_forecast {
    draw_forecast_row rows[DRAW_FORECASTS];
    int count; /* 0: the run has no forecast */
} draw_forecast;

/* Writes one page with the pictures and tables, which needs no other file. `forecasts`: one for
 * each run, or NULL. */
void draw_page(FILE *out, const trace_run *runs, int run_count, const draw_forecast *forecasts);

/* Writes a run in the trace event format, which Chrome's tracing page and Perfetto read. */
void draw_chrome(FILE *out, const trace_run *run);

#endif
