/* SPDX-License-Identifier: BSD-3-Clause */
/* The agent's side of its supervisor. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/base.h"
#include "agent/supervisor/supervisor_private.h"

enum { WAIT_MS = 100 };

static void lost(struct supervisor *g)
{
	if (g->control >= 0)
		close(g->control);
	g->control = -1;
}

/* ---- what is held ---- */

void supervisor_hold(struct supervisor *g, enum supervisor_kind kind, uint64_t key, int fd)
{
	const struct ward_packet p = {.type = WARD_HOLD, .kind = kind, .key = key};

	ward_say(g->control, &p, &fd, 1, 0);
}

void supervisor_drop(struct supervisor *g, enum supervisor_kind kind, uint64_t key)
{
	const struct ward_packet p = {.type = WARD_DROP, .kind = kind, .key = key};

	ward_say(g->control, &p, NULL, 0, 0);
}

int supervisor_claim(struct supervisor *g, enum supervisor_kind kind, uint64_t key, pid_t *peer)
{
	for (size_t i = 0; i < g->count; i++) {
		struct supervisor_held *h = &g->held[i];

		if (h->kind != kind || h->key != key || h->fd < 0)
			continue;
		int fd = h->fd;
		h->fd = -1;
		if (peer)
			*peer = h->peer;
		return fd;
	}
	return -1;
}

void supervisor_claimed(struct supervisor *g)
{
	for (size_t i = 0; i < g->count; i++) {
		const struct supervisor_held *h = &g->held[i];

		if (h->fd < 0)
			continue;
		if (h->kind == HOLD_LINK_IN || h->kind == HOLD_LINK_OUT)
			supervisor_drop(g, h->kind, h->key);
		close(h->fd);
	}
	free(g->held);
	g->held = NULL;
	g->count = 0;
}

/* ---- what it says ---- */

static void close_all(const int *fd, int count)
{
	for (int i = 0; i < count; i++)
		close(fd[i]);
}

bool supervisor_hear(struct supervisor *g, struct supervisor_conn *conn)
{
	struct ward_packet p;
	int fd[WARD_FDS], fds, said;

	conn->fd = -1;
	said = g->control >= 0 ? ward_hear(g->control, &p, fd, &fds, MSG_DONTWAIT) : 0;
	if (said < 0)
		lost(g);
	if (said <= 0)
		return false;
	if (p.type == WARD_CONN && fds == 1) {
		*conn =
		    (struct supervisor_conn){.number = p.key, .peer = (pid_t)p.value, .fd = fd[0]};
		return true;
	}
	close_all(fd, fds);
	return true;
}

/* ---- launching ---- */

static bool put_text(unsigned char **at, const unsigned char *end, const char *text)
{
	size_t len = strlen(text) + 1;

	if ((size_t)(end - *at) < len)
		return false;
	memcpy(*at, text, len);
	*at += len;
	return true;
}

static hale_status_t fill_desk(struct book *b, const struct supervisor_launch *l, struct error *err)
{
	struct ward_desk d = {.number = l->number,
			      .rank = l->rank,
			      .id = l->id,
			      .input = l->input,
			      .bound = l->cpus != NULL,
			      .has_wdir = l->wdir != NULL};
	unsigned char *begin = b->desk + sizeof(d), *at = begin;
	const unsigned char *end = b->desk + sizeof(b->desk);
	bool fits = put_text(&at, end, l->path) && (!l->wdir || put_text(&at, end, l->wdir));

	for (char *const *a = l->argv; fits && *a; a++, d.argc++)
		fits = put_text(&at, end, *a);
	for (char *const *e = l->env; fits && *e; e++, d.envc++)
		fits = put_text(&at, end, *e);
	if (!fits)
		return error_set(err, HALE_ERR_MEMORY,
				 "the arguments and the environment of '%s' are too long", l->path);
	if (l->cpus)
		d.cpus = *l->cpus;
	d.len = (uint32_t)(at - begin);
	memcpy(b->desk, &d, sizeof(d));
	return HALE_OK;
}

static hale_status_t take_answer(struct supervisor *g, const struct supervisor_launch *l,
				 const struct ward_packet *p, const int *got, int fds, pid_t *pid,
				 int fd[3], struct error *err)
{
	char text[sizeof(err->text)];

	if (p->value == 0) {
		memcpy(text, g->book->desk, sizeof(text));
		text[sizeof(text) - 1] = '\0';
		return error_set(err, (hale_status_t)p->key, "%s", text);
	}
	*pid = (pid_t)p->value;
	if (l->stood)
		*l->stood = g->book->child[l->rank].stood;
	for (int i = 0; i < 2 && i < fds; i++)
		fd[i + 1] = got[i];
	if (l->input && fds > 2)
		fd[0] = got[2];
	return HALE_OK;
}

/* Says that something is on the desk, and waits for the answer; connections that come meanwhile are
 * passed on. False: there will be none. */
static bool ask(struct supervisor *g, const struct ward_packet *question, uint32_t answer,
		struct ward_packet *p, int got[WARD_FDS], int *fds, bool (*waiting)(void *arg),
		void *arg)
{
	struct pollfd wait = {.fd = g->control, .events = POLLIN};
	int said = 0;

	ward_say(g->control, question, NULL, 0, 0);
	while (said >= 0 && g->control >= 0) {
		if (poll(&wait, 1, WAIT_MS) <= 0) {
			if (!waiting(arg))
				return false;
			continue;
		}
		said = ward_hear(g->control, p, got, fds, MSG_DONTWAIT);
		if (said > 0 && p->type == answer && p->number == question->number)
			return true;
		if (said > 0 && p->type == WARD_CONN && *fds == 1)
			g->accepted(g->arg, &(struct supervisor_conn){.number = p->key,
								      .peer = (pid_t)p->value,
								      .fd = got[0]});
		else if (said > 0) /* to what was asked before, and not waited for any longer */
			close_all(got, *fds);
	}
	if (said < 0)
		lost(g);
	return false;
}

hale_status_t supervisor_spawn(struct supervisor *g, const struct supervisor_launch *l, pid_t *pid,
			       int fd[3], bool (*waiting)(void *arg), void *arg, struct error *err)
{
	const struct ward_packet question = {.type = WARD_SPAWN, .number = l->number};
	struct ward_packet p;
	int got[WARD_FDS], fds;

	*pid = 0;
	fd[0] = fd[1] = fd[2] = -1;
	if (fill_desk(g->book, l, err) != HALE_OK)
		return err->code;
	if (ask(g, &question, WARD_SPAWNED, &p, got, &fds, waiting, arg))
		return take_answer(g, l, &p, got, fds, pid, fd, err);
	return error_set(err, HALE_ERR_STATE, "the supervisor of this node does not answer");
}

bool supervisor_stand(struct supervisor *g, const struct supervisor_launch *l,
		      bool (*waiting)(void *arg), void *arg)
{
	const struct ward_packet question = {.type = WARD_STAND, .value = 1};
	struct ward_packet p;
	struct error err;
	int got[WARD_FDS], fds;

	return fill_desk(g->book, l, &err) == HALE_OK &&
	       ask(g, &question, WARD_STOOD, &p, got, &fds, waiting, arg);
}

void supervisor_stand_end(struct supervisor *g)
{
	ward_say(g->control, &(struct ward_packet){.type = WARD_STAND}, NULL, 0, 0);
}

void supervisor_done(struct supervisor *g, int exit_status)
{
	const struct ward_packet p = {.type = WARD_DONE, .value = exit_status};

	ward_say(g->control, &p, NULL, 0, 0);
}
