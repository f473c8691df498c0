/* An agent is replaced (docs/nodes.md, 'An agent is replaced'; src/agent/supervisor/node_record.h): is each byte that a
 * rank prints, each packet that it sends, and each answer to the head there exactly once, whenever
 * agents are killed? Checked exhaustively by tests/spin_adopt.sh.
 *
 * A rank prints bytes into a pipe and sends packets over a socket; the head sends commands, each of
 * which launches a process, and is answered. The agent may be killed before each of its steps, up
 * to DEATHS times, and another one begins with what is in the book, in pipes and in sockets. Bytes
 * are counted from 1, packets from PACKET + 1, answers from ANSWER + 1; the head sees whether they
 * come in order, and the model does not end before all are there.
 *
 * The book's second half, which counts with one store, is here a step of its own; what a turn has
 * done to private memory is lost with its agent.
 */
#ifndef BYTES
#define BYTES 3
#endif
#ifndef PACKETS
#define PACKETS 2
#endif
#ifndef COMMANDS
#define COMMANDS 2
#endif
#ifndef DEATHS
#define DEATHS 2
#endif
/* Deliberate mistakes, to see that the model notices: 1 bytes are read into private memory, 2 what
 * lies in the book is taken without a look at its number, 3 messages go out before their turn is
 * written down, 4 launches are not numbered, 5 packets are received into private memory, 6 nothing
 * is noted before bytes go into the pipe in front of the head, 7 a turn is written down in two
 * stores */
#ifndef BREAK
#define BREAK 0
#endif

#define PACKET 10
#define ANSWER 20
#define RING 16

/* what outlives agents: the kernel's, the supervisor's, the book's */
chan pipe = [2] of { byte };
chan stage = [2] of { byte };	   /* between the pipe and the book */
chan socket = [2] of { byte };
chan front = [2] of { byte };	   /* between the ring and the head */
chan link = [2] of { byte };
byte commands;			   /* that have come from the head */
byte launched, launched_for;	   /* processes; the command of the newest */
byte ring[RING];
byte out_begin;			   /* what lies before is in front, or at the head */
bool moving;
byte moving_from, moving_had;
byte piece_number, piece_len, piece_got, piece[2];
byte packet_number, packet;
/* the state that is written down */
byte w_frames, w_pieces, w_packets, w_tail;

/* the agent's own */
byte frames, pieces, packets, tail, n, b;

byte deaths;
bool die;
byte bytes_seen, packets_seen, answers_seen;
#define ALL (bytes_seen == BYTES && packets_seen == PACKETS && answers_seen == COMMANDS)

inline say(x)
{
	ring[tail] = x;
	tail = tail + 1;
	if
	:: BREAK == 3 -> link ! x; out_begin = tail
	:: else
	fi
}

inline write_down()
{
	if
	:: BREAK == 7 ->
		w_tail = tail;
		d_step { w_frames = frames; w_pieces = pieces; w_packets = packets }
	:: else ->
		d_step { w_frames = frames; w_pieces = pieces; w_packets = packets; w_tail = tail }
	fi
}

/* The piece in the book goes on its way, and that is written down. */
inline take_piece()
{
	n = 0;
	do
	:: n < piece_len -> say(piece[n]); n = n + 1
	:: else -> break
	od;
	pieces = piece_number;
	write_down()
}

/* What is in the stage comes into the book, behind what has come. */
inline unstage()
{
	do
	:: piece_got < piece_len && len(stage) > 0 ->
		atomic { stage ? b; piece[piece_got] = b; piece_got = piece_got + 1; b = 0 }
	:: else -> break
	od
}

inline read_bytes()
{
	if
	:: BREAK == 1 ->
		pipe ? b;
		say(b);
		b = 0;
		write_down()
	:: else ->
		piece_number = 0;
		piece_len = 0;
		piece_got = 0;
		piece_number = pieces + 1;
		/* splice: one or two bytes, in one step of the kernel */
		atomic {
			pipe ? b; stage ! b;
			if
			:: len(pipe) > 0 -> pipe ? b; stage ! b
			:: true
			fi;
			b = 0
		}
		piece_len = len(stage);
		unstage();
		take_piece()
	fi
}

inline take_packet()
{
	say(packet);
	packets = packet_number;
	write_down()
}

inline receive_packet()
{
	if
	:: BREAK == 5 ->
		socket ? b;
		say(b);
		b = 0;
		write_down()
	:: else ->
		packet_number = 0;
		packet = 0;
		packet_number = packets + 1;
		socket ? packet;
		take_packet()
	fi
}

/* A process is launched once for a command, however often it is asked for. */
inline obey()
{
	atomic {
		if
		:: BREAK == 4 || launched_for != frames + 1 ->
			launched = launched + 1;
			launched_for = frames + 1
		:: else
		fi
	}
	say(ANSWER + frames + 1);
	frames = frames + 1;
	write_down()
}

/* From the ring into the pipe in front of the head; from there on the kernel has it. */
inline push()
{
	moving_from = out_begin;
	moving_had = len(front);
	if
	:: BREAK != 6 -> moving = true
	:: else
	fi;
	front ! ring[out_begin];
	out_begin = moving_from + 1;
	moving = false
}

inline begin()
{
	d_step { frames = w_frames; pieces = w_pieces; packets = w_packets; tail = w_tail }
	if
	:: moving ->
		/* nobody else takes from front meanwhile: splice is the agent's, too */
		out_begin = moving_from + (len(front) - moving_had);
		moving = false
	:: else
	fi;
	if
	:: piece_number > pieces || (BREAK == 2 && piece_number > 0) ->
		if
		:: piece_len == 0 -> piece_len = len(stage)
		:: else
		fi;
		unstage();
		take_piece()
	:: else
	fi;
	if
	:: (packet_number > packets || (BREAK == 2 && packet_number > 0)) && packet != 0 ->
		take_packet()
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
		:: len(pipe) > 0 -> read_bytes()
		:: len(socket) > 0 -> receive_packet()
		:: frames < commands -> obey()
		:: out_begin < w_tail && len(front) < 2 -> push()
		:: len(front) > 0 && len(link) < 2 -> atomic { front ? b; link ! b; b = 0 }
		od
	} unless { die };
	/* with it goes what is its own */
	d_step {
		die = false;
		frames = 0; pieces = 0; packets = 0; tail = 0; n = 0; b = 0
	}
	goto again
}

active proctype killer()
{
end_killer:
	do
	:: deaths < DEATHS && !die -> atomic { deaths = deaths + 1; die = true }
	od
}

active proctype rank()
{
	byte i = 0, j = 0;

	do
	:: i < BYTES -> i = i + 1; pipe ! i
	:: j < PACKETS -> j = j + 1; socket ! (PACKET + j)
	:: i == BYTES && j == PACKETS -> break
	od
}

active proctype head()
{
	byte x;

	do
	:: commands < COMMANDS -> commands = commands + 1
	:: link ? x ->
		if
		:: x < PACKET -> bytes_seen = bytes_seen + 1; assert(x == bytes_seen)
		:: x > PACKET && x < ANSWER ->
			packets_seen = packets_seen + 1;
			assert(x == PACKET + packets_seen)
		:: x > ANSWER ->
			answers_seen = answers_seen + 1;
			assert(x == ANSWER + answers_seen)
		fi
	:: ALL && commands == COMMANDS -> break
	od;
	assert(launched == COMMANDS)
}
