/* How a rank asks its launcher for more ranks. It takes numbers in the segment. Then it sends one
 * request, a datagram, by the socket that it got from the launcher (spawn.c). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/error.h"
#include "launch/job.h"

/* Writes `argv` after the head at `buffer`. Returns false if there is no room. */
static bool write_arguments(char *buffer, char *const argv[], job_request *head)
{
    for (; argv != NULL && argv[head->arguments] != NULL; head->arguments++) {
        size_t bytes = strlen(argv[head->arguments]) + 1;
        if (bytes > JOB_REQUEST_BYTES - sizeof(*head) - head->bytes)
            return false;
        memcpy(buffer + sizeof(*head) + head->bytes, argv[head->arguments], bytes);
        head->bytes += (uint32_t)bytes;
    }
    return true;
}

int fy_spawn_ask(void *arg, int first, int count, char *const argv[])
{
    int fd = (int)(intptr_t)arg, error = 0;
    job_request head = {.first = (uint32_t)first, .count = (uint32_t)count};
    char *buffer = malloc(JOB_REQUEST_BYTES);
    if (buffer == NULL)
        return fy_error_set(FERRY_ENOMEM, "no memory to ask for ranks");
    if (!write_arguments(buffer, argv, &head)) {
        error = fy_error_set(FERRY_EINVAL, "arguments of more than %zu bytes for new ranks",
                             JOB_REQUEST_BYTES - sizeof(head));
        goto free_buffer;
    }
    memcpy(buffer, &head, sizeof(head));
    ssize_t sent;
    do
        sent = send(fd, buffer, sizeof(head) + head.bytes, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    if (sent < 0)
        error = fy_error_set(FERRY_ESYSTEM, "asking the launcher for ranks: %s", strerror(errno));
free_buffer:
    free(buffer);
    return error;
}
