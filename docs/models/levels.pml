/* Copies of images on partners (docs/levels.md): is there always a checkpoint to go back to that is
 * as good as the last one that was said to be safe, and is never one taken that isn't there?
 *
 * Three nodes; each but the spare has an image of every checkpoint on its own disk, and its partner is
 * the next node that is there. The head orders copies and hears answers over channels that keep
 * order and may be slow. A copy arrives in two steps: begun, whole. One node is lost, with its disk,
 * at any moment, and with all that was on its way to it or from it. Then the head goes back.
 *
 * HEADS 2: the head is killed at any moment, with all that it had not written down, and another one
 * follows (docs/attach.md). It asks each node what it has; orders of the old one go on, and their
 * answers come to the new one. A node that is lost meanwhile has been lost with the head.
 *
 * Ids 1..CKPTS. have[n].img[id*NODES+owner]: 0 nothing, 1 begun, 2 whole.
 */
#ifndef HEADS
#define HEADS 1
#endif

#define NODES 3
#define RANKED 2 /* nodes 0 and 1 have ranks, node 2 is the spare */
#ifndef CKPTS
#define CKPTS 3
#endif
/* Deliberate mistakes: 1 a copy is acknowledged when it has begun, 2 it counts when it is ordered,
 * 3 the one before is removed when the new one is only on its own nodes, 4 the head doesn't look who
 * is there, 5 the head waits for answers of a node that is lost; with a new head: 6 it believes
 * answers to orders of the old one, 7 it counts copies that are not whole, 8 it doesn't ask what is
 * there, 9 nodes that were not told that a checkpoint is complete remove its images when their head
 * goes, 10 it goes on with what the old one had ordered as if that were done */
#ifndef BREAK
#define BREAK 0
#endif

#define AT(id, owner) ((id) * RANKED + (owner))
#define SLOTS ((CKPTS + 1) * RANKED)

typedef disk { byte img[SLOTS] };
disk have[NODES];
bool lost[NODES];
byte losses;

/* In the shared folder, so known to any head: bit n of on[AT] says that node n has it. */
byte on[SLOTS];
byte newest; /* complete on its own nodes: it has a manifest */
byte safe;   /* the newest that was written down as copied */
byte kept;   /* all older ones may be removed */

/* what only this head knows */
byte under_way; /* checkpoint that is copied; 0: none */
byte outstanding;
bool asked[RANKED], got[RANKED];
byte partner[RANKED];
byte heard; /* losses that the head knows of */
byte epoch = 1;
bool told = true; /* all nodes know that the newest one is complete */
byte went_to = 255;

chan order[NODES] = [RANKED] of { byte, byte, byte };	       /* id, partner, epoch */
chan answer = [2 * RANKED] of { byte, byte, bool, byte }; /* owner, id, good, epoch */

#define whole(n, id, o) (!lost[n] && have[n].img[AT(id, o)] == 2)
#define there(id, o) (whole(0, id, o) || whole(1, id, o) || whole(2, id, o))
#define restorable(id) (there(id, 0) && there(id, 1))
#define copied(id) ((on[AT(id, 0)] & ~1) != 0 && (on[AT(id, 1)] & ~2) != 0)

inline next_node(n, p)
{
	p = (n + 1) % NODES;
	if
	:: lost[p] && heard > 0 -> p = (p + 1) % NODES
	:: else
	fi
}

/* Removed everywhere, for good. */
inline remove_older(id)
{
	k = 1;
	do
	:: k < id ->
		j = 0;
		do
		:: j < NODES -> have[j].img[AT(k, 0)] = 0; have[j].img[AT(k, 1)] = 0; j++
		:: else -> break
		od;
		k++
	:: else -> break
	od;
	j = 0;
	k = 0;
	kept = id
}

/* Every answer is there, or will not come: written down; the older ones go later. */
inline finish()
{
	o = 0;
	do
	:: o < RANKED ->
		if
		:: got[o] ->
			/* what is written down is true, or was until that node was lost */
			assert(lost[partner[o]] || have[partner[o]].img[AT(under_way, o)] == 2);
			on[AT(under_way, o)] = on[AT(under_way, o)] | (1 << partner[o]);
			got[o] = false
		:: else
		fi;
		o++
	:: else -> break
	od;
	o = 0;
	if
	:: copied(under_way) -> safe = under_way
	:: else
	fi;
	under_way = 0
}

/* known: the head believes that a node that is there has it */
#define known(id, o) ((on[AT(id, o)] & there_bits) != 0)

/* To the newest that is there as far as is known. */
inline go_back()
{
	there_bits = (lost[0] -> 0 : 1) | (lost[1] -> 0 : 2) | (lost[2] -> 0 : 4);
	if
	:: BREAK == 4 -> there_bits = 7
	:: else
	fi;
	id = newest;
	do
	:: id > 0 && id >= kept && known(id, 0) && known(id, 1) -> break
	:: id > 0 && !(id >= kept && known(id, 0) && known(id, 1)) -> id--
	:: id == 0 -> break
	od;
	went_to = id;
	/* what is gone back to is there, and no worse than what was said to be safe */
	assert(id == 0 || restorable(id));
	assert(id >= safe);
	/* nor has anything been removed that would have been needed */
	assert(kept == 0 || id > 0);
	there_bits = 0
}

/* Each node that is there says what it has. */
inline learn()
{
	id = 1;
	do
	:: id <= newest ->
		k = 0;
		do
		:: k < NODES ->
			o = 0;
			do
			:: o < RANKED ->
				if
				:: whole(k, id, o) ||
				   (BREAK == 7 && !lost[k] && have[k].img[AT(id, o)] == 1) ->
					on[AT(id, o)] = on[AT(id, o)] | (1 << k)
				:: else
				fi;
				o++
			:: else -> break
			od;
			k++
		:: else -> break
		od;
		if
		:: copied(id) && id > safe -> safe = id
		:: else
		fi;
		id++
	:: else -> break
	od;
	id = 0; k = 0; o = 0
}

active proctype head()
{
	byte o, id, k, j, there_bits, p, e;
	bool good;

end:	do
	/* a checkpoint is complete on its own nodes */
	:: atomic { newest < CKPTS && !lost[0] && !lost[1] && heard == losses && told ->
		newest++;
		have[0].img[AT(newest, 0)] = 2;
		have[1].img[AT(newest, 1)] = 2;
		on[AT(newest, 0)] = 1;
		on[AT(newest, 1)] = 2;
		told = false;
		if
		:: BREAK == 3 -> remove_older(newest)
		:: else
		fi }
	:: atomic { !told -> told = true }
	/* its copies are ordered */
	:: atomic { under_way == 0 && newest > safe && heard == losses && !asked[0] && !asked[1] ->
		under_way = newest;
		o = 0;
		do
		:: o < RANKED && !lost[o] && on[AT(under_way, o)] == 1 << o ->
			next_node(o, p);
			partner[o] = p;
			order[o] ! under_way, p, epoch;
			asked[o] = true;
			outstanding++;
			if
			:: BREAK == 2 -> got[o] = true
			:: else
			fi;
			o++
		:: o < RANKED && (lost[o] || on[AT(under_way, o)] != 1 << o) -> o++
		:: else -> break
		od;
		o = 0;
		p = 0;
		if
		:: outstanding == 0 || BREAK == 2 -> finish()
		:: else
		fi }
	:: atomic { answer ? o, id, good, e ->
		if
		:: e != epoch && BREAK != 6
		:: else ->
			if
			:: id == under_way && asked[o] ->
				asked[o] = false;
				outstanding--;
				got[o] = good;
				if
				:: outstanding == 0 -> finish()
				:: else
				fi
			:: else -> asked[o] = false
			fi
		fi;
		o = 0; id = 0; good = false; e = 0 }
	/* what is older than one that is copied */
	:: atomic { kept < safe && BREAK != 3 -> remove_older(safe) }
	/* a node is lost: it will not answer; back to the newest that is there as far as we know */
	:: atomic { heard < losses ->
		heard = losses;
		o = 0;
		do
		:: o < RANKED ->
			if
			:: lost[o] && asked[o] && BREAK != 5 -> asked[o] = false; outstanding--
			:: else
			fi;
			o++
		:: else -> break
		od;
		o = 0;
		if
		:: under_way != 0 && outstanding == 0 -> finish()
		:: else
		fi;
		go_back();
		id = 0 }
	/* killed; another one follows, and hears who is there */
	:: atomic { epoch < HEADS ->
		if
		:: BREAK == 9 && !told ->
			have[0].img[AT(newest, 0)] = 0;
			have[1].img[AT(newest, 1)] = 0
		:: BREAK == 10 && under_way != 0 ->
			o = 0;
			do
			:: o < RANKED -> got[o] = got[o] || asked[o]; o++
			:: else -> break
			od;
			finish()
		:: else
		fi;
		epoch++;
		told = true;
		under_way = 0;
		outstanding = 0;
		asked[0] = false; asked[1] = false;
		got[0] = false; got[1] = false;
		partner[0] = 0; partner[1] = 0;
		if
		:: BREAK != 8 -> learn()
		:: else
		fi;
		if
		:: heard < losses ->
			heard = losses;
			go_back();
			/* a copy that its head had not written down is found */
			assert(went_to == newest || !restorable(newest));
			id = 0
		:: else
		fi }
	od
}

proctype copier(byte n)
{
	byte id, p, e;
	bool there;

end:	do
	:: atomic { !lost[n] && nempty(order[n]) ->
		order[n] ? id, p, e;
		there = !lost[p];
		if
		/* a whole one that is there is as good */
		:: there && have[p].img[AT(id, n)] != 2 -> have[p].img[AT(id, n)] = 1
		:: there && have[p].img[AT(id, n)] == 2
		:: !there -> answer ! n, id, false, e
		fi;
		if
		:: there && BREAK == 1 -> answer ! n, id, true, e
		:: else
		fi }
		/* all of it arrives; or the partner, or we, are lost meanwhile; or its disk is full */
		if
		:: atomic { !there || lost[n] -> skip }
		:: atomic { there && !lost[n] && !lost[p] ->
			have[p].img[AT(id, n)] = 2;
			if
			:: BREAK != 1 -> answer ! n, id, true, e
			:: else
			fi }
		:: atomic { there && !lost[n] && (lost[p] || have[p].img[AT(id, n)] != 2) ->
			have[p].img[AT(id, n)] = 0;
			if
			:: BREAK != 1 -> answer ! n, id, false, e
			:: else
			fi }
		fi;
		id = 0;
		p = 0;
		e = 0;
		there = false
	:: lost[n] -> break
	od
}

/* One of them, once: that is what level 2 promises to bear. */
active proctype fate()
{
	byte n;

	if
	:: n = 0
	:: n = 1
	:: n = 2
	fi;
	atomic { lost[n] = true; losses++ }
}

/* A copy that was under way to a lost node is answered: nobody waits for good. */
active proctype patience()
{
end:	do
	:: atomic { timeout -> assert(outstanding == 0); break }
	od
}

init
{
	atomic {
		run copier(0);
		run copier(1)
	}
}
