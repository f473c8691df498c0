#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""A job on the event backplane: its own events, and rules that are followed while it runs. Sensors
are real: a BMC of OpenIPMI's simulator, whose fan the test stops."""

import http.server
import socket
import threading

from lib import *
from monitor_parts import Bmc, end_by_id

NODE = socket.gethostname()
QUICK = """
when FTB_IPMI_FANFAIL until FTB_IPMI_NORMAL do mark unusable by fan, migrate else checkpoint
when FTB_IPMI_NORMAL until FTB_IPMI_FANFAIL do mark usable by fan
"""


def compile_count(s):
    return s.compile("ftb_count", mpi=None, flags=["-L", BUILD, "-lftb", f"-Wl,-rpath,{BUILD}",
                                                   "-Wno-cast-function-type"])


def until_stopped(s, *options, ranks=4, ms=20, **kw):
    """A job that runs until end() is called."""
    exe = s.path("steps")
    if not os.path.exists(exe):
        s.compile("steps")
    job = s.hale_start(ranks, exe, "0", ms, options=options, **kw)
    job.until_output("rank 0 step 3 ")
    return job


def end(s, job, status=0):
    s.write("stop", "")
    r = job.wait()
    os.unlink(s.path("stop"))
    expect(r.status == status, r)
    return r


def follow(s, job, *options, env=None):
    """hale events JOB --follow, once it follows."""
    w = s.start(HALE, "events", job.id(), "--follow", "--json", *options, env=env)
    for n in range(500):
        publish(s, job, "FTB.TEST", "HERE", "FATAL", str(n), env=env)
        if "HERE" in w.out():
            return w
        time.sleep(0.02)
    raise Failed(w.result())


def publish(s, job, *event, env=None):
    job.name = getattr(job, "name", None) or job.id()
    r = s.hale("events", "publish", "--job", job.name, *event, env=env)
    expect(r.status == 0, r)


def shown(w, *names):
    """Events that were seen so far, as (name, {field: value}); without what follow() said."""
    events = [json.loads(x) for x in w.out().splitlines() if x.endswith("}")]
    return [(e["name"], dict([f.split(":", 1) for f in e["payload"].split("::") if ":" in f],
                             severity=e["severity"], space=e["namespace"]))
            for e in events if e["name"] != "HERE" and (not names or e["name"] in names)]


def until_event(w, name, **fields):
    def there():
        for n, f in shown(w, name):
            if all(f.get(k) == v for k, v in fields.items()):
                return f
    return w.until(there, f"{name} {fields}")


def states_of(w, node):
    """What was told of a node, in order: "STATE RANKS"."""
    return [f"{f['STATE']} {f['RANKS']}" for _, f in shown(w, "FTB_NODE_STATE") if f["NODE"] == node]


def nodes(s, job):
    """{node: usable}, as hale ps says."""
    return {n["node"]: n["usable"] for n in job.info()["nodes"]}


@test
def a_job_tells_of_its_life(s):
    job = until_stopped(s)
    w = follow(s, job)
    name = job.id()
    job.checkpoint()
    until_event(w, "FTB_CHECKPOINT_DONE", ID="1")
    os.kill(job.ranks(4)[2], signal.SIGKILL)
    until_event(w, "FTB_ROLLBACK_DONE", CHECKPOINT="1")
    end(s, job)
    r = w.wait()  # by itself: the job's broker is gone
    expect(r.status == 0, r)
    events = shown(w)
    expect([n for n, _ in events] ==
           ["FTB_CHECKPOINT", "FTB_CHECKPOINT_DONE", "FTB_RANK_DIED", "FTB_ROLLBACK",
            "FTB_ROLLBACK_DONE", "FTB_JOB_ENDED"], events)
    f = [f for _, f in events]
    expect(all(x["JOB"] == name for x in f), f)
    expect([x["space"] for x in f] == ["FTB.JL", "FTB.MPI", *["FTB.JL"] * 4], f)
    expect([x["severity"] for x in f] == ["INFO", "INFO", "ERROR", "WARNING", "INFO", "INFO"], f)
    expect(int(f[1]["BYTES"]) > 100000 and os.path.exists(f[1]["PATH"] + "/manifest.json"), f[1])
    expect((f[2]["RANK"], f[2]["NODE"], f[2]["SIGNAL"]) == ("2", NODE, "9"), f[2])
    expect("SIGKILL" in f[2]["REASON"] and f[5]["EXIT"] == "0" and f[5]["RESTARTS"] == "1", f)


@test
def a_damaged_checkpoint_is_one_more_rollback(s):
    job = until_stopped(s, ranks=2)
    w = follow(s, job)
    job.checkpoint()
    second = job.checkpoint()
    flip_in_image(second + "/rank-1.img")
    os.kill(job.ranks(2)[0], signal.SIGKILL)
    until_event(w, "FTB_ROLLBACK_DONE")
    end(s, job)
    w.wait()
    events = shown(w, "FTB_RANK_DIED", "FTB_ROLLBACK", "FTB_ROLLBACK_DONE")
    expect([(n, f.get("CHECKPOINT")) for n, f in events] ==
           [("FTB_RANK_DIED", None), ("FTB_ROLLBACK", "2"), ("FTB_ROLLBACK", "1"),
            ("FTB_ROLLBACK_DONE", "1")], events)


@test
def a_failed_job_and_a_failed_checkpoint_are_told(s):
    exe = s.compile("misuse")
    w = s.start(HALE, "backplane", env={"HALE_FTB": s.path("b", "ftb")})
    env = {"HALE_FTB": s.path("b", "ftb")}
    w.until(lambda: s.hale("backplane", "status", env=env).status == 0, "the broker answers")
    watcher = s.start(HALE, "events", "--follow", "--json", "--filter",
                      "namespace=FTB.*", env=env)
    watcher.until(lambda: json.loads(s.hale("backplane", "status", "--json", env=env).out)
                  ["subscriptions"] > 0, "somebody listens")
    job = s.hale_start(2, exe, "spin", env=env)
    job.until_output("spinning")
    s.write("hale-ckpt", "a file in the way of the folder")
    r = s.hale("ckpt", job.id())
    expect(r.status == 1, r)
    f = until_event(watcher, "FTB_CHECKPOINT_FAILED", ID="0")
    expect(f["severity"] == "WARNING" and "hale-ckpt" in f["REASON"], f)
    os.kill(job.ranks(2)[1], signal.SIGKILL)
    r = job.wait()
    expect(r.status == 128 + 9, r)
    f = until_event(watcher, "FTB_JOB_ENDED")
    expect((f["EXIT"], f["severity"]) == ("137", "ERROR"), f)
    begun = until_event(watcher, "FTB_JOB_STARTED")
    expect((begun["RANKS"], begun["NODES"]) == ("2", "1") and begun["PROGRAM"] == exe, begun)
    end_by_id(s, watcher)
    w.kill(signal.SIGTERM)
    w.wait()


@test
def a_fan_fails_and_the_job_is_saved_and_the_node_left_alone(s):
    s.write("quick.rules", QUICK)
    bmc = Bmc(s, NODE)
    monitor = " ".join(map(str, bmc.options() + ["--every", "100ms"]))
    job = until_stopped(s, "--rules", s.path("quick.rules"), "--monitor", monitor, ranks=2)
    w = follow(s, job)
    expect(nodes(s, job) == {NODE: True}, job.info())
    bmc.set(fan=0)
    until_event(w, "FTB_IPMI_FANFAIL")
    until_event(w, "FTB_NODE_UNUSABLE", NODE=NODE)
    done = until_event(w, "FTB_CHECKPOINT_DONE", ID="1")
    expect(nodes(s, job) == {NODE: False}, job.info())
    expect("is unusable" in s.hale("ps").out, s.hale("ps"))
    bmc.set(fan=60)
    until_event(w, "FTB_NODE_USABLE", NODE=NODE)
    expect(nodes(s, job) == {NODE: True}, job.info())
    bmc.end()
    last = int(re.findall(r"^rank 0 step (\d+) ", job.out(), re.M)[-1]) + 10
    job.until_output(f"rank 0 step {last} ")
    r = end(s, job)
    # what the checkpoint holds is a job that goes on to the same lines
    again = s.start(HALE, "restart", done["PATH"])
    again.until_output(f"rank 0 step {last} ")
    r2 = end(s, again)
    line = f"rank 0 step {last} "
    expect([x for x in r.out.splitlines() if x.startswith(line)] ==
           [x for x in r2.out.splitlines() if x.startswith(line)], r, r2)


@test
def all_nodes_overheat_and_lammps_is_saved_once(s):
    have("lmp")
    s.write("in.melt", """units lj
atom_style atomic
lattice fcc 0.8442
region box block 0 8 0 8 0 8
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create 3.0 87287 loop geom
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
neighbor 0.3 bin
fix 1 all nve
thermo 100
run 4000
""")
    argv = ["lmp", "-in", "in.melt", "-log", "none"]
    wanted = thermo(s.hale_run(4, *argv, options=["--nodes", "2"]).out)
    job = s.hale_start(4, *argv, options=["--nodes", "2"])
    job.until_output(r"^ +100 ")
    w = follow(s, job)
    publish(s, job, "FTB.FTB_IPMI", "FTB_IPMI_OVERTEMP", "ERROR", "node0")
    publish(s, job, "FTB.FTB_IPMI", "FTB_IPMI_OVERTEMP", "ERROR", "node1")
    for _ in range(20):
        publish(s, job, "FTB.FTB_IPMI", "FTB_IPMI_OVERTEMP", "ERROR", "node1")
    done = until_event(w, "FTB_CHECKPOINT_DONE", ID="1")
    r = job.wait()
    expect(r.status == 0 and thermo(r.out) == wanted, r)
    expect(w.wait().status == 0, w.result())
    expect([f["ID"] for _, f in shown(w, "FTB_CHECKPOINT_DONE")] == ["1"], shown(w))
    expect([f["ACTION"] for _, f in shown(w, "FTB_RULE")] == ["checkpoint"], shown(w))
    r = s.hale("restart", done["PATH"])
    lines = [x.rstrip() for x in r.out.splitlines()]
    expect(r.status == 0 and wanted[-1] in lines, r)


@test
def what_happens_to_the_machine_happens_to_all_nodes_that_it_stands_for(s):
    job = until_stopped(s, "--nodes", "2")
    w = follow(s, job)
    publish(s, job, "FTB.FTB_MEM", "FTB_MEM_UNCORRECTED", "ERROR", f"NODE:{NODE}::UNIT:DIMM0")
    until_event(w, "FTB_NODE_UNUSABLE", NODE="node0")
    until_event(w, "FTB_NODE_UNUSABLE", NODE="node1")
    publish(s, job, "FTB.FTB_IB", "FTB_IB_PORT_ERR", "ERROR", "NODE:elsewhere")
    expect(nodes(s, job) == {"node0": False, "node1": False}, job.info())
    end(s, job)
    w.wait()


def agents(s, job):
    """{node: its entry}, as hale nodes says."""
    r = s.hale("nodes", job.id(), "--json")
    expect(r.status == 0, r)
    return {n["node"]: n for n in json.loads(r.out)["nodes"]}


@test
def a_lost_nodes_ranks_go_to_a_spare_that_is_well(s):
    s.write("link.rules", "when FTB_IB_PORT_ERR until FTB_IB_PORT_ACTIVE do mark unusable by link")
    job = until_stopped(s, "--nodes", "2", "--spares", "2", "--rules", s.path("link.rules"))
    w = follow(s, job)
    publish(s, job, "FTB.FTB_IB", "FTB_IB_PORT_ERR", "ERROR", "NODE:node2::ADAPTER:0::PORT:1")
    until_event(w, "FTB_NODE_UNUSABLE", NODE="node2")
    expect("(unusable)" in s.hale("nodes", job.id()).out, s.hale("nodes", job.id()))
    job.checkpoint()
    os.kill(agents(s, job)["node1"]["pid"], signal.SIGKILL)
    f = until_event(w, "FTB_NODE_LOST", NODE="node1")
    expect(f["severity"] == "ERROR" and f["REASON"], f)
    until_event(w, "FTB_NODE_STATE", NODE="node3", STATE="READY", RANKS="2")
    until_event(w, "FTB_ROLLBACK_DONE", CHECKPOINT="1")
    there = {n: (a["state"], a["ranks"], a["usable"]) for n, a in agents(s, job).items()}
    expect(there == {"node0": ("READY", 2, True), "node1": ("LOST", 0, True),
                     "node2": ("SPARE", 0, False), "node3": ("READY", 2, True)}, there)
    end(s, job)
    w.wait()


def as_in_figure_3_8(w, job, source, target, ranks):
    """Of seed 001: who says what, and in which order nodes change their states."""
    def state(node, what):
        return "FTB.NLA", "FTB_NODE_STATE", f"JOB:{job.name}::NODE:{node}::STATE:{what}"
    said = [(e["namespace"], e["name"], e["payload"]) for e in map(json.loads, w.out().splitlines())
            if e["name"].startswith(("FTB_MIGRATE", "FTB_NODE_STATE"))]
    del said[:max(k for k, e in enumerate(said) if e[1] == "FTB_MIGRATE")]
    wanted = [("FTB.JL", "FTB_MIGRATE", source), state(source, "ARM::RANKS:2"),
              ("FTB.NLA", "FTB_MIGRATE_PIC", source), state(source, "INACTIVE::RANKS:0"),
              ("FTB.JL", "FTB_MIGRATE_IPT", f"{target} {ranks}"), state(target, "READY::RANKS:2"),
              state(source, "SPARE::RANKS:0")]
    expect(said == wanted, "\n".join(map(str, said)))


@test
def ranks_leave_a_node_whose_fan_fails(s):
    job = until_stopped(s, "--nodes", "2", "--spares", "1", "--report", "report.json")
    w = follow(s, job)
    publish(s, job, "FTB.FTB_IPMI", "FTB_IPMI_FANFAIL", "ERROR", "node1")
    until_event(w, "FTB_NODE_STATE", NODE="node1", STATE="SPARE", RANKS="0")
    there = {n: (a["state"], a["ranks"], a["usable"]) for n, a in agents(s, job).items()}
    expect(there == {"node0": ("READY", 2, True), "node1": ("SPARE", 0, False),
                     "node2": ("READY", 2, True)}, there)
    as_in_figure_3_8(w, job, "node1", "node2", "2,3")
    # the next one has nowhere to go
    publish(s, job, "FTB.FTB_IPMI", "FTB_IPMI_FANFAIL", "ERROR", "node0")
    until_event(w, "FTB_CHECKPOINT_DONE")
    r = end(s, job)
    w.wait()
    expect("FTB_ROLLBACK" not in w.out(), w.out())
    steps = [x for x in r.out.splitlines() if " step " in x]
    expect(len(steps) == len(set(steps)), "output came twice", r)
    expect(s.report()["restarts"] == 0 and len(s.report()["migrations"]) == 1, s.report())


@test
def two_nodes_that_are_left_at_once_are_both_told_of(s):
    job = until_stopped(s, "--nodes", "3", "--spares", "2", ranks=6)
    w = follow(s, job)
    for node in ("node1", "node2"):
        publish(s, job, "FTB.FTB_IPMI", "FTB_IPMI_FANFAIL", "ERROR", node)
    for node in ("node1", "node2"):
        until_event(w, "FTB_NODE_STATE", NODE=node, STATE="SPARE", RANKS="0")
    said = [(e["name"], e["payload"].split()[0]) for e in map(json.loads, w.out().splitlines())
            if e["name"].startswith("FTB_MIGRATE")]
    for node in ("node1", "node2"):
        expect(said.index(("FTB_MIGRATE", node)) < said.index(("FTB_MIGRATE_PIC", node)), said)
    end(s, job)
    w.wait()


def held_up(s, **kw):
    """A job whose migration from node1 hangs, until SIGCONT to rank 2, or is given up."""
    job = until_stopped(s, "--nodes", "2", "--spares", "1", **kw,
                        env={"HALE_MIGRATE_TIMEOUT": "500ms"})
    w = follow(s, job)
    rank = job.ranks(4)[2]
    os.kill(rank, signal.SIGSTOP)
    publish(s, job, "FTB.FTB_IPMI", "FTB_IPMI_FANFAIL", "ERROR", "node1")
    return job, w, rank


@test
def ranks_that_can_not_migrate_go_by_a_checkpoint(s):
    job, w, rank = held_up(s)
    job.until_says("the migration has failed: the ranks of node node1 go to another one")
    os.kill(rank, signal.SIGCONT)
    until_event(w, "FTB_ROLLBACK_DONE", RESTART="0")
    there = {n: (a["state"], a["ranks"]) for n, a in agents(s, job).items()}
    expect(there == {"node0": ("READY", 2), "node1": ("SPARE", 0), "node2": ("READY", 2)}, there)
    as_in_figure_3_8(w, job, "node1", "node2", "2,3")
    end(s, job)
    w.wait()
    expect(states_of(w, "node1") == ["ARM 2", "READY 2", "ARM 2", "INACTIVE 0", "SPARE 0"],
           states_of(w, "node1"))


@test
def ranks_that_can_not_be_saved_stay(s):
    s.write("hale-ckpt", "a file in the way of the folder")
    job, w, rank = held_up(s)
    until_event(w, "FTB_CHECKPOINT_FAILED")
    job.until_says("the ranks of node node1 stay there: cannot|the ranks of node node1 stay")
    os.kill(rank, signal.SIGCONT)
    there = {n: (a["state"], a["ranks"]) for n, a in agents(s, job).items()}
    expect(there == {"node0": ("READY", 2), "node1": ("READY", 2), "node2": ("SPARE", 0)}, there)
    last = int(re.findall(r"^rank 0 step (\d+) ", job.out(), re.M)[-1]) + 5
    job.until_output(f"rank 0 step {last} ")
    end(s, job)
    w.wait()
    expect(states_of(w, "node1") == ["ARM 2", "READY 2", "ARM 2", "READY 2"], states_of(w, "node1"))
    expect(not shown(w, "FTB_MIGRATE_PIC"), "ranks that stay have not left")


@test
def a_storm_costs_neither_the_job_nor_its_head_anything_but_events(s):
    exe = compile_count(s)
    job = until_stopped(s)
    env = {"HALE_FTB": job.info()["events"]}
    storms = [s.start(exe, "FTB.FTB_IPMI", "INFO", "400000", "0", "100", env=env)
              for _ in range(2)]
    # one that the rules have to look at each time
    s.write("storm.c", "#include <libftb.h>\n#include <stdio.h>\nint main(void) { FTB_client_t me = "
            "{.event_space = \"FTB.FTB_IPMI\", .client_subscription_style = "
            "\"FTB_SUBSCRIPTION_NONE\"}; FTB_client_handle_t c; FTB_event_info_t e = "
            "{\"FTB_IPMI_FANFAIL\", \"ERROR\"}; if (FTB_Connect(&me, &c)) return 1; "
            "FTB_Declare_publishable_events(c, NULL, &e, 1); for (int i = 0; i < 100000; i++) "
            f"HALE_FTB_Publish(c, \"FTB_IPMI_FANFAIL\", 1, \"{NODE}\", {len(NODE)}, NULL); "
            "FTB_Disconnect(c); return 0; }\n")
    r = s.run("gcc", "-I", os.path.join(ROOT, "include"), s.path("storm.c"), "-o", s.path("storm"),
              "-L", BUILD, "-lftb", f"-Wl,-rpath,{BUILD}")
    expect(r.status == 0, r)
    storms.append(s.start(s.path("storm"), env=env))
    job.checkpoint()
    for storm in storms:
        r = storm.wait()
        expect(r.status == 0, r)
    rss = proc_figures(job.pid)["rss"]
    expect(rss < 100 << 20, f"the head has grown to {rss >> 20} MiB")
    expect(len(s.complete()) <= 2 and nodes(s, job) == {NODE: False}, job.info())
    os.kill(job.ranks(4)[1], signal.SIGKILL)
    job.until_says("all ranks run again")
    r = end(s, job)
    expect(r.err.count("a checkpoint is taken") == 1, r)


@test
def the_machines_broker_is_joined_and_may_die(s):
    env = {"HALE_FTB": s.path("b", "ftb")}
    broker = s.start(HALE, "backplane", env=env)
    broker.until(lambda: s.hale("backplane", "status", env=env).status == 0, "the broker answers")
    job = until_stopped(s, env=env)
    expect(job.info()["events"] == env["HALE_FTB"], job.info())
    other = until_stopped(s, ranks=1, env=env)
    w = follow(s, job, env=env)
    publish(s, other, "FTB.FTB_IPMI", "FTB_IPMI_FANFAIL", "ERROR", NODE)  # another job's own matter
    # what its publisher has handed over and nobody has heard yet would end with the broker
    other.until(lambda: nodes(s, other) == {NODE: False}, "whose fan?")
    broker.kill()
    broker.wait()
    job.checkpoint()
    os.kill(job.ranks(4)[3], signal.SIGKILL)
    job.until_says("all ranks run again")
    broker = s.start(HALE, "backplane", env=env)
    f = until_event(w, "FTB_RANK_DIED", RANK="3")  # of the time without a broker
    expect(f["SIGNAL"] == "9", f)
    expect(nodes(s, job) == {NODE: True} and nodes(s, other) == {NODE: False}, "whose fan?")
    publish(s, job, "FTB.FTB_IPMI", "FTB_IPMI_FANFAIL", "ERROR", NODE, env=env)
    until_event(w, "FTB_NODE_UNUSABLE", NODE=NODE)
    expect([f["RANK"] for _, f in shown(w, "FTB_RANK_DIED")] == ["3"], shown(w))
    s.write("stop", "")
    for j in (job, other):
        expect(j.wait().status == 0, j.result())
    until_event(w, "FTB_JOB_ENDED", JOB=f["JOB"])
    expect({f["JOB"] for _, f in shown(w) if "JOB" in f} == {f["JOB"]}, shown(w))
    end_by_id(s, w)
    broker.kill(signal.SIGTERM)
    broker.wait()


@test
def a_broker_that_stands_still_holds_nobody_up(s):
    env = {"HALE_FTB": s.path("b", "ftb")}
    broker = s.start(HALE, "backplane", env=env)
    broker.until(lambda: s.hale("backplane", "status", env=env).status == 0, "the broker answers")
    job = until_stopped(s, "--ckpt-every", "50ms", env=env)
    broker.kill(signal.SIGSTOP)
    job.until(lambda: job.info()["checkpoint"] > 20, "checkpoints go on")
    os.kill(job.ranks(4)[0], signal.SIGKILL)
    job.until_says("all ranks run again")
    end(s, job)
    broker.kill(signal.SIGCONT)
    broker.kill(signal.SIGTERM)
    broker.wait()


@test
def programs_with_libftb_find_the_jobs_broker(s):
    exe = compile_count(s)
    env = {"HALE_FTB": s.path("nobody", "ftb")}
    s.write("quick.rules", 'when COUNT 3 within 1min do run "cat > told; echo $HALE_JOB $HALE_RULE '
            '$HALE_EVENT $HALE_NODE >> told; mv told done"')
    job = s.hale_start(1, exe, "FTB.MINE", "WARNING", "1000000", "2000", env=env,
                       options=["--no-mpi", "--rules", s.path("quick.rules")])
    job.until(lambda: os.path.exists(s.path("done")), "the rule's command")
    said, names = s.read("done").splitlines()
    name = job.id()
    said = json.loads(said)
    expect(said["event"] == "COUNT" and said["node"] == NODE and said["job"] == name, said)
    expect(names == f"{name} line 1 COUNT {NODE}", names)
    expect("of its own" in job.err(), job.err())  # HALE_FTB named one that does not answer
    s.write("stop", "")
    r = job.wait()
    expect(r.status == 0 and "refused 0" in r.out, r)


@test
def a_rank_with_libftb_goes_back_and_its_events_come_once(s):
    exe = compile_count(s)
    job = s.hale_start(2, exe, "FTB.MINE", "WARNING", "1000000", "1000", options=["--no-mpi"])
    job.until_output("connected")
    w = follow(s, job, "--filter", "namespace=FTB.TEST")
    got = follow(s, job)
    got.until(lambda: got.out().count("COUNT") > 100, "events")
    path = job.checkpoint()
    expect("event broker" in s.hale("image", "show", path + "/rank-0.img").out, path)
    seen = got.out().count("COUNT")
    got.until(lambda: got.out().count("COUNT") > seen + 200, "more events")
    os.kill(job.ranks(2)[1], signal.SIGKILL)
    job.until_says("all ranks run again")
    seen = got.out().count("COUNT")
    got.until(lambda: got.out().count("COUNT") > seen + 200, "events that are new again")
    s.write("stop", "")
    r = job.wait()
    counts = sorted(map(int, re.findall(r"^published (\d+) refused 0$", r.out, re.M)))
    expect(r.status == 0 and len(counts) == 2, r)
    expect("rolling back to checkpoint 1" in r.err, r)
    got.wait()
    w.wait()
    # once somebody listened, each number once from each rank
    times = {}
    for x in got.out().splitlines():
        if '"COUNT"' in x:
            n = int(json.loads(x)["payload"])
            times[n] = times.get(n, 0) + 1
    twice = sorted(n for n, k in times.items() if k == 2)
    expect(twice == list(range(twice[0], counts[0] + 1)), twice[:3], len(twice), counts)
    once = sorted(n for n in times if n > counts[0])
    expect(once == list(range(counts[0] + 1, counts[1] + 1)), once[:3], len(once), counts)
    expect(max(times.values()) == 2, "one came once more")
    # the same from a checkpoint, with another broker
    r = s.hale("restart", path)
    expect(r.status == 0 and "refused 0" in r.out, r)


@test
def commands_of_rules_are_few_and_their_failures_are_said(s):
    s.write("many.rules", "".join(
        f'when E{i} do run "sleep 100"\n' for i in range(10)) + 'when F do run "exit 3"\n')
    job = until_stopped(s, "--rules", s.path("many.rules"), ranks=1)
    publish(s, job, "FTB.X", "F", "INFO")
    job.until_says("the run of a rule ended with status 3")
    for i in range(10):
        publish(s, job, "FTB.X", f"E{i}", "INFO")
    job.until_says("8 commands of rules run already")
    r = end(s, job)  # and none of them is left
    expect(r.err.count("run already") == 2, r)


@test
def a_webhook_gets_the_event_and_a_missing_mailer_is_named(s):
    have("curl")
    got, paths, argv = [], [], []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            got.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            paths.append(self.path)
            argv.extend(name_of(pid) for pid in children(os.getpid()))  # as ps shows it to all
            self.send_response(200)
            self.end_headers()

        def log_message(self, *args):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            s.write("tell.rules", f'rule tell when E do webhook "http://127.0.0.1:'
                    f'{server.server_port}/s3cret"\nwhen M do mail "-froot"\n')
            job = until_stopped(s, "--rules", s.path("tell.rules"), ranks=1)
            publish(s, job, "FTB.X", "E", "INFO", 'a "quoted" \n text')
            job.until(lambda: got, "the post")
            expect(got == [{"job": job.id(), "rule": "tell", "event": "E", "node": NODE,
                            "payload": 'a "quoted" \n text'}], got)
            expect(paths == ["/s3cret"], paths)
            seen = [line for line in argv if "curl" in line]
            expect(seen and not any("s3cret" in line or "quoted" in line for line in argv), argv)
            if not shutil.which("mail"):
                publish(s, job, "FTB.X", "M", "INFO")
                job.until_says("the mail of a rule found no such command")
            end(s, job)
        finally:
            server.shutdown()
            thread.join()


@test
def names_that_another_user_has_taken_cost_a_job_nothing(s):
    if os.getuid() != 0:
        skip("only root can be somebody else")
    if os.stat("/proc/self/ns/pid").st_ino != 0xeffffffc:
        skip("in a container there is something random in a job's name")
    taker = s.start("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "/usr/bin/python3",
                    "-uc", "import socket, sys, time\n"
                    "there = []\n"
                    "for line in sys.stdin:\n"
                    "    name, kind = line.split()\n"
                    "    there.append(socket.socket(socket.AF_UNIX, int(kind)))\n"
                    "    there[-1].bind('\\0' + name)\n"
                    "    there[-1].listen(99)\n"
                    "    print(name)\n", stdin=subprocess.PIPE)
    # the shell says which job it will be, and becomes it when its names are taken
    job = s.start("sh", "-c", 'echo "pid $$"; while ! test -e taken; do sleep 0.05; done; exec "$@"',
                  "sh", HALE, "run", "-n", "2", "--no-mpi", "--events", "--", "sh", "-c",
                  "while ! test -e stop; do sleep 0.05; done")
    pid = job.until_output(r"pid (\d+)")[1]
    for name, kind in (("ctl", socket.SOCK_STREAM), ("ctl.77", socket.SOCK_STREAM),
                       ("ftb", socket.SOCK_SEQPACKET)):
        taker.p.stdin.write(f"hale/0/sh.{pid}/{name} {int(kind)}\n".encode())
    taker.p.stdin.flush()
    taker.until_output("ftb")
    s.write("taken", "")
    job.until(lambda: f"sh.{pid}" in s.hale("ps").out, "hale ps shows it")
    job.id = lambda: f"sh.{pid}"
    w = follow(s, job)
    r = s.hale("nodes", f"sh.{pid}")
    expect(r.status == 0, r)
    s.write("stop", "")
    r = job.wait()
    expect(r.status == 0, r)
    w.wait()
    taker.p.stdin.close()
    taker.wait()


@test
def garbage_at_the_jobs_socket_harms_nobody(s):
    job = until_stopped(s)
    w = follow(s, job)
    address = "\0" + job.info()["events"][1:]
    draw = random.Random(SEED)
    for n in range(60):
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as c:
            c.connect(address)
            try:
                c.send(b"FB\x01\x01" + b"\0" * 4 + draw.randbytes(8) if n % 2 else b"x")
                c.send(draw.randbytes(draw.randrange(1, 5000)))
            except OSError:
                pass  # cut off before it had said all
    for payload in ("", "NODE:", "NODE:::", "x" * 8000, "::::", "COUNT:-5", "NODE:%s%n\n\\",
                    "COUNT:99999999999999999999"):
        publish(s, job, "FTB.FTB_MEM", "FTB_MEM_CORRECTED", "WARNING", payload)
    job.checkpoint()
    until_event(w, "FTB_CHECKPOINT_DONE")
    end(s, job)
    w.wait()


@test
def monitors_come_with_the_job_and_go_with_it(s):
    job = until_stopped(s, "--monitor", "load,memory,ib", ranks=1)

    def monitor():
        for p in children(job.pid):
            with open(f"/proc/{p}/cmdline", "rb") as f:
                words = f.read().split(b"\0")
            if words[1:2] == [b"monitor"] and b"--load" in words:
                return p
    first = job.until(monitor, "a monitor")
    os.kill(first, signal.SIGKILL)
    job.until_says("has ended; it is started again")
    second = job.until(lambda: (lambda p: p if p != first else None)(monitor()), "another one")
    expect(second != first, first, second)
    job.kill(signal.SIGKILL)  # and nothing is left, as is looked at after each test
    job.p.wait()
    s.until_nothing_runs()


@test
def a_restarted_job_has_events_too(s):
    job = until_stopped(s, ranks=2)
    path = job.checkpoint()
    job.kill()
    job.p.wait()
    s.until_nothing_runs()
    again = s.start(HALE, "restart", path)
    again.until_output("rank 0 step ")
    w = follow(s, again)
    publish(s, again, "FTB.FTB_IPMI", "FTB_IPMI_OVERTEMP", "ERROR", NODE)
    until_event(w, "FTB_CHECKPOINT_DONE", ID="2")
    end(s, again)
    w.wait()


@test
def what_is_wrong_with_events_is_said_before_anything_runs(s):
    exe = s.compile("steps")
    s.write("wrong.rules", "when A do\ndance")
    for options, text in ((["--rules", s.path("wrong.rules")], "wrong.rules:2"),
                          (["--rules", s.path("nothing.rules")], "nothing.rules"),
                          (["--monitor", "ipmi,weather"], "--monitor takes"),
                          (["--monitor", ""], "--monitor takes"),
                          (["--monitor", "load", "--monitor", "--no-such option"],
                           "--monitor '--no-such option': '--no-such' is no option"),
                          (["--monitor", "--disk-min 5"], "nothing to watch"),
                          (["--monitor", "--load --disk-min 99"], "--disk-min takes percent"),
                          (["--no-events", "--monitor", "load"], "--no-events goes with none"),
                          (["--no-events", "--events"], "--no-events goes with none")):
        r = s.hale_run(1, exe, "1", options=options)
        expect(r.status == EXIT_USAGE and text in r.err and not r.out, r)
        expect(len(said(r)) == 1, r)
    job = until_stopped(s, "--no-events", ranks=1)
    expect(job.info()["events"] == "" and job.info()["nodes"] == [], job.info())
    end(s, job)


main()
