// SPDX-License-Identifier: BSD-3-Clause
/* A rebuilt tree: what its processes share, then the processes, before any of them is itself. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fmt.h"
#include "base/ids.h"
#include "image/sink.h"
#include "image/tree/objects.h"
#include "image/tree/tree.h"

enum { MEET_S = 60, LOOK_NS = 20000000, GROUP_TRIES = 1000, ID_TRIES = 2000, EXIT_FAILED = 70 };

/* Of this process, until its memory is exchanged. */
static struct tree_sink *joined;

static bool is_root(const struct tree_sink *t)
{
	return t->root == (int32_t)sys(SYS_getpid);
}

/* ---- the images of the descendants ---- */

static hale_status_t find_records(struct sink *s, const struct tree_record **r, size_t *count,
				  struct error *err)
{
	*count = 0;
	for (size_t i = 0; i < s->file[0].frames.count; i++) {
		struct frame_at *n = list_at(&s->file[0].frames, i);
		if (n->frame.kind != FRAME_TREE)
			continue;
		hale_status_t rc = image_file_table(&s->file[0], n, err);
		if (rc != HALE_OK)
			return rc;
		if (n->frame.table_len != n->frame.count * sizeof(**r) ||
		    n->frame.count > TREE_MAX + 1 || n->frame.count < 2)
			return image_file_corrupt(&s->file[0], "child processes", err);
		*r = n->table;
		*count = n->frame.count;
	}
	return HALE_OK;
}

static hale_status_t unpack_image(struct sink *s, int32_t pid, int fd, char *buffer,
				  struct error *err)
{
	uint64_t have = 0, total = 1;
	for (size_t i = 0; i < s->file[0].frames.count; i++) {
		struct frame_at *n = list_at(&s->file[0].frames, i);
		if (n->frame.kind != FRAME_TREE_PART)
			continue;
		hale_status_t rc = image_file_table(&s->file[0], n, err);
		const struct tree_part *p = n->table;
		if (rc != HALE_OK)
			return rc;
		if (n->frame.table_len != sizeof(*p) || n->frame.raw_len > FRAME_DATA_MAX)
			return image_file_corrupt(&s->file[0], "child process", err);
		if (p->pid != pid)
			continue;
		rc = image_file_data(&s->file[0], n, buffer, NULL, err);
		if (rc != HALE_OK)
			return rc;
		if (sys_write_at(fd, buffer, n->frame.raw_len, p->offset))
			return error_set(err, HALE_ERR_MEMORY,
					 "no memory to rebuild child process %d", pid);
		have += n->frame.raw_len;
		total = p->total;
	}
	return have == total ? HALE_OK : image_file_corrupt(&s->file[0], "child process", err);
}

/* Below no number that images have; stays open in who is executed. */
static int lift(int fd)
{
	enum { FLOOR = 64 };
	if (fd < 0)
		return fd;
	int high = (int)sys(SYS_fcntl, fd, F_DUPFD, FLOOR);
	sys(SYS_close, fd);
	return high;
}

static hale_status_t unpack_images(struct sink *s, struct tree_sink *t, struct objects *o,
				   const struct tree_record *r, size_t count, struct error *err)
{
	char *buffer = arena_pages(&s->arena, FRAME_DATA_MAX);
	hale_status_t rc = HALE_OK;
	for (size_t i = 0; i < count && rc == HALE_OK; i++) {
		int fd = -1;
		if (!r[i].is.ended) {
			fd = lift((int)sys(SYS_memfd_create, "hale-image", 0));
			if (!buffer || fd < 0 || sys(SYS_fchmod, fd, 0600))
				return error_set(err, HALE_ERR_MEMORY,
						 "no memory to rebuild child process %d",
						 r[i].is.pid);
			rc = unpack_image(s, r[i].is.pid, fd, buffer, err);
			if (rc == HALE_OK)
				rc = objects_take_image(o, r[i].is.pid, fd, err);
			t->processes++;
		}
		t->image[t->images].pid = r[i].is.pid;
		t->image[t->images].fd = fd;
		t->image[t->images++].is = r[i];
	}
	return rc;
}

/* ---- the processes ---- */

static void fail(struct tree_sink *t)
{
	atomic_store(&t->failed, 1);
	sys_futex_wake((uint32_t *)&t->ready, INT32_MAX);
}

static void die(struct tree_sink *t)
{
	fail(t);
	_exit(EXIT_FAILED);
}

/* As the child that this one was: nobody has waited for it. */
static void end_as(const struct tree_record *r)
{
	const struct rlimit none = {0, 0};
	setrlimit(RLIMIT_CORE, &none);
	if (r->code == CLD_EXITED)
		_exit(r->status);
	signal(r->status, SIG_DFL);
	kill(getpid(), r->status);
	sigset_t all;
	sigfillset(&all);
	sigprocmask(SIG_UNBLOCK, &all, NULL);
	kill(getpid(), SIGKILL);
	_exit(EXIT_FAILED);
}

/* HALE_SINK of this process; the rest of the environment is the root's. */
static void execute(struct tree_sink *t, uint32_t i, const char *program)
{
	static const char name[] = "HALE_SINK=";
	static char text[64];
	char *argv[] = {(char *)(uintptr_t)program, NULL};
	fmt_print(text, sizeof(text), "%smember:%d:%d", name, objects_control_fd(), t->image[i].fd);
	for (char **e = environ; *e; e++)
		if (!strncmp(*e, name, sizeof(name) - 1))
			*e = text;
	execve(program, argv, environ);
	log_warn("child process %d can't be rebuilt: %s can't be executed (error %d)",
		 t->image[i].pid, program, errno);
	die(t);
}

static void spawn_children(struct tree_sink *t, const struct objects *o, int32_t parent,
			   int32_t old_group, int32_t group);

static void become(struct tree_sink *t, const struct objects *o, uint32_t i, int32_t old_group,
		   int32_t group)
{
	const struct tree_process *p = &t->image[i].is.is;
	const struct timespec tick = {0, 1000000};
	int rc = 0;
	if (p->session == p->pid)
		rc = setsid() < 0 ? -1 : 0;
	else if (p->group == p->pid)
		rc = setpgid(0, 0);
	else if (p->group != old_group)
		for (int k = 0; k < GROUP_TRIES && (rc = setpgid(0, p->group)) != 0; k++)
			nanosleep(&tick, NULL);
	else
		rc = setpgid(0, group);
	if (rc) {
		log_warn("child process %d can't be put into its group again (error %d)", p->pid,
			 errno);
		die(t);
	}
	if (p->ended)
		end_as(&t->image[i].is);
	spawn_children(t, o, p->pid, old_group, group);
	execute(t, i, objects_program(o, p->pid));
}

static void spawn_children(struct tree_sink *t, const struct objects *o, int32_t parent,
			   int32_t old_group, int32_t group)
{
	const struct timespec tick = {0, 1000000};
	for (uint32_t i = 0; i < t->images; i++) {
		const struct tree_process *p = &t->image[i].is.is;
		if (p->parent != parent)
			continue;
		pid_t pid = -1;
		/* who had it has been killed, and may not have been waited for yet */
		for (int k = 0; k < ID_TRIES && (pid = ids_fork(p->pid)) < 0 && errno == EEXIST;
		     k++)
			nanosleep(&tick, NULL);
		if (pid == 0)
			become(t, o, i, old_group, group);
		if (pid > 0) {
			atomic_store(&t->image[i].made, 1);
			continue;
		}
		log_warn("child process %d (%s) can't be rebuilt under its id (error %d)", p->pid,
			 p->name, errno);
		fail(t);
		return;
	}
}

static hale_status_t begin_ipc(struct tree_sink *t, struct objects *o, struct error *err)
{
	struct image_file *file[TREE_MAX + 1];
	size_t moved;
	for (size_t i = 0; i < o->images; i++)
		file[i] = o->image[i].file;
	hale_status_t rc = ipc_begin(file, o->images, &o->sink->arena, err);
	const struct ipc_moved *list = ipc_moved_list(&moved);
	memcpy(t->moved, list, moved * sizeof(*list));
	t->moved_count = (uint32_t)moved;
	return rc;
}

hale_status_t tree_begin(struct sink *s, struct error *err)
{
	const struct tree_record *r = NULL;
	size_t count;
	hale_status_t rc = find_records(s, &r, &count, err);
	if (rc != HALE_OK || !count)
		return rc;
	if (s->live_fd >= 0 || s->t.process->pid != (int32_t)sys(SYS_getpid))
		return error_set(err, HALE_ERR_STATE,
				 "the process had children, and can't have its id (%d) again: "
				 "something else has it, or Hale may not ask for it",
				 s->t.process->pid);
	struct objects o;
	struct tree_sink *t = objects_init(&o, s, err);
	if (!t)
		return err->code;
	t->root = s->t.process->pid;
	t->processes = 1;
	t->passed_len = engine.passed_len;
	memcpy(t->passed, engine.passed, sizeof(t->passed));
	rc = unpack_images(s, t, &o, r + 1, count - 1, err);
	if (rc == HALE_OK)
		rc = objects_make(&o, err);
	if (rc == HALE_OK)
		rc = begin_ipc(t, &o, err);
	if (rc != HALE_OK)
		return rc;
	joined = t;
	spawn_children(t, &o, t->root, r[0].is.group, t->root);
	if (atomic_load(&t->failed))
		return error_set(err, HALE_ERR_STATE, "its child processes can't be made again");
	return HALE_OK;
}

/* ---- meeting ---- */

static bool is_lost(int32_t pid)
{
	struct tree_process p;
	return !tree_look(pid, &p) || p.ended;
}

/* Before it is made somebody else may have the id of a descendant: who was killed, for instance. */
static bool any_lost(const struct tree_sink *t)
{
	if (!is_root(t))
		return is_lost(t->root);
	for (uint32_t i = 0; i < t->images; i++)
		if (atomic_load(&t->image[i].made) && !t->image[i].is.is.ended &&
		    is_lost(t->image[i].pid))
			return true;
	return false;
}

hale_status_t tree_meet(struct error *err)
{
	struct tree_sink *t = joined;
	const struct timespec tick = {0, LOOK_NS};
	uint64_t deadline = clock_ns() + MEET_S * 1000000000ull;
	if (!t)
		return HALE_OK;
	atomic_fetch_add(&t->ready, 1);
	sys_futex_wake((uint32_t *)&t->ready, INT32_MAX);
	for (uint32_t ready; (ready = atomic_load(&t->ready)) < t->processes;) {
		bool lost = clock_ns() > deadline || any_lost(t);
		/* who was ready last may run on at once, and may have ended by itself since */
		lost = lost && atomic_load(&t->ready) < t->processes;
		if (atomic_load(&t->failed) || lost) {
			fail(t);
			return error_set(err, HALE_ERR_PROCESS,
					 "another process of its tree can't be rebuilt");
		}
		sys_futex_wait((uint32_t *)&t->ready, ready, &tick);
	}
	return HALE_OK;
}

void tree_member_sink(const char *spec, struct error *err)
{
	char path[64];
	const char *paths[] = {path};
	char *rest;
	long control = strtol(spec, &rest, 10),
	     image = *rest == ':' ? strtol(rest + 1, NULL, 10) : -1;
	void *at = mmap(NULL, sizeof(*joined), PROT_READ | PROT_WRITE, MAP_SHARED, (int)control, 0);
	if (at == MAP_FAILED) {
		error_set(err, HALE_ERR_MEMORY, "no memory to rebuild a child process");
		return;
	}
	joined = at;
	fmt_print(path, sizeof(path), "/proc/self/fd/%ld", image);
	if (joined->magic != TREE_MAGIC)
		error_set(err, HALE_ERR_STATE, "this process was not started to be rebuilt");
	else if (image_pass(joined->passed, joined->passed_len) == HALE_OK)
		image_sink(paths, NULL, 1, IMAGE_FULL, err);
	fail(joined);
}

void tree_fail(void)
{
	if (joined)
		fail(joined);
}

/* ---- what several processes have ---- */

static const struct tree_object *object_of(uint32_t kind, uint64_t device, uint64_t inode)
{
	for (uint32_t i = 0; joined && i < joined->objects; i++) {
		const struct tree_object *o = &joined->object[i];
		if (o->kind == kind && o->inode == inode &&
		    (o->device == device || kind == TREE_PIPE || kind == TREE_SOCKET ||
		     kind == TREE_TERMINAL))
			return o;
	}
	return NULL;
}

int tree_object_open(const struct fd_restore *f, const struct fd_record *r)
{
	const struct tree_object *o = NULL;
	if (!joined)
		return -1;
	switch (r->kind) {
	case FD_PIPE:
		o = object_of(TREE_PIPE, 0, r->inode);
		return o ? fd_lift(f, fd_pipe_open(r->b ? o->fd : o->other, r)) : -1;
	case FD_FIFO:
		o = r->open_flags & O_PATH ? NULL : object_of(TREE_FIFO, r->device, r->inode);
		return o ? fd_lift(f, fd_fifo_open(o->fd, r)) : -1;
	case FD_SOCKETPAIR:
	case FD_SOCKET:
		o = object_of(TREE_SOCKET, 0, r->inode);
		break;
	case FD_FILE:
		o = object_of(TREE_FILE, r->a ? r->a : (uint64_t)f->old_pid,
			      r->a ? r->b : (uint64_t)r->fd);
		break;
	case FD_UNLINKED:
		o = object_of(TREE_FILE, (uint64_t)(r->interval_s ? r->interval_s : f->old_pid),
			      (uint64_t)(r->interval_s ? r->interval_ns : r->fd));
		if (o)
			break;
		o = object_of(TREE_MEMORY, r->device, r->inode);
		return o ? fd_nameless_again(f, o->fd, r) : -1;
	case FD_TERMINAL:
		o = object_of(TREE_TERMINAL, 0, r->a);
		return o ? fd_lift(f, fd_terminal_open((const int[]){o->fd, o->other}, r)) : -1;
	case FD_EVENT:
	case FD_TIMER:
	case FD_INOTIFY:
		o = object_of(TREE_FILE, r->offset ? r->offset : (uint64_t)f->old_pid,
			      r->offset ? r->size : (uint64_t)r->fd);
		break;
	case FD_PID:
		o = r->a ? NULL : object_of(TREE_ENDED, 0, r->inode);
		break;
	}
	return o ? (int)sys(SYS_fcntl, o->fd, F_DUPFD_CLOEXEC, f->floor) : -1;
}

static void terminals_set(unsigned long request, bool group)
{
	for (uint32_t i = 0; joined && i < joined->objects; i++) {
		const struct tree_object *o = &joined->object[i];
		int value = (int)o->device;
		if (o->kind != TREE_TERMINAL || o->other < 0 ||
		    o->reserved != (int32_t)sys(SYS_getpid))
			continue;
		if (!group)
			sys(SYS_ioctl, o->other, request, 0);
		else if (value)
			sys(SYS_ioctl, o->other, request, &value);
	}
}

void tree_terminals_take(void)
{
	terminals_set(TIOCSCTTY, false);
}

void tree_terminals_group(void)
{
	terminals_set(TIOCSPGRP, true);
}

bool tree_has_begun(void)
{
	return joined != NULL;
}

const struct ipc_moved *tree_ipc_moved(size_t *count)
{
	*count = joined ? joined->moved_count : 0;
	return joined ? joined->moved : NULL;
}

bool tree_is_made(int32_t pid)
{
	if (pid == (int32_t)sys(SYS_getpid) || (joined && pid == joined->root))
		return true;
	for (uint32_t i = 0; joined && i < joined->images; i++)
		if (joined->image[i].pid == pid)
			return atomic_load(&joined->image[i].made);
	return false;
}

int tree_memory(uint64_t device, uint64_t inode)
{
	const struct tree_object *o = object_of(TREE_MEMORY, device, inode);
	return o ? (int)sys(SYS_fcntl, o->fd, F_DUPFD_CLOEXEC, 0) : -1;
}
