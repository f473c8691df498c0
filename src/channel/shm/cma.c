// SPDX-License-Identifier: BSD-3-Clause
/* Single copies between the memories of two ranks, by process_vm_readv and process_vm_writev.
 *
 * Who may do that is the kernel's decision (Yama, seccomp, containers), so it is tried: on our own
 * memory at start, which finds system calls that are filtered, and on a peer at the first copy. A
 * refusal switches to records for good. A peer is always named by its rank: its pid is looked up
 * in its mailbox, because after a restart it is another one. */
#include "channel/shm/shm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>
#include "base/base.h"
#include "ckpt/rank.h"

static bool usable;
static bool unwanted; /* by HALE_SHM_CMA=0: for tests, and for comparing */

static bool copies_itself(void)
{
	char from = 42, to = 0;
	struct iovec local = {&to, 1}, remote = {&from, 1};
	return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == 1 && to == 42;
}

void shm_cma_configure(void)
{
	const char *wanted = getenv("HALE_SHM_CMA");
	unwanted = wanted && strcmp(wanted, "0") == 0;
}

void shm_cma_open(void)
{
	/* where Yama restricts ptrace to descendants, siblings need the permission */
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
	usable = !unwanted && copies_itself();
}

static pid_t peer_pid(uint32_t rank)
{
	struct mailbox *m = segment_mailbox(link_self()->segment, rank);
	return atomic_load_explicit(&m->pid, memory_order_acquire);
}

static ssize_t outcome(ssize_t copied)
{
	if (LIKELY(copied > 0))
		return copied;
	if (copied < 0 && errno == ESRCH) /* gone, or not yet back: its agent knows what to do */
		return 0;
	if (copied < 0 && (errno == EPERM || errno == ENOSYS || errno == EACCES)) {
		log_info("copies between processes are not allowed here (error %d): big messages "
			 "go through shared memory",
			 errno);
		usable = false;
	}
	return -1;
}

ssize_t shm_cma_get(uint32_t rank, const struct iovec *local, size_t nlocal,
		    const struct iovec *remote, size_t nremote, bool stable)
{
	pid_t pid = peer_pid(rank);
	if (UNLIKELY(!usable))
		return -1;
	if (UNLIKELY(pid == 0))
		return 0;
	return outcome(process_vm_readv(pid, local, nlocal, remote, nremote, 0));
}

ssize_t shm_cma_put(uint32_t rank, const struct iovec *local, size_t nlocal,
		    const struct iovec *remote, size_t nremote)
{
	pid_t pid = peer_pid(rank);
	if (UNLIKELY(!usable))
		return -1;
	if (UNLIKELY(pid == 0))
		return 0;
	return outcome(process_vm_writev(pid, local, nlocal, remote, nremote, 0));
}
