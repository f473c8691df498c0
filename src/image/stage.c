// SPDX-License-Identifier: BSD-3-Clause
/* The staging area: each mapping of the image, with its file, its kind and, in the end, its
 * content, but at another address. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "image/ipc/ipc.h"
#include "image/sink.h"
#include "image/tree/tree.h"

enum {
	SCRATCH_LEN = 64 << 20,
	HUGE_MIN = 4 << 20,
	DROPPABLE = 0x08 /* MAP_DROPPABLE, Linux 6.11 */
};

#define HUGE	  (2ul << 20)
#define GAP_FIRST (1ul << 40)
#define GAP_LAST  (1ul << 47)

static uint64_t stage_bytes(const struct sink *s)
{
	uint64_t bytes = HUGE;
	for (size_t i = 0; i < s->t.map_count; i++)
		bytes += s->t.maps[i].end - s->t.maps[i].start + 3 * HUGE;
	return bytes;
}

/* First end of a mapping, of this process or of the image, that lies in [at, at + len). */
static uint64_t obstacle(const struct sink *s, uint64_t at, uint64_t len)
{
	for (size_t i = 0; i < s->here.count; i++) {
		const struct map *m = list_at(&s->here, i);
		if (m->start < at + len && m->end > at)
			return m->end;
	}
	for (size_t i = 0; i < s->t.map_count; i++)
		if (s->t.maps[i].start < at + len && s->t.maps[i].end > at)
			return s->t.maps[i].end;
	return 0;
}

bool sink_reserve_gap(struct sink *s, uint64_t len)
{
	uint64_t at = GAP_FIRST;
	len += SCRATCH_LEN + (PROCESS_REGIONS << 20);
	for (uint64_t end; (end = obstacle(s, at, len)) != 0;)
		at = ALIGN_UP(end, HUGE);
	if (at + len > GAP_LAST || !arena_init(&s->scratch, (void *)at, SCRATCH_LEN))
		return false;
	s->gap = at;
	s->gap_len = len;
	return true;
}

hale_status_t sink_find_gap(struct sink *s, struct error *err)
{
	if (sink_reserve_gap(s, stage_bytes(s)))
		return HALE_OK;
	return error_set(err, HALE_ERR_MEMORY,
			 "no room in the address space to rebuild the process: raise `ulimit -v`");
}

static hale_status_t cant_map(const struct map_record *m, const char *what, long rc,
			      struct error *err)
{
	return error_set(err, HALE_ERR_MEMORY, "can't map %s of %lu KiB (error %ld): free memory",
			 what, (unsigned long)((m->end - m->start) >> 10), -rc);
}

/* Differences, or rounds of a live image, will write where this image has nothing. */
static bool changes_later(const struct sink *s)
{
	return s->files > 1 || s->live_fd >= 0;
}

/* ---- kinds of mappings ---- */

/* Of a mapping, if all of it was mapped alike. */
static uint32_t advice_for(const struct sink *s, const struct map_record *m)
{
	for (size_t i = 0; i < s->t.advice_count; i++)
		if (s->t.advice[i].start <= m->start && s->t.advice[i].end >= m->end)
			return s->t.advice[i].flags;
	return 0;
}

/* The kernel lists neighbours apart that an image has as one. */
static long stage_parts(const struct sink *s, const struct map_record *m, uint64_t at, int prot)
{
	long rc = 0;
	for (size_t i = 0; i < s->t.advice_count && !sys_failed(rc); i++) {
		const struct advice_record *r = &s->t.advice[i];
		int flags = r->flags & MAP_FLAG_DROPPABLE ? DROPPABLE : MAP_PRIVATE;
		if (r->flags & MAP_FLAG_NORESERVE)
			flags |= MAP_NORESERVE;
		if (flags != MAP_PRIVATE && r->start >= m->start && r->end <= m->end &&
		    (r->start > m->start || r->end < m->end))
			rc = sys(SYS_mmap, at + (r->start - m->start), r->end - r->start, prot,
				 flags | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	}
	return rc;
}

static hale_status_t stage_anon(struct sink *s, size_t i, const struct map_record *m, uint64_t at,
				struct error *err)
{
	uint32_t advice = advice_for(s, m);
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
	if (advice & MAP_FLAG_DROPPABLE)
		flags = DROPPABLE | MAP_ANONYMOUS | MAP_FIXED;
	if (advice & MAP_FLAG_NORESERVE)
		flags |= MAP_NORESERVE;
	if (m->flags & MAP_FLAG_GROWSDOWN)
		flags |= MAP_GROWSDOWN;
	if (m->flags & MAP_FLAG_NORESERVE || !m->prot)
		flags |= MAP_NORESERVE;
	int prot = m->prot || m->pages || changes_later(s) ? PROT_READ | PROT_WRITE : PROT_NONE;
	long rc = sys(SYS_mmap, at, m->end - m->start, prot, flags, -1, 0);
	/* more than there is memory: the program can only have had it with MAP_NORESERVE */
	if (rc == -ENOMEM)
		rc = sys(SYS_mmap, at, m->end - m->start, prot, flags | MAP_NORESERVE, -1, 0);
	if (!sys_failed(rc) && !(m->flags & MAP_FLAG_GROWSDOWN))
		rc = stage_parts(s, m, at, prot);
	if (sys_failed(rc))
		return cant_map(m, "memory", rc, err);
	/* huge pages come zeroed and filled four times as fast, when nearly all of it is used */
	uint64_t pages = (m->end - m->start) / HALE_PAGE;
	if (s->how == IMAGE_FULL && pages * HALE_PAGE >= HUGE_MIN && m->pages >= pages - pages / 16)
		sys(SYS_madvise, at, m->end - m->start, MADV_HUGEPAGE);
	return HALE_OK;
}

static hale_status_t missing(const char *path, long error, struct error *err)
{
	return error_set(
	    err, HALE_ERR_IMAGE_MISMATCH,
	    "%s, which the program uses, can't be opened (error %ld): install it again", path,
	    -error);
}

/* This image puts back the file's content, and when it was written. */
static bool is_set_back(const struct sink *s, const struct map_record *m)
{
	for (size_t i = 0; i < s->t.fd_count; i++) {
		const struct fd_record *r = &s->t.fds[i];
		if (r->kind == FD_FILE && r->truncates &&
		    !strcmp(fd_text(&s->fds, r), s->t.map_text + m->path_offset))
			return true;
	}
	for (size_t i = 0; i < s->t.map_count; i++) {
		const struct map_record *o = &s->t.maps[i];
		if (o->kind == MAP_KIND_SHARED_FILE && o->prot & PROT_WRITE &&
		    o->inode == m->inode && o->device == m->device)
			return true;
	}
	return false;
}

static hale_status_t stage_file(struct sink *s, size_t i, const struct map_record *m, uint64_t at,
				struct error *err)
{
	const char *path = s->t.map_text + m->path_offset;
	struct file_stamp now;
	long fd = sys(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return missing(path, fd, err);
	if (file_stamp_read((int)fd, &now) != HALE_OK ||
	    (!file_stamp_same(&now, &m->stamp) && !is_set_back(s, m))) {
		sys(SYS_close, fd);
		return error_set(err, HALE_ERR_IMAGE_MISMATCH,
				 "%s is another version than at the checkpoint: install that one, "
				 "or start the program anew",
				 path);
	}
	int prot = m->pages || s->files > 1 ? PROT_READ | PROT_WRITE : (int)m->prot;
	long rc =
	    sys(SYS_mmap, at, m->end - m->start, prot, MAP_PRIVATE | MAP_FIXED, fd, m->offset);
	sys(SYS_close, fd);
	return sys_failed(rc) ? cant_map(m, path, rc, err) : HALE_OK;
}

static hale_status_t stage_shared_file(struct sink *s, size_t i, const struct map_record *m,
				       uint64_t at, struct error *err)
{
	const char *path = s->t.map_text + m->path_offset;
	bool writes = m->prot & PROT_WRITE;
	/* also where it only reads now: it may want to write later, as mprotect lets it */
	long fd = sys(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC);
	if (fd == -ENOENT && writes) /* its content is in the image */
		fd = sys(SYS_openat, AT_FDCWD, path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 && !writes)
		fd = sys(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return missing(path, fd, err);
	long rc =
	    sys(SYS_mmap, at, m->end - m->start, m->prot, MAP_SHARED | MAP_FIXED, fd, m->offset);
	s->shared_fd[i] = (int)fd; /* to write its content, then closed with all others */
	return sys_failed(rc) ? cant_map(m, path, rc, err) : HALE_OK;
}

/* An earlier mapping, or a descriptor, of the same memory. */
static int shared_source(const struct sink *s, size_t i)
{
	const struct map_record *m = &s->t.maps[i];
	for (size_t k = 0; k < i; k++)
		if (s->t.maps[k].kind == MAP_KIND_SHARED_ANON && s->t.maps[k].inode == m->inode &&
		    s->t.maps[k].device == m->device)
			return s->shared_fd[k];
	int fd = tree_memory(m->device, m->inode);
	if (fd >= 0)
		return fd;
	for (size_t k = 0; k < s->t.fd_count; k++)
		if (s->t.fds[k].kind == FD_UNLINKED && s->t.fds[k].inode == m->inode)
			return s->fds.temp[k];
	return -1;
}

static hale_status_t stage_shared_anon(struct sink *s, size_t i, const struct map_record *m,
				       uint64_t at, struct error *err)
{
	struct stat st = {0};
	long fd = shared_source(s, i), rc = 0;
	if (fd < 0)
		fd = sys(SYS_memfd_create, "shared", MFD_CLOEXEC);
	if (fd < 0)
		return cant_map(m, "shared memory", fd, err);
	uint64_t size = m->offset + (m->end - m->start);
	if (!sys(SYS_fstat, fd, &st) && (uint64_t)st.st_size < size)
		rc = sys(SYS_ftruncate, fd, size);
	if (!rc)
		rc = sys(SYS_mmap, at, m->end - m->start, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_FIXED, fd, m->offset);
	s->shared_fd[i] = (int)fd;
	return sys_failed(rc) ? cant_map(m, "shared memory", rc, err) : HALE_OK;
}

static hale_status_t stage_sysv(struct sink *s, size_t i, const struct map_record *m, uint64_t at,
				struct error *err)
{
	long rc = ipc_attach((int)m->inode, at, m->offset, m->end - m->start);
	return rc ? cant_map(m, "System V shared memory", rc, err) : HALE_OK;
}

/* Congruent to the final address modulo the size of a huge page: then whole page tables move. */
static void place(struct sink *s)
{
	uint64_t at = s->gap + SCRATCH_LEN;
	for (size_t i = 0; i < s->t.map_count; i++) {
		const struct map_record *m = &s->t.maps[i];
		at = ALIGN_UP(at, HUGE) + HUGE + m->start % HUGE;
		s->stage[i] = at;
		at += m->end - m->start;
	}
}

hale_status_t sink_stage_map(struct sink *s, size_t i, const struct map_record *m, uint64_t at,
			     struct error *err)
{
	static hale_status_t (*const by_kind[])(struct sink *, size_t, const struct map_record *,
						uint64_t, struct error *) = {
	    [MAP_KIND_ANON] = stage_anon,
	    [MAP_KIND_FILE] = stage_file,
	    [MAP_KIND_SHARED_FILE] = stage_shared_file,
	    [MAP_KIND_SHARED_ANON] = stage_shared_anon,
	    [MAP_KIND_SYSV] = stage_sysv,
	};
	return by_kind[m->kind](s, i, m, at, err);
}

static hale_status_t install_guards(struct sink *s, struct error *err)
{
	for (size_t i = 0; i < s->t.guard_count; i++) {
		const struct range *g = &s->t.guards[i];
		for (uint64_t at = g->start, end; at < g->end; at = end) {
			size_t map;
			uint64_t to = sink_stage_of(s, at, &end, &map);
			if (end > g->end)
				end = g->end;
			long rc = to ? sys(SYS_madvise, to, end - at, SYS_MADV_GUARD_INSTALL) : 0;
			if (rc)
				return error_set(
				    err, HALE_ERR_UNSUPPORTED,
				    "the program has guard regions (MADV_GUARD_INSTALL), "
				    "which this kernel does not make (error %ld)",
				    -rc);
		}
	}
	return HALE_OK;
}

hale_status_t sink_stage_protect(struct sink *s, struct error *err)
{
	for (size_t i = 0; i < s->t.map_count; i++) {
		const struct map_record *m = &s->t.maps[i];
		long failed = sys(SYS_mprotect, s->stage[i], m->end - m->start, m->prot);
		if (failed)
			return cant_map(m, "memory", failed, err);
	}
	return install_guards(s, err);
}

hale_status_t sink_stage(struct sink *s, struct error *err)
{
	hale_status_t rc = HALE_OK;
	s->stage = arena_alloc(&s->arena, s->t.map_count * sizeof(*s->stage));
	s->shared_fd = arena_alloc(&s->arena, s->t.map_count * sizeof(*s->shared_fd));
	if (!s->stage || !s->shared_fd)
		return error_set(err, HALE_ERR_MEMORY, "no memory to rebuild the process");
	for (size_t i = 0; i < s->t.map_count; i++)
		s->shared_fd[i] = -1;
	place(s);
	for (size_t i = 0; i < s->t.map_count && rc == HALE_OK; i++)
		rc = sink_stage_map(s, i, &s->t.maps[i], s->stage[i], err);
	if (rc == HALE_OK)
		rc = sink_load(s, err);
	return rc == HALE_OK ? sink_stage_protect(s, err) : rc;
}

/* Of a live image: what others have written to it since stays. */
static bool is_left(const struct sink *s, int32_t map)
{
	struct stat st = {0};
	return s->live_fd >= 0 && !sys(SYS_fstat, s->shared_fd[map], &st) &&
	       st.st_ino == s->t.maps[map].inode;
}

hale_status_t sink_settle_files(struct sink *s, struct error *err)
{
	for (size_t i = 0; i < s->content_count; i++) {
		const struct content *c = &s->contents[i];
		int32_t map = c->record.map_index;
		if (c->record.fd_index >= 0 || map < 0 || (size_t)map >= s->t.map_count ||
		    s->shared_fd[map] < 0 || is_left(s, map))
			continue;
		int rc = sys_write_at(s->shared_fd[map], c->data, c->len, c->record.offset);
		if (!rc)
			rc = (int)sys(SYS_ftruncate, s->shared_fd[map], c->record.total);
		if (rc)
			return error_set(err, HALE_ERR_STORE,
					 "%s can't be set back to what it was at the checkpoint "
					 "(error %d)",
					 s->t.map_text + s->t.maps[map].path_offset, -rc);
	}
	return HALE_OK;
}
