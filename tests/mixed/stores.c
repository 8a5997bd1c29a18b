/* Objects on disk. A rank opens a store with a small budget, and closes it some time later.
 * Meanwhile its objects get messages, move, end and are carried as those of other ranks: the
 * handler of their messages sees that their data are as before. */
#include "mixed.h"

static void store_open(ferry *f, account *a)
{
    ferry_store_options options = FERRY_STORE_OPTIONS_DEFAULTS;
    options.budget_bytes = CHOOSE(&a->random, 1, 5000, 40000, 200000);
    options.flags = (uint32_t)draw(&a->random, 4);
    int error = ferry_store_open(f, &options, &a->store);
    if (error != FERRY_ENOMEM || !has(DEATHS))
        must(f, error, "store_open");
    if (error != 0)
        return;
    error = ferry_store_add(a->store, a->type);
    if (error != FERRY_ENOMEM || !has(DEATHS))
        must(f, error, "store_add");
    atomic_fetch_add(&t->stored, 1);
}

static void stats_check(ferry *f, account *a)
{
    ferry_store_stats s = FERRY_STORE_STATS_DEFAULTS;
    must(f, ferry_store_stats_get(a->store, &s), "store_stats_get");
    if (s.disk_objects > s.objects || s.resident_bytes > s.peak_bytes)
        wrong(f, "counts of a store", s.disk_objects, s.objects);
    if (s.read_errors != 0) /* a write fails if the disk is full: the object stays in memory */
        wrong(f, "an object cannot be read", s.read_errors, s.disk_objects);
}

static void store_close(ferry *f, account *a)
{
    int error = ferry_store_close(a->store);
    if (error == 0)
        a->store = NULL;
    else if (error != FERRY_EAGAIN && (error != FERRY_ENOMEM || !has(DEATHS)))
        must(f, error, "store_close");
}

/* Moves an object of this rank, which may be on disk. */
static void move_any(ferry *f, account *a)
{
    const ferry_object object = {atomic_load(&t->objects[draw(&a->random, OBJECTS_MAX)].word)};
    int rank = draw_rank(f, a);
    if (object.word == 0 || rank < 0)
        return;
    int error = ferry_object_move(f, object, rank);
    bool may_be = error == FERRY_ENOENT || (error == FERRY_ENOMEM && has(DEATHS)) ||
                  (error == FERRY_EPEER &&
                   (has(DEATHS) || is_leaving(rank) || atomic_load(&t->places[rank].comes) ||
                    atomic_load(&mine(f)->comes)));
    if (!may_be)
        must(f, error, "move from a store");
}

void stores_act(ferry *f, account *a)
{
    if (a->store == NULL) {
        store_open(f, a);
        return;
    }
    stats_check(f, a);
    switch (draw(&a->random, 6)) {
    case 0:
        store_close(f, a);
        break;
    case 1:
        ferry_store_trim(a->store);
        break;
    case 2:
        object_create(f, a);
        break;
    default:
        move_any(f, a);
        break;
    }
}
