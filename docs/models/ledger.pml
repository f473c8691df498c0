/* SPDX-License-Identifier: BSD-3-Clause */
/* The ledger of a job with replicas (docs/redundancy.md): rank a (replicas 0 and 1) sends messages 1..M
 * to rank b (replicas 0 and 1). Replica i of a provides replica i of b; when it dies the other takes
 * over. What message n says is a's choice: the leader (the lowest living replica) decides and tells
 * its follower, which replays. One replica of each rank may die, at any step; each process learns of a
 * death (the next view) at a time of its own.
 *
 * Checked: no gap; what is transmitted is kept; both replicas of b get the same; nobody waits for ever.
 * BREAK n is a mistake that must be noticed:
 *   1 what the others have not acknowledged is forgotten once it is transmitted
 *   2 whoever takes over begins with what it sends next, not with what was acknowledged
 *   3 a message leaves before the follower can know what was decided
 *   4 a new leader decides though decisions of the old one are still on their way to it
 *   5 receivers acknowledge only when they please: a sender at its bound is not told
 *   6 a process that needs nothing more goes on being sent to
 *   7 what is meant for a dead process still counts as needed
 */
#ifndef M
#define M 2 /* messages */
#endif
#ifndef CAP
#define CAP 1 /* records in a channel */
#endif
#ifndef BOUND
#define BOUND M /* messages that may be kept */
#endif
#ifndef BREAK
#define BREAK 0
#endif

chan data[4] = [CAP] of { byte, bit }; /* [2*i+j]: a_i -> b_j: number, what it says */
byte ack[4];			       /* [2*j+i]: the newest `have` that b_j has told a_i */
chan det = [M] of { bit };	       /* a_0 -> a_1: decisions, in shared memory */
bool deadA[2], deadB[2];
bool doneB[2];			       /* b_j has said that it needs no more */
bool asked[4];			       /* [2*j+i]: a_i wants to know what b_j has */
byte have[2];
bool fixed[M + 1]; bit said[M + 1];    /* what message n said to whoever got it first */

#define NEEDED(n, j) (!(knowB[j] && BREAK != 7) && !doneB[j] && \
	(prov[j] -> next[j] <= n : (acked[j] < n && BREAK != 1)))
#define TRIM(n) :: atomic { kept[n] && !NEEDED(n, 0) && !NEEDED(n, 1) -> kept[n] = false; count-- }

#define SEND(j) \
	:: atomic { !deadA[i] && prov[j] && !knowB[j] && (!doneB[j] || BREAK == 6) && next[j] <= p && \
		    nfull(data[2*i+j]) -> \
		if :: next[j] > acked[j] -> assert(kept[next[j]]); data[2*i+j]!next[j],what[next[j]] \
		   :: else -> skip fi; \
		next[j] = next[j] + 1 }
#define HEAR(j) \
	:: atomic { !deadA[i] && ack[2*j+i] > acked[j] -> acked[j] = ack[2*j+i] }
#define LEARN_B(j) :: atomic { !deadA[i] && deadB[j] && !knowB[j] -> knowB[j] = true }
#define OVER(j) ((knowB[j] || doneB[j]) && (BREAK != 6 || knowB[j] || !prov[j] || next[j] > M))

active [2] proctype A()
{
	byte i = _pid, p = 0, count = 0, told = 0;
	byte acked[2], next[2];
	bool prov[2], knowA, knowB[2], kept[M + 1];
	bit what[M + 1], v;

	prov[i] = true;
	next[0] = 1; next[1] = 1;
	do
	/* the next step of the program: decide or replay what the message says */
	:: atomic { !deadA[i] && p < M && count < BOUND && (i == 0 || (knowA && (empty(det) || BREAK == 4))) ->
		if :: v = 0 :: v = 1 fi;
		if :: i == 0 && BREAK != 3 -> det!v :: else -> skip fi;
		p++; what[p] = v; kept[p] = true; count++; v = 0 }
	:: atomic { BREAK == 3 && i == 0 && !deadA[0] && told < p -> told++; det!what[told] }
	:: atomic { !deadA[i] && i == 1 && p < M && count < BOUND && nempty(det) ->
		det?v; p++; what[p] = v; kept[p] = true; count++; v = 0 }
	:: atomic { !deadA[i] && count >= BOUND && p < M && !prov[0] && !asked[i] -> asked[i] = true }
	:: atomic { !deadA[i] && count >= BOUND && p < M && !prov[1] && !asked[2+i] -> asked[2+i] = true }
	SEND(0)
	SEND(1)
	HEAR(0)
	HEAR(1)
	LEARN_B(0)
	LEARN_B(1)
	:: atomic { !deadA[i] && deadA[1-i] && !knowA -> knowA = true;
		prov[1-i] = true;
		if :: BREAK == 2 -> next[1-i] = p + 1 :: else -> next[1-i] = acked[1-i] + 1 fi }
	TRIM(1)
	TRIM(2)
#if M > 2
	TRIM(3)
#endif
	:: atomic { deadA[i] || (p == M && OVER(0) && OVER(1)) -> break }
	od
}

#define GET(ii) \
	:: atomic { !deadB[j] && nempty(data[2*ii+j]) -> data[2*ii+j]?n,v; \
		if :: n <= have[j] -> skip \
		   :: n == have[j] + 1 -> have[j] = n; \
			assert(!fixed[n] || said[n] == v); fixed[n] = true; said[n] = v \
		   :: n > have[j] + 1 -> assert(false) fi; n = 0; v = 0 }
#define TELL(ii) \
	:: atomic { !deadB[j] && asked[2*j+ii] && !deadA[ii] && BREAK != 5 && \
		    ack[2*j+ii] < have[j] -> ack[2*j+ii] = have[j] } \
	:: atomic { !deadB[j] && BREAK != 5 && ii != j && !deadA[ii] && \
		    have[j] >= ack[2*j+ii] + 2 -> ack[2*j+ii] = have[j] }

active [2] proctype B()
{
	byte j = _pid - 2, n;
	bit v;

	do
	GET(0)
	GET(1)
	TELL(0)
	TELL(1)
	:: atomic { !deadB[j] && have[j] == M && !doneB[j] -> doneB[j] = true }
	:: atomic { deadB[j] || doneB[j] -> break }
	od
}

active proctype Killer()
{
	if :: deadA[0] = true :: deadA[1] = true :: skip fi;
	if :: deadB[0] = true :: deadB[1] = true :: skip fi
}
