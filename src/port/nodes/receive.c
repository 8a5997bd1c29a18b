/* Receiving from other nodes. No message is copied: frames are delivered from where the binding put
 * them. */
#include "port/nodes/port_state.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "port/nodes/relay.h"

enum { FREE_SLOTS_MAX = 64 };

/* The target tells a source what it has taken: after this many frames, or UNTOLD_BYTES_MAX bytes of
 * frames and payloads, at the latest. The numbers are small against what may be in flight:
 * otherwise each could wait for the other. */
enum { UNTOLD_FRAMES_MAX = FRAMES_MAX / 4 };

static slot *slot_get(nodes_port *p)
{
    slot *s = p->free_slots;
    if (s == NULL) {
        s = malloc(sizeof(*s));
    } else {
        p->free_slots = s->next;
        p->free_slot_count--;
    }
    if (s != NULL)
        memset(s, 0, offsetof(slot, message));
    return s;
}

static void slot_put(nodes_port *p, slot *s)
{
    if (p->free_slot_count >= FREE_SLOTS_MAX) {
        free(s);
        return;
    }
    s->next = p->free_slots;
    p->free_slots = s;
    p->free_slot_count++;
}

static int inlet_post(nodes_port *p, fy_lane lane, slot *s)
{
    int error = p->binding->receive(p->net, s->message, MESSAGE_MAX, FY_NODES_ANY,
                                    TAG_FRAME + (int)lane, &s->request);
    if (error == 0)
        return 0;
    char text[256];
    p->binding->describe(error, text, sizeof(text));
    fy_log_line(p->rank, "a receive cannot be started: %s", text);
    return FERRY_ELAUNCH;
}

/* Posts receives at the empty places, as far as there is memory. */
static int post_spent(nodes_port *p, fy_lane lane)
{
    posted *set = &p->posted[lane];
    for (; set->spent > 0; set->spent--) {
        slot *s = slot_get(p);
        if (s == NULL)
            return FERRY_ENOMEM;
        int error = inlet_post(p, lane, s);
        if (error != 0) {
            slot_put(p, s);
            return error;
        }
        set->slots[(set->first + set->count - set->spent) % set->count] = s;
    }
    return 0;
}

int fy_nodes_post_all(nodes_port *p)
{
    p->posted[FY_DATA] = (posted){.count = POSTED_DATA, .spent = POSTED_DATA};
    p->posted[FY_CONTROL] = (posted){.count = POSTED_CONTROL, .spent = POSTED_CONTROL};
    int error = post_spent(p, FY_DATA);
    return error != 0 ? error : post_spent(p, FY_CONTROL);
}

static wire head_of(const slot *s)
{
    wire head;
    memcpy(&head, s->message, sizeof(head));
    return head;
}

static uint64_t flags_of(const wire *head)
{
    return head->size_flags >> WIRE_FLAGS_SHIFT;
}

static size_t payload_bytes(const wire *head)
{
    return head->size_flags & ((UINT64_C(1) << WIRE_FLAGS_SHIFT) - 1);
}

/* Whether a message has the length that its head says. */
static bool inlet_is_sound(const slot *s, const wire *head)
{
    if (s->size_bytes < sizeof(wire) || head->word_count > FY_FRAME_WORDS)
        return false;
    size_t way = (flags_of(head) & WIRE_ROUTED) != 0 ? sizeof(route) : 0;
    size_t body = sizeof(wire) + way + head->word_count * sizeof(uint64_t);
    if ((flags_of(head) & WIRE_PIECES) && fy_nodes_pieces(payload_bytes(head)) > PIECES_MAX)
        return false;
    if (flags_of(head) & WIRE_FOLLOWS)
        return s->size_bytes == body && payload_bytes(head) > EAGER_MAX;
    return payload_bytes(head) <= EAGER_MAX && s->size_bytes == body + payload_bytes(head);
}

static void list(inlets *set, inlet *in)
{
    in->next = NULL;
    in->listed = true;
    if (set->head == NULL)
        set->head = in;
    else
        set->tail->next = in;
    set->tail = in;
}

static void line_up(fy_lane lane, inlet *in, slot *s)
{
    s->next = NULL;
    in->to->peers[in->source]->lent = false;
    if (in->head == NULL)
        in->head = s;
    else
        in->tail->next = s;
    in->tail = s;
    if (!in->listed)
        list(&in->to->inlets[lane], in);
}

/* Finds source and target of a message, and checks both. Returns false if they cannot be, or, with
 * `*to` NULL, if there is no memory to take the message. */
static bool find_ends(nodes_port *p, const slot *s, const wire *head, int *source, endpoint **to)
{
    route way = {.source = (uint32_t)s->source, .target = (uint32_t)p->rank};
    if (flags_of(head) & WIRE_ROUTED)
        memcpy(&way, s->message + sizeof(wire), sizeof(way));
    *to = &p->self;
    if (way.source >= (uint32_t)p->ranks || way.target >= (uint32_t)p->ranks ||
        fy_nodes_home(p, (int)way.source) != s->source ||
        ((flags_of(head) & WIRE_ROUTED) != 0 &&
         (p->place[way.source] >= 0 || (flags_of(head) & WIRE_WAITS) != 0)))
        return false;
    *source = (int)way.source;
    if (way.target == (uint32_t)p->rank)
        return true;
    bool ours = p->relay != NULL && way.target >= (uint32_t)p->world && p->place[way.target] >= 0;
    *to = ours ? fy_nodes_relay_end(p->relay, (int)way.target) : &p->self;
    return ours && *to != NULL;
}

/* Whether a message is a frame without its head. */
static bool is_brief(const slot *s)
{
    return s->size_bytes < sizeof(wire) && s->size_bytes % sizeof(uint64_t) == 0;
}

static bool drop_damaged(nodes_port *p, slot *s)
{
    fy_log_line(p->rank, "dropped a damaged message of %zu bytes from rank %d", s->size_bytes,
                s->source);
    fy_nodes_cut_off(p, s->source, "it was damaged");
    slot_put(p, s);
    return true;
}

/* Puts a message with a head into its queue; see take_in. */
static bool take_in_whole(nodes_port *p, fy_lane lane, slot *s)
{
    if (s->size_bytes < sizeof(wire))
        return drop_damaged(p, s);
    wire head = head_of(s);
    uint64_t flags = flags_of(&head);
    endpoint *to = NULL;
    int source = s->source;
    if (!inlet_is_sound(s, &head) || !find_ends(p, s, &head, &source, &to))
        return to == NULL && inlet_is_sound(s, &head) ? false : drop_damaged(p, s);
    peer *from = fy_nodes_peer(to, source);
    if (from == NULL)
        return false;
    inlet *in = &from->in[lane];
    /* A payload that nobody wants any more is still received: its sender waits for that. */
    bool closed = to == &p->self && p->closed;
    bool wanted = !(flags & WIRE_NOTICE) && (!closed || (flags & WIRE_FOLLOWS));
    if (wanted && (flags & WIRE_FOLLOWS) && !fy_nodes_payload_room(p, to, s, payload_bytes(&head)))
        return false;
    fy_nodes_credit(to, source, head.taken);
    if (flags & WIRE_NOTICE) {
        if (flags & WIRE_WAITS)
            fy_nodes_heard(p, s->source, &head, s->message + sizeof(wire));
        else
            fy_nodes_take_notices(p, source, head.aux);
    } else {
        fy_nodes_take_arrival(p, source);
        in->last = head;
        in->headed = !(flags & WIRE_ROUTED);
    }
    if (!wanted) {
        slot_put(p, s);
        return true;
    }
    s->head = head;
    s->word_count = head.word_count;
    s->words = s->message + sizeof(wire) + ((flags & WIRE_ROUTED) != 0 ? sizeof(route) : 0);
    s->data_bytes = payload_bytes(&head);
    if (flags & WIRE_FOLLOWS)
        fy_nodes_payload_receive(p, lane, s, (flags & WIRE_PIECES) != 0);
    line_up(lane, in, s);
    return true;
}

/* Puts a message into the queue of its source. Returns false if there is no memory now; a second
 * call then repeats nothing. */
static bool take_in(nodes_port *p, fy_lane lane, slot *s)
{
    const peer *from = p->self.peers[s->source];
    if (from == NULL || !from->in[lane].headed || !is_brief(s))
        return take_in_whole(p, lane, s);
    if (p->closed) {
        slot_put(p, s);
        return true;
    }
    inlet *in = &p->self.peers[s->source]->in[lane];
    s->head = in->last;
    s->word_count = (uint8_t)(s->size_bytes / sizeof(uint64_t));
    s->words = s->message;
    line_up(lane, in, s);
    return true;
}

/* Takes in the oldest message. Returns whether one had come. */
static bool pump_one(nodes_port *p, fy_lane lane)
{
    posted *set = &p->posted[lane];
    p->pumped = lane;
    int error = set->spent > set->count / 2 ? post_spent(p, lane) : 0;
    if (set->spent == set->count) {
        if (error == FERRY_ELAUNCH)
            fy_nodes_cut_off(p, -1, "a receive from any rank failed");
        return false; /* there is no memory for a receive now */
    }
    slot *s = set->slots[set->first];
    if (!fy_nodes_has_come(p, lane, s))
        return false;
    if (s->source < 0) {
        fy_nodes_cut_off(p, -1, "the test of a receive from any rank failed");
        slot_put(p, s);
    } else if (!take_in(p, lane, s)) {
        return false;
    }
    set->slots[set->first] = NULL;
    set->first = (set->first + 1) % set->count;
    set->spent++;
    return true;
}

void fy_nodes_pump(nodes_port *p, fy_lane lane)
{
    if (p->leaving != NULL)
        fy_nodes_reap(p);
    while (pump_one(p, lane))
        continue;
}

/* Whether the first frame of a source is complete. */
static inline bool is_whole(nodes_port *p, inlet *in)
{
    return !in->head->waiting || fy_nodes_payload_came(p, in->head);
}

bool fy_nodes_ready(nodes_port *p, fy_lane lane)
{
    for (inlet *in = p->self.inlets[lane].head; in != NULL; in = in->next)
        if (is_whole(p, in))
            return true;
    return false;
}

static inline uint64_t word_of(const slot *s, unsigned i)
{
    uint64_t word = 0;
    if (i < s->word_count)
        memcpy(&word, s->words + i * sizeof(word), sizeof(word));
    return word;
}

/* Reads the words one by one, as the sender may have written them: a longer load would have to wait
 * for the cache. Writes them in one piece, as the handler will read them. */
static inline void fill_frame(const slot *s, fy_frame *out)
{
    const void *behind = s->words + s->word_count * sizeof(uint64_t);
    const void *data = s->payload != NULL ? s->payload : behind;
    *out = (fy_frame){
        .kind = s->head.kind,
        .word_count = s->word_count,
        .handler = s->head.handler,
        .op = s->head.op,
        .tag = s->head.tag,
        .aux = s->head.aux,
        .words = {word_of(s, 0), word_of(s, 1), word_of(s, 2), word_of(s, 3)},
        .data = s->data_bytes > 0 ? data : NULL,
        .size_bytes = s->data_bytes,
        .block = s->heap != NULL,
    };
}

/* Removes the first frame of `in`, which was delivered. */
static void inlet_finish(nodes_port *p, inlet *in, size_t size_bytes, bool kept)
{
    slot *s = in->head;
    in->head = s->next;
    in->taken++;
    in->untold_bytes += sizeof(wire) + WORDS_BYTES + size_bytes;
    fy_nodes_payload_put(p, s, kept);
    slot_put(p, s);
    if (in->taken - in->told >= UNTOLD_FRAMES_MAX || in->untold_bytes >= UNTOLD_BYTES_MAX)
        (void)fy_nodes_notice(p, in->to, FY_CONTROL, in->source, NOTICES_NONE);
}

static void drop_first(nodes_port *p, inlet *in)
{
    slot *s = in->head;
    in->head = s->next;
    fy_nodes_payload_put(p, s, false);
    slot_put(p, s);
}

/* Delivers frames of one source. Gives the lock up while it delivers. */
static int inlet_drain(nodes_port *p, inlet *in, int budget, fy_deliver *deliver, void *context)
{
    int taken = 0;
    while (taken < budget && in->head != NULL && is_whole(p, in)) {
        if (fy_nodes_is_lost(p, in->source)) {
            drop_first(p, in);
            continue;
        }
        fy_frame frame;
        fill_frame(in->head, &frame);
        unlock(p);
        fy_verdict verdict = deliver(context, in->source, &frame);
        lock(p);
        if (verdict == FY_LEAVE)
            break;
        inlet_finish(p, in, frame.size_bytes, verdict == FY_KEEP);
        taken++;
    }
    return taken;
}

/* Goes through the list once: from the first source to the one that is the last now. */
int fy_nodes_deliver(nodes_port *p, endpoint *to, fy_lane lane, int budget, fy_deliver *deliver,
                     void *context)
{
    inlets *set = &to->inlets[lane];
    int taken = 0;
    const inlet *last = set->tail;
    for (inlet *in = set->head; in != NULL && taken < budget; in = set->head) {
        set->head = in->next;
        taken += inlet_drain(p, in, budget - taken, deliver, context);
        if (in->head != NULL)
            list(set, in);
        else
            in->listed = false;
        if (in == last)
            break;
    }
    return taken;
}

/* If there is no message, a look costs the binding as much as if there is one. So this delivers
 * what has come before it looks again, and does not look again unless messages come in a stream.
 * Receives are posted again later too: the program that waits for this message goes on first. */
int fy_nodes_poll_remote(nodes_port *p, fy_lane lane, int budget, fy_deliver *deliver,
                         void *context)
{
    posted *set = &p->posted[lane];
    int taken = 0;
    lock(p);
    bool came = !fy_nodes_may_skip(p, lane) && pump_one(p, lane);
    set->streams = came && (set->streams || set->fruitful);
    for (int looks = 1; p->self.inlets[lane].head != NULL; looks++) {
        taken += fy_nodes_deliver(p, &p->self, lane, budget - taken, deliver, context);
        if (!set->streams || taken >= budget || looks >= budget)
            break;
        set->streams = pump_one(p, lane);
    }
    set->fruitful = came;
    if (taken == 0 && p->leaving != NULL)
        fy_nodes_reap(p);
    if (taken == 0 && set->spent > 0)
        (void)post_spent(p, lane);
    unlock(p);
    if (taken > 0)
        /* relaxed: it only decides how long the next wait spins */
        atomic_store_explicit(&p->came, true, memory_order_relaxed);
    return taken;
}

void fy_nodes_drop(nodes_port *p, endpoint *to)
{
    for (int rank = 0; rank < p->ranks; rank++)
        for (int lane = 0; lane < FY_LANES && to->peers[rank] != NULL; lane++) {
            inlet *in = &to->peers[rank]->in[lane];
            while (in->head != NULL && is_whole(p, in))
                drop_first(p, in);
        }
}

void fy_nodes_undelivered_free(nodes_port *p, endpoint *to)
{
    for (int rank = 0; rank < p->ranks; rank++)
        for (int lane = 0; lane < FY_LANES && to->peers[rank] != NULL; lane++) {
            inlet *in = &to->peers[rank]->in[lane];
            while (in->head != NULL) {
                if (in->head->waiting)
                    fy_nodes_payload_cancel(p, in->head);
                drop_first(p, in);
            }
        }
}
