/* Why a job does not go on: waits for what its ranks answer, and prints it. A rank that does not
 * answer is in its program, and what it told the port before is all there is to know. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "port/shm/why/why.h"
#include "port/waiting.h"

/* How long to wait for ranks that wait themselves, and for those that may be computing. */
enum { WAIT_NS = 2000 * 1000 * 1000, BUSY_WAIT_NS = 100 * 1000 * 1000, LOOK_NS = 1000 * 1000 };

/* Until ranks that share no memory have heard of each other what they wait for. */
enum { SETTLE_NS = 200 * 1000 * 1000 };

static bool computes(uint32_t doing)
{
    return doing == FY_DOING_MAIN || doing == FY_DOING_HANDLER || doing == FY_DOING_TASK;
}

/* Ranks of the job that the segment belongs to, which may be more than are in it. */
static uint32_t ranks_of_job(void *base, uint32_t ranks)
{
    uint64_t in_job = atomic_load_explicit(&rank_at(base, 0)->in_job, memory_order_relaxed);
    return in_job != 0 ? (uint32_t)(in_job >> 32) : ranks;
}

/* The number in the job of the rank at `index` of the segment. */
static uint32_t number_of(const shm_rank *rank, uint32_t index)
{
    uint64_t in_job = atomic_load_explicit(&rank->in_job, memory_order_relaxed);
    return in_job != 0 ? (uint32_t)in_job - 1 : index;
}

static void why_look(void *base, uint32_t ranks, fy_waiting *all)
{
    for (uint32_t i = 0; i < ranks; i++) {
        const shm_rank *rank = rank_at(base, i);
        all[i].rank = (int)number_of(rank, i);
        all[i].lives = fy_why_state(rank) == SHM_JOINED;
        /* seq_cst: the answer's words are read after this */
        all[i].answered = atomic_load(&rank->answered) == atomic_load(&rank->asked);
        all[i].doing = (uint32_t)atomic_load_explicit(&rank->note.doing, memory_order_relaxed);
    }
}

static void await_answers(void *base, uint32_t ranks, fy_waiting *all)
{
    uint64_t start = fy_clock_now_ns();
    for (;;) {
        bool waits = false;
        uint64_t passed = fy_clock_now_ns() - start;
        why_look(base, ranks, all);
        for (uint32_t i = 0; i < ranks; i++)
            waits = waits || (all[i].lives && !all[i].answered &&
                              passed < (computes(all[i].doing) ? BUSY_WAIT_NS : WAIT_NS));
        if (!waits)
            return;
        fy_clock_sleep_until(start + passed + LOOK_NS);
    }
}

/* A line of an answer. */
static void print_line(fy_waiting *t, char *line, FILE *out)
{
    char *words;
    for (char *c = line; *c != '\0'; c++)
        *c = (unsigned char)*c < ' ' ? '?' : *c;
    int rank = fy_waiting_read(t, line, &words);
    if (rank < 0)
        fprintf(out, "    %s%s\n", line[0] == ' ' ? "rank" : "", line);
    else
        fprintf(out, "    waits for rank %d, which%s\n", rank, words);
}

static void print_answer(const shm_rank *rank, fy_waiting *t, FILE *out)
{
    uint64_t words[FY_ANSWER_BYTES / sizeof(uint64_t) + 1] = {0};
    for (size_t i = 0; i + 1 < sizeof(words) / sizeof(words[0]); i++)
        words[i] = atomic_load_explicit(&rank->answer[i], memory_order_relaxed);
    char *save = NULL;
    for (char *line = strtok_r((char *)words, "\n", &save); line != NULL;
         line = strtok_r(NULL, "\n", &save))
        print_line(t, line, out);
}

static void print_rank(void *base, uint32_t index, fy_waiting *t, FILE *out)
{
    static const char *const states[] = {"has not opened Ferry", "", "has left", "is dead"};
    const shm_rank *rank = rank_at(base, index);
    uint32_t state = fy_why_state(rank);
    char doing[128];
    if (!t->lives) {
        fprintf(out, "  rank %u %s\n", number_of(rank, index),
                state <= SHM_DEAD ? states[state] : "?");
        return;
    }
    fy_doing_describe(rank, "", doing, sizeof(doing));
    uint64_t since = atomic_load_explicit(&rank->note.since_ns, memory_order_relaxed);
    uint64_t now = fy_clock_now_ns();
    fprintf(out, "  rank %u (process %d): %s", number_of(rank, index),
            (int)atomic_load_explicit(&rank->pid, memory_order_relaxed), doing);
    if (since != 0 && since < now)
        fprintf(out, " for %.2f s", (double)(now - since) / 1e9);
    fputs(t->answered ? "\n" : "; it does not call Ferry, so nothing more is known\n", out);
    if (t->answered)
        print_answer(rank, t, out);
}

/* "ranks 0-2 wait in a barrier for ranks 3 5" once for all that are in one kind of call. */
static void print_missing(void *base, const fy_waiting *all, uint32_t ranks, uint32_t rank,
                          FILE *out)
{
    char doing[128];
    bool any = false;
    for (uint32_t i = 0; i < rank; i++)
        if (all[i].lives && all[i].doing == all[rank].doing)
            return;
    fy_doing_describe(rank_at(base, rank), "", doing, sizeof(doing));
    for (uint32_t other = 0; other < ranks; other++) {
        if (!fy_waiting_misses(&all[rank], &all[other]))
            continue;
        if (!any)
            fprintf(out, "  ranks %s wait for rank", doing);
        fprintf(out, " %d", all[other].rank);
        any = true;
    }
    if (any)
        fputs("\n", out);
}

/* Each rank answers at a moment of its own. So a message may have left one that comes to another
 * after its answer. Only ranks that have had nothing to do since before the query, `passed_ns` ago,
 * are in a deadlock. Their answers round to 10 ms. */
static void print_deadlock(fy_waiting *all, uint32_t ranks, uint64_t passed_ns, FILE *out)
{
    char deadlock[512];
    for (uint32_t i = 0; i < ranks; i++) {
        if (all[i].quiet_s > (double)passed_ns / 1e9 + 0.01)
            continue;
        all[i].lives = false;
        all[i].count = 0;
    }
    if (fy_waiting_any_deadlock(all, ranks, deadlock, sizeof(deadlock)))
        fprintf(out, "  deadlock: %s\n", deadlock);
}

/* Written at once: what ranks of several machines print goes through one launcher. */
static void why_write_all(int fd, const char *text, size_t left)
{
    for (ssize_t wrote; left > 0; text += wrote, left -= (size_t)wrote)
        if ((wrote = write(fd, text, left)) <= 0)
            return;
}

static void waiting_print(const fy_controls *controls, int fd)
{
    void *base = controls->base;
    uint32_t ranks = controls->ranks, count = 0, in_job = ranks_of_job(base, ranks);
    char *text = NULL;
    size_t length = 0;
    fy_waiting *all = calloc(ranks, sizeof(*all));
    FILE *out = all != NULL ? open_memstream(&text, &length) : NULL;
    if (out == NULL) {
        free(all);
        return;
    }
    uint64_t start = fy_clock_now_ns();
    await_answers(base, ranks, all);
    uint64_t passed_ns = fy_clock_now_ns() - start;
    if (in_job > ranks)
        fy_clock_sleep_until(fy_clock_now_ns() + SETTLE_NS);
    for (uint32_t rank = 0; rank < ranks; rank++)
        count += all[rank].lives;
    bool part = in_job > ranks || common_at(base)->relay != 0;
    fprintf(out, "ferry: what %u ranks%s do\n", count, part ? " of this machine" : "");
    if (in_job > ranks)
        fprintf(out, "  the job has %u; those elsewhere share no memory with these\n", in_job);
    /* Places that nobody has been started for are not worth a line. */
    for (uint32_t rank = 0; rank < ranks; rank++) {
        uint32_t state = fy_why_state(rank_at(base, rank));
        if ((state & SHM_FAR) == 0 && (rank < controls->starting || state != SHM_ABSENT))
            print_rank(base, rank, &all[rank], out);
    }
    for (uint32_t rank = 0; rank < ranks; rank++)
        print_missing(base, all, ranks, rank, out);
    print_deadlock(all, ranks, passed_ns, out);
    if (fclose(out) == 0)
        why_write_all(fd, text, length);
    free(text);
    free(all);
}

const fy_why_printer fy_why_table = {.version = FY_WHY_VERSION, .print = waiting_print};
