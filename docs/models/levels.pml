/* Copies of images on partners (docs/levels.md): is there always a checkpoint to go back to that is
 * as good as the last one that was said to be safe, and is never one taken that isn't there?
 *
 * Three nodes; each but the spare has an image of every checkpoint on its own disk, and its partner is
 * the next node that is there. The head orders copies and hears answers over channels that keep
 * order and may be slow. A copy arrives in two steps: begun, whole. One node is lost, with its disk,
 * at any moment, and with all that was on its way to it or from it. Then the head goes back.
 *
 * Ids 1..CKPTS. have[n].img[id*NODES+owner]: 0 nothing, 1 begun, 2 whole.
 */
#define NODES 3
#define RANKED 2 /* nodes 0 and 1 have ranks, node 2 is the spare */
#ifndef CKPTS
#define CKPTS 3
#endif
/* Deliberate mistakes: 1 a copy is acknowledged when it has begun, 2 it counts when it is ordered,
 * 3 the one before is removed when the new one is only on its own nodes, 4 the head doesn't look who
 * is there, 5 the head waits for answers of a node that is lost */
#ifndef BREAK
#define BREAK 0
#endif

#define AT(id, owner) ((id) * RANKED + (owner))
#define SLOTS ((CKPTS + 1) * RANKED)

typedef disk { byte img[SLOTS] };
disk have[NODES];
bool lost[NODES];
byte losses;

/* the head's knowledge: bit n of on[AT] says that node n has it */
byte on[SLOTS];
byte newest;	  /* complete on its own nodes */
byte safe;	  /* the newest that was written down as copied */
byte kept;	  /* all older ones may be removed */
byte under_way;	  /* checkpoint that is copied; 0: none */
byte outstanding;
bool asked[RANKED];
byte partner[RANKED];
byte heard; /* losses that the head knows of */
byte went_to = 255;

chan order[NODES] = [RANKED] of { byte, byte };	 /* id, partner */
chan answer = [2 * RANKED] of { byte, byte, bool }; /* owner, id, good */

#define whole(n, id, o) (!lost[n] && have[n].img[AT(id, o)] == 2)
#define there(id, o) (whole(0, id, o) || whole(1, id, o) || whole(2, id, o))
#define restorable(id) (there(id, 0) && there(id, 1))

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

/* Every answer is there, or will not come: written down, then the older ones go. */
inline finish()
{
	if
	:: (on[AT(under_way, 0)] & ~1) != 0 && (on[AT(under_way, 1)] & ~2) != 0 ->
		safe = under_way;
		remove_older(safe)
	:: else
	fi;
	under_way = 0
}

/* known: the head believes that a node that is there has it */
#define known(id, o) ((on[AT(id, o)] & there_bits) != 0)

active proctype head()
{
	byte o, id, k, j, there_bits, p;
	bool good;

end:	do
	/* a checkpoint is complete on its own nodes */
	:: atomic { newest < CKPTS && !lost[0] && !lost[1] && heard == losses ->
		newest++;
		have[0].img[AT(newest, 0)] = 2;
		have[1].img[AT(newest, 1)] = 2;
		on[AT(newest, 0)] = 1;
		on[AT(newest, 1)] = 2;
		if
		:: BREAK == 3 -> remove_older(newest)
		:: else
		fi }
	/* its copies are ordered */
	:: atomic { under_way == 0 && newest > safe && heard == losses && !asked[0] && !asked[1] ->
		under_way = newest;
		o = 0;
		do
		:: o < RANKED && !lost[o] && on[AT(under_way, o)] == 1 << o ->
			next_node(o, p);
			partner[o] = p;
			order[o] ! under_way, p;
			asked[o] = true;
			outstanding++;
			if
			:: BREAK == 2 -> on[AT(under_way, o)] = on[AT(under_way, o)] | (1 << p)
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
	:: atomic { answer ? o, id, good ->
		if
		:: id == under_way && asked[o] ->
			asked[o] = false;
			outstanding--;
			if
			:: good -> on[AT(id, o)] = on[AT(id, o)] | (1 << partner[o])
			:: else
			fi;
			if
			:: outstanding == 0 -> finish()
			:: else
			fi
		:: else -> asked[o] = false
		fi;
		o = 0; id = 0; good = false }
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
		id = 0;
		there_bits = 0 }
	od
}

proctype copier(byte n)
{
	byte id, p;
	bool there;

end:	do
	:: atomic { !lost[n] && nempty(order[n]) ->
		order[n] ? id, p;
		there = !lost[p];
		if
		:: there -> have[p].img[AT(id, n)] = 1
		:: else -> answer ! n, id, false
		fi;
		if
		:: there && BREAK == 1 -> answer ! n, id, true
		:: else
		fi }
		/* all of it arrives; or the partner, or we, are lost meanwhile; or its disk is full */
		if
		:: atomic { !there || lost[n] -> skip }
		:: atomic { there && !lost[n] && !lost[p] ->
			have[p].img[AT(id, n)] = 2;
			if
			:: BREAK != 1 -> answer ! n, id, true
			:: else
			fi }
		:: atomic { there && !lost[n] ->
			have[p].img[AT(id, n)] = 0;
			if
			:: BREAK != 1 -> answer ! n, id, false
			:: else
			fi }
		fi;
		id = 0;
		p = 0;
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
