/* Ends: how all ranks that have dealt with an object forget it. Application thread. */
#ifndef FY_ENDS_H
#define FY_ENDS_H

#include "object/entry.h"
#include "object/object.h"

/* Reports that the object of `record`, whose entry is `entry`, does not exist any more. The report
 * goes to its creator, and from there to all ranks that have dealt with it. `entry` becomes a
 * tombstone or is gone. */
void fy_object_bury(ferry *f, fy_entry *entry, const fy_record *record);

/* Tells `rank` that `object` has ended, and the `ranks` that have dealt with it. */
void fy_end_send(ferry *f, int rank, ferry_object object, uint32_t movement, const fy_source *ranks,
                 uint32_t count);

/* A location notice without a place. */
fy_verdict fy_end_frame(ferry *f, int source, const fy_frame *frame);

/* Whether the object of `entry`, which has a record, leaves this rank, or has left and the
 * application thread has still to complete the move. */
bool fy_entry_leaves(ferry *f, const fy_entry *entry);

/* If messages wait here for the object of `entry`, and its home has died or the rank from which the
 * program carries it, they fail after 50 calls, a second of them (gaps.c). Returns whether they
 * still wait. */
bool fy_entry_doubt(ferry *f, fy_entry *entry);

/* A rank has died. If the object of `entry` has been here, tells its home where it is. The notice
 * is work: the next quiescence waits for it. */
void fy_home_tell(ferry *f, const fy_entry *entry);

/* Asks the home whether the object, for which messages wait here, can still come. It answers if the
 * object has ended. */
void fy_home_ask(ferry *f, ferry_object object, uint32_t movement);

/* `rank` has gone, so no more frames come from it. Objects that were to come from it are lost, and
 * messages that wait for them fail. */
void fy_directory_peer_gone(ferry *f, int rank, bool died);

#endif
