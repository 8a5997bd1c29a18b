/* A program that has only what make install gave. */
#include <stdio.h>

#include <ferry/ferry.h>

static int rank_main(ferry *f, int argc, char **argv)
{
    (void)argc;
    (void)argv;
    printf("hello from rank %d of %d, Ferry %s\n", ferry_rank(f), ferry_ranks(f), FERRY_VERSION);
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main);
}
