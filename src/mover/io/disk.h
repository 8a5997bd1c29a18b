/* Disk: what the movers to and from files share.
 *
 * All ranks write a file under another name, at places that each of them knows. It gets its name
 * when all of it is on disk. So a crash while writing leaves the earlier file. */
#ifndef FY_MOVER_DISK_H
#define FY_MOVER_DISK_H

#include <ferry/mover.h>

/* Fails as errno says: FERRY_ENOENT or FERRY_ESYSTEM, "`who`: cannot `what` `path`: ...". */
int fy_disk_refused(ferry *f, const char *who, const char *what, const char *path);

/* FERRY_ESYSTEM with errno. Reading, FERRY_EINVAL: the file ends before. */
int fy_disk_write(int fd, const void *data, size_t size_bytes, uint64_t offset);
int fy_disk_read(int fd, void *data, size_t size_bytes, uint64_t offset);

/* Copies the elements of `region` that both grids have. FERRY_ENOMEM. */
int fy_disk_copy(const ferry_grid *target, const ferry_grid *source, ferry_region region);

/* How a file is filled. Each returns an error of its rank's, with its message. */
typedef struct fy_disk_writer {
    const char *who;
    /* On rank 0: makes the file `path`, which is not there; gives all ranks a number. NULL: an
     * empty file, and 0. */
    int (*create)(void *arg, const char *path, uint64_t *number);
    /* On each rank: writes its part, which is forced to disk afterwards. */
    int (*fill)(void *arg, int fd, const char *path, uint64_t number);
    void *arg;
} fy_disk_writer;

/* Writes the file `path`, or leaves the earlier one: each rank passes the `error` that it has
 * already found, or 0. Collective; an error is one of all ranks. */
int fy_disk_replace(ferry *f, int error, const char *path, const fy_disk_writer *writer);

#endif
