/* Object, inside: the state of the layer, and the records of the objects that are here.
 *
 * Invariant: a directory entry has a record exactly if the object is here, leaving, or awaited. An
 * object has one owner, or is in one migration frame. */
#ifndef FY_OBJECT_H
#define FY_OBJECT_H

#include <stdatomic.h>

#include <ferry/directory.h>

#include "base/table.h"
#include "core/head.h"
#include "object/names.h"
#include "object/record.h"

enum { FY_TYPES_MAX = 256, FY_SPARES_MAX = 64 };

/* The calls by which this layer tells balance of objects. All but `prepare` are called with the
 * lock held. */
typedef struct fy_object_watch {
    int (*prepare)(
        ferry *f); /* before a scheduled object is installed; 0, or the error that prevents it */
    void (*activate)(ferry *f, fy_record *record);
    void (*notify)(ferry *f, fy_record *record);
    void (*remove)(ferry *f, fy_record *record);
    /* `record` leaves at the end of its task, and will not rest again. */
    void (*forget)(ferry *f, fy_record *record);
    /* `count` objects have come from `source`, which wants to know. False: there is no memory. */
    bool (*answer)(ferry *f, int source, uint64_t count);
} fy_object_watch;

/* Messages of one handler that become part of their object's data without a task: functions of a
 * layer above. [application thread] */
typedef struct fy_keeper {
    uint16_t handler; /* UINT16_MAX: none */
    uint16_t silent;  /* another handler: its messages may be lost without a word. 0: none */
    /* Takes the message if it can. False: nothing has happened. */
    bool (*keep)(ferry *f, fy_record *record, const fy_envelope *envelope,
                 const ferry_message *message);
    /* After `keep`, once the message is counted: the object may send itself a message. */
    void (*kept)(ferry *f, fy_record *record);
} fy_keeper;

/* Whether this rank may send messages to objects (credit.c). Written under the control lock. */
typedef struct fy_credit {
    _Atomic uint32_t epoch;
    atomic_int tokens; /* while there are any of this epoch, it must not */
} fy_credit;

/* An object has come whose data are the place of its image (store_calls.h): makes its data. NULL:
 * it cannot. [application thread] */
typedef void *fy_take_fn(ferry *f, fy_record *record, const void *place, size_t size_bytes);

typedef struct fy_objects {
    ferry *f;
    int rank, ranks;
    fy_port *port;
    fy_port_info info;
    fy_table directory;
    fy_names names;
    fy_type *types;
    uint16_t type_count;
    fy_message_store messages;
    fy_credit credit;
    fy_table routes; /* of objects to which messages wait (route.c); made with the first */
    /* The number of objects that the program took from this rank, will install here, or whose type
     * it has still to register. While there are any, no call waits for room or credit. */
    uint32_t carried;
    fy_link spares; /* unused records, FY_SPARES_MAX at most */
    uint32_t spare_count;
    size_t count;          /* objects here */
    uint64_t unhandled;    /* messages that still waited when the layer closed */
    fy_queued_list failed; /* have failed; there was no memory yet to tell their senders */
    fy_link ready;
    fy_link round; /* the objects of `ready` that run now */
    fy_link pinned;
    fy_record *running;
    const fy_object_watch *watch;
    fy_keeper keeper;
    ferry_directory_protocol protocol;
    void *protocol_handle; /* the shared object that has the protocol */
    int told_successor; /* 1 + the rank to which this rank, which leaves, sent its entries; or 0 */
    uint64_t told_out;  /* the objects that had left this rank by then */
    bool helped;        /* the helper thread serves: data of resting objects must be pinned */
    atomic_bool mail;   /* `done` or `arrivals` may have something: set under the lock */
    fy_link done;       /* under the lock: DEPARTED and RETURNED */
    struct fy_arrival *arrivals, *arrivals_last; /* under the lock */
    struct fy_arrival *unregistered; /* with objects of types that are not registered here yet */
    int installed;    /* frames installed in place since the last progress; application thread */
    bool after_death; /* a rank has died: the messages that it was forwarding are missing */
    uint64_t gap_ns;  /* when to look for messages that wait in vain (gaps.c); 0: none */
    struct fy_costs *costs;              /* NULL: nothing is counted */
    bool watched;                        /* `costs` or `store` wants to see each message run */
    const struct fy_object_store *store; /* NULL: there is none */
    void *store_state;                   /* the store's own */
    fy_take_fn *take;                    /* NULL: no rank may send places here */
    const struct fy_object_calls *calls;
} fy_objects;

static inline fy_objects *fy_objects_of(const ferry *f)
{
    return fy_layer_state(f, FY_LAYER_OBJECT);
}

/* [application thread] */
fy_object_state fy_record_state(ferry *f, const fy_record *record);

/* Whether a type of this number is registered. [application thread] */
static inline bool fy_type_is_known(const fy_objects *objects, uint64_t number)
{
    return number < objects->type_count && objects->types[number].ops.size != 0;
}

/* As ferry_object_type_register, but the type gets this number, or takes the place of the one that
 * has it. Numbers from the next to this are left out: they are not registered yet.
 * [application thread] */
FY_SHARED int fy_type_register_as(ferry *f, const ferry_object_ops *ops, uint16_t number);

/* Sets `leaving` of a type. [application thread] */
FY_SHARED void fy_type_watch(ferry *f, ferry_object_type type, fy_leaving_fn *leaving);

/* The next object of `type` that has a record here; it may be leaving or still to come. Start with
 * `*index` 0. Nothing may poll meanwhile. [application thread] */
FY_SHARED bool fy_object_next(ferry *f, ferry_object_type type, size_t *index, ferry_object *out);

/* The record of an object that rests or runs here; NULL if it is not here or is leaving. Takes and
 * releases the lock if the object is scheduled. */
fy_record *fy_record_here(ferry *f, ferry_object object);

/* Returns FERRY_ENOENT, with a text that says why `call` cannot use `record`, which fy_record_here
 * has given. */
int fy_fail_absent(ferry *f, const char *call, ferry_object object, const fy_record *record);

/* Takes an object that rests or is pinned out of its list and makes it MIGRATING, so that it
 * belongs to the caller. False if it has begun to leave meanwhile. [application thread] */
bool fy_record_unlink(ferry *f, fy_record *record);

/* A record of the state AWAITED, or NULL. */
fy_record *fy_record_create(fy_objects *objects, ferry_object object);

/* Frees a record and its queued messages, whose senders have been told. */
void fy_record_destroy(fy_objects *objects, fy_record *record);

/* Reports the messages that wait here, why.c. [application thread] */
void fy_objects_why(ferry *f, fy_why *why);

#endif
