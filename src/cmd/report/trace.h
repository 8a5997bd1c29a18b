/* Trace files: what the ranks of a run wrote under FERRY_TRACE, read and checked.
 *
 * A file is lines of words; docs/traces.md describes them. Files may come from anywhere: nothing in
 * them is trusted, and the first thing that is wrong ends the reading with an error that names
 * file, line and what was expected. */
#ifndef FY_CMD_TRACE_H
#define FY_CMD_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TRACE_HANDLERS_MAX = 1024, TRACE_RANKS_MAX = 1 << 16, TRACE_ERROR_BYTES = 4608 };

typedef enum trace_kind {
    TRACE_IDLE,
    TRACE_RUNTIME,
    TRACE_TASK,
    TRACE_MAIN,
    TRACE_KINDS
} trace_kind;

/* One stretch; it ends where the next begins, the last at the end of the rank. */
typedef struct trace_stretch {
    uint64_t start_ns; /* since the rank was opened */
    uint64_t cpu_ns;
    uint32_t handler;
    trace_kind kind;
} trace_stretch;

/* Why an object was sent away. */
typedef struct trace_move {
    uint64_t time_ns, object;
    int target, asker; /* asker: -1 for none */
    char occasion[8];  /* "task", "word" or "time" */
    double load, asker_load;
} trace_move;

/* The cost of an object for a rank. */
typedef struct trace_object {
    uint64_t object;
    uint64_t handled, handler_ns, message_ns, pack_ns, unpack_ns, transit_ns;
    uint64_t forwarded, in, out;
    char *type;
} trace_object;

/* An entry of the trail of messages to objects: a handler that has run, or a message that was sent.
 * Either the handler that stands next sent it, or the program. */
typedef struct trace_trail {
    uint64_t object;
    uint64_t value;    /* ns of the handler; bytes sent */
    uint64_t start_ns; /* of a handler, by the job's clock */
    double load;       /* of a handler, as its scheduler was told; 0: none */
    uint32_t sequence; /* of the message, among those from its origin to the object */
    int32_t origin; /* of what was handled; TRACE_BY_HANDLER; or TRACE_BY_PROGRAM - quiescences */
} trace_trail;

enum { TRACE_BY_HANDLER = -1, TRACE_BY_PROGRAM = -2 };

typedef struct trace_stat {
    char *name;
    uint64_t value;
} trace_stat;

typedef struct trace_rank {
    bool present; /* its file was there */
    int rank, ranks;
    uint64_t open_ns, close_ns;
    char *version, *command, *port, *scheduler; /* NULL: not told */
    char **choices;                             /* of the steering: ns, what, and why */
    char *handlers[TRACE_HANDLERS_MAX];
    trace_stat *stats;
    trace_stretch *stretches;
    trace_move *moves;
    trace_object *objects;
    trace_trail *trail;
    size_t stat_count, stretch_count, move_count, object_count, trail_count, choice_count;
} trace_rank;

typedef struct trace_run {
    char *folder;
    int ranks;
    trace_rank *rank;
    uint64_t start_ns, end_ns; /* of the first and of the last rank */
    const char *during;        /* the handler whose phase this is; NULL: the whole run */
} trace_run;

/* Reads one file's text. False, with a line in `error`, when it is not as it must be; then nothing
 * is kept. */
bool trace_parse(const char *text, size_t size_bytes, const char *name, trace_rank *out,
                 char error[TRACE_ERROR_BYTES]);
void trace_rank_fini(trace_rank *rank);

/* Reads the files rank-N.trace of `folder`. Ranks that left none (they died) are absent. */
bool trace_run_read(const char *folder, trace_run *out, char error[TRACE_ERROR_BYTES]);
void trace_run_fini(trace_run *run);

/* Cuts the run down to what lies between the first task of a handler and the end of its last; its
 * stats and objects stay those of the whole run. Keeps `handler` until trace_run_fini. False, with
 * a line in `error`, when no rank was in a task of it. */
bool trace_run_during(trace_run *run, const char *handler, char error[TRACE_ERROR_BYTES]);

/* The value of a stat, 0 when it is not there. */
uint64_t trace_stat_of(const trace_rank *rank, const char *name);

/* End of the stretch of that index, since the rank was opened. */
uint64_t trace_stretch_end(const trace_rank *rank, size_t index);

#endif
