#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""MPI_Isendrecv and partitioned messages, undisturbed and with a rank killed."""

from lib import *


def build(s):
    exe = s.path("mpi4")
    r = s.run("gcc", "-O2", "-I", os.path.join(BUILD, "include/mpi"), "-o", exe,
              os.path.join(ROOT, "tests", "programs", "mpi4.c"), "-L", BUILD, "-lmpi_abi")
    expect(r.status == 0, r)
    return exe


@test
def rings_have_the_right_values(s):
    for ranks in (1, 3):
        r = s.hale_run(ranks, build(s), "20")
        expect(r.status == 0 and r.out == "0 wrong\n", ranks, r)


@test
def a_lost_rank_changes_nothing(s):
    r = s.hale_run(3, build(s), "600", options=["--ckpt-every", "50ms", "--inject", "kill:rank=1,at-ckpt=2"])
    expect(r.status == 0 and r.out == "0 wrong\n", r)
    expect("rolling back to checkpoint" in r.err, r)


main()
