/* State of cells and parcels, shared and private. Private to cell.
 *
 * The shared state is in two places. Boards (port.h), one per rank, have its intents and its cells.
 * Parcels are blocks of the shared heap that begin with a header. An all-zero board is valid, so a
 * cell can be used before its rank has opened.
 *
 * Shared state changes under locks that name their owner: the cell's lock, then the parcel's, never
 * two of one kind. The owner first notes in its intent which locks it may have. Then it notes, as
 * absolute values, what it is about to store (change.h). If it dies, a survivor stores these values
 * again, or stores nothing, and frees the locks (recover.c). tests/models/cell.pml.
 *
 * refs of a parcel = sum of the holds of all ranks + number of times that it is in cells. To give a
 * hold to a cell, or to take one, changes only this rank's holds, under the cell's lock. The sum
 * changes under the parcel's lock. A parcel is shared if refs differs from this rank's holds. Only
 * a rank that holds a parcel, or takes it out of a cell, can add references. So a parcel that a
 * rank finds unshared stays unshared until that rank shares it.
 *
 * Without shared memory a rank's board and parcels are private memory, used in the same way by this
 * rank alone. Other ranks use its cells by frames (remote.c). */
#ifndef FY_CELL_STATE_H
#define FY_CELL_STATE_H

#include <stdatomic.h>
#include <stddef.h>

#include <ferry/cell.h>

#include "base/list.h"
#include "base/table.h"
#include "core/board.h"
#include "core/head.h"
#include "core/layer.h"

/* The kind of frames: operations on cells of other nodes, and their answers. */
enum { FY_KIND_CELL = FY_KINDS_OF_CELL };

enum {
    FY_CELL_INLINE = 4,      /* slots inside the cell */
    FY_CELL_RANK_WORDS = 16, /* bits for 1,024 ranks */
    FY_CELL_MASK = (1 << 18) - 1,
    FY_PARCEL_BYTES = 64, /* alignment of headers and data */
};

/* Says who is interested in a cell. Bits of `flags`, guarded by the cell's lock; mostly 0. */
typedef enum fy_cell_flag {
    FY_CELL_TAKERS = 1,  /* a rank waits for a parcel */
    FY_CELL_SPACE = 2,   /* a rank waits for room */
    FY_CELL_READERS = 4, /* a rank that waits for a parcel will leave it there */
    FY_CELL_MARKS = 8,   /* it has a handler */
} fy_cell_flag;

/* A cell. An operation touches the first cache line alone, if no rank waits and the parcels fit
 * into the slots. */
typedef struct fy_cell {
    _Alignas(64) _Atomic uint32_t lock; /* 0, or 1 + the place of its owner */
    uint32_t flags;
    _Atomic uint64_t ends; /* running counts: head in the low half, tail in the high one */
    uint64_t ring;         /* address of the slots; 0: the slots in the cell */
    uint32_t mask; /* slots - 1, with a check of mask and ring in the bits above FY_CELL_MASK */
    _Atomic uint32_t limit; /* 0: the default; relaxed: it orders nothing */
    uint64_t slots[FY_CELL_INLINE];
    /* Guarded by the lock too. */
    _Alignas(64) int64_t high;
    int64_t low;
    uint64_t alarm_ends;    /* `ends` when the handler was last called */
    _Atomic uint32_t alarm; /* the handler is due: 1 + the rank that set it; set under the lock,
                               cleared by the cell's rank */
    uint32_t turn;  /* the place that was woken last: the search for the next begins after it */
    uint32_t owner; /* its rank, once marks were set */
    uint32_t marks_check; /* of high, low and owner */
    /* A rank has found no parcel, or no room: how many times others shall yield to it
     * (fy_cell_want). Not under the lock; relaxed: a missed value is seen a few operations
     * later. */
    _Atomic uint32_t wanted[2];
    _Alignas(64) uint64_t takers[FY_CELL_RANK_WORDS];
    uint64_t space[FY_CELL_RANK_WORDS];
} fy_cell;

_Static_assert(offsetof(fy_cell, slots) + sizeof(uint64_t) * FY_CELL_INLINE == 64,
               "an operation on a short cell touches one line of it");

static inline uint32_t fy_ends_head(uint64_t ends)
{
    return (uint32_t)ends;
}

static inline uint32_t fy_ends_tail(uint64_t ends)
{
    return (uint32_t)(ends >> 32);
}

static inline uint32_t fy_ends_count(uint64_t ends)
{
    return fy_ends_tail(ends) - fy_ends_head(ends);
}

static inline uint64_t fy_ends_make(uint32_t head, uint32_t tail)
{
    return head | (uint64_t)tail << 32;
}

/* The header before the data of a parcel. `name` and `check` are set while the parcel is alive. */
typedef struct fy_parcel {
    _Alignas(64) _Atomic uint64_t name;
    uint64_t check; /* of name, size and creator */
    uint64_t size_bytes;
    _Atomic uint32_t lock; /* as a cell's; guards refs, and the holds of ranks that have gone */
    _Atomic uint32_t refs;
    uint32_t index;   /* in its creator's registry */
    uint32_t creator; /* place */
    union {
        uint64_t content;   /* while it is alive: fy_content_next */
        uint64_t next_free; /* address; while the parcel is on its creator's stack */
    };
    _Atomic uint16_t holds[]; /* by place */
} fy_parcel;

/* The change that a rank is about to make to shared state. The rank writes it. Another rank reads
 * it when this one is dead. */
typedef enum fy_intent_state { FY_INTENT_IDLE, FY_INTENT_COMMITTED } fy_intent_state;
typedef enum fy_intent_plan {
    FY_PLAN_NONE,
    FY_PLAN_CLEAR, /* empties `cell` */
    FY_PLAN_WRITE, /* empties `cell`, then adds `plan_parcel` */
} fy_intent_plan;

/* The values that a change stores. */
typedef struct fy_change {
    uint64_t ends;
    uint64_t slot, slot_value; /* its address, and its new value */
    uint64_t ring;
    uint32_t mask;
    uint32_t refs;
    uint32_t place; /* whose hold */
    uint16_t hold;
    uint16_t parts; /* fy_change_part */
} fy_change;

/* The words that a change changes. */
typedef enum fy_change_part {
    FY_CHANGE_CELL = 1,  /* ends */
    FY_CHANGE_SLOT = 2,  /* a slot of it */
    FY_CHANGE_RING = 4,  /* ring and mask */
    FY_CHANGE_HOLD = 8,  /* one hold: a rank changes its own without the parcel's lock */
    FY_CHANGE_REFS = 16, /* refs too */
    FY_CHANGE_PLAN = 32, /* the plan has been carried out */
} fy_change_part;

typedef struct fy_intent {
    _Alignas(64) _Atomic uint32_t state; /* fy_intent_state */
    _Atomic uint32_t plan;               /* fy_intent_plan; it counts while the cell is locked */
    _Atomic uint64_t cell, parcel;       /* addresses of what may be locked */
    fy_change change;
    _Alignas(64) uint64_t plan_parcel; /* name */
    uint32_t plan_place, plan_keep;    /* the rank whose hold it is; whether that rank keeps it */
    _Atomic uint64_t freeing; /* name of the parcel whose last reference may just have gone */
} fy_intent;

/* How far the recovery of a dead rank has come. */
typedef enum fy_recovery { FY_RECOVERY_NONE, FY_RECOVERY_REDONE, FY_RECOVERY_DONE } fy_recovery;

typedef struct fy_board {
    fy_intent intent;
    /* Written by the survivors. */
    _Alignas(64) _Atomic uint32_t recoverer; /* as a lock */
    _Atomic uint32_t recovery;               /* fy_recovery */
    /* Written by a rank that sets an alarm, waits for a lock of this rank, or frees a parcel that
     * this rank created. */
    _Alignas(64) _Atomic uint32_t attention;
    _Atomic uint64_t doubted; /* address of a lock that has named this rank for long; change.c */
    _Alignas(64) _Atomic uint64_t returned; /* address of the parcel freed last */
    /* Written by this rank: the parcels that it has created, by index; 0 or an address. */
    _Alignas(64) _Atomic uint64_t registry; /* address of an array */
    _Atomic uint32_t registry_count;
    uint8_t format;
    _Alignas(64) fy_cell cells[FERRY_CELLS];
} fy_board;

_Static_assert(sizeof(fy_board) <= FY_BOARD_CORE_OFFSET, "a board has room for its cells");

/* The operations. */
typedef enum fy_cell_kind {
    FY_CELL_ENQ,
    FY_CELL_DEQ,
    FY_CELL_READ,
    FY_CELL_WRITE,
    FY_CELL_CLEAR,
    FY_CELL_COUNT,
    FY_CELL_KINDS
} fy_cell_kind;

/* An operation, and the arguments of its call. */
typedef struct fy_cell_request {
    fy_cell_kind kind;
    ferry_cell cell;
    fy_parcel *parcel; /* enqueue, write: held by the caller, */
    uint64_t name;     /* unless a handler that runs meanwhile ends the hold */
    ferry_hold hold;
    ferry_parcel *out; /* dequeue, read */
    size_t *count;
} fy_cell_request;

/* An operation that is not done yet. One of three kinds: of this rank on a cell of its node; of
 * this rank on a cell of another node; of a rank of another node on a cell of this rank. */
typedef struct fy_pending {
    fy_link link;  /* in `pending`; first member */
    fy_link front; /* in `fronts`, unless another operation has to be done before this one */
    struct fy_pending *before, *after; /* in its line */
    bool lined;                        /* it is in one */
    fy_cell_kind kind;
    ferry_cell cell;
    fy_cell *queue; /* NULL: on another node */
    int source;     /* the rank that asks; -1: this rank */
    uint32_t number, op;
    uint64_t known; /* content of the copy that the asking rank has; 0: none */
    /* The parcel of the operation. Enqueue, write: to be added; the operation holds it. Dequeue,
     * read for another rank: taken, and to be sent. This rank's, on another node: the copy with
     * content `known`, pinned. */
    ferry_parcel parcel;
    ferry_parcel *out;
    size_t *count;
    bool counted; /* counted as work for ferry_quiesce, until it ends */
    bool waits;   /* it waits for a parcel or room; else it ends with FERRY_EAGAIN */
    bool returns; /* a parcel goes back to its cell (fy_queue_return) */
    bool noted;   /* this rank's bit was set in the cell */
    bool awaited; /* a call waits for `done`, and frees the record */
    bool done;
    bool owes; /* it is done for another rank, but there was no memory for the answer */
    int error;
    uint64_t word; /* of the answer */
} fy_pending;

/* The operations that wait for one cell of this node: all for parcels, or all for room. They are
 * done in their order. */
typedef struct fy_cell_line {
    uint64_t key;
    fy_pending *first, *last;
} fy_cell_line;

/* A handler of a cell of this rank. */
typedef struct fy_marked {
    ferry_cell_handler handler;
    int number;
    uint64_t turn; /* `turn` of the rank when it ran last */
    bool running;
} fy_marked;

/* The copy of the parcel that was read last from a cell of another node. It can be used again if
 * the first parcel there still has the same content. */
typedef struct fy_cached {
    uint64_t key; /* the cell: (rank << 32 | number) + 1 */
    uint64_t content;
    ferry_parcel parcel;
} fy_cached;

/* Bits of a rank's data format. */
enum { FY_FORMAT_KNOWN = 1, FY_FORMAT_BIG = 2, FY_FORMAT_LONG4 = 4 };

/* The layer's part of a rank. */
typedef struct fy_cells {
    ferry *f;
    fy_port *port;
    const fy_port_ops *ops;
    fy_board *board; /* own */
    fy_intent *intent;
    bool shared;
    uint32_t place, places; /* of this rank among the ranks that share its parcels; how many */
    uint32_t self;          /* what this rank writes into locks: place + 1 */
    uint32_t header_bytes;
    uintptr_t start; /* start and size of the memory that parcels may lie in */
    size_t bytes;
    fy_board **boards; /* by rank; NULL: another node */
    /* Peers. */
    const _Atomic uint32_t *changes;
    uint32_t changes_seen;
    uint8_t *gone; /* by rank */
    bool crowded;  /* whether ranks share processors, when `changes` was seen last */
    /* Parcels created here. */
    uint64_t generation;
    uint64_t contents;          /* the last number given to a content */
    _Atomic uint64_t *registry; /* as on the board, which a program may overwrite */
    uint32_t registry_capacity;
    uint32_t *free_indices;
    uint32_t free_count;
    size_t alive;
    fy_table names; /* without shared memory: the addresses of the live parcels */
    /* Waiting. */
    uint32_t turns;   /* operations that succeeded without waiting */
    fy_cell *awaited; /* the cell that a blocking call waits for; NULL: none */
    fy_cell_kind awaited_kind;
    ferry_cell awaited_cell; /* its name, for reports */
    fy_link pending;         /* all, in the order in which they came */
    fy_link fronts;          /* those that a poll looks at */
    fy_table lines;
    bool news; /* an awaited operation has ended */
    uint32_t next_number;
    fy_table cached;
    uint8_t *formats; /* by rank; 0: not known */
    /* Handlers. */
    fy_marked *marked;
    size_t marked_count;
    uint32_t marked_capacity;
    uint64_t turn;
    int64_t floor; /* priority of the handler that runs; INT64_MIN: none runs */
} fy_cells;

static inline fy_cells *fy_cells_of(const ferry *f)
{
    /* Naming the layer links it into every program that uses one of its functions. */
    return (fy_cells *)fy_layer_state(f, fy_cell_layer.layer);
}

/* A number for the content of a parcel. A parcel gets one when it is made, and when its only holder
 * may change it in place. No two contents of a node have the same number. So another node knows by
 * it whether its copy still has the parcel's content. */
static inline uint64_t fy_content_next(fy_cells *c)
{
    return ++c->contents;
}

/* parcel.c */

/* The parcel with this name; NULL: there is none. `name` may be any word. */
fy_parcel *fy_parcel_find(const fy_cells *c, uint64_t name);
/* As fy_parcel_find, but NULL if this rank does not hold the parcel. */
fy_parcel *fy_parcel_held(const fy_cells *c, uint64_t name);
/* Whether a parcel is at `address`, which may be any word. Shared memory only. */
bool fy_parcel_is_at(const fy_cells *c, uint64_t address);
void *fy_parcel_data(const fy_cells *c, fy_parcel *p);
/* Fails with FERRY_EINVAL: this rank does not hold the parcel. */
int fy_parcel_refused(ferry *f, const char *call, uint64_t name);
/* Makes a parcel that this rank holds once. NULL: no memory. */
fy_parcel *fy_parcel_make(fy_cells *c, size_t size_bytes);
/* Frees a parcel without references: gives it back to its creator. */
void fy_parcel_free(fy_cells *c, fy_parcel *p);
/* Adds a hold of this rank, which holds the parcel already. Returns false if the count is at its
 * limit. */
bool fy_parcel_keep(fy_cells *c, fy_parcel *p);
/* Adds or ends a reference that is no rank's hold, such as that of a cell. */
void fy_parcel_pin(fy_cells *c, fy_parcel *p, bool pinned);
/* Frees all private parcels. */
void fy_parcels_fini(fy_cells *c);
/* Allocates; shared memory outlives this rank. NULL: no memory. */
void *fy_cells_alloc(const fy_cells *c, size_t size_bytes);
/* Ends `count` holds of `place`, and frees the parcel with the last one. */
void fy_parcel_drop(fy_cells *c, fy_parcel *p, uint32_t place, uint32_t count);
/* Ends the holds of a dead rank on the parcels of one creator, which is this rank or is dead. */
void fy_parcel_bury(fy_cells *c, const fy_board *creator, uint32_t dead);
/* Frees the parcels of a rank that has gone that nobody has, and with the last of them its
 * registry. One survivor at a time. */
void fy_registry_bury(const fy_cells *c, fy_board *creator);
/* Frees the parcel of this rank that a dead rank was about to give back. */
void fy_parcel_rescue(fy_cells *c, uint32_t dead);

/* recover.c */

/* Looks at the peers, if the state of one has changed, and recovers the dead. Not while a lock is
 * held. Returns whether anything has changed. */
bool fy_cells_look(fy_cells *c);
/* Recovers the changes of a dead rank and its holds on parcels of other dead ranks. */
void fy_recover(fy_cells *c, int dead);
/* The step that frees a parcel's lock. A cell may be locked. */
void fy_recover_change(fy_cells *c, int dead);
/* The cell at `address`; NULL: there is none. A program may have overwritten a board. */
fy_cell *fy_cell_at_address(const fy_cells *c, uint64_t address);

static inline void fy_cells_check_peers(fy_cells *c)
{
    /* relaxed: a call that misses a death is like one just before it */
    if (c->changes != NULL &&
        atomic_load_explicit(c->changes, memory_order_relaxed) != c->changes_seen)
        (void)fy_cells_look(c);
}

/* queue.c: operations on a cell in memory. They return 0, FERRY_EAGAIN (the cell is empty, or full)
 * or FERRY_ENOMEM. */

int fy_queue_enq(fy_cells *c, fy_cell *cell, fy_parcel *p, ferry_hold hold);
/* As fy_queue_enq with FERRY_GIVE, beyond the limit of the cell too. */
int fy_queue_return(fy_cells *c, fy_cell *cell, fy_parcel *p);
/* Takes or reads the first parcel, and gives this rank a hold. A slot that names no parcel is
 * logged and skipped. */
int fy_queue_first(fy_cells *c, fy_cell *cell, bool remove, ferry_parcel *out);
void fy_queue_write(fy_cells *c, fy_cell *cell, fy_parcel *p, ferry_hold hold);
void fy_queue_clear(fy_cells *c, fy_cell *cell);
/* Empties a locked cell. If the plan is a write, adds its parcel. Unlocks the cell. */
void fy_queue_finish_plan(fy_cells *c, fy_cell *cell);
/* Frees the rings of a cell in private memory. */
void fy_queue_rings_free(fy_cell *cell);
size_t fy_queue_count(fy_cells *c, fy_cell *cell);
/* Notes in the cell that this rank waits. Returns false, and notes nothing, if the operation could
 * be done now. */
bool fy_queue_await(fy_cells *c, fy_cell *cell, fy_cell_kind kind);
/* Removes the note: this rank no longer waits. */
void fy_queue_leave(fy_cells *c, fy_cell *cell, fy_cell_kind kind);

/* Whether an operation could be done now. False is exact: at a moment inside the call the cell was
 * unlocked, and empty or full. The counts in `ends` only grow, so equal values mean that nothing
 * has changed between the two reads. */
static inline bool fy_queue_ready(const fy_cell *cell, fy_cell_kind kind)
{
    /* acquire, all three: they keep this order, and pair with the releases of apply and unlock */
    uint64_t ends = atomic_load_explicit(&cell->ends, memory_order_acquire);
    uint32_t count = fy_ends_count(ends);
    if (kind != FY_CELL_ENQ) {
        if (count > 0)
            return true;
    } else {
        uint32_t limit = atomic_load_explicit(&cell->limit, memory_order_relaxed);
        if (count < (limit == 0 ? FERRY_CELL_LIMIT : limit))
            return true;
    }
    return atomic_load_explicit(&cell->lock, memory_order_acquire) != 0 ||
           atomic_load_explicit(&cell->ends, memory_order_acquire) != ends;
}

/* Notes that this rank has found no parcel, or no room: ranks that have had many operations yield
 * then. */
static inline void fy_cell_want(fy_cell *cell, fy_cell_kind kind)
{
    enum { WANTED = 16 };
    _Atomic uint32_t *wanted = &cell->wanted[kind == FY_CELL_ENQ];
    /* relaxed, both: see `wanted`; written only if it changes, so that the cache line stays
     * shared */
    if (atomic_load_explicit(wanted, memory_order_relaxed) != WANTED)
        atomic_store_explicit(wanted, WANTED, memory_order_relaxed);
}

/* cell.c */

/* pending.c: operations that are not done by the call that starts them. */

/* Does what can be done now. Returns how many operations have ended. */
int fy_pending_advance(fy_cells *c);
/* Whether one of them could be done now. Notes this rank in the cells for which the others wait. */
bool fy_pending_would_miss(fy_cells *c);
/* Ends all of them, without telling anybody. */
void fy_pending_fini(fy_cells *c);
/* Keeps an operation of this rank on a cell of its node. It uses the caller's hold of the parcel,
 * with FERRY_KEEP another one. FERRY_ENOMEM. */
int fy_pending_start(fy_cells *c, const fy_cell_request *request, fy_cell *cell, uint32_t op);
/* Keeps an operation on `cell`, which is `queue` or, if that is NULL, on another node. Returns the
 * record, freed with fy_pending_end. NULL: no memory. */
fy_pending *fy_pending_add(fy_cells *c, fy_cell_kind kind, ferry_cell cell, fy_cell *queue,
                           int source);
/* The operation is done, but there was no memory for the answer: it stays, and none waits for it.
 */
void fy_pending_owe(fy_cells *c, fy_pending *p);
/* Sets the ferry_op that ends with the record, 0 for none. An enqueue then counts as work. */
void fy_pending_name(fy_cells *c, fy_pending *p, uint32_t op);
/* Counts the operation as work for ferry_quiesce until it ends. */
void fy_pending_count(fy_cells *c, fy_pending *p);
/* Whether an operation that has not ended uses the parcel, so that this rank may not change it in
 * place. */
bool fy_pending_keeps(const fy_cells *c, uint64_t name);
/* Whether an operation waits for the cell before which one of this kind may not be done. */
bool fy_pending_has(const fy_cells *c, fy_cell_kind kind, ferry_cell cell);
/* Ends the operation: tells its owner. Frees the record, unless a call waits for it. */
void fy_pending_end(fy_cells *c, fy_pending *p, int error);

/* remote.c: cells of other nodes. */

/* Asks the cell's rank to do an operation, and waits for the answer. `timeout_ns` as in the public
 * calls. */
int fy_remote_call(fy_cells *c, const fy_cell_request *request, uint64_t timeout_ns);
/* Asks the cell's rank to do an operation. `track` reports its end. */
int fy_remote_start(fy_cells *c, const fy_cell_request *request, const ferry_track *track);
/* Asks the cell's rank to cancel the operation. */
void fy_remote_cancel(fy_cells *c, const fy_pending *p);
/* Does an operation of another rank on a cell of this rank, and answers. Returns false if it cannot
 * be done now. */
bool fy_remote_serve(fy_cells *c, fy_pending *p);
void fy_remote_fini(fy_cells *c);
void fy_remote_ask_format(fy_cells *c, int rank);
fy_verdict fy_cell_deliver(ferry *f, int source, const fy_frame *frame);

/* marks.c: handlers of this rank's cells. */

/* Runs due handlers of a priority above `floor`, at most `budget`. Returns how many ran. */
int fy_marks_run(fy_cells *c, int64_t floor, int budget);
/* Sets the alarm of a locked cell, if a mark is passed. Returns the rank to wake, or -1. */
int fy_marks_check(fy_cells *c, fy_cell *cell);
/* Looks at all marks: a rank that has died may have passed one without setting the alarm. */
void fy_marks_look(fy_cells *c);

#endif
