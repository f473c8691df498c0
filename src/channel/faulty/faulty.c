// SPDX-License-Identifier: BSD-3-Clause
#include "channel/faulty/faulty.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

static const struct channel_ops *const *inner;
static size_t inner_count;
static struct channel_faults faults;
static struct channel_faults_done done;
static uint64_t random_state, sends;
static bool looks_surely; /* the next poll does: somebody is about to sleep */
static bool owes_a_try;	  /* the next poll says that something has moved */

static uint32_t draw(uint32_t below)
{
	uint64_t z = (random_state += 0x9e3779b97f4a7c15ull);
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return (uint32_t)((z ^ (z >> 31)) % below);
}

static bool happens(uint32_t of_1000, uint64_t *count)
{
	if (of_1000 == 0 || draw(1000) >= of_1000)
		return false;
	++*count;
	return true;
}

struct channel_faults_done channel_faulty_done(void)
{
	return done;
}

static hale_status_t faulty_open(channel_arrive_t *arrive, struct error *err)
{
	random_state += (uint64_t)getpid(); /* ranks are not to be unlucky all at once */
	for (size_t i = 0; i < inner_count; i++) {
		hale_status_t status = inner[i]->open(arrive, err);
		if (status != HALE_OK) {
			while (i-- > 0)
				inner[i]->close();
			return status;
		}
	}
	return HALE_OK;
}

/* ---- records ---- */

static bool may_break(const struct envelope *e)
{
	return e->kind <= faults.kind_max;
}

static void count_send(void)
{
	if (++sends == faults.kill_at)
		kill(getpid(), SIGKILL);
}

static bool faulty_send(const struct channel_ops *c, uint32_t rank, const struct envelope *e,
			const void *payload)
{
	unsigned char copy[256];
	count_send();
	if (happens(faults.refuse, &done.refused))
		return false;
	if (may_break(e) && happens(faults.lose, &done.lost))
		return true;
	if (may_break(e) && e->length > 0 && e->length <= sizeof(copy) &&
	    happens(faults.change, &done.changed)) {
		memcpy(copy, payload, e->length);
		copy[draw(e->length)] ^= (unsigned char)(1 + draw(255));
		payload = copy;
	}
	if (!c->send(rank, e, payload))
		return false;
	if (may_break(e) && happens(faults.twice, &done.doubled))
		c->send(rank, e, payload);
	return true;
}

static void *faulty_reserve(const struct channel_ops *c, uint32_t rank, const struct envelope *e)
{
	count_send();
	return happens(faults.refuse, &done.refused) ? NULL : c->reserve(rank, e);
}

static void faulty_commit(const struct channel_ops *c, uint32_t rank, const struct envelope *e)
{
	/* what is not committed was never there */
	if (!may_break(e) || !happens(faults.lose, &done.lost))
		c->commit(rank, e);
}

static bool faulty_announce(const struct channel_ops *c, uint32_t rank, const struct envelope *e,
			    const void *payload, const void *memory, size_t bytes)
{
	count_send();
	return !happens(faults.refuse, &done.refused) &&
	       c->announce(rank, e, payload, memory, bytes);
}

static int faulty_poll(void)
{
	int arrived = owes_a_try;
	owes_a_try = false;
	if (!arrived && !looks_surely && happens(faults.idle, &done.idled))
		return 0;
	looks_surely = false;
	for (size_t i = 0; i < inner_count; i++)
		if (inner[i]->poll && (!inner[i]->used || inner[i]->used()))
			arrived += inner[i]->poll();
	return arrived;
}

static void faulty_flush(void)
{
	for (size_t i = 0; i < inner_count; i++)
		if (inner[i]->flush)
			inner[i]->flush();
}

static void faulty_before_sleep(void)
{
	looks_surely = true;
	for (size_t i = 0; i < inner_count; i++)
		if (inner[i]->before_sleep)
			inner[i]->before_sleep();
}

/* ---- memory ---- */

static size_t all_of(const struct iovec *v, size_t n)
{
	size_t bytes = 0;
	for (size_t i = 0; i < n; i++)
		bytes += v[i].iov_len;
	return bytes;
}

/* Of both sides the first piece of the first stretch only; 0: nothing for now. */
static size_t part_of(const struct iovec *local, size_t nlocal, const struct iovec *remote,
		      size_t nremote)
{
	size_t most = nlocal > 0 && nremote > 0 ? local[0].iov_len : 0;
	if (all_of(local, nlocal) != all_of(remote, nremote) || most == 0)
		return 0;
	if (remote[0].iov_len < most)
		most = remote[0].iov_len;
	return draw(2) ? 0 : 1 + draw((uint32_t)(most < 4096 ? most : 4096));
}

static ssize_t faulty_get(const struct channel_ops *c, uint32_t rank, const struct iovec *local,
			  size_t nlocal, const struct iovec *remote, size_t nremote, bool stable)
{
	/* without put the channel moves things in its own time, and wants the same arguments again
	 */
	if (happens(faults.partly, &done.partly)) {
		size_t n = !c->put ? 0 : part_of(local, nlocal, remote, nremote);
		owes_a_try = n == 0;
		if (n == 0)
			return 0;
		struct iovec to = {local[0].iov_base, n}, from = {remote[0].iov_base, n};
		return c->get(rank, &to, 1, &from, 1, stable);
	}
	return c->get(rank, local, nlocal, remote, nremote, stable);
}

static ssize_t faulty_put(const struct channel_ops *c, uint32_t rank, const struct iovec *local,
			  size_t nlocal, const struct iovec *remote, size_t nremote)
{
	if (happens(faults.partly, &done.partly)) {
		size_t n = part_of(local, nlocal, remote, nremote);
		if (n == 0)
			return 0;
		struct iovec from = {local[0].iov_base, n}, to = {remote[0].iov_base, n};
		return c->put(rank, &from, 1, &to, 1);
	}
	return c->put(rank, local, nlocal, remote, nremote);
}

/* ---- checkpoints ---- */

static void faulty_suspend(uint32_t round)
{
	for (size_t i = 0; i < inner_count; i++)
		if (inner[i]->suspend)
			inner[i]->suspend(round);
}

static bool faulty_drained(void)
{
	bool all = true;
	for (size_t i = 0; i < inner_count; i++)
		if (inner[i]->drained)
			all &= inner[i]->drained();
	return all && !happens(faults.undrained, &done.undrained);
}

static void faulty_resume(bool restored)
{
	for (size_t i = 0; i < inner_count; i++)
		if (inner[i]->resume)
			inner[i]->resume(restored);
}

static void faulty_forget(uint32_t rank)
{
	for (size_t i = 0; i < inner_count; i++)
		if (inner[i]->forget)
			inner[i]->forget(rank);
}

static void faulty_renew(uint32_t rank)
{
	for (size_t i = 0; i < inner_count; i++)
		if (inner[i]->renew)
			inner[i]->renew(rank);
}

static void faulty_pause(void)
{
	for (size_t i = 0; i < inner_count; i++)
		if (inner[i]->pause)
			inner[i]->pause();
}

static bool faulty_settled(void)
{
	for (size_t i = 0; i < inner_count; i++)
		if (inner[i]->settled && !inner[i]->settled())
			return false;
	return true;
}

static void faulty_close(void)
{
	for (size_t i = inner_count; i-- > 0;)
		inner[i]->close();
}

/* ---- the table ---- */

struct channel_ops channel_faulty[CHANNEL_FAULTY_MAX];

static hale_status_t open_with_first(channel_arrive_t *arrive, struct error *err)
{
	return HALE_OK;
}

static void close_with_first(void)
{
}

/* A channel's operations do not say whose they are: each of the table has a set of its own. */
#define MEMBER(i)                                                                                  \
	static bool send_##i(uint32_t rank, const struct envelope *e, const void *payload)         \
	{                                                                                          \
		return faulty_send(inner[i], rank, e, payload);                                    \
	}                                                                                          \
	static void *reserve_##i(uint32_t rank, const struct envelope *e)                          \
	{                                                                                          \
		return faulty_reserve(inner[i], rank, e);                                          \
	}                                                                                          \
	static void commit_##i(uint32_t rank, const struct envelope *e)                            \
	{                                                                                          \
		faulty_commit(inner[i], rank, e);                                                  \
	}                                                                                          \
	static bool announce_##i(uint32_t rank, const struct envelope *e, const void *payload,     \
				 const void *memory, size_t bytes)                                 \
	{                                                                                          \
		return faulty_announce(inner[i], rank, e, payload, memory, bytes);                 \
	}                                                                                          \
	static ssize_t get_##i(uint32_t rank, const struct iovec *local, size_t nlocal,            \
			       const struct iovec *remote, size_t nremote, bool stable)            \
	{                                                                                          \
		return faulty_get(inner[i], rank, local, nlocal, remote, nremote, stable);         \
	}                                                                                          \
	static ssize_t put_##i(uint32_t rank, const struct iovec *local, size_t nlocal,            \
			       const struct iovec *remote, size_t nremote)                         \
	{                                                                                          \
		return faulty_put(inner[i], rank, local, nlocal, remote, nremote);                 \
	}

/* What is NULL in the channel is NULL here: that says something, too. */
#define OPS(i)                                                                                     \
	(struct channel_ops)                                                                       \
	{                                                                                          \
		.name = "faulty", .open = open_with_first, .reaches = inner[i]->reaches,           \
		.send = send_##i, .reserve = reserve_##i, .commit = commit_##i,                    \
		.announce = inner[i]->announce ? announce_##i : NULL, .busy = inner[i]->busy,      \
		.unwanted = inner[i]->unwanted, .hurry = inner[i]->hurry,                          \
		.get = inner[i]->get ? get_##i : NULL,                                             \
		.put = inner[i]->put ? put_##i : NULL, .share = inner[i]->share,                   \
		.close = close_with_first, .eager_max = inner[i]->eager_max                        \
	}

MEMBER(0)
MEMBER(1)
MEMBER(2)

static void member_make(size_t i)
{
	if (i == 0)
		channel_faulty[i] = OPS(0);
	else if (i == 1)
		channel_faulty[i] = OPS(1);
	else
		channel_faulty[i] = OPS(2);
}

void channel_faulty_wrap(const struct channel_ops *const *list, size_t count,
			 const struct channel_faults *wanted)
{
	struct channel_ops *first = &channel_faulty[0];
	inner = list;
	inner_count = count < CHANNEL_FAULTY_MAX ? count : CHANNEL_FAULTY_MAX;
	faults = *wanted;
	random_state = faults.seed;
	memset(&done, 0, sizeof(done));
	sends = 0;
	for (size_t i = 0; i < inner_count; i++)
		member_make(i);
	first->open = faulty_open;
	first->poll = faulty_poll;
	first->flush = faulty_flush;
	first->before_sleep = faulty_before_sleep;
	first->suspend = faulty_suspend;
	first->drained = faulty_drained;
	first->resume = faulty_resume;
	first->forget = faulty_forget;
	first->renew = faulty_renew;
	first->pause = faulty_pause;
	first->settled = faulty_settled;
	first->close = faulty_close;
}
