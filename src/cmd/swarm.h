/* A swarm, and one run of it: a program under the simulator, in a process of its own. */
#ifndef FY_CMD_SWARM_H
#define FY_CMD_SWARM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum swarm_file { SWARM_OUT, SWARM_ERR, SWARM_TAPE, SWARM_PLAN, SWARM_FILES } swarm_file;

typedef struct swarm {
    char **argv;            /* the program */
    int files[SWARM_FILES]; /* outputs, tape and plan, in memory: no file is left */
    double limit_s;         /* processor time that a run may take */
    bool all;               /* ranks die, and allocations from the shared heap fail, too */
    bool starves;           /* Ferry's own allocations fail too */
    bool unreadable;        /* reads fail so often that objects cannot be read */
    const char *starved;    /* those of this rank alone; NULL: of all ranks */
    bool twice;             /* each seed runs twice, and must do the same */
    bool keep_going;        /* count failures instead of stopping at the first */
    double shrink_s;        /* real time for shrinking */
    double said_s;          /* time of the last line about progress */
    const char *doing;      /* "running" or "shrinking", for that line */
    bool no_shrink;         /* do not look for a smaller run that fails */
    uint64_t first, last;   /* seeds */
    uint64_t runs;          /* so far */
} swarm;

/* The outcome of a run. */
typedef struct swarm_end {
    int status;   /* exit status; 128 + signal; SWARM_LATE */
    bool opened;  /* it has opened a rank */
    bool early;   /* it ended with status 0 before its ranks, which counts as 1 */
    bool excused; /* it failed as it may if memory was refused, or an object unreadable */
    char hash[17];
} swarm_end;

#define SWARM_LATE 124     /* it took more than its time and was killed */
#define SWARM_UNUSABLE 127 /* it could not be executed */

bool swarm_open(swarm *s);
void swarm_close(swarm *s);

/* Runs the program with `plan` ("@FILE" or a text) and writes the tape to SWARM_TAPE. Every few
 * seconds a line on standard error says how far the swarm is. False: no process could be made. */
bool swarm_run(swarm *s, uint64_t seed, const char *plan, swarm_end *end);

/* Writes the path of a file, for this process and for the program, to `out` of SWARM_PATH_BYTES. */
enum { SWARM_PATH_BYTES = 32 };
void swarm_path(const swarm *s, swarm_file file, char *out);

/* Gives the text of a file, freed with free. NULL: no memory. */
char *swarm_read(const swarm *s, swarm_file file);

/* Real time, in seconds. */
double swarm_now_s(void);

#endif
