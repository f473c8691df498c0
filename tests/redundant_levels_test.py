#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""--ckpt-local in jobs with replicas: each rank's image lies on its writer's node, with a copy on a partner; all
replicas of a rank are killed, nodes are lost with their disks, the writer changes."""

from levels_parts import *
from adopt_parts import nodes

LOCAL = ["--replicas", "2", "--ckpt-local", "local/%n", "--ckpt-shared-every", "0", "--report", "report.json", "--node-timeout", "4s"]


def lives(job):
    """{(rank, slot): (node, pid)} if all processes of all ranks run; else nothing."""
    ranks = (job.info() or {"ranks": []})["ranks"]
    return ranks and all(r["state"] == "running" and r["pid"] for r in ranks) and {
        (r["rank"], r["slot"]): (r["node"], r["pid"]) for r in ranks}


def all_live(job):
    return job.until(lambda: lives(job), "all processes run")


def parts(m):
    return [(p["rank"], p["slot"], p["file"], [m["holders"][k]["node"] for k in p["on"]]) for p in m["parts"]]


def until_copied(s, job):
    before = max([0, *copied(s)])
    job.until(lambda: max([0, *copied(s)]) > before, "a newer checkpoint is copied")
    return max(copied(s))


@test
def images_of_writers_are_copied_and_gone_back_to(s):
    """Slot 0 writes, then slot 1, which leads when slot 0 is dead; images have their ranks' names wherever they are."""
    exe = s.compile("storm")
    plain = s.hale_run(3, exe, 1200)
    job = s.hale_start(3, exe, 1200, options=["--nodes", "2", "--ckpt-every", "400ms", *LOCAL])
    live = all_live(job)
    until_copied(s, job)
    m = manifests(s)[max(copied(s))]
    expect([p[:3] for p in parts(m)] == [(r, 0, f"rank-{r}.img") for r in range(3)], parts(m))
    expect(all(p[3][0] == live[p[0], 0][0] and len(set(p[3])) == 2 for p in parts(m)), parts(m), live)
    expect(not glob.glob(s.path("hale-ckpt/*/*/*.img")), "an image is in the shared folder")
    for slot in 0, 1:
        os.kill(live[1, slot][1], signal.SIGKILL)
    job.until_says("all ranks run again from checkpoint")
    live = all_live(job)
    os.kill(live[2, 0][1], signal.SIGKILL)  # its mate leads until it is back
    job.until(lambda: job.err().count("rank 2: replica 0 is back") > 0, "it is back")
    until_copied(s, job)
    r = job.wait()
    expect(r.status == 0 and r.out == plain.out and r.err.count("all ranks run again") == 1, r, plain)
    expect(any(c["level"] == 2 for c in s.report()["checkpoints"]), s.report()["checkpoints"])


@test
def the_last_replicas_go_with_a_node_and_its_disk(s):
    """What was on that disk is on the partner's; then the job is restarted from the disks that are left, elsewhere."""
    exe = s.compile("storm")
    plain = s.hale_run(3, exe, 1500)
    job = s.hale_start(3, exe, 1500, options=["--nodes", "2", "--spares", "1", "--agent-lost", "end", "--replenish", "off",
                                              "--ckpt-every", "400ms", *LOCAL])
    live = all_live(job)
    until_copied(s, job)
    victim = live[0, 0][0]
    os.kill(next(pid for (r, _), (node, pid) in live.items() if r == 1 and node != victim), signal.SIGKILL)
    job.until_says("rank 1: replica . was killed")
    lose(s, job, victim)
    job.until_says("all ranks run again from checkpoint")
    newest = until_copied(s, job)
    job.kill()
    job.wait()
    expect(newest in copied(s), "it is copied")
    folder = glob.glob(s.path("hale-ckpt/*"))[0]
    for options in ([], ["--nodes", "3", "--replicas", "1"]):
        r = s.hale("restart", folder, *options)
        expect(r.status == 0 and r.out.splitlines()[-1] == plain.out.splitlines()[-1], r, plain)


@test
def compared_jobs_have_all_replicas_on_disks(s):
    exe = s.compile("storm")
    plain = s.hale_run(2, exe, 900)
    job = s.hale_start(2, exe, 900, options=["--nodes", "2", "--sdc", "hash", "--ckpt-every", "500ms", *LOCAL])
    live = all_live(job)
    until_copied(s, job)
    m = manifests(s)[max(copied(s))]
    expect(sorted(p[2] for p in parts(m)) == [f"rank-{k}.img" for k in range(4)], parts(m))
    for slot in 0, 1:
        os.kill(live[0, slot][1], signal.SIGKILL)
    job.until_says("all ranks run again from checkpoint")
    r = job.wait()
    expect(r.status == 0 and r.out == plain.out, r, plain)


@test
def another_head_finds_the_copies(s):
    """The head and all replicas of a rank are killed: the next one goes back to what lies on the disks."""
    exe = s.compile("storm")
    plain = s.hale_run(3, exe, 1200)
    job = s.hale_start(3, exe, 1200, options=["--nodes", "2", "--ckpt-every", "400ms", "--head-grace", "60s", *LOCAL])
    live, name = all_live(job), job.id()
    until_copied(s, job)
    job.kill()
    job.wait()
    for slot in 0, 1:
        os.kill(live[2, slot][1], signal.SIGKILL)
    two = s.start(HALE, "attach", name)
    two.until_says("all ranks run again from checkpoint")
    r = two.wait()
    expect(r.status == 0 and (job.out() + r.out) == plain.out, r, plain)
    expect(s.report()["restarts"] == 1, s.report())


main()
