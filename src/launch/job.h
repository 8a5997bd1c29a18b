/* A running job as its launcher sees it, or as a rank under another launcher does, of the ranks
 * that it has started (port/nodes/watch.c). For launch.c, watch.c, end.c, spawn.c and label.c. */
#ifndef FY_JOB_H
#define FY_JOB_H

#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "base/log.h"
#include "launch/join.h"
#include "launch/launch.h"
#include "port/shm/layout.h"

/* A pipe that a rank writes to, whose lines go on with a label. */
typedef struct job_stream {
    int fd; /* -1: closed */
    int target_fd;
    bool failed; /* it could not be written, and that was told */
    char *line;  /* what came of the line so far */
    size_t used, room;
    char *out; /* lines with labels, of which [sent, to_send) are not written yet */
    size_t sent, to_send, out_room;
} job_stream;

typedef struct job_child {
    pid_t pid;
    int pidfd;   /* -1: gone */
    int link;    /* connection of one that joined by the socket; -1: none */
    bool joined; /* it did: a process that is no child of ours */
    job_stream streams[2];
} job_child;

/* A process that has connected, to join, and has not said the nonce yet. */
typedef struct job_joiner {
    int fd; /* -1: none */
    pid_t pid;
    uint64_t since_ns;
} job_joiner;

enum { JOB_JOINERS = 8 }; /* so many at once; others wait for their turn */

/* A child that cannot execute its program writes this, as one piece. */
typedef struct job_failure {
    int error; /* errno */
    char program[252];
} job_failure;

/* Where processes join. */
typedef struct job_join_socket {
    int folder, listener; /* -1: closed */
    int pipe[2];          /* only the launcher has the writing end */
    pid_t guard;          /* 0: none */
    char *path;
    uint8_t nonce[JOIN_NONCE_BYTES];
    job_joiner joiners[JOB_JOINERS];
} job_join_socket;

/* How far the end of the job has come. */
typedef enum job_stage {
    JOB_RUNS,
    JOB_GRACE,      /* a rank has died: the others may end by themselves */
    JOB_TERMINATED, /* they were told to */
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
    const job_stream *writing[2]; /* a part of its line stands on standard output, error; or NULL */
    int left;                     /* children that live */
    int signal_fd;
    int start_pipe[2]; /* children write a job_failure */
    bool start_failed;
    int status;
    job_stage stage;
    uint64_t stage_end_ns;
    int interrupts;    /* SIGINT so far */
    int passed_signal; /* the last one that ends programs; 0 for none */
    sigset_t old_mask;
    struct sigaction old_child_action;
    struct rlimit old_files; /* all zero: it was left as it is */
    pid_t launcher;
    pid_t *others; /* children that the launcher had before */
    size_t other_count;
    bool adopts; /* orphans become the launcher's children; before, it has started none */
} job;

/* watch.c: until every child has gone. */
void fy_job_watch(job *j);
/* As poll, of the places of `set` that have a descriptor. Behind its `count` places there is room
 * for as many. The system counts places, empty ones too, against the limit on descriptors. */
int fy_job_poll(struct pollfd *set, nfds_t count, int timeout_ms);
/* Sends a signal to every child that lives. */
void fy_job_signal(job *j, int number);

/* launch.c: what fy_launch does. */
int fy_job_launch(const fy_launch_plan *plan);
int fy_threads_run(const fy_threads_plan *plan); /* fy_launch_threads */
/* launch.c: starts a rank, which runs `argv`, or as planned when it is NULL. FERRY_ESYSTEM. */
int fy_job_start_child(job *j, int rank, char *const argv[]);

/* spawn.c: what a rank asks the launcher for. Strings follow it, each with its end. */
typedef struct job_request {
    uint32_t first, count;
    uint32_t arguments; /* 0: what the job runs */
    uint32_t bytes;
} job_request;
enum { JOB_REQUEST_BYTES = 64 * 1024 };

/* Makes the socket. FERRY_ESYSTEM. */
int fy_job_spawn_requests_open(job *j);
/* Serves one request that came by `fd`. False: nobody asks by it any more. */
bool fy_job_spawn_ranks(job *j, int fd);

/* join_socket.c. `path` is made, and removed however the launcher ends. FERRY_EINVAL,
 * FERRY_ESYSTEM: close is still to be called. No process may have been started before that knows
 * the job's files. */
void fy_join_socket_init(job_join_socket *join_socket);
int fy_join_socket_open(job_join_socket *join_socket, const char *path);
void fy_join_socket_close(job_join_socket *join_socket);

/* joiner.c */
void fy_joiner_accept(job *j);
bool fy_joiners_full(const job *j);
/* When the first of them has waited too long; UINT64_MAX: there are none. */
uint64_t fy_joiners_deadline_ns(const job *j);
void fy_joiners_expire(job *j);
/* One has said something, or hung up. */
void fy_joiner_hear(job *j, int index);
/* The process of a rank that joined has gone, or only its connection. */
void fy_joiner_gone(job *j, int rank, bool process);

/* end.c */
shm_state fy_job_state(const job *j, int rank);
/* Whether a rank has opened Ferry and did not die. */
bool fy_job_anyone_joined(const job *j);
/* Accounts for a child that has gone. */
void fy_job_child_gone(job *j, int rank, const siginfo_t *info);
void fy_job_next_stage(job *j);

/* orphans.c: processes that ranks started and did not wait for. */
int fy_job_orphans_begin(job *j);
void fy_job_orphans_end(job *j);

/* label.c */
int fy_stream_open(job_stream *stream, int target_fd, int *write_fd);
/* Writes what waits, then reads a piece. False: the writing has to wait, or there is nothing to
 * read now. Closes the stream at its end; then something may be pending still. */
bool fy_stream_read(job *j, job_stream *stream, int rank);
/* Whether lines wait for the target. Until it is ready, the stream is not read. */
bool fy_stream_pending(const job_stream *stream);
/* All ranks have ended: reads and writes what is left, unfinished lines too. If nobody reads, it
 * waits until a signal comes, or for half a second when the job has failed. */
void fy_streams_end(job *j);
/* Whether standard error takes a line without waiting. */
FY_SHARED bool fy_job_may_say(void);
/* A line about the job. Left out where nobody reads: the launcher waits for no reader. */
#define job_say(...) (fy_job_may_say() ? fy_log_line(-1, __VA_ARGS__) : (void)0)
void fy_stream_free(const job_stream *stream);

#endif
