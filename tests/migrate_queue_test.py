#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Several nodes that are to be left at once, by `hale migrate` or by rules: one after the other, while
the program runs. The first is held up by a rank that stands still, so that the others wait."""

from lib import *
from monitor_parts import Bmc
import attach_parts as attaching

QUICK = """
when FTB_IPMI_FANFAIL until FTB_IPMI_NORMAL do mark unusable by fan, migrate else checkpoint
when FTB_IPMI_NORMAL until FTB_IPMI_FANFAIL do mark usable by fan
"""


def begin(s, *options, ranks=6, nodes=("--nodes", "3"), rules=True):
    exe = attaching.steps(s)
    s.write("quick.rules", QUICK)
    job = s.hale_start(ranks, exe, "0", "20", options=[
        *nodes, "--report", "report.json", *(["--rules", s.path("quick.rules")] if rules else []), *options])
    job.until_output("rank 0 step 3 ")
    job.name = job.id()
    return job


def nodes(s, job):
    r = s.hale("nodes", job.name, "--json")
    expect(r.status == 0, r)
    return {n["node"]: (n["state"], n["ranks"]) for n in json.loads(r.out)["nodes"]}


def agent_pid(s, job, node):
    r = s.hale("nodes", job.name, "--json")
    return next(n["pid"] for n in json.loads(r.out)["nodes"] if n["node"] == node)


def publish(s, job, event, node):
    r = s.hale("events", "publish", "--job", job.name, "FTB.FTB_IPMI", event,
               "ERROR" if event == "FTB_IPMI_FANFAIL" else "INFO", node)
    expect(r.status == 0, r)


class Held:
    """The ranks of node1 are on their way, and get on when go_on() lets them."""

    def __init__(self, s, job, ask):
        self.s, self.job = s, job
        self.pid = next(r["pid"] for r in job.info()["ranks"] if r["node"] == "node1")
        os.kill(self.pid, signal.SIGSTOP)
        self.first = ask()
        job.until(lambda: nodes(s, job)["node1"][0] == "ARM", "its move has begun")

    def go_on(self):
        try:
            os.kill(self.pid, signal.SIGCONT)
        except ProcessLookupError:
            pass  # its job has ended it


def migrate(s, job, *args):
    return s.start(HALE, "migrate", job.name, *args)


def waiting(s, job):
    """The nodes that are to be left, when it is their turn."""
    r = s.hale("nodes", job.name, "--json")
    expect(r.status == 0, r)
    return [n["node"] for n in json.loads(r.out)["nodes"] if n["waits"]]


def until_waits(s, job, *wanted):
    job.until(lambda: waiting(s, job) == list(wanted), f"{wanted} wait for their turn")


def end(s, job, *, moves, restarts=0, ranks=6):
    s.write("stop", "")
    r = job.wait()
    os.unlink(s.path("stop"))
    expect(r.status == 0, r)
    lines = [x for x in r.out.splitlines() if " step " in x]
    expect(len(lines) == len(set(lines)), "output came twice", r)
    for rank in range(ranks):
        mine = [int(x) for x in re.findall(rf"^rank {rank} step (\d+) ", r.out, re.M)]
        expect(mine == list(range(len(mine))), f"rank {rank} has lost a line", r)
    expect([(m["from"], m["to"]) for m in s.report()["migrations"]] == moves, s.report())
    expect(s.report()["restarts"] == restarts, s.report())
    return r


@test
def two_that_are_asked_at_once_go_one_after_the_other(s):
    job = begin(s, "--spares", "2")
    held = Held(s, job, lambda: migrate(s, job, "--from", "node1"))
    second = migrate(s, job, "--from", "node2")
    until_waits(s, job, "node2")
    same = [migrate(s, job, "--from", "node2"), migrate(s, job, "--from", "node1")]
    time.sleep(0.3)
    other = migrate(s, job, "--from", "node2", "--to", "node4").wait()
    expect(other.status == 1 and "are to go to another node already" in other.err, other)
    held.go_on()
    got = [p.wait() for p in (held.first, same[1], second, same[0])]
    expect([r.status for r in got] == [0] * 4, *got)
    expect(got[0].out == got[1].out and "moved from node1 to node3" in got[0].out, *got)
    expect(got[2].out == got[3].out and "moved from node2 to node4" in got[2].out, *got)
    end(s, job, moves=[("node1", "node3"), ("node2", "node4")])


@test
def who_waits_looks_where_there_is_place_when_it_is_its_turn(s):
    """The one spare is taken by then, and the node that was named is gone."""
    job = begin(s, "--spares", "2", ranks=6)
    held = Held(s, job, lambda: migrate(s, job, "--from", "node1"))
    named = migrate(s, job, "--from", "node2", "--to", "node4")
    until_waits(s, job, "node2")
    anywhere = migrate(s, job, "--from", "node0")
    until_waits(s, job, "node0", "node2")
    os.kill(agent_pid(s, job, "node4"), signal.SIGKILL)
    job.until(lambda: nodes(s, job)["node4"][0] == "LOST", "the spare is lost")
    held.go_on()
    r = held.first.wait()
    expect(r.status == 0 and "from node1 to node3" in r.out, r)
    r = named.wait()
    expect(r.status == 1 and "node node4 is lost" in r.err, r)
    r = anywhere.wait() # node1 has become a spare
    expect(r.status == 0 and "from node0 to node1" in r.out, r)
    end(s, job, moves=[("node1", "node3"), ("node0", "node1")])


@test
def who_is_ended_while_it_waits_is_not_waited_for(s):
    job = begin(s, "--spares", "2")
    held = Held(s, job, lambda: migrate(s, job, "--from", "node1"))
    second = migrate(s, job, "--from", "node2")
    until_waits(s, job, "node2")
    os.kill(second.pid, signal.SIGINT)
    second.wait()
    until_waits(s, job)
    held.go_on()
    expect(held.first.wait().status == 0, held.first.result())
    last = int(re.findall(r"^rank 0 step (\d+) ", job.out(), re.M)[-1])
    job.until_output(f"rank 0 step {last + 10} ")
    expect(nodes(s, job)["node2"] == ("READY", 2), nodes(s, job))
    end(s, job, moves=[("node1", "node3")])


@test
def a_rollback_meanwhile_keeps_nobody_from_its_turn(s):
    job = begin(s, "--spares", "2")
    job.checkpoint()
    held = Held(s, job, lambda: migrate(s, job, "--from", "node1"))
    second = migrate(s, job, "--from", "node2")
    until_waits(s, job, "node2")
    os.kill(next(r["pid"] for r in job.info()["ranks"] if r["node"] == "node0"), signal.SIGKILL)
    r = held.first.wait()
    expect(r.status == 1 and "has come to nothing" in r.err, r)
    r = second.wait()
    expect(r.status == 0 and "from node2 to node3" in r.out, r)
    end(s, job, moves=[("node2", "node3")], restarts=1)


@test
def a_job_that_ends_answers_all_who_wait(s):
    job = begin(s, "--spares", "2")
    held = Held(s, job, lambda: migrate(s, job, "--from", "node1"))
    second = migrate(s, job, "--from", "node2")
    until_waits(s, job, "node2")
    os.kill(job.pid, signal.SIGTERM)
    held.go_on()
    got = [held.first.wait(), second.wait()]
    expect([r.status for r in got] == [1, 1] and "the job ends" in got[1].err, got)
    job.wait()


@test
def two_fans_fail_and_both_nodes_are_left_while_the_program_runs(s):
    bmc = [Bmc(s, "node1"), Bmc(s, "node2")]
    options = " ".join(map(str, [*bmc[0].options(), *bmc[1].options()[:2], "--every", "100ms"]))
    job = begin(s, "--spares", "2", "--monitor", options)
    for b in bmc:
        b.set(fan=0)
    job.until(lambda: [nodes(s, job)[n] for n in ("node1", "node2")] == [("SPARE", 0)] * 2, "both are left")
    for b in bmc:
        b.end()
    r = end(s, job, moves=[(m["from"], m["to"]) for m in s_moves(s, job)])
    expect("by a checkpoint" not in r.err and sorted(m["from"] for m in s.report()["migrations"]) ==
           ["node1", "node2"], r)
    expect(sorted(m["to"] for m in s.report()["migrations"]) == ["node3", "node4"], s.report())


def s_moves(s, job):
    """What the report will say: which of the two was first, the sensors decide."""
    first = re.search(r"FTB_IPMI_FANFAIL: the ranks of node (node[12]) go", job.err())[1]
    return [{"from": first, "to": "node3"},
            {"from": {"node1": "node2", "node2": "node1"}[first], "to": "node4"}]


def by_rules(s, job, *more):
    held = Held(s, job, lambda: publish(s, job, "FTB_IPMI_FANFAIL", "node1"))
    for node in more:
        publish(s, job, "FTB_IPMI_FANFAIL", node)
        job.until_says(f"the ranks of node {node} go to another one, after those that are on their way")
    return held


@test
def whose_fan_runs_again_before_its_turn_stays(s):
    job = begin(s, "--spares", "2")
    held = by_rules(s, job, "node2")
    publish(s, job, "FTB_IPMI_NORMAL", "node2")
    job.until_says("the ranks of node node2 stay there: what they were to leave it for is over")
    held.go_on()
    job.until(lambda: nodes(s, job)["node1"] == ("SPARE", 0), "node1 is left")
    # and it may fail again
    publish(s, job, "FTB_IPMI_FANFAIL", "node2")
    job.until(lambda: nodes(s, job)["node2"] == ("SPARE", 0), "node2 is left")
    end(s, job, moves=[("node1", "node3"), ("node2", "node4")])


@test
def whose_fan_runs_again_goes_if_somebody_else_has_asked(s):
    job = begin(s, "--spares", "2")
    held = by_rules(s, job, "node2")
    asked = migrate(s, job, "--from", "node2")
    time.sleep(0.3)
    publish(s, job, "FTB_IPMI_NORMAL", "node2")
    job.until(lambda: {n["node"]: n["usable"] for n in job.info()["nodes"]}["node2"], "node2 is well")
    expect(waiting(s, job) == ["node2"], waiting(s, job))
    held.go_on()
    r = asked.wait()
    expect(r.status == 0 and "from node2 to node4" in r.out, r)
    end(s, job, moves=[("node1", "node3"), ("node2", "node4")])


@test
def a_spare_that_is_lost_before_the_turn_is_said_and_the_ranks_stay(s):
    job = begin(s, "--spares", "2")
    held = by_rules(s, job, "node2")
    os.kill(agent_pid(s, job, "node4"), signal.SIGKILL)
    job.until(lambda: nodes(s, job)["node4"][0] == "LOST", "the spare is lost")
    held.go_on()
    job.until_says("the ranks of node node2 stay there: no usable spare is left, nor free slots")
    expect(nodes(s, job)["node2"] == ("READY", 2), nodes(s, job))
    end(s, job, moves=[("node1", "node3")])


@test
def without_a_spare_ranks_go_where_free_slots_are(s):
    """node0 is also to be left, and never gets any."""
    job = begin(s, nodes=("--host", "node0:3,node1:2,node2:4,node3:4", "--launcher", "exec %c", "--ppn", "2"),
                ranks=8, rules=True)
    held = by_rules(s, job, "node0")
    held.go_on()
    job.until(lambda: nodes(s, job)["node0"] == ("SPARE", 0), "node0 is left")
    expect(nodes(s, job) == {"node0": ("SPARE", 0), "node1": ("SPARE", 0), "node2": ("READY", 4),
                             "node3": ("READY", 4)}, nodes(s, job))
    # there is no room for more
    publish(s, job, "FTB_IPMI_FANFAIL", "node2")
    job.until_says("FTB_IPMI_FANFAIL of node node2: a checkpoint is taken")
    end(s, job, moves=[("node1", "node2,node3"), ("node0", "node2,node3")], ranks=8)


@test
def a_rollback_takes_those_along_that_wait(s):
    job = begin(s, "--spares", "2")
    job.checkpoint()
    by_rules(s, job, "node2")
    os.kill(next(r["pid"] for r in job.info()["ranks"] if r["node"] == "node0"), signal.SIGKILL)
    job.until_says("all ranks run again from checkpoint 1")
    there = nodes(s, job)
    expect([there[f"node{k}"] for k in range(5)] == [("READY", 2), ("SPARE", 0), ("SPARE", 0), ("READY", 2),
                                                     ("READY", 2)], there)
    end(s, job, moves=[], restarts=1)


@test
def the_next_head_goes_on_with_those_that_wait(s):
    job = begin(s, *attaching.GRACE, "--spares", "2")
    held = by_rules(s, job, "node2")
    asked = migrate(s, job, "--from", "node0")
    until_waits(s, job, "node0", "node2")
    attaching.kill_head(s, job)
    r = asked.wait()
    expect(r.status == 1 and "before it answered" in r.err, r)
    held.go_on()
    heir = attaching.attach(s, job)
    heir.until(lambda: [nodes(s, heir)[f"node{k}"] for k in (0, 1, 2)] ==
               [("READY", 2), ("SPARE", 0), ("SPARE", 0)], "both are left")
    attaching.goes_on(heir, job)
    report = attaching.end(s, job, heir, ranks=6)
    expect([m["from"] for m in report["migrations"]] == ["node1", "node2"] and report["restarts"] == 0,
           report)


main()
