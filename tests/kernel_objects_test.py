#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What processes of a job have between them in the kernel: System V objects, POSIX message queues, descriptors on
their way, connections that nobody has accepted, terminals, inotify, shared counters. A checkpoint, everything is
spoiled, a kill, a rollback: all is as it was at the checkpoint."""

from lib import *

CLONE_NEWIPC, CLONE_NEWNET = 0x08000000, 0x40000000
# objects of its own, so that nothing is left on the machine; numbers are asked for there only
OWN_IPC = __import__("ctypes").CDLL(None).unshare(CLONE_NEWIPC) == 0
# ports, too, which others may take between the kill and the restart
if OWN_IPC and __import__("ctypes").CDLL(None).unshare(CLONE_NEWNET) == 0:
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)

C_WAIT = """
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#define OK(x) do { if (!(x)) { printf("line %d: not so: %s\\n", __LINE__, #x); fflush(stdout); exit(1); } } while (0)
static void note(const char *name) { FILE *f = fopen(name, "w"); OK(f); fclose(f); }
/* 1: all is to be spoiled; 0: to be looked at */
static int wait_for_word(void)
{
	for (;;) {
		if (!access("go", F_OK)) return 0;
		if (!access("spoil", F_OK) && access("spoiled", F_OK)) return 1;
		usleep(10000);
	}
}
"""


def build(s, name, source, *flags):
    r = s.run("gcc", "-O1", "-Wall", "-o", s.path(name), s.write(name + ".c", C_WAIT + source), "-pthread", *flags)
    expect(r.status == 0, r)
    return s.path(name)


def spoiled_and_killed(s, *program, options=()):
    """Its output, after it has spoiled everything, was killed and has been rolled back."""
    if OWN_IPC:
        s.run("ipcrm", "--all")
    job = s.hale_start(1, *program, options=["--no-mpi", *options])
    job.until(lambda: os.path.exists(s.path("there")), "the program to have made everything")
    job.checkpoint()
    pid = job.ranks(1)[0]
    s.write("spoil", "")
    job.until(lambda: os.path.exists(s.path("spoiled")), "the program to have spoiled everything")
    os.unlink(s.path("spoil"))
    os.kill(pid, signal.SIGKILL)
    job.until(lambda: (j := job.info()) and j["restarts"] == 1 and [r["state"] for r in j["ranks"]] == ["running"],
              "the rank runs again")
    s.write("go", "")
    r = job.wait()
    expect(r.status == 0, r)
    expect("from its beginning" not in r.err, r)
    return r.out


SYSV = """
#include <errno.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
struct message { long type; char text[16]; };
enum { KEY = 0x4711, LATER = 0x4712, BIG = 5 << 20 };
int main(int argc, char **argv)
{
	int removes = argc > 1;
	int a = shmget(IPC_PRIVATE, 5000, 0600), b = shmget(KEY, BIG, IPC_CREAT | 0640), c = shmget(IPC_PRIVATE, 9000, 0600);
	int set = semget(KEY, 3, IPC_CREAT | IPC_EXCL | 0600), q = msgget(KEY, IPC_CREAT | 0600);
	struct message m = {3, "first"};
	unsigned short values[3] = {1, 20, 300};
	OK(a >= 0 && b >= 0 && c >= 0 && set >= 0 && q >= 0);
	char *at = shmat(a, NULL, 0), *gone = shmat(c, NULL, 0), *big = shmat(b, NULL, 0), *view = shmat(a, NULL, SHM_RDONLY);
	strcpy(at, "attached"); strcpy(gone, "removed"); strcpy(big, "start"); strcpy(big + BIG - 10, "end");
	OK(!shmctl(c, IPC_RMID, NULL) && !shmdt(big));
	OK(!semctl(set, 0, SETALL, values));
	OK(!msgsnd(q, &m, 6, 0)); m = (struct message){2, "second one"}; OK(!msgsnd(q, &m, 11, 0));
	note("there");
	if (wait_for_word()) {
		strcpy(at, "spoiled"); strcpy(gone, "spoiled");
		big = shmat(b, NULL, 0); memset(big, 'x', BIG);
		values[0] = 9; OK(!semctl(set, 0, SETALL, values));
		OK(msgrcv(q, &m, 16, 0, 0) == 6); m.type = 7; OK(!msgsnd(q, &m, 1, 0));
		OK(msgget(LATER, IPC_CREAT | IPC_EXCL | 0600) >= 0 && semget(LATER, 1, IPC_CREAT | IPC_EXCL | 0600) >= 0);
		OK(shmget(LATER, 1, IPC_CREAT | IPC_EXCL | 0600) >= 0);
		if (removes) {
			OK(!shmdt(big) && !shmctl(b, IPC_RMID, NULL) && !semctl(set, 0, IPC_RMID) && !msgctl(q, IPC_RMID, NULL));
			OK(shmget(KEY, 100, IPC_CREAT | IPC_EXCL | 0600) >= 0 && semget(KEY, 1, IPC_CREAT | IPC_EXCL | 0600) >= 0);
		}
		note("spoiled");
		pause();
	}
	OK(!strcmp(at, "attached") && !strcmp(view, "attached") && !strcmp(gone, "removed"));
	strcpy(at, "one"); OK(!strcmp(view, "one"));
	OK(shmget(KEY, 0, 0) == b && semget(KEY, 0, 0) == set && msgget(KEY, 0) == q);
	big = shmat(b, NULL, 0);
	OK(!strcmp(big, "start") && !strcmp(big + BIG - 10, "end"));
	for (int i = 6; i < BIG - 10; i++) OK(!big[i]);
	OK(!semctl(set, 0, GETALL, values) && values[0] == 1 && values[1] == 20 && values[2] == 300);
	OK(msgrcv(q, &m, 16, 2, IPC_NOWAIT) == 11 && !strcmp(m.text, "second one"));
	OK(msgrcv(q, &m, 16, 0, IPC_NOWAIT) == 6 && m.type == 3 && !strcmp(m.text, "first"));
	OK(msgrcv(q, &m, 16, 0, IPC_NOWAIT) == -1 && errno == ENOMSG);
	OK(msgget(LATER, IPC_CREAT | IPC_EXCL | 0600) >= 0 && semget(LATER, 1, IPC_CREAT | IPC_EXCL | 0600) >= 0);
	OK(!shmctl(b, IPC_RMID, NULL) && !shmdt(big) && shmat(b, NULL, 0) == (void *)-1);
	OK(!shmdt(at) && !shmdt(view) && !shmdt(gone));
	puts("right");
	return 0;
}
"""


@test
def system_v_objects_are_as_they_were(s):
    if not OWN_IPC:
        skip("no right to a namespace of its own")
    exe = build(s, "sysv", SYSV)
    expect(spoiled_and_killed(s, exe) == "right\n")


@test
def system_v_objects_that_are_gone_come_back_under_their_numbers(s):
    if not OWN_IPC or not ids_allowed():
        skip("numbers can't be asked for here")
    exe = build(s, "sysv", SYSV)
    expect(spoiled_and_killed(s, exe, "removes") == "right\n")


TURNS = """
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/wait.h>
enum { ROUNDS = 300 };
int main(void)
{
	struct { long type; int value; } m = {1, 0};
	int id = shmget(IPC_PRIVATE, 4096, 0600), set = semget(IPC_PRIVATE, 2, 0600), q = msgget(IPC_PRIVATE, 0600);
	int *sum = shmat(id, NULL, 0);
	struct sembuf own = {0, 1, 0};
	OK(id >= 0 && set >= 0 && q >= 0 && !semop(set, &own, 1));
	for (int me = 0; me < 2; me++)
		if (!fork()) {
			for (int i = 0; i < ROUNDS; i++) {
				struct sembuf take = {me, -1, 0}, give = {!me, 1, 0};
				OK(!semop(set, &take, 1));
				sum[0] = sum[0] * 7 % 1000003 + me + 1;
				sum[1 + me]++;
				m.value = i; OK(!msgsnd(q, &m, sizeof(int), 0));
				usleep(1500);
				OK(!semop(set, &give, 1));
			}
			_exit(0);
		}
	long all = 0;
	for (int i = 0; i < 2 * ROUNDS; i++) {
		OK(msgrcv(q, &m, sizeof(int), 0, 0) == sizeof(int));
		all += m.value;
	}
	while (wait(NULL) > 0)
		;
	printf("%d %d %d %ld\\n", sum[0], sum[1], sum[2], all);
	shmctl(id, IPC_RMID, NULL); semctl(set, 0, IPC_RMID); msgctl(q, IPC_RMID, NULL);
	return 0;
}
"""


@test
def processes_that_take_turns_by_system_v_objects_go_on(s):
    """A parent and two children, killed twice while they run."""
    if not OWN_IPC or not ids_allowed():
        skip("processes can't have their ids again here")
    exe = build(s, "turns", TURNS)
    r = s.run(exe)
    expect(r.status == 0, r)
    for i in range(2):
        k = s.hale_run(1, exe, options=["--no-mpi", "--ckpt-every", "100ms", "--report", "report.json",
                                        "--inject", "kill:rank=0,at-ckpt=3", "--inject", "kill:rank=0,at-ckpt=7"])
        expect(k.status == 0 and k.out == r.out, k)
        expect(all(f["rolled_back_to"] > 0 for f in s.report()["failures"]), s.report())
        expect(s.report()["restarts"] >= 1, s.report())


RANKS = """
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
enum { KEY = 0x4715, ROUNDS = 200 };
static void wait_for(const char *name) { while (access(name, F_OK)) usleep(2000); }
int main(void)
{
	struct { long type; int value; } m = {1, 0};
	struct sembuf own = {0, 1, 0};
	int me = atoi(getenv("HALE_RANK")), id, set, q;
	if (me == 0) {
		id = shmget(IPC_PRIVATE, 4096, 0600); set = semget(KEY, 2, IPC_CREAT | IPC_EXCL | 0600); q = msgget(IPC_PRIVATE, 0600);
		OK(id >= 0 && set >= 0 && q >= 0 && !semop(set, &own, 1));
		FILE *f = fopen("numbers.new", "w");
		OK(f && fprintf(f, "%d %d", id, q) > 0 && !fclose(f) && !rename("numbers.new", "numbers"));
	} else {
		wait_for("numbers");
		FILE *f = fopen("numbers", "r");
		OK(f && fscanf(f, "%d %d", &id, &q) == 2 && !fclose(f) && (set = semget(KEY, 2, 0)) >= 0);
	}
	int *sum = shmat(id, NULL, 0);
	OK(sum != (void *)-1);
	note(me ? "attached1" : "attached0");
	wait_for("attached0"); wait_for("attached1");
	if (me == 0)
		OK(!shmctl(id, IPC_RMID, NULL)); /* it goes with the last of them */
	for (int i = 0; i < ROUNDS; i++) {
		struct sembuf take = {me, -1, 0}, give = {!me, 1, 0};
		OK(!semop(set, &take, 1));
		sum[0] = sum[0] * 7 % 1000003 + me + 1;
		sum[1 + me]++;
		m.value = i; OK(!msgsnd(q, &m, sizeof(int), 0));
		usleep(4000);
		OK(!semop(set, &give, 1));
	}
	if (me)
		return 0;
	OK(!semop(set, &(struct sembuf){0, -1, 0}, 1)); /* the other one has ended its last turn */
	long all = 0;
	for (int i = 0; i < 2 * ROUNDS; i++, all += m.value)
		OK(msgrcv(q, &m, sizeof(int), 0, 0) == sizeof(int));
	printf("%d %d %d %ld\\n", sum[0], sum[1], sum[2], all);
	OK(!semctl(set, 0, IPC_RMID) && !msgctl(q, IPC_RMID, NULL));
	return 0;
}
"""


@test
def ranks_that_take_turns_by_system_v_objects_go_on(s):
    """Their images are of one moment, and none runs on before the other one has come back."""
    if not OWN_IPC or not ids_allowed():
        skip("numbers can't be asked for here")
    exe = build(s, "ranks", RANKS)
    folders = [s.path(name) for name in ("alone", "killed", "killed.more")]
    for f in folders:
        os.mkdir(f)
    alone = s.hale_run(2, exe, options=["--no-mpi", "--ckpt-every", "off", "--wdir", folders[0]])
    expect(alone.status == 0, alone)
    for f in folders[1:]:
        r = s.hale_run(2, exe, options=["--no-mpi", "--ckpt-every", "100ms", "--wdir", f, "--report", "report.json",
                                        "--inject", "kill:rank=0,at-ckpt=3", "--inject", "kill:rank=1,at-ckpt=7"])
        expect(r.status == 0 and r.out == alone.out, alone, r)
        expect(all(k["rolled_back_to"] > 0 for k in s.report()["failures"]), s.report(), r)
        expect(s.report()["restarts"] >= 1, s.report())


TALKS = """
import os, socket, struct, sys, time
me, ahead, rounds = int(os.environ["HALE_RANK"]), 5, 500
if me == 0:
    at, door = socket.create_server(("127.0.0.1", 0)), socket.socket(socket.AF_UNIX)
    door.bind("door")
    door.listen()
    with open("port.new", "w") as f:
        f.write(str(at.getsockname()[1]))
    os.rename("port.new", "port")
    ends = at.accept()[0], door.accept()[0]
else:
    while not os.path.exists("port"):
        time.sleep(0.002)
    ends = socket.create_connection(("127.0.0.1", int(open("port").read()))), socket.socket(socket.AF_UNIX)
    ends[1].connect("door")
names = [(e.getsockname(), e.getpeername()) for e in ends]
total = 0
for i in range(rounds + ahead):
    for k, e in enumerate(ends):
        if i < rounds:
            e.sendall(struct.pack("I", i * i + 7 * me + k))
        if i >= ahead:
            w = struct.unpack("I", e.recv(4, socket.MSG_WAITALL))[0]
            total = (total * 31 + w) % 1000003
            if w != (i - ahead) ** 2 + 7 * (1 - me) + k:
                sys.exit("connection %d of rank %d gives %d as its message %d" % (k, me, w, i - ahead))
    time.sleep(0.003 if me else 0.002)
print(me, total, names == [(e.getsockname(), e.getpeername()) for e in ends], flush=True)
if me == 0:
    os.unlink("door")
"""


def two_ranks_go_on(s, text):
    """Each of them is killed once, and both print what they print undisturbed, which comes back."""
    for f in ("alone", "killed"):
        os.mkdir(s.path(f))
    program = s.write("program.py", text)
    alone = s.hale_run(2, PYTHON, program, options=["--no-mpi", "--ckpt-every", "off", "--wdir", s.path("alone")])
    expect(alone.status == 0, alone)
    r = s.hale_run(2, PYTHON, program, options=["--no-mpi", "--ckpt-every", "100ms", "--wdir", s.path("killed"), "--report",
                                                "report.json", "--inject", "kill:rank=0,after=1s", "--inject",
                                                "kill:rank=1,after=1.9s"])
    expect(r.status == 0 and sorted(r.out.splitlines()) == sorted(alone.out.splitlines()), alone, r)
    expect(all(k["rolled_back_to"] > 0 for k in s.report()["failures"]), s.report(), r)
    expect(s.report()["restarts"] >= 1, s.report())
    return alone.out


@test
def ranks_that_have_connections_to_each_other_go_on(s):
    two_ranks_go_on(s, TALKS)


# One rank calls the other one a thousand times, says a number, and has left before that is heard.
MEETS = """
import ctypes, os, socket, struct, sys, threading, time
me, rounds = int(os.environ["HALE_RANK"]), 1000
# as a library beside the program that may not be stopped for a moment: the other rank's image is taken before
def library():
    hale = ctypes.CDLL(None)
    while True:
        hale.hale_guest_enter()
        time.sleep(0.02)
        hale.hale_guest_leave()
        time.sleep(0.005)
def take(number):
    with door.accept()[0] as end:
        got = end.recv(4, socket.MSG_WAITALL)
    if got != struct.pack("I", number):
        sys.exit("%r has come, and not %d" % (got, number))
def say(number):
    while True:
        with socket.socket(socket.AF_UNIX) as end:
            try:
                end.connect("door")
                return end.sendall(struct.pack("I", number))
            except (FileNotFoundError, ConnectionRefusedError):
                time.sleep(0.002)
if me == 0:
    door = socket.socket(socket.AF_UNIX)
    door.bind("door")
    door.listen()
else:
    threading.Thread(target=library, daemon=True).start()
for i in range(rounds):
    take(i) if me == 0 else say(i)
    time.sleep(0.003 * me)
print(me, rounds)
"""


@test
def ranks_that_meet_and_part_all_the_time_go_on(s):
    """What one rank has nothing of any more at its image, the other one had at its own, or not yet."""
    program = s.write("meets.py", MEETS)
    kills = [x for k in range(10) for x in ("--inject", f"kill:rank={k % 2},after={0.8 + 0.5 * k:.1f}s")]
    r = s.hale_run(2, PYTHON, program, options=["--no-mpi", "--ckpt-every", "20ms", "--max-restarts", "20", "--report",
                                                "report.json", *kills])
    expect(r.status == 0 and sorted(r.out.splitlines()) == ["0 1000", "1 1000"], r)
    expect(s.report()["restarts"] >= 1, s.report())


# The second one says its first number while only the first one stands still already.
MEETS_ONCE = """
import ctypes, os, socket, sys, threading, time
me = int(os.environ["HALE_RANK"])
def wait_for(name):
    while not os.path.exists(name):
        time.sleep(0.005)
def library():
    wait_for("hold")
    hale = ctypes.CDLL(None)
    hale.hale_guest_enter()
    open("held", "w").close()
    time.sleep(3)
    hale.hale_guest_leave()
def take():
    with door.accept()[0] as end:
        return end.recv(9)
def say(number):
    with socket.socket(socket.AF_UNIX) as end:
        end.connect("door")
        end.sendall(number)
door = socket.socket(socket.AF_UNIX)
if me == 0:
    door.bind("door")
    door.listen()
    open("there", "w").close()
    got = take()
    print(got, take() if got == b"first" else "", flush=True)
else:
    threading.Thread(target=library).start()
    wait_for("held")
    time.sleep(2)
    say(b"first")
    wait_for("go")
    say(b"second")
"""


@test
def ranks_that_meet_for_the_first_time_in_a_checkpoint_lose_nothing(s):
    program = s.write("once.py", MEETS_ONCE)
    job = s.hale_start(2, PYTHON, program, options=["--no-mpi"])
    job.until(lambda: os.path.exists(s.path("there")), "the program")
    s.write("hold", "")
    job.until(lambda: os.path.exists(s.path("held")), "the moment in which the other one may not be stopped")
    job.checkpoint()
    os.kill(job.ranks(2)[0], signal.SIGKILL)
    job.until(lambda: (j := job.info()) and j["restarts"] == 1 and all(r["state"] == "running" for r in j["ranks"]),
              "the ranks run again")
    s.write("go", "")
    r = job.wait()
    expect(r.status == 0 and r.out == "b'first' b'second'\n", r)


# Two named pipes, one each way, with words in both whenever a checkpoint comes.
PIPES = """
import os, struct, time
me, ahead, rounds = int(os.environ["HALE_RANK"]), 5, 500
for name in "there", "back":
    try:
        os.mkfifo(name)
    except FileExistsError:
        pass
if me == 0:
    out, into = open("there", "wb", buffering=0), open("back", "rb", buffering=0)
else:
    into, out = open("there", "rb", buffering=0), open("back", "wb", buffering=0)
total = 0
for i in range(rounds + ahead):
    if i < rounds:
        out.write(struct.pack("I", i * i + 7 * me))
    if i >= ahead:
        total = (total * 31 + struct.unpack("I", into.read(4))[0]) % 1000003
    time.sleep(0.003 if me else 0.002)
out.close()
print(me, total, into.read(1), flush=True)
"""


@test
def ranks_that_have_named_pipes_together_go_on(s):
    out = two_ranks_go_on(s, PIPES)
    expect(out.count("b''") == 2, out)


# One rank makes two pipes, three kinds of socket pairs, a pipe with tokens that both have whole, and a counter, and sends
# the other one its ends by SCM_RIGHTS. Words are in all of them whenever a checkpoint comes.
SENT = """
import os, socket, struct, sys, time
me, ahead, rounds, gates = int(os.environ["HALE_RANK"]), 5, 600, {100: "first", 400: "second"}
kinds = socket.SOCK_STREAM, socket.SOCK_SEQPACKET, socket.SOCK_DGRAM
if me == 0:
    door = socket.socket(socket.AF_UNIX)
    door.bind("door")
    door.listen()
    to = door.accept()[0]
    into, theirs = os.pipe()
    mine, out = os.pipe()
    pairs = [socket.socketpair(socket.AF_UNIX, k) for k in kinds]
    tokens, counter = os.pipe(), os.eventfd(0, os.EFD_SEMAPHORE)
    os.write(tokens[1], b"abc")
    socket.send_fds(to, [b"take"], [mine, theirs, *tokens, counter] + [b.fileno() for a, b in pairs])
    to.recv(1)
    for x in theirs, mine:
        os.close(x)
    for x in [to, door] + [b for a, b in pairs]:
        x.close()
    os.unlink("door")
    ends = [a for a, b in pairs]
    open("sent", "w").close()
else:
    to = socket.socket(socket.AF_UNIX)
    while True:
        try:
            to.connect("door")
            break
        except (FileNotFoundError, ConnectionRefusedError):
            time.sleep(0.002)
    into, out, *rest = socket.recv_fds(to, 9, 9)[1]
    tokens, counter = rest[:2], rest[2]
    ends = [socket.socket(fileno=x) for x in rest[3:]]
    to.send(b"x")
    to.close()
def say(k, data):
    os.write(out, data) if k == 0 else ends[k - 1].sendall(data)
def hear(k):
    if k == 0:
        return os.read(into, 4)
    return ends[k - 1].recv(4, socket.MSG_WAITALL)
total, held = 0, b""
for i in range(rounds + ahead):
    while i in gates and not os.path.exists(gates[i]):
        time.sleep(0.005)
    for k in range(1 + len(ends)):
        if i < rounds:
            say(k, struct.pack("I", i * i + 7 * me + k))
        if i >= ahead:
            w = struct.unpack("I", hear(k))[0]
            total = (total * 31 + w) % 1000003
            if w != (i - ahead) ** 2 + 7 * (1 - me) + k:
                sys.exit("end %d of rank %d gives %d as its message %d" % (k, me, w, i - ahead))
    held += os.read(tokens[0], 1)
    if me == 0:
        os.eventfd_write(counter, 2)
    elif i >= ahead:
        os.eventfd_read(counter), os.eventfd_read(counter)
    time.sleep(0.003 if me else 0.002)
    os.write(tokens[1], held)
    held = b""
os.close(out)
rest = os.read(into, 1)
if me:
    got = b"".join(os.read(tokens[0], 1) for _ in range(3))
    print(me, total, rest, sorted(got), sum(os.eventfd_read(counter) for _ in range(2 * ahead)), flush=True)
    ends[0].send(b"done")
else:
    ends[0].recv(4)
    print(me, total, rest, flush=True)
"""


@test
def ranks_that_have_sent_each_other_pipes_and_sockets_go_on(s):
    program = s.write("sent.py", SENT)
    gates = ["first", "second"]
    os.mkdir(s.path("alone"))
    for g in gates:
        s.write("alone/" + g, "")
    alone = s.hale_run(2, PYTHON, program, options=["--no-mpi", "--ckpt-every", "off", "--wdir", s.path("alone")])
    expect(alone.status == 0 and alone.out.count("b''") == 2, alone)
    job = s.hale_start(2, PYTHON, program, options=["--no-mpi"])
    job.until(lambda: os.path.exists(s.path("sent")), "the program")
    for k, g in enumerate(gates):
        job.checkpoint()
        os.kill(job.ranks(2)[k], signal.SIGKILL)
        job.until(lambda: (j := job.info()) and j["restarts"] == k + 1 and all(r["state"] == "running" for r in j["ranks"]),
                  "the ranks run again")
        s.write(g, "")
    r = job.wait()
    expect(r.status == 0 and sorted(r.out.splitlines()) == sorted(alone.out.splitlines()), alone, r)


# Both have both ends of a pipe.
WHOLE = """
import os, socket, time
me = int(os.environ["HALE_RANK"])
def wait_for(name):
    while not os.path.exists(name):
        time.sleep(0.005)
with socket.socket(socket.AF_UNIX) as s:
    if me == 0:
        s.bind("door")
        s.listen()
        open("there", "w").close()
        with s.accept()[0] as to:
            ends = os.pipe()
            socket.send_fds(to, [b"take"], ends)
            to.recv(1)
    else:
        wait_for("there")
        s.connect("door")
        ends = socket.recv_fds(s, 9, 2)[1]
        s.send(b"x")
if me == 0:
    open("sent", "w").close()
wait_for("go")
if me == 0:
    os.write(ends[1], b"word")
else:
    print(os.read(ends[0], 9), flush=True)
"""


@test
def what_ranks_have_sent_each_other_is_not_moved(s):
    job = s.hale_start(2, PYTHON, s.write("whole.py", WHOLE), options=["--no-mpi", "--nodes", "1", "--spares", "1"])
    job.until(lambda: os.path.exists(s.path("sent")), "the program")
    r = s.hale("migrate", job.id(), "--from", "node0")
    expect(r.status != 0 and "several ranks" in r.err, r)
    s.write("go", "")
    r = job.wait()
    expect(r.status == 0 and r.out == "b'word'\n", r)


# Two ranks have mapped a file that has no name any more. Each would get memory of its own.
MAPPED = """
import mmap, os, time
me = int(os.environ["HALE_RANK"])
def wait_for(name):
    while not os.path.exists(name):
        time.sleep(0.005)
if me == 0:
    with open("new", "wb") as f:
        f.write(bytes(4096))
    os.rename("new", "memory")
wait_for("memory")
with open("memory", "r+b") as f:
    m = mmap.mmap(f.fileno(), 4096)
open("there.%d" % me, "w").close()
if me == 0:
    wait_for("there.1")
    os.unlink("memory")
    open("gone", "w").close()
wait_for("go")
"""


@test
def memory_without_a_name_that_ranks_have_together_is_refused(s):
    program = s.write("mapped.py", MAPPED)
    job = s.hale_start(2, PYTHON, program, options=["--no-mpi"])
    job.until(lambda: os.path.exists(s.path("gone")), "the program")
    r = s.hale("ckpt", job.id())
    expect(r.status != 0 and "memory without a name" in r.err and "another rank" in r.err, r)
    s.write("go", "")
    r = job.wait()
    expect(r.status == 0, r)


STRANGER = """
#include <sys/ipc.h>
#include <sys/shm.h>
int main(int argc, char **argv)
{
	int id = shmget(0x4713, 4096, IPC_CREAT | 0600);
	OK(id >= 0 && shmat(id, NULL, 0) != (void *)-1);
	note(argv[1]);
	while (access("go", F_OK))
		usleep(10000);
	puts("done");
	return 0;
}
"""


@test
def memory_that_a_stranger_has_attached_is_refused_with_his_name(s):
    if not OWN_IPC:
        skip("no right to a namespace of its own")
    exe = build(s, "stranger", STRANGER)
    stranger = s.start(exe, "first")
    stranger.until(lambda: os.path.exists(s.path("first")), "the stranger")
    job = s.hale_start(1, exe, "second", options=["--no-mpi", "--ckpt-every", "100ms"])
    job.until_says(rf"no checkpoint: rank 0 can't be captured: it uses System V shared memory \d+, and so does process "
                   rf"{stranger.pid} \(stranger\)")
    s.write("go", "")
    expect(job.wait().status == 0 and stranger.wait().status == 0)
    s.run("ipcrm", "-M", "0x4713")


UNDOING = """
#include <sys/ipc.h>
#include <sys/sem.h>
#include <sys/wait.h>
static int set;
static void operate(int number, int change)
{
	struct sembuf op = {number, change, SEM_UNDO};
	OK(!semop(set, &op, 1));
}
static void child(void)
{
	operate(0, -1); operate(1, 2); operate(2, -1);
	OK(!semctl(set, 2, SETVAL, 9)); /* nothing is given back of it any more */
	pid_t heir = fork(); /* which has nothing to give back */
	if (!heir)
		_exit(wait_for_word() ? pause() : semctl(set, 0, GETVAL));
	note("there");
	if (wait_for_word()) {
		operate(0, 1); operate(1, -2); operate(2, -3);
		note("spoiled");
		pause();
	}
	int how;
	OK(waitpid(heir, &how, 0) == heir && how == 0);
	OK(semctl(set, 0, GETVAL) == 0 && semctl(set, 1, GETVAL) == 7 && semctl(set, 2, GETVAL) == 9);
	_exit(0);
}
int main(void)
{
	unsigned short values[3] = {1, 5, 4};
	set = semget(IPC_PRIVATE, 3, 0600);
	OK(set >= 0 && !semctl(set, 0, SETALL, values));
	pid_t pid = fork();
	if (!pid)
		child();
	int how;
	OK(waitpid(pid, &how, 0) == pid && how == 0);
	OK(semctl(set, 0, GETVAL) == 1 && semctl(set, 1, GETVAL) == 5 && semctl(set, 2, GETVAL) == 9);
	OK(!semctl(set, 0, IPC_RMID));
	puts("right");
	return 0;
}
"""


@test
def semaphores_are_given_back_at_the_end_of_who_has_taken_them(s):
    if not OWN_IPC or not ids_allowed():
        skip("processes can't have their ids again here")
    expect(spoiled_and_killed(s, build(s, "undoing", UNDOING)) == "right\n")


HUGE = """
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
enum { SIZE = 4 << 20 };
static int is_huge(void *at) { return munmap(at, 4096) != 0; }
int main(void)
{
	int id = shmget(0x4714, SIZE, IPC_CREAT | IPC_EXCL | SHM_HUGETLB | 0600);
	char *at = shmat(id, NULL, 0);
	OK(id >= 0 && at != (void *)-1);
	at[5] = 1; at[SIZE - 1] = 2;
	note("there");
	if (wait_for_word()) {
		memset(at, 'x', SIZE);
		OK(!shmdt(at) && !shmctl(id, IPC_RMID, NULL));
		note("spoiled");
		pause();
	}
	OK(at[5] == 1 && at[SIZE - 1] == 2 && !at[6] && !at[SIZE / 2] && is_huge(at));
	char *again = shmat(shmget(0x4714, 0, 0), NULL, 0);
	at[7] = 3;
	OK(again != (void *)-1 && again[7] == 3);
	OK(!shmctl(id, IPC_RMID, NULL));
	puts("right");
	return 0;
}
"""


def huge_pages(change):
    """Makes the machine have so many more, or fewer; the number that it has more then."""
    try:
        with open("/proc/sys/vm/nr_hugepages", "r+") as f:
            had = int(f.read())
            f.seek(0)
            f.write(str(had + change))
            f.flush()
            f.seek(0)
            return int(f.read()) - had
    except OSError:
        return 0


@test
def system_v_memory_comes_back_with_huge_pages(s):
    if not OWN_IPC or not ids_allowed():
        skip("numbers can't be asked for here")
    more = huge_pages(8)
    try:
        if more < 8:
            skip("no huge pages to be had here (vm.nr_hugepages)")
        expect(spoiled_and_killed(s, build(s, "huge", HUGE)) == "right\n")
    finally:
        huge_pages(-more)


QUEUES = """
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <string.h>
int main(void)
{
	struct mq_attr a = {.mq_maxmsg = 5, .mq_msgsize = 64};
	char text[64];
	unsigned priority;
	mqd_t q = mq_open("/hale-test", O_RDWR | O_CREAT | O_EXCL, 0640, &a);
	mqd_t sends = mq_open("/hale-test", O_WRONLY | O_NONBLOCK), gone = mq_open("/hale-gone", O_RDWR | O_CREAT, 0600, &a);
	OK(q >= 0 && sends >= 0 && gone >= 0 && !mq_unlink("/hale-gone"));
	OK(!mq_send(q, "late", 5, 1) && !mq_send(sends, "early", 6, 9) && !mq_send(q, "later", 6, 1));
	OK(!mq_send(gone, "nameless", 9, 0));
	note("there");
	if (wait_for_word()) {
		OK(mq_receive(q, text, 64, NULL) == 6 && !mq_send(q, "spoiled", 8, 30) && mq_receive(gone, text, 64, NULL) == 9);
		OK(!mq_unlink("/hale-test"));
		OK(mq_open("/hale-later", O_RDWR | O_CREAT | O_EXCL, 0600, &a) >= 0);
		note("spoiled");
		pause();
	}
	OK(mq_receive(q, text, 64, &priority) == 6 && !strcmp(text, "early") && priority == 9);
	OK(mq_receive(q, text, 64, &priority) == 5 && !strcmp(text, "late") && priority == 1);
	OK(mq_receive(q, text, 64, &priority) == 6 && !strcmp(text, "later"));
	OK(mq_receive(gone, text, 64, NULL) == 9 && !strcmp(text, "nameless"));
	OK(!mq_getattr(q, &a) && a.mq_curmsgs == 0 && a.mq_maxmsg == 5 && a.mq_msgsize == 64);
	for (int i = 0; i < 5; i++)
		OK(!mq_send(sends, "x", 1, 0));
	OK(mq_send(sends, "x", 1, 0) == -1 && errno == EAGAIN);
	OK(mq_open("/hale-test", O_RDONLY) >= 0 && mq_open("/hale-later", O_RDWR | O_CREAT | O_EXCL, 0600, &a) >= 0);
	OK(!mq_unlink("/hale-test") && !mq_unlink("/hale-later"));
	puts("right");
	return 0;
}
"""


@test
def posix_message_queues_are_as_they_were(s):
    if not OWN_IPC:
        skip("no right to a namespace of its own")
    expect(spoiled_and_killed(s, build(s, "queues", QUEUES)) == "right\n")


WAY = """
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
static void give(int via, const char *text, int len, int *fd, int n)
{
	char control[CMSG_SPACE(4 * sizeof(int))] = {0};
	struct iovec iov = {(void *)text, len};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = CMSG_SPACE(n * sizeof(int))};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	c->cmsg_level = SOL_SOCKET; c->cmsg_type = SCM_RIGHTS; c->cmsg_len = CMSG_LEN(n * sizeof(int));
	memcpy(CMSG_DATA(c), fd, n * sizeof(int));
	OK(sendmsg(via, &m, 0) == len);
}
static int take(int via, const char *text, int len, int *fd)
{
	char control[CMSG_SPACE(4 * sizeof(int))], bytes[64];
	struct iovec iov = {bytes, sizeof(bytes)};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
	OK(recvmsg(via, &m, 0) == len && !memcmp(bytes, text, len));
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	if (!c) return 0;
	int n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	memcpy(fd, CMSG_DATA(c), n * sizeof(int));
	return n;
}
int main(int argc, char **argv)
{
	int stream[2], mail[2], inner[2], p[2], other[2], fd[4], child = argc > 1;
	char text[64];
	OK(!socketpair(AF_UNIX, SOCK_STREAM, 0, stream) && !socketpair(AF_UNIX, SOCK_DGRAM, 0, mail));
	OK(!socketpair(AF_UNIX, SOCK_SEQPACKET, 0, inner) && !pipe(p) && !pipe(other));
	int file = open("file", O_RDWR | O_CREAT, 0600);
	OK(write(file, "0123456789", 10) == 10 && lseek(file, 4, SEEK_SET) == 4);
	OK(write(p[1], "inside", 6) == 6);
	OK(write(stream[0], "plain", 5) == 5);
	give(stream[0], "two", 3, p, 2);
	OK(write(stream[0], "after", 5) == 5);
	give(stream[0], "file", 4, &file, 1);
	OK(!shutdown(stream[0], SHUT_WR));
	give(inner[0], "deep", 4, &other[0], 1);
	give(mail[0], "box", 3, &inner[1], 1);
	close(p[0]); close(p[1]); close(inner[1]); close(other[0]);
	OK(write(other[1], "deeper", 6) == 6);
	pid_t pid = child ? fork() : 0;
	if (pid) {
		close(stream[1]); close(mail[1]); close(mail[0]); close(inner[0]); close(other[1]);
		note("there");
		if (wait_for_word()) { OK(lseek(file, 0, SEEK_SET) == 0); note("spoiled"); pause(); }
		int status;
		OK(wait(&status) == pid && status == 0 && lseek(file, 0, SEEK_CUR) == 7);
		puts("right");
		return 0;
	}
	if (child) close(stream[0]);
	else note("there");
	if (wait_for_word()) {
		OK(read(stream[1], text, 5) == 5);
		if (!child) note("spoiled");
		pause();
	}
	OK(read(stream[1], text, 5) == 5 && !memcmp(text, "plain", 5));
	OK(take(stream[1], "two", 3, fd) == 2);
	OK(read(fd[0], text, 64) == 6 && !memcmp(text, "inside", 6) && write(fd[1], "more", 4) == 4 && read(fd[0], text, 64) == 4);
	OK(read(stream[1], text, 5) == 5 && !memcmp(text, "after", 5));
	OK(take(stream[1], "file", 4, fd) == 1 && read(fd[0], text, 3) == 3 && !memcmp(text, "456", 3));
	OK(read(stream[1], text, 1) == 0);
	OK(lseek(file, 0, SEEK_CUR) == 7); /* it is one open file */
	OK(take(mail[1], "box", 3, fd) == 1 && take(fd[0], "deep", 4, fd + 1) == 1);
	OK(read(fd[1], text, 64) == 6 && !memcmp(text, "deeper", 6));
	if (!child) puts("right");
	return 0;
}
"""


@test
def descriptors_on_their_way_arrive(s):
    """Through streams, with bytes before and behind them, through messages, and inside of sockets on their way."""
    expect(spoiled_and_killed(s, build(s, "way", WAY)) == "right\n")


@test
def descriptors_on_their_way_to_a_child_arrive(s):
    if not ids_allowed():
        skip("processes can't have their ids again here")
    expect(spoiled_and_killed(s, build(s, "way", WAY), "child") == "right\n")


WAITING = """
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
enum { CALLERS = 3 };
static void speak(int from, int to, const char *text)
{
	char bytes[64];
	OK(write(from, text, strlen(text)) == (ssize_t)strlen(text));
	OK(read(to, bytes, 64) == (ssize_t)strlen(text) && !memcmp(bytes, text, strlen(text)));
}
int main(int argc, char **argv)
{
	struct sockaddr_un un = {AF_UNIX, "door"};
	struct sockaddr_in in = {AF_INET, 0, {htonl(INADDR_LOOPBACK)}}, who[CALLERS], seen;
	socklen_t len = sizeof(in);
	int listens = socket(AF_UNIX, SOCK_STREAM, 0), port = socket(AF_INET, SOCK_STREAM, 0), u[CALLERS], t[CALLERS];
	OK(!bind(listens, (void *)&un, sizeof(un)) && !listen(listens, 5));
	OK(!bind(port, (void *)&in, len) && !listen(port, 5) && !getsockname(port, (void *)&in, &len));
	pid_t pid = argc > 1 ? fork() : -1;
	if (pid) {
		for (int i = 0; i < CALLERS; i++) {
			struct sockaddr_un name = {AF_UNIX};
			u[i] = socket(AF_UNIX, SOCK_STREAM, 0);
			snprintf(name.sun_path, 20, "caller%d", i);
			OK(!bind(u[i], (void *)&name, sizeof(name)) && !connect(u[i], (void *)&un, sizeof(un)));
			t[i] = socket(AF_INET, SOCK_STREAM, 0);
			OK(!connect(t[i], (void *)&in, sizeof(in)));
			fcntl(t[i], F_SETFL, O_NONBLOCK);
			len = sizeof(who[i]);
			OK(!getsockname(t[i], (void *)&who[i], &len));
		}
		note("there");
		if (wait_for_word()) {
			if (pid < 0) OK(close(accept(listens, NULL, NULL)) == 0 && close(accept(port, NULL, NULL)) == 0);
			note("spoiled");
			pause();
		}
	}
	if (pid > 0) {
		char bytes[8];
		int status;
		for (int i = 0; i < CALLERS; i++) {
			OK(write(u[i], "unix", 4) == 4 && write(t[i], "tcp", 3) == 3);
			fcntl(t[i], F_SETFL, 0);
			OK(read(u[i], bytes, 8) == 2 && read(t[i], bytes, 8) == 2);
		}
		OK(wait(&status) == pid && status == 0);
		puts("right");
		return 0;
	}
	while (pid == 0 && access("go", F_OK))
		usleep(10000);
	for (int i = 0; i < CALLERS; i++) {
		char bytes[8], name[20];
		struct sockaddr_un from = {0};
		socklen_t from_len = sizeof(from);
		int a = accept(listens, (void *)&from, &from_len), b;
		len = sizeof(seen);
		b = accept(port, (void *)&seen, &len);
		snprintf(name, sizeof(name), "caller%d", i);
		OK(a >= 0 && b >= 0 && !strcmp(from.sun_path, name));
		if (pid == 0) {
			OK(read(a, bytes, 8) == 4 && read(b, bytes, 8) == 3 && write(a, "ok", 2) == 2 && write(b, "ok", 2) == 2);
			continue;
		}
		OK(seen.sin_port == who[i].sin_port && fcntl(t[i], F_GETFL) & O_NONBLOCK);
		speak(u[i], a, "unix"); speak(a, u[i], "back"); speak(t[i], b, "tcp");
	}
	if (pid < 0) puts("right");
	return 0;
}
"""


@test
def connections_that_nobody_has_accepted_are_accepted_after_a_rollback(s):
    expect(spoiled_and_killed(s, build(s, "waiting", WAITING)) == "right\n")


@test
def connections_that_a_child_has_not_accepted_yet_are_accepted_by_it(s):
    if not ids_allowed():
        skip("processes can't have their ids again here")
    expect(spoiled_and_killed(s, build(s, "waiting", WAITING), "child") == "right\n")


WATCHES = """
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
static struct inotify_event *next(int fd)
{
	static char room[4096] __attribute__((aligned(8)));
	OK(read(fd, room, sizeof(room)) >= (int)sizeof(struct inotify_event));
	return (void *)room;
}
int main(void)
{
	int fd = inotify_init1(0);
	note("file");
	OK(!mkdir("folder", 0700) && !mkdir("first", 0700));
	OK(inotify_add_watch(fd, "first", IN_CREATE) == 1 && !inotify_rm_watch(fd, 1));
	OK(next(fd)->mask & IN_IGNORED);
	OK(inotify_add_watch(fd, "folder", IN_CREATE | IN_DELETE) == 2 && inotify_add_watch(fd, "file", IN_MODIFY | IN_ONESHOT) == 3);
	note("there");
	if (wait_for_word()) {
		OK(!inotify_rm_watch(fd, 2) && !inotify_rm_watch(fd, 3));
		note("spoiled");
		pause();
	}
	note("folder/new");
	struct inotify_event *e = next(fd);
	OK(e->wd == 2 && e->mask == IN_CREATE && !strcmp(e->name, "new"));
	FILE *f = fopen("file", "a");
	fputs("x", f);
	fclose(f);
	e = next(fd);
	OK(e->wd == 3 && e->mask == IN_MODIFY);
	OK(inotify_add_watch(fd, "first", IN_CREATE) == 4);
	puts("right");
	return 0;
}
"""


@test
def inotify_watches_what_it_watched_under_the_same_numbers(s):
    expect(spoiled_and_killed(s, build(s, "watches", WATCHES)) == "right\n")


COUNTERS = """
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
int main(void)
{
	int fd = eventfd(5, EFD_SEMAPHORE), back = eventfd(0, 0);
	uint64_t v;
	pid_t pid = fork();
	if (!pid) {
		while (access("go", F_OK))
			usleep(10000);
		for (int i = 0; i < 6; i++)
			OK(read(fd, &v, 8) == 8 && v == 1);
		v = 77;
		OK(write(back, &v, 8) == 8);
		return 0;
	}
	note("there");
	if (wait_for_word()) { OK(read(fd, &v, 8) == 8); note("spoiled"); pause(); }
	v = 1;
	OK(write(fd, &v, 8) == 8 && read(back, &v, 8) == 8 && v == 77 && wait(NULL) == pid);
	puts("right");
	return 0;
}
"""


@test
def counters_that_processes_share_stay_shared(s):
    if not ids_allowed():
        skip("processes can't have their ids again here")
    expect(spoiled_and_killed(s, build(s, "counters", COUNTERS)) == "right\n")


TERMINAL = r"""
import fcntl, os, pty, select, signal, struct, sys, termios, time
pid, master = pty.fork()
if pid == 0:
    signal.signal(signal.SIGINT, lambda *a: os.write(1, b"interrupted\n"))
    print("ready", flush=True)
    for line in sys.stdin:
        size = struct.unpack("HHHH", fcntl.ioctl(0, termios.TIOCGWINSZ, b" " * 8))[:2]
        print("got", line.strip(), os.ttyname(0), os.tcgetpgrp(0) == os.getpgrp(), size, flush=True)
    os._exit(3)
def hear(word):
    text = b""
    while word not in text:
        assert select.select([master], [], [], 60)[0], text
        text += os.read(master, 4096)
    return text.decode()
hear(b"ready\r\n")
name = "/dev/pts/%d" % struct.unpack("i", fcntl.ioctl(master, 0x80045430, b"    "))
fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 77, 0, 0))
a = termios.tcgetattr(master)
a[3] = a[3] & ~termios.ECHO | termios.NOFLSH # Ctrl-C is not to drop what it makes the child say
termios.tcsetattr(master, termios.TCSANOW, a)
time.sleep(0.3)
open("there", "w").close()
while not os.path.exists("go"):
    if os.path.exists("spoil") and not os.path.exists("spoiled"):
        fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", 1, 2, 0, 0))
        os.write(master, b"spoiled\n"); hear(b"got spoiled")
        open("spoiled", "w").close()
    time.sleep(0.01)
os.write(master, b"word\n")
said = hear(b"(33, 77)\r\n")
assert "got word %s True (33, 77)" % name in said and said.count("word") == 1, said
os.write(master, b"\x03"); hear(b"interrupted\r\n")
os.write(master, b"\x04")
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 3
try: assert os.read(master, 1) == b""
except OSError: pass
print("right")
"""


@test
def a_terminal_that_the_program_has_made_goes_on(s):
    """Its settings, size, session and foreground group; what is typed reaches the child, and Ctrl-C does."""
    if not ids_allowed():
        skip("processes can't have their ids again here")
    expect(spoiled_and_killed(s, PYTHON, "-c", TERMINAL) == "right\n")


LEADER = r"""
import fcntl, os, signal, sys, termios, time
master, slave = os.openpty()
name = os.ttyname(slave)
pid = os.fork()
if pid == 0:
    heard = []
    signal.signal(signal.SIGINT, lambda *a: heard.append("int"))
    os.close(master); os.setsid()
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0); os.close(slave)
    open("there", "w").close()
    while not heard: time.sleep(0.01)
    os._exit(4 if os.ttyname(os.open("/dev/tty", os.O_RDWR)) and heard == ["int"] else 1)
while not os.path.exists("go"):
    if os.path.exists("spoil") and not os.path.exists("spoiled"): open("spoiled", "w").close()
    time.sleep(0.01)
assert os.ttyname(slave) == name
os.write(master, b"\x03")
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 4
print("right")
"""


@test
def a_session_keeps_its_terminal_without_a_descriptor_of_it(s):
    if not ids_allowed():
        skip("processes can't have their ids again here")
    expect(spoiled_and_killed(s, PYTHON, "-c", LEADER) == "right\n")


REST = """
#include <netinet/in.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <fcntl.h>
/* "nr", "dp" of the mapping at p */
static int has(void *p, const char *flag)
{
	char line[512], at[32];
	int in = 0, found = -1;
	FILE *f = fopen("/proc/self/smaps", "r");
	snprintf(at, sizeof(at), "%lx-", (unsigned long)p);
	while (fgets(line, sizeof(line), f)) {
		in = strchr(line, '-') && strncmp(line, "VmFlags", 7) && strchr(line, ' ') > strchr(line, '-') ? !strncmp(line, at, strlen(at)) : in;
		if (in && !strncmp(line, "VmFlags:", 8)) { found = strstr(line, flag) != NULL; in = 0; }
	}
	fclose(f);
	return found;
}
int main(void)
{
	enum { LEN = 8192 };
	int port[2], s = socket(AF_INET, SOCK_STREAM, 0), one = 1, zero = 0, watch = inotify_init1(IN_NONBLOCK), pair[2];
	struct sockaddr_in in = {AF_INET, htons(4711), {htonl(0x0a010203)}}, any = {AF_INET, 0, {htonl(INADDR_LOOPBACK)}};
	socklen_t len = sizeof(any);
	char *plain = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *lazy = mmap(plain + LEN * 2, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	strcpy(lazy, "kept"); strcpy(plain, "plain");
	/* an address that no device has, allowed for that moment */
	OK(!setsockopt(s, SOL_IP, IP_FREEBIND, &one, sizeof(one)) && !bind(s, (void *)&in, sizeof(in)));
	OK(!setsockopt(s, SOL_IP, IP_FREEBIND, &zero, sizeof(zero)));
	/* two that listen at a port; one does not want to share it any more */
	for (int i = 0; i < 2; i++) {
		port[i] = socket(AF_INET, SOCK_STREAM, 0);
		OK(!setsockopt(port[i], SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one)) && !bind(port[i], (void *)&any, len));
		OK(!listen(port[i], 5) && !getsockname(port[i], (void *)&any, &len));
	}
	OK(!setsockopt(port[1], SOL_SOCKET, SO_REUSEPORT, &zero, sizeof(zero)));
	/* a file that has no name any more */
	int file = open("file", O_RDWR | O_CREAT, 0600);
	OK(inotify_add_watch(watch, "file", IN_MODIFY) == 1 && !unlink("file"));
	/* an epoll on its way, which watches something that is here */
	int ep = epoll_create1(0);
	struct epoll_event e = {EPOLLIN, {.u32 = 5}};
	char control[CMSG_SPACE(sizeof(int))] = {0}, byte = 'x';
	struct iovec iov = {&byte, 1};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	OK(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair) && !epoll_ctl(ep, EPOLL_CTL_ADD, watch, &e));
	*c = (struct cmsghdr){CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
	memcpy(CMSG_DATA(c), &ep, sizeof(ep));
	OK(sendmsg(pair[0], &m, 0) == 1 && !close(ep));
	int reserved = has(lazy, " nr");
	note("there");
	if (wait_for_word()) { strcpy(lazy, "spoiled"); OK(!inotify_rm_watch(watch, 1)); note("spoiled"); pause(); }
	OK(!strcmp(lazy, "kept") && !strcmp(plain, "plain") && has(lazy, " nr") == reserved);
	OK(!getsockopt(s, SOL_IP, IP_FREEBIND, &zero, &len) && !zero);
	len = sizeof(in); OK(!getsockname(s, (void *)&in, &len) && in.sin_addr.s_addr == htonl(0x0a010203));
	len = sizeof(one);
	OK(!getsockopt(port[0], SOL_SOCKET, SO_REUSEPORT, &one, &len) && one && !getsockopt(port[1], SOL_SOCKET, SO_REUSEPORT, &zero, &len) && !zero);
	m.msg_controllen = sizeof(control);
	OK(recvmsg(pair[1], &m, 0) == 1 && (c = CMSG_FIRSTHDR(&m)));
	memcpy(&ep, CMSG_DATA(c), sizeof(ep));
	OK(epoll_wait(ep, &e, 1, 0) == 0 && write(file, "x", 1) == 1 && epoll_wait(ep, &e, 1, 1000) == 1 && e.data.u32 == 5);
	puts("right");
	return 0;
}
"""


@test
def what_a_program_has_taken_back_since_counts_after_a_rollback(s):
    """Shared ports, addresses of nobody, names of watched files; an epoll on its way; memory that is not reserved."""
    expect(spoiled_and_killed(s, build(s, "rest", REST)) == "right\n")


main()
