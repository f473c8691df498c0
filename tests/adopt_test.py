#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""An agent that is killed is replaced by its supervisor, and nothing else happens: ranks go on, every line
comes once, checkpoints, rollbacks, moves and new heads work. Agents die at random moments, at counted
system calls (programs/dies_at.c), and in what they are just about."""

from attach_parts import (GRACE, attach, end as end_attached, goes_on as goes_on_attached, kill_head, record,
                          start as start_graced)
from lib import *
from lib import alive, stat_of
from adopt_parts import agent_of, agents, kill_agent, nodes, preload, until_replaced
from levels_parts import copied, lose
from namespaces import Hosts
from hosts_parts import Lammps, Story
from steps_parts import end, goes_on, last_step, right, steps, stop, until_told

OPTIONS = ["--ckpt-every", "200ms", "--report", "report.json"]


def unharmed(s, replaced):
    report = s.report()
    expect(report["restarts"] == 0 and report["failures"] == [] and
           report["agents_replaced"] == replaced, report)
    return report


# ---- the ranks notice nothing ----

@test
def a_killed_agent_costs_nothing(s):
    job = s.hale_start(4, *until_told(s), options=["--nodes", "2", *OPTIONS])
    job.until(s.complete, "a checkpoint")
    there, ranks = nodes(s, job), job.ranks(4)
    for node in ("node0", "node1", "node0", "node1"):
        kill_agent(job, there[node]["pid"])
        goes_on(job)
        r = s.hale("ckpt", job.id())
        expect(r.status == 0, r)
    expect(job.ranks(4) == ranks, "the ranks are the same processes")
    expect({k: n["state"] for k, n in nodes(s, job).items()} == {"node0": "READY", "node1": "READY"})
    end(s, job)
    report = unharmed(s, 4)
    expect(all(c["complete"] or "a rank has ended" in c["why"] or "about to end" in c["why"]
               for c in report["checkpoints"]), report)
    said = [x for x in record(s) if x["event"] == "agent replaced"]
    expect(len(said) == 4 and said[0]["node"] == "node0", said)


@test
def wherever_it_dies_every_line_comes_once(s):
    """Before or after system calls that are counted: while it takes output, packets, messages, while it
    writes to the head, in checkpoints, and in what it does first as a successor."""
    env = preload(s)
    draw = random.Random(SEED)
    for _ in range(40 if LONG else 8):
        deaths = s.path("deaths")
        shutil.rmtree(deaths, ignore_errors=True)
        os.mkdir(deaths)
        # a successor counts anew, and may die of its first calls
        at = sorted({draw.randrange(1, 800), draw.randrange(1, 200), draw.randrange(1, 50)})
        job = s.hale_start(2, "env", "-u", "LD_PRELOAD", *until_told(s), options=OPTIONS,
                           env=env)
        job.until_output("rank 0 step 2 ")
        for k in at:
            s.write(f"deaths/{k}", "")
        s.write("deaths/begin", "")
        job.until(lambda: os.listdir(deaths) == ["begin"], f"all have died: {at}")
        goes_on(job)
        end(s, job, ranks=2)
        report = s.report()
        # who dies before he has said that he is there is not told of
        expect(report["restarts"] == 0 and report["failures"] == [] and
               1 <= report["agents_replaced"] <= len(at), at, report)
        shutil.rmtree(s.path("hale-ckpt"))
        for old in glob.glob(s.path("log.*")) + glob.glob(s.path("state.*")):
            os.unlink(old)


@test
def output_that_pours_and_input_that_is_fed_come_once(s):
    text = "".join(f"line {i}\n" for i in range(400000))
    s.write("in.txt", text)
    script = "while read -r x; do echo \"$x\"; done"
    for program, wanted in ((["cat"], text), (["sh", "-c", script], text[: text.index("line 40000\n")])):
        s.write("some.txt", wanted)
        with open(s.path("some.txt"), "rb") as f:
            feed = subprocess.Popen(["cat"], stdin=f, stdout=subprocess.PIPE)
        job = s.start(HALE, "run", "-n", "1", "--report", "report.json", "--", *program, stdin=feed.stdout)
        feed.stdout.close()
        for _ in range(3):
            time.sleep(0.05)
            found = agents(job.pid)
            if found and job.out():
                try:
                    os.kill(found[0], signal.SIGKILL)
                except ProcessLookupError:
                    break  # all has been printed
        r = job.wait()
        feed.wait()
        expect(r.status == 0 and r.out == wanted, f"{len(r.out)} of {len(wanted)} bytes", r.err)
        expect(s.report()["restarts"] == 0, s.report())


@test
def lammps_prints_the_same(s):
    lammps = Lammps(s, 4)
    job = s.hale_start(4, *lammps.argv, options=["--nodes", "2", *OPTIONS])
    lammps.begun(job)
    there = nodes(s, job)
    draw = random.Random(SEED)
    for node in ("node0", "node1", "node0", "node1"):
        time.sleep(draw.random())
        kill_agent(job, there[node]["pid"])
        lammps.goes_on(job)
    lammps.end(job)
    unharmed(s, 4)


@test
def a_node_whose_agents_die_again_and_again_is_left(s):
    """Too slowly for its supervisor: its ranks move while they run. Without another place they stay, and it is said."""
    for spares, said in (("1", "go to another one"), ("0", "have nowhere to go")):
        job = s.hale_start(4, *until_told(s), options=["--nodes", "2", "--spares", spares, *OPTIONS],
                           env={"HALE_AGENT_DEATHS": "3"})
        job.until(s.complete, "a checkpoint")
        there = nodes(s, job)
        for _ in range(3):
            kill_agent(job, there["node1"]["pid"])
        job.until_says(f"3 agents of node node1 have died within 10 min: the ranks of node node1 {said}")
        if spares == "1":
            job.until(lambda: nodes(s, job)["node2"]["ranks"] == 2, "its ranks are elsewhere")
        end(s, job)
        report = unharmed(s, 3)
        expect(len(report["migrations"]) == int(spares), report)
        shutil.rmtree(s.path("hale-ckpt"))
        for old in glob.glob(s.path("log.*")) + glob.glob(s.path("state.*")):
            os.unlink(old)


# ---- what else may happen ----

@test
def ranks_that_die_meanwhile_are_rolled_back(s):
    """The rank first, the agent first, and the agent in the midst of the rollback."""
    for order in ("rank", "agent", "rollback"):
        job = s.hale_start(4, *until_told(s, 4), options=["--nodes", "2", *OPTIONS])
        job.until(s.complete, "a checkpoint")
        supervisor, rank = nodes(s, job)["node1"]["pid"], job.ranks(4)[2]
        if order == "rank":
            os.kill(rank, signal.SIGKILL)
        if order == "rollback":
            os.kill(rank, signal.SIGKILL)
            job.until_says("rolling back")
        os.kill(agent_of(supervisor), signal.SIGKILL)
        if order == "agent":
            os.kill(rank, signal.SIGKILL)
        end(s, job, mib=[4], rollbacks=1)
        report = s.report()
        expect(report["restarts"] == 1 and len(report["failures"]) == 1 and
               report["failures"][0]["rank"] == 2, report)
        shutil.rmtree(s.path("hale-ckpt"))
        for old in glob.glob(s.path("log.*")) + glob.glob(s.path("state.*")):
            os.unlink(old)


@test
def a_stopped_one_is_replaced_when_it_is_killed_and_fenced_when_not(s):
    job = s.hale_start(4, *until_told(s), options=["--nodes", "2", "--spares", "1", "--node-timeout", "4s",
                                                   *OPTIONS])
    job.until(s.complete, "a checkpoint")
    there, ranks = nodes(s, job), job.ranks(4)
    agent = agent_of(there["node1"]["pid"])
    os.kill(agent, signal.SIGSTOP)
    time.sleep(1)
    os.kill(agent, signal.SIGKILL)
    until_replaced(job, 1)
    goes_on(job)
    expect(job.ranks(4) == ranks, "the ranks are the same processes")
    os.kill(agent_of(there["node1"]["pid"]), signal.SIGSTOP)
    job.until_says("node node1 is lost")
    expect(not any(stat_of(ranks[r]) and stat_of(ranks[r])[1] not in "ZX" for r in (2, 3)),
           "the ranks of the stopped agent still run")
    end(s, job, rollbacks=1)


@test
def one_after_the_other_is_too_many(s):
    """Whatever kills them kills the next one, too: the node is given up."""
    job = s.hale_start(4, *until_told(s), options=["--nodes", "2", "--spares", "1", *OPTIONS])
    job.until(s.complete, "a checkpoint")
    supervisor, ranks = nodes(s, job)["node1"]["pid"], job.ranks(4)
    for k in range(4):
        os.kill(agent_of(supervisor), signal.SIGKILL)
        if k < 3:
            until_replaced(job, k + 1)
    job.until_says("node node1 is lost")
    expect(not any(alive(ranks[r]) for r in (2, 3)), "ranks of a lost node run")
    end(s, job, rollbacks=1)
    expect(s.report()["agents_replaced"] == 3, s.report())


@test
def with_agent_lost_end_its_node_is_lost(s):
    job = s.hale_start(4, *until_told(s), options=["--nodes", "2", "--spares", "1", "--agent-lost", "end",
                                                   *OPTIONS])
    job.until(s.complete, "a checkpoint")
    os.kill(agent_of(nodes(s, job)["node1"]["pid"]), signal.SIGKILL)
    job.until_says("node node1 is lost")
    end(s, job, rollbacks=1)
    expect(s.report()["agents_replaced"] == 0, s.report())
    r = s.hale_run(1, "true", options=["--agent-lost", "perhaps"])
    expect(r.status == EXIT_USAGE and "--agent-lost takes adopt" in r.err, r)


@test
def supervisor_and_agent_killed_together_are_a_lost_node(s):
    job = s.hale_start(4, *until_told(s), options=["--nodes", "2", "--spares", "1", *OPTIONS])
    job.until(s.complete, "a checkpoint")
    supervisor = nodes(s, job)["node1"]["pid"]
    agent = agent_of(supervisor)
    os.kill(supervisor, signal.SIGSTOP)
    os.kill(agent, signal.SIGKILL)
    os.kill(supervisor, signal.SIGKILL)
    job.until_says("node node1 is lost")
    end(s, job, rollbacks=1)


def supervisor_here(s, job):
    (node,) = nodes(s, job).values()
    return node["pid"]


@test
def a_dead_supervisor_of_the_only_node_is_no_end(s):
    """The job rolls back by itself with another supervisor: alone, together with its agent, and while it rolls
    back."""
    job = s.hale_start(3, *until_told(s), options=OPTIONS)
    job.until(s.complete, "a checkpoint")
    os.kill(supervisor_here(s, job), signal.SIGKILL)
    job.until(lambda: job.err().count("all ranks run again") == 1, "ranks run again")
    goes_on(job)
    r = s.hale("ckpt", job.id())
    expect(r.status == 0, r)
    supervisor = supervisor_here(s, job)
    agent = agent_of(supervisor)
    os.kill(supervisor, signal.SIGSTOP)
    os.kill(agent, signal.SIGKILL)
    os.kill(supervisor, signal.SIGKILL)
    job.until(lambda: job.err().count("all ranks run again") == 2, "ranks run again")
    goes_on(job)
    os.kill(job.ranks(3)[1], signal.SIGKILL)
    os.kill(supervisor_here(s, job), signal.SIGKILL)
    goes_on(job)
    end(s, job, ranks=3)
    report = s.report()
    expect(report["restarts"] in (3, 4), report)


@test
def a_dead_supervisor_is_no_end_under_a_new_head(s):
    one = start_graced(s, "--ckpt-every", "300ms")
    one.until(s.complete, "a checkpoint")
    kill_head(s, one)
    two = attach(s, one)
    (supervisor,) = nodes_of(s, two).values()
    os.kill(supervisor, signal.SIGKILL)
    two.until_says("all ranks run again")
    goes_on_attached(two, one)
    report = end_attached(s, one, two)
    expect(report["restarts"] == 1, report)


@test
def without_a_checkpoint_a_dead_supervisor_ends_the_job(s):
    job = s.hale_start(2, *until_told(s))
    job.until_output("rank 0 step 3 ")
    os.kill(supervisor_here(s, job), signal.SIGKILL)
    r = job.wait()
    expect(r.status == EXIT_UNRECOVERED and "there is no checkpoint to roll back to" in r.err, r)


# ---- moves ----

@test
def moves_are_given_up_or_go_on(s):
    job = s.hale_start(4, *until_told(s, 64), options=["--nodes", "2", "--spares", "1", "--report",
                                                       "report.json"])
    job.until_output("rank 0 step 3 ")
    draw = random.Random(SEED)
    replaced = 0
    for k in range(4):
        there = nodes(s, job)
        source = "node1" if there["node1"]["ranks"] else "node2"
        target = "node2" if source == "node1" else "node1"
        move = s.start(HALE, "migrate", job.id(), "--from", source, "--to", target)
        time.sleep(draw.random() * 0.6)
        kill_agent(job, there[(source, target)[k % 2]]["pid"])
        replaced += 1
        r = move.wait()
        expect(r.status in (0, 1), r)
        if r.status == 1:
            expect("stay" in r.err or "was ended by" in r.err, r)
        goes_on(job)
        time.sleep(3)  # no more than three in ten seconds
    there = nodes(s, job)
    source = "node1" if there["node1"]["ranks"] else "node2"
    r = s.hale("migrate", job.id(), "--from", source)
    expect(r.status == 0, r)
    end(s, job, mib=[64])
    unharmed(s, replaced)


# ---- heads ----

@test
def head_and_agent_killed_together_leave_a_job_that_goes_on(s):
    one = start_graced(s, "--nodes", "2", "--ckpt-every", "300ms")
    one.until(s.complete, "a checkpoint")
    there, heads = nodes_of(s, one), [one]
    for order in range(3):
        agent = agent_of(there["node1"])
        if order == 0:
            os.kill(agent, signal.SIGKILL)
            kill_head(s, one)
        else:
            kill_head(s, one)
            os.kill(agent, signal.SIGKILL)
        if order == 2:
            time.sleep(0.5)
            os.kill(agent_of(there["node1"]), signal.SIGKILL)
        agent_of(there["node1"])
        time.sleep(0.3)
        two = attach(s, heads[-1])
        goes_on_attached(two, *heads)
        heads.append(two)
        one = two
        time.sleep(6)  # no more than three in ten seconds
    report = end_attached(s, *heads)
    expect(report["restarts"] == 0, report)


def nodes_of(s, job):
    r = s.hale("nodes", job.name, "--json")
    expect(r.status == 0, r)
    return {n["node"]: n["pid"] for n in json.loads(r.out)["nodes"]}


# ---- images on the nodes' own disks ----

@test
def copies_go_on_and_are_of_use(s):
    job = s.hale_start(4, *until_told(s, 16), options=["--nodes", "2", "--spares", "1", "--ckpt-local",
                                                       s.path("local/%n"), *OPTIONS])
    job.until(lambda: copied(s), "a checkpoint is copied")
    there = nodes(s, job)
    for node in ("node0", "node1", "node0"):
        kill_agent(job, there[node]["pid"])
        newest = max(copied(s))
        job.until(lambda: max(copied(s), default=0) > newest, "another one is copied")
    lose(s, job, "node1")
    job.until_says("all ranks run again")
    end(s, job, mib=[16], rollbacks=1)
    report = s.report()
    expect(report["restarts"] == 1 and report["failures"][0]["node"] == "node1", report)


# ---- hosts ----

@test
def on_hosts_too(s):
    """LAMMPS over network namespaces: messages between ranks, copies, events, the launcher."""
    with Hosts(s, 3) as hosts:
        story = Story(s, hosts, Lammps, "--spares", "1", "--ckpt-every", "300ms")
        story.told("FTB_CHECKPOINT_DONE")
        ranks = story.ranks_on(0, 1)
        for k in (0, 1, 2, 0):
            kill_agent(story.job, story.supervisor(k))
            story.program.goes_on(story.job)
        expect(story.ranks_on(0, 1) == ranks, "the ranks are the same processes")
        # a component there is heard by the head's machine
        r = s.run("ip", "netns", "exec", f"{hosts.prefix}1", HALE, "events", "publish", "--job", story.id,
                  "FTB.TEST", "FROM_THERE", "WARNING", env={"XDG_RUNTIME_DIR": s.path("run")})
        if r.status == 0:
            story.told("FROM_THERE")
        report = story.end()
        expect(report["restarts"] == 0 and report["failures"] == [] and report["agents_replaced"] == 4,
               report)


main()
