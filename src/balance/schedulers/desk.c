#include "balance/schedulers/desk.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

/* A trade is worth it when what is heaviest there is so much heavier than what is heaviest here. */
static const float TRADE_FACTOR = 1.25F;

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
        if (rank == desks->rank || ferry_scheduling_takes(s, rank))
            return rank;
    return -1;
}

bool fy_desk_differs(uint32_t a, uint32_t b)
{
    if (a == 0 || b == 0)
        return a != b;
    return __builtin_clz(a) != __builtin_clz(b);
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
    if (word > FY_DESK_AGAIN)
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

static void report_up(ferry_scheduling *s, fy_desks *desks, int level, int wish)
{
    fy_desk *desk = &desks->levels[level - 1];
    fy_desk_note note = {
        .word = FY_DESK_UP, .level = level + 1, .wish = wish, .supply = supply_of(desk)};
    desk->reported = note.supply;
    fy_desks_post(s, desks, &note);
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

/* The child that has most to give, other than the one that wants; -1 when none has anything. */
static int best_child(const fy_desks *desks, int level, int wish)
{
    const fy_desk *desk = &desks->levels[level - 1];
    int best = -1;
    for (int i = 0; i < desk->child_count; i++)
        if (desk->children[i].supply > (best < 0 ? 0 : desk->children[best].supply) &&
            (level > 1 || desk->base + i != wish))
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

/* With loads of different size, a rank that has lighter work than another, and less of it, gets one
 * of the other's heaviest objects before either runs out: heavy tasks begin early everywhere. What
 * a rank took in a trade it does not trade on: two ranks would only change their parts. */
static void trade(ferry_scheduling *s, fy_desks *desks, int taker)
{
    fy_desk *desk = &desks->levels[0];
    fy_desk_child *to = &desk->children[taker], *from = NULL;
    for (int i = 0; i < desk->child_count; i++) {
        fy_desk_child *c = &desk->children[i];
        if (i != taker && c->supply > 0 && !(c->took > 0) &&
            c->heaviest > TRADE_FACTOR * to->heaviest && c->load - c->heaviest >= to->load &&
            (from == NULL || c->load > from->load))
            from = c;
    }
    if (from == NULL)
        return;
    fy_desk_note note = {.word = FY_DESK_DOWN, .wish = desk->base + taker};
    from->supply--;
    from->load -= from->heaviest;
    to->load += from->heaviest;
    to->heaviest = from->heaviest;
    to->took = from->heaviest;
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

static void hear_up(ferry_scheduling *s, fy_desks *desks, int source, const fy_desk_note *note)
{
    fy_desk *desk = &desks->levels[note->level - 1];
    int index = (source - desk->base) / span_of(desks, note->level - 1);
    if (source < desk->base || index >= desk->child_count || desk->children[index].host != source)
        return;
    fy_desk_child *child = &desk->children[index];
    float took = note->heaviest < child->took ? 0 : child->took;
    *child = (fy_desk_child){.host = source,
                             .supply = note->supply,
                             .heaviest = note->heaviest,
                             .load = note->load,
                             .took = took};
    if (note->wish >= 0)
        seek(s, desks, note->level, note->wish);
    if (note->level == desks->level_count) {
        serve_wishes(s, desks, note->level);
    } else if (fy_desk_differs(supply_of(desk), desk->reported)) {
        report_up(s, desks, note->level, -1);
    }
    if (note->level == 1 && note->supply > 0)
        for (int i = 0; i < desk->child_count; i++)
            if (desk->children[i].supply > 0)
                trade(s, desks, i);
}

/* The desk above has lost what it knew. */
static void report_up_again(ferry_scheduling *s, fy_desks *desks, int level)
{
    if (level < desks->level_count)
        report_up(s, desks, level, -1);
}

void fy_desks_hear(ferry_scheduling *s, fy_desks *desks, int source, const fy_desk_note *note)
{
    bool nobody = note->word == FY_DESK_UP || note->word == FY_DESK_AGAIN;
    bool known =
        note->wish < ferry_scheduling_ranks(s) && (note->wish >= 0 || (nobody && note->wish == -1));
    if (!known || note->level > desks->own_levels)
        return;
    if (note->level == 0) {
        if (note->word == FY_DESK_DOWN && note->wish != desks->rank)
            desks->asked(s, desks->context, note->wish);
        else if (note->word == FY_DESK_AGAIN)
            desks->again(s, desks->context);
        return;
    }
    if (note->word == FY_DESK_AGAIN) {
        report_up_again(s, desks, note->level);
    } else if (note->word == FY_DESK_UP) {
        hear_up(s, desks, source, note);
    } else if (note->word == FY_DESK_DOWN) {
        seek(s, desks, note->level, note->wish);
    } else if (note->level == desks->level_count) {
        unpark(desks, note->wish);
    } else {
        fy_desk_note up = *note;
        up.level++;
        fy_desks_post(s, desks, &up);
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
