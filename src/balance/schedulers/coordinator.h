/* Coordinator: brings the ranks that have work to give and the ranks that want work together.
 *
 * Coordinators form a tree over the numbers of ranks: groups of A ranks, where A is the number of
 * children, groups of A times A, and so on. The coordinator of a group runs on the first rank of
 * the group that takes objects. So the first rank of all has a coordinator of each level, and the
 * highest one is the root. When a rank comes or goes, only the coordinators that it had, or gets,
 * move to other ranks. A child is a rank for level 1, and a coordinator for the other levels. A
 * child reports UP what it has to give, or that a rank wants work. A coordinator that knows of a
 * child with something to give sends the work request DOWN to it. Otherwise the work request goes
 * up. At the root it stays until a child reports. So a work request takes at most two steps per
 * level. The root learns of a subtree only when what the subtree has doubles, halves, or comes to
 * an end.
 *
 * A coordinator's knowledge may be old. A child that is asked in vain sends the work request up
 * again, with what it really has. The coordinator counts what it has sent down. So each work
 * request tries each child a bounded number of times. Invariant: a work request is in one place: in
 * flight, or at the root. A work request that needs an immediate answer (`once`) is dropped at the
 * root. At its first one, a coordinator tells its children AGAIN with `once`, down to the ranks.
 *
 * Two threads of a rank send notes, and a later one may arrive first. So notes have numbers. From a
 * note that was overtaken a coordinator learns nothing. If it is a work request of its own sender,
 * that has been met, cancelled or repeated since. */
#ifndef FY_COORDINATOR_H
#define FY_COORDINATOR_H

#include <ferry/scheduler.h>

enum { FY_COORDINATOR_CHILDREN_MAX = 64, FY_COORDINATOR_LEVELS_MAX = 10 };

typedef enum fy_coordinator_word {
    FY_COORDINATOR_UP,
    FY_COORDINATOR_DOWN,
    FY_COORDINATOR_CANCEL,
    FY_COORDINATOR_AGAIN, /* downwards: report again */
    FY_COORDINATOR_TRADE, /* to a rank: give to a rank that is busy itself, if that is fair */
} fy_coordinator_word;

/* A message between a child and its coordinator. */
typedef struct fy_coordinator_note {
    fy_coordinator_word word;
    int level;       /* of the receiver; 0 is a rank itself */
    int request;     /* the rank that wants work, or -1 */
    uint32_t supply; /* UP: objects that the child can give */
    float heaviest;  /* load of the heaviest: UP, of those objects; TRADE, of the taker's objects */
    bool once;       /* the work request is not kept at the root, but dropped; AGAIN: ranks make
                        such requests */
    uint32_t number; /* of the notes that its sender has posted; below FY_COORDINATOR_NUMBERS */
    float load;      /* UP from a rank: all it has to do; TRADE: what the taker has to do */
} fy_coordinator_note;

/* Numbers of notes begin anew after the last. */
#define FY_COORDINATOR_NUMBERS (UINT32_C(1) << 31)

typedef struct fy_coordinator_child {
    int host; /* the rank on which it runs; -1: no rank of the group is present */
    bool heard;
    uint32_t number; /* the latest of its notes, if one was heard */
    uint32_t supply;
    float heaviest, load;
    float took; /* load of the object that it took in a trade and has not begun; 0: none */
    bool came;  /* it has reported that object: its later reports include it */
} fy_coordinator_child;

typedef struct fy_coordinator {
    int base; /* the first number of its group */
    int child_count;
    uint32_t
        reported; /* to the coordinator above, less the work requests that this has sent since */
    float reported_heaviest;
    bool steps; /* its children know that ranks make requests of steps */
    fy_coordinator_child *children;
} fy_coordinator;

typedef struct fy_coordinators {
    int rank, children_max, level_count;
    uint32_t posted; /* the number of the last note that this rank posted */
    fy_coordinator levels[FY_COORDINATOR_LEVELS_MAX]; /* [0] is the coordinator of level 1; those
                                                         this rank has */
    int own_levels;
    int hosts[FY_COORDINATOR_LEVELS_MAX]; /* the ranks of the coordinators above this rank, by level
                                             from 1 */
    int *requests;                        /* at the root: oldest first */
    uint32_t request_count, request_capacity;
    /* Sends a note to another rank. */
    void (*send)(ferry_scheduling *s, void *context, int rank, const fy_coordinator_note *note);
    /* A note of level 0 for this rank: `note->request` wants work, DOWN or in a TRADE. AGAIN: other
     * ranks make requests with `once`, and none is made now. */
    void (*asked)(ferry_scheduling *s, void *context, const fy_coordinator_note *note);
    /* The coordinator above this rank has no knowledge of it: report, and repeat the work request
     * if there is one. */
    void (*again)(ferry_scheduling *s, void *context);
    void *context;
} fy_coordinators;

/* Builds the coordinators of this rank; the callbacks and their context are set before.
 * FERRY_ENOMEM. */
int fy_coordinators_init(ferry_scheduling *s, fy_coordinators *coordinators, int children);
void fy_coordinators_fini(fy_coordinators *coordinators);

/* The set of ranks that take objects has changed: finds the ranks on which coordinators run now.
 * The knowledge of this rank's coordinators is lost, and they ask for it again. The caller reports
 * anew. FERRY_ENOMEM: work requests that come here are lost. */
int fy_coordinators_renew(ferry_scheduling *s, fy_coordinators *coordinators);

/* Numbers a note and sends it to the coordinator of its level above this rank. */
void fy_coordinators_post(ferry_scheduling *s, fy_coordinators *coordinators,
                          fy_coordinator_note *note);

/* For how long a rank is silent between two notes to a coordinator. Then those of all its children
 * take at most a third of the coordinator's time, if it takes as long to handle a note as to send
 * one. */
uint64_t fy_coordinators_silence(ferry_scheduling *s, const fy_coordinators *coordinators);

/* Handles a note from `source`, which may be this rank. Drops a malformed one. */
void fy_coordinators_hear(ferry_scheduling *s, fy_coordinators *coordinators, int source,
                          const fy_coordinator_note *note);

/* Whether a rank with this load should give its heaviest object to the taker of a TRADE. */
bool fy_coordinator_trade_is_fair(float heaviest, float load, const fy_coordinator_note *trade);

void fy_coordinator_note_write(const fy_coordinator_note *note,
                               uint64_t words[FERRY_SCHEDULER_WORDS]);
bool fy_coordinator_note_read(const uint64_t words[FERRY_SCHEDULER_WORDS],
                              fy_coordinator_note *note);

/* Whether two counts differ so much that the coordinator should be told. */
bool fy_coordinator_differs(uint32_t a, uint32_t b);

/* Whether two loads are more than a quarter apart. */
bool fy_coordinator_weighs_otherwise(float a, float b);

#endif
