// SPDX-License-Identifier: BSD-3-Clause
#include "task/mend.h"
#include "task/inputs.h"

#include <string.h>
#include <sys/mman.h>

/* Puts what a copy has of the page into it, and notes which bytes these are. What the task writes
 * anew needs no copy. */
static void put(char *fresh, unsigned char *covered, uintptr_t page, const struct task_range *r,
		const char *copy)
{
	uintptr_t from = (uintptr_t)r->at, to = from + r->length;
	uintptr_t at = from > page ? from : page;
	uintptr_t end = to < page + HALE_PAGE ? to : page + HALE_PAGE;

	if ((!copy && !r->discard) || at >= end)
		return;
	if (copy)
		memcpy(fresh + (at - page), copy + (at - from), end - at);
	memset(covered + (at - page), 1, end - at);
}

bool task_mend_page(struct task_frame *f, void *address)
{
	uintptr_t page = (uintptr_t)address & ~(HALE_PAGE - 1);
	unsigned char covered[HALE_PAGE] = {0};
	char *fresh =
	    mmap(NULL, HALE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (fresh == MAP_FAILED)
		return false;
	for (uint32_t i = 0; i < f->record->count; i++) {
		/* while these are made, they are still those of another task */
		const char *copy = f->taking ? NULL : task_keep_of(f->keep, f->record, i);

		if (!copy && task_settings.keep_inputs)
			copy = task_inputs_of(f->record, i);
		put(fresh, covered, page, &f->record->ranges[i], copy);
	}
	/* in one step: other threads see the lost page or the whole one */
	if (memchr(covered, 0, HALE_PAGE) ||
	    mremap(fresh, HALE_PAGE, HALE_PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)page) ==
		MAP_FAILED) {
		munmap(fresh, HALE_PAGE);
		return false;
	}
	f->thread->count[TASK_MENDED]++;
	return true;
}
