/* Finds the segment that a process holds, for a program that asks a job from outside. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "port/shm/layout.h"

/* From a launcher to its ranks, at most. */
enum { GENERATIONS = 3 };

int fy_segment_held(long pid)
{
    char path[64], target[64];
    int fd = -1;
    (void)snprintf(path, sizeof path, "/proc/%ld/fd", pid);
    DIR *folder = opendir(path);
    if (folder == NULL)
        return -1;
    for (const struct dirent *e; fd < 0 && (e = readdir(folder)) != NULL;) {
        ssize_t length = readlinkat(dirfd(folder), e->d_name, target, sizeof target - 1);
        if (length < 0)
            continue;
        target[length] = '\0';
        if (strncmp(target, "/memfd:ferry", 12) == 0)
            fd = openat(dirfd(folder), e->d_name, O_RDWR | O_CLOEXEC);
    }
    (void)closedir(folder);
    return fd;
}

static int open_of_parent(long pid)
{
    char path[64], line[128];
    long parent = 0;
    (void)snprintf(path, sizeof path, "/proc/%ld/status", pid);
    FILE *file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "PPid: %ld", &parent) == 1)
            break;
    if (file != NULL)
        (void)fclose(file);
    return parent > 0 ? fy_segment_held(parent) : -1;
}

/* Where the ranks are threads, the one child of the launcher holds it; where MPI has started them,
 * each does, and may be a child's child. */
static int open_of_child(long pid, int depth)
{
    char path[64];
    long child;
    int fd = -1;
    (void)snprintf(path, sizeof path, "/proc/%ld/task/%ld/children", pid, pid);
    FILE *file = fopen(path, "re");
    while (file != NULL && fd < 0 && fscanf(file, "%ld", &child) == 1) {
        fd = fy_segment_held(child);
        if (fd < 0 && depth > 1)
            fd = open_of_child(child, depth - 1);
    }
    if (file != NULL)
        (void)fclose(file);
    return fd;
}

int fy_segment_of_process(long pid, bool or_parent)
{
    int fd = fy_segment_held(pid);
    if (fd < 0 && pid > 1)
        fd = open_of_child(pid, GENERATIONS);
    return fd >= 0 || !or_parent ? fd : open_of_parent(pid);
}
