#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Containers whose C library is older than this machine's (docs/containers.md): Hale is carried into them.

The first test's container has no C library at all, only empty files where it belongs: what runs there runs with the one
that was carried. HALE_LONG=1: Debian 11, and its own mpi4py; HALE_OLD_ROOT names a folder with it, else debootstrap
fetches it."""

from lib import *
from recipes_parts import recipe
from steps_parts import PAUSE_MS, end, steps

KIT = os.path.join(ROOT, "data/container/hale-kit")
OLD = """
import sys, time
from mpi4py import MPI
import ctypes
libc = ctypes.CDLL(None)
libc.gnu_get_libc_version.restype = ctypes.c_char_p
for i in range(60):
    total = MPI.COMM_WORLD.allreduce(i)
    time.sleep(0.05)
print("rank", MPI.COMM_WORLD.rank, "sum", total, sys.version.split()[0], libc.gnu_get_libc_version().decode(), flush=True)
"""


def kit(s):
    have("unshare")
    if os.getuid() != 0 and s.run("unshare", "--map-root-user", "--mount", "true").status != 0:
        skip("users have no namespaces of their own here")
    r = s.run(KIT, "kit", env={"HALE": HALE})
    expect(r.status == 0 and r.out == "kit\n", r)
    return s.path("kit/enter")


def linked_with(s, *programs):
    for program in programs:
        for path in re.findall(r"=> (/\S+)|^\s(/\S*ld-linux\S*)", s.run("ldd", program).out, re.M):
            yield path[0] or path[1]


def container(s, *programs):
    """A system with these programs and what they are linked with, but for the C library."""
    root = s.path("root")
    for folder in "dev", "proc", "sys", "mnt", "tmp", "bin", "lib64", "lib/x86_64-linux-gnu":
        os.makedirs(os.path.join(root, folder))
    for program in programs:
        shutil.copy(program, os.path.join(root, "bin"))
    os.symlink(os.path.basename(programs[0]), os.path.join(root, "bin/sh"))
    for path in set(linked_with(s, *programs)):
        name = os.path.basename(path)
        if os.path.exists(s.path("kit/libc/" + name)):
            s.write("root/lib/x86_64-linux-gnu/" + name, "")
        elif not os.path.exists(s.path("kit/" + name)):
            shutil.copy(path, os.path.join(root, "lib/x86_64-linux-gnu", name))
    os.symlink("/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2", os.path.join(root, "lib64/ld-linux-x86-64.so.2"))
    return root


def files_below(root):
    return sorted(os.path.join(d, n) for d, dirs, names in os.walk(root) for n in names + dirs)


@test
def a_job_in_a_container_without_a_c_library_loses_a_rank_and_is_restarted(s):
    enter = kit(s)
    root = container(s, "/bin/dash", steps(s))
    before = files_below(root)
    job = s.start(enter, root, "hale", "run", "-n", 2, "--ckpt-every", "100ms", "--inject", "kill:rank=1,at-ckpt=2", "/bin/steps",
                  0, PAUSE_MS)
    end(s, job, ranks=2, rollbacks=1)
    # from its newest checkpoint, in a new container of the same system
    (folder,) = glob.glob(s.path("hale-ckpt/steps.*"))
    s.write("stop", "")
    r = s.run(enter, root, "hale", "restart", "hale-ckpt/" + os.path.basename(folder))
    expect(r.status == 0 and "all ranks run again" in r.err, r)
    after = files_below(root)
    expect(after == before, "the container is as it was", set(after) ^ set(before))


@test
def what_can_not_be_entered_is_said(s):
    enter = kit(s)
    r = s.run(KIT, "kit", env={"HALE": HALE})
    expect(r.status == EXIT_USAGE and "there already" in r.err, r)
    r = s.run(KIT, "other", env={"HALE": "/nowhere/hale"})
    expect(r.status == EXIT_USAGE and "no hale" in r.err and not os.path.exists(s.path("other")), r)
    os.makedirs(s.path("empty"))
    for words, why in ([], "usage"), (["nowhere", "true"], "usage"), (["empty"], "which command"), (["empty", "true"], "no C library"):
        r = s.run(enter, *words)
        expect(r.status == EXIT_USAGE and why in r.err, words, r)
    root = container(s, "/bin/dash")
    os.rmdir(s.path("root/mnt"))
    r = s.run(enter, root, "true")
    expect(r.status == EXIT_USAGE and "no folder /mnt" in r.err, r)
    r = s.run(enter, "--print", root)
    expect(r.status == 0 and f"{s.path('kit/libc/libc.so.6')}:/lib/x86_64-linux-gnu/libc.so.6" in r.out.splitlines(), r)


@test
def debian_11s_own_mpi4py_is_protected_by_this_machines_hale(s):
    if not LONG:
        skip("fetches a system: with HALE_LONG=1")
    if os.getuid() != 0:
        skip("needs root")
    root = os.environ.get("HALE_OLD_ROOT")
    if not root:
        have("debootstrap")
        root = s.path("bullseye")
        r = s.run("debootstrap", "--variant=minbase", "--include=python3-mpi4py", "bullseye", root, limit=3600)
        expect(r.status == 0, r)
    enter = kit(s)
    s.write("job.py", OLD)
    lines = [x.split("#")[0].split() for x in recipe("containers.md", "kit/enter debian11 hale run").splitlines() if "hale run" in x]
    expect(lines[0][:2] == ["kit/enter", "debian11"], lines)
    words = [root if w == "debian11" else w for w in lines[0]]
    words[4:4] = ["--ckpt-every", "200ms", "--inject", "kill:rank=1,at-ckpt=3"]
    r = s.run(enter, *words[1:])
    expect(r.status == 0 and "all ranks run again from checkpoint" in r.err, r)
    said = sorted(r.out.splitlines())
    expect(len(said) == 2 and all(re.fullmatch(rf"rank {k} sum 118 3\.9\.\d+ 2\.3[6-9].*", x) for k, x in enumerate(said)), r)


main()
