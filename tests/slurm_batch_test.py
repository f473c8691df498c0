#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Batch jobs of a real Slurm that end before their time, and go on in their next life (docs/slurm.md)."""

from lib import *
from recipes_parts import recipe, with_hale
from slurm_parts import Slurm
from steps_parts import PAUSE_MS, last_step_of, lines, steps, undisturbed


def script(word, ranks):
    """docs/slurm.md's, with the program of the tests."""
    text = recipe("slurm.md", word)
    expect("./solver" in text, text)
    return re.sub(r"-n \d+", f"-n {ranks}", text).replace("./solver", f"./steps 0 {PAUSE_MS}")


class Batch:
    def __init__(self, s, slurm, text, ranks, *options):
        self.s, self.env, self.ranks = s, with_hale(s, **slurm.env), ranks
        steps(s)
        r = s.run("sbatch", "--parsable", "--output=out", "--error=err", *options, s.write("job.sh", text), env=self.env)
        expect(r.status == 0, r)
        self.id = r.out.strip()

    def read(self, name):
        path = self.s.path(name)
        return self.s.read(name) if os.path.exists(path) else ""

    def state(self):
        r = self.s.run("scontrol", "show", "job", self.id, env=self.env)
        return dict(x.split("=", 1) for x in r.out.split() if "=" in x) if r.status == 0 else {}

    def at_once(self):
        """Slurm lets a requeued job wait for two minutes. In the second of the requeue a node starts nothing of it."""
        self.until(lambda: self.state().get("JobState") == "PENDING", "it waits for its next life")
        r = self.s.run("scontrol", "update", f"JobId={self.id}", "StartTime=now+2", env=self.env)
        expect(r.status == 0, r)

    def until(self, condition, what, limit=60):
        for _ in range(limit * 20):
            if condition():
                return
            time.sleep(0.05)
        expect(False, f"waited in vain for: {what}", self.state(), self.read("out")[-500:], self.read("err"))

    def until_step(self, step):
        self.until(lambda: last_step_of(self.read("out")) >= step, f"step {step}")

    def end(self):
        """Told to stop, it ends well; what it has printed is what it prints undisturbed, each line once."""
        self.s.write("stop", "")
        self.until(lambda: self.state().get("JobState") == "COMPLETED", "the job is complete")
        os.unlink(self.s.path("stop"))
        out = self.read("out")
        wanted, _ = undisturbed(self.s, self.ranks, last_step_of(out) + 1)
        expect(lines(out) == lines(wanted), "not what these steps print", out[-2000:], self.read("err"))
        expect(not glob.glob(self.s.path("hale-ckpt/*")), "checkpoints are left", self.read("err"))


def warn(s, job):
    """As Slurm does before the time is over, by `--signal=B:USR1@…`."""
    r = s.run("scancel", "--batch", "--signal=USR1", job.id, env=job.env)
    expect(r.status == 0, r)


def next_life(job, restarts):
    """It is requeued, and goes on behind where it was."""
    job.until(lambda: job.state().get("Restarts") == str(restarts), "it is requeued", 180)
    before = last_step_of(job.read("out"))
    job.at_once()
    job.until_step(before + 10)
    expect(job.read("err").count("is requeued") == restarts and "all ranks run again from checkpoint" in job.read("err"),
           job.read("err"))


@test
def a_batch_job_that_is_warned_is_requeued_and_goes_on(s):
    with Slurm(s) as slurm:
        job = Batch(s, slurm, script("--time=2:00:00", 2), 2)
        job.until_step(10)
        warn(s, job)
        next_life(job, 1)
        expect(f"steps.slurm{job.id}" in job.read("err"), job.read("err"))
        job.end()


@test
def it_is_said_when_a_job_can_not_be_requeued_or_is_no_batch_job(s):
    exe = steps(s)
    r = s.hale("run", "--requeue", exe, 1, 0)
    expect(r.status == EXIT_USAGE and "SLURM_JOB_ID is not set" in r.err, r)
    os.mkdir(s.path("none"))
    os.chmod(s.write("none/scontrol", "#!/bin/sh\n[ $1 != requeue ] && exec echo n1\nexit 1\n"), 0o755)
    env = {"SLURM_JOB_ID": "12", "PATH": f"{s.path('none')}:{os.environ['PATH']}"}
    job = s.start(HALE, "run", "--requeue", "-n", 2, exe, 0, PAUSE_MS, env=env)
    job.until_output("rank 0 step 5 ")
    os.kill(job.pid, signal.SIGUSR1)
    r = job.wait()
    expect(r.status == 75 and "`scontrol requeue 12` has failed" in r.err and "1 checkpoint" in r.err, r)
    # the same batch job has not been requeued: that folder is another one's
    r = s.run(HALE, "run", "--requeue", "-n", 2, exe, 1, 0, env=env)
    expect(r.status == EXIT_USAGE and "has not been requeued" in r.err, r)
    # preempted with SIGTERM: Slurm requeues it by itself; what was printed does not come again
    env["SLURM_RESTART_COUNT"] = "1"
    lives = [job]
    for last in (False, True):
        lives.append(s.start(HALE, "run", "--requeue", "-n", 2, exe, 0, PAUSE_MS, env=env))
        lives[-1].until_output(f"rank 0 step {max(last_step_of(j.out()) for j in lives) + 5} ")
        if not last:
            os.kill(lives[-1].pid, signal.SIGTERM)
            expect(lives[-1].wait().status == 75, lives[-1].result())
    s.write("stop", "")
    expect(lives[-1].wait().status == 0, lives[-1].result())
    os.unlink(s.path("stop"))
    out = "".join(j.out() for j in lives)
    wanted, _ = undisturbed(s, 2, last_step_of(out) + 1)
    expect(lines(out) == lines(wanted), out)


@test
def over_several_nodes_it_goes_on_after_its_time_and_after_preemption(s):
    if not LONG:
        skip("Slurm looks at time limits twice a minute: with HALE_LONG=1")
    with Slurm(s) as slurm:
        job = Batch(s, slurm, script("--no-kill", 4).replace("USR1@300", "USR1@60"), 4, "--partition=low", "--time=2")
        job.until_step(10)
        next_life(job, 1)
        r = s.run("squeue", "--steps", "--noheader", "--format=%i %N", env=job.env)
        expect(sorted(x.split()[-1] for x in r.out.splitlines() if ".batch" not in x and ".extern" not in x) ==
               ["n1", "n2", "n3"], r)
        r = s.run("sbatch", "--parsable", "--partition=high", "--nodes=3", "--wrap=sleep 1", env=job.env)
        expect(r.status == 0, r)
        next_life(job, 2)
        job.end()


@test
def a_step_of_several_tasks_is_one_job_and_one_with_a_number_of_ranks_as_many_jobs(s):
    """`srun hale run ./program`; Slurm's pmix plugin may be asked for, and is not needed."""
    exe = s.compile("steps")
    wanted = sorted(s.hale_run(4, exe, 5, 1).out.splitlines())
    with Slurm(s) as slurm:
        kinds = s.run("srun", "--mpi=list", env=slurm.env)
        expect("pmix" in kinds.out + kinds.err, kinds)
        one, pmix, four = [x.replace("./solver", f"{exe} 5 1").replace("hale run", "hale run --display-map").split()
                           for x in recipe("slurm.md", "--mpi=pmix").splitlines()]
        env = with_hale(s, **slurm.env)
        for command in one, pmix:
            r = s.run(*slurm.salloc(*command), env=env)
            expect(r.status == 0 and sorted(r.out.splitlines()) == wanted, r)
            expect("4 ranks on 3 nodes" in r.err and "node n1: ranks 0-1" in r.err and "node n3: ranks 3" in r.err, r)
        r = s.run(*slurm.salloc(*four), env=env)
        expect(r.status == 0 and r.out.count("rank 0 step 4 ") == 4, r)
        # what ends one of its ranks is the status of the step
        r = s.run(*slurm.salloc("srun", "-n", "2", HALE, "run", "--no-mpi", "--", "sh", "-c", "exit 7"), env=slurm.env)
        expect(r.status == 7, r)


main()
