/* SPDX-License-Identifier: BSD-3-Clause */
/* A word that goes from 0 to 1 once, and those who wait for it. */
#ifndef HALE_OFFLOAD_HOST_FUTEX_H
#define HALE_OFFLOAD_HOST_FUTEX_H

#include <linux/futex.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

static inline void futex_set(_Atomic uint32_t *word)
{
	atomic_store(word, 1);
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

static inline void futex_await(_Atomic uint32_t *word)
{
	while (!atomic_load(word))
		syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
}

#endif
