#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Sessions: MPI without MPI_Init, beside it and around it; buffers of communicators and sessions;
what is erroneous; a rank killed; over two nodes."""

from lib import *


def build(s):
    exe = s.path("sessions")
    r = s.run("gcc", "-O2", "-I", os.path.join(BUILD, "include/mpi"), "-o", exe,
              os.path.join(ROOT, "tests", "programs", "sessions.c"), "-L", BUILD, "-lmpi_abi")
    expect(r.status == 0, r)
    return exe


@test
def sessions_work_without_and_around_the_world(s):
    exe = build(s)
    for ranks, mode in ((1, "work"), (3, "work"), (3, "world"), (3, "wrong")):
        r = s.hale_run(ranks, exe, mode)
        expect(r.status == 0 and r.out == "0 wrong\n", ranks, mode, r)


@test
def sessions_span_nodes(s):
    r = s.hale_run(3, build(s), "work", options=["--nodes", "2"])
    expect(r.status == 0 and r.out == "0 wrong\n", r)


@test
def a_lost_rank_changes_nothing(s):
    r = s.hale_run(3, build(s), "work", "20000",
                   options=["--ckpt-every", "50ms", "--inject", "kill:rank=1,at-ckpt=2"])
    expect(r.status == 0 and r.out == "0 wrong\n", r)
    expect("rolling back to checkpoint" in r.err, r)


@test
def what_there_is_not_is_refused(s):
    exe = build(s)
    for mode, said in (("null", "MPI_Session_finalize on MPI_COMM_WORLD failed: MPI_ERR_SESSION"),
                       ("comm", "MPI_Barrier on MPI_COMM_WORLD failed: MPI_ERR_COMM")):
        r = s.hale_run(1, exe, mode)
        expect(r.status != 0 and said in r.err, mode, r)
    r = s.hale_run(2, exe, "late")
    expect(r.status == 0 and "open the session before MPI_Finalize" in r.err, r)


main()
