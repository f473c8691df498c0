// SPDX-License-Identifier: BSD-3-Clause
/* Tasks that read memory of a window of their own process. Others may write there as soon as such a
 * task has told them so, by any MPI call; an execution after an error would read what the first one
 * has not seen. So what a task reads of windows is noted at its first MPI call, and it is executed
 * again only if that is there still, before and after. */
#include "task/family.h"

#include <string.h>

static uint64_t lane(uint64_t h, uint64_t x)
{
	h = (h ^ x) * 0x9e3779b97f4a7c15ull;
	return h ^ (h >> 29);
}

/* For telling whether somebody has written, not against somebody who wants it to be missed. */
static uint64_t range_mark(uint64_t h, const char *at, size_t length)
{
	uint64_t lanes[4] = {h, h + 1, h + 2, h + 3}, x[4];

	for (; length >= sizeof(x); at += sizeof(x), length -= sizeof(x)) {
		memcpy(x, at, sizeof(x));
		for (int i = 0; i < 4; i++)
			lanes[i] = lane(lanes[i], x[i]);
	}
	memset(x, 0, sizeof(x));
	memcpy(x, at, length);
	for (int i = 0; i < 4; i++)
		h = lane(h, lane(lanes[i], x[i]));
	return h;
}

static bool marked(const struct task_frame *f, uint64_t *mark)
{
	bool any = false;

	*mark = 1;
	for (uint32_t i = 0; i < f->record->count; i++) {
		const struct task_range *r = &f->record->ranges[i];

		if (r->written || !r->length || !task_mpi.window(r->at, r->length))
			continue;
		any = true;
		*mark = range_mark(*mark, r->at, r->length);
	}
	return any;
}

void task_window_note(void)
{
	struct task_frame *f = task_thread_self()->frame;

	if (!f || !f->record)
		return;
	task_family_spoke(f->record);
	f->reads_window = marked(f, &f->window_mark);
}

bool task_window_changed(const struct task_frame *f)
{
	uint64_t mark;

	return f->reads_window && (!marked(f, &mark) || mark != f->window_mark);
}
