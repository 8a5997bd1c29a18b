/* Op: the record of each tracked operation, until it has ended and its owner has seen that.
 *
 * A record is named by index and generation, so an end that comes twice, or by mistake, finds no
 * record. States: pending -> ended (its callbacks wait for a poll) -> done (its ferry_op waits to
 * be tested) -> free. Only fy_ops_deliver runs callbacks. After a timeout or a cancellation, the
 * end from the target is still to come, and nobody will be told of it. Until it comes, the record
 * keeps its name (`open`). So a late end finds no later operation. When it has come, or cannot come
 * any more, the record is free. */
#ifndef FY_OP_H
#define FY_OP_H

#include "core/loss.h"
#include "core/operation.h"
#include "core/wheel.h"

enum {
    FY_OP_INDEX_BITS = 20,
    FY_OP_CHUNK_BITS = 8,
    FY_OP_CHUNKS_MAX = 1 << (FY_OP_INDEX_BITS - FY_OP_CHUNK_BITS),
};

typedef enum fy_op_state {
    FY_OP_FREE,
    FY_OP_PENDING,
    FY_OP_ENDED,
    FY_OP_DONE,
    FY_OP_SILENT /* the owner does not ask any more, but the name is in use */
} fy_op_state;

/* The size of tables with a place for each ferry_event. */
enum { FY_EVENTS = FERRY_FAILED + 1 };

typedef struct fy_op_record {
    fy_timer timer;
    ferry_track_fn *callbacks[FY_EVENTS];
    void *args[FY_EVENTS];
    ferry_op *handle; /* the owner's, while the starting call runs */
    ferry_receipt receipt;
    fy_op_gone_fn *gone; /* of the layer that carries it out; may be NULL */
    void *gone_arg;
    uint64_t timeout_ns;
    struct fy_op_record *next; /* on the list of events or the free list */
    uint32_t index;
    uint32_t generation; /* of this use; never 0 in its low bits */
    uint32_t movement;   /* of the object that has the message, as far as is known */
    int giver; /* the rank that sent the message to receipt.rank; once it has arrived, receipt.rank
                */
    uint8_t state; /* fy_op_state */
    bool open;     /* its layer or its target will still end it */
    bool on_arrival;
    bool lazy;          /* closing does not wait for it */
    bool aside;         /* a quiescence does not wait for it */
    bool has_handle;    /* a ferry_op names it */
    bool submitted_due; /* its callback is to be run */
    bool queued;        /* on the list of events */
    bool lent;          /* its target may still read its data */
    bool held;          /* its callbacks wait: the call that starts it polls */
} fy_op_record;

typedef struct fy_ops {
    fy_op_record **chunks;
    uint32_t chunk_count;
    uint32_t pending, lazy, aside; /* lazy ones among the pending; lazy ones and others aside */
    fy_op_record *free_records;
    fy_op_record *events, *events_tail; /* records with callbacks to run, in order */
    const fy_op_record *awaited;        /* by ferry_op_wait, for reports; NULL: none */

    fy_wheel *wheel; /* made with the first timeout */
    uint32_t timers; /* in the wheel */
    /* How many polls go by without a look at the clock, so that timeouts that are not due cost
     * nothing: few when polls are far apart. fy_progress counts `polls_left` down from `polls`. */
    int32_t polls_left;
    uint32_t polls;
    uint64_t looked_ns;

    /* The last operation that ended with a reason of its layer's, as ferry_op names it; 0: none. */
    uint64_t explained;
    char reason[FY_REASON_BYTES];
} fy_ops;

/* A record in use, by its name in frames; NULL when there is none. */
fy_op_record *fy_op_find(const ferry *f, uint32_t op);

/* As fy_op_find, of a record whose end has still to come, whether the owner asks for it or not. */
fy_op_record *fy_op_find_open(const ferry *f, uint32_t op);

/* The record that a ferry_op names; NULL when it is no longer open. */
fy_op_record *fy_op_find_handle(const ferry *f, ferry_op op);

/* The target may read the operation's data until its end has come from there. */
void fy_op_lent(ferry *f, uint32_t op);

/* The event of an ended record. */
ferry_event fy_op_event_of(const fy_op_record *record);

/* The owner has nothing more to learn: the record is free as soon as its name is free. */
void fy_op_forget(fy_ops *ops, fy_op_record *record);

/* Puts it on the list of events, if it is not there. */
void fy_op_queue_event(ferry *f, fy_op_record *record);

/* The owner has nothing more to learn by callback; its ferry_op may still be tested. */
void fy_op_finish(ferry *f, fy_op_record *record);

/* Ends a pending operation on this side. Nothing is written for it any more, and a later message of
 * its target finds no record. `alone`: its target will send none. */
void fy_op_give_up(ferry *f, fy_op_record *record, int error, bool alone);

/* Whether `source` may say that `op` has ended. Only the rank that has an operation may end it. Any
 * rank may have a message to an object. */
bool fy_op_may_end(const ferry *f, int source, uint32_t op);

/* As fy_op_end, if `source` may say so. */
bool fy_op_end_from(ferry *f, int source, uint32_t op, int error);

/* Ends the operations that have timed out, if timeouts are possible. Called when `polls_left` is 0.
 * Returns how many operations. */
int fy_ops_expire(ferry *f);

/* When the next timeout may be due; UINT64_MAX for never. */
uint64_t fy_ops_deadline(const ferry *f);

/* Runs the callbacks that are due. Returns how many events there were. */
int fy_ops_deliver(ferry *f);

/* Fails the operations that are pending with `rank`, which is gone. If it `died`, also fails those
 * whose message `rank` has forwarded and no other rank has got yet. */
void fy_ops_fail_peer(ferry *f, int rank, bool died);

/* Ends the pending operations as failed and runs the callbacks. */
void fy_ops_cancel(ferry *f);
void fy_ops_fini(ferry *f);

#endif
