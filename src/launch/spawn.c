/* Starts the ranks that a rank asks for while the job runs (settle.c). The launcher starts them as
 * children, as it started the others. There is no answer. If a rank cannot come, its state becomes
 * dead. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "launch/job.h"

int fy_job_spawn_requests_open(job *j)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return fy_job_no_file("socketpair");
    j->spawn_requests = ends[0];
    j->spawn_requests_theirs = ends[1];
    return 0;
}

/* Whether a request is one that a rank can have sent. */
static bool spawn_is_sound(const job *j, const job_request *head, size_t bytes)
{
    uint32_t places = (uint32_t)j->ranks;
    if (bytes < sizeof(*head) || head->bytes != bytes - sizeof(*head) || head->count == 0 ||
        head->first < (uint32_t)j->starting || head->first > places ||
        head->count > places - head->first)
        return false;
    for (uint32_t i = 0; i < head->count; i++)
        if (j->children[head->first + i].pid != 0)
            return false;
    return true;
}

/* Makes an array of the strings at `text`. NULL: they are not as the head says, or there is no
 * memory. */
static char **read_arguments(char *text, const job_request *head)
{
    if (head->arguments == 0 || head->bytes == 0 || text[head->bytes - 1] != '\0' ||
        head->arguments > head->bytes)
        return NULL;
    char **argv = calloc((size_t)head->arguments + 1, sizeof(*argv));
    char *end = text + head->bytes;
    for (uint32_t i = 0; argv != NULL && i < head->arguments && text < end; i++) {
        argv[i] = text;
        text += strlen(text) + 1;
    }
    return argv;
}

static void spawn_start(job *j, const job_request *head, char *const argv[])
{
    if (j->plan->argv == NULL)
        fflush(NULL); /* otherwise each child would write it again */
    for (uint32_t i = 0; i < head->count; i++) {
        int rank = (int)(head->first + i);
        /* A job that is ending starts no more ranks. */
        int error = j->stage != JOB_RUNS || j->passed_signal != 0
                        ? FERRY_ESTATE
                        : fy_job_start_child(j, rank, argv);
        if (error == 0)
            continue;
        if (error != FERRY_ESTATE)
            job_say("%s", fy_error_text());
        fy_controls_mark(j->controls.base, j->controls.ranks, (uint32_t)rank, SHM_DEAD);
    }
}

bool fy_job_spawn_ranks(job *j, int fd)
{
    job_request head = {0};
    char *buffer = malloc(JOB_REQUEST_BYTES);
    ssize_t bytes = buffer == NULL ? -1 : recv(fd, buffer, JOB_REQUEST_BYTES, MSG_DONTWAIT);
    bool asks = bytes > 0 || (bytes < 0 && (buffer == NULL || errno == EAGAIN || errno == EINTR));
    if (bytes <= 0)
        goto free_buffer;
    memcpy(&head, buffer, (size_t)bytes < sizeof(head) ? (size_t)bytes : sizeof(head));
    if (!spawn_is_sound(j, &head, (size_t)bytes)) {
        job_say("dropped a malformed spawn request");
        goto free_buffer;
    }
    char **argv = read_arguments(buffer + sizeof(head), &head);
    if (argv == NULL && head.arguments != 0)
        job_say("dropped a spawn request with malformed arguments");
    else
        spawn_start(j, &head, argv);
    free(argv);
free_buffer:
    free(buffer);
    return asks;
}
