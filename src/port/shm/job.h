/* A running job as its launcher sees it. For launch.c, watch.c, end.c and label.c. */
#ifndef FY_SHM_JOB_H
#define FY_SHM_JOB_H

#include <signal.h>
#include <sys/types.h>

#include "port/shm/layout.h"

/* A pipe that a rank writes to, whose lines go on with a label. */
typedef struct job_stream {
    int fd; /* -1: closed */
    int target_fd;
    char *line; /* what came of the line so far */
    size_t used, room;
} job_stream;

typedef struct job_child {
    pid_t pid;
    int pidfd; /* -1: gone */
    job_stream streams[2];
} job_child;

/* How far the end of the job has come. */
typedef enum job_stage {
    JOB_RUNS,
    JOB_GRACE,      /* a rank has died: the others may end by themselves */
    JOB_TERMINATED, /* they were told to */
    JOB_KILLED,
} job_stage;

typedef struct job {
    const fy_launch_plan *plan;
    int ranks;    /* places for children */
    int starting; /* children at the start */
    int recruits; /* our end of the socket by which ranks ask for more; -1: none */
    int recruits_theirs;
    int segment_fd;
    fy_controls controls; /* base NULL without a segment */
    job_child *children;
    int left; /* children that live */
    int signal_fd;
    int start_pipe[2]; /* a child writes errno when it cannot exec */
    bool start_failed;
    int status;
    job_stage stage;
    uint64_t stage_end_ns;
    int interrupts;    /* SIGINT so far */
    int passed_signal; /* the last one that ends programs; 0 for none */
    sigset_t old_mask;
    struct sigaction old_child_action;
    pid_t launcher;
    pid_t *others; /* children that the launcher had before */
    size_t other_count;
    bool adopts; /* orphans become the launcher's children; before, it has started none */
} job;

/* watch.c: until every child has gone. */
void fy_job_watch(job *j);
/* Sends a signal to every child that lives. */
void fy_job_signal(job *j, int number);

/* launch.c: starts a rank, which runs `argv`, or as planned when it is NULL. FERRY_ESYSTEM. */
int fy_job_start_child(job *j, int rank, char *const argv[]);

/* recruit.c: what a rank asks the launcher for. Strings follow it, each with its end. */
typedef struct job_request {
    uint32_t first, count;
    uint32_t arguments; /* 0: what the job runs */
    uint32_t bytes;
} job_request;
enum { JOB_REQUEST_BYTES = 64 * 1024 };

/* Makes the socket. FERRY_ESYSTEM. */
int fy_job_recruits_open(job *j);
/* Serves one request. */
void fy_job_recruit(job *j);

/* end.c */
/* Accounts for a child that has gone. */
void fy_job_child_gone(job *j, int rank, const siginfo_t *info);
void fy_job_next_stage(job *j);

/* orphans.c: processes that ranks started and did not wait for. */
int fy_job_orphans_begin(job *j);
void fy_job_orphans_end(job *j);

/* label.c */
int fy_stream_open(job_stream *stream, int target_fd, int *write_fd);
/* Reads a piece; false when there is none now. Closes the stream at its end. */
bool fy_stream_read(job_stream *stream, int rank);
/* Reads what there is, writes an unfinished line too, and closes. */
void fy_stream_end(job_stream *stream, int rank);

#endif
