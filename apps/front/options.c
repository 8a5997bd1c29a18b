#include "program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/parameters.h"

enum { NUMBERS_MAX = 7 };

/* Reads `count` numbers with commas between them, and nothing else. */
static bool read_numbers(const char *text, int count, double out[NUMBERS_MAX])
{
    for (int i = 0; i < count; i++) {
        char *end;
        out[i] = strtod(text, &end);
        if (end == text || *end != (i + 1 < count ? ',' : '\0'))
            return false;
        text = end + 1;
    }
    return true;
}

static bool read_counts(const char *text, int32_t out[3])
{
    double number[NUMBERS_MAX];
    if (!read_numbers(text, 3, number))
        return false;
    for (int d = 0; d < 3; d++) {
        if (!(number[d] >= 1 && number[d] <= FRONT_CUBES_MAX) ||
            number[d] != (double)(int32_t)number[d])
            return false;
        out[d] = (int32_t)number[d];
    }
    return true;
}

static bool take_domain(void *arg, const char *text)
{
    return read_counts(text, ((front_domain *)arg)->cubes);
}

static bool take_parts(void *arg, const char *text)
{
    return read_counts(text, ((front_domain *)arg)->parts);
}

/* Room for one more feature; it counts only once its values are right. */
static front_feature *next_feature(front_sizing *s)
{
    return s->count < FRONT_FEATURES_MAX ? &s->features[s->count] : NULL;
}

static bool is_size(double size)
{
    return size >= 1e-3 && size <= 1;
}

static bool take_sphere(void *arg, const char *text)
{
    front_sizing *s = arg;
    front_feature *feature = next_feature(s);
    double n[NUMBERS_MAX];
    if (feature == NULL || !read_numbers(text, 5, n) || !(n[3] >= 0 && n[3] <= FRONT_CUBES_MAX) ||
        !is_size(n[4]))
        return false;
    memcpy(feature->low, n, sizeof feature->low);
    memcpy(feature->high, n, sizeof feature->high);
    feature->radius = n[3];
    feature->size = n[4];
    s->count++;
    return true;
}

static bool take_crack(void *arg, const char *text)
{
    front_sizing *s = arg;
    front_feature *feature = next_feature(s);
    double n[NUMBERS_MAX];
    if (feature == NULL || !read_numbers(text, 7, n) || !is_size(n[6]))
        return false;
    for (int d = 0; d < 3; d++)
        if (!(n[d] <= n[d + 3]))
            return false;
    memcpy(feature->low, n, sizeof feature->low);
    memcpy(feature->high, n + 3, sizeof feature->high);
    feature->radius = 0;
    feature->size = n[6];
    s->count++;
    return true;
}

static int refuse(ferry *f, const char *what)
{
    if (ferry_rank(f) == 0)
        fprintf(stderr, "front: %s; see front --help\n", what);
    return 2;
}

/* Rules between options. Returns as front_options_read. */
static int check(ferry *f, const front_options *o)
{
    char what[FRONT_TEXT_BYTES];
    const front_domain *d = &o->domain;
    for (int axis = 0; axis < 3; axis++)
        if (d->parts[axis] > d->cubes[axis]) {
            (void)snprintf(what, sizeof what,
                           "--subdomains has %d along axis %d; expected 1 to %d, the cubes there",
                           d->parts[axis], axis, d->cubes[axis]);
            return refuse(f, what);
        }
    if ((double)d->parts[0] * d->parts[1] * d->parts[2] > FRONT_COUNT_MAX) {
        (void)snprintf(what, sizeof what, "--subdomains are more than %d", FRONT_COUNT_MAX);
        return refuse(f, what);
    }
    if (o->replay != NULL && (o->check || o->record != NULL || o->mesher != NULL || o->out != NULL))
        return refuse(f, "--replay makes no mesh; expected it without --check, --out, --record and "
                         "--mesher");
    if (o->repartition && !front_can_repartition())
        return refuse(f, "--repartition needs METIS, which this program was built without");
    return -1;
}

int front_options_read(ferry *f, int argc, char **argv, front_options *out)
{
    *out = (front_options){.domain = {{4, 4, 4}, {4, 4, 4}},
                           .sizing = {.largest = 0.5, .grading = 0.3},
                           .factor = 1,
                           .threshold = 2,
                           .stops = FRONT_COUNT_MAX};
    const parameter table[] = {
        {"domain", "X,Y,Z unit cubes, each 1 to 1000 (4,4,4)", .take = take_domain,
         .arg = &out->domain},
        {"subdomains", "X,Y,Z of them, each 1 to the domain's cubes there (4,4,4)",
         .take = take_parts, .arg = &out->domain},
        {"size", "of edges far from features", 1e-3, 1, .real = &out->sizing.largest},
        {"grading", "growth of the size per distance", 0.05, 1, .real = &out->sizing.grading},
        {"sphere", "X,Y,Z,RADIUS,SIZE, its surface is meshed with SIZE 0.001 to 1; at most 16",
         .take = take_sphere, .arg = &out->sizing},
        {"crack", "X,Y,Z,X,Y,Z,SIZE: two ascending corners, SIZE 0.001 to 1; at most 16",
         .take = take_crack, .arg = &out->sizing},
        {"mesher", "path of a program as apps/front/wire.h says", .text = &out->mesher},
        {"scheduler", "ferry, stealing, diffusion, none, ..., or a path", .text = &out->scheduler},
        {"repartition", "stop all ranks and have METIS divide what is left",
         .flag = &out->repartition},
        {"threshold", "waiting sub-domains of a rank that stops all", 1, 1e6,
         .whole = &out->threshold},
        {"stops", "of all ranks, at most", 0, FRONT_COUNT_MAX, .whole = &out->stops},
        {"hint", "the scheduler, or METIS, knows the expected sizes of meshes", .flag = &out->hint},
        {"check", "verify meshes and interfaces", .flag = &out->check},
        {"out", "folder for the mesh, as VTK files", .text = &out->out},
        {"record", "file that gets the costs of sub-domains", .text = &out->record},
        {"replay", "file of costs; nothing is meshed", .text = &out->replay},
        {"factor", "of the times in --replay", 1e-6, 1e6, .real = &out->factor},
        {0},
    };
    int status = parameters_read(f, argc, argv, "Fills boxes with tetrahedra, in parallel.", table);
    return status >= 0 ? status : check(f, out);
}
