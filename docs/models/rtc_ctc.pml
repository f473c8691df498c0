/* Shared cells of collectives through checkpoints and restores; see docs/collectives.md.
 *
 * N members call the same OPS operations, each drawn to be full (everybody gives, the last one in
 * combines) or from a root that runs ahead. Cells have D headers, so that they are reused. At any
 * moment a checkpoint may be asked for, ROUNDS times. A member stops at safe points only: between
 * operations and in waiting loops. After each checkpoint the job goes on, or it is restored: the
 * segment is zero and the members come back one by one, each as soon as it can.
 *
 * Who needs a header again waits for one member after the other, then reads all their words and learns
 * how far all are: it doesn't wait again up to there. So who is restored writes all of them: for their
 * readers they never go back.
 *
 * Checked: whoever reads a deposit or a result reads that of its operation; nobody comes last
 * before all have come; nobody waits for ever (end states).
 *
 * ONLY: all operations are of that kind, for more members than all kinds allow.
 *
 * BREAK 1: the leader restores the number of arrivals instead of each waiting member arriving again.
 * BREAK 2: a member that waits looks at the new segment to see whether its operation had completed.
 * BREAK 3: a deposit is not restored. BREAK 4: each writes only its own progress again; what the others'
 * say is zero until they are back, and a byte that is counted down then holds the largest number. All
 * four must be found wrong. */
#ifndef N
#define N 3
#endif
#ifndef OPS
#define OPS 3
#endif
#ifndef ROUNDS
#define ROUNDS 1
#endif
#ifndef BREAK
#define BREAK 0
#endif
#ifndef D
#define D 2
#endif
#define H(member, op) ((member) * D + (op) % D)
#define RESULT 16
#define FULL N

/* the segment: zero after a restore */
byte progress[N];	 /* operations done, + 1 */
byte seq[N * D];	 /* headers */
byte load[N * D];	 /* payloads: the operation, + RESULT when it is a result */
byte arrivals, completed, last, result;

/* not the segment */
byte kind[OPS + 1];	 /* FULL, or the root */
bool apart;		 /* results lie in the last one's cell, not beside the leader's word */
byte wanted, stopped, saved, decided;
bool restored, over;
byte finished;

/* what members saved: private memory, in their images */
byte s_seq[N * D], s_load[N * D], s_completed[N], s_last, s_result, s_arrivals;
byte s_progress[N]; /* each has them all, which are the same */

inline least_progress(x) {
	x = progress[0];
	i = 1;
	do
	:: i < N -> if :: progress[i] < x -> x = progress[i] :: else fi; i++
	:: else -> break
	od;
	i = 0
}

/* All stand still between `stopped` and the decision, so saving is one step. */
inline checkpoint() {
	round = wanted;
	stopped++;
	stopped == N * round;
	d_step {
		least_progress(x);
		do
		:: i < N -> s_progress[i] = progress[i]; i++
		:: else -> break
		od;
		i = 0;
		s_completed[me] = completed;
		if :: me == 0 -> s_last = last; s_result = result; s_arrivals = arrivals :: else fi;
		do
		:: i < D ->
			s_seq[me * D + i] = (seq[me * D + i] >= x -> seq[me * D + i] : 0);
			s_load[me * D + i] = load[me * D + i];
			i++
		:: else -> break
		od;
		i = 0; x = 0;
		saved++
	}
	decided >= round;
	if
	:: restored ->
		epoch = true;
		do
		:: i < D ->
			if
			:: s_seq[me * D + i] != 0 && BREAK != 3 ->
				load[me * D + i] = s_load[me * D + i];
				seq[me * D + i] = s_seq[me * D + i]
			:: else
			fi;
			i++
		:: else -> break
		od;
		i = 0;
		if
		:: me == 0 ->
			result = s_result;
			d_step {
				last = s_last; completed = s_completed[0];
				if :: BREAK == 1 -> arrivals = s_arrivals :: else fi
			}
		:: else
		fi;
		if
		:: BREAK == 4 -> progress[me] = done + 1
		:: else ->
			do
			:: d_step { i < N -> progress[i] = (progress[i] < s_progress[i] -> s_progress[i] : progress[i]); i++ }
			:: else -> break
			od;
			i = 0
		fi
	:: else
	fi
}

/* In a waiting loop, and between operations. */
#define ASKED (wanted > round)

inline wait_for(condition) {
	do
	:: atomic { (condition) -> break }
	:: ASKED -> checkpoint()
	od
}

/* Until all are done with the operation that had the header before. */
inline reuse(op) {
	if
	:: known + D < op ->
		who = 0;
		do
		:: who < N -> wait_for(who == me || progress[who] + D > op); who++
		:: else -> break
		od;
		who = 0;
		atomic {
			least_progress(x);
			x = x - 1;
			if :: x > known -> known = x :: else fi;
			x = 0
		}
	:: else
	fi
}

/* All deposits of op at once, from then on without a safe point. */
inline deposit(op) {
	load[H(me, op)] = op;
	seq[H(me, op)] = op
}

inline combine(op) {
	i = 0;
	do
	:: i < N ->
		assert(seq[H(i, op)] == op && load[H(i, op)] == op);
		i++
	:: else -> break
	od;
	i = 0;
	if :: apart -> load[H(me, op)] = op + RESULT :: else -> result = op + RESULT fi;
	d_step { last = me; completed = op }
}

inline with_all(op) {
	reuse(op);
	deposit(op);
	do
	:: atomic { arrivals++; came = (arrivals == N) };
		assert(arrivals <= N);
		if
		:: came -> arrivals = 0; combine(op); break
		:: else
		fi;
		epoch = false;
		do
		:: atomic { completed >= op -> came = true; break }
		:: atomic { epoch && BREAK == 0 ->
			epoch = false;
			if :: s_completed[me] >= op :: else -> came = false; break fi }
		:: atomic { epoch && BREAK == 2 -> epoch = false; came = false; break }
		:: ASKED -> checkpoint()
		od;
		if :: came -> break :: else fi
	od;
	if
	:: apart ->
		who = last;
		wait_for(seq[H(who, op)] >= op);
		assert(seq[H(who, op)] == op && load[H(who, op)] == op + RESULT);
		who = 0
	:: else -> assert(result == op + RESULT)
	fi;
	if :: known < op - 1 -> known = op - 1 :: else fi
}

inline from_root(op) {
	if
	:: kind[op] == me -> reuse(op); deposit(op)
	:: else ->
		wait_for(seq[H(kind[op], op)] >= op);
		assert(seq[H(kind[op], op)] == op && load[H(kind[op], op)] == op)
	fi
}

proctype Member(byte me) {
	byte op = 1, done, known, round, i, x, who;
	bool came, epoch;

	do
	:: op > OPS -> break
	:: op <= OPS && ASKED -> checkpoint()
	:: op <= OPS ->
		if
		:: kind[op] == FULL -> with_all(op)
		:: else -> from_root(op)
		fi;
		done = op;
		progress[me] = done + 1;
		op++
	od;
	finished++;
	/* ranks take part in checkpoints until the job ends */
	do
	:: ASKED -> checkpoint()
	:: over && !ASKED -> break
	od
}

init {
	byte turn = 1, i;
	i = 1;
	do
	:: i <= OPS ->
#ifdef ONLY
		kind[i] = ONLY;
#else
		if
		:: kind[i] = FULL
		:: kind[i] = 0
		:: kind[i] = 1
		fi;
#endif
		i++
	:: else -> break
	od;
	if :: apart = true :: apart = false fi;
	atomic { i = 0; do :: i < N -> progress[i] = 1; run Member(i); i++ :: else -> break od }
	do
	:: turn <= ROUNDS ->
		wanted = turn;
		saved == N * turn;
		atomic {
			if
			:: restored = false
			:: restored = true ->
				i = 0;
				do :: i < N -> progress[i] = 0; i++ :: else -> break od;
				i = 0;
				do :: i < N * D -> seq[i] = 0; load[i] = 0; i++ :: else -> break od;
				arrivals = 0; completed = 0; last = 0; result = 0
			fi
		}
		decided = turn;
		turn++
	:: finished == N -> break
	od;
	over = true
}
