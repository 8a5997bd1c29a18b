#include "port/plugin.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <ferry/error.h>

#include "base/env.h"
#include "base/error.h"

#define PATH_BYTES 4096

static bool readable(const char *folder, size_t length, const char *below, const char *name,
                     char *out, size_t size)
{
    int used = snprintf(out, size, "%.*s%s/ferry-%s.so", (int)length, folder, below, name);
    return used > 0 && (size_t)used < size && access(out, R_OK) == 0;
}

/* FERRY_PLUGIN_PATH: folders with ':' between. */
static bool in_path(const char *name, char *out, size_t size)
{
    const char *at = fy_env_get("FERRY_PLUGIN_PATH");
    while (at != NULL && *at != '\0') {
        size_t length = strcspn(at, ":");
        if (length > 0 && readable(at, length, "", name, out, size))
            return true;
        at += length + (at[length] == ':');
    }
    return false;
}

/* Beside the file `path`: in its folder, or where a library of a program in bin/ or of a build's
 * examples/ would be. */
static bool beside(const char *path, const char *name, char *out, size_t size)
{
    static const char *const below[] = {"", "/ferry", "/../lib/ferry", "/../../lib/ferry"};
    const char *slash = strrchr(path, '/');
    size_t length = slash == NULL ? 0 : (size_t)(slash - path);
    for (size_t i = 0; slash != NULL && i < sizeof(below) / sizeof(below[0]); i++)
        if (readable(path, length, below[i], name, out, size))
            return true;
    return false;
}

bool fy_plugin_locate(const char *name, char *path, size_t size)
{
    /* A user who starts a program that has more rights chooses its name and may link to its file.
     */
    if (getauxval(AT_SECURE) != 0)
        return readable(FY_PLUGIN_FOLDER, strlen(FY_PLUGIN_FOLDER), "", name, path, size);
    if (in_path(name, path, size))
        return true;
    Dl_info info;
    if (dladdr((const void *)(uintptr_t)fy_plugin_locate, &info) != 0 && info.dli_fname != NULL &&
        beside(info.dli_fname, name, path, size))
        return true;
    char program[PATH_BYTES];
    ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);
    if (length > 0) {
        program[length] = '\0';
        if (beside(program, name, path, size))
            return true;
    }
    return readable(FY_PLUGIN_FOLDER, strlen(FY_PLUGIN_FOLDER), "", name, path, size);
}

int fy_plugin_open(const char *name, const char *symbol, uint32_t version, bool global,
                   const void **out)
{
    char path[PATH_BYTES];
    if (!fy_plugin_locate(name, path, sizeof(path)))
        return fy_error_set(FERRY_ENOTSUP,
                            "ferry-%s.so is missing: it is neither in FERRY_PLUGIN_PATH nor "
                            "beside Ferry's library nor in %s; expected it in the folder "
                            "lib/ferry of an installation or a build, which "
                            "FERRY_PLUGIN_PATH may name",
                            name, FY_PLUGIN_FOLDER);
    int scope = global ? RTLD_GLOBAL : RTLD_LOCAL;
    void *handle = dlopen(path, RTLD_NOW | scope | RTLD_NODELETE);
    if (handle == NULL) {
        const char *why = dlerror();
        return fy_error_set(FERRY_ENOTSUP, "%s cannot be opened: %s", path,
                            why == NULL ? "no reason given" : why);
    }
    const uint32_t *table = dlsym(handle, symbol);
    if (table == NULL || *table != version)
        return fy_error_set(FERRY_ENOTSUP, "%s is no such plug-in, or of another version of Ferry",
                            path);
    *out = table;
    return 0;
}
