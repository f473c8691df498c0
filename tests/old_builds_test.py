#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checkpoints that older builds wrote: today's hale goes on from them, or refuses them by a sentence. It builds these
older ones from the repository, so it runs with HALE_LONG=1 only. HALE_OLD_BUILDS=DIR keeps them in DIR."""

import resource

from lib import *

# commit, and what becomes of its images
BUILDS = [("today", "right"),
          ("6374e65", "right"),  # version 16, format 7, of 2026-11-28: manifests do not say the segment's version
          ("dd3b6bc", "refused"),  # version 14 of the node's segment, images of format 6
          ("cfbc296", "refused")]  # version 12, format 2

PROGRAM = """
import os, threading, time
total, lock = 0, threading.Lock()
def add(k):
    global total
    for i in range(150):
        with lock:
            total = (total * 31 + i * k) % 1000003 if k else total
        time.sleep(0.01)
        with open(f"log{k}", "a") as f:
            f.write(f"{i}\\n")
r, w = os.pipe()
os.write(w, b"in flight")
t = threading.Thread(target=add, args=(0,))
t.start()
add(7)
t.join()
print(total, os.read(r, 9), len(open("log0").readlines()), len(open("log7").readlines()), flush=True)
"""


def built(s, commit):
    if commit == "today":
        return HALE
    folder = os.path.join(os.environ.get("HALE_OLD_BUILDS", s.path("old")), commit)
    hale = os.path.join(folder, "build", "hale")
    if os.path.exists(hale):
        return hale
    os.makedirs(folder, exist_ok=True)
    r = s.run("sh", "-c", f"git -C {ROOT} archive {commit} | tar -x -C {folder}")
    expect(r.status == 0, r)
    wanted = ["hale", "libhale.so", "libmpi.so.40"]
    for command in (["meson", "setup", "build", "-Dtests=disabled"], ["ninja", "-C", "build", *wanted]):
        r = s.run("nice", "sh", "-c", "cd $0 && exec \"$@\"", folder, *command, limit=1500)
        expect(r.status == 0, r)
    return hale


def checkpointed(s, hale, folder):
    """The folder of a job of that build that was ended in the middle of its program."""
    os.mkdir(s.path(folder))
    job = s.start(hale, "run", "--no-mpi", "--ckpt-every", "200ms", "--wdir", s.path(folder), "--ckpt-dir",
                  s.path(folder, "hale-ckpt"), "--", PYTHON, "-c", PROGRAM)
    job.until(lambda: len(s.complete(os.path.join(folder, "hale-ckpt"))) > 1, "two checkpoints")
    job.p.send_signal(signal.SIGTERM)
    expect(job.wait().status != 0, job.result())
    return os.path.dirname(s.complete(os.path.join(folder, "hale-ckpt"))[-1])


@test
def checkpoints_of_older_builds_go_on_or_are_refused(s):
    if not LONG:
        skip("builds older versions: HALE_LONG=1")
    for program in "git", "meson", "ninja":
        have(program)
    if s.run("git", "-C", ROOT, "cat-file", "-e", BUILDS[-1][0]).status != 0:
        skip("no repository here")
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    alone = s.run(PYTHON, "-c", PROGRAM)
    for name in "log0", "log7":
        os.unlink(s.path(name))
    for commit, wanted in BUILDS:
        old = checkpointed(s, built(s, commit), commit)
        r = s.hale("restart", old)
        if wanted == "right":
            expect(r.status == 0 and r.out == alone.out, commit, r)
        else:
            expect(r.status == EXIT_USAGE and r.out == "" and "Restart it with the Hale that wrote it" in r.err and
                   "ranks run" not in r.err, commit, r)


main()
