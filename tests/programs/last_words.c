/* Goal: all that a rank had sent before it was killed is handled before its death is told, however
 * long that takes. Method: rank 1 sends more requests than one poll takes, each of which keeps rank
 * 0 busy, and kills itself. The first handler returns when the process is gone. FERRY_RING_SLOTS
 * has room for all. Run with 2 ranks, as processes. */
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "../support/check.h"

enum { REQUESTS = 1000 };

typedef struct state {
    int handled, told; /* `told`: how many were handled when the death was told; 0: not yet */
} state;

static void sleep_ms(long ms)
{
    const struct timespec pause = {.tv_nsec = ms * 1000 * 1000};
    nanosleep(&pause, NULL);
}

static void on_word(ferry *f, int source, const ferry_message *message)
{
    state *s = ferry_user_data(f);
    (void)source;
    check(f, message->words[0] == (uint64_t)s->handled, "a request is lost");
    while (s->handled == 0 && kill((pid_t)message->words[1], 0) == 0)
        sleep_ms(1);
    sleep_ms(s->handled++ == 0 ? 100 : 1); /* until the launcher has written that it is dead */
}

static void on_peer(ferry *f, void *arg, const ferry_peer_event *event)
{
    state *s = arg;
    check(f, event->died && event->rank == 1, "another end was told");
    s->told = s->handled;
}

static void speak(ferry *f, ferry_handler word)
{
    for (int i = 0; i < REQUESTS; i++) {
        const ferry_message m = {
            .handler = word, .word_count = 2, .words = {(uint64_t)i, (uint64_t)getpid()}};
        check(f, ferry_request_send(f, 0, &m, NULL) == 0, "send");
    }
    raise(SIGKILL);
}

static int run(ferry *f, int argc, char **argv)
{
    state s = {0};
    ferry_handler word;
    (void)argc, (void)argv;
    ferry_user_data_set(f, &s);
    check(f, ferry_handler_register(f, "word", on_word, &word) == 0, "register");
    check(f, ferry_peer_watch(f, on_peer, &s) == 0 && ferry_barrier(f) == 0, "begin");
    if (ferry_rank(f) == 1)
        speak(f, word);
    while (s.told == 0)
        (void)ferry_wait(f, FERRY_FOREVER);
    check(f, s.told == REQUESTS, "requests were lost with their sender");
    return ferry_quiesce(f) == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, run, NULL);
}
