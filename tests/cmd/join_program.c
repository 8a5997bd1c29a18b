/* A rank for join_test.sh. `join_program MODE [COUNT]`:
 *   meet    quiesces until COUNT ranks are members, then all add up and send to each other
 *   linger  leaves the job, and waits until a file named by LINGER has gone
 *   await   as meet, then waits forever in a quiescence that cannot end
 *   endure  goes on when others die or leave, until COUNT have
 *   strange  registers another handler than the others, and quiesces twice
 *   request  the same, and sends a request before
 *   nothing  registers none
 *   unheard  returns without a ferry_quiesce
 * After `main` as the first argument it is a program of ferry_main, which may start its ranks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ferry/ferry.h>

#include "../support/check.h"

enum { LEFT = 1, STRANGE = 3 };

typedef struct state {
    ferry_handler greet;
    int greeted, gone;
} state;

static void on_greet(ferry *f, int source, const ferry_message *message)
{
    state *s = ferry_user_data(f);
    (void)source;
    (void)message;
    s->greeted++;
}

static void on_peer(ferry *f, void *arg, const ferry_peer_event *event)
{
    ((state *)arg)->gone += !event->joined;
    if (event->joined) {
        printf("rank %d sees another\n", ferry_rank(f));
        fflush(stdout);
    }
}

static void meet(ferry *f, state *s, int count)
{
    int64_t one = 1, sum = 0;
    const ferry_message greeting = {.handler = s->greet};
    while (ferry_member_count(f) < count)
        check(f, ferry_quiesce(f) == 0, "quiesce");
    check(f, ferry_allreduce(f, FERRY_INT64, FERRY_SUM, &one, &sum, 1) == 0, "allreduce");
    check(f, sum == count, "not all are members");
    for (int place = 0; place < count; place++)
        check(f, ferry_request_send(f, ferry_member_rank(f, place), &greeting, NULL) == 0, "send");
    check(f, ferry_quiesce(f) == 0, "quiesce");
    check(f, s->greeted == count, "a greeting is missing");
    printf("rank %d of %d members\n", ferry_rank(f), ferry_member_count(f));
    fflush(stdout);
}

/* A program other than the job's may do this. Each way ends with an error. */
static int be_strange(ferry *f, state *s, const char *mode)
{
    if (strcmp(mode, "nothing") != 0)
        check(f, ferry_handler_register(f, "shout", on_greet, &s->greet) == 0, "register");
    const ferry_message greeting = {.handler = s->greet};
    if (strcmp(mode, "request") == 0)
        check(f, ferry_request_send(f, 0, &greeting, NULL) == 0, "send");
    if (strcmp(mode, "unheard") == 0)
        return 0;
    check(f, ferry_quiesce(f) == FERRY_EINVAL, "a stranger is a member");
    check(f, ferry_quiesce(f) == FERRY_EINVAL, "a stranger is a member at last");
    return STRANGE;
}

static int rank_main(ferry *f, int argc, char **argv)
{
    static state s; /* callbacks run until Ferry is closed */
    const char *mode = argc > 1 ? argv[1] : "";
    int count = argc > 2 ? atoi(argv[2]) : 0;
    ferry_user_data_set(f, &s);
    if (strcmp(mode, "strange") == 0 || strcmp(mode, "request") == 0 ||
        strcmp(mode, "nothing") == 0 || strcmp(mode, "unheard") == 0)
        return be_strange(f, &s, mode);
    check(f, ferry_handler_register(f, "greet", on_greet, &s.greet) == 0, "register");
    if (strcmp(mode, "endure") == 0) {
        check(f, ferry_peer_watch(f, on_peer, &s) == 0, "on_peer");
        printf("rank %d is there\n", ferry_rank(f));
        fflush(stdout);
        while (s.gone < count)
            check(f, ferry_poll(f) >= 0 && usleep(1000) == 0, "poll");
    } else if (strcmp(mode, "linger") == 0) {
        check(f, ferry_leave(f) == 0, "leave");
        printf("has left\n");
        fflush(stdout);
        while (access(getenv("LINGER"), F_OK) == 0)
            usleep(1000);
        return LEFT;
    } else {
        meet(f, &s, count);
        while (strcmp(mode, "await") == 0)
            check(f, ferry_poll(f) >= 0 && usleep(1000) == 0, "poll");
    }
    return 0;
}

int main(int argc, char **argv)
{
    ferry *f;
    if (argc > 1 && strcmp(argv[1], "main") == 0)
        return ferry_main(argc - 1, argv + 1, rank_main, NULL);
    int error = ferry_open(NULL, &f);
    if (error != 0) {
        fprintf(stderr, "%s: %s\n", ferry_strerror(error), ferry_error_message(NULL));
        return 3;
    }
    int status = rank_main(f, argc, argv);
    if (status == LEFT)
        return 0;
    return ferry_close(f) == 0 || status != 0 ? status : 1;
}
