// SPDX-License-Identifier: BSD-3-Clause
/* Memory that the program has locked (mlock, mlockall). The list that says so is long to make,
 * since the kernel looks at all pages for it: it is asked for only where something is locked. */
#include <string.h>
#include <sys/mman.h>

#include "image/engine.h"

enum { SMAPS_READ = 64 << 10, SMAPS_LINE = 5000 };

/* One mapping of /proc/PID/smaps, as far as it has been read. */
struct smaps {
	struct list *maps;
	size_t next; /* of maps: the first that may lie in the mapping or after it */
	uint64_t start, end, size_kib, resident_kib;
	uint64_t probe;
	uint32_t future;
	uint64_t wiped;	     /* the first mapping that is empty in forked processes; 0: none */
	struct list *advice; /* NULL: not wanted */
	bool failed;
};

static uint64_t hex_take(const char **p)
{
	uint64_t v = 0;
	for (;; (*p)++) {
		if (**p >= '0' && **p <= '9')
			v = v * 16 + (uint64_t)(**p - '0');
		else if (**p >= 'a' && **p <= 'f')
			v = v * 16 + (uint64_t)(**p - 'a' + 10);
		else
			return v;
	}
}

static uint64_t kib_of(const char *line)
{
	uint64_t v = 0;
	for (; *line && (*line < '0' || *line > '9'); line++)
		;
	for (; *line >= '0' && *line <= '9'; line++)
		v = v * 10 + (uint64_t)(*line - '0');
	return v;
}

static uint32_t advice_of(const char *line)
{
	static const struct {
		const char *word;
		uint32_t flag;
	} known[] = {{" sr", MAP_FLAG_SEQUENTIAL}, {" rr", MAP_FLAG_RANDOM},
		     {" dc", MAP_FLAG_DONTFORK},   {" dd", MAP_FLAG_DONTDUMP},
		     {" mg", MAP_FLAG_MERGEABLE},  {" hg", MAP_FLAG_HUGEPAGE},
		     {" nh", MAP_FLAG_NOHUGEPAGE}, {" wf", MAP_FLAG_WIPEONFORK},
		     {" nr", MAP_FLAG_NORESERVE},  {" dp", MAP_FLAG_DROPPABLE}};
	uint32_t flags = 0;
	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (strstr(line, known[i].word))
			flags |= known[i].flag;
	/* it is all that by itself */
	return flags & MAP_FLAG_DROPPABLE
		   ? flags & ~(uint32_t)(MAP_FLAG_WIPEONFORK | MAP_FLAG_DONTDUMP)
		   : flags;
}

/* The kernel's own mappings are not dumped, and stay as they are. */
static void advice_take(struct smaps *s, const char *line)
{
	uint32_t flags = advice_of(line);
	if (!s->advice || !flags || strstr(line, " pf") || strstr(line, " io") ||
	    map_is_excluded(s->start, s->end))
		return;
	struct advice_record *r = list_add(s->advice);
	if (r)
		*r = (struct advice_record){s->start, s->end, flags, 0};
	else
		s->failed = true;
}

/* "VmFlags: rd wr mr mw me lo ac" of the mapping in s. */
static void flags_take(struct smaps *s, const char *line)
{
	bool whole = s->resident_kib == s->size_kib;
	advice_take(s, line);
	if (!s->wiped && strstr(line, " wf") && !strstr(line, " dp"))
		s->wiped = s->start;
	if (!strstr(line, " lo"))
		return;
	if (s->start == s->probe)
		s->future = MCL_FUTURE | (whole ? 0 : MCL_ONFAULT);
	for (; s->next < s->maps->count; s->next++) {
		struct map *m = list_at(s->maps, s->next);
		if (m->start >= s->end)
			break;
		m->locked = m->start >= s->start;
		m->on_fault = !whole;
	}
}

static void line_take(struct smaps *s, const char *line)
{
	const char *p = line;
	if ((*line >= '0' && *line <= '9') || (*line >= 'a' && *line <= 'f')) {
		s->start = hex_take(&p);
		p++;
		s->end = hex_take(&p);
		while (s->next < s->maps->count &&
		       ((struct map *)list_at(s->maps, s->next))->end <= s->start)
			s->next++;
	} else if (!strncmp(line, "Size:", 5)) {
		s->size_kib = kib_of(line);
	} else if (!strncmp(line, "Rss:", 4)) {
		s->resident_kib = kib_of(line);
	} else if (!strncmp(line, "VmFlags:", 8)) {
		flags_take(s, line);
	}
}

/* Lines whole; what of the last one is there stays for the next turn. */
static bool smaps_read(struct smaps *s, struct arena *a)
{
	char *buf = arena_alloc(a, SMAPS_READ + SMAPS_LINE);
	long fd = sys(SYS_openat, AT_FDCWD, "/proc/thread-self/smaps", O_RDONLY | O_CLOEXEC);
	long n = 0, have = 0;
	if (!buf || fd < 0)
		return false;
	while ((n = sys(SYS_read, fd, buf + have, SMAPS_READ)) > 0) {
		char *line = buf, *end;
		have += n;
		for (; (end = memchr(line, '\n', (size_t)(buf + have - line))); line = end + 1) {
			*end = 0;
			line_take(s, line);
		}
		have = buf + have - line;
		if (have > SMAPS_LINE)
			break;
		memmove(buf, line, (size_t)have);
	}
	sys(SYS_close, fd);
	return n == 0;
}

static bool any_locked(void)
{
	char text[4096];
	if (sys_read_small("/proc/thread-self/status", text, sizeof(text)) <= 0)
		return false;
	const char *p = strstr(text, "\nVmLck:");
	return p && kib_of(p) > 0;
}

bool maps_find_locked(struct list *maps, uint32_t *future)
{
	struct smaps s = {.maps = maps};
	*future = 0;
	if (!any_locked())
		return true;
	/* what is mapped now is locked if everything is that is mapped in future; shared, so that
	 * no neighbour becomes one with it */
	long probe =
	    sys(SYS_mmap, 0, HALE_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	s.probe = sys_failed(probe) ? 0 : (uint64_t)probe;
	bool ok = smaps_read(&s, maps->arena);
	if (s.probe)
		sys(SYS_munmap, s.probe, HALE_PAGE);
	*future = s.future;
	return ok;
}

bool maps_find_advice(struct list *maps, struct list *advice, uint64_t *wiped)
{
	struct smaps s = {.maps = maps, .advice = advice};
	bool ok = smaps_read(&s, maps->arena);
	*wiped = s.wiped;
	return ok && !s.failed;
}

/* Does the kernel let it grow at its lower end? A call that changes nothing finds out. */
bool map_grows_down(const struct map *m)
{
	return !m->inode && !m->shared && !m->name[0] && m->prot &&
	       !sys(SYS_mprotect, m->start, HALE_PAGE, m->prot | PROT_GROWSDOWN);
}
