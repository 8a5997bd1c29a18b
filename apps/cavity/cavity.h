/* Distributed Delaunay triangulation by Bowyer-Watson cavities (dmcs.txt 2.1 and 5.2).
 *
 * The square [0, SIDE]^2 is cut into tiles, one per rank. The rank in whose tile the centroid of a
 * triangle lies holds that triangle. To insert a point, a walk finds the triangle around it, from
 * rank to rank; the rank that holds this triangle runs the event:
 *   search   It asks the ranks that hold the neighbours which of them belong to the cavity: their
 *            circles contain the point. A rank that is asked follows its own triangles and answers
 *            with all that it found; then the neighbours of those are asked.
 *   change   It joins the rim of the cavity to the point and tells each rank what changes there.
 *
 * Two cavities that overlap are a conflict. So a search locks the triangles of its cavity and those
 * around it, and the change unlocks them. The event with the lower number goes first: it waits at
 * the rank that holds a locked triangle; the other one unlocks all it has and begins again. So some
 * event always ends. All this happens in handlers of requests; no rank waits for another.
 *
 * Coordinates are integers and all decisions are exact (mesh/exact.h). */
#ifndef CAVITY_H
#define CAVITY_H

#include <stdbool.h>
#include <stdint.h>

#include <ferry/ferry.h>

#include "common/check.h"
#include "mesh/exact.h"

enum { SIDE = 1 << 28, SEEDS_PER_RANK = 8, SMALL_BYTES = 512 };

/* A name that is valid on all ranks: the rank that holds the triangle, the rank that made it, and a
 * number. 0 is beyond the edge of the square. */
typedef uint64_t triangle_id;

typedef struct triangle {
    triangle_id id;
    triangle_id beyond[3]; /* beyond[i] lies across the edge opposite corner[i] */
    mesh_point corner[3];  /* counter-clockwise */
} triangle;

typedef struct slot {
    triangle t;
    uint64_t locked_by; /* the event's number, 0: none */
    uint64_t attempt;   /* in which of its attempts */
} slot;

/* The triangles of a rank, densely, and a table that finds them by their names. */
typedef struct store {
    slot *slots;
    size_t count, room;
    uint32_t *table; /* slot + 1, 0: free; linear probing */
    size_t table_room;
} store;

typedef enum record_kind { INSIDE, OUTSIDE, DEAD, NEW, PATCH, UNLOCK } record_kind;

/* A triangle that a search found (INSIDE the cavity or next to it), or a change of one. PATCH:
 * what was beyond[0] is beyond[1] now. */
typedef struct record {
    triangle t;
    uint64_t kind;
} record;

typedef struct records {
    record *at;
    size_t count, room;
} records;

typedef struct ids {
    triangle_id *at;
    size_t count, room;
} ids;

/* A search at the rank that holds the triangles. */
typedef struct search {
    struct search *next; /* waits for a lock */
    int source;
    uint64_t number, attempt;
    mesh_point p;
    ids unseen;
    records found;
} search;

/* A point that is inserted, at the rank that holds the triangle around it. */
typedef struct event {
    struct event *next;
    uint64_t number;  /* also its age */
    uint64_t attempt; /* how often it has given way */
    mesh_point p;
    triangle_id root;
    ids asked;
    records found;
    int left; /* answers that have not come */
    int messages;
    triangle_id conflict; /* an older event has locked this one, 0: none */
    uint64_t older;       /* which, if the triangle is on this rank */
} event;

typedef struct counts {
    uint64_t inserted, doubled, distributed, conflicts, waits;
    uint64_t distributed_messages; /* of those events */
    uint64_t messages, small;      /* of up to SMALL_BYTES */
    uint64_t compared, wrong, area2, triangles;
} counts;

typedef struct mesher {
    ferry *f;
    ferry_handler draw, walk, search, answer, change, inserted, compare;
    int columns, rows; /* of tiles */
    store store;
    event *events, *again; /* running; those that begin again */
    search *waiting;
    bool unlocked; /* since `waiting` was looked at */
    bool narrow;   /* cavities of one triangle: a wrong mesh */
    bool seeding;  /* points of the whole square */
    uint64_t random, drawn, budget;
    uint32_t made;
    double cost_us; /* of a simulated rank for a new triangle */
    counts counts;
} mesher;

static inline int holder_of(triangle_id id)
{
    return (int)(id >> 48);
}

/* Grows *array to at least `need` elements; ends the program when there is no memory. */
void *cavity_room(void *array, size_t *room, size_t need, size_t element_bytes);
void ids_add(ids *list, triangle_id id);
void records_add(records *list, const triangle *t, record_kind kind);

/* store.c. Adding and removing invalidate pointers to slots. */
slot *store_find(const store *s, triangle_id id);
void store_add(store *s, const triangle *t);
void store_remove(store *s, triangle_id id);
void store_fini(store *s);

/* search.c */
uint32_t next_random(uint64_t *state);
void tile_of(const mesher *m, int rank, mesh_point *low, mesh_point *high);
int rank_at(const mesher *m, mesh_point p);
/* Sends `message` and counts it. */
void cavity_send(mesher *m, int rank, const ferry_message *message);
/* Goes on with the walk of event `number` to `p` from a triangle, or from any when that is gone. */
void walk(mesher *m, uint64_t number, uint64_t attempt, mesh_point p, triangle_id from);
/* Goes on with a search. Returns whether it was answered; if so it is freed. Else it must wait. */
bool search_run(mesher *m, search *s);
void search_wait(mesher *m, search *s);
void search_start(mesher *m, search *s);

/* insert.c */
void event_start(mesher *m, uint64_t number, uint64_t attempt, mesh_point p, const triangle *root);
/* One answer: what a search found, and a triangle that it could not lock, if any. */
void event_answered(mesher *m, uint64_t number, const record *found, size_t count,
                    triangle_id conflict);
/* Draws the next point of this rank, if it has one left. */
void draw(mesher *m);
/* The end of each handler: what waited for a lock, and events that begin again. */
void settle(mesher *m);
void insert_register(mesher *m);

/* verify.c. Compares all triangles with their neighbours, on all ranks; adds to m->counts. */
void verify(mesher *m);
void on_compare(ferry *f, int source, const ferry_message *message);

static inline uint64_t pack(mesh_point p)
{
    return (uint64_t)(uint32_t)p.x << 32 | (uint32_t)p.y;
}

static inline mesh_point unpack(uint64_t word)
{
    return (mesh_point){(int32_t)(word >> 32), (int32_t)(uint32_t)word};
}

#endif
