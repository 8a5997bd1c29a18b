/* The memory layer's state in a rank. Private to memory. */
#ifndef FY_MEMORY_STATE_H
#define FY_MEMORY_STATE_H

#include <string.h>

#include <ferry/memory.h>

#include "base/copy.h"
#include "base/pool.h"
#include "core/core.h"
#include "core/profile.h"
#include "core/tags.h"
#include "memory/regions.h"
#include "memory/slots.h"

/* Kinds of frames. */
enum {
    FY_KIND_PUT = FY_KINDS_OF_MEMORY,
    FY_KIND_PUT_ANSWER, /* a put was refused, or its data have arrived */
    FY_KIND_GET,
    FY_KIND_GOT,
    FY_KIND_TRANSFER, /* run a handler on data that are in place */
    FY_KIND_WORD,     /* a call that answers with one word, and the answer */
};

/* Data for ranges that are not reached directly travels in pieces of at most this size. */
enum { FY_PIECE_BYTES = 32 * 1024 };

/* A get that pieces are asked for. */
typedef struct fy_pending_get {
    fy_call_slot slot;
    unsigned char *target;
    const void *source; /* on the other rank: a number here, never followed */
    size_t size_bytes, asked;
    int error; /* of the pieces so far */
    uint32_t outstanding;
    uint32_t guard; /* the operation without which nothing is written any more */
    int32_t tag;    /* or FY_NO_TAG */
} fy_pending_get;

/* A call that waits for a word. */
typedef struct fy_word_wait {
    fy_call_slot slot;
    uint64_t *out; /* may be NULL */
} fy_word_wait;

typedef struct fy_memory {
    fy_regions regions;
    fy_call_slots gets;  /* of fy_pending_get (get.c) */
    fy_call_slots words; /* of fy_word_wait (word.c) */
    fy_pool follows;     /* what is run after a transfer (transfer.c) */
    fy_pool groups;      /* gets of several pieces (pieces.c) */
    int lines_logged;    /* about untracked operations that failed */
} fy_memory;

static inline fy_memory *fy_memory_of(const ferry *f)
{
    return (fy_memory *)fy_layer_state(f, FY_LAYER_MEMORY);
}

/* Whether this process may copy to or from the range of `rank` itself. */
bool fy_memory_is_direct(ferry *f, int rank, const void *address, size_t size_bytes);

/* Whether the range is memory of this rank that others may use. */
bool fy_memory_is_open(ferry *f, const void *address, size_t size_bytes);

/* Copies from heap to heap or anywhere; small ones without a call. */
static inline void fy_memory_copy(void *target, const void *source, size_t size_bytes)
{
    if (size_bytes == sizeof(uint64_t))
        memcpy(target, source, sizeof(uint64_t)); /* one load and one store */
    else if (size_bytes > 0)
        fy_copy(target, source, size_bytes);
}

/* As fy_memory_copy, counted when a profile is made. */
static inline void fy_memory_copy_counted(ferry *f, const ferry_piece *what, fy_profile_kind kind)
{
    fy_stretch stretch = {0};
    bool counted = fy_head_of(f)->profile != NULL;
    if (counted)
        stretch = fy_profile_begin(f);
    fy_memory_copy(what->target, what->source, what->size_bytes);
    if (counted)
        fy_profile_copied(f, &stretch, kind, what->size_bytes);
}

/* Whether an untracked put or get is only a copy: between `remote`, in the heap of another rank of
 * this node, and `local`. */
static inline bool fy_memory_is_copy(const ferry *f, int rank, const void *remote,
                                     const void *local, size_t size_bytes)
{
    const fy_head *head = fy_head_of(f);
    return local != NULL && rank >= 0 && rank != head->rank && head->profile == NULL &&
           head->ops->heap.owner != NULL &&
           head->ops->heap.owner(head->port, FY_APP, remote, size_bytes) == rank;
}

/* Checks the arguments of a put or get. Returns 0 or an error. */
int fy_memory_check(ferry *f, const char *call, int rank, const void *remote, const void *local,
                    size_t size_bytes);

/* A larger size is refused when this rank has not so much memory at its address: the other rank
 * would refuse it too, but this rank would read beyond its memory before the answer comes. For a
 * smaller size it costs too much to ask the system. */
enum { FY_UNCHECKED_BYTES = 1024 * 1024 };

/* Keeps the message of a range here that is not all memory, and returns FERRY_ERANGE. */
int fy_memory_refuse_here(ferry *f, const char *call, const void *local, size_t size_bytes);

/* Keeps the message of a range that `rank` does not offer, and returns FERRY_ERANGE. */
int fy_memory_refused(ferry *f, const char *call, int rank, uint64_t address, uint64_t size_bytes);

/* As fy_op_start, of a copy between memory here and on `rank`. */
int fy_memory_start(ferry *f, int rank, const fy_op_about *about, size_t size_bytes,
                    const ferry_track *track, uint32_t *op);

/* The values of its receipt. */
static inline fy_op_about fy_memory_about(const void *here, const void *there)
{
    return (fy_op_about){.local_address = (void *)(uintptr_t)here,
                         .remote_address = (uintptr_t)there};
}

/* Starts and ends an operation that is done in the call and sends no data of the caller. */
int fy_memory_done(ferry *f, int rank, const fy_op_about *about, size_t size_bytes,
                   const ferry_track *track);

/* The answer of a put's target. Words: operation, address and size. */
typedef enum fy_put_answer { FY_PUT_REFUSED, FY_PUT_ARRIVED, FY_PUT_ANSWERS } fy_put_answer;

void fy_put_answer_send(ferry *f, int source, fy_put_answer answer, const uint64_t words[3]);

/* Logs why an untracked operation failed, as in the rank's last message; the first few only. */
void fy_memory_log(ferry *f);

/* The pieces of a put as parts of their operation. */
typedef enum fy_put_part {
    FY_PUT_WHOLE, /* all; they end it at the target, and a handler may be refused them */
    FY_PUT_PART,  /* a later frame ends it */
    FY_PUT_END,   /* the last, which end it */
} fy_put_part;

typedef struct fy_put_how {
    uint32_t op;
    fy_put_part part;
    int32_t tag; /* or FY_NO_TAG */
} fy_put_how;

/* The pieces of a put, for ranges that are not reached directly. A refused piece fails the
 * operation. Borrows the source. */
int fy_put_pieces(ferry *f, int rank, const ferry_piece *what, const fy_put_how *how);

typedef struct fy_get_how {
    uint32_t op;    /* is ended */
    uint32_t guard; /* once it has ended the target is not written to any more */
    int32_t tag;    /* or FY_NO_TAG */
} fy_get_how;

/* Starts a get of a range that is not reached directly. A handler may be refused one that is its
 * own guard. On failure the operation is still the caller's. */
int fy_get_pieces(ferry *f, int rank, const ferry_piece *what, const fy_get_how *how);

/* Runs the local handler of a put whose data have arrived. */
void fy_transfer_arrived(ferry *f, int source, uint32_t op);

void fy_transfer_pool_init(fy_pool *pool);
void fy_group_pool_init(fy_pool *pool);

fy_verdict fy_transfer_deliver(ferry *f, int source, const fy_frame *frame);
fy_verdict fy_word_deliver(ferry *f, int source, const fy_frame *frame);
fy_hold_fn fy_transfer_hold, fy_put_hold;
fy_verdict fy_put_answer_deliver(ferry *f, int source, const fy_frame *frame);
fy_verdict fy_put_deliver(ferry *f, int source, const fy_frame *frame);
fy_verdict fy_get_deliver(ferry *f, int source, const fy_frame *frame);
fy_verdict fy_got_deliver(ferry *f, int source, const fy_frame *frame);

#endif
