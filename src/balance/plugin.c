/* Plugin: a scheduler from a shared object.
 *
 * It may be linked with the shared library or find its functions in the program: the functions that
 * a scheduler calls work on what they are given alone, so that two copies of them do no harm. */
#include <dlfcn.h>

#include "balance/balance.h"

int fy_scheduler_open(ferry *f, const char *path, void **handle, const ferry_scheduler **out)
{
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (object == NULL)
        return fy_fail(f, FERRY_EINVAL, "scheduler \"%s\" cannot be opened: %s", path, dlerror());
    const ferry_scheduler *scheduler = dlsym(object, FERRY_SCHEDULER_SYMBOL);
    int error = scheduler == NULL
                    ? fy_fail(f, FERRY_EINVAL, "\"%s\" defines no " FERRY_SCHEDULER_SYMBOL, path)
                    : fy_scheduler_check(f, path, scheduler);
    if (error != 0) {
        fy_plugin_close(object);
        return error;
    }
    *handle = object;
    *out = scheduler;
    return 0;
}

void fy_plugin_close(void *handle)
{
    if (handle != NULL)
        (void)dlclose(handle);
}
