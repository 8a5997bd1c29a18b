/* State: the two kinds of ranks, and the tokens and offers between them.
 *
 * Percolation is a scheduler (ferry/scheduler.h) that behaves differently on data servers and on
 * engines. The parts are those of the paper:
 *
 * - initiator.c, server: an object with tasks gets a token. Tokens wait in the order of their
 *   sequence numbers, and the store reads their objects in this order.
 * - assembler.c, server: offers the oldest free token to an engine that has asked, and moves the
 *   object when the engine takes it.
 * - engine.c, engine: asks servers, takes what it has room for, and runs tasks.
 * - terminator.c, engine: sends objects without tasks back to their servers.
 *
 * The words between ranks, about one object except in ASK:
 *
 *     engine                        server
 *       ASK                 ->        remembers the engine
 *                           <-      OFFER object, bytes: the token is kept for this engine
 *       TAKE object         ->        the object migrates
 *       or DECLINE object   ->        the token is free again; the engine asks when it has room
 *                           <-      GONE object, instead of the object: it does not come
 *
 * A rank that joins and starts percolation is an engine. Servers learn of it by its first ASK, with
 * its number of servers. If that is not theirs, they log it and give the rank no objects.
 *
 * An engine has one ASK or OFFER with each server at a time. It counts an object that it has
 * taken until the object arrives, GONE comes, or the server dies. So it never exceeds its budget,
 * except with a single object.
 *
 * Why it always ends: a free token and an engine that has asked never wait for each other (offers
 * are made after each change of either). An engine that has declined asks again after an object has
 * left it, and an engine without objects takes any object. An object goes back after a number of
 * tasks, so that others get their turn. Without an engine a server runs tasks itself, and without a
 * server objects stay on engines. An object that cannot be sent back is tried again a few times
 * (terminator.c).
 *
 * Threads: all under the balancing lock, as in each scheduler. */
#ifndef FY_PERCOLATION_H
#define FY_PERCOLATION_H

#include <ferry/percolation.h>

#include "balance/balance.h"

enum { FY_WINDOW_MAX = 4096, FY_STAY_TASKS_MAX = 1000000 };

/* The first word of a message; other schedulers' messages have other words there. */
typedef enum fy_percolation_word {
    FY_PERCOLATION_ASK = 0x70657263,
    FY_PERCOLATION_OFFER,
    FY_PERCOLATION_TAKE,
    FY_PERCOLATION_DECLINE,
    FY_PERCOLATION_GONE,
} fy_percolation_word;

/* Items in their order, linked by `prev` and `next`. `queued` says that an item is in a line. */
typedef struct fy_line {
    ferry_schedulable *first, *last;
    uint32_t count;
} fy_line;

/* An engine, as a server knows it. */
typedef struct fy_known_engine {
    bool present; /* it accepts objects, and was there from the start or has asked */
    bool asked;
    uint64_t object;         /* whose token it was offered; 0: none */
    ferry_schedulable *item; /* the token; NULL: none, or the store is packing the object */
} fy_known_engine;

/* A server, as an engine knows it: whether it was asked. */
typedef enum fy_asking {
    FY_ASKING_NONE,
    FY_ASKING_SENT,
    FY_ASKING_DECLINED, /* asks again after an object has left */
} fy_asking;

/* An object that an engine has taken and that has not arrived. */
typedef struct fy_expected {
    uint64_t object, bytes;
    int server;
} fy_expected;

/* Marks of items (ferry_schedulable) on a server. A mark above 0 is the sequence number of a token.
 * One of FY_MARK_GIVEN - N or below says that the object was sent to rank N; on engines too. */
#define FY_MARK_NONE 0.0
#define FY_MARK_KEPT (-1.0) /* server: it cannot be sent, so its tasks run here */
#define FY_MARK_GIVEN (-2.0)

typedef struct fy_percolation {
    int rank, ranks, servers;
    int window, tasks; /* limits of the options */
    uint64_t budget_bytes;
    ferry_schedulable *running;
    bool told; /* a log line says that no rank of the other kind is left */
    ferry_percolation_stats stats;
    /* Server. */
    fy_line tokens;          /* offered ones first, then free ones by their numbers */
    ferry_schedulable *free; /* the first free token; NULL: none */
    fy_line own;             /* kept objects with tasks */
    uint64_t sequence;
    fy_known_engine *known_engines; /* by rank */
    int next_engine;                /* where the search for one begins, so that each has its turn */
    int engines;                    /* how many accept objects */
    /* Engine. */
    fy_line queue;      /* objects with tasks */
    fy_line leaving;    /* objects that go back at the next look */
    fy_line stuck;      /* objects without tasks that cannot go back now */
    bool awaits;        /* some of them are tried again: a unit of work */
    uint64_t retry_ns;  /* when; 0: at the next look */
    uint64_t renewed;   /* the ferry_quiesce in which all had their tries again */
    fy_asking *askings; /* by server */
    fy_expected *expected;
    int expected_count;
} fy_percolation;

static inline bool fy_percolation_serves(const fy_percolation *p)
{
    return p->rank < p->servers;
}

/* The rank to which an item with this mark was sent; -1: it was not. */
static inline int fy_mark_rank(double mark)
{
    return mark <= FY_MARK_GIVEN ? (int)(FY_MARK_GIVEN - mark) : -1;
}

/* Line, line.c. */

/* Inserts before `before`, which is in the line; NULL: at the end. */
void fy_line_insert(fy_line *line, ferry_schedulable *item, ferry_schedulable *before);
void fy_line_remove(fy_line *line, ferry_schedulable *item);

/* Removes the first; NULL: there is none. */
ferry_schedulable *fy_line_pop(fy_line *line);

void fy_percolation_tell(ferry_scheduling *s, int rank, fy_percolation_word what, uint64_t object,
                         uint64_t bytes);

/* The packed size of an object as the store knows it; 0: no store has it. */
uint64_t fy_item_bytes(const ferry_schedulable *item);

/* Initiator, initiator.c: a server's objects. */

/* An object rests here: it was created, has come back, or could not be sent. */
void fy_initiator_rest(ferry_scheduling *s, fy_percolation *p, ferry_schedulable *item);

/* A task has come for an object that rests here. */
void fy_initiator_notify(ferry_scheduling *s, fy_percolation *p, ferry_schedulable *item);

void fy_initiator_remove(fy_percolation *p, ferry_schedulable *item);

/* The task that this server runs itself; NULL: none. */
ferry_schedulable *fy_initiator_next(ferry_scheduling *s, fy_percolation *p);

/* Assembler, assembler.c: a server's offers. */

/* Offers free tokens to engines that have asked. */
void fy_assembler_offer(ferry_scheduling *s, fy_percolation *p);

void fy_assembler_message(ferry_scheduling *s, fy_percolation *p, int source,
                          const uint64_t words[FERRY_SCHEDULER_WORDS]);

/* The engine to which the object of `item` is offered; NULL: none. */
fy_known_engine *fy_assembler_offered_to(const fy_percolation *p, const ferry_schedulable *item);

void fy_assembler_members(ferry_scheduling *s, fy_percolation *p);

/* Engine, engine.c. */

void fy_engine_rest(ferry_scheduling *s, fy_percolation *p, ferry_schedulable *item);
void fy_engine_notify(fy_percolation *p, ferry_schedulable *item);
void fy_engine_remove(fy_percolation *p, ferry_schedulable *item);
ferry_schedulable *fy_engine_next(ferry_scheduling *s, fy_percolation *p);
void fy_engine_message(ferry_scheduling *s, fy_percolation *p, int source,
                       const uint64_t words[FERRY_SCHEDULER_WORDS]);
void fy_engine_members(ferry_scheduling *s, fy_percolation *p);

/* Terminator, terminator.c. */

/* The server to which an object goes back; -1: none is left. */
int fy_terminator_home(const ferry_scheduling *s, const fy_percolation *p, ferry_object object);

/* An object could not be sent back. It is tried again later. [application thread] */
void fy_terminator_failed(ferry_scheduling *s, fy_percolation *p, ferry_schedulable *item);

/* Whether an object that could not be sent back is tried again. */
bool fy_terminator_hopes(const ferry_scheduling *s, const fy_percolation *p);

/* Sends back the objects in `leaving`, and those in `stuck` whose time has come. Returns whether
 * one has left. */
bool fy_terminator_run(ferry_scheduling *s, fy_percolation *p);

#endif
