/* The coordinated checkpoint: head and N ranks; see docs/coordinated-checkpoint.md.
 *
 * IDS checkpoints are tried; each may be given up at any moment (time is up, a writing child met a full
 * disk). Channels between ranks are FIFO and carry data messages and markers with the checkpoint's id.
 * A death isn't modelled here: it ends every rank, and the next life starts from `complete`.
 *
 * Checked: a complete checkpoint has all images, of one consistent cut (what rank i says it sent to j
 * before its image is exactly what j's image contains from i); nobody waits for ever (end states). */
#define N   2
#define IDS 2
#define CAP 6

mtype = { DATA, MARK };
chan ring[N * N] = [CAP] of { mtype, byte };	/* from i to j at i * N + j */
byte wanted, cancelled;				/* mailbox words, the same for all ranks */
byte saved_id, saved_count;			/* the CTC word */
bool over;

/* what each image says: messages sent to and received from the other rank */
byte image_sent[N], image_have[N], image_id[N];
bool resumed[N];
byte complete;					/* id of the newest complete checkpoint */

inline receive_one(me, other) {
	if
	:: ring[other * N + me] ? [DATA, _] && !marked -> ring[other * N + me] ? DATA, k; have++
	:: ring[other * N + me] ? [MARK, _] && !marked ->
		ring[other * N + me] ? MARK, k;
		/* a marker of a checkpoint that was given up stops nothing */
		if :: k > cancelled && k > done -> marked = true; mark = k :: else -> skip fi
	fi
}

active [N] proctype Rank() {
	byte me = _pid, other = N - 1 - _pid;
	byte sent, have, done, k, mark, id, budget = 2;
	bool marked;

end:	do
	:: over -> break
	/* the program: sends and receives */
	:: atomic { budget > 0 && nfull(ring[me * N + other]) ->
		ring[me * N + other] ! DATA, 0; sent++; budget-- }
	:: atomic { !marked && nempty(ring[other * N + me]) -> receive_one(me, other) }
	/* a marker that came early is forgotten when its checkpoint is given up */
	:: atomic { marked && mark <= cancelled -> marked = false }
	/* a request */
	:: atomic { wanted > done && wanted > cancelled -> id = wanted };
		atomic { nfull(ring[me * N + other]) || over ->
			if :: over -> goto out :: else -> ring[me * N + other] ! MARK, id fi }
		do					/* suspend_poll */
		:: atomic { marked && mark == id -> break }
		:: atomic { marked && mark < id && mark <= cancelled -> marked = false }
		:: atomic { !marked && nempty(ring[other * N + me]) -> receive_one(me, other) }
		:: atomic { cancelled >= id -> goto gave_up }
		:: over -> goto out
		od;
		atomic {				/* save, count in, fork */
			if
			:: saved_id > id -> skip
			:: saved_id == id -> saved_count++
			:: saved_id < id -> saved_id = id; saved_count = 1
			fi;
			image_sent[me] = sent; image_have[me] = have; image_id[me] = id }
		/* count_in_wait */
		if
		:: saved_id == id && saved_count == N
		:: saved_id > id
		:: cancelled >= id
		:: over -> goto out
		fi;
gave_up:	atomic { done = id; marked = false; resumed[me] = true }
	od;
out:	skip
}

active proctype Head() {
	byte id = 0;
	do
	:: id == IDS -> break
	:: else ->
		id++;
		atomic { resumed[0] = false; resumed[1] = false; wanted = id };
		if
		:: atomic { image_id[0] == id && image_id[1] == id && resumed[0] && resumed[1] ->
			assert(image_sent[0] == image_have[1]);
			assert(image_sent[1] == image_have[0]);
			complete = id }
		:: cancelled = id
		fi
	od;
	over = true
}
