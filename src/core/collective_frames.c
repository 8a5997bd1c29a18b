/* The frames of collectives: numbering, matching, and finding out that ranks disagree.
 *
 * Each frame carries its call. If a rank gets a frame of another call under its own number, it
 * tells every rank, so that no rank waits for a call that others never make. A rank that cannot
 * continue tells every rank too.
 *
 * A rank may wait in a call over a group of the program while another member waits for all ranks,
 * in ferry_quiesce or in a call of the members. Only these two can know. So a rank that has waited
 * long, or that learns of a change among the ranks, asks the ranks for which it waits (TAG_WAITS).
 * A rank that waits for the asker answers (TAG_ELSEWHERE). It answers only a rank that knows the
 * same ranks to be gone. So both know whether the reason is a death, on which no ferry_quiesce has
 * agreed yet: then the call fails with FERRY_EPEER. */
#include "core/collective.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/copy.h"
#include "core/fail.h"
#include "core/kinds.h"
#include "core/membership.h"
#include "core/outgoing.h"
#include "core/rank.h"
#include "core/work.h"

/* The tag of a frame that ends the call with an error; words[1] holds it. Data: a note, or with
 * TAG_REFUSE the reason. */
enum { TAG_ABORT = -1, TAG_REFUSE = -2 };

/* The tags of a frame that only says which call a rank makes that has waited long, and of the
 * answer of a rank that is in another call, which the frame names. TAG_ANSWERED: what is left of an
 * early TAG_WAITS that has got this answer. */
enum { TAG_WAITS = -3, TAG_ELSEWHERE = -4, TAG_ANSWERED = -5 };

/* TAG_WAITS carries it if its source waits until the call has ended, or knows of a rank that is
 * gone. `state` is the sum of two numbers: the epochs that the source has begun, and the mark of
 * the ranks that it knows to be gone. `number` counts the calls of the members that it has begun.
 */
typedef struct wait_note {
    uint64_t state, number;
} wait_note;

/* How many queues frames that come early are divided into, by the number of their call. */
enum { EARLY_QUEUES = 1024 };

/* The contents of an abort: the two calls that differ, and the ranks that made them. */
typedef struct abort_note {
    int32_t ranks[2];
    fy_collective_call calls[2];
} abort_note;

/* The id of the group over which the call of a frame goes. */
static inline uint64_t group_id(const fy_frame *frame)
{
    return frame->words[0] & FY_CALL_OVER_GROUP ? frame->words[2] : 0;
}

/* A disagreement about call `number`: writes an error text with both sides. If one side is in
 * ferry_quiesce, all ranks that are give it up. So one that has asked this rank may not be there.
 */
static int say_disagreement(ferry *f, const fy_group *group, uint32_t number,
                            const abort_note *note)
{
    char texts[2][FY_CALL_TEXT];
    const fy_collective_call *a = &note->calls[0], *b = &note->calls[1];
    f->quiescence.doubted |= ((a->what | b->what) & FY_CALL_QUIESCES) != 0;
    fy_call_describe(a, texts[0], sizeof(texts[0]));
    fy_call_describe(b, texts[1], sizeof(texts[1]));
    const char *how = strcmp(texts[0], texts[1]) != 0                   ? ""
                      : ((a->what ^ b->what) & FY_CALL_OVER_GROUP) != 0 ? " of all ranks"
                      : ((a->what ^ b->what) >> FY_CALL_BOARD_SHIFT & 1) != 0
                          ? ", one waiting, one started"
                          : ", with other counts";
    return fy_collective_fail(f, group, number, FERRY_EINVAL, "rank %d %s, rank %d %s%s",
                              note->ranks[0], texts[0], note->ranks[1], texts[1], how);
}

static bool has_note(const fy_frame *frame)
{
    return frame->tag == TAG_ABORT && frame->size_bytes == sizeof(abort_note);
}

/* A disagreement is work until it has come to all ranks: no ferry_quiesce ends before, and ranks
 * that missed the call count it. */
static bool is_disagreement(const fy_frame *frame)
{
    return frame->tag == TAG_REFUSE || has_note(frame);
}

/* Dead ranks need not be told. So a failed send is no error, and the rank's error text stays. */
static void collective_send_all(ferry *f, const fy_group *group, const fy_frame *frame)
{
    char text[FY_ERROR_BYTES];
    memcpy(text, f->error_text, sizeof(text));
    for (int i = 0; i < group->size; i++) {
        int rank = fy_group_rank(group, i);
        if (i == group->self)
            continue;
        if (is_disagreement(frame))
            (void)fy_send_as_work(f, rank, frame);
        else
            (void)fy_send(f, FY_DATA, rank, frame);
    }
    memcpy(f->error_text, text, sizeof(text));
}

fy_frame fy_collective_frame(const fy_collective *c, int32_t tag)
{
    fy_frame frame;
    fy_frame_begin(&frame, FY_KIND_COLLECTIVE, 0, FY_CALL_WORDS);
    frame.aux = c->number;
    frame.tag = tag;
    frame.words[0] = c->call.what;
    frame.words[1] = c->call.size_bytes;
    frame.words[2] = c->call.signature;
    return frame;
}

static __attribute__((noinline)) void tell_all(ferry *f, const fy_collective *c, int error,
                                               const abort_note *note)
{
    fy_frame frame = fy_collective_frame(c, TAG_ABORT);
    frame.words[1] = (uint64_t)(int64_t)error;
    frame.data = note;
    frame.size_bytes = note == NULL ? 0 : sizeof(*note);
    collective_send_all(f, c->group, &frame);
}

void fy_collective_disagree(ferry *f, fy_collective *c, int rank, const fy_collective_call *other)
{
    const abort_note note = {{f->head.rank, rank}, {c->call, *other}};
    /* A rank that makes other calls may have registered other handlers for that reason. */
    if (c->call.what == other->what && c->call.signature != other->signature) {
        fy_loss_compare(f, rank, c->number);
        return;
    }
    /* Ranks that learn of a death in different calls make different calls after it. */
    int lost = fy_group_lost(f->collectives.group);
    if (lost >= 0) {
        fy_collective_lack(f, c, lost);
        return;
    }
    c->told = true;
    c->error = say_disagreement(f, c->group, c->number, &note);
    tell_all(f, c, FERRY_EINVAL, &note);
}

void fy_collectives_doubt(ferry *f, int rank, const fy_elsewhere *e)
{
    for (fy_collective *c = f->collectives.first, *next; c != NULL; c = next) {
        next = c->next;
        if (c->error != 0 || c->group->id != 0 || (int32_t)(c->number - e->number) <= 0 ||
            fy_group_place(c->group, rank) < 0)
            continue;
        const fy_collective_call call = {FY_CALL_QUIESCES | (e->closing ? FY_CALL_CLOSES : 0) |
                                             (e->returned ? FY_CALL_RETURNED : 0),
                                         0, c->call.signature};
        fy_collective_disagree(f, c, rank, &call);
        if (!c->by_board)
            fy_collective_advance(f, c); /* this round may have been the last before a sleep */
    }
}

/* A rank that gets this frame compares, now or when it makes the call (take, look_misfit). */
void fy_collective_tell(ferry *f, const fy_collective *c)
{
    const wait_note note = {f->quiescence.epoch + f->peers.gone_mark, f->collectives.group->number};
    fy_frame frame = fy_collective_frame(c, TAG_WAITS);
    frame.data = &note;
    frame.size_bytes = c->kept || fy_group_lost(f->collectives.group) >= 0 ? sizeof(note) : 0;
    for (uint32_t i = 0; i < c->post_count; i++)
        if (c->posts[i].open && !c->posts[i].complete)
            (void)fy_send(f, FY_DATA, c->posts[i].source, &frame); /* deaths are reported anyway */
}

/* Call `number` of group `id`, if it runs. */
static fy_collective *collective_find(const fy_collectives *all, uint64_t id, uint32_t number)
{
    fy_collective *c = all->first;
    while (c != NULL && (c->number != number || c->id != id))
        c = c->next;
    return c;
}

/* The group with this id, also one that was freed while calls over it run. NULL: it is not known.
 */
static fy_group *group_of(const fy_collectives *all, uint64_t id)
{
    fy_group *group = id == 0 ? all->group : all->groups;
    while (group != NULL && group->id != id)
        group = group->next;
    for (const fy_collective *c = all->first; c != NULL && group == NULL; c = c->next)
        if (c->id == id)
            group = c->group;
    return group;
}

static bool is_to_come(const fy_collectives *all, const fy_frame *frame)
{
    const fy_group *group = group_of(all, group_id(frame));
    return group == NULL ? all->making || frame->tag == TAG_WAITS
                         : (int32_t)(frame->aux - group->number) > 0;
}

static void collective_refuse(ferry *f, fy_collective *c, const char *reason, size_t size_bytes)
{
    c->told = true;
    c->error =
        fy_collective_fail(f, c->group, c->number, FERRY_EINVAL, "%.*s", (int)size_bytes, reason);
}

/* Ends a call of `group` on all ranks that make it; `c`, if it runs here. */
static void refuse_all(ferry *f, fy_collective *c, const fy_group *group, fy_frame *frame,
                       const char *reason)
{
    frame->data = reason;
    frame->size_bytes = strlen(reason);
    if (c != NULL && c->error == 0)
        collective_refuse(f, c, reason, frame->size_bytes);
    collective_send_all(f, group, frame);
}

void fy_collective_refuse(ferry *f, uint32_t number, const char *reason)
{
    fy_frame frame = {
        .kind = FY_KIND_COLLECTIVE, .word_count = FY_CALL_WORDS, .tag = TAG_REFUSE, .aux = number};
    refuse_all(f, collective_find(&f->collectives, 0, number), f->collectives.group, &frame,
               reason);
}

static void take_abort(ferry *f, fy_collective *c, int source, const fy_frame *frame)
{
    abort_note note;
    if (frame->size_bytes == sizeof(note)) {
        memcpy(&note, frame->data, sizeof(note));
        c->told = true;
        c->error = say_disagreement(f, c->group, c->number, &note);
        return;
    }
    int64_t error = (int64_t)frame->words[1];
    error = error < 0 && error >= INT16_MIN ? error : FERRY_EINVAL;
    c->told = true;
    c->error = fy_collective_fail(f, c->group, c->number, (int)error, "rank %d failed with %s",
                                  source, ferry_strerror((int)error));
}

/* The ranks that have done their part are told too. */
static void fulfil(ferry *f, fy_collective *c, fy_post *post, const fy_frame *frame)
{
    bool varies = (fy_collective_flags(c->call.what) & FY_VARIES) != 0;
    if (frame->size_bytes > post->size_bytes - post->received ||
        (varies && frame->words[1] != post->size_bytes)) {
        uint64_t sent = varies ? frame->words[1] : frame->size_bytes;
        char reason[FY_REASON_BYTES];
        (void)snprintf(reason, sizeof(reason),
                       "%s: rank %d sends %" PRIu64 " bytes to rank %d, which expects %zu",
                       fy_call_name(&c->call), post->source, sent, f->head.rank, post->size_bytes);
        fy_frame refusal = fy_collective_frame(c, TAG_REFUSE);
        refuse_all(f, c, c->group, &refusal, reason);
        return;
    }
    if (frame->size_bytes > 0)
        fy_copy(post->buffer + post->received, frame->data, frame->size_bytes);
    post->received += frame->size_bytes;
    post->complete = post->received == post->size_bytes;
}

/* `source` has failed in the first call over a group, the barrier that its ranks make when they
 * create it. So `source` makes no other call over it. */
static void note_quitter(ferry *f, fy_group *group, int source)
{
    if (group == NULL || group->id == 0)
        return;
    group->quitter = source + 1;
    for (fy_collective *c = f->collectives.first; c != NULL; c = c->next)
        if (c->group == group && c->number > 1)
            fy_collective_look_lost(f, c);
}

/* Takes a frame of the call. Returns whether a step has asked for it, or it needs no step. */
static bool collective_take(ferry *f, fy_collective *c, int source, const fy_frame *frame)
{
    bool elsewhere = frame->tag == TAG_ELSEWHERE;
    const fy_collective_call call = {
        frame->words[0] ^ (elsewhere ? FY_CALL_OVER_GROUP : 0),
        fy_collective_flags(frame->words[0]) & FY_VARIES ? 0 : frame->words[1], frame->words[2]};
    if (c->error != 0 || frame->tag == TAG_ANSWERED)
        return true;
    if (frame->tag == TAG_REFUSE) {
        collective_refuse(f, c, frame->data, frame->size_bytes);
        return true;
    }
    if (frame->tag == TAG_ABORT) {
        if (c->number == 1)
            note_quitter(f, c->group, source);
        /* A rank has died, and this rank has not learnt of it yet. The program must get the event
         * of the death before its call fails, so the frame is kept. */
        if ((int64_t)frame->words[1] == FERRY_EPEER && f->peers.gone_count == f->peers.absent_count)
            return false;
        take_abort(f, c, source, frame);
        return true;
    }
    if (!elsewhere && !fy_collective_calls_equal(&call, &c->call)) {
        fy_collective_disagree(f, c, source, &call);
        return true;
    }
    if (frame->tag == TAG_WAITS)
        return true;
    for (uint32_t i = 0; i < c->post_count; i++) {
        fy_post *post = &c->posts[i];
        if (!post->open || post->complete || post->source != source ||
            (post->tag != frame->tag && !elsewhere))
            continue;
        if (elsewhere) /* and all that it has sent for the call has come */
            fy_collective_disagree(f, c, source, &call);
        else
            fulfil(f, c, post, frame);
        return true;
    }
    return elsewhere; /* the source had done its part, and then freed the group */
}

/* Whether this rank would have to make the call that is given up, and does not because it is in
 * ferry_quiesce. The call counts as made, since all ranks have learned that it failed. */
static bool fails_quiescence(ferry *f, const fy_frame *frame)
{
    abort_note note;
    if (!has_note(frame) || !f->quiescence.runs)
        return false;
    memcpy(&note, frame->data, sizeof(note));
    fy_group *group = group_of(&f->collectives, group_id(frame));
    if (((note.calls[0].what | note.calls[1].what) & FY_CALL_QUIESCES) == 0 || group == NULL)
        return false;
    group->number = group->failed = frame->aux;
    f->quiescence.error = say_disagreement(f, group, frame->aux, &note);
    return true;
}

void fy_collectives_look_refused(ferry *f)
{
    for (const fy_queue *q = f->collectives.early.first; q != NULL; q = q->next) {
        for (const fy_packet *p = q->head; p != NULL; p = p->next) {
            const fy_group *group = group_of(&f->collectives, group_id(&p->frame));
            if (group != NULL && p->frame.aux == group->number + 1)
                (void)fails_quiescence(f, &p->frame);
        }
    }
}

/* Answers the rank that has sent packet `p`, if it waits for this one, which waits for all ranks:
 * in call `c`, or in ferry_quiesce if that is NULL. */
static bool answer(ferry *f, fy_packet *p, const fy_collective *c)
{
    const wait_note *note = p->frame.data;
    bool asks = p->frame.tag == TAG_WAITS && p->frame.size_bytes == sizeof(*note) &&
                group_id(&p->frame) != 0 &&
                note->state == f->quiescence.epoch + f->peers.gone_mark - f->quiescence.runs;
    /* Its source has not come to the call in which this rank waits for it. */
    if (!asks ||
        (c != NULL ? (int32_t)(c->number - (uint32_t)note->number) <= 0 : !f->quiescence.runs))
        return false;
    p->frame.tag = TAG_ELSEWHERE;
    p->frame.words[0] = FY_CALL_OVER_GROUP | (c != NULL ? c->call.what : FY_CALL_QUIESCES);
    p->frame.words[1] = c != NULL ? c->call.size_bytes : 0;
    bool sent = fy_send(f, FY_DATA, p->rank, &p->frame) == 0;
    p->frame.tag = TAG_ANSWERED;
    return sent;
}

bool fy_collectives_answer(ferry *f)
{
    enum {
        MEET =
            1 << FERRY_BARRIER | 1 << FERRY_ALLREDUCE | 1 << FERRY_ALLGATHER | 1 << FERRY_ALLTOALL
    };
    const fy_collective *c = f->collectives.last;
    bool answered = false;
    if (c != NULL && !(c->kept && c->id == 0 && (MEET >> c->what.kind & 1) != 0))
        c = NULL;
    for (const fy_queue *q = f->collectives.early.first; q != NULL; q = q->next)
        for (fy_packet *p = q->head; p != NULL; p = p->next)
            answered |= answer(f, p, c);
    return answered;
}

/* A frame of a call that has ended here. A call that succeeded leaves no frame, so its source has
 * made another call. This rank has reported success by mistake, which cannot be taken back. */
static void look_misfit(ferry *f, int source, const fy_frame *frame)
{
    const fy_group *group = group_of(&f->collectives, group_id(frame));
    const fy_collective_call call = {frame->words[0], frame->words[1], frame->words[2]};
    abort_note note;
    char texts[2][FY_CALL_TEXT];
    if (group == NULL || (int32_t)(frame->aux - group->failed) <= 0 || f->loss.error != 0)
        return;
    if (has_note(frame)) {
        memcpy(&note, frame->data, sizeof(note));
        (void)say_disagreement(f, group, frame->aux, &note);
    } else if (frame->tag == TAG_REFUSE) {
        (void)snprintf(f->quiescence.misfit, sizeof(f->quiescence.misfit), "%.*s",
                       (int)frame->size_bytes, (const char *)frame->data);
        return;
    } else if (frame->tag < 0 && (frame->tag != TAG_WAITS || frame->aux != group->done ||
                                  fy_collective_calls_equal(&call, &group->done_call))) {
        return;
    } else {
        fy_call_describe(&call, texts[0], sizeof(texts[0]));
        (void)snprintf(texts[1], sizeof(texts[1]), "called something else");
        if (frame->aux == group->done)
            fy_call_describe(&group->done_call, texts[1], sizeof(texts[1]));
        (void)fy_collective_fail(f, group, frame->aux, FERRY_EINVAL, "rank %d %s, rank %d %s",
                                 source, texts[0], f->head.rank, texts[1]);
    }
    fy_loss_note(f, FERRY_EINVAL, "%s", f->error_text);
}

static fy_verdict deliver_part(ferry *f, int source, const fy_frame *frame)
{
    fy_collectives *all = &f->collectives;
    if (frame->word_count != FY_CALL_WORDS) {
        fy_bad_frame(f, source, frame, "part of a collective");
        return FY_TAKEN;
    }
    fy_collective *c = collective_find(all, group_id(frame), frame->aux);
    if (c == NULL ? !is_to_come(all, frame) : collective_take(f, c, source, frame)) {
        /* Taken, or left over from a call that failed here. */
        if (c == NULL && frame->tag == TAG_ABORT && frame->aux == 1)
            note_quitter(f, group_of(all, group_id(frame)), source);
        if (c == NULL)
            look_misfit(f, source, frame);
        else if (c->error != 0 && !c->by_board)
            fy_collective_advance(f, c); /* now, while the error text is that of this call */
        return FY_TAKEN;
    }
    if (frame->tag == TAG_ABORT && fails_quiescence(f, frame))
        return FY_TAKEN;
    fy_packet *packet = fy_packet_create(&f->packets, frame->size_bytes);
    if (packet == NULL)
        return FY_LEAVE;
    fy_packet_fill(packet, source, FY_DATA, frame);
    if (fy_queue_set_push(&all->early, frame->aux % EARLY_QUEUES, packet))
        return FY_TAKEN;
    fy_packet_destroy(&f->packets, packet);
    return FY_LEAVE;
}

fy_verdict fy_collective_deliver(ferry *f, int source, const fy_frame *frame)
{
    bool works = is_disagreement(frame);
    if (works && fy_peer_of(f, source) == NULL)
        return FY_LEAVE;
    fy_verdict verdict = deliver_part(f, source, frame);
    if (works && verdict == FY_TAKEN)
        (void)fy_work_comes(f, source); /* there is a record */
    return verdict;
}

/* Whether a frame that came early belongs to a call that no longer runs. */
static bool is_left_over(const fy_collectives *all, const fy_frame *frame)
{
    return collective_find(all, group_id(frame), frame->aux) == NULL && !is_to_come(all, frame);
}

/* As fy_collective_look_early, in one queue. */
static void look_in(ferry *f, fy_collective *c, fy_queue *queue)
{
    fy_collectives *all = &f->collectives;
    fy_packet *before = NULL;
    for (fy_packet *packet = queue->head, *next; packet != NULL; packet = next) {
        const fy_frame *frame = &packet->frame;
        next = packet->next;
        if (c == NULL ? is_left_over(all, frame)
                      : frame->aux == c->number && group_id(frame) == c->id &&
                            collective_take(f, c, packet->rank, frame))
            fy_packet_destroy(&f->packets, fy_queue_set_unlink(&all->early, queue, before));
        else
            before = packet;
    }
}

void fy_collective_look_early(ferry *f, fy_collective *c)
{
    const fy_queue_set *early = &f->collectives.early;
    fy_queue *queue = c != NULL ? fy_queue_find(early, c->number % EARLY_QUEUES) : early->first;
    for (fy_queue *next; queue != NULL; queue = next) {
        next = c != NULL ? NULL : queue->next;
        look_in(f, c, queue);
    }
}

void fy_collective_finish(ferry *f, fy_collective *c)
{
    fy_collectives *all = &f->collectives;
    if (c->error != 0) {
        if (!c->told)
            tell_all(f, c, c->error, NULL);
        fy_collective_look_early(f, c);
    }
    fy_collective **link = &all->first, *before = NULL;
    while (*link != c) {
        before = *link;
        link = &before->next;
    }
    *link = c->next;
    if (all->last == c)
        all->last = before;
    c->finished = true;
    if (c->error != 0) {
        c->group->failed = c->group->number;
    } else {
        c->group->done = c->number;
        c->group->done_call = c->call;
    }
    fy_plan_scratch_end(c);
    fy_group_drop(c->group);
    c->group = NULL;
    if (c->op != 0)
        fy_op_end_explained(f, c->op, c->error);
    if (!c->kept)
        fy_collective_free(f, c);
}
