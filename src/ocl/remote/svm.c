/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared virtual memory. Program and server map one object of memory at the same addresses, far
 * from what the kernel gives out by itself; allocations are made in it here, so that a server that
 * takes the place of another one finds them where they were. Only for devices to which any memory
 * of the server's is shared virtual memory (server_svm.c), and only coarse-grained: the host looks
 * at it and writes to it between mapping and unmapping. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/base.h"
#include "base/fmt.h"
#include "ocl/remote/remote.h"

static const size_t svm_bytes = 1ul << 40; /* of addresses; memory is taken when it is used */
enum { SVM_STEP = 64 << 20 };

static struct {
	pthread_mutex_t lock;
	char *base;	    /* NULL: there is none */
	size_t opened;	    /* bytes from there on that may be used */
	struct stub **live; /* by address */
	uint32_t count, room;
} svm = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- the memory; async-signal-safe, since a restored process does it in a signal handler ---- */

/* Opened as far as it is used: whoever looks through all memory (valgrind) has little to do. */
static void *map_at(void *at, int flags, int fd)
{
	void *p = mmap(at, svm_bytes, PROT_NONE, MAP_SHARED | MAP_NORESERVE | flags, fd, 0);

	if (p == MAP_FAILED)
		return NULL;
	if (svm.opened > 0 && mprotect(p, svm.opened, PROT_READ | PROT_WRITE) != 0) {
		munmap(p, svm_bytes);
		return NULL;
	}
	return p;
}

/* Where neither the kernel nor sanitizers put anything. The last is for valgrind. */
static bool choose_place(int fd)
{
	static const uint64_t place[] = {0x200000000000, 0x300000000000, 0x400000000000,
					 0x080000000000};

	for (size_t i = 0; i < ARRAY_LEN(place) && !svm.base; i++)
		svm.base = map_at((void *)(uintptr_t)place[i], MAP_FIXED_NOREPLACE, fd);
	if (!svm.base)
		return false;
	madvise(svm.base, svm_bytes, MADV_DONTDUMP);
	remote_leave_out(svm.base, svm_bytes);
	return true;
}

/* The new memory takes the place of the old, with what that held. */
static bool replace(int fd)
{
	char *new = map_at(NULL, 0, fd);

	if (!new)
		return false;
	for (uint32_t i = 0; i < svm.count; i++) {
		const struct stub_mem *m = &svm.live[i]->mem;
		memcpy(new + (m->host - svm.base), m->host, m->size);
	}
	if (mremap(new, svm_bytes, svm_bytes, MREMAP_MAYMOVE | MREMAP_FIXED, svm.base) == svm.base)
		return madvise(svm.base, svm_bytes, MADV_DONTDUMP) == 0;
	munmap(new, svm_bytes);
	return false;
}

int svm_begin(struct remote_wire *w, bool restored)
{
	int fd = (int)syscall(SYS_memfd_create, "hale-opencl-svm", MFD_CLOEXEC);
	bool good = fd >= 0 && ftruncate(fd, (off_t)svm_bytes) == 0;

	if (good && !svm.base)
		good = choose_place(fd);
	else if (good && restored) /* images leave it out */
		good = map_at(svm.base, MAP_FIXED_NOREPLACE, fd) == svm.base;
	else if (good)
		good = replace(fd);
	if (!good) {
		if (fd >= 0)
			close(fd);
		return -1;
	}
	w->svm_base = (uint64_t)(uintptr_t)svm.base;
	w->svm_bytes = svm_bytes;
	return fd;
}

bool svm_agreed(const struct remote_wire *w, char *why, size_t size)
{
	if (w->svm_bytes > 0 || svm.count == 0)
		return true;
	fmt_print(why, size, "shared virtual memory can't be mapped where it was, at %#lx",
		  (unsigned long)(uintptr_t)svm.base);
	return false;
}

/* ---- allocations ---- */

static void lock(void)
{
	remote_enter(); /* a checkpoint must not find the list half changed */
	pthread_mutex_lock(&svm.lock);
}

static void unlock(void)
{
	pthread_mutex_unlock(&svm.lock);
	remote_leave();
}

static char *end_of(const struct stub *s)
{
	return s->mem.host + s->mem.size;
}

/* The first one that ends behind p. */
static uint32_t find(const char *p)
{
	uint32_t low = 0, high = svm.count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (end_of(svm.live[middle]) > p)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

struct stub *svm_at(const void *p)
{
	struct stub *s = NULL;
	uint32_t i;

	if (!svm.base || (const char *)p < svm.base || (const char *)p >= svm.base + svm_bytes)
		return NULL;
	lock();
	i = find(p);
	if (i < svm.count && svm.live[i]->mem.host <= (const char *)p)
		s = svm.live[i];
	unlock();
	return s;
}

static char *aligned(char *p, size_t align)
{
	return svm.base + ALIGN_UP((size_t)(p - svm.base), align);
}

/* Behind all others; when the addresses have been gone through, in the first gap that fits. */
static char *place_for(size_t size, size_t align, uint32_t *at)
{
	char *p = aligned(svm.count ? end_of(svm.live[svm.count - 1]) : svm.base, align);

	*at = svm.count;
	if ((size_t)(p - svm.base) <= svm_bytes && size <= svm_bytes - (size_t)(p - svm.base))
		return p;
	p = svm.base;
	for (uint32_t i = 0; i < svm.count; i++) {
		char *next = svm.live[i]->mem.host;
		p = aligned(p, align);
		*at = i;
		if (p <= next && size <= (size_t)(next - p))
			return p;
		p = end_of(svm.live[i]);
	}
	return NULL;
}

static bool open_until(const char *end)
{
	size_t bytes = ALIGN_UP((size_t)(end - svm.base), SVM_STEP);

	if (bytes <= svm.opened)
		return true;
	if (mprotect(svm.base + svm.opened, bytes - svm.opened, PROT_READ | PROT_WRITE) != 0)
		return false;
	svm.opened = bytes;
	return true;
}

static bool insert(struct stub *s, size_t size, size_t align)
{
	uint32_t at;

	if (svm.count == svm.room) {
		uint32_t room = svm.room ? 2 * svm.room : 64;
		struct stub **more = realloc(svm.live, room * sizeof(struct stub *));
		if (!more)
			return false;
		svm.live = more;
		svm.room = room;
	}
	s->mem.host = place_for(size, align, &at);
	if (!s->mem.host || !open_until(s->mem.host + size))
		return false;
	s->mem.size = size;
	memmove(&svm.live[at + 1], &svm.live[at], (svm.count - at) * sizeof(struct stub *));
	svm.live[at] = s;
	svm.count++;
	return true;
}

/* Pages that nothing is left in go back. */
static void remove_from_list(struct stub *s)
{
	uint32_t i = find(s->mem.host);
	size_t from, to;

	memmove(&svm.live[i], &svm.live[i + 1], (svm.count - i - 1) * sizeof(struct stub *));
	svm.count--;
	from = i > 0 ? (size_t)(end_of(svm.live[i - 1]) - svm.base) : 0;
	to = i < svm.count ? (size_t)(svm.live[i]->mem.host - svm.base)
			   : ALIGN_UP((size_t)(end_of(s) - svm.base), HALE_PAGE);
	from = ALIGN_UP(from, HALE_PAGE);
	to = to / HALE_PAGE * HALE_PAGE;
	if (from < to && remote_is_ours())
		madvise(svm.base + from, to - from, MADV_REMOVE);
}

cl_int svm_offer(const struct stub *d)
{
	cl_device_svm_capabilities all = 0;
	cl_int status =
	    remote_info(ABOUT_DEVICE, d, 0, CL_DEVICE_SVM_CAPABILITIES, sizeof(all), &all, NULL);

	if (status == CL_DEVICE_NOT_AVAILABLE) /* nobody is there to say */
		return status;
	return status == CL_SUCCESS && all != 0 ? CL_SUCCESS : CL_INVALID_OPERATION;
}

cl_int svm_offer_in(const struct stub *context)
{
	cl_int status = CL_INVALID_OPERATION;

	for (uint32_t i = 0; i < context->device_count && status == CL_INVALID_OPERATION; i++)
		status = svm_offer(context->devices[i]);
	return status;
}

static cl_int register_svm(const struct stub *s)
{
	struct call c = {0};

	put(&c, s->id);
	put(&c, s->context->id);
	put(&c, (uint64_t)(uintptr_t)s->mem.host);
	put(&c, s->mem.size);
	return remote_call(&c, OP_SVM, NULL);
}

static bool flags_are_right(cl_svm_mem_flags flags)
{
	cl_svm_mem_flags way = flags & (CL_MEM_READ_WRITE | CL_MEM_WRITE_ONLY | CL_MEM_READ_ONLY);

	return flags == way && (way & (way - 1)) == 0; /* nothing finer than coarse */
}

static void free_svm(struct stub *s)
{
	lock();
	remove_from_list(s);
	unlock();
	stub_release(s, STUB_SVM, 0);
}

static void *CL_API_CALL svm_alloc(cl_context context, cl_svm_mem_flags flags, size_t size,
				   cl_uint alignment)
{
	struct stub *in = stub_of(context, STUB_CONTEXT), *s;
	size_t align = size >= HALE_PAGE ? HALE_PAGE : SVM_ALIGN_MAX;
	bool good;

	if (!in || !svm.base || !flags_are_right(flags) || size == 0 || alignment > SVM_ALIGN_MAX ||
	    (alignment & (alignment - 1)) || !remote_is_ours() || size > svm_bytes)
		return NULL;
	s = stub_create(STUB_SVM, in);
	if (!s)
		return NULL;
	lock();
	good = insert(s, size, align);
	unlock();
	if (!good) {
		stub_discard(s);
		return NULL;
	}
	s->mem.flags = flags;
	if (register_svm(s) == CL_SUCCESS)
		return s->mem.host;
	free_svm(s);
	return NULL;
}

static void CL_API_CALL svm_free(cl_context context, void *p)
{
	struct stub *s = svm_at(p);

	if (s && s->mem.host == p)
		free_svm(s);
}

/* What the layer does with a program's shared memory when it goes on on another device or server:
 * it stays where it is, and belongs to another context. */
static cl_int CL_API_CALL adopt(cl_context context, void *p)
{
	struct stub *in = stub_of(context, STUB_CONTEXT), *s = svm_at(p);

	if (!in)
		return CL_INVALID_CONTEXT;
	if (!s || s->mem.host != p)
		return CL_INVALID_VALUE;
	stub_belongs(s, in);
	return register_svm(s);
}

void *svm_function(const char *name)
{
	return strcmp(name, "haleAdoptSVM") == 0 ? (void *)(uintptr_t)adopt : NULL;
}

void svm_fill_table(cl_icd_dispatch *d)
{
	d->clSVMAlloc = svm_alloc;
	d->clSVMFree = svm_free;
	svm_fill_commands(d);
}
