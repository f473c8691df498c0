// SPDX-License-Identifier: BSD-3-Clause
/* Capturing this process. In order of time:
 *
 *   stopped   collect what only the process itself can tell, and what would change under a
 *             writing child: threads, signals, descriptors with their offsets, shared memory
 *             context_save: this is where the restored process comes back
 *             what was written of large mappings is copied (apart.c)
 *             fork
 *   running   the parent goes on; the child writes (capture_write.c)
 */
#include "image/capture.h"

#include <errno.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fmt.h"
#include "image/hashes.h"
#include "image/resume.h"
#include "image/tree/tree.h"

enum { CHILD_STACK = 256 << 10, WRITERS_KEPT = 8, WRITER_NICE = 5, EXIT_CANT_FORK = 1 };

/* Addresses only; pages come as they are used. */
#define ARENA_RESERVE (1ul << 38)

#define SAVE_MAX_DEFAULT (256ull << 20)

static struct {
	sys_set_t mask;		  /* the caller's, while a capture runs */
	int writer[WRITERS_KEPT]; /* children that may still be writing, or want to be reaped */
	int last_writer;
	bool cant_fork; /* what is forked lacks some of the memory: this process writes by itself */
	uint64_t save_max;
	void *arena;		 /* of the capture that runs */
	volatile uint32_t *said; /* by what is forked: that it can't be; shared with it */
	struct timespec began;	 /* of the program; by the clock that files have, perhaps */
} self;

void capture_init(void)
{
	const char *text = getenv("HALE_FILE_SAVE_MAX");
	if (!self.began.tv_sec)
		sys(SYS_clock_gettime, CLOCK_REALTIME, &self.began);
	if (!text || !units_parse_bytes(text, &self.save_max))
		self.save_max = SAVE_MAX_DEFAULT;
}

uint64_t capture_save_max(void)
{
	return self.save_max ? self.save_max : SAVE_MAX_DEFAULT;
}

void capture_forget(void)
{
	memset(self.writer, 0, sizeof(self.writer));
	image_exclude_remove(self.arena);
	image_exclude_remove((const void *)self.said);
	self.said = NULL;
}

/* Children without an exit signal are seen by no wait() of the program; we take them away. */
static void reap_writers(void)
{
	int status = 0;
	long got;
	for (int i = 0; i < WRITERS_KEPT; i++)
		if (self.writer[i] &&
		    (got = sys(SYS_wait4, self.writer[i], &status, __WCLONE | WNOHANG, NULL))) {
			self.writer[i] = 0;
			self.cant_fork |=
			    got > 0 && WIFEXITED(status) && WEXITSTATUS(status) == EXIT_CANT_FORK;
		}
}

int capture_last_writer(void)
{
	return self.last_writer;
}

bool capture_is_writing(void)
{
	bool any = false;
	reap_writers();
	for (int i = 0; i < WRITERS_KEPT; i++)
		any |= self.writer[i] != 0;
	return any;
}

bool image_is_writing(void)
{
	return capture_is_writing();
}

static void remember_writer(int pid)
{
	for (int i = 0; i < WRITERS_KEPT; i++)
		if (!self.writer[i]) {
			self.writer[i] = pid;
			return;
		}
}

/* ---- collecting ---- */

static hale_status_t no_memory(struct error *err)
{
	return error_set(err, HALE_ERR_MEMORY, "no memory to prepare a checkpoint");
}

static hale_status_t refuse_maps(const struct list *maps, struct error *err)
{
	for (size_t i = 0; i < maps->count; i++) {
		const struct map *m = list_at(maps, i);
		const char *why = map_is_excluded(m->start, m->end) ? NULL : map_refusal(m);
		if (why)
			return error_set(err, HALE_ERR_UNSUPPORTED,
					 "the mapping of %s at %lx is %s, which can't be saved; "
					 "unmap it before the checkpoint",
					 m->name, (unsigned long)m->start, why);
	}
	return HALE_OK;
}

static bool copy_pages(struct capture *c, uint64_t start, uint64_t pages)
{
	struct page_copy *p = list_add(&c->copies);
	void *copy = arena_pages(&c->arena, pages * HALE_PAGE);
	if (!p || !copy)
		return false;
	memcpy(copy, (const void *)start, pages * HALE_PAGE);
	*p = (struct page_copy){start, pages, copy};
	return true;
}

/* Who reads a guard region gets a signal. */
static void leave_guards(struct capture *c, const struct map *m, unsigned char *here)
{
	struct list guards;
	list_init(&guards, &c->arena, sizeof(struct range));
	int fd = (int)sys(SYS_openat, AT_FDCWD, "/proc/thread-self/pagemap", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	if (guards_can_be_seen(fd))
		guards_find(fd, m->start, m->end, &guards);
	sys(SYS_close, fd);
	for (size_t i = 0; i < guards.count; i++) {
		const struct range *g = list_at(&guards, i);
		memset(here + (g->start - m->start) / HALE_PAGE, 0,
		       (g->end - g->start) / HALE_PAGE);
	}
}

/* Shared memory isn't frozen by the fork, so it is copied now; only pages that exist. */
static hale_status_t copy_shared(struct capture *c, const struct map *m, struct error *err)
{
	uint64_t pages = (m->end - m->start) / HALE_PAGE;
	unsigned char *here = arena_alloc(&c->arena, pages);
	bool hidden = !(m->prot & PROT_READ), ok = true;
	if (!here)
		return no_memory(err);
	if (sys(SYS_mincore, m->start, m->end - m->start, here))
		memset(here, 1, pages);
	leave_guards(c, m, here);
	if (hidden)
		sys(SYS_mprotect, m->start, m->end - m->start, PROT_READ);
	for (uint64_t i = 0, n; i < pages && ok; i += n) {
		for (n = 1; i + n < pages && (here[i + n] & 1) == (here[i] & 1); n++)
			;
		if (here[i] & 1)
			ok = copy_pages(c, m->start + i * HALE_PAGE, n);
	}
	if (hidden)
		sys(SYS_mprotect, m->start, m->end - m->start, m->prot);
	return ok ? HALE_OK : no_memory(err);
}

/* The kernel shows of a mapping how its file was opened: mprotect may let it write, then. */
static bool may_write(const struct map_record *r, const char *path)
{
	char link[96];
	struct stat st = {0};
	if (r->prot & PROT_WRITE)
		return true;
	fmt_print(link, sizeof(link), "/proc/thread-self/../../map_files/%lx-%lx",
		  (unsigned long)r->start, (unsigned long)r->end);
	if (!sys(SYS_newfstatat, AT_FDCWD, link, &st, AT_SYMLINK_NOFOLLOW))
		return st.st_mode & S_IWUSR;
	return !sys(SYS_faccessat, AT_FDCWD, path, W_OK);
}

/* With a descriptor its content may be in the image already. */
static bool is_saved(const struct capture *c, const struct stat *st)
{
	for (size_t i = 0; i < c->fds.records.count; i++) {
		const struct fd_record *r = list_at(&c->fds.records, i);
		if (r->kind == FD_FILE && r->has_content && r->truncates &&
		    r->inode == st->st_ino && r->device == st->st_dev)
			return true;
	}
	return false;
}

/* What a shared mapping can change in its file has to be changed back. */
static hale_status_t save_shared_file(struct capture *c, int32_t index, struct error *err)
{
	const struct map_record *r = list_at(&c->map_records, (size_t)index);
	const char *path = c->map_text.data + r->path_offset;
	struct stat st = {0};
	if (sys(SYS_newfstatat, AT_FDCWD, path, &st, 0))
		return error_set(err, HALE_ERR_UNSUPPORTED,
				 "%s is mapped as shared memory, but can't be opened to save it",
				 path);
	if (!(r->prot & PROT_WRITE) && is_saved(c, &st))
		return HALE_OK;
	uint64_t size = (uint64_t)st.st_size, len = r->end - r->start;
	len = size <= r->offset ? 0 : size - r->offset < len ? size - r->offset : len;
	void *data = NULL;
	int rc = -EFBIG;
	if (len <= c->fds.save_max) {
		data = arena_pages(&c->arena, len + 1);
		rc = data ? fd_read_aside(&c->arena, path, data, len, r->offset) : -ENOMEM;
	}
	struct content *content = rc ? NULL : list_add(&c->fds.contents);
	if (!content)
		return error_set(err, HALE_ERR_UNSUPPORTED,
				 "%s is mapped as shared memory of %lu MiB and can't be saved: "
				 "raise HALE_FILE_SAVE_MAX",
				 path, (unsigned long)(len >> 20));
	*content = (struct content){{-1, index, r->offset, size}, data, len};
	return HALE_OK;
}

static hale_status_t collect_shared(struct capture *c, struct error *err)
{
	hale_status_t rc = HALE_OK;
	list_init(&c->copies, &c->arena, sizeof(struct page_copy));
	for (size_t i = 0; i < c->maps.count && rc == HALE_OK; i++) {
		const struct map *m = list_at(&c->maps, i);
		if (map_kind_of(m) == MAP_KIND_SHARED_ANON && !map_is_excluded(m->start, m->end) &&
		    !map_is_kernel(m))
			rc = copy_shared(c, m, err);
	}
	for (size_t i = 0; i < c->map_records.count && rc == HALE_OK; i++) {
		const struct map_record *r = list_at(&c->map_records, i);
		if (r->kind == MAP_KIND_SHARED_FILE &&
		    may_write(r, c->map_text.data + r->path_offset))
			rc = save_shared_file(c, (int32_t)i, err);
	}
	return rc;
}

static hale_status_t collect_threads(struct capture *c, struct error *err)
{
	list_init(&c->threads, &c->arena, sizeof(struct thread_record));
	list_init(&c->timers, &c->arena, sizeof(struct timer_record));
	struct thread_record *me = list_add(&c->threads);
	if (!me)
		return no_memory(err);
	thread_describe(me);
	me->coordinator = 1;
	me->mask = self.mask;
	list_init(&c->scheduling, &c->arena, sizeof(struct sched_record));
	if (!threads_collect(&c->threads) || !signals_collect(&c->signals, &c->timers) ||
	    !scheduling_collect(&c->threads, &c->scheduling))
		return no_memory(err);
	const char *clock = signals_clocks_refusal(&c->timers, c->threads.count);
	if (clock)
		return error_set(err, HALE_ERR_UNSUPPORTED,
				 "a timer of the program counts %s, which can't be saved", clock);
	for (size_t i = 0; i < c->threads.count; i++) {
		struct thread_record *t = list_at(&c->threads, i);
		t->pending &= ~c->signals.pending;
		if (t->flags & THREAD_RSEQ)
			return error_set(
			    err, HALE_ERR_UNSUPPORTED,
			    "thread %d has registered for restartable sequences by "
			    "itself, as tcmalloc does, which can't be saved; leave that "
			    "to libc (glibc.pthread.rseq=1), or use another malloc",
			    t->tid);
	}
	return HALE_OK;
}

/* Until tracking knows better, everything was written. */
static hale_status_t prepare_selection(struct capture *c, struct error *err)
{
	list_init(&c->written, &c->arena, sizeof(struct map_written));
	for (size_t i = 0; i < c->maps.count; i++) {
		struct map_written *w = list_add(&c->written);
		if (!w)
			return no_memory(err);
		w->whole = true;
		list_init(&w->ranges, &c->arena, sizeof(struct range));
	}
	return HALE_OK;
}

/* A descendant reads what its root has taken. */
static void full_begin(struct capture *c)
{
	const struct tree_round *t = tree_now();
	int fd = -1;
	if (!t && !c->params.live)
		fd_full_take(&c->fds);
	if (fd_full_file() >= 0) {
		c->fds.full = fd_full_file() + 1;
	} else if (t && t->full) {
		char path[64];
		fmt_print(path, sizeof(path), "/proc/%d/fd/%d", t->root, t->full - 1);
		fd = (int)sys(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
		c->fds.full = fd >= 0 ? fd + 1 : 0;
		if (fd >= 0)
			image_fd_own(fd);
	}
	c->fds.own_count = engine.own_count;
}

static void full_end(struct capture *c)
{
	int fd = c->fds.full - 1;
	if (fd >= 0 && fd != fd_full_file()) {
		image_fd_disown(fd);
		sys(SYS_close, fd);
	}
	c->fds.full = 0;
}

/* Where a process goes on while the one that it is a copy of has them still. */
static hale_status_t refuse_twice(const struct capture *c, struct error *err)
{
	if (c->fds.locks.count)
		return error_set(err, HALE_ERR_UNSUPPORTED,
				 "descriptor %d has a lock on its file, which can't be taken along "
				 "while this process has it; unlock it before",
				 ((struct file_lock_record *)list_at(&c->fds.locks, 0))->fd);
	if (c->ipc.count)
		return error_set(err, HALE_ERR_UNSUPPORTED,
				 "the program uses System V object %d, which can't be taken along "
				 "while this process has it",
				 ((struct ipc_part *)list_at(&c->ipc, 0))->record.id);
	if (fd_common_first(&c->fds) >= 0)
		return error_set(err, HALE_ERR_UNSUPPORTED,
				 "descriptor %d is of a pipe, a connection or a counter that "
				 "several ranks have, which can't be taken along; close it before",
				 fd_common_first(&c->fds));
	for (size_t i = 0; i < c->fds.records.count; i++) {
		const struct fd_record *r = list_at(&c->fds.records, i);
		struct socket_record s;
		const char *what = r->kind == FD_FIFO	    ? "named pipe"
				   : r->kind == FD_QUEUE    ? "POSIX message queue"
				   : r->kind == FD_TERMINAL ? "terminal"
							    : NULL;
		if (what)
			return error_set(err, HALE_ERR_UNSUPPORTED,
					 "descriptor %d is a %s, which can't be taken along while "
					 "this process has it; close it before",
					 r->fd, what);
		if (r->kind == FD_PID)
			return error_set(err, HALE_ERR_UNSUPPORTED,
					 "descriptor %d is a handle of process %d, which has "
					 "another id where it goes on; close it before",
					 r->fd, (int)r->a);
		if (r->kind == FD_SOCKET && r->same_as < 0 &&
		    fd_socket_record(c->fds.text.data, c->fds.text.len, r, &s) &&
		    (s.name_len || s.peer_name_len))
			return error_set(
			    err, HALE_ERR_UNSUPPORTED,
			    "descriptor %d is a socket with an address, which can't be "
			    "taken along while this process has it; close it before",
			    r->fd);
	}
	return HALE_OK;
}

static bool writes(const struct capture *c, const struct map *m, const struct stat *st)
{
	for (size_t i = 0; i < c->fds.records.count; i++) {
		const struct fd_record *r = list_at(&c->fds.records, i);
		if (r->kind == FD_FILE && r->truncates && r->inode == st->st_ino &&
		    r->device == st->st_dev)
			return true;
	}
	for (size_t i = 0; i < c->maps.count; i++) {
		const struct map *o = list_at(&c->maps, i);
		if (o->shared && o->prot & PROT_WRITE && o->inode == m->inode &&
		    o->device == m->device)
			return true;
	}
	return false;
}

/* A file that was changed after the program's start will be changed again, perhaps, and then is not
 * what was mapped. All of such a private mapping goes into the image, as of a file without a name.
 * One that this process writes itself is set back by this image, and stays a mapping of it. */
static void find_changing(struct capture *c)
{
	const struct map *before = NULL;
	bool changes = false;
	for (size_t i = 0; i < c->maps.count; i++) {
		struct map *m = list_at(&c->maps, i);
		struct stat st = {0};
		if (map_kind_of(m) != MAP_KIND_FILE || map_is_kernel(m))
			continue;
		if (!before || before->inode != m->inode || before->device != m->device)
			changes = !sys(SYS_newfstatat, AT_FDCWD, m->name, &st, 0) &&
				  (st.st_mtim.tv_sec > self.began.tv_sec ||
				   (st.st_mtim.tv_sec == self.began.tv_sec &&
				    st.st_mtim.tv_nsec > self.began.tv_nsec)) &&
				  !writes(c, m, &st);
		m->deleted = changes;
		before = m;
	}
}

static hale_status_t collect(struct capture *c, struct error *err)
{
	hale_status_t rc = maps_scan("/proc/thread-self/maps", &c->arena, &c->maps, err);
	if (rc == HALE_OK)
		rc = refuse_maps(&c->maps, err);
	list_init(&c->map_records, &c->arena, sizeof(struct map_record));
	bytes_init(&c->map_text, &c->arena);
	if (rc == HALE_OK && !maps_find_locked(&c->maps, &c->process.record.lock_future))
		rc = error_set(err, HALE_ERR_SYSTEM, "can't read which memory is locked");
	c->fds = (struct fd_table){.arena = &c->arena,
				   .proc = "/proc/thread-self",
				   .own = engine.own,
				   .own_count = engine.own_count,
				   .beside = c->params.beside ? c->params.beside->pid : NULL,
				   .beside_count = c->params.beside ? c->params.beside->count : 0,
				   .shared = c->params.beside ? &c->params.beside->shared : NULL,
				   .save_max = capture_save_max()};
	memcpy(c->fds.stream, engine.stream, sizeof(engine.stream));
	if (tree_now()) {
		c->fds.tree = arena_alloc(&c->arena, (TREE_MAX + 1) * sizeof(int32_t));
		if (!c->fds.tree)
			return no_memory(err);
		c->fds.tree_count =
		    tree_pids(tree_now(), (int32_t *)(uintptr_t)c->fds.tree, TREE_MAX + 1);
	}
	/* ahead of the stop, descriptors come and go: the library's own connections too */
	if (rc == HALE_OK && !c->ahead) {
		full_begin(c);
		rc = fd_table_scan(&c->fds, err);
		full_end(c);
	}
	if (rc == HALE_OK && !c->params.live)
		find_changing(c);
	if (rc == HALE_OK)
		rc = maps_record(&c->maps, &c->map_records, &c->map_text, err);
	list_init(&c->ipc, &c->arena, sizeof(struct ipc_part));
	if (rc == HALE_OK && !c->ahead)
		rc = ipc_collect(&c->arena, &c->maps, c->fds.tree, c->fds.tree_count,
				 c->params.claim, &c->ipc, err);
	if (rc == HALE_OK && c->params.live)
		rc = refuse_twice(c, err);
	if (rc == HALE_OK)
		rc = process_collect(&c->maps, &c->process, err);
	if (rc == HALE_OK)
		rc = collect_threads(c, err);
	if (rc == HALE_OK && !c->ahead)
		rc = collect_shared(c, err);
	if (rc == HALE_OK)
		rc = prepare_selection(c, err);
	c->process.record.resume = (uint64_t)image_resume;
	return rc;
}

/* ---- the capture ---- */

static hale_status_t check_params(const struct image_params *p, struct error *err)
{
	if (!engine.ready)
		return error_set(err, HALE_ERR_STATE, "image_init has not been called");
	if (p->note_len > IMAGE_NOTE_MAX || (!p->live && strlen(p->path) >= IMAGE_PATH_MAX))
		return error_set(err, HALE_ERR_ARGUMENT, "the image's note or path is too long");
	return HALE_OK;
}

/* Without it the exit status of what was forked says it, some time later. */
static void share_word(void)
{
	if (self.said)
		return;
	long at =
	    sys(SYS_mmap, 0, HALE_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (sys_failed(at))
		return;
	self.said = (volatile uint32_t *)at;
	image_exclude_add((const void *)at, HALE_PAGE);
}

static struct capture *capture_create(const struct image_params *params)
{
	struct arena arena;
	if (!arena_init_most(&arena, ARENA_RESERVE))
		return NULL;
	struct capture *c = arena_alloc(&arena, sizeof(*c));
	if (!c) {
		arena_fini(&arena);
		return NULL;
	}
	c->arena = arena;
	c->params = *params;
	c->incremental = params->incremental;
	c->ahead = params->live && !params->live->last;
	if (!params->live)
		memcpy(c->path, params->path, strlen(params->path) + 1);
	share_word();
	c->said = self.said;
	/* whoever was told that the next one is synchronous may ask before that child has ended */
	self.cant_fork |= self.said && *self.said;
	if (self.cant_fork && !params->live)
		c->params.mode = IMAGE_SYNC;
	c->fd = c->root = -1;
	c->parent = (int32_t)sys(SYS_getpid);
	self.arena = c->arena.base;
	image_exclude_add(c->arena.base, c->arena.reserved);
	return c;
}

static void capture_destroy(struct capture *c)
{
	struct arena arena = c->arena;
	image_exclude_remove(arena.base);
	if (c->fd >= 0 && !c->params.live)
		sys(SYS_close, c->fd);
	arena_fini(&arena);
}

/* The child shares the table of descriptors until it runs, and then leaves it: what the program
 * closes meanwhile is closed, with its locks and addresses. A kernel before 5.9 can't do that. */
static bool can_leave_descriptors(const struct capture *c)
{
	return !c->params.live && !tree_is_member(c->parent) &&
	       sys(SYS_close_range, ~0u, ~0u, 0) == 0;
}

/* The smallest number from `from` on that the child keeps: the library's, and stderr; -1: none. */
static long kept_from(long from)
{
	long best = from <= STDERR_FILENO ? STDERR_FILENO : -1;
	for (size_t i = 0; i < engine.own_count; i++)
		if (engine.own[i] >= from && (best < 0 || engine.own[i] < best))
			best = engine.own[i];
	return best;
}

/* Copies no more of the table than there is to keep. */
static void leave_descriptors(struct capture *c)
{
	long last = STDERR_FILENO;
	for (size_t i = 0; i < engine.own_count; i++)
		last = engine.own[i] > last ? engine.own[i] : last;
	sys(SYS_close_range, last + 1, ~0u, CLOSE_RANGE_UNSHARE);
	for (long at = 0, kept; (kept = kept_from(at)) >= 0; at = kept + 1)
		if (kept > at)
			sys(SYS_close_range, at, kept - 1, 0);
	c->fd = (int)sys(SYS_openat, AT_FDCWD, c->path, O_RDWR | O_CLOEXEC);
}

static void child_main(void *arg)
{
	struct capture *c = arg;
	if (c->shares_descriptors)
		leave_descriptors(c);
	if (tree_is_member(c->parent)) {
		c->root = tree_writer_begin(c->fd);
	} else {
		/* comes when the thread ends that forked; the main one ends with the process */
		if (c->forked_by_leader)
			sys(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL);
		if (sys(SYS_getppid) != c->parent)
			sys(SYS_exit_group, 0);
	}
	struct rlimit64 limit;
	limits_lift_files(&limit);
	/* A round is over sooner when it is as important as the program: then the program has
	 * written less meanwhile, and the next one is shorter. The system call returns 20 - nice. */
	if (!c->params.live)
		sys(SYS_setpriority, 0, 0, 20 - sys(SYS_getpriority, 0, 0) + WRITER_NICE);
	/* or a page could change between its checksum and its way to the file */
	thread_rseq_unregister();
	capture_write(c);
	sys(SYS_exit_group, c->cant_fork ? EXIT_CANT_FORK : 0);
}

static hale_status_t begin_writing(struct capture *c, struct error *err)
{
	c->began_ns = clock_ns();
	c->forked_by_leader = sys(SYS_gettid) == c->parent;
	self.last_writer = 0;
	if (c->params.mode == IMAGE_SYNC) {
		struct rlimit64 limit;
		limits_lift_files(&limit);
		capture_write(c);
		limits_set_files(&limit);
		return HALE_OK;
	}
	/* an own stack: the caller's may be a small alternate stack */
	char *stack = arena_pages(&c->arena, CHILD_STACK);
	c->shares_descriptors = can_leave_descriptors(c);
	if (c->shares_descriptors) {
		sys(SYS_close, c->fd); /* the child opens it again, in a table of its own */
		c->fd = -1;
	}
	long pid = stack ? clone_run(c->shares_descriptors ? CLONE_FILES : 0, stack + CHILD_STACK,
				     NULL, NULL, 0, child_main, c)
			 : -ENOMEM;
	if (pid < 0) {
		if (!c->params.live)
			sys(SYS_unlink, c->path);
		return error_set(err, HALE_ERR_MEMORY,
				 "can't fork to write the checkpoint (error %ld): free memory, or "
				 "checkpoint synchronously",
				 -pid);
	}
	self.last_writer = (int)pid;
	remember_writer((int)pid);
	return HALE_OK;
}

/* The file's place in the descriptor table must not be one that the program then misses. */
static hale_status_t create_file(struct capture *c, struct error *err)
{
	if (c->params.live) {
		c->fd = c->params.live->fd;
		return HALE_OK;
	}
	c->fd =
	    (int)sys(SYS_openat, AT_FDCWD, c->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (c->fd >= 0)
		return HALE_OK;
	if (c->fd == -ENOENT)
		return error_set(err, HALE_ERR_STORE,
				 "can't create the image %s: its folder is not there; is the "
				 "checkpoint directory on a file system that all nodes share?",
				 c->path);
	return error_set(err, c->fd == -ENOSPC ? HALE_ERR_STORE_FULL : HALE_ERR_STORE,
			 "can't create the image %s (error %d): check the checkpoint directory",
			 c->path, -c->fd);
}

/* Returns twice: here, and in every process that is restored from what is written. */
static __attribute__((noinline)) image_return_t save_and_write(struct capture *c, struct error *err)
{
	struct thread_record *me = list_at(&c->threads, 0);
	if (context_save(&me->context))
		return IMAGE_RESTORED;
	track_renew(c);
	if (!selection_init(&c->selection, &c->arena, c->incremental)) {
		no_memory(err);
		return IMAGE_FAILED;
	}
	apart_begin(c);
	hale_status_t rc = begin_writing(c, err);
	apart_end(c);
	return rc == HALE_OK ? IMAGE_CAPTURED : IMAGE_FAILED;
}

static void engine_take_note(const struct image_params *p)
{
	engine.has_passed = false;
	engine.note_len = p->note_len;
	if (p->note_len)
		memcpy(engine.note, p->note, p->note_len);
}

image_return_t image_capture(const struct image_params *params, uint64_t *pause_ns,
			     struct error *err)
{
	struct error local;
	const sys_set_t all = ~0ull;
	uint64_t began = clock_ns();
	image_return_t result = IMAGE_FAILED;
	if (!err)
		err = &local;
	if (check_params(params, err) != HALE_OK)
		return IMAGE_FAILED;
	sys(SYS_rt_sigprocmask, SIG_SETMASK, &all, &self.mask, sizeof(all));
	reap_writers();
	hashes_tidy();
	struct capture *c = capture_create(params);
	if (c) {
		engine_take_note(params);
		if (collect(c, err) == HALE_OK && create_file(c, err) == HALE_OK)
			result = save_and_write(c, err);
		if (result == IMAGE_RESTORED) {
			fd_full_forget();
			/* c was never part of the image */
			threads_await_parked();
			image_resume_finish();
			began = clock_ns();
		} else {
			capture_destroy(c);
		}
		if (!tree_now()) /* else a root has taken it, and gives it back when all have images
				  */
			fd_full_give();
	} else {
		no_memory(err);
	}
	sys(SYS_rt_sigprocmask, SIG_SETMASK, &self.mask, NULL, sizeof(self.mask));
	if (pause_ns)
		*pause_ns = clock_ns() - began;
	return result;
}
