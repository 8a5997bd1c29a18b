/* Memory: a heap that every rank of a node sees at the same address, and one-sided put and get.
 *
 * Puts and gets work on memory of ferry_alloc, or registered. Elsewhere they fail, and never crash
 * the target, unlike the papers' puts. dmcs.txt 3.4-3.5, prema.txt B.2.4-B.2.5.
 *
 * If both ranks are on one node and the memory is of ferry_alloc, the caller copies the data
 * itself. Otherwise Ferry sends messages. Then, in a handler, the call may return FERRY_EAGAIN:
 * nothing was started (docs/limits.md). FERRY_ERANGE: the caller's data have over 1 MiB, and a part
 * of them is not mapped. */
#ifndef FERRY_MEMORY_H
#define FERRY_MEMORY_H

#include <ferry/core.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Allocates `size_bytes` (at least 1) from this rank's shared heap, 64-byte aligned, not cleared.
 * Gives `*out`, freed with ferry_free by any rank of the node. If this rank goes, the memory stays,
 * because others may use it, until one of them frees it or calls ferry_memory_reclaim. Data of an
 * object (FERRY_OBJECT_SHARED) is freed when the rank of the object dies. FERRY_ENOMEM: the heap's
 * limit is reached. FERRY_EINVAL: 0 bytes. A forked process has none of this memory. [app thread,
 * handlers | never blocks] */
FERRY_API FERRY_MUST_USE int ferry_alloc(ferry *f, size_t size_bytes, void **out);

/* Frees what ferry_alloc gave, on any rank of the node. NULL is ignored. FERRY_EINVAL: ferry_alloc
 * did not give this address, or it was freed before; nothing was freed. [app thread, handlers |
 * never blocks] */
FERRY_API int ferry_free(ferry *f, void *address);

/* Frees all memory that `rank`, which has died or left, had from ferry_alloc: grids and arrays too,
 * but not data of objects, nor messages that it sent. Call it when no rank uses this memory any
 * more, such as after a ferry_quiesce that ended without that rank. One rank of its node calls it,
 * or several do. If ranks share no memory, it does nothing. FERRY_EINVAL: no such rank.
 * FERRY_ESTATE: this rank has not learnt that `rank` has gone (ferry_peer_is_gone). [app thread,
 * handlers | never blocks] */
FERRY_API int ferry_memory_reclaim(ferry *f, int rank);

/* Lets other ranks put to and get from `[base, base + size_bytes)` of this rank, until
 * ferry_memory_unregister. Keeps `base` until then. FERRY_EINVAL: the range is empty, or overlaps a
 * registered one. FERRY_ENOMEM: no memory to note it. FERRY_ENOENT: nothing is registered at
 * `base`. [app thread, handlers | never blocks] */
FERRY_API FERRY_MUST_USE int ferry_memory_register(ferry *f, void *base, size_t size_bytes);
FERRY_API int ferry_memory_unregister(ferry *f, void *base);

/* Copies `size_bytes`, which may be 0, from `source` here to `target` on `rank`. On one node, into
 * the shared heap, the copy is done on return. Else borrows `source`, or with `track` keeps it
 * until submitted. If the target keeps earlier requests for another tag, the data arrive after
 * those (docs/messages.md). FERRY_ERANGE, here or by `track`: the range is not in one allocation or
 * registration there. FERRY_EINVAL: no such rank, or no `source`. Other errors as
 * ferry_request_send. Without `track` a later failure is logged. [app thread, handlers | as
 * ferry_request_send] dmcs.txt 3.4. */
FERRY_API FERRY_MUST_USE int ferry_put(ferry *f, int rank, void *target, const void *source,
                                       size_t size_bytes, const ferry_track *track);

/* Copies `size_bytes` from `source` on `rank` to `target` here. Without `track` it waits until the
 * data are here (in handlers only if the source is on this node). With `track` keeps `target` until
 * completed. FERRY_ESTATE: it would wait inside a handler. Other errors as ferry_put, for the
 * source range. [app thread, handlers | may block without track, then polls] dmcs.txt 3.5. */
FERRY_API FERRY_MUST_USE int ferry_get(ferry *f, int rank, void *target, const void *source,
                                       size_t size_bytes, const ferry_track *track);

/* Does ferry_alloc on `rank`: its program, and puts and gets of all ranks, may use the memory. Sets
 * `*out` when the operation has completed. Without `track` it waits for that (not in handlers).
 * With `track` keeps `out` until the operation ends. FERRY_ENOMEM, here or by `track`: that heap's
 * limit is reached. [app thread, handlers | may block without track, then polls] dmcs.txt 3.1,
 * prema.txt B.2.3 (malloc). */
FERRY_API FERRY_MUST_USE int ferry_remote_alloc(ferry *f, int rank, size_t size_bytes, void **out,
                                                const ferry_track *track);

/* Frees on `rank` what ferry_alloc or ferry_remote_alloc gave there. FERRY_EINVAL, here or by
 * `track`: nothing was allocated there at `address`. Without `track` a later failure is logged.
 * [app thread, handlers | as ferry_request_send] prema.txt B.2.3 (free). */
FERRY_API FERRY_MUST_USE int ferry_remote_free(ferry *f, int rank, void *address,
                                               const ferry_track *track);

/* Transfers that run handlers. */

/* A handler of transfers. `address` and `size_bytes` are the data of the transfer on this rank,
 * `peer` is the other rank. It may do what a ferry_request_fn may. prema.txt B.1. */
typedef void ferry_memory_fn(ferry *f, int peer, void *address, size_t size_bytes,
                             uint64_t argument);

/* Registers `fn` as ferry_handler_register does, with the same numbering and errors. [app thread |
 * never blocks] prema.txt B.2.2. */
FERRY_API FERRY_MUST_USE int ferry_memory_handler_register(ferry *f, const char *name,
                                                           ferry_memory_fn *fn, ferry_handler *out);

/* A memory handler to run, and its argument. */
typedef struct ferry_memory_call {
    ferry_handler handler;
    int32_t tag; /* for ferry_poll_tag on the other rank; a local call runs in any poll */
    uint64_t argument;
} ferry_memory_call;

/* A copy, and the handlers to run at its ends. Borrows `remote` and `local`; NULL: no handler. */
typedef struct ferry_transfer {
    void *target;
    const void *source;
    size_t size_bytes;
    const ferry_memory_call *remote, *local;
    /* For ferry_poll_tag on the other rank, if this is a get, or a put without `remote`. 0: no tag,
     * so any poll carries it out. Data that this rank copies itself wait for no poll. */
    int32_t tag;
} ferry_transfer;

/* As ferry_put, then runs `what->remote` on `rank`, on the data at the target, in a poll for its
 * tag. When the data have arrived, `rank` replies; then `what->local` runs here, on the data at the
 * source, which are kept until then. `track` reports completed after both handlers, with `arrival`
 * after `what->local`. Without handlers it is a put with a tag. If the put fails, it runs neither.
 * ferry_quiesce waits for both. FERRY_EINVAL: a handler not registered for transfers, or
 * FERRY_ANY_TAG. Else as ferry_put. [app thread, handlers | as ferry_request_send] prema.txt B.2.3,
 * figure B.1 (c), (d). */
FERRY_API FERRY_MUST_USE int ferry_put_run(ferry *f, int rank, const ferry_transfer *what,
                                           const ferry_track *track);

/* As a tracked ferry_get, then runs `what->local` here, on the data at the target. When that has
 * returned, it runs `what->remote` on `rank`, on the data at the source. It never waits. `track`
 * reports completed after both handlers, or with `arrival` before the remote one. Keeps the target
 * until then. If the get fails, it runs neither. Errors as ferry_put_run. [app thread, handlers |
 * as ferry_request_send] prema.txt B.2.3, figure B.1 (a), (b). */
FERRY_API FERRY_MUST_USE int ferry_get_run(ferry *f, int rank, const ferry_transfer *what,
                                           const ferry_track *track);

/* Many pieces in one operation. */

/* One copy of several. */
typedef struct ferry_piece {
    void *target;
    const void *source;
    size_t size_bytes;
} ferry_piece;

/* Does `count` puts (gets), in any order, as one operation. Borrows `pieces`. If it fails, some may
 * be done. If pieces overlap in the target, the result is undefined. Errors as ferry_put
 * (ferry_get). [app thread, handlers | as ferry_put (ferry_get)] */
FERRY_API FERRY_MUST_USE int ferry_put_vector(ferry *f, int rank, const ferry_piece *pieces,
                                              size_t count, const ferry_track *track);
FERRY_API FERRY_MUST_USE int ferry_get_vector(ferry *f, int rank, const ferry_piece *pieces,
                                              size_t count, const ferry_track *track);

#define FERRY_LEVELS_MAX 8

/* One level of repetition: how often, and how many bytes apart. */
typedef struct ferry_stride {
    size_t count;
    ptrdiff_t target_bytes, source_bytes;
} ferry_stride;

/* A block of contiguous bytes. `stride[0]` repeats the block, `stride[1]` repeats the result, and
 * so on. */
typedef struct ferry_strided {
    void *target;
    const void *source;
    size_t block_bytes;
    int levels; /* 0 to FERRY_LEVELS_MAX */
    const ferry_stride *stride;
} ferry_strided;

/* Puts (gets) every block, as one operation. Borrows `what->stride`. If it fails, some may be done.
 * FERRY_EINVAL: too many levels, or strides that leave the address space. FERRY_ERANGE: also if all
 * blocks together have more than SIZE_MAX bytes. Other errors as ferry_put (ferry_get). [app
 * thread, handlers | as ferry_put (ferry_get)] */
FERRY_API FERRY_MUST_USE int ferry_put_strided(ferry *f, int rank, const ferry_strided *what,
                                               const ferry_track *track);
FERRY_API FERRY_MUST_USE int ferry_get_strided(ferry *f, int rank, const ferry_strided *what,
                                               const ferry_track *track);

/* Remote words. */

/* The changes of a remote word. */
typedef enum ferry_atomic_verb {
    FERRY_FETCH_ADD,
    FERRY_FETCH_AND,
    FERRY_FETCH_OR,
    FERRY_FETCH_XOR,
    FERRY_SWAP,
    FERRY_COMPARE_SWAP, /* stores `operand` if the word is `expected` */
} ferry_atomic_verb;

/* A change of a remote word. */
typedef struct ferry_atomic {
    ferry_atomic_verb verb;
    uint64_t *target; /* 8-byte aligned */
    uint64_t operand;
    uint64_t expected;
} ferry_atomic;

/* Changes a word of `rank` atomically and sets `*old` to its earlier value. It is sequentially
 * consistent with all other such calls on the word and with C11 atomics of the program of `rank`.
 * On one node, in the shared heap, it is done on return. Else, without `track`, it waits (not in
 * handlers) unless `old` is NULL; with `track` it keeps `old` until the operation ends.
 * FERRY_EINVAL: the word is not aligned. FERRY_ERANGE as ferry_put. [app thread, handlers | may
 * block, then polls] */
FERRY_API FERRY_MUST_USE int ferry_atomic_update(ferry *f, int rank, const ferry_atomic *what,
                                                 uint64_t *old, const ferry_track *track);

#ifdef __cplusplus
}
#endif
#endif
