/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of match/ share. docs/channels.md has the pictures.
 *
 * A flow is everything between this process and one peer in one context: the ledger, the receives
 * posted for that source, the messages from it that nobody has asked for yet. Contexts and flows
 * are found by index, so matching without wildcards looks at one list of one source.
 *
 *   match.context[id] ─▶ context ─▶ flow[peer] ─▶ posted:     receive → receive → …   (by post)
 *                          │                      unexpected: message → message → …   (by arrival)
 *                          ├─ any:        receives of MPI_ANY_SOURCE, by post
 *                          └─ unexpected: all flows' messages, by arrival
 *
 * Peers and flows count by the rank in the job ("world"), whatever communicator is used.
 */
#ifndef HALE_MATCH_INTERNAL_H
#define HALE_MATCH_INTERNAL_H

#include "ckpt/guard.h"
#include "ckpt/rank.h"
#include "deliver/deliver.h"
#include "deliver/redundant.h"
#include "match/match.h"

/* Where the payload lies in the sender's memory. */
struct rts {
	uint64_t address; /* pieces 0: of the payload; else of an array of struct iovec */
	uint64_t length;
	uint32_t pieces;
	uint32_t push; /* 1: not to be fetched, ask for DATA */
};

enum cts_how { CTS_PUSH = 1, CTS_HELP = 2 };

struct cts {
	uint64_t request; /* the receiver's */
	uint64_t address; /* help: where the payload goes in the receiver's memory */
	uint64_t length;  /* what the receiver takes */
	uint32_t generation, share;
	uint32_t how; /* enum cts_how */
	uint32_t reserved;
};

struct flow;

enum request_state {
	STATE_IDLE = 0,
	STATE_POSTED,  /* receive: in a posted list */
	STATE_READING, /* receive: fetching from the sender's memory; in match.reading */
	STATE_PUSHED,  /* receive: DATA will come; in no list */
	STATE_QUEUED,  /* send: in its peer's queue, nothing has left */
	STATE_WAITING, /* send: until ACK or FIN; in no list */
	STATE_HELPING, /* send: the same, and in match.helping */
	STATE_PUSHING, /* send: in match.pushing */
};

struct match_request {
	struct request base;
	struct match_request *next, *prev; /* in the one list that the state names */
	uint8_t state;			   /* enum request_state */
	bool orphan;			   /* nobody waits: freed at completion */
	bool patient;			   /* send: its caller doesn't wait for it */
	bool cancelling;		   /* send: CANCELLED must come before it may complete */
	bool finished;			   /* send: was through while cancelling */
	int error;			   /* receive: what completion will say */
	uint32_t world, context;	   /* world: of the peer; MATCH_ANY: any source */
	uint64_t stamp;			   /* receive: order of posting */
	uint64_t wild;		    /* receive from any source, with replicas: counts those */
	uint32_t exact;		    /* … its message's number, */
	bool exactly;		    /* if that is known */
	char *run;		    /* the user's memory if it is one run of bytes */
	size_t length;		    /* bytes that fit, or to send */
	struct buffer_block *block; /* send: its place in the attached buffer */

	/* Big messages. Receive: bytes below `fetched` are claimed by somebody; of these
	 * [begin, end) is ours and not copied yet. Send, DATA: bytes below `fetched` have left. */
	uint32_t partner; /* world rank of the other end */
	uint64_t remote;  /* its request */
	uint64_t address; /* in its memory */
	size_t total, fetched;
	size_t begin, end;
	struct iovec *pieces; /* of the sender's memory; owned */
	uint32_t npieces;
	int32_t share;	       /* index of the share that divides the copy; -1: none */
	uint32_t generation;   /* of the share */
	uint32_t chunks, mine; /* shared: chunks of the whole; those that we copied */
};

/* A message that arrived before it was asked for; also what an MPI_Message handle points to. */
struct match_message {
	struct object obj;
	struct match_message *next, *prev;     /* in its flow */
	struct match_message *later, *earlier; /* in its context */
	struct flow *flow;
	uint32_t from;
	struct envelope envelope;
	unsigned char payload[] __attribute__((aligned(8)));
};

struct request_list {
	struct match_request *first, *last;
};

struct context {
	uint32_t id;
	struct request_list any;
	struct match_message *first, *last; /* unexpected, all flows */
	struct flow *flow[];		    /* [nranks] */
};

struct flow {
	struct ledger ledger;
	struct request_list posted;
	struct match_message *first, *last; /* unexpected */
	struct context *context;
	uint32_t peer;
};

/* A record of ours that found no place. */
struct control {
	struct control *next;
	struct envelope envelope;
	unsigned char payload[sizeof(struct cts)];
};

struct peer {
	const struct channel_ops *channel;
	size_t eager_max; /* the channel's; 0 while the peer is under pressure */
	size_t kept;	  /* bytes of its messages that nobody here has received yet */
	bool pressed;	  /* we have told it so */
	bool blocked;	  /* something is queued, or we are suspended: nothing may leave directly */
	bool busy;	  /* in match.busy */
	struct peer *next_busy;
	struct request_list queue;    /* sends, in order */
	struct control *first, *last; /* leave before the queue */
};

/* Bytes of unexpected messages from one peer at which it is told to keep its payloads to itself
 * (they come by rendezvous then), and at which it may send as usual again. */
enum { PRESSURE_ON = 16 << 20, PRESSURE_OFF = 4 << 20 };

enum { MATCH_ANY = 0xffffffffu, MATCH_CONTEXTS = COMM_CONTEXT_MAX };
_Static_assert((int)MATCH_CONTEXTS == (int)DELIVER_CONTEXTS, "contexts are the same everywhere");

extern struct match {
	uint32_t rank, nranks;
	bool suspended;
	bool unsettled; /* restored, and the channels of some peers may still change */
	bool oversubscribed;
	bool dozes; /* this process is a shadow: nobody waits for it (node/doze.h) */
	unsigned patience; /* rounds in which a rank of a crowded node waits before it yields */
	struct rank_meter *meter; /* this rank's, in the segment */
	uint32_t work;	   /* lists below that are not empty, and hooks: 0 means polling is all */
	struct peer *peer; /* [nranks] */
	struct peer *busy; /* those with something queued */
	struct request_list reading, helping, pushing;
	struct match_request *orphans; /* of other kinds: freed when they are complete */
	int arrived;		       /* in this round of progress */
	bool anew; /* channels must be asked (again) to move something, though nothing has come */
	uint64_t stamp;
	uint32_t unanswered; /* sends that have left, and wait for their receivers' answers */
	uint32_t share_used; /* bit mask of our shares */
	uint32_t share_generation;
	struct context *context[MATCH_CONTEXTS];
} match;

/* ---- lists ---- */

static inline void list_add(struct request_list *l, struct match_request *r)
{
	r->next = NULL;
	r->prev = l->last;
	if (l->last)
		l->last->next = r;
	else
		l->first = r;
	l->last = r;
}

static inline void list_remove(struct request_list *l, struct match_request *r)
{
	if (r->prev)
		r->prev->next = r->next;
	else
		l->first = r->next;
	if (r->next)
		r->next->prev = r->prev;
	else
		l->last = r->prev;
}

/* For the lists that progress works on. */
static inline void work_add(struct request_list *l, struct match_request *r)
{
	match.work += !l->first;
	list_add(l, r);
}

static inline void work_remove(struct request_list *l, struct match_request *r)
{
	list_remove(l, r);
	match.work -= !l->first;
}

/* ---- queue.c: contexts, flows, posted and unexpected ---- */

struct flow *flow_make(uint32_t context, uint32_t peer);

static inline struct flow *flow_of(uint32_t context, uint32_t peer)
{
	struct context *c = match.context[context];
	struct flow *f = LIKELY(c != NULL) ? c->flow[peer] : NULL;
	return LIKELY(f != NULL) ? f : flow_make(context, peer);
}

static inline bool tag_matches(int wanted, int tag)
{
	return wanted == tag || wanted == MPI_ANY_TAG;
}

void posted_add(struct match_request *r);
void posted_remove(struct match_request *r);
/* The receive that a message with that tag goes to, taken out of its list; NULL: none. */
struct match_request *posted_take(struct flow *f, int tag);

void unexpected_add(struct flow *f, const struct envelope *e, const void *payload);
void unexpected_remove(struct match_message *m);
/* The first message that matches; world may be MATCH_ANY. NULL: none. */
struct match_message *unexpected_find(uint32_t context, uint32_t world, int tag);
size_t message_length(const struct match_message *m);
void match_queues_free(void);

/* Memory for what must not fail: ends the job with a sentence when there is none. */
void *match_memory(size_t bytes);

/* ---- request.c ---- */

struct match_request *request_make(void); /* NULL: no memory */
void request_release(struct match_request *r);
extern struct match_request match_done; /* complete at birth, for all eager sends */
void match_requests_free(void);
void orphans_sweep(void);

static inline void request_finish(struct match_request *r, int error)
{
	r->state = STATE_IDLE;
	request_complete(&r->base, error);
	if (UNLIKELY(r->orphan))
		request_release(r);
}

/* ---- send.c ---- */

/* A record that is not a message; goes ahead of queued ones. At most sizeof(struct cts) bytes. */
void control_send(uint32_t world, enum record_kind kind, uint64_t id, int tag, const void *payload,
		  size_t length);
void send_start(struct match_request *r);
int send_restart(struct match_request *r); /* a persistent one */
void send_finish(struct match_request *r);
/* ACK, FIN, CANCELLED for a send of ours. */
void send_arrive(uint32_t from, const struct envelope *e);
int queues_flush(void);

/* ---- receive.c ---- */

int receive_restart(struct match_request *r);
void match_arrive(uint32_t from, const struct envelope *e, const void *payload);
/* r is in no list; the message is its. */
void receive_match(struct match_request *r, uint32_t from, const struct envelope *e,
		   const void *payload);

/* ---- rendezvous.c ---- */

/* A send's memory as an RTS says it. */
void rendezvous_describe(struct match_request *r, struct rts *rts);
void rendezvous_receive(struct match_request *r, uint32_t from, const struct envelope *e,
			const struct rts *rts);
/* Of what that rank has announced, nothing from there on will be fetched. */
void rendezvous_unwanted(uint32_t from, uint64_t address);
void rendezvous_cts(uint32_t from, const struct envelope *e, const struct cts *cts);
void rendezvous_data(const struct envelope *e, const void *payload);
int rendezvous_progress(void);
void rendezvous_fini(void);
void rendezvous_suspend(void); /* stop helping */
void rendezvous_save(void);    /* what others could change becomes private */

/* ---- buffer.c ---- */

int buffered_send(const void *buf, size_t count, struct datatype *t, int dst, int tag,
		  struct comm *c, uint32_t mode);
void buffer_block_free(struct buffer_block *b);

/* ---- decide.c: jobs with replicas ---- */

extern const struct redundant_hooks decide_hooks;
/* As receive_start, posted_take and match_cancel, and the look of probes. */
void decide_receive(struct match_request *r);
struct match_request *decide_posted_take(struct flow *f, const struct envelope *e);
int decide_cancel(struct match_request *r);
struct match_message *decide_probe(uint32_t context, uint32_t world, int tag, bool wait);
/* Before this process sleeps: its followers may wait for what it has decided. */
void decide_settle(void);
/* What has waited for the last answer of a dead leader goes on. */
void decide_catch_up(void);
void decide_fini(void);
/* Of determinants that this process has not come to yet. */
size_t decide_log_bytes(void);

/* ---- shadow.c: jobs with shadows ---- */

/* At the beginning, and whenever another process leads this rank. */
void shadow_look(void);
bool shadow_is_late(void);
void shadow_fini(void);

/* ---- checkpoint.c, progress.c ---- */

/* After a restart, in progress, until the channels of all peers are what they will stay. */
void channels_choose(void);

void match_checkpoint_init(void);
void progress_init(void);
void progress_hooks_forget(void);
void wait_resumed(void); /* after a restart: sleeping threads must look again */

/* For the communicator's user or collective context. */
static inline uint32_t context_of(const struct comm *c, uint32_t mode)
{
	return c->context + (mode & MATCH_COLL ? 1 : 0);
}

#endif
