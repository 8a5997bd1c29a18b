/* Stealing: a loop over units of work, balanced by stealing, in three styles of messaging.
 *
 *     ferry run -n 4 build/examples/stealing --style events --kill 2@40 --kill 0@70
 *
 * Ranks named by --kill die by SIGKILL so many milliseconds after the start. The first rank that
 * lives prints how often each unit was done; with --told each prints when it was told of a death.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stealing.h"

static const char *const style_names[] = {"passing", "driven", "events"};

static bool read_style(const char *text, style *out)
{
    for (int i = 0; i < 3; i++)
        if (strcmp(text, style_names[i]) == 0) {
            *out = (style)i;
            return true;
        }
    return false;
}

static bool read_number(const char *text, long min, long max, int *out)
{
    char *end;
    long value = strtol(text, &end, 10);
    if (end == text || *end != '\0' || value < min || value > max)
        return false;
    *out = (int)value;
    return true;
}

static bool read_kill(options *o, const char *text)
{
    char *at;
    if (o->kill_count == KILLS_MAX)
        return false;
    long rank = strtol(text, &at, 10);
    if (at == text || *at != '@' || rank < 0 || rank > 1 << 20)
        return false;
    o->kills[o->kill_count].rank = (int)rank;
    return read_number(at + 1, 0, 1 << 20, &o->kills[o->kill_count++].ms);
}

static bool read_option(options *o, const char *name, const char *value)
{
    if (strcmp(name, "--style") == 0)
        return read_style(value, &o->style);
    if (strcmp(name, "--units") == 0)
        return read_number(value, 1, 1 << 20, &o->units);
    if (strcmp(name, "--unit-us") == 0)
        return read_number(value, 1, 1 << 20, &o->unit_us);
    if (strcmp(name, "--threshold") == 0)
        return read_number(value, 0, 1 << 20, &o->threshold);
    return strcmp(name, "--kill") == 0 && read_kill(o, value);
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

/* While it closes, this rank goes on without others, but has nothing more to do for it. */
static void ignore(ferry *f, void *arg, const ferry_peer_event *event)
{
    (void)f;
    (void)arg;
    (void)event;
}

static int rank_main(ferry *f, int argc, char **argv)
{
    options o = {.style = EVENTS, .units = 400, .unit_us = 300, .threshold = 2};
    for (int i = 1; i < argc; i += 2)
        if (strcmp(argv[i], "--told") == 0) {
            o.told = true;
            i--;
        } else if (i + 1 >= argc || !read_option(&o, argv[i], argv[i + 1])) {
            if (ferry_rank(f) == 0)
                fprintf(
                    stderr,
                    "usage: stealing [--style passing|driven|events] [--units N]\n"
                    "                [--unit-us N] [--threshold N] [--kill R@MS]... [--told]\n");
            return 2;
        }
    state s = {.f = f, .options = &o};
    ferry_user_data_set(f, &s);
    int error = run(&s);
    if (error != 0)
        fprintf(stderr, "stealing: rank %d: %s\n", ferry_rank(f), ferry_error_message(f));
    int status = error != 0 ? 1 : report(&s);
    ferry_user_data_set(f, NULL);
    ferry_on_peer(f, ignore, NULL);
    steal_close(&s);
    return status;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main);
}
