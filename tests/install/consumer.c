/* A program that has only what make install gave: it asks for its scheduler, and says hello. */
#include <stdio.h>

#include <ferry/ferry.h>

static int rank_main(ferry *f, int argc, char **argv)
{
    (void)argc;
    (void)argv;
    if (ferry_balance_enable(f, true) != 0 || ferry_balance_enable(f, false) != 0) {
        fprintf(stderr, "consumer: %s\n", ferry_error_message(f));
        return 1;
    }
    printf("hello from rank %d of %d, Ferry %s\n", ferry_rank(f), ferry_ranks(f), FERRY_VERSION);
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
