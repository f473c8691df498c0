// SPDX-License-Identifier: BSD-3-Clause
/* Locks of POSIX and C11 threads that a task holds. If it were executed again it would wait for
 * itself. Locks of OpenMP are in omp.c. */
#include "task/task.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <threads.h>
#include <time.h>

#define API __attribute__((visibility("default")))

/* Locks that the runtimes, libc or Hale take are none of the task's: no error leaves that code by
 * longjmp. A tail call seems to come from the caller's caller. So the address tells which lock is
 * given back, and not who gives it. */
static void lock_taken(const volatile void *lock, const void *caller)
{
	struct task_frame *f = task_thread_frame();

	if (LIKELY(f == NULL) || task_due_is_runtime((uintptr_t)caller))
		return;
	if (f->held == TASK_LOCKS) {
		f->locks++; /* never given back: its error rolls back */
		return;
	}
	f->lock[f->held] = lock;
	f->held++;
}

static void lock_given(const volatile void *lock)
{
	struct task_frame *f = task_thread_frame();

	if (LIKELY(f == NULL))
		return;
	for (unsigned i = f->held; i-- > 0;)
		if (f->lock[i] == lock) {
			f->lock[i] = f->lock[f->held - 1];
			f->held--;
			return;
		}
}

static void *real_of(void *_Atomic *found, const char *name)
{
	void *at = atomic_load_explicit(found, memory_order_relaxed);

	if (UNLIKELY(!at)) {
		at = dlsym(RTLD_NEXT, name);
		atomic_store_explicit(found, at, memory_order_relaxed);
	}
	return at;
}

/* Counts before it locks, so that no error comes between. */
#define TAKING(name, params, args)                                                                 \
	API int name params                                                                        \
	{                                                                                          \
		static void *_Atomic found;                                                        \
		int(*real) params;                                                                 \
		*(void **)&real = real_of(&found, #name);                                          \
		lock_taken(lock, __builtin_return_address(0));                                     \
		int rc = real args;                                                                \
		if (rc != 0 && rc != EOWNERDEAD)                                                   \
			lock_given(lock);                                                          \
		return rc;                                                                         \
	}
#define GIVING(name, params, args)                                                                 \
	API int name params                                                                        \
	{                                                                                          \
		static void *_Atomic found;                                                        \
		int(*real) params;                                                                 \
		*(void **)&real = real_of(&found, #name);                                          \
		int rc = real args;                                                                \
		if (rc == 0)                                                                       \
			lock_given(lock);                                                          \
		return rc;                                                                         \
	}

TAKING(pthread_mutex_lock, (pthread_mutex_t * lock), (lock))
TAKING(pthread_mutex_trylock, (pthread_mutex_t * lock), (lock))
TAKING(pthread_mutex_timedlock, (pthread_mutex_t * lock, const struct timespec *t), (lock, t))
TAKING(pthread_mutex_clocklock, (pthread_mutex_t * lock, clockid_t c, const struct timespec *t),
       (lock, c, t))
GIVING(pthread_mutex_unlock, (pthread_mutex_t * lock), (lock))
TAKING(pthread_spin_lock, (pthread_spinlock_t * lock), (lock))
TAKING(pthread_spin_trylock, (pthread_spinlock_t * lock), (lock))
GIVING(pthread_spin_unlock, (pthread_spinlock_t * lock), (lock))
TAKING(pthread_rwlock_rdlock, (pthread_rwlock_t * lock), (lock))
TAKING(pthread_rwlock_tryrdlock, (pthread_rwlock_t * lock), (lock))
TAKING(pthread_rwlock_timedrdlock, (pthread_rwlock_t * lock, const struct timespec *t), (lock, t))
TAKING(pthread_rwlock_clockrdlock, (pthread_rwlock_t * lock, clockid_t c, const struct timespec *t),
       (lock, c, t))
TAKING(pthread_rwlock_wrlock, (pthread_rwlock_t * lock), (lock))
TAKING(pthread_rwlock_timedwrlock, (pthread_rwlock_t * lock, const struct timespec *t), (lock, t))
TAKING(pthread_rwlock_clockwrlock, (pthread_rwlock_t * lock, clockid_t c, const struct timespec *t),
       (lock, c, t))
TAKING(pthread_rwlock_trywrlock, (pthread_rwlock_t * lock), (lock))
GIVING(pthread_rwlock_unlock, (pthread_rwlock_t * lock), (lock))
TAKING(mtx_lock, (mtx_t * lock), (lock))
TAKING(mtx_trylock, (mtx_t * lock), (lock))
TAKING(mtx_timedlock, (mtx_t * lock, const struct timespec *t), (lock, t))
GIVING(mtx_unlock, (mtx_t * lock), (lock))
