/* Ring: the disk by io_uring, beside the threads of bench_disk_bandwidth. */
#ifndef BENCH_RING_H
#define BENCH_RING_H

#include <stdint.h>

/* Bytes per second that one thread writes and reads by io_uring, with `depth` calls in flight, as
 * bench_disk_bandwidth does with as many threads. Negative: it was built without liburing, or the
 * kernel forbids io_uring. */
double bench_ring_bandwidth(uint64_t block_bytes, uint64_t all_bytes, int depth, double seconds);

#endif
