/* The mesher's standard input and output are one socket. It ends when the rank closes its side,
 * also when the rank is killed. */
#include "mesher.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "wire.h"

extern char **environ;

/* Starts the program with `theirs` as its standard input and output. 0 or an errno. */
static int spawn(front_mesher *m, int theirs)
{
    posix_spawn_file_actions_t actions;
    char *arguments[] = {(char *)m->path, NULL};
    int error = posix_spawn_file_actions_init(&actions);
    if (error != 0)
        return error;
    error = posix_spawn_file_actions_adddup2(&actions, theirs, STDIN_FILENO);
    if (error == 0)
        error = posix_spawn_file_actions_adddup2(&actions, theirs, STDOUT_FILENO);
    if (error == 0)
        error = posix_spawn(&m->pid, m->path, &actions, NULL, arguments, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    return error;
}

static bool start(front_mesher *m, char *error)
{
    int ends[2];
    int failure = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0 ? errno : 0;
    if (failure == 0) {
        failure = spawn(m, ends[1]);
        close(ends[1]);
        if (failure != 0)
            close(ends[0]);
    }
    if (failure != 0) {
        m->pid = 0;
        (void)snprintf(error, FRONT_TEXT_BYTES, "the mesher %s cannot be started: %s", m->path,
                       strerror(failure));
        return false;
    }
    m->socket = ends[0];
    return true;
}

/* Closes the mesher's socket and waits until it has gone. Returns how it ended. */
static int reap(front_mesher *m)
{
    int status = 0;
    pid_t pid = m->pid;
    m->pid = 0;
    close(m->socket);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    return status;
}

/* The mesher has ended before its answer did. */
static bool has_ended(front_mesher *m, char *error)
{
    int status = reap(m);
    if (WIFSIGNALED(status))
        (void)snprintf(error, FRONT_TEXT_BYTES, "the mesher %s was ended by signal %d", m->path,
                       WTERMSIG(status));
    else
        (void)snprintf(error, FRONT_TEXT_BYTES,
                       "the mesher %s ended with status %d instead of an answer", m->path,
                       WEXITSTATUS(status));
    return false;
}

/* There is no memory for the mesh, which stays in the socket. So the mesher is ended. */
static bool is_too_large(front_mesher *m, const front_answer *head, char *error)
{
    (void)kill(m->pid, SIGKILL);
    (void)reap(m);
    (void)snprintf(error, FRONT_TEXT_BYTES,
                   "no memory for the mesh of %s: %d points and %d tetrahedra", m->path,
                   head->points, head->tets);
    return false;
}

/* The mesher sends something that is no answer. It is ended: nothing says that it would end. */
static bool is_foreign(front_mesher *m, char *error)
{
    (void)kill(m->pid, SIGKILL);
    (void)reap(m);
    (void)snprintf(error, FRONT_TEXT_BYTES,
                   "%s gave no answer of a mesher; expected a program that keeps to wire.h",
                   m->path);
    return false;
}

void front_mesher_stop(front_mesher *m)
{
    if (m->pid != 0)
        (void)reap(m);
}

static bool put(const front_mesher *m, const void *from, size_t size)
{
    const char *at = from;
    while (size > 0) {
        ssize_t sent = send(m->socket, at, size, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return false;
        at += sent;
        size -= (size_t)sent;
    }
    return true;
}

static bool take(const front_mesher *m, void *to, size_t size)
{
    char *at = to;
    while (size > 0) {
        ssize_t got = recv(m->socket, at, size, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        at += got;
        size -= (size_t)got;
    }
    return true;
}

static bool put_points(const front_mesher *m, const front_surface *surface)
{
    size_t count = 3 * (size_t)surface->point_count;
    double *at = malloc((count + 1) * sizeof *at);
    for (size_t i = 0; at != NULL && i < count; i++)
        at[i] = (double)surface->points[i / 3][i % 3] / FRONT_UNIT;
    bool sent = at != NULL && put(m, at, count * sizeof *at);
    free(at);
    return sent;
}

static bool ask(const front_mesher *m, const front_surface *surface, const front_spots *spots,
                const front_sizing *sizing)
{
    const front_request head = {.magic = FRONT_REQUEST,
                                .points = surface->point_count,
                                .triangles = surface->triangle_count,
                                .spots = spots->count,
                                .largest = sizing->largest,
                                .grading = sizing->grading};
    return put(m, &head, sizeof head) && put_points(m, surface) &&
           put(m, surface->triangles,
               (size_t)surface->triangle_count * sizeof *surface->triangles) &&
           put(m, spots->spots, (size_t)spots->count * sizeof *spots->spots);
}

/* Takes the mesh that has been announced. */
static bool take_mesh(const front_mesher *m, front_mesh *out)
{
    if (take(m, out->points, (size_t)out->point_count * sizeof *out->points) &&
        take(m, out->tets, (size_t)out->tet_count * sizeof *out->tets))
        return true;
    front_mesh_fini(out);
    return false;
}

/* Whether all corners are points; if not, `error` says which is none. */
static bool check_corners(const front_mesher *m, const front_mesh *mesh, char *error)
{
    const int32_t *corners = (const int32_t *)mesh->tets;
    for (size_t i = 0; i < 4 * (size_t)mesh->tet_count; i++)
        if (corners[i] < 0 || corners[i] >= mesh->point_count) {
            (void)snprintf(error, FRONT_TEXT_BYTES,
                           "the mesher %s gave tetrahedron %zu a corner %d; expected 0 to %d",
                           m->path, i / 4, corners[i], mesh->point_count - 1);
            return false;
        }
    return true;
}

bool front_mesher_run(front_mesher *m, const front_surface *surface, const front_spots *spots,
                      const front_sizing *sizing, front_mesh *out, double *seconds,
                      char error[FRONT_TEXT_BYTES])
{
    front_answer head;
    if (m->pid == 0 && !start(m, error))
        return false;
    if (!ask(m, surface, spots, sizing) || !take(m, &head, sizeof head))
        return has_ended(m, error);
    if (head.magic != FRONT_ANSWER || head.points < 0 || head.tets < 0)
        return is_foreign(m, error);
    if (head.status != 0) {
        (void)snprintf(error, FRONT_TEXT_BYTES, "the mesher %s failed with status %d", m->path,
                       head.status);
        return false;
    }
    if (!front_mesh_init(out, head.points, head.tets))
        return is_too_large(m, &head, error);
    if (!take_mesh(m, out))
        return has_ended(m, error);
    *seconds = head.seconds;
    if (check_corners(m, out, error))
        return true;
    front_mesh_fini(out);
    return false;
}
