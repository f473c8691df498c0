/* SPDX-License-Identifier: BSD-3-Clause */
/* Where things lie in the node's segment, and the bell of a mailbox. */
#include "node/segment.h"

#include <limits.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>
#include "node/shm_layout.h"
#include "node/coll_layout.h"
#include "node/living.h"
#include "node/rma_layout.h"

static size_t mailboxes_end(uint32_t nranks)
{
	return ALIGN_UP(sizeof(struct segment) + (size_t)nranks * sizeof(struct mailbox),
			HALE_PAGE);
}

static size_t channel_begin(uint32_t nranks)
{
	return mailboxes_end(nranks) +
	       ALIGN_UP((size_t)nranks * sizeof(struct segment_address), HALE_PAGE);
}

static size_t coll_begin(uint32_t nranks)
{
	return channel_begin(nranks) + ALIGN_UP(channel_shm_bytes(nranks), HALE_PAGE);
}

static size_t rma_begin(uint32_t nranks)
{
	return coll_begin(nranks) + ALIGN_UP(coll_shm_bytes(nranks), HALE_PAGE);
}

static size_t meter_begin(uint32_t nranks)
{
	return rma_begin(nranks) + ALIGN_UP(rma_shm_bytes(nranks), HALE_PAGE);
}

static size_t spawn_begin(uint32_t nranks)
{
	return meter_begin(nranks) +
	       ALIGN_UP((size_t)nranks * sizeof(struct rank_meter), HALE_PAGE);
}

size_t segment_bytes(uint32_t nranks)
{
	return spawn_begin(nranks) + spawn_bytes(nranks);
}

void segment_layout(struct segment *s, uint32_t nranks, uint32_t cores, uint32_t generation)
{
	s->magic = SEGMENT_MAGIC;
	s->version = SEGMENT_VERSION;
	s->generation = generation;
	s->nranks = nranks;
	s->degree = 1;
	s->cores = cores;
	s->oversubscribed = nranks > cores;
	s->bytes = segment_bytes(nranks);
	s->mailbox_offset = ALIGN_UP(sizeof(*s), CACHE_LINE);
	s->nhere = nranks;
	s->address_offset = mailboxes_end(nranks);
	s->channel_offset = channel_begin(nranks);
	s->channel_bytes = channel_shm_bytes(nranks);
	s->coll_offset = coll_begin(nranks);
	s->coll_bytes = coll_shm_bytes(nranks);
	s->rma_offset = rma_begin(nranks);
	s->meter_offset = meter_begin(nranks);
	s->spawn_offset = spawn_begin(nranks);
	for (uint32_t r = 0; r < nranks; r++)
		for (int i = 0; i < MAILBOX_OWN_FDS; i++)
			segment_mailbox(s, r)->own_fd[i] = -1;
}

void segment_place(struct segment *s, const unsigned char *here, uint32_t on_machine)
{
	s->nhere = 0;
	for (uint32_t r = 0; r < s->nranks; r++) {
		segment_address_of(s, r)->away = !here[r];
		s->nhere += here[r] != 0;
	}
	s->nbeside = on_machine - s->nhere;
	s->oversubscribed = s->nhere > s->cores;
}

void segment_view_first(struct segment *s, const unsigned char *lost, uint32_t number)
{
	for (uint32_t p = 0; p < s->nranks; p++)
		atomic_store(&segment_mailbox(s, p)->lost, lost[p] ? LIVING_ABSENT : 0);
	s->view_first = number;
	atomic_store(&s->view, number);
}

void segment_secret_put(struct segment *s, const unsigned char secret[SEGMENT_SECRET])
{
	memcpy(s->secret, secret, SEGMENT_SECRET);
}

const unsigned char *segment_secret(const struct segment *s)
{
	for (int i = 0; i < SEGMENT_SECRET; i++)
		if (s->secret[i])
			return s->secret;
	return NULL;
}

/* ---- the address directory ---- */

void segment_address_put(struct segment *s, uint32_t rank, const void *bytes, uint32_t length)
{
	struct segment_address *a = segment_address_of(s, rank);
	uint32_t version = atomic_load(&a->version);
	atomic_store(&a->version, version | 1);
	atomic_thread_fence(memory_order_seq_cst);
	a->length = length;
	memcpy(a->bytes, bytes, length);
	atomic_thread_fence(memory_order_seq_cst);
	atomic_store(&a->version, (version | 1) + 1);
	atomic_fetch_add(&s->addresses_changed, 1);
}

uint32_t segment_address_get(struct segment *s, uint32_t rank, void *bytes, uint32_t *length)
{
	struct segment_address *a = segment_address_of(s, rank);
	uint32_t version = atomic_load(&a->version);
	if (version == 0 || version % 2)
		return 0;
	uint32_t n = a->length;
	if (n > SEGMENT_ADDRESS_MAX)
		return 0;
	memcpy(bytes, a->bytes, n);
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load(&a->version) != version)
		return 0;
	*length = n;
	return version;
}

/* ---- the bell ---- */

static _Atomic int datagrams_from = -1;

void mailbox_ring_from(int fd)
{
	atomic_store(&datagrams_from, fd);
}

/* A datagram for a process that sleeps on descriptors: its socket has a name that the kernel chose
 * (unix(7), autobind: NUL and five hexadecimal digits), which lies in its mailbox. Lost when this
 * process has no descriptor free; then the sleeper's time limit ends its sleep. */
static void datagram_send(uint64_t name)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	int given = atomic_load(&datagrams_from);
	int fd = given >= 0 ? given
			    : socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return;
	memcpy(to.sun_path + 1, &name, 5);
	sendto(fd, "", 1, MSG_DONTWAIT, (struct sockaddr *)&to,
	       (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 6));
	if (given < 0)
		close(fd);
}

/* The bell changes even if nobody listens yet: a process that is about to sleep on the value it
 * saw before then returns at once. */
void mailbox_ring_slow(struct mailbox *m)
{
	atomic_fetch_add_explicit(&m->bell, 1, memory_order_release);
	syscall(SYS_futex, &m->bell, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
	uint64_t name = atomic_load_explicit(&m->bell_name, memory_order_relaxed);
	if (UNLIKELY(name != 0))
		datagram_send(name);
}

static uint32_t file_hash(uint64_t inode)
{
	return (uint32_t)(inode * 0x9e3779b97f4a7c15ull >> 32);
}

/* Who has written such a file last shares it with process, perhaps. */
static void writer_note(struct segment *s, uint32_t process, uint64_t inode)
{
	_Atomic uint32_t *writer = &s->writer[file_hash(inode) % SEGMENT_WRITERS];
	uint32_t other = atomic_exchange(writer, process + 1);

	if (!other || other == process + 1)
		return;
	atomic_store(&segment_mailbox(s, process)->may_share, 1);
	atomic_store(&segment_mailbox(s, other - 1)->may_share, 1);
}

bool segment_inode_put(_Atomic uint64_t *places, uint32_t count, uint64_t inode)
{
	uint32_t at = file_hash(inode);

	for (uint32_t i = 0; i < count; i++) {
		_Atomic uint64_t *place = &places[(at + i) % count];
		uint64_t seen = 0;

		if (atomic_load(place) == inode ||
		    atomic_compare_exchange_strong(place, &seen, inode) || seen == inode)
			return true;
	}
	return false;
}

void segment_file_note(struct segment *s, uint32_t process, uint64_t inode)
{
	if (s->degree > 1)
		return;
	if (s->nhere > 1)
		writer_note(s, process, inode);
	if (s->nhere < s->nranks && !segment_inode_put(s->file, SEGMENT_FILES, inode))
		atomic_store(&s->files_full, 1);
}
