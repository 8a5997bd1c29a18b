/* Protocol: how ranks learn where objects are: the public struct, and where one comes from.
 *
 * A message finds its object without any of this: the creator is always asked first, and whoever
 * sent the object on knows where to. A protocol decides who else is told, and so how many forwards
 * there are, for how many messages of its own. All ranks of a job have the same one.
 *
 * Invariant: a new place is told by the rank that the object has reached, or by its creator, and
 * never before the object is there. Application thread. prema.txt 4.2.4.1. */
#ifndef FY_PROTOCOL_H
#define FY_PROTOCOL_H

#include "object/object.h"

extern const ferry_directory_protocol fy_protocol_lazy, fy_protocol_home, fy_protocol_eager;

/* Finds the protocol called `name`, the default for NULL, or opens the shared object at a path, and
 * gives its table. `*handle` is NULL unless a shared object was opened; fy_foreign_close takes it.
 * FERRY_EINVAL: there is no protocol of that name, or the file has none. */
int fy_protocol_find(ferry *f, const char *name, ferry_directory_protocol *out, void **handle);

#endif
