/* The Suspend stamps of channel/shm through checkpoints, given-up checkpoints and a restart.
 * Words and invariants: docs/channels.md. Checked exhaustively by tests/spin_suspend.sh.
 *
 * N ranks send M numbered messages to each other over rings of CAP records. The agent asks for
 * checkpoints 1 … ROUNDS, one after the other; at any moment it may give one up, whoever has begun
 * it or not. Once, after a checkpoint that all ranks counted in for, it may restart the job: new
 * zeroed rings and stamps, and every rank goes back to what its image says.
 *
 * Checked: messages are taken in order, each once, across restarts; a rank that thinks it has
 * drained has everything that was sent to it in the image (the images of a round fit together);
 * nobody waits for ever; all messages arrive in the end.
 */
#ifndef N
#define N 2
#endif
#ifndef M
#define M 3
#endif
#ifndef CAP
#define CAP 2
#endif
#ifndef ROUNDS
#define ROUNDS 2
#endif
/* Deliberate mistakes, to see that the model notices: 1 the stamp carries no round, 2 draining does
 * not wait for the position, 3 sends go on while suspended, 4 the rings survive a restart */
#ifndef BREAK
#define BREAK 0
#endif

typedef Stamp { byte round; byte position };
typedef Image { byte round; byte sent[N]; byte have[N] };

/* the segment */
chan ring[N * N] = [CAP] of { byte };
Stamp stamp[N * N];
byte counted; /* ranks, in the round now wanted */

/* the agent */
byte wanted, given_up, life;
byte ended; /* ranks that have sent and received everything */
bool over;
Image image[N];

inline segment_zero()
{
	d_step {
		k = 0;
		do
		:: k < N * N ->
			do
			:: nempty(ring[k]) && BREAK != 4 -> ring[k] ? dummy
			:: empty(ring[k]) || BREAK == 4 -> break
			od;
			stamp[k].round = 0; stamp[k].position = 0; k++
		:: else -> break
		od;
		counted = 0; k = 0; dummy = 0
	}
}

/* The images of one round fit together: b has what a had sent. */
inline images_fit()
{
	d_step {
		k = 0;
		do
		:: k < N * N ->
			assert(image[k / N].round == wanted);
			assert(image[k / N].sent[k % N] == image[k % N].have[k / N]); k++
		:: else -> break
		od;
		k = 0
	}
}

active proctype Agent()
{
	byte k, dummy, restarts;
	do
	:: wanted < ROUNDS && (wanted == 0 || counted == N || given_up == wanted) ->
		atomic { counted = 0; wanted++ }
	:: atomic { wanted > given_up && counted < N -> given_up = wanted }
	:: atomic { wanted > given_up && counted == N && restarts == 0 ->
		images_fit(); segment_zero();
		given_up = wanted; life++; restarts++ }
	:: atomic { ended == N && wanted == ROUNDS && (counted == N || given_up == wanted) ->
		over = true; break }
	od
}

#define ALIVE (mylife == life)
#define OUT(j) ring[i * N + (j)]
#define IN(j) ring[(j) * N + i]

/* Takes one record: poll, whether suspended or not. */
#define POLL(j)                                                                                \
	:: atomic { ALIVE && (j) < N && (j) != i && nempty(IN(j)) ->                           \
		IN(j) ? n; assert(n == have[j] + 1); have[j] = n; cursor[j]++; n = 0 }
/* Sends one record: only while not suspended. */
#define SEND(j)                                                                                \
	:: atomic { ALIVE && (!round || (BREAK == 3 && !saved)) && (j) < N && (j) != i && sent[j] < M && nfull(OUT(j)) ->  \
		sent[j]++; tail[j]++; OUT(j) ! sent[j] }
/* Everything that j sent before its stamp of this round has been taken. */
#define DRAINED(j)                                                                             \
	((j) >= N || (j) == i ||                                                               \
	 ((stamp[((j) % N) * N + i].round == round ||                                         \
	   (BREAK == 1 && stamp[((j) % N) * N + i].round)) &&                                    \
	  (BREAK == 2 || stamp[((j) % N) * N + i].position == cursor[(j) % N])))

inline stamps_write(r)
{
	d_step {
		k = 0;
		do
		:: k < N ->
			stamp[i * N + k].round = r; stamp[i * N + k].position = tail[k]; k++
		:: else -> break
		od;
		k = 0
	}
}

/* In a new process: private state is the image's, ring positions begin again. */
inline restore()
{
	d_step {
		k = 0;
		do
		:: k < N ->
			sent[k] = image[i].sent[k]; have[k] = image[i].have[k];
			tail[k] = 0; cursor[k] = 0; k++
		:: else -> break
		od;
		k = 0; round = 0; saved = false; last = image[i].round; mylife = life
	}
}

inline capture()
{
	d_step {
		k = 0; image[i].round = round;
		do
		:: k < N -> image[i].sent[k] = sent[k]; image[i].have[k] = have[k]; k++
		:: else -> break
		od;
		k = 0; saved = true; counted++
	}
}

#define ALL_THERE                                                                              \
	((i == 0 || (sent[0] == M && have[0] == M)) && (i == 1 || (sent[1] == M && have[1] == M)) && \
	 (N < 3 || i == 2 || (sent[2 % N] == M && have[2 % N] == M)))

active [N] proctype Rank()
{
	byte i = _pid - 1;
	byte sent[N], have[N], tail[N], cursor[N];
	byte k, n, mylife, last; /* the newest checkpoint begun */
	byte round;		 /* the one we are suspended for; 0: none */
	bool saved, done;
	do
	SEND(0)
	SEND(1)
	SEND(2)
	POLL(0)
	POLL(1)
	POLL(2)
	/* suspend_start */
	:: atomic { ALIVE && !round && wanted > last && wanted > given_up ->
		round = wanted; last = wanted }
		if
		:: atomic { ALIVE -> stamps_write(round) }
		:: atomic { !ALIVE -> skip }
		fi
	/* drained: save, count in */
	:: atomic { ALIVE && round && !saved && round > given_up && round == wanted &&
		    DRAINED(0) && DRAINED(1) && DRAINED(2) -> capture() }
	/* everybody has counted in, or it is given up: resume */
	:: atomic { ALIVE && round && ((saved && round == wanted && counted == N) ||
				       (saved && round < wanted) || round <= given_up) ->
		stamps_write(0); round = 0; saved = false }
	/* killed and restarted */
	:: atomic { !ALIVE -> restore();
		if :: done -> ended--; done = false :: else -> skip fi }
	:: atomic { ALIVE && !round && !done && ALL_THERE -> ended++; done = true }
	:: atomic { over && ALIVE && !round -> break }
	od
}
