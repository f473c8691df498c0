#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""One-sided calls and persistent requests inside tasks that are executed again: they take effect once."""

from tasks_parts import *

RANKS = 3


def same_with_errors(s, exe, mode, *argv, options=(), env=TWO, random=True, **more):
    plain = s.hale("run", "-n", RANKS, *options, exe, mode, *argv, env=env)
    expect(plain.status == 0 and plain.out.count(mode) == 2 * RANKS, plain)
    dues = ["prob=1,at=end", f"prob=0.6,seed={SEED},at=end,times=2"]
    if random:
        dues.append(f"prob=0.8,seed={SEED},at=random,times=2")
    for due in dues:
        r, t = tasks(s, exe, mode, *argv, due=due, ranks=RANKS, options=options, env=env, **more)
        expect(r.out == plain.out, due, r, plain)
        expect(t["reexecuted"] == t["struck"] > 0 and t["fell_back"] == 0, due, t)
        expect("prob=1" not in due or t["reexecuted"] == t["run"], due, t)
        expect(t["replayed"] > 0, due, t)


@test
def windows_change_once(s):
    exe = build(s, "tasks_calls", mpi=True)
    for mode in ("fences", "locks", "posts"):
        # shared memory, copies between processes, messages (two nodes; copies forbidden)
        for window, options, env in (("shared", (), {}), ("private", (), {}), ("private", ("--nodes", 2), {}),
                                     ("private", (), {"HALE_SHM_CMA": "0"})):
            same_with_errors(s, exe, mode, window, options=options, env={**TWO, **env})


@test
def persistent_requests_start_once(s):
    exe = build(s, "tasks_calls", mpi=True)
    for options in ((), ("--nodes", 2)):
        # before a task has waited for what was begun outside of it, it can't be executed again
        same_with_errors(s, exe, "persistent", options=options, random=False)


@test
def partitions_are_ready_once(s):
    exe = build(s, "tasks_calls", mpi="mpich")
    same_with_errors(s, exe, "partitioned")


@test
def requests_are_completed_in_the_same_order(s):
    exe = build(s, "tasks_calls", mpi=True)
    for due in ("prob=1,at=end", f"prob=0.5,seed={SEED},at=random,times=3"):
        r, t = tasks(s, exe, "first", due=due, ranks=RANKS)
        expect(r.out.count("first") == RANKS and t["reexecuted"] > 0 and t["fell_back"] == 0, r, t)


@test
def what_others_may_have_changed_rolls_the_job_back(s):
    exe = build(s, "tasks_calls", mpi=True)
    for mode, said in (("reads", "into which others have written"), ("writes", "into whose data others write")):
        plain, t = tasks(s, exe, mode, ranks=2)
        expect(t["fell_back"] == 0 and f"{mode} 0 {3 if mode == 'reads' else 1}" in plain.out, plain)
        r, t = tasks(s, exe, mode, due="prob=1", ranks=2, status=128 + 7)
        expect(said in r.err and t["fell_back"] >= 1, r)


main()
