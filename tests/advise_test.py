#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What the library counts of a program, and what hale advise makes of it. No test here looks at how
long something took: bench/advise compares predictions with runs."""

from lib import *

RANKS = 4


def counts(ranks, steps):
    """What tests/programs/counted.c does, by hand."""
    each = ranks * steps
    return {
        "messages": {"count": 5 * each, "bytes": (8 + 1000 + 100000 + 40 + 5000) * each,
                     "sizes": {64: (2 * each, 48 * each), 4096: (each, 1000 * each),
                               32768: (each, 5000 * each), 262144: (each, 100000 * each)}},
        "collectives": {"count": 3 * each, "bytes": 24 * each + 100 * steps},
        "calls": {"send": each, "isend": 2 * each + ranks, "recv": each,
                  "irecv": 2 * each + ranks, "sendrecv": each, "wait": 3 * each, "test": 0,
                  "probe": 0, "start": each, "collective": 3 * each, "other": 4 * ranks},
    }


def check_counts(profile, ranks, steps, *about):
    wanted = counts(ranks, steps)
    messages = profile["messages"]
    expect(messages["count"] == wanted["messages"]["count"], profile, *about)
    expect(messages["bytes"] == wanted["messages"]["bytes"], profile, *about)
    sizes = {c.get("up_to"): (c["count"], c["bytes"]) for c in messages["sizes"] if c["count"]}
    expect(sizes == wanted["messages"]["sizes"], sizes, *about)
    expect(profile["collectives"] == wanted["collectives"], profile["collectives"], *about)
    calls = {name: c["count"] for name, c in profile["calls"].items()}
    expect(calls == wanted["calls"], calls, *about)


def check_shares(profile):
    """What must hold of times, however long they are."""
    expect(profile["ranks"] == RANKS, profile)
    expect(0 < profile["mpi_seconds"] <= profile["app_seconds"], profile)
    sum_of_calls = sum(c["seconds"] for c in profile["calls"].values())
    expect(abs(sum_of_calls - profile["mpi_seconds"]) < 1e-6 + 1e-6 * sum_of_calls, profile)
    share = profile["mpi_seconds"] / profile["app_seconds"]
    expect(abs(profile["mpi_share"] - share) < 1e-9, profile)
    expect(profile["mpi_share_least"] <= share * (1 + 1e-9) and
           share <= profile["mpi_share_most"] * (1 + 1e-9), profile)
    # 000 eq. 3.1-3.3, with both kinds of nonblocking calls: C1 = C2 = 1/2
    calls = {name: c["seconds"] for name, c in profile["calls"].items()}
    half = (calls["sendrecv"] + calls["wait"] + calls["start"]) / 2
    send = (calls["send"] + calls["isend"] + half) / profile["mpi_seconds"]
    recv = (calls["recv"] + calls["irecv"] + half) / profile["mpi_seconds"]
    expect(abs(profile["f_send"] - send) < 1e-6 and abs(profile["f_recv"] - recv) < 1e-6, profile)
    expect(abs(profile["beta"] - min(send, recv) * share) < 1e-6, profile)


@test
def every_message_and_call_is_counted(s):
    exe = s.compile("counted")
    r = s.hale_run(RANKS, exe, "200", options=["--report", "report.json", "--profile", "p.json"])
    expect(r.status == 0, r)
    profile = s.report()["profile"]
    check_counts(profile, RANKS, 200)
    check_shares(profile)
    alone = s.report("p.json")
    expect(alone["messages"] == profile["messages"] and alone["calls"] == profile["calls"], alone)
    expect(alone["checkpoints"]["full"]["count"] == 0, alone)


@test
def counts_go_back_with_the_program(s):
    exe = s.compile("counted")
    r = s.hale_run(RANKS, exe, "600", "3",
                   options=["--ckpt-every", "100ms", "--report", "report.json",
                            "--inject", "kill:rank=1,at-ckpt=2", "--inject",
                            "kill:rank=2,at-ckpt=4", "--inject", "kill:rank=0,at-restart=1"])
    expect(r.status == 0, r)
    report = s.report()
    expect(report["restarts"] >= 2, report)
    check_counts(report["profile"], RANKS, 600, r)
    check_shares(report["profile"])
    full = report["profile"]["checkpoints"]["full"]
    done = [c for c in report["checkpoints"] if c["complete"]]
    expect(full["count"] == len(done), full, report["checkpoints"])
    expect(abs(full["bytes"] - sum(c["bytes"] for c in done) / len(done)) < 1, full)
    restarted = [f for f in report["failures"] if f["restart_seconds"] > 0]
    expect(report["profile"]["restarts"]["count"] == len(restarted) > 0, report)


@test
def a_restarted_job_goes_on_counting(s):
    exe = s.compile("counted")
    job = s.hale_start(RANKS, exe, "4000", "5")
    job.until_output("^step 20$")
    path = job.checkpoint()
    job.kill()
    job.wait()
    printed = len(re.findall("^step ", job.out(), re.M))
    expect(20 < printed < 4000, printed)
    again = s.start(HALE, "restart", "--profile", "p.json", path)
    pids = again.ranks(RANKS)
    expect(len(pids) == RANKS, pids)
    # the counters of a running job, read from outside
    before = s.hale("advise", again.id(), "--ckpt-cost", "1s", "--json")
    expect(before.status == 0, before)
    again.kill(signal.SIGTERM)
    again.wait()
    profile = s.report("p.json")
    steps = profile["calls"]["start"]["count"] / RANKS
    expect(steps >= 20 and profile["messages"]["count"] >= 5 * RANKS * 20, profile)


def advised(s, *argv):
    r = s.hale("advise", *argv, "--json")
    expect(r.status == 0, r)
    return json.loads(r.out)


@test
def printed_flags_can_be_run_and_others_are_marked(s):
    exe = s.compile("counted")
    r = s.hale_run(2, exe, "600", "2", options=["--ckpt-every", "60ms", "--incremental",
                                                "--report", "report.json"])
    expect(r.status == 0, r)
    # a machine on which everything is worth while
    machine = ["--mttf", "10min", "--hours", "1min", "--coverage", "50%"]
    advice = advised(s, "--report", "report.json", *machine)
    names = {c["name"] for c in advice["choices"]}
    expect(names >= {"none", "checkpoints", "2x", "2x + clone", "3x", "shadows", "2x of some + checkpoints",
                     "tasks + checkpoints"}, names)
    possible = [c["possible"] for c in advice["choices"]]
    expect(possible == sorted(possible, reverse=True), "what can be had comes first", possible)
    for group in (True, False):
        times = [c["time_s"]["value"] for c in advice["choices"] if "why" not in c and c["possible"] == group]
        expect(times == sorted(times), times)
    for c in advice["choices"]:
        if "--replicas" in c["flags"]:
            expect(not c["possible"], "with one node both replicas would be lost", c)
    for c in advice["choices"]:
        if "why" not in c:
            expect(c["loss"]["low"] <= c["loss"]["value"] <= c["loss"]["high"], c)
        shown = s.hale("run", "-n", 2, *c["flags"].split(), "--", exe, "20")
        if c["possible"]:
            expect(shown.status == 0, c, shown)
        elif re.fullmatch(r"--replicas [23](:\S+)?( --ckpt-every \S+)?", c["flags"]):  # they run, but a lost node ends all
            expect(shown.status == 0 and "share a node" in shown.err, c, shown)
        else:
            expect(shown.status == EXIT_USAGE, c, shown)
    for c in advised(s, "--report", "report.json", *machine, "--nodes", 3)["choices"]:
        if "why" not in c and c["possible"]:
            shown = s.hale("run", "-n", 3, "--nodes", 3, *c["flags"].split(), "--", exe, "20")
            expect(shown.status == 0, "what is offered for several nodes runs", c, shown)
    silent = advice["silent_errors"]
    expect([c["name"] for c in silent] == ["audits", "2x compared", "3x compared"], silent)
    expect(silent[0]["cost"] < silent[1]["cost"] < silent[2]["cost"] and silent[0]["found_s"] > 0, silent)
    for c in silent:
        shown = s.hale("run", "-n", 2, "--nodes", 2, *c["flags"].split(), "--", exe, "20")
        expect(shown.status == 0 and "silent" not in shown.err, c, shown)
    runnable = [c for c in advice["choices"] if c["possible"]]
    expect({c["name"] for c in runnable} >= {"none", "checkpoints"}, advice)
    text = s.hale("advise", "--report", "report.json")
    expect("MTTF of 50 y (assumed)" in text.out and "200 W a node (assumed)" in text.out, text)
    text = s.hale("advise", "--report", "report.json", *machine)
    expect("MTTF of 10.00 min, so" in text.out and text.out.count("(assumed)") == 1, text)
    expect(f"with this program on this machine: {runnable[0]['flags']}" in text.out, text)
    for c in advice["choices"]:
        if c["possible"]:
            expect(f"hale run -n 2 {c['flags']}".rstrip() + " -- PROGRAM" in text.out, c, text)


@test
def a_running_job_is_asked_for_a_checkpoint_first(s):
    exe = s.compile("counted")
    job = s.hale_start(2, exe, "100000", "2")
    job.until_output("^step 30$")
    r = s.hale("advise", job.id())
    expect(r.status == EXIT_USAGE and "hale ckpt" in r.err, r)
    job.checkpoint()
    advice = advised(s, job.id())
    expect(advice["program"]["ckpt_write_s"]["source"] == "once", advice)
    expect(advice["program"]["alpha"] > 0, advice)
    # with limits as wide as one measurement allows
    k = advice["program"]["ckpt_write_s"]
    expect(k["low"] < k["value"] < k["high"], k)
    job.kill(signal.SIGTERM)
    job.wait()


@test
def what_advise_cant_read_is_refused_by_a_sentence(s):
    good = {"ranks": 2, "app_seconds": 4, "mpi_seconds": 1, "mpi_share": 0.25,
            "mpi_share_least": 0.2, "mpi_share_most": 0.3, "f_send": 0.5, "f_recv": 0.4,
            "beta": 0.1, "checkpoints": {"full": {"count": 2, "bytes": 1e6, "pause_seconds": 0.01,
                                                  "write_seconds": 0.2, "write_deviation": 0.01,
                                                  "cost_seconds": 0.1, "cost_deviation": 0.01}}}
    s.write("good.json", json.dumps(good))
    expect(s.hale("advise", "--profile", "good.json").status == 0, good)
    cases = [
        (dict(good, mpi_share=1.5), "between 0 and 1"),
        (dict(good, ranks=0), "no profile"),
        (dict(good, checkpoints={}), "--ckpt-cost"),
        ({"exit": 0}, "MPI_Init"),
        ([], "no profile"),
    ]
    for content, sentence in cases:
        s.write("bad.json", json.dumps(content))
        r = s.hale("advise", "--profile", "bad.json")
        expect(r.status == EXIT_USAGE and sentence in r.err, content, r)
    s.write("bad.json", "{")
    for argv, sentence in [
            (["--profile", "bad.json"], "not JSON"),
            (["--profile", "good.json", "--nodes", "2.5"], "--nodes"),
            (["--profile", "good.json", "--mttf", "soon"], "--mttf"),
            (["--profile", "good.json", "--hours", "-1"], "--hours"),
            (["--profile", "good.json", "--by", "colour"], "time or energy"),
            (["--profile", "good.json", "--coverage", "100%"], "coverage"),
            (["--profile", "good.json", "--wrong", "1"], "--wrong"),
            (["--profile"], "--profile"),
            (["job", "--profile", "good.json"], "one of them")]:
        r = s.hale("advise", *argv)
        expect(r.status == EXIT_USAGE and sentence in r.err, argv, r)


main()
