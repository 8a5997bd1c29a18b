/* Engine: asks data servers for objects, and runs their tasks. */
#include "percolation/state.h"

static int count_here(const fy_percolation *p)
{
    return (int)(p->queue.count + p->leaving.count) + (p->running != NULL) + p->expected_count;
}

static uint64_t line_bytes(const fy_line *line)
{
    uint64_t bytes = 0;
    for (const ferry_schedulable *item = line->first; item != NULL; item = item->next)
        bytes += fy_item_bytes(item);
    return bytes;
}

static uint64_t bytes_here(const fy_percolation *p)
{
    uint64_t bytes = line_bytes(&p->queue) + line_bytes(&p->leaving) + line_bytes(&p->stuck);
    bytes += p->running == NULL ? 0 : fy_item_bytes(p->running);
    for (int i = 0; i < p->expected_count; i++)
        bytes += p->expected[i].bytes;
    return bytes;
}

static void engine_ask(ferry_scheduling *s, fy_percolation *p)
{
    if (!ferry_scheduling_is_on(s) || count_here(p) >= p->window ||
        (count_here(p) != 0 && bytes_here(p) >= p->budget_bytes))
        return;
    for (int server = 0; server < p->servers; server++)
        if (p->askings[server] == FY_ASKING_NONE && ferry_scheduling_accepts(s, server)) {
            p->askings[server] = FY_ASKING_SENT;
            fy_percolation_tell(s, server, FY_PERCOLATION_ASK, (uint64_t)p->servers, 0);
        }
}

/* An object has left, so there may be room: allows requests to servers whose offer was declined. */
static void allow_requests(fy_percolation *p)
{
    for (int server = 0; server < p->servers; server++)
        if (p->askings[server] == FY_ASKING_DECLINED)
            p->askings[server] = FY_ASKING_NONE;
}

static bool engine_fits(const fy_percolation *p, uint64_t bytes)
{
    int count = count_here(p);
    return count == 0 || (count < p->window && bytes <= p->budget_bytes &&
                          bytes_here(p) <= p->budget_bytes - bytes);
}

static void take_or_decline(ferry_scheduling *s, fy_percolation *p, int server, uint64_t object,
                            uint64_t bytes)
{
    bool takes = engine_fits(p, bytes);
    p->askings[server] = takes ? FY_ASKING_NONE : FY_ASKING_DECLINED;
    if (takes) {
        p->expected[p->expected_count++] = (fy_expected){object, bytes, server};
        uint64_t most = bytes_here(p);
        p->stats.peak_bytes = most > p->stats.peak_bytes ? most : p->stats.peak_bytes;
    }
    fy_percolation_tell(s, server, takes ? FY_PERCOLATION_TAKE : FY_PERCOLATION_DECLINE, object, 0);
}

/* Removes the object from those expected. Returns whether it was expected. */
static bool strike(fy_percolation *p, uint64_t object)
{
    for (int i = 0; i < p->expected_count; i++)
        if (p->expected[i].object == object) {
            p->expected[i] = p->expected[--p->expected_count];
            return true;
        }
    return false;
}

void fy_engine_message(ferry_scheduling *s, fy_percolation *p, int source,
                       const uint64_t words[FERRY_SCHEDULER_WORDS])
{
    if (source >= p->servers)
        return;
    if (words[0] == FY_PERCOLATION_OFFER)
        take_or_decline(s, p, source, words[1], words[2]);
    else if (words[0] == FY_PERCOLATION_GONE && strike(p, words[1]))
        allow_requests(p);
    engine_ask(s, p);
}

/* An object has come, or ends its task. It goes on here if it has tasks and was not here for long.
 * If it has come back because it could not be sent, the terminator tries again later. */
void fy_engine_rest(ferry_scheduling *s, fy_percolation *p, ferry_schedulable *item)
{
    int target = fy_mark_rank(item->mark);
    bool stuck = target >= 0 && target == fy_terminator_home(s, p, item->object);
    if (target >= 0) {
        item->mark = FY_MARK_NONE;
        p->stats.terminated--;
    }
    if (item->arrived)
        p->stats.taken += strike(p, item->object.word);
    if (item == p->running) {
        p->running = NULL;
        item->mark++;
    }
    bool stays = stuck || item->mark < p->tasks;
    if (item->pending != 0 && stays)
        fy_line_insert(&p->queue, item, NULL);
    else if (stuck)
        fy_terminator_failed(s, p, item);
    else
        fy_line_insert(&p->leaving, item, NULL);
}

static bool is_in(const fy_line *line, const ferry_schedulable *item)
{
    const ferry_schedulable *other = line->first;
    while (other != NULL && other != item)
        other = other->next;
    return other != NULL;
}

/* The line in which a queued item is. */
static fy_line *line_of(fy_percolation *p, const ferry_schedulable *item)
{
    if (is_in(&p->leaving, item))
        return &p->leaving;
    return is_in(&p->stuck, item) ? &p->stuck : &p->queue;
}

void fy_engine_notify(fy_percolation *p, ferry_schedulable *item)
{
    if (item->queued && (item->mark >= p->tasks || line_of(p, item) == &p->queue))
        return;
    if (item->queued)
        fy_line_remove(line_of(p, item), item);
    fy_line_insert(&p->queue, item, NULL);
}

void fy_engine_remove(fy_percolation *p, ferry_schedulable *item)
{
    if (item == p->running)
        p->running = NULL;
    if (item->queued)
        fy_line_remove(line_of(p, item), item);
    allow_requests(p);
}

ferry_schedulable *fy_engine_next(ferry_scheduling *s, fy_percolation *p)
{
    if (fy_terminator_run(s, p))
        allow_requests(p);
    p->running = fy_line_pop(&p->queue);
    p->stats.tasks += p->running != NULL;
    engine_ask(s, p);
    return p->running;
}

void fy_engine_members(ferry_scheduling *s, fy_percolation *p)
{
    for (int server = 0; server < p->servers; server++) {
        if (ferry_scheduling_accepts(s, server))
            continue;
        p->askings[server] = FY_ASKING_NONE;
        for (int i = p->expected_count - 1; i >= 0; i--)
            if (p->expected[i].server == server)
                p->expected[i] = p->expected[--p->expected_count];
    }
    for (ferry_schedulable *item; (item = fy_line_pop(&p->stuck)) != NULL;) {
        item->place = 0;
        fy_line_insert(&p->leaving, item, NULL); /* another server may take it */
    }
    allow_requests(p);
    engine_ask(s, p);
}
