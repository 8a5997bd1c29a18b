/* Stop and repartition, prema.txt 7.2.1: no scheduler moves anything. Each rank meshes its own
 * sub-domains, and looks at messages between them. One that has fewer left than the threshold asks
 * all ranks to stop. When all have, they exchange what is left, rank 0 has METIS divide it, and
 * sub-domains move. Nobody stops any more once there is no more than one for each rank, or all have
 * stopped as often as the options say. */
#include "program.h"

#include <stdlib.h>
#include <string.h>

static void on_stop(ferry *f, int source, const ferry_message *message)
{
    front_program *p = ferry_user_data(f);
    (void)source;
    if ((int32_t)message->words[0] == p->rounds)
        p->stops++;
}

int front_register_stop(ferry *f, front_program *p)
{
    return ferry_handler_register(f, "stop", on_stop, &p->stop);
}

static int ask_to_stop(ferry *f, front_program *p)
{
    const ferry_message message = {
        .handler = p->stop, .word_count = 1, .words = {(uint64_t)p->rounds}};
    p->stops++;
    return ferry_ranks(f) > 1 ? ferry_request_broadcast(f, &message, NULL) : 0;
}

/* Handles what has come. 0 or FERRY_E... */
static int look(ferry *f)
{
    int handled;
    while ((handled = ferry_poll(f)) > 0)
        continue;
    return handled;
}

static front_part *next_part(ferry *f, const front_program *p)
{
    for (int32_t i = 0; i < front_domain_count(&p->options.domain); i++)
        if (p->waiting_here[i] != 0)
            return ferry_object_data(f, p->objects[i]);
    return NULL;
}

/* Meshes what is here until fewer than `threshold` are left or another rank wants all to stop. */
static int work(ferry *f, front_program *p, int32_t threshold)
{
    int error = look(f);
    while (error == 0 && p->stops == 0 && p->waiting > 0 && p->waiting >= threshold) {
        front_part *part = next_part(f, p);
        if (part == NULL)
            return FERRY_ENOENT;
        front_mesh_part(f, p, part);
        error = look(f);
    }
    return error;
}

/* Learns on which rank each sub-domain is that waits; -1: it does not. Returns how many wait, or
 * FERRY_E... */
static int32_t exchange(ferry *f, front_program *p, int32_t *owner)
{
    int32_t count = front_domain_count(&p->options.domain), left = 0;
    for (int32_t i = 0; i < count; i++)
        owner[i] = p->waiting_here[i] != 0 ? ferry_rank(f) : -1;
    int error = ferry_allreduce(f, FERRY_INT32, FERRY_MAX, owner, owner, (size_t)count);
    for (int32_t i = 0; i < count; i++)
        left += owner[i] >= 0;
    return error != 0 ? error : left;
}

/* Moves sub-domains to their owners and waits for those that come. */
static int move(ferry *f, front_program *p, const int32_t *owner)
{
    int32_t count = front_domain_count(&p->options.domain), expected = 0;
    int error = 0;
    for (int32_t i = 0; error == 0 && i < count; i++) {
        expected += owner[i] == ferry_rank(f);
        if (p->waiting_here[i] != 0 && owner[i] != ferry_rank(f))
            error = ferry_object_move(f, p->objects[i], owner[i]);
    }
    while (error == 0 && p->waiting != expected) {
        int handled = ferry_wait(f, FERRY_FOREVER);
        error = handled < 0 ? handled : 0;
    }
    return error != 0 ? error : ferry_barrier(f);
}

static int divide(ferry *f, front_program *p, int32_t *owner)
{
    int32_t count = front_domain_count(&p->options.domain);
    const int64_t *weights = p->options.hint ? p->weights : NULL;
    if (ferry_rank(f) == 0 &&
        !front_repartition(&p->options.domain, weights, ferry_ranks(f), owner))
        owner[0] = INT32_MIN;
    int error = ferry_broadcast(f, 0, owner, (size_t)count * sizeof *owner);
    if (error == 0 && owner[0] == INT32_MIN)
        error = FERRY_ENOMEM;
    return error != 0 ? error : move(f, p, owner);
}

/* Works and stops until nothing is left anywhere. */
static int run_rounds(ferry *f, front_program *p, int32_t *owner)
{
    int32_t left = front_domain_count(&p->options.domain);
    int error = 0;
    while (error == 0 && left > 0) {
        int32_t threshold = (int32_t)p->options.threshold;
        bool last = left <= ferry_ranks(f) || p->rounds >= p->options.stops;
        error = work(f, p, last ? 0 : p->waiting > threshold ? threshold : 1);
        if (error == 0 && !last && p->stops == 0)
            error = ask_to_stop(f, p);
        left = error != 0 ? error : exchange(f, p, owner);
        p->rounds++;
        p->stops = 0;
        if (left > 0)
            error = divide(f, p, owner);
    }
    return error != 0 ? error : left;
}

int front_run_repartition(ferry *f, front_program *p)
{
    int32_t count = front_domain_count(&p->options.domain);
    int32_t *owner = malloc((size_t)count * sizeof *owner);
    int error = owner == NULL ? FERRY_ENOMEM : ferry_barrier(f);
    ferry_stats_get(f, &p->before);
    uint64_t begin_ns = ferry_now(f);
    if (error == 0)
        error = run_rounds(f, p, owner);
    if (error == 0)
        error = ferry_quiesce(f);
    p->took_ns = ferry_now(f) - begin_ns;
    ferry_stats_get(f, &p->after);
    free(owner);
    return error;
}
