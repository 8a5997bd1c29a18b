/* Ferry's side of the comparisons: what an application would write with the public functions. */
#include <ferry/ferry.h>

#include "common/team.h"
#include "peers/check.h"

#include <elf.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BUFFER_BYTES = 8 << 20 };

typedef struct state {
    ferry *f;
    int rank, ranks;
    ferry_handler ping, pong, read, item, block, answer, token, call, told;
    uint64_t arrived; /* requests handled, ever */
    uint64_t goal;    /* `arrived` at the end of the present stream, which is answered */
    uint64_t next;    /* length of the stream after it */
    uint64_t sum;
    unsigned char *own;    /* private */
    unsigned char *remote; /* in rank 1's shared heap */
} state;

static void send(ferry *f, int rank, const ferry_message *message)
{
    check(f, ferry_request_send(f, rank, message, NULL));
}

/* A message of the size asked for: in words when it fits. */
static ferry_message message_of(const state *s, ferry_handler handler, size_t size_bytes)
{
    ferry_message m = {.handler = handler};
    if (size_bytes <= sizeof m.words) {
        m.word_count = (uint8_t)((size_bytes + 7) / 8);
    } else {
        m.data = s->own;
        m.size_bytes = size_bytes;
    }
    return m;
}

/* The receiver copies the data out, as a receive into a buffer does. */
static void take(state *s, const ferry_message *m)
{
    if (m->size_bytes)
        memcpy(s->own, m->data, m->size_bytes);
    s->arrived++;
}

static void on_ping(ferry *f, int source, const ferry_message *m)
{
    state *s = ferry_user_data(f);
    take(s, m);
    ferry_message reply = *m;
    reply.handler = s->pong;
    reply.data = s->own;
    send(f, source, &reply);
}

static void on_pong(ferry *f, int source, const ferry_message *m)
{
    (void)source;
    take(ferry_user_data(f), m);
}

static void until(state *s, uint64_t arrived)
{
    while (s->arrived < arrived)
        check(s->f, ferry_poll(s->f));
}

/* Rank 1 polls until its last answer is here: between nodes nothing else sends that. */
static void last_answer(state *s, uint64_t arrived)
{
    if (s->rank == 0)
        send(s->f, 1, &(ferry_message){.handler = s->answer});
    else if (s->rank == 1)
        until(s, arrived + 1);
}

static double request(void *context, const bench_job *job)
{
    state *s = context;
    uint64_t warm = bench_warmup(job), start = 0, base = s->arrived;
    ferry_message m = message_of(s, s->ping, job->size_bytes);
    if (s->rank > 1)
        return 0;
    for (uint64_t i = 0; i < warm + job->count && s->rank == 0; i++) {
        if (i == warm)
            start = bench_now();
        send(s->f, 1, &m);
        until(s, base + i + 1);
    }
    uint64_t end = bench_now();
    last_answer(s, base + warm + job->count);
    return (double)(end - start);
}

static void on_read(ferry *f, int source, const ferry_message *m)
{
    state *s = ferry_user_data(f);
    (void)source;
    s->sum += bench_read(m->data, m->size_bytes);
    s->arrived++;
}

/* The receiver reads the data where they have come, and the program answers, not the handler. */
static double read_there(void *context, const bench_job *job)
{
    state *s = context;
    uint64_t warm = bench_warmup(job), start = 0, base = s->arrived;
    ferry_message m = message_of(s, s->read, job->size_bytes);
    for (uint64_t i = 0; i < warm + job->count && s->rank < 2; i++) {
        if (i == warm)
            start = bench_now();
        if (s->rank == 0)
            send(s->f, 1, &m);
        until(s, base + i + 1);
        if (s->rank == 1)
            send(s->f, 0, &m);
    }
    uint64_t end = bench_now();
    last_answer(s, base + warm + job->count);
    return (double)(end - start);
}

/* One of a stream has been handled. */
static void count_one(state *s, int source)
{
    if (++s->arrived != s->goal)
        return;
    s->goal += s->next;
    send(s->f, source, &(ferry_message){.handler = s->answer});
}

static void on_item(ferry *f, int source, const ferry_message *m)
{
    state *s = ferry_user_data(f);
    if (m->size_bytes)
        memcpy(s->own, m->data, m->size_bytes);
    count_one(s, source);
}

static void on_block(ferry *f, int source, const ferry_message *m)
{
    state *s = ferry_user_data(f);
    s->sum += bench_read(m->data, m->size_bytes);
    count_one(s, source);
}

static void on_answer(ferry *f, int source, const ferry_message *m)
{
    (void)source;
    (void)m;
    ((state *)ferry_user_data(f))->arrived++;
}

/* Rank 0: `count` messages one way and one back. */
static void stream(state *s, const ferry_message *m, uint64_t count)
{
    uint64_t base = s->arrived;
    for (uint64_t i = 0; i < count; i++)
        send(s->f, 1, m);
    until(s, base + 1);
}

static double streamed(state *s, const bench_job *job, ferry_handler handler)
{
    uint64_t warm = bench_warmup(job);
    ferry_message m = message_of(s, handler, job->size_bytes);
    if (s->rank == 1) {
        s->goal = s->arrived + warm;
        s->next = job->count;
        until(s, s->goal + job->count);
    }
    if (s->rank != 0)
        return 0;
    stream(s, &m, warm);
    uint64_t start = bench_now();
    stream(s, &m, job->count);
    return (double)(bench_now() - start);
}

static double rate(void *context, const bench_job *job)
{
    state *s = context;
    return streamed(s, job, s->item);
}

static double buffer(void *context, const bench_job *job)
{
    state *s = context;
    return streamed(s, job, s->block);
}

static double put(void *context, const bench_job *job)
{
    state *s = context;
    uint64_t warm = bench_warmup(job), start = 0;
    for (uint64_t i = 0; i < warm + job->count && s->rank == 0; i++) {
        if (i == warm)
            start = bench_now();
        check(s->f, ferry_put(s->f, 1, s->remote, s->own, job->size_bytes, NULL));
    }
    return (double)(bench_now() - start);
}

static double strided(void *context, const bench_job *job)
{
    state *s = context;
    uint64_t warm = bench_warmup(job), start = 0;
    const ptrdiff_t step = 2 * (ptrdiff_t)job->size_bytes;
    const ferry_stride blocks = {BENCH_BLOCKS, step, step};
    const ferry_strided what = {s->remote, s->own, job->size_bytes, 1, &blocks};
    ferry_op op;
    const ferry_track track = {.size = sizeof track, .op = &op};
    for (uint64_t i = 0; i < warm + job->count && s->rank == 0; i++) {
        if (i == warm)
            start = bench_now();
        check(s->f, ferry_put_strided(s->f, 1, &what, &track));
        check(s->f, ferry_op_wait(s->f, &op));
    }
    double passed = (double)(bench_now() - start);
    check(s->f, ferry_barrier(s->f)); /* rank 1 polls meanwhile */
    return passed;
}

static double get(void *context, const bench_job *job)
{
    state *s = context;
    uint64_t warm = bench_warmup(job), start = 0;
    for (uint64_t i = 0; i < warm + job->count && s->rank == 0; i++) {
        if (i == warm)
            start = bench_now();
        check(s->f, ferry_get(s->f, 1, s->own, s->remote, job->size_bytes, NULL));
    }
    return (double)(bench_now() - start);
}

static double barrier(void *context, const bench_job *job)
{
    state *s = context;
    uint64_t warm = bench_warmup(job), start = 0;
    for (uint64_t i = 0; i < warm + job->count; i++) {
        if (i == warm)
            start = bench_now();
        check(s->f, ferry_barrier(s->f));
    }
    return (double)(bench_now() - start);
}

static double quiesce(void *context, const bench_job *job)
{
    state *s = context;
    uint64_t warm = bench_warmup(job), start = 0;
    for (uint64_t i = 0; i < warm + job->count; i++) {
        if (i == warm)
            start = bench_now();
        check(s->f, ferry_quiesce(s->f));
    }
    return (double)(bench_now() - start);
}

/* With BENCH_WAY=barrier ranks meet in a barrier instead. */
static double rest(void *context, const bench_job *job)
{
    state *s = context;
    uint64_t warm = bench_warmup(job), start = 0;
    bool meets = getenv("BENCH_WAY") != NULL;
    for (uint64_t i = 0; i < warm + job->count; i++) {
        if (i == warm)
            start = bench_now();
        if (!meets)
            send(s->f, (s->rank + 1) % s->ranks, &(ferry_message){.handler = s->answer});
        check(s->f, meets ? ferry_barrier(s->f) : ferry_quiesce(s->f));
    }
    return (double)(bench_now() - start);
}

static double allreduce(void *context, const bench_job *job)
{
    state *s = context;
    uint64_t warm = bench_warmup(job), start = 0;
    double in = 1, out = 0;
    for (uint64_t i = 0; i < warm + job->count; i++) {
        if (i == warm)
            start = bench_now();
        check(s->f, ferry_allreduce(s->f, FERRY_DOUBLE, FERRY_SUM, &in, &out, 1));
    }
    return out == s->ranks ? (double)(bench_now() - start) : -1;
}

static void on_token(ferry *f, int source, const ferry_message *m)
{
    state *s = ferry_user_data(f);
    (void)source;
    s->arrived++;
    if (s->rank != 0)
        send(f, (s->rank + 1) % s->ranks, m);
}

static double ring(void *context, const bench_job *job)
{
    state *s = context;
    uint64_t warm = bench_warmup(job), start = 0;
    ferry_message m = message_of(s, s->token, job->size_bytes);
    uint64_t base = s->arrived;
    for (uint64_t i = 0; i < warm + job->count; i++) {
        if (i == warm)
            start = bench_now();
        if (s->rank == 0)
            send(s->f, 1, &m);
        while (s->arrived <= base + i)
            check(s->f, ferry_wait(s->f, FERRY_FOREVER));
    }
    return (double)(bench_now() - start);
}

static void on_call(ferry *f, int source, const ferry_message *m)
{
    state *s = ferry_user_data(f);
    (void)m;
    s->arrived++;
    send(f, source, &(ferry_message){.handler = s->told, .word_count = 1, .words = {bench_now()}});
}

static void on_told(ferry *f, int source, const ferry_message *m)
{
    state *s = ferry_user_data(f);
    (void)source;
    s->arrived++;
    s->sum = m->words[0];
}

static double wake(void *context, const bench_job *job)
{
    state *s = context;
    uint64_t sum = 0, warm = bench_warmup(job), base = s->arrived;
    while (s->rank == 1 && s->arrived < base + warm + job->count)
        check(s->f, ferry_wait(s->f, FERRY_FOREVER));
    for (uint64_t i = 0; i < warm + job->count && s->rank == 0; i++) {
        for (uint64_t end = bench_now() + 200000; bench_now() < end;) {
        }
        uint64_t start = bench_now();
        send(s->f, 1, &(ferry_message){.handler = s->call});
        until(s, base + i + 1);
        if (i >= warm)
            sum += s->sum - start;
    }
    return (double)sum;
}

static double idle(void *context, const bench_job *job)
{
    state *s = context;
    uint64_t warm = bench_warmup(job), start = 0, base = s->arrived;
    if (s->rank != 0)
        send(s->f, 0, &(ferry_message){.handler = s->answer});
    else
        until(s, base + (uint64_t)s->ranks - 1);
    for (uint64_t i = 0; i < warm + job->count && s->rank == 0; i++) {
        if (i == warm)
            start = bench_now();
        check(s->f, ferry_poll(s->f));
    }
    return (double)(bench_now() - start);
}

/* The shared library without what a debugger wants: what of it is loaded. */
static double library(void *context, const bench_job *job)
{
    char self[1024], path[1100];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    (void)context;
    (void)job;
    self[n > 0 ? n : 0] = 0;
    snprintf(path, sizeof path, "%s/../../lib/libferry.so", dirname(self));
    FILE *file = fopen(path, "rb");
    Elf64_Ehdr head;
    double sum = -1;
    if (file && fread(&head, sizeof head, 1, file) == 1) {
        sum = sizeof head + (double)head.e_phnum * head.e_phentsize;
        fseek(file, (long)head.e_shoff, SEEK_SET);
        Elf64_Shdr section;
        for (int i = 0; i < head.e_shnum && fread(&section, sizeof section, 1, file) == 1; i++)
            if (section.sh_flags & SHF_ALLOC && section.sh_type != SHT_NOBITS)
                sum += (double)section.sh_size;
    }
    if (file)
        fclose(file);
    return sum;
}

static void register_handlers(state *s)
{
    const struct {
        const char *name;
        ferry_request_fn *fn;
        ferry_handler *out;
    } all[] = {
        {"ping", on_ping, &s->ping},       {"pong", on_pong, &s->pong},
        {"item", on_item, &s->item},       {"block", on_block, &s->block},
        {"answer", on_answer, &s->answer}, {"token", on_token, &s->token},
        {"call", on_call, &s->call},       {"told", on_told, &s->told},
        {"read", on_read, &s->read},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        check(s->f, ferry_handler_register(s->f, all[i].name, all[i].fn, all[i].out));
}

/* Rank 1's block in the shared heap, known to all. Large memory is made by the jobs that use it
 * only, so that the memory case counts what Ferry takes. */
static void share_memory(state *s)
{
    void *block = NULL;
    if (s->rank == 1)
        check(s->f, ferry_alloc(s->f, BUFFER_BYTES, &block));
    check(s->f, ferry_broadcast(s->f, 1, &block, sizeof block));
    s->remote = block;
}

static int rank_main(ferry *f, int argc, char **argv)
{
    state s = {.f = f, .rank = ferry_rank(f), .ranks = ferry_ranks(f)};
    bench_board *board = bench_board_open();
    if (!board)
        return bench_team_empty(argc, argv) ? 0 : 1;
    ferry_user_data_set(f, &s);
    register_handlers(&s);
    bench_pin(s.rank);
    share_memory(&s);
    s.own = aligned_alloc(4096, BUFFER_BYTES);
    if (!s.own)
        return 1;
    bench_team team = {.board = board, .rank = s.rank, .context = &s, .sized = true};
    team.kinds[BENCH_REQUEST] = request;
    team.kinds[BENCH_READ] = read_there;
    team.kinds[BENCH_RATE] = rate;
    team.kinds[BENCH_BUFFER] = buffer;
    team.kinds[BENCH_PUT] = put;
    team.kinds[BENCH_GET] = get;
    team.kinds[BENCH_STRIDED] = strided;
    team.kinds[BENCH_BARRIER] = barrier;
    team.kinds[BENCH_QUIESCE] = quiesce;
    team.kinds[BENCH_REST] = rest;
    team.kinds[BENCH_ALLREDUCE] = allreduce;
    team.kinds[BENCH_RING] = team.kinds[BENCH_RING_BUSY] = ring;
    team.kinds[BENCH_WAKE] = wake;
    team.kinds[BENCH_IDLE] = idle;
    team.kinds[BENCH_LIBRARY] = library;
    bench_team_serve(&team);
    free(s.own);
    return s.sum == 1 ? 2 : 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
