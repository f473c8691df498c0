#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Protection without an option: checkpoints that nobody has asked for."""

from lib import *
from steps_parts import end, goes_on, stop, until_told

FIRST = ["--ckpt-first", "300ms"]


@test
def a_rank_killed_after_the_first_automatic_checkpoint_costs_a_rollback(s):
    job = s.hale_start(2, *until_told(s), options=FIRST + ["--report", "report.json"])
    job.until(s.complete, "a checkpoint that nobody has asked for")
    os.kill(job.ranks(2)[1], signal.SIGKILL)
    job.until_says("all ranks run again")
    goes_on(job)
    end(s, job, 2)
    report = s.report()
    expect(report["restarts"] == 1 and report["failures"][0]["rolled_back_to"] >= 1, report)
    expect(not os.path.exists(s.path("hale-ckpt")), "a job that ended well has left its checkpoints")


@test
def what_a_short_job_leaves_is_nothing(s):
    exe = s.compile("steps")
    r = s.hale_run(2, exe, 5, 0)
    expect(r.status == 0, r)
    expect(not os.path.exists(s.path("hale-ckpt")), os.listdir(s.dir))


@test
def a_job_that_fails_keeps_its_automatic_checkpoints_and_one_restarted_from_them_is_automatic(s):
    job = s.hale_start(2, *until_told(s), options=FIRST)
    job.until(s.complete, "a checkpoint")
    job.kill()
    job.wait()
    s.until_nothing_runs()
    (folder,) = glob.glob(s.path("hale-ckpt", "*"))
    before = max(int(os.path.basename(f)) for f in s.complete())
    again = s.start(HALE, "restart", folder)
    again.until(lambda: max([int(os.path.basename(f)) for f in s.complete()] or [0]) > before, "one more checkpoint")
    stop(s, again)


@test
def one_that_was_asked_for_is_kept(s):
    job = s.hale_start(2, *until_told(s))
    job.ranks(2)
    job.until_output("rank 0 step 3 ")
    path = job.checkpoint()
    end(s, job, 2)
    expect(os.path.exists(path), os.listdir(s.path("hale-ckpt")))


@test
def it_is_kept_or_removed_as_the_user_says(s):
    for wish in ("keep", "remove"):
        options = FIRST if wish == "keep" else ["--ckpt-every", "300ms"]
        job = s.hale_start(2, *until_told(s), options=options + ["--ckpt-on-success", wish])
        job.until(s.complete, "a checkpoint")
        end(s, job, 2)
        expect(bool(s.complete()) == (wish == "keep"), wish, s.complete())
        shutil.rmtree(s.path("hale-ckpt"), ignore_errors=True)


@test
def failures_of_earlier_jobs_are_reckoned_with_and_injected_ones_are_not(s):
    exe = s.compile("steps")
    r = s.hale_run(1, exe, 1, 0)
    expect(re.search(r"expected every 2[34]\.\d h: assumed", r.err), r)
    job = s.hale_start(2, *until_told(s), options=FIRST)
    job.until(s.complete, "a checkpoint")
    os.kill(job.ranks(2)[1], signal.SIGKILL)
    job.until_says("all ranks run again")
    end(s, job, 2)
    r = s.hale_run(1, exe, 1, 0, options=["--inject", "kill:rank=0,after=10s"])
    expect(re.search(r"expected every 1[12]\.\d h: 1 in 3 earlier jobs", r.err), r)
    r = s.hale_run(1, exe, 1, 0, options=["--mtbf", "3d"])
    expect(re.search(r"expected every (72\.\d h|3\.\d d): --mtbf", r.err), r)
    r = s.hale_run(1, exe, 1, 0)
    expect(": 1 in 4 earlier jobs" in r.err, r)


@test
def how_a_program_ends_says_nothing_about_the_machines(s):
    r = s.hale("run", "--no-mpi", "--", "sh", "-c", "exit 3")
    expect(r.status == 3, r)
    r = s.hale_run(2, PYTHON, "-c", "from mpi4py import MPI; MPI.COMM_WORLD.Abort(4)")
    expect(r.status == 4, r)
    r = s.hale_run(1, s.compile("steps"), 1, 0)
    expect(": 0 in 2 earlier jobs" in r.err, r)


@test
def off_is_off(s):
    job = s.hale_start(2, *until_told(s), options=["--ckpt-every", "off", "--report", "report.json"])
    job.until_output("rank 0 step 30 ")
    end(s, job, 2)
    expect(s.report()["checkpoints"] == [] and not os.path.exists(s.path("hale-ckpt")), s.report())


@test
def one_that_the_disk_has_no_room_for_is_refused_and_the_job_goes_on(s):
    small = s.tmpfs("small", "8m")
    job = s.hale_start(1, *until_told(s, 16), options=FIRST + ["--ckpt-dir", small])
    job.until_says(r"no checkpoint: it may take [0-9.]+ MiB, more than half of the [0-9.]+ MiB that are free in")
    goes_on(job)
    end(s, job, 1, mib=(16,))


@test
def contradictions_are_refused(s):
    r = s.hale("run", "--ckpt-every", "5s", "--overhead", "2%", "true")
    expect(r.status == 64 and "--ckpt-first, --overhead and --mtbf are about --ckpt-every auto" in r.err, r)
    r = s.hale("run", "--overhead", "2", "true")
    expect(r.status == 64 and "like 1%" in r.err, r)


OFTEN = ["--ckpt-first", "100ms", "--overhead", "50%", "--mtbf", "1s", "--no-fsync"]


def forms(s, job):
    """(of changes, by lz4) of each complete checkpoint so far."""
    r = s.hale("report", job.id(), "--json")
    return [(c["base"] != 0, c["lz4"]) for c in json.loads(r.out)["checkpoints"] if c["complete"]] if r.status == 0 else []


@test
def each_form_is_tried_and_what_is_rolled_back_to_is_right(s):
    """All memory as it is, by lz4, then changes upon a base; which one wins is the machine's affair."""
    job = s.hale_start(2, *until_told(s, 16), options=OFTEN + ["--report", "report.json"])
    job.until(lambda: sum(f[0] for f in forms(s, job)) >= 2, "checkpoints of changes")
    got = forms(s, job)
    expect(got[:4] == [(False, False)] * 2 + [(False, True)] * 2 and not got[4][0], got)
    os.kill(job.ranks(2)[1], signal.SIGKILL)
    job.until_says("all ranks run again")
    goes_on(job)
    end(s, job, 2, mib=(16,))
    expect(s.report()["restarts"] == 1, s.report())


@test
def a_form_that_the_user_has_chosen_stays(s):
    job = s.hale_start(1, *until_told(s, 16), options=OFTEN + ["--compress", "none", "--report", "report.json"])
    job.until(lambda: any(f[0] for f in forms(s, job)), "changes")
    end(s, job, 1, mib=(16,))
    report = s.report()["checkpoints"]
    expect(not any(c["lz4"] for c in report), report)


main()
