/* Op: what is known of each tracked operation until it has ended and its owner has seen that.
 *
 * A record is named by index and generation, so an end that comes late, twice or from nowhere finds
 * nothing. States: pending -> ended (its callbacks wait for a poll) -> done (its ferry_op waits to
 * be tested) -> free; callbacks run from fy_ops_deliver alone. */
#ifndef FY_OP_H
#define FY_OP_H

#include "core/core.h"

enum {
    FY_OP_INDEX_BITS = 20,
    FY_OP_CHUNK_BITS = 8,
    FY_OP_CHUNKS_MAX = 1 << (FY_OP_INDEX_BITS - FY_OP_CHUNK_BITS),
};

typedef enum fy_op_state { FY_OP_FREE, FY_OP_PENDING, FY_OP_ENDED, FY_OP_DONE } fy_op_state;

typedef struct fy_op_record {
    ferry_track_fn *submitted, *completed, *failed;
    void *submitted_arg, *completed_arg, *failed_arg;
    ferry_op *handle; /* the owner's, while the starting call runs */
    ferry_receipt receipt;
    struct fy_op_record *next; /* on the list of events or the free list */
    uint32_t index;
    uint32_t generation; /* of this use; never 0 in its low bits */
    uint8_t state;       /* fy_op_state */
    bool has_handle;     /* a ferry_op names it */
    bool submitted_due;  /* its callback is to be run */
    bool queued;         /* on the list of events */
} fy_op_record;

typedef struct fy_ops {
    fy_op_record **chunks;
    uint32_t chunk_count;
    uint32_t pending;
    fy_op_record *free_records;
    fy_op_record *events, *events_tail; /* records with callbacks to run, in order */
} fy_ops;

/* Runs the callbacks that are due. Returns how many events there were. */
int fy_ops_deliver(ferry *f);

/* Ends as failed what is pending with dead peers. */
void fy_ops_fail_dead(ferry *f);

/* Ends what is pending as failed and runs the callbacks. */
void fy_ops_cancel(ferry *f);
void fy_ops_fini(ferry *f);

#endif
