/* Calls: functions of this layer for the layers above it that are other libraries. A table takes
 * less space than exported functions. */
#ifndef FY_OBJECT_CALLS_H
#define FY_OBJECT_CALLS_H

#include "object/record.h"

typedef struct fy_object_calls {
    fy_object_state (*state)(ferry *f, const fy_record *record);
    bool (*unlink)(ferry *f, fy_record *record);
    void (*rest)(ferry *f, fy_record *record);
    void (*set_down)(ferry *f, fy_record *record, fy_object_state state);
    void (*note_loss)(ferry *f, int error, const char *format, ...)
        __attribute__((format(printf, 3, 4)));
    void (*locate)(ferry *f, int rank, ferry_object object, int place, uint32_t movement);
    void (*lock)(ferry *f);
    void (*unlock)(ferry *f);
} fy_object_calls;

#endif
