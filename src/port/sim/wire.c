/* Wire: carries frames between two adapters, and repairs losses.
 *
 * A packet leaves when its sender's adapter is free and lands when its target's is. In a world with
 * faults packets are lost, doubled and overtake each other. Then the receiver of a channel takes
 * numbers in order, keeps early packets, drops those that it has, and acknowledges. The sender
 * keeps cargo until it is acknowledged, and sends it again after a timeout. Adapters outlive their
 * rank: packets that a rank sent before it left or died still arrive.
 *
 * Memory has neither packets nor faults: a frame arrives while it is sent (fy_net.direct). */
#include "port/sim/world.h"

enum {
    RESEND_MAX = 16,
    RESEND_BYTES_MAX = 64 * 1024,
    TIMEOUT_MIN_NS = 2000,
    TIMEOUT_DOUBLINGS = 6
};

static uint64_t max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* The cargo has reached its target, or never will. If it was the last one of a rank that has left,
 * the other ranks are told that it has left. */
static void wire_settle(fy_channel *channel, fy_cargo *cargo)
{
    if (cargo->settled)
        return;
    cargo->settled = true;
    channel->target->incoming--;
    channel->source->world->in_flight[cargo->side]--;
    if (--channel->source->undelivered == 0 && channel->source->state == FY_PEER_LEFT)
        fy_world_tell(channel->source);
}

/* Whether a partition stands between the two. */
static bool is_cut(const fy_world *world, int a, int b)
{
    for (size_t i = 0; i < world->faults.timed_count; i++) {
        const fy_fault *fault = &world->faults.timed[i];
        if (!fault->active || fault->kind != FY_FAULT_CUT)
            continue;
        bool a_inside = a >= fault->first && a <= fault->last;
        bool b_inside = b >= fault->first && b <= fault->last;
        if (a_inside != b_inside)
            return true;
    }
    return false;
}

/* If there is no memory for the packet, it is lost. A world with faults sends it again later. In
 * any other world the run ends. */
static void put_packet(fy_channel *channel, fy_cargo *cargo, uint64_t number, uint64_t time_ns)
{
    fy_world *world = channel->source->world;
    fy_packet_event *packet = fy_pool_get(&world->packet_pool);
    if (packet == NULL) {
        if (!world->lossy)
            fy_report_broken(world, channel, "no memory for packets");
        return;
    }
    *packet = (fy_packet_event){
        .event = {.kind = FY_EVENT_PACKET}, .channel = channel, .cargo = cargo, .number = number};
    if (cargo != NULL)
        cargo->refs++;
    world->counts.packets++;
    fy_events_set(&world->events, &packet->event, time_ns);
}

/* One transmission in a world with faults. */
static void put_on_wire(fy_channel *channel, fy_cargo *cargo, uint64_t number, uint64_t time_ns)
{
    fy_world *world = channel->source->world;
    fy_packet_outcome outcome = {0};
    if (world->lossy)
        fy_faults_packet(&world->faults, &outcome);
    if (outcome.drop || is_cut(world, channel->source->rank, channel->target->rank)) {
        world->counts.lost++;
        return;
    }
    put_packet(channel, cargo, number, time_ns + outcome.delay_ns);
    if (outcome.dup)
        put_packet(channel, cargo, number, time_ns + channel->link.latency_ns);
}

static uint64_t transfer_ns(const fy_channel *channel, const fy_cargo *cargo)
{
    uint64_t bytes = cargo->frame.size_bytes, byte_ps = channel->link.byte_ps;
    return bytes / 1000 * byte_ps + bytes % 1000 * byte_ps / 1000;
}

static void depart(fy_channel *channel, fy_cargo *cargo, uint64_t time_ns)
{
    uint64_t *free_ns = &channel->source->out_free_ns[channel->lane];
    uint64_t transfer = transfer_ns(channel, cargo);
    uint64_t start = max_u64(time_ns, *free_ns);
    *free_ns = start + max_u64(channel->link.gap_ns, transfer);
    put_on_wire(channel, cargo, cargo->number, start + transfer + channel->link.latency_ns);
}

/* The timeout starts when the adapter has sent all that it was given: large frames take long. */
static void arm(fy_channel *channel)
{
    fy_world *world = channel->source->world;
    uint64_t sent_ns = max_u64(world->now_ns, channel->source->out_free_ns[channel->lane]);
    fy_events_set(&world->events, &channel->timer, sent_ns + channel->timeout_ns);
}

static uint64_t first_timeout_ns(const fy_channel *channel)
{
    const fy_world *world = channel->source->world;
    uint64_t round = 2 * (channel->link.latency_ns + channel->link.gap_ns);
    return TIMEOUT_MIN_NS + 2 * round + world->faults.delay_max_ns;
}

/* Takes the reference. */
static void arrive(fy_channel *channel, fy_cargo *cargo)
{
    fy_sim_rank *target = channel->target;
    fy_cargo_queue *queue = &channel->arrived;
    wire_settle(channel, cargo);
    channel->expected++;
    if (target->state != FY_PEER_ALIVE || channel->source->seen == FY_PEER_DEAD) {
        fy_cargo_release(target->world, cargo);
        return;
    }
    cargo->next = NULL;
    if (queue->first == NULL)
        queue->first = cargo;
    else
        queue->last->next = cargo;
    queue->last = cargo;
    if (!channel->listed)
        fy_channel_list(channel);
    target->inbox[channel->lane].fresh = true;
    fy_actor_notify(target, (fy_lane)channel->lane);
}

void fy_wire_send(fy_channel *channel, fy_cargo *cargo, uint64_t time_ns)
{
    fy_world *world = channel->source->world;
    if (world->net.direct) {
        arrive(channel, cargo);
        return;
    }
    if (!world->lossy) {
        depart(channel, cargo, time_ns);
        fy_cargo_release(world, cargo);
        return;
    }
    fy_cargo_queue *queue = &channel->unacknowledged;
    cargo->later = NULL;
    if (queue->first == NULL)
        queue->first = cargo;
    else
        queue->last->later = cargo;
    queue->last = cargo;
    depart(channel, cargo, time_ns);
    if (channel->timer.number == 0) {
        channel->timeout_ns = first_timeout_ns(channel);
        arm(channel);
    }
}

void fy_wire_timer(fy_world *world, fy_channel *channel)
{
    size_t count = 0, bytes = 0;
    for (fy_cargo *cargo = channel->unacknowledged.first;
         cargo != NULL && count < RESEND_MAX && bytes < RESEND_BYTES_MAX;
         cargo = cargo->later, count++) {
        bytes += cargo->frame.size_bytes;
        world->counts.resent++;
        depart(channel, cargo, world->now_ns);
    }
    if (count == 0)
        return;
    uint64_t first = first_timeout_ns(channel);
    if (channel->timeout_ns < first << TIMEOUT_DOUBLINGS)
        channel->timeout_ns *= 2;
    arm(channel);
}

static void acknowledged(fy_channel *channel, uint64_t number)
{
    fy_world *world = channel->source->world;
    fy_cargo_queue *queue = &channel->unacknowledged;
    bool any = false;
    while (queue->first != NULL && queue->first->number < number) {
        fy_cargo *cargo = queue->first;
        queue->first = cargo->later;
        fy_cargo_release(world, cargo);
        any = true;
    }
    if (queue->first == NULL) {
        fy_events_cancel(&world->events, &channel->timer);
    } else if (any) {
        channel->timeout_ns = first_timeout_ns(channel);
        arm(channel);
    }
}

/* Keeps cargo that came before its turn. Takes the reference. */
static void keep_early(fy_channel *channel, fy_cargo *cargo)
{
    fy_cargo **at = &channel->early;
    while (*at != NULL && (*at)->number < cargo->number)
        at = &(*at)->next;
    if (*at != NULL && (*at)->number == cargo->number) {
        channel->source->world->counts.doubles++;
        fy_cargo_release(channel->source->world, cargo);
        return;
    }
    cargo->next = *at;
    *at = cargo;
}

/* Takes the reference. */
static void accept(fy_channel *channel, fy_cargo *cargo)
{
    fy_world *world = channel->source->world;
    if (cargo->number < channel->expected) {
        world->counts.doubles++;
        fy_cargo_release(world, cargo);
    } else if (cargo->number > channel->expected) {
        keep_early(channel, cargo);
    } else {
        arrive(channel, cargo);
        while (channel->early != NULL && channel->early->number == channel->expected) {
            fy_cargo *next = channel->early;
            channel->early = next->next;
            arrive(channel, next);
        }
    }
    if (world->lossy)
        put_on_wire(channel, NULL, channel->expected, world->now_ns + channel->link.latency_ns);
}

void fy_wire_fetch(const fy_packet_event *packet)
{
    for (size_t i = 0; i < sizeof(*packet->channel); i += FY_LINE_BYTES)
        __builtin_prefetch((const char *)packet->channel + i);
    __builtin_prefetch(packet->cargo);
}

void fy_wire_packet(fy_world *world, fy_packet_event *packet)
{
    fy_channel *channel = packet->channel;
    if (packet->cargo == NULL) {
        acknowledged(channel, packet->number);
        fy_pool_put(&world->packet_pool, packet);
        return;
    }
    if (!packet->landed) {
        uint64_t *free_ns = &channel->target->in_free_ns[channel->lane];
        uint64_t transfer = transfer_ns(channel, packet->cargo);
        uint64_t occupied = max_u64(channel->link.gap_ns, transfer);
        uint64_t landing = max_u64(world->now_ns, *free_ns + occupied);
        *free_ns = landing;
        packet->landed = true;
        if (landing > world->now_ns) {
            fy_events_set(&world->events, &packet->event, landing);
            return;
        }
    }
    fy_cargo *cargo = packet->cargo;
    fy_pool_put(&world->packet_pool, packet);
    accept(channel, cargo);
}
