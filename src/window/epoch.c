/* The three synchronisations of a window.
 *
 * - Fence: every rank waits for the answers to its gets. Then the ranks meet and learn whether any
 *   of them has puts. If so, every rank carries out its own puts and waits for the answers, and a
 *   barrier follows. So no put takes effect before a get of any rank. In a direct window no put
 *   waits, so one barrier is enough.
 * - Post and start: the same among few ranks. A rank that completes tells its targets that it is
 *   ready. When all ranks to which a target has posted are ready, the target tells them to go. They
 *   carry out their queues and tell the target that they have done so. The target does its part in
 *   polls.
 * - Lock: as in array.c, directly or by a frame. A target keeps requests that it cannot grant
 * yet. */
#include <stdio.h>
#include <string.h>

#include <ferry/member.h>

#include "core/fail.h"
#include "core/why.h"
#include "window/state.h"

enum { LOOK_NS = 1000 * 1000, TRY_NS = 20 * 1000 };

/* Notes whether an epoch is open towards `rank`, after one began or ended or the rank went. */
static void window_open_note(ferry_window *w, int rank)
{
    fy_window_peer *peer = &w->peers[rank];
    peer->open = peer->array != NULL && fy_window_is_alive(w->f, rank) &&
                 (w->fenced || peer->started || peer->locked != FY_HELD_NOT);
}

/* As fy_window_tell, and polls until there is memory. Returns whether the rank is there. */
static bool window_tell_surely(ferry_window *w, int rank, fy_window_verb verb)
{
    while (fy_window_is_alive(w->f, rank)) {
        const int error = fy_window_tell(w, rank, verb);
        if (error != FERRY_ENOMEM)
            return error == 0;
        (void)ferry_wait(w->f, LOOK_NS);
    }
    return false;
}

/* Ends a call that has ended the operations on `which`. `gone`: a rank that has gone; -1: none. */
static int finish(ferry_window *w, const char *call, int which, int gone)
{
    const int error = gone < 0 ? 0 : fy_fail(w->f, FERRY_EPEER, "%s: rank %d is gone", call, gone);
    return fy_window_report(w, call, which, error);
}

/* Waits a while for `rank`, which `what`. fy_windows_why reports it. */
static void epoch_await(ferry_window *w, int rank, const char *what, uint64_t pause_ns)
{
    w->awaits = what;
    w->awaited = rank;
    (void)ferry_wait(w->f, pause_ns);
    w->awaits = NULL;
}

static void tell_wait(fy_why *why, const ferry_window *w)
{
    if (w->awaits == NULL)
        return;
    if (w->awaits_lock >= 0)
        fy_why_line(why, ">%d %s the lock of rank %d in a window", w->awaited, w->awaits,
                    w->awaits_lock);
    else
        fy_why_line(why, ">%d %s", w->awaited, w->awaits);
}

void fy_windows_why(ferry *f, fy_why *why)
{
    fy_windows *all = fy_windows_of(f);
    if (all == NULL)
        return;
    for (fy_link *link = all->windows.next; link != &all->windows; link = link->next)
        tell_wait(why, (ferry_window *)(void *)link);
    for (fy_link *link = all->lock_waits.next; link != &all->lock_waits; link = link->next) {
        const fy_lock_wait *wait = (fy_lock_wait *)(void *)link;
        int holder = fy_array_holder(f, wait->window->array, wait->rank, (fy_lock_part)wait->kind);
        if (holder >= 0)
            fy_why_line(why, "rank %d waits for this rank's lock in a window; rank %d holds it",
                        wait->rank, holder);
    }
}

/* A rank of which answers are awaited: `rank`, or if that is -1 any rank. -1: there is none. */
static int unanswered(const ferry_window *w, int rank)
{
    const int first = rank < 0 ? 0 : rank, last = rank < 0 ? w->ranks - 1 : rank;
    for (int r = first; r <= last && w->asked > 0; r++)
        if (w->peers[r].asked > 0)
            return r;
    return -1;
}

static void epoch_settle(ferry_window *w, int rank, const char *what)
{
    for (int other; (other = unanswered(w, rank)) >= 0;)
        epoch_await(w, other, what, LOOK_NS);
}

void fy_window_settle(ferry_window *w, int rank)
{
    epoch_settle(w, rank, "has not answered an operation on its elements in a window");
}

/* The cause of an error. Ranks that learn of a death at different times may call different
 * collectives after it. Then the death is the cause. */
static int cause_of(ferry_window *w, const char *call, int error)
{
    for (int rank = 0; error == FERRY_EINVAL && rank < w->ranks; rank++)
        if (w->peers[rank].id != 0 && !fy_window_is_alive(w->f, rank))
            error = fy_window_check_rank(w, call, rank);
    return error;
}

/* The group of a collective call; NULL: the members. They may be fewer than the ranks that made the
 * window. If a rank has joined, its program cannot make the call. All ranks of the window decide
 * alike, because they agree on the members. */
static ferry_group *group_now(const ferry_window *w)
{
    const int count = w->makers == NULL ? 0 : ferry_member_count(w->f);
    for (int place = 0; place < count; place++)
        if (w->peers[ferry_member_rank(w->f, place)].id == 0)
            return w->makers;
    return w->group;
}

int fy_window_barrier(ferry_window *w, const char *call)
{
    ferry_collective what = FERRY_COLLECTIVE_DEFAULTS;
    what.kind = FERRY_BARRIER;
    what.group = group_now(w);
    if (what.group == NULL) /* this call is faster */
        return cause_of(w, call, ferry_barrier(w->f));
    return cause_of(w, call, ferry_collective_run(w->f, &what));
}

/* Opens the first epoch of fences. Each fence ends one and opens the next. */
static void open_all(ferry_window *w)
{
    w->fenced = true;
    for (int rank = 0; rank < w->ranks; rank++)
        window_open_note(w, rank);
}

/* Names the fence in an error of the call that carries it out, if this rank has called it. */
static int name_fence(const ferry_window *w, int error)
{
    static const char own[] = "ferry_allreduce (max of int64) of 8 bytes";
    char text[256];
    (void)snprintf(text, sizeof(text), "%s", ferry_error_message(w->f));
    const char *at = strstr(text, own);
    return at == NULL ? error
                      : fy_fail(w->f, error, "%.*sferry_window_fence%s", (int)(at - text), text,
                                at + sizeof(own) - 1);
}

/* A barrier, after which each rank knows whether any rank has puts. */
static int meet(ferry_window *w, const char *call, bool *puts)
{
    const int64_t own = w->words > 0 || !fy_list_empty(&w->queue);
    int64_t most = 0;
    ferry_collective what = FERRY_COLLECTIVE_DEFAULTS;
    what.kind = FERRY_ALLREDUCE;
    what.type = FERRY_INT64;
    what.reduction = FERRY_MAX;
    what.count = 1;
    what.in = &own;
    what.out = &most;
    what.group = group_now(w);
    const int error = ferry_collective_run(w->f, &what);
    *puts = most != 0;
    return cause_of(w, call, error == FERRY_EINVAL ? name_fence(w, error) : error);
}

int ferry_window_fence(ferry_window *w)
{
    static const char call[] = "window_fence";
    bool puts = false;
    int error = fy_window_check(w, call);
    if (error != 0)
        return error;
    fy_window_settle(w, -1);
    error = w->direct ? fy_window_barrier(w, call) : meet(w, call, &puts);
    if (error != 0) {
        fy_window_give_up(w, -1, error);
    } else if (puts) {
        fy_window_carry_out(w, -1);
        fy_window_settle(w, -1);
        error = fy_window_barrier(w, call);
    }
    if (!w->fenced)
        open_all(w);
    return fy_window_report(w, call, FY_WINDOW_ALL, error);
}

static int check_ranks(ferry_window *w, const char *call, const int *ranks, int count)
{
    int error = fy_window_check(w, call);
    if (error == 0 && (count < 0 || (ranks == NULL && count > 0)))
        error = fy_fail(w->f, FERRY_EINVAL, "%s: %d ranks at %p", call, count, (const void *)ranks);
    for (int i = 0; i < count && error == 0; i++) {
        error = fy_window_check_rank(w, call, ranks[i]);
        for (int j = 0; j < i && error == 0; j++)
            if (ranks[j] == ranks[i])
                error = fy_fail(w->f, FERRY_EINVAL, "%s: rank %d is given twice", call, ranks[i]);
    }
    return error;
}

int ferry_window_post(ferry_window *w, const int *ranks, int count)
{
    int error = check_ranks(w, "window_post", ranks, count);
    if (error != 0)
        return error;
    if (w->posted)
        return fy_fail(w->f, FERRY_ESTATE,
                       "window_post: the epoch of the last call is open; call window_wait first");
    w->posted = true;
    w->exposure_error = 0;
    w->exposures = (uint32_t)count;
    for (int i = 0; i < count; i++)
        w->peers[ranks[i]].exposed = FY_EXPOSED_OPEN;
    for (int i = 0; i < count; i++) {
        int told = fy_window_tell(w, ranks[i], FY_WINDOW_POST);
        if (told != 0)
            fy_window_unexpose(w, ranks[i], told);
    }
    return 0;
}

void fy_window_unexpose(ferry_window *w, int rank, int error)
{
    if (w->peers[rank].exposed == FY_EXPOSED_NOT)
        return;
    w->peers[rank].exposed = FY_EXPOSED_NOT;
    w->exposures--;
    if (w->exposure_error == 0) {
        w->exposure_error = error;
        w->exposure_rank = rank;
    }
    fy_window_progress_go(w);
}

/* When no rank has gets left, tells all ranks to do their puts. */
void fy_window_progress_go(ferry_window *w)
{
    w->go_due = false;
    for (int rank = 0; rank < w->ranks; rank++)
        if (w->peers[rank].exposed == FY_EXPOSED_OPEN)
            return;
    for (int rank = 0; rank < w->ranks; rank++) {
        if (w->peers[rank].exposed != FY_EXPOSED_READY)
            continue;
        w->peers[rank].exposed = FY_EXPOSED_GOING;
        if (fy_window_tell(w, rank, FY_WINDOW_GO) == FERRY_ENOMEM) {
            w->peers[rank].exposed = FY_EXPOSED_READY;
            w->go_due = true; /* a later poll tells it */
        }
    }
}

void fy_window_told(ferry_window *w, int source, fy_window_verb verb)
{
    fy_window_peer *peer = &w->peers[source];
    if (verb == FY_WINDOW_POST) {
        peer->posts++;
    } else if (verb == FY_WINDOW_GO) {
        peer->go = true;
    } else if (verb == FY_WINDOW_READY && peer->exposed == FY_EXPOSED_OPEN) {
        peer->exposed = FY_EXPOSED_READY;
        fy_window_progress_go(w);
    } else if (verb == FY_WINDOW_DONE && peer->exposed == FY_EXPOSED_GOING) {
        peer->exposed = FY_EXPOSED_NOT;
        w->exposures--;
    }
}

int ferry_window_start(ferry_window *w, const int *ranks, int count)
{
    int error = check_ranks(w, "window_start", ranks, count);
    if (error != 0)
        return error;
    if (w->access)
        return fy_fail(w->f, FERRY_ESTATE,
                       "window_start: the epoch of the last call is open; call window_complete");
    for (int i = 0; i < count; i++) {
        while (w->peers[ranks[i]].posts == 0) {
            if (!fy_window_is_alive(w->f, ranks[i]))
                return fy_window_check_rank(w, "window_start", ranks[i]);
            epoch_await(w, ranks[i], "has not called ferry_window_post for this rank", LOOK_NS);
        }
    }
    for (int i = 0; i < count; i++) {
        w->peers[ranks[i]].posts--;
        w->peers[ranks[i]].started = true;
        w->peers[ranks[i]].go = false;
        window_open_note(w, ranks[i]);
    }
    w->access = true;
    return 0;
}

/* Waits until a target allows the puts, and begins them. Returns whether it did. */
static bool complete_at(ferry_window *w, int rank)
{
    fy_window_peer *peer = &w->peers[rank];
    while (!peer->go && fy_window_is_alive(w->f, rank))
        epoch_await(w, rank, "waits in a window for other ranks' ferry_window_complete", LOOK_NS);
    if (peer->go)
        fy_window_carry_out(w, rank);
    else
        fy_window_give_up(w, rank, FERRY_EPEER);
    return peer->go;
}

/* Tells all targets. Returns `gone`; if that is -1, the first target that has gone. */
static int tell_targets(ferry_window *w, fy_window_verb verb, int gone)
{
    for (int rank = 0; rank < w->ranks; rank++)
        if (w->peers[rank].started && !window_tell_surely(w, rank, verb) && gone < 0)
            gone = rank;
    return gone;
}

int ferry_window_complete(ferry_window *w)
{
    static const char call[] = "window_complete";
    int error = fy_window_check(w, call);
    if (error != 0)
        return error;
    if (!w->access)
        return fy_fail(w->f, FERRY_ESTATE, "%s: no epoch is open; call window_start first", call);
    fy_window_settle(w, -1);
    int gone = tell_targets(w, FY_WINDOW_READY, -1);
    for (int rank = 0; rank < w->ranks; rank++)
        if (w->peers[rank].started && !complete_at(w, rank) && gone < 0)
            gone = rank;
    fy_window_settle(w, -1);
    gone = tell_targets(w, FY_WINDOW_DONE, gone);
    error = finish(w, call, FY_WINDOW_STARTED, gone);
    for (int rank = 0; rank < w->ranks; rank++) {
        w->peers[rank].started = false;
        window_open_note(w, rank);
    }
    w->access = false;
    return error;
}

/* Ends an exposure whose ranks have all completed. */
static int exposure_end(ferry_window *w, const char *call)
{
    const int error = w->exposure_error, rank = w->exposure_rank;
    w->posted = false;
    w->exposure_error = 0;
    if (error == FERRY_EPEER)
        return fy_fail(w->f, error, "%s: rank %d, to which this rank has posted, is gone", call,
                       rank);
    return error == 0 ? 0
                      : fy_fail(w->f, error, "%s: window_post could not tell rank %d: %s", call,
                                rank, error == FERRY_ENOMEM ? "no memory" : ferry_strerror(error));
}

static int check_posted(ferry_window *w, const char *call)
{
    int error = fy_window_check(w, call);
    if (error == 0 && !w->posted)
        error = fy_fail(w->f, FERRY_ESTATE, "%s: no epoch is open; call window_post first", call);
    return error;
}

int ferry_window_wait(ferry_window *w)
{
    static const char call[] = "window_wait";
    int error = check_posted(w, call);
    if (error != 0)
        return error;
    for (int rank = 0; w->exposures > 0; rank = (rank + 1) % w->ranks)
        if (w->peers[rank].exposed != FY_EXPOSED_NOT)
            epoch_await(w, rank, "has not ended ferry_window_complete", LOOK_NS);
    return exposure_end(w, call);
}

int ferry_window_test(ferry_window *w)
{
    static const char call[] = "window_test";
    int error = check_posted(w, call);
    if (error != 0)
        return error;
    (void)ferry_poll(w->f);
    if (w->exposures > 0)
        return 0;
    error = exposure_end(w, call);
    return error == 0 ? 1 : error;
}

static int lock_near(ferry_window *w, int rank, fy_lock_part kind)
{
    fy_array *array = w->peers[rank].array;
    while (!fy_array_lock(w->f, array, ferry_rank(w->f), kind)) {
        const int holder = fy_array_holder(w->f, array, ferry_rank(w->f), kind);
        w->awaits_lock = rank;
        if (holder >= 0)
            epoch_await(w, holder, "holds", TRY_NS);
        w->awaits_lock = -1;
        if (!fy_window_is_alive(w->f, rank))
            return fy_window_check_rank(w, "window_lock", rank);
    }
    w->peers[rank].locked = (uint8_t)kind;
    window_open_note(w, rank);
    return 0;
}

int ferry_window_lock(ferry_window *w, ferry_window_lock_kind kind, int rank)
{
    static const char call[] = "window_lock";
    int error = fy_window_check(w, call);
    if (error == 0)
        error = fy_window_check_rank(w, call, rank);
    if (error != 0)
        return error;
    if ((unsigned)kind > FERRY_WINDOW_EXCLUSIVE)
        return fy_fail(w->f, FERRY_EINVAL, "%s: kind %d is unknown; there are 0..1", call,
                       (int)kind);
    fy_window_peer *peer = &w->peers[rank];
    if (peer->locked != FY_HELD_NOT)
        return fy_fail(w->f, FERRY_ESTATE, "%s: this rank has the lock of rank %d already", call,
                       rank);
    fy_lock_part held = kind == FERRY_WINDOW_EXCLUSIVE ? FY_HELD_EXCLUSIVE : FY_HELD_SHARED;
    if (peer->array != NULL)
        return lock_near(w, rank, held);
    error = fy_window_ask_lock(w, rank, held);
    if (error != 0)
        return error;
    w->awaits_lock = rank;
    epoch_settle(w, rank, "has not granted");
    w->awaits_lock = -1;
    if (peer->locked != FY_HELD_NOT)
        return 0;
    return fy_fail(w->f, FERRY_EPEER, "%s: rank %d is gone", call, rank);
}

static int check_locked(ferry_window *w, const char *call, int rank)
{
    int error = fy_window_check(w, call);
    if (error == 0 && (rank < 0 || rank >= w->ranks || w->peers[rank].id == 0))
        error = fy_window_check_rank(w, call, rank);
    if (error == 0 && w->peers[rank].locked == FY_HELD_NOT)
        error = fy_fail(w->f, FERRY_ESTATE,
                        "%s: this rank has no lock of rank %d; call window_lock first", call, rank);
    return error;
}

/* Carries out the operations that have begun towards `rank`: first the gets, then the puts. Returns
 * whether the rank is there. */
static bool perform(ferry_window *w, int rank)
{
    fy_window_settle(w, rank);
    fy_window_carry_out(w, rank);
    fy_window_settle(w, rank);
    /* seq_cst: puts into words are done before this rank's next reads */
    atomic_thread_fence(memory_order_seq_cst);
    return fy_window_is_alive(w->f, rank);
}

int ferry_window_flush(ferry_window *w, int rank)
{
    static const char call[] = "window_flush";
    int error = check_locked(w, call, rank);
    return error != 0 ? error : finish(w, call, rank, perform(w, rank) ? -1 : rank);
}

int ferry_window_unlock(ferry_window *w, int rank)
{
    static const char call[] = "window_unlock";
    int error = check_locked(w, call, rank);
    if (error != 0)
        return error;
    bool there = perform(w, rank);
    fy_window_peer *peer = &w->peers[rank];
    peer->locked = FY_HELD_NOT;
    window_open_note(w, rank);
    if (there && peer->array != NULL)
        fy_array_unlock(w->f, peer->array, ferry_rank(w->f));
    else if (there)
        there = window_tell_surely(w, rank, FY_WINDOW_UNLOCK);
    return finish(w, call, rank, there ? -1 : rank);
}
