#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Calls of MPI-4: MPI_Isendrecv and partitioned messages, undisturbed and with a rank killed; persistent
collectives with arrays; counts of 64 bits."""

from lib import *


def build(s, name="mpi4"):
    exe = s.path(name)
    r = s.run("gcc", "-O2", "-I", os.path.join(BUILD, "include/mpi"), "-o", exe,
              os.path.join(ROOT, "tests", "programs", name + ".c"), "-L", BUILD, "-lmpi_abi")
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


@test
def partitioned_messages_match_in_the_order_of_their_initialisations(s):
    r = s.hale_run(2, build(s, "partitioned"))
    expect(r.status == 0 and r.out == "0 wrong\n", r)


@test
def unmatched_partitioned_messages_survive_a_rollback(s):
    job = s.hale_start(2, build(s, "partitioned"), "1000", s.path("enough"),
                       options=["--ckpt-every", "30ms", "--inject", "kill:rank=1,at-ckpt=2"])
    job.until_says("rolling back to checkpoint")
    s.write("enough", "")
    r = job.wait()
    expect(r.status == 0 and r.out == "0 wrong\n", r)


@test
def persistent_collectives_keep_their_arrays(s):
    for ranks in (1, 3):
        r = s.hale_run(ranks, build(s, "persistent_arrays"))
        expect(r.status == 0 and r.out == "0 wrong\n", ranks, r)


@test
def several_requests_tell_their_status_and_stay(s):
    r = s.hale_run(1, build(s, "mpi41"))
    expect(r.status == 0 and r.out == "bad: 0\n", r)


@test
def counts_beyond_31_bits_are_right(s):
    exe = build(s, "large_counts")
    r = s.hale_run(2, exe)
    expect(r.status == 0 and r.out == "bad: 0\n", r)
    if LONG:  # 2.1 GB in each of two processes
        r = s.hale_run(2, exe, str(2 ** 31 + 4096))
        expect(r.status == 0 and r.out == "bad: 0\n", r)


main()
