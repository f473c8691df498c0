/* SPDX-License-Identifier: BSD-3-Clause */
/* A command that runs beside, and the newest of what it prints: `hale events --follow` for a view.
 * Nothing here waits but follow_end, for the command that it ends. */
#ifndef HALE_CONTROL_FOLLOW_H
#define HALE_CONTROL_FOLLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { FOLLOW_TEXT_MAX = 32768 };

struct follow {
	pid_t pid; /* 0: none runs */
	int fd;	   /* what it prints, on both; -1: all is read */
	int status;
	bool ended; /* since it was started; status says how */
	size_t len;
	char text[FOLLOW_TEXT_MAX]; /* the newest of it, NUL-terminated */
};

void follow_init(struct follow *c);
/* One that runs is ended first. */
bool follow_start(struct follow *c, char *const argv[]);
/* Takes what has come; true: there was something, or it has ended. */
bool follow_read(struct follow *c);
void follow_end(struct follow *c);
/* The last n lines of its text; returns the first of them. */
const char *follow_last(const struct follow *c, size_t n);

#endif
