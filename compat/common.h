/* Common: the layers of other libraries' interfaces share the process's rank, errors, and words
 * that are changed in one step.
 *
 * Those interfaces take no handle, so the process has one state. A program uses one of them: each
 * library has a copy of this file, and a process opens Ferry once. */
#ifndef FY_COMPAT_COMMON_H
#define FY_COMPAT_COMMON_H

#include <ferry/collective.h>
#include <ferry/memory.h>

typedef struct fy_compat_state {
    ferry *f; /* NULL: not open */
    int me, count;
    bool *mapped;                         /* by rank: its heap is seen here */
    bool all_mapped;                      /* of every rank, on every rank */
    ferry_handler change_half, take_half; /* atomic operations on 4 bytes, by messages */
    bool half_has_come;
    uint32_t half;
} fy_compat_state;

extern fy_compat_state fy_compat;

/* Ends the job with a message. */
void fy_compat_fail(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));
/* Ends the job if `error` is not 0. */
void fy_compat_check(const char *call, int error);
/* Ends the job with a message if `memory` is NULL; gives it. */
void *fy_compat_need(const char *call, void *memory);
/* Handles what has arrived, and leaves the processor from time to time; `turns` counts. */
void fy_compat_turn(unsigned *turns);

/* Opens Ferry. `heap_bytes`: of the shared heap, 0 for the default. */
void fy_compat_open(const char *call, size_t heap_bytes);
void fy_compat_close(const char *call);

/* Changes `bytes` (4 or 8) at `word` on `rank` in one step, and gives what they were. `mapped`:
 * this process sees them. */
uint64_t fy_compat_update(const ferry_atomic *what, size_t bytes, int rank, bool mapped);

#endif
