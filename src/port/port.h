/* Port: moves frames between ranks, tells the time, sleeps. The only layer to port to a new
 * network.
 *
 * A port is one table of functions per role over its own state: transport, host, heap, members and
 * diagnosis. It has mechanism only: it does not know what a frame means, and its client (core) does
 * not know which port it uses. A missing optional operation is NULL and `query` says so; core
 * emulates it over send.
 *
 * Threads: a rank has an application thread and at most one helper thread. Operations that take
 * `thread` may be called by both at once, each with its own name; the port keeps a sending channel
 * per (thread, lane, peer), so no send needs a lock. `poll` of one lane is called by one thread at
 * a time (its client sees to that). Everything else belongs to the application thread.
 *
 * Order: frames from one thread of one rank to one rank on one lane are delivered once, in the
 * order sent. Nothing is promised between threads, lanes or sources. The control lane is never
 * queued behind the data lane. */
#ifndef FY_PORT_H
#define FY_PORT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ferry/error.h>

/* The version of the struct of tables, and of each table. */
#define FY_PORT_VERSION 13
#define FY_TRANSPORT_VERSION 2
#define FY_HOST_VERSION 2
#define FY_HEAP_VERSION 1
#define FY_MEMBERS_VERSION 3
#define FY_DIAGNOSIS_VERSION 1
#define FY_FRAME_WORDS 4
#define FY_KEEP_ALL (-2) /* for alloc and keep_for: until free_gone, when its rank has gone */
#define FY_BOARD_BYTES (404u * 1024) /* of a rank; its clients say what is where */
#define FY_ANSWER_BYTES 4032u        /* of what a rank tells of itself */

typedef enum fy_lane { FY_DATA, FY_CONTROL, FY_LANES } fy_lane;
typedef enum fy_thread { FY_APP, FY_HELPER, FY_THREADS } fy_thread;

/* What travels. Every field is delivered as it was sent; `words` beyond `word_count` are not.
 * With no payload it is one cache line on the way. */
typedef struct fy_frame {
    uint8_t kind;       /* core's dispatch: fy_kind */
    uint8_t word_count; /* 0 to FY_FRAME_WORDS */
    uint16_t handler;
    uint32_t op; /* the sender's operation to acknowledge, 0 for none */
    int32_t tag;
    uint32_t aux; /* belongs to the kind */
    uint64_t words[FY_FRAME_WORDS];
    const void *data; /* delivered 8-byte aligned */
    size_t size_bytes;
    bool block; /* set by the port at delivery: `data` is a block that `deliver` may keep */
} fy_frame;

/* Copies the words that a frame has, one by one: they were just written so, and a copy of several
 * at once would have to wait until those stores are in the cache. */
static inline void fy_words_copy(uint64_t *to, const uint64_t *from, unsigned count)
{
    if (count == 0)
        return;
    to[0] = from[0];
    for (unsigned i = 1; i < count; i++)
        to[i] = from[i];
}

/* Whether `deliver` gets this in place of a frame that made no sense, as shared memory was
 * overwritten: that one is lost, perhaps more of its source. No other frame is a block without
 * data. */
static inline bool fy_frame_is_lost(const fy_frame *frame)
{
    return frame->block && frame->data == NULL;
}

/* The answer of `deliver` for a frame. */
typedef enum fy_verdict {
    FY_TAKEN, /* done with it: its room is free again */
    FY_LEAVE, /* not now: leave it and what follows from this source where it is */
    FY_KEEP,  /* as FY_TAKEN, for a frame with `block`: the callee releases `data` itself, later */
} fy_verdict;

/* Called by `poll` for each frame. The frame and its data are borrowed until it returns. May call
 * `send`, not `poll`. The fields were copied out of shared memory before validation; the data may
 * not be trusted. */
typedef fy_verdict fy_deliver(void *context, int source, const fy_frame *frame);

/* The properties of a port, for its client. */
typedef struct fy_port_info {
    int rank, ranks;     /* numbers are below `ranks`, also those of ranks that may still come */
    int starting;        /* the job began with the ranks below this number; 0: with all */
    bool shares_memory;  /* alloc, release and owner work, and peers see the memory at the same
                            address */
    bool wakes_helper;   /* a control frame wakes the helper's wait at once; else it returns every
                            quantum */
    bool crowded;        /* ranks share processors now: who has nothing to do leaves his soon */
    bool leaves;         /* a rank may close its port while others go on */
    bool virtual_time;   /* advance moves the clock: ferry_compute takes no real time */
    size_t inline_bytes; /* payloads up to this size travel without an allocation */
    uintptr_t
        shared_start;    /* memory that may be read without a fault, whatever is there, and that */
    size_t shared_bytes; /* has all that alloc gives; 0 bytes when not shared */
} fy_port_info;

/* State of a peer. One that the job did not begin with is absent until it opens the port. */
typedef enum fy_peer_state {
    FY_PEER_ALIVE,
    FY_PEER_LEFT,
    FY_PEER_DEAD,
    FY_PEER_ABSENT,
} fy_peer_state;

/* The activity of a rank, for the line that the launcher prints when it dies and for reports. */
typedef enum fy_doing {
    FY_DOING_MAIN, /* in the program, outside Ferry */
    FY_DOING_HANDLER,
    FY_DOING_TASK,
    FY_DOING_IDLE,
    FY_DOING_BARRIER,
    FY_DOING_COLLECTIVE,
    FY_DOING_QUIESCE,
    FY_DOING_CLOSE,
} fy_doing;

typedef struct fy_port_ops fy_port_ops;

/* First member of every port's state. */
typedef struct fy_port {
    const fy_port_ops *ops;
} fy_port;

/* Transport: what a new network must write. No operation is NULL but `send_lent` and `news`. */
typedef struct fy_transport_ops {
    uint32_t version; /* FY_TRANSPORT_VERSION */

    /* Leaves the job in order. The state is freed. Frames sent before are delivered. */
    void (*close)(fy_port *port);
    void (*query)(const fy_port *port, fy_port_info *info);

    /* Sends a copy of `frame` to `rank`, which may be the caller. The data may be reused on return.
     * FERRY_EAGAIN: no room, nothing was sent. FERRY_EPEER: dead or gone. FERRY_ENOMEM: no memory
     * for the payload. */
    int (*send)(fy_port *port, fy_thread thread, fy_lane lane, int rank, const fy_frame *frame);

    /* As send, but large data are not copied: `*lent` is true on return while the port still reads
     * them, and is made false (release) by a later send or poll. NULL when send copies to where the
     * target reads, so that nothing is to be saved. */
    int (*send_lent)(fy_port *port, fy_thread thread, fy_lane lane, int rank, const fy_frame *frame,
                     atomic_bool *lent);

    /* Delivers at most `budget` frames that have arrived on `lane`; returns how many were taken.
     * Its cost does not depend on the number of silent peers. */
    int (*poll)(fy_port *port, fy_lane lane, int budget, fy_deliver *deliver, void *context);

    /* Whether a frame waits on `lane`; exact, at a cost that may grow with the number of peers. */
    bool (*pending)(fy_port *port, fy_lane lane);

    /* Sleeps until a frame arrives, `wake` is called for the thread, a peer's state changes, or
     * `now` reaches `deadline_ns`. Frames of any lane wake the application thread. Frames of the
     * control lane wake the helper while `serve` names it. May return early for no reason. Spins,
     * yields or sleeps as measurement says is best. */
    void (*wait)(fy_port *port, fy_thread thread, uint64_t deadline_ns);

    /* [either thread] A wake before the wait makes that wait return at once. */
    void (*wake)(fy_port *port, fy_thread thread);

    /* Says which thread serves the control lane from now on: the one that arriving control frames
     * wake. Frames that came just before may not wake it: the caller polls once after the call.
     * [application thread] */
    void (*serve)(fy_port *port, fy_thread thread);

    /* A word for the client to look at in place of a poll that finds nothing. It is not 0 while a
     * frame waits on `lane` that `send` has returned for; it may be so although none waits. A poll
     * that leaves nothing makes it 0, soon at the latest. Lends it until close; read relaxed. NULL,
     * as the operation or from it: only a poll tells. */
    const _Atomic uint64_t *(*news)(fy_port *port, fy_lane lane);
} fy_transport_ops;

/* Host: time and threads of the process in which the rank runs. The simulator has its own. */
typedef struct fy_host_ops {
    uint32_t version; /* FY_HOST_VERSION */

    /* Nanoseconds: the job's clock; processor time of the calling thread. */
    uint64_t (*now)(fy_port *port);
    uint64_t (*cpu)(fy_port *port);

    /* Lets `ns` of work pass on this rank. */
    void (*advance)(fy_port *port, uint64_t ns);

    /* Starts the helper thread; `join` waits for its return. FERRY_ENOTSUP when the port cannot. */
    int (*spawn)(fy_port *port, void (*entry)(void *arg), void *arg);
    void (*join)(fy_port *port);

    /* Sets how often the helper looks for control frames, unless `ns` is 0. Returns how often it
     * did. 0: a control frame wakes it, and nothing is set. NULL: likewise, always. [either thread]
     */
    uint64_t (*quantum)(fy_port *port, uint64_t ns);
} fy_host_ops;

/* Heap: memory that the ranks of a node share. All operations are NULL where ranks share none. */
typedef struct fy_heap_ops {
    uint32_t version; /* FY_HEAP_VERSION */

    /* As send, for data in memory from `alloc`: hands the block over, without a copy; the receiving
     * port releases it after delivery. NULL when memory is not shared. */
    int (*send_block)(fy_port *port, fy_thread thread, fy_lane lane, int rank,
                      const fy_frame *frame);

    /* Memory that every rank of the node sees at the same address. `alloc` gives a block that is
     * kept for `rank` (keep_for). `release` takes blocks of any rank's. All may be called by either
     * thread. `owner` finds the allocated block that contains [address, address + size): its rank,
     * or -1. NULL when no ranks share memory. A port over several nodes has them, for the ranks of
     * this node, although `shares_memory` is false. */
    void *(*alloc)(fy_port *port, size_t size_bytes, int rank);
    int (*release)(fy_port *port, void *address);
    int (*owner)(fy_port *port, fy_thread thread, const void *address, size_t size_bytes);

    /* Says for which rank of the node a block is kept: it is released when that one has gone and
     * all of the node have seen it (`bury`). -1: for none; FY_KEEP_ALL: for whoever uses it. Blocks
     * that `send` and `send_block` make are kept for the target. FERRY_EINVAL: no block
     * starts there. NULL: nothing is released so. */
    int (*keep_for)(fy_port *port, void *address, int rank);

    /* Releases what `rank`, which has gone, had allocated and is kept for FY_KEEP_ALL. NULL where
     * keep_for is. */
    void (*free_gone)(fy_port *port, int rank);

    /* FY_BOARD_BYTES that belong to `rank` and that every rank of its node sees at the same address
     * from the start, zero until somebody writes; they stay when the rank has gone. NULL: the rank
     * is on another node. The operation is NULL when memory is not shared. */
    void *(*board)(fy_port *port, int rank);

    /* As wake, for the application thread of a rank that shares memory. NULL when not shared. */
    void (*rouse)(fy_port *port, int rank);
} fy_heap_ops;

/* Members: which ranks are there, and how ranks come and go. Only `peer` has to be there. */
typedef struct fy_member_ops {
    uint32_t version; /* FY_MEMBERS_VERSION */

    fy_peer_state (*peer)(fy_port *port, int rank);

    /* Whether all that `rank`, which has left, has sent was taken. NULL: the port cannot tell, and
     * what comes late of such a rank is lost. [application thread, with no poll in flight] */
    bool (*silent)(fy_port *port, int rank);

    /* The client has seen that `rank` is gone. Gives back the memory for the traffic with it,
     * unless some of its frames were not taken yet. Gives back blocks that were kept for it too,
     * and free blocks that it had allocated. NULL: nothing to do. [application thread, with no poll
     * in flight] */
    void (*bury)(fy_port *port, int rank);

    /* A number that changes whenever a peer's state does; read relaxed. Lends until close. NULL
     * when there is none. */
    const _Atomic uint32_t *(*changes)(fy_port *port);

    /* Says whether this rank goes on when others die. The job does not end for a death while all
     * ranks that live say so. NULL: no death ends the job. */
    void (*endure)(fy_port *port, bool on);

    /* Has `count` more ranks started, which run `argv`, or what this rank runs when it is NULL:
     * `*first` is the number of the first, the others' follow. Returns before they run. One that
     * cannot be started goes from absent to dead. NULL: the port cannot. FERRY_ENOTSUP: this job
     * cannot. FERRY_ENOMEM: no numbers are left. With a reason by fy_error_set.
     * [application thread] */
    int (*spawn_ranks)(fy_port *port, int count, char *const argv[], int *first);

    /* How `rank`, which has gone, has ended, as a status of wait(2); -1: that is not known. NULL:
     * nothing is known of anybody. */
    int (*outcome)(fy_port *port, int rank);

    /* Ends the whole job at once with exit status `status`; does not return. NULL: the end of the
     * process does as much. */
    void (*abort)(fy_port *port, int status);

    /* All ranks of the job have come to its end: none waits for word that this one has closed the
     * port, unless one has died. `close` may then change this rank's state and tell nobody: they
     * see it when they look. It tells them if a rank has died. NULL: it tells always. */
    void (*end_quietly)(fy_port *port);

    /* If this rank joined the job by itself, the others are told that it has left, as by `close`,
     * which alone may follow. Whether it did. NULL: no rank joins by itself. [application thread]
     */
    bool (*withdraw)(fy_port *port);
} fy_member_ops;

/* Diagnosis: what a rank tells of itself. Only `doing` and `name_handler` have to be there. */
typedef struct fy_diagnosis_ops {
    uint32_t version; /* FY_DIAGNOSIS_VERSION */

    /* Notes what the rank is doing, since when if that is known (else 0), and the name of a
     * handler, where others can read it, the launcher after a death. Nearly free. */
    void (*doing)(fy_port *port, fy_doing what, uint16_t handler, uint64_t since_ns);
    void (*name_handler)(fy_port *port, uint16_t handler, const char *name);

    /* Whether somebody wants to know what this rank does and was not told; `changes` changes and
     * both threads' waits return when it begins. [either thread, one at a time] */
    bool (*asked)(fy_port *port);

    /* Tells it: lines of text, at most FY_ANSWER_BYTES. */
    void (*answer)(fy_port *port, const char *text, size_t size_bytes);

    /* Asks all ranks; with `print`, waits a moment for their answers instead and writes them to
     * standard error. False: it reaches some of them only, or NULL: none. Then they print what the
     * client asks them by frames, and the port logs what deadlocks there are. `asked` and
     * `answer` are NULL where nobody asks. [application thread] */
    bool (*ask)(fy_port *port, bool print);

    /* Writes what this rank does, such as ", in a barrier", for a line about its crash. In a signal
     * handler. NULL: there is nothing to say. */
    void (*describe)(const fy_port *port, char *out, size_t size);
} fy_diagnosis_ops;

/* A port: its tables by role. fy_port_check compares the version of each with its client's. */
struct fy_port_ops {
    uint32_t version; /* FY_PORT_VERSION */
    const char *name;
    fy_transport_ops transport;
    fy_host_ops host;
    fy_heap_ops heap;
    fy_member_ops members;
    fy_diagnosis_ops diagnosis;
};

/* How `advance` treats work that is only stood for. */
typedef enum fy_compute { FY_COMPUTE_NONE, FY_COMPUTE_SLEEP, FY_COMPUTE_SPIN } fy_compute;

/* The arguments by which core starts a port. Zero and NULL mean the default of the port. */
typedef struct fy_port_settings {
    int ranks;                /* as FERRY_RANKS says; a port with `detect` reads it itself */
    size_t heap_bytes;        /* per rank, of alloc */
    uint32_t ring_slots;      /* per (source, target, lane, thread) */
    uint32_t ring_bytes;      /* likewise */
    fy_compute compute;       /* where the port's time is not real, it has no meaning */
    const void *communicator; /* of the program, as ferry_options has it; lent until close */

    /* Says why the port does not start, as fy_error_set: a plug-in of a program that is linked to
     * the static library has a copy of that function which nobody reads. Returns `error`. */
    int (*error_set)(int error, const char *format, ...);
} fy_port_settings;

/* The rank of this process, as `open` gives it. After the port was closed one of `leave` and
 * `forget` is called; `forget`, if core could not make the rank. Each function may be NULL. */
typedef struct fy_port_rank {
    fy_port *port;
    void (*leave)(void *job);  /* frees what is beside the port; may wait for other ranks */
    void (*forget)(void *job); /* likewise, and waits for nobody; NULL: the process is to end */
    void (*abort)(void *job, int status); /* ends a job that another launcher has started */
    void *job;
} fy_port_rank;

/* The program of one rank. The result is the exit status of the rank. It closes the port. */
typedef int fy_port_main(void *arg, fy_port *port);

/* How core starts a port. The plug-in ferry-port-NAME.so exports this table as FY_PORT_SYMBOL, and
 * FERRY_PORT names it. Ports without a plug-in are in src/port/open/list.c. One of `run` and `open`
 * may be NULL. */
typedef struct fy_port_entry {
    uint32_t version;   /* FY_PORT_VERSION */
    bool tells_crashes; /* `run` says itself which rank has crashed */

    /* Whether the environment or `settings` make this process a rank of this port. NULL: only
     * FERRY_PORT chooses the port, and then always. */
    bool (*detect)(const fy_port_settings *settings);

    /* For a port that makes its ranks, in the calling process or in processes that it forks: runs
     * all ranks of this process to their end and returns the exit status of the job. FERRY_E...:
     * nothing was started; with fy_error_set. */
    int (*run)(const fy_port_settings *settings, fy_port_main *rank_main, void *arg);

    /* Opens the rank of this process, which a launcher of the port has started. FERRY_E... with
     * fy_error_set. */
    int (*open)(const fy_port_settings *settings, fy_port_rank *out);
} fy_port_entry;

#define FY_PORT_SYMBOL "fy_port_table"

/* Checks the versions of the port's tables. FERRY_ELAUNCH with fy_error_set, which names the table:
 * the port was built for another version of Ferry. */
int fy_port_check(const fy_port *port);

#endif
