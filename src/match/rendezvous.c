// SPDX-License-Identifier: BSD-3-Clause
/* Big messages. The sender says where the payload lies (RTS); the receiver, when it has matched
 * it, fetches it straight from the sender's memory in chunks and says when it is through (FIN). A
 * sender that waits in the library meanwhile is asked to help (CTS): both take chunks from one
 * counter, the receiver reads, the sender writes, and two cores copy.
 *
 *     sender                                receiver
 *       │ RTS {address, length} ──────────────▶ │ matched
 *       │ ◀───────────── CTS {help, share, …}   │
 *       │ claim; write chunk   claim; read chunk│   until no chunk is left
 *       │ ◀───────────────────────────── FIN    │ complete
 *
 * Where memory can't be reached (pieces too small, system calls forbidden) the CTS says "push", and
 * the payload comes as DATA records. Between two steps, so at every safe point, each claimed chunk
 * is either copied or in [begin, end) of its claimer; so a share can be left at any safe point.
 */
#include "match/internal.h"

#include <string.h>

enum {
	CHUNK = 1 << 20,	 /* copied between two looks at everything else */
	CHUNK_AWAY = 16 << 20,	 /* the same, where get doesn't copy but waits */
	SHARE_CHUNK = 128 << 10, /* the same, when the sender helps */
	SHARE_MIN = 256 << 10,	 /* shorter ones are through before help comes */
	BOUNCE = 64 << 10,	 /* on the way into memory that is not one run */
	PIECES_MAX = 512,	 /* of a sender's memory that is not one run */
	PIECE_MEAN_MIN = 1024,	 /* below that packing is faster than fetching */
	PIECES_AT_ONCE = 64,
	PUSH_AT_ONCE = 8,
	NOT_PIECES = -1,
};

static char *bounce; /* BOUNCE bytes, from the first use on */

static const struct channel_ops *channel_to(uint32_t world)
{
	return match.peer[world].channel;
}

static size_t min_size(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* ---- sender: what RTS says ---- */

static void pieces_find(struct match_request *r)
{
	size_t bytes = 0, n = 0;
	r->pieces = heap_alloc(PIECES_MAX * sizeof(*r->pieces));
	if (r->pieces)
		n = datatype_iov(r->base.type, r->base.buf, r->base.count, 0, r->pieces, PIECES_MAX,
				 &bytes);
	r->npieces = (uint32_t)n;
	if (bytes == r->length && n && bytes / n >= PIECE_MEAN_MIN)
		return;
	heap_free(r->pieces);
	r->pieces = NULL;
	r->npieces = (uint32_t)NOT_PIECES;
}

void rendezvous_describe(struct match_request *r, struct rts *rts)
{
	*rts = (struct rts){.address = (uintptr_t)r->run, .length = r->length};
	if (r->run)
		return;
	if (!r->pieces && r->npieces != (uint32_t)NOT_PIECES)
		pieces_find(r);
	if (r->pieces) {
		rts->address = (uintptr_t)r->pieces;
		rts->pieces = r->npieces;
	} else {
		rts->push = 1;
	}
}

/* ---- receiver ---- */

/* get copies at once; otherwise the channel moves things in its own time. */
static bool copies_itself(const struct match_request *r)
{
	return channel_to(r->partner)->put != NULL;
}

static struct channel_share *share_of(struct match_request *r, uint32_t owner)
{
	return channel_to(r->partner)->share(owner, (uint32_t)r->share);
}

static void share_open(struct match_request *r)
{
	const struct channel_ops *ch = channel_to(r->partner);
	if (match.oversubscribed || r->share >= 0 || r->fetched || !ch->share || !ch->put ||
	    r->npieces || !r->run || r->total < SHARE_MIN ||
	    match.share_used == (1u << CHANNEL_SHARES) - 1)
		return;
	r->share = __builtin_ctz(~match.share_used);
	match.share_used |= 1u << r->share;
	r->generation = ++match.share_generation;
	r->chunks = (uint32_t)((r->total + SHARE_CHUNK - 1) / SHARE_CHUNK);
	r->mine = 0;
	struct channel_share *s = share_of(r, match.rank);
	atomic_store_explicit(&s->done, 0, memory_order_relaxed);
	atomic_store_explicit(&s->refused, 0, memory_order_relaxed);
	atomic_store_explicit(&s->claim, (uint64_t)r->generation << 32, memory_order_release);
	struct cts cts = {.request = (uintptr_t)r,
			  .address = (uintptr_t)r->run,
			  .length = r->total,
			  .generation = r->generation,
			  .share = (uint32_t)r->share,
			  .how = CTS_HELP};
	control_send(r->partner, RECORD_CTS, r->remote, 0, &cts, sizeof(cts));
}

/* Nobody claims from it any more. */
static void share_close(struct match_request *r)
{
	if (r->share < 0)
		return;
	atomic_store(&share_of(r, match.rank)->claim, (uint64_t)r->generation << 32 | UINT32_MAX);
	match.share_used &= ~(1u << r->share);
	r->share = -1;
}

static void chunk_set(struct match_request *r, uint32_t chunk)
{
	r->begin = (size_t)chunk * SHARE_CHUNK;
	r->end = min_size(r->begin + SHARE_CHUNK, r->total);
}

/* Makes [begin, end) the next range to copy. False: there is none for us now. */
static bool range_claim(struct match_request *r)
{
	if (r->share < 0) {
		size_t chunk = copies_itself(r) ? CHUNK : CHUNK_AWAY;
		r->begin = r->fetched;
		r->end = r->fetched = min_size(r->begin + chunk, r->total);
		return r->begin < r->end;
	}
	struct channel_share *s = share_of(r, match.rank);
	if ((uint32_t)atomic_load_explicit(&s->claim, memory_order_relaxed) < r->chunks) {
		uint32_t chunk = (uint32_t)atomic_fetch_add(&s->claim, 1);
		if (chunk < r->chunks) {
			chunk_set(r, chunk);
			return true;
		}
	}
	uint32_t refused = atomic_load_explicit(&s->refused, memory_order_acquire);
	if (!refused)
		return false;
	atomic_store_explicit(&s->refused, 0, memory_order_relaxed);
	chunk_set(r, refused - 1);
	return true;
}

static bool all_copied(struct match_request *r)
{
	if (r->begin < r->end)
		return false;
	if (r->share < 0)
		return r->fetched == r->total;
	struct channel_share *s = share_of(r, match.rank);
	return r->mine + atomic_load_explicit(&s->done, memory_order_acquire) == r->chunks;
}

/* The memory of the sender from offset on, at most n bytes. */
static size_t remote_pieces(const struct match_request *r, size_t offset, size_t n,
			    struct iovec *iov)
{
	size_t count = 0;
	if (!r->npieces) {
		iov[0] = (struct iovec){(void *)(uintptr_t)(r->address + offset), n};
		return 1;
	}
	for (uint32_t i = 0; i < r->npieces && n && count < PIECES_AT_ONCE; i++) {
		const struct iovec *p = &r->pieces[i];
		if (offset >= p->iov_len) {
			offset -= p->iov_len;
			continue;
		}
		iov[count].iov_base = (char *)p->iov_base + offset;
		iov[count].iov_len = min_size(p->iov_len - offset, n);
		n -= iov[count++].iov_len;
		offset = 0;
	}
	return count;
}

/* Copies what it can of [begin, end). As channel_ops.get. */
static ssize_t range_copy(struct match_request *r)
{
	struct iovec remote[PIECES_AT_ONCE];
	size_t n = r->end - r->begin, nremote;
	struct iovec local = {r->run + r->begin, n};
	if (UNLIKELY(!channel_to(r->partner)->get)) /* since a restart */
		return -1;
	if (!r->run) {
		if (!bounce)
			bounce = match_memory(BOUNCE);
		local.iov_base = bounce;
		local.iov_len = n = min_size(n, BOUNCE);
	}
	nremote = remote_pieces(r, r->begin, n, remote);
	ssize_t got =
	    channel_to(r->partner)->get(r->partner, &local, 1, remote, nremote, r->run != NULL);
	if (got > 0 && !r->run)
		datatype_unpack(r->base.type, r->base.buf, r->base.count, r->begin, bounce,
				(size_t)got);
	if (got > 0)
		r->begin += (size_t)got;
	return got;
}

static ssize_t pieces_fetch(struct match_request *r)
{
	size_t bytes = r->npieces * sizeof(struct iovec);
	if (UNLIKELY(!channel_to(r->partner)->get)) /* since a restart */
		return -1;
	struct iovec *pieces = match_memory(bytes);
	struct iovec local = {pieces, bytes};
	struct iovec remote = {(void *)(uintptr_t)r->address, bytes};
	ssize_t got = channel_to(r->partner)->get(r->partner, &local, 1, &remote, 1, false);
	if (got == (ssize_t)bytes) {
		r->pieces = pieces;
		return got;
	}
	heap_free(pieces);
	return got > 0 ? -1 : got;
}

static void push_ask(struct match_request *r)
{
	struct cts cts = {.request = (uintptr_t)r, .length = r->total, .how = CTS_PUSH};
	r->state = STATE_PUSHED;
	r->fetched = 0;
	control_send(r->partner, RECORD_CTS, r->remote, 0, &cts, sizeof(cts));
}

static void read_end(struct match_request *r)
{
	share_close(r);
	heap_free(r->pieces);
	r->pieces = NULL;
	work_remove(&match.reading, r);
}

static ssize_t read_some(struct match_request *r)
{
	ssize_t copied = 0;
	if (UNLIKELY(r->npieces && !r->pieces)) {
		copied = pieces_fetch(r);
		if (copied <= 0)
			return copied;
	}
	share_open(r);
	if (r->begin == r->end && !range_claim(r))
		return 0;
	while (r->begin < r->end) {
		ssize_t k = range_copy(r);
		if (k <= 0)
			return k < 0 ? k : copied;
		copied += k;
	}
	r->mine++;
	return copied;
}

/* One chunk of one message. Returns 1 when something moved; r may be gone then. */
static int read_step(struct match_request *r)
{
	ssize_t copied = read_some(r);
	if (UNLIKELY(copied < 0)) {
		/* a helper may still write the chunk that it is in: with the same bytes, and before
		 * it pushes any */
		read_end(r);
		push_ask(r);
		return 1;
	}
	if (!all_copied(r)) {
		/* the next part has to be asked for, though nothing else may arrive */
		match.anew |= copied > 0;
		return copied > 0;
	}
	read_end(r);
	if (UNLIKELY(r->error))
		rendezvous_unwanted(r->partner, r->address + r->total);
	control_send(r->partner, RECORD_FIN, r->remote, 0, NULL, 0);
	request_finish(r, r->error);
	return 1;
}

void rendezvous_unwanted(uint32_t from, uint64_t address)
{
	const struct channel_ops *c = channel_to(from);
	if (c->unwanted)
		c->unwanted(from, (const void *)(uintptr_t)address);
}

void rendezvous_receive(struct match_request *r, uint32_t from, const struct envelope *e,
			const struct rts *rts)
{
	r->partner = from;
	r->remote = e->id;
	r->address = rts->address;
	r->npieces = rts->pieces;
	r->total = min_size(rts->length, r->length);
	r->error = rts->length > r->length ? MPI_ERR_TRUNCATE : MPI_SUCCESS;
	r->base.status._ucount = r->total;
	r->fetched = r->begin = r->end = 0;
	r->share = -1;
	if (r->total >= MATCH_LONG_BYTES)
		match_call_long();
	if (!r->total) {
		rendezvous_unwanted(from, r->address);
		control_send(from, RECORD_FIN, r->remote, 0, NULL, 0);
		request_finish(r, r->error);
	} else if (rts->push || !channel_to(from)->get) {
		push_ask(r);
	} else {
		r->state = STATE_READING;
		work_add(&match.reading, r);
		if (!copies_itself(r)) /* says where to put what is on its way already */
			read_step(r);
	}
}

void rendezvous_data(const struct envelope *e, const void *payload)
{
	struct match_request *r = (struct match_request *)(uintptr_t)e->id;
	size_t n = min_size(e->length, r->total - r->fetched);
	if (r->run)
		memcpy(r->run + r->fetched, payload, n);
	else
		datatype_unpack(r->base.type, r->base.buf, r->base.count, r->fetched, payload, n);
	r->fetched += n;
	if (r->fetched == r->total)
		request_finish(r, r->error);
}

/* ---- sender: after RTS ---- */

static void help_end(struct match_request *r)
{
	work_remove(&match.helping, r);
	r->state = STATE_WAITING;
}

void rendezvous_cts(uint32_t from, const struct envelope *e, const struct cts *cts)
{
	struct match_request *r = (struct match_request *)(uintptr_t)e->id;
	if (cts->how == CTS_PUSH) {
		if (r->state == STATE_HELPING)
			help_end(r);
		r->remote = cts->request;
		r->total = cts->length;
		r->fetched = 0;
		r->state = STATE_PUSHING;
		work_add(&match.pushing, r);
		return;
	}
	/* an offer that waited through a restart may reach a peer on another node, where the two
	 * processes share no memory any more */
	if (match.suspended || r->state != STATE_WAITING || !r->run ||
	    UNLIKELY(!channel_to(r->world)->share))
		return;
	r->address = cts->address;
	r->total = cts->length;
	r->share = (int32_t)cts->share;
	r->generation = cts->generation;
	r->chunks = (uint32_t)((r->total + SHARE_CHUNK - 1) / SHARE_CHUNK);
	r->state = STATE_HELPING;
	work_add(&match.helping, r);
}

static bool chunk_write(struct match_request *r)
{
	while (r->begin < r->end) {
		struct iovec local = {r->run + r->begin, r->end - r->begin};
		struct iovec remote = {(void *)(uintptr_t)(r->address + r->begin),
				       r->end - r->begin};
		ssize_t k = channel_to(r->world)->put(r->world, &local, 1, &remote, 1);
		if (k <= 0)
			return false;
		r->begin += (size_t)k;
	}
	return true;
}

static int help_step(struct match_request *r)
{
	struct channel_share *s = channel_to(r->world)->share(r->world, (uint32_t)r->share);
	uint64_t seen = atomic_load_explicit(&s->claim, memory_order_acquire);
	do {
		if ((seen >> 32) != r->generation || (uint32_t)seen >= r->chunks) {
			help_end(r);
			return 0;
		}
	} while (!atomic_compare_exchange_weak(&s->claim, &seen, seen + 1));
	chunk_set(r, (uint32_t)seen);
	if (chunk_write(r)) {
		atomic_fetch_add(&s->done, 1);
	} else {
		atomic_store(&s->refused, (uint32_t)seen + 1);
		help_end(r);
	}
	mailbox_ring(segment_mailbox(link_self()->segment, r->world));
	return 1;
}

static bool push_record(struct match_request *r)
{
	struct peer *p = &match.peer[r->world];
	size_t n = min_size(*p->channel->eager_max, r->total - r->fetched);
	struct envelope e = {.kind = RECORD_DATA, .length = (uint32_t)n, .id = r->remote};
	if (r->run) {
		if (!p->channel->send(r->world, &e, r->run + r->fetched))
			return false;
	} else {
		void *to = p->channel->reserve(r->world, &e);
		if (!to)
			return false;
		datatype_pack(r->base.type, r->base.buf, r->base.count, r->fetched, to, n);
		p->channel->commit(r->world, &e);
	}
	r->fetched += n;
	return true;
}

static int push_step(struct match_request *r)
{
	int sent = 0;
	while (sent < PUSH_AT_ONCE && r->fetched < r->total && push_record(r))
		sent++;
	if (r->fetched == r->total) {
		work_remove(&match.pushing, r);
		send_finish(r);
	}
	return sent;
}

/* ---- progress and checkpoint ---- */

static int first_that_moves(struct request_list *l, int (*step)(struct match_request *))
{
	for (struct match_request *r = l->first, *next; r; r = next) {
		next = r->next;
		int moved = step(r);
		if (moved)
			return moved;
	}
	return 0;
}

/* Of copies that this process makes one chunk; of those that a channel makes, all that are through,
 * which can only have changed when something has arrived. */
static int reading_progress(void)
{
	int copied = 0, moved = 0;
	bool look = match.arrived || match.anew;
	match.anew = false;
	for (struct match_request *r = match.reading.first, *next; r; r = next) {
		next = r->next;
		if (!copies_itself(r))
			moved += look ? read_step(r) : 0;
		else if (!copied)
			copied = read_step(r);
	}
	return copied + moved;
}

int rendezvous_progress(void)
{
	int moved = reading_progress();
	moved += first_that_moves(&match.helping, help_step);
	return moved + first_that_moves(&match.pushing, push_step);
}

void rendezvous_fini(void)
{
	heap_free(bounce);
	bounce = NULL;
}

void rendezvous_suspend(void)
{
	while (match.helping.first)
		help_end(match.helping.first);
}

/* All peers have stopped helping: what is claimed of a shared copy is copied, but for what we hold
 * ourselves and what was refused. From here on it is ours alone. */
static void share_leave(struct match_request *r)
{
	struct channel_share *s = share_of(r, match.rank);
	uint32_t claimed = (uint32_t)atomic_load(&s->claim);
	uint32_t refused = atomic_load(&s->refused);
	bool holding = r->begin < r->end;
	r->fetched = min_size((size_t)claimed * SHARE_CHUNK, r->total);
	if (refused && holding)
		r->fetched = r->begin = r->end = 0; /* two holes: copy it again */
	else if (refused)
		chunk_set(r, refused - 1);
	share_close(r);
}

void rendezvous_save(void)
{
	for (struct match_request *r = match.reading.first; r; r = r->next)
		if (r->share >= 0)
			share_leave(r);
}
