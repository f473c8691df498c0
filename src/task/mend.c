// SPDX-License-Identifier: BSD-3-Clause
#include "task/mend.h"
#include "task/fault.h"
#include "task/inputs.h"

#include <string.h>
#include <sys/mman.h>

/* A page that is made anew, and which of its bytes have been put in. */
struct fresh {
	char *bytes;
	uintptr_t page;
	unsigned char covered[HALE_PAGE];
};

/* Puts in what a copy has of the page, and nobody has put in yet. Without a copy these bytes are of
 * no interest: the task writes them anew. */
static void put(void *arg, const char *range, size_t length, const char *copy)
{
	struct fresh *f = arg;
	uintptr_t from = (uintptr_t)range, to = from + length;
	uintptr_t at = from > f->page ? from : f->page;
	uintptr_t end = to < f->page + HALE_PAGE ? to : f->page + HALE_PAGE;

	for (; at < end; at++) {
		if (f->covered[at - f->page])
			continue;
		f->covered[at - f->page] = 1;
		if (copy)
			f->bytes[at - f->page] = copy[at - from];
	}
}

static void put_ranges(struct fresh *to, const struct task_frame *f)
{
	for (uint32_t i = 0; f->record && i < f->record->count; i++) {
		const struct task_range *r = &f->record->ranges[i];
		/* while these are made, they are still those of another task */
		const char *copy = f->taking ? NULL : task_keep_of(f->keep, f->record, i);

		if (!copy && task_settings.keep_inputs)
			copy = task_inputs_of(f->record, i);
		if (copy || r->discard)
			put(to, r->at, r->length, copy);
	}
}

static void put_nothing(void *arg, const char *range, size_t length, const char *copy)
{
}

/* In one step: other threads see the lost page or the whole one. */
static bool page_replace(const struct fresh *f)
{
	return !memchr(f->covered, 0, HALE_PAGE) && task_fault_replace((void *)f->page, f->bytes);
}

bool task_mend_page(struct task_frame *f, void *address)
{
	struct fresh to = {.page = (uintptr_t)address & ~(HALE_PAGE - 1)};
	bool mended;

	to.bytes =
	    mmap(NULL, HALE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (to.bytes == MAP_FAILED)
		return false;
	put_ranges(&to, f);
	if (task_settings.keep_inputs) {
		bool landing = task_mpi.landing((void *)to.page, HALE_PAGE);

		/* what other tasks declare, too: none begins to write it before the page is there
		 */
		task_inputs_hold(landing ? put_nothing : put, &to);
		mended = page_replace(&to);
		task_inputs_release();
	} else {
		mended = page_replace(&to);
	}
	if (!mended)
		munmap(to.bytes, HALE_PAGE);
	f->thread->count[TASK_MENDED] += mended;
	return mended;
}
