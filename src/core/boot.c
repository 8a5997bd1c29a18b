/* Boot: opens the rank of this process, or lets the port start the ranks of a job. The folder
 * port/open chooses the port. */
#include <stdio.h>
#include <stdlib.h>

#include "base/crash.h"
#include "base/env.h"
#include "base/error.h"
#include "base/log.h"
#include "core/options.h"
#include "core/rank.h"
#include "port/open/list.h"

/* Reads the options, and finds the port and its arguments. */
static int boot_prepare(const ferry_options *given, ferry_options *options,
                        fy_port_settings *settings, const fy_port_entry **entry)
{
    int error = fy_options_read(given, options);
    *settings = (fy_port_settings){.heap_bytes = options->heap_bytes,
                                   .ring_slots = options->ring_slots,
                                   .ring_bytes = options->ring_bytes,
                                   .communicator = options->communicator,
                                   .error_set = fy_error_set};
    return error != 0 ? error : fy_port_find(settings, entry);
}

/* Takes the port, also when it fails. */
static int boot_create(fy_port *port, const ferry_options *options, ferry **out)
{
    int error = fy_rank_create(port, options, out);
    if (error == 0 && (*out)->head.rank == 0)
        fy_env_warn_unknown();
    return error;
}

/* If a rank cannot be created, the others would wait for it. So its process ends, and the launcher
 * ends the rest. */
static int open_rank(const fy_port_entry *entry, const fy_port_settings *settings,
                     const ferry_options *options, ferry **out)
{
    fy_port_rank opened = {0};
    int error = entry->open(settings, &opened);
    if (error != 0)
        return error;
    error = boot_create(opened.port, options, out);
    if (error != 0 && opened.forget != NULL)
        opened.forget(opened.job);
    if (error != 0)
        return error;
    (*out)->after_close = opened.leave;
    (*out)->abort = opened.abort;
    (*out)->after_close_arg = opened.job;
    return 0;
}

int ferry_open(const ferry_options *options, ferry **out)
{
    ferry_options o;
    fy_port_settings settings;
    const fy_port_entry *entry;
    if (out == NULL)
        return fy_error_set(FERRY_EINVAL, "open: the result is missing");
    int error = boot_prepare(options, &o, &settings, &entry);
    if (error == 0 && entry->open == NULL)
        error = fy_error_set(FERRY_ELAUNCH,
                             "open: FERRY_PORT=%s runs only programs that call ferry_main: "
                             "it starts the ranks itself",
                             fy_env_get("FERRY_PORT"));
    return error != 0 ? error : open_rank(entry, &settings, &o, out);
}

/* A call of ferry_main, for its ranks. */
typedef struct program {
    int argc;
    char **argv;
    ferry_rank_main *rank_main;
    ferry_options options;
    const fy_port_entry *port;
} program;

static int failed(int rank)
{
    fy_log_line(rank, "%s", fy_error_text());
    return EXIT_FAILURE;
}

/* Runs the program on an open rank, and closes it. A rank that failed leaves without waiting for
 * the others: its status ends the job. */
static int run_and_close(ferry *f, const program *p)
{
    f->kept_by_main = true;
    int status = p->rank_main(f, p->argc, p->argv);
    /* The system keeps only 8 bits. A port would take a negative status for an error of its own. */
    if (status != 0 && (status &= 0xff) == 0)
        status = EXIT_FAILURE;
    if (f->left) {
        fy_ops_cancel(f);
        fy_rank_destroy(f);
        return status;
    }
    if (status != 0) {
        fy_loss_end(f, status);
        f->after_close = NULL; /* it might wait for the others */
        fy_rank_destroy(f);
        return status;
    }
    return fy_rank_close(f) == 0 ? 0 : EXIT_FAILURE;
}

/* A fy_crash_fn. */
static void describe_rank(void *arg, const void *address, char *out, size_t size)
{
    const ferry *f = arg;
    (void)address;
    int length = snprintf(out, size, "rank %d", f->head.rank);
    if (f->head.ops->diagnosis.describe != NULL)
        f->head.ops->diagnosis.describe(f->head.port, out + length, size - (size_t)length);
}

static int run_rank(ferry *f, const program *p)
{
    fy_crash *crash = fy_crash_watch(describe_rank, f);
    int status = run_and_close(f, p);
    fy_crash_unwatch(crash);
    return status;
}

/* A fy_port_main. */
static int run_port_rank(void *arg, fy_port *port)
{
    const program *p = arg;
    fy_port_info info = {.rank = -1};
    if (fy_port_check(port) == 0)
        port->ops->transport.query(port, &info);
    ferry *f;
    if (boot_create(port, &p->options, &f) != 0)
        return failed(info.rank);
    return p->port->tells_crashes ? run_and_close(f, p) : run_rank(f, p);
}

int ferry_main(int argc, char **argv, ferry_rank_main *rank_main, const ferry_options *options)
{
    program p = {.argc = argc, .argv = argv, .rank_main = rank_main};
    fy_port_settings settings;
    ferry *f;
    if (rank_main == NULL) {
        fy_error_set(FERRY_EINVAL, "ferry_main: no function of the rank given");
        return failed(-1);
    }
    if (boot_prepare(options, &p.options, &settings, &p.port) != 0)
        return failed(-1);
    if (p.port->run == NULL)
        return open_rank(p.port, &settings, &p.options, &f) != 0 ? failed(-1) : run_rank(f, &p);
    int status = p.port->run(&settings, run_port_rank, &p);
    return status < 0 ? failed(-1) : status;
}
