/* Binding: what port nodes needs of a network, as a table: messages with tags between ranks that
 * something else has started, and one collective call.
 *
 * A binding is a folder beside the port: MPI (mpi/) and sockets on one machine (loopback/). It
 * fills this table, starts its network, and passes both to fy_nodes_open (open.h). The port asks
 * for no more than this table, so it does not use what a network does better.
 *
 * Order: messages of one tag from one rank to another are matched with receives in the order sent.
 * A message that no receive wants yet waits. It does not hold back messages of other tags.
 *
 * Progress: messages move while send, receive, test or allgather runs. Nothing wakes a sleeping
 * thread.
 *
 * Threads: one call at a time. If the binding says so at open, any thread may make it, else the
 * application thread alone. The table has no state of its own.
 *
 * Errors: int, 0 or a number of the binding, which `describe` explains. */
#ifndef FY_NODES_BINDING_H
#define FY_NODES_BINDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A set of ranks that the binding connects, numbered from 0: all of the job, or those of a node. */
typedef struct fy_nodes_net fy_nodes_net;

/* A send or receive in flight; all zero means none. */
typedef struct fy_nodes_request {
    uint64_t word;
} fy_nodes_request;

#define FY_NODES_ANY (-1)
#define FY_NODES_TESTED_MAX 2

typedef struct fy_nodes_binding {
    const char *port; /* the port's name in messages and traces: "mpi" */
    bool looks_dear;  /* each `test` makes a system call; false: the port measures one */

    /* Writes what an error is, as one line that ends with '\0'. [any thread] */
    void (*describe)(int error, char *out, size_t size);

    /* Gives this rank's number and how many ranks there are. [any thread] */
    void (*place)(const fy_nodes_net *net, int *rank, int *ranks);
    /* Gives the ranks of `net` that can share memory with the caller, in their order: `*out`,
     * freed with `close`. Collective. */
    int (*node)(fy_nodes_net *net, fy_nodes_net **out);
    /* Frees `net`, which has no message in flight. Collective. */
    void (*close)(fy_nodes_net *net);
    /* As `close`, for the net of the job, and ends what the binding has started. Collective:
     * returns when everything that was sent has been received, and every rank has called it. */
    void (*leave)(fy_nodes_net *net);

    /* Collects the `size_bytes` at `mine` of each rank in `all`, in the order of ranks. Collective.
     * Borrows both. */
    int (*allgather)(fy_nodes_net *net, const void *mine, size_t size_bytes, void *all);

    /* Starts to send to another rank of `net`. If the data may be reused immediately, the request
     * is none. Else keeps `data` until `test` says done. Never waits. */
    int (*send)(fy_nodes_net *net, const void *data, size_t size_bytes, int rank, int tag,
                fy_nodes_request *request);
    /* Starts to receive a message of at most `size_bytes` from a rank, or from any with
     * FY_NODES_ANY. Keeps `data` until `test` says done or `cancel` returns. */
    int (*receive)(fy_nodes_net *net, void *data, size_t size_bytes, int rank, int tag,
                   fy_nodes_request *request);
    /* Sets `*done` to whether the operation has ended. Then the request is none, and for a receive
     * `*source` and `*size_bytes` say what came. Both may be NULL. Never waits. */
    int (*test)(fy_nodes_request *request, bool *done, int *source, size_t *size_bytes);
    /* As `test`, for `count` requests, at most FY_NODES_TESTED_MAX, none of which is none: `*which`
     * is the index of one that has ended, or -1. May find the end of a request one call late. NULL:
     * the port calls `test` for each. */
    int (*test_any)(fy_nodes_request *const requests[], int count, int *which, int *source,
                    size_t *size_bytes);
    /* Ends a receive for which no message has come. */
    void (*cancel)(fy_nodes_request *request);

    /* Ends all processes of the job with `status`. Returns if that is not possible. */
    void (*abort)(int status);
    /* As `abort`, while other ranks may be in `leave`. */
    void (*abort_closing)(int status);
} fy_nodes_binding;

/* Reports that `call` of the binding has failed in open: FERRY_ELAUNCH with fy_error_set. */
int fy_nodes_failed(const fy_nodes_binding *binding, const char *call, int error);

#endif
