#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""An agent is replaced when more goes wrong than its death: it dies before it knows its job, or as often as
it is replaced, or while a new head knocks; nothing can be started or written; its supervisor dies, too."""

from adopt_parts import REPLACED, agent_of, kill_agent, nodes, preload, until_replaced
from attach_parts import GRACE, attach, end as end_attached, goes_on as goes_on_attached, kill_head, until
from lib import *
from lib import alive, name_of
from levels_parts import comm
from namespaces import Hosts
from hosts_parts import Collectives, Lammps, Story
from steps_parts import end, goes_on, steps, until_told

OPTIONS = ["--ckpt-every", "200ms", "--report", "report.json"]
TOO_MANY = "so were the 3 before it within 10 s"


# ---- before it knows its job ----

@test
def before_it_knows_its_job_it_is_replaced_too(s):
    env = preload(s)
    s.write("deaths/begin", "")
    replaced = 0
    for k in range(1, 90, 1 if LONG else 4):
        s.write(f"deaths/{k}", "")
        r = s.hale_run(2, "echo", "here", options=["--nodes", "2", "--head-grace", "10s", "--report", "r.json"],
                       env=env)
        expect(r.status == 0 and r.out == "here\nhere\n", f"at its call {k}", r)
        if os.path.exists(s.path(f"deaths/{k}")):
            os.unlink(s.path(f"deaths/{k}"))
            continue
        replaced += s.report("r.json")["agents_replaced"]
    expect(replaced > (20 if LONG else 5), replaced)


@test
def what_dies_of_its_start_is_said_and_nothing_is_run(s):
    env = preload(s)
    s.write("deaths/begin", "")
    for k in range(4, 12):
        s.write(f"deaths/{k}", "")
    r = s.hale_run(2, "echo", "here", env=env)
    expect(r.status == EXIT_USAGE and r.out == "" and "can't be used: its agent was ended by signal 9" in r.err and
           TOO_MANY in r.err, r)


# ---- again and again ----

@test
def what_dies_again_and_again_is_given_up_and_says_why(s):
    """On a host: nobody has to wait for its lease."""
    with Hosts(s, 3) as hosts:
        story = Story(s, hosts, Lammps, "--spares", "1", "--ckpt-every", "300ms", timeout="100s")
        story.told("FTB_CHECKPOINT_DONE")
        supervisor, ranks = story.supervisor(1), story.ranks_on(1)
        for k in range(4):
            agent = agent_of(supervisor)
            before = story.job.err().count(REPLACED)
            os.kill(agent, signal.SIGKILL)
            if k < 3:
                until_replaced(story.job, before + 1)
        story.job.until_says(TOO_MANY)
        story.job.until_says("all ranks run again")
        expect(not any(alive(p) for p in ranks), "ranks of a lost node run")
        report = story.end()
        expect(report["restarts"] == 1 and report["agents_replaced"] == 3 and
               report["failures"][0]["node"] == hosts.address(1), report)


# ---- while a new head comes ----

@test
def a_head_that_knocks_as_the_agent_dies_knocks_again(s):
    env = preload(s)
    program = [steps(s), 0, 20]
    draw = random.Random(SEED)
    for turn in range(30 if LONG else 4):
        one = s.hale_start(4, "env", "-u", "LD_PRELOAD", *program, env=env,
                           options=[*GRACE, *(["--nodes", "2"] if turn % 2 else [])])
        one.until_output("rank 0 step 5 ")
        one.name = one.id()
        heads = [one]
        for k in sorted(draw.sample(range(1, 40), 2)) + [0]:
            kill_head(s, heads[-1])
            if k:
                s.write(f"deaths/{k}", "")
                s.write("deaths/at-knock", "")
            head = attach(s, heads[-1])
            goes_on_attached(head, *heads)
            heads.append(head)
            for path in ("begin", "at-knock", str(k)):
                if os.path.exists(s.path("deaths", path)):
                    os.unlink(s.path("deaths", path))
        report = end_attached(s, *heads)
        expect(report["restarts"] == 0 and report["failures"] == [], report)
        shutil.rmtree(s.path("hale-ckpt"))
        os.unlink(s.path("report.json"))


# ---- nothing can be started, or written ----

@test
def who_cannot_be_started_at_once_is_started_later(s):
    job = s.hale_start(4, "env", "-u", "LD_PRELOAD", *until_told(s), env=preload(s),
                       options=["--nodes", "2", "--spares", "1", *OPTIONS])
    job.until(s.complete, "a checkpoint")
    supervisor, ranks = nodes(s, job)["node1"]["pid"], job.ranks(4)
    s.write(f"deaths/no-fork.{supervisor}", "")
    os.kill(agent_of(supervisor), signal.SIGKILL)
    time.sleep(1)
    os.unlink(s.path(f"deaths/no-fork.{supervisor}"))
    until_replaced(job, 1)
    goes_on(job)
    expect(job.ranks(4) == ranks, "the ranks are the same processes")
    s.write(f"deaths/no-fork.{supervisor}", "")
    os.kill(agent_of(supervisor), signal.SIGKILL)
    job.until_says("another one can't be started: Resource temporarily unavailable")
    os.unlink(s.path(f"deaths/no-fork.{supervisor}"))
    end(s, job, rollbacks=1)
    expect(s.report()["restarts"] == 1, s.report())


def newest(s):
    return max((int(os.path.basename(f)) for f in s.complete("disk/ckpt")), default=0)


def fill(path):
    while not os.path.exists(path):
        try:
            with open(path, "wb", buffering=0) as f:
                while f.write(b"x" * 65536):
                    pass
        except OSError:  # full, perhaps by a checkpoint before it begins
            time.sleep(0.01)


@test
def a_full_disk_is_no_reason_to_end(s):
    disk = s.tmpfs("disk", "128m")
    os.mkdir(f"{disk}/tmp")
    job = s.hale_start(4, *until_told(s), env={"TMPDIR": f"{disk}/tmp"},
                       options=["--nodes", "2", "--ckpt-dir", f"{disk}/ckpt", "--head-grace", "60s", *OPTIONS])
    job.until(lambda: s.complete("disk/ckpt"), "a checkpoint")
    there, ranks = nodes(s, job), job.ranks(4)
    fill(f"{disk}/fill")
    for node in ("node0", "node1"):
        kill_agent(job, there[node]["pid"])
        goes_on(job)
    os.unlink(f"{disk}/fill")
    last = newest(s)
    job.until(lambda: newest(s) > last, "checkpoints are taken again")
    expect(job.ranks(4) == ranks, "the ranks are the same processes")
    end(s, job)
    expect(s.report()["restarts"] == 0 and s.report()["agents_replaced"] == 2, s.report())


@test
def with_little_room_for_addresses_they_are_replaced_too(s):
    """As under ulimit -v, or where all room counts (vm.overcommit_memory 2)."""
    have("prlimit")
    one = s.start("prlimit", f"--as={3 << 29}", HALE, "run", "-n", 2, *GRACE, "--", steps(s), 0, 20)
    one.until_output("rank 0 step 5 ")
    one.name = one.id()
    kill_agent(one, next(iter(nodes(s, one).values()))["pid"])
    goes_on_attached(one)
    kill_head(s, one)
    two = attach(s, one)
    goes_on_attached(two, one)
    report = end_attached(s, one, two, ranks=2)
    expect(report["restarts"] == 0 and "no memory" not in one.err() + two.err(), one.result(), two.result())


# ---- without a head ----

@test
def without_a_head_agents_are_replaced_until_the_grace_is_over(s):
    one = s.hale_start(4, *until_told(s), options=["--nodes", "2", "--head-grace", "8s", "--node-timeout", "2s"])
    one.until_output("rank 0 step 5 ")
    one.name = one.id()
    there = {k: n["pid"] for k, n in nodes(s, one).items()}
    ranks = one.ranks(4)
    kill_head(s, one)
    for _ in range(2):
        time.sleep(1)
        for supervisor in there.values():
            agent = agent_of(supervisor)
            os.kill(agent, signal.SIGKILL)
            until(lambda: agent_of(supervisor) != agent, "it is replaced")
    expect(all(alive(p) for p in ranks.values()), "the ranks wait for a head")
    until(lambda: not any(alive(p) for p in [*ranks.values(), *there.values()]), "all end with the grace")
    with open(glob.glob(s.path("hale-ckpt/*/record.jsonl"))[0]) as f:
        said = [json.loads(x) for x in f]
    ended = [x for x in said if x["event"] == "node ended"]
    expect(len(ended) == 2 and all("no head has come for 8 s" in x["why"] for x in ended), said)


# ---- supervisors ----

class Scripted(Collectives):
    """Started by scripts, which have started something else, too."""

    def __init__(self, s, ranks):
        super().__init__(s, ranks)
        self.argv = ["sh", "-c", "sleep 4321 & \"$0\" \"$@\"; kill $!", *self.argv]


def of_host(story, k):
    """Of the program, or of the scripts around it."""
    return story.processes(k) + [p for p in children(story.hosts.servers[k].pid) if "sleep 4321" in name_of(p)]


@test
def supervisor_and_agent_of_a_host_killed_together_leave_nothing(s):
    with Hosts(s, 3) as hosts:
        story = Story(s, hosts, Scripted, "--spares", "1", "--ckpt-every", "300ms")
        story.told("FTB_CHECKPOINT_DONE")
        supervisor = story.supervisor(1)
        agent = agent_of(supervisor)
        expect(len(of_host(story, 1)) >= 6, "ranks, scripts, and what they have started", s.process_table())
        os.kill(supervisor, signal.SIGSTOP)
        os.kill(agent, signal.SIGKILL)
        os.kill(supervisor, signal.SIGKILL)
        story.job.until_says("is lost")
        expect(not of_host(story, 1), "something of a lost node runs", s.process_table())
        story.job.until_says("all ranks run again")
        report = story.end()
        expect(report["restarts"] == 1, report)


@test
def a_node_whose_supervisor_is_stopped_and_agent_killed_is_fenced(s):
    with Hosts(s, 3) as hosts:
        story = Story(s, hosts, Scripted, "--spares", "1", "--ckpt-every", "300ms")
        story.told("FTB_CHECKPOINT_DONE")
        supervisor = story.supervisor(1)
        agent = agent_of(supervisor)
        os.kill(supervisor, signal.SIGSTOP)
        os.kill(agent, signal.SIGKILL)
        story.job.until_says("is lost")
        expect(not of_host(story, 1), "something of a lost node runs", s.process_table())
        story.job.until_says("all ranks run again")
        os.kill(supervisor, signal.SIGKILL)
        expect(story.end()["restarts"] == 1, s.report())


# ---- agents of a service ----

@test
def agents_of_a_service_are_replaced(s):
    """As systemd starts them, for a socket."""
    have("systemd-socket-activate")
    os.makedirs(s.path("run/hale"), mode=0o700)
    env = {"XDG_RUNTIME_DIR": s.path("run")}
    service = s.start("systemd-socket-activate", "--accept", "--inetd", "-l", s.path("run/hale/agent"), HALE, "agent")
    service.until(lambda: os.path.exists(s.path("run/hale/agent")), "it listens")
    job = s.hale_start(4, *until_told(s), env=env, options=["--host", "a,b,c", "--spares", "1", "--launcher",
                                                           "exec %c --service", "--node-timeout", "100s", *OPTIONS])
    job.until(s.complete, "a checkpoint")
    found = json.loads(s.hale("ps", "--json").out)["jobs"]
    ranks = {r["pid"] for j in found if j["pid"] == job.pid for r in j["ranks"]}
    supervisor = next(p for p in children(service.pid) if comm(p) == "hale-supervisor" and ranks & set(children(p)))
    for k in range(4):
        os.kill(agent_of(supervisor), signal.SIGKILL)
        if k < 3:
            until_replaced(job, k + 1)
            goes_on(job)
    job.until_says(TOO_MANY)
    end(s, job, rollbacks=1)
    expect(s.report()["agents_replaced"] == 3 and s.report()["restarts"] == 1, s.report())
    service.kill()

main()
