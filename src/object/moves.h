/* Moves: objects leave this rank, and objects arrive. */
#ifndef FY_OBJECT_MOVES_H
#define FY_OBJECT_MOVES_H

#include "core/operation.h"
#include "object/entry.h"
#include "object/object.h"

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

/* Packs and sends MIGRATING objects that are in no list, all to one rank. Small ones go in one
 * frame. Then puts each on the list `done`, as DEPARTED or RETURNED. Returns 0, or the error of the
 * last one that returned. `*answered` becomes the number of those whose arrival the target will
 * tell this rank (watch->answer). [either thread, lock not held] */
enum { FY_SHIP_MAX = 16 };
int fy_records_ship(ferry *f, fy_thread thread, fy_record *const *records, int count,
                    int *answered);

/* Puts an object that is in no list on the list `done`, as DEPARTED or RETURNED. From then on it
 * belongs to the application thread. [either thread, lock held] */
void fy_record_set_down(ferry *f, fy_record *record, fy_object_state state);

/* Starts the migration of an object that rests and is in no list. Finishes it here unless the
 * object returned. [application thread] */
int fy_record_move(ferry *f, fy_record *record, int rank);

/* Only sends an object as a migration frame to `record->target`. [application thread] */
int fy_record_send(ferry *f, fy_record *record);

/* The data of an object have gone to `rank` by other means. It leaves as after a migration by
 * Ferry. [application thread] */
void fy_record_depart(ferry *f, fy_record *record, int rank);

/* Tells the senders of queued messages that these have moved to `rank`. FERRY_ENOMEM: some senders
 * have not been told. It does no harm to tell one again. */
static inline int fy_senders_tell(ferry *f, const fy_queued_list *messages, int rank,
                                  uint32_t movement)
{
    for (const fy_queued_message *queued = messages->head; queued != NULL; queued = queued->next) {
        if (queued->envelope.op == 0)
            continue;
        if (!fy_op_end_reserve(f))
            return FERRY_ENOMEM;
        fy_op_moved_remote(f, queued->envelope.origin, queued->envelope.op, rank, movement);
    }
    return 0;
}

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

/* Leaving, leave.c. */

bool fy_objects_settled(ferry *f, int rank);
bool fy_objects_leave(ferry *f, int successor);

/* Passes on an object from `source` whose type this rank does not know. `record` has all parts of
 * it but the data. These are `data_bytes` long or, if `handed`, in the shared heap. After an error
 * (FERRY_EAGAIN, FERRY_ENOMEM) nothing has happened; otherwise `record` is taken. */
int fy_record_pass_on(ferry *f, int source, bool handed, fy_record *record, size_t data_bytes);

fy_verdict fy_handover_frame(ferry *f, int source, const fy_frame *frame);

#endif
