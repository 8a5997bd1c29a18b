/* Goal: an object whose image a data server cannot read fails its messages with the reason, is
 * kept, and stops nothing. Method: rank 0 is the server of 8 objects, most of them on disk, and
 * the image of one is damaged. The messages to the others run on the engines. When the damage is
 * undone, the object has lost nothing but the message that failed. The job ends with status 1,
 * since it has lost that.
 *
 * Run as FERRY_RANKS=3 [FERRY_THREADS=1] unreadable. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ferry/ferry.h>

#include "../support/check.h"
#include "store/state.h"

enum { OBJECTS = 8, BYTES = 1000, BAD = 2 };

typedef struct account {
    ferry_object_type type;
    ferry_handler touch;
    ferry_object objects[OBJECTS];
    ferry_store *store;
    ferry_handler end;
    off_t bad_offset;
    bool over;
    int touched, ended, errors[OBJECTS];
} account;

static void touch(ferry *f, ferry_object object, void *data, int source, const ferry_message *m)
{
    account *a = ferry_user_data(f);
    uint64_t *values = data;
    (void)object;
    (void)source;
    check(f, values[0] == m->words[0], "data");
    check(f, ferry_rank(f) != 0, "a task runs on the data server");
    values[0] += 100;
    a->touched++;
}

static void on_end(ferry *f, int source, const ferry_message *m)
{
    (void)source;
    (void)m;
    ((account *)ferry_user_data(f))->over = true;
}

static void on_ended(ferry *f, void *arg, const ferry_receipt *receipt)
{
    account *a = ferry_user_data(f);
    *(int *)arg = receipt->error;
    a->ended++;
}

/* Changes a bit of the image that cannot be read, or changes it back. */
static void damage(ferry *f, const account *a)
{
    unsigned char byte = 0;
    check(f, pread(a->store->disk.fd, &byte, 1, a->bad_offset) == 1, "read");
    byte ^= 1;
    check(f, pwrite(a->store->disk.fd, &byte, 1, a->bad_offset) == 1, "write");
}

static void fill(ferry *f, account *a)
{
    for (int i = 0; i < OBJECTS; i++) {
        uint64_t *data = calloc(1, BYTES);
        check(f, data != NULL, "memory");
        data[0] = (uint64_t)i;
        check(f, ferry_object_create(f, a->type, data, &a->objects[i]) == 0, "create");
        check(f, ferry_balance_add(f, a->objects[i], NULL) == 0, "add");
    }
    ferry_store_trim(a->store);
    const fy_record *record = fy_record_here(f, a->objects[BAD]);
    check(f, record != NULL && record->out, "where the object is");
    while (a->store->leaving_bytes != 0)
        (void)ferry_poll(f);
    a->bad_offset = (off_t)record->stored->offset;
    damage(f, a);
}

static void send_all(ferry *f, account *a, uint64_t round)
{
    for (int i = 0; i < OBJECTS; i++) {
        const ferry_message message = {
            .handler = a->touch, .word_count = 1, .words = {(uint64_t)i + 100 * round}};
        ferry_track track = FERRY_TRACK_DEFAULTS;
        track.completed = track.failed = on_ended;
        track.completed_arg = track.failed_arg = &a->errors[i];
        a->errors[i] = 1;
        if (round == 0 || i != BAD)
            check(f, ferry_object_send(f, a->objects[i], &message, &track) == 0, "send");
    }
    while (a->ended < OBJECTS + (round == 0 ? 0 : OBJECTS - 1))
        (void)ferry_poll(f);
}

static void set_up(ferry *f, account *a)
{
    const ferry_object_ops ops = {.size = sizeof ops, .flat_bytes = BYTES};
    ferry_store_options options = FERRY_STORE_OPTIONS_DEFAULTS;
    ferry_percolation_options percolation = FERRY_PERCOLATION_OPTIONS_DEFAULTS;
    options.budget_bytes = (uint64_t)2 * BYTES;
    percolation.servers = 1;
    ferry_user_data_set(f, a);
    check(f, ferry_object_type_register(f, &ops, &a->type) == 0, "type");
    check(f, ferry_object_handler_register(f, "touch", touch, &a->touch) == 0, "handler");
    check(f, ferry_handler_register(f, "end", on_end, &a->end) == 0, "handler");
    check(f, ferry_store_open(f, &options, &a->store) == 0, "store");
    check(f, ferry_store_add(a->store, a->type) == 0, "add");
    check(f, ferry_percolation_start(f, &percolation) == 0, "start");
}

/* The object that could not be read was sent to an engine, which was to read it, or stayed. */
static void check_sent(ferry *f)
{
    ferry_percolation_stats stats = FERRY_PERCOLATION_STATS_DEFAULTS;
    check(f, ferry_percolation_stats_get(f, &stats) == 0, "counts");
    check(f, stats.kept <= 1 && stats.kept + stats.assembled == 2 * OBJECTS - 1, "objects sent");
    check(f, stats.assembled_bytes == stats.assembled * BYTES, "bytes sent");
}

/* The objects come back to the server. */
static void await_objects(ferry *f)
{
    while (ferry_object_count(f) != OBJECTS)
        (void)ferry_poll(f);
}

static void check_server(ferry *f, account *a)
{
    char name[32];
    fill(f, a);
    send_all(f, a, 0);
    for (int i = 0; i < OBJECTS; i++)
        check(f, a->errors[i] == (i == BAD ? FERRY_ESYSTEM : 0), "error");
    damage(f, a);
    await_objects(f); /* a message would run on the engine where its object still is */
    send_all(f, a, 1);
    await_objects(f);
    check_sent(f);
    check(f, ferry_quiesce(f) == FERRY_ELOST, "quiesce");
    (void)snprintf(name, sizeof name, "%016llx", (unsigned long long)a->objects[BAD].word);
    check(f, strstr(ferry_error_message(f), name) != NULL, "name");
    check(f, strstr(ferry_error_message(f), "checksum") != NULL, "cause");
}

static int rank_main(ferry *f, int argc, char **argv)
{
    account a = {.touched = 0};
    (void)argc;
    (void)argv;
    set_up(f, &a);
    if (ferry_rank(f) == 0)
        check_server(f, &a);
    for (int rank = 1; rank < ferry_ranks(f) && ferry_rank(f) == 0; rank++) {
        const ferry_message message = {.handler = a.end};
        check(f, ferry_request_send(f, rank, &message, NULL) == 0, "end");
    }
    while (ferry_rank(f) != 0 && !a.over)
        (void)ferry_poll(f);
    if (ferry_rank(f) == 0)
        printf("unreadable: right\n");
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
