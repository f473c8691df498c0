/* One head of a job follows another (docs/attach.md, src/head/failover/takeover.c): do two of them ever have a
 * rank at work in two places? Checked exhaustively by tests/spin_head.sh.
 *
 * Two nodes, A and B, each with an agent; rank X is on B at first, and is started on A when B is
 * taken for lost. Each head may be killed, and may stand still for as long as it likes, between any
 * two of its steps. The folder decides who the newest is: an epoch is taken by making its file,
 * which only one can; `placed[e]` is what that file says of X. Messages to and from B may be lost
 * (the cable is cut, and healed); that to A none is, is the worse case: a head that speaks with one
 * node and not with the other.
 *
 * Time goes in ticks. B may run X for T ticks from its ask; the head that answers has looked into
 * the folder after the ask came. A head takes B for lost when T + 1 ticks are over since its last
 * grant; one that takes over grants and commands nothing until both agents have answered or T + 1
 * ticks are over since it took its epoch. Then who has not answered counts as lost.
 *
 * Invariant, at every step: X is at work at one place at most.
 */
#ifndef T
#define T 2
#endif
/* Deliberate mistakes, to see that the model notices: 1 agents hear older heads, too; 2 a grant does
 * not look into the folder; 3 nobody waits for the old head's leases; 4 ranks run on without a lease;
 * 5 leases are granted before it has settled; 6 what an older layout has left is not ended before
 * leases are granted */
#ifndef BREAK
#define BREAK 0
#endif
#ifndef HEADS
#define HEADS 3
#endif

#define NONE 255

byte folder = 1;	       /* the newest epoch */
byte hears_a = 1, hears_b = 1; /* the epoch that each agent hears */
bool x_at_b = true, x_at_a;    /* X is at work there */
bool b_over;		       /* B's X was ended for good */
byte lease_b = T;	       /* ticks that B may still run X */
byte asked = NONE;	       /* ticks since B's newest ask; NONE: of no use any more */
byte looked[HEADS + 1] = NONE; /* an ask of that age is in hand, and the folder was looked into */
byte since[HEADS + 1];	       /* ticks since its last grant, or since it took its epoch */
bool placed[HEADS + 1];	       /* as this head has written down: X is on A */

inline later(v)
{
	if
	:: v <= T -> v++
	:: else
	fi
}

inline older(v)
{
	if
	:: v != NONE && v < T -> v++
	:: else -> v = NONE
	fi
}

active proctype clock()
{
	byte h;
end:	do
	:: d_step {
		if
		:: lease_b > 0 -> lease_b--
		:: else
		fi;
		/* it stands still, or is ended by the supervisor */
		if
		:: lease_b == 0 && BREAK != 4 -> x_at_b = false
		:: else
		fi;
		older(asked);
		h = 1;
		do
		:: h <= HEADS -> older(looked[h]); later(since[h]); h++
		:: else -> break
		od;
		h = 0
	   }
	od
}

active proctype agent_b()
{
end:	do
	:: atomic { asked == NONE -> asked = 0 }
	od
}

proctype head(byte me)
{
	byte mine;    /* its epoch */
	bool a, b;    /* they have answered */
	bool ready;   /* it has settled */
	bool b_lost;

	if
	:: me == 1 -> mine = 1; ready = true; a = true; b = true
	:: me != 1 ->
		/* what the newest head has written down is read before its follower's epoch is taken,
		 * and may have changed in between */
end:		atomic { folder == me - 1 -> b_lost = placed[me - 1] };
		atomic { folder = me; mine = me; since[me] = 0; placed[me] = b_lost }
	fi;
	do
	:: break /* it is killed, or does nothing any more */
	:: atomic { !ready && !a ->
		if
		:: mine > hears_a || BREAK == 1 -> hears_a = mine; a = true
		:: else -> break
		fi }
	:: atomic { !ready && !b && !b_lost ->
		if
		:: mine > hears_b || BREAK == 1 -> hears_b = mine; b = true; asked = NONE
		:: else -> break
		fi }
	:: atomic { !ready && a && (b || b_lost || BREAK == 3 || since[me] > T) ->
		if
		:: folder != mine -> break
		:: else ->
			ready = true;
			if
			/* A's layout is newer than what was written down when it was read */
			:: x_at_a && b && BREAK != 6 -> b_over = true; x_at_b = false
			:: else
			fi;
			if
			:: !b && !b_lost -> goto layout
			:: else
			fi
		fi }
	:: atomic { (ready || BREAK == 5) && b && asked != NONE && looked[me] == NONE ->
		if
		:: folder != mine && BREAK != 2 -> break
		:: else -> looked[me] = asked
		fi }
	:: atomic { looked[me] != NONE ->
		if
		:: hears_b == mine || BREAK == 1 ->
			if
			:: looked[me] < T && T - looked[me] > lease_b ->
				lease_b = T - looked[me];
				x_at_b = !b_over
			:: else
			fi
		:: true /* it is lost */
		fi;
		since[me] = 0;
		looked[me] = NONE }
	:: atomic { ready && b && !b_lost && since[me] > T ->
		if
		:: folder != mine && BREAK != 2 -> break
		:: else -> goto layout
		fi }
	od;
	goto over;
layout:	/* B is lost: it is granted nothing any more; X goes to A, which is written down first */
	atomic { b_lost = true; b = false; looked[me] = NONE; placed[me] = true };
	atomic {
		if
		:: hears_a == mine || BREAK == 1 -> x_at_a = true
		:: else
		fi
	};
over:	skip
}

init {
	byte h = 1;
	atomic {
		do
		:: h <= HEADS -> run head(h); h++
		:: else -> break
		od
	}
}

active proctype check()
{
end:	do
	:: atomic { x_at_a && x_at_b -> assert(false) }
	od
}
