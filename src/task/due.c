// SPDX-License-Identifier: BSD-3-Clause
/* Detected, uncorrected memory errors. The kernel reports one by SIGBUS with BUS_MCEERR_AR to the
 * thread that has read the lost data; a checker of the program's calls HALE_Raise_DUE(); a test has
 * them pretended (--inject due:…). All end in struck(): the task begins again, or the job rolls
 * back. */
#include "task/task.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>
#include "base/fmt.h"
#include "hale/task.h"
#include "task/family.h"
#include "task/fault.h"
#include "task/inputs.h"
#include "task/mend.h"

enum { AGAIN_NS = 30000, OBJECTS = 32, KNOWN = 4096 };

static const struct task_due none = {.times = 1};
const struct task_due *_Atomic task_due = &none;
static struct sigaction before;
static unsigned rank;

/* ---- whose code is it? ---- */

/* Code that a task must not be left in the middle of, by longjmp: the runtimes of OpenMP and MPI.
 * MPI says by itself that a thread is inside (task_mpi.inside), but not while a call waits and lets
 * other threads in. libc counts for pretended errors only: these wait until the thread is out. */
static struct {
	uintptr_t from, to;
	bool libc;
} objects[OBJECTS];
static unsigned nobjects;

static bool name_has(const char *path, const char *const *names)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;

	for (; *names; names++)
		if (strncmp(name, *names, strlen(*names)) == 0)
			return true;
	return false;
}

static int note_object(struct dl_phdr_info *info, size_t size, void *arg)
{
	static const char *const runtimes[] = {"libomp", "libiomp", "libmpi", NULL};
	static const char *const libc[] = {"libc.",	 "ld-linux", "linux-vdso",
					   "libpthread", "libhale",  NULL};
	bool runtime = name_has(info->dlpi_name, runtimes), c = name_has(info->dlpi_name, libc);

	for (int i = 0; (runtime || c) && i < info->dlpi_phnum && nobjects < OBJECTS; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type != PT_LOAD || !(p->p_flags & PF_X))
			continue;
		objects[nobjects].from = info->dlpi_addr + p->p_vaddr;
		objects[nobjects].to = objects[nobjects].from + p->p_memsz;
		objects[nobjects++].libc = c;
	}
	return 0;
}

static bool is_runtime(uintptr_t pc, bool libc_too)
{
	for (unsigned i = 0; i < nobjects; i++)
		if (pc >= objects[i].from && pc < objects[i].to)
			return !objects[i].libc || libc_too;
	return false;
}

static bool in_runtime(const ucontext_t *u, bool libc_too)
{
	return u && is_runtime((uintptr_t)u->uc_mcontext.gregs[REG_RIP], libc_too);
}

bool task_due_is_runtime(uintptr_t pc)
{
	return is_runtime(pc, true);
}

/* ---- nothing here mends it ---- */

void task_fall_back(const char *why)
{
	struct sigaction plain = {.sa_handler = SIG_DFL};
	sigset_t bus;
	const struct task_frame *f = task_thread_self()->frame;
	char left[64];

	task_count_fell_back(rank, f && f->record ? f->record->number : UINT64_MAX);
	/* libomp removes it when a process ends by itself */
	fmt_print(left, sizeof(left), "/dev/shm/__KMP_REGISTERED_LIB_%d_%d", (int)getpid(),
		  (int)getuid());
	syscall(SYS_unlinkat, AT_FDCWD, left, 0); /* and no rollback brings it back */
	log_warn(
	    "rank %u: a memory error %s can't be mended by executing a task again; the job goes "
	    "back to its newest checkpoint",
	    rank, why);
	sigaction(SIGBUS, &plain, NULL);
	sigemptyset(&bus);
	sigaddset(&bus, SIGBUS);
	pthread_sigmask(SIG_UNBLOCK, &bus, NULL);
	syscall(SYS_tgkill, getpid(), (int)syscall(SYS_gettid), SIGBUS);
	_exit(128 + SIGBUS);
}

/* Why f can't be executed again; NULL: it can. */
static const char *obstacle(struct task_frame *f, const ucontext_t *u)
{
	const char *lost;

	if (!f)
		return "outside of tasks";
	if (!f->record)
		return "in a task without copies of its data";
	if (task_mpi.inside())
		return "inside MPI";
	if (f->busy)
		return "in the copies of a task's data";
	if (f->waits || in_runtime(u, false))
		return "inside the runtime";
	if (f->level >= 0 && task_omp_level() != f->level)
		return "in a parallel region inside a task";
	if (f->spawned)
		return "in a task that has made other tasks which ran at once";
	if (f->reduced)
		return "in a task that has added to a reduction";
	if (f->locks > 0 || f->held > 0)
		return "in a task that holds a lock";
	if (f->strikes >= task_settings.retries)
		return task_settings.retries ? "in a task that was executed again already"
					     : "in a task (retries:0)";
	for (uint32_t i = 0; i < f->record->count; i++)
		if (f->record->ranges[i].written &&
		    task_mpi.landing(f->record->ranges[i].at, f->record->ranges[i].length))
			return "in a task into whose data others write: a message that was asked "
			       "for outside of tasks, or a window";
	lost = task_mpi.lost();
	if (!lost)
		lost = task_omp_obstacle(f);
	return lost ? lost : task_family_stop(f); /* the last: it waits */
}

/* What is looked at after an error may be lost itself: the record of a task lies in the runtime's
 * memory, beside what is private to the task. */
static void look_begin(struct task_thread *t)
{
	if (t->striking) {
		t->frame = NULL;
		task_fall_back("in what is needed to execute a task again");
	}
	t->striking = true;
}

static __attribute__((noreturn)) void struck(struct task_thread *t, void *address,
					     const ucontext_t *u)
{
	struct task_frame *f = t->frame;
	const char *why;

	look_begin(t);
	why = obstacle(f, u);
	t->count[TASK_STRUCK]++;
	if (!why && address && !task_mend_page(f, address))
		why = "in data that no task declares";
	if (!why && f->reads_window) {
		f->busy = true;
		if (task_window_changed(f))
			why = "in a task that reads its own window, into which others have written";
		f->busy = false;
	}
	if (why)
		task_fall_back(why);
	if (!address && task_settings.keep_inputs)
		t->count[TASK_MENDED] += task_inputs_mend(f->record);
	f->strikes++;
	t->striking = false;
	longjmp(f->env, 1);
}

/* ---- pretended ones ---- */

static uint64_t mix(uint64_t z)
{
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

static const struct task_due *due_now(void)
{
	return atomic_load_explicit(&task_due, memory_order_acquire);
}

void task_due_set(const struct task_due *d)
{
	struct task_due *kept = malloc(sizeof(*kept));

	if (!kept) {
		log_warn("no memory for the errors that are asked for; they do not come");
		return;
	}
	*kept = *d;
	atomic_store_explicit(&task_due, kept, memory_order_release);
}

/* The same seed strikes the same tasks of the same rank. */
static uint64_t drawn(const struct task_record *r, uint64_t what)
{
	return mix(mix(due_now()->seed * 0x9e3779b97f4a7c15ull + rank) +
		   0x632be59bd9b4e019ull * what + r->number * 0x9e3779b97f4a7c15ull);
}

static double share_of(uint64_t x)
{
	return (double)(x >> 11) * 0x1p-53;
}

/* What tasks of this process have declared so far, for errors that strike anywhere in it. */
static struct {
	const char *_Atomic at;
	size_t length;
} known[KNOWN];
static _Atomic unsigned nknown;
static _Atomic int noting;

static void known_note(const struct task_record *r)
{
	while (atomic_exchange(&noting, 1))
		;
	for (uint32_t i = 0; i < r->count; i++) {
		const struct task_range *g = &r->ranges[i];
		unsigned k = 0;

		while (k < nknown && !(known[k].at == g->at && known[k].length >= g->length))
			k++;
		if (k == KNOWN || k < nknown || g->length < 64)
			continue;
		known[k].at = g->at;
		known[k].length = g->length;
		nknown++;
	}
	atomic_store(&noting, 0);
}

/* One page of it is lost: all bytes are as likely. */
static void page_lose(uint64_t draw)
{
	size_t all = 0, at;
	unsigned n = nknown;

	for (unsigned k = 0; k < n; k++)
		all += known[k].length;
	at = all ? draw % all : 0;
	for (unsigned k = 0; k < n; at -= known[k++].length)
		if (at < known[k].length) {
			task_fault_take_page((char *)(uintptr_t)known[k].at + at);
			return;
		}
}

void task_due_draw(struct task_frame *f)
{
	const struct task_due *d;

	task_job_look();
	d = due_now();
	if (LIKELY(d->prob <= 0))
		return;
	if (d->at == TASK_AT_PAGE) {
		known_note(f->record);
		if (share_of(drawn(f->record, 1)) < d->prob)
			page_lose(drawn(f->record, 2));
		return;
	}
	if (share_of(drawn(f->record, 1)) < d->prob)
		f->due = task_count_has_fallen(rank, f->record->number) ? 0 : d->times;
}

/* What was to be lost is lost: a task that were not executed from its copies would show. */
static void damage(struct task_frame *f)
{
	const struct task_record *r = f->record;

	/* what others compute from damaged data does not count only if none of them goes on */
	if (task_family_stop(f))
		return;
	for (uint32_t i = 0; i < r->count; i++) {
		const struct task_range *g = &r->ranges[i];
		size_t n = g->length < CACHE_LINE ? g->length : CACHE_LINE;

		if (!g->written || !n)
			continue;
		memset(g->at + drawn(r, 2 + i) % (g->length - n + 1), 0xa5, n);
	}
}

static void timer_in(struct task_thread *t, uint64_t ns)
{
	struct itimerspec when = {.it_value = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)}};
	struct sigevent e = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGBUS};

	if (!t->has_timer) {
		e.sigev_value.sival_ptr = t;
		e._sigev_un._tid = (pid_t)syscall(SYS_gettid);
		t->has_timer = timer_create(CLOCK_MONOTONIC, &e, &t->timer) == 0;
	}
	t->timer_set = t->has_timer && timer_settime(t->timer, 0, &when, NULL) == 0;
}

void task_due_begin(struct task_frame *f)
{
	const struct task_site *s = f->record->site;
	uint64_t runs;

	if (LIKELY(f->due == 0) || due_now()->at != TASK_AT_RANDOM)
		return;
	runs = atomic_load(&s->runs);
	if (runs)
		timer_in(f->thread,
			 1 + (uint64_t)(share_of(drawn(f->record, 100 + f->strikes)) *
					(double)atomic_load(&s->nanoseconds) / (double)runs));
}

/* As the kernel does it. Again if it comes back: a SIGBUS of the timer that was pending swallows
 * it. */
static __attribute__((noreturn)) void report_to_self(void *address)
{
	siginfo_t si = {.si_signo = SIGBUS, .si_code = BUS_MCEERR_AR};

	si.si_addr = address;
	for (;;)
		syscall(SYS_rt_tgsigqueueinfo, getpid(), (int)syscall(SYS_gettid), SIGBUS, &si);
}

void task_due_end(struct task_frame *f)
{
	if (LIKELY(f->due == 0))
		return;
	f->thread->timer_set = false;
	f->due--;
	if (due_now()->at == TASK_AT_COPY && f->keep->at)
		task_fault_take_page(f->keep->at);
	damage(f);
	report_to_self(NULL);
}

/* The timer of a test has run out. */
static void time_is_up(struct task_thread *t, const ucontext_t *u)
{
	struct task_frame *f = t->frame;

	if (!t->timer_set || !f || !f->record || f->due == 0 || f->busy)
		return;
	/* an error of a test is one in the program's own code */
	if (in_runtime(u, true) || task_mpi.inside() || f->waits) {
		timer_in(t, AGAIN_NS);
		return;
	}
	t->timer_set = false;
	f->due--;
	damage(f);
	struck(t, NULL, u);
}

/* ---- real ones ---- */

static void pass_on(int sig, siginfo_t *si, void *context)
{
	if (before.sa_flags & SA_SIGINFO && before.sa_sigaction) {
		before.sa_sigaction(sig, si, context);
	} else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
		before.sa_handler(sig);
	} else {
		/* the instruction is tried again and meets what would have happened without us */
		struct sigaction plain = {.sa_handler = SIG_DFL};

		sigaction(SIGBUS, &plain, NULL);
		if (si->si_code <= 0)
			syscall(SYS_tgkill, getpid(), (int)syscall(SYS_gettid), SIGBUS);
	}
}

/* What is lost before a task begins is noticed by the one who copies it for the task. Where a copy
 * of the last writer's, or of another reader's, holds, copying goes on with that. */
static bool mended_for_copying(struct task_thread *t, void *address)
{
	struct task_frame *f = t->frame;

	if (!f || !f->taking || !task_settings.keep_inputs || !address ||
	    !task_mend_page(f, address))
		return false;
	t->count[TASK_STRUCK]++;
	return true;
}

void task_due_strike(void *address, const void *context)
{
	struct task_thread *t = task_thread_self();

	look_begin(t);
	bool mended = mended_for_copying(t, address);
	t->striking = false;
	if (mended)
		return;
	if (t->frame && t->frame->probes) /* if the program reads it, too, it meets it by itself */
		longjmp(t->frame->env, 1);
	struck(t, address, context);
}

static void on_bus(int sig, siginfo_t *si, void *context)
{
	int saved = errno;

	if (si->si_code == BUS_MCEERR_AR)
		task_due_strike(si->si_addr, context);
	else if (si->si_code == SI_TIMER)
		time_is_up(si->si_value.sival_ptr, context);
	else if (si->si_code != BUS_MCEERR_AO) /* somewhere, and nobody has read it: not yet */
		pass_on(sig, si, context);
	errno = saved;
}

void HALE_Raise_DUE(void)
{
	struck(task_thread_self(), NULL, NULL);
}

void task_due_init(void)
{
	/* NODEFER: the handler is left by longjmp, and the next error must come through */
	struct sigaction a = {.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK};
	const char *r = getenv("HALE_RANK");

	rank = r ? (unsigned)atoi(r) : 0;
	a.sa_sigaction = on_bus;
	sigaction(SIGBUS, &a, &before);
	dl_iterate_phdr(note_object, NULL);
}
