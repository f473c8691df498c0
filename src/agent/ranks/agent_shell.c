/* SPDX-License-Identifier: BSD-3-Clause */
/* A rank that a script has started (`hale run … sh -c './program; …'`) moves, the script doesn't,
 * as in a restart from a checkpoint: it is no process of the job's computation, and what it would
 * still do after the program is not done. So that it does nothing of that while its program is
 * away, it stands still from the stop on, and is ended when the copy runs. What else it has
 * started beside its program would be lost: then the rank stays. */
#include <ctype.h>
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "base/procstat.h"
#include "agent/agent_private.h"

enum { CHAIN_MAX = 16 };

/* From the rank's parent up to what was launched; 0: that isn't among them. */
static int chain_of(const struct agent_rank *r, pid_t chain[CHAIN_MAX])
{
	struct procstat p;
	pid_t at = r->member;

	for (int n = 0; n < CHAIN_MAX && procstat_read(at, &p) && p.parent > 1; n++) {
		at = chain[n] = p.parent;
		if (at == r->pid)
			return n + 1;
	}
	return 0;
}

static bool belongs(const struct agent_rank *r, pid_t pid, const struct procstat *p,
		    const pid_t *chain, int n)
{
	if (pid == r->member || p->parent == r->member || p->state == 'Z' || p->state == 'X')
		return true;
	for (int i = 0; i < n; i++)
		if (chain[i] == pid)
			return true;
	return false;
}

static hale_status_t check_others(const struct agent_rank *r, const pid_t *chain, int n,
				  struct error *err)
{
	DIR *d = opendir("/proc");
	struct dirent *e;
	struct procstat p;
	hale_status_t status = HALE_OK;

	while (d && status == HALE_OK && (e = readdir(d))) {
		pid_t pid = (pid_t)atoi(e->d_name);

		if (!isdigit((unsigned char)e->d_name[0]) || !procstat_read(pid, &p) ||
		    p.group != r->group || belongs(r, pid, &p, chain, n))
			continue;
		status = error_set(err, HALE_ERR_UNSUPPORTED,
				   "the script that has started rank %u runs %s (process %d) "
				   "beside it, which can't move with it; try again when that has "
				   "ended",
				   r->rank, p.name, (int)pid);
	}
	if (d)
		closedir(d);
	return status;
}

static hale_status_t look(struct agent *a, uint32_t rank, pid_t chain[CHAIN_MAX], int *n,
			  struct error *err)
{
	const struct agent_rank *r = &a->ranks[rank];

	*n = chain_of(r, chain);
	if (*n == 0)
		return error_set(err, HALE_ERR_UNSUPPORTED,
				 "rank %u is no child of what was launched for it any more: it "
				 "can't move",
				 rank);
	return check_others(r, chain, *n, err);
}

hale_status_t agent_shell_check(struct agent *a, uint32_t rank, struct error *err)
{
	pid_t chain[CHAIN_MAX];
	int n;

	return look(a, rank, chain, &n, err);
}

hale_status_t agent_shell_halt(struct agent *a, uint32_t rank, struct error *err)
{
	struct agent_rank *r = &a->ranks[rank];
	pid_t chain[CHAIN_MAX];
	int n;

	if (r->member == r->pid || r->member == 0)
		return HALE_OK;
	if (look(a, rank, chain, &n, err) != HALE_OK)
		return err->code;
	for (int i = 0; i < n; i++)
		kill(chain[i], SIGSTOP);
	r->halted = true;
	return HALE_OK;
}

void agent_shell_resume(struct agent *a, uint32_t rank)
{
	struct agent_rank *r = &a->ranks[rank];
	pid_t chain[CHAIN_MAX];
	int n = r->halted ? chain_of(r, chain) : 0;

	r->halted = false;
	for (int i = 0; i < n && !a->lease.paused; i++)
		kill(chain[i], SIGCONT);
}
