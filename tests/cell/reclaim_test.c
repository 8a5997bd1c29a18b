/* Goal: memory that dead ranks held is given back. It was allocated by them, was part of an object
 * that had moved to them, or was sent to them and not taken yet (then it is in the memory of
 * others). Memory from ferry_alloc is given back when a survivor frees it for the dead rank.
 * Method: one rank survives all others. Rank after rank joins, allocates, shares, sends and is
 * killed. The survivor counts the pages of the job's segment after each death that it has seen;
 * they must not grow. The arguments are the number of deaths and the number of heaps. If there are
 * fewer heaps than ranks, those of dead ranks are used again, and what the survivor holds of a dead
 * rank keeps its content. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <ferry/cell.h>
#include <ferry/member.h>
#include <ferry/memory.h>
#include <ferry/object.h>

#include "../support/must.h"
#include "base/error.h"
#include "core/rank.h"
#include "port/shm/layout.h"
#include "ranks.h"

enum {
    PARCELS = 24,
    PARCEL_BYTES = 100000,
    MESSAGES = 50,
    PLAIN = 5, /* blocks of ferry_alloc, of PLAIN_BYTES << 0 .. 4 */
    PLAIN_BYTES = 40000,
    UNTAKEN = 15, /* messages that a rank has not taken when it dies */
    PATIENCE_S = 60,
    /* A rank's number costs this for good: its control block, its board, the tables of its heap. */
    KEPT_BYTES = 32 * 1024,
};

/* The processes tell each other this. */
typedef struct shared {
    _Atomic uint32_t ready, met, sent, buried, stop, reused;
    unsigned char *plain[PLAIN]; /* of the rank that is to die */
} shared;

typedef struct actor {
    shared *s;
    ferry_handler take, settle;
    ferry_object_type type;
    int newcomer;                       /* that has no object yet; 0: none */
    bool settled;                       /* the object is here */
    unsigned char *first[FY_RANKS_MAX]; /* where the first block of a dead rank was */
} actor;

static void on_take(ferry *f, int source, const ferry_message *message)
{
    (void)f;
    (void)source;
    must(message->size_bytes == PARCEL_BYTES, "a message came shortened");
}

static void on_settle(ferry *f, ferry_object object, void *data, int source,
                      const ferry_message *message)
{
    (void)object;
    (void)data;
    (void)source;
    (void)message;
    ((actor *)ferry_user_data(f))->settled = true;
}

/* Has an object move to a rank, and a message follow it. */
static void give_object(ferry *f, const actor *me, int rank)
{
    ferry_object object;
    void *data;
    const ferry_message m = {.handler = me->settle};
    must(ferry_alloc(f, PARCEL_BYTES, &data) == 0, "alloc");
    memset(data, 1, PARCEL_BYTES);
    must(ferry_object_create(f, me->type, data, &object) == 0, "create an object");
    must(ferry_object_move(f, object, rank) == 0, "move");
    must(ferry_object_send(f, object, &m, NULL) == 0, "send to an object");
}

/* Meets a rank that has joined, and has an object move to it. */
static void welcome(ferry *f, actor *me)
{
    must(ferry_quiesce(f) == 0, "quiesce");
    give_object(f, me, me->newcomer);
    me->newcomer = 0;
}

/* A parcel that is sent to a rank that had this number before reaches nobody who has it now. */
static void put_too_late(ferry *f, actor *me, int dead)
{
    shared *s = me->s;
    unsigned char value = 1, wrong = 0;
    must(ferry_put(f, dead, s->plain[0], &value, 1, NULL) == 0, "put");
    for (int before = 1; before < dead; before++) {
        if (me->first[before] != s->plain[0])
            continue;
        atomic_fetch_add(&s->reused, 1);
        must(ferry_put(f, before, s->plain[0], &wrong, 1, NULL) == FERRY_EPEER,
             "a put to a rank that is dead reaches another");
        must(ferry_get(f, before, &wrong, s->plain[0], 1, NULL) != 0 && wrong == 0,
             "a get from a rank that is dead reaches another");
    }
    me->first[dead] = s->plain[0];
}

/* Memory that a dead rank got from ferry_alloc exists until a survivor frees it for the dead rank.
 */
static void free_plain(ferry *f, shared *s, int dead)
{
    for (int i = 0; i < PLAIN; i++)
        for (int at = 0; at < PLAIN_BYTES << i; at++)
            must(s->plain[i][at] == i + 1, "memory of a dead rank has changed");
    must(ferry_free(f, s->plain[0]) == 0, "a survivor frees what a dead rank had");
    must(ferry_memory_reclaim(f, dead) == 0, "free_gone");
    for (int i = 0; i < PLAIN; i++)
        must(ferry_free(f, s->plain[i]) == FERRY_EINVAL, "memory of a dead rank stays");
    must(ferry_memory_reclaim(f, dead) == 0, "free_gone, again");
    must(ferry_memory_reclaim(f, 0) == FERRY_ESTATE, "free_gone of one that lives");
    must(ferry_memory_reclaim(f, -1) == FERRY_EINVAL, "free_gone of no rank");
}

static void on_peer(ferry *f, void *arg, const ferry_peer_event *event)
{
    actor *me = arg;
    if (event->joined) {
        me->newcomer = event->rank;
        atomic_store(&me->s->met, (uint32_t)event->rank);
    } else {
        put_too_late(f, me, event->rank);
        free_plain(f, me->s, event->rank);
        atomic_store(&me->s->buried, (uint32_t)event->rank);
    }
}

static void register_all(ferry *f, actor *me)
{
    static const ferry_object_ops ops = {.size = sizeof(ops),
                                         .name = "settler",
                                         .flat_bytes = PARCEL_BYTES,
                                         .flags = FERRY_OBJECT_SHARED};
    ferry_user_data_set(f, me);
    must(ferry_handler_register(f, "take", on_take, &me->take) == 0, "register");
    must(ferry_object_handler_register(f, "settle", on_settle, &me->settle) == 0, "register");
    must(ferry_object_type_register(f, &ops, &me->type) == 0, "register a type");
}

static void send_many(ferry *f, const actor *me, int rank, int count)
{
    static char data[PARCEL_BYTES];
    const ferry_message m = {.handler = me->take, .data = data, .size_bytes = PARCEL_BYTES};
    for (int i = 0; i < count; i++) {
        must(ferry_request_send(f, rank, &m, NULL) == 0, "send");
        ferry_poll(f);
    }
}

/* A parcel is as its creator made it, which is dead or not. */
static void check_parcel(ferry *f, ferry_parcel parcel, int creator)
{
    const unsigned char *bytes = ferry_parcel_data(f, parcel, NULL);
    must(bytes != NULL && bytes[0] == bytes[PARCEL_BYTES - 1], "a parcel has lost its data");
    must(creator == 0 || bytes[0] == creator % 251, "a parcel's memory is somebody else's");
}

/* Takes what it finds in its cell and keeps one of it until the next comes. */
static void survive(fy_segment *segment, shared *s)
{
    actor me = {.s = s};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    ferry *f = open_rank(segment, 0, "none");
    ferry_parcel kept = {0}, next;
    int creator = 0;
    register_all(f, &me);
    must(ferry_peer_watch(f, on_peer, &me) == 0, "on_peer");
    while (atomic_load(&s->stop) == 0) {
        ferry_poll(f);
        if (me.newcomer != 0)
            welcome(f, &me);
        uint32_t ready = atomic_load(&s->ready);
        if (ready != atomic_load(&s->sent)) {
            send_many(f, &me, (int)ready, UNTAKEN);
            atomic_store(&s->sent, ready);
        }
        if (ferry_cell_dequeue(f, (ferry_cell){0, 0}, &next, 0) == 0) {
            check_parcel(f, next, 0);
            if (kept.word != 0)
                check_parcel(f, kept, creator);
            must(ferry_parcel_release(f, kept) == 0, "release");
            kept = next;
            creator = *(const unsigned char *)ferry_parcel_data(f, kept, NULL);
        } else {
            usleep(50);
        }
    }
    must(ferry_parcel_release(f, kept) == 0, "release");
    must(ferry_parcel_count(f) == 0, "the survivor's own parcels are lost");
    _exit(0);
}

/* Gives some parcels away, keeps some, sends large messages, has an object, and is killed. */
static void die(fy_segment *segment, shared *s, int rank)
{
    actor me = {.s = s};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    ferry *f = open_rank(segment, rank, "none");
    register_all(f, &me);
    must(ferry_quiesce(f) == 0, "quiesce");
    for (int i = 0; i < PARCELS; i++) {
        ferry_parcel parcel;
        void *bytes;
        must(ferry_parcel_create(f, PARCEL_BYTES, &parcel, &bytes) == 0, "create");
        memset(bytes, rank % 251, PARCEL_BYTES);
        if (i % 3 != 0)
            must(ferry_cell_enqueue(f, (ferry_cell){0, 0}, parcel,
                                    i % 3 == 1 ? FERRY_GIVE : FERRY_KEEP, FERRY_FOREVER) == 0,
                 "enq");
    }
    for (int i = 0; i < PLAIN; i++) {
        void *bytes;
        must(ferry_alloc(f, PLAIN_BYTES << i, &bytes) == 0, "alloc");
        s->plain[i] = memset(bytes, i + 1, PLAIN_BYTES << i);
    }
    send_many(f, &me, 0, MESSAGES);
    while (!me.settled)
        ferry_poll(f);
    atomic_store(&s->ready, (uint32_t)rank);
    for (;;)
        usleep(1000000);
}

static void await(const _Atomic uint32_t *word, uint32_t value, const char *what)
{
    time_t end = time(NULL) + PATIENCE_S;
    while (atomic_load(word) != value) {
        must(time(NULL) < end, what);
        usleep(50);
    }
}

static long pages_bytes(int fd)
{
    struct stat file;
    must(fstat(fd, &file) == 0, "stat");
    return (long)file.st_blocks * 512;
}

static void bring_and_kill(fy_segment *segment, shared *s, int rank, int ranks)
{
    pid_t pid = fork();
    must(pid >= 0, "fork");
    if (pid == 0)
        die(segment, s, rank);
    await(&s->ready, (uint32_t)rank, "a rank does not get ready");
    await(&s->met, (uint32_t)rank, "a rank goes unnoticed");
    await(&s->sent, (uint32_t)rank, "the survivor does not send");
    kill(pid, SIGKILL);
    must(waitpid(pid, NULL, 0) == pid, "wait");
    fy_controls_mark(segment->base, (uint32_t)ranks, (uint32_t)rank, SHM_DEAD);
    await(&s->buried, (uint32_t)rank, "a death goes unnoticed");
}

int main(int argc, char **argv)
{
    int deaths = argc > 1 ? atoi(argv[1]) : DEATHS;
    const fy_shm_options options = {.ranks = 1,
                                    .ranks_max = deaths + 1,
                                    .arenas = argc > 2 ? (uint32_t)atoi(argv[2]) : 0,
                                    .heap_bytes = (size_t)64 << 20,
                                    .ring_slots = 64,
                                    .ring_bytes = 65536};
    shared *s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    fy_segment *segment;
    int fd, status, warm = deaths / 10 + 1;
    long before = 0;
    must(s != MAP_FAILED, "mmap");
    must(fy_segment_create(&options, &fd) == 0 && fy_segment_map(fd, &segment) == 0, "segment");
    pid_t pid = fork();
    must(pid >= 0, "fork");
    if (pid == 0)
        survive(segment, s);
    for (int rank = 1; rank <= deaths; rank++) {
        bring_and_kill(segment, s, rank, deaths + 1);
        if (rank == warm)
            before = pages_bytes(fd);
    }
    atomic_store(&s->stop, 1);
    must(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0,
         "the survivor failed");
    long growth = (pages_bytes(fd) - before) / (deaths - warm);
    fy_segment_unmap(segment);
    uint32_t reused = atomic_load(&s->reused);
    printf("%d deaths; a rank wrote %d KiB, and %ld KiB of it stay; addresses were used again %u "
           "times\n",
           deaths, ((PARCELS + MESSAGES) * PARCEL_BYTES + (PLAIN_BYTES << PLAIN)) / 1024,
           growth / 1024, reused);
    must(growth < KEPT_BYTES, "memory that dead ranks held is not given back");
    must((reused != 0) == (options.arenas != 0), "addresses are used again where they need not be");
    return 0;
}
