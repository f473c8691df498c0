#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Ranks die, at any moment; the job rolls back by itself and ends right."""

from adopt_parts import agent_of, nodes
from lib import *
from steps_parts import end, files, goes_on, lines, no_files, stop, undisturbed, until_told

STEPS = 2500
RUNS = 20 if LONG else 3


def lmp(steps=STEPS):
    return ["lmp", "-log", "none", "-in", os.path.join(ROOT, "tests/data/in.melt"), "-var", "steps",
            str(steps)]


def reference(s, argv):
    """Its thermo lines, undisturbed, with checkpoints."""
    r = s.hale_run(4, *argv, options=["--ckpt-every", "300ms"])
    expect(r.status == 0, r)
    shutil.rmtree(s.path("hale-ckpt"), ignore_errors=True)
    return thermo(r.out)


def kill_at(job, pid, step, seconds):
    """SIGKILL to pid so long after that step was printed."""
    job.until(lambda: any(int(x) >= step for x in re.findall(r"^ +(\d+) ", job.out(), re.M)), f"step {step}")
    time.sleep(seconds)
    os.kill(pid, signal.SIGKILL)


@test
def lammps_ends_right_whichever_rank_is_killed_whenever(s):
    have("lmp")
    rng = random.Random(SEED)
    wanted = reference(s, lmp())
    restarts = during = 0
    for run in range(RUNS):
        options = ["--ckpt-every", "300ms", "--report", "report.json", "--seed", run + 1]
        in_checkpoint = run % 3 == 2
        if in_checkpoint:
            n = rng.randint(1, 3)
            options += ["--inject", f"kill:rank=any,at-ckpt={n}"]
        job = s.hale_start(4, *lmp(), options=options)
        if not in_checkpoint:
            pids = job.ranks(4)
            kill_at(job, pids[rng.randrange(4)], rng.uniform(0, 0.7) * STEPS, rng.uniform(0, 0.05))
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
    wanted = reference(s, lmp())
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
    job = s.hale_start(4, *until_told(s), options=["--ckpt-every", "200ms", "--report", "report.json"])
    pids = job.ranks(4)
    job.until(s.complete, "a checkpoint")
    os.kill(job.pid, signal.SIGSTOP)  # or it ends the second one itself before we do
    try:
        for rank in (1, 3):
            os.kill(pids[rank], signal.SIGKILL)
    finally:
        os.kill(job.pid, signal.SIGCONT)
    end(s, job, rollbacks=1)
    expect(s.report()["restarts"] == 1, s.report())


FAILS = """
import os, sys, time
me = int(os.environ["HALE_RANK"])
for i in range(200):
    if me == 0 and os.path.exists("fails"):
        sys.exit(1)
    time.sleep(0.01)
print("rank", me, flush=True)
"""


@test
def a_rank_that_fails_behind_the_death_of_another_is_a_rollback(s):
    """As one that writes to it. Its agent learns of both at once, and of the rank with the smaller number first."""
    job = s.hale_start(2, PYTHON, s.write("program.py", FAILS), options=["--no-mpi", "--ckpt-every", "200ms"])
    job.until(s.complete, "a checkpoint")
    (node,), ranks = nodes(s, job).values(), job.ranks(2)
    agent = agent_of(node["pid"])
    os.kill(agent, signal.SIGSTOP)
    os.kill(ranks[1], signal.SIGKILL)
    s.write("fails", "")
    job.until(lambda: not alive(ranks[0]) and not alive(ranks[1]), "both end")
    os.unlink(s.path("fails"))
    os.kill(agent, signal.SIGCONT)
    r = job.wait()
    expect(r.status == 0 and sorted(r.out.splitlines()) == ["rank 0", "rank 1"] and "rolling back" in r.err, r)


@test
def after_rollbacks_output_comes_once_and_files_are_as_without(s):
    job = s.hale_start(4, *until_told(s), options=["--ckpt-every", "250ms", "--report", "report.json"])
    job.until(s.complete, "a checkpoint")
    for n, rank in enumerate((2, 0, 3), 1):
        goes_on(job)
        os.kill(job.ranks(4)[rank], signal.SIGKILL)
        job.until(lambda: job.err().count("all ranks run again") >= n, f"rollback {n}")
    goes_on(job)
    r = stop(s, job)
    found = files(s.dir)
    count = len(re.findall("^rank 0 step", r.out, re.M))
    out, wanted = undisturbed(s, 4, count)
    for rank in range(4):
        mine = [x for x in r.out.splitlines() if x.startswith(f"rank {rank} ")]
        theirs = [x for x in out.splitlines() if x.startswith(f"rank {rank} ")]
        expect(mine == theirs, f"rank {rank} printed something else", r)
    expect(lines(r.out) == lines(out), r)
    for name, text in wanted.items():
        expect(found.get(name) == text, f"{name} is not what it should be", text, "--- but:",
               found.get(name), r)
    expect(s.report()["restarts"] == 3, s.report())


@test
def before_the_first_checkpoint_the_job_starts_from_the_beginning(s):
    job = s.hale_start(3, *until_told(s), options=["--ckpt-every", "1h", "--report", "report.json"])
    pids = job.ranks(3)
    job.until_output(r"rank 0 step 10 ")
    os.kill(pids[1], signal.SIGKILL)
    job.until_says("the beginning")
    end(s, job, ranks=3)
    expect(s.report()["restarts"] == 1, s.report())


@test
def a_job_whose_program_was_built_anew_does_not_begin_again_with_that(s):
    """It would print the rest of another program's output behind its own, and end well."""
    exe = s.compile("steps")
    shutil.copy2(exe, s.path("kept"))
    job = s.hale_start(2, exe, "200", "20", options=["--ckpt-every", "1h"])
    pids = job.ranks(2)
    job.until_output(r"rank 0 step 10 ")
    path = job.checkpoint()
    os.unlink(exe)
    shutil.copy("/bin/true", exe)
    os.kill(pids[1], signal.SIGKILL)
    r = job.wait()
    expect(r.status == EXIT_UNRECOVERED, r)
    expect("steps' is another program than the one that it began with" in r.err, r)
    os.replace(s.path("kept"), exe)
    rest = s.hale("restart", path)
    expect(rest.status == 0 and "rank 0 step 199 " in rest.out, rest)


@test
def the_next_head_knows_the_program_that_the_job_began_with(s):
    exe = s.compile("steps")
    one = s.hale_start(2, exe, "0", "20", options=["--ckpt-every", "1h", "--head-grace", "1min"])
    pids = one.ranks(2)
    name = one.id()
    one.until_output(r"rank 0 step 10 ")
    os.unlink(exe)
    shutil.copy("/bin/true", exe)
    one.kill()
    one.wait()
    two = s.start(HALE, "attach", name)
    two.until_says("has a head again")
    os.kill(pids[1], signal.SIGKILL)
    r = two.wait()
    expect(r.status == EXIT_UNRECOVERED, r)
    expect("steps' is another program than the one that it began with" in r.err, r)


def comm_of(pid):
    try:
        with open(f"/proc/{pid}/comm") as f:
            return f.read().strip()
    except OSError:
        return ""


@test
def a_job_does_not_begin_again_with_another_environment(s):
    """That of `hale attach`, without what -x had said, where head and node were lost one after the other."""
    one = s.hale_start(1, "/bin/sh", "-c", "echo $ANSWER >answer; until [ -e go ]; do sleep 0.1; done",
                       options=["--no-mpi", "--ckpt-every", "1h", "--head-grace", "1min", "-x", "ANSWER=42"])
    one.ranks(1)
    one.until(lambda: os.path.exists(s.path("answer")) and s.read("answer") == "42\n", "the answer")
    name = one.id()
    supervisor = [p for p in children(one.pid) if comm_of(p) == "hale-supervisor"][0]
    one.kill()
    one.wait()
    two = s.start(HALE, "attach", name)
    two.until_says("has a head again")
    os.kill(supervisor, signal.SIGKILL)
    r = two.wait()
    expect(r.status == EXIT_UNRECOVERED and "the environment (-x, and that of hale run)" in r.err, r)
    expect(s.read("answer") == "42\n", s.read("answer"))


@test
def a_signal_for_the_ranks_waits_until_they_are_back(s):
    """What was to become rank 0 had no handler yet, and the job ended as it had died of the same twice."""
    job = s.hale_start(1, PYTHON, "-c", "import os, signal, time\n"
                       "signal.signal(signal.SIGUSR2, lambda *a: print('got it', flush=True))\n"
                       "open('begun', 'w').close()\nwhile not os.path.exists('go'): time.sleep(0.02)\n",
                       options=["--no-mpi", "--ckpt-every", "1h", "--inject", "kill:rank=0,at-restart=1,signal=STOP"])
    job.until(lambda: os.path.exists(s.path("begun")), "the handler")
    job.checkpoint()
    pid = job.ranks(1)[0]
    os.kill(pid, signal.SIGKILL)
    name = job.until(lambda: (j := job.info()) and [r["state"] for r in j["ranks"]] == ["restoring"] and j["id"],
                     "what becomes rank 0")
    job.kill(signal.SIGUSR2)
    s.hale("ps", "--json")  # it has taken the signal
    for _ in range(2):
        s.hale("ps", "--json")
    os.kill(job.info()["ranks"][0]["pid"], signal.SIGCONT)
    job.until_says("all ranks run again")
    job.until_output("got it")
    s.write("go", "")
    r = job.wait()
    expect(r.status == 0 and r.out == "got it\n", name, r)


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
        os.kill(job.ranks(2)[1], signal.SIGKILL)
        if restart == 0:
            job.until_says("all ranks run again")
    r = job.wait()
    expect(r.status == EXIT_UNRECOVERED, r)
    expect("max-restarts" in r.err, r)
    expect(s.report()["exit"] == EXIT_UNRECOVERED, s.report())


@test
def jacobi_in_numpy_rolls_back_to_the_same_bits(s):
    argv = [PYTHON, os.path.join(ROOT, "examples/jacobi.py"), "1600"]
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
    no_files(s)
    r = s.hale_run(3, exe, "60", "10",
                   options=["--ckpt-every", "200ms", "--report", "report.json", "--inject",
                            "kill:rank=1,at-call=MPI_Allreduce:40"])
    expect(r.status == 0, r)
    expect(sorted(r.out.splitlines()) == sorted(wanted.out.splitlines()), r)
    report = s.report()
    expect(report["restarts"] == 1 and report["failures"][0]["rank"] == 1, report)


main()
