// SPDX-License-Identifier: BSD-3-Clause
/* Locks of POSIX threads that a task holds: executed again, it would wait for itself. Those of
 * OpenMP are in omp.c. */
#include "task/task.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <time.h>

#define API __attribute__((visibility("default")))

/* Locks of the runtimes and of libraries below them are theirs: none of them is left by longjmp. */
static void lock_count(int change, const void *caller)
{
	struct task_frame *f = task_thread_frame();

	if (UNLIKELY(f != NULL) && !task_due_is_runtime((uintptr_t)caller))
		f->locks += (unsigned)change;
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
		lock_count(1, __builtin_return_address(0));                                        \
		int rc = real args;                                                                \
		if (rc != 0 && rc != EOWNERDEAD)                                                   \
			lock_count(-1, __builtin_return_address(0));                                                            \
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
			lock_count(-1, __builtin_return_address(0));                                                            \
		return rc;                                                                         \
	}

TAKING(pthread_mutex_lock, (pthread_mutex_t * m), (m))
TAKING(pthread_mutex_trylock, (pthread_mutex_t * m), (m))
TAKING(pthread_mutex_timedlock, (pthread_mutex_t * m, const struct timespec *t), (m, t))
GIVING(pthread_mutex_unlock, (pthread_mutex_t * m), (m))
TAKING(pthread_spin_lock, (pthread_spinlock_t * s), (s))
TAKING(pthread_spin_trylock, (pthread_spinlock_t * s), (s))
GIVING(pthread_spin_unlock, (pthread_spinlock_t * s), (s))
TAKING(pthread_rwlock_rdlock, (pthread_rwlock_t * l), (l))
TAKING(pthread_rwlock_tryrdlock, (pthread_rwlock_t * l), (l))
TAKING(pthread_rwlock_wrlock, (pthread_rwlock_t * l), (l))
TAKING(pthread_rwlock_trywrlock, (pthread_rwlock_t * l), (l))
GIVING(pthread_rwlock_unlock, (pthread_rwlock_t * l), (l))
