// SPDX-License-Identifier: BSD-3-Clause
/* Questions and answers of determinants; receives and probes that depend on them. */
#include "match/decide.h"

#include <signal.h>
#include <string.h>
#include "base/fmt.h"
#include "match/internal.h"

enum { SILENT_MAX = 64 }; /* questions answered by no, before followers hear of them */

/* An answer of the leader's that this process has not come to yet. */
struct heard {
	struct heard *next;
	uint64_t index; /* of the question; of the receive, for WILD */
	uint32_t kind;
	uint32_t context, world, number; /* WILD: the message */
	uint32_t length;
	unsigned char answer[];
};

struct wild {
	uint32_t world, number;
};

static struct {
	uint64_t asked; /* questions that this process has come to */
	uint64_t told;	/* followers know the answers up to this one */
	uint64_t wilds; /* receives from any source that were posted */
	bool open;	/* the newest question is being answered here */
	bool asking;	/* it waits for an answer, or for its turn to be answered here */
	bool withdrawn; /* … and was, until another process became the leader: it is asked again */
	bool overdue;	/* an answer of a leader that is dead has been replayed just now */
	struct heard *first, *last;
	struct heard *wild; /* in no order */
	size_t heard_bytes; /* in both lists */
} decide;

static const char *const kind_names[DECIDE_KINDS] = {
    [DECIDE_TEST] = "MPI_Test",
    [DECIDE_ALL] = "MPI_Testall",
    [DECIDE_ANY] = "MPI_Waitany or MPI_Testany",
    [DECIDE_SOME] = "MPI_Waitsome or MPI_Testsome",
    [DECIDE_PROBE] = "a probe",
    [DECIDE_CANCEL] = "MPI_Cancel",
    [DECIDE_TIME] = "MPI_Wtime",
    [DECIDE_FILE] = "open, fopen or creat",
    [DECIDE_NODE] = "MPI_Comm_split_type",
    [DECIDE_NAME] = "MPI_Get_processor_name or MPI_Info_create_env",
};

void decide_differs(const char *what)
{
	log_warn(
	    "rank %u, process %u: %s; its program is not send-deterministic, and this replica ends",
	    match.rank, link_self()->process, what);
	raise(SIGKILL);
	_Exit(70);
}

_Noreturn void decide_kinds_differ(enum decide_kind here, uint32_t there)
{
	char text[160];
	fmt_print(text, sizeof(text), "it calls %s where the leader of its rank called %s",
		  kind_names[here],
		  there < DECIDE_KINDS && kind_names[there] ? kind_names[there] : "nothing");
	decide_differs(text);
}

/* ---- saying ---- */

static void say(enum decide_kind kind, uint32_t context, uint64_t index, const void *answer,
		size_t size)
{
	struct envelope e = {
	    .length = (uint32_t)size, .context = context, .tag = (int32_t)kind, .id = index};
	redundant_determine(&e, answer);
}

static void until_say(void)
{
	uint64_t answered = decide.asked - decide.open;
	if (!redundant_leads() || decide.told >= answered)
		return;
	decide.told = answered;
	say(DECIDE_UNTIL, 0, answered, NULL, 0);
}

void decide_settle(void)
{
	until_say();
}

void decide_tell_slow(enum decide_kind kind, bool yes, const void *answer, size_t size)
{
	decide.open = false;
	if (yes) {
		decide.told = decide.asked;
		say(kind, 0, decide.asked, answer, size);
	} else if (decide.asked - decide.told >= SILENT_MAX) {
		until_say();
	}
}

/* ---- replaying ---- */

static bool answer_known(void *unused)
{
	return decide.first || redundant_leads();
}

static void heard_free(struct heard *h)
{
	decide.heard_bytes -= sizeof(*h) + h->length;
	heap_free(h);
}

size_t decide_log_bytes(void)
{
	return decide.heard_bytes;
}

static void heard_drop(void)
{
	struct heard *h = decide.first;
	decide.first = h->next;
	if (!decide.first)
		decide.last = NULL;
	decide.overdue = decide.overdue || redundant_leads();
	heard_free(h);
}

/* The leader had come to that many questions when it said this. */
static bool is_no_answer(const struct heard *h)
{
	return h->kind == DECIDE_UNTIL || h->kind == DECIDE_LIBC;
}

/* A new leader replays what the old one has answered before it decides anything itself. Until then
 * messages are here that the old one has got only later, perhaps when it had taken a receive back.
 * How far the old one had come with questions is no answer to those behind us. Nor is what libc has
 * told it: perhaps this process never asks for that. */
static bool decides(void)
{
	if (!redundant_leads())
		return false;
	for (const struct heard *h = decide.first; h; h = h->next)
		if (!is_no_answer(h) || h->index >= decide.asked + !decide.asking)
			return false;
	return true;
}

static decide_turn_t take_turn(enum decide_kind kind, void *answer, size_t *size)
{
	for (;;) {
		if (!answer_known(NULL))
			match_wait_until(answer_known, NULL);
		struct heard *h = decide.first;
		if (!h) {
			decide_catch_up();
			decide.open = true;
			if (decide.told < decide.asked - 1)
				decide.told = decide.asked - 1; /* by who led before */
			return DECIDE_HERE;
		}
		if (is_no_answer(h) && h->index < decide.asked) {
			heard_drop();
			continue;
		}
		if (is_no_answer(h) || h->index > decide.asked)
			return DECIDE_NO;
		if (h->index < decide.asked || h->kind != kind || (size && h->length > *size))
			decide_kinds_differ(kind, h->kind);
		if (size) {
			memcpy(answer, h->answer, h->length);
			*size = h->length;
		}
		heard_drop();
		return DECIDE_YES;
	}
}

decide_turn_t decide_ask_slow(enum decide_kind kind, void *answer, size_t *size)
{
	decide.asked++;
	decide.withdrawn = false;
	decide.asking = true;
	decide_turn_t turn = take_turn(kind, answer, size);
	decide.asking = false;
	decide.overdue = decide.overdue || (decide.first && redundant_leads());
	return turn;
}

void decide_value(enum decide_kind kind, void *value, size_t size)
{
	char own[DECIDE_VALUE];
	size_t n = size;
	memcpy(own, value, size);
	switch (decide_ask(kind, value, &n)) {
	case DECIDE_HERE:
		decide_tell(kind, true, own, size);
		return;
	case DECIDE_NO:
		decide_kinds_differ(kind, 0);
	default:
		return;
	}
}

/* ---- what libc says: decide_libc.c ---- */

decide_turn_t decide_libc_heard(void *answer, size_t size, bool *late)
{
	struct heard *h;

	while ((h = decide.first) && h->index < decide.asked + (h->kind == DECIDE_UNTIL))
		heard_drop();
	*late = !h && !redundant_leads();
	if (!h)
		return redundant_leads() ? DECIDE_HERE : DECIDE_NO;
	if (h->kind != DECIDE_LIBC || h->index != decide.asked || h->length != size)
		return DECIDE_NO;
	memcpy(answer, h->answer, size);
	heard_drop();
	return DECIDE_YES;
}

void decide_libc_say(const void *answer, size_t size)
{
	decide.told = decide.asked;
	say(DECIDE_LIBC, 0, decide.asked, answer, size);
}

/* ---- messages that determinants name ---- */

static struct match_message *message_numbered(const struct flow *f, uint32_t number)
{
	for (struct match_message *m = f->first; m; m = m->next)
		if (m->envelope.number == number)
			return m;
	return NULL;
}

/* The leader has said that it goes to a receive that isn't posted here yet. */
static bool reserved(const struct flow *f, uint32_t number)
{
	for (const struct heard *h = decide.wild; h; h = h->next)
		if (h->context == f->context->id && h->world == f->peer && h->number == number)
			return true;
	return false;
}

static void match_with(struct match_request *r, struct match_message *m)
{
	unexpected_remove(m);
	receive_match(r, m->from, &m->envelope, m->payload);
	heap_free(m);
}

/* A receive from any source gets that message, whether it is here yet or not. */
static void wild_resolve(struct match_request *r, uint32_t world, uint32_t number)
{
	r->exactly = true;
	r->exact = number;
	r->world = world;
	struct match_message *m = message_numbered(flow_of(r->context, world), number);
	if (m)
		match_with(r, m);
	else
		posted_add(r);
}

static void wild_say(const struct match_request *r, uint32_t world, uint32_t number)
{
	struct wild w = {world, number};
	say(DECIDE_WILD, r->context, r->wild, &w, sizeof(w));
}

/* A message of that flow, before this one, waits for a determinant and may be meant for r. */
static bool earlier_waits(const struct flow *f, const struct match_request *r, uint32_t number)
{
	for (const struct match_message *m = f->first;
	     m && (int32_t)(m->envelope.number - number) < 0; m = m->next)
		if (tag_matches(r->base.tag, m->envelope.tag) && !reserved(f, m->envelope.number))
			return true;
	return false;
}

static struct match_request *first_of(struct match_request *r, int tag)
{
	while (r && (r->exactly || !tag_matches(r->base.tag, tag)))
		r = r->next;
	return r;
}

static struct match_request *exact_take(struct flow *f, uint32_t number)
{
	for (struct match_request *r = f->posted.first; r; r = r->next)
		if (r->exactly && r->exact == number) {
			list_remove(&f->posted, r);
			return r;
		}
	return NULL;
}

/* A receive from any source that was posted earlier may be meant by the leader: the message waits.
 */
struct match_request *decide_posted_take(struct flow *f, const struct envelope *e)
{
	struct match_request *r = exact_take(f, e->number);
	if (r || reserved(f, e->number))
		return r;
	r = first_of(f->posted.first, e->tag);
	struct match_request *any = first_of(f->context->any.first, e->tag);
	if (any && (!r || any->stamp < r->stamp)) {
		if (!decides())
			return NULL;
		wild_say(any, f->peer, e->number);
		list_remove(&f->context->any, any);
		return any;
	}
	if (!r || earlier_waits(f, r, e->number))
		return NULL;
	list_remove(&f->posted, r);
	return r;
}

static void rematch(struct context *c)
{
	for (struct match_message *m = c->first, *later; m; m = later) {
		later = m->later;
		struct match_request *r = decide_posted_take(m->flow, &m->envelope);
		if (!r)
			continue;
		match_with(r, m);
		later = c->first;
	}
}

static void receive_wild(struct match_request *r)
{
	r->wild = ++decide.wilds;
	for (struct heard **at = &decide.wild; *at; at = &(*at)->next) {
		struct heard *h = *at;
		if (h->index != r->wild)
			continue;
		*at = h->next;
		wild_resolve(r, h->world, h->number);
		heard_free(h);
		return;
	}
	struct context *c = match.context[r->context];
	for (struct match_message *m = c && decides() ? c->first : NULL; m; m = m->later) {
		if (!tag_matches(r->base.tag, m->envelope.tag) ||
		    reserved(m->flow, m->envelope.number))
			continue;
		wild_say(r, m->flow->peer, m->envelope.number);
		match_with(r, m);
		return;
	}
	posted_add(r);
}

void decide_receive(struct match_request *r)
{
	r->exactly = false;
	if (r->base.peer == MPI_ANY_SOURCE) {
		r->world = MATCH_ANY;
		receive_wild(r);
		return;
	}
	struct flow *f = flow_of(r->context, r->world);
	for (struct match_message *m = f->first; m; m = m->next) {
		if (!tag_matches(r->base.tag, m->envelope.tag) || reserved(f, m->envelope.number))
			continue;
		/* receives posted earlier, here and from any source, come first */
		if (first_of(f->posted.first, m->envelope.tag) ||
		    first_of(f->context->any.first, m->envelope.tag))
			break;
		match_with(r, m);
		return;
	}
	posted_add(r);
}

/* ---- what the leader says ---- */

static struct heard *heard_make(const struct envelope *e, const void *payload)
{
	struct heard *h = match_memory(sizeof(*h) + e->length);
	decide.heard_bytes += sizeof(*h) + e->length;
	*h = (struct heard){
	    .index = e->id, .kind = (uint32_t)e->tag, .context = e->context, .length = e->length};
	if (e->length)
		memcpy(h->answer, payload, e->length);
	return h;
}

static void wild_heard(struct heard *h)
{
	struct wild w;
	memcpy(&w, h->answer, sizeof(w));
	h->world = w.world;
	h->number = w.number;
	struct context *c = match.context[h->context];
	for (struct match_request *r = c ? c->any.first : NULL; r; r = r->next) {
		if (r->wild != h->index)
			continue;
		posted_remove(r);
		wild_resolve(r, w.world, w.number);
		heard_free(h);
		rematch(c);
		return;
	}
	h->next = decide.wild;
	decide.wild = h;
}

static void on_heard(const struct envelope *e, const void *payload)
{
	struct heard *h = heard_make(e, payload);
	if (h->kind == DECIDE_WILD) {
		wild_heard(h);
		return;
	}
	h->next = NULL;
	if (decide.last)
		decide.last->next = h;
	else
		decide.first = h;
	decide.last = h;
}

static void rematch_all(void)
{
	for (uint32_t id = 0; id < MATCH_CONTEXTS; id++)
		if (match.context[id])
			rematch(match.context[id]);
}

/* Not where that answer was taken: its question is still being dealt with. */
void decide_catch_up(void)
{
	if (LIKELY(!decide.overdue))
		return;
	decide.overdue = false;
	if (decides())
		rematch_all();
}

static void on_promoted(void)
{
	rematch_all();
	shadow_look();
}

/* The question that is being answered is the new leader's: it stands where we stand. */
static void on_demoted(void)
{
	decide.asked -= decide.open;
	decide.withdrawn = decide.open;
	decide.open = false;
	shadow_look();
}

bool decide_withdrawn(void)
{
	return decide.withdrawn;
}

const struct redundant_hooks decide_hooks = {
    .heard = on_heard,
    .promoted = on_promoted,
    .demoted = on_demoted,
    .is_late = shadow_is_late,
    .output = until_say,
};

void decide_fini(void)
{
	while (decide.first)
		heard_drop();
	while (decide.wild) {
		struct heard *h = decide.wild;
		decide.wild = h->next;
		heard_free(h);
	}
	memset(&decide, 0, sizeof(decide));
}

/* ---- probes, cancelling ---- */

struct probe_exact {
	struct flow *flow;
	uint32_t number;
};

static bool probed_is_here(void *arg)
{
	const struct probe_exact *p = arg;
	return message_numbered(p->flow, p->number) != NULL;
}

struct probe_look {
	uint32_t context, world;
	int tag;
	struct match_message *found;
};

static bool probe_look(void *arg)
{
	struct probe_look *l = arg;
	struct context *c = match.context[l->context];
	l->found = NULL;
	if (decide_withdrawn())
		return true;
	for (struct match_message *m = c ? c->first : NULL; m && !l->found; m = m->later)
		if (tag_matches(l->tag, m->envelope.tag) &&
		    (l->world == MATCH_ANY || l->world == m->flow->peer) &&
		    !reserved(m->flow, m->envelope.number))
			l->found = m;
	return l->found != NULL;
}

struct match_message *decide_probe(uint32_t context, uint32_t world, int tag, bool wait)
{
	struct probe_look l = {context, world, tag, NULL};
	struct wild w = {0};
	size_t size = sizeof(w);
	decide_turn_t whose = decide_ask_slow(DECIDE_PROBE, &w, &size);
	while (whose == DECIDE_HERE && wait && !probe_look(&l)) {
		match_wait_until(probe_look, &l);
		size = sizeof(w);
		if (decide_withdrawn())
			whose = decide_ask_slow(DECIDE_PROBE, &w, &size);
	}
	switch (whose) {
	case DECIDE_HERE:
		if (!probe_look(&l) && !wait) {
			match_progress();
			probe_look(&l);
		}
		if (l.found)
			w = (struct wild){l.found->flow->peer, l.found->envelope.number};
		decide_tell_slow(DECIDE_PROBE, l.found != NULL, &w, sizeof(w));
		return l.found;
	case DECIDE_YES: {
		struct probe_exact p = {flow_of(context, w.world), w.number};
		match_wait_until(probed_is_here, &p);
		return message_numbered(p.flow, p.number);
	}
	default:
		if (wait)
			decide_differs("it waits for a message where its leader only looked");
		match_progress();
		return NULL;
	}
}

/* Also of a receive that is complete here: in another replica it may not be. */
static bool may_cancel(struct match_request *r)
{
	int32_t yes = 0;
	size_t size = sizeof(yes);

	switch (decide_ask_slow(DECIDE_CANCEL, &yes, &size)) {
	case DECIDE_HERE:
		yes = !r->base.complete && r->state == STATE_POSTED && !r->exactly;
		decide_tell_slow(DECIDE_CANCEL, true, &yes, sizeof(yes));
		return yes;
	case DECIDE_NO:
		decide_kinds_differ(DECIDE_CANCEL, 0);
	default:
		return yes;
	}
}

/* A send is never taken back: whether it still could be, replicas would see differently. */
int decide_cancel(struct match_request *r)
{
	if (r->base.kind != REQUEST_RECV || !may_cancel(r))
		return MPI_SUCCESS;
	if (r->base.complete || r->state != STATE_POSTED)
		decide_differs("a receive that its leader has cancelled has got a message here");
	posted_remove(r);
	r->base.cancelled = true;
	r->base.status._cancelled = 1;
	r->base.status._ucount = 0;
	uint32_t context = r->context;
	request_finish(r, MPI_SUCCESS);
	if (match.context[context]) /* what has waited because of it */
		rematch(match.context[context]);
	return MPI_SUCCESS;
}
