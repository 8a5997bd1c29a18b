#include "cmd/report/trace.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_BYTES_MAX = 1 << 30 };

/* Gives the text of a file and its size. NULL, with a line in `error`: it cannot be read. */
static char *read_file(const char *path, size_t *size, char error[TRACE_ERROR_BYTES])
{
    FILE *file = fopen(path, "re");
    char *text = NULL;
    size_t room = 0, used = 0;
    while (file != NULL && !ferror(file) && !feof(file) && used < FILE_BYTES_MAX) {
        if (used == room) {
            char *larger = realloc(text, room = room == 0 ? 1 << 16 : room * 2);
            if (larger == NULL) {
                errno = ENOMEM;
                break;
            }
            text = larger;
        }
        used += fread(text + used, 1, room - used, file);
    }
    bool good = file != NULL && feof(file);
    if (!good)
        (void)snprintf(error, TRACE_ERROR_BYTES, "%s: %s", path,
                       used >= FILE_BYTES_MAX ? "longer than 1 GiB" : strerror(errno));
    if (file != NULL)
        (void)fclose(file);
    if (good) {
        *size = used;
        return text;
    }
    free(text);
    return NULL;
}

static bool read_one(const trace_run *run, int rank, trace_rank *out, bool *absent,
                     char error[TRACE_ERROR_BYTES])
{
    char path[4096];
    size_t size = 0;
    (void)snprintf(path, sizeof path, "%s/rank-%d.trace", run->folder, rank);
    errno = 0;
    char *text = read_file(path, &size, error);
    *absent = text == NULL && (errno == ENOENT || errno == ENOTDIR);
    if (text == NULL)
        return false;
    bool good = trace_parse(text, size, path, out, error);
    free(text);
    if (good && (out->rank != rank || (run->ranks != 0 && out->ranks != run->ranks))) {
        (void)snprintf(error, TRACE_ERROR_BYTES,
                       "%s: is of rank %d of %d; expected rank %d%s: files of two runs in one "
                       "folder?",
                       path, out->rank, out->ranks, rank,
                       run->ranks != 0 ? " of as many as the others" : "");
        trace_rank_fini(out);
        return false;
    }
    return good;
}

/* Reads the number of ranks of the run from the first file that there is. */
static bool find_ranks(trace_run *run, char error[TRACE_ERROR_BYTES])
{
    enum { TRIED = 1024 };
    trace_rank first;
    bool absent = true;
    for (int rank = 0; rank < TRIED && absent; rank++)
        if (read_one(run, rank, &first, &absent, error)) {
            run->ranks = first.ranks;
            trace_rank_fini(&first);
            return true;
        }
    if (absent)
        (void)snprintf(error, TRACE_ERROR_BYTES,
                       "%s: there is no file rank-0.trace; expected the folder that FERRY_TRACE "
                       "named, of a run whose ranks have closed",
                       run->folder);
    return false;
}

/* Whether a file is of another run than that of the first rank. A run's first ranks open together,
 * so one that closed before was of an earlier run. Ranks of one run may have different commands,
 * but not in the simulator, whose runs all begin at the same time. */
static bool is_stranger(const trace_rank *first, const trace_rank *t)
{
    bool differs =
        first->command != NULL && t->command != NULL && strcmp(first->command, t->command) != 0;
    bool simulated = first->port != NULL && strcmp(first->port, "sim") == 0;
    return t->close_ns < first->open_ns || (differs && (simulated || t->open_ns > first->close_ns));
}

static int last_named(const trace_rank *t)
{
    int last = t->rank;
    for (size_t i = 0; i < t->move_count; i++) {
        last = t->moves[i].target > last ? t->moves[i].target : last;
        last = t->moves[i].asker > last ? t->moves[i].asker : last;
    }
    for (size_t i = 0; i < t->trail_count; i++)
        last = t->trail[i].origin > last ? t->trail[i].origin : last;
    return last;
}

/* Leaves out the places after the last rank that the traces know: the job had room for more ranks,
 * and those may never have been started. */
static void leave_out_places(trace_run *run)
{
    int last = 0;
    for (int rank = 0; rank < run->ranks; rank++) {
        int named = run->rank[rank].present ? last_named(&run->rank[rank]) : 0;
        last = named > last ? named : last;
    }
    run->places = run->ranks;
    run->ranks = last < run->places ? last + 1 : run->places;
}

void trace_strangers_tell(const char *command, const char *folder, int strangers)
{
    if (strangers > 0)
        fprintf(stderr,
                "ferry %s: %s: left out %d file%s of another run; expected the files of one run\n",
                command, folder, strangers, strangers == 1 ? "" : "s");
}

/* Files of ranks that this run does not have are of an earlier run, which had more. */
static int count_beyond(const trace_run *run)
{
    int count = 0;
    DIR *folder = opendir(run->folder);
    for (const struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
        char *end = NULL;
        bool named = strncmp(entry->d_name, "rank-", 5) == 0;
        unsigned long rank = named ? strtoul(entry->d_name + 5, &end, 10) : 0;
        count += named && strcmp(end, ".trace") == 0 && rank >= (unsigned long)run->ranks;
    }
    if (folder != NULL)
        (void)closedir(folder);
    return count;
}

bool trace_run_read(const char *folder, trace_run *out, char error[TRACE_ERROR_BYTES])
{
    trace_run run = {.folder = strdup(folder), .start_ns = UINT64_MAX};
    if (run.folder == NULL || !find_ranks(&run, error))
        goto free_run;
    run.rank = calloc((size_t)run.ranks, sizeof *run.rank);
    const trace_rank *first = NULL;
    for (int rank = 0; run.rank != NULL && rank < run.ranks; rank++) {
        trace_rank *t = &run.rank[rank];
        bool absent;
        if (!read_one(&run, rank, t, &absent, error)) {
            if (absent)
                continue;
            goto free_run;
        }
        first = first == NULL ? t : first;
        if (is_stranger(first, t)) {
            trace_rank_fini(t);
            *t = (trace_rank){.present = false};
            run.strangers++;
            continue;
        }
        run.start_ns = t->open_ns < run.start_ns ? t->open_ns : run.start_ns;
        run.end_ns = t->close_ns > run.end_ns ? t->close_ns : run.end_ns;
    }
    if (run.rank != NULL) {
        run.strangers += count_beyond(&run);
        leave_out_places(&run);
        *out = run;
        return true;
    }
    (void)snprintf(error, TRACE_ERROR_BYTES, "%s: no memory for %d ranks", folder, run.ranks);
free_run:
    trace_run_fini(&run);
    return false;
}

void trace_run_fini(trace_run *run)
{
    for (int rank = 0; run->rank != NULL && rank < run->ranks; rank++)
        trace_rank_fini(&run->rank[rank]);
    free(run->rank);
    free(run->folder);
}

uint64_t trace_stat_of(const trace_rank *rank, const char *name)
{
    for (size_t i = 0; i < rank->stat_count; i++)
        if (strcmp(rank->stats[i].name, name) == 0)
            return rank->stats[i].value;
    return 0;
}

static bool has_task(const trace_rank *rank, uint32_t handler)
{
    for (size_t i = 0; i < rank->stretch_count; i++)
        if (rank->stretches[i].kind == TRACE_TASK && rank->stretches[i].handler == handler)
            return true;
    return false;
}

/* The first rank that has tasks of a handler. All ranks number their handlers alike. */
static const char *name_with_tasks(const trace_run *run, uint32_t handler)
{
    for (int rank = 0; rank < run->ranks; rank++)
        if (run->rank[rank].handlers[handler] != NULL && has_task(&run->rank[rank], handler))
            return run->rank[rank].handlers[handler];
    return NULL;
}

void trace_handlers_list(const trace_run *run, char *out, size_t size_bytes)
{
    size_t at = 0;
    for (uint32_t handler = 0; handler < TRACE_HANDLERS_MAX && at < size_bytes; handler++) {
        const char *name = name_with_tasks(run, handler);
        if (name != NULL)
            at += (size_t)snprintf(out + at, size_bytes - at, "%s%s", at > 0 ? ", " : "", name);
    }
    if (at == 0)
        (void)snprintf(out, size_bytes, "none");
}

uint64_t trace_stretch_end(const trace_rank *rank, size_t index)
{
    return index + 1 < rank->stretch_count ? rank->stretches[index + 1].start_ns
                                           : rank->close_ns - rank->open_ns;
}
