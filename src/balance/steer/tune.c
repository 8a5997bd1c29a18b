/* Tune: the parameters of the steered scheduler, chosen by each rank from what it sees
 * (docs/model.md, "Steering").
 *
 * With k neighbours an attempt to find a task takes wait + k * startup (6.18). Among L light ranks
 * there are (L - 1) / k attempts until the first task is found (6.21), and then one for each of m
 * tasks. The sum is least with k = sqrt(wait * (L - 1) / (startup * (1 + m))). The usual number
 * stays if the other one gains less than 1/200 of the time that this rank has worked. If tasks are
 * much shorter than an answer, the search goes on while others answer, and the formula says
 * nothing. */
#include <stdlib.h>
#include <string.h>

#include "balance/steer/inside.h"
#include "balance/steer/root.h"

enum { ANSWERS_MIN = 3, TASKS_MIN = 4, NEIGHBOURS_MAX = 64 };
enum { ROUND_TRIPS = 2, LONG_PART = 4, AHEAD_US = 200 };
enum { NEIGHBOURS = 4, GAIN_PART = 200, SHORT_US = 200, ASKED_PART = 12, SHORT_PART = 4 };

/* How long a rank is idle if it asks when its last task has ended: until the answers have come, and
 * then an object. */
static double lead_of(const fy_steer_terms *terms)
{
    return ROUND_TRIPS * terms->answer;
}

/* The time in which this rank finds tasks, if it asks `k` neighbours at a time. */
static double search_of(const fy_steer_terms *terms, double k)
{
    double attempts = (terms->light - 1) / k + 1 + terms->moves;
    return (terms->answer - terms->startup + k * terms->startup) * attempts;
}

double fy_steer_neighbours(const fy_steer_terms *terms)
{
    double wait = terms->answer - terms->startup, others = terms->light - 1;
    if (!(wait > 0 && others > 0 && terms->startup > 0) || lead_of(terms) > LONG_PART * terms->mean)
        return NEIGHBOURS;
    double best = fy_root_of(wait * others / (terms->startup * (1 + terms->moves)));
    best = best < 1 ? 1 : best > NEIGHBOURS_MAX ? NEIGHBOURS_MAX : (double)(int)(best + 0.5);
    double gain = search_of(terms, NEIGHBOURS) - search_of(terms, best);
    return gain * GAIN_PART > terms->busy ? best : NEIGHBOURS;
}

/* To ask ahead saves the lead for each task that is taken. It costs a heavy task at the end, which
 * a rank takes although it is not idle. If the lead is shorter than a task, or much longer, a
 * single task ahead gains nothing. */
double fy_steer_threshold(const fy_steer_terms *terms)
{
    double lead = lead_of(terms);
    bool ahead =
        lead > terms->mean && lead < LONG_PART * terms->mean && lead * terms->moves > terms->alpha;
    return ahead ? terms->load : 0;
}

/* A task below this time is a reason to ask ahead. There is none if the mean task takes longer than
 * the answer. */
double fy_steer_ahead_us(const fy_steer_terms *terms)
{
    return terms->mean > lead_of(terms) ? 0 : AHEAD_US;
}

/* Tasks below this time are short for the default scheduler: it asks when the last one begins. The
 * answer is the object itself, so the lead is one answer. A request may wait until there is work.
 * So the fastest answer counts here. */
double fy_steer_short_us(const fy_steer_terms *terms)
{
    bool ahead =
        terms->mean < ASKED_PART * terms->answer && terms->answer * terms->moves > terms->alpha;
    double longest = SHORT_PART * terms->mean * 1e6;
    return ahead && longest > SHORT_US ? longest : SHORT_US;
}

double fy_steer_chosen(const ferry_scheduling *s, const char *name, double otherwise)
{
    const fy_steer_state *t = s->state;
    const fy_steer_choice *c = &t->choice;
    double value = strcmp(name, "NEIGHBOURS") == 0  ? c->neighbours
                   : strcmp(name, "THRESHOLD") == 0 ? c->threshold
                   : strcmp(name, "AHEAD_US") == 0  ? c->ahead_us
                   : strcmp(name, "SHORT_US") == 0  ? c->short_us
                                                    : -1;
    return value >= 0 ? value : otherwise;
}

static fy_steer_terms terms_of(const ferry_scheduling *s, const fy_steer_state *t,
                               const fy_fit *fit, bool own)
{
    double tasks = t->times.count, heavy = tasks - (double)fit->gamma;
    double ranks = ferry_scheduling_acceptor_count(s) + 1, sorted[FY_STEER_ANSWERS_MAX];
    uint32_t count =
        t->answers.count < FY_STEER_ANSWERS_MAX ? t->answers.count : FY_STEER_ANSWERS_MAX;
    memcpy(sorted, t->answers.seconds, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, fy_steer_compare);
    return (fy_steer_terms){
        .answer = sorted[own ? 0 : count / 2],
        .startup = sorted[count / 4] / 2,
        .light = fit->uniform ? ranks : ranks * (double)fit->gamma / tasks,
        .moves = t->choice.taken / (1.0 + (double)t->phases.ended),
        .busy = (double)t->choice.ended * (double)t->times.mean_ns * 1e-9,
        .mean = ((double)fit->gamma * fit->beta + heavy * fit->alpha) / tasks,
        .alpha = fit->alpha,
        .load = t->choice.load,
    };
}

/* Sets `*value`, and tells why, if that is a change of more than a quarter. */
static void set(ferry_scheduling *s, fy_steer_state *t, const char *name, double *value, double now,
                const fy_steer_terms *terms)
{
    if (*value == now || (now > 0.8 * *value && now < 1.25 * *value))
        return;
    *value = now;
    fy_steer_tell(s, t,
                  "%s %g: an answer takes %.0f us, a message %.0f us; %.0f light ranks, %.0f "
                  "tasks taken; tasks take %.3g ms, heavy ones %.3g ms",
                  name, now, terms->answer * 1e6, terms->startup * 1e6, terms->light, terms->moves,
                  terms->mean * 1e3, terms->alpha * 1e3);
}

void fy_steer_choose(ferry_scheduling *s, fy_steer_state *t)
{
    fy_steer_choice *c = &t->choice;
    bool diffusion = strcmp(s->steered.name, "diffusion") == 0;
    bool stealing = strcmp(s->steered.name, "stealing") == 0;
    bool own = strcmp(s->steered.name, "ferry") == 0;
    if (++c->ended < c->due || t->answers.count < ANSWERS_MIN || t->times.count < TASKS_MIN ||
        !(diffusion || stealing || own))
        return;
    c->due = 2 * c->ended;
    fy_fit fit = fy_steer_fit(&t->times);
    const fy_steer_terms terms = terms_of(s, t, &fit, own);
    if (stealing) {
        set(s, t, "ahead_us", &c->ahead_us, fy_steer_ahead_us(&terms), &terms);
        return;
    }
    if (own) {
        set(s, t, "short_us", &c->short_us, fy_steer_short_us(&terms), &terms);
        return;
    }
    set(s, t, "neighbours", &c->neighbours, fy_steer_neighbours(&terms), &terms);
    set(s, t, "threshold", &c->threshold, fy_steer_threshold(&terms), &terms);
}
