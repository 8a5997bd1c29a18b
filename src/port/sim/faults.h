/* Faults: what goes wrong in a simulated world, and the record of it.
 *
 * A plan has three parts: classes of faults that happen at random by the run's seed, decisions by
 * number ("packet 17 is lost"), and events at given times. Packets, allocations and calls of disks
 * have numbers. The outcome of a packet depends on seed and number alone. So a fault can be removed
 * from a plan without changing the others. The faults that happened can be printed as a plan of
 * decisions by number: the tape. From it runs are repeated and made smaller. docs/simulator.md has
 * the grammar. */
#ifndef FY_FAULTS_H
#define FY_FAULTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "port/sim/events.h"

typedef enum fy_fault_kind {
    FY_FAULT_DROP,
    FY_FAULT_DUP,
    FY_FAULT_DELAY,
    FY_FAULT_NOMEM,  /* of the shared heap */
    FY_FAULT_MALLOC, /* of the process */
    FY_FAULT_DISK_FULL,
    FY_FAULT_DISK_ERROR, /* of a read */
    FY_FAULT_DISK_DAMAGE,
    FY_FAULT_DISK_SLOW,
    FY_FAULT_CLASSES, /* the classes above happen at random, those below at a time */
    FY_FAULT_STOP = FY_FAULT_CLASSES,
    FY_FAULT_DIE,
    FY_FAULT_CUT,
} fy_fault_kind;

/* A fault at a given time. It ends `for_ns` later, except a death. */
typedef struct fy_fault {
    fy_event event;
    fy_fault_kind kind;
    int first, last; /* the rank; of a cut: the ranks on one side */
    uint64_t at_ns, for_ns;
    bool active;
} fy_fault;

/* A decision by number. */
typedef struct fy_decision {
    uint64_t number;
    uint64_t value; /* as fy_faults_next returns it; of a delay: nanoseconds */
    fy_fault_kind kind;
} fy_decision;

typedef struct fy_decisions {
    fy_decision *items;
    size_t count, capacity;
} fy_decisions;

typedef struct fy_slow {
    int rank;
    int factor;
} fy_slow;

typedef struct fy_faults {
    uint64_t seed;
    uint32_t odds[FY_FAULT_CLASSES]; /* per million */
    uint64_t delay_max_ns;
    uint32_t disk_factor; /* of FY_FAULT_DISK_SLOW */
    uint32_t ring_slots;  /* 0: as configured */
    int starved_plus_1;   /* the only rank whose allocations of FY_FAULT_MALLOC fail; 0: all */
    fy_fault *timed;
    size_t timed_count;
    fy_slow *slow;
    size_t slow_count;
    fy_decisions named; /* sorted by number */
    fy_decisions tape;
    size_t named_at; /* the first decision for a packet that has not been sent */
    /* How many decisions were asked for: of packets, and of the other kinds. */
    uint64_t packets, asked[FY_FAULT_CLASSES];
} fy_faults;

/* The faults that happen to a packet. */
typedef struct fy_packet_outcome {
    bool drop, dup;
    uint64_t delay_ns;
} fy_packet_outcome;

/* Whether decisions of this kind have a value in a plan: "delay@17:5us". */
static inline bool fy_fault_has_value(fy_fault_kind kind)
{
    return kind == FY_FAULT_DELAY || kind == FY_FAULT_DISK_DAMAGE || kind == FY_FAULT_DISK_SLOW;
}

/* Reads the plan `text`; "@NAME" stands for the text in that file. `latency_ns` scales what
 * "random" chooses. Freed with fy_faults_fini. FERRY_EINVAL, FERRY_ESYSTEM, FERRY_ENOMEM with
 * fy_error_set. */
int fy_faults_open(const char *text, uint64_t seed, int ranks, uint64_t latency_ns,
                   fy_faults *faults);
void fy_faults_fini(fy_faults *faults);

/* Whether packets may be lost, doubled or overtaken, so that the port must acknowledge them. */
bool fy_faults_lossy(const fy_faults *faults);

/* The outcome of the next packet. Counts and records it. */
void fy_faults_packet(fy_faults *faults, fy_packet_outcome *outcome);

/* Whether the next decision of a kind from FY_FAULT_NOMEM on is a fault. Returns 0 if it is none.
 * Else it returns the factor of FY_FAULT_DISK_SLOW, a random number of FY_FAULT_DISK_DAMAGE, or 1.
 * Each kind is numbered separately. Counts and records the decision. */
uint64_t fy_faults_next(fy_faults *faults, fy_fault_kind kind);

/* Whether the plan makes allocations of the process fail. */
bool fy_faults_malloc(const fy_faults *faults);

/* Writes the plan; with `tape` the faults that happened, in place of the random classes. */
void fy_faults_print(const fy_faults *faults, bool tape, FILE *file);

#endif
