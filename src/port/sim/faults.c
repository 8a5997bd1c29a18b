#include "port/sim/faults.h"

#include <stdlib.h>
#include <string.h>

#include "base/random.h"

enum { MILLION = 1000000, STREAM_PACKETS = 1 };

/* The stream of random numbers of each kind (faults_parse.c has 3, 5 and 10). */
static const uint8_t streams[FY_FAULT_CLASSES] = {
    [FY_FAULT_NOMEM] = 2,      [FY_FAULT_MALLOC] = 4,      [FY_FAULT_DISK_FULL] = 6,
    [FY_FAULT_DISK_ERROR] = 7, [FY_FAULT_DISK_DAMAGE] = 8, [FY_FAULT_DISK_SLOW] = 9};

static const char *const names[FY_FAULT_CLASSES] = {"drop",       "dup",         "delay",
                                                    "nomem",      "malloc",      "disk-full",
                                                    "disk-error", "disk-damage", "disk-slow"};

bool fy_faults_lossy(const fy_faults *faults)
{
    bool lossy = faults->odds[FY_FAULT_DROP] > 0 || faults->odds[FY_FAULT_DUP] > 0 ||
                 faults->odds[FY_FAULT_DELAY] > 0;
    for (size_t i = 0; i < faults->named.count; i++)
        lossy = lossy || faults->named.items[i].kind < FY_FAULT_NOMEM;
    for (size_t i = 0; i < faults->timed_count; i++)
        lossy = lossy || faults->timed[i].kind == FY_FAULT_CUT;
    return lossy;
}

/* The dice of one decision: a stream of its own. */
static void dice(const fy_faults *faults, uint64_t stream, uint64_t number, fy_random *random)
{
    fy_random_init(random, faults->seed + stream * 0x9e3779b97f4a7c15u, number);
}

static bool strikes(const fy_faults *faults, fy_random *random, fy_fault_kind kind)
{
    return fy_random_below(random, MILLION) < faults->odds[kind];
}

static void record(fy_faults *faults, fy_fault_kind kind, uint64_t number, uint64_t value)
{
    fy_decisions *tape = &faults->tape;
    if (tape->count == tape->capacity) {
        size_t capacity = tape->capacity * 2 + 64;
        fy_decision *items = realloc(tape->items, capacity * sizeof(*items));
        if (items == NULL)
            return; /* the run goes on; its tape is short */
        tape->items = items;
        tape->capacity = capacity;
    }
    tape->items[tape->count++] = (fy_decision){.number = number, .value = value, .kind = kind};
}

/* Packets have numbers of their own, so this walks the list for packets alone. */
static void named_outcome(fy_faults *faults, uint64_t number, fy_packet_outcome *outcome)
{
    const fy_decisions *named = &faults->named;
    while (faults->named_at < named->count && named->items[faults->named_at].number < number)
        faults->named_at++;
    for (size_t i = faults->named_at; i < named->count && named->items[i].number == number; i++) {
        const fy_decision *decision = &named->items[i];
        outcome->drop = outcome->drop || decision->kind == FY_FAULT_DROP;
        outcome->dup = outcome->dup || decision->kind == FY_FAULT_DUP;
        if (decision->kind == FY_FAULT_DELAY)
            outcome->delay_ns = decision->value;
    }
}

void fy_faults_packet(fy_faults *faults, fy_packet_outcome *outcome)
{
    uint64_t number = faults->packets++;
    *outcome = (fy_packet_outcome){0};
    fy_random random;
    dice(faults, STREAM_PACKETS, number, &random);
    outcome->drop = strikes(faults, &random, FY_FAULT_DROP);
    outcome->dup = strikes(faults, &random, FY_FAULT_DUP);
    if (strikes(faults, &random, FY_FAULT_DELAY))
        outcome->delay_ns = 1 + fy_random_below(&random, faults->delay_max_ns);
    named_outcome(faults, number, outcome);
    if (outcome->drop)
        record(faults, FY_FAULT_DROP, number, 0);
    if (outcome->dup)
        record(faults, FY_FAULT_DUP, number, 0);
    if (outcome->delay_ns > 0)
        record(faults, FY_FAULT_DELAY, number, outcome->delay_ns);
}

uint64_t fy_faults_next(fy_faults *faults, fy_fault_kind kind)
{
    uint64_t number = faults->asked[kind]++, value = 0;
    fy_random random;
    dice(faults, streams[kind], number, &random);
    if (strikes(faults, &random, kind))
        value = kind == FY_FAULT_DISK_SLOW     ? faults->disk_factor
                : kind == FY_FAULT_DISK_DAMAGE ? 1 + fy_random_below(&random, UINT32_MAX)
                                               : 1;
    const fy_decisions *named = &faults->named;
    for (size_t i = 0; i < named->count && value == 0; i++)
        if (named->items[i].kind == kind && named->items[i].number == number)
            value = named->items[i].value;
    if (value != 0)
        record(faults, kind, number, value);
    return value;
}

bool fy_faults_malloc(const fy_faults *faults)
{
    bool any = faults->odds[FY_FAULT_MALLOC] > 0;
    for (size_t i = 0; i < faults->named.count; i++)
        any = any || faults->named.items[i].kind == FY_FAULT_MALLOC;
    return any;
}

void fy_faults_fini(fy_faults *faults)
{
    free(faults->timed);
    free(faults->slow);
    free(faults->named.items);
    free(faults->tape.items);
    *faults = (fy_faults){0};
}

static void print_odds(FILE *file, uint32_t odds)
{
    fprintf(file, "%u.%06u", odds / MILLION, odds % MILLION);
}

static void print_decisions(const fy_decisions *decisions, FILE *file, const char **comma)
{
    for (size_t i = 0; i < decisions->count; i++) {
        const fy_decision *decision = &decisions->items[i];
        fprintf(file, "%s%s@%llu", *comma, names[decision->kind],
                (unsigned long long)decision->number);
        if (fy_fault_has_value(decision->kind))
            fprintf(file, ":%llu%s", (unsigned long long)decision->value,
                    decision->kind == FY_FAULT_DELAY ? "ns" : "");
        *comma = ",";
    }
}

/* Without dice, for a tape, the longest delay is left: senders' patience goes by it. */
static void print_classes(const fy_faults *faults, bool dice, FILE *file, const char **comma)
{
    for (int kind = 0; kind < FY_FAULT_CLASSES; kind++) {
        uint32_t odds = dice ? faults->odds[kind] : 0;
        if (odds == 0 && (kind != FY_FAULT_DELAY || faults->delay_max_ns == 0))
            continue;
        fprintf(file, "%s%s=", *comma, names[kind]);
        print_odds(file, odds);
        if (kind == FY_FAULT_DELAY)
            fprintf(file, ":%lluns", (unsigned long long)faults->delay_max_ns);
        else if (kind == FY_FAULT_DISK_SLOW)
            fprintf(file, ":%u", faults->disk_factor);
        *comma = ",";
    }
}

static void print_timed(const fy_fault *fault, FILE *file)
{
    unsigned long long at = fault->at_ns, length = fault->for_ns;
    if (fault->kind == FY_FAULT_STOP)
        fprintf(file, "stop=%d@%lluns:%lluns", fault->first, at, length);
    else if (fault->kind == FY_FAULT_DIE)
        fprintf(file, "die=%d@%lluns", fault->first, at);
    else
        fprintf(file, "cut=%d-%d@%lluns:%lluns", fault->first, fault->last, at, length);
}

void fy_faults_print(const fy_faults *faults, bool tape, FILE *file)
{
    const char *comma = "";
    for (size_t i = 0; i < faults->timed_count; i++) {
        fputs(comma, file);
        print_timed(&faults->timed[i], file);
        comma = ",";
    }
    for (size_t i = 0; i < faults->slow_count; i++) {
        fprintf(file, "%sslow=%d:%d", comma, faults->slow[i].rank, faults->slow[i].factor);
        comma = ",";
    }
    if (faults->ring_slots > 0) {
        fprintf(file, "%sring=%u", comma, faults->ring_slots);
        comma = ",";
    }
    if (faults->starved_plus_1 > 0) {
        fprintf(file, "%sstarve=%d", comma, faults->starved_plus_1 - 1);
        comma = ",";
    }
    print_classes(faults, !tape, file, &comma);
    print_decisions(tape ? &faults->tape : &faults->named, file, &comma);
}
