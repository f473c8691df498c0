#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Faults while ranks move from host to host, of LAMMPS and of a program that compares each result: nothing
is lost, and `hale events` tells of it. docs/nodes.md, "Faults", has the table."""

from hosts_parts import *


class held:
    """A rank stands still meanwhile, so that a move can't come to its end."""

    def __init__(self, pid):
        self.pid = pid

    def __enter__(self):
        os.kill(self.pid, signal.SIGSTOP)

    def __exit__(self, *_):
        try:
            os.kill(self.pid, signal.SIGCONT)
        except ProcessLookupError:
            pass


def copies_there(story, k, ranks=2):
    story.job.until(lambda: len(story.processes(k)) == ranks, "the copies are started")


@test
def the_spare_is_lost_during_a_migration_and_then_there_is_none(s):
    for program in (Lammps, Collectives):
        with Hosts(s, 3) as hosts:
            story = Story(s, hosts, program, "--spares", "1")
            pids = sorted(story.pids())
            with held(story.ranks_on(1)[0]):
                m = story.start_move(1)
                copies_there(story, 2)
                story.kill_supervisor(2)
                story.told(("FTB_MIGRATE", hosts.address(1)), ("FTB_NODE_LOST", f"NODE:{hosts.address(2)}"))
            r = m.wait()
            expect(r.status == 1 and "stay there" in r.err, r)
            expect(sorted(story.pids()) == pids, "not the same processes")
            story.program.goes_on(story.job)
            # no spare is left: the other host takes them
            r = story.move(1)
            expect(r.status == 0 and f"to {hosts.address(0)}" in r.out, r)
            story.told(("FTB_MIGRATE_PIC", hosts.address(1)), ("FTB_MIGRATE_IPT", hosts.address(0)))
            r = story.move(0, "--to", hosts.address(2))
            expect(r.status == 1 and "lost" in r.err, r)
            report = story.end()
            expect(report["restarts"] == 0 and [m["ranks"] for m in report["migrations"]] == [2], report)


@test
def two_migrations_are_asked_for_at_once(s):
    for program in (Lammps, Collectives):
        with Hosts(s, 4) as hosts:
            story = Story(s, hosts, program, "--spares", "2")
            with held(story.ranks_on(1)[0]):
                m = story.start_move(1)
                copies_there(story, 2)
                second = story.start_move(0, "--to", hosts.address(3))
                again = story.start_move(1)
                story.job.until(lambda: '"waits":true' in hosts.hale("nodes", story.id, "--json").out,
                                "the second waits for its turn")
                time.sleep(0.3)
            got = [p.wait() for p in (m, again, second)]
            expect([r.status for r in got] == [0] * 3 and got[0].out == got[1].out, *got)
            story.told(("FTB_MIGRATE_IPT", hosts.address(2)), ("FTB_MIGRATE", hosts.address(0)),
                       ("FTB_MIGRATE_PIC", hosts.address(0)), ("FTB_MIGRATE_IPT", hosts.address(3)))
            report = story.end()
            expect(len(report["migrations"]) == 2 and report["restarts"] == 0, report)


@test
def the_disk_of_the_target_is_full(s):
    for program in (Lammps, Collectives):
        with Hosts(s, 3, disks="200m") as hosts:
            story = Story(s, hosts, program, "--spares", "1")
            pids = sorted(story.pids())
            there = ["nsenter", "-t", hosts.servers[2].pid, "-m"]
            r = s.run(*there, "mount", "-o", "remount,size=1m", hosts.disk)
            expect(r.status == 0, r)
            r = story.move(1, "--via-files=" + hosts.disk)
            expect(r.status == 1 and "stay there" in r.err and "No space left" in r.err, r)
            expect(sorted(story.pids()) == pids and not story.processes(2), "not the same processes")
            story.program.goes_on(story.job)
            s.run(*there, "mount", "-o", "remount,size=200m", hosts.disk)
            r = story.move(1, "--via-files=" + hosts.disk)
            expect(r.status == 0, r)
            story.told(("FTB_MIGRATE_PIC", hosts.address(1)), ("FTB_MIGRATE_IPT", hosts.address(2)))
            report = story.end()
            expect(len(report["migrations"]) == 1 and report["restarts"] == 0, report)


@test
def the_source_is_lost_during_a_migration(s):
    for program in (Lammps, Collectives):
        with Hosts(s, 3) as hosts:
            story = Story(s, hosts, program, "--spares", "1")
            r = hosts.hale("ckpt", story.id)
            expect(r.status == 0, r)
            story.told("FTB_CHECKPOINT_DONE")
            with held(story.ranks_on(1)[0]):
                m = story.start_move(1)
                copies_there(story, 2)
                hosts.cut(1)
                r = m.wait()
                expect(r.status == 1, r)
            story.told(("FTB_MIGRATE", hosts.address(1)), ("FTB_NODE_LOST", f"NODE:{hosts.address(1)}"),
                       ("FTB_ROLLBACK_DONE", ""))
            report = story.end()
            expect(report["restarts"] >= 1 and not report["migrations"], report)


main()
