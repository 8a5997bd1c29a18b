/* ferry report: pictures of a run from what its ranks wrote under FERRY_TRACE. */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cmd/cmd.h"
#include "cmd/report/draw.h"

static const char help[] =
    "usage: ferry report [-o FOLDER] RUN...\n"
    "\n"
    "Draws what the ranks of a run did. RUN is the folder that FERRY_TRACE named when it ran.\n"
    "Writes report.html, which holds everything, and bars.svg, timeline.svg and trace.json (for\n"
    "Perfetto and chrome://tracing) of the first RUN. Several runs are drawn on one scale.\n"
    "\n"
    "  -o, --output FOLDER  write there; into the first RUN by default\n"
    "  -h, --help           this text\n";

static const struct option long_options[] = {
    {"output", required_argument, NULL, 'o'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

enum { RUNS_MAX = 64 };

typedef struct pictures {
    const char *folder;
    trace_run runs[RUNS_MAX];
    int run_count;
} pictures;

static void write_page(FILE *out, const pictures *p)
{
    draw_page(out, p->runs, p->run_count);
}

static void write_bars(FILE *out, const pictures *p)
{
    draw_bars(out, p->runs, p->run_count);
}

static void write_timeline(FILE *out, const pictures *p)
{
    draw_timeline(out, &p->runs[0]);
}

static void write_chrome(FILE *out, const pictures *p)
{
    draw_chrome(out, &p->runs[0]);
}

static bool write_file(const pictures *p, const char *name,
                       void (*write)(FILE *out, const pictures *p))
{
    char path[4200];
    (void)snprintf(path, sizeof path, "%s/%s", p->folder, name);
    FILE *out = fopen(path, "we");
    bool good = out != NULL;
    if (good) {
        write(out, p);
        good = ferror(out) == 0;
        good = fclose(out) == 0 && good;
    }
    if (!good)
        fprintf(stderr, "ferry report: %s: %s\n", path, strerror(errno));
    return good;
}

static bool write_all(const pictures *p)
{
    if (mkdir(p->folder, 0777) != 0 && errno != EEXIST) {
        fprintf(stderr, "ferry report: %s: %s\n", p->folder, strerror(errno));
        return false;
    }
    if (!write_file(p, "report.html", write_page) || !write_file(p, "bars.svg", write_bars) ||
        !write_file(p, "timeline.svg", write_timeline) ||
        !write_file(p, "trace.json", write_chrome))
        return false;
    printf("wrote report.html, bars.svg, timeline.svg and trace.json to %s\n", p->folder);
    return true;
}

static int wrong_usage(void)
{
    fprintf(stderr, "Try `ferry report --help`.\n");
    return CMD_USAGE_STATUS;
}

int cmd_report(int argc, char **argv)
{
    static pictures p;
    char name[] = "ferry report", error[TRACE_ERROR_BYTES];
    int option, status = 0;
    argv[0] = name;
    while ((option = getopt_long(argc, argv, "o:h", long_options, NULL)) != -1) {
        if (option == 'h') {
            fputs(help, stdout);
            return 0;
        }
        if (option != 'o')
            return wrong_usage();
        p.folder = optarg;
    }
    if (optind == argc || argc - optind > RUNS_MAX) {
        fprintf(stderr, "ferry report: %d runs: expected 1 to %d folders\n", argc - optind,
                RUNS_MAX);
        return wrong_usage();
    }
    if (p.folder == NULL)
        p.folder = argv[optind];
    for (; optind < argc && status == 0; optind++, p.run_count++)
        if (!trace_run_read(argv[optind], &p.runs[p.run_count], error)) {
            fprintf(stderr, "ferry report: %s\n", error);
            status = EXIT_FAILURE;
            break;
        }
    if (status == 0 && !write_all(&p))
        status = EXIT_FAILURE;
    for (int i = 0; i < p.run_count; i++)
        trace_run_fini(&p.runs[i]);
    return status;
}
