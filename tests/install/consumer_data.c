/* A program of the second library: it cuts a region, and makes a parcel. */
#include <stdio.h>

#include <ferry/cell.h>
#include <ferry/ferry.h>
#include <ferry/mover.h>

static int rank_main(ferry *f, int argc, char **argv)
{
    (void)argc;
    (void)argv;
    ferry_parcel parcel;
    ferry_region region = ferry_region_sized(2, (int64_t[]){3, 4});
    if (ferry_region_size(region) != 12 || ferry_parcel_create(f, 64, &parcel, NULL) != 0 ||
        ferry_parcel_release(f, parcel) != 0) {
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
