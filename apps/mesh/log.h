/* How the mesh library talks to people: notes (repairs it made) while it runs, one error at the
 * end.
 *
 * A mesh_log belongs to its caller; the library borrows it for a call. Threads: one at a time. */
#ifndef MESH_LOG_H
#define MESH_LOG_H

#define MESH_ERROR_MAX 512

typedef struct mesh_log {
    /* Called once per repair with a line of text without newline, lent until it returns. May be
     * NULL. */
    void (*note)(void *arg, const char *line);
    void *arg;
    /* Set when a call fails: the error, with its values, file and line. */
    char error[MESH_ERROR_MAX];
} mesh_log;

/* Sets log->error and returns -1, so that a caller can `return mesh_fail(...)`. `log` may be NULL.
 */
__attribute__((format(printf, 2, 3))) int mesh_fail(mesh_log *log, const char *format, ...);

/* Hands one formatted line to log->note. `log` may be NULL. */
__attribute__((format(printf, 2, 3))) void mesh_note(mesh_log *log, const char *format, ...);

/* Says that memory ran out and returns -1. */
int mesh_fail_memory(mesh_log *log);

#endif
