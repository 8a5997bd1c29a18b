/* The window layer's state in a rank, and what ranks of a node share. Private to window. */
#ifndef FY_WINDOW_STATE_H
#define FY_WINDOW_STATE_H

#include <stdatomic.h>

#include <ferry/collective.h>
#include <ferry/window.h>

#include "base/list.h"
#include "base/pool.h"
#include "base/table.h"
#include "core/core.h"

enum { FY_KIND_WINDOW = FY_KINDS_OF_WINDOW };

/* A frame's handler field says what it asks for or tells. */
typedef enum fy_window_verb {
    FY_WINDOW_PUT,
    FY_WINDOW_ACCUMULATE,
    FY_WINDOW_FETCH,
    FY_WINDOW_SWAP,
    FY_WINDOW_GET,
    FY_WINDOW_LOCK,
    FY_WINDOW_UNLOCK,
    FY_WINDOW_POST,  /* the source lets this rank start */
    FY_WINDOW_READY, /* the gets of the source are done */
    FY_WINDOW_GO,    /* those of all are: the puts may be done */
    FY_WINDOW_DONE,  /* the puts of the source are done */
    FY_WINDOW_ANSWER,
    FY_WINDOW_VERBS,
    FY_WINDOW_NOTHING, /* a cancelled put */
} fy_window_verb;

/* How an element keeps its value. It changes to FY_FORM_WORD with the first value of 8 bytes, and
 * from there to FY_FORM_BLOCK with the first other one; never back. So an operation on the word
 * that began before that change counts as done before it: nobody uses the word after it. An element
 * without a value changes to FY_FORM_VIEW, and stays so. */
typedef enum fy_form {
    FY_FORM_LOCKED, /* by the holder of `lock` alone; less than 8 bytes are in `few` */
    FY_FORM_WORD,   /* 8 bytes in `word`, which every rank changes by atomic operations */
    FY_FORM_BLOCK,  /* by the holder of `lock` alone, in the block */
    FY_FORM_VIEW, /* at `place`, of one size for good; 8 bytes as in `word`, else as in the block */
} fy_form;

/* An element. `lock` is 1 + the rank that works on it, or 0; the holder alone changes the form, and
 * touches what is not `word`. The block is always valid or NULL: so after a death only the value is
 * in doubt, and of FY_FORM_WORD nothing. */
typedef struct fy_slot {
    _Atomic uint32_t lock;
    _Atomic uint32_t form;
    uint64_t size; /* 1 + bytes of the value; 0: no value; not of FY_FORM_WORD */
    union {
        _Atomic uint64_t word;
        unsigned char few[sizeof(uint64_t)];
    };
    union {
        struct fy_block *block;
        void *place;
    };
} fy_slot;

typedef struct fy_block {
    size_t room_bytes;
} fy_block;

/* The bytes of a large block begin a cache line: copies to other places are slow, some of them ten
 * times. Those of a small one follow the head. */
enum { FY_LARGE_BYTES = 1024, FY_LARGE_HEAD = 64 };

static inline size_t fy_block_head(size_t room_bytes)
{
    return room_bytes < FY_LARGE_BYTES ? sizeof(fy_block) : FY_LARGE_HEAD;
}

/* Segment 0 has elements 0 to 63; each next one begins where the one before ends and doubles the
 * array. Segments never move and are freed with the array alone, so a pointer to an element stays
 * valid while the array grows. */
enum { FY_SEGMENT_BITS = 6, FY_SEGMENTS = 34 };

/* The array of one rank. All ranks of its node reach it. */
typedef struct fy_array {
    _Atomic uint64_t length;
    _Atomic uint32_t lock; /* of `holders`; as of an element */
    uint32_t ranks;
    _Atomic(fy_slot *) segments[FY_SEGMENTS];
    struct fy_view *views; /* the owner's list */
    uint8_t holders[];     /* by rank: what it has of ferry_window_lock (fy_held) */
} fy_array;

/* Segment of an element, and the first element of a segment. */
static inline unsigned fy_segment_of(uint64_t index)
{
    uint64_t above = index >> FY_SEGMENT_BITS;
    return above == 0 ? 0 : 64 - (unsigned)__builtin_clzll(above);
}

static inline uint64_t fy_segment_first(unsigned segment)
{
    return segment == 0 ? 0 : UINT64_C(1) << (FY_SEGMENT_BITS + segment - 1);
}

typedef enum fy_held { FY_HELD_NOT, FY_HELD_SHARED, FY_HELD_EXCLUSIVE, FY_HELD_AWAITED } fy_held;

/* An operation on an element. */
typedef struct fy_action {
    fy_window_verb verb;
    uint8_t type, reduction;
    int64_t index;
    const void *value; /* of a swap: in frames, `expected` and then the value */
    const void *expected;
    size_t count; /* numbers of an accumulate */
    size_t size_bytes;
    void *target; /* of a get, or the old number */
    size_t room_bytes;
    size_t *size_out;
} fy_action;

/* An operation that is not done: in the queue of its window, or asked of its rank. */
typedef struct fy_window_op {
    fy_link link;
    ferry_window *window;
    fy_action action;
    uint64_t serial; /* its name in `asked`; 0: it is queued */
    int rank;
    uint32_t op;                   /* the tracked operation, or 0 */
    struct fy_window_group *group; /* NULL: it is no part of an operation on many elements */
    size_t part;                   /* its place in `group` */
} fy_window_op;

/* A tracked operation on many elements (many.c). */
typedef struct fy_window_group {
    ferry *f;
    uint32_t op;
    size_t waiting;        /* parts that have not ended, and one while the call runs */
    int error;             /* the first */
    size_t count;          /* of `parts` */
    fy_window_op *parts[]; /* NULL: it has ended */
} fy_window_group;

/* A put or a sum of 8 bytes that waits for the end of its epoch, without a track. */
typedef struct fy_window_word {
    int64_t index;
    uint64_t value;
    bool adds;
} fy_window_word;

/* A window's account of a rank. */
typedef struct fy_window_peer {
    fy_array *array; /* where this rank reaches it */
    uint32_t id;     /* of the window there; 0: the rank is not of the window */
    uint32_t posts;  /* that no start has used */
    uint32_t queued, asked;
    fy_window_word *words; /* that wait for the end of their epoch (words.c) */
    size_t word_count, word_room;
    uint8_t locked;  /* fy_held */
    bool started;    /* it is a target of ferry_window_start */
    bool go;         /* it lets the puts be done */
    uint8_t exposed; /* fy_exposed */
    bool open;       /* an epoch is open towards `array`, whose memory is valid */
} fy_window_peer;

typedef enum fy_exposed {
    FY_EXPOSED_NOT,
    FY_EXPOSED_OPEN,
    FY_EXPOSED_READY, /* has no gets left */
    FY_EXPOSED_GOING, /* was told to do its puts */
} fy_exposed;

/* A rank that waits for the lock of this rank's array. */
typedef struct fy_lock_wait {
    fy_link link;
    ferry_window *window;
    uint64_t serial;
    int rank;
    uint8_t kind;
} fy_lock_wait;

struct ferry_window {
    fy_link link;
    ferry *f;
    ferry_group *group;
    fy_array *array;
    fy_window_peer *peers; /* by rank */
    int ranks;             /* of `peers` */
    uint32_t id;
    fy_link queue;      /* of fy_window_op */
    size_t words;       /* that wait, of all peers */
    uint32_t asked;     /* operations that other ranks have been asked for */
    uint32_t exposures; /* ranks that have not completed */
    bool direct;        /* puts do not wait for the end of their epoch */
    bool fenced, access, posted;
    bool go_due; /* ranks may be told to go, and were not */
    int error;   /* the first of an untracked operation of this epoch */
    int error_rank;
    int64_t error_index;
    int exposure_error;
    struct fy_attribute *attributes;
    size_t attribute_count;
};

typedef struct fy_windows {
    ferry *f;
    fy_link windows;
    fy_link lock_waits;
    fy_table asked; /* of fy_window_ask, by serial */
    fy_pool ops;
    uint64_t serial;
    uint32_t id;
} fy_windows;

typedef struct fy_window_ask {
    uint64_t serial;
    fy_window_op *op;
} fy_window_ask;

static inline fy_windows *fy_windows_of(const ferry *f)
{
    return (fy_windows *)fy_layer_state(f, FY_LAYER_WINDOW);
}

static inline bool fy_window_is_alive(const ferry *f, int rank)
{
    const fy_head *head = fy_head_of(f);
    return rank == head->rank || head->ops->members.peer(head->port, rank) == FY_PEER_ALIVE;
}

/* `count` elements of one size. */
typedef struct fy_extent {
    uint64_t first, count;
    size_t value_bytes;
} fy_extent;

/* An empty array of this rank; NULL without memory. */
fy_array *fy_array_create(ferry *f, uint32_t ranks);
void fy_array_free(ferry *f, fy_array *array);

/* Makes a view of `count` elements from `first` on, of `value_bytes` each. `owner` is this rank.
 * FERRY_EINVAL: element `*taken` has a value; FERRY_ENOMEM. Then no element has changed. */
int fy_array_view(ferry *f, fy_array *array, int owner, fy_extent extent, uint64_t *taken,
                  void **out);

/* Does `what` with the array of `owner`, atomically towards others. FERRY_EPEER: a rank has died
 * while it changed this element, which has no value now. */
int fy_array_apply(ferry *f, fy_array *array, int owner, const fy_action *what);

/* The number that ranks change by atomic operations; NULL: the element has no value of that kind.
 */
static inline _Atomic uint64_t *fy_slot_word(fy_slot *slot)
{
    /* acquire: pairs with the release that gave the element its form */
    const uint32_t form = atomic_load_explicit(&slot->form, memory_order_acquire);
    if (form == FY_FORM_WORD)
        return &slot->word;
    return form == FY_FORM_VIEW && slot->size == 1 + sizeof(uint64_t) ? slot->place : NULL;
}

/* The element, which is within `array`; NULL: it never had a value. */
static inline fy_slot *fy_array_slot(fy_array *array, uint64_t index)
{
    const unsigned segment = fy_segment_of(index);
    /* acquire: pairs with segment_add */
    fy_slot *slots = atomic_load_explicit(&array->segments[segment], memory_order_acquire);
    return slots == NULL ? NULL : slots + (index - fy_segment_first(segment));
}

/* The word of an element; NULL: there is none. */
static inline _Atomic uint64_t *fy_array_word(fy_array *array, int64_t index)
{
    const uint64_t at = (uint64_t)index; /* a negative one is beyond every length */
    /* acquire: pairs with the release of who made the array longer */
    if (at >= atomic_load_explicit(&array->length, memory_order_acquire))
        return NULL;
    fy_slot *slot = fy_array_slot(array, at);
    return slot == NULL ? NULL : fy_slot_word(slot);
}

/* Takes the lock for `rank` if no other live rank has it against that; else notes who waits. */
bool fy_array_lock(ferry *f, fy_array *array, int rank, fy_held kind);
void fy_array_unlock(ferry *f, fy_array *array, int rank);

/* Whether `action` can be, by type and reduction. */
bool fy_action_is_right(const fy_action *what);
/* The bytes of its numbers. */
size_t fy_action_bytes(const fy_action *what);

/* FERRY_EINVAL, FERRY_EPEER, FERRY_ESTATE: no operation can be begun towards `rank`. */
int fy_window_check_epoch(const ferry_window *w, const char *call, int rank);
/* Does `what`, or begins it as the next part of `group`; NULL: without a track. */
int fy_window_part(ferry_window *w, const char *call, int rank, const fy_action *what,
                   fy_window_group *group);
/* Nothing is read or written for it any more; its end is no error. */
void fy_window_op_silence(fy_window_op *op);
/* A part of the group has ended, or the call that begins them. */
void fy_window_group_end(fy_window_group *group, int error);

/* Keeps the first error of an operation without a track for the end of the epoch. */
void fy_window_note(ferry_window *w, int rank, int64_t index, int error);

/* Makes room for another word of `peer`. False: there is no memory. */
bool fy_window_words_grow(fy_window_peer *peer);
/* Carries out the words that wait towards `rank` (-1: all); with an error they end with that. */
void fy_window_words_end(ferry_window *w, int rank, int error);

/* Ends an operation: tells its track or notes the error for the end of the epoch, and frees it. */
void fy_window_op_end(fy_window_op *op, int error);

/* Asks the rank of `op`; then the answer ends it, or the rank's death. On failure it is as it was.
 */
int fy_window_ask_send(fy_window_op *op);
int fy_window_tell(ferry_window *w, int rank, fy_window_verb verb);
void fy_window_progress_go(ferry_window *w);
int fy_window_locks_serve(fy_windows *all);
/* A rank of the window has told this one `verb`, of a post epoch. */
void fy_window_told(ferry_window *w, int source, fy_window_verb verb);

fy_verdict fy_window_deliver(ferry *f, int source, const fy_frame *frame);
void fy_window_lost(ferry_window *w, int rank);

/* Carries out the queue towards `rank` (-1: all). */
void fy_window_carry_out(ferry_window *w, int rank);
/* Polls until nothing asked of `rank` (-1: of any) is open. */
void fy_window_settle(ferry_window *w, int rank);
/* Ends what is queued towards `rank` (-1: all) with `error`. */
void fy_window_give_up(ferry_window *w, int rank, int error);

/* A rank that this one has posted to has completed no more, for `error`. */
void fy_window_unexpose(ferry_window *w, int rank, int error);
/* As fy_window_tell, and polls until there is memory. Returns `before` if that is not 0. */
int fy_window_tell_surely(ferry_window *w, int rank, fy_window_verb verb, int before);
/* Asks `rank` for its lock; the answer sets `locked`. */
int fy_window_ask_lock(ferry_window *w, int rank, fy_held kind);
int fy_window_barrier(ferry_window *w);

/* Notes whether an epoch is open towards `rank`, after one began or ended or the rank went. */
void fy_window_open_note(ferry_window *w, int rank);

/* Refuses a call in a handler. */
int fy_window_check(ferry_window *w, const char *call);
int fy_window_check_rank(const ferry_window *w, const char *call, int rank);

#endif
