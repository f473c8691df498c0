/* SPDX-License-Identifier: BSD-3-Clause */
/* Shadows (docs/shadows.md). Ranks a and b are one shadowed set: mains a_0 and b_0 have a core each,
 * shadows a_1 and b_1 share one (or, SETS 2, each has another set's core). Rank a sends messages 1 and 2 to rank b; what message n says is a choice
 * of a's main, which its shadow replays. The head promotes the shadow of a main that is lost, and stops
 * the other shadow of its core; has a shadow whose log is full jump: a copy of its main is made beside it,
 * and takes its place in one step; and
 * makes a lost process anew (rejuvenation). LOSSES processes are lost, at any step; who is alive learns of
 * it, and of what the head has decided, at a time of its own.
 *
 *   main ──▶ lost ──▶ main, copied from the promoted shadow
 *   shadow ──▶ promoted, is the main ──▶ shadow, when the main is back
 *          ├─▶ lost, stopped ──▶ shadow, copied from its main
 *          └─▶ replaced by a copy of its main, when that is whole (a jump)
 *
 * A set is vulnerable while a rank of it has one process only.
 *
 * Checked: a shadow says nothing; b gets each message once, in order, and all its processes the same;
 * what a process lacks is kept; one loss never costs a rollback, but where a process was missing before;
 * nobody waits for ever. BREAK n is a mistake that must be noticed:
 *   1 shadows are not mute
 *   2 a message is forgotten when the main has it, though the shadow's log has not
 *   3 a promoted shadow skips what the main of b has, though b's shadow has not
 *   4 a message leaves before the shadow's log has what was decided
 *   5 a promoted shadow decides though its log still has decisions
 *   6 what is meant for a stopped shadow still counts as needed
 *   7 a copy is made while messages are under way to its source
 *   8 the place of a copy that is not whole is promoted
 *   9 the other shadow of the core is not stopped
 *  10 a promoted shadow goes on as main when the main is back
 *  11 a promoted shadow is stopped as if it were still one
 *  12 a shadow that is to jump is ended before its copy is whole
 */
#define M 2   /* messages */
#define LOG 1 /* messages in a shadow's log that its program has not come to */

/* From the environment, so that all runs share one program; not part of the state. */
hidden byte LOSSES = 1, COPIES = 0; /* processes lost; jumps, and processes that come back */
hidden byte BOUND = 2;		     /* messages that a sender may keep */
hidden byte SETS = 1;		     /* 2: a and b are in different sets, and share no core */
hidden byte BREAK = 0;
c_decl {
	\#include <stdlib.h>
}
#define FROM_ENVIRONMENT(NAME) c_code { if (getenv(#NAME)) NAME = atoi(getenv(#NAME)); }

#define A 0
#define B 2 /* process A + i is a_i, B + j is b_j; 0 and 2 are mains, 1 and 3 shadows */
#define MATE(x) ((x) ^ 1)

bool dead[4], gone[4];	 /* is so; the head has said so */
bool hollow[4];		 /* a copy that is being made */
bool known[8];		 /* [4*i+process]: a_i has acted on that */
bool over, copying, jumping;
byte losses, copies, returns, hole;

byte p[2];		 /* messages that the program of a_i has come to */
byte acked[4], next[4];	 /* [2*i+j] */
bool kept[8]; bit what[8]; /* [4*i+n] */
byte heard[2];		 /* a_i knows what the first so many say: its log of decisions */
chan data[4] = [1] of { byte, bit }; /* [2*i+j] */
byte have[2], eaten[2];
bool fixed[M + 1]; bit said[M + 1];
byte n; bit v; /* of one step */

#define LIVES(x) (!over && !dead[x] && !hollow[x])
#define LEADS(i) (i == 0 || known[4+A])
#define MAIN_B(j) (j == 0 || gone[B])
#define COUNT(i) (kept[4*(i)+1] + kept[4*(i)+2])
#define NEEDED(i, m, j) ((!known[4*(i)+B+j] || BREAK == 6) && \
	(LEADS(i) -> next[2*(i)+j] <= m : acked[2*(i)+j] < m) && !(BREAK == 2 && j == 1))
#define HAS(i, m, j) (known[4*(i)+B+j] || acked[2*(i)+j] >= m)
#define SKIPPED(i, m) (HAS(i, m, 0) && (HAS(i, m, 1) || (BREAK == 3 && (i) == 1)))

inline forget(i)
{
	kept[4*(i)+1] = kept[4*(i)+1] && (NEEDED(i, 1, 0) || NEEDED(i, 1, 1));
	kept[4*(i)+2] = kept[4*(i)+2] && (NEEDED(i, 2, 0) || NEEDED(i, 2, 1));
	what[4*(i)+1] = what[4*(i)+1] && (kept[4*(i)+1] || heard[1] < 1 || p[i] < 1)
}

/* the program of a_i sends its next message */
inline program_sends(i)
{
	p[i]++;
	kept[4*(i)+p[i]] = !SKIPPED(i, p[i])
}

/* A new main sends from the first message on that somebody has not acknowledged. */
inline provide(i)
{
	next[2*(i)] = acked[2*(i)] + 1;
	next[2*(i)+1] = acked[2*(i)+1] + 1
}

inline learn(i)
{
	if
	:: gone[A] && !known[4*(i)+A] && i == 1 -> provide(1)
	:: else -> skip
	fi;
	known[4*(i)+A] = gone[A]; known[4*(i)+A+1] = gone[A+1];
	known[4*(i)+B] = gone[B]; known[4*(i)+B+1] = gone[B+1];
	forget(i)
}

#define NEWS(i) (gone[0] != known[4*(i)] || gone[1] != known[4*(i)+1] || gone[2] != known[4*(i)+2] || \
		 gone[3] != known[4*(i)+3])

/* What is not kept any more its receiver has. */
#define SEND(j) \
	:: d_step { LIVES(A+i) && (LEADS(i) || BREAK == 1 || (BREAK == 10 && copies > 0)) && \
		    !known[4*i+B+j] && next[2*i+j] <= p[i] && nfull(data[2*i+j]) -> \
		if :: next[2*i+j] <= acked[2*i+j] -> skip \
		   :: next[2*i+j] > acked[2*i+j] && !kept[4*i+next[2*i+j]] -> assert(have[j] >= next[2*i+j]) \
		   :: next[2*i+j] > acked[2*i+j] && kept[4*i+next[2*i+j]] -> \
			assert(i == 0 || dead[A]); /* mute */ \
			data[2*i+j]!next[2*i+j],what[4*i+next[2*i+j]] fi; \
		next[2*i+j] = next[2*i+j] + 1; forget(i) }

proctype rank_a(bit i)
{
	bit x;
end_a:	do
	/* the main decides, and says so to its shadow */
	:: atomic { LIVES(A+i) && LEADS(i) && p[i] < M && COUNT(i) < BOUND && (heard[i] == p[i] || BREAK == 5) ->
		if :: x = 0 :: p[i] == 0 -> x = 1 fi;
		what[4*i+p[i]+1] = x;
		heard[i] = p[i] + 1;
		if
		:: i == 0 && !known[A+1] && BREAK != 4 -> what[4+p[0]+1] = x; heard[1] = p[0] + 1
		:: i == 1 || known[A+1] || BREAK == 4 -> skip
		fi;
		program_sends(i); x = 0 }
	:: atomic { BREAK == 4 && i == 0 && LIVES(A) && heard[1] < heard[0] && !known[A+1] ->
		heard[1]++; what[4+heard[1]] = what[heard[1]] }
	/* or its log says what it is; so also of the main that has come back */
	:: d_step { LIVES(A+i) && p[i] < M && COUNT(i) < BOUND && heard[i] > p[i] -> program_sends(i) }
	SEND(0)
	SEND(1)
	:: d_step { LIVES(A+i) && NEWS(i) -> learn(i) }
	od
}

inline take(i, j)
{
	data[2*(i)+j]?n,v;
	if
	:: n <= have[j] -> skip
	:: n == have[j] + 1 ->
		have[j] = n;
		eaten[j] = (MAIN_B(j) -> n : eaten[j]);
		assert(!fixed[n] || said[n] == v);
		fixed[n] = true; said[n] = v
	:: n > have[j] + 1 -> assert(false)
	fi;
	n = 0; v = 0
}

/* A shadow takes what comes into its log, beside its program; a full log takes nothing. */
#define GET(i) \
	:: d_step { LIVES(B+j) && nempty(data[2*i+j]) && (MAIN_B(j) || have[j] - eaten[j] < LOG) -> take(i, j) }
/* It says what it has, sooner or later. */
#define TELL(i) \
	:: d_step { LIVES(B+j) && acked[2*i+j] < have[j] && LIVES(A+i) && !LEADS(i) -> \
		acked[2*i+j] = have[j]; forget(i) }

proctype rank_b(bit j)
{
end_b:	do
	GET(0)
	GET(1)
	TELL(0)
	TELL(1)
	:: d_step { LIVES(B+j) && eaten[j] < have[j] -> eaten[j] = eaten[j] + 1 }
	od
}

/* ---- the head ---- */

inline drain(i, j)
{
	do
	:: nempty(data[2*i+j]) && LIVES(B+j) -> take(i, j)
	:: nempty(data[2*i+j]) && !LIVES(B+j) -> data[2*i+j]?n,v; n = 0; v = 0
	:: empty(data[2*i+j]) -> break
	od
}

/* All stand still: each has acted on the view, and what is under way is where it goes. */
inline stop_all()
{
	if :: LIVES(A) -> learn(0) :: else -> skip fi;
	if :: LIVES(A+1) -> learn(1) :: else -> skip fi;
	if
	:: BREAK != 7 -> drain(0, 0); drain(0, 1); drain(1, 0); drain(1, 1)
	:: BREAK == 7 -> skip
	fi
}

/* The copy has what its source has, and that one's decisions; what was acknowledged is a bound below. */
inline copy_a(to)
{
	p[to] = p[MATE(to)];
	kept[4*(to)+1] = kept[4*MATE(to)+1]; kept[4*(to)+2] = kept[4*MATE(to)+2];
	what[4*(to)+1] = what[4*MATE(to)+1]; what[4*(to)+2] = what[4*MATE(to)+2];
	acked[2*(to)] = acked[2*MATE(to)]; acked[2*(to)+1] = acked[2*MATE(to)+1];
	known[4*(to)+B] = known[4*MATE(to)+B]; known[4*(to)+B+1] = known[4*MATE(to)+B+1];
	known[A] = false; known[A+1] = false; known[4+A] = false; known[4+A+1] = false;
	provide(to);
	heard[to] = heard[MATE(to)]
}

inline copy_b(j)
{
	have[j] = have[MATE(j)]; eaten[j] = eaten[MATE(j)];
	acked[j] = acked[MATE(j)]; acked[2+j] = acked[2+MATE(j)];
	next[j] = acked[j] + 1; next[2+j] = acked[2+j] + 1;
	known[B+j] = false; known[4+B+j] = false
}

inline copy()
{
	stop_all();
	if
	:: hole == A -> copy_a(0)
	:: hole == A+1 -> copy_a(1)
	:: hole == B -> copy_b(0)
	:: hole == B+1 -> copy_b(1)
	fi;
	gone[hole] = false; dead[hole] = false; hollow[hole] = false;
	copying = false; jumping = false; hole = 0
}

/* The other process of the core is a shadow, too, and not promoted before. */
#define STOPS(x) (SETS == 1 && !((x) & 1) && (!gone[(x) ^ 2] || BREAK == 11))

/* Process x is lost; its rank goes on in the other one, or there is none. */
inline lost(x)
{
	gone[x] = true;
	if
	:: (dead[MATE(x)] || hollow[MATE(x)]) && !(BREAK == 8 && hollow[MATE(x)]) ->
		assert(losses > 1 || returns > 0); /* only a vulnerable set is rolled back */
		over = true
	:: !((dead[MATE(x)] || hollow[MATE(x)]) && !(BREAK == 8 && hollow[MATE(x)])) ->
		assert(!hollow[MATE(x)]); /* who is promoted has a state */
		if
		:: STOPS(x) && BREAK != 9 -> dead[(x ^ 2) | 1] = true; gone[(x ^ 2) | 1] = true
		:: !STOPS(x) || BREAK == 9 -> skip
		fi;
		/* whoever is promoted shares its core with no shadow */
		assert(SETS == 2 || (x & 1) || gone[(x ^ 2) | 1] || gone[x ^ 2])
	fi
}

/* A jump under way comes to nothing: the shadow is what it was. */
#define LOSE(x) :: !dead[x] -> \
		if :: jumping && !hollow[hole] -> copying = false; jumping = false; hole = 0 \
		   :: !jumping || hollow[hole] -> skip fi; \
		dead[x] = true; lost(x)
#define MISSING (gone[0] || gone[1] || gone[2] || gone[3])
#define JUMP(x) \
	:: d_step { copies < COPIES && !copying && !over && !MISSING && \
		    (x == A+1 || have[1] - eaten[1] == LOG) -> \
		copies++; copying = true; jumping = true; hole = x; \
		if :: BREAK == 12 -> dead[x] = true; gone[x] = true; hollow[x] = true \
		   :: BREAK != 12 -> skip fi }
#define RETURN(x) \
	:: d_step { copies < COPIES && !copying && !over && gone[x] && !dead[MATE(x)] -> \
		copies++; returns++; copying = true; hole = x; hollow[x] = true }
#define ENDED(i, j) (LIVES(A+i) && LIVES(B+j) && p[i] == M && eaten[j] == M)

proctype head()
{
	do
	JUMP(A+1)
	JUMP(B+1)
	RETURN(A)
	RETURN(A+1)
	RETURN(B)
	RETURN(B+1)
	/* GO */
	:: d_step { copying && !over && !dead[MATE(hole)] -> copy() }
	/* nobody waits for shadows */
	:: d_step { !over && ENDED((gone[A] -> 1 : 0), (gone[B] -> 1 : 0)) -> over = true }
	/* nothing more can happen: then all is over */
	:: timeout -> assert(over); break
	od
}

proctype fate()
{
end_f:	do
	:: atomic { losses < LOSSES && !over ->
		losses++;
		if
		LOSE(0)
		LOSE(1)
		LOSE(2)
		LOSE(3)
		fi }
	od
}

init
{
	FROM_ENVIRONMENT(LOSSES)
	FROM_ENVIRONMENT(COPIES)
	FROM_ENVIRONMENT(BOUND)
	FROM_ENVIRONMENT(SETS)
	FROM_ENVIRONMENT(BREAK)
	atomic {
		next[0] = 1; next[1] = 1; next[2] = 1; next[3] = 1;
		run rank_a(0); run rank_a(1); run rank_b(0); run rank_b(1); run head(); run fate()
	}
}
