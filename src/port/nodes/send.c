/* Sending to other nodes: credit, messages, and messages that the binding still sends. */
#include "port/nodes/port_state.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "port/shm/layout.h"

/* The cost of a frame in the ring: its bytes, and in the top bit whether its payload follows. */
#define COST_FOLLOWS (UINT64_C(1) << 63)

/* REAP_MAX: messages that one look tests. UNTOLD_BRIEF_MAX: how many taken frames of a peer may
 * stay untold so that a frame can go without its head. */
enum { REAP_MAX = 4, UNTOLD_BRIEF_MAX = FRAMES_MAX / 8 };

static const size_t class_bytes[CLASSES] = {SMALL_BYTES, MESSAGE_MAX};
static const uint32_t class_kept_max[CLASSES] = {64, 8};

static departure *departure_get(nodes_port *p, size_t size_bytes)
{
    uint8_t class = size_bytes <= SMALL_BYTES ? SMALL : LARGE;
    departure *d = p->free_departures[class];
    if (d != NULL) {
        p->free_departures[class] = d->next;
        p->free_departure_count[class]--;
    } else {
        d = malloc(sizeof(*d) + class_bytes[class]);
    }
    if (d != NULL) {
        d->size_class = class;
        d->pieces = d->piece = 0;
        d->payload = NULL;
        d->heap = NULL;
        d->lent = NULL;
    }
    return d;
}

static void payload_free(nodes_port *p, void *payload, fy_port *heap)
{
    if (heap == NULL)
        free(payload);
    else if (heap != p->near || !p->closed)
        (void)heap->ops->heap.release(heap, payload);
}

static void departure_put(nodes_port *p, departure *d)
{
    uint8_t class = d->size_class;
    if (d->lent != NULL)
        /* release: pairs with the acquire of the sender, which then writes to the data */
        atomic_store_explicit(d->lent, false, memory_order_release);
    else if (d->payload != NULL)
        payload_free(p, d->payload, d->heap);
    if (p->free_departure_count[class] >= class_kept_max[class]) {
        free(d);
        return;
    }
    d->next = p->free_departures[class];
    p->free_departures[class] = d;
    p->free_departure_count[class]++;
}

/* Starts to send. Returns false if the binding has failed; then this rank is cut off. */
static bool binding_send(nodes_port *p, const void *data, size_t size_bytes, int rank, int tag,
                         fy_nodes_request *request)
{
    request->word = 0;
    int error = p->binding->send(p->net, data, size_bytes, rank, tag, request);
    if (error == 0)
        return true;
    char text[256];
    p->binding->describe(error, text, sizeof(text));
    fy_nodes_cut_off(p, rank, text);
    return false;
}

/* Keeps a departure until the binding has sent it. */
static void departure_keep(nodes_port *p, departure *d)
{
    d->next = NULL;
    if (p->leaving == NULL)
        p->leaving = d;
    else
        p->leaving_tail->next = d;
    p->leaving_tail = d;
}

/* Starts to send a message. Returns false if the binding has failed. */
static bool departure_start(nodes_port *p, departure *d, const void *data, size_t size_bytes,
                            int rank, int tag)
{
    d->rank = rank;
    bool started = binding_send(p, data, size_bytes, rank, tag, &d->request);
    if (d->request.word == 0)
        departure_put(p, d);
    else
        departure_keep(p, d);
    return started;
}

static fy_nodes_request *piece_request(departure *d, uint32_t piece)
{
    return (fy_nodes_request *)(void *)d->message + piece;
}

/* Whether the binding has sent a message, or all pieces of a payload. */
static bool is_sent(nodes_port *p, departure *d, bool *failed)
{
    bool done = true;
    if (d->pieces == 0)
        *failed = p->binding->test(&d->request, &done, NULL, NULL) != 0;
    for (; d->piece < d->pieces && done && !*failed; d->piece += done) {
        fy_nodes_request *request = piece_request(d, d->piece);
        if (request->word != 0)
            *failed = p->binding->test(request, &done, NULL, NULL) != 0;
    }
    return done;
}

bool fy_nodes_reap(nodes_port *p)
{
    for (int i = 0; i < REAP_MAX && p->leaving != NULL; i++) {
        departure *d = p->leaving;
        bool failed = false, done = is_sent(p, d, &failed);
        if (!done && !failed && d->next == NULL)
            break;
        p->leaving = d->next;
        d->next = NULL;
        if (failed)
            fy_nodes_cut_off(p, d->rank, "the test of a message to it failed");
        if (done || failed) {
            departure_put(p, d);
        } else {
            p->leaving_tail->next = d;
            p->leaving_tail = d;
        }
    }
    return p->leaving != NULL;
}

void fy_nodes_credit(endpoint *from, int rank, const uint32_t taken[FY_LANES])
{
    for (int lane = 0; lane < FY_LANES && from->peers[rank] != NULL; lane++) {
        outlet *o = &from->peers[rank]->out[lane];
        if (taken[lane] - o->taken > o->sent - o->taken)
            continue; /* more than was sent: the notice is damaged */
        for (; o->taken != taken[lane]; o->taken++) {
            uint64_t cost = o->costs[o->taken % FRAMES_MAX];
            if (cost & COST_FOLLOWS)
                o->following_bytes -= cost & ~COST_FOLLOWS;
            else
                o->frame_bytes -= cost;
        }
    }
}

static uint64_t frame_cost(const fy_frame *frame)
{
    if (frame->size_bytes > EAGER_MAX)
        return frame->size_bytes | COST_FOLLOWS;
    return sizeof(wire) + WORDS_BYTES + frame->size_bytes;
}

static bool has_room(const outlet *o, uint64_t cost)
{
    if (o->sent - o->taken >= FRAMES_MAX)
        return false;
    if (cost & COST_FOLLOWS)
        return o->following_bytes < UNTOLD_BYTES_MAX ||
               o->following_bytes + (cost & ~COST_FOLLOWS) <= FOLLOWING_BYTES_MAX;
    return o->frame_bytes + cost <= FRAME_BYTES_MAX;
}

static void charge(outlet *o, uint64_t cost)
{
    o->costs[o->sent++ % FRAMES_MAX] = cost;
    if (cost & COST_FOLLOWS)
        o->following_bytes += cost & ~COST_FOLLOWS;
    else
        o->frame_bytes += cost;
}

static inline bool is_routed(const nodes_port *p, const endpoint *from, int rank)
{
    return rank >= p->world || from->number >= p->world;
}

/* Writes the head, with what was taken of the target's frames, and the route. Returns where the
 * words go. */
static unsigned char *write_head(nodes_port *p, endpoint *from, int rank, const fy_frame *frame,
                                 uint64_t flags, unsigned char *message)
{
    bool routed = is_routed(p, from, rank);
    flags |= routed ? WIRE_ROUTED : 0;
    wire head = {
        .kind = frame->kind,
        .word_count = frame->word_count,
        .handler = frame->handler,
        .op = frame->op,
        .tag = frame->tag,
        .aux = frame->aux,
        .size_flags = frame->size_bytes | flags << WIRE_FLAGS_SHIFT,
    };
    for (int lane = 0; lane < FY_LANES && from->peers[rank] != NULL; lane++) {
        inlet *in = &from->peers[rank]->in[lane];
        head.taken[lane] = in->told = in->taken;
        in->untold_bytes = 0;
    }
    memcpy(message, &head, sizeof(head));
    message += sizeof(head);
    if (!routed)
        return message;
    const route way = {.source = (uint32_t)from->number, .target = (uint32_t)rank};
    memcpy(message, &way, sizeof(way));
    return message + sizeof(way);
}

bool fy_nodes_notice_with(nodes_port *p, endpoint *from, fy_lane lane, int rank, uint32_t flags,
                          const fy_frame *frame)
{
    size_t words = frame->word_count * sizeof(uint64_t);
    departure *d = departure_get(p, sizeof(wire) + sizeof(route) + words);
    if (d == NULL)
        return false;
    unsigned char *at = write_head(p, from, rank, frame, WIRE_NOTICE | flags, d->message);
    memcpy(at, frame->words, words);
    (void)departure_start(p, d, d->message, (size_t)(at - d->message) + words,
                          fy_nodes_home(p, rank), TAG_FRAME + (int)lane);
    return true;
}

bool fy_nodes_notice(nodes_port *p, endpoint *from, fy_lane lane, int rank, notices what)
{
    return fy_nodes_notice_with(p, from, lane, rank, 0, &(fy_frame){.aux = (uint32_t)what});
}

/* Prepares the payload that follows: the given or lent data, or room for a copy. */
static departure *prepare_payload(nodes_port *p, const endpoint *from, const fy_frame *frame,
                                  terms how, atomic_bool *lent)
{
    departure *d = departure_get(p, PIECES_MAX * sizeof(fy_nodes_request));
    if (d == NULL)
        return NULL;
    d->payload = (void *)(uintptr_t)frame->data;
    d->heap = from->heap;
    d->lent = lent;
    if (how == LENT)
        /* relaxed: set to false under the port's lock, or by this thread */
        atomic_store_explicit(lent, true, memory_order_relaxed);
    if (how != COPIED)
        return d;
    d->payload = d->heap->ops->heap.alloc(d->heap, frame->size_bytes, -1);
    if (d->payload == NULL) {
        d->heap = NULL;
        d->payload = malloc(frame->size_bytes);
    }
    if (d->payload == NULL) {
        departure_put(p, d);
        return NULL;
    }
    return d;
}

/* Copies one message of a payload, if it is to be copied, and starts to send it. */
static bool payload_send(nodes_port *p, departure *d, const fy_frame *frame, size_t at_byte,
                         size_t size_bytes, fy_lane lane, fy_nodes_request *request)
{
    unsigned char *at = (unsigned char *)d->payload + at_byte;
    if (d->payload != frame->data)
        memcpy(at, (const unsigned char *)frame->data + at_byte, size_bytes);
    return binding_send(p, at, size_bytes, d->rank, TAG_PAYLOAD + (int)lane, request);
}

/* Starts to send a payload. Each piece is copied just before it is sent: the network works
 * meanwhile. */
static void payload_start(nodes_port *p, departure *d, const fy_frame *frame, bool in_pieces,
                          fy_lane lane)
{
    bool started = true;
    d->request.word = 0;
    if (!in_pieces)
        (void)payload_send(p, d, frame, 0, frame->size_bytes, lane, &d->request);
    for (uint32_t i = 0; in_pieces && started && i < fy_nodes_pieces(frame->size_bytes); i++) {
        started =
            payload_send(p, d, frame, i * fy_nodes_piece_size(frame->size_bytes),
                         fy_nodes_piece_bytes(frame->size_bytes, i), lane, piece_request(d, i));
        d->pieces++;
        d->piece += piece_request(d, i)->word == 0 && d->piece == i;
    }
    if (d->piece == d->pieces && d->request.word == 0)
        departure_put(p, d);
    else
        departure_keep(p, d);
}

/* Whether a frame may go without its head: the target has the same head already, and need not hear
 * now what was taken of its frames. */
static bool is_brief(const peer *to, fy_lane lane, const fy_frame *frame)
{
    const wire *last = &to->out[lane].last;
    if (frame->size_bytes != 0 || frame->word_count > BRIEF_WORDS_MAX || to->out[lane].sent == 0 ||
        frame->kind != last->kind || frame->handler != last->handler || frame->op != last->op ||
        frame->tag != last->tag || frame->aux != last->aux)
        return false;
    for (int i = 0; i < FY_LANES; i++)
        if (to->in[i].taken - to->in[i].told >= UNTOLD_BRIEF_MAX)
            return false;
    return true;
}

static int send_brief(nodes_port *p, fy_lane lane, int rank, const fy_frame *frame)
{
    size_t size_bytes = frame->word_count * sizeof(uint64_t);
    departure *d = departure_get(p, size_bytes);
    if (d == NULL)
        return FERRY_ENOMEM;
    for (unsigned i = 0; i < frame->word_count; i++)
        memcpy(d->message + i * sizeof(uint64_t), &frame->words[i], sizeof(uint64_t));
    (void)departure_start(p, d, d->message, size_bytes, rank, TAG_FRAME + (int)lane);
    return 0;
}

static int nodes_send_frame(nodes_port *p, endpoint *from, fy_lane lane, int rank,
                            const fy_frame *frame, terms how, atomic_bool *lent)
{
    bool routed = is_routed(p, from, rank);
    if (!routed && is_brief(from->peers[rank], lane, frame))
        return send_brief(p, lane, rank, frame);
    bool follows = frame->size_bytes > EAGER_MAX;
    from->peers[rank]->lent = from->peers[rank]->lent || how == LENT;
    size_t words = frame->word_count * sizeof(uint64_t);
    size_t size_bytes =
        sizeof(wire) + (routed ? sizeof(route) : 0) + words + (follows ? 0 : frame->size_bytes);
    departure *d = departure_get(p, size_bytes);
    if (d == NULL)
        return FERRY_ENOMEM;
    departure *payload = follows ? prepare_payload(p, from, frame, how, lent) : NULL;
    if (follows && payload == NULL) {
        departure_put(p, d);
        return FERRY_ENOMEM;
    }
    bool in_pieces = follows && p->looks_dear && fy_nodes_pieces(frame->size_bytes) <= PIECES_MAX &&
                     (how == COPIED || frame->size_bytes <= SHORT_BYTES_MAX);
    uint64_t flags = (follows ? WIRE_FOLLOWS : 0) | (in_pieces ? WIRE_PIECES : 0);
    unsigned char *at = write_head(p, from, rank, frame, flags, d->message);
    memcpy(&from->peers[rank]->out[lane].last, d->message, sizeof(wire));
    memcpy(at, frame->words, words);
    if (!follows && frame->size_bytes > 0)
        memcpy(at + words, frame->data, frame->size_bytes);
    int home = fy_nodes_home(p, rank);
    /* If the frame is lost, its target counts as dead now, and its operation fails by that. */
    bool started = departure_start(p, d, d->message, size_bytes, home, TAG_FRAME + (int)lane);
    if (follows)
        payload->rank = home;
    if (follows && started)
        payload_start(p, payload, frame, in_pieces, lane);
    else if (follows)
        departure_put(p, payload);
    else if (how == GIVEN)
        (void)from->heap->ops->heap.release(from->heap, (void *)(uintptr_t)frame->data);
    return 0;
}

/* Finds room for a frame of `cost`, if necessary after a look for notices. */
static int find_room(nodes_port *p, endpoint *from, fy_lane lane, int rank, uint64_t cost,
                     outlet **out)
{
    peer *target = fy_nodes_peer(from, rank);
    if (target == NULL)
        return FERRY_ENOMEM;
    outlet *o = &target->out[lane];
    if (o->costs == NULL)
        o->costs = calloc(FRAMES_MAX, sizeof(*o->costs));
    if (o->costs == NULL)
        return FERRY_ENOMEM;
    *out = o;
    if (has_room(o, cost))
        return 0;
    fy_nodes_pump(p, FY_CONTROL);
    fy_nodes_pump(p, FY_DATA);
    return has_room(o, cost) ? 0 : FERRY_EAGAIN;
}

/* Whether data to be lent are rather copied. A sender of a stream would wait for a round trip after
 * each message, where a look makes a system call: that takes longer than a copy. Short payloads are
 * sent without waiting. */
static bool is_streamed(const nodes_port *p, const endpoint *from, int rank, const fy_frame *frame)
{
    return p->looks_dear && frame->size_bytes > SHORT_BYTES_MAX && from->peers[rank] != NULL &&
           from->peers[rank]->lent;
}

int fy_nodes_send_remote(nodes_port *p, endpoint *from, fy_lane lane, int rank,
                         const fy_frame *frame, terms how, atomic_bool *lent)
{
    if (frame->size_bytes >> WIRE_FLAGS_SHIFT != 0)
        return FERRY_ENOMEM;
    /* A rank that joined later gets it through a segment whose heaps are as large as those here. */
    if (rank >= p->world && frame->size_bytes > p->node->segment->heap_bytes)
        return FERRY_ENOMEM;
    lock(p);
    outlet *o;
    uint64_t cost = frame_cost(frame);
    if (how == LENT && is_streamed(p, from, rank, frame)) {
        how = COPIED;
        lent = NULL;
    }
    int error = fy_nodes_far_state(p, rank) != FY_PEER_ALIVE
                    ? FERRY_EPEER
                    : find_room(p, from, lane, rank, cost, &o);
    if (error == 0)
        error = nodes_send_frame(p, from, lane, rank, frame, how, lent);
    if (error == 0)
        charge(o, cost);
    unlock(p);
    return error;
}

void fy_nodes_departures_free(nodes_port *p)
{
    for (int class = 0; class < CLASSES; class ++)
        for (departure *d = p->free_departures[class], *next; d != NULL; d = next) {
            next = d->next;
            free(d);
        }
}
