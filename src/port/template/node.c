/* How ranks of different nodes reach each other, and how a job is made.
 *
 * Nodes share nothing. A message between them is a row of bytes: a head, then the data of a frame.
 * Messages from one rank to another keep their order. A network that loses or reorders them numbers
 * them per (source, target, lane), and restores the order before delivery.
 *
 * Here the thread that sends puts the message into the other node itself. A network has an
 * interrupt for that, or a thread, or the polls of the ranks that it is for. Port nodes
 * (port/nodes) does it by polls, over any network that carries messages with tags. */
#include "port/template/node.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"

fy_template_node *fy_template_node_of(fy_template_job *job, int rank)
{
    fy_template_node *node = job->nodes;
    while (rank >= node->first + node->count)
        node++;
    return node;
}

fy_template_place *fy_template_place_of(fy_template_node *node, int rank)
{
    bool is_here = rank >= node->first && rank < node->first + node->count;
    return is_here ? &node->places[rank - node->first] : NULL;
}

fy_template_queued *fy_template_copy(int source, const fy_frame *frame, const void *data)
{
    if (frame->size_bytes > SIZE_MAX - sizeof(fy_template_queued))
        return NULL;
    fy_template_queued *q = malloc(sizeof(*q) + frame->size_bytes);
    if (q == NULL)
        return NULL;
    *q = (fy_template_queued){.source = source, .frame = *frame};
    q->frame.data = frame->size_bytes > 0 ? q->data : NULL;
    q->frame.block = false;
    if (frame->size_bytes > 0)
        memcpy(q->data, data, frame->size_bytes);
    return q;
}

void fy_template_put(fy_template_place *target, fy_lane lane, fy_template_queued *q)
{
    fy_template_box *b = &target->boxes[lane];
    q->next = NULL;
    if (b->head == NULL)
        b->head = q;
    else
        b->tail->next = q;
    b->tail = q;
    b->count++;
    /* After the frame can be seen: a target that was about to sleep looks once more. */
    pthread_cond_broadcast(&target->notices);
}

fy_template_queued *fy_template_take(fy_template_box *box)
{
    fy_template_queued *q = box->head;
    if (q != NULL)
        box->head = q->next;
    return q;
}

void fy_template_return_credit(fy_template_credit *credit, size_t size_bytes)
{
    credit->messages--;
    credit->bytes -= size_bytes;
}

void fy_template_note_left(fy_template_node *node, int rank)
{
    node->states[rank] = FY_PEER_LEFT;
    node->events++;
    for (int i = 0; i < node->count; i++)
        pthread_cond_broadcast(&node->places[i].notices);
}

/* No byte of a peer may crash this node. So a head is checked before anything uses it, and is a
 * copy: the sender, or the network, could change it between the check and the use. */
static bool is_sound(fy_template_job *job, fy_template_node *node, const fy_template_head *head,
                     size_t data_bytes)
{
    if (head->kind >= FY_TEMPLATE_KINDS || head->lane >= FY_LANES || head->source < 0 ||
        head->source >= job->ranks || head->target < 0 || head->target >= job->ranks)
        return false;
    const fy_template_place *source = fy_template_place_of(node, head->source),
                            *target = fy_template_place_of(node, head->target);
    if (head->kind == FY_TEMPLATE_CREDIT) {
        const fy_template_credit *c =
            source == NULL ? NULL : &source->sent[head->lane][head->target];
        return c != NULL && target == NULL && data_bytes == 0 && c->messages > 0 &&
               c->bytes >= head->frame.size_bytes;
    }
    if (head->kind == FY_TEMPLATE_LEFT)
        return source == NULL && data_bytes == 0;
    return source == NULL && target != NULL && head->frame.word_count <= FY_FRAME_WORDS &&
           head->frame.size_bytes == data_bytes;
}

/* With the lock. Takes `q`, the frame of the message, if it has one. */
static void apply(fy_template_node *node, const fy_template_head *head, fy_template_queued *q)
{
    if (head->kind == FY_TEMPLATE_LEFT)
        fy_template_note_left(node, head->source);
    else if (head->kind == FY_TEMPLATE_CREDIT)
        fy_template_return_credit(
            &fy_template_place_of(node, head->source)->sent[head->lane][head->target],
            head->frame.size_bytes);
    else
        fy_template_put(fy_template_place_of(node, head->target), (fy_lane)head->lane, q);
}

int fy_template_arrive(fy_template_job *job, fy_template_node *node, const void *bytes,
                       size_t size_bytes)
{
    fy_template_head head = {.kind = FY_TEMPLATE_KINDS};
    fy_template_queued *q = NULL;
    if (size_bytes >= sizeof(head))
        memcpy(&head, bytes, sizeof(head));
    pthread_mutex_lock(&node->lock);
    int error = is_sound(job, node, &head, size_bytes - sizeof(head)) ? 0 : FERRY_EINVAL;
    /* A network cannot refuse a message that has come: it keeps the message until there is memory.
     */
    if (error == 0 && head.kind == FY_TEMPLATE_FRAME &&
        (q = fy_template_copy(head.source, &head.frame, (const char *)bytes + sizeof(head))) ==
            NULL)
        error = FERRY_ENOMEM;
    if (error == 0)
        apply(node, &head, q);
    pthread_mutex_unlock(&node->lock);
    if (error == FERRY_EINVAL)
        fy_log_line(-1, "port template: a message between nodes made no sense and was dropped");
    return error;
}

int fy_template_carry(fy_template_job *job, fy_template_node *node, const fy_template_head *head,
                      const void *data)
{
    size_t data_bytes = head->kind == FY_TEMPLATE_FRAME ? head->frame.size_bytes : 0;
    if (data_bytes == 0)
        return fy_template_arrive(job, node, head, sizeof(*head));
    char *bytes = data_bytes > SIZE_MAX - sizeof(*head) ? NULL : malloc(sizeof(*head) + data_bytes);
    if (bytes == NULL)
        return FERRY_ENOMEM;
    memcpy(bytes, head, sizeof(*head));
    memcpy(bytes + sizeof(*head), data, data_bytes);
    int error = fy_template_arrive(job, node, bytes, sizeof(*head) + data_bytes);
    free(bytes);
    return error;
}

static bool place_init(fy_template_place *own, int ranks)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&own->notices, &attributes);
    pthread_condattr_destroy(&attributes);
    for (int lane = 0; lane < FY_LANES; lane++)
        own->sent[lane] = calloc((size_t)ranks, sizeof(fy_template_credit));
    own->board = calloc(1, FY_BOARD_BYTES);
    return own->sent[FY_DATA] != NULL && own->sent[FY_CONTROL] != NULL && own->board != NULL;
}

static void place_fini(fy_template_place *own)
{
    for (int lane = 0; lane < FY_LANES; lane++) {
        for (fy_template_queued *q; (q = fy_template_take(&own->boxes[lane])) != NULL;)
            free(q);
        free(own->sent[lane]);
    }
    free(own->board);
    pthread_cond_destroy(&own->notices);
}

/* Makes the node of the ranks from `first` to `end` - 1. */
static bool node_init(fy_template_node *node, int ranks, int first, int end)
{
    pthread_mutex_init(&node->lock, NULL);
    node->first = first;
    node->states = calloc((size_t)ranks, sizeof(*node->states)); /* FY_PEER_ALIVE is 0 */
    node->places = calloc((size_t)(end - first), sizeof(*node->places));
    bool full = node->states != NULL && node->places != NULL;
    for (; node->places != NULL && node->count < end - first; node->count++)
        full = place_init(&node->places[node->count], ranks) && full;
    return full;
}

fy_template_job *fy_template_job_create(int ranks, int nodes)
{
    fy_template_job *job = calloc(1, sizeof(*job));
    if (job == NULL)
        return NULL;
    bool full = (job->nodes = calloc((size_t)nodes, sizeof(*job->nodes))) != NULL;
    job->ranks = ranks;
    for (; full && job->node_count < nodes; job->node_count++)
        full = node_init(&job->nodes[job->node_count], ranks, ranks * job->node_count / nodes,
                         ranks * (job->node_count + 1) / nodes);
    if (full)
        return job;
    fy_template_job_destroy(job);
    return NULL;
}

void fy_template_job_destroy(fy_template_job *job)
{
    for (int i = 0; i < job->node_count; i++) {
        fy_template_node *node = &job->nodes[i];
        for (int rank = 0; rank < node->count; rank++)
            place_fini(&node->places[rank]);
        pthread_mutex_destroy(&node->lock);
        free(node->places);
        free(node->states);
    }
    free(job->nodes);
    free(job);
}
