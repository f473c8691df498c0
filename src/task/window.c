// SPDX-License-Identifier: BSD-3-Clause
/* Tasks that read memory of a window of their own process. Any MPI call of such a task may tell
 * other processes that they can write there. An execution after an error would read what they have
 * written. So the first MPI call of the task notes a checksum of what the task reads there. The
 * task is executed again only if the checksum holds, before that execution and after it. */
#include "task/task.h"

#include <string.h>

static uint64_t lane(uint64_t h, uint64_t x)
{
	h = (h ^ x) * 0x9e3779b97f4a7c15ull;
	return h ^ (h >> 29);
}

/* A checksum for changes by accident: a program could make two contents with the same one. */
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

void task_window_note(struct task_frame *f)
{
	f->reads_window = marked(f, &f->window_mark);
}

bool task_window_changed(const struct task_frame *f)
{
	uint64_t mark;

	return f->reads_window && (!marked(f, &mark) || mark != f->window_mark);
}
