// SPDX-License-Identifier: BSD-3-Clause
/* A process in reserve becomes the program that MPI_Comm_spawn has asked for. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fmt.h"
#include "ckpt/rank_private.h"

enum { EXIT_NOT_EXECUTED = 127, SETS_MAX = 16 };

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
	size_t n = 0, k = 0;
	while (environ[n])
		n++;
	char **env = heap_calloc(n + SETS_MAX + 8, sizeof(*env));
	if (!env)
		return NULL;
	for (size_t i = 0; i < n; i++)
		if (!is_set(set, environ[i]) && strncmp(environ[i], "HALE_SINK=", 10) != 0)
			env[k++] = environ[i];
	for (; *set && k < n + SETS_MAX; set++)
		env[k++] = *set;
	return env;
}

/* A request for a checkpoint that comes while nobody can hear it must not end the new program. */
static void requests_ignore(void)
{
	struct {
		void *handler;
		unsigned long flags;
		void *restorer;
		uint64_t mask;
	} ignore = {.handler = (void *)SIG_IGN};
	uint64_t none = 0;
	syscall(SYS_rt_sigaction, PROTO_CKPT_SIGNAL, &ignore, NULL, sizeof(ignore.mask));
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, NULL, sizeof(none));
}

void link_become(const char *path, char *const *argv, const char *folder, char *const *set)
{
	struct proto_plain p = {.type = PROTO_BECOMES};
	struct own own;
	char *all[SETS_MAX + 1] = {own.agent, own.token, own.pid, own.last}, **env;
	size_t k = 4;
	own_fill(&own);
	if (link_address_now()->journal[0])
		all[k++] = own.journal;
	while (*set && k < SETS_MAX)
		all[k++] = *set++;
	all[k] = NULL;
	env = environment(all);
	if (env && (!folder[0] || chdir(folder) == 0)) {
		link_tell(&p, sizeof(p));
		requests_ignore();
		execve(path, argv, env);
	}
	log_warn("'%s' could not be started for MPI_Comm_spawn: %s", path, strerror(errno));
	_exit(EXIT_NOT_EXECUTED);
}
