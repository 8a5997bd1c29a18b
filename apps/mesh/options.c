#include "options.h"

#include "decompose.h"
#include "sub.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SLICE_MAX = 1000000000 };

void mesh_options_help(void)
{
    puts("usage: ferry run -n RANKS mesh --input FILE.poly [options]\n"
         "\n"
         "Refines a polygon into triangles, in parallel, and balances the load while it runs.\n"
         "\n"
         "  --input FILE            polygon in Triangle's .poly format\n"
         "  --subdomains S          parts that are refined independently (default 64)\n"
         "  --angle DEG             no angle smaller than this, 0 to 32 (default 25)\n"
         "  --size KM               no edge longer than this, in the input's unit (default 10)\n"
         "  --feature X,Y,R,FACTOR  within R of (X, Y) edges are FACTOR times shorter; repeatable\n"
         "  --scheduler NAME        ferry, stealing, diffusion, none, ..., or a path\n"
         "  --work-share W          sub-domains of equal area (0) to equal work (1; default 0.5)\n"
         "  --slice POINTS          a task makes at most so many points (default 0: no limit)\n"
         "  --point-cost US         time of a simulated rank for each point it makes (default 0)\n"
         "  --budget BYTES          of sub-domains in a rank's memory, the rest is on disk: 100M, "
         "2G\n"
         "  --out DIR               writes mesh.vtu, mesh.svg and summary.json there\n"
         "  --check                 verifies the result; the exit status is 1 if it is wrong\n"
         "  --help                  this text");
}

__attribute__((format(printf, 2, 3))) static int bad(bool talk, const char *format, ...)
{
    if (talk) {
        char what[512]; /* one line in one piece: other processes write to this terminal too */
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(what, sizeof what, format, arguments);
        va_end(arguments);
        fprintf(stderr, "mesh: %s; see mesh --help\n", what);
    }
    return -1;
}

static bool read_long(const char *text, long min, long max, long *out)
{
    char *end;
    long value = strtol(text, &end, 10);
    if (end == text || *end != '\0' || value < min || value > max)
        return false;
    *out = value;
    return true;
}

static bool read_double(const char *text, double min, double max, double *out)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end != '\0' || !(value >= min && value <= max))
        return false;
    *out = value;
    return true;
}

/* A number with K, M or G behind it, or none. */
static bool read_bytes(const char *text, uint64_t *out)
{
    static const char letters[] = "KMG";
    char *end;
    double value = strtod(text, &end);
    const char *letter = *end == '\0' ? NULL : strchr(letters, *end);
    if (end == text || (*end != '\0' && (letter == NULL || end[1] != '\0')))
        return false;
    for (const char *l = letters; letter != NULL && l <= letter; l++)
        value *= 1024;
    if (!(value >= 1 && value < 0x1p62))
        return false;
    *out = (uint64_t)value;
    return true;
}

static bool read_feature(const char *text, mesh_feature *out)
{
    double *field[4] = {&out->x, &out->y, &out->radius, &out->factor};
    for (int i = 0; i < 4; i++) {
        char *end;
        *field[i] = strtod(text, &end);
        if (end == text || *end != (i < 3 ? ',' : '\0'))
            return false;
        text = end + 1;
    }
    return true;
}

static int read_option(int option, const char *value, bool talk, mesh_options *out)
{
    switch (option) {
    case 'i':
        out->input = value;
        return 0;
    case 'o':
        out->out = value;
        return 0;
    case 'r':
        out->scheduler = value;
        return 0;
    case 's':
        if (!read_long(value, 1, MESH_SUBDOMAINS_MAX, &out->subdomains))
            return bad(talk, "--subdomains is \"%s\"; expected a number from 1 to %d", value,
                       MESH_SUBDOMAINS_MAX);
        return 0;
    case 'l':
        if (!read_long(value, 0, SLICE_MAX, &out->slice))
            return bad(talk, "--slice is \"%s\"; expected a number from 0 to %d", value, SLICE_MAX);
        return 0;
    case 'p':
        if (!read_double(value, 0, 1e9, &out->point_cost_us))
            return bad(talk, "--point-cost is \"%s\"; expected microseconds from 0 to 1e9", value);
        return 0;
    case 'b':
        if (!read_bytes(value, &out->budget_bytes))
            return bad(talk, "--budget is \"%s\"; expected bytes from 1, such as 100M or 2G",
                       value);
        return 0;
    case 'w':
        if (!read_double(value, 0, 1, &out->work_share))
            return bad(talk, "--work-share is \"%s\"; expected a number from 0 to 1", value);
        return 0;
    case 'a':
        if (!read_double(value, 0, MESH_ANGLE_MAX, &out->angle_deg))
            return bad(talk, "--angle is \"%s\"; expected degrees from 0 to %g", value,
                       MESH_ANGLE_MAX);
        return 0;
    case 'k':
        if (!read_double(value, 1e-9, 1e12, &out->size))
            return bad(talk, "--size is \"%s\"; expected a length above 0", value);
        return 0;
    case 'f':
        if (out->feature_count == MESH_FEATURES_MAX)
            return bad(talk, "more than %d times --feature", MESH_FEATURES_MAX);
        if (!read_feature(value, &out->feature[out->feature_count++]))
            return bad(talk, "--feature is \"%s\"; expected X,Y,RADIUS,FACTOR", value);
        return 0;
    case 'c':
        out->check = true;
        return 0;
    case 'h':
        out->help = true;
        return 0;
    default:
        return -1;
    }
}

int mesh_options_read(int argc, char **argv, bool talk, mesh_options *out)
{
    static const struct option known[] = {
        {"input", required_argument, NULL, 'i'},
        {"subdomains", required_argument, NULL, 's'},
        {"angle", required_argument, NULL, 'a'},
        {"size", required_argument, NULL, 'k'},
        {"feature", required_argument, NULL, 'f'},
        {"scheduler", required_argument, NULL, 'r'},
        {"slice", required_argument, NULL, 'l'},
        {"out", required_argument, NULL, 'o'},
        {"check", no_argument, NULL, 'c'},
        {"work-share", required_argument, NULL, 'w'},
        {"help", no_argument, NULL, 'h'},
        {"budget", required_argument, NULL, 'b'},
        {"point-cost", required_argument, NULL, 'p'},
        {NULL, 0, NULL, 0},
    };
    *out = (mesh_options){.subdomains = 64, .angle_deg = 25, .size = 10, .work_share = 0.5};
    opterr = talk;
    optind = 1;
    int option;
    while ((option = getopt_long(argc, argv, "", known, NULL)) != -1)
        if (read_option(option, optarg, talk, out) != 0)
            return -1;
    if (out->help)
        return 0;
    if (optind < argc)
        return bad(talk, "\"%s\" is not an option", argv[optind]);
    if (out->input == NULL)
        return bad(talk, "--input is missing");
    return 0;
}
