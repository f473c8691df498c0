/* SPDX-License-Identifier: BSD-3-Clause */
#include "job/guardian.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "base/base.h"

enum { PIPE_FD = 3, LINK_FD = 4, KILL_ROUNDS = 500, LOOK_MS = 200 };

uint64_t guardian_clock(void)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static size_t page_bytes(uint32_t count)
{
	return ALIGN_UP(sizeof(struct guardian_page) + count * sizeof(int32_t), HALE_PAGE);
}

/* Group of a process that is more than a zombie; 0: there is none. */
static pid_t living_group(const char *pid)
{
	char path[32], text[512], *end;
	int group = 0, fd;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%.10s/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return 0;
	text[n] = '\0';
	end = strrchr(text, ')');
	if (!end || strlen(end) < 4 || strchr("ZX", end[2]) ||
	    sscanf(end + 3, " %*d %d", &group) != 1)
		return 0;
	return group;
}

static bool is_ours(const struct guardian *g, pid_t group)
{
	for (uint32_t r = 0; group > 0 && r < g->count; r++)
		if (atomic_load(&g->page->groups[r]) == group)
			return true;
	return false;
}

/* Killed processes stay there as zombies until somebody reaps them, which is not our affair. */
static bool somebody_lives(const struct guardian *g)
{
	DIR *d = opendir("/proc");
	struct dirent *e;
	bool lives = false;

	while (d && !lives && (e = readdir(d)))
		lives = e->d_name[0] >= '1' && e->d_name[0] <= '9' &&
			is_ours(g, living_group(e->d_name));
	if (d)
		closedir(d);
	return lives;
}

/* True: nobody was there, not even zombies. */
static bool kill_groups(const struct guardian *g)
{
	bool gone = true;

	for (uint32_t r = 0; r < g->count; r++) {
		pid_t group = atomic_load(&g->page->groups[r]);

		if (group > 0) {
			kill(group, SIGKILL); /* not yet the leader of its group, perhaps */
			gone = (kill(-group, SIGKILL) != 0 && errno == ESRCH) && gone;
		}
	}
	return gone;
}

/* Twice at least: a process may have forked while it was killed. */
static void kill_all(const struct guardian *g)
{
	for (int round = 0; round < KILL_ROUNDS; round++) {
		bool gone = kill_groups(g);

		if (round > 0 && (gone || !somebody_lives(g)))
			return;
		usleep(10000);
	}
}

/* Deadlines move away only, so looking too early does no harm. */
static int milliseconds_left(const struct guardian *g)
{
	uint64_t deadline = atomic_load(&g->page->deadline_ns), now = guardian_clock(), left;

	if (!g->leased)
		return -1;
	if (deadline == 0 || atomic_load(&g->page->over))
		return LOOK_MS;
	left = deadline <= now ? 0 : (deadline - now) / 1000000 + 1;
	return left < LOOK_MS ? (int)left : LOOK_MS;
}

static bool lease_is_over(const struct guardian *g)
{
	uint64_t deadline = atomic_load(&g->page->deadline_ns);

	return deadline != 0 && deadline <= guardian_clock();
}

static void guard(const struct guardian *g)
{
	struct pollfd p = {.fd = PIPE_FD, .events = POLLIN};
	char byte;
	ssize_t n = -1;

	while (n < 0) {
		if (poll(&p, 1, milliseconds_left(g)) == 1)
			n = read(PIPE_FD, &byte, 1);
		if (n < 0 && lease_is_over(g) && !atomic_exchange(&g->page->over, 1))
			kill_all(g);
	}
	if (n == 1) /* the agent says that all is well */
		_exit(0);
	kill_all(g);
	_exit(0);
}

static void become_guardian(const struct guardian *g, int pipe, int link)
{
	sigset_t all;

	setsid();
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	prctl(PR_SET_NAME, "hale-guardian");
	/* it must hold nothing else that somebody waits on: not the shell's pipe behind stderr */
	pipe = fcntl(pipe, F_DUPFD, LINK_FD + 1);
	link = link >= 0 ? fcntl(link, F_DUPFD, LINK_FD + 1) : -1;
	if (pipe < 0 || dup2(pipe, PIPE_FD) < 0 || (link >= 0 && dup2(link, LINK_FD) < 0))
		_exit(1);
	close_range(0, PIPE_FD - 1, 0);
	close_range(link >= 0 ? LINK_FD + 1 : LINK_FD, ~0u, 0);
	if (chdir("/") != 0)
		_exit(1);
	guard(g);
}

static hale_status_t start(struct guardian *g, int link, struct error *err)
{
	int ends[2];

	if (!g->page || pipe2(ends, O_CLOEXEC) != 0)
		return error_sys(err, HALE_ERR_SYSTEM, "cannot start the guardian of the ranks");
	g->pid = fork();
	if (g->pid == 0)
		become_guardian(g, ends[0], link);
	close(ends[0]);
	g->pipe = ends[1];
	if (g->pid > 0)
		return HALE_OK;
	close(g->pipe);
	g->pipe = -1;
	return error_sys(err, HALE_ERR_SYSTEM, "cannot start the guardian of the ranks");
}

hale_status_t guardian_start(struct guardian *g, uint32_t nranks, int link, bool leased,
			     struct error *err)
{
	*g = (struct guardian){.count = nranks, .leased = leased, .pipe = -1};
	g->page = mmap(NULL, page_bytes(nranks), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		       -1, 0);
	if (g->page == MAP_FAILED)
		g->page = NULL;
	return start(g, link, err);
}

static void let_go(pid_t pid, int pipe)
{
	ssize_t n = write(pipe, "q", 1);

	(void)n;
	close(pipe);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

hale_status_t guardian_relink(struct guardian *g, int link, struct error *err)
{
	struct guardian before = *g;
	hale_status_t status;

	if (!g->page || g->pid <= 0)
		return HALE_OK;
	status = start(g, link, err);
	if (status == HALE_OK)
		let_go(before.pid, before.pipe);
	else
		*g = before;
	return status;
}

void guardian_end(struct guardian *g)
{
	if (g->pid > 0)
		let_go(g->pid, g->pipe);
	if (g->page)
		munmap(g->page, page_bytes(g->count));
	*g = (struct guardian){.pipe = -1};
}
