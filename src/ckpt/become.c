// SPDX-License-Identifier: BSD-3-Clause
/* A process in reserve becomes the program that MPI_Comm_spawn has asked for. */
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/fmt.h"
#include "ckpt/rank_private.h"
#include "image/image.h"

enum { EXIT_NOT_EXECUTED = 127, SETS_MAX = 16, WRITER_LOOK_US = 500 };

/* The job may have another agent now than when this process was started. */
struct own {
	char agent[128], token[48], journal[544], pid[32], last[32];
};

static void own_fill(struct own *o)
{
	const struct link_address *a = link_address_now();
	bool restored;
	fmt_print(o->agent, sizeof(o->agent), "HALE_AGENT=%s", a->agent);
	fmt_print(o->token, sizeof(o->token), "HALE_TOKEN=%s", a->token);
	fmt_print(o->journal, sizeof(o->journal), "HALE_JOURNAL=%s", a->journal);
	fmt_print(o->pid, sizeof(o->pid), "HALE_LAUNCH_PID=%d", (int)getpid());
	fmt_print(o->last, sizeof(o->last), "HALE_CKPT_LAST=%u", rank_checkpoint_last(&restored));
}

static bool same_name(const char *a, const char *b)
{
	size_t n = strcspn(b, "=") + 1;
	return !strncmp(a, b, n);
}

static bool is_set(char *const *set, const char *assignment)
{
	for (; *set; set++)
		if (same_name(assignment, *set))
			return true;
	return false;
}

static char **environment(char *const *set)
{
	char *const *from = environment_kept();
	size_t n = 0, k = 0;
	while (from[n])
		n++;
	char **env = heap_calloc(n + SETS_MAX + 8, sizeof(*env));
	if (!env)
		return NULL;
	for (size_t i = 0; i < n; i++)
		if (!is_set(set, from[i]) && strncmp(from[i], "HALE_SINK=", 10) != 0)
			env[k++] = from[i];
	for (; *set && k < n + SETS_MAX; set++)
		env[k++] = *set;
	return env;
}

static void signal_set(int number, void (*handler)(int))
{
	struct {
		void *handler;
		unsigned long flags;
		void *restorer;
		uint64_t mask;
	} action = {.handler = (void *)handler};
	syscall(SYS_rt_sigaction, number, &action, NULL, sizeof(action.mask));
}

/* A request for a checkpoint that comes while nobody can hear it must not end the new program. */
static void requests_ignore(void)
{
	uint64_t none = 0;
	signal_set(PROTO_CKPT_SIGNAL, SIG_IGN);
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, NULL, sizeof(none));
}

/* What exit() and the end of a process would do, and execve does not. kept: a descriptor for the
 * next program. */
static void program_clear(int kept)
{
	static const struct itimerval off;
	char name[64];
	for (int number = 1; number < NSIG; number++) {
		if (number == PROTO_CKPT_SIGNAL)
			continue;
		signal_set(number, SIG_IGN); /* those that wait are gone with that */
		signal_set(number, SIG_DFL);
	}
	setitimer(ITIMER_REAL, &off, NULL);
	setitimer(ITIMER_VIRTUAL, &off, NULL);
	setitimer(ITIMER_PROF, &off, NULL);
	syscall(SYS_close_range, 3u, ~0u, CLOSE_RANGE_CLOEXEC);
	fcntl(kept, F_SETFD, 0);
	/* clang's OpenMP library takes this name back in exit() only */
	fmt_print(name, sizeof(name), "/__KMP_REGISTERED_LIB_%d_%d", (int)getpid(), (int)getuid());
	shm_unlink(name);
}

/* Of HALE_CARRY; -1: there is none. */
static int carried(char *const *set)
{
	for (; *set; set++)
		if (same_name(*set, "HALE_CARRY="))
			return atoi(*set + strlen("HALE_CARRY="));
	return -1;
}

void link_become(const char *path, char *const *argv, const char *folder, char *const *set,
		 bool used)
{
	struct proto_plain p = {.type = PROTO_BECOMES};
	struct own own;
	char *all[SETS_MAX + 1] = {own.agent, own.token, own.pid, own.last}, **env;
	int kept = carried(set);
	size_t k = 4;
	own_fill(&own);
	if (link_address_now()->journal[0])
		all[k++] = own.journal;
	while (*set && k < SETS_MAX)
		all[k++] = *set++;
	all[k] = NULL;
	env = environment(all);
	/* which says through our connection that it has written; the next program has another one
	 */
	while (image_is_writing())
		usleep(WRITER_LOOK_US);
	if (env && (!folder[0] || chdir(folder) == 0)) {
		link_tell(&p, sizeof(p));
		if (used)
			program_clear(kept);
		requests_ignore();
		execve(path, argv, env);
	}
	log_warn("'%s' could not be started for MPI_Comm_spawn: %s", path, strerror(errno));
	_exit(EXIT_NOT_EXECUTED);
}
