/* The memory layer's state in a rank. Private to memory. */
#ifndef FY_MEMORY_STATE_H
#define FY_MEMORY_STATE_H

#include <string.h>

#include <ferry/memory.h>

#include "base/copy.h"
#include "base/pool.h"
#include "core/head.h"
#include "core/operation.h"
#include "core/profile.h"
#include "core/tags.h"
#include "memory/regions.h"
#include "memory/slots.h"

/* Kinds of frames. */
enum {
    FY_KIND_PUT = FY_KINDS_OF_MEMORY,
    FY_KIND_PUT_ANSWER, /* a put was refused, or its data have arrived */
    FY_KIND_GET,        /* a request for one piece */
    FY_KIND_GOT,        /* that piece, or why it is refused */
    FY_KIND_TRANSFER,   /* run a handler on data that are in place */
    FY_KIND_WORD,       /* a call that answers with one word, and the answer */
};

/* Data of a range that the calling rank cannot access itself travel in pieces of at most this
 * size. */
enum { FY_PIECE_BYTES = 32 * 1024 };

/* A put's frame: its `handler` field, and how many words it has. FY_PUT_LAST: the piece that ends
 * the operation. FY_PUT_COUNTED: the last piece of an untracked put. FY_PUT_PIECE: another. Words:
 * address of the piece, address and size of the whole. FY_PUT_SMALL: small pieces, none of which
 * ends it; the words are 0. */
enum { FY_PUT_PIECE, FY_PUT_LAST, FY_PUT_COUNTED, FY_PUT_SMALL, FY_PUT_WORDS = 3 };

/* A get's frame: FY_GET_PIECE, or FY_GET_SMALL for small pieces, of which the data are the heads.
 * `aux` is the get's generation. Words: its index (low half) and the size of the piece, or of all
 * small ones (high half); of one piece, its offset, address and size of the whole range. The answer
 * repeats `aux` and the first two words, then has an error or 0. */
enum { FY_GET_PIECE, FY_GET_SMALL, FY_GET_WORDS = 4, FY_GOT_WORDS = 3 };

/* The head of a small piece in a frame of many: where the piece is on the rank that gets the frame.
 * In a frame that puts, its bytes follow. */
typedef struct fy_piece_head {
    uint64_t address, size_bytes;
} fy_piece_head;

/* How much of small pieces one frame carries, heads and data. Less, if the port would need memory
 * of the shared heap for that. */
enum { FY_BUNDLE_BYTES = 16 * 1024 };

/* The small pieces of one frame that gets. */
typedef struct fy_get_list {
    ferry_piece *pieces; /* from fy_malloc; NULL: none */
    uint32_t count;
    size_t size_bytes; /* together */
} fy_get_list;

/* A get that requests its data piece by piece, or those of many small pieces at once. */
typedef struct fy_pending_get {
    fy_call_slot slot;
    fy_get_list list; /* if it is of small pieces */
    unsigned char *target;
    const void *source; /* an address of the other rank, never dereferenced here */
    size_t size_bytes;
    size_t asked;         /* bytes that were requested so far */
    int error;            /* the first of a piece */
    uint32_t outstanding; /* pieces that were requested and have not come */
    uint32_t guard;       /* when this operation has ended, nothing more is written to `target` */
    int32_t tag;          /* or FY_NO_TAG */
} fy_pending_get;

/* A call that waits for a word. */
typedef struct fy_word_wait {
    fy_call_slot slot;
    uint64_t *out; /* may be NULL */
} fy_word_wait;

typedef struct fy_memory {
    fy_regions regions;
    fy_call_slots gets;     /* of fy_pending_get (get.c) */
    fy_call_slots words;    /* of fy_word_wait (word.c) */
    fy_pool follows;        /* fy_follow: transfers that run a local handler, or get (transfer.c) */
    fy_pool gets_of_pieces; /* fy_gets (pieces.c) */
    size_t bundle_bytes;    /* of small pieces that one frame carries */
    int lines_logged;       /* log lines so far about untracked operations that failed */
} fy_memory;

static inline fy_memory *fy_memory_of(const ferry *f)
{
    return (fy_memory *)fy_layer_state(f, FY_LAYER_MEMORY);
}

/* Whether this process can copy to or from the range itself: it is in the heap of `rank`, which is
 * mapped here. */
bool fy_memory_is_direct(ferry *f, int rank, const void *address, size_t size_bytes);

/* Whether the range is memory of this rank that others may use. */
bool fy_memory_is_open(ferry *f, const void *address, size_t size_bytes);

/* Copies as fy_copy does, a word without a call. */
static inline void fy_memory_copy(void *target, const void *source, size_t size_bytes)
{
    if (size_bytes == sizeof(uint64_t))
        memcpy(target, source, sizeof(uint64_t)); /* one load and one store */
    else if (size_bytes > 0)
        fy_copy(target, source, size_bytes);
}

/* As fy_memory_copy. If a profile is made, the copy counts in it as `kind`. */
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

/* For a larger size the call asks the system whether the whole local range is mapped, and refuses
 * it if not. A size that is wrong by far would make this rank read beyond its memory before the
 * other rank can refuse. For smaller sizes, asking costs too much. */
enum { FY_UNCHECKED_BYTES = 1024 * 1024 };

/* Whether an untracked put or get is nothing but a copy: `remote` is in the heap of another rank of
 * this node, and no profile is made. */
static inline bool fy_memory_is_copy(const ferry *f, int rank, const void *remote,
                                     const void *local, size_t size_bytes)
{
    const fy_head *head = fy_head_of(f);
    return local != NULL && rank >= 0 && rank != head->rank && head->profile == NULL &&
           head->ops->heap.owner != NULL && size_bytes <= FY_UNCHECKED_BYTES &&
           head->ops->heap.owner(head->port, FY_APP, remote, size_bytes) == rank;
}

/* Checks the arguments of a put or get. Returns 0 or an error. */
int fy_memory_check(ferry *f, const char *call, int rank, const void *remote, const void *local,
                    size_t size_bytes);

/* Checks that a call without a track may wait for `rank`. FERRY_ESTATE: not in a handler. */
int fy_memory_check_wait(ferry *f, const char *call, int rank);

/* Sets the error message that the range on this rank is not all mapped. Returns FERRY_ERANGE. */
int fy_memory_refuse_here(ferry *f, const char *call, const void *local, size_t size_bytes);

/* Sets the error message that others may not use the range on `rank`. Returns FERRY_ERANGE. */
int fy_memory_refused(ferry *f, const char *call, int rank, uint64_t address, uint64_t size_bytes);

/* As fy_op_start, for a copy between memory here and on `rank`. `about` goes into the receipt. */
int fy_memory_start(ferry *f, int rank, const fy_op_about *about, size_t size_bytes,
                    const ferry_track *track, uint32_t *op);

/* The addresses that the receipt of a copy names. */
static inline fy_op_about fy_memory_about(const void *here, const void *there)
{
    return (fy_op_about){.local_address = (void *)(uintptr_t)here,
                         .remote_address = (uintptr_t)there};
}

/* Starts and ends an operation that is complete in the call and sends no data of the caller. */
int fy_memory_done(ferry *f, int rank, const fy_op_about *about, size_t size_bytes,
                   const ferry_track *track);

/* Answers of the target of a put. Words of the frame: the operation; if the put was refused, also
 * address and size of the whole range. */
typedef enum fy_put_answer { FY_PUT_REFUSED, FY_PUT_ARRIVED, FY_PUT_ANSWERS } fy_put_answer;

void fy_put_answer_send(ferry *f, int source, fy_put_answer answer, const uint64_t words[3]);

/* Logs the rank's last error message, for an untracked operation that failed. Only the first few
 * are logged. */
void fy_memory_log(ferry *f);

/* How much of its operation one call of fy_put_pieces sends. */
typedef enum fy_put_part {
    FY_PUT_WHOLE, /* all of it. In a handler the call may return FERRY_EAGAIN */
    FY_PUT_PART,  /* a part: the operation goes on after it, until a later frame ends it */
    FY_PUT_END,   /* the last part, whose arrival ends the operation */
} fy_put_part;

typedef struct fy_put_how {
    uint32_t op;
    fy_put_part part;
    int32_t tag; /* or FY_NO_TAG */
} fy_put_how;

/* Sends the pieces of a put to a range that this rank cannot access itself. A refused piece fails
 * the operation. Borrows the source. */
int fy_put_pieces(ferry *f, int rank, const ferry_piece *what, const fy_put_how *how);

/* Sends a part of a put: the heads of small pieces, each with its bytes. */
int fy_put_small(ferry *f, int rank, uint32_t op, const void *heads, size_t size_bytes);
/* Handles such a frame: writes its pieces if `writes`. Refuses the first that others may not write
 * to, of an untracked put each. */
void fy_put_small_take(ferry *f, int source, const fy_frame *frame, bool writes);

typedef struct fy_get_how {
    uint32_t op;    /* ended by the last piece */
    uint32_t guard; /* when this operation has ended, the target is not written to any more */
    int32_t tag;    /* or FY_NO_TAG */
} fy_get_how;

/* Starts a get of a range that this rank cannot access itself. In a handler the call may return
 * FERRY_EAGAIN if `guard` is `op`. After a failure the caller still has to end `op`. */
int fy_get_pieces(ferry *f, int rank, const ferry_piece *what, const fy_get_how *how);

/* As fy_get_pieces, for small pieces. If it succeeds it takes their list. Borrows `heads`, which
 * say where the pieces are on `rank`. */
int fy_get_small(ferry *f, int rank, const fy_get_list *list, const void *heads,
                 const fy_get_how *how);
fy_verdict fy_get_small_answer(ferry *f, int source, const fy_frame *frame);
/* Brings the bytes of an answer to where they belong. */
void fy_get_small_take(const fy_get_list *list, const char *bytes);
/* Frees the records of gets, and the lists of those that have not ended. */
void fy_gets_fini(fy_call_slots *gets);

/* Runs the local handler of a put whose data have arrived. */
void fy_transfer_arrived(ferry *f, int source, uint32_t op);

void fy_transfer_pool_init(fy_pool *pool);
void fy_gets_pool_init(fy_pool *pool);

fy_verdict fy_transfer_deliver(ferry *f, int source, const fy_frame *frame);
fy_verdict fy_word_deliver(ferry *f, int source, const fy_frame *frame);
fy_hold_fn fy_transfer_hold, fy_put_hold;
fy_verdict fy_put_answer_deliver(ferry *f, int source, const fy_frame *frame);
fy_verdict fy_put_deliver(ferry *f, int source, const fy_frame *frame);
fy_verdict fy_get_deliver(ferry *f, int source, const fy_frame *frame);
fy_verdict fy_got_deliver(ferry *f, int source, const fy_frame *frame);

#endif
