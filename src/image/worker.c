// SPDX-License-Identifier: BSD-3-Clause
/* Helper threads made by clone alone, for the writing child and for a process that is about to
 * become another one: no libc knows of them, and they are gone when workers_run returns. */
#include <errno.h>
#include <linux/futex.h>
#include <sched.h>

#include "image/engine.h"

enum { WORKER_STACK = 128 << 10 };

__attribute__((naked, noinline)) long
clone_run(unsigned long flags __attribute__((unused)), void *stack __attribute__((unused)),
	  volatile void *parent_tid __attribute__((unused)),
	  volatile void *child_tid __attribute__((unused)), uint64_t tls __attribute__((unused)),
	  void (*run)(void *) __attribute__((unused)), void *arg __attribute__((unused)))
{
	__asm__("mov 8(%rsp), %rax\n\t"
		"sub $16, %rsi\n\t"
		"mov %r9, (%rsi)\n\t"
		"mov %rax, 8(%rsi)\n\t"
		"mov %rcx, %r10\n\t"
		"mov $56, %eax\n\t" /* clone */
		"syscall\n\t"
		"test %rax, %rax\n\t"
		"jnz 1f\n\t"
		"xor %ebp, %ebp\n\t"
		"pop %rax\n\t"
		"pop %rdi\n\t"
		"call *%rax\n\t"
		"xor %edi, %edi\n\t"
		"mov $60, %eax\n\t" /* exit, of this thread */
		"syscall\n\t"
		"hlt\n"
		"1:\n\t"
		"ret");
}

__attribute__((naked, noinline)) long
clone_run_as(const struct clone_args *args __attribute__((unused)),
	     size_t size __attribute__((unused)), void (*run)(void *) __attribute__((unused)),
	     void *arg __attribute__((unused)))
{
	__asm__("push %rbx\n\t"
		"push %r12\n\t"
		"mov %rdx, %rbx\n\t"
		"mov %rcx, %r12\n\t"
		"mov $435, %eax\n\t" /* clone3 */
		"syscall\n\t"
		"test %rax, %rax\n\t"
		"jnz 1f\n\t"
		"xor %ebp, %ebp\n\t"
		"mov %r12, %rdi\n\t"
		"call *%rbx\n\t"
		"xor %edi, %edi\n\t"
		"mov $60, %eax\n\t" /* exit, of this thread */
		"syscall\n\t"
		"hlt\n"
		"1:\n\t"
		"pop %r12\n\t"
		"pop %rbx\n\t"
		"ret");
}

unsigned workers_wanted(void)
{
	unsigned long mask[16] = {0};
	long n = sys(SYS_sched_getaffinity, 0, sizeof(mask), mask);
	unsigned cores = 0;
	for (long i = 0; i < n / (long)sizeof(mask[0]); i++)
		cores += (unsigned)__builtin_popcountl(mask[i]);
	if (cores < 1)
		return 1;
	return cores > WORKERS_MAX ? WORKERS_MAX : cores;
}

void workers_run(struct arena *a, unsigned count, void (*run)(void *), void *arg)
{
	struct worker w[WORKERS_MAX] = {0};
	unsigned started = 1;
	for (; started < count && started < WORKERS_MAX; started++) {
		char *stack = arena_pages(a, WORKER_STACK);
		if (!stack)
			break;
		w[started].tid = 1; /* until the kernel has written the real one */
		long rc =
		    clone_run(CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
				  CLONE_SYSVSEM | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID,
			      stack + WORKER_STACK, &w[started].tid, &w[started].tid, 0, run, arg);
		if (rc < 0)
			break;
	}
	run(arg);
	for (unsigned i = 1; i < started; i++)
		for (uint32_t tid; (tid = w[i].tid) != 0;)
			sys_futex_wait(&w[i].tid, tid, NULL);
}
