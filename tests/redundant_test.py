#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Ranks that run in two processes each: whichever of them dies, the job goes on where it is."""

from lib import *
from adopt_parts import agent_of, nodes

MELT = "/usr/share/lammps/examples/melt/in.melt"
BASIS = 14695981039346656037  # what `farm` begins to fold its choices with
RUNS = 50 if LONG else 3


def lammps_input(s, steps):
    text = re.sub(r"(?m)^run.*", f"run {steps}", open(MELT).read())
    return s.write("in.melt", text)


def mpi4_program(s, name):
    exe = s.path(name)
    r = s.run("gcc", "-O2", "-I", os.path.join(BUILD, "include/mpi"), "-o", exe,
              os.path.join(ROOT, "tests", "programs", name + ".c"), "-L", BUILD, "-lmpi_abi")
    expect(r.status == 0, r)
    return exe


def kills(chance, ranks, within):
    """--inject options: one process of each of one to three ranks dies, at some time of these."""
    options = []
    for rank in chance.sample(range(ranks), chance.choice([1, 1, 2, 3])):
        options += ["--inject", f"kill:rank={rank},slot={chance.randrange(2)},after={chance.uniform(*within):.3f}s"]
    return options


def lost(r):
    return len(re.findall(r"replica \d goes on", r.err))


@test
def lammps_prints_the_same_whichever_processes_die(s):
    have("lmp")
    if not os.path.exists(MELT):
        skip("LAMMPS's examples are not installed")
    lammps_input(s, 800)
    plain = s.hale_run(4, "lmp", "-in", "in.melt")
    expect(plain.status == 0, plain)
    chance = random.Random(SEED)
    deaths = 0
    for _ in range(RUNS):
        r = s.hale_run(4, "lmp", "-in", "in.melt", options=["--replicas", "2", *kills(chance, 4, (0.3, 1.5))])
        expect(r.status == 0 and thermo(r.out) == thermo(plain.out), r, plain)
        expect(r.out.count("\n") == plain.out.count("\n") and "roll" not in r.err, r, plain)
        deaths += lost(r)
    expect(deaths > 0, "nobody has died")


@test
def a_storm_of_all_kinds_of_messages_survives_deaths(s):
    exe = s.compile("storm")
    plain = s.hale_run(4, exe, 200)
    expect(plain.status == 0, plain)
    chance = random.Random(SEED + 1)
    for options, kept, cma in (([], "256MiB", "1"), (["--nodes", "2"], "256MiB", "1"), ([], "100000", "0")):
        r = s.hale_run(4, exe, 200, options=["--replicas", "2", *options, *kills(chance, 4, (0.3, 1.2))],
                       env={"HALE_RETAIN_MAX": kept, "HALE_SHM_CMA": cma})
        expect(r.status == 0 and r.out == plain.out, r, plain)


@test
def collectives_that_cross_each_other_end_at_the_bound_of_retention(s):
    exe = s.compile("crossings")
    chance = random.Random(SEED + 4)
    for degree, bound, options in (("2", "5000", []), ("3", "5000", []), ("2", "15000", []),
                                   ("2", "15000", kills(chance, 4, (0.2, 0.6))), ("2", "5000", ["--nodes", "2"])):
        r = s.hale_run(4, exe, 200, 3000, options=["--replicas", degree, *options], env={"HALE_RETAIN_MAX": bound})
        expect(r.status == 0 and r.out == "200 rounds, 0 wrong\n", degree, bound, options, r)


@test
def persistent_collectives_start_in_an_order_of_each_rank_s_own(s):
    exe = s.compile("neighbors")
    chance = random.Random(SEED + 2)
    for options in ([], ["--nodes", "2"], kills(chance, 3, (0.3, 1.0))):
        rounds = 4000 if "--inject" in options else 300
        r = s.hale_run(3, exe, rounds, SEED, options=["--replicas", "2", *options])
        expect(r.status == 0 and r.out == f"{rounds} rounds, 0 wrong\n", options, r)


def farm_is_consistent(r, tasks):
    """What the master has printed is what its other replica told the workers."""
    def word(name):
        found = re.findall(rf"(?m)^{name} ([0-9a-f]+)$", r.out)
        expect(len(found) == 1, name, r)
        return int(found[0], 16)
    done = [int(n) for n in re.findall(r"(?m)^(\d+) done:", r.out)]
    expect(r.status == 0 and done == list(range(50, tasks + 1, 50)), r)
    expect(word("all") == word("choices") ^ BASIS, r)
    return word("sum")


@test
def choices_of_a_leader_are_those_of_whoever_follows_it(s):
    exe = s.compile("farm")
    expected = None
    chance = random.Random(SEED + 2)
    for run in range(RUNS + 1):
        victims = kills(chance, 4, (0.1, 0.7)) if run else []
        if run % 2:  # the master's leader, which makes the choices
            victims = ["--inject", f"kill:rank=0,slot=0,after={chance.uniform(0.1, 0.7):.3f}s"]
        r = s.hale_run(4, exe, 300, options=["--replicas", "2", *victims])
        total = farm_is_consistent(r, 300)
        expect(expected in (None, total), r)
        expected = total


@test
def a_master_in_python_that_takes_whoever_answers_first(s):
    """The choices differ from run to run, the result does not."""
    script = os.path.join(ROOT, "tests/programs/farm.py")
    plain = s.hale_run(4, PYTHON, script, "600")
    expect(plain.status == 0 and "total" in plain.out, plain)
    chance = random.Random(SEED + 3)
    deaths = 0
    for _ in range(RUNS if LONG else 1):
        r = s.hale_run(4, PYTHON, script, "600", options=["--replicas", "2", *kills(chance, 4, (0.4, 1.4))])
        expect(r.status == 0 and r.out == plain.out and "roll" not in r.err, r, plain)
        deaths += lost(r)
    return f"{deaths} deaths"


@test
def a_node_that_is_lost_costs_nothing(s):
    """One after the other, whichever it is: its ranks go on in their replicas elsewhere."""
    have("lmp")
    if not os.path.exists(MELT):
        skip("LAMMPS's examples are not installed")
    lammps_input(s, 800)
    plain = s.hale_run(4, "lmp", "-in", "in.melt")
    chance = random.Random(SEED + 4)
    for run in range(10 if LONG else 1):
        job = s.hale_start(4, "lmp", "-in", "in.melt", options=["--replicas", "2", "--nodes", "2", "--agent-lost",
                                                                "end", "--replenish", "off", "--report",
                                                                "report.json"])
        job.until_output(f"(?m)^ +{chance.randrange(50, 300, 50)} ")
        victim = f"node{(run + 1) % 2}"
        os.kill(agent_of(nodes(s, job)[victim]["pid"]), signal.SIGKILL)
        r = job.wait()
        expect(r.status == 0 and f"node {victim} is lost" in r.err and "in other replicas" in r.err, r)
        expect(thermo(r.out) == thermo(plain.out) and r.out.count("\n") == plain.out.count("\n"), r, plain)
        report = s.report()
        expect(report["restarts"] == 0 and report["replicas"]["lost"] == 4, report)


def lives(job):
    """[(rank, slot, node, pid)] if all processes of all ranks run; else nothing."""
    ranks = (job.info() or {"ranks": []})["ranks"]
    return ranks and all(r["state"] == "running" and r["pid"] for r in ranks) and [(r["rank"], r["slot"], r["node"], r["pid"])
                                                                        for r in ranks]


@test
def bookmarks_of_figure_3_5_whichever_replica_is_behind(s):
    """Seed 000, figure 3.5, and the three cases of stages 3 and 4: as the others see it, the replica that dies was
    level with the one that is copied, behind it, or ahead; it dies between two MPI_Isend, or waits for both."""
    exe = s.compile("bookmarks")
    for slow in 2, 0, 1:
        plain = s.hale_run(2, exe, 500, 2, 0)
        for rank, slot, call in (1, 0, "MPI_Isend:101"), (1, 0, "MPI_Waitall:121"), (0, 1, "MPI_Isend:160"), (0, 0, "MPI_Irecv:91"):
            r = s.hale_run(2, exe, 500, slow, 3000, options=["--replicas", "2", "--nodes", "2", "--report", "report.json",
                                                             "--inject", f"kill:rank={rank},slot={slot},at-call={call}"])
            expect(r.status == 0 and sorted(r.out.splitlines()) == sorted(plain.out.splitlines()), (slow, rank, slot, call), r, plain)
            report = s.report()
            expect(report["replicas"]["lost"] == 1 and [(c["rank"], c["slot"]) for c in report["clones"]] == [(rank, slot)],
                   (slow, rank, slot, call), report)


@test
def replicas_move_while_the_job_runs(s):
    """To a spare, then to where no other replica of a rank is; with kills afterwards, and one in the middle."""
    exe = s.compile("storm")
    plain = s.hale_run(3, exe, 600)
    job = s.hale_start(3, exe, 600, options=["--nodes", "2", "--spares", "1", "--replicas", "2", "--report", "report.json"])
    job.until(lambda: lives(job), "all processes run")
    for source in "node0", "node1":
        r = s.hale("migrate", job.id(), "--from", source)
        expect(r.status == 0, r)
        ranks = job.until(lambda: lives(job), "all processes run")
        expect(source not in {node for _, _, node, _ in ranks}, ranks)
        expect(len({(rank, node) for rank, _, node, _ in ranks}) == 6, ranks)
    os.kill(lives(job)[0][3], signal.SIGKILL)
    r = job.wait()
    expect(r.status == 0 and r.out == plain.out and "roll" not in r.err and "goes on" in r.err, r, plain)
    report = s.report()
    expect([m["ranks"] for m in report["migrations"]] == [3, 3] and report["restarts"] == 0, report["migrations"])


@test
def replicas_that_leave_one_node_for_two_say_what_they_have_heard(s):
    """On one node nobody says so. A leader with a mate on another node sends nothing before it knows."""
    exe = s.compile("apart")
    plain = s.hale_run(2, exe, 400)
    job = s.hale_start(2, exe, 400, options=["--nodes", "1", "--spares", "2", "--replicas", "2"],
                       env={"HALE_RETAIN_MAX": "20000"})
    job.until_output("round 100")
    r = s.hale("migrate", job.id(), "--from", "node0")
    expect(r.status == 0, r)
    expect(len({node for rank, _, node, _ in job.until(lambda: lives(job), "all processes run") if rank == 0}) == 2, r)
    r = job.wait()
    expect(r.status == 0 and r.out == plain.out, r, plain)


@test
def what_libc_told_a_leader_alone_does_not_stop_the_next_one(s):
    exe = s.compile("unasked")
    r = s.hale_run(2, exe, 3, options=["--replicas", "2", "--inject", "kill:rank=0,slot=0,after=1500ms"])
    expect(r.status == 0 and r.out == "got 7\n" and lost(r) == 1, r)


@test
def a_death_during_a_move_ends_the_move_or_comes_too_late(s):
    """Of who moves, of its mate, of somebody else: the job goes on, and a move that is asked for again is made."""
    exe = s.compile("storm")
    plain = s.hale_run(3, exe, 600)
    chance = random.Random(SEED + 7)
    for run in range(10 if LONG else 3):
        job = s.hale_start(3, exe, 600, options=["--nodes", "2", "--spares", "1", "--replicas", "2"])
        ranks = job.until(lambda: lives(job), "all processes run")
        move = s.start(HALE, "migrate", job.id(), "--from", "node0")
        time.sleep(chance.uniform(0, 0.12))
        os.kill(chance.choice(ranks)[3], signal.SIGKILL)
        r = move.wait()
        expect(r.status == 0 or "died" in r.err or "come to nothing" in r.err or "about to" in r.err
               or "has just ended" in r.err, r)
        job.until(lambda: lives(job), "all processes run")
        r = s.hale("migrate", job.id(), "--from", "node0")
        expect(r.status == 0 or "has no ranks" in r.err or "no rank" in r.err, r)
        r = job.wait()
        expect(r.status == 0 and r.out == plain.out and "roll" not in r.err, r, plain)


def killed_in_turn(s, job, chance, times, nodes=2):
    """One process after the other, each as soon as the one before is back."""
    for k in range(times):
        ranks = job.until(lambda: lives(job), "all processes run")
        rank, slot, node, pid = chance.choice(ranks)
        os.kill(pid, signal.SIGKILL)
        job.until(lambda: job.err().count(" is back, on node ") > k, f"replica {slot} of rank {rank} is back")
    job.until(lambda: lives(job), "all processes run")
    ranks = lives(job)
    expect(nodes == 1 or len({(r[0], r[2]) for r in ranks}) == len(ranks), "replicas share a node", ranks)


@test
def dead_replicas_come_back_while_the_job_runs(s):
    """The job is twofold again each time, with the undisturbed output; no rank has been rolled back."""
    exe = s.compile("storm")
    plain = s.hale_run(2, exe, 600)
    times = 12 if LONG else 4
    chance = random.Random(SEED + 5)
    job = s.hale_start(2, exe, 600, options=["--replicas", "2", "--nodes", "2", "--report", "report.json"])
    killed_in_turn(s, job, chance, times)
    r = job.wait()
    expect(r.status == 0 and r.out == plain.out and "roll" not in r.err, r, plain)
    report = s.report()
    expect(report["replicas"]["lost"] == times and report["restarts"] == 0, report)
    expect(len(report["clones"]) == times, report)
    for c in report["clones"]:
        phases = sum(c[p] for p in ("quiesce_seconds", "clone_seconds", "resume_seconds"))
        expect(c["bytes"] > 0 and c["from"] != c["to"] and abs(phases - c["downtime_seconds"]) < 1e-3, c)
        expect(c["vulnerable_seconds"] >= c["precopy_seconds"] + c["downtime_seconds"] - 1e-3, c)


@test
def on_one_node_they_come_back_beside_their_mates(s):
    """Their stream has both ends at one agent, over a connection or by relay."""
    exe = s.compile("storm")
    plain = s.hale_run(2, exe, 400)
    chance = random.Random(SEED + 7)
    for way in "direct", "relay":
        job = s.hale_start(2, exe, 400, options=["--replicas", "2", "--report", "report.json"],
                           env={"HALE_MIGRATE_WAY": way})
        killed_in_turn(s, job, chance, 6 if LONG else 2, nodes=1)
        r = job.wait()
        expect(r.status == 0 and r.out == plain.out and "roll" not in r.err, r, plain)
        clones = s.report()["clones"]
        expect(len(clones) >= 2 and all(c["from"] == c["to"] for c in clones), clones)


@test
def a_leader_that_decides_for_others_comes_back_as_one(s):
    """The master of `farm` is killed again and again, in the middle of whatever it waits for; its copy decides."""
    exe = s.compile("farm")
    job = s.hale_start(4, exe, 1500, options=["--replicas", "2", "--nodes", "2"])
    for k in range(3):
        job.until(lambda: lives(job), "all processes run")
        rank, slot, node, pid = next(r for r in lives(job) if r[:2] == (0, k % 2))
        os.kill(pid, signal.SIGKILL)
        job.until(lambda: job.err().count(" is back, on node ") > k, "the master is back")
    r = job.wait()
    farm_is_consistent(r, 1500)
    expect("roll" not in r.err, r)


@test
def of_three_replicas_two_may_die_at_once(s):
    """Also two that have made and heard choices which only they knew."""
    exe = s.compile("farm")
    chance = random.Random(SEED + 6)
    for _ in range(RUNS if LONG else 1):
        first, second = chance.sample(range(3), 2)
        at = chance.uniform(0.2, 0.6)
        r = s.hale_run(4, exe, 900, options=["--replicas", "3", "--inject", f"kill:rank=0,slot={first},after={at:.3f}s",
                                             "--inject", f"kill:rank=0,slot={second},after={at:.3f}s"])
        farm_is_consistent(r, 900)
        expect(lost(r) == 2, r)


@test
def a_lost_node_is_made_up_for_by_a_spare(s):
    exe = s.compile("storm")
    plain = s.hale_run(2, exe, 600)
    job = s.hale_start(2, exe, 600, options=["--replicas", "2", "--nodes", "2", "--spares", "1", "--agent-lost", "end"])
    job.until(lambda: lives(job), "all processes run")
    os.kill(agent_of(nodes(s, job)["node1"]["pid"]), signal.SIGKILL)
    job.until(lambda: job.err().count(" is back, on node node2") == 2, "both are back on the spare")
    r = job.wait()
    expect(r.status == 0 and r.out == plain.out and "roll" not in r.err, r, plain)


@test
def all_replicas_of_a_rank_are_not_survived_but_begun_again(s):
    exe = s.compile("storm")
    plain = s.hale_run(3, exe, 400)
    r = s.hale_run(3, exe, 400, options=["--replicas", "2", "--inject", "kill:rank=1,slot=0,after=400ms",
                                         "--inject", "kill:rank=1,slot=1,after=500ms", "--replenish", "off"])
    expect("all 2 replicas of rank 1 are dead" in r.err, r)
    expect(r.status in (0, EXIT_UNRECOVERED, 137), r)
    if r.status == 0:
        expect(r.out == plain.out, r, plain)


@test
def processes_of_a_rank_are_shown_and_reported(s):
    exe = s.compile("storm")
    job = s.hale_start(2, exe, 700, options=["--replicas", "2", "--nodes", "2", "--replenish", "off", "--report",
                                              "report.json"])
    job.until_output("round 100:")
    ranks = sorted((r["rank"], r["slot"], r["role"], r["state"]) for r in job.info()["ranks"])
    expect(ranks == [(0, 0, "leader", "running"), (0, 1, "replica", "running"), (1, 0, "leader", "running"),
                     (1, 1, "replica", "running")], ranks)
    nodes = {(r["rank"], r["node"]) for r in job.info()["ranks"]}
    expect(len(nodes) == 4, "replicas share a node", nodes)
    r = s.hale("inject", "kill", job.id(), "--rank", "1", "--slot", "0")
    expect(r.status == 0, r)
    job.until(lambda: any(k["state"] == "lost" for k in job.info()["ranks"]), "a lost process")
    roles = {(k["rank"], k["slot"]): k["role"] for k in job.info()["ranks"]}
    expect(roles[1, 1] == "leader", roles)
    refused = s.hale("migrate", "--from", "node1", "--via-files", job.id())
    expect(refused.status != 0 and "don't move by files" in refused.err, refused)
    r = job.wait()
    expect(r.status == 0, r)
    report = s.report()
    expect(report["replicas"] == {"degree": 2, "lost": 1} and report["restarts"] == 0, report)
    expect([(f["rank"], f["slot"]) for f in report["failures"]] == [(1, 0)], report)


def states(job):
    return {(r["rank"], r["slot"]): r["state"] for r in job.info()["ranks"]}


@test
def some_ranks_have_replicas_and_all_when_asked(s):
    """--replicas 2:0,2 leaves rank 1 alone; then one more for it, fewer for all, more for all; a kill after each."""
    exe = s.compile("slices")
    job = s.hale_start(3, exe, 10000000, options=["--replicas", "2:0,2"])
    job.until_output("step 1024")
    first = {(0, 0): "running", (1, 0): "running", (2, 0): "running", (0, 1): "running", (2, 1): "running"}
    expect(states(job) == first | {(1, 1): "absent"}, job.info())
    r = s.hale("clone", job.id(), "--rank", "1")
    expect(r.status == 0 and "rank 1: replica 1 runs on" in r.out, r)
    expect(set(states(job).values()) == {"running"}, job.info())
    r = s.hale("clone", job.id(), "--rank", "1")
    expect(r.status == 1 and "in 2 processes already" in r.err, r)
    r = s.hale("replicate", job.id(), "--to", "1")
    expect(r.status == 0 and r.out == "each rank runs in 1 process\n", r)
    expect(sorted(states(job).values()) == ["absent"] * 3 + ["running"] * 3, job.info())
    r = s.hale("replicate", job.id(), "--to", "2")
    expect(r.status == 0 and r.out == "each rank runs in 2 processes\n", r)
    os.kill(lives(job)[0][3], signal.SIGKILL)
    job.until_says("replica 1 goes on")
    job.until_says("rank 0: replica 0 is back")
    at = int(re.findall(r"step (\d+)", job.out())[-1])
    job.until_output(f"step {at + 2048}")
    expect("roll" not in job.err() and job.err().count("is dropped, as was asked") == 3, job.err())
    job.kill()
    job = s.hale_start(2, exe, 10000000)
    job.until_output("step 1024")
    r = s.hale("replicate", job.id(), "--to", "2")
    expect(r.status == 1 and "without room for replicas" in r.err, r)
    job.kill()


@test
def what_does_not_go_with_replicas_is_refused(s):
    s.write("input", "something")
    for options, words in ((["--replicas", "4"], "1, 2 or 3"), (["--replicas", "2:0-5"], "names rank 5"), (["--replicas", "2:x"], "no list"), (["--replicas", "2", "--replenish", "perhaps"], "on ("), (["--replicas", "2", "--no-mpi"], "needs MPI")):
        r = s.hale_run(2, "/bin/true", options=options)
        expect(r.status == EXIT_USAGE and words in r.err, r)
    r = s.run("sh", "-c", f"{HALE} run -n 2 --replicas 2 -- /bin/true < input")
    expect(r.status == EXIT_USAGE and "stdin" in r.err, r)


FILES = """
import os, sys, time
from mpi4py import MPI
world = MPI.COMM_WORLD
os.chdir(sys.argv[1])
mine = world.rank
kept = os.open(f"kept{mine}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
with open(f"new{mine}", "x") as f:
    f.write("made\\n")
try:
    open(f"new{mine}", "x")
except FileExistsError:
    print(mine, "is there already", flush=True)
for i in range(int(sys.argv[2])):
    with open(f"log{mine}", "a") as f:
        f.write(f"round {i}\\n" * (i % 3 + 1))
    os.write(kept, b"kept %d\\n" % i)
    if i % 5 == 0:
        with open(f"state{mine}", "w") as f:
            f.write(f"state {i}\\n" * (100 - i % 37))
    world.Barrier()
    time.sleep(0.002)
print(mine, "done", flush=True)
"""


def files_of(s, folder):
    return {name: open(s.path(f"{folder}/{name}")).read() for name in sorted(os.listdir(s.path(folder)))}


@test
def replicas_on_several_nodes_are_told_the_same_place(s):
    """Where its leader is: names and node communicators go into messages, and are compared there."""
    exe = mpi4_program(s, "places")
    for kill in ([], ["--inject", "kill:rank=0,slot=0,after=400ms"], ["--inject", "kill:rank=1,slot=1,after=400ms"]):
        r = s.hale_run(2, exe, 800 if kill else 10, options=["--replicas", "2", "--nodes", "2", "--sdc", "hash", *kill])
        expect(r.status == 0 and "silent" not in r.err, r)
        expect(r.out.startswith("names: node0 node0\nmembers: 2 2 0\nsum ") and lost(r) == bool(kill), r)
    r = s.hale_run(4, exe, 10, options=["--replicas", "2", "--nodes", "4", "--sdc", "hash"])
    expect(r.status == 0 and "names: node0 node0 node1 node1\nmembers: 2 2 2\n" in r.out, r)


@test
def replicas_have_asked_as_often_whether_a_partition_is_there(s):
    exe = mpi4_program(s, "parrived")
    kill = ["--replenish", "off", "--inject", "kill:rank=1,slot=0,after=400ms"]
    for rounds, options in ((5, ["--sdc", "hash"]), (40, kill)):
        r = s.hale_run(2, exe, rounds, 20000, options=["--replicas", "2", *options])
        expect(r.status == 0 and r.out == f"{rounds} rounds, 0 wrong\n" and "silent" not in r.err, r)
        expect(lost(r) == (options == kill), r)


@test
def a_replica_that_waits_where_its_leader_only_looked_ends_by_a_sentence(s):
    exe = s.compile("looks")
    r = s.hale_run(2, exe, options=["--replicas", "2", "--replenish", "off"])
    expect(r.status == 0 and r.out == "done\n", r)
    expect("it waits for a message where its leader only looked; its program is not send-deterministic" in r.err, r)


@test
def names_are_not_published_between_replicas(s):
    script = s.write("names.py", """
from mpi4py import MPI
for attempt in (lambda: MPI.Publish_name("service", "port"), lambda: MPI.Lookup_name("service")):
    try:
        attempt()
    except MPI.Exception as e:
        print(e.Get_error_class() == MPI.ERR_UNSUPPORTED_OPERATION, flush=True)
""")
    r = s.hale_run(1, PYTHON, script, options=["--replicas", "2"])
    expect(r.status == 0 and r.out == "True\nTrue\n", r)
    expect("MPI_Publish_name: a job with replicas has no published names" in r.err, r)


@test
def files_are_as_without_replicas_whoever_dies(s):
    """Appended to again and again, or kept open; made exclusively; truncated and written anew."""
    script = s.write("files.py", FILES)
    chance = random.Random(SEED + 8)
    for folder in "plain", "twofold":
        os.makedirs(s.path(folder))
        for k in range(2):
            s.write(f"{folder}/log{k}", "before\n")
    plain = s.hale_run(2, PYTHON, script, "plain", "300")
    job = s.hale_start(2, PYTHON, script, "twofold", "300", options=["--replicas", "2"])
    job.until_output("is there already")
    for k in range(3):
        ranks = job.until(lambda: lives(job), "all processes run")
        os.kill(chance.choice(ranks)[3], signal.SIGKILL)
        job.until(lambda: job.err().count(" is back, on node ") > k, "it is back")
    r = job.wait()
    expect(r.status == 0 and sorted(r.out.splitlines()) == sorted(plain.out.splitlines()), r, plain)
    expect(files_of(s, "twofold") == files_of(s, "plain"), r)


@test
def what_replicas_can_not_append_to_is_refused(s):
    """What two ranks append to one file would be in nobody's order; what is there stays as it was."""
    s.write("there.txt", "before\n")
    script = s.write("append.py", """
from mpi4py import MPI
import os
def attempt(how):
    try:
        return how()
    except OSError as e:
        print(e.strerror, flush=True)
if MPI.COMM_WORLD.rank == 0:
    attempt(lambda: open("there.txt", "a+"))
    with open("/dev/null", "a") as f:
        f.write("no regular file")
    kept = attempt(lambda: open("shared.txt", "a"))
MPI.COMM_WORLD.Barrier()
if MPI.COMM_WORLD.rank == 1:
    attempt(lambda: open("shared.txt", "a"))
MPI.COMM_WORLD.Barrier()
""")
    r = s.hale_run(2, PYTHON, script, options=["--replicas", "2"])
    expect(r.status == 0 and r.out == "Operation not supported\n" * 2, r)
    expect("can't append to 'there.txt'" in r.err and "write over each other" in r.err, r)
    expect(open(s.path("there.txt")).read() == "before\n")
    expect(s.run("sh", "-c", "echo more >> there.txt").status == 0)


main()
