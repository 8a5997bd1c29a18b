/* Protocol: how ranks learn where objects are.
 *
 * A message finds its object without any of this: the creator is always asked first, and whoever
 * sent the object on knows where to. A protocol decides who else is told, and so how many forwards
 * there are, for how many messages of its own. All ranks of a job have the same one.
 *
 * Functions but `found` may be NULL. Invariant: news are told by the rank that the object has
 * reached, or by its creator, and never before it is there. Application thread. prema.txt 4.2.4.1.
 */
#ifndef FY_PROTOCOL_H
#define FY_PROTOCOL_H

#include "object/object.h"

typedef struct fy_protocol {
    const char *name;
    /* The object of `record` has come to live here. */
    void (*arrived)(ferry *f, const fy_record *record);
    /* A message has found the object of `envelope` here, where its move `movement` has brought it,
     * after `envelope->hops` forwards, one at least. It may have gone on since. */
    void (*found)(ferry *f, uint32_t movement, const fy_envelope *envelope);
    /* This rank, its creator, has learnt a newer place from the rank where it is. */
    void (*learnt)(ferry *f, const fy_entry *entry);
    /* Every rank keeps what the creator tells it, asked or not, and must hear of the end. */
    bool everyone;
} fy_protocol;

extern const fy_protocol fy_protocol_lazy, fy_protocol_home, fy_protocol_eager;

/* The protocol called `name`, the default for NULL; NULL when there is none. */
const fy_protocol *fy_protocol_find(const char *name);

/* For protocols: tells `rank`, unless it is this one, that `movement` has brought `object` here. */
void fy_protocol_tell(ferry *f, int rank, ferry_object object, uint32_t movement);

#endif
