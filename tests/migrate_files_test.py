#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""`hale migrate --via-files`, and ranks that a script has started."""

from lib import *
from migrate_parts import *


@test
def lammps_moves_by_files_and_prints_the_same(s):
    wanted, job = lammps(s)
    for node in ("node1", "node0"):
        r = migrate(s, job, "--from", node, "--via-files")
        expect(r.status == 0, r, job.err())
    got = job.wait()
    expect(got.status == 0 and thermo(got.out) == thermo(wanted.out), got)
    expect([m["ranks"] for m in s.report()["migrations"]] == [2, 2], s.report())
    expect(s.report()["restarts"] == 0, s.report())
    expect(not glob.glob(s.path("hale-ckpt/*")), glob.glob(s.path("hale-ckpt/*")))


@test
def nothing_is_printed_twice_or_lost_by_files(s):
    job = steps_job(s, "--spares", "1", "--report", "report.json")
    for k, node in enumerate(("node0", "node1", "node2", "node0")):
        r = migrate(s, job, "--from", node, *(["--via-files=files"] if k % 2 == 0 else []))
        expect(r.status == 0, r, job.err())
        until_steps_go_on(job)
    os.mkdir(s.path("away"))
    r = s.run("env", "-C", s.path("away"), HALE, "migrate", job.id(), "--from", "node1", "--via-files=own")
    expect(r.status == 0 and not os.listdir(s.path("away/own")), r, job.err())  # a folder there, not here
    job.checkpoint()
    os.kill(job.ranks(4)[0], signal.SIGKILL)
    job.until_says("all ranks run again from checkpoint")
    until_steps_go_on(job)
    end(s, job)
    expect(s.report()["restarts"] == 1 and len(s.report()["migrations"]) == 5, s.report())
    expect(not os.listdir(s.path("files")), os.listdir(s.path("files")))


@test
def a_folder_that_can_not_be_written_harms_nobody(s):
    job = steps_job(s, "--spares", "1")
    pids = job.ranks(4)
    s.write("file", "")
    r = migrate(s, job, "--from", "node1", "--via-files=" + s.path("file/folder"))
    expect(r.status == 1 and "stay there" in r.err and "cannot make the folder" in r.err, r)
    r = migrate(s, job, "--from", "node1", "--via-files=" + "x" * 400)
    expect(r.status == 1 and "too long" in r.err, r)
    expect(job.ranks(4) == pids, "not the same processes")
    until_steps_go_on(job)
    end(s, job)


@test
def a_full_disk_under_the_source_harms_nobody(s):
    tmpfs(s, "small", "2m")
    try:
        job = steps_job(s, "--spares", "1")
        pids = job.ranks(4)
        r = migrate(s, job, "--from", "node1", "--via-files=" + s.path("small"))
        expect(r.status == 1 and "stay there" in r.err and "no space left" in r.err, r)
        expect(job.ranks(4) == pids and not copies(s, job), "not the same processes")
        expect(not os.listdir(s.path("small")), os.listdir(s.path("small")))
        until_steps_go_on(job)
        r = migrate(s, job, "--from", "node1", "--via-files")
        expect(r.status == 0, r)
        end(s, job)
    finally:
        umount(s, "small")


@test
def nothing_is_left_of_the_folder_when_it_is_said_to_be_over(s):
    """All ranks of the job move, so nobody else is waited for; and they stay, when the target is lost."""
    job = steps_job(s, "--spares", "1", nodes=("--nodes", "1"))
    for k in range(24):
        r = migrate(s, job, "--from", f"node{k % 2}", "--via-files=files")
        left = os.listdir(s.path("files"))
        expect(r.status == 0 and not left, r, f"after move {k}: {left}")
    end(s, job)


def a_copy_dies(s, job, pids):
    """Of those of node1; the process of rank 0 stands still and is to go on. What hale migrate says."""
    m = s.start(HALE, "migrate", job.id(), "--from", "node1", "--via-files")
    job.until(lambda: len(copies(s, job)) == 2, "the copies are started")
    os.kill(copies(s, job)[0], signal.SIGKILL)
    job.until_says("the copy of rank . on node node2 has ended")
    resume(pids, [0])
    return m.wait()


@test
def who_dies_meanwhile_costs_nothing_or_a_rollback(s):
    """By files a copy begins when the ranks stand still: rank 0, which is stopped, holds them up."""
    job = steps_job(s, "--spares", "1", "--report", "report.json")
    job.checkpoint()
    pids = job.ranks(4)
    stopped(pids, [0])
    r = a_copy_dies(s, job, pids)
    expect(r.status == 1 and "stay there" in r.err, r)
    expect(job.ranks(4) == pids and not copies(s, job), "not the same processes")
    until_steps_go_on(job)
    stopped(pids, [0])
    m = s.start(HALE, "migrate", job.id(), "--from", "node1", "--via-files")
    job.until(lambda: len(copies(s, job)) == 2, "the copies are started")
    os.kill(pids[3], signal.SIGKILL)
    r = m.wait()
    expect(r.status == 1 and "has come to nothing" in r.err, r)
    job.until_says("all ranks run again from checkpoint 1")
    until_steps_go_on(job)
    end(s, job)
    expect(s.report()["restarts"] == 1 and not s.report()["migrations"], s.report())
    expect(not glob.glob(s.path("hale-ckpt/*.move.*")), "files are left")


def script(s, text):
    path = s.write("script.sh", "#!/bin/sh\n" + text)
    os.chmod(path, 0o755)
    return path


def script_job(s, text):
    exe = s.compile("steps")
    job = s.hale_start(4, script(s, text.replace("PROGRAM", exe)),
                       options=["--nodes", "2", "--spares", "1", "--report", "report.json"])
    job.until_output(r"rank 0 step 5 ")
    return job


@test
def ranks_move_out_of_the_scripts_that_started_them(s):
    job = script_job(s, "PROGRAM 0 20\nrc=$?\necho script $HALE_RANK ends after $rc\nexit $rc\n")
    for node, how in (("node0", []), ("node1", ["--via-files"]), ("node2", [])):
        r = migrate(s, job, "--from", node, *how)
        expect(r.status == 0, r, job.err())
        until_steps_go_on(job)
    expect("script" not in job.out(), "a script went on", job.out())
    end(s, job)
    expect(len(s.report()["migrations"]) == 3 and s.report()["restarts"] == 0, s.report())


@test
def scripts_of_ranks_that_stay_go_on(s):
    job = script_job(s, "PROGRAM 0 20\nrc=$?\necho script $HALE_RANK ends after $rc\nexit $rc\n")
    pids = job.ranks(4)
    stopped(pids, [0])
    r = a_copy_dies(s, job, pids)
    expect(r.status == 1 and "stay there" in r.err, r, job.err())
    r = migrate(s, job, "--from", "node0")
    expect(r.status == 0, r)
    until_steps_go_on(job)
    s.write("stop", "")
    r = job.wait()
    expect(r.status == 0 and sorted(re.findall(r"^script (\d) ends after 0$", r.out, re.M)) ==
           ["2", "3"], r)


@test
def what_a_script_has_started_beside_its_rank_keeps_it(s):
    job = script_job(s, "sleep 1000 &\nPROGRAM 0 20\nkill $!\n")
    pids = job.ranks(4)
    r = migrate(s, job, "--from", "node1")
    expect(r.status == 1 and "runs sleep" in r.err and "stay there" in r.err, r)
    expect(job.ranks(4) == pids, "not the same processes")
    until_steps_go_on(job)
    end(s, job)


main()
