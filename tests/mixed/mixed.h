/* Mixed: everything that a program can do with Ferry, at random, in one run. Each file does some
 * parts and accounts for them. The truth is in memory that all ranks share, whether they are
 * simulated, threads or processes. */
#ifndef FY_TEST_MIXED_H
#define FY_TEST_MIXED_H

#include <stdatomic.h>
#include <string.h>

#include "../sim/oracle.h"

enum { RANKS_MAX = 24, OBJECTS_MAX = 32, INDICES = 24, WATCHES = 3072, OPS = 8, PARCELS = 1024 };
enum { FROM_MAIN, FROM_HANDLER };
/* The last tag is that of polls for all. A stream is what one source sends with one tag, from its
 * main program or from its handlers. */
enum { TAG_COUNT = 4, STREAMS = 2 * TAG_COUNT };
enum { HEAP, REGISTERED, REGIONS };
enum { SLOT_BYTES = 20000, FIXED = 64 };

/* The parts of a run. A word of the command line names each. A run has those after DEATHS only if
 * it is told so: seeds keep the mix with which they have failed. With SHARES no rank has the whole
 * floor plan of BLOCKS. */
typedef enum part {
    OBJECTS,
    REQUESTS,
    MEMORY,
    CELLS,
    COLLECTIVES,
    GROUPS,
    WINDOWS,
    TWO_SIDED,
    COLLECTIONS,
    STEPS,
    BALANCE,
    JOINS,
    LEAVES,
    DEATHS,
    TAGS,
    CARRIED,
    STORES,
    LOCKS,
    BLOCKS,
    QUEUES,
    SHARES,
    PARTS
} part;

/* The seed draws this for the whole job. */
typedef struct plan {
    uint64_t seed, rounds, steps;
    uint64_t sizes;       /* how many of the classes of sizes occur */
    uint64_t hops, fan;   /* a message is answered by up to `fan` others, so many times */
    uint64_t move_one_in; /* handlings after which an object moves */
    uint64_t end_one_in;  /* and after which it ends */
    uint64_t track_one_in, cancel_one_in;
    uint64_t spawn_one_in, leave_one_in; /* steps; rounds */
    uint64_t together;                   /* collective operations of a round */
    uint64_t bytes_max;                  /* of the messages of a round */
    unsigned parts;                      /* a bit for each */
} plan;

/* The states of a message. */
enum {
    SENT = 1,
    TRACKED = 2,
    ARRIVAL = 4,
    COMPLETED = 8,
    FAILED = 16,
    GIVEN_UP = 32,
    CANCELLED = 64,
    ENDED = COMPLETED | FAILED | GIVEN_UP
};

typedef enum watch_kind { TO_OBJECT, TO_RANK, TO_ALL, TO_ELEMENT } watch_kind;

/* A message from its sending to its end. */
typedef struct watch {
    atomic_uint flags;
    atomic_uint handled; /* a bit for each rank */
    watch_kind kind;
    int source, target;  /* target: a rank, an object's place in the table, or an index */
    uint32_t generation; /* of the source: how often it has cleared its watches */
    bool is_shared;      /* the data are in the shared heap */
    void *data;          /* of the source's process */
} watch;

typedef struct stream {
    atomic_uint sent, seen;
} stream;

/* A put into the slot of its source. */
typedef struct put_record {
    atomic_uint round, size_bytes;
} put_record;

/* The truth about one rank. */
typedef struct rank_truth {
    atomic_bool here;    /* it takes requests */
    atomic_bool leaving; /* or has gone */
    atomic_bool died;
    atomic_bool joined; /* it was not there at first, */
    atomic_bool comes;  /* and has not agreed on a round */
    _Atomic(struct region *) regions[REGIONS];
    atomic_ullong added[REGIONS];
    put_record puts[REGIONS][2][RANKS_MAX];
    atomic_uint parcels_in, parcels_out;
    atomic_uint parcels_unknown; /* whose enqueue was cancelled */
    atomic_uint watch_count;
    watch watches[WATCHES];
    stream to_object[STREAMS][OBJECTS_MAX];
    stream to_rank[STREAMS][RANKS_MAX];
} rank_truth;

/* The state of an index of a collection. */
typedef struct element_truth {
    atomic_bool present, inserted, removed;
} element_truth;

/* A parcel of a queue, which is a cell without a handler. */
typedef struct queued {
    atomic_int cell; /* whose queue it goes to, and 1 */
    atomic_uint state;
} queued;

/* The truth about a rank's array in the window of locks. */
typedef struct locked {
    atomic_int holder, readers; /* the rank of the exclusive lock, and 1; those of shared ones */
    atomic_ullong begun[2], done[2];
} locked;

/* All ranks' truth. */
typedef struct truth {
    plan plan;
    atomic_int living, spawned, arrived;
    atomic_bool finished;
    atomic_ullong bytes, handled, ended, refused, moves, joins, leaves, deaths, sessions;
    atomic_ullong steps_done, carries, stored, locked, blocks, polls, taken;
    atomic_int object_count;
    struct {
        atomic_ullong word;
        atomic_bool ended;
        atomic_bool is_carried;
        atomic_uint uninstalled, installed; /* how often */
    } objects[OBJECTS_MAX];
    element_truth elements[INDICES];
    rank_truth places[RANKS_MAX];
    locked locks[RANKS_MAX];
    queued parcels[RANKS_MAX][PARCELS];
} truth;

extern truth *t;

/* Memory of a rank that others put to, get from, and count in. */
typedef struct region {
    uint64_t counter;
    uint64_t fixed[FIXED];
    unsigned char slots[2][RANKS_MAX][SLOT_BYTES]; /* by the round's parity and the source */
} region;

typedef struct waited {
    ferry_op op;
    watch *w;
} waited;

/* The data of an object. */
typedef struct thing {
    uint64_t index, size_bytes;
    unsigned char ballast[]; /* each byte is the index */
} thing;

/* The knowledge of one rank. */
typedef struct account {
    uint64_t random;
    uint64_t round; /* 0: it has not agreed yet */
    uint32_t generation;
    ferry_handler message, request, element, contribute, reduced, leave, carried, block;
    ferry_object_type type, data_type;
    ferry_collection *collection; /* that of the session */
    uint64_t sum;                 /* that a reduction of it gave */
    waited ops[OPS];
    uint64_t started, done; /* puts, gets and enqueues with a track */
    uint64_t dequeues;      /* that have not ended */
    uint64_t put_round[REGIONS][RANKS_MAX];
    region *registered;
    uint64_t deaths, agreed_deaths; /* that it was told; before the last agreement */
    bool in_round, may_leave;       /* it may spawn; it is told to leave in the right quiescence */
    bool goes;                      /* it was told to leave */
    int32_t polled;                 /* the tag of the poll that runs */
    uint64_t handled;               /* by this rank */
    uint32_t installs[OBJECTS_MAX]; /* that have to be, of the objects it has uninstalled */
    ferry_store *store;
    struct queue *queue;
} account;

static inline bool has(part p)
{
    return (t->plan.parts >> p & 1) != 0;
}

/* Whether the run has any of the parts after DEATHS. */
static inline bool has_more(void)
{
    return t->plan.parts >> (DEATHS + 1) != 0;
}

static inline bool one_in(uint64_t *random, uint64_t count)
{
    return draw(random, count) == 0;
}

static inline rank_truth *mine(const ferry *f)
{
    return &t->places[ferry_rank(f)];
}

static inline bool is_leaving(int rank)
{
    return atomic_load(&t->places[rank].leaving);
}

/* messages.c: objects and requests. */
void messages_open(ferry *f, account *a);
int draw_rank(ferry *f, account *a); /* one that takes requests; -1: none was found */
size_t draw_size(uint64_t *random);
unsigned char *draw_data(ferry *f, watch *w, uint64_t seed, size_t size_bytes);
void watches_clear(ferry *f);
void watches_free(int rank);
void check_data(ferry *f, const ferry_message *message, uint64_t seed);
watch *watch_begin(ferry *f, watch_kind kind, int target);
uint64_t watch_name(const watch *w);
watch *watch_handled(ferry *f, const ferry_message *message, watch_kind kind);
ferry_track watch_track(ferry *f, watch *w, bool *tracked);
void watch_sent(ferry *f, watch *w, int error);
int send_object(ferry *f, int from, uint64_t hops);
int send_request(ferry *f, int from, uint64_t hops);
void send_broadcast(ferry *f, int from);
void object_create(ferry *f, account *a);
void object_act(ferry *f, account *a);
void ops_take(ferry *f, account *a, bool all);
void check_watches(ferry *f, int rank, bool at_end);
void answer(ferry *f, uint64_t hops);

/* memory.c: puts, gets, atomic updates and cells. */
void memory_open(ferry *f, account *a);
void memory_close(ferry *f, account *a);
void memory_act(ferry *f, account *a, int from);
void cell_act(ferry *f, account *a, int from);
void memory_check(ferry *f, account *a);

/* together.c: all members act together. 0, or FERRY_EPEER where ranks may die. */
int allowed(ferry *f, int error, const char *what);
/* Whether no rank is on its way. It would become a member in a quiescence, where some collective
 * calls have one: a collection, or a set of blocks. */
int nobody_comes(ferry *f, bool *nobody);
int together(ferry *f, account *a, uint64_t *random);

/* elements.c: collections. */
void elements_open(ferry *f, account *a);
int elements_session(ferry *f, account *a, uint64_t *random);
int steps_session(ferry *f, account *a, uint64_t *random);

/* tags.c: polls for one tag. */
void tags_poll(ferry *f, account *a);
void tags_check(ferry *f, const ferry_message *message);

/* carried.c: objects that the program carries. */
void carried_open(ferry *f, account *a);
void carried_act(ferry *f, account *a);
void carried_check(ferry *f, account *a);

/* stores.c: objects on disk. */
void stores_act(ferry *f, account *a);

/* locks.c: windows with locks. */
int locks_session(ferry *f, account *a, uint64_t *random);

/* blocks.c: distributed arrays whose blocks move. */
void blocks_open(ferry *f, account *a);
int blocks_session(ferry *f, account *a, uint64_t *random);

/* queues.c: cells without handlers, and ends of operations on them. */
void queues_open(ferry *f, account *a);
void queues_act(ferry *f, account *a);
void queues_settle(ferry *f, account *a);
void queues_close(ferry *f, account *a);

/* mixed.c. */
void act(ferry *f, account *a);

#endif
