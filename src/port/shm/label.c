/* Output of ranks, line by line, with the rank in front. A line is written whole; only one longer
 * than LINE_MAX_BYTES is cut into several. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "port/shm/job.h"

#define READ_BYTES 65536u
#define LINE_MAX_BYTES (1u << 20)
#define LABEL_BYTES 16

int fy_stream_open(job_stream *stream, int target_fd, int *write_fd)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return fy_error_set(FERRY_ESYSTEM, "pipe: %s", strerror(errno));
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

/* What cannot be written is told of once, unless nobody reads; the rank goes on all the same. */
static void write_all(job_stream *stream, int rank, const char *data, size_t size)
{
    while (size > 0) {
        ssize_t n = write(stream->target_fd, data, size);
        if (n < 0 && errno != EINTR) {
            if (errno != EPIPE && !stream->failed)
                fy_log_line(-1, "output of rank %d is lost: %s", rank, strerror(errno));
            stream->failed = true;
            return;
        }
        if (n > 0) {
            data += n;
            size -= (size_t)n;
        }
    }
}

/* Writes label, line and newline in one piece where it fits. */
static void write_line(job_stream *stream, int rank, const char *line, size_t size)
{
    char piece[LABEL_BYTES + 4096];
    int label = snprintf(piece, LABEL_BYTES, "[%d] ", rank);
    if (size > 4095) {
        write_all(stream, rank, piece, (size_t)label);
        write_all(stream, rank, line, size);
        write_all(stream, rank, "\n", 1);
        return;
    }
    memcpy(piece + label, line, size);
    piece[(size_t)label + size] = '\n';
    write_all(stream, rank, piece, (size_t)label + size + 1);
}

/* Writes the whole lines and keeps the rest. `seen`: so much is known to have no newline. */
static void write_lines(job_stream *stream, int rank, size_t seen)
{
    size_t start = 0;
    for (;;) {
        size_t from = seen > start ? seen : start;
        const char *end = memchr(stream->line + from, '\n', stream->used - from);
        if (end == NULL)
            break;
        size_t at = (size_t)(end - stream->line);
        write_line(stream, rank, stream->line + start, at - start);
        start = at + 1;
    }
    stream->used -= start;
    memmove(stream->line, stream->line + start, stream->used);
    if (stream->used >= LINE_MAX_BYTES) {
        write_line(stream, rank, stream->line, stream->used);
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

static void close_stream(job_stream *stream, int rank)
{
    close(stream->fd);
    stream->fd = -1;
    if (stream->used > 0)
        write_line(stream, rank, stream->line, stream->used);
    free(stream->line);
    stream->line = NULL;
    stream->used = stream->room = 0;
}

bool fy_stream_read(job_stream *stream, int rank)
{
    if (stream->fd < 0)
        return false;
    if (!make_room(stream) && stream->used == stream->room) {
        close_stream(stream, rank);
        return false;
    }
    ssize_t n = read(stream->fd, stream->line + stream->used, stream->room - stream->used);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (n <= 0) {
        close_stream(stream, rank);
        return false;
    }
    size_t seen = stream->used;
    stream->used += (size_t)n;
    write_lines(stream, rank, seen);
    return true;
}

void fy_stream_end(job_stream *stream, int rank)
{
    while (fy_stream_read(stream, rank)) {
    }
    if (stream->fd >= 0)
        close_stream(stream, rank);
}
