// SPDX-License-Identifier: BSD-3-Clause
/* Signals that wait to be taken, with what was sent with them (sigqueue(3)). The kernel shows their
 * numbers alone, so each thread takes its own ones and sends them to itself again in the same
 * order; the main thread does so with those of the process. What they were stands in a table in
 * ordinary memory, which an image holds, and from which the restored process sends them once more.
 *
 * Signals of timers are left alone: taking one would start its timer again. */
#include "image/queued.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "image/engine.h"

enum { QUEUED_MAX = 4096, ROOM = 16 << 10 };

struct queued_signal {
	int32_t tid; /* whom it was sent to; 0: the process */
	int32_t signal;
	siginfo_t info;
};

static struct {
	struct queued_signal *at;
	_Atomic uint32_t count;
} queued;

bool queued_init(void)
{
	long p = sys(SYS_mmap, 0, QUEUED_MAX * sizeof(*queued.at), PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (sys_failed(p))
		return false;
	queued.at = (struct queued_signal *)p;
	return true;
}

void queued_reset(void)
{
	atomic_store(&queued.count, 0);
}

/* text: room for ROOM bytes, since the stack may be a small one */
static sys_set_t waiting(char *text, const char *key)
{
	sys_set_t set = 0;
	if (sys_read_small("/proc/thread-self/status", text, ROOM) <= 0)
		return 0;
	const char *p = strstr(text, key);
	for (p = p ? p + strlen(key) : ""; *p; p++) {
		if (*p >= '0' && *p <= '9')
			set = set << 4 | (sys_set_t)(*p - '0');
		else if (*p >= 'a' && *p <= 'f')
			set = set << 4 | (sys_set_t)(*p - 'a' + 10);
		else
			break;
	}
	return set;
}

/* Those that timers send, and the library's own. */
static sys_set_t left_alone(char *text)
{
	static const char key[] = "signal: ";
	sys_set_t set = SYS_SET_BIT(SIGALRM) | SYS_SET_BIT(SIGVTALRM) | SYS_SET_BIT(SIGPROF) |
			SYS_SET_BIT(SIGURG) | SYS_SET_BIT(image_park_signal()) |
			SYS_SET_BIT(image_park_signal() + 1);
	long len = sys_read_small("/proc/self/timers", text, ROOM);
	if (len >= ROOM - 1)
		return ~0ull;
	for (const char *p = len > 0 ? text : ""; (p = strstr(p, key));) {
		int sig = 0;
		for (p += sizeof(key) - 1; *p >= '0' && *p <= '9'; p++)
			sig = sig * 10 + (*p - '0');
		if (sig > 0 && sig <= SYS_SIGNALS)
			set |= SYS_SET_BIT(sig);
	}
	return set;
}

/* Takes all of one kind, in order. The kernel gives a thread its own ones first. */
static void take_all(char *text, const char *key, sys_set_t alone, int32_t tid)
{
	for (sys_set_t set; (set = waiting(text, key) & ~alone) != 0;) {
		const struct timespec now = {0, 0};
		int sig = __builtin_ctzll(set) + 1;
		sys_set_t one = SYS_SET_BIT(sig);
		uint32_t i = atomic_load(&queued.count);
		do {
			if (i == QUEUED_MAX)
				return;
		} while (!atomic_compare_exchange_weak(&queued.count, &i, i + 1));
		struct queued_signal *q = &queued.at[i];
		memset(q, 0, sizeof(*q));
		q->tid = tid;
		if (sys(SYS_rt_sigtimedwait, &one, &q->info, &now, sizeof(one)) != sig)
			return;
		q->signal = sig;
	}
}

static bool send(const struct queued_signal *q)
{
	long pid = sys(SYS_getpid);
	return !(q->tid ? sys(SYS_rt_tgsigqueueinfo, pid, sys(SYS_gettid), q->signal, &q->info)
			: sys(SYS_rt_sigqueueinfo, pid, q->signal, &q->info));
}

void queued_collect(void)
{
	int32_t tid = (int32_t)sys(SYS_gettid);
	bool leader = tid == (int32_t)sys(SYS_getpid);
	sys_set_t any = 0;
	uint32_t begin = atomic_load(&queued.count);
	sys(SYS_rt_sigpending, &any, sizeof(any));
	if (!queued.at || !any)
		return;
	long room =
	    sys(SYS_mmap, 0, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (sys_failed(room))
		return;
	sys_set_t alone = left_alone((char *)room);
	take_all((char *)room, "SigPnd:\t", alone, tid);
	if (leader)
		take_all((char *)room, "ShdPnd:\t", alone, 0);
	sys(SYS_munmap, room, ROOM);
	for (uint32_t i = begin; i < atomic_load(&queued.count); i++)
		if (queued.at[i].signal &&
		    (queued.at[i].tid == tid || (leader && !queued.at[i].tid)))
			send(&queued.at[i]);
}

bool queued_restore(int32_t tid, int sig)
{
	bool sent = false;
	for (uint32_t i = 0; queued.at && i < atomic_load(&queued.count); i++)
		if (queued.at[i].signal == sig && queued.at[i].tid == tid)
			sent |= send(&queued.at[i]);
	return sent;
}
