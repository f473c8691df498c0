/* Agreement on context ids; see src/mpi/comm/context.h.
 *
 * Process 0 makes communicators X and Y in two threads at once, process 1 too, or first X, then Y (MPI
 * allows both), process 2 has two threads, or takes part in X alone. Each process knows its free
 * ids, three in the eager half (bits 0 to 2) and three in the other; some are taken already, not the
 * same everywhere.
 *
 * Checked: an id is given only where it is free at all members, and no two live communicators of a
 * process share one; nobody waits for ever (end states); and under weak fairness nobody tries again for
 * ever (no cycle without progress).
 *
 * The last takes a second run: spin -a context.pml; cc -O2 -DNP -o pan pan.c; ./pan -l -f -m1000000
 *
 * BREAK 1: one mask for all rounds. BREAK 2: no order of keys. Both must be found wrong.
 * BREAK 3: ids are offered without owning them. Must be found wrong. */
#ifndef BREAK
#define BREAK 0
#endif
#define P 3
#define X 0
#define Y 1
#define NOBODY 9

byte free_ids[P];
byte owner[P * 2];	/* of the two halves; NOBODY */
byte round_of[P * 2];	/* of agreement a in process p at p * 2 + a: 0 none, 1 eager, 2 later */
byte members[2];	/* how many take part */
byte sum[2], came[2], turn[2], result[2];
byte given[P * 2];
byte done;

inline offer(p, a) {
	atomic {
		half = (BREAK == 1 -> 0 : (round_of[p * 2 + a] > 1 -> 1 : 0));
		own = owner[p * 2 + half] == NOBODY;
		/* past the eager round the lowest key goes first: X */
		if
		:: BREAK != 2 && a == Y && round_of[p * 2 + Y] == 2 && round_of[p * 2 + X] == 2 ->
			own = false
		:: else
		fi;
		if :: BREAK == 3 -> own = true :: else fi;
		mine = 0;
		if
		:: own ->
			if :: BREAK != 3 -> owner[p * 2 + half] = a :: else fi;
			mine = free_ids[p] & (BREAK == 1 -> 63 : (half == 0 -> 7 : 56))
		:: else
		fi;
		/* the reduction: the last one to come has the result */
		if :: came[a] == 0 -> sum[a] = mine :: else -> sum[a] = sum[a] & mine fi;
		came[a]++;
		my_turn = turn[a];
		if
		:: came[a] == members[a] -> result[a] = sum[a]; came[a] = 0; turn[a] = 1 - turn[a]
		:: else
		fi
	}
}

inline settle(p, a) {
	atomic {
		turn[a] != my_turn;
		if :: own && BREAK != 3 -> owner[p * 2 + half] = NOBODY :: else fi;
		/* the lowest one */
		if
		:: result[a] == 0 -> round_of[p * 2 + a] = 2
		:: else ->
			id = 1;
			do
			:: result[a] & id -> break
			:: else -> id = id * 2
			od
		fi;
		if
		:: id ->
			assert(free_ids[p] & id);
			free_ids[p] = free_ids[p] & (63 - id);
			given[p * 2 + a] = id;
			round_of[p * 2 + a] = 0
		:: else
		fi
	}
}

inline agree(p, a) {
	round_of[p * 2 + a] = 1;
	id = 0;
	do
	:: id -> break
	:: else -> offer(p, a); settle(p, a)
	od;
	done++
}

proctype one(byte p; byte a) {
	byte half, mine, id;
	bool own, my_turn;
	agree(p, a);
}

proctype first_x_then_y(byte p) {
	byte half, mine, id;
	bool own, my_turn;
	agree(p, X);
	agree(p, Y);
}

init {
	atomic {
		byte i = 0;
		do
		:: i < P * 2 -> owner[i] = NOBODY; i++
		:: else -> break
		od;
		/* of each half two are free everywhere */
		free_ids[0] = 63;
		if :: free_ids[1] = 63 :: free_ids[1] = 62 :: free_ids[1] = 54 fi;
		if :: free_ids[2] = 63 :: free_ids[2] = 55 fi;
		run one(0, X);
		run one(0, Y);
		if
		:: run first_x_then_y(1)
		:: run one(1, X); run one(1, Y)
		fi;
		members[X] = 3;
		if
		:: members[Y] = 3; run one(2, X); run one(2, Y)
		:: members[Y] = 2; run one(2, X)
		fi
	}
	done == members[X] + members[Y];
	assert(given[0] != given[1]);
	assert(given[2] != given[3]);
	assert(given[0] == given[2] && given[0] == given[4]);
	assert(given[1] == given[3]);
	assert(members[Y] == 2 || (given[1] == given[5] && given[4] != given[5]));
}
