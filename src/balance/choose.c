/* The choice of a scheduler: it is found by its name, checked, and made. */
#include "balance/balance.h"

#include <stdio.h>
#include <string.h>

#include "balance/schedulers/schedulers.h"
#include "balance/steer/steer.h"
#include "base/env.h"
#include "base/error.h"
#include "core/fail.h"
#include "object/foreign.h"

static const ferry_scheduler *find_scheduler(const ferry_scheduling *s, const char *name)
{
    for (int i = 0; i < s->table_count; i++)
        if (strcmp(s->table[i]->name, name) == 0)
            return s->table[i];
    return NULL;
}

/* `bundle`: NULL if it cannot be opened; fy_error_text then says why. */
static int fail_unknown(const ferry_scheduling *s, const fy_bundle *bundle)
{
    char known[256] = "";
    if (bundle == NULL)
        return fy_fail(s->f, FERRY_EINVAL,
                       "scheduler \"%s\" is none of ferry, nor the program's, and %s", s->name,
                       fy_error_text());
    bundle->list(s->table, s->table_count, known, sizeof known);
    return fy_fail(s->f, FERRY_EINVAL,
                   "there is no scheduler \"%s\"; known are: %s; or a path of a shared object, "
                   "with a '/' in it",
                   s->name, known);
}

static int look_in_bundle(const ferry_scheduling *s, const ferry_scheduler **out)
{
    const fy_bundle *bundle = NULL;
    int error = fy_bundle_find(&bundle);
    for (int i = 0; error == 0 && bundle->schedulers[i] != NULL; i++) {
        if (strcmp(bundle->schedulers[i]->name, s->name) == 0) {
            *out = bundle->schedulers[i];
            return 0;
        }
    }
    return fail_unknown(s, bundle);
}

static int read_scheduler(ferry *f, const ferry_scheduler *given, ferry_scheduler *out)
{
    return fy_read_sized(f, "ferry_scheduler", given, out, sizeof *out);
}

_Static_assert(offsetof(ferry_scheduler, message) ==
                   offsetof(ferry_scheduler, name) + 8 * sizeof(void *),
               "pointers without a gap");

/* Whether a scheduler has all functions that it must have. If it has not, the error text begins
 * with `whose`. */
static int scheduler_check(ferry *f, const char *whose, const ferry_scheduler *scheduler)
{
    ferry_scheduler known;
    int error = read_scheduler(f, scheduler, &known);
    if (error != 0)
        return error;
    static const char parts[][9] = {"name",   "create", "destroy", "next",   "activate",
                                    "notify", "remove", "empty",   "message"};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        const void *part; /* the struct has them in this order */
        memcpy(&part, (const char *)&known.name + i * sizeof part, sizeof part);
        if (part == NULL)
            return fy_fail(f, FERRY_EINVAL, "%s: the scheduler has no %s", whose, parts[i]);
    }
    return 0;
}

static int open_foreign(ferry_scheduling *s, const ferry_scheduler **out)
{
    const void *given = NULL;
    int error =
        fy_foreign_open(s->f, "scheduler", s->name, FERRY_SCHEDULER_SYMBOL, &s->plugin, &given);
    if (error != 0)
        return error;
    *out = given;
    error = scheduler_check(s->f, s->name, given);
    if (error != 0) {
        fy_foreign_close(s->plugin);
        s->plugin = NULL;
    }
    return error;
}

/* Finds the scheduler that is asked for: in the table, in a shared object, or in the bundle. */
static int look_up(ferry_scheduling *s, const ferry_scheduler **out)
{
    const ferry_scheduler *scheduler = find_scheduler(s, s->name);
    if (scheduler == NULL && strchr(s->name, '/') != NULL)
        return open_foreign(s, out);
    if (scheduler == NULL)
        return look_in_bundle(s, out);
    *out = scheduler;
    return 0;
}

/* Puts steering around the scheduler in use, whose name it keeps. */
static int wrap(ferry_scheduling *s)
{
    const fy_steer *steer;
    if (fy_steer_find(&steer) != 0)
        return fy_fail(s->f, FERRY_EINVAL, "FERRY_STEER is 1, and %s", fy_error_text());
    s->steered = s->known;
    s->known = steer->scheduler;
    s->known.name = s->steered.name;
    return 0;
}

int fy_scheduler_prepare(ferry *f)
{
    ferry_scheduling *s = fy_scheduling_of(f);
    if (s->scheduler != NULL)
        return 0;
    const ferry_scheduler *scheduler = NULL;
    int error = look_up(s, &scheduler);
    if (error == 0)
        error = read_scheduler(f, scheduler, &s->known);
    if (error == 0 && fy_env_number_or("FERRY_STEER", 0) != 0)
        error = wrap(s);
    if (error != 0)
        return error;
    scheduler = &s->known;
    s->calm = scheduler->next == fy_scheduler_ferry.next && !s->counted;
    s->asked[0] = '\0';
    s->misread = 0;
    error = scheduler->create(s, &s->state);
    if (s->misread != 0) {
        if (error == 0)
            scheduler->destroy(s, s->state);
        error = s->misread;
    } else if (error != 0) {
        int returned = error;
        error = error > 0 ? FERRY_EINVAL : error;
        error = fy_fail(f, error, "scheduler %s: create returned %d, expected 0: %s", s->name,
                        returned, ferry_strerror(error));
    }
    if (error != 0) {
        fy_foreign_close(s->plugin);
        s->plugin = NULL;
        return error;
    }
    s->scheduler = scheduler;
    fy_layer_due(s->f, FY_LAYER_BALANCE);
    fy_parameters_check(s);
    return 0;
}

int ferry_scheduler_register(ferry *f, const ferry_scheduler *scheduler)
{
    ferry_scheduling *s = fy_scheduling_of(f);
    if (scheduler == NULL)
        return fy_fail(f, FERRY_EINVAL, "scheduler_register: the scheduler is missing");
    int error = scheduler_check(f, "scheduler_register", scheduler);
    if (error != 0)
        return error;
    if (scheduler->name[strcspn(scheduler->name, "/")] != '\0' || scheduler->name[0] == '\0' ||
        find_scheduler(s, scheduler->name) != NULL)
        return fy_fail(f, FERRY_EINVAL,
                       "scheduler_register: the name \"%s\" is empty, has a '/' or is taken",
                       scheduler->name);
    if (s->table_count == FY_SCHEDULERS_MAX)
        return fy_fail(f, FERRY_ENOMEM, "scheduler_register: more than %d schedulers",
                       FY_SCHEDULERS_MAX);
    s->table[s->table_count++] = scheduler;
    return 0;
}

int fy_scheduler_check_name(ferry *f, const char *name)
{
    enum { BYTES_MAX = sizeof((ferry_scheduling *)0)->name - 1 };
    return name != NULL && strlen(name) <= BYTES_MAX
               ? 0
               : fy_fail(f, FERRY_EINVAL,
                         "the scheduler's name \"%.40s\" is too long or NULL; expected at most %d "
                         "bytes",
                         name != NULL ? name : "", BYTES_MAX);
}

int ferry_balance_choose(ferry *f, const char *name)
{
    ferry_scheduling *s = fy_scheduling_of(f);
    if (s->forced)
        return 0;
    if (s->scheduler != NULL)
        return fy_fail(f, FERRY_ESTATE, "balance_choose: scheduler %s is at work already", s->name);
    int error = fy_scheduler_check_name(f, name);
    if (error != 0)
        return error;
    char before[sizeof s->name];
    memcpy(before, s->name, sizeof before);
    (void)snprintf(s->name, sizeof s->name, "%s", name);
    const ferry_scheduler *scheduler = NULL;
    error = look_up(s, &scheduler);
    fy_foreign_close(s->plugin);
    s->plugin = NULL;
    if (error != 0)
        memcpy(s->name, before, sizeof before);
    return error;
}

const char *ferry_balance_scheduler(const ferry *f)
{
    return fy_scheduling_of(f)->name;
}
