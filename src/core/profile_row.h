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
    FY_PROFILE_AWAITING,  /* of that, while an object was on its way here: fy_profile_awaited */
    FY_PROFILE_PACK,      /* objects that leave, and sending them, by the application thread */
    FY_PROFILE_UNPACK,    /* and making those that arrive */
    FY_PROFILE_SCHEDULER, /* the scheduler's functions, on the application thread */
    FY_PROFILE_KINDS
} fy_profile_kind;

typedef struct fy_profile_row {
    uint64_t calls, bytes, ns;
} fy_profile_row;

/* Messages to objects are counted by how often they were forwarded; the last is for more too. */
enum { FY_HOPS_COUNTED = 8 };

#endif
