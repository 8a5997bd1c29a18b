/* Goal: port loopback frees the messages of a rank that leaves, also if they are received long
 * after the port was closed. Method: rank 1 says goodbye, then receives nothing for longer than
 * closing takes. Rank 0 sends it more than sockets hold, and leaves. When both have left, little
 * memory of rank 0 is in use. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../support/busy.h"
#include "base/clock.h"
#include "base/error.h"
#include "conformance.h"
#include "port/nodes/loopback/loopback.h"

#define MS UINT64_C(1000000)
#define DATA_BYTES ((size_t)8 << 20)

static size_t used_bytes(void)
{
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

/* A sanitizer counts for itself, and reports at the end what was not freed. */
#ifdef FERRY_SANITIZED
static const bool counts = false;
#else
static const bool counts = true;
#endif

/* At the end of rank 0's process, after it has left. */
static void look(void)
{
    size_t used = counts ? used_bytes() : 0;
    if (used >= DATA_BYTES) {
        fprintf(stderr, "%zu bytes are in use after rank 0 has left\n", used);
        _exit(EXIT_FAILURE);
    }
}

static int run_rank(void *arg, fy_port *port)
{
    const fy_transport_ops *ops = &port->ops->transport;
    fy_port_info info;
    (void)arg;
    ops->query(port, &info);
    if (info.rank == 1) {
        ops->close(port);
        fy_clock_sleep_until(fy_clock_now_ns() + 5000 * MS);
        return 0;
    }
    fy_clock_sleep_until(fy_clock_now_ns() + 500 * MS);
    void *data = calloc(1, DATA_BYTES);
    const fy_frame frame = {.kind = 1, .data = data, .size_bytes = DATA_BYTES};
    fy_expect(data != NULL && ops->send(port, FY_APP, FY_DATA, 1, &frame) == 0);
    free(data);
    ops->close(port);
    if (counts && used_bytes() < DATA_BYTES)
        left_out("what rank 0 sends last: rank 1 closed so late that it received it");
    fy_expect(atexit(look) == 0);
    return 0;
}

int main(void)
{
    const fy_port_settings settings = {
        .ranks = 2, .heap_bytes = (size_t)1 << 20, .error_set = fy_error_set};
    int status = fy_loopback_run(&settings, run_rank, NULL);
    if (status < 0)
        fprintf(stderr, "%s\n", fy_error_text());
    return status;
}
