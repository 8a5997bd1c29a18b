/* Resident: how much memory a process has had, and a limit to what it may have. */
#ifndef FY_TEST_RESIDENT_H
#define FY_TEST_RESIDENT_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

/* A value of /proc/self/status in KiB; 0 where the system does not say. */
static inline uint64_t status_kib(const char *name)
{
    char line[128];
    uint64_t kib = 0;
    FILE *status = fopen("/proc/self/status", "r");
    while (status != NULL && fgets(line, sizeof line, status) != NULL)
        if (strncmp(line, name, strlen(name)) == 0 &&
            sscanf(line + strlen(name), ": %" SCNu64, &kib) == 1)
            break;
    if (status != NULL)
        fclose(status);
    return kib;
}

/* The most that was ever resident; 0 where the system does not say. */
static inline uint64_t resident_kib_max(void)
{
    return status_kib("VmHWM");
}

/* Allows this process `more_kib` more private memory than it has now. Then an allocation that goes
 * beyond fails. Returns false if the system does not limit it. */
static inline bool private_kib_limit(uint64_t more_kib)
{
    uint64_t now_kib = status_kib("VmData");
    struct rlimit limit;
    if (now_kib == 0 || getrlimit(RLIMIT_DATA, &limit) != 0)
        return false;
    limit.rlim_cur = (rlim_t)(now_kib + more_kib) * 1024;
    return setrlimit(RLIMIT_DATA, &limit) == 0;
}

#endif
