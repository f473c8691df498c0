/* SPDX-License-Identifier: BSD-3-Clause */
/* Monitors in an event loop: readers are started, listened to, and started again.
 *
 *   reader       ready ── lines ─▶ ready         "! sentence" ─▶ lost      lines ─▶ back
 *   ended        ── after 1 s, 2 s, … 60 s ─▶ started again; lost meanwhile
 *
 * MONITOR_LOST and MONITOR_BACK are said once for each change, so that nobody takes silence for
 * health. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/address.h"
#include "base/base.h"
#include "monitor/kind.h"

struct monitor {
	struct monitor_set *set;
	struct monitor *next;
	struct monitor_options options;
	struct judge judge;
	char node[MONITOR_NODE_MAX];
	int pid, fd;  /* of the reader; 0, -1 while there is none */
	double again; /* clock_seconds() at which to start it; 0 while it runs */
	int failures; /* starts in a row that gave no reading */
	bool ready, lost, over, complained;
	bool unread; /* the reading that is coming says only why there is none */
	size_t len;
	char text[MONITOR_LINE_MAX * 4];
};

struct monitor_set {
	int epoll, timer;
	monitor_publish_fn *publish;
	void *arg;
	struct monitor *first;
};

/* ---- readers ---- */

static _Noreturn void reader_main(struct monitor *m, int fd, pid_t owner)
{
	static struct reader r;
	/* terminals and batch systems send these to all processes at once, for the owner to act
	 * upon; a reader that ended first would be reported as a lost sensor */
	static const int for_owner[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
	sigset_t none;

	sigemptyset(&none);
	for (int s = 1; s < NSIG; s++)
		signal(s, SIG_DFL);
	for (size_t i = 0; i < ARRAY_LEN(for_owner); i++)
		signal(for_owner[i], SIG_IGN);
	sigprocmask(SIG_SETMASK, &none, NULL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != owner)
		_exit(0);
	prctl(PR_SET_NAME, "hale-monitor");
	prctl(PR_SET_TIMERSLACK, 50000000ul); /* a wake-up more or less exact costs less */
	/* 0 to 2 stay what they are; the pipe becomes 3; the owner's descriptors go */
	if (dup2(fd, 3) < 0 || fcntl(3, F_SETFD, FD_CLOEXEC) != 0)
		_exit(1);
	close_range(4, ~0u, 0);
	r = (struct reader){.options = &m->options, .fd = 3};
	r.every = m->options.every > 0 ? m->options.every : m->judge.kind->every;
	if (m->options.file && m->options.every <= 0)
		r.every = 0.5;
	if (m->options.file)
		monitor_file_read(&r);
	else
		m->judge.kind->read(&r);
	_exit(0);
}

static hale_status_t reader_start(struct monitor *m, struct error *err)
{
	pid_t owner = getpid(), pid;
	struct epoll_event e = {.events = EPOLLIN, .data.ptr = m};
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) != 0)
		return error_sys(err, HALE_ERR_SYSTEM, "can't make a pipe for a monitor");
	pid = fork();
	if (pid == 0)
		reader_main(m, fds[1], owner);
	close(fds[1]);
	if (pid < 0) {
		close(fds[0]);
		return error_sys(err, HALE_ERR_SYSTEM, "can't start a process for a monitor");
	}
	fcntl(fds[0], F_SETFL, O_NONBLOCK);
	epoll_ctl(m->set->epoll, EPOLL_CTL_ADD, fds[0], &e);
	m->pid = pid;
	m->fd = fds[0];
	m->again = 0;
	m->len = 0;
	return HALE_OK;
}

static void reader_stop(struct monitor *m)
{
	if (m->fd >= 0)
		close(m->fd);
	if (m->pid > 0) {
		kill(m->pid, SIGKILL);
		while (waitpid(m->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	m->fd = -1;
	m->pid = 0;
}

/* The set's one timer: the soonest restart. */
static void timer_update(struct monitor_set *set)
{
	struct itimerspec when = {0};
	double soonest = 0;

	for (struct monitor *m = set->first; m; m = m->next)
		if (m->again > 0 && (soonest <= 0 || m->again < soonest))
			soonest = m->again;
	when.it_value.tv_sec = (time_t)soonest;
	when.it_value.tv_nsec = (long)((soonest - (double)when.it_value.tv_sec) * 1e9);
	timerfd_settime(set->timer, TFD_TIMER_ABSTIME, &when, NULL);
}

/* ---- what readers say ---- */

static void publish_about(struct monitor *m, const char *name, monitor_severity_t severity,
			  const char *sentence)
{
	static const struct monitor_kind about = {.space = "FTB.MONITOR"};
	struct judge j = m->judge;
	char node[ADDRESS_MAX];

	j.kind = &about;
	judge_publish(&j, name, severity, "NODE:%s::MONITOR:%s%s%s",
		      address_whole(node, m->node, strlen(m->node)), m->judge.kind->name,
		      *sentence ? "::REASON:" : "", sentence);
}

static void lost(struct monitor *m, const char *sentence)
{
	m->ready = true;
	if (m->lost)
		return;
	m->lost = true;
	log_info("monitor %s of %s: %s", m->judge.kind->name, m->node, sentence);
	publish_about(m, "MONITOR_LOST", MONITOR_WARNING, sentence);
}

static void reading_ends(struct monitor *m)
{
	m->failures = 0;
	m->ready = true;
	if (m->lost) {
		m->lost = false;
		publish_about(m, "MONITOR_BACK", MONITOR_INFO, "");
	}
	m->judge.kind->end(&m->judge);
}

static void take_line(struct monitor *m, char *line)
{
	struct error err = {0};

	if (!*line) {
		if (!m->unread)
			reading_ends(m);
		m->unread = false;
		return;
	}
	if (*line == '!') {
		m->unread = true;
		lost(m, line_rest(line + 1));
		return;
	}
	if (m->options.file && !strcmp(line, "end")) {
		m->over = true;
		return;
	}
	m->judge.now = clock_seconds();
	if (m->judge.kind->line(&m->judge, line, &err) == HALE_OK || m->complained)
		return;
	m->complained = true; /* once: a sensor says it again and again */
	log_warn("monitor %s of %s: %s%s%s", m->judge.kind->name, m->node,
		 m->options.file ? m->options.file : "", m->options.file ? ": " : "", err.text);
}

static void take_lines(struct monitor *m)
{
	char *at = m->text, *end;

	while ((end = memchr(at, '\n', m->len - (size_t)(at - m->text)))) {
		*end = 0;
		take_line(m, at);
		at = end + 1;
	}
	m->len -= (size_t)(at - m->text);
	memmove(m->text, at, m->len);
	if (m->len == sizeof(m->text))
		m->len = 0; /* no reader of ours writes such a line */
}

static void reader_ended(struct monitor *m)
{
	double wait = (double)(1u << (m->failures < 6 ? m->failures : 6));

	reader_stop(m);
	if (m->over)
		return;
	lost(m, "its reader has ended");
	m->failures++;
	m->again = clock_seconds() + (wait > 60 ? 60 : wait);
}

static void listen_to(struct monitor *m)
{
	for (int i = 0; i < 16 && m->fd >= 0; i++) { /* others have their turn too */
		ssize_t n = read(m->fd, m->text + m->len, sizeof(m->text) - m->len);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n <= 0) {
			reader_ended(m);
			return;
		}
		m->len += (size_t)n;
		take_lines(m);
	}
}

void monitor_set_work(struct monitor_set *set)
{
	struct epoll_event events[16];
	int n = epoll_wait(set->epoll, events, 16, 0);
	uint64_t ticks;

	for (int i = 0; i < n; i++) {
		if (events[i].data.ptr)
			listen_to(events[i].data.ptr);
		else if (read(set->timer, &ticks, sizeof(ticks)) < 0)
			continue; /* somebody was faster: nothing is lost */
	}
	for (struct monitor *m = set->first; m; m = m->next)
		if (m->again > 0 && m->again <= clock_seconds() + 1e-3 &&
		    reader_start(m, NULL) != HALE_OK)
			m->again = clock_seconds() + 60;
	if (n > 0)
		timer_update(set);
}

/* ---- the set ---- */

hale_status_t monitor_set_create(monitor_publish_fn *publish, void *arg, struct monitor_set **set,
				 struct error *err)
{
	struct epoll_event e = {.events = EPOLLIN};
	struct monitor_set *s = calloc(1, sizeof(*s));

	*set = NULL;
	if (!s)
		return error_set(err, HALE_ERR_MEMORY, "out of memory");
	s->publish = publish;
	s->arg = arg;
	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	s->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (s->epoll < 0 || s->timer < 0 || epoll_ctl(s->epoll, EPOLL_CTL_ADD, s->timer, &e) != 0) {
		error_sys(err, HALE_ERR_SYSTEM, "can't make an event loop for monitors");
		monitor_set_destroy(s);
		return HALE_ERR_SYSTEM;
	}
	*set = s;
	return HALE_OK;
}

static void monitor_destroy(struct monitor *m)
{
	reader_stop(m);
	if (m->judge.kind->fini)
		m->judge.kind->fini(&m->judge);
	free(m->judge.state);
	free(m);
}

void monitor_set_destroy(struct monitor_set *set)
{
	if (!set)
		return;
	while (set->first) {
		struct monitor *m = set->first;
		set->first = m->next;
		monitor_destroy(m);
	}
	if (set->epoll >= 0)
		close(set->epoll);
	if (set->timer >= 0)
		close(set->timer);
	free(set);
}

hale_status_t monitor_set_add(struct monitor_set *set, const char *kind,
			      const struct monitor_options *options, struct error *err)
{
	const struct monitor_kind *k = monitor_kind_find(kind);
	struct monitor **last = &set->first, *m;

	if (!k)
		return error_set(err, HALE_ERR_ARGUMENT,
				 "'%s' is no monitor; there are ipmi, ib, memory and load", kind);
	m = calloc(1, sizeof(*m));
	if (m)
		m->judge.state = calloc(1, k->state_size);
	if (!m || !m->judge.state) {
		free(m);
		return error_set(err, HALE_ERR_MEMORY, "out of memory");
	}
	m->set = set;
	m->fd = -1;
	m->options = *options;
	if (options->node)
		snprintf(m->node, sizeof(m->node), "%s", options->node);
	else if (gethostname(m->node, sizeof(m->node) - 1) != 0)
		snprintf(m->node, sizeof(m->node), "localhost");
	m->judge.kind = k;
	m->judge.options = &m->options;
	m->judge.node = m->node;
	m->judge.publish = set->publish;
	m->judge.publish_arg = set->arg;
	if (reader_start(m, err) != HALE_OK) {
		monitor_destroy(m);
		return HALE_ERR_SYSTEM;
	}
	while (*last)
		last = &(*last)->next;
	*last = m;
	return HALE_OK;
}

int monitor_set_fd(const struct monitor_set *set)
{
	return set->epoll;
}

bool monitor_set_ready(const struct monitor_set *set)
{
	for (const struct monitor *m = set->first; m; m = m->next)
		if (!m->ready)
			return false;
	return true;
}

bool monitor_set_over(const struct monitor_set *set)
{
	for (const struct monitor *m = set->first; m; m = m->next)
		if (!m->over)
			return false;
	return set->first != NULL;
}

int monitor_set_reader(const struct monitor_set *set, int i)
{
	for (const struct monitor *m = set->first; m; m = m->next)
		if (i-- == 0)
			return m->pid;
	return -1;
}

hale_status_t monitor_read(const char *kind, const struct monitor_options *options, int fd,
			   bool once, struct error *err)
{
	static struct reader r;
	const struct monitor_kind *k = monitor_kind_find(kind);

	if (!k)
		return error_set(err, HALE_ERR_ARGUMENT, "'%s' is no monitor", kind);
	r = (struct reader){.options = options, .fd = fd, .once = once};
	r.every = options->every > 0 ? options->every : k->every;
	if (options->file)
		monitor_file_read(&r);
	else
		k->read(&r);
	return HALE_OK;
}
