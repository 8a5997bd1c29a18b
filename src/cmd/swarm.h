/* Runs of a program under the simulator in a process of its own, for ferry swarm. */
#ifndef FY_CMD_SWARM_H
#define FY_CMD_SWARM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct swarm {
    char **argv;         /* the program */
    char folder[64];     /* for outputs, plans and tapes; the swarm's own */
    double limit_s;      /* of processor time per run */
    bool all;            /* deaths and a shared heap that refuses too */
    bool starves;        /* Ferry's allocations fail too */
    const char *starved; /* of this rank alone; NULL: of all */
    bool twice;          /* each seed runs twice, and must do the same */
    bool keep_going;     /* count failures instead of stopping at the first */
    bool no_shrink;      /* nor tell what of the first failure's faults mattered */
    uint64_t first, last;
    uint64_t runs;
} swarm;

/* What a run came to. */
typedef struct swarm_end {
    int status;   /* exit status; 128 + signal; SWARM_LATE */
    bool excused; /* an error of its own, after it was refused memory and said so */
    char hash[17];
} swarm_end;

#define SWARM_LATE 124     /* it ran out of real time and was killed */
#define SWARM_UNUSABLE 127 /* it could not be executed */

bool swarm_open(swarm *s);
/* Removes the folder. */
void swarm_close(swarm *s);

/* Runs the program with `plan` ("@FILE" or a text) and writes the tape to the folder's "tape".
 * False: the run could not be made. */
bool swarm_run(swarm *s, uint64_t seed, const char *plan, swarm_end *end);

/* Path of a file of the folder, in `out` of 96 bytes. */
void swarm_path(const swarm *s, const char *name, char *out);

/* The whole of a file of the folder; free with free. NULL: not there. */
char *swarm_read(const swarm *s, const char *name);

#endif
