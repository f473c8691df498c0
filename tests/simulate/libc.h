/* SPDX-License-Identifier: BSD-3-Clause */
/* The calls that actors make themselves (libc.c); each is what libc's of that name is. */
#ifndef HALE_SIMULATE_LIBC_H
#define HALE_SIMULATE_LIBC_H

#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

typedef void (*handler_t)(int);

void *simulate_mmap64(void *at, size_t len, int prot, int flags, int fd, off_t offset);
int simulate_usleep(useconds_t us);
int simulate_close(int fd);
int simulate_close_range(unsigned first, unsigned last, int flags);
int simulate_dup(int fd);
int simulate_dup2(int from, int to);
int simulate_pipe2(int ends[2], int flags);
ssize_t simulate_write(int fd, const void *bytes, size_t len);
int simulate_ioctl(int fd, unsigned long what, ...);
pid_t simulate_fork(void);
pid_t simulate_setsid(void);
char *simulate_getenv(const char *name);
handler_t simulate_signal(int sig, handler_t handler);
int simulate_socket(int domain, int type, int protocol);
int simulate_connect(int fd, const struct sockaddr *address, socklen_t len);
ssize_t simulate_send(int fd, const void *bytes, size_t len, int flags);
ssize_t simulate_recvmsg(int fd, struct msghdr *m, int flags);
int simulate_open64(const char *path, int flags, ...);

#endif
