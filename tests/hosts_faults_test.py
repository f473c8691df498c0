#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What may happen to hosts, to LAMMPS and to a program that compares each result, over shared memory and
the network: nothing is lost, and `hale events` tells of it. docs/nodes.md, "Faults", has the table."""

from hosts_parts import *
from lib import stat_of

OFTEN = ["--ckpt-every", "300ms"]
LOCAL = ["--ckpt-local", "{disk}", "--ckpt-shared-every", "0", *OFTEN]


def checkpointed(story):
    story.told("FTB_CHECKPOINT_DONE")


@test
def a_supervisor_is_killed(s):
    for program in (Lammps, Collectives):
        with Hosts(s, 3) as hosts:
            story = Story(s, hosts, program, "--spares", "1", *OFTEN)
            checkpointed(story)
            story.kill_supervisor(1)
            lost = hosts.address(1)
            story.told(("FTB_NODE_LOST", f"NODE:{lost}"), "FTB_ROLLBACK",
                       ("FTB_NODE_STATE", f"NODE:{hosts.address(2)}::STATE:READY::RANKS:2"))
            story.told("FTB_ROLLBACK", ("FTB_ROLLBACK_DONE", "RESTART:1"))
            report = story.end()
            expect([f["node"] for f in report["failures"]] == [lost], report)


@test
def a_host_is_lost_with_its_disk(s):
    """Its images are, too: the spare gets the copies that the partner has."""
    for program in (Lammps, Collectives):
        with Hosts(s, 3, disks="300m") as hosts:
            local = [hosts.disk if x == "{disk}" else x for x in LOCAL]
            story = Story(s, hosts, program, "--spares", "1", *local)
            story.job.until(story.copied, "a checkpoint is copied")
            hosts.lose(0)
            story.told(("FTB_NODE_LOST", f"NODE:{hosts.address(0)}"),
                       "FTB_ROLLBACK", ("FTB_ROLLBACK_DONE", "RESTART:1"))
            expect(story.state(0) == ("LOST", 0) and story.state(2) == ("READY", 2), "the spare has them")
            report = story.end()
            expect(report["failures"][0]["rolled_back_to"] > 0, report)


def two_halves(s, program, grace):
    """Hosts 2 and 3 reach each other and nobody else. They stop their ranks (or let them wait, with a
    grace) before those run with the head's half."""
    with Hosts(s, 4) as hosts:
        story = Story(s, hosts, program, *(["--head-grace", "60s"] if grace else []), *OFTEN)
        checkpointed(story)
        old = story.ranks_on(2, 3)
        expect(len(old) == 2, old)
        hosts.apart(2, 3)
        # whoever begins elsewhere does so after all of them have stopped
        story.job.until_says("rolling back to checkpoint")
        expect(not at_work(old), "the half without the head runs on", story.job.result())
        if grace:
            expect(any((stat_of(p) or (0, "X"))[1] in "Tt" for p in old), "they don't wait", old)
        lost = [("FTB_NODE_LOST", f"NODE:{hosts.address(k)}") for k in (2, 3)]
        for event in lost:
            story.told(event, ("FTB_ROLLBACK_DONE", ""))
        expect([story.state(k) for k in range(4)] == [("READY", 2), ("READY", 2), ("LOST", 0), ("LOST", 0)],
               [story.state(k) for k in range(4)])
        hosts.apart(2, 3, on=False)
        # the other half comes back: nobody there disagrees, and no rank of it is ever at work again
        for _ in range(100):
            expect(not at_work(old), "a rank of the other half works on")
            if not any(stat_of(p) for p in old):
                break
            time.sleep(0.05)
        else:
            raise Failed(f"the other half doesn't end its ranks: {old}")
        story.program.goes_on(story.job)
        report = story.end()
        expect(report["restarts"] >= 1, report)
        expect(sorted(f["node"] for f in report["failures"]) == [hosts.address(2), hosts.address(3)], report)


@test
def the_half_without_the_head_ends_its_ranks(s):
    for program in (Lammps, Collectives):
        two_halves(s, program, grace=False)


@test
def or_lets_them_wait_as_asked(s):
    for program in (Lammps, Collectives):
        two_halves(s, program, grace=True)


@test
def a_cut_that_heals_within_the_timeout_costs_nothing_but_waiting(s):
    for program in (Lammps, Collectives):
        with Hosts(s, 2) as hosts:
            story = Story(s, hosts, program, *OFTEN, timeout="20s")
            old = sorted(story.pids())
            for _ in range(3):
                hosts.cut(1)
                time.sleep(0.3)
                hosts.heal(1)
                story.program.goes_on(story.job)
            expect(sorted(story.pids()) == old, "not the same processes")
            report = story.end()
            expect(report["failures"] == [] and report["restarts"] == 0, report)
            story.never_told("FTB_NODE_LOST", "FTB_ROLLBACK", "FTB_NODE_UNUSABLE")


@test
def no_spare_is_left(s):
    """The first host that is lost has one; the second's ranks go to those that are left; without any host
    the job ends, and goes on elsewhere, laid out otherwise."""
    for program in (Lammps, Collectives):
        with Hosts(s, 4) as hosts:
            story = Story(s, hosts, program, "--spares", "1", *OFTEN, ranks=3)
            checkpointed(story)
            story.kill_supervisor(0)
            story.told(("FTB_NODE_STATE", f"NODE:{hosts.address(3)}::STATE:READY::RANKS:1"),
                       ("FTB_ROLLBACK_DONE", "RESTART:1"), "FTB_CHECKPOINT_DONE")
            story.kill_supervisor(1)
            story.told(("FTB_NODE_LOST", f"NODE:{hosts.address(1)}"), ("FTB_ROLLBACK_DONE", "RESTART:2"),
                       "FTB_CHECKPOINT_DONE")
            expect(sorted(story.state(k)[1] for k in (2, 3)) == [1, 2], "those that are left have all")
            for k in (2, 3):
                story.kill_supervisor(k)
            r = story.job.wait()
            expect(r.status == EXIT_UNRECOVERED and "no node is left" in r.err, r)
            expect(f"hale restart {os.path.dirname(story.complete()[-1])}" in r.err, r)
            story.told(("FTB_JOB_ENDED", f"EXIT:{EXIT_UNRECOVERED}"))
            story.watcher.wait()
            # elsewhere: other hosts, in another order, more ranks to each
            s.write("other.txt", f"{hosts.address(2)}\n{hosts.address(1)}\n")
            job = s.start("ip", "netns", "exec", hosts.hub, HALE, "restart", os.path.dirname(
                story.complete()[-1]), "--hosts", "other.txt", "--ppn", "2", "--launcher",
                f"{PYTHON} {hosts.client} %h 7022 \"%c\"", "--ckpt-every", "0",
                env={"HALE_NET_DEVICES": "eth0", **story.program.env})
            story.program.goes_on(job)
            story.program.end(job)


main()
