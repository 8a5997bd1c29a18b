/* Desk: where ranks that have work to give and ranks that want some are brought together.
 *
 * Desks form a tree over the numbers of ranks, in groups of A, the number of children, groups of A
 * * A, and so on. The desk of a group stands on the first rank of it that is there (that takes
 * objects); so the first of all has one of each level, the highest being the root, and when a rank
 * comes or goes only the desks that it had, or gets, are others'. A child (a rank for level 1, else
 * a desk) reports UP what it has to give, or that a rank wants. A desk that knows of a child with
 * something to give sends the wish DOWN to it; else the wish goes up, and at the root it stays
 * until somebody reports. So a wish takes two steps per level at most, and the root hears of a
 * subtree only when what it has doubles, halves, or comes to an end.
 *
 * What a desk knows may be old. A child that is asked in vain sends the wish up again, with what it
 * really has; since the desk counts what it has sent down, each wish tries each child a bounded
 * number of times. Invariant: a wish is at one place: on its way, or at the root. */
#ifndef FY_DESK_H
#define FY_DESK_H

#include <ferry/scheduler.h>

enum { FY_DESK_CHILDREN_MAX = 64, FY_DESK_LEVELS_MAX = 10 };

typedef enum fy_desk_word {
    FY_DESK_UP,
    FY_DESK_DOWN,
    FY_DESK_CANCEL,
    FY_DESK_AGAIN, /* downwards: report again */
    FY_DESK_TRADE, /* to a rank: give to one that is busy itself, if that is fair */
} fy_desk_word;

/* What passes between a child and its desk. */
typedef struct fy_desk_note {
    fy_desk_word word;
    int level;       /* of the receiver; 0 is a rank itself */
    int wish;        /* the rank that wants work, or -1 */
    uint32_t supply; /* UP: objects that the child can give */
    float heaviest;  /* UP: load of the heaviest of them; TRADE: of those that the taker has */
    float load;      /* UP from a rank: all it has to do; TRADE: what the taker has to do */
} fy_desk_note;

typedef struct fy_desk_child {
    int host; /* the rank that it stands on; -1: nobody is there */
    uint32_t supply;
    float heaviest, load;
    float took; /* load of what it took in a trade and has not begun; 0 for nothing */
    bool came;  /* it has reported that it has that: what it says later knows of it */
} fy_desk_child;

typedef struct fy_desk {
    int base; /* the first number of its group */
    int child_count;
    uint32_t reported; /* to the desk above, less what that has sent since */
    float reported_heaviest;
    fy_desk_child *children;
} fy_desk;

typedef struct fy_desks {
    int rank, children_max, level_count;
    fy_desk levels[FY_DESK_LEVELS_MAX]; /* [0] is the desk of level 1; those this rank has */
    int own_levels;
    int hosts[FY_DESK_LEVELS_MAX]; /* where the desks above this rank stand, by level from 1 */
    int *wishes;                   /* at the root: oldest first */
    uint32_t wish_count, wish_capacity;
    /* Sends a note to another rank. */
    void (*send)(ferry_scheduling *s, void *context, int rank, const fy_desk_note *note);
    /* A note of level 0 for this rank: work is wanted by `note->wish`, DOWN or in a TRADE. */
    void (*asked)(ferry_scheduling *s, void *context, const fy_desk_note *note);
    /* The desk above this rank knows nothing of it: report, and repeat the wish if there is one. */
    void (*again)(ferry_scheduling *s, void *context);
    void *context;
} fy_desks;

/* Builds the desks of this rank; the callbacks and their context are set before. FERRY_ENOMEM. */
int fy_desks_init(ferry_scheduling *s, fy_desks *desks, int children);
void fy_desks_fini(fy_desks *desks);

/* Others take objects than before: finds where desks stand now. What this rank's knew is lost, and
 * asked for again. The caller reports anew. FERRY_ENOMEM: wishes that come here are lost. */
int fy_desks_renew(ferry_scheduling *s, fy_desks *desks);

/* Takes a note to where it belongs: to the desk of its level above this rank. */
void fy_desks_post(ferry_scheduling *s, fy_desks *desks, const fy_desk_note *note);

/* A note from `source`, which may be this rank. Malformed ones are dropped. */
void fy_desks_hear(ferry_scheduling *s, fy_desks *desks, int source, const fy_desk_note *note);

/* Whether a rank that has so much to do is to give its heaviest object to the taker of a TRADE. */
bool fy_desk_trade_is_fair(float heaviest, float load, const fy_desk_note *trade);

void fy_desk_note_write(const fy_desk_note *note, uint64_t words[FERRY_SCHEDULER_WORDS]);
bool fy_desk_note_read(const uint64_t words[FERRY_SCHEDULER_WORDS], fy_desk_note *note);

/* Whether two counts differ so much that a desk wants to know. */
bool fy_desk_differs(uint32_t a, uint32_t b);

/* Whether two loads are more than a quarter apart. */
bool fy_desk_weighs_otherwise(float a, float b);

#endif
