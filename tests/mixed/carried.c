/* Objects that the program carries: uninstalled here, sent in a request, installed there. Each is
 * installed once, and no message runs on the way. */
#include "mixed.h"

/* A request has this, then the bytes of the information, then the data. */
typedef struct load {
    uint64_t index, info_bytes, data_bytes;
    int64_t source;
} load;

/* The information begins at a multiple of 8 bytes, and so do the data. */
static size_t padded(uint64_t size_bytes)
{
    return (size_t)(size_bytes + 7) / 8 * 8;
}

/* Sends a load, from a handler too. It tries until there is room and memory: a load that stayed
 * here would keep messages waiting. */
static void carry(ferry *f, int rank, const void *bytes, size_t size_bytes, bool polls)
{
    account *a = ferry_user_data(f);
    const ferry_message message = {.handler = a->carried, .data = bytes, .size_bytes = size_bytes};
    int error = FERRY_EAGAIN;
    for (int tries = 0; tries < 1000 && error != 0 && error != FERRY_EPEER; tries++) {
        error = ferry_request_send(f, rank, &message, NULL);
        if (error != 0 && polls)
            (void)ferry_poll(f);
    }
    if (error != FERRY_EPEER || !has(DEATHS))
        must(f, error, "send what is carried");
}

static void on_carried(ferry *f, int source, const ferry_message *message)
{
    load head;
    const unsigned char *bytes = message->data;
    memcpy(&head, bytes, sizeof head);
    (void)source;
    if (message->size_bytes != sizeof head + padded(head.info_bytes) + head.data_bytes)
        wrong(f, "a load has another size", message->size_bytes, head.data_bytes);
    void *data = malloc(head.data_bytes), *info_bytes = malloc(head.info_bytes);
    if (data == NULL || info_bytes == NULL)
        abort();
    memcpy(info_bytes, bytes + sizeof head, head.info_bytes);
    memcpy(data, bytes + sizeof head + padded(head.info_bytes), head.data_bytes);
    const ferry_move_info info = {info_bytes, head.info_bytes};
    if (!atomic_exchange(&t->objects[head.index].is_carried, false))
        wrong(f, "an object came that nobody carried", head.index, 0);
    int error = ferry_object_install(f, &info, data, (int)head.source);
    if (error == 0) {
        atomic_fetch_add(&t->objects[head.index].installed, 1);
        atomic_fetch_add(&t->carries, 1);
        if (ferry_object_install(f, &info, data, (int)head.source) != FERRY_EINVAL)
            wrong(f, "an object was installed twice", head.index, 0);
    } else {
        free(data);
        atomic_store(&t->objects[head.index].is_carried, true);
    }
    free(info_bytes);
    if (error == FERRY_EAGAIN || (error == FERRY_ENOMEM && has(DEATHS)))
        carry(f, ferry_rank(f), message->data, message->size_bytes, false);
    else if (error != FERRY_EINVAL || !has(DEATHS))
        must(f, error, "install");
}

/* Takes an object out, and gives the bytes of its load. NULL: it stays. */
static unsigned char *uninstall(ferry *f, uint64_t index, int rank, size_t *size_bytes)
{
    const ferry_object object = {atomic_load(&t->objects[index].word)};
    ferry_move_info info;
    void *data = NULL;
    atomic_store(&t->objects[index].is_carried, true);
    int error = ferry_object_uninstall(f, object, rank, &info, &data);
    if (error != 0) {
        atomic_store(&t->objects[index].is_carried, false);
        bool may_be = error == FERRY_ENOENT || (error == FERRY_ENOMEM && has(DEATHS)) ||
                      (error == FERRY_EPEER &&
                       (has(DEATHS) || is_leaving(rank) || atomic_load(&t->places[rank].comes) ||
                        atomic_load(&mine(f)->comes)));
        if (!may_be)
            must(f, error, "uninstall");
        return NULL;
    }
    const thing *x = data;
    load head = {index, info.size_bytes, sizeof *x + x->size_bytes, ferry_rank(f)};
    *size_bytes = sizeof head + padded(head.info_bytes) + head.data_bytes;
    unsigned char *bytes = calloc(1, *size_bytes);
    if (bytes == NULL)
        abort();
    memcpy(bytes, &head, sizeof head);
    memcpy(bytes + sizeof head, info.bytes, info.size_bytes);
    memcpy(bytes + sizeof head + padded(head.info_bytes), data, head.data_bytes);
    free(info.bytes);
    free(data);
    return bytes;
}

/* Carries an object that is here, if the program finds one, to another rank. */
void carried_act(ferry *f, account *a)
{
    uint64_t first = draw(&a->random, OBJECTS_MAX);
    int rank = draw_rank(f, a);
    if (rank < 0 || rank == ferry_rank(f))
        return;
    for (uint64_t i = 0; i < OBJECTS_MAX; i++) {
        uint64_t index = (first + i) % OBJECTS_MAX;
        const ferry_object object = {atomic_load(&t->objects[index].word)};
        size_t size_bytes;
        if (object.word == 0 || ferry_object_data(f, object) == NULL)
            continue;
        unsigned char *bytes = uninstall(f, index, rank, &size_bytes);
        if (bytes == NULL)
            return;
        a->installs[index] = atomic_fetch_add(&t->objects[index].uninstalled, 1) + 1;
        if (one_in(&a->random, 3))
            (void)send_object(f, FROM_MAIN, t->plan.hops);
        carry(f, rank, bytes, size_bytes, true);
        free(bytes);
        return;
    }
}

/* After a quiescence: each object that this rank gave away has been installed. */
void carried_check(ferry *f, account *a)
{
    for (uint64_t i = 0; i < OBJECTS_MAX && !has(DEATHS); i++)
        if (atomic_load(&t->objects[i].installed) < a->installs[i])
            wrong(f, "a carried object was not installed", i, a->installs[i]);
}

void carried_open(ferry *f, account *a)
{
    must(f, ferry_handler_register(f, "carried", on_carried, &a->carried), "handler");
}
