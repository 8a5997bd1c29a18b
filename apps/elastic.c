/* Elastic: a task farm that grows while many tasks wait and shrinks while few do.
 *
 * Rank 0 owns the tasks, which come in waves; the others work. When more than --long tasks wait for
 * each worker, the owner has a rank started (ferry_spawn), as long as the job has numbers for more.
 * When nothing waits, all workers but one are told to leave, one by one (ferry_leave). The next
 * wave comes when they have. A worker that dies gives its task back: what it had said is known
 * before its death is, so each result counts once. With --told the owner tells deaths with their
 * time. When the owner dies there is no result, and the exit status is 3 (0 with --orphan, for
 * tests). Here a task is to count the primes in a range.
 *
 *      ferry run -n 2 -m 12 build/apps/elastic
 *      FERRY_RANKS_MAX=12 mpirun -n 2 build/apps/elastic
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <ferry/ferry.h>

#include "common/parameters.h"

enum { RANGE = 500, KEPT = 1, ORPHAN = 3 };
enum { WAITS = -1, DONE = -2 }; /* else the rank that has the task */

typedef struct worker {
    bool is_there, is_idle, leaves;
} worker;

typedef struct farm {
    ferry_handler want, task, done, leave;
    long waves, per_wave, longest, task_us;
    bool tells, may_be_orphan;
    bool goes;      /* of a worker: it is to leave */
    bool is_orphan; /* the owner has died */
    bool is_over;   /* of the owner: nothing is left to do */

    /* The owner's. */
    int *states; /* of tasks */
    long added, finished, twice, next;
    int64_t primes;
    worker *workers;
    int worker_count, leaving, coming, room;
    int most, grown, left, died;
} farm;

static void check(ferry *f, int error)
{
    if (error == 0 || error == FERRY_EPEER) /* a death is told by on_peer */
        return;
    fprintf(stderr, "elastic: rank %d: %s: %s\n", ferry_rank(f), ferry_strerror(error),
            ferry_error_message(f));
    exit(1);
}

static int64_t count_primes(int64_t first, int64_t end)
{
    int64_t count = 0;
    for (int64_t n = first < 2 ? 2 : first; n < end; n++) {
        int64_t d = 2;
        while (d * d <= n && n % d != 0)
            d++;
        count += d * d > n;
    }
    return count;
}

static void send(ferry *f, int rank, ferry_handler handler, uint64_t a, uint64_t b)
{
    const ferry_message m = {.handler = handler, .word_count = 2, .words = {a, b}};
    check(f, ferry_request_send(f, rank, &m, NULL));
}

/* The worker's side. */

static void on_task(ferry *f, int source, const ferry_message *message)
{
    farm *m = ferry_user_data(f);
    int64_t first = (int64_t)message->words[0] * RANGE;
    ferry_compute(f, (double)m->task_us * 1e-6);
    send(f, source, m->done, message->words[0], (uint64_t)count_primes(first, first + RANGE));
}

static void on_leave(ferry *f, int source, const ferry_message *message)
{
    (void)source;
    (void)message;
    ((farm *)ferry_user_data(f))->goes = true;
    ferry_quiesce_break(f);
}

/* Works until nobody has anything left to do. False: it was told to leave before, and has. */
static bool serve(ferry *f, farm *m)
{
    send(f, 0, m->want, 0, 0);
    int error = m->goes ? FERRY_ECANCELED : ferry_quiesce(f);
    if (error == FERRY_ECANCELED)
        error = ferry_leave(f);
    else
        m->goes = false;
    check(f, error);
    return !m->goes;
}

/* The owner's side. */

/* The first task that waits; -1: none does. */
static long next_task(farm *m)
{
    while (m->next < m->added && m->states[m->next] != WAITS)
        m->next++;
    return m->next < m->added ? m->next : -1;
}

static long waiting(const farm *m)
{
    long count = 0;
    for (long i = m->next; i < m->added; i++)
        count += m->states[i] == WAITS;
    return count;
}

static void finish(farm *m, long number, int64_t primes)
{
    m->states[number] = DONE;
    m->finished++;
    m->primes += primes;
}

static void hand_out(ferry *f, farm *m)
{
    for (int rank = 1; rank < ferry_ranks(f); rank++) {
        worker *w = &m->workers[rank];
        long number = w->is_idle ? next_task(m) : -1;
        if (number < 0)
            continue;
        w->is_idle = false;
        m->states[number] = rank;
        send(f, rank, m->task, (uint64_t)number, 0);
    }
}

static void grow(ferry *f, farm *m)
{
    int first;
    while (m->room > 0 && waiting(m) > m->longest * (m->worker_count - m->leaving + m->coming)) {
        int error = ferry_spawn(f, 1, NULL, &first);
        m->room = error == 0 ? m->room - 1 : 0;
        m->coming += error == 0;
        if (error != FERRY_ENOMEM && error != FERRY_ENOTSUP)
            check(f, error);
    }
}

static void shrink(ferry *f, farm *m)
{
    for (int rank = 1; rank < ferry_ranks(f) && waiting(m) == 0; rank++) {
        worker *w = &m->workers[rank];
        if (!w->is_idle || m->worker_count - m->leaving <= KEPT)
            continue;
        w->is_idle = false;
        w->leaves = true;
        m->leaving++;
        send(f, rank, m->leave, 0, 0);
    }
}

static void look(ferry *f, farm *m)
{
    hand_out(f, m);
    grow(f, m);
    shrink(f, m);
}

/* One that has just come has also said that it wants a task, or will. */
static void appear(farm *m, int rank)
{
    if (m->workers[rank].is_there)
        return;
    m->workers[rank].is_there = true;
    m->worker_count++;
    m->most = m->worker_count > m->most ? m->worker_count : m->most;
}

static void on_want(ferry *f, int source, const ferry_message *message)
{
    farm *m = ferry_user_data(f);
    (void)message;
    appear(m, source);
    m->workers[source].is_idle = true;
    if (!m->is_over)
        look(f, m);
}

static void on_done(ferry *f, int source, const ferry_message *message)
{
    farm *m = ferry_user_data(f);
    long number = (long)message->words[0];
    if (m->states[number] == source)
        finish(m, number, (int64_t)message->words[1]);
    else
        m->twice++;
    on_want(f, source, message);
}

static void lose(ferry *f, farm *m, const ferry_peer_event *event)
{
    worker *w = &m->workers[event->rank];
    m->died += event->died;
    m->left += !event->died;
    m->leaving -= w->leaves;
    m->coming -= event->died && !w->is_there; /* it was started, and never came */
    m->worker_count -= w->is_there;
    *w = (worker){.is_there = false};
    for (long i = 0; i < m->added; i++)
        if (m->states[i] == event->rank) {
            m->states[i] = WAITS;
            m->next = i < m->next ? i : m->next;
        }
    look(f, m);
}

static void on_peer(ferry *f, void *arg, const ferry_peer_event *event)
{
    farm *m = arg;
    /* Others may have come long after a death, and hear of it then. */
    if (event->died && m->tells && ferry_rank(f) == 0)
        printf("told %d %d %" PRIu64 "\n", ferry_rank(f), event->rank, ferry_now(f));
    if (ferry_rank(f) != 0) {
        m->is_orphan = m->is_orphan || (event->rank == 0 && event->died);
        return;
    }
    if (event->joined) {
        m->coming -= m->coming > 0;
        m->grown++;
        appear(m, event->rank);
    } else if (!m->is_over) {
        lose(f, m, event);
    }
}

/* A task done by the owner, when nobody else is there or may come. */
static void work_alone(farm *m)
{
    long number = m->worker_count == 0 && m->coming == 0 ? next_task(m) : -1;
    if (number >= 0)
        finish(m, number, count_primes(number * RANGE, (number + 1) * RANGE));
}

static void own(ferry *f, farm *m)
{
    for (long i = 0; i < m->waves * m->per_wave; i++)
        m->states[i] = WAITS;
    for (int place = 1; place < ferry_member_count(f); place++)
        appear(m, ferry_member_rank(f, place));
    m->room = ferry_ranks(f) - ferry_member_count(f);
    for (long wave = 0; wave < m->waves; wave++) {
        m->added += m->per_wave;
        look(f, m);
        while (m->finished < m->added || m->leaving > 0 || m->coming > 0 ||
               m->worker_count > KEPT) {
            work_alone(m);
            (void)ferry_wait(f, m->worker_count == 0 && m->coming == 0 ? 0 : FERRY_FOREVER);
        }
    }
    m->is_over = true;
    check(f, ferry_quiesce(f)); /* newcomers that came too late find nothing to do */
}

static int report(const farm *m)
{
    int64_t expected = count_primes(0, m->added * RANGE);
    printf("%ld tasks, lost %ld, done twice %ld; %" PRId64 " primes; %d workers at most, %d came, "
           "%d left, %d died\n",
           m->added, m->added - m->finished, m->twice, m->primes, m->most, m->grown, m->left,
           m->died);
    return m->finished == m->added && m->twice == 0 && m->primes == expected ? 0 : 1;
}

static int open_farm(ferry *f, farm *m)
{
    int error = ferry_handler_register(f, "want", on_want, &m->want);
    if (error == 0)
        error = ferry_handler_register(f, "task", on_task, &m->task);
    if (error == 0)
        error = ferry_handler_register(f, "done", on_done, &m->done);
    if (error == 0)
        error = ferry_handler_register(f, "leave", on_leave, &m->leave);
    if (error == 0)
        error = ferry_peer_watch(f, on_peer, m);
    return error;
}

/* 0, or the exit status. */
static int play(ferry *f, farm *m)
{
    int status = 0;
    if (open_farm(f, m) != 0) {
        fprintf(stderr, "elastic: rank %d: %s\n", ferry_rank(f), ferry_error_message(f));
        return 1;
    }
    if (ferry_rank(f) == 0)
        own(f, m);
    else if (!serve(f, m))
        return 0;
    if (ferry_rank(f) == 0)
        status = report(m);
    else if (m->is_orphan)
        status = m->may_be_orphan ? 0 : ORPHAN;
    if (m->is_orphan && ferry_member_place(f, ferry_rank(f)) == 0)
        fprintf(stderr, "elastic: rank 0, which had the tasks, has died: no result\n");
    return status;
}

static int rank_main(ferry *f, int argc, char **argv)
{
    farm m = {.waves = 3, .per_wave = 200, .longest = 50};
    const parameter table[] = {
        {"waves", "in which tasks come", 1, 1000, .whole = &m.waves},
        {"tasks", "of a wave", 1, 100000, .whole = &m.per_wave},
        {"long", "tasks that may wait for each worker", 0, 1e6, .whole = &m.longest},
        {"task-us", "each computes beside its count", 0, 1e7, .whole = &m.task_us},
        {"told", "print the time of deaths", .flag = &m.tells},
        {"orphan", "end well although rank 0 has died", .flag = &m.may_be_orphan},
        {0}};
    int status = parameters_read(f, argc, argv, "A task farm that grows and shrinks.", table);
    if (status >= 0)
        return status;
    m.states = malloc((size_t)(m.waves * m.per_wave) * sizeof *m.states);
    m.workers = calloc((size_t)ferry_ranks(f), sizeof *m.workers);
    ferry_user_data_set(f, &m);
    status = m.states == NULL || m.workers == NULL ? 1 : play(f, &m);
    free(m.states);
    free(m.workers);
    return status;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
