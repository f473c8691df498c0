// SPDX-License-Identifier: BSD-3-Clause
/* Where this process is, and how a record gets into the journal. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
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
	unsigned log_number; /* of the newest log that only this process writes to */
} self;

/* ---- where the rank is ---- */

static void now_path(char *buf, size_t cap)
{
	fmt_print(buf, cap, "%s/rank-%u.now", self.folder, self.rank);
}

struct now_write {
	const void *bytes;
	size_t offset, len;
	int flags;
};

static long now_write_here(void *arg)
{
	const struct now_write *w = arg;
	char path[600];

	if (w->offset + w->len > journal_file_limit())
		return -EFBIG;
	now_path(path, sizeof(path));
	long fd = sys(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | w->flags, 0600);
	if (fd < 0)
		return fd;
	long rc = sys_write_at((int)fd, w->bytes, w->len, w->offset);
	sys(SYS_close, fd);
	return rc;
}

/* Makes the file if the journal's folder is there. */
static bool now_write(size_t offset, const void *bytes, size_t len, int flags)
{
	struct now_write w = {bytes, offset, len, flags};
	long rc = now_write_here(&w);

	if (rc == -EMFILE || rc == -EFBIG)
		rc = journal_elsewhere(now_write_here, &w, -1);
	return rc == 0;
}

static void now_unmap(void)
{
	if (self.now)
		sys(SYS_munmap, self.now, HALE_PAGE);
	self.now = NULL;
}

static long now_map_here(void *arg)
{
	char path[600];
	struct stat st;

	now_path(path, sizeof(path));
	long fd = sys(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return fd;
	long at = -EIO;
	if (!sys(SYS_fstat, fd, &st) && (size_t)st.st_size >= sizeof(struct journal_now))
		at = sys(SYS_mmap, 0, HALE_PAGE, PROT_READ, MAP_SHARED, fd, 0);
	sys(SYS_close, fd);
	if (sys_failed(at))
		return -EIO;
	self.now = (const struct journal_now *)at;
	return 0;
}

static bool now_map(void)
{
	long rc = now_map_here(NULL);

	if (rc == -EMFILE)
		rc = journal_elsewhere(now_map_here, NULL, -1);
	/* it tries again: it must not go by an epoch that is over */
	self.mapping_due = rc && rc != -ENOENT && rc != -EIO;
	return rc == 0;
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

uint32_t journal_epoch_now(void)
{
	if (self.is_rank || !self.now)
		return self.is_rank ? self.epoch : JOURNAL_EPOCH_UNKNOWN;
	return __atomic_load_n(&self.now->epoch, __ATOMIC_RELAXED);
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

/* The log of all processes of the rank. A process whose files may only be so long has logs of its
 * own: nobody else's record comes in between its look at the length and its write. */
static long log_open(uint32_t epoch, bool own)
{
	char path[600];
	int flags = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW;

	if (own)
		fmt_print(path, sizeof(path), "%s/%u/rank-%u.%ld-%u.log", self.folder, epoch,
			  self.rank, self.pid, self.log_number);
	else
		fmt_print(path, sizeof(path), "%s/%u/rank-%u.log", self.folder, epoch, self.rank);
	long fd = sys(SYS_openat, AT_FDCWD, path, flags, 0600);
	if (fd == -ENOENT) {
		char folder[600];

		fmt_print(folder, sizeof(folder), "%s/%u", self.folder, epoch);
		make_folder(folder);
		fd = sys(SYS_openat, AT_FDCWD, path, flags, 0600);
	}
	return fd;
}

/* A log that the record fits into. */
static long log_open_for(uint32_t epoch, size_t bytes)
{
	uint64_t limit = journal_file_limit();
	struct stat st;

	if (limit == RLIM64_INFINITY)
		return log_open(epoch, false);
	while (bytes <= limit) {
		long fd = log_open(epoch, true);
		if (fd < 0 || (!sys(SYS_fstat, fd, &st) && (uint64_t)st.st_size + bytes <= limit))
			return fd;
		sys(SYS_close, fd);
		self.log_number++;
	}
	return -EFBIG;
}

struct append {
	const char *buf;
	size_t bytes;
};

/* One write each, at the end: records of several processes never mix. */
static long append_here(void *arg)
{
	const struct append *a = arg;
	char folder[600];
	uint32_t epoch = epoch_folder(folder, sizeof(folder));

	if (!self.waited || self.waited_epoch != epoch)
		make_folder(folder);
	long fd = log_open_for(epoch, a->bytes), rc;
	if (fd < 0)
		return fd;
	do
		rc = sys(SYS_write, fd, a->buf, a->bytes);
	while (rc == -EINTR);
	sys(SYS_close, fd);
	return rc == (long)a->bytes ? 0 : rc < 0 ? rc : -ENOSPC;
}

static long append(const char *buf, size_t bytes)
{
	struct append a = {buf, bytes};
	long rc = append_here(&a);

	return rc == -EMFILE || rc == -EFBIG ? journal_elsewhere(append_here, &a, -1) : rc;
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
