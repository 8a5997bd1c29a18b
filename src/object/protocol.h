/* Protocol: how ranks learn where objects are. This header finds the table of a protocol; its
 * struct is public.
 *
 * A message finds its object without a protocol: it goes first to the creator, and each rank that
 * has sent the object on knows to which rank. A protocol decides which other ranks are told. So it
 * trades forwards for messages of its own. All ranks of a job have the same protocol.
 *
 * Invariant: the rank that the object has reached, or its creator, tells a new place, and never
 * before the object is there. Application thread. prema.txt 4.2.4.1. */
#ifndef FY_PROTOCOL_H
#define FY_PROTOCOL_H

#include "object/object.h"

extern const ferry_directory_protocol fy_protocol_lazy, fy_protocol_home, fy_protocol_eager;

/* Tells the sender of a message that was forwarded (ferry_directory_protocol.found). */
void fy_protocol_tell_origin(ferry *f, ferry_object object, uint32_t movement, int origin,
                             uint32_t hops);

/* Finds the protocol called `name` (NULL: the default), or opens the shared object at a path, and
 * gives its table. `*handle` is NULL unless a shared object was opened; fy_foreign_close takes it.
 * FERRY_EINVAL: there is no protocol of that name, or the file has none. */
int fy_protocol_find(ferry *f, const char *name, ferry_directory_protocol *out, void **handle);

#endif
