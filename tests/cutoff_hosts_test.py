#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Nodes that can't reach each other although both reach the head (docs/nodes.md, "Cut off from each
other"): two ports of the bridge are isolated, which lets them talk with all but each other. And ranks
that only compute, which must not be taken for that."""

from lib import *
from namespaces import Hosts
from steps_parts import end, goes_on, until_told

FAST = {"HALE_NET_TIMEOUT": "1"}
CKPT = ["--ckpt-every", "300ms"]
TOLD = r"rank \d on node [0-9.]+ can't reach rank \d on node [0-9.]+ over the network"


def nodes(hosts, job):
    r = hosts.hale("nodes", "--json")  # of the one that there is in the head's namespace
    expect(r.status == 0, r, job.result())
    return {n["node"]: n for n in json.loads(r.out)["nodes"]}


def begun(s, hosts, *options, timeout="2s"):
    job = hosts.hale_start(4, *until_told(s), env=FAST,
                           options=["--report", "report.json", "--node-timeout", timeout, *options])
    job.until_output("rank 3 step 30 ")
    if options and "off" not in options:
        job.until(s.complete, "a checkpoint")
    return job


@test
def ranks_that_compute_are_never_reported(s):
    exe = s.compile("aloof")
    with Hosts(s, 2) as hosts:
        job = hosts.hale_start(4, exe, 10, env=FAST,
                               options=["--report", "report.json", *CKPT[:1], "3s"])
        r = job.wait()
        expect(r.status == 0 and r.out == "sum 6\n", r)
        for word in ("can't reach", "broken", "turned away", "cut"):
            expect(word not in r.err, word, r)
        expect(s.report()["failures"] == [] and s.report()["restarts"] == 0, s.report())


@test
def one_of_two_nodes_that_are_cut_off_from_each_other_is_taken_out(s):
    with Hosts(s, 3) as hosts:
        job = begun(s, hosts, "--spares", "1", *CKPT)
        hosts.part(0, 1)
        job.until_says(TOLD)
        job.until_says(rf"node {hosts.address(1)} is cut off \(rank [0-3] on node [0-9.]+ has not "
                       r"reached rank [0-3] on node [0-9.]+ for \d+ s, though both nodes answer\); "
                       r"its ranks go elsewhere, rolling back to checkpoint \d+")
        job.until(lambda: nodes(hosts, job)[hosts.address(2)]["ranks"] == 2, "the spare has its ranks")
        job.until(lambda: nodes(hosts, job)[hosts.address(1)]["state"] == "SPARE", "the job runs without it")
        out = nodes(hosts, job)[hosts.address(1)]
        expect((out["ranks"], out["usable"]) == (0, False), out)
        end(s, job, rollbacks=1)
        failures = s.report()["failures"]
        expect(len(failures) == 1 and failures[0]["node"] == hosts.address(1) and
               re.fullmatch(r"node cut off: rank .* for \d+ s, though both nodes answer",
                            failures[0]["reason"]), failures)


@test
def without_a_spare_the_other_one_takes_all_ranks(s):
    with Hosts(s, 2) as hosts:
        job = begun(s, hosts, *CKPT)
        hosts.part(0, 1)
        job.until(lambda: nodes(hosts, job)[hosts.address(0)]["ranks"] == 4, "one node has all ranks")
        end(s, job, rollbacks=1)


@test
def who_is_cut_off_from_more_is_taken_out(s):
    with Hosts(s, 4) as hosts:
        job = begun(s, hosts, *CKPT)
        # node 0 reaches nobody but the head: its neighbours in the ring notice
        for k in (1, 2, 3):
            for here, there in ((0, k), (k, 0)):
                hosts.ip("-n", f"{hosts.prefix}{here}", "route", "add", "blackhole",
                         hosts.address(there) + "/32")
        job.until_says(f"node {hosts.address(0)} is cut off")
        r = end(s, job, rollbacks=1)
        expect(r.err.count("is cut off") == 1, r)


@test
def a_cut_that_heals_in_time_costs_nothing_but_waiting(s):
    with Hosts(s, 2) as hosts:
        job = begun(s, hosts, *CKPT, timeout="20s")
        hosts.part(0, 1)
        job.until_says(TOLD)
        hosts.part(0, 1, on=False)
        job.until_says("all ranks reach each other again")
        end(s, job)
        expect(s.report()["failures"] == [], s.report())


@test
def a_cable_that_is_out_for_moments_is_not_taken_for_one_that_loses_large_packets(s):
    """Checkpoints close connections that have sent things again in vain, just when the cable is in again."""
    with Hosts(s, 3) as hosts:
        job = hosts.hale_start(4, *until_told(s), options=["--node-timeout", "20s", "--ckpt-every", "500ms",
                                                           "--report", "report.json"])
        job.until_output("rank 3 step 30 ")
        for ms in (1900, 1400, 1700):
            hosts.cut(1)
            time.sleep(ms / 1000)
            hosts.heal(1)
            goes_on(job)
        r = end(s, job)
        expect("in packets of" not in r.err, r)


@test
def ranks_that_can_not_reach_each_other_are_moved_to_where_they_can(s):
    with Hosts(s, 3) as hosts:
        job = begun(s, hosts, "--spares", "1", *CKPT, timeout="20s")
        hosts.part(0, 1)
        job.until_says(TOLD)
        r = hosts.hale("migrate", "--from", hosts.address(1))
        expect(r.status == 0 and f"to {hosts.address(2)}" in r.out, r, job.err())
        job.until_says("all ranks reach each other again")
        end(s, job)
        expect(s.report()["failures"] == [] and len(s.report()["migrations"]) == 1, s.report())


@test
def without_a_checkpoint_the_job_waits_for_the_network(s):
    with Hosts(s, 2) as hosts:
        job = begun(s, hosts, "--ckpt-every", "off")
        hosts.part(0, 1)
        job.until_says("without one of the nodes the job ends: there is no checkpoint to roll back "
                       r"to \(--ckpt-every makes some\); so the job waits for the network, until 40 s")
        hosts.part(0, 1, on=False)
        end(s, job)
        expect(s.report()["failures"] == [], s.report())


@test
def and_not_for_ever(s):
    with Hosts(s, 2) as hosts:
        exe = s.compile("steps")
        job = hosts.hale_start(4, exe, 0, 20, env=FAST, options=["--node-timeout", "1s", "--ckpt-every", "off"])
        job.until_output("rank 3 step 30 ")
        hosts.part(0, 1)
        r = job.wait()
        expect(r.status == EXIT_UNRECOVERED and "though both nodes answer" in r.err and
               "the job ends: there is no checkpoint to roll back to" in r.err, r)


main()
