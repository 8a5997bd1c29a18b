/* The reports of the simulator for people: who waits for what when nothing can happen any more,
 * what broke, and what the run was. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "port/sim/world.h"
#include "port/waiting.h"

enum { LINES_MAX = 20 };

static const char *doing_name(fy_doing doing)
{
    switch (doing) {
    case FY_DOING_MAIN:
        return "its program";
    case FY_DOING_HANDLER:
        return "handler";
    case FY_DOING_TASK:
        return "task";
    case FY_DOING_IDLE:
        return "ferry_wait";
    case FY_DOING_BARRIER:
        return "barrier";
    case FY_DOING_COLLECTIVE:
        return "collective";
    case FY_DOING_QUIESCE:
        return "ferry_quiesce";
    case FY_DOING_CLOSE:
        return "closing";
    case FY_DOING_SEND:
        return "sending";
    case FY_DOING_BARRIER_OF_SOME:
        return "barrier of a group";
    case FY_DOING_COLLECTIVE_OF_SOME:
        return "collective";
    case FY_DOING_LEAVE:
        return "ferry_leave";
    }
    return "?";
}

static const char *handler_name(const fy_world *world, const fy_sim_rank *rank)
{
    bool named = rank->doing == FY_DOING_HANDLER || rank->doing == FY_DOING_TASK;
    return named && rank->handler < FY_SIM_NAMES ? world->names[rank->handler] : "";
}

void fy_report_running(void *world, const void *address, char *out, size_t size)
{
    const fy_world *w = world;
    /* A crash that follows from an overrun ends as the overrun alone does. */
    if (w->running != NULL && fy_actor_overran(w->running, address))
        _exit(FY_SIM_BROKEN);
    if (w->running == NULL) {
        (void)snprintf(out, size, "sim: at %.9f s, in the simulator", (double)w->now_ns / 1e9);
        return;
    }
    const fy_sim_rank *rank = w->running->rank;
    const char *name = handler_name(w, rank);
    (void)snprintf(out, size, "rank %d: sim: at %.9f s, seed %" PRIu64 ", in %s%s%s%s", rank->rank,
                   (double)w->running->clock_ns / 1e9, w->options.seed, doing_name(rank->doing),
                   *name == '\0' ? "" : " ", name,
                   w->running->thread == FY_HELPER ? ", on the helper thread" : "");
}

static size_t arrived_count(const fy_inbox *inbox)
{
    size_t count = 0;
    for (const fy_channel *channel = inbox->first; channel != NULL; channel = channel->inbox_next)
        for (const fy_cargo *cargo = channel->arrived.first; cargo != NULL; cargo = cargo->next)
            count++;
    return count;
}

/* Prints what the rank has said of itself; notes whom it waits for. */
static void report_answer(const fy_sim_rank *rank, fy_waiting *waiting, bool prints)
{
    char *save = NULL, *words;
    *waiting =
        (fy_waiting){.rank = rank->rank, .lives = !rank->finished, .doing = (uint32_t)rank->doing};
    for (char *line = rank->answer == NULL ? NULL : strtok_r(rank->answer, "\n", &save);
         line != NULL; line = strtok_r(NULL, "\n", &save)) {
        int other = fy_waiting_read(waiting, line, &words);
        if (prints && other < 0)
            fy_log_line(rank->rank, "sim:   %s%s", line[0] == ' ' ? "rank" : "", line);
        else if (prints)
            fy_log_line(rank->rank, "sim:   waits for rank %d, which%s", other, words);
    }
}

static void report_deadlock(const fy_waiting *all, uint32_t count)
{
    char deadlock[512];
    if (fy_waiting_any_deadlock(all, count, deadlock, sizeof(deadlock)))
        fy_log_line(-1, "sim: deadlock: %s", deadlock);
}

static void report_rank(const fy_world *world, const fy_sim_rank *rank)
{
    const fy_actor *app = &rank->actors[FY_APP];
    const char *name = handler_name(world, rank);
    fy_log_line(rank->rank,
                "sim: %s %s%s%s since %.9f s; frames not taken: %zu data, %zu control; "
                "sent and not arrived: %" PRIu64 "%s",
                app->state == FY_ACTOR_JOINING     ? "waits for its helper in"
                : app->state == FY_ACTOR_COMPUTING ? "computes in"
                                                   : "waits in",
                doing_name(rank->doing), *name == '\0' ? "" : " ", name,
                (double)rank->doing_ns / 1e9, arrived_count(&rank->inbox[FY_DATA]),
                arrived_count(&rank->inbox[FY_CONTROL]), rank->undelivered,
                rank->stopped_until_ns > world->now_ns ? "; stopped" : "");
}

void fy_report_stuck(const fy_world *world, const char *why)
{
    fy_log_line(-1, "sim: stuck at %.9f s, seed %" PRIu64 ": %s; %d of %d ranks have not ended",
                (double)world->now_ns / 1e9, world->options.seed, why, world->unfinished,
                world->rank_count);
    fy_waiting *all = calloc((size_t)world->rank_count, sizeof(*all));
    int lines = 0;
    uint32_t count = 0;
    for (int i = 0; i < world->rank_count && all != NULL; i++) {
        const fy_sim_rank *rank = &world->ranks[i];
        if (rank->finished || rank->state != FY_PEER_ALIVE)
            continue;
        if (lines++ < LINES_MAX)
            report_rank(world, rank);
        report_answer(rank, &all[count++], lines <= LINES_MAX);
    }
    if (lines > LINES_MAX)
        fy_log_line(-1, "sim: and %d more", lines - LINES_MAX);
    report_deadlock(all, count);
    free(all);
}

void fy_report_broken(fy_world *world, const fy_channel *channel, const char *what)
{
    fy_log_line(channel->target->rank,
                "sim: at %.9f s, seed %" PRIu64 ", from rank %d on lane %u: %s",
                (double)world->now_ns / 1e9, world->options.seed, channel->source->rank,
                channel->lane, what);
    fy_world_end(world, FY_SIM_BROKEN);
}

void fy_report_end(const fy_world *world, uint64_t real_ns)
{
    const fy_sim_counts *c = &world->counts;
    uint64_t end_ns = 0, busy_ns = 0;
    for (int i = 0; i < world->rank_count; i++) {
        const fy_sim_rank *rank = &world->ranks[i];
        end_ns = rank->end_ns > end_ns ? rank->end_ns : end_ns;
        busy_ns += rank->busy_ns;
    }
    double all = (double)end_ns * world->rank_count;
    fprintf(stderr,
            "sim: %d ranks, seed %" PRIu64 ", network %s: %.9f s, computing %.1f%%; %" PRIu64
            " frames, %" PRIu64 " bytes\n"
            "sim: %" PRIu64 " events, %" PRIu64 " switches, %.3f s, %.0f ns per event\n",
            world->rank_count, world->options.seed, world->options.net, (double)end_ns / 1e9,
            all > 0 ? 100.0 * (double)busy_ns / all : 0, c->frames, c->bytes, c->events,
            c->switches, (double)real_ns / 1e9,
            c->events > 0 ? (double)real_ns / (double)c->events : 0);
    if (world->lossy)
        fprintf(stderr,
                "sim: %" PRIu64 " packets, %" PRIu64 " lost, %" PRIu64
                " frames sent again, %" PRIu64 " doubles dropped\n",
                c->packets, c->lost, c->resent, c->doubles);
    if (world->options.faults != NULL) {
        fprintf(stderr, "sim: faults ");
        fy_faults_print(&world->faults, false, stderr);
        fputc('\n', stderr);
    }
    fprintf(stderr, "sim: hash %016" PRIx64 "\n", world->hash);
}
