/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes to the device whose source is program memory that an earlier read has still to fill. They
 * must write what the read brings, so the server waits for the read. But a read may wait for a user
 * event, which the program sets by this same server. Then a thread waits instead, and an event
 * (gate) keeps the write from running before. */
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "ocl/remote/server_transfers.h"

static void release(cl_uint n, cl_event *list)
{
	for (cl_uint i = 0; i < n; i++)
		clReleaseEvent(list[i]);
}

cl_uint late_reads(cl_context c, const struct far *f, cl_event read[LATE_MAX])
{
	cl_uint n;

	while ((n = underway_reads(c, f, read, LATE_MAX)) > 0 && unset_events == 0) {
		clWaitForEvents(n, read);
		release(n, read);
		deliver();
	}
	return n;
}

/* Two own it: the thread that brings the data, and the code that issues the write. */
struct late {
	_Atomic int owners;
	bool refused; /* the runtime has not taken the write: drop() frees data */
	struct far far;
	char *data;
	cl_event gate; /* the write waits for it */
	cl_uint reads;
	cl_event read[LATE_MAX];
};

static void drop(struct late *l)
{
	if (atomic_fetch_sub(&l->owners, 1) > 1)
		return;
	if (l->refused)
		free(l->data);
	clReleaseEvent(l->gate);
	free(l);
}

static void *bring(void *arg)
{
	struct late *l = arg;

	clWaitForEvents(l->reads, l->read);
	deliver();
	clSetUserEventStatus(l->gate, far_move(&l->far, l->data, false) ? CL_COMPLETE : -1);
	release(l->reads, l->read);
	drop(l);
	return NULL;
}

struct late *late_begin(cl_context c, const struct far *f, char *data, cl_uint reads,
			cl_event *read)
{
	struct late *l = data ? calloc(1, sizeof(*l)) : NULL;
	pthread_t t;

	if (l) {
		*l = (struct late){.owners = 2, .far = *f, .data = data, .reads = reads};
		memcpy(l->read, read, reads * sizeof(*read));
		l->gate = clCreateUserEvent(c, NULL);
	}
	if (l && l->gate && pthread_create(&t, NULL, bring, l) == 0) {
		pthread_detach(t);
		return l;
	}
	if (l && l->gate)
		clReleaseEvent(l->gate);
	free(l);
	free(data);
	release(reads, read);
	return NULL;
}

cl_event late_gate(const struct late *l)
{
	return l->gate;
}

void late_end(struct late *l, bool refused)
{
	l->refused = refused;
	drop(l);
}
