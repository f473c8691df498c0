// SPDX-License-Identifier: BSD-3-Clause
/* Can a process be captured? Asked from outside, before anything is stopped. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "base/fmt.h"
#include "image/capture.h"
#include "image/read.h"

/* The runtimes of sanitizers, also linked into the program: terabytes of notes about addresses,
 * which no image can hold. NULL: none. */
static const char *sanitizer_of(const struct map *m)
{
	enum { ASAN_SHADOW = 0x7fff7000 };
	const char *name = strrchr(m->name, '/');
	static const struct {
		const char *library, *name;
	} known[] = {
	    {"/libasan.so", "AddressSanitizer"},      {"/libclang_rt.asan", "AddressSanitizer"},
	    {"/libhwasan.so", "HWAddressSanitizer"},  {"/libtsan.so", "ThreadSanitizer"},
	    {"/libclang_rt.tsan", "ThreadSanitizer"}, {"/tsan.rodata.", "ThreadSanitizer"},
	    {"/liblsan.so", "LeakSanitizer"}};

	if (m->start == ASAN_SHADOW && !name)
		return "AddressSanitizer";
	for (size_t i = 0; name && i < sizeof(known) / sizeof(known[0]); i++)
		if (!strncmp(name, known[i].library, strlen(known[i].library)))
			return known[i].name;
	return NULL;
}

/* A private mapping of a file without a name becomes memory of its own: it would not see any more
 * what the program writes into that file. */
static hale_status_t check_views(const struct fd_table *t, const struct list *maps,
				 struct error *err)
{
	for (size_t i = 0; i < maps->count; i++) {
		const struct map *m = list_at(maps, i);
		if (m->shared || !m->inode || !m->deleted)
			continue;
		for (size_t k = 0; k < t->records.count; k++) {
			const struct fd_record *r = list_at(&t->records, k);
			if (r->kind == FD_UNLINKED && r->inode == m->inode &&
			    ((uint64_t)major(r->device) << 32 | minor(r->device)) == m->device &&
			    (r->open_flags & O_ACCMODE) != O_RDONLY)
				return error_set(
				    err, HALE_ERR_UNSUPPORTED,
				    "the mapping of %s at %lx is a private one of a file without a "
				    "name, which can't be saved while descriptor %d may write it; "
				    "close that, or map it shared",
				    m->name, (unsigned long)m->start, r->fd);
		}
	}
	return HALE_OK;
}

static bool is_thread_of(int32_t pid, pid_t thread)
{
	char path[64];
	struct stat st = {0};
	fmt_print(path, sizeof(path), "/proc/%d/task/%d", (int)pid, (int)thread);
	return !sys(SYS_newfstatat, AT_FDCWD, path, &st, 0);
}

static bool has_mapped(int32_t pid, const struct map *of, struct arena *arena)
{
	char path[64];
	struct list maps;
	struct error none;
	fmt_print(path, sizeof(path), "/proc/%d/maps", (int)pid);
	if (maps_scan(path, arena, &maps, &none) != HALE_OK)
		return false;
	for (size_t i = 0; i < maps.count; i++) {
		const struct map *m = list_at(&maps, i);
		if (m->shared && m->inode == of->inode && m->device == of->device)
			return true;
	}
	return false;
}

/* Memory without a name that another rank has mapped, too, would be two after a rollback. The
 * library's own is no image's. */
static hale_status_t check_memory(pid_t pid, const struct fd_table *t, const struct map *m,
				  struct error *err)
{
	if (!m->shared || !m->deleted || !m->inode || map_is_sysv(m) ||
	    !strcmp(m->name, "/dev/zero") || !strncmp(m->name, "/memfd:hale-", 12))
		return HALE_OK;
	for (size_t i = 0; i < t->beside_count; i++)
		if (!fd_tree_holds(t, t->beside[i]) && !is_thread_of(t->beside[i], pid) &&
		    has_mapped(t->beside[i], m, t->arena))
			return error_set(
			    err, HALE_ERR_UNSUPPORTED,
			    "the mapping of %s at %lx is memory without a name that process %d, "
			    "another rank, has mapped, too, which can't be saved; use System V "
			    "memory",
			    m->name, (unsigned long)m->start, (int)t->beside[i]);
	return HALE_OK;
}

static hale_status_t check_maps(pid_t pid, bool (*passed)(const char *), const struct fd_table *t,
				struct error *err)
{
	char path[64];
	struct list maps;
	struct arena *arena = t->arena;
	fmt_print(path, sizeof(path), "/proc/%d/maps", (int)pid);
	hale_status_t rc = maps_scan(path, arena, &maps, err);
	for (size_t i = 0; i < maps.count && rc == HALE_OK; i++) {
		const struct map *m = list_at(&maps, i);
		const char *why = map_refusal(m), *sanitizer = sanitizer_of(m);
		if (sanitizer)
			return error_set(
			    err, HALE_ERR_UNSUPPORTED,
			    "the program is built with %s, whose memory can't be saved; "
			    "build it without -fsanitize",
			    sanitizer);
		if (why && !(passed && passed(m->name)))
			rc = error_set(err, HALE_ERR_UNSUPPORTED,
				       "the mapping of %s at %lx is %s, which can't be saved; "
				       "unmap it before the checkpoint",
				       m->name, (unsigned long)m->start, why);
		else if (!passed)
			rc = check_memory(pid, t, m, err);
	}
	return rc == HALE_OK ? check_views(t, &maps, err) : rc;
}

/* From outside, what 0, 1 and 2 are now stands for what they were at the start. */
static void streams_of(pid_t pid, struct file_identity stream[3])
{
	for (int i = 0; i < 3; i++) {
		char path[64];
		struct stat st = {0};
		fmt_print(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, i);
		stream[i] = (struct file_identity){0};
		if (!sys(SYS_newfstatat, AT_FDCWD, path, &st, 0))
			stream[i] = (struct file_identity){st.st_dev, st.st_ino};
	}
}

hale_status_t image_check(pid_t pid, const int *own, size_t own_count,
			  bool (*passed)(const char *link), struct error *err)
{
	return image_check_in(pid, own, own_count, passed, NULL, err);
}

hale_status_t image_check_in(pid_t pid, const int *own, size_t own_count,
			     bool (*passed)(const char *link), const struct image_tree *tree,
			     struct error *err)
{
	struct arena arena;
	char proc[32], exe[64];
	struct stat st = {0};
	struct error local;
	if (!err)
		err = &local;
	fmt_print(proc, sizeof(proc), "/proc/%d", (int)pid);
	fmt_print(exe, sizeof(exe), "%s/fd", proc);
	if (sys(SYS_newfstatat, AT_FDCWD, exe, &st, 0))
		return error_set(err, HALE_ERR_PROCESS, "there is no process %d", (int)pid);
	hale_status_t rc = image_reader_arena(&arena, err);
	if (rc != HALE_OK)
		return rc;
	struct fd_table t = {.arena = &arena,
			     .proc = proc,
			     .other = true,
			     .own = own,
			     .own_count = own_count,
			     .passed = passed,
			     .tree = tree ? tree->pid : NULL,
			     .tree_count = tree ? tree->count : 0,
			     .beside = tree && tree->beside ? tree->beside->pid : NULL,
			     .beside_count = tree && tree->beside ? tree->beside->count : 0,
			     .shared = tree && tree->beside ? &tree->beside->shared : NULL,
			     .met = tree && tree->beside && tree->beside->met,
			     .save_max = capture_save_max()};
	streams_of(pid, t.stream);
	rc = fd_table_scan(&t, err);
	if (rc == HALE_OK)
		rc = check_maps(pid, passed, &t, err);
	arena_fini(&arena);
	return rc;
}

/* A field of /proc/PID/status; fallback: it isn't there. */
static uint64_t status_number(const char *status, const char *key, int base, uint64_t fallback)
{
	const char *at = strstr(status, key);
	return at ? strtoull(at + strlen(key), NULL, base) : fallback;
}

/* Others block signals for a moment only, as libc does around many things, or end soon: what does
 * its asynchronous input and output. This one lasts: it waits for signals itself, and can only have
 * blocked ours by a system call. */
static bool thread_is_deaf(pid_t pid, const char *tid, const char *status)
{
	char path[96], text[128];
	fmt_print(path, sizeof(path), "/proc/%d/task/%.20s/wchan", (int)pid, tid);
	if (sys_read_small(path, text, sizeof(text)) <= 0 || !strstr(text, "sigtimedwait"))
		return false;
	return status_number(status, "\nSigBlk:\t", 16, 0) & SYS_SET_BIT(image_park_signal());
}

/* The filters of a container, which this process has too, are there again after a restart. */
static bool thread_is_filtered(const char *status, const char *own)
{
	static const char mode[] = "\nSeccomp:\t", filters[] = "\nSeccomp_filters:\t";
	uint64_t here = status_number(own, mode, 10, 0), there = status_number(status, mode, 10, 0);
	return there != here ||
	       status_number(status, filters, 10, 0) > status_number(own, filters, 10, 0);
}

/* *of: a thread that was looked at before. */
static hale_status_t check_thread(pid_t pid, const char *tid, int *of, const char *own,
				  struct error *err)
{
	char path[96], status[4096];
	fmt_print(path, sizeof(path), "/proc/%d/task/%.20s/status", (int)pid, tid);
	if (sys_read_small(path, status, sizeof(status)) <= 0)
		return HALE_OK; /* it has ended */
	if (thread_is_deaf(pid, tid, status))
		return error_set(
		    err, HALE_ERR_UNSUPPORTED,
		    "its thread %.20s blocks all signals, as libc's for timers with SIGEV_THREAD "
		    "does, so it can't be stopped; use SIGEV_SIGNAL, or timerfd",
		    tid);
	if (thread_is_filtered(status, own))
		return error_set(
		    err, HALE_ERR_UNSUPPORTED,
		    "its thread %.20s has filtered its system calls (seccomp), and "
		    "such a filter can't be saved; run the program without its sandbox",
		    tid);
	if (strstr(status, "\nState:\tZ")) /* the main thread, whose others live on */
		return HALE_OK;
	hale_status_t rc = rights_check(pid, tid, *of, status, own, err);
	*of = (int)strtol(tid, NULL, 10);
	return rc;
}

/* Who may set it may not always set it again. */
static hale_status_t check_login(pid_t pid, struct error *err)
{
	char path[64], own[32] = "", there[32] = "";
	fmt_print(path, sizeof(path), "/proc/%d/loginuid", (int)pid);
	if (sys_read_small("/proc/self/loginuid", own, sizeof(own)) <= 0 ||
	    sys_read_small(path, there, sizeof(there)) <= 0 || !strcmp(own, there))
		return HALE_OK;
	return error_set(err, HALE_ERR_UNSUPPORTED,
			 "it has set the user that it counts as in the audit log (loginuid), which "
			 "can't be saved");
}

hale_status_t image_check_threads(pid_t pid, struct error *err)
{
	char path[64], own[4096] = "";
	struct dirent *e;
	int of = 0;
	hale_status_t rc = check_login(pid, err);
	sys_read_small("/proc/self/status", own, sizeof(own));
	fmt_print(path, sizeof(path), "/proc/%d/task", (int)pid);
	DIR *d = opendir(path);
	while (d && rc == HALE_OK && (e = readdir(d)))
		if (e->d_name[0] != '.')
			rc = check_thread(pid, e->d_name, &of, own, err);
	if (d)
		closedir(d);
	return rc;
}
