#include "balance/schedulers/desk.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

/* Loads that differ by less are alike. */
static const float ALIKE = 1.25F;

static int span_of(const fy_desks *desks, int level)
{
    int span = 1;
    for (int i = 0; i < level; i++)
        span *= desks->children_max;
    return span;
}

/* The first rank of the group of `level` that `rank` is in. */
static int base_of(const fy_desks *desks, int rank, int level)
{
    int span = span_of(desks, level);
    return rank / span * span;
}

/* Where the desk of the group stands that begins at `base`: -1 when nobody is there. */
static int host_of(const ferry_scheduling *s, const fy_desks *desks, int base, int level)
{
    int ranks = ferry_scheduling_ranks(s), span = span_of(desks, level);
    for (int rank = base; rank < ranks && rank - base < span; rank++)
        if (rank == desks->rank || ferry_scheduling_accepts(s, rank))
            return rank;
    return -1;
}

bool fy_desk_differs(uint32_t a, uint32_t b)
{
    if (a == 0 || b == 0)
        return a != b;
    return __builtin_clz(a) != __builtin_clz(b);
}

bool fy_desk_weighs_otherwise(float a, float b)
{
    return a > ALIKE * b || b > ALIKE * a;
}

void fy_desk_note_write(const fy_desk_note *note, uint64_t words[FERRY_SCHEDULER_WORDS])
{
    uint32_t heaviest, load;
    memcpy(&heaviest, &note->heaviest, sizeof heaviest);
    memcpy(&load, &note->load, sizeof load);
    words[0] = (uint64_t)(uint32_t)note->wish << 32 | (uint64_t)note->level << 8 | note->word;
    words[1] = note->supply;
    words[2] = (uint64_t)heaviest << 32 | load;
}

bool fy_desk_note_read(const uint64_t words[FERRY_SCHEDULER_WORDS], fy_desk_note *note)
{
    uint32_t heaviest = (uint32_t)(words[2] >> 32), load = (uint32_t)words[2];
    uint8_t word = (uint8_t)words[0];
    if (word > FY_DESK_TRADE)
        return false;
    *note = (fy_desk_note){.word = (fy_desk_word)word,
                           .level = (int)(uint8_t)(words[0] >> 8),
                           .wish = (int)(int32_t)(uint32_t)(words[0] >> 32),
                           .supply = (uint32_t)words[1]};
    memcpy(&note->heaviest, &heaviest, sizeof heaviest);
    memcpy(&note->load, &load, sizeof load);
    return note->heaviest >= 0 && note->load >= 0;
}

static int add_level(ferry_scheduling *s, fy_desks *desks, int level)
{
    int below = span_of(desks, level - 1), base = base_of(desks, desks->rank, level);
    int left = (ferry_scheduling_ranks(s) - base + below - 1) / below;
    fy_desk *desk = &desks->levels[level - 1];
    *desk = (fy_desk){.base = base};
    desk->child_count = left < desks->children_max ? left : desks->children_max;
    desk->children = fy_calloc((size_t)desk->child_count, sizeof *desk->children);
    if (desk->children == NULL)
        return FERRY_ENOMEM;
    desks->own_levels = level;
    for (int i = 0; i < desk->child_count; i++)
        desk->children[i].host = host_of(s, desks, base + i * below, level - 1);
    return 0;
}

static void free_levels(fy_desks *desks)
{
    for (int i = 0; i < desks->own_levels; i++)
        free(desks->levels[i].children);
    desks->own_levels = 0;
}

/* Finds the desks above this rank, and makes those that stand on it: the lowest, up to some level,
 * or up to one for which there is no memory. */
static int make_levels(ferry_scheduling *s, fy_desks *desks)
{
    int error = 0;
    for (int level = 1; level <= desks->level_count; level++) {
        desks->hosts[level - 1] = host_of(s, desks, base_of(desks, desks->rank, level), level);
        if (desks->hosts[level - 1] == desks->rank && error == 0)
            error = add_level(s, desks, level);
    }
    return error;
}

int fy_desks_init(ferry_scheduling *s, fy_desks *desks, int children)
{
    desks->rank = ferry_scheduling_rank(s);
    desks->children_max = children;
    int64_t reach = 1;
    for (; reach < ferry_scheduling_ranks(s) && desks->level_count < FY_DESK_LEVELS_MAX;
         desks->level_count++)
        reach *= desks->children_max;
    if (reach < ferry_scheduling_ranks(s))
        return FERRY_EINVAL;
    return make_levels(s, desks);
}

void fy_desks_fini(fy_desks *desks)
{
    free_levels(desks);
    free(desks->wishes);
}

static void pass(ferry_scheduling *s, fy_desks *desks, int rank, const fy_desk_note *note)
{
    if (rank == desks->rank)
        fy_desks_hear(s, desks, rank, note);
    else
        desks->send(s, desks->context, rank, note);
}

void fy_desks_post(ferry_scheduling *s, fy_desks *desks, const fy_desk_note *note)
{
    if (desks->level_count > 0)
        pass(s, desks, desks->hosts[note->level - 1], note);
}

static uint32_t supply_of(const fy_desk *desk)
{
    uint32_t sum = 0;
    for (int i = 0; i < desk->child_count; i++)
        sum += desk->children[i].supply;
    return sum;
}

static float heaviest_of(const fy_desk *desk)
{
    float heaviest = 0;
    for (int i = 0; i < desk->child_count; i++)
        if (desk->children[i].supply > 0 && desk->children[i].heaviest > heaviest)
            heaviest = desk->children[i].heaviest;
    return heaviest;
}

static void report_up(ferry_scheduling *s, fy_desks *desks, int level, int wish)
{
    fy_desk *desk = &desks->levels[level - 1];
    fy_desk_note note = {.word = FY_DESK_UP,
                         .level = level + 1,
                         .wish = wish,
                         .supply = supply_of(desk),
                         .heaviest = heaviest_of(desk)};
    desk->reported = note.supply;
    desk->reported_heaviest = note.heaviest;
    fy_desks_post(s, desks, &note);
}

/* Tells the desk above, if there is one, what has changed so much that it wants to know. */
static void update(ferry_scheduling *s, fy_desks *desks, int level)
{
    const fy_desk *desk = &desks->levels[level - 1];
    if (level < desks->level_count &&
        (fy_desk_differs(supply_of(desk), desk->reported) ||
         fy_desk_weighs_otherwise(heaviest_of(desk), desk->reported_heaviest)))
        report_up(s, desks, level, -1);
}

/* Keeps a wish at the root. A wish that finds no memory is lost; its rank repeats it in time. */
static void park(fy_desks *desks, int wish)
{
    for (uint32_t i = 0; i < desks->wish_count; i++)
        if (desks->wishes[i] == wish)
            return;
    if (desks->wish_count == desks->wish_capacity) {
        uint32_t capacity = desks->wish_capacity == 0 ? 64 : 2 * desks->wish_capacity;
        int *larger = fy_realloc(desks->wishes, capacity * sizeof *larger);
        if (larger == NULL)
            return;
        desks->wishes = larger;
        desks->wish_capacity = capacity;
    }
    desks->wishes[desks->wish_count++] = wish;
}

static void unpark(fy_desks *desks, int wish)
{
    for (uint32_t i = 0; i < desks->wish_count; i++)
        if (desks->wishes[i] == wish) {
            memmove(desks->wishes + i, desks->wishes + i + 1,
                    (--desks->wish_count - i) * sizeof *desks->wishes);
            return;
        }
}

/* Whether to ask `a`: it has the heaviest object, so that what is left for the end is small, or,
 * when they are alike, the most. */
static bool is_better(const fy_desk_child *a, const fy_desk_child *b)
{
    if (fy_desk_weighs_otherwise(a->heaviest, b->heaviest))
        return a->heaviest > b->heaviest;
    return a->supply > b->supply;
}

/* The child to ask, other than the one that wants; -1 when none has anything. */
static int best_child(const fy_desks *desks, int level, int wish)
{
    const fy_desk *desk = &desks->levels[level - 1];
    int best = -1;
    for (int i = 0; i < desk->child_count; i++)
        if (desk->children[i].supply > 0 && (level > 1 || desk->base + i != wish) &&
            (best < 0 || is_better(&desk->children[i], &desk->children[best])))
            best = i;
    return best;
}

/* Sends a wish down to a child that can give. False when there is none. */
static bool route(ferry_scheduling *s, fy_desks *desks, int level, int wish)
{
    int best = best_child(desks, level, wish);
    if (best < 0)
        return false;
    desks->levels[level - 1].children[best].supply--;
    fy_desk_note note = {.word = FY_DESK_DOWN, .level = level - 1, .wish = wish};
    pass(s, desks, desks->levels[level - 1].children[best].host, &note);
    return true;
}

/* Whether the rank that wants is a child of this desk and has got work since. */
static bool settled(const fy_desks *desks, int level, int wish)
{
    const fy_desk *desk = &desks->levels[level - 1];
    int index = wish - desk->base;
    return level == 1 && index >= 0 && index < desk->child_count &&
           desk->children[index].supply > 0;
}

static void seek(ferry_scheduling *s, fy_desks *desks, int level, int wish)
{
    if (settled(desks, level, wish) || route(s, desks, level, wish))
        return;
    if (level < desks->level_count)
        report_up(s, desks, level, wish);
    else
        park(desks, wish);
}

bool fy_desk_trade_is_fair(float heaviest, float load, const fy_desk_note *trade)
{
    return heaviest > ALIKE * trade->heaviest && load - heaviest > trade->load;
}

static bool has_idle_child(const fy_desk *desk)
{
    for (int i = 0; i < desk->child_count; i++)
        if (desk->children[i].host >= 0 && !(desk->children[i].load > 0))
            return true;
    return false;
}

/* With loads of different size, a rank that has lighter work than another, and less of it, gets one
 * of the other's heaviest objects before either runs out: heavy tasks begin early everywhere. It
 * arrives when the taker's task ends, and nobody else can have it until then, so nothing is traded
 * while a rank of the group has nothing to do, what a rank took it does not trade on, and who has
 * one heavy object keeps it. What the desk knows may be old: the note says what the taker has, and
 * the rank asked looks again. */
static void trade(ferry_scheduling *s, fy_desks *desks, int taker)
{
    fy_desk *desk = &desks->levels[0];
    fy_desk_child *to = &desk->children[taker], *from = NULL;
    const fy_desk_note note = {.word = FY_DESK_TRADE,
                               .wish = desk->base + taker,
                               .heaviest = to->took > to->heaviest ? to->took : to->heaviest,
                               .load = to->load};
    for (int i = 0; i < desk->child_count; i++) {
        fy_desk_child *c = &desk->children[i];
        if (i != taker && c->supply > 1 && fy_desk_trade_is_fair(c->heaviest, c->load, &note) &&
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
    pass(s, desks, from->host, &note);
}

/* Sends parked wishes down, oldest first, until nothing is left to give. */
static void serve_wishes(ferry_scheduling *s, fy_desks *desks, int level)
{
    for (uint32_t left = desks->wish_count; left > 0 && desks->wish_count > 0; left--) {
        int wish = desks->wishes[0];
        unpark(desks, wish);
        if (settled(desks, level, wish) || route(s, desks, level, wish))
            continue;
        park(desks, wish);
        return;
    }
}

/* Reports may be older than what their rank took in a trade. It has begun that, at the latest, when
 * it wishes for more. */
static void learn(fy_desk_child *child, const fy_desk_note *note)
{
    child->supply = note->supply;
    child->heaviest = note->heaviest;
    child->load = note->load;
    if (note->wish >= 0 || (child->came && note->heaviest < child->took))
        child->took = 0;
    child->came = child->took > 0 && (child->came || note->heaviest >= child->took);
}

static void hear_up(ferry_scheduling *s, fy_desks *desks, int source, const fy_desk_note *note)
{
    fy_desk *desk = &desks->levels[note->level - 1];
    int index = (source - desk->base) / span_of(desks, note->level - 1);
    if (source < desk->base || index >= desk->child_count || desk->children[index].host != source)
        return;
    learn(&desk->children[index], note);
    if (note->wish >= 0)
        seek(s, desks, note->level, note->wish);
    if (note->level == desks->level_count)
        serve_wishes(s, desks, note->level);
    update(s, desks, note->level);
    if (note->level == 1 && note->supply > 0 && !has_idle_child(desk))
        for (int i = 0; i < desk->child_count; i++)
            if (desk->children[i].supply > 0)
                trade(s, desks, i);
}

/* The desk above counts what it sends, and is told when it is wrong. */
static void hear_down(ferry_scheduling *s, fy_desks *desks, const fy_desk_note *note)
{
    fy_desk *desk = &desks->levels[note->level - 1];
    desk->reported -= desk->reported > 0;
    seek(s, desks, note->level, note->wish);
    update(s, desks, note->level);
}

/* The desk above has lost what it knew. */
static void report_up_again(ferry_scheduling *s, fy_desks *desks, int level)
{
    if (level < desks->level_count)
        report_up(s, desks, level, -1);
}

/* A note for this rank, not for a desk that it has. */
static void rank_hears(ferry_scheduling *s, fy_desks *desks, const fy_desk_note *note)
{
    if (note->word == FY_DESK_AGAIN)
        desks->again(s, desks->context);
    else if ((note->word == FY_DESK_DOWN || note->word == FY_DESK_TRADE) &&
             note->wish != desks->rank)
        desks->asked(s, desks->context, note);
}

static void hear_cancel(ferry_scheduling *s, fy_desks *desks, const fy_desk_note *note)
{
    fy_desk_note up = *note;
    if (note->level == desks->level_count) {
        unpark(desks, note->wish);
        return;
    }
    up.level++;
    fy_desks_post(s, desks, &up);
}

void fy_desks_hear(ferry_scheduling *s, fy_desks *desks, int source, const fy_desk_note *note)
{
    bool nobody = note->word == FY_DESK_UP || note->word == FY_DESK_AGAIN;
    bool known =
        note->wish < ferry_scheduling_ranks(s) && (note->wish >= 0 || (nobody && note->wish == -1));
    if (!known || note->level > desks->own_levels)
        return;
    if (note->level == 0) {
        rank_hears(s, desks, note);
        return;
    }
    switch (note->word) {
    case FY_DESK_UP:
        hear_up(s, desks, source, note);
        break;
    case FY_DESK_DOWN:
        hear_down(s, desks, note);
        break;
    case FY_DESK_CANCEL:
        hear_cancel(s, desks, note);
        break;
    case FY_DESK_AGAIN:
        report_up_again(s, desks, note->level);
        break;
    case FY_DESK_TRADE:
        break;
    }
}

/* Reports may have come before this rank had the desk that they are for, and their ranks need not
 * have learned yet where it stands: so a desk that is made asks for them, and ranks report again
 * when they learn of a change. Whichever is later finds the other done. */
int fy_desks_renew(ferry_scheduling *s, fy_desks *desks)
{
    free_levels(desks);
    desks->wish_count = 0;
    int error = make_levels(s, desks);
    for (int level = desks->own_levels; level > 0; level--)
        for (int i = 0; i < desks->levels[level - 1].child_count; i++) {
            int host = desks->levels[level - 1].children[i].host;
            fy_desk_note note = {.word = FY_DESK_AGAIN, .level = level - 1, .wish = -1};
            if (host >= 0 && host != desks->rank)
                pass(s, desks, host, &note);
        }
    return error;
}
