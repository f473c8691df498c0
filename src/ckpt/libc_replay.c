// SPDX-License-Identifier: BSD-3-Clause
/* These definitions stand before libc's, as those of clocks.c do.
 *
 * Counters never go back when another replica leads: it remembers by how much the program's counter
 * is ahead of its own. */
#include "ckpt/libc_replay.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/times.h>
#include <unistd.h>

#include "base/base.h"
#include "ckpt/clocks.h"
#include "ckpt/guard.h"
#include "ckpt/rank_private.h"
#include "ckpt/libc_result.h"
#include "image/sys.h"

#define API __attribute__((visibility("default")))

enum { CLOCKS = 16, USAGE_FIELDS = 16, SECOND_NS = 1000000000, SECOND_US = 1000000 };

static bool libc_replay_on;
const struct libc_replay_hooks *libc_replay_hooks;
static __thread bool this_thread __attribute__((tls_model("initial-exec")));

static struct {
	int (*getrusage)(__rusage_who_t, struct rusage *);
	int (*gettimeofday)(struct timeval *, void *);
	time_t (*time)(time_t *);
	clock_t (*times)(struct tms *);
	clock_t (*clock)(void);
	ssize_t (*getrandom)(void *, size_t, unsigned);
	int (*getentropy)(void *, size_t);
} libc;

/* ---- whose calls ---- */

/* They read clocks while they wait, or to age what they keep. */
static const char *const runtimes[] = {
    "libgomp.so", "libomp.so",	    "libiomp5.so", "libhale",	"libmpi",
    "libucs.so",  "libucp.so",	    "libuct.so",   "libpocl",	"libOpenCL.so",
    "libzmq.so",  "libjemalloc.so", "libtcmalloc", "libtbb.so", "ld-linux"};

static bool name_is_runtime(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

	for (size_t i = 0; i < ARRAY_LEN(runtimes); i++)
		if (!strncmp(name, runtimes[i], strlen(runtimes[i])))
			return true;
	return false;
}

/* Asks the dynamic linker once for each place that calls. */
static bool called_by_runtime(const void *caller)
{
	static struct {
		const void *caller;
		bool runtime;
	} known[64];
	size_t at = (uintptr_t)caller / 4 % ARRAY_LEN(known);
	Dl_info info;

	if (known[at].caller != caller) {
		known[at].runtime =
		    dladdr(caller, &info) && info.dli_fname && name_is_runtime(info.dli_fname);
		known[at].caller = caller;
	}
	return known[at].runtime;
}

bool libc_replay_inside(void)
{
	return UNLIKELY(libc_replay_on) && this_thread && !guard_inside && !guest_inside;
}

static inline bool replayed(const void *caller)
{
	return libc_replay_inside() && !called_by_runtime(caller);
}

static void clock_decide(clockid_t id, struct timespec *t, const void *caller);

static void replay_stop(void)
{
	libc_replay_on = false;
	clocks_replay = NULL;
}

void hale_libc_replay_begin(const struct libc_replay_hooks *hooks)
{
	static bool forks;
	const char *wish = getenv("HALE_REPLAY_LIBC");

	if (wish && !strcmp(wish, "off"))
		return;
	if (!forks)
		pthread_atfork(NULL, NULL, replay_stop);
	forks = true;
	libc_replay_hooks = hooks;
	this_thread = true;
	libc_replay_on = true;
	clocks_replay = clock_decide;
}

void hale_libc_replay_end(void)
{
	replay_stop();
	this_thread = false;
}

/* ---- values ---- */

static void value_decide(void *value, size_t size)
{
	int saved = errno;

	guard_enter();
	libc_replay_hooks->value(value, size);
	guard_leave();
	errno = saved;
}

/* What this process's counter lacks to the one that the program has seen. */
struct replay_counter {
	int64_t ahead, last;
};

/* n counters: value is this process's, then the leader's. A copy of another replica begins to count
 * at 0, and may lead: it goes on from what its program has seen last. */
static void counters_decide(int64_t *value, struct replay_counter *c, size_t n)
{
	int64_t own[USAGE_FIELDS];

	for (size_t i = 0; i < n; i++) {
		own[i] = value[i];
		if (own[i] + c[i].ahead < c[i].last)
			c[i].ahead = c[i].last - own[i];
		value[i] += c[i].ahead;
	}
	value_decide(value, n * sizeof(*value));
	for (size_t i = 0; i < n; i++)
		c[i] = (struct replay_counter){.ahead = value[i] - own[i], .last = value[i]};
}

static void clock_decide(clockid_t id, struct timespec *t, const void *caller)
{
	static struct replay_counter counters[CLOCKS];
	int64_t ns = (int64_t)t->tv_sec * SECOND_NS + t->tv_nsec;

	/* processor times of other processes and threads have negative names */
	if (id < 0 || id >= CLOCKS || !replayed(caller))
		return;
	counters_decide(&ns, &counters[id], 1);
	*t = (struct timespec){ns / SECOND_NS, ns % SECOND_NS};
}

/* ---- libc's functions ---- */

API int gettimeofday(struct timeval *restrict t, void *restrict zone)
{
	static struct replay_counter counter;
	int rc = LIKELY(libc.gettimeofday != NULL) ? libc.gettimeofday(t, zone)
						   : libc_result(sys(SYS_gettimeofday, t, zone));

	if (UNLIKELY(libc_replay_on) && !rc && replayed(__builtin_return_address(0))) {
		int64_t us = (int64_t)t->tv_sec * SECOND_US + t->tv_usec;
		counters_decide(&us, &counter, 1);
		*t = (struct timeval){us / SECOND_US, us % SECOND_US};
	}
	return rc;
}

API time_t time(time_t *to)
{
	static struct replay_counter counter;
	int64_t now = LIKELY(libc.time != NULL) ? libc.time(NULL) : sys(SYS_time, NULL);

	if (UNLIKELY(libc_replay_on) && replayed(__builtin_return_address(0)))
		counters_decide(&now, &counter, 1);
	if (to)
		*to = now;
	return now;
}

API clock_t clock(void)
{
	static struct replay_counter counter;
	int64_t now = libc.clock ? libc.clock() : -1;

	if (UNLIKELY(libc_replay_on) && now >= 0 && replayed(__builtin_return_address(0)))
		counters_decide(&now, &counter, 1);
	return now;
}

API clock_t times(struct tms *t)
{
	static struct replay_counter counters[5];
	clock_t now = libc.times ? libc.times(t) : sys(SYS_times, t);

	if (UNLIKELY(libc_replay_on) && t && replayed(__builtin_return_address(0))) {
		int64_t v[5] = {now, t->tms_utime, t->tms_stime, t->tms_cutime, t->tms_cstime};
		counters_decide(v, counters, 5);
		now = v[0];
		*t = (struct tms){v[1], v[2], v[3], v[4]};
	}
	return now;
}

static void usage_decide(struct rusage *u, struct replay_counter counters[USAGE_FIELDS])
{
	enum { TIMES = 2 };
	int64_t v[USAGE_FIELDS] = {(int64_t)u->ru_utime.tv_sec * SECOND_US + u->ru_utime.tv_usec,
				   (int64_t)u->ru_stime.tv_sec * SECOND_US + u->ru_stime.tv_usec};

	_Static_assert(sizeof(*u) ==
			   TIMES * sizeof(u->ru_utime) + (USAGE_FIELDS - TIMES) * sizeof(long),
		       "struct rusage: two times, then longs");
	memcpy(v + TIMES, &u->ru_maxrss, (USAGE_FIELDS - TIMES) * sizeof(long));
	counters_decide(v, counters, USAGE_FIELDS);
	u->ru_utime = (struct timeval){v[0] / SECOND_US, v[0] % SECOND_US};
	u->ru_stime = (struct timeval){v[1] / SECOND_US, v[1] % SECOND_US};
	memcpy(&u->ru_maxrss, v + TIMES, (USAGE_FIELDS - TIMES) * sizeof(long));
}

API int getrusage(__rusage_who_t who, struct rusage *u)
{
	static struct replay_counter self[USAGE_FIELDS], children[USAGE_FIELDS],
	    thread[USAGE_FIELDS];
	int rc = libc.getrusage ? libc.getrusage(who, u) : libc_result(sys(SYS_getrusage, who, u));

	if (UNLIKELY(libc_replay_on) && !rc && replayed(__builtin_return_address(0)))
		usage_decide(u, who == RUSAGE_SELF	 ? self
				: who == RUSAGE_CHILDREN ? children
							 : thread);
	return rc;
}

static void bytes_decide(unsigned char *bytes, size_t len)
{
	for (size_t at = 0; at < len; at += LIBC_REPLAY_MAX)
		value_decide(bytes + at, len - at < LIBC_REPLAY_MAX ? len - at : LIBC_REPLAY_MAX);
}

API ssize_t getrandom(void *bytes, size_t len, unsigned flags)
{
	ssize_t got = libc.getrandom ? libc.getrandom(bytes, len, flags)
				     : libc_result(sys(SYS_getrandom, bytes, len, flags));

	if (UNLIKELY(libc_replay_on) && got > 0 && replayed(__builtin_return_address(0)))
		bytes_decide(bytes, (size_t)got);
	return got;
}

API int getentropy(void *bytes, size_t len)
{
	int rc = libc.getentropy(bytes, len);

	if (UNLIKELY(libc_replay_on) && !rc && replayed(__builtin_return_address(0)))
		bytes_decide(bytes, len);
	return rc;
}

void libc_replay_init(void)
{
	*(void **)&libc.getrusage = dlsym(RTLD_NEXT, "getrusage");
	*(void **)&libc.gettimeofday = dlsym(RTLD_NEXT, "gettimeofday");
	*(void **)&libc.time = dlsym(RTLD_NEXT, "time");
	*(void **)&libc.times = dlsym(RTLD_NEXT, "times");
	*(void **)&libc.clock = dlsym(RTLD_NEXT, "clock");
	*(void **)&libc.getrandom = dlsym(RTLD_NEXT, "getrandom");
	*(void **)&libc.getentropy = dlsym(RTLD_NEXT, "getentropy");
}
