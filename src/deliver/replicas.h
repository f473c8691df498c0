/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of the policy `redundant` share. docs/redundancy.md has the states, the invariants
 * and the records.
 *
 *   remote[rank] ─▶ kept → kept → kept …   messages to that rank, as they were sent
 *     │                      ▲
 *     │                      │ next
 *     │                wire[process]         how far this process has transmitted to that one
 *     │
 *     └─ lane[context]                       numbers: sent, have, what each of its replicas has
 *
 * Invariants:
 * - A message stays in `kept` until each living replica of its receiver has it: it was transmitted
 * to those that this process provides for, and the others have acknowledged it; of what is
 * compared, the digest has left, too.
 * - wire.next moves forward only, but for a change of view that makes this process the provider:
 * then it begins with the first message kept.
 * - A message of which a first part has left on a wire stays until its last part has left there.
 * - A message that is lent on a wire (BIG with an address) stays until TAKEN comes back, and so
 * does what leaves there behind it. If it can't be taken, its receiver drops what follows in its
 * context, and its sender begins again with it: so a loan whose sender dies is a message that was
 * never sent.
 */
#ifndef HALE_DELIVER_REPLICAS_H
#define HALE_DELIVER_REPLICAS_H

#include "base/base.h"
#include "deliver/deliver.h"
#include "deliver/redundant.h"
#include "node/living.h"

/* Kinds of records beside match/'s. */
enum replica_record {
	REPLICA_BIG =
	    130,      /* struct big: a message longer than a record; PARTs follow, or TAKEN back */
	REPLICA_PART, /* its next bytes */
	REPLICA_HAVE, /* context, number: the sender of this has all messages up to it */
	REPLICA_MATCHED,     /* context, number: that synchronous message has been matched */
	REPLICA_ASK,	     /* say what you have, and soon */
	REPLICA_DONE,	     /* the sender of this needs no more messages */
	REPLICA_DETERMINANT, /* from the leader of this rank */
	REPLICA_HEARD,	     /* number: determinants up to it are here */
	REPLICA_DIGEST,	     /* struct digest_said: what the sender's copy of that message is */
	REPLICA_SYNCED, /* number: of the change of leader; all that its sender kept came before */
	REPLICA_FETCH,	/* context, number: send that message in full */
	REPLICA_TAKEN, /* number: of a loan; id 1: its message is here, 0: it is to come in parts */
	REPLICA_SPEAK, /* to a witness: say what your messages are */
	REPLICA_COMES, /* number: that process comes as a copy of the sender of this: keep for it */
	REPLICA_KEEPS, /* number: what its sender sends is kept for that process from here on */
	REPLICA_COMES_NOT, /* number: nothing is kept for it any more */
	REPLICA_SENT, /* context, number, id: this replica has sent rank `id` messages up to it */
};

struct big {
	uint32_t length;  /* of the payload of all parts */
	uint32_t kind;	  /* RECORD_EAGER or RECORD_SYNC */
	uint64_t address; /* in the sender's memory, which keeps it until TAKEN; 0: PARTs follow */
	uint32_t loan;	  /* its number */
};

/* XXH3-128 of a payload. */
struct digest {
	uint64_t low, high;
};

struct digest_said {
	struct digest digest;
	uint32_t length, kind; /* of the message */
};

/* What one replica of a rank says that a message of it is. */
struct claim {
	struct digest digest; /* protocol `hash` */
	uint32_t length;
	int32_t source, tag;
	uint32_t kind;
	struct kept *copy; /* NULL: only its digest has come */
};

/* A message that is not handed up yet, since replicas of its sender have still to say what it is
 * (compare.c). Bit masks are of slots. */
struct held {
	struct held *next;
	uint32_t number;
	unsigned char said;    /* they have claimed */
	unsigned char excused; /* copies of one that has: nothing will come of them */
	unsigned char asked;   /* for their copy */
	unsigned char spoilt;  /* their copy is not what they have claimed */
	bool undecided;	       /* no majority, and the head knows */
	bool called;	       /* … among all but the witness, which was told to speak */
	struct claim claim[LIVING_DEGREE_MAX];
};

/* A message that somebody may still need. */
struct kept {
	struct kept *next, *prev;
	uint64_t serial; /* counts what was kept */
	struct digest digest;
	bool digested; /* false: `digest` is not set, since the rank had one process then */
	uint32_t full; /* bit mask of the slots that have asked for all of it */
	/* by slot, of what is between wire.lent and wire.next: its number; 0: it was not lent */
	uint32_t loan[LIVING_DEGREE_MAX];
	size_t room; /* of payload (blocks.c) */
	struct envelope envelope;
	unsigned char payload[] __attribute__((aligned(16)));
};

/* Between this rank and another one, in one context. Numbers are the ledger's, low halves. */
struct lane {
	uint32_t sent;	    /* the last one that was put into kept */
	uint32_t mate_sent; /* the last one that some replica of this rank has put there */
	uint32_t shown;	    /* our mates know of those */
	uint32_t acked[LIVING_DEGREE_MAX]; /* each replica of the peer has said that it has those */
	uint32_t have, told;		   /* of the peer's messages: are here; the peer knows */
	uint32_t bytes;			   /* since told */
	struct held *held;		   /* by number; the first ones are have + 1, + 2, … */
};
enum { LANES = 64 }; /* contexts in one block of lanes */
/* So many messages are acknowledged, or shown, one by one after an ASK. */
enum { REPLICA_URGENT = 64 };

/* A synchronous send whose receive is not known to be matched; or, request 0, the other way round.
 */
struct sync {
	struct sync *next;
	uint32_t context, number;
	uint64_t request;
};

struct remote {
	struct kept *first, *last;
	struct lane *lanes[DELIVER_CONTEXTS / LANES];
	struct sync *syncs;
	struct kept *reserved;
	uint32_t
	    urgent; /* so many of its messages are acknowledged one by one: it is short of memory */
};

/* A record of ours that found no place in the channel. */
struct word {
	struct word *next;
	struct envelope envelope;
	unsigned char payload[];
};

/* --sdc, --audit: how messages of a rank's replicas are compared. */
enum compare_mode { COMPARE_OFF, COMPARE_HASH, COMPARE_FULL };

/* What of a rank's messages a process transmits to another one. */
enum carries { CARRIES_NOTHING, CARRIES_DIGESTS, CARRIES_MESSAGES };

struct wire {
	const struct channel_ops *channel;
	/* MESSAGES if this process provides for that one, or all are compared in full */
	enum carries carries;
	bool begun;	   /* BIG of *next has left, and `offset` bytes in parts */
	bool parts;	   /* that process can't read this one's memory */
	bool late;	   /* it is a shadow: it looks when it likes */
	struct kept *next; /* NULL: everything has left */
	struct kept *lent; /* the first one for which TAKEN is awaited; NULL: none */
	uint32_t nlent;	   /* so many are */
	uint32_t offset;
	/* a message that this process could not take from there: what comes behind it is dropped */
	bool refused;
	uint32_t refused_context, refused_number;
	struct word *first, *last; /* leave before messages */
	struct kept *assembly;	   /* of parts that come from there; NULL: none */
	uint32_t assembled;
	uint32_t heard;	 /* determinants that it has */
	uint32_t synced; /* it has sent all that it kept of them, at that change of leader */
	bool done;	 /* needs no more messages */
	bool busy;	 /* something waits for room */
	/* announce.c: that process comes as a copy of `source`. Words to it wait. */
	bool coming;
	bool told;  /* … has been said, and is not acted upon yet */
	bool keeps; /* what that process sends us it keeps for our copy */
	uint32_t source;
};

extern struct replicas {
	struct living view; /* as this process has acted on it */
	uint32_t process, rank, slot;
	uint32_t nprocesses;
	channel_arrive_t *arrive;
	struct redundant_hooks hooks;
	struct remote *remote; /* [nranks] */
	struct wire *wire;     /* [nprocesses] */
	unsigned busy;	       /* wires that are */
	uint64_t serial;       /* of the newest kept message */
	size_t kept, kept_max; /* bytes */
	uint32_t lend_min;     /* longer messages are lent where the receiver can read them */
	uint32_t loans;	       /* the newest one */
	bool asked;	       /* since the last answer */
	uint32_t mate_waits;   /* so many sends are shown one by one: a mate is short of memory */
	uint32_t determined;   /* determinants said, or as a follower heard */
	struct word *log, *log_last; /* determinants that a mate may lack; of three replicas */
	uint32_t syncs;		     /* leaders of three that have died */
	int leader;		     /* slot */
	bool lead_again;	     /* somebody has synced */
	bool leads, leaving;
	bool suspended; /* words and messages wait */
	bool speaks;	/* this witness has been told to */
	enum compare_mode compare;
	uint64_t accepted; /* bytes of messages */
	bool rejoined;	   /* everybody is to hear anew what this process has */
	bool settled;	   /* in another segment: who was near may be on another node now */
	bool announces; /* all others keep for `announced`, which comes as our copy; and so do we */
	bool all_keep;	/* … the agent knows */
	bool joins;	/* it is here; the agent is to know as soon as it has all decisions */
	uint32_t announced, announced_id;
	uint32_t news; /* wires with `told` */
} replicas;

static inline bool number_reached(uint32_t have, uint32_t number)
{
	return (int32_t)(have - number) >= 0;
}

static inline bool replica_lives(uint32_t process)
{
	return !replicas.view.lost[process];
}

void *replica_memory(size_t bytes);
struct lane *replica_lane(uint32_t rank, uint32_t context);

/* replicas.c: a record of ours to that process, at once or as soon as there is room. */
void replica_tell(uint32_t process, const struct envelope *e, const void *payload);
void replica_busy(struct wire *w);
/* That process needs no more messages, and perhaps has ended: it gets none, nor words about them.
 */
void replica_done(uint32_t process);

/* replicas.c: of that wire nothing is left. */
void wire_forget(struct wire *w);

/* compare.c: --sdc. A message, or what another replica of its sender says of it, has come. The
 * first one takes over k. */
void compare_message(uint32_t process, struct kept *k);
void compare_digest(uint32_t process, const struct envelope *e, const struct digest_said *said);
/* Fewer replicas have to speak than before: what waited for the dead goes on. */
void compare_follow_view(void);
/* That process is a copy of `source`, which has said what the copy won't say again. */
void compare_adopt(uint32_t process, uint32_t source);
/* That process has died, and what it has claimed is not believed. */
void compare_discredit(uint32_t process);
/* This process is a copy itself: what its source has asked for goes to that one. */
void compare_become(void);
void compare_forget(struct lane *l);
struct digest digest_of(const void *payload, size_t length);
/* Of a message as the program has sent it; then --inject flip may change what is sent. */
void compare_seal(struct kept *k);
/* Rank `rank` has one process, and none of its earlier messages waits for a second claim: there is
 * nothing to compare with. */
bool compare_is_needless(uint32_t rank, uint32_t context);

/* determinants.c: those of this rank's leader. */
void determinant_arrive(uint32_t process, const struct envelope *e, const void *payload);
void determinant_heard(uint32_t process, uint32_t number);
void determinants_synced(uint32_t process, uint32_t number);
/* No effect of what was decided may leave before this: the next leader would not know of it. */
bool determinants_are_safe(void);
/* died: because a process has; false: one has come back. */
void determinants_follow_view(bool died);
void determinants_tell_anew(void);
void determinants_lead(void);
void determinants_forget(void);

/* announce.c. Is a process of that rank coming? */
bool announce_concerns(uint32_t rank);
/* That process's records of this kind have come. */
void announce_heard(uint32_t process, const struct envelope *e);
void announce_progress(void);
/* A coming process has become a living one (the head has said so), or the view has changed. */
void announce_follow_view(void);
void announce_join(uint32_t process);
/* Nobody comes any more. */
void announce_end(void);
/* The process, of this rank, is dead: who has not seen it come need not wait for it. */
void announce_lost(uint32_t process);

/* blocks.c: a message with room for `length` bytes, nothing else set; free takes NULL. */
struct kept *kept_alloc(size_t length);
void kept_free(struct kept *k);
void blocks_forget(void);

/* receipt.c: a message for match/. */
void receipt_hand_up(uint32_t process, struct envelope e, const void *payload);

/* mirror.c */
/* A receiver has found the copy of its provider to be wrong. */
void mirror_fetch(uint32_t process, uint32_t context, uint32_t number);
int mirror_push(uint32_t process);
/* Messages to that rank that nobody needs any more are forgotten. */
void mirror_trim(uint32_t rank);
void mirror_acked(uint32_t process, uint32_t context, uint32_t number);
void mirror_matched(uint32_t rank, uint32_t context, uint32_t number);
/* A mate, at its bound, asks what this process has sent; or has answered that. */
void mirror_show(void);
void mirror_shown(uint32_t rank, uint32_t context, uint32_t number);
/* A mate has come, which knows nothing of that. */
void mirror_show_anew(void);
/* That process has copied what it was lent, or (false) can't. */
void mirror_taken(uint32_t process, uint32_t loan, bool copied);
/* No TAKEN of that wire means anything any more. */
void mirror_loans_forget(struct wire *w);
/* The view has changed: whom does this process provide for? */
void mirror_follow_view(void);
void mirror_forget(void);

/* That process, a copy of the replica `source` of the same rank, has what that one had. */
void mirror_adopt(uint32_t process, uint32_t source);

/* receipt.c */
void receipt_arrive(uint32_t process, const struct envelope *e, const void *payload);
void receipt_matched(uint32_t rank, uint64_t id);
/* Says what is here of that rank's messages to those of its replicas that keep them. */
void receipt_tell_all(uint32_t rank);
/* The same, also of what it has said before: others keep them now. */
void receipt_tell_anew(uint32_t rank);

#endif
