#include "port/mpi/find.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ferry/error.h>

#include "base/env.h"
#include "base/error.h"

#define PATH_BYTES 4096

const char *const fy_mpi_names[FY_MPI_NAMES] = {"openmpi", "mpich"};

static bool readable(const char *folder, size_t length, const char *below, const char *name,
                     char *out, size_t size)
{
    int used = snprintf(out, size, "%.*s%s/ferry-port-%s.so", (int)length, folder, below, name);
    return used > 0 && (size_t)used < size && access(out, R_OK) == 0;
}

/* FERRY_PORT_PATH: folders with ':' between. Not of a program with more rights than its user. */
static bool in_path(const char *name, char *out, size_t size)
{
    const char *at = secure_getenv("FERRY_PORT_PATH");
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

bool fy_mpi_locate(const char *name, char *path, size_t size)
{
    if (in_path(name, path, size))
        return true;
    Dl_info info;
    if (dladdr((const void *)fy_mpi_names, &info) != 0 && info.dli_fname != NULL &&
        beside(info.dli_fname, name, path, size))
        return true;
    char program[PATH_BYTES];
    ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);
    if (length > 0) {
        program[length] = '\0';
        if (beside(program, name, path, size))
            return true;
    }
    return readable(FY_MPI_PORT_FOLDER, strlen(FY_MPI_PORT_FOLDER), "", name, path, size);
}

int fy_mpi_find(const char *name, const fy_mpi_binding **out)
{
    char path[PATH_BYTES];
    if (!fy_mpi_locate(name, path, sizeof(path)))
        return fy_error_set(FERRY_ELAUNCH,
                            "ferry-port-%s.so is missing: it is neither in FERRY_PORT_PATH nor "
                            "beside Ferry's library nor in %s",
                            name, FY_MPI_PORT_FOLDER);
    /* Global: Open MPI's own plug-ins expect its symbols to be visible. */
    void *handle = dlopen(path, RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE);
    if (handle == NULL) {
        const char *why = dlerror();
        return fy_error_set(FERRY_ELAUNCH, "%s cannot be opened: %s", path,
                            why == NULL ? "no reason given" : why);
    }
    const fy_mpi_binding *binding = dlsym(handle, FY_MPI_BINDING_SYMBOL);
    if (binding == NULL || binding->version != FY_MPI_BINDING_VERSION)
        return fy_error_set(FERRY_ELAUNCH, "%s is of another version of Ferry", path);
    *out = binding;
    return 0;
}

typedef int version_fn(char *text, int *length);
typedef int initialized_fn(int *flag);

/* A loaded library with the functions of MPI-3 that may be called at any time. */
typedef struct loaded {
    version_fn *version;
    initialized_fn *initialized;
} loaded;

/* Looks into the libraries that are called as MPI libraries are: a program may have opened one for
 * itself alone, where a look for global symbols would miss it. */
static int look_into(struct dl_phdr_info *info, size_t size, void *arg)
{
    loaded *found = arg;
    (void)size;
    const char *slash = strrchr(info->dlpi_name, '/');
    const char *base = slash == NULL ? info->dlpi_name : slash + 1;
    if (strncmp(base, "libmpi.so", 9) != 0 && strncmp(base, "libmpich.so", 11) != 0)
        return 0;
    void *handle = dlopen(info->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
    if (handle == NULL)
        return 0;
    *(void **)&found->version = dlsym(handle, "MPI_Get_library_version");
    *(void **)&found->initialized = dlsym(handle, "MPI_Initialized");
    dlclose(handle);
    return found->version != NULL && found->initialized != NULL;
}

static bool look(loaded *found)
{
    *found = (loaded){0};
    if (dl_iterate_phdr(look_into, found) != 0)
        return true;
    *(void **)&found->version = dlsym(RTLD_DEFAULT, "MPI_Get_library_version");
    *(void **)&found->initialized = dlsym(RTLD_DEFAULT, "MPI_Initialized");
    return found->version != NULL && found->initialized != NULL;
}

const char *fy_mpi_wanted(void)
{
    /* The longest text that any library's header speaks of, MPICH's, is 8,192 bytes. */
    enum { TEXT_BYTES = 16384 };
    loaded found;
    if (look(&found)) {
        char *text = calloc(1, TEXT_BYTES);
        int length = 0;
        bool open_mpi = false;
        if (text != NULL && found.version(text, &length) == 0)
            open_mpi = strstr(text, "Open MPI") != NULL;
        free(text);
        return open_mpi ? "openmpi" : "mpich";
    }
    if (fy_env_get("OMPI_COMM_WORLD_SIZE") != NULL || fy_env_get("PMIX_RANK") != NULL)
        return "openmpi";
    if (fy_env_get("PMI_RANK") != NULL || fy_env_get("PMI_FD") != NULL)
        return "mpich";
    return NULL;
}

bool fy_mpi_is_running(void)
{
    loaded found;
    int flag = 0;
    return look(&found) && found.initialized(&flag) == 0 && flag != 0;
}
