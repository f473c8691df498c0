// SPDX-License-Identifier: BSD-3-Clause
/* The loopback, and the example of a channel. Nothing is ever in flight: send calls arrive with
 * the sender's own buffer, and copying between two memories is copying. */
#include "channel/self/self.h"

#include <string.h>
#include "ckpt/rank.h"
#include "node/segment.h"

static const size_t eager_max = 8192;

static channel_arrive_t *arrive;
static unsigned char reserved[8192]; /* between reserve and commit */

static hale_status_t self_open(channel_arrive_t *to, struct error *err)
{
	arrive = to;
	return HALE_OK;
}

static bool self_reaches(uint32_t rank)
{
	return rank == link_self()->process;
}

/* Another thread of this process may sleep until just this arrives. It has said so inside the
 * guard, which the caller is in now: no fence is needed. */
static void self_arrive(uint32_t rank, const struct envelope *e, const void *payload)
{
	arrive(rank, e, payload);
	mailbox_wake(link_self()->mailbox);
}

static bool self_send(uint32_t rank, const struct envelope *e, const void *payload)
{
	self_arrive(rank, e, payload);
	return true;
}

static void *self_reserve(uint32_t rank, const struct envelope *e)
{
	return reserved;
}

static void self_commit(uint32_t rank, const struct envelope *e)
{
	self_arrive(rank, e, reserved);
}

/* Both lists in step, piece by piece; get and put differ in the direction only. */
static ssize_t self_copy(const struct iovec *to, size_t nto, const struct iovec *from, size_t nfrom)
{
	size_t i = 0, j = 0, to_done = 0, from_done = 0, total = 0;
	while (i < nto && j < nfrom) {
		size_t n = to[i].iov_len - to_done;
		if (n > from[j].iov_len - from_done)
			n = from[j].iov_len - from_done;
		memmove((char *)to[i].iov_base + to_done, (char *)from[j].iov_base + from_done, n);
		total += n;
		to_done += n;
		from_done += n;
		if (to_done == to[i].iov_len) {
			i++;
			to_done = 0;
		}
		if (from_done == from[j].iov_len) {
			j++;
			from_done = 0;
		}
	}
	return (ssize_t)total;
}

static ssize_t self_get(uint32_t rank, const struct iovec *local, size_t nlocal,
			const struct iovec *remote, size_t nremote, bool stable)
{
	return self_copy(local, nlocal, remote, nremote);
}

static ssize_t self_put(uint32_t rank, const struct iovec *local, size_t nlocal,
			const struct iovec *remote, size_t nremote)
{
	return self_copy(remote, nremote, local, nlocal);
}

static void self_close(void)
{
	arrive = NULL;
}

const struct channel_ops channel_self = {
    .name = "self",
    .open = self_open,
    .reaches = self_reaches,
    .send = self_send,
    .reserve = self_reserve,
    .commit = self_commit,
    .get = self_get,
    .put = self_put,
    .close = self_close,
    .eager_max = &eager_max,
};
