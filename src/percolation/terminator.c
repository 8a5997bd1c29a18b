/* Terminator: on an engine, sends objects that have no more tasks back to their servers. There the
 * store takes them, and writes them to disk when it needs their memory. */
#include "base/mix.h"
#include "core/fail.h"
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

/* The object goes on here: no server is left, or migration is off. */
static void stay(ferry_scheduling *s, fy_percolation *p, ferry_schedulable *item)
{
    item->mark = FY_MARK_NONE;
    fy_line_insert(item->pending != 0 ? &p->queue : &p->stuck, item, NULL);
    if (ferry_scheduling_is_on(s) && !p->told) {
        fy_log(s->f, "percolation: no data server is left, so objects stay on engine %d", p->rank);
        p->told = true;
    }
}

bool fy_terminator_run(ferry_scheduling *s, fy_percolation *p)
{
    bool left = false;
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
