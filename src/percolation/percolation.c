/* Percolation: how it starts, and the scheduler that hands each call to the part of this rank. */
#include <ferry/percolation.h>

#include <stdlib.h>
#include <string.h>

#include <ferry/collective.h>
#include <ferry/directory.h>

#include "base/alloc.h"
#include "base/env.h"
#include "base/error.h"
#include "core/fail.h"
#include "object/gone.h"
#include "percolation/state.h"
#include "store/state.h"

static const char NAME[] = "percolation";

/* ferry_percolation_start has made the state and left it in the store. */
static int percolation_create(ferry_scheduling *s, void **out)
{
    ferry_store *store = fy_store_of(s->f);
    fy_percolation *p = store == NULL ? NULL : store->percolation;
    if (p == NULL)
        return FERRY_ESTATE;
    p->window = ferry_scheduling_count(s, "WINDOW", p->window, 1, FY_WINDOW_MAX);
    p->tasks = ferry_scheduling_count(s, "TASKS", p->tasks, 1, FY_STAY_TASKS_MAX);
    p->known_engines = fy_calloc((size_t)p->ranks, sizeof *p->known_engines);
    p->askings = fy_calloc((size_t)p->servers, sizeof *p->askings);
    p->expected = fy_calloc((size_t)p->window, sizeof *p->expected);
    if (p->known_engines == NULL || p->askings == NULL || p->expected == NULL)
        return FERRY_ENOMEM;
    for (int rank = p->servers; rank < p->ranks; rank++) {
        p->known_engines[rank].present = ferry_scheduling_accepts(s, rank);
        p->engines += p->known_engines[rank].present;
    }
    *out = p;
    return 0;
}

static void free_state(fy_percolation *p)
{
    free(p->known_engines);
    free(p->askings);
    free(p->expected);
    free(p);
}

static void percolation_destroy(ferry_scheduling *s, void *state)
{
    ferry_store *store = fy_store_of(s->f);
    if (store != NULL) {
        store->percolation = NULL;
        store->serves = false;
    }
    free_state(state);
}

/* Tells the creator where its object is. Otherwise the creator might know only an engine that had
 * the object, and could not find the object after the death of that engine. A server that has
 * created the object has sent it here itself. */
static void percolation_arrived(ferry *f, ferry_object object, uint32_t movement)
{
    const ferry_store *store = fy_store_of(f);
    const fy_percolation *p = store == NULL ? NULL : store->percolation;
    int home = ferry_directory_home(f, object);
    if (p != NULL && (fy_percolation_serves(p) || home >= p->servers))
        ferry_directory_tell(f, home, object, movement, p->rank);
}

static ferry_schedulable *percolation_next(ferry_scheduling *s, void *state)
{
    fy_percolation *p = state;
    if (!fy_percolation_serves(p))
        return fy_engine_next(s, p);
    fy_assembler_offer(s, p); /* migration may have been off */
    return fy_initiator_next(s, p);
}

static void percolation_activate(ferry_scheduling *s, void *state, ferry_schedulable *item)
{
    fy_percolation *p = state;
    if (fy_percolation_serves(p))
        fy_initiator_rest(s, p, item);
    else
        fy_engine_rest(s, p, item);
}

static void percolation_notify(ferry_scheduling *s, void *state, ferry_schedulable *item)
{
    fy_percolation *p = state;
    if (fy_percolation_serves(p))
        fy_initiator_notify(s, p, item);
    else
        fy_engine_notify(p, item);
}

static void remove_item(ferry_scheduling *s, void *state, ferry_schedulable *item)
{
    fy_percolation *p = state;
    (void)s;
    if (fy_percolation_serves(p))
        fy_initiator_remove(p, item);
    else
        fy_engine_remove(p, item);
}

static bool percolation_empty(ferry_scheduling *s, void *state)
{
    const fy_percolation *p = state;
    bool alone = p->engines == 0 || !ferry_scheduling_is_on(s);
    if (fy_percolation_serves(p))
        return p->own.count == 0 && (!alone || p->tokens.count == 0);
    return p->queue.count == 0 && p->leaving.count == 0 &&
           (p->awaits || !fy_terminator_hopes(s, p)); /* not yet: it is work as well */
}

static void percolation_message(ferry_scheduling *s, void *state, int source,
                                const uint64_t words[FERRY_SCHEDULER_WORDS])
{
    fy_percolation *p = state;
    if (fy_percolation_serves(p))
        fy_assembler_message(s, p, source, words);
    else
        fy_engine_message(s, p, source, words);
}

static void percolation_members(ferry_scheduling *s, void *state)
{
    fy_percolation *p = state;
    fy_entries_ask(fy_objects_of(s->f)); /* servers tell the homes where objects are */
    if (fy_percolation_serves(p))
        fy_assembler_members(s, p);
    else
        fy_engine_members(s, p);
}

/* Whether all engines read images of this server where they are. */
static bool is_read(const ferry_scheduling *s, const fy_percolation *p)
{
    ferry_store *store = fy_store_of(s->f);
    bool all = p->engines != 0;
    for (int rank = p->servers; rank < p->ranks && all; rank++)
        all = !p->known_engines[rank].present || fy_store_is_read_by(store, rank);
    return all;
}

/* A server reads objects ahead unless the engines read them. */
static ferry_schedulable *ahead(ferry_scheduling *s, void *state, const ferry_schedulable *after)
{
    const fy_percolation *p = state;
    if (!fy_percolation_serves(p))
        return after == NULL ? p->queue.first : after->next;
    if (after == NULL ? p->own.first != NULL : after != p->own.last)
        return after == NULL ? p->own.first : after->next;
    return is_read(s, p) ? NULL : p->tokens.first;
}

static const ferry_scheduler scheduler = {
    .size = sizeof scheduler,
    .name = NAME,
    .create = percolation_create,
    .destroy = percolation_destroy,
    .next = percolation_next,
    .activate = percolation_activate,
    .notify = percolation_notify,
    .remove = remove_item,
    .empty = percolation_empty,
    .message = percolation_message,
    .members = percolation_members,
    .ahead = ahead,
};

/* Whether this rank has what percolation needs. */
static int check_rank(ferry *f)
{
    const char *chosen = fy_env_get("FERRY_SCHEDULER");
    if (fy_store_of(f) == NULL)
        return fy_fail(f, FERRY_ESTATE,
                       "percolation_start: this rank has no store; call "
                       "ferry_store_open first");
    if (fy_scheduling_of(f)->scheduler != NULL)
        return fy_fail(f, FERRY_ESTATE, "percolation_start: scheduler %s has started already",
                       ferry_balance_scheduler(f));
    if (chosen != NULL && strcmp(chosen, NAME) != 0)
        return fy_fail(f, FERRY_ESTATE,
                       "percolation_start: FERRY_SCHEDULER is \"%s\"; with data servers the "
                       "scheduler is percolation: unset it",
                       chosen);
    return 0;
}

/* Reads the options, and whether this rank can start at all. */
static int percolation_check(ferry *f, const ferry_percolation_options *given,
                             ferry_percolation_options *out)
{
    if (given == NULL)
        return fy_fail(f, FERRY_EINVAL, "percolation_start: the options are missing");
    int error =
        fy_read_sized(f, "percolation_start: ferry_percolation_options", given, out, sizeof *out);
    uint64_t servers = (uint64_t)(int64_t)out->servers;
    const int starting = fy_objects_of(f)->info.starting;
    const int ranks = starting != 0 ? starting : ferry_ranks(f);
    if (error != 0)
        return error;
    if (fy_env_number_within("FERRY_SERVERS", 0, (uint64_t)ranks - 1, &servers) != 0)
        return fy_fail(f, FERRY_EINVAL, "percolation_start: %s", fy_error_text());
    if (servers >= (uint64_t)ranks || out->window < 0 || out->window > FY_WINDOW_MAX ||
        out->tasks < 0 || out->tasks > FY_STAY_TASKS_MAX)
        return fy_fail(f, FERRY_EINVAL,
                       "percolation_start: servers is %d, window %d, tasks %d; expected 0 to %d, "
                       "0 to %d and 0 to %d",
                       out->servers, out->window, out->tasks, ranks - 1, FY_WINDOW_MAX,
                       FY_STAY_TASKS_MAX);
    out->servers = (int)servers;
    return servers == 0 ? 0 : check_rank(f);
}

static int percolation_prepare(ferry *f, const ferry_percolation_options *o)
{
    enum { WINDOW = 4, TASKS = 64 };
    int error = ferry_scheduler_register(f, &scheduler);
    if (error == 0)
        error = ferry_balance_choose(f, NAME);
    if (error != 0)
        return error;
    ferry_store *store = fy_store_of(f);
    fy_percolation *p = fy_calloc(1, sizeof *p);
    if (p == NULL)
        return fy_fail(f, FERRY_ENOMEM, "percolation_start: no memory");
    p->rank = ferry_rank(f);
    p->ranks = ferry_ranks(f);
    p->servers = o->servers;
    p->window = o->window != 0 ? o->window : WINDOW;
    p->tasks = o->tasks != 0 ? o->tasks : TASKS;
    p->budget_bytes = store->stats.budget_bytes;
    store->percolation = p;
    store->serves = p->rank < p->servers;
    if (store->objects->protocol.arrived == NULL)
        store->objects->protocol.arrived = percolation_arrived;
    error = store->objects->watch->prepare(f);
    if (error == 0 || store->percolation == NULL)
        return error;
    store->percolation = NULL;
    store->serves = false;
    free_state(p);
    return error;
}

/* An error and its rank as one number: 0 without an error. If several ranks have the same error,
 * the lowest rank has the greatest number. */
static int64_t failure_of(const ferry *f, int error)
{
    return error == 0 ? 0 : (int64_t)-error << 32 | (INT32_MAX - ferry_rank(f));
}

/* Whether all ranks could start, with as many servers. */
static int percolation_agree(ferry *f, int error, int servers)
{
    int64_t most[3] = {servers, -servers, failure_of(f, error)};
    int failed = ferry_allreduce(f, FERRY_INT64, FERRY_MAX, most, most, 3);
    if (error != 0 || failed != 0)
        return error != 0 ? error : failed;
    if (most[2] != 0)
        return fy_fail(f, FERRY_EPEER, "percolation_start: rank %d could not start: %s",
                       (int)(INT32_MAX - (most[2] & INT32_MAX)),
                       ferry_strerror((int)-(most[2] >> 32)));
    if (most[0] != -most[1])
        return fy_fail(f, FERRY_EINVAL,
                       "percolation_start: servers is %d here, and %d to %d on all ranks; "
                       "expected the same number",
                       servers, (int)-most[1], (int)most[0]);
    return 0;
}

int ferry_percolation_start(ferry *f, const ferry_percolation_options *options)
{
    ferry_percolation_options known = FERRY_PERCOLATION_OPTIONS_DEFAULTS;
    if (fy_in_handler(f))
        return fy_fail(f, FERRY_ESTATE, "percolation_start: not allowed in a handler");
    /* No rank begins before all can, so the program may call again after an error. */
    int error = percolation_check(f, options, &known);
    if (ferry_member_place(f, ferry_rank(f)) < 0) /* it has joined; the others balance already */
        return error == 0 && known.servers != 0 ? percolation_prepare(f, &known) : error;
    error = percolation_agree(f, error, known.servers);
    if (error != 0 || known.servers == 0)
        return error;
    error = percolation_agree(f, percolation_prepare(f, &known), known.servers);
    return error == 0 ? ferry_balance_enable(f, true) : error;
}

static fy_percolation *state_of(const ferry *f)
{
    const ferry_store *store = fy_store_of(f);
    return store == NULL ? NULL : store->percolation;
}

int ferry_percolation_servers(const ferry *f)
{
    const fy_percolation *p = state_of(f);
    return p == NULL ? 0 : p->servers;
}

int ferry_percolation_stats_get(ferry *f, ferry_percolation_stats *out)
{
    ferry_percolation_stats now = FERRY_PERCOLATION_STATS_DEFAULTS;
    const fy_percolation *p = state_of(f);
    if (out == NULL)
        return fy_fail(f, FERRY_EINVAL, "percolation_stats_get: the result is missing");
    const fy_object_calls *calls = fy_objects_of(f)->calls;
    calls->lock(f);
    if (p != NULL)
        now = p->stats;
    calls->unlock(f);
    return fy_write_sized(f, "percolation_stats_get: ferry_percolation_stats", out, &now,
                          sizeof now);
}
