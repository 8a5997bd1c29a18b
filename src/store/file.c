/* File: places in a file without a name, and images with a checksum.
 *
 * An image is the packed data. Memory keeps its checksum, so a disk that returns an older image of
 * the object is found out too, and a block of a page takes no second page.
 *
 * A place has a power of two of bytes. A file system that supports holes stores only the part that
 * is written. An object keeps its place until it is gone. Then another object may get the place. If
 * an object outgrows its place, the place stays unused. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file_limit.h"
#include "base/mix.h"
#include "object/flat.h"
#include "store/places.h"

enum { CLASS_MIN = 9, TRIES = 3 };

static int open_in(const char *folder, int flags)
{
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC | flags, 0600);
    if (fd >= 0 || flags != 0)
        return fd;
    char path[PATH_MAX];
    int length = snprintf(path, sizeof path, "%s/ferry-store-XXXXXX", folder);
    if (length < 0 || (size_t)length >= sizeof path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0)
        (void)unlink(path);
    return fd;
}

int fy_store_file_open(const char *folder, bool direct, size_t *align_bytes)
{
    int fd = direct ? open_in(folder, O_DIRECT) : -1;
    *align_bytes = fd >= 0 ? FY_DIRECT_BYTES : 2 * sizeof(void *);
    return fd >= 0 ? fd : open_in(folder, 0);
}

/* The size of an image: that of its data, rounded up to what the disk needs. */
static size_t store_file_bytes(const ferry_store *s, size_t data_bytes)
{
    size_t mask = s->disk.align_bytes - 1;
    return (data_bytes + (data_bytes == 0) + mask) & ~mask;
}

void *fy_image_create(ferry_store *s, size_t data_bytes)
{
    return data_bytes > SIZE_MAX / 4 ? NULL : fy_buffer_take(s, store_file_bytes(s, data_bytes));
}

bool fy_image_is_small(const ferry_store *s, size_t data_bytes)
{
    return data_bytes <= SIZE_MAX / 4 &&
           store_file_bytes(s, data_bytes) - data_bytes <= data_bytes / FY_WASTE_PART;
}

/* One word into one of the sums below. A multiplication carries only upwards, so the sum turns. */
static uint64_t add_word(uint64_t sum, uint64_t word)
{
    sum = (sum ^ word) * 0xbf58476d1ce4e5b9u;
    return sum << 29 | sum >> 35;
}

enum { LANES = 8 };

/* A loop here would take three times as long: compilers leave it rolled. */
static inline void add_words(uint64_t sums[LANES], const uint64_t words[LANES])
{
    sums[0] = add_word(sums[0], words[0]);
    sums[1] = add_word(sums[1], words[1]);
    sums[2] = add_word(sums[2], words[2]);
    sums[3] = add_word(sums[3], words[3]);
    sums[4] = add_word(sums[4], words[4]);
    sums[5] = add_word(sums[5], words[5]);
    sums[6] = add_word(sums[6], words[6]);
    sums[7] = add_word(sums[7], words[7]);
}

/* Eight sums in parallel take less time than one. */
uint64_t fy_image_sum(const void *image, uint64_t object, uint64_t left_bytes)
{
    const unsigned char *at = image;
    uint64_t words[LANES], sums[LANES], sum = 0;
    for (unsigned i = 0; i < LANES; i++)
        sums[i] = fy_mix(object + i, left_bytes);
    for (; left_bytes >= sizeof words; at += sizeof words, left_bytes -= sizeof words) {
        memcpy(words, at, sizeof words);
        add_words(sums, words);
    }
    memset(words, 0, sizeof words);
    memcpy(words, at, left_bytes);
    add_words(sums, words);
    for (unsigned i = 0; i < LANES; i++)
        sum = fy_mix(sum, sums[i]);
    return sum;
}

/* The rank whose disk has the place. */
static int owner_of(const fy_stored *item)
{
    return item->file == NULL ? item->store->objects->rank : item->file->rank;
}

/* The outcome of a call of the job of `item`: the simulator's, or that it succeeds. */
static fy_disk_outcome outcome_of(fy_stored *item, size_t size_bytes)
{
    fy_disk_outcome out = {0};
    fy_port *simulator = item->store->disk.simulator;
    if (simulator != NULL)
        simulator->ops->host.disk(simulator, owner_of(item), item->job.writes, size_bytes, &out);
    if (out.end_ns > item->job.due_ns)
        item->job.due_ns = out.end_ns;
    errno = out.error;
    return out;
}

/* Writes as disk->write does. The limit of file sizes is an error as any other. */
static ssize_t write_quietly(const fy_disk *disk, const void *bytes, size_t size_bytes,
                             off_t offset)
{
    sigset_t before;
    fy_file_limit_hold(&before);
    ssize_t count = disk->write(disk->fd, bytes, size_bytes, offset);
    fy_file_limit_release(&before, count < 0);
    return count;
}

static ssize_t write_some(fy_stored *item, const void *bytes, size_t size_bytes, off_t offset)
{
    const fy_disk *disk = &item->store->disk;
    return outcome_of(item, size_bytes).error != 0 ? -1
                                                   : write_quietly(disk, bytes, size_bytes, offset);
}

static ssize_t read_some(fy_stored *item, void *bytes, size_t size_bytes, off_t offset)
{
    const fy_disk *disk = &item->store->disk;
    fy_disk_outcome out = outcome_of(item, size_bytes);
    if (out.error != 0)
        return -1;
    int fd = item->file == NULL ? disk->fd : item->file->fd;
    ssize_t count = disk->read(fd, bytes, size_bytes, offset);
    if (out.damage != 0 && count > 0)
        ((unsigned char *)bytes)[out.damage % (uint64_t)count] ^= 1;
    return count;
}

/* Writes or reads the image. Returns 0; -1: the file ends too early; else errno. */
static int move_image(fy_stored *item, size_t size_bytes, bool writes)
{
    for (size_t done = 0; done < size_bytes;) {
        unsigned char *at = (unsigned char *)item->image + done;
        off_t offset = (off_t)(item->offset + done);
        ssize_t count = writes ? write_some(item, at, size_bytes - done, offset)
                               : read_some(item, at, size_bytes - done, offset);
        if (count == 0)
            return writes ? ENOSPC : -1;
        if (count < 0 && errno != EINTR)
            return errno;
        done += count > 0 ? (size_t)count : 0;
    }
    return 0;
}

/* Gives the object a place of at least `size_bytes`. If it has a smaller one, that part of the file
 * stays unused. */
static void find_place(fy_stored *item, size_t size_bytes)
{
    ferry_store *s = item->store;
    unsigned size_class = item->size_class < CLASS_MIN ? CLASS_MIN : item->size_class;
    while (UINT64_C(1) << size_class < s->disk.align_bytes)
        size_class++;
    while (UINT64_C(1) << size_class < size_bytes)
        size_class++;
    if (size_class == item->size_class)
        return;
    fy_stored *other = (fy_stored *)(void *)fy_list_pop(&s->places[size_class]);
    item->size_class = size_class;
    item->offset = other != NULL ? other->offset : s->end_bytes;
    if (other == NULL)
        s->end_bytes += UINT64_C(1) << size_class;
    free(other);
}

/* Whether the object's data are in memory that the disk can use, so that they can become the image.
 */
static bool is_image(const ferry_store *s, const fy_record *record, size_t data_bytes)
{
    return record->type->plain && fy_image_is_small(s, data_bytes) &&
           (uintptr_t)record->data % s->disk.align_bytes == 0 &&
           malloc_usable_size(record->data) >= store_file_bytes(s, data_bytes);
}

int fy_stored_pack(fy_stored *item)
{
    ferry_store *s = item->store;
    const fy_record *record = item->record;
    size_t data_bytes = fy_packed_bytes(s->f, record->type, record->data);
    bool packed = is_image(s, record, data_bytes);
    unsigned char *image = packed ? record->data : fy_image_create(s, data_bytes);
    if (image == NULL)
        return ENOMEM;
    if (!packed)
        record->type->ops.pack(s->f, record->data, image, data_bytes);
    size_t size_bytes = store_file_bytes(s, data_bytes);
    memset(image + data_bytes, 0, size_bytes - data_bytes);
    find_place(item, size_bytes);
    s->stats.resident_bytes += data_bytes - item->size_bytes;
    fy_stored_measured(item, data_bytes);
    item->image = image;
    return 0;
}

int fy_stored_put(fy_stored *item)
{
    item->sum = fy_image_sum(item->image, item->object, item->image_bytes);
    return move_image(item, store_file_bytes(item->store, item->image_bytes), true);
}

/* Whether the image is the one that was written last. */
static bool file_check(const fy_stored *item, char why[FY_STORE_WHY_BYTES])
{
    uint64_t sum = fy_image_sum(item->image, item->object, item->size_bytes);
    if (sum != item->sum)
        (void)snprintf(why, FY_STORE_WHY_BYTES, "its checksum is %016llx, expected %016llx",
                       (unsigned long long)sum, (unsigned long long)item->sum);
    return sum == item->sum;
}

static bool try_read(fy_stored *item, char why[FY_STORE_WHY_BYTES])
{
    int error = move_image(item, store_file_bytes(item->store, item->size_bytes), false);
    if (error == 0)
        return file_check(item, why);
    (void)snprintf(why, FY_STORE_WHY_BYTES, "%s",
                   error < 0 ? "the file ends before its image does" : strerror(error));
    return false;
}

bool fy_stored_get(fy_stored *item, char why[FY_STORE_WHY_BYTES])
{
    ferry_store *s = item->store;
    bool whole = false;
    for (int i = 0; i < TRIES && !whole; i++)
        whole = try_read(item, why);
    /* relaxed, all three: they are counters */
    if (!whole) {
        atomic_fetch_add_explicit(&s->read_errors, 1, memory_order_relaxed);
        return false;
    }
    atomic_fetch_add_explicit(&s->reads, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&s->read_bytes, item->size_bytes, memory_order_relaxed);
    return true;
}
