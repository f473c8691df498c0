/* What ranks of a node share, and a checkpoint of one moment (docs/coordinated-checkpoint.md, "What
 * ranks of a node share"). Two ranks send each other bytes over a connection that has no markers:
 * what is on its way is saved by its receiver, and by nobody else.
 *
 * IDS checkpoints are tried; each may be given up at any moment.
 *
 * Checked: in a complete checkpoint what a rank has sent is what the other one has read and what its
 * image holds unread; nobody waits for ever (end states). BREAK 1: images are taken before all stand
 * still. BREAK 2: ranks resume before all have images. Both must be noticed. */
#ifndef BREAK
#define BREAK 0
#endif
#define N   2
#define IDS 2

byte wanted, cancelled;
byte saved_id, saved_count, taken_id, taken_count;
byte sent[N], have[N];				/* over the connection; sent - have is on its way */
byte image_sent[N], image_have[N], image_unread[N], image_id[N];
bool resumed[N], over;
byte complete;

inline count_in(word_id, word_count) {
	if
	:: word_id > id -> skip
	:: word_id == id -> word_count++
	:: word_id < id -> word_id = id; word_count = 1
	fi
}

active [N] proctype Rank() {
	byte me = _pid, other = N - 1 - _pid;
	byte done, id, budget = 2;

end:	do
	:: over -> break
	:: atomic { budget > 0 -> sent[me]++; budget-- }
	:: atomic { sent[other] > have[me] -> have[me]++ }
	:: atomic { wanted > done && wanted > cancelled -> id = wanted };
		atomic { count_in(saved_id, saved_count) }
#if BREAK != 1
		if
		:: saved_id == id && saved_count == N
		:: saved_id > id -> goto gave_up
		:: cancelled >= id -> goto gave_up
		:: over -> goto out
		fi;
#endif
		atomic {
			image_sent[me] = sent[me]; image_have[me] = have[me];
			image_unread[me] = sent[other] - have[me]; image_id[me] = id;
			count_in(taken_id, taken_count)
		}
#if BREAK != 2
		if
		:: taken_id == id && taken_count == N
		:: taken_id > id
		:: cancelled >= id
		:: over -> goto out
		fi;
#endif
gave_up:	atomic { done = id; resumed[me] = true }
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
			assert(image_sent[0] == image_have[1] + image_unread[1]);
			assert(image_sent[1] == image_have[0] + image_unread[0]);
			complete = id }
		:: cancelled = id
		fi
	od;
	over = true
}
