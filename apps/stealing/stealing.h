/* Work stealing that survives deaths: progressive-messages.txt 3.4 and 4.2.
 *
 * A unit of work counts as done when its report has reached a rank that lives; each report goes to
 * all. A portion that is given away is kept until its receipt is acknowledged, then discarded. When
 * a rank dies, the living meet (recover.c), put together what they know to be done and who owns
 * what, and share out what nobody has: so each unit's report is counted exactly once. */
#ifndef STEALING_H
#define STEALING_H

#include <ferry/ferry.h>

typedef enum style {
    PASSING, /* looks for messages between units, waits for acknowledgements */
    DRIVEN,  /* answers during units, waits for acknowledgements */
    EVENTS   /* answers during units and waits for nothing */
} style;

enum { KILLS_MAX = 16 };

typedef struct options {
    style style;
    int ranks; /* of the job */
    int units;
    int unit_us;   /* of a light unit; one in four is four times as long */
    int threshold; /* units below which a rank asks for more */
    bool told;     /* says when it is told of a death */
    int kill_count;
    struct {
        int rank, ms;
    } kills[KILLS_MAX];
} options;

/* A portion on its way, whose receipt is not acknowledged. */
typedef struct portion {
    struct portion *next;
    struct state *state;
    int count;
    int units[];
} portion;

typedef struct state {
    ferry *f;
    const options *options;
    uint64_t start_ns;
    int *load, load_count; /* units to do */
    int current;           /* the one that is being done; -1 for none */
    portion *lent;
    uint8_t *known;   /* per unit: it is done */
    uint8_t *reports; /* per unit: reports that came here */
    int known_count;
    uint64_t random;
    int asked;     /* the rank that was asked for work; -1 for none */
    int requester; /* PASSING: a request to be answered by the main loop; -1 for none */
    ferry_op answer;
    bool frozen; /* no work changes hands: the living meet */
    ferry_handler want, give, report, snapshot;
    uint64_t done_here, given, taken, refused, poll_gap_ns;

    int deaths, settled;        /* ranks known to be dead; those whose work has been shared out */
    int deaths_min, deaths_max; /* that the snapshots of a meeting knew of */
    uint8_t *marks;             /* per unit, what the snapshots of a meeting say */
    uint64_t doubled;           /* units reported twice anywhere, at a meeting */
    bool finished;
} state;

/* steal.c */
int steal_open(state *s);
void steal_close(state *s);
/* Does one unit, or waits a little for one. */
int steal_step(state *s);
void steal_know(state *s, int unit);
/* Sends what others cannot go on without: as soon as there is memory. */
int steal_send(state *s, int rank, const ferry_message *message);
void steal_died(state *s, int rank);

/* recover.c */
int recover_open(state *s);
/* Meets with all that live: ends with `finished` set, with work shared out anew, or with neither
 * when another rank has died meanwhile. */
int recover_meet(state *s);

#endif
