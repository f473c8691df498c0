#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Ranks move to new processes while their job runs (docs/migration.md), driven by an agent in
miniature (tests/minimigrate.c). Whatever happens to copies, the job computes what it would have."""

from lib import *

MINI = os.path.join(os.path.dirname(HALE), "tests", "minimigrate")
ENV = {"HALE_LIBDIR": os.path.dirname(HALE)}


def start(s, ranks, exe, *args, options=(), env=None):
    return s.start(MINI, "-n", ranks, "--report", s.path("moves"), *options, "--", exe, *args,
                   env=dict(ENV, **(env or {})))


def moves(s):
    """Per migration so far: rank, "moved" or "stays", rounds."""
    if not os.path.exists(s.path("moves")):
        return []
    fields = [line.split("\t") for line in s.read("moves").splitlines()]
    return [(int(f[0]), f[1], int(f[2])) for f in fields if len(f) == 7]


def steps(text):
    found = re.findall(r"^rank (\d+) step (\d+) ([0-9a-f]{16})$", text, re.M)
    return {(int(r), int(k)): v for r, k, v in found}


def run_steps(s, ranks, migrations, options=(), env=None):
    """A job that computes until so many migrations are over; then the same job undisturbed."""
    exe = s.compile("steps")
    os.mkdir(s.path("undisturbed"))
    job = start(s, ranks, exe, "0", "1", "8", options=("--times", migrations, *options), env=env)
    job.until(lambda: len(moves(s)) == migrations, f"{migrations} migrations")
    s.write("stop", "")
    r = job.wait()
    expect(r.status == 0, r, s.process_table())
    mine = steps(r.out)
    count = max(k for _, k in mine) + 1
    expect(len(mine) == ranks * count, f"{len(mine)} lines of {ranks} ranks and {count} steps", r)
    reference = s.run("sh", "-c", f"cd undisturbed && exec {HALE} run -n {ranks} -- {exe} {count} 0 8")
    expect(reference.status == 0, reference)
    expect(steps(reference.out) == mine, "other results than those of an undisturbed run", r)
    for rank in range(ranks):
        for file in (f"log.{rank}", f"state.{rank}"):
            expect(s.read(file) == s.read(os.path.join("undisturbed", file)), f"{file} differs")
    return r


@test
def ranks_move_while_they_compute(s):
    run_steps(s, 3, 9)
    expect([m[:2] for m in moves(s)] == [(i % 3, "moved") for i in range(9)], moves(s))
    expect(all(rounds >= 2 for _, _, rounds in moves(s)), moves(s))


@test
def ranks_move_between_nodes(s):
    """Two segments, what crosses goes over the network; after each move it is somebody else's."""
    run_steps(s, 3, 12, options=("--nodes", "2"), env={"HALE_COLL": "messages"})
    expect([m[:2] for m in moves(s)] == [(i % 3, "moved") for i in range(12)], moves(s))


@test
def ranks_move_through_a_relay(s):
    run_steps(s, 2, 6, options=("--relay",))
    expect([m[:2] for m in moves(s)] == [(i % 2, "moved") for i in range(6)], moves(s))


@test
def ranks_move_through_a_file(s):
    run_steps(s, 2, 4, options=("--file", s.path("stream")))
    expect([m[:2] for m in moves(s)] == [(i % 2, "moved") for i in range(4)], moves(s))
    expect(not os.path.exists(s.path("stream")), "the stream's file is left")


def stays(s, when, options=()):
    r = run_steps(s, 2, 4, options=("--kill", when, *options))
    expect([m[:2] for m in moves(s)] == [(i % 2, "stays") for i in range(4)], moves(s))
    expect(r.err.count(" stays: ") == 4, r)


@test
def a_copy_that_dies_at_the_beginning_harms_nobody(s):
    stays(s, "0")


@test
def a_copy_that_dies_between_rounds_harms_nobody(s):
    stays(s, "1")


@test
def a_copy_that_dies_in_the_stop_harms_nobody(s):
    stays(s, "stop")


@test
def a_copy_behind_a_relay_that_dies_in_the_stop_harms_nobody(s):
    stays(s, "stop", options=("--relay",))


def held_at(s, place):
    """OpenMP in MPI; migrated while all ranks are held at a place."""
    exe = s.compile("omp_mpi", flags=("-fopenmp",))
    env = {"OMP_NUM_THREADS": "4"}
    reference = s.hale_run(2, exe, env=env)
    expect(reference.status == 0, reference)
    for f in [f for f in os.listdir(s.dir) if f.startswith("at.")]:
        os.unlink(s.path(f))
    s.write("hold." + place, "")
    job = start(s, 2, exe, env=env)
    job.until(lambda: os.path.exists(s.path(f"at.{place}.0")) and
              os.path.exists(s.path(f"at.{place}.1")), f"both ranks are at {place}")
    before = len(moves(s))
    job.until(lambda: len(moves(s)) >= before + 5, "five more migrations")
    os.unlink(s.path("hold." + place))
    r = job.wait()
    expect(r.status == 0, r)
    expect(r.out == reference.out, "other results than those of an undisturbed run", r, reference)
    expect(sum(m[1] == "moved" for m in moves(s)) >= before + 3, moves(s), r)


@test
def ranks_move_with_a_collective_in_flight(s):
    held_at(s, "collective")


@test
def ranks_move_with_large_messages_in_flight_and_threads_at_work(s):
    held_at(s, "rendezvous")


@test
def lammps_moves_and_prints_the_same(s):
    have("lmp")
    melt = "/usr/share/lammps/examples/melt/in.melt"
    with open(melt) as f:
        s.write("in.melt", re.sub(r"^run\b.*", "run 600", f.read(), flags=re.M))
    argv = ["lmp", "-log", "none", "-in", s.path("in.melt")]
    reference = s.openmpi(2, *argv)
    expect(reference.status == 0, reference)
    r = start(s, 2, *argv).wait()
    expect(r.status == 0, r)
    expect(len(thermo(r.out)) > 10 and thermo(r.out) == thermo(reference.out), r, reference)
    expect(sum(m[1] == "moved" for m in moves(s)) >= 4, moves(s), r)


main()
