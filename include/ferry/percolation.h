/* Percolation: data servers keep objects on disk, and computing engines run their tasks.
 *
 * The first ranks are data servers, the others engines. An object of ferry_balance_add without
 * tasks is on a server, in memory or on disk. When it gets tasks, the initiator of its server makes
 * a token, and the store reads it. The assembler offers it to an engine that has asked, and moves
 * it there if the engine accepts it. The engine's scheduler runs the tasks. The terminator moves it
 * back. After ferry_quiesce all such objects are on servers, unless an engine had no memory to send
 * one. dmcs.txt 2.2, 5.2. */
#ifndef FERRY_PERCOLATION_H
#define FERRY_PERCOLATION_H

#include <ferry/balance.h>
#include <ferry/store.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How a job is divided. */
typedef struct ferry_percolation_options {
    size_t size; /* sizeof(ferry_percolation_options) */
    int servers; /* ranks 0 to servers - 1 are data servers; FERRY_SERVERS overrides it */
    int window;  /* the most objects on an engine and on their way to it; 0: 4 */
    int tasks;   /* after how many tasks an object goes back to its server; 0: 64 */
} ferry_percolation_options;

#define FERRY_PERCOLATION_OPTIONS_DEFAULTS                                                         \
    {                                                                                              \
        sizeof(ferry_percolation_options), 0, 0, 0                                                 \
    }

/* Divides the ranks and turns migration on. Each rank must have opened a store, whose budget limits
 * its memory. With 0 servers it only checks `options`. Collective, before the first
 * ferry_balance_add. A rank that joins calls it alone, before it polls, and is an engine. Borrows
 * `options`. FERRY_EINVAL: no engine is left, a number is out of range, or `servers` differs.
 * FERRY_ESTATE: a handler runs, no store is open, a scheduler has started, or FERRY_SCHEDULER
 * names another. FERRY_EPEER: another rank could not start. FERRY_ENOMEM. [app thread, not in
 * handlers | polls | may block] dmcs.txt 2.2. */
FERRY_API FERRY_MUST_USE int ferry_percolation_start(ferry *f,
                                                     const ferry_percolation_options *options);

/* How many ranks are data servers; 0: none, or percolation has not started. Objects are best
 * created on servers, ranks 0 to this number - 1, or on all ranks if it is 0. An object stays at
 * the server that has created it. One that an engine has created goes to a server that its name
 * chooses. A rank that joins later and has not called ferry_percolation_start is neither server nor
 * engine. [app thread, handlers | never blocks] dmcs.txt 2.2. */
FERRY_API int ferry_percolation_servers(const ferry *f);

/* Counts of this rank. */
typedef struct ferry_percolation_stats {
    size_t size;              /* sizeof(ferry_percolation_stats) */
    uint64_t initiated;       /* server: tokens made: one each time an object gets work */
    uint64_t assembled;       /* server: objects sent to engines, */
    uint64_t assembled_bytes; /* and their packed sizes */
    uint64_t declined;        /* server: offers for which an engine had no room */
    uint64_t kept;            /* server: objects whose tasks it ran itself */
    uint64_t taken;           /* engine: objects that have arrived */
    uint64_t tasks;           /* engine: tasks that have run */
    uint64_t terminated;      /* engine: objects sent back */
    uint64_t peak_bytes;      /* engine: the most bytes of objects here and on their way */
} ferry_percolation_stats;

#define FERRY_PERCOLATION_STATS_DEFAULTS                                                           \
    {                                                                                              \
        sizeof(ferry_percolation_stats), 0, 0, 0, 0, 0, 0, 0, 0, 0                                 \
    }

/* Fills `*out`, which begins as FERRY_PERCOLATION_STATS_DEFAULTS; zeros before
 * ferry_percolation_start. If its size is smaller than that of the struct, the call writes only so
 * many bytes. FERRY_EINVAL: `out` is NULL, or its size is not set; nothing was written. [app
 * thread, handlers | never blocks] dmcs.txt 5.2. */
FERRY_API FERRY_MUST_USE int ferry_percolation_stats_get(ferry *f, ferry_percolation_stats *out);

#ifdef __cplusplus
}
#endif
#endif
