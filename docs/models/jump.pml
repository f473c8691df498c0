/* SPDX-License-Identifier: BSD-3-Clause */
/* The jump of one pair alone (docs/shadows.md, "One pair alone"). Rank b jumps: a copy b_2 of its main
 * b_0 is made in the place of its shadow b_1, while rank a (main a_0, shadow a_1) runs on. IN messages
 * go from a to b, OUT from b to a; what an OUT message says is a choice of b's main, which its followers
 * replay. LOSSES processes are lost, at any step; what a lost process had on its way to others may be
 * lost with it (another node), or not.
 *
 *   head   ask ─▶ all keep ─▶ image ─▶ b_2 joins (view) ─▶ b_0 has told it all ─▶ b_1 ends (view)
 *            └──────────┴────────┴─▶ given up: b_1 is what it was
 *
 * Checked: there is never a gap; all processes of a get the same messages; whoever is lost alone, its
 * rank lives on, and in the end all who live have everything; nobody keeps for who does not come.
 * BREAK n is a mistake that must be noticed:
 *   1 the image is taken before all keep
 *   2 others do not keep for the copy
 *   3 the source does not keep what others have not acknowledged
 *   4 the old shadow ends when the copy joins
 *   5 the copy stays when its source is lost before it has told all
 *   6 what is decided after the image is not told to the copy
 *   7 others keep for the copy when its source is lost
 *   8 an answer counts before what was sent ahead of it is there
 *   9 shadows of others are not asked
 *  10 who takes it back does not tell the others
 */
hidden byte IN = 2, OUT = 0, LOSSES = 1, BREAK = 0;
c_decl {
	\#include <stdlib.h>
}
#define FROM_ENVIRONMENT(NAME) c_code { if (getenv(#NAME)) NAME = atoi(getenv(#NAME)); }

#define M 2
#define B 2  /* process B + j is b_j; 0 and 1 are a_0 and a_1 */
#define B2 4
#define DATA 1
#define MARK 2 /* COMES, or KEEPS */
#define NOT 3  /* COMES_NOT */

mtype = { IDLE, ASKED, KEPT, WHOLE, JOINED, DONE };
mtype jump = IDLE;
bool tried, cancelled;
bool dead[5], gone[5];
bool known[25];	   /* [5*p + q]: p has acted on: q is dead */
bool over;
byte losses;

/* rank a */
byte pa[2];		/* its program has sent so many */
bool ka[6];		/* [3*i+n]: keeps message n */
byte na[6], ca[6];	/* [3*i+j]: next to b_j; b_j has acknowledged */
bool coming[2];
byte ha[2];		/* has of b's messages */
chan ab[6] = [2] of { byte, byte };	 /* [3*i+j] */
/* rank b */
byte pb[3], hb[3], heard[3];
bool kb[9];		/* [3*j+n] */
bit what[9];		/* [3*j+n]: as it has decided or heard */
byte nb[6], cb[6];	/* [2*j+i] */
bool announces[3];
bool mark[2], not[2], answer[2], keeps[2]; /* to be said to a_i (twice); by a_i; has come */
chan ba[6] = [2] of { byte, byte, bit }; /* [2*j+i] */
bool fixed[3]; bit said[3];
byte t, n; bit v; /* of one step */

#define LIVES(p) (!over && !dead[p] && ((p) != B2 || jump == JOINED || jump == DONE))
#define KNOWS(p, q) known[5*(p)+(q)]
#define LEADS_A(i) ((i) == 0 || KNOWS(1, 0))
/* b_1 or b_2 leads when those before it are gone */
#define LEADS_B(j) ((j) == 0 || ((j) == 1 && KNOWS(B+1, B)) || ((j) == 2 && KNOWS(B2, B) && KNOWS(B2, B+1)))

/* ---- what is kept ---- */

#define NEEDS_A(i, m, j) \
	(((j) == 2 && coming[i] && BREAK != 2) -> ca[3*(i)+2] < (m) : \
	 (!KNOWS(i, B+(j)) && (LEADS_A(i) -> na[3*(i)+(j)] <= (m) : ca[3*(i)+(j)] < (m))))
#define NEEDS_B(j, m, i) \
	(!KNOWS(B+(j), i) && (LEADS_B(j) -> (nb[2*(j)+(i)] <= (m) || (announces[j] && BREAK != 3 && cb[2*(j)+(i)] < (m))) : \
			    cb[2*(j)+(i)] < (m)))
inline forget_a(i)
{
	ka[3*(i)+1] = ka[3*(i)+1] && (NEEDS_A(i, 1, 0) || NEEDS_A(i, 1, 1) || NEEDS_A(i, 1, 2));
	ka[3*(i)+2] = ka[3*(i)+2] && (NEEDS_A(i, 2, 0) || NEEDS_A(i, 2, 1) || NEEDS_A(i, 2, 2))
}
inline forget_b(j)
{
	kb[3*(j)+1] = kb[3*(j)+1] && (NEEDS_B(j, 1, 0) || NEEDS_B(j, 1, 1));
	kb[3*(j)+2] = kb[3*(j)+2] && (NEEDS_B(j, 2, 0) || NEEDS_B(j, 2, 1))
}

#define NEWS(p) (gone[0] != KNOWS(p, 0) || gone[1] != KNOWS(p, 1) || gone[2] != KNOWS(p, 2) || \
		 gone[3] != KNOWS(p, 3) || gone[4] != KNOWS(p, 4))
inline copy_view(p)
{
	KNOWS(p, 0) = gone[0]; KNOWS(p, 1) = gone[1]; KNOWS(p, 2) = gone[2]; KNOWS(p, 3) = gone[3];
	KNOWS(p, 4) = gone[4]
}

/* Who begins to provide begins with the first message that is not acknowledged. */
#define ANEW_A(i, j) na[3*(i)+(j)] = ca[3*(i)+(j)] + 1
inline learn_a(i)
{
	if
	:: i == 1 && gone[0] && !KNOWS(1, 0) -> ANEW_A(1, 0); ANEW_A(1, 1); ANEW_A(1, 2)
	:: else -> skip
	fi;
	if
	:: coming[i] && !gone[B2] -> coming[i] = false; ANEW_A(i, 2)
	:: coming[i] && gone[B2] && gone[B] && BREAK != 7 -> coming[i] = false
	:: else -> skip
	fi;
	copy_view(i);
	forget_a(i)
}

inline learn_b(j)
{
	if
	:: announces[j] && !gone[B2] -> announces[j] = false
	:: else -> skip
	fi;
	/* who has acted on neither view would keep for it for ever */
	if
	:: j == 0 && !KNOWS(B, B2) && gone[B2] && BREAK != 10 -> not[0] = true; not[1] = true
	:: else -> skip
	fi;
	t = LEADS_B(j);
	copy_view(B+j);
	if
	:: !t && LEADS_B(j) -> nb[2*(j)] = cb[2*(j)] + 1; nb[2*(j)+1] = cb[2*(j)+1] + 1
	:: else -> skip
	fi;
	t = 0;
	forget_b(j)
}

/* ---- rank a ---- */

inline take_a(i, j)
{
	ba[2*(j)+(i)]?t,n,v;
	if
	:: t == MARK -> /* b_j announces the copy */
		coming[i] = true;
		ca[3*(i)+2] = ca[3*(i)+(j)];
		answer[i] = true;
		if :: BREAK == 8 -> keeps[i] = true :: BREAK != 8 -> skip fi
	:: t == NOT -> coming[i] = false; answer[i] = false; forget_a(i)
	:: t == DATA && n <= ha[i] -> skip
	:: t == DATA && n == ha[i] + 1 ->
		ha[i] = n;
		assert(!fixed[n] || said[n] == v);
		fixed[n] = true; said[n] = v
	:: t == DATA && n > ha[i] + 1 -> assert(false)
	fi;
	t = 0; n = 0; v = 0
}

#define SEND_A(j) \
	:: d_step { LIVES(i) && LEADS_A(i) && !KNOWS(i, B+j) && na[3*i+j] <= pa[i] && nfull(ab[3*i+j]) -> \
		if :: na[3*i+j] <= ca[3*i+j] -> skip \
		   :: na[3*i+j] > ca[3*i+j] && !ka[3*i+na[3*i+j]] -> assert(hb[j] >= na[3*i+j]) \
		   :: na[3*i+j] > ca[3*i+j] && ka[3*i+na[3*i+j]] -> ab[3*i+j]!DATA,na[3*i+j] fi; \
		na[3*i+j] = na[3*i+j] + 1; forget_a(i) }
#define GET_A(j) :: d_step { LIVES(i) && nempty(ba[2*j+i]) -> take_a(i, j) }
/* It says what it has, sooner or later, to who keeps for it. */
#define TELL_A(j) \
	:: d_step { LIVES(i) && LIVES(B+j) && cb[2*j+i] < ha[i] && (!LEADS_B(j) || (coming[i] && announces[j])) -> \
		cb[2*j+i] = ha[i]; forget_b(j) }

proctype rank_a(bit i)
{
end_a:	do
	:: d_step { LIVES(i) && pa[i] < IN -> pa[i]++; ka[3*i+pa[i]] = true; forget_a(i) }
	SEND_A(0)
	SEND_A(1)
	SEND_A(2)
	GET_A(0)
	GET_A(1)
	GET_A(2)
	TELL_A(0)
	TELL_A(1)
	TELL_A(2)
	/* behind what it has sent */
	:: d_step { LIVES(i) && answer[i] && nfull(ab[3*i]) -> ab[3*i]!MARK,0; answer[i] = false }
	/* what the dead have left is read before */
	:: d_step { LIVES(i) && NEWS(i) && (!gone[B] || empty(ba[i])) && (!gone[B+1] || empty(ba[2+i])) &&
		    (!gone[B2] || empty(ba[4+i])) -> learn_a(i) }
	od
}

/* ---- rank b ---- */

inline take_b(i, j)
{
	ab[3*(i)+(j)]?t,n;
	if
	:: t == MARK -> keeps[i] = true
	:: t == DATA && n <= hb[j] -> skip
	:: t == DATA && n == hb[j] + 1 -> hb[j] = n
	:: t == DATA && n > hb[j] + 1 -> assert(false)
	fi;
	t = 0; n = 0
}

#define GET_B(i) :: d_step { LIVES(B+j) && nempty(ab[3*i+j]) -> take_b(i, j) }
#define TELL_B(i) \
	:: d_step { LIVES(B+j) && LIVES(i) && !LEADS_A(i) && ca[3*i+j] < hb[j] && !(j == 2 && coming[i]) -> \
		ca[3*i+j] = hb[j]; forget_a(i) }
/* What was decided is known to all that live, as this process knows. */
#define SAFE(j, m) (j != 0 || ((KNOWS(B, B+1) || heard[1] >= m) && (KNOWS(B, B2) || heard[2] >= m)))
#define SEND_B(i) \
	:: d_step { LIVES(B+j) && LEADS_B(j) && !KNOWS(B+j, i) && nb[2*j+i] <= pb[j] && SAFE(j, nb[2*j+i]) && \
		    nfull(ba[2*j+i]) -> \
		if :: nb[2*j+i] <= cb[2*j+i] -> skip \
		   :: nb[2*j+i] > cb[2*j+i] && !kb[3*j+nb[2*j+i]] -> assert(ha[i] >= nb[2*j+i]) \
		   :: nb[2*j+i] > cb[2*j+i] && kb[3*j+nb[2*j+i]] -> \
			ba[2*j+i]!DATA,nb[2*j+i],what[3*j+nb[2*j+i]] fi; \
		nb[2*j+i] = nb[2*j+i] + 1; forget_b(j) }

proctype rank_b(byte j)
{
	bit x;
end_b:	do
	/* the main decides, and its shadow hears of it */
	:: atomic { LIVES(B+j) && LEADS_B(j) && pb[j] < OUT && heard[j] == pb[j] ->
		if :: x = 0 :: x = 1 fi;
		d_step {
			what[3*j+pb[j]+1] = x;
			heard[j] = pb[j] + 1;
			if
			:: j == 0 && !KNOWS(B, B+1) -> what[3+pb[0]+1] = x; heard[1] = pb[0] + 1
			:: else -> skip
			fi;
			pb[j]++;
			kb[3*j+pb[j]] = true;
			forget_b(j);
			x = 0
		} }
	/* a follower replays it */
	:: d_step { LIVES(B+j) && pb[j] < OUT && heard[j] > pb[j] -> pb[j]++; kb[3*j+pb[j]] = true; forget_b(j) }
	/* the copy is told what was decided since its image */
	:: d_step { j == 0 && LIVES(B) && !KNOWS(B, B2) && LIVES(B2) && heard[2] < heard[0] && BREAK != 6 ->
		heard[2] = heard[2] + 1; what[6+heard[2]] = what[heard[2]] }
	:: d_step { j == 0 && LIVES(B) && !KNOWS(B, B2) && LIVES(B2) && heard[2] < heard[0] && BREAK == 6 ->
		heard[2] = heard[2] + 1 }
	SEND_B(0)
	SEND_B(1)
	GET_B(0)
	GET_B(1)
	TELL_B(0)
	TELL_B(1)
	:: d_step { LIVES(B+j) && NEWS(B+j) && (!gone[0] || empty(ab[j])) && (!gone[1] || empty(ab[3+j])) -> learn_b(j) }
	/* the source announces, hears who keeps, takes it back */
	:: d_step { j == 0 && LIVES(B) && jump == ASKED && !announces[0] && !tried ->
		tried = true; announces[0] = true; mark[0] = true; mark[1] = (BREAK != 9) }
	:: d_step { j == 0 && LIVES(B) && announces[0] && mark[0] && nfull(ba[0]) -> ba[0]!MARK,0,0; mark[0] = false }
	:: d_step { j == 0 && LIVES(B) && announces[0] && mark[1] && nfull(ba[1]) -> ba[1]!MARK,0,0; mark[1] = false }
	:: d_step { j == 0 && LIVES(B) && announces[0] && jump == ASKED &&
		    ((keeps[0] || KNOWS(B, 0)) && (keeps[1] || KNOWS(B, 1) || BREAK == 9) || BREAK == 1) -> jump = KEPT }
	:: d_step { j == 0 && LIVES(B) && cancelled ->
		announces[0] = false; cancelled = false;
		mark[0] = false; mark[1] = false; not[0] = (BREAK != 10); not[1] = (BREAK != 10);
		forget_b(0) }
	:: d_step { j == 0 && LIVES(B) && not[0] && (KNOWS(B, 0) || nfull(ba[0])) ->
		if :: nfull(ba[0]) -> ba[0]!NOT,0,0 :: full(ba[0]) -> skip fi; not[0] = false }
	:: d_step { j == 0 && LIVES(B) && not[1] && (KNOWS(B, 1) || nfull(ba[1])) ->
		if :: nfull(ba[1]) -> ba[1]!NOT,0,0 :: full(ba[1]) -> skip fi; not[1] = false }
	od
}

/* ---- the head ---- */

inline take_image()
{
	hb[2] = hb[0]; pb[2] = pb[0]; heard[2] = heard[0];
	kb[7] = kb[1]; kb[8] = kb[2]; what[7] = what[1]; what[8] = what[2];
	cb[4] = cb[0]; cb[5] = cb[1]; nb[4] = cb[0] + 1; nb[5] = cb[1] + 1;
	KNOWS(B2, 0) = KNOWS(B, 0); KNOWS(B2, 1) = KNOWS(B, 1); KNOWS(B2, 2) = false;
	KNOWS(B2, 3) = KNOWS(B, 3); KNOWS(B2, 4) = false
}
inline give_up()
{
	jump = IDLE;
	cancelled = !dead[B] && tried
}
inline lose_channels(p)
{
	if
	:: p < 2 -> lose_a(ab[3*(p)]); lose_a(ab[3*(p)+1]); lose_a(ab[3*(p)+2])
	:: p >= 2 -> lose_b(ba[2*((p)-2)]); lose_b(ba[2*((p)-2)+1])
	fi
}
/* all that is on its way, or nothing of it */
inline lose_a(c)
{
	do
	:: nempty(c) -> if :: c?_,_ :: break fi
	:: empty(c) -> break
	od;
	skip
}
inline lose_b(c)
{
	do
	:: nempty(c) -> if :: c?_,_,_ :: break fi
	:: empty(c) -> break
	od;
	skip
}

/* A jump that has not come to its end is given up, but for the loss of the old shadow behind the join. */
inline lost(p)
{
	gone[p] = true;
	if
	:: p == B2 -> if :: jump == DONE -> skip :: jump != DONE -> give_up() fi
	:: p == B && jump == JOINED && BREAK != 5 ->
		dead[B2] = true; gone[B2] = true; jump = IDLE
	:: p == B && jump == JOINED && BREAK == 5 -> jump = DONE; dead[B+1] = true; gone[B+1] = true
	:: (p == B || p < 2 || p == B+1) && (jump == ASKED || jump == KEPT || jump == WHOLE) -> give_up()
	:: else -> skip
	fi;
	over = over || (dead[0] && dead[1]) || (dead[2] && dead[3] && (dead[4] || gone[4]));
	assert(!over || losses > 1)
}

#define LOSE(p) :: !dead[p] && (p != B2 || jump == WHOLE || jump == JOINED || jump == DONE) -> \
	losses++; lose_channels(p); skip; \
	d_step { dead[p] = (p != B2 || jump != WHOLE); lost(p) }
#define ALL_IN(j) (!LIVES(B+j) || hb[j] == IN)
#define ALL_OUT(i) (!LIVES(i) || ha[i] == OUT)

proctype head()
{
	do
	:: d_step { !over && jump == IDLE && !tried && !dead[B] && !dead[B+1] && !dead[0] && !dead[1] -> jump = ASKED }
	:: d_step { !over && (jump == ASKED || jump == KEPT || jump == WHOLE) && tried -> give_up() }
	:: d_step { !over && jump == KEPT && !dead[B] -> take_image(); jump = WHOLE }
	:: d_step { !over && jump == WHOLE -> jump = JOINED; gone[B2] = false;
		if :: BREAK == 4 -> dead[B+1] = true; gone[B+1] = true :: BREAK != 4 -> skip fi }
	:: d_step { !over && jump == JOINED && !dead[B] && !KNOWS(B, B2) && heard[2] == heard[0] ->
		jump = DONE; dead[B+1] = true; gone[B+1] = true }
	:: timeout ->
		assert(over || (ALL_IN(0) && ALL_IN(1) && ALL_IN(2) && ALL_OUT(0) && ALL_OUT(1)));
		assert(over || (dead[0] || !coming[0]) && (dead[1] || !coming[1]));
		break
	od
}

proctype fate()
{
end_f:	do
	:: atomic { losses < LOSSES && !over ->
		if
		LOSE(0)
		LOSE(1)
		LOSE(2)
		LOSE(3)
		LOSE(4)
		fi }
	od
}

init
{
	FROM_ENVIRONMENT(IN)
	FROM_ENVIRONMENT(OUT)
	FROM_ENVIRONMENT(LOSSES)
	FROM_ENVIRONMENT(BREAK)
	atomic {
		na[0] = 1; na[1] = 1; na[2] = 1; na[3] = 1; na[4] = 1; na[5] = 1;
		nb[0] = 1; nb[1] = 1; nb[2] = 1; nb[3] = 1; nb[4] = 1; nb[5] = 1;
		gone[B2] = true;
		known[4] = true; known[9] = true; known[14] = true; known[19] = true; known[24] = true;
		run rank_a(0); run rank_a(1); run rank_b(0); run rank_b(1); run rank_b(2); run head(); run fate()
	}
}
