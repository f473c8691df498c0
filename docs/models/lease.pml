/* A node's lease (docs/nodes.md, src/wire/lease/lease.h): are a node's ranks ever at work when the head
 * starts them somewhere else? Checked exhaustively by tests/spin_lease.sh.
 *
 * Time goes in ticks. The agent asks, the head grants; messages take as long as they like, and any
 * may be lost (the cable is cut, and healed, at any moment). A lease holds T ticks from the ask that
 * it answers. The agent may be stopped (SIGSTOP) and go on at any moment; its supervisor may not. The
 * head may stand still too. The user may pause the job and let it go on (Ctrl-Z, fg). The head's
 * end of the session may see it closed at any moment, as a launcher does that was killed.
 *
 * Asks are numbered modulo ASKS; each remembers its age in ticks, the agent's own clock. A grant is
 * the number of its ask. What is older than T can't give a lease any more and is dropped.
 *
 * Invariant, at every step: not (ranks at work on the node, and started elsewhere).
 */
#ifndef T
#define T 3
#endif
#ifndef MARGIN
#define MARGIN 1
#endif
/* Deliberate mistakes, to see that the model notices: 1 a lease holds from the arrival of the grant,
 * 2 a closed session is taken for proof, 3 ranks go on after a pause without a new lease, 4 there
 * is no supervisor, 5 the head grants after it has given the node up */
#ifndef BREAK
#define BREAK 0
#endif

#define ASKS 4
#define NONE 255

byte age[ASKS] = NONE; /* of ask n; NONE: not asked, or too old */
byte left;	       /* ticks that the agent's lease holds; 0: none */
byte silence;	       /* ticks since the head granted last, up to T + MARGIN + 1 */
bool granted;	       /* ever: ranks are started only then */
bool at_work, paused, resuming;
byte resume_from = NONE; /* the ask whose grant lets paused ranks go on */
bool agent_stopped;
bool lost;  /* the head has given the node up ... */
bool moved; /* ... and started its ranks elsewhere */
bool fenced; /* the ranks were ended: for good */
bool going_on; /* the head's word to go on is on its way */
byte next;
chan ask = [2] of { byte };
chan grant = [2] of { byte };

#define SAFE (!(at_work && moved))

/* Ended by whoever looks first. */
inline fence()
{
	at_work = false;
	paused = false;
	resuming = false;
	fenced = true;
	left = 0
}

inline tick()
{
	d_step {
		k = 0;
		do
		:: k < ASKS ->
			if
			:: age[k] != NONE && age[k] < T -> age[k]++
			:: else -> age[k] = NONE
			fi;
			k++
		:: else -> break
		od;
		if
		:: silence <= T + MARGIN -> silence++
		:: else
		fi;
		if
		:: left > 0 -> left--
		:: else
		fi;
		/* the supervisor, who is never stopped; without one the agent itself, if it can */
		if
		:: left == 0 && at_work && (BREAK != 4 || !agent_stopped) -> fence()
		:: else
		fi;
		k = 0
	}
}

active proctype clock()
{
	byte k;
end:	do
	:: tick()
	od
}

active proctype agent()
{
	byte n;
end:	do
	/* real numbers never come again: nothing with this one may be on its way */
	:: atomic { !agent_stopped && !fenced && nfull(ask) && age[next] == NONE &&
		!(ask ?? [eval(next)]) && !(grant ?? [eval(next)]) ->
			age[next] = 0;
			ask ! next;
			if
			:: resuming && resume_from == NONE -> resume_from = next
			:: else
			fi;
			next = (next + 1) % ASKS }
	:: atomic {
			!agent_stopped && grant ? [n] -> grant ? n;
			if
			:: fenced || (age[n] == NONE && BREAK != 1)
			:: else ->
				if
				:: paused && BREAK != 3 && !(resuming && resume_from == n)
				:: else ->
					if
					:: BREAK == 1 -> left = T
					:: BREAK != 1 && T - age[n] > left -> left = T - age[n]
					:: else
					fi;
					if
					:: left > 0 && paused && resuming ->
						paused = false;
						resuming = false;
						resume_from = NONE;
						at_work = true
					:: else
					fi;
					if
					:: left > 0 && !granted -> granted = true; at_work = true
					:: else
					fi
				fi
			fi
		}
	:: atomic { !agent_stopped && at_work && !paused ->
		/* the head says pause, and stands still itself */
		paused = true; at_work = false; left = 0 }
	:: atomic { !agent_stopped && paused && !resuming && going_on ->
		going_on = false;
		resuming = true;
		if
		:: BREAK == 3 -> paused = false; resuming = false; at_work = true; left = T
		:: else
		fi }
	:: agent_stopped = !agent_stopped
	od
}

active proctype head()
{
	byte n;
end:	do
	:: atomic {
			ask ? [n] -> ask ? n;
			if
			:: lost && BREAK != 5
			:: else ->
				silence = 0;
				if
				:: nfull(grant) -> grant ! n
				:: full(grant)
				fi
			fi
		}
	:: atomic { paused && !going_on -> going_on = true }
	/* no word for long enough */
	:: atomic { granted && !lost && silence > T + MARGIN -> lost = true; moved = true }
	/* the session is closed: a reason to look, and to wait for the lease */
	:: atomic { BREAK == 2 && granted && !lost -> lost = true; moved = true }
	od
}

active proctype cable()
{
	byte n;
end:	do
	:: ask ? n
	:: grant ? n
	od
}

active proctype check()
{
end:	do
	:: atomic { !SAFE -> assert(SAFE) }
	od
}
