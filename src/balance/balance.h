/* Balance, inside: a rank's scheduler, its decisions that are not carried out yet, and the helper
 * thread.
 *
 * Threads: fy_control_lock guards everything here, with these exceptions. `table`, `scheduler` and
 * `state` are constant once set, before the helper exists. `started` belongs to the application
 * thread. A scheduler's function runs with the lock, and only notes what it wants: messages to
 * send, objects to migrate. Its caller does that after it has released the lock (fy_balance_flush).
 * So the lock is held for nanoseconds, and no send waits under it.
 *
 * While a task runs, the helper serves the control lane. Otherwise the application thread serves it
 * in its polls, and the helper sleeps. `serving` says which, under the lock. A helper that holds
 * the lock polls only if `serving` is true. So an application thread that takes the lock later
 * misses nothing that the helper does. */
#ifndef FY_BALANCE_H
#define FY_BALANCE_H

#include <ferry/balance.h>
#include <ferry/member.h>
#include <ferry/scheduler.h>

#include "balance/schedulers/bundle/bundle.h"
#include "base/random.h"
#include "core/head.h"
#include "core/layer.h"
#include "object/object.h"
#include "port/port.h"

enum { FY_SCHEDULERS_MAX = 32, FY_SCHEDULER_NAME_BYTES = 512, FY_PARAMETERS_BYTES = 256 };

/* Kinds of frames. */
enum {
    FY_KIND_SCHEDULER =
        FY_KINDS_OF_BALANCE, /* control lane, either thread: messages of schedulers */
    FY_KIND_PHASE,           /* whether the job balances, for a rank that has joined */
    FY_KIND_TOOK,            /* control lane, either thread: so many objects have come */
};

/* A message for the scheduler of another rank, not sent yet, or an answer to that rank. */
typedef struct fy_note {
    int rank;
    uint8_t kind;                   /* FY_KIND_SCHEDULER or FY_KIND_TOOK */
    bool quiet;                     /* it wakes no helper */
    uint64_t words[FY_FRAME_WORDS]; /* the last is the load of the rank that sends */
} fy_note;

/* The objects that the scheduler has given away and that have not arrived yet. If it wants to know,
 * the target answers when it has them. Otherwise they count as arrived when they were sent. */
typedef struct fy_travel {
    uint32_t away;
    uint64_t since_ns; /* when the first of them was given away, or an answer came */
    uint64_t each_ns;  /* from one arrival to the next, of late */
    bool known;        /* some have arrived */
    bool asked;        /* it wants to know when those arrive that are not sent yet */
    uint8_t unasked;   /* objects since it wanted to know */
} fy_travel;

_Static_assert(FERRY_SCHEDULER_WORDS + 1 == FY_FRAME_WORDS, "a frame has room for the load");

/* The reason of a scheduler's decision: which of its functions ran. */
typedef enum fy_occasion { FY_ON_TASK, FY_ON_WORD, FY_ON_TIME } fy_occasion;

/* Why an object moved: kept while FERRY_PROFILE or FERRY_TRACE count. */
typedef struct fy_reason {
    uint64_t time_ns, object;
    int target;
    int asker; /* the rank whose message the scheduler had just got; -1: none */
    fy_occasion occasion;
    double load, asker_load; /* waiting here, and at the asker when it sent its message */
} fy_reason;

struct ferry_scheduling {
    ferry *f;
    fy_objects *objects;
    fy_port *port;
    int rank, ranks;
    char name[FY_SCHEDULER_NAME_BYTES]; /* of the scheduler that is asked for, or a path */
    bool forced;      /* the environment names it: the program's choice is ignored */
    void *plugin;     /* the shared object it came from */
    const char *told; /* lines that the scheduler adds to the trace */
    const ferry_scheduler *table[FY_SCHEDULERS_MAX];
    int table_count;
    ferry_scheduler known;            /* the one in use, as this library knows the struct */
    ferry_scheduler steered;          /* the one that steering wraps */
    const ferry_scheduler *scheduler; /* `known`; NULL until it is needed */
    void *state;
    char asked[FY_PARAMETERS_BYTES]; /* the parameters that `create` reads, each after a blank */
    double (*tuned)(const ferry_scheduling *s, const char *name,
                    double otherwise); /* what steering has chosen; NULL: nothing */
    bool plain;                        /* the environment sets no parameter; known after `create` */
    int misread;                       /* FERRY_EINVAL: one of them is out of its range */
    fy_random random;
    bool on;
    bool calm; /* if `next` finds no task, it changes nothing when called again; not counted */
    bool serving;
    bool stop;
    bool started; /* a helper exists; application thread */
    uint64_t wake_ns;
    /* The scheduler had no task when it was last asked for one, and nothing has reached it since.
     * So it need not be asked before this time; 0: it must be asked. The application thread reads
     * it without the lock. */
    _Atomic uint64_t rests_until_ns;
    _Atomic uint64_t helper_ns; /* the helper's computing time, as of its last sleep */
    _Atomic uint64_t flush_ns;  /* what the application thread took to send words and objects */
    uint64_t helper_wakes_ns;   /* when the helper will look again by itself */
    fy_note *notes;
    uint32_t note_first, note_count, note_capacity;
    bool sending;         /* a thread sends the first note */
    bool words_timed;     /* the scheduler asks what it takes to send one */
    uint64_t word_ns;     /* that; 0: none was timed yet */
    uint32_t restless;    /* messages sent since a task ran here */
    bool quietly;         /* a message that is noted now wakes no helper */
    uint64_t restless_ns; /* when the last RESTLESS_WORDS of them were counted */
    double load;          /* sum over the tasks in the scheduler's lists */
    uint32_t tasks;       /* number of these tasks */
    uint64_t *present;    /* a bit per rank: those that take objects, this one not among them; NULL:
                             all others, as from the start of most jobs */
    int present_count;
    int *ring; /* with `present`: the same ranks, in their order after this one */
    /* The reasons for the scheduler's present decision, and its decisions so far. */
    fy_occasion occasion;
    int asker;
    double asker_load;
    fy_reason *reasons;
    uint32_t reason_count, reason_capacity;
    uint64_t reasons_lost;
    bool counted;     /* FERRY_PROFILE or FERRY_TRACE: constant after open */
    bool by_helper;   /* the helper polls */
    uint64_t move_ns; /* to pack and send an object, of late; 0: none was sent */
    fy_link outbound; /* objects to be shipped: MIGRATING */
    fy_link refused;  /* PINNED objects with tasks, which the scheduler sends to ranks in vain */
    uint8_t misuses;  /* those that were logged: a bit for each fy_misuse */
    fy_travel travel;
};

static inline ferry_scheduling *fy_scheduling_of(const ferry *f)
{
    return fy_layer_state(f, FY_LAYER_BALANCE);
}

/* Warns, once the scheduler was made, of parameters in the environment that it has not asked for.
 * [application thread] */
void fy_parameters_check(ferry_scheduling *s);

/* FERRY_EINVAL: the name of a scheduler is NULL or too long. */
int fy_scheduler_check_name(ferry *f, const char *name);

/* Finds the scheduler by its name and makes its state, once. FERRY_EINVAL: there is none of that
 * name; FERRY_ENOMEM. [application thread] */
int fy_scheduler_prepare(ferry *f);

/* Does what the scheduler has decided. [the thread named, lock not held] */
void fy_balance_flush(ferry_scheduling *s, fy_thread thread);

/* Calls the scheduler's wake when the time has come that the scheduler has named. `now_ns`: a
 * reading of the clock; 0: none. [lock held] */
void fy_balance_alarm(ferry_scheduling *s, uint64_t now_ns);

static inline void fy_balance_wake(ferry_scheduling *s, uint64_t now_ns)
{
    if (s->wake_ns != 0)
        fy_balance_alarm(s, now_ns);
}

/* The scheduler is asked for a task again: something has changed. [lock held] */
static inline void fy_scheduler_rouse(ferry_scheduling *s)
{
    /* relaxed: a poll that misses it is followed by another, and who sleeps asks under the lock */
    atomic_store_explicit(&s->rests_until_ns, 0, memory_order_relaxed);
}

/* Only while reasons are counted. [lock held] */
uint64_t fy_scheduler_entered(ferry_scheduling *s, fy_occasion occasion);
void fy_scheduler_left(ferry_scheduling *s, uint64_t entered_ns);

/* Brackets each call of a scheduler's function: why it is called, and how long it takes. [lock
 * held]
 */
static inline uint64_t fy_scheduler_enter(ferry_scheduling *s, fy_occasion occasion)
{
    fy_scheduler_rouse(s);
    return s->counted ? fy_scheduler_entered(s, occasion) : 0;
}

static inline void fy_scheduler_leave(ferry_scheduling *s, uint64_t entered_ns)
{
    if (s->counted)
        fy_scheduler_left(s, entered_ns);
}

/* Keeps the reason why `object` goes to `rank`, for the trace. [lock held] */
void fy_reason_keep(ferry_scheduling *s, ferry_object object, int rank);

/* Logs a mistake of the scheduler, the first of each kind, with `object`, or 0, and the rank to
 * which it should go. [either thread, lock held] */
void fy_scheduler_misuse(ferry_scheduling *s, fy_misuse kind, uint64_t object, int rank);

/* Adds a line for each move that the scheduler ordered to a trace file. [application thread] */
void fy_reasons_write(ferry *f, FILE *out);

/* Runs a task, or several in a row while they are short. [application thread] */
int fy_task_progress(ferry *f);

/* A message from the scheduler of another rank. [either thread, lock held] */
fy_verdict fy_scheduler_frame(ferry *f, int source, const fy_frame *frame);

/* Starts the helper thread unless it runs, the job has one rank, FERRY_HELPER is 0 or the port
 * cannot. [application thread] */
int fy_helper_start(ferry_scheduling *s);
void fy_helper_stop(ferry_scheduling *s);

/* Brings this rank's account of the helper up to date. [application thread] */
void fy_helper_count(ferry_scheduling *s);

/* Hands the control lane to the helper before a task, and takes it back. [application thread] */
void fy_helper_serve(ferry_scheduling *s);
void fy_helper_rest(ferry_scheduling *s);

/* Whether the scheduler's timer is due before the helper would wake for it. [application thread,
 * lock held] */
static inline bool fy_helper_oversleeps(const ferry_scheduling *s)
{
    return s->wake_ns != 0 && s->wake_ns < s->helper_wakes_ns && s->started;
}

/* An answer of another rank. [either thread, lock held] */
fy_verdict fy_travel_frame(ferry *f, int source, const fy_frame *frame);

/* An object is given away. Returns whether it is one of those that are away. [lock held] */
bool fy_travel_begin(ferry_scheduling *s, const fy_record *record);

/* So many objects that were given away have been sent, and no answer comes. [lock held] */
void fy_travel_end(ferry_scheduling *s, int count);

/* Notes the answer to `rank`: so many objects have come. False: there is no memory. [lock held] */
bool fy_travel_answer(ferry *f, int rank, uint64_t count);

extern const fy_object_watch fy_balance_watch;

#endif
