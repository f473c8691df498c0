// SPDX-License-Identifier: BSD-3-Clause
/* The environment of a process that may become another program (become.c). */
#include <string.h>
#include <unistd.h>

#include "base/heap.h"
#include "ckpt/rank_private.h"

/* As it was at MPI_Init: a program's own assignments are not for the next one. NULL: not kept. */
static char **environment_begun;

void environment_keep(void)
{
	size_t n = 0, bytes = 0;
	for (; environ[n]; n++)
		bytes += strlen(environ[n]) + 1;
	char **env = heap_alloc((n + 1) * sizeof(*env) + bytes);
	if (!env)
		return;
	char *at = (char *)(env + n + 1);
	for (size_t i = 0; i < n; i++) {
		size_t length = strlen(environ[i]) + 1;
		env[i] = memcpy(at, environ[i], length);
		at += length;
	}
	env[n] = NULL;
	environment_begun = env;
}

char *const *environment_kept(void)
{
	return environment_begun ? environment_begun : environ;
}
