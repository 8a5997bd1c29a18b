/* Resident: how much memory a process has had. */
#ifndef FY_TEST_RESIDENT_H
#define FY_TEST_RESIDENT_H

#include <inttypes.h>
#include <stdio.h>

/* The most that was ever resident; 0 where the system does not say. */
static inline uint64_t resident_kib_max(void)
{
    char line[128];
    uint64_t kib = 0;
    FILE *status = fopen("/proc/self/status", "r");
    while (status != NULL && fgets(line, sizeof line, status) != NULL)
        if (sscanf(line, "VmHWM: %" SCNu64, &kib) == 1)
            break;
    if (status != NULL)
        fclose(status);
    return kib;
}

#endif
