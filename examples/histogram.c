/* Histogram: ranks count values in an array that no rank had to size. Element i of rank 0 counts
 * the values i. The array grows when a larger value comes.
 *
 *     cc histogram.c $(pkg-config --cflags --libs ferry-data) -o histogram
 *     ferry run -n 4 ./histogram */
#include <stdint.h>
#include <stdio.h>

#include <ferry/ferry.h>

enum { VALUES = 1000, LARGEST = 20 };

static int count_values(ferry *f, ferry_window *w)
{
    const int64_t one = 1;
    const ferry_window_change add = {FERRY_INT64, FERRY_SUM, &one, 1};
    int error = ferry_window_fence(w);
    for (int i = 0; i < VALUES && error == 0; i++) {
        int value = (i * 7 + ferry_rank(f)) % LARGEST + 1;
        error = ferry_window_accumulate(w, 0, value, &add, NULL);
    }
    return error == 0 ? ferry_window_fence(w) : error;
}

static int rank_main(ferry *f, int argc, char **argv)
{
    ferry_window *w;
    (void)argc, (void)argv;
    int error = ferry_window_create(f, NULL, &w);
    if (error == 0)
        error = count_values(f, w);
    if (error != 0) {
        fprintf(stderr, "%s\n", ferry_error_message(f));
        return 1;
    }
    int64_t sum = 0;
    if (ferry_rank(f) == 0) {
        for (int64_t i = 1; i < (int64_t)ferry_window_length(w); i++) {
            int64_t count = 0;
            error = ferry_window_read(w, i, &count, sizeof(count), NULL);
            sum += error == 0 ? count : 0;
        }
        printf("%d values, counted %lld times\n", (int)ferry_window_length(w) - 1, (long long)sum);
    }
    return ferry_window_free(w) == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
