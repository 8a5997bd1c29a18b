/* Phase: the scheduler, chosen by rank 0 between two phases of the program.
 *
 * A phase ends with ferry_quiesce. After phases 1, 2, 4, 8 and so on each rank reports the two
 * classes of its tasks to rank 0. Rank 0 plays a phase under each scheduler that the model knows
 * (base/play.h), and compares with the time that the last phase took. If
 * another scheduler is better, it changes its own, and tells the other ranks by a tree. After the
 * next reports it compares again. If the ranks worked for a smaller part of the time than before,
 * the former scheduler comes back, and the other one is not tried again.
 *
 * A rank changes its scheduler under the balancing lock: the waiting objects leave the old one, and
 * are new to the new one. So no task can be lost, whenever it comes. A word of an earlier epoch is
 * for a scheduler that is no more. It is dropped, and its sender learns of the later epoch. A word
 * of a later epoch may come before the notice from rank 0. Then the rank changes first. Objects
 * that are in flight arrive at whatever scheduler is there. */
#include <string.h>

#include "balance/schedulers/bundle/bundle.h"
#include "balance/steer/inside.h"
#include "base/alloc.h"
#include "core/fail.h"
#include "core/work.h"

enum { EPOCHS = 2048, EPOCH_SHIFT = 5, OWN_BIT = 16, SCHEDULER_MASK = 15, TAG_MASK = 65535 };
enum { REPORTS_MAX = 256, FAN_OUT = 8, PLAYED_TASKS_MAX = 2048, PLAYED_EACH_MAX = 32 };
enum { PLAYED_RANKS_MAX = 1024, NEIGHBOURS = 4 };

/* First words of steering's own. */
enum { NOTICE, REPORT, PING, PONG };

/* Tasks that take `seconds` each. */
typedef struct part {
    float seconds;
    uint32_t count;
} part;

struct fy_steer_gathered {
    uint64_t phase, phase_count; /* being gathered; phases that the reports are of */
    int heard;
    bool pinged; /* the answer has not come */
    double busy_s;
    part parts[2 * REPORTS_MAX];
    int part_count;
    uint64_t since_ns; /* the time of the report before */
    uint64_t ping_ns;
    double startup_s;
    bool on_trial;
    int former; /* the scheduler before the trial */
    double former_efficiency;
    bool refused[FY_PLAY_SCHEDULERS];
    double seconds[PLAYED_TASKS_MAX];
};

static const char names[FY_PLAY_SCHEDULERS][10] = {
    [FY_PLAY_NONE] = "none",
    [FY_PLAY_DIFFUSION] = "diffusion",
    [FY_PLAY_STEALING] = "stealing",
    [FY_PLAY_FERRY] = "ferry",
};

static const ferry_scheduler *find_known(const ferry_scheduling *s, int index)
{
    const fy_bundle *bundle = NULL;
    if (index == FY_PLAY_FERRY)
        return s->table[0];
    if (fy_bundle_find(&bundle) != 0)
        return NULL;
    for (int i = 0; bundle->schedulers[i] != NULL; i++)
        if (strcmp(bundle->schedulers[i]->name, names[index]) == 0)
            return bundle->schedulers[i];
    return NULL;
}

int fy_phases_open(ferry_scheduling *s, fy_steer_state *t)
{
    fy_steer_phases *p = &t->phases;
    *p = (fy_steer_phases){.fixed = true, .due = 1};
    for (int i = 0; i < FY_PLAY_SCHEDULERS && !s->forced && s->ranks > 1; i++) {
        p->known[i] = find_known(s, i);
        if (p->known[i] == NULL || p->known[i]->create != s->steered.create)
            continue;
        p->fixed = false;
        p->scheduler = i;
    }
    if (p->fixed || s->rank != 0)
        return 0;
    p->root = fy_calloc(1, sizeof *p->root);
    if (p->root == NULL)
        return FERRY_ENOMEM;
    p->root->since_ns = ferry_scheduling_now(s);
    return 0;
}

void fy_phases_close(fy_steer_state *t)
{
    free(t->phases.root);
}

static uint32_t tag_of(const fy_steer_phases *p)
{
    return p->epoch << EPOCH_SHIFT | (uint32_t)p->scheduler;
}

static void mark(ferry_scheduling *s, uint32_t from, uint32_t tag)
{
    for (uint32_t i = from; i < s->note_count; i++) {
        uint64_t *word = &s->notes[s->note_first + i].words[FERRY_SCHEDULER_WORDS];
        *word = (*word & ~(uint64_t)TAG_MASK) | tag;
    }
}

void fy_phases_stamp(ferry_scheduling *s, const fy_steer_state *t, uint32_t before)
{
    if (!t->phases.fixed)
        mark(s, before, tag_of(&t->phases));
}

static void say(ferry_scheduling *s, const fy_steer_state *t, int rank,
                const uint64_t words[FERRY_SCHEDULER_WORDS])
{
    uint32_t before = s->note_count;
    ferry_scheduling_send(s, rank, words);
    mark(s, before, tag_of(&t->phases) | OWN_BIT);
}

/* Tells the ranks below this one in the tree, which tell others. */
static void tell_below(ferry_scheduling *s, const fy_steer_state *t)
{
    const uint64_t words[FERRY_SCHEDULER_WORDS] = {NOTICE};
    for (int64_t i = 1; i <= FAN_OUT; i++)
        if (FAN_OUT * (int64_t)s->rank + i < s->ranks)
            say(s, t, (int)(FAN_OUT * (int64_t)s->rank + i), words);
}

/* Gives the waiting objects of the old scheduler to the new one. The words of the old one are
 * dropped: no rank would read them. */
static void hand_over(ferry_scheduling *s, fy_steer_state *t, const ferry_scheduler *to, void *made)
{
    uint32_t before = s->note_count;
    ferry_schedulable *first = NULL, **end = &first, *item;
    while ((item = s->steered.ahead(s, t->state, NULL)) != NULL) {
        s->steered.remove(s, t->state, item);
        item->next = NULL;
        *end = item;
        end = &item->next;
    }
    s->steered.destroy(s, t->state);
    s->note_count = before;
    ferry_scheduling_wake(s, 0);
    s->steered = *to;
    t->state = made;
    while ((item = first) != NULL) {
        first = item->next;
        item->prev = item->next = NULL;
        item->arrived = false;
        s->steered.activate(s, t->state, item);
    }
}

static bool change(ferry_scheduling *s, fy_steer_state *t, int index, uint32_t epoch)
{
    fy_steer_phases *p = &t->phases;
    const ferry_scheduler *to = index < FY_PLAY_SCHEDULERS ? p->known[index] : NULL;
    void *made = NULL;
    if (to == NULL || to->create(s, &made) != 0) {
        if (p->failed_epoch != epoch)
            fy_log(s->f,
                   "steering: scheduler %s stays here; rank 0 has chosen %s, which cannot be made",
                   s->steered.name, index < FY_PLAY_SCHEDULERS ? names[index] : "another one");
        p->failed_epoch = epoch;
        return false;
    }
    uint32_t before = s->note_count;
    p->scheduler = index;
    p->epoch = epoch % EPOCHS;
    t->choice.due = 0;
    t->answers.rank = -1;
    hand_over(s, t, to, made);
    fy_phases_stamp(s, t, before);
    tell_below(s, t);
    if (s->rank != 0)
        fy_steer_tell(s, t, "scheduler %s: rank 0 has chosen it", names[index]);
    return true;
}

int fy_steer_scheduler(const fy_steer_outlook *o)
{
    static const int order[] = {FY_PLAY_FERRY, FY_PLAY_DIFFUSION, FY_PLAY_STEALING, FY_PLAY_NONE};
    int best = o->now;
    for (int i = 0; i < FY_PLAY_SCHEDULERS; i++) {
        double seconds = o->seconds[order[i]];
        if (seconds >= 0 && (seconds < o->seconds[best] || o->seconds[best] < 0) &&
            (best == o->now || seconds < 0.995 * o->seconds[best]))
            best = order[i];
    }
    bool gains =
        o->seconds[best] < 0.98 * o->seconds[o->now] && o->seconds[best] < 0.98 * o->took_s;
    return gains ? best : o->now;
}

static int compare_parts(const void *a, const void *b)
{
    float x = ((const part *)a)->seconds, y = ((const part *)b)->seconds;
    return (x > y) - (x < y);
}

/* The tasks of a phase, as many as the model plays: the lightest first. */
static fy_play_tasks tasks_of(fy_steer_gathered *g, uint64_t count, size_t most)
{
    fy_play_tasks tasks = {.seconds = g->seconds, .count = count < most ? (size_t)count : most};
    qsort(g->parts, (size_t)g->part_count, sizeof *g->parts, compare_parts);
    double all = 0, below = 0;
    for (int i = 0; i < g->part_count; i++)
        all += g->parts[i].count;
    int at = 0;
    for (size_t i = 0; i < tasks.count; i++) {
        double place = ((double)i + 0.5) / (double)tasks.count * all;
        while (at + 1 < g->part_count && below + g->parts[at].count < place)
            below += g->parts[at++].count;
        tasks.seconds[i] = g->parts[at].seconds;
        tasks.total += tasks.seconds[i];
    }
    return tasks;
}

static fy_play_costs costs_of(const ferry_scheduling *s, const fy_steer_state *t)
{
    const double us = 1e-6;
    double move = (double)ferry_scheduling_move_ns(s) * 1e-9;
    return (fy_play_costs){.quantum = (double)t->quantum_ns * 1e-9,
                           .startup = t->phases.root->startup_s,
                           .reply = us,
                           .decide = us,
                           .pack = move,
                           .unpack = move,
                           .neighbours =
                               t->choice.neighbours > 0 ? t->choice.neighbours : NEIGHBOURS};
}

/* Plays a phase of `count` tasks, which took `took_s`, under each scheduler. */
static bool look_out(const ferry_scheduling *s, fy_steer_state *t, uint64_t count, double took_s,
                     fy_steer_outlook *out)
{
    fy_steer_gathered *g = t->phases.root;
    int ranks = s->ranks < PLAYED_RANKS_MAX ? s->ranks : PLAYED_RANKS_MAX;
    size_t most = (size_t)ranks * PLAYED_EACH_MAX;
    most = most < PLAYED_TASKS_MAX ? most : PLAYED_TASKS_MAX;
    uint64_t here = count * (uint64_t)ranks / (uint64_t)s->ranks;
    const fy_play_tasks tasks = tasks_of(g, here > 0 ? here : 1, most);
    const fy_play_costs costs = costs_of(s, t);
    double whole = here > tasks.count ? (double)here / (double)tasks.count : 1;
    *out = (fy_steer_outlook){.now = t->phases.scheduler, .took_s = took_s};
    for (int i = 0; i < FY_PLAY_SCHEDULERS; i++) {
        size_t moves;
        out->seconds[i] = -1;
        if (g->refused[i] || t->phases.known[i] == NULL)
            continue;
        if (!fy_play(&tasks, &costs, ranks, (fy_play_scheduler)i, &out->seconds[i], &moves))
            return false;
        out->seconds[i] *= whole;
    }
    if (out->now == FY_PLAY_NONE)
        out->seconds[FY_PLAY_NONE] =
            out->took_s; /* nothing moves, so the next phase is as the last */
    return out->seconds[out->now] >= 0;
}

/* The trial of a scheduler has ended, and it was worse: the former one comes back. */
static bool end_trial(ferry_scheduling *s, fy_steer_state *t, double efficiency)
{
    fy_steer_gathered *g = t->phases.root;
    bool worse = g->on_trial && efficiency < 0.99 * g->former_efficiency;
    g->on_trial = false;
    if (!worse)
        return false;
    g->refused[t->phases.scheduler] = true;
    fy_steer_tell(
        s, t, "scheduler %s again: the ranks worked %.1f%% of the time under %s, %.1f%% before",
        names[g->former], 100 * efficiency, names[t->phases.scheduler], 100 * g->former_efficiency);
    (void)change(s, t, g->former, t->phases.epoch + 1);
    return true;
}

/* All ranks have reported. [rank 0] */
static void decide(ferry_scheduling *s, fy_steer_state *t, uint64_t tasks, double span_s)
{
    fy_steer_gathered *g = t->phases.root;
    fy_steer_outlook o;
    double efficiency = g->busy_s / ((double)g->heard * span_s);
    if (tasks == 0 || end_trial(s, t, efficiency) ||
        !look_out(s, t, tasks / g->phase_count, span_s / (double)g->phase_count, &o))
        return;
    int best = fy_steer_scheduler(&o);
    if (best == o.now)
        return;
    fy_steer_tell(s, t,
                  "scheduler %s after phase %llu: for %llu tasks of %.3g to %.3g ms the model "
                  "expects %.3g ms, %.3g ms under %s; the phase took %.3g ms",
                  names[best], (unsigned long long)g->phase,
                  (unsigned long long)(tasks / g->phase_count), g->parts[0].seconds * 1e3,
                  g->parts[g->part_count - 1].seconds * 1e3, o.seconds[best] * 1e3,
                  o.seconds[o.now] * 1e3, names[o.now], o.took_s * 1e3);
    g->on_trial = true;
    g->former = o.now;
    g->former_efficiency = efficiency;
    (void)change(s, t, best, t->phases.epoch + 1);
}

/* If there are many ranks, every `stride`-th reports. All of them would be much for rank 0. */
static int report_stride(const ferry_scheduling *s)
{
    return (s->ranks + REPORTS_MAX - 1) / REPORTS_MAX;
}

/* The first report of a phase has come. Rank 0 measures how long a message takes meanwhile. */
static void begin_to_gather(ferry_scheduling *s, fy_steer_state *t, uint64_t phase)
{
    fy_steer_gathered *g = t->phases.root;
    const uint64_t ping[FERRY_SCHEDULER_WORDS] = {PING};
    g->phase_count = phase - g->phase;
    g->phase = phase;
    g->heard = g->part_count = 0;
    g->busy_s = 0;
    g->pinged = true;
    g->ping_ns = ferry_scheduling_now(s);
    say(s, t, s->ranks - 1, ping);
}

static void end_gathering(ferry_scheduling *s, fy_steer_state *t)
{
    fy_steer_gathered *g = t->phases.root;
    int stride = report_stride(s);
    if (g->pinged || g->heard < (s->ranks + stride - 1) / stride)
        return;
    uint64_t tasks = 0, now_ns = ferry_scheduling_now(s);
    for (int i = 0; i < g->part_count; i++)
        tasks += g->parts[i].count;
    double span_s = (double)(now_ns - g->since_ns) * 1e-9;
    g->since_ns = now_ns;
    decide(s, t, tasks * (uint64_t)stride, span_s);
}

static void gather(ferry_scheduling *s, fy_steer_state *t, const uint64_t *words)
{
    fy_steer_gathered *g = t->phases.root;
    uint32_t counts[2], phase = (uint32_t)words[0] >> 4, bits = (uint32_t)(words[0] >> 32);
    float seconds[2], busy_s;
    if (g == NULL || phase < g->phase || phase == 0)
        return;
    if (phase > g->phase)
        begin_to_gather(s, t, phase);
    if (g->heard >= REPORTS_MAX)
        return;
    memcpy(&busy_s, &bits, sizeof busy_s);
    memcpy(seconds, &words[1], sizeof seconds);
    memcpy(counts, &words[2], sizeof counts);
    for (int i = 0; i < 2; i++)
        if (counts[i] != 0 && seconds[i] >= 0)
            g->parts[g->part_count++] = (part){seconds[i], counts[i]};
    g->busy_s += busy_s;
    g->heard++;
    end_gathering(s, t);
}

static void report(ferry_scheduling *s, fy_steer_state *t)
{
    fy_steer_phases *p = &t->phases;
    fy_fit fit = {.uniform = true};
    if (t->times.count != 0)
        fit = fy_steer_fit(&t->times);
    double share = fit.uniform ? 0 : (double)fit.gamma / t->times.count;
    const float seconds[2] = {(float)fit.beta, (float)fit.alpha}, busy_s = (float)p->busy_s;
    uint32_t light = (uint32_t)(share * p->tasks + 0.5);
    const uint32_t counts[2] = {light, p->tasks - light};
    uint32_t bits;
    memcpy(&bits, &busy_s, sizeof bits);
    uint64_t words[FERRY_SCHEDULER_WORDS] = {(uint64_t)bits << 32 | (uint32_t)p->ended << 4 |
                                             REPORT};
    memcpy(&words[1], seconds, sizeof seconds);
    memcpy(&words[2], counts, sizeof counts);
    p->tasks = 0;
    p->busy_s = 0;
    if (s->rank == 0)
        gather(s, t, words);
    else
        say(s, t, 0, words);
}

void fy_phases_look(ferry_scheduling *s, fy_steer_state *t)
{
    fy_steer_phases *p = &t->phases;
    uint64_t ended = fy_quiesced(s->f);
    if (ended == p->ended)
        return;
    p->ended = ended;
    if (p->fixed || ended < p->due || !s->on)
        return;
    p->due = 2 * ended;
    if (s->rank % report_stride(s) == 0)
        report(s, t);
}

static void hear_own(ferry_scheduling *s, fy_steer_state *t, int source, const uint64_t *words)
{
    const uint64_t pong[FERRY_SCHEDULER_WORDS] = {PONG};
    fy_steer_gathered *g = t->phases.root;
    switch (words[0] & SCHEDULER_MASK) {
    case REPORT:
        gather(s, t, words);
        break;
    case PING:
        say(s, t, source, pong);
        break;
    case PONG:
        if (g == NULL || !g->pinged)
            break;
        g->pinged = false;
        g->startup_s = (double)(ferry_scheduling_now(s) - g->ping_ns) * 0.5e-9;
        end_gathering(s, t);
        break;
    default:
        break;
    }
}

bool fy_phases_hear(ferry_scheduling *s, fy_steer_state *t, int source, const uint64_t *words)
{
    const uint64_t notice[FERRY_SCHEDULER_WORDS] = {NOTICE};
    fy_steer_phases *p = &t->phases;
    uint64_t bits;
    if (p->fixed)
        return true;
    memcpy(&bits, &s->asker_load, sizeof bits);
    uint32_t tag = (uint32_t)(bits & TAG_MASK);
    bits -= tag;
    memcpy(&s->asker_load, &bits, sizeof bits);
    bool own = (tag & OWN_BIT) != 0;
    uint32_t later = ((tag >> EPOCH_SHIFT) - p->epoch) % EPOCHS;
    if (later != 0 && later < EPOCHS / 2 &&
        change(s, t, (int)(tag & SCHEDULER_MASK), tag >> EPOCH_SHIFT))
        later = 0;
    if (later >= EPOCHS / 2)
        say(s, t, source, notice);
    if (own)
        hear_own(s, t, source, words);
    return later == 0 && !own;
}
