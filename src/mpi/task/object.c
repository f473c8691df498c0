/* SPDX-License-Identifier: BSD-3-Clause */
/* Communicators that tasks make, and objects that they free. */
#include "mpi/task/intask.h"

bool intask_comm_again(struct comm *parent, MPI_Comm *made)
{
	struct tasklog_channel *ch = intask_channel(TASKLOG_OBJECT, parent, 0, 0);
	struct intask_note *n;

	if (!ch || !tasklog_replays(ch))
		return false;
	n = intask_replay(ch);
	*made = n ? (MPI_Comm)n->object : MPI_COMM_NULL;
	return true;
}

void intask_comm_made(struct comm *parent, MPI_Comm made)
{
	struct tasklog_channel *ch = intask_channel(TASKLOG_OBJECT, parent, 0, 0);
	struct intask_note *n = ch ? intask_note_make(ch, 0) : NULL;

	if (n)
		n->object = (void *)made;
}

void intask_free(void *object, void (*end)(void *object))
{
	uintptr_t at = (uintptr_t)object;
	struct tasklog_channel *ch =
	    tasklog_channel(tasklog_now, TASKLOG_FREED, (uint32_t)(at >> 32), (int32_t)at, 0);
	struct intask_note *n;

	if (ch && tasklog_replays(ch)) {
		tasklog_replay(ch);
		return;
	}
	n = ch ? intask_note_make(ch, 0) : NULL;
	if (!n) { /* the task is not executed again */
		end(object);
		return;
	}
	n->object = object;
	n->end = end;
	intask_owned_add(n);
}
