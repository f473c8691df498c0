// SPDX-License-Identifier: BSD-3-Clause
/* A descendant's side: the signal of the root stops this process, and lets it write its image. */
#include <asm/prctl.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>

#include "base/fmt.h"
#include "image/capture.h"
#include "image/tree/tree.h"

enum { LOOK_NS = 100000000, RELEASE_LOOKS = 20 };

const struct tree_round *tree_joined;

static struct tree_hooks hooks;
static _Atomic int taking_part;
static int parent_death;

static struct tree_round *round_of(const siginfo_t *info)
{
	char path[64];
	struct stat st = {0};
	fmt_print(path, sizeof(path), "/proc/%d/fd/%d", (int)info->si_pid, info->si_int);
	long at = -1, fd = sys(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	if (!sys(SYS_fstat, fd, &st) && S_ISREG(st.st_mode) &&
	    (uint64_t)st.st_size == sizeof(struct tree_round) &&
	    st.st_uid == (uid_t)sys(SYS_geteuid))
		at = sys(SYS_mmap, 0, sizeof(struct tree_round), PROT_READ | PROT_WRITE, MAP_SHARED,
			 fd, 0);
	sys(SYS_close, fd);
	if (sys_failed(at))
		return NULL;
	struct tree_round *t = (struct tree_round *)at;
	if (t->magic == TREE_MAGIC && t->root == info->si_pid)
		return t;
	sys(SYS_munmap, t, sizeof(*t));
	return NULL;
}

static struct tree_member *own_entry(struct tree_round *t)
{
	int32_t pid = (int32_t)sys(SYS_getpid);
	for (uint32_t i = 0; i < atomic_load(&t->count); i++)
		if (t->member[i].is.pid == pid && atomic_load(&t->member[i].state) == TREE_ASKED)
			return &t->member[i];
	return NULL;
}

static void answer(struct tree_round *t, struct tree_member *m, enum tree_state state)
{
	atomic_store(&m->state, state);
	atomic_fetch_add(&t->answers, 1);
	sys_futex_wake((uint32_t *)&t->answers, 1);
}

/* Until the root has gone on from phase. False: it is gone. */
static bool await(const struct tree_round *t, uint32_t phase)
{
	const struct timespec tick = {0, LOOK_NS};
	while (atomic_load(&t->phase) == phase) {
		struct tree_process root;
		int rc = sys_futex_wait((const uint32_t *)&t->phase, phase, &tick);
		if (rc == -ETIMEDOUT && (!tree_look(t->root, &root) || root.ended))
			return false;
	}
	return true;
}

static struct {
	struct tree_round *round;
	struct tree_member *member;
} taking;

/* In the process that writes the image. */
static void image_done(void *arg, const struct image_result *r)
{
	if (r->error.code != HALE_OK)
		fmt_print(taking.member->text, sizeof(taking.member->text), "%s", r->error.text);
	atomic_store(&taking.member->written,
		     r->error.code == HALE_OK ? TREE_WRITTEN : TREE_NOT_WRITTEN);
	atomic_fetch_add(&taking.round->done, 1);
	sys_futex_wake((uint32_t *)&taking.round->done, 1);
}

/* The cores are for those who still stand, until all may run on. */
static void writer_await_release(void)
{
	const struct timespec tick = {0, LOOK_NS};
	for (int i = 0; i < RELEASE_LOOKS && atomic_load(&taking.round->phase) == TREE_CAPTURE; i++)
		sys_futex_wait((const uint32_t *)&taking.round->phase, TREE_CAPTURE, &tick);
}

int tree_writer_begin(int keep)
{
	writer_await_release();
	if (keep > 0)
		sys(SYS_close_range, 0, keep - 1, 0);
	sys(SYS_close_range, keep + 1, ~0u, 0);
	return (int)sys(SYS_pidfd_open, taking.round->root, 0);
}

/* True in the process that came out of the image. */
static bool write_image(struct tree_round *t, struct tree_member *m)
{
	static char path[IMAGE_PATH_MAX];
	struct image_params p = {.identity = t->identity,
				 .path = path,
				 .mode = (image_mode_t)atomic_load(&t->mode),
				 .compress = t->compress,
				 .written = image_done};
	struct error err = {HALE_OK, ""};
	fmt_print(path, sizeof(path), "%s.%d", t->path, m->is.pid);
	memcpy(engine.stream, t->stream, sizeof(engine.stream));
	tree_joined = t;
	taking.round = t;
	taking.member = m;
	/* as the parent's death would be told to this thread: is not kept over the restart */
	parent_death = 0;
	sys(SYS_prctl, PR_GET_PDEATHSIG, &parent_death);
	tree_read_ended(t, m->is.pid);
	if (hooks.save)
		hooks.save();
	image_return_t rc = image_capture(&p, NULL, &err);
	tree_joined = NULL;
	if (rc == IMAGE_RESTORED) {
		sys(SYS_prctl, PR_SET_PDEATHSIG, parent_death);
		return true;
	}
	if (rc == IMAGE_FAILED)
		fmt_print(m->text, sizeof(m->text), "%s", err.text);
	m->writer = capture_last_writer();
	answer(t, m, rc == IMAGE_CAPTURED ? TREE_CAPTURED : TREE_FAILED);
	return false;
}

/* All other threads are parked. */
static bool stand_still(struct tree_round *t, struct tree_member *m)
{
	bool restored = false;
	int adopts = 0;
	sys(SYS_prctl, PR_GET_CHILD_SUBREAPER, &adopts);
	if (adopts)
		atomic_store(&t->mode, IMAGE_SYNC);
	tree_stopped_note(t);
	answer(t, m, TREE_STOPPED);
	if (await(t, TREE_STOPPING) && atomic_load(&t->phase) == TREE_CAPTURE)
		restored = write_image(t, m);
	/* one that was stopped runs no program meanwhile, and its parent waits for its stop */
	if (!restored && !atomic_load(&m->stopped))
		await(t, TREE_CAPTURE);
	return restored;
}

static void take_part(struct tree_round *t, struct tree_member *m)
{
	int busy = image_park();
	bool restored = false;
	if (busy < 0) {
		fmt_print(m->text, sizeof(m->text), "one of its threads can't be stopped");
		answer(t, m, TREE_FAILED);
	}
	if (busy > 0 && atomic_load(&m->stopped)) {
		fmt_print(m->text, sizeof(m->text), "it is stopped inside the library");
		answer(t, m, TREE_FAILED);
	}
	if (busy == 0) {
		image_exclude_add(t, ALIGN_UP(sizeof(*t), HALE_PAGE));
		restored = stand_still(t, m);
		image_exclude_remove(t);
		tree_stopped_settle();
		if (restored && hooks.restored)
			hooks.restored();
		image_unpark();
	}
	if (!restored) /* else it was never there */
		sys(SYS_munmap, t, sizeof(*t));
}

/* The child of a vfork runs in its parent's memory. */
static bool is_borrowed(void)
{
	int32_t tid = 0;
	uint64_t fs = 0;
	sys(SYS_arch_prctl, ARCH_GET_FS, &fs);
	if (engine.tid_offset < 0)
		return false;
	memcpy(&tid, (const char *)fs + engine.tid_offset, sizeof(tid));
	return tid != (int32_t)sys(SYS_gettid);
}

/* The signal by which it was stopped, and is to stop again; 0: it ran. */
static int on_call(const siginfo_t *info)
{
	struct tree_round *t = info->si_code == SI_QUEUE ? round_of(info) : NULL;
	struct tree_member *m = t ? own_entry(t) : NULL;
	int stopped = m ? (int)atomic_load(&m->stopped) : 0;
	bool can = m && !(hooks.busy && hooks.busy());
	if (can) {
		take_part(t, m);
		return stopped;
	}
	if (stopped) {
		fmt_print(m->text, sizeof(m->text), "it is stopped inside the library");
		answer(t, m, TREE_FAILED);
	}
	if (t)
		sys(SYS_munmap, t, sizeof(*t));
	return stopped;
}

static void on_signal(int sig, siginfo_t *info, void *context)
{
	siginfo_t call = *info;
	int free = 0, stopped;
	if (!is_borrowed() && atomic_compare_exchange_strong(&taking_part, &free, 1)) {
		while ((stopped = on_call(&call)) != 0 && tree_stopped_again(stopped, &call))
			;
		atomic_store(&taking_part, 0);
	}
	image_restart_syscall(context);
}

void tree_listen(const struct tree_hooks *h)
{
	struct sigaction sa = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART};
	hooks = *h;
	memset(&sa.sa_mask, 0xff, sizeof(sa.sa_mask));
	image_sigaction(SIGURG, &sa, NULL);
}
