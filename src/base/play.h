/* Play: a schedule that is played through, task by task, without messages being simulated. `ferry
 * model` and steering predict run times with it. docs/model.md derives the cost of an attempt.
 *
 * All times are seconds. */
#ifndef FY_PLAY_H
#define FY_PLAY_H

#include <stdbool.h>
#include <stddef.h>

/* The times of all tasks, the lightest first. */
typedef struct fy_play_tasks {
    double *seconds;
    size_t count;
    double total;
} fy_play_tasks;

/* The costs of a message, a poll and a move. Times in seconds, sizes in bytes. */
typedef struct fy_play_costs {
    double quantum;       /* between two polls while a task runs; 0: a message wakes the poller */
    double poll, change;  /* one poll; one switch of threads */
    double startup, byte; /* a message takes `startup` + its bytes * `byte` */
    double reply, decide; /* the runtime's work on a reply; its choice of a partner */
    double uninstall, pack, unpack, install;
    double request_bytes, task_bytes;
    double messages, message_bytes; /* what one task sends */
    double message_work;            /* the work of a task on a message that it gets */
    double neighbours;              /* how many ranks diffusion asks at a time */
    double overlap;                 /* subtracted from the run time, (6.6) */
} fy_play_costs;

typedef enum fy_play_scheduler {
    FY_PLAY_NONE,
    FY_PLAY_DIFFUSION,
    FY_PLAY_STEALING,
    FY_PLAY_FERRY,
    FY_PLAY_SCHEDULERS
} fy_play_scheduler;

/* Plays the schedule of `scheduler`. False: no memory. */
bool fy_play(const fy_play_tasks *tasks, const fy_play_costs *p, int ranks,
             fy_play_scheduler scheduler, double *makespan, size_t *migrations);

/* The cost of one attempt to find a task, for the rank that asks, (6.18). */
double fy_play_attempt(const fy_play_costs *p, fy_play_scheduler scheduler);

/* The first task of a rank, if each rank has an equal block of `count` tasks, in their order. */
size_t fy_play_block(size_t count, int ranks, int rank);

#endif
