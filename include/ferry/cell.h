/* Cell: memory that is passed between ranks by its pointer, in queues that any rank may work on.
 *
 * A parcel is reference-counted memory in the shared heap: the paper's region. A cell is a queue of
 * parcels, named by rank and number. A rank holds a parcel that it created, took or read, and may
 * read it. Before it writes it calls ferry_parcel_modify. A parcel is freed when no rank holds it
 * and no cell has it. The survivors release what a dead rank held. Cells are linearizable queues,
 * first in, first out, for any number of producers and consumers. docs/cell.md explains more.
 * cds.txt 3. */
#ifndef FERRY_CELL_H
#define FERRY_CELL_H

#include <ferry/core.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Cells of a rank: numbers from 0 to FERRY_CELLS - 1. */
#define FERRY_CELLS 1024

/* A cell has room for so many parcels unless ferry_cell_limit_set says less. */
#define FERRY_CELL_LIMIT 65536

/* A cell. All zero is cell 0 of rank 0. */
typedef struct ferry_cell {
    int32_t rank;
    int32_t number;
} ferry_cell;

/* A parcel, by a name that means the same on every rank of the node. All zero is none. */
typedef struct ferry_parcel {
    uint64_t word;
} ferry_parcel;

/* Whether the caller's hold goes with the parcel. */
typedef enum ferry_hold {
    FERRY_GIVE, /* to the cell: the caller may no longer touch it */
    FERRY_KEEP, /* the caller goes on holding it, and may read */
} ferry_hold;

/* Parcels. */

/* Makes a parcel of `size_bytes` (0 is allowed) in this rank's shared heap, not cleared, 64-byte
 * aligned, held once by the caller. Gives `*out`, ended by ferry_parcel_release or by giving it
 * away; `*data`, when `data` is not NULL, is its memory. FERRY_ENOMEM: the heap's limit is
 * reached. [app thread, handlers | never blocks] cds.txt 3. */
FERRY_API FERRY_MUST_USE int ferry_parcel_create(ferry *f, size_t size_bytes, ferry_parcel *out,
                                                 void **data);

/* The memory of a parcel that this rank holds, to read; its size to `*size_bytes` when that is not
 * NULL. Lends until the hold ends. NULL: no such parcel, or not held here. [app thread, handlers |
 * never blocks] */
FERRY_API const void *ferry_parcel_data(ferry *f, ferry_parcel parcel, size_t *size_bytes);

/* Makes `*parcel`, which this rank holds, its own to write to: when another rank holds it or any
 * cell has it, replaces it by a copy and ends one hold of the old one. Other ranks never see the
 * writes. `*data` is the memory. Holding it more than once oneself is not sharing. FERRY_EINVAL:
 * not held here; FERRY_ENOMEM: no memory for the copy; the parcel is as before. [app thread,
 * handlers | never blocks] cds.txt 3 (mod). */
FERRY_API FERRY_MUST_USE int ferry_parcel_modify(ferry *f, ferry_parcel *parcel, void **data);

/* Ends one hold; the last one anywhere frees the parcel. All zero is nothing. FERRY_EINVAL: not
 * held here. [app thread, handlers | never blocks] */
FERRY_API int ferry_parcel_release(ferry *f, ferry_parcel parcel);

/* Cells. */
/* `timeout_ns` says how long to wait for a parcel, or for room: 0 not at all, FERRY_FOREVER without
 * limit. A call that waits polls. Errors of all: FERRY_EINVAL: no such cell or parcel, or the
 * parcel is not held here; a handler may have used the hold up meanwhile. FERRY_ETIMEDOUT:
 * the time has passed, nothing happened. FERRY_EAGAIN: the same with a `timeout_ns` of 0.
 * FERRY_EPEER: the cell's rank is dead or has left; its parcels may still be taken out on its node.
 * FERRY_ESTATE: in a handler calls must not wait: `timeout_ns` is 0, or for a cell on another node
 * the tracked form is used. */

/* Adds `parcel` at the end. FERRY_ENOMEM: no memory to note it. Never more than the cell's limit.
 * [app thread, handlers with 0 | polls and blocks when it waits] cds.txt 3 (enq). */
FERRY_API FERRY_MUST_USE int ferry_cell_enqueue(ferry *f, ferry_cell cell, ferry_parcel parcel,
                                                ferry_hold hold, uint64_t timeout_ns);

/* Removes the first parcel; the caller holds it, in `*out`. [app thread, handlers with 0 | polls
 * and blocks when it waits] cds.txt 3 (deq). */
FERRY_API FERRY_MUST_USE int ferry_cell_dequeue(ferry *f, ferry_cell cell, ferry_parcel *out,
                                                uint64_t timeout_ns);

/* As ferry_cell_dequeue, but the parcel stays in the cell as well. [app thread, handlers with 0 |
 * polls and blocks when it waits] cds.txt 3 (read). */
FERRY_API FERRY_MUST_USE int ferry_cell_read(ferry *f, ferry_cell cell, ferry_parcel *out,
                                             uint64_t timeout_ns);

/* Removes all parcels and adds `parcel`, at one moment. Never waits for room. [app thread, handlers
 * on this node | polls and blocks for a cell on another node] cds.txt 3 (write). */
FERRY_API FERRY_MUST_USE int ferry_cell_write(ferry *f, ferry_cell cell, ferry_parcel parcel,
                                              ferry_hold hold);

/* Removes all parcels, at one moment. [as ferry_cell_write] cds.txt 3 (zap). */
FERRY_API int ferry_cell_clear(ferry *f, ferry_cell cell);

/* How many parcels the cell has, to `*count`. [as ferry_cell_write] */
FERRY_API FERRY_MUST_USE int ferry_cell_count(ferry *f, ferry_cell cell, size_t *count);

/* Sets how many parcels a cell of this rank takes, from 1 to FERRY_CELL_LIMIT; those it has stay.
 * [app thread, handlers | never blocks] */
FERRY_API FERRY_MUST_USE int ferry_cell_limit_set(ferry *f, int number, size_t limit);

/* The tracked forms. */
/* They never wait, and `track`, not NULL, tells the end: 0, FERRY_EPEER, FERRY_ENOMEM, or what
 * ferry_op_cancel and timeouts make of it. Those that one rank starts on one cell to add are done
 * in the order started, and so are those to take. FERRY_EINVAL, FERRY_EPEER, FERRY_ENOMEM at once:
 * nothing was started. */

/* As ferry_cell_enqueue. Adds what the parcel contains at the start: while the operation waits,
 * ferry_parcel_modify copies. Takes the caller's hold (FERRY_GIVE) at the start. If the operation
 * fails, that hold is released. If the program has used that hold up meanwhile, the operation ends
 * with FERRY_EINVAL. Until it has ended it is work for ferry_quiesce. [app thread, handlers | never
 * blocks | does not poll] */
FERRY_API FERRY_MUST_USE int ferry_cell_enqueue_start(ferry *f, ferry_cell cell,
                                                      ferry_parcel parcel, ferry_hold hold,
                                                      const ferry_track *track);

/* As ferry_cell_dequeue and ferry_cell_read. Both set `*out` to none, keep `out` until the end, and
 * set it to the parcel when the caller gets the hold, before completed is told. So `*out` says who
 * holds the parcel, however the operation ends. A parcel: the caller holds it, also if
 * ferry_op_cancel came before the end was told. None, after ferry_op_cancel, a time-out or a
 * failure: the caller does not hold it, and `*out` is not written any more (docs/cell.md). [app
 * thread, handlers | never blocks | does not poll] */
FERRY_API FERRY_MUST_USE int ferry_cell_dequeue_start(ferry *f, ferry_cell cell, ferry_parcel *out,
                                                      const ferry_track *track);
FERRY_API FERRY_MUST_USE int ferry_cell_read_start(ferry *f, ferry_cell cell, ferry_parcel *out,
                                                   const ferry_track *track);

/* Handlers. */

/* Runs on the cell's rank, in a call that polls, when the cell has more parcels than its high-water
 * mark or fewer than its low one. `count` is how many it had just before. cds.txt 5. */
typedef void ferry_cell_fn(ferry *f, ferry_cell cell, size_t count, void *arg);

typedef struct ferry_cell_handler {
    size_t size; /* sizeof(ferry_cell_handler) */
    ferry_cell_fn *fn;
    void *arg;
    int64_t high; /* runs while there are more parcels than this; negative: never */
    int64_t low;  /* runs while there are fewer than this; 0: never */
    int priority; /* of handlers that are due the highest runs first; equal ones take turns */
} ferry_cell_handler;

#define FERRY_CELL_HANDLER_DEFAULTS                                                                \
    {                                                                                              \
        sizeof(ferry_cell_handler), NULL, NULL, -1, 0, 0                                           \
    }

/* Sets the handler of a cell of this rank; NULL removes it. Copies it. It runs soon if a mark is
 * passed already. While one is passed, it runs again whenever the number of parcels has changed
 * since it ran last; while it is due, ferry_quiesce waits for it (parcels alone are not work).
 * [app thread, handlers | never blocks] cds.txt 5. */
FERRY_API FERRY_MUST_USE int ferry_cell_handler_set(ferry *f, int number,
                                                    const ferry_cell_handler *handler);

/* Runs, inside a handler of a cell, the handlers of cells of higher priority that are due: where a
 * long handler allows the urgent ones to go first. Outside of one it runs none. Returns how many
 * ran. The paper's handlers preempt others. Ferry's do not: a rank's code runs in one thread, so
 * that handlers need no locks between them. [app thread | polls cells' handlers only] cds.txt 5. */
FERRY_API int ferry_cell_yield(ferry *f);

/* Send and receive with a copy. */

/* How ferry_cell_send and ferry_cell_receive copy. Borrowed. */
typedef struct ferry_layout {
    const int *descriptor; /* NULL: all bytes as they are */
    size_t length;
    int conversion;
    size_t parcel_bytes; /* send: size of the parcel; 0: of the source */
} ferry_layout;

/* Copies `source` into a new parcel as `layout` (NULL: as it is) says and adds that to the cell:
 * create, copy, enqueue, release. Errors as theirs; then nothing is left. [as ferry_cell_enqueue]
 * cds.txt 4 (send). */
FERRY_API FERRY_MUST_USE int ferry_cell_send(ferry *f, ferry_cell cell, const void *source,
                                             size_t size_bytes, const ferry_layout *layout,
                                             uint64_t timeout_ns);

/* Takes the first parcel of the cell and copies it to `target`: dequeue, copy, release.
 * `*size_bytes` is the room at `target` and becomes the parcel's size. FERRY_ETOOLONG: without
 * layout, the parcel is larger than the room. A parcel that cannot be copied is lost. [as
 * ferry_cell_dequeue] cds.txt 4 (recv). */
FERRY_API FERRY_MUST_USE int ferry_cell_receive(ferry *f, ferry_cell cell, void *target,
                                                size_t *size_bytes, const ferry_layout *layout,
                                                uint64_t timeout_ns);

/* Account. */

/* Parcels of this rank's heap that are not free yet, for tests and for looking for leaks: whoever
 * holds them. [app thread | never blocks] */
FERRY_API size_t ferry_parcel_count(ferry *f);

#ifdef __cplusplus
}
#endif
#endif
