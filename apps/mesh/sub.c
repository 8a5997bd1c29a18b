/* Packing is the head and then each array as it stands in memory: a sub-domain travels between
 * processes of one program on one kind of machine. */
#include "sub.h"

#include "kernel.h"

#include <stdlib.h>
#include <string.h>

#define PATH_BITS_MAX 29

typedef struct section {
    void **array;
    int32_t *room;
    int32_t count;
    size_t size;
} section;

#define SECTIONS 5

static void list_sections(mesh_sub *sub, section out[SECTIONS])
{
    const mesh_sub_head *h = &sub->head;
    out[0] = (section){(void **)&sub->point, &sub->point_room, h->point_count, sizeof *sub->point};
    out[1] = (section){(void **)&sub->tri, &sub->tri_room, h->tri_count, sizeof *sub->tri};
    out[2] = (section){(void **)&sub->piece, &sub->piece_room, h->piece_count, sizeof *sub->piece};
    out[3] = (section){(void **)&sub->edge, &sub->edge_room, h->edge_count, sizeof *sub->edge};
    out[4] = (section){(void **)&sub->node, &sub->node_room, h->node_count, sizeof *sub->node};
}

static size_t head_pack_size(const mesh_sub_head *h)
{
    return sizeof *h + (size_t)h->point_count * sizeof(mesh_point) +
           (size_t)h->tri_count * sizeof(mesh_tri) + (size_t)h->piece_count * sizeof(mesh_piece) +
           (size_t)h->edge_count * sizeof(mesh_edge) + (size_t)h->node_count * sizeof(int32_t) +
           (size_t)h->queue_count * sizeof(int32_t);
}

size_t mesh_sub_pack_size(const mesh_sub *sub)
{
    return head_pack_size(&sub->head);
}

static char *put(char *out, const void *from, size_t size)
{
    if (size > 0) {
        memcpy(out, from, size);
    }
    return out + size;
}

void mesh_sub_pack(const mesh_sub *sub, void *out)
{
    const mesh_sub_head *h = &sub->head;
    char *at = put(out, h, sizeof *h);
    at = put(at, sub->point, (size_t)h->point_count * sizeof *sub->point);
    at = put(at, sub->tri, (size_t)h->tri_count * sizeof *sub->tri);
    at = put(at, sub->piece, (size_t)h->piece_count * sizeof *sub->piece);
    at = put(at, sub->edge, (size_t)h->edge_count * sizeof *sub->edge);
    at = put(at, sub->node, (size_t)h->node_count * sizeof *sub->node);
    /* The ring is written straight: from its first entry to its end, then what wrapped around. */
    int32_t straight = sub->queue_room - sub->queue_first;
    straight = straight < h->queue_count ? straight : h->queue_count;
    at = put(at, sub->queue == NULL ? NULL : sub->queue + sub->queue_first,
             (size_t)straight * sizeof *sub->queue);
    (void)put(at, sub->queue, (size_t)(h->queue_count - straight) * sizeof *sub->queue);
}

static bool head_is_sane(const mesh_sub_head *h, size_t size)
{
    const int32_t count[] = {h->point_count, h->tri_count,   h->piece_count, h->edge_count,
                             h->node_count,  h->queue_count, h->shared_count};
    for (size_t i = 0; i < sizeof count / sizeof count[0]; i++) {
        if (count[i] < 0 || count[i] > INT32_MAX / 4) {
            return false;
        }
    }
    return h->magic == 0x4d455348u && h->piece_count > 0 && h->node_count > 0 &&
           h->shared_count <= h->edge_count && h->grain > 0 && head_pack_size(h) == size;
}

static int take_arrays(mesh_sub *sub, const char *at)
{
    section part[SECTIONS];
    list_sections(sub, part);
    for (int i = 0; i < SECTIONS; i++) {
        /* A little spare room, so that refinement goes on without copying everything again. */
        int32_t room = part[i].count + part[i].count / 8 + 16;
        void *array = realloc(*part[i].array, (size_t)room * part[i].size);
        if (array == NULL) {
            return -1;
        }
        *part[i].array = array;
        *part[i].room = room;
        memcpy(array, at, (size_t)part[i].count * part[i].size);
        at += (size_t)part[i].count * part[i].size;
    }
    int32_t room = 64;
    while (room < sub->head.queue_count) {
        room *= 2;
    }
    sub->queue = malloc((size_t)room * sizeof *sub->queue);
    if (sub->queue == NULL) {
        return -1;
    }
    sub->queue_room = room;
    memcpy(sub->queue, at, (size_t)sub->head.queue_count * sizeof *sub->queue);
    return 0;
}

static bool inside(int32_t value, int32_t count)
{
    return value >= 0 && value < count;
}

/* True when what lies across edge i of triangle t exists and looks back. */
static bool link_is_sane(const mesh_sub *sub, int32_t t, int32_t i)
{
    const mesh_tri *tri = &sub->tri[t];
    int32_t n = tri->n[i];
    if (n < 0) {
        return inside(~n, sub->head.piece_count) &&
               (sub->piece[~n].tri[0] == t) != (sub->piece[~n].tri[1] == t);
    }
    if (!inside(n, sub->head.tri_count) || n == t) {
        return false;
    }
    const mesh_tri *far = &sub->tri[n];
    int32_t j = mesh_slot_of(sub, n, t);
    return far->n[j] == t && far->v[mesh_next3(j)] == tri->v[mesh_prev3(i)] &&
           far->v[mesh_prev3(j)] == tri->v[mesh_next3(i)];
}

static bool triangles_are_sane(const mesh_sub *sub)
{
    for (int32_t t = 0; t < sub->head.tri_count; t++) {
        const int32_t *v = sub->tri[t].v;
        for (int i = 0; i < 3; i++) {
            if (!inside(v[i], sub->head.point_count)) {
                return false;
            }
        }
        if (mesh_orient(sub->point[v[0]], sub->point[v[1]], sub->point[v[2]]) <= 0) {
            return false;
        }
    }
    for (int32_t t = 0; t < sub->head.tri_count; t++) {
        for (int32_t i = 0; i < 3; i++) {
            if (!link_is_sane(sub, t, i)) {
                return false;
            }
        }
    }
    return true;
}

static bool piece_is_sane(const mesh_sub *sub, int32_t p)
{
    const mesh_piece *piece = &sub->piece[p];
    if (!inside(piece->edge, sub->head.edge_count) || !inside(piece->node, sub->head.node_count) ||
        sub->node[piece->node] != ~p || (piece->tri[0] < 0 && piece->tri[1] < 0)) {
        return false;
    }
    for (int side = 0; side < 2; side++) {
        int32_t t = piece->tri[side];
        if (t >= sub->head.tri_count || (t >= 0 && sub->tri[t].n[mesh_slot_of(sub, t, ~p)] != ~p)) {
            return false;
        }
    }
    return true;
}

static bool trees_are_sane(const mesh_sub *sub)
{
    const mesh_sub_head *h = &sub->head;
    for (int32_t p = 1; p < h->piece_count; p++) {
        if (!piece_is_sane(sub, p)) {
            return false;
        }
    }
    for (int32_t n = 0; n < h->node_count; n++) {
        int32_t child = sub->node[n];
        /* Children stand behind their parent, so every way down ends. */
        if (child < 0 ? !inside(~child, h->piece_count) : child <= n || child > h->node_count - 2) {
            return false;
        }
    }
    for (int32_t e = 0; e < h->edge_count; e++) {
        if (!inside(sub->edge[e].root, h->node_count) ||
            (e > 0 && e < h->shared_count && sub->edge[e].id <= sub->edge[e - 1].id)) {
            return false;
        }
    }
    return true;
}

static bool is_sane(const mesh_sub *sub)
{
    const uint32_t over = ~((1u << MESH_COORD_BITS) - 1u);
    for (int32_t i = 0; i < sub->head.point_count; i++) {
        if ((((uint32_t)sub->point[i].x | (uint32_t)sub->point[i].y) & over) != 0) {
            return false;
        }
    }
    for (int32_t i = 0; i < sub->head.queue_count; i++) {
        if (!inside(sub->queue[i], sub->head.tri_count)) {
            return false;
        }
    }
    return triangles_are_sane(sub) && trees_are_sane(sub);
}

mesh_sub *mesh_sub_unpack(const void *bytes, size_t size, mesh_log *log)
{
    mesh_sub_head head;
    if (size < sizeof head) {
        (void)mesh_fail(log, "a packed sub-domain has %zu bytes, fewer than its head", size);
        return NULL;
    }
    memcpy(&head, bytes, sizeof head);
    if (!head_is_sane(&head, size)) {
        (void)mesh_fail(log, "%zu bytes are no packed sub-domain", size);
        return NULL;
    }
    mesh_sub *sub = calloc(1, sizeof *sub);
    if (sub != NULL) {
        sub->head = head;
    }
    if (sub == NULL || take_arrays(sub, (const char *)bytes + sizeof head) != 0) {
        (void)mesh_fail_memory(log);
    } else if (!is_sane(sub)) {
        (void)mesh_fail(log, "a packed sub-domain of %zu bytes is damaged", size);
    } else {
        return sub;
    }
    mesh_sub_destroy(sub);
    return NULL;
}

void mesh_sub_destroy(mesh_sub *sub)
{
    if (sub == NULL) {
        return;
    }
    free(sub->point);
    free(sub->tri);
    free(sub->piece);
    free(sub->edge);
    free(sub->node);
    free(sub->queue);
    free(sub->rim);
    free(sub->stack);
    free(sub->dead);
    free(sub);
}

size_t mesh_sub_memory(const mesh_sub *sub)
{
    return sizeof *sub + (size_t)sub->point_room * sizeof *sub->point +
           (size_t)sub->tri_room * sizeof *sub->tri + (size_t)sub->piece_room * sizeof *sub->piece +
           (size_t)sub->edge_room * sizeof *sub->edge +
           ((size_t)sub->node_room + (size_t)sub->queue_room) * sizeof(int32_t) +
           (size_t)sub->rim_room * sizeof(mesh_rim) +
           (size_t)sub->stack_room * sizeof(mesh_corner) + (size_t)sub->dead_room * sizeof(int32_t);
}

void mesh_splits_fini(mesh_splits *splits)
{
    free(splits->at);
    *splits = (mesh_splits){0};
}

int32_t mesh_sub_shared(const mesh_sub *sub, int32_t id)
{
    int32_t low = 0, high = sub->head.shared_count;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (sub->edge[middle].id < id) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < sub->head.shared_count && sub->edge[low].id == id ? low : -1;
}

static void queue_all(mesh_sub *sub, int32_t t, void *failed)
{
    if (mesh_queue_push(sub, t) != 0) {
        *(int *)failed = -1;
    }
}

/* Halves the piece at a leaf of the tree; 1, or -1. */
static int halve_leaf(mesh_sub *sub, int32_t node)
{
    int32_t a, b, piece = ~sub->node[node];
    int failed = 0;
    mesh_piece_ends(sub, piece, &a, &b);
    if (!mesh_can_halve(sub->point[a], sub->point[b]) ||
        mesh_halve(sub, piece, queue_all, &failed) != 0) {
        return -1;
    }
    sub->head.applied++;
    return failed != 0 ? -1 : 1;
}

int mesh_sub_apply_split(mesh_sub *sub, int32_t edge, uint32_t path)
{
    int32_t shared = mesh_sub_shared(sub, edge);
    int halved = 0;
    if (shared < 0 || path == 0 || path >> PATH_BITS_MAX != 0) {
        return -1;
    }
    int bit = 0;
    while (path >> (bit + 1) != 0) {
        bit++;
    }
    int32_t node = sub->edge[shared].root;
    for (;;) {
        if (sub->node[node] < 0) {
            if (halve_leaf(sub, node) < 0) {
                return -1;
            }
            halved++;
        }
        if (bit-- == 0) {
            return halved;
        }
        node = sub->node[node] + (int32_t)((path >> bit) & 1u);
    }
}
