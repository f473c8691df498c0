// SPDX-License-Identifier: BSD-3-Clause
#include "minimigrate.h"

#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "node/proto.h"

/* ---- segments and processes ---- */

struct mailbox *mailbox_of(const struct view *v, int r)
{
	return segment_mailbox(v->segment[v->node_of[r]], (uint32_t)r);
}

static void segment_make(struct view *v, int node)
{
	size_t bytes = segment_bytes((uint32_t)n);
	unsigned char here[RANKS_MAX];
	v->fd[node] = memfd_create("minimigrate", MFD_CLOEXEC);
	if (v->fd[node] < 0 || ftruncate(v->fd[node], (off_t)bytes))
		die("memfd");
	struct segment *s = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, v->fd[node], 0);
	if (s == MAP_FAILED)
		die("segment");
	segment_layout(s, (uint32_t)n, (uint32_t)sysconf(_SC_NPROCESSORS_ONLN), generation);
	for (int r = 0; r < n; r++)
		here[r] = v->node_of[r] == node;
	segment_place(s, here, (uint32_t)n);
	segment_secret_put(s, secret);
	v->segment[node] = s;
}

void view_make(struct view *v)
{
	generation++;
	memset(v->seen, 0, sizeof(v->seen));
	for (int node = 0; node < nodes; node++)
		segment_make(v, node);
	v->exists = true;
}

void view_end(struct view *v)
{
	for (int node = 0; node < nodes; node++) {
		munmap(v->segment[node], v->segment[node]->bytes);
		close(v->fd[node]);
	}
	v->exists = false;
}

/* Brings what has changed of rank r's address to the other nodes. */
static void address_bring(struct view *v, int r)
{
	unsigned char bytes[SEGMENT_ADDRESS_MAX];
	uint32_t length;
	int home = v->node_of[r];
	uint32_t version = segment_address_get(v->segment[home], (uint32_t)r, bytes, &length);
	for (int node = 0; version && node < nodes; node++) {
		if (node == home || v->seen[node][r] == version)
			continue;
		v->seen[node][r] = version;
		segment_address_put(v->segment[node], (uint32_t)r, bytes, length);
		for (int k = 0; k < n; k++)
			if (v->node_of[k] == node)
				mailbox_ring(mailbox_of(v, k));
	}
}

int listen_at(const char *name, int type)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
	memcpy(sa.sun_path + 1, name, strlen(name));
	if (fd < 0 ||
	    bind(fd, (struct sockaddr *)&sa,
		 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name))) ||
	    listen(fd, 64))
		die("listen");
	return fd;
}

pid_t spawn(int r, const char *sink)
{
	char text[128];
	pid_t pid = fork();
	if (pid)
		return pid;
	snprintf(text, sizeof(text), "%d", getpid());
	setenv("HALE_LAUNCH_PID", text, 1);
	snprintf(text, sizeof(text), "%d", r);
	setenv("HALE_RANK", text, 1);
	snprintf(text, sizeof(text), "%d", n);
	setenv("HALE_NRANKS", text, 1);
	setenv("HALE_AGENT", agent_name, 1);
	setenv("HALE_TOKEN", "0123456789abcdef", 1);
	setenv("HALE_JOB", "mini", 1);
	if (no_mpi)
		setenv("HALE_NO_MPI", "1", 1);
	if (sink)
		setenv("HALE_SINK", sink, 1);
	const char *libdir = getenv("HALE_LIBDIR");
	snprintf(text, sizeof(text), "%s/libhale.so", libdir ? libdir : ".");
	setenv("LD_PRELOAD", text, 1);
	setenv("LD_LIBRARY_PATH", libdir ? libdir : ".", 1);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	personality(ADDR_NO_RANDOMIZE);
	dup2(outlet_of[0], 1);
	dup2(outlet_of[1], 2);
	close_range(3, ~0u, 0);
	execvp(program[0], program);
	perror(program[0]);
	_exit(127);
}

static void reap(void)
{
	int status;
	pid_t pid;
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid == m.sink && m.sink_status < 0) {
			m.sink_status = status;
			continue;
		}
		for (int r = 0; r < n; r++)
			if (rank[r].pid == pid) {
				rank[r].ended = true;
				rank[r].status = status;
			}
	}
}

/* ---- packets ---- */

void send_welcome(const struct view *v, int conn, int r)
{
	int node = v->node_of[r];
	struct proto_welcome w = {.type = PROTO_WELCOME,
				  .version = PROTO_VERSION,
				  .rank = (uint32_t)r,
				  .nranks = (uint32_t)n,
				  .generation = v->segment[node]->generation,
				  .segment_bytes = v->segment[node]->bytes};
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {0};
	struct iovec iov = {&w, sizeof(w)};
	struct msghdr h = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = &control,
			   .msg_controllen = sizeof(control)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&h);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &v->fd[node], sizeof(int));
	sendmsg(conn, &h, MSG_NOSIGNAL);
}

static void accept_rank(void)
{
	struct proto_hello hello;
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	if (fd < 0 || recv(fd, &hello, sizeof(hello), 0) != (ssize_t)sizeof(hello) ||
	    hello.rank >= (uint32_t)n)
		die("hello");
	if (hello.restored) {
		if (hello.pid != m.sink || hello.restored != id)
			die("hello of a stranger");
		m.sink_conn = fd;
		m.hello = true;
		return;
	}
	rank[hello.rank].conn = fd;
	rank[hello.rank].initialized = !hello.mpi;
	send_welcome(&view, fd, (int)hello.rank);
}

static void take_round(const struct proto_ckpt *p)
{
	m.written = p->id;
	m.bytes += p->bytes;
	if (m.steps < STEPS_MAX)
		m.step[m.steps++] = (struct live_step){(uint64_t)p->bytes, p->seconds, p->interval};
}

static void take_packet(int r, int *conn)
{
	union {
		struct proto_ckpt ckpt;
		struct proto_plain plain;
		uint32_t type;
	} p;
	ssize_t k = recv(*conn, &p, sizeof(p), 0);
	if (k <= 0) {
		close(*conn);
		*conn = -1;
		return;
	}
	switch (p.type) {
	case PROTO_INITIALIZED:
		rank[r].initialized = true;
		break;
	case PROTO_FINALIZED:
		rank[r].finalized = true;
		break;
	case PROTO_CKPT_WRITTEN:
		take_round(&p.ckpt);
		break;
	case PROTO_CKPT_FAILED:
		fprintf(stderr, "minimigrate: rank %d stays: %s\n", r, p.ckpt.text);
		m.failed = true;
		break;
	}
}

void tick(int ms)
{
	struct pollfd p[RANKS_MAX + 2];
	p[0] = (struct pollfd){.fd = listener, .events = POLLIN};
	for (int r = 0; r < n; r++)
		p[1 + r] = (struct pollfd){.fd = rank[r].conn, .events = POLLIN};
	if (poll(p, (nfds_t)(1 + n), ms) > 0) {
		for (int r = 0; r < n; r++)
			if (p[1 + r].revents)
				take_packet(r, &rank[r].conn);
		if (p[0].revents)
			accept_rank();
	}
	for (int r = 0; r < n && nodes > 1; r++) {
		address_bring(&view, r);
		if (coming.exists)
			address_bring(&coming, r);
	}
	reap();
}

bool all(bool (*of)(const struct rank *))
{
	for (int r = 0; r < n; r++)
		if (!of(&rank[r]))
			return false;
	return true;
}

bool is_ended(const struct rank *r)
{
	return r->ended;
}

bool can_stop(const struct rank *r)
{
	return r->initialized && !r->finalized && !r->ended;
}
