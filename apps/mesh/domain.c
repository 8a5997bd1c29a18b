/* Sub-domains as objects: how they travel, and what their messages do.
 *
 * A sub-domain has at most one "refine" message in flight: `refining` says so, and travels with it.
 * A split that comes meanwhile only marks triangles; they are refined together with the rest. */
#include "program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

typedef struct domain {
    mesh_sub *sub;
    bool refining; /* a refine message is on its way or waits */
    bool counted;  /* its first refinement is done and was reported */
} domain;

/* The head of a packed sub-domain. */
typedef struct domain_head {
    uint32_t refining, counted;
} domain_head;

static size_t domain_packed_size(ferry *f, const void *data)
{
    (void)f;
    return sizeof(domain_head) + mesh_sub_pack_size(((const domain *)data)->sub);
}

static void domain_pack(ferry *f, const void *data, void *buffer, size_t size_bytes)
{
    (void)f;
    (void)size_bytes;
    const domain *d = data;
    const domain_head head = {d->refining, d->counted};
    memcpy(buffer, &head, sizeof head);
    mesh_sub_pack(d->sub, (char *)buffer + sizeof head);
}

static void *domain_unpack(ferry *f, ferry_object object, const void *buffer, size_t size_bytes)
{
    (void)f;
    (void)object;
    mesh_log log = {0};
    domain_head head;
    domain *d = size_bytes < sizeof head ? NULL : calloc(1, sizeof *d);
    if (d == NULL)
        return NULL;
    memcpy(&head, buffer, sizeof head);
    d->refining = head.refining != 0;
    d->counted = head.counted != 0;
    d->sub = mesh_sub_unpack((const char *)buffer + sizeof head, size_bytes - sizeof head, &log);
    if (d->sub == NULL) {
        fprintf(stderr, "mesh: a sub-domain cannot be unpacked: %s\n", log.error);
        free(d);
        return NULL;
    }
    return d;
}

static void domain_destroy(ferry *f, void *data)
{
    (void)f;
    domain *d = data;
    mesh_sub_destroy(d->sub);
    free(d);
}

static double domain_load(ferry *f, const void *data, const ferry_message *message)
{
    const mesh_program *p = ferry_user_data(f);
    const domain *d = data;
    return message->handler.index == p->refine.index ? d->sub->head.queue_count + 1.0 : 1.0;
}

/* A call of Ferry that cannot fail unless the job is lost. */
static void must(ferry *f, int error, const char *what)
{
    if (error >= 0)
        return;
    fprintf(stderr, "mesh: rank %d: %s: %s\n", ferry_rank(f), what, ferry_error_message(f));
    exit(EXIT_FAILURE);
}

static void send_refine(ferry *f, const mesh_program *p, ferry_object object)
{
    const ferry_message message = {.handler = p->refine};
    must(f, ferry_object_send(f, object, &message, NULL), "cannot ask for a refinement");
}

static void send_splits(ferry *f, mesh_program *p)
{
    for (int32_t i = 0; i < p->splits.count; i++) {
        const mesh_split *split = &p->splits.at[i];
        const ferry_message message = {
            .handler = p->split,
            .word_count = 1,
            .words = {(uint64_t)(uint32_t)split->edge << 32 | split->path}};
        must(f, ferry_object_send(f, p->objects[split->to], &message, NULL),
             "cannot tell a neighbour of a split");
    }
    p->splits_sent += (uint64_t)p->splits.count;
    p->splits.count = 0;
}

static void on_refine(ferry *f, ferry_object object, void *data, int source,
                      const ferry_message *message)
{
    (void)source;
    (void)message;
    mesh_program *p = ferry_user_data(f);
    domain *d = data;
    d->refining = false;
    int32_t points = d->sub->head.point_count;
    int result =
        mesh_sub_refine(d->sub, &p->start.sizing, &p->start.quality, p->start.slice, &p->splits);
    d->sub->head.rank = ferry_rank(f);
    if (p->start.point_cost_s > 0)
        ferry_compute(f, (d->sub->head.point_count - points) * p->start.point_cost_s);
    send_splits(f, p);
    must(f, result < 0 ? FERRY_ENOMEM : 0, "no memory to refine a sub-domain");
    if (result == MESH_MORE) {
        d->refining = true;
        send_refine(f, p, object);
    } else if (!d->counted) {
        d->counted = true;
        const ferry_message done = {.handler = p->progress};
        must(f, ferry_request_send(f, 0, &done, NULL), "cannot report progress");
    }
}

static void on_split(ferry *f, ferry_object object, void *data, int source,
                     const ferry_message *message)
{
    const mesh_program *p = ferry_user_data(f);
    domain *d = data;
    int32_t edge = (int32_t)(message->words[0] >> 32);
    uint32_t path = (uint32_t)message->words[0];
    if (message->word_count != 1 || mesh_sub_apply_split(d->sub, edge, path) < 0) {
        fprintf(stderr, "mesh: rank %d sent a split of edge %d, piece %u, that cannot be\n", source,
                edge, path);
        exit(EXIT_FAILURE);
    }
    if (!d->refining && !mesh_sub_idle(d->sub)) {
        d->refining = true;
        send_refine(f, p, object);
    }
}

static void on_measure(ferry *f, ferry_object object, void *data, int source,
                       const ferry_message *message)
{
    (void)object;
    (void)source;
    (void)message;
    mesh_program *p = ferry_user_data(f);
    mesh_account *a = &p->accounts[ferry_rank(f)];
    const mesh_sub *sub = ((const domain *)data)->sub;
    a->triangles += sub->head.tri_count;
    a->points += sub->head.point_count;
    a->memory_bytes += (int64_t)mesh_sub_memory(sub);
}

/* Rank 0 shows how far the others are: on a terminal in place, else in a few lines. */
static void on_progress(ferry *f, int source, const ferry_message *message)
{
    (void)source;
    (void)message;
    mesh_program *p = ferry_user_data(f);
    bool terminal = isatty(STDERR_FILENO);
    int32_t all = p->start.subdomains, steps = terminal ? 50 : 4;
    p->refined++;
    if ((int64_t)p->refined * steps / all == (int64_t)p->shown * steps / all)
        return;
    p->shown = p->refined;
    fprintf(stderr, "%srefined %d of %d sub-domains%s", terminal ? "\r" : "", p->refined, all,
            terminal && p->refined < all ? "" : "\n");
}

int mesh_register(ferry *f, mesh_program *p)
{
    const ferry_object_ops ops = {
        .size = sizeof ops,
        .name = "sub-domain",
        .packed_size = domain_packed_size,
        .pack = domain_pack,
        .unpack = domain_unpack,
        .destroy = domain_destroy,
        .load = domain_load,
    };
    int error = ferry_object_type_register(f, &ops, &p->type);
    if (error == 0)
        error = ferry_object_handler_register(f, "refine", on_refine, &p->refine);
    if (error == 0)
        error = ferry_object_handler_register(f, "split", on_split, &p->split);
    if (error == 0)
        error = ferry_object_handler_register(f, "measure", on_measure, &p->measure);
    if (error == 0)
        error = ferry_handler_register(f, "progress", on_progress, &p->progress);
    return error != 0 ? error : mesh_register_collect(f, p);
}

mesh_sub *mesh_local(ferry *f, const mesh_program *p, int32_t index)
{
    const domain *d = ferry_object_data(f, p->objects[index]);
    return d == NULL ? NULL : d->sub;
}

int mesh_home(const ferry *f, const mesh_program *p, int32_t index)
{
    return (int)((int64_t)index * ferry_ranks(f) / p->start.subdomains);
}

/* Rank 0 makes sub-domain `index`, names it, and sends it where it begins. */
static int make_domain(ferry *f, mesh_program *p, int32_t index)
{
    mesh_log log = {0};
    domain *d = calloc(1, sizeof *d);
    if (d != NULL)
        d->sub = mesh_decomp_sub(&p->decomp, &p->start.sizing, index, &log);
    if (d == NULL || d->sub == NULL) {
        fprintf(stderr, "mesh: sub-domain %d cannot be made: %s\n", index,
                d == NULL ? "no memory" : log.error);
        free(d);
        return FERRY_ENOMEM;
    }
    d->refining = true; /* mesh_refine_all sends the message */
    int error = ferry_object_create(f, p->type, d, &p->objects[index]);
    if (error != 0) {
        domain_destroy(f, d);
        return error;
    }
    error = ferry_balance_add(f, p->objects[index], NULL);
    int home = mesh_home(f, p, index);
    return error != 0 || home == 0 ? error : ferry_object_move(f, p->objects[index], home);
}

static int32_t count_at_home(const ferry *f, const mesh_program *p)
{
    int32_t count = 0;
    for (int32_t i = 0; i < p->start.subdomains; i++)
        count += mesh_home(f, p, i) == ferry_rank(f);
    return count;
}

int mesh_distribute(ferry *f, mesh_program *p)
{
    size_t size_bytes = (size_t)p->start.subdomains * sizeof *p->objects;
    p->objects = calloc((size_t)p->start.subdomains, sizeof *p->objects);
    if (p->objects == NULL)
        return FERRY_ENOMEM;
    int error = 0;
    for (int32_t i = 0; ferry_rank(f) == 0 && i < p->start.subdomains && error == 0; i++) {
        error = make_domain(f, p, i);
        if (p->store != NULL)
            ferry_store_trim(p->store);
    }
    if (error == 0)
        error = ferry_broadcast(f, 0, p->objects, size_bytes);
    size_t expected = (size_t)count_at_home(f, p);
    while (error == 0 && ferry_object_count(f) != expected) {
        int handled = ferry_wait(f, FERRY_FOREVER);
        error = handled < 0 ? handled : 0;
    }
    return error != 0 ? error : ferry_barrier(f);
}

int mesh_measure(ferry *f, mesh_program *p)
{
    const ferry_message message = {.handler = p->measure};
    int error = 0;
    for (int32_t i = 0; ferry_rank(f) == 0 && i < p->start.subdomains && error == 0; i++)
        error = ferry_object_send(f, p->objects[i], &message, NULL);
    return error != 0 ? error : ferry_quiesce(f);
}

/* The most memory that this process has had. */
static uint64_t peak_bytes(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? (uint64_t)usage.ru_maxrss * 1024 : 0;
}

/* The account since `before`. */
static ferry_stats since(ferry *f, const ferry_stats *before)
{
    ferry_stats s = FERRY_STATS_DEFAULTS;
    ferry_stats_get(f, &s);
    s.messages_sent -= before->messages_sent;
    s.messages_handled -= before->messages_handled;
    s.messages_forwarded -= before->messages_forwarded;
    s.objects_in -= before->objects_in;
    s.objects_out -= before->objects_out;
    s.tasks -= before->tasks;
    s.task_ns -= before->task_ns;
    s.task_cpu_ns -= before->task_cpu_ns;
    s.idle_ns -= before->idle_ns;
    s.runtime_ns -= before->runtime_ns;
    s.runtime_cpu_ns -= before->runtime_cpu_ns;
    s.helper_ns -= before->helper_ns;
    return s;
}

int mesh_refine_all(ferry *f, mesh_program *p)
{
    ferry_stats before = FERRY_STATS_DEFAULTS;
    int error = ferry_balance_enable(f, true);
    if (error != 0)
        return error;
    ferry_stats_get(f, &before);
    p->begin_ns = ferry_now(f);
    for (int32_t i = 0; i < p->start.subdomains; i++)
        if (mesh_home(f, p, i) == ferry_rank(f))
            send_refine(f, p, p->objects[i]);
    error = ferry_quiesce(f);
    p->end_ns = ferry_now(f);
    mesh_account *a = &p->accounts[ferry_rank(f)];
    a->stats = since(f, &before);
    a->splits = p->splits_sent;
    a->peak_bytes = peak_bytes();
    a->store = (ferry_store_stats)FERRY_STORE_STATS_DEFAULTS;
    if (error == 0 && p->store != NULL)
        error = ferry_store_stats_get(p->store, &a->store);
    return error != 0 ? error : ferry_balance_enable(f, false);
}
