/* State of collections, inside.
 *
 * An element is an object whose data is a fy_element. The layer's own type callbacks wrap those of
 * the program: what travels is the element's state, its early messages, and the program's data.
 *
 * Names: `bound` of the home says which object an index has, or that it was removed. Each other
 * rank that sends to the index asks the home once, and keeps the answer in `known`. Messages wait
 * in a queue of the index meanwhile. So the order from one rank to one index is kept: either
 * messages wait there, or they go directly by ferry_object_send.
 *
 * Threads: `pack` runs on the helper thread, while the element rests. It reads fields of the
 * element that are changed only in its own handlers, and constants of the collection. All else is
 * the application thread's. */
#ifndef FY_COLLECTION_STATE_H
#define FY_COLLECTION_STATE_H

#include <ferry/collection.h>

#include "base/list.h"
#include "base/table.h"
#include "collection/kinds.h"
#include "core/core.h"

enum { FY_DIMS = 3, FY_STRAY_BYTES = 200, FY_TEXT_BYTES = 64 };

/* A message of a step, kept in its element. The data follow. */
typedef struct fy_early {
    struct fy_early *next;
    uint64_t step;
    uint64_t from; /* key of the sending element; 0: a rank */
    int source;
    ferry_message message;
} fy_early;

/* The messages and the reduction that an element waits for. */
typedef struct fy_need {
    uint64_t step;     /* number of the step that waits, runs, or has run last */
    uint64_t round;    /* of the reduction */
    uint64_t *from;    /* keys; NULL: from anywhere */
    uint32_t messages; /* needed */
    uint32_t have;     /* there */
    bool begun;        /* there has been a step */
    bool waiting;      /* it has not run */
    bool reduction;    /* it needs one */
} fy_need;

typedef struct fy_element {
    ferry_element user; /* first member: what the program sees */
    fy_link link;       /* in the collection's `elements` */
    uint64_t round;     /* number of its next contribution */
    uint64_t births;    /* hashes of elements that it had made in this round */
    bool fresh;         /* it was inserted, and has not contributed yet */
    fy_need need;
    bool told;       /* a message to run its step is in flight; set while it may be packed */
    fy_early *early; /* by step, then in the order of arrival */
    uint64_t key;
    uint64_t incarnation; /* of its index: one that is inserted later has a higher number */
} fy_element;

/* A slot of `known`: an element as a rank knows it that is not its home. */
typedef struct fy_queue fy_queue;
typedef struct fy_known {
    uint64_t key;
    uint64_t object;      /* 0: not known */
    uint64_t incarnation; /* the last that was known here */
    fy_queue *queue;      /* messages that wait for the name, or for memory; NULL: none */
} fy_known;

typedef struct fy_waiting {
    struct fy_waiting *next;
    uint32_t op;
    bool removes, inserts, arrival;
    ferry_message message; /* data follows; of an insertion a request to the home */
} fy_waiting;

struct fy_queue {
    fy_link link; /* in `blocked`, or alone */
    uint64_t key;
    fy_waiting *head, *tail;
    bool counted; /* as work: they can go and do not for want of memory */
};

/* A slot of `bound`: of indices whose home is this rank. */
typedef struct fy_asker {
    struct fy_asker *next;
    int rank;
} fy_asker;
typedef struct fy_bound {
    uint64_t key;
    uint64_t object;      /* 0: none yet, or removed */
    uint64_t incarnation; /* number of elements that the index has had */
    fy_asker *askers;     /* they wait for the name */
    fy_asker *told;       /* they were told `object` */
    uint64_t gone;        /* not 0: it was removed */
} fy_bound;

/* A round of a reduction, on one rank: the elements here that contribute to it next, and what those
 * have given that have done so. At the root: what ranks have sent. */
typedef struct fy_round {
    struct fy_round *next;
    uint64_t number;
    uint64_t here;          /* elements whose next round it is */
    uint64_t count;         /* contributions of elements that have contributed before */
    uint64_t fresh;         /* and of others */
    uint64_t sum;           /* hashes of insertions, less those of fresh elements (rounds.c) */
    int64_t change;         /* of the number of elements */
    bool described;         /* what follows is set */
    ferry_contribution how; /* `values` are those below */
    unsigned char *values;
} fy_round;

/* A message to elements that could not be sent yet. Data follow. */
typedef struct fy_spread {
    struct fy_spread *next;
    int rank; /* of the next home to be told; -1: `object` gets it */
    ferry_object object;
    ferry_message message;
} fy_spread;

struct ferry_collection {
    fy_link link; /* in the layer's list */
    ferry *f;
    uint32_t id;
    int rank, ranks;
    ferry_collection_options options;
    ferry_object_ops ops;
    char name[32];
    ferry_object_type type;
    int64_t extents[FY_DIMS]; /* 0: none */
    int grid[FY_DIMS];        /* FERRY_MAP_BLOCK: ranks along each dimension */
    bool dense, ending;
    fy_table bound, known;
    fy_link elements; /* those here, and those that leave */
    size_t count;
    fy_link blocked; /* queues that could go */
    size_t held;     /* messages in queues */
    /* Reductions: this rank's part, and the root's. */
    fy_round *rounds, *root_rounds;
    uint64_t root_done;
    int64_t total; /* elements that contribute to round `root_done`, at the root */
    bool total_known;
    uint64_t done; /* reductions whose result this rank has */
    void *result;
    size_t result_bytes, result_count;
    bool wake; /* elements have arrived whose reduction is complete */
    /* The first thing that went wrong, for ferry_collection_check. */
    uint64_t strays;
    char stray[FY_STRAY_BYTES];
};

typedef struct fy_types {
    ferry_object_ops ops;
    char name[32];
    ferry_object_type type;
} fy_types;

typedef struct fy_collections {
    ferry *f;
    fy_link all;
    uint32_t next_id;
    bool registered;
    ferry_handler insert, spread;        /* requests */
    ferry_handler remove, step, proceed; /* to elements */
    fy_types *types;
    size_t type_count;
    fy_spread *unsent, *unsent_tail; /* counted as work */
} fy_collections;

static inline fy_collections *fy_collections_of(const ferry *f)
{
    return fy_layer_state(f, FY_LAYER_COLLECTION);
}

static inline fy_element *fy_element_of(const ferry_element *user)
{
    return (fy_element *)(void *)(uintptr_t)user;
}

static inline fy_element *fy_element_at(fy_link *link)
{
    return (fy_element *)(void *)((char *)link - offsetof(fy_element, link));
}

void fy_collection_free(ferry_collection *c);

/* The collection of a number; NULL: it is freed. */
ferry_collection *fy_collection_find(const fy_collections *all, uint64_t id);

/* Indices and places, place.c. */

/* The key of an index: never 0, and different for each. 0: it is out of range or outside. */
uint64_t fy_index_key(const ferry_collection *c, ferry_index index);
ferry_index fy_key_index(const ferry_collection *c, uint64_t key);
/* FERRY_EINVAL, with what is wrong with `index`. */
int fy_index_refuse(const ferry_collection *c, const char *call, ferry_index index);
/* Writes the index as text, such as "(3, 4)". */
const char *fy_index_text(const ferry_collection *c, ferry_index index, char *out);
/* The home of an index that has a key; -1: the program's map gave no rank. */
int fy_index_home(const ferry_collection *c, ferry_index index);
/* Prepares the map. FERRY_EINVAL. */
int fy_map_init(ferry_collection *c);
/* The indices that this rank may be the home of: a box with all of them. */
void fy_map_box(const ferry_collection *c, ferry_index *low, ferry_index *high);

/* Elements, element.c. */

/* The type whose callbacks wrap those of `c`. */
int fy_element_type(ferry_collection *c);
/* Makes the element of `key` on this rank, its home, `from` an insertion or NULL. FERRY_ENOMEM:
 * also when `make` gave NULL. */
int fy_element_make(ferry_collection *c, uint64_t key, uint64_t round, const ferry_message *from);
/* Frees what the element has, and not its place in lists. */
void fy_element_free(ferry *f, fy_element *e);

/* Names, names.c. */

void fy_ask_take(ferry_collection *c, int source, uint64_t key);
void fy_answer_take(ferry_collection *c, uint64_t key, uint64_t object, uint64_t incarnation);
void fy_forget_take(ferry_collection *c, uint64_t key, uint64_t object);
/* The element is here: messages to its index go to it, unless a later one is known. */
void fy_known_refresh(ferry_collection *c, const fy_element *e);
void fy_unbind_take(ferry_collection *c, uint64_t key, uint64_t object);
/* The slot of an index in `bound`. NULL without memory. */
fy_bound *fy_bound_make(ferry_collection *c, uint64_t key);
/* The element of `key` has a name: those that asked learn it. */
void fy_bound_tell(ferry_collection *c, uint64_t key);
/* Sends what can go. Returns how many. */
int fy_queues_flush(ferry_collection *c);
/* A rank has gone: what waits for its answers fails. */
void fy_queues_peer_gone(ferry_collection *c, int rank);
void fy_queues_fini(ferry_collection *c);
/* ferry_collection_send of a checked message. */
int fy_names_send(ferry_collection *c, uint64_t key, const ferry_message *message,
                  const ferry_track *track);

/* Whether an insertion of this rank has to wait for a removal that waits. */
bool fy_names_insert_waits(const ferry_collection *c, uint64_t key);

/* Has an insertion wait for a removal that waits. */
int fy_names_enqueue(ferry_collection *c, uint64_t key, const ferry_message *request);

/* To many, section.c. */

ferry_request_fn fy_insert_take, fy_spread_take;
/* Sends to an object from a place that cannot fail: later, if not now. */
void fy_post(ferry *f, ferry_object object, const ferry_message *message);
/* Likewise a request to this rank: its handler does not run inside another. */
void fy_post_here(ferry *f, const ferry_message *message);
int fy_unsent_flush(fy_collections *all);

/* Reductions, rounds.c. */

/* An element has come to this rank, or goes, as far as rounds are concerned. */
int fy_rounds_enter(ferry_collection *c, uint64_t round);
void fy_rounds_leave(ferry_collection *c, uint64_t round);
/* In `round` there are `change` more elements, and `sum` is added to the hashes of new ones. */
void fy_rounds_change(ferry_collection *c, uint64_t round, int64_t change, uint64_t sum);
uint64_t fy_birth_hash(uint64_t key, uint64_t round);
void fy_partial_take(ferry_collection *c, int source, const fy_frame *frame);
void fy_change_take(ferry_collection *c, const fy_frame *frame);
void fy_result_take(ferry_collection *c, int source, const fy_frame *frame);
void fy_rounds_try(ferry_collection *c);
void fy_rounds_fini(ferry_collection *c);

/* Steps, step.c. */

ferry_object_fn fy_step_take, fy_proceed_take;
/* Whether its step can run. */
bool fy_need_met(const fy_element *e);
/* Has the step of `e` run soon, if all is there. */
void fy_step_settle(fy_element *e);
/* A reduction is complete: steps that wait for it. */
void fy_steps_wake(ferry_collection *c);
/* Something went wrong that ferry_collection_check is to tell. */
void fy_stray(ferry_collection *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Sends a frame of the layer, which is work until it is handled. To this rank it is handled now. */
int fy_collection_tell(ferry_collection *c, int rank, fy_collection_frame what, uint64_t a,
                       uint64_t b, uint64_t more, const void *data, size_t size_bytes);

/* Tells to `out` the first step that waits for something that will not come. False: there is none.
 * report.c */
bool fy_collection_missing(ferry_collection *c, char *out, size_t size);
void fy_collections_why(ferry *f, fy_why *why);

#endif
