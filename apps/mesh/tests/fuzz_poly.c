/* Goal: no input makes the reader, the cleaning or the triangulation crash or hang.
 * Method: libFuzzer calls this with bytes; small results go all the way to a refined sub-domain. */
#include "cdt.h"
#include "decompose.h"

#include <stdio.h>
#include <stdlib.h>

#define SEGMENTS_MAX 200

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void refine_some(const mesh_pslg *pslg)
{
    mesh_decompose_options options = {.count = 3, .work_share = 0.5, .avoid_metis = true};
    mesh_quality quality = {25.0};
    mesh_sizing sizing = {.size = (double)(1 << MESH_COORD_BITS)};
    mesh_decomp decomp;
    mesh_log log = {0};
    if (mesh_decompose(pslg, &sizing, &options, &decomp, &log) != 0) {
        return;
    }
    mesh_sub *sub = mesh_decomp_sub(&decomp, &sizing, 0, &log);
    if (sub != NULL) {
        (void)mesh_sub_refine(sub, &sizing, &quality, 10000, NULL);
    }
    mesh_sub_destroy(sub);
    mesh_decomp_fini(&decomp);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mesh_log log = {0};
    mesh_poly poly;
    mesh_pslg pslg;
    if (mesh_poly_parse((const char *)data, size, "fuzz", &poly, &log) != 0) {
        return 0;
    }
    if (poly.segment_count <= SEGMENTS_MAX && mesh_pslg_create(&poly, &pslg, &log) == 0) {
        refine_some(&pslg);
        mesh_pslg_fini(&pslg);
    }
    mesh_poly_fini(&poly);
    return 0;
}

#ifndef MESH_FUZZ
int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        static uint8_t bytes[1 << 20];
        FILE *file = fopen(argv[i], "rb");
        if (file == NULL) {
            return EXIT_FAILURE;
        }
        size_t size = fread(bytes, 1, sizeof bytes, file);
        (void)fclose(file);
        (void)LLVMFuzzerTestOneInput(bytes, size);
    }
    return EXIT_SUCCESS;
}
#endif
