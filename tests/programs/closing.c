/* Goal: ferry_close closes the rank whatever has failed before, on every rank, and says why it
 * fails. Method: a program that keeps its own main. One rank makes another call than the others, in
 * one of several ways, and all close. Run as ferry run -n 3 closing HOW:
 * - early: rank 1 closes, the others gather
 * - collection: rank 1 closes, the others make a collection
 * - start: rank 1 closes, the others start the gather
 * - kind: rank 1 makes another call
 * - root: ranks name different roots
 * - number: all name a rank that does not exist */
#include <stdio.h>
#include <string.h>

#include <ferry/collection.h>
#include <ferry/ferry.h>

enum { RANKS_MAX = 16 };

static void *make(ferry *f, ferry_element *element, void *arg, const void *bytes, size_t size_bytes)
{
    (void)f, (void)element, (void)bytes, (void)size_bytes;
    return arg;
}

static void ignore(ferry *f, void *data)
{
    (void)f, (void)data;
}

/* Registers handlers of its own: a rank that closes has fewer. */
static int make_collection(ferry *f)
{
    static int value;
    ferry_collection *collection;
    ferry_collection_options options = FERRY_COLLECTION_OPTIONS_DEFAULTS;
    ferry_object_ops ops = FERRY_OBJECT_OPS_DEFAULTS;
    ops.flat_bytes = sizeof(value);
    ops.destroy = ignore;
    options.extents[0] = 1;
    options.ops = &ops;
    options.make = make;
    options.make_arg = &value;
    return ferry_collection_create(f, &options, &collection);
}

static int call(ferry *f, const char *how)
{
    uint64_t in = 1, out[RANKS_MAX];
    ferry_op op;
    ferry_track track = FERRY_TRACK_DEFAULTS;
    const ferry_collective gather = {.size = sizeof(gather),
                                     .kind = FERRY_GATHER,
                                     .in = &in,
                                     .out = out,
                                     .count = sizeof(in),
                                     .type = FERRY_BYTE};
    bool odd = ferry_rank(f) == 1;
    track.op = &op;
    bool closes =
        strcmp(how, "early") == 0 || strcmp(how, "start") == 0 || strcmp(how, "collection") == 0;
    if (odd && closes)
        return 0;
    if (strcmp(how, "collection") == 0)
        return make_collection(f);
    if (strcmp(how, "start") == 0)
        return ferry_collective_start(f, &gather, &track);
    if (strcmp(how, "kind") == 0 && odd)
        return ferry_barrier(f);
    int root = strcmp(how, "root") == 0 ? odd : strcmp(how, "number") == 0 ? RANKS_MAX : 0;
    return ferry_gather(f, root, &in, sizeof(in), out);
}

int main(int argc, char **argv)
{
    ferry *f;
    if (argc != 2 || ferry_open(NULL, &f) != 0 || ferry_ranks(f) > RANKS_MAX)
        return 2;
    int rank = ferry_rank(f), error = call(f, argv[1]);
    if (error != 0)
        fprintf(stderr, "rank %d: %s\n", rank, ferry_error_message(f));
    error = ferry_close(f);
    const char *text = ferry_error_message(NULL);
    if (error != 0)
        fprintf(stderr, "rank %d: close: %s\n", rank, text);
    if (error == 0 || (strstr(text, "rank ") != NULL && strstr(text, "handler") == NULL))
        return 0;
    fprintf(stderr, "closing: WRONG: rank %d: %s does not say why\n", rank, ferry_strerror(error));
    return 3;
}
