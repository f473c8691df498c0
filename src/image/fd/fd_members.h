/* SPDX-License-Identifier: BSD-3-Clause */
/* Each kind of descriptor as the suite of fd_test.c tries it. */
#ifndef HALE_IMAGE_FD_MEMBERS_H
#define HALE_IMAGE_FD_MEMBERS_H

#include <sys/socket.h>
#include <sys/un.h>

#include "image/fd/fd.h"

enum { HERE = 50, TWIN = 51, OTHER = 52 };

/* What happened, for the parent; and what a kind's make leaves for its check. */
struct fd_outcome {
	char what[512];
};
extern struct fd_outcome *fd_outcome;

/* Ends the process with status 1 if it is not so. */
void fd_must_at(bool good, const char *what, const char *file, int line);
#define MUST(x) fd_must_at(x, #x, __FILE__, __LINE__)
/* Moves fd to that number. */
void fd_put(int fd, int number);
/* Reading it gives that text, and no more. */
bool fd_reads(int fd, const char *text);
/* Where the parent listens as a broker does: what ends in /ftb is one's. Returns its length. */
socklen_t fd_broker_address(struct sockaddr_un *sa, pid_t parent);

struct fd_member {
	enum fd_kind kind;
	void (*make)(void);
	void (*spoil)(void); /* NULL: there is nothing to spoil */
	void (*check)(void);
};
extern const struct fd_member fd_members[];
extern const size_t fd_members_count;

#endif
