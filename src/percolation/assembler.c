/* Assembler: on a data server, offers tokens to engines and moves the objects that they take. */
#include "core/fail.h"
#include "percolation/state.h"

/* Chooses an engine that has asked: the one with the highest priority for the object. Engines with
 * the same priority have turns. An ASK may overtake the answer to the offer before, and waits for
 * that answer. -1: there is no engine. */
static int choose_engine(ferry_scheduling *s, fy_percolation *p, const ferry_schedulable *item)
{
    int best = -1;
    double best_priority = 0;
    for (int i = 0; i < p->ranks; i++) {
        int rank = (p->next_engine + i) % p->ranks;
        const fy_known_engine *known = &p->known_engines[rank];
        if (!known->present || !known->asked || known->object != 0)
            continue;
        double priority = ferry_scheduling_priority(s, item, rank);
        if (best < 0 || priority > best_priority) {
            best = rank;
            best_priority = priority;
        }
    }
    return best;
}

void fy_assembler_offer(ferry_scheduling *s, fy_percolation *p)
{
    while (p->free != NULL && ferry_scheduling_is_on(s)) {
        ferry_schedulable *item = p->free;
        int rank = choose_engine(s, p, item);
        if (rank < 0)
            return;
        p->known_engines[rank].asked = false;
        p->known_engines[rank].object = item->object.word;
        p->known_engines[rank].item = item;
        p->next_engine = (rank + 1) % p->ranks;
        p->free = item->next;
        fy_percolation_tell(s, rank, FY_PERCOLATION_OFFER, item->object.word, fy_item_bytes(item));
    }
}

fy_known_engine *fy_assembler_offered_to(const fy_percolation *p, const ferry_schedulable *item)
{
    for (int rank = p->servers; rank < p->ranks; rank++)
        if (p->known_engines[rank].object == item->object.word)
            return &p->known_engines[rank];
    return NULL;
}

/* Ends the offer. The token is free again, as the first. */
static void assembler_release(fy_percolation *p, fy_known_engine *known)
{
    ferry_schedulable *item = known->item;
    known->object = 0;
    known->item = NULL;
    if (item == NULL)
        return;
    fy_line_remove(&p->tokens, item);
    fy_line_insert(&p->tokens, item, p->free);
    p->free = item;
}

static void assembler_give(ferry_scheduling *s, fy_percolation *p, int rank)
{
    ferry_schedulable *item = p->known_engines[rank].item;
    p->known_engines[rank].object = 0;
    p->known_engines[rank].item = NULL;
    fy_line_remove(&p->tokens, item);
    item->mark = FY_MARK_GIVEN - rank;
    p->stats.assembled++;
    p->stats.assembled_bytes += fy_item_bytes(item);
    ferry_scheduling_migrate(s, item, rank);
}

/* Notes whether the engine accepts objects. A rank that has joined is an engine from its first
 * request on. The request may come before this rank has heard of the other. */
static void note_presence(const ferry_scheduling *s, fy_percolation *p, int rank)
{
    fy_known_engine *known = &p->known_engines[rank];
    bool before = known->present;
    known->present = (before || known->asked) && ferry_scheduling_accepts(s, rank);
    p->engines += known->present - before;
}

static void take_request(ferry_scheduling *s, fy_percolation *p, int rank, uint64_t servers)
{
    if (rank < p->servers || servers != (uint64_t)p->servers) {
        fy_log(s->f, "percolation: rank %d gets no objects: it says %llu servers, expected %d",
               rank, (unsigned long long)servers, p->servers);
        return;
    }
    p->known_engines[rank].asked = true;
    note_presence(s, p, rank);
}

void fy_assembler_message(ferry_scheduling *s, fy_percolation *p, int source,
                          const uint64_t words[FERRY_SCHEDULER_WORDS])
{
    fy_known_engine *known = &p->known_engines[source];
    bool offered = known->object != 0 && known->object == words[1];
    if (words[0] == FY_PERCOLATION_ASK) {
        take_request(s, p, source, words[1]);
    } else if (words[0] == FY_PERCOLATION_TAKE && offered && known->item != NULL) {
        assembler_give(s, p, source);
    } else if (words[0] == FY_PERCOLATION_TAKE) {
        fy_percolation_tell(s, source, FY_PERCOLATION_GONE, words[1], 0);
        assembler_release(p, known);
    } else if (words[0] == FY_PERCOLATION_DECLINE && offered) {
        assembler_release(p, known);
        p->stats.declined++;
    }
    fy_assembler_offer(s, p);
}

void fy_assembler_members(ferry_scheduling *s, fy_percolation *p)
{
    for (int rank = p->servers; rank < p->ranks; rank++) {
        fy_known_engine *known = &p->known_engines[rank];
        bool before = known->present;
        note_presence(s, p, rank);
        if (!before || known->present)
            continue;
        known->asked = false;
        assembler_release(p, known);
    }
    fy_assembler_offer(s, p);
}
