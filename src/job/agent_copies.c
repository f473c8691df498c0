/* SPDX-License-Identifier: BSD-3-Clause */
/* The agent's side of the copier: starts it, passes the head's orders on and its answers back. An
 * order whose copier has died is answered, too; the next order finds a new one at the same address.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/base.h"
#include "job/agent_private.h"

enum { FD_FIRST = 3 };

struct agent_order {
	struct copier_order order;
	struct agent_order *next;
};

/* ---- the folder ---- */

static void expand(const char *template, const char *node, char *to, size_t cap)
{
	size_t len = 0;

	to[0] = '\0';
	for (const char *t = template; *t && len + 1 < cap; t++) {
		if (t[0] == '%' && t[1] == 'n')
			len += (size_t)snprintf(to + len, cap - len, "%s", node);
		else
			len += (size_t)snprintf(to + len, cap - len, "%c", *t);
		if (t[0] == '%' && t[1])
			t++;
	}
}

/* <DIR>/<job>/<node>/<id>/rank-0.img: nodes that share a DIR are not in each other's way. */
static hale_status_t open_folder(struct agent *a, struct error *err)
{
	const struct setup *s = &a->setup;
	char dir[PATH_MAX], job[PATH_MAX + JOB_ID_MAX];

	expand(s->local, s->name, dir, sizeof(dir));
	snprintf(job, sizeof(job), "%s/%s", dir, s->job);
	if (strlen(job) + strlen(s->name) + 2 >= STORE_FOLDER_MAX)
		return error_set(
		    err, HALE_ERR_ARGUMENT,
		    "--ckpt-local: folders of images can have names of %d bytes, and with "
		    "those of the job and the node this one is too long: %.100s…",
		    STORE_FOLDER_MAX - 1, dir);
	return store_open(&a->copies.store, job, s->name[0] ? s->name : "node",
			  !(s->flags & SETUP_NOFSYNC), err);
}

/* ---- the process ---- */

static bool keep_fd(int *fd, int at)
{
	int high = fcntl(*fd, F_DUPFD, 2 * FD_FIRST + COPIER_PLACES_MAX + at);

	*fd = high;
	return high >= 0;
}

/* It keeps nothing that somebody else waits on: above all not the way to the head, whose end proves
 * that the ranks are gone. */
static _Noreturn void be_copier(struct copier *c, pid_t agent)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), at = FD_FIRST;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != agent)
		_exit(1);
	for (uint32_t i = 0; i < c->listeners; i++)
		if (!keep_fd(&c->listener[i], (int)i + 1))
			_exit(1);
	if (!keep_fd(&c->agent, 0) || null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 ||
	    dup2(c->agent, at) < 0)
		_exit(1);
	c->agent = at++;
	for (uint32_t i = 0; i < c->listeners; i++) {
		if (dup2(c->listener[i], at) < 0)
			_exit(1);
		c->listener[i] = at++;
	}
	close_range((unsigned)at, ~0u, 0);
	copier_run(c);
}

static void answered(void *arg, uint32_t events);

static hale_status_t start(struct agent *a, struct error *err)
{
	struct agent_copies *k = &a->copies;
	pid_t agent = getpid();
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
		return error_sys(err, HALE_ERR_SYSTEM, "cannot make a socket for the copier");
	k->pid = fork();
	if (k->pid == 0) {
		k->copier.agent = ends[1];
		be_copier(&k->copier, agent);
	}
	close(ends[1]);
	if (k->pid < 0 || !loop_add(&a->loop, &k->source, ends[0], EPOLLIN, answered, a)) {
		close(ends[0]);
		return error_sys(err, HALE_ERR_SYSTEM, "cannot start the copier of images");
	}
	return HALE_OK;
}

static void tell_where(struct agent *a)
{
	agent_send(a, &(struct message){.type = MSG_COPIES_AT,
					.text = a->copies.copier.address,
					.name = a->copies.copier.folder});
}

hale_status_t agent_copies_start(struct agent *a, struct error *err)
{
	struct agent_copies *k = &a->copies;
	const struct setup *s = &a->setup;
	hale_status_t status;

	if (!s->local[0])
		return HALE_OK;
	status = open_folder(a, err);
	if (status == HALE_OK) {
		copier_sweep(a->copies.store.job_folder);
		status = copier_listen(&k->copier, (s->flags & SETUP_LOCAL) != 0, err);
	}
	if (status != HALE_OK)
		return status;
	k->copier.node = s->node;
	k->copier.sync = k->store.sync;
	k->copier.encrypt = (s->flags & SETUP_ENCRYPT) != 0;
	memcpy(k->copier.secret, s->secret, sizeof(k->copier.secret));
	snprintf(k->copier.folder, sizeof(k->copier.folder), "%.*s", STORE_FOLDER_MAX - 1,
		 k->store.job_folder);
	status = start(a, err);
	if (status == HALE_OK)
		tell_where(a);
	return status;
}

void agent_copies_tell(struct agent *a)
{
	struct copier_image *all;
	size_t count;

	if (!a->setup.local[0])
		return;
	tell_where(a);
	all = copier_held(a->copies.copier.folder, &count);
	agent_send(a, &(struct message){.type = MSG_COPIES_HELD,
					.bytes = all ? (const void *)all : "",
					.len = count * sizeof(*all)});
	free(all);
}

static void stop(struct agent *a)
{
	struct agent_copies *k = &a->copies;
	int fd = k->source.fd;

	loop_remove(&a->loop, &k->source);
	if (fd >= 0)
		close(fd);
	if (k->pid > 0) {
		kill(k->pid, SIGKILL);
		while (waitpid(k->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	k->pid = 0;
}

void agent_copies_stop(struct agent *a)
{
	struct agent_copies *k = &a->copies;

	stop(a);
	copier_unlisten(&k->copier);
	if (k->store.job_folder[0]) { /* nothing of a job that left nothing in them */
		copier_sweep(k->store.job_folder);
		rmdir(k->store.job_folder);
		*strrchr(k->store.job_folder, '/') = '\0';
		rmdir(k->store.job_folder);
	}
	while (k->orders) {
		struct agent_order *o = k->orders;

		k->orders = o->next;
		free(o);
	}
}

/* ---- answers ---- */

static void report(struct agent *a, const struct copier_done *d)
{
	agent_send(a, &(struct message){.type = MSG_COPIED,
					.rank = d->order.rank,
					.id = d->order.id,
					.base = d->order.base,
					.flags = d->order.kind,
					.value = d->status,
					.number = d->image_base,
					.text = d->text});
}

static bool same_order(const struct copier_order *x, const struct copier_order *y)
{
	return x->kind == y->kind && x->rank == y->rank && x->id == y->id && x->base == y->base;
}

static void take_done(struct agent *a, struct copier_done *d)
{
	struct agent_order **at = &a->copies.orders;

	while (*at && !same_order(&(*at)->order, &d->order))
		at = &(*at)->next;
	if (!*at)
		return;
	struct agent_order *o = *at;
	*at = o->next;
	free(o);
	d->text[sizeof(d->text) - 1] = '\0';
	report(a, d);
}

/* Somebody has ended it: what it was at comes to nothing. */
static void copier_gone(struct agent *a)
{
	struct agent_order *lost = a->copies.orders;

	log_warn("the process that copies images was ended; copies under way are given up");
	stop(a);
	a->copies.orders = NULL;
	while (lost) {
		struct agent_order *o = lost;
		struct copier_done d = {.order = o->order, .status = HALE_ERR_SYSTEM};

		lost = o->next;
		snprintf(d.text, sizeof(d.text), "the process that copies images was ended");
		report(a, &d);
		free(o);
	}
}

static void answered(void *arg, uint32_t events)
{
	struct agent *a = arg;
	struct copier_done d;
	ssize_t n = recv(a->copies.source.fd, &d, sizeof(d), MSG_DONTWAIT);

	if (n == (ssize_t)sizeof(d))
		take_done(a, &d);
	else if (n >= 0 || (errno != EAGAIN && errno != EINTR))
		copier_gone(a);
}

/* ---- orders ---- */

/* The copier reads at once, so the socket has room. */
static bool give(struct agent *a, const void *packet, size_t len, struct error *err)
{
	if (a->copies.pid == 0 && start(a, err) != HALE_OK)
		return false;
	if (send(a->copies.source.fd, packet, len, MSG_NOSIGNAL) == (ssize_t)len)
		return true;
	error_sys(err, HALE_ERR_SYSTEM, "the process that copies images takes no orders");
	return false;
}

static void take_copy(struct agent *a, const struct message *m)
{
	struct agent_order *o = calloc(1, sizeof(*o));
	struct copier_done d = {.order = {.type = ORDER_COPY,
					  .kind = m->flags,
					  .rank = m->rank,
					  .id = m->id,
					  .base = m->base,
					  .peer = (uint32_t)m->position[2],
					  .bytes = m->position[0],
					  .checksum = m->position[1]}};
	struct error err;

	snprintf(d.order.address, sizeof(d.order.address), "%s", m->text);
	snprintf(d.order.folder, sizeof(d.order.folder), "%s", m->name);
	if (!a->setup.local[0])
		error_set(&err, HALE_ERR_STATE, "this node has no folder for images");
	else if (!o)
		error_set(&err, HALE_ERR_MEMORY, "out of memory");
	else if (give(a, &d.order, sizeof(d.order), &err)) {
		o->order = d.order;
		o->next = a->copies.orders;
		a->copies.orders = o;
		return;
	}
	free(o);
	d.status = (int32_t)err.code;
	snprintf(d.text, sizeof(d.text), "%s", err.text);
	report(a, &d);
}

static void take_keep(struct agent *a, const struct message *m)
{
	struct copier_order order = {.type = ORDER_KEEP};
	size_t len = m->len < COPIER_KEEP_MAX * sizeof(uint32_t) ? m->len : 0;
	unsigned char *packet = malloc(sizeof(order) + len);
	struct error err;

	if (packet && len > 0 && a->setup.local[0]) {
		memcpy(packet, &order, sizeof(order));
		memcpy(packet + sizeof(order), m->bytes, len);
		if (!give(a, packet, sizeof(order) + len, &err))
			log_warn("images that are not needed any more stay: %s", err.text);
	}
	free(packet);
}

bool agent_copies_take(struct agent *a, const struct message *m)
{
	if (m->type == MSG_COPY)
		take_copy(a, m);
	else if (m->type == MSG_COPY_KEEP)
		take_keep(a, m);
	else
		return false;
	return true;
}

/* Where the images of a checkpoint are written on this node. */
void agent_copies_folder(struct agent *a, uint32_t id, char *folder, size_t cap)
{
	struct error err;

	snprintf(folder, cap, "%.*s/%u", STORE_FOLDER_MAX, a->copies.store.job_folder, id);
	store_remove_folder(folder);
	if (store_make_folders(folder, &err) != HALE_OK) /* the ranks will say that they can't */
		log_info("%s", err.text);
}
