/* Goal: a rank that joins while another leaves loses nothing that it sends to that rank or to its
 * objects: its message is handled, or refused.
 *
 * Rank 1 leaves. With DELAY (simulated ranks only) rank 3 is started first, and rank 1 leaves after
 * so many nanoseconds. Otherwise rank 3 is started when ferry_leave has returned, and rank 1 goes
 * when rank 3 has sent. They tell each other by files (newcomer_sends.sh).
 *
 *   ferry sim -n 3 -m 4 test_object_newcomer_sends request|object FILES [DELAY] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ferry/ferry.h>

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #condition,                     \
                    ferry_error_message(f));                                                       \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

enum { LEAVER = 1, SENT_MAX = 2 };

static const char *files; /* the begin of their names */

static FILE *open_file(const char *what, const char *mode)
{
    char name[512];
    snprintf(name, sizeof(name), "%s.%s", files, what);
    return fopen(name, mode);
}

static bool is_told(const char *what, uint64_t *word)
{
    FILE *file = open_file(what, "r");
    bool told = file != NULL && fread(word, sizeof(*word), 1, file) == 1;
    if (file != NULL)
        fclose(file);
    return told;
}

static void tell(const char *what, uint64_t word)
{
    FILE *file = open_file(what, "a");
    if (file == NULL || fwrite(&word, sizeof(word), 1, file) != 1 || fclose(file) != 0)
        exit(1);
}

/* Time passes, simulated or not, and nothing of Ferry's runs. */
static void await(ferry *f, const char *what)
{
    for (uint64_t word; !is_told(what, &word);) {
        ferry_compute(f, 1e-6);
        usleep(100);
    }
}

static void on_request(ferry *f, int source, const ferry_message *message)
{
    (void)f;
    (void)source;
    tell("handled", message->words[0]);
}

static void on_object(ferry *f, ferry_object object, void *data, int source,
                      const ferry_message *message)
{
    (void)object;
    (void)data;
    on_request(f, source, message);
}

/* The newcomer. A message to an object is refused until it knows who has the object now. */
static void send_some(ferry *f, bool to_object, const ferry_message *given)
{
    ferry_message message = *given;
    uint64_t word, sent = 0;
    while (!is_told("object", &word))
        (void)ferry_wait(f, 1000000);
    ferry_object object = {word};
    for (message.words[0] = 0; message.words[0] < SENT_MAX; message.words[0]++) {
        int error;
        while ((error = to_object ? ferry_object_send(f, object, &message, NULL)
                                  : ferry_request_send(f, LEAVER, &message, NULL)) == FERRY_EPEER &&
               to_object)
            (void)ferry_wait(f, 1000000);
        CHECK(error == 0 || error == FERRY_EPEER);
        sent += error == 0;
        if (message.words[0] == 0)
            tell("sent", 1);
    }
    CHECK(ferry_quiesce(f) == 0);
    FILE *file = open_file("handled", "r");
    for (uint64_t i = 0; i < sent; i++)
        CHECK(file != NULL && fread(&word, sizeof(word), 1, file) == 1);
    if (file != NULL)
        fclose(file);
}

static int leave(ferry *f, ferry_object_type type, const char *delay)
{
    ferry_object object;
    CHECK(ferry_object_create(f, type, calloc(1, 32), &object) == 0);
    tell("object", object.word);
    CHECK(ferry_barrier(f) == 0);
    if (delay != NULL)
        ferry_compute(f, atof(delay) * 1e-9);
    CHECK(ferry_leave(f) == 0);
    tell("left", 1);
    if (delay == NULL)
        await(f, "sent");
    return 0;
}

static int rank_main(ferry *f, int argc, char **argv)
{
    bool to_object = strcmp(argv[1], "object") == 0;
    const char *delay = argc > 3 ? argv[3] : NULL;
    ferry_handler request, to;
    ferry_object_type type;
    ferry_object_ops ops = FERRY_OBJECT_OPS_DEFAULTS;
    ops.name = "thing";
    ops.flat_bytes = 32;
    CHECK(ferry_handler_register(f, "request", on_request, &request) == 0);
    CHECK(ferry_object_handler_register(f, "object", on_object, &to) == 0);
    CHECK(ferry_object_type_register(f, &ops, &type) == 0);
    if (ferry_member_count(f) == 0) {
        const ferry_message message = {.handler = to_object ? to : request, .word_count = 1};
        send_some(f, to_object, &message);
        return 0;
    }
    if (ferry_rank(f) == LEAVER)
        return leave(f, type, delay);
    CHECK(ferry_barrier(f) == 0);
    int first;
    if (ferry_rank(f) == 0) {
        for (uint64_t word; delay == NULL && !is_told("left", &word);)
            (void)ferry_wait(f, 100000);
        CHECK(ferry_spawn(f, 1, NULL, &first) == 0);
    }
    CHECK(ferry_quiesce(f) == 0);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    files = argv[2];
    return ferry_main(argc, argv, rank_main, NULL);
}
