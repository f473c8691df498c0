/* SPDX-License-Identifier: BSD-3-Clause */
/* Redundancy: the region runs in two or three processes, which then compare what it wrote.
 *
 *    primary  --wake_up--+--- region --- agree --- sleep --->
 *                        |                 ^
 *                     fork                 | hashes of the outputs; the bytes, when asked
 *    shadow              +--- region ------+ _exit
 *
 * A shadow is a fork, so it starts with the very state of the primary, which costs page tables and
 * no copy. It reports through a socket. fork leaves the other threads of a process behind, so that
 * a region that uses them would wait for ever in a shadow: when the process has more than one
 * thread it runs the region several times by itself instead and compares these runs (time for
 * space). */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/base.h"
#include "protect/protect.h"

struct hale_shadow {
	struct hale_shadow *next;
	const struct hale_region *region;
	int degree;
	bool in_time; /* runs one after the other in this process */
	int fd[2];    /* of the shadows, in the primary */
	pid_t pid[2];
	int fd_up; /* of the primary, in a shadow; -1: this is the primary */
	struct hash128 seen[3];
	int runs, tries;
};

/* Several threads may run one region at a time. */
static _Thread_local struct hale_shadow *shadows;

static struct hale_shadow *shadow_of(const struct hale_region *r)
{
	struct hale_shadow *s = shadows;

	while (s && s->region != r)
		s = s->next;
	return s;
}

static size_t threads_now(void)
{
	DIR *d = opendir("/proc/self/task");
	size_t count = 0;

	while (d && readdir(d))
		count++;
	if (d)
		closedir(d);
	return count > 2 ? count - 2 : 1;
}

static void mpi_refuse(const struct hale_region *r)
{
	int (*initialized)(int *) = NULL;
	int yes = 0;

	*(void **)&initialized = dlsym(RTLD_DEFAULT, "MPI_Initialized");
	if (initialized)
		initialized(&yes);
	if (yes)
		protect_die(
		    64,
		    "region '%s' (%s:%d): Redundancy in a program that uses MPI is not offered "
		    "yet: use CR, or Check and Recover",
		    r->name, r->file, r->line);
}

static bool shadow_fork(struct hale_shadow *s, int i)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
		return false;
	s->pid[i] = fork();
	if (s->pid[i] < 0) {
		close(pair[0]);
		close(pair[1]);
		return false;
	}
	if (s->pid[i] == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (int k = 0; k < i; k++)
			close(s->fd[k]);
		close(pair[0]);
		s->fd_up = pair[1];
		return true;
	}
	close(pair[1]);
	s->fd[i] = pair[0];
	return true;
}

void hale_wake_up_shadow(struct hale_region *r, int degree)
{
	struct hale_shadow *s;

	protect_start();
	mpi_refuse(r);
	s = calloc(1, sizeof *s);
	if (!s)
		protect_die(HALE_EXIT_UNRECOVERABLE, "no memory for a shadow");
	s->degree = degree;
	s->fd_up = -1;
	s->fd[0] = s->fd[1] = -1;
	s->in_time = threads_now() > 1;
	for (int i = 0; i < degree - 1 && !s->in_time && s->fd_up < 0; i++)
		if (!shadow_fork(s, i)) {
			log_warn("region '%s': no shadow process (%s): it runs one after the other",
				 r->name, strerror(errno));
			s->degree = degree;
			s->in_time = true;
		}
	s->region = r;
	s->next = shadows;
	shadows = s;
}

static bool io_whole(int fd, void *p, size_t n, bool out)
{
	for (char *c = p; n;) {
		ssize_t did = out ? send(fd, c, n, MSG_NOSIGNAL) : recv(fd, c, n, 0);
		if (did < 0 && errno == EINTR)
			continue;
		if (did <= 0)
			return false;
		c += did;
		n -= (size_t)did;
	}
	return true;
}

static struct hash128 hash_all(size_t count, void *const *bases, const size_t *bytes)
{
	struct hash128 all = {0};

	for (size_t i = 0; i < count; i++) {
		struct hash128 both[2] = {all, sums_hash(bases[i], bytes[i])};
		all = hash_bytes(both, sizeof both);
	}
	return all;
}

/* The shadow's end: its hash goes up, and the bytes, if they are asked for. */
static void shadow_report(const struct hale_shadow *s, struct hash128 h, size_t count,
			  void *const *bases, const size_t *bytes)
{
	char asked = 0;

	if (io_whole(s->fd_up, &h, sizeof h, true) && io_whole(s->fd_up, &asked, 1, false) && asked)
		for (size_t i = 0; i < count; i++)
			if (!io_whole(s->fd_up, bases[i], bytes[i], true))
				break;
	_exit(0);
}

/* Ends shadow i; with take its bytes are this process's from now on. */
static bool shadow_end(struct hale_shadow *s, int i, bool take, size_t count, void *const *bases,
		       const size_t *bytes)
{
	char asked = take;
	bool fine = true;

	if (s->fd[i] < 0)
		return false;
	fine = io_whole(s->fd[i], &asked, 1, true);
	for (size_t v = 0; v < count && take && fine; v++)
		if ((fine = io_whole(s->fd[i], bases[v], bytes[v], false)))
			protect_unseal(bases[v]);
	close(s->fd[i]);
	s->fd[i] = -1;
	while (waitpid(s->pid[i], NULL, 0) < 0 && errno == EINTR)
		;
	return fine;
}

static bool agree_in_time(const struct hale_region *r, struct hale_shadow *s, struct hash128 mine)
{
	if (++s->tries > PROTECT_MISSES_MAX)
		protect_die(
		    HALE_EXIT_UNRECOVERABLE,
		    "unrecoverable: region '%s' (%s:%d) gave another result in each of %d runs: "
		    "Redundancy needs a region that computes the same every time",
		    r->name, r->file, r->line, s->tries);
	for (int i = 0; i < s->runs; i++)
		if (hash_same(s->seen[i], mine)) {
			s->runs = 0;
			return true;
		}
	if (s->runs == 3)
		s->runs = 0;
	s->seen[s->runs++] = mine;
	return false;
}

bool hale_agree(struct hale_region *r, size_t count, void *const *bases, const size_t *bytes)
{
	struct hale_shadow *s = shadow_of(r);
	struct hash128 mine = hash_all(count, bases, bytes), theirs[2];
	bool heard[2] = {false, false}, agreed = false;
	int better = -1;

	if (s->fd_up >= 0)
		shadow_report(s, mine, count, bases, bytes);
	if (s->in_time)
		return agree_in_time(r, s, mine);
	for (int i = 0; i < s->degree - 1; i++) {
		heard[i] = io_whole(s->fd[i], &theirs[i], sizeof theirs[i], false);
		agreed |= heard[i] && hash_same(theirs[i], mine);
	}
	if (!agreed && heard[0] && heard[1] && hash_same(theirs[0], theirs[1]))
		better = 0;
	for (int i = 0; i < s->degree - 1; i++)
		if (!shadow_end(s, i, better == i, count, bases, bytes) && better == i)
			better = -1;
	/* a flip in the shadow behind its hash would become the reference */
	if (better >= 0 && !hash_same(hash_all(count, bases, bytes), theirs[0]))
		better = -1;
	if (!agreed) {
		pthread_mutex_lock(&protect_lock);
		r->detected++;
		r->corrected += better >= 0;
		r->recomputed += better < 0;
		pthread_mutex_unlock(&protect_lock);
		/* this process goes on without shadows: the region runs until two runs agree */
		s->in_time = true;
		s->runs = 0;
		s->seen[s->runs++] = mine;
		for (int i = 0; i < s->degree - 1; i++)
			if (heard[i])
				s->seen[s->runs++] = theirs[i];
	}
	return agreed || better >= 0;
}

void hale_sleep_shadow(struct hale_region *r)
{
	struct hale_shadow *s = shadow_of(r);
	struct hale_shadow **link = &shadows;

	if (!s)
		return;
	for (int i = 0; i < 2; i++)
		if (s->fd[i] >= 0)
			shadow_end(s, i, false, 0, NULL, NULL);
	while (*link != s)
		link = &(*link)->next;
	*link = s->next;
	free(s);
}
