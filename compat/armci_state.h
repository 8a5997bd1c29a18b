/* The state of a process. Private to the ARMCI layer.
 *
 * ARMCI's functions take no handle, so the process has one state: fy_armci and fy_compat are the
 * only writable global data. The layer calls only public functions of Ferry.
 *
 * If memory is mapped in the calling process, a call copies or changes it without messages. That is
 * the process's own memory and the heaps of processes of its node. Operations on other processes go
 * by messages, each with a record. */
#ifndef FY_ARMCI_STATE_H
#define FY_ARMCI_STATE_H

#include "armci.h"
#include "common.h"

/* Memory of ARMCI_Malloc of another process, which is mapped here. */
typedef struct fy_armci_range {
    uintptr_t base;
    size_t size_bytes;
    int process;
} fy_armci_range;

typedef struct fy_armci_state {
    bool open;
    ferry_handler accumulate;
    unsigned *unfinished;   /* by process: operations by messages that have not ended */
    unsigned total;         /* the sum of `unfinished` */
    unsigned looks;         /* `turns` for fy_compat_turn, in fy_armci_poll */
    ferry_group *group;     /* the default group; NULL: all processes */
    uint64_t **mutexes;     /* by process; NULL: there are no mutexes */
    int *mutex_counts;      /* by process */
    fy_armci_range *ranges; /* by address */
    size_t range_count, range_room;
    size_t range_last; /* the one that was asked for last */
} fy_armci_state;

extern fy_armci_state fy_armci;

/* An operation by messages. */
typedef struct fy_armci_op {
    unsigned *pending; /* the counter of its handle; may be NULL */
    bool *submitted;   /* becomes true when the source may change; may be NULL */
    int process;
    char data[];
} fy_armci_op;

/* Ends the job if ARMCI is not begun, or `process` does not exist. */
void fy_armci_check(const char *call, int process);
/* Returns `number`. Ends the job if it is negative; `what` says what it counts. */
size_t fy_armci_number(const char *call, int number, const char *what);
/* Ends the job if `address` is NULL; `what` says whose address it is. */
void fy_armci_address_check(const char *call, const void *address, const char *what);
/* The group of a handle (NULL: all). Ends the job if ARMCI is not begun, or the handle names no
 * group. */
ferry_group *fy_armci_group(const char *call, const ARMCI_Group *group);
/* Polls once, if other processes may change memory of this process by messages. For calls that
 * would send none: the program may make such a call in a loop until a value has come. */
void fy_armci_poll(void);
/* Whether the memory of `process` is mapped in this process. */
bool fy_armci_is_mapped(int process);

/* Ends the job if the memory of `process` is mapped here and [address, address + size_bytes) is not
 * all of one block that it has from ARMCI_Malloc. Memory of this process itself is not checked. */
void fy_armci_remote_check(const char *call, int process, const void *address, size_t size_bytes);
/* Notes that `process` has got a block, or that it gives the block at `base` back. */
void fy_armci_range_add(const char *call, int process, const void *base, size_t size_bytes);
void fy_armci_range_remove(const void *base);

/* Makes the record and the track of an operation. `handle` may be NULL. `data_bytes`: size of its
 * `data`. */
fy_armci_op *fy_armci_op_create(int process, armci_hdl_t *handle, size_t data_bytes,
                                ferry_track *track);
/* Frees the record of an operation that was not begun. */
void fy_armci_op_drop(fy_armci_op *op);

/* A block of `bytes`, repeated by levels, from `source` to `target`. */
typedef struct fy_armci_blocks {
    const char *source;
    char *target;
    const int *source_strides, *target_strides, *count; /* count[0] is the block */
    int levels;
} fy_armci_blocks;

/* Ends the job if a count is negative, there are too many levels, or an address is NULL that is
 * needed. Returns whether there is anything to copy. */
bool fy_armci_blocks_check(const char *call, const fy_armci_blocks *blocks);
/* The same for `count` descriptors of pieces. Returns the number of pieces. */
size_t fy_armci_pieces_check(const char *call, const armci_giov_t *pieces, int count);
typedef void fy_armci_block_fn(void *arg, const char *source, char *target, size_t bytes);
/* Runs `fn` for each block. */
void fy_armci_blocks_each(const fy_armci_blocks *blocks, fy_armci_block_fn *fn, void *arg);

/* Registers the handler of accumulates. */
void fy_armci_accumulate_begin(void);
void fy_armci_mutexes_free(void);
/* Gives back the mutexes that this process holds. */
void fy_armci_mutexes_unlock(void);

#endif
