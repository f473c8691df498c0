/* A new head asks an agent that may be killed meanwhile (docs/attach.md, 'Epochs'; docs/nodes.md, 'An
 * agent is replaced'; src/agent/failover/agent_head.c, src/head/nodes/node_set_adopt.c): does the newest head get its answer, whenever
 * agents are killed and connections are cut, and does no agent obey a head that has a successor? Checked
 * exhaustively by tests/spin_knock.sh.
 *
 * Heads of the epochs 2 to HEADS come in any order. Each connects to a socket at which the supervisor
 * listens on, whoever is the agent; it says who it is, waits for its answer, and connects again when the
 * connection ends without one, or when it is cut. A connection is at its end when nobody has it: not the
 * socket's queue, not the agent, whose connections end with it, and not the supervisor, who holds duplicates
 * of those that a successor needs. The agent may be killed before each of its steps, up to DEATHS times;
 * a successor begins with what the book says. Connections are cut up to CUTS times.
 *
 * No head waits for ever (there would be an invalid end state), none is told that it has a successor that
 * has none, and who is obeyed is the newest one of those that have been answered.
 */
#ifndef HEADS
#define HEADS 3
#endif
#ifndef DEATHS
#define DEATHS 2
#endif
#ifndef CUTS
#define CUTS 1
#endif
/* Deliberate mistakes, to see that the model notices: 1 a successor leaves with the supervisor what the
 * book does not know, 2 the supervisor holds the new connection in place of the old one before the turn is
 * written down, 3 nobody knocks again, 4 an agent hears only newer heads, and not again the one that it
 * has heard, 5 an agent hears older heads, 6 an answer goes out before its turn is written down */
#ifndef BREAK
#define BREAK 0
#endif

#define CONNS (2 * HEADS + 3 * (DEATHS + CUTS) + 1)

/* what outlives agents; connections are numbered from 1 */
byte conns, waiting;
byte by[CONNS];	      /* the head at its other end */
bool queued[CONNS];   /* in the socket's queue */
bool taken[CONNS];    /* the agent has it */
bool held[CONNS];     /* the supervisor has it */
bool cut[CONNS];      /* its head sees nothing more of it */
bool answered[CONNS]; /* ATTACHED */
bool refused[CONNS];  /* SUPERSEDED */
/* the book: whom the agent hears, on which connection (0: none), and to whom an answer is due */
byte w_epoch = 1, w_link, w_owes;

byte newest; /* of those that have been answered */
byte deaths, cuts;
byte latest; /* of those that have come */
bool die;

/* the agent's own */
byte epoch, link, old, c;

inline answer(x)
{
	d_step {
		answered[x] = true;
		if
		:: !cut[x] && by[x] > newest -> newest = by[x]
		:: else
		fi
	}
}

inline next_queued()
{
	d_step {
		c = 1;
		do
		:: !queued[c] -> c++
		:: else -> break
		od;
		queued[c] = false;
		taken[c] = true;
		waiting--
	}
}

/* A successor has the connection that the book names; others are let go. */
inline begin()
{
	d_step {
		epoch = w_epoch;
		link = w_link;
		if
		:: link != 0 -> assert(held[link]); taken[link] = true
		:: else
		fi;
		c = 1;
		do
		:: c <= conns ->
			if
			:: c != link && BREAK != 1 -> held[c] = false
			:: else
			fi;
			c++
		:: else -> break
		od;
		c = 0
	}
}

inline change_heads()
{
	old = link;
	if
	:: old != 0 && by[old] != by[c] -> refused[old] = true
	:: else
	fi;
	if
	:: BREAK == 2 && old != 0 -> held[old] = false
	:: else
	fi;
	held[c] = true;
	epoch = by[c];
	link = c;
	if
	:: BREAK == 6 -> answer(c)
	:: else
	fi;
	d_step { w_epoch = epoch; w_link = link; w_owes = c };
	if
	:: old != 0 -> d_step { held[old] = false; taken[old] = false }
	:: else
	fi
}

active proctype agent()
{
again:
	{
		begin();
end_turn:
		do
		:: w_owes != 0 -> atomic { answer(w_owes); w_owes = 0 }
		/* it is cut: the agent is without a head */
		:: link != 0 && cut[link] ->
			old = link;
			link = 0;
			d_step { w_link = 0; w_owes = 0 };
			d_step { held[old] = false; taken[old] = false; old = 0 }
		:: waiting > 0 ->
			next_queued();
			if
			:: (by[c] > epoch || BREAK == 5 ||
				      (by[c] == epoch && BREAK != 4)) ->
				change_heads()
			:: else -> refused[c] = true; taken[c] = false
			fi;
			c = 0;
			old = 0
		od
	} unless { die };
	d_step {
		die = false;
		epoch = 0; link = 0; old = 0; c = 1;
		do
		:: c <= conns -> taken[c] = false; c++
		:: else -> break
		od;
		c = 0
	}
	goto again
}

active proctype killer()
{
end_killer:
	do
	:: deaths < DEATHS && !die -> atomic { deaths++; die = true }
	od
}

proctype head(byte me)
{
	byte mine;

	d_step {
		if
		:: me > latest -> latest = me
		:: else
		fi
	}
knock:
	atomic { conns++; assert(conns < CONNS); mine = conns; by[mine] = me; queued[mine] = true; waiting++ };
	do
	:: atomic { refused[mine] && !cut[mine] -> assert(me < latest); break }
	:: atomic { answered[mine] && !refused[mine] && !cut[mine] -> goto settled }
	:: atomic { cuts < CUTS && !cut[mine] -> cuts++; cut[mine] = true }
	:: atomic { !answered[mine] && !refused[mine] && !queued[mine] && !taken[mine] && !held[mine] ||
		    cut[mine] ->
		if
		:: BREAK == 3 -> assert(false)
		:: else -> goto knock
		fi }
	od;
	goto over;
settled: /* from here on it is the head, until it hears of another one */
end_settled:
	if
	:: refused[mine]
	fi;
over:	skip
}

/* Who is obeyed; what a head says on a connection that is cut does not come. */
active proctype check()
{
end:	do
	:: atomic { link != 0 && !cut[link] && answered[link] && by[link] < newest -> assert(false) }
	od
}

init {
	byte h = 2;
	atomic {
		do
		:: h <= HEADS -> run head(h); h++
		:: else -> break
		od
	}
}
