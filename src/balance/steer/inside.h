/* Inside: what the files of steering share.
 *
 * A rank's scheduler is one of four that the model knows (fy_play_scheduler), and has an epoch: the
 * number of changes since the start. Each word carries the epoch and the scheduler of its sender,
 * in the lowest bits of the load. So no word reaches a scheduler that it was not meant for, and a
 * rank that meets a later epoch changes its scheduler before it reads the word (phase.c). */
#ifndef FY_STEER_INSIDE_H
#define FY_STEER_INSIDE_H

#include "balance/balance.h"
#include "base/fit.h"
#include "base/play.h"

enum { FY_STEER_TIMES_MAX = 256, FY_STEER_TOLD_BYTES = 2048, FY_STEER_ANSWERS_MAX = 16 };

/* Times of tasks: every `stride`-th of this rank. */
typedef struct fy_steer_times {
    double seconds[FY_STEER_TIMES_MAX];
    uint32_t count, stride, skipped;
    uint64_t mean_ns; /* of late; 0: none has ended yet */
} fy_steer_times;

/* How long other ranks take to answer: from a word to the next word of the same rank. That rank may
 * not answer but ask, so the median counts. */
typedef struct fy_steer_answers {
    int rank; /* asked; -1: none */
    uint64_t asked_ns;
    uint32_t count;
    double seconds[FY_STEER_ANSWERS_MAX]; /* the last ones */
} fy_steer_answers;

/* The parameters of this rank's scheduler, as chosen. A number below 0: not chosen. */
typedef struct fy_steer_choice {
    double neighbours, threshold, ahead_us, short_us;
    uint32_t ended, due; /* tasks that have ended, and the number at which to choose again */
    uint32_t taken;      /* objects that came from other ranks */
    double load;         /* mean of a task's load, of late */
} fy_steer_choice;

/* The reports of the other ranks, at rank 0. */
typedef struct fy_steer_gathered fy_steer_gathered;

typedef struct fy_steer_phases {
    bool fixed;    /* this scheduler is none of the four, or was asked for */
    int scheduler; /* fy_play_scheduler */
    const ferry_scheduler *known[FY_PLAY_SCHEDULERS]; /* NULL: its plug-in is missing */
    uint32_t epoch;                                   /* changes since the start */
    uint32_t failed_epoch;   /* to which this rank could not change; 0: none */
    uint64_t ended, due;     /* phases, and the number at which to report */
    uint32_t tasks;          /* since the last report */
    double busy_s;           /* likewise */
    fy_steer_gathered *root; /* rank 0; elsewhere NULL */
} fy_steer_phases;

typedef struct fy_steer_state {
    void *state; /* of the steered scheduler */

    fy_steer_times times;
    const ferry_schedulable *running;
    uint64_t started_ns; /* of the running task; 0 when it is not measured */
    uint32_t unmeasured; /* tasks since the last that was measured */

    uint64_t usual_ns, quantum_ns; /* as the port began, and now; 0: there is nothing to choose */
    const char *why_not;           /* then */
    double looks;                  /* of the helper, while tasks ran */
    /* Since the last choice, and half of what was before. */
    double busy_ns, words;

    fy_steer_answers answers;
    fy_steer_choice choice;
    fy_steer_phases phases;

    char told[FY_STEER_TOLD_BYTES]; /* lines for the trace */
    size_t told_bytes;
} fy_steer_state;

/* Adds a line to the trace, while there is room. */
void fy_steer_tell(ferry_scheduling *s, fy_steer_state *t, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* For qsort of numbers, the least first. */
int fy_steer_compare(const void *a, const void *b);

/* The two classes of the tasks that have ended here; there is one at least. */
fy_fit fy_steer_fit(const fy_steer_times *t);

/* Parameters of the scheduler (tune.c): a task has ended here, and took `load` and `took_ns`. */
void fy_steer_choose(ferry_scheduling *s, fy_steer_state *t);
double fy_steer_chosen(const ferry_scheduling *s, const char *name, double otherwise);

/* A choice by the formulas of docs/model.md, all times in seconds. */
typedef struct fy_steer_terms {
    double answer, startup; /* the median answer of a rank, and a message */
    double light;           /* ranks whose tasks are light */
    double moves, busy;     /* tasks that this rank takes in a phase; how long it has worked */
    double mean, alpha;     /* of the times of tasks; those of the heavy class */
    double load;            /* of a task */
} fy_steer_terms;

double fy_steer_neighbours(const fy_steer_terms *terms);
double fy_steer_threshold(const fy_steer_terms *terms);
double fy_steer_ahead_us(const fy_steer_terms *terms);
double fy_steer_short_us(const fy_steer_terms *terms);

/* The scheduler (phase.c). FERRY_ENOMEM. */
int fy_phases_open(ferry_scheduling *s, fy_steer_state *t);
void fy_phases_close(fy_steer_state *t);

/* Looks whether a phase has ended, and reports it. [application thread, lock held] */
void fy_phases_look(ferry_scheduling *s, fy_steer_state *t);

/* Marks the words that the scheduler has added to the `before` ones that wait. */
void fy_phases_stamp(ferry_scheduling *s, const fy_steer_state *t, uint32_t before);

/* Whether a word that has come is for this rank's scheduler. Takes in those of steering. */
bool fy_phases_hear(ferry_scheduling *s, fy_steer_state *t, int source, const uint64_t *words);

/* The forecast of the model for a phase, under each scheduler. */
typedef struct fy_steer_outlook {
    double seconds[FY_PLAY_SCHEDULERS]; /* played; below 0: not to be chosen */
    double took_s;                      /* the last phase, of as many tasks */
    int now;                            /* the scheduler in use */
} fy_steer_outlook;

/* The scheduler of the next phase. */
int fy_steer_scheduler(const fy_steer_outlook *o);

#endif
