/* A running job as its launcher sees it. A rank under another launcher has one too, for the ranks
 * that it has started (port/nodes/watch.c). For launch.c, watch.c, end.c, spawn.c and label.c. */
#ifndef FY_JOB_H
#define FY_JOB_H

#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/types.h>

#include <ferry/launch.h>

#include "base/log.h"
#include "launch/join.h"
#include "launch/launch.h"
#include "port/shm/layout.h"

/* A pipe to which a rank writes. Its lines are written out with a label. */
typedef struct job_stream {
    int fd; /* -1: closed */
    int target_fd;
    bool failed; /* its text could not be written, and a line said so */
    char *line;  /* the part of the current line that has come */
    size_t used, room;
    char *out; /* lines with labels; the bytes [sent, to_send) are not written yet */
    size_t sent, to_send, out_room;
} job_stream;

typedef struct job_child {
    pid_t pid;
    int pidfd;   /* -1: the child has gone */
    int link;    /* connection of a joined process; -1: none */
    bool joined; /* it is a joined process, no child of ours */
    job_stream streams[2];
} job_child;

/* A process that has connected to join, and has not sent the nonce yet. */
typedef struct job_joiner {
    int fd; /* -1: none */
    pid_t pid;
    uint64_t since_ns;
} job_joiner;

enum { JOB_JOINERS = 8 }; /* this many at a time; others wait */

/* The message of a child that cannot execute its program, in one piece. */
typedef struct job_failure {
    int error; /* errno */
    char program[252];
} job_failure;

/* The folder and the socket by which processes join. */
typedef struct job_join_socket {
    int folder, listener; /* -1: closed */
    int pipe[2];          /* the launcher alone has the writing end */
    pid_t guard;          /* 0: none */
    char *path;
    uint8_t nonce[JOIN_NONCE_BYTES];
    job_joiner joiners[JOB_JOINERS];
} job_join_socket;

/* How far the end of the job has come. */
typedef enum job_stage {
    JOB_RUNS,
    JOB_GRACE,      /* a rank has died: the others may end by themselves */
    JOB_TERMINATED, /* they were sent SIGTERM */
    JOB_KILLED,
} job_stage;

typedef struct job {
    const fy_launch_plan *plan;
    int ranks;          /* places for children */
    int starting;       /* children at the start */
    int spawn_requests; /* our end of the socket by which ranks ask for more; -1: none */
    int spawn_requests_theirs;
    job_join_socket join_socket;
    int segment_fd;
    fy_controls controls; /* base NULL without a segment */
    job_child *children;
    const job_stream *writing[2]; /* the streams of which a part of a line is on standard output and
                                     error; or NULL */
    int left;                     /* how many children live */
    int signal_fd;
    int start_pipe[2]; /* by which children write a job_failure */
    bool start_failed;
    int status;
    bool aborted; /* a rank has called ferry_abort: `status` is final */
    job_stage stage;
    uint64_t stage_end_ns;
    int interrupts;    /* how many SIGINT have come */
    int passed_signal; /* the last signal that ends programs; 0: none */
    sigset_t old_mask;
    struct sigaction old_child_action;
    struct rlimit old_files; /* the limit before; all zero: it was not changed */
    pid_t launcher;
    pid_t *others; /* children that the launcher had before the job */
    size_t other_count;
    bool adopts; /* orphans become the launcher's children. Before that it had started none */
} job;

/* watch.c: returns when every child has gone. */
void fy_job_watch(job *j);
/* As poll, for the entries of `set` that have a descriptor. After the `count` entries there must be
 * room for as many again. The system counts empty entries too against the limit of descriptors. */
int fy_job_poll(struct pollfd *set, nfds_t count, int timeout_ms);
/* Sends a signal to every child that lives. */
void fy_job_signal(job *j, int number);

/* They do what these promise: ferry_launch (program.c), fy_launch (launch.c), fy_launch_threads
 * (threads.c), fy_launch_join (join.c). */
int fy_job_launch_program(const ferry_launch_options *options, char *const argv[]);
int fy_job_launch(const fy_launch_plan *plan);
int fy_threads_run(const fy_threads_plan *plan);
int fy_job_join(const char *folder, fy_segment **segment, int *rank);

/* ask.c, a fy_spawner: sends a spawn request. `arg` is the descriptor of a socket, an intptr_t. */
int fy_spawn_ask(void *arg, int first, int count, char *const argv[]);

/* launch.c: starts a rank. It runs `argv`; NULL: what the plan says. FERRY_ESYSTEM. */
int fy_job_start_child(job *j, int rank, char *const argv[]);

/* launch.c: what fy_error_set says of a `call` that makes descriptors and has failed.
 * FERRY_ESYSTEM.
 */
int fy_job_no_file(const char *call);

/* spawn.c: a spawn request of a rank to the launcher. Strings follow it, each with its end. */
typedef struct job_request {
    uint32_t first, count;
    uint32_t arguments; /* 0: the program of the job */
    uint32_t bytes;
} job_request;
enum { JOB_REQUEST_BYTES = 64 * 1024 };

/* Makes the socket. FERRY_ESYSTEM. */
int fy_job_spawn_requests_open(job *j);
/* Serves one request that came by `fd`. Returns false if no request can come by it any more. */
bool fy_job_spawn_ranks(job *j, int fd);

/* join_socket.c. Makes `path`, which is removed however the launcher ends. FERRY_EINVAL,
 * FERRY_ESYSTEM: close must still be called. No process that has the job's files may have been
 * started before. */
void fy_join_socket_init(job_join_socket *join_socket);
int fy_join_socket_open(job_join_socket *join_socket, const char *path);
void fy_join_socket_close(job_join_socket *join_socket);

/* joiner.c */
void fy_joiner_accept(job *j);
bool fy_joiners_full(const job *j);
/* When the first joining process has waited too long; UINT64_MAX: there is none. */
uint64_t fy_joiners_deadline_ns(const job *j);
void fy_joiners_expire(job *j);
/* Handles what a joining process has sent, or the end of its connection. */
void fy_joiner_hear(job *j, int index);
/* The process of a joined rank has ended, or only its connection. */
void fy_joiner_gone(job *j, int rank, bool process);

/* end.c */
shm_state fy_job_state(const job *j, int rank);
/* Whether a rank has opened Ferry and has not died. */
bool fy_job_anyone_joined(const job *j);
/* Handles the end of a child. */
void fy_job_child_gone(job *j, int rank, const siginfo_t *info);
void fy_job_next_stage(job *j);

/* orphans.c: processes that ranks started and did not wait for. */
int fy_job_orphans_begin(job *j);
void fy_job_orphans_end(job *j);

/* label.c */
int fy_stream_open(job_stream *stream, int target_fd, int *write_fd);
/* Writes waiting lines, then reads a piece. Returns false if the writing has to wait, or if there
 * is nothing to read now. Closes the stream at its end; lines may still wait then. */
bool fy_stream_read(job *j, job_stream *stream, int rank);
/* Whether lines wait to be written. Until they are, the stream is not read. */
bool fy_stream_pending(const job_stream *stream);
/* All ranks have ended: reads and writes the rest, unfinished lines too. If nobody reads the
 * output, waits until a signal comes, or for half a second if the job has failed. */
void fy_streams_end(job *j);
/* Whether standard error takes a line without waiting. */
FY_SHARED bool fy_job_may_say(void);
/* Prints a line about the job. Leaves it out if nobody reads: the launcher waits for no reader. */
#define job_say(...) (fy_job_may_say() ? fy_log_line(-1, __VA_ARGS__) : (void)0)
void fy_stream_free(const job_stream *stream);

#endif
