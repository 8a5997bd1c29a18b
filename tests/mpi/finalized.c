/* Goal: a program that calls MPI_Finalize before ferry_close is told, and one in the right order is
 * not. Method: with `late` each rank finalises MPI, and ends without another call of Ferry. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#include <ferry/ferry.h>

int main(int argc, char **argv)
{
    bool late = argc > 1 && strcmp(argv[1], "late") == 0;
    MPI_Init(&argc, &argv);
    MPI_Comm world = MPI_COMM_WORLD;
    ferry_options options = FERRY_OPTIONS_DEFAULTS;
    options.communicator = &world;
    ferry *f;
    if (ferry_open(&options, &f) != 0 || ferry_quiesce(f) != 0 || (!late && ferry_close(f) != 0)) {
        fprintf(stderr, "%s\n", ferry_error_message(NULL));
        return 1;
    }
    MPI_Finalize();
    printf("finalised\n");
    return 0;
}
