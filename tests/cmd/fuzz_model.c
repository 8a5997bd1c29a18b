/* Goal: no bytes make the readers of `ferry model` crash or hang, and every error says what was
 * expected. The model's results for any tasks are consistent: no other cut fits better, the two
 * classes have the work of all tasks, and bounds are in order. No schedule ends before the work is
 * done, or later than all of it on one rank. Method: libFuzzer calls this with bytes (FERRY_FUZZ).
 * Without libFuzzer the program makes lists of times, and changes them, from a fixed seed. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/model/model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds, const char *what, const model_tasks *tasks, int ranks)
{
    if (holds)
        return;
    fprintf(stderr, "fuzz_model: %s does not hold for %zu tasks on %d ranks:\n", what, tasks->count,
            ranks);
    for (size_t i = 0; i < tasks->count && i < 64; i++)
        fprintf(stderr, "%.17g\n", tasks->seconds[i]);
    abort();
}

static double error_of_cut(const model_tasks *tasks, size_t first, size_t end)
{
    double sum = 0, error = 0;
    for (size_t i = first; i < end; i++)
        sum += tasks->seconds[i];
    double mean = sum / (double)(end - first);
    for (size_t i = first; i < end; i++)
        error += (tasks->seconds[i] - mean) * (tasks->seconds[i] - mean);
    return error;
}

/* Against every cut, each summed anew. */
static void check_fit(const model_tasks *tasks, const fy_fit *fit)
{
    size_t count = tasks->count;
    double most = tasks->seconds[count - 1];
    double room = 1e-9 * most * most * (double)count;
    double work = fit->beta * (double)fit->gamma + fit->alpha * (double)(count - fit->gamma);
    check(fabs(work - tasks->total) <= 1e-9 * tasks->total, "(6.1)", tasks, 0);
    check(fit->uniform == (tasks->seconds[0] == most), "uniform", tasks, 0);
    for (size_t gamma = 1; gamma < count && !fit->uniform; gamma++) {
        double error = error_of_cut(tasks, 0, gamma) + error_of_cut(tasks, gamma, count);
        check(fit->error <= error + room, "the least error", tasks, 0);
        check(gamma != fit->gamma || fabs(fit->error - error) <= room, "the error", tasks, 0);
    }
}

static void check_prediction(const model_tasks *tasks, const fy_fit *fit, int ranks)
{
    model_parameters p = model_parameters_default();
    double even = fmax(tasks->total / ranks, tasks->seconds[tasks->count - 1]);
    model_prediction none, is;
    check(model_predict(tasks, fit, &p, ranks, FY_PLAY_NONE, &none), "memory", tasks, ranks);
    for (int k = 0; k < FY_PLAY_SCHEDULERS; k++) {
        check(model_predict(tasks, fit, &p, ranks, (model_scheduler)k, &is), "memory", tasks,
              ranks);
        double lower = is.lower.total, upper = is.upper.total;
        check(isfinite(lower) && isfinite(upper), "finite", tasks, ranks);
        check(lower <= is.average && is.average <= upper, "order", tasks, ranks);
        check(lower >= even * (1 - 1e-9), "the work is done", tasks, ranks);
        check(is.played >= even * (1 - 1e-9), "the work is played", tasks, ranks);
        check(is.played <= tasks->total + 1e-3 * (double)(is.migrations + 1), "it ends", tasks,
              ranks);
        check(ranks > 1 || is.migrations == 0, "one rank moves nothing", tasks, ranks);
    }
    check(none.migrations == 0 && none.lower.total == none.upper.total, "none", tasks, ranks);
    check(fabs(none.played - none.lower.total) <= 1e-9 * none.played, "none, played", tasks, ranks);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const int ranks[] = {1, 2, 3, 7, 16};
    char error[MODEL_ERROR_BYTES] = "";
    model_tasks tasks;
    model_parameters p = model_parameters_default();
    char *copy = malloc(size + 1); /* fmemopen takes no const and no size of 0 */
    if (copy == NULL)
        return 0;
    memcpy(copy, data, size);
    copy[size] = '\n';
    FILE *file = fmemopen(copy, size + 1, "r");
    if (file == NULL)
        abort();
    if (model_tasks_parse(file, "fuzz", &tasks, error)) {
        fy_fit fit = model_fit_tasks(&tasks);
        if (tasks.count <= 256 && tasks.total < 1e100 && tasks.total > 1e-100) {
            check_fit(&tasks, &fit);
            for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++)
                check_prediction(&tasks, &fit, ranks[i]);
        }
        model_tasks_fini(&tasks);
    } else if (strncmp(error, "fuzz", 4) != 0 || strstr(error, "xpected") == NULL) {
        abort();
    }
    rewind(file);
    if (!model_parameters_parse(file, "fuzz", &p, error) &&
        (strncmp(error, "fuzz:", 5) != 0 || strstr(error, "xpected") == NULL))
        abort();
    (void)fclose(file);
    free(copy);
    return 0;
}

#ifndef FERRY_FUZZ
static uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

/* One of the distributions of prema.txt 6.4, or times that have nothing to do with each other. */
static double make_time(uint64_t shape, uint64_t at, uint64_t count, uint64_t *random)
{
    double place = (double)at / (double)count;
    switch (shape % 6) {
    case 0:
        return 1 + place;
    case 1:
        return 1 + 3 * place;
    case 2:
        return at * 4 < count ? 2 : 1;
    case 3:
        return place * place;
    case 4:
        return 5;
    default:
        return (double)(next_random(random) % 1000) / 100;
    }
}

static void bytes_of_times(uint64_t *random)
{
    static char text[8192];
    static const char likely[] = "0123456789.-\n smunpe#xif";
    uint64_t count = 1 + next_random(random) % 200, shape = next_random(random);
    size_t used = 0;
    for (uint64_t i = 0; i < count; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%.6g\n",
                                 make_time(shape, i, count, random));
    (void)LLVMFuzzerTestOneInput((const uint8_t *)text, used);
    for (uint64_t n = 1 + next_random(random) % 3; n > 0; n--)
        text[next_random(random) % used] = likely[next_random(random) % (sizeof likely - 1)];
    (void)LLVMFuzzerTestOneInput((const uint8_t *)text, used);
}

int main(void)
{
    enum { ROUNDS = 400 };
    uint64_t random = 11;
    for (int round = 0; round < ROUNDS; round++)
        bytes_of_times(&random);
    static const char machine[] = "latency 2us\nsend 1us\nreceive 1us\nbyte 10ps\nquantum 1ms\n"
                                  "neighbours 3\ntask-bytes 1024\n# end\n";
    for (size_t at = 0; at < sizeof machine - 1; at++)
        for (int byte = 0; byte < 128; byte++) {
            char changed[sizeof machine];
            memcpy(changed, machine, sizeof machine);
            changed[at] = (char)byte;
            (void)LLVMFuzzerTestOneInput((const uint8_t *)changed, sizeof machine - 1);
        }
    return EXIT_SUCCESS;
}
#endif
