/* Checks of programs that are run as the PEs of a job: a wrong value ends the job. */
#ifndef TESTS_COMPAT_CHECK_H
#define TESTS_COMPAT_CHECK_H

#include <stdio.h>

#include <shmem.h>

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "PE %d: %s:%d: %s\n", shmem_my_pe(), __FILE__, __LINE__, #condition);  \
            shmem_global_exit(3);                                                                  \
        }                                                                                          \
    } while (0)

#endif
