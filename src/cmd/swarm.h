/* Runs of a program under the simulator in a process of its own, for ferry swarm. */
#ifndef FY_CMD_SWARM_H
#define FY_CMD_SWARM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum swarm_file { SWARM_OUT, SWARM_ERR, SWARM_TAPE, SWARM_PLAN, SWARM_FILES } swarm_file;

typedef struct swarm {
    char **argv;            /* the program */
    int files[SWARM_FILES]; /* outputs, tape and plan, in memory: nothing is left behind */
    double limit_s;         /* of processor time per run */
    bool all;               /* deaths and a shared heap that refuses too */
    bool starves;           /* Ferry's allocations fail too */
    const char *starved;    /* of this rank alone; NULL: of all */
    bool twice;             /* each seed runs twice, and must do the same */
    bool keep_going;        /* count failures instead of stopping at the first */
    double shrink_s;        /* of real time for shrinking */
    double said_s;          /* when the last line about progress was said */
    const char *doing;      /* for that line */
    bool no_shrink;         /* nor tell what of the first failure's faults mattered */
    uint64_t first, last;
    uint64_t runs;
} swarm;

/* The outcome of a run. */
typedef struct swarm_end {
    int status;   /* exit status; 128 + signal; SWARM_LATE */
    bool opened;  /* it has opened a rank */
    bool excused; /* an error of its own, after it was refused memory and said so */
    char hash[17];
} swarm_end;

#define SWARM_LATE 124     /* it ran out of real time and was killed */
#define SWARM_UNUSABLE 127 /* it could not be executed */

bool swarm_open(swarm *s);
void swarm_close(swarm *s);

/* Runs the program with `plan` ("@FILE" or a text) and writes the tape to SWARM_TAPE. Says now and
 * then on standard error how far the swarm is. False: the run could not be made. */
bool swarm_run(swarm *s, uint64_t seed, const char *plan, swarm_end *end);

/* Path of a file, for this process and for the program, in `out` of SWARM_PATH_BYTES. */
enum { SWARM_PATH_BYTES = 32 };
void swarm_path(const swarm *s, swarm_file file, char *out);

/* The whole of a file; free with free. NULL: no memory. */
char *swarm_read(const swarm *s, swarm_file file);

/* Real time. */
double swarm_now_s(void);

#endif
