/* Checks of programs that are run as the PEs of a job: a wrong value ends the job. */
#ifndef TESTS_COMPAT_CHECK_H
#define TESTS_COMPAT_CHECK_H

#include <stdio.h>

#include <stdlib.h>

#include <shmem.h>

#include "state.h"

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "PE %d: %s:%d: %s\n", shmem_my_pe(), __FILE__, __LINE__, #condition);  \
            shmem_global_exit(3);                                                                  \
        }                                                                                          \
    } while (0)

/* shmem_init; with COMPAT_BY_MESSAGES no PE uses the heap of another PE by load and store. */
static inline void begin(void)
{
    shmem_init();
    if (getenv("COMPAT_BY_MESSAGES") != NULL)
        for (int pe = 0; pe < shmem_n_pes(); pe++)
            fy_compat.mapped[pe] = pe == shmem_my_pe();
}

#endif
