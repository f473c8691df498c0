// SPDX-License-Identifier: BSD-3-Clause
/* Guard regions: pages of a mapping that nobody may touch, made by madvise(MADV_GUARD_INSTALL), as
 * newer C libraries do at the ends of threads' stacks. They look like pages that are swapped out,
 * and whoever reads one gets SIGSEGV. Linux tells where they are since 6.16; before that they can't
 * be saved, and the writer of the image ends with a sentence. */
#include <sys/ioctl.h>

#include "image/engine.h"

enum { GUARDS_AT_ONCE = 64 };

bool guards_can_be_seen(int pagemap)
{
	struct sys_pm_scan arg = {.size = sizeof(arg),
				  .category_anyof_mask = SYS_PAGE_IS_GUARD,
				  .return_mask = SYS_PAGE_IS_GUARD};
	return sys(SYS_ioctl, pagemap, SYS_PAGEMAP_SCAN, &arg) >= 0;
}

bool guards_find(int pagemap, uint64_t start, uint64_t end, struct list *ranges)
{
	struct sys_page_region found[GUARDS_AT_ONCE];
	struct sys_pm_scan arg = {.size = sizeof(arg),
				  .end = end,
				  .vec = (uint64_t)found,
				  .vec_len = GUARDS_AT_ONCE,
				  .category_anyof_mask = SYS_PAGE_IS_GUARD,
				  .return_mask = SYS_PAGE_IS_GUARD};
	uint64_t listed = start;
	for (arg.start = start; arg.start < end; arg.start = arg.walk_end) {
		long n = sys(SYS_ioctl, pagemap, SYS_PAGEMAP_SCAN, &arg);
		if (n < 0 || arg.walk_end <= arg.start)
			return false;
		for (long i = 0; i < n; i++) {
			struct range *r;
			if (!sys_page_region_new(&found[i], &listed))
				continue;
			if (!(r = list_add(ranges)))
				return false;
			*r = (struct range){found[i].start, found[i].end};
		}
	}
	return true;
}

bool guards_in(const struct list *ranges, uint64_t start, uint64_t end)
{
	for (size_t i = 0; i < ranges->count; i++) {
		const struct range *r = list_at(ranges, i);
		if (r->start < end && r->end > start)
			return true;
	}
	return false;
}
