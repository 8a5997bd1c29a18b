/* Costs: a file with a line "number,seconds,spots" for each sub-domain, in order, after a line with
 * these names. Lines that begin with # say how it was made. */
#include "program.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char header[] = "subdomain,seconds,spots\n";

enum { LINE_BYTES = 512 };

static bool refuse(const front_program *p, long line, const char *what, const char *text)
{
    fprintf(stderr, "front: %s:%ld: '%.*s': expected %s\n", p->options.replay, line,
            (int)strcspn(text, "\n"), text, what);
    return false;
}

/* Reads one line of a sub-domain. */
static bool read_line(front_program *p, const char *text, int32_t index)
{
    int end = 0;
    int32_t number;
    double seconds;
    int64_t spots;
    if (sscanf(text, "%" SCNd32 ",%lf,%" SCNd64 "%n", &number, &seconds, &spots, &end) != 3 ||
        (text[end] != '\n' && text[end] != '\0') || number != index || !(seconds >= 0) ||
        seconds > 1e6 || spots < 1)
        return false;
    p->seconds[index] = seconds;
    p->weights[index] = spots;
    return true;
}

static bool read_file(front_program *p, FILE *file)
{
    char text[LINE_BYTES], what[LINE_BYTES];
    int32_t count = front_domain_count(&p->options.domain), index = -1;
    for (long line = 1; fgets(text, sizeof text, file) != NULL; line++) {
        if (text[0] == '#')
            continue;
        if (index < 0 && strcmp(text, header) != 0)
            return refuse(p, line, "subdomain,seconds,spots", text);
        (void)snprintf(what, sizeof what, "%d, seconds and spots", index);
        if (index == count)
            return refuse(p, line, "no more lines than --subdomains says", text);
        if (index >= 0 && !read_line(p, text, index))
            return refuse(p, line, what, text);
        index++;
    }
    if (ferror(file) || index < count) {
        fprintf(stderr, "front: %s has %d sub-domains: expected %d, as --subdomains says\n",
                p->options.replay, index < 0 ? 0 : index, count);
        return false;
    }
    return true;
}

static bool read_whole(front_program *p)
{
    FILE *file = fopen(p->options.replay, "r");
    if (file == NULL) {
        fprintf(stderr, "front: --replay is '%s', which cannot be read: %s\n", p->options.replay,
                strerror(errno));
        return false;
    }
    bool right = read_file(p, file);
    fclose(file);
    return right;
}

bool front_costs_read(ferry *f, front_program *p)
{
    size_t count = (size_t)front_domain_count(&p->options.domain);
    int32_t right = ferry_rank(f) != 0 || read_whole(p);
    return ferry_broadcast(f, 0, &right, sizeof right) == 0 && right != 0 &&
           ferry_broadcast(f, 0, p->seconds, count * sizeof *p->seconds) == 0 &&
           ferry_broadcast(f, 0, p->weights, count * sizeof *p->weights) == 0;
}

static void write_feature(FILE *file, const front_feature *x)
{
    if (x->radius > 0 || memcmp(x->low, x->high, sizeof x->low) == 0)
        fprintf(file, " --sphere %g,%g,%g,%g,%g", x->low[0], x->low[1], x->low[2], x->radius,
                x->size);
    else
        fprintf(file, " --crack %g,%g,%g,%g,%g,%g,%g", x->low[0], x->low[1], x->low[2], x->high[0],
                x->high[1], x->high[2], x->size);
}

static void write_parameters(FILE *file, const front_options *o, uint64_t tets)
{
    const front_domain *d = &o->domain;
    fprintf(file, "# front --domain %d,%d,%d --subdomains %d,%d,%d --size %g --grading %g",
            d->cubes[0], d->cubes[1], d->cubes[2], d->parts[0], d->parts[1], d->parts[2],
            o->sizing.largest, o->sizing.grading);
    for (int32_t i = 0; i < o->sizing.count; i++)
        write_feature(file, &o->sizing.features[i]);
    fprintf(file, "\n# %" PRIu64 " tetrahedra; seconds: processor time of the mesher\n", tets);
}

static bool write_whole(const front_program *p, const double *seconds, uint64_t tets)
{
    FILE *file = fopen(p->options.record, "w");
    if (file != NULL) {
        write_parameters(file, &p->options, tets);
        fputs(header, file);
        for (int32_t i = 0; i < front_domain_count(&p->options.domain); i++)
            fprintf(file, "%d,%.4f,%" PRId64 "\n", i, seconds[i], p->weights[i]);
    }
    bool failed = file == NULL || ferror(file) != 0;
    if (file != NULL && fclose(file) != 0)
        failed = true;
    if (failed)
        fprintf(stderr, "front: --record is '%s', which cannot be written: %s\n", p->options.record,
                strerror(errno));
    return !failed;
}

bool front_costs_write(ferry *f, front_program *p)
{
    size_t count = (size_t)front_domain_count(&p->options.domain);
    double *seconds = malloc(count * sizeof *seconds);
    uint64_t tets = p->totals.tets;
    int32_t right = seconds != NULL &&
                    ferry_allreduce(f, FERRY_DOUBLE, FERRY_SUM, p->seconds, seconds, count) == 0 &&
                    ferry_allreduce(f, FERRY_UINT64, FERRY_SUM, &tets, &tets, 1) == 0;
    if (right && ferry_rank(f) == 0)
        right = write_whole(p, seconds, tets);
    free(seconds);
    return ferry_broadcast(f, 0, &right, sizeof right) == 0 && right != 0;
}
