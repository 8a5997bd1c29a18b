/* Kinds of the object layer's frames. */
#ifndef FY_OBJECT_KINDS_H
#define FY_OBJECT_KINDS_H

#include "core/layer.h"

enum {
    FY_KIND_MESSAGE = FY_KINDS_OF_OBJECT, /* message to an object (wire.h) */
    FY_KIND_LOCATION,                     /* where an object is */
    FY_KIND_ARRIVAL,                      /* control lane, either thread: a migrating object */
    FY_KIND_PIGGYBACK,                    /* a migrating object in the frame of its message */
    FY_KIND_HANDOVER,                     /* the knowledge of a leaving rank about objects */
    FY_KIND_CREDIT,                       /* control lane, either thread: tokens (credit.c) */
};

#endif
