/* SPDX-License-Identifier: BSD-3-Clause */
/* The supervisor's side of launching: its agent asks, on the book's desk. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/base.h"
#include "agent/supervisor/supervisor_private.h"
#include "launch/launch.h"

enum { MORE_FDS = 4, SPARE_FDS = 128 };

/* Each has two pipes, a connection, and perhaps a third pipe. */
static void more_descriptors(const struct ward *w)
{
	struct rlimit limit;
	rlim_t wanted = MORE_FDS * (rlim_t)atomic_load(&w->book->count) + SPARE_FDS;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted)
		return;
	limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
	setrlimit(RLIMIT_NOFILE, &limit);
}

struct texts {
	const char *at;
	uint32_t left;
};

static char *next_text(struct texts *t)
{
	size_t len = strnlen(t->at, t->left);
	char *text = (char *)(uintptr_t)t->at;

	if (len == t->left)
		return NULL;
	t->at += len + 1;
	t->left -= (uint32_t)len + 1;
	return text;
}

static bool next_texts(struct texts *t, char **list, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (!(list[i] = next_text(t)))
			return false;
	list[count] = NULL;
	return true;
}

static void close_all(int *fd, int count)
{
	for (int i = 0; i < count; i++) {
		if (fd[i] >= 0)
			close(fd[i]);
		fd[i] = -1;
	}
}

/* [0]: of the process, [1]: ours. */
static hale_status_t make_pipes(const struct ward_desk *d, int its[3], int ours[3],
				struct error *err)
{
	int ends[2];

	if (d->input && pipe2(ends, O_CLOEXEC) == 0) {
		its[0] = ends[0];
		ours[0] = ends[1];
	} else if (!d->input) {
		its[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	}
	for (int i = 1; its[0] >= 0 && i < 3; i++) {
		if (pipe2(ends, O_CLOEXEC) != 0)
			break;
		ours[i] = ends[0];
		its[i] = ends[1];
	}
	for (int i = 0; i < 3; i++)
		if (ours[i] >= 0)
			fcntl(ours[i], F_SETFL, O_NONBLOCK);
	if (its[2] >= 0)
		return HALE_OK;
	error_sys(err, HALE_ERR_SYSTEM, "cannot make the pipes of rank %u", d->rank);
	close_all(its, 3);
	close_all(ours, 3);
	return HALE_ERR_SYSTEM;
}

/* Of a desk: l->argv and l->env are one allocation, which the caller frees. */
static hale_status_t read_desk(struct ward *w, const struct ward_desk *d, struct texts t,
			       struct launch *l, struct error *err)
{
	char **argv = calloc((size_t)d->argc + d->envc + 2, sizeof(*argv));

	*l = (struct launch){.id = d->id,
			     .cpus = d->bound ? &d->cpus : NULL,
			     .over = &w->book->over,
			     .meanwhile = ward_look_at_lease,
			     .arg = w};
	if (!argv)
		return error_set(err, HALE_ERR_MEMORY, "out of memory");
	l->path = next_text(&t);
	l->wdir = d->has_wdir ? next_text(&t) : NULL;
	l->argv = argv;
	l->env = argv + d->argc + 1;
	if (next_texts(&t, argv, d->argc) && next_texts(&t, l->env, d->envc))
		return HALE_OK;
	free(argv);
	l->argv = l->env = NULL;
	return error_set(err, HALE_ERR_PROTOCOL, "what is to be launched is nothing");
}

static bool is_sink(char *const *env)
{
	static const char name[] = "HALE_SINK=";

	for (; *env; env++)
		if (strncmp(*env, name, sizeof(name) - 1) == 0)
			return true;
	return false;
}

static hale_status_t start(struct ward *w, struct book_child *c, struct launch *l, pid_t *pid,
			   struct error *err)
{
	l->group = &c->group;
	atomic_store(&c->pid, 0);
	atomic_store(&c->ended, 0);
	c->stood = is_sink(l->env) && ward_stand_take(w, l, pid);
	return c->stood ? HALE_OK : launch_process(l, pid, err);
}

static hale_status_t launch(struct ward *w, const struct ward_desk *d, struct texts t,
			    struct error *err)
{
	struct book_child *c = &w->book->child[d->rank];
	int its[3] = {-1, -1, -1}, ours[3] = {-1, -1, -1};
	struct launch l;
	hale_status_t status = read_desk(w, d, t, &l, err);
	pid_t pid;

	if (status != HALE_OK)
		return status;
	status = make_pipes(d, its, ours, err);
	if (status == HALE_OK) {
		memcpy(l.fd, its, sizeof(its));
		status = start(w, c, &l, &pid, err);
		close_all(its, 3);
	}
	free((void *)(uintptr_t)l.argv);
	if (status != HALE_OK) {
		close_all(ours, 3);
		return status;
	}
	atomic_store(&c->group, pid);
	c->number = d->number;
	atomic_store(&c->pid, pid);
	ward_drop(w, HOLD_INPUT, d->rank);
	if (d->input)
		ward_hold(w, HOLD_INPUT, d->rank, ours[0], 0);
	for (int i = 0; i < 2; i++)
		ward_hold(w, HOLD_OUT, 2ull * d->rank + (uint64_t)i, ours[i + 1], 0);
	return HALE_OK;
}

/* The ends that are held, in the order of supervisor_spawn's. */
static int ends_of(struct ward *w, uint32_t rank, int fd[WARD_FDS])
{
	const struct supervisor_held *h;
	int n = 0;

	for (int i = 0; i < 2; i++)
		if ((h = ward_find(w, HOLD_OUT, 2ull * rank + (uint64_t)i)))
			fd[n++] = h->fd;
	if ((h = ward_find(w, HOLD_INPUT, rank)))
		fd[n++] = h->fd;
	return n;
}

/* A copy of what is on the desk; its texts are the caller's. NULL: no memory. */
static char *take_desk(const struct ward *w, struct ward_desk *d)
{
	char *texts;

	memcpy(d, w->book->desk, sizeof(*d));
	texts = malloc((size_t)d->len + 1);
	if (!texts)
		return NULL;
	memcpy(texts, w->book->desk + sizeof(*d), d->len);
	texts[d->len] = '\0';
	return texts;
}

/* The agent was not there to hear of the process that an earlier order has started: it had no lease
 * by then, and asks anew. There are never two of one rank. */
static void end_before(struct ward *w, struct book_child *c)
{
	pid_t pid = atomic_load(&c->pid);
	int status;

	if (pid == 0 || atomic_load(&c->ended))
		return;
	kill(pid, SIGKILL);
	kill(-pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	c->status = status;
	atomic_store(&c->ended, 1);
	ward_look_at_lease(w);
}

void ward_take_spawn(struct ward *w)
{
	struct ward_packet answer = {.type = WARD_SPAWNED};
	struct ward_desk d;
	struct error err = {HALE_OK, ""};
	struct book_child *c;
	char *texts = take_desk(w, &d);
	int fd[WARD_FDS], fds = 0;

	answer.number = d.number;
	c = &w->book->child[d.rank];
	more_descriptors(w);
	if (c->number != d.number)
		end_before(w, c);
	if (!texts)
		error_set(&err, HALE_ERR_MEMORY, "out of memory");
	else if (c->number != d.number || atomic_load(&c->pid) == 0)
		launch(w, &d, (struct texts){texts, d.len}, &err);
	free(texts);
	if (err.code == HALE_OK) {
		answer.value = atomic_load(&c->pid);
		fds = ends_of(w, d.rank, fd);
	} else {
		memcpy(w->book->desk, err.text, sizeof(err.text));
		answer.key = (uint64_t)err.code;
	}
	ward_say(w->control, &answer, fd, fds, 0);
}

/* The agent does not wait for the start. */
void ward_take_stand(struct ward *w)
{
	struct ward_desk d;
	struct error err;
	struct launch l;
	char *texts = take_desk(w, &d);

	ward_say(w->control, &(struct ward_packet){.type = WARD_STOOD}, NULL, 0, 0);
	more_descriptors(w);
	if (texts && read_desk(w, &d, (struct texts){texts, d.len}, &l, &err) == HALE_OK) {
		ward_stand_start(w, &l);
		free((void *)(uintptr_t)l.argv);
	}
	free(texts);
}
