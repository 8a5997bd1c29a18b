/* Object, inside: records of the objects that are here, the directory of the objects that are
 * elsewhere, and the data of both that balance needs.
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
 * needs no lock.
 *
 * Invariant: a directory entry has a record exactly if the object is here, leaving, or awaited. An
 * object has one owner, or is in one migration frame. */
#ifndef FY_OBJECT_H
#define FY_OBJECT_H

#include <stdatomic.h>

#include <ferry/directory.h>
#include <ferry/object.h>
#include <ferry/scheduler.h>

#include "base/list.h"
#include "base/table.h"
#include "core/handler.h"
#include "core/membership.h"
#include "core/report/report.h"
#include "core/run.h"
#include "core/work.h"
#include "object/affinity.h"
#include "object/kinds.h"
#include "object/names.h"
#include "object/queued.h"
#include "object/sources.h"

enum { FY_TYPES_MAX = 256, FY_SPARES_MAX = 64 };

typedef enum fy_object_state {
    FY_AWAITED,
    FY_RESTING,
    FY_RUNNING,
    FY_PINNED,
    FY_MIGRATING,
    FY_DEPARTED,
    FY_RETURNED
} fy_object_state;

/* An object leaves: called on the thread that packs, before it asks for the packed size. */
typedef void fy_leaving_fn(ferry *f, fy_thread thread, void *data);

typedef struct fy_type {
    ferry_object_ops ops;
    fy_leaving_fn *leaving; /* NULL: none */
    char name[32];
    bool plain; /* all its callbacks for data are Ferry's: malloc, memcpy and free */
} fy_type;

/* Sets `leaving` of a type. [application thread] */
FY_SHARED void fy_type_watch(ferry *f, ferry_object_type type, fy_leaving_fn *leaving);

/* Sets default callbacks where the program gave NULL. False: too many are NULL. */
FY_SHARED bool fy_flat_fill(ferry_object_ops *ops);

/* `pack` of data that are one block: copies them. */
void fy_flat_pack(ferry *f, const void *data, void *buffer, size_t size_bytes);

static inline size_t fy_packed_bytes(ferry *f, const fy_type *type, const void *data)
{
    const ferry_object_ops *ops = &type->ops;
    return ops->packed_size != NULL ? ops->packed_size(f, data) : ops->flat_bytes;
}

/* An object that is here. */
typedef struct fy_record {
    fy_link link; /* ready (not scheduled), pinned, leaving or done */
    fy_object_state state;
    bool scheduled;
    bool out;             /* a store has its data on disk; `data` is the store's */
    bool handed;          /* its data were given away in place: not to be destroyed */
    bool destroy_pending; /* to be destroyed when its handler returns */
    bool worked; /* it counts as work: it is in flight, and the program does not carry it */
    bool due;    /* AWAITED: the program will install it here */
    int target;  /* the rank to which it moves, now or when its handler returns; else -1 */
    int from;    /* AWAITED: the rank that says it has sent it */
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

/* Whether an object went from this rank to the place that its entry names, and no rank has reported
 * it from there yet. CARRIED: the program takes it there, and no message waits for it. ANNOUNCED:
 * messages may wait, so both ranks count it in fy_carried_of. */
enum fy_left { FY_SEEN, FY_LEFT, FY_CARRIED, FY_ANNOUNCED };

/* A slot of the directory: the knowledge of this rank about an object. `sequence` is not beside
 * `movement`, because each message changes it: one load of both would have to wait for the last
 * store. */
typedef struct fy_entry {
    uint64_t object;
    fy_record *record;
    uint32_t movement;
    int32_t guess;
    uint32_t sequence; /* of the next message from here */
    uint8_t hosted;    /* the object has been here */
    uint8_t left;      /* fy_left */
    uint8_t dead;      /* a tombstone */
} fy_entry;

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
} fy_object_watch;

/* The calls of a store (src/store) for the objects of this rank. The application thread makes all.
 */
typedef struct fy_object_store {
    /* The data of `record` is here now. */
    void (*keep)(ferry *f, fy_record *record);
    /* Brings the data of `record`, which nothing else uses, to memory. FERRY_ESYSTEM: it could not,
     * and has logged the reason. */
    int (*fetch)(ferry *f, fy_record *record);
    /* This rank leaves. Whether the data of `record` can go to another rank. If not, it has logged
     * the reason, and that the data are lost. */
    bool (*spare)(ferry *f, fy_record *record);
    /* ferry_object_data of an object that is on disk: NULL, with an error text. */
    void *(*absent)(ferry *f, ferry_object object);
    void (*gone)(fy_record *record); /* `record`, which the store has, is freed */
    void (*progress)(ferry *f);      /* part of every poll */
    void (*end)(ferry *f);           /* the layer closes; all records are freed */
} fy_object_store;

/* The functions that a store calls: a table takes less space than exported functions. */
typedef struct fy_object_calls {
    fy_object_state (*state)(ferry *f, const fy_record *record);
    bool (*unlink)(ferry *f, fy_record *record);
    void (*rest)(ferry *f, fy_record *record);
    void (*note_loss)(ferry *f, int error, const char *format, ...)
        __attribute__((format(printf, 3, 4)));
    void (*lock)(ferry *f);
    void (*unlock)(ferry *f);
} fy_object_calls;

/* Migration frames that have come together and are not all installed yet. */
typedef struct fy_arrival {
    struct fy_arrival *next;
    int source;
    bool block;  /* `data` is a block of the port; else it follows the arrival */
    void *given; /* the object's data, if the program carried them; else NULL */
    const void *data;
    size_t size_bytes;
    size_t done_bytes; /* of migration frames that were installed */
    fy_record *record; /* of the next object, filled as far as there was memory; or NULL */
    uint64_t since_ns; /* when making its data first failed; or 0 */
} fy_arrival;

/* The cost of an object for this rank (costs.c): a slot of a table. */
typedef struct fy_cost {
    uint64_t object;
    uint64_t handler_ns;         /* wall time of its handlers */
    uint64_t message_ns;         /* delivery and forwarding of messages to it */
    uint64_t pack_ns, unpack_ns; /* of its moves, on either thread */
    uint64_t transit_ns;         /* between its leaving elsewhere and its installation here */
    uint32_t handled, forwarded; /* messages */
    uint32_t in, out;            /* moves */
    const char *type; /* its name, since the object may be gone later; NULL: never here */
} fy_cost;

typedef struct fy_moment {
    uint64_t start_ns, handler_ns; /* of all handlers so far: to be subtracted */
} fy_moment;

typedef struct fy_trail {
    fy_trail_entry *entries;
    uint32_t count, room;
    uint64_t missed; /* entries that had no room */
    double load;     /* of the message that is handled next */
    bool on;
} fy_trail;

typedef struct fy_costs {
    fy_table table;
    fy_trail trail;
    fy_cost others;
    fy_moment moment;
} fy_costs;

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
    ferry_directory_protocol protocol;
    void *protocol_handle; /* the shared object that has the protocol */
    int told_successor; /* 1 + the rank to which this rank, which leaves, sent its entries; or 0 */
    uint64_t told_out;  /* the objects that had left this rank by then */
    bool helped;        /* the helper thread serves: data of resting objects must be pinned */
    atomic_bool mail;   /* `done` or `arrivals` may have something: set under the lock */
    fy_link done;       /* under the lock: DEPARTED and RETURNED */
    fy_arrival *arrivals, *arrivals_last; /* under the lock */
    fy_arrival *unregistered; /* arrivals with objects of types that are not registered here yet */
    int installed;    /* frames installed in place since the last progress; application thread */
    bool after_death; /* a rank has died: the messages that it was forwarding are missing */
    uint64_t gap_ns;  /* when to look for messages that wait in vain (gaps.c); 0: none */
    fy_costs *costs;  /* NULL: nothing is counted */
    bool watched;     /* `costs` or `store` wants to see each message run */
    const fy_object_store *store; /* NULL: there is none */
    void *store_state;            /* the store's own */
    const fy_object_calls *calls;
} fy_objects;

static inline fy_objects *fy_objects_of(const ferry *f)
{
    return fy_layer_state(f, FY_LAYER_OBJECT);
}

static inline fy_entry *fy_entry_find(const fy_objects *objects, ferry_object object)
{
    return fy_table_find_sized(&objects->directory, object.word, sizeof(fy_entry));
}

/* [application thread] */
fy_object_state fy_record_state(ferry *f, const fy_record *record);

/* A rank has reported the object of `entry` from its new place, or none ever will. */
void fy_entry_met(fy_objects *objects, fy_entry *entry);
static inline void fy_entry_seen(fy_objects *objects, fy_entry *entry)
{
    if (entry->left == FY_ANNOUNCED)
        fy_entry_met(objects, entry);
    entry->left = FY_SEEN;
}

/* Before this rank sends a message to the object of `entry`: if the program carries the object, the
 * rank to which it goes learns that it is to come. */
void fy_entry_announce(fy_objects *objects, fy_entry *entry);
static inline void fy_entry_expect(fy_objects *objects, fy_entry *entry)
{
    if (entry->left == FY_CARRIED)
        fy_entry_announce(objects, entry);
}

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

/* Whether `object` can be a name: it has a number, and its creator is a rank of the job. */
static inline bool fy_object_is_name(const fy_objects *objects, ferry_object object)
{
    return (uint32_t)object.word != 0 && fy_object_creator(object) < objects->ranks;
}

/* The rank that knows of `object` if no other rank does: its creator, or the creator's successor.
 */
static inline int fy_object_home(const fy_objects *objects, ferry_object object)
{
    return fy_peer_successor(objects->f, fy_object_creator(object));
}

/* Where to look for an object that is not here. */
static inline int fy_entry_route(const fy_objects *objects, const fy_entry *entry)
{
    return fy_peer_successor(objects->f, entry->guess);
}

/* The rank of an object, or the rank to which a message to it goes; -1: there is no such object.
 * `entry` is the object's, or NULL. */
static inline int fy_object_place(const fy_objects *objects, ferry_object object,
                                  const fy_entry *entry)
{
    if (entry == NULL) {
        int home = fy_object_home(objects, object);
        return home == objects->rank ? -1 : home;
    }
    if (entry->record != NULL)
        return objects->rank;
    return entry->dead ? -1 : fy_entry_route(objects, entry);
}

/* Leaving, leave.c. */

bool fy_objects_settled(ferry *f, int rank);
bool fy_objects_leave(ferry *f, int successor);

/* Passes on an object from `source` whose type this rank does not know. `record` has all parts of
 * it but the data. These are `data_bytes` long or, if `handed`, in the shared heap. After an error
 * (FERRY_EAGAIN, FERRY_ENOMEM) nothing has happened; otherwise `record` is taken. */
int fy_record_pass_on(ferry *f, int source, bool handed, fy_record *record, size_t data_bytes);

fy_verdict fy_handover_frame(ferry *f, int source, const fy_frame *frame);

/* Directory and life, directory.c. */

/* Finds or makes the entry; a new one points at the creator. FERRY_ENOMEM. */
int fy_entry_make(fy_objects *objects, ferry_object object, fy_entry **out);

/* Tells `rank` where `object` is, or that it is destroyed. */
void fy_location_send(ferry *f, int rank, ferry_object object, int place, uint32_t movement);

enum {
    FY_PLACE_NONE = -1,   /* it is destroyed */
    FY_PLACE_LOST = -2,   /* it is destroyed, and a message was lost with it */
    FY_PLACE_ASK = -3,    /* asks the creator: answered when it is destroyed */
    FY_PLACE_CARRIED = -4 /* the program carries it to the rank that gets this notice */
};

fy_verdict fy_location_frame(ferry *f, int source, const fy_frame *frame);

/* A record of the state AWAITED, or NULL. */
fy_record *fy_record_create(fy_objects *objects, ferry_object object);

/* Frees a record and its queued messages, whose senders have been told. */
void fy_record_destroy(fy_objects *objects, fy_record *record);

/* Delivery, deliver.c. */

fy_verdict fy_message_frame(ferry *f, int source, const fy_frame *frame);

/* Called before a poll for another tag keeps a message. */
fy_hold_fn fy_message_hold;

/* As fy_message_frame, while costs are counted. */
fy_verdict fy_message_frame_counted(ferry *f, int source, const fy_frame *frame);

/* Gives a queued message to the object of `record`, in its turn. FERRY_ENOMEM: it still belongs to
 * the caller. */
int fy_record_deposit(ferry *f, fy_record *record, fy_queued_message *queued);

/* Reserves all memory that fy_record_admit of `messages` needs. FERRY_ENOMEM. */
int fy_record_reserve(fy_record *record, const fy_queued_list *messages);

/* Adds `messages`, for which places were reserved. */
void fy_record_admit(ferry *f, fy_record *record, fy_queued_list *messages);

/* Sends a message on to where the directory says its object went. FERRY_ENOMEM: nothing happened.
 * Any other failure ends the message. */
int fy_message_forward(ferry *f, fy_envelope *envelope, const ferry_message *message, int rank,
                       uint32_t movement);

/* Puts a message on the wire. [never blocks] */
int fy_message_post(ferry *f, int rank, const fy_envelope *envelope, const ferry_message *message);

/* The message has been handled (0) or has failed: ends its operation and its share of the work. */
void fy_message_end_op(ferry *f, int origin, uint32_t op, int error);
static inline void fy_message_end(ferry *f, const fy_envelope *envelope, int error)
{
    if (envelope->op != 0)
        fy_message_end_op(f, envelope->origin, envelope->op, error);
    fy_work_finished(f, 1);
}

/* Fails a message to a destroyed object, and tells its sender to forget the object. */
void fy_message_bounce(ferry *f, const fy_envelope *envelope);

/* Fails and frees queued messages (FERRY_ENOENT: as fy_message_bounce), as far as there is memory
 * to tell their senders. fy_failed_tell does the rest later, and returns how many. */
void fy_queued_list_fail(ferry *f, fy_queued_list *messages, int error);
int fy_failed_tell(ferry *f);

/* Makes the overdue early messages of an object pending, without the messages missing before them.
 * Marks the other early messages as overdue. Returns whether there were early messages. */
bool fy_record_close_gaps(ferry *f, fy_record *record);

/* Bytes held by origin, held.c. */

/* Sends tokens to ranks of which this rank holds too much. With `give`, also takes back tokens from
 * ranks of which it does not hold too much any more. */
void fy_held_settle(ferry *f, bool give);

/* A message of `origin` was forwarded to `rank`. If too many bytes wait for room there, `origin`
 * will get a token. */
void fy_held_passed_on(ferry *f, int origin, int rank);

/* The object of `record` is about to leave: chooses the queued messages that take tokens along.
 * Called only while there are tokens. */
void fy_held_mark(ferry *f, const fy_record *record);

/* The object has left, and its queued messages will be freed: their tokens do not count here any
 * more. Called only while there are tokens. */
void fy_held_leave(ferry *f, const fy_record *record);

/* The object has not left after all: its queued messages take no tokens along. */
void fy_held_stay(ferry *f, const fy_record *record);

/* The object has arrived: the tokens of its queued messages count here. */
void fy_held_arrive(ferry *f, const fy_record *record);

/* Gaps, gaps.c. */

/* A rank has gone. */
void fy_gaps_peer_gone(ferry *f, int rank);

/* A queued message waits before its turn. After a death it may wait in vain. */
void fy_gaps_watch(ferry *f);

/* If `gap_ns` has passed, makes the messages that have waited in vain for long pending. Returns 1
 * if it has looked, 0 if it is too early. */
int fy_gaps_close(ferry *f);

/* Running, run.c. */

/* Runs a message on its object, which is RUNNING. True: it is still RUNNING, and the caller lets it
 * rest. False: the handler has moved or destroyed it, and the record may be gone. */
bool fy_record_run(ferry *f, fy_record *record, fy_doing what, const fy_envelope *envelope,
                   const ferry_message *message);

/* Carries out what the handler has asked for: destroys or moves its object. */
void fy_record_apply(ferry *f, fy_record *record);

/* As fy_record_run, inline if no rank waits for the handler's end and nothing is counted. */
static inline bool fy_record_handle(ferry *f, fy_record *record, fy_doing what,
                                    const fy_envelope *envelope, const ferry_message *message)
{
    fy_objects *objects = fy_objects_of(f);
    uint16_t index = message->handler.index;
    fy_any_fn *fn = fy_handler_find(f, index, FY_HANDLER_OBJECT);
    if (fn == NULL || envelope->op != 0 || objects->watched || !fy_run_begin(f, what, index))
        return fy_record_run(f, record, what, envelope, message);
    objects->running = record;
    ((ferry_object_fn *)fn)(f, record->object, record->data, envelope->origin, message);
    objects->running = NULL;
    fy_run_end(f, what);
    fy_stats(f)->messages_handled++;
    fy_work_finished(f, 1);
    if (!record->destroy_pending && record->target < 0)
        return true;
    fy_record_apply(f, record);
    return false;
}

/* As fy_record_run for a queued message, which it frees. */
bool fy_queued_run(ferry *f, fy_record *record, fy_doing what, fy_queued_message *queued);

/* Makes an object of this thread RESTING: activates it, or makes it ready. */
void fy_record_rest(ferry *f, fy_record *record);

/* fy_record_rest, inline for an object without waiting messages. */
static inline void fy_record_rest_inline(ferry *f, fy_record *record)
{
    if (record->scheduled || record->pending.count != 0)
        fy_record_rest(f, record);
    else
        record->state = FY_RESTING;
}

/* fy_record_rest of a scheduled object. [lock held] */
void fy_record_activate(ferry *f, fy_record *record);

/* Ends an object, which is in no list: fails its queued messages, destroys its data, and reports
 * its end. */
void fy_record_end(ferry *f, fy_record *record);

/* Runs the oldest message of each ready object. Returns how many. */
int fy_ready_run(ferry *f);

/* Unpins the pinned objects. Returns how many. */
int fy_pins_drop(ferry *f);

/* Looks up where the dependencies of a record are. [application thread] */
void fy_record_place(const fy_objects *objects, fy_record *record);

/* Adds a task's load to the account of a scheduled record and tells the watch. [lock held] */
void fy_record_task_added(ferry *f, fy_record *record, const fy_queued_message *queued);

/* The load of a queued message as a task of `record`, whose data is here. [application thread] */
double fy_record_load(ferry *f, const fy_record *record, const ferry_message *message);

/* The queued messages of `record` are tasks from now on. [application thread] */
void fy_record_schedule(ferry *f, fy_record *record);

/* Counts the tasks of a scheduled record that no scheduler has, and asks their loads. [application
 * thread] */
void fy_record_weigh(ferry *f, fy_record *record);

/* A task of `record` has run, and may have changed the loads of the tasks that wait. The type is
 * asked for them again: after each task if they are few, otherwise so seldom that each task takes
 * FY_LOADS_PER_TASK calls. [application thread] */
enum { FY_LOADS_PER_TASK = 16 };
static inline void fy_record_worked(ferry *f, fy_record *record)
{
    if (record->type->ops.load != NULL && record->item.pending != 0 &&
        ++record->unasked * FY_LOADS_PER_TASK >= record->item.pending)
        fy_record_weigh(f, record);
}

/* Takes the oldest task of a scheduled record out of its account. [lock held] */
fy_queued_message *fy_record_task_take(fy_record *record);

/* Migration, migrate.c, piggyback.c and install.c. */

/* Packs and sends MIGRATING objects that are in no list, all to one rank. Small ones go in one
 * frame. Then puts each on the list `done`, as DEPARTED or RETURNED. Returns 0, or the error of the
 * last one that returned. [either thread, lock not held] */
enum { FY_SHIP_MAX = 16 };
int fy_records_ship(ferry *f, fy_thread thread, fy_record *const *records, int count);

/* Starts the migration of an object that rests and is in no list. Finishes it here unless the
 * object returned. [application thread] */
int fy_record_move(ferry *f, fy_record *record, int rank);

/* Only sends an object as a migration frame to `record->target`. [application thread] */
int fy_record_send(ferry *f, fy_record *record);

/* The data of an object have gone to `rank` by other means. It leaves as after a migration by
 * Ferry. [application thread] */
void fy_record_depart(ferry *f, fy_record *record, int rank);

/* Completes the moves of the objects on the list `done`. Returns how many. */
int fy_done_drain(ferry *f);

fy_verdict fy_arrival_frame(ferry *f, int source, const fy_frame *frame);

/* Appends the objects that have arrived to those that wait to be installed. [lock held] */
void fy_arrival_add(fy_objects *objects, fy_arrival *arrival);

/* Finds the entry of an object that arrives, or makes it. FERRY_EAGAIN: its last stay here has not
 * ended. FERRY_EINVAL: it cannot be in flight to this rank. */
int fy_entry_due(ferry *f, ferry_object object, uint32_t movement, fy_entry **out);

/* The object of `record` is here from now on, with the entry that fy_entry_due gave. Returns the
 * queued messages that came before it. They belong to the caller, who admits them. */
fy_queued_list fy_record_settle(fy_objects *objects, fy_record *record);

/* Sends a MIGRATING object that is in no list together with its message, piggyback.c. False: it
 * must go as a migration frame. */
bool fy_piggyback_send(ferry *f, fy_record *record, int *error);

fy_verdict fy_piggyback_frame(ferry *f, int source, const fy_frame *frame);

/* Installs the objects of an arrival that are not installed yet. FERRY_ENOMEM, FERRY_EAGAIN: some
 * are left, try again later. Any other result: the arrival is finished. */
int fy_arrival_install(ferry *f, fy_arrival *arrival);

/* Installs the objects that have arrived. Returns how many. */
int fy_arrivals_install(ferry *f);

/* A type was registered, or this rank leaves: tries the arrivals again that may have waited for
 * that. */
void fy_unregistered_retry(ferry *f);

/* Whether `object` has arrived and is not installed yet. */
bool fy_arrival_waits(ferry *f, ferry_object object);

/* Closing: destroys the objects that have arrived. */
void fy_arrivals_end(ferry *f);

/* Costs, costs.c. All but init, fini and now only where `costs` is not NULL. [application thread]
 */
int fy_costs_init(ferry *f);
void fy_costs_fini(fy_objects *objects);

/* The account of an object. The pointer is valid until the next call. */
fy_cost *fy_cost_of(fy_objects *objects, ferry_object object);

/* The time; 0, without reading the clock, if nothing is counted. [either thread] */
static inline uint64_t fy_cost_now(const fy_objects *objects)
{
    return objects->costs != NULL ? objects->port->ops->host.now(objects->port) : 0;
}

/* A handler has run since `start_ns`, for the message of that envelope. */
void fy_cost_handled(fy_objects *objects, const fy_envelope *envelope, uint64_t start_ns);

/* trail.c, while costs are counted: a handler has run; or a message has been sent, by the running
 * handler or by the program. */
void fy_trail_handled(fy_objects *objects, const fy_envelope *envelope, uint64_t start_ns,
                      uint64_t passed_ns);
void fy_trail_sent(fy_objects *objects, const fy_envelope *envelope, const ferry_message *message);

/* Brackets the work for a message. The time of handlers that run meanwhile is not counted with it.
 */
fy_moment fy_cost_moment(const fy_objects *objects);
void fy_cost_message(fy_objects *objects, ferry_object object, const fy_moment *before,
                     bool forwarded);

/* Reports the messages that wait here, why.c. [application thread] */
void fy_objects_why(ferry *f, fy_why *why);

/* Adds a line per object to a trace file. */
void fy_costs_write(ferry *f, FILE *out);

static inline fy_record *fy_record_of(ferry_schedulable *item)
{
    return (fy_record *)(void *)((char *)item - offsetof(fy_record, item));
}

#endif
