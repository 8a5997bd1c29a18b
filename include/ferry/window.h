/* Window: distributed arrays of values of any size that grow on demand.
 *
 * Each rank of a window has an array. Every rank of the window reads and changes the elements of
 * all these arrays, by rank and index. An element has a value of any size, or none. Index -1 is the
 * last element of the target when the operation takes effect, -2 the one before it. A put at or
 * beyond the end makes the array longer, and the elements between have no value.
 * progressive-messages.txt A. */
#ifndef FERRY_WINDOW_H
#define FERRY_WINDOW_H

#include <ferry/group.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An array on each rank, which all ranks of the window read and change. Operations belong to
 * epochs. A rank opens one with ferry_window_fence, ferry_window_start or ferry_window_lock. Puts
 * and accumulates take effect when the epoch ends, or in ferry_window_flush. They do so after all
 * gets of the epoch, which see the arrays as they were. Gets, fetches and swaps take effect when it
 * ends, or earlier. Accumulates, fetches and swaps are atomic: no other operation sees a part of
 * them. If a rank dies, operations on its array fail with FERRY_EPEER, and so does the end of the
 * epoch. */
typedef struct ferry_window ferry_window;

/* The value of an element. NULL data: no value. */
typedef struct ferry_window_value {
    const void *data;
    size_t size_bytes;
} ferry_window_value;

/* How a window is created. Zero means the default. In a direct window puts and accumulates take
 * effect when the epoch ends, or earlier, before or after the gets of their epoch. In shared memory
 * a put of 8 bytes is then one store, and a fence is one barrier. In shared memory the caller
 * performs an operation itself, and the target need not poll. Elsewhere the target performs it in a
 * poll. */
typedef struct ferry_window_options {
    size_t size;                      /* sizeof(ferry_window_options) */
    ferry_group *group;               /* kept until ferry_window_free; NULL: all members */
    const ferry_window_value *values; /* the array of this rank at first; borrowed */
    size_t count;                     /* of `values` */
    bool direct; /* puts need not wait for the end of their epoch; the same value on all ranks */
} ferry_window_options;

#define FERRY_WINDOW_OPTIONS_DEFAULTS                                                              \
    {                                                                                              \
        sizeof(ferry_window_options), NULL, NULL, 0, false                                         \
    }

/* Creates a window. Every rank of the group calls it. Without a group its ranks are the members at
 * this time; ranks that join later are not in it, and make none of its calls. Gives `*out`, freed
 * with ferry_window_free. `options` is borrowed; NULL: defaults. FERRY_ENOMEM on all ranks: one of
 * them has no memory. FERRY_EINVAL on all ranks: `direct` differs. Other errors as ferry_allreduce.
 * [app thread, not in handlers | polls | may block] progressive-messages.txt A.1.1. */
FERRY_API FERRY_MUST_USE int ferry_window_create(ferry *f, const ferry_window_options *options,
                                                 ferry_window **out);

/* Frees the window and this rank's array. Every rank of the group calls it, outside epochs of
 * start, post and lock. Puts that no fence has performed are cancelled. NULL is ignored.
 * FERRY_ESTATE: such an epoch is open; nothing was freed. FERRY_EPEER: a rank has gone, and
 * ferry_window_fence would fail; the window is freed, and the array's memory when this rank closes.
 * ferry_close frees the windows that are left. [app thread, not in handlers | polls | may block] */
FERRY_API int ferry_window_free(ferry_window *window);

/* How many elements the array of this rank has. [app thread, handlers | never blocks] */
FERRY_API uint64_t ferry_window_length(const ferry_window *window);

/* Copies element `index` of this rank to `target` immediately; no epoch is needed. Sizes as
 * ferry_window_get. Errors as ferry_window_get. [app thread, handlers | never blocks]
 * progressive-messages.txt A.1.4 (object). */
FERRY_API FERRY_MUST_USE int ferry_window_read(ferry_window *window, int64_t index, void *target,
                                               size_t room_bytes, size_t *size_bytes);

/* Operations. FERRY_EINVAL: `rank` is not in the window. FERRY_ESTATE: no epoch is open towards
 * `rank`. FERRY_EPEER: it has gone. If an operation has a `track`, only that reports its end. If it
 * has none, the call that ends the epoch returns its error. No operation reports submitted. */

/* Replaces the value of element `index` of `rank` by a copy of `value`. NULL: the element then has
 * no value. Keeps `value` until the epoch ends, or `track` reports the end. FERRY_ERANGE, reported
 * later, in a direct window also here: a negative index lies before the array. FERRY_ENOMEM, here
 * or later. [app thread, handlers | never blocks] progressive-messages.txt A.1.2. */
FERRY_API FERRY_MUST_USE int ferry_window_put(ferry_window *window, int rank, int64_t index,
                                              const ferry_window_value *value,
                                              const ferry_track *track);

/* Where ferry_window_get stores a value: `room_bytes` at `data`. */
typedef struct ferry_window_target {
    void *data;
    size_t room_bytes;
    size_t *size_bytes; /* may be NULL */
} ferry_window_target;

/* Copies element `index` of `rank` to `target`, and its size to `*size_bytes`. An index outside the
 * array, and an element without a value, have size 0. Keeps `target` and `size_bytes` until the
 * epoch ends, or `track` reports the end: only then are they written. FERRY_ETOOLONG, here or
 * later: the value has more than `room_bytes`; `*size_bytes` says how many. [app thread, handlers |
 * never blocks] progressive-messages.txt A.1.2. */
FERRY_API FERRY_MUST_USE int ferry_window_get(ferry_window *window, int rank, int64_t index,
                                              const ferry_window_target *target,
                                              const ferry_track *track);

/* Many elements in one operation. Each of these calls does one put (get) for every element, in any
 * order, and ends once. If it fails, some may be done. */

/* An element of ferry_window_put_vector, and of ferry_window_get_vector. */
typedef struct ferry_window_put_piece {
    int64_t index;
    ferry_window_value value;
} ferry_window_put_piece;
typedef struct ferry_window_get_piece {
    int64_t index;
    ferry_window_target target;
} ferry_window_get_piece;

/* Puts (gets) the `count` elements that `pieces` names. Borrows `pieces`; keeps the values
 * (targets) as ferry_window_put (ferry_window_get). FERRY_EINVAL: `pieces` is NULL, or a piece has
 * no memory. Other errors as ferry_window_put (ferry_window_get). [app thread, handlers | never
 * blocks] */
FERRY_API FERRY_MUST_USE int ferry_window_put_vector(ferry_window *window, int rank,
                                                     const ferry_window_put_piece *pieces,
                                                     size_t count, const ferry_track *track);
FERRY_API FERRY_MUST_USE int ferry_window_get_vector(ferry_window *window, int rank,
                                                     const ferry_window_get_piece *pieces,
                                                     size_t count, const ferry_track *track);

/* Elements `first`, `first + step` and so on, of one size. Their values lie `data_step_bytes` apart
 * in memory of the caller. */
typedef struct ferry_window_range {
    int64_t first, step;
    size_t count;
    size_t value_bytes; /* of each value; of a get: the room for it */
    ptrdiff_t data_step_bytes;
    size_t *sizes; /* of a get: the size of each value goes here; NULL: nowhere */
} ferry_window_range;

/* Puts (gets) the elements of `range`. Borrows `range`; keeps `data` and `range->sizes` as
 * ferry_window_put (ferry_window_get). FERRY_EINVAL: no range or data, or indices or addresses that
 * do not exist. Other errors as ferry_window_put (ferry_window_get). [app thread, handlers | never
 * blocks] */
FERRY_API FERRY_MUST_USE int ferry_window_put_strided(ferry_window *window, int rank,
                                                      const ferry_window_range *range,
                                                      const void *data, const ferry_track *track);
FERRY_API FERRY_MUST_USE int ferry_window_get_strided(ferry_window *window, int rank,
                                                      const ferry_window_range *range, void *data,
                                                      const ferry_track *track);

/* Atomic operations. */

/* A change by an accumulate: element = element (reduction) value, number by number. */
typedef struct ferry_window_change {
    ferry_type type;
    ferry_reduction reduction; /* not FERRY_USER */
    const void *value;
    size_t count; /* of numbers at `value` */
} ferry_window_change;

/* Combines element `index` of `rank` with a value. If the element has no value, it gets `value`.
 * Keeps `what->value` as ferry_window_put does. FERRY_EINVAL, reported later, in a direct window
 * also here: the element's size is not that of `count` numbers. Other errors as ferry_window_put.
 * [app thread, handlers | never blocks] progressive-messages.txt A.1.2. */
FERRY_API FERRY_MUST_USE int ferry_window_accumulate(ferry_window *window, int rank, int64_t index,
                                                     const ferry_window_change *what,
                                                     const ferry_track *track);

/* Accumulates one number and copies the number that was there before to `old`; 0 if there was no
 * value. It takes effect as a get does. Keeps `old` as ferry_window_get keeps its target; borrows
 * `what->value`. FERRY_EINVAL: `what->count` is not 1. Other errors as ferry_window_accumulate.
 * [app thread, handlers | never blocks] */
FERRY_API FERRY_MUST_USE int ferry_window_fetch(ferry_window *window, int rank, int64_t index,
                                                const ferry_window_change *what, void *old,
                                                const ferry_track *track);

/* A swap: the element gets `value` if its bytes are those of `expected`. */
typedef struct ferry_window_swap {
    const void *expected, *value;
    size_t size_bytes; /* 1 to 8 */
} ferry_window_swap;

/* Compares and swaps element `index` of `rank`. If the element has no value, its bytes count as 0.
 * Else as ferry_window_fetch. FERRY_EINVAL, here or later: the element has another size. [app
 * thread, handlers | never blocks] */
FERRY_API FERRY_MUST_USE int ferry_window_compare_swap(ferry_window *window, int rank,
                                                       int64_t index, const ferry_window_swap *what,
                                                       void *old, const ferry_track *track);

/* Synchronisation. These calls return the first error of the operations without track that they
 * end. FERRY_EPEER: a rank has died; operations by it and on its array have failed, and puts that
 * were not performed are cancelled. FERRY_ESTATE: inside a handler, or no such epoch is open. [app
 * thread, not in handlers | polls | may block, unless a function says otherwise] */

/* Ends the epoch that the last fence began, for all ranks, and begins the next. Every rank of the
 * group calls it. All gets of all ranks take effect before all puts and accumulates. If a rank of
 * the window has gone, every later fence returns FERRY_EPEER. If the window has no group, fences
 * among the ranks that are left work again after the next ferry_quiesce, unless a rank that joined
 * after the window was made is a member. In errors of ranks that call another collective in its
 * place, it may be called ferry_allreduce. progressive-messages.txt A.1.4. */
FERRY_API int ferry_window_fence(ferry_window *window);

/* Opens the array of this rank to the `count` ranks at `ranks`, which is borrowed. Never blocks.
 * progressive-messages.txt A.1.4. */
FERRY_API int ferry_window_post(ferry_window *window, const int *ranks, int count);

/* Begins an epoch towards the arrays of `ranks`, when those have called ferry_window_post with this
 * rank. progressive-messages.txt A.1.4. */
FERRY_API int ferry_window_start(ferry_window *window, const int *ranks, int count);

/* Ends the epoch that ferry_window_start began. At each target, all gets take effect before all
 * puts. So it returns only when all ranks to which the target has posted have called it. The target
 * must poll, but need not be in ferry_window_wait. progressive-messages.txt A.1.4. */
FERRY_API int ferry_window_complete(ferry_window *window);

/* Returns when all ranks of the last ferry_window_post have called ferry_window_complete: their
 * operations are done. progressive-messages.txt A.1.4. */
FERRY_API int ferry_window_wait(ferry_window *window);

/* Polls once for what ferry_window_wait waits for. Returns 1 if all ranks of the last
 * ferry_window_post have called ferry_window_complete, and ends the epoch then. Else it returns 0.
 * progressive-messages.txt A.1.4. */
FERRY_API int ferry_window_test(ferry_window *window);

typedef enum ferry_window_lock_kind {
    FERRY_WINDOW_SHARED,
    FERRY_WINDOW_EXCLUSIVE, /* no other rank has the lock */
} ferry_window_lock_kind;

/* Begins an epoch towards the array of `rank`, which makes no call for it. Returns when this rank
 * has the lock. If a rank dies, its locks are free again. progressive-messages.txt A.1.4. */
FERRY_API int ferry_window_lock(ferry_window *window, ferry_window_lock_kind kind, int rank);

/* Performs all operations of this rank on `rank`, and ends the epoch. progressive-messages.txt
 * A.1.4. */
FERRY_API int ferry_window_unlock(ferry_window *window, int rank);

/* Performs all operations of this rank on `rank` so far, in an epoch of ferry_window_lock. */
FERRY_API int ferry_window_flush(ferry_window *window, int rank);

/* Attributes: pointers that the program keeps with a window, on this rank. `key` is any address of
 * the program. FERRY_ENOMEM: nothing changed. If there is no such attribute, get returns NULL and
 * delete FERRY_ENOENT. [app thread, handlers | never blocks] progressive-messages.txt A.1.3. */
FERRY_API FERRY_MUST_USE int ferry_window_attribute_set(ferry_window *window, const void *key,
                                                        void *value);
FERRY_API void *ferry_window_attribute_get(const ferry_window *window, const void *key);
FERRY_API int ferry_window_attribute_delete(ferry_window *window, const void *key);

/* Views: elements in one piece of memory. */

/* Makes a view of the `count` elements of this rank from `first` on: each gets a value of
 * `value_bytes` zero bytes. `*out` is where they are, the first at a cache line. Lends it until the
 * window is freed. These elements keep their size: a put of another size, or of no value, fails
 * with FERRY_EINVAL. The program uses the memory while no operation on these elements is in flight.
 * If a rank dies in a put, the element becomes zero bytes. FERRY_EINVAL: an element has a value, or
 * `count` is 0; FERRY_ENOMEM. Then no element has changed; the array may be longer. [app thread |
 * never blocks] */
FERRY_API FERRY_MUST_USE int ferry_window_view(ferry_window *window, int64_t first, size_t count,
                                               size_t value_bytes, void **out);

#ifdef __cplusplus
}
#endif
#endif
