/* Broadcast of requests: runs a handler on every rank but the root, along a binomial tree.
 *
 * The tree is over the ranks that the root knows to be present. The data begin with a head that
 * names the root. If the tree does not have all ranks, the head has the set of its ranks. So each
 * rank knows its place in the tree from its distance to the root. If a child has gone since, the
 * frame goes to the children of that child. A rank passes the frame on as soon as it polls,
 * whatever tag it polls for. Then it handles the frame immediately. If older requests wait, the
 * frame joins the rank's queue to itself, and a frame of this kind in that queue is only run, not
 * passed on. Links keep order, so broadcasts of one root stay in order.
 *
 * A tracked broadcast ends from the leaves up. A rank's record counts its children and the rank
 * itself. When all have ended, the rank tells its parent. */
#include <string.h>

#include "core/fail.h"
#include "core/kinds.h"
#include "core/membership.h"
#include "core/operation.h"
#include "core/outgoing.h"
#include "core/parts.h"
#include "core/rank.h"
#include "core/work.h"

typedef struct broadcast_head {
    int32_t root;
    uint32_t words; /* of the set that follows, a bit per rank; 0: of all */
} broadcast_head;

/* Ranks are numbered by their distance from the root, around the ring of the ranks in the tree. */
typedef struct tree {
    int root, ranks;     /* of the job */
    int size, position;  /* how many are in it; this rank's place, the root's is 0 */
    const uint64_t *set; /* NULL: all */
} tree;

/* The ends for which a rank waits before it tells its parent; at the root, before it ends its own
 * operation. */
typedef struct broadcast_record {
    fy_parts parts;
    fy_packet *end; /* to tell the parent, made beforehand; NULL at the root */
    int parent;
    uint32_t op;
} broadcast_record;

void fy_request_broadcast_pool_init(fy_pool *pool)
{
    fy_pool_init(pool, sizeof(broadcast_record), 16);
}

/* Children of the rank at `position` are position + bit for each bit below this one. */
static int lowest_bit(const tree *t, int position)
{
    int bit = 1;
    while (position == 0 ? bit < t->size : (position & bit) == 0)
        bit *= 2;
    return bit;
}

static int rank_at(const tree *t, int position)
{
    int rank = (int)(((int64_t)t->root + position) % t->ranks);
    if (t->set == NULL)
        return rank;
    rank = t->root;
    while (position > 0) {
        rank = rank + 1 == t->ranks ? 0 : rank + 1;
        position -= fy_set_has(t->set, rank);
    }
    return rank;
}

/* The place of `self` in a tree of all ranks, or of those in `set`. */
static tree tree_of(const ferry *f, int root, const uint64_t *set)
{
    tree t = {.root = root, .ranks = f->head.ranks, .size = f->head.ranks, .set = set};
    t.position = (f->head.rank - root + f->head.ranks) % f->head.ranks;
    if (set == NULL)
        return t;
    int distance = t.position;
    t.size = t.position = 0;
    for (int i = 0; i < f->head.ranks; i++) {
        bool in = fy_set_has(set, (int)(((int64_t)root + i) % f->head.ranks));
        t.size += in;
        t.position += in && i < distance;
    }
    return t;
}

static void broadcast_ended(ferry *f, fy_parts *parts)
{
    broadcast_record *record = (broadcast_record *)parts;
    if (record->end == NULL) {
        fy_op_end(f, record->op, parts->error);
    } else {
        /* This rank has left before its children had answered: the root gave nothing up. */
        int64_t error = parts->error == FERRY_ECANCELED ? FERRY_EPEER : parts->error;
        const fy_frame frame = {
            .kind = FY_KIND_END, .word_count = 2, .words = {record->op, (uint64_t)error}};
        fy_packet_fill(record->end, record->parent, FY_DATA, &frame);
        (void)fy_send_packet(f, record->end); /* a parent that is gone waits for no end */
    }
    fy_pool_put(&f->broadcasts, record);
}

/* An operation that is one part of `record`; 0 when there is nothing to track. */
static int start_part(ferry *f, broadcast_record *record, int rank, const fy_frame *frame,
                      uint32_t *op)
{
    *op = 0;
    return record == NULL
               ? 0
               : fy_part_start(f, &record->parts, rank, frame->tag, frame->size_bytes, op);
}

/* `own`: this rank is the root. */
static int send_child(ferry *f, broadcast_record *record, int rank, const fy_frame *frame, bool own)
{
    fy_frame copy = *frame;
    int error = start_part(f, record, rank, frame, &copy.op);
    if (error != 0)
        return error;
    fy_peer *peer = fy_peer_of(f, rank);
    if (peer == NULL)
        error = FERRY_ENOMEM;
    else
        error = own ? fy_send_paced(f, rank, &copy, NULL) : fy_send(f, FY_DATA, rank, &copy);
    if (error == 0) {
        fy_work_created(f, 1);
        (void)fy_work_leaves(f, rank, 1); /* there is a record */
    } else if (record != NULL) {
        fy_part_drop(f, &record->parts, copy.op);
    }
    return error;
}

/* Sends to every child of `position`, the one with the largest subtree first. If a child has gone,
 * sends to its children. Returns the first error. */
static int send_children(ferry *f, broadcast_record *record, const tree *t, int position,
                         const fy_frame *frame, bool own)
{
    int error = 0;
    for (int bit = lowest_bit(t, position) / 2; bit > 0; bit /= 2) {
        if (bit >= t->size - position)
            continue;
        int rank = rank_at(t, position + bit);
        if (fy_peer_is_gone(f, rank))
            (void)fy_peers_arrived(f, rank); /* the root knows more */
        int one = send_child(f, record, rank, frame, own);
        if (one == FERRY_EPEER)
            one = send_children(f, record, t, position + bit, frame, own);
        error = error == 0 ? one : error;
    }
    return error;
}

/* The size of the head, before the bytes of the request. */
static size_t head_bytes(const broadcast_head *head)
{
    return sizeof(*head) + head->words * sizeof(uint64_t);
}

static int run_here(ferry *f, const fy_frame *frame)
{
    broadcast_head head;
    memcpy(&head, frame->data, sizeof(head));
    fy_frame request = *frame;
    request.size_bytes -= head_bytes(&head);
    request.data = (const unsigned char *)frame->data + head_bytes(&head);
    int error = fy_request_run(f, head.root, &request);
    f->head.work_finished++;
    return error;
}

/* Whether this frame may be handled now, because no earlier request that this poll may run waits.
 */
static bool is_first(const ferry *f, const fy_frame *frame)
{
    if (f->self.head != NULL)
        return false;
    return f->filtered
               ? frame->tag == f->filter_tag && !fy_tags_has(&f->tags, f->head.rank, frame->tag)
               : f->tags.count == 0;
}

/* The record of a tracked frame from `parent`, or NULL without memory. */
static broadcast_record *create_record(ferry *f, int parent, uint32_t op)
{
    broadcast_record *record = fy_pool_get(&f->broadcasts);
    if (record == NULL)
        return NULL;
    *record = (broadcast_record){
        .parts = {.count = 1, .ended = broadcast_ended}, .parent = parent, .op = op};
    record->end = fy_packet_create(&f->packets, 0);
    if (record->end != NULL)
        return record;
    fy_pool_put(&f->broadcasts, record);
    return NULL;
}

/* Passes on the frame from `source`. Runs this rank's own part if `self`, a packet for the frame,
 * is not NULL. */
static void pass_on(ferry *f, broadcast_record *record, const tree *t, const fy_frame *frame,
                    fy_packet *self)
{
    int error = send_children(f, record, t, t->position, frame, false);
    if (error != 0 && error != FERRY_EPEER && record == NULL)
        fy_log(f, "a broadcast of rank %d does not reach all: %s", t->root, ferry_error_message(f));
    if (self == NULL) {
        int own = run_here(f, frame);
        error = error == 0 ? own : error;
    } else {
        fy_frame own = *frame;
        int started = start_part(f, record, f->head.rank, frame, &own.op);
        error = error == 0 ? started : error;
        fy_packet_fill(self, f->head.rank, FY_DATA, &own);
        fy_queue_push(&f->self, self);
        fy_rest_due(f);
    }
    if (record != NULL)
        fy_part_end(f, &record->parts, error);
}

/* The tree that a frame from `source` names, if the source is above this rank in it. */
static bool read_tree(const ferry *f, int source, const fy_frame *frame, tree *out)
{
    broadcast_head head;
    if (frame->size_bytes < sizeof(head))
        return false;
    memcpy(&head, frame->data, sizeof(head));
    if (head.root < 0 || head.root >= f->head.ranks || head.root == f->head.rank ||
        (head.words != 0 && head.words != fy_set_words(f->head.ranks)) ||
        frame->size_bytes < head_bytes(&head))
        return false;
    const void *behind = (const unsigned char *)frame->data + sizeof(head);
    const uint64_t *set = head.words == 0 ? NULL : behind;
    if (set != NULL && (!fy_set_has(set, f->head.rank) || !fy_set_has(set, head.root)))
        return false;
    *out = tree_of(f, head.root, set);
    int above = out->position;
    do
        above -= lowest_bit(out, above);
    while (above > 0 && rank_at(out, above) != source);
    return rank_at(out, above) == source;
}

fy_verdict fy_request_broadcast_deliver(ferry *f, int source, const fy_frame *frame)
{
    if (source == f->head.rank) {
        int error = run_here(f, frame);
        fy_op_end(f, frame->op, error);
        return FY_TAKEN;
    }
    tree t;
    if (!read_tree(f, source, frame, &t)) {
        fy_bad_frame(f, source, frame, "part of a broadcast");
        return FY_TAKEN;
    }
    fy_packet *self = NULL;
    broadcast_record *record = NULL;
    if (fy_peer_of(f, source) == NULL)
        return FY_LEAVE;
    if (!is_first(f, frame) && (self = fy_packet_create(&f->packets, frame->size_bytes)) == NULL)
        return FY_LEAVE;
    if (frame->op != 0 && (record = create_record(f, source, frame->op)) == NULL) {
        if (self != NULL)
            fy_packet_destroy(&f->packets, self);
        return FY_LEAVE;
    }
    (void)fy_work_arrives(f, source, 1); /* there is a record */
    pass_on(f, record, &t, frame, self);
    return FY_TAKEN;
}

/* Starts the caller's operation and its record; `*record` stays NULL without `track`. */
static int start_tracking(ferry *f, const fy_frame *frame, const ferry_track *track,
                          broadcast_record **record)
{
    uint32_t op;
    int error = fy_op_start(f, track, f->head.rank, frame->tag, frame->size_bytes, &op);
    if (error != 0 || op == 0)
        return error;
    *record = fy_pool_get(&f->broadcasts);
    if (*record == NULL) {
        fy_op_drop(f, op);
        return fy_fail(f, FERRY_ENOMEM, "request_broadcast: no memory to track it");
    }
    **record = (broadcast_record){.parts = {.count = 1, .ended = broadcast_ended}, .op = op};
    (void)fy_op_hold(f, op, true);
    return 0;
}

int ferry_request_broadcast(ferry *f, const ferry_message *message, const ferry_track *track)
{
    fy_frame frame;
    int error = fy_request_frame(f, message, &frame);
    if (error == 0)
        error = fy_check_room(f, "request_broadcast");
    if (error != 0)
        return error;
    bool all = f->peers.gone_count == 0;
    const broadcast_head head = {.root = f->head.rank,
                                 .words = all ? 0 : (uint32_t)fy_set_words(f->head.ranks)};
    fy_packet *packet =
        message->size_bytes > SIZE_MAX - head_bytes(&head)
            ? NULL
            : fy_packet_create(&f->packets, head_bytes(&head) + message->size_bytes);
    if (packet == NULL)
        return fy_fail(f, FERRY_ENOMEM, "request_broadcast: no memory for %zu bytes",
                       message->size_bytes);
    unsigned char *data = fy_packet_data(packet);
    memcpy(data, &head, sizeof(head));
    uint64_t *set = all ? NULL : (uint64_t *)(void *)(data + sizeof(head));
    for (size_t i = 0; i < head.words; i++)
        set[i] = ~f->peers.gone[i];
    if (message->size_bytes > 0)
        memcpy(data + head_bytes(&head), message->data, message->size_bytes);
    frame.kind = FY_KIND_REQUEST_BROADCAST;
    broadcast_record *record = NULL;
    error = start_tracking(f, &frame, track, &record);
    frame.data = data;
    frame.size_bytes += head_bytes(&head);
    const tree t = tree_of(f, f->head.rank, set);
    uint64_t sent_before = f->head.work_created;
    if (error == 0)
        error = send_children(f, record, &t, 0, &frame, true);
    fy_packet_destroy(&f->packets, packet);
    f->head.stats.requests_sent += error == 0;
    if (record == NULL)
        return error;
    (void)fy_op_hold(f, record->op, false);
    /* If no frame has left, the call fails; otherwise the operation does. */
    if (error != 0 && f->head.work_created == sent_before) {
        fy_op_drop(f, record->op);
        fy_pool_put(&f->broadcasts, record);
        return error;
    }
    fy_op_submitted(f, record->op);
    fy_part_end(f, &record->parts, error);
    return 0;
}
