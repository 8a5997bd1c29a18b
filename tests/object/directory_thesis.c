/* A directory protocol in a shared object: that of the thesis (prema.txt 4.2.4.1). A sender whose
 * message was forwarded learns where the object is; nobody else is told. */
#include <ferry/directory.h>

static void found(ferry *f, ferry_object object, uint32_t movement, int origin, uint32_t hops)
{
    (void)hops;
    ferry_directory_tell(f, origin, object, movement, ferry_rank(f));
}

FERRY_API const ferry_directory_protocol ferry_directory_plugin = {
    .size = sizeof(ferry_directory_protocol), .name = "thesis", .found = found};
