#include "balance/schedulers/bundle/bundle.h"

#include <stdio.h>
#include <string.h>

/* Adds `name` to a list that is `*used` bytes long. */
static void list_name(char *list, size_t size, size_t *used, const char *name)
{
    int length = snprintf(list + *used, size - *used, "%s%s", *used == 0 ? "" : ", ", name);
    if (length > 0 && (size_t)length < size - *used)
        *used += (size_t)length;
}

static void list(const ferry_scheduler *const *more, int count, char *out, size_t size)
{
    size_t used = 0;
    for (int i = 0; i < count; i++)
        list_name(out, size, &used, more[i]->name);
    for (int i = 0; fy_bundle_schedulers.schedulers[i] != NULL; i++)
        list_name(out, size, &used, fy_bundle_schedulers.schedulers[i]->name);
}

/* Whether the list `names` contains the name of `entry`, which is NAME=VALUE. */
static bool is_asked_for(const char *names, const char *entry)
{
    size_t length = strcspn(entry, "=");
    for (const char *at = names; (at = strchr(at, ' ')) != NULL;)
        if (strncmp(++at, entry, length) == 0 && (at[length] == ' ' || at[length] == '\0'))
            return true;
    return false;
}

static void warn(const ferry *f, fy_bundle_calls calls, const char *scheduler, const char *asked)
{
    static const char prefix[] = "FERRY_SCHEDULER_";
    size_t index = 0;
    for (const char *entry; (entry = calls.next(prefix, &index)) != NULL;)
        if (!is_asked_for(asked, entry + sizeof prefix - 1))
            calls.log(f, "warning: %.*s is ignored; parameters of scheduler %s:%s",
                      (int)strcspn(entry, "="), entry, scheduler,
                      asked[0] != '\0' ? asked : " none");
}

const fy_bundle fy_bundle_schedulers = {
    .version = FY_BUNDLE_VERSION,
    .schedulers =
        {
            &fy_scheduler_stealing,         /* idle ranks ask one by one */
            &fy_scheduler_diffusion,        /* idle ranks ask a neighbourhood */
            &fy_scheduler_diffusion_sender, /* busy ranks ask a neighbourhood */
            &fy_scheduler_gradient,         /* idle ranks make themselves known from rank to rank */
            &fy_scheduler_multilist,        /* an object has a priority for each rank */
            &fy_scheduler_master,           /* work is collected and handed out */
            &fy_scheduler_none,             /* nothing moves */
            &fy_scheduler_rotate,           /* moves every object, to test programs */
            &fy_scheduler_inplace,          /* packs and unpacks every object, to test programs */
        },
    .list = list,
    .warn = warn,
    .misuses =
        {
            [FY_MISUSE_STRANGER] = "scheduler %s moves (to rank %d) or picks object %016llx, which "
                                   "it has given away or has not got back",
            [FY_MISUSE_QUEUED] = "scheduler %s moves to rank %d object %016llx, whose `queued` is "
                                 "true; the object stays: unlink it and clear `queued` before",
            [FY_MISUSE_RANK] = "scheduler %s moves to rank %d, which does not exist, object "
                               "%016llx; the object stays (ferry_scheduling_accepts)",
            [FY_MISUSE_AGAIN] = "scheduler %s moves in vain to rank %d object %016llx, which has "
                                "just come back; the object stays, and a task of it runs "
                                "(ferry_scheduling_is_on, ferry_scheduling_accepts)",
            [FY_MISUSE_IDLE] = "scheduler %s picked on rank %d object %016llx, which has no task",
            [FY_MISUSE_WORD] = "scheduler %s sends words to rank %d, which is its own or does not "
                               "exist; they are lost",
            [FY_MISUSE_RESTLESS] = "scheduler %s asks without a pause: it has sent 32768 words or "
                                   "more since a task ran here, the last 16384 within a second; it "
                                   "should wait (ferry_scheduling_wake)",
        },
};
