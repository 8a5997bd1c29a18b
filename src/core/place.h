/* Place: what the environment says of this process: which rank of which job it is, and its options.
 */
#ifndef FY_PLACE_H
#define FY_PLACE_H

#include <stdbool.h>

#include <ferry/core.h>

#include "port/shm/shm.h"

/* The place that the environment gives this process. */
typedef struct fy_place {
    bool launched; /* rank `rank` of the segment `fd`, of a job of `ranks` */
    bool threads;  /* `ranks` threads of this process */
    bool mpi;      /* one of `announced` ranks, as `variable` says; none said it when NULL */
    uint64_t announced;
    const char *variable;
    int ranks;               /* wished for, when it is none of these */
    int ranks_max;           /* with those that may join later; 0: no more than `ranks` */
    const char *join;        /* the folder of a running job to join; NULL: none */
    const char *join_socket; /* the folder by which others may join those `ranks`; NULL: none */
    int socket;              /* where this rank asks for more; -1: nowhere */
    int rank;
    int fd;
} fy_place;

/* Finds it. FERRY_EINVAL: a variable has a value that it cannot have; FERRY_ELAUNCH: what they say
 * together cannot be. With fy_error_set, as all of these. */
int fy_place_find(fy_place *out);

/* The value of FERRY_PORT if it names a port that starts its own ranks (fy_port_entry); NULL: shm
 * or mpi. */
const char *fy_place_port(void);

/* The options of a rank: the caller's, or NULL, what the environment says over them, and defaults.
 * FERRY_EINVAL. */
int fy_options_read(const ferry_options *given, ferry_options *out);

/* How ferry_compute works. [after fy_options_read, which checks the word] */
fy_compute fy_compute_read(void);

#endif
