/* ferry why: asks the ranks of a job what they do. */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "cmd/cmd.h"
#include "port/shm/layout.h"

static const char help[] =
    "usage: ferry why [PROCESS]\n"
    "\n"
    "Without PROCESS: lists the jobs of this user on this machine. With PROCESS: prints for each\n"
    "rank of a running job what it does, which messages wait there, and for which object or rank.\n"
    "It names deadlocks: ranks that wait for each other.\n"
    "\n"
    "PROCESS is the number of the process that started the ranks (ferry run, mpirun, or the\n"
    "program itself with FERRY_RANKS), or the number of the process or thread of a rank. If "
    "mpirun\n"
    "runs the job on several machines, ferry why prints the ranks of this machine only, and\n"
    "deadlocks with ranks of other machines too.\n"
    "\n"
    "The job is not stopped. For a rank that does not call Ferry, the last known state is "
    "printed.\n"
    "SIGUSR1 to the process that started the ranks prints the same on the job's standard error,\n"
    "with mpirun for each machine.\n"
    "\n"
    "Exit status: 0; 1 if PROCESS does not exist or belongs to no job; 2 for wrong usage.\n";

static int why_fail(const char *job, const char *why)
{
    fprintf(stderr, "ferry why: %s: %s\n", job, why);
    return EXIT_FAILURE;
}

/* The number of a process; 0: `text` is not one. */
static pid_t process_of(const char *text)
{
    char *end;
    long number = strtol(text, &end, 10);
    bool whole = *text >= '0' && *text <= '9' && *end == '\0';
    return whole && number <= INT32_MAX ? (pid_t)number : 0;
}

/* Prints the program and arguments of a process, as one line. */
static void print_command(long pid)
{
    char path[64], text[100];
    snprintf(path, sizeof path, "/proc/%ld/cmdline", pid);
    FILE *file = fopen(path, "re");
    size_t count = file == NULL ? 0 : fread(text, 1, sizeof text, file);
    if (file != NULL)
        fclose(file);
    while (count > 0 && text[count - 1] == '\0')
        count--;
    for (size_t i = 0; i < count; i++)
        putchar(text[i] == '\0' ? ' ' : (unsigned char)text[i] < ' ' ? '?' : text[i]);
    putchar('\n');
}

/* How many ranks are in the job, without those that have died or left. */
static uint32_t count_ranks(const fy_controls *controls)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < controls->ranks; i++)
        /* seq_cst, though any order would do */
        count += (atomic_load(&rank_at(controls->base, i)->state) & SHM_STATE_MASK) == SHM_JOINED;
    return count;
}

/* Whether the job of this segment was listed already. Under mpirun every rank holds the segment. */
static bool is_listed(ino_t *seen, size_t *count, size_t room, int fd)
{
    struct stat info;
    if (fstat(fd, &info) != 0)
        return true;
    for (size_t i = 0; i < *count; i++)
        if (seen[i] == info.st_ino)
            return true;
    if (*count < room)
        seen[(*count)++] = info.st_ino;
    return false;
}

static int list_jobs(void)
{
    enum { JOBS_MAX = 1024 };
    ino_t seen[JOBS_MAX];
    size_t count = 0, jobs = 0;
    DIR *folder = opendir("/proc");
    if (folder == NULL)
        return why_fail("/proc", strerror(errno));
    for (const struct dirent *e; (e = readdir(folder)) != NULL;) {
        pid_t pid = process_of(e->d_name);
        int fd = pid <= 0 ? -1 : fy_segment_held(pid);
        fy_controls controls;
        if (fd >= 0 && !is_listed(seen, &count, JOBS_MAX, fd) &&
            fy_controls_map(fd, &controls) == 0) {
            uint32_t ranks = count_ranks(&controls);
            printf("%d: %u rank%s of ", (int)pid, ranks, ranks == 1 ? "" : "s");
            print_command(pid);
            fy_controls_unmap(&controls);
            jobs++;
        }
        if (fd >= 0)
            close(fd);
    }
    closedir(folder);
    fflush(stdout); /* the list comes first, also if both go into one pipe */
    if (jobs == 0)
        printf("no job of this user's runs on this machine\n");
    else
        fprintf(stderr, "`ferry why PROCESS` prints what the ranks of one job do\n");
    return 0;
}

int cmd_why(int argc, char **argv)
{
    if (argc == 2 && cmd_asks_help(argv[1])) {
        fputs(help, stdout);
        return 0;
    }
    if (argc == 1)
        return list_jobs();
    if (argc != 2) {
        fprintf(stderr, "ferry why: %d jobs: expected the number of one process, or none\n",
                argc - 1);
        return cmd_wrong_usage("why");
    }
    pid_t pid = process_of(argv[1]);
    if (pid == 0) {
        (void)why_fail(argv[1], "expected the number of a process, which `ferry why` lists");
        return cmd_wrong_usage("why");
    }
    if (kill(pid, 0) != 0 && errno == ESRCH)
        return why_fail(argv[1],
                        "there is no such process; expected a number that `ferry why` lists, or "
                        "that of a rank");
    int fd = fy_segment_of_process(pid, true);
    if (fd < 0)
        return why_fail(argv[1],
                        "this process belongs to no job of this user on this machine; expected a "
                        "number that `ferry why` lists, or that of a rank");
    fy_controls controls;
    int error = fy_controls_map(fd, &controls);
    (void)close(fd);
    if (error != 0)
        return why_fail(argv[1], fy_error_text());
    fy_why_query(&controls);
    fy_why_print(&controls, STDOUT_FILENO);
    fy_controls_unmap(&controls);
    return 0;
}
