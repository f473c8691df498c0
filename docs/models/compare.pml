/* SPDX-License-Identifier: BSD-3-Clause */
/* --sdc hash (docs/redundancy.md, 'Silent errors'): D replicas of rank a send messages 1..M to one
 * replica of rank b. The provider, the lowest that lives, sends the message, the others its digest.
 * One replica of a may be wrong: in its memory, so that message and digest are, or in the copy of the
 * message only, after the digest was computed. One replica may die, at any step; each process learns
 * of that at a time of its own, b not before it has read what the dead one had sent.
 *
 * Checked: no wrong message is handed up; the job stops only if nobody can know which one is right;
 * nobody waits for ever. BREAK n is a mistake that must be noticed:
 *   1 a message is handed up before all that live have said what it is
 *   2 a copy that was asked for is taken without looking at its digest
 *   3 a replica that has died is waited for
 *   4 nobody is asked for a copy of which only the digest is known
 *   5 that a copy was spoilt is not noted, and so nobody else is asked
 *   6 two claims that differ: the first one is taken
 *
 * With WITNESS (docs/audit.md) replica 2 says nothing until b has asked it, which b does when 0 and 1
 * differ. 1 is a copy of 0 that may have inherited an error (twins: both are wrong alike): then what
 * both say is handed up, and nobody is convicted.
 *   7 the witness's claim counts although the others agree
 *   8 nobody asks the witness
 */
#ifndef D
#define D 3
#endif
#ifndef M
#define M 2
#endif
#ifndef DEATHS
#define DEATHS 1
#endif
#ifndef BREAK
#define BREAK 0
#endif
#ifndef WITNESS
#define WITNESS 0
#endif
#define ALL ((1 << D) - 1)
#define BIT(s) (1 << (s))

mtype = { MSG, DIG };
chan data[D] = [1] of { mtype, byte, bit }; /* kind; number; is it wrong? */
byte ask[D];				    /* 0, or the message that b wants in full */
byte lost;				    /* mask: dead */
byte guilty = D;			    /* D: none */
bit copyWrong[M + 1], digestWrong[M + 1];   /* of the guilty one */
byte have, deaths;
bool stopped;
bool speaks = !WITNESS;			    /* the witness has been asked */
bit twins[M + 1];			    /* 0 and 1 are wrong alike in that message */
bool accused;				    /* somebody was convicted who is right */

inline wrong_copy(s, n, w) { w = ((s == guilty && (copyWrong[n] || digestWrong[n])) || (twins[n] && s < 2)) }
inline wrong_digest(s, n, w) { w = ((s == guilty && digestWrong[n]) || (twins[n] && s < 2)) }

#define LOWEST(view) ((view & 1) == 0 -> 0 : ((view & 2) == 0 -> 1 : 2))
#define OVER (have == M || stopped)

active [D] proctype A()
{
	byte i = _pid, view, next = 1, n;
	bit w;

	do
	:: atomic { !(lost & BIT(i)) && (i != 2 || speaks || (lost & 3) == 3) && next <= M && nfull(data[i]) ->
		if
		:: LOWEST(view) == i -> wrong_copy(i, next, w); data[i]!MSG,next,w
		:: else -> wrong_digest(i, next, w); data[i]!DIG,next,w
		fi;
		next++; w = 0 }
	:: atomic { !(lost & BIT(i)) && ask[i] != 0 && next > ask[i] && nfull(data[i]) ->
		n = ask[i]; ask[i] = 0; wrong_copy(i, n, w); data[i]!MSG,n,w; n = 0; w = 0 }
	:: atomic { !(lost & BIT(i)) && view != lost ->
		if :: LOWEST(view) != i && LOWEST(lost) == i -> next = 1 :: else -> skip fi;
		view = lost }
	:: atomic { (lost & BIT(i)) || OVER -> break }
	od
}

/* Claims on message n, as masks of slots: who has said it; who says what is wrong; whose copies are
 * here, and which of them are wrong; whose copies are not what they had said; who was asked for one. */
byte said[M + 1], says[M + 1], copies[M + 1], bad[M + 1], spoilt[M + 1], asked[M + 1];

#define ONES(x) ((x & 1) + (x >> 1 & 1) + (x >> 2 & 1))
/* whose claims count: a witness's only if the others differ */
#define OTHERS(n) (said[n] & 3)
#define AGREE(n) ((OTHERS(n) & says[n]) == 0 || (OTHERS(n) & ~says[n] & 3) == 0)
#define JURY(n) (WITNESS && BREAK != 7 && OTHERS(n) != 0 && AGREE(n) -> OTHERS(n) : said[n])
#define RIGHT(n) (JURY(n) & ~says[n] & ALL)
#define WRONG(n) (JURY(n) & says[n])
#define MAJORITY(n) (2 * ONES(RIGHT(n)) > ONES(JURY(n)) -> RIGHT(n) : \
		     (2 * ONES(WRONG(n)) > ONES(JURY(n)) -> WRONG(n) : (BREAK == 6 -> FIRST(n) : 0)))
/* of the living, those that are waited for */
#define HELD_BACK(n) (WITNESS && (view & 3) != 3 && MAJORITY(n) != 0 -> 4 : 0)
#define CALLS(n) (WITNESS && BREAK != 8 && !speaks && (view & 4) == 0 && said[n] != 0 && \
		  (view | said[n] | 4) == ALL && MAJORITY(n) == 0)
#define FIRST(n) ((said[n] & 1) -> 1 : ((said[n] & 2) -> 2 : 4))
#define HERE(n) (copies[n] & MAJORITY(n))
#define ALL_SAY(n) (said[n] != 0 && (BREAK == 1 || ((BREAK == 3 -> 0 : view) | said[n] | HELD_BACK(n)) == ALL))
/* whose copies may still be right */
#define SOURCES(n) (MAJORITY(n) & ~view & ~spoilt[n] & ALL)

#define READ(s) (!(lost & BIT(s)) || empty(data[s]))
#if D > 2
#define READ_THIRD READ(2)
#else
#define READ_THIRD true
#endif

#define GET(s) \
	:: atomic { nempty(data[s]) -> data[s]?k,n,w; \
		if \
		:: n <= have -> skip \
		:: n > have && !(said[n] & BIT(s)) -> \
			assert(n == have + 1 || (said[n - 1] & BIT(s))); \
			said[n] = said[n] | BIT(s); says[n] = says[n] | (w << s); \
			if :: k == MSG -> copies[n] = copies[n] | BIT(s); bad[n] = bad[n] | (w << s) \
			   :: else -> skip fi \
		:: n > have && (said[n] & BIT(s)) && k == MSG && !(copies[n] & BIT(s)) -> \
			if :: w == (says[n] >> s & 1) || BREAK == 2 -> \
				copies[n] = copies[n] | BIT(s); bad[n] = bad[n] | (w << s) \
			   :: else -> if :: BREAK != 5 -> spoilt[n] = spoilt[n] | BIT(s) \
				:: else -> skip fi fi \
		:: else -> skip \
		fi; k = DIG; n = 0; w = 0 }

#define ASK(s) \
	:: atomic { BREAK != 4 && !OVER && ALL_SAY(have + 1) && !HERE(have + 1) && (SOURCES(have + 1) & BIT(s)) && \
		    !(SOURCES(have + 1) & asked[have + 1]) -> \
		ask[s] = have + 1; asked[have + 1] = asked[have + 1] | BIT(s) }

active proctype B()
{
	byte view, n;
	bit w;
	mtype k = DIG;

	do
	GET(0)
	GET(1)
	ASK(0)
	ASK(1)
#if D > 2
	GET(2)
	ASK(2)
#endif
	/* what was put into memory before a death counts */
	:: atomic { view != lost && READ(0) && READ(1) && READ_THIRD -> view = lost }
	:: atomic { !OVER && CALLS(have + 1) -> speaks = true }
	:: atomic { !OVER && ALL_SAY(have + 1) && HERE(have + 1) ->
		/* who is left alone is believed */
		assert(twins[have + 1] || (WITNESS && OTHERS(have + 1) != 3) ||
		       !(HERE(have + 1) & bad[have + 1]));
		if :: JURY(have + 1) & ~MAJORITY(have + 1) & ~says[have + 1] & ALL -> accused = true
		   :: else -> skip fi;
		have++ }
	:: atomic { !OVER && ALL_SAY(have + 1) && !HERE(have + 1) && !SOURCES(have + 1) ->
		stopped = true }
	:: atomic { OVER -> break }
	od;
	assert(!stopped || D == 2 || deaths > 0);
	assert(!accused)
}

active proctype Fate()
{
	byte n;

	atomic {
		if :: guilty = 0 :: guilty = 1 :: !WITNESS -> guilty = D - 1 :: skip fi;
		if :: WITNESS -> twins[M] = 1 :: skip fi;
		for (n : 1 .. M) {
			if :: copyWrong[n] = 1 :: digestWrong[n] = 1 :: skip fi
		}
	}
	if
	:: DEATHS > 0 && !OVER -> atomic { deaths = 1; if :: lost = 1 :: lost = 2 :: lost = ALL & ~3 fi }
	:: skip
	fi
}
