// SPDX-License-Identifier: BSD-3-Clause
#include "task/check.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>
#include "base/fmt.h"

enum { SPANS = 4096, TIMES = 8, SAID = 3, MAPS_BYTES = 1 << 20 };

/* Memory that is protected now. */
static struct span {
	uintptr_t from, to;
} spans[SPANS];
static unsigned nspans;
static atomic_uint ends; /* how often watching has ended */
static struct task_frame *volatile watched;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread unsigned held;
static uintptr_t first_local; /* held of the first thread */

/* ---- what is protected: the program's data, without stacks and without what is declared ---- */

static void span_add(uintptr_t from, uintptr_t to)
{
	if (from < to && nspans < SPANS)
		spans[nspans++] = (struct span){from, to};
}

/* All of it but the pages of what f's task declares. */
static void span_carve(const struct task_frame *f, uintptr_t from, uintptr_t to)
{
	while (from < to) {
		uintptr_t hole = to, end = to;

		for (uint32_t i = 0; i < f->record->count; i++) {
			const struct task_range *r = &f->record->ranges[i];
			uintptr_t a = (uintptr_t)r->at & ~(HALE_PAGE - 1);
			uintptr_t b = ALIGN_UP((uintptr_t)r->at + r->length, HALE_PAGE);

			if (!r->written || b <= from || a >= to || a >= hole)
				continue;
			hole = a > from ? a : from;
			end = b;
		}
		span_add(from, hole);
		from = end;
	}
}

/* Is it data of the program: the heap, what is mapped without a file, variables of the executable?
 * Those of libraries are theirs. */
static bool is_data(const char *line, const char *exe)
{
	const char *name = strchr(line, '/');

	if (strstr(line, "[heap]"))
		return true;
	return !strchr(line, '[') && (!name || strcmp(name, exe) == 0);
}

static void spans_find(const struct task_frame *f)
{
	static char maps[MAPS_BYTES], exe[512];
	ssize_t got = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	size_t len = 0;
	uintptr_t guard_end = 0, library_end = 0, here = (uintptr_t)__builtin_frame_address(0);
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);

	while (fd >= 0 && (got = read(fd, maps + len, sizeof(maps) - 1 - len)) > 0)
		len += (size_t)got;
	if (fd >= 0)
		close(fd);
	maps[len] = '\0';
	for (char *line = maps, *next; *line; line = next) {
		uintptr_t from, to;
		char r, w, x, p;
		bool library;

		next = strchr(line, '\n');
		next = next ? next + 1 : line + strlen(line);
		if (next > line && next[-1] == '\n')
			next[-1] = '\0';
		if (sscanf(line, "%lx-%lx %c%c%c%c", &from, &to, &r, &w, &x, &p) != 6)
			continue;
		if (r == '-') {
			guard_end = to;
			continue;
		}
		/* the zeroed variables of a library have no name, but stand behind it */
		library =
		    strchr(line, '/') ? strcmp(strchr(line, '/'), exe) != 0 : from == library_end;
		if (library)
			library_end = to;
		/* Above a guard page: the stack of a thread, with what is thread-local. That of the
		 * first thread lies apart. The kernel writes there, too (rseq), and ends a process
		 * that does not let it. */
		if (w != 'w' || p != 'p' || from == guard_end || (here >= from && here < to) ||
		    (first_local >= from && first_local < to) ||
		    ((uintptr_t)&held >= from && (uintptr_t)&held < to) || library ||
		    !is_data(line, exe) || task_keep_is_ours(from, to))
			continue;
		span_carve(f, from, to);
	}
}

static void watch_end(void)
{
	atomic_fetch_add(&ends, 1);
	for (unsigned i = 0; i < nspans; i++)
		mprotect((void *)spans[i].from, spans[i].to - spans[i].from,
			 PROT_READ | PROT_WRITE);
	watched = NULL;
	nspans = 0;
}

/* ---- one task at a time ---- */

void task_check_init(void)
{
	first_local = (uintptr_t)&held;
}

void task_check_begin(struct task_frame *f)
{
	if (!f->record)
		return;
	if (held++ == 0)
		pthread_mutex_lock(&lock);
	f->checked = true;
	if (held > 1 || f->record->site->checked >= TIMES)
		return;
	f->record->site->checked++;
	spans_find(f);
	watched = f;
	for (unsigned i = 0; i < nspans; i++)
		mprotect((void *)spans[i].from, spans[i].to - spans[i].from, PROT_READ);
}

void task_check_end(struct task_frame *f)
{
	if (!f->checked)
		return;
	f->checked = false;
	if (watched == f)
		watch_end();
	if (--held == 0)
		pthread_mutex_unlock(&lock);
}

void task_check_leave(void)
{
	struct task_frame *f = task_thread_self()->frame;

	for (; f; f = f->outer)
		task_check_end(f);
}

/* ---- a write ---- */

static bool is_protected(uintptr_t at)
{
	for (unsigned i = 0; i < nspans; i++)
		if (at >= spans[i].from && at < spans[i].to)
			return true;
	return false;
}

/* Libraries keep books of their own while they work for a task; only what copies for it counts. */
static bool counts(uintptr_t pc)
{
	static void *const copiers[] = {(void *)memcpy, (void *)memmove, (void *)memset};
	Dl_info info;

	for (unsigned i = 0; i < ARRAY_LEN(copiers); i++)
		if (pc >= (uintptr_t)copiers[i] && pc < (uintptr_t)copiers[i] + 2048)
			return true;
	if (!dladdr((void *)pc, &info) || !info.dli_fname)
		return true;
	return !strstr(info.dli_fname, "/libc.") && !strstr(info.dli_fname, "/ld-linux") &&
	       !strstr(info.dli_fname, "libomp") && !strstr(info.dli_fname, "libmpi") &&
	       !strstr(info.dli_fname, "libhale");
}

static void say(const struct task_site *s, uintptr_t at)
{
	char place[200], name[120] = "";
	Dl_info info;

	task_site_place(s, place, sizeof(place));
	if (dladdr((void *)at, &info) && info.dli_sname)
		fmt_print(name, sizeof(name), " (%s)", info.dli_sname);
	log_warn(
	    "--tasks=check:writes: the task at %s writes to 0x%llx%s, which it does not declare: "
	    "if it is executed again, that is not restored; add it to depend(inout: …), unless "
	    "the task has allocated it itself",
	    place, (unsigned long long)at, name);
}

/* Another thread's write has met the protection, and that has ended meanwhile: the write is tried
 * again, once. */
static bool has_just_ended(uintptr_t at)
{
	static __thread uintptr_t last;
	static __thread unsigned at_end;
	unsigned now = atomic_load(&ends);

	if (now == 0 || (last == at && at_end == now))
		return false;
	last = at;
	at_end = now;
	return true;
}

bool task_check_fault(struct task_thread *t, uintptr_t at, const void *context)
{
	const ucontext_t *u = context;
	struct task_frame *f = watched;
	uintptr_t page = at & ~(HALE_PAGE - 1);

	if (!f || !is_protected(at))
		return has_just_ended(at);
	if (t->frame == f && f->record->site->said < SAID && f->record->site->said_page != page &&
	    counts((uintptr_t)u->uc_mcontext.gregs[REG_RIP])) {
		f->record->site->said++;
		f->record->site->said_page = page;
		say(f->record->site, at);
	}
	return mprotect((void *)page, HALE_PAGE, PROT_READ | PROT_WRITE) == 0;
}
