/* Handshake and disconnection: frames between the ranks that a mover connects.
 *
 * A rank that has analysed its copies sends each neighbour a handshake: where its counters and
 * grids are, and the hash of the copies that the two share. It is bound when it has the handshakes
 * of all neighbours. A handshake that comes before this rank is ready for it is kept. If a
 * handshake does not fit (other copies, or the mover failed here), the answer is FY_MOVER_LOST.
 * Then its sender fails too and tells its own neighbours. To neighbours that are bound already it
 * is as if a rank had died. So no rank waits for a frame that never comes, and ranks that share no
 * copy do not wait for each other.
 *
 * A rank that frees the mover, or binds it again, sends its neighbours FY_MOVER_DONE. If one of
 * them waits for a movement that this rank has not started, that movement fails. The channels
 * belong to the source of a link. The target may still read them after the source has seen that the
 * last movement was taken. So the source frees the channels when all targets have sent
 * FY_MOVER_DONE or FY_MOVER_LOST. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "core/fail.h"
#include "core/outgoing.h"
#include "mover/bind/link.h"

#include <ferry/memory.h>

/* The data of a handshake: about the copies that the two neighbours share. */
typedef struct fy_handshake {
    uint64_t sent, expected; /* hashes of the copies to the receiver, and from it */
    uint64_t sent_count, expected_count;
    uint64_t packed; /* whether the copies travel as messages */
} fy_handshake;

static fy_handshake handshake_of(const fy_link_end *in, const fy_link_end *out)
{
    fy_handshake g = {0};
    if (out != NULL) {
        g.sent = out->hash;
        g.sent_count = out->count;
        g.packed = out->mode == FY_LINK_MESSAGES;
    }
    if (in != NULL) {
        g.expected = in->hash;
        g.expected_count = in->count;
        g.packed = in->mode == FY_LINK_MESSAGES;
    }
    return g;
}

static uint32_t number_of(uint64_t name)
{
    return (uint32_t)name;
}

static uint32_t round_of(uint64_t name)
{
    return (uint32_t)(name >> 32);
}

int fy_mover_tell(ferry *f, int rank, fy_mover_frame what, uint64_t name, uint64_t word)
{
    const fy_frame frame = {
        .kind = FY_KIND_MOVER, .word_count = 3, .aux = what, .words = {name, word}};
    return fy_send(f, FY_DATA, rank, &frame);
}

static void handshake_refuse(ferry *f, int rank, uint64_t name, int error)
{
    (void)fy_mover_tell(f, rank, FY_MOVER_LOST, name, (uint64_t)(int64_t)error);
}

static void mover_lose(ferry_mover *m, int source, int error)
{
    if (m->run.error == 0) {
        m->run.error = error;
        m->bound.failed_rank = source;
    }
    fy_movers_news(m->plan.f);
    if (!m->run.in_flight && m->bound.stage == FY_STAGE_BOUND)
        fy_mover_tell_loss(m);
}

/* Takes the channel, mode, buffer and grids that the source of a link offers. */
static int take_offers(fy_link_end *end, const uint64_t *words, const fy_mover_offer *offers,
                       size_t count)
{
    const fy_link_mode mode = (fy_link_mode)(words[1] % _Alignof(fy_mover_channel));
    if ((mode == FY_LINK_MESSAGES) != (end->mode == FY_LINK_MESSAGES))
        return FERRY_EINVAL;
    if (mode == FY_LINK_MESSAGES)
        return 0;
    end->mode = mode;
    end->channel = (fy_mover_channel *)(uintptr_t)(words[1] - mode);
    if (mode == FY_LINK_STAGED)
        end->buffer = (char *)(uintptr_t)words[2];
    if (count == 0)
        return 0;
    end->offers = fy_malloc(count * sizeof *offers);
    if (end->offers == NULL)
        return FERRY_ENOMEM;
    memcpy(end->offers, offers, count * sizeof *offers);
    end->offer_count = count;
    return 0;
}

/* Sets the error message: how the copies that `source` shares with this rank differ from those that
 * this rank knows. */
static int differ(ferry_mover *m, int source, const fy_handshake *theirs, const fy_handshake *ours)
{
    m->bound.explained = m->run.error == 0;
    if (theirs->sent_count == ours->expected_count && theirs->expected_count == ours->sent_count)
        return fy_fail(m->plan.f, FERRY_EINVAL,
                       "mover_bind: the plans differ: this rank and rank %d have as many copies "
                       "between them, %" PRIu64 " from there and %" PRIu64
                       " to there, but of other blocks or regions",
                       source, ours->expected_count, ours->sent_count);
    return fy_fail(m->plan.f, FERRY_EINVAL,
                   "mover_bind: the plans differ: this rank expects %" PRIu64
                   " copies from rank %d, which sends %" PRIu64 ", and sends it %" PRIu64
                   ", of which it expects %" PRIu64,
                   ours->expected_count, source, theirs->sent_count, ours->sent_count,
                   theirs->expected_count);
}

/* Sets the error message: the two ends share memory, and only one uses messages. */
static int differ_in_way(ferry_mover *m, int source, bool theirs, bool ours)
{
    static const char *const values[] = {"false", "true"};
    m->bound.explained = m->run.error == 0;
    return fy_fail(m->plan.f, FERRY_EINVAL,
                   "mover_bind: rank %d has options.messages %s, this rank %s; expected the same "
                   "on both",
                   source, values[theirs], values[ours]);
}

/* Takes a handshake, in FY_STAGE_HANDSHAKE. */
static void take_handshake(ferry_mover *m, int source, const uint64_t *words, const void *data,
                           size_t size_bytes)
{
    fy_link_end *in = fy_direction_find(&m->bound.in, source);
    fy_link_end *out = fy_direction_find(&m->bound.out, source);
    const fy_handshake ours = handshake_of(in, out);
    fy_handshake handshake = {0};
    int error = 0;
    if (size_bytes >= sizeof handshake)
        memcpy(&handshake, data, sizeof handshake);
    const size_t offered = size_bytes - sizeof handshake;
    if (size_bytes < sizeof handshake || offered % sizeof(fy_mover_offer) != 0)
        error = FERRY_EINVAL;
    else if (handshake.sent != ours.expected || handshake.expected != ours.sent ||
             (in == NULL && out == NULL))
        error = differ(m, source, &handshake, &ours);
    else if ((handshake.packed != 0) != (ours.packed != 0))
        error = differ_in_way(m, source, handshake.packed != 0, ours.packed != 0);
    else if (in != NULL && !in->has_handshake)
        error = take_offers(
            in, words,
            (const fy_mover_offer *)(const void *)((const char *)data + sizeof handshake),
            offered / sizeof(fy_mover_offer));
    if (error) {
        handshake_refuse(m->plan.f, source, words[0], error);
        mover_lose(m, source, error);
        return;
    }
    if (in != NULL)
        in->has_handshake = true;
    if (out != NULL)
        out->has_handshake = true;
    fy_movers_news(m->plan.f);
}

/* Removes the handshake of `source` from those kept, and returns it; or NULL. */
static fy_pending_handshake *remove_pending(fy_movers *movers, int source)
{
    for (fy_pending_handshake **at = &movers->pending; *at != NULL; at = &(*at)->next)
        if ((*at)->source == source) {
            fy_pending_handshake *found = *at;
            *at = found->next;
            return found;
        }
    return NULL;
}

/* Keeps a handshake. It replaces an older one of the same rank, whose mover failed there. */
static void handshake_keep(ferry *f, int source, const fy_frame *frame)
{
    fy_movers *movers = fy_movers_of(f);
    fy_pending_handshake *old = remove_pending(movers, source);
    if (old != NULL)
        handshake_refuse(f, source, old->words[0], FERRY_EINVAL);
    free(old);
    fy_pending_handshake *pending = fy_malloc(sizeof *pending + frame->size_bytes);
    if (pending == NULL) {
        handshake_refuse(f, source, frame->words[0], FERRY_ENOMEM);
        return;
    }
    *pending = (fy_pending_handshake){
        .next = movers->pending, .source = source, .size_bytes = frame->size_bytes};
    memcpy(pending->words, frame->words, sizeof pending->words);
    if (frame->size_bytes > 0)
        memcpy(pending->data, frame->data, frame->size_bytes);
    movers->pending = pending;
}

/* How the mover of that number, which is not here any more, ended. Only the last error is known. */
static int end_of(const fy_movers *movers, uint32_t number)
{
    return movers->failed_error != 0 && movers->failed == number ? movers->failed_error
                                                                 : FERRY_EINVAL;
}

void fy_handshake_take(ferry *f, int source, const fy_frame *frame)
{
    const fy_movers *movers = fy_movers_of(f);
    const uint32_t round = round_of(frame->words[0]);
    ferry_mover *m = fy_movers_find(movers, number_of(frame->words[0]));
    if (m == NULL) {
        if (number_of(frame->words[0]) >= movers->next)
            handshake_keep(f, source, frame);
        else
            handshake_refuse(f, source, frame->words[0],
                             end_of(movers, number_of(frame->words[0])));
    } else if (m->run.error != 0) {
        handshake_refuse(f, source, frame->words[0], m->run.error);
    } else if (round > m->round && m->given_up) {
        handshake_refuse(f, source, frame->words[0], FERRY_EPEER);
    } else if (round > m->round || (round == m->round && m->bound.stage == FY_STAGE_ALONE)) {
        handshake_keep(f, source, frame);
    } else if (round == m->round && m->bound.stage == FY_STAGE_HANDSHAKE) {
        take_handshake(m, source, frame->words, frame->data, frame->size_bytes);
    } else {
        handshake_refuse(f, source, frame->words[0], FERRY_EINVAL);
        if (round == m->round)
            mover_lose(m, source, FERRY_EINVAL);
    }
}

void fy_handshakes_refuse(ferry *f, uint32_t number, int error)
{
    fy_movers *movers = fy_movers_of(f);
    movers->failed = number;
    movers->failed_error = error;
    for (fy_pending_handshake **at = &movers->pending; *at != NULL;) {
        fy_pending_handshake *pending = *at;
        if (number_of(pending->words[0]) != number) {
            at = &pending->next;
            continue;
        }
        *at = pending->next;
        handshake_refuse(f, pending->source, pending->words[0], error);
        free(pending);
    }
}

/* Takes the handshakes that were kept for this mover. */
static void take_pending(ferry_mover *m)
{
    fy_movers *movers = fy_movers_of(m->plan.f);
    const uint64_t name = fy_mover_name(m->number, m->round);
    for (fy_pending_handshake **at = &movers->pending; *at != NULL;) {
        fy_pending_handshake *pending = *at;
        if (pending->words[0] != name) {
            at = &pending->next;
            continue;
        }
        *at = pending->next;
        take_handshake(m, pending->source, pending->words, pending->data, pending->size_bytes);
        free(pending);
    }
}

/* Sends a handshake to the rank of the ends `in` and `out`, one of which may be NULL. Without
 * memory it sends that error instead. */
static int handshake(ferry_mover *m, const fy_link_end *in, const fy_link_end *out)
{
    const int rank = in != NULL ? in->rank : out->rank;
    const bool lists = out != NULL && out->mode == FY_LINK_DIRECT;
    const size_t room = sizeof(fy_handshake) + (lists ? out->count : 0) * sizeof(fy_mover_offer);
    char *data = fy_calloc(room, 1);
    if (data == NULL)
        return FERRY_ENOMEM;
    const fy_handshake handshake = handshake_of(in, out);
    memcpy(data, &handshake, sizeof handshake);
    size_t count = 0;
    if (lists)
        count = m->plan.form->offers(&m->plan, &m->bound.out, out,
                                     (fy_mover_offer *)(void *)(data + sizeof handshake));
    const uint64_t channel = out == NULL ? 0 : (uint64_t)(uintptr_t)out->channel + out->mode;
    const uint64_t buffer = out == NULL ? 0 : (uint64_t)(uintptr_t)out->buffer;
    int error = fy_mover_send(m, rank, FY_MOVER_HANDSHAKE, channel, buffer, data,
                              sizeof handshake + count * sizeof(fy_mover_offer));
    free(data);
    return error;
}

static int handshake_all(ferry_mover *m)
{
    int error = 0;
    for (size_t i = 0; i < m->bound.in.end_count && error == 0; i++)
        error = handshake(m, &m->bound.in.ends[i],
                          fy_direction_find(&m->bound.out, m->bound.in.ends[i].rank));
    for (size_t i = 0; i < m->bound.out.end_count && error == 0; i++)
        if (fy_direction_find(&m->bound.in, m->bound.out.ends[i].rank) == NULL)
            error = handshake(m, NULL, &m->bound.out.ends[i]);
    return error;
}

static bool is_dead(ferry *f, int rank)
{
    fy_port *port = fy_port_of(f);
    return port->ops->members.peer(port, rank) != FY_PEER_ALIVE;
}

/* The first end whose handshake has not come, with `dead` the first of a dead rank. NULL: there is
 * none. */
static const fy_link_end *waits_for(const ferry_mover *m, bool dead)
{
    const fy_direction *directions[] = {&m->bound.in, &m->bound.out};
    for (int way = 0; way < 2; way++)
        for (size_t i = 0; i < directions[way]->end_count; i++) {
            const fy_link_end *end = &directions[way]->ends[i];
            if (!end->has_handshake && (!dead || is_dead(m->plan.f, end->rank)))
                return end;
        }
    return NULL;
}

/* Sets the message of an error that came while this rank waited for handshakes. */
static int handshake_explain(const ferry_mover *m)
{
    if (m->bound.explained)
        return m->run.error;
    if (m->run.error == FERRY_EINVAL)
        return fy_fail(m->plan.f, m->run.error,
                       "mover_bind: rank %d failed to bind it, or the plans differ in copies that "
                       "the two ranks share",
                       m->bound.failed_rank);
    if (m->run.error == FERRY_EPEER)
        return fy_fail(m->plan.f, m->run.error,
                       "mover_bind: a rank that it needs is dead or has left");
    return m->run.error ? fy_fail(m->plan.f, m->run.error, "mover_bind: %s on rank %d",
                                  ferry_strerror(m->run.error), m->bound.failed_rank)
                        : 0;
}

int fy_mover_handshake(ferry_mover *m)
{
    const fy_link_end *end;
    m->bound.stage = FY_STAGE_HANDSHAKE;
    int error = handshake_all(m);
    if (error)
        mover_lose(m, ferry_rank(m->plan.f), error);
    take_pending(m);
    /* A living neighbour may have given up because of a dead one. So the dead one may be any. */
    while (m->run.error == 0 && waits_for(m, false) != NULL) {
        (void)ferry_wait(m->plan.f, FY_LOOK_NS);
        if ((end = waits_for(m, true)) != NULL)
            mover_lose(m, end->rank, FERRY_EPEER);
    }
    return handshake_explain(m);
}

/* Notes that `source` no longer reads its channel. Returns how many ranks still read theirs. */
static size_t readers_left(fy_retired *retired, int source)
{
    size_t left = 0;
    for (size_t i = 0; i < retired->count; i++) {
        if (retired->ranks[i] == source)
            retired->ranks[i] = -1;
        left += retired->ranks[i] >= 0;
    }
    return left;
}

/* Notes that `source` starts no more movements of this round. A movement that waits for it never
 * ends otherwise. */
static void mark_over(ferry_mover *m, int source)
{
    fy_link_end *ends[] = {fy_direction_find(&m->bound.in, source),
                           fy_direction_find(&m->bound.out, source)};
    for (int way = 0; way < 2; way++)
        if (ends[way] != NULL)
            ends[way]->is_over = true;
    if (m->run.in_flight && fy_mover_lost_peer(m))
        fy_movers_news(m->plan.f);
}

/* Notes that `source` no longer uses its links. Frees the channels when no target reads them.
 * Returns the mover of that name, or NULL. */
static ferry_mover *release_links(ferry *f, int source, uint64_t name)
{
    fy_movers *movers = fy_movers_of(f);
    for (fy_retired **at = &movers->retired; *at != NULL; at = &(*at)->next) {
        fy_retired *retired = *at;
        if (fy_mover_name(retired->number, retired->round) != name)
            continue;
        if (readers_left(retired, source) == 0) {
            *at = retired->next;
            (void)ferry_free(f, retired->channels);
            free(retired);
        }
        return NULL;
    }
    ferry_mover *m = fy_movers_find(movers, number_of(name));
    if (m == NULL || m->round != round_of(name))
        return NULL;
    if (m->bound.retired != NULL)
        (void)readers_left(m->bound.retired, source);
    return m;
}

void fy_done_take(ferry *f, int source, uint64_t name)
{
    ferry_mover *m = release_links(f, source, name);
    if (m != NULL)
        mark_over(m, source);
}

void fy_loss_take(ferry *f, int source, uint64_t name, int error)
{
    ferry_mover *m = release_links(f, source, name);
    if (m != NULL)
        mover_lose(m, source, error < 0 ? error : FERRY_EINVAL);
}

/* Tells each neighbour once that this rank no longer uses their links, unless they know. */
static void tell_done(const ferry_mover *m)
{
    const uint64_t name = fy_mover_name(m->number, m->round);
    const fy_direction *directions[] = {&m->bound.in, &m->bound.out};
    for (int way = 0; way < 2 && !m->run.told_loss; way++)
        for (size_t i = 0; i < directions[way]->end_count; i++) {
            const fy_link_end *end = &directions[way]->ends[i];
            const bool told = way == 1 && fy_direction_find(&m->bound.in, end->rank) != NULL;
            if (end->has_handshake && !told)
                (void)fy_mover_tell(m->plan.f, end->rank, FY_MOVER_DONE, name, 0);
        }
}

void fy_mover_disconnect(ferry_mover *m)
{
    ferry *f = m->plan.f;
    fy_movers *movers = fy_movers_of(f);
    tell_done(m);
    fy_retired *retired = m->bound.retired;
    if (retired == NULL)
        return;
    size_t left = 0;
    for (size_t i = 0; i < retired->count; i++) {
        if (retired->ranks[i] >= 0 &&
            (m->bound.stage == FY_STAGE_ALONE || is_dead(f, retired->ranks[i])))
            retired->ranks[i] = -1;
        left += retired->ranks[i] >= 0;
    }
    if (left == 0) {
        (void)ferry_free(f, retired->channels);
        free(retired);
    } else {
        retired->number = m->number;
        retired->round = m->round;
        retired->next = movers->retired;
        movers->retired = retired;
    }
    m->bound.retired = NULL;
    m->bound.channels = NULL;
}

void fy_handshakes_close(fy_movers *movers)
{
    for (fy_pending_handshake *pending; (pending = movers->pending) != NULL;) {
        movers->pending = pending->next;
        free(pending);
    }
    for (fy_retired *retired; (retired = movers->retired) != NULL;) {
        movers->retired = retired->next;
        free(retired); /* the channels are freed with the heap */
    }
}
