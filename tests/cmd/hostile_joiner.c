/* The wrong things that a process at the join socket of a job may do. The program sends hostile
 * messages to the socket in the folder that is its argument, and expects to be refused each time.
 * Half of the messages are random. The other half are right but for some bits, lengths, or files
 * that come with them. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "../support/random.h"
#include "launch/join.h"

enum { ROUNDS = 3000, SILENT = 8, BYTES_MAX = 4096, PATIENCE_MS = 30000 };

static void must(bool condition, const char *what)
{
    if (condition)
        return;
    fprintf(stderr, "hostile_joiner: %s (%s)\n", what, strerror(errno));
    exit(1);
}

static int call(const char *folder)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    snprintf(address.sun_path, sizeof(address.sun_path), "%s/%s", folder, JOIN_SOCKET);
    must(connect(fd, (const struct sockaddr *)(const void *)&address, sizeof(address)) == 0,
         "connect");
    return fd;
}

/* The launcher hangs up, after at most one answer, which is no welcome. */
static void expect_refusal(int fd)
{
    join_answer answer = {0};
    for (int answers = 0;; answers++) {
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        must(poll(&wait, 1, PATIENCE_MS) == 1, "the launcher does not hang up");
        ssize_t got = recv(fd, &answer, sizeof(answer), MSG_DONTWAIT);
        if (got <= 0)
            break;
        must(answers == 0 && got == (ssize_t)sizeof(answer), "a strange answer");
        must(answer.magic == JOIN_MAGIC && answer.verdict == JOIN_REFUSED, "not refused");
    }
    close(fd);
}

static void send_with_files(int fd, void *bytes, size_t size, bool files)
{
    struct iovec piece = {.iov_base = bytes, .iov_len = size};
    _Alignas(struct cmsghdr) char room[CMSG_SPACE(2 * sizeof(int))] = {0};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};
    const int numbers[2] = {fd, STDERR_FILENO};
    if (files) {
        message.msg_control = room;
        message.msg_controllen = sizeof(room);
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(numbers));
        memcpy(CMSG_DATA(header), numbers, sizeof(numbers));
    }
    (void)sendmsg(fd, &message, MSG_NOSIGNAL);
}

/* A right handshake but for one thing: a wrong bit, a wrong length. */
static size_t spoil(uint64_t *random, const join_hello *right, char *bytes)
{
    size_t size = sizeof(*right);
    memcpy(bytes, right, size);
    if (xorshift(random) % 4 == 0) {
        size = xorshift(random) % (2 * size);
        return size == sizeof(*right) ? size - 1 : size;
    }
    bytes[xorshift(random) % size] ^= (char)(1 << xorshift(random) % 8);
    return size;
}

int main(int argc, char **argv)
{
    char path[512], bytes[BYTES_MAX] = {0};
    uint64_t random = 88172645463325252u;
    join_hello right = {.magic = JOIN_MAGIC, .version = JOIN_VERSION};
    int silent[SILENT];
    must(argc == 2, "usage: hostile_joiner FOLDER");
    snprintf(path, sizeof(path), "%s/%s", argv[1], JOIN_NONCE);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    must(read(file, right.nonce, sizeof(right.nonce)) == (ssize_t)sizeof(right.nonce), "nonce");
    close(file);
    for (int i = 0; i < ROUNDS; i++) {
        int fd = call(argv[1]);
        size_t size = xorshift(&random) % (i % 64 == 0 ? sizeof(bytes) : 2 * sizeof(right));
        for (size_t at = 0; at < size; at++)
            bytes[at] = (char)xorshift(&random);
        if (i % 2 == 0)
            size = spoil(&random, &right, bytes);
        send_with_files(fd, bytes, size, i % 5 == 0);
        if (i % 7 == 0)
            close(fd);
        else
            expect_refusal(fd);
    }
    /* As many silent ones as there are chairs: the next waits until one is turned away. */
    for (int i = 0; i < SILENT; i++)
        silent[i] = call(argv[1]);
    int last = call(argv[1]);
    right.nonce[0] ^= 1;
    send_with_files(last, &right, sizeof(right), false);
    expect_refusal(last);
    for (int i = 0; i < SILENT; i++)
        close(silent[i]);
    return 0;
}
