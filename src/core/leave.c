#include "core/leave.h"

#include <string.h>

#include "base/alloc.h"
#include "core/fail.h"
#include "core/kinds.h"
#include "core/membership.h"
#include "core/outgoing.h"
#include "core/rank.h"
#include "core/why.h"
#include "core/work.h"

enum { LEAVE_WORDS = 3 };

/* words[0] is the kind. The other two words of SUCCESSOR are a rank and its successor. words[1] of
 * MAY is the number of objects that the source has ever sent to the rank that leaves. words[2] of
 * ASK is the number of the last call that the source makes with the members. */
typedef enum leave_kind {
    LEAVE_ASK,       /* the source wants to leave */
    LEAVE_MAY,       /* the answer */
    LEAVE_SUCCESSOR, /* the successor of a rank; if the source is that rank, it asks for an answer
                      */
    LEAVE_KNOWN,     /* the answer */
} leave_kind;

static int make_leaves(ferry *f)
{
    if (f->leaves != NULL)
        return 0;
    size_t words = fy_set_words(f->head.ranks), ranks = (size_t)f->head.ranks;
    fy_leaves *l = fy_calloc(1, sizeof(*l) + 6 * words * sizeof(uint64_t) +
                                    ranks * (2 * sizeof(uint32_t) + sizeof(*f->head.successors)));
    if (l == NULL)
        return FERRY_ENOMEM;
    uint64_t *set = (uint64_t *)(l + 1);
    l->leaving = set;
    l->waiting = set += words;
    l->asked[FY_LEAVE_ASKS] = set += words;
    l->answered[FY_LEAVE_ASKS] = set += words;
    l->asked[FY_LEAVE_NAMES] = set += words;
    l->answered[FY_LEAVE_NAMES] = set += words;
    l->promised = (uint32_t *)(set + words);
    l->last = l->promised + ranks;
    f->head.successors = (int32_t *)(l->last + ranks);
    memset(f->head.successors, -1, ranks * sizeof(*f->head.successors));
    f->leaves = l;
    f->head.due |= FY_DUE_ALWAYS;
    return 0;
}

bool fy_peer_leaves(const ferry *f, int rank)
{
    return f->leaves != NULL && fy_set_has(f->leaves->leaving, rank);
}

bool fy_others_leave(const ferry *f)
{
    int rank = f->head.ranks;
    while (--rank >= 0 &&
           (rank == f->head.rank || !fy_peer_leaves(f, rank) || fy_peer_is_gone(f, rank)))
        ;
    return rank >= 0;
}

bool fy_peer_takes(const ferry *f, int rank)
{
    bool known = rank < f->info.starting || f->info.starting == 0 ||
                 fy_set_has(f->peers.ready, rank) ||
                 fy_group_place(f->collectives.group, rank) >= 0;
    return known && rank != f->head.rank && !fy_peer_is_gone(f, rank) && !fy_peer_leaves(f, rank);
}

int fy_peer_taker(const ferry *f, int after)
{
    for (int i = f->head.ranks; i > 0; i--) {
        after = after + 1 == f->head.ranks ? 0 : after + 1;
        if (fy_peer_takes(f, after))
            return after;
    }
    return -1;
}

static int leave_send(ferry *f, int rank, leave_kind kind, int whose, int who)
{
    const fy_frame frame = {.kind = FY_KIND_LEAVE,
                            .word_count = LEAVE_WORDS,
                            .words = {kind, (uint64_t)(uint32_t)whose, (uint64_t)(uint32_t)who}};
    return fy_send(f, FY_DATA, rank, &frame);
}

static void note_leaving(ferry *f, int rank, uint32_t last)
{
    fy_leaves *l = f->leaves;
    if (fy_set_has(l->leaving, rank))
        return;
    l->last[rank] = last;
    fy_set_add(l->leaving, rank);
    fy_set_add(l->waiting, rank);
    l->waiting_count++;
    fy_layers_members(f);
}

/* Notes that `who` is the successor of `whose`. False: the source is broken, because the chain of
 * successors would not end (leave.h), or because only this rank may name its successor. */
static bool note_successor(ferry *f, int whose, int who)
{
    int end = who;
    for (int hops = 0; f->head.successors[end] >= 0 && hops <= f->head.ranks; hops++)
        end = f->head.successors[end];
    if (end == whose || whose == f->head.rank)
        return false;
    f->head.successors[whose] = who;
    return true;
}

fy_verdict fy_leave_deliver(ferry *f, int source, const fy_frame *frame)
{
    uint64_t whose = frame->words[1], who = frame->words[2];
    if (frame->word_count != LEAVE_WORDS || frame->words[0] > LEAVE_KNOWN ||
        (frame->words[0] == LEAVE_SUCCESSOR &&
         (whose >= (uint64_t)f->head.ranks || who >= (uint64_t)f->head.ranks || whose == who))) {
        fy_bad_frame(f, source, frame, "word of a rank that leaves");
        return FY_TAKEN;
    }
    if (make_leaves(f) != 0)
        return FY_LEAVE;
    switch ((leave_kind)frame->words[0]) {
    case LEAVE_ASK:
        note_leaving(f, source, (uint32_t)who);
        break;
    case LEAVE_SUCCESSOR:
        if (!note_successor(f, (int)whose, (int)who))
            fy_bad_frame(f, source, frame, "successor of a rank that leaves");
        else if ((int)whose == source &&
                 /* the answer must come after all objects that go there */
                 (fy_paced_release(f, source) == FERRY_ENOMEM ||
                  leave_send(f, source, LEAVE_KNOWN, 0, 0) == FERRY_ENOMEM))
            return FY_LEAVE;
        break;
    case LEAVE_MAY:
        fy_set_add(f->leaves->answered[FY_LEAVE_ASKS], source);
        f->leaves->promised[source] = (uint32_t)whose;
        break;
    case LEAVE_KNOWN:
        fy_set_add(f->leaves->answered[FY_LEAVE_NAMES], source);
        break;
    }
    return FY_TAKEN;
}

/* Whether nothing is in flight from here that `rank` would have to pass on. */
static bool is_settled(ferry *f, int rank)
{
    for (int i = 0; i < FY_LAYERS; i++)
        if (fy_layer_at(i)->settled != NULL && !fy_layer_at(i)->settled(f, rank))
            return false;
    return !fy_has_backlog(f, FY_CONTROL, rank);
}

static int may(ferry *f, int rank)
{
    const fy_peer *peer = fy_peer_of(f, rank);
    return peer == NULL ? FERRY_ENOMEM : leave_send(f, rank, LEAVE_MAY, (int)peer->moved_out, 0);
}

void fy_leave_again(ferry *f)
{
    f->leaves->scarce = true;
}

/* Whether a frame was not sent for lack of memory. */
static bool is_short(ferry *f, int error)
{
    if (error == FERRY_ENOMEM)
        fy_leave_again(f);
    return error == FERRY_ENOMEM;
}

void fy_leave_answer(ferry *f)
{
    fy_leaves *l = f->leaves;
    for (int rank = 0; rank < f->head.ranks && l->waiting_count > 0; rank++) {
        if (!fy_set_has(l->waiting, rank) ||
            (!fy_peer_is_gone(f, rank) && (!is_settled(f, rank) || is_short(f, may(f, rank)))))
            continue;
        fy_set_remove(l->waiting, rank);
        l->waiting_count--;
    }
}

void fy_leave_tell(ferry *f, int rank)
{
    for (int whose = 0; f->leaves != NULL && whose < f->head.ranks; whose++)
        if (f->head.successors[whose] >= 0)
            (void)leave_send(f, rank, LEAVE_SUCCESSOR, whose, f->head.successors[whose]);
}

/* Asks all ranks, or `only` if it is not -1, that have not been asked in this step. Returns whether
 * all have answered. Ranks that have just joined are asked too. */
static bool all_answered(ferry *f, fy_leave_step step, int word, int only)
{
    fy_leaves *l = f->leaves;
    bool all = true;
    for (int rank = 0; rank < f->head.ranks; rank++) {
        if (rank == f->head.rank || fy_peer_is_gone(f, rank) || (only >= 0 && rank != only))
            continue;
        if (!fy_set_has(l->asked[step], rank)) {
            leave_kind kind = step == FY_LEAVE_ASKS ? LEAVE_ASK : LEAVE_SUCCESSOR;
            int error = leave_send(f, rank, kind, f->head.rank, word);
            if (error == 0)
                fy_set_add(l->asked[step], rank);
            else
                (void)is_short(f, error);
        }
        all = all && fy_set_has(l->answered[step], rank);
    }
    return all;
}

/* How many objects that `rank` has sent to this leaving rank have not come; of a rank that has
 * gone, none. */
static uint32_t missing_from(ferry *f, int rank)
{
    uint32_t promised = f->leaves->promised[rank];
    if (promised == 0 || fy_peer_is_gone(f, rank))
        return 0;
    const fy_peer *peer = fy_peer_of(f, rank);
    return peer == NULL ? promised : promised - peer->moved_in;
}

/* Whether all objects that other ranks have sent here have come. */
static bool all_came(ferry *f)
{
    int rank = 0;
    while (rank < f->head.ranks && missing_from(f, rank) == 0)
        rank++;
    return rank == f->head.ranks;
}

void fy_leave_why(ferry *f, fy_why *why)
{
    for (int rank = 0; f->leaves != NULL && rank < f->head.ranks; rank++) {
        uint32_t count = missing_from(f, rank);
        if (count != 0)
            fy_why_line(why,
                        ">%d has sent %u object%s that %s not come; or the program carries %s here",
                        rank, count, count == 1 ? "" : "s", count == 1 ? "has" : "have",
                        count == 1 ? "it" : "them");
    }
}

/* Whether the layers have given everything away. */
static bool layers_leave(ferry *f, int successor)
{
    bool all = true;
    for (int i = FY_LAYERS - 1; i >= 0; i--)
        if (fy_layer_at(i)->leave != NULL)
            all = fy_layer_at(i)->leave(f, successor) && all;
    return all;
}

/* If the successor has changed, tells all ranks. */
static void name_anew(ferry *f)
{
    /* The second set follows the first (make_leaves). */
    memset(f->leaves->asked[FY_LEAVE_NAMES], 0, 2 * fy_set_words(f->head.ranks) * sizeof(uint64_t));
}

/* Whether nothing that came before the answers is left to handle. */
static bool leave_is_empty(ferry *f)
{
    return !f->head.ops->transport.pending(f->head.port, FY_DATA) &&
           !f->head.ops->transport.pending(f->head.port, FY_CONTROL) && fy_rank_idle(f) &&
           fy_rank_is_drained(f);
}

/* Refuses what others send from now on, unless one has come that this rank has not asked. */
static bool shut(ferry *f)
{
    return f->head.ops->members.shut(f->head.port, f->peers.changes_seen);
}

/* Returns when no rank needs this one any more, and none can send to it. Waits for no objects and
 * messages if no rank is left that could take them. */
static void part(ferry *f)
{
    fy_patience patience = {0};
    int named = -1, successor;
    for (;; fy_progress_wait(f, FERRY_FOREVER, &patience)) {
        fy_peers_look(f);
        if (!all_answered(f, FY_LEAVE_ASKS, (int)f->collectives.group->number, -1))
            continue;
        bool stands = named >= 0 && !fy_peer_is_gone(f, named);
        successor = stands ? named : fy_peer_taker(f, f->head.rank);
        /* Without a successor this rank does not wait for objects. Two leaving ranks may have sent
         * each other objects whose type the other does not know: these never arrive. */
        if (successor >= 0) {
            if (!all_came(f) || !layers_leave(f, successor))
                continue;
            if (successor != named)
                name_anew(f);
            named = successor;
            if (!all_answered(f, FY_LEAVE_NAMES, successor, successor) ||
                !all_answered(f, FY_LEAVE_NAMES, successor, -1) || !leave_is_empty(f))
                continue;
        }
        if (shut(f))
            break;
    }
    /* Handles all that was sent before. No answers come any more. */
    while (successor >= 0 &&
           (f->head.ops->transport.pending(f->head.port, FY_DATA) || f->head.slow_lanes != 0))
        fy_progress_wait(f, FERRY_FOREVER, &patience);
}

int fy_leave(ferry *f)
{
    if (make_leaves(f) != 0)
        return fy_fail(f, FERRY_ENOMEM, "leave: no memory");
    fy_set_add(f->leaves->leaving, f->head.rank);
    fy_doing before = fy_account_enter(f, FY_DOING_LEAVE);
    f->head.ends = true;
    fy_rank_drain(f);
    for (int i = 0; i < FY_LAYERS; i++)
        if (fy_layer_at(i)->drain != NULL)
            fy_layer_at(i)->drain(f);
    part(f);
    fy_account_leave(f, before);
    return 0;
}

int fy_move_leaves(ferry *f, int rank, uint64_t count)
{
    fy_peer *peer = fy_peer_of(f, rank);
    if (peer == NULL)
        return FERRY_ENOMEM;
    fy_work_stirs(f);
    peer->moved_out++;
    peer->work_sent += count;
    f->head.work_finished += count;
    return 0;
}

void fy_move_arrives(ferry *f, int rank)
{
    fy_peer *peer = fy_peer_of(f, rank);
    if (peer != NULL)
        peer->moved_in++;
}
