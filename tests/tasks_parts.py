# SPDX-License-Identifier: BSD-3-Clause
"""What tests of tasks share: building such programs, running them under `hale run --tasks`."""

from lib import *

TWO = {"OMP_NUM_THREADS": "2"}


def build(s, name="tasks_tour", cc="clang", flags=(), mpi=False):
    have(cc)
    exe = s.path(name + "." + cc)
    env = {"OMPI_CC": cc, "MPICH_CC": cc}
    r = s.run("mpicc." + (mpi if isinstance(mpi, str) else "openmpi") if mpi else cc, "-std=gnu17", "-O2", "-g", "-Wall", "-o", exe,
              os.path.join(ROOT, "tests", "programs", name + ".c"), "-I", os.path.join(ROOT, "include"),
              *(flags or ("-fopenmp",)), env=env)
    expect(r.status == 0, r)
    return exe


def build_own(s):
    """tests/programs/tasks_own.c, which needs no OpenMP, with the library of the build folder"""
    return build(s, "tasks_own", "gcc", ("-L", BUILD, "-lhale_task", "-Wl,-rpath," + BUILD))


def tasks(s, exe, *argv, settings="", due=None, options=(), ranks=1, status=0, env=TWO):
    """(Result, the report's "tasks")"""
    more = ["--inject", "due:" + due] if due else []
    r = s.hale("run", "-n", ranks, "--tasks" + (f"={settings}" if settings else ""), *more, "--report", "report.json",
               *options, "--", exe, *argv, env=env)
    expect(r.status == status, r)
    return r, s.report()["tasks"]
