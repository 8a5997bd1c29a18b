/* Tracked: messages to objects whose ends are counted. */
#ifndef FY_TEST_TRACKED_H
#define FY_TEST_TRACKED_H

#include <ferry/ferry.h>

typedef struct tracked {
    int completed, failed;
} tracked;

static inline void tracked_completed(ferry *f, void *arg, const ferry_receipt *receipt)
{
    (void)f, (void)receipt;
    ((tracked *)arg)->completed++;
}

static inline void tracked_failed(ferry *f, void *arg, const ferry_receipt *receipt)
{
    (void)f, (void)receipt;
    ((tracked *)arg)->failed++;
}

/* Counts the end in `t`. */
static inline ferry_track tracked_by(tracked *t)
{
    ferry_track track = FERRY_TRACK_DEFAULTS;
    track.completed = tracked_completed;
    track.failed = tracked_failed;
    track.completed_arg = track.failed_arg = t;
    return track;
}

/* As ferry_object_send of a message with one word. Its end is counted in `t`. */
static inline int tracked_send(ferry *f, ferry_object object, ferry_handler handler, uint64_t word,
                               tracked *t)
{
    const ferry_message message = {.handler = handler, .word_count = 1, .words = {word}};
    const ferry_track track = tracked_by(t);
    return ferry_object_send(f, object, &message, &track);
}

#endif
