// SPDX-License-Identifier: BSD-3-Clause
/* minirun -n N PROGRAM ARGS…: starts N ranks around a fresh segment, without an agent: no faults
 * survived, no output handling. For tests of the MPI library alone. Ends with the first non-zero
 * status; when one rank fails the others are killed. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "job/segment.h"

enum { RANKS_MAX = 256 };

static int segment_make(uint32_t nranks)
{
	size_t bytes = segment_bytes(nranks);
	int fd = memfd_create("minirun", 0);
	if (fd < 0 || ftruncate(fd, (off_t)bytes))
		return -1;
	struct segment *s = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (s == MAP_FAILED)
		return -1;
	segment_layout(s, nranks, (uint32_t)sysconf(_SC_NPROCESSORS_ONLN), 1);
	munmap(s, bytes);
	return fd;
}

static void rank_exec(int rank, int nranks, int fd, char **argv)
{
	char text[3][16];
	snprintf(text[0], sizeof(text[0]), "%d", rank);
	snprintf(text[1], sizeof(text[1]), "%d", nranks);
	snprintf(text[2], sizeof(text[2]), "%d", fd);
	setenv("HALE_RANK", text[0], 1);
	setenv("HALE_NRANKS", text[1], 1);
	setenv("HALE_SEGMENT_FD", text[2], 1);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	execvp(argv[0], argv);
	perror(argv[0]);
	_exit(127);
}

int main(int argc, char **argv)
{
	if (argc < 4 || strcmp(argv[1], "-n") != 0) {
		fprintf(stderr, "usage: minirun -n N PROGRAM ARGS…\n");
		return 64;
	}
	int n = atoi(argv[2]), result = 0;
	pid_t pid[RANKS_MAX];
	int fd = n > 0 && n <= RANKS_MAX ? segment_make((uint32_t)n) : -1;
	if (fd < 0) {
		fprintf(stderr, "minirun: can't make a segment for %d ranks\n", n);
		return 64;
	}
	for (int i = 0; i < n; i++) {
		pid[i] = fork();
		if (pid[i] == 0)
			rank_exec(i, n, fd, argv + 3);
	}
	for (int left = n; left > 0; left--) {
		int status;
		pid_t p = wait(&status);
		if (status == 0 || result != 0)
			continue;
		result = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
		for (int i = 0; i < n; i++)
			if (pid[i] != p)
				kill(pid[i], SIGKILL);
	}
	return result;
}
