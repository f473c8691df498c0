/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that several processes of a node see: each process has at most one memory file without a
 * name, in which all its shared parts of windows lie. Peers open it through /proc, map what they
 * need, and close it again.
 *
 * An image holds a shared part once, with its owner: what peers map lies in a range of addresses
 * that images leave out. After a restart the owner makes the file anew from its own memory. */
#include "rma/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fmt.h"
#include "node/guest.h"

/* Here peers' memory is mapped, from the bottom up. */
#define SEEN_BEGIN ((char *)0x620000000000ul)
enum { SEEN_ALIGN = 1 << 16, MEMORY_FD_FLOOR = 900 };
static const size_t seen_bytes = 8ul << 40;
static char *seen_next;

static int rma_memory_open(void)
{
	struct stat st;
	int fd = memfd_create("hale-window", MFD_CLOEXEC);
	if (fd < 0)
		return MPI_ERR_NO_MEM;
	int high = fcntl(fd, F_DUPFD_CLOEXEC, MEMORY_FD_FLOOR);
	if (high >= 0) {
		close(fd);
		fd = high;
	}
	if (fstat(fd, &st)) {
		close(fd);
		return MPI_ERR_NO_MEM;
	}
	hale_guest_descriptor(fd, true);
	rma.memory = fd;
	rma.memory_inode = st.st_ino;
	return MPI_SUCCESS;
}

void rma_memory_publish(void)
{
	atomic_store(&rma_room_of(rma.rank)->memory, (uint32_t)(rma.memory + 1));
}

int rma_memory_make(size_t bytes, void **at, uint64_t *offset)
{
	size_t whole = ALIGN_UP(bytes ? bytes : 1, HALE_PAGE);
	int rc = rma.memory < 0 ? rma_memory_open() : MPI_SUCCESS;
	if (rc)
		return rc;
	uint64_t begin = rma.memory_end;
	if (ftruncate(rma.memory, (off_t)(begin + whole)))
		return MPI_ERR_NO_MEM;
	void *p = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, rma.memory,
		       (off_t)begin);
	if (p == MAP_FAILED)
		return MPI_ERR_NO_MEM;
	rma.memory_end = begin + whole;
	*at = p;
	*offset = begin;
	rma_memory_publish();
	return MPI_SUCCESS;
}

void rma_memory_drop(void *at, size_t bytes, uint64_t offset)
{
	size_t whole = ALIGN_UP(bytes ? bytes : 1, HALE_PAGE);
	munmap(at, whole);
	/* a hole costs no memory; the last part's place is used again */
	fallocate(rma.memory, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset,
		  (off_t)whole);
	if (offset + whole == rma.memory_end)
		rma.memory_end = offset;
}

static void *rma_memory_place(size_t bytes, int fd, uint64_t offset)
{
	size_t step = ALIGN_UP(bytes, SEEN_ALIGN);
	if (!seen_next) {
		hale_guest_memory(SEEN_BEGIN, seen_bytes, true);
		seen_next = SEEN_BEGIN;
	}
	for (int tries = 0; tries < 1024; tries++) {
		if (seen_next + step > SEEN_BEGIN + seen_bytes)
			seen_next = SEEN_BEGIN;
		void *p = mmap(seen_next, bytes, PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_NORESERVE | MAP_FIXED_NOREPLACE, fd, (off_t)offset);
		seen_next += step;
		if (p != MAP_FAILED || errno != EEXIST)
			return p;
	}
	return MAP_FAILED;
}

void *rma_memory_see(uint32_t world, uint64_t offset, size_t bytes, void *at)
{
	char path[64];
	uint32_t memory = atomic_load(&rma_room_of(world)->memory);
	int pid = atomic_load(&segment_mailbox(link_self()->segment, world)->pid);
	if (!memory || !pid)
		return NULL;
	fmt_print(path, sizeof(path), "/proc/%d/fd/%u", pid, memory - 1);
	int fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	bytes = ALIGN_UP(bytes ? bytes : 1, HALE_PAGE);
	void *p = at ? mmap(at, bytes, PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_NORESERVE | MAP_FIXED, fd, (off_t)offset)
		     : rma_memory_place(bytes, fd, offset);
	close(fd);
	return p == MAP_FAILED ? NULL : p;
}

void rma_memory_unsee(void *at, size_t bytes)
{
	munmap(at, ALIGN_UP(bytes ? bytes : 1, HALE_PAGE));
}

/* ---- after a restart ---- */

static bool rma_memory_survived(void)
{
	struct stat st;
	return !fstat(rma.memory, &st) && st.st_ino == rma.memory_inode;
}

/* Puts the content that the image brought back into the new file, and maps that in its place. */
static bool rma_memory_move(const struct win *w, int fd)
{
	size_t whole = ALIGN_UP(w->mapped_bytes ? w->mapped_bytes : 1, HALE_PAGE);
	for (size_t done = 0; done < whole;) {
		ssize_t n = pwrite(fd, (char *)w->mapped + done, whole - done,
				   (off_t)(w->part.offset + done));
		if (n <= 0)
			return false;
		done += (size_t)n;
	}
	return mmap(w->mapped, whole, PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_NORESERVE | MAP_FIXED, fd,
		    (off_t)w->part.offset) != MAP_FAILED;
}

void rma_memory_resume(void)
{
	if (rma.memory < 0)
		return;
	if (!rma_memory_survived()) {
		hale_guest_descriptor(rma.memory, false);
		bool ok = rma_memory_open() == MPI_SUCCESS &&
			  !ftruncate(rma.memory, (off_t)rma.memory_end);
		for (const struct win *w = rma.windows; w && ok; w = w->next)
			if (w->mapped && w->part.shared && w->part.owner == (uint32_t)w->comm->rank)
				ok = rma_memory_move(w, rma.memory);
		if (!ok) {
			log_warn("rank %u has no memory to share its windows again after the "
				 "restart: %m",
				 rma.rank);
			link_abort(70);
		}
	}
	rma_memory_publish();
}
