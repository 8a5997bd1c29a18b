/* Output of ranks, line by line, with the rank before each line. A line is written whole, unless it
 * is longer than LINE_MAX_BYTES.
 *
 * The launcher never waits for a reader. It writes only to a file that is ready, and no more at a
 * time than a ready pipe takes. Until the lines of a stream are written, it reads no more from that
 * stream, so the rank waits. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/error.h"
#include "launch/job.h"

#define READ_BYTES 65536u
#define LINE_MAX_BYTES (1u << 20)
#define LABEL_BYTES 16
/* How long to wait for a reader that does not read, when a job has failed. */
#define PATIENCE_MS 500

int fy_stream_open(job_stream *stream, int target_fd, int *write_fd)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return fy_job_no_file("pipe");
    if (fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0) {
        int error =
            fy_error_set(FERRY_ESYSTEM, "reading a pipe without waiting: %s", strerror(errno));
        close(ends[0]);
        close(ends[1]);
        return error;
    }
    *stream = (job_stream){.fd = ends[0], .target_fd = target_fd};
    *write_fd = ends[1];
    return 0;
}

bool fy_stream_pending(const job_stream *stream)
{
    return stream->sent < stream->to_send;
}

static void stream_lose(job_stream *stream, int rank, const char *why)
{
    if (!stream->failed)
        job_say("output of rank %d is lost: %s", rank, why);
    stream->failed = true;
}

/* Appends text to be written. Without memory the text is dropped, and the rank goes on. */
static void label_add(job_stream *stream, int rank, const char *data, size_t size)
{
    if (stream->out_room - stream->to_send < size) {
        size_t room = 2 * stream->to_send + size;
        char *out = realloc(stream->out, room);
        if (out == NULL) {
            stream_lose(stream, rank, strerror(ENOMEM));
            return;
        }
        stream->out = out;
        stream->out_room = room;
    }
    memcpy(stream->out + stream->to_send, data, size);
    stream->to_send += size;
}

static void add_line(job_stream *stream, int rank, const char *line, size_t size)
{
    char label[LABEL_BYTES];
    int length = snprintf(label, LABEL_BYTES, "[%d] ", rank);
    label_add(stream, rank, label, (size_t)length);
    label_add(stream, rank, line, size);
    label_add(stream, rank, "\n", 1);
}

/* How much to write to a ready file without waiting: whole lines, or a piece of a longer one. */
static size_t piece_of(const job_stream *stream)
{
    const char *from = stream->out + stream->sent;
    size_t left = stream->to_send - stream->sent;
    if (left <= PIPE_BUF)
        return left;
    const char *end = memrchr(from, '\n', PIPE_BUF);
    return end != NULL ? (size_t)(end + 1 - from) : PIPE_BUF;
}

/* Writes what can be written now. Returns whether that was all. Text that cannot be written is
 * reported once, unless nobody reads. The rank goes on. */
static bool flush(job *j, job_stream *stream, int rank)
{
    while (fy_stream_pending(stream)) {
        const job_stream **writing = &j->writing[stream->target_fd - STDOUT_FILENO];
        struct pollfd target = {.fd = stream->target_fd, .events = POLLOUT};
        if ((*writing != NULL && *writing != stream) || poll(&target, 1, 0) <= 0)
            return false;
        ssize_t n = write(stream->target_fd, stream->out + stream->sent, piece_of(stream));
        if (n < 0 && (errno == EINTR || errno == EAGAIN))
            return false;
        if (n < 0 && errno != EPIPE)
            stream_lose(stream, rank, strerror(errno));
        stream->sent = n < 0 ? stream->to_send : stream->sent + (size_t)n;
        *writing = stream->out[stream->sent - 1] == '\n' ? NULL : stream;
    }
    stream->sent = stream->to_send = 0;
    return true;
}

/* Moves the whole lines to the output and keeps the rest. The first `seen` bytes have no
 * newline. */
static void take_lines(job_stream *stream, int rank, size_t seen)
{
    size_t start = 0;
    for (;;) {
        size_t from = seen > start ? seen : start;
        const char *end = memchr(stream->line + from, '\n', stream->used - from);
        if (end == NULL)
            break;
        size_t at = (size_t)(end - stream->line);
        add_line(stream, rank, stream->line + start, at - start);
        start = at + 1;
    }
    stream->used -= start;
    memmove(stream->line, stream->line + start, stream->used);
    if (stream->used >= LINE_MAX_BYTES) {
        add_line(stream, rank, stream->line, stream->used);
        stream->used = 0;
    }
}

static bool make_room(job_stream *stream)
{
    if (stream->room - stream->used >= READ_BYTES)
        return true;
    size_t room = stream->used + 2 * READ_BYTES;
    char *line = realloc(stream->line, room);
    if (line == NULL)
        return false;
    stream->line = line;
    stream->room = room;
    return true;
}

static void close_stream(job *j, job_stream *stream, int rank)
{
    close(stream->fd);
    stream->fd = -1;
    if (stream->used > 0)
        add_line(stream, rank, stream->line, stream->used);
    free(stream->line);
    stream->line = NULL;
    stream->used = stream->room = 0;
    (void)flush(j, stream, rank);
}

bool fy_stream_read(job *j, job_stream *stream, int rank)
{
    if (!flush(j, stream, rank) || stream->fd < 0)
        return false;
    if (!make_room(stream) && stream->used == stream->room) {
        close_stream(j, stream, rank);
        return false;
    }
    ssize_t n = read(stream->fd, stream->line + stream->used, stream->room - stream->used);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (n <= 0) {
        close_stream(j, stream, rank);
        return false;
    }
    size_t seen = stream->used;
    stream->used += (size_t)n;
    take_lines(stream, rank, seen);
    return flush(j, stream, rank);
}

/* Reads and writes what is left of one stream, as far as it can. Returns whether something is
 * left. */
static bool label_finish(job *j, job_stream *stream, int rank)
{
    while (fy_stream_read(j, stream, rank)) {
    }
    if (!fy_stream_pending(stream) && stream->fd >= 0)
        close_stream(j, stream, rank);
    return fy_stream_pending(stream);
}

/* A job whose output is lost has failed. */
static void fail_if_lost(job *j)
{
    for (int rank = 0; rank < j->ranks && j->status == 0; rank++)
        if (j->children[rank].streams[0].failed || j->children[rank].streams[1].failed)
            j->status = 1;
}

void fy_streams_end(job *j)
{
    for (;;) {
        struct pollfd set[3] = {{.fd = j->signal_fd, .events = POLLIN},
                                {.fd = -1, .events = POLLOUT},
                                {.fd = -1, .events = POLLOUT}};
        int rank_waits = -1;
        for (int rank = 0; rank < j->ranks; rank++)
            for (int i = 0; i < 2; i++)
                if (label_finish(j, &j->children[rank].streams[i], rank)) {
                    set[1 + i].fd = STDOUT_FILENO + i;
                    rank_waits = rank;
                }
        if (rank_waits < 0) {
            fail_if_lost(j);
            return;
        }
        bool failed = j->status != 0 || j->passed_signal != 0;
        struct signalfd_siginfo info;
        if (poll(set, 3, failed ? PATIENCE_MS : -1) == 0 ||
            (set[0].revents != 0 && read(j->signal_fd, &info, sizeof(info)) > 0)) {
            stream_lose(&j->children[rank_waits].streams[0], rank_waits, "nobody reads it");
            if (j->status == 0)
                j->status = 128 + (int)info.ssi_signo;
            return;
        }
    }
}

bool fy_job_may_say(void)
{
    struct pollfd set = {.fd = STDERR_FILENO, .events = POLLOUT};
    return poll(&set, 1, 0) != 0;
}

void fy_stream_free(const job_stream *stream)
{
    if (stream->fd >= 0)
        close(stream->fd);
    free(stream->line);
    free(stream->out);
}
