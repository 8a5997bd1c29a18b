/* Progressive: the work-stealing loop of progressive-messages.txt 3.4 in its three disciplines, as
 * programs really are on Ferry; figure 6.1-6.3 with protocols instead of a model.
 *
 *      ferry sim -n 256 --net FILE progressive --discipline driven --threshold 100
 *
 * A rank whose load is below the threshold asks a random one, which answers with half of its tasks
 * when it has more than twice as much as the asker. The sender keeps the tasks until their arrival
 * is known (the acknowledgement of the thesis); a lost portion would be put back.
 * - passing: messages are looked at between tasks. A sender waits until its message is
 *   acknowledged.
 * - driven: handlers run within tasks, at polls; a sender still waits.
 * - progressive: handlers run within tasks, and nobody waits: the acknowledgement is an event.
 *
 * A unit of the thesis is a millisecond here; a task looks at the network every half of it. Rank 0
 * prints discipline, threshold, ranks, speed-up and messages sent, separated by commas. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ferry/ferry.h>

enum { TASKS = 128 * 1024 };

static const double unit_s = 1e-3, slice_units = 0.5;

typedef enum discipline { PASSING, DRIVEN, PROGRESSIVE } discipline;

/* Tasks on their way, until the other rank is known to have them. */
typedef struct portion {
    struct portion *next;
    size_t count;
    uint16_t tasks[];
} portion;

/* A request that waits for the end of a task. */
typedef struct ask {
    int source;
    uint64_t load;
} ask;

typedef struct state {
    discipline discipline;
    uint64_t threshold;
    ferry_handler request, response, report, stop;
    uint16_t *tasks; /* of this rank, at [first, end) */
    size_t first, end, room;
    uint64_t load; /* sum of them */
    ask *asks;
    size_t ask_count, ask_room;
    portion *inbox; /* message passing: responses that wait for the end of a task */
    int unacknowledged;
    bool asked; /* a response will come */
    bool stopped;
    int error;
    uint64_t random, done, reported, reported_all, messages, first_ns, last_ns;
} state;

static uint64_t random_word(uint64_t *word)
{
    uint64_t z = *word += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static double random_unit(uint64_t *word)
{
    return ((double)(random_word(word) >> 11) + 0.5) / 9007199254740992.0;
}

/* The task of that number, the same as in progressive_model: two steps of the generator each. */
static uint16_t task_at(size_t index)
{
    uint64_t word = 1 + 2 * (uint64_t)index * UINT64_C(0x9e3779b97f4a7c15);
    double radius = sqrt(-2 * log(random_unit(&word)));
    double turn = 6.283185307179586 * random_unit(&word);
    return (uint16_t)fmax(1, floor(10 * fabs(radius * cos(turn))));
}

static int push(state *s, const uint16_t *tasks, size_t count)
{
    if (s->end + count > s->room) {
        size_t room = 2 * (s->end - s->first + count);
        uint16_t *grown = malloc(room * sizeof *grown);
        if (grown == NULL)
            return FERRY_ENOMEM;
        if (s->end > s->first)
            memcpy(grown, s->tasks + s->first, (s->end - s->first) * sizeof *grown);
        free(s->tasks);
        s->tasks = grown;
        s->room = room;
        s->end -= s->first;
        s->first = 0;
    }
    if (count > 0)
        memcpy(s->tasks + s->end, tasks, count * sizeof *tasks);
    s->end += count;
    for (size_t i = 0; i < count; i++)
        s->load += tasks[i];
    return 0;
}

static void note(state *s, int error)
{
    if (s->error == 0)
        s->error = error;
}

static void on_acknowledged(ferry *f, void *arg, const ferry_receipt *receipt)
{
    state *s = ferry_user_data(f);
    (void)receipt;
    s->unacknowledged--;
    free(arg);
}

/* The other rank is gone: its portion is ours again. */
static void on_lost(ferry *f, void *arg, const ferry_receipt *receipt)
{
    state *s = ferry_user_data(f);
    portion *p = arg;
    if (p == NULL)
        s->asked = false;
    else
        note(s, push(s, p->tasks, p->count));
    on_acknowledged(f, arg, receipt);
}

/* Sends `message`, whose portion, if any, is kept until its arrival is known. */
static void send_tracked(ferry *f, state *s, int rank, const ferry_message *message, portion *p)
{
    ferry_track track = FERRY_TRACK_DEFAULTS;
    track.completed = on_acknowledged;
    track.failed = on_lost;
    track.completed_arg = track.failed_arg = p;
    track.arrival = true;
    int error = ferry_request_send(f, rank, message, &track);
    if (error == 0) {
        s->unacknowledged++;
        s->messages++;
    } else {
        free(p);
        note(s, error);
    }
}

/* Answers with half of the tasks, or with none when that would only turn the imbalance around. */
static void answer(ferry *f, state *s, int source, uint64_t their_load)
{
    size_t have = s->end - s->first;
    size_t count = s->load > 2 * their_load && have > 1 ? have / 2 : 0;
    portion *p = malloc(sizeof *p + count * sizeof p->tasks[0]);
    if (p == NULL) {
        note(s, FERRY_ENOMEM);
        return;
    }
    *p = (portion){.count = count};
    if (count > 0)
        memcpy(p->tasks, s->tasks + s->first, count * sizeof p->tasks[0]);
    for (size_t i = 0; i < count; i++)
        s->load -= p->tasks[i];
    s->first += count;
    const ferry_message message = {
        .handler = s->response, .data = p->tasks, .size_bytes = count * sizeof p->tasks[0]};
    send_tracked(f, s, source, &message, p);
}

static void on_request(ferry *f, int source, const ferry_message *message)
{
    state *s = ferry_user_data(f);
    if (s->discipline != PASSING) {
        answer(f, s, source, message->words[0]);
        return;
    }
    if (s->ask_count == s->ask_room) {
        size_t room = 2 * s->ask_room + 4;
        ask *grown = realloc(s->asks, room * sizeof *grown);
        if (grown == NULL) {
            note(s, FERRY_ENOMEM);
            return;
        }
        s->asks = grown;
        s->ask_room = room;
    }
    s->asks[s->ask_count++] = (ask){.source = source, .load = message->words[0]};
}

static void on_response(ferry *f, int source, const ferry_message *message)
{
    state *s = ferry_user_data(f);
    (void)source;
    if (s->discipline != PASSING) {
        s->asked = false;
        note(s, push(s, message->data, message->size_bytes / sizeof *s->tasks));
        return;
    }
    portion *p = malloc(sizeof *p + message->size_bytes);
    if (p == NULL) {
        note(s, FERRY_ENOMEM);
        return;
    }
    *p = (portion){.next = s->inbox, .count = message->size_bytes / sizeof *s->tasks};
    if (p->count > 0)
        memcpy(p->tasks, message->data, message->size_bytes);
    s->inbox = p;
}

/* Rank 0 learns how many tasks are done; when all are, everyone may stop. */
static void on_report(ferry *f, int source, const ferry_message *message)
{
    state *s = ferry_user_data(f);
    (void)source;
    s->reported_all += message->words[0];
    if (s->reported_all < TASKS)
        return;
    const ferry_message stop = {.handler = s->stop};
    s->stopped = true;
    if (ferry_ranks(f) > 1)
        note(s, ferry_request_broadcast(f, &stop, NULL));
}

static void on_stop(ferry *f, int source, const ferry_message *message)
{
    state *s = ferry_user_data(f);
    (void)source;
    (void)message;
    s->stopped = true;
}

static void poll(ferry *f, state *s)
{
    int error = ferry_poll(f);
    note(s, error < 0 ? error : 0);
}

/* The acknowledgement, which two of the disciplines wait for. */
static void wait_acknowledged(ferry *f, state *s)
{
    while (s->discipline != PROGRESSIVE && s->unacknowledged > 0 && !s->stopped && s->error == 0) {
        int error = ferry_wait(f, FERRY_FOREVER);
        note(s, error < 0 ? error : 0);
    }
}

static void run_task(ferry *f, state *s)
{
    double left = s->tasks[s->first++];
    s->load -= (uint64_t)left;
    for (; left > 0 && s->discipline != PASSING; left -= slice_units) {
        ferry_compute(f, slice_units * unit_s);
        poll(f, s);
        wait_acknowledged(f, s);
    }
    if (left > 0)
        ferry_compute(f, left * unit_s);
    s->done++;
    s->last_ns = ferry_now(f);
}

/* The part of message passing between tasks: handles the requests and responses that have come. */
static void look_at_messages(ferry *f, state *s)
{
    poll(f, s);
    while (s->ask_count > 0 && s->error == 0) {
        ask oldest = s->asks[0];
        memmove(s->asks, s->asks + 1, --s->ask_count * sizeof *s->asks);
        answer(f, s, oldest.source, oldest.load);
        wait_acknowledged(f, s);
    }
    while (s->inbox != NULL) {
        portion *p = s->inbox;
        s->inbox = p->next;
        s->asked = false;
        note(s, push(s, p->tasks, p->count));
        free(p);
    }
}

static void ask_for_work(ferry *f, state *s)
{
    if (s->asked || s->load >= s->threshold || ferry_ranks(f) == 1)
        return;
    int rank = (int)(random_word(&s->random) % (uint64_t)(ferry_ranks(f) - 1));
    const ferry_message message = {.handler = s->request, .word_count = 1, .words = {s->load}};
    s->asked = true;
    send_tracked(f, s, rank < ferry_rank(f) ? rank : rank + 1, &message, NULL);
    wait_acknowledged(f, s);
}

static void report_done(ferry *f, state *s)
{
    const ferry_message message = {
        .handler = s->report, .word_count = 1, .words = {s->done - s->reported}};
    s->reported = s->done;
    note(s, ferry_request_send(f, 0, &message, NULL));
}

static void loop(ferry *f, state *s)
{
    while (!s->stopped && s->error == 0) {
        if (s->first < s->end)
            run_task(f, s);
        else if (s->reported < s->done)
            report_done(f, s);
        else if (s->asked || ferry_ranks(f) == 1)
            note(s, ferry_wait(f, FERRY_FOREVER) < 0 ? FERRY_ESTATE : 0);
        look_at_messages(f, s);
        ask_for_work(f, s);
    }
}

static int prepare(ferry *f, state *s)
{
    size_t ranks = (size_t)ferry_ranks(f), rank = (size_t)ferry_rank(f);
    int error = 0;
    s->random = UINT64_C(77) + (rank << 32);
    size_t begin = TASKS * rank / ranks, end = TASKS * (rank + 1) / ranks;
    for (size_t i = begin; i < end && error == 0; i++) {
        uint16_t task = task_at(i);
        error = push(s, &task, 1);
    }
    if (error == 0)
        error = ferry_handler_register(f, "request", on_request, &s->request);
    if (error == 0)
        error = ferry_handler_register(f, "response", on_response, &s->response);
    if (error == 0)
        error = ferry_handler_register(f, "report", on_report, &s->report);
    if (error == 0)
        error = ferry_handler_register(f, "stop", on_stop, &s->stop);
    return error;
}

static int print_result(ferry *f, state *s)
{
    static const char *const names[] = {"passing", "driven", "progressive"};
    uint64_t sum = 0, counts[2] = {s->done, s->messages};
    int error = ferry_allreduce(f, FERRY_UINT64, FERRY_MIN, &s->first_ns, &s->first_ns, 1);
    if (error == 0)
        error = ferry_allreduce(f, FERRY_UINT64, FERRY_MAX, &s->last_ns, &s->last_ns, 1);
    if (error == 0)
        error = ferry_allreduce(f, FERRY_UINT64, FERRY_SUM, counts, counts, 2);
    if (error != 0 || ferry_rank(f) != 0)
        return error;
    for (size_t i = 0; i < TASKS; i++)
        sum += task_at(i);
    printf("%s,%llu,%d,%.2f,%llu\n", names[s->discipline], (unsigned long long)s->threshold,
           ferry_ranks(f), (double)sum * unit_s * 1e9 / (double)(s->last_ns - s->first_ns),
           (unsigned long long)counts[1]);
    return counts[0] == TASKS ? 0 : FERRY_ESTATE;
}

static bool read_options(state *s, int argc, char **argv)
{
    static const char *const names[] = {"passing", "driven", "progressive"};
    s->threshold = 10;
    for (int i = 1; i + 1 < argc; i += 2) {
        bool good = false;
        char *end;
        if (strcmp(argv[i], "--threshold") == 0) {
            s->threshold = strtoull(argv[i + 1], &end, 10);
            good = end != argv[i + 1] && *end == '\0';
        }
        for (int d = 0; d < 3 && strcmp(argv[i], "--discipline") == 0; d++)
            if (strcmp(argv[i + 1], names[d]) == 0) {
                s->discipline = (discipline)d;
                good = true;
            }
        if (!good)
            return false;
    }
    return argc % 2 == 1;
}

static int rank_main(ferry *f, int argc, char **argv)
{
    state s = {0};
    if (!read_options(&s, argc, argv)) {
        fputs("usage: progressive [--discipline passing|driven|progressive] [--threshold T]\n",
              stderr);
        return 2;
    }
    ferry_user_data_set(f, &s);
    int error = prepare(f, &s);
    if (error == 0)
        error = ferry_barrier(f);
    s.first_ns = s.last_ns = ferry_now(f);
    if (error == 0) {
        loop(f, &s);
        error = s.error;
    }
    if (error == 0)
        error = ferry_quiesce(f);
    if (error == 0)
        error = print_result(f, &s);
    if (error != 0)
        fprintf(stderr, "progressive: rank %d: error %d: %s\n", ferry_rank(f), error,
                ferry_error_message(f));
    for (portion *p; (p = s.inbox) != NULL; free(p))
        s.inbox = p->next; /* refusals that came after the stop */
    free(s.tasks);
    free(s.asks);
    return error != 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
