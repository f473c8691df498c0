// SPDX-License-Identifier: BSD-3-Clause
/* Where this process is, and how a record gets into the journal. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/fmt.h"
#include "image/sys.h"
#include "journal/private.h"

bool journal_on;

static struct {
	char folder[512];
	size_t job_len; /* of the job's folder in it */
	uint32_t rank;
	bool is_rank;	  /* epoch says where it is; else the rank's file does, which is mapped */
	bool mapping_due; /* a child by fork: it maps the file when it needs it */
	long pid;	  /* a fork that libc knows nothing of shows by it */
	uint32_t epoch;
	uint32_t told_epoch; /* of the newest complaint + 1 */
	const struct journal_now *now;
	uint32_t known_epoch;  /* of what known.c has */
	bool known_stale;      /* known.c has what another process knew, or has half of a change */
	bool waited;	       /* for the clock to pass the birth of that epoch's folder */
	uint32_t waited_epoch; /* … which is this one */
	uint64_t last_ns;
} self;

/* ---- where the rank is ---- */

static void now_path(char *buf, size_t cap)
{
	fmt_print(buf, cap, "%s/rank-%u.now", self.folder, self.rank);
}

/* Makes the file if the journal's folder is there. */
static bool now_write(size_t offset, const void *bytes, size_t len, int flags)
{
	char path[600];

	now_path(path, sizeof(path));
	long fd = sys(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, 0600);
	if (fd < 0)
		return false;
	bool good = sys_write_at((int)fd, bytes, len, offset) == 0;
	sys(SYS_close, fd);
	return good;
}

static void now_unmap(void)
{
	if (self.now)
		sys(SYS_munmap, self.now, HALE_PAGE);
	self.now = NULL;
}

static bool now_map(void)
{
	char path[600];
	struct stat st;

	now_path(path, sizeof(path));
	long fd = sys(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	/* a process that has no descriptor left tries again: it must not go by an epoch that is
	 * over */
	self.mapping_due = fd < 0 && fd != -ENOENT;
	if (fd < 0)
		return false;
	long at = -1;
	if (!sys(SYS_fstat, fd, &st) && (size_t)st.st_size >= sizeof(struct journal_now))
		at = sys(SYS_mmap, 0, HALE_PAGE, PROT_READ, MAP_SHARED, fd, 0);
	sys(SYS_close, fd);
	if (sys_failed(at))
		return false;
	self.now = (const struct journal_now *)at;
	return true;
}

static bool now_set(uint32_t epoch, bool fresh)
{
	const struct journal_now now = {.magic = JOURNAL_MAGIC, .epoch = epoch};

	/* what has failed in the epochs before stays */
	return fresh ? now_write(0, &now, sizeof(now), O_CREAT)
		     : now_write(0, &now, offsetof(struct journal_now, failures), 0) ||
			   now_write(0, &now, sizeof(now), O_CREAT);
}

uint32_t journal_epoch(void)
{
	if (!self.is_rank && self.mapping_due)
		now_map();
	if (!self.is_rank && self.now)
		self.epoch = __atomic_load_n(&self.now->epoch, __ATOMIC_RELAXED);
	if (self.known_stale || self.epoch != self.known_epoch) {
		known_clear();
		self.known_stale = false;
		self.known_epoch = self.epoch;
	}
	return self.epoch;
}

static void set_folder(const char *folder)
{
	size_t n = fmt_print(self.folder, sizeof(self.folder), "%s", folder);

	if (n >= sizeof(self.folder))
		self.folder[0] = 0;
	const char *slash = strrchr(self.folder, '/');
	self.job_len = slash ? (size_t)(slash - self.folder) : 0;
}

static bool folder_is_there(void)
{
	return self.folder[0] && !sys(SYS_faccessat, AT_FDCWD, self.folder, W_OK | X_OK);
}

/* ---- the lock ---- */

/* 0 free, 1 held, 2 held and somebody sleeps on it */
static _Atomic uint32_t lock_word;
static __thread volatile int inside __attribute__((tls_model("initial-exec")));
static sys_set_t program_mask; /* of the thread that has the lock */

/* The program's handlers wait meanwhile: they may change files, too, or leave by longjmp. Hale's
 * own signals don't, which look at what they interrupt. */
static sys_set_t handlers_wait(void)
{
	const sys_set_t ours = SYS_SET_BIT(SIGURG) | SYS_SET_BIT(SIGRTMAX - 1) |
			       SYS_SET_BIT(SIGRTMAX - 2) | SYS_SET_BIT(SIGRTMAX - 3);
	const sys_set_t all = ~ours;
	sys_set_t was = 0;

	sys(SYS_rt_sigprocmask, SIG_BLOCK, &all, &was, sizeof(was));
	return was;
}

static void handlers_go_on(sys_set_t mask)
{
	sys(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, sizeof(mask));
}

bool journal_lock(void)
{
	sys_set_t mask = handlers_wait();
	uint32_t was = 0;

	if (inside) { /* of a fault in here: no look at what is half changed */
		handlers_go_on(mask);
		return false;
	}
	inside = 1;
	if (!atomic_compare_exchange_strong(&lock_word, &was, 1))
		while (atomic_exchange(&lock_word, 2))
			sys_futex_wait((const volatile uint32_t *)&lock_word, 2, NULL);
	program_mask = mask;
	return true;
}

void journal_unlock(void)
{
	sys_set_t mask = program_mask;

	if (atomic_exchange(&lock_word, 0) == 2)
		sys_futex_wake((const volatile uint32_t *)&lock_word, 1);
	inside = 0;
	handlers_go_on(mask);
}

static void is_a_child(long pid)
{
	self.pid = pid;
	self.mapping_due = self.is_rank || !self.now;
	self.is_rank = false;
	/* another thread may have been changing it */
	self.known_stale = true;
}

static void in_the_child(void)
{
	atomic_store(&lock_word, 0);
	inside = 0;
	is_a_child(sys(SYS_getpid));
}

/* Libc calls nobody in a child of _Fork or clone. One that shares the memory (vfork) changes this
 * for its parent, too, which then reads the rank's file until the next checkpoint. */
void journal_whose(void)
{
	long pid = sys(SYS_getpid);

	if (pid != self.pid)
		is_a_child(pid);
}

/* ---- beginning ---- */

void journal_start(const char *folder, uint32_t rank, bool begins)
{
	static bool forks;

	/* also where no folder is there yet: a checkpoint may come */
	if (!forks)
		pthread_atfork(NULL, NULL, in_the_child);
	forks = true;
	if (!folder)
		return;
	set_folder(folder);
	self.rank = rank;
	self.pid = sys(SYS_getpid);
	self.epoch = self.known_epoch = 0;
	self.known_stale = false;
	self.waited = false;
	known_clear();
	if (!folder_is_there())
		return;
	self.is_rank = begins && now_set(0, true);
	journal_on = self.is_rank || now_map();
}

bool journal_wanted(void)
{
	return self.folder[0] != 0;
}

void journal_is_rank(void)
{
	if (!self.folder[0])
		return;
	journal_epoch();
	now_unmap();
	self.is_rank = true;
}

static void is_past(uint32_t id)
{
	known_clear();
	self.waited = false;
	self.epoch = self.known_epoch = id;
	self.known_stale = false;
	self.is_rank = true;
	self.pid = sys(SYS_getpid);
	now_unmap();
	if (!folder_is_there())
		journal_on = false;
	else if (now_set(id, false))
		journal_on = true;
	else
		journal_unprotected(self.folder, "the journal can't be written", -EIO);
}

void journal_cut(uint32_t id)
{
	if (self.folder[0])
		is_past(id);
}

/* Children that are started from now on look for the journal by their environment. */
static void set_environment(const char *folder)
{
	static const char name[] = "HALE_JOURNAL=";
	static char text[sizeof(name) + sizeof(self.folder)];

	for (char **e = environ; e && *e; e++) {
		if (strncmp(*e, name, sizeof(name) - 1))
			continue;
		if (strlen(*e) >= sizeof(name) - 1 + strlen(folder)) {
			memcpy(*e + sizeof(name) - 1, folder, strlen(folder) + 1);
			return;
		}
		fmt_print(text, sizeof(text), "%s%s", name, folder);
		*e = text;
		return;
	}
}

void journal_restored(const char *folder, uint32_t id)
{
	if (!folder[0])
		return;
	if (strcmp(folder, self.folder))
		set_environment(folder);
	set_folder(folder);
	is_past(id);
}

void journal_child_leave(void)
{
	self.mapping_due |= self.now != NULL;
	now_unmap();
	/* it may be older than the job's first checkpoint, and with it the journal */
	if (!journal_on && folder_is_there())
		journal_on = self.mapping_due = true;
}

void journal_child_restored(const char *folder)
{
	if (!folder[0])
		return;
	if (strcmp(folder, self.folder))
		set_environment(folder);
	set_folder(folder);
	self.known_stale = true;
}

/* ---- records ---- */

long journal_look(int dir, const char *path, int flags, struct journal_file *f)
{
	struct statx s;
	long rc =
	    sys(SYS_statx, dir, path, flags | AT_NO_AUTOMOUNT, STATX_BASIC_STATS | STATX_BTIME, &s);

	if (sys_failed(rc))
		return rc;
	*f = (struct journal_file){.device = (uint64_t)s.stx_dev_major << 32 | s.stx_dev_minor,
				   .inode = s.stx_ino,
				   .size = s.stx_size,
				   .mode = s.stx_mode,
				   .links = s.stx_nlink,
				   .modified_ns =
				       s.stx_mtime.tv_sec * 1000000000 + s.stx_mtime.tv_nsec};
	if (s.stx_mask & STATX_BTIME)
		f->born_ns = (uint64_t)s.stx_btime.tv_sec * 1000000000 + s.stx_btime.tv_nsec;
	return 0;
}

uint64_t journal_file_key(const struct journal_file *f)
{
	const uint64_t key[3] = {f->device, f->inode, f->born_ns};

	return XXH3_64bits(key, sizeof(key)) | 1;
}

uint64_t journal_name_key(const struct journal_place *p)
{
	return XXH3_64bits_withSeed(p->path, strlen(p->path), journal_file_key(&p->folder)) & ~1ull;
}

bool journal_passes_over(const char *path)
{
	static const char *const kernel[] = {"/proc/", "/sys/", "/dev/"};

	for (size_t i = 0; i < ARRAY_LEN(kernel); i++)
		if (!strncmp(path, kernel[i], strlen(kernel[i])))
			return strncmp(path, "/dev/shm/", 9) != 0;
	return self.job_len && !strncmp(path, self.folder, self.job_len) &&
	       path[self.job_len] == '/';
}

static uint32_t epoch_folder(char *buf, size_t cap)
{
	uint32_t epoch = journal_epoch();

	fmt_print(buf, cap, "%s/%u", self.folder, epoch);
	return epoch;
}

/* The kernel's clock for files has ticks of some milliseconds. What is made in the tick of the
 * epoch's folder must be from before it, so that birth alone tells what has been made since: each
 * process waits for the next tick once in an epoch. Where a server's clock counts it may be long in
 * coming, and is not waited for. */
static void past_its_birth(const char *folder)
{
	enum { TRIES = 40 };
	const struct timespec a_moment = {.tv_nsec = 500000};
	struct journal_file f;
	struct timespec t = {0};

	if (journal_look(AT_FDCWD, folder, AT_SYMLINK_NOFOLLOW, &f))
		return;
	for (int i = 0; i < TRIES; i++) {
		sys(SYS_clock_gettime, CLOCK_REALTIME_COARSE, &t);
		if ((uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec > f.born_ns)
			return;
		sys(SYS_nanosleep, &a_moment, NULL);
	}
}

static bool make_folder(const char *folder)
{
	long rc = sys(SYS_mkdirat, AT_FDCWD, folder, 0700);

	if (rc != 0 && rc != -EEXIST)
		return false;
	if (!self.waited || self.waited_epoch != self.epoch || rc == 0)
		past_its_birth(folder);
	self.waited = true;
	self.waited_epoch = self.epoch;
	return true;
}

bool journal_folder(char *buf, size_t cap)
{
	epoch_folder(buf, cap);
	return make_folder(buf);
}

void journal_range_name(char *buf, size_t cap)
{
	fmt_print(buf, cap, "ranges-%u", self.rank);
}

static uint64_t next_ns(void)
{
	struct timespec t = {0};

	sys(SYS_clock_gettime, CLOCK_REALTIME, &t);
	uint64_t now = (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
	self.last_ns = now > self.last_ns ? now : self.last_ns + 1;
	return self.last_ns;
}

static size_t record_fill(char *buf, enum journal_kind kind, const char *path, const char *other,
			  const struct journal_file *f)
{
	struct journal_record *r = (struct journal_record *)buf;
	size_t path_len = strlen(path), other_len = other ? strlen(other) : 0;
	size_t bytes = ALIGN_UP(sizeof(*r) + path_len + other_len + 2, 8);

	if (bytes > JOURNAL_RECORD_MAX)
		return 0;
	memset(buf, 0, bytes);
	*r = (struct journal_record){.magic = JOURNAL_MAGIC,
				     .bytes = (uint32_t)bytes,
				     .kind = (uint16_t)kind,
				     .path_len = (uint16_t)path_len,
				     .other_len = (uint32_t)other_len,
				     .time_ns = next_ns()};
	if (f) {
		r->device = f->device;
		r->inode = f->inode;
		r->born_ns = f->born_ns;
		r->size = f->size;
		r->modified_ns = f->modified_ns;
		r->mode = f->mode;
	}
	memcpy(r + 1, path, path_len);
	if (other)
		memcpy((char *)(r + 1) + path_len + 1, other, other_len);
	r->sum = (uint32_t)XXH3_64bits(buf, bytes);
	return bytes;
}

/* One write each, at the end: records of several processes never mix. */
static long append(const char *buf, size_t bytes)
{
	char path[600];
	uint32_t epoch = epoch_folder(path, sizeof(path));
	size_t len = strlen(path);

	if (!self.waited || self.waited_epoch != epoch)
		make_folder(path);
	fmt_print(path + len, sizeof(path) - len, "/rank-%u.log", self.rank);
	int flags = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW;
	long fd = sys(SYS_openat, AT_FDCWD, path, flags, 0600);
	if (fd == -ENOENT) {
		char folder[600];

		fmt_print(folder, sizeof(folder), "%s/%u", self.folder, epoch);
		make_folder(folder);
		fd = sys(SYS_openat, AT_FDCWD, path, flags, 0600);
	}
	if (fd < 0)
		return fd;
	long rc;
	do
		rc = sys(SYS_write, fd, buf, bytes);
	while (rc == -EINTR);
	sys(SYS_close, fd);
	return rc == (long)bytes ? 0 : rc < 0 ? rc : -ENOSPC;
}

void journal_unprotected(const char *path, const char *why, long rc)
{
	struct journal_now now = {.failures = 1, .failed_epoch = self.epoch};

	if (self.told_epoch != self.epoch + 1)
		log_warn("rank %u changes %s without protection: %s (error %d). A rollback can't "
			 "bring back what it was",
			 self.rank, path, why, (int)-rc);
	self.told_epoch = self.epoch + 1;
	now_write(offsetof(struct journal_now, failures), &now.failures,
		  sizeof(now) - offsetof(struct journal_now, failures), 0);
}

bool journal_write(enum journal_kind kind, const char *path, const char *other,
		   const struct journal_file *f)
{
	static char buf[JOURNAL_RECORD_MAX] __attribute__((aligned(8)));
	size_t bytes = record_fill(buf, kind, path, other, f);
	long rc = bytes ? append(buf, bytes) : -ENAMETOOLONG;

	if (rc)
		journal_unprotected(path, "its journal can't be written", rc);
	return rc == 0;
}
