#include "balance/schedulers/coordinator.h"

#include <stdlib.h>
#include <string.h>

#include "balance/schedulers/schedulers.h"
#include "base/alloc.h"

/* Loads that differ by less are alike. */
static const float ALIKE = 1.25F;

static int span_of(const fy_coordinators *coordinators, int level)
{
    int span = 1;
    for (int i = 0; i < level; i++)
        span *= coordinators->children_max;
    return span;
}

/* The first rank of the group of `level` that `rank` is in. */
static int base_of(const fy_coordinators *coordinators, int rank, int level)
{
    int span = span_of(coordinators, level);
    return rank / span * span;
}

/* The rank of the coordinator of the group that begins at `base`; -1 if no rank of it is present.
 */
static int host_of(const ferry_scheduling *s, const fy_coordinators *coordinators, int base,
                   int level)
{
    int ranks = ferry_scheduling_ranks(s), span = span_of(coordinators, level);
    for (int rank = base; rank < ranks && rank - base < span; rank++)
        if (rank == coordinators->rank || ferry_scheduling_accepts(s, rank))
            return rank;
    return -1;
}

bool fy_coordinator_differs(uint32_t a, uint32_t b)
{
    if (a == 0 || b == 0)
        return a != b;
    return __builtin_clz(a) != __builtin_clz(b);
}

bool fy_coordinator_weighs_otherwise(float a, float b)
{
    return a > ALIKE * b || b > ALIKE * a;
}

void fy_coordinator_note_write(const fy_coordinator_note *note,
                               uint64_t words[FERRY_SCHEDULER_WORDS])
{
    uint32_t heaviest, load;
    memcpy(&heaviest, &note->heaviest, sizeof heaviest);
    memcpy(&load, &note->load, sizeof load);
    words[0] = (uint64_t)(uint32_t)note->request << 32 | (uint64_t)note->level << 8 | note->word;
    words[1] = note->supply | (uint64_t)note->once << 32 | (uint64_t)note->number << 33;
    words[2] = (uint64_t)heaviest << 32 | load;
}

bool fy_coordinator_note_read(const uint64_t words[FERRY_SCHEDULER_WORDS],
                              fy_coordinator_note *note)
{
    uint32_t heaviest = (uint32_t)(words[2] >> 32), load = (uint32_t)words[2];
    uint8_t word = (uint8_t)words[0];
    if (word > FY_COORDINATOR_TRADE)
        return false;
    *note = (fy_coordinator_note){.word = (fy_coordinator_word)word,
                                  .level = (int)(uint8_t)(words[0] >> 8),
                                  .request = (int)(int32_t)(uint32_t)(words[0] >> 32),
                                  .supply = (uint32_t)words[1],
                                  .once = words[1] >> 32 & 1,
                                  .number = (uint32_t)(words[1] >> 33)};
    memcpy(&note->heaviest, &heaviest, sizeof heaviest);
    memcpy(&note->load, &load, sizeof load);
    return note->heaviest >= 0 && note->load >= 0;
}

static int add_level(ferry_scheduling *s, fy_coordinators *coordinators, int level)
{
    int below = span_of(coordinators, level - 1),
        base = base_of(coordinators, coordinators->rank, level);
    int left = (ferry_scheduling_ranks(s) - base + below - 1) / below;
    fy_coordinator *coordinator = &coordinators->levels[level - 1];
    *coordinator = (fy_coordinator){.base = base};
    coordinator->child_count =
        left < coordinators->children_max ? left : coordinators->children_max;
    coordinator->children =
        fy_calloc((size_t)coordinator->child_count, sizeof *coordinator->children);
    if (coordinator->children == NULL)
        return FERRY_ENOMEM;
    coordinators->own_levels = level;
    for (int i = 0; i < coordinator->child_count; i++)
        coordinator->children[i].host = host_of(s, coordinators, base + i * below, level - 1);
    return 0;
}

static void free_levels(fy_coordinators *coordinators)
{
    for (int i = 0; i < coordinators->own_levels; i++)
        free(coordinators->levels[i].children);
    coordinators->own_levels = 0;
}

/* Finds the coordinators above this rank, and makes those that run on it: the levels from the
 * lowest up to some level, or up to one for which there is no memory. */
static int make_levels(ferry_scheduling *s, fy_coordinators *coordinators)
{
    int error = 0;
    for (int level = 1; level <= coordinators->level_count; level++) {
        coordinators->hosts[level - 1] =
            host_of(s, coordinators, base_of(coordinators, coordinators->rank, level), level);
        if (coordinators->hosts[level - 1] == coordinators->rank && error == 0)
            error = add_level(s, coordinators, level);
    }
    return error;
}

int fy_coordinators_init(ferry_scheduling *s, fy_coordinators *coordinators, int children)
{
    coordinators->rank = ferry_scheduling_rank(s);
    coordinators->children_max = children;
    int64_t reach = 1;
    for (;
         reach < ferry_scheduling_ranks(s) && coordinators->level_count < FY_COORDINATOR_LEVELS_MAX;
         coordinators->level_count++)
        reach *= coordinators->children_max;
    if (reach < ferry_scheduling_ranks(s))
        return FERRY_EINVAL;
    return make_levels(s, coordinators);
}

void fy_coordinators_fini(fy_coordinators *coordinators)
{
    free_levels(coordinators);
    free(coordinators->requests);
}

static void pass(ferry_scheduling *s, fy_coordinators *coordinators, int rank,
                 const fy_coordinator_note *note)
{
    if (rank == coordinators->rank)
        fy_coordinators_hear(s, coordinators, rank, note);
    else
        coordinators->send(s, coordinators->context, rank, note);
}

void fy_coordinators_post(ferry_scheduling *s, fy_coordinators *coordinators,
                          fy_coordinator_note *note)
{
    coordinators->posted = (coordinators->posted + 1) % FY_COORDINATOR_NUMBERS;
    note->number = coordinators->posted;
    if (coordinators->level_count > 0)
        pass(s, coordinators, coordinators->hosts[note->level - 1], note);
}

uint64_t fy_coordinators_silence(ferry_scheduling *s, const fy_coordinators *coordinators)
{
    int ranks = ferry_scheduling_ranks(s), most = coordinators->children_max;
    return 3 * (uint64_t)(ranks < most ? ranks : most) * fy_scheduling_word_ns(s);
}

static uint32_t supply_of(const fy_coordinator *coordinator)
{
    uint32_t sum = 0;
    for (int i = 0; i < coordinator->child_count; i++)
        sum += coordinator->children[i].supply;
    return sum;
}

/* The largest load of a child that can give some of it, or of one of its objects. */
static float largest_of(const fy_coordinator *coordinator, bool object)
{
    float largest = 0;
    for (int i = 0; i < coordinator->child_count; i++) {
        const fy_coordinator_child *child = &coordinator->children[i];
        float load = object ? child->heaviest : child->load;
        if (child->supply > 0 && load > largest)
            largest = load;
    }
    return largest;
}

static void report_up(ferry_scheduling *s, fy_coordinators *coordinators, int level, int request,
                      bool once)
{
    fy_coordinator *coordinator = &coordinators->levels[level - 1];
    fy_coordinator_note note = {.word = FY_COORDINATOR_UP,
                                .level = level + 1,
                                .request = request,
                                .supply = supply_of(coordinator),
                                .heaviest = largest_of(coordinator, true),
                                .once = once,
                                .load = largest_of(coordinator, false)};
    coordinator->reported = note.supply;
    coordinator->reported_heaviest = note.heaviest;
    fy_coordinators_post(s, coordinators, &note);
}

/* Tells the coordinator above, if there is one, of changes that are large enough for it. */
static void update(ferry_scheduling *s, fy_coordinators *coordinators, int level)
{
    const fy_coordinator *coordinator = &coordinators->levels[level - 1];
    if (level < coordinators->level_count &&
        (fy_coordinator_differs(supply_of(coordinator), coordinator->reported) ||
         fy_coordinator_weighs_otherwise(largest_of(coordinator, true),
                                         coordinator->reported_heaviest)))
        report_up(s, coordinators, level, -1, false);
}

/* Keeps a work request at the root. A work request that finds no memory is lost; its rank repeats
 * it in time. */
static void park(fy_coordinators *coordinators, int request)
{
    for (uint32_t i = 0; i < coordinators->request_count; i++)
        if (coordinators->requests[i] == request)
            return;
    if (coordinators->request_count == coordinators->request_capacity) {
        int *larger =
            fy_double(coordinators->requests, &coordinators->request_capacity, 64, sizeof *larger);
        if (larger == NULL)
            return;
        coordinators->requests = larger;
    }
    coordinators->requests[coordinators->request_count++] = request;
}

static void unpark(fy_coordinators *coordinators, int request)
{
    for (uint32_t i = 0; i < coordinators->request_count; i++)
        if (coordinators->requests[i] == request) {
            memmove(coordinators->requests + i, coordinators->requests + i + 1,
                    (--coordinators->request_count - i) * sizeof *coordinators->requests);
            return;
        }
}

/* Whether to ask `a` and not `b`: the child with the heaviest object, so that what is left for the
 * end is small. If the objects are alike, the child with the most. In steps it is the child with
 * the largest load. */
static bool is_better(const fy_coordinator_child *a, const fy_coordinator_child *b, bool once)
{
    float of_a = once ? a->load : a->heaviest, of_b = once ? b->load : b->heaviest;
    if (fy_coordinator_weighs_otherwise(of_a, of_b))
        return of_a > of_b;
    return a->supply > b->supply;
}

/* The child to ask, other than the child that wants work; -1 if none has any. */
static int best_child(const fy_coordinators *coordinators, int level, int request, bool once)
{
    const fy_coordinator *coordinator = &coordinators->levels[level - 1];
    int best = -1;
    for (int i = 0; i < coordinator->child_count; i++)
        if (coordinator->children[i].supply > 0 &&
            (level > 1 || coordinator->base + i != request) &&
            (best < 0 || is_better(&coordinator->children[i], &coordinator->children[best], once)))
            best = i;
    return best;
}

/* Sends a work request down to a child that can give. False when there is none. */
static bool route(ferry_scheduling *s, fy_coordinators *coordinators, int level, int request,
                  bool once)
{
    int best = best_child(coordinators, level, request, once);
    if (best < 0)
        return false;
    coordinators->levels[level - 1].children[best].supply--;
    fy_coordinator_note note = {
        .word = FY_COORDINATOR_DOWN, .level = level - 1, .request = request, .once = once};
    pass(s, coordinators, coordinators->levels[level - 1].children[best].host, &note);
    return true;
}

/* Whether the rank that wants work is a child of this coordinator and has got work since. */
static bool settled(const fy_coordinators *coordinators, int level, int request)
{
    const fy_coordinator *coordinator = &coordinators->levels[level - 1];
    int index = request - coordinator->base;
    return level == 1 && index >= 0 && index < coordinator->child_count &&
           coordinator->children[index].supply > 0;
}

static void seek(ferry_scheduling *s, fy_coordinators *coordinators, int level, int request,
                 bool once)
{
    if (settled(coordinators, level, request) || route(s, coordinators, level, request, once))
        return;
    if (level < coordinators->level_count)
        report_up(s, coordinators, level, request, once);
    else if (!once)
        park(coordinators, request);
}

bool fy_coordinator_trade_is_fair(float heaviest, float load, const fy_coordinator_note *trade)
{
    return heaviest > ALIKE * trade->heaviest && load - heaviest > trade->load + heaviest;
}

static bool has_idle_child(const fy_coordinator *coordinator)
{
    for (int i = 0; i < coordinator->child_count; i++)
        if (coordinator->children[i].host >= 0 && !(coordinator->children[i].load > 0))
            return true;
    return false;
}

/* A trade. If loads differ in size, a rank with lighter and less work than another gets one of the
 * other's heaviest objects before either runs out. So heavy tasks begin early on all ranks. The
 * object arrives when the taker's task ends, and no other rank can have it until then. So nothing
 * is traded while a rank of the group has nothing to do, or if the taker would then have more to do
 * than the other. A rank does not trade away what it took, and a rank with one heavy object keeps
 * it. The coordinator's knowledge may be old. So the note says what the taker has, and the rank
 * that is asked compares again. */
static void trade(ferry_scheduling *s, fy_coordinators *coordinators, int taker)
{
    fy_coordinator *coordinator = &coordinators->levels[0];
    fy_coordinator_child *to = &coordinator->children[taker], *from = NULL;
    const fy_coordinator_note note = {.word = FY_COORDINATOR_TRADE,
                                      .request = coordinator->base + taker,
                                      .heaviest = to->took > to->heaviest ? to->took : to->heaviest,
                                      .load = to->load};
    for (int i = 0; i < coordinator->child_count; i++) {
        fy_coordinator_child *c = &coordinator->children[i];
        if (i != taker && c->supply > 1 &&
            fy_coordinator_trade_is_fair(c->heaviest, c->load, &note) &&
            (from == NULL || c->load > from->load))
            from = c;
    }
    if (from == NULL)
        return;
    from->supply--;
    from->load -= from->heaviest;
    to->load += from->heaviest;
    to->took = from->heaviest;
    to->came = false;
    pass(s, coordinators, from->host, &note);
}

/* Sends parked work requests down, oldest first, until nothing is left to give. */
static void serve_requests(ferry_scheduling *s, fy_coordinators *coordinators, int level)
{
    for (uint32_t left = coordinators->request_count; left > 0 && coordinators->request_count > 0;
         left--) {
        int request = coordinators->requests[0];
        unpark(coordinators, request);
        if (settled(coordinators, level, request) || route(s, coordinators, level, request, false))
            continue;
        park(coordinators, request);
        return;
    }
}

/* A report may be older than the trade in which its rank took an object. The rank has begun that
 * object at the latest when it asks for more. */
static void learn(fy_coordinator_child *child, const fy_coordinator_note *note)
{
    child->supply = note->supply;
    child->heaviest = note->heaviest;
    child->load = note->load;
    if (note->request >= 0 || (child->came && note->heaviest < child->took))
        child->took = 0;
    child->came = child->took > 0 && (child->came || note->heaviest >= child->took);
}

/* Asks the children of a coordinator to report. `once`: also tells them that ranks make requests
 * that need an immediate answer. */
static void ask_again(ferry_scheduling *s, fy_coordinators *coordinators, int level, bool once)
{
    fy_coordinator *coordinator = &coordinators->levels[level - 1];
    fy_coordinator_note note = {
        .word = FY_COORDINATOR_AGAIN, .level = level - 1, .request = -1, .once = once};
    coordinator->steps = once;
    for (int i = 0; i < coordinator->child_count; i++) {
        int host = coordinator->children[i].host;
        if (host >= 0 && (once || host != coordinators->rank))
            pass(s, coordinators, host, &note);
    }
}

/* The child of the coordinator of `level` here that runs on `source`; NULL: none is known there. */
static fy_coordinator_child *child_of(const fy_coordinators *coordinators, int level, int source)
{
    const fy_coordinator *coordinator = &coordinators->levels[level - 1];
    int index = (source - coordinator->base) / span_of(coordinators, level - 1);
    return source >= coordinator->base && index < coordinator->child_count &&
                   coordinator->children[index].host == source
               ? &coordinator->children[index]
               : NULL;
}

/* Takes down the number of a note of the child. False: a later one has been heard. */
static bool take_number(fy_coordinator_child *child, const fy_coordinator_note *note)
{
    uint32_t ahead = (note->number - child->number) % FY_COORDINATOR_NUMBERS;
    if (child->heard && ahead >= FY_COORDINATOR_NUMBERS / 2)
        return false;
    child->heard = true;
    child->number = note->number;
    return true;
}

static void hear_up(ferry_scheduling *s, fy_coordinators *coordinators, int source,
                    const fy_coordinator_note *note)
{
    fy_coordinator *coordinator = &coordinators->levels[note->level - 1];
    fy_coordinator_child *child = child_of(coordinators, note->level, source);
    if (child == NULL)
        return;
    if (take_number(child, note))
        learn(child, note);
    else if (note->request < 0 || (note->level == 1 && note->request == source))
        return;
    if (note->once && note->request >= 0 && !coordinator->steps)
        ask_again(s, coordinators, note->level, true);
    if (note->request >= 0)
        seek(s, coordinators, note->level, note->request, note->once);
    if (note->level == coordinators->level_count)
        serve_requests(s, coordinators, note->level);
    update(s, coordinators, note->level);
    if (note->level == 1 && note->supply > 0 && !note->once && !has_idle_child(coordinator))
        for (int i = 0; i < coordinator->child_count; i++)
            if (coordinator->children[i].supply > 0)
                trade(s, coordinators, i);
}

/* The coordinator above counts what it sends. It is told if its count is wrong. */
static void hear_down(ferry_scheduling *s, fy_coordinators *coordinators,
                      const fy_coordinator_note *note)
{
    fy_coordinator *coordinator = &coordinators->levels[note->level - 1];
    coordinator->reported -= coordinator->reported > 0;
    seek(s, coordinators, note->level, note->request, note->once);
    update(s, coordinators, note->level);
}

/* The coordinator above has lost its knowledge. */
static void report_up_again(ferry_scheduling *s, fy_coordinators *coordinators, int level,
                            bool once)
{
    if (level < coordinators->level_count)
        report_up(s, coordinators, level, -1, false);
    if (once && !coordinators->levels[level - 1].steps)
        ask_again(s, coordinators, level, true);
}

/* A note for this rank, not for a coordinator that runs on it. */
static void rank_hears(ferry_scheduling *s, fy_coordinators *coordinators,
                       const fy_coordinator_note *note)
{
    if (note->word == FY_COORDINATOR_AGAIN) {
        if (note->once)
            coordinators->asked(s, coordinators->context, note);
        coordinators->again(s, coordinators->context);
    } else if ((note->word == FY_COORDINATOR_DOWN || note->word == FY_COORDINATOR_TRADE) &&
               note->request != coordinators->rank)
        coordinators->asked(s, coordinators->context, note);
}

static void hear_cancel(ferry_scheduling *s, fy_coordinators *coordinators, int source,
                        const fy_coordinator_note *note)
{
    fy_coordinator_note up = *note;
    fy_coordinator_child *child = child_of(coordinators, note->level, source);
    if (child != NULL)
        (void)take_number(child, note);
    if (note->level == coordinators->level_count) {
        unpark(coordinators, note->request);
        return;
    }
    up.level++;
    fy_coordinators_post(s, coordinators, &up);
}

void fy_coordinators_hear(ferry_scheduling *s, fy_coordinators *coordinators, int source,
                          const fy_coordinator_note *note)
{
    bool nobody = note->word == FY_COORDINATOR_UP || note->word == FY_COORDINATOR_AGAIN;
    bool known = note->request < ferry_scheduling_ranks(s) &&
                 (note->request >= 0 || (nobody && note->request == -1));
    if (!known || note->level > coordinators->own_levels)
        return;
    if (note->level == 0) {
        rank_hears(s, coordinators, note);
        return;
    }
    switch (note->word) {
    case FY_COORDINATOR_UP:
        hear_up(s, coordinators, source, note);
        break;
    case FY_COORDINATOR_DOWN:
        hear_down(s, coordinators, note);
        break;
    case FY_COORDINATOR_CANCEL:
        hear_cancel(s, coordinators, source, note);
        break;
    case FY_COORDINATOR_AGAIN:
        report_up_again(s, coordinators, note->level, note->once);
        break;
    case FY_COORDINATOR_TRADE:
        break;
    }
}

/* Reports may have come before this rank had the coordinator for which they are. The ranks that
 * sent them may not have learned yet on which rank it runs. So a new coordinator asks for reports,
 * and ranks report again when they learn of a change. The later of the two finds the other done. */
int fy_coordinators_renew(ferry_scheduling *s, fy_coordinators *coordinators)
{
    free_levels(coordinators);
    coordinators->request_count = 0;
    int error = make_levels(s, coordinators);
    for (int level = coordinators->own_levels; level > 0; level--)
        ask_again(s, coordinators, level, false);
    return error;
}
