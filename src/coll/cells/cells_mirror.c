/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/exit_status.h"
#include "coll/cells/cells_mirror.h"

#include "coll/cells/cells.h"
#include "match/match.h"

/* In the collective context of MPI_COMM_WORLD, whose schedules have smaller tags. One receive for
 * whatever anybody tells; answers to reads come straight to where they belong. */
enum { TAG_NEWS = 0x7f000001, TAG_ANSWER = 0x7f000002 };

typedef enum news_kind { NEWS_DEPOSIT, NEWS_STATE, NEWS_READ } news_kind_t;

struct news {
	uint32_t kind; /* news_kind_t */
	uint32_t home; /* index of coll_homes */
	/* deposit: seq, bytes, address, offset. state: progress, arrived, completed.
	 * read: address, bytes */
	uint64_t word[4];
	char small[COLL_RESULT_SMALL]; /* deposit: the header's; state: the leader's result */
	char payload[];		       /* deposit: what lies in the ring */
};
_Static_assert((int)COLL_HEADER_SMALL <= (int)COLL_RESULT_SMALL, "fits small");

enum { NEWS_MAX = sizeof(struct news) + COLL_CELL_RING / 2 };

/* What the others have been told last. */
struct coll_mirror {
	struct coll_cell *cells; /* [n] */
	uint64_t progress, arrived, completed;
	uint64_t seq[COLL_CELL_HEADERS];
};

/* News on its way. */
struct sent {
	struct sent *next;
	int n;
	struct news *news;
	struct request *req[];
};

unsigned cells_mirrored;
static struct sent *sent;
static bool untold; /* a home has mirrors that have been told nothing yet */
static struct {
	struct request *req;
	struct news *news;
	bool busy;
} incoming;

static struct comm *world(void)
{
	return (struct comm *)MPI_COMM_WORLD;
}

static void *memory(size_t bytes)
{
	void *p = heap_calloc(1, bytes);
	if (p)
		return p;
	log_warn("rank %u has no %zu bytes for collectives whose ranks the restart has put on "
		 "different nodes: restart with more memory, or with them on one node",
		 link_self()->rank, bytes);
	link_abort(EXIT_UNRECOVERED);
}

static int index_of(const struct coll_home *h, int rank)
{
	int i = 0;
	while (i < h->n && h->world[i] != rank)
		i++;
	return i < h->n ? i : -1;
}

/* ---- telling ---- */

/* To one member, or (-1) to all others. */
static void tell(const struct coll_home *h, int member, const struct news *news,
		 const void *payload, size_t bytes)
{
	size_t requests = (size_t)h->n * sizeof(struct request *), whole = sizeof(*news) + bytes;
	struct sent *s = memory(sizeof(*s) + requests + whole);
	s->news = (struct news *)((char *)(s + 1) + requests);
	*s->news = *news;
	s->news->home = (uint32_t)(h - coll_homes);
	if (bytes)
		memcpy(s->news->payload, payload, bytes);
	for (int i = 0; i < h->n; i++)
		if (i != h->rank && (member < 0 || i == member) &&
		    match_isend(s->news, whole, (struct datatype *)MPI_BYTE, h->world[i], TAG_NEWS,
				world(), MATCH_COLL, &s->req[s->n]) == MPI_SUCCESS)
			s->n++;
	s->next = sent;
	sent = s;
}

static void tell_deposit(const struct coll_home *h, const struct coll_header *d)
{
	struct news news = {.kind = NEWS_DEPOSIT,
			    .word = {d->seq, d->bytes, d->address, d->offset}};
	bool in_ring = !d->address && d->bytes > COLL_HEADER_SMALL;
	memcpy(news.small, d->small, sizeof(d->small));
	tell(h, -1, &news, in_ring ? h->cell->ring + d->offset : NULL, in_ring ? d->bytes : 0);
}

/* A deposit changes under its number when its owner puts a result in its place: so deposits of
 * operations that weren't done at the last telling are told again whenever a word says more. */
void cells_mirror_tell(struct coll_home *h)
{
	struct coll_mirror *m = h->mirror;
	const struct coll_cell *own = h->cell;
	uint64_t unfinished = m->progress / COLL_STAGES;
	bool more = h->progress != m->progress || own->completed != m->completed;
	for (int i = 0; i < COLL_CELL_HEADERS; i++) {
		uint64_t seq = own->header[i].seq;
		if (seq <= m->seq[i] && !(more && seq && seq >= unfinished))
			continue;
		tell_deposit(h, &own->header[i]);
		m->seq[i] = seq;
	}
	if (!more && own->arrived == m->arrived)
		return;
	m->progress = h->progress;
	m->arrived = own->arrived;
	m->completed = own->completed;
	struct news news = {.kind = NEWS_STATE, .word = {m->progress, m->arrived, m->completed}};
	memcpy(news.small, own->result, sizeof(own->result));
	tell(h, -1, &news, NULL, 0);
}

void cells_mirror_tell_all(void)
{
	for (unsigned i = 0; i < COLL_SHARED_CONTEXTS; i++)
		if (coll_homes[i].mirror)
			cells_mirror_tell(&coll_homes[i]);
	untold = false;
}

static int sent_sweep(void)
{
	int gone = 0;
	for (struct sent **at = &sent; *at;) {
		struct sent *s = *at;
		while (s->n && s->req[s->n - 1]->complete)
			match_request_free(s->req[--s->n]);
		if (s->n) {
			at = &s->next;
			continue;
		}
		*at = s->next;
		heap_free(s);
		gone++;
	}
	return gone;
}

/* ---- being told ---- */

static void raise_to(_Atomic uint64_t *word, uint64_t value)
{
	if (*word < value)
		atomic_store_explicit(word, value, memory_order_release);
}

static void take_deposit(struct coll_cell *cell, const struct news *news, size_t length)
{
	struct coll_header *d = &cell->header[news->word[0] % COLL_CELL_HEADERS];
	size_t bytes = length - sizeof(*news);
	if (d->seq > news->word[0] ||
	    (bytes && (bytes > COLL_CELL_RING || news->word[3] > COLL_CELL_RING - bytes)))
		return;
	d->bytes = news->word[1];
	d->address = news->word[2];
	d->offset = news->word[3];
	memcpy(d->small, news->small, sizeof(d->small));
	if (bytes)
		memcpy(cell->ring + d->offset, news->payload, bytes);
	raise_to(&d->seq, news->word[0]);
}

static void take_state(struct coll_cell *cell, const struct news *news)
{
	if (cell->completed < news->word[2])
		memcpy(cell->result, news->small, sizeof(cell->result));
	raise_to(&cell->completed, news->word[2]);
	raise_to(&cell->arrived, news->word[1]);
	raise_to(&cell->progress, news->word[0]);
}

static void answer(int rank, const struct news *news)
{
	struct request *req;
	if (match_isend((void *)news->word[0], news->word[1], (struct datatype *)MPI_BYTE, rank,
			TAG_ANSWER, world(), MATCH_COLL, &req) == MPI_SUCCESS)
		match_request_free(req);
}

/* News for a home that has no mirrors is of one whose operations are all done here. */
static void take(const struct news *news, int rank, size_t length)
{
	struct coll_home *h = &coll_homes[news->home % COLL_SHARED_CONTEXTS];
	int member = index_of(h, rank);
	if (length < sizeof(*news) || !h->mirror || member < 0)
		return;
	if (news->kind == NEWS_DEPOSIT)
		take_deposit(h->cells[member], news, length);
	else if (news->kind == NEWS_STATE)
		take_state(h->cells[member], news);
	else
		answer(rank, news);
}

static void listen(void)
{
	if (!incoming.news)
		incoming.news = memory(NEWS_MAX);
	if (match_irecv(incoming.news, NEWS_MAX, (struct datatype *)MPI_BYTE, MPI_ANY_SOURCE,
			TAG_NEWS, world(), MATCH_COLL, &incoming.req) != MPI_SUCCESS)
		incoming.req = NULL;
}

/* Nothing can come any more once all members of all mirrored homes are done. */
static void listen_no_more(void)
{
	if (!incoming.req)
		return;
	match_cancel(incoming.req);
	if (!incoming.req->cancelled)
		return; /* something has come: hear sees to it */
	match_request_free(incoming.req);
	heap_free(incoming.news);
	incoming.req = NULL;
	incoming.news = NULL;
}

static int hear(void)
{
	int heard = 0;
	while (incoming.req && incoming.req->complete) {
		struct request *req = incoming.req;
		incoming.req = NULL;
		if (!req->cancelled)
			take(incoming.news, req->status.MPI_SOURCE, (size_t)req->status._ucount);
		match_request_free(req);
		if (cells_mirrored)
			listen();
		heard++;
	}
	return heard;
}

int cells_mirror_progress(void)
{
	if (LIKELY(!cells_mirrored && !sent && !incoming.req) || incoming.busy)
		return 0;
	incoming.busy = true;
	int moved = hear();
	if (untold)
		cells_mirror_tell_all();
	moved += sent_sweep();
	incoming.busy = false;
	return moved;
}

/* ---- what cells do otherwise ---- */

const _Atomic uint64_t *cells_mirror_word(const _Atomic uint64_t *word)
{
	struct segment *s = link_self()->segment;
	size_t at = (size_t)((const char *)word - (const char *)s);
	if (!cells_mirrored || at < s->coll_offset || at - s->coll_offset >= s->coll_bytes)
		return word;
	at -= s->coll_offset;
	size_t cell = at / COLL_CELL_BYTES;
	struct coll_home *h = &coll_homes[cell / s->nranks];
	int member = h->mirror ? index_of(h, (int)(cell % s->nranks)) : -1;
	if (member < 0)
		return word;
	return (const _Atomic uint64_t *)((char *)h->cells[member] + at % COLL_CELL_BYTES);
}

bool cells_mirror_arrive(struct coll_home *h, uint64_t k)
{
	if (cells_reached(&h->cells[0]->completed, k << 16))
		return false;
	raise_to(&h->cell->arrived, k);
	if (h->rank != 0) {
		cells_wait(&h->cells[0]->completed, k << 16);
		return false;
	}
	for (int i = 1; i < h->n; i++)
		cells_wait(&h->cells[i]->arrived, k);
	return true;
}

int cells_mirror_read(const struct coll_home *h, int member, uint64_t address, void *dst,
		      size_t bytes)
{
	struct news news = {.kind = NEWS_READ, .word = {address, bytes}};
	struct request *req;
	int rc = match_irecv(dst, bytes, (struct datatype *)MPI_BYTE, h->world[member], TAG_ANSWER,
			     world(), MATCH_COLL, &req);
	if (rc)
		return rc;
	tell(h, member, &news, NULL, 0);
	match_wait(req);
	rc = req->status.MPI_ERROR;
	match_request_free(req);
	return rc;
}

/* ---- life ---- */

void cells_mirror_begin(struct coll_home *h)
{
	h->mirror = memory(sizeof(*h->mirror));
	h->mirror->cells = memory((size_t)h->n * sizeof(struct coll_cell));
	for (int i = 0; i < h->n; i++)
		h->cells[i] = h->mirror->cells + i;
	h->cell = h->cells[h->rank];
	cells_mirrored++;
	untold = true;
	if (!incoming.req)
		listen();
}

void cells_mirror_end(struct coll_home *h)
{
	heap_free(h->mirror->cells);
	heap_free(h->mirror);
	h->mirror = NULL;
	if (--cells_mirrored == 0)
		listen_no_more();
}

void cells_mirror_fini(void)
{
	listen_no_more();
	sent_sweep();
}
