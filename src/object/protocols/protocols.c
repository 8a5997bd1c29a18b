#include <string.h>

#include "core/fail.h"
#include "object/entry.h"
#include "object/foreign.h"
#include "object/protocol.h"

static const ferry_directory_protocol *const protocols[] = {
    &fy_protocol_lazy,  /* the default */
    &fy_protocol_home,  /* the creator always knows */
    &fy_protocol_eager, /* all ranks know */
};

static int open_foreign(ferry *f, const char *path, ferry_directory_protocol *out, void **handle)
{
    const void *given = NULL;
    int error = fy_foreign_open(f, "directory", path, FERRY_DIRECTORY_SYMBOL, handle, &given);
    if (error != 0)
        return error;
    error = fy_read_sized(f, "ferry_directory_protocol", given, out, sizeof *out);
    if (error == 0 && (out->name == NULL || out->found == NULL))
        error = fy_fail(f, FERRY_EINVAL, "%s: the directory protocol has no %s", path,
                        out->name == NULL ? "name" : "found");
    if (error != 0) {
        fy_foreign_close(*handle);
        *handle = NULL;
    }
    return error;
}

int fy_protocol_find(ferry *f, const char *name, ferry_directory_protocol *out, void **handle)
{
    *handle = NULL;
    if (name != NULL && strchr(name, '/') != NULL)
        return open_foreign(f, name, out, handle);
    for (size_t i = 0; i < sizeof protocols / sizeof *protocols; i++)
        if (name == NULL || strcmp(protocols[i]->name, name) == 0) {
            *out = *protocols[i];
            return 0;
        }
    return fy_fail(f, FERRY_EINVAL,
                   "open: the directory \"%s\" is none of lazy, home and eager, nor a path of a "
                   "shared object, with a '/' in it",
                   name);
}

void ferry_directory_tell(ferry *f, int rank, ferry_object object, uint32_t movement, int place)
{
    const fy_objects *objects = fy_objects_of(f);
    if (rank == objects->rank)
        return;
    if (rank < 0 || rank >= objects->ranks || place < 0 || place >= objects->ranks)
        fy_log(f, "directory %s tells rank %d that an object is on rank %d; ranks are 0 to %d",
               objects->protocol.name, rank, place, objects->ranks - 1);
    else if (fy_object_is_name(objects, object))
        fy_location_send(f, rank, object, place, movement);
}

int ferry_directory_home(const ferry *f, ferry_object object)
{
    const fy_objects *objects = fy_objects_of(f);
    return fy_object_is_name(objects, object) ? fy_object_home(objects, object) : -1;
}
