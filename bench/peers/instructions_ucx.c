/* The UCX side of the instructions benchmark: two workers of one process, which one thread drives
 * in turn, over UCX's shared memory as between processes. Requests are active messages. The cases
 * are those of bench/peers/instructions.c. */
#include <ucp/api/ucp.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <valgrind/callgrind.h>

enum { ROUNDS = 16, BATCH = 32, OPERATIONS = ROUNDS * BATCH, LONG_BYTES = 1024, AM_REQUEST = 1 };

typedef struct end_point {
    ucp_context_h context;
    ucp_worker_h worker;
    ucp_ep_h peer;
} end_point;

typedef struct side {
    end_point ends[2];
    ucp_mem_h memory; /* of the second */
    ucp_rkey_h key;
    uint64_t remote, arrived, begun;
} side;

static void check(ucs_status_t status, const char *what)
{
    if (status == UCS_OK)
        return;
    fprintf(stderr, "bench: ucx: %s: %s\n", what, ucs_status_string(status));
    exit(1);
}

static void begin(side *s)
{
    s->begun++;
    CALLGRIND_TOGGLE_COLLECT;
}

static void end(void)
{
    CALLGRIND_TOGGLE_COLLECT;
}

static inline void finish(const side *s, ucs_status_ptr_t request)
{
    if (request == NULL)
        return;
    check(UCS_PTR_IS_ERR(request) ? UCS_PTR_STATUS(request) : UCS_OK, "operation");
    while (ucp_request_check_status(request) == UCS_INPROGRESS)
        for (int i = 0; i < 2; i++)
            ucp_worker_progress(s->ends[i].worker);
    ucp_request_free(request);
}

static ucs_status_t on_request(void *arg, const void *header, size_t header_bytes, void *data,
                               size_t size_bytes, const ucp_am_recv_param_t *param)
{
    side *s = arg;
    (void)header, (void)header_bytes, (void)data, (void)size_bytes, (void)param;
    s->arrived++;
    return UCS_OK;
}

static void nothing(side *s)
{
    for (int i = 0; i < OPERATIONS; i++) {
        begin(s);
        end();
    }
}

static void poll(side *s)
{
    begin(s);
    for (int i = 0; i < OPERATIONS; i++)
        ucp_worker_progress(s->ends[0].worker);
    end();
}

static void requests(side *s, size_t size_bytes, int batch, bool sent)
{
    static const char data[LONG_BYTES];
    const ucp_request_param_t eager = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
                                       .flags = UCP_AM_SEND_FLAG_EAGER};
    for (int i = 0; i < OPERATIONS; i += batch) {
        uint64_t wanted = s->arrived + (uint64_t)batch;
        if (sent)
            begin(s);
        for (int k = 0; k < batch; k++)
            finish(s,
                   ucp_am_send_nbx(s->ends[0].peer, AM_REQUEST, NULL, 0, data, size_bytes, &eager));
        if (sent)
            end();
        else
            begin(s);
        while (s->arrived < wanted)
            ucp_worker_progress(s->ends[1].worker);
        if (!sent)
            end();
    }
}

static void request_sent(side *s)
{
    requests(s, 8, BATCH, true);
}

static void request_taken(side *s)
{
    requests(s, 8, 1, false);
}

static void request_batch(side *s)
{
    requests(s, 8, BATCH, false);
}

static void request_long_sent(side *s)
{
    requests(s, LONG_BYTES, BATCH, true);
}

static void request_long_taken(side *s)
{
    requests(s, LONG_BYTES, 1, false);
}

static void put(side *s)
{
    const ucp_request_param_t none = {0};
    uint64_t word = 0;
    begin(s);
    for (int i = 0; i < OPERATIONS; i++)
        finish(s, ucp_put_nbx(s->ends[0].peer, &word, sizeof word, s->remote, s->key, &none));
    end();
}

static void get(side *s)
{
    const ucp_request_param_t none = {0};
    uint64_t word;
    begin(s);
    for (int i = 0; i < OPERATIONS; i++)
        finish(s, ucp_get_nbx(s->ends[0].peer, &word, sizeof word, s->remote, s->key, &none));
    end();
}

static const struct {
    const char *name;
    void (*run)(side *s);
} cases[] = {
    {"nothing", nothing},
    {"poll-2", poll},
    {"request-8B-sent", request_sent},
    {"request-8B-taken", request_taken},
    {"request-8B-batch", request_batch},
    {"request-1KiB-sent", request_long_sent},
    {"request-1KiB-taken", request_long_taken},
    {"put-8B", put},
    {"get-8B", get},
};

static void settle(const side *s)
{
    for (int i = 0; i < 1000; i++)
        ucp_worker_progress(s->ends[i % 2].worker);
}

static void measure(side *s, int index)
{
    char label[96];
    /* The first time is for what is set up when first needed. */
    for (int pass = 0; pass < 2; pass++) {
        settle(s);
        s->begun = 0;
        CALLGRIND_ZERO_STATS;
        cases[index].run(s);
    }
    snprintf(label, sizeof label, "%s %d %llu", cases[index].name, OPERATIONS,
             (unsigned long long)s->begun);
    CALLGRIND_DUMP_STATS_AT(label);
}

static void open_end(side *s, end_point *e)
{
    const ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES,
                                 .features = UCP_FEATURE_AM | UCP_FEATURE_RMA};
    const ucp_worker_params_t single = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                        .thread_mode = UCS_THREAD_MODE_SINGLE};
    const ucp_am_handler_param_t handler = {.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID |
                                                          UCP_AM_HANDLER_PARAM_FIELD_CB |
                                                          UCP_AM_HANDLER_PARAM_FIELD_ARG,
                                            .id = AM_REQUEST,
                                            .cb = on_request,
                                            .arg = s};
    check(ucp_init(&params, NULL, &e->context), "init");
    check(ucp_worker_create(e->context, &single, &e->worker), "worker");
    check(ucp_worker_set_am_recv_handler(e->worker, &handler), "handler");
}

static void connect_to(end_point *from, const end_point *to)
{
    ucp_address_t *address;
    size_t address_bytes;
    check(ucp_worker_get_address(to->worker, &address, &address_bytes), "address");
    const ucp_ep_params_t there = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS,
                                   .address = address};
    check(ucp_ep_create(from->worker, &there, &from->peer), "endpoint");
    ucp_worker_release_address(to->worker, address);
}

static void open_memory(side *s)
{
    const ucp_mem_map_params_t params = {.field_mask = UCP_MEM_MAP_PARAM_FIELD_LENGTH |
                                                       UCP_MEM_MAP_PARAM_FIELD_FLAGS,
                                         .length = sizeof(uint64_t),
                                         .flags = UCP_MEM_MAP_ALLOCATE};
    ucp_mem_attr_t where = {.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS};
    void *key;
    size_t key_bytes;
    check(ucp_mem_map(s->ends[1].context, &params, &s->memory), "memory");
    check(ucp_mem_query(s->memory, &where), "memory");
    check(ucp_rkey_pack(s->ends[1].context, s->memory, &key, &key_bytes), "key");
    check(ucp_ep_rkey_unpack(s->ends[0].peer, key, &s->key), "key");
    ucp_rkey_buffer_release(key);
    s->remote = (uint64_t)(uintptr_t)where.address;
}

int main(int argc, char **argv)
{
    side s = {0};
    for (int i = 0; i < 2; i++)
        open_end(&s, &s.ends[i]);
    for (int i = 0; i < 2; i++)
        connect_to(&s.ends[i], &s.ends[!i]);
    open_memory(&s);
    CALLGRIND_START_INSTRUMENTATION;
    for (int i = 1; i < argc; i++)
        for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
            if (strcmp(argv[i], cases[k].name) == 0)
                measure(&s, (int)k);
    return 0; /* the system takes back what UCX holds */
}
