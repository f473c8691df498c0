/* SPDX-License-Identifier: BSD-3-Clause */
/* Which files the ranks of a node have mapped, written down for other nodes, and such a list read:
 * its files come into memory. Both take as long as the disks take, so they are for a child of the
 * agent. */
#ifndef HALE_AGENT_STANDBY_WARM_FILES_H
#define HALE_AGENT_STANDBY_WARM_FILES_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { WARM_FILES_MAX = 4096, WARM_LIST_MAX = 1 << 20, WARM_TEXT = 320 };

/* Malloc'ed: what most of these processes execute comes first, then other code, then what else they
 * have mapped. NULL: no memory, or no process is there. */
unsigned char *warm_files_list(const pid_t *pids, size_t count, size_t *len);

struct warm_files_result {
	bool good;	   /* it was a list, and the program is there as the ranks have it */
	uint64_t bytes;	   /* that are in memory now */
	uint64_t identity; /* of the code as it is here: another one, another value */
	char program[PATH_MAX];
	char text[WARM_TEXT]; /* "": all is well; or what is wrong with a file */
};

/* Brings them into memory, at most so many bytes, code first. A file that isn't what the ranks have
 * mapped is told of in result->text: who becomes one of them here would be refused. */
void warm_files_read(const unsigned char *list, size_t len, uint64_t bytes_max,
		     struct warm_files_result *result);

#endif
