/* The state of a PE. Private to the OpenSHMEM layer.
 *
 * OpenSHMEM's functions take no handle, so the process has one state: fy_shmem_pe and fy_compat are
 * the only writable global data. The layer calls only public functions of Ferry.
 *
 * Each PE reserves one range of the shared heap, and all PEs know where each range begins. An
 * allocator gives the same offsets on all PEs. If a range is mapped in this process, calls load and
 * store there. For other ranges they use ferry_put, ferry_get and ferry_atomic_update. */
#ifndef FY_SHMEM_STATE_H
#define FY_SHMEM_STATE_H

#include "common.h"
#include "shmem.h"

enum { FY_SHMEM_ALIGNMENT = 16 << 20 }; /* the heap begins at a multiple of it, on all PEs */

/* A used or free part of the symmetric heap. */
typedef struct fy_shmem_block {
    size_t offset, size_bytes;
    bool used;
} fy_shmem_block;

typedef struct fy_shmem_state {
    char *heap, **heaps; /* this PE's range (NULL: not begun), and all ranges by PE */
    size_t heap_bytes;
    void *reserved;      /* the allocation; `heap` is the first multiple of the alignment in it */
    char *data, **datas; /* the program's variables: this PE's, and those of all; NULL: not known */
    size_t data_bytes;
    unsigned looks;         /* `turns` for fy_compat_turn, in fy_shmem_poll_for */
    size_t outstanding;     /* puts by messages that have not completed */
    fy_shmem_block *blocks; /* all parts of the heap, by offset */
    size_t block_count, block_room;
    size_t turn;                 /* where the next look at awaited variables begins */
    struct fy_shmem_team *teams; /* those of the program */
    size_t free_from;            /* all blocks before this one are used */
    ferry_group *shared;         /* PEs whose ranges are mapped here; NULL: all PEs */
} fy_shmem_state;

extern fy_shmem_state fy_shmem_pe;

/* Notes the routine that the program has called, for messages. First in each of them. */
#define FY_SHMEM_CALL() ((void)(fy_compat.call = __func__))

/* Ends the job if it is before shmem_init or after shmem_finalize. */
void fy_shmem_check(void);
void fy_shmem_too_many(const char *call, size_t count) __attribute__((noreturn));
/* The size of `count` values of `bytes` each. Ends the job if no memory is that large. */
static inline size_t fy_shmem_size(const char *call, size_t count, size_t bytes)
{
    if (count > SIZE_MAX / bytes)
        fy_shmem_too_many(call, count);
    return count * bytes;
}
/* As fy_shmem_locate, for addresses outside the symmetric heap. */
bool fy_shmem_locate_data(const void *address, size_t size_bytes, int pe, char **remote);
/* Sets `*remote` to the address on `pe` that corresponds to `address` of this PE. Returns whether
 * it is mapped in this process. Ends the job if the address is not symmetric. */
static inline bool fy_shmem_locate(const void *address, size_t size_bytes, int pe, char **remote)
{
    const fy_shmem_state *s = &fy_shmem_pe;
    size_t offset = (uintptr_t)address - (uintptr_t)s->heap;
    bool is_pe = (unsigned)pe < (unsigned)fy_compat.count;
    if (!is_pe || offset > s->heap_bytes || size_bytes > s->heap_bytes - offset)
        return fy_shmem_locate_data(address, size_bytes, pe, remote);
    *remote = s->heaps[pe] + offset;
    return fy_compat.mapped[pe];
}
/* Whether [address, address + size_bytes) is symmetric. */
bool fy_shmem_is_symmetric(const void *address, size_t size_bytes);
/* Polls once, if `address` is on this PE and other PEs may change it by messages: the program may
 * read it in a loop until one does. */
void fy_shmem_poll_for(const void *address, int pe);

void fy_shmem_heap_begin(void);
/* Frees the records of teams that were not destroyed. */
void fy_shmem_teams_end(void);
/* As shmem_clear_lock. */
void fy_shmem_unlock(long *lock);

void fy_shmem_put(void *dest, const void *source, size_t size_bytes, int pe);
void fy_shmem_put_later(void *dest, const void *source, size_t size_bytes, int pe);
void fy_shmem_get(void *dest, const void *source, size_t size_bytes, int pe);
void fy_shmem_signal(uint64_t *word, uint64_t signal, int operation, int pe);

/* Changes `bytes` (4 or 8) at `dest` on `pe` atomically. Returns the old value. */
uint64_t fy_shmem_update(ferry_atomic_verb verb, const void *dest, size_t bytes, uint64_t operand,
                         uint64_t expected, int pe);

/* Reduces over `team` with `combine`. */
int fy_shmem_reduce(shmem_team_t team, void *dest, const void *source, size_t count,
                    size_t value_bytes, ferry_combine_fn *combine);
/* Sets `*group` to the group of `team`. False: SHMEM_TEAM_INVALID. Ends the job if the team does
 * not exist. */
bool fy_shmem_team_group(shmem_team_t team, ferry_group **group);

#endif
