#include "port/nodes/child.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ferry/error.h>

#include "base/error.h"

/* Reads a file of /proc, whose size is not known. Gives `*out`. Returns 0 or errno. */
static int read_all(const char *path, char **out, size_t *bytes)
{
    enum { PIECE_BYTES = 16384 };
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    char *text = NULL;
    size_t used = 0;
    ssize_t got = fd < 0 ? -1 : 1;
    while (got > 0) {
        char *more = realloc(text, used + PIECE_BYTES);
        got = more == NULL ? -1 : read(fd, more + used, PIECE_BYTES);
        text = more == NULL ? text : more;
        used += got > 0 ? (size_t)got : 0;
    }
    int error = got < 0 ? errno : 0;
    if (fd >= 0)
        close(fd);
    if (error != 0)
        free(text);
    *out = error != 0 ? NULL : text;
    *bytes = used;
    return error;
}

/* Makes one allocation with an array of pointers, and the strings that they point to. Each string
 * has its end in `text`. */
static char **point_at(const char *text, size_t bytes)
{
    size_t count = 0;
    for (size_t i = 0; i < bytes; i++)
        count += text[i] == '\0';
    char **argv = malloc((count + 1) * sizeof(*argv) + bytes);
    if (argv == NULL)
        return NULL;
    char *at = memcpy((char *)(argv + count + 1), text, bytes);
    for (size_t i = 0; i < count; i++, at += strlen(at) + 1)
        argv[i] = at;
    argv[count] = NULL;
    return argv;
}

static bool is_launchers(const fy_nodes_launcher *launcher, const char *variable)
{
    for (const char *const *begin = launcher->variables; *begin != NULL; begin++)
        if (strncmp(variable, *begin, strlen(*begin)) == 0)
            return true;
    return false;
}

/* A copy of this process's environment without the launcher's variables: another thread may change
 * the environment while children are started. NULL: no memory. */
static char **copy_environment(const fy_nodes_launcher *launcher)
{
    size_t bytes = 0, used = 0;
    for (char **at = environ; at != NULL && *at != NULL; at++)
        bytes += strlen(*at) + 1;
    char *text = malloc(bytes + 1);
    for (char **at = environ; text != NULL && at != NULL && *at != NULL; at++)
        if (!is_launchers(launcher, *at)) {
            size_t length = strlen(*at) + 1;
            memcpy(text + used, *at, length);
            used += length;
        }
    char **copy = text == NULL ? NULL : point_at(text, used);
    free(text);
    return copy;
}

int fy_nodes_program_read(const fy_nodes_launcher *launcher, fy_nodes_program *out)
{
    char *text;
    size_t bytes;
    out->connection = launcher->connection;
    out->argv = out->environment = NULL;
    ssize_t length = readlink("/proc/self/exe", out->path, sizeof(out->path) - 1);
    if (length <= 0)
        return fy_error_set(FERRY_ESYSTEM, "/proc/self/exe: %s", strerror(errno));
    out->path[length] = '\0';
    int error = read_all("/proc/self/cmdline", &text, &bytes);
    if (error != 0)
        return fy_error_set(FERRY_ESYSTEM, "/proc/self/cmdline: %s", strerror(error));
    out->argv = point_at(text, bytes);
    free(text);
    out->environment = copy_environment(launcher);
    return out->argv == NULL || out->environment == NULL
               ? fy_error_set(FERRY_ENOMEM, "no memory for arguments and environment")
               : 0;
}

void fy_nodes_program_free(fy_nodes_program *program)
{
    free((void *)program->argv);
    free((void *)program->environment);
}

void fy_nodes_child_prepare(void *program)
{
    const fy_nodes_program *p = program;
    if (p->connection >= 0)
        close(p->connection);
    cpu_set_t all;
    memset(&all, 0xff, sizeof(all));
    /* The kernel leaves out processors that this process may not use. */
    (void)sched_setaffinity(0, sizeof(all), &all);
}
