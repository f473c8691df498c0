// SPDX-License-Identifier: BSD-3-Clause
/* What belongs to the process as a whole: its program, memory landmarks, working directory,
 * limits. */
#include <errno.h>
#include <linux/membarrier.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "base/fmt.h"
#include "image/hash.h"
#include "image/engine.h"

/* Fields of /proc/self/stat, counted as in proc(5). */
enum {
	STAT_START_CODE = 26,
	STAT_END_CODE = 27,
	STAT_START_STACK = 28,
	STAT_START_DATA = 45,
	STAT_END_DATA = 46,
	STAT_START_BRK = 47,
	STAT_ARG_START = 48,
	STAT_ENV_END = 51,
	STAT_FIELDS = 52,
};

enum { BARRIER_REGISTRATIONS = 1 << 9 }; /* MEMBARRIER_CMD_GET_REGISTRATIONS */

/* glibc's, since 2.35 */
extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned int __rseq_size __attribute__((weak));

/* Its path, also when another file stands there by now: whether that is the same program is found
 * out when it is executed. */
bool process_program(char *path, size_t cap)
{
	static const char deleted[] = " (deleted)";
	long n = sys(SYS_readlink, "/proc/thread-self/exe", path, cap - 1);
	long end = n - (long)(sizeof(deleted) - 1);
	path[n > 0 ? n : 0] = 0;
	if (end > 0 && !strcmp(path + end, deleted) && sys(SYS_faccessat, AT_FDCWD, path, F_OK))
		path[end] = 0;
	return n > 0;
}

uint64_t process_xfeatures(void)
{
	uint32_t a, b, c, d;
	__asm__ volatile("cpuid" : "=a"(a), "=b"(b), "=c"(c), "=d"(d) : "a"(1), "c"(0));
	if (!(c & 1u << 27)) /* OSXSAVE */
		return 3;
	__asm__ volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
	return (uint64_t)d << 32 | a;
}

static bool read_stat(uint64_t field[STAT_FIELDS])
{
	char text[2048];
	if (sys_read_small("/proc/thread-self/stat", text, sizeof(text)) <= 0)
		return false;
	char *p = strrchr(text, ')');
	if (!p)
		return false;
	p += 2;
	for (int i = 3; i < STAT_FIELDS; i++) {
		bool minus = *p == '-';
		uint64_t v = 0;
		p += minus;
		for (; *p && *p != ' '; p++)
			v = v * 10 + (uint64_t)(*p - '0');
		field[i] = v;
		p += *p == ' ';
	}
	return field[STAT_ENV_END] != 0;
}

static uint32_t read_umask(void)
{
	/* reading it from the kernel needs setting it; no other thread of ours runs meanwhile */
	long mask = sys(SYS_umask, 077);
	sys(SYS_umask, mask);
	return (uint32_t)mask;
}

int32_t process_oom_read(void)
{
	char text[32];
	return sys_read_small("/proc/self/oom_score_adj", text, sizeof(text)) > 0 ? atoi(text) : 0;
}

/* Everybody may raise it; less than it was at the start only root may ask for. */
void process_oom_write(int32_t adj)
{
	char text[32];
	size_t n = fmt_print(text, sizeof(text), "%d", (int)adj);
	long fd = sys(SYS_openat, AT_FDCWD, "/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	long rc = fd < 0 ? fd : sys(SYS_write, fd, text, n);
	if (fd >= 0)
		sys(SYS_close, fd);
	if (rc < 0)
		log_warn("after the restart oom_score_adj can't be %d again (error %ld)", (int)adj,
			 -rc);
}

/* Which kernels before 6.3 don't tell: then for what most use it for. */
static uint32_t barriers_registered(void)
{
	long known = sys(SYS_membarrier, BARRIER_REGISTRATIONS, 0, 0);
	return known >= 0 ? (uint32_t)known : MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED;
}

void process_register_barriers(uint32_t commands)
{
	for (uint32_t bit = 1; bit && bit <= commands; bit <<= 1)
		if (commands & bit)
			sys(SYS_membarrier, bit, 0, 0);
}

void process_kernel_regions(const struct list *maps, struct kernel_region region[PROCESS_REGIONS],
			    uint64_t *sum)
{
	unsigned n = 0;
	*sum = 0;
	memset(region, 0, PROCESS_REGIONS * sizeof(*region));
	for (size_t i = 0; i < maps->count && n < PROCESS_REGIONS; i++) {
		const struct map *m = list_at(maps, i);
		if (!map_is_kernel(m) || m->start >= 1ull << 47)
			continue;
		region[n].start = m->start;
		region[n].end = m->end;
		strncpy(region[n].name, m->name, sizeof(region[n].name) - 1);
		n++;
		if (!strcmp(m->name, "[vdso]"))
			*sum = hash64((const void *)m->start, m->end - m->start);
	}
}

hale_status_t process_collect(const struct list *maps, struct process_capture *p, struct error *err)
{
	struct process_record *r = &p->record;
	uint64_t stat[STAT_FIELDS];
	if (!read_stat(stat))
		return error_set(err, HALE_ERR_SYSTEM,
				 "can't read /proc/self/stat: is /proc mounted in this container?");
	r->pid = (int32_t)sys(SYS_getpid);
	r->tid_offset = engine.tid_offset;
	r->engine = (uint64_t)&engine;
	r->start_code = stat[STAT_START_CODE];
	r->end_code = stat[STAT_END_CODE];
	r->start_stack = stat[STAT_START_STACK];
	r->start_data = stat[STAT_START_DATA];
	r->end_data = stat[STAT_END_DATA];
	r->start_brk = stat[STAT_START_BRK];
	r->brk = (uint64_t)sys(SYS_brk, 0);
	r->arg_start = stat[STAT_ARG_START];
	r->arg_end = stat[STAT_ARG_START + 1];
	r->env_start = stat[STAT_ARG_START + 2];
	r->env_end = stat[STAT_ENV_END];
	process_kernel_regions(maps, r->region, &r->vdso_sum);
	for (int i = 0; i < (int)RLIM_NLIMITS; i++)
		sys(SYS_prlimit64, 0, i, NULL, &r->limits[i]);
	r->umask = read_umask();
	r->dumpable = (uint32_t)sys(SYS_prctl, PR_GET_DUMPABLE);
	int adopts = 0;
	sys(SYS_prctl, PR_GET_CHILD_SUBREAPER, &adopts);
	if (adopts)
		r->attributes |= PROCESS_SUBREAPER;
	if (sys(SYS_prctl, PR_GET_THP_DISABLE, 0, 0, 0, 0) == 1)
		r->attributes |= PROCESS_NO_HUGE_PAGES;
	r->barriers = barriers_registered();
	r->oom_adj = process_oom_read();
	r->oom_began = engine.oom_began;
	if (&__rseq_offset && &__rseq_size && __rseq_size) {
		r->rseq_offset = __rseq_offset;
		r->rseq_len = 32; /* what glibc registers, whatever it says is used */
	}
	long n = sys(SYS_getcwd, p->cwd, sizeof(p->cwd));
	if (n <= 0 || p->cwd[0] != '/')
		return error_set(err, HALE_ERR_UNSUPPORTED,
				 "the working directory no longer exists; change to another one");
	r->cwd_len = (uint32_t)n; /* with the NUL */
	n = sys_read_small("/proc/thread-self/auxv", p->auxv, sizeof(p->auxv));
	r->auxv_len = n > 0 ? (uint32_t)n : 0;
	return HALE_OK;
}

bool process_set_landmarks(const struct process_record *r, const void *auxv)
{
	struct prctl_mm_map map = {
	    .start_code = r->start_code,
	    .end_code = r->end_code,
	    .start_data = r->start_data,
	    .end_data = r->end_data,
	    .start_brk = r->start_brk,
	    .brk = r->brk,
	    .start_stack = r->start_stack,
	    .arg_start = r->arg_start,
	    .arg_end = r->arg_end,
	    .env_start = r->env_start,
	    .env_end = r->env_end,
	    .auxv = r->auxv_len ? (void *)(uintptr_t)auxv : NULL,
	    .auxv_size = r->auxv_len,
	    .exe_fd = (uint32_t)-1,
	};
	if (!sys(SYS_prctl, PR_SET_MM, PR_SET_MM_MAP, &map, sizeof(map)))
		return true;
	/* a kernel without it: brk can be moved as long as the heap begins at the same place */
	return (uint64_t)sys(SYS_brk, 0) == r->brk;
}

uint64_t process_start_brk(void)
{
	uint64_t stat[STAT_FIELDS];
	return read_stat(stat) ? stat[STAT_START_BRK] : 0;
}
