/* The UCX side: two processes over UCP. Active messages for single requests, tags for streams (the
 * faster of the two each), remote memory that UCX allocated. Addresses travel over the board. */
#include <ucp/api/ucp.h>

#include "common/team.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BUFFER_BYTES = 8 << 20, WINDOW = 64, BLOCKS = 2, BLOCK_BYTES = 4 << 20, AM_PING = 1 };

typedef struct blob {
    uint64_t address_bytes, key_bytes, memory;
    unsigned char bytes[BENCH_BLOB_BYTES - 3 * sizeof(uint64_t)];
} blob;

typedef struct state {
    int rank;
    bench_board *board;
    ucp_context_h context;
    ucp_worker_h worker;
    ucp_ep_h peer;
    ucp_mem_h memory;
    void *base; /* of the memory that the peer may touch */
    uint64_t remote;
    ucp_rkey_h key;
    unsigned char *own;
    volatile uint64_t arrived;
    uint64_t sum;
} state;

static void check(ucs_status_t status, const char *what)
{
    if (status == UCS_OK)
        return;
    fprintf(stderr, "bench: ucx: %s: %s\n", what, ucs_status_string(status));
    exit(1);
}

static void finish(state *s, ucs_status_ptr_t request)
{
    if (request == NULL)
        return;
    check(UCS_PTR_IS_ERR(request) ? UCS_PTR_STATUS(request) : UCS_OK, "operation");
    while (ucp_request_check_status(request) == UCS_INPROGRESS)
        ucp_worker_progress(s->worker);
    ucp_request_free(request);
}

static ucs_status_t on_message(void *arg, const void *header, size_t header_bytes, void *data,
                               size_t size_bytes, const ucp_am_recv_param_t *param)
{
    state *s = arg;
    (void)header;
    (void)header_bytes;
    (void)param;
    memcpy(s->own, data, size_bytes); /* where answers are sent from */
    s->arrived++;
    return UCS_OK;
}

/* `base`: messages that had arrived when the job began. */
static double ping_pong(state *s, const bench_job *job, uint64_t base)
{
    uint64_t warm = bench_warmup(job), start = 0;
    ucp_request_param_t eager = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
                                 .flags = UCP_AM_SEND_FLAG_EAGER};
    for (uint64_t i = 0; i < warm + job->count; i++) {
        if (i == warm)
            start = bench_now();
        for (int turn = 0; turn < 2; turn++) {
            if (turn == s->rank)
                finish(s,
                       ucp_am_send_nbx(s->peer, AM_PING, NULL, 0, s->own, job->size_bytes, &eager));
            while (turn != s->rank && s->arrived <= base + i)
                ucp_worker_progress(s->worker);
        }
    }
    return (double)(bench_now() - start);
}

static double request(void *context, const bench_job *job)
{
    state *s = context;
    return ping_pong(s, job, s->arrived);
}

static ucs_status_ptr_t start_one(state *s, uint64_t tag, size_t at, size_t size_bytes)
{
    ucp_request_param_t none = {0};
    return s->rank == 0
               ? ucp_tag_send_nbx(s->peer, s->own, size_bytes, tag, &none)
               : ucp_tag_recv_nbx(s->worker, s->own + at, size_bytes, tag, UINT64_MAX, &none);
}

static void rate_stream(state *s, size_t size_bytes, uint64_t count)
{
    ucs_status_ptr_t requests[WINDOW];
    for (uint64_t at = 0; at < count;) {
        size_t n = 0;
        for (; n < WINDOW && at < count; n++, at++)
            requests[n] = start_one(s, 2, n * size_bytes, size_bytes);
        for (size_t i = 0; i < n; i++)
            finish(s, requests[i]);
    }
}

static void block_stream(state *s, size_t size_bytes, uint64_t count)
{
    ucs_status_ptr_t requests[BLOCKS];
    uint64_t posted = 0;
    for (uint64_t i = 0; i < count; i++) {
        for (; posted < count && posted < i + BLOCKS; posted++)
            requests[posted % BLOCKS] = start_one(s, 3, posted % 2 * BLOCK_BYTES, size_bytes);
        finish(s, requests[i % BLOCKS]);
        if (s->rank == 1)
            s->sum += bench_read(s->own + i % 2 * BLOCK_BYTES, size_bytes);
    }
}

typedef void stream_fn(state *s, size_t size_bytes, uint64_t count);

static double streamed(state *s, const bench_job *job, stream_fn *stream)
{
    bench_job sync = {.count = 1, .size_bytes = 8};
    uint64_t base = s->arrived;
    stream(s, job->size_bytes, bench_warmup(job));
    ping_pong(s, &sync, base);
    uint64_t start = bench_now();
    base += sync.count + bench_warmup(&sync);
    stream(s, job->size_bytes, job->count);
    ucp_request_param_t none = {0};
    if (s->rank == 1)
        finish(s, ucp_am_send_nbx(s->peer, AM_PING, NULL, 0, s->own, 8, &none));
    while (s->rank == 0 && s->arrived == base)
        ucp_worker_progress(s->worker);
    return (double)(bench_now() - start);
}

static double rate(void *context, const bench_job *job)
{
    return streamed(context, job, rate_stream);
}

static double buffer(void *context, const bench_job *job)
{
    return streamed(context, job, block_stream);
}

static void flush(state *s)
{
    ucp_request_param_t none = {0};
    finish(s, ucp_ep_flush_nbx(s->peer, &none));
}

/* With memory that both map the operation is a store: complete at once, then nothing to flush. */
static double one_sided(state *s, const bench_job *job, bool put)
{
    uint64_t warm = bench_warmup(job), start = 0;
    ucp_request_param_t none = {0};
    for (uint64_t i = 0; i < warm + job->count && s->rank == 0; i++) {
        if (i == warm)
            start = bench_now();
        finish(s, put ? ucp_put_nbx(s->peer, s->own, job->size_bytes, s->remote, s->key, &none)
                      : ucp_get_nbx(s->peer, s->own, job->size_bytes, s->remote, s->key, &none));
    }
    if (s->rank == 0)
        flush(s);
    return (double)(bench_now() - start);
}

static double put(void *context, const bench_job *job)
{
    return one_sided(context, job, true);
}

static double get(void *context, const bench_job *job)
{
    return one_sided(context, job, false);
}

static void open_worker(state *s)
{
    ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES,
                           .features = UCP_FEATURE_AM | UCP_FEATURE_TAG | UCP_FEATURE_RMA};
    ucp_worker_params_t single = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                  .thread_mode = UCS_THREAD_MODE_SINGLE};
    ucp_am_handler_param_t handler = {.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID |
                                                    UCP_AM_HANDLER_PARAM_FIELD_CB |
                                                    UCP_AM_HANDLER_PARAM_FIELD_ARG,
                                      .id = AM_PING,
                                      .cb = on_message,
                                      .arg = s};
    ucp_mem_map_params_t memory = {.field_mask = UCP_MEM_MAP_PARAM_FIELD_LENGTH |
                                                 UCP_MEM_MAP_PARAM_FIELD_FLAGS,
                                   .length = BUFFER_BYTES,
                                   .flags = UCP_MEM_MAP_ALLOCATE};
    ucp_mem_attr_t where = {.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS};
    check(ucp_init(&params, NULL, &s->context), "init");
    check(ucp_worker_create(s->context, &single, &s->worker), "worker");
    check(ucp_worker_set_am_recv_handler(s->worker, &handler), "handler");
    check(ucp_mem_map(s->context, &memory, &s->memory), "memory");
    check(ucp_mem_query(s->memory, &where), "memory");
    s->base = where.address;
    memset(s->base, 1, BUFFER_BYTES);
}

/* Writes this rank's addresses to the board, waits for the other's, connects. */
static void connect_peer(state *s)
{
    blob *mine = (blob *)(void *)s->board->blobs[s->rank];
    blob *other = (blob *)(void *)s->board->blobs[!s->rank];
    ucp_address_t *address;
    void *key;
    size_t address_bytes, key_bytes;
    check(ucp_worker_get_address(s->worker, &address, &address_bytes), "address");
    check(ucp_rkey_pack(s->context, s->memory, &key, &key_bytes), "key");
    if (address_bytes + key_bytes > sizeof mine->bytes)
        exit(1);
    memcpy(mine->bytes, address, address_bytes);
    memcpy(mine->bytes + address_bytes, key, key_bytes);
    mine->key_bytes = key_bytes;
    mine->memory = (uint64_t)(uintptr_t)s->base;
    _Atomic uint64_t *ready = (_Atomic uint64_t *)(void *)&mine->address_bytes;
    atomic_store_explicit(ready, address_bytes, memory_order_release);
    ready = (_Atomic uint64_t *)(void *)&other->address_bytes;
    while (atomic_load_explicit(ready, memory_order_acquire) == 0)
        usleep(100);
    ucp_ep_params_t to = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS,
                          .address = (const ucp_address_t *)(const void *)other->bytes};
    check(ucp_ep_create(s->worker, &to, &s->peer), "endpoint");
    check(ucp_ep_rkey_unpack(s->peer, other->bytes + other->address_bytes, &s->key), "key");
    s->remote = other->memory;
    ucp_worker_release_address(s->worker, address);
    ucp_rkey_buffer_release(key);
}

static int serve(state *s)
{
    s->own = aligned_alloc(4096, BUFFER_BYTES);
    if (!s->own)
        return 1;
    bench_pin(s->rank);
    open_worker(s);
    connect_peer(s);
    bench_team team = {.board = s->board, .rank = s->rank, .context = s};
    team.kinds[BENCH_REQUEST] = request;
    team.kinds[BENCH_RATE] = rate;
    team.kinds[BENCH_BUFFER] = buffer;
    team.kinds[BENCH_PUT] = put;
    team.kinds[BENCH_GET] = get;
    bench_team_serve(&team);
    ucp_rkey_destroy(s->key);
    ucp_mem_unmap(s->context, s->memory);
    ucp_worker_destroy(s->worker);
    ucp_cleanup(s->context);
    free(s->own);
    return s->sum == 1 ? 2 : 0;
}

int main(void)
{
    const char *ranks = getenv("BENCH_RANKS");
    state s = {.board = bench_board_open()};
    if (!s.board || !ranks || atoi(ranks) != 2)
        return 1;
    pid_t parent = getpid(), child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        s.rank = 1;
        return getppid() == parent ? serve(&s) : 1;
    }
    int status = child > 0 ? serve(&s) : 1;
    waitpid(child, NULL, 0);
    return status;
}
