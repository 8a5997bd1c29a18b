#include "object/foreign.h"
#include "core/fail.h"

#include <dlfcn.h>

int fy_foreign_open(ferry *f, const char *what, const char *path, const char *symbol, void **handle,
                    const void **out)
{
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (object == NULL)
        return fy_fail(f, FERRY_EINVAL, "%s \"%s\" cannot be opened: %s", what, path, dlerror());
    *out = dlsym(object, symbol);
    if (*out == NULL) {
        fy_foreign_close(object);
        return fy_fail(f, FERRY_EINVAL, "\"%s\" defines no %s", path, symbol);
    }
    *handle = object;
    return 0;
}

void fy_foreign_close(void *handle)
{
    if (handle != NULL)
        (void)dlclose(handle);
}
