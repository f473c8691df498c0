#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Ranks that have child processes: these are captured with them where ids can be had again; elsewhere, and where one
can't be captured, no checkpoint is taken meanwhile."""

from lib import *
from lib import stat_of


@test
def statuses_of_shells_that_ranks_run_add_up_after_a_rollback(s):
    exe = s.compile("system_sums")
    for victim in range(2):
        r = s.hale_run(3, exe, "12", options=["--ckpt-every", "100ms", "--inject",
                                              f"kill:rank={victim},after=1.3s", "--report", "report.json"])
        expect(r.status == 0 and r.out == "sum 27648\n", r)
        expect(s.report()["restarts"] == 1, s.report())


@test
def a_shell_with_commands_in_the_background_of_its_loop_loses_no_line(s):
    lines = "".join(f"line {i}\n" for i in range(1, 6))
    r = s.hale_run(1, "sh", "-c", "for i in 1 2 3 4 5; do (sleep 0.2; echo line $i); done",
                   options=["--no-mpi", "--ckpt-every", "50ms", "--inject", "kill:rank=0,after=0.5s",
                            "--report", "report.json"])
    expect(r.status == 0 and r.out == lines, r)
    expect(s.report()["restarts"] == 1, s.report())


PYTHON = """
import subprocess, time
print([subprocess.call(["sh", "-c", "sleep 0.15; exit 2"]) for i in range(6)])
"""


@test
def statuses_of_pythons_subprocesses_are_right_after_a_rollback(s):
    r = s.hale_run(1, "/usr/bin/python3", "-c", PYTHON,
                   options=["--no-mpi", "--ckpt-every", "30ms", "--inject", "kill:rank=0,after=0.6s",
                            "--report", "report.json"])
    expect(r.status == 0 and r.out == "[2, 2, 2, 2, 2, 2]\n", r)
    expect(s.report()["restarts"] == 1, s.report())


@test
def a_job_that_always_has_children_is_told_since_when_it_is_unprotected(s):
    job = s.hale_start(1, "sh", "-c", "sleep 100 & while ! test -e stop; do read x < /dev/null; sleep 0.05; done;"
                       " kill $!; echo done",
                       options=["--no-mpi", "--ckpt-every", "150ms", "--ckpt-wait", "100ms", "--report",
                                "report.json"], env=dict(HALE_TREES="off"))
    job.until(lambda: "which no image holds; the job goes on" in job.err(), "a refusal")
    listed = [j for j in json.loads(s.hale("ps", "--json").out)["jobs"] if j["id"] == job.id()]
    expect(len(listed) == 1 and "(sleep) runs" in listed[0]["unprotected"]["why"], listed)
    expect(0 < listed[0]["unprotected"]["since_seconds"] <= listed[0]["seconds"], listed)
    expect("no checkpoint since" in s.hale("ps").out, s.hale("ps"))
    r = s.hale("ckpt", job.id())
    expect(r.status == 1 and "child process" in r.err, r)
    s.write("stop", "")
    r = job.wait()
    expect(r.status == 0 and r.out == "done\n", r)
    expect(r.err.count("waits for a moment without child processes") == 1, r)
    # told once, though the number of the process may differ
    expect(r.err.count("; the job goes on and it is tried again later") == 1, r)
    expect("child process" in s.report()["unprotected"]["why"], s.report())


@test
def a_child_that_nobody_has_waited_for_keeps_its_status(s):
    job = s.hale_start(1, "/usr/bin/python3", "-c", "import os, time\n"
                       "pid = os.fork() or os._exit(7)\n"
                       "while not os.path.exists('stop'): time.sleep(0.02)\n"
                       "print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)\n"
                       "while not os.path.exists('end'): time.sleep(0.02)\n",
                       options=["--no-mpi", "--ckpt-wait", "100ms"], env=dict(HALE_TREES="off"))
    ready = lambda: (r := s.hale("ckpt", job.id())).status == 1 and "has not waited for it yet" in r.err
    job.until(ready, "a checkpoint is refused for the sake of the status")
    s.write("stop", "")
    job.until_output("7")
    path = job.checkpoint()
    expect(os.path.exists(path), path)
    s.write("end", "")
    expect(job.wait().status == 0, job.err())


# ---- captured with their rank ----

def killed_at(s, job, marks):
    """A checkpoint, a kill, the job runs again; then the rest of its program may go on."""
    if not ids_allowed():
        skip("processes can't have their ids again here")
    for mark in marks:
        job.until(lambda: os.path.exists(s.path(mark)), f"the program to come to {mark}")
    job.checkpoint()
    pid = job.ranks(1)[0]
    os.kill(pid, signal.SIGKILL)
    job.until(lambda: (j := job.info()) and j["restarts"] == 1 and
              [r["state"] for r in j["ranks"]] == ["running"], "the rank runs again")
    expect(job.ranks(1)[0] == pid, pid, job.ranks(1))
    s.write("go", "")
    return job.wait()


PIPELINE = """
wait_for() { while ! test -e $1; do sleep 0.02; done; }
(echo first; echo > there1; wait_for go; echo second; exit 3) | (read a; echo > there2; wait_for go; read b; cat
echo "$a $b"; exit 4) | sed 's/^/got /'
(exit 5) & last=$!
wait $last; echo status $?
"""


@test
def a_pipeline_of_a_shell_goes_on_in_all_its_parts(s):
    job = s.hale_start(1, "sh", "-c", PIPELINE, options=["--no-mpi"])
    r = killed_at(s, job, ["there1", "there2"])
    expect(r.status == 0 and r.out == "got first second\nstatus 5\n", r)


NAMED = """
wait_for() { while ! test -e $1; do sleep 0.02; done; }
mkfifo pipe
(echo first; echo > there1; wait_for go; echo second) > pipe &
(read a; echo > there2; wait_for go; read b; read c; echo "$a $b ended $?") < pipe
wait
rm pipe
"""


@test
def a_named_pipe_between_children_goes_on(s):
    job = s.hale_start(1, "sh", "-c", NAMED, options=["--no-mpi"])
    r = killed_at(s, job, ["there1", "there2"])
    expect(r.status == 0 and r.out == "first second ended 1\n" and not os.path.exists(s.path("pipe")), r)


NAMELESS = """
import mmap, os, select, signal, tempfile, time
def wait_for(name):
    while not os.path.exists(name): time.sleep(0.02)
common = tempfile.TemporaryFile(dir=".", buffering=0)   # one open file of both: its offset is one
common.write(b"0123456789")
common.seek(3)
both = os.memfd_create("both")
os.write(both, b"memory----")
mapped = os.memfd_create("mapped")
os.ftruncate(mapped, 4096)
reads = os.open(f"/proc/self/fd/{both}", os.O_RDONLY)
os.lseek(reads, 2, os.SEEK_SET)
gone = os.fork() or os._exit(0)
handle = os.pidfd_open(gone)
os.waitpid(gone, 0)
def has_ended():
    try:
        signal.pidfd_send_signal(handle, 0)
    except ProcessLookupError:
        return bool(select.select([handle], [], [], 0)[0])
pid = os.fork()
if not pid:
    view = mmap.mmap(mapped, 4096)
    os.close(mapped)
    own = os.open(f"/proc/self/fd/{both}", os.O_RDWR | os.O_APPEND)
    os.close(reads)
    open("there1", "w").close()
    wait_for("go")
    right = os.read(common.fileno(), 2) == b"34" and has_ended()
    view[:3] = b"abc"
    os.write(own, b"CHILD")
    os._exit(0 if right else 1)
open("there2", "w").close()
wait_for("go")
status = os.waitpid(pid, 0)[1]
print(status, common.read(), os.pread(both, 99, 0), os.pread(mapped, 3, 0), os.read(reads, 4), has_ended(),
      os.lseek(both, 0, os.SEEK_CUR))
"""


@test
def files_without_names_that_parent_and_child_have_stay_one(s):
    job = s.hale_start(1, "/usr/bin/python3", "-c", NAMELESS, options=["--no-mpi"])
    r = killed_at(s, job, ["there1", "there2"])
    expect(r.status == 0 and r.out == "0 b'56789' b'memory----CHILD' b'abc' b'mory' True 10\n", r)


STOPPED = """
import mmap, os, signal, struct, time
told = []
signal.signal(signal.SIGCHLD, lambda *_: told.append(1))
count = mmap.mmap(-1, 4096)
def state(pid):
    return open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0]
def child(leads):
    pid = os.fork()
    if pid:
        return pid
    leads()
    for i in range(10 ** 9):
        struct.pack_into("q", count, 0, i)
        if i > 100 and os.path.exists("end"):
            os._exit(5)
def stop(pid, sig):
    while not struct.unpack_from("q", count)[0]:
        time.sleep(0.01)
    os.kill(pid, sig)
    while state(pid) != "T":
        time.sleep(0.01)
first = child(os.setpgrp)
stop(first, signal.SIGSTOP)
assert os.WSTOPSIG(os.waitpid(first, os.WUNTRACED)[1]) == signal.SIGSTOP
count[:8] = bytes(8)
second = child(lambda: None)
stop(second, signal.SIGTSTP)  # nobody has waited for that
at = struct.unpack_from("q", count)[0]
told.clear()
open("there", "w").close()
while not os.path.exists("go"):
    time.sleep(0.01)
print(len(told), state(first), state(second), struct.unpack_from("q", count)[0] == at)
print(os.waitpid(first, os.WUNTRACED | os.WNOHANG), os.WSTOPSIG(os.waitpid(second, os.WUNTRACED)[1]))
open("end", "w").close()
for pid in first, second:
    os.kill(pid, signal.SIGCONT)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


@test
def children_that_are_stopped_stay_so_and_nobody_is_told(s):
    """Over two checkpoints, a rollback, one more checkpoint and one more rollback."""
    if not ids_allowed():
        skip("processes can't have their ids again here")
    job = s.hale_start(1, "/usr/bin/python3", "-c", STOPPED, options=["--no-mpi"])
    job.until(lambda: os.path.exists(s.path("there")), "the children to be stopped")
    job.checkpoint()
    for restarts in 1, 2:
        job.checkpoint()
        os.kill(job.ranks(1)[0], signal.SIGKILL)
        job.until(lambda: (j := job.info()) and j["restarts"] == restarts and
                  [r["state"] for r in j["ranks"]] == ["running"], "the rank runs again")
    s.write("go", "")
    r = job.wait()
    expect(r.status == 0 and r.out == "0 T T True\n(0, 0) 20\n5\n5\n", r)


@test
def a_stopped_child_that_would_notice_is_named(s):
    job = s.hale_start(1, "/usr/bin/python3", "-c", "import os, signal, time\n"
                       "signal.signal(signal.SIGCONT, lambda *_: None)\n"
                       "pid = os.fork()\n"
                       "while not pid: time.sleep(0.01)\n"
                       "os.kill(pid, signal.SIGSTOP)\n"
                       "os.waitpid(pid, os.WUNTRACED)\n"
                       "open('there', 'w').close()\n"
                       "while not os.path.exists('go'): time.sleep(0.01)\n"
                       "os.kill(pid, 9); print(os.waitpid(pid, 0)[1])\n",
                       options=["--no-mpi", "--ckpt-wait", "100ms"])
    if not ids_allowed():
        skip("processes can't have their ids again here")
    job.until(lambda: os.path.exists(s.path("there")), "the child to be stopped")
    r = s.hale("ckpt", job.id())
    expect(r.status == 1 and "it is stopped, and handles SIGCONT, which would be called" in r.err, r)
    s.write("go", "")
    r = job.wait()
    expect(r.status == 0 and r.out == "9\n", r)


ENDED = """
import os, time
a = os.fork() or os._exit(7)
b = os.fork() or os.kill(os.getpid(), 9)
while any(open(f"/proc/{p}/stat").read().rsplit(")", 1)[1].split()[0] != "Z" for p in (a, b)):
    time.sleep(0.01)
open("there", "w").close()
while not os.path.exists("go"):
    time.sleep(0.01)
print([os.waitstatus_to_exitcode(os.waitpid(p, 0)[1]) for p in (a, b)])
"""


@test
def children_that_have_ended_before_are_waited_for_after_a_rollback(s):
    job = s.hale_start(1, "/usr/bin/python3", "-c", ENDED, options=["--no-mpi"])
    r = killed_at(s, job, ["there"])
    expect(r.status == 0 and r.out == "[7, -9]\n", r)


POOL = """
import multiprocessing as mp, os, time
def work(x):
    if x == 7:
        open("there", "w").close()
        while not os.path.exists("go"):
            time.sleep(0.01)
    return x * x, os.getpid()
if __name__ == "__main__":
    with mp.get_context("fork").Pool(3) as pool:
        before = {p.pid for p in pool._pool}
        done = pool.map(work, range(20), chunksize=1)
    print(sum(x for x, _ in done), {p for _, p in done} <= before)
"""


@test
def a_pool_of_pythons_multiprocessing_loses_nothing(s):
    s.write("pool.py", POOL)
    job = s.hale_start(1, "/usr/bin/python3", "pool.py", options=["--no-mpi"])
    r = killed_at(s, job, ["there"])
    expect(r.status == 0 and r.out == "2470 True\n", r)


GROUPS = """
import ctypes, os, signal, socket, time
mine, its = socket.socketpair()
log = open("log", "a", buffering=1)
def ids():
    return os.getpid(), os.getpgrp(), os.getsid(0), os.getppid()
def child(leads):
    pid = os.fork()
    if pid:
        return pid
    leads()
    ctypes.CDLL(None).prctl(1, int(signal.SIGWINCH))  # PR_SET_PDEATHSIG
    before = ids()
    log.write("begun\\n")
    its.send(b".")
    while not os.path.exists("go"):
        time.sleep(0.01)
    told = ctypes.c_int()
    ctypes.CDLL(None).prctl(2, ctypes.byref(told))
    log.write("the same\\n" if before == ids() and told.value == signal.SIGWINCH else f"{before} {ids()}\\n")
    os._exit(0)
pids = [child(os.setsid), child(os.setpgrp), child(lambda: None)]
while len(mine.recv(3, socket.MSG_PEEK)) < 3:
    time.sleep(0.01)
open("there", "w").close()
for p in pids:
    os.waitpid(p, 0)
print(mine.recv(10), open("log").read().split("\\n"))
"""


@test
def groups_sessions_socket_pairs_and_a_common_log_are_as_they_were(s):
    job = s.hale_start(1, "/usr/bin/python3", "-c", GROUPS, options=["--no-mpi"])
    r = killed_at(s, job, ["there"])
    expect(r.status == 0, r)
    expect(r.out == f"{b'...'!r} {['begun'] * 3 + ['the same'] * 3 + ['']!r}\n", r)


@test
def a_child_without_the_library_is_named_and_waited_for(s):
    job = s.hale_start(1, "sh", "-c", "env -u LD_PRELOAD sleep 100 & while ! test -e stop; do read x < /dev/null; done;"
                       " kill $!; echo done", options=["--no-mpi", "--ckpt-wait", "100ms"])
    what = "runs without hale's library" if ids_allowed() else "(sleep) runs, which no image holds"
    job.until(lambda: (r := s.hale("ckpt", job.id())).status == 1 and what in r.err, "a refusal")
    s.write("stop", "")
    r = job.wait()
    expect(r.status == 0 and r.out == "done\n", r)


TALK = """
import os, select, signal, socket, time
at = socket.socket()
at.bind(("127.0.0.1", 0))
at.listen()
door = socket.socket(socket.AF_UNIX)
door.bind("door")
door.listen()
def child():
    tcp = socket.create_connection(at.getsockname())
    unix = socket.socket(socket.AF_UNIX)
    unix.connect("door")
    tcp.sendall(b"tcp of the child")
    unix.sendall(b"unix of the child")
    open("there", "w").close()
    while not os.path.exists("go"):
        time.sleep(0.01)
    assert tcp.recv(100) == b"tcp of the parent" and unix.recv(100) == b"unix of the parent"
    tcp.sendall(b", and more")
    again, other = at.accept()
    again.sendall(b"whoever has the door may open it")
    again.close()
    tcp.close()
    os._exit(7)
pid = os.fork() or child()
handle = os.pidfd_open(pid)
tcp, name = at.accept()
unix, _ = door.accept()
tcp.sendall(b"tcp of the parent")
unix.sendall(b"unix of the parent")
open("there2", "w").close()
while not os.path.exists("go"):
    time.sleep(0.01)
new = socket.create_connection(at.getsockname())
print(tcp.recv(16), tcp.recv(100), tcp.getpeername() == name, unix.recv(100), new.recv(100))
select.select([handle], [], [])
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


@test
def connections_between_parent_and_child_and_its_handle_come_back(s):
    s.write("talk.py", TALK)
    job = s.hale_start(1, "/usr/bin/python3", "talk.py", options=["--no-mpi"])
    r = killed_at(s, job, ["there", "there2"])
    expect(r.status == 0 and r.out == "b'tcp of the child' b', and more' True b'unix of the child' "
           "b'whoever has the door may open it'\n7\n", r)


FULL = """
import os, socket, struct, time
at = socket.create_server(("127.0.0.1", 0))
def child():
    out = socket.create_connection(at.getsockname())
    os.close(at.fileno())
    sent = memoryview(b"".join(struct.pack("I", i * i % 1000003) for i in range(3000000)))
    open("there", "w").close()
    out.sendall(sent)
    out.close()
    os._exit(7)
pid = os.fork() or child()
got, _ = at.accept()
total, n, rest = 0, 0, b""
while not os.path.exists("go"):
    time.sleep(0.01)
    rest += got.recv(1000)
while piece := got.recv(65536):
    rest += piece
    whole = len(rest) // 4 * 4
    for x, in struct.iter_unpack("I", rest[:whole]):
        assert x == n * n % 1000003, n
        n += 1
    rest = rest[whole:]
print(n, rest, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


@test
def a_stream_that_is_always_full_finds_a_checkpoint(s):
    job = s.hale_start(1, "/usr/bin/python3", "-c", FULL, options=["--no-mpi"])
    job.until(lambda: os.path.exists(s.path("there")), "the child")
    job.until(lambda: stat_of(children(job.ranks(1)[0])[0])[1] == "S", "it to wait for room")
    job.checkpoint()
    r = killed_at(s, job, ["there"])
    expect(r.status == 0 and r.out == "3000000 b'' 7\n", r)


ENDS = """
import os, time
def child():
    block = os.urandom(1 << 20) * 160
    open("there", "w").close()
    while not os.path.exists("end"):
        time.sleep(0.005)
    os._exit(block[7] % 2 * 0 + 9)
pid = os.fork() or child()
while not os.path.exists("go"):
    time.sleep(0.01)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


@test
def a_child_may_end_while_its_image_is_written(s):
    if not ids_allowed():
        skip("processes can't have their ids again here")
    job = s.hale_start(1, "/usr/bin/python3", "-c", ENDS, options=["--no-mpi", "--ckpt-wait", "0"])
    job.until(lambda: os.path.exists(s.path("there")), "the child")
    pid = job.ranks(1)[0]
    child = children(pid)[0]
    asked = s.start(HALE, "ckpt", job.id())
    writer = asked.until(lambda: children(child), "what writes the child's image")[0]
    os.kill(writer, signal.SIGSTOP)
    s.write("end", "")
    job.until(lambda: not alive(child), "the child has ended")
    expect(alive(writer), "its writer lives on")
    os.kill(writer, signal.SIGCONT)
    expect(asked.wait().status == 0, asked.result())
    os.kill(pid, signal.SIGKILL)
    job.until(lambda: (j := job.info()) and j["restarts"] == 1 and
              [r["state"] for r in j["ranks"]] == ["running"], "the rank runs again")
    s.write("go", "")
    r = job.wait()
    expect(r.status == 0 and r.out == "9\n", r)


WIPED = """
import ctypes, mmap, os, time
def wiped(text):
    m = mmap.mmap(-1, 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    m.madvise(18)  # MADV_WIPEONFORK
    m[:len(text)] = text
    return m
def child():
    m = wiped(b"its own")
    open("there", "w").close()
    while not os.path.exists("go"):
        time.sleep(0.01)
    os._exit(m[:7] == b"its own")
pid = os.fork() or child()
m = wiped(b"mine")
while not os.path.exists("go"):
    time.sleep(0.01)
print(m[:4], os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


@test
def memory_that_forked_processes_lack_is_written_while_its_process_stands(s):
    if not ids_allowed():
        skip("processes can't have their ids again here")
    job = s.hale_start(1, "/usr/bin/python3", "-c", WIPED, options=["--no-mpi"])
    job.until(lambda: os.path.exists(s.path("there")), "the child")
    job.until(lambda: s.hale("ckpt", job.id()).status == 0, "a checkpoint, after the first were refused")
    pid = job.ranks(1)[0]
    os.kill(pid, signal.SIGKILL)
    job.until(lambda: (j := job.info()) and j["restarts"] == 1 and
              [r["state"] for r in j["ranks"]] == ["running"], "the rank runs again")
    s.write("go", "")
    r = job.wait()
    expect(r.status == 0 and r.out == "b'mine' 1\n", r)


ORPHAN = """
import os, signal, sys, time
signal.signal(signal.SIGUSR1, lambda *_: None)
parent = os.getpid()
def child():
    os.setsid()  # it is looked for, and not just killed with its group
    open("there", "w").close()
    while os.getppid() == parent and not os.path.exists("go"):
        pass
    while not os.path.exists("go"):
        os.kill(os.getppid(), signal.SIGUSR1)
    os._exit(3)
pid = os.fork() or child()
while not os.path.exists("go"):
    time.sleep(0.01)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


@test
def a_child_that_signals_its_parent_when_that_has_died_ends_nobody_else(s):
    job = s.hale_start(1, "/usr/bin/python3", "-c", ORPHAN, options=["--no-mpi"])
    r = killed_at(s, job, ["there"])
    expect(r.status == 0 and r.out == "3\n" and "node" not in r.err, r)


# What R's makeCluster does: the worker is there, and nobody but the program knows of it.
LEAVES = """
import os, time
if not os.fork():
    if not os.fork():
        while not os.path.exists("end"): time.sleep(0.01)
    os._exit(0)
os.wait()
open("there", "w").close()
while not os.path.exists("go"): time.sleep(0.01)
print("right")
"""


@test
def a_descendant_that_has_lost_its_parent_is_waited_for(s):
    job = s.hale_start(1, "/usr/bin/python3", "-c", LEAVES,
                       options=["--no-mpi", "--ckpt-every", "off", "--ckpt-wait", "1s"])
    job.until(lambda: os.path.exists(s.path("there")), "the program")
    r = s.hale("ckpt", job.id())
    expect(r.status != 0 and "has lost its parent" in r.err + job.err(), r, job.err())
    s.write("end", "")
    r = s.hale("ckpt", job.id())
    expect(r.status == 0, r)
    s.write("go", "")
    r = job.wait()
    expect(r.status == 0 and r.out == "right\n", r)


# What has written its image is still its child when it leaves the rank's group, and in that group.
LEAVES_LATE = """
import os, time
def child():
    while not os.path.exists("leave"):
        time.sleep(0.01)
    os.setsid()
    open("away", "w").close()
    while not os.path.exists("go"):
        time.sleep(0.01)
    os._exit(3)
pid = os.fork() or child()
open("there", "w").close()
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


@test
def a_child_that_leaves_the_group_after_its_image_ends_with_a_rollback(s):
    if not ids_allowed():
        skip("processes can't have their ids again here")
    job = s.hale_start(1, "/usr/bin/python3", "-c", LEAVES_LATE, options=["--no-mpi"])
    job.until(lambda: os.path.exists(s.path("there")), "the program")
    job.checkpoint()
    s.write("leave", "")
    job.until(lambda: os.path.exists(s.path("away")), "the child to have left")
    os.kill(job.ranks(1)[0], signal.SIGKILL)
    job.until(lambda: (j := job.info()) and j["restarts"] == 1 and [r["state"] for r in j["ranks"]] == ["running"],
              "the rank runs again", 30)
    s.write("go", "")
    r = job.wait()
    expect(r.status == 0 and r.out == "3\n" and "is refused" not in r.err, r)


TOLD = """
import os, signal, time
told = 0
def on_told(*_):
    global told
    told += 1
signal.signal(signal.SIGUSR1, on_told)
parent = os.getpid()
def child():
    while not os.path.exists("go"):
        os.kill(parent, signal.SIGUSR1)
        time.sleep(0.005)
    os._exit(3)
pid = os.fork() or child()
keep = [os.open("/dev/zero", os.O_RDONLY) for _ in range(40)]
while told < 3:
    time.sleep(0.01)
open("there", "w").close()
while not os.path.exists("go"):
    time.sleep(0.01)
print(told > 3, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


@test
def a_child_that_runs_first_may_signal_its_parent(s):
    """Whose handlers are not in place yet. It has more descriptors than the child, and each takes long to be put into
    its place."""
    have("strace")
    job = s.hale_start(1, "/usr/bin/python3", "-c", TOLD, options=["--no-mpi"])
    slow = s.start("strace", "-f", "-q", "-o", "/dev/null", "-e", "trace=dup3", "-e", "inject=dup3:delay_enter=10000",
                   "-p", stat_of(job.ranks(1)[0])[0])
    slow.until(lambda: "TracerPid:\t0" not in open(f"/proc/{stat_of(job.ranks(1)[0])[0]}/status").read(), "strace")
    r = killed_at(s, job, ["there"])
    expect(r.status == 0 and r.out == "True 3\n", r)


DOCUMENT = """
exec sh -c 'touch there; while ! test -e go; do sleep 0.02; done; cat' <<END
what the script holds
END
"""

WRITTEN = """
exec sh -c 'touch there; while ! test -e go; do sleep 0.02; done; cat' < <(while ! test -e go; do sleep 0.02; done
echo what a child writes)
"""


@test
def input_that_a_script_gives_to_what_it_becomes_is_kept(s):
    job = s.hale_start(1, "bash", "-c", DOCUMENT, options=["--no-mpi"])
    r = killed_at(s, job, ["there"])
    expect(r.status == 0 and r.out == "what the script holds\n", r)
    for name in ("there", "go"):
        os.unlink(s.path(name))
    job = s.hale_start(1, "bash", "-c", WRITTEN, options=["--no-mpi"])
    r = killed_at(s, job, ["there"])
    expect(r.status == 0 and r.out == "what a child writes\n", r)


main()
