/* Grow: a job that starts with few ranks, has more started, and lets them leave.
 *
 *     cc grow.c $(pkg-config --cflags --libs ferry) -o grow
 *     ferry run -n 4 -m 6 ./grow */
#include <stdio.h>

#include <ferry/ferry.h>

static void check(ferry *f, int error)
{
    if (error < 0)
        ferry_abort(f, 1, ferry_error_message(f));
}

static void on_peer(ferry *f, void *arg, const ferry_peer_event *event)
{
    (void)arg;
    if (ferry_rank(f) == 0)
        printf("rank %d %s\n", event->rank,
               event->joined ? "has joined"
               : event->died ? "has died"
                             : "has left");
}

/* Every member calls this: the collective works among those that are there. */
static void count(ferry *f, const char *when)
{
    int64_t one = 1, all = 0;
    check(f, ferry_allreduce(f, FERRY_INT64, FERRY_SUM, &one, &all, 1));
    if (ferry_rank(f) == 0)
        printf("%s: %d members\n", when, (int)all);
}

static int rank_main(ferry *f, int argc, char **argv)
{
    (void)argc, (void)argv;
    check(f, ferry_peer_watch(f, on_peer, NULL));

    bool new_rank = ferry_member_count(f) == 0; /* it has joined and is no member yet */
    if (!new_rank)
        count(f, "at the start");
    int first = 0;
    if (ferry_rank(f) == 0)
        check(f, ferry_spawn(f, 2, NULL, &first)); /* two more of this program */
    check(f, ferry_quiesce(f)); /* the new ranks call it too, and are members after it */
    count(f, "after ferry_spawn");

    if (new_rank)
        return ferry_leave(f) == 0 ? 0 : 1; /* nothing of Ferry's may be called after this */
    check(f, ferry_quiesce(f));             /* ends without the ranks that have left */
    count(f, "after ferry_leave");
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
