#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Batch jobs of a real Slurm that end before their time, and go on in their next life (docs/slurm.md)."""

from lib import *
from slurm_parts import Slurm
from steps_parts import PAUSE_MS, last_step_of, lines, steps, undisturbed

# As docs/slurm.md has it.
SCRIPT = """#!/bin/sh
#SBATCH --requeue --open-mode=append --signal=B:USR1@60 --output=out --error=err
exec hale run --requeue -n 2 -- ./steps 0 %d
""" % PAUSE_MS


class Batch:
    def __init__(self, s, slurm, script, *options):
        os.makedirs(s.path("bin"), exist_ok=True)
        if not os.path.exists(s.path("bin/hale")):
            os.symlink(HALE, s.path("bin/hale"))
        self.s, self.env = s, dict(slurm.env, PATH=f"{s.path('bin')}:{os.environ['PATH']}")
        steps(s)
        r = s.run("sbatch", "--parsable", *options, s.write("job.sh", script), env=self.env)
        expect(r.status == 0, r)
        self.id = r.out.strip()

    def read(self, name):
        path = self.s.path(name)
        return self.s.read(name) if os.path.exists(path) else ""

    def state(self):
        r = self.s.run("scontrol", "show", "job", self.id, env=self.env)
        return dict(x.split("=", 1) for x in r.out.split() if "=" in x) if r.status == 0 else {}

    def at_once(self):
        """Slurm lets a requeued job wait for two minutes."""
        self.until(lambda: self.state().get("JobState") == "PENDING", "it waits for its next life")
        r = self.s.run("scontrol", "update", f"JobId={self.id}", "StartTime=now", env=self.env)
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
        wanted, _ = undisturbed(self.s, 2, last_step_of(out) + 1)
        expect(lines(out) == lines(wanted), "not what these steps print", out[-2000:], self.read("err"))
        expect(not glob.glob(self.s.path("hale-ckpt/*")), "checkpoints are left", self.read("err"))


@test
def a_batch_job_that_is_warned_is_requeued_and_goes_on(s):
    with Slurm(s) as slurm:
        job = Batch(s, slurm, SCRIPT, "--nodes=1")
        job.until_step(10)
        r = s.run("scancel", "--batch", "--signal=USR1", job.id, env=job.env)
        expect(r.status == 0, r)
        job.until(lambda: job.state().get("Restarts") == "1", "it is requeued")
        before = last_step_of(job.read("out"))
        job.at_once()
        job.until_step(before + 10)
        expect("is requeued" in job.read("err") and f"steps.slurm{job.id}" in job.read("err"), job.read("err"))
        job.end()


main()
