/* SPDX-License-Identifier: BSD-3-Clause */
/* The bound of what a replica keeps (docs/redundancy.md): rank a (replicas 0 and 1) sends M messages
 * to each of two ranks, which have two replicas each. The replicas of a send in orders of their own:
 * each tries the next message to either rank. A message that another replica may need is kept until
 * that one has acknowledged it, BOUND messages at most. A message that the other replica of a has
 * sent passes the bound: it has said so, since it was asked.
 * One process of each rank may die (DIE_…), at any step.
 *
 * Checked: nobody waits for ever; what is transmitted is kept.
 * BREAK n is a mistake that must be noticed:
 *   1 nothing passes the bound
 *   2 instead of what the other replica says, acknowledgements of the receiver's living replicas tell
 *     what it has sent: when both receivers of that die nobody knows
 *   3 the other one says once what it has sent, and not again what it sends later
 *   4 what passes the bound is not kept
 *   5 each tries one message, and no other one before that has left
 */
#ifndef M
#define M 1 /* messages to each rank */
#endif
#ifndef BOUND
#define BOUND 1 /* messages that may be kept */
#endif
/* Who may die: replica 0 of a; of the first receiver and of the second that one (2: nobody) */
#ifndef DIE_A
#define DIE_A 0
#endif
#ifndef DIE_X
#define DIE_X 0
#endif
#ifndef DIE_Y
#define DIE_Y 1
#endif
#ifndef BREAK
#define BREAK 0
#endif
#define NONE 2

/* of a_i, r, j: index 4*i + 2*r + j */
chan data[8] = [1] of { byte };
byte ack[8];		  /* what replica j of rank r has told a_i that it has */
byte next[8];		  /* what a_i transmits next to it */
byte sent[4];		  /* [2*i+r]: so many messages to rank r has a_i sent */
byte told[4];		  /* [2*i+r]: what a_i has told its mate of that */
bool asked[2];		  /* a_i wants to know what receivers have, and what its mate has sent */
bool answered[2];	  /* a_i has told its mate, once */
byte have[4];		  /* [2*r+j] */
bool deadA[2], deadB[4];

#define PROV(j) (i == j || knowA)
#define LACKS(r, j, n) (!deadB[2*(r)+(j)] && \
	(PROV(j) -> next[4*i+2*(r)+(j)] <= (n) : ack[4*i+2*(r)+(j)] < (n)))
/* message n to rank r is kept; with mistake 4 none that has passed the bound */
#define KEPT(r, n) (sent[2*i+(r)] >= (n) && passed[r] != (n) && (LACKS(r, 0, n) || LACKS(r, 1, n)))
#define COUNT (KEPT(0, 1) + KEPT(1, 1) + KEPT(0, 2) + KEPT(1, 2))
#define ACKED(r, j, n) (!deadB[2*(r)+(j)] && ack[4*i+2*(r)+(j)] >= (n))
#define MATE_SENT(r, n) (BREAK != 1 && \
	(BREAK == 2 -> ACKED(r, 0, n) || ACKED(r, 1, n) : told[2*(1-i)+(r)] >= (n)))
#define MOVE(r, j) \
	:: atomic { !deadA[i] && PROV(j) && !deadB[2*r+j] && next[4*i+2*r+j] <= sent[2*i+r] && \
		    nfull(data[4*i+2*r+j]) -> \
		if :: next[4*i+2*r+j] > ack[4*i+2*r+j] -> \
			assert(next[4*i+2*r+j] != passed[r]); data[4*i+2*r+j]!next[4*i+2*r+j] \
		   :: else -> skip fi; \
		next[4*i+2*r+j] = next[4*i+2*r+j] + 1 }
#define WANT(r) :: atomic { BREAK == 5 && !deadA[i] && want == NONE && sent[2*i+r] < M -> want = r }
#define SEND(r) \
	:: atomic { !deadA[i] && sent[2*i+r] < M && (BREAK != 5 || want == r) && COUNT < BOUND -> \
		sent[2*i+r]++; want = NONE } \
	:: atomic { !deadA[i] && sent[2*i+r] < M && (BREAK != 5 || want == r) && COUNT >= BOUND && \
		    MATE_SENT(r, sent[2*i+r] + 1) -> sent[2*i+r]++; want = NONE; \
		if :: BREAK == 4 -> passed[r] = sent[2*i+r] :: else -> skip fi }
#define TAKE_OVER(r) next[4*i+2*r+1-i] = ack[4*i+2*r+1-i] + 1

active [2] proctype A()
{
	byte i = _pid, want = NONE, passed[2]; /* want: with mistake 5 */
	bool knowA;

	d_step { next[4*i] = 1; next[4*i+1] = 1; next[4*i+2] = 1; next[4*i+3] = 1 }
	do
	WANT(0)
	WANT(1)
	SEND(0)
	SEND(1)
	:: atomic { !deadA[i] && !asked[i] && COUNT >= BOUND && (sent[2*i] < M || sent[2*i+1] < M) -> asked[i] = true }
	:: atomic { !deadA[i] && asked[1-i] && (BREAK == 3 -> !answered[i] :
		    told[2*i] < sent[2*i] || told[2*i+1] < sent[2*i+1]) ->
		told[2*i] = sent[2*i]; told[2*i+1] = sent[2*i+1];
		answered[i] = (BREAK == 3) }
	MOVE(0, 0)
	MOVE(0, 1)
	MOVE(1, 0)
	MOVE(1, 1)
	:: atomic { !deadA[i] && deadA[1-i] && !knowA -> knowA = true; TAKE_OVER(0); TAKE_OVER(1) }
	:: atomic { deadA[i] || (sent[2*i] == M && sent[2*i+1] == M && COUNT == 0) -> break }
	od
}

#define GET(i) \
	:: atomic { !deadB[b] && nempty(data[4*i+b]) -> data[4*i+b]?n; assert(n <= have[b] + 1); \
		if :: n == have[b] + 1 -> have[b] = n :: else -> skip fi; n = 0 }
/* an acknowledgement comes some time after it was asked for */
#define TELL(i) \
	:: atomic { !deadB[b] && asked[i] && ack[4*i+b] < have[b] -> ack[4*i+b] = have[b] }

active [4] proctype B()
{
	byte b = _pid - 2, n;

	do
	GET(0)
	GET(1)
	TELL(0)
	TELL(1)
	/* at its end it needs nothing more, which all are told */
	:: atomic { !deadB[b] && have[b] == M -> ack[b] = M; ack[4+b] = M; break }
	:: atomic { deadB[b] -> break }
	od
}

/* Replicas are alike, so are the two receivers: a 0 stands for either of a rank. */
active proctype Killer()
{
	do
	:: DIE_A && !deadA[0] -> deadA[0] = true
	:: DIE_X < NONE && !deadB[DIE_X] -> deadB[DIE_X] = true
	:: DIE_Y < NONE && !deadB[2 + DIE_Y] -> deadB[2 + DIE_Y] = true
	:: break
	od
}
