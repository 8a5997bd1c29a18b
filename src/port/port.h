/* Port: moves frames between ranks, tells the time and sleeps. It is the only layer to write for a
 * new network.
 *
 * A port is a state, and one table of functions for each role: transport, host, heap, members and
 * diagnosis. It has mechanism only. It does not know what a frame means, and its client (core) does
 * not know which port it uses. An optional operation that is missing is NULL, and `query` says so.
 * Core emulates it by frames.
 *
 * Threads: a rank has an application thread and at most one helper thread. Both may call the
 * operations that take `thread` at the same time, each with its own name. The port keeps a sending
 * channel for each (thread, lane, peer), so no send needs a lock. One thread at a time calls `poll`
 * of a lane: the client ensures that. All other operations belong to the application thread.
 *
 * Order: frames from one thread of one rank to one rank on one lane are delivered once, in the
 * order sent. There is no order between threads, lanes or sources. The control lane is never queued
 * after the data lane. */
#ifndef FY_PORT_H
#define FY_PORT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ferry/error.h>

/* The versions of the struct of tables, and of each table. */
#define FY_PORT_VERSION 17
#define FY_TRANSPORT_VERSION 3
#define FY_HOST_VERSION 4
#define FY_HEAP_VERSION 2
#define FY_MEMBERS_VERSION 5
#define FY_DIAGNOSIS_VERSION 2
#define FY_FRAME_WORDS 4
/* For alloc and keep_for: the block stays until free_gone, after its rank has gone. */
#define FY_KEEP_ALL (-2)
#define FY_BOARD_BYTES (404u * 1024) /* size of a rank's board; its clients divide it */
#define FY_ANSWER_BYTES 4032u        /* the longest answer of a rank about itself */

typedef enum fy_lane { FY_DATA, FY_CONTROL, FY_LANES } fy_lane;
typedef enum fy_thread { FY_APP, FY_HELPER, FY_THREADS } fy_thread;

/* A frame. Every field is delivered as it was sent, except `block`, `quiet` and the words beyond
 * `word_count`. A frame without payload is one cache line on the way. From `handler` on it lies as
 * a ferry_message does, so that a handler gets that part of it without a copy (core/handler.h). */
typedef struct fy_frame {
    uint32_t op;  /* the sender's operation to acknowledge, 0 for none */
    uint32_t aux; /* belongs to the kind */
    uint16_t handler;
    uint8_t word_count; /* 0 to FY_FRAME_WORDS */
    uint8_t kind;       /* which function of core or a layer gets the frame: fy_kind */
    int32_t tag;
    uint64_t words[FY_FRAME_WORDS];
    const void *data; /* delivered 8-byte aligned */
    size_t size_bytes;
    bool block; /* set by the port at delivery: `data` is a block that `deliver` may keep */
    bool quiet; /* for `send`: no answer is urgent, so on the control lane it need not wake a
                   helper */
} fy_frame;

/* Begins a frame without data: `words` are still to be set. It sets the fields one by one. In a
 * small library the compiler makes `rep stos` of an initialiser, which takes 30 cycles to begin. */
static inline void fy_frame_begin(fy_frame *frame, uint8_t kind, uint16_t handler,
                                  uint8_t word_count)
{
    frame->op = frame->aux = 0;
    frame->handler = handler;
    frame->word_count = word_count;
    frame->kind = kind;
    frame->tag = 0;
    frame->data = NULL;
    frame->size_bytes = 0;
    frame->block = frame->quiet = false;
}

/* Copies the words of a frame one by one. They were just written in that way: a copy of several
 * words in one load would wait until those stores are in the cache. The compiler would make `rep
 * movs` of a loop, which takes longer to begin than four words take. */
static inline void fy_words_copy(uint64_t *to, const uint64_t *from, unsigned count)
{
    _Static_assert(FY_FRAME_WORDS == 4, "the words that are copied below");
    if (count > 0)
        to[0] = from[0];
    if (count > 1)
        to[1] = from[1];
    if (count > 2)
        to[2] = from[2];
    if (count > 3)
        to[3] = from[3];
}

/* Whether a frame stands for one that made no sense, because shared memory was overwritten. That
 * frame is lost, and perhaps more of its source. No other frame has `block` without data. */
static inline bool fy_frame_is_lost(const fy_frame *frame)
{
    return frame->block && frame->data == NULL;
}

/* The answer of `deliver` for a frame. */
typedef enum fy_verdict {
    FY_TAKEN, /* the frame was handled, and its room is free */
    FY_LEAVE, /* not now: the frame, and all that follow from its source, stay where they are */
    FY_KEEP,  /* as FY_TAKEN, for a frame with `block`: the callee releases `data` later */
} fy_verdict;

/* Called by `poll` for each frame. Borrows the frame and its data until it returns. It may call
 * `send`, not `poll`. The fields were copied out of shared memory and then checked. The data may be
 * anything. */
typedef fy_verdict fy_deliver(void *context, int source, const fy_frame *frame);

/* The properties of a port, for its client. */
typedef struct fy_port_info {
    int rank, ranks;     /* numbers are below `ranks`, also those of ranks that may still come */
    int starting;        /* the job began with the ranks below this number; 0: with all */
    bool shares_memory;  /* alloc, release and owner work, and peers see the memory at the same
                            address */
    bool wakes_helper;   /* a control frame ends the helper's wait immediately; else the wait ends
                            every quantum */
    bool crowded;        /* ranks share processors now: a rank with nothing to do yields soon */
    bool leaves;         /* a rank may close its port while others go on */
    bool virtual_time;   /* advance moves the clock: ferry_compute takes no real time */
    size_t inline_bytes; /* payloads up to this size travel without an allocation */
    uintptr_t shared_start; /* start and size of memory that can be read without a fault and */
    size_t shared_bytes;    /* contains all that alloc gives; 0 bytes: no memory is shared */
} fy_port_info;

/* The state of a peer. A rank that joins later is absent until it opens the port. */
typedef enum fy_peer_state {
    FY_PEER_ALIVE,
    FY_PEER_LEFT,
    FY_PEER_DEAD,
    FY_PEER_ABSENT,
} fy_peer_state;

/* The activity of a rank: for reports, and for the line of the launcher when the rank dies. */
typedef enum fy_doing {
    FY_DOING_MAIN, /* in the program, outside Ferry */
    FY_DOING_HANDLER,
    FY_DOING_TASK,
    FY_DOING_IDLE,
    FY_DOING_BARRIER, /* from here to CLOSE: each rank waits for all others */
    FY_DOING_COLLECTIVE,
    FY_DOING_QUIESCE,
    FY_DOING_CLOSE,
    FY_DOING_SEND, /* in a call that sends and waits for room */
    /* In a call over a group of the program, or in which not each rank waits for all others. */
    FY_DOING_BARRIER_OF_SOME,
    FY_DOING_COLLECTIVE_OF_SOME,
    FY_DOING_LEAVE,
} fy_doing;

/* The memory in which `doing` writes, and others read. */
typedef struct fy_doing_note {
    _Atomic uint64_t doing; /* fy_doing | handler << 32 */
    _Atomic uint64_t since_ns;
} fy_doing_note;

typedef struct fy_port_ops fy_port_ops;
typedef struct fy_outlet fy_outlet; /* port/outlet.h */

/* First member of every port's state. */
typedef struct fy_port {
    const fy_port_ops *ops;
} fy_port;

/* Transport: what a new network must write. No operation is NULL but `send_lent`, `news`, `outlet`
 * and `follow`. */
typedef struct fy_transport_ops {
    uint32_t version; /* FY_TRANSPORT_VERSION */

    /* Leaves the job, and frees the state. Frames that were sent before are delivered. */
    void (*close)(fy_port *port);
    void (*query)(const fy_port *port, fy_port_info *info);

    /* Sends a copy of `frame` to `rank`, which may be the caller. The data may be reused on return.
     * After an error nothing was sent. FERRY_EAGAIN: there is no room. FERRY_EPEER: the rank is
     * dead or has left. FERRY_EINVAL: the job has no such rank, or `word_count` is above
     * FY_FRAME_WORDS. FERRY_ENOMEM: no memory for the payload. */
    int (*send)(fy_port *port, fy_thread thread, fy_lane lane, int rank, const fy_frame *frame);

    /* As send, but does not copy large data. On return `*lent` is true if the port still reads
     * them. A later send or poll sets it to false (release). NULL: send copies only to where the
     * target reads, so there is nothing to save. */
    int (*send_lent)(fy_port *port, fy_thread thread, fy_lane lane, int rank, const fy_frame *frame,
                     atomic_bool *lent);

    /* Delivers at most `budget` frames that have arrived on `lane`; returns how many were taken.
     * Its cost does not depend on the number of silent peers. */
    int (*poll)(fy_port *port, fy_lane lane, int budget, fy_deliver *deliver, void *context);

    /* Whether a frame waits on `lane`. Exact; its cost may grow with the number of peers. */
    bool (*pending)(fy_port *port, fy_lane lane);

    /* Sleeps until a frame arrives, `wake` is called for the thread, the state of a peer changes,
     * or `now` reaches `deadline_ns`. Frames of any lane wake the application thread. Frames of the
     * control lane wake the helper while `serve` names it. It may return early without a reason.
     * Whether it spins, yields or sleeps is chosen by measurement. */
    void (*wait)(fy_port *port, fy_thread thread, uint64_t deadline_ns);

    /* A wake before the wait makes that wait return immediately. */
    void (*wake)(fy_port *port, fy_thread thread);

    /* Sets the thread that serves the control lane: control frames that arrive wake this thread.
     * Frames that came just before may not wake it, so the caller polls once after the call.
     * [application thread] */
    void (*serve)(fy_port *port, fy_thread thread);

    /* A word that the client reads instead of a poll that would find nothing. It is not 0 while a
     * frame waits on `lane` for which `send` has returned. It may also be not 0 when no frame
     * waits. A poll that leaves no frame sets it to 0, perhaps a little later. Lent until close;
     * read it relaxed. If the operation is NULL or returns NULL, only a poll can tell. */
    const _Atomic uint64_t *(*news)(fy_port *port, fy_lane lane);

    /* The end of the ring by which the application thread sends to `rank` on the data lane, for a
     * client that writes frames without data itself. Lent until close. NULL: there is none. */
    fy_outlet *(*outlet)(fy_port *port, int rank);

    /* Does what fy_outlet_publish, which has returned true, has left to do. */
    void (*follow)(fy_port *port, fy_outlet *outlet);
} fy_transport_ops;

/* The outcome of a read or write of a simulated disk. */
typedef struct fy_disk_outcome {
    uint64_t end_ns; /* when it ends; 0: now */
    uint64_t damage; /* not 0: a bit of this byte, modulo the bytes that were read, is wrong */
    int error;       /* errno: ENOSPC or EIO; 0: the call succeeds */
} fy_disk_outcome;

/* Host: time, threads and disk of the process in which the rank runs. The simulator has its own. */
typedef struct fy_host_ops {
    uint32_t version; /* FY_HOST_VERSION */

    /* Nanoseconds: of the job's clock, and of processor time of the calling thread. */
    uint64_t (*now)(fy_port *port);
    uint64_t (*cpu)(fy_port *port);

    /* Lets `ns` of work pass on this rank. */
    void (*advance)(fy_port *port, uint64_t ns);

    /* Starts the helper thread. `join` waits until it has returned. FERRY_ENOTSUP: the port has
     * none. */
    int (*spawn)(fy_port *port, void (*entry)(void *arg), void *arg);
    void (*join)(fy_port *port);

    /* Sets how often the helper looks for control frames, unless `ns` is 0, and returns the value
     * before. 0: a control frame wakes the helper, and nothing was set. NULL: the same, always.
     * [either thread] */
    uint64_t (*quantum)(fy_port *port, uint64_t ns);

    /* Decides what happens to a read or write of so many bytes that begins now on the simulated
     * disk of rank `owner`. The caller does it in a real file. NULL: the disk is real. [either
     * thread] */
    void (*disk)(fy_port *port, int owner, bool writes, uint64_t size_bytes, fy_disk_outcome *out);
} fy_host_ops;

/* Looks at boards for a wait (fy_heap_ops.await). */
typedef struct fy_lookout fy_lookout;
struct fy_lookout {
    /* Whether the wait is over. `sleeps`: the thread sleeps if it is not. Then the callee first
     * says on a board that it sleeps, and looks afterwards. A rank that ends waits reads that after
     * it has written, and calls `rouse`. Both need a sequentially consistent order. */
    bool (*is_over)(fy_lookout *lookout, bool sleeps);
};

/* Heap: memory that the ranks of a node share. If they share none, all operations are NULL. */
typedef struct fy_heap_ops {
    uint32_t version; /* FY_HEAP_VERSION */

    /* As send, for data in a block of `alloc`: passes the block on without a copy. The receiving
     * port releases the block after delivery. NULL: no memory is shared. */
    int (*send_block)(fy_port *port, fy_thread thread, fy_lane lane, int rank,
                      const fy_frame *frame);

    /* Memory that every rank of the node sees at the same address. `alloc` gives a block that is
     * kept for `rank` (keep_for). `release` takes blocks of any rank. `owner` finds the allocated
     * block that contains [address, address + size), and returns its rank, or -1. Either thread may
     * call all of them. NULL: no memory is shared. A port over several nodes has them for the ranks
     * of this node, although `shares_memory` is false. */
    void *(*alloc)(fy_port *port, size_t size_bytes, int rank);
    int (*release)(fy_port *port, void *address);
    int (*owner)(fy_port *port, fy_thread thread, const void *address, size_t size_bytes);

    /* Sets the rank of the node for which a block is kept. The block is released when that rank has
     * gone and all ranks of the node have seen it (`bury`). -1: it is kept for no rank;
     * FY_KEEP_ALL: for every rank that uses it. Blocks of `send` and `send_block` are kept for the
     * target. FERRY_EINVAL: no block starts there. NULL: blocks are not released in this way. */
    int (*keep_for)(fy_port *port, void *address, int rank);

    /* Releases the blocks that `rank`, which has gone, had allocated and that are kept for
     * FY_KEEP_ALL. NULL if keep_for is NULL. */
    void (*free_gone)(fy_port *port, int rank);

    /* The board of `rank`: FY_BOARD_BYTES that every rank of its node sees at the same address from
     * the start, and that are zero until a rank writes to them. They stay when the rank has gone.
     * Returns NULL if the rank is on another node. The operation is NULL if no memory is shared. */
    void *(*board)(fy_port *port, int rank);

    /* As wake, for the application thread of a rank that shares memory. NULL: no memory is
     * shared. */
    void (*rouse)(fy_port *port, int rank);

    /* As wait, for the application thread. The wait also ends when `lookout`, if it is not NULL,
     * says so. The port asks it again after each yield, and with `sleeps` just before the thread
     * sleeps. `now_ns` is the time of the call. If `deadline_ns` is not later, the port may yield,
     * but not sleep. Returns the time of the end. NULL: the client asks `lookout` before each
     * `wait`. */
    uint64_t (*await)(fy_port *port, uint64_t now_ns, uint64_t deadline_ns, fy_lookout *lookout);
} fy_heap_ops;

/* Members: which ranks the job has, and how ranks come and go. Only `peer` is required. */
typedef struct fy_member_ops {
    uint32_t version; /* FY_MEMBERS_VERSION */

    fy_peer_state (*peer)(fy_port *port, int rank);

    /* Whether all frames of `rank`, which has left, were delivered. NULL: the port cannot tell, and
     * late frames of that rank are lost. [application thread, with no poll in flight] */
    bool (*silent)(fy_port *port, int rank);

    /* The client has seen that `rank` has gone. Gives back the memory for frames to and from it,
     * unless some of its frames were not delivered yet, the blocks that were kept for it, and the
     * free blocks that it had allocated. NULL: nothing to do. [application thread, with no poll in
     * flight] */
    void (*bury)(fy_port *port, int rank);

    /* A number that changes whenever the state of a peer changes; read it relaxed. Lent until
     * close. Returns NULL if there is none. */
    const _Atomic uint32_t *(*changes)(fy_port *port);

    /* Says whether this rank goes on when another rank dies. As long as all living ranks say so, a
     * death does not end the job. NULL: no death ends the job. */
    void (*endure)(fy_port *port, bool on);

    /* Has `count` more ranks started. They run `argv`; NULL: what this rank runs. Sets `*first` to
     * the number of the first; the others follow. Returns before they run. If a rank cannot be
     * started, its state goes from absent to dead. NULL: the port cannot do it. FERRY_ENOTSUP: this
     * job cannot. FERRY_ENOMEM: no number is left. fy_error_set has the reason. [application
     * thread] */
    int (*spawn_ranks)(fy_port *port, int count, char *const argv[], int *first);

    /* The status of wait(2) with which `rank`, which has gone, has ended; -1: it is not known.
     * NULL: the port never knows. */
    int (*outcome)(fy_port *port, int rank);

    /* Ends the whole job immediately with exit status `status`. Does not return. NULL: it is enough
     * that the process ends. */
    void (*abort)(fy_port *port, int status);

    /* Says that this rank will end with exit status `status`, 1 to 255, and not because another
     * rank has failed. The job then has this status, even if its launcher first sees the end of a
     * rank that failed in consequence. NULL: the launcher is not told. */
    void (*fail)(fy_port *port, int status);

    /* All ranks of the job have come to its end, so none waits to be told that this one closes the
     * port, unless a rank has died. `close` may then change this rank's state without telling the
     * others: they see it when they look. If a rank has died, `close` still tells them. NULL:
     * `close` always tells them. */
    void (*end_quietly)(fy_port *port);

    /* If this rank joined the job by itself, tells the others that it has left, as `close` does.
     * Only `close` may follow. Returns whether it did. NULL: no rank joins by itself. [application
     * thread] */
    bool (*withdraw)(fy_port *port);

    /* Shuts this rank: what others send from now on fails with FERRY_EPEER. Those that come later
     * send it nothing at all. It does not shut unless `changes` is still the number that the client
     * saw last: then it returns false, and the client looks at the others again. Frames that were
     * sent before still come: `pending` says when there are no more. Only polls, sends and `close`
     * may follow. NULL: `leaves` is false. [application thread] */
    bool (*shut)(fy_port *port, uint32_t changes);
} fy_member_ops;

/* Diagnosis: what a rank tells about itself. Only `doing` and `name_handler` are required. */
typedef struct fy_diagnosis_ops {
    uint32_t version; /* FY_DIAGNOSIS_VERSION */

    /* `doing` notes what the rank does and since when (0: not known), `name_handler` the name of a
     * handler, in memory that others can read: the launcher after a death. It costs almost nothing.
     */
    void (*doing)(fy_port *port, fy_doing what, uint16_t handler, uint64_t since_ns);

    /* The memory that `doing` writes to, which the client may write to itself
     * (fy_doing_note_write). Lent until close. NULL: the client calls `doing`. */
    fy_doing_note *(*note)(fy_port *port);

    void (*name_handler)(fy_port *port, uint16_t handler, const char *name);

    /* Whether somebody asks what this rank does and has not got an answer. When a query begins,
     * `changes` changes, and the waits of both threads return. [either thread, one at a time] */
    bool (*asked)(fy_port *port);

    /* Answers the query: lines of text, at most FY_ANSWER_BYTES. */
    void (*answer)(fy_port *port, const char *text, size_t size_bytes);

    /* Asks all ranks what they do. With `print`, waits a moment for the answers and writes them to
     * standard error. Returns false if it reaches only some ranks. NULL: it reaches none. Then the
     * client asks them by frames and they print the answers, and the port logs deadlocks. `asked`
     * and `answer` are NULL if nobody can ask. [application thread] */
    bool (*ask)(fy_port *port, bool print);

    /* Writes what this rank does, such as ", in a barrier", for a line about its crash. Called in a
     * signal handler. NULL: it writes nothing. */
    void (*describe)(const fy_port *port, char *out, size_t size);
} fy_diagnosis_ops;

static inline void fy_doing_note_write(fy_doing_note *note, fy_doing what, uint16_t handler,
                                       uint64_t since_ns)
{
    /* relaxed: who reads it after a death reads all; others show what they happen to see */
    atomic_store_explicit(&note->since_ns, since_ns, memory_order_relaxed);
    atomic_store_explicit(&note->doing, (uint64_t)what | (uint64_t)handler << 32,
                          memory_order_relaxed);
}

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

/* How `advance` treats work that the program only simulates (ferry_compute). */
typedef enum fy_compute { FY_COMPUTE_NONE, FY_COMPUTE_SLEEP, FY_COMPUTE_SPIN } fy_compute;

/* The arguments by which core starts a port. Zero and NULL mean the default of the port. */
typedef struct fy_port_settings {
    int ranks;                /* as FERRY_RANKS says; a port with `detect` reads that itself */
    size_t heap_bytes;        /* of each rank's shared heap */
    uint32_t ring_slots;      /* per (source, target, lane, thread) */
    uint32_t ring_bytes;      /* likewise */
    fy_compute compute;       /* ignored if the port's time is virtual */
    const void *communicator; /* as in ferry_options; kept until close */

    /* Sets the reason why the port does not start, as fy_error_set does, and returns `error`. A
     * plug-in must use this: in a program that is linked to the static library, the plug-in's own
     * copy of fy_error_set is one that nobody reads. */
    int (*error_set)(int error, const char *format, ...);
} fy_port_settings;

/* The rank of this process, as `open` gives it. After the port was closed, core calls one of
 * `leave` and `forget`; `forget` if it could not make the rank. Each function may be NULL. */
typedef struct fy_port_rank {
    fy_port *port;
    void (*leave)(void *job);  /* frees the job; may wait for other ranks */
    void (*forget)(void *job); /* frees the job without waiting; NULL: the process must end */
    void (*abort)(void *job, int status); /* ends a job that another launcher has started */
    void *job;
} fy_port_rank;

/* The program of one rank. It closes the port, and returns the exit status of the rank. */
typedef int fy_port_main(void *arg, fy_port *port);

/* How core starts a port. The plug-in ferry-port-NAME.so exports this table as FY_PORT_SYMBOL, and
 * FERRY_PORT names it. Ports without a plug-in are in src/port/open/list.c. One of `run` and `open`
 * may be NULL. */
typedef struct fy_port_entry {
    uint32_t version;           /* FY_PORT_VERSION */
    uint32_t tells_crashes : 1; /* `run` says itself which rank has crashed */

    /* The most ranks that FERRY_RANKS may ask for, which `ranks` of the settings then has. 0: the
     * port reads FERRY_RANKS itself. */
    uint32_t ranks_max : 31;

    /* Whether the environment or `settings` say that this process is a rank of this port. NULL: the
     * port is used only if FERRY_PORT names it. */
    bool (*detect)(const fy_port_settings *settings);

    /* For a port that makes its ranks itself, in the calling process or in processes that it forks:
     * runs all ranks of this process to their end and returns the exit status of the job.
     * FERRY_E...: nothing was started; fy_error_set has the reason. */
    int (*run)(const fy_port_settings *settings, fy_port_main *rank_main, void *arg);

    /* Opens the rank of this process, which a launcher of the port has started. FERRY_E... with
     * fy_error_set. */
    int (*open)(const fy_port_settings *settings, fy_port_rank *out);
} fy_port_entry;

#define FY_PORT_SYMBOL "fy_port_table"

/* Checks the versions of the port's tables, and that each function is there that must be.
 * FERRY_ELAUNCH with fy_error_set, which names the table and the function: the port was built for
 * another version of Ferry, or a function is NULL. */
int fy_port_check(const fy_port *port);

#endif
