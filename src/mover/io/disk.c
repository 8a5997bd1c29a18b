#include "mover/io/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ferry/collective.h>

#include "base/alloc.h"
#include "base/file_limit.h"
#include "mover/bind/link.h"
#include "mover/geometry/fail.h"

int fy_disk_refused(ferry *f, const char *who, const char *what, const char *path)
{
    int error = errno == ENOENT ? FERRY_ENOENT : FERRY_ESYSTEM;
    return fy_mover_fail(f, error, "%s: cannot %s %s: %s", who, what, path, strerror(errno));
}

/* As fy_disk_refused for a file that is written: if the path does not exist, that is no file that
 * is missing but a system that refuses. */
static int unwritten(ferry *f, const char *who, const char *what, const char *path)
{
    (void)fy_disk_refused(f, who, what, path);
    return FERRY_ESYSTEM;
}

static ssize_t write_some(int fd, const char *at, size_t size_bytes, uint64_t offset)
{
    sigset_t before;
    fy_file_limit_hold(&before);
    ssize_t done = pwrite(fd, at, size_bytes, (off_t)offset);
    fy_file_limit_release(&before, done < 0);
    return done;
}

/* Writes or reads all bytes. FERRY_EINVAL: the file ends before them. */
static int transfer(int fd, char *at, size_t size_bytes, uint64_t offset, bool writes)
{
    while (size_bytes > 0) {
        ssize_t done = writes ? write_some(fd, at, size_bytes, offset)
                              : pread(fd, at, size_bytes, (off_t)offset);
        if (done == 0 && !writes)
            return FERRY_EINVAL;
        if (done < 0 && errno != EINTR)
            return FERRY_ESYSTEM;
        if (done > 0) {
            at += done;
            offset += (uint64_t)done;
            size_bytes -= (size_t)done;
        }
    }
    return 0;
}

int fy_disk_write(int fd, const void *data, size_t size_bytes, uint64_t offset)
{
    return transfer(fd, (char *)(uintptr_t)data, size_bytes, offset, true);
}

int fy_disk_resize(int fd, uint64_t size_bytes)
{
    sigset_t before;
    fy_file_limit_hold(&before);
    int status = ftruncate(fd, (off_t)size_bytes);
    fy_file_limit_release(&before, status != 0);
    return status == 0 ? 0 : FERRY_ESYSTEM;
}

int fy_disk_read(int fd, void *data, size_t size_bytes, uint64_t offset)
{
    return transfer(fd, data, size_bytes, offset, false);
}

int fy_disk_copy(const ferry_grid *target, const ferry_grid *source, ferry_region region)
{
    ferry_plan_entry copy = {.from = region, .to = region};
    for (int d = 0; d < FERRY_DIMS_MAX; d++) {
        copy.axis[d] = (int8_t)d;
        copy.ratio[d] = 1;
    }
    return ferry_grid_move(target, source, &copy, NULL);
}

/* Renames the file, and forces the entry of the folder to disk too. */
static int name_file(ferry *f, const char *who, const char *temporary, const char *path)
{
    if (rename(temporary, path) != 0)
        return unwritten(f, who, "rename", temporary);
    char *folder = fy_malloc(strlen(path) + 1);
    if (folder == NULL)
        return 0;
    strcpy(folder, path);
    char *slash = strrchr(folder, '/');
    if (slash != NULL)
        slash[slash == folder] = '\0';
    int fd = open(slash != NULL ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    free(folder);
    if (fd >= 0) {
        (void)fsync(fd);
        close(fd);
    }
    return 0;
}

/* Creates the file on the first member. First removes one that a crash has left. */
static int disk_create(ferry *f, const char *path, const fy_disk_writer *writer, uint64_t *number)
{
    (void)unlink(path);
    if (writer->create != NULL)
        return writer->create(writer->arg, path, number);
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return unwritten(f, writer->who, "create", path);
    close(fd);
    return 0;
}

static int disk_fill(ferry *f, const char *path, const fy_disk_writer *writer, uint64_t number)
{
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return unwritten(f, writer->who, "open", path);
    int error = writer->fill(writer->arg, fd, path, number);
    if (error == 0 && fsync(fd) != 0)
        error = unwritten(f, writer->who, "write", path);
    close(fd);
    return error;
}

int fy_disk_replace(ferry *f, int error, const char *path, const fy_disk_writer *writer)
{
    const int root = ferry_member_rank(f, 0);
    const bool first = ferry_rank(f) == root;
    uint64_t number = 0;
    char *temporary = fy_malloc(strlen(path) + 5);
    if (error == 0 && temporary == NULL)
        error = fy_mover_fail(f, FERRY_ENOMEM, "%s: no memory", writer->who);
    if (temporary != NULL)
        sprintf(temporary, "%s.new", path);
    bool made = error == 0 && first;
    if (made)
        error = disk_create(f, temporary, writer, &number);
    error = fy_mover_agree(f, error);
    if (error == 0)
        error = ferry_broadcast(f, root, &number, sizeof number);
    if (error == 0)
        error = fy_mover_agree(f, disk_fill(f, temporary, writer, number));
    if (error == 0)
        error = fy_mover_agree(f, first ? name_file(f, writer->who, temporary, path) : 0);
    if (error != 0 && made)
        (void)unlink(temporary);
    free(temporary);
    return error;
}
