/* One unstructured grid with appended data in base64. Each block is its length in bytes (64 bits)
 * and its data, encoded together, as VTK reads uncompressed blocks. */
#include "output.h"
#include "sink.h"

#include <string.h>

typedef struct coder {
    FILE *file;
    uint8_t kept[3];
    int kept_count;
    char line[4096];
    size_t used;
} coder;

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static void flush_line(coder *c)
{
    (void)fwrite(c->line, 1, c->used, c->file);
    c->used = 0;
}

static void emit(coder *c)
{
    const uint8_t *k = c->kept;
    char *out = c->line + c->used;
    out[0] = alphabet[k[0] >> 2];
    out[1] = alphabet[(k[0] & 3) << 4 | k[1] >> 4];
    out[2] = c->kept_count > 1 ? alphabet[(k[1] & 15) << 2 | k[2] >> 6] : '=';
    out[3] = c->kept_count > 2 ? alphabet[k[2] & 63] : '=';
    c->used += 4;
    c->kept_count = 0;
    memset(c->kept, 0, sizeof c->kept);
    if (c->used + 4 > sizeof c->line) {
        flush_line(c);
    }
}

static void encode(coder *c, const void *data, size_t size)
{
    const uint8_t *byte = data;
    for (size_t i = 0; i < size; i++) {
        c->kept[c->kept_count++] = byte[i];
        if (c->kept_count == 3) {
            emit(c);
        }
    }
}

static void begin_block(coder *c, uint64_t size)
{
    encode(c, &size, sizeof size);
}

static void end_block(coder *c)
{
    if (c->kept_count > 0) {
        emit(c);
    }
    flush_line(c);
}

/* How far a block of so many bytes moves the next block's offset. */
static uint64_t block_length(uint64_t size)
{
    return (size + 8 + 2) / 3 * 4;
}

static void write_points(coder *c, const mesh_picture *p, uint64_t count)
{
    const mesh_frame *f = &p->pslg->frame;
    begin_block(c, count * 3 * sizeof(double));
    for (int32_t s = 0; s < p->sub_count; s++) {
        for (int32_t i = 0; i < p->sub[s]->head.point_count; i++) {
            mesh_point at = p->sub[s]->point[i];
            double place[3] = {mesh_frame_x(f, at.x), mesh_frame_y(f, at.y), 0.0};
            encode(c, place, sizeof place);
        }
    }
    end_block(c);
}

static void write_corners(coder *c, const mesh_picture *p, uint64_t count)
{
    int32_t first = 0;
    begin_block(c, count * 3 * sizeof(int32_t));
    for (int32_t s = 0; s < p->sub_count; s++) {
        for (int32_t t = 0; t < p->sub[s]->head.tri_count; t++) {
            const int32_t *v = p->sub[s]->tri[t].v;
            int32_t corner[3] = {first + v[0], first + v[1], first + v[2]};
            encode(c, corner, sizeof corner);
        }
        first += p->sub[s]->head.point_count;
    }
    end_block(c);
}

static void write_offsets_and_types(coder *c, uint64_t count)
{
    const uint8_t triangle = 5;
    begin_block(c, count * sizeof(int32_t));
    for (uint64_t i = 1; i <= count; i++) {
        int32_t offset = (int32_t)(3 * i);
        encode(c, &offset, sizeof offset);
    }
    end_block(c);
    begin_block(c, count);
    for (uint64_t i = 0; i < count; i++) {
        encode(c, &triangle, 1);
    }
    end_block(c);
}

static void write_owner(coder *c, const mesh_picture *p, uint64_t count, bool rank)
{
    begin_block(c, count * sizeof(int32_t));
    for (int32_t s = 0; s < p->sub_count; s++) {
        int32_t value = rank ? p->sub[s]->head.rank : p->sub[s]->head.index;
        for (int32_t t = 0; t < p->sub[s]->head.tri_count; t++) {
            encode(c, &value, sizeof value);
        }
    }
    end_block(c);
}

static void write_header(mesh_sink *s, uint64_t points, uint64_t tris)
{
    uint64_t corners = block_length(points * 24), offsets = corners + block_length(tris * 12);
    uint64_t types = offsets + block_length(tris * 4), ranks = types + block_length(tris);
    uint64_t subs = ranks + block_length(tris * 4);
    mesh_sink_print(
        s, "<?xml version=\"1.0\"?>\n"
           "<VTKFile type=\"UnstructuredGrid\" version=\"1.0\" byte_order=\"LittleEndian\" "
           "header_type=\"UInt64\">\n<UnstructuredGrid>\n");
    mesh_sink_print(s, "<Piece NumberOfPoints=\"%llu\" NumberOfCells=\"%llu\">\n",
                    (unsigned long long)points, (unsigned long long)tris);
    mesh_sink_print(
        s, "<Points>\n<DataArray type=\"Float64\" Name=\"Points\" NumberOfComponents=\"3\" "
           "format=\"appended\" offset=\"0\"/>\n</Points>\n<Cells>\n");
    mesh_sink_print(s,
                    "<DataArray type=\"Int32\" Name=\"connectivity\" format=\"appended\" "
                    "offset=\"%llu\"/>\n",
                    (unsigned long long)corners);
    mesh_sink_print(s,
                    "<DataArray type=\"Int32\" Name=\"offsets\" format=\"appended\" "
                    "offset=\"%llu\"/>\n",
                    (unsigned long long)offsets);
    mesh_sink_print(s,
                    "<DataArray type=\"UInt8\" Name=\"types\" format=\"appended\" "
                    "offset=\"%llu\"/>\n</Cells>\n<CellData Scalars=\"rank\">\n",
                    (unsigned long long)types);
    mesh_sink_print(s,
                    "<DataArray type=\"Int32\" Name=\"rank\" format=\"appended\" "
                    "offset=\"%llu\"/>\n",
                    (unsigned long long)ranks);
    mesh_sink_print(s,
                    "<DataArray type=\"Int32\" Name=\"subdomain\" format=\"appended\" "
                    "offset=\"%llu\"/>\n</CellData>\n</Piece>\n</UnstructuredGrid>\n"
                    "<AppendedData encoding=\"base64\">\n_",
                    (unsigned long long)subs);
}

int mesh_write_vtu(const char *path, const mesh_picture *picture, mesh_log *log)
{
    uint64_t points = 0, tris = 0;
    mesh_sink s;
    for (int32_t i = 0; i < picture->sub_count; i++) {
        points += (uint64_t)picture->sub[i]->head.point_count;
        tris += (uint64_t)picture->sub[i]->head.tri_count;
    }
    if (3 * tris > INT32_MAX) {
        return mesh_fail(log, "%s: %llu triangles are too many for this format", path,
                         (unsigned long long)tris);
    }
    if (mesh_sink_open(&s, path, log) != 0) {
        return -1;
    }
    coder c = {.file = s.file};
    write_header(&s, points, tris);
    write_points(&c, picture, points);
    write_corners(&c, picture, tris);
    write_offsets_and_types(&c, tris);
    write_owner(&c, picture, tris, true);
    write_owner(&c, picture, tris, false);
    mesh_sink_print(&s, "\n</AppendedData>\n</VTKFile>\n");
    return mesh_sink_close(&s, false, log);
}
