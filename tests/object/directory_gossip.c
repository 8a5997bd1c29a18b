/* A directory protocol in a shared object that tells much, also what it may not. After each move it
 * tells the home and two ranks that have not asked. It tells a rank and a place that do not exist.
 */
#include <ferry/directory.h>

static void learnt(ferry *f, ferry_object object, uint32_t movement, int place)
{
    int ranks = ferry_ranks(f);
    ferry_directory_tell(f, (place + 1) % ranks, object, movement, place);
    ferry_directory_tell(f, (place + 2) % ranks, object, movement, place);
}

static void arrived(ferry *f, ferry_object object, uint32_t movement)
{
    const ferry_object none = {0};
    ferry_directory_tell(f, ferry_directory_home(f, object), object, movement, ferry_rank(f));
    if (movement == 1 && ferry_directory_home(f, none) == -1) {
        ferry_directory_tell(f, -1, object, movement, ferry_rank(f));
        ferry_directory_tell(f, 0, object, movement, ferry_ranks(f));
    }
}

static void found(ferry *f, ferry_object object, uint32_t movement, int origin, uint32_t hops)
{
    (void)hops;
    ferry_directory_tell(f, origin, object, movement, ferry_rank(f));
}

FERRY_API const ferry_directory_protocol ferry_directory_plugin = {
    .size = sizeof(ferry_directory_protocol),
    .name = "gossip",
    .arrived = arrived,
    .found = found,
    .learnt = learnt};
