/* Goal: a size of a ring that no port takes is refused, however the program is run. Method: open
 * ranks with ring_slots and ring_bytes, the arguments. */
#include <stdlib.h>

#include "../support/check.h"

static int run(ferry *f, int argc, char **argv)
{
    (void)f;
    (void)argc;
    (void)argv;
    return 0;
}

int main(int argc, char **argv)
{
    ferry_options options = FERRY_OPTIONS_DEFAULTS;
    options.ring_slots = argc == 3 ? (uint32_t)atoi(argv[1]) : 1;
    options.ring_bytes = argc == 3 ? (uint32_t)atoi(argv[2]) : 1;
    return ferry_main(argc, argv, run, &options);
}
