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
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "node/proto.h"
#include "minimigrate.h"

enum { TICK_MS = 2, PATIENCE_S = 60 };

struct rank rank[RANKS_MAX];

int n = 1, nodes = 1;
bool no_mpi, relay;
static int times, kill_round = -1, pause_ms;
static bool kill_at_stop;
static const char *file, *report;
char **program;

char agent_name[64];
int listener;
unsigned char secret[SEGMENT_SECRET];
uint32_t generation, id;

struct view view, coming;
struct move m;

void die(const char *what)
{
	perror(what);
	for (int r = 0; r < n; r++)
		if (rank[r].pid > 0 && !rank[r].ended)
			kill(rank[r].pid, SIGKILL);
	exit(99);
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
	struct live_bounds bounds = {0};
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
		switch (live_plan(m.step, m.steps, &bounds, &expected)) {
		case LIVE_LAST:
			return true;
		case LIVE_HOLD:
			bounds.held++;
			flags |= CKPT_HOLD;
			break;
		case LIVE_AGAIN:
			break;
		}
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
		    WEXITSTATUS(rank[m.rank].status) != EXIT_MOVED)
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
