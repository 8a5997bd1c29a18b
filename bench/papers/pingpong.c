/* Tables II-IV and Figure 5 of dmcs.txt, Figures 4.3-4.5, 4.15 and 4.16 of prema.txt. Measures how
 * long a call that sends takes, and half of the round trip, for requests of each form and for
 * messages to an object.
 *
 *      ferry run -n 2 pingpong LABEL [ROUNDS]
 *
 * Two ranks send to each other in turn, in one form:
 *      words0 .. words4   a request with so many words
 *      nonblocking        a request with data, and a status that is waited for after the answer
 *      blocking           a request with data; on return the data may be reused
 *      synchronous        a request with data that waits until the other rank has handled it
 *      put                a put with a handler, which waits for nothing
 *      object             a message to an object on the other rank, with a copy of its data
 *      object-lent        the same with a status: the data stay as they are until it says so
 *
 * Rank 0 prints LABEL, form, bytes, microseconds in the call, how many of these were in MPI (if
 * mpi_time.c is loaded), and microseconds of half a round trip: medians over ROUNDS. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ferry/ferry.h>

enum { BYTES_MAX = 1 << 20, WORDS_MAX = 4, FORMS = WORDS_MAX + 1 + 6 };

enum { NONBLOCKING = WORDS_MAX + 1, BLOCKING, SYNCHRONOUS, PUT, OBJECT, LENT };

static const char *const form_names[FORMS] = {"words0", "words1",      "words2",     "words3",
                                              "words4", "nonblocking", "blocking",   "synchronous",
                                              "put",    "object",      "object-lent"};

typedef struct state {
    ferry *f;
    ferry_handler request, message, stored;
    ferry_object objects[2]; /* one on each rank */
    void *buffers[2];        /* where puts go, one on each rank */
    unsigned char *data;
    ferry_op op;
    uint64_t came;
    uint64_t (*mpi_ns)(void); /* NULL: mpi_time.c is not loaded */
} state;

static uint64_t mpi_ns(const state *s)
{
    return s->mpi_ns == NULL ? 0 : s->mpi_ns();
}

static void check(ferry *f, int error)
{
    if (error >= 0)
        return;
    fprintf(stderr, "pingpong: %s\n", ferry_error_message(f));
    exit(EXIT_FAILURE);
}

static void on_request(ferry *f, int source, const ferry_message *message)
{
    (void)source, (void)message;
    ((state *)ferry_user_data(f))->came++;
}

static void on_message(ferry *f, ferry_object object, void *data, int source,
                       const ferry_message *message)
{
    (void)object, (void)data, (void)source, (void)message;
    ((state *)ferry_user_data(f))->came++;
}

static void on_stored(ferry *f, int peer, void *address, size_t size_bytes, uint64_t argument)
{
    (void)peer, (void)address, (void)size_bytes, (void)argument;
    ((state *)ferry_user_data(f))->came++;
}

static void send(state *s, int form, size_t size_bytes)
{
    const int other = 1 - ferry_rank(s->f);
    const bool object = form == OBJECT || form == LENT;
    const ferry_message message = {.handler = object ? s->message : s->request,
                                   .word_count = form <= WORDS_MAX ? (uint8_t)form : 0,
                                   .data = s->data,
                                   .size_bytes = size_bytes};
    const ferry_memory_call stored = {.handler = s->stored};
    const ferry_transfer put = {.target = s->buffers[other],
                                .source = s->data,
                                .size_bytes = size_bytes,
                                .remote = &stored};
    ferry_track track = FERRY_TRACK_DEFAULTS;
    track.op = &s->op;
    const ferry_track *status = form == NONBLOCKING || form == LENT || form == PUT ? &track : NULL;
    if (object)
        check(s->f, ferry_object_send(s->f, s->objects[other], &message, status));
    else if (form == SYNCHRONOUS)
        check(s->f, ferry_request_sync(s->f, other, &message));
    else if (form == PUT)
        check(s->f, ferry_put_run(s->f, other, &put, status));
    else
        check(s->f, ferry_request_send(s->f, other, &message, status));
}

static void await(state *s, uint64_t count)
{
    while (s->came < count)
        check(s->f, ferry_wait(s->f, FERRY_FOREVER));
    check(s->f, ferry_op_wait(s->f, &s->op));
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void measure(state *s, const char *label, int form, size_t size_bytes, int rounds)
{
    double *call = malloc(3 * (size_t)rounds * sizeof *call);
    if (call == NULL)
        exit(EXIT_FAILURE);
    double *half = call + rounds, *mpi = half + rounds;
    s->came = 0;
    check(s->f, ferry_barrier(s->f));
    for (int i = 0; i < rounds; i++) {
        if (ferry_rank(s->f) == 1)
            await(s, (uint64_t)i + 1);
        uint64_t start = ferry_now(s->f), mpi_start = mpi_ns(s);
        send(s, form, size_bytes);
        call[i] = (double)(ferry_now(s->f) - start) / 1e3;
        mpi[i] = (double)(mpi_ns(s) - mpi_start) / 1e3;
        if (ferry_rank(s->f) == 0)
            await(s, (uint64_t)i + 1);
        half[i] = (double)(ferry_now(s->f) - start) / 2e3;
    }
    check(s->f, ferry_op_wait(s->f, &s->op));
    qsort(call, (size_t)rounds, sizeof *call, by_value);
    qsort(half, (size_t)rounds, sizeof *half, by_value);
    qsort(mpi, (size_t)rounds, sizeof *mpi, by_value);
    if (ferry_rank(s->f) == 0)
        printf("%s,%s,%zu,%.3f,%.3f,%.3f\n", label, form_names[form], size_bytes, call[rounds / 2],
               mpi[rounds / 2], half[rounds / 2]);
    free(call);
}

static void prepare(state *s)
{
    static const ferry_object_ops ops = {.size = sizeof ops, .name = "target", .flat_bytes = 8};
    ferry *f = s->f;
    ferry_object_type type;
    ferry_user_data_set(f, s);
    *(void **)&s->mpi_ns = dlsym(RTLD_DEFAULT, "papers_mpi_ns");
    check(f, ferry_handler_register(f, "request", on_request, &s->request));
    check(f, ferry_memory_handler_register(f, "stored", on_stored, &s->stored));
    check(f, ferry_object_type_register(f, &ops, &type));
    check(f, ferry_object_handler_register(f, "message", on_message, &s->message));
    const int rank = ferry_rank(f);
    s->data = calloc(1, BYTES_MAX);
    if (s->data == NULL)
        exit(EXIT_FAILURE);
    check(f, ferry_object_create(f, type, malloc(8), &s->objects[rank]));
    check(f, ferry_alloc(f, BYTES_MAX, &s->buffers[rank]));
    for (int i = 0; i < 2; i++) {
        check(f, ferry_broadcast(f, i, &s->objects[i], sizeof s->objects[i]));
        check(f, ferry_broadcast(f, i, &s->buffers[i], sizeof s->buffers[i]));
    }
}

static int rank_main(ferry *f, int argc, char **argv)
{
    static const size_t sizes[] = {1,        64,       512,       2 << 10,   4 << 10,  8 << 10,
                                   32 << 10, 64 << 10, 128 << 10, 256 << 10, BYTES_MAX};
    state s = {.f = f};
    int rounds = argc == 3 ? atoi(argv[2]) : 100;
    if (argc < 2 || argc > 3 || rounds < 1 || ferry_ranks(f) != 2) {
        fputs("usage: ferry run -n 2 pingpong LABEL [ROUNDS]\n", stderr);
        return 2;
    }
    prepare(&s);
    for (int words = 0; words <= WORDS_MAX; words++)
        measure(&s, argv[1], words, 0, rounds);
    for (int form = NONBLOCKING; form <= LENT; form++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            measure(&s, argv[1], form, sizes[i], rounds);
    check(f, ferry_free(f, s.buffers[ferry_rank(f)]));
    free(s.data);
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
