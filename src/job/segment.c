/* SPDX-License-Identifier: BSD-3-Clause */
/* Where things lie in the node's segment, and the bell of a mailbox. */
#include "job/segment.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "channel/shm/layout.h"
#include "coll/layout.h"

static size_t mailboxes_end(uint32_t nranks)
{
	return ALIGN_UP(sizeof(struct segment) + (size_t)nranks * sizeof(struct mailbox),
			HALE_PAGE);
}

static size_t coll_begin(uint32_t nranks)
{
	return mailboxes_end(nranks) + ALIGN_UP(channel_shm_bytes(nranks), HALE_PAGE);
}

static size_t meter_begin(uint32_t nranks)
{
	return coll_begin(nranks) + ALIGN_UP(coll_shm_bytes(nranks), HALE_PAGE);
}

size_t segment_bytes(uint32_t nranks)
{
	return meter_begin(nranks) +
	       ALIGN_UP((size_t)nranks * sizeof(struct rank_meter), HALE_PAGE);
}

void segment_layout(struct segment *s, uint32_t nranks, uint32_t cores, uint32_t generation)
{
	s->magic = SEGMENT_MAGIC;
	s->version = SEGMENT_VERSION;
	s->generation = generation;
	s->nranks = nranks;
	s->cores = cores;
	s->oversubscribed = nranks > cores;
	s->bytes = segment_bytes(nranks);
	s->mailbox_offset = ALIGN_UP(sizeof(*s), CACHE_LINE);
	s->channel_offset = mailboxes_end(nranks);
	s->channel_bytes = channel_shm_bytes(nranks);
	s->coll_offset = coll_begin(nranks);
	s->coll_bytes = coll_shm_bytes(nranks);
	s->meter_offset = meter_begin(nranks);
	for (uint32_t r = 0; r < nranks; r++)
		for (int i = 0; i < MAILBOX_OWN_FDS; i++)
			segment_mailbox(s, r)->own_fd[i] = -1;
}

/* The bell changes even if nobody listens yet: a process that is about to sleep on the value it
 * saw before then returns at once. */
void mailbox_ring_slow(struct mailbox *m)
{
	atomic_fetch_add_explicit(&m->bell, 1, memory_order_release);
	syscall(SYS_futex, &m->bell, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}
