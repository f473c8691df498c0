/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/supervisor/node_record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>
#include "base/base.h"

enum { STAGES = 4 };

/* Room costs nothing until it is used, but not every system gives out so much of it. */
static const uint64_t ring_most = 1ull << 30, ring_least = 4ull * MESSAGE_MAX;

/* Where room counts as used (vm.overcommit_memory is 2) little is asked for. */
static bool room_counts(void)
{
	FILE *f = fopen("/proc/sys/vm/overcommit_memory", "re");
	int c = f ? fgetc(f) : 0;

	if (f)
		fclose(f);
	return c == '2';
}

static void *room(size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return at == MAP_FAILED ? NULL : at;
}

/* The second half of the addresses shows the first half's memory again. */
static bool ring_make(struct book_ring *r)
{
	for (uint64_t size = room_counts() ? ring_least : ring_most; size >= ring_least;
	     size /= 2) {
		unsigned char *at = room(2 * size);

		if (!at)
			continue;
		if (mremap(at, 0, size, MREMAP_MAYMOVE | MREMAP_FIXED, at + size) != MAP_FAILED) {
			r->bytes = at;
			r->size = size;
			return true;
		}
		munmap(at, 2 * size);
	}
	return false;
}

struct book *book_create(struct error *err)
{
	struct book *b = room(sizeof(*b));
	int *stages[STAGES];
	bool good = b && ring_make(&b->in) && ring_make(&b->out);

	if (good) {
		stages[0] = b->in_stage;
		stages[1] = b->out_stage;
		stages[2] = b->piece_stage;
		stages[3] = b->input_stage;
		for (int i = 0; good && i < STAGES; i++)
			good = pipe2(stages[i], O_CLOEXEC | O_NONBLOCK) == 0;
	}
	if (good) {
		/* until it is known whether the user wants that */
		atomic_store(&b->adopt, 1);
		for (int i = 0; i < 2; i++)
			b->half[i].view = b->half[i].coming = b->half[i].old = -1;
		return b;
	}
	error_sys(err, HALE_ERR_MEMORY, "no memory to share with an agent");
	return NULL;
}

size_t book_staged(const int stage[2])
{
	int bytes = 0;

	return ioctl(stage[0], FIONREAD, &bytes) == 0 && bytes > 0 ? (size_t)bytes : 0;
}

void book_unstage(const int stage[2], void *bytes, size_t len)
{
	unsigned char nowhere[4096] = {0};
	unsigned char *at = bytes;

	while (len > 0) {
		size_t want = at || len < sizeof(nowhere) ? len : sizeof(nowhere);
		ssize_t n = read(stage[0], at ? at : nowhere, want);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return;
		if (at)
			at += n;
		len -= (size_t)n;
	}
}
