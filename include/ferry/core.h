/* Core: ranks, requests that run code where they arrive, progress, tracking, collectives.
 *
 * A rank is a `ferry *`: ferry_open gives it, or ferry_main passes it. Only ferry_close and
 * ferry_error_message accept NULL; no function checks whether it is closed. All state is in it, so
 * a process may hold many ranks, of three jobs at most. One thread of a rank makes all calls (or
 * several in turn). Handlers and callbacks run on it, one at a time, in calls marked "polls".
 * Requests of one rank to another are handled in the order sent, each exactly once, or fail with a
 * report. dmcs.txt 3-4, prema.txt B. */
#ifndef FERRY_CORE_H
#define FERRY_CORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ferry/error.h>
#include <ferry/export.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FERRY_WORDS_MAX 4
#define FERRY_FOREVER UINT64_MAX
#define FERRY_ANY_RANK (-1)
#define FERRY_ANY_TAG INT32_MIN

/* How to read the comments of all headers: the words in brackets are a function's contract. Other
 * words say who owns a pointer: borrows, keeps, takes, gives, lends. ferry(7) explains both. A
 * short name and a section, such as "dmcs.txt 3.1", cite the paper that the function comes from;
 * ferry(7) lists the papers. No function checks that it was called on the right thread. */

/* Start and stop. */

/* How a rank is opened. Each field names its environment variable, which overrides it, and its
 * default, which zero stands for. Between two ranks there are two lanes, classes of traffic: data,
 * which are the program's messages, and control messages, by which Ferry balances and finds out
 * whether work is left. */
typedef struct ferry_options {
    size_t size;       /* sizeof(ferry_options) */
    size_t heap_bytes; /* of this rank's shared heap, reserved, not committed; FERRY_HEAP_BYTES; 16
                          GiB */
    uint32_t ring_slots; /* requests in flight per peer and lane, a power of two from 2 to 65,536;
                            FERRY_RING_SLOTS; 256 */
    uint32_t ring_bytes; /* payload bytes in flight per peer and lane, a power of two from 1 KiB to
                            64 MiB; FERRY_RING_BYTES; 64 KiB */
    const char *scheduler;    /* name of a scheduler (balance.h); FERRY_SCHEDULER; "ferry" */
    void *user_data;          /* what ferry_user_data returns; keeps until ferry_close */
    const void *communicator; /* the address of an MPI_Comm of a program that has initialised MPI:
                                 the job is its ranks; borrows; NULL: all ranks of the launcher */
    size_t backlog_bytes;     /* limit of what waits here for one peer; docs/limits.md;
                                 FERRY_BACKLOG_BYTES; 256 KiB */
    const char *directory; /* which ranks are told where objects are: "lazy": senders; "home": also
                              the creator; "eager": all; or the path, with a '/', of a shared object
                              with a ferry_directory_protocol (directory.h). The same on all ranks;
                              FERRY_DIRECTORY; "lazy" */
    uint64_t stall_ns;    /* if nothing has changed for so long, ferry_quiesce prints what each rank
                             does, as `ferry why` does; FERRY_STALL_S, in seconds; 0: never */
    size_t waiting_bytes; /* limit of all that waits on this rank; docs/limits.md;
                             FERRY_WAITING_BYTES; a quarter of the machine's memory */
} ferry_options;

/* The initialiser of a struct whose first field is its size. Begin with it: then a program works
 * with a library that knows other fields. It gives each field its default: zero, unless the
 * comment of the field says otherwise. */
#define FERRY_OPTIONS_DEFAULTS                                                                     \
    {                                                                                              \
        sizeof(ferry_options), 0, 0, 0, NULL, NULL, NULL, 0, NULL, 0, 0                            \
    }

/* The program of one rank. Its return value gives the rank's exit status: its low 8 bits, or 1 if
 * these are 0 and the value is not. */
typedef int ferry_rank_main(ferry *f, int argc, char **argv);

/* Runs `rank_main` once per rank and returns the exit status for main: the first that is not 0.
 * Under `ferry run` or another known launcher this process is one rank of the launcher's job. A
 * program started alone is one rank, or starts N ranks on this machine if the environment has
 * FERRY_RANKS=N. Each rank is opened with `options` (NULL: defaults), which are borrowed. If the
 * environment announces ranks that cannot be reached, it prints why and does not return 0. Call it
 * once, first in main, before any thread exists. [main thread | polls | may block] dmcs.txt 3.1. */
FERRY_API int ferry_main(int argc, char **argv, ferry_rank_main *rank_main,
                         const ferry_options *options);

/* Opens this process's rank, in a program that keeps its own main. Collective over the job.
 * `options` may be NULL; borrows it. Gives `*out`, freed with ferry_close. FERRY_ELAUNCH: the
 * environment announces ranks that cannot be reached; see ferry_error_message(NULL). FERRY_ESTATE:
 * this process has opened the rank that `ferry run` gave it, and can open no other. [app thread |
 * may block] dmcs.txt 3.1, prema.txt B.2.1. */
FERRY_API FERRY_MUST_USE int ferry_open(const ferry_options *options, ferry **out);

/* Finishes what this rank has sent, waits until every rank closes, frees `f`. Collective. Ranks
 * that have left are not waited for. FERRY_EPEER: a rank has died, and not every rank has called
 * ferry_peer_watch. FERRY_ELOST, FERRY_EINVAL: as ferry_quiesce. FERRY_ESYSTEM: the file of
 * FERRY_TRACE or FERRY_PROFILE could not be written whole. In these cases the rank is closed, and
 * ferry_error_message(NULL) says why. FERRY_ESTATE: inside a handler, or `f` is the rank of
 * ferry_main; it stays open. [app thread, not in handlers | polls | may block] */
FERRY_API int ferry_close(ferry *f);

/* The version of the library as text, such as "0.1.0". It may differ from FERRY_VERSION, the
 * version of the headers: structs with a size allow that. Lends forever. [any thread | never
 * blocks] */
FERRY_API const char *ferry_version(void);

/* Ends the whole job immediately, on every port, with exit status `status` (0 to 255; any other
 * number counts as 1). Prints a line with this rank's number and `reason`, which may be NULL.
 * Writes out this process's open files. The other ranks are killed. Does not return. [app thread,
 * handlers] */
FERRY_API void ferry_abort(ferry *f, int status, const char *reason) __attribute__((noreturn));

/* Returns this rank's number, from 0, and ferry_ranks how many numbers for ranks the job has, used
 * or not. If ranks may join or leave, ferry_member_count says how many members there are now. [any
 * thread | never blocks] */
FERRY_API int ferry_rank(const ferry *f);
FERRY_API int ferry_ranks(const ferry *f);

/* Returns, or sets, a pointer that Ferry keeps for the program. [app thread, handlers | never
 * blocks] */
FERRY_API void *ferry_user_data(const ferry *f);
FERRY_API void ferry_user_data_set(ferry *f, void *user_data);

/* Time. */

/* Nanoseconds since an arbitrary start, monotonic, comparable between ranks of one node. [any
 * thread] */
FERRY_API uint64_t ferry_now(const ferry *f);

/* Stands for work of `seconds`: the simulator advances the rank's clock by it. A real port returns
 * immediately (FERRY_COMPUTE=none, the default), sleeps (sleep) or spins (spin). Meanwhile control
 * messages (ferry_options) are answered, as during any task. [app thread, handlers | may block |
 * does not poll] */
FERRY_API void ferry_compute(ferry *f, double seconds);

/* Tracking. */

/* An operation that can be tested and waited for: the papers' status. All zero names no
 * operation. */
typedef struct ferry_op {
    uint64_t word;
} ferry_op;

/* A function that every rank knows by the same number. All zero names no handler: a call that needs
 * one returns FERRY_EINVAL. */
typedef struct ferry_handler {
    uint16_t index;
} ferry_handler;

/* Global name of an object (object.h): creator, number, generation. All zero names none. */
typedef struct ferry_object {
    uint64_t word;
} ferry_object;

/* A step in the life of an operation. */
typedef enum ferry_event {
    FERRY_SUBMITTED,
    FERRY_COMPLETED,
    FERRY_TIMED_OUT,
    FERRY_FAILED
} ferry_event;

/* Says how an operation ended. Memory that it points to is lent until the callback returns.
 * progressive-messages.txt 5.1.1. */
typedef struct ferry_receipt {
    int error; /* 0, or why it failed or timed out */
    int rank;  /* the other rank. An object message: where the object was last known. A receive from
                  any rank: FERRY_ANY_RANK until it has met a message. A collective: this rank */
    int tag;   /* of the message, also after a receive of any tag */
    size_t size_bytes; /* of the payload, or of a whole message that is too long for its receive */
    ferry_event event;
    int local_rank;
    ferry_handler handler;   /* of a request or an object message; else 0 */
    ferry_object object;     /* of an object message */
    void *local_address;     /* data sent, put or received into, or the target of a get */
    uint64_t remote_address; /* of a put or get: the (first) address on `rank`; else 0 */
    size_t size_max;         /* room of the receive; set if the message was too long for it */
    const char *reason;      /* `error` in words, with the values; "" if it is 0 */
} ferry_receipt;

/* A callback of a ferry_track. Called with its `..._arg` when its event has come. It runs as a
 * handler does: on the application thread, inside a call that polls, never beside a handler. It may
 * start operations and may not wait. Borrows `receipt`. progressive-messages.txt 5.1.1, 5.1.4. */
typedef void ferry_track_fn(ferry *f, void *arg, const ferry_receipt *receipt);

/* The timeout of the papers, as a value for `timeout_ns`. */
#define FERRY_TIMEOUT_DEFAULT_NS UINT64_C(1000000000)

/* Tells the caller the outcome of an operation: the papers' schedule. Any field but `size` may be
 * zero. A tracked operation ends exactly once: completed, timed out or failed. Submitted comes at
 * most once. This holds also if the peer dies, memory runs out, or the rank is closed. Events come
 * in calls that poll (but see ferry_background_begin), never in the call that starts the operation.
 * Ferry copies the struct, so one without `op` may serve many operations. The memory to which
 * arguments point must live until they end. progressive-messages.txt 4, 5.1.1. */
typedef struct ferry_track {
    size_t size; /* sizeof(ferry_track) */
    /* The data sent may be reused. Only operations that send data of the program report it: not a
     * get, a receive, an atomic update or a collective. It comes before completed. If an operation
     * fails or times out while the target may still read the data, it comes after that. */
    ferry_track_fn *submitted;
    void *submitted_arg;
    /* The operation has arrived at the target, and its handler, if any, has returned (but see
     * `arrival`). */
    ferry_track_fn *completed;
    void *completed_arg;
    ferry_track_fn *failed; /* the operation will never complete */
    void *failed_arg;
    /* Set on return to a handle, which ferry_op_test, ferry_op_wait or ferry_op_cancel must end.
     * The call does not keep the pointer. */
    ferry_op *op;
    /* The operation has not ended within `timeout_ns` (0: no timeout). Polls notice that, never
     * early. The operation is cancelled here and reports no later end; at the target it may still
     * take effect. If `timed_out` is NULL, the operation fails with FERRY_ETIMEDOUT. */
    ferry_track_fn *timed_out;
    void *timed_out_arg;
    uint64_t timeout_ns;
    /* A request completes when it has arrived at the target, before its handler runs, whatever tag
     * the target polls for. So does a put or get with a handler on the other rank. A message to an
     * object completes when the rank of the object runs it or keeps it. Other operations do not
     * change. */
    bool arrival;
} ferry_track;

#define FERRY_TRACK_DEFAULTS                                                                       \
    {                                                                                              \
        sizeof(ferry_track), NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, false        \
    }

/* The states of an operation: the papers' status. */
typedef enum ferry_op_status {
    FERRY_OP_NONE,    /* no operation: the handle is all zero, as after its end was taken */
    FERRY_OP_PENDING, /* it has not ended, or a poll has still to report its end */
    FERRY_OP_ENDED,   /* it has ended; ferry_op_test and ferry_op_wait take its end */
} ferry_op_status;

/* Returns the ferry_op_status of `op`, and changes nothing. FERRY_EINVAL: `op` is no handle, or a
 * copy of one whose end was taken. [app thread, handlers | never blocks | does not poll] prema.txt
 * C.2.4 (status). */
FERRY_API FERRY_MUST_USE int ferry_op_state(ferry *f, ferry_op op);

/* If `*op` has ended, sets it to none and returns 0 or the error of the operation. If it has not
 * ended, returns FERRY_EAGAIN. If `*op` is none already, returns 0; ferry_op_state tells the two
 * cases apart. [app thread, handlers | never blocks | does not poll] prema.txt C.2.4 (status). */
FERRY_API FERRY_MUST_USE int ferry_op_test(ferry *f, ferry_op *op);

/* Polls until `*op` has ended, then as ferry_op_test. FERRY_ESTATE: inside a handler, which may
 * only test. [app thread, not in handlers | polls | may block] */
FERRY_API FERRY_MUST_USE int ferry_op_wait(ferry *f, ferry_op *op);

/* Gives up waiting for `*op` and sets it to none. An operation that has not ended fails with
 * FERRY_ECANCELED here. It may still take effect at the target, but nothing is written to this
 * rank's memory any more. If it has ended, its callbacks still report how, and ferry_op_test no
 * longer can. If `*op` is none, nothing changes. FERRY_EINVAL: no such operation. [app thread,
 * handlers | never blocks | does not poll] */
FERRY_API int ferry_op_cancel(ferry *f, ferry_op *op);

/* Requests. */

/* A request to a rank, or a message to an object. With no more than four words and no data it is
 * one cache line on the way. */
typedef struct ferry_message {
    ferry_handler handler;
    uint8_t word_count; /* 0 to FERRY_WORDS_MAX */
    int32_t tag;        /* for ferry_poll_tag; FERRY_ANY_TAG: only polls for all tags run it */
    uint64_t words[FERRY_WORDS_MAX];
    const void *data; /* in a handler: borrowed, 8-byte aligned, gone when the handler returns */
    size_t size_bytes;
} ferry_message;

/* A handler of requests, which runs at the target. It may send, allocate, put, get and create. It
 * may not wait: calls marked "not in handlers" return FERRY_ESTATE. */
typedef void ferry_request_fn(ferry *f, int source, const ferry_message *message);

/* Registers `fn`. Every rank registers the same handlers in the same order; the first request after
 * the last registration checks that. Logs, traces and reports show `name`, which is copied and cut
 * at 31 bytes. FERRY_EINVAL: the name, the function or `out` is NULL. FERRY_ENOMEM: more than 1,023
 * handlers. [app thread | never blocks] dmcs.txt 3.2, prema.txt B.2.2. */
FERRY_API FERRY_MUST_USE int ferry_handler_register(ferry *f, const char *name,
                                                    ferry_request_fn *fn, ferry_handler *out);

/* Runs `message->handler` on `rank`, which may be the caller, with the message's words and data.
 * Without `track` borrows `message->data`; with it keeps the data until submitted. Outside handlers
 * it polls while the target has no room. In a handler it never waits. FERRY_EAGAIN, in a handler:
 * too much waits here (docs/limits.md). FERRY_EAGAIN, FERRY_EINVAL, FERRY_EPEER, FERRY_ENOMEM:
 * nothing was sent, no event comes. `track` may report FERRY_ENOENT (no such handler there),
 * FERRY_EPEER. [app thread, handlers | may block outside handlers | polls when it blocks] dmcs.txt
 * 3.2, prema.txt B.2.3. */
FERRY_API FERRY_MUST_USE int ferry_request_send(ferry *f, int rank, const ferry_message *message,
                                                const ferry_track *track);

/* As ferry_request_send, and returns when the request has arrived: when `rank` runs its handler, or
 * keeps it because it polls for another tag. To wait for the end of the handler, use
 * ferry_request_send with a `track` that has an `op`, and wait for that. It polls meanwhile, so
 * ranks that call it for each other, or around a ring, all return. Errors as ferry_request_send,
 * and those of its `track`. [app thread, not in handlers | polls | may block] dmcs.txt 3.1,
 * prema.txt B.2.4. */
FERRY_API FERRY_MUST_USE int ferry_request_sync(ferry *f, int rank, const ferry_message *message);

/* Runs `message->handler` on every other rank that the caller knows (member.h) and that has not
 * gone when the message arrives. The handlers' source is the caller. This is no collective.
 * Broadcasts of one rank run in the order sent, unless ranks come or go between them; other
 * requests may overtake them. `track` reports completed when every handler has returned,
 * FERRY_EPEER when a rank that passes it on has gone. FERRY_EAGAIN: docs/limits.md. FERRY_ENOMEM:
 * docs/messages.md. Else as ferry_request_send. [app thread, handlers | may block outside handlers
 * | polls when it blocks] prema.txt B.2.5. */
FERRY_API FERRY_MUST_USE int ferry_request_broadcast(ferry *f, const ferry_message *message,
                                                     const ferry_track *track);

/* Handles what has arrived: runs handlers, callbacks and, when objects are scheduled (balance.h),
 * at most one task. Returns how many messages and tasks it ran, 0 when there was nothing.
 * FERRY_ESTATE: inside a handler. [app thread, not in handlers | polls | never blocks]
 * dmcs.txt 3.3, prema.txt B.2.6. */
FERRY_API int ferry_poll(ferry *f);

/* As ferry_poll, without tasks, for requests, messages to objects, puts and gets with `tag`;
 * FERRY_ANY_TAG is every tag. Returns the number of messages that it ran. Requests with another tag
 * are kept, in order, for later polls. Any poll carries out a put or get without a tag; but while
 * earlier requests of its rank are kept, a put waits for them. FERRY_EAGAIN: nothing was run, and
 * more is kept than allowed (docs/limits.md); poll for the other tags. FERRY_ESTATE: inside a
 * handler. [app thread, not in handlers | polls | never blocks] prema.txt B.2.6. */
FERRY_API int ferry_poll_tag(ferry *f, int32_t tag);

/* As ferry_poll, but sleeps until there was something to do or `timeout_ns` have passed
 * (FERRY_FOREVER: no limit). Returns the number of messages and tasks that it ran, 0 after the
 * timeout. FERRY_ESTATE: inside a handler. [app thread, not in handlers | polls | may block] */
FERRY_API int ferry_wait(ferry *f, uint64_t timeout_ns);

/* Collectives. More of them in collective.h. */
/* Every rank calls the same collectives in the same order, with the same root, type, reduction and
 * size. FERRY_EINVAL: an argument is wrong, or ranks disagree, and the message names two of them; a
 * rank whose part was done already gets 0, and this error in its next ferry_quiesce. FERRY_EPEER: a
 * rank has died or ended before the others, or the root is no member (docs/messages.md).
 * FERRY_ELOST: as ferry_quiesce. FERRY_ESTATE: inside a handler, or before the first ferry_quiesce
 * of a rank that has joined. FERRY_ENOMEM: no memory for another call. [app thread, not in handlers
 * | polls | may block] */

/* Returns when every rank has called it. One barrier may follow another directly. dmcs.txt 3.6. */
FERRY_API int ferry_barrier(ferry *f);

/* Copies `size_bytes` at `data` on `root` to `data` on every rank. */
FERRY_API int ferry_broadcast(ferry *f, int root, void *data, size_t size_bytes);

/* The type of a value: of reductions, movers, files and descriptors. Reductions and movers take the
 * types from FERRY_DOUBLE to FERRY_BYTE; the others are for ferry_fields_copy (convert.h) alone. */
typedef enum ferry_type {
    FERRY_DOUBLE,
    FERRY_FLOAT,
    FERRY_INT32,
    FERRY_INT64,
    FERRY_UINT64,
    FERRY_BYTE, /* unsigned; never converted */
    FERRY_INT16,
    FERRY_LONG, /* 4 or 8 bytes, as the data format has it */
    FERRY_ULONG,
    FERRY_STRUCT, /* fields of its own */
} ferry_type;

/* How two values become one. */
typedef enum ferry_reduction {
    FERRY_REPLACE, /* the new value counts: movers alone */
    FERRY_SUM,     /* integers wrap around */
    FERRY_MIN,     /* a NaN wins over every number, as in FERRY_MAX */
    FERRY_MAX,
    FERRY_PRODUCT,
    FERRY_AND, /* FERRY_AND, FERRY_OR, FERRY_XOR: of bits, not for FERRY_DOUBLE and FERRY_FLOAT */
    FERRY_OR,
    FERRY_XOR,
    FERRY_USER, /* a function of the program */
} ferry_reduction;

/* Combines `count` values at `in` over all ranks, in the order of ranks, into `out` on every rank.
 * The result has the same bits on every rank, and in every run with the same number of ranks.
 * Integers wrap around; a NaN wins over every number. `in` and `out` may be the same. */
FERRY_API int ferry_allreduce(ferry *f, ferry_type type, ferry_reduction reduction, const void *in,
                              void *out, size_t count);

/* Returns when no request, put, atomic update, object message or object is in flight, and no task
 * is left. Runs handlers and tasks until then. Does not wait for two-sided messages, collectives,
 * movers, windows, and objects that the program carries. Tracked operations were reported.
 * Collective, repeatable. FERRY_ECANCELED: ferry_quiesce_break was called. FERRY_EPEER: a rank has
 * died, or ended before the others, or this one joins while they close. FERRY_ELOST: a message was
 * damaged or has no handler. FERRY_EINVAL: ranks registered different handlers, or make different
 * calls. prema.txt 5.1. */
FERRY_API int ferry_quiesce(ferry *f);

/* Makes the ferry_quiesce that this rank is in return FERRY_ECANCELED soon, on this rank alone. The
 * rank can then leave (ferry_leave) or do what handlers may not. On the other ranks ferry_quiesce
 * goes on. It ends only after this rank has called ferry_quiesce again, and so joined it, or has
 * gone. Meanwhile no other rank may wait in a collective that this rank makes afterwards. If it has
 * ended already, this rank's call returns 0. Outside ferry_quiesce this call does nothing.
 * [handlers, tasks | never blocks] cds.txt 6. */
FERRY_API void ferry_quiesce_break(ferry *f);

/* Account. */

/* The account of a rank since it was opened. Times are in nanoseconds. */
typedef struct ferry_stats {
    size_t size; /* sizeof(ferry_stats) */
    uint64_t requests_sent, requests_handled;
    uint64_t messages_sent, messages_handled, messages_forwarded; /* to objects */
    uint64_t objects_in, objects_out;                             /* migrations */
    uint64_t tasks;
    uint64_t task_ns;     /* wall time inside tasks and handlers; see runtime_ns */
    uint64_t task_cpu_ns; /* processor time inside tasks */
    uint64_t idle_ns;     /* waiting with nothing to do */
    /* The rest of the time inside calls that poll: scheduling, packing, sending, and handlers
     * shorter than a microsecond. This time and that of handlers are counted only from the first
     * task or ferry_trace_start on: before that, no clock is read for them. */
    uint64_t runtime_ns;
    uint64_t helper_ns; /* processor time of the helper thread */
    /* Processor time of runtime_ns. That is wall time, so it also contains what other programs
     * took. This is an estimate: the clock is read at tasks, at sleeps and for this account only,
     * and what it shows is divided in the ratio of wall times. */
    uint64_t runtime_cpu_ns;
} ferry_stats;

#define FERRY_STATS_DEFAULTS                                                                       \
    {                                                                                              \
        sizeof(ferry_stats), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0                              \
    }

/* Writes this rank's account to `*out`, which begins as FERRY_STATS_DEFAULTS. If its size is
 * smaller than that of the struct, the call writes only so many bytes. FERRY_EINVAL: `out` is NULL,
 * or its size is not set; nothing was written. [app thread, handlers | never blocks] */
FERRY_API int ferry_stats_get(ferry *f, ferry_stats *out);

#ifdef __cplusplus
}
#endif
#endif
