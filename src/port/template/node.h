/* Node: what the ranks of one node share, and the messages between nodes. */
#ifndef FY_TEMPLATE_NODE_H
#define FY_TEMPLATE_NODE_H

#include <pthread.h>

#include "port/template/template.h"

/* A frame in flight within a node, with a copy of its data. */
typedef struct fy_template_queued {
    struct fy_template_queued *next;
    int source;
    fy_frame frame;
    _Alignas(16) unsigned char data[];
} fy_template_queued;

typedef struct fy_template_box {
    fy_template_queued *head, *tail;
    _Atomic uint64_t count; /* queued messages here and in the hands of a poll */
} fy_template_box;

/* The frames in flight from one rank to another on one lane. */
typedef struct fy_template_credit {
    uint32_t messages;
    size_t bytes;
} fy_template_credit;

/* A rank, for the ranks of its node. */
typedef struct fy_template_place {
    fy_template_box boxes[FY_LANES];
    fy_template_credit *sent[FY_LANES]; /* by target, of the whole job */
    pthread_cond_t notices;
    fy_thread serve;
    bool woken[FY_THREADS];
    uint32_t events_seen[FY_THREADS];
    void *board;
} fy_template_place;

/* A node: its lock guards the rest. */
typedef struct fy_template_node {
    pthread_mutex_t lock;
    int first, count; /* its ranks */
    fy_template_place *places;
    fy_peer_state *states; /* of all ranks of the job, as far as this node has heard */
    uint32_t events;       /* how often one of `states` has changed */
} fy_template_node;

struct fy_template_job {
    int ranks, node_count;
    fy_template_node *nodes;
};

/* The kinds of messages between nodes. */
typedef enum fy_template_wire {
    FY_TEMPLATE_FRAME,  /* the data of `frame` follow */
    FY_TEMPLATE_CREDIT, /* `target` has taken a frame of so many bytes: `source` may send more */
    FY_TEMPLATE_LEFT,   /* `source` has left; it sends nothing after that */
    FY_TEMPLATE_KINDS,
} fy_template_wire;

/* The head of a message between nodes. */
typedef struct fy_template_head {
    uint32_t kind, lane;
    int32_t source, target;
    fy_frame frame; /* `data` means nothing on another node */
} fy_template_head;

fy_template_node *fy_template_node_of(fy_template_job *job, int rank);

/* The place of `rank`, or NULL if it is on another node. */
fy_template_place *fy_template_place_of(fy_template_node *node, int rank);

/* The node gets a message of `size_bytes` bytes from another. FERRY_EINVAL: it made no sense and
 * was dropped. FERRY_ENOMEM. */
int fy_template_arrive(fy_template_job *job, fy_template_node *node, const void *bytes,
                       size_t size_bytes);

/* Sends a message to `node`; its frame's data follow the head. FERRY_ENOMEM. */
int fy_template_carry(fy_template_job *job, fy_template_node *node, const fy_template_head *head,
                      const void *data);

/* A copy of a frame and its data, or NULL without memory. */
fy_template_queued *fy_template_copy(int source, const fy_frame *frame, const void *data);

/* With the lock of the node. */
void fy_template_put(fy_template_place *target, fy_lane lane, fy_template_queued *q);
fy_template_queued *fy_template_take(fy_template_box *box);
void fy_template_return_credit(fy_template_credit *credit, size_t size_bytes);
void fy_template_note_left(fy_template_node *node, int rank);

#endif
