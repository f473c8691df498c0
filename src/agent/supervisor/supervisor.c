/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/supervisor/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "base/base.h"
#include "agent/supervisor/supervisor_private.h"
#include "launch/launch.h"
#include "wire/lease/lease.h"
#include "wire/session/peer.h"

enum { LOOK_MS = 200, UNHEARD_MAX = 65536, LEASE_PARTS = 4 };

/* Agents that die one after the other die of something that the next one would die of, too. */
#define DEATHS_NS 10000000000ull
/* … which more patience may help against. */
#define RECENT_NS   2000000000ull
#define AGAIN_NS    100000000ull
#define PATIENCE_NS 5000000000ull

void supervisor_how(int status, char *text, size_t cap)
{
	if (WIFSIGNALED(status))
		snprintf(text, cap, "signal %d (%s)", WTERMSIG(status),
			 strsignal(WTERMSIG(status)));
	else
		snprintf(text, cap, "status %d", WEXITSTATUS(status));
}

/* ---- what is held ---- */

struct supervisor_held *ward_find(struct ward *w, enum supervisor_kind kind, uint64_t key)
{
	for (size_t i = 0; i < w->count; i++)
		if (w->held[i].kind == kind && w->held[i].key == key)
			return &w->held[i];
	return NULL;
}

void ward_drop(struct ward *w, enum supervisor_kind kind, uint64_t key)
{
	struct supervisor_held *h = ward_find(w, kind, key);

	if (!h)
		return;
	close(h->fd);
	*h = w->held[--w->count];
}

/* Takes the descriptor over. Without memory there is no successor. */
void ward_hold(struct ward *w, enum supervisor_kind kind, uint64_t key, int fd, pid_t peer)
{
	ward_drop(w, kind, key);
	if (w->count == w->cap) {
		size_t cap = w->cap ? 2 * w->cap : 64;
		struct supervisor_held *more = realloc(w->held, cap * sizeof(*more));

		if (!more) {
			atomic_store(&w->book->adopt, 0);
			close(fd);
			return;
		}
		w->held = more;
		w->cap = cap;
	}
	w->held[w->count++] =
	    (struct supervisor_held){.kind = kind, .key = key, .fd = fd, .peer = peer};
}

/* ---- the lease ---- */

void ward_look_at_lease(void *ward)
{
	const struct ward *w = ward;
	uint64_t deadline = atomic_load(&w->book->deadline_ns);

	if (!atomic_load(&w->book->leased) || deadline == 0 || deadline > lease_clock() ||
	    atomic_exchange(&w->book->over, 1))
		return;
	supervisor_kill_all(w->book);
}

/* ---- children ---- */

static void child_ended(struct ward *w, pid_t pid, int status)
{
	uint32_t count = atomic_load(&w->book->count);

	for (uint32_t r = 0; r < count; r++) {
		struct book_child *c = &w->book->child[r];

		if (atomic_load(&c->pid) != pid || atomic_load(&c->ended))
			continue;
		c->status = status;
		atomic_store(&c->ended, 1);
		ward_say(w->control, &(struct ward_packet){.type = WARD_ENDED}, NULL, 0,
			 MSG_DONTWAIT);
		return;
	}
}

/* Others than ranks and the agent are what those have left behind: writers of images, copiers. */
static void reap(struct ward *w)
{
	pid_t pid;
	int status;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (w->agent > 0 && pid == w->agent) {
			w->agent_gone = true;
			w->ended = status;
		} else if (w->watchdog > 0 && pid == w->watchdog) {
			w->watchdog = 0;
		} else if (ward_stand_ended(w, pid)) {
			ward_say(w->control, &(struct ward_packet){.type = WARD_ENDED}, NULL, 0,
				 MSG_DONTWAIT);
		} else {
			child_ended(w, pid, status);
		}
	}
}

/* ---- the agent ---- */

static void take_hold(struct ward *w, const struct ward_packet *p, int fd)
{
	ward_hold(w, (enum supervisor_kind)p->kind, p->key, fd, 0);
	if (p->kind == HOLD_RANKS)
		w->listener = fd;
}

/* False: there is nothing more, or nobody. */
static bool hear(struct ward *w)
{
	struct ward_packet p;
	int fd[WARD_FDS], fds, said;

	said = w->control >= 0 ? ward_hear(w->control, &p, fd, &fds, MSG_DONTWAIT) : 0;
	if (said < 0) {
		close(w->control);
		w->control = -1;
	}
	if (said <= 0)
		return false;
	if (p.type == WARD_HOLD && fds == 1) {
		take_hold(w, &p, fd[0]);
		return true;
	}
	for (int i = 0; i < fds; i++)
		close(fd[i]);
	if (p.type == WARD_DROP) {
		ward_drop(w, (enum supervisor_kind)p.kind, p.key);
	} else if (p.type == WARD_SPAWN) {
		ward_take_spawn(w);
	} else if (p.type == WARD_STAND && p.value != 0) {
		ward_take_stand(w);
	} else if (p.type == WARD_STAND) {
		ward_stand_end(w);
	} else if (p.type == WARD_DONE) {
		w->done = true;
		w->exit_status = (int)p.value;
	}
	return true;
}

static void accept_one(struct ward *w)
{
	struct ward_packet p = {.type = WARD_CONN};
	pid_t peer;
	int fd = accept4(w->listener, NULL, NULL, SOCK_CLOEXEC);

	if (fd < 0)
		return;
	if (!peer_is_own(fd, &peer)) {
		close(fd);
		return;
	}
	p.key = ++w->conns;
	p.value = peer;
	ward_hold(w, HOLD_CONN, p.key, fd, peer);
	ward_say(w->control, &p, &fd, 1, MSG_DONTWAIT);
}

/* An agent that is stopped hears nothing: what it could not be told is not begun, and there is
 * always room for an answer. */
static bool listens(const struct ward *w)
{
	int unheard = 0;

	return w->listener >= 0 && w->control >= 0 && !w->agent_gone &&
	       ioctl(w->control, SIOCOUTQ, &unheard) == 0 && unheard < UNHEARD_MAX;
}

/* The agent is a copy of the supervisor, with nothing of it but what it is given. */
static _Noreturn void be_agent(struct ward *w, int control, bool successor)
{
	struct supervisor g = {.book = w->book,
			       .control = control,
			       .successor = successor,
			       .ended = w->ended,
			       .held = w->held,
			       .count = w->count};
	sigset_t none;

	close(w->signals);
	for (size_t i = 0; i < w->sink_count; i++)
		close(w->sinks[i].fd);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	prctl(PR_SET_NAME, "hale-agent");
	_exit(w->run(&g));
}

static bool start_agent(struct ward *w, bool successor)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
		return false;
	w->agent = fork();
	if (w->agent == 0) {
		close(ends[0]);
		be_agent(w, ends[1], successor);
	}
	close(ends[1]);
	if (w->agent < 0) {
		w->agent = 0;
		close(ends[0]);
		return false;
	}
	w->control = ends[0];
	w->agent_gone = false;
	w->begin_at = 0;
	return true;
}

/* NULL: it may have a successor. */
static const char *why_none(const struct ward *w, char *text, size_t cap)
{
	uint64_t before = w->deaths[DEATHS_MAX - 1];
	char how[64];

	supervisor_how(w->ended, how, sizeof(how));
	if (atomic_load(&w->book->over))
		snprintf(text, cap, "its lease has run out while it had no agent");
	else if (w->ending)
		snprintf(text, cap, "its supervisor was told to end by signal %d (%s)", w->ending,
			 strsignal(w->ending));
	else if (!atomic_load(&w->book->adopt))
		snprintf(text, cap, "its agent was ended by %s", how);
	else if (before && lease_clock() - before < DEATHS_NS)
		snprintf(text, cap,
			 "its agent was ended by %s, and so were the %d before it within %d s", how,
			 DEATHS_MAX, (int)(DEATHS_NS / 1000000000));
	else
		return NULL;
	return text;
}

/* All ranks end; and whoever is the head hears why. */
static void end_node(struct ward *w, const char *why)
{
	struct supervisor g = {.book = w->book, .control = -1, .held = w->held, .count = w->count};

	atomic_store(&w->book->over, 1);
	while (!supervisor_kill_all(w->book))
		;
	w->exit_status = 1;
	if (!w->bye || !w->bye(&g, why))
		log_warn("%s: the ranks of this node are ended", why);
}

/* The first one at once; whatever has killed several in a row may pass. Only an agent renews the
 * node's lease: it comes while most of that is left. */
static uint64_t pause_ns(const struct ward *w, uint64_t now)
{
	static const uint64_t pauses[DEATHS_MAX] = {0, 100000000, 1000000000};
	uint64_t deadline = atomic_load(&w->book->leased) ? atomic_load(&w->book->deadline_ns) : 0;
	int before = 0;

	while (before < DEATHS_MAX - 1 && w->deaths[before] &&
	       now - w->deaths[before] < RECENT_NS * (uint64_t)(before + 1))
		before++;
	if (deadline > now && pauses[before] > (deadline - now) / LEASE_PARTS)
		return (deadline - now) / LEASE_PARTS;
	return pauses[before];
}

/* True: another one goes on, or will. */
static bool agent_died(struct ward *w)
{
	uint64_t now = lease_clock();
	char why[160];

	while (hear(w))
		;
	if (w->control >= 0)
		close(w->control);
	w->control = -1;
	w->agent = 0;
	w->agent_gone = false;
	if (w->done)
		return false;
	if (why_none(w, why, sizeof(why))) {
		end_node(w, why);
		return false;
	}
	w->begin_at = now + pause_ns(w, now);
	memmove(w->deaths + 1, w->deaths, (DEATHS_MAX - 1) * sizeof(w->deaths[0]));
	w->deaths[0] = now;
	return true;
}

/* What kills agents for want of memory doesn't let one be made, either, for a while. */
static bool begin_again(struct ward *w)
{
	uint64_t now = lease_clock();
	char why[160] = "";

	if (w->begin_at > now && !w->ending && !atomic_load(&w->book->over))
		return true;
	if (w->ending || atomic_load(&w->book->over)) {
		why_none(w, why, sizeof(why));
	} else if (start_agent(w, true)) {
		return true;
	} else if (now - w->deaths[0] < PATIENCE_NS) {
		w->begin_at = now + AGAIN_NS;
		return true;
	} else {
		snprintf(why, sizeof(why),
			 "its agent has died, and another one can't be started: %s",
			 strerror(errno));
	}
	end_node(w, why);
	return false;
}

/* Deadlines move away only, so looking too early does no harm. */
static int milliseconds_left(const struct ward *w)
{
	struct book *b = w->book;
	uint64_t deadline = atomic_load(&b->deadline_ns), now = lease_clock(), left;

	if (w->begin_at) {
		left = w->begin_at <= now ? 0 : (w->begin_at - now) / 1000000 + 1;
		return left < LOOK_MS ? (int)left : LOOK_MS;
	}
	if (!atomic_load(&b->leased))
		return w->listener >= 0 && !listens(w) ? LOOK_MS : -1;
	if (deadline == 0 || atomic_load(&b->over))
		return LOOK_MS;
	left = deadline <= now ? 0 : (deadline - now) / 1000000 + 1;
	return left < LOOK_MS ? (int)left : LOOK_MS;
}

/* ---- life ---- */

/* Somebody wants the node to end: its agent, and then it gets no successor. */
static void take_signals(struct ward *w)
{
	int end = ward_signals_take(w);

	if (end)
		w->ending = end;
	if (end && w->agent > 0 && !w->agent_gone)
		kill(w->agent, end);
	reap(w);
}

static bool start(struct ward *w)
{
	signal(SIGCHLD, SIG_DFL);
	w->signals = ward_signals_open();
	prctl(PR_SET_NAME, SUPERVISOR_NAME);
	/* what ranks leave behind, and what an agent does, comes to us */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	ward_appoint(w);
	return w->signals >= 0 && start_agent(w, false);
}

static void guard(struct ward *w)
{
	for (;;) {
		struct pollfd p[3] = {{.fd = w->signals, .events = POLLIN},
				      {.fd = w->control, .events = POLLIN},
				      {.fd = listens(w) ? w->listener : -1, .events = POLLIN}};

		poll(p, 3, milliseconds_left(w));
		ward_look_at_lease(w);
		take_signals(w);
		if (w->agent_gone && !agent_died(w))
			return;
		if (w->begin_at && !begin_again(w))
			return;
		if (p[1].revents)
			hear(w);
		if (p[2].revents)
			accept_one(w);
	}
}

int supervisor_run(int in_fd, int out_fd, int (*agent)(struct supervisor *g),
		   bool (*bye)(struct supervisor *g, const char *why))
{
	struct ward w = {
	    .control = -1, .listener = -1, .is_child = in_fd == out_fd, .run = agent, .bye = bye};
	struct error err;

	w.book = book_create(&err);
	if (!w.book) {
		log_warn("%s", err.text);
		return 1;
	}
	atomic_store(&w.book->supervisor, getpid());
	fcntl(in_fd, F_SETFD, FD_CLOEXEC);
	fcntl(out_fd, F_SETFD, FD_CLOEXEC);
	ward_hold(&w, HOLD_LINK_IN, 0, in_fd, 0);
	ward_hold(&w, HOLD_LINK_OUT, 0, out_fd == in_fd ? fcntl(in_fd, F_DUPFD_CLOEXEC, 3) : out_fd,
		  0);
	if (start(&w))
		guard(&w);
	else
		log_warn("cannot start the agent of a node: %m");
	ward_dismiss(&w);
	ward_stand_finish(&w); /* no other child is left */
	free(w.held);
	return w.exit_status;
}
