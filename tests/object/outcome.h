/* Operations of rank 0 with rank 1, for outcome_test.c: what starts each, what rank 1 does for it,
 * and how it ends when it is refused. */
#ifndef FY_TEST_OUTCOME_H
#define FY_TEST_OUTCOME_H

#include <ferry/cell.h>
#include <ferry/mover.h>

#include "ranks.h"

enum { RANKS = 2, LONG_BYTES = 100000, SHORT_BYTES = 40, WORDS = 16, ELEMENTS = 8 };

typedef struct scene {
    test_job job;
    ferry_handler note, quiet, only_here, memory_note, object_note;
    ferry_object_type type;
    ferry_object object, destroyed, traveller;
    ferry_mover *movers[RANKS];
    ferry_grid lines[RANKS];
    ferry_parcel parcel;    /* rank 0's, or what it took */
    void *block;            /* in the shared heap, of rank 1 */
    uint64_t theirs[WORDS]; /* registered on rank 1 */
    uint64_t wild[WORDS];   /* nowhere */
    uint64_t mine[WORDS], old;
    void *remote;
    char out[LONG_BYTES], in[LONG_BYTES];
    int replies; /* that each handler sends, until one fails; half of them with memory */
    void (*in_handler)(void); /* what each does; may be NULL */
    bool dead;                /* rank 1: it does nothing any more */
    bool stayed;              /* an object that was to leave */
    const void *far;          /* the address on rank 1 that the operation names; may be NULL */
} scene;

void scene_open(scene *s, uint32_t ring_slots);

/* Rank 0 starts the operation; `wrong`: so that it is refused. */
typedef int start_fn(scene *s, const ferry_track *track, bool wrong);

typedef struct operation {
    const char *name;
    start_fn *start;
    int refusal;    /* 0: what is wrong is known at once */
    int rank;       /* of the receipt; negative: none in particular */
    bool arrives;   /* on arrival: before its handler runs */
    bool waits;     /* for nothing but what rank 1 has done already: a death does not undo that */
    bool has_local; /* its receipt names memory here */
    bool sends;     /* data of the program: it reports submitted */
    void (*prepare)(scene *s);   /* before it starts */
    void (*take_part)(scene *s); /* what rank 1 has to do before it can complete */
    bool at_once;                /* it is done in the call */
    bool to_the_living;          /* a death leaves it nothing to do */
} operation;

extern const operation operations[];
extern const int operation_count;

#endif
