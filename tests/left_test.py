#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checkpoints that jobs have left: listed, removed, cleaned up."""

from lib import *
from steps_parts import until_told


def sleeps(s, *options):
    before = set(glob.glob(s.path("hale-ckpt", "*")))
    r = s.hale_run(1, "sleep", 1, options=["--no-mpi", "--ckpt-every", "100ms", *options])
    expect(r.status == 0, r)
    (folder,) = set(glob.glob(s.path("hale-ckpt", "*"))) - before
    return folder


def killed(s):
    before = set(glob.glob(s.path("hale-ckpt", "*")))
    job = s.hale_start(1, "sleep", 100, options=["--no-mpi", "--ckpt-every", "100ms"])
    job.until(lambda: [f for f in s.complete() if os.path.dirname(f) not in before], "a checkpoint of its own")
    job.kill()
    job.wait()
    s.until_nothing_runs()
    (folder,) = set(glob.glob(s.path("hale-ckpt", "*"))) - before
    return folder


def listed(s, *argv):
    r = s.hale("ckpt", "list", "--json", *argv)
    expect(r.status == 0, r)
    return {os.path.basename(j["folder"]): j for j in json.loads(r.out)["jobs"]}


@test
def what_jobs_have_left_is_listed_and_the_rest_of_good_ones_removed(s):
    good, bad = sleeps(s), killed(s)
    jobs = listed(s)
    expect(set(jobs) == {os.path.basename(good), os.path.basename(bad)}, jobs)
    expect(jobs[os.path.basename(good)]["state"] == "ended, status 0", jobs)
    expect(jobs[os.path.basename(bad)]["state"] == "killed", jobs)
    for folder in (good, bad):
        job = jobs[os.path.basename(folder)]
        whole = sum(os.stat(os.path.join(d, f)).st_blocks * 512 for d, _, files in os.walk(folder) for f in files)
        expect(whole <= job["bytes"] <= whole + 65536 and len(job["checkpoints"]) >= 1, job, whole)
    r = s.hale("ckpt", "list")
    expect(r.status == 0 and re.search(r"^2 jobs, [0-9.]+ [KMG]iB in hale-ckpt$", r.out, re.M), r)
    r = s.hale("ckpt", "clean", "--dry-run")
    expect("1 of 2 jobs' checkpoints would be removed" in r.out and os.path.exists(good), r)
    r = s.hale("ckpt", "clean")
    expect(r.status == 0 and not os.path.exists(good) and os.path.exists(bad), r)
    r = s.hale("ckpt", "clean", "--older-than", "1h")
    expect(r.status == 0 and os.path.exists(bad), r)
    r = s.hale("ckpt", "clean", "--older-than", "0s")
    expect(r.status == 0 and os.listdir(s.path("hale-ckpt")) == [], r)


@test
def one_checkpoint_or_all_of_a_job_is_removed(s):
    folder = killed(s)
    s.hale("ckpt", "list")
    ids = listed(s)[os.path.basename(folder)]["checkpoints"]
    newest = os.path.join(folder, str(ids[-1]))
    r = s.hale("ckpt", "rm", newest)
    expect(r.status == 0 and not os.path.exists(newest), r)
    r = s.hale("ckpt", "rm", newest)
    expect(r.status == EXIT_USAGE and f"has no checkpoint {ids[-1]}" in r.err, r)
    r = s.hale("ckpt", "rm", folder)
    expect(r.status == 0 and not os.path.exists(folder) and "freed" in r.out, r)


@test
def what_others_stand_on_and_what_is_running_stays(s):
    job = s.hale_start(1, *until_told(s), options=["--ckpt-every", "100ms", "--incremental"])
    job.until(lambda: len(s.complete()) >= 2, "two checkpoints")
    folder = os.path.dirname(s.complete()[0])
    r = s.hale("ckpt", "rm", folder)
    expect(r.status == 1 and "is running; its checkpoints stay" in r.err and os.path.exists(folder), r)
    r = s.hale("ckpt", "clean", "--older-than", "0s")
    expect(r.status == 0 and os.path.exists(folder), r)
    expect(re.search(r", checkpoint \d+ \([0-9.]+ [KM]iB, [0-9.]+ m?s ago\),", s.hale("ps").out), s.hale("ps"))
    job.kill()
    job.wait()
    s.until_nothing_runs()
    ids = listed(s)[os.path.basename(folder)]["checkpoints"]
    manifests = {i: json.loads(s.read(os.path.join(folder, str(i), "manifest.json"))) for i in ids}
    bases = [m["base"] for m in manifests.values() if m["base"] in ids]
    if bases:
        r = s.hale("ckpt", "rm", os.path.join(folder, str(bases[0])))
        expect(r.status == 1 and "is a difference to" in r.err, r)


@test
def what_is_no_folder_of_a_job_is_left_alone(s):
    os.makedirs(s.path("other", "7"))
    s.write("other/7/precious", "")
    for path in ("other", "other/7", "nosuch"):
        r = s.hale("ckpt", "rm", path)
        expect(r.status == EXIT_USAGE and r.err.startswith("hale: "), r)
    expect(os.path.exists(s.path("other/7/precious")), "somebody's file is gone")
    r = s.hale("ckpt", "clean", "--older-than", "0s", ".")
    expect(r.status == 0 and "0 of 0 jobs" in r.out and os.path.exists(s.path("other/7/precious")), r)
    folder = sleeps(s)
    s.write(os.path.join(folder, "precious"), "")
    r = s.hale("ckpt", "rm", folder)
    expect(r.status == 1 and "something else is in" in r.err and os.listdir(folder) == ["precious"], r)
    r = s.hale("ckpt", "list", "nosuch")
    expect(r.status == EXIT_USAGE, r)
    expect(s.hale("ckpt", "rm").status == EXIT_USAGE, "nothing named")


main()
