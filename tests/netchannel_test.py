#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The network channel: nodes as network namespaces, programs over net and shm mixed, checkpoints and
faults of a job whose ranks all talk over the network."""

from lib import *
from net_nodes import ENV, MINIRUN, Nodes

ALL = {"HALE_NET": "all", "HALE_COLL": "messages"}


def told(r):
    """Ranks print as they come; and who shares a node differs."""
    return sorted(line for line in r.out.splitlines() if ": node: " not in line)


@test
def programs_over_nodes_give_what_they_give_on_one(s):
    storm, coll = s.compile("storm"), s.compile("collectives", flags=["-lm"])
    tour = s.compile("comm_tour")
    rounds = 400 if LONG else 100
    with Nodes(s, 3) as nodes:
        expected = s.run(MINIRUN, "-n", 5, storm, rounds, env=ENV)
        tour_expected = s.run(MINIRUN, "-n", 6, tour, env=ENV)
        expect(expected.status == 0 and expected.out, expected)
        for count in (2, 3):
            r = nodes.run(5, count, storm, rounds)
            expect(r.status == 0 and r.out == expected.out, r, expected)
            # the very bits of the fixed tree, wherever the ranks are
            r = nodes.run(5, count, coll, 20, SEED, 3000, env={"TREE": "1"})
            expect(r.status == 0 and r.out == "20 rounds, 0 wrong\n", r)
            r = nodes.run(6, count, tour)
            expect(r.status == tour_expected.status and told(r) == told(tour_expected), r,
                   tour_expected)


@test
def a_job_over_the_network_goes_on_through_checkpoints_and_deaths(s):
    exe = s.compile("storm")
    expected = s.hale_run(4, exe, 1000)
    expect(expected.status == 0, expected)
    for run in range(3 if LONG else 1):
        r = s.hale_run(4, exe, 1000, env=ALL,
                       options=["--ckpt-every", "150ms", "--seed", SEED + run, "--report",
                                "report.json", "--inject", "kill:rank=any,at-ckpt=2", "--inject",
                                "kill:rank=any,after=500ms-900ms"])
        expect(r.status == 0 and r.out == expected.out, f"seed {SEED + run}", r, expected)
        expect(s.report()["restarts"] >= 1, s.report())
        shutil.rmtree(s.path("hale-ckpt"), ignore_errors=True)


@test
def an_image_holds_nothing_of_the_network(s):
    exe = s.compile("storm")
    job = s.hale_start(2, exe, 3000, env=ALL)
    job.until_output("round 100:")
    threads = [len(os.listdir(f"/proc/{p}/task")) for p in job.ranks(2).values()]
    expect(threads == [1, 1], f"threads {threads}")
    job.checkpoint()
    before = {r: proc_figures(p)["fds"] for r, p in job.ranks(2).items()}
    for _ in range(10):
        newest = job.checkpoint()
    after = {r: proc_figures(p)["fds"] for r, p in job.ranks(2).items()}
    expect(all(after[r] <= before[r] + 2 for r in before), f"descriptors {before}, then {after}")
    for name in os.listdir(newest):
        if not name.endswith(".json"):
            shown = s.hale("image", "show", os.path.join(newest, name))
            expect(shown.status == 0 and "socket" not in shown.out, shown)
    job.kill(signal.SIGTERM)
    job.wait()


main()
