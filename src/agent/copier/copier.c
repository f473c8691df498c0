/* SPDX-License-Identifier: BSD-3-Clause */
/* The copier's own process: takes orders and callers, and has a child for each. */
#include "agent/copier/copier.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/base.h"
#include "base/packets.h"

/* Copies are nothing that a rank should wait for; fetching is. */
enum { COPIES_AT_ONCE = 2, FETCHES_AT_ONCE = 8, CALLERS_AT_ONCE = 32, NICE = 10 };

/* For all of the handshake: each piece of it has a limit, too, but a stranger may send many. */
enum { STRANGER_SECONDS = 10 };

struct task {
	struct copier_order order;
	uint32_t *ids; /* of ORDER_KEEP */
	pid_t pid;     /* 0: waits */
	struct task *next;
};

struct caller {
	pid_t pid; /* 0: a free place */
	uint64_t number;
};

struct state {
	const struct copier *c;
	struct task *tasks; /* in order */
	struct caller callers[CALLERS_AT_ONCE];
	uint64_t called;
	atomic_bool *known; /* [CALLERS_AT_ONCE], shared with who serves them: it is of this job */
	int signals;
};

static void tell(const struct copier *c, const struct copier_done *done)
{
	ssize_t n;

	do {
		n = send(c->agent, done, sizeof(*done), MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
}

/* ---- children ---- */

static bool is_fetch(const struct task *t)
{
	return t->order.type == ORDER_COPY && t->order.kind == COPY_FETCH;
}

static _Noreturn void be_worker(const struct copier *c, const struct task *t)
{
	struct copier_done done = {.order = t->order};

	if (!is_fetch(t) && nice(NICE) < 0)
		errno = 0;
	if (t->order.type == ORDER_KEEP) {
		copier_keep(c, t->ids, t->order.bytes);
	} else {
		copier_work(c, &t->order, &done);
		tell(c, &done);
	}
	_exit(0);
}

static _Noreturn void be_host(const struct copier *c, int fd, atomic_bool *known)
{
	struct copier_link l = {.fd = fd};

	if (nice(NICE) < 0)
		errno = 0;
	alarm(STRANGER_SECONDS);
	if (copier_answer(c, &l)) {
		alarm(0);
		atomic_store(known, true);
		copier_serve(c, &l);
	}
	_exit(0);
}

/* 0 in the child, which ends when we do. */
static pid_t fork_child(const struct state *s)
{
	pid_t parent = getpid(), pid = fork();
	sigset_t none;

	if (pid != 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	close(s->signals);
	for (uint32_t i = 0; i < s->c->listeners; i++)
		close(s->c->listener[i]);
	return 0;
}

static void failed(const struct state *s, const struct task *t, const char *why)
{
	struct copier_done done = {.order = t->order, .status = HALE_ERR_SYSTEM};

	if (t->order.type != ORDER_COPY)
		return;
	snprintf(done.text, sizeof(done.text), "%s", why);
	tell(s->c, &done);
}

static void drop(struct state *s, struct task *t)
{
	struct task **at = &s->tasks;

	while (*at != t)
		at = &(*at)->next;
	*at = t->next;
	free(t->ids);
	free(t);
}

static void start(struct state *s)
{
	uint32_t copies = 0, fetches = 0;

	for (struct task *t = s->tasks; t; t = t->next) {
		copies += t->pid > 0 && !is_fetch(t);
		fetches += t->pid > 0 && is_fetch(t);
	}
	for (struct task *t = s->tasks, *next; t; t = next) {
		next = t->next;
		if (t->pid > 0 ||
		    (is_fetch(t) ? fetches >= FETCHES_AT_ONCE : copies >= COPIES_AT_ONCE))
			continue;
		t->pid = fork_child(s);
		if (t->pid == 0)
			be_worker(s->c, t);
		if (t->pid < 0) {
			failed(s, t, "cannot start a process that copies it");
			drop(s, t);
			continue;
		}
		copies += !is_fetch(t);
		fetches += is_fetch(t);
	}
}

static void reap(struct state *s)
{
	struct signalfd_siginfo info;
	pid_t pid;
	int status;

	while (read(s->signals, &info, sizeof(info)) > 0)
		;
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		for (struct task *t = s->tasks; t; t = t->next) {
			if (t->pid != pid)
				continue;
			if (status != 0)
				failed(s, t, "the process that copied it was ended");
			drop(s, t);
			break;
		}
		for (int i = 0; i < CALLERS_AT_ONCE; i++)
			if (s->callers[i].pid == pid)
				s->callers[i].pid = 0;
	}
	start(s);
}

/* ---- orders and callers ---- */

static bool take_order(struct state *s)
{
	static union {
		struct copier_order order;
		char room[sizeof(struct copier_order) + COPIES_KEEP_MAX * sizeof(uint32_t)];
	} packet;
	ssize_t n = packet_recv(s->c->agent, &packet, sizeof(packet), 0);
	size_t more = n > 0 ? (size_t)n - sizeof(packet.order) : 0;
	struct task *t, **end = &s->tasks;

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return true;
	if (n < (ssize_t)sizeof(packet.order)) /* the agent is gone */
		return false;
	t = calloc(1, sizeof(*t));
	if (!t)
		return false;
	t->order = packet.order;
	if (t->order.type == ORDER_KEEP) {
		t->order.bytes = more / sizeof(*t->ids);
		t->ids = malloc(more + 1);
		if (t->ids)
			memcpy(t->ids, packet.room + sizeof(packet.order), more);
		else
			t->order.bytes = 0;
	}
	while (*end)
		end = &(*end)->next;
	*end = t;
	start(s);
	return true;
}

/* A place among the callers, or -1. If there is none, that of the one who has been connected
 * longest without showing that he is of this job: strangers that hold connections open keep nobody
 * out. */
static int place_for_caller(struct state *s)
{
	int oldest = -1;

	for (int i = 0; i < CALLERS_AT_ONCE; i++) {
		if (s->callers[i].pid == 0)
			return i;
		if (!atomic_load(&s->known[i]) &&
		    (oldest < 0 || s->callers[i].number < s->callers[oldest].number))
			oldest = i;
	}
	if (oldest >= 0) {
		kill(s->callers[oldest].pid, SIGKILL);
		while (waitpid(s->callers[oldest].pid, NULL, 0) < 0 && errno == EINTR)
			;
		s->callers[oldest].pid = 0;
	}
	return oldest;
}

static void take_caller(struct state *s, int listener)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC), i;
	pid_t pid;

	if (fd < 0)
		return;
	i = place_for_caller(s);
	if (i >= 0) {
		atomic_store(&s->known[i], false);
		pid = fork_child(s);
		if (pid == 0)
			be_host(s->c, fd, &s->known[i]);
		s->callers[i] = (struct caller){pid > 0 ? pid : 0, ++s->called};
	}
	close(fd); /* one too many calls again */
}

void copier_run(const struct copier *c)
{
	struct state s = {.c = c};
	struct pollfd p[2 + COPIES_PLACES_MAX];
	const size_t bytes = CALLERS_AT_ONCE * sizeof(*s.known);
	sigset_t set;

	prctl(PR_SET_NAME, "hale-copier");
	signal(SIGPIPE, SIG_IGN);
	signal(SIGCHLD, SIG_DFL);
	signal(SIGALRM, SIG_DFL);
	s.known = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (s.known == MAP_FAILED)
		_exit(1);
	sigfillset(&set);
	sigprocmask(SIG_SETMASK, &set, NULL);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	s.signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	p[0] = (struct pollfd){.fd = c->agent, .events = POLLIN};
	p[1] = (struct pollfd){.fd = s.signals, .events = POLLIN};
	for (uint32_t i = 0; i < c->listeners; i++)
		p[2 + i] = (struct pollfd){.fd = c->listener[i], .events = POLLIN};
	while (s.signals >= 0) {
		if (poll(p, 2 + c->listeners, -1) < 0 && errno != EINTR)
			break;
		if (p[0].revents && !take_order(&s))
			break;
		if (p[1].revents)
			reap(&s);
		for (uint32_t i = 0; i < c->listeners; i++)
			if (p[2 + i].revents)
				take_caller(&s, c->listener[i]);
	}
	_exit(0);
}
