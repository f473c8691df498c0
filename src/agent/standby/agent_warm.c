/* SPDX-License-Identifier: BSD-3-Clause */
/* A spare that has never run the program would have to read it from its disk while all ranks wait:
 * so files that ranks have mapped come into its memory beforehand (docs/nodes.md, 'Spares are
 * warm'). Children do what takes as long as disks take: one lists what is mapped here, another one
 * reads such a list of another node. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/base.h"
#include "base/memory.h"
#include "agent/agent_private.h"
#include "agent/standby/warm_files.h"

enum {
	OUT_FD = 3,
	NICEST = 19,
	IOPRIO_PROCESS = 1,
	IOPRIO_IDLE = 3 << 13,
	LISTS_MAX = 4 * WARM_LIST_MAX,
	SHARE = 4, /* of the memory that is free, files may take so much */
};
#define BYTES_MAX (2ull << 30)

/* Nobody waits for it, and it keeps nothing that somebody else waits on: above all not the way to
 * the head, whose end proves that the ranks are gone. */
static void become_child(int out)
{
	sigset_t none;

	prctl(PR_SET_NAME, "hale-warm");
	if (dup2(out, OUT_FD) < 0)
		_exit(1);
	close_range(OUT_FD + 1, ~0u, 0);
	signal(SIGPIPE, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Not who lists: it has the maps of a rank locked while it reads them, and if it waited for a core
 * then, behind all others, the rank would wait with it as soon as it maps something or forks. */
static void give_way(void)
{
	setpriority(PRIO_PROCESS, 0, NICEST);
	syscall(SYS_ioprio_set, IOPRIO_PROCESS, 0, IOPRIO_IDLE);
}

static _Noreturn void write_out(const void *bytes, size_t len)
{
	const char *at = bytes;

	while (len > 0) {
		ssize_t n = write(OUT_FD, at, len);

		if (n <= 0)
			_exit(1);
		at += n;
		len -= (size_t)n;
	}
	_exit(0);
}

/* ---- a child, and what it says ---- */

static void child_close(struct agent_warm_child *c)
{
	int fd = c->source.fd;

	if (fd < 0)
		return;
	loop_remove(&c->agent->loop, &c->source);
	close(fd);
	free(c->bytes);
	c->bytes = NULL;
	c->len = c->cap = 0;
}

static bool more_room(struct agent_warm_child *c)
{
	size_t cap = c->cap ? 2 * c->cap : 16384;
	unsigned char *more = cap <= 4 * WARM_LIST_MAX ? realloc(c->bytes, cap) : NULL;

	if (!more)
		return false;
	c->bytes = more;
	c->cap = cap;
	return true;
}

static void child_says(void *arg, uint32_t events)
{
	struct agent_warm_child *c = arg;
	ssize_t n;

	if (c->len == c->cap && !more_room(c)) {
		child_close(c);
		return;
	}
	n = read(c->source.fd, c->bytes + c->len, c->cap - c->len);
	if (n > 0)
		c->len += (size_t)n;
	if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)))
		return;
	if (n == 0)
		c->done(c->agent, c);
	child_close(c);
}

/* Returns twice: true in the child. */
static bool child_start(struct agent *a, struct agent_warm_child *c,
			void (*done)(struct agent *a, const struct agent_warm_child *c))
{
	pid_t agent = getpid(), pid;
	int ends[2];

	child_close(c);
	if (pipe2(ends, O_CLOEXEC) != 0)
		return false;
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != agent)
			_exit(1);
		become_child(ends[1]);
		return true;
	}
	close(ends[1]);
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	c->agent = a;
	c->done = done;
	if (pid < 0 || !loop_add(&a->loop, &c->source, ends[0], EPOLLIN, child_says, c)) {
		close(ends[0]);
		c->source.fd = -1;
	}
	return false;
}

/* ---- what is mapped here ---- */

static void listed(struct agent *a, const struct agent_warm_child *c)
{
	agent_send(a, &(struct message){
			  .type = MSG_MAPPED, .id = c->id, .bytes = c->bytes, .len = c->len});
}

/* The newest question counts. */
static void take_maps(struct agent *a, const struct message *m)
{
	pid_t *pids = calloc(a->setup.nranks, sizeof(*pids));
	size_t count = 0, len;
	unsigned char *list;

	for (uint32_t r = 0; pids && r < a->setup.nranks; r++)
		if (agent_has(a, r) && a->ranks[r].member > 0)
			pids[count++] = a->ranks[r].member;
	a->warm.lister.id = m->id;
	if (count > 0 && child_start(a, &a->warm.lister, listed)) {
		list = warm_files_list(pids, count, &len);
		write_out(list, len);
	}
	free(pids);
}

/* ---- what is mapped elsewhere ---- */

void agent_warm_say(struct agent *a)
{
	const struct agent_warm *w = &a->warm;

	a->stand.said = atomic_load(&a->supervisor.book->standing);
	agent_send(a, &(struct message){.type = MSG_WARMED,
					.id = w->id,
					.value = (int32_t)a->stand.said,
					.number = w->bytes,
					.text = w->text,
					.name = a->stand.text});
}

static void read_done(struct agent *a, const struct agent_warm_child *c)
{
	struct agent_warm *w = &a->warm;
	struct warm_files_result result;

	if (c->len != sizeof(result))
		return;
	memcpy(&result, c->bytes, sizeof(result));
	w->bytes = result.bytes;
	snprintf(w->text, sizeof(w->text), "%s", result.text);
	if (result.good && w->sinks > 0)
		agent_stand_want(a, w->sinks, result.program, result.identity);
	else
		agent_stand_none(a);
	agent_warm_say(a);
}

static uint64_t bytes_allowed(void)
{
	struct memory_room room;
	uint64_t share = memory_look("", &room) ? room.available / SHARE : 0;

	return share < BYTES_MAX ? share : BYTES_MAX;
}

/* Nodes whose ranks have mapped other files have lists of their own, with the same number. */
static bool add_list(struct agent_warm *w, const struct message *m)
{
	unsigned char *more;

	if (m->id != w->id)
		w->len = 0;
	w->id = m->id;
	if (m->len == 0 || w->len + m->len > LISTS_MAX)
		return false;
	more = realloc(w->list, w->len + m->len);
	if (!more)
		return false;
	memcpy(more + w->len, m->bytes, m->len);
	w->list = more;
	w->len += m->len;
	return true;
}

static void take_warm(struct agent *a, const struct message *m)
{
	struct agent_warm *w = &a->warm;
	struct warm_files_result result;

	w->sinks = (uint32_t)m->number;
	if (m->len == 0)
		agent_stand_none(a);
	if (add_list(w, m) && child_start(a, &w->reader, read_done)) {
		give_way();
		warm_files_read(w->list, w->len, bytes_allowed(), &result);
		write_out(&result, sizeof(result));
	}
}

bool agent_warm_take(struct agent *a, const struct message *m)
{
	if (m->type == MSG_MAPS)
		take_maps(a, m);
	else if (m->type == MSG_WARM)
		take_warm(a, m);
	else
		return false;
	return true;
}

void agent_warm_init(struct agent *a)
{
	a->warm.lister.source.fd = a->warm.reader.source.fd = -1;
	a->warm.lister.agent = a->warm.reader.agent = a;
}

void agent_warm_stop(struct agent *a)
{
	child_close(&a->warm.lister);
	child_close(&a->warm.reader);
	free(a->warm.list);
	a->warm.list = NULL;
	a->warm.len = 0;
}
