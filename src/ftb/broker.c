/* SPDX-License-Identifier: BSD-3-Clause */
#include "ftb/broker.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>
#include "base/json.h"
#include "ftb/broker_private.h"
#include <libftb.h>

/* ---- life ---- */

static hale_status_t take_options(struct broker *b, const struct broker_options *o,
				  struct error *err)
{
	struct group group, *g = NULL;
	char names[4096];

	if (o->socket && strlen(o->socket) >= sizeof(b->path))
		return error_set(err, HALE_ERR_ARGUMENT,
				 "'%.40s…' is too long for a socket (at most 107 bytes)",
				 o->socket);
	if (o->socket)
		snprintf(b->path, sizeof(b->path), "%s", o->socket);
	else if (!ftb_socket_path(b->path))
		return error_set(err, HALE_ERR_ARGUMENT,
				 "the path of the event socket is too long; set HALE_FTB to a "
				 "shorter one");
	if (o->node && (strlen(o->node) >= sizeof(b->node) ||
			!ftb_text_ok(o->node, strlen(o->node)) || !*o->node))
		return error_set(err, HALE_ERR_ARGUMENT,
				 "a node's name has 1 to 63 printable bytes");
	if (o->node)
		snprintf(b->node, sizeof(b->node), "%s", o->node);
	else if (gethostname(b->node, sizeof(b->node) - 1) != 0)
		snprintf(b->node, sizeof(b->node), "localhost");
	if (o->group) {
		if (getgrnam_r(o->group, &group, names, sizeof(names), &g) != 0 || !g)
			return error_set(err, HALE_ERR_ARGUMENT, "there is no group '%s'",
					 o->group);
		b->has_group = true;
		b->group = g->gr_gid;
	}
	return HALE_OK;
}

static bool add_fd(struct broker *b, int *fd, int made)
{
	struct epoll_event e = {.events = EPOLLIN, .data.ptr = fd};

	*fd = made;
	return made >= 0 && epoll_ctl(b->epoll, EPOLL_CTL_ADD, made, &e) == 0;
}

/* Where the usual limit is 1024 and all clients come. */
static void allow_files(void)
{
	const rlim_t wanted = CLIENTS_MAX + OWN_FDS;
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted)
		return;
	limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static hale_status_t open_all(struct broker *b, const struct broker_options *o, struct error *err)
{
	hale_status_t st = take_options(b, o, err);

	if (st == HALE_OK)
		st = route_init(b, err);
	if (st != HALE_OK)
		return st;
	allow_files();
	b->reserve = open("/dev/null", O_RDONLY | O_CLOEXEC);
	b->packet = malloc(PACKET_MAX);
	ftb_author_init(&b->owner);
	b->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (!b->packet || b->epoll < 0 ||
	    !add_fd(b, &b->timer, timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)) ||
	    !add_fd(b, &b->wake, eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)))
		return error_sys(err, HALE_ERR_SYSTEM, "can't set up the event broker");
	st = client_listen(b, err);
	if (st == HALE_OK && (o->peers || o->carrier))
		st = tree_create(b, o, err);
	return st;
}

hale_status_t broker_create(const struct broker_options *options, struct broker **out,
			    struct error *err)
{
	struct broker *b = calloc(1, sizeof(*b));
	hale_status_t st;

	*out = NULL;
	if (!b)
		return error_set(err, HALE_ERR_MEMORY, "no memory for the event broker");
	b->epoll = b->listener = b->timer = b->wake = b->reserve = -1;
	b->owned_next = 1;
	st = open_all(b, options, err);
	if (st != HALE_OK) {
		broker_destroy(b);
		return st;
	}
	*out = b;
	return HALE_OK;
}

void broker_destroy(struct broker *b)
{
	if (!b)
		return;
	client_close_all(b);
	if (b->tree)
		tree_destroy(b);
	if (b->listener >= 0 && b->path[0] && b->path[0] != '@')
		unlink(b->path);
	for (size_t i = 0; i < 5; i++) {
		int fd = (int[]){b->listener, b->timer, b->wake, b->epoll, b->reserve}[i];

		if (fd >= 0)
			close(fd);
	}
	route_fini(b);
	free(b->owned);
	free(b->packet);
	free(b);
}

int broker_fd(const struct broker *b)
{
	return b->epoll;
}

/* ---- working ---- */

static void swallow(int fd)
{
	uint64_t n;

	while (read(fd, &n, sizeof(n)) < 0 && errno == EINTR)
		;
}

void broker_wake(struct broker *b)
{
	uint64_t one = 1;

	if (write(b->wake, &one, sizeof(one)) < 0)
		log_debug("event broker: the wake counter is full");
}

static void flush_all(struct broker *b)
{
	for (size_t i = 0; i < b->receivers; i++) {
		struct receiver *r = b->receiver[i];

		if (!r->dirty)
			continue;
		if (r->kind == RECEIVER_CLIENT)
			client_flush((struct client *)r);
		else
			tree_flush((struct ftb_link *)r);
	}
	client_reap(b);
}

/* Everything that follows from what was taken: new interest goes out before the events behind it.
 */
static void settle(struct broker *b)
{
	client_reap(b);
	if (b->tree && b->interest_changed)
		tree_tell_interest(b);
	b->interest_changed = false;
	flush_all(b);
}

/* Waits up to so many ms, -1 for ever, and does what there is to do. Whether `end` of
 * broker_serve() is readable. */
static bool turn(struct broker *b, int wait_ms)
{
	struct epoll_event ready[32];
	bool tick = false, end = false;
	int n;

	b->pace.packets = 0;
	b->pace.more = false;
	n = epoll_wait(b->epoll, ready, (int)ARRAY_LEN(ready), wait_ms);

	for (int i = 0; i < n; i++) {
		void *what = ready[i].data.ptr;

		if (what == &b->listener)
			client_accept(b);
		else if (what == &b->timer || what == &b->wake)
			swallow(*(int *)what);
		else if (what == b)
			end = true;
		else if (what) /* NULL: a ZeroMQ socket, see below */
			client_ready(what, ready[i].events);
		tick |= what == &b->timer;
	}
	if (b->tree) {
		tree_pump(b);
		if (tick)
			tree_tick(b);
	}
	settle(b);
	/* ZeroMQ's descriptors tell of changes only, and sending may have used one up. */
	if (b->tree && wire_waiting(b))
		broker_wake(b);
	return end;
}

void broker_dispatch(struct broker *b)
{
	turn(b, 0);
}

static void rest(struct pace *p)
{
	uint64_t now = clock_ns();

	p->on = p->on ? p->packets > 1 : now - p->at[p->next] < PACE_ENTER_NS;
	p->at[p->next] = now;
	p->next = (p->next + 1) % PACE_TURNS;
	if (p->on && !p->more)
		nanosleep(
		    &(struct timespec){.tv_nsec = (p->packets > PACE_MANY ? 2 : 1) * PACE_REST_NS},
		    NULL);
}

bool broker_serve(struct broker *b, int end, struct error *err)
{
	struct epoll_event e = {.events = EPOLLIN, .data.ptr = b};

	if (epoll_ctl(b->epoll, EPOLL_CTL_ADD, end, &e) != 0) {
		error_sys(err, HALE_ERR_SYSTEM, "can't watch a descriptor");
		return false;
	}
	while (!turn(b, -1))
		rest(&b->pace);
	epoll_ctl(b->epoll, EPOLL_CTL_DEL, end, NULL);
	return true;
}

/* ---- the owner's own events ---- */

hale_status_t broker_publish(struct broker *b, const char *space, const char *name, int severity,
			     const char *jobid, const void *payload, size_t length,
			     struct error *err)
{
	uint8_t bytes[EVENT_MAX];
	struct ftb_event e;
	hale_status_t st = ftb_author_event(&b->owner, b->node, space, name, severity, jobid,
					    payload, length, bytes, &e, err);

	if (st != HALE_OK)
		return st;
	route_event(b, NULL, &e, bytes, ftb_event_size(&e));
	broker_wake(b); /* sent at the next dispatch */
	return HALE_OK;
}

hale_status_t broker_subscribe(struct broker *b, const char *filter,
			       void (*callback)(const struct broker_event *event, void *arg),
			       void *arg, unsigned *id, struct error *err)
{
	struct owner_subscription s = {.callback = callback, .arg = arg, .since = clock_seconds()};
	struct owner_subscription *grown;

	if (ftb_filter_parse(filter, &s.filter) != FTB_SUCCESS)
		return error_set(err, HALE_ERR_ARGUMENT, "'%s' is no filter for events", filter);
	grown = realloc(b->owned, (b->owned_count + 1) * sizeof(*grown));
	if (!grown)
		return error_set(err, HALE_ERR_MEMORY, "no memory for a subscription");
	s.id = *id = b->owned_next++;
	b->owned = grown;
	b->owned[b->owned_count++] = s;
	b->generation++;
	b->interest_changed = true;
	broker_wake(b);
	return HALE_OK;
}

void broker_unsubscribe(struct broker *b, unsigned id)
{
	for (size_t i = 0; i < b->owned_count; i++)
		if (b->owned[i].id == id)
			b->owned[i] = b->owned[--b->owned_count];
	b->generation++;
	b->interest_changed = true;
	broker_wake(b);
}

/* ---- statistics ---- */

void broker_stats(const struct broker *b, struct broker_stats *s)
{
	*s = b->stats;
	s->clients = s->subscriptions = 0;
	for (const struct client *c = b->clients; c; c = c->next) {
		s->clients += c->hello; /* who only asks for this is none */
		s->subscriptions += (unsigned)c->r.count;
	}
	s->self = s->parent = -1;
	for (size_t i = 0; i < b->receivers; i++) {
		s->lost_info += b->receiver[i]->q.lost_info;
		s->lost_above += b->receiver[i]->q.lost_above;
	}
	if (b->tree) {
		s->self = b->tree->self;
		s->children = (unsigned)b->tree->children;
		s->parent = b->tree->parent ? b->tree->parent->peer : -1;
	}
}

char *broker_status_json(const struct broker *b)
{
	struct broker_stats s;
	struct json_out j;

	broker_stats(b, &s);
	json_out_init(&j);
	json_open_object(&j, NULL);
	json_string(&j, "node", b->node);
	json_int(&j, "pid", getpid());
	json_string(&j, "parent", s.parent >= 0 ? b->tree->peers[s.parent].name : "");
	json_open_array(&j, "children");
	for (int i = 0; b->tree && i < b->tree->children; i++)
		json_string(&j, NULL, b->tree->peers[b->tree->child[i]->peer].name);
	json_close_array(&j);
	json_uint(&j, "clients", s.clients);
	json_uint(&j, "subscriptions", s.subscriptions);
	json_uint(&j, "events", s.events);
	json_uint(&j, "delivered", s.delivered);
	json_uint(&j, "forwarded", s.forwarded);
	json_uint(&j, "received", s.received);
	json_uint(&j, "duplicates", s.duplicates);
	json_uint(&j, "lost_info", s.lost_info);
	json_uint(&j, "lost_above", s.lost_above);
	json_uint(&j, "refused_users", s.refused_users);
	json_uint(&j, "refused_keys", s.refused_keys);
	json_uint(&j, "malformed", s.malformed);
	json_uint(&j, "heals", s.heals);
	json_close_object(&j);
	return j.text;
}
