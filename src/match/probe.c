// SPDX-License-Identifier: BSD-3-Clause
/* Probes: looks at the messages that nobody has received yet, and taking one out by handle. */
#include "match/internal.h"

struct match_probe_look {
	uint32_t context, world;
	int tag;
	struct match_message *found;
};

static struct match_probe_look look_for(int src, int tag, struct comm *c)
{
	return (struct match_probe_look){context_of(c, 0),
					 src >= 0 ? (uint32_t)c->world[src] : MATCH_ANY, tag, NULL};
}

/* In a job with replicas its leader's look counts. */
static bool look_replayed(struct match_probe_look *l, bool wait)
{
	l->found = decide_probe(l->context, l->world, l->tag, wait);
	return l->found != NULL;
}

static bool look(void *arg)
{
	struct match_probe_look *l = arg;
	l->found = unexpected_find(l->context, l->world, l->tag);
	return l->found != NULL;
}

static void status_of(const struct match_message *m, MPI_Status *s)
{
	if (s == MPI_STATUS_IGNORE)
		return;
	s->MPI_SOURCE = m->envelope.source;
	s->MPI_TAG = m->envelope.tag;
	s->_cancelled = 0;
	s->_ucount = message_length(m);
}

static void status_of_none(MPI_Status *s)
{
	if (s == MPI_STATUS_IGNORE)
		return;
	s->MPI_SOURCE = MPI_PROC_NULL;
	s->MPI_TAG = MPI_ANY_TAG;
	s->_cancelled = 0;
	s->_ucount = 0;
}

int match_iprobe(int src, int tag, struct comm *c, int *flag, MPI_Status *status)
{
	struct match_probe_look l = look_for(src, tag, c);
	*flag = 1;
	if (src == MPI_PROC_NULL) {
		status_of_none(status);
		return MPI_SUCCESS;
	}
	if (UNLIKELY(redundant_on)) {
		look_replayed(&l, false);
	} else if (!look(&l)) {
		match_progress();
		look(&l);
	}
	*flag = l.found != NULL;
	if (l.found)
		status_of(l.found, status);
	return MPI_SUCCESS;
}

int match_probe(int src, int tag, struct comm *c, MPI_Status *status)
{
	struct match_probe_look l = look_for(src, tag, c);
	if (src == MPI_PROC_NULL) {
		status_of_none(status);
		return MPI_SUCCESS;
	}
	if (UNLIKELY(redundant_on))
		look_replayed(&l, true);
	else
		match_wait_until(look, &l);
	status_of(l.found, status);
	return MPI_SUCCESS;
}

static void message_take(struct match_probe_look *l, struct match_message **message,
			 MPI_Status *status)
{
	status_of(l->found, status);
	unexpected_remove(l->found);
	*message = l->found;
}

int match_improbe(int src, int tag, struct comm *c, int *flag, struct match_message **message,
		  MPI_Status *status)
{
	struct match_probe_look l = look_for(src, tag, c);
	*flag = 1;
	if (src == MPI_PROC_NULL) {
		*message = (struct match_message *)MPI_MESSAGE_NO_PROC;
		status_of_none(status);
		return MPI_SUCCESS;
	}
	if (UNLIKELY(redundant_on)) {
		look_replayed(&l, false);
	} else if (!look(&l)) {
		match_progress();
		look(&l);
	}
	*flag = l.found != NULL;
	*message = NULL;
	if (l.found)
		message_take(&l, message, status);
	return MPI_SUCCESS;
}

int match_mprobe(int src, int tag, struct comm *c, struct match_message **message,
		 MPI_Status *status)
{
	struct match_probe_look l = look_for(src, tag, c);
	if (src == MPI_PROC_NULL) {
		*message = (struct match_message *)MPI_MESSAGE_NO_PROC;
		status_of_none(status);
		return MPI_SUCCESS;
	}
	if (UNLIKELY(redundant_on))
		look_replayed(&l, true);
	else
		match_wait_until(look, &l);
	message_take(&l, message, status);
	return MPI_SUCCESS;
}

bool match_take(struct comm *c, int tag, bool (*skip)(void *arg, int source), void *arg,
		struct match_message **message, int *source, size_t *length)
{
	const struct context *context = match.context[context_of(c, 0)];
	for (struct match_message *m = context ? context->first : NULL; m; m = m->later) {
		if (m->envelope.tag != tag || (skip && skip(arg, m->envelope.source)))
			continue;
		*source = m->envelope.source;
		*length = message_length(m);
		unexpected_remove(m);
		*message = m;
		return true;
	}
	return false;
}

bool match_peek(struct comm *c, int tag)
{
	return unexpected_find(context_of(c, 0), MATCH_ANY, tag) != NULL;
}
