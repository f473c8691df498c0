// SPDX-License-Identifier: BSD-3-Clause
/* The memory map of a process, from /proc/PID/maps. */
#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "image/engine.h"

enum { MAPS_READ = 64 << 10, NOTE_MAX = 4096 };

static uint64_t take_hex(const char **p)
{
	uint64_t v = 0;
	for (;; (*p)++) {
		char c = **p;
		if (c >= '0' && c <= '9')
			v = v * 16 + (uint64_t)(c - '0');
		else if (c >= 'a' && c <= 'f')
			v = v * 16 + (uint64_t)(c - 'a' + 10);
		else
			return v;
	}
}

static uint64_t take_decimal(const char **p)
{
	uint64_t v = 0;
	for (; **p >= '0' && **p <= '9'; (*p)++)
		v = v * 10 + (uint64_t)(**p - '0');
	return v;
}

/* 7ffff7dd5000-7ffff7dfb000 r-xp 00001000 fe:00 332383      /usr/lib/ld.so (deleted) */
static void parse_line(char *line, char *end, struct map *m)
{
	const char *p = line;
	m->start = take_hex(&p);
	p++;
	m->end = take_hex(&p);
	p++;
	m->prot = (p[0] == 'r' ? PROT_READ : 0) | (p[1] == 'w' ? PROT_WRITE : 0) |
		  (p[2] == 'x' ? PROT_EXEC : 0);
	m->shared = p[3] == 's';
	p += 5;
	m->offset = take_hex(&p);
	p++;
	uint64_t major = take_hex(&p);
	p++;
	m->device = major << 32 | take_hex(&p);
	p++;
	m->inode = take_decimal(&p);
	while (*p == ' ')
		p++;
	*end = 0;
	m->name = p;
	static const char deleted[] = " (deleted)";
	size_t n = (size_t)(end - p), suffix = sizeof(deleted) - 1;
	if (n > suffix && !memcmp(end - suffix, deleted, suffix)) {
		end[-(long)suffix] = 0;
		m->deleted = true;
	}
	if (!strncmp(m->name, "[anon", 5)) /* a name that the program itself gave */
		m->name = "";
}

/* NULL: *rc says why, 0: no memory. */
static char *read_whole(const char *path, struct arena *a, size_t *len, long *rc)
{
	struct arena_bytes text;
	bytes_init(&text, a);
	long fd = sys(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC), n = -1;
	*rc = fd < 0 ? fd : 0;
	if (fd < 0)
		return NULL;
	/* a read of this file gives at most a page, and only that much of the room is touched */
	for (char *p; (p = bytes_room(&text, MAPS_READ)); text.len += (size_t)n)
		if ((n = sys(SYS_read, fd, p, MAPS_READ)) <= 0)
			break;
	sys(SYS_close, fd);
	*len = text.len;
	*rc = n < 0 ? n : 0;
	return n == 0 ? text.data : NULL;
}

/* The excluded region that begins first in m, as far as it lies in it. */
static bool first_excluded(const struct map *m, uint64_t *start, uint64_t *end)
{
	bool found = false;
	for (int i = 0; i < ENGINE_OWN_MAX; i++) {
		uint64_t s = engine.exclude[i].start, e = engine.exclude[i].end;
		if (!e || s >= m->end || e <= m->start || (found && s >= *start))
			continue;
		found = true;
		*start = s > m->start ? s : m->start;
		*end = e < m->end ? e : m->end;
	}
	return found;
}

/* The kernel makes one mapping of neighbours that are alike, even if one of them is ours: cut it
 * where excluded memory begins and ends. */
static bool add_cut(struct list *maps, struct map m)
{
	uint64_t start = 0, end = 0;
	while (m.start < m.end) {
		struct map part = m;
		if (first_excluded(&m, &start, &end))
			part.end = start > m.start ? start : end;
		struct map *added = list_add(maps);
		if (!added)
			return false;
		*added = part;
		m.offset += m.inode ? part.end - m.start : 0;
		m.start = part.end;
	}
	return true;
}

static hale_status_t cant_read(const char *path, bool own, long rc, struct error *err)
{
	if (!own && (rc == -ESRCH || rc == -ENOENT))
		return error_set(err, HALE_ERR_AGAIN,
				 "can't read %s: that process has just ended, or begun", path);
	if (rc == -EMFILE || rc == -ENFILE)
		return error_set(err, HALE_ERR_SYSTEM,
				 "can't read %s: no number is free for a descriptor; raise "
				 "`ulimit -n`",
				 path);
	return error_set(err, HALE_ERR_SYSTEM,
			 "can't read %s (error %ld): is /proc mounted in this container?", path,
			 -rc);
}

hale_status_t maps_scan(const char *path, struct arena *a, struct list *maps, struct error *err)
{
	size_t len;
	list_init(maps, a, sizeof(struct map));
	bool own = !strncmp(path, "/proc/thread-self/", 18);
	long rc;
	char *text = read_whole(path, a, &len, &rc);
	if (!text)
		return cant_read(path, own, rc, err);
	for (char *line = text, *end; line < text + len; line = end + 1) {
		end = memchr(line, '\n', (size_t)(text + len - line));
		if (!end)
			break;
		struct map m = {0}, *added = NULL;
		parse_line(line, end, &m);
		if (own ? !add_cut(maps, m) : !(added = list_add(maps)))
			return error_set(err, HALE_ERR_MEMORY, "no memory for the map of memory");
		if (added)
			*added = m;
	}
	return HALE_OK;
}

bool map_is_kernel(const struct map *m)
{
	return !strncmp(m->name, "[v", 2); /* [vdso], [vvar], [vvar_vclock], [vsyscall] */
}

bool map_is_excluded(uint64_t start, uint64_t end)
{
	for (int i = 0; i < ENGINE_OWN_MAX; i++)
		if (engine.exclude[i].end && start < engine.exclude[i].end &&
		    end > engine.exclude[i].start)
			return true;
	return false;
}

bool map_is_own_source(const struct map *m)
{
	for (unsigned i = 0; m->inode && i < engine.source_count; i++)
		if (engine.source[i].inode == m->inode && engine.source[i].device == m->device)
			return true;
	return false;
}

const char *map_refusal(const struct map *m)
{
	if (!strncmp(m->name, "/dev/", 5) && strncmp(m->name, "/dev/shm/", 9) &&
	    strncmp(m->name, "/dev/hugepages/", 15) && strcmp(m->name, "/dev/zero"))
		return "memory of a device";
	if (!strncmp(m->name, "anon_inode:", 11))
		return "memory shared with the kernel";
	if (!strncmp(m->name, "socket:", 7))
		return "memory of a socket";
	if (!strncmp(m->name, "/[aio]", 6))
		return "a context for asynchronous I/O (io_setup)";
	return NULL;
}

bool map_is_sysv(const struct map *m)
{
	return !strncmp(m->name, "/SYSV", 5) && m->shared && m->deleted;
}

enum map_kind map_kind_of(const struct map *m)
{
	if (map_is_sysv(m))
		return MAP_KIND_SYSV;
	bool named = m->name[0] == '/' && !m->deleted && strcmp(m->name, "/dev/zero");
	if (m->shared)
		return named ? MAP_KIND_SHARED_FILE : MAP_KIND_SHARED_ANON;
	return named && !map_is_own_source(m) ? MAP_KIND_FILE : MAP_KIND_ANON;
}

/* Parts of one region that a lazy restart or our own tracking has split. */
static bool continues(const struct map_record *before, const struct map_record *r)
{
	return before->kind == MAP_KIND_ANON && r->kind == MAP_KIND_ANON &&
	       before->end == r->start && before->prot == r->prot && before->flags == r->flags &&
	       !r->flags;
}

static uint32_t flags_of(const struct map *m)
{
	uint32_t flags = 0;
	if (!strcmp(m->name, "[stack]") || map_grows_down(m))
		flags |= MAP_FLAG_GROWSDOWN;
	if (m->locked)
		flags |= MAP_FLAG_LOCKED | (m->on_fault ? MAP_FLAG_ONFAULT : 0);
	return flags;
}

hale_status_t maps_record(const struct list *maps, struct list *records, struct arena_bytes *text,
			  struct error *err)
{
	for (size_t i = 0; i < maps->count; i++) {
		const struct map *m = list_at(maps, i);
		struct map_record r = {.start = m->start,
				       .end = m->end,
				       .kind = map_kind_of(m),
				       .prot = m->prot,
				       .device = m->device,
				       .inode = m->inode};
		if (map_is_kernel(m) || map_is_excluded(m->start, m->end))
			continue;
		r.flags = flags_of(m);
		if (r.kind != MAP_KIND_ANON)
			r.offset = m->offset;
		if (records->count && continues(list_at(records, records->count - 1), &r)) {
			((struct map_record *)list_at(records, records->count - 1))->end = r.end;
			continue;
		}
		if (r.kind == MAP_KIND_FILE || r.kind == MAP_KIND_SHARED_FILE) {
			size_t n = strlen(m->name) + 1;
			char *path = bytes_extend(text, n);
			if (!path)
				return error_set(err, HALE_ERR_MEMORY, "no memory for paths");
			memcpy(path, m->name, n);
			r.path_offset = (uint32_t)(text->len - n);
			r.path_len = (uint32_t)n;
		}
		struct map_record *added = list_add(records);
		if (!added)
			return error_set(err, HALE_ERR_MEMORY, "no memory for the map of memory");
		*added = r;
	}
	return HALE_OK;
}

/* ---- what a file is ---- */

static void find_build_id(const char *note, size_t len, struct file_stamp *stamp)
{
	for (size_t at = 0; at + sizeof(Elf64_Nhdr) <= len;) {
		Elf64_Nhdr n;
		memcpy(&n, note + at, sizeof(n));
		size_t name = at + sizeof(n), desc = name + ALIGN_UP((size_t)n.n_namesz, 4);
		if (desc > len || n.n_descsz > len - desc)
			return;
		if (n.n_type == NT_GNU_BUILD_ID && n.n_namesz == 4 &&
		    !memcmp(note + name, "GNU", 4) && n.n_descsz <= BUILD_ID_MAX) {
			stamp->build_id_len = n.n_descsz;
			memcpy(stamp->build_id, note + desc, n.n_descsz);
			return;
		}
		at = desc + ALIGN_UP((size_t)n.n_descsz, 4);
	}
}

static void read_build_id(int fd, struct file_stamp *stamp)
{
	Elf64_Ehdr e;
	Elf64_Phdr p;
	char note[NOTE_MAX];
	if (sys_read_at(fd, &e, sizeof(e), 0) || memcmp(e.e_ident, ELFMAG, SELFMAG) ||
	    e.e_ident[EI_CLASS] != ELFCLASS64 || e.e_phentsize != sizeof(p))
		return;
	for (int i = 0; i < e.e_phnum && !stamp->build_id_len; i++) {
		if (sys_read_at(fd, &p, sizeof(p), e.e_phoff + (uint64_t)i * sizeof(p)))
			return;
		if (p.p_type != PT_NOTE || p.p_filesz > sizeof(note) ||
		    sys_read_at(fd, note, p.p_filesz, p.p_offset))
			continue;
		find_build_id(note, p.p_filesz, stamp);
	}
}

hale_status_t file_stamp_read(int fd, struct file_stamp *stamp)
{
	struct stat st = {0};
	memset(stamp, 0, sizeof(*stamp));
	if (sys(SYS_fstat, fd, &st))
		return HALE_ERR_SYSTEM;
	stamp->size = (uint64_t)st.st_size;
	stamp->mtime_ns = st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
	if (S_ISREG(st.st_mode))
		read_build_id(fd, stamp);
	return HALE_OK;
}

bool file_stamp_same(const struct file_stamp *a, const struct file_stamp *b)
{
	if (a->build_id_len && b->build_id_len)
		return a->build_id_len == b->build_id_len &&
		       !memcmp(a->build_id, b->build_id, a->build_id_len);
	return a->size == b->size && a->mtime_ns == b->mtime_ns;
}
