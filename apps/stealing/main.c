/* Stealing: a loop over units of work, balanced by stealing, in three styles of messaging.
 *
 *     ferry run -n 4 build/apps/stealing --style events --kill 2@40 --kill 0@70
 *
 * Ranks named by --kill die by SIGKILL so many milliseconds after the start. The first rank that
 * lives prints how often each unit was done; with --told each prints when it was told of a death.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/parameters.h"
#include "stealing.h"

static const char *const style_names[] = {"passing", "driven", "events", NULL};

/* --kill R@MS */
static bool read_kill(void *arg, const char *text)
{
    options *o = arg;
    int rank, ms, read = 0;
    if (o->kill_count == KILLS_MAX || sscanf(text, "%7d@%7d%n", &rank, &ms, &read) != 2 ||
        text[read] != '\0' || rank < 0 || rank >= o->ranks || ms < 0)
        return false;
    o->kills[o->kill_count].rank = rank;
    o->kills[o->kill_count++].ms = ms;
    return true;
}

static int read_options(ferry *f, int argc, char **argv, options *o)
{
    int chosen = EVENTS;
    long units = 400, unit_us = 300, threshold = 2;
    const parameter table[] = {
        {"style", "of messages: passing, driven or events", .choice = &chosen, .of = style_names},
        {"units", "of work", 1, 1 << 20, .whole = &units},
        {"unit-us", "microseconds of a light one", 1, 1 << 20, .whole = &unit_us},
        {"threshold", "units below which a rank asks for more", 0, 1 << 20, .whole = &threshold},
        {"kill", "R@MS: rank R of the job dies after MS milliseconds; 16 at most",
         .take = read_kill, .arg = o},
        {"told", "each says when it is told of a death", .flag = &o->told},
        {0},
    };
    int status =
        parameters_read(f, argc, argv, "Work that is stolen, also from ranks that die.", table);
    o->style = (style)chosen;
    o->units = (int)units;
    o->unit_us = (int)unit_us;
    o->threshold = (int)threshold;
    return status;
}

static int report(const state *s)
{
    int first = 0;
    while (ferry_peer_is_gone(s->f, first))
        first++;
    if (first != ferry_rank(s->f))
        return s->doubled != 0 || s->known_count != s->options->units;
    printf("stealing (%s): %d units on %d ranks, %d died, in %.1f ms; lost %d, done twice %llu\n",
           style_names[s->options->style], s->options->units, ferry_ranks(s->f), s->deaths,
           (double)(ferry_now(s->f) - s->start_ns) / 1e6, s->options->units - s->known_count,
           (unsigned long long)s->doubled);
    fflush(stdout);
    return s->doubled != 0 || s->known_count != s->options->units;
}

static int run(state *s)
{
    int error = steal_open(s);
    if (error == 0)
        error = recover_open(s);
    /* Work begins when all that live have said that they go on; a barrier would fail with a death.
     */
    if (error == 0)
        error = ferry_quiesce(s->f);
    s->start_ns = ferry_now(s->f);
    while (error == 0 && !s->finished) {
        bool meet = s->deaths != s->settled || s->known_count == s->options->units;
        error = meet ? recover_meet(s) : steal_step(s);
    }
    return error;
}

static int rank_main(ferry *f, int argc, char **argv)
{
    options o = {.style = EVENTS, .ranks = ferry_ranks(f)};
    int wrong = read_options(f, argc, argv, &o);
    if (wrong >= 0)
        return wrong;
    state s = {.f = f, .options = &o};
    ferry_user_data_set(f, &s);
    int error = run(&s);
    if (error != 0)
        fprintf(stderr, "stealing: rank %d: %s\n", ferry_rank(f), ferry_error_message(f));
    int status = error != 0 ? 1 : report(&s);
    ferry_user_data_set(f, NULL);
    steal_close(&s);
    return status;
}

int main(int argc, char **argv)
{
    setenv("FERRY_COMPUTE", "sleep", 0); /* what ferry_compute does outside the simulator */
    return ferry_main(argc, argv, rank_main, NULL);
}
