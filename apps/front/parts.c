/* Sub-domains as objects: how they travel, and what their tasks do. */
#include "program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The head of a packed sub-domain; its mesh follows. */
typedef struct part_head {
    int32_t index, meshed, failed, points, tets;
} part_head;

static size_t part_packed_size(ferry *f, const void *data)
{
    const front_mesh *mesh = &((const front_part *)data)->mesh;
    (void)f;
    return sizeof(part_head) + (size_t)mesh->point_count * sizeof *mesh->points +
           (size_t)mesh->tet_count * sizeof *mesh->tets;
}

static void part_pack(ferry *f, const void *data, void *buffer, size_t size_bytes)
{
    const front_part *part = data;
    const front_mesh *mesh = &part->mesh;
    const part_head head = {part->index, part->meshed, part->failed, mesh->point_count,
                            mesh->tet_count};
    char *at = buffer;
    (void)f;
    (void)size_bytes;
    memcpy(at, &head, sizeof head);
    at += sizeof head;
    if (mesh->point_count > 0)
        memcpy(at, mesh->points, (size_t)mesh->point_count * sizeof *mesh->points);
    at += (size_t)mesh->point_count * sizeof *mesh->points;
    if (mesh->tet_count > 0)
        memcpy(at, mesh->tets, (size_t)mesh->tet_count * sizeof *mesh->tets);
}

/* Counts a sub-domain that waits for its mesh: `by` is 1 when it comes, -1 when it goes. */
static void count_waiting(front_program *p, int32_t index, int32_t by)
{
    p->waiting += by;
    p->waiting_here[index] += by;
}

static void *part_unpack(ferry *f, ferry_object object, const void *buffer, size_t size_bytes)
{
    part_head head;
    const char *at = buffer;
    front_part *part = size_bytes < sizeof head ? NULL : calloc(1, sizeof *part);
    (void)object;
    if (part == NULL)
        return NULL;
    memcpy(&head, at, sizeof head);
    at += sizeof head;
    part->index = head.index;
    part->meshed = head.meshed != 0;
    part->failed = head.failed != 0;
    if ((part->meshed && !front_mesh_init(&part->mesh, head.points, head.tets)) ||
        part_packed_size(f, part) != size_bytes) {
        front_mesh_fini(&part->mesh);
        free(part);
        return NULL;
    }
    if (part->meshed) {
        size_t points = (size_t)head.points * sizeof *part->mesh.points;
        memcpy(part->mesh.points, at, points);
        memcpy(part->mesh.tets, at + points, (size_t)head.tets * sizeof *part->mesh.tets);
    }
    if (!part->meshed && !part->failed)
        count_waiting(ferry_user_data(f), part->index, 1);
    return part;
}

static void part_destroy(ferry *f, void *data)
{
    front_part *part = data;
    if (!part->meshed && !part->failed)
        count_waiting(ferry_user_data(f), part->index, -1);
    front_mesh_fini(&part->mesh);
    free(part);
}

/* Has the mesher fill the sub-domain. */
static bool fill(front_program *p, front_part *part, char *error)
{
    const front_sizing *sizing = &p->options.sizing;
    front_box box = front_domain_box(&p->options.domain, part->index);
    front_surface surface;
    front_spots spots = {0};
    (void)snprintf(error, FRONT_TEXT_BYTES, "no memory for its surface");
    bool made = front_surface_make(&surface, sizing, &box) &&
                front_spots_make(&spots, sizing, &box) &&
                front_mesher_run(&p->mesher, &surface, &spots, sizing, &part->mesh,
                                 &p->seconds[part->index], error);
    front_surface_fini(&surface);
    front_spots_fini(&spots);
    return made;
}

void front_mesh_part(ferry *f, front_program *p, front_part *part)
{
    char error[FRONT_TEXT_BYTES];
    uint64_t begin_ns = ferry_now(f);
    if (part->meshed || part->failed)
        return;
    count_waiting(p, part->index, -1);
    if (p->options.replay != NULL) {
        ferry_compute(f, p->seconds[part->index] * p->options.factor);
        part->meshed = true;
    } else {
        part->meshed = fill(p, part, error);
    }
    part->failed = !part->meshed;
    p->totals.meshed += part->meshed;
    p->totals.failed += part->failed;
    if (part->failed)
        fprintf(stderr, "front: rank %d: sub-domain %d: %s\n", ferry_rank(f), part->index, error);
    p->totals.tets += (uint64_t)part->mesh.tet_count;
    p->busy_s += (double)(ferry_now(f) - begin_ns) * 1e-9;
}

static void on_mesh(ferry *f, ferry_object object, void *data, int source,
                    const ferry_message *message)
{
    (void)object;
    (void)source;
    (void)message;
    front_mesh_part(f, ferry_user_data(f), data);
}

int front_register(ferry *f, front_program *p)
{
    static const ferry_object_ops ops = {.size = sizeof ops,
                                         .name = "sub-domain",
                                         .packed_size = part_packed_size,
                                         .pack = part_pack,
                                         .unpack = part_unpack,
                                         .destroy = part_destroy};
    int error = ferry_object_type_register(f, &ops, &p->type);
    if (error == 0)
        error = ferry_object_handler_register(f, "mesh", on_mesh, &p->mesh);
    if (error == 0)
        error = front_register_check(f, p);
    return error != 0 ? error : front_register_stop(f, p);
}

/* The first of the sub-domains that begin on `rank`. */
static int32_t first_of(const front_program *p, int rank, int ranks)
{
    return (int32_t)((int64_t)front_domain_count(&p->options.domain) * rank / ranks);
}

static int create_part(ferry *f, front_program *p, int32_t index)
{
    front_part *part = calloc(1, sizeof *part);
    ferry_balance_options options = FERRY_BALANCE_OPTIONS_DEFAULTS;
    if (part == NULL)
        return FERRY_ENOMEM;
    part->index = index;
    int error = ferry_object_create(f, p->type, part, &p->objects[index]);
    if (error != 0) {
        free(part);
        return error;
    }
    count_waiting(p, index, 1);
    options.load = p->options.hint ? (double)p->weights[index] : 1;
    return p->options.repartition ? 0 : ferry_balance_add(f, p->objects[index], &options);
}

/* Each rank says what its objects are called. */
static int exchange_names(ferry *f, front_program *p)
{
    int ranks = ferry_ranks(f), rank = ferry_rank(f);
    int32_t first = first_of(p, rank, ranks);
    size_t *sizes = malloc((size_t)ranks * sizeof *sizes);
    size_t own = (size_t)(first_of(p, rank + 1, ranks) - first) * sizeof *p->objects;
    ferry_object *mine = malloc(own + 1);
    int error = sizes == NULL || mine == NULL ? FERRY_ENOMEM : 0;
    for (int i = 0; error == 0 && i < ranks; i++)
        sizes[i] = (size_t)(first_of(p, i + 1, ranks) - first_of(p, i, ranks)) * sizeof *p->objects;
    if (error == 0) {
        memcpy(mine, &p->objects[first], own);
        error = ferry_allgatherv(f, mine, own, p->objects, sizes);
    }
    free(sizes);
    free(mine);
    return error;
}

int front_create(ferry *f, front_program *p)
{
    int32_t end = first_of(p, ferry_rank(f) + 1, ferry_ranks(f));
    int error = 0;
    for (int32_t i = first_of(p, ferry_rank(f), ferry_ranks(f)); error == 0 && i < end; i++)
        error = create_part(f, p, i);
    return error != 0 ? error : exchange_names(f, p);
}

int front_run(ferry *f, front_program *p)
{
    int32_t end = first_of(p, ferry_rank(f) + 1, ferry_ranks(f));
    int error = ferry_balance_enable(f, true);
    ferry_stats_get(f, &p->before);
    uint64_t begin_ns = ferry_now(f);
    for (int32_t i = first_of(p, ferry_rank(f), ferry_ranks(f)); error == 0 && i < end; i++)
        error = ferry_object_send(f, p->objects[i], &(ferry_message){.handler = p->mesh}, NULL);
    if (error == 0)
        error = ferry_quiesce(f);
    p->took_ns = ferry_now(f) - begin_ns;
    ferry_stats_get(f, &p->after);
    return error;
}
