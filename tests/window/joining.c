/* Goal: a window of all members stays one of the ranks that made it when other ranks join. Method:
 * the starting ranks make windows and use them in these states of the job:
 * - a rank has joined: it is not in the windows, makes other calls meanwhile, and sees no error
 * - it has left again
 * - another has joined, and the last starting rank has left: calls of all ranks of the windows fail
 *   with FERRY_EPEER
 *
 * Run with n > 1 ranks and room for n + 2. */
#include <ferry/ferry.h>

#include "../support/check_at.h"

enum { WINDOWS = 2 };

typedef struct state {
    int starting, joined;
    ferry_window *windows[WINDOWS]; /* the second is direct */
} state;

static void on_peer(ferry *f, void *arg, const ferry_peer_event *event)
{
    (void)f;
    state *s = arg;
    s->joined += event->joined;
}

static void gone_wait(ferry *f, int rank)
{
    while (!ferry_peer_is_gone(f, rank))
        CHECK(f, ferry_wait(f, 1000000) >= 0);
}

static void windows_make(ferry *f, state *s)
{
    for (int i = 0; i < WINDOWS; i++) {
        ferry_window_options options = FERRY_WINDOW_OPTIONS_DEFAULTS;
        options.direct = i == 1;
        CHECK(f, ferry_window_create(f, &options, &s->windows[i]) == 0);
        CHECK(f, ferry_window_fence(s->windows[i]) == 0);
    }
}

/* Each starting rank puts a number at the next one, which has it after a fence. */
static void windows_use(ferry *f, state *s, int64_t number)
{
    const int next = (ferry_rank(f) + 1) % s->starting;
    const ferry_window_value value = {&number, sizeof(number)};
    for (int i = 0; i < WINDOWS; i++) {
        int64_t got = 0;
        CHECK(f, ferry_window_put(s->windows[i], next, 0, &value, NULL) == 0);
        CHECK(f, ferry_window_fence(s->windows[i]) == 0);
        CHECK(f, ferry_window_read(s->windows[i], 0, &got, sizeof(got), NULL) == 0);
        CHECK(f, got == number);
        CHECK(f, ferry_window_fence(s->windows[i]) == 0);
    }
}

static void windows_fail(ferry *f, state *s)
{
    for (int i = 0; i < WINDOWS; i++)
        CHECK(f, ferry_window_fence(s->windows[i]) == FERRY_EPEER);
}

/* Rank 0 starts another rank; all wait until it has come and `count` ranks have joined. */
static void grow(ferry *f, const state *s, int count)
{
    int first;
    if (ferry_rank(f) == 0)
        CHECK(f, ferry_spawn(f, 1, NULL, &first) == 0);
    while (s->joined < count)
        CHECK(f, ferry_wait(f, 1000000) >= 0);
    CHECK(f, ferry_quiesce(f) == 0);
}

/* All members make a window together. */
static void window_of_all(ferry *f)
{
    ferry_window *w;
    CHECK(f, ferry_window_create(f, NULL, &w) == 0);
    CHECK(f, ferry_window_fence(w) == 0);
    CHECK(f, ferry_window_free(w) == 0);
}

static int starter_main(ferry *f, state *s)
{
    const int last = s->starting - 1, first_guest = s->starting;
    windows_make(f, s);
    grow(f, s, 1);
    windows_use(f, s, 1);
    CHECK(f, ferry_window_lock(s->windows[0], FERRY_WINDOW_SHARED, first_guest) == FERRY_EINVAL);
    CHECK(f, ferry_quiesce(f) == 0);
    window_of_all(f);
    gone_wait(f, first_guest);
    CHECK(f, ferry_quiesce(f) == 0);
    windows_use(f, s, 2);
    grow(f, s, 2);
    windows_use(f, s, 3);
    if (ferry_rank(f) == last)
        return ferry_leave(f);
    gone_wait(f, last);
    windows_fail(f, s);
    CHECK(f, ferry_quiesce(f) == 0);
    windows_fail(f, s);
    for (int i = 0; i < WINDOWS; i++)
        CHECK(f, ferry_window_free(s->windows[i]) == FERRY_EPEER);
    CHECK(f, ferry_quiesce(f) == 0);
    return 0;
}

/* A rank that has joined: the first one leaves, the second one stays. */
static int guest_main(ferry *f, const state *s)
{
    CHECK(f, ferry_quiesce(f) == 0);
    if (ferry_rank(f) == s->starting) {
        CHECK(f, ferry_quiesce(f) == 0);
        window_of_all(f);
        return ferry_leave(f);
    }
    gone_wait(f, s->starting - 1);
    CHECK(f, ferry_quiesce(f) == 0);
    CHECK(f, ferry_quiesce(f) == 0);
    return 0;
}

static int rank_main(ferry *f, int argc, char **argv)
{
    (void)argc, (void)argv;
    state s = {.starting = ferry_ranks(f) - 2};
    CHECK(f, ferry_peer_watch(f, on_peer, &s) == 0);
    return ferry_rank(f) < s.starting ? starter_main(f, &s) : guest_main(f, &s);
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
