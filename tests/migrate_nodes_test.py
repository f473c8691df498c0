#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""`hale migrate`: all ranks of a node go to another one while the job runs, over nodes of this
machine. What is to go wrong in a certain phase is made to: a rank that is stopped holds up the
copy of its own node, or the stop of all."""

from levels_parts import comm
from lib import *
from migrate_parts import *

@test
def lammps_moves_and_prints_the_same(s):
    wanted, job = lammps(s)
    r = migrate(s, job, "--from", "node1")
    expect(r.status == 0 and re.fullmatch(r"2 ranks moved from node1 to node2: .* in .*, the program "
                                          r"stood still for .*\n", r.out), r)
    there = nodes(s, job)
    expect(there == {"node0": ("READY", 2), "node1": ("SPARE", 0), "node2": ("READY", 2)}, there)
    r = migrate(s, job, "--from", "node0", "--to", "node1")
    expect(r.status == 0, r)
    got = job.wait()
    expect(got.status == 0 and thermo(got.out) == thermo(wanted.out), got)
    moves = s.report()["migrations"]
    expect([(m["from"], m["to"], m["ranks"]) for m in moves] ==
           [("node1", "node2", 2), ("node0", "node1", 2)], moves)
    expect(all(m["bytes"] > 1 << 20 and 0 < m["downtime_seconds"] < m["seconds"] for m in moves),
           moves)
    expect(s.report()["restarts"] == 0 and not s.report()["failures"], s.report())


@test
def all_who_move_and_all_who_get_them_are_named(s):
    # 300 processes that start beside other tests may take the head's time for longer than a lease
    job = s.hale_start(300, "sleep", "1000", options=["--no-mpi", "--nodes", "2", "--spares", "1",
                                                      "--node-timeout", "60s"])
    job.ranks(300)
    watch = s.start(HALE, "events", job.id(), "--follow", "--json", "--filter", "name=FTB_MIGRATE_IPT")

    def told():
        return [json.loads(x)["payload"] for x in watch.out().splitlines() if x.endswith("}")]

    def listens():
        r = s.hale("events", "publish", "--job", job.id(), "FTB.TEST", "FTB_MIGRATE_IPT", "INFO", "probe")
        expect(r.status == 0, r)
        return told()
    job.until(listens, "hale events shows what comes")
    r = migrate(s, job, "--from", "node1")
    expect(r.status == 0 and "150 ranks moved from node1 to node2" in r.out, r)
    all_of_them = "node2 " + ",".join(map(str, range(150, 300)))
    job.until(lambda: told()[-1] == all_of_them, "all are named")
    job.kill()
    watch.wait()
    # one name begins with the other
    job = s.hale_start(4, "sleep", "100", options=["--no-mpi", "--host", "n10:1,n1:1,n2:2", "--launcher",
                                                   "exec %c"])
    job.ranks(4)
    r = migrate(s, job, "--from", "n2")
    expect(r.status == 0 and "2 ranks moved from n2 to n10,n1:" in r.out, r)
    job.kill()


@test
def random_collectives_go_on_through_many_moves(s):
    exe = s.compile("collectives", flags=["-lm"])
    for ranks, where in ((4, ["node1", "node0", "node2", "node1", "node0"]),
                         (5, ["node0", "node1", "node2"])):
        job = s.hale_start(ranks, exe, 10000000, SEED, 20000,
                           options=["--nodes", "2", "--spares", "1"])
        job.ranks(ranks)
        for node in where:
            job.until(lambda: "running" == job.info()["state"], "all ranks run")
            r = migrate(s, job, "--from", node)
            expect(r.status == 0, r, job.err())
        expect("wrong" not in job.out(), job.out())
        job.kill(signal.SIGTERM)
        job.wait()


@test
def nothing_is_printed_twice_or_lost(s):
    job = steps_job(s, "--spares", "1", "--report", "report.json")
    for node in ("node0", "node1", "node2"):
        r = migrate(s, job, "--from", node)
        expect(r.status == 0, r, job.err())
        until_steps_go_on(job)
    checkpoint = job.checkpoint()
    r = migrate(s, job, "--from", "node0")
    expect(r.status == 0, r)
    until_steps_go_on(job)
    os.kill(job.ranks(4)[0], signal.SIGKILL)
    job.until_says("all ranks run again from checkpoint")
    until_steps_go_on(job)
    expect(os.path.exists(checkpoint), "the checkpoint is gone")
    end(s, job)
    expect(s.report()["restarts"] == 1 and len(s.report()["migrations"]) == 4, s.report())


@test
def the_ranks_of_a_node_share_the_others_when_there_is_no_spare(s):
    job = steps_job(s)
    r = migrate(s, job, "--from", "node1")
    expect(r.status == 0 and "2 ranks moved from node1 to node0" in r.out, r)
    expect(nodes(s, job) == {"node0": ("READY", 4), "node1": ("SPARE", 0)}, nodes(s, job))
    r = migrate(s, job, "--from", "node0")
    expect(r.status == 0, r)
    until_steps_go_on(job)
    end(s, job)


@test
def hosts_are_left_as_nodes_are_and_have_no_more_ranks_than_slots(s):
    job = steps_job(s, "--host", "a:2,b:2,c:2", "--spares", "1", "--launcher", "exec %c", nodes=())
    r = migrate(s, job, "--from", "b")
    expect(r.status == 0 and "2 ranks moved from b to c" in r.out, r)
    r = migrate(s, job, "--from", "a", "--to", "c")
    expect(r.status == 1 and "node c is full: it has 2 slots" in r.err, r)
    r = migrate(s, job, "--from", "a", "--to", "b")
    expect(r.status == 0, r)
    until_steps_go_on(job)
    end(s, job)


@test
def rank_0_reads_on_where_it_was(s):
    lines = [f"line {i}" for i in range(20000)]
    s.write("input", "\n".join(lines) + "\n")
    s.write("read.py", "import os, sys, time\n"
            "for i, l in enumerate(sys.stdin):\n    print(l, end='', flush=True)\n"
            "    while i == 5000 and not os.path.exists('stop'): time.sleep(0.01)\n")
    with open(s.path("input")) as f:
        job = s.hale_start(1, PYTHON, s.path("read.py"), stdin=f,
                           options=["--no-mpi", "--nodes", "1", "--spares", "1"])
        job.until_output("^line 5000$")
        for node in ("node0", "node1"):
            r = migrate(s, job, "--from", node)
            expect(r.status == 0, r)
        s.write("stop", "")
        r = job.wait()
    expect(r.status == 0 and r.out.splitlines() == lines, "not the same lines", r.err)


@test
def what_can_not_be_is_refused(s):
    job = steps_job(s, "--spares", "1")
    for args, why in ((["--from", "node7"], "there is no node node7 in this job"),
                      (["--from", "node0", "--to", "node7"], "there is no node node7"),
                      (["--from", "node0", "--to", "node0"], "are there already"),
                      (["--from", "node2"], "there is no rank on node node2")):
        r = migrate(s, job, *args)
        expect(r.status == 1 and why in r.err, r)
    r = migrate(s, job, "--to", "node1")
    expect(r.status == 64 and "Say --from NODE" in r.err, r)
    expect(s.hale("migrate", "--help").status == 0)
    pids = job.ranks(4)
    stopped(pids, [2])
    first = s.start(HALE, "migrate", job.id(), "--from", "node1")
    job.until(lambda: copies(s, job), "a copy is started")
    r = migrate(s, job, "--from", "node1", "--to", "node0")
    expect(r.status == 1 and "are to go to another node already" in r.err, r)
    resume(pids, [2])
    r = first.wait()
    expect(r.status == 0, r)
    end(s, job)
    os.remove(s.path("stop"))
    alone = s.hale_start(2, s.path("steps"), "0", "20")
    alone.until_output(r"rank 0 step 2 ")
    node = next(iter(nodes(s, alone)))
    r = migrate(s, alone, "--from", node)
    expect(r.status == 1 and "no other node" in r.err, r)
    s.write("stop", "")
    expect(alone.wait().status == 0)


# As another user: takes the names that are given to it.
TAKER = r"""
import os, socket, sys
os.setgid(65534), os.setuid(65534)
taken = []
for name in sys.argv[1:]:
    for kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET):
        taken.append(socket.socket(socket.AF_UNIX, kind))
        taken[-1].bind("\0" + name)
print("taken", flush=True)
sys.stdin.read()
"""


@test
def names_that_another_user_has_taken_hinder_nobody(s):
    """Names of abstract sockets are anybody's, and the pids of agents are no secret."""
    if os.getuid() != 0:
        skip("another user needs root")
    job = steps_job(s, "--spares", "1")
    agents = [pid for pid in children(job.pid) if comm(pid) == "hale-agent"]
    expect(len(agents) == 3, agents)
    r, w = os.pipe()
    taker = s.start("/usr/bin/python3", "-c", TAKER, stdin=r,
                    *(f"hale/0/{job.id()}/move.{pid}.{k}" for pid in agents for k in range(1, 30)))
    os.close(r)
    taker.until_output("taken")
    r = migrate(s, job, "--from", "node1")
    expect(r.status == 0, r)
    os.close(w)
    until_steps_go_on(job)
    end(s, job)

@test
def a_program_that_says_nothing_of_mpi_is_told_how_to_be_moved(s):
    job = s.hale_start(2, "sleep", "100", options=["--nodes", "1", "--spares", "1"],
                       env={"HALE_MIGRATE_TIMEOUT": "1"})
    job.ranks(2)
    r = migrate(s, job, "--from", "node0")
    expect(r.status == 1 and "no rank has called MPI_Init" in r.err and "--no-mpi" in r.err, r)
    job.p.terminate()
    expect(job.wait().status == 143)


def stays_when(s, fault, held, why):
    """The ranks `held` stand still from before the migration on until the fault has happened."""
    job = steps_job(s, "--spares", "1", "--report", "report.json")
    pids = job.ranks(4)
    stopped(pids, held)
    m = s.start(HALE, "migrate", job.id(), "--from", "node1")
    job.until(lambda: len(copies(s, job)) == 2, "the copies are started")
    fault(job)
    job.until_says(why)
    resume(pids, held)
    r = m.wait()
    expect(r.status == 1 and "stay there" in r.err, r)
    expect(job.ranks(4) == pids, "not the same processes")
    expect(not copies(s, job), "copies are left")
    until_steps_go_on(job)
    return job


@test
def a_copy_that_dies_while_the_ranks_run_harms_nobody(s):
    job = stays_when(s, lambda j: os.kill(copies(s, j)[0], signal.SIGKILL), [2, 3],
                     "the copy of rank . on node node2 has ended")
    r = migrate(s, job, "--from", "node1")
    expect(r.status == 0, r)
    until_steps_go_on(job)
    end(s, job)
    expect(len(s.report()["migrations"]) == 1 and s.report()["restarts"] == 0, s.report())


@test
def a_copy_that_dies_in_the_stop_harms_nobody(s):
    def fault(job):
        # all but rank 0 have stopped when rank 1 says nothing any more
        job.until(lambda: not_printing(job), "the ranks have stopped")
        os.kill(copies(s, job)[0], signal.SIGKILL)

    def not_printing(job):
        before = job.out()
        time.sleep(0.3)
        return before == job.out()

    job = stays_when(s, fault, [0], "the copy of rank . on node node2 has ended")
    r = migrate(s, job, "--from", "node1")
    expect(r.status == 0, r)
    end(s, job)


@test
def a_target_that_is_lost_harms_nobody(s):
    job = stays_when(s, lambda j: os.kill(agent_pid(s, j, "node2"), signal.SIGKILL), [2],
                     "node node2(, which has no ranks,)? is lost")
    expect(nodes(s, job)["node2"][0] == "LOST", nodes(s, job))
    r = migrate(s, job, "--from", "node1")
    expect(r.status == 0 and "to node0" in r.out, r)
    end(s, job)


@test
def a_source_that_dies_costs_a_rollback(s):
    job = steps_job(s, "--spares", "1", "--report", "report.json")
    job.checkpoint()
    pids = job.ranks(4)
    stopped(pids, [2])
    m = s.start(HALE, "migrate", job.id(), "--from", "node1")
    job.until(lambda: len(copies(s, job)) == 2, "the copies are started")
    os.kill(pids[2], signal.SIGKILL)
    r = m.wait()
    expect(r.status == 1 and "has come to nothing" in r.err, r)
    job.until_says("all ranks run again from checkpoint 1")
    until_steps_go_on(job)
    expect(nodes(s, job)["node1"] == ("READY", 2), nodes(s, job))
    end(s, job)
    expect(s.report()["restarts"] == 1 and not s.report()["migrations"], s.report())


main()
