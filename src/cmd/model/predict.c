/* Bounds on the run time: (6.6) to (6.21) for diffusion and stealing, list scheduling for Ferry's
 * own scheduler. docs/model.md has the derivation of each line.
 *
 * Tasks are dealt out sorted, in equal blocks, so ranks are heavy (class alpha) or light (class
 * beta). Light ranks end first and take tasks, one per rank and round; in a round each heavy rank
 * runs one of its own. */
#include <math.h>

#include "cmd/model/model.h"

const char *const model_scheduler_names[FY_PLAY_SCHEDULERS] = {
    [FY_PLAY_NONE] = "none",
    [FY_PLAY_DIFFUSION] = "diffusion",
    [FY_PLAY_STEALING] = "stealing",
    [FY_PLAY_FERRY] = "ferry",
};

/* The values that both bounds of a prediction use. */
typedef struct setting {
    const model_tasks *tasks;
    const fy_fit *fit;
    const model_parameters *p;
    double ranks, heavy, light; /* ranks; heavy ones are not rounded */
    double each;                /* tasks per rank, the mean */
    double attempt;
    double unbalanced; /* the run time of the heaviest block */
    double even;       /* the least time of any schedule */
} setting;

static double heaviest_block(const model_tasks *tasks, int ranks)
{
    double heaviest = 0;
    for (int i = 0; i < ranks; i++) {
        double sum = 0;
        size_t end = fy_play_block(tasks->count, ranks, i + 1);
        for (size_t k = fy_play_block(tasks->count, ranks, i); k < end; k++)
            sum += tasks->seconds[tasks->count - 1 - k];
        heaviest = fmax(heaviest, sum);
    }
    return heaviest;
}

/* The number of rounds in which every light rank takes a task, if the first attempt takes `locate`.
 * `whole`: only whole tasks and whole rounds count; otherwise fractions do too. */
static double rounds_of(const setting *s, double locate, bool whole)
{
    double ahead = fmax(0, s->each * (s->fit->alpha - s->fit->beta) - locate);
    double queued = ahead / s->fit->alpha;
    return whole ? floor(floor(queued) * s->heavy / s->ranks) : queued * s->heavy / s->ranks;
}

/* The same ranks, of which whole ones are heavy. They may have more work than there is. */
static setting rounded(const setting *s)
{
    setting whole = *s;
    whole.heavy = fmin(fmax(round(s->heavy), 1), fmax(s->ranks - 1, 1));
    whole.light = s->ranks - whole.heavy;
    return whole;
}

/* All terms for a rank that runs `count` tasks in `work` seconds, and gives or takes `moves`
 * tasks. */
static model_terms terms_of(const setting *s, double work, double count, double moves, bool takes)
{
    const model_parameters *p = s->p;
    double message = p->startup + p->byte * p->message_bytes + p->message_work;
    double giving = p->uninstall + p->pack + p->startup + p->byte * p->task_bytes;
    model_terms t = {
        .work = work,
        .thread = p->quantum > 0 ? work / p->quantum * (p->poll + 2 * p->change) : 0,
        .messages = count * p->messages * message,
        .asking = takes ? moves * s->attempt : 0,
        .moving = moves * (takes ? p->unpack + p->install : giving),
        .deciding = takes ? moves * p->decide : 0,
        .moves = moves,
    };
    double sum = t.work + t.thread + t.messages + t.asking + t.moving + t.deciding;
    t.overlap = fmin(p->overlap, sum - t.work);
    t.total = sum - t.overlap;
    return t;
}

/* One bound (6.10 to 6.13): `heavy` and `light` are the times of a task before balancing. */
static model_terms bound(const setting *s, double locate, bool upper, double heavy, double light)
{
    double rounds = rounds_of(s, locate, upper);
    double given = rounds * s->light / s->heavy;
    double heavy_work = s->each * heavy - given * s->fit->alpha;
    double light_work = s->each * light + rounds * s->fit->alpha;
    bool takes = light_work > heavy_work;
    double work = fmax(s->even, fmin(s->unbalanced, takes ? light_work : heavy_work));
    return terms_of(s, work, s->each + (takes ? rounds : -given), takes ? rounds : given, takes);
}

static void bounds_by_classes(const setting *s, model_prediction *out)
{
    const model_tasks *tasks = s->tasks;
    size_t gamma = s->fit->gamma;
    double asked = s->attempt == fy_play_attempt(s->p, FY_PLAY_STEALING) ? 1 : s->p->neighbours;
    const setting whole = rounded(s);
    double farthest = s->attempt * (ceil((whole.light - 1) / asked) + 1);
    out->lower = bound(s, s->attempt, false, tasks->seconds[gamma], tasks->seconds[0]);
    out->upper =
        bound(&whole, farthest, true, tasks->seconds[tasks->count - 1], tasks->seconds[gamma - 1]);
}

/* List scheduling: a rank without a task gets one that waits elsewhere, after one attempt. So until
 * the last task begins, all ranks have worked all the time, apart from attempts. */
static void bounds_by_list(const setting *s, model_prediction *out)
{
    double heaviest = s->tasks->seconds[s->tasks->count - 1];
    double mean = s->tasks->total / s->ranks;
    const setting whole = rounded(s);
    double taken = rounds_of(&whole, s->attempt, false);
    double late = fmin(s->unbalanced, mean + heaviest * (1 - 1 / s->ranks));
    out->lower = terms_of(s, s->even, s->each, 0, true);
    out->upper = terms_of(s, fmax(s->even, late), s->each + taken, taken + 1, true);
}

static setting make_setting(const model_tasks *tasks, const fy_fit *fit, const model_parameters *p,
                            int ranks, model_scheduler scheduler)
{
    setting s = {.tasks = tasks, .fit = fit, .p = p, .ranks = ranks};
    double share = (double)(tasks->count - fit->gamma) / (double)tasks->count;
    s.heavy = share * ranks;
    s.light = ranks - s.heavy;
    s.each = (double)tasks->count / ranks;
    s.attempt = fy_play_attempt(p, scheduler);
    s.unbalanced = heaviest_block(tasks, ranks);
    s.even = fmax(tasks->total / ranks, tasks->seconds[tasks->count - 1]);
    return s;
}

bool model_predict(const model_tasks *tasks, const fy_fit *fit, const model_parameters *p,
                   int ranks, model_scheduler scheduler, model_prediction *out)
{
    setting s = make_setting(tasks, fit, p, ranks, scheduler);
    *out = (model_prediction){0};
    if (scheduler == FY_PLAY_NONE || ranks == 1 || fit->uniform) {
        out->lower = terms_of(&s, s.unbalanced, ceil(s.each), 0, true);
        out->upper = out->lower;
    } else if (scheduler == FY_PLAY_FERRY) {
        bounds_by_list(&s, out);
    } else {
        bounds_by_classes(&s, out);
    }
    if (out->upper.total < out->lower.total)
        out->upper = out->lower;
    out->average = (out->lower.total + out->upper.total) / 2;
    return fy_play(tasks, p, ranks, scheduler, &out->played, &out->migrations);
}
