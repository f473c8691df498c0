#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Communicators, groups, topologies, attributes, info objects and error handlers: the same answers
as Debian's Open MPI, line by line."""

from lib import *

FLAGS = ["-DOMPI_OMIT_MPI1_COMPAT_DECLS=0", "-Wno-deprecated-declarations",
         "-Wno-stringop-overread"]


def same_lines(s, ranks, exe, ours_as=str):
    theirs = s.openmpi(ranks, exe)
    expect(theirs.status == 0, theirs)
    ours = s.hale_run(ranks, exe)
    expect(ours.status == 0, ours)
    a, b = sorted(theirs.out.splitlines()), sorted(map(ours_as, ours.out.splitlines()))
    expect(a == b, "not the same: Open MPI only " + repr([x for x in a if x not in b]),
           "ours only " + repr([x for x in b if x not in a]), ours)
    return f"{len(a)} lines"


@test
def communicators_of_all_kinds_are_those_of_open_mpi(s):
    exe = s.compile("comm_tour", flags=FLAGS)
    same_lines(s, 4, exe)
    return same_lines(s, 7, exe)


NEWER = {"74": "MPI_ERR_PROC_ABORTED", "78": "MPI_ERR_SESSION", "79": "MPI_ERR_VALUE_TOO_LARGE"}


@test
def wrong_calls_give_the_error_classes_of_open_mpi(s):
    """And three numbers that Open MPI 4.1 does not know yet are Open MPI 5's classes."""
    def older(line):
        code, _, rest = line.partition(" is ")
        return line if not rest.startswith(f"{code}: {NEWER.get(code)}: ") else \
            f"{code} is 14: Unknown error (this should not happen!)"
    exe = s.compile("comm_errors", flags=FLAGS)
    ours = s.hale_run(2, exe)
    for code, name in NEWER.items():
        expect(f"{code} is {code}: {name}: " in ours.out, name, ours)
    return same_lines(s, 2, exe, older)


@test
def communicators_made_by_threads_in_any_order_are_apart(s):
    # (Open MPI itself hangs in this one)
    exe = s.compile("comm_races", flags=["-pthread"])
    for ranks in 2, 4, 5:
        r = s.hale_run(ranks, exe)
        expect(r.status == 0 and r.out == "ok\n", r)
        expect("no number for a new communicator is left" in r.err, r)


@test
def agreements_in_flight_survive_a_rollback(s):
    exe = s.compile("comm_races", flags=["-pthread"])
    r = s.hale_run(4, exe, "6", options=["--ckpt-every", "200ms", "--seed", SEED,
                                         "--inject", "kill:rank=any,after=1s-2s"])
    expect(r.status == 0 and r.out == "ok\n", r)


@test
def numbers_of_communicators_are_used_again_after_a_rollback(s):
    """What an intercommunicator has for its own group is buried with it, by all of them."""
    exe = s.compile("comm_local", flags=["-I", os.path.join(ROOT, "include")])
    for options in (["--files", "leave"], ["--files", "leave", "--nodes", "2"]):
        alive = s.write("alive", "") # which the program removes once and for all
        r = s.hale_run(4, exe, alive, options=options, limit=30)
        expect(r.status == 0 and r.out == "ok\n" and not os.path.exists(alive), options, r)


@test
def what_there_is_no_number_for_is_an_error_and_no_crash(s):
    """A handle of MPI_Comm_idup is there before it turns out that nothing can be made."""
    exe = s.compile("comm_full")
    r = s.hale_run(2, exe, *range(10), limit=120)
    expect(r.status == 0 and r.out == "".join(f"way {i}: thousands\n" for i in range(10)), r)
    expect(r.err.count("no number for a new communicator is left") == 2, r)


@test
def an_error_nobody_handles_ends_the_job_with_one_sentence(s):
    r = s.hale_run(2, s.compile("comm_fatal"))
    expect(r.status == 5, r)
    expect(re.search(r"rank \d: MPI_Comm_dup on MPI_COMM_WORLD failed: "
                     r"MPI_ERR_COMM: invalid communicator", r.err), r)


main()
