/* The fit of two classes: of all places to cut the sorted tasks, the one with the least squared
 * error. Each class has the mean of its tasks, so its work is right whatever the cut (6.2, 6.3).
 *
 * With tasks centred on their mean, a class of n tasks with sums s and q (of squares) has the
 * error q - s * s / n; centring keeps what is subtracted small. */
#include "base/fit.h"

typedef struct sums {
    double first, second; /* of values, of squares */
} sums;

static double class_error(sums s, size_t count)
{
    double error = s.second - s.first * s.first / (double)count;
    return error > 0 ? error : 0;
}

static void fit_add(sums *s, double value, double sign)
{
    s->first += sign * value;
    s->second += sign * value * value;
}

fy_fit fy_fit_classes(const double *seconds, size_t count, double total)
{
    double mean = total / (double)count;
    fy_fit fit = {.uniform = true, .alpha = mean, .beta = mean};
    if (seconds[0] == seconds[count - 1])
        return fit;
    sums below = {0}, above = {0}, best_below = {0};
    for (size_t i = 0; i < count; i++)
        fit_add(&above, seconds[i] - mean, 1);
    fit.uniform = false;
    for (size_t gamma = 1; gamma < count; gamma++) {
        double value = seconds[gamma - 1] - mean;
        fit_add(&below, value, 1);
        fit_add(&above, value, -1);
        double error = class_error(below, gamma) + class_error(above, count - gamma);
        if (gamma > 1 && error >= fit.error)
            continue;
        fit.gamma = gamma;
        fit.error = error;
        best_below = below;
    }
    double light = best_below.first;
    fit.beta = mean + light / (double)fit.gamma;
    fit.alpha = mean - light / (double)(count - fit.gamma);
    return fit;
}
