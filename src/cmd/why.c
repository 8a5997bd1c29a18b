/* ferry why: asks the ranks of a job what they do. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "cmd/cmd.h"
#include "port/shm/layout.h"

static const char help[] =
    "usage: ferry why JOB\n"
    "\n"
    "Prints what each rank of a running job on this machine does, the messages that wait, the\n"
    "objects they wait for, and which ranks wait for each other. JOB is the number of the process\n"
    "that started the ranks (ferry run, or the program itself with FERRY_RANKS), or of a rank.\n"
    "The job goes on undisturbed. A rank that does not call Ferry is shown by what it does only.\n"
    "SIGUSR1 to the process that started the ranks prints the same on its standard error.\n";

/* Opens the segment of the job that process `pid` holds; -1. */
static int open_segment(long pid)
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

static long parent_of(long pid)
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
    return parent;
}

static int fail(const char *job, const char *why)
{
    fprintf(stderr, "ferry why: %s: %s\n", job, why);
    return EXIT_FAILURE;
}

int cmd_why(int argc, char **argv)
{
    if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        fputs(help, stdout);
        return 0;
    }
    if (argc != 2) {
        fprintf(stderr, "ferry why: %d jobs: expected the number of one process\n", argc - 1);
        return CMD_USAGE_STATUS;
    }
    char *end;
    long pid = strtol(argv[1], &end, 10);
    if (*end != '\0' || pid <= 0)
        return fail(argv[1], "expected the number of a process");
    int fd = open_segment(pid);
    if (fd < 0)
        fd = open_segment(parent_of(pid));
    if (fd < 0)
        return fail(argv[1], "holds no job of Ferry's on this machine; expected the process that "
                             "started the ranks, or a rank, of the same user");
    fy_controls controls;
    int error = fy_controls_map(fd, &controls);
    (void)close(fd);
    if (error != 0)
        return fail(argv[1], fy_error_text());
    fy_why_question(&controls);
    fy_why_print(&controls, STDOUT_FILENO);
    fy_controls_unmap(&controls);
    return 0;
}
