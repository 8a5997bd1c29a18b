/* Truth: what a test knows outside the runtime, in memory that all its ranks share, whether they
 * are simulated, threads or processes. */
#ifndef FY_TEST_TRUTH_H
#define FY_TEST_TRUTH_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* Sets a variable that the environment does not give; not to "". */
static inline void default_to(const char *name, const char *value)
{
    if (value[0] != '\0' && setenv(name, value, 0) != 0)
        abort();
}

/* Maps `size_bytes` that the processes of the job share, made by the first of them, which starts
 * the others. They find it by the environment. `*first`: this is that process, and all bytes are 0.
 */
static inline void *truth_map(size_t size_bytes, bool *first)
{
    static const char variable[] = "TEST_TRUTH";
    const char *path = getenv(variable);
    char own[64];
    int fd = path != NULL ? open(path, O_RDWR | O_CLOEXEC) : memfd_create("truth", MFD_CLOEXEC);
    *first = path == NULL;
    if (fd < 0 || (*first && ftruncate(fd, (off_t)size_bytes) != 0))
        abort();
    void *memory = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED)
        abort();
    (void)snprintf(own, sizeof own, "/proc/%d/fd/%d", (int)getpid(), fd);
    if (*first)
        default_to(variable, own);
    return memory;
}

#endif
