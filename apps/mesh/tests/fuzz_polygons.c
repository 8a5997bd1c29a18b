/* Goal: every polygon ends in a mesh that its check accepts, or in a line that says what is wrong;
 * and within ten times the time that a sound polygon takes for as many triangles.
 * Method: sound shapes (shapes.h) are spoiled in ways that a seed chooses. A child process does the
 * cases, so that a crash or an endless case is told with its seed. A failing case is made smaller
 * while it fails, and written to a .poly file.
 *
 * usage: mesh_fuzz_polygons COAST.poly [CASES [FIRST]]     FIRST names the first case, default 1 */
#include "shapes.h"

#include "check.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* A case may take this many times as long as its sound shape takes for as many triangles. A mesh of
 * good triangles in a strip of land must have triangles as small as the strip is wide. */
#define SLOWER_MAX 10.0
/* Where a case has more than twice the triangles, the sound shape gets as many by a finer mesh, so
 * that both fill the caches alike. Without the start of a small mesh each triangle costs less. */
#define SLOWER_THAN_FINER_MAX 15.0
/* Shapes that take less than so many seconds count as if they took so many. */
#define TIME_FLOOR 0.004
/* No case may take more than so many seconds of the processor, with its check and repetitions, */
#define CASE_SECONDS 60
/* nor more than CASE_BYTES bytes of memory. The build sets it: sanitizers need no limit, 0. */
#define TRIES 4
#define ANGLE 25.0

typedef enum outcome { MESH, REFUSED, WRONG, SLOW, OUTCOMES } outcome;

/* Shared with the parent. */
typedef struct progress {
    uint64_t current;
    uint64_t count[OUTCOMES];
    char changes[256];
} progress;

typedef struct fuzzer {
    progress *p;
    shape base, bad;
    shape_point coast[SHAPE_POINTS_MAX];
    int coast_count;
} fuzzer;

static double cpu_seconds(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

typedef struct meshed {
    mesh_poly poly;
    mesh_pslg pslg;
    mesh_decomp decomp;
    mesh_sizing sizing;
    mesh_quality quality;
    mesh_sub **sub;
    char faults[4096]; /* what the check said */
} meshed;

static int make_subs(meshed *m, mesh_log *log)
{
    m->sub = calloc((size_t)m->decomp.count, sizeof *m->sub);
    if (m->sub == NULL) {
        return mesh_fail_memory(log);
    }
    for (int32_t i = 0; i < m->decomp.count; i++) {
        m->sub[i] = mesh_decomp_sub(&m->decomp, &m->sizing, i, log);
        if (m->sub[i] == NULL) {
            return -1;
        }
    }
    return 0;
}

static int refine_subs(meshed *m, mesh_log *log)
{
    mesh_splits splits = {0};
    int rc = 0;
    for (bool idle = false; !idle && rc == 0;) {
        idle = true;
        for (int32_t i = 0; i < m->decomp.count && rc == 0; i++) {
            idle = idle && mesh_sub_idle(m->sub[i]);
            splits.count = 0;
            rc = mesh_sub_refine(m->sub[i], &m->sizing, &m->quality, 0, &splits);
            for (int32_t k = 0; k < splits.count && rc >= 0; k++) {
                const mesh_split *s = &splits.at[k];
                rc = mesh_sub_apply_split(m->sub[s->to], s->edge, s->path) < 0 ? -1 : rc;
            }
        }
    }
    mesh_splits_fini(&splits);
    return rc != 0 ? mesh_fail(log, "a split cannot be, or no memory") : 0;
}

static void keep_fault(void *arg, const char *line)
{
    meshed *m = arg;
    size_t used = strlen(m->faults);
    if (strstr(line, "FA") != NULL) {
        (void)snprintf(m->faults + used, sizeof m->faults - used, "%s\n", line);
    }
}

/* The parameters of a case. */
typedef struct demand {
    double size;
    int32_t subdomains;
} demand;

/* Up to the mesh. A failure is a line for the user. */
static int mesh_text(meshed *m, const char *text, const demand *d, mesh_log *log)
{
    const mesh_decompose_options options = {
        .count = d->subdomains, .work_share = 0.5, .avoid_metis = true};
    if (mesh_poly_parse(text, strlen(text), "case.poly", &m->poly, log) != 0 ||
        mesh_pslg_create(&m->poly, &m->pslg, log) != 0 ||
        mesh_sizing_make(&m->pslg.frame, d->size, NULL, 0, &m->sizing, log) != 0 ||
        mesh_decompose(&m->pslg, &m->sizing, &options, &m->decomp, log) != 0) {
        return -1;
    }
    return make_subs(m, log) != 0 ? -1 : refine_subs(m, log);
}

static void free_mesh(meshed *m)
{
    for (int32_t i = 0; m->sub != NULL && i < m->decomp.count; i++) {
        mesh_sub_destroy(m->sub[i]);
    }
    free(m->sub);
    mesh_decomp_fini(&m->decomp);
    mesh_pslg_fini(&m->pslg);
    mesh_poly_fini(&m->poly);
}

/* A line must name the file, and say what is wrong with it rather than with the program. */
static bool is_a_line(const char *error)
{
    return strncmp(error, "case.poly:", 10) == 0 && strstr(error, "do not fit") == NULL;
}

typedef struct effort {
    double seconds; /* of the mesh alone, without its check */
    int64_t triangles;
} effort;

static int64_t count_triangles(const meshed *m)
{
    int64_t count = 0;
    for (int32_t i = 0; m->sub != NULL && i < m->decomp.count; i++) {
        count += m->sub[i] != NULL ? m->sub[i]->head.tri_count : 0;
    }
    return count;
}

/* `why` gets what was said. */
static outcome run_text(const char *text, const demand *d, effort *spent, char why[4096])
{
    meshed *m = calloc(1, sizeof *m);
    mesh_log log = {0};
    outcome result = WRONG;
    if (m == NULL) {
        abort();
    }
    m->quality.angle_deg = ANGLE;
    double before = cpu_seconds();
    int rc = mesh_text(m, text, d, &log);
    *spent = (effort){cpu_seconds() - before, count_triangles(m)};
    if (rc != 0) {
        result = is_a_line(log.error) ? REFUSED : WRONG;
        (void)snprintf(why, 4096, "%s\n", log.error);
    } else {
        mesh_check_result r;
        const mesh_check_input in = {.pslg = &m->pslg,
                                     .decomp = &m->decomp,
                                     .sub = m->sub,
                                     .sizing = &m->sizing,
                                     .quality = &m->quality,
                                     .poly = &m->poly,
                                     .line = keep_fault,
                                     .arg = m};
        result = mesh_check(&in, &r, &log) == 0 ? MESH : WRONG;
        (void)snprintf(why, 4096, "%s", m->faults);
    }
    free_mesh(m);
    free(m);
    return result;
}

static demand case_demand(const shape *s, uint64_t number)
{
    static const double share[3] = {0.4, 0.08, 0.03};
    return (demand){s->stretch * share[number % 3], number % 7 < 2 ? 4 : 1};
}

/* The effort for the sound shape. It must end in a mesh. */
static effort sound_effort(fuzzer *f, int index, const demand *want)
{
    effort spent;
    shape_dice d = {1};
    char why[4096], *text = shape_text(&f->base, &d);
    if (text == NULL) {
        abort();
    }
    if (run_text(text, want, &spent, why) != MESH) {
        printf("sound shape %d, size %g: %s", index, want->size, why);
        f->p->count[WRONG]++;
    }
    free(text);
    spent.seconds = fmax(spent.seconds, TIME_FLOOR);
    return spent;
}

/* The seconds that a case of `triangles` triangles may take. */
static double allowed_seconds(fuzzer *f, uint64_t number, int index, int64_t triangles)
{
    demand want = case_demand(&f->base, number);
    effort sound = sound_effort(f, index, &want);
    double times = SLOWER_MAX;
    if (triangles > 2 * sound.triangles) {
        want.size *= sqrt((double)sound.triangles / (double)triangles);
        sound = sound_effort(f, index, &want);
        times = SLOWER_THAN_FINER_MAX;
    }
    return times * sound.seconds * fmax(1.0, (double)triangles / (double)sound.triangles);
}

/* Makes case `number`: fills f->base and f->bad; f->p->changes says how it was spoiled. */
static char *make_case(fuzzer *f, uint64_t number, int *index)
{
    shape_dice d = {number * 0x9e3779b97f4a7c15u + 1};
    *index = (int)(number % SHAPE_SOUND);
    shape_sound(&f->base, *index, f->coast, f->coast_count);
    f->bad = f->base;
    int used = snprintf(f->p->changes, sizeof f->p->changes, "shape %d:", *index);
    for (uint32_t k = 1 + shape_roll(&d, 4) * shape_roll(&d, 2); k > 0; k--) {
        used += snprintf(f->p->changes + used, sizeof f->p->changes - (size_t)used, " %s",
                         shape_spoil(&f->bad, &d));
    }
    if (shape_roll(&d, 3) == 0) {
        shape_place(&f->bad, &d);
    }
    return shape_text(&f->bad, &d);
}

static void write_case(const fuzzer *f, uint64_t number, const char *text)
{
    char name[64];
    (void)snprintf(name, sizeof name, "mesh-case-%llu.poly", (unsigned long long)number);
    FILE *file = fopen(name, "w");
    if (file != NULL) {
        (void)fputs(text, file);
        (void)fclose(file);
        printf("case %llu (%s) is in %s\n", (unsigned long long)number, f->p->changes, name);
    }
}

/* Takes points out of the shape as long as the same goes wrong. */
static char *shrink(fuzzer *f, char *text, const demand *want)
{
    shape_dice d = {1};
    char why[4096];
    effort spent;
    for (int r = 0; r < f->bad.ring_count; r++) {
        for (int i = f->bad.ring[r].count - 1; i >= 0 && f->bad.ring[r].count > 3; i--) {
            shape_ring *ring = &f->bad.ring[r];
            shape_point p = ring->at[i];
            memmove(&ring->at[i], &ring->at[i + 1], (size_t)(--ring->count - i) * sizeof p);
            char *smaller = shape_text(&f->bad, &d);
            if (smaller != NULL && run_text(smaller, want, &spent, why) == WRONG) {
                free(text);
                text = smaller;
                continue;
            }
            free(smaller);
            memmove(&ring->at[i + 1], &ring->at[i], (size_t)(ring->count++ - i) * sizeof p);
            ring->at[i] = p;
        }
    }
    return text;
}

/* True when the case took longer than it may, measured again if so: other programs on the machine
 * make times longer, never shorter. */
static bool is_slow(fuzzer *f, uint64_t number, int index, const char *text, effort spent,
                    char why[4096])
{
    const demand want = case_demand(&f->bad, number);
    double allowed = 0.0;
    for (int i = 0; i < TRIES && spent.seconds > allowed; i++) {
        if (i > 0) {
            effort again;
            (void)run_text(text, &want, &again, why);
            spent.seconds = fmin(spent.seconds, again.seconds);
        }
        allowed = fmax(allowed, allowed_seconds(f, number, index, spent.triangles));
    }
    (void)snprintf(why, 4096, "%.3f s, %lld triangles; at most %.3f s expected\n", spent.seconds,
                   (long long)spent.triangles, allowed);
    return spent.seconds > allowed;
}

static outcome run_case(fuzzer *f, uint64_t number)
{
    int index;
    char why[4096], *text = make_case(f, number, &index);
    if (text == NULL) {
        abort();
    }
    const demand want = case_demand(&f->bad, number);
    effort spent;
    outcome o = run_text(text, &want, &spent, why);
    if (o != WRONG && spent.seconds > SLOWER_MAX * TIME_FLOOR &&
        is_slow(f, number, index, text, spent, why)) {
        o = SLOW;
    }
    if (o == WRONG || o == SLOW) {
        printf("case %llu (%s), size %.17g, %d sub-domains: %s", (unsigned long long)number,
               f->p->changes, want.size, want.subdomains, why);
        if (o == WRONG && !f->bad.shuffled) {
            text = shrink(f, text, &want);
        }
        write_case(f, number, text);
    }
    free(text);
    return o;
}

static int read_coast(fuzzer *f, const char *path)
{
    mesh_poly poly;
    mesh_log log = {0};
    if (mesh_poly_read(path, &poly, &log) != 0) {
        fprintf(stderr, "mesh_fuzz_polygons: %s\n", log.error);
        return -1;
    }
    for (int32_t i = 0; i < poly.segment_count && i < SHAPE_POINTS_MAX / 2; i++) {
        const mesh_poly_vertex *v = &poly.vertex[poly.segment[i].a];
        f->coast[f->coast_count++] = (shape_point){v->x, v->y};
    }
    mesh_poly_fini(&poly);
    return 0;
}

/* Does cases from p->current on in a child. Returns false if it died. */
static bool run_child(fuzzer *f, uint64_t end)
{
    (void)fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        const struct rlimit memory = {CASE_BYTES, CASE_BYTES};
        if (CASE_BYTES != 0) {
            (void)setrlimit(RLIMIT_AS, &memory);
        }
        for (; f->p->current < end; f->p->current++) {
            const struct itimerval limit = {.it_value = {.tv_sec = CASE_SECONDS}};
            (void)setitimer(ITIMER_VIRTUAL, &limit, NULL);
            f->p->count[run_case(f, f->p->current)]++;
            if (f->p->current % 10000 == 0) {
                fprintf(stderr, "mesh_fuzz_polygons: case %llu done\n",
                        (unsigned long long)f->p->current);
            }
        }
        (void)fflush(stdout);
        _exit(EXIT_SUCCESS);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child) {
        perror("mesh_fuzz_polygons");
        exit(EXIT_FAILURE);
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS) {
        return true;
    }
    int index;
    char *text = make_case(f, f->p->current, &index);
    printf("case %llu (%s) ended by signal %d (%d: no end within %d s)\n",
           (unsigned long long)f->p->current, f->p->changes, WTERMSIG(status), SIGVTALRM,
           CASE_SECONDS);
    write_case(f, f->p->current, text);
    free(text);
    f->p->count[WRONG]++;
    f->p->current++;
    return false;
}

int main(int argc, char **argv)
{
    static fuzzer f;
    if (argc < 2) {
        fprintf(stderr, "usage: mesh_fuzz_polygons COAST.poly [CASES [FIRST]]\n");
        return 2;
    }
    uint64_t cases = argc > 2 ? strtoull(argv[2], NULL, 10) : 400;
    uint64_t first = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    f.p = mmap(NULL, sizeof *f.p, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (f.p == MAP_FAILED || read_coast(&f, argv[1]) != 0) {
        return EXIT_FAILURE;
    }
    f.p->current = first;
    while (!run_child(&f, first + cases)) {
    }
    const uint64_t *n = f.p->count;
    printf("%llu cases from %llu: %llu meshes that pass their check, %llu refused with a line, "
           "%llu wrong, %llu slow\n",
           (unsigned long long)cases, (unsigned long long)first, (unsigned long long)n[MESH],
           (unsigned long long)n[REFUSED], (unsigned long long)n[WRONG],
           (unsigned long long)n[SLOW]);
    return n[WRONG] + n[SLOW] == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
