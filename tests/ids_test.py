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


main()
