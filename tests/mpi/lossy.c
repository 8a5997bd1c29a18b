/* Two or more ranks send each other tracked requests with data of three sizes. Each ends well,
 * after its handler has run, or with FERRY_EPEER. Nothing else may happen when a call of MPI fails:
 * lossy.sh compares what the ranks print. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ferry/ferry.h>

enum { ROUNDS = 12, SIZES = 3, RANKS_MAX = 8 };

typedef struct lossy {
    ferry_handler handler;
    int handled[RANKS_MAX], completed[RANKS_MAX];
    bool gone[RANKS_MAX];
} lossy;

static const size_t sizes[SIZES] = {0, 300, 50000};

static void on_request(ferry *f, int source, const ferry_message *message)
{
    lossy *l = ferry_user_data(f);
    const unsigned char *bytes = message->data;
    for (size_t i = 0; i < message->size_bytes; i++)
        if (bytes[i] != (unsigned char)(message->words[0] + i)) {
            fprintf(stderr, "lossy: rank %d: byte %zu of %zu is wrong\n", ferry_rank(f), i,
                    message->size_bytes);
            abort();
        }
    if (message->size_bytes != sizes[message->words[0] % SIZES])
        abort();
    l->handled[source]++;
}

static void send_one(ferry *f, lossy *l, int rank, uint64_t number)
{
    static unsigned char bytes[50000];
    ferry_op op;
    const ferry_track track = {.size = sizeof(track), .op = &op};
    const ferry_message message = {.handler = l->handler,
                                   .word_count = 1,
                                   .words = {number},
                                   .data = bytes,
                                   .size_bytes = sizes[number % SIZES]};
    for (size_t i = 0; i < message.size_bytes; i++)
        bytes[i] = (unsigned char)(number + i);
    int error = ferry_request_send(f, rank, &message, &track);
    if (error == 0)
        error = ferry_op_wait(f, &op);
    if (error != 0 && error != FERRY_EPEER)
        abort();
    l->completed[rank] += error == 0;
    l->gone[rank] = error != 0;
}

static int rank_main(ferry *f, int argc, char **argv)
{
    lossy l = {0};
    int ranks = ferry_ranks(f);
    (void)argc, (void)argv;
    ferry_user_data_set(f, &l);
    if (ferry_handler_register(f, "request", on_request, &l.handler) != 0)
        return 1;
    (void)!ferry_barrier(f);
    for (uint64_t i = 0; i < ROUNDS * SIZES; i++)
        for (int rank = 0; rank < ranks; rank++)
            if (rank != ferry_rank(f) && !l.gone[rank])
                send_one(f, &l, rank, i);
    /* Nobody leaves while another still sends to it. */
    for (int rank = 0; rank < ranks; rank++)
        while (rank != ferry_rank(f) && l.handled[rank] < ROUNDS * SIZES &&
               !ferry_peer_is_gone(f, rank))
            ferry_wait(f, 1000000);
    (void)!ferry_barrier(f);
    for (int rank = 0; rank < ranks; rank++)
        if (rank != ferry_rank(f))
            printf("%d %d %d %d %d\n", ferry_rank(f), rank, l.completed[rank], l.handled[rank],
                   ferry_peer_is_gone(f, rank));
    fflush(stdout);
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
