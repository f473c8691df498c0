#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The network channel: nodes as network namespaces, programs over net and shm mixed, checkpoints and
faults of a job whose ranks all talk over the network."""

from lib import *

MINIRUN = os.path.join(os.path.dirname(HALE), "tests", "minirun")
ENV = {"LD_LIBRARY_PATH": os.path.dirname(HALE)}
ALL = {"HALE_NET": "all", "HALE_COLL": "messages"}


class Nodes:
    """Network namespaces PREFIX0, PREFIX1, … on one bridge in another one."""

    def __init__(self, s, count):
        if os.getuid() != 0 or not shutil.which("ip"):
            skip("network namespaces need root and iproute2")
        self.s, self.prefix, self.made = s, f"hn{os.getpid()}n", []
        hub = self.add(f"hn{os.getpid()}hub")
        self.ip("-n", hub, "link", "add", "name", "bridge0", "type", "bridge")
        self.ip("-n", hub, "link", "set", "bridge0", "up")
        for k in range(count):
            node = self.add(f"{self.prefix}{k}")
            self.ip("-n", node, "link", "set", "lo", "up")
            self.ip("-n", node, "link", "add", "eth0", "type", "veth", "peer", "name", f"p{k}",
                    "netns", hub)
            self.ip("-n", node, "addr", "add", f"10.77.0.{k + 1}/24", "dev", "eth0")
            self.ip("-n", node, "link", "set", "eth0", "up")
            self.ip("-n", hub, "link", "set", f"p{k}", "master", "bridge0")
            self.ip("-n", hub, "link", "set", f"p{k}", "up")

    def ip(self, *argv):
        r = self.s.run("ip", *argv)
        if r.status != 0 and not self.made:
            skip("no right to make network namespaces here")
        expect(r.status == 0, r)

    def add(self, name):
        self.ip("netns", "add", name)
        self.made.append(name)
        return name

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for name in self.made:
            self.s.run("ip", "netns", "del", name)

    def run(self, ranks, nodes, *argv, env=None):
        return self.s.run(MINIRUN, "-n", ranks, "--nodes", nodes, "--netns", self.prefix, *argv,
                          env=dict(ENV, HALE_NET_DEVICES="eth0", **(env or {})))


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
