// SPDX-License-Identifier: BSD-3-Clause
/* Beginning and end. */
#include "match/internal.h"

#include <string.h>
#include "channel/carry/carry.h"
#include "ckpt/libc_replay.h"
#include "match/decide.h"

struct match match;
__thread struct match_call match_call;
void (*match_call_tell)(const char *name);
uint64_t match_skipped_ns;

static hale_status_t peers_make(struct error *err)
{
	match.peer = heap_calloc(match.nranks, sizeof(*match.peer));
	if (!match.peer)
		return error_set(err, HALE_ERR_MEMORY, "no memory for %u peers", match.nranks);
	for (uint32_t i = 0; i < match.nranks; i++) {
		const struct channel_ops *c = redundant_on ? &channel_redundant : channel_for(i);
		if (!c)
			return error_set(err, HALE_ERR_LINK, "no channel reaches rank %u", i);
		match.peer[i].channel = c;
		match.peer[i].eager_max = *c->eager_max;
	}
	return HALE_OK;
}

static void channels_close(void)
{
	if (redundant_on)
		redundant_close();
	else
		channel_close_all();
}

int match_init(void)
{
	struct error err;
	match.rank = link_self()->rank;
	match.nranks = link_self()->nranks;
	match_crowd_look();
	match.meter = segment_meter(link_self()->segment, link_self()->process);
	hale_status_t rc = link_self()->degree > 1
			       ? redundant_open(match_arrive, &decide_hooks, &err)
			       : channel_open_all(match_arrive, &err);
	if (rc != HALE_OK) {
		log_warn("rank %u can't open its channels: %s", match.rank, err.text);
		return MPI_ERR_INTERN;
	}
	if (peers_make(&err) != HALE_OK) {
		log_warn("rank %u can't reach everybody: %s", match.rank, err.text);
		channels_close();
		return MPI_ERR_INTERN;
	}
	if (carry_arrived() && (!match_carry(carry_arrived()) || carry_arrived()->failed)) {
		log_warn("rank %u has no memory for what it was before MPI_Comm_spawn", match.rank);
		channels_close();
		return MPI_ERR_INTERN;
	}
	match_checkpoint_init();
	progress_init();
	if (redundant_on) {
		deliver_policy = &deliver_redundant;
		match_progress_hook(redundant_progress);
		hale_libc_replay_begin(&decide_libc_hooks);
		shadow_look();
	}
	return MPI_SUCCESS;
}

static bool nothing_left(void *arg)
{
	return !match.busy && !match.unsettled && !match.reading.first && !match.pushing.first;
}

bool match_settled(void)
{
	return nothing_left(NULL);
}

void match_settle(void)
{
	match_wait_until(nothing_left, NULL);
}

/* The caller has seen to it that every rank is here (a barrier): what is left are our own last
 * words, an acknowledgement for instance. */
void match_fini(void)
{
	match_wait_until(nothing_left, NULL);
	if (redundant_on) { /* until then this process may have to stand in for a dead one */
		hale_libc_replay_end();
		redundant_leave();
		match_wait_until(redundant_left, NULL);
		shadow_fini();
		decide_fini();
	}
	progress_hooks_forget();
	channels_close();
	match_queues_free();
	rendezvous_fini();
	match_requests_free();
	heap_free(match.peer);
	memset(&match, 0, sizeof(match));
}
