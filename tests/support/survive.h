/* Survive: a rank of a test program goes on when others die. */
#ifndef FY_TEST_SURVIVE_H
#define FY_TEST_SURVIVE_H

#include <ferry/ferry.h>

static inline void survive_one(ferry *f, void *arg, const ferry_peer_event *event)
{
    (void)f, (void)arg, (void)event;
}

/* Lets the job go on after deaths. */
static inline int survive_deaths(ferry *f)
{
    return ferry_peer_watch(f, survive_one, NULL);
}

/* Quiesces until all agree on who is left. */
static inline int survive_quiesce(ferry *f)
{
    int error;
    do
        error = ferry_quiesce(f);
    while (error == FERRY_EPEER);
    return error;
}

#endif
