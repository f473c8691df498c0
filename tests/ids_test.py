#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Processes and threads have the ids that they had, where the kernel lets Hale ask for them."""

from lib import *


ASYNCIO = """
import asyncio, os, threading, time
begun = (os.getpid(), threading.get_native_id())
other = []
class Other(threading.Thread):
    def run(self):
        other.append(threading.get_native_id())
        while not os.path.exists("stop"):
            time.sleep(0.01)
        other.append(threading.get_native_id())
async def main():
    t = Other()
    t.start()
    print("begun", flush=True)
    while not os.path.exists("stop"):
        await asyncio.sleep(0.01)
    await asyncio.get_running_loop().run_in_executor(None, t.join)
    same = begun == (os.getpid(), threading.get_native_id()) and other[0] == other[1]
    print("the same" if same else "others", flush=True)
asyncio.run(main())
"""


@test
def a_python_loop_and_its_threads_keep_their_ids_over_two_rollbacks(s):
    job = s.hale_start(1, "/usr/bin/python3", "-c", ASYNCIO, options=["--no-mpi"])
    job.until_output("begun")
    for i in range(2):
        job.checkpoint()
        before = job.ranks(1)[0]
        os.kill(before, signal.SIGKILL)
        job.until(lambda: (j := job.info()) and j["restarts"] == i + 1 and
                  [r["state"] for r in j["ranks"]] == ["running"], "the rank runs again")
        if ids_allowed():
            expect(job.ranks(1)[0] == before, (before, job.ranks(1)))
    s.write("stop", "")
    r = job.wait()
    expect(r.status == 0, r)
    if ids_allowed():
        expect(r.out == "begun\nthe same\n", r)


# A process with an id that was asked for, of a group of its own, which nobody here has to wait for.
STRANGER = """
import ctypes, os, signal, sys
id = (ctypes.c_int32 * 1)(int(sys.argv[1]))
args = (ctypes.c_uint64 * 11)(0, 0, 0, 0, signal.SIGCHLD, 0, 0, 0, ctypes.addressof(id), 1, 0)
if ctypes.CDLL(None).syscall(435, args, ctypes.sizeof(args)) == 0:
    os.setsid()
    for fd in range(3):
        os.dup2(os.open(os.devnull, os.O_RDWR), fd)
    os.execvp("sleep", ["sleep", "600"])
"""


def supervisor_of(job):
    for p in children(job.pid):
        try:
            with open(f"/proc/{p}/comm") as f:
                if f.read().strip() == "hale-supervisor":
                    return p
        except OSError:  # a command of the rank's shell that has ended
            pass
    raise Failed("the job has no supervisor")


@test
def who_has_the_id_of_a_rank_that_has_ended_is_left_alone(s):
    """Ids come again in long jobs. The new one's group was killed with the job, which waited for its end, too."""
    if not ids_allowed():
        skip("no right to choose an id")
    for end in "well", "by a signal", "without its head", "without its supervisor":
        for name in "id", "go":
            if os.path.exists(s.path(name)):
                os.unlink(s.path(name))
        job = s.hale_start(2, "/bin/sh", "-c", "[ $HALE_RANK = 1 ] || { echo $$ >id; exit; }\n"
                           "while [ ! -e go ]; do sleep 0.1; done", options=["--no-mpi"])
        job.until(lambda: [r["state"] for r in (job.info() or {"ranks": []})["ranks"]] == ["ended", "running"],
                  "the end of rank 0")
        pid = int(s.read("id"))
        s.run(PYTHON, "-c", STRANGER, pid)
        job.until(lambda: name_of(pid) == "sleep 600", "the stranger")
        if end == "well":
            s.write("go", "")
        elif end == "by a signal":
            job.kill(signal.SIGTERM)
        elif end == "without its head":
            job.kill()
        else:
            os.kill(supervisor_of(job), signal.SIGKILL)
        r = job.wait()
        for _ in range(1000):  # without their head ranks end by themselves
            if children(os.getpid(), standing=True) in ([], [pid]):
                break
            time.sleep(0.02)
        expect(name_of(pid) == "sleep 600", f"the stranger was ended with a job that ended {end}", r)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


main()
