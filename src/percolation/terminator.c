/* Terminator: on an engine, sends objects that have no more tasks back to their servers. There the
 * store takes them, and writes them to disk when it needs their memory.
 *
 * An object that cannot be sent, for want of memory, is sent again after a pause. `place` of its
 * item counts the failures. After TRIES more tries the object stays. The next ferry_quiesce begins
 * anew. While there is a next try, this rank has created a unit of work, so that ferry_quiesce
 * waits for it. While migration is off there is none, and the objects go when it is on again. */
#include "base/mix.h"
#include "core/fail.h"
#include "core/work.h"
#include "object/names.h"
#include "percolation/state.h"

int fy_terminator_home(const ferry_scheduling *s, const fy_percolation *p, ferry_object object)
{
    int creator = fy_object_creator(object);
    int first =
        creator < p->servers ? creator : (int)(fy_mix(object.word, 0) % (uint64_t)p->servers);
    for (int i = 0; i < p->servers; i++) {
        int server = (first + i) % p->servers;
        if (ferry_scheduling_accepts(s, server))
            return server;
    }
    return -1;
}

/* The last of the pauses is 256 ms, and all together are 341 ms. */
enum { TRIES = 5, GIVEN_UP = TRIES + 1, PAUSE_NS = 1000 * 1000, PAUSE_SHIFT = 2 };

/* Whether ferry_quiesce has to wait for the next try. [application thread] */
static void set_awaits(const ferry_scheduling *s, fy_percolation *p, bool awaits)
{
    if (awaits && !p->awaits)
        fy_work_created(s->f, 1);
    if (!awaits && p->awaits)
        fy_work_finished(s->f, 1);
    p->awaits = awaits;
}

bool fy_terminator_hopes(const ferry_scheduling *s, const fy_percolation *p)
{
    const ferry_schedulable *item = p->stuck.first;
    while (item != NULL && item->place == GIVEN_UP)
        item = item->next;
    return item != NULL && ferry_scheduling_is_on(s);
}

void fy_terminator_failed(ferry_scheduling *s, fy_percolation *p, ferry_schedulable *item)
{
    fy_line_insert(&p->stuck, item, NULL);
    if (item->place == GIVEN_UP)
        return;
    uint64_t at_ns = ferry_scheduling_now(s) + ((uint64_t)PAUSE_NS << (PAUSE_SHIFT * item->place));
    if (++item->place == GIVEN_UP)
        return;
    p->retry_ns = at_ns > p->retry_ns ? at_ns : p->retry_ns;
    ferry_scheduling_wake(s, p->retry_ns);
    set_awaits(s, p, ferry_scheduling_is_on(s));
}

/* The first look in a ferry_quiesce: each object has all its tries again. */
static void renew(const ferry_scheduling *s, fy_percolation *p)
{
    uint64_t next = fy_quiesced(s->f) + 1;
    if (fy_head_of(s->f)->account.base != FY_DOING_QUIESCE || p->renewed == next)
        return;
    p->renewed = next;
    p->retry_ns = 0;
    for (ferry_schedulable *item = p->stuck.first; item != NULL; item = item->next)
        item->place = 0;
}

/* Lets the objects leave whose next try has come. */
static void retry(ferry_scheduling *s, fy_percolation *p)
{
    renew(s, p);
    if (fy_terminator_hopes(s, p) && ferry_scheduling_now(s) >= p->retry_ns) {
        p->retry_ns = 0;
        for (ferry_schedulable *item = p->stuck.first, *next; item != NULL; item = next) {
            next = item->next;
            if (item->place == GIVEN_UP)
                continue;
            fy_line_remove(&p->stuck, item);
            fy_line_insert(&p->leaving, item, NULL);
        }
    }
    set_awaits(s, p, fy_terminator_hopes(s, p));
}

/* The object goes on here: no server is left, or migration is off. */
static void stay(ferry_scheduling *s, fy_percolation *p, ferry_schedulable *item)
{
    item->mark = FY_MARK_NONE;
    item->place = ferry_scheduling_is_on(s) ? GIVEN_UP : 0;
    fy_line_insert(item->pending != 0 ? &p->queue : &p->stuck, item, NULL);
    if (ferry_scheduling_is_on(s) && !p->told) {
        fy_log(s->f, "percolation: no data server is left, so objects stay on engine %d", p->rank);
        p->told = true;
    }
}

bool fy_terminator_run(ferry_scheduling *s, fy_percolation *p)
{
    bool left = false;
    if (p->stuck.count != 0 || p->awaits)
        retry(s, p);
    for (ferry_schedulable *item; (item = fy_line_pop(&p->leaving)) != NULL;) {
        int home = ferry_scheduling_is_on(s) ? fy_terminator_home(s, p, item->object) : -1;
        if (home < 0) {
            stay(s, p, item);
            continue;
        }
        item->mark = FY_MARK_GIVEN - home;
        p->stats.terminated++;
        ferry_scheduling_migrate(s, item, home);
        left = true;
    }
    return left;
}
