/* The mesh for ParaView: FOLDER/front-RANK.vtu has the sub-domains that end on a rank, each a
 * piece; FOLDER/front.pvtu names these files. Points of interfaces have the same bits in all
 * pieces. */
#include "program.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { PATH_BYTES = 4096, VTK_TETRA = 10 };

static const char head[] = "<?xml version=\"1.0\"?>\n<VTKFile type=\"%s\" version=\"0.1\""
                           " byte_order=\"LittleEndian\">\n<%s%s>\n";

static void write_array(FILE *file, const char *type, const char *name, int components)
{
    fprintf(file,
            "<DataArray type=\"%s\" Name=\"%s\" NumberOfComponents=\"%d\" format=\"ascii\">\n",
            type, name, components);
}

static void write_points(FILE *file, const front_mesh *m)
{
    fputs("<Points>\n", file);
    write_array(file, "Float64", "Points", 3);
    for (int32_t i = 0; i < m->point_count; i++)
        fprintf(file, "%.17g %.17g %.17g\n", m->points[i][0], m->points[i][1], m->points[i][2]);
    fputs("</DataArray>\n</Points>\n", file);
}

static void write_cells(FILE *file, const front_mesh *m)
{
    fputs("<Cells>\n", file);
    write_array(file, "Int32", "connectivity", 1);
    for (int32_t i = 0; i < m->tet_count; i++) {
        const int32_t *t = m->tets[i];
        /* VTK's first three corners turn left seen from the fourth. */
        fprintf(file, "%d %d %d %d\n", t[0], t[2], t[1], t[3]);
    }
    fputs("</DataArray>\n", file);
    write_array(file, "Int32", "offsets", 1);
    for (int32_t i = 1; i <= m->tet_count; i++)
        fprintf(file, "%d\n", 4 * i);
    fputs("</DataArray>\n", file);
    write_array(file, "UInt8", "types", 1);
    for (int32_t i = 0; i < m->tet_count; i++)
        fprintf(file, "%d\n", VTK_TETRA);
    fputs("</DataArray>\n</Cells>\n", file);
}

static void write_constant(FILE *file, const char *name, int32_t value, int32_t count)
{
    write_array(file, "Int32", name, 1);
    for (int32_t i = 0; i < count; i++)
        fprintf(file, "%d\n", value);
    fputs("</DataArray>\n", file);
}

static void write_piece(FILE *file, const front_part *part, int rank)
{
    const front_mesh *m = &part->mesh;
    fprintf(file, "<Piece NumberOfPoints=\"%d\" NumberOfCells=\"%d\">\n", m->point_count,
            m->tet_count);
    write_points(file, m);
    write_cells(file, m);
    fputs("<CellData>\n", file);
    write_constant(file, "rank", rank, m->tet_count);
    write_constant(file, "subdomain", part->index, m->tet_count);
    fputs("</CellData>\n</Piece>\n", file);
}

/* Closes the file and says what went wrong with it, if anything did. */
static bool finish(FILE *file, const char *path)
{
    bool failed = file == NULL || ferror(file) != 0;
    if (file != NULL && fclose(file) != 0)
        failed = true;
    if (failed)
        fprintf(stderr, "front: %s cannot be written: %s\n", path, strerror(errno));
    return !failed;
}

static bool write_rank(ferry *f, const front_program *p)
{
    char path[PATH_BYTES];
    (void)snprintf(path, sizeof path, "%s/front-%d.vtu", p->options.out, ferry_rank(f));
    FILE *file = fopen(path, "w");
    if (file == NULL)
        return finish(file, path);
    fprintf(file, head, "UnstructuredGrid", "UnstructuredGrid", "");
    for (int32_t i = 0; i < front_domain_count(&p->options.domain); i++) {
        const front_part *part = ferry_object_data(f, p->objects[i]);
        if (part != NULL && part->meshed)
            write_piece(file, part, ferry_rank(f));
    }
    fputs("</UnstructuredGrid>\n</VTKFile>\n", file);
    return finish(file, path);
}

static bool write_list(ferry *f, const front_program *p)
{
    char path[PATH_BYTES];
    (void)snprintf(path, sizeof path, "%s/front.pvtu", p->options.out);
    FILE *file = fopen(path, "w");
    if (file == NULL)
        return finish(file, path);
    fprintf(file, head, "PUnstructuredGrid", "PUnstructuredGrid", " GhostLevel=\"0\"");
    fputs("<PPoints>\n<PDataArray type=\"Float64\" Name=\"Points\" NumberOfComponents=\"3\"/>\n"
          "</PPoints>\n<PCellData>\n<PDataArray type=\"Int32\" Name=\"rank\"/>\n"
          "<PDataArray type=\"Int32\" Name=\"subdomain\"/>\n</PCellData>\n",
          file);
    for (int i = 0; i < ferry_ranks(f); i++)
        fprintf(file, "<Piece Source=\"front-%d.vtu\"/>\n", i);
    fputs("</PUnstructuredGrid>\n</VTKFile>\n", file);
    return finish(file, path);
}

bool front_out_write(ferry *f, const front_program *p)
{
    int32_t right = 1;
    if (ferry_rank(f) == 0 && mkdir(p->options.out, 0777) != 0 && errno != EEXIST) {
        fprintf(stderr, "front: --out is '%s', which cannot be made: %s\n", p->options.out,
                strerror(errno));
        right = 0;
    }
    if (ferry_broadcast(f, 0, &right, sizeof right) != 0 || right == 0)
        return false;
    right = write_rank(f, p) && (ferry_rank(f) != 0 || write_list(f, p));
    return ferry_allreduce(f, FERRY_INT32, FERRY_MIN, &right, &right, 1) == 0 && right != 0;
}
