/* ferry report: draws pictures of runs from the traces that their ranks wrote (FERRY_TRACE). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/file_limit.h"
#include "cmd/cmd.h"
#include "cmd/report/draw.h"
#include "cmd/report/forecast.h"

static const char help[] =
    "usage: ferry report [-o FOLDER] [-d HANDLER] [-s] RUN...\n"
    "\n"
    "Draws what the ranks of one or more runs did. RUN is the folder that FERRY_TRACE named "
    "during\n"
    "the run. Writes report.html, which contains everything, and its parts: bars.svg and load.svg\n"
    "of all runs on one scale; timeline.svg and trace.json (for Perfetto and chrome://tracing) of\n"
    "the first run.\n"
    "\n"
    "  -o, --output FOLDER   where to write; into the first RUN by default\n"
    "  -d, --during HANDLER  draw only the time from the first task of HANDLER to the end of its\n"
    "                        last task\n"
    "  -s, --simulate        also replay each run under four schedulers, as ferry scale does\n"
    "  -h, --help            print this text\n"
    "\n"
    "Exit status: 0; 1 if RUN cannot be read or FOLDER cannot be written; 2 for wrong usage.\n";

enum { RUNS_MAX = 64 };

typedef struct pictures {
    const char *folder, *during; /* during: a handler; NULL: the whole run */
    bool simulate;
    trace_run runs[RUNS_MAX];
    draw_forecast forecasts[RUNS_MAX]; /* without rows if `during` is given */
    int run_count;
} pictures;

static void write_page(FILE *out, const pictures *p)
{
    draw_page(out, p->runs, p->run_count, p->forecasts);
}

static void write_bars(FILE *out, const pictures *p)
{
    draw_bars(out, p->runs, p->run_count);
}

static void write_load(FILE *out, const pictures *p)
{
    draw_load(out, p->runs, p->run_count);
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
    FILE *out = fy_file_create(path, false);
    bool good = out != NULL;
    sigset_t before;
    fy_file_limit_hold(&before);
    if (good) {
        write(out, p);
        good = ferror(out) == 0;
        good = fclose(out) == 0 && good;
    }
    fy_file_limit_release(&before, !good);
    if (!good)
        fprintf(stderr, "ferry report: %s: %s\n", path, fy_file_why());
    return good;
}

static bool pictures_write(const pictures *p)
{
    if (mkdir(p->folder, 0777) != 0 && errno != EEXIST) {
        fprintf(stderr, "ferry report: \"%s\": %s; expected a folder to write to\n", p->folder,
                strerror(errno));
        return false;
    }
    if (!write_file(p, "report.html", write_page) || !write_file(p, "bars.svg", write_bars) ||
        !write_file(p, "load.svg", write_load) || !write_file(p, "timeline.svg", write_timeline) ||
        !write_file(p, "trace.json", write_chrome))
        return false;
    printf("wrote report.html, bars.svg, load.svg, timeline.svg and trace.json to %s\n", p->folder);
    return true;
}

/* Reads the run in `folder`. Once it was read it is one of `runs`, even if the rest fails, so that
 * the caller frees it. */
static bool add_run(pictures *p, const char *folder)
{
    char error[TRACE_ERROR_BYTES];
    trace_run *run = &p->runs[p->run_count];
    bool good = trace_run_read(folder, run, error);
    p->run_count += good;
    if (good)
        trace_strangers_tell("report", folder, run->strangers);
    if (good && p->during != NULL)
        good = trace_run_during(run, p->during, error);
    else if (good)
        good = forecast_make(folder, p->simulate, &p->forecasts[p->run_count - 1], error);
    if (!good)
        fprintf(stderr, "ferry report: %s\n", error);
    return good;
}

int cmd_report(int argc, char **argv)
{
    static pictures p;
    const cmd_option list[] = {{"output", 'o', .text = &p.folder},
                               {"during", 'd', .text = &p.during},
                               {"simulate", 's', .flag = &p.simulate},
                               {.name = NULL}};
    int status = cmd_read_options(argc, argv,
                                  &(cmd_options){.command = "report", .help = help, .list = list});
    if (status != CMD_GO)
        return status;
    if (optind == argc || argc - optind > RUNS_MAX) {
        fprintf(stderr, "ferry report: %d runs: expected 1 to %d folders\n", argc - optind,
                RUNS_MAX);
        return cmd_wrong_usage("report");
    }
    if (p.folder == NULL)
        p.folder = argv[optind];
    bool good = true;
    for (; optind < argc && good; optind++)
        good = add_run(&p, argv[optind]);
    good = good && pictures_write(&p);
    for (int i = 0; i < p.run_count; i++)
        trace_run_fini(&p.runs[i]);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
