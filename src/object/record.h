/* Record: an object that is here, and its type.
 *
 * States of a record, and who changes them:
 *
 *     AWAITED -> RESTING <-> RUNNING          a message came before the object; its handlers run
 *                RESTING <-> PINNED           the application holds its data until the next poll
 *                RESTING  -> MIGRATING -> DEPARTED -> (gone)
 *                            MIGRATING -> RETURNED -> RESTING     it could not be sent
 *
 * Threads: the directory, names, types and queued messages belong to the application thread. The
 * helper thread may also migrate a scheduled object. So `state`, `link`, `item`, `pending`, `early`
 * and `sources` of its record are touched only under fy_control_lock, with two exceptions. While
 * the record is MIGRATING, nobody writes these fields, and the thread that migrates it reads them.
 * The application thread owns all fields of `fy_objects.running`. `late` belongs to the application
 * thread in every state. A record that is not scheduled belongs to the application thread alone and
 * needs no lock. */
#ifndef FY_OBJECT_RECORD_H
#define FY_OBJECT_RECORD_H

#include <ferry/object.h>
#include <ferry/scheduler.h>

#include "base/list.h"
#include "object/affinity.h"
#include "object/queued.h"
#include "object/sources.h"
#include "port/port.h"

typedef enum fy_object_state {
    FY_AWAITED,
    FY_RESTING,
    FY_RUNNING,
    FY_PINNED,
    FY_MIGRATING,
    FY_DEPARTED,
    FY_RETURNED
} fy_object_state;

/* By how much a move raises the movement number of an object. The number below that of a move is
 * for messages that could not follow it (forward.c). */
enum { FY_MOVE_STEP = 2 };

/* An object leaves: called on the thread that packs, before it asks for the packed size. */
typedef void fy_leaving_fn(ferry *f, fy_thread thread, void *data);

typedef struct fy_type {
    ferry_object_ops ops;
    fy_leaving_fn *leaving; /* NULL: none */
    char name[32];
    bool plain; /* all its callbacks for data are Ferry's: malloc, memcpy and free */
} fy_type;

/* An object that is here. */
typedef struct fy_record {
    fy_link link; /* ready (not scheduled), pinned, leaving or done */
    fy_object_state state;
    bool scheduled;
    bool out;             /* a store has its data on disk; `data` is the store's */
    bool placed;          /* it leaves as the place of its image on disk (store_calls.h) */
    bool handed;          /* its data were given away in place: not to be destroyed */
    bool destroy_pending; /* to be destroyed when its handler returns */
    bool worked;    /* it counts as work: it is in flight, and the program does not carry it */
    bool due;       /* AWAITED: the program will install it here */
    uint8_t doubts; /* AWAITED, and nobody knows whether it can come (fy_entry_doubt) */
    bool returned;  /* the scheduler is told that it could not be sent */
    bool travels;   /* MIGRATING: the balance layer wants to know when it arrives */
    int target;     /* the rank to which it moves, now or when its handler returns; else -1 */
    int from;       /* AWAITED: the rank that says it has sent it */
    uint32_t movement;
    ferry_object object;
    const fy_type *type;
    uint16_t type_index;
    void *data;
    uint64_t left_ns; /* while costs are counted: when its packing began, */
    uint64_t pack_ns; /* and how long it took */
    double load;      /* of a task, if its type has no function that tells */
    uint32_t unasked; /* tasks that have run since the type was asked for the loads of the others */
    fy_affinity *affinity; /* NULL: none */
    ferry_schedulable item;
    struct fy_stored *stored; /* what a store knows of it; NULL: no store has it */
    fy_sources sources;
    fy_queued_list pending; /* in their turn, waiting to run */
    fy_queued_list early;   /* before their turn; sorted */
    fy_queued_list late;    /* arrived while it was leaving or awaited */
} fy_record;

static inline bool fy_record_is_here(const fy_record *record)
{
    return record->state == FY_RESTING || record->state == FY_RUNNING || record->state == FY_PINNED;
}

static inline fy_record *fy_record_of(ferry_schedulable *item)
{
    return (fy_record *)(void *)((char *)item - offsetof(fy_record, item));
}

#endif
