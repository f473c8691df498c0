// SPDX-License-Identifier: BSD-3-Clause
/* The table of channels: one line each, in order of preference. */
#include "channel/channel.h"

#include "base/base.h"
#include "channel/net/net.h"
#include "channel/self/self.h"
#include "channel/shm/shm.h"

static const struct channel_ops *const channels[] = {
    &channel_self,
    &channel_net,
    &channel_shm,
};

/* The poll functions of the open channels: most rounds of progress find nothing, so the loop over
 * them is as short as can be. */
static int (*polls[ARRAY_LEN(channels)])(void);
static void (*flushes[ARRAY_LEN(channels)])(void);
static unsigned npolls, nflushes;

static void polls_choose(void)
{
	npolls = nflushes = 0;
	for (size_t i = 0; i < ARRAY_LEN(channels); i++) {
		const struct channel_ops *c = channels[i];
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
	for (size_t i = 0; i < ARRAY_LEN(channels); i++) {
		hale_status_t rc = channel_check(channels[i], err);
		if (rc == HALE_OK)
			rc = channels[i]->open(arrive, err);
		if (rc != HALE_OK) {
			while (i-- > 0)
				channels[i]->close();
			return rc;
		}
	}
	polls_choose();
	return HALE_OK;
}

void channel_close_all(void)
{
	npolls = nflushes = 0;
	for (size_t i = ARRAY_LEN(channels); i-- > 0;)
		channels[i]->close();
}

const struct channel_ops *channel_for(uint32_t rank)
{
	for (size_t i = 0; i < ARRAY_LEN(channels); i++)
		if (channels[i]->reaches(rank))
			return channels[i];
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
	for (size_t i = 0; i < ARRAY_LEN(channels); i++)
		if (channels[i]->before_sleep)
			channels[i]->before_sleep();
}

void channel_suspend_all(uint32_t round)
{
	for (size_t i = 0; i < ARRAY_LEN(channels); i++)
		if (channels[i]->suspend)
			channels[i]->suspend(round);
}

bool channel_drained_all(void)
{
	bool all = true;
	for (size_t i = 0; i < ARRAY_LEN(channels); i++)
		if (channels[i]->drained)
			all &= channels[i]->drained();
	return all;
}

void channel_resume_all(bool restored)
{
	for (size_t i = 0; i < ARRAY_LEN(channels); i++)
		if (channels[i]->resume)
			channels[i]->resume(restored);
	polls_choose();
}

void channel_forget_all(uint32_t rank)
{
	for (size_t i = 0; i < ARRAY_LEN(channels); i++)
		if (channels[i]->forget)
			channels[i]->forget(rank);
}

bool channel_settled_all(void)
{
	for (size_t i = 0; i < ARRAY_LEN(channels); i++)
		if (channels[i]->settled && !channels[i]->settled())
			return false;
	return true;
}
