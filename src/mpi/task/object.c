/* SPDX-License-Identifier: BSD-3-Clause */
/* Communicators that tasks make, and objects that they free. */
#include "mpi/task/intask.h"

bool intask_comm_again(struct comm *parent, MPI_Comm *made)
{
	struct intask_note *n;

	if (!intask_again(intask_channel(TASKLOG_OBJECT, parent, 0, 0), &n))
		return false;
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
	struct tasklog_channel *ch = intask_channel_of(TASKLOG_FREED, object);
	struct intask_note *n;

	if (intask_again(ch, &n))
		return;
	n = ch ? intask_note_make(ch, 0) : NULL;
	if (!n) { /* the task is not executed again */
		end(object);
		return;
	}
	n->object = object;
	n->end = end;
	intask_owned_add(n);
}
