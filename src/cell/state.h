/* State of cells and parcels, shared and private. Private to cell.
 *
 * The shared state lives in two places: boards (port.h), one per rank, with its intents and its
 * cells; and parcels, blocks of the shared heap that begin with a header. Zero is a valid start
 * for a board, so that a cell can be used before its rank has opened.
 *
 * Changes of shared state are made under locks that name their owner: the cell's, then the
 * parcel's, never two of one kind. The owner first notes in its intent which locks it may have, and
 * then, as absolute values, what it is about to store (change.h). When it dies a survivor
 * stores them again, or nothing, and frees the locks (recover.c). tests/models/cell.pml.
 *
 * refs of a parcel = sum of holds of all ranks + number of times it stands in cells. Giving and
 * taking pass references between the two: they change own holds under the cell's lock alone.
 * Changes of the sum are made under the parcel's lock. Shared means: refs differs from the own
 * holds. Only a rank that holds a parcel, or takes it out of a cell, can add references. So a
 * parcel that a rank finds unshared stays so until that rank shares it itself.
 *
 * Without shared memory a rank's board and parcels are private memory, used in the same way by one
 * user; others work on its cells by frames (remote.c). */
#ifndef FY_CELL_STATE_H
#define FY_CELL_STATE_H

#include <stdatomic.h>
#include <stddef.h>

#include <ferry/cell.h>

#include "base/list.h"
#include "base/table.h"
#include "core/board.h"
#include "core/core.h"

/* The kind of frames: operations on cells of other nodes, and their answers. */
enum { FY_KIND_CELL = FY_KINDS_OF_CELL };

enum {
    FY_CELL_INLINE = 4,      /* slots inside the cell */
    FY_CELL_RANK_WORDS = 16, /* bits for 1,024 ranks */
    FY_CELL_MASK = (1 << 18) - 1,
    FY_PARCEL_BYTES = 64, /* alignment of headers and data */
};

/* The ranks that wait for a cell. Bits of `flags`, guarded by the cell's lock; 0 for most. */
typedef enum fy_cell_flag {
    FY_CELL_TAKERS = 1,  /* a rank waits for a parcel */
    FY_CELL_SPACE = 2,   /* a rank waits for room */
    FY_CELL_READERS = 4, /* one that waits for a parcel will leave it there */
    FY_CELL_MARKS = 8,   /* it has a handler */
} fy_cell_flag;

/* The first line is all that an operation touches while nobody waits and the cell is short. */
typedef struct fy_cell {
    _Alignas(64) _Atomic uint32_t lock; /* 0, or 1 + the place of its owner */
    uint32_t flags;
    _Atomic uint64_t ends;  /* running counts: head in the low half, tail in the high one */
    uint64_t ring;          /* address of the slots; 0: those in the cell */
    uint32_t mask;          /* slots - 1, and a check of it and ring above FY_CELL_MASK */
    _Atomic uint32_t limit; /* 0: the default; relaxed: it only bounds */
    uint64_t slots[FY_CELL_INLINE];
    /* Guarded by the lock too. */
    _Alignas(64) int64_t high;
    int64_t low;
    uint64_t alarm_ends;    /* `ends` when the handler was last called */
    _Atomic uint32_t alarm; /* the handler is due: 1 + who says so; set under the lock, cleared by
                               its rank */
    uint32_t turn;          /* after whom to look for the next waiting rank */
    uint32_t owner;         /* its rank, once marks were set */
    uint32_t marks_check;   /* of high, low and owner */
    /* Somebody has found no parcel, no room: how many who have had much shall give way. Not under
     * the lock; relaxed: what is missed is seen a few operations later. */
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

/* Before the data of a parcel. `name` and `check` are set while it is alive. */
typedef struct fy_parcel {
    _Alignas(64) _Atomic uint64_t name;
    uint64_t check; /* of name, size and creator */
    uint64_t size_bytes;
    _Atomic uint32_t lock; /* as a cell's; guards refs, and holds of ranks that have gone */
    _Atomic uint32_t refs;
    uint32_t index;   /* in its creator's registry */
    uint32_t creator; /* place */
    union {
        uint64_t content;   /* while it is alive: fy_content_next */
        uint64_t next_free; /* address; while it is on the way back to its creator */
    };
    _Atomic uint16_t holds[]; /* by place */
} fy_parcel;

/* The change that a rank is about to make to shared state. Written by the rank, read when it is
 * dead. */
typedef enum fy_intent_state { FY_INTENT_IDLE, FY_INTENT_COMMITTED } fy_intent_state;
typedef enum fy_intent_plan {
    FY_PLAN_NONE,
    FY_PLAN_CLEAR, /* goes on to empty `cell` */
    FY_PLAN_WRITE, /* goes on to empty `cell`, then adds `plan_parcel` */
} fy_intent_plan;

/* The values that a change stores. */
typedef struct fy_change {
    uint64_t ends;
    uint64_t slot, slot_value; /* address, and what it gets */
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
    FY_CHANGE_HOLD = 8,  /* one hold: own ones change without the parcel's lock */
    FY_CHANGE_REFS = 16, /* refs too */
    FY_CHANGE_PLAN = 32, /* the plan has been carried out */
} fy_change_part;

typedef struct fy_intent {
    _Alignas(64) _Atomic uint32_t state; /* fy_intent_state */
    _Atomic uint32_t plan;               /* fy_intent_plan; counts while the cell is locked */
    _Atomic uint64_t cell, parcel;       /* addresses of what may be locked */
    fy_change change;
    _Alignas(64) uint64_t plan_parcel; /* name */
    uint32_t plan_place, plan_keep;    /* on whose behalf */
    _Atomic uint64_t freeing; /* name of the parcel whose last reference may just have gone */
} fy_intent;

/* How far the recovery of a dead rank has come. */
typedef enum fy_recovery { FY_RECOVERY_NONE, FY_RECOVERY_REDONE, FY_RECOVERY_DONE } fy_recovery;

typedef struct fy_board {
    fy_intent intent;
    /* Written by the survivors. */
    _Alignas(64) _Atomic uint32_t recoverer; /* as a lock */
    _Atomic uint32_t recovery;               /* fy_recovery */
    /* Written by whoever sets an alarm, waits for a lock of this rank's, or frees a parcel that
     * this rank created. */
    _Alignas(64) _Atomic uint32_t attention;
    _Atomic uint64_t doubted; /* address of a lock that names this rank for long; change.c */
    _Alignas(64) _Atomic uint64_t returned; /* address of the parcel freed last */
    /* The rank's own: the parcels it has created, by index; 0 or an address. */
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
    FY_SORTS
} fy_cell_kind;

/* An operation as its caller wants it. */
typedef struct fy_cell_request {
    fy_cell_kind kind;
    ferry_cell cell;
    fy_parcel *parcel; /* enq, write: held by the caller, */
    uint64_t name;     /* until a handler that runs meanwhile uses the hold up */
    ferry_hold hold;
    ferry_parcel *out; /* deq, read */
    size_t *count;
} fy_cell_request;

/* An operation that is not done yet. Either it is of this rank, on a cell of its node that it waits
 * for, or on one of another node. Or it is of a rank of another node, on a cell here. */
typedef struct fy_pending {
    fy_link link; /* first member */
    fy_cell_kind kind;
    ferry_cell cell;
    fy_cell *queue; /* NULL: on another node */
    int source;     /* who wants it; -1: this rank */
    uint32_t number, op;
    uint64_t known; /* content of the copy that the asking rank has; 0: it has none */
    /* enq, write: to add, held for it; deq, read of another rank: what was taken, to be sent; of
     * this rank on another node: the copy that `known` is about, pinned. */
    ferry_parcel parcel;
    ferry_parcel *out;
    size_t *count;
    bool counted; /* as work, until it ends */
    bool waits;   /* for a parcel or room; else it ends with FERRY_EAGAIN */
    bool noted;   /* this rank is noted in the cell */
    bool awaited; /* a call waits for `done` and frees it */
    bool done;
    int error;
} fy_pending;

/* A handler of a cell of this rank. */
typedef struct fy_marked {
    ferry_cell_handler handler;
    int number;
    uint64_t turn; /* when it ran last */
    bool running;
} fy_marked;

/* The copy of a parcel that was read from a cell of another node. If the parcel that is first there
 * now has the same content, the copy is as good. */
typedef struct fy_cached {
    uint64_t key; /* cell, 1 + rank << 32 | number */
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
    uint32_t place, places; /* of this rank among those that share its parcels */
    uint32_t self;          /* what it writes into locks: place + 1 */
    uint32_t header_bytes;
    uintptr_t start; /* of memory that parcels may lie in */
    size_t bytes;
    fy_board **boards; /* by rank; NULL: another node */
    /* Peers. */
    const _Atomic uint32_t *changes;
    uint32_t changes_seen;
    uint8_t *gone; /* by rank */
    bool crowded;  /* ranks share processors, as of then */
    /* Parcels created here. */
    uint64_t generation;
    uint64_t contents;          /* numbers given to contents */
    _Atomic uint64_t *registry; /* as the board says, which others may overwrite */
    uint32_t registry_capacity;
    uint32_t *free_indices;
    uint32_t free_count, free_capacity;
    size_t alive;
    fy_table names; /* without shared memory: the parcels there are */
    /* Waiting. */
    uint32_t turns;   /* operations that succeeded at once */
    fy_cell *awaited; /* by the call that blocks; NULL for none */
    fy_cell_kind awaited_kind;
    fy_link pending;
    bool news; /* an awaited operation has ended */
    uint32_t next_number;
    fy_table cached;
    uint8_t *formats; /* by rank; 0: not known */
    /* Handlers. */
    fy_marked *marked;
    size_t marked_count, marked_capacity;
    uint64_t turn;
    int64_t floor; /* priority of the handler that runs */
} fy_cells;

static inline fy_cells *fy_cells_of(const ferry *f)
{
    /* Names the layer, so that a program linked to any of its functions has it. */
    return (fy_cells *)fy_layer_state(f, fy_cell_layer.layer);
}

/* A number for what a parcel contains from now on. A parcel gets one when it is made and when its
 * only holder may change it in place; no two contents of a node have the same. So other nodes know
 * by it whether a copy that they have is still the parcel. */
static inline uint64_t fy_content_next(fy_cells *c)
{
    return ++c->contents;
}

/* parcel.c */

/* The parcel that `name` names; NULL when there is none: `name` may be anything. */
fy_parcel *fy_parcel_find(const fy_cells *c, uint64_t name);
/* Likewise, when this rank holds it. */
fy_parcel *fy_parcel_held(const fy_cells *c, uint64_t name);
/* Whether there is one at `address`, which may be anything. Shared memory only. */
bool fy_parcel_is_at(const fy_cells *c, uint64_t address);
void *fy_parcel_data(const fy_cells *c, fy_parcel *p);
uint64_t fy_parcel_check(const fy_parcel *p, uint64_t name);
/* FERRY_EINVAL with a message. */
int fy_parcel_refused(ferry *f, const char *call, uint64_t name);
/* Makes a parcel held once. */
fy_parcel *fy_parcel_make(fy_cells *c, size_t size_bytes);
/* The last reference has gone: gives the parcel back to its creator. */
void fy_parcel_free(fy_cells *c, fy_parcel *p);
/* Adds a hold of this rank, which holds it; false: it has as many as can be counted. */
bool fy_parcel_keep(fy_cells *c, fy_parcel *p);
/* Adds or ends a reference that no rank holds, as a cell's. */
void fy_parcel_pin(fy_cells *c, fy_parcel *p, bool pinned);
/* Frees all private parcels. */
void fy_parcels_fini(fy_cells *c);
/* Frees what others have given back to this rank. */
void fy_parcel_collect(fy_cells *c);
/* Memory that outlives this rank where it is shared; NULL: none. */
void *fy_cells_alloc(const fy_cells *c, size_t size_bytes);
/* Ends `count` holds of `place`, and frees the parcel with the last one. */
void fy_parcel_drop(fy_cells *c, fy_parcel *p, uint32_t place, uint32_t count);
/* Releases what a dead rank held of the parcels of one creator, who is the caller or dead. */
void fy_parcel_bury(fy_cells *c, const fy_board *creator, uint32_t dead);
/* Frees what nobody has of the parcels of a rank that has gone, and with the last of them its
 * registry. One survivor at a time. */
void fy_registry_bury(const fy_cells *c, fy_board *creator);
/* Frees the parcel of this rank that a dead one was about to give back. */
void fy_parcel_rescue(fy_cells *c, uint32_t dead);

/* recover.c */

/* Looks at the peers when their states have changed. Not while a lock is held. Returns whether
 * anything has changed. */
bool fy_cells_look(fy_cells *c);
/* Recovers a dead rank, as far as its intent goes. */
void fy_recover(fy_cells *c, int dead);
/* The part that frees a parcel's lock; may be called with a cell locked. */
void fy_recover_change(fy_cells *c, int dead);
/* The cell at `address`, NULL when that is none: boards may have been scribbled on. */
fy_cell *fy_cell_at_address(const fy_cells *c, uint64_t address);

static inline void fy_cells_check_peers(fy_cells *c)
{
    /* relaxed: a call that just misses a death is like one just before it */
    if (c->changes != NULL &&
        atomic_load_explicit(c->changes, memory_order_relaxed) != c->changes_seen)
        (void)fy_cells_look(c);
}

/* queue.c: operations on a cell in memory. 0, FERRY_EAGAIN (empty, or full), FERRY_ENOMEM,
 * FERRY_EINVAL (the parcel). */

int fy_queue_enq(fy_cells *c, fy_cell *cell, fy_parcel *p, ferry_hold hold);
/* Takes or reads the first; the place of this rank gets a hold. A slot that names no parcel is
 * skipped and logged. */
int fy_queue_first(fy_cells *c, fy_cell *cell, bool remove, ferry_parcel *out);
void fy_queue_write(fy_cells *c, fy_cell *cell, fy_parcel *p, ferry_hold hold);
void fy_queue_clear(fy_cells *c, fy_cell *cell);
/* Empties a locked cell, then adds the plan's parcel if it is a write, and unlocks. */
void fy_queue_finish_plan(fy_cells *c, fy_cell *cell);
/* Frees the rings of a cell in private memory. */
void fy_queue_rings_free(fy_cell *cell);
size_t fy_queue_count(fy_cells *c, fy_cell *cell);
/* Notes that this rank waits, unless it need not: false. */
bool fy_queue_await(fy_cells *c, fy_cell *cell, fy_cell_kind kind);
/* It waits no longer. */
void fy_queue_leave(fy_cells *c, fy_cell *cell, fy_cell_kind kind);

/* Whether an operation has a chance now. False is exact: at a moment inside the call nobody had the
 * lock, and the cell was empty or full; the counts only grow, so equal ones are the same ones. */
static inline bool fy_queue_ready(const fy_cell *cell, fy_cell_kind kind)
{
    /* acquire, all three: in this order; they pair with the releases of apply and unlock */
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

/* Has those give way who have had much of what `kind` asks for. */
static inline void fy_cell_want(fy_cell *cell, fy_cell_kind kind)
{
    enum { WANTED = 16 };
    _Atomic uint32_t *wanted = &cell->wanted[kind == FY_CELL_ENQ];
    /* relaxed, both: see there; written only when it changes, so that the line stays where it is */
    if (atomic_load_explicit(wanted, memory_order_relaxed) != WANTED)
        atomic_store_explicit(wanted, WANTED, memory_order_relaxed);
}

/* cell.c */

/* The cell in memory; NULL, with `*error` 0, when it is on another node. */
fy_cell *fy_cell_at(fy_cells *c, const char *call, ferry_cell cell, int *error);

/* pending.c: operations that are not done by the call that starts them. */

/* Does what can be done. Returns how much that was. */
int fy_pending_advance(fy_cells *c);
/* Whether one could be done now; notes this rank in the cells of the others. */
bool fy_pending_would_miss(fy_cells *c);
/* Ends all as cancelled, without telling anybody. */
void fy_pending_fini(fy_cells *c);
/* Keeps an operation of this rank on a cell of its node; takes the caller's hold, or one more.
 * FERRY_ENOMEM. */
int fy_pending_start(fy_cells *c, const fy_cell_request *request, fy_cell *cell, uint32_t op);
/* Keeps an operation; gives the record, freed with fy_pending_end. NULL: no memory. */
fy_pending *fy_pending_add(fy_cells *c, fy_cell_kind kind, ferry_cell cell, int source);
/* Sets the operation that ends with it, 0 for none. A parcel on its way to a cell is work. */
void fy_pending_name(fy_cells *c, fy_pending *p, uint32_t op);
/* Makes it work for ferry_quiesce until it ends. */
void fy_pending_count(fy_cells *c, fy_pending *p);
/* Whether an operation that has not ended holds the parcel for itself, so that this rank may not
 * change it in place. */
bool fy_pending_keeps(const fy_cells *c, uint64_t name);
/* Whether operations of this kind wait for the cell, so that a new one has to queue behind. */
bool fy_pending_has(const fy_cells *c, fy_cell_kind kind, ferry_cell cell);
/* Ends it: tells its owner, and frees it unless a call waits for it. */
void fy_pending_end(fy_cells *c, fy_pending *p, int error);

/* remote.c: cells of other nodes. */

/* Asks the cell's rank to do an operation and waits for it; `timeout_ns` as the public calls'. */
int fy_remote_call(fy_cells *c, const fy_cell_request *request, uint64_t timeout_ns);
/* Asks; the operation ends with `track`. */
int fy_remote_start(fy_cells *c, const fy_cell_request *request, const ferry_track *track);
/* Asks the cell's rank to forget it. */
void fy_remote_cancel(fy_cells *c, const fy_pending *p);
/* Here for another rank: does it if it can be done now and answers. False: not now. */
bool fy_remote_serve(fy_cells *c, fy_pending *p);
void fy_remote_fini(fy_cells *c);
void fy_remote_ask_format(fy_cells *c, int rank);
fy_verdict fy_cell_deliver(ferry *f, int source, const fy_frame *frame);

/* marks.c: handlers of this rank's cells. */

/* Runs those that are due, at most `budget`, of a priority above `floor`. Returns how many. */
int fy_marks_run(fy_cells *c, int64_t floor, int budget);
/* Whether one is due. */
bool fy_marks_due(const fy_cells *c);
/* Under the cell's lock: takes note of a passed mark. Whom to rouse, or -1. */
int fy_marks_check(fy_cells *c, fy_cell *cell);
/* A rank has died: looks at all marks, since it may have passed one without saying so. */
void fy_marks_look(fy_cells *c);

#endif
