/* Turns: what the schedule of turns.c gives to the functions of calls.c, which stand in for the
 * system's. All are for threads that take turns, except turns_are_taken, turns_time and
 * turns_processors. */
#ifndef FY_TEST_TURNS_H
#define FY_TEST_TURNS_H

#include <stdbool.h>
#include <stdint.h>

typedef enum turn_state {
    TURN_READY,
    TURN_STOPPED, /* goes on at until_ns */
    TURN_SLEEPS,  /* on the word `waits_for`, until until_ns at the latest */
    TURN_AWAITS,  /* waits for the condition `waits_for`, until until_ns at the latest */
    TURN_LOCKED,  /* waits for the mutex `waits_for` */
    TURN_JOINS,   /* waits for the end of the turn `waits_for` */
    TURN_ENDED,
    TURN_DIES, /* never goes on; nobody has been told yet */
    TURN_DEAD,
} turn_state;

/* A time that never comes. */
#define TURNS_NEVER UINT64_MAX

/* Whether the calling thread takes turns. */
bool turns_are_taken(void);

/* The virtual time. To ask for it takes time. */
uint64_t turns_time(void);

/* How many processors the seed has chosen: one, or one for each thread. */
int turns_processors(void);

/* A call of the system begins: others see all stores of this thread. */
void turns_enter(void);

/* The thread may be stopped here. */
void turns_step(void);

/* Lets a thread go on, perhaps this one. */
void turns_yield(void);

/* This thread goes on when another one wakes it, or at `until_ns`. Returns whether it was woken. */
bool turns_rest(turn_state state, const volatile void *waits_for, uint64_t until_ns);

/* Wakes all threads with that state that wait for this, or one that the seed chooses. */
void turns_wake_all(turn_state state, const volatile void *waits_for);
void turns_wake_one(turn_state state, const volatile void *waits_for);

/* Whether a thread with that state waits for this. */
bool turns_has(turn_state state, const volatile void *waits_for);

/* Ends the process. Says why, and what each thread does. */
_Noreturn void turns_fail(const char *what);

#endif
