#include "port/nodes/mpi/find.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "port/plugin.h"
#include "port/port.h"

const char *const fy_mpi_names[FY_MPI_NAMES] = {"openmpi", "mpich"};

int fy_mpi_find(const char *name, const fy_mpi_library **out)
{
    const void *library;
    char plugin[256];
    (void)snprintf(plugin, sizeof(plugin), "port-%s", name);
    /* Global: Open MPI's own plug-ins expect its symbols to be visible. */
    int error = fy_plugin_open(plugin, FY_MPI_LIBRARY_SYMBOL, FY_PORT_VERSION, true, &library);
    if (error == 0)
        *out = library;
    return error;
}

typedef int version_fn(char *text, int *length);

/* Looks into the libraries that are called as MPI libraries are: a program may have opened one for
 * itself alone, where a look for global symbols would miss it. */
static int look_into(struct dl_phdr_info *info, size_t size, void *arg)
{
    version_fn **version = arg;
    (void)size;
    const char *slash = strrchr(info->dlpi_name, '/');
    const char *base = slash == NULL ? info->dlpi_name : slash + 1;
    if (strncmp(base, "libmpi.so", 9) != 0 && strncmp(base, "libmpich.so", 11) != 0)
        return 0;
    void *handle = dlopen(info->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
    if (handle == NULL)
        return 0;
    *(void **)version = dlsym(handle, "MPI_Get_library_version");
    dlclose(handle);
    return *version != NULL;
}

/* MPI_Get_library_version of the library that is loaded; it may be called at any time. NULL: none
 * of MPI-3 is. */
static version_fn *mpi_look(void)
{
    version_fn *version = NULL;
    if (dl_iterate_phdr(look_into, &version) == 0)
        *(void **)&version = dlsym(RTLD_DEFAULT, "MPI_Get_library_version");
    return version;
}

const char *fy_mpi_wanted(void)
{
    /* The longest text that any library's header speaks of, MPICH's, is 8,192 bytes. */
    enum { TEXT_BYTES = 16384 };
    version_fn *version = mpi_look();
    if (version != NULL) {
        char *text = calloc(1, TEXT_BYTES);
        int length = 0;
        bool open_mpi = false;
        if (text != NULL && version(text, &length) == 0)
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
