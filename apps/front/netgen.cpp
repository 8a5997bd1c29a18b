// A mesher: Netgen's advancing front, as its library is. See wire.h for how it is spoken to.
//
// Netgen has one state for all meshes of a process and prints as it works, so it has a process of
// its own. Its output goes nowhere: standard output has the answers alone.
#include <cstddef>
#include <cstdio>
#include <ctime>
#include <exception>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

namespace nglib
{
#include <nglib.h>
}

#include "wire.h"

namespace
{
enum { THREW = 100 };

struct request {
    front_request head;
    std::vector<double> points, spots;
    std::vector<int32_t> triangles;
};

bool read_all(void *to, size_t size)
{
    char *at = static_cast<char *>(to);
    while (size > 0) {
        ssize_t got = read(STDIN_FILENO, at, size);
        if (got <= 0)
            return false;
        at += got;
        size -= static_cast<size_t>(got);
    }
    return true;
}

bool write_all(int out, const void *from, size_t size)
{
    const char *at = static_cast<const char *>(from);
    while (size > 0) {
        ssize_t put = write(out, at, size);
        if (put <= 0)
            return false;
        at += put;
        size -= static_cast<size_t>(put);
    }
    return true;
}

template <typename T> bool read_list(std::vector<T> *list, int32_t count, size_t of)
{
    list->resize(of * static_cast<size_t>(count));
    return read_all(list->data(), list->size() * sizeof(T));
}

bool read_request(request *r)
{
    return read_all(&r->head, sizeof r->head) && r->head.magic == FRONT_REQUEST &&
           read_list(&r->points, r->head.points, 3) &&
           read_list(&r->triangles, r->head.triangles, 3) && read_list(&r->spots, r->head.spots, 4);
}

void fill(nglib::Ng_Mesh *mesh, request *r)
{
    for (size_t i = 0; i < r->points.size(); i += 3)
        nglib::Ng_AddPoint(mesh, &r->points[i]);
    for (size_t i = 0; i < r->triangles.size(); i += 3) {
        int corners[3];
        for (int c = 0; c < 3; c++)
            corners[c] = r->triangles[i + static_cast<size_t>(c)] + 1;
        nglib::Ng_AddSurfaceElement(mesh, nglib::NG_TRIG, corners);
    }
    nglib::Ng_RestrictMeshSizeGlobal(mesh, r->head.largest);
    for (size_t i = 0; i < r->spots.size(); i += 4)
        nglib::Ng_RestrictMeshSizePoint(mesh, &r->spots[i], r->spots[i + 3]);
}

int generate(nglib::Ng_Mesh *mesh, request *r)
{
    nglib::Ng_Meshing_Parameters parameters;
    parameters.maxh = r->head.largest;
    parameters.grading = r->head.grading;
    try {
        fill(mesh, r);
        return nglib::Ng_GenerateVolumeMesh(mesh, &parameters);
    } catch (const std::exception &) {
        return THREW;
    } catch (...) {
        return THREW;
    }
}

// Netgen counts from 1, and has the corners the other way around.
bool answer(int out, nglib::Ng_Mesh *mesh, front_answer head)
{
    std::vector<double> points;
    std::vector<int32_t> tets;
    if (head.status == 0) {
        head.points = nglib::Ng_GetNP(mesh);
        head.tets = nglib::Ng_GetNE(mesh);
    }
    points.resize(3 * static_cast<size_t>(head.points));
    for (int32_t i = 0; i < head.points; i++)
        nglib::Ng_GetPoint(mesh, i + 1, &points[3 * static_cast<size_t>(i)]);
    for (int32_t i = 0; i < head.tets; i++) {
        int corners[NG_VOLUME_ELEMENT_MAXPOINTS];
        nglib::Ng_GetVolumeElement(mesh, i + 1, corners);
        for (int c = 0; c < 4; c++)
            tets.push_back(corners[c] - 1);
    }
    return write_all(out, &head, sizeof head) &&
           write_all(out, points.data(), points.size() * sizeof(double)) &&
           write_all(out, tets.data(), tets.size() * sizeof(int32_t));
}
} // namespace

int main()
{
    int out = dup(STDOUT_FILENO), nowhere = open("/dev/null", O_WRONLY);
    if (out < 0 || nowhere < 0 || dup2(nowhere, STDOUT_FILENO) < 0)
        return 1;
    (void)dup2(nowhere, STDERR_FILENO);
    nglib::Ng_Init();
    request r;
    while (read_request(&r)) {
        nglib::Ng_Mesh *mesh = nglib::Ng_NewMesh();
        clock_t begin = clock();
        front_answer head = {FRONT_ANSWER, generate(mesh, &r), 0, 0, 0};
        head.seconds = static_cast<double>(clock() - begin) / CLOCKS_PER_SEC;
        bool sent = answer(out, mesh, head);
        nglib::Ng_DeleteMesh(mesh);
        if (!sent)
            return 1;
    }
    return 0;
}
