/* Which way a communicator's operations go while restarts part and bring together its members;
 * see docs/collectives.md ('A restart that lays ranks out otherwise'), src/coll/hier/join.c,
 * src/coll/cells/cells_mirror.c. Checked exhaustively by tests/spin_join.sh.
 *
 * N members call OPS barriers. Between nodes these are schedules of messages; inside a node members
 * deposit in cells, the lowest one waits for them, takes part in the schedule, and says so in its
 * cell. The first operation agrees on who lives where. RESTARTS times, at any moment, all members
 * stop and come back laid out anew, anyhow. Cells whose members are still together are restored
 * (rtc_ctc.pml has how: here it is one step), else each has mirrors, told by messages. All words
 * grow and are waited for, so news that is late is the same as a reader that is: it comes at once.
 *
 * Checked: all members do an operation by the same map; nobody ends a barrier before all have come;
 * nobody waits for ever (end states).
 *
 * BREAK 1: members agree anew before the first operation that they themselves have not begun.
 * BREAK 2: who has entered after a restart takes no part in its agreement.
 * BREAK 3: a map is taken that was seen partly before and partly after a restart.
 * BREAK 4: mirrors are told nothing after they were made. BREAK 5: a member leaves its mirrors
 * without having said that it is done. BREAK 6: where all have seen all, they needn't have looked after
 * the same restart. BREAK 7: each restores its own word only, and not how far the others were. All
 * seven must be found wrong. */
#ifndef N
#define N 3
#endif
#ifndef OPS
#define OPS 2
#endif
#ifndef RESTARTS
#define RESTARTS 1
#endif
#ifndef BREAK
#define BREAK 0
#endif
#define AT(r, m) ((r) * N + (m))
#define NONE 255
#define DONE(op) (2 * (op) + 1)
#define PROGRESS(word) ((word) && (word) % 2 == 0 -> (word) - 1 : (word)) /* without who has come */

/* who lives where after restart r: the lowest member on the node of member m */
byte place[(RESTARTS + 1) * N];
byte layout;

/* members' private memory */
byte calls[N];
bool entered[N], mirrored[N];
byte home[N];			    /* the restart by which its home was seen; NONE: it has none */
bool pending[(RESTARTS + 1) * N];   /* agreements not applied yet */
byte own[N];			    /* the word in its cell: 2 op: come to op; DONE(op) */
byte mirror[N * N];

byte shared[N];			    /* the segments' words */

/* agreements, as messages make them: known when all have said something */
byte joins[RESTARTS + 1], oldest[RESTARTS + 1], newest[RESTARTS + 1];
byte said[RESTARTS + 1], begun[RESTARTS + 1];
bool apart[RESTARTS + 1]; /* somebody has seen that not all live together */
byte came[OPS + 1], acting[OPS + 1], way[OPS + 1]; /* way: 1 + the restart of the map */

#define TOGETHER(a, b) (place[AT(home[a], a)] == place[AT(home[a], b)])
#define SEES(a, b) (mirrored[a] -> mirror[AT(a, b)] : shared[b])
#define LEADER(a) (place[AT(home[a], a)])
#define ALL_HERE(r) (place[AT(r, 1)] == 0 && place[AT(r, 2)] == 0)

inline say_calls(r, m) {
	pending[AT(r, m)] = true;
	said[r]++;
	if :: calls[m] > begun[r] -> begun[r] = calls[m] :: else fi
}

/* Its word, to the others of its home. */
inline tell(m, j) {
	j = 0;
	do
	:: j < N ->
		if
		:: j != m && TOGETHER(m, j) && mirrored[j] -> mirror[AT(j, m)] = own[m]
		:: else
		fi;
		j++
	:: else -> break
	od;
	j = 0
}

inline put(value) {
	own[me] = value;
	if :: mirrored[me] -> tell(me, j) :: else -> shared[me] = value fi
}

/* All others of my home have come so far, as I see it. */
#define REACHED(m, value) (m == me || !TOGETHER(me, m) || SEES(me, m) >= (value))
#define ALL_REACHED(value) (REACHED(0, value) && REACHED(1, value) && REACHED(2, value))

inline join() {
	if
	:: home[me] != NONE ->
		atomic { ALL_REACHED(DONE(calls[me] - 1)) -> home[me] = NONE; mirrored[me] = false; map = NONE }
	:: else
	fi;
	d_step {
		number = layout;
		home[me] = layout;
		again = entered[me];
		entered[me] = true;
		if :: joins[turn] == 0 || number < oldest[turn] -> oldest[turn] = number :: else fi;
		if :: number > newest[turn] -> newest[turn] = number :: else fi;
		if :: BREAK == 6 && !ALL_HERE(layout) -> apart[turn] = true :: else fi;
		joins[turn]++
	}
	atomic { joins[turn] == N ->
		if
		:: (oldest[turn] == newest[turn] || BREAK == 3 || BREAK == 6 && !apart[turn]) ->
			map = (BREAK == 6 -> newest[turn] : number);
			own[me] = DONE(calls[me] - 1);
			if :: mirrored[me] -> tell(me, j) :: else -> shared[me] = own[me] fi
		:: else -> home[me] = NONE; mirrored[me] = false; map = NONE
		fi;
		r = oldest[turn] + 1;
		do
		:: !again && r <= number && BREAK != 2 -> say_calls(r, me); r++
		:: else -> break
		od;
		r = 0;
		again = false;
		turn++
	}
}

/* Before an operation: agreements in their order. */
inline choose() {
	if :: turn == 0 -> join() :: else fi;
	do
	:: d_step {
		r = 1;
		do
		:: r <= RESTARTS && !pending[AT(r, me)] -> r++
		:: else -> break
		od }
		if
		:: r > RESTARTS -> r = 0; break
		:: else
		fi;
		number = r;
		said[number] == N || BREAK == 1;
		if
		:: BREAK != 1 && calls[me] <= begun[number] -> r = 0; break
		:: else -> pending[AT(number, me)] = false; join()
		fi
	od;
	number = 0
}

inline operation(op) {
	atomic {
		came[op]++;
		assert(way[op] == 0 || way[op] == (map == NONE -> 1 : map + 2));
		way[op] = (map == NONE -> 1 : map + 2)
	}
	if
	:: map == NONE -> came[op] == N
	:: map != NONE && LEADER(me) == me ->
		/* the schedule among leaders: each brings its node's members */
		atomic {
			ALL_REACHED(2 * op) ->
			do
			:: j < N ->
				if :: TOGETHER(me, j) -> acting[op]++ :: else fi;
				j++
			:: else -> break
			od;
			j = 0
		}
		atomic { acting[op] == N -> put(DONE(op)) }
	:: else ->
		d_step { put(2 * op) }
		atomic { SEES(me, LEADER(me)) >= DONE(op) ->
			own[me] = DONE(op);
			if
			:: mirrored[me] && BREAK != 5 -> tell(me, j)
			:: mirrored[me] && BREAK == 5
			:: else -> shared[me] = own[me]
			fi
		}
	fi;
	assert(came[op] == N)
}

proctype Member(byte me) {
	byte turn, number, map = NONE, r, j;
	bool again;
	do
	:: calls[me] < OPS ->
		calls[me]++;
		choose();
		operation(calls[me])
	:: else -> break
	od
}

/* News that has come; for who has no mirrors it is of operations that are over here. */
inline lay_out() {
	if
	:: place[AT(layout, 0)] = 0; place[AT(layout, 1)] = 0; place[AT(layout, 2)] = 0
	:: place[AT(layout, 0)] = 0; place[AT(layout, 1)] = 0; place[AT(layout, 2)] = 2
	:: place[AT(layout, 0)] = 0; place[AT(layout, 1)] = 1; place[AT(layout, 2)] = 1
	:: place[AT(layout, 0)] = 0; place[AT(layout, 1)] = 1; place[AT(layout, 2)] = 2
	fi
}

/* Still together? Then its cells are in the new segment. */
inline restore(m) {
	parted = false;
	j = 0;
	do
	:: j < N ->
		if
		:: TOGETHER(m, j) && place[AT(layout, j)] != place[AT(layout, m)] -> parted = true
		:: else
		fi;
		j++
	:: else -> break
	od;
	j = 0;
	if
	:: parted && !mirrored[m] ->
		mirrored[m] = true;
		do
		:: j < N -> mirror[AT(m, j)] = (BREAK == 7 -> 0 : PROGRESS(before[j])); j++
		:: else -> break
		od;
		j = 0;
		new[m] = true
	:: !mirrored[m] && !parted ->
		shared[m] = own[m];
		do
		:: j < N ->
			if
			:: BREAK != 7 && TOGETHER(m, j) && shared[j] < PROGRESS(before[j]) -> shared[j] = PROGRESS(before[j])
			:: else
			fi;
			j++
		:: else -> break
		od;
		j = 0
	:: else
	fi;
	parted = false
}

init {
	byte m, j;
	byte before[N]; /* the segments' words */
	bool parted, new[N];
	atomic {
		m = 0;
		do :: m < N -> home[m] = NONE; m++ :: else -> break od;
		lay_out();
		m = 0;
		do :: m < N -> run Member(m); m++ :: else -> break od;
		m = 0
	}
	do
	:: layout < RESTARTS ->
		atomic {
			layout++;
			lay_out();
			m = 0;
			do
			:: m < N -> before[m] = shared[m]; shared[m] = 0; m++
			:: else -> break
			od;
			m = 0;
			do
			:: m < N ->
				if :: home[m] != NONE -> restore(m) :: else fi;
				if :: entered[m] -> say_calls(layout, m) :: else fi;
				m++
			:: else -> break
			od;
			m = 0;
			do
			:: m < N ->
				if :: new[m] && BREAK != 4 -> tell(m, j) :: else fi;
				new[m] = false;
				before[m] = 0;
				m++
			:: else -> break
			od;
			m = 0
		}
	:: break
	od
}
