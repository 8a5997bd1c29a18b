/* ferry info: the version of this build, and what this machine offers. */
#include <errno.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ferry/export.h>

#include "base/error.h"
#include "cmd/cmd.h"
#include "cmd/handoff.h"
#include "port/nodes/mpi/find.h"
#include "port/plugin.h"
#include "port/shm/layout.h"

static void show_build(void)
{
    printf("ferry      %s, built with %s\n", FERRY_VERSION, FY_COMPILER);
}

static bool have_pidfd(void)
{
    int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static bool have_sealing(void)
{
    int fd = memfd_create("ferry", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static bool have_membarrier(void)
{
    long commands = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
    return commands > 0 && (commands & MEMBARRIER_CMD_GLOBAL_EXPEDITED);
}

/* Whether a child may read the memory of its parent, as ranks would read each other's. */
static bool have_attach(void)
{
    pid_t parent = getpid();
    char word = 1;
    pid_t child = fork();
    if (child == 0) {
        char got;
        struct iovec here = {&got, 1}, there = {&word, 1};
        _exit(process_vm_readv(parent, &here, 1, &there, 1, 0) == 1 ? 0 : 1);
    }
    int status = 1;
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

static const char *yes(bool is)
{
    return is ? "yes" : "no";
}

static void show_ports(void)
{
    bool sealing = have_sealing(), pidfd = have_pidfd(), membarrier = have_membarrier();
    uint64_t address = fy_segment_free_address((size_t)1 << 36);
    printf("port shm   %s: memfd with seals %s, pidfd %s, free address %#llx\n",
           sealing && pidfd && address != 0 ? "usable" : "NOT USABLE", yes(sealing), yes(pidfd),
           (unsigned long long)address);
    printf(
        "           membarrier %s%s; cross-memory attach %s (not used: shared memory needs none)\n",
        yes(membarrier), membarrier ? "" : " (each send pays a fence)", yes(have_attach()));
    printf("           no file in /dev/shm or elsewhere is used; its size does not matter\n");
}

static void show_library(const char *name, const char *path)
{
    const fy_mpi_library *mpi;
    char library[128];
    int error = fy_mpi_find(name, &mpi);
    if (error == 0)
        mpi->library(library, sizeof(library));
    printf("port mpi   %s: %s\n           %s\n", name, error == 0 ? library : fy_error_text(),
           path);
    fflush(stdout);
}

/* A process can load one MPI library only. So each is opened in a child of its own. */
static void show_mpi(void)
{
    for (size_t i = 0; i < FY_MPI_NAMES; i++) {
        char path[4096], plugin[32];
        const char *name = fy_mpi_names[i];
        (void)snprintf(plugin, sizeof(plugin), "port-%s", name);
        if (!fy_plugin_locate(plugin, path, sizeof(path))) {
            printf("port mpi   %s: there is no ferry-port-%s.so\n", name, name);
            continue;
        }
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) {
            show_library(name, path);
            _exit(0);
        }
        if (child > 0)
            waitpid(child, NULL, 0);
    }
}

static void show_processors(void)
{
    cpu_set_t set;
    printf("processors %ld in the machine", sysconf(_SC_NPROCESSORS_ONLN));
    if (sched_getaffinity(0, sizeof(set), &set) == 0) {
        printf(", %d allowed:", CPU_COUNT(&set));
        for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++)
            if (CPU_ISSET(cpu, &set))
                printf(" %zu", cpu);
    }
    double ns;
    if (cmd_handoff_ns(&ns))
        printf("\nhand-off   %.0f ns, a cache line from one processor to another, one way\n", ns);
    else
        printf("\nhand-off   not measured: needs two processors\n");
}

static void show_limit(const char *name, int resource)
{
    struct rlimit limit;
    if (getrlimit((__rlimit_resource_t)resource, &limit) != 0)
        return;
    if (limit.rlim_cur == RLIM_INFINITY)
        printf(", %s unlimited", name);
    else
        printf(", %s %llu MiB", name, (unsigned long long)(limit.rlim_cur >> 20));
}

/* Prints the memory limit of the container, if there is one. */
static void show_container_limit(void)
{
    FILE *file = fopen("/sys/fs/cgroup/memory.max", "re");
    unsigned long long bytes;
    if (file != NULL && fscanf(file, "%llu", &bytes) == 1)
        printf(", container %llu MiB", bytes >> 20);
    if (file != NULL)
        fclose(file);
}

static void show_memory(void)
{
    struct sysinfo info;
    if (sysinfo(&info) == 0)
        printf("memory     %llu MiB, free %llu MiB",
               (unsigned long long)info.totalram * info.mem_unit >> 20,
               (unsigned long long)info.freeram * info.mem_unit >> 20);
    show_container_limit();
    show_limit("address space", RLIMIT_AS);
    printf("\n");
}

int cmd_info(int argc, char **argv)
{
    if (argc > 1) {
        bool help = cmd_asks_help(argv[1]);
        if (!help)
            fprintf(stderr, "ferry info: %s: expected no argument\n", argv[1]);
        fprintf(help ? stdout : stderr, "usage: ferry info\n\nShows version, compiler, ports, "
                                        "processors, memory and limits.\n");
        return help ? 0 : CMD_USAGE_STATUS;
    }
    show_build();
    show_ports();
    show_mpi();
    show_processors();
    show_memory();
    printf("limits     %d ranks, %d handlers, 16 GiB of shared heap per rank (FERRY_HEAP_BYTES "
           "changes it)\n",
           FY_RANKS_MAX, SHM_HANDLERS_MAX - 1);
    return 0;
}
