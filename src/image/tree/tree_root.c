// SPDX-License-Identifier: BSD-3-Clause
/* The root's side: stopping all descendants, and letting them go. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#include "base/fmt.h"
#include "base/ids.h"
#include "image/fd/fd.h"
#include "image/tree/tree.h"

enum { STOP_S = 5, CAPTURE_S = 120, AGAIN_NS = 5000000, LOOK_RESERVE = 64 << 20 };

static struct {
	struct tree_round *round;
	int fd;
} self = {.fd = -1};

/* tree_member.c */
extern const struct tree_round *tree_joined;

const struct tree_round *tree_now(void)
{
	return self.round ? self.round : tree_joined;
}

static hale_status_t round_open(const struct image_params *of, struct error *err)
{
	int adopts = 0;
	self.fd = (int)sys(SYS_memfd_create, "hale-tree", MFD_CLOEXEC);
	long at = self.fd < 0 ? self.fd : sys(SYS_ftruncate, self.fd, sizeof(*self.round));
	if (!at)
		at = sys(SYS_mmap, 0, sizeof(*self.round), PROT_READ | PROT_WRITE, MAP_SHARED,
			 self.fd, 0);
	if (self.fd >= 0)
		image_fd_own(self.fd);
	if (sys_failed(at))
		return error_set(err, HALE_ERR_MEMORY,
				 "no memory to capture its child processes (error %ld)", -at);
	struct tree_round *t = self.round = (struct tree_round *)at;
	image_exclude_add(t, ALIGN_UP(sizeof(*t), HALE_PAGE));
	t->root = (int32_t)sys(SYS_getpid);
	t->identity = of->identity;
	t->id = of->identity.id;
	t->compress = of->compress;
	sys(SYS_prctl, PR_GET_CHILD_SUBREAPER, &adopts);
	atomic_store(&t->mode, adopts ? IMAGE_SYNC : of->mode);
	memcpy(t->stream, engine.stream, sizeof(t->stream));
	/* one that is still written, of a round that came to nothing, is another file */
	fmt_print(t->path, sizeof(t->path), "%s.%lx", of->path, (unsigned long)clock_ns());
	t->magic = TREE_MAGIC;
	return HALE_OK;
}

static void round_close(void)
{
	if (self.round) {
		image_exclude_remove(self.round);
		sys(SYS_munmap, self.round, sizeof(*self.round));
	}
	if (self.fd >= 0) {
		image_fd_disown(self.fd);
		sys(SYS_close, self.fd);
	}
	self.round = NULL;
	self.fd = -1;
}

void tree_restored(void)
{
	tree_stopped_settle();
	if (self.round)
		image_exclude_remove(self.round);
	if (self.fd >= 0)
		image_fd_disown(self.fd);
	self.round = NULL;
	self.fd = -1;
}

static struct tree_member *member_of(struct tree_round *t, int32_t pid)
{
	for (uint32_t i = 0; i < atomic_load(&t->count); i++)
		if (t->member[i].is.pid == pid && atomic_load(&t->member[i].state) != TREE_GONE)
			return &t->member[i];
	return NULL;
}

static void ask(const struct tree_member *m)
{
	union {
		siginfo_t info;
		char room[128];
	} u = {0};
	u.info.si_signo = SIGURG;
	u.info.si_code = SI_QUEUE;
	u.info.si_pid = self.round->root;
	u.info.si_uid = (uid_t)sys(SYS_getuid);
	u.info.si_value.sival_int = self.fd;
	sys(SYS_rt_sigqueueinfo, m->is.pid, SIGURG, &u.info);
}

static bool parent_stands(const struct tree_process *p)
{
	struct tree_round *t = self.round;
	const struct tree_member *parent = member_of(t, p->parent);
	return p->parent == t->root || (parent && atomic_load(&parent->state) == TREE_STOPPED);
}

/* One look at all of them. Returns how many do not stand still yet, new ones among them; -1: no. */
static int look(struct error *err)
{
	struct tree_round *t = self.round;
	static struct tree_process found[TREE_MAX];
	size_t count;
	int moving = 0;
	if (!tree_find(t->root, found, TREE_MAX, &count) || count > TREE_MAX) {
		error_set(err, HALE_ERR_AGAIN,
			  count > TREE_MAX ? "it has more than %d child processes"
					   : "its child processes can't be listed (at most %d)",
			  TREE_MAX);
		return -1;
	}
	for (uint32_t i = 0; i < atomic_load(&t->count); i++) {
		bool there = false;
		for (size_t k = 0; k < count; k++)
			there |= found[k].pid == t->member[i].is.pid;
		if (!there)
			atomic_store(&t->member[i].state, TREE_GONE);
	}
	for (size_t k = 0; k < count; k++) {
		struct tree_member *m = member_of(t, found[k].pid);
		uint32_t n = atomic_load(&t->count);
		if (!m && n == TREE_MAX) {
			error_set(err, HALE_ERR_AGAIN, "its child processes come and go too fast");
			return -1;
		}
		if (!m) {
			m = &t->member[n];
			m->is = found[k];
			atomic_store(&m->state, TREE_ASKED);
			atomic_store(&t->count, n + 1);
			moving++;
		}
		uint32_t state = atomic_load(&m->state);
		m->is.ended = found[k].ended;
		memcpy(m->is.name, found[k].name, sizeof(m->is.name));
		if (state == TREE_FAILED) {
			error_set(err, HALE_ERR_AGAIN,
				  "its child process %d (%s) can't be captured: %s", m->is.pid,
				  m->is.name, m->text);
			return -1;
		}
		if (m->is.ended || state == TREE_STOPPED)
			continue;
		moving++;
		if (!tree_is_stopped(m->is.pid))
			ask(m);
		else if (parent_stands(&found[k]) && tree_stopped_wake(t, m, ask, err) != HALE_OK)
			return -1;
	}
	return moving;
}

/* Parents of whoever they will be the parents of, groups and sessions that can be made. */
static hale_status_t check_kinship(struct error *err)
{
	struct tree_round *t = self.round;
	struct tree_process root;
	if (!tree_look(t->root, &root))
		return error_set(err, HALE_ERR_SYSTEM, "can't read /proc/%d/stat", t->root);
	for (uint32_t i = 0; i < atomic_load(&t->count); i++) {
		const struct tree_member *m = &t->member[i], *of;
		struct tree_process now, parent = root;
		if (atomic_load(&m->state) == TREE_GONE)
			continue;
		if (!tree_look(m->is.pid, &now))
			return error_set(err, HALE_ERR_AGAIN, "its child process %d has just gone",
					 m->is.pid);
		if ((of = member_of(t, now.parent)))
			tree_look(of->is.pid, &parent);
		const struct tree_member *leader = member_of(t, now.group);
		if (now.session != now.pid && now.session != parent.session)
			return error_set(
			    err, HALE_ERR_AGAIN,
			    "its child process %d (%s) is in a session that its parent "
			    "has left, which can't be made again",
			    now.pid, now.name);
		if (now.group != root.group && now.group != now.pid &&
		    (!leader || leader->is.ended))
			return error_set(err, HALE_ERR_AGAIN,
					 "its child process %d (%s) is in a group whose leader has "
					 "ended, which can't be made again",
					 now.pid, now.name);
		t->member[i].is = now;
	}
	return HALE_OK;
}

/* Until all that were asked have answered; those who could not hear are asked again soon. */
static void await_answers(void)
{
	const struct timespec tick = {0, AGAIN_NS};
	struct tree_round *t = self.round;
	for (;;) {
		uint32_t seen = atomic_load(&t->answers);
		bool all = true;
		for (uint32_t i = 0; all && i < atomic_load(&t->count); i++)
			all =
			    t->member[i].is.ended || atomic_load(&t->member[i].state) != TREE_ASKED;
		if (all || sys_futex_wait((uint32_t *)&t->answers, seen, &tick) == -ETIMEDOUT)
			return;
	}
}

hale_status_t tree_stop(const struct image_params *of, struct error *err)
{
	uint64_t deadline = clock_ns() + STOP_S * 1000000000ull;
	if (!image_has_children())
		return HALE_OK;
	if (!ids_allowed())
		return error_set(err, HALE_ERR_AGAIN,
				 "it has child processes, which need their ids again, and Hale may "
				 "not ask the kernel for them");
	tree_stopped_begin();
	if (round_open(of, err) != HALE_OK) {
		round_close();
		return err->code;
	}
	/* a process that stands still makes none: when all do, and nobody new is there, that's all
	 */
	for (int moving; (moving = look(err)) != 0;) {
		if (moving > 0 && clock_ns() > deadline) {
			const struct tree_member *m = self.round->member;
			while (m->is.ended || atomic_load(&m->state) != TREE_ASKED)
				m++;
			error_set(err, HALE_ERR_AGAIN,
				  "its child process %d (%s) could not be stopped within %d s",
				  m->is.pid, m->is.name, STOP_S);
			moving = -1;
		}
		if (moving < 0) {
			tree_release();
			return err->code;
		}
		await_answers();
	}
	if (check_kinship(err) == HALE_OK)
		return HALE_OK;
	tree_release();
	return err->code;
}

void tree_read_ended(struct tree_round *t, int32_t parent)
{
	for (uint32_t i = 0; i < atomic_load(&t->count); i++) {
		struct tree_member *m = &t->member[i];
		siginfo_t info = {0};
		if (!m->is.ended || m->is.parent != parent || atomic_load(&m->state) == TREE_GONE)
			continue;
		if (sys(SYS_waitid, P_PID, m->is.pid, &info, WEXITED | WNOHANG | WNOWAIT, NULL) ||
		    info.si_pid != m->is.pid) {
			atomic_store(&m->state, TREE_FAILED);
			continue;
		}
		m->status = info.si_status;
		m->code = (uint32_t)info.si_code;
		atomic_store(&m->state, TREE_CAPTURED);
	}
}

static void take_full(struct tree_round *t)
{
	struct arena arena;
	int32_t pid[TREE_MAX + 1];
	if (!arena_init(&arena, NULL, LOOK_RESERVE))
		return;
	const struct fd_table look = {.arena = &arena,
				      .proc = "/proc/thread-self",
				      .own = engine.own,
				      .own_count = engine.own_count,
				      .tree = pid,
				      .tree_count = tree_pids(t, pid, TREE_MAX + 1)};
	fd_full_take(&look);
	t->full = fd_full_file() + 1;
	arena_fini(&arena);
}

hale_status_t tree_capture(struct error *err)
{
	struct tree_round *t = self.round;
	const struct timespec tick = {0, AGAIN_NS};
	uint64_t deadline = clock_ns() + CAPTURE_S * 1000000000ull;
	if (!t)
		return HALE_OK;
	take_full(t);
	tree_read_ended(t, t->root);
	atomic_store(&t->phase, TREE_CAPTURE);
	sys_futex_wake((uint32_t *)&t->phase, INT32_MAX);
	for (uint32_t i = 0; i < atomic_load(&t->count); i++) {
		struct tree_member *m = &t->member[i];
		for (;;) {
			uint32_t seen = atomic_load(&t->answers), state = atomic_load(&m->state);
			struct tree_process now;
			if (state == TREE_CAPTURED || state == TREE_GONE)
				break;
			bool lost = !tree_look(m->is.pid, &now) || (now.ended && !m->is.ended);
			if (state == TREE_FAILED || lost || clock_ns() > deadline)
				return error_set(err, HALE_ERR_AGAIN,
						 "its child process %d (%s) can't be captured: %s",
						 m->is.pid, m->is.name,
						 lost	      ? "it has ended meanwhile"
						 : m->text[0] ? m->text
							      : "it does not answer");
			sys_futex_wait((uint32_t *)&t->answers, seen, &tick);
		}
	}
	return HALE_OK;
}

void tree_release(void)
{
	struct tree_round *t = self.round;
	if (!t)
		return;
	fd_full_give();
	atomic_store(&t->phase, TREE_RELEASE);
	sys_futex_wake((uint32_t *)&t->phase, INT32_MAX);
	tree_stopped_settle();
	round_close();
}
