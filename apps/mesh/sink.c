#include "sink.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* True for a link that this user or root made. */
static bool is_trusted(const char *path)
{
    struct stat link;
    return lstat(path, &link) == 0 && (link.st_uid == 0 || link.st_uid == geteuid());
}

int mesh_sink_open(mesh_sink *s, const char *path, mesh_log *log)
{
    const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC;
    int fd = open(path, flags | O_NOFOLLOW, 0666);
    if (fd < 0 && errno == ELOOP) {
        if (!is_trusted(path)) {
            return mesh_fail(log, "%s: it is a symbolic link of another user; expected a file",
                             path);
        }
        fd = open(path, flags, 0666);
    }
    s->path = path;
    s->file = fd < 0 ? NULL : fdopen(fd, "wb");
    if (s->file == NULL) {
        int error = errno;
        if (fd >= 0) {
            (void)close(fd);
        }
        return mesh_fail(log, "%s: %s", path, strerror(error));
    }
    return 0;
}

int mesh_sink_close(mesh_sink *s, bool failed, mesh_log *log)
{
    bool broken = ferror(s->file) != 0;
    errno = 0;
    broken = fclose(s->file) != 0 || broken;
    if (!broken && !failed) {
        return 0;
    }
    (void)remove(s->path);
    if (broken) {
        return mesh_fail(log, "%s: could not be written: %s", s->path,
                         errno != 0 ? strerror(errno) : "output error");
    }
    return -1;
}

void mesh_sink_print(mesh_sink *s, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vfprintf(s->file, format, args);
    va_end(args);
}

void mesh_sink_xml(mesh_sink *s, const char *text)
{
    for (; *text != '\0'; text++) {
        switch (*text) {
        case '<':
            (void)fputs("&lt;", s->file);
            break;
        case '>':
            (void)fputs("&gt;", s->file);
            break;
        case '&':
            (void)fputs("&amp;", s->file);
            break;
        case '"':
            (void)fputs("&quot;", s->file);
            break;
        default:
            (void)fputc((unsigned char)*text < 32 ? ' ' : *text, s->file);
        }
    }
}

void mesh_sink_json(mesh_sink *s, const char *text)
{
    (void)fputc('"', s->file);
    for (; *text != '\0'; text++) {
        if ((unsigned char)*text < 32) {
            (void)fprintf(s->file, "\\u%04x", (unsigned char)*text);
        } else {
            if (*text == '"' || *text == '\\') {
                (void)fputc('\\', s->file);
            }
            (void)fputc(*text, s->file);
        }
    }
    (void)fputc('"', s->file);
}

const char *mesh_group_digits(long long value, char out[32])
{
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%lld", value), at = 0;
    for (int i = 0; i < length; i++) {
        out[at++] = digits[i];
        if ((length - i) % 3 == 1 && i + 1 < length && digits[i] != '-') {
            out[at++] = ',';
        }
    }
    out[at] = '\0';
    return out;
}

/* Okabe and Ito's colours, which people with any colour vision can tell apart; further ranks get
 * them again, paler each time. */
static const uint8_t palette[7][3] = {{0, 114, 178},  {230, 159, 0}, {0, 158, 115}, {204, 121, 167},
                                      {86, 180, 233}, {213, 94, 0},  {240, 228, 66}};

const char *mesh_rank_colour(int rank, double pale, char out[8])
{
    int turn = rank < 0 ? 0 : rank / 7;
    const uint8_t *c = palette[rank < 0 ? 0 : rank % 7];
    double white = pale + (1.0 - pale) * (turn % 3) * 0.25;
    unsigned mixed[3];
    for (int i = 0; i < 3; i++) {
        mixed[i] = (unsigned)(c[i] + (255 - c[i]) * white) & 255u;
    }
    (void)snprintf(out, 8, "#%02x%02x%02x", mixed[0], mixed[1], mixed[2]);
    return out;
}
