/* The window layer's state in a rank, and what ranks of a node share. Private to window. */
#ifndef FY_WINDOW_STATE_H
#define FY_WINDOW_STATE_H

#include <stdatomic.h>

#include <ferry/collective.h>
#include <ferry/window.h>

#include "base/list.h"
#include "base/pool.h"
#include "base/table.h"
#include "core/head.h"
#include "core/layer.h"
#include "port/port.h"

enum { FY_KIND_WINDOW = FY_KINDS_OF_WINDOW };

/* The handler field of a frame: the request or the message that it carries. */
typedef enum fy_window_verb {
    FY_WINDOW_PUT,
    FY_WINDOW_ACCUMULATE,
    FY_WINDOW_FETCH,
    FY_WINDOW_SWAP,
    FY_WINDOW_GET,
    FY_WINDOW_LOCK,
    FY_WINDOW_UNLOCK,
    FY_WINDOW_POST,  /* the source lets this rank start */
    FY_WINDOW_READY, /* the source has no gets left */
    FY_WINDOW_GO,    /* no rank has gets left: the source of this frame allows the puts */
    FY_WINDOW_DONE,  /* the puts of the source are done */
    FY_WINDOW_ANSWER,
    FY_WINDOW_VERBS,
    FY_WINDOW_NOTHING, /* a put that was cancelled */
} fy_window_verb;

/* How an element keeps its value. The form becomes FY_FORM_WORD with the first value of 8 bytes.
 * From there it becomes FY_FORM_BLOCK with the first value of another size. It never goes back. So
 * an operation on the word that began before that change counts as done before it: nobody uses the
 * word after it. The form of an element without a value may become FY_FORM_VIEW, and stays so. */
typedef enum fy_form {
    FY_FORM_LOCKED, /* the holder of `lock` alone changes it; less than 8 bytes are in `few` */
    FY_FORM_WORD,   /* 8 bytes in `word`, which every rank changes by atomic operations */
    FY_FORM_BLOCK,  /* the holder of `lock` alone changes it, in the block */
    FY_FORM_VIEW,   /* at `place`, always of one size; 8 bytes as in FY_FORM_WORD, else as in
                       FY_FORM_BLOCK */
} fy_form;

/* An element. `lock` is 1 + the rank that works on it, or 0. The holder alone changes the form, and
 * uses fields other than `word`. The block is always valid or NULL. So after a death only the value
 * is in doubt, and not even that in FY_FORM_WORD. */
typedef struct fy_slot {
    _Atomic uint32_t lock;
    _Atomic uint32_t form;
    uint64_t size; /* 1 + bytes of the value; 0: no value. Not used in FY_FORM_WORD */
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

/* The bytes of a large block begin at a cache line: copies to other addresses are slow, some of
 * them ten times as slow. The bytes of a small block follow the head. */
enum { FY_LARGE_BYTES = 1024, FY_LARGE_HEAD = 64 };

static inline size_t fy_block_head(size_t room_bytes)
{
    return room_bytes < FY_LARGE_BYTES ? sizeof(fy_block) : FY_LARGE_HEAD;
}

/* Segment 0 has elements 0 to 63. Each further segment begins where the one before ends and doubles
 * the array. Segments never move and are freed only with the array. So a pointer to an element
 * stays valid while the array grows. */
enum { FY_SEGMENT_BITS = 6, FY_SEGMENTS = 34 };

/* The array of one rank. All ranks of its node reach it. */
typedef struct fy_array {
    _Atomic uint64_t length;
    _Atomic uint32_t lock; /* lock of `holders`, as that of an element */
    uint32_t ranks;
    _Atomic(fy_slot *) segments[FY_SEGMENTS];
    struct fy_view *views; /* the owner's list */
    uint8_t holders[];     /* by rank: its part in ferry_window_lock (fy_lock_part) */
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

typedef enum fy_lock_part {
    FY_HELD_NOT,
    FY_HELD_SHARED,
    FY_HELD_EXCLUSIVE,
    FY_HELD_AWAITED
} fy_lock_part;

/* An operation on an element. */
typedef struct fy_action {
    fy_window_verb verb;
    uint8_t type, reduction;
    int64_t index;
    const void *value; /* of a swap, in frames: `expected`, then the value */
    const void *expected;
    size_t count; /* numbers of an accumulate */
    size_t size_bytes;
    void *target; /* of a get, or the old number */
    size_t room_bytes;
    size_t *size_out;
} fy_action;

/* An operation that is not done. It is in the queue of its window, or was sent to its rank. */
typedef struct fy_window_op {
    fy_link link;
    ferry_window *window;
    fy_action action;
    uint64_t serial; /* its key in `asked`; 0: it is queued */
    int rank;
    uint32_t op;                   /* the tracked operation, or 0 */
    struct fy_window_group *group; /* NULL: it is no part of an operation on many elements */
    size_t part;                   /* its place in `group` */
} fy_window_op;

/* A tracked operation on many elements (many.c). */
typedef struct fy_window_group {
    ferry *f;
    uint32_t op;
    size_t waiting;        /* how many parts have not ended, and one more while the call runs */
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
    fy_array *array; /* the rank's array, where this rank reaches it; else NULL */
    uint32_t id;     /* number of the window at that rank; 0: the rank is not in the window */
    uint32_t posts;  /* how many posts no start has used */
    uint32_t queued, asked;
    fy_window_word *words; /* words that wait for the end of their epoch (words.c) */
    size_t word_count;
    uint32_t word_room;
    uint8_t locked;  /* fy_lock_part */
    bool started;    /* it is a target of ferry_window_start */
    bool go;         /* it allows the puts */
    uint8_t exposed; /* fy_exposed */
    bool open;       /* an epoch is open towards `array`, whose memory is valid */
    int16_t error;   /* of the first untracked operation that failed (failure.c) */
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
    ferry_group *makers; /* without `group`, if ranks may join: the ranks that made the window */
    fy_array *array;
    fy_window_peer *peers; /* by rank */
    int ranks;             /* of `peers` */
    uint32_t id;
    fy_link queue;      /* of fy_window_op */
    size_t words;       /* how many words wait, of all peers */
    uint32_t asked;     /* how many operations other ranks were asked to do */
    uint32_t exposures; /* how many ranks have not completed */
    bool direct;        /* puts do not wait for the end of their epoch */
    bool fenced, access, posted;
    bool go_due;            /* ranks may be told to go, and were not told yet */
    fy_link failures;       /* of untracked operations (failure.c) */
    uint32_t bare_failures; /* how many found no memory for a record */
    int exposure_error;     /* the first, of rank `exposure_rank` */
    int exposure_rank;
    const char *awaits;       /* why a call waits for rank `awaited`; NULL: no call waits */
    int awaited, awaits_lock; /* awaits_lock: the rank whose lock is wanted; -1: none */
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

/* Does `what` with the array of `owner`, atomically towards other operations. FERRY_EPEER: a rank
 * has died while it changed this element, which now has no value. */
int fy_array_apply(ferry *f, fy_array *array, int owner, const fy_action *what);

/* The word of an element, which ranks change by atomic operations; NULL: its value has another
 * form. */
static inline _Atomic uint64_t *fy_slot_word(fy_slot *slot)
{
    /* acquire: pairs with the release that gave the element its form */
    const uint32_t form = atomic_load_explicit(&slot->form, memory_order_acquire);
    if (form == FY_FORM_WORD)
        return &slot->word;
    return form == FY_FORM_VIEW && slot->size == 1 + sizeof(uint64_t) ? slot->place : NULL;
}

/* The element at an index within `array`; NULL: it never had a value. */
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

/* Takes the lock for `rank`, if no other live rank holds it in conflict. Else notes a rank that
 * waits to have it alone: later shared locks wait for that one. Returns whether it took the
 * lock. */
bool fy_array_lock(ferry *f, fy_array *array, int rank, fy_lock_part kind);
void fy_array_unlock(ferry *f, fy_array *array, int rank);

/* A live rank for which `kind` of `rank` has to wait; -1: there is none. */
int fy_array_holder(ferry *f, fy_array *array, int rank, fy_lock_part kind);

/* Reports the ranks for which window calls wait, and those that wait for a lock of this rank. */
void fy_windows_why(ferry *f, fy_why *why);

/* Whether type and reduction of the action are valid. */
bool fy_action_is_right(const fy_action *what);
/* The bytes of its numbers. */
size_t fy_action_bytes(const fy_action *what);

/* FERRY_EINVAL, FERRY_EPEER, FERRY_ESTATE: no operation can be begun towards `rank`. */
int fy_window_check_epoch(const ferry_window *w, const char *call, int rank);
/* Does `what`, or begins it as the next part of `group` (NULL: without a track). */
int fy_window_part(ferry_window *w, const char *call, int rank, const fy_action *what,
                   fy_window_group *group);
/* Silences an operation: it uses no memory of the program any more, and its end is no error. */
void fy_window_op_silence(fy_window_op *op);
/* Counts the end of a part of the group, or of the call that begins the parts. */
void fy_window_group_end(fy_window_group *group, int error);

/* Keeps the first error of an operation on `rank` without a track, for the call that ends it. */
void fy_window_note(ferry_window *w, int rank, int64_t index, int error);
/* Ends a call that has ended the operations on rank `which`, or on these ranks. Forgets their
 * failures. Returns `error`; if that is 0, the first failure. */
enum { FY_WINDOW_ALL = -1, FY_WINDOW_STARTED = -2 };
int fy_window_report(ferry_window *w, const char *call, int which, int error);
void fy_window_failures_drop(ferry_window *w);

/* Makes room for another word of `peer`. Returns false without memory. */
bool fy_window_words_grow(fy_window_peer *peer);
/* Carries out the words that wait towards `rank` (-1: all); with an error they end with that. */
void fy_window_words_end(ferry_window *w, int rank, int error);

/* Ends an operation: tells its track or notes the error for the end of the epoch, and frees it. */
void fy_window_op_end(fy_window_op *op, int error);

/* Sends `op` to its rank. The answer ends it, or the rank's death. After an error it is as
 * before. */
int fy_window_ask_send(fy_window_op *op);
int fy_window_tell(ferry_window *w, int rank, fy_window_verb verb);
void fy_window_progress_go(ferry_window *w);
int fy_window_locks_serve(fy_windows *all);
/* Handles `verb` of a post epoch, from a rank of the window. */
void fy_window_told(ferry_window *w, int source, fy_window_verb verb);

fy_verdict fy_window_deliver(ferry *f, int source, const fy_frame *frame);
void fy_window_lost(ferry_window *w, int rank);

/* Carries out the queue towards `rank` (-1: all). */
void fy_window_carry_out(ferry_window *w, int rank);
/* Polls until `rank` (-1: every rank) has answered all requests. */
void fy_window_settle(ferry_window *w, int rank);
/* Ends all queued operations towards `rank` (-1: all) with `error`. */
void fy_window_give_up(ferry_window *w, int rank, int error);

/* A rank to which this one has posted will not complete, because of `error`. */
void fy_window_unexpose(ferry_window *w, int rank, int error);
/* Asks `rank` for its lock; the answer sets `locked`. */
int fy_window_ask_lock(ferry_window *w, int rank, fy_lock_part kind);
int fy_window_barrier(ferry_window *w, const char *call);

/* Refuses a call in a handler. */
int fy_window_check(ferry_window *w, const char *call);
int fy_window_check_rank(const ferry_window *w, const char *call, int rank);

#endif
