/* Threads of one process that sleep on its bell and on descriptors, and those that ring.
 * Words: docs/network-channel.md, "A byte wakes one thread". Checked exhaustively by tests/spin_bell.sh.
 *
 * Each of THREADS threads waits for MESSAGES messages of its own and leaves. The first of them come
 * through memory, from a neighbour that rings; the others by a descriptor. Whichever thread makes
 * progress takes in all that has come. One thread at a time is inside the library, but nobody is
 * while he sleeps. No sleep has a limit here, so a lost bell is an end state that is none.
 *
 * Checked: all threads end; whoever sleeps without having been rung can be rung.
 */
#ifndef THREADS
#define THREADS 3
#endif
#ifndef MESSAGES
#define MESSAGES 2
#endif
/* Deliberate mistakes, to see that the model notices (all but 2, 5 and 6, which need more threads or
 * messages than could be checked):
 * 1 nobody makes another thread look at the descriptors, 2 only who was there does,
 * 3 the word does not change then, 4 whoever rings clears `asleep` after it has rung,
 * 5 a thread that leaves a sleep does not say that others sleep on, 6 it does not look once more
 * then, 7 all sleep on descriptors, 8 who takes in what others wait for does not ring, 9 a thread
 * looks at the word before it is the one at the descriptors */
#ifndef BREAK
#define BREAK 0
#endif

byte memory[THREADS], wire[THREADS]; /* on their way */
byte has[THREADS];
bool guard;
byte sleepers, inside;
bool asleep, watching, datagram;
bool rung[THREADS];  /* the word is no more what that thread has seen */
bool waits[THREADS]; /* on the word */

#define IN_WIRE (wire[0] + wire[1] + (THREADS > 2 -> wire[THREADS - 1] : 0) > 0)

inline wake_all()
{
	d_step {
		j = 0;
		do :: j < THREADS -> waits[j] = false; j++ :: else -> break od;
		j = 0
	}
}

/* The futex call wakes whichever it likes. */
inline wake_one()
{
	if
	:: atomic { waits[0] -> waits[0] = false }
	:: atomic { waits[1] -> waits[1] = false }
	:: atomic { waits[THREADS - 1] -> waits[THREADS - 1] = false }
	:: atomic { !waits[0] && !waits[1] && !waits[THREADS - 1] -> skip }
	fi
}

inline word_change()
{
	d_step {
		j = 0;
		do :: j < THREADS -> rung[j] = true; j++ :: else -> break od;
		j = 0
	}
}

inline ring()
{
	word_change();
	wake_all();
	datagram = true
}

inline ring_sleeper()
{
	if
	:: asleep ->
		if
		:: BREAK == 4 -> ring(); asleep = false
		:: BREAK != 4 ->
			atomic { rang = asleep; asleep = false }
			if :: rang -> ring() :: else fi
		fi
	:: else
	fi
}

inline progress()
{
	d_step {
		moved = false; j = 0;
		do
		:: j < THREADS ->
			moved = moved || memory[j] || wire[j];
			has[j] = has[j] + memory[j] + wire[j];
			memory[j] = 0; wire[j] = 0; j++
		:: else -> break
		od;
		j = 0
	}
	if :: BREAK != 8 && moved && sleepers > 0 -> ring() :: else fi
}

proctype Thread(byte i)
{
	byte j, before;
	bool moved, busy, stale;

	do
	:: has[i] == MESSAGES -> break
	:: else ->
		atomic { !guard -> guard = true }
		progress();
		if
		:: moved || has[i] == MESSAGES -> guard = false
		:: else ->
			rung[i] = false;
			asleep = true;
			sleepers++;
			progress();
			if
			:: moved || has[i] == MESSAGES
			:: else ->
				guard = false;
				/* bell_sleep */
				inside++;
				stale = rung[i];
				atomic { busy = watching && BREAK != 7; watching = true }
				if
				:: busy ->
					atomic {
						if :: !rung[i] -> waits[i] = true :: else fi
					}
					!waits[i]
				:: else ->
					if
					:: (BREAK != 9 && rung[i]) || (BREAK == 9 && stale)
					:: else -> datagram || IN_WIRE; datagram = false
					fi;
					watching = false
				fi;
				stale = false;
				atomic { before = inside; inside-- }
				if
				:: BREAK == 1 || before == 1 || watching
				:: BREAK == 2 && busy && before != 1 && !watching
				:: BREAK != 1 && !(BREAK == 2 && busy) && before != 1 && !watching ->
					if :: BREAK != 3 -> word_change() :: else fi;
					wake_one()
				fi;
				busy = false;
				atomic { !guard -> guard = true }
			fi;
			sleepers--;
			if
			:: sleepers == 0 -> asleep = false
			:: sleepers > 0 && BREAK != 5 && !asleep ->
				asleep = true;
				if :: BREAK != 6 -> progress() :: else fi
			:: else
			fi;
			guard = false
		fi
	od
}

active proctype Neighbour()
{
	byte k, n, j;
	bool rang;

	do
	:: n < (MESSAGES + 1) / 2 ->
		k = 0;
		do
		:: k < THREADS ->
			memory[k]++;
			ring_sleeper();
			k++
		:: else -> break
		od;
		n++
	:: else -> break
	od
}

active proctype Network()
{
	byte k, n;

	n = (MESSAGES + 1) / 2;
	do
	:: n < MESSAGES ->
		k = 0;
		do :: k < THREADS -> wire[k]++; k++ :: else -> break od;
		n++
	:: else -> break
	od
}

init
{
	byte i;

	atomic { do :: i < THREADS -> run Thread(i); i++ :: else -> break od }
}
