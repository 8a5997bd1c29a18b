/* The collection layer's state in a rank. Private to collection.
 *
 * An element is an object whose data are a fy_element. The type's callbacks are the layer's own and
 * call those of the program. When an element migrates, its state, its early messages and the
 * program's data travel.
 *
 * Names: the table `bound` of the home says which object an index has, or that it was removed.
 * Another rank that sends to the index asks the home, and keeps the answer in its table `known`.
 * Until the answer comes, its messages wait in a queue of the index. Invariant: while the queue is
 * not empty, every message of this rank to the index goes through it. Otherwise messages go
 * directly by ferry_object_send. So their order is kept. names.c says how insertions and removals
 * keep theirs.
 *
 * Threads: `pack` may run on the helper thread while no handler of the element runs. It reads
 * constants of the collection, and fields of the element that only its own handlers change. All
 * else belongs to the application thread. */
#ifndef FY_COLLECTION_STATE_H
#define FY_COLLECTION_STATE_H

#include <ferry/collection.h>
#include <ferry/member.h>

#include "base/list.h"
#include "base/pool.h"
#include "base/table.h"
#include "collection/kinds.h"
#include "core/head.h"

enum { FY_DIMS = 3, FY_STRAY_BYTES = 200, FY_TEXT_BYTES = 64, FY_POOLED_BYTES = 64 };
enum { FY_KEPT_BYTES = 512 }; /* of an error's reason, kept while other calls may fail */

/* A message for a step, kept in its element until the step runs. Its data follow the struct. */
typedef struct fy_early {
    struct fy_early *last; /* of the first message for a step: the last one for that step */
    struct fy_early *next; /* an element that moves takes the fields from here on along */
    uint64_t step;
    uint64_t from; /* key of the sending element; 0: sent by rank `source`, not by an element */
    int source;
    ferry_message message;
} fy_early;

/* A step and what it needs. */
typedef struct fy_need {
    uint64_t step;     /* its number: of the step that waits, runs, or has run last */
    uint64_t round;    /* of the reduction that it needs */
    uint64_t *from;    /* keys of the elements that send to it; NULL: any element or rank does */
    uint32_t messages; /* how many it needs */
    uint32_t have;     /* how many of them are here */
    bool begun;        /* the element has called ferry_step_next before */
    bool waiting;      /* the step has not run yet */
    bool reduction;    /* the step needs the result of one */
    fy_table *places;  /* of the keys in `from`; NULL: they are few, or there was no memory. An
                          element that moves takes the fields before this one along. */
} fy_need;

typedef struct fy_element {
    ferry_element user; /* the part that the program sees; the first member */
    fy_link link;       /* in the collection's `elements` */
    uint64_t round;     /* the reduction to which it contributes next */
    uint64_t births;    /* sum of hashes of the elements that it inserted since it contributed */
    bool fresh;         /* it was inserted, and has not contributed yet */
    bool lent;          /* it moves, or has tried to, with its data left in the shared heap */
    fy_need need;
    bool told; /* the message that runs its step is in flight. Not packed: it may be set then */
    fy_early *early; /* sorted by step, then by arrival */
    uint64_t *spare; /* room for `need.from` of the next step; NULL: none */
    uint32_t spare_count;
    uint64_t key;
    uint64_t incarnation; /* its number among the elements that the index has had */
} fy_element;

/* A slot of `known`: the element of an index, for messages of this rank. */
typedef struct fy_name_queue fy_name_queue;
typedef struct fy_known {
    uint64_t key;
    uint64_t object;      /* 0: not known */
    uint64_t incarnation; /* of the last element that was known here */
    fy_name_queue *queue; /* messages that wait for the name, or for room; NULL: no message */
    bool here;            /* this rank is the home: without a queue, `bound` has the name */
} fy_known;

/* A message, a removal or an insertion in a queue. */
typedef struct fy_queue_entry {
    struct fy_queue_entry *next;
    uint32_t op; /* 0: untracked */
    int source;  /* of an insertion that is held, or the rank that asks (home.c) */
    bool removes, inserts, arrival;
    bool sent;             /* of an insertion: it was sent already, and only has its place here */
    bool runs;             /* it was sent by the home to itself, and has not run yet */
    bool asks;             /* held: no insertion; `source` asks for the name */
    ferry_message message; /* its data follow the struct; an insertion is a request to the home */
} fy_queue_entry;

struct fy_name_queue {
    fy_link link; /* in `blocked` while it is counted */
    uint64_t key;
    fy_queue_entry *head, *tail;
    size_t changes; /* entries that are removals, or insertions that were not sent */
    size_t running; /* entries with `runs` */
    bool counted;   /* as work: the name is known, and the messages wait for room */
    bool asked;     /* the home has been asked, and has not answered */
    bool renews;    /* the last entry was the mark of an insertion: what follows asks again */
};

/* A rank that has asked for a name. */
typedef struct fy_asker {
    struct fy_asker *next;
    int rank;
} fy_asker;

/* A slot of `bound`: an index whose home is this rank. */
typedef struct fy_home_entry {
    uint64_t key;
    uint64_t object;            /* the name; 0: the index has no element yet, or it was removed */
    uint64_t incarnation;       /* number of elements that the index has had */
    fy_asker *askers;           /* ranks that wait for the name */
    fy_asker *told;             /* ranks that had `object` as an answer */
    uint64_t gone;              /* not 0: an element of the index was removed */
    struct fy_leaving *leaving; /* that element, if it has not ended; else NULL */
    uint32_t inserting;         /* insertions by this rank, its home, that have not run yet */
} fy_home_entry;

/* An element that was removed. Insertions of its index, and ranks that ask for its name, wait for
 * its end in the order in which they came. */
typedef struct fy_leaving {
    struct fy_leaving *next; /* in `left` of the collection, once it has ended */
    uint64_t key, object;
    fy_queue_entry *head, *tail; /* each insertion counts as work, and so does the end */
    bool ended;
} fy_leaving;

/* A reduction on one rank: in `rounds` the part of the elements here, in `root_rounds` (at the root
 * only) the sum of the parts that have come. */
typedef struct fy_round {
    struct fy_round *next;
    uint64_t number;
    uint64_t here;  /* elements on this rank that contribute to it next */
    uint64_t count; /* contributions of elements that have contributed before */
    uint64_t fresh; /* first contributions of inserted elements */
    uint64_t sum;   /* hashes of insertions, less those of fresh elements (rounds.c) */
    int64_t change; /* at the root: how many elements more there are than before (< 0: fewer) */
    bool described; /* `how` and `values` are set */
    ferry_contribution how; /* of each contribution; its `values` is not used */
    unsigned char *values;
} fy_round;

/* A message that found no room. Its data follow the struct. */
typedef struct fy_spread {
    struct fy_spread *next;
    int rank; /* a request to this rank; -1: a message to `object` */
    ferry_object object;
    ferry_message message;
} fy_spread;

struct ferry_collection {
    fy_link link; /* in the layer's list */
    ferry *f;
    uint32_t id;
    int rank, place; /* this rank, and its place among the members */
    int ranks;       /* the job's members at creation */
    ferry_collection_options options;
    ferry_object_ops ops;
    char name[32];
    ferry_object_type type;
    int64_t extents[FY_DIMS]; /* 0: none */
    int64_t low[FY_DIMS];
    uint64_t span[FY_DIMS];                /* indices have entries from low to low + span */
    uint64_t key_scale[FY_DIMS], key_base; /* a key is the base and the scaled entries */
    int grid[FY_DIMS];                     /* FERRY_MAP_BLOCK: ranks along each dimension */
    bool dense, ending;
    /* ferry_collection_create has failed here, since a rank died, and others may have succeeded:
     * their elements can come here. Ranks that failed earlier call ferry_quiesce next, so this one
     * could not wait in another. The next creation ends the collection. */
    bool abandoned;
    fy_table bound, known;
    fy_link elements; /* on this rank; also those that are leaving */
    size_t count;     /* of `elements` */
    fy_link blocked;  /* queues that wait for room alone */
    fy_leaving *left; /* removed elements that have ended since the last poll */
    size_t held;      /* messages in queues */
    size_t inserting; /* sum over `bound` */
    bool again;       /* for want of memory something is left for the next poll */
    bool lost;        /* a rank has gone, and elements may have gone with it */
    /* Reductions: this rank's part, and the root's. */
    fy_round *rounds, *root_rounds;
    fy_round *complete; /* at the root: rounds whose results could not be sent yet */
    uint64_t root_done; /* at the root: reductions that are complete */
    int64_t total;      /* at the root: elements that contribute to round `root_done` */
    bool total_known;
    uint64_t done; /* reductions whose result has come to this rank */
    int passed;    /* children in the tree that have got the next result from here */
    void *result;  /* of the last one */
    size_t result_bytes, result_count;
    bool wake; /* an element has arrived after the result that its step waits for */
    /* Faults for ferry_collection_check: how many, and the text of the first. */
    uint64_t strays;
    char stray[FY_STRAY_BYTES];
    int members[]; /* ranks by place, ascending */
};

/* An object type, and the callbacks for which it was registered. */
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
    fy_pool early;                   /* messages for steps with up to FY_POOLED_BYTES of data */
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

/* Ends abandoned collections. The ranks have agreed on the members since. */
void fy_collections_drop(fy_collections *all);

/* While there are collections, ferry_leave and ferry_spawn fail. Called when their list changes. */
void fy_collections_hold(const fy_collections *all);

/* The collection with this number; NULL: this rank has freed it. */
ferry_collection *fy_collection_find(const fy_collections *all, uint64_t id);

/* Indices and places, place.c. */

/* The key of an index: its entries in one number, which is not 0. 0: the index is too large or
 * outside the extents. */
uint64_t fy_index_key(const ferry_collection *c, ferry_index index);
ferry_index fy_key_index(const ferry_collection *c, uint64_t key);
/* Returns FERRY_EINVAL for an index without a key, with an error message that says why. */
int fy_index_refuse(const ferry_collection *c, const char *call, ferry_index index);
/* Writes the index as text, such as "(3, 4)". */
const char *fy_index_text(const ferry_collection *c, ferry_index index, char *out);
/* The home of an index that has a key; -1: the program's map gave no member. */
int fy_index_home(const ferry_collection *c, ferry_index index);
/* For an index without home. Returns FERRY_EINVAL, with an error message that names what the map
 * gave. */
int fy_home_refuse(const ferry_collection *c, const char *call, ferry_index index);
/* The place of a rank among the members of the collection; -1: it is none. */
int fy_collection_place(const ferry_collection *c, int rank);
/* Sets `low` and `span`. */
void fy_index_bound(ferry_collection *c);
/* Prepares the map. FERRY_EINVAL: it is unknown, or needs extents. */
int fy_map_init(ferry_collection *c);
/* A box that contains all indices whose home is this rank. */
void fy_map_box(const ferry_collection *c, ferry_index *low, ferry_index *high);

/* Elements, element.c. */

/* The type of elements has the same number on all ranks. Each rank proposes: 1 + the number of the
 * type in `known` if it has it, and in `next` 1 + the first number that it has not given. */
void fy_element_type_propose(const ferry_collection *c, uint64_t *known, uint64_t *next);
/* Sets `c->type`, whose callbacks call those of `c`. `known`, `next`: the greatest that any rank
 * has proposed. FERRY_EINVAL: the number is of another type here. FERRY_ENOMEM. */
int fy_element_type(ferry_collection *c, uint64_t known, uint64_t next);
/* Makes the element of `key` on this rank, its home. `from` is the insertion, or NULL.
 * FERRY_ENOMEM: also when `make` gave NULL. */
int fy_element_make(ferry_collection *c, uint64_t key, uint64_t round, const ferry_message *from);
/* Frees what an element owns. It stays allocated and in its list. */
void fy_element_free(ferry *f, fy_element *e);

/* The home of indices, home.c. */

/* `ask`: as in FY_ASK. FERRY_ENOMEM: nothing happened. */
int fy_ask_take(ferry_collection *c, int source, uint64_t key, uint64_t ask);
/* `ended`: the element has ended. Otherwise its removal is on its way. */
void fy_unbind_take(ferry_collection *c, uint64_t key, uint64_t object, bool ended);
/* The slot of an index in `bound`, made if there is none. NULL: no memory. */
fy_home_entry *fy_bound_make(ferry_collection *c, uint64_t key);
/* Sends the name of `key` to the ranks that wait for it. */
void fy_bound_tell(ferry_collection *c, uint64_t key);
/* Sends the names that could not be sent for want of memory. */
void fy_names_again(ferry_collection *c);
/* Keeps the insertion until the element of its index that leaves has ended. FERRY_ENOMEM. */
int fy_insert_hold(ferry_collection *c, const fy_home_entry *bound, int source,
                   const ferry_message *request);
/* Goes on with the indices whose last elements have ended. Returns how many. */
int fy_left_finish(ferry_collection *c);
void fy_home_peer_gone(ferry_collection *c);
void fy_home_fini(ferry_collection *c);

/* Names, names.c. */

/* Copies a message. NULL: no memory. */
fy_queue_entry *fy_queue_entry_make(const ferry_message *message);
void fy_answer_take(ferry_collection *c, uint64_t key, uint64_t object, uint64_t incarnation);
void fy_forget_take(ferry_collection *c, uint64_t key, uint64_t object);
/* The element has come to this rank: sets its name in `known`, unless a later element of the index
 * is known. */
void fy_known_refresh(ferry_collection *c, const fy_element *e);
/* Sends messages of `blocked` queues while there is room. Returns how many. */
int fy_queues_flush(ferry_collection *c);
/* A rank has gone: messages that wait for its answers fail. */
void fy_queues_peer_gone(ferry_collection *c, int rank);
void fy_queues_fini(ferry_collection *c);
/* Tells the home that this element of the index was removed, or with `ended` that it has ended. */
void fy_unbind(ferry_collection *c, uint64_t key, uint64_t object, bool ended);
/* For `call`, which sends a message: FERRY_EINVAL if it is not valid, or has more words than
 * `words_max`. The second also looks for its handler. */
int fy_collection_check_words(const ferry_collection *c, const char *call,
                              const ferry_message *message, int words_max);
int fy_collection_check_message(const ferry_collection *c, const char *call,
                                const ferry_message *message);
/* ferry_collection_send, after its arguments were checked. */
int fy_names_send(ferry_collection *c, uint64_t key, const ferry_message *message,
                  const ferry_track *track);

/* ferry_collection_insert, after its arguments were checked. Sets `*exists` if this rank is the
 * home and the index has an element: then nothing is sent. */
int fy_names_insert(ferry_collection *c, uint64_t key, const ferry_message *request, bool *exists);
/* An insertion by this rank, the home, has run: goes on with the messages after it. */
void fy_names_inserted(ferry_collection *c, uint64_t key);

/* Sections and insertions, section.c. */

ferry_request_fn fy_insert_take, fy_spread_take;
/* Makes the element, or holds the insertion until the last one of the index has ended. */
void fy_insert_run(ferry_collection *c, int source, const ferry_message *request);
/* Sends to an object. If there is no room, it keeps a copy and sends that in a later poll. */
void fy_post(ferry *f, ferry_object object, const ferry_message *message);
/* Likewise sends a request to this rank, so that its handler does not run inside another. */
void fy_post_here(ferry *f, const ferry_message *message);
/* Sends messages that found no room before. Returns how many. */
int fy_unsent_flush(fy_collections *all);

/* Reductions, rounds.c. */

/* The rank that completes the reductions of the collection. */
int fy_rounds_root(const ferry_collection *c);
/* An element with this next round has come to the rank, or leaves it. FERRY_ENOMEM. */
int fy_rounds_enter(ferry_collection *c, uint64_t round);
void fy_rounds_leave(ferry_collection *c, uint64_t round);
/* Tells the root: in `round` there are `change` more elements, and the hashes grow by `sum`. */
void fy_rounds_change(ferry_collection *c, uint64_t round, int64_t change, uint64_t sum);
/* The hash of an element that is inserted in this round. */
uint64_t fy_birth_hash(uint64_t key, uint64_t round);
/* These three take a frame, or return FERRY_ENOMEM, and then want it again. */
int fy_partial_take(ferry_collection *c, int source, const fy_frame *frame);
int fy_change_take(ferry_collection *c, const fy_frame *frame);
int fy_result_take(ferry_collection *c, int source, const fy_frame *frame);
/* Sends what could not be sent for want of memory. */
void fy_rounds_again(ferry_collection *c);
void fy_rounds_try(ferry_collection *c);
void fy_rounds_fini(ferry_collection *c);

/* Steps, step.c. */

ferry_object_fn fy_step_take, fy_proceed_take;

/* A message for a step with room for its data; NULL: no memory. */
fy_early *fy_early_make(fy_collections *all, size_t size_bytes);
void fy_early_free(fy_collections *all, fy_early *m);
/* Makes `need.places` of an element that has come to this rank. */
void fy_need_index(fy_element *e);
/* Frees the senders of a step that has begun, or will not. */
void fy_need_free(fy_need *need);
/* Adds a message to its element, after those for the same step that have come before. */
void fy_early_add(fy_element *e, fy_early *m);
/* Makes the message a part of its element, and drops one that no step needs. False: no memory. */
bool fy_step_add(fy_element *e, int source, const ferry_message *message);
/* From now on messages of steps that need no task have none, keep.c. */
void fy_keeper_start(ferry *f);
/* If the step of `e` has all that it needs, sends the message that runs it. */
void fy_step_settle(fy_element *e);
/* The result of a reduction has come: settles the steps that wait for one. */
void fy_steps_wake(ferry_collection *c);
/* Notes and logs a fault, for ferry_collection_check. */
void fy_stray(ferry_collection *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Something was not done for want of memory. The next poll does it. Until then it is work. */
void fy_collection_again(ferry_collection *c);
/* Sends a frame of the layer. It counts as work until it is handled. A frame to this rank is
 * handled in the call. */
int fy_collection_tell(ferry_collection *c, int rank, fy_collection_frame what, uint64_t a,
                       uint64_t b, uint64_t more, const void *data, size_t size_bytes);

/* Reports, report.c. */

/* A rank's part in the first reduction that is not complete, at quiescence. */
typedef struct fy_round_report {
    const fy_element *first; /* of those here that have not contributed; NULL: there is none */
    uint64_t counts[2];      /* elements that have contributed, and those that have not */
    bool waits;              /* there are contributions to it */
} fy_round_report;

void fy_round_look(const ferry_collection *c, fy_round_report *out);
/* Writes to `out` what the reduction misses. Its `counts` are those of all ranks. */
void fy_round_tell(const ferry_collection *c, const fy_round_report *report, char *out,
                   size_t size_bytes);
/* Writes to `out` the first fault, step or message that waits. False: none does. */
bool fy_collection_missing(ferry_collection *c, char *out, size_t size);
void fy_collections_why(ferry *f, fy_why *why);

#endif
