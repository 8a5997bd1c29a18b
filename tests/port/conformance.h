/* The cases that every port must pass, written against port.h alone.
 *
 * A case runs once per rank, all ranks at the same time. A harness makes the ranks (threads,
 * processes, ...) of its port and calls the case on each. The case ends by itself, and reports
 * errors with fy_expect. */
#ifndef FY_CONFORMANCE_H
#define FY_CONFORMANCE_H

#include "port/port.h"

typedef void fy_case(fy_port *port);

typedef struct fy_conformance {
    const char *name; /* test_port_<behaviour> */
    fy_case *run;
    int ranks;
} fy_conformance;

/* The cases; the last has no name. */
extern const fy_conformance fy_conformance_cases[];

/* Ends the process with status 2, and a line with the names, when no case has this one. NULL: all
 * cases are meant. */
void fy_conformance_check_name(const char *name);

/* Ends the process with a line when `is` is false. */
#define fy_expect(is) fy_expect_at((is), #is, __FILE__, __LINE__)
void fy_expect_at(bool is, const char *text, const char *file, int line);

#endif
