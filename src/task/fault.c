// SPDX-License-Identifier: BSD-3-Clause
/* SIGSEGV in a program with protected tasks: a declared range that is no memory, a write that
 * check:writes watches for, or a page that a test has taken away. All else is the program's. */
#include "task/fault.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>
#include "task/check.h"

static struct sigaction before;

/* ---- pages that a test has taken away ---- */

/* Addresses of such pages, plus BACK once they have been made anew. */
enum { TAKEN = 64, BACK = 1 };
static _Atomic uintptr_t taken[TAKEN];

/* Held while a page changes its state: what the table says and what the memory is are one then. No
 * handler of ours asks for it within. */
static atomic_flag changing = ATOMIC_FLAG_INIT;

static void change_begin(void)
{
	while (atomic_flag_test_and_set(&changing))
		sched_yield();
}

static void change_end(void)
{
	atomic_flag_clear(&changing);
}

bool task_fault_take_page(void *address)
{
	uintptr_t page = (uintptr_t)address & ~(HALE_PAGE - 1);
	bool good = false;

	change_begin();
	for (unsigned i = 0; i < TAKEN && !good; i++) {
		uintptr_t is = atomic_load(&taken[i]);

		if (is && is != (page | BACK)) /* one that is back may be taken again */
			continue;
		atomic_store(&taken[i], page);
		good = mprotect((void *)page, HALE_PAGE, PROT_NONE) == 0;
		if (!good)
			atomic_store(&taken[i], is);
	}
	change_end();
	return good;
}

/* page if it is taken away, page | BACK if it was, 0 if it never was. In one look: while one thread
 * asks, another one may make it anew, and a third one take it again. */
static uintptr_t page_state(uintptr_t page)
{
	for (unsigned i = 0; page && i < TAKEN; i++) {
		uintptr_t is = atomic_load(&taken[i]);

		if ((is & ~(uintptr_t)BACK) == page)
			return is;
	}
	return 0;
}

bool task_fault_replace(void *page, void *by)
{
	bool good;

	change_begin();
	good = mremap(by, HALE_PAGE, HALE_PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, page) != MAP_FAILED;
	for (unsigned i = 0; good && i < TAKEN; i++)
		if (atomic_load(&taken[i]) == (uintptr_t)page)
			atomic_store(&taken[i], (uintptr_t)page | BACK);
	change_end();
	return good;
}

/* ---- the handler ---- */

static void pass_on(int sig, siginfo_t *si, void *context)
{
	struct sigaction plain = {.sa_handler = SIG_DFL};

	if (before.sa_flags & SA_SIGINFO && before.sa_sigaction) {
		before.sa_sigaction(sig, si, context);
	} else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
		before.sa_handler(sig);
	} else {
		/* the instruction is tried again and meets what would have happened without us */
		sigaction(SIGSEGV, &plain, NULL);
		if (si->si_code <= 0)
			syscall(SYS_tgkill, getpid(), (int)syscall(SYS_gettid), SIGSEGV);
	}
}

static void on_segv(int sig, siginfo_t *si, void *context)
{
	int saved = errno;
	struct task_thread *t = task_thread_self();
	uintptr_t at = (uintptr_t)si->si_addr, page = at & ~(HALE_PAGE - 1);
	uintptr_t state = si->si_code == SEGV_ACCERR ? page_state(page) : 0;

	/* no access of the program's: what we look at after an error is lost, too */
	if ((state && !(state & BACK)) || (si->si_code > 0 && t->striking))
		task_due_strike(si->si_addr, context);
	/* made anew, perhaps by another thread that met it, too */
	if (state && !task_settings.check_writes) {
		errno = saved;
		return;
	}
	if (si->si_code > 0 && t->frame && t->frame->taking)
		longjmp(t->frame->env, 1);
	if (si->si_code != SEGV_ACCERR || !task_check_fault(t, at, context))
		pass_on(sig, si, context);
	errno = saved;
}

void task_fault_init(void)
{
	struct sigaction a = {.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK};

	a.sa_sigaction = on_segv;
	sigaction(SIGSEGV, &a, &before);
}
