/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests and waits in jobs with replicas: what the leader of a rank saw complete, its followers wait
 * for (match/decide.h). */
#include "mpi/p2p/replay.h"

#include "match/decide.h"

static void await(struct request *r)
{
	if (!request_idle(r) && !r->complete)
		match_wait(r);
}

static bool all_complete(int count, const MPI_Request *requests)
{
	for (int i = 0; i < count; i++) {
		const struct request *r = request_of(requests[i]);
		if (!r->complete && !request_idle(r))
			return false;
	}
	return true;
}

bool replay_all(int count, const MPI_Request *requests)
{
	switch (decide_ask(DECIDE_ALL, NULL, NULL)) {
	case DECIDE_HERE: {
		bool yes = all_complete(count, requests);
		if (!yes) {
			match_progress();
			yes = all_complete(count, requests);
		}
		return decide_tell(DECIDE_ALL, yes, NULL, 0);
	}
	case DECIDE_YES:
		for (int i = 0; i < count; i++)
			await(request_of(requests[i]));
		return true;
	default:
		match_progress();
		return false;
	}
}

bool replay_one(struct request *r)
{
	switch (decide_ask(DECIDE_TEST, NULL, NULL)) {
	case DECIDE_HERE:
		if (!r->complete)
			match_progress();
		return decide_tell(DECIDE_TEST, r->complete, NULL, 0);
	case DECIDE_YES:
		await(r);
		return true;
	default:
		match_progress();
		return false;
	}
}

struct looking {
	int count;
	const MPI_Request *requests;
	int32_t *found;
	int n, max;
};

int request_first(int count, const MPI_Request *requests, int first)
{
	const struct request *oldest = request_of(requests[first]);

	for (int i = first + 1; i < count; i++) {
		const struct request *r = request_of(requests[i]);
		if (request_idle(r) || !r->complete || !request_was_first(r, oldest))
			continue;
		oldest = r;
		first = i;
	}
	return first;
}

static bool look(void *arg)
{
	struct looking *l = arg;

	l->n = 0;
	if (decide_withdrawn())
		return true;
	for (int i = 0; i < l->count && l->n < l->max; i++) {
		const struct request *r = request_of(l->requests[i]);
		if (!request_idle(r) && r->complete)
			l->found[l->n++] = i;
	}
	if (l->max == 1 && l->n == 1)
		l->found[0] = request_first(l->count, l->requests, l->found[0]);
	return l->n > 0;
}

static bool any_active(int count, const MPI_Request *requests)
{
	for (int i = 0; i < count; i++)
		if (!request_idle(request_of(requests[i])))
			return true;
	return false;
}

int replay_some(int count, const MPI_Request *requests, bool wait, int max, int32_t *found)
{
	enum decide_kind kind = max == 1 ? DECIDE_ANY : DECIDE_SOME;
	struct looking l = {count, requests, found, 0, max < REPLAY_MAX ? max : REPLAY_MAX};
	size_t size = (size_t)l.max * sizeof(*found);

	if (!any_active(count, requests))
		return MPI_UNDEFINED;
	decide_turn_t whose = decide_ask(kind, found, &size);
	while (whose == DECIDE_HERE && wait && !look(&l)) {
		match_wait_until(look, &l);
		size = (size_t)l.max * sizeof(*found);
		if (decide_withdrawn())
			whose = decide_ask(kind, found, &size);
	}
	switch (whose) {
	case DECIDE_HERE:
		match_progress();
		look(&l);
		decide_tell(kind, l.n > 0, found, (size_t)l.n * sizeof(*found));
		return l.n;
	case DECIDE_YES:
		l.n = (int)(size / sizeof(*found));
		for (int i = 0; i < l.n; i++) {
			if (found[i] < 0 || found[i] >= count)
				decide_differs("it waits for fewer requests than its leader did");
			await(request_of(requests[found[i]]));
		}
		return l.n;
	default:
		if (wait)
			decide_differs("it waits where its leader only looked");
		match_progress();
		return 0;
	}
}
