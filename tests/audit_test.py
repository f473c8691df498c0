#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Audits: one more process visits rank after rank, and a node that computes wrongly is found and left."""

from lib import *
from adopt_parts import agent_of, nodes

LONGER = 20 if LONG else 1


def audited(*more, time="300ms", count=3, spares=0):
    return ["--nodes", str(count), "--spares", str(spares), "--audit", time, "--report", "report.json", *more]


def roles(job, rank=None):
    """{role: {"slot", "node", "pid", "rank"}} of the rank that is visited, if rank and role are there; else nothing."""
    ranks = (job.info() or {"ranks": []})["ranks"]
    twins = [r for r in ranks if r["role"] == "twin" and r["state"] == "running" and rank in (None, r["rank"])]
    return {r["role"]: r for r in ranks if twins and r["rank"] == twins[0]["rank"] and r["state"] == "running"}


def visited(job, rank=None):
    return job.until(lambda: len(roles(job, rank)) == 3 and roles(job, rank), "a rank is visited")


def results(s):
    return [a["result"] for a in s.report()["audits"]]


@test
def quiet_visits_change_nothing(s):
    """All kinds of messages at random, and a master that depends on every wildcard, probe, test and clock."""
    exe = s.compile("storm")
    rounds = 600 * LONGER
    plain = s.hale_run(3, exe, rounds)
    for options in audited(), audited(count=1), audited(time="100ms", spares=1):
        r = s.hale_run(3, exe, rounds, options=options)
        expect(r.status == 0 and r.out == plain.out and "silent" not in r.err and "wrongly" not in r.err, r, plain)
        report = s.report()
        expect("agreed" in results(s) and set(results(s)) <= {"agreed", "cut short"}, report["audits"])
        expect(report["audit_count"] == len(report["audits"]) and report["sdc_count"] == 0 and report["failures"] == [], report)
        first = report["audits"][0]
        expect(first["rank"] == 0 and first["seconds"] >= 0.1 and first["bytes"] > 0, first)
        if options[1] != "1":
            expect(len({first["node"], first["twin"], first["witness"]}) == 3, first)
    for log in "20000", "1":  # a witness that catches up now and then, or always
        r = s.hale_run(3, exe, rounds, options=audited(), env={"HALE_AUDIT_LOG": log})
        expect(r.status == 0 and r.out == plain.out and "silent" not in r.err and "agreed" in results(s), r, plain)
    exe = s.compile("farm")
    r = s.hale_run(4, exe, 1500, options=audited())
    words = {name: int(word, 16) for name, word in re.findall(r"(?m)^(all|choices) ([0-9a-f]+)$", r.out)}
    expect(r.status == 0 and words["all"] == words["choices"] ^ 14695981039346656037 and "silent" not in r.err, r)
    expect("agreed" in results(s), s.report())


@test
def real_programs_are_visited_without_a_false_alarm(s):
    script = os.path.join(ROOT, "tests/programs/farm.py")
    programs = [[PYTHON, script, "5000"]]
    if shutil.which("lmp"):
        s.write("in.melt", open(os.path.join(ROOT, "tests/data/in.melt")).read())
        programs.append(["lmp", "-in", "in.melt", "-var", "steps", "2000", "-log", "none"])
    for program in programs:
        plain = s.hale_run(4, *program)
        for _ in range(LONGER):
            r = s.hale_run(4, *program, options=audited())
            expect(r.status == 0 and "silent" not in r.err and "wrong" not in r.err, r)
            expect(thermo(r.out) == thermo(plain.out) if program[0] == "lmp" else r.out == plain.out, r, plain)
            expect("agreed" in results(s), s.report())


@test
def a_wrong_rank_or_twin_is_named_and_its_node_left(s):
    """Whichever of the two is wrong, the third place says so, every message is right, and the job goes on elsewhere."""
    exe = s.compile("slices")
    plain = s.hale_run(3, exe, 16003)
    for wrong in "main", "twin":
        job = s.hale_start(3, exe, 16003, options=audited(time="20s", spares=1))
        at = visited(job)
        node = at[wrong]["node"]
        r = s.hale("inject", "flip", job.id(), "--rank", str(at[wrong]["rank"]), "--slot", str(at[wrong]["slot"]),
                   "--where", "result", "--count", "3", "--every", "10")
        expect(r.status == 0, r)
        job.until_says(f"node {node} computes wrongly")
        job.until(lambda: job.info() and node not in {r["node"] for r in job.info()["ranks"] if r["state"] == "running"},
                  f"nobody is on node {node}")
        r = job.wait()
        expect(r.status == 0 and r.out == plain.out and "is corrected" in r.err and "roll" not in r.err, r, plain)
        first = s.report()["audits"][0]
        expect(first["result"] == "differed" and first["wrong"] == node, first)
        expect(all(node not in (a["node"], a["twin"], a["witness"]) for a in s.report()["audits"][3:]), s.report()["audits"])


@test
def a_node_that_computes_wrongly_is_named_within_one_visit(s):
    """All its processes do, also those that come later; what they had sent before they were visited is wrong."""
    exe = s.compile("slices")
    job = s.hale_start(3, exe, 30001, options=audited(time="5s", spares=1))
    visited(job)
    r = s.hale("inject", "flip", job.id(), "--node", "node0", "--where", "result", "--count", "1000000", "--every", "20")
    expect(r.status == 0, r)
    job.until_says("node node0 computes wrongly", limit=60)
    job.until_says("has left node node0", limit=60) if any(
        r["node"] == "node0" for r in job.info()["ranks"] if r["state"] == "running") else None
    job.until(lambda: job.info() and "node0" not in {r["node"] for r in job.info()["ranks"] if r["state"] == "running"},
              "nobody is on node0")
    r = job.wait()
    expect(r.status == 0 and "node1 computes wrongly" not in r.err and "node2 computes wrongly" not in r.err, r)
    expect({a.get("wrong") for a in s.report()["audits"]} <= {None, "node0"}, s.report()["audits"])


@test
def a_core_that_is_wrong_once_in_a_million_operations_is_named_within_one_visit(s):
    """The program itself computes so on node0, at random moments, whoever it is that runs there: nothing is injected."""
    exe = s.compile("miscounts")
    job = s.hale_start(3, exe, 1000000, 0, options=audited(time="60s", spares=1))
    job.until_says("node node0 computes wrongly", limit=60)
    job.until(lambda: job.info() and "node0" not in {r["node"] for r in job.info()["ranks"] if r["state"] == "running"},
              "nobody is on node0")
    job.kill(signal.SIGTERM)
    r = job.wait()
    expect("node1 computes wrongly" not in r.err and "node2 computes wrongly" not in r.err, r)
    first = s.report()["audits"][0]
    expect(first["rank"] == 0 and first["result"] == "differed" and first["wrong"] == "node0", first)


@test
def ranks_of_an_audited_job_move(s):
    """The visit under way is cut short, the node is emptied, and visits go on."""
    exe = s.compile("slices")
    plain = s.hale_run(3, exe, 30001)
    job = s.hale_start(3, exe, 30001, options=audited(time="300ms", spares=1))
    visited(job)
    for source in "node0", "node1":
        r = s.hale("migrate", job.id(), "--from", source)
        expect(r.status == 0 and f"moved from {source} to" in r.out, r)
        expect(source not in {r["node"] for r in job.info()["ranks"] if r["state"] == "running" and r["role"] == "main"},
               job.info())
    visited(job)
    r = s.hale("migrate", job.id(), "--from", "node2", "--via-files")
    expect(r.status != 0 and "don't move by files" in r.err, r)
    r = job.wait()
    expect(r.status == 0 and r.out == plain.out and "silent" not in r.err and "roll" not in r.err, r, plain)
    report = s.report()
    expect(len(report["migrations"]) == 2 and "agreed" in results(s) and "cut short" in results(s), report["audits"])


@test
def an_audited_job_is_restarted_with_its_audits(s):
    """And without them, when that is said. Checkpoints are taken in visits, too."""
    exe = s.compile("slices")
    plain = s.hale_run(3, exe, 40001)
    job = s.hale_start(3, exe, 40001, options=audited(time="400ms"))
    visited(job)
    job.checkpoint()
    job.kill(signal.SIGTERM)
    job.wait()
    folder = glob.glob(s.path("hale-ckpt/*"))[0]
    for options, audits in ([], True), (["--audit", "100ms"], True), (["--audit", "off"], False):
        r = s.hale("restart", folder, "--nodes", "3", "--report", "report.json", *options)
        expect(r.status == 0 and r.out.splitlines()[-1] == plain.out.splitlines()[-1] and "silent" not in r.err, r, plain)
        report = s.report()
        expect(("audits" in report) == audits and (not audits or "agreed" in results(s)), options, report)
    r = s.hale("restart", folder, "--replicas", "2")
    expect(r.status == EXIT_USAGE and "is audited" in r.err, r)
    shutil.rmtree(s.path("hale-ckpt"))
    job = s.hale_start(2, exe, 40001)
    job.until_output("step 1024")
    job.checkpoint()
    job.kill(signal.SIGTERM)
    job.wait()
    r = s.hale("restart", glob.glob(s.path("hale-ckpt/*"))[0], "--audit", "1s")
    expect(r.status == EXIT_USAGE and "begun without --audit" in r.err, r)


@test
def on_two_nodes_the_message_is_right_and_nobody_is_accused(s):
    exe = s.compile("slices")
    plain = s.hale_run(2, exe, 8003)
    job = s.hale_start(2, exe, 8003, options=audited(time="20s", count=2))
    at = visited(job)
    s.hale("inject", "flip", job.id(), "--rank", str(at["main"]["rank"]), "--slot", str(at["main"]["slot"]), "--where", "result")
    r = job.wait()
    expect(r.status == 0 and r.out == plain.out and "is under suspicion" in r.err and "can't tell for certain" in r.err, r)
    expect("computes wrongly" not in r.err and s.report()["audits"][0]["result"] == "differed", r)


@test
def three_that_all_differ_end_the_job_or_send_it_back(s):
    """Both are wrong in the same message, each in its own way: the witness agrees with nobody."""
    exe = s.compile("slices")
    plain = s.hale_run(3, exe, 40003)
    for on_sdc in "stop", "rollback":
        job = s.hale_start(3, exe, 40003, options=audited("--on-sdc", on_sdc, time="20s"))
        at = visited(job)
        for role in "main", "twin":
            r = s.hale("inject", "flip", job.id(), "--rank", str(at[role]["rank"]), "--slot", str(at[role]["slot"]),
                       "--where", "result", "--count", "1", "--every", "15000")
        r = job.wait()
        report = s.report()
        if on_sdc == "stop":
            expect(r.status == EXIT_SDC and "nobody can say which is right" in r.err and report["sdc"][0]["slot"] == -1, r)
        else:
            expect(r.status == 0 and r.out.endswith(plain.out.splitlines()[-1] + "\n") and report["restarts"] == 1, r, plain)


@test
def a_visit_that_the_end_of_the_job_cuts_short_is_in_the_report(s):
    exe = s.compile("slices")
    job = s.hale_start(3, exe, 20003, options=audited(time="1h"))
    at = visited(job)
    r = job.wait()
    audits = s.report()["audits"]
    expect(r.status == 0 and [a["rank"] for a in audits] == [at["main"]["rank"]], r, audits)
    expect(audits[0]["result"] in ("agreed", "cut short") and s.report()["audit_count"] == 1, audits)


@test
def whoever_dies_during_a_visit_costs_nothing(s):
    """The twin, the witness, the rank itself: its rank goes on in another process, and the next visit comes."""
    exe = s.compile("storm")
    plain = s.hale_run(3, exe, 400)
    for victims in ["twin"], ["witness"], ["main"], ["main", "twin"]:
        job = s.hale_start(3, exe, 400, options=audited(time="20s"))
        at = visited(job)
        for victim in victims:
            os.kill(at[victim]["pid"], signal.SIGKILL)
        job.until_says("goes on")
        r = job.wait()
        expect(r.status == 0 and r.out == plain.out and "roll" not in r.err, r, plain)
        expect(results(s)[0] == "cut short" and s.report()["restarts"] == 0, s.report())
    job = s.hale_start(3, exe, 400, options=audited(time="20s", spares=1) + ["--agent-lost", "end"])
    at = visited(job)
    os.kill(agent_of(nodes(s, job)["node3"]["pid"]), signal.SIGKILL)  # where no rank is, but a copy
    r = job.wait()
    expect(r.status == 0 and r.out == plain.out and "node3 is lost" in r.err, r, plain)
    expect("node3" in (at["twin"]["node"], at["witness"]["node"]) and results(s)[0] == "cut short", at, s.report())


@test
def rank_and_twin_die_a_moment_apart(s):
    """The witness stays for half a second after the twin's death: what has killed one kills others, too."""
    exe = s.compile("storm")
    plain = s.hale_run(3, exe, 400)
    for _ in range(5):
        job = s.hale_start(3, exe, 400, options=audited(time="20s"))
        at = visited(job)
        begun = time.monotonic()
        os.kill(at["twin"]["pid"], signal.SIGKILL)
        time.sleep(0.15)  # the head looks every 50 ms
        os.kill(at["main"]["pid"], signal.SIGKILL)
        apart = time.monotonic() - begun
        r = job.wait()
        if apart < 0.4:  # or else this machine was too busy to kill them a moment apart
            expect(r.status == 0 and r.out == plain.out and "roll" not in r.err, apart, r, plain)
            return
    expect(False, "the two could not be killed within 0.4 s", apart)


@test
def a_rank_that_is_not_visited_goes_back_to_a_checkpoint(s):
    """As in a job without audits; then the visits go on."""
    exe = s.compile("storm")
    plain = s.hale_run(3, exe, 400)
    job = s.hale_start(3, exe, 400, options=audited("--ckpt-every", "300ms", time="300ms"))
    at = visited(job)
    job.until(s.complete, "a checkpoint is there")
    other = [r for r in job.info()["ranks"] if r["role"] == "main" and r["rank"] != at["main"]["rank"]][0]
    os.kill(other["pid"], signal.SIGKILL)
    r = job.wait()
    expect(r.status == 0 and r.out == plain.out and ("rolling back" in r.err or "goes on" in r.err), r, plain)
    report = s.report()
    expect("agreed" in results(s) and report["checkpoints"] and all(c["pause_seconds"] < 5 for c in report["checkpoints"]), report)


@test
def what_makes_no_sense_is_refused(s):
    for options, words in ((["--audit", "soon"], "100ms"), (["--audit", "1s", "--replicas", "2"], "by itself"),
                           (["--audit", "1s", "--sdc", "hash"], "by itself"), (["--audit", "1s", "--shadows", "1"], "by itself"),
                           (["--audit", "1s", "--no-mpi"], "--audit needs MPI"), (["--audit", "1s", "--tasks"], "--audit and"),
                           (["--inject", "flip:node=node0,where=memory,after=1s", "--audit", "1s"], "where=result"),
                           (["--inject", "flip:where=result,after=1s", "--audit", "1s"], "node="),
                           (["--inject", "flip:rank=0,where=result,after=1s"], "--audit")):
        r = s.hale_run(2, "/bin/true", options=options)
        expect(r.status == EXIT_USAGE and words in r.err, options, r)
    exe = s.compile("storm")
    job = s.hale_start(3, exe, 400, options=audited())
    visited(job)
    r = s.hale("replicate", job.id(), "--to", "2")
    expect(r.status != 0 and "is audited" in r.err, r)
    r = s.hale("inject", "flip", job.id(), "--node", "mars", "--where", "result")
    expect(r.status != 0 and "no node mars" in r.err, r)
    job.kill(signal.SIGTERM)
    job.wait()


main()
