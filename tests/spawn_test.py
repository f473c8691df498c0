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
def published_names_are_there_after_a_rollback(s):
    r = s.hale_run(4, build(s, "ports", "openmpi"), "4000",
                   options=["--ckpt-every", "50ms", "--inject", "kill:rank=1,at-ckpt=3"])
    expect(r.status == 0 and r.out == "met 4000 times\n", r)
    expect("rolling back to checkpoint" in r.err, r)


@test
def a_name_is_found_while_its_publisher_comes_back(s):
    exe = build(s, "names", "openmpi")
    for options in ([], ["--spawn", 2]):
        r = s.hale_run(3, exe, "3000", options=["--ckpt-every", "300ms", "--inject", "kill:rank=1,at-ckpt=2", *options])
        expect(r.status == 0 and r.out == "found\n", r)
        expect("rolling back to checkpoint" in r.err, r)


@test
def a_job_whose_program_ends_before_the_reserve_has_started_ends(s):
    r = s.hale_run(2, "true", options=["--spawn", "16"])
    expect(r.status == 0 and not r.out, r)


@test
def without_a_reserve_a_sentence_says_how_to_have_one(s):
    exe = build(s, "spawner", "openmpi")
    r = s.hale_run(2, exe, options=["--spawn", 0])
    expect(r.status != 0 and "hale run --spawn 3" in r.err, r)
    r = s.hale_run(2, exe, options=["--spawn", 3, "--replicas", 2])
    expect(r.status == 64 and "--spawn and --replicas" in r.err, r)
    # too few for ever: the answer does not wait for processes to come back
    r = s.hale_run(2, exe, options=["--spawn", 2])
    expect(r.status != 0 and "3 processes are wanted, and fewer are left" in r.err, r)


@test
def ports_of_another_job_are_refused_by_a_sentence_and_jobs_with_replicas_have_none(s):
    source = s.write("port.c", """
#include <mpi.h>
#include <stdio.h>
int main(int c, char **v) {
    MPI_Comm made;
    char port[MPI_MAX_PORT_NAME] = "";
    int class = 0;
    MPI_Init(&c, &v);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    if (c > 1) {
        MPI_Error_class(MPI_Comm_connect(v[1], MPI_INFO_NULL, 0, MPI_COMM_SELF, &made), &class);
        printf("%d\\n", class == MPI_ERR_PORT);
    } else {
        printf("%d %s\\n", MPI_Open_port(MPI_INFO_NULL, port) == MPI_SUCCESS, port);
    }
    MPI_Finalize();
    return 0; }
""")
    have("mpicc.openmpi")
    exe = s.path("port")
    r = s.run("mpicc.openmpi", "-w", "-o", exe, source)
    expect(r.status == 0, r)
    other = s.hale_run(1, exe)
    expect(other.status == 0 and other.out.startswith("1 hale:"), other)
    r = s.hale_run(1, exe, other.out.split()[1])
    expect(r.status == 0 and r.out == "1\n" and "processes of two jobs can't meet" in r.err, r)
    r = s.hale_run(1, exe, options=["--replicas", 2])
    expect(r.status == 0 and r.out.startswith("0 ") and "a job with replicas has no ports" in r.err, r)


def respawn_right(r, rounds, parents=2, children=3):
    expect(r.status == 0, r)
    expect(r.out == f"{parents} parents, {children} children, {rounds} rounds: {total(parents, children, rounds)}\n", r)


@test
def processes_that_have_ended_are_spawned_again(s):
    for abi in ("openmpi", "mpich", "standard"):
        # 4 in reserve for 36 children
        respawn_right(s.hale_run(2, build(s, "respawn", abi), "12", options=["--spawn", 4]), 12)


@test
def children_after_children_through_checkpoints_and_a_death(s):
    exe = build(s, "respawn", "openmpi")
    for rank in (0, 3):  # a parent; a process that is a child now, and in reserve then
        r = s.hale_run(2, exe, "6", "3", "1500", options=["--spawn", 4, "--ckpt-every", "50ms", "--inject",
                                                          f"kill:rank={rank},at-ckpt=4"])
        respawn_right(r, 6)
        expect("rolling back to checkpoint" in r.err, r)
        # an image that is being written when its process becomes another program is finished first
        expect("was given up" not in r.err, r)


@test
def children_live_on_all_nodes(s):
    exe = build(s, "respawn", "openmpi")
    respawn_right(s.hale_run(2, exe, "6", "4", options=["--spawn", 4, "--nodes", 2]), 6, children=4)
    r = s.hale_run(2, exe, "6", "4", "500", options=["--spawn", 5, "--nodes", 2, "--ckpt-every", "100ms", "--inject",
                                                     "kill:rank=4,at-ckpt=3"])
    respawn_right(r, 6, children=4)
    expect("rolling back to checkpoint" in r.err, r)


@test
def the_children_of_a_lost_node_go_on_elsewhere(s):
    exe = build(s, "respawn", "openmpi")
    job = s.hale_start(2, exe, "8", "4", "800", options=["--spawn", 5, "--nodes", 2, "--spares", 1, "--ckpt-every", "100ms"])
    job.until(lambda: len(s.complete()) > 1, "checkpoints")
    node = next(n for n in json.loads(s.hale("nodes", job.id(), "--json").out)["nodes"] if n["node"] == "node1")
    os.kill(node["pid"], signal.SIGKILL)
    r = job.wait()
    respawn_right(r, 8, children=4)
    expect("node1" in r.err and "rolling back to checkpoint" in r.err, r)


@test
def jobs_on_several_nodes_whose_programs_end_early_end(s):
    r = s.hale_run(2, "true", options=["--spawn", "6", "--nodes", 2])
    expect(r.status == 0 and not r.out, r)


main()
