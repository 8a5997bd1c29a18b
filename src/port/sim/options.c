/* The options of a simulation: their defaults, and those that the environment names. */
#include "port/sim/sim.h"

#include "base/env.h"
#include "base/error.h"
#include "port/sim/world.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define STACK_BYTES (256 * 1024)
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define STACK_BYTES (256 * 1024)
#endif
#endif
#ifndef STACK_BYTES
#define STACK_BYTES (64 * 1024)
#endif

enum { RING_SLOTS = 256, RING_BYTES = 64 * 1024 };

void fy_sim_options_fill(fy_sim_options *options)
{
    options->ranks = options->ranks == 0 ? 1 : options->ranks;
    options->ranks_max = options->ranks_max == 0 ? options->ranks : options->ranks_max;
    options->net = options->net == NULL ? "shm" : options->net;
    options->stack_bytes = options->stack_bytes == 0 ? STACK_BYTES : options->stack_bytes;
    options->ring_slots = options->ring_slots == 0 ? RING_SLOTS : options->ring_slots;
    options->ring_bytes = options->ring_bytes == 0 ? RING_BYTES : options->ring_bytes;
}

/* Refuses variables that only port shm follows. */
static int check_variables(void)
{
    uint64_t threads = 0;
    int error = fy_env_number("FERRY_THREADS", &threads);
    if (error != 0)
        return error;
    if (threads != 0)
        return fy_error_set(FERRY_ELAUNCH,
                            "FERRY_THREADS is 1, but the ranks of port sim are simulated; "
                            "expected 0");
    return fy_env_refuse_join();
}

int fy_sim_options_read(fy_sim_options *options)
{
    uint64_t ranks = (uint64_t)options->ranks, ranks_max = (uint64_t)options->ranks_max;
    uint64_t cpu = options->cpu_permille, stack = options->stack_bytes, report = 0;
    const struct {
        const char *name;
        uint64_t *value;
    } numbers[] = {
        {"FERRY_SIM_SEED", &options->seed},
        {"FERRY_SIM_QUANTUM_NS", &options->quantum_ns},
        {"FERRY_SIM_CPU_PERMILLE", &cpu},
        {"FERRY_SIM_STACK_BYTES", &stack},
        {"FERRY_SIM_TIME_LIMIT_NS", &options->time_limit_ns},
        {"FERRY_SIM_MEMORY_BYTES", &options->memory_bytes},
        {"FERRY_SIM_REPORT", &report},
    };
    options->net = fy_env_get("FERRY_SIM_NET");
    options->faults = fy_env_get("FERRY_SIM_FAULTS");
    options->speeds = fy_env_get("FERRY_SIM_SPEEDS");
    options->disk = fy_env_get("FERRY_SIM_DISK");
    options->tape = fy_env_get("FERRY_SIM_TAPE");
    int error = check_variables();
    if (error == 0)
        error = fy_env_number_within("FERRY_RANKS", 1, FY_SIM_RANKS_MAX, &ranks);
    if (error == 0)
        error = fy_env_number_within("FERRY_RANKS_MAX", 1, FY_SIM_RANKS_MAX, &ranks_max);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]) && error == 0; i++)
        error = fy_env_number(numbers[i].name, numbers[i].value);
    if (error != 0)
        return error;
    options->ranks = (int)ranks;
    options->ranks_max = (int)ranks_max;
    options->cpu_permille = (uint32_t)cpu;
    options->stack_bytes = (size_t)stack;
    options->report = report == 1;
    return 0;
}
