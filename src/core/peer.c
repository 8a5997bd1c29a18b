#include "core/peer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/alloc.h"
#include "core/control.h"
#include "core/membership.h"
#include "core/outgoing.h"
#include "core/outlets.h"
#include "core/rank.h"
#include "core/why.h"
#include "core/work.h"

/* How long this rank waits for the frames of a dead peer while it has no quiet moment. A rank may
 * be stopped for this time between two looks. So a few thousand looks are required as well while
 * frames of the dead peer wait. Frames that this rank cannot take wait no longer. */
enum { BUSY_NS = 20 * 1000 * 1000, BUSY_LOOKS = 4096 };

/* The number that a gone rank adds to gone_mark. The sum of well-mixed numbers is the same in any
 * order of departure. */
static uint64_t mark_of(int rank)
{
    uint64_t mark = ((uint64_t)rank + 1) * UINT64_C(0x9e3779b97f4a7c15);
    return (mark ^ mark >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
}

/* The words that say whether something has come. Without them each poll asks the port. */
static void find_words(ferry *f)
{
    static const _Atomic uint32_t no_changes = 0;
    static const _Atomic uint64_t no_news = 0;
    const fy_port_ops *ops = f->head.ops;
    f->peers.changes =
        ops->members.changes != NULL ? ops->members.changes(f->head.port) : &no_changes;
    f->control_news =
        ops->transport.news != NULL ? ops->transport.news(f->head.port, FY_CONTROL) : NULL;
    f->control_tells = f->control_news != NULL;
    if (!f->control_tells)
        f->control_news = &no_news;
    if (!f->control_tells || ops->members.changes == NULL)
        f->head.due |= FY_DUE_ALWAYS;
}

int fy_peers_init(ferry *f)
{
    fy_peers *peers = &f->peers;
    size_t pages = ((size_t)f->head.ranks + FY_PEER_PAGE - 1) / FY_PEER_PAGE;
    f->head.peer_pages = fy_calloc(pages, sizeof(*f->head.peer_pages));
    peers->going = fy_calloc(6 * fy_set_words(f->head.ranks) + FY_OUTCOME_BYTES / sizeof(uint64_t),
                             sizeof(uint64_t));
    if (f->head.peer_pages == NULL || peers->going == NULL)
        return FERRY_ENOMEM;
    peers->gone = peers->going + fy_set_words(f->head.ranks);
    peers->absent = peers->gone + fy_set_words(f->head.ranks);
    peers->awaited = peers->absent + fy_set_words(f->head.ranks);
    peers->ready = peers->awaited + fy_set_words(f->head.ranks);
    peers->unseen = peers->ready + fy_set_words(f->head.ranks);
    peers->outcome = (char *)(peers->unseen + fy_set_words(f->head.ranks));
    int starting = f->info.starting != 0 ? f->info.starting : f->head.ranks;
    peers->shifts = f->head.rank >= starting;
    for (int rank = starting; rank < f->head.ranks; rank++) {
        if (rank == f->head.rank)
            continue;
        fy_set_add(peers->absent, rank);
        fy_set_add(peers->going, rank);
        fy_set_add(peers->gone, rank);
        peers->absent_count++;
        peers->gone_count++;
        peers->gone_mark += mark_of(rank);
    }
    find_words(f);
    return 0;
}

void fy_peers_fini(ferry *f)
{
    fy_peers *peers = &f->peers;
    for (int page = 0; f->head.peer_pages != NULL && page * FY_PEER_PAGE < f->head.ranks; page++)
        free(f->head.peer_pages[page]);
    free(f->head.peer_pages);
    f->head.peer_pages = NULL;
    free(peers->going);
    *peers = (fy_peers){0};
}

/* Messages to the rank itself, and those that are counted one by one, take another way. */
static __attribute__((cold)) void find_outlets(const ferry *f, fy_peer *page, int first)
{
    static const fy_outlet none; /* without room, so nothing is ever written into it */
    const fy_transport_ops *transport = &f->head.ops->transport;
    for (int i = 0; i < FY_PEER_PAGE; i++) {
        int rank = first + i;
        bool own_way = transport->outlet == NULL || f->head.profile != NULL ||
                       rank >= f->head.ranks || rank == f->head.rank;
        page[i].outlet =
            own_way ? (fy_outlet *)(uintptr_t)&none : transport->outlet(f->head.port, rank);
    }
}

extern inline fy_peer *fy_peer_of(ferry *f, int rank);

__attribute__((cold)) fy_peer *fy_peer_make(ferry *f, int rank)
{
    fy_peer **page = &f->head.peer_pages[rank >> FY_PEER_PAGE_BITS];
    *page = fy_calloc(FY_PEER_PAGE, sizeof(**page));
    if (*page == NULL)
        return NULL;
    find_outlets(f, *page, rank & ~(FY_PEER_PAGE - 1));
    return &(*page)[rank & (FY_PEER_PAGE - 1)];
}

__attribute__((cold)) int fy_outlet_follow(ferry *f, fy_outlet *outlet)
{
    f->head.ops->transport.follow(f->head.port, outlet);
    return 0;
}

bool fy_peer_is_gone(const ferry *f, int rank)
{
    return f->peers.gone_count != 0 && fy_set_has(f->peers.gone, rank);
}

const char *fy_peer_outcome(const ferry *f, int rank)
{
    char *text = f->peers.outcome;
    int status = f->head.ops->members.outcome != NULL
                     ? f->head.ops->members.outcome(f->head.port, rank)
                     : -1;
    if (fy_set_has(f->peers.absent, rank))
        return "has not joined yet";
    if (status < 0)
        return f->head.ops->members.peer(f->head.port, rank) == FY_PEER_DEAD ? "has died"
                                                                             : "has left the job";
    if (WIFSIGNALED(status))
        (void)snprintf(text, FY_OUTCOME_BYTES, "was killed by signal %d (SIG%s)", WTERMSIG(status),
                       sigabbrev_np(WTERMSIG(status)));
    else
        (void)snprintf(text, FY_OUTCOME_BYTES, "ended with exit status %d", WEXITSTATUS(status));
    return text;
}

static void call(ferry *f, void *arg)
{
    f->peers.fn(f, f->peers.arg, arg);
}

static void peer_tell(ferry *f, ferry_peer_event event)
{
    f->head.done++;
    if (f->peers.fn != NULL)
        fy_run(f, FY_DOING_HANDLER, 0, call, &event);
}

/* The port may release its resources for a rank that is gone. */
static void peer_forget(ferry *f, int rank)
{
    if (f->head.ops->members.bury == NULL)
        return;
    fy_control_lock(f);
    f->head.ops->members.bury(f->head.port, rank);
    fy_control_unlock(f);
}

uint32_t fy_peer_shifts(const ferry *f)
{
    return (uint32_t)f->peers.shifts;
}

/* A rank that was absent has joined. It may have gone again, or have gone before it opened Ferry:
 * ports tell the same. Each rank counts both, and then buries it, so that all agree on the shifts.
 * The program hears of it if the rank lives, has sent something or was asked for. */
static void peer_settle(ferry *f, int rank, bool lives)
{
    fy_peers *peers = &f->peers;
    const fy_member_ops *members = &f->head.ops->members;
    bool awaited = fy_set_has(peers->awaited, rank);
    bool heard = lives || (members->silent != NULL && !members->silent(f->head.port, rank));
    fy_set_remove(peers->absent, rank);
    fy_set_remove(peers->awaited, rank);
    peers->absent_count--;
    fy_set_remove(peers->going, rank);
    fy_set_remove(peers->gone, rank);
    peers->gone_count--;
    peers->gone_mark -= mark_of(rank);
    peers->shifts++;
    fy_quiesce_members_changed(f);
    if (lives) {
        fy_quiesce_tell(f, rank);
        fy_leave_tell(f, rank);
        fy_join_tell(f, rank);
    }
    /* Starting a rank counts as work. It ends only now, when the set of ranks has changed. */
    if (awaited)
        f->head.work_finished++;
    if (heard)
        peer_tell(f, (ferry_peer_event){.rank = rank, .joined = true});
    else if (!awaited)
        fy_set_add(peers->unseen, rank);
}

/* Returns how many have come. Outside of a poll it also counts those that have gone again. */
static int look_for_newcomers(ferry *f, bool polling)
{
    fy_peers *peers = &f->peers;
    int count = 0;
    for (int rank = 0; rank < f->head.ranks; rank++) {
        if (!fy_set_has(peers->absent, rank))
            continue;
        fy_peer_state state = f->head.ops->members.peer(f->head.port, rank);
        if (state == FY_PEER_ABSENT || (polling && state != FY_PEER_ALIVE))
            continue;
        peer_settle(f, rank, state == FY_PEER_ALIVE);
        count++;
    }
    return count;
}

static void look_how_crowded(ferry *f)
{
    fy_port_info info;
    f->head.ops->transport.query(f->head.port, &info);
    f->info.crowded = info.crowded;
}

bool fy_peers_arrived(ferry *f, int rank)
{
    if (!fy_set_has(f->peers.absent, rank))
        return false;
    (void)look_for_newcomers(f, true); /* not counted: the call that delivers looks again */
    return !fy_set_has(f->peers.gone, rank);
}

int fy_peers_look(ferry *f)
{
    fy_peers *peers = &f->peers;
    int count = 0;
    if (f->head.ops->members.changes != NULL) {
        /* relaxed: `peer` reads the states; a later look sees what this one misses */
        uint32_t changes = atomic_load_explicit(peers->changes, memory_order_relaxed);
        if (changes == peers->changes_seen)
            return 0;
        peers->changes_seen = changes;
        fy_layers_due(f);
        look_how_crowded(f);
        fy_why_look(f);
    }
    if (peers->absent_count != 0)
        count = look_for_newcomers(f, false);
    for (int rank = 0; rank < f->head.ranks; rank++) {
        if (rank == f->head.rank || fy_set_has(peers->going, rank) ||
            f->head.ops->members.peer(f->head.port, rank) == FY_PEER_ALIVE)
            continue;
        fy_set_add(peers->going, rank);
        if (!peers->news) {
            peers->news_ns = f->head.ops->host.now(f->head.port);
            peers->looks = 0;
        }
        peers->news = true;
        fy_rest_due(f);
    }
    return count;
}

static void bury(ferry *f, int rank)
{
    fy_peers *peers = &f->peers;
    fy_set_add(peers->gone, rank);
    peers->gone_count++;
    peers->gone_mark += mark_of(rank);
    peers->shifts++;
    fy_layers_due(f);
    bool died = f->head.ops->members.peer(f->head.port, rank) == FY_PEER_DEAD;
    bool seen = !fy_set_has(peers->unseen, rank);
    if (seen)
        fy_loss_of_rank(f, rank, died);
    fy_collectives_lose(f, rank, died);
    fy_ops_fail_peer(f, rank, died);
    fy_mail_peer_gone(f, rank);
    fy_quiesce_members_changed(f);
    for (int i = 0; i < FY_LAYERS; i++)
        if (fy_layer_at(i)->peer_gone != NULL)
            fy_layer_at(i)->peer_gone(f, rank);
    fy_layers_members(f);
    if (seen)
        peer_tell(f, (ferry_peer_event){.rank = rank, .died = died});
    peer_forget(f, rank);
}

/* Whether all frames of a rank that has gone are handled: none may be lost. */
static bool is_heard(const ferry *f, int rank)
{
    bool dead = f->head.ops->members.peer(f->head.port, rank) == FY_PEER_DEAD;
    return f->head.ops->members.silent == NULL || (dead && f->peers.looks > BUSY_LOOKS) ||
           f->head.ops->members.silent(f->head.port, rank);
}

int fy_peers_bury(ferry *f)
{
    fy_peers *peers = &f->peers;
    bool quiet = !f->head.ops->transport.pending(f->head.port, FY_DATA) && f->tags.count == 0;
    if (!quiet && f->head.ops->host.now(f->head.port) - peers->news_ns < BUSY_NS)
        return 0;
    peers->news = false;
    peers->looks++;
    int count = 0;
    /* Dead ranks first: others may have left because of them. */
    for (int pass = 0; pass < 2; pass++)
        for (int rank = 0; rank < f->head.ranks; rank++) {
            if (!fy_set_has(peers->going, rank) || fy_set_has(peers->gone, rank) ||
                (pass == 0 && f->head.ops->members.peer(f->head.port, rank) != FY_PEER_DEAD))
                continue;
            if (!is_heard(f, rank)) {
                peers->news = true;
                fy_rest_due(f);
                continue;
            }
            bury(f, rank);
            count++;
        }
    return count;
}

int fy_peers_index(const ferry *f, int rank)
{
    int index = rank;
    for (int i = 0; f->peers.gone_count != 0 && i < rank; i++)
        index -= fy_set_has(f->peers.gone, i);
    return index;
}

int fy_peers_at(const ferry *f, int index)
{
    if (f->peers.gone_count == 0)
        return index;
    int rank = 0;
    for (; rank < f->head.ranks; rank++)
        if (!fy_set_has(f->peers.gone, rank) && index-- == 0)
            break;
    return rank;
}

int fy_work_leaves(ferry *f, int rank, uint64_t count)
{
    fy_peer *peer = fy_peer_of(f, rank);
    if (peer == NULL)
        return FERRY_ENOMEM;
    fy_work_stirs(f);
    peer->work_sent += count;
    f->head.work_finished += count;
    return 0;
}

int fy_work_arrives(ferry *f, int rank, uint64_t count)
{
    fy_peer *peer = fy_peer_of(f, rank);
    if (peer == NULL)
        return FERRY_ENOMEM;
    fy_work_stirs(f);
    peer->work_received += count;
    f->head.work_created += count;
    return 0;
}

void fy_work_goes(ferry *f, int rank)
{
    if (fy_work_leaves(f, rank, 1) == 0)
        fy_work_created(f, 1);
}

int fy_send_as_work(ferry *f, int rank, const fy_frame *frame)
{
    if (fy_peer_of(f, rank) == NULL)
        return FERRY_ENOMEM;
    int error = fy_send(f, FY_DATA, rank, frame);
    if (error == 0)
        fy_work_goes(f, rank);
    return error;
}

int fy_work_comes(ferry *f, int rank)
{
    int error = fy_work_arrives(f, rank, 1);
    if (error == 0)
        fy_work_finished(f, 1);
    return error;
}

int ferry_peer_watch(ferry *f, ferry_peer_fn *fn, void *arg)
{
    f->peers.fn = fn;
    f->peers.arg = arg;
    if (f->head.ops->members.endure != NULL)
        f->head.ops->members.endure(f->head.port, fn != NULL);
    return 0;
}

static void ignore(ferry *f, void *arg, const ferry_peer_event *event)
{
    (void)f;
    (void)arg;
    (void)event;
}

void fy_peers_ignore(ferry *f)
{
    if (f->peers.fn != NULL)
        f->peers.fn = ignore;
}

bool ferry_peer_is_gone(const ferry *f, int rank)
{
    return rank >= 0 && rank < f->head.ranks && fy_peer_is_gone(f, rank);
}
