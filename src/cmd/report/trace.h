/* Trace files: reads and checks the files that the ranks of a run wrote (FERRY_TRACE).
 *
 * A file is lines of words, see docs/traces.md. Files may come from anywhere, so nothing in them is
 * trusted. The first fault ends the reading, with an error that names the file, the line and what
 * was expected. */
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

/* A stretch of one activity. It ends where the next begins, or when the rank closes. */
typedef struct trace_stretch {
    uint64_t start_ns; /* since the rank was opened */
    uint64_t cpu_ns;
    uint32_t handler;
    trace_kind kind;
} trace_stretch;

/* Why an object was sent away. */
typedef struct trace_move {
    uint64_t time_ns, object;
    int target, asker; /* asker: the rank whose message caused the move; -1: none did */
    char occasion[8];  /* "task", "word" (a scheduler's message) or "time" */
    double load, asker_load;
} trace_move;

/* The cost of an object for a rank. */
typedef struct trace_object {
    uint64_t object;
    uint64_t handled, handler_ns, message_ns, pack_ns, unpack_ns, transit_ns;
    uint64_t forwarded, in, out;
    char *type;
} trace_object;

/* An entry of the trail of objects: a handler that has run, a message that was sent, or an object
 * that was created. The sender or creator is the next handler in the trail, or the program. */
typedef struct trace_trail {
    uint64_t object;
    uint64_t value;    /* nanoseconds of the handler, or bytes of the message */
    uint64_t start_ns; /* of a handler, by the job's clock */
    double load;       /* of a handler, as its scheduler was told; 0: it was told none */
    uint32_t sequence; /* number of the message among those from its origin to the object;
                          TRACE_CREATED: the object was created */
    uint32_t handler;  /* that ran; 0 if the trace is of a version that did not record it */
    int32_t origin;    /* of a handler: the rank that sent its message. Of a message sent by a
                          handler: TRACE_BY_HANDLER. By the program after n quiescences:
                          TRACE_BY_PROGRAM - n */
} trace_trail;

enum { TRACE_BY_HANDLER = -1, TRACE_BY_PROGRAM = -2 };
#define TRACE_CREATED UINT32_MAX

typedef struct trace_stat {
    char *name;
    uint64_t value;
} trace_stat;

typedef struct trace_rank {
    bool present; /* its file was there */
    int rank, ranks;
    uint64_t open_ns, close_ns;
    char *version, *command, *port, *scheduler; /* NULL: the file has none */
    char **choices;                             /* of the steering: time in ns, choice, reason */
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
    int ranks;     /* up to the last that left a trace or is named in one */
    int places;    /* ranks for which the job had room: `ranks` or more */
    int strangers; /* files that are of another run, which were left out */
    trace_rank *rank;
    uint64_t start_ns, end_ns; /* the first rank opens, the last one closes */
    const char *during;        /* the handler whose phase this is; NULL: the whole run */
} trace_run;

/* Reads one file's text. False, with a line in `error`: the text is wrong, and `*out` needs no
 * trace_rank_fini. */
bool trace_parse(const char *text, size_t size_bytes, const char *name, trace_rank *out,
                 char error[TRACE_ERROR_BYTES]);
void trace_rank_fini(trace_rank *rank);

/* Reads the files rank-N.trace of `folder`. Ranks without a file (they died) are not `present`. Nor
 * are those whose file is of another run than the first file. */
bool trace_run_read(const char *folder, trace_run *out, char error[TRACE_ERROR_BYTES]);
void trace_run_fini(trace_run *run);

/* If files of `folder` were left out, says so on standard error, for the command of that name. */
void trace_strangers_tell(const char *command, const char *folder, int strangers);

/* Cuts the run down to the time from the first task of a handler to the end of its last. Stats and
 * objects stay those of the whole run. Keeps `handler` until trace_run_fini. False, with a line in
 * `error`: no task of the handler ran. */
bool trace_run_during(trace_run *run, const char *handler, char error[TRACE_ERROR_BYTES]);

/* The value of a stat; 0: the trace has none of that name. */
uint64_t trace_stat_of(const trace_rank *rank, const char *name);

/* Writes the names of the handlers that have tasks in the run, with commas, or "none". */
void trace_handlers_list(const trace_run *run, char *out, size_t size_bytes);

/* The end of the stretch at `index`, since the rank was opened. */
uint64_t trace_stretch_end(const trace_rank *rank, size_t index);

#endif
