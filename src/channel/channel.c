// SPDX-License-Identifier: BSD-3-Clause
/* All channels of the table, one after the other. */
#include "channel/channel.h"

#include "channel/table.h"

/* The poll functions of the open channels: most rounds of progress find nothing, so the loop over
 * them is as short as can be. */
static int (*polls[CHANNELS])(void);
static void (*flushes[CHANNELS])(void);
static unsigned npolls, nflushes;

static void polls_choose(void)
{
	npolls = nflushes = 0;
	for (size_t i = 0; i < CHANNELS; i++) {
		const struct channel_ops *c = channel_table[i];
		if (c->used && !c->used())
			continue;
		if (c->poll)
			polls[npolls++] = c->poll;
		if (c->flush)
			flushes[nflushes++] = c->flush;
	}
}

hale_status_t channel_check(const struct channel_ops *c, struct error *err)
{
	if (c->name && c->open && c->reaches && c->send && c->reserve && c->commit && c->close &&
	    c->eager_max && !c->suspend == !c->drained && !c->suspend == !c->resume)
		return HALE_OK;
	return error_set(err, HALE_ERR_STATE, "channel %s lacks a mandatory operation",
			 c->name ? c->name : "(unnamed)");
}

hale_status_t channel_open_all(channel_arrive_t *arrive, struct error *err)
{
	for (size_t i = 0; i < CHANNELS; i++) {
		hale_status_t rc = channel_check(channel_table[i], err);
		if (rc == HALE_OK)
			rc = channel_table[i]->open(arrive, err);
		if (rc != HALE_OK) {
			while (i-- > 0)
				channel_table[i]->close();
			return rc;
		}
	}
	polls_choose();
	return HALE_OK;
}

void channel_close_all(void)
{
	npolls = nflushes = 0;
	for (size_t i = CHANNELS; i-- > 0;)
		channel_table[i]->close();
}

const struct channel_ops *channel_for(uint32_t rank)
{
	for (size_t i = 0; i < CHANNELS; i++)
		if (channel_table[i]->reaches(rank))
			return channel_table[i];
	return NULL;
}

int channel_poll_all(void)
{
	int arrived = 0;
	for (unsigned i = 0; i < npolls; i++)
		arrived += polls[i]();
	return arrived;
}

void channel_flush_all(void)
{
	for (unsigned i = 0; i < nflushes; i++)
		flushes[i]();
}

void channel_before_sleep_all(void)
{
	for (size_t i = 0; i < CHANNELS; i++)
		if (channel_table[i]->before_sleep)
			channel_table[i]->before_sleep();
}

void channel_suspend_all(uint32_t round)
{
	for (size_t i = 0; i < CHANNELS; i++)
		if (channel_table[i]->suspend)
			channel_table[i]->suspend(round);
}

bool channel_drained_all(void)
{
	bool all = true;
	for (size_t i = 0; i < CHANNELS; i++)
		if (channel_table[i]->drained)
			all &= channel_table[i]->drained();
	return all;
}

void channel_resume_all(bool restored)
{
	for (size_t i = 0; i < CHANNELS; i++)
		if (channel_table[i]->resume)
			channel_table[i]->resume(restored);
	polls_choose();
}

void channel_forget_all(uint32_t rank)
{
	for (size_t i = 0; i < CHANNELS; i++)
		if (channel_table[i]->forget)
			channel_table[i]->forget(rank);
}

/* The network may have to wait, and stands before the rings, which never do. */
bool channel_carry_all(struct carry *c)
{
	for (size_t i = 0; i < CHANNELS; i++)
		if (channel_table[i]->carry && !channel_table[i]->carry(c))
			return false;
	return true;
}

void channel_renew_all(uint32_t rank)
{
	for (size_t i = 0; i < CHANNELS; i++)
		if (channel_table[i]->renew)
			channel_table[i]->renew(rank);
}

void channel_pause_all(void)
{
	for (size_t i = 0; i < CHANNELS; i++)
		if (channel_table[i]->pause)
			channel_table[i]->pause();
}

bool channel_settled_all(void)
{
	for (size_t i = 0; i < CHANNELS; i++)
		if (channel_table[i]->settled && !channel_table[i]->settled())
			return false;
	return true;
}
