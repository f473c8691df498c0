// SPDX-License-Identifier: BSD-3-Clause
/* minimigrate -n N [OPTION…] PROGRAM ARGS…: N ranks around an agent in miniature that does nothing
 * but migrate them, one after the other and again, on this machine: for tests of the ranks' side of
 * docs/migration.md. What it does is what an agent has to do.
 *
 *   --nodes K      ranks live on K nodes, in order, as many on each; a rank moves to the next one.
 * A node is a segment of its own, as in minirun
 *   --no-mpi       ranks connect by themselves, before main
 *   --times T      so many migrations; 0: until the program ends
 *   --relay        streams go through this process instead of from process to process
 *   --file PATH    streams go into this file, and the copy comes from it
 *   --kill ROUND   the sink is killed after this round, or "stop": when the ranks have stopped
 *   --report FILE  one line a migration: rank, moved or stays, rounds, bytes sent ahead, seconds,
 * of these from the request to stop on, monotonic time when it began
 *   --pause MS     between migrations
 *
 * Ends with the first non-zero status of a rank, when all have ended. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "image/live.h"
#include "image/live_wire.h"
#include "job/proto.h"
#include "job/segment.h"

enum { RANKS_MAX = 64, NODES_MAX = 8, STEPS_MAX = 32, TICK_MS = 2, PATIENCE_S = 60 };

static struct rank {
	pid_t pid;
	int conn;
	bool initialized, finalized, ended;
	int status;
} rank[RANKS_MAX];

static int n = 1, nodes = 1, times, kill_round = -1, pause_ms;
static bool no_mpi, relay, kill_at_stop;
static const char *file, *report;
static char **program;

static char agent_name[64];
static int listener;
static unsigned char secret[SEGMENT_SECRET];
static uint32_t generation, id;

/* Who lives where, in which segments. */
static struct view {
	struct segment *segment[NODES_MAX];
	int fd[NODES_MAX];
	int node_of[RANKS_MAX];
	uint32_t seen[NODES_MAX][RANKS_MAX]; /* versions of addresses that a node has */
	bool exists;
} view, coming;

/* Of the migration under way. */
static struct {
	int rank;
	pid_t sink;
	int sink_status;  /* -1: it lives */
	int sink_conn;	  /* to be answered by WELCOME */
	uint32_t written; /* id of the round */
	bool failed, hello;
	struct live_step step[STEPS_MAX];
	size_t steps;
	uint64_t bytes;
} m;

static void die(const char *what)
{
	perror(what);
	for (int r = 0; r < n; r++)
		if (rank[r].pid > 0 && !rank[r].ended)
			kill(rank[r].pid, SIGKILL);
	exit(99);
}

/* ---- output: through pipes, as an agent has it ---- */

static struct outlet {
	int to, pipe[2];
	pthread_t thread;
} outlets[2] = {{.to = 1}, {.to = 2}};

static void *outlet_run(void *arg)
{
	struct outlet *o = arg;
	char buf[4096];
	for (ssize_t k; (k = read(o->pipe[0], buf, sizeof(buf))) > 0;)
		if (write(o->to, buf, (size_t)k) != k)
			break;
	return NULL;
}

static void outlets_open(void)
{
	for (int i = 0; i < 2; i++)
		if (pipe2(outlets[i].pipe, O_CLOEXEC) ||
		    pthread_create(&outlets[i].thread, NULL, outlet_run, &outlets[i]))
			die("pipe");
}

static void outlets_close(void)
{
	for (int i = 0; i < 2; i++) {
		close(outlets[i].pipe[1]);
		pthread_join(outlets[i].thread, NULL);
	}
}

/* ---- segments and processes ---- */

static struct mailbox *mailbox_of(const struct view *v, int r)
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
	segment_place(s, here);
	segment_secret_put(s, secret);
	v->segment[node] = s;
}

static void view_make(struct view *v)
{
	generation++;
	memset(v->seen, 0, sizeof(v->seen));
	for (int node = 0; node < nodes; node++)
		segment_make(v, node);
	v->exists = true;
}

static void view_end(struct view *v)
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

static int listen_at(const char *name, int type)
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

static pid_t spawn(int r, const char *sink)
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
	dup2(outlets[0].pipe[1], 1);
	dup2(outlets[1].pipe[1], 2);
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

static void send_welcome(const struct view *v, int conn, int r)
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

static void tick(int ms)
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

static bool all(bool (*of)(const struct rank *))
{
	for (int r = 0; r < n; r++)
		if (!of(&rank[r]))
			return false;
	return true;
}

static bool is_ended(const struct rank *r)
{
	return r->ended;
}

static bool can_stop(const struct rank *r)
{
	return r->initialized && !r->finalized && !r->ended;
}

/* ---- requests ---- */

static void ask(int r, uint32_t flags, const char *path, uint32_t base)
{
	struct mailbox *b = mailbox_of(&view, r);
	snprintf(b->ckpt_path, sizeof(b->ckpt_path), "%s", path);
	atomic_store(&b->ckpt_base, base);
	atomic_store(&b->ckpt_flags, flags);
	atomic_store(&b->ckpt_wanted, id);
	if (!rank[r].ended)
		kill(rank[r].pid, PROTO_CKPT_SIGNAL);
	mailbox_ring(b);
}

/* Lets all ranks go on in the new segments. */
static void release(void)
{
	for (int r = 0; r < n; r++) {
		struct mailbox *b = mailbox_of(&view, r);
		if (r != m.rank && rank[r].conn >= 0)
			send_welcome(&coming, rank[r].conn, r);
		atomic_store(&b->ckpt_rejoin, 1);
		atomic_store(&b->ckpt_released, id);
		mailbox_ring(b);
	}
}

/* Lets them go on as if nothing had been asked for. Only when the sink is dead for certain. */
static void give_up(void)
{
	for (int r = 0; r < n; r++) {
		struct mailbox *b = mailbox_of(&view, r);
		atomic_store(&b->ckpt_cancelled, id);
		mailbox_ring(b);
	}
}

/* ---- the stream ---- */

struct pump {
	int source, sink;
};

static void *pump_run(void *arg)
{
	struct pump *p = arg;
	static char buf[1 << 20];
	for (;;) {
		struct pollfd f[2] = {{.fd = p->source, .events = POLLIN},
				      {.fd = p->sink, .events = POLLIN}};
		poll(f, 2, -1);
		int from = f[1].revents ? p->sink : p->source;
		ssize_t k = read(from, buf, sizeof(buf));
		if (k <= 0)
			break;
		for (ssize_t at = 0, w; at < k; at += w)
			if ((w = send(from == p->sink ? p->source : p->sink, buf + at,
				      (size_t)(k - at), MSG_NOSIGNAL)) <= 0)
				goto out;
	}
out:
	/* who relays says that the sink is dead when it has seen it; here: whoever closed has died,
	 * or has said why before */
	live_say(p->source, LIVE_DEAD, HALE_OK, NULL);
	close(p->source);
	close(p->sink);
	free(p);
	return NULL;
}

static void hand_over(int source, int sink)
{
	char byte = relay ? 'R' : 'D';
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {0};
	struct iovec iov = {&byte, 1};
	struct msghdr h = {.msg_iov = &iov, .msg_iovlen = 1};
	if (!relay) {
		h.msg_control = &control;
		h.msg_controllen = sizeof(control);
		struct cmsghdr *c = CMSG_FIRSTHDR(&h);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &source, sizeof(int));
	}
	sendmsg(sink, &h, MSG_NOSIGNAL);
	if (!relay) {
		close(source);
		close(sink);
		return;
	}
	struct pump *p = malloc(sizeof(*p));
	pthread_t thread;
	*p = (struct pump){source, sink};
	if (pthread_create(&thread, NULL, pump_run, p))
		die("thread");
	pthread_detach(thread);
}

/* ---- a migration ---- */

static bool is_over(void)
{
	return m.failed || rank[m.rank].ended;
}

static bool await(bool (*done)(void))
{
	for (int i = 0; i < PATIENCE_S * 1000 / TICK_MS; i++) {
		if (done())
			return true;
		if (is_over())
			return false;
		tick(TICK_MS);
	}
	fprintf(stderr, "minimigrate: waited in vain\n");
	die("await");
	return false;
}

static bool is_written(void)
{
	return m.written == id;
}

static bool has_moved(void)
{
	return rank[m.rank].ended;
}

static bool says_hello(void)
{
	return m.hello;
}

static int accept_in(int at)
{
	struct pollfd p = {.fd = at, .events = POLLIN};
	while (!is_over() && (m.sink_status < 0 || !m.sink) && poll(&p, 1, TICK_MS) == 0)
		tick(0);
	return p.revents ? accept4(at, NULL, NULL, SOCK_CLOEXEC) : -1;
}

/* Rounds until the rest is small. False: it came to nothing. */
static bool copy_ahead(const char *path, int stream)
{
	const struct live_bounds bounds = {0};
	uint32_t flags = CKPT_LIVE | (relay || file ? 0 : CKPT_DIRECT);
	double expected;
	int sink = -1;
	if (!file && (sink = accept_in(stream)) < 0)
		return false;
	for (uint32_t round = 0;; round++) {
		id++;
		ask(m.rank, flags, path, round);
		if (!file && round == 0) {
			int source = accept_in(stream);
			if (source < 0)
				return false;
			hand_over(source, sink);
		}
		if (!await(is_written))
			return false;
		if (kill_round == (int)round)
			kill(m.sink, SIGKILL);
		if (live_plan(m.step, m.steps, &bounds, &expected) == LIVE_LAST)
			return true;
	}
}

/* The copy has said HELLO. */
static void change_segments(void)
{
	if (m.sink_conn < 0)
		return;
	memcpy(coming.node_of, view.node_of, sizeof(view.node_of));
	coming.node_of[m.rank] = (view.node_of[m.rank] + 1) % nodes;
	view_make(&coming);
	send_welcome(&coming, m.sink_conn, m.rank);
	if (!await(has_moved)) {
		view_end(&coming);
		return;
	}
	rank[m.rank].pid = m.sink;
	rank[m.rank].ended = false;
	close(rank[m.rank].conn);
	rank[m.rank].conn = m.sink_conn;
	release();
	view_end(&view);
	view = coming;
	coming.exists = false;
}

static bool stop_and_move(const char *path)
{
	uint32_t live = CKPT_LIVE | (relay || file ? 0 : CKPT_DIRECT);
	id++;
	for (int r = 0; r < n; r++)
		ask(r, r == m.rank ? CKPT_STOP | live : CKPT_STOP, path, 1);
	if (kill_at_stop)
		kill(m.sink, SIGKILL);
	if (file) {
		/* nobody answers: the process has moved into the file */
		await(has_moved);
		if (!WIFEXITED(rank[m.rank].status) ||
		    WEXITSTATUS(rank[m.rank].status) != PROTO_EXIT_MOVED)
			return false;
		char sink[700];
		snprintf(sink, sizeof(sink), "live:%s", path);
		rank[m.rank].ended = false;
		m.sink = spawn(m.rank, sink);
		m.sink_status = -1;
		await(says_hello);
		rank[m.rank].ended = true;
		change_segments();
		unlink(path);
	} else if (await(says_hello)) {
		change_segments();
	}
	return rank[m.rank].pid == m.sink;
}

static void sink_end(void)
{
	if (m.sink > 0 && m.sink_status < 0) {
		kill(m.sink, SIGKILL);
		waitpid(m.sink, &m.sink_status, 0);
	}
}

static void migrate(int r)
{
	char name[80], path[600], sink[120];
	int stream = -1;
	double began = clock_seconds();
	memset(&m, 0, sizeof(m));
	m.rank = r;
	m.sink_status = m.sink_conn = -1;
	snprintf(name, sizeof(name), "%s-stream-%u", agent_name, id);
	snprintf(path, sizeof(path), file ? "%s" : "@%s", file ? file : name);
	snprintf(sink, sizeof(sink), "live:@%s", name);
	if (!file) {
		stream = listen_at(name, SOCK_STREAM);
		m.sink = spawn(r, sink);
	}
	bool ahead = copy_ahead(path, stream) && all(can_stop);
	double stopped = clock_seconds();
	bool moved = ahead && stop_and_move(path);
	double resumed = clock_seconds();
	if (stream >= 0)
		close(stream);
	if (!moved) {
		sink_end();
		give_up();
	}
	m.sink = 0;
	FILE *f = report ? fopen(report, "a") : NULL;
	if (f) {
		fprintf(f, "%d\t%s\t%zu\t%lu\t%.4f\t%.4f\t%.6f\n", r, moved ? "moved" : "stays",
			m.steps, (unsigned long)m.bytes, resumed - began,
			moved ? resumed - stopped : 0.0, began);
		fclose(f);
	}
}

/* ---- all of it ---- */

static int options(int argc, char **argv)
{
	int i = 1;
	for (; i < argc && argv[i][0] == '-' && strcmp(argv[i], "--"); i++) {
		const char *o = argv[i], *value = i + 1 < argc ? argv[i + 1] : "";
		if (!strcmp(o, "--no-mpi")) {
			no_mpi = true;
			continue;
		}
		if (!strcmp(o, "--relay")) {
			relay = true;
			continue;
		}
		i++;
		if (!strcmp(o, "-n"))
			n = atoi(value);
		else if (!strcmp(o, "--nodes"))
			nodes = atoi(value);
		else if (!strcmp(o, "--times"))
			times = atoi(value);
		else if (!strcmp(o, "--file"))
			file = value;
		else if (!strcmp(o, "--report"))
			report = value;
		else if (!strcmp(o, "--pause"))
			pause_ms = atoi(value);
		else if (!strcmp(o, "--kill") && !strcmp(value, "stop"))
			kill_at_stop = true;
		else if (!strcmp(o, "--kill"))
			kill_round = atoi(value);
		else
			return argc;
	}
	return i < argc && !strcmp(argv[i], "--") ? i + 1 : i;
}

int main(int argc, char **argv)
{
	int first = options(argc, argv);
	if (first >= argc || n < 1 || n > RANKS_MAX || nodes < 1 || nodes > NODES_MAX) {
		fprintf(stderr, "usage: minimigrate -n N [OPTION...] PROGRAM ARGS...\n");
		return 2;
	}
	program = argv + first;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	snprintf(agent_name, sizeof(agent_name), "minimigrate-%d", getpid());
	outlets_open();
	listener = listen_at(agent_name, SOCK_SEQPACKET);
	if (getrandom(secret, sizeof(secret), 0) != sizeof(secret))
		die("getrandom");
	for (int r = 0; r < n; r++)
		view.node_of[r] = r * nodes / n;
	view_make(&view);
	for (int r = 0; r < n; r++) {
		rank[r].conn = -1;
		rank[r].pid = spawn(r, NULL);
	}
	double next = clock_seconds() + pause_ms * 1e-3;
	for (int done = 0; !all(is_ended);) {
		tick(TICK_MS);
		if (!all(can_stop) || (times && done >= times) || clock_seconds() < next)
			continue;
		migrate(done++ % n);
		next = clock_seconds() + pause_ms * 1e-3;
	}
	outlets_close();
	for (int r = 0; r < n; r++)
		if (rank[r].status)
			return WIFEXITED(rank[r].status) ? WEXITSTATUS(rank[r].status)
							 : 128 + WTERMSIG(rank[r].status);
	return 0;
}
