/* Join: how a process that the job did not start becomes one of its ranks.
 *
 * The owner of a job names a folder (ferry_launch_options.join). The launcher makes the folder with
 * mode 0700. In it are a socket and a file of 16 random bytes, the nonce. A process of the same
 * user connects and sends the nonce. It gets a number and, by the socket, the job's segment. The
 * launcher then watches it as it watches its children.
 *
 * The connection stays: by it the rank asks for more ranks, and its end tells the launcher that the
 * rank has left. A pipe whose writing end the launcher alone has tells the rank that the launcher
 * has died: the kernel then sends SIGKILL. */
#ifndef FY_JOIN_H
#define FY_JOIN_H

#include "port/shm/shm.h"

#define JOIN_SOCKET "socket"
#define JOIN_NONCE "nonce"
#define JOIN_MAGIC UINT64_C(0x6e696f6a79727265)
#define JOIN_VERSION 1

enum { JOIN_NONCE_BYTES = 16, JOIN_FILES = 2 };

/* The process sends this, as one datagram. */
typedef struct join_hello {
    uint64_t magic;
    uint32_t version;
    uint32_t zero;
    uint8_t nonce[JOIN_NONCE_BYTES];
} join_hello;

typedef enum join_verdict {
    JOIN_WELCOME,
    JOIN_REFUSED, /* another version, or a wrong nonce */
    JOIN_FULL,    /* no numbers are left */
    JOIN_ENDS,    /* the job is ending */
    JOIN_FAILED,  /* the launcher could not do it */
} join_verdict;

/* The answer to it. With a welcome come JOIN_FILES descriptors: the segment, and the pipe. */
typedef struct join_answer {
    uint64_t magic;
    uint32_t verdict;
    uint32_t rank; /* with JOIN_FULL: how many numbers there were */
} join_answer;

/* Writes a short path of `name` in the open folder: the path of a socket has a limit, the folder's
 * own path has none. */
enum { JOIN_PATH_BYTES = 40 };
void fy_join_path(int folder, const char *name, char out[JOIN_PATH_BYTES]);

#endif
