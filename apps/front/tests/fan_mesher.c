/* A mesher for tests: fills each surface by a fan. FRONT_MISBEHAVE names a mistake that it makes at
 * its second request:
 *   fail   answers a status that is not 0
 *   crash  is ended by a signal
 *   short  ends within its answer
 *   large  announces more than memory holds, and waits
 *   noise  sends something that is no answer
 *   move   moves a point of the surface
 *   drop   leaves a tetrahedron out
 *   corner gives a tetrahedron a corner that is no point */
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "fan.h"
#include "wire.h"

typedef struct request {
    front_request head;
    double (*points)[3];
    int32_t (*triangles)[3];
    double (*spots)[4];
} request;

static bool take(void *to, size_t size)
{
    for (char *at = to; size > 0;) {
        ssize_t got = read(STDIN_FILENO, at, size);
        if (got <= 0)
            return false;
        at += got;
        size -= (size_t)got;
    }
    return true;
}

static bool put(const void *from, size_t size)
{
    for (const char *at = from; size > 0;) {
        ssize_t sent = write(STDOUT_FILENO, at, size);
        if (sent <= 0)
            return false;
        at += sent;
        size -= (size_t)sent;
    }
    return true;
}

static bool read_request(request *r)
{
    if (!take(&r->head, sizeof r->head) || r->head.magic != FRONT_REQUEST)
        return false;
    r->points = malloc((size_t)r->head.points * sizeof *r->points);
    r->triangles = malloc((size_t)r->head.triangles * sizeof *r->triangles);
    r->spots = malloc((size_t)r->head.spots * sizeof *r->spots);
    return r->points != NULL && r->triangles != NULL && r->spots != NULL &&
           take(r->points, (size_t)r->head.points * sizeof *r->points) &&
           take(r->triangles, (size_t)r->head.triangles * sizeof *r->triangles) &&
           take(r->spots, (size_t)r->head.spots * sizeof *r->spots);
}

static void release(request *r)
{
    free(r->points);
    free(r->triangles);
    free(r->spots);
    *r = (request){0};
}

/* Makes the mistake `how`. If it returns, the answer is sent. */
static void misbehave(const char *how, front_answer *head, front_mesh *mesh)
{
    if (strcmp(how, "crash") == 0)
        (void)raise(SIGKILL);
    if (strcmp(how, "short") == 0) {
        (void)put(head, sizeof *head);
        exit(3);
    }
    if (strcmp(how, "large") == 0) {
        head->points = head->tets = INT32_MAX;
        (void)put(head, sizeof *head);
        for (;;)
            (void)pause();
    }
    if (strcmp(how, "noise") == 0)
        head->magic = 0;
    if (strcmp(how, "fail") == 0)
        head->status = 2;
    if (strcmp(how, "move") == 0)
        mesh->points[0][1] += 1e-9;
    if (strcmp(how, "corner") == 0)
        mesh->tets[2][1] = mesh->point_count;
    if (strcmp(how, "drop") == 0)
        head->tets--;
}

static bool answer(const request *r, const char *how)
{
    front_mesh mesh;
    if (!fan_make(&mesh, (const double(*)[3])r->points, r->head.points,
                  (const int32_t(*)[3])r->triangles, r->head.triangles))
        return false;
    front_answer head = {FRONT_ANSWER, 0, mesh.point_count, mesh.tet_count, 1e-3};
    misbehave(how, &head, &mesh);
    bool sent = put(&head, sizeof head);
    if (sent && head.status == 0)
        sent = put(mesh.points, (size_t)head.points * sizeof *mesh.points) &&
               put(mesh.tets, (size_t)head.tets * sizeof *mesh.tets);
    front_mesh_fini(&mesh);
    return sent;
}

int main(void)
{
    const char *how = getenv("FRONT_MISBEHAVE");
    request r = {0};
    (void)signal(SIGPIPE, SIG_IGN);
    for (int count = 1; read_request(&r); count++) {
        bool sent = answer(&r, how != NULL && count == 2 ? how : "");
        release(&r);
        if (!sent)
            return 1;
    }
    release(&r);
    return 0;
}
