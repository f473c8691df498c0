// SPDX-License-Identifier: BSD-3-Clause
/* Which pages were written since the last capture. All private mappings are registered for
 * asynchronous write protection: the kernel lifts it at the first write to a page without waking
 * anybody, and one ioctl lists the pages where it is lifted and protects them again.
 *
 * Mappings made since then are not registered, which the ioctl says too: all of them is new. Pages
 * that exist no more need no tracking: a difference names absent pages anyway.
 *
 * Where the kernel can't do that (before Linux 6.7) the writing child compares a checksum of each
 * page with the one it had at the last capture (hashes.c). */
#include <errno.h>
#include <linux/userfaultfd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "image/capture.h"
#include "image/hashes.h"

enum { SCAN_REGIONS = 16384, TRACK_FD_FLOOR = 900 };

/* Shared between the process and its writing children. */
struct track_shared {
	_Atomic uint32_t whole; /* 1 + id of the newest tracked image that is written whole */
};

static struct {
	int uffd;
	bool impossible; /* this kernel can't */
	bool active;
	uint32_t id; /* of the capture that tracking is relative to */
	struct track_shared *shared;
} track = {.uffd = -1};

void track_reset(void)
{
	if (track.uffd >= 0)
		image_fd_disown(track.uffd);
	if (track.shared)
		image_exclude_remove(track.shared);
	track.uffd = -1;
	track.active = false;
	track.impossible = false;
	track.shared = NULL;
	hashes_forget();
}

static bool shared_open(void)
{
	if (track.shared)
		return true;
	long p =
	    sys(SYS_mmap, 0, HALE_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (sys_failed(p))
		return false;
	track.shared = (struct track_shared *)p;
	image_exclude_add(track.shared, HALE_PAGE);
	return true;
}

static bool uffd_open(void)
{
	struct uffdio_api api = {.api = UFFD_API,
				 .features = SYS_UFFD_WP_ASYNC | SYS_UFFD_WP_UNPOPULATED};
	if (track.uffd >= 0)
		return true;
	if (track.impossible)
		return false;
	const char *how = getenv("HALE_TRACK");
	if (how && !strcmp(how, "hash")) {
		track.impossible = true;
		return false;
	}
	long fd = sys(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | SYS_UFFD_USER_MODE_ONLY);
	if (fd >= 0 && sys(SYS_ioctl, fd, UFFDIO_API, &api)) {
		sys(SYS_close, fd);
		fd = -ENOSYS;
	}
	if (fd < 0) {
		track.impossible = true;
		log_warn("this kernel doesn't track writes (Linux 6.7 does): incremental "
			 "checkpoints compare checksums of all pages instead");
		return false;
	}
	/* out of the way of the numbers that programs get */
	long high = sys(SYS_fcntl, fd, F_DUPFD_CLOEXEC, TRACK_FD_FLOOR);
	if (high >= 0) {
		sys(SYS_close, fd);
		fd = high;
	}
	track.uffd = (int)fd;
	image_fd_own(track.uffd);
	return true;
}

static bool is_tracked_kind(const struct map *m)
{
	return !m->shared && !map_is_kernel(m) && !map_is_excluded(m->start, m->end);
}

/* Lists what was written in a registered mapping; protects it again if asked to. False when it
 * isn't registered. */
static bool scan_written(int pagemap, const struct map *m, bool protect,
			 struct sys_page_region *room, struct list *ranges)
{
	struct sys_pm_scan arg = {
	    .size = sizeof(arg),
	    .flags = SYS_PM_CHECK_WPASYNC | (protect ? SYS_PM_WP_MATCHING : 0),
	    .start = m->start,
	    .end = m->end,
	    .vec = (uint64_t)room,
	    .vec_len = room ? SCAN_REGIONS : 0,
	    .category_mask = SYS_PAGE_IS_WRITTEN,
	    .return_mask = SYS_PAGE_IS_WRITTEN,
	};
	uint64_t listed = m->start;
	while (arg.start < m->end) {
		long n = sys(SYS_ioctl, pagemap, SYS_PAGEMAP_SCAN, &arg);
		if (n < 0)
			return false;
		for (long i = 0; room && i < n; i++) {
			if (!sys_page_region_new(&room[i], &listed))
				continue;
			struct range *r = list_add(ranges);
			if (!r)
				return false;
			*r = (struct range){room[i].start, room[i].end};
		}
		if (arg.walk_end <= arg.start)
			return false;
		arg.start = arg.walk_end;
	}
	return true;
}

static void register_map(int pagemap, const struct map *m)
{
	struct uffdio_register r = {.range = {m->start, m->end - m->start},
				    .mode = UFFDIO_REGISTER_MODE_WP};
	if (!sys(SYS_ioctl, track.uffd, UFFDIO_REGISTER, &r))
		scan_written(pagemap, m, true, NULL, NULL);
}

static void track_by_kernel(struct capture *c)
{
	bool protect = c->params.track;
	long pagemap = sys(SYS_openat, AT_FDCWD, "/proc/thread-self/pagemap", O_RDONLY | O_CLOEXEC);
	struct sys_page_region *room =
	    c->incremental ? arena_alloc(&c->arena, SCAN_REGIONS * sizeof(*room)) : NULL;
	if (pagemap < 0 || (c->incremental && !room))
		c->incremental = false;
	for (size_t i = 0; i < c->maps.count; i++) {
		const struct map *m = list_at(&c->maps, i);
		struct map_written *w = list_at(&c->written, i);
		if (!is_tracked_kind(m))
			continue;
		if (c->incremental)
			w->whole = !scan_written((int)pagemap, m, protect, room, &w->ranges);
		if (protect && w->whole)
			register_map((int)pagemap, m);
	}
	if (pagemap >= 0)
		sys(SYS_close, pagemap);
}

void track_renew(struct capture *c)
{
	uint32_t base = c->params.identity.base;
	if (!c->incremental && !c->params.track)
		return;
	bool known =
	    track.active && track.id == base && atomic_load(&track.shared->whole) == base + 1;
	if (!known)
		c->incremental = false;
	if (!shared_open())
		return;
	if (uffd_open())
		track_by_kernel(c);
	else
		hashes_renew(c);
	if (c->params.track) {
		track.active = true;
		track.id = c->params.identity.id;
		atomic_store(&track.shared->whole, 0);
	}
}

void track_base_written(const struct capture *c)
{
	if (c->params.track && track.shared)
		atomic_store(&track.shared->whole, c->params.identity.id + 1);
}
