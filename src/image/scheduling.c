// SPDX-License-Identifier: BSD-3-Clause
/* On which processors, and how, threads run. What a process was started with is up to whoever
 * starts it: a restored process keeps what its new place gave it. What the program has changed
 * since comes back. */
#include <linux/sched/types.h>
#include <string.h>
#include <sys/resource.h>

#include "image/engine.h"

enum { POLICY_DEADLINE = 6, FLAGS_KEPT = 7 };

void scheduling_read(struct sched_record *r, int32_t tid)
{
	struct sched_attr a = {.size = sizeof(a)};
	*r = (struct sched_record){.tid = tid};
	if (sys(SYS_sched_getaffinity, tid, sizeof(r->processors), r->processors) > 0)
		r->has |= SCHED_HAS_PROCESSORS;
	if (sys(SYS_sched_getattr, tid, &a, sizeof(a), 0))
		return;
	r->has |= SCHED_HAS_POLICY;
	r->policy = a.sched_policy;
	r->nice = a.sched_nice;
	r->priority = a.sched_priority;
	r->flags = (uint32_t)a.sched_flags & FLAGS_KEPT;
	if (a.sched_policy == POLICY_DEADLINE) {
		r->runtime = a.sched_runtime;
		r->deadline = a.sched_deadline;
		r->period = a.sched_period;
	}
}

static bool policy_same(const struct sched_record *a, const struct sched_record *b)
{
	return a->policy == b->policy && a->nice == b->nice && a->priority == b->priority &&
	       a->flags == b->flags && a->runtime == b->runtime && a->deadline == b->deadline &&
	       a->period == b->period;
}

bool scheduling_collect(const struct list *threads, struct list *records)
{
	struct sched_record *began = list_add(records), *r;
	if (!began || !(r = arena_alloc(records->arena, sizeof(*r))))
		return false;
	*began = engine.began;
	began->tid = 0;
	for (size_t i = 0; i < threads->count; i++) {
		scheduling_read(r, ((const struct thread_record *)list_at(threads, i))->tid);
		if (!memcmp(r->processors, engine.began.processors, sizeof(r->processors)))
			r->has &= ~(uint32_t)SCHED_HAS_PROCESSORS;
		if (policy_same(r, &engine.began))
			r->has &= ~(uint32_t)SCHED_HAS_POLICY;
		r->has &= engine.began.has;
		struct sched_record *added = r->has ? list_add(records) : NULL;
		if (r->has && !added)
			return false;
		if (added)
			*added = *r;
	}
	if (records->count == 1)
		records->count = 0;
	return true;
}

/* ---- afterwards ---- */

static bool processor_in(const uint64_t *set, unsigned n)
{
	return set[n / 64] >> n % 64 & 1;
}

static unsigned processors_in(const uint64_t *set)
{
	unsigned count = 0;
	for (unsigned i = 0; i < SCHED_WORDS; i++)
		count += (unsigned)__builtin_popcountll(set[i]);
	return count;
}

/* The n-th processor of those that the process was started with becomes the n-th of those that it
 * has now. False: they are not as many, or set has others. */
static bool processors_translate(const uint64_t *set, const uint64_t *then, const uint64_t *now,
				 uint64_t *to)
{
	unsigned n = 0, left = processors_in(set);
	if (!memcmp(then, now, SCHED_WORDS * sizeof(*now))) {
		memcpy(to, set, SCHED_WORDS * sizeof(*to));
		return true;
	}
	if (processors_in(then) != processors_in(now))
		return false;
	memset(to, 0, SCHED_WORDS * sizeof(*to));
	for (unsigned i = 0; i < SCHED_WORDS * 64; i++) {
		if (!processor_in(then, i))
			continue;
		for (; !processor_in(now, n); n++)
			;
		if (processor_in(set, i)) {
			to[n / 64] |= 1ull << n % 64;
			left--;
		}
		n++;
	}
	return !left;
}

static bool processors_bind(const struct sched_record *r, const struct sched_record *then,
			    const struct sched_record *now, int32_t tid)
{
	uint64_t to[SCHED_WORDS];
	return processors_translate(r->processors, then->processors, now->processors, to) &&
	       !sys(SYS_sched_setaffinity, tid, sizeof(to), to);
}

static bool policy_set(const struct sched_record *r, int32_t tid)
{
	struct sched_attr a = {.size = sizeof(a),
			       .sched_policy = r->policy,
			       .sched_flags = r->flags,
			       .sched_nice = r->nice,
			       .sched_priority = r->priority,
			       .sched_runtime = r->runtime,
			       .sched_deadline = r->deadline,
			       .sched_period = r->period};
	return !sys(SYS_sched_setattr, tid, &a, 0);
}

void scheduling_restore(const struct sched_record *r, size_t count, int32_t (*new_tid)(int32_t))
{
	unsigned unbound = 0, unlike = 0;
	for (size_t i = 1; i < count; i++) {
		int32_t tid = new_tid(r[i].tid);
		if (tid && r[i].has & SCHED_HAS_POLICY && !policy_set(&r[i], tid))
			unlike++;
		if (tid && r[i].has & SCHED_HAS_PROCESSORS &&
		    !processors_bind(&r[i], &r[0], &engine.began, tid))
			unbound++;
	}
	if (unlike)
		log_warn("after the restart %u threads don't have the priorities that the program "
			 "had given them: raise `ulimit -r` and `ulimit -e`",
			 unlike);
	if (unbound)
		log_warn("after the restart %u threads are not bound to processors as the program "
			 "had bound them: it has others here",
			 unbound);
}

/* ---- limits of resources ---- */

static const char *limit_name(int i)
{
	static const char *const names[RLIM_NLIMITS] = {
	    [RLIMIT_AS] = "AS",	     [RLIMIT_CORE] = "CORE",	 [RLIMIT_CPU] = "CPU",
	    [RLIMIT_DATA] = "DATA",  [RLIMIT_FSIZE] = "FSIZE",	 [RLIMIT_MEMLOCK] = "MEMLOCK",
	    [RLIMIT_NICE] = "NICE",  [RLIMIT_NOFILE] = "NOFILE", [RLIMIT_NPROC] = "NPROC",
	    [RLIMIT_RSS] = "RSS",    [RLIMIT_RTPRIO] = "RTPRIO", [RLIMIT_SIGPENDING] = "SIGPENDING",
	    [RLIMIT_STACK] = "STACK"};
	return names[i] ? names[i] : "of a resource";
}

void limits_raise(void)
{
	for (int i = 0; i < (int)RLIM_NLIMITS; i++) {
		struct rlimit64 limit = {0};
		if (sys(SYS_prlimit64, 0, i, NULL, &limit))
			continue;
		limit.rlim_cur = limit.rlim_max;
		sys(SYS_prlimit64, 0, i, &limit, NULL);
	}
}

void limits_lift_files(struct rlimit64 *was)
{
	struct rlimit64 limit = {RLIM64_INFINITY, RLIM64_INFINITY};

	if (sys(SYS_prlimit64, 0, RLIMIT_FSIZE, NULL, was))
		*was = limit;
	if (was->rlim_cur == RLIM64_INFINITY || !sys(SYS_prlimit64, 0, RLIMIT_FSIZE, &limit, NULL))
		return;
	limit.rlim_cur = limit.rlim_max = was->rlim_max;
	sys(SYS_prlimit64, 0, RLIMIT_FSIZE, &limit, NULL);
}

void limits_set_files(const struct rlimit64 *limit)
{
	sys(SYS_prlimit64, 0, RLIMIT_FSIZE, limit, NULL);
}

/* A hard limit may be lowered by everybody, and raised by root. */
void limits_restore(const struct rlimit64 *limits)
{
	for (int i = 0; i < (int)RLIM_NLIMITS; i++) {
		struct rlimit64 limit = limits[i], now = {0};
		if (!sys(SYS_prlimit64, 0, i, &limit, NULL) || sys(SYS_prlimit64, 0, i, NULL, &now))
			continue;
		bool lower = limit.rlim_cur > now.rlim_max;
		if (lower)
			log_warn(
			    "after the restart the limit %s is %lu and not %lu: raise it where "
			    "`hale` is started",
			    limit_name(i), (unsigned long)now.rlim_max,
			    (unsigned long)limit.rlim_cur);
		limit.rlim_max = now.rlim_max;
		if (lower)
			limit.rlim_cur = now.rlim_max;
		sys(SYS_prlimit64, 0, i, &limit, NULL);
	}
}
