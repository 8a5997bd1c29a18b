/* Entry: the knowledge of this rank about an object, here or elsewhere. */
#ifndef FY_OBJECT_ENTRY_H
#define FY_OBJECT_ENTRY_H

#include "core/membership.h"
#include "object/object.h"

/* Whether an object went from this rank to the place that its entry names, and no rank has reported
 * it from there yet. CARRIED: the program takes it there, and no message waits for it. ANNOUNCED:
 * messages may wait, so both ranks count it in fy_objects.carried. */
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
    uint8_t inherited; /* told by a rank that leaves, or to this rank as the home */
} fy_entry;

static inline fy_entry *fy_entry_find(const fy_objects *objects, ferry_object object)
{
    return fy_table_find_sized(&objects->directory, object.word, sizeof(fy_entry));
}

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

/* Whether this rank knows more of the object than a rank that has only sent to it. */
static inline bool fy_entry_counts(const fy_entry *entry)
{
    return entry->hosted || entry->inherited;
}

/* Whether `object` can be a name: it has a number, and its creator is a rank of the job. */
static inline bool fy_object_is_name(const fy_objects *objects, ferry_object object)
{
    return (uint32_t)object.word != 0 && fy_object_creator(object) < objects->ranks;
}

/* The rank that knows of `object` if no other rank does: its creator or, if that has left, the
 * creator's successor. If this rank has died, another stands in for it, which knows only what it
 * has been told since (ends.c). Ranks that know of the same deaths have the same home. */
FY_SHARED int fy_object_home(const fy_objects *objects, ferry_object object);

/* Whether this rank is the home of `object`, and stands in for no other. Then an object without an
 * entry has ended. */
static inline bool fy_object_is_ours(const fy_objects *objects, ferry_object object)
{
    return fy_peer_successor(objects->f, fy_object_creator(object)) == objects->rank;
}

/* Where to look for an object that is not here. */
static inline int fy_entry_route(const fy_objects *objects, const fy_entry *entry)
{
    return fy_peer_successor(objects->f, entry->guess);
}

/* The rank of an object, or the rank to which a message to it goes; -1: there is no such object.
 * `entry` is the object's, or NULL. */
int fy_object_place(const fy_objects *objects, ferry_object object, const fy_entry *entry);

/* Finds or makes the entry; a new one points at the creator. FERRY_ENOMEM. */
int fy_entry_make(fy_objects *objects, ferry_object object, fy_entry **out);

/* Tells `rank` where `object` is, or that it is destroyed. */
void fy_location_send(ferry *f, int rank, ferry_object object, int place, uint32_t movement);

/* The same after a death, and when this rank leaves: `rank`, the home, keeps it. It is work. */
void fy_location_send_as_work(ferry *f, int rank, ferry_object object, int place,
                              uint32_t movement);

enum {
    FY_PLACE_NONE = -1,   /* it is destroyed */
    FY_PLACE_LOST = -2,   /* it is destroyed, and a message was lost with it */
    FY_PLACE_ASK = -3,    /* asks the creator: answered if it is destroyed or at a newer place */
    FY_PLACE_CARRIED = -4 /* the program carries it to the rank that gets this notice */
};

/* How many words a location notice has. One that counts as work has one more. */
enum { FY_PLACE_WORDS = 2, FY_PLACE_WORDS_COUNTED };

/* Its second word. */
static inline uint64_t fy_place_word(int place, uint32_t movement)
{
    return (uint64_t)(uint32_t)place << 32 | movement;
}

fy_verdict fy_location_frame(ferry *f, int source, const fy_frame *frame);

#endif
