/* Goal: a crew does each piece of work once, tells when it is done, and ends at any time. Method:
 * the main program brings pieces to threads of a crew, one or more at a time. In even rounds it
 * waits for the first piece and for all, and another thread for all. In odd rounds it waits for
 * nothing before it ends the crew. turns.c stops the threads anywhere, and wakes them without a
 * signal.
 *
 * Run as TURNS_SEED=N crew. */
#include <stdio.h>
#include <stdlib.h>

#include "base/crew.h"
#include "stores.h"

enum { ROUNDS = 8, PIECES = 6 };

typedef struct work {
    fy_crew crew;
    int brought, begun, done;
    bool pieces[PIECES];
} work;

static void check(bool right, const char *what)
{
    if (right)
        return;
    fprintf(stderr, "crew: %s\n", what);
    exit(1);
}

static void do_piece(work *w)
{
    bool *piece = &w->pieces[w->begun++];
    fy_crew_unlock(&w->crew);
    check(!*piece, "a piece of work is done twice");
    *piece = true;
    fy_crew_lock(&w->crew);
    w->done++;
    fy_crew_tell_end(&w->crew);
}

static void *serve(void *arg)
{
    work *w = arg;
    fy_crew_lock(&w->crew);
    while (!w->crew.stop) {
        if (w->begun < w->brought)
            do_piece(w);
        else
            fy_crew_await_work(&w->crew);
    }
    fy_crew_unlock(&w->crew);
    return NULL;
}

static void await_pieces(work *w, int count)
{
    fy_crew_lock(&w->crew);
    while (w->done < count)
        fy_crew_await_end(&w->crew);
    fy_crew_unlock(&w->crew);
}

static void *await_all(void *arg)
{
    await_pieces(arg, PIECES);
    return NULL;
}

static void bring(work *w, int count)
{
    fy_crew_lock(&w->crew);
    for (int i = 0; i < count; i++) {
        w->brought++;
        fy_crew_bring_work(&w->crew);
    }
    fy_crew_unlock(&w->crew);
}

static void play_round(bool waits)
{
    work w = {.brought = 0};
    pthread_t other;
    check(fy_crew_open(&w.crew) == 0, "a crew cannot be opened");
    int threads = 1 + (int)stores_draw(FY_CREW_MAX);
    for (int i = 0; i < threads; i++)
        check(fy_crew_add(&w.crew, serve, &w), "a thread cannot be added");
    if (waits)
        check(pthread_create(&other, NULL, await_all, &w) == 0, "a thread cannot be started");
    while (w.brought < PIECES)
        bring(&w, 1 + (int)stores_draw((uint64_t)(PIECES - w.brought)));
    if (waits) {
        await_pieces(&w, 1);
        await_pieces(&w, PIECES);
        check(pthread_join(other, NULL) == 0, "a thread cannot be joined");
    }
    fy_crew_end(&w.crew);
    check(w.done == w.begun && (!waits || w.done == PIECES), "the crew has left work");
    fy_crew_close(&w.crew);
}

int main(void)
{
    for (int i = 0; i < ROUNDS; i++)
        play_round(i % 2 == 0);
    return 0;
}
