/* A line-oriented reader. Each section is a header line and one line per record, as Triangle writes
 * them. Arrays grow as records are read, so a huge declared count costs nothing before the file
 * ends too early and says so. */
#include "poly.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RECORDS_MAX 50000000
#define COORDINATE_MAX 1e12
#define WORD_MAX 64

typedef struct reader {
    const char *at, *end;
    const char *name;
    int32_t line;
    /* The rest of the current record. */
    const char *word, *line_end;
    mesh_log *log;
} reader;

/* Moves to the next line that holds a record; false at the end of the text. */
static bool next_record(reader *r)
{
    while (r->at < r->end) {
        const char *stop = memchr(r->at, '\n', (size_t)(r->end - r->at));
        const char *next = stop != NULL ? stop + 1 : r->end;
        const char *end = stop != NULL ? stop : r->end;
        const char *hash = memchr(r->at, '#', (size_t)(end - r->at));
        r->word = r->at;
        r->line_end = hash != NULL ? hash : end;
        r->at = next;
        r->line++;
        while (r->word < r->line_end && isspace((unsigned char)*r->word)) {
            r->word++;
        }
        if (r->word < r->line_end) {
            return true;
        }
    }
    return false;
}

/* Copies the next word of the record into `word`; false when there is none. */
static bool next_word(reader *r, char word[WORD_MAX])
{
    size_t length = 0;
    while (r->word < r->line_end && (isspace((unsigned char)*r->word) || *r->word == ',')) {
        r->word++;
    }
    while (r->word < r->line_end && !isspace((unsigned char)*r->word) && *r->word != ',') {
        if (length + 1 < WORD_MAX) {
            word[length++] = *r->word == '\0' ? '?' : *r->word;
        }
        r->word++;
    }
    word[length] = '\0';
    return length > 0;
}

static int read_int(reader *r, const char *what, int32_t *out)
{
    char word[WORD_MAX];
    char *end;
    if (!next_word(r, word)) {
        return mesh_fail(r->log, "%s:%d: %s is missing", r->name, r->line, what);
    }
    errno = 0;
    long long value = strtoll(word, &end, 10);
    if (*end != '\0' || errno != 0 || value > INT32_MAX || value < INT32_MIN) {
        return mesh_fail(r->log, "%s:%d: %s is '%s', not a whole number of 32 bits", r->name,
                         r->line, what, word);
    }
    *out = (int32_t)value;
    return 0;
}

/* An integer that may be absent, as markers and attribute counts are in many files. */
static int read_optional_int(reader *r, const char *what, int32_t *out)
{
    reader probe = *r;
    char word[WORD_MAX];
    *out = 0;
    return next_word(&probe, word) ? read_int(r, what, out) : 0;
}

static int read_coordinate(reader *r, const char *what, double *out)
{
    char word[WORD_MAX];
    char *end;
    if (!next_word(r, word)) {
        return mesh_fail(r->log, "%s:%d: %s is missing", r->name, r->line, what);
    }
    double value = strtod(word, &end);
    if (*end != '\0') {
        return mesh_fail(r->log, "%s:%d: %s is '%s', not a number", r->name, r->line, what, word);
    }
    if (!isfinite(value) || fabs(value) > COORDINATE_MAX) {
        return mesh_fail(r->log, "%s:%d: %s is '%s', not between -1e12 and 1e12", r->name, r->line,
                         what, word);
    }
    *out = value;
    return 0;
}

static int read_count(reader *r, const char *what, int32_t *out)
{
    if (!next_record(r)) {
        return mesh_fail(r->log, "%s:%d: the file ends where %s should stand", r->name, r->line,
                         what);
    }
    if (read_int(r, what, out) != 0) {
        return -1;
    }
    if (*out < 0 || *out > RECORDS_MAX) {
        return mesh_fail(r->log, "%s:%d: %s is %d, not between 0 and %d", r->name, r->line, what,
                         *out, RECORDS_MAX);
    }
    return 0;
}

/* Makes room for one more record of `size` bytes behind `used` ones. */
static int grow(void **array, int32_t used, size_t size, mesh_log *log)
{
    if (used != 0 && (used < 16 || (used & (used - 1)) != 0)) {
        return 0;
    }
    void *bigger = realloc(*array, (used == 0 ? 16 : 2 * (size_t)used) * size);
    if (bigger == NULL) {
        return mesh_fail_memory(log);
    }
    *array = bigger;
    return 0;
}

static int record_missing(const reader *r, const char *what, int32_t index, int32_t count)
{
    return mesh_fail(r->log, "%s:%d: the file ends after %d of %d %s", r->name, r->line, index,
                     count, what);
}

static int check_vertex_header(reader *r)
{
    int32_t dimension, attributes, markers;
    if (read_int(r, "the dimension", &dimension) != 0 ||
        read_optional_int(r, "the number of attributes", &attributes) != 0 ||
        read_optional_int(r, "the marker flag", &markers) != 0) {
        return -1;
    }
    if (dimension != 2) {
        return mesh_fail(r->log, "%s:%d: the dimension is %d, not 2", r->name, r->line, dimension);
    }
    if (attributes < 0 || markers < 0 || markers > 1) {
        return mesh_fail(r->log, "%s:%d: %d attributes and %d markers make no sense", r->name,
                         r->line, attributes, markers);
    }
    return 0;
}

static int read_vertex(reader *r, mesh_poly *out, int32_t index)
{
    int32_t number;
    mesh_poly_vertex v = {0.0, 0.0, r->line};
    if (read_int(r, "the vertex number", &number) != 0) {
        return -1;
    }
    if (index == 0) {
        if (number != 0 && number != 1) {
            return mesh_fail(r->log, "%s:%d: the first vertex has number %d, not 0 or 1", r->name,
                             r->line, number);
        }
        out->index_base = number;
    }
    if (number != out->index_base + index) {
        return mesh_fail(r->log, "%s:%d: vertex number %d where %d should follow", r->name, r->line,
                         number, out->index_base + index);
    }
    if (read_coordinate(r, "x", &v.x) != 0 || read_coordinate(r, "y", &v.y) != 0 ||
        grow((void **)&out->vertex, index, sizeof v, r->log) != 0) {
        return -1;
    }
    out->vertex[index] = v;
    out->vertex_count = index + 1;
    return 0;
}

static int read_vertices(reader *r, mesh_poly *out, int32_t count)
{
    if (check_vertex_header(r) != 0) {
        return -1;
    }
    for (int32_t i = 0; i < count; i++) {
        if (!next_record(r)) {
            return record_missing(r, "vertices", i, count);
        }
        if (read_vertex(r, out, i) != 0) {
            return -1;
        }
    }
    return 0;
}

static int read_end(reader *r, const char *what, const mesh_poly *out, int32_t *vertex)
{
    int32_t number;
    if (read_int(r, what, &number) != 0) {
        return -1;
    }
    int64_t index = (int64_t)number - out->index_base;
    if (index < 0 || index >= out->vertex_count) {
        return mesh_fail(r->log, "%s:%d: %s is vertex %d, but vertices are numbered %d to %d",
                         r->name, r->line, what, number, out->index_base,
                         out->index_base + out->vertex_count - 1);
    }
    *vertex = (int32_t)index;
    return 0;
}

static int read_segments(reader *r, mesh_poly *out)
{
    int32_t count = 0;
    if (read_count(r, "the number of segments", &count) != 0) {
        return -1;
    }
    for (int32_t i = 0; i < count; i++) {
        int32_t number;
        if (!next_record(r)) {
            return record_missing(r, "segments", i, count);
        }
        mesh_poly_segment s = {0, 0, r->line};
        if (read_int(r, "the segment number", &number) != 0 ||
            read_end(r, "the segment's start", out, &s.a) != 0 ||
            read_end(r, "the segment's end", out, &s.b) != 0 ||
            grow((void **)&out->segment, i, sizeof s, r->log) != 0) {
            return -1;
        }
        out->segment[i] = s;
        out->segment_count = i + 1;
    }
    return 0;
}

static int read_holes(reader *r, mesh_poly *out)
{
    int32_t count = 0;
    if (read_count(r, "the number of holes", &count) != 0) {
        return -1;
    }
    for (int32_t i = 0; i < count; i++) {
        int32_t number;
        if (!next_record(r)) {
            return record_missing(r, "holes", i, count);
        }
        mesh_poly_vertex h = {0.0, 0.0, r->line};
        if (read_int(r, "the hole number", &number) != 0 ||
            read_coordinate(r, "the hole's x", &h.x) != 0 ||
            read_coordinate(r, "the hole's y", &h.y) != 0 ||
            grow((void **)&out->hole, i, sizeof h, r->log) != 0) {
            return -1;
        }
        out->hole[i] = h;
        out->hole_count = i + 1;
    }
    return 0;
}

static int read_rest(reader *r, mesh_poly *out)
{
    if (read_segments(r, out) != 0 || read_holes(r, out) != 0) {
        return -1;
    }
    if (out->vertex_count < 3 || out->segment_count < 3) {
        return mesh_fail(r->log, "%s: %d vertices and %d segments enclose nothing", r->name,
                         out->vertex_count, out->segment_count);
    }
    return 0;
}

static char *copy_name(const char *name)
{
    size_t size = strlen(name) + 1;
    char *copy = malloc(size);
    if (copy != NULL) {
        memcpy(copy, name, size);
    }
    return copy;
}

static int parse_file(reader *r, mesh_poly *out, int (*elsewhere)(const reader *, mesh_poly *))
{
    int32_t count = 0;
    if (read_count(r, "the number of vertices", &count) != 0) {
        return -1;
    }
    int rc = count == 0 ? elsewhere(r, out) : read_vertices(r, out, count);
    return rc != 0 ? rc : read_rest(r, out);
}

static int no_vertices(const reader *r, mesh_poly *out)
{
    (void)out;
    return mesh_fail(r->log, "%s:%d: the number of vertices is 0", r->name, r->line);
}

static int parse(const char *text, size_t size, const char *name, mesh_poly *out, mesh_log *log,
                 int (*elsewhere)(const reader *, mesh_poly *))
{
    reader r = {text, text + size, name, 0, NULL, NULL, log};
    *out = (mesh_poly){0};
    out->name = copy_name(name);
    int rc = out->name == NULL ? mesh_fail_memory(log) : parse_file(&r, out, elsewhere);
    if (rc != 0) {
        mesh_poly_fini(out);
    }
    return rc;
}

int mesh_poly_parse(const char *text, size_t size, const char *name, mesh_poly *out, mesh_log *log)
{
    return parse(text, size, name, out, log, no_vertices);
}

static int read_stream(FILE *file, const char *path, char **text, size_t *size, mesh_log *log)
{
    size_t room = 0;
    *text = NULL;
    *size = 0;
    for (;;) {
        if (*size == room) {
            room = room == 0 ? 65536 : 2 * room;
            char *bigger = realloc(*text, room);
            if (bigger == NULL) {
                return mesh_fail_memory(log);
            }
            *text = bigger;
        }
        size_t got = fread(*text + *size, 1, room - *size, file);
        *size += got;
        if (got == 0) {
            return ferror(file) ? mesh_fail(log, "%s: %s", path, strerror(errno)) : 0;
        }
    }
}

static int read_file(const char *path, char **text, size_t *size, mesh_log *log)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        return mesh_fail(log, "%s: %s", path, strerror(errno));
    }
    int rc = read_stream(file, path, text, size, log);
    (void)fclose(file);
    if (rc != 0) {
        free(*text);
    }
    return rc;
}

/* The vertices of FILE.poly may stand in FILE.node. */
static int read_node_file(const reader *r, mesh_poly *out)
{
    char path[1024];
    char *text;
    size_t size, stem = strlen(r->name);
    int32_t count = 0;
    if (stem > 5 && strcmp(r->name + stem - 5, ".poly") == 0) {
        stem -= 5;
    }
    if (stem + sizeof ".node" > sizeof path) {
        return mesh_fail(r->log, "%s: the name is too long", r->name);
    }
    memcpy(path, r->name, stem);
    memcpy(path + stem, ".node", sizeof ".node");
    if (read_file(path, &text, &size, r->log) != 0) {
        return -1;
    }
    reader node = {text, text + size, path, 0, NULL, NULL, r->log};
    int rc = read_count(&node, "the number of vertices", &count);
    rc = rc != 0 ? rc : read_vertices(&node, out, count);
    free(text);
    return rc;
}

int mesh_poly_read(const char *path, mesh_poly *out, mesh_log *log)
{
    char *text;
    size_t size;
    *out = (mesh_poly){0};
    if (read_file(path, &text, &size, log) != 0) {
        return -1;
    }
    int rc = parse(text, size, path, out, log, read_node_file);
    free(text);
    return rc;
}

void mesh_poly_fini(mesh_poly *poly)
{
    free(poly->name);
    free(poly->vertex);
    free(poly->segment);
    free(poly->hole);
    *poly = (mesh_poly){0};
}
