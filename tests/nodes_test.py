#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Jobs over several nodes of this machine: shared memory inside a node, the network between them;
checkpoints over both, rollbacks, and restarts laid out otherwise."""

from lib import *


def nodes_of(job):
    return [r["node"] for r in sorted(job.info()["ranks"], key=lambda r: r["rank"])]


def collectives(s):
    exe = s.path("collectives")
    return exe if os.path.exists(exe) else s.compile("collectives", flags=["-lm"])


@test
def ranks_are_placed_in_rows(s):
    exe = s.compile("misuse")
    for options, wanted in ((["--nodes", "2"], ["node0", "node0", "node1", "node1"]),
                            (["--ppn", "3"], ["node0", "node0", "node0", "node1"])):
        job = s.hale_start(4, exe, "spin", options=options)
        job.ranks(4)
        expect(nodes_of(job) == wanted, nodes_of(job))
        job.kill(signal.SIGTERM)
        job.wait()
    for options, why in ((["--nodes", "5"], "4 ranks can't fill 5 nodes"),
                         (["--nodes", "2", "--ppn", "1"], "too few for 4 ranks"),
                         (["--nodes", "0"], "--nodes takes a number of nodes")):
        r = s.hale_run(4, exe, "spin", options=options)
        expect(r.status == 64 and why in r.err, r)


@test
def collectives_give_the_bits_of_the_fixed_tree_over_nodes(s):
    for ranks, layout in ((4, "--nodes 2"), (5, "--nodes 3"), (3, "--nodes 3"), (8, "--nodes 2"),
                          (8, "--nodes 3"), (7, "--ppn 5")):
        for env in ({}, {"HALE_COLL_INLINE": "64"}, {"HALE_COLL": "flat"}):
            r = s.hale_run(ranks, collectives(s), 60, SEED * 100 + ranks, 20000,
                           options=layout.split(), env=dict(env, TREE="1"))
            expect(r.status == 0 and r.out == "60 rounds, 0 wrong\n", r)


@test
def more_than_eight_nodes_give_the_same_as_one(s):
    """Rings and trees between nodes instead of all to all; the program compares with what one would give."""
    for options, env in ((["--nodes", "10", "--ppn", "2"], {}), (["--nodes", "9"], {"HALE_COLL_INLINE": "64"}),
                         ([], {})):
        r = s.hale_run(20, collectives(s), 40, SEED, 20000, options=options, env=dict(env, TREE="1"))
        expect(r.status == 0 and r.out == "40 rounds, 0 wrong\n", options, r)


@test
def scans_of_ranks_that_are_dealt_out_follow_each_other(s):
    """A chunk's two deposits meet in any place of their cell's ring."""
    exe = s.compile("scans")
    for ranks, nodes in ((6, 2), (8, 2), (8, 4)):
        r = s.hale_run(ranks, exe, 1000, nodes, options=["--nodes", nodes])
        expect(r.status == 0 and r.out == "0 wrong\n", r)


@test
def alltoalls_of_every_way_give_what_was_sent(s):
    """Two nodes of 18: what one has for a member of the other doesn't fit the pieces of a bundle."""
    exe = s.compile("alltoalls")
    for ranks, layout, rounds in ((8, "--nodes 2", 20), (7, "--ppn 3", 20), (36, "--nodes 2", 2)):
        r = s.hale_run(ranks, exe, rounds, options=layout.split())
        expect(r.status == 0 and r.out == "0 wrong\n", r)


@test
def vectors_of_many_chunks_give_the_same(s):
    for ranks, layout in ((8, "--nodes 2"), (7, "--ppn 3"), (12, "--nodes 4")):
        r = s.hale_run(ranks, collectives(s), 60, SEED * 10 + ranks, 300000, options=layout.split(),
                       env={"TREE": "1"})
        expect(r.status == 0 and r.out == "60 rounds, 0 wrong\n", r)


@test
def a_job_over_two_nodes_rolls_back_and_goes_on(s):
    have("lmp")
    lmp = ["lmp", "-log", "none", "-in", os.path.join(ROOT, "tests/data/in.melt"), "-var", "steps",
           "1200"]
    wanted = s.hale_run(4, *lmp)
    expect(wanted.status == 0, wanted)
    r = s.hale_run(4, *lmp, options=["--nodes", "2", "--ckpt-every", "250ms", "--report",
                                     "report.json", "--inject", "kill:rank=2,at-ckpt=2"])
    expect(r.status == 0 and thermo(r.out) == thermo(wanted.out), r)
    expect(s.report()["restarts"] == 1, s.report())


@test
def a_checkpoint_of_two_nodes_goes_on_on_one_and_on_four(s):
    exe = s.compile("steps")
    args = ["400", "5"]
    wanted = s.hale_run(4, exe, *args)
    expect(wanted.status == 0, wanted)
    job = s.hale_start(4, exe, *args, options=["--nodes", "2", "--ckpt-dir", "first"])
    job.until_output(r"rank 3 step 20 ")
    checkpoint = job.checkpoint()
    before = job.out()
    job.kill(signal.SIGTERM)
    job.wait()
    for nodes in (1, 4, 2):
        r = s.hale("restart", "--nodes", nodes, "--ckpt-dir", f"on{nodes}", checkpoint)
        expect(r.status == 0, r)
        last = sorted(wanted.out.splitlines())
        expect(set(r.out.splitlines()) <= set(last), f"on {nodes} nodes", r)
        expect(set(r.out.splitlines()) | set(before.splitlines()) >= set(last), r)


def laid_out_otherwise(s, turn, ranks, layouts, env=None, most=20000):
    """Random collectives; every now and then a checkpoint in their midst, and a restart from it on
    another number of nodes. Each result is compared by the program, before and after."""
    chance = random.Random(f"{turn} {ranks} {layouts} {env}")
    job = s.hale_start(ranks, collectives(s), 10000000, turn, most,
                       options=["--nodes", layouts[0], "--ckpt-dir", "lives"],
                       env=dict(env or {}, TREE="1", STOP=s.path("stop")))
    for life, nodes in enumerate(layouts[1:]):
        job.ranks(ranks)
        time.sleep(chance.uniform(0.2, 1.0))
        checkpoint = job.checkpoint()
        job.kill(signal.SIGTERM)
        r = job.wait()
        expect("wrong" not in r.out, f"life {life}", r)
        job = s.start(HALE, "restart", "--nodes", nodes, "--ckpt-dir", f"lives{life}", checkpoint)
    time.sleep(0.5)
    s.write("stop", "")
    r = job.wait()
    os.unlink(s.path("stop"))
    expect(r.status == 0 and r.out.endswith(" rounds, 0 wrong\n"), r)


@test
def operations_over_nodes_survive_deaths_in_mid_flight(s):
    """Ranks are killed at random moments: inside the node's cells, between nodes, in checkpoints."""
    chance = random.Random(SEED)
    for ranks, nodes, env in ((6, 2, {}), (5, 3, {"HALE_COLL_INLINE": "64"})):
        job = s.hale_start(ranks, collectives(s), 10000000, SEED, 20000,
                           options=["--nodes", nodes, "--ckpt-every", "150ms", "--max-restarts",
                                    "20", "--report", "report.json"],
                           env=dict(env, TREE="1", STOP=s.path("stop")))
        for _ in range(4):
            time.sleep(chance.uniform(0.3, 1.0))
            try:
                os.kill(chance.choice(job.ranks(ranks)), signal.SIGKILL)
            except ProcessLookupError:
                pass  # in the middle of a rollback
        time.sleep(0.3)
        s.write("stop", "")
        r = job.wait()
        os.unlink(s.path("stop"))
        expect(r.status == 0 and r.out.endswith(" rounds, 0 wrong\n"), r)
        expect(s.report()["restarts"] > 0, s.report())


TURNS = range(SEED, SEED + (10 if LONG else 1))


@test
def collectives_in_mid_flight_go_on_when_their_ranks_are_parted_and_come_together(s):
    for turn in TURNS:
        laid_out_otherwise(s, turn, 4, (1, 2, 1, 4, 2, 1))
        laid_out_otherwise(s, turn, 3, (1, 3, 2, 1))


@test
def operations_over_nodes_in_mid_flight_go_on_when_nodes_are_laid_out_otherwise(s):
    """Nodes' members are parted, and meet others: 6 ranks in rows of 3, 2, 2-2-1-1 and 6."""
    for turn in TURNS:
        laid_out_otherwise(s, turn, 6, (2, 3, 2, 4, 1, 3, 2), most=6000)
        laid_out_otherwise(s, turn, 6, (3, 2, 4, 2, 6, 3), {"HALE_COLL_INLINE": "64"}, most=40000)
        laid_out_otherwise(s, turn, 6, (2, 3, 1, 2), most=400000)


@test
def messages_in_mid_flight_go_on_when_nodes_are_laid_out_otherwise(s):
    """Of all sizes, modes and ways to receive; each byte is checked by the program, and its lines are always the same."""
    exe = s.compile("storm")
    for turn in TURNS:
        chance = random.Random(turn)
        args = [exe, 1500, turn]
        wanted = s.hale_run(6, *args)
        expect(wanted.status == 0, wanted)
        job, seen = s.hale_start(6, *args, options=["--nodes", 2, "--ckpt-dir", "storms"]), set()
        for life, nodes in enumerate((3, 1, 6, 2)):
            job.ranks(6)
            time.sleep(chance.uniform(0, 0.3))
            checkpoint = job.checkpoint()
            job.kill(signal.SIGTERM)
            seen |= set(job.wait().out.splitlines())
            job = s.start(HALE, "restart", "--nodes", nodes, "--ckpt-dir", f"storms{life}", checkpoint)
        r = job.wait()
        seen |= set(r.out.splitlines())
        expect(r.status == 0 and seen == set(wanted.out.splitlines()), wanted, r)


@test
def parted_single_copies_in_mid_flight_are_asked_for(s):
    for turn in TURNS:
        for env in ({"HALE_COLL_INLINE": "64"}, {"HALE_COLL": "copies"}):
            laid_out_otherwise(s, turn, 4, (1, 2, 4), env, most=100000)


def status_of(pid, key):
    with open(f"/proc/{pid}/status") as f:
        return re.search(f"^{key}:\t(.*)$", f.read(), re.M)[1]


@test
def who_waits_in_a_first_operation_may_be_parted_and_brought_together_before_the_last_one_comes(s):
    exe = s.compile("ends")
    job = s.hale_start(3, exe, options=["--ckpt-dir", "life0"])
    for life, nodes in enumerate((2, 1), 1):
        pids = job.ranks(3)
        for rank in (0, 1):
            job.until(lambda: status_of(pids[rank], "State").startswith("S"), "it waits")
        time.sleep(0.2)
        checkpoint = job.checkpoint()
        job.kill(signal.SIGTERM)
        job.wait()
        job = s.start(HALE, "restart", "--nodes", nodes, "--ckpt-dir", f"life{life}", checkpoint)
    for name in ("first", "last", "end"):
        s.write(name, "")
    r = job.wait(60)
    expect(r.status == 0 and r.out == "all are here\n", r)


@test
def some_may_be_further_in_mpi_finalize_than_others_when_a_checkpoint_comes(s):
    """All wait there for the last one; then rank 1 is stopped until the others have gone further and the
    checkpoint is asked for."""
    exe = s.compile("ends")
    s.write("first", "")
    for nodes in (2, 3):
        job = s.hale_start(4, exe, options=["--nodes", 2])
        behind = job.ranks(4)[1]
        job.until_output("all are here")
        job.until(lambda: status_of(behind, "State").startswith("S"), "rank 1 sleeps in MPI_Finalize")
        time.sleep(0.2)
        os.kill(behind, signal.SIGSTOP)
        s.write("last", "")
        time.sleep(0.3)
        asked = s.start(HALE, "ckpt", job.id())
        asked.until(lambda: int(status_of(behind, "SigPnd"), 16), "it has been asked")
        os.kill(behind, signal.SIGCONT)
        expect(asked.wait().status == 0, asked.result())
        s.write("end", "")
        job.wait()
        r = s.hale("restart", "--nodes", nodes, asked.out().split()[-1], limit=60)
        expect(r.status == 0, r)
        os.unlink(s.path("last"))
        os.unlink(s.path("end"))


@test
def messages_kept_for_a_rank_that_lives_here_now_wait_for_the_end_of_a_checkpoint(s):
    """Rank 1 is late for one, so that rank 0's image keeps what it has sent it over the network. On one node that goes
    through shared memory, as far as there is room while rank 1 doesn't look; what is left must not follow the marker
    while they wait for rank 2's."""
    exe = s.compile("unread")
    job = s.hale_start(3, exe, options=["--nodes", "3", "--ckpt-dir", "apart"])
    job.until_output("^computes\n(.*\n)*computes")
    late = 1
    for life in range(3):
        stopped = job.ranks(3)[late]
        os.kill(stopped, signal.SIGSTOP)
        s.write("send", "")
        if life == 0:
            job.until_output("^sent")
        asked = s.start(HALE, "ckpt", job.id())
        time.sleep(0.5)  # the others wait for it, or don't any more
        os.kill(stopped, signal.SIGCONT)
        r = asked.wait()
        expect(r.status == 0, r)
        job.kill(signal.SIGTERM)
        job.wait()
        job = s.start(HALE, "restart", "--nodes", "1", "--ckpt-dir", f"together{life}",
                      s.path(r.out.strip().splitlines()[-1]))
        late = 2
    s.write("read", "")
    r = job.wait()
    expect(r.status == 0 and r.out.endswith("200 messages, 0 wrong\n"), r)


@test
def more_ranks_than_strangers_are_allowed_connect_at_once(s):
    exe = s.compile("all_to_one")
    r = s.hale_run(100, exe, options=["--ppn", "20"])
    expect(r.status == 0 and r.out == f"99 of 99: {99 * 100 // 2}\n", r)
    expect("turned away" not in r.err, r)


main()
