/* Buffers: large blocks of memory that the store keeps when they are free, and uses again. A buffer
 * holds an image of an object, or the data of an object of a flat type.
 *
 * Why: the system clears each page of new memory when the page is first touched. That can take
 * longer than to read the page from disk.
 *
 * How much is kept (fy_buffers_trim): free buffers and the objects in memory take at most the
 * budget. Two cases allow one buffer more:
 *
 * - The store has read from its disk. An object that a task needs before it was read ahead is read
 * into that buffer. A program that only creates objects reads nothing and keeps to the budget.
 * - The rank is a data server or a computing engine (ferry_percolation_start). An object that
 *   migrates is read there even if the budget is full.
 *
 * Very large buffers ask for huge pages. A free buffer is in the list `buffers`, linked by its own
 * first bytes. It is aligned for the disk.
 *
 * Threads: the lock of the disk's crew protects the list. */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/alloc.h"
#include "store/state.h"

/* A block below SMALL_BYTES goes back to the C library, which keeps small blocks itself. A search
 * looks at LOOKS free buffers. */
enum { SMALL_BYTES = 64 << 10, HUGE_BYTES = 2 << 20, LOOKS = 8 };

/* Bytes of data that fit into a buffer. The budget counts these, as it counts the data of objects.
 * The rest of the buffer is the end of the image, which fills a block of the disk. */
static uint64_t data_bytes(fy_link *buffer)
{
    size_t room_bytes = malloc_usable_size(buffer);
    return room_bytes - room_bytes / FY_WASTE_PART;
}

static fy_link *remove_buffer(ferry_store *s, fy_link *buffer)
{
    fy_list_remove(buffer);
    /* relaxed: a counter; it changes under the lock, and a reader only compares it */
    atomic_fetch_sub_explicit(&s->idle_bytes, data_bytes(buffer), memory_order_relaxed);
    return buffer;
}

/* Takes a free buffer of at least `size_bytes`, and of little more, from the list. If the list has
 * none, frees its oldest buffer and returns NULL. So buffers of sizes that are no longer used do
 * not stay. */
static void *find_buffer(ferry_store *s, size_t size_bytes)
{
    fy_link *found = NULL;
    fy_crew_lock(&s->disk.crew);
    fy_link *link = s->buffers.prev;
    for (int looks = 0; looks < LOOKS && link != &s->buffers && found == NULL; looks++) {
        size_t room_bytes = malloc_usable_size(link);
        if (room_bytes >= size_bytes && room_bytes - size_bytes <= size_bytes / FY_WASTE_PART)
            found = remove_buffer(s, link);
        else
            link = link->prev;
    }
    if (found == NULL && !fy_list_empty(&s->buffers))
        free(remove_buffer(s, s->buffers.next));
    fy_crew_unlock(&s->disk.crew);
    return found;
}

void *fy_buffer_take(ferry_store *s, size_t size_bytes)
{
    bool large = size_bytes >= 2 * HUGE_BYTES;
    void *buffer = size_bytes < SMALL_BYTES ? NULL : find_buffer(s, size_bytes);
    if (buffer != NULL)
        return buffer;
    buffer = fy_aligned_alloc(large ? HUGE_BYTES : s->disk.align_bytes, size_bytes);
    if (buffer != NULL && large)
        (void)madvise(buffer, size_bytes / HUGE_BYTES * HUGE_BYTES, MADV_HUGEPAGE);
    return buffer;
}

void fy_buffer_give(ferry_store *s, void *buffer)
{
    size_t room_bytes = buffer == NULL ? 0 : malloc_usable_size(buffer);
    if (room_bytes < SMALL_BYTES || (uintptr_t)buffer % s->disk.align_bytes != 0) {
        free(buffer);
        return;
    }
    fy_list_insert(&s->buffers, buffer);
    /* relaxed: as in remove_buffer */
    atomic_fetch_add_explicit(&s->idle_bytes, data_bytes(buffer), memory_order_relaxed);
}

void fy_buffers_trim(ferry_store *s)
{
    uint64_t resident_bytes = s->stats.resident_bytes, budget_bytes = s->stats.budget_bytes;
    /* relaxed: as in remove_buffer */
    if (atomic_load_explicit(&s->idle_bytes, memory_order_relaxed) + resident_bytes <= budget_bytes)
        return;
    fy_crew_lock(&s->disk.crew);
    fy_link *newest = s->buffers.prev;
    /* relaxed: a counter */
    if (newest != &s->buffers && atomic_load_explicit(&s->reads, memory_order_relaxed) != 0)
        budget_bytes += data_bytes(newest);
    /* the list is freed from its oldest buffer up to this one */
    fy_link *kept = s->percolation != NULL ? newest : &s->buffers;
    while (s->buffers.next != kept && s->idle_bytes + resident_bytes > budget_bytes)
        free(remove_buffer(s, s->buffers.next));
    fy_crew_unlock(&s->disk.crew);
}

static void *buffers_unpack(ferry *f, ferry_object object, const void *packed, size_t size_bytes)
{
    ferry_store *s = fy_store_of(f);
    if (!fy_image_is_small(s, size_bytes))
        return s->flat.unpack(f, object, packed, size_bytes);
    void *data = fy_image_create(s, size_bytes);
    return data == NULL ? NULL : memcpy(data, packed, size_bytes);
}

static void buffers_destroy(ferry *f, void *data)
{
    ferry_store *s = fy_store_of(f);
    fy_crew_lock(&s->disk.crew);
    fy_buffer_give(s, data);
    fy_crew_unlock(&s->disk.crew);
}

void fy_buffers_serve(ferry_store *s, fy_type *type)
{
    s->flat = type->ops;
    type->ops.unpack = buffers_unpack;
    type->ops.destroy = buffers_destroy;
}

void fy_buffers_end(ferry_store *s)
{
    for (int i = 0; i < s->objects->type_count; i++)
        if (s->shadows[i] != NULL && s->objects->types[i].plain) {
            s->objects->types[i].ops.unpack = s->flat.unpack;
            s->objects->types[i].ops.destroy = s->flat.destroy;
        }
    while (!fy_list_empty(&s->buffers))
        free(remove_buffer(s, s->buffers.next));
}
