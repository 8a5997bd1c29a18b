/* Bringing everything to rank 0: sub-domains by migration, accounts by requests. */
#include "program.h"

#include <stdio.h>
#include <string.h>

static void on_account(ferry *f, int source, const ferry_message *message)
{
    mesh_program *p = ferry_user_data(f);
    if (message->size_bytes != sizeof *p->accounts)
        return;
    memcpy(&p->accounts[source], message->data, sizeof *p->accounts);
    p->account_count++;
}

int mesh_register_collect(ferry *f, mesh_program *p)
{
    return ferry_handler_register(f, "account", on_account, &p->account);
}

static int send_account(ferry *f, mesh_program *p)
{
    const ferry_message message = {.handler = p->account,
                                   .data = &p->accounts[ferry_rank(f)],
                                   .size_bytes = sizeof *p->accounts};
    return ferry_request_send(f, 0, &message, NULL);
}

static int read_back(mesh_program *p)
{
    ferry_store *store = p->store;
    p->store = NULL;
    return ferry_store_close(store);
}

static int send_home(ferry *f, mesh_program *p)
{
    int error = 0;
    for (int32_t i = 0; ferry_rank(f) != 0 && i < p->start.subdomains && error == 0; i++)
        if (ferry_object_data(f, p->objects[i]) != NULL)
            error = ferry_object_move(f, p->objects[i], 0);
    return error;
}

int mesh_collect(ferry *f, mesh_program *p)
{
    int64_t times[2] = {-(int64_t)p->begin_ns, (int64_t)p->end_ns};
    int error = ferry_allreduce(f, FERRY_INT64, FERRY_MAX, times, times, 2);
    if (error != 0)
        return error;
    p->begin_ns = (uint64_t)-times[0];
    p->end_ns = (uint64_t)times[1];
    error = send_account(f, p);
    bool home = mesh_comes_home(p);
    if (error == 0 && home)
        error = read_back(p);
    if (error == 0 && home)
        error = send_home(f, p);
    size_t expected = ferry_rank(f) == 0 ? (size_t)p->start.subdomains : 0;
    bool all = false;
    while (error == 0 && !all) {
        all = (!home || ferry_object_count(f) == expected) &&
              (ferry_rank(f) != 0 || p->account_count == ferry_ranks(f));
        int handled = all ? 0 : ferry_wait(f, FERRY_FOREVER);
        error = handled < 0 ? handled : 0;
    }
    return error != 0 ? error : ferry_barrier(f);
}
