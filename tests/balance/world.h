/* World: ranks of a scheduler without a runtime, for tests of what a policy decides. Words and
 * objects travel when the test says so, and time passes when it says so; the functions that
 * balance.h offers to schedulers are those of this world. */
#ifndef WORLD_H
#define WORLD_H

#include <ferry/scheduler.h>

enum { WORLD_RANKS = 64, WORLD_ITEMS = 512, WORLD_MAIL = 4096 };

/* First words of what is sent, as the schedulers number them. */
enum { QUERY, LOAD, ASK, REFUSE };              /* diffusion */
enum { OFFER = 2, TAKE };                       /* diffusion-sender */
enum { STEAL, STEAL_REFUSE, STEAL_HINT };       /* stealing */
enum { STATUS, GRADIENT_OFFER, GRADIENT_TAKE }; /* gradient */
enum { HEAD, HEAD_ASK, HEAD_NONE };             /* multilist */
enum { CHUNK_ASK };                             /* master */

typedef struct world world;

struct ferry_scheduling {
    world *w;
    int rank;
    void *state;
    uint64_t wake_ns; /* 0: none */
    ferry_schedulable *running;
};

/* An object: its place, and how much it wants to be on each rank, if that is not its load. */
typedef struct thing {
    ferry_schedulable item;
    int rank; /* -1: on its way */
    double priorities[WORLD_RANKS];
    bool choosy;
} thing;

/* A message that is in flight or was: words, or an object. */
typedef struct mail {
    int from, to;
    uint64_t words[FERRY_SCHEDULER_WORDS];
    thing *object; /* NULL: words */
    bool quiet;    /* words that wake no helper */
} mail;

struct world {
    const ferry_scheduler *policy;
    int ranks;
    uint64_t now_ns, random;
    uint64_t move_ns;   /* what a move costs */
    uint64_t word_ns;   /* to send words */
    uint64_t travel_ns; /* from one arrival to the next; UINT64_MAX: nobody knows */
    uint64_t taken_ns;  /* of every helper */
    bool on, preempts;
    ferry_scheduling of[WORLD_RANKS];
    thing things[WORLD_ITEMS];
    int thing_count;
    mail mail[WORLD_MAIL];
    int sent, delivered;
};

/* Opens `ranks` ranks under `policy`, with parameters as in "HIGH=3 PING_US=0". */
world *world_open(const ferry_scheduler *policy, int ranks, const char *parameters);
void world_close(world *w);

/* An object of `load` with one task, on `rank`; or one with a priority for each of the ranks. */
thing *world_add(world *w, int rank, double load);
thing *world_add_choosy(world *w, int rank, const double *priorities);

/* Gives an object that rests one more task, of load 1. */
void world_again(world *w, thing *t);

/* Gives `rank` its next task, which runs until world_end; NULL: there is none. */
ferry_schedulable *world_run(world *w, int rank);
void world_end(world *w, int rank);
/* Lets `rank` run a task for so long. */
void world_run_for(world *w, int rank, uint64_t ns);

/* Adds `count` objects of `load` to `rank` and lets it run one of them. */
void world_begin_with(world *w, int rank, int count, double load);

/* Adds `count` objects of loads 1, 2, ... to `rank` and lets it run one of them. */
void world_occupy(world *w, int rank, int count);

/* Ends the task that `rank` runs, which is its last. */
void world_run_last(world *w, int rank);

/* Delivers the oldest, or all and what comes of it. */
void world_deliver(world *w);
void world_deliver_all(world *w);

/* Lets time pass until the timer of `rank` is due, and calls it. */
void world_wake(world *w, int rank);

/* Since mail number `since`: words `what` from a rank (-1: any) to a rank (-1: any); objects. */
int world_words(const world *w, int since, uint64_t what, int from, int to);
int world_moves(const world *w, int since, int from, int to);

/* The last words `what` from one rank to another (-1: any); NULL when there were none. */
const uint64_t *world_said(const world *w, uint64_t what, int from, int to);

#endif
