/* Goal: processes that ranks fork do not disturb the job, and a call of Ferry in one fails clearly.
 * Method: each rank forks children while messages come and go. They end, run another program, call
 * a function of Ferry or touch memory of ferry_alloc. The last two end by SIGSEGV, with a line that
 * says why. All messages arrive, and the job ends well.
 * Arguments: `open` uses ferry_open, where no line is promised; `silent` expects none either. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ferry/ferry.h>

#include "../support/check.h"

enum { MESSAGES = 30, TEXT_BYTES = 4096, PATIENCE_S = 20 };

/* The calls of a child: from POLL on they are errors. */
typedef enum deed {
    LEAVE_QUIETLY,
    EXIT,
    EXECUTE,
    POLL,
    SEND,
    BARRIER,
    QUIESCE,
    ALLOC,
    FREE,
    TOUCH,
    PUT,
    LEAVE,
    ABORT,
    DEEDS
} deed;

typedef struct state {
    ferry_handler count;
    int64_t handled;
    unsigned char *memory;
    int next;
    bool told; /* a line is expected */
} state;

static void on_count(ferry *f, int source, const ferry_message *message)
{
    (void)source, (void)message;
    ((state *)ferry_user_data(f))->handled++;
}

static int call_ferry(ferry *f, const state *s, deed what)
{
    const ferry_message m = {.handler = s->count};
    uint64_t value = 1;
    void *memory;
    switch (what) {
    case POLL:
        return ferry_poll(f);
    case SEND:
        return ferry_request_send(f, s->next, &m, NULL);
    case BARRIER:
        return ferry_barrier(f);
    case QUIESCE:
        return ferry_quiesce(f);
    case ALLOC:
        return ferry_alloc(f, 100, &memory);
    case FREE:
        return ferry_free(f, s->memory);
    case PUT:
        return ferry_put(f, s->next, s->memory, &value, sizeof(value), NULL);
    case LEAVE:
        return ferry_leave(f);
    case ABORT:
        ferry_abort(f, 7, "a forked process has called it");
    default:
        return *(volatile unsigned char *)s->memory;
    }
}

static void run_child(ferry *f, const state *s, deed what, int log)
{
    static const struct rlimit none = {0};
    (void)setrlimit(RLIMIT_CORE, &none);
    (void)dup2(log, STDERR_FILENO);
    (void)alarm(PATIENCE_S);
    if (what == LEAVE_QUIETLY)
        _exit(5);
    if (what == EXIT)
        exit(5);
    if (what == EXECUTE)
        (void)execl("/bin/sh", "sh", "-c", "exit 5", (char *)NULL);
    (void)call_ferry(f, s, what);
    _exit(6);
}

/* Reads what the child says, until it has ended. */
static void read_text(int fd, char text[TEXT_BYTES])
{
    size_t used = 0;
    for (ssize_t got = 1; got > 0 && used<TEXT_BYTES - 1; used += got> 0 ? (size_t)got : 0)
        got = read(fd, text + used, TEXT_BYTES - 1 - used);
    text[used] = '\0';
}

static void fork_one(ferry *f, state *s, deed what)
{
    const ferry_message m = {.handler = s->count};
    char text[TEXT_BYTES];
    int ends[2], status = 0;
    check(f, pipe(ends) == 0, "pipe");
    pid_t child = fork();
    if (child == 0)
        run_child(f, s, what, ends[1]);
    check(f, child > 0, "fork");
    close(ends[1]);
    for (int i = 0; i < MESSAGES; i++)
        check(f, ferry_request_send(f, s->next, &m, NULL) == 0 && ferry_poll(f) >= 0, "send");
    read_text(ends[0], text);
    close(ends[0]);
    check(f, waitpid(child, &status, 0) == child, "waitpid");
    bool as_it_should = what < POLL ? WIFEXITED(status) && WEXITSTATUS(status) == 5
                                    : WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV;
    if (what >= POLL && s->told)
        as_it_should = as_it_should && strstr(text, "was forked by a rank") != NULL &&
                       strstr(text, "may not call Ferry") != NULL;
    if (!as_it_should)
        fprintf(stderr, "child %d: status %x, \"%s\"\n", (int)what, (unsigned)status, text);
    check(f, as_it_should, "a forked process ended in another way");
}

static int run(ferry *f, int argc, char **argv)
{
    state s = {.next = (ferry_rank(f) + 1) % ferry_ranks(f), .told = argc < 2};
    int64_t sum = 0;
    void *memory;
    (void)argv;
    ferry_user_data_set(f, &s);
    check(f, ferry_handler_register(f, "count", on_count, &s.count) == 0, "register");
    check(f, ferry_alloc(f, 64, &memory) == 0, "alloc");
    s.memory = memory;
    check(f, ferry_barrier(f) == 0, "barrier");
    for (int what = 0; what < DEEDS; what++)
        fork_one(f, &s, (deed)what);
    check(f, ferry_quiesce(f) == 0, "quiesce");
    check(f, ferry_allreduce(f, FERRY_INT64, FERRY_SUM, &s.handled, &sum, 1) == 0, "allreduce");
    check(f, sum == (int64_t)DEEDS * MESSAGES * ferry_ranks(f), "messages are missing");
    check(f, ferry_free(f, memory) == 0, "free");
    return 0;
}

int main(int argc, char **argv)
{
    ferry *f;
    if (argc < 2 || strcmp(argv[1], "open") != 0)
        return ferry_main(argc, argv, run, NULL);
    if (ferry_open(NULL, &f) != 0)
        return 1;
    int status = run(f, argc, argv);
    return ferry_close(f) == 0 ? status : 1;
}
