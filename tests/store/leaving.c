/* Goal: a rank leaves although one of its objects cannot be read back from disk; the object is
 * lost, and the job hears which and why. Method: rank 1 has 8 objects, most of them on disk, and
 * reads of one fail. It leaves. Rank 0 then has the other 7, and a message to the lost one fails.
 * The job ends with status 1, since it has lost something.
 *
 * Run as FERRY_RANKS=2 [FERRY_THREADS=1] leaving. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ferry/ferry.h>

#include "../support/check.h"
#include "store/state.h"

enum { OBJECTS = 8, BYTES = 1000, LOST = 2 };

typedef struct account {
    ferry_object_type type;
    ferry_handler touch;
    ferry_object objects[OBJECTS];
    int touched, ended, left, errors[OBJECTS];
} account;

static void *unpack(ferry *f, ferry_object object, const void *buffer, size_t size_bytes)
{
    (void)f;
    (void)object;
    void *data = malloc(size_bytes);
    return data == NULL ? NULL : memcpy(data, buffer, size_bytes);
}

static void destroy(ferry *f, void *data)
{
    (void)f;
    free(data);
}

static void touch(ferry *f, ferry_object object, void *data, int source, const ferry_message *m)
{
    account *a = ferry_user_data(f);
    (void)object;
    (void)source;
    check(f, *(uint64_t *)data == m->words[0], "data");
    a->touched++;
}

static void on_ended(ferry *f, void *arg, const ferry_receipt *receipt)
{
    account *a = ferry_user_data(f);
    *(int *)arg = receipt->error;
    a->ended++;
}

static void on_peer(ferry *f, void *arg, const ferry_peer_event *event)
{
    check(f, event->rank == 1 && !event->died, "who has gone");
    ((account *)arg)->left++;
}

/* Where the image stands that cannot be read. */
static uint64_t bad_offset;

static ssize_t bad_read(int fd, void *buffer, size_t size_bytes, off_t offset)
{
    if ((uint64_t)offset != bad_offset)
        return pread(fd, buffer, size_bytes, offset);
    errno = EIO;
    return -1;
}

static void fill(ferry *f, account *a)
{
    ferry_store_options options = FERRY_STORE_OPTIONS_DEFAULTS;
    ferry_store *store = NULL;
    options.budget_bytes = (uint64_t)2 * BYTES;
    check(f, ferry_store_open(f, &options, &store) == 0, "store");
    check(f, ferry_store_add(store, a->type) == 0, "add");
    for (int i = 0; i < OBJECTS; i++) {
        uint64_t *data = calloc(1, BYTES);
        check(f, data != NULL, "memory");
        data[0] = (uint64_t)i;
        check(f, ferry_object_create(f, a->type, data, &a->objects[i]) == 0, "create");
    }
    ferry_store_trim(store);
    const fy_record *record = fy_record_here(f, a->objects[LOST]);
    check(f, record != NULL && record->out, "where the object is");
    bad_offset = record->stored->offset;
    store->disk.read = bad_read;
}

static void send_all(ferry *f, account *a)
{
    for (int i = 0; i < OBJECTS; i++) {
        const ferry_message message = {
            .handler = a->touch, .word_count = 1, .words = {(uint64_t)i}};
        ferry_track track = FERRY_TRACK_DEFAULTS;
        track.completed = track.failed = on_ended;
        track.completed_arg = track.failed_arg = &a->errors[i];
        a->errors[i] = 1;
        int error = ferry_object_send(f, a->objects[i], &message, &track);
        check(f, error == 0 || (error == FERRY_ENOENT && i == LOST), "send");
        if (error != 0)
            on_ended(f, &a->errors[i], &(ferry_receipt){.error = error});
    }
    while (a->ended < OBJECTS)
        (void)ferry_poll(f);
}

static int rank_main(ferry *f, int argc, char **argv)
{
    const ferry_object_ops ops = {
        .size = sizeof ops, .flat_bytes = BYTES, .unpack = unpack, .destroy = destroy};
    account a = {.touched = 0};
    char name[32];
    (void)argc;
    (void)argv;
    ferry_user_data_set(f, &a);
    check(f, ferry_object_type_register(f, &ops, &a.type) == 0, "type");
    check(f, ferry_object_handler_register(f, "touch", touch, &a.touch) == 0, "handler");
    check(f, ferry_peer_watch(f, on_peer, &a) == 0, "watch");
    if (ferry_rank(f) == 1)
        fill(f, &a);
    check(f, ferry_broadcast(f, 1, a.objects, sizeof a.objects) == 0, "broadcast");
    if (ferry_rank(f) == 1) {
        check(f, ferry_leave(f) == 0, "leave");
        return 0;
    }
    while (a.left == 0)
        (void)ferry_poll(f);
    check(f, ferry_object_count(f) == OBJECTS - 1, "count of objects");
    send_all(f, &a);
    check(f, a.touched == OBJECTS - 1, "count of messages");
    for (int i = 0; i < OBJECTS; i++)
        check(f, a.errors[i] == (i == LOST ? FERRY_ENOENT : 0), "error");
    check(f, ferry_quiesce(f) == FERRY_ELOST, "quiesce");
    (void)snprintf(name, sizeof name, "%016llx", (unsigned long long)a.objects[LOST].word);
    check(f, strstr(ferry_error_message(f), name) != NULL, "name");
    check(f, strstr(ferry_error_message(f), strerror(EIO)) != NULL, "cause");
    printf("leaving: right\n");
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
