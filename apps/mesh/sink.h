/* A file being written. Errors are kept until it is closed. Internal to the output functions. */
#ifndef MESH_SINK_H
#define MESH_SINK_H

#include "log.h"

#include <stdbool.h>
#include <stdio.h>

typedef struct mesh_sink {
    FILE *file;
    const char *path;
} mesh_sink;

/* Opens `path` for writing from its start. A symbolic link of another user is not followed: it
 * could lead to any file of this user's. */
int mesh_sink_open(mesh_sink *s, const char *path, mesh_log *log);

/* Closes; if anything failed, or `failed`, removes the file and returns -1 with log->error. */
int mesh_sink_close(mesh_sink *s, bool failed, mesh_log *log);

__attribute__((format(printf, 2, 3))) void mesh_sink_print(mesh_sink *s, const char *format, ...);

/* Text with XML's special characters replaced; bytes below space become blanks. */
void mesh_sink_xml(mesh_sink *s, const char *text);

/* A JSON string with its quotes. */
void mesh_sink_json(mesh_sink *s, const char *text);

/* "12,345,678", for people. `out` has room for 32 bytes. Returns out. */
const char *mesh_group_digits(long long value, char out[32]);

/* The colour of a rank, as "#rrggbb", mixed with white by `pale` (0 to 1). Returns out. */
const char *mesh_rank_colour(int rank, double pale, char out[8]);

#endif
