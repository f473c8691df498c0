#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""A head is lost while ranks change their node, from GO on: the next one brings the move to its end,
nobody goes back to a checkpoint (there is none), and every line comes once. Heads die before or after
counted system calls (programs/dies_at.c) from the moment at which GO is written down."""

from adopt_parts import agent_of, preload
from attach_parts import *
from namespaces import Hosts

AFTER_GO = 150  # calls of a head from GO to the end of a move of three ranks, about
TAKING_OVER = 300  # … of one that takes over, until it has


def mortal(s):
    """The environment of heads that die of their calls; none of what they start does."""
    return {**preload(s), "HALE_DIES_HEAD": "1"}


def start_mortal(s, env, *options, ranks=6):
    job = s.hale_start(ranks, "env", "-u", "LD_PRELOAD", steps(s), 0, 5, options=[*GRACE, *options],
                       env=env)
    job.until_output("rank 0 step 5 ")
    job.name = job.id()
    return job


def attach_until_one_lives(s, heads, env, hosts=None):
    """Heads may die while they take over, too, or soon after."""
    hale = hosts and hosts.hale
    while not heads[-1].running():
        until(lambda: jobs(s, hale).get(heads[0].name, {}).get("state") == "headless", "hale ps: headless")
        job = host_attach(s, hosts, heads[0], says=None, env=env) if hosts else \
            attach(s, heads[0], says=None, env=env)
        heads.append(job)
        until(lambda: "has a head again" in job.err() or not job.running(), "it has taken over, or is dead")
        no_more_deaths(s)


def moved_under(s, heads, env, calls, *how, hosts=None):
    """A node that has ranks is left; heads die at these calls."""
    hale = hosts and hosts.hale
    there = sorted(n for n, v in agents(s, heads[-1], hale).items() if v["ranks"])
    node = there[len(heads) % 2]
    deaths_at(s, *calls)
    move = s.start(*(["ip", "netns", "exec", hosts.hub] if hosts else []), HALE, "migrate", heads[0].name,
                   "--from", node, *how)
    if move.wait().status != 0:
        heads[-1].wait()
        attach_until_one_lives(s, heads, env, hosts)
    no_more_deaths(s)
    attach_until_one_lives(s, heads, env, hosts)
    goes_on(heads[-1], *heads)
    until(lambda: not agents(s, heads[-1], hale)[node]["ranks"] or "stay there" in heads[-1].err(),
          f"node {node} is left: {calls}, {how}")


def all_end(s, heads, ranks=6):
    report = end(s, *heads, ranks=ranks)
    said = "".join(h.err() for h in heads)
    expect(report["restarts"] == 0 and report["failures"] == [] and "go back" not in said, report, said)
    return report


@test
def wherever_the_head_dies_after_go_the_move_ends(s):
    draw = random.Random(SEED)
    env = mortal(s)
    for how in ([], ["--via-files"]):
        heads = [start_mortal(s, env, "--nodes", "2", "--spares", "1")]
        for k in range(40 if LONG else 5):
            calls = {draw.randrange(1, AFTER_GO)}
            if k % 2:  # the next one, too
                calls.add(AFTER_GO + draw.randrange(TAKING_OVER))
            moved_under(s, heads, env, calls, *how)
        expect(len(heads) > 1, "no head has died")
        report = all_end(s, heads)
        expect(report["migrations"] and all(m["ranks"] == 3 for m in report["migrations"]), report)
        shutil.rmtree(s.path("hale-ckpt"))


@test
def over_hosts_too(s):
    """Agents are asked through launchers, streams go from host to host, or through the head."""
    draw = random.Random(SEED)
    env = mortal(s)
    for way in ({}, {"HALE_MIGRATE_WAY": "relay"}):
        with Hosts(s, 3) as hosts:
            job = hosts.hale_start(6, "env", "-u", "LD_PRELOAD", steps(s), 0, 20,
                                   options=[*GRACE, "--spares", "1", "--node-timeout", "20s"],
                                   env={**env, **way})
            job.until_output("rank 0 step 5 ")
            job.name = re.search(r"env\.\d+", " ".join(jobs(s, hosts.hale)))[0]
            heads = [job]
            for k in range(20 if LONG else 3):
                calls = {draw.randrange(1, AFTER_GO)}
                if k % 2:
                    calls.add(AFTER_GO + draw.randrange(TAKING_OVER))
                moved_under(s, heads, {**env, **way}, calls, hosts=hosts)
            expect(len(heads) > 1, "no head has died")
            all_end(s, heads)
        shutil.rmtree(s.path("hale-ckpt"))


# ---- who else is lost ----

def exe_of(pid):
    try:
        return os.readlink(f"/proc/{pid}/exe")
    except OSError:  # just ended
        return None


def dead_at_go(s, *options):
    """GO is written down, nobody has heard it, and there is no head: the job, the processes that leave node1,
    their copies, and the supervisors of the nodes."""
    job = start_mortal(s, mortal(s), "--nodes", "2", "--spares", "1", *options, ranks=4)
    r = s.hale("ckpt", job.name)
    expect(r.status == 0, r)
    there, pids = {k: n["pid"] for k, n in agents(s, job).items()}, rank_pids(s, job.name)
    deaths_at(s, 2)
    move = s.start(HALE, "migrate", job.name, "--from", "node1")
    r = move.wait()
    expect(r.status == 1, r)
    job.wait()
    until(lambda: jobs(s).get(job.name, {}).get("state") == "headless", "hale ps: headless")
    fresh = [p for p in children(there["node2"]) if exe_of(p) == s.path("steps")]
    expect(len(fresh) == 2, fresh)
    return job, [pids[2], pids[3]], fresh, there


@test
def what_ranks_have_left_may_be_killed_or_slow(s):
    for how in ("killed", "slow", "agents", "lease"):
        one, sources, fresh, there = dead_at_go(s, *(["--node-timeout", "4s"] if how == "lease" else []))
        if how == "lease":  # it runs out: all stand still until there is a head again
            until_still(s)
        held = [agent_of(there[k]) for k in ("node0", "node1", "node2")] if how == "agents" else sources
        for p in held if how != "lease" else []:
            os.kill(p, signal.SIGKILL if how == "killed" else signal.SIGSTOP)
        two = attach(s, one, says=None)
        until(lambda: glob.glob(s.path("hale-ckpt/*/head.2.json")), "there is a new head")
        time.sleep(0.3)
        for p in held if how in ("slow", "agents") else []:
            os.kill(p, signal.SIGCONT)
        two.until_says("has a head again")
        goes_on(two, one)
        expect(sorted(rank_pids(s, one.name)[r] for r in (2, 3)) == sorted(fresh), "the copies are the ranks")
        report = end(s, one, two)
        expect(report["restarts"] == 0 and report["failures"] == [] and len(report["migrations"]) == 1, report)
        moved = report["migrations"][0]
        expect(moved["from"] == "node1" and moved["to"] == "node2" and moved["ranks"] == 2 and moved["bytes"] > 0 and
               0 < moved["downtime_seconds"] < moved["seconds"], moved)
        shutil.rmtree(s.path("hale-ckpt"))


@test
def a_copy_or_a_node_that_is_lost_with_the_head_costs_a_rollback(s):
    for lost in ("copy", "node2", "node1"):
        one, _, fresh, there = dead_at_go(s)
        os.kill(fresh[0] if lost == "copy" else there[lost], signal.SIGKILL)
        two = attach(s, one, says="all ranks run again")
        goes_on(two, one)
        report = end(s, one, two)
        expect(report["restarts"] == 1, report)
        shutil.rmtree(s.path("hale-ckpt"))


main()
