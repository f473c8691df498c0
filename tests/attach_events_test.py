#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""A job's events when its head is killed and another one follows (`hale attach`): hosts go on alone, the
new head's broker is the root again, and what was published meanwhile reaches everybody once."""

from attach_parts import GRACE, attach, host_attach, jobs, kill_head, rank_pids, start, until
from events_parts import *
from lib import *
from namespaces import Hosts


def head_job(s, hosts, *options):
    job = Job(s, hosts, *GRACE[:2], "--node-timeout", "20s", *options)
    job.run.name = next(iter(jobs(s, hosts.hale)))
    for k in range(hosts.count):
        job.until(k, lambda st: st["parent"], f"host {k} is below the head")
    return job


def follow(s, hosts, job, says="has a head again"):
    """The next head; from then on it is the job's."""
    job.run = host_attach(s, hosts, job.run, says=says)
    return job.run


def end(s, *runs):
    s.write("stop", "")
    r = runs[-1].wait()
    expect(r.status == 0, r)
    os.remove(s.path("stop"))
    out = "".join(x.out() for x in runs)
    for rank in range(2):
        mine = [int(x) for x in re.findall(rf"^rank {rank} step (\d+) ", out, re.M)]
        expect(mine == list(range(len(mine))), f"rank {rank}: lines are lost, or came twice")


@test
def events_of_hosts_reach_each_other_under_the_new_head(s):
    with Hosts(s, 3) as hosts:
        job = head_job(s, hosts)
        one = job.run
        here, other = job.watch(1), job.watch(2)
        job.heard(1, "MORE", here, other)
        p = job.publish(1, "MORE", 800, pause=8000)
        one.until(lambda: len(numbers(other, "MORE")) > 20, "events have come")
        kill_head(s, one, hosts.hale)
        job.run = here
        job.until(1, lambda st: not st["parent"], "its broker is alone")
        before = len(numbers(here, "MORE"))
        here.until(lambda: len(numbers(here, "MORE")) > before + 20, "events go on on that host")
        job.run = one
        two = follow(s, hosts, job)
        for k in range(3):
            job.until(k, lambda st: st["parent"], f"host {k} is below the new head")
        head = job.watch(None)
        job.heard(1, "MORE", head)
        expect(p.wait().status == 0)
        for w in (here, other):
            job.run.until(lambda: len(numbers(w, "MORE")) >= 800, "all have come")
            got = numbers(w, "MORE")
            expect(sorted(got) == list(range(1, 801)), "lost or doubled", len(got),
                   sorted(set(range(1, 801)) - set(got))[:20])
        got = numbers(head, "MORE")
        expect(got and got == sorted(set(got)), got)
        # what the new head says, hosts hear
        r = hosts.hale("migrate", "--from", hosts.address(1))
        expect(r.status == 0, r, two.err())
        two.until(lambda: [e for e in events(other, "FTB.JL") if e["name"] == "FTB_MIGRATE_IPT"],
                  "the migration is heard of")
        stop(here, other, head)
        end(s, one, two)


@test
def heads_are_killed_again_and_again(s):
    rng = random.Random(SEED)
    with Hosts(s, 2) as hosts:
        job = Job(s, hosts, *GRACE[:2], "--node-timeout", "20s")
        job.run.name = next(iter(jobs(s, hosts.hale)))
        runs = [job.run]
        for k in range(2):
            job.until(k, lambda st: st["parent"], f"host {k} is below the head")
        here, other = job.watch(0), job.watch(1)
        job.heard(0, "OFTEN", here, other)
        p = job.publish(0, "OFTEN", 1000, pause=10000)
        for _ in range(3):
            time.sleep(rng.uniform(0, 1.2))
            kill_head(s, runs[-1], hosts.hale)
            runs.append(follow(s, hosts, job))
        expect(p.wait().status == 0)
        for w in (here, other):
            job.run.until(lambda: len(numbers(w, "OFTEN")) >= 1000, "all have come")
            got = numbers(w, "OFTEN")
            expect(sorted(got) == list(range(1, 1001)), "lost or doubled", len(got))
        stop(here, other)
        end(s, *runs)


@test
def rules_and_components_on_one_machine_find_the_new_head(s):
    """The job's broker has the same name under each head: a component that was there is there again, and
    a rule acts under the new head."""
    rules = s.write("save.rules", "when SAVE_NOW do checkpoint\n")
    count = s.compile("ftb_count", mpi=None, flags=["-L", BUILD, "-lftb", f"-Wl,-rpath,{BUILD}"])
    one = start(s, "--rules", rules, env={"HALE_FTB": "", "XDG_RUNTIME_DIR": s.path("run")})
    env = {"HALE_FTB": f"@hale/{os.geteuid()}/{one.name}/ftb"}
    w = s.start(HALE, "events", "--follow", "--json", env=env)
    until(lambda: "subscriptions" in s.run(HALE, "backplane", "status", "--json", env=env).out,
          "the broker answers")
    p = s.start(count, "FTB.HERE", "WARNING", 600, 10000, env=env)
    p.until_output("connected")
    one.until(lambda: len(numbers(w, "HERE")) > 10, "events have come")
    pids = rank_pids(s, one.name)
    kill_head(s, one)
    two = attach(s, one)
    expect(p.wait().status == 0)
    two.until(lambda: len(numbers(w, "HERE")) > 0 and numbers(w, "HERE")[-1] == 600,
              "the subscriber is below the new head, and the publisher")
    got = numbers(w, "HERE")
    expect(got == sorted(set(got)), "doubled, or out of order")
    expect(rank_pids(s, one.name) == pids, "ranks were started again")
    expect(not s.complete(), "no checkpoint was asked for yet")
    r = s.run(HALE, "events", "publish", "FTB.TEST", "SAVE_NOW", "WARNING", env=env)
    expect(r.status == 0, r)
    two.until(lambda: s.complete(), "the rule takes a checkpoint")
    stop(w)
    s.write("stop", "")
    expect(two.wait().status == 0, two.result())


main()
