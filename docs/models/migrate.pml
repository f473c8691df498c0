/* The last round of a migration: source, sink, and who started them (the agent, with the head behind
 * it); see docs/migration.md.
 *
 * DIRECT 1: the stream is a socket between the two; 0: a relay, which can break (CUT) with all that is
 * in it. FAULTS times, at any moment: either process is killed, the relay breaks, or the sink finds
 * that it can't become the copy. Time-outs happen at any moment too: whoever may give up does.
 *
 * JOB 1: as `hale migrate` does it. The copy says HELLO when it is whole and committed, and runs after its
 * WELCOME only, which the head gives (GO) when all copies of the node have said so; up to then the head may
 * take it back at any moment (a rank of another node was killed, patience, another copy failed): it ends
 * the copies, hears that they are reaped, and lets the sources go on (ckpt_cancelled). From GO on nothing
 * is taken back: the copy is the rank, whether or not somebody hears its RUNS, and sources end by RUNS, or by
 * ckpt_moved when RUNS was lost, or because somebody kills them, which is all the same. A copy that dies is a
 * rank that dies, and all ranks are ended and go back (rolled_back). FILE 1 (with JOB 1): the source writes a file
 * and waits; the copy is started from the file when it is whole, and nothing is said between the two.
 *
 * Checked: never two at work; at the end one, unless the process that was the rank was killed; in a job
 * nobody waits in doubt for ever, and all ranks go back only if the source was killed before GO, or the copy: neither a relay that breaks nor a source that dies in doubt costs more than that. */
#ifndef DIRECT
#define DIRECT 0
#endif
#ifndef FAULTS
#define FAULTS 2
#endif
#ifndef BREAK
#define BREAK 0
#endif

#ifndef JOB
#define JOB 0
#endif
#ifndef FILE
#define FILE 0
#endif

mtype = { ROUND, LAST, COMMIT, WHOLE, RUNS, REFUSED, DEAD };
chan down = [3] of { mtype };
chan up = [4] of { mtype };

bool src_alive = true, src_works = true, src_waits, src_moved;
bool sink_alive = true, sink_works, sink_worked;
bool cut;		/* the relay is broken */
bool cancelled;		/* the agent's word to the source: the sink is dead */
bool src_killed;	/* by a fault, while it was the rank, or might have been */
bool copy_killed;	/* by a fault; that may be seen after GO only */
bool rolled_back;	/* all are ended, and go back to a checkpoint */
bool sink_closed;	/* what it has sent ends here */
bool whole;		/* the file is on the disk, and its source waits */
bool hello, welcome;	/* said by the copy, by the head: GO */
#define GONE welcome
bool moved;		/* ckpt_moved */
byte faults = FAULTS;

#define BOTH (src_works && sink_works)

inline say_down(m) {
	if :: !cut && sink_alive -> down ! m :: else -> skip fi
}

/* Nothing more will come up. */
#define UP_ENDS (empty(up) && (sink_closed || cut))
#define DOWN_ENDS (empty(down) && (!src_alive || src_moved || cut))

active proctype Source() {
	mtype m;
	atomic { if :: !src_alive -> goto dead :: else -> say_down(ROUND) fi };
#if FILE
	atomic { if :: !src_alive -> goto dead :: else -> src_works = false fi };
	if
	:: atomic { src_alive && faults > 0 -> faults--; goto stays }	/* the disk is full */
	:: atomic { !src_alive -> goto dead }
	:: atomic { src_alive -> whole = true; src_waits = true }
	fi;
#if BREAK == 8
	atomic { src_moved = true; src_alive = false; goto dead };
#endif
	do
	:: atomic { !src_alive -> goto dead }
	:: atomic { src_alive && cancelled -> goto stays }
	:: atomic { src_alive && moved -> src_moved = true; src_alive = false; goto dead }
	od;
#endif
	atomic { if :: !src_alive -> goto dead
		    :: else -> src_works = false; say_down(LAST) fi };	/* stopped */
	do
	:: atomic { !src_alive -> goto dead }
	:: atomic { src_alive && nempty(up) -> up ? m;
		if :: m == WHOLE -> break :: else -> goto stays fi }
	:: atomic { src_alive && UP_ENDS -> goto stays }
	:: atomic { src_alive && cancelled -> goto stays }
	:: atomic { src_alive -> goto stays }				/* time-out */
	od;
	atomic { if :: !src_alive -> goto dead :: else -> say_down(COMMIT); src_waits = true fi };
#if BREAK == 3
	atomic { src_moved = true; src_alive = false; goto dead };
#endif
	do
	:: atomic { !src_alive -> goto dead }
	:: atomic { src_alive && nempty(up) -> up ? m;
		if
		:: m == RUNS -> src_moved = true; src_alive = false; goto dead
		:: m == REFUSED || m == DEAD -> goto stays
		:: else -> assert(false)
		fi }
	:: atomic { src_alive && UP_ENDS && (DIRECT || BREAK == 1) -> goto stays }
	:: atomic { src_alive && cancelled -> goto stays }
#if BREAK != 10
	:: atomic { src_alive && moved -> src_moved = true; src_alive = false; goto dead }
#endif
#if BREAK == 5
	:: atomic { src_alive -> goto stays }
#endif
	od;
stays:	atomic { assert(!JOB || !src_alive || !sink_worked);	/* it would do again what the copy has done */
		 if :: src_alive -> src_works = true; src_waits = false; assert(!BOTH) :: else -> skip fi;
		 cut = true }		/* it closes its end */
dead:	skip
}

active proctype Sink() {
	mtype m;
#if FILE
	do
	:: atomic { !sink_alive -> goto dead }
	:: atomic { sink_alive && whole -> break }
	:: atomic { sink_alive && !whole && (src_works || !src_alive) -> goto gives_up }
	od;
	goto last_step;
#endif
	do
	:: atomic { !sink_alive -> goto dead }
	:: atomic { sink_alive && nempty(down) -> down ? m;
		if :: m == LAST -> break :: m == ROUND -> skip :: else -> assert(false) fi }
	:: atomic { sink_alive && DOWN_ENDS -> goto gives_up }
	od;
	atomic { if :: !sink_alive -> goto dead :: cut -> goto gives_up
		    :: else -> up ! WHOLE fi };
#if BREAK != 2
	do
	:: atomic { !sink_alive -> goto dead }
	:: atomic { sink_alive && nempty(down) -> down ? m; assert(m == COMMIT); break }
	:: atomic { sink_alive && DOWN_ENDS -> goto gives_up }
	od;
#endif
last_step:
	if
	:: atomic { faults > 0 && sink_alive -> faults--;	/* a file that can't be opened now */
		if :: !cut -> up ! REFUSED :: else -> skip fi; goto gives_up }
	:: atomic { else -> skip }
	:: skip
	fi;
#if JOB
	atomic { if :: !sink_alive -> goto dead :: else -> hello = true fi };
#if BREAK != 11
	do
	:: atomic { !sink_alive -> goto dead }
	:: atomic { sink_alive && welcome -> break }
	od;
#endif
#if FILE
	atomic { if :: !sink_alive -> goto dead
		    :: else -> sink_works = true; sink_worked = true; assert(!BOTH) fi };
	goto dead;
#endif
#endif
	atomic { if
		:: !sink_alive -> goto dead
		/* through a relay it ends when nobody hears it; directly that means a dead source, and
		 * in a job nobody needs to hear it */
		:: sink_alive && cut && !DIRECT && (!JOB || BREAK == 12) -> goto gives_up
		:: else -> if :: !cut -> up ! RUNS :: else -> skip fi;
			sink_works = true; sink_worked = true; sink_closed = true; assert(!BOTH)
		fi };
	goto dead;
gives_up: atomic { sink_alive = false };
dead:	atomic { sink_closed = true }
}

/* Who may be killed, and what may break. */
active proctype Faults() {
	do
	:: atomic { faults > 0 && src_alive -> faults--; src_killed = !(JOB && GONE);
		src_alive = false; src_works = false }
	:: atomic { faults > 0 && sink_alive && !sink_works -> faults--; sink_alive = false;
		sink_closed = true; copy_killed = true }
	:: atomic { faults > 0 && !DIRECT && !cut -> faults--; cut = true;
		do :: len(up) > 0 -> up ? _ :: len(up) == 0 -> break od;
		do :: len(down) > 0 -> down ? _ :: len(down) == 0 -> break od }
	:: break
	od
}

#if JOB
/* The head, and the agents through which it hears and acts. */
active proctype Agent() {
	bool gone;	/* GO was said */
end:	do
#if BREAK == 6
	:: atomic { hello && !moved -> moved = true }
#endif
	/* all copies are whole and committed */
	:: atomic { !gone && !cancelled && hello -> gone = true; welcome = true }
	/* whatever the reason: the copy's end is seen first, then the source goes on */
	:: atomic { !cancelled &&
#if BREAK != 7
		    !gone &&
#endif
		    (sink_alive || sink_closed) ->
#if BREAK != 9
		sink_alive = false; sink_works = false; sink_closed = true;
#endif
		cancelled = true; break }
#if BREAK != 6
	:: atomic { gone && !moved -> moved = true }
#endif
	/* a copy that has ended after GO: the rank is dead, all are ended, and go back */
	:: atomic { gone && !sink_alive && !sink_works -> src_alive = false; src_works = false;
		rolled_back = true; break }
	/* a rank that was killed before: the same */
	:: atomic { src_killed && !cancelled && !gone -> sink_alive = false; sink_works = false;
		sink_closed = true; rolled_back = true; break }
	/* its source has ended after GO, somehow: the copy is the rank */
	:: atomic { gone && !src_alive && sink_works -> break }
#if BREAK == 13
	:: atomic { gone && !src_alive && !src_moved -> sink_alive = false; sink_works = false;
		sink_closed = true; rolled_back = true; break }
#endif
	od
}
#else
/* Sees the sink's end, and is asked when a relay has left the source in doubt. */
active proctype Agent() {
	bool told;
end:	do
	:: atomic { !DIRECT && !sink_alive && !cut && !sink_worked && src_waits && empty(up) && !told ->
		up ! DEAD; told = true }	/* it may be lost with the relay: not the last word */
	:: atomic { !DIRECT && !sink_alive && cut && !sink_worked && src_waits -> cancelled = true; break }
	/* in doubt: it ends one of the two, and makes sure */
	:: atomic { !DIRECT && src_alive && src_waits && cut && sink_alive ->
		if
#if BREAK == 4
		:: cancelled = true
#else
		:: sink_alive = false; sink_works = false; sink_closed = true; cancelled = true
#endif
		:: sink_works -> src_alive = false; src_moved = true
		fi; break }
	:: atomic { !src_waits && (src_works || !src_alive) && (sink_works || !sink_alive) -> break }
	od
}
#endif

/* When nothing moves any more. */
active proctype End() {
	atomic { timeout ->
		assert(!BOTH);
		assert(src_works || sink_works || src_killed || (copy_killed && rolled_back));
		assert(!rolled_back || src_killed || copy_killed);
		assert(!JOB || !src_alive || src_works) }
}
