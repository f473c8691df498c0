#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Ranks die, at any moment; the job rolls back by itself and ends right."""

from lib import *

STEPS = 2500
RUNS = 20 if LONG else 6


def lmp(steps=STEPS):
    return ["lmp", "-log", "none", "-in", os.path.join(ROOT, "tests/data/in.melt"), "-var", "steps",
            str(steps)]


def reference(s, argv):
    """Undisturbed, with checkpoints: thermo lines and wall seconds."""
    r = s.hale_run(4, *argv, options=["--ckpt-every", "300ms", "--report", "report.json"])
    expect(r.status == 0, r)
    shutil.rmtree(s.path("hale-ckpt"), ignore_errors=True)
    return thermo(r.out), s.report()["wall_seconds"]


def kill_when(job, pid, seconds):
    """SIGKILL to pid when the job is so old, unless it is over before."""
    end = time.monotonic() + seconds
    while job.running() and time.monotonic() < end:
        time.sleep(0.002)
    try:
        os.kill(pid, signal.SIGKILL)
        return True
    except ProcessLookupError:
        return False


@test
def lammps_ends_right_whichever_rank_is_killed_whenever(s):
    have("lmp")
    rng = random.Random(SEED)
    wanted, wall = reference(s, lmp())
    restarts = during = 0
    for run in range(RUNS):
        options = ["--ckpt-every", "300ms", "--report", "report.json", "--seed", run + 1]
        in_checkpoint = run % 3 == 2
        if in_checkpoint:
            n = rng.randint(1, 4)
            options += ["--inject", f"kill:rank=any,at-ckpt={n}"]
        job = s.hale_start(4, *lmp(), options=options)
        if not in_checkpoint:
            pids = job.ranks(4)
            kill_when(job, pids[rng.randrange(4)], rng.uniform(0, 0.7 * wall))
        r = job.wait()
        about = f"run {run}, seed {SEED}"
        expect(r.status == 0, about, r)
        expect(thermo(r.out) == wanted, about + ": other thermo lines", r, "\n".join(wanted))
        report = s.report()
        restarts += report["restarts"]
        during += in_checkpoint and report["restarts"] > 0
        shutil.rmtree(s.path("hale-ckpt"), ignore_errors=True)
    expect(restarts >= RUNS // 2, f"only {restarts} restarts in {RUNS} runs")
    return f"{RUNS} runs, {restarts} rollbacks, {during} killed in a checkpoint"


@test
def a_rank_killed_while_the_job_restarts_is_one_more_rollback(s):
    have("lmp")
    wanted, wall = reference(s, lmp())
    r = s.hale_run(4, *lmp(), options=["--ckpt-every", "300ms", "--report", "report.json",
                                       "--inject", "kill:rank=2,after=1s",
                                       "--inject", "kill:rank=1,at-restart=1"])
    expect(r.status == 0, r)
    expect(thermo(r.out) == wanted, r)
    report = s.report()
    expect(report["restarts"] == 2, report)
    expect({f["rank"] for f in report["failures"]} >= {1, 2}, report)


@test
def two_ranks_killed_at_once_are_one_rollback(s):
    exe = s.compile("steps")
    wanted = s.hale_run(4, exe, "60", "20")
    expect(wanted.status == 0, wanted)
    clean(s)
    job = s.hale_start(4, exe, "60", "20", options=["--ckpt-every", "200ms", "--report",
                                                    "report.json"])
    pids = job.ranks(4)
    job.until_output(r"rank 0 step 20 ")
    os.kill(job.pid, signal.SIGSTOP)  # or it ends the second one itself before we do
    try:
        for rank in (1, 3):
            os.kill(pids[rank], signal.SIGKILL)
    finally:
        os.kill(job.pid, signal.SIGCONT)
    r = job.wait()
    expect(r.status == 0, r)
    expect(sorted(r.out.splitlines()) == sorted(wanted.out.splitlines()), r)
    expect(s.report()["restarts"] == 1, s.report())


def clean(s):
    for old in glob.glob(s.path("log.*")) + glob.glob(s.path("state.*")):
        os.unlink(old)
    shutil.rmtree(s.path("hale-ckpt"), ignore_errors=True)


def files_of(s):
    return {os.path.basename(f): s.read(f)
            for f in glob.glob(s.path("log.*")) + glob.glob(s.path("state.*"))}


@test
def after_rollbacks_output_comes_once_and_files_are_as_without(s):
    exe = s.compile("steps")
    undisturbed = s.hale_run(4, exe, "80", "20")
    expect(undisturbed.status == 0, undisturbed)
    files = files_of(s)
    clean(s)
    job = s.hale_start(4, exe, "80", "20", options=["--ckpt-every", "250ms", "--report",
                                                    "report.json"])
    for rank, step in ((2, 20), (0, 45), (3, 65)):
        job.until_output(rf"rank 1 step {step} ")
        os.kill(job.ranks(4)[rank], signal.SIGKILL)
    r = job.wait()
    expect(r.status == 0, r)
    for rank in range(4):
        mine = [x for x in r.out.splitlines() if x.startswith(f"rank {rank} ")]
        theirs = [x for x in undisturbed.out.splitlines() if x.startswith(f"rank {rank} ")]
        expect(mine == theirs, f"rank {rank} printed something else", r)
    expect(sorted(r.out.splitlines()) == sorted(undisturbed.out.splitlines()), r)
    for name, text in files.items():
        expect(files_of(s).get(name) == text, f"{name} is not what it should be", text, "--- but:",
               files_of(s).get(name), r)
    expect(s.report()["restarts"] >= 2, s.report())


@test
def before_the_first_checkpoint_the_job_starts_from_the_beginning(s):
    exe = s.compile("steps")
    wanted = s.hale_run(3, exe, "30", "20")
    clean(s)
    job = s.hale_start(3, exe, "30", "20", options=["--ckpt-every", "1h", "--report",
                                                    "report.json"])
    pids = job.ranks(3)
    job.until_output(r"rank 0 step 10 ")
    os.kill(pids[1], signal.SIGKILL)
    r = job.wait()
    expect(r.status == 0, r)
    expect(sorted(r.out.splitlines()) == sorted(wanted.out.splitlines()), r)
    expect(s.report()["restarts"] == 1, s.report())


@test
def a_job_that_takes_no_checkpoints_ends_and_says_why(s):
    exe = s.compile("steps")
    job = s.hale_start(3, exe, "0", "20", options=["--report", "report.json"])
    pids = job.ranks(3)
    job.until_output(r"rank 0 step 10 ")
    os.kill(pids[1], signal.SIGKILL)
    r = job.wait()
    expect(r.status == 137, r)
    expect(re.search(r"^hale: rank 1 .*checkpoint", r.err, re.M), r)
    failures = s.report()["failures"]
    expect(failures[0]["rank"] == 1, failures)


@test
def more_deaths_than_max_restarts_end_the_job_with_70(s):
    exe = s.compile("steps")
    job = s.hale_start(2, exe, "0", "20", options=["--ckpt-every", "200ms", "--max-restarts", "1",
                                                   "--report", "report.json"])
    for restart in range(2):
        job.until(s.complete, "a checkpoint")
        time.sleep(0.5)
        os.kill(job.ranks(2)[1], signal.SIGKILL)
        if restart == 0:
            job.until_says(r"hale: ")
            job.until(lambda: len(job.ranks(2)) == 2, "the job runs again")
    r = job.wait()
    expect(r.status == EXIT_UNRECOVERED, r)
    expect("max-restarts" in r.err, r)
    expect(s.report()["exit"] == EXIT_UNRECOVERED, s.report())


@test
def jacobi_in_numpy_rolls_back_to_the_same_bits(s):
    argv = [PYTHON, os.path.join(ROOT, "examples/jacobi.py"), "1500"]
    wanted = s.hale_run(4, *argv)
    expect(wanted.status == 0, wanted)
    job = s.hale_start(4, *argv, options=["--ckpt-every", "400ms", "--report", "report.json"])
    pids = job.ranks(4)
    job.until_output("iteration 800:")
    os.kill(pids[2], signal.SIGKILL)
    r = job.wait()
    expect(r.status == 0, r)
    expect(r.out == wanted.out, r, wanted)
    expect(s.report()["restarts"] == 1, s.report())


@test
def a_fault_can_be_injected_at_a_call(s):
    exe = s.compile("steps")
    wanted = s.hale_run(3, exe, "60", "10")
    clean(s)
    r = s.hale_run(3, exe, "60", "10",
                   options=["--ckpt-every", "200ms", "--report", "report.json", "--inject",
                            "kill:rank=1,at-call=MPI_Allreduce:40"])
    expect(r.status == 0, r)
    expect(sorted(r.out.splitlines()) == sorted(wanted.out.splitlines()), r)
    report = s.report()
    expect(report["restarts"] == 1 and report["failures"][0]["rank"] == 1, report)


main()
