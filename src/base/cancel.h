/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads of programs that are cancelled (pthread_cancel) end in the next call of the system that
 * may wait. Where one of them holds a lock of ours that must not be: the others would wait for it
 * for ever. */
#ifndef HALE_BASE_CANCEL_H
#define HALE_BASE_CANCEL_H

#include <pthread.h>

static inline int cancel_put_off(void)
{
	int before;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	return before;
}

static inline void cancel_allow(const int *before)
{
	pthread_setcancelstate(*before, NULL);
}

/* Until the end of the block. */
#define UNCANCELLED                                                                                \
	int cancel_before_ __attribute__((cleanup(cancel_allow), unused)) = cancel_put_off()

#endif
