/* Ping-pong: requests that answer each other. Rank 0 sends buffers of growing size to rank 1, which
 * sends them back. The other ranks wait until rank 0 says that it is over. Prints half the time of
 * a round trip, and checks that each buffer comes back unchanged.
 *
 *     cc pingpong.c $(pkg-config --cflags --libs ferry) -o pingpong
 *     ferry run -n 2 ./pingpong [MESSAGES] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ferry/ferry.h>

enum { BYTES_MAX = 1024 };

static const size_t sizes[] = {16, 32, 64, 128, 256, 512, BYTES_MAX};

typedef struct state {
    ferry_handler ping, pong, finish;
    unsigned char sent[BYTES_MAX];
    size_t size_bytes;
    bool answered, finished, wrong;
} state;

static void ping(ferry *f, int source, const ferry_message *message)
{
    const state *s = ferry_user_data(f);
    const ferry_message answer = {
        .handler = s->pong, .data = message->data, .size_bytes = message->size_bytes};
    if (ferry_request_send(f, source, &answer, NULL) != 0)
        abort();
}

static void pong(ferry *f, int source, const ferry_message *message)
{
    (void)source;
    state *s = ferry_user_data(f);
    s->answered = true;
    s->wrong = s->wrong || message->size_bytes != s->size_bytes ||
               memcmp(message->data, s->sent, s->size_bytes) != 0;
}

static void finish(ferry *f, int source, const ferry_message *message)
{
    (void)source, (void)message;
    ((state *)ferry_user_data(f))->finished = true;
}

static int play(ferry *f, state *s, size_t size_bytes, unsigned long messages)
{
    const ferry_message message = {.handler = s->ping, .data = s->sent, .size_bytes = size_bytes};
    uint64_t start = ferry_now(f);
    s->size_bytes = size_bytes;
    for (unsigned long i = 0; i < messages; i++) {
        s->answered = false;
        s->sent[i % size_bytes]++;
        if (ferry_request_send(f, 1 % ferry_ranks(f), &message, NULL) != 0)
            return 1;
        while (!s->answered)
            if (ferry_wait(f, FERRY_FOREVER) < 0)
                return 1;
    }
    printf("%4zu bytes: %.3f us\n", size_bytes,
           (double)(ferry_now(f) - start) / (2.0 * (double)messages) / 1000);
    return s->wrong ? 1 : 0;
}

static int lead(ferry *f, state *s, unsigned long messages)
{
    int failed = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0] && failed == 0; i++)
        failed = play(f, s, sizes[i], messages);
    if (failed != 0)
        fprintf(stderr, "pingpong: %s\n",
                s->wrong ? "what came back is not what went" : ferry_error_message(f));
    const ferry_message over = {.handler = s->finish};
    return ferry_request_broadcast(f, &over, NULL) == 0 ? failed : 1;
}

static int rank_main(ferry *f, int argc, char **argv)
{
    long messages = argc > 1 ? strtol(argv[1], NULL, 10) : 1000;
    if (messages < 1) {
        fprintf(stderr, "pingpong: MESSAGES is '%s': expected a number from 1\n", argv[1]);
        return 2;
    }
    state s = {.finished = false};
    ferry_user_data_set(f, &s);
    if (ferry_handler_register(f, "ping", ping, &s.ping) != 0 ||
        ferry_handler_register(f, "pong", pong, &s.pong) != 0 ||
        ferry_handler_register(f, "finish", finish, &s.finish) != 0)
        return 1;
    if (ferry_rank(f) == 0)
        return lead(f, &s, (unsigned long)messages);
    while (!s.finished)
        if (ferry_wait(f, FERRY_FOREVER) < 0)
            return 1;
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
