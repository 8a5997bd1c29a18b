/* Binding: what port nodes needs of a network, as a table: messages with tags between ranks that
 * somebody else has started, and one collective call.
 *
 * A binding is a folder beside the port: MPI (mpi/) and sockets on one machine (loopback/). It
 * fills this table, starts its network, and hands both to fy_nodes_open (open.h). The port asks for
 * no more than what follows, so what a network does better is not used.
 *
 * Order: messages of one tag from one rank to another are matched with receives in the order sent.
 * A message that nobody has asked for yet waits, and does not hold back those of other tags.
 *
 * Progress: messages move while any of send, receive, test and allgather runs. Nothing wakes a
 * sleeping thread.
 *
 * Threads: one call at a time, of any thread if the binding says so at open, else of the
 * application thread alone. The table has no state of its own.
 *
 * Errors: int, 0 or a number of the binding's own, for `describe`. */
#ifndef FY_NODES_BINDING_H
#define FY_NODES_BINDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Ranks that the binding connects, numbered from 0: all of the job, or those of a node. */
typedef struct fy_nodes_net fy_nodes_net;

/* A send or receive in flight; all zero means none. */
typedef struct fy_nodes_request {
    uint64_t word;
} fy_nodes_request;

#define FY_NODES_ANY (-1)

typedef struct fy_nodes_binding {
    const char *port; /* the port's name in messages and traces: "mpi" */

    /* Writes what an error is, as one line that ends with '\0'. [any thread] */
    void (*describe)(int error, char *out, size_t size);

    /* Gives this rank's number and how many ranks there are. [any thread] */
    void (*place)(const fy_nodes_net *net, int *rank, int *ranks);
    /* Gives the ranks of `net` that can share memory with the caller, in their order: `*out`,
     * freed with `close`. Collective. */
    int (*node)(fy_nodes_net *net, fy_nodes_net **out);
    /* Takes `net`, of which no message is in flight. Collective. */
    void (*close)(fy_nodes_net *net);
    /* The same for the net of the job, and ends what the binding has started. Collective: returns
     * when all that was sent is received, and every rank has called it. */
    void (*leave)(fy_nodes_net *net);

    /* Collects the `size_bytes` at `mine` of each rank in `all`, in the order of ranks. Collective.
     * Borrows both. */
    int (*allgather)(fy_nodes_net *net, const void *mine, size_t size_bytes, void *all);

    /* Starts to send to another rank of `net`. There is no request if the data may be reused
     * immediately. Keeps `data` until `test` says done. Never waits. */
    int (*send)(fy_nodes_net *net, const void *data, size_t size_bytes, int rank, int tag,
                fy_nodes_request *request);
    /* Starts to receive a message of at most `size_bytes`; from any rank with FY_NODES_ANY. Keeps
     * `data` until `test` says done or `cancel` returns. */
    int (*receive)(fy_nodes_net *net, void *data, size_t size_bytes, int rank, int tag,
                   fy_nodes_request *request);
    /* Says in `*done` whether it is over; then the request is none, and for receives `*source` and
     * `*size_bytes` say what came. Both may be NULL. Never waits. */
    int (*test)(fy_nodes_request *request, bool *done, int *source, size_t *size_bytes);
    /* Ends a receive that nothing has come for. */
    void (*cancel)(fy_nodes_request *request);

    /* Ends all processes of the job with `status`. Returns if that is not possible. */
    void (*abort)(int status);
    /* The same, while other ranks may be in `leave`. */
    void (*abort_closing)(int status);
} fy_nodes_binding;

/* A call of the binding that open made, `call`, has failed: FERRY_ELAUNCH with fy_error_set. */
int fy_nodes_failed(const fy_nodes_binding *binding, const char *call, int error);

#endif
