/* Board: one shared page through which a benchmark tells the ranks of its teams what to measure.
 *
 * A team is a set of processes that one side of a comparison starts with its own launcher (Ferry,
 * an MPI, bare processes). All teams of a case exist at the same time; those that are not asked
 * sleep on the board's futex, so that ours and theirs alternate in one run and never disturb each
 * other. A launcher passes neither pipes to every rank nor descriptors, so the board is a memfd
 * that ranks open as /proc/PID/fd/N. */
#ifndef BENCH_BOARD_H
#define BENCH_BOARD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BENCH_BLOCKS = 1000 };

enum { BENCH_RANKS_MAX = 64, BENCH_BLOB_BYTES = 8192, BENCH_VARIABLE_BYTES = 64 };

/* Name of the environment variable that holds the board's path. */
#define BENCH_BOARD_VARIABLE "BENCH_BOARD"

/* The measurements that a team can be asked for. Every rank of it takes part. */
typedef enum bench_kind {
    BENCH_REQUEST, /* count round trips of a message of size bytes between ranks 0 and 1 */
    BENCH_READ,    /* likewise; the receiver reads each whole, and its program answers */
    BENCH_RATE,    /* a stream of count small messages from 0 to 1, and one answer */
    BENCH_BUFFER,  /* a stream of count large messages; the receiver reads each whole */
    BENCH_PUT,     /* rank 0 writes size bytes to memory of rank 1, count times; rank 1 sleeps */
    BENCH_GET,     /* rank 0 reads */
    /* rank 0 writes BENCH_BLOCKS blocks of size bytes, with gaps as long as they, to memory of rank
     * 1, and waits until they are there; count times. MPI's side: a message with its answer */
    BENCH_STRIDED,
    BENCH_BARRIER, /* all ranks, count times */
    BENCH_QUIESCE, /* likewise, with no work anywhere; MPI's side: round trips of a message */
    BENCH_REST,    /* quiescences; before each, every rank sends a message to the next one */
    BENCH_ALLREDUCE,
    BENCH_BROADCAST, /* these four by changing roots, or by all ranks, count times */
    BENCH_ALLTOALL,
    BENCH_GATHERV,
    BENCH_REDUCE_SCATTER,
    BENCH_RING,        /* count laps of a token through all ranks */
    BENCH_RING_BUSY,   /* the same, beside one computing process for each core */
    BENCH_WAKE,        /* one way to a rank that sleeps */
    BENCH_IDLE,        /* count polls of rank 0, to which every other has sent one message */
    BENCH_LOOKUP,      /* of an object in a full directory; one rank */
    BENCH_UPDATE,      /* of where an object is */
    BENCH_LOCAL,       /* message to an object that is here */
    BENCH_REMOTE,      /* round trips of messages between objects of ranks 0 and 1 */
    BENCH_LEND,        /* count round trips of size bytes, tracked, that are read there */
    BENCH_FORWARD,     /* messages from rank 0 to objects that have moved from rank 1 to rank 2 */
    BENCH_MIGRATE,     /* count migrations of an object from rank 0 to rank 1 and back */
    BENCH_UNINSTALL,   /* objects taken out of the runtime, for the program to carry */
    BENCH_INSTALL,     /* and put in again */
    BENCH_HAND_OVER,   /* as BENCH_MIGRATE, of an object that stands in the shared heap */
    BENCH_WORK_REMOTE, /* these four on ranks that one thread drives in turn */
    BENCH_WORK_FORWARD,
    BENCH_WORK_MIGRATE,
    BENCH_WORK_HAND_OVER,
    BENCH_HALO,         /* count face exchanges of one block of size^3 doubles per rank */
    BENCH_HALO_8,       /* of eight blocks per rank */
    BENCH_TRANSPOSE,    /* size bytes in slabs, to slabs of the transposed array */
    BENCH_REDISTRIBUTE, /* size bytes in slabs, to slabs in another dimension */
    BENCH_START_WAIT,   /* count movements that move nothing */
    BENCH_REDBLACK,     /* count sweeps over a cube with size points along an edge */
    BENCH_MG,           /* count V-cycles of NAS MG, size points along an edge */
    BENCH_FT,           /* count steps of NAS FT, size points along x */
    BENCH_SUMMA,        /* count products of matrices of size^2 elements */
    BENCH_LAPLACE,      /* count iterations on the mesh of triangles of `size` */
    BENCH_PLAN,         /* count plans of a halo of size blocks, all of one rank */
    BENCH_PLAN_SHARE,   /* likewise, of one rank of 64 */
    BENCH_PLAN_MEMORY,  /* bytes that a rank of 64 then holds */
    BENCH_AMR, /* count times eight steps and a change of blocks, on size^2 tiles and finer ones */
    BENCH_EXPOSED, /* of a halo as BENCH_HALO_8, what background progress does not hide, percent */
    BENCH_EXPOSED_SLEEP, /* likewise, sleeping in place of computing */
    BENCH_SHARES,        /* how even the shares of ranks are that add and take at will, percent */
    BENCH_TRACKED,       /* count requests whose end is waited for */
    BENCH_BACKGROUND,    /* likewise, to a rank that computes */
    BENCH_POLL,          /* count polls beside many pending timeouts; one rank */
    BENCH_PONG_SUBMIT, /* count round trips of a two-sided message, sends waited to be submitted */
    BENCH_PONG_COMPLETE, /* likewise, to be received */
    BENCH_PONG_SHARED,   /* likewise, from memory that the target sees */
    BENCH_PONG_LATE,     /* likewise, and rank 1 sleeps for a millisecond before each answer */
    BENCH_PING_SUBMIT,   /* count two-sided messages both ways at once */
    BENCH_PING_COMPLETE,
    BENCH_PUT_SUBMIT,   /* as BENCH_PUT, tracked: until the data may be reused */
    BENCH_PUT_COMPLETE, /* until they are there */
    BENCH_GET_COMPLETE,
    BENCH_SPAWN,        /* count further processes, until the first message of each is handled */
    BENCH_WINDOW_PUT,   /* count puts of size bytes to rank 1 */
    BENCH_WINDOW_FETCH, /* both ranks add count times to one number of rank 1 */
    BENCH_WINDOW_FENCE, /* count fences of all ranks */
    BENCH_WINDOW_SWAP,  /* count times: both ranks put size bytes to each other, and a fence */
    BENCH_MEMORY,       /* memory of the ranks (PSS), mean of them, bytes */
    BENCH_LIBRARY,      /* bytes of the libraries that rank 0 has mapped, beyond libc */
    BENCH_KINDS
} bench_kind;

typedef struct bench_job {
    uint32_t kind;
    uint16_t probe; /* measure the hand-off before and after */
    uint16_t use;   /* answer with the ranks' processor time, in percent of ranks * wall time */
    uint64_t size_bytes;
    uint64_t count;
} bench_job;

typedef struct bench_answer {
    double value; /* nanoseconds for all of count; bytes for the last two kinds; percent of use */
    double before_ns, after_ns; /* hand-off of one cache line, one way; 0 without probe */
} bench_answer;

typedef struct bench_line {
    _Alignas(64) _Atomic uint64_t word;
} bench_line;

typedef struct bench_board {
    int32_t driver;          /* process id of the benchmark */
    int32_t ranks;           /* how many must come */
    _Atomic uint32_t turn;   /* futex: number of the present job */
    _Atomic uint32_t probed; /* futex: number of the job whose first probe is done */
    _Atomic uint32_t done;   /* futex: ranks that are ready for the next job */
    _Atomic uint32_t over;   /* futex: number of the job that no rank works on any more */
    _Atomic uint32_t ended;  /* futex: number of the last job answered */
    _Atomic uint32_t ready;  /* futex: `kinds` is filled */
    bool kinds[BENCH_KINDS]; /* what the team can measure */
    bench_job job;
    bench_answer answer;
    bench_line ping, pong;
    double values[BENCH_RANKS_MAX];                         /* of each rank */
    unsigned char blobs[BENCH_RANKS_MAX][BENCH_BLOB_BYTES]; /* addresses, for teams without MPI */
} bench_board;

/* Nanoseconds of CLOCK_MONOTONIC. */
uint64_t bench_now(void);

/* Sleeps while `*word` is `value`, at most `timeout_ns`; may return early. */
void bench_sleep_on(_Atomic uint32_t *word, uint32_t value, uint64_t timeout_ns);
void bench_wake_all(_Atomic uint32_t *word);

/* The benchmark's end: a board for `ranks`; `path` gets what the variable shall hold. NULL when the
 * system refuses. Freed with bench_board_destroy. */
bench_board *bench_board_create(int ranks, char path[BENCH_VARIABLE_BYTES], int *fd);
void bench_board_destroy(bench_board *board, int fd);

/* A rank's end: maps the board that the environment names; NULL when there is none. */
bench_board *bench_board_open(void);

/* Cores this process may use, and binding of the caller to the `index`th of them (modulo). */
int bench_cores(void);
void bench_pin(int index);

/* Binds the caller to all of them but the `index`th, if there are others. */
void bench_pin_not(int index);

/* Reads every byte; returns a value that depends on all of them. */
uint64_t bench_read(const void *data, size_t size_bytes);

#endif
