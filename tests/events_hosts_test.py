#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""A job's events on its hosts, which are network namespaces (namespaces.py): components there find
the job's broker under the name that it has everywhere, and hear of each other."""

from events_parts import *
from lib import name_of, parent_of
from namespaces import Hosts


@test
def components_on_all_hosts_hear_each_other_and_the_job(s):
    with Hosts(s, 3) as hosts:
        job = Job(s, hosts)
        for k in range(3):
            st = job.until(k, lambda st: st["parent"], f"host {k} is below the head")
            expect(st["node"] == hosts.address(k), st)
        st = job.status(None)
        expect(len(st["children"]) == 3 and not st["parent"], st)
        watchers = [job.watch(k) for k in (None, 0, 1, 2)]
        for k in (1, 2):
            job.heard(k, f"HOST{k}", *watchers)
        publishers = [job.publish(k, f"HOST{k}", 200, severity) for k, severity in
                      ((1, "WARNING"), (2, "INFO"))]
        for p in publishers:
            expect(p.wait().status == 0)
        for w in watchers:
            until_all(job, w, "HOST1", 200)
            until_all(job, w, "HOST2", 200)
        expect({e["host"] for e in events(watchers[0], "FTB.HOST1")} == {hosts.address(1)},
               events(watchers[0], "FTB.HOST1")[0])
        # what the job says itself is heard on hosts, too
        r = hosts.hale("migrate", "--from", hosts.address(1))
        expect(r.status == 0, r)
        job.run.until(lambda: [e for e in events(watchers[3], "FTB.JL")
                               if e["name"] == "FTB_MIGRATE_IPT"], "the migration is heard of")
        stop(*watchers)
        job.end()


@test
def a_host_that_is_cut_off_goes_on_and_nothing_is_lost(s):
    """The head can't be reached for longer than a broker is waited for, and shorter than a lease."""
    with Hosts(s, 3) as hosts:
        job = Job(s, hosts, "--node-timeout", "20s")
        for k in range(3):
            job.until(k, lambda st: st["parent"], f"host {k} is below the head")
        here, head, other = job.watch(2), job.watch(None), job.watch(0)
        job.heard(2, "CUT", here, head, other)
        p = job.publish(2, "CUT", 1000, pause=8000)
        job.run.until(lambda: len(numbers(other, "CUT")) > 20, "events have come")
        hosts.cut(2)
        job.until(2, lambda st: not st["parent"], "its broker is alone")
        before = len(numbers(here, "CUT"))
        job.run.until(lambda: len(numbers(here, "CUT")) > before + 20, "its own events go on there")
        expect(len(numbers(other, "CUT")) < before, "events came through a cable that is cut")
        hosts.heal(2)
        job.until(2, lambda st: st["parent"], "it is below the head again")
        expect(p.wait().status == 0)
        for w in (here, head, other):
            job.run.until(lambda: len(numbers(w, "CUT")) >= 1000, "all have come")
            got = numbers(w, "CUT")
            expect(sorted(got) == list(range(1, 1001)), "lost or doubled", len(got), got[:50])
        stop(here, head, other)
        job.end()
        expect(s.report()["restarts"] == 0, s.report())


@test
def a_storm_on_a_host_does_not_hold_up_the_job(s):
    with Hosts(s, 2) as hosts:
        job = Job(s, hosts)
        for k in range(2):
            job.until(k, lambda st: st["parent"], f"host {k} is below the head")
        head = job.watch(None, "--filter", "namespace=FTB.CALM")
        noisy = job.watch(None, "--filter", "namespace=FTB.STORM")
        job.heard(0, "CALM", head)
        job.heard(0, "STORM", noisy)
        storm = job.publish(0, "STORM", 200000, "INFO", 0)
        calm = job.publish(0, "CALM", 50, "ERROR", 2000)
        expect(calm.wait().status == 0)
        until_all(job, head, "CALM", 50)
        last = int(re.findall(r"^rank 0 step (\d+) ", job.run.out(), re.M)[-1])
        job.run.until_output(f"rank 0 step {last + 5} ")
        expect(storm.wait().status == 0)
        stop(head, noisy)
        job.end()


@test
def a_broker_that_is_killed_with_its_host_is_not_missed(s):
    with Hosts(s, 3) as hosts:
        job = Job(s, hosts, "--ckpt-every", "300ms")
        for k in range(3):
            job.until(k, lambda st: st["parent"], f"host {k} is below the head")
        other = job.watch(2)
        job.heard(0, "LIVES", other)
        p = job.publish(0, "LIVES", 300, pause=10000)
        agents = {p for p in children(hosts.servers[1].pid)
                  if name_of(p).startswith(HALE + " agent")}
        os.kill(next(p for p in agents if parent_of(p) not in [None, *agents]), signal.SIGKILL)
        job.run.until(lambda: [e for e in events(other, "FTB.NLA") if e["name"] ==
                               "FTB_NODE_LOST"], "its loss is heard of on the spare")
        expect(p.wait().status == 0)
        until_all(job, other, "LIVES", 300)
        stop(other)
        job.run.kill(signal.SIGTERM)
        job.run.wait()


main()
