/* SPDX-License-Identifier: BSD-3-Clause */
/* Single copy: a payload read where it lies in its owner's memory, or written there. */
#include "coll/cells/cells.h"

#include <errno.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include "ckpt/guard.h"
#include "coll/cells/scratch.h"

const uint64_t coll_probe_word = 0x48616c6550726f62ull;

enum { IOV_MAX_AT_ONCE = 64 };

/* Where Yama allows only parents to look (ptrace_scope 1), the owner may invite. */
void cells_read_allow(void)
{
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
}

static pid_t pid_of(const struct coll_home *h, int member)
{
	return atomic_load_explicit(&h->mail[member]->pid, memory_order_acquire);
}

bool cells_read_probe(const struct coll_home *h, int member)
{
	uint64_t got = 0;
	if (h->mirror)
		return false;
	struct iovec to = {&got, sizeof(got)};
	struct iovec from = {(void *)h->cells[member]->probe, sizeof(got)};
	return process_vm_readv(pid_of(h, member), &to, 1, &from, 1, 0) == sizeof(got) &&
	       got == coll_probe_word;
}

/* A peer that is gone has been killed, and then the job is about to be rolled back: the reader
 * waits for that. Any other refusal is an error of the operation. */
static int read_pieces(const struct coll_home *h, int member, const struct iovec *to,
		       unsigned pieces, uint64_t address, size_t bytes)
{
	struct iovec from = {(void *)address, bytes};
	for (;;) {
		ssize_t n = process_vm_readv(pid_of(h, member), to, pieces, &from, 1, 0);
		if (LIKELY(n == (ssize_t)bytes))
			return MPI_SUCCESS;
		if (n > 0)
			return MPI_ERR_BUFFER;
		if (errno == ESRCH)
			link_sleep(mailbox_will_sleep(link_self()->mailbox), 10000000);
		else if (errno == EFAULT)
			return MPI_ERR_BUFFER;
		else if (errno != EINTR && errno != ENOMEM)
			return MPI_ERR_OTHER;
		mailbox_awake(link_self()->mailbox);
	}
}

int cells_read(const struct coll_home *h, int member, uint64_t address, void *dst, size_t bytes)
{
	/* the kernel moves at most MAX_RW_COUNT (2 GiB less a page) at once */
	const size_t most = 1ul << 30;
	char *to = dst;
	if (UNLIKELY(h->mirror))
		return cells_mirror_read(h, member, address, dst, bytes);
	while (bytes) {
		size_t n = bytes < most ? bytes : most;
		struct iovec iov = {to, n};
		int rc = read_pieces(h, member, &iov, 1, address, n);
		if (rc)
			return rc;
		to += n;
		address += n;
		bytes -= n;
	}
	return MPI_SUCCESS;
}

bool cells_write(const struct coll_home *h, int member, uint64_t address, const void *src,
		 size_t bytes)
{
	const size_t most = 1ul << 30;
	const char *at = src;
	while (bytes) {
		size_t n = bytes < most ? bytes : most;
		struct iovec from = {(void *)at, n}, to = {(void *)address, n};
		if (process_vm_writev(pid_of(h, member), &from, 1, &to, 1, 0) != (ssize_t)n)
			return false;
		at += n;
		address += n;
		bytes -= n;
	}
	return true;
}

/* Asked for as a whole, then spread. */
static int read_mirrored(const struct coll_home *h, int member, uint64_t address, size_t bytes,
			 void *buf, size_t count, const struct datatype *t)
{
	void *packed = scratch_get(bytes);
	if (!packed)
		return MPI_ERR_NO_MEM;
	int rc = cells_mirror_read(h, member, address, packed, bytes);
	if (!rc)
		datatype_unpack(t, buf, count, 0, packed, bytes);
	scratch_put(packed);
	return rc;
}

static int read_typed(const struct coll_home *h, int member, uint64_t address, size_t bytes,
		      void *buf, size_t count, const struct datatype *t)
{
	size_t run, at = 0;
	void *p = datatype_run(t, buf, count, &run);
	if (p)
		return cells_read(h, member, address, p, bytes);
	if (UNLIKELY(h->mirror))
		return read_mirrored(h, member, address, bytes, buf, count, t);
	while (at < bytes) {
		struct iovec iov[IOV_MAX_AT_ONCE];
		size_t total,
		    pieces = datatype_iov(t, buf, count, at, iov, IOV_MAX_AT_ONCE, &total);
		while (total > bytes - at) {
			size_t over = total - (bytes - at), *last = &iov[pieces - 1].iov_len;
			size_t cut = over < *last ? over : *last;
			*last -= cut;
			total -= cut;
			pieces -= *last == 0;
		}
		if (!pieces)
			break;
		int rc = read_pieces(h, member, iov, (unsigned)pieces, address + at, total);
		if (rc)
			return rc;
		at += total;
	}
	return MPI_SUCCESS;
}

int cells_take(const struct coll_home *h, int member, const void *local, uint64_t address,
	       size_t bytes, void *buf, size_t count, const struct datatype *t)
{
	size_t room = count * t->size;
	int rc = bytes > room ? MPI_ERR_TRUNCATE : MPI_SUCCESS;
	if (bytes > room)
		bytes = room;
	if (!bytes)
		return rc;
	if (local) {
		if (LIKELY(t->contiguous))
			memcpy(buf, local, bytes);
		else
			datatype_unpack(t, buf, count, 0, local, bytes);
		return rc;
	}
	int read = read_typed(h, member, address, bytes, buf, count, t);
	return read ? read : rc;
}
