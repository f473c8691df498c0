/* Two ranks connect to each other, perhaps at once, over connections that may be lost.
 * Words: docs/network-channel.md, "Who is let in". Checked exhaustively by tests/spin_network.sh.
 *
 * An attempt has two ends, the caller's and the called one's. Its proof may be read after the caller
 * has closed its end, which the called one can see; otherwise it gives the verdict. Rank 0 is the
 * lower one.
 *
 * Checked: in the end both ranks have the same connection and both its ends are open; ends that
 * nobody knows are closed; and a bounded number of attempts is enough, so they don't go on refusing
 * each other. Assumed: a refused caller waits until the other's attempt is over (CROSSED_NS is
 * longer than a handshake), and an end that is closed is seen by the other side at once. If it is
 * seen later the same may happen once more, at another moment.
 */
#ifndef LOSSES
#define LOSSES 1
#endif
#define ATTEMPTS 8
/* Deliberate mistakes: 1 both attempts of two that cross are refused, 2 a caller's new connection
 * doesn't take the place of one that the other side takes for sound, 3 nobody looks whether the
 * caller is still there */
#ifndef BREAK
#define BREAK 0
#endif

#define NONE ATTEMPTS

byte caller[ATTEMPTS];	 /* who calls */
bool call_end[ATTEMPTS], called_end[ATTEMPTS];
bool proof[ATTEMPTS];	 /* on its way to the called one */
byte verdict[ATTEMPTS];	 /* 1 welcome, 2 crossed; on its way to the caller */
byte made, losses;
byte conn[2] = NONE, dial[2] = NONE;
bool crossed[2]; /* refused: waits for the other's */

#define OTHER_END(i, k) (caller[k] == i && !called_end[k] || caller[k] != i && !call_end[k])
#define AGREED                                                                                  \
	(conn[0] == conn[1] && conn[0] != NONE && call_end[conn[0]] && called_end[conn[0]])

inline close_end(i, k)
{
	if
	:: caller[k] == i -> call_end[k] = false
	:: else -> called_end[k] = false
	fi
}

inline install(i, k)
{
	if :: conn[i] != NONE -> close_end(i, conn[i]) :: else -> skip fi;
	conn[i] = k; crossed[i] = false
}

/* Rank i reads the proof of the other's attempt k. */
inline judge(i, k)
{
	proof[k] = false;
	if
	:: !call_end[k] && BREAK != 3 -> called_end[k] = false
	:: call_end[k] || BREAK == 3 ->
	if
	:: (BREAK == 2 && conn[i] != NONE) ||
	   (dial[i] != NONE && (i == 0 || BREAK == 1)) ->
		verdict[k] = 2; called_end[k] = false
	:: else ->
		verdict[k] = 1;
		if
		:: dial[i] != NONE -> close_end(i, dial[i]); dial[i] = NONE
		:: else -> skip
		fi;
		install(i, k)
	fi
	fi
}

#define JUDGE(n)                                                                                \
	:: atomic { n < made && caller[n] != i && proof[n] && called_end[n] ->                  \
		k = n; judge(i, k); k = 0 }

inline lose(i)
{
	close_end(i, conn[i]); conn[i] = NONE
}

proctype Rank(byte i)
{
	byte k;
	do
	:: atomic { conn[i] == NONE && dial[i] == NONE && !crossed[i] && made < ATTEMPTS ->
		caller[made] = i; call_end[made] = true; called_end[made] = true;
		proof[made] = true; dial[i] = made; made++ }
	JUDGE(0) JUDGE(1) JUDGE(2) JUDGE(3) JUDGE(4) JUDGE(5) JUDGE(6) JUDGE(7)
	:: atomic { dial[i] != NONE && verdict[dial[i]] == 1 ->
		k = dial[i]; dial[i] = NONE; install(i, k); k = 0 }
	:: atomic { dial[i] != NONE && verdict[dial[i]] == 2 ->
		close_end(i, dial[i]); dial[i] = NONE; crossed[i] = (conn[i] == NONE) }
	/* closed by the other side */
	:: atomic { dial[i] != NONE && verdict[dial[i]] == 0 && !called_end[dial[i]] ->
		close_end(i, dial[i]); dial[i] = NONE }
	:: atomic { conn[i] != NONE && OTHER_END(i, conn[i]) -> lose(i) }
	/* broken, as only this side has noticed */
	:: atomic { conn[i] != NONE && losses < LOSSES -> losses++; lose(i) }
	:: atomic { crossed[i] && dial[1 - i] == NONE -> crossed[i] = false }
	/* all is said */
	:: atomic { AGREED && dial[0] == NONE && dial[1] == NONE && losses == LOSSES ->
		byte n;
		for (n : 0 .. ATTEMPTS - 1) {
			if
			:: n < made && proof[n] && called_end[n] -> break
			:: n < made && n != conn[i] && !(proof[n] && called_end[n]) ->
				assert(!call_end[n] && !called_end[n])
			:: else -> skip
			fi
		}
		if :: n == ATTEMPTS -> break :: else -> n = 0 fi }
	od
}

init { atomic { run Rank(0); run Rank(1) } }
