/* Objects side: what Ferry's team for objects consists of. Each part registers its handlers, and
 * sets the kinds of jobs that it measures; with `reference` these measure what an operation is
 * compared with. */
#ifndef BENCH_OBJECTS_SIDE_H
#define BENCH_OBJECTS_SIDE_H

#include <ferry/ferry.h>

#include "common/team.h"
#include "peers/check.h"

enum { BALLAST_BYTES = 64 << 10 };

/* An object, or what stands for one in the reference. */
typedef struct item {
    size_t size_bytes;
    unsigned char bytes[];
} item;

typedef struct state {
    ferry *f;
    int rank;
    uint64_t arrived, sum;
    uint64_t creators; /* of the objects that fill the directory; 0: nothing does */
    uint64_t asked;    /* the last name looked for, over all samples */
    ferry_object_type type, shared_type;
    ferry_handler read, ping, pass, go, call;          /* of objects */
    ferry_handler pong, relay, carry, arrival, put_in; /* of ranks */
    uint64_t install_ns;
    ferry_object own, objects[2]; /* one per rank; `objects`: those of ranks 0 and 1 */
    item *cargo;
    unsigned char *packed;
    unsigned char ballast[BALLAST_BYTES];
    struct work *work; /* ranks that this one drives */
} state;

/* Polls until so many messages have arrived. */
void bench_until(state *s, uint64_t arrived);

/* An item of the heap, its bytes written. */
item *bench_item(size_t size_bytes);

/* One of the shared heap. All its bytes are written before it is used, so that they are memory and
 * not a promise of it. */
item *bench_shared_item(ferry *f, size_t size_bytes);

/* A message with `size_bytes` of words or data. */
ferry_message bench_message(const state *s, ferry_handler handler, size_t size_bytes);

/* Packs the cargo and sends it to the other of two ranks, to go `left` times more; what it was here
 * is gone. */
void bench_carry_on(state *s, uint64_t left);

/* Registers the types of objects, and all handlers. */
void bench_objects_register(state *s);

/* Round trips between an object of rank 0 and one of rank 1, or between the ranks themselves. */
double bench_round_trips(state *s, const bench_job *job, bool objects);

/* The parts' handlers, and what they measure. */
void bench_objects_messages_register(state *s);
void bench_objects_moves_register(state *s);
void bench_objects_directory(bench_team *team, bool reference);
void bench_objects_messages(bench_team *team, bool reference);
void bench_objects_moves(bench_team *team, bool reference);
void bench_objects_work(bench_team *team, bool reference);
void bench_objects_work_end(state *s);

#endif
