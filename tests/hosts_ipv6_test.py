#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Hosts that have addresses of IPv6 only (network namespaces): all that goes from host to host does so over
IPv6. Ranks' messages, copies of images, ranks that move, in the clear and encrypted; checkpoints, lost hosts,
lost heads, events, joined brokers."""

from attach_parts import host_attach, kill_head
from hosts_parts import *
from levels_parts import copied, manifests
from migrate_hosts_parts import RELAY
from namespaces import Hosts6, Reader

ENCRYPT = ["--net-security", "encrypt"]
SECRET = "ack at dawn! att"
MIB = 6


def secret_job(s, hosts, *options, ranks=3, env=None):
    exe = s.path("secretive")
    if not os.path.exists(exe):
        s.compile("secretive")
    job = hosts.hale_start(ranks, exe, MIB, 20, options=["--spares", "1", "--report", "report.json",
                                                         "--head-grace", "60s", *options],
                           env={"HALE_MIGRATE_COMPRESS": "off", **(env or {})})  # a reader finds words as they are
    job.until_output("rank 0 step 5 ")
    found = json.loads(hosts.hale("ps", "--json").out)["jobs"]
    job.name = next(j["id"] for j in found if j["id"].startswith("secretive."))
    return job


def goes_on(job, *before):
    last = int(re.findall(r"^rank 0 step (\d+) ", "".join(h.out() for h in (*before, job)), re.M)[-1])
    job.until_output(f"rank 0 step {last + 5} ")


def end(s, *heads, ranks=3):
    s.write("stop", "")
    r = heads[-1].wait()
    os.unlink(s.path("stop"))
    out = "".join(h.out() for h in heads)
    expect(r.status == 0 and len(re.findall("^done ", out, re.M)) == 1, r)
    for rank in range(ranks):
        mine = [int(x) for x in re.findall(rf"^rank {rank} step (\d+) [0-9a-f]{{16}}$", out, re.M)]
        expect(mine == list(range(len(mine))), f"rank {rank}: lines are lost, or came twice", mine)
    return s.report()


@test
def lammps_is_saved_moved_and_loses_hosts(s):
    """Ranks of two hosts, which talk; a checkpoint, a host cut off, its ranks moved back."""
    with Hosts6(s, 4) as hosts:
        story = Story(s, hosts, Lammps, "--spares", "1", "--ckpt-every", "2s")
        story.job.until(story.complete, "a checkpoint")
        hosts.cut(1)
        story.told("FTB_NODE_LOST", "FTB_ROLLBACK_DONE")
        story.program.goes_on(story.job)
        r = story.move(0, "--to", hosts.address(2))
        expect(r.status == 0, r, story.job.err())
        story.program.goes_on(story.job)
        report = story.end()
        expect(report["restarts"] == 1 and len(report["migrations"]) == 1, report)
        expect(all(m["relayed_bytes"] < 1 << 20 for m in report["migrations"]), report)


@test
def collectives_over_hosts_are_right(s):
    with Hosts6(s, 3, disks="500m") as hosts:
        story = Story(s, hosts, Collectives, "--ckpt-every", "1s", "--ckpt-local", hosts.disk, ranks=6)
        story.job.until(story.copied, "copies on partners")
        time.sleep(1)  # more of them are compared
        story.end()


@test
def images_are_copied_and_fetched(s):
    """A host is lost with its disk: what its partner has is fetched from there. Then another one."""
    with Hosts6(s, 4, disks="200m") as hosts:
        for options in ([], ENCRYPT):
            job = secret_job(s, hosts, "--ckpt-every", "1s", "--ckpt-local", hosts.disk,
                             "--ckpt-shared-every", "0", *options, ranks=2)
            reader = Reader(s, hosts, SECRET)
            before = max([0, *copied(s)])
            job.until(lambda: copied(s) and max(copied(s)) > before + 1, "two more are copied")
            found, total = reader.seen()
            expect(total > MIB << 20 and (found == 0 if options else found > 10000), found, total)
            newest = max(copied(s))
            if options:
                hosts.lose(1)
                job.until_says("all ranks run again")
                goes_on(job)
            report = end(s, job, ranks=2)
            if options:
                expect(report["failures"][0]["rolled_back_to"] >= newest, report)
            shutil.rmtree(s.path("hale-ckpt"))


@test
def ranks_move(s):
    """From host to host, through the head, by files; and nobody reads along."""
    with Hosts6(s, 4) as hosts:
        for options in ([], ENCRYPT):
            for env, more in (({}, []), (RELAY, []), ({}, ["--via-files"])):
                job = secret_job(s, hosts, *options, env=env)
                reader = Reader(s, hosts, SECRET)
                r = hosts.hale("migrate", job.name, "--from", hosts.address(0), *more)
                expect(r.status == 0, r, job.err())
                goes_on(job)
                found, total = reader.seen()
                expect(found == 0 or not options, found, total)
                report = end(s, job)
                moves = report["migrations"]
                expect(len(moves) == 1 and report["restarts"] == 0, report)
                if not more:
                    expect((moves[0]["relayed_bytes"] > MIB << 20) == bool(env), moves)
                    expect(total > MIB << 20, total)


@test
def a_head_that_is_killed_is_replaced(s):
    with Hosts6(s, 4, disks="200m") as hosts:
        job = secret_job(s, hosts, "--ckpt-every", "1s", "--ckpt-local", hosts.disk + "/%n")
        job.until(lambda: copied(s), "a checkpoint is copied")
        kill_head(s, job, hosts.hale)
        after = host_attach(s, hosts, job)
        goes_on(after, job)
        before = max(manifests(s))
        after.until(lambda: max(copied(s)) > before, "copies are made again")
        r = hosts.hale("migrate", job.name, "--from", hosts.address(1))
        expect(r.status == 0, r, after.err())
        goes_on(after, job)
        report = end(s, job, after)
        expect(report["migrations"][0]["relayed_bytes"] < 1 << 20, report)


main()
