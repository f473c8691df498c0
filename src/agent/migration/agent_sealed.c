/* SPDX-License-Identifier: BSD-3-Clause */
/* With --net-security encrypt a helper process beside each agent (hale-seal) encrypts the stream
 * between a rank and its copy. Rank and copy use a plain socket, and no agent's event loop has to
 * encrypt:
 *
 *   rank ── socket pair ── hale-seal ══ TCP, or agents and head ══ hale-seal ── socket pair ── copy
 *
 * A helper ends when its connection ends. That proves nothing about the rank or about its copy. */
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/base.h"
#include "agent/agent_private.h"
#include "wire/seal/sealed.h"

enum { FD_FIRST = 3, AGREE_SECONDS = 60 };

/* The helper closes all other descriptors of the agent. The head takes the end of its connection as
 * proof that the ranks are gone, so the helper must not hold that connection open. */
static _Noreturn void be_sealer(const struct agent *a, uint32_t rank, bool caller, int plain,
				int wire)
{
	const struct sealed_purpose purpose = {.name = "move", .number = {a->move.id, rank}};
	const struct timeval patience = {.tv_sec = AGREE_SECONDS};
	unsigned char secret[SEGMENT_SECRET];
	struct error err;
	enum sealed_end end;
	sigset_t none;

	prctl(PR_SET_NAME, "hale-seal");
	memcpy(secret, a->setup.secret, sizeof(secret));
	plain = fcntl(plain, F_DUPFD, FD_FIRST + 2);
	wire = fcntl(wire, F_DUPFD, FD_FIRST + 2);
	if (plain < 0 || wire < 0 || dup2(plain, FD_FIRST) < 0 || dup2(wire, FD_FIRST + 1) < 0)
		_exit(1);
	close_range(FD_FIRST + 2, ~0u, 0);
	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	/* these limits hold for the key agreement; afterwards the helper waits as long as the
	 * connection lasts */
	setsockopt(FD_FIRST + 1, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(FD_FIRST + 1, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	end = sealed_pump(FD_FIRST, FD_FIRST + 1, caller, secret, &purpose, &err);
	if (end == SEALED_FAILED)
		log_info("the stream of rank %u: %s", rank, err.text);
	_exit((int)end);
}

static void keep_alive(int wire)
{
	int one = 1, idle = 5, count = 3;

	setsockopt(wire, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	setsockopt(wire, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	setsockopt(wire, IPPROTO_TCP, TCP_KEEPINTVL, &one, sizeof(one));
	setsockopt(wire, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
}

static bool start(struct agent *a, uint32_t rank, int plain, int wire)
{
	pid_t agent = getpid(), pid = fork();

	if (pid != 0) {
		a->move.relays[rank].sealer = pid > 0 ? pid : 0;
		return pid > 0;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != agent)
		_exit(1);
	be_sealer(a, rank, agent_moves_out(a, rank), plain, wire);
}

static int pair(int *other)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
		*other = -1;
		return -1;
	}
	*other = ends[1];
	return ends[0];
}

static int between(struct agent *a, uint32_t rank, int outside, bool is_wire)
{
	int inside, end = pair(&inside);
	bool good = end >= 0 &&
		    (is_wire ? start(a, rank, inside, outside) : start(a, rank, outside, inside));

	if (!good) {
		log_warn("cannot start a process that encrypts the stream of rank %u: %m", rank);
		if (end >= 0)
			close(end);
		end = -1;
	}
	if (inside >= 0)
		close(inside);
	close(outside);
	return end;
}

bool agent_seals(const struct agent *a)
{
	return (a->setup.flags & SETUP_ENCRYPT) != 0;
}

int agent_seal_wire(struct agent *a, uint32_t rank, int wire)
{
	keep_alive(wire);
	return between(a, rank, wire, true);
}

int agent_seal_process(struct agent *a, uint32_t rank, int plain)
{
	return between(a, rank, plain, false);
}

void agent_seal_take_end(struct agent *a, pid_t pid, int status)
{
	const int end = WIFEXITED(status) ? WEXITSTATUS(status) : SEALED_FAILED;
	struct error err;

	for (uint32_t r = 0; a->move.relays && r < a->setup.nranks; r++) {
		struct agent_relay *l = &a->move.relays[r];

		if (l->sealer != pid)
			continue;
		l->sealer = 0;
		if (end == SEALED_OVER)
			continue;
		error_set(&err, HALE_ERR_LINK,
			  end == SEALED_CHANGED
			      ? "what came of the memory of rank %u was changed on its way"
			      : "the stream of rank %u can't be encrypted, or was broken",
			  r);
		agent_move_not_spawned(a, r, &err);
	}
}
