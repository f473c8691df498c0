// SPDX-License-Identifier: BSD-3-Clause
#include "image/sink.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sysmacros.h>

#include "image/ipc/ipc.h"
#include "image/mutexes.h"
#include "image/tree/tree.h"

#define ARENA_RESERVE (1ul << 37)

static hale_status_t no_memory(struct error *err)
{
	return error_set(err, HALE_ERR_MEMORY, "no memory to rebuild the process");
}

/* ---- may this process become the one in the image? ---- */

/* Whoever could put his file in the image's place would be run as us. */
static hale_status_t check_whose(const struct image_file *f, const uint64_t *sum, struct error *err)
{
	struct stat st = {0};
	if (sys(SYS_fstat, f->fd, &st) || st.st_uid != (uid_t)sys(SYS_geteuid))
		return error_set(err, HALE_ERR_IMAGE_MISMATCH,
				 "image %s belongs to another user (%u)", f->path,
				 (unsigned)st.st_uid);
	if (st.st_mode & (S_IWGRP | S_IWOTH))
		return error_set(err, HALE_ERR_IMAGE_MISMATCH,
				 "others may write image %s: `chmod go-w` it if nobody has",
				 f->path);
	if (sum && *sum != f->checksum)
		return error_set(err, HALE_ERR_IMAGE_MISMATCH,
				 "image %s is not the one that its manifest names", f->path);
	return HALE_OK;
}

static hale_status_t open_chain(struct sink *s, const char *const *paths, const uint64_t *sums,
				size_t count, struct error *err)
{
	if (!count || count > IMAGE_CHAIN_MAX)
		return error_set(err, HALE_ERR_ARGUMENT, "a restart needs 1 to %d images",
				 IMAGE_CHAIN_MAX);
	for (size_t i = 0; i < count; i++) {
		hale_status_t rc = image_file_open(&s->file[i], &s->arena, paths[i], err);
		if (rc != HALE_OK)
			return rc;
		s->files++;
		rc = check_whose(&s->file[i], sums ? &sums[i] : NULL, err);
		if (rc != HALE_OK)
			return rc;
	}
	return image_chain_check(s->file, count, err);
}

hale_status_t sink_check_program(const struct sink *s, struct error *err)
{
	const struct image_header *h = &s->file[0].header;
	struct file_stamp stamp = {0};
	char program[256];
	process_program(program, sizeof(program));
	long fd = sys(SYS_openat, AT_FDCWD, "/proc/thread-self/exe", O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		file_stamp_read((int)fd, &stamp);
		sys(SYS_close, fd);
	}
	if (strcmp(program, h->program) || !file_stamp_same(&stamp, &h->program_stamp))
		return error_set(err, HALE_ERR_IMAGE_MISMATCH,
				 "the image is of another program or version of it: %s, not %s",
				 h->program, program);
	uint64_t features = process_xfeatures() | processor_features();
	char names[512];
	if (processor_names(h->xfeatures & ~features, names, sizeof(names)))
		return error_set(
		    err, HALE_ERR_IMAGE_MISMATCH,
		    "the program may use what this processor does not have (%s): go on "
		    "where it is, and start programs for both with --cpu-baseline",
		    names);
	if (h->xfeatures & ~features)
		return error_set(err, HALE_ERR_IMAGE_MISMATCH,
				 "the image was taken on a processor with more features (%lx, here "
				 "%lx): restart on one like it",
				 (unsigned long)h->xfeatures, (unsigned long)features);
	return HALE_OK;
}

hale_status_t sink_check_kernel(const struct sink *s, const struct kernel_region *then,
				uint64_t vdso_sum, struct error *err)
{
	struct kernel_region now[PROCESS_REGIONS];
	uint64_t sum;
	process_kernel_regions(&s->here, now, &sum);
	bool same = sum == vdso_sum;
	for (int i = 0; i < PROCESS_REGIONS; i++)
		same &= now[i].end - now[i].start == then[i].end - then[i].start;
	if (!same)
		return error_set(err, HALE_ERR_IMAGE_MISMATCH,
				 "the image was taken under another kernel (its vDSO differs): "
				 "restart under the same kernel version");
	return HALE_OK;
}

hale_status_t sink_check_entry(const struct sink *s, struct error *err)
{
	for (size_t i = 0; i < s->t.map_count; i++)
		if (map_is_excluded(s->t.maps[i].start, s->t.maps[i].end))
			return error_set(
			    err, HALE_ERR_STATE,
			    "memory of the image at %lx is in use by the library itself",
			    (unsigned long)s->t.maps[i].start);
	for (size_t i = 0; i < s->t.map_count; i++)
		if (s->t.process->resume >= s->t.maps[i].start &&
		    s->t.process->resume < s->t.maps[i].end && s->t.maps[i].prot & PROT_EXEC)
			return HALE_OK;
	return image_file_corrupt(&s->file[0], "entry", err);
}

/* ---- what the restored side will need ---- */

static void *keep(struct sink *s, const void *data, size_t len)
{
	void *copy = arena_alloc(&s->scratch, len + 1);
	if (copy && len)
		memcpy(copy, data, len);
	return copy;
}

/* Locks of all images: one that lies in a page which only an old image has is still held. */
static hale_status_t read_locks(struct sink *s, struct error *err)
{
	list_init(&s->locks, &s->arena, sizeof(struct lock_record));
	for (size_t k = 0; k < s->files; k++) {
		for (size_t i = 0; i < s->file[k].frames.count; i++) {
			struct frame_at *n = list_at(&s->file[k].frames, i);
			if (n->frame.kind != FRAME_LOCKS)
				continue;
			hale_status_t rc = image_file_table(&s->file[k], n, err);
			if (rc != HALE_OK)
				return rc;
			if (!sink_add_locks(s, n->table, n->frame.table_len))
				return no_memory(err);
		}
	}
	return HALE_OK;
}

bool sink_add_locks(struct sink *s, const struct lock_record *r, size_t bytes)
{
	for (size_t i = 0; i < bytes / sizeof(*r); i++) {
		struct lock_record *l = list_add(&s->locks);
		if (!l)
			return false;
		*l = r[i];
	}
	return true;
}

/* Of these, those that can be: what is in an image isn't believed. */
static bool keep_locks(struct sink *s)
{
	struct list locks;
	list_init(&locks, &s->scratch, sizeof(struct lock_record));
	if (!mutexes_add_robust(s, &s->locks))
		return false;
	for (size_t i = 0; i < s->locks.count; i++) {
		const struct lock_record *r = list_at(&s->locks, i);
		uint64_t end;
		size_t map;
		if (r->address & 3 || !sink_stage_of(s, r->address, &end, &map) ||
		    r->address + 16 > end || !(s->t.maps[map].prot & PROT_WRITE))
			continue;
		struct lock_record *l = list_add(&locks);
		if (!l)
			return false;
		*l = *r;
	}
	s->plan->locks = locks.items;
	s->plan->lock_count = locks.count;
	return true;
}

/* Mappings that were locked. */
static bool keep_locked(struct sink *s)
{
	const size_t count = s->t.map_count;
	struct range *locked = arena_alloc(&s->scratch, count * sizeof(*locked));
	bool *on_fault = arena_alloc(&s->scratch, count);
	if (!locked || !on_fault)
		return false;
	for (size_t i = 0; i < count; i++) {
		const struct map_record *m = &s->t.maps[i];
		if (!(m->flags & MAP_FLAG_LOCKED))
			continue;
		on_fault[s->plan->locked_count] = m->flags & MAP_FLAG_ONFAULT;
		locked[s->plan->locked_count++] = (struct range){m->start, m->end};
	}
	s->plan->locked = locked;
	s->plan->locked_on_fault = on_fault;
	return true;
}

hale_status_t sink_make_plan(struct sink *s, struct error *err)
{
	const struct image_tables *t = &s->t;
	struct resume_plan *p = s->plan = arena_alloc(&s->scratch, sizeof(*p));
	if (!p)
		return no_memory(err);
	if (!keep_locks(s) || !keep_locked(s))
		return no_memory(err);
	p->scratch = s->gap;
	p->scratch_len = s->gap_len;
	p->process = keep(s, t->process, sizeof(*t->process));
	p->auxv = keep(s, t->auxv, t->process->auxv_len);
	p->signals = keep(s, t->signals, sizeof(*t->signals));
	p->timers = keep(s, t->timers, t->timer_count * sizeof(*t->timers));
	p->timer_count = t->timer_count;
	p->threads = keep(s, t->threads, t->thread_count * sizeof(*t->threads));
	p->thread_count = t->thread_count;
	p->tids = arena_alloc(&s->scratch, t->thread_count * sizeof(*p->tids));
	p->scheduling = keep(s, t->scheduling, t->scheduling_count * sizeof(*t->scheduling));
	p->scheduling_count = t->scheduling_count;
	scheduling_read(&p->began, 0);
	p->advice = keep(s, t->advice, t->advice_count * sizeof(*t->advice));
	p->advice_count = t->advice_count;
	p->stacks = arena_pages(&s->scratch, t->thread_count * RESUME_STACK);
	p->live_fd = s->live_fd;
	p->has_passed = engine.has_passed;
	p->passed_len = engine.passed_len;
	memcpy(p->passed, engine.passed, sizeof(p->passed));
	engine_streams(p->stream); /* descriptors aren't placed yet */
	for (size_t i = 0; s->how == IMAGE_LAZY && i < s->files; i++) {
		struct stat st = {0};
		if (sys(SYS_fstat, s->file[i].fd, &st))
			continue;
		uint64_t device = (uint64_t)major(st.st_dev) << 32 | minor(st.st_dev);
		p->source[p->source_count++] = (struct file_identity){device, st.st_ino};
	}
	return p->process && p->auxv && p->signals && p->timers && p->threads && p->tids &&
		       p->stacks && p->scheduling && p->advice
		   ? HALE_OK
		   : no_memory(err);
}

/* ---- descriptors ---- */

hale_status_t sink_read_contents(struct image_file *f, struct arena *a, struct content **list,
				 size_t *count, struct error *err)
{
	struct list contents;
	list_init(&contents, a, sizeof(struct content));
	for (size_t i = 0; i < f->frames.count; i++) {
		struct frame_at *n = list_at(&f->frames, i);
		if (n->frame.kind != FRAME_CONTENT)
			continue;
		hale_status_t rc = image_file_table(f, n, err);
		if (rc != HALE_OK)
			return rc;
		struct content *c = list_add(&contents);
		char *data = arena_pages(a, n->frame.raw_len + 1);
		if (!c || !data)
			return no_memory(err);
		if (n->frame.table_len != sizeof(c->record))
			return image_file_corrupt(f, "content", err);
		memcpy(&c->record, n->table, sizeof(c->record));
		c->data = data;
		c->len = n->frame.raw_len;
		rc = image_file_data(f, n, data, NULL, err);
		if (rc != HALE_OK)
			return rc;
	}
	*list = contents.items;
	*count = contents.count;
	return HALE_OK;
}

hale_status_t sink_open_descriptors(struct sink *s, struct error *err)
{
	s->fds = (struct fd_restore){.arena = &s->arena,
				     .record = s->t.fds,
				     .count = s->t.fd_count,
				     .text = s->t.fd_text,
				     .text_len = s->t.fd_text_len,
				     .content = s->contents,
				     .content_count = s->content_count,
				     .lock = s->t.file_locks,
				     .lock_count = s->t.file_lock_count,
				     .owner = s->t.owners,
				     .owner_count = s->t.owner_count,
				     .old_pid = s->t.process->pid};
	return fd_restore_open(&s->fds, err) ? HALE_OK : err->code;
}

/* ---- the process as a whole ---- */

hale_status_t sink_enter_folder(const struct sink *s, struct error *err)
{
	long rc = sys(SYS_chdir, s->t.cwd);
	if (rc)
		return error_set(err, HALE_ERR_STORE,
				 "the working directory %s can't be entered (error %ld): make it "
				 "again to restart from here",
				 s->t.cwd, -rc);
	return HALE_OK;
}

static void set_attributes(const struct sink *s)
{
	const struct process_record *p = s->t.process;
	sys(SYS_umask, p->umask);
	limits_raise(); /* to what they were when all is in place */
	if (p->dumpable <= 1)
		sys(SYS_prctl, PR_SET_DUMPABLE, p->dumpable);
	sys(SYS_prctl, PR_SET_CHILD_SUBREAPER, (p->attributes & PROCESS_SUBREAPER) != 0);
	sys(SYS_prctl, PR_SET_THP_DISABLE, (p->attributes & PROCESS_NO_HUGE_PAGES) != 0, 0, 0, 0);
}

/* ---- all of it ---- */

struct sink *sink_create(struct error *err)
{
	struct arena arena;
	if (!arena_init_most(&arena, ARENA_RESERVE)) {
		no_memory(err);
		return NULL;
	}
	struct sink *s = arena_alloc(&arena, sizeof(*s));
	if (!s) {
		arena_fini(&arena);
		no_memory(err);
		return NULL;
	}
	s->arena = arena;
	s->live_fd = -1;
	list_init(&s->locks, &s->arena, sizeof(struct lock_record));
	if (maps_scan("/proc/thread-self/maps", &s->arena, &s->here, err) == HALE_OK)
		return s;
	sink_destroy(s);
	return NULL;
}

void sink_destroy(struct sink *s)
{
	for (size_t i = 0; i < s->files; i++)
		image_file_close(&s->file[i]);
	if (s->gap)
		sys(SYS_munmap, s->gap, s->gap_len);
	struct arena arena = s->arena;
	arena_fini(&arena);
}

static hale_status_t prepare(struct sink *s, const char *const *paths, const uint64_t *sums,
			     size_t count, struct error *err)
{
	hale_status_t rc = open_chain(s, paths, sums, count, err);
	if (rc == HALE_OK)
		rc = image_file_tables(&s->file[0], &s->t, err);
	if (rc == HALE_OK)
		rc = sink_check_program(s, err);
	if (rc == HALE_OK)
		rc = sink_check_kernel(s, s->t.process->region, s->t.process->vdso_sum, err);
	if (rc == HALE_OK)
		rc = sink_check_entry(s, err);
	if (rc == HALE_OK)
		rc = sink_enter_folder(s, err);
	if (rc == HALE_OK)
		rc = sink_read_contents(&s->file[0], &s->arena, &s->contents, &s->content_count,
					err);
	if (rc == HALE_OK)
		rc = tree_begin(s, err);
	if (rc == HALE_OK && !tree_has_begun())
		rc = ipc_begin(&(struct image_file *){&s->file[0]}, 1, &s->arena, err);
	if (rc == HALE_OK)
		rc = sink_open_descriptors(s, err);
	if (rc == HALE_OK)
		rc = sink_find_gap(s, err);
	if (rc == HALE_OK)
		rc = sink_stage(s, err);
	if (rc == HALE_OK)
		rc = read_locks(s, err);
	if (rc == HALE_OK)
		rc = sink_make_plan(s, err);
	return rc;
}

/* A number that none of the image's descriptors has. */
static bool lift_live(struct sink *s, struct error *err)
{
	if (s->live_fd < 0)
		return true;
	int high = (int)sys(SYS_fcntl, s->live_fd, F_DUPFD_CLOEXEC, s->fds.floor);
	if (high < 0) {
		error_set(err, HALE_ERR_SYSTEM,
			  "too few descriptors to rebuild the process: raise `ulimit -n`");
		return false;
	}
	image_fd_disown(s->live_fd);
	sys(SYS_close, s->live_fd);
	s->live_fd = s->plan->live_fd = high;
	image_fd_own(high);
	return true;
}

hale_status_t sink_become(struct sink *s, struct error *err)
{
	const sys_set_t all = ~0ull;
	hale_status_t rc = s->keep_files ? HALE_OK : sink_settle_files(s, err);
	/* others of its tree may run on before this one has its handlers: a signal from them waits,
	 * where it would end this process, or be lost (SIGCHLD) */
	sys(SYS_rt_sigprocmask, SIG_SETMASK, &all, NULL, sizeof(all));
	if (rc == HALE_OK && !fd_restore_settle(&s->fds, err))
		rc = err->code;
	tree_terminals_take();
	if (rc == HALE_OK)
		rc = tree_meet(err);
	tree_terminals_group();
	ipc_settle();
	if (rc == HALE_OK && !lift_live(s, err))
		rc = err->code;
	if (rc == HALE_OK && !fd_restore_place(&s->fds, engine.own, engine.own_count, err))
		rc = err->code;
	if (rc == HALE_OK)
		rc = sink_plan_switch(s, err);
	if (rc != HALE_OK)
		return rc;
	set_attributes(s);
	sink_switch(s);
}

hale_status_t image_sink(const char *const *paths, const uint64_t *sums, size_t count,
			 image_restart_t how, struct error *err)
{
	struct error local;
	if (!err)
		err = &local;
	struct sink *s = sink_create(err);
	if (!s)
		return err->code;
	s->how = how;
	hale_status_t rc = prepare(s, paths, sums, count, err);
	if (rc == HALE_OK)
		rc = sink_become(s, err);
	ipc_settle();
	tree_fail();
	sink_destroy(s);
	return rc;
}
