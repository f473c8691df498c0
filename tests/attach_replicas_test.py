#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""`hale attach` of jobs with replicas and of audited ones: heads are killed at any moment, alone or together with
processes and nodes. No rank goes back, every line comes once over all heads, and the job is twofold again at the end."""

from adopt_parts import agent_of, preload
from attach_parts import *
from namespaces import Hosts

RANKS = 3
AFTER_GO = 50  # calls of a head from GO to the end of a clone, about
TAKING_OVER = 300  # … of one that takes over, until it has


def begin(s, *options, ms=10, replicas=2, env=None, more=()):
    job = s.hale_start(RANKS, *more, steps(s), -1, ms, options=["--replicas", str(replicas), *GRACE, *options], env=env)
    job.until_output("rank 0 step 5 ")
    job.name = job.id()
    return job


def processes(s, name):
    """{(rank, slot): entry} of those that run."""
    job = jobs(s).get(name)
    return {(r["rank"], r["slot"]): r for r in job["ranks"] if r["state"] == "running" and r["pid"] > 0} if job else {}


def all_live(s, name, count=2 * RANKS):
    return until(lambda: len(processes(s, name)) == count and processes(s, name), f"{count} processes run")


def kill_process(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def over(s, *heads):
    report = end(s, *heads, ranks=RANKS)
    said = "".join(h.err() for h in heads)
    expect(report["restarts"] == 0 and "go back" not in said and "rolling" not in said, report, said)
    return report


@test
def a_job_with_replicas_goes_on_under_a_new_head(s):
    """Processes die before the head, while there is none, and under the next one; all come back."""
    one = begin(s, "--nodes", "2")
    first = all_live(s, one.name)
    kill_process(first[1, 0]["pid"])
    one.until_says("rank 1: replica 0 is back")
    kill_head(s, one)
    kill_process(first[2, 1]["pid"])
    two = attach(s, one)
    two.until_says("rank 2: replica 1 was killed")
    two.until_says("rank 2: replica 1 is back")
    live = all_live(s, one.name)
    expect(live[0, 0]["pid"] == first[0, 0]["pid"] and live[1, 1]["pid"] == first[1, 1]["pid"], first, live)
    expect(len({(r["rank"], r["node"]) for r in live.values()}) == 2 * RANKS, "replicas share a node", live)
    kill_process(live[0, 0]["pid"])
    two.until_says("rank 0: replica 0 is back")
    goes_on(two, one)
    report = over(s, one, two)
    expect(report["replicas"]["lost"] == 3 and len(report["clones"]) == 3, report)
    expect([(f["rank"], f["slot"]) for f in report["failures"]] == [(1, 0), (2, 1), (0, 0)], report)


@test
def whose_output_it_is_the_next_head_knows(s):
    """One of the two has printed more than the user has read, and the other one dies with the head."""
    for slow, dies in (0, 1), (1, 0):
        one = begin(s, "--nodes", "2", "--replenish", "off")
        live = all_live(s, one.name)
        for rank in range(RANKS):  # one slot stands still, the other one is ahead of it
            os.kill(live[rank, slow]["pid"], signal.SIGSTOP)
        time.sleep(0.3)
        kill_head(s, one)
        for rank in range(RANKS):
            os.kill(live[rank, slow]["pid"], signal.SIGCONT)
        kill_process(live[1, dies]["pid"])
        two = attach(s, one)
        two.until_says(f"rank 1: replica {dies} was killed")
        goes_on(two, one)
        over(s, one, two)
        shutil.rmtree(s.path("hale-ckpt"))
        for path in glob.glob(s.path("log.*")):
            os.unlink(path)


@test
def a_node_is_lost_together_with_the_head(s):
    one = begin(s, "--nodes", "2", "--spares", "1", "--agent-lost", "end", "--node-timeout", "4s")
    all_live(s, one.name)
    pid = agents(s, one)["node1"]["pid"]
    kill_head(s, one)
    os.kill(pid, signal.SIGKILL)
    two = attach(s, one)
    two.until_says("their ranks go on in other replicas")
    two.until(lambda: two.err().count(" is back, on node node2") == RANKS, "all are back on the spare")
    all_live(s, one.name)
    goes_on(two, one)
    report = over(s, one, two)
    expect(report["replicas"]["lost"] == RANKS, report)


@test
def over_hosts_a_host_is_lost_together_with_the_head(s):
    """Agents are asked through launchers; a third host is the spare."""
    with Hosts(s, 3) as hosts:
        one = hosts.hale_start(RANKS, steps(s), -1, 20, options=["--replicas", "2", "--nodes", "2", "--spares", "1", "--node-timeout",
                                                                 "6s", *GRACE])
        one.until_output("rank 0 step 5 ")
        one.name = re.search(r"steps\.\d+", " ".join(jobs(s, hosts.hale)))[0]
        kill_head(s, one, hosts.hale)
        hosts.lose(1)
        two = host_attach(s, hosts, one)
        two.until_says("their ranks go on in other replicas")
        two.until(lambda: two.err().count(" is back, on node ") == RANKS, "all are back on the spare")
        goes_on(two, one)
        over(s, one, two)


@test
def all_replicas_of_a_rank_die_without_a_head(s):
    """With a checkpoint the job goes back to it; without one it ends with the sentence."""
    one = begin(s, "--nodes", "2")
    r = s.hale("ckpt", one.name)
    expect(r.status == 0, r)
    live = all_live(s, one.name)
    kill_head(s, one)
    for slot in 0, 1:
        kill_process(live[1, slot]["pid"])
    two = attach(s, one, says="all 2 replicas of rank 1 are dead")
    two.until_says("all ranks run again from checkpoint 1")
    all_live(s, one.name)
    goes_on(two, one)
    kill_head(s, two)  # the next one follows a head that has gone back
    three = attach(s, two)
    goes_on(three, one, two)
    report = end(s, one, two, three, ranks=RANKS)
    expect(report["restarts"] == 1, report)


@test
def heads_are_killed_at_any_moment(s):
    """Alone, with a process, or soon after one was killed, so that a copy of another one is under way."""
    draw = random.Random(SEED)
    heads = [begin(s, "--nodes", "2", ms=2)]
    for turn in range(30 if LONG else 6):
        time.sleep(draw.uniform(0, 0.3))
        if turn % 3 < 2:
            kill_process(draw.choice(list(all_live(s, heads[0].name).values()))["pid"])
            time.sleep(draw.uniform(0, 0.25) if turn % 3 else 0)
        kill_head(s, heads[-1])
        heads.append(attach(s, heads[-1], says=None))
        heads[-1].until_says("has a head again")
        all_live(s, heads[0].name)
    goes_on(heads[-1], *heads)
    report = over(s, *heads)
    expect(report["replicas"]["lost"] >= len(report["clones"]) > 0, report["replicas"], report["clones"])
    expect(all(0 < c["vulnerable_seconds"] < 60 for c in report["clones"]), report["clones"])


# ---- a clone from GO on ----

@test
def wherever_the_head_dies_after_go_of_a_clone_the_copy_lives(s):
    """Before or after any of its system calls (programs/dies_at.c), and the next head, too."""
    draw = random.Random(SEED)
    env = {**preload(s), "HALE_DIES_HEAD": "1"}
    for nodes in "2", "1":  # copies on another node, or beside their sources
        heads = [begin(s, "--nodes", nodes, env=env, more=("env", "-u", "LD_PRELOAD"))]
        for turn in range(30 if LONG else 4):
            victim = draw.choice(list(all_live(s, heads[0].name)))
            calls = {draw.randrange(1, AFTER_GO)}
            if turn % 2:
                calls.add(AFTER_GO + draw.randrange(TAKING_OVER))
            deaths_at(s, *calls)
            kill_process(processes(s, heads[0].name)[victim]["pid"])
            until(lambda: not heads[-1].running() or "is back, on node" in heads[-1].err(), "the head dies, or has a copy")
            while not heads[-1].running():
                until(lambda: jobs(s).get(heads[0].name, {}).get("state") == "headless", "hale ps: headless")
                heads.append(attach(s, heads[0], says=None, env=env))
                until(lambda: "has a head again" in heads[-1].err() or not heads[-1].running(), "it has taken over, or is dead")
                no_more_deaths(s)
            no_more_deaths(s)
            all_live(s, heads[0].name)
            goes_on(heads[-1], *heads)
        expect(len(heads) > 1, "no head has died")
        over(s, *heads)
        shutil.rmtree(s.path("hale-ckpt"))
        for path in glob.glob(s.path("log.*")):
            os.unlink(path)


# ---- silent errors, audits ----

@test
def a_silent_error_without_a_head_is_corrected_and_the_replica_ended_by_the_next_one(s):
    one = begin(s, "--nodes", "3", "--sdc", "hash", replicas=3, ms=5)
    live = all_live(s, one.name, 3 * RANKS)
    r = s.hale("inject", "flip", one.name, "--rank", "1", "--slot", "2", "--where", "message", "--after", "1s")
    expect(r.status == 0, r)
    kill_head(s, one)  # a flip that has not happened yet ends with it
    two = attach(s, one)
    r = s.hale("inject", "flip", one.name, "--rank", "1", "--slot", "2", "--where", "message")
    expect(r.status == 0, r)
    kill_head(s, two)
    three = attach(s, two)
    three.until_says("rank 1: replica 2 is back") if "replica 2 is back" not in two.err() else None
    all_live(s, one.name, 3 * RANKS)
    goes_on(three, one, two)
    report = over(s, one, two, three)
    expect(report["sdc_count"] >= 1 and {(e["rank"], e["slot"], e["action"]) for e in report["sdc"]} == {(1, 2, "corrected")},
           report["sdc"])
    expect(live and report["replicas"]["lost"] == 1, report)


@test
def audits_go_on_under_the_next_head(s):
    """The visit that was under way, too; and a node that computes wrongly is named by a head that comes later."""
    exe = s.compile("slices")
    one = s.hale_start(3, exe, 10000000, options=["--nodes", "3", "--spares", "1", "--audit", "20s", *GRACE])
    one.until_output("step 1024")
    one.name = one.id()

    def visited(name):
        found = {r["role"]: r for r in (jobs(s).get(name) or {"ranks": []})["ranks"] if r["state"] == "running" and r["rank"] == 0}
        return found if {"main", "twin", "witness"} <= set(found) else None

    before = until(lambda: visited(one.name), "rank 0 is visited")
    kill_head(s, one)
    two = attach(s, one)
    after = until(lambda: visited(one.name), "rank 0 is visited still")
    expect({k: r["pid"] for k, r in before.items()} == {k: r["pid"] for k, r in after.items()}, before, after)
    node = after["twin"]["node"]
    r = s.hale("inject", "flip", one.name, "--rank", "0", "--slot", str(after["twin"]["slot"]), "--where", "result",
               "--count", "1000", "--every", "5")
    expect(r.status == 0, r)
    kill_head(s, two)
    three = attach(s, two, says=None)
    until(lambda: f"node {node} computes wrongly" in two.err() + three.err(), f"node {node} is named")
    kill_head(s, three)
    four = attach(s, three)
    until(lambda: all(r["node"] != node for r in jobs(s)[one.name]["ranks"] if r["state"] == "running"), "the node is left")
    four.kill(signal.SIGTERM)
    four.wait()
    report = s.report()
    expect(report["audits"][0]["result"] == "differed" and report["audits"][0]["wrong"] == node, report["audits"])


@test
def what_no_other_head_can_follow_is_refused(s):
    r = s.hale_run(2, "/bin/true", options=["--shadows", "1", "--head-grace", "10s"])
    expect(r.status == EXIT_USAGE and "--shadows and --head-grace" in r.err, r)


main()
