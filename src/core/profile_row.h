/* The rows of a profile, as ranks count them and the report prints them. */
#ifndef FY_PROFILE_ROW_H
#define FY_PROFILE_ROW_H

#include <stdint.h>

/* Operations that are counted beside frames sent and handled. */
typedef enum fy_profile_kind {
    FY_PROFILE_PUT, /* copies of the caller itself */
    FY_PROFILE_GET,
    FY_PROFILE_APPLICATION, /* handlers, tasks and callbacks */
    FY_PROFILE_IDLE,
    FY_PROFILE_AWAITING,  /* the part of idle while an object was in flight to this rank:
                             fy_profile_awaited */
    FY_PROFILE_PACK,      /* packing and sending objects that leave, on the application thread */
    FY_PROFILE_UNPACK,    /* unpacking objects that arrive, likewise */
    FY_PROFILE_SCHEDULER, /* the scheduler's functions, on the application thread */
    FY_PROFILE_KINDS
} fy_profile_kind;

typedef struct fy_profile_row {
    uint64_t calls, bytes, ns;
} fy_profile_row;

/* Messages to objects are counted by how often they were forwarded. The last counter is for that
 * many forwards or more. */
enum { FY_HOPS_COUNTED = 8 };

#endif
