#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Ranks that go to machines that have run for longer or shorter: their clocks go on, and what waits for
a time gets it (docs/checkpoints.md, 'Clocks'). The hosts are namespaces with clocks of their own."""

from lib import *
from migrate_hosts_parts import *
from namespaces import uptime


def comes_on(job, steps=30):
    """What stands still is noticed by the program after 20 s."""
    def step():
        return max(map(int, re.findall(r"^rank 0 step (\d+)\n", job.out(), re.M)), default=None)
    at = job.until(lambda: step() or None, "a step")
    job.until(lambda: step() >= at + steps, f"{steps} steps more")


def ends(s, job):
    s.write("stop", "")
    r = job.wait()
    os.unlink(s.path("stop"))
    expect(r.status == 0 and r.out.count("done rank") == 2, r)


def begin(s, hosts, *options):
    if not uptime(0):
        skip("no namespaces of time here")
    s.compile("deadlines", flags=["-pthread"])
    job = seen_from_the_head(hosts, hosts.hale_start(2, s.path("deadlines"),
                                                     options=[*OPTIONS, "--ppn", "1", *options]))
    comes_on(job, 5)
    return job


@test
def who_moves_to_where_clocks_are_behind_waits_no_longer(s):
    with Hosts(s, 3) as hosts:
        job = begin(s, hosts)
        for k, more in ((0, []), (1, []), (2, ["--via-files"])):
            r = move(hosts, job, k, *more)
            expect(r.status == 0, r, job.err())
            comes_on(job)
        ends(s, job)


@test
def nor_who_is_restored_there(s):
    with Hosts(s, 3) as hosts:
        job = begin(s, hosts, "--ckpt-every", "1s")
        job.until(lambda: glob.glob(s.path("hale-ckpt/*/*/manifest.json")), "a checkpoint")
        hosts.lose(0)
        job.until_says("all ranks run again")
        comes_on(job)
        r = hosts.hale("ckpt", job.id())
        expect(r.status == 0, r)
        job.kill()
    # and on this machine, whose clock is behind all of theirs
    job = s.start(HALE, "restart", r.out.split()[-1])
    comes_on(job)
    ends(s, job)


main()
