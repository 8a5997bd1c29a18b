/* Goal: if a program did not say that it goes on after deaths, no rank of it is told of success
 * after a rank was lost with its work. Method: the program works in rounds: requests, tasks of
 * objects that are balanced, then collectives of all and of groups. Each rank writes "enter ROUND
 * RANK" before it gives its part to the collectives of a round. It writes "result ROUND RANK" when
 * all calls of the round have returned 0. A result must come after the parts of all. One rank ends
 * in the way and at the place that the arguments name. It writes "dies TIME RANK" first, in
 * milliseconds of the monotonic clock.
 *
 *      crashing HOW WHERE RANK
 *
 * HOW: none segv abort exit3 exit0 _exit0 exec kill return3 return0 thread (pthread_exit), or
 * abort7 and abort0 (ferry_abort).
 * WHERE: main handler task barrier allreduce gather broadcast scan alltoall group started quiesce
 * close phase. Exit status 9: a call has failed, with its error on standard error. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <ferry/collective.h>
#include <ferry/ferry.h>

enum { ROUNDS = 4, REQUESTS = 40, OBJECTS = 8, FAILED = 9, RANKS_MAX = 64 };

typedef struct state {
    ferry *f;
    const char *how, *where;
    int crashing, round;
    uint64_t handled;
    ferry_handler add, work, end;
    ferry_object_type type;
    ferry_object objects[OBJECTS];
    ferry_group *half; /* ranks of the same parity */
} state;

/* To the file CRASHING_LOG, if that is set: a launcher that ends a job may lose what ranks print.
 */
static void put_line(const char *what, long long number, int rank)
{
    char line[64];
    int length = snprintf(line, sizeof(line), "%s %lld %d\n", what, number, rank);
    const char *path = getenv("CRASHING_LOG");
    int fd = path == NULL ? STDOUT_FILENO : open(path, O_WRONLY | O_APPEND);
    ssize_t written = write(fd, line, (size_t)length);
    (void)written;
    if (path != NULL)
        close(fd);
}

static void end_here(state *s)
{
    const char *how = s->how;
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    if (strcmp(how, "none") != 0)
        put_line("dies", t.tv_sec * 1000LL + t.tv_nsec / 1000000, ferry_rank(s->f));
    if (strcmp(how, "segv") == 0)
        raise(SIGSEGV);
    if (strcmp(how, "abort") == 0)
        abort();
    if (strcmp(how, "exit3") == 0)
        exit(3);
    if (strcmp(how, "exit0") == 0)
        exit(0);
    if (strcmp(how, "_exit0") == 0)
        _exit(0);
    if (strcmp(how, "exec") == 0)
        execlp("true", "true", (char *)NULL);
    if (strcmp(how, "thread") == 0)
        pthread_exit(NULL);
    if (strcmp(how, "kill") == 0)
        raise(SIGKILL);
    if (strcmp(how, "abort7") == 0)
        ferry_abort(s->f, 7, "as planned");
    if (strcmp(how, "abort0") == 0)
        ferry_abort(s->f, 0, "as planned");
}

static void on_add(ferry *f, int source, const ferry_message *message)
{
    state *s = ferry_user_data(f);
    (void)source;
    s->handled += message->words[0];
}

static void on_end(ferry *f, int source, const ferry_message *message)
{
    (void)source;
    (void)message;
    end_here(ferry_user_data(f));
}

static void on_work(ferry *f, ferry_object object, void *data, int source,
                    const ferry_message *message)
{
    state *s = ferry_user_data(f);
    (void)object;
    (void)data;
    (void)source;
    ferry_compute(f, 20e-6);
    s->handled += message->words[0];
    if (message->words[1] != 0 && ferry_rank(f) == s->crashing)
        end_here(s);
}

/* Every call is checked: one that fails ends the rank, which writes no result. */
static bool failed(const state *s, int error, const char *call)
{
    if (error >= 0)
        return false;
    fprintf(stderr, "crashing: rank %d round %d: %s: %s: %s\n", ferry_rank(s->f), s->round, call,
            ferry_strerror(error), ferry_error_message(s->f));
    return true;
}

/* Has the crashing rank end in a handler that runs inside the call that follows, or in the call's
 * place. */
static bool approach(state *s, const char *where)
{
    const ferry_message end = {.handler = s->end};
    if (s->round != ROUNDS / 2 || ferry_rank(s->f) != s->crashing || strcmp(s->where, where) != 0)
        return false;
    if (strcmp(where, "main") == 0 || strncmp(s->how, "return", 6) == 0) {
        end_here(s);
        return strcmp(s->how, "none") != 0;
    }
    return failed(s, ferry_request_send(s->f, ferry_rank(s->f), &end, NULL), "request_send");
}

static bool send_all(state *s)
{
    int ranks = ferry_ranks(s->f), self = ferry_rank(s->f), error = 0;
    bool ends = s->round == ROUNDS / 2;
    for (int i = 0; i < REQUESTS && error == 0; i++) {
        const ferry_message m = {.handler = s->add, .word_count = 1, .words = {1}};
        error = ferry_request_send(s->f, (self + i) % ranks, &m, NULL);
    }
    if (ends && strcmp(s->where, "handler") == 0 && error == 0) {
        const ferry_message m = {.handler = s->end};
        error = ferry_request_send(s->f, s->crashing, &m, NULL);
    }
    for (int i = 0; i < OBJECTS && error == 0; i++) {
        const ferry_message m = {.handler = s->work,
                                 .word_count = 2,
                                 .words = {1, ends && strcmp(s->where, "task") == 0}};
        error = ferry_object_send(s->f, s->objects[i], &m, NULL);
    }
    return !failed(s, error, "send");
}

/* A call over half of the ranks, and one that goes on while the program does. */
static bool meet_half(state *s)
{
    uint64_t one = 1, sum = 0, below = 0, here[RANKS_MAX], there[RANKS_MAX];
    int ranks = ferry_ranks(s->f), self = ferry_rank(s->f);
    ferry_collective add = FERRY_COLLECTIVE_DEFAULTS;
    add.kind = FERRY_ALLREDUCE;
    add.group = s->half;
    add.in = &one;
    add.out = &sum;
    add.count = 1;
    add.type = FERRY_UINT64;
    add.reduction = FERRY_SUM;
    if (approach(s, "group") || failed(s, ferry_collective_run(s->f, &add), "group"))
        return false;
    bool right = sum == (uint64_t)((ranks + 1 - self % 2) / 2);
    ferry_op op = {0};
    const ferry_track track = {.size = sizeof(track), .op = &op};
    if (approach(s, "started") || failed(s, ferry_collective_start(s->f, &add, &track), "start") ||
        failed(s, ferry_op_wait(s->f, &op), "op_wait"))
        return false;
    if (approach(s, "scan") ||
        failed(s, ferry_scan_inclusive(s->f, FERRY_UINT64, FERRY_SUM, &one, &below, 1), "scan"))
        return false;
    for (int i = 0; i < ranks; i++)
        here[i] = (uint64_t)(self * ranks + i);
    if (approach(s, "alltoall") ||
        failed(s, ferry_alltoall(s->f, here, sizeof(here[0]), there), "alltoall"))
        return false;
    for (int i = 0; i < ranks; i++)
        right = right && there[i] == (uint64_t)(i * ranks + self);
    if (right && below == (uint64_t)self + 1)
        return true;
    fprintf(stderr, "crashing: WRONG: rank %d round %d: %llu in the group, %llu up to here\n", self,
            s->round, (unsigned long long)sum, (unsigned long long)below);
    return false;
}

/* The collectives of a round; what they come to must be the work of all. */
static bool meet_all(state *s)
{
    int ranks = ferry_ranks(s->f), self = ferry_rank(s->f);
    uint64_t sum = s->handled, all[RANKS_MAX] = {0}, gathered = 0, news = 0,
             each = REQUESTS + OBJECTS;
    put_line("enter", s->round, self);
    if (!meet_half(s) || approach(s, "allreduce") ||
        failed(s, ferry_allreduce(s->f, FERRY_UINT64, FERRY_SUM, &sum, &sum, 1), "allreduce"))
        return false;
    if (approach(s, "gather") ||
        failed(s, ferry_gather(s->f, 0, &s->handled, sizeof(s->handled), all), "gather"))
        return false;
    for (int i = 0; i < ranks; i++)
        gathered += all[i];
    news = gathered;
    if (approach(s, "broadcast") ||
        failed(s, ferry_broadcast(s->f, 0, &news, sizeof(news)), "broadcast"))
        return false;
    if (approach(s, "barrier") || failed(s, ferry_barrier(s->f), "barrier"))
        return false;
    uint64_t expected = each * (uint64_t)ranks * (uint64_t)(s->round + 1);
    if (sum == expected && news == expected)
        return true;
    fprintf(stderr, "crashing: WRONG: rank %d round %d: %llu and %llu of %llu were done\n", self,
            s->round, (unsigned long long)sum, (unsigned long long)news,
            (unsigned long long)expected);
    return false;
}

static bool play(state *s)
{
    if (approach(s, "main") || !send_all(s) || approach(s, "phase") ||
        failed(s, ferry_balance_enable(s->f, s->round % 2 == 0), "balance_phase"))
        return false;
    if (approach(s, "quiesce") || failed(s, ferry_quiesce(s->f), "quiesce") || !meet_all(s))
        return false;
    put_line("result", s->round, ferry_rank(s->f));
    return true;
}

static bool open_state(state *s)
{
    static const ferry_object_ops ops = {
        .size = sizeof(ops), .name = "worker", .flat_bytes = sizeof(uint64_t)};
    int error = ferry_handler_register(s->f, "add", on_add, &s->add);
    if (error == 0)
        error = ferry_handler_register(s->f, "end", on_end, &s->end);
    if (error == 0)
        error = ferry_object_handler_register(s->f, "work", on_work, &s->work);
    if (error == 0)
        error = ferry_object_type_register(s->f, &ops, &s->type);
    for (int i = 0; i < OBJECTS && error == 0; i++) {
        error = ferry_object_create(s->f, s->type, calloc(1, sizeof(uint64_t)), &s->objects[i]);
        if (error == 0)
            error = ferry_balance_add(s->f, s->objects[i], NULL);
    }
    if (error == 0)
        error = ferry_group_split(s->f, NULL, ferry_rank(s->f) % 2, 0, &s->half);
    return !failed(s, error, "open");
}

static int rank_main(ferry *f, int argc, char **argv)
{
    if (argc != 4 || ferry_ranks(f) > RANKS_MAX) {
        fprintf(stderr, "usage: crashing HOW WHERE RANK, on 2 to 64 ranks\n");
        return 2;
    }
    static state states[RANKS_MAX]; /* by rank: handlers run in ferry_close too */
    state *s = &states[ferry_rank(f)];
    *s = (state){.f = f, .how = argv[1], .where = argv[2], .crashing = atoi(argv[3])};
    ferry_user_data_set(f, s);
    bool well = open_state(s);
    for (; s->round < ROUNDS && well; s->round++)
        well = play(s);
    s->round = ROUNDS / 2;
    if (well)
        (void)approach(s, "close");
    bool ends = ferry_rank(f) == s->crashing;
    if (ends && strncmp(s->how, "return", 6) == 0)
        return atoi(s->how + 6);
    return well ? 0 : FAILED;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
