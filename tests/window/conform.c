/* Goal: windows mean the same wherever their ranks are. Method: one program, run with ranks as
 * processes and as threads, which share memory, and in the simulator, where they do not. It has the
 * examples of progressive-messages.txt A.3, each call, refusals, and random operations whose
 * results are known: sums, growth, unique numbers and a counter under the exclusive lock. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ferry/ferry.h>

#include "../support/check_at.h"

enum { ROUNDS = 40, BIG = 100003, CROWD = 4000 };

static ferry_window *create(ferry *f, const ferry_window_value *values, size_t count)
{
    ferry_window_options options = FERRY_WINDOW_OPTIONS_DEFAULTS;
    ferry_window *w = NULL;
    options.values = values;
    options.count = count;
    CHECK(f, ferry_window_create(f, &options, &w) == 0);
    return w;
}

/* The number of this rank's element, which must have one. */
static int64_t own(ferry *f, ferry_window *w, int64_t index)
{
    int64_t number = 0;
    size_t size = 0;
    CHECK(f, ferry_window_read(w, index, &number, sizeof(number), &size) == 0);
    CHECK(f, size == sizeof(number));
    return number;
}

static int put(ferry_window *w, int rank, int64_t index, const void *data, size_t size)
{
    const ferry_window_value value = {data, size};
    return ferry_window_put(w, rank, index, &value, NULL);
}

static int get(ferry_window *w, int rank, int64_t index, void *data, size_t room, size_t *size)
{
    const ferry_window_target target = {data, room, size};
    return ferry_window_get(w, rank, index, &target, NULL);
}

/* The first example of A.3, with as many ranks as there are. */
static void first_example(ferry *f)
{
    const int64_t one = 1, two = 2, list[] = {1, 2, 3};
    const ferry_window_value values[] = {{&one, 8}, {"Text", 4}, {"hash=>5", 7}};
    ferry_window *w = create(f, values, 3);
    const int last = ferry_ranks(f) - 1;
    char text[16];
    size_t size = 99;
    CHECK(f, ferry_window_fence(w) == 0);
    if (ferry_rank(f) == 0)
        CHECK(f, put(w, 0, 4, list, sizeof(list)) == 0);
    if (ferry_rank(f) == last)
        CHECK(f, get(w, 0, -1, text, sizeof(text), &size) == 0);
    if (ferry_rank(f) == last / 2)
        CHECK(f, put(w, 0, 1, &two, 8) == 0);
    const ferry_window_change sum = {FERRY_INT64, FERRY_SUM, &one, 1};
    CHECK(f, ferry_window_accumulate(w, 0, 0, &sum, NULL) == 0);
    CHECK(f, ferry_window_fence(w) == 0);
    if (ferry_rank(f) == last)
        CHECK(f, size == 7 && memcmp(text, "hash=>5", 7) == 0);
    if (ferry_rank(f) == 0) {
        int64_t found[3];
        CHECK(f, ferry_window_length(w) == 5 && own(f, w, 0) == 1 + ferry_ranks(f));
        CHECK(f, own(f, w, 1) == 2);
        CHECK(f, ferry_window_read(w, 3, found, sizeof(found), &size) == 0 && size == 0);
        CHECK(f, ferry_window_read(w, -1, found, sizeof(found), &size) == 0);
        CHECK(f, size == sizeof(list) && memcmp(found, list, size) == 0);
    }
    CHECK(f, ferry_window_free(w) == 0);
}

/* The second: pairs trade data, with epochs between the two alone. */
static void second_example(ferry *f)
{
    ferry_window *w = create(f, NULL, 0);
    const int other = ferry_rank(f) ^ 1;
    for (int round = 0; round < ROUNDS && other < ferry_ranks(f); round++) {
        const int64_t data = ferry_rank(f) * 1000 + round;
        int64_t before = -1;
        size_t size = 0;
        CHECK(f, ferry_window_post(w, &other, 1) == 0);
        CHECK(f, ferry_window_start(w, &other, 1) == 0);
        CHECK(f, put(w, other, 0, &data, 8) == 0);
        CHECK(f, get(w, other, 0, &before, 8, &size) == 0);
        CHECK(f, ferry_window_complete(w) == 0);
        if (round % 2 == 0) {
            CHECK(f, ferry_window_wait(w) == 0);
        } else {
            int done;
            while ((done = ferry_window_test(w)) == 0)
                (void)ferry_wait(f, 100000);
            CHECK(f, done == 1);
        }
        CHECK(f, own(f, w, 0) == other * 1000 + round);
        /* The get saw what was there before the puts of the epoch. */
        CHECK(f, round == 0 ? size == 0 : size == 8 && before == data - 1);
    }
    CHECK(f, ferry_window_wait(w) == FERRY_ESTATE);
    CHECK(f, ferry_window_complete(w) == FERRY_ESTATE);
    CHECK(f, ferry_window_free(w) == 0);
}

/* Every get of a fence epoch sees the arrays as they were, also by indices from the end. */
static void effects_in_order(ferry *f)
{
    const int ranks = ferry_ranks(f), rank = ferry_rank(f);
    ferry_window *w = create(f, NULL, 0);
    CHECK(f, ferry_window_fence(w) == 0);
    for (int64_t round = 1; round <= ROUNDS; round++) {
        int64_t seen[64] = {0}, value = round;
        size_t size[64] = {0};
        for (int i = 1; i <= ranks; i++) {
            int to = (rank + i) % ranks;
            CHECK(f, put(w, to, (round - 1) * ranks + rank, &value, 8) == 0);
            CHECK(f, get(w, to, -1, &seen[to], 8, &size[to]) == 0);
        }
        CHECK(f, ferry_window_fence(w) == 0);
        for (int to = 0; to < ranks; to++)
            CHECK(f, round == 1 ? size[to] == 0 : size[to] == 8 && seen[to] == round - 1);
        CHECK(f, ferry_window_length(w) == (uint64_t)(round * ranks));
    }
    CHECK(f, ferry_window_free(w) == 0);
}

/* All ranks change the same elements, in epochs of locks. */
static void atomics(ferry *f)
{
    const int ranks = ferry_ranks(f);
    const int64_t one = 1;
    const ferry_window_change sum = {FERRY_INT64, FERRY_SUM, &one, 1};
    ferry_window *w = create(f, NULL, 0);
    int64_t last = -1, swapped = 0;
    CHECK(f, ferry_window_lock(w, FERRY_WINDOW_SHARED, 0) == 0);
    for (int i = 0; i < ROUNDS; i++) {
        int64_t old = -1, seen = 0;
        CHECK(f, ferry_window_fetch(w, 0, 0, &sum, &old, NULL) == 0);
        CHECK(f, ferry_window_accumulate(w, 0, 1, &sum, NULL) == 0);
        CHECK(f, ferry_window_flush(w, 0) == 0);
        CHECK(f, old > last && old < (int64_t)ranks * ROUNDS);
        last = old;
        for (bool done = false; !done; seen = old) {
            const int64_t next = seen + 1;
            const ferry_window_swap swap = {&seen, &next, 8};
            CHECK(f, ferry_window_compare_swap(w, 0, 2, &swap, &old, NULL) == 0);
            CHECK(f, ferry_window_flush(w, 0) == 0);
            done = old == seen;
        }
        swapped++;
    }
    CHECK(f, ferry_window_unlock(w, 0) == 0);
    CHECK(f, ferry_barrier(f) == 0);
    if (ferry_rank(f) == 0)
        for (int i = 0; i < 3; i++)
            CHECK(f, own(f, w, i) == (int64_t)ranks * swapped);
    CHECK(f, ferry_window_free(w) == 0);
}

/* All ranks add to the same word without an end, each in its own way: no sum is lost. */
static void crowd(ferry *f)
{
    const int ranks = ferry_ranks(f);
    const int64_t one = 1;
    const ferry_window_change sum = {FERRY_INT64, FERRY_SUM, &one, 1};
    ferry_window_options options = FERRY_WINDOW_OPTIONS_DEFAULTS;
    ferry_window *w = NULL;
    int64_t before; /* written until the epoch ends */
    options.direct = true;
    CHECK(f, ferry_window_create(f, &options, &w) == 0);
    CHECK(f, ferry_window_fence(w) == 0);
    for (int i = 0; i < CROWD; i++) {
        int64_t old = -1, now;
        CHECK(f, ferry_window_fetch(w, 0, 0, &sum, &before, NULL) == 0);
        CHECK(f, ferry_window_accumulate(w, 0, 0, &sum, NULL) == 0);
        if (i % 64 != 0)
            continue;
        CHECK(f, get(w, 0, 0, &old, 8, NULL) == 0);
        CHECK(f, ferry_window_fence(w) == 0);
        now = old + 1;
        const ferry_window_swap swap = {&old, &now, 8};
        int64_t found = -1;
        CHECK(f, ferry_window_compare_swap(w, 0, 0, &swap, &found, NULL) == 0);
        CHECK(f, ferry_window_fence(w) == 0);
        if (found == old)
            CHECK(f, ferry_window_accumulate(w, 0, 1, &sum, NULL) == 0);
    }
    CHECK(f, ferry_window_fence(w) == 0);
    if (ferry_rank(f) == 0)
        CHECK(f, own(f, w, 0) ==
                     (int64_t)ranks * 2 * CROWD + (ferry_window_length(w) == 1 ? 0 : own(f, w, 1)));
    CHECK(f, ferry_window_free(w) == 0);
}

/* Ranks may not differ in the kind of window. */
static void kinds_agree(ferry *f)
{
    ferry_window_options options = FERRY_WINDOW_OPTIONS_DEFAULTS;
    ferry_window *w = NULL;
    options.direct = ferry_rank(f) == 0;
    if (ferry_ranks(f) > 1)
        CHECK(f, ferry_window_create(f, &options, &w) == FERRY_EINVAL && w == NULL);
}

/* A counter that is read and put back under the exclusive lock loses no step. */
static void exclusive(ferry *f)
{
    const int ranks = ferry_ranks(f), target = ranks - 1;
    ferry_window *w = create(f, NULL, 0);
    for (int i = 0; i < ROUNDS; i++) {
        int64_t number = 0;
        size_t size;
        CHECK(f, ferry_window_lock(w, FERRY_WINDOW_EXCLUSIVE, target) == 0);
        CHECK(f, ferry_window_lock(w, FERRY_WINDOW_SHARED, target) == FERRY_ESTATE);
        CHECK(f, get(w, target, 5, &number, 8, &size) == 0);
        CHECK(f, ferry_window_flush(w, target) == 0);
        number++;
        CHECK(f, put(w, target, 5, &number, 8) == 0);
        CHECK(f, ferry_window_unlock(w, target) == 0);
    }
    CHECK(f, ferry_barrier(f) == 0);
    if (ferry_rank(f) == target)
        CHECK(f, own(f, w, 5) == (int64_t)ranks * ROUNDS);
    CHECK(f, ferry_window_free(w) == 0);
}

/* Every rank makes every array longer, with values of many sizes. */
static void growth(ferry *f)
{
    const int ranks = ferry_ranks(f), rank = ferry_rank(f);
    unsigned char *data = malloc(BIG), *seen = malloc(BIG);
    CHECK(f, data != NULL && seen != NULL);
    memset(data, rank + 1, BIG);
    ferry_window *w = create(f, NULL, 0);
    CHECK(f, ferry_window_fence(w) == 0);
    for (int i = 0; i < ROUNDS; i++)
        for (int to = 0; to < ranks; to++)
            CHECK(f,
                  put(w, to, (int64_t)i * i * ranks + rank, data, (size_t)i * BIG / ROUNDS) == 0);
    CHECK(f, ferry_window_fence(w) == 0);
    for (int i = 0; i < ROUNDS; i++) {
        int from = (rank + i) % ranks;
        size_t size = 0, expected = (size_t)i * BIG / ROUNDS;
        CHECK(f, get(w, from, (int64_t)i * i * ranks + from, seen, BIG, &size) == 0);
        CHECK(f, ferry_window_fence(w) == 0);
        CHECK(f, size == expected);
        for (size_t b = 0; b < size; b++)
            CHECK(f, seen[b] == from + 1);
    }
    CHECK(f, ferry_window_free(w) == 0);
    free(data);
    free(seen);
}

/* Operations that are tracked end, once, by their tracks. */
static void tracked(ferry *f)
{
    const int to = (ferry_rank(f) + 1) % ferry_ranks(f);
    const int64_t value = 7;
    int64_t number = 0;
    ferry_op ops[3];
    ferry_track track = FERRY_TRACK_DEFAULTS;
    ferry_window *w = create(f, NULL, 0);
    const ferry_window_value given = {&value, 8};
    const ferry_window_target target = {&number, 4, NULL};
    CHECK(f, ferry_window_fence(w) == 0);
    track.op = &ops[0];
    CHECK(f, ferry_window_put(w, to, 0, &given, &track) == 0);
    CHECK(f, ferry_op_test(f, &ops[0]) == FERRY_EAGAIN);
    track.op = &ops[1];
    CHECK(f, ferry_window_put(w, to, -9, &given, &track) == 0);
    track.op = &ops[2];
    CHECK(f, ferry_window_put(w, to, 1, &given, &track) == 0);
    CHECK(f, ferry_op_cancel(f, &ops[2]) == 0);
    CHECK(f, ferry_window_fence(w) == 0);
    CHECK(f, ferry_op_wait(f, &ops[0]) == 0);
    CHECK(f, ferry_op_wait(f, &ops[1]) == FERRY_ERANGE);
    CHECK(f, strstr(ferry_error_message(f), "window_put: element -9 of rank ") != NULL);
    CHECK(f, own(f, w, 0) == 7 && ferry_window_length(w) == 1);
    /* Too little room, told here or later. */
    track.op = &ops[0];
    int error = ferry_window_get(w, to, 0, &target, &track);
    CHECK(f, (error == 0 ? ferry_op_wait(f, &ops[0]) : error) == FERRY_ETOOLONG);
    CHECK(f, ferry_window_free(w) == 0);
}

/* Waits for the end of an operation that may have ended in its call. */
static int end_of(ferry *f, int error, ferry_op *op)
{
    return error == 0 ? ferry_op_wait(f, op) : error;
}

/* Errors name the call of the program, and its values. */
static void name_mistakes(ferry *f)
{
    const int64_t one = 1;
    const ferry_window_change change = {FERRY_INT64, FERRY_USER, &one, 1};
    ferry_window *w = create(f, NULL, 0);
    CHECK(f, ferry_window_fence(w) == 0);
    CHECK(f, ferry_window_accumulate(w, 0, 0, &change, NULL) == FERRY_EINVAL);
    CHECK(f, strstr(ferry_error_message(f), "type 3 (int64)") != NULL &&
                 strstr(ferry_error_message(f), "reduction 8 (user)") != NULL);
    /* A fence against a barrier: the rank that has called the fence reads its name. */
    if (ferry_ranks(f) > 1) {
        int error = ferry_rank(f) == 0 ? ferry_window_fence(w) : ferry_barrier(f);
        CHECK(f, error == FERRY_EINVAL);
        CHECK(f, ferry_rank(f) != 0 ||
                     strstr(ferry_error_message(f), "rank 0 called ferry_window_fence") != NULL);
    }
    CHECK(f, ferry_window_free(w) == 0);
}

/* Many elements in one operation: each rank writes every third element of the next one, with an own
 * value for each, and reads them back. `direct`: the window. */
static void many(ferry *f, bool direct)
{
    enum { COUNT = 100 };
    const int to = (ferry_rank(f) + 1) % ferry_ranks(f);
    const ferry_track none = FERRY_TRACK_DEFAULTS;
    int64_t values[COUNT][2], back[COUNT];
    size_t sizes[COUNT];
    ferry_op op = {0};
    ferry_track track = none;
    ferry_window_options options = FERRY_WINDOW_OPTIONS_DEFAULTS;
    ferry_window *w = NULL;
    options.direct = direct;
    track.op = &op;
    CHECK(f, ferry_window_create(f, &options, &w) == 0 && ferry_window_fence(w) == 0);
    for (int i = 0; i < COUNT; i++)
        values[i][0] = 1000 * ferry_rank(f) + i;
    ferry_window_range range = {0, 3, COUNT, 8, sizeof(values[0]), NULL};
    CHECK(f, ferry_window_put_strided(w, to, &range, values, &track) == 0);
    CHECK(f, direct || ferry_op_test(f, &op) == FERRY_EAGAIN);
    CHECK(f, ferry_window_fence(w) == 0 && ferry_op_wait(f, &op) == 0);
    CHECK(f, ferry_window_length(w) == 3 * COUNT - 2);
    /* From the last one back; elements between have no value. */
    range = (ferry_window_range){-1, -1, COUNT, 8, 8, sizes};
    memset(back, 0, sizeof(back));
    CHECK(f, ferry_window_get_strided(w, to, &range, back, NULL) == 0);
    CHECK(f, ferry_window_fence(w) == 0);
    for (int i = 0; i < COUNT; i++)
        CHECK(f, sizes[i] == (i % 3 == 0 ? 8 : 0) &&
                     back[i] == (i % 3 == 0 ? values[COUNT - 1 - i / 3][0] : 0));
    ferry_window_put_piece puts[3] = {{1, {"ab", 2}}, {-9999, {"c", 1}}, {2, {NULL, 0}}};
    int told = ferry_window_put_vector(w, to, puts, 1, &track);
    CHECK(f, ferry_window_fence(w) == 0 && end_of(f, told, &op) == 0);
    char text[2] = "";
    ferry_window_get_piece gets[2] = {{1, {text, 2, &sizes[0]}}, {0, {back, 4, NULL}}};
    CHECK(f, end_of(f, ferry_window_get_vector(w, to, gets, 1, &track), &op) == 0);
    CHECK(f, sizes[0] == 2 && memcmp(text, "ab", 2) == 0);
    CHECK(f, end_of(f, ferry_window_get_vector(w, to, gets, 2, &track), &op) == FERRY_ETOOLONG);
    CHECK(f, end_of(f, ferry_window_get_vector(w, to, gets, 0, &track), &op) == 0);
    /* One of three cannot be done, and tells so. */
    told = ferry_window_put_vector(w, to, puts, 3, &track);
    CHECK(f, ferry_window_fence(w) == 0);
    CHECK(f, end_of(f, told, &op) == FERRY_ERANGE);
    told = ferry_window_put_vector(w, to, puts, 3, NULL);
    int later = ferry_window_fence(w);
    CHECK(f, (told != 0 ? told : later) == FERRY_ERANGE);
    /* A range that is refused changes nothing here, and in an ordered window nothing there. */
    range = (ferry_window_range){0, 3, COUNT, 8, sizeof(values[0]), NULL};
    for (int i = 0; i < COUNT; i++)
        values[i][0] = -1;
    if (!direct) {
        CHECK(f, ferry_window_put_strided(w, to, &range, values, &track) == 0);
        CHECK(f, ferry_op_cancel(f, &op) == 0);
        CHECK(f, ferry_window_fence(w) == 0);
        CHECK(f,
              own(f, w, 3) == 1000 * ((ferry_rank(f) + ferry_ranks(f) - 1) % ferry_ranks(f)) + 1);
    }
    range.step = INT64_MAX;
    CHECK(f, ferry_window_put_strided(w, to, &range, values, NULL) == FERRY_EINVAL);
    CHECK(f, ferry_window_get_strided(w, to, NULL, back, NULL) == FERRY_EINVAL);
    CHECK(f, ferry_window_put_vector(w, to, NULL, 1, NULL) == FERRY_EINVAL);
    CHECK(f, ferry_window_put_vector(w, ferry_ranks(f), puts, 1, &track) == FERRY_EINVAL);
    CHECK(f, ferry_window_free(w) == 0);
}

/* A quiescence ends while puts wait for the end of their epoch. */
static void quiet(ferry *f)
{
    enum { WAYS = 3 };
    const int to = (ferry_rank(f) + 1) % ferry_ranks(f);
    const int64_t numbers[WAYS] = {7, 8, 9};
    const ferry_window_value value = {&numbers[0], sizeof(numbers[0])};
    const ferry_window_put_piece piece = {1, {&numbers[1], sizeof(numbers[1])}};
    const ferry_window_range range = {2, 1, 1, sizeof(numbers[2]), 0, NULL};
    ferry_op ops[WAYS];
    ferry_track tracks[WAYS];
    ferry_window *w = create(f, NULL, 0);
    for (int i = 0; i < WAYS; i++) {
        tracks[i] = (ferry_track)FERRY_TRACK_DEFAULTS;
        tracks[i].op = &ops[i];
    }
    CHECK(f, ferry_window_fence(w) == 0);
    CHECK(f, ferry_window_put(w, to, 0, &value, &tracks[0]) == 0);
    CHECK(f, ferry_window_put_vector(w, to, &piece, 1, &tracks[1]) == 0);
    CHECK(f, ferry_window_put_strided(w, to, &range, &numbers[2], &tracks[2]) == 0);
    CHECK(f, ferry_quiesce(f) == 0);
    CHECK(f, ferry_window_length(w) == 0);
    CHECK(f, ferry_window_fence(w) == 0);
    for (int i = 0; i < WAYS; i++) {
        CHECK(f, ferry_op_wait(f, &ops[i]) == 0);
        CHECK(f, own(f, w, i) == numbers[i]);
    }
    CHECK(f, ferry_window_free(w) == 0);
}

/* Gets an element of `rank` into too little memory. Returns whether the call could not tell that
 * yet; then the answer has come. */
static bool get_too_long(ferry *f, ferry_window *w, int rank)
{
    const size_t unknown = 99;
    size_t size = unknown;
    char little[4];
    const int error = get(w, rank, 0, little, sizeof(little), &size);
    CHECK(f, error == 0 || error == FERRY_ETOOLONG);
    while (size == unknown)
        CHECK(f, ferry_wait(f, 1000000) >= 0);
    return error == 0;
}

/* Whether `error` is that of get_too_long, and the text names `call` and `rank`. */
static bool is_blamed(ferry *f, int error, const char *call, int rank)
{
    char text[80];
    (void)snprintf(text, sizeof(text), "%s: an operation on element 0 of rank %d failed", call,
                   rank);
    return error == FERRY_ETOOLONG && strstr(ferry_error_message(f), text) != NULL;
}

/* The error of an operation comes from the call that ends it, not from one for other targets. */
static void blame(ferry *f)
{
    const ferry_window_value value = {"longer", 6};
    const int me = ferry_rank(f), ranks = ferry_ranks(f), next = (me + 1) % ranks;
    ferry_window *w = create(f, &value, 1);
    bool later = false;
    for (int rank = 0; rank < ranks; rank++)
        CHECK(f, ferry_window_lock(w, FERRY_WINDOW_SHARED, rank) == 0);
    for (int rank = 0; rank < ranks; rank++)
        if (rank != me)
            later = get_too_long(f, w, rank);
    CHECK(f, ferry_window_flush(w, me) == 0);
    CHECK(f, ferry_window_post(w, &me, 1) == 0);
    CHECK(f, ferry_window_start(w, &me, 1) == 0);
    CHECK(f, ferry_window_complete(w) == 0);
    CHECK(f, ferry_window_wait(w) == 0);
    for (int rank = ranks - 1; rank >= 0; rank--) {
        const int error = ferry_window_unlock(w, rank);
        CHECK(f, later && rank != me ? is_blamed(f, error, "window_unlock", rank) : error == 0);
    }
    CHECK(f, ferry_window_lock(w, FERRY_WINDOW_SHARED, next) == 0);
    later = get_too_long(f, w, next);
    const int error = ferry_window_fence(w);
    CHECK(f, later ? is_blamed(f, error, "window_fence", next) : error == 0);
    CHECK(f, ferry_window_unlock(w, next) == 0);
    CHECK(f, ferry_window_free(w) == 0);
}

/* Rank 0 creates another kind of window than the others: each names one of the other side. */
static void kinds_differ(ferry *f)
{
    ferry_window_options options = FERRY_WINDOW_OPTIONS_DEFAULTS;
    ferry_window *w;
    const int other = ferry_rank(f) == 0;
    char text[80];
    if (ferry_ranks(f) == 1)
        return;
    options.direct = other == 0;
    (void)snprintf(text, sizeof(text), "`direct` is %d here and %d on rank %d", !other, other,
                   other);
    CHECK(f, ferry_window_create(f, &options, &w) == FERRY_EINVAL);
    CHECK(f, strstr(ferry_error_message(f), text) != NULL);
}

/* Bad calls, and attributes. */
static void refusals(ferry *f)
{
    static const char key[1];
    int value, twice[] = {0, 0};
    const double half = 0.5;
    const ferry_window_change bits = {FERRY_DOUBLE, FERRY_AND, &half, 1};
    const ferry_window_change sum = {FERRY_DOUBLE, FERRY_SUM, &half, 1};
    ferry_window *w = create(f, NULL, 0);
    CHECK(f, put(w, 0, 0, &half, 8) == FERRY_ESTATE);
    CHECK(f, put(w, ferry_ranks(f), 0, &half, 8) == FERRY_EINVAL);
    CHECK(f, ferry_window_unlock(w, 0) == FERRY_ESTATE);
    CHECK(f, ferry_window_start(w, twice, 2) == FERRY_EINVAL);
    CHECK(f, ferry_window_fence(w) == 0);
    CHECK(f, ferry_window_accumulate(w, 0, 0, &bits, NULL) == FERRY_EINVAL);
    if (ferry_rank(f) == 0) {
        CHECK(f, put(w, 0, 0, "abc", 3) == 0);
        CHECK(f, ferry_window_accumulate(w, 0, 0, &sum, NULL) == 0);
    }
    CHECK(f, ferry_window_fence(w) == (ferry_rank(f) == 0 ? FERRY_EINVAL : 0));
    CHECK(f, ferry_window_fence(w) == 0);
    CHECK(f, ferry_window_attribute_get(w, key) == NULL);
    CHECK(f, ferry_window_attribute_delete(w, key) == FERRY_ENOENT);
    CHECK(f, ferry_window_attribute_set(w, key, &value) == 0);
    CHECK(f, ferry_window_attribute_get(w, key) == &value);
    CHECK(f, ferry_window_attribute_delete(w, key) == 0);
    CHECK(f, ferry_window_free(w) == 0);
    CHECK(f, ferry_window_free(NULL) == 0);
}

static int rank_main(ferry *f, int argc, char **argv)
{
    (void)argc, (void)argv;
    first_example(f);
    second_example(f);
    effects_in_order(f);
    atomics(f);
    crowd(f);
    kinds_agree(f);
    exclusive(f);
    growth(f);
    tracked(f);
    name_mistakes(f);
    many(f, false);
    many(f, true);
    quiet(f);
    blame(f);
    kinds_differ(f);
    refusals(f);
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
