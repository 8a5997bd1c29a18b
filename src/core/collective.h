/* Collective: calls that all ranks of a group make: barrier, broadcast, reductions, scans, and
 * moving pieces.
 *
 * Each call has a number, the same on every rank of its group. All its frames carry that number and
 * the id of the group. So calls close together never mix, and several may run at the same time. A
 * call is a list of steps (receive, send, wait, combine, copy), which polls carry out in order. Its
 * plan appends the steps of one part after the other. Frames for later numbers, and frames for
 * which no step has asked yet, wait in `early`, in order: by the number of their call, so that a
 * call finds its own among thousands. Application thread only. */
#ifndef FY_COLLECTIVE_H
#define FY_COLLECTIVE_H

#include <ferry/collective.h>

#include "core/group.h"
#include "core/queue.h"

/* The properties of a kind of collective (collective_check.c). */
enum {
    FY_READS = 1,          /* `in` of all */
    FY_READS_AT_ROOT = 2,  /* of the root alone */
    FY_WRITES = 4,         /* `out` of all */
    FY_WRITES_AT_ROOT = 8, /* of the root alone */
    FY_COMBINES = 16,
    FY_VARIES =
        32, /* only the two ranks of a pair know the size of their piece: each frame carries it */
};
typedef struct fy_collective_kind {
    char name[21]; /* of the call */
    uint8_t flags;
} fy_collective_kind;
FY_SHARED extern const fy_collective_kind fy_collective_kinds[FERRY_ALLTOALLV + 1];

/* The flags of the kind of a call (FY_CALL_...). */
static inline uint8_t fy_collective_flags(uint64_t what)
{
    unsigned kind = what & 0xff;
    return kind <= FERRY_ALLTOALLV ? fy_collective_kinds[kind].flags : 0;
}

static inline bool fy_collective_is_rooted(unsigned kind)
{
    return kind == FERRY_BROADCAST ||
           (kind <= FERRY_ALLTOALLV &&
            (fy_collective_kinds[kind].flags & (FY_READS_AT_ROOT | FY_WRITES_AT_ROOT)) != 0);
}

/* Words of each frame of a call: `what`, size and signature. So one more word has room beside them,
 * in the same cache line. */
enum { FY_CALL_WORDS = 3 };

/* `what` of a call: its fields from the lowest bits up. */
enum {
    FY_CALL_TYPE_SHIFT = 8,
    FY_CALL_REDUCTION_SHIFT = 16,
    FY_CALL_BOARD_SHIFT = 24,
    FY_CALL_ROOT_SHIFT = 32,
    FY_CALL_OF_PROGRAM = 0x80 /* with bits of the size of the program's values */
};

/* Likewise, for calls that the program does not make: a barrier of ferry_close; the barrier of a
 * rank whose main function has returned, which fits those of others; a ferry_quiesce, which only a
 * note names. */
enum { FY_CALL_CLOSES = 1 << 25, FY_CALL_RETURNED = 1 << 26, FY_CALL_QUIESCES = 1 << 27 };

/* A call over a group of the program, whose id stands in place of the signature. */
enum { FY_CALL_OVER_GROUP = 1 << 30 };

/* A barrier of ferry_balance_enable. FY_CALL_ON: it turns balancing on. The first FY_PHASE_NAME
 * characters of the scheduler's name take the place of the root and the size. */
enum { FY_CALL_PHASE = 1 << 28, FY_CALL_ON = 1 << 29, FY_PHASE_NAME = 12 };

/* A message for which a call waits: frames of `tag` from `source`, in order, until `size_bytes`
 * have come. */
typedef struct fy_post {
    int source;
    int32_t tag;
    unsigned char *buffer;
    size_t size_bytes, received;
    bool open; /* its step was reached: frames may be taken */
    bool complete;
} fy_post;

typedef enum fy_step_kind {
    FY_STEP_POST,
    FY_STEP_SEND,
    FY_STEP_AWAIT,
    FY_STEP_COMBINE,
    FY_STEP_COPY,
} fy_step_kind;

typedef struct fy_step {
    uint8_t kind; /* fy_step_kind */
    int32_t tag;
    int rank; /* to send to; or the index of the post to open or await */
    void *to;
    const void *from, *high; /* what is sent, copied, or combined: lower and higher */
    size_t size_bytes;       /* of a wait: how many must have come */
    size_t whole_bytes;      /* of the piece of which these bytes are a part */
} fy_step;

typedef struct fy_collective fy_collective;

/* Appends the steps of part `c->part`, and sets `c->last` if no part follows. Without memory it
 * sets `c->error`. */
typedef void fy_plan(fy_collective *c);

enum { FY_OWN_STEPS = 24, FY_OWN_POSTS = 8, FY_OWN_SCRATCH_BYTES = 128 };

struct fy_collective {
    fy_collective *next;
    uint64_t id; /* of its group, when it began */
    uint32_t number;
    bool by_board; /* carried out by collective_board.c, without steps */
    bool spread;   /* the ranks of the job do not all share memory */
    /* Zero when a call begins, from `error` to `done`. */
    int error;
    bool told;     /* all know of the error */
    bool finished; /* no longer among the running */
    bool kept;     /* its caller waits and frees it */
    bool last;
    uint32_t op;
    uint32_t part;
    uint32_t at; /* the step that is carried out */
    uint32_t step_count, post_count;
    uint64_t doubt_ns; /* when its step has waited long; 0: it has not slept yet */
    size_t sent;       /* of the step, when it sends */
    size_t done;       /* the plan's own: bytes planned so far */
    fy_collective_call call;
    ferry_collective what;
    fy_group *group;
    int ranks, self, root;          /* of the group: its size, and places in it */
    size_t value_bytes, size_bytes; /* of one value; of one rank's values */
    unsigned char *scratch;         /* made by the plan (fy_plan_scratch) */
    fy_plan *plan;
    fy_step *steps;
    uint32_t step_capacity, post_capacity;
    fy_post *posts;
    fy_step own_steps[FY_OWN_STEPS];
    fy_post own_posts[FY_OWN_POSTS];
    _Alignas(16) unsigned char own_scratch[FY_OWN_SCRATCH_BYTES];
};

typedef struct fy_collectives {
    uint32_t turn;  /* calls carried out by the board */
    int late;       /* the place that had not come when the last of them began to wait */
    uint32_t made;  /* groups that this rank took part in making */
    uint32_t polls; /* since a call began */
    bool making; /* frames of an unknown group may belong to a new one, or to a new id (group.h) */
    fy_collective *first, *last;
    fy_collective *spare;
    fy_group *group;  /* of the members */
    fy_group *groups; /* the program's */
    void **boards; /* of all ranks; NULL when they do not all share memory (collective_board.c) */
    fy_queue_set early;
    const char *phase; /* the scheduler, for the call that ferry_balance_enable makes; else NULL */
    bool phase_on;
} fy_collectives;

/* Makes the group of the ranks with which the job began. On a rank that has joined, the group has
 * no ranks. FERRY_ENOMEM. */
int fy_collectives_init(ferry *f);
void fy_collectives_fini(ferry *f);

/* From now on the members are the ranks of `set`, and their next call is `number` + 1, on all of
 * them. FERRY_ENOMEM. */
int fy_collectives_regroup(ferry *f, const uint64_t *set, uint32_t number);

/* Carries out the steps of all running calls that can be done now. */
void fy_collectives_advance(ferry *f);

/* Adds a group of the program. Removes frames that came early for unknown groups. */
void fy_collectives_add(ferry *f, fy_group *group);
void fy_collectives_made(ferry *f);

/* `rank` has gone: see fy_group_lose. */
void fy_collectives_lose(ferry *f, int rank, bool died);

/* Ends the calls that can never finish because a rank is gone, or work was lost. */
void fy_collectives_fail_lost(ferry *f);

/* Removes it from the running calls. Tells the other ranks if it failed here. */
void fy_collective_finish(ferry *f, fy_collective *c);
void fy_collective_free(ferry *f, fy_collective *c);

/* Carries out the steps of one call until one has to wait. */
void fy_collective_advance(ferry *f, fy_collective *c);

/* Ends a call, if nothing else has, because `rank` is gone. */
void fy_collective_lack(ferry *f, fy_collective *c, int rank);

/* Ends a call, if nothing else has, because work was lost (loss.h), or a member of its group. */
void fy_collective_look_lost(ferry *f, fy_collective *c);

/* For error texts (collective_text.c). fy_call_describe writes that a rank made the call, with what
 * ranks must agree upon. fy_collective_fail: as fy_fail, of call `number` of `group`. */
enum { FY_CALL_TEXT = 128 };
const char *fy_call_name(const fy_collective_call *call);
void fy_call_describe(const fy_collective_call *call, char *text, size_t size);
__attribute__((format(printf, 5, 6))) int fy_collective_fail(ferry *f, const fy_group *group,
                                                             uint32_t number, int error,
                                                             const char *format, ...);

/* A frame of call `c` with `tag`, without data. */
fy_frame fy_collective_frame(const fy_collective *c, int32_t tag);

/* Ends a call in whose place `rank` has made another call, and tells all ranks. */
void fy_collective_disagree(ferry *f, fy_collective *c, int rank, const fy_collective_call *other);

/* Ends call `number` of the members on all ranks that make it, for `reason`. */
void fy_collective_refuse(ferry *f, uint32_t number, const char *reason);

/* `rank` is in the next ferry_quiesce, or in one of its ferry_close, and has begun calls up to
 * `number`. Ends the calls that it will never make, and tells all ranks. */
typedef struct fy_elsewhere {
    uint32_t number;
    bool closing, returned; /* from its main function */
} fy_elsewhere;
void fy_collectives_doubt(ferry *f, int rank, const fy_elsewhere *e);

/* Called as a quiescence begins: fails it if others wait for a collective that this rank does not
 * make. */
void fy_collectives_look_refused(ferry *f);

/* Finds out from the board whether a rank for which call `c` waits has called something else. If
 * so, ends the call (collective_board.c). */
void fy_collective_board_doubt(ferry *f, fy_collective *c);

/* Tells the ranks for which call `c` waits which call it is: they may have called something else.
 */
void fy_collective_tell(ferry *f, const fy_collective *c);

/* Answers ranks that wait for this one in calls over groups, while this one waits for all ranks in
 * another call. Returns whether there were any. */
bool fy_collectives_answer(ferry *f);

/* Finds out whether a call has waited long. The ranks for which it waits may then have called
 * something else, and wait too. Returns when to look again; 0: a call has ended. */
uint64_t fy_collectives_look_late(ferry *f, uint64_t now);

/* Takes in the frames that came early for the open posts of a call, and all of a call that has
 * failed. NULL: removes the frames that belong to no call any more. */
void fy_collective_look_early(ferry *f, fy_collective *c);

static inline bool fy_collective_calls_equal(const fy_collective_call *a,
                                             const fy_collective_call *b)
{
    return (((a->what ^ b->what) & ~(uint64_t)FY_CALL_RETURNED) | (a->size_bytes ^ b->size_bytes) |
            (a->signature ^ b->signature)) == 0;
}

/* Checks a call of the program. FERRY_EINVAL, FERRY_ESTATE, FERRY_EPEER. */
int fy_collective_check(ferry *f, const ferry_collective *what);

/* FERRY_EPEER: `rank` is in no group any more, or not in the group of the call, whose name is
 * `call`. */
int fy_not_member(ferry *f, const char *call, int rank);

/* Checks that this rank may call `name` over `group`, outside handlers. */
int fy_collective_check_group(ferry *f, const fy_group *group, const char *name);

/* For plans, which name places in the group. fy_plan_receive gives the index of the post. */
uint32_t fy_plan_receive(fy_collective *c, int source, int32_t tag, void *buffer,
                         size_t size_bytes);
void fy_plan_await(fy_collective *c, uint32_t post);
/* Awaits `size_bytes` of the post. */
void fy_plan_await_bytes(fy_collective *c, uint32_t post, size_t size_bytes);
/* Receives, and awaits all. */
void fy_plan_take(fy_collective *c, int source, int32_t tag, void *buffer, size_t size_bytes);
void fy_plan_send(fy_collective *c, int rank, int32_t tag, const void *data, size_t size_bytes);
/* Announces that `whole_bytes` will come with `tag`, and sends none of them. */
void fy_plan_announce(fy_collective *c, int rank, int32_t tag, size_t whole_bytes);
void fy_plan_combine(fy_collective *c, void *into, const void *low, const void *high,
                     size_t size_bytes);
void fy_plan_copy(fy_collective *c, void *to, const void *from, size_t size_bytes);
/* Sets `c->scratch`, which fy_plan_scratch_end frees. */
void fy_plan_scratch_end(fy_collective *c);
bool fy_plan_scratch(fy_collective *c, size_t size_bytes);

/* into = low (operation) high, as `c` combines. The caller puts it between fy_nowait_begin and
 * fy_nowait_end: an operation of the program that polled would come back here without end. */
void fy_collective_combine(const fy_collective *c, void *into, const void *low, const void *high,
                           size_t size_bytes);

/* In one of 16 calls, adds steps after which every rank is known to have begun the call; uses tags
 * from `tag` to `tag` + 31. The other ranks wait for no root, for example, so one rank could run
 * ahead of the others, and its frames would wait in their memory. */
void fy_plan_add_barrier_sometimes(fy_collective *c, int32_t tag);

/* How ranks pair up to reduce: `rest` pairs of neighbours, so that 2^k positions remain. */
typedef struct fy_pairing {
    int power, rest;
} fy_pairing;
fy_pairing fy_pairing_of(int ranks);

fy_plan fy_plan_barrier, fy_plan_broadcast, fy_plan_allreduce, fy_plan_reduce, fy_plan_scan,
    fy_plan_gather, fy_plan_allgather, fy_plan_exchange, fy_plan_reduce_scatter;

/* Finds the boards. FERRY_ENOMEM. */
int fy_collective_board_init(ferry *f);
/* Whether all ranks can make this call by the board (collective_board.c). */
bool fy_collective_board_fits(const ferry *f, const ferry_collective *what, size_t size_bytes);
/* Announces this rank's call on the board, for ranks that wait there for another call. */
void fy_collective_board_announce(ferry *f, const fy_collective *c);
/* Writes this rank's lines again if they were overwritten. */
void fy_collective_board_repair(ferry *f);
/* Carries out a call by the board; polls meanwhile. */
void fy_collective_board_run(ferry *f, fy_collective *c);

/* As ferry_barrier. While it waits, `doing` is reported to the port. */
int fy_barrier(ferry *f, fy_doing doing);

/* A ferry_barrier that succeeds only if all ranks have the same scheduler, and all turn it on or
 * all turn it off. */
int fy_barrier_phase(ferry *f, const char *scheduler, bool on);

/* As ferry_collective_run, for a request of this library. */
int fy_collective_call_own(ferry *f, const ferry_collective *what);

/* As ferry_collective_run, for a request that was checked. While it waits, `doing` is reported to
 * the port. */
FY_SHARED int fy_collective_run(ferry *f, const ferry_collective *what, fy_doing doing);

#endif
