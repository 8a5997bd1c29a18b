#include "sizing.h"

#include <math.h>

/* How far the feature is from the box: its nearest point from the box's nearest. Along each axis
 * the least and the greatest distance from the feature's own box count. */
static double distance(const front_feature *feature, const double low[3], const double high[3])
{
    double least = 0, greatest = 0;
    for (int d = 0; d < 3; d++) {
        double apart = fmax(0, fmax(feature->low[d] - high[d], low[d] - feature->high[d]));
        double reach = fmax(0, fmax(feature->low[d] - low[d], high[d] - feature->high[d]));
        least += apart * apart;
        greatest += reach * reach;
    }
    least = sqrt(least);
    greatest = sqrt(greatest);
    return fmax(0, fmax(least - feature->radius, feature->radius - greatest));
}

double front_sizing_least(const front_sizing *s, const double low[3], const double high[3])
{
    double size = s->largest;
    for (int32_t i = 0; i < s->count; i++) {
        const front_feature *feature = &s->features[i];
        size = fmin(size, feature->size + s->grading * distance(feature, low, high));
    }
    return size;
}
