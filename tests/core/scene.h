/* Scene: three ranks of one process, which a test drives step by step, and witnesses of the ends of
 * tracked operations. A peer's death is marked in the segment as the launcher does. Include it
 * after cmocka.h. */
#ifndef FY_TEST_SCENE_H
#define FY_TEST_SCENE_H

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "port/shm/layout.h"
#include "ranks.h"

/* The callbacks count here what they were told. */
typedef struct witness {
    int counts[4];
    ferry_receipt last;
    char reason[200];
} witness;

static inline void see(ferry *f, void *arg, const ferry_receipt *receipt)
{
    (void)f;
    witness *w = arg;
    w->counts[receipt->event]++;
    w->last = *receipt;
    snprintf(w->reason, sizeof(w->reason), "%s", receipt->reason);
}

static inline ferry_track track_to(witness *w)
{
    return (ferry_track){.size = sizeof(ferry_track),
                         .submitted = see,
                         .submitted_arg = w,
                         .completed = see,
                         .completed_arg = w,
                         .failed = see,
                         .failed_arg = w};
}

static inline int ends(const witness *w)
{
    return w->counts[FERRY_COMPLETED] + w->counts[FERRY_TIMED_OUT] + w->counts[FERRY_FAILED];
}

static inline void count(ferry *f, int source, const ferry_message *message)
{
    (void)source;
    (void)message;
    ++*(int *)ferry_user_data(f);
}

typedef struct scene {
    test_job job;
    ferry_handler handler;
    int handled[3];
} scene;

static inline void scene_open(scene *s)
{
    memset(s, 0, sizeof(*s));
    job_open(&s->job, 3, 0, 0);
    for (int i = 0; i < 3; i++) {
        ferry_user_data_set(s->job.f[i], &s->handled[i]);
        assert_int_equal(ferry_handler_register(s->job.f[i], "count", count, &s->handler), 0);
    }
    job_settle(&s->job);
}

static inline void sleep_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

/* Marks a rank dead, and lets the others see it. */
static inline void kill_rank(scene *s, uint32_t rank)
{
    fy_controls_mark(s->job.segment->base, 3, rank, SHM_DEAD);
    for (bool more = true; more;) {
        more = false;
        for (int i = 0; i < 3; i++)
            if (i != (int)rank)
                more |= fy_progress(s->job.f[i], true) > 0 ||
                        !ferry_peer_is_gone(s->job.f[i], (int)rank);
    }
}

#endif
