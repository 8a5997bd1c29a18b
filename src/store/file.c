/* File: places in a file without a name, and images with a checksum.
 *
 * A place has a power of two of bytes, most of which a file system with holes never stores. An
 * object keeps its place until it is gone or outgrows it; then another one may get it. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/mix.h"
#include "store/state.h"

/* The head that stands before the packed data. */
typedef struct image_head {
    uint64_t magic, object, size_bytes, sum;
} image_head;

static const uint64_t MAGIC = 0x31656d6965727246u;

enum { CLASS_MIN = 9, TRIES = 3 };

int fy_store_file_open(const char *folder)
{
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0)
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

static uint64_t sum_of(const image_head *head, const void *data)
{
    uint64_t sum = fy_mix(head->object, head->size_bytes);
    uint64_t word = 0;
    size_t at = 0;
    for (; head->size_bytes - at >= sizeof word; at += sizeof word) {
        memcpy(&word, (const unsigned char *)data + at, sizeof word);
        sum = fy_mix(sum, word);
    }
    word = 0;
    if (at != head->size_bytes)
        memcpy(&word, (const unsigned char *)data + at, head->size_bytes - at);
    return fy_mix(sum, word);
}

static int write_all(const ferry_store *s, const void *bytes, size_t size_bytes, uint64_t offset)
{
    for (size_t done = 0; done < size_bytes;) {
        ssize_t count = s->disk.write(s->fd, (const unsigned char *)bytes + done, size_bytes - done,
                                      (off_t)(offset + done));
        if (count == 0)
            return ENOSPC;
        if (count < 0 && errno != EINTR)
            return errno;
        done += count > 0 ? (size_t)count : 0;
    }
    return 0;
}

/* 0; -1: the file ends before; else errno. */
static int read_all(const ferry_store *s, void *bytes, size_t size_bytes, uint64_t offset)
{
    for (size_t done = 0; done < size_bytes;) {
        ssize_t count = s->disk.read(s->fd, (unsigned char *)bytes + done, size_bytes - done,
                                     (off_t)(offset + done));
        if (count == 0)
            return -1;
        if (count < 0 && errno != EINTR)
            return errno;
        done += count > 0 ? (size_t)count : 0;
    }
    return 0;
}

/* Gives the object a place of `size_bytes` at least; its old one stays in the file unused. */
static void find_place(fy_stored *item, size_t size_bytes)
{
    ferry_store *s = item->store;
    unsigned size_class = item->size_class < CLASS_MIN ? CLASS_MIN : item->size_class;
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

int fy_stored_write(fy_stored *item)
{
    ferry_store *s = item->store;
    const fy_record *record = item->record;
    size_t data_bytes = fy_packed_bytes(s->f, record->type, record->data);
    if (data_bytes > SIZE_MAX / 4)
        return ENOMEM;
    image_head *head = fy_malloc(sizeof *head + data_bytes);
    if (head == NULL)
        return ENOMEM;
    record->type->ops.pack(s->f, record->data, head + 1, data_bytes);
    *head = (image_head){.magic = MAGIC, .object = record->object.word, .size_bytes = data_bytes};
    head->sum = sum_of(head, head + 1);
    find_place(item, sizeof *head + data_bytes);
    int error = write_all(s, head, sizeof *head + data_bytes, item->offset);
    free(head);
    if (error == 0) {
        s->stats.writes++;
        s->stats.written_bytes += data_bytes;
        s->stats.resident_bytes += data_bytes - item->size_bytes;
        item->size_bytes = data_bytes;
    }
    return error;
}

/* Whether `head` and what stands behind it are the image of `item`. */
static bool check(const fy_stored *item, const image_head *head, char why[FY_STORE_WHY_BYTES])
{
    uint64_t object = item->record->object.word;
    if (head->magic != MAGIC || head->object != object || head->size_bytes != item->size_bytes) {
        (void)snprintf(why, FY_STORE_WHY_BYTES,
                       "its image says object %016llx of %llu bytes, expected %llu bytes",
                       (unsigned long long)head->object, (unsigned long long)head->size_bytes,
                       (unsigned long long)item->size_bytes);
        return false;
    }
    uint64_t sum = sum_of(head, head + 1);
    if (sum != head->sum)
        (void)snprintf(why, FY_STORE_WHY_BYTES, "its checksum is %016llx, expected %016llx",
                       (unsigned long long)sum, (unsigned long long)head->sum);
    return sum == head->sum;
}

static bool try_read(const fy_stored *item, image_head *head, char why[FY_STORE_WHY_BYTES])
{
    int error = read_all(item->store, head, sizeof *head + item->size_bytes, item->offset);
    if (error == 0)
        return check(item, head, why);
    (void)snprintf(why, FY_STORE_WHY_BYTES, "%s",
                   error < 0 ? "the file ends before its image does" : strerror(error));
    return false;
}

bool fy_stored_read(fy_stored *item, char why[FY_STORE_WHY_BYTES])
{
    ferry_store *s = item->store;
    if (item->image != NULL)
        return true;
    image_head *head = fy_malloc(sizeof *head + item->size_bytes);
    bool whole = false;
    (void)snprintf(why, FY_STORE_WHY_BYTES, "no memory for its image");
    for (int i = 0; i < TRIES && head != NULL && !whole; i++)
        whole = try_read(item, head, why);
    /* relaxed, all three: they only count */
    if (!whole) {
        atomic_fetch_add_explicit(&s->read_errors, 1, memory_order_relaxed);
        free(head);
        return false;
    }
    atomic_fetch_add_explicit(&s->reads, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&s->read_bytes, item->size_bytes, memory_order_relaxed);
    item->image = head;
    return true;
}

const void *fy_stored_packed(const fy_stored *item)
{
    return (const image_head *)item->image + 1;
}
