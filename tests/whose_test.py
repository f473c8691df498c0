#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Whose checkpoint is it? Where somebody else owns --ckpt-dir he can put what he likes in place of a job's
folder: nothing of that is run. Needs root, to give files to another user."""

import pwd

from lib import *
from steps_parts import goes_on, right, steps, stop

NOBODY = pwd.getpwnam("nobody").pw_uid


def need_root():
    if os.geteuid() != 0:
        skip("only root can give files to another user")


def give_away(path, follow=True):
    os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
    if follow:
        for folder, _, names in os.walk(path):
            for name in [folder, *(os.path.join(folder, n) for n in names)]:
                os.chown(name, NOBODY, NOBODY, follow_symlinks=False)


def checkpointed(s, name):
    """A job that has ended, and the folder of its checkpoints 1 and 2."""
    os.mkdir(s.path(name))
    job = s.hale_start(2, steps(s), 0, 10, options=["--ckpt-dir", s.path(name), "--wdir", s.path(name)])
    job.until_output("rank 0 step 3 ")
    job.checkpoint()
    folder = os.path.dirname(job.checkpoint())
    job.kill(signal.SIGTERM)
    job.wait()
    return folder


def victim(s):
    """A job that runs, with a checkpoint in a folder of somebody else, and its folder there."""
    os.mkdir(s.path("shared"))
    os.chown(s.path("shared"), NOBODY, NOBODY)
    job = s.hale_start(2, steps(s), 0, 10, options=["--ckpt-dir", s.path("shared")])
    job.until_output("rank 0 step 3 ")
    return job, os.path.dirname(job.checkpoint())


def refused(s, folder, *texts, env=None):
    r = s.hale("restart", folder, env=env)
    expect(r.status != 0 and not r.out and all(t in r.err for t in texts), texts, r)


def restarts(s, folder, wdir, env=None):
    job = s.start(HALE, "restart", folder, env=env)
    job.until_output("rank 0 step ")
    before = len(job.out().splitlines())
    job.until(lambda: len(job.out().splitlines()) > before + 4, "it goes on")
    with open(os.path.join(wdir, "stop"), "w"):
        pass
    r = job.wait()
    os.unlink(os.path.join(wdir, "stop"))
    expect(r.status == 0, r)


@test
def anothers_job_in_place_of_ours_is_not_run(s):
    need_root()
    for whose, text in (("theirs", "belongs to user nobody"), ("ours", "it is of another job of yours")):
        job, folder = victim(s)
        other = checkpointed(s, whose)
        if whose == "theirs":
            give_away(other)
        os.rename(folder, folder + ".aside")
        os.rename(other, folder)
        os.kill(job.ranks(2)[0], signal.SIGKILL)
        r = job.wait()
        expect(r.status == EXIT_UNRECOVERED and text in r.err, r)
        expect(sorted(n for n in os.listdir(folder) if n.isdigit()) == ["1", "2"], os.listdir(folder))
        shutil.rmtree(s.path("shared"))
        for left in glob.glob(s.path("log.*")) + glob.glob(s.path("state.*")):
            os.unlink(left)


@test
def in_anothers_folder_ours_is_restored(s):
    need_root()
    job, _ = victim(s)
    os.kill(job.ranks(2)[0], signal.SIGKILL)
    job.until_says("all ranks run again")
    goes_on(job)
    right(s, stop(s, job), 2)


@test
def what_is_not_ours_is_not_restarted(s):
    need_root()
    folder = checkpointed(s, "work")
    wdir = os.path.dirname(folder)
    # by owner, at each level
    for name in ("", "2", "2/manifest.json"):
        path = os.path.join(folder, name)
        give_away(path, follow=False)
        refused(s, os.path.join(folder, "2"), "belongs to user nobody")
        os.chown(path, 0, 0)
    # one image: the checkpoint before it is taken
    give_away(os.path.join(folder, "2", "rank-1.img"), follow=False)
    r = s.start(HALE, "restart", folder)
    r.until_says("belongs to user nobody")
    r.until_says("run again from checkpoint 1")
    r.kill(signal.SIGTERM)
    r.wait()
    os.chown(os.path.join(folder, "2", "rank-1.img"), 0, 0)
    # by mode
    os.chmod(folder, 0o770)
    refused(s, folder, "others may write")
    os.chmod(folder, 0o700)
    # links of others, and our own
    link = s.path("link")
    os.symlink(wdir, link)
    give_away(link, follow=False)
    refused(s, os.path.join(link, os.path.basename(folder)), "symbolic link", "another user")
    os.chown(link, 0, 0, follow_symlinks=False)
    restarts(s, os.path.join(link, os.path.basename(folder)), wdir)


@test
def checkpoints_are_bound_to_their_number_and_to_their_images(s):
    folder = checkpointed(s, "work")
    one, two = os.path.join(folder, "1"), os.path.join(folder, "2")
    os.rename(two, two + ".aside")
    shutil.copytree(one, two)
    refused(s, two, "its manifest says that it is number 1")
    shutil.rmtree(two)
    os.rename(two + ".aside", two)
    shutil.rmtree(two + ".aside", ignore_errors=True)
    # an image of ours, whole and as long, of another checkpoint
    job = s.hale_start(1, "sleep", "1000", options=["--no-mpi"])
    job.ranks(1)
    one = job.checkpoint()
    two = job.checkpoint()
    job.kill(signal.SIGTERM)
    job.wait()
    shutil.copy2(os.path.join(one, "rank-0.img"), os.path.join(two, "rank-0.img"))
    again = s.start(HALE, "restart", two)
    again.until_says("is not the one that its manifest names")
    again.kill(signal.SIGTERM)
    again.wait()


@test
def a_manifest_counts_with_its_seal_only(s):
    folder = checkpointed(s, "work")
    wdir, manifest = os.path.dirname(folder), os.path.join(folder, "2", "manifest.json")
    key = s.path(".state", "hale", "key")
    with open(manifest) as f:
        text = f.read()
    for changed, why in ((text.replace('"keep":2', '"keep":3'), "its seal is not of the key"),
                         (text[: text.index(',"seal"')] + "}", "its manifest has no seal")):
        with open(manifest, "w") as f:
            f.write(changed)
        refused(s, os.path.join(folder, "2"), why)
    with open(manifest, "w") as f:
        f.write(text)
    # another account, without and with a copy of the key; and another disk
    elsewhere = {"XDG_STATE_HOME": s.path("elsewhere")}
    refused(s, folder, "HALE_CKPT_KEY=FILE", env=elsewhere)
    shutil.copy2(key, s.path("key"))
    copy = s.path("disk", os.path.basename(folder))
    os.mkdir(s.path("disk"))
    s.run("cp", "-a", folder, copy)
    shutil.rmtree(folder)
    restarts(s, copy, wdir, env=dict(elsewhere, HALE_CKPT_KEY=s.path("key")))


@test
def a_key_that_is_none_is_told_before_anything_runs(s):
    for text, mode, why in (("0" * 64, 0o644, "others may read the key"), ("x" * 64, 0o600, "is no key"),
                            ("0" * 10, 0o600, "is no key")):
        s.write("key", text + "\n")
        os.chmod(s.path("key"), mode)
        r = s.hale_run(1, "true", options=["--no-mpi", "--ckpt-every", "1s"], env={"HALE_CKPT_KEY": s.path("key")})
        expect(r.status == EXIT_USAGE and why in r.err and not r.out, r)
    r = s.hale_run(1, "true", options=["--no-mpi", "--ckpt-every", "1s"], env={"HALE_CKPT_KEY": "/proc/no/key"})
    expect(r.status == EXIT_USAGE and "name another file with HALE_CKPT_KEY" in r.err, r)


main()
