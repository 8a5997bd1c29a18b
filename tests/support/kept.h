/* Kept: the sums that handlers have left in objects, outside of all ranks. When a simulated disk
 * has lost messages, no collective ends well any more. These sums then say what each object must
 * have.
 */
#ifndef FY_TEST_KEPT_H
#define FY_TEST_KEPT_H

#include <stdlib.h>

#include "thing.h"

enum { KEPT_MAX = 1024 };

static uint64_t kept_sums[KEPT_MAX];

/* A handler has added `value` to objects[i] == object. */
static inline void kept_add(const ferry_object *objects, int count, ferry_object object,
                            uint64_t value)
{
    for (int i = 0; i < count; i++)
        if (objects[i].word == object.word)
            kept_sums[i] += value;
}

/* A message was lost: the error names an object, and those in the memory of this rank have lost
 * nothing. Ends the process if that is not so. Then other ranks get time to do the same. */
static inline void kept_check(ferry *f, const ferry_object *objects, int count)
{
    enum { TIME_NS = 1000 * 1000 };
    int wrong = strstr(ferry_error_message(f), "object ") == NULL;
    for (int i = 0; i < count; i++) {
        const thing *t = ferry_object_data(f, objects[i]);
        wrong += t != NULL && (!is_whole(t) || t->sum != kept_sums[i]);
    }
    if (wrong != 0)
        abort();
    for (uint64_t end_ns = ferry_now(f) + TIME_NS; ferry_now(f) < end_ns;)
        (void)ferry_poll(f);
}

#endif
