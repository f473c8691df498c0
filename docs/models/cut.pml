/* SPDX-License-Identifier: BSD-3-Clause */
/* A checkpoint of a job with replicas, and a rollback to it (docs/redundancy.md, "Checkpoints"). Rank a
 * (replicas 0 and 1) sends messages 1..M to rank b (replicas 0 and 1), by the rules of ledger.pml; here
 * all learn of a death at once. What message n says is a's choice: its leader decides, its follower
 * replays. All stop, what is on its way arrives, and the leader of each rank is written; if one dies
 * meanwhile, all go on and it begins again. At any later time the job goes back once: the writers live
 * as they were written, and nobody else. One replica of each rank may die, at any step before.
 *
 * Checked: no gap; what b has is what a believes to have said; nobody waits for ever.
 * BREAK n is a mistake that must be noticed:
 *   1 what is on its way is waited for by nobody
 *   2 a follower is written, without what it has heard and not replayed
 *   3 what is kept for others is not written
 *   4 who provides for more after the rollback begins with what comes next, not with what is kept
 *   5 each rank is written at a time of its own
 */
#ifndef M
#define M 2 /* messages */
#endif
#ifndef BREAK
#define BREAK 0
#endif

chan data[4] = [1] of { byte, bit }; /* [2*i+j]: a_i -> b_j: number, what it says */
bool deadA[2], deadB[2], killedA, killedB;
bool stopA[2], stopB[2], stopping, written, back;

/* of a_i */
byte p[2], what[2], kept[2];	 /* messages so far; bit n: what it said, whether it is kept */
byte acked[4], next[4];		 /* [2*i+j] */
byte heard, choices;		 /* decisions that a_1 knows; bit n */
/* of b_j */
byte have[2], got[2];

/* what is written */
byte wa, wb, s_p, s_what, s_kept, s_acked, s_next, s_heard, s_choices, s_have, s_got;
bool s_provides, savedA;

#define BIT(x, n)	((x >> (n)) & 1)
#define PROVIDES(i, j)	(!deadA[i] && ((i) == (j) || deadA[j]))
#define LEADS(i)	(!deadA[i] && ((i) == 0 || (deadA[0] && p[1] >= heard)))
#define NEEDED(i, n, j) (!deadB[j] && (PROVIDES(i, j) -> next[2*(i)+(j)] <= n : \
			 acked[2*(i)+(j)] < n))
#define QUIET(j) (deadB[j] || (empty(data[j]) && empty(data[2+(j)])))
#define DONE(k)	 ((deadA[k] || p[k] == M) && (deadB[k] || have[k] == M))

/* As soon as it may be forgotten it is. */
inline trim(i)
{
	if :: !NEEDED(i, 1, 0) && !NEEDED(i, 1, 1) -> kept[i] = kept[i] & ~(1 << 1) :: else -> skip fi;
	if :: !NEEDED(i, 2, 0) && !NEEDED(i, 2, 1) -> kept[i] = kept[i] & ~(1 << 2) :: else -> skip fi
}

#define DECIDE(i, v) \
	:: atomic { !stopA[i] && LEADS(i) && p[i] < M -> p[i]++; what[i] = what[i] | (v << p[i]); \
		kept[i] = kept[i] | (1 << p[i]); \
		if :: i == 0 && !deadA[1] -> heard = p[i]; choices = choices | (v << p[i]) :: else -> skip fi }
#define SEND(i, j) \
	:: atomic { !stopA[i] && PROVIDES(i, j) && !deadB[j] && next[2*i+j] <= p[i] && nfull(data[2*i+j]) -> \
		if :: BIT(kept[i], next[2*i+j]) -> data[2*i+j]!next[2*i+j],BIT(what[i], next[2*i+j]) \
		   :: else -> skip fi; \
		next[2*i+j] = next[2*i+j] + 1; trim(i) }
#define GET(i, j) \
	:: atomic { !deadB[j] && nempty(data[2*i+j]) -> data[2*i+j]?n,v; \
		assert(n <= have[j] + 1); \
		if :: n == have[j] + 1 -> have[j] = n; got[j] = got[j] | (v << n) :: else -> skip fi; n = 0; v = 0 }
#define TELL(j, i) \
	:: atomic { !deadB[j] && !stopB[j] && !deadA[i] && !PROVIDES(i, j) && acked[2*i+j] < have[j] -> \
		acked[2*i+j] = have[j]; trim(i) }
/* whoever provides for b_j from now on begins with what b_j has not acknowledged */
#define KILL_A(i) \
	:: atomic { !killedA && !back -> killedA = true; \
		if :: PROVIDES(i, 0) -> next[2*(1-i)] = acked[2*(1-i)] + 1 :: else -> skip fi; \
		if :: PROVIDES(i, 1) -> next[2*(1-i)+1] = acked[2*(1-i)+1] + 1 :: else -> skip fi; \
		deadA[i] = true; GIVE_UP }
#define KILL_B(j) :: atomic { !killedB && !back -> killedB = true; deadB[j] = true; trim(0); trim(1); GIVE_UP }
#define GIVE_UP \
	stopping = false; stopA[0] = false; stopA[1] = false; stopB[0] = false; stopB[1] = false; savedA = false

inline save_a()
{
	wa = (deadA[0] || (BREAK == 2 && !deadA[1]) -> 1 : 0);
	s_p = p[wa]; s_what = what[wa]; s_kept = (BREAK == 3 -> 0 : kept[wa]);
	s_choices = choices;
	s_heard = (BREAK == 2 -> p[wa] : heard)
}

inline save_b()
{
	wb = (deadB[0] -> 1 : 0);
	s_have = have[wb]; s_got = got[wb]
}

/* What a has of b's writer. */
inline save_between()
{
	s_acked = acked[2*wa+wb]; s_next = next[2*wa+wb];
	s_provides = PROVIDES(wa, wb)
}

inline go_back()
{
	do :: nempty(data[0]) -> data[0]?_,_ :: nempty(data[1]) -> data[1]?_,_
	   :: nempty(data[2]) -> data[2]?_,_ :: nempty(data[3]) -> data[3]?_,_ :: else -> break od;
	deadA[wa] = false; deadA[1-wa] = true; deadB[wb] = false; deadB[1-wb] = true;
	p[wa] = s_p; what[wa] = s_what; kept[wa] = s_kept; heard = s_heard; choices = s_choices;
	have[wb] = s_have; got[wb] = s_got;
	acked[2*wa+wb] = s_acked;
	if
	:: s_provides -> next[2*wa+wb] = s_next
	:: !s_provides && BREAK == 4 -> next[2*wa+wb] = s_p + 1
	:: !s_provides && BREAK != 4 -> next[2*wa+wb] = s_acked + 1
	fi;
	GIVE_UP
}

active proctype Job()
{
	byte n;
	bit v;

	next[0] = 1; next[1] = 1; next[2] = 1; next[3] = 1;
	do
	DECIDE(0, 0)
	DECIDE(0, 1)
	DECIDE(1, 0)
	DECIDE(1, 1)
	:: atomic { !deadA[1] && !stopA[1] && p[1] < heard -> p[1]++; kept[1] = kept[1] | (1 << p[1]);
		what[1] = what[1] | (BIT(choices, p[1]) << p[1]) }
	SEND(0, 0)
	SEND(0, 1)
	SEND(1, 0)
	SEND(1, 1)
	GET(0, 0)
	GET(0, 1)
	GET(1, 0)
	GET(1, 1)
	TELL(0, 0)
	TELL(0, 1)
	TELL(1, 0)
	TELL(1, 1)
	KILL_A(0)
	KILL_A(1)
	KILL_B(0)
	KILL_B(1)
	/* the head asks, and each stops when it comes to it */
	:: atomic { !stopping && !written && BREAK != 5 -> stopping = true }
	:: atomic { stopping && !stopA[0] && !deadA[0] -> stopA[0] = true }
	:: atomic { stopping && !stopA[1] && !deadA[1] -> stopA[1] = true }
	:: atomic { stopping && !stopB[0] && !deadB[0] -> stopB[0] = true }
	:: atomic { stopping && !stopB[1] && !deadB[1] -> stopB[1] = true }
	:: atomic { stopping && (stopA[0] || deadA[0]) && (stopA[1] || deadA[1]) && (stopB[0] || deadB[0]) &&
		    (stopB[1] || deadB[1]) && (BREAK == 1 || (QUIET(0) && QUIET(1))) ->
		save_a(); save_b(); save_between(); written = true; GIVE_UP }
	:: atomic { BREAK == 5 && !written && !savedA -> save_a(); savedA = true }
	:: atomic { BREAK == 5 && !written && savedA -> save_b(); save_between(); written = true }
	:: atomic { written && !back -> back = true; go_back() }
	:: atomic { (written -> back : true) && !stopping && DONE(0) && DONE(1) && QUIET(0) && QUIET(1) -> break }
	od;
	assert(deadA[0] || deadB[0] || what[0] == got[0]);
	assert(deadA[0] || deadB[1] || what[0] == got[1]);
	assert(deadA[1] || deadB[0] || what[1] == got[0]);
	assert(deadA[1] || deadB[1] || what[1] == got[1])
}
