// SPDX-License-Identifier: BSD-3-Clause
/* Threads: stopping them at a defined place with their registers saved, and making them exist
 * again in a new process.
 *
 * A parked thread sleeps in the handler of the park signal. All its registers are in the signal
 * frame on its stack, except those that the compiler keeps over a call, which context_save puts
 * into the parking table. A new thread that is put onto that stack with those registers returns
 * from the handler and is the old one.
 */
#include <errno.h>
#include <linux/futex.h>
#include <linux/rseq.h>
#include <asm/prctl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>

#include "base/fmt.h"
#include "image/engine.h"
#include "image/queued.h"

enum { PARK_THREADS_MAX = 16384, PARK_TIMEOUT_S = 5, RSEQ_SIGNATURE = 0x53053053, RSEQ_LEN = 32 };

extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned int __rseq_size __attribute__((weak));

enum slot_state { SLOT_ASKED, SLOT_PARKED, SLOT_BUSY, SLOT_GONE };

struct threads_slot {
	_Atomic uint32_t state;
	struct thread_record record;
};

static struct {
	struct threads_slot *slot;
	_Atomic uint32_t count;	   /* slots in use */
	_Atomic uint32_t answers;  /* futex: threads that parked or said that they are busy */
	_Atomic uint32_t released; /* futex: 1 while nobody shall sleep */
	_Atomic uint32_t inside;   /* threads between the handler's begin and end */
	_Atomic uint32_t revived;  /* after a restart: threads that are in their place again */
} park = {.released = 1};

__attribute__((naked, noinline)) int context_save(struct frame_context *c __attribute__((unused)))
{
	__asm__("mov %rbx, 0(%rdi)\n\t"
		"mov %rbp, 8(%rdi)\n\t"
		"mov %r12, 16(%rdi)\n\t"
		"mov %r13, 24(%rdi)\n\t"
		"mov %r14, 32(%rdi)\n\t"
		"mov %r15, 40(%rdi)\n\t"
		"lea 8(%rsp), %rax\n\t"
		"mov %rax, 48(%rdi)\n\t"
		"mov (%rsp), %rax\n\t"
		"mov %rax, 56(%rdi)\n\t"
		"stmxcsr 64(%rdi)\n\t"
		"fnstcw 68(%rdi)\n\t"
		"xor %eax, %eax\n\t"
		"ret");
}

__attribute__((naked, noinline)) void context_jump(const struct frame_context *c
						   __attribute__((unused)))
{
	__asm__("mov 0(%rdi), %rbx\n\t"
		"mov 8(%rdi), %rbp\n\t"
		"mov 16(%rdi), %r12\n\t"
		"mov 24(%rdi), %r13\n\t"
		"mov 32(%rdi), %r14\n\t"
		"mov 40(%rdi), %r15\n\t"
		"mov 48(%rdi), %rsp\n\t"
		"ldmxcsr 64(%rdi)\n\t"
		"fldcw 68(%rdi)\n\t"
		"mov $1, %eax\n\t"
		"jmp *56(%rdi)");
}

int image_park_signal(void)
{
	return SIGRTMAX - 2;
}

/* Has the program registered for restartable sequences by itself, as tcmalloc does where libc has
 * not? The kernel doesn't tell where, but says what is wrong with another place, or another length:
 * libc's is longer on newer kernels. */
static bool rseq_is_foreign(uint64_t fs)
{
	char room[2 * RSEQ_LEN] __attribute__((aligned(64))) = {0};
	bool libc = &__rseq_offset && &__rseq_size && __rseq_size;
	void *area = libc ? (void *)(fs + (uint64_t)__rseq_offset) : room;
	for (unsigned len = RSEQ_LEN; len <= sizeof(room); len += RSEQ_LEN) {
		long rc = sys(SYS_rseq, area, len, 0, RSEQ_SIGNATURE);
		if (!rc)
			sys(SYS_rseq, area, len, RSEQ_FLAG_UNREGISTER, RSEQ_SIGNATURE);
		if (rc != -EINVAL && rc != -EPERM)
			return rc == -EBUSY && !libc;
	}
	return true;
}

void thread_describe(struct thread_record *t)
{
	stack_t ss = {0};
	t->tid = (int32_t)sys(SYS_gettid);
	t->leader = t->tid == (int32_t)sys(SYS_getpid);
	sys(SYS_arch_prctl, ARCH_GET_FS, &t->fs);
	sys(SYS_arch_prctl, ARCH_GET_GS, &t->gs);
	size_t robust_len = 0;
	if (sys(SYS_get_robust_list, 0, &t->robust, &robust_len))
		t->robust = 0;
	t->robust_len = (uint32_t)robust_len;
	if (sys(SYS_prctl, PR_GET_TID_ADDRESS, &t->tid_address))
		t->tid_address = engine.tid_offset >= 0 ? t->fs + (uint64_t)engine.tid_offset : 0;
	sys(SYS_sigaltstack, NULL, &ss);
	t->altstack = (uint64_t)ss.ss_sp;
	t->altstack_len = ss.ss_size;
	t->altstack_flags = (uint32_t)(ss.ss_flags & ~SS_ONSTACK);
	t->flags = sys(SYS_prctl, PR_GET_NO_NEW_PRIVS) == 1 ? THREAD_NO_NEW_PRIVS : 0;
	if (rseq_is_foreign(t->fs))
		t->flags |= THREAD_RSEQ;
	sys(SYS_rt_sigpending, &t->pending, sizeof(t->pending));
	queued_collect();
	sys(SYS_prctl, PR_GET_NAME, t->name);
}

static struct threads_slot *slot_of(int32_t tid)
{
	uint32_t n = atomic_load(&park.count);
	for (uint32_t i = 0; i < n; i++)
		if (park.slot[i].record.tid == tid)
			return &park.slot[i];
	return NULL;
}

static void answer(struct threads_slot *s, enum slot_state state)
{
	atomic_store(&s->state, state);
	atomic_fetch_add(&park.answers, 1);
	sys_futex_wake((uint32_t *)&park.answers, 1);
}

static void park_here(struct threads_slot *s)
{
	bool revived = false;
	thread_describe(&s->record);
	if (context_save(&s->record.context) == 0) {
		answer(s, SLOT_PARKED);
	} else {
		revived = true;
		atomic_fetch_add(&park.revived, 1);
	}
	while (!atomic_load(&park.released))
		sys_futex_wait((uint32_t *)&park.released, 0, NULL);
	if (revived)
		image_restart_revived();
	if (revived && engine.thread_revived)
		engine.thread_revived();
}

static void on_park(int sig, siginfo_t *info, void *ucontext)
{
	struct threads_slot *s;
	atomic_fetch_add(&park.inside, 1);
	if (atomic_load(&park.released) || !(s = slot_of((int32_t)sys(SYS_gettid))) ||
	    atomic_load(&s->state) != SLOT_ASKED) {
		image_restart_syscall(ucontext);
		atomic_fetch_sub(&park.inside, 1);
		return;
	}
	image_restart_syscall(ucontext);
	if (engine.thread_busy && engine.thread_busy()) {
		answer(s, SLOT_BUSY);
	} else {
		park_here(s);
	}
	atomic_fetch_sub(&park.inside, 1);
}

/* Asks every thread that has no slot yet. Returns how many; -1: too many or unreadable. */
static int ask_new_threads(int32_t self)
{
	struct {
		uint64_t ino, off;
		uint16_t len;
		uint8_t type;
		char name[];
	} * d;
	char buf[4096] __attribute__((aligned(8))) = {0};
	int asked = 0;
	long n,
	    fd = sys(SYS_openat, AT_FDCWD, "/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	while ((n = sys(SYS_getdents64, fd, buf, sizeof(buf))) > 0) {
		for (long at = 0; at < n; at += d->len) {
			d = (void *)(buf + at);
			int32_t tid = 0;
			for (const char *c = d->name; *c >= '0' && *c <= '9'; c++)
				tid = tid * 10 + (*c - '0');
			if (!tid || tid == self || slot_of(tid))
				continue;
			uint32_t i = atomic_load(&park.count);
			if (i == PARK_THREADS_MAX) {
				sys(SYS_close, fd);
				return -1;
			}
			memset(&park.slot[i].record, 0, sizeof(park.slot[i].record));
			park.slot[i].record.tid = tid;
			atomic_store(&park.slot[i].state, SLOT_ASKED);
			atomic_store(&park.count, i + 1);
			long rc = sys(SYS_tgkill, sys(SYS_getpid), tid, image_park_signal());
			if (rc == -ESRCH) {
				atomic_store(&park.slot[i].state, SLOT_GONE);
			} else if (rc) { /* it is there, and its queue of signals is full */
				sys(SYS_close, fd);
				return -1;
			}
			asked++;
		}
	}
	sys(SYS_close, fd);
	return n < 0 ? -1 : asked;
}

static uint32_t slots_in(enum slot_state state)
{
	uint32_t found = 0;
	for (uint32_t i = 0; i < atomic_load(&park.count); i++)
		found += atomic_load(&park.slot[i].state) == (uint32_t)state;
	return found;
}

/* A main thread that has called pthread_exit stays in the list until all have. */
static bool is_zombie(int32_t tid)
{
	char path[64];
	fmt_print(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	return sys_state(path) == 'Z';
}

/* Threads can end before the signal reaches them. */
static void notice_gone(void)
{
	for (uint32_t i = 0; i < atomic_load(&park.count); i++) {
		struct threads_slot *s = &park.slot[i];
		if (atomic_load(&s->state) == SLOT_ASKED &&
		    (sys(SYS_tgkill, sys(SYS_getpid), s->record.tid, 0) == -ESRCH ||
		     is_zombie(s->record.tid)))
			atomic_store(&s->state, SLOT_GONE);
	}
}

/* Waits until nobody is asked any more; false after the deadline. */
static bool await_answers(uint64_t deadline_ns)
{
	const struct timespec tick = {0, 2000000};
	for (;;) {
		uint32_t seen = atomic_load(&park.answers);
		if (!slots_in(SLOT_ASKED))
			return true;
		if (sys_futex_wait((uint32_t *)&park.answers, seen, &tick) == -ETIMEDOUT) {
			notice_gone();
			if (clock_ns() > deadline_ns)
				return false;
		}
	}
}

int image_park(void)
{
	int32_t self = (int32_t)sys(SYS_gettid);
	uint64_t deadline = clock_ns() + PARK_TIMEOUT_S * 1000000000ull;
	int asked, busy = 0;
	queued_reset();
	atomic_store(&park.count, 0);
	atomic_store(&park.answers, 0);
	atomic_store(&park.released, 0);
	do {
		asked = ask_new_threads(self);
		if (asked < 0 || !await_answers(deadline)) {
			image_unpark();
			return -1;
		}
		busy = (int)slots_in(SLOT_BUSY);
	} while (asked && !busy);
	if (busy)
		image_unpark();
	return busy;
}

void image_unpark(void)
{
	atomic_store(&park.released, 1);
	sys_futex_wake((uint32_t *)&park.released, INT32_MAX);
	/* the table may be used again when nobody is in the handler any more */
	while (atomic_load(&park.inside))
		sys(SYS_sched_yield);
}

bool threads_collect(struct list *threads)
{
	for (uint32_t i = 0; i < atomic_load(&park.count); i++) {
		if (atomic_load(&park.slot[i].state) != SLOT_PARKED)
			continue;
		struct thread_record *t = list_add(threads);
		if (!t)
			return false;
		*t = park.slot[i].record;
	}
	return true;
}

void threads_expect_revival(void)
{
	atomic_store(&park.revived, 0);
}

void threads_await_parked(void)
{
	while (atomic_load(&park.revived) < slots_in(SLOT_PARKED))
		sys(SYS_sched_yield);
}

void thread_rseq_unregister(void)
{
	uint64_t fs = 0;
	if (!&__rseq_offset || !&__rseq_size || !__rseq_size)
		return;
	sys(SYS_arch_prctl, ARCH_GET_FS, &fs);
	sys(SYS_rseq, fs + (uint64_t)__rseq_offset, RSEQ_LEN, RSEQ_FLAG_UNREGISTER, RSEQ_SIGNATURE);
}

void thread_revive(const struct thread_record *t, int64_t rseq_offset, uint32_t rseq_len)
{
	if (t->robust)
		sys(SYS_set_robust_list, t->robust, t->robust_len);
	if (t->fs && rseq_len) {
		/* the kernel fills in the processor's number when it next runs this thread */
		struct rseq *area = (struct rseq *)(t->fs + (uint64_t)rseq_offset);
		area->cpu_id = (uint32_t)RSEQ_CPU_ID_UNINITIALIZED;
		area->rseq_cs = 0;
		if (sys(SYS_rseq, area, rseq_len, 0, RSEQ_SIGNATURE))
			area->cpu_id = (uint32_t)RSEQ_CPU_ID_REGISTRATION_FAILED;
	}
	stack_t ss = {.ss_sp = (void *)t->altstack,
		      .ss_size = t->altstack_len,
		      .ss_flags = (int)t->altstack_flags};
	sys(SYS_sigaltstack, &ss, NULL);
	sys(SYS_prctl, PR_SET_NAME, t->name);
	if (t->flags & THREAD_NO_NEW_PRIVS)
		sys(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1);
	if (t->gs)
		sys(SYS_arch_prctl, ARCH_SET_GS, t->gs);
	for (int sig = 1; sig <= SYS_SIGNALS; sig++)
		if (sig != image_park_signal() && !queued_restore(t->tid, sig) &&
		    t->pending & SYS_SET_BIT(sig))
			sys(SYS_tgkill, sys(SYS_getpid), sys(SYS_gettid), sig);
}

/* Before any thread can be asked: the table, and the handler with all signals blocked. */
bool threads_init(void)
{
	long p = sys(SYS_mmap, 0, PARK_THREADS_MAX * sizeof(struct threads_slot),
		     PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (sys_failed(p))
		return false;
	park.slot = (struct threads_slot *)p;
	if (!queued_init())
		return false;
	/* on the alternate stack if there is one: some run-times give threads tiny stacks */
	struct sigaction sa = {.sa_sigaction = on_park,
			       .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};
	memset(&sa.sa_mask, 0xff, sizeof(sa.sa_mask));
	return image_sigaction(image_park_signal(), &sa, NULL) == 0;
}
