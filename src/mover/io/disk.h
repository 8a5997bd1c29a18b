/* Disk: functions that checkpoints, datasets and pictures share.
 *
 * All ranks write a file under a temporary name, each at places that it knows. The file gets its
 * name when all of it is on disk. So after a crash during writing the earlier file still exists. */
#ifndef FY_MOVER_DISK_H
#define FY_MOVER_DISK_H

#include <ferry/mover.h>

/* Returns FERRY_ENOENT or FERRY_ESYSTEM, by errno, with the message "`who`: cannot `what` `path`:
 * ...". */
int fy_disk_refused(ferry *f, const char *who, const char *what, const char *path);

/* As pwrite and pread of all bytes. FERRY_ESYSTEM: see errno. FERRY_EINVAL, of reading: the file is
 * too short. */
int fy_disk_write(int fd, const void *data, size_t size_bytes, uint64_t offset);
int fy_disk_read(int fd, void *data, size_t size_bytes, uint64_t offset);

/* As ftruncate. FERRY_ESYSTEM: see errno. */
int fy_disk_resize(int fd, uint64_t size_bytes);

/* Copies the elements of `region` that both grids have. FERRY_ENOMEM. */
int fy_disk_copy(const ferry_grid *target, const ferry_grid *source, ferry_region region);

/* How a file is made. Each function returns an error of its rank, with its message. */
typedef struct fy_disk_writer {
    const char *who;
    /* On the first member: makes the file `path`, which does not exist. `*number` goes to all
     * ranks. NULL: an empty file, and 0. */
    int (*create)(void *arg, const char *path, uint64_t *number);
    /* On each rank: writes its part, which is then forced to disk. */
    int (*fill)(void *arg, int fd, const char *path, uint64_t number);
    void *arg;
} fy_disk_writer;

/* Writes the file `path`. On an error the earlier file stays. Each rank passes its `error` so far.
 * Collective: if one rank has an error, all return one. */
int fy_disk_replace(ferry *f, int error, const char *path, const fy_disk_writer *writer);

#endif
