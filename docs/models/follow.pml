/* A head of a job with replicas is followed by another one (docs/attach.md, 'Jobs with replicas';
 * src/head/failover/takeover_replicas.c, src/head/replicas.c, src/head/migration/migrate_follow.c):
 * do all nodes come to the same view, with all deaths in it, whenever heads and processes are killed?
 * Checked exhaustively by tests/spin_follow.sh.
 *
 * Two ranks have two replicas each, on two nodes: process p is replica p / 2 of rank p % 2, on node
 * p / 2. Processes are killed, up to DEATHS of them, never the last one of a rank. A head writes its
 * view down and tells the nodes; it makes up to CLONES copies, for each of which GO is written down,
 * told, and RELEASE written down. It may be killed before each of its steps, up to HEADS - 1 times: what is
 * under way between it and the nodes is gone then. The next one reads what is written down, hears from
 * each node what has ended there, and goes on.
 *
 * A rank looks at the dead of its node when the number of the view changes: so no view that comes with a
 * number that is known has anything new. At the end, when nothing is under way, all nodes have the same
 * number, and the dead are those that are. */
#ifndef HEADS
#define HEADS 2
#endif
#ifndef DEATHS
#define DEATHS 2
#endif
#ifndef CLONES
#define CLONES 1
#endif
/* Deliberate mistakes, to see that the model notices: 1 a view is told before it is written down, and
 * the next head does not hear from nodes how far they are, 2 the next head does not tell its view, 3 a
 * node does not say again what has ended, 4 GO is told before it is written down, 5 a copy that GO is
 * written down for is forgotten, and runs, 6 the next head numbers its views from 0 */
#ifndef BREAK
#define BREAK 0
#endif

#define VIEW 1
#define GO   2
#define has(mask, p) (((mask) >> (p)) & 1)
#define both(p)	     ((1 << ((p) % 2)) | (1 << ((p) % 2 + 2)))

/* kind, dead, number or generation */
chan to0 = [6] of {byte, byte, byte};
chan to1 = [6] of {byte, byte, byte};
chan from = [8] of {byte}; /* what has ended */

byte dead;		       /* that are */
byte deaths, clones, heads;
byte w_lost, w_number, w_gen;  /* written down */
byte w_going;		       /* 1 + process that GO is written down for; 0: none */
byte lost0, lost1, number0, number1, gen0, gen1; /* of the nodes */
bool over;

inline kill_one(p)
{
	atomic {
		deaths < DEATHS && !over && !has(dead, p) && ((dead | 1 << p) & both(p)) != both(p) ->
		dead = dead | 1 << p;
		deaths++;
		from!p
	}
}

active proctype killer()
{
	do
	:: kill_one(0)
	:: kill_one(1)
	:: kill_one(2)
	:: kill_one(3)
	:: over -> break
	od
}

inline hear(chan_, lost_, number_, gen_)
{
	do
	:: atomic {
		chan_?kind, mask, n ->
		if
		:: kind == VIEW && n > number_ -> lost_ = lost_ | mask; number_ = n
		:: kind == VIEW && n <= number_ -> assert((lost_ | mask) == lost_)
		:: kind == GO && n > gen_ -> lost_ = mask; gen_ = n
		:: kind == GO && n <= gen_
		fi;
		kind = 0;
		mask = 0;
		n = 0
	   }
	:: over && empty(chan_) -> break
	od
}

active proctype node0()
{
	byte kind, mask, n;

	hear(to0, lost0, number0, gen0)
}

active proctype node1()
{
	byte kind, mask, n;

	hear(to1, lost1, number1, gen1)
}

byte lost, number, gen, p;

inline write_view()
{
	w_lost = lost;
	w_number = number
}

inline tell(kind_, mask_, n_)
{
	to0!kind_, mask_, n_;
	to1!kind_, mask_, n_
}

/* A head that is killed says nothing more; of what it has said nodes may have heard some. */
#define dies	                                                                                   \
	heads < HEADS - 1 -> heads++;                                                              \
	goto next

inline say_again(q)
{
	if
	:: has(dead, q) && BREAK != 3 -> from!q
	:: else
	fi
}

active proctype head()
{
	goto begin;
next:	atomic {
		do
		:: nempty(to0) -> to0?_, _, _
		:: nempty(to1) -> to1?_, _, _
		:: nempty(from) -> from?_
		:: empty(to0) && empty(to1) && empty(from) -> break
		od;
		lost = w_lost;
		number = (BREAK == 6 -> 0 : w_number);
		gen = w_gen;
		/* nodes describe themselves, and say again what has ended */
		if
		:: number0 > number && BREAK != 6 && BREAK != 1 -> number = number0
		:: else
		fi;
		if
		:: number1 > number && BREAK != 6 && BREAK != 1 -> number = number1
		:: else
		fi;
		say_again(0);
		say_again(1);
		say_again(2);
		say_again(3)
	}
	/* settled: copies first */
	if
	:: dies
	:: w_going > 0 && BREAK == 5 -> w_going = 0
	:: w_going > 0 && BREAK != 5 ->
		tell(GO, lost & ~(1 << (w_going - 1)), gen);
		lost = lost & ~(1 << (w_going - 1));
		number++;
		atomic {
			write_view();
			w_going = 0
		}
	:: w_going == 0 && gen > 0 && (gen0 < gen || gen1 < gen) -> tell(GO, lost, gen)
	:: w_going == 0 && (gen == 0 || (gen0 == gen && gen1 == gen))
	fi;
	if
	:: BREAK == 2
	:: BREAK != 2 -> tell(VIEW, lost, number)
	fi;
begin:
	do
	:: dies
	:: from?p ->
		if
		:: has(lost, p) || !has(dead, p) -> skip
		:: else ->
			lost = lost | 1 << p;
			number++;
			if
			:: BREAK == 1 -> tell(VIEW, lost, number)
			:: else
			fi;
			if
			:: dies
			:: true
			fi;
			write_view();
			if
			:: dies
			:: true
			fi;
			tell(VIEW, lost, number)
		fi
	:: clones < CLONES && lost != 0 && empty(from) && w_going == 0 ->
		if
		:: has(lost, 0) -> p = 0
		:: has(lost, 1) -> p = 1
		:: has(lost, 2) -> p = 2
		:: has(lost, 3) -> p = 3
		fi;
		clones++;
		gen = w_gen + 1;
		if
		:: BREAK == 4 ->
			dead = dead & ~(1 << p);
			tell(GO, lost & ~(1 << p), gen)
		:: else
		fi;
		if
		:: dies
		:: true
		fi;
		atomic {
			dead = dead & ~(1 << p);
			w_gen = gen;
			w_going = p + 1
		}
		if
		:: dies
		:: true
		fi;
		if
		:: BREAK != 4 -> tell(GO, lost & ~(1 << p), gen)
		:: else
		fi;
		lost = lost & ~(1 << p);
		number++;
		atomic {
			write_view();
			w_going = 0
		}
		if
		:: dies
		:: true
		fi;
		tell(VIEW, lost, number)
	:: atomic {
		empty(to0) && empty(to1) && empty(from) ->
		assert(lost0 == dead && lost1 == dead && lost == dead);
		assert(number0 == number && number1 == number && gen0 == gen1);
		over = true;
		break
	   }
	od
}
