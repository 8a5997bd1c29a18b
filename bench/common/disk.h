/* Disk: what a disk does without a store, in files without a name in TMPDIR, else in /var/tmp. */
#ifndef BENCH_DISK_H
#define BENCH_DISK_H

#include <stdint.h>

double bench_seconds(void);

/* A new file without a name, opened with `flags` too. Ends the process without it. */
int bench_disk_file(int flags);

/* Bytes per second that four threads write and read, in equal shares and past the page cache, in
 * blocks of `block_bytes` of a file of `all_bytes`. */
double bench_disk_bandwidth(uint64_t block_bytes, uint64_t all_bytes, double seconds);

/* Seconds of a write and a read of blocks of `bytes`, one after the other, past the page cache. */
double bench_disk_cycle(uint64_t bytes, int count);

#endif
