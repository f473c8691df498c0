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
#include "base/packets.h"
#include "agent/agent_private.h"

enum { FD_FIRST = 3 };

#define SILENCE_SECONDS 10.0

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
	char dir[PATH_MAX], job[PATH_MAX + JOB_ID_MAX], name[JOB_NODE_NAME];

	/* lists of images have colons between, addresses of IPv6 in their midst */
	snprintf(name, sizeof(name), "%s", s->name);
	for (char *c = name; (c = strchr(c, ':'));)
		*c = '-';
	expand(s->local, name, dir, sizeof(dir));
	snprintf(job, sizeof(job), "%s/%s", dir, s->job);
	if (strlen(job) + strlen(name) + 2 >= STORE_FOLDER_MAX)
		return error_set(
		    err, HALE_ERR_ARGUMENT,
		    "--ckpt-local: folders of images can have names of %d bytes, and with "
		    "those of the job and the node this one is too long: %.100s…",
		    STORE_FOLDER_MAX - 1, dir);
	return store_open(&a->copies.store, job, name[0] ? name : "node",
			  !(s->flags & SETUP_NOFSYNC), err);
}

/* ---- the process ---- */

static bool keep_fd(int *fd, int at)
{
	int high = fcntl(*fd, F_DUPFD, 2 * FD_FIRST + COPIES_PLACES_MAX + at);

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
	a->supervisor.book->copier = k->pid;
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

/* What it is told when it starts. */
static void describe(struct agent *a)
{
	struct agent_copies *k = &a->copies;
	const struct setup *s = &a->setup;
	const char *silence = agent_variable(a, "HALE_NET_TIMEOUT");

	k->copier.node = s->node;
	k->copier.sync = k->store.sync;
	k->copier.encrypt = (s->flags & SETUP_ENCRYPT) != 0;
	k->copier.local = (s->flags & SETUP_LOCAL) != 0;
	k->copier.wish = agent_reach_wish(a);
	if (!silence || !units_parse_seconds(silence, &k->copier.silence) || k->copier.silence <= 0)
		k->copier.silence = SILENCE_SECONDS;
	memcpy(k->copier.secret, s->secret, sizeof(k->copier.secret));
	snprintf(k->copier.folder, sizeof(k->copier.folder), "%.*s", STORE_FOLDER_MAX - 1,
		 k->store.job_folder);
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
		describe(a);
		status = copier_listen(&k->copier, err);
	}
	if (status != HALE_OK)
		return status;
	for (uint32_t i = 0; i < k->copier.listeners; i++)
		supervisor_hold(&a->supervisor, HOLD_COPIES, i, k->copier.listener[i]);
	memcpy(a->supervisor.book->copies_at, k->copier.address, sizeof(k->copier.address));
	status = start(a, err);
	if (status == HALE_OK)
		tell_where(a);
	return status;
}

void agent_copies_tell(struct agent *a)
{
	struct copies_image *all;
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
}

/* ---- orders that are not answered: in the book ---- */

static bool is_open(const struct book_order *o)
{
	return o->born != 0 && o->dead == 0;
}

static struct book_order *order_find(struct agent *a, const struct copier_order *d)
{
	struct book *b = a->supervisor.book;

	for (uint32_t i = 0; i < b->orders_used; i++) {
		struct book_order *o = &b->orders[i];

		if (is_open(o) && o->order.kind == d->kind && o->order.rank == d->rank &&
		    o->order.id == d->id && o->order.base == d->base)
			return o;
	}
	return NULL;
}

/* In a place whose order was answered in a turn before this one. */
static bool order_add(struct agent *a, const struct copier_order *d)
{
	struct book *b = a->supervisor.book;
	uint32_t i = 0;

	while (i < b->orders_used && (is_open(&b->orders[i]) || b->orders[i].dead > a->done.turns))
		i++;
	if (i == BOOK_ORDERS)
		return false;
	b->orders[i] = (struct book_order){.order = *d, .born = a->done.turns + 1};
	if (i == b->orders_used)
		b->orders_used++;
	return true;
}

static void order_done(struct agent *a, struct book_order *o)
{
	o->dead = a->done.turns + 1;
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

static void take_done(struct agent *a, struct copier_done *d)
{
	struct book_order *o = order_find(a, &d->order);

	if (!o)
		return;
	order_done(a, o);
	d->text[sizeof(d->text) - 1] = '\0';
	report(a, d);
}

/* Somebody has ended it: what it was at comes to nothing. */
static void copier_gone(struct agent *a)
{
	struct book *b = a->supervisor.book;

	log_warn("the process that copies images was ended; copies under way are given up");
	stop(a);
	for (uint32_t i = 0; i < b->orders_used; i++) {
		struct copier_done d = {.order = b->orders[i].order, .status = HALE_ERR_SYSTEM};

		if (!is_open(&b->orders[i]))
			continue;
		order_done(a, &b->orders[i]);
		snprintf(d.text, sizeof(d.text), "the process that copies images was ended");
		report(a, &d);
	}
}

static void answered(void *arg, uint32_t events)
{
	struct agent *a = arg;
	struct copier_done d;
	ssize_t n = packet_recv(a->copies.source.fd, &d, sizeof(d), MSG_DONTWAIT);

	if (n == (ssize_t)sizeof(d))
		take_done(a, &d);
	else if (n >= 0 || errno != EAGAIN)
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
	else if (give(a, &d.order, sizeof(d.order), &err)) {
		if (order_add(a, &d.order))
			return;
		error_set(&err, HALE_ERR_MEMORY, "too many orders at a time");
	}
	d.status = (int32_t)err.code;
	snprintf(d.text, sizeof(d.text), "%s", err.text);
	report(a, &d);
}

/* It has been killed, and the supervisor reaps it; the disk may hold it up. */
static void await_end(pid_t pid)
{
	enum { TRIES = 2000, TRY_US = 1000 };

	for (int i = 0; pid > 0 && i < TRIES && kill(pid, 0) == 0; i++)
		usleep(TRY_US);
}

/* The copier has died with the agent that had started it. What it had been told it is told again:
 * an image that has arrived does not travel twice. */
void agent_copies_again(struct agent *a)
{
	struct agent_copies *k = &a->copies;
	struct book *b = a->supervisor.book;
	struct error err;

	if (!a->setup.local[0])
		return;
	if (open_folder(a, &err) != HALE_OK) {
		log_warn("%s", err.text);
		return;
	}
	await_end(b->copier);
	copier_sweep(k->store.job_folder);
	for (int fd, i = 0; i < COPIES_PLACES_MAX; i++)
		if ((fd = supervisor_claim(&a->supervisor, HOLD_COPIES, (uint64_t)i, NULL)) >= 0)
			k->copier.listener[k->copier.listeners++] = fd;
	memcpy(k->copier.address, b->copies_at, sizeof(k->copier.address));
	describe(a);
	if (start(a, &err) != HALE_OK)
		log_warn("%s", err.text);
	for (uint32_t i = 0; i < b->orders_used; i++) {
		struct book_order *o = &b->orders[i];

		if (o->born > a->done.turns)
			o->born = 0;
		if (o->dead > a->done.turns)
			o->dead = 0;
		if (is_open(o) && !give(a, &o->order, sizeof(o->order), &err))
			log_warn("%s", err.text);
	}
}

/* A disk may take longer than a lease to free images, so the copier does it. */
void agent_copies_discard(struct agent *a, uint32_t id)
{
	struct copier_order sweep = {.type = ORDER_KEEP};
	struct error err;

	if (store_remove(&a->copies.store, id) && !give(a, &sweep, sizeof(sweep), &err))
		log_warn("images of a checkpoint that was given up stay: %s", err.text);
}

static void take_keep(struct agent *a, const struct message *m)
{
	struct copier_order order = {.type = ORDER_KEEP};
	size_t len = m->len < COPIES_KEEP_MAX * sizeof(uint32_t) ? m->len : 0;
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

/* Where the images of a checkpoint are written on this node; and makes it. */
void agent_copies_path(const struct agent *a, uint32_t id, char *folder, size_t cap)
{
	snprintf(folder, cap, "%.*s/%u", STORE_FOLDER_MAX, a->copies.store.job_folder, id);
}

void agent_copies_folder(struct agent *a, uint32_t id, char *folder, size_t cap)
{
	struct error err;

	agent_copies_path(a, id, folder, cap);
	store_remove_folder(folder);
	if (store_make_folders(folder, &err) != HALE_OK) /* the ranks will say that they can't */
		log_info("%s", err.text);
}
