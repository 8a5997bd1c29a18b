/* Cell: ranks pass memory to each other by its pointer, through queues that every rank may use.
 *
 * A parcel is reference-counted memory in the shared heap: the paper's region. A cell is a queue of
 * parcels, named by rank and number. A rank holds a parcel that it created, took or read, and may
 * read it. Before a rank writes to a parcel, it calls ferry_parcel_modify. A parcel is freed when
 * no rank holds it and no cell has it. If a rank dies, the others release its holds. Cells are
 * linearizable FIFO queues for any number of producers and consumers. docs/cell.md explains more.
 * cds.txt 3. */
#ifndef FERRY_CELL_H
#define FERRY_CELL_H

#include <ferry/core.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Cells of a rank: numbers from 0 to FERRY_CELLS - 1. */
#define FERRY_CELLS 1024

/* How many parcels a cell takes, if ferry_cell_limit_set does not set a lower limit. */
#define FERRY_CELL_LIMIT 65536

/* A cell. All zero is cell 0 of rank 0. */
typedef struct ferry_cell {
    int32_t rank;
    int32_t number;
} ferry_cell;

/* The name of a parcel, the same on every rank of the node. All zero names none. */
typedef struct ferry_parcel {
    uint64_t word;
} ferry_parcel;

/* Whether a call takes the caller's hold. */
typedef enum ferry_hold {
    FERRY_GIVE, /* the hold goes to the cell: the caller may no longer use the parcel */
    FERRY_KEEP, /* the caller keeps its hold, and may read */
} ferry_hold;

/* Parcels. */

/* Makes a parcel of `size_bytes` (0 is allowed) in this rank's shared heap, not cleared, 64-byte
 * aligned. The caller holds it once. Gives `*out`, which ends by ferry_parcel_release or with
 * FERRY_GIVE. If `data` is not NULL, sets `*data` to the parcel's memory. FERRY_ENOMEM: the heap's
 * limit is reached. [app thread, handlers | never blocks] cds.txt 3. */
FERRY_API FERRY_MUST_USE int ferry_parcel_create(ferry *f, size_t size_bytes, ferry_parcel *out,
                                                 void **data);

/* The memory of a parcel that this rank holds, to read. If `size_bytes` is not NULL, sets it to the
 * parcel's size. Lends until the hold ends. NULL: no such parcel, or this rank does not hold it.
 * [app thread, handlers | never blocks] */
FERRY_API const void *ferry_parcel_data(ferry *f, ferry_parcel parcel, size_t *size_bytes);

/* Lets this rank write to `*parcel`, which it holds. If another rank holds the parcel or any cell
 * has it, replaces `*parcel` by a copy and ends one hold of the old parcel. So other ranks never
 * see the writes. Several holds of this rank alone make no copy. Sets `*data` to the memory.
 * FERRY_EINVAL: this rank does not hold it. FERRY_ENOMEM: no memory for the copy. After an error
 * the parcel is as before. [app thread, handlers | never blocks] cds.txt 3 (mod). */
FERRY_API FERRY_MUST_USE int ferry_parcel_modify(ferry *f, ferry_parcel *parcel, void **data);

/* Ends one hold. The end of the last hold on any rank frees the parcel. All zero is ignored.
 * FERRY_EINVAL: this rank does not hold it. [app thread, handlers | never blocks] */
FERRY_API int ferry_parcel_release(ferry *f, ferry_parcel parcel);

/* Cells. */
/* `timeout_ns` says how long to wait for a parcel, or for room: 0 not at all, FERRY_FOREVER without
 * limit. A call that waits polls. Errors of all calls: FERRY_EINVAL: no such cell or parcel, or the
 * parcel is not held here; a handler may have ended the hold meanwhile. FERRY_ETIMEDOUT: the time
 * has passed, and nothing happened. FERRY_EAGAIN: the same with a `timeout_ns` of 0. FERRY_EPEER:
 * the cell's rank has died or left; ranks of its node may still take its parcels. FERRY_ESTATE: a
 * handler would wait; there use a `timeout_ns` of 0 or, for a cell on another node, the tracked
 * form. */

/* Adds `parcel` at the end, when the cell has fewer than its limit. If it fails, the caller still
 * holds the parcel, with FERRY_GIVE too. FERRY_ENOMEM: no memory to note it. [app thread, handlers
 * with 0 | polls and blocks when it waits] cds.txt 3 (enq). */
FERRY_API FERRY_MUST_USE int ferry_cell_enqueue(ferry *f, ferry_cell cell, ferry_parcel parcel,
                                                ferry_hold hold, uint64_t timeout_ns);

/* Removes the first parcel and gives it to the caller, who holds it, in `*out`. [app thread,
 * handlers with 0 | polls and blocks when it waits] cds.txt 3 (deq). */
FERRY_API FERRY_MUST_USE int ferry_cell_dequeue(ferry *f, ferry_cell cell, ferry_parcel *out,
                                                uint64_t timeout_ns);

/* As ferry_cell_dequeue, but the parcel also stays in the cell. [app thread, handlers with 0 |
 * polls and blocks when it waits] cds.txt 3 (read). */
FERRY_API FERRY_MUST_USE int ferry_cell_read(ferry *f, ferry_cell cell, ferry_parcel *out,
                                             uint64_t timeout_ns);

/* Removes all parcels and adds `parcel`, in one atomic step. Never waits for room. If it fails, the
 * caller still holds the parcel. [app thread, handlers on this node | polls and blocks for a cell
 * on another node] cds.txt 3 (write). */
FERRY_API FERRY_MUST_USE int ferry_cell_write(ferry *f, ferry_cell cell, ferry_parcel parcel,
                                              ferry_hold hold);

/* Removes all parcels, in one atomic step. [as ferry_cell_write] cds.txt 3 (zap). */
FERRY_API int ferry_cell_clear(ferry *f, ferry_cell cell);

/* Sets `*count` to the number of parcels in the cell. [as ferry_cell_write] */
FERRY_API FERRY_MUST_USE int ferry_cell_count(ferry *f, ferry_cell cell, size_t *count);

/* Sets the limit of a cell of this rank, from 1 to FERRY_CELL_LIMIT parcels. Parcels beyond a lower
 * limit stay in the cell. FERRY_EINVAL: no such cell, or another limit. [app thread, handlers |
 * never blocks] */
FERRY_API FERRY_MUST_USE int ferry_cell_limit_set(ferry *f, int number, size_t limit);

/* The tracked forms. */
/* They never wait. `track`, which is not NULL, reports the end: 0, FERRY_EPEER, FERRY_ENOMEM, or
 * that of ferry_op_cancel or a timeout. On one cell, the enqueues of one rank are done in the order
 * started, and so are its dequeues and reads. FERRY_EINVAL, FERRY_EPEER, FERRY_ENOMEM from the call
 * itself: nothing was started. */

/* As ferry_cell_enqueue. It adds the data that the parcel has now: while the operation waits,
 * ferry_parcel_modify makes a copy. With FERRY_GIVE it takes the caller's hold now, and releases it
 * if the operation fails. With FERRY_KEEP, if the program ends its hold before the operation is
 * done, the operation ends with FERRY_EINVAL. ferry_quiesce waits for the operation. A rank that
 * closes or leaves does not, and cancels it in the end. [app thread, handlers | never blocks | does
 * not poll] */
FERRY_API FERRY_MUST_USE int ferry_cell_enqueue_start(ferry *f, ferry_cell cell,
                                                      ferry_parcel parcel, ferry_hold hold,
                                                      const ferry_track *track);

/* As ferry_cell_dequeue and ferry_cell_read. They set `*out` to none and keep `out` until the end.
 * When the caller gets the hold, before completed is reported, they set `*out` to the parcel. So
 * `*out` always says whether the caller holds a parcel, however the operation ends, by
 * ferry_op_cancel too. If it is none after ferry_op_cancel, a timeout or a failure, it is not
 * written any more (docs/cell.md). [app thread, handlers | never blocks | does not poll] */
FERRY_API FERRY_MUST_USE int ferry_cell_dequeue_start(ferry *f, ferry_cell cell, ferry_parcel *out,
                                                      const ferry_track *track);
FERRY_API FERRY_MUST_USE int ferry_cell_read_start(ferry *f, ferry_cell cell, ferry_parcel *out,
                                                   const ferry_track *track);

/* Handlers. */

/* A handler of a cell. Runs on the cell's rank, in a call that polls, when the cell has more
 * parcels than the mark `high` or fewer than the mark `low`. `count` is how many it had just
 * before. cds.txt 5. */
typedef void ferry_cell_fn(ferry *f, ferry_cell cell, size_t count, void *arg);

typedef struct ferry_cell_handler {
    size_t size; /* sizeof(ferry_cell_handler) */
    ferry_cell_fn *fn;
    void *arg;
    int64_t high; /* runs while there are more parcels than this; negative: never */
    int64_t low;  /* runs while there are fewer than this; 0: never */
    int priority; /* of the handlers that are due, the one of highest priority runs first; equal
                     ones take turns */
} ferry_cell_handler;

#define FERRY_CELL_HANDLER_DEFAULTS                                                                \
    {                                                                                              \
        sizeof(ferry_cell_handler), NULL, NULL, -1, 0, 0                                           \
    }

/* Sets the handler of a cell of this rank; NULL removes it. Copies `handler`. If a mark is passed
 * already, the handler runs soon. While a mark is passed, it runs again whenever the number of
 * parcels has changed since its last run. ferry_quiesce waits for a handler that is due, but not
 * for parcels in cells. FERRY_EINVAL: no such cell, a wrong size, or `handler->fn` is NULL.
 * FERRY_ENOMEM. [app thread, handlers | never blocks] cds.txt 5. */
FERRY_API FERRY_MUST_USE int ferry_cell_handler_set(ferry *f, int number,
                                                    const ferry_cell_handler *handler);

/* Call it inside a long handler of a cell, to let urgent handlers go first: it runs the handlers of
 * cells that are due and have a higher priority. Outside such a handler it runs none. Returns how
 * many ran. In the paper handlers preempt each other. Ferry's do not: the code of a rank runs in
 * one thread, so handlers need no locks between them. [app thread | polls cells' handlers only]
 * cds.txt 5. */
FERRY_API int ferry_cell_yield(ferry *f);

/* Send and receive with a copy. */

/* How ferry_cell_send and ferry_cell_receive copy. Borrowed. */
typedef struct ferry_layout {
    const int *descriptor; /* of ferry_fields_copy (convert.h); NULL: copies all bytes unchanged */
    size_t length;         /* of `descriptor`, in integers */
    int conversion;        /* the sum of the ferry_conversion constants that apply */
    size_t parcel_bytes;   /* ferry_cell_send: size of the parcel; 0: size of the source. Without a
                              descriptor it is at least that, and the other bytes are not set. */
} ferry_layout;

/* Copies `source` into a new parcel by `layout` (NULL: unchanged) and adds the parcel to the cell:
 * create, copy, enqueue, release. Errors as ferry_parcel_create and ferry_cell_enqueue. After an
 * error no parcel is left. [as ferry_cell_enqueue] cds.txt 4 (send). */
FERRY_API FERRY_MUST_USE int ferry_cell_send(ferry *f, ferry_cell cell, const void *source,
                                             size_t size_bytes, const ferry_layout *layout,
                                             uint64_t timeout_ns);

/* Takes the first parcel of the cell and copies it to `target`: dequeue, copy, release.
 * `*size_bytes` is the room at `target`; the call sets it to the parcel's size. FERRY_ETOOLONG:
 * `layout` is NULL and the parcel is larger than the room. If a parcel cannot be copied, it is
 * lost. [as ferry_cell_dequeue] cds.txt 4 (recv). */
FERRY_API FERRY_MUST_USE int ferry_cell_receive(ferry *f, ferry_cell cell, void *target,
                                                size_t *size_bytes, const ferry_layout *layout,
                                                uint64_t timeout_ns);

/* Account. */

/* How many parcels of this rank's heap are not freed, whichever rank holds them: for tests, and to
 * find leaks. For each cell of another node that it has read, a rank keeps a copy of the parcel
 * read last; these copies count too. [app thread, handlers | never blocks] */
FERRY_API size_t ferry_parcel_count(ferry *f);

#ifdef __cplusplus
}
#endif
#endif
