/* Account: where the rank's time goes, and what the launcher may report about it.
 *
 * The clock is read only where an activity that matters begins or ends. At sleeps and at tasks it
 * is always read. At handlers and at the ends of polling calls it is read only once tasks run or a
 * trace is on. If the last call of a handler took less than a microsecond, its next calls are not
 * timed, because reading the clock would cost as much as the handler. Their time counts as the
 * runtime's. So programs that send only small messages read no clock, and all but their idle time
 * counts as their own.
 *
 * Processor time is read after batches and sleeps. Reading it is a system call. So it is read only
 * if the last reading is BRIEF_NS old, or after a wait of SPUN_NS, in which the rank may have
 * slept. Until then, all time counts as computing.
 *
 * Short tasks run in batches (src/balance/task.c). A batch is one stretch. Its processor time is
 * taken at its two ends. The clock is read after each task, or after each eighth while tasks take
 * microseconds. The runtime's time between tasks is measured once per batch, between the first two,
 * and subtracted from the tasks' time as often as it happened. Nothing is estimated for a batch of
 * one task, or while a trace or a profile is made. Tasks of BATCH_NS and more are batches of one.
 */
#include "core/fail.h"
#include "core/rank.h"
#include "core/rest.h"
#include "core/work.h"

enum { LIGHT_NS = 1000, LIGHT_CALLS = 63, BRIEF_NS = 50 * 1000, SPUN_NS = 5000 };
enum { BATCH_NS = 200 * 1000, BATCH_TASKS = 256, TINY_NS = 3000, TINY_TASKS = 8 };

static void record(ferry *f, uint64_t now)
{
    const fy_account *a = &f->head.account;
    const ferry_interval stretch = {.start_ns = a->stamp_ns,
                                    .activity = a->activity,
                                    .handler = a->handler,
                                    .cpu_ns = a->task_cpu_ns};
    if (f->trace.on)
        fy_trace_add(&f->trace, &stretch, now);
    if (f->file != NULL && f->file->trace.on)
        fy_trace_add(&f->file->trace, &stretch, now);
}

static void account_at(ferry *f, uint64_t now, ferry_activity activity, uint32_t handler)
{
    fy_account *a = &f->head.account;
    uint64_t passed = now - a->stamp_ns;
    switch (a->activity) {
    case FERRY_IDLE:
        f->head.stats.idle_ns += passed;
        break;
    case FERRY_RUNTIME:
        f->head.stats.runtime_ns += passed;
        break;
    case FERRY_TASK:
        f->head.stats.task_ns += passed;
        break;
    case FERRY_MAIN:
        break;
    }
    if (f->trace.on || f->file != NULL)
        record(f, now);
    a->stamp_ns = now;
    a->activity = activity;
    a->handler = handler;
}

void fy_account_to(ferry *f, ferry_activity activity, uint32_t handler)
{
    account_at(f, f->head.ops->host.now(f->head.port), activity, handler);
}

static void start_cpu(ferry *f, uint64_t cpu_ns)
{
    fy_account *a = &f->head.account;
    a->cpu_ns = cpu_ns;
    a->cpu_stamp_ns = a->stamp_ns;
    a->cpu_runtime_ns = f->head.stats.runtime_ns;
}

/* The share `part` / `whole` of a time. Signed numbers take less code to convert. */
static inline uint64_t share_of(uint64_t ns, uint64_t part, uint64_t whole)
{
    return (uint64_t)(int64_t)((double)(int64_t)ns * (double)(int64_t)part /
                               (double)(int64_t)whole);
}

/* The runtime's part of the processor time between start_cpu and `now_ns`. The two clocks are read
 * one after the other. The time by which the processor's clock is ahead belongs to no part. */
static __attribute__((noinline)) uint64_t runtime_part(const ferry *f, uint64_t cpu_ns,
                                                       uint64_t now_ns)
{
    const fy_account *a = &f->head.account;
    uint64_t wall = now_ns - a->cpu_stamp_ns;
    uint64_t runtime = f->head.stats.runtime_ns - a->cpu_runtime_ns;
    if (wall == 0 || a->cpu_stamp_ns == 0)
        return 0;
    uint64_t cpu = cpu_ns - a->cpu_ns;
    return cpu >= wall ? runtime : share_of(cpu, runtime, wall);
}

/* Adds the runtime's part to its time. The account has just been brought up to date. */
static void count_cpu(ferry *f, uint64_t cpu_ns)
{
    f->head.stats.runtime_cpu_ns += runtime_part(f, cpu_ns, f->head.account.stamp_ns);
}

/* The processor time at `now_ns`, as if the rank had computed since a recent reading. */
static __attribute__((noinline)) uint64_t cpu_at(ferry *f, uint64_t now_ns)
{
    fy_account *a = &f->head.account;
    if (a->cpu_stamp_ns != 0 && now_ns - a->cpu_read_ns < BRIEF_NS)
        return a->cpu_ns + (now_ns - a->cpu_stamp_ns);
    a->cpu_read_ns = now_ns;
    return f->head.ops->host.cpu(f->head.port);
}

void fy_account_start_cpu(ferry *f)
{
    start_cpu(f, cpu_at(f, f->head.account.stamp_ns));
}

/* Returns the time of the end, or 0 if the port does not tell it. */
static uint64_t wait_in_port(ferry *f, uint64_t deadline_ns, fy_lookout *lookout)
{
    const fy_port_ops *ops = f->head.ops;
    if (ops->heap.await != NULL)
        return ops->heap.await(f->head.port, f->head.account.stamp_ns, deadline_ns, lookout);
    if (lookout == NULL || !lookout->is_over(lookout, true))
        ops->transport.wait(f->head.port, FY_APP, deadline_ns);
    return 0;
}

void fy_account_wait(ferry *f, uint64_t deadline_ns, fy_lookout *lookout)
{
    fy_stretch stretch = {0};
    ferry_activity before = f->head.account.activity;
    bool brief = deadline_ns == FY_ONE_YIELD;
    fy_account_to(f, FERRY_IDLE, 0);
    if (f->head.account.quiet_ns == 0 || f->head.done != f->head.account.quiet_done) {
        f->head.account.quiet_ns = f->head.account.stamp_ns;
        f->head.account.quiet_done = f->head.done;
    }
    if (f->head.account.timed)
        count_cpu(f, cpu_at(f, f->head.account.stamp_ns));
    if (f->head.profile != NULL)
        stretch = fy_profile_begin(f);
    if (!brief) {
        uint64_t late_ns = fy_collectives_look_late(f, f->head.account.stamp_ns);
        deadline_ns = late_ns < deadline_ns ? late_ns : deadline_ns;
    }
    uint64_t waits_ns = f->head.account.stamp_ns;
    uint64_t now_ns = wait_in_port(f, deadline_ns, lookout);
    if (f->head.profile != NULL)
        fy_profile_waited(f, &stretch);
    if (now_ns == 0)
        now_ns = f->head.ops->host.now(f->head.port);
    account_at(f, now_ns, brief ? before : FERRY_RUNTIME, 0);
    if (f->head.account.stamp_ns - waits_ns >= SPUN_NS)
        f->head.account.cpu_read_ns = 0;
    if (f->head.account.timed)
        fy_account_start_cpu(f);
}

static void call_program(ferry *f, fy_call *call, void *arg)
{
    if (f->head.profile == NULL) {
        call(f, arg);
        return;
    }
    fy_stretch stretch = fy_profile_begin(f);
    call(f, arg);
    fy_profile_end(f, &stretch, &f->head.profile->other[FY_PROFILE_APPLICATION], 0);
}

static __attribute__((cold)) void run_timed(ferry *f, uint16_t handler, fy_call *call, void *arg)
{
    ferry_activity outer = f->head.account.activity;
    uint32_t outer_handler = f->head.account.handler;
    fy_account_to(f, FERRY_TASK, handler);
    uint64_t start = f->head.account.stamp_ns;
    f->head.account.told = 0;
    fy_doing_tell(f, f->head.account.doing, handler, start);
    call_program(f, call, arg);
    fy_account_to(f, outer, outer_handler);
    if (f->head.account.stamp_ns - start < LIGHT_NS && handler < f->head.handlers.count)
        f->head.handlers.entries[handler].untimed = LIGHT_CALLS;
}

static void open_batch(ferry *f, uint16_t handler)
{
    fy_account *a = &f->head.account;
    /* Before the first batch no call was timed, so the activity is not known. */
    a->outer = a->timed ? a->activity : FERRY_RUNTIME;
    a->timed = true;
    f->head.due |= FY_DUE_ALWAYS;
    a->outer_handler = a->handler;
    fy_account_to(f, FERRY_TASK, handler);
    uint64_t cpu_ns = cpu_at(f, a->stamp_ns);
    count_cpu(f, cpu_ns);
    a->batch_cpu_ns = cpu_ns;
    a->batch_start_ns = a->stamp_ns;
    a->between_ns = 0;
}

static void close_batch(ferry *f)
{
    fy_account *a = &f->head.account;
    uint64_t cpu_ns = cpu_at(f, a->batch_end_ns);
    uint64_t used_ns = cpu_ns > a->batch_cpu_ns ? cpu_ns - a->batch_cpu_ns : 0;
    uint64_t wall_ns = a->batch_end_ns - a->batch_start_ns;
    uint64_t between_ns = a->between_ns * (a->batch_tasks - 1);
    if (between_ns > wall_ns)
        between_ns = wall_ns;
    a->task_cpu_ns = used_ns;
    account_at(f, a->batch_end_ns, a->outer, a->outer_handler);
    a->task_cpu_ns = 0;
    f->head.stats.task_ns -= between_ns;
    f->head.stats.runtime_ns += between_ns;
    uint64_t runtime_ns = between_ns == 0 ? 0 : share_of(used_ns, between_ns, wall_ns);
    f->head.stats.tasks += a->batch_tasks;
    f->head.stats.task_cpu_ns += used_ns - runtime_ns;
    f->head.stats.runtime_cpu_ns += runtime_ns;
    start_cpu(f, cpu_ns);
    a->batch_tasks = 0;
    a->unread = 0;
}

void fy_batch_end(ferry *f)
{
    if (!fy_batch_is_open(f))
        return;
    f->head.account.batch_end_ns = f->head.ops->host.now(f->head.port);
    close_batch(f);
}

__attribute__((noinline)) void fy_doing_tell(ferry *f, fy_doing doing, uint16_t handler,
                                             uint64_t since_ns)
{
    if (f->head.note != NULL)
        fy_doing_note_write(f->head.note, doing, handler, since_ns);
    else
        f->head.ops->diagnosis.doing(f->head.port, doing, handler, since_ns);
}

__attribute__((noinline)) void fy_doing_set(ferry *f, fy_doing doing, uint16_t handler)
{
    fy_doing_change(f, doing, handler);
}

void fy_task_begin(ferry *f, uint16_t handler)
{
    fy_account *a = &f->head.account;
    f->head.depth++;
    f->head.done++;
    if (a->batch_tasks == 0)
        open_batch(f, handler);
    else if (a->batch_tasks == 1)
        a->between_ns = f->head.ops->host.now(f->head.port) - a->batch_end_ns;
    a->doing = FY_DOING_TASK;
    a->told = 0;
    fy_doing_tell(f, FY_DOING_TASK, handler,
                  a->batch_tasks == 0 ? a->batch_start_ns : a->batch_end_ns);
}

void fy_task_end(ferry *f)
{
    fy_account *a = &f->head.account;
    f->head.depth--;
    a->batch_tasks++;
    if (a->unread > 0) {
        a->unread--;
        return;
    }
    a->batch_end_ns = f->head.ops->host.now(f->head.port);
    uint64_t passed = a->batch_end_ns - a->batch_start_ns;
    a->unread = passed < (uint64_t)a->batch_tasks * TINY_NS ? TINY_TASKS - 1 : 0;
    if (passed >= BATCH_NS || a->batch_tasks >= BATCH_TASKS || f->head.profile != NULL ||
        f->file != NULL || f->trace.on)
        close_batch(f);
}

/* Whether to time this call of a handler. Counts the calls down that are not timed. */
static bool is_timed(ferry *f, uint16_t handler)
{
    if (f->head.profile != NULL || handler >= f->head.handlers.count ||
        f->head.handlers.entries[handler].untimed == 0)
        return true;
    f->head.handlers.entries[handler].untimed--;
    return false;
}

void fy_run(ferry *f, fy_doing what, uint16_t handler, fy_call *call, void *arg)
{
    if (what == FY_DOING_TASK) {
        fy_task_begin(f, handler);
        call_program(f, call, arg);
        fy_task_end(f);
        return;
    }
    f->head.depth++;
    f->head.done++;
    fy_doing_set(f, what, handler);
    if (f->head.account.timed && is_timed(f, handler))
        run_timed(f, handler, call, arg);
    else
        call(f, arg);
    f->head.depth--;
}

void fy_work_shipped(ferry *f, uint64_t count)
{
    /* relaxed: this rank sends its frame after this addition. The target counts the frame when it
     * has it, and only then answers a wave. The next wave asks this rank later still. */
    if (!fy_rest_shipped(f, count))
        atomic_fetch_add_explicit(&f->work_shipped, count, memory_order_relaxed);
}

__attribute__((cold)) int ferry_stats_get(ferry *f, ferry_stats *out)
{
    if (out == NULL)
        return fy_fail(f, FERRY_EINVAL, "stats_get: the result is NULL");
    ferry_stats stats = f->head.stats;
    if (f->head.account.timed)
        stats.runtime_cpu_ns += runtime_part(f, f->head.ops->host.cpu(f->head.port),
                                             f->head.ops->host.now(f->head.port));
    return fy_write_sized(f, "stats_get: ferry_stats", out, &stats, sizeof stats);
}
