/* Hello: each rank sends a request to the next one, where it runs `greet`.
 *
 *     cc hello.c $(pkg-config --cflags --libs ferry) -o hello
 *     ferry run -n 4 ./hello */
#include <stdio.h>

#include <ferry/ferry.h>

static void greet(ferry *f, int source, const ferry_message *message)
{
    printf("rank %d: rank %d says %d\n", ferry_rank(f), source, (int)message->words[0]);
}

static int rank_main(ferry *f, int argc, char **argv)
{
    (void)argc, (void)argv;
    ferry_handler handler;
    if (ferry_handler_register(f, "greet", greet, &handler) != 0)
        return 1;

    int next = (ferry_rank(f) + 1) % ferry_ranks(f);
    ferry_message message = {.handler = handler, .word_count = 1, .words = {42}};
    if (ferry_request_send(f, next, &message, NULL) != 0) {
        fprintf(stderr, "%s\n", ferry_error_message(f));
        return 1;
    }
    return ferry_quiesce(f) == 0 ? 0 : 1; /* runs handlers until nothing is in flight anywhere */
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
