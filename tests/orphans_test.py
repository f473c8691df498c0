#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What ranks leave behind when the process that supervises them is killed: its watchdog ends that."""

from lib import *
from lib import stat_of


def waited_for(pid):
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        pass


def supervisor_killed(s, job, orphans, restarts):
    """These have this test as their parent then, as an init would be, and run no longer when the rank runs again."""
    before = [life(p) for p in orphans]
    rank = job.ranks(1)[0]
    os.kill(stat_of(rank)[0], signal.SIGKILL)
    job.until(lambda: [waited_for(p) for p in orphans] and (j := job.info()) and j["restarts"] == restarts and
              [r["state"] for r in j["ranks"]] == ["running"], "the rank runs again")
    for one in before:
        expect(life(one[0]) != one, f"process {one[0]} has outlived its supervisor")
    expect(job.ranks(1)[0] == rank, rank, job.ranks(1))


PAIR = """
import os, sys, time
def child():
    if "session" in sys.argv:
        os.setsid()
    open("there", "w").close()
    while not os.path.exists("go"):
        time.sleep(0.01)
    os._exit(3)
pid = os.fork() or child()
while not os.path.exists("go"):
    time.sleep(0.01)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


@test
def a_rank_with_children_comes_back_when_its_supervisor_is_killed(s):
    if not ids_allowed():
        skip("processes can't have their ids again here")
    for kind in "group", "session":
        job = s.hale_start(1, PYTHON, "-c", PAIR, kind, options=["--no-mpi"])
        job.until(lambda: os.path.exists(s.path("there")), "the program")
        for restarts in 1, 2:
            job.checkpoint()
            rank = job.ranks(1)[0]
            supervisor_killed(s, job, [rank] + children(rank), restarts)
        s.write("go", "")
        r = job.wait()
        expect(r.status == 0 and r.out == "3\n" and "is refused" not in r.err, kind, r)
        os.unlink(s.path("go"))
        os.unlink(s.path("there"))


# It has no parent of the job any more, and is no part of any image.
DAEMON = """
import os, time
if not os.fork():
    os.setsid()
    if not os.fork():
        with open("daemon", "w") as f: f.write(str(os.getpid()) + "\\n")
        while True: time.sleep(0.01)
    os._exit(0)
os.wait()
while not os.path.exists("go"): time.sleep(0.01)
print("right")
"""


@test
def a_daemon_of_a_rank_ends_with_the_supervisor(s):
    job = s.hale_start(1, PYTHON, "-c", DAEMON, options=["--no-mpi"])
    job.until(lambda: os.path.exists(s.path("daemon")) and s.read("daemon").endswith("\n"), "the daemon")
    job.checkpoint()
    supervisor_killed(s, job, [job.ranks(1)[0], int(s.read("daemon"))], 1)
    s.write("go", "")
    r = job.wait()
    expect(r.status == 0 and r.out == "right\n", r)


main()
