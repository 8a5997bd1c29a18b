/* A rank's side of the port over several nodes: shm for the ranks of its node, the binding for the
 * others.
 *
 * A frame to another node is one message: head, words and payload, up to EAGER_MAX bytes of it; a
 * larger payload follows as a message of its own, straight from its block into a block. Each lane
 * has a tag for frames and one for payloads. The binding keeps the order of messages with one tag
 * between two ranks, and payloads are received in the order of their frames, so nothing needs a
 * number.
 *
 * The head is left out of frames without payload whose head would say what that of the frame before
 * said. Such a message is shorter than a head, and has words alone: on a node some libraries take a
 * cache line less for it, a tenth of a microsecond.
 *
 * Receives for frames are posted beforehand, from any source, and looked at in the order posted:
 * one test tells whether anything has come. A frame that has come stands in the queue of its source
 * until it is delivered. A source may have so much in flight, by frames and by bytes. The target
 * counts what it has taken. It says so in the head of each frame that goes back, or, when none
 * does, in a notice. Notices travel on the control tag and cost no credit.
 *
 * A message to or from a rank that joined later has a route behind its head. It begins or ends at a
 * relay (relay.h), which is an endpoint for each such rank of its node, as the process is for its
 * own rank.
 *
 * Threads: with a helper or a relay, everything here is under `lock`, which is never held while a
 * frame is delivered. */
#ifndef FY_NODES_PORT_STATE_H
#define FY_NODES_PORT_STATE_H

#include <stdatomic.h>

#include "base/mutex.h"
#include "port/nodes/binding.h"
#include "port/nodes/node.h"
#include "port/port.h"
#include "port/shm/layout.h"
#include "port/waiting.h"

#define WORDS_BYTES (FY_FRAME_WORDS * sizeof(uint64_t))
#define EAGER_MAX (16u << 10)
/* In flight from one rank to another on one lane: frames, bytes of frames, bytes of payloads that
 * follow (one of those always may). */
#define FRAMES_MAX 256u
#define FRAME_BYTES_MAX (1u << 20)
#define FOLLOWING_BYTES_MAX (8u << 20)
/* Receives posted per lane: so few that their memory stays in the cache, and that a search among
 * all of them, which some libraries make for each message, is short. */
#define POSTED_DATA 32u
#define POSTED_CONTROL 8u

enum { TAG_FRAME = 0x4600, TAG_PAYLOAD = 0x4700 }; /* plus the lane */

/* In `flags`. */
#define WIRE_FOLLOWS 1u /* the payload is a message of its own */
#define WIRE_NOTICE 2u  /* no frame: only `taken` counts, and `aux`, a `notices` */
#define WIRE_ROUTED 4u  /* a route follows the head */
#define WIRE_WAITS 8u   /* with WIRE_NOTICE: what its source waits for, see deadlock.c */

/* The kinds of a notice about its source. */
typedef enum notices {
    NOTICES_NONE,
    NOTICES_BYE,     /* it has left: its last message on this lane */
    NOTICES_DEAD,    /* likewise: it has died */
    NOTICES_HERE,    /* it has come */
    NOTICES_ENDURES, /* it goes on when others die */
    NOTICES_MORTAL,  /* it does not any more */
    NOTICES_DONE,    /* nothing comes from its node any more on this lane */
    NOTICES_LOST,    /* its process has lost messages: see fy_nodes_cut_off */
} notices;

/* The head of a message. Words and payload follow. */
typedef struct wire {
    uint8_t kind;
    uint8_t word_count;
    uint16_t handler;
    uint32_t op;
    int32_t tag;
    uint32_t aux;
    uint64_t size_flags;      /* payload bytes, flags above bit 56 */
    uint32_t taken[FY_LANES]; /* frames of the target that the source has taken so far */
} wire;

_Static_assert(sizeof(wire) == 32, "the head of a message");

#define WIRE_FLAGS_SHIFT 56

typedef struct route {
    uint32_t source, target; /* numbers in the job */
} route;

#define MESSAGE_MAX (sizeof(wire) + sizeof(route) + WORDS_BYTES + EAGER_MAX)

/* Words of a frame that goes without its head, at most: fewer bytes than a head. */
#define BRIEF_WORDS_MAX (sizeof(wire) / sizeof(uint64_t) - 1)

/* A message that is expected or has come. */
typedef struct slot {
    struct slot *next;
    fy_nodes_request request; /* of the message, later of its payload */
    bool done;                /* it has come, and has not been put in line */
    bool waiting;             /* its payload is in flight */
    fy_port *heap;            /* whose block the payload is; NULL: it is malloc's */
    int source;               /* the process */
    size_t size_bytes;
    void *payload;              /* that followed; else NULL */
    wire head;                  /* what the message says, or the one before: */
    uint8_t word_count;         /* but so many words, */
    const unsigned char *words; /* here, and */
    size_t data_bytes;          /* so much payload, behind them unless it followed */
    _Alignas(16) unsigned char message[MESSAGE_MAX];
} slot;

/* A ring: the oldest at `first`, the `spent` places before it empty. They are filled again after
 * what has come was delivered, off the path of an answer. */
typedef struct posted {
    slot *slots[POSTED_DATA];
    uint32_t count, first, spent;
    bool fruitful; /* the last poll's first look found a message */
    bool streams;  /* so did the one before, or the look after a message */
} posted;

/* Frames of one source on one lane that have come. */
typedef struct inlet {
    slot *head, *tail;
    struct inlet *next; /* among those with frames */
    struct endpoint *to;
    bool listed; /* there, or being delivered from */
    uint32_t taken, told;
    size_t untold_bytes;
    int source;
    bool headed; /* one has come with its head: */
    wire last;   /* the last of these, which is that of those without */
} inlet;

typedef struct inlets {
    inlet *head, *tail;
} inlets;

/* Frames in flight to one target on one lane. */
typedef struct outlet {
    uint64_t *costs; /* of the frames, a ring; see cost_of */
    uint32_t sent, taken;
    uint64_t frame_bytes, following_bytes;
    wire last; /* head that went last with a frame */
} outlet;

typedef struct peer {
    inlet in[FY_LANES];
    outlet out[FY_LANES];
} peer;

/* Where messages begin and end: this process's rank, or one that it relays for. */
typedef struct endpoint {
    int number;
    peer **peers; /* by number */
    inlets inlets[FY_LANES];
    fy_port *heap; /* for blocks */
} endpoint;

/* A message that the binding has not yet done with. */
typedef struct departure {
    struct departure *next;
    fy_nodes_request request;
    int rank;          /* the process that it goes to */
    void *payload;     /* to be freed with it; else NULL */
    atomic_bool *lent; /* to be told the end instead; else NULL */
    fy_port *heap;     /* whose block the payload is; NULL: it is malloc's */
    uint8_t size_class;
    _Alignas(16) unsigned char message[];
} departure;

/* Departures have room for one of these sizes, and are kept for the next of their class. */
enum { SMALL, LARGE, CLASSES };
#define SMALL_BYTES 1024u

/* The waits that ranks have told of (deadlock.c). */
typedef struct deadlocks {
    uint32_t round, told; /* the newest round, and that in which this rank has told last */
    bool logs;            /* what is found in it is logged */
    bool found, notices;  /* a deadlock; something was told since the last look for one */
    uint64_t begun_ns;
    fy_waiting *all;            /* by rank, of this round; NULL before the first */
    char deadlock[512];         /* that this rank is in */
    char text[FY_ANSWER_BYTES]; /* what this rank has answered */
} deadlocks;

/* In nodes_port.far: on how many lanes the rank counts as gone, whether it died, whether it has
 * come, and whether something between it and this rank was lost. Also on how many lanes its goodbye
 * has arrived. Those that the job began with have come. A rank that is lost counts as gone on all
 * lanes immediately. Its goodbyes arrive later. */
#define FAR_BYES 3u
#define FAR_DEAD 4u
#define FAR_HERE 8u
#define FAR_LOST 16u
#define FAR_HEARD 32u /* times the lanes */

typedef struct nodes_port {
    fy_port port;
    fy_port *near; /* port shm of the node */
    const fy_nodes_binding *binding;
    fy_nodes_net *net;
    const fy_node *node;
    int rank, ranks; /* numbers are below `ranks` */
    int world;       /* and of processes that the binding connects below this */
    int *place;      /* of each rank on this node; -1: elsewhere */
    endpoint self;
    struct fy_nodes_relay *relay; /* NULL: this process is none */
    _Atomic uint8_t *far;         /* by number, of ranks elsewhere: FAR_... */
    uint32_t farewells;           /* of how many of these the goodbyes on all lanes have arrived */
    uint32_t done;                /* how often a node's relay has said that it is done */
    posted posted[FY_LANES];
    slot *free_slots;
    uint32_t free_slot_count;
    departure *leaving, *leaving_tail;
    departure *free_departures[CLASSES];
    uint32_t free_departure_count[CLASSES];
    fy_mutex lock;
    bool helper, locks;     /* a helper runs; it or a relay does */
    bool helper_allowed;    /* it may call the binding */
    bool alone;             /* the program does not call the network itself */
    fy_lane pumped;         /* the lane that was looked at last; FY_LANES: either may be next */
    uint32_t skipped;       /* looks at the control lane left out since the last one */
    bool cut_off;           /* from other nodes: see fy_nodes_cut_off */
    bool has_lost;          /* a rank elsewhere is lost */
    uint64_t torn_ns;       /* linger waits until then for goodbyes that may be lost; 0: not yet */
    bool closed;            /* the shm port has gone; what comes is received and dropped */
    _Atomic uint32_t serve; /* fy_thread */
    uint64_t pause_ns;      /* of the application thread's wait */
    _Atomic uint64_t quantum_ns; /* of the helper that serves the control lane */
    _Atomic bool came;           /* a frame, since that wait last looked */
    deadlocks deadlocks;
    fy_port_ops ops; /* its table, with the name that the binding gives the port */
} nodes_port;

static inline nodes_port *port_of(fy_port *port)
{
    return (nodes_port *)(void *)port;
}

static inline void lock(nodes_port *p)
{
    if (p->locks)
        fy_mutex_lock(&p->lock);
}

static inline void unlock(nodes_port *p)
{
    if (p->locks)
        fy_mutex_unlock(&p->lock);
}

/* The rest is called with the lock held, unless it says otherwise. */

/* port.c, for fy_nodes_peer. */
peer *fy_nodes_peer_make(endpoint *e, int number);

/* The state of a rank elsewhere at an endpoint, made at its first use; NULL without memory. */
static inline peer *fy_nodes_peer(endpoint *e, int number)
{
    return e->peers[number] != NULL ? e->peers[number] : fy_nodes_peer_make(e, number);
}

/* The process that takes what is for a rank. */
static inline int fy_nodes_home(const nodes_port *p, int number)
{
    return number < p->world ? number : p->node->homes[number];
}

/* Any thread, without the lock. */
static inline fy_peer_state fy_nodes_far_state(const nodes_port *p, int number)
{
    /* acquire: pairs with take_farewell in notices.c: what it sent before is here */
    uint8_t far = atomic_load_explicit(&p->far[number], memory_order_acquire);
    if ((far & FAR_BYES) == FY_LANES)
        return (far & FAR_DEAD) != 0 ? FY_PEER_DEAD : FY_PEER_LEFT;
    return (far & FAR_HERE) != 0 ? FY_PEER_ALIVE : FY_PEER_ABSENT;
}

/* Any thread: whether what comes from a rank is dropped, since something before it was lost. */
static inline bool fy_nodes_is_lost(const nodes_port *p, int number)
{
    /* relaxed: with the lock held, or without a frame that depends on it */
    return (atomic_load_explicit(&p->far[number], memory_order_relaxed) & FAR_LOST) != 0;
}

/* The ways of a sender with its data: lets them be copied, hands over their block, or leaves them
 * in place until told otherwise. */
typedef enum terms { COPIED, GIVEN, LENT } terms;

/* send.c. fy_nodes_send_remote takes the lock itself. `lent`: with LENT, to be told; else NULL. */
int fy_nodes_send_remote(nodes_port *p, endpoint *from, fy_lane lane, int rank,
                         const fy_frame *frame, terms how, atomic_bool *lent);
/* Sends a notice; or one that says what stands in the head and words of `frame`, with `flags`.
 * False: there is no memory for it; credit is told of by the next one or frame. */
bool fy_nodes_notice(nodes_port *p, endpoint *from, fy_lane lane, int rank, notices what);
bool fy_nodes_notice_with(nodes_port *p, endpoint *from, fy_lane lane, int rank, uint32_t flags,
                          const fy_frame *frame);
/* Looks at a few messages that the binding may be done with; returns whether any is left. */
bool fy_nodes_reap(nodes_port *p);
/* Counts what `rank` has taken of what `from` has sent. */
void fy_nodes_credit(endpoint *from, int rank, const uint32_t taken[FY_LANES]);
void fy_nodes_departures_free(nodes_port *p);

/* receive.c */
/* 0 or FERRY_ENOMEM or FERRY_ELAUNCH. */
int fy_nodes_post_all(nodes_port *p);
/* Takes in what has come. */
void fy_nodes_pump(nodes_port *p, fy_lane lane);
/* Whether a look at `lane` may be left out: each look makes progress on both lanes, so the
 * control lane of a rank that polls both in turn is looked at every few rounds. */
bool fy_nodes_may_skip(nodes_port *p, fy_lane lane);
/* Whether a frame can be delivered, of those that fy_nodes_pump has taken in. */
bool fy_nodes_ready(nodes_port *p, fy_lane lane);
/* Delivers what has been taken in for an endpoint; the lock is given up meanwhile. */
int fy_nodes_deliver(nodes_port *p, endpoint *to, fy_lane lane, int budget, fy_deliver *deliver,
                     void *context);
/* Without the lock. */
int fy_nodes_poll_remote(nodes_port *p, fy_lane lane, int budget, fy_deliver *deliver,
                         void *context);
/* Drops what has come whole, blocks included. */
void fy_nodes_drop(nodes_port *p, endpoint *to);
/* Whether all that `rank` has ever sent was delivered or dropped. */
bool fy_nodes_is_silent(const nodes_port *p, int rank);
/* Whether something of `rank`'s waits to be delivered. */
bool fy_nodes_holds(const endpoint *to, int rank);
/* Ends the receives of payloads that have not come. */
void fy_nodes_undelivered_free(nodes_port *p, endpoint *to);
/* Ends the receives. */
void fy_nodes_slots_free(nodes_port *p);

/* notices.c. fy_nodes_tell takes the lock itself, and waits for memory however long it takes. */
void fy_nodes_tell(nodes_port *p, endpoint *from, fy_lane lane, int process, notices what);
/* This rank has notices of others or of itself, and its wait ends. */
void fy_nodes_rouse_self(nodes_port *p);
/* A message of `source` has come: if that joined later, this is how its coming is known. */
void fy_nodes_take_arrival(nodes_port *p, int source);
void fy_nodes_take_notices(nodes_port *p, int source, uint32_t what);
/* A message from or to a process of another node was lost, for the reason that `what` says; -1: it
 * is not known which. The order of messages is broken. So that all ranks agree, this one is cut off
 * from all other nodes: they count as dead here, and it counts as dead there. Operations between
 * them fail with FERRY_EPEER, and collectives with them. Logs it, once. */
void fy_nodes_cut_off(nodes_port *p, int process, const char *what);

/* deadlock.c. A notice with WIRE_WAITS has come; the others are the table's, without the lock. */
void fy_nodes_heard(nodes_port *p, int source, const wire *head, const unsigned char *words);
bool fy_nodes_asked(fy_port *port);
void fy_nodes_answer(fy_port *port, const char *text, size_t size_bytes);
bool fy_nodes_ask(fy_port *port, bool print);

/* wait.c. Without the lock. */
void fy_nodes_wait(fy_port *port, fy_thread thread, uint64_t deadline_ns);

/* port.c */
/* Makes the port; takes nothing. All ranks have joined their segments. */
int fy_nodes_port_create(const fy_nodes_binding *binding, fy_nodes_net *net, const fy_node *node,
                         fy_port *near, bool helper_allowed, bool alone, nodes_port **out);
/* `e` is zero but for its number and heap. FERRY_ENOMEM. */
int fy_nodes_endpoint_init(nodes_port *p, endpoint *e);
void fy_nodes_endpoint_fini(nodes_port *p, endpoint *e);
/* After the port was closed: takes in what still comes, so that nobody who sent it waits. Returns
 * whether ranks of other nodes have yet to say goodbye. */
bool fy_nodes_port_linger(nodes_port *p);
/* After that. False: a message between this rank and another one is lost, and one of the two may
 * wait for its end forever when it leaves. Then nothing is freed, and the job must be aborted. */
bool fy_nodes_port_destroy(nodes_port *p);

#endif
