/* The parts that cases of the conformance suite share. A tally is one rank's, and that of one
 * thread. */
#ifndef FY_CASES_H
#define FY_CASES_H

#include "conformance.h"
#include "port/port.h"

#define KIND_LAST 255 /* the frames that end a case */

/* The frames that a rank has received. */
typedef struct tally {
    fy_port *port;
    uint64_t next[FY_LANES][64]; /* next number expected of each source */
    uint64_t count[FY_LANES];
    uint64_t last;    /* KIND_LAST frames, but for those with a word */
    uint64_t tellers; /* these */
    uint64_t told;    /* the sum of their words */
    uint64_t taken;   /* frames */
    bool leave;       /* take nothing */
    bool check_data;
    int idle_polls; /* in a row, since the last yield */
} tally;

/* For polls by hand: takes a frame into the tally, its context. */
fy_deliver fy_tally_take;

/* Receives what there is, on both lanes. */
void fy_tally_poll(tally *t);

/* As fy_tally_poll. Sleeps if there was no frame of the data lane. */
void fy_tally_wait(tally *t);

/* The frame with this number of its source, as the tally expects it. */
fy_frame fy_tally_frame(uint64_t number, fy_lane lane);

/* Sends, and receives while there is no room. */
void fy_tally_send(tally *t, fy_lane lane, int rank, const fy_frame *frame);

/* Tells all others that this rank is done, and waits for the same from them. */
void fy_tally_meet(tally *t, uint64_t round);

/* Polls one lane with `deliver`, whose context is the tally. The port must return how many frames
 * were taken. */
int fy_tally_look(tally *t, fy_lane lane, int budget, fy_deliver *deliver);

/* Says what this rank waits for from now on, for the line of the watchdog. Lends `what` forever.
 * Returns what it has waited for before. */
const char *fy_waits_for(fy_port *port, const char *what);

/* Runs a case with a watchdog: if it takes too long, the process ends with a line for each of its
 * ranks in the case. */
void fy_case_run(const char *name, fy_case *run, fy_port *port);

fy_port_info fy_info_of(fy_port *port);

/* Byte `i` of the data of a frame with number `seed`. */
unsigned char fy_pattern(size_t i, uint64_t seed);

/* Whether a case that began at `start_ns` takes so long that less must do: whoever waits for
 * another waits for a turn of the processor. */
bool fy_is_late(fy_port *port, uint64_t start_ns);

/* Whether a case has had its rounds: `most` or, on a machine that is too busy for them, fewer,
 * which is printed. */
bool fy_is_enough(fy_port *port, uint64_t start_ns, uint64_t round, uint64_t most);

/* Says what this rank leaves out of a case. */
__attribute__((format(printf, 2, 3))) void fy_skipped(fy_port *port, const char *format, ...);

fy_case fy_case_alike, fy_case_memory, fy_case_boards, fy_case_keeps, fy_case_changes,
    fy_case_outlets, fy_case_tells, fy_case_whole;

#endif
