/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations on the private memory of another process of this node, by the kernel's copies
 * (process_vm_readv, process_vm_writev). Updates read, combine and write back while they hold the
 * part's words. */
#include "rma/internal.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>

enum { COPY_PIECES = 64 };

enum copied { COPIED, COPY_AGAIN, COPY_REFUSED, COPY_FAULT };

static enum copied copy_outcome(ssize_t n)
{
	if (n > 0)
		return COPIED;
	if (n < 0 && (errno == ESRCH || errno == EINTR || errno == ENOMEM))
		return COPY_AGAIN;
	if (n < 0 && (errno == EPERM || errno == ENOSYS || errno == EACCES))
		return COPY_REFUSED;
	return COPY_FAULT;
}

static size_t pieces_cut(struct iovec *iov, size_t n, size_t bytes)
{
	for (size_t i = 0; i < n; i++) {
		if (iov[i].iov_len >= bytes) {
			iov[i].iov_len = bytes;
			return i + 1;
		}
		bytes -= iov[i].iov_len;
	}
	return n;
}

/* The next part of the bytes, between ours and theirs. */
static ssize_t copy_step(pid_t pid, bool write, const struct rma_span *here,
			 const struct rma_span *there, size_t skip)
{
	struct iovec local[COPY_PIECES], remote[COPY_PIECES];
	size_t lbytes, rbytes;
	size_t nl =
	    datatype_iov(here->type, here->buf, here->count, skip, local, COPY_PIECES, &lbytes);
	size_t nr =
	    datatype_iov(there->type, there->buf, there->count, skip, remote, COPY_PIECES, &rbytes);
	size_t bytes = lbytes < rbytes ? lbytes : rbytes;
	if (bytes > 1ul << 30)
		bytes = 1ul << 30;
	nl = pieces_cut(local, nl, bytes);
	nr = pieces_cut(remote, nr, bytes);
	return write ? process_vm_writev(pid, local, nl, remote, nr, 0)
		     : process_vm_readv(pid, local, nl, remote, nr, 0);
}

static enum copied copy_all(const struct win *w, int member, bool write,
			    const struct rma_span *here, const struct rma_span *there, size_t bytes)
{
	struct mailbox *m = segment_mailbox(link_self()->segment, rma_world(w, member));
	pid_t pid = atomic_load_explicit(&m->pid, memory_order_acquire);
	for (size_t done = 0; done < bytes;) {
		ssize_t n = copy_step(pid, write, here, there, done);
		enum copied how = copy_outcome(n);
		if (how != COPIED)
			return how;
		done += (size_t)n;
	}
	return COPIED;
}

/* Bytes [skip, skip + n) of their memory, packed, from or to ours. */
static enum copied chunk_move(const struct rma_call *c, bool write, char *packed,
			      const struct rma_span *there, size_t skip, size_t n)
{
	struct mailbox *m = segment_mailbox(link_self()->segment, rma_world(c->win, c->target));
	pid_t pid = atomic_load_explicit(&m->pid, memory_order_acquire);
	struct iovec piece[COPY_PIECES];
	for (size_t done = 0; done < n;) {
		size_t bytes, k = datatype_iov(there->type, there->buf, there->count, skip + done,
					       piece, COPY_PIECES, &bytes);
		bytes = bytes < n - done ? bytes : n - done;
		k = pieces_cut(piece, k, bytes);
		struct iovec local = {packed + done, bytes};
		ssize_t got = write ? process_vm_writev(pid, &local, 1, piece, k, 0)
				    : process_vm_readv(pid, &local, 1, piece, k, 0);
		if (got != (ssize_t)bytes)
			return got >= 0 ? COPY_FAULT : copy_outcome(got);
		done += bytes;
	}
	return COPIED;
}

/* One chunk of an update; the words are held. */
static enum copied update_chunk(struct rma_call *c, const struct rma_update *u,
				const struct rma_span *there, size_t skip, size_t n)
{
	static char old[RMA_CHUNK] __attribute__((aligned(64)));
	static char next[RMA_CHUNK] __attribute__((aligned(64)));
	static char given[RMA_CHUNK] __attribute__((aligned(64)));
	enum copied how = chunk_move(c, false, old, there, skip, n);
	if (how == COPIED && (u->swap || !u->op->no_op)) {
		datatype_pack(u->origin.type, u->origin.buf, u->origin.count, skip, given, n);
		memcpy(next, old, n);
		rma_combine(u, given, next, n);
		how = chunk_move(c, true, next, there, skip, n);
	}
	if (how == COPIED && u->result.type)
		datatype_unpack(u->result.type, u->result.buf, u->result.count, skip, old, n);
	return how;
}

/* *done: how far it has come, for another try. */
static enum copied update_all(struct rma_call *c, const struct rma_span *there, size_t *done,
			      int *error)
{
	struct rma_update u = {.op = c->op,
			       .swap = c->kind == RMA_SWAP,
			       .compare = c->compare,
			       .origin = c->origin,
			       .result = c->result,
			       .bytes = c->count * c->type->size};
	struct rma_words *words = rma_words_of(c->win, c->target);
	*error = rma_basic(c, &u.basic);
	while (!*error && *done < u.bytes) {
		size_t n = u.bytes - *done < RMA_CHUNK ? u.bytes - *done : RMA_CHUNK;
		rma_hold(words);
		enum copied how = update_chunk(c, &u, there, *done, n);
		rma_release(words);
		if (how != COPIED)
			return how;
		*done += n;
	}
	return COPIED;
}

static bool copy_never(void *arg)
{
	int *rounds = arg;
	return *rounds > 0 ? --*rounds < 0 : true;
}

int rma_copy(struct rma_call *c, uint64_t address, bool *refused)
{
	struct rma_span there = {(void *)(uintptr_t)address, c->count, c->type};
	size_t done = 0;
	int error = MPI_SUCCESS;
	for (;;) {
		enum copied how;
		if (c->kind == RMA_PUT || c->kind == RMA_GET)
			how = copy_all(c->win, c->target, c->kind == RMA_PUT, &c->origin, &there,
				       c->count * c->type->size);
		else
			how = update_all(c, &there, &done, &error);
		if (how == COPIED)
			return error;
		if (how == COPY_FAULT)
			return MPI_ERR_RMA_RANGE;
		if (how == COPY_REFUSED) {
			if (done)
				return MPI_ERR_OTHER;
			log_info("copies between processes are not allowed here: one-sided "
				 "operations go by messages");
			rma.copies = false;
			*refused = true;
			return MPI_SUCCESS;
		}
		/* it is gone, and the job is about to go back; or it is not back yet */
		int rounds = 2;
		match_wait_until(copy_never, &rounds);
		if (!done && rma_reach(c->win, c->target, &error) != RMA_WAY_COPY) {
			*refused = true;
			return error;
		}
	}
}
