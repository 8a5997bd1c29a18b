#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_trusted(const char *path)
{
    struct stat link;
    return lstat(path, &link) == 0 && (link.st_uid == 0 || link.st_uid == geteuid());
}

FILE *fy_file_create(const char *path, bool append)
{
    int flags = O_WRONLY | O_CREAT | O_CLOEXEC | (append ? O_APPEND : O_TRUNC);
    int fd = open(path, flags | O_NOFOLLOW, 0666);
    if (fd < 0 && errno == ELOOP) {
        if (is_trusted(path))
            fd = open(path, flags, 0666);
        else
            errno = ELOOP;
    }
    FILE *file = fd < 0 ? NULL : fdopen(fd, append ? "a" : "w");
    if (fd >= 0 && file == NULL)
        close(fd);
    return file;
}

const char *fy_file_why(void)
{
    return errno == ELOOP ? "it is a symbolic link of another user; expected a file"
                          : strerror(errno);
}
