/* Travel: how long the objects that a scheduler gives away take to arrive, one after the other. */
#include "balance/balance.h"
#include "balance/schedulers/schedulers.h"

/* Objects of up to this size travel no longer than words, and are not answered. */
enum { SMALL_BYTES = 1024 };

bool fy_travel_begin(ferry_scheduling *s, const fy_record *record)
{
    fy_travel *travel = &s->travel;
    const ferry_object_ops *ops = &record->type->ops;
    bool small = ops->packed_size == NULL && ops->flat_bytes <= SMALL_BYTES;
    travel->known |= small;
    travel->unasked++;
    if (small || !travel->asked)
        return false;
    travel->unasked = 0;
    if (travel->away++ == 0)
        travel->since_ns = ferry_scheduling_now(s);
    return true;
}

/* The scheduler may be able to give more now. */
static void tell(ferry_scheduling *s)
{
    s->wake_ns = 1;
    fy_scheduler_rouse(s);
}

/* Fewer may be away, if some were forgotten when the ranks changed. Objects of which no answer
 * comes take no time. */
void fy_travel_end(ferry_scheduling *s, int count)
{
    uint32_t away = s->travel.away;
    s->travel.away -= (uint32_t)count < away ? (uint32_t)count : away;
    if (count == 0 || away == 0 || s->travel.known)
        return;
    s->travel.known = true;
    tell(s);
}

/* Most answers that take longer have waited for a processor. */
static void learn(fy_travel *travel, uint64_t each_ns)
{
    if (!travel->known || each_ns < travel->each_ns)
        travel->each_ns = (travel->each_ns + each_ns) / (1 + travel->known);
    else
        travel->each_ns += (each_ns - travel->each_ns) / 8;
    travel->known = true;
}

fy_verdict fy_travel_frame(ferry *f, int source, const fy_frame *frame)
{
    ferry_scheduling *s = fy_scheduling_of(f);
    uint64_t now = ferry_scheduling_now(s), count = frame->words[0];
    (void)source;
    if (frame->word_count == 0 || count == 0 || count > s->travel.away)
        return FY_TAKEN;
    /* In a simulation the other thread's clock may be ahead. */
    learn(&s->travel, now > s->travel.since_ns ? (now - s->travel.since_ns) / count : 0);
    s->travel.since_ns = now;
    fy_travel_end(s, (int)count);
    tell(s);
    return FY_TAKEN;
}

uint64_t fy_scheduling_travel_ns(ferry_scheduling *s, uint64_t task_ns, uint32_t *away)
{
    enum { LOST_NS = 1000 * 1000 * 1000, PART = 8, SAMPLE = 8 };
    fy_travel *travel = &s->travel;
    *away = 0;
    /* In shared memory objects are handed over. Without a helper answers wait for ends of tasks. */
    if (s->objects->info.shares_memory || !s->started)
        return 0;
    if (!travel->known || travel->each_ns > task_ns / PART || travel->unasked >= SAMPLE)
        travel->asked = true;
    if (travel->away != 0 && ferry_scheduling_now(s) > travel->since_ns + LOST_NS)
        travel->away = 0; /* an answer is lost */
    *away = travel->away;
    return travel->known ? travel->each_ns : UINT64_MAX;
}
