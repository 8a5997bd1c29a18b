/* The array of a rank: its elements, and the lock of ferry_window_lock.
 *
 * Every rank of the owner's node works on the memory itself. The owner also works on it for ranks
 * of other nodes. A value of 8 bytes is changed by atomic operations. Other elements have a lock,
 * held for one operation. If its holder dies, the next rank that wants the lock takes it over. The
 * value is then in doubt, and is removed.
 *
 * Memory comes from the heap of the rank that needs it first, and is kept for the owner. The port
 * releases it when the owner has gone and every rank of the node has seen that. So a rank that has
 * seen the owner alive may follow pointers until its next poll. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "core/reduce.h"
#include "window/lock.h"
#include "window/state.h"

enum { ALIGNMENT = 64 };

/* The memory of a view. */
typedef struct fy_view {
    struct fy_view *next;
    _Alignas(ALIGNMENT) char bytes[];
} fy_view;

static void *take_memory(ferry *f, size_t size_bytes, int owner)
{
    const fy_head *head = fy_head_of(f);
    size_t rounded = (size_bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (rounded < size_bytes)
        return NULL;
    return head->ops->heap.alloc != NULL ? head->ops->heap.alloc(head->port, rounded, owner)
                                         : fy_aligned_alloc(ALIGNMENT, rounded);
}

static void give_memory(ferry *f, void *address)
{
    const fy_head *head = fy_head_of(f);
    if (head->ops->heap.release == NULL)
        free(address);
    else if (address != NULL)
        (void)head->ops->heap.release(head->port, address);
}

fy_array *fy_array_create(ferry *f, uint32_t ranks)
{
    size_t size_bytes = sizeof(fy_array) + ranks;
    fy_array *array = take_memory(f, size_bytes, fy_head_of(f)->rank);
    if (array != NULL) {
        memset(array, 0, size_bytes);
        array->ranks = ranks;
    }
    return array;
}

/* The form of an element, for the holder of its lock. */
static inline uint32_t form_of(const fy_slot *slot)
{
    /* relaxed: the lock orders it */
    return atomic_load_explicit(&slot->form, memory_order_relaxed);
}

static uint64_t segment_count(unsigned segment)
{
    return segment == 0 ? UINT64_C(1) << FY_SEGMENT_BITS : fy_segment_first(segment);
}

void fy_array_free(ferry *f, fy_array *array)
{
    for (unsigned s = 0; array != NULL && s < FY_SEGMENTS; s++) {
        /* relaxed: no other rank uses the array any more */
        fy_slot *slots = atomic_load_explicit(&array->segments[s], memory_order_relaxed);
        for (uint64_t i = 0; slots != NULL && i < segment_count(s); i++)
            if (form_of(&slots[i]) != FY_FORM_VIEW)
                give_memory(f, slots[i].block);
        give_memory(f, slots);
    }
    for (fy_view *view = array == NULL ? NULL : array->views, *next; view != NULL; view = next) {
        next = view->next;
        give_memory(f, view);
    }
    give_memory(f, array);
}

/* Adds a segment, unless another rank does at the same time. */
static fy_slot *segment_add(ferry *f, fy_array *array, int owner, unsigned segment)
{
    size_t size_bytes = segment_count(segment) * sizeof(fy_slot);
    fy_slot *slots = take_memory(f, size_bytes, owner), *there = NULL;
    if (slots == NULL)
        return NULL;
    memset((void *)slots, 0, size_bytes);
    /* release: a rank that loads the pointer sees empty elements. acquire: or this rank sees those
     * of the rank that was first */
    if (atomic_compare_exchange_strong_explicit(&array->segments[segment], &there, slots,
                                                memory_order_acq_rel, memory_order_acquire))
        return slots;
    give_memory(f, slots);
    return there;
}

/* Gives an element. Makes it if it does not exist. */
static int slot_make(ferry *f, fy_array *array, int owner, uint64_t index, fy_slot **out)
{
    const unsigned segment = fy_segment_of(index);
    if (segment >= FY_SEGMENTS)
        return FERRY_ENOMEM;
    *out = fy_array_slot(array, index);
    if (*out == NULL) {
        fy_slot *slots = segment_add(f, array, owner, segment);
        if (slots == NULL)
            return FERRY_ENOMEM;
        *out = slots + (index - fy_segment_first(segment));
    }
    uint64_t length = atomic_load_explicit(&array->length, memory_order_relaxed);
    /* release: the segment exists before the length says so */
    while (index >= length &&
           !atomic_compare_exchange_weak_explicit(&array->length, &length, index + 1,
                                                  memory_order_acq_rel, memory_order_relaxed))
        ;
    return 0;
}

/* Finds the element that `what` names. NULL with an error; NULL with 0: it does not exist, and the
 * action needs none. */
static int array_find(ferry *f, fy_array *array, int owner, const fy_action *what, fy_slot **out)
{
    /* acquire: pairs with the release of the rank that made the array longer */
    const uint64_t length = atomic_load_explicit(&array->length, memory_order_acquire);
    uint64_t index = (uint64_t)what->index;
    const bool reads = what->verb == FY_WINDOW_GET;
    *out = NULL;
    if (what->index < 0) {
        if (-index > length)
            return reads ? 0 : FERRY_ERANGE;
        index += length;
    }
    if (!reads)
        return slot_make(f, array, owner, index, out);
    if (index < length)
        *out = fy_array_slot(array, index);
    return 0;
}

/* Whether a value of `size_bytes` belongs in the block. The caller holds the lock. */
static inline bool in_block(const fy_slot *slot, size_t size_bytes)
{
    return size_bytes >= sizeof(slot->few) || form_of(slot) != FY_FORM_LOCKED;
}

static inline unsigned char *slot_data(fy_slot *slot)
{
    if (form_of(slot) == FY_FORM_VIEW)
        return slot->place;
    if (!in_block(slot, slot->size - 1))
        return slot->few;
    return (unsigned char *)slot->block + fy_block_head(slot->block->room_bytes);
}

static int make_room(ferry *f, int owner, fy_slot *slot, size_t size_bytes)
{
    if (slot->block != NULL && slot->block->room_bytes >= size_bytes)
        return 0;
    if (size_bytes > PTRDIFF_MAX - FY_LARGE_HEAD)
        return FERRY_ENOMEM;
    fy_block *block = take_memory(f, fy_block_head(size_bytes) + size_bytes, owner),
             *old = slot->block;
    if (block == NULL)
        return FERRY_ENOMEM;
    block->room_bytes = size_bytes;
    slot->block = block;
    give_memory(f, old);
    return 0;
}

/* Replaces the value of an element of a view. */
static int store_view(fy_slot *slot, const void *value, size_t size_bytes)
{
    if (value == NULL || size_bytes != slot->size - 1)
        return FERRY_EINVAL;
    memcpy(slot->place, value, size_bytes);
    return 0;
}

/* Replaces the value of an element in any form but a view. */
static int store(ferry *f, int owner, fy_slot *slot, const void *value, size_t size_bytes)
{
    const uint32_t form = form_of(slot);
    if (form == FY_FORM_VIEW)
        return store_view(slot, value, size_bytes);
    /* release: a rank that sees the form sees the value */
    if (value != NULL && size_bytes == sizeof(uint64_t) && form == FY_FORM_LOCKED) {
        uint64_t word;
        memcpy(&word, value, sizeof(word));
        atomic_store_explicit(&slot->word, word, memory_order_relaxed);
        atomic_store_explicit(&slot->form, FY_FORM_WORD, memory_order_release);
        return 0;
    }
    if (value == NULL) {
        slot->size = 0;
    } else {
        if (in_block(slot, size_bytes) && make_room(f, owner, slot, size_bytes) != 0)
            return FERRY_ENOMEM;
        slot->size = size_bytes + 1;
        if (size_bytes > 0)
            memcpy(slot_data(slot), value, size_bytes);
    }
    if (form == FY_FORM_WORD)
        atomic_store_explicit(&slot->form, FY_FORM_BLOCK, memory_order_release);
    return 0;
}

static int slot_load(fy_slot *slot, const fy_action *what)
{
    size_t size_bytes = slot == NULL || slot->size == 0 ? 0 : slot->size - 1;
    if (what->size_out != NULL)
        *what->size_out = size_bytes;
    if (size_bytes > what->room_bytes)
        return FERRY_ETOOLONG;
    if (size_bytes > 0 && what->target != NULL)
        memcpy(what->target, slot_data(slot), size_bytes);
    return 0;
}

/* Accumulates and fetches. Copies the value before, if there was one, to `target`. */
static int combine(ferry *f, int owner, fy_slot *slot, const fy_action *what)
{
    if (slot->size != 0 && slot->size - 1 != what->size_bytes)
        return FERRY_EINVAL;
    if (what->target != NULL && slot->size == 0)
        memset(what->target, 0, what->size_bytes);
    else if (what->target != NULL)
        memcpy(what->target, slot_data(slot), what->size_bytes);
    if (slot->size == 0 || what->reduction == FERRY_REPLACE)
        return store(f, owner, slot, what->value, what->size_bytes);
    fy_reduce((ferry_type)what->type, (ferry_reduction)what->reduction, slot_data(slot),
              slot_data(slot), what->value, what->count);
    return 0;
}

static int swap(ferry *f, int owner, fy_slot *slot, const fy_action *what)
{
    uint64_t before = 0;
    if (slot->size != 0 && slot->size - 1 != what->size_bytes)
        return FERRY_EINVAL;
    if (slot->size != 0)
        memcpy(&before, slot_data(slot), what->size_bytes);
    bool same = memcmp(&before, what->expected, what->size_bytes) == 0;
    if (what->target != NULL)
        memcpy(what->target, &before, what->size_bytes);
    return same ? store(f, owner, slot, what->value, what->size_bytes) : 0;
}

/* Combines the word with numbers of 8 bytes in total. Returns the word before. */
static uint64_t combine_word(_Atomic uint64_t *number, const fy_action *what)
{
    uint64_t value, before, after;
    memcpy(&value, what->value, sizeof(value));
    /* acq_rel, here and below: the next rank after this one sees what this one wrote before */
    if (what->reduction == FERRY_REPLACE)
        return atomic_exchange_explicit(number, value, memory_order_acq_rel);
    if (what->reduction == FERRY_SUM && (what->type == FERRY_INT64 || what->type == FERRY_UINT64))
        return atomic_fetch_add_explicit(number, value, memory_order_acq_rel);
    before = atomic_load_explicit(number, memory_order_relaxed);
    do
        fy_reduce((ferry_type)what->type, (ferry_reduction)what->reduction, &after, &before, &value,
                  what->count);
    while (!atomic_compare_exchange_weak_explicit(number, &before, after, memory_order_acq_rel,
                                                  memory_order_relaxed));
    return before;
}

static uint64_t swap_word(_Atomic uint64_t *number, const fy_action *what)
{
    uint64_t before, after;
    memcpy(&before, what->expected, sizeof(before));
    memcpy(&after, what->value, sizeof(after));
    /* acq_rel: as above */
    (void)atomic_compare_exchange_strong_explicit(number, &before, after, memory_order_acq_rel,
                                                  memory_order_acquire);
    return before;
}

/* Does the action without the lock, if the value has 8 bytes before and after it. */
static bool apply_word(_Atomic uint64_t *number, const fy_action *what, int *error)
{
    uint64_t word = 0;
    if (what->verb == FY_WINDOW_PUT) {
        if (what->value == NULL || what->size_bytes != sizeof(word))
            return false;
        memcpy(&word, what->value, sizeof(word));
        /* release: as above */
        atomic_store_explicit(number, word, memory_order_release);
        return true;
    }
    if (what->verb == FY_WINDOW_GET) {
        /* acquire: as above */
        word = atomic_load_explicit(number, memory_order_acquire);
        if (what->size_out != NULL)
            *what->size_out = sizeof(word);
        *error = what->room_bytes < sizeof(word) ? FERRY_ETOOLONG : 0;
    } else if (what->size_bytes != sizeof(word)) {
        *error = FERRY_EINVAL;
    } else {
        word = what->verb == FY_WINDOW_SWAP ? swap_word(number, what) : combine_word(number, what);
    }
    if (*error == 0 && what->target != NULL)
        memcpy(what->target, &word, sizeof(word));
    return true;
}

static int apply_locked(ferry *f, int owner, fy_slot *slot, const fy_action *what)
{
    switch (what->verb) {
    case FY_WINDOW_PUT:
        return store(f, owner, slot, what->value, what->size_bytes);
    case FY_WINDOW_ACCUMULATE:
    case FY_WINDOW_FETCH:
        return combine(f, owner, slot, what);
    case FY_WINDOW_SWAP:
        return swap(f, owner, slot, what);
    default:
        return slot_load(slot, what);
    }
}

/* Removes a value that is in doubt; in a view it becomes zero bytes. */
static void spoil(fy_slot *slot)
{
    if (form_of(slot) == FY_FORM_VIEW)
        memset(slot->place, 0, slot->size - 1);
    else
        slot->size = 0;
}

int fy_array_apply(ferry *f, fy_array *array, int owner, const fy_action *what)
{
    fy_slot *slot;
    int error = array_find(f, array, owner, what, &slot);
    if (error != 0)
        return error;
    if (slot == NULL)
        return slot_load(NULL, what);
    _Atomic uint64_t *number = fy_slot_word(slot);
    if (number != NULL && apply_word(number, what, &error))
        return error;
    bool dead = fy_window_lock_take(f, &slot->lock);
    number = fy_slot_word(slot);
    if (dead && number == NULL) {
        spoil(slot);
        error = FERRY_EPEER;
    } else if (number == NULL || !apply_word(number, what, &error)) {
        error = apply_locked(f, owner, slot, what);
    }
    fy_window_lock_give(&slot->lock);
    return error;
}

/* Takes the locks of elements, until one has a value or memory is short. Sets `*locked` to their
 * number. */
static int lock_empty(ferry *f, fy_array *array, int owner, fy_extent extent, uint64_t *locked)
{
    fy_slot *slot;
    *locked = 0;
    /* Makes the array long enough. */
    int error = slot_make(f, array, owner, extent.first + extent.count - 1, &slot);
    for (; *locked < extent.count && error == 0; ++*locked) {
        error = slot_make(f, array, owner, extent.first + *locked, &slot);
        if (error != 0)
            return error;
        if (fy_window_lock_take(f, &slot->lock) && fy_slot_word(slot) == NULL)
            spoil(slot);
        if (form_of(slot) == FY_FORM_WORD || slot->size != 0) {
            fy_window_lock_give(&slot->lock);
            return FERRY_EINVAL;
        }
    }
    return error;
}

/* Gives the locks back. With `place` the elements have their values there. */
static void unlock_all(ferry *f, fy_array *array, fy_extent extent, char *place)
{
    for (uint64_t i = 0; i < extent.count; i++) {
        fy_slot *slot = fy_array_slot(array, extent.first + i);
        if (place != NULL) {
            give_memory(f, slot->block);
            slot->place = place + i * extent.value_bytes;
            slot->size = 1 + extent.value_bytes;
            /* release: a rank that sees the form sees the place */
            atomic_store_explicit(&slot->form, FY_FORM_VIEW, memory_order_release);
        }
        fy_window_lock_give(&slot->lock);
    }
}

/* A rank holds at most one lock, except while it makes a view of its own array. So no two ranks
 * wait for each other. */
int fy_array_view(ferry *f, fy_array *array, int owner, fy_extent extent, uint64_t *taken,
                  void **out)
{
    const size_t size_bytes = extent.count * extent.value_bytes;
    fy_view *view = take_memory(f, sizeof(*view) + size_bytes, owner);
    if (view == NULL)
        return FERRY_ENOMEM;
    memset(view->bytes, 0, size_bytes);
    uint64_t locked;
    int error = lock_empty(f, array, owner, extent, &locked);
    *taken = extent.first + locked;
    extent.count = locked;
    unlock_all(f, array, extent, error == 0 ? view->bytes : NULL);
    if (error != 0) {
        give_memory(f, view);
        return error;
    }
    view->next = array->views;
    array->views = view;
    *out = view->bytes;
    return 0;
}

bool fy_action_is_right(const fy_action *what)
{
    size_t bytes = fy_type_bytes((ferry_type)what->type);
    if (bytes == 0 || what->count > PTRDIFF_MAX / bytes)
        return false;
    return what->reduction == FERRY_REPLACE ||
           (what->reduction < FERRY_USER &&
            fy_reduces((ferry_type)what->type, (ferry_reduction)what->reduction));
}

size_t fy_action_bytes(const fy_action *what)
{
    return what->count * fy_type_bytes((ferry_type)what->type);
}
