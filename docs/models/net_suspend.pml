/* The net channel through checkpoints, given-up checkpoints, lost connections and a restart.
 * Words and invariants: docs/network-channel.md. Checked exhaustively by tests/spin_network.sh.
 *
 * Rank 0 sends M numbered records to rank 1, which acknowledges them. Both go over connections that
 * lose whatever is on its way when they end: by themselves (LOSSES times), or because a rank closes
 * its end for an image. Datagrams of one connection may overtake each other. The agent asks for
 * checkpoints 1 … ROUNDS, one after the other; each rank hears of it, and of its being given up, at
 * another time. Once, after a checkpoint that both have saved, it may restart the job.
 *
 * Checked: each record is taken once and in order, across restarts; the images of a checkpoint fit
 * together (what the sender's has dropped the receiver's has; what the receiver's has the sender's
 * has sent); nobody waits for ever; all records arrive in the end.
 */
#ifndef M
#define M 3
#endif
#ifndef WINDOW
#define WINDOW 2
#endif
#ifndef LOSSES
#define LOSSES 1
#endif
#ifndef ROUNDS
#define ROUNDS 2
#endif
/* Deliberate mistakes: 1 records are taken whatever their epoch, 2 the sender's image
 * doesn't hold what is kept, 3 nothing
 * is sent again over the next connection, 4 duplicates are taken, 5 who hears that a checkpoint was
 * given up stays in its epoch */
#ifndef BREAK
#define BREAK 0
#endif

#define CAP 3
chan record = [CAP] of { byte, byte }; /* number, epoch; on its way to rank 1 */
chan have = [CAP] of { byte, byte };   /* cursor, epoch; on its way to rank 0 */

/* rank 0: [freed, tail) is kept; next: what of it leaves next. rank 1: cursor */
byte freed, tail, next, cursor;
bool tell; /* rank 1 owes an acknowledgement */
byte taken_in_order;
/* of each rank */
byte epoch[2], round[2]; /* round: suspended for; 0: none */
bool saved[2];
byte image_freed, image_tail, image_cursor;
/* the agent; cancelled as each rank knows it */
byte wanted, given_up, known[2], counted, losses, restarts;
bool complete, over;

inline connections_end()
{
	d_step {
		do
		:: nempty(record) -> record ? n, e
		:: empty(record) -> break
		od;
		do
		:: nempty(have) -> have ? n, e
		:: empty(have) -> break
		od;
		if :: BREAK != 3 -> next = freed :: else -> skip fi;
		n = 0; e = 0
	}
}

/* Rank i closes for an image, whatever is on its way. */
inline suspend(i)
{
	atomic { round[i] = wanted; saved[i] = false; connections_end() }
}

inline save(i)
{
	d_step {
		if
		:: i == 0 && BREAK != 2 -> image_freed = freed; image_tail = tail
		:: i == 0 && BREAK == 2 -> image_freed = tail; image_tail = tail
		:: else -> image_cursor = cursor
		fi;
		saved[i] = true; counted++
	}
}

inline resume(i)
{
	d_step {
		if :: round[i] > epoch[i] -> epoch[i] = round[i] :: else -> skip fi;
		round[i] = 0; saved[i] = false
	}
}

#define BEGIN(i)  wanted && !complete && round[i] == 0 && epoch[i] < wanted && known[i] < wanted
#define CLOSED    (round[0] != 0 || round[1] != 0)
#define DECIDED   (wanted == 0 || complete || given_up == wanted)
#define ALL_THERE (cursor == M && freed == M)

active proctype Agent()
{
	byte n, e;
	do
	:: atomic { DECIDED && wanted < ROUNDS && !CLOSED ->
		wanted++; counted = 0; complete = false }
	:: atomic { !DECIDED && counted < 2 -> given_up = wanted }
	:: atomic { !DECIDED && counted == 2 ->
		/* the images fit together */
		assert(image_freed <= image_cursor && image_cursor <= image_tail);
		complete = true }
	/* each rank hears of it by itself */
	:: atomic { known[0] < given_up -> known[0] = given_up }
	:: atomic { known[1] < given_up -> known[1] = given_up }
	/* a connection is lost */
	:: atomic { losses < LOSSES && (nempty(record) || nempty(have)) ->
		losses++; connections_end() }
	/* the job goes back to the last checkpoint */
	:: atomic { complete && restarts == 0 ->
		restarts++;
		freed = image_freed; tail = image_tail; cursor = image_cursor;
		taken_in_order = cursor; connections_end(); next = freed; tell = false;
		epoch[0] = wanted; epoch[1] = wanted; known[0] = 0; known[1] = 0;
		round[0] = 0; round[1] = 0; saved[0] = false; saved[1] = false }
	:: atomic { DECIDED && wanted == ROUNDS && ALL_THERE && !CLOSED -> over = true; break }
	od
}

/* There is a connection. */
#define UP(i) (!CLOSED && round[i] == 0)

active proctype Sender()
{
	byte n, e;
	do
	:: atomic { round[0] == 0 && tail < M && tail - freed < WINDOW -> tail++ }
	:: atomic { UP(0) && next < tail && nfull(record) ->
		record ! next, epoch[0]; next++ }
	/* an acknowledgement of this epoch; one of a later epoch is lost, the next will do */
	:: atomic { UP(0) && nempty(have) ->
		have ? n, e;
		if
		:: e == epoch[0] && n > freed ->
			assert(n <= tail); freed = n;
			if :: next < freed -> next = freed :: else -> skip fi
		:: else -> skip
		fi;
		n = 0; e = 0 }
	/* a given-up checkpoint is behind it, too: what is kept leaves again in the new epoch */
	:: atomic { round[0] == 0 && known[0] > epoch[0] && BREAK != 5 ->
		epoch[0] = known[0]; next = freed }
	:: atomic { BEGIN(0) -> suspend(0) }
	:: atomic { round[0] && !saved[0] && known[0] < round[0] -> save(0) }
	:: atomic { round[0] && (saved[0] || known[0] >= round[0]) -> resume(0) }
	:: over -> break
	od
}

#define TAKE                                                                                   \
	if                                                                                     \
	:: n == cursor || (BREAK == 4 && n < cursor) ->                                        \
		assert(n == taken_in_order); taken_in_order++; cursor = n + 1; tell = true     \
	:: else -> tell = true                                                                 \
	fi

active proctype Receiver()
{
	byte n, e;
	do
	/* a record of this epoch; out of order within a connection: any that is there. One of a
	 * later epoch stays where it is, one of an earlier epoch is dropped */
	:: atomic { UP(1) && record ?? [eval(cursor), eval(epoch[1])] ->
		record ?? eval(cursor), eval(epoch[1]); n = cursor; TAKE; n = 0 }
	:: atomic { UP(1) && nempty(record) -> record ? <n, e>;
		if
		:: e < epoch[1] && BREAK != 1 -> record ? n, e
		:: e == epoch[1] && n < cursor -> record ? n, e; TAKE
		:: BREAK == 1 && e != epoch[1] -> record ? n, e; TAKE
		:: else -> skip
		fi;
		n = 0; e = 0 }
	:: atomic { UP(1) && tell && nfull(have) -> have ! cursor, epoch[1]; tell = false }
	:: atomic { round[1] == 0 && known[1] > epoch[1] && BREAK != 5 ->
		epoch[1] = known[1]; tell = true }
	:: atomic { BEGIN(1) -> suspend(1) }
	:: atomic { round[1] && !saved[1] && known[1] < round[1] -> save(1) }
	:: atomic { round[1] && (saved[1] || known[1] >= round[1]) -> resume(1); tell = true }
	:: over -> break
	od
}
