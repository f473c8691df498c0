#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""`hale migrate` between hosts, which are network namespaces (namespaces.py): streams from agent to
agent and through the head, files on disks of their own, and what may go wrong on the way."""

from lib import *
from migrate_hosts_parts import *
from migrate_parts import *


@test
def ranks_leave_a_host_and_come_back_and_nothing_passes_the_head(s):
    with Hosts(s, 3) as hosts:
        job = host_job(s, hosts)
        for k, to in ((1, 2), (2, 1), (0, 2)):
            r = move(hosts, job, k, "--to", hosts.address(to))
            expect(r.status == 0 and "2 ranks moved" in r.out, r, job.err())
            expect(state_of(hosts, job, k) == ("SPARE", 0), "not a spare")
            until_steps_go_on(job)
        end(s, job)
    moves = s.report()["migrations"]
    expect(len(moves) == 3 and s.report()["restarts"] == 0, s.report())
    expect(all(m["relayed_bytes"] == 0 and m["bytes"] > 1 << 20 for m in moves), moves)


@test
def lammps_moves_between_hosts_and_prints_the_same(s):
    have("lmp")
    wanted = s.hale_run(4, *LMP, "1000")
    with Hosts(s, 3) as hosts:
        job = seen_from_the_head(hosts, hosts.hale_start(4, *LMP, "1000", options=OPTIONS))
        job.until_output(r"^ +100 ")
        for k, more in ((1, []), (0, ["--via-files"])):
            r = move(hosts, job, k, *more)
            expect(r.status == 0, r, job.err())
        got = job.wait()
    expect(got.status == 0 and thermo(got.out) == thermo(wanted.out), got)
    expect(len(s.report()["migrations"]) == 2 and s.report()["restarts"] == 0, s.report())


@test
def who_writes_faster_than_the_wire_takes_is_slowed_and_little_is_left_for_the_stop(s):
    """Each rank writes all of its memory every third of a second, for which the wire takes two."""
    mib, ranks = 24, 2
    s.compile("secretive")
    with Hosts(s, 2) as hosts:
        for k in range(2):
            r = s.run("tc", "-n", f"{hosts.prefix}{k}", "qdisc", "add", "dev", "eth0", "root", "tbf",
                      "rate", "600mbit", "burst", "256k", "latency", "100ms")
            if r.status != 0:
                skip("tc has no token buckets here")
        for options in ([], ["--net-security", "encrypt"]):
            job = seen_from_the_head(hosts, hosts.hale_start(ranks, s.path("secretive"), mib, 5,
                                                             options=[*OPTIONS, *options],
                                                             env={"HALE_MIGRATE_COMPRESS": "off"}))
            job.until_output(r"rank 0 step 5 ")
            moves = []
            for k in (0, 1, 0):
                r = move(hosts, job, k, "--json")
                expect(r.status == 0, r, job.err())
                moves.append(json.loads(r.out))
                expect(moves[-1]["bytes"] > ranks * mib << 20 and moves[-1]["rounds"] > 1, moves)
            # where others take the processors, one of them may be unlucky
            expect(sorted(m["stopped_bytes"] for m in moves)[1] < ranks * mib << 19, moves)
            s.write("stop", "")
            r = job.wait()
            os.unlink(s.path("stop"))
            expect(r.status == 0 and s.report()["restarts"] == 0, r, s.report())
            for rank in range(ranks):
                mine = [int(x) for x in re.findall(rf"^rank {rank} step (\d+) [0-9a-f]{{16}}$", r.out, re.M)]
                expect(mine == list(range(len(mine))), f"rank {rank}: lines are lost, or came twice", mine)


@test
def what_no_connection_can_be_made_for_passes_the_head(s):
    """Once because it is said so, once because agents can't reach each other."""
    with Hosts(s, 3) as hosts:
        job = host_job(s, hosts, env=RELAY)
        r = move(hosts, job, 1)
        expect(r.status == 0, r, job.err())
        until_steps_go_on(job)
        end(s, job)
        expect(s.report()["migrations"][0]["relayed_bytes"] > 1 << 20, s.report())
        os.remove(s.path("stop"))
        # one rank a job and none of it needs the network: its agents are cut off from each other
        job = host_job(s, hosts, ranks=1)
        for k in range(3):
            for other in range(3):
                if k != other:
                    hosts.ip("-n", f"{hosts.prefix}{k}", "route", "add", "unreachable",
                             hosts.address(other) + "/32")
        r = move(hosts, job, 0)
        expect(r.status == 0, r, job.err())
        until_steps_go_on(job)
        s.write("stop", "")
        expect(job.wait().status == 0)
        expect(s.report()["migrations"][0]["relayed_bytes"] > 1 << 20, s.report())


@test
def files_are_copied_to_disks_that_hosts_do_not_share(s):
    with Hosts(s, 3) as hosts:
        disk = s.path("images")
        os.makedirs(disk)

        def there(k, *argv):
            r = s.run("nsenter", "-t", hosts.servers[k].pid, "-m", *argv)
            expect(r.status == 0, r)
            return r.out

        for k in range(3):
            there(k, "mount", "-t", "tmpfs", "-o", "size=" + ("200m", "200m", "1m")[k], "tmpfs", disk)
        job = host_job(s, hosts)
        pids = job.ranks(4)
        r = move(hosts, job, 1, "--via-files=" + disk)
        expect(r.status == 1 and "stay there" in r.err and "No space left" in r.err, r)
        expect(job.ranks(4) == pids and not host_copies(s, hosts, 2), "not the same processes")
        until_steps_go_on(job)
        there(2, "mount", "-o", "remount,size=200m", disk)
        r = move(hosts, job, 1, "--via-files=" + disk)
        expect(r.status == 0, r, job.err())
        until_steps_go_on(job)
        left = [there(k, "ls", disk) for k in range(3)]
        expect(left == ["", "", ""], left)
        end(s, job)
        expect(s.report()["migrations"][0]["relayed_bytes"] > 1 << 20, s.report())


@test
def a_spare_that_is_cut_off_meanwhile_harms_nobody(s):
    with Hosts(s, 3) as hosts:
        job = host_job(s, hosts)
        pids = job.ranks(4)
        for how in ([], ["--via-files"]):
            held = [0] if how else [2]
            stopped(pids, held)
            m = start_move(s, hosts, job, 1, *how)
            if how:  # its file is to be there before it is read
                job.until(lambda: len(host_copies(s, hosts, 2)) == 2, "the copies are started")
                os.kill(agent_of(hosts, 2), signal.SIGKILL)
            else:
                job.until(lambda: len(host_copies(s, hosts, 2)) == 2, "the copies are started")
                os.kill(host_copies(s, hosts, 2)[0], signal.SIGKILL)
                job.until_says("has ended")
            if how:
                job.until(lambda: "is lost" in job.err(), "a node is lost", 15)
            resume(pids, held)
            r = m.wait()
            expect(r.status == 1 and "stay there" in r.err, r)
            expect(job.ranks(4) == pids, "not the same processes")
            until_steps_go_on(job)
        # nothing is left but the other host, which takes them
        r = move(hosts, job, 1)
        expect(r.status == 0 and f"to {hosts.address(0)}" in r.out, r)
        until_steps_go_on(job)
        r = move(hosts, job, 0, "--to", hosts.address(2))
        expect(r.status == 1 and "lost" in r.err, r)
        end(s, job)
        expect(s.report()["restarts"] == 0, s.report())


@test
def a_cable_that_is_cut_for_a_while_costs_a_while(s):
    """The cut is shorter than a lease: the move goes on behind it, or comes to nothing."""
    with Hosts(s, 3) as hosts:
        job = host_job(s, hosts, "--node-timeout", "8s")
        for k, cut in ((1, 2), (1, 1), (1, 0)):
            pids = job.ranks(4)
            stopped(pids, [0])
            m = start_move(s, hosts, job, k)
            spare = 2 if state_of(hosts, job, 2)[1] == 0 else 1
            k = 1 if spare == 2 else 2
            job.until(lambda: not m.running() or len(host_copies(s, hosts, spare)) == 2,
                      "the copies are started")
            hosts.cut(cut)
            resume(pids, [0])
            time.sleep(1)
            hosts.heal(cut)
            r = m.wait()
            expect(r.status in (0, 1), r, job.err())
            until_steps_go_on(job)
            if r.status == 0:
                break
        end(s, job)
        expect(s.report()["restarts"] == 0, s.report())


@test
def who_is_killed_at_the_source_costs_a_rollback(s):
    with Hosts(s, 3) as hosts:
        job = host_job(s, hosts, "--ckpt-every", "400ms")
        job.until(lambda: glob.glob(s.path("hale-ckpt/*/*/manifest*")), "a checkpoint is there")
        pids = job.ranks(4)
        stopped(pids, [0])
        m = start_move(s, hosts, job, 1)
        job.until(lambda: not m.running() or len(host_copies(s, hosts, 2)) == 2,
                  "the copies are started")
        os.kill(agent_of(hosts, 1), signal.SIGKILL)
        job.until(lambda: "is lost" in job.err(), "a node is lost", 15)
        r = m.wait()
        expect(r.status == 1, r)
        job.until_says("all ranks run again from checkpoint")
        until_steps_go_on(job)
        end(s, job)
        expect(s.report()["restarts"] >= 1, s.report())


STRANGER = r"""
import os, socket, sys
for words in (b"", b"x", os.urandom(80), b"HALEMOVE" + os.urandom(200)):
    c = socket.create_connection((sys.argv[1], int(sys.argv[2])), 1)
    c.sendall(words)
    c.settimeout(0.2)
    try:
        answer = c.recv(100)
        print(len(answer))
    except OSError:
        pass
"""


def strangers(s, hosts, k):
    """Talk nonsense to every port of that host that listens, but that of its server."""
    r = s.run("ip", "netns", "exec", f"{hosts.prefix}{k}", "ss", "-ltnH")
    ports = {p for p in re.findall(re.escape(hosts.address(k)) + r":(\d+)", r.out) if p != "7022"}
    expect(ports, r)
    for port in ports:
        r = s.run("ip", "netns", "exec", hosts.hub, PYTHON, "-c", STRANGER, hosts.address(k), port)
        expect(r.status == 0 and "100" not in r.out, r)


@test
def strangers_at_the_door_change_nothing(s):
    with Hosts(s, 3) as hosts:
        job = host_job(s, hosts)
        pids = job.ranks(4)
        stopped(pids, [2])
        m = start_move(s, hosts, job, 1)
        job.until(lambda: len(host_copies(s, hosts, 2)) == 2, "the copies are started")
        strangers(s, hosts, 2)
        resume(pids, [2])
        r = m.wait()
        expect(r.status == 0, r, job.err())
        until_steps_go_on(job)
        end(s, job)


main()
