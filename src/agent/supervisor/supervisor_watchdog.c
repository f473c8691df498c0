/* SPDX-License-Identifier: BSD-3-Clause */
/* Who acts when neither supervisor nor agent can: a process that does nothing but wait until both
 * are gone (it reads from a pipe to which only they have the other end), or until the lease has
 * been over for a while (one of them is stopped, and the other one gone). Then it kills what is
 * left of the groups, and of what has left them: the kernel has ended the ranks with their
 * supervisor, but not what scripts around them have started, which may be the program itself. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/base.h"
#include "wire/lease/lease.h"
#include "agent/supervisor/supervisor_private.h"

/* After the deadline the supervisor comes first; both are well within the head's margin (lease.h).
 */
#define AFTER_NS 100000000ull
enum { LOOK_MS = 200, LEAST_MS = 10, MOST_MS = 3600000 };

/* Until the job is known, and while its ranks stand still, it may begin at any time to have a
 * lease; without leases there is nothing to look at. */
static int milliseconds_left(struct book *b)
{
	uint64_t until = atomic_load(&b->deadline_ns), now = lease_clock(), left;

	if (atomic_load(&b->over) || (atomic_load(&b->count) > 0 && !atomic_load(&b->leased)))
		return -1;
	if (until == 0)
		return LOOK_MS;
	until += AFTER_NS;
	left = until <= now ? 0 : (until - now) / 1000000 + 1;
	return left < LEAST_MS ? LEAST_MS : left < MOST_MS ? (int)left : MOST_MS;
}

static _Noreturn void watch(struct book *b, int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	while (poll(&p, 1, milliseconds_left(b)) <= 0) {
		uint64_t until = atomic_load(&b->deadline_ns);

		if (until == 0 || !atomic_load(&b->leased) || until + AFTER_NS > lease_clock() ||
		    atomic_exchange(&b->over, 1))
			continue;
		supervisor_kill_all(b);
	}
	atomic_store(&b->over, 1);
	while (!supervisor_kill_all(b))
		;
	_exit(0);
}

/* The way to a head that is this process's parent. Kept open here it makes its end prove that
 * nobody kills by ids any more. */
static int way_to_parent(struct ward *w)
{
	const struct supervisor_held *in = w->is_child ? ward_find(w, HOLD_LINK_IN, 0) : NULL;

	return in ? in->fd : -1;
}

/* It keeps nothing else that somebody waits on, and is in nobody's group. */
static _Noreturn void be_watchdog(struct book *b, int fd, int way)
{
	enum { FD = 3 };
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	setsid();
	prctl(PR_SET_NAME, "hale-watchdog");
	fd = fcntl(fd, F_DUPFD, FD + 2);
	way = way >= 0 ? fcntl(way, F_DUPFD, FD + 2) : -1;
	for (int i = 0; i < FD; i++)
		if (dup2(null, i) < 0)
			_exit(1);
	if (dup2(fd, FD) < 0 || dup2(way >= 0 ? way : null, FD + 1) < 0)
		_exit(1);
	close_range(FD + 2, ~0u, 0);
	watch(b, FD);
}

/* Without it the job runs as well: it is for the day on which two of us die at once. */
void ward_appoint(struct ward *w)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) != 0)
		return;
	w->watchdog = fork();
	if (w->watchdog == 0) {
		close(ends[1]);
		be_watchdog(w->book, ends[0], way_to_parent(w));
	}
	close(ends[0]);
	if (w->watchdog < 0) {
		w->watchdog = 0;
		close(ends[1]);
	}
}

void ward_dismiss(struct ward *w)
{
	if (w->watchdog <= 0)
		return;
	kill(w->watchdog, SIGKILL);
	waitpid(w->watchdog, NULL, 0);
	w->watchdog = 0;
}
