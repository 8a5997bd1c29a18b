/* Parameters of schedulers, from variables FERRY_SCHEDULER_NAME of the environment.
 *
 * A scheduler reads each of its parameters in `create`, with a default and a range. The names that
 * it reads are noted in `asked`, each after a space. A value outside its range makes `create` fail
 * (`misread`). After `create`, rank 0 warns of variables whose names the scheduler has not read.
 *
 * Steering may choose a parameter that is not set (`tuned`). Schedulers read those that it may
 * choose again while they run. To look for a variable takes 0.3 us. That is not done again if there
 * was none of these variables. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "balance/balance.h"
#include "base/env.h"
#include "core/fail.h"

#define PARAMETER_PREFIX "FERRY_SCHEDULER_"

void fy_parameters_check(ferry_scheduling *s)
{
    size_t index = 0;
    const fy_bundle *bundle;
    s->plain = fy_env_next(PARAMETER_PREFIX, &index) == NULL;
    if (!s->plain && s->rank == 0 && fy_bundle_find(&bundle) == 0)
        bundle->warn(s->f, (fy_bundle_calls){fy_env_next, fy_log}, s->name, s->asked);
}

/* Adds a name to `asked`, if `create` runs: a scheduler may read a parameter again later. */
static void note_parameter(ferry_scheduling *s, const char *name)
{
    size_t used = strlen(s->asked);
    if (s->scheduler == NULL)
        (void)snprintf(s->asked + used, sizeof s->asked - used, " %s", name);
}

/* The default of a parameter, and the values that it may have. */
typedef struct range {
    double otherwise, low, high;
    bool whole;
} range;

static double read_parameter(ferry_scheduling *s, const char *name, const range *r)
{
    if (s->plain && s->tuned == NULL)
        return r->otherwise;
    char variable[96];
    int length = snprintf(variable, sizeof variable, PARAMETER_PREFIX "%s", name);
    if (length < 0 || (size_t)length >= sizeof variable)
        return r->otherwise;
    for (char *c = variable; *c != '\0'; c++)
        *c = (char)toupper((unsigned char)*c);
    note_parameter(s, variable + sizeof PARAMETER_PREFIX - 1);
    const char *text = fy_env_get(variable);
    if (text == NULL)
        return s->tuned != NULL ? s->tuned(s, name, r->otherwise) : r->otherwise;
    char *end;
    double value = strtod(text, &end);
    if (*end == '\0' && value >= r->low && value <= r->high && (!r->whole || (int)value == value))
        return value;
    s->misread = fy_fail(s->f, FERRY_EINVAL,
                         "scheduler %s: %s is \"%s\"; expected a %snumber from %.10g to %.10g",
                         s->name, variable, text, r->whole ? "whole " : "", r->low, r->high);
    return r->otherwise;
}

double ferry_scheduling_parameter(ferry_scheduling *s, const char *name, double otherwise,
                                  double low, double high)
{
    return read_parameter(s, name, &(range){otherwise, low, high, false});
}

int ferry_scheduling_count(ferry_scheduling *s, const char *name, int otherwise, int low, int high)
{
    return (int)read_parameter(s, name, &(range){otherwise, low, high, true});
}
