#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""MPI_Comm_spawn, ports and published names in jobs of each ABI, through deaths of parents and children."""

from lib import *

PROGRAMS = os.path.join(ROOT, "tests", "programs")


def build(s, name, abi):
    if abi == "openmpi":
        return s.compile(name)
    exe = s.path(f"{name}.{abi}")
    source = os.path.join(PROGRAMS, name + ".c")
    if abi == "mpich":
        have("mpicc.mpich")
        r = s.run("mpicc.mpich", "-O2", "-w", "-o", exe, source)
    else:
        r = s.run("gcc", "-O2", "-I", os.path.join(BUILD, "include/mpi"), "-o", exe, source, "-L", BUILD, "-lmpi_abi")
    expect(r.status == 0, r)
    return exe


def total(parents, children, rounds):
    """What the first parent adds up: each round the sum over all of what they have sent."""
    each = parents * (parents + 1) // 2 + 1000 * children * (children + 1) // 2
    return sum(each + (parents + children) * i for i in range(rounds))


def right(r, rounds, parents=2):
    expect(r.status == 0, r)
    expect(r.out == f"{parents} parents, 3 children, {rounds} rounds: {total(parents, 3, rounds)}\n", r)


@test
def children_of_each_abi_talk_with_their_parents(s):
    for abi in ("openmpi", "mpich", "standard"):
        right(s.hale_run(2, build(s, "spawner", abi), "20"), 20)


@test
def a_lost_parent_and_a_lost_child_cost_a_rollback(s):
    exe = build(s, "spawner", "openmpi")
    for rank in (1, 3):
        r = s.hale_run(2, exe, "4000", options=["--spawn", 4, "--ckpt-every", "50ms", "--inject",
                                                f"kill:rank={rank},at-ckpt=3"])
        right(r, 4000)
        expect("rolling back to checkpoint" in r.err, r)


@test
def a_checkpoint_waits_for_who_becomes_the_spawned_program(s):
    exe = build(s, "spawner", "openmpi")
    late = s.compile("late_start", mpi=None, flags=("-static",))
    r = s.hale_run(2, exe, "20", options=["--spawn", 3, "--ckpt-every", "50ms"],
                   env={"SPAWNER_CHILD": late, "LATE": exe})
    right(r, 20)
    expect("can't be captured" not in r.err, r)


@test
def groups_meet_at_ports_and_what_can_not_be_is_refused(s):
    for abi in ("openmpi", "mpich"):
        r = s.hale_run(4, build(s, "ports", abi))
        expect(r.status == 0 and r.out == "met 20 times\n", r)
        expect("there is no program '/no/such/program'" in r.err, r)


@test
def a_job_whose_program_ends_before_the_reserve_has_started_ends(s):
    r = s.hale_run(2, "true", options=["--spawn", "16"])
    expect(r.status == 0 and not r.out, r)


@test
def without_a_reserve_a_sentence_says_how_to_have_one(s):
    exe = build(s, "spawner", "openmpi")
    r = s.hale_run(2, exe, options=["--spawn", 0])
    expect(r.status != 0 and "hale run --spawn 3" in r.err, r)
    r = s.hale_run(2, exe, options=["--spawn", 3, "--nodes", 2])
    expect(r.status == 64 and "--spawn and jobs on several nodes" in r.err, r)


main()
