/* Holdings: how much of each origin this rank keeps: letters that are not tasks, and messages
 * passed on that wait for room. Who passes the limit is sent a token, which keeps it from sending
 * messages to objects (core/credit.c), and is taken back when half of the limit is gone. What comes
 * meanwhile is what was on its way, so all that is ever held of an origin is a few times the limit
 * and what rings hold.
 *
 * When an object leaves with letters of an origin that has a token of this rank's, the token goes
 * with one of them: otherwise the origin would send whenever they are under way, and more with each
 * move than is handled between two of them. When all letters, tasks included, take too much, every
 * origin gets a token: tasks run without anything that would wait for it. Letters that are tasks
 * carry none, nor do those before their turn that the helper ships. Application thread. */
#include "object/object.h"

/* Too much is held, or still too much. */
static bool is_over(ferry *f, fy_holding *holding)
{
    const fy_letterbox *box = &fy_objects_of(f)->letters;
    size_t limit_bytes = holding->tokens != 0 ? box->limit_bytes / 2 : box->limit_bytes;
    if (holding->onward_plus_1 != 0 &&
        fy_backlog_bytes(f, FY_DATA, (int)holding->onward_plus_1 - 1) <= limit_bytes)
        holding->onward_plus_1 = 0;
    return box->full || holding->bytes > limit_bytes || holding->onward_plus_1 != 0;
}

/* Sends the origin a token, or takes back all that it has of this rank's. Whether that was said. */
static bool tell(ferry *f, fy_holding *holding, int tokens)
{
    fy_letterbox *box = &fy_objects_of(f)->letters;
    if (fy_credit_tell(f, (int)holding->origin_plus_1 - 1, tokens, box->epoch) == FERRY_ENOMEM)
        return false;
    holding->tokens += (uint32_t)tokens;
    box->tokens += (uint32_t)tokens;
    return true;
}

/* Ranks have come or gone: all forget the tokens that there were. */
static void renew(ferry *f)
{
    fy_letterbox *box = &fy_objects_of(f)->letters;
    uint32_t epoch = fy_credit_epoch(f);
    size_t index = 0;
    if (box->epoch == epoch)
        return;
    for (fy_holding *h; (h = fy_table_next(&box->holdings, &index)) != NULL;)
        h->tokens = 0;
    box->epoch = epoch;
    box->tokens = 0;
}

void fy_holdings_settle(ferry *f, bool give)
{
    fy_letterbox *box = &fy_objects_of(f)->letters;
    size_t index = 0;
    renew(f);
    box->unsettled = false;
    for (fy_holding *h; (h = fy_table_next(&box->holdings, &index)) != NULL;) {
        bool over = is_over(f, h);
        bool done = over == (h->tokens != 0) ||
                    (over ? tell(f, h, 1) : give && tell(f, h, -(int)h->tokens));
        /* Nothing announces room for what is passed on. */
        box->unsettled |= !done || h->onward_plus_1 != 0;
    }
}

void fy_holding_passed_on(ferry *f, int origin, int rank)
{
    fy_letterbox *box = &fy_objects_of(f)->letters;
    if (fy_backlog_bytes(f, FY_DATA, rank) <= box->limit_bytes)
        return;
    fy_holding *holding = fy_holding_of(box, origin);
    if (holding == NULL || holding->tokens != 0)
        return;
    holding->onward_plus_1 = (uint32_t)rank + 1;
    box->unsettled = true;
}

/* Calls `fn` for the letters of `record` that it takes along. */
static inline void each(ferry *f, const fy_record *record, void (*fn)(ferry *f, fy_letter *letter))
{
    for (fy_letter *letter = record->pending.head; letter != NULL; letter = letter->next)
        fn(f, letter);
    for (fy_letter *letter = record->early.head; letter != NULL; letter = letter->next)
        fn(f, letter);
}

static void mark(ferry *f, fy_letter *letter)
{
    fy_letterbox *box = &fy_objects_of(f)->letters;
    fy_holding *holding = fy_table_find(&box->holdings, (uint64_t)letter->envelope.origin + 1);
    letter->token = holding != NULL && holding->tokens != 0 && holding->round != box->round;
    letter->token_epoch = (uint16_t)box->epoch;
    if (letter->token)
        holding->round = box->round;
}

void fy_holdings_mark(ferry *f, const fy_record *record)
{
    fy_letterbox *box = &fy_objects_of(f)->letters;
    renew(f);
    box->round++;
    each(f, record, mark);
}

static void unmark(ferry *f, fy_letter *letter)
{
    (void)f;
    letter->token = false;
}

void fy_holdings_stay(ferry *f, const fy_record *record)
{
    each(f, record, unmark);
}

static void let_go(ferry *f, fy_letter *letter)
{
    fy_letterbox *box = &fy_objects_of(f)->letters;
    fy_holding *holding = letter->token ? fy_holding_of(box, letter->envelope.origin) : NULL;
    if (holding == NULL || holding->tokens == 0)
        return;
    holding->tokens--;
    box->tokens--;
    box->unsettled = true; /* there may be enough left for a token of its own */
}

void fy_holdings_leave(ferry *f, const fy_record *record)
{
    each(f, record, let_go);
}

static void take_token(ferry *f, fy_letter *letter)
{
    fy_letterbox *box = &fy_objects_of(f)->letters;
    if (!letter->token)
        return;
    renew(f);
    letter->token = false;
    if (letter->token_epoch != (uint16_t)box->epoch)
        return;
    fy_holding_of(box, letter->envelope.origin)->tokens++; /* it is there: the letter counts */
    box->tokens++;
    box->unsettled = true;
}

void fy_holdings_arrive(ferry *f, const fy_record *record)
{
    each(f, record, take_token);
}
