/* Common to the interfaces of other libraries (OpenSHMEM, ARMCI): the rank of the process, errors,
 * and atomic changes of words.
 *
 * These interfaces take no handle, so the process has one state. A program can use only one of
 * them: each library has a copy of this file, and a process opens Ferry once. */
#ifndef FY_COMPAT_COMMON_H
#define FY_COMPAT_COMMON_H

#include <ferry/collective.h>
#include <ferry/memory.h>

typedef struct fy_compat_state {
    ferry *f;        /* NULL: not open */
    int me, count;   /* the processes are the ranks of the start; none joins later */
    bool *mapped;    /* by rank: its heap is mapped in this process */
    bool all_mapped; /* every heap is mapped in every process */
    ferry_handler change_half, take_half; /* atomic operations on 4 bytes, by messages */
    bool half_has_come;                   /* the answer to change_half: then `half` is set */
    bool half_is_none;                    /* that answer: others may not reach the word */
    uint32_t half;
    const char *call;            /* the routine that the program has called last; may be NULL */
    struct fy_compat_lock *held; /* the locks that this process holds, the last taken first */
} fy_compat_state;

extern fy_compat_state fy_compat;

/* Prints a message and ends the job with status 1. */
void fy_compat_fail(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));
/* Ends the job if `error` is not 0. */
void fy_compat_check(const char *call, int error);
/* Returns `memory`. If it is NULL, ends the job with a message. */
void *fy_compat_need(const char *call, void *memory);
/* One turn of a loop that waits: polls, and yields the processor in some turns. `turns` counts
 * them. */
void fy_compat_turn(unsigned *turns);

/* Ends the job if this process holds the lock at `lock` on `rank`, which it would wait for. */
void fy_compat_want(const char *call, const void *lock, int rank);
/* The lock that this process has taken last, and still holds, and its rank; NULL: none. */
const void *fy_compat_held(int *rank);
/* Notes that this process has taken the lock at `lock` on `rank`. */
void fy_compat_hold(const char *call, const void *lock, int rank);
/* Notes that it gives the lock back. Ends the job if it does not hold the lock. */
void fy_compat_release(const char *call, const void *lock, int rank);

/* Opens Ferry. `heap_bytes`: size of the shared heap; 0: the default. */
void fy_compat_open(const char *call, size_t heap_bytes);
void fy_compat_close(const char *call);

/* Changes the word of `what` on `rank` atomically. It has `bytes` (4 or 8). Returns the old value.
 * `mapped`: the word is mapped in this process. */
uint64_t fy_compat_update(const ferry_atomic *what, size_t bytes, int rank, bool mapped);

#endif
