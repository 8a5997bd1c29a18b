/* Checks on Ferry: each sub-domain looks at its own mesh and sends the triangles of its upper faces
 * to the neighbours there, wherever they are. */
#include "program.h"

#include <stdio.h>
#include <stdlib.h>

static void say(ferry *f, front_program *p, int32_t index, const char *what)
{
    p->totals.wrong++;
    fprintf(stderr, "front: rank %d: sub-domain %d is wrong: %s\n", ferry_rank(f), index, what);
}

/* Points are counted where they belong, each once. */
static uint64_t count_points(const front_program *p, const front_part *part)
{
    uint64_t count = 0;
    for (int32_t i = 0; i < part->mesh.point_count; i++)
        count += front_domain_owner(&p->options.domain, part->mesh.points[i]) == part->index;
    return count;
}

static void check_mesh(ferry *f, front_program *p, const front_part *part)
{
    char error[FRONT_TEXT_BYTES] = "no memory to look at it";
    front_box box = front_domain_box(&p->options.domain, part->index);
    front_surface surface;
    double volume = 0;
    if (front_surface_make(&surface, &p->options.sizing, &box) &&
        front_check_mesh(&part->mesh, &surface, &box, &volume, error))
        p->totals.checked++;
    else
        say(f, p, part->index, error);
    front_surface_fini(&surface);
    p->totals.volume += volume;
    p->totals.points += count_points(p, part);
}

static int32_t interface_of(const front_program *p, const front_part *part, int axis, int up,
                            front_triangle **out)
{
    front_box box = front_domain_box(&p->options.domain, part->index);
    return front_mesh_interface(&part->mesh, axis, up ? box.high[axis] : box.low[axis], out);
}

static void send_interface(ferry *f, front_program *p, const front_part *part, int axis)
{
    int32_t to = front_domain_neighbour(&p->options.domain, part->index, axis, 1);
    front_triangle *triangles = NULL;
    int32_t count = to < 0 ? 0 : interface_of(p, part, axis, 1, &triangles);
    if (to < 0)
        return;
    const ferry_message message = {.handler = p->compare,
                                   .word_count = 2,
                                   .words = {(uint64_t)axis, (uint64_t)(count < 0 ? 0 : count)},
                                   .data = triangles,
                                   .size_bytes = count < 0 ? 0 : (size_t)count * sizeof *triangles};
    if (ferry_object_send(f, p->objects[to], &message, NULL) != 0)
        say(f, p, part->index, ferry_error_message(f));
    free(triangles);
}

static void on_check(ferry *f, ferry_object object, void *data, int source,
                     const ferry_message *message)
{
    front_program *p = ferry_user_data(f);
    const front_part *part = data;
    (void)object;
    (void)source;
    (void)message;
    if (!part->meshed)
        return;
    check_mesh(f, p, part);
    for (int axis = 0; axis < 3; axis++)
        send_interface(f, p, part, axis);
}

static void on_compare(ferry *f, ferry_object object, void *data, int source,
                       const ferry_message *message)
{
    front_program *p = ferry_user_data(f);
    const front_part *part = data;
    char error[FRONT_TEXT_BYTES] = "its boundary cannot be found";
    front_triangle *ours = NULL;
    (void)object;
    (void)source;
    int32_t count = interface_of(p, part, (int)message->words[0], 0, &ours);
    if (count >= 0 &&
        front_check_interface(ours, count, message->data, (int32_t)message->words[1], error))
        p->totals.interfaces++;
    else
        say(f, p, part->index, error);
    free(ours);
}

int front_register_check(ferry *f, front_program *p)
{
    int error = ferry_object_handler_register(f, "check", on_check, &p->check);
    return error != 0 ? error
                      : ferry_object_handler_register(f, "compare", on_compare, &p->compare);
}

int front_check_all(ferry *f, front_program *p)
{
    int error = 0;
    for (int32_t i = ferry_rank(f); error == 0 && i < front_domain_count(&p->options.domain);
         i += ferry_ranks(f))
        error = ferry_object_send(f, p->objects[i], &(ferry_message){.handler = p->check}, NULL);
    return error != 0 ? error : ferry_quiesce(f);
}
