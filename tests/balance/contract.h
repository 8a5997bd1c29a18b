/* Contract: what a scheduler may rely on, checked by a scheduler. It runs in the world of world.h,
 * in which the policies are tested, and on real ranks: so both keep the same contract. */
#ifndef CONTRACT_H
#define CONTRACT_H

#include <ferry/scheduler.h>

/* Parameter GIVEN, which the test sets to this, and the load of each task. */
enum { CONTRACT_GIVEN = 3, CONTRACT_LOAD = 2, CONTRACT_RANKS = 8 };

typedef struct contract {
    ferry_schedulable *first, *last, *running;
    uint64_t wake_ns; /* when it was asked for; 0: not */
    int words_sent, words_heard, sent, arrived, wakes, ran;
    int wrong; /* broken promises */
} contract;

/* By rank, of the ranks of this process; cleared by `create`, kept by `destroy`. */
extern contract contracts[CONTRACT_RANKS];
extern const ferry_scheduler contract_scheduler;

#endif
