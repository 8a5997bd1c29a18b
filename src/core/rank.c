/* The life of a rank: made over a port, closed with the others, freed. */
#include "core/rank.h"
#include "core/report/report.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "base/sized.h"
#include "core/fail.h"

/* The default part of the machine's memory that all that waits on a rank may take. */
enum { WAITING_PART = 4 };

/* Closes the layers below `count`, the last first. */
static void close_layers(ferry *f, int count)
{
    while (count-- > 0)
        if (fy_layer_at(count)->close != NULL)
            fy_layer_at(count)->close(f);
}

void fy_layers_members(ferry *f)
{
    for (int i = 0; i < FY_LAYERS; i++)
        if (fy_layer_at(i)->members != NULL)
            fy_layer_at(i)->members(f);
}

static int open_layers(ferry *f)
{
    static const _Atomic uint32_t nothing = 0;
    f->watch = &nothing;
    for (int i = 0; i < FY_LAYERS; i++)
        if (fy_layer_at(i)->progress != NULL)
            f->layers_mask |= UINT32_C(1) << i;
    fy_layers_due(f);
    for (int i = 0; i < FY_LAYERS; i++) {
        fy_kinds_set(f, FY_KINDS_OF_CORE + i * FY_KINDS_OF_LAYER, FY_KINDS_OF_LAYER);
        int error = fy_layer_at(i)->open == NULL ? 0 : fy_layer_at(i)->open(f, &f->options);
        if (error != 0) {
            close_layers(f, i);
            return error;
        }
    }
    return 0;
}

static void free_core(ferry *f)
{
    fy_profile_fini(f);
    fy_mail_fini(f);
    fy_ops_fini(f);
    fy_peers_fini(f);
    fy_handlers_fini(f);
    free(f->leaves);
    fy_quiesce_fini(f);
    fy_collectives_fini(f);
    fy_trace_fini(&f->trace);
    fy_trace_file_fini(f);
    fy_queue_set_fini(&f->backlog, &f->packets);
    fy_tags_fini(f);
    while (f->self.head != NULL)
        fy_packet_destroy(&f->packets, fy_queue_unlink(&f->self, NULL));
    while (f->orphans.head != NULL)
        fy_packet_destroy(&f->packets, fy_queue_unlink(&f->orphans, NULL));
    fy_pool_fini(&f->packets);
    fy_pool_fini(&f->broadcasts);
    fy_mutex_fini(&f->control_lock);
    f->head.ops->transport.close(f->head.port);
    if (f->after_close != NULL)
        f->after_close(f->after_close_arg);
    free(f);
}

static int open_core(ferry *f)
{
    int error = fy_profile_init(f);
    if (error == 0)
        error = fy_trace_file_init(f);
    fy_kinds_set(f, 0, FY_KINDS_OF_CORE);
    fy_mail_init(f);
    fy_tags_init(f);
    if (error == 0)
        error = fy_peers_init(f);
    if (error == 0)
        error = fy_collectives_init(f);
    if (error == 0)
        error = fy_quiesce_init(f);
    if (error != 0)
        fy_error_set(error, "open: no memory for peers");
    return error;
}

int fy_rank_create(fy_port *port, const ferry_options *options, ferry **out)
{
    int error = fy_port_check(port);
    if (error != 0)
        return error; /* no function of the port can be called */
    ferry *f = fy_calloc(1, sizeof(*f));
    if (f == NULL) {
        error = fy_error_set(FERRY_ENOMEM, "open: no memory for a rank");
        goto close_port;
    }
    error = fy_mutex_init(&f->control_lock);
    if (error != 0) {
        fy_error_set(error, "open: no lock for a rank");
        goto free_rank;
    }
    f->head.port = port;
    f->head.ops = port->ops;
    f->head.note = port->ops->diagnosis.note != NULL ? port->ops->diagnosis.note(port) : NULL;
    f->head.ops->transport.query(port, &f->info);
    f->head.rank = f->info.rank;
    f->head.ranks = f->info.ranks;
    f->options = *options;
    if (f->options.backlog_bytes == 0)
        f->options.backlog_bytes = FY_BACKLOG_BYTES;
    if (f->options.waiting_bytes == 0)
        f->options.waiting_bytes = fy_memory_bytes() / WAITING_PART;
    f->user_data = options->user_data;
    fy_packet_pool_init(&f->packets);
    fy_request_broadcast_pool_init(&f->broadcasts);
    f->head.account.activity = FERRY_MAIN;
    f->head.account.stamp_ns = f->head.ops->host.now(port);
    error = open_core(f);
    if (error == 0)
        error = open_layers(f);
    if (error != 0) {
        /* A layer leaves its reason in the rank, or on the thread when base found it. */
        if (f->error_text[0] != '\0')
            fy_error_set(error, "%s", f->error_text);
        free_core(f);
        return error;
    }
    *out = f;
    return 0;

free_rank:
    free(f);
close_port:
    port->ops->transport.close(port);
    return error;
}

void fy_rank_destroy(ferry *f)
{
    close_layers(f, FY_LAYERS);
    free_core(f);
}

bool fy_rank_is_drained(const ferry *f)
{
    return f->head.slow_lanes == 0 && f->orphans.head == NULL && f->self.head == NULL &&
           f->tags.count == 0 && f->ops_table.pending == f->ops_table.lazy &&
           f->ops_table.events == NULL && f->collectives.first == NULL;
}

void fy_rank_drain(ferry *f)
{
    fy_patience patience = {0};
    while (!fy_rank_is_drained(f))
        fy_progress_wait(f, FERRY_FOREVER, &patience);
}

static bool goes_on(const ferry *f)
{
    return f->peers.fn != NULL || f->loss.dead == 0;
}

/* The barriers of closing. They do without ranks that have left, and without dead ranks if the
 * program has said that it survives deaths. The others then wait for each other in a quiescence,
 * not in a barrier: ranks that do not close yet may be in a ferry_quiesce of their own, which needs
 * this rank. */
static int closing_barrier(ferry *f)
{
    /* Ranks may learn at different times whether others have joined. */
    bool joins = f->info.starting != 0 && f->info.starting < f->head.ranks;
    if (joins || (f->peers.gone_count != 0 && goes_on(f)))
        return fy_quiesce(f, FY_DOING_CLOSE);
    int error = fy_barrier(f, FY_DOING_CLOSE);
    /* All ranks have made the last barrier, and know of no loss. So no rank needs to be told when
     * another one ends. */
    if (error == 0 && f->closing == FY_CLOSING_LAST && f->peers.gone_count == 0 &&
        f->head.ops->members.end_quietly != NULL)
        f->head.ops->members.end_quietly(f->head.port);
    return error == FERRY_EPEER && goes_on(f) ? fy_quiesce(f, FY_DOING_CLOSE) : error;
}

int fy_rank_close(ferry *f)
{
    if (f->left) { /* ferry_quiesce has refused it */
        fy_ops_cancel(f);
        fy_rank_destroy(f);
        return FERRY_ESTATE;
    }
    f->closing = FY_CLOSING_FIRST;
    fy_account_enter(f, FY_DOING_CLOSE);
    fy_peers_ignore(f);
    f->head.ends = true;
    fy_rank_drain(f);
    int error = closing_barrier(f), written = 0;
    if (error == 0 && f->head.profile != NULL && f->head.profile->wanted)
        written = f->head.profile->printer->profile(f, f->head.profile->path);
    if (written != 0)
        fy_log(f, "%s", f->error_text);
    for (int i = 0; i < FY_LAYERS; i++)
        if (fy_layer_at(i)->drain != NULL)
            fy_layer_at(i)->drain(f);
    /* After the first barrier no main program sends. Frames that handlers have sent meanwhile are
     * taken in before the second. */
    if (error == 0) {
        fy_rank_drain(f);
        f->closing = FY_CLOSING_LAST;
        error = closing_barrier(f);
    }
    /* Frames of the last barrier may have found no room, and others wait for them. */
    fy_patience patience = {0};
    while (error == 0 && f->head.slow_lanes != 0)
        fy_progress_wait(f, FERRY_FOREVER, &patience);
    /* Every launcher reports a dead rank itself, so FERRY_EPEER is not logged here. */
    if (error != 0 && error != FERRY_EPEER)
        fy_log(f, "close: %s: %s", ferry_strerror(error), f->error_text);
    if (error != 0 && f->kept_by_main && !f->left)
        fy_loss_end(f, EXIT_FAILURE);
    int traced = fy_trace_file_write(f);
    error = error != 0 ? error : written != 0 ? written : traced;
    if (error != 0)
        (void)fy_error_set(error, "%s", f->error_text);
    fy_ops_cancel(f);
    fy_rank_destroy(f);
    return error;
}

int ferry_close(ferry *f)
{
    int error = f == NULL ? fy_error_set(FERRY_EINVAL, "close: no rank given")
                          : fy_check_outside(f, "close");
    if (error != 0)
        return error;
    if (f->kept_by_main)
        return fy_fail(f, FERRY_ESTATE, "close: ferry_main closes the rank when it returns");
    return fy_rank_close(f);
}

const char *ferry_version(void)
{
    return FERRY_VERSION;
}

void ferry_abort(ferry *f, int status, const char *reason)
{
    if (status < 0 || status > 255)
        status = EXIT_FAILURE;
    (void)f->head.ops->transport.pending(f->head.port, FY_DATA); /* a forked process ends here */
    fy_log(f, "ends the job with status %d: %s", status,
           reason != NULL ? reason : "no reason given");
    fflush(NULL);
    if (f->abort != NULL)
        f->abort(f->after_close_arg, status);
    if (f->head.ops->members.abort != NULL)
        f->head.ops->members.abort(f->head.port, status);
    _exit(status);
}

int ferry_rank(const ferry *f)
{
    return f->head.rank;
}

int ferry_ranks(const ferry *f)
{
    return f->head.ranks;
}

void *ferry_user_data(const ferry *f)
{
    return f->user_data;
}

void ferry_user_data_set(ferry *f, void *user_data)
{
    f->user_data = user_data;
}

uint64_t ferry_now(const ferry *f)
{
    return f->head.ops->host.now(f->head.port);
}

void ferry_compute(ferry *f, double seconds)
{
    if (seconds > 0)
        f->head.ops->host.advance(f->head.port,
                                  seconds < 1e9 ? (uint64_t)(seconds * 1e9) : (uint64_t)1e18);
}

void fy_layer_state_set(ferry *f, fy_layer layer, void *state)
{
    f->head.layers[layer] = state;
}

int fy_fail(ferry *f, int error, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(f->error_text, sizeof(f->error_text), format, arguments);
    va_end(arguments);
    return error;
}

int fy_read_sized(ferry *f, const char *who, const void *given, void *out, size_t size_bytes)
{
    int error = fy_sized_read(who, given, out, size_bytes);
    return error == 0 ? 0 : fy_fail(f, error, "%s", fy_error_text());
}

int fy_write_sized(ferry *f, const char *who, void *out, const void *from, size_t size_bytes)
{
    int error = fy_sized_write(who, out, from, size_bytes);
    return error == 0 || f == NULL ? error : fy_fail(f, error, "%s", fy_error_text());
}

const char *ferry_error_message(const ferry *f)
{
    return f == NULL || f->error_text[0] == '\0' ? fy_error_text() : f->error_text;
}

void fy_log(const ferry *f, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fy_log_vline(f->head.rank, format, arguments);
    va_end(arguments);
}
