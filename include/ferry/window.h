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

/* Operations belong to epochs. A rank opens an epoch with ferry_window_fence, ferry_window_start or
 * ferry_window_lock. Puts and accumulates take effect when the epoch ends, or in
 * ferry_window_flush: after all gets of the epoch, so that those see the arrays as they were. Gets,
 * fetches and swaps take effect when they are carried out, at the latest when the epoch ends.
 * Accumulates, fetches and swaps of one element are atomic towards every other operation on it. */

/* In a direct window (ferry_window_options) puts and accumulates take effect as gets do, in no
 * order with the gets of their epoch. A put of 8 bytes is then one store, and a fence is one
 * barrier.
 *
 * In shared memory the caller carries an operation out itself, and the target need not poll.
 * Elsewhere the target carries it out in a poll. If a rank dies, operations on its array fail with
 * FERRY_EPEER, and so does the call that ends their epoch. */
typedef struct ferry_window ferry_window;

/* The value of an element. NULL data: no value. */
typedef struct ferry_window_value {
    const void *data;
    size_t size_bytes;
} ferry_window_value;

/* How a window is created. Zero means the default. */
typedef struct ferry_window_options {
    size_t size;                      /* sizeof(ferry_window_options) */
    ferry_group *group;               /* kept until ferry_window_free; NULL: all members */
    const ferry_window_value *values; /* the array of this rank at first; borrowed */
    size_t count;                     /* of `values` */
    bool direct; /* puts do not wait for the end of their epoch; the same on all ranks */
} ferry_window_options;

#define FERRY_WINDOW_OPTIONS_DEFAULTS                                                              \
    {                                                                                              \
        sizeof(ferry_window_options), NULL, NULL, 0, false                                         \
    }

/* Creates a window. Every rank of the group calls it. Gives `*out`, freed with ferry_window_free.
 * `options` is borrowed; NULL: defaults. FERRY_ENOMEM on all ranks: one of them has no memory.
 * FERRY_EINVAL on all ranks: `direct` differs. Other errors as ferry_allreduce. [app thread, not in
 * handlers | polls | may block] A.1.1. */
FERRY_API FERRY_MUST_USE int ferry_window_create(ferry *f, const ferry_window_options *options,
                                                 ferry_window **out);

/* Frees the window and this rank's array. Every rank of the group calls it, outside start, post and
 * lock epochs; puts that no fence has carried out are cancelled. NULL is left in peace.
 * FERRY_ESTATE: such an epoch is open; nothing was freed. FERRY_EPEER: a rank is gone; the handle
 * is freed, and the array's memory is released when this rank closes. Windows that are left at
 * ferry_close are freed there. [app thread, not in handlers | polls | may block] */
FERRY_API int ferry_window_free(ferry_window *window);

/* How many elements the array of this rank has. [app thread, handlers | never blocks] */
FERRY_API uint64_t ferry_window_length(const ferry_window *window);

/* Copies element `index` of this rank to `target`, in no epoch: as ferry_window_get does without
 * track. [app thread, handlers | never blocks] A.1.4 (object). */
FERRY_API FERRY_MUST_USE int ferry_window_read(ferry_window *window, int64_t index, void *target,
                                               size_t room_bytes, size_t *size_bytes);

/* Operations. FERRY_EINVAL: no rank of the window. FERRY_ESTATE: no epoch is open towards `rank`.
 * FERRY_EPEER: it is gone. The end of an operation with `track` is told by that alone. The call
 * that ends the epoch tells a later failure of an operation without `track`. None reports
 * submitted. */

/* Replaces element `index` of `rank` by the `size_bytes` at `value`; NULL: by no value. Keeps
 * `value` until the epoch ends, or `track` reports the end. FERRY_ERANGE, later, in a direct window
 * also here: a negative index lies before the array. FERRY_ENOMEM, here or later. [app thread,
 * handlers | never blocks] A.1.2.
 */
FERRY_API FERRY_MUST_USE int ferry_window_put(ferry_window *window, int rank, int64_t index,
                                              const ferry_window_value *value,
                                              const ferry_track *track);

/* Where ferry_window_get puts a value, for which there are `room_bytes`. */
typedef struct ferry_window_target {
    void *data;
    size_t room_bytes;
    size_t *size_bytes; /* may be NULL */
} ferry_window_target;

/* Copies element `index` of `rank` to `target`, and its size to `*size_bytes`. An index outside the
 * array, and an element without a value, have size 0. Keeps `target` and `size_bytes` until the
 * epoch ends, or `track` reports the end: only then are they written. FERRY_ETOOLONG, here or
 * later: the value has more than `room_bytes`; `*size_bytes` says how many. [app thread, handlers |
 * never blocks] A.1.2. */
FERRY_API FERRY_MUST_USE int ferry_window_get(ferry_window *window, int rank, int64_t index,
                                              const ferry_window_target *target,
                                              const ferry_track *track);

/* Many elements in one operation. Each of these calls is as one put (get) for every element, in any
 * order, with one end. A failure may leave some done. */

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
 * (targets) as ferry_window_put (ferry_window_get). FERRY_EINVAL: no pieces, or one without a
 * place. Other errors as ferry_window_put (ferry_window_get). [app thread, handlers | never blocks]
 */
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

/* A change by an accumulate: element = element (reduction) value, number by number. */
typedef struct ferry_window_change {
    ferry_type type;
    ferry_reduction reduction; /* not FERRY_USER */
    const void *value;
    size_t count; /* of numbers at `value` */
} ferry_window_change;

/* Combines element `index` of `rank` with a value. An element without a value takes `value`. Keeps
 * `what->value` as ferry_window_put does. FERRY_EINVAL, later, in a direct window also here: the
 * element has another size than `count` numbers. Other errors as ferry_window_put. [app thread,
 * handlers | never blocks] A.1.2.
 */
FERRY_API FERRY_MUST_USE int ferry_window_accumulate(ferry_window *window, int rank, int64_t index,
                                                     const ferry_window_change *what,
                                                     const ferry_track *track);

/* As an accumulate of one number that takes effect like a get: copies the number before it to
 * `old`, which is kept as a get's target; 0 when there was no value. `what->value` is borrowed.
 * [app thread, handlers | never blocks] */
FERRY_API FERRY_MUST_USE int ferry_window_fetch(ferry_window *window, int rank, int64_t index,
                                                const ferry_window_change *what, void *old,
                                                const ferry_track *track);

/* A swap: the element gets `value` if its bytes are those of `expected`. */
typedef struct ferry_window_swap {
    const void *expected, *value;
    size_t size_bytes; /* 1 to 8 */
} ferry_window_swap;

/* Compares and swaps element `index` of `rank`; else as ferry_window_fetch. An element without a
 * value counts as bytes of 0. FERRY_EINVAL, here or later: the element has another size. [app
 * thread, handlers | never blocks] */
FERRY_API FERRY_MUST_USE int ferry_window_compare_swap(ferry_window *window, int rank,
                                                       int64_t index, const ferry_window_swap *what,
                                                       void *old, const ferry_track *track);

/* Synchronisation. These calls return the first error of the operations without track that they
 * end. FERRY_EPEER: a rank has died; what it was to do or had to do has failed, and puts that had
 * not been carried out are cancelled. FERRY_ESTATE: inside a handler, or no such epoch is open.
 * [app thread, not in handlers | polls | may block, unless it is said otherwise] */

/* Ends the epoch that the last fence began, for all ranks, and begins the next. Every rank of the
 * group calls it. All gets of all ranks take effect before all puts and accumulates. A.1.4. */
FERRY_API int ferry_window_fence(ferry_window *window);

/* Opens the array of this rank to the `count` ranks at `ranks`, which are borrowed. Never blocks.
 * A.1.4. */
FERRY_API int ferry_window_post(ferry_window *window, const int *ranks, int count);

/* Begins an epoch towards the arrays of `ranks`, when those have called ferry_window_post with this
 * rank. A.1.4. */
FERRY_API int ferry_window_start(ferry_window *window, const int *ranks, int count);

/* Ends the epoch that ferry_window_start began. At each target, all gets take effect before all
 * puts; so it returns when all ranks that the target has posted to have called it. The target need
 * not be in ferry_window_wait, but has to poll. A.1.4. */
FERRY_API int ferry_window_complete(ferry_window *window);

/* Returns when all ranks of the last ferry_window_post have completed: their operations are done.
 * ferry_window_test polls once, and returns 1 when they have and 0 when not. A.1.4. */
FERRY_API int ferry_window_wait(ferry_window *window);
FERRY_API int ferry_window_test(ferry_window *window);

typedef enum ferry_window_lock_kind {
    FERRY_WINDOW_SHARED,
    FERRY_WINDOW_EXCLUSIVE, /* no other rank has the lock */
} ferry_window_lock_kind;

/* Begins an epoch towards the array of `rank`, which need do nothing for it. Returns when this rank
 * has the lock. A lock of a rank that dies is free again. A.1.4. */
FERRY_API int ferry_window_lock(ferry_window *window, ferry_window_lock_kind kind, int rank);

/* Carries out what this rank has begun towards `rank`, and ends the epoch. A.1.4. */
FERRY_API int ferry_window_unlock(ferry_window *window, int rank);

/* Carries out what this rank has begun towards `rank`, in an epoch of ferry_window_lock. */
FERRY_API int ferry_window_flush(ferry_window *window, int rank);

/* Attributes: what the program keeps with a window on this rank. `key` is any address of its own.
 * FERRY_ENOMEM: nothing changed. Get: NULL when there is none. Delete: FERRY_ENOENT when there is
 * none. [app thread, handlers | never blocks] A.1.3. */
FERRY_API FERRY_MUST_USE int ferry_window_attribute_set(ferry_window *window, const void *key,
                                                        void *value);
FERRY_API void *ferry_window_attribute_get(const ferry_window *window, const void *key);
FERRY_API int ferry_window_attribute_delete(ferry_window *window, const void *key);

/* Views: elements in one piece of memory. */

/* Makes a view of the `count` elements of this rank from `first` on: each gets a value of
 * `value_bytes` zero bytes. `*out` is where they are, the first at a cache line. Lends it until the
 * window is freed. These elements keep their size: a put of another size, or of no value, fails
 * with FERRY_EINVAL. The program uses the memory while no rank has an operation on these elements
 * in flight. If a rank dies in a put, the element becomes zero bytes. FERRY_EINVAL: an element has
 * a value, or none is named; FERRY_ENOMEM. Then no element has changed; the array may be longer.
 * [app thread | never blocks] */
FERRY_API FERRY_MUST_USE int ferry_window_view(ferry_window *window, int64_t first, size_t count,
                                               size_t value_bytes, void **out);

#ifdef __cplusplus
}
#endif
#endif
