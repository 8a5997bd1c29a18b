/* The tasks of objects, as a trace tells them, in memory that a simulation can map. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cmd/report/trace.h"
#include "cmd/scale/scale.h"

enum {
    HOME_SHIFT = 44, /* above it a name has the rank that made the object */
    TASKS_MAX = 100000000,
};

static int by_name(const void *left, const void *right)
{
    const scale_object *a = left, *b = right;
    return (a->name > b->name) - (a->name < b->name);
}

/* Adds up what the ranks tell of each object; the names rise. How many objects had tasks. */
static size_t merge(scale_object *objects, size_t count)
{
    size_t kept = 0;
    qsort(objects, count, sizeof *objects, by_name);
    for (size_t i = 0; i < count; i++) {
        if (kept > 0 && objects[kept - 1].name == objects[i].name) {
            objects[kept - 1].task_ns += objects[i].task_ns;
            objects[kept - 1].tasks += objects[i].tasks;
        } else {
            objects[kept++] = objects[i];
        }
    }
    return kept;
}

static uint64_t home_of(const scale_object *object, int ranks)
{
    uint64_t home = object->name >> HOME_SHIFT;
    return home < (uint64_t)ranks ? home : (uint64_t)ranks - 1;
}

/* Deals the objects of each first rank out evenly over its part of the line from 0 to 1. */
static void place(scale_object *objects, size_t count, int ranks)
{
    for (size_t first = 0; first < count;) {
        uint64_t home = home_of(&objects[first], ranks);
        size_t end = first;
        while (end < count && home_of(&objects[end], ranks) == home)
            end++;
        for (size_t i = first; i < end; i++) {
            double part = (double)(i - first) / (double)(end - first);
            objects[i].place = ((double)home + part) / (double)ranks;
        }
        first = end;
    }
}

/* The accounts of all ranks, of objects with tasks; NULL without memory. */
static scale_object *gather(const trace_run *run, size_t *count)
{
    size_t room = 1;
    for (int i = 0; i < run->ranks; i++)
        room += run->rank[i].object_count;
    scale_object *objects = calloc(room, sizeof *objects);
    *count = 0;
    for (int i = 0; i < run->ranks && objects != NULL; i++)
        for (size_t k = 0; k < run->rank[i].object_count; k++) {
            const trace_object *o = &run->rank[i].objects[k];
            if (o->handled > 0 && o->object != 0) /* 0: what is beyond the accounts */
                objects[(*count)++] = (scale_object){
                    .name = o->object, .task_ns = o->handler_ns, .tasks = o->handled};
        }
    return objects;
}

/* Memory that a child process can map by its descriptor. */
static bool share(scale_trace *t, const scale_object *objects, size_t count, uint64_t bytes)
{
    size_t size = sizeof *t->plan + count * sizeof *objects;
    t->fd = memfd_create("ferry scale", 0);
    if (t->fd < 0 || ftruncate(t->fd, (off_t)size) != 0)
        return false;
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, t->fd, 0);
    if (at == MAP_FAILED)
        return false;
    t->plan = at;
    t->plan->bytes = bytes;
    t->plan->count = count;
    memcpy(t->plan->objects, objects, count * sizeof *objects);
    return true;
}

static void sum_up(scale_trace *t, const trace_run *run, const scale_object *objects, size_t count)
{
    double counted = 0;
    for (size_t i = 0; i < count; i++) {
        double seconds = (double)objects[i].task_ns * 1e-9;
        t->tasks += objects[i].tasks;
        t->seconds += seconds;
        t->heaviest = fmax(t->heaviest, seconds);
    }
    for (int i = 0; i < run->ranks; i++)
        counted += (double)trace_stat_of(&run->rank[i], "task_ns") * 1e-9;
    t->left_out = fmax(0, counted - t->seconds);
}

bool scale_trace_read(const char *folder, uint64_t bytes, scale_trace *out,
                      char error[SCALE_ERROR_BYTES])
{
    trace_run run;
    scale_trace t = {.fd = -1};
    size_t count = 0;
    bool good = false;
    _Static_assert((int)SCALE_ERROR_BYTES == (int)TRACE_ERROR_BYTES, "one error for both");
    if (!trace_run_read(folder, &run, error))
        return false;
    scale_object *objects = gather(&run, &count);
    if (objects != NULL) {
        count = merge(objects, count);
        place(objects, count, run.ranks);
        sum_up(&t, &run, objects, count);
    }
    t.ranks = run.ranks;
    if (objects == NULL || (t.seconds > 0 && !share(&t, objects, count, bytes)))
        (void)snprintf(error, SCALE_ERROR_BYTES, "%.4000s: no memory for %zu objects: %s", folder,
                       count, strerror(errno));
    else if (!(t.seconds > 0))
        (void)snprintf(error, SCALE_ERROR_BYTES,
                       "%.4000s: %zu objects had tasks, of 0 s together; expected a trace with "
                       "tasks of objects",
                       folder, count);
    else if (t.tasks > TASKS_MAX)
        (void)snprintf(error, SCALE_ERROR_BYTES, "%.4000s: %llu tasks; expected at most %d", folder,
                       (unsigned long long)t.tasks, TASKS_MAX);
    else
        good = true;
    free(objects);
    trace_run_fini(&run);
    *out = t;
    return good;
}
