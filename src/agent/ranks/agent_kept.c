/* SPDX-License-Identifier: BSD-3-Clause */
/* Output that the head has got and of which it has not said that it is printed. A head that dies
 * takes it along; the next one gets it again, and knows by its position what was printed before. It
 * lies in the book: should this agent die too, its successor has it. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "base/base.h"
#include "agent/agent_private.h"

enum { PIECE = 65536 };

static bool keeps(const struct agent *a)
{
	return a->streams.kept != NULL;
}

static unsigned char *kept_of(const struct agent *a, uint32_t rank, int i)
{
	return a->streams.kept + ((size_t)rank * 2 + (size_t)i) * BOOK_KEPT;
}

static size_t kept_bytes(const struct agent *a)
{
	return (size_t)a->setup.nranks * 2 * BOOK_KEPT;
}

/* A file without a name: only what is used of it counts as memory, whatever vm.overcommit_memory
 * says. */
static int make_room(struct agent *a)
{
	int fd = memfd_create("hale-kept", MFD_CLOEXEC);

	if (fd >= 0 && ftruncate(fd, (off_t)kept_bytes(a)) != 0) {
		close(fd);
		fd = -1;
	}
	if (fd >= 0)
		supervisor_hold(&a->supervisor, HOLD_KEPT, 0, fd);
	return fd;
}

void agent_kept_open(struct agent *a)
{
	int fd;
	void *at;

	if (a->setup.grace_ns == 0)
		return;
	fd = supervisor_claim(&a->supervisor, HOLD_KEPT, 0, NULL);
	if (fd < 0)
		fd = make_room(a);
	at = fd >= 0 ? mmap(NULL, kept_bytes(a), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
			    fd, 0)
		     : MAP_FAILED;
	if (at == MAP_FAILED)
		log_warn(
		    "no memory (%m) for output that a head has got and not printed yet: should "
		    "this job's head end, the next one can't have that again");
	else
		a->streams.kept = at;
	if (fd >= 0)
		close(fd);
}

void agent_kept_close(struct agent *a)
{
	if (a->streams.kept)
		munmap(a->streams.kept, kept_bytes(a));
	a->streams.kept = NULL;
}

void agent_kept_again(struct agent *a)
{
	agent_kept_open(a);
	for (uint32_t r = 0; !keeps(a) && r < a->setup.nranks; r++)
		for (int i = 0; i < 2; i++)
			a->ranks[r].kept[i].first = a->ranks[r].kept[i].last;
}

void agent_kept_begin(struct agent *a, uint32_t rank, const uint64_t position[3])
{
	for (int i = 0; i < 2; i++) {
		struct book_kept *k = &a->ranks[rank].kept[i];

		k->first = k->last = k->origin = position[i + 1];
	}
}

static void put(const struct agent *a, uint32_t rank, int i, const struct book_kept *k,
		const unsigned char *bytes, size_t len)
{
	unsigned char *to = kept_of(a, rank, i);
	size_t at = (k->last - k->origin) % BOOK_KEPT;
	size_t here = len < BOOK_KEPT - at ? len : BOOK_KEPT - at;

	memcpy(to + at, bytes, here);
	memcpy(to, bytes + here, len - here);
}

/* Without room this much can't come again: the position says so to the next head. */
void agent_kept_add(struct agent *a, uint32_t rank, int which, const void *bytes, size_t len)
{
	struct book_kept *k = &a->ranks[rank].kept[which - 1];

	if (!keeps(a) || k->last + len - k->first > BOOK_KEPT) {
		k->last += len;
		k->first = k->origin = k->last;
		return;
	}
	if (k->first == k->last)
		k->origin = k->first;
	put(a, rank, which - 1, k, bytes, len);
	k->last += len;
}

/* What comes again after a rollback may have been printed long ago: then it need not be kept. */
void agent_kept_passed(struct agent *a, const struct message *m)
{
	struct book_kept *k;

	if (m->rank >= a->setup.nranks || m->value < 1 || m->value > 2)
		return;
	k = &a->ranks[m->rank].kept[m->value - 1];
	if (m->number > k->first)
		k->first = m->number < k->last ? m->number : k->last;
}

static void send_again(struct agent *a, uint32_t rank, int i)
{
	const struct book_kept *k = &a->ranks[rank].kept[i];

	for (uint64_t p = k->first; p < k->last;) {
		size_t at = (p - k->origin) % BOOK_KEPT, len = BOOK_KEPT - at;

		if (len > k->last - p)
			len = k->last - p;
		if (len > PIECE)
			len = PIECE;
		agent_send(a, &(struct message){.type = MSG_OUTPUT,
						.rank = rank,
						.value = i + 1,
						.bytes = kept_of(a, rank, i) + at,
						.len = len});
		a->streams.window[i].out += len;
		p += len;
	}
}

void agent_kept_send(struct agent *a)
{
	a->streams.window[0].out = a->streams.window[1].out = 0;
	for (uint32_t r = 0; r < a->setup.nranks; r++)
		for (int i = 0; (agent_has(a, r) || agent_has_left(a, r)) && i < 2; i++)
			send_again(a, r, i);
	for (uint32_t r = 0; r < a->setup.nranks; r++)
		for (int i = 0; i < 2; i++)
			if (!stream_window_full(&a->streams.window[i]) && !agent_is_copy(a, r))
				stream_resume(&a->ranks[r].out[i]);
}

/* ---- silent errors ---- */

void agent_found_keep(struct agent *a, uint32_t rank, const struct proto_sdc *sdc)
{
	struct agent_found *f = &a->streams.found[a->streams.found_count % AGENT_FOUND];

	if (a->setup.grace_ns == 0 || sdc->called)
		return;
	f->rank = rank;
	f->sdc = *sdc;
	a->streams.found_count++;
}

void agent_found_send(struct agent *a)
{
	unsigned count = a->streams.found_count,
		 first = count > AGENT_FOUND ? count - AGENT_FOUND : 0;

	for (unsigned i = first; i < count; i++) {
		struct agent_found *f = &a->streams.found[i % AGENT_FOUND];

		agent_send(a, &(struct message){.type = MSG_PACKET,
						.rank = f->rank,
						.bytes = &f->sdc,
						.len = sizeof(f->sdc)});
	}
}
