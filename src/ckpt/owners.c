// SPDX-License-Identifier: BSD-3-Clause
/* These definitions stand before libc's, as those of clocks.c do. A mutex without a name for its
 * owner, as most are, costs a comparison more. */
#include "ckpt/owners.h"

#include <dlfcn.h>
#include <errno.h>
#include <linux/futex.h>
#include <stdbool.h>
#include <time.h>

#include "image/sys.h"

#define API __attribute__((visibility("default")))

/* pthread_mutex_t.__kind */
enum { TYPE = 0x3, ADAPTIVE = 3, ROBUST = 0x10, INHERIT = 0x20, PROTECT = 0x40 };

__thread int32_t owners_own_id __attribute__((tls_model("initial-exec")));

static struct {
	int (*lock)(pthread_mutex_t *);
	int (*trylock)(pthread_mutex_t *);
	int (*timedlock)(pthread_mutex_t *, const struct timespec *);
	int (*unlock)(pthread_mutex_t *);
	int (*wait)(pthread_cond_t *, pthread_mutex_t *);
} libc;

int32_t owners_id_ask(void)
{
	owners_own_id = (int32_t)sys(SYS_gettid);
	return owners_own_id;
}

void owners_thread_restored(void)
{
	if (owners_own_id)
		owners_own_id = (int32_t)sys(SYS_gettid);
}

void owners_correct_now(pthread_mutex_t *m, int32_t id)
{
	int32_t now = owners_own_id;
	uint32_t *word = (uint32_t *)&m->__data.__lock;
	uint32_t seen = __atomic_load_n(word, __ATOMIC_RELAXED);

	/* others may say meanwhile that they wait */
	while (m->__data.__kind & (ROBUST | INHERIT) && (seen & FUTEX_TID_MASK) == (uint32_t)id &&
	       !__atomic_compare_exchange_n(word, &seen,
					    (seen & ~(uint32_t)FUTEX_TID_MASK) | (uint32_t)now,
					    false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
	if (m->__data.__owner == id)
		m->__data.__owner = now;
}

static inline bool names_owner(const pthread_mutex_t *m)
{
	int kind = m->__data.__kind & (TYPE | ROBUST | INHERIT | PROTECT);
	return kind && kind != ADAPTIVE;
}

/* rc = call, which locks m unless it fails. */
#define LOCKING(m, call)                                                                           \
	__extension__({                                                                            \
		int32_t id_ = owners_id();                                                         \
		int rc_ = call;                                                                    \
		if (!rc_ || rc_ == EOWNERDEAD)                                                     \
			owners_correct(m, id_);                                                    \
		rc_;                                                                               \
	})

API int pthread_mutex_lock(pthread_mutex_t *m)
{
	if (UNLIKELY(!libc.lock))
		owners_init();
	if (LIKELY(!names_owner(m)))
		return libc.lock(m);
	return LOCKING(m, libc.lock(m));
}

API int pthread_mutex_trylock(pthread_mutex_t *m)
{
	if (UNLIKELY(!libc.lock))
		owners_init();
	if (LIKELY(!names_owner(m)))
		return libc.trylock(m);
	return LOCKING(m, libc.trylock(m));
}

API int pthread_mutex_timedlock(pthread_mutex_t *m, const struct timespec *t)
{
	if (UNLIKELY(!libc.lock))
		owners_init();
	return LOCKING(m, libc.timedlock(m, t));
}

/* One that is refused because the owner's id has changed between libc's two looks is asked again.
 */
API int pthread_mutex_unlock(pthread_mutex_t *m)
{
	if (UNLIKELY(!libc.lock))
		owners_init();
	if (LIKELY(!names_owner(m)))
		return libc.unlock(m);
	int32_t id = owners_id();
	int rc = libc.unlock(m);
	return rc == EPERM && id != owners_own_id ? libc.unlock(m) : rc;
}

/* It comes back with the mutex locked, whatever it says. */
API int pthread_cond_wait(pthread_cond_t *c, pthread_mutex_t *m)
{
	if (UNLIKELY(!libc.lock))
		owners_init();
	int32_t id = owners_id();
	int rc = libc.wait(c, m);
	if (UNLIKELY(rc == EPERM && id != owners_own_id)) {
		id = owners_own_id;
		rc = libc.wait(c, m);
	}
	owners_correct(m, id);
	return rc;
}

/* ---- libc's ---- */

static void *owners_find(const char *name, const char *version)
{
	void *f = version ? dlvsym(RTLD_NEXT, name, version) : NULL;
	void *handle;

	if (!f)
		f = dlsym(RTLD_NEXT, name);
	handle = f ? NULL : dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
	return handle ? dlsym(handle, name) : f;
}

void owners_init(void)
{
	*(void **)&libc.trylock = owners_find("pthread_mutex_trylock", NULL);
	*(void **)&libc.timedlock = owners_find("pthread_mutex_timedlock", NULL);
	*(void **)&libc.unlock = owners_find("pthread_mutex_unlock", NULL);
	/* before 2.3.2 there were conditions of another kind */
	*(void **)&libc.wait = owners_find("pthread_cond_wait", "GLIBC_2.3.2");
	*(void **)&libc.lock = owners_find("pthread_mutex_lock", NULL);
}
