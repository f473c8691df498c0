// SPDX-License-Identifier: BSD-3-Clause
/* minirun -n N [--nodes K] [--netns PREFIX] PROGRAM ARGS…: starts N ranks around fresh segments,
 * without an agent: no faults survived, no output handling. For tests of the MPI library alone.
 * Ends with the first non-zero status; when one rank fails the others are killed.
 *
 * --nodes K: ranks live on K nodes, in order, as many on each. A node is a segment of its own, and
 * a process that brings the addresses of the other nodes' ranks into it, as an agent does.
 * --encrypt 1: what passes between nodes.
 * --netns PREFIX: node k is in the network namespace PREFIXk (ip netns). */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include "node/segment.h"

enum { RANKS_MAX = 256, NODES_MAX = 8, RELAY_US = 500 };

static int n, nodes = 1;
static const char *netns;
static bool encrypt;
static int segment_fd[NODES_MAX];
static struct segment *segment[NODES_MAX];

static unsigned char secret[SEGMENT_SECRET];

static int node_of(int rank)
{
	return (int)((long)rank * nodes / n);
}

static int segment_make(int node)
{
	size_t bytes = segment_bytes((uint32_t)n);
	unsigned char here[RANKS_MAX];
	int fd = memfd_create("minirun", 0);
	if (fd < 0 || ftruncate(fd, (off_t)bytes))
		return -1;
	struct segment *s = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (s == MAP_FAILED)
		return -1;
	segment_layout(s, (uint32_t)n, (uint32_t)sysconf(_SC_NPROCESSORS_ONLN), 1);
	segment_secret_put(s, secret);
	s->net_encrypt = encrypt;
	for (int r = 0; r < n; r++)
		here[r] = node_of(r) == node;
	segment_place(s, here, (uint32_t)n);
	segment[node] = s;
	return segment_fd[node] = fd;
}

static void node_enter(int node)
{
	char path[256];
	if (!netns)
		return;
	snprintf(path, sizeof(path), "/run/netns/%s%d", netns, node);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || setns(fd, CLONE_NEWNET)) {
		perror(path);
		_exit(126);
	}
	close(fd);
}

static void rank_exec(int rank, char **argv)
{
	char text[3][16];
	node_enter(node_of(rank));
	snprintf(text[0], sizeof(text[0]), "%d", rank);
	snprintf(text[1], sizeof(text[1]), "%d", n);
	snprintf(text[2], sizeof(text[2]), "%d", segment_fd[node_of(rank)]);
	setenv("HALE_RANK", text[0], 1);
	setenv("HALE_NRANKS", text[1], 1);
	setenv("HALE_SEGMENT_FD", text[2], 1);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	execvp(argv[0], argv);
	perror(argv[0]);
	_exit(127);
}

/* Copies what has changed of rank r's entry since `seen`. */
static bool entry_bring(struct segment *to, int r, uint32_t *seen)
{
	unsigned char bytes[SEGMENT_ADDRESS_MAX];
	uint32_t length, version;
	version = segment_address_get(segment[node_of(r)], (uint32_t)r, bytes, &length);
	if (version == 0 || version == *seen)
		return false;
	*seen = version;
	segment_address_put(to, (uint32_t)r, bytes, length);
	return true;
}

static void relay_run(int node)
{
	uint32_t seen[RANKS_MAX] = {0};
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	node_enter(node);
	for (;;) {
		bool changed = false;
		for (int r = 0; r < n; r++)
			if (node_of(r) != node)
				changed |= entry_bring(segment[node], r, &seen[r]);
		for (int r = 0; r < n && changed; r++)
			if (node_of(r) == node)
				mailbox_ring(segment_mailbox(segment[node], (uint32_t)r));
		usleep(RELAY_US);
	}
}

static int options(int argc, char **argv)
{
	int i = 1;
	for (; i + 1 < argc && argv[i][0] == '-'; i += 2) {
		if (strcmp(argv[i], "-n") == 0)
			n = atoi(argv[i + 1]);
		else if (strcmp(argv[i], "--nodes") == 0)
			nodes = atoi(argv[i + 1]);
		else if (strcmp(argv[i], "--netns") == 0)
			netns = argv[i + 1];
		else if (strcmp(argv[i], "--encrypt") == 0)
			encrypt = atoi(argv[i + 1]) != 0;
		else
			break;
	}
	bool right = i < argc && argv[i][0] != '-' && n > 0 && n <= RANKS_MAX && nodes > 0 &&
		     nodes <= NODES_MAX && nodes <= n;
	return right ? i : 0;
}

static int wait_all(const pid_t *pid)
{
	int result = 0, left = n;
	while (left > 0) {
		int status;
		pid_t p = wait(&status);
		bool rank = false;
		for (int i = 0; i < n; i++)
			rank |= pid[i] == p;
		left -= rank;
		if (status == 0 || result != 0)
			continue;
		result = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
		for (int i = 0; i < n; i++)
			if (pid[i] != p)
				kill(pid[i], SIGKILL);
	}
	return result;
}

int main(int argc, char **argv)
{
	pid_t pid[RANKS_MAX], relay[NODES_MAX];
	int program = options(argc, argv);
	if (!program) {
		fprintf(stderr, "usage: minirun -n N [--nodes K] [--netns PREFIX] PROGRAM ARGS…\n");
		return 64;
	}
	if (getrandom(secret, sizeof(secret), 0) != sizeof(secret))
		return 64;
	for (int k = 0; k < nodes; k++)
		if (segment_make(k) < 0) {
			fprintf(stderr, "minirun: can't make a segment for %d ranks\n", n);
			return 64;
		}
	for (int k = 0; k < nodes && nodes > 1; k++)
		if ((relay[k] = fork()) == 0)
			relay_run(k);
	for (int i = 0; i < n; i++)
		if ((pid[i] = fork()) == 0)
			rank_exec(i, argv + program);
	int result = wait_all(pid);
	for (int k = 0; k < nodes && nodes > 1; k++) {
		kill(relay[k], SIGKILL);
		waitpid(relay[k], NULL, 0);
	}
	return result;
}
