/* The pause of a device process, and its capture, end and restore, at any moment of its work.
 * Words and invariants: docs/offload.md, 'Draining'. Checked exhaustively by tests/spin_pause.sh.
 *
 * The program: CALLERS threads make CALLS calls each, one thread copies, one takes ROUNDS snapshots,
 * with DESTROY one may destroy the process. The device process: a main thread takes messages, a worker for each
 * caller executes calls and sends results, in two parts. A snapshot saves the buffers first and the
 * image later. With terminate the connection is cut, and the process is made again from both.
 *
 * Checked: nothing is under way when the buffers are saved; a message comes whole, and while the
 * process may take it; one request waits for an answer at a time; the counter of the program, the
 * private one of the device process and the one in its buffer agree at each result; no snapshot is
 * begun in the middle of a destruction; nobody waits for ever; all calls end.
 */
#ifndef CALLERS
#define CALLERS 2
#endif
#ifndef CALLS
#define CALLS 1
#endif
#ifndef ROUNDS
#define ROUNDS 1
#endif
#ifndef DESTROY
#define DESTROY 0
#endif
/* Deliberate mistakes, to see that the model notices:
 * 1 a pause does not wait for calls that are being sent, 2 nor for copies and requests,
 * 3 nor, in the device process, for results that are being sent, 4 the marker overtakes messages,
 * 5 threads are not stopped, 6 the process ends before its snapshot is on the disk,
 * 7 a snapshot begins in the middle of a destruction */
#ifndef BREAK
#define BREAK 0
#endif

mtype = { RUN, COPY, PAUSE, RESUME, HEAD, TAIL, DONE };
chan to_device = [8] of { mtype, byte };
chan to_host = [8] of { mtype, byte };

/* the program */
bool life, channel, send; /* its locks: held? */
bool asked, answered, gone, in_destruction;
byte sent[CALLERS], received[CALLERS];

/* the device process: what its image has, but for the buffer */
typedef Process { bool stopped; bool paused; bool results; byte queue[CALLERS], phase[CALLERS], counter[CALLERS] };
Process process;
byte buffer[CALLERS];
bool ended; /* and not made again */

inline take(lock)
{
	atomic { !lock -> lock = true }
}

inline ask(op)
{
	atomic { assert(!asked); asked = true; answered = false }
	to_device ! op(0);
	answered || gone;
	asked = false
}

/* ---- the program ---- */

proctype Caller(byte i)
{
	byte made;

	do
	:: made < CALLS && !gone ->
		atomic { !send -> send = true; made++; sent[i]++ }
		atomic { to_device ! RUN(i); send = false }
		received[i] == made || gone
	:: made == CALLS || gone -> break
	od
}

active proctype Copier()
{
	take(channel);
	if
	:: gone -> skip
	:: else ->
		atomic { assert(!asked); asked = true; answered = false }
		take(send);
		to_device ! COPY(0);
		send = false;
		answered || gone;
		asked = false
	fi;
	channel = false
}

active proctype Receiver()
{
	mtype m;
	byte i, value;

end:	do
	:: to_host ? HEAD(i) ->
		if
		:: to_host ? m, value ->
			atomic {
				assert(m == TAIL);
				received[i]++;
				assert(received[i] <= sent[i] && value == received[i])
			}
		:: gone && empty(to_host) -> break
		fi
	:: to_host ? DONE(i) -> assert(asked || gone); answered = true
	:: to_host ? TAIL(i) -> assert(false)
	:: gone -> break
	od
}

#if DESTROY
active proctype Destroyer()
{
	if
	:: skip
	:: take(life);
		in_destruction = true;
		gone = true;
		in_destruction = false;
		life = false
	fi
}
#endif

inline cut()
{
	do
	:: nempty(to_device) -> to_device ? m, value
	:: nempty(to_host) -> to_host ? m, value
	:: empty(to_device) && empty(to_host) -> break
	od;
	ended = true
}

inline stop()
{
	if :: BREAK != 7 -> take(life) :: else fi;
	assert(!in_destruction);
	if :: BREAK != 2 -> take(channel) :: else fi;
	if :: BREAK != 1 -> take(send) :: else fi;
	if :: !gone -> ask(PAUSE) :: else fi;
	life = false
}

/* Invariant 1, then the buffers, and later the rest. */
inline save()
{
	d_step {
		assert(gone || (empty(to_device) && empty(to_host)));
		k = 0;
		do :: k < CALLERS -> buffer_saved[k] = buffer[k]; k++ :: else -> break od
	}
	d_step {
		image.stopped = process.stopped; image.paused = process.paused;
		image.results = process.results;
		k = 0;
		do
		:: k < CALLERS ->
			image.queue[k] = process.queue[k]; image.phase[k] = process.phase[k];
			image.counter[k] = process.counter[k]; k++
		:: else -> break
		od
	}
}

inline restore()
{
	d_step {
		process.stopped = image.stopped; process.paused = image.paused;
		process.results = image.results;
		k = 0;
		do
		:: k < CALLERS ->
			process.queue[k] = image.queue[k]; process.phase[k] = image.phase[k];
			process.counter[k] = image.counter[k]; buffer[k] = buffer_saved[k]; k++
		:: else -> break
		od;
		ended = false; k = 0
	}
}

inline terminate()
{
	take(life);
	if
	:: gone -> skip
	:: else ->
		if :: BREAK == 6 -> atomic { cut() } :: else fi;
		if
		:: skip /* the disk is full: it goes on as before */
		:: atomic { cut() }; restore()
		fi
	fi;
	life = false
}

active proctype Snapshot()
{
	byte k, value, round, buffer_saved[CALLERS];
	mtype m;
	Process image;

	do
	:: round == ROUNDS || gone -> break
	:: else ->
		round++;
		stop();
		if :: !gone -> save() :: else fi;
		if :: terminate() :: skip fi;
		take(life);
		if :: !gone -> ask(RESUME) :: else fi;
		send = false;
		channel = false;
		life = false
	od
}

/* ---- the device process ---- */

inline take_own()
{
	if
	:: atomic { !process.results -> process.results = true }
	:: gone -> goto over
	fi
}

active proctype Main()
{
	byte i;

end:	do
	:: !ended && to_device ?[RUN(i)] -> to_device ? RUN(i);
		assert(!process.paused || gone);
		take_own();
		atomic { process.queue[i]++; process.results = false }
	:: !ended && to_device ?[COPY(i)] -> to_device ? COPY(i);
		assert(!process.paused || gone);
		take_own();
		to_host ! DONE(0);
		process.results = false
	:: !ended && BREAK != 4 && to_device ?[PAUSE(i)] -> to_device ? PAUSE(i);
		goto pause
	:: !ended && BREAK == 4 && to_device ??[PAUSE(i)] -> to_device ?? PAUSE(i);
pause:		if :: BREAK != 3 -> take_own() :: else fi;
		atomic { process.stopped = (BREAK != 5); process.paused = true }
		to_host ! DONE(0)
	:: !ended && to_device ?[RESUME(i)] -> to_device ? RESUME(i);
		atomic { process.paused = false; process.stopped = false }
		to_host ! DONE(0);
		process.results = false
	:: gone -> break
	od;
over:	skip
}

#define RUNS (!process.stopped && !ended)

proctype Worker(byte i)
{
end:	do
	:: atomic { RUNS && process.phase[i] == 0 && process.queue[i] > 0 -> /* the function */
		process.queue[i]--;
		process.counter[i]++; buffer[i]++;
		assert(process.counter[i] == buffer[i]);
		process.phase[i] = 1 }
	:: atomic { RUNS && process.phase[i] == 1 && !process.results ->
		process.results = true;
		to_host ! HEAD(i); process.phase[i] = 2 }
	:: atomic { RUNS && process.phase[i] == 2 ->
		assert(process.counter[i] == buffer[i]);
		to_host ! TAIL(process.counter[i]);
		process.results = false; process.phase[i] = 0 }
	:: gone -> break
	od
}

init {
	byte i;

	atomic {
		do :: i < CALLERS -> run Caller(i); run Worker(i); i++ :: else -> break od
	}
}
