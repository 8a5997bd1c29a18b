/* A rank's side of the port over several nodes: shm for the ranks of its node, the binding for the
 * others.
 *
 * A frame to another node is one message: head, words and payload. If the payload has more than
 * EAGER_MAX bytes, it follows as a message of its own, directly from its block into a block. Each
 * lane has a tag for frames and one for payloads. The binding keeps the order of messages with one
 * tag between two ranks. Payloads are received in the order of their frames. So nothing needs a
 * number.
 *
 * If a frame has no payload, and its head would be that of the frame before, the head is left out.
 * Such a message has words alone and is shorter than a head. On one node some libraries then touch
 * one cache line less, which saves a tenth of a microsecond.
 *
 * Receives for frames are posted in advance, from any source, and tested in the order posted: one
 * test tells whether anything has come. A frame that has come waits in the queue of its source
 * until it is delivered. A limited number of frames and bytes of a source may be in flight. The
 * target counts what it has taken. It tells the source in the head of each frame that goes back or,
 * if none does, in a notice. Notices use the control tag and cost no credit.
 *
 * A message to or from a rank that joined later has a route after its head. It begins or ends at a
 * relay (relay.h). The relay has an endpoint for each such rank of its node, and the process has
 * one for its own rank.
 *
 * Threads: if there is a helper or a relay, everything here is under `lock`. The lock is never held
 * while a frame is delivered. */
#ifndef FY_NODES_PORT_STATE_H
#define FY_NODES_PORT_STATE_H

#include <stdatomic.h>

#include "base/mutex.h"
#include "base/pause.h"
#include "port/nodes/binding.h"
#include "port/nodes/node.h"
#include "port/port.h"
#include "port/shm/layout.h"
#include "port/waiting.h"

#define WORDS_BYTES (FY_FRAME_WORDS * sizeof(uint64_t))
#define EAGER_MAX (16u << 10)
/* A thread that looks for messages pauses between looks. Its pauses grow while nothing comes. */
#define PAUSE_MIN_NS 20000u
#define PAUSE_MAX_NS 1000000u

/* The limits of what is in flight from one rank to another on one lane: frames, bytes of frames,
 * and bytes of payloads that follow. One such payload is always allowed. */
#define FRAMES_MAX 256u
#define FRAME_BYTES_MAX (1u << 20)
#define FOLLOWING_BYTES_MAX (8u << 20)
#define UNTOLD_BYTES_MAX (FRAME_BYTES_MAX / 4)
/* Receives posted per lane. They are few, so that their memory stays in the cache, and because some
 * libraries search all of them for each message. */
#define POSTED_DATA 32u
#define POSTED_CONTROL 8u

enum { TAG_FRAME = 0x4600, TAG_PAYLOAD = 0x4700 }; /* plus the lane */

/* Bits of `flags`. */
#define WIRE_FOLLOWS 1u /* the payload is a message of its own */
#define WIRE_NOTICE 2u  /* no frame: only `taken` counts, and `aux`, which is a `notices` */
#define WIRE_ROUTED 4u  /* a route follows the head */
#define WIRE_WAITS 8u   /* with WIRE_NOTICE: it says what its source waits for, see deadlock.c */
#define WIRE_PIECES 16u /* with WIRE_FOLLOWS: the payload is several messages, see PIECES_MAX */

/* The messages of a notice about its source. */
typedef enum notices {
    NOTICES_NONE,
    NOTICES_BYE,     /* it has left; this is its last message on this lane */
    NOTICES_DEAD,    /* it has died; likewise */
    NOTICES_HERE,    /* it has come */
    NOTICES_ENDURES, /* it goes on when others die */
    NOTICES_MORTAL,  /* it no longer does */
    NOTICES_DONE,    /* nothing more comes from its node on this lane */
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
    uint32_t taken[FY_LANES]; /* how many frames of the target the source has taken so far */
} wire;

_Static_assert(sizeof(wire) == 32, "the head of a message");

#define WIRE_FLAGS_SHIFT 56

typedef struct route {
    uint32_t source, target; /* numbers in the job */
} route;

#define MESSAGE_MAX (sizeof(wire) + sizeof(route) + WORDS_BYTES + EAGER_MAX)

/* A payload that follows is one message, or pieces. Libraries send PIECE_BYTES without asking the
 * target first, which would cost a round trip. If there are many of them, the libraries' copies
 * cost more than that. So payloads above SHORT_BYTES_MAX that are copied have large pieces: one is
 * copied while another one is sent. */
#define PIECE_BYTES (32u << 10)
#define SHORT_BYTES_MAX (64u << 10)
#define LONG_PIECE_BYTES (512u << 10)
#define PIECES_MAX 64u

/* The most words of a frame without a head: fewer bytes than a head. */
#define BRIEF_WORDS_MAX (sizeof(wire) / sizeof(uint64_t) - 1)

/* A receive, and the message that has come for it. */
typedef struct slot {
    struct slot *next;
    fy_nodes_request request; /* of the message, later of its payload */
    bool done;                /* it has come, and is not in its source's queue yet */
    bool waiting;             /* its payload is in flight: */
    uint32_t pieces, piece;   /* in so many messages, of which so many have come */
    fy_port *heap;            /* whose block the payload is; NULL: it is malloc's */
    int source;               /* the process */
    size_t size_bytes;
    void *payload;              /* payload that followed the message; else NULL */
    wire head;                  /* the head of the message, or of the one before it: */
    uint8_t word_count;         /* but this many words, */
    const unsigned char *words; /* here, and */
    size_t data_bytes;          /* this much payload, after the words unless it followed */
    _Alignas(16) unsigned char message[MESSAGE_MAX];
} slot;

/* The requests of the pieces of a slot's payload. Its message is a head, a route and words. */
static inline fy_nodes_request *slot_requests(slot *s)
{
    enum { BEHIND = (sizeof(wire) + sizeof(route) + WORDS_BYTES + 15) / 16 * 16 };
    _Static_assert(BEHIND + PIECES_MAX * sizeof(fy_nodes_request) <= MESSAGE_MAX,
                   "the requests fit behind the message");
    return (fy_nodes_request *)(void *)(s->message + BEHIND);
}

/* A ring of receives: the oldest at `first`, and before it `spent` empty places. They are filled
 * again after the messages were delivered, so that an answer does not wait for that. */
typedef struct posted {
    slot *slots[POSTED_DATA];
    uint32_t count, first, spent;
    bool fruitful; /* the last poll's first look found a message */
    bool streams;  /* the poll before did too, or the look after a message */
} posted;

/* The frames of one source on one lane that have come. */
typedef struct inlet {
    slot *head, *tail;
    struct inlet *next; /* in the list of inlets with frames */
    struct endpoint *to;
    bool listed; /* in that list, or being delivered from */
    uint32_t taken, told;
    size_t untold_bytes;
    int source;
    bool headed; /* a frame with a head has come: */
    wire last;   /* the last head, which frames without one share */
} inlet;

typedef struct inlets {
    inlet *head, *tail;
} inlets;

/* Frames in flight to one target on one lane. */
typedef struct outlet {
    uint64_t *costs; /* costs of the frames, a ring; see cost_of */
    uint32_t sent, taken;
    uint64_t frame_bytes, following_bytes;
    wire last; /* the head of the last frame that had one */
} outlet;

typedef struct peer {
    inlet in[FY_LANES];
    outlet out[FY_LANES];
    bool lent; /* data were lent to it since its last frame */
} peer;

/* The two ends of messages on this process: its own rank, or one for which it relays. */
typedef struct endpoint {
    int number;
    peer **peers; /* by number */
    inlets inlets[FY_LANES];
    fy_port *heap; /* for blocks */
} endpoint;

/* A message that the binding still sends. */
typedef struct departure {
    struct departure *next;
    fy_nodes_request request;
    uint32_t pieces, piece; /* of a payload: its messages, and how many are sent. The requests are
                             * in `message` */
    int rank;               /* the target's process */
    void *payload;          /* freed with the departure; else NULL */
    atomic_bool *lent;      /* set to false at the end instead; else NULL */
    fy_port *heap;          /* whose block the payload is; NULL: it is malloc's */
    uint8_t size_class;
    _Alignas(16) unsigned char message[];
} departure;

/* Departures have one of two sizes, and are kept for reuse by size. */
enum { SMALL, LARGE, CLASSES };
#define SMALL_BYTES 1024u

/* The waits that ranks have told each other (deadlock.c). */
typedef struct deadlocks {
    uint32_t round, told; /* the newest round, and the last round in which this rank told */
    bool logs;            /* a deadlock found in this round is logged */
    bool found, notices;  /* found: a deadlock; notices: some came since the last search */
    uint64_t begun_ns;
    fy_waiting *all;            /* by rank, in this round; NULL before the first */
    char deadlock[512];         /* the deadlock that this rank is in */
    char text[FY_ANSWER_BYTES]; /* this rank's answer */
} deadlocks;

/* The bits of nodes_port.far. FAR_BYES: on how many lanes the rank counts as gone. Three bits say
 * whether it died, whether it has come, and whether a message between it and this rank was lost.
 * FAR_HEARD: on how many lanes its goodbye has arrived.
 *
 * Ranks that the job began with have come. A lost rank counts as gone on all lanes immediately. Its
 * goodbyes arrive later. */
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
    int world;       /* numbers of processes that the binding connects are below this */
    int *place;      /* of each rank on this node; -1: elsewhere */
    endpoint self;
    struct fy_nodes_relay *relay; /* NULL: this process is no relay */
    _Atomic uint8_t *far;         /* by number, of ranks elsewhere: FAR_... */
    uint32_t farewells;           /* how many of them have said goodbye on all lanes */
    uint32_t done;                /* how many relays have said that they are done */
    posted posted[FY_LANES];
    slot *free_slots;
    uint32_t free_slot_count;
    departure *leaving, *leaving_tail;
    departure *free_departures[CLASSES];
    uint32_t free_departure_count[CLASSES];
    fy_mutex lock;
    bool helper, locks;     /* a helper runs; a helper or a relay runs */
    bool helper_allowed;    /* the helper may call the binding */
    bool alone;             /* the program does not call the network itself */
    fy_lane pumped;         /* the lane looked at last; FY_LANES: a look was left out since */
    uint32_t skipped;       /* looks at the control lane left out since the last one */
    bool looks_dear;        /* a look makes a system call: one tests both lanes */
    bool leaves_out;        /* the next look, since a message waits on the other lane */
    bool cut_off;           /* from other nodes: see fy_nodes_cut_off */
    bool has_lost;          /* a rank elsewhere is lost */
    uint64_t torn_ns;       /* until when linger waits for goodbyes that may be lost; 0: not set */
    bool closed;            /* the shm port is closed; messages are received and dropped */
    _Atomic uint32_t serve; /* fy_thread */
    uint64_t pause_ns;      /* how long the application thread sleeps */
    _Atomic uint64_t quantum_ns; /* of the helper that serves the control lane */
    _Atomic bool came;           /* a frame has come since that wait looked last */
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

/* Everything below is called with the lock held, unless it says otherwise. */

/* port.c, for fy_nodes_peer. */
peer *fy_nodes_peer_make(endpoint *e, int number);

/* The peer `number` of an endpoint, made at its first use; NULL without memory. */
static inline peer *fy_nodes_peer(endpoint *e, int number)
{
    return e->peers[number] != NULL ? e->peers[number] : fy_nodes_peer_make(e, number);
}

/* The bytes of the messages that a payload goes in, if it goes in pieces, except of the last. */
static inline size_t fy_nodes_piece_size(size_t size_bytes)
{
    return size_bytes <= SHORT_BYTES_MAX ? PIECE_BYTES : LONG_PIECE_BYTES;
}

static inline uint32_t fy_nodes_pieces(size_t size_bytes)
{
    size_t piece_bytes = fy_nodes_piece_size(size_bytes);
    return (uint32_t)((size_bytes + piece_bytes - 1) / piece_bytes);
}

/* The bytes of one of these messages. */
static inline size_t fy_nodes_piece_bytes(size_t size_bytes, uint32_t piece)
{
    size_t piece_bytes = fy_nodes_piece_size(size_bytes), left = size_bytes - piece * piece_bytes;
    return left < piece_bytes ? left : piece_bytes;
}

/* The process that receives messages for a rank. */
static inline int fy_nodes_home(const nodes_port *p, int number)
{
    return number < p->world ? number : p->node->homes[number];
}

/* Any thread, without the lock. */
static inline fy_peer_state fy_nodes_far_state(const nodes_port *p, int number)
{
    /* acquire: pairs with take_farewell in notices.c: all that the rank sent before is here */
    uint8_t far = atomic_load_explicit(&p->far[number], memory_order_acquire);
    if ((far & FAR_BYES) == FY_LANES)
        return (far & FAR_DEAD) != 0 ? FY_PEER_DEAD : FY_PEER_LEFT;
    return (far & FAR_HERE) != 0 ? FY_PEER_ALIVE : FY_PEER_ABSENT;
}

/* Whether messages from a rank are dropped, because an earlier one was lost. [any thread] */
static inline bool fy_nodes_is_lost(const nodes_port *p, int number)
{
    /* relaxed: the lock is held, or no frame depends on it */
    return (atomic_load_explicit(&p->far[number], memory_order_relaxed) & FAR_LOST) != 0;
}

/* How a sender passes its data: copied; its block given; or lent, left in place until told
 * otherwise. */
typedef enum terms { COPIED, GIVEN, LENT } terms;

/* send.c. fy_nodes_send_remote takes the lock itself. `lent`: with LENT, set to false at the end;
 * else NULL. */
int fy_nodes_send_remote(nodes_port *p, endpoint *from, fy_lane lane, int rank,
                         const fy_frame *frame, terms how, atomic_bool *lent);
/* Sends a notice; or one that says what stands in the head and words of `frame`, with `flags`.
 * False: there is no memory for it; credit is told of by the next one or frame. */
bool fy_nodes_notice(nodes_port *p, endpoint *from, fy_lane lane, int rank, notices what);
bool fy_nodes_notice_with(nodes_port *p, endpoint *from, fy_lane lane, int rank, uint32_t flags,
                          const fy_frame *frame);
/* Looks at a few messages that the binding may have sent. Returns whether any is left. */
bool fy_nodes_reap(nodes_port *p);
/* Counts the frames from `from` that `rank` has taken. */
void fy_nodes_credit(endpoint *from, int rank, const uint32_t taken[FY_LANES]);
void fy_nodes_departures_free(nodes_port *p);

/* receive.c */
/* 0 or FERRY_ENOMEM or FERRY_ELAUNCH. */
int fy_nodes_post_all(nodes_port *p);
/* Puts the messages that have come into their queues. */
void fy_nodes_pump(nodes_port *p, fy_lane lane);
/* Whether fy_nodes_pump has taken in a frame that can be delivered. */
bool fy_nodes_ready(nodes_port *p, fy_lane lane);
/* Delivers frames that were taken in for an endpoint. Gives the lock up while it delivers. */
int fy_nodes_deliver(nodes_port *p, endpoint *to, fy_lane lane, int budget, fy_deliver *deliver,
                     void *context);
/* Without the lock. */
int fy_nodes_poll_remote(nodes_port *p, fy_lane lane, int budget, fy_deliver *deliver,
                         void *context);
/* Drops all whole messages, with their blocks. */
void fy_nodes_drop(nodes_port *p, endpoint *to);
/* Whether everything that `rank` has ever sent was delivered or dropped. */
bool fy_nodes_is_silent(const nodes_port *p, int rank);
/* Whether a frame of `rank` waits to be delivered. */
bool fy_nodes_holds(const endpoint *to, int rank);
/* Ends the receives of payloads that have not come yet. */
void fy_nodes_undelivered_free(nodes_port *p, endpoint *to);

/* look.c */
/* Finds out what a look costs. If it makes a system call, one look tests both lanes. */
void fy_nodes_price_look(nodes_port *p);
/* Whether the message of `s`, the oldest receive of a lane, has come. Its source is -1 if the test
 * has failed. */
bool fy_nodes_has_come(nodes_port *p, fy_lane lane, slot *s);
/* Whether a look at `lane` may be left out. Each look makes progress on both lanes. So if a rank
 * polls both in turn, every few rounds are enough for the control lane, or none, if the last look
 * has tested both. */
bool fy_nodes_may_skip(nodes_port *p, fy_lane lane);

/* payload.c, of payloads that follow their frame. */
/* Allocates memory for a payload: a block if possible, since its receiver may keep it. */
bool fy_nodes_payload_room(nodes_port *p, const endpoint *to, slot *s, size_t size_bytes);
/* Frees that memory, unless its receiver has kept it. */
void fy_nodes_payload_put(nodes_port *p, slot *s, bool kept);
/* Starts to receive a payload, in one message or in pieces. If the binding fails, this rank is cut
 * off: all frames are dropped. */
void fy_nodes_payload_receive(nodes_port *p, fy_lane lane, slot *s, bool in_pieces);
/* Whether the payload that `s` waits for has come, or failed. */
bool fy_nodes_payload_came(nodes_port *p, slot *s);
/* Ends the receives of a payload that has not come. */
void fy_nodes_payload_cancel(nodes_port *p, slot *s);

/* notices.c. fy_nodes_tell takes the lock itself, and waits for memory as long as it takes. */
void fy_nodes_tell(nodes_port *p, endpoint *from, fy_lane lane, int process, notices what);
/* Wakes this rank: it has notices of other ranks, or about itself. */
void fy_nodes_rouse_self(nodes_port *p);
/* A message of `source` has come: if it joined later, this shows that it has come. */
void fy_nodes_take_arrival(nodes_port *p, int source);
void fy_nodes_take_notices(nodes_port *p, int source, uint32_t what);
/* Handles the loss of a message from or to a process of another node, for the reason `what`; -1: it
 * is not known which process. The order of messages is broken then. So that all ranks agree, this
 * rank is cut off from all other nodes: they count as dead here, and it counts as dead there.
 * Operations between them fail with FERRY_EPEER, and collectives with them. Logs it once. */
void fy_nodes_cut_off(nodes_port *p, int process, const char *what);

/* deadlock.c. fy_nodes_heard: a notice with WIRE_WAITS has come. The others are entries of the
 * table, called without the lock. */
void fy_nodes_heard(nodes_port *p, int source, const wire *head, const unsigned char *words);
bool fy_nodes_asked(fy_port *port);
void fy_nodes_answer(fy_port *port, const char *text, size_t size_bytes);
bool fy_nodes_ask(fy_port *port, bool print);

/* wait.c. Without the lock. */
void fy_nodes_wait(fy_port *port, fy_thread thread, uint64_t deadline_ns);

extern const fy_port_ops fy_nodes_ops; /* with the name of no binding */

/* create.c. Waits until the binding has sent everything, for `limit_ns` at most: the ranks that
 * should receive it may take nothing any more. */
#define FLUSH_NS UINT64_C(1000000000)
void fy_nodes_flush(nodes_port *p, uint64_t limit_ns);

/* port.c */
/* Makes the port; takes nothing. All ranks have joined their segments. */
int fy_nodes_port_create(const fy_nodes_binding *binding, fy_nodes_net *net, const fy_node *node,
                         fy_port *near, bool helper_allowed, bool alone, nodes_port **out);
/* Initialises `e`, which is zero except for number and heap. FERRY_ENOMEM. */
int fy_nodes_endpoint_init(nodes_port *p, endpoint *e);
void fy_nodes_endpoint_fini(nodes_port *p, endpoint *e);
/* After the port was closed: receives what still comes, so that no sender waits. Returns whether
 * ranks of other nodes have yet to say goodbye. */
bool fy_nodes_port_linger(nodes_port *p);
/* Frees the port, after fy_nodes_port_linger. Returns false, and frees nothing, if a message
 * between this rank and another one is lost: one of the two may wait for its end forever when it
 * leaves. Then the job must be aborted. */
bool fy_nodes_port_destroy(nodes_port *p);

#endif
