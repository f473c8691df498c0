/* SPDX-License-Identifier: BSD-3-Clause */
#include "head/output/output_daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/base.h"
#include "base/json.h"
#include "base/packets.h"
#include "control/control.h"
#include "wire/session/loop.h"
#include "head/output/output_writer.h"
#include "report/report.h"
#include "head/failover/succession.h"
#include "wire/session/peer.h"

enum { FIRST_FD = 3, REQUEST_MAX = 256, LAST = -1, EXIT_LOST = 2 };
#define BIND_AGAIN_SECONDS 0.02
#define AFTER_SECONDS	   0.3

struct output_daemon_packet {
	uint64_t position;
	uint32_t rank;
	int32_t bytes; /* LAST: no more comes on this stream */
	char at[OUTPUT_DAEMON_PIECE];
};

#define PACKET_HEAD offsetof(struct output_daemon_packet, at)

/* The process itself. */
struct keep {
	struct output_daemon_config config;
	struct loop loop;
	struct loop_source from[2], head, asked, listed;
	struct output_writer to[2];
	bool over[2];	  /* no more comes */
	bool finished[2]; /* and the head has said so */
	bool headless;
	bool cut;      /* another head has asked: nothing more is taken from this one */
	bool released; /* and has an output daemon of its own */
	uint64_t (*printed)[2];
	struct loop_timer bind_again, grace;
};

/* ---- the head's side ---- */

int output_daemon_send(struct output_daemon *k, int which, uint32_t rank, uint64_t position,
		       const void *bytes, size_t len)
{
	struct output_daemon_packet p;
	ssize_t n;
	char word;

	if (k->out[which - 1] < 0)
		return OUTPUT_DAEMON_GONE;
	if (recv(k->out[which - 1], &word, 1, MSG_DONTWAIT) == 1)
		return OUTPUT_DAEMON_UNREAD;
	p.position = position;
	p.rank = rank;
	p.bytes = (int32_t)len;
	memcpy(p.at, bytes, len);
	do
		n = send(k->out[which - 1], &p, PACKET_HEAD + len, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	if (n >= 0)
		return 1;
	return errno == EAGAIN || errno == ENOBUFS ? 0 : OUTPUT_DAEMON_GONE;
}

void output_daemon_leave(struct output_daemon *k)
{
	for (int i = 0; i < 2; i++) {
		if (k->out[i] >= 0)
			close(k->out[i]);
		k->out[i] = -1;
	}
	k->pid = 0;
}

bool output_daemon_end(struct output_daemon *k)
{
	struct output_daemon_packet p = {.bytes = LAST};
	int status = 0;

	if (k->pid == 0)
		return true;
	for (int i = 0; i < 2; i++)
		if (k->out[i] >= 0)
			send(k->out[i], &p, PACKET_HEAD, MSG_NOSIGNAL);
	while (waitpid(k->pid, &status, 0) < 0 && errno == EINTR)
		;
	output_daemon_leave(k);
	return !WIFEXITED(status) || WEXITSTATUS(status) != EXIT_LOST;
}

/* ---- output ---- */

static bool is_done(const struct output_writer *o)
{
	return output_writer_empty(o) || o->full;
}

static void end_if_done(struct keep *k)
{
	if ((k->released || (k->finished[0] && k->finished[1])) && !k->headless &&
	    is_done(&k->to[0]) && is_done(&k->to[1]))
		loop_stop(&k->loop);
}

/* Called by a timer while only the writing is left. */
static void look_whether_done(void *arg)
{
	struct keep *k = arg;

	end_if_done(k);
	loop_timer_set(&k->loop, &k->grace, 0.01, look_whether_done, k);
}

/* False: nothing is there. */
static bool take_one(struct keep *k, int i)
{
	struct output_daemon_packet p;
	ssize_t n = packet_recv(k->from[i].fd, &p, sizeof(p), MSG_DONTWAIT);

	if (n < (ssize_t)PACKET_HEAD) {
		if (n == 0 || (n < 0 && errno != EAGAIN))
			k->over[i] = true;
		return false;
	}
	if (p.bytes == LAST) {
		k->over[i] = k->finished[i] = true;
		return false;
	}
	if (p.rank < k->config.nranks)
		k->printed[p.rank][i] = p.position;
	output_writer_write(&k->to[i], p.at, (size_t)n - PACKET_HEAD);
	return true;
}

/* The head hears it when it next has something to print. */
static void closed(void *arg, const struct output_writer *o)
{
	struct keep *k = arg;
	int fd = k->from[o - k->to].fd;

	if (fd >= 0 && send(fd, "u", 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		log_info("the head does not hear that nobody reads its output");
}

static void take_all(struct keep *k, int i)
{
	while (!k->over[i] && take_one(k, i))
		;
}

static void ready(struct keep *k, int i)
{
	if (!output_writer_full(&k->to[i]) && !take_one(k, i) && k->over[i]) {
		loop_remove(&k->loop, &k->from[i]);
		if (k->finished[0] && k->finished[1])
			look_whether_done(k);
	}
	if (output_writer_full(&k->to[i]))
		loop_change(&k->loop, &k->from[i], 0);
}

static void ready_out(void *arg, uint32_t events)
{
	ready(arg, 0);
}

static void ready_err(void *arg, uint32_t events)
{
	ready(arg, 1);
}

static void drained(void *arg)
{
	struct keep *k = arg;

	for (int i = 0; i < 2; i++)
		if (k->from[i].fd >= 0 && !k->over[i])
			loop_change(&k->loop, &k->from[i], EPOLLIN);
}

/* ---- requests ---- */

static void stop_listening(struct keep *k, struct loop_source *s)
{
	int fd = s->fd;

	loop_remove(&k->loop, s);
	if (fd >= 0)
		close(fd);
}

static void release(struct keep *k)
{
	k->released = true;
	k->headless = false;
	stop_listening(k, &k->listed);
	stop_listening(k, &k->asked);
	look_whether_done(k);
}

static void grace_over(void *arg)
{
	release(arg);
}

/* From the head that it had nothing more is taken, even if it still runs. Until the new one has a
 * output_daemon of its own the job is still found here: that head may die before. Who asks takes
 * the newest that answers. */
static void cut(struct keep *k, struct json_out *j)
{
	for (int i = 0; i < 2; i++) {
		if (k->from[i].fd < 0)
			continue;
		shutdown(k->from[i].fd, SHUT_RD);
		take_all(k, i);
		loop_remove(&k->loop, &k->from[i]);
	}
	k->cut = true;
	json_open_array(j, "printed");
	for (uint32_t r = 0; r < k->config.nranks; r++)
		for (int i = 0; i < 2; i++)
			json_uint(j, NULL, k->printed[r][i]);
	json_close_array(j);
	loop_remove(&k->loop, &k->head);
	/* should the new head die before it has an output daemon of its own, the next one asks
	 * again */
	loop_timer_set(&k->loop, &k->grace, k->config.grace + AFTER_SECONDS, grace_over, k);
}

static void print_ps(const struct keep *k, struct json_out *j)
{
	json_string(j, "id", k->config.job);
	json_string(j, "program", k->config.program);
	json_string(j, "state", "headless");
	json_string(j, "folder", k->config.folder);
	json_open_array(j, "ranks");
	for (uint32_t r = 0; r < k->config.nranks; r++) {
		json_open_object(j, NULL);
		json_uint(j, "rank", r);
		json_uint(j, "slot", 0);
		json_string(j, "node", "?");
		json_int(j, "pid", 0);
		json_string(j, "state", "headless");
		json_close_object(j);
	}
	json_close_array(j);
}

static void answer(struct keep *k, int fd, const char *op)
{
	struct json_out j;
	char why[160];

	json_out_init(&j);
	json_open_object(&j, NULL);
	if (strcmp(op, "where") == 0) {
		json_string(&j, "folder", k->config.folder);
		json_bool(&j, "headless", k->headless);
	} else if (strcmp(op, "attach") == 0) {
		cut(k, &j);
	} else if (strcmp(op, "release") == 0) {
		if (k->cut)
			release(k);
	} else if (strcmp(op, "ps") == 0) {
		print_ps(k, &j);
	} else {
		snprintf(why, sizeof(why), "job %s has no head now; `hale attach %s` gives it one",
			 k->config.job, k->config.job);
		json_string(&j, "error", why);
	}
	json_close_object(&j);
	if (j.text && send(fd, j.text, j.len, MSG_NOSIGNAL) < 0)
		log_info("nobody takes an answer of the output daemon");
	json_out_fini(&j);
}

/* Requests are a line, and come at once. */
static void serve(struct keep *k, int listener)
{
	const struct timeval patience = {.tv_sec = 1};
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	char line[REQUEST_MAX];
	struct json_value *v;
	ssize_t n;

	if (fd < 0)
		return;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (peer_may_command(fd) && (n = recv(fd, line, sizeof(line), 0)) > 0) {
		while (n > 0 && line[n - 1] == '\n')
			n--;
		v = json_parse(line, (size_t)n);
		answer(k, fd, json_text(json_get(v, "op"), ""));
		json_free(v);
	}
	close(fd);
}

static void asked(void *arg, uint32_t events)
{
	struct keep *k = arg;

	serve(k, k->asked.fd);
}

static void listed(void *arg, uint32_t events)
{
	struct keep *k = arg;

	serve(k, k->listed.fd);
}

/* ---- without a head ---- */

/* The head's own name is free as soon as its last descriptor is closed. */
static void take_its_place(void *arg)
{
	struct keep *k = arg;
	int fd;

	if (!k->headless)
		return;
	fd = control_listen(k->config.job, "ctl", k->config.epoch);
	if (fd < 0)
		loop_timer_set(&k->loop, &k->bind_again, BIND_AGAIN_SECONDS, take_its_place, k);
	else
		loop_add(&k->loop, &k->listed, fd, EPOLLIN, listed, k);
}

static void write_down(const struct keep *k)
{
	struct record r;
	struct json_out j;

	record_init(&r);
	record_open(&r, k->config.folder);
	record_begin(&j, "head lost");
	json_uint(&j, "epoch", k->config.epoch);
	json_double(&j, "grace_seconds", k->config.grace);
	record_end(&r, &j);
	record_fini(&r);
}

static void head_gone(void *arg, uint32_t events)
{
	struct keep *k = arg;
	uint32_t newest;

	loop_remove(&k->loop, &k->head);
	for (int i = 0; i < 2; i++) {
		take_all(k, i);
		loop_remove(&k->loop, &k->from[i]);
	}
	if (k->finished[0] && k->finished[1]) { /* it has just let us go */
		look_whether_done(k);
		return;
	}
	newest = head_record_newest(k->config.folder);
	if (newest == 0) { /* there is no job any more */
		release(k);
		return;
	}
	/* a newer head that has the job has not asked yet; that is what we wait for, too */
	loop_timer_set(&k->loop, &k->grace, k->config.grace + AFTER_SECONDS, grace_over, k);
	if (newest != k->config.epoch)
		return;
	k->headless = true;
	write_down(k);
	take_its_place(k);
}

/* ---- life ---- */

static void keep(struct keep *k, const int from[2], int head, int listener)
{
	if (!loop_init(&k->loop))
		_exit(1);
	for (int i = 0; i < 2; i++) {
		output_writer_init(&k->to[i], &k->loop, i + 1, i ? "stderr" : "stdout", drained, k);
		k->to[i].policy = k->config.on_closed;
		k->to[i].closed = closed;
	}
	k->asked.fd = k->listed.fd = -1;
	loop_add(&k->loop, &k->from[0], from[0], EPOLLIN, ready_out, k);
	loop_add(&k->loop, &k->from[1], from[1], EPOLLIN, ready_err, k);
	loop_add(&k->loop, &k->head, head, EPOLLIN, head_gone, k);
	loop_add(&k->loop, &k->asked, listener, EPOLLIN, asked, k);
	loop_run(&k->loop);
	for (int i = 0; i < 2; i++)
		output_writer_flush(&k->to[i]);
	_exit(k->to[0].lost || k->to[1].lost ? EXIT_LOST : EXIT_SUCCESS);
}

static void become_output_daemon(const struct output_daemon_config *config, uint64_t (*printed)[2],
				 const int out[2], int listener, int head)
{
	struct keep *k = calloc(1, sizeof(*k));
	int fd[4], null = open("/dev/null", O_RDONLY);
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGTTOU, SIG_IGN);
	setpgid(0, 0);
	prctl(PR_SET_NAME, "hale-output");
	fd[2] = head;
	for (int i = 0; i < 2; i++)
		fd[i] = out[i];
	fd[3] = listener;
	for (int i = 0; i < 4; i++)
		fd[i] = fcntl(fd[i], F_DUPFD_CLOEXEC, 16);
	for (int i = 0; i < 4; i++)
		if (!k || fd[i] < 0 || dup3(fd[i], FIRST_FD + i, O_CLOEXEC) < 0)
			_exit(1);
	if (dup2(null, 0) < 0)
		_exit(1);
	close_range(FIRST_FD + 4, ~0u, 0);
	k->config = *config;
	k->printed = printed;
	keep(k, (int[2]){FIRST_FD, FIRST_FD + 1}, FIRST_FD + 2, FIRST_FD + 3);
}

hale_status_t output_daemon_start(struct output_daemon *k,
				  const struct output_daemon_config *config, struct error *err)
{
	uint64_t(*printed)[2] = calloc(config->nranks, sizeof(*printed));
	int ends[2][2], listener, self;

	*k = (struct output_daemon){.config = *config, .out = {-1, -1}};
	if (!printed)
		return error_set(err, HALE_ERR_MEMORY, "out of memory for the output daemon");
	if (config->printed)
		memcpy(printed, config->printed, config->nranks * sizeof(*printed));
	k->config.printed = NULL;
	for (int i = 0; i < 2; i++) {
		if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends[i]) != 0) {
			free(printed);
			return error_sys(err, HALE_ERR_SYSTEM, "cannot make a socket for output");
		}
	}
	/* before it is there: who takes over from us asks it, or finds that we have found out */
	listener = control_listen(config->job, "output", config->epoch);
	/* the head may have died by the time in which the output daemon begins */
	self = (int)syscall(SYS_pidfd_open, getpid(), 0);
	k->pid = fork();
	if (k->pid == 0)
		become_output_daemon(config, printed, (int[2]){ends[0][1], ends[1][1]}, listener,
				     self);
	free(printed);
	if (listener >= 0)
		close(listener);
	if (self >= 0)
		close(self);
	for (int i = 0; i < 2; i++) {
		close(ends[i][1]);
		k->out[i] = ends[i][0];
	}
	if (k->pid > 0)
		return HALE_OK;
	output_daemon_leave(k);
	return error_sys(err, HALE_ERR_SYSTEM,
			 "cannot start the output daemon of the job's output");
}
