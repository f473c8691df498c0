/* SPDX-License-Identifier: BSD-3-Clause */
#include "protect/flip.h"
#include <errno.h>
#include <linux/futex.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

bool flip_can(const char *at)
{
	char byte;
	struct iovec here = {&byte, 1}, there = {(void *)(uintptr_t)at, 1};

	return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == 1 || errno != EFAULT;
}

/* The kernel does it: FUTEX_WAKE_OP changes a word atomically, and says EFAULT where an instruction
 * of ours would end the program. Nobody sleeps on `nobody`, so nobody is woken. */
bool flip_bit(char *at, int bit)
{
	static uint32_t nobody;
	uintptr_t word = (uintptr_t)at & ~(uintptr_t)3;
	unsigned int which = (unsigned int)((uintptr_t)at - word) * 8 + (unsigned int)bit;

	return syscall(
		   SYS_futex, &nobody, FUTEX_WAKE_OP | FUTEX_PRIVATE_FLAG, 0, NULL, word,
		   FUTEX_OP((FUTEX_OP_XOR | FUTEX_OP_OPARG_SHIFT), which, FUTEX_OP_CMP_EQ, 0)) >= 0;
}
