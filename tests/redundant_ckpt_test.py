#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checkpoints of jobs with replicas: each rank is stored once, and when all replicas of a rank are dead the job goes
back to the newest one, with its replicas again."""

from lib import *
from adopt_parts import agent_of, nodes

BASIS = 14695981039346656037  # what `farm` begins to fold its choices with


def lives(job):
    """[(rank, slot, node, pid)] if all processes of all ranks run; else nothing."""
    ranks = (job.info() or {"ranks": []})["ranks"]
    return ranks and all(r["state"] == "running" and r["pid"] for r in ranks) and [(r["rank"], r["slot"], r["node"], r["pid"])
                                                                        for r in ranks]


def process(job, rank, slot):
    return next(p for p in job.until(lambda: lives(job), "all processes run") if p[:2] == (rank, slot))[3]


def end_rank(job, rank):
    """All its replicas at once."""
    victims = [p[3] for p in job.until(lambda: lives(job), "all processes run") if p[0] == rank]
    for pid in victims:
        os.kill(pid, signal.SIGKILL)
    return victims


def until_back(job, times=1):
    """As often has it gone back, and each rank has all its replicas again."""
    job.until(lambda: job.err().count("all ranks run again from checkpoint") >= times, f"rollback {times}")
    job.until(lambda: lives(job), "all replicas are back")


def images(folder):
    return sorted(f for f in os.listdir(folder) if f.endswith(".img"))


def parts_of(folder):
    with open(os.path.join(folder, "manifest.json")) as f:
        m = json.loads(f.read().split("\n")[0])
    return [(p["rank"], p["slot"], p["replicas"]) for p in m["parts"]]


@test
def all_replicas_of_a_rank_die_and_the_job_goes_back(s):
    """Twice, another rank each time, on two nodes; each checkpoint has each rank once."""
    exe = s.compile("storm")
    plain = s.hale_run(3, exe, 600)
    job = s.hale_start(3, exe, 600, options=["--replicas", "2", "--nodes", "2", "--report", "report.json"])
    for k in range(2):
        job.until(lambda: lives(job), "all processes run")
        path = job.checkpoint()
        expect(images(path) == [f"rank-{r}.img" for r in range(3)], images(path))
        expect([p[0] for p in parts_of(path)] == [0, 1, 2] and {p[2] for p in parts_of(path)} == {2}, parts_of(path))
        end_rank(job, k + 1)
        until_back(job, k + 1)
        expect(len({p[:3:2] for p in lives(job)}) == 6, "replicas share a node", lives(job))
    r = job.wait()
    expect(r.status == 0 and r.out == plain.out, r, plain)
    report = s.report()
    expect(report["restarts"] == 2 and len(report["clones"]) >= 6, r, report["clones"])


@test
def checkpoints_at_intervals_are_gone_back_to(s):
    """On one node, with three replicas and with two, as differences, too."""
    exe = s.compile("storm")
    plain = s.hale_run(2, exe, 400)
    for options in (["--replicas", "3"], ["--replicas", "2", "--incremental"]):
        job = s.hale_start(2, exe, 400, options=[*options, "--ckpt-every", "400ms", "--report", "report.json"])
        mine = s.path("hale-ckpt", job.id(), "*", "manifest.json")
        job.until(lambda: len(glob.glob(mine)) > 1, "two checkpoints")
        end_rank(job, 0)
        until_back(job)
        r = job.wait()
        expect(r.status == 0 and r.out == plain.out, r, plain)
        expect(s.report()["restarts"] == 1, r)


@test
def the_writer_may_be_any_replica(s):
    """Slot 0 of rank 0 is dead, slot 1 of rank 1: the checkpoint has what lives, and comes back as that."""
    exe = s.compile("storm")
    plain = s.hale_run(2, exe, 400)
    job = s.hale_start(2, exe, 400, options=["--replicas", "2", "--nodes", "2", "--replenish", "off"])
    victims = process(job, 0, 0), process(job, 1, 1)
    for pid in victims:
        os.kill(pid, signal.SIGKILL)
    job.until(lambda: job.err().count(" goes on") == 2, "two have died")
    path = job.checkpoint()
    expect(parts_of(path) == [(1, 0, 2), (0, 1, 2)], parts_of(path))
    for p in job.info()["ranks"]:
        if (p["rank"], p["slot"]) == (0, 1):
            os.kill(p["pid"], signal.SIGKILL)
    until_back(job)
    r = job.wait()
    expect(r.status == 0 and r.out == plain.out, r, plain)
    # ... and of the lost slots copies are made although the dead don't come back
    expect(r.err.count(" is back, on node ") == 2, r)


@test
def choices_of_a_leader_are_gone_back_to(s):
    """The master takes whoever answers first; all that it had chosen before the cut is known behind it."""
    exe = s.compile("farm")
    tasks = 3000
    job = s.hale_start(4, exe, tasks, options=["--replicas", "2", "--nodes", "2"])
    for k, rank in enumerate((0, 2)):
        job.until(lambda: lives(job), "all processes run")
        job.checkpoint()
        end_rank(job, rank)
        until_back(job, k + 1)
    r = job.wait()
    expect(r.status == 0, r)
    word = lambda name: [int(x, 16) for x in re.findall(rf"(?m)^{name} ([0-9a-f]+)$", r.out)]
    expect([int(n) for n in re.findall(r"(?m)^(\d+) done:", r.out)] == list(range(50, tasks + 1, 50)), r)
    expect(word("all") == [word("choices")[0] ^ BASIS], r)


@test
def a_lost_node_takes_the_last_replica_with_it(s):
    """Of rank 1 only the process on node0 lives, and then node0 is lost; a spare takes its place."""
    exe = s.compile("storm")
    plain = s.hale_run(2, exe, 400)
    job = s.hale_start(2, exe, 400, options=["--replicas", "2", "--nodes", "2", "--spares", "1", "--agent-lost", "end",
                                             "--replenish", "off", "--report", "report.json"])
    job.until(lambda: lives(job), "all processes run")
    job.checkpoint()
    os.kill(process(job, 1, 1), signal.SIGKILL)
    job.until_says("rank 1: replica 1 was killed by .*; replica 0 goes on")
    os.kill(agent_of(nodes(s, job)["node0"]["pid"]), signal.SIGKILL)
    until_back(job)
    expect({p[2] for p in lives(job)} == {"node1", "node2"}, lives(job))
    r = job.wait()
    expect(r.status == 0 and r.out == plain.out and "node node0 is lost" in r.err, r, plain)
    expect(s.report()["restarts"] == 1, r)


@test
def a_death_in_the_middle_of_a_checkpoint_begins_it_again(s):
    """Of a writer, and of one that writes nothing."""
    exe = s.compile("storm")
    plain = s.hale_run(2, exe, 400)
    for slot in 0, 1:
        job = s.hale_start(2, exe, 400, options=["--replicas", "2", "--inject", f"kill:rank=1,slot={slot},at-ckpt=1"])
        job.until(lambda: lives(job), "all processes run")
        path = job.checkpoint()
        expect("checkpoint 1 is begun again: a replica has died meanwhile" in job.err(), job.err())
        expect(int(os.path.basename(path)) > 1 and images(path) == ["rank-0.img", "rank-1.img"], path, images(path))
        end_rank(job, 0)
        until_back(job)
        r = job.wait()
        expect(r.status == 0 and r.out == plain.out, r, plain)


@test
def a_checkpoint_and_a_clone_come_one_after_the_other(s):
    exe = s.compile("storm")
    plain = s.hale_run(2, exe, 500)
    job = s.hale_start(2, exe, 500, options=["--replicas", "2", "--nodes", "2"])
    for k in range(3):
        os.kill(process(job, k % 2, k % 2), signal.SIGKILL)
        job.until(lambda: job.err().count(" goes on") > k, "it has died")
        path = job.checkpoint()  # the clone is under way, or is about to be
        expect([p[0] for p in sorted(parts_of(path))] == [0, 1], parts_of(path))
        job.until(lambda: job.err().count(" is back, on node ") > k, "it is back")
    end_rank(job, 1)
    until_back(job)
    r = job.wait()
    expect(r.status == 0 and r.out == plain.out, r, plain)


@test
def hale_restart_with_as_many_replicas_or_with_others(s):
    """As it was; in one process each; of one rank only; and killed in both replicas after that."""
    exe = s.compile("storm")
    plain = s.hale_run(2, exe, 400)
    job = s.hale_start(2, exe, 400, options=["--replicas", "2", "--nodes", "2"])
    job.until(lambda: lives(job), "all processes run")
    path = job.checkpoint()
    job.kill(signal.SIGTERM)
    before = job.wait()
    s.until_nothing_runs()
    for options, processes in (([], 4), (["--replicas", "2"], 4), (["--replicas", "1"], 2), (["--replicas", "2:1"], 3)):
        again = s.start(HALE, "restart", *options, "--nodes", "2", path)
        running = lambda: [p for p in (again.info() or {"ranks": []})["ranks"] if p["state"] == "running"]
        again.until(lambda: len(running()) == processes, f"{processes} processes")
        expect(processes != 3 or sorted(p["rank"] for p in running()) == [0, 1, 1], running())
        if not options:
            again.checkpoint()
            end_rank(again, 1)
            until_back(again)
        r = again.wait()
        at = len(plain.out) - len(r.out)
        expect(r.status == 0 and plain.out[at:] == r.out and before.out.startswith(plain.out[:at]), r, before, plain)
    r = s.hale("restart", "--replicas", "3", path)
    expect(r.status == EXIT_USAGE and "--replicas takes 1 to 2" in r.err, r)


@test
def a_checkpoint_without_replicas_gets_none(s):
    exe = s.compile("storm")
    job = s.hale_start(2, exe, 3000)
    job.ranks(2)
    path = job.checkpoint()
    job.kill(signal.SIGTERM)
    job.wait()
    r = s.hale("restart", "--replicas", "2", path)
    expect(r.status == EXIT_USAGE and "without room for replicas" in r.err, r)


FILES = """
import os, sys, time
from mpi4py import MPI
world = MPI.COMM_WORLD
os.chdir(sys.argv[1])
mine = world.rank
kept = os.open(f"kept{mine}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
for i in range(int(sys.argv[2])):
    with open(f"log{mine}", "a") as f:
        f.write(f"round {i}\\n" * (i % 3 + 1))
    os.write(kept, b"kept %d\\n" % i)
    if i % 5 == 0:
        with open(f"state{mine}", "w") as f:
            f.write(f"state {i}\\n" * (100 - i % 37))
    if i % 50 == 0:
        print(mine, "round", i, flush=True)
    world.Barrier()
    time.sleep(0.002)
"""


@test
def files_are_set_back_with_the_ranks(s):
    """Appended to again and again, kept open, truncated and written anew: by both replicas, before and after."""
    script = s.write("files.py", FILES)
    for folder in "plain", "twofold":
        os.makedirs(s.path(folder))
        for k in range(2):
            s.write(f"{folder}/log{k}", "before\n")
    plain = s.hale_run(2, PYTHON, script, "plain", "500")
    job = s.hale_start(2, PYTHON, script, "twofold", "500", options=["--replicas", "2", "--ckpt-every", "1h"])
    for k in range(2):
        job.until(lambda: lives(job), "all processes run")
        path = job.checkpoint()
        at = job.out().count("round")
        job.until(lambda: job.out().count("round") > at + 1, "some rounds more")
        end_rank(job, k)
        until_back(job, k + 1)
    r = job.wait()
    read = lambda folder: {name: open(s.path(f"{folder}/{name}")).read() for name in sorted(os.listdir(s.path(folder)))}
    expect(r.status == 0 and sorted(r.out.splitlines()) == sorted(plain.out.splitlines()), r, plain)
    expect(read("twofold") == read("plain"), r)


@test
def checkpoints_of_compared_jobs_have_all_replicas(s):
    """So a wrong bit that one of them has in it is found again after the rollback, and the job goes back further."""
    exe = s.compile("slices")
    steps = 500, 10000, 300  # what is flipped is sent after the second checkpoint
    plain = s.hale_run(2, exe, *steps)
    job = s.hale_start(2, exe, *steps, options=["--replicas", "2", "--sdc", "hash", "--on-sdc", "rollback", "--report",
                                                "report.json"])
    job.until_output("step 0")
    first = job.checkpoint()
    expect(images(first) == [f"rank-{p}.img" for p in range(4)], images(first))
    expect(sorted(p[:2] for p in parts_of(first)) == [(0, 0), (0, 1), (1, 0), (1, 1)], parts_of(first))
    r = s.hale("inject", "flip", job.id(), "--rank", "0", "--slot", "1", "--count", "10")
    expect(r.status == 0, r)
    job.checkpoint()
    r = job.wait()
    expect(r.status == 0 and r.out.splitlines()[-1] == plain.out.splitlines()[-1], r, plain)
    expect("goes back further" in r.err and "all ranks run again from checkpoint 1," in r.err, r)
    report = s.report()
    expect(report["restarts"] >= 2 and report["clones"] == [], report)


@test
def a_compared_job_is_compared_after_hale_restart(s):
    exe = s.compile("slices")
    plain = s.hale_run(2, exe, 250, 10000)
    job = s.hale_start(2, exe, 250, 10000, options=["--replicas", "2", "--sdc", "hash"])
    job.until_output("step 0")
    path = job.checkpoint()
    job.kill(signal.SIGTERM)
    job.wait()
    r = s.hale("restart", path)
    expect(r.status == 0 and r.out.splitlines()[-1] == plain.out.splitlines()[-1], r, plain)
    r = s.hale("restart", path, "--inject", "flip:rank=1,slot=1,where=message,after=500ms")
    expect(r.status == EXIT_SDC and "silent error" in r.err and "rolling" not in r.err, r)
    r = s.hale("restart", path, "--replicas", "1")
    expect(r.status == 0 and r.out.splitlines()[-1] == plain.out.splitlines()[-1] and "is back" not in r.err, r, plain)


@test
def what_does_not_go_with_checkpoints_of_replicas_is_refused(s):
    for options, words in ((["--shadows", "1", "--ckpt-local", "local"], "--ckpt-local"),
                           (["--replicas", "2", "--ckpt-every", "auto"], "say a time"),
                           (["--shadows", "1", "--head-grace", "10s"], "--head-grace")):
        r = s.hale_run(2, "/bin/true", options=options)
        expect(r.status == EXIT_USAGE and words in r.err, r)


main()
