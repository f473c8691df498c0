#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""`hale run --tasks`: tasks that memory errors strike are executed again; the result is the same."""

from attach_parts import attach, kill_head
from tasks_parts import *


@test
def a_product_is_the_same_with_any_share_of_its_tasks_struck(s):
    exe = build(s)
    plain = s.run(exe, "product", env=TWO)
    expect(plain.status == 0 and "product" in plain.out, plain)
    struck = []
    for at in ("end", "random"):
        for share in ("10%", "0.25", "50%", "0.75", "1"):
            r, t = tasks(s, exe, "product", due=f"prob={share},seed={SEED},at={at}")
            expect(r.out == plain.out, f"prob={share},at={at}", r)
            expect(t["run"] == t["protected"] == 216 and t["fell_back"] == 0, t)
            expect(t["struck"] == t["reexecuted"], t)
            struck.append(t["reexecuted"])
    # the same seed strikes the same tasks, wherever in them
    expect(struck[:5] == struck[5:] and struck[4] == 216 and 0 < struck[0] < struck[1] < struck[3] < 216, struck)
    r, t = tasks(s, exe, "product")
    expect(t["reexecuted"] == 0 and t["copied_bytes"] >= 216 * 8192, t)
    expect(0 < t["checkpoint_bytes"] < 1 << 20 and t["seconds"]["protected"] > 0, t)
    r, t = tasks(s, exe, "product", settings="protect:none")
    expect(t["protected"] == 0 and t["unprotected"]["chosen"] == 216, t)


@test
def a_task_is_executed_again_as_often_as_retries_says(s):
    exe = build(s)
    plain = s.run(exe, "product", env=TWO)
    r, t = tasks(s, exe, "product", settings="retries:3", due=f"prob=10%,times=3,seed={SEED}")
    expect(r.out == plain.out and t["reexecuted"] % 3 == 0 and t["reexecuted"] > 0, r, t)
    r, t = tasks(s, exe, "product", settings="retries:2", due=f"prob=10%,times=3,seed={SEED}", status=128 + 7)
    expect("executed again already" in r.err and t["fell_back"] >= 1, r, t)
    r, t = tasks(s, exe, "product", settings="retries:0", due="prob=10%", status=128 + 7)
    expect("retries:0" in r.err, r)


@test
def errors_are_mended_where_there_are_copies(s):
    exe = build(s)
    plain = s.run(exe, "nowhere", env=TWO)
    for place in ("checker", "written", "unlocked"):
        r, t = tasks(s, exe, place)
        expect(r.out.split()[:2] == [place, "2"] and r.out.split()[2] == plain.out.split()[2], r, plain)
        expect(t["reexecuted"] == 1 and t["mended"] == (place == "written"), t)


@test
def tasks_that_make_tasks_are_executed_again_with_them(s):
    exe = build(s)
    for threads in (1, 2, 4):
        env = {"OMP_NUM_THREADS": str(threads)}
        plain = s.run(exe, "family", env=env)
        expect(plain.status == 0 and "family" in plain.out, plain)
        for due in ("prob=0.3,seed=1", "prob=0.5,seed=2,at=random", "prob=1", "prob=0.1,times=2,seed=3"):
            for settings in ("", "inputs:keep"):
                r, t = tasks(s, exe, "family", due=due, env=env, settings=settings)
                expect(r.out == plain.out, threads, due, settings, r, plain)
                expect(t["reexecuted"] == t["struck"] > 0 and t["fell_back"] == 0, t)


@test
def an_error_in_the_middle_of_making_a_task_leaves_nothing_to_wait_for(s):
    exe = build(s)
    for threads in (1, 2):
        env = {"OMP_NUM_THREADS": str(threads)}
        plain = s.run(exe, "making", env=env)
        expect(plain.status == 0 and "making" in plain.out, plain)
        r, t = tasks(s, exe, "making", settings="retries:5", env=env)
        expect(r.out == plain.out and t["reexecuted"] == t["struck"] == 2, r, plain, t)


@test
def what_is_known_of_a_task_may_be_lost_itself(s):
    r, t = tasks(s, build(s), "record", status=128 + 7)
    expect("in what is needed to execute a task again" in r.err and t["fell_back"] >= 1, r, t)


@test
def copies_that_are_lost_themselves_roll_the_job_back(s):
    exe = build(s)
    r, t = tasks(s, exe, "product", due="prob=0.1,at=copy", status=128 + 7)
    expect("in the copies of a task's data" in r.err and t["fell_back"] >= 1, r, t)
    r, t = tasks(s, exe, "product", due="prob=0.02,at=copy", settings="inputs:keep", status=128 + 7)
    expect("in the copies of a task's data" in r.err and t["fell_back"] >= 1, r, t)


@test
def errors_elsewhere_end_the_process_with_a_sentence(s):
    exe = build(s)
    for place, why in (("outside", "outside of tasks"), ("beside", "data that no task declares"),
                       ("lock", "holds a lock"), ("parent", "write more than it declares"),
                       ("inner", "a parallel region inside"), ("mutex", "holds a lock"), ("timed", "holds a lock"),
                       ("mtx", "holds a lock"), ("try", "holds a lock"), ("always", "again already")):
        r, t = tasks(s, exe, place, status=128 + 7)
        expect(why in r.err and "checkpoint" in r.err, r)
        expect(t["fell_back"] == 1, t)


@test
def tasks_that_can_not_be_protected_run_and_are_reported(s):
    exe = build(s)
    plain = s.run(exe, "kinds", env=TWO)
    for due in (None, "prob=1"):
        r, t = tasks(s, exe, "kinds", due=due)
        expect(r.out == plain.out, r, plain)
        # of the protected ones all, and only these, are struck
        expect(t["protected"] == 9 and t["reexecuted"] == (9 if due else 0), t)
        u = t["unprotected"]
        expect(u["no_depend"] == 176 and u["undeferred"] == 8 and u["untied"] == 8 and u["taskloop"] == 1, t)


@test
def programs_of_gcc_are_told_what_to_do(s):
    exe = build(s, cc="gcc")
    plain = s.run(exe, "product", env=TWO)
    r, t = tasks(s, exe, "product")
    expect(r.out == plain.out and "clang -fopenmp" in r.err and t["protected"] == 0, r)


@test
def tasks_of_our_own_runtime_keep_their_order(s):
    exe = build_own(s)
    for threads in (1, 2, 4):
        env = {"HALE_TASK_THREADS": str(threads)}
        for seed in range(SEED, SEED + 3):
            plain = s.run(exe, "random", seed, env=env)
            expect(plain.status == 0 and "random" in plain.out, plain)
            for due in (f"prob=0.5,seed={seed}", f"prob=0.9,seed={seed},at=random"):
                r, t = tasks(s, exe, "random", seed, due=due, env=env)
                expect(r.out == plain.out and t["run"] == t["protected"] == 3000, r, plain, t)
                expect(t["reexecuted"] == t["struck"] > 100, t)
            r, t = tasks(s, exe, "raising", seed, env=env)
            expect(r.out == plain.out and t["reexecuted"] == t["struck"] == 750, r, plain, t)
        plain = s.run(exe, "nested", env=env)
        r, t = tasks(s, exe, "nested", env=env)
        expect(plain.status == 0 and r.out == plain.out and t["run"] == t["protected"] == 94, r, plain, t)
        for due in ("prob=1", f"prob=0.3,seed={SEED},at=random", f"prob=0.5,seed={SEED},times=2"):
            r, t = tasks(s, exe, "nested", due=due, env=env)
            expect(r.out == plain.out and t["reexecuted"] == t["struck"] > 0, r, plain, t)
    expect(s.run(exe, "refused").status == 0)


@test
def pages_lost_anywhere_are_put_back_for_all_readers(s):
    exe = build(s)
    plain = s.run(exe, "product", env=TWO)
    mended = 0
    for seed in range(1, 9):
        r = s.hale("run", "--tasks=inputs:keep", "--inject", f"due:prob=0.005,at=page,seed={seed}", "--report",
                   "report.json", exe, "product", env=TWO)
        expect(r.status == 0 and r.out == plain.out, r, plain)
        mended += s.report()["tasks"]["mended"]
    expect(mended > 0, "none of eight pages was put back")
    # twins: two tasks meet the same lost page at once; last: nobody but the copy at a task's end meets it
    for mode in ("twins", "last"):
        plain = s.run(exe, mode, env=TWO)
        for seed in range(1, 4):
            r, t = tasks(s, exe, mode, settings="inputs:keep", due=f"prob=0.3,at=page,seed={seed}")
            expect(r.out == plain.out and t["mended"] > 0, r, plain, t)
    # without copies of what is only read they roll the job back
    r, t = tasks(s, exe, "product", due="prob=0.05,at=page,seed=3", status=128 + 7)
    expect("declares" in r.err or "copies" in r.err or "outside" in r.err, r)


@test
def writes_that_are_not_declared_are_found(s):
    exe = build(s)
    plain = s.run(exe, "undeclared", env=TWO)
    r, t = tasks(s, exe, "undeclared", settings="check:writes")
    with open(os.path.join(ROOT, "tests", "programs", "tasks_tour.c")) as f:
        line = 1 + next(i for i, text in enumerate(f) if "inout : said" in text and "firstprivate" in text)
    expect(r.out == plain.out and f"tasks_tour.c:{line} (undeclared)" in r.err, r)
    expect(f"tasks_tour.c:{line - 2} " not in r.err and 1 <= r.err.count("does not declare") <= 3, r)
    r, t = tasks(s, exe, "product", settings="check:writes")
    expect("does not declare" not in r.err and t["protected"] == 216, r)


@test
def ranges_that_are_no_memory_are_no_reason_to_die(s):
    exe = build(s)
    plain = s.run(exe, "nothere", env=TWO)
    r, t = tasks(s, exe, "nothere")
    expect(r.out == plain.out and r.err.count("declare") == 1 and "(nothere)" in r.err, r, plain)
    expect(t["protected"] == 0 and t["unprotected"]["ranges"] >= 1, t)


@test
def errors_can_be_asked_for_while_the_job_runs(s):
    exe = build(s)
    stop = s.path("stop")
    job = s.start(HALE, "run", "--tasks", "--report", "report.json", "--ckpt-dir", s.path("ckpt"), "--", exe, "until",
                  stop, env=TWO)
    job.until_output("begun")
    name = job.id()
    job.checkpoint()
    r = s.hale("inject", "due", name, "--task-prob", "25%", "--seed", SEED)
    expect(r.status == 0, r)
    job.until_output("struck")
    # back to before that was asked for: the head says it again
    os.kill(job.ranks()[0], signal.SIGKILL)
    open(stop, "w").close()
    r = job.wait()
    expect(r.status == 0 and r.out == "begun\nstruck\nstopped\n", r)
    report = s.report()
    t, u = report["tasks"], report["unified"]
    expect(report["restarts"] == 1 and t["reexecuted"] == t["struck"] > 0 and t["fell_back"] == 0, t)
    # eq. 18, with the half of all failures that are taken for memory errors
    expect(0 < u["coverage"] < 1 and u["interval_seconds"] >= u["system_interval_seconds"] > 0, u)
    expect(u["score"] < 1 and u["due_rate_hz"] > 0 and u["task_waste"] > 0, u)
    for options, said in ((("--task-prob", "2"), "due:prob=P"), ((), "--task-prob"), (("--task-prob",), "no value"),
                          (("--task-prob", "1", "--at", "once"), "due:prob=P")):
        r = s.hale("inject", "due", *options)
        expect(r.status == EXIT_USAGE and said in r.err, r)
    os.remove(stop)
    job = s.start(HALE, "run", "--no-mpi", "--", exe, "until", stop, env=TWO)
    job.until_output("begun")
    r = s.hale("inject", "due", job.id(), "--task-prob", "1")
    expect(r.status == 1 and "--tasks" in r.err, r)
    job.kill()
    job.wait()


@test
def another_head_knows_of_errors_that_were_asked_for(s):
    exe = build(s)
    stop = s.path("stop")
    job = s.start(HALE, "run", "--tasks", "--head-grace", "60s", "--report", "report.json", "--ckpt-dir",
                  s.path("ckpt"), "--", exe, "until", stop, env=TWO)
    job.until_output("begun")
    job.name = job.id()
    job.checkpoint()
    r = s.hale("inject", "due", job.name, "--task-prob", "25%", "--seed", SEED)
    expect(r.status == 0, r)
    job.until_output("struck")
    rank = job.ranks()[0]
    kill_head(s, job)
    two = attach(s, job)
    # back to before that was asked for: only the new head can say it again, and the program waits for it
    os.kill(rank, signal.SIGKILL)
    two.until_says("all ranks run again")
    open(stop, "w").close()
    r = two.wait()
    expect(r.status == 0 and job.out() + r.out == "begun\nstruck\nstopped\n", job.out(), r)
    report = s.report()
    expect(report["restarts"] == 1 and report["tasks"]["reexecuted"] > 0, report)
    # it knows of --tasks, too
    os.remove(stop)
    job = s.start(HALE, "run", "--tasks", "--head-grace", "60s", "--ckpt-dir", s.path("ckpt2"), "--", exe, "until",
                  stop, env=TWO)
    job.until_output("begun")
    job.name = job.id()
    kill_head(s, job)
    two = attach(s, job)
    r = s.hale("inject", "due", job.name, "--task-prob", "25%")
    expect(r.status == 0, r)
    two.until_output("struck")
    open(stop, "w").close()
    expect(two.wait().status == 0, two.result())


@test
def bad_settings_are_refused(s):
    for option, said in (("--tasks=retries:x", "retries:R"), ("--tasks=protect:some", "all|auto|none"),
                         ("--tasks=retries", "retries:R"), ("--tasks=residual:2", "residual:SHARE")):
        r = s.hale("run", option, "true")
        expect(r.status == EXIT_USAGE and said in r.err, r)
    for due in ("due:", "due:prob=2", "due:seed=1", "due:prob=0.5,at=once", "due:prob=1,times=0"):
        r = s.hale("run", "--tasks", "--inject", due, "true")
        expect(r.status == EXIT_USAGE and "due:prob=P" in r.err, r)
    r = s.hale("run", "--inject", "due:prob=0.1", "true")
    expect(r.status == EXIT_USAGE and "--tasks" in r.err, r)


main()
