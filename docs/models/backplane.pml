/* Healing of the tree of event brokers. Words and invariants: docs/backplane.md. Checked
 * exhaustively by tests/spin_backplane.sh.
 *
 * N brokers, each place in the list a number. Broker PUB's client publishes M events of severity
 * WARNING; clients of every broker want them. At any moment, KILLS times, some broker other than
 * PUB dies; CUTS times a link breaks though both ends live. What was on its way through a broken
 * link is lost, and so is what only the dead one had. Whoever has no parent joins any live broker
 * before it in the list. On a new link each end says what it wants, and the other answers with all
 * that it remembers and that is wanted, then with what comes.
 *
 * Checked: no ring is ever made; nobody gets an event twice; when all has become quiet there is one
 * tree of all that live, and each of them has all M events.
 */
#ifndef N
#define N 4
#endif
#ifndef M
#define M 2
#endif
#ifndef PUB
#define PUB (N - 1)
#endif
#ifndef KILLS
#define KILLS 1
#endif
#ifndef CUTS
#define CUTS 1
#endif
/* Deliberate mistakes, to see that the model notices: 1 nothing is sent again on a new link, 2 no
 * look whether an event was here before, 3 anybody may be a parent, 4 only the child sends
 * again, 5 what comes goes out before what was remembered has been asked for, and is not asked for */
#ifndef BREAK
#define BREAK 0
#endif

#define NONE	 255
#define INTEREST 0
#define ALL	 ((1 << M) - 1)
#define CAP	 (2 * M + 2)

byte parent[N] = NONE;
bool dead[N];
byte has[N];	     /* bit for each event that was here: the log */
bool twice;	     /* an event came a second time and was not noticed */
bool child_wants[N]; /* what parent[i] knows of i */
bool above_wants[N]; /* what i knows of its parent */
chan up[N] = [CAP] of { byte };
chan down[N] = [CAP] of { byte };
byte published, kills, cuts;

inline send(c, what)
{
	assert(nfull(c));
	c ! what
}

/* What is on its way through c's link is lost with it. */
inline unlink(c)
{
	do
	:: nempty(up[c]) -> up[c] ? k
	:: empty(up[c]) -> break
	od;
	do
	:: nempty(down[c]) -> down[c] ? k
	:: empty(down[c]) -> break
	od;
	parent[c] = NONE; child_wants[c] = false; above_wants[c] = false;
	k = 0
}

/* e has come to b through the link of child `from`; through its own if that is b; NONE: published */
inline take(b, from)
{
	if
	:: (has[b] & (1 << (e - 1))) && BREAK != 2 -> skip
	:: else ->
		if
		:: has[b] & (1 << (e - 1)) -> twice = true
		:: else -> skip
		fi;
		has[b] = has[b] | (1 << (e - 1));
		k = 0;
		do
		:: k < N ->
			if
			:: parent[k] == b && k != from && child_wants[k] && !dead[k] && !twice ->
				send(down[k], e)
			:: else -> skip
			fi;
			k++
		:: else -> break
		od;
		if
		:: from != b && parent[b] != NONE && above_wants[b] && !dead[parent[b]] && !twice ->
			send(up[b], e)
		:: else -> skip
		fi
	fi;
	k = 0; e = 0
}

/* All that b remembers goes into a link, whose other end has said that it wants it. */
inline rescue(b, c)
{
	k = 1;
	do
	:: k <= M ->
		if
		:: has[b] & (1 << (k - 1)) -> send(c, k)
		:: else -> skip
		fi;
		k++
	:: else -> break
	od;
	k = 0
}

inline no_ring(b)
{
	at = b; k = 0;
	do
	:: parent[at] != NONE && k <= N -> at = parent[at]; k++
	:: else -> break
	od;
	assert(k <= N);
	at = 0; k = 0
}

/* me joins j; each end says what it wants */
#define JOIN(j)                                                                                    \
	:: atomic { !dead[me] && parent[me] == NONE && (j < me || BREAK == 3) && j != me &&        \
		    !dead[j] ->                                                                    \
		d_step { parent[me] = j; send(up[me], INTEREST); send(down[me], INTEREST);         \
			 child_wants[me] = (BREAK == 5); above_wants[me] = (BREAK == 5);           \
			 no_ring(me) } }

/* something comes from child c */
#define CHILD(c)                                                                                   \
	:: atomic { !dead[me] && parent[c] == me && !dead[c] && nempty(up[c]) ->                   \
		d_step {                                                                           \
			up[c] ? e;                                                                 \
			if                                                                         \
			:: e == INTEREST ->                                                        \
				child_wants[c] = true;                                             \
				if                                                                 \
				:: BREAK == 0 || BREAK == 2 || BREAK == 3 -> rescue(me, down[c])   \
				:: else -> skip                                                    \
				fi                                                                 \
			:: else -> take(me, c)                                                     \
			fi } }

proctype broker(byte me)
{
	byte e, k, at;

end:
	do
	JOIN(0)
	JOIN(1)
	JOIN(2)
#if N > 3
	JOIN(3)
#endif
	CHILD(0)
	CHILD(1)
	CHILD(2)
#if N > 3
	CHILD(3)
#endif
	/* something comes from the parent */
	:: atomic { !dead[me] && parent[me] != NONE && !dead[parent[me]] && nempty(down[me]) ->
		d_step {
			down[me] ? e;
			if
			:: e == INTEREST ->
				above_wants[me] = true;
				if
				:: BREAK == 1 || BREAK == 5 -> skip
				:: else -> rescue(me, up[me])
				fi
			:: else -> take(me, me)
			fi } }
	/* it is noticed that the parent has died */
	:: atomic { !dead[me] && parent[me] != NONE && dead[parent[me]] -> d_step { unlink(me) } }
	/* the link breaks, though both ends live; both notice */
	:: atomic { !dead[me] && parent[me] != NONE && !dead[parent[me]] && cuts < CUTS ->
		d_step { cuts++; unlink(me) } }
	/* it dies: its parent forgets it, its children will notice */
	:: atomic { !dead[me] && me != PUB && kills < KILLS ->
		d_step {
			kills++; dead[me] = true;
			if
			:: parent[me] != NONE -> unlink(me)
			:: else -> skip
			fi } }
	/* or no more of that happens */
	:: atomic { me == PUB && kills < KILLS -> kills = KILLS }
	:: atomic { me == PUB && cuts < CUTS -> cuts = CUTS }
	/* its client publishes */
	:: atomic { me == PUB && published < M ->
		d_step { published++; e = published; take(me, NONE) } }
	od
}

/* When nothing can happen any more. */
active proctype judge()
{
	byte i, roots;

	atomic {
		i = 0;
		do
		:: i < N -> run broker(i); i++
		:: else -> break
		od
	}
	timeout;
	assert(!twice);
	i = 0;
	do
	:: i < N ->
		if
		:: dead[i] -> skip
		:: else ->
			assert(has[i] == ALL);
			roots = roots + (parent[i] == NONE)
		fi;
		i++
	:: else -> break
	od;
	assert(roots == 1)
}
