#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""`hale top` in a real terminal (a pty, and pyte for what stands on its screen)."""

import fcntl
import pty
import select
import socket
import struct
import termios
import threading

from lib import *

try:
    import pyte
except ImportError:
    pyte = None


LIMIT_SEEN = 20


class Top:
    """hale top in a terminal of so many columns and lines."""

    def __init__(self, s, *argv, size=(80, 24)):
        self.columns, self.lines = size
        self.screen = pyte.Screen(*size)
        self.stream = pyte.ByteStream(self.screen)
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
            os.chdir(s.dir)
            os.execve(HALE, [HALE, "top", "--every", "200ms", *map(str, argv)], dict(s.env, TERM="linux"))
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
        self.status = None

    def read(self, patience=0.2):
        if select.select([self.fd], [], [], patience)[0]:
            try:
                data = os.read(self.fd, 65536)
            except OSError:
                data = b""
            if not data:
                return False
            self.stream.feed(data)
        return True

    def text(self):
        return "\n".join(x.rstrip() for x in self.screen.display)

    def until(self, pattern, what=None):
        """The screen has it; the match."""
        end = time.monotonic() + LIMIT_SEEN
        while True:
            m = re.search(pattern, self.text(), re.M)
            if m:
                return m
            expect(time.monotonic() < end, f"no {what or pattern} on the screen:\n{self.text()}")
            expect(self.read(), f"hale top has ended, without {what or pattern}:\n{self.text()}")

    def keys(self, text):
        os.write(self.fd, text.encode())

    def end(self):
        """Its exit status after q, once or more often."""
        end = time.monotonic() + LIMIT_SEEN
        while time.monotonic() < end:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                os.close(self.fd)
                self.pid = 0
                return os.waitstatus_to_exitcode(status)
            self.keys("q")
            self.read()
            time.sleep(0.05)
        raise Failed("hale top does not end\n" + self.text())

    def close(self):
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            os.close(self.fd)
            self.pid = 0


def with_top(function):
    """Gives it a function that starts hale top, and ends what it has started."""
    def run(s):
        tops = []
        if not pyte:
            skip("python3-pyte is not installed")
        if not os.path.exists(os.path.join(BUILD, "hale-top")):
            skip("built without ncurses")

        def start(*argv, **kw):
            tops.append(Top(s, *argv, **kw))
            return tops[-1]
        try:
            function(s, start)
        finally:
            for t in tops:
                t.close()
    run.__name__ = function.__name__
    return test(run)


def job_of_two_nodes(s, ranks=3):
    job = s.hale_start(ranks, "sleep", 1000, options=["--no-mpi", "--host", f"north:{ranks},south:{ranks}", "--launcher",
                                                 "exec %c", "--spares", 1, "--ckpt-every", "1h"])
    job.ranks(ranks)
    return job, job.info()["id"]


@with_top
def it_shows_jobs_their_nodes_and_ranks(s, top):
    job, name = job_of_two_nodes(s)
    t = top()
    t.until(rf"^{re.escape(name)} +running +3 +[\d.]+ ", "the job")
    t = top(name)
    t.until(r"^- north +READY +3 running", "a node")
    t.until(r"^- south +SPARE +no ranks", "the spare")
    for rank in job.info()["ranks"]:
        t.until(rf"^ +{rank['rank']} +{rank['pid']} +running +\d+% +[\d.]+ [KM]iB  waits", "a rank, and what it does")
        expect(not re.search(rf" {rank['pid']} .* {rank['node']}$", t.text(), re.M), "its node stands above it", t.text())
    t.until(r"3 ranks on 1 node, 1 spare, runs for")
    t.until("^checkpoint none")
    t.until("MPI: nothing is measured")
    expect(t.end() == 0, "its status")
    job.kill(signal.SIGTERM)
    job.wait()


WAITS = """
from mpi4py import MPI
if MPI.COMM_WORLD.rank == 0:
    MPI.COMM_WORLD.recv(source=1)
while True:
    pass
"""


@with_top
def it_says_in_which_mpi_call_a_rank_is_also_on_another_machine(s, top):
    if s.run("unshare", "--uts", "true").status != 0:
        skip("no right to give a process a host name of its own")
    job = s.hale_start(2, PYTHON, s.write("waits.py", WAITS),
                       options=["--host", "north:1,south:1", "--launcher",
                                "exec unshare --uts sh -c 'hostname %h; exec \"$@\"' - %c"])
    job.ranks(2)
    t = top(job.info()["id"])
    t.until(r"2 ranks on 2 nodes, runs")
    t.until(r"^- north +READY .*, north\)\n +0 +\d+ +running +\d+% +[\d.]+ MiB  MPI_M(probe|recv)$", "the call, and what it takes")
    t.until(r"^- south +READY .*, south\)\n +1 +\d+ +running +\d+% +[\d.]+ MiB  computes$", "one that computes")
    expect(t.end() == 0, "its status")
    job.kill(signal.SIGTERM)
    job.wait()


@with_top
def events_take_the_lines_that_they_need(s, top):
    job, name = job_of_two_nodes(s)
    t = top(name)
    t.until("^- north")
    t.until(rf"^events of {re.escape(name)}(: none yet)?$")

    def below():
        lines = t.text().splitlines()
        at = max(i for i, line in enumerate(lines) if line.startswith("events of "))
        return lines[at:-1]
    expect(all(re.match(r"\d\d:\d\d:\d\d [A-Z]+ FTB_", line) for line in below()[1:]), "no empty lines", t.text())
    t.keys("Cyy")
    t.until(r"FTB_CHECKPOINT_DONE", "the event")
    expect(1 <= len(below()[1:]) <= 4 and all(re.match(r"\d\d:\d\d:\d\d [A-Z]+ FTB_", line) for line in below()[1:]), t.text())
    t.keys("oo")
    t.until("^ *RANK .* NODE$", "by rank: each line says its node")
    expect(t.end() == 0, "its status")
    job.kill(signal.SIGTERM)
    job.wait()


@with_top
def a_checkpoint_is_asked_twice_and_events_come(s, top):
    job, name = job_of_two_nodes(s)
    t = top(name)
    t.until("^- north")
    t.keys("C")
    t.until(rf"^ *Take a checkpoint of {re.escape(name)}\? \(y")
    t.keys("y")
    t.until(r"^Really\? Take a checkpoint")
    t.keys("n")
    t.until("^Nothing has been done")
    expect(not job.info()["checkpoint"], job.info())
    t.keys("Cyy")
    t.until(r"hale-ckpt/.*/1$", "its path")
    t.until(r"^checkpoint 1: [\d.]+ [KM]iB, .* ago")
    t.until(r"FTB_CHECKPOINT_DONE", "the event")
    expect(job.info()["checkpoint"] == 1 and t.end() == 0, job.info())
    t = top()
    t.until(r" 0  1: [\d.]+ [KMG]iB, .*[\d.]+ (m?s|min) ago$", "the whole of it, on 80 columns")
    expect(t.end() == 0, "its status")
    job.kill(signal.SIGTERM)
    job.wait()


@with_top
def how_fast_memory_changes_is_told_by_incremental_checkpoints(s, top):
    job = s.hale_start(1, PYTHON, s.write("writes.py", """
import time
a = bytearray(64 << 20)
while True:
    for i in range(0, 8 << 20, 4096):
        a[i] = a[i] % 250 + 1
    time.sleep(0.05)
"""), options=["--no-mpi", "--ckpt-every", "1h", "--incremental"])
    job.ranks(1)
    t = top(job.info()["id"])
    t.until("^checkpoint none$")
    for k in (1, 2):
        time.sleep(0.5)
        job.checkpoint()
    t.until(r"^checkpoint 2: .* ago; [\d.]+ [MG]iB/s of memory change", "at least 8 MiB since the first one")
    expect(t.end() == 0, "its status")
    job.kill(signal.SIGTERM)
    job.wait()


@with_top
def ranks_are_moved_and_killed_where_the_cursor_is(s, top):
    job, name = job_of_two_nodes(s)
    t = top(name)
    t.until("^- north")
    t.keys("M")
    t.until("all ranks of north go")
    t.keys("yy")
    t.until(r"^- south +READY +3 running", "the ranks on the other node")
    t.keys("o" "j")  # by rank; on rank 1
    t.until("by rank")
    victim = [r for r in job.info()["ranks"] if r["rank"] == 1][0]["pid"]
    t.keys("K")
    t.until(rf"Kill rank 1 \(pid {victim}\)")
    t.keys("yy")
    t.until(r"^faults 1, recovered \d; rollbacks 1", "the fault")
    expect([r for r in job.info()["ranks"] if r["rank"] == 1][0]["pid"] != victim, job.info())
    expect(t.end() == 0, "its status")
    job.kill(signal.SIGTERM)
    job.wait()


@with_top
def it_sorts_filters_folds_and_looks_into_a_rank(s, top):
    job, name = job_of_two_nodes(s, 4)
    pid = {r["rank"]: r["pid"] for r in job.info()["ranks"]}
    t = top(name)
    t.until(r"^- north")
    t.keys("\r")
    t.until(r"^\+ north")
    expect(f" {pid[2]} " not in t.text(), t.text())
    t.keys("F" "F")
    t.until(rf"^ +2 +{pid[2]} ")
    t.keys("s")
    t.until(r"Go into a job, to a rank first", "what to do for a stack")
    t.keys(f"/{pid[2]}\r")
    t.until(rf"with {pid[2]}")
    t.until(rf"north +READY[^\n]*\n +2 +{pid[2]} [^\n]*\n\s*\n", "that rank alone")
    t.keys("j\r")
    t.until(rf"^rank 2  pid {pid[2]} on north: running, waits")
    t.until(r"Threads:\s+1")
    t.until(r"command:\s*sleep 1000")
    t.keys("s")
    t.until(r"#\d .*(nanosleep|sleep)|Neither eu-stack nor gdb|ptrace|not permitted", "its stack, or why not")
    t.keys("q" "q")  # back to the ranks, and all of these
    t.until(rf"^ +3 +{pid[3]} ")
    t.keys("?")
    t.until("Esc, q +back; out")
    expect(t.end() == 0, "its status")
    job.kill(signal.SIGTERM)
    job.wait()


class Head:
    """Stands for a job's head with so many ranks."""

    def __init__(self, ranks, nodes):
        self.name = f"crowd.{os.getpid()}"
        self.ranks, self.nodes, self.asked = ranks, nodes, 0
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(f"\0hale/{os.getuid()}/{self.name}/ctl")
        self.socket.listen(50)
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def answer(self, op):
        node = [f"node{i:03}" for i in range(self.nodes)]
        if op == "ps":
            return {"id": self.name, "program": "/bin/crowd", "state": "running", "seconds": 100, "restarts": 0, "checkpoint": 7,
                    "checkpoint_bytes": 10 ** 12, "checkpoint_age_seconds": 12, "pid": os.getpid(), "ranks": [
                        {"rank": r, "slot": 0, "role": "leader", "node": node[r * self.nodes // self.ranks], "pid": 3 * 10 ** 6 + r,
                         "state": "checkpointing" if r == 777 else "running"} for r in range(self.ranks)]}
        if op == "nodes":
            return {"id": self.name, "nodes": [{"node": n, "state": "READY", "usable": True, "ranks": self.ranks // self.nodes,
                                                "cores": 64, "host": n} for n in node]}
        return {"error": "not measured"}

    def serve(self):
        while True:
            try:
                c, _ = self.socket.accept()
            except OSError:
                return
            with c:
                request = c.recv(4096)
                if request:
                    self.asked += 1
                    c.sendall(json.dumps(self.answer(json.loads(request)["op"])).encode())

    def close(self):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        self.thread.join()


def columns_of(text, columns):
    return all(len(line) <= columns for line in text.splitlines())


@with_top
def a_thousand_ranks_stay_readable_on_screens_of_any_size(s, top):
    head = Head(1000, 50)
    try:
        for size in (80, 24), (200, 60), (40, 10):
            t = top(head.name, size=size)
            t.until(r"^\+ node000 +READY +20 running"[:16 if size[0] == 40 else None], "nodes, folded")
            if size[0] == 40:
                expect(columns_of(t.text(), 40) and t.end() == 0, t.text())
                continue
            t.until(r"^\+ node011" if size[1] == 24 else r"^\+ node040", "as many nodes as there is room for")
            t.keys("/checkpointing\r")
            t.until(r"^- node038|^\+ node038")
            t.until(r"^ +777 +3000777 +checkpointing", "the one that is not as others")
            t.keys("q" "F" "\x1b[4~")  # without the filter, unfolded, to the end
            t.until(r"^ +999 +3000999 +running")
            expect(t.end() == 0 and columns_of(t.text(), size[0]), t.text())
    finally:
        head.close()


@test
def without_a_terminal_it_says_what_there_is_instead(s):
    r = s.hale("top")
    expect(r.status == EXIT_USAGE and "needs a terminal" in r.err and "hale ps" in r.err, r)
    for words in ["--every", "2"], ["--every", "1us"], ["a", "b"], ["--ever"]:
        r = s.hale("top", *words)
        expect(r.status == EXIT_USAGE and "needs a terminal" in r.err or "--every TIME" in r.err, r)


main()
