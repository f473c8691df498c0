/* SPDX-License-Identifier: BSD-3-Clause */
/* --inject flip: a bit of a rank changes, as by a particle: in the next messages that it sends (as
 * if they were computed wrongly: flip:result; or after their digests are computed: flip:message),
 * or somewhere in the program's own memory: its data and its heap, not blocks that malloc has
 * mapped, which look like Hale's own. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "agent/agent_private.h"

struct flip_target {
	unsigned long from, to;
};

enum { TARGETS_MAX = 4096 };

/* end: of the last mapping of the program's file, behind which its zeroed data may lie. */
static bool is_program_memory(const char *line, const char *program, unsigned long *end,
			      struct flip_target *t)
{
	char rights[8], path[512] = "";

	bool of_program;

	if (sscanf(line, "%lx-%lx %7s %*s %*s %*s %511[^\n]", &t->from, &t->to, rights, path) < 3)
		return false;
	of_program = strcmp(path, program) == 0 || (path[0] == '\0' && t->from == *end);
	if (of_program)
		*end = t->to;
	return (of_program || strcmp(path, "[heap]") == 0) && strncmp(rights, "rw-p", 4) == 0;
}

static size_t targets_find(pid_t pid, struct flip_target *list, unsigned long *bytes)
{
	char name[64], line[1024], program[512];
	unsigned long end = 0;
	size_t n = 0;
	ssize_t len;
	FILE *f;

	snprintf(name, sizeof(name), "/proc/%d/exe", (int)pid);
	len = readlink(name, program, sizeof(program) - 1);
	program[len > 0 ? len : 0] = '\0';
	snprintf(name, sizeof(name), "/proc/%d/maps", (int)pid);
	f = fopen(name, "re");
	*bytes = 0;
	while (f && n < TARGETS_MAX && fgets(line, sizeof(line), f))
		if (is_program_memory(line, program, &end, &list[n]))
			*bytes += list[n].to - list[n].from, n++;
	if (f)
		fclose(f);
	return n;
}

static bool bit_flip(pid_t pid, unsigned long at, unsigned bit)
{
	char name[64];
	unsigned char byte;
	bool done;
	int fd;

	snprintf(name, sizeof(name), "/proc/%d/mem", (int)pid);
	fd = open(name, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return false;
	done = pread(fd, &byte, 1, (off_t)at) == 1;
	byte ^= (unsigned char)(1u << bit);
	done = done && pwrite(fd, &byte, 1, (off_t)at) == 1;
	close(fd);
	return done;
}

static bool memory_flip(pid_t pid, uint64_t drawn)
{
	struct flip_target *list = calloc(TARGETS_MAX, sizeof(*list));
	unsigned long bytes, at;
	bool done = false;
	size_t n;

	if (!list)
		return false;
	n = targets_find(pid, list, &bytes);
	at = bytes ? (unsigned long)(drawn >> 3) % bytes : 0;
	for (size_t i = 0; i < n && !done; i++) {
		if (at < list[i].to - list[i].from) {
			done = bit_flip(pid, list[i].from + at, drawn & 7);
			break;
		}
		at -= list[i].to - list[i].from;
	}
	free(list);
	return done;
}

void agent_flip(struct agent *a, const struct message *m)
{
	struct mailbox *box = agent_mailbox(a, m->rank);
	pid_t pid = atomic_load(&box->pid);

	if (strcmp(m->text, "flip:message") == 0 || strcmp(m->text, "flip:result") == 0) {
		atomic_store(&box->flip_early, strcmp(m->text, "flip:result") == 0);
		atomic_store(&box->flip_every, m->flags);
		atomic_fetch_add(&box->flips, (uint32_t)m->number);
		return;
	}
	if (pid <= 0 || !memory_flip(pid, m->number))
		log_warn("the flip in the memory of rank %u (pid %d) came to nothing: the process "
			 "has no memory that can be written to",
			 m->rank, (int)pid);
}
