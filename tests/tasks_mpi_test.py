#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""MPI inside tasks: a task that is executed again gets its messages again and sends none twice."""

from tasks_parts import *

RANKS = 3


@test
def messages_come_again_and_none_leaves_twice(s):
    exe = build(s, "tasks_mpi", mpi=True)
    for mode in ("ring", "requests", "unknown", "collectives", "crossing"):
        plain = s.hale("run", "-n", RANKS, exe, mode, env=TWO)
        expect(plain.status == 0 and plain.out.count(mode) == 2 * RANKS, plain)
        for due in (f"prob=1,seed={SEED},at=end", f"prob=0.8,seed={SEED},at=random,times=2"):
            r, t = tasks(s, exe, mode, due=due, ranks=RANKS)
            expect(r.out == plain.out, due, r, plain)
            expect(t["reexecuted"] == t["struck"] > 0 and t["fell_back"] == 0, t)
            if "end" in due:
                expect(t["reexecuted"] == t["protected"] == t["run"], t)
                expect(t["replayed"] > 0 and t["skipped"] > 0, t)
            expect(t["log_bytes"] > t["log_peak_bytes"] > 0, t)


@test
def a_request_of_nobody_s_task_is_completed_again(s):
    exe = build(s, "tasks_mpi", mpi=True)
    plain = s.hale("run", "-n", RANKS, exe, "outside", env=TWO)
    r, t = tasks(s, exe, "outside", due="prob=1", ranks=RANKS)
    expect(plain.status == 0 and r.out == plain.out and t["reexecuted"] == t["run"], r, plain, t)


@test
def messages_are_kept_until_a_task_s_data_have_been_copied(s):
    exe = build(s, "tasks_mpi", mpi=True)
    plain = s.hale("run", "-n", 2, exe, "late", env=TWO)
    expect(plain.status == 0 and plain.out.count("late") == 2, plain)
    r, t = tasks(s, exe, "late", settings="inputs:keep", due="prob=0.3,at=page,seed=2", ranks=2)
    expect(r.out == plain.out and t["mended"] > 0 and t["replayed"] > 0 and t["fell_back"] == 0, r, plain, t)


@test
def calls_that_can_not_be_repeated_are_named(s):
    exe = build(s, "tasks_mpi", mpi=True)
    plain, t = tasks(s, exe, "window", ranks=2)
    expect("window 1 1" in plain.out and t["fell_back"] == 0, plain)
    r, t = tasks(s, exe, "window", due="prob=1", ranks=2, status=128 + 7)
    expect("has called MPI_Win_create" in r.err and t["fell_back"] >= 1, r)


@test
def logs_have_a_bound(s):
    exe = build(s, "tasks_mpi", mpi=True)
    r, t = tasks(s, exe, "ring", settings="log:100K", ranks=2)
    expect(r.status == 0 and t["log_peak_bytes"] <= 2 * 100 * 1024, t)
    r, t = tasks(s, exe, "ring", settings="log:100K", due="prob=1", ranks=2, status=128 + 7)
    expect("--tasks=log:" in r.err, r)


@test
def jobs_roll_back_from_what_tasks_can_not_mend(s):
    exe = build(s, "tasks_mpi", mpi=True)
    plain = s.hale("run", "-n", RANKS, exe, "all", env=TWO)
    # a few tasks are struck as often as they are executed
    r, t = tasks(s, exe, "all", settings="retries:1", due="prob=0.004,times=2,seed=5", ranks=RANKS,
                 options=("--ckpt-every", "50ms", "--ckpt-dir", s.path("ckpt")))
    expect(r.out == plain.out and t["fell_back"] > 0, r, plain, t)
    # ranks die among tasks that are executed again
    r, t = tasks(s, exe, "all", due=f"prob=0.5,seed={SEED}", ranks=RANKS,
                 options=("--ckpt-every", "100ms", "--ckpt-dir", s.path("ckpt2"), "--inject", "kill:rank=1,after=300ms",
                          "--inject", "kill:rank=any,at-ckpt=3"))
    expect(r.out == plain.out and s.report()["restarts"] >= 1 and t["reexecuted"] > 0, r, plain, t)


@test
def a_run_s_coverage_goes_into_advice(s):
    exe = build(s, "tasks_mpi", mpi=True)
    r, t = tasks(s, exe, "ring", ranks=2)
    options = ("--report", "report.json", "--mttf", "1h", "--hours", "10h", "--ckpt-cost", "2s", "--restart-cost", "4s")
    a = json.loads(s.hale("advise", *options, "--json").out)
    coverage = min(t["coverage"], 0.999)
    expect(abs(a["tasks"]["coverage"] - coverage) < 1e-6 and a["tasks"]["measured"] and a["tasks"]["waste"] < 1, a, t)
    both = {c["name"]: c["interval_s"] for c in a["choices"]}
    # eq. 18; the advisor's intervals are those of the exact minimum, a little above or below
    ratio = both["tasks + checkpoints"] / both["checkpoints"]
    expect(abs(ratio * (1 - coverage) ** 0.5 - 1) < 0.1, ratio, a)
    c, mu, left = 2.0, 1 / 3600, 1 - coverage
    score = (1 - left ** 0.5) * (2 * c * mu) ** 0.5 + coverage * mu * 4 - a["tasks"]["waste"]
    expect(abs(a["tasks"]["score"] - score) < 1e-3, a, score)
    text = s.hale("advise", *options)
    expect("as measured" in text.out and "score S" in text.out, text)


main()
