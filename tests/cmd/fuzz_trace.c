/* Goal: no bytes make the reader of traces, or what draws or replays them, crash, hang or write
 * other than text.
 * Method: libFuzzer calls this with bytes (FERRY_FUZZ); without it the program changes the files
 * named, a byte or a line at a time, from a fixed seed, which the tests do. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/report/draw.h"
#include "cmd/scale/scale.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The graph that `ferry scale` makes of the trace is consistent: every send is for an object, and
 * the tasks are those of the objects. A task creates each late object once. The longest chain is no
 * longer than all tasks. */
static void check_graph(const trace_run *run)
{
    scale_graph g;
    uint64_t chain_ns, sum_ns = 0, count = 0;
    for (size_t i = 0; i < run->rank[0].object_count; i++)
        if (run->rank[0].objects[i].handled > 1 << 16)
            return; /* that takes too long here */
    if (!scale_graph_make(run, &g))
        abort();
    for (size_t i = 0; i < g.object_count; i++) {
        if (g.objects[i].first_task != count && g.object_count == 1)
            abort();
        count += g.objects[i].tasks;
    }
    for (size_t i = 0; i < g.task_count; i++) {
        sum_ns += g.tasks[i].ns;
        if (g.tasks[i].first_send > g.tasks[i + 1].first_send)
            abort();
    }
    for (size_t i = 0; i < g.send_count; i++)
        if (g.sends[i].object >= g.object_count || g.sends[i].task >= g.task_count)
            abort();
    for (size_t i = 0; i < g.root_count; i++)
        if (g.roots[i].object >= g.object_count || g.roots[i].phase >= g.phases)
            abort();
    size_t late = 0, created = 0;
    for (size_t i = 0; i < g.object_count; i++)
        late += g.objects[i].late;
    for (size_t i = 0; i < g.task_count; i++) {
        if (g.tasks[i].first > i || g.tasks[g.tasks[i].first].first != g.tasks[i].first)
            abort();
        for (uint32_t k = g.tasks[i].creates; k != SCALE_NONE && created <= late; created++)
            k = g.objects[k].after;
    }
    if (late != created || count != g.task_count || g.root_count + g.send_count != g.task_count ||
        !scale_chain(&g, &chain_ns) || chain_ns > sum_ns)
        abort();
    scale_graph_fini(&g);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static FILE *out;
    char error[TRACE_ERROR_BYTES] = "", folder[] = "fuzz";
    trace_rank rank;
    if (out == NULL)
        out = fopen("/dev/null", "w");
    if (!trace_parse((const char *)data, size, "fuzz", &rank, error)) {
        if (strncmp(error, "fuzz:", 5) != 0 || strstr(error, "xpected") == NULL)
            abort(); /* every error names file, line and what was expected */
        return 0;
    }
    trace_run run = {.folder = folder,
                     .ranks = 1,
                     .rank = &rank,
                     .start_ns = rank.open_ns,
                     .end_ns = rank.close_ns};
    rank.rank = 0;
    check_graph(&run);
    draw_page(out, &run, 1, NULL);
    draw_chrome(out, &run);
    draw_load(out, &run, 1);
    (void)(trace_run_during(&run, "unit", error) && (draw_page(out, &run, 1, NULL), true));
    trace_rank_fini(&rank);
    return 0;
}

#ifndef FERRY_FUZZ
enum { BYTES_MAX = 1 << 16, ROUNDS = 1000, ROUNDS_WHOLE = 10000 };

static uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

/* Changes, removes or doubles a piece. Returns the new size. */
static size_t change(uint8_t *bytes, size_t size, uint64_t *random)
{
    static const char likely[] = "0123456789 -\n.irtme\xff";
    size_t at = next_random(random) % size, length = 1 + next_random(random) % 12;
    if (at + length > size)
        length = size - at;
    switch (next_random(random) % 4) {
    case 0:
        bytes[at] = (uint8_t)likely[next_random(random) % (sizeof likely - 1)];
        return size;
    case 1:
        bytes[at] = (uint8_t)next_random(random);
        return size;
    case 2:
        memmove(bytes + at, bytes + at + length, size - at - length);
        return size - length;
    default:
        if (size + length > BYTES_MAX)
            return size;
        memmove(bytes + at + length, bytes + at, size - at);
        return size + length;
    }
}

int main(int argc, char **argv)
{
    static uint8_t original[BYTES_MAX], bytes[BYTES_MAX];
    uint64_t random = 7;
    int rounds = getenv("TESTS_WHOLE") == NULL ? ROUNDS : ROUNDS_WHOLE;
    for (int i = 1; i < argc; i++) {
        FILE *file = fopen(argv[i], "rb");
        size_t size = file == NULL ? 0 : fread(original, 1, sizeof original, file);
        if (size == 0)
            return EXIT_FAILURE;
        (void)fclose(file);
        (void)LLVMFuzzerTestOneInput(original, size);
        for (int round = 0; round < rounds; round++) {
            size_t now = size;
            memcpy(bytes, original, size);
            for (uint64_t n = 1 + next_random(&random) % 3; n > 0 && now > 0; n--)
                now = change(bytes, now, &random);
            (void)LLVMFuzzerTestOneInput(bytes, now);
        }
    }
    return EXIT_SUCCESS;
}
#endif
