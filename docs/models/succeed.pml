/* A head is lost while ranks change their node, and another one goes on (docs/attach.md, 'What the new
 * head finds'; src/head/migration/migrate_follow.c): is the move brought to its end, or taken back, by all
 * alike, wherever the head was? Checked exhaustively by tests/spin_succeed.sh.
 *
 * Rank X moves from node S to node T, rank Y stays on node O and stands still meanwhile. The copy of X is
 * whole and waits for its WELCOME, the source and Y have stopped: all that is left to be said is GO and
 * RELEASE, or CANCEL and OVER. What a head says to a node comes in order, and what has not come when the
 * node hears another head is lost. Each head writes down NOTHING, GO, RELEASE, END, in a file of its own. It
 * may be lost between any two of its steps, or live on while another one takes over. The last one is not lost.
 * The source ends, or is killed, once GO is written down; T may be cut off when a head takes over, for good.
 *
 * Invariants: X is at work at one place at most, and what has been at work is not undone; the copy's output
 * is taken only when all of the source's is, and Y goes on when the source has ended. At the end X and Y run,
 * or all have gone back to a checkpoint, which they do only if T was lost, or if a head has written down more
 * than its successor had read.
 */
#ifndef HEADS
#define HEADS 3
#endif
/* Deliberate mistakes, to see that the model notices: 1 GO is told before it is written down, 2 a new head
 * takes back what is written down as GO if S has not heard it, 3 GO is not told again, 4 RELEASE is not told
 * again, 5 a new head that finds GO says RELEASE without waiting for the source's end, 6 it waits for Y, which
 * has said to the head before that it goes on, 7 the end of the source isn't told again, 8 what the head before
 * has written down since it was read is not looked at, 9 a node that has heard a newer head hears the one
 * before, 10 nor is that of the head before one that was lost before it had settled */
#ifndef BREAK
#define BREAK 0
#endif

#define NODES 3
#define S 0
#define T 1
#define O 2

mtype = { NOTHING, GO, RELEASE, END, CANCEL, OVER };
byte folder = 1;	    /* the newest epoch */
mtype written[HEADS + 1];   /* by each head */
bool settled[HEADS + 1];    /* … since it has heard the nodes */
byte hears[NODES] = 1;	    /* the epoch that each node hears */
bool t_lost;

chan words[NODES * (HEADS + 1)] = [5] of { mtype };
#define WORDS(n, e) words[(n) * (HEADS + 1) + (e)]

bool went[NODES], released[NODES];
bool source = true, source_works; /* its process is there; it works */
bool copy = true, copy_works, copy_worked;
bool y_works;
bool output_left = true; /* of the source, that no head has taken */
bool back;
bool told_end[HEADS + 1];	/* that head knows that the source has ended */
bool told_y[HEADS + 1];		/* … that Y goes on */
bool told_cancelled[HEADS + 1]; /* … that there is no copy */

inline tell(n, w)
{
	atomic {
		if
		:: (hears[n] == me || BREAK == 9) && !(n == T && t_lost) -> WORDS(n, me) ! w
		:: else
		fi
	}
}

inline tell_all(w)
{
	tell(S, w);
	tell(T, w);
	tell(O, w)
}

inline obey(n, w)
{
	if
	:: w == GO ->
		went[n] = true;
		if
		:: n == T && copy -> assert(!source_works); copy_works = true; copy_worked = true
		:: else
		fi
	:: w == RELEASE ->
		assert(went[n]);
		released[n] = true;
		if
		:: n == T -> assert(!output_left)
		:: n == O -> assert(!source); y_works = true; told_y[hears[n]] = true
		:: else
		fi
	:: w == CANCEL ->
		if
		:: n == T -> assert(!copy_worked); copy = false; told_cancelled[hears[n]] = true
		:: else
		fi
	:: w == OVER ->
		if
		:: n == S -> assert(!copy_worked); source_works = source
		:: n == O -> y_works = true
		:: else
		fi
	fi;
	w = 0
}

proctype agent(byte n)
{
	mtype w;
	byte e;

end:	do
	:: atomic { !back && nempty(WORDS(n, hears[n])) -> WORDS(n, hears[n]) ? w; obey(n, w) }
	:: atomic { BREAK == 9 && !back && hears[n] > 1 && nempty(WORDS(n, hears[n] - 1)) ->
		WORDS(n, hears[n] - 1) ? w; obey(n, w) }
	od
}

/* ckpt_moved, RUNS, or somebody kills it: it ends, and its agent says so behind the last of its output. */
active proctype ends()
{
end:	atomic { !back && source && !source_works &&
		 (went[S] || went[T] || went[O] || written[folder] == GO) ->
		source = false; told_end[hears[S]] = true; output_left = false }
}

proctype head(byte me)
{
	mtype found = NOTHING;
	bool stale;
	byte k;

	if
	:: me == 1 -> goto first
	:: else
	fi;
	/* what is written down is read, then the epoch is taken */
	atomic { folder == me - 1 -> found = written[me - 1] };
	atomic { folder = me; written[me] = found };
	/* each node says what it has heard, and hears nobody else from then on */
	if
	:: atomic { hears[S] < me -> hears[S] = me;
		if
		:: !source && BREAK != 7 -> told_end[me] = true
		:: else
		fi }
	:: atomic { hears[S] > me -> goto lost }
	fi;
	if
	:: atomic { hears[T] < me -> hears[T] = me }
	:: atomic { hears[T] > me -> goto lost }
	:: atomic { hears[T] < me -> t_lost = true; copy_works = false } /* its lease has run out */
	fi;
	if
	:: atomic { hears[O] < me -> hears[O] = me; told_y[me] = y_works && BREAK != 6 }
	:: atomic { hears[O] > me -> goto lost }
	fi;
	/* settled */
	if
	:: me != HEADS -> goto lost
	:: true
	fi;
	atomic {
		if
		:: back -> goto lost
		:: else
		fi;
		/* what a head that has not settled has written down is only what it had read */
		k = me - 1;
		do
		:: found != written[k] -> stale = true; break
		:: found == written[k] && (settled[k] || BREAK == 10) -> break
		:: else -> k--
		od;
		if
		:: stale && BREAK != 8 -> back = true; goto lost
		:: else
		fi;
		if
		:: found == NOTHING && (went[S] || went[T] && !t_lost || went[O]) ->
			assert(stale || BREAK == 8);
			back = true;
			goto lost
		:: else
		fi;
		if
		:: t_lost && found != NOTHING -> back = true; goto lost
		:: else
		fi
	};
	settled[me] = true;
	if
	:: found == NOTHING || (BREAK == 2 && found == GO && !went[S]) -> goto take_back
	:: else
	fi;
	if
	:: BREAK != 3 && !went[S] -> tell(S, GO)
	:: else
	fi;
	if
	:: BREAK != 3 && !went[T] -> tell(T, GO)
	:: else
	fi;
	if
	:: BREAK != 3 && !went[O] -> tell(O, GO)
	:: else
	fi;
	if
	:: found == GO && BREAK != 5 -> goto going
	:: found == GO && BREAK == 5 -> goto release
	:: found != GO && BREAK == 4 -> goto releasing
	:: else
	fi;
	if
	:: !released[S] -> tell(S, RELEASE)
	:: else
	fi;
	if
	:: !released[T] -> tell(T, RELEASE)
	:: else
	fi;
	if
	:: !released[O] -> tell(O, RELEASE)
	:: else
	fi;
	goto releasing;

first:	if
	:: goto take_back /* something has failed before */
	:: me != HEADS -> goto lost
	:: true
	fi;
	if
	:: BREAK == 1 -> tell_all(GO)
	:: else
	fi;
	if
	:: atomic { folder != me -> goto lost }
	:: atomic { folder == me }
	fi;
	written[me] = GO;
	if
	:: BREAK != 1 -> tell_all(GO)
	:: else
	fi;
going:	do
	:: atomic { told_end[me] -> break }
	:: me != HEADS -> goto lost
	:: atomic { back -> goto lost }
	od;
release:
	if
	:: atomic { folder != me -> goto lost }
	:: atomic { folder == me }
	fi;
	written[me] = RELEASE;
	tell_all(RELEASE);
releasing:
	do
	:: atomic { told_y[me] -> break }
	:: me != HEADS -> goto lost
	:: atomic { back -> goto lost }
	od;
	written[me] = END;
	goto lost;

take_back:
	tell_all(CANCEL);
	do
	:: atomic { told_cancelled[me] || t_lost -> break }
	:: me != HEADS -> goto lost
	:: atomic { back -> goto lost }
	od;
	tell_all(OVER);
lost:	skip
}

/* When nothing moves any more. */
active proctype final()
{
	atomic {
		timeout ->
		assert(back || t_lost ||
		       (y_works && ((source_works && !copy_works) || (copy_works && !source))))
	}
}

/* X is at work at one place. */
active proctype check()
{
end:	do
	:: atomic { source_works && copy_works -> assert(false) }
	od
}

init {
	byte n = 0;
	atomic {
		do
		:: n <= HEADS -> written[n] = NOTHING; n++
		:: else -> break
		od;
		settled[1] = true;
		n = 1;
		do
		:: n <= HEADS -> run head(n); n++
		:: else -> break
		od;
		run agent(S);
		run agent(T);
		run agent(O)
	}
}
