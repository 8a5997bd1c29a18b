/* Stores: what the two schedules of this folder have in common. stores.c stands in for the library
 * of ThreadSanitizer. So files that are compiled for that call it at every atomic operation, which
 * is called a step. An actor is what runs by itself: a thread (turns.c) or a fiber (fibers.c). At
 * each step the schedule may stop the actor. A store to memory that actors share is held back until
 * a fence, a call that others may notice, or a random number lets it out. A relaxed store may come
 * out before earlier ones. */
#ifndef FY_TEST_STORES_H
#define FY_TEST_STORES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Starts for `actors`, with random numbers of `seed`. */
void stores_open(int actors, uint64_t seed);
void stores_close(void);

/* Below `bound`. */
uint64_t stores_draw(uint64_t bound);

/* Whether to stop the actor at this step. More often while it holds stores back. */
bool stores_draw_stop(int actor);

/* Lets all stores of the actor out, or of all actors. */
void stores_let_out(int actor);
void stores_let_all_out(void);

/* From now on plain accesses to memory are steps too: one of a few. */
void stores_stop_plain(void);

/* A schedule has these: the actor that runs now, or -1 if none may be stopped; whether actors share
 * this memory; and a step of the actor. */
int interleave_actor(void);
bool interleave_shares(const volatile void *at);
void interleave_step(int actor);

#endif
