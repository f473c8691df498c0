#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checkpoints taken at awkward moments, restarts from them, and what they leave behind."""

import resource

from lib import *
from steps_parts import goes_on, last_step, lines, no_files, stop, undisturbed, until_told


def hold(s, place):
    s.write(f"hold.{place}", "")


def release(s, place):
    os.unlink(s.path(f"hold.{place}"))


def wait_all_at(s, job, place, ranks=4):
    job.until(lambda: all(os.path.exists(s.path(f"at.{place}.{r}")) for r in range(ranks)),
              f"all ranks are at {place}")
    time.sleep(0.3)  # and deep inside: waiting, asleep


def checkpoint_and_restart_at(s, place):
    exe = s.compile("omp_mpi", flags=["-fopenmp"])
    wanted = s.hale_run(4, exe)
    expect(wanted.status == 0, wanted)
    for old in glob.glob(s.path("at.*")):
        os.unlink(old)
    hold(s, place)
    job = s.hale_start(4, exe)
    wait_all_at(s, job, place)
    path = job.checkpoint()
    release(s, place)
    r = job.wait()
    expect(r.status == 0, "the checkpointed job did not end well", r)
    expect(r.out == wanted.out, "checkpointed job: other results", r, wanted)

    for old in glob.glob(s.path("at.*")):
        os.unlink(old)
    hold(s, place)
    job = s.hale_start(4, exe)
    wait_all_at(s, job, place)
    path = job.checkpoint()
    job.kill()
    job.p.wait()
    s.until_nothing_runs()
    before = job.out()
    release(s, place)
    r = s.hale("restart", os.path.join(os.path.dirname(path), "1000"))
    expect(r.status != 0 and "is not there: the newest ones are kept" in r.err and
           f"up to {os.path.basename(path)}; `hale restart {os.path.dirname(path)}` goes on" in r.err, r)
    r = s.hale("restart", path)
    expect(r.status == 0, "restart", r)
    expect(wanted.out.startswith(before) and wanted.out.endswith(r.out) and
           before + r.out == wanted.out, f"other results after the restart; before it:\n{before}",
           r, wanted)


@test
def four_threads_and_four_ranks_in_mid_collective(s):
    checkpoint_and_restart_at(s, "collective")


@test
def four_threads_and_four_ranks_in_mid_rendezvous(s):
    checkpoint_and_restart_at(s, "rendezvous")


@test
def a_hundred_checkpoints_leak_nothing(s):
    exe = s.compile("steps")
    job = s.hale_start(2, exe, "0", "2", "4", options=["--keep", "2", "--no-fsync"])
    pids = list(job.ranks(2).values()) + [job.pid]
    job.until_output("rank 0 step 5 ")
    name = job.id()
    first = []
    for n in range(100):
        r = s.hale("ckpt", name)
        expect(r.status == 0, f"checkpoint {n}", r)
        if n == 9:
            first = [proc_figures(p) for p in pids]
    last = [proc_figures(p) for p in pids]
    kept = s.complete()
    s.write("stop", "")
    r = job.wait()
    expect(r.status == 0, r)
    for who, a, b in zip(("rank 0", "rank 1", "hale run"), first, last):
        about = f"{who}: after 10 checkpoints {a}, after 100 {b}"
        expect(b["maps"] <= a["maps"] + 2, "mappings leak", about)
        # one that is just being closed (the last `hale ckpt`'s connection) is no leak; 90 would be
        expect(b["fds"] <= a["fds"] + 2, "descriptors leak", about)
        expect(b["rss"] <= a["rss"] * 1.03 + (512 << 10), "memory leaks", about)
    expect(len(kept) <= 3, "checkpoints are not taken away", kept)
    a, b = first[0], last[0]
    return (f"rank 0 after 10 and 100: {a['maps']}/{b['maps']} mappings, {a['fds']}/{b['fds']} "
            f"descriptors, {a['rss'] >> 10}/{b['rss'] >> 10} KiB")


@test
def what_is_closed_while_a_checkpoint_is_written_has_no_lock_and_no_address(s):
    job = s.hale_start(1, s.compile("relock"), s.path("locked"), env={"STOP": s.path("stop")})
    job.until_output("runs")
    for _ in range(5):
        job.checkpoint()
    s.write("stop", "")
    r = job.wait()
    expect(r.status == 0 and r.out == "runs\n0 locks and 0 addresses were taken still\n", r)


@test
def hale_ckpt_then_hale_restart_in_another_process(s):
    job = s.hale_start(3, *until_told(s))
    job.until_output("rank 0 step 15 ")
    path = job.checkpoint()
    until = last_step(job) + 1
    job.until_output(f"rank 0 step {until + 5} ")
    again, count = restarted(s, job, path, 3)
    first = int(re.search(r"^rank 0 step (\d+) ", again.out(), re.M)[1])
    expect(15 <= first <= until + 1, again.result())
    log = s.read("log.1").splitlines()
    expect([x.split()[1] for x in log] == [str(i) for i in range(count)], "log.1", log)


def restarted(s, job, path, ranks, *options, mib=()):
    """The job is killed, and goes on from there to what is right. The new one, and its steps."""
    job.kill()
    job.p.wait()
    s.until_nothing_runs()
    again = s.start(HALE, "restart", *options, path)
    goes_on(again, job)
    r = stop(s, again)
    count = last_step(again) + 1
    wanted, _ = undisturbed(s, ranks, count, *mib)
    expect(set(lines(r.out)) <= set(lines(wanted)) and re.search("^done ", r.out, re.M), r)
    for rank in range(ranks):
        mine = [int(x) for x in re.findall(rf"^rank {rank} step (\d+) ", r.out, re.M)]
        expect(mine == list(range(mine[0], count)), f"rank {rank}", r)
    return again, count


@test
def restart_lazy_is_the_same(s):
    job = s.hale_start(2, *until_told(s, 16))
    job.until_output("rank 0 step 15 ")
    restarted(s, job, job.checkpoint(), 2, "--restart", "lazy", mib=[16])


def roll_back_with(s, *options, checkpoints=2):
    """Kills a rank after so many checkpoints; sizes of the complete ones. Their number, not the
    time, decides when: disks are slow at times."""
    exe = s.compile("steps")
    job = s.hale_start(3, exe, "0", "20", "8",
                       options=["--ckpt-every", "100ms", "--no-fsync", "--report", "report.json",
                                *options])
    job.until(lambda: s.complete() and int(os.path.basename(s.complete()[-1])) >= checkpoints,
              f"{checkpoints} checkpoints")
    os.kill(job.ranks(3)[2], signal.SIGKILL)
    job.until_says("run again")
    last, printed = int(os.path.basename(s.complete()[-1])), len(job.out())
    job.until(lambda: int(os.path.basename(s.complete()[-1])) > last, "one more checkpoint")
    # to stop before it is where it was would be another run
    job.until(lambda: len(job.out()) > printed + 200, "it is further than before")
    s.write("stop", "")
    r = job.wait()
    expect(r.status == 0, r)
    report = s.report()
    expect(report["restarts"] == 1, report)
    no_files(s)
    steps = len(re.findall("^rank 0 step", r.out, re.M))
    wanted = s.hale_run(3, exe, str(steps), "0", "8")
    expect(sorted(r.out.splitlines()) == sorted(wanted.out.splitlines()), r)
    os.unlink(s.path("stop"))
    return [c["bytes"] for c in report["checkpoints"] if c["complete"]]


@test
def incremental_checkpoints_are_small_and_restart_right(s):
    sizes = roll_back_with(s, "--incremental", checkpoints=4)
    expect(len(sizes) > 4 and min(sizes) * 2 < sizes[0], f"sizes {sizes}")
    return f"{sizes[0]} bytes, then {min(sizes)}"


@test
def compressed_checkpoints_restart_right(s):
    for how in ("lz4", "zstd"):
        roll_back_with(s, "--compress", how)
        no_files(s)
        shutil.rmtree(s.path("hale-ckpt"), ignore_errors=True)


@test
def a_program_without_mpi_rolls_back_too(s):
    script = s.write("job.py", "import os, time\ntotal = 0\nfor i in range(80):\n"
                     "    total += i * i\n    print(i, total, flush=True)\n    time.sleep(0.02)\n"
                     "    while i == 60 and not os.path.exists('go'):\n        time.sleep(0.01)\n")
    s.write("go", "")
    wanted = s.run(PYTHON, script)
    os.unlink(s.path("go"))
    job = s.start(HALE, "run", "--no-mpi", "--ckpt-every", "200ms", "--report", "report.json",
                  "--", PYTHON, script)
    pids = job.ranks(1)
    job.until_output("^45 ")
    os.kill(pids[0], signal.SIGKILL)
    s.write("go", "")
    r = job.wait()
    expect(r.status == 0, r)
    expect(r.out == wanted.out, r)
    expect(s.report()["restarts"] == 1, s.report())


@test
def a_program_whose_main_thread_has_ended_rolls_back_too(s):
    job = s.hale_start(1, s.compile("headless", flags=["-pthread"]), options=["--no-mpi"])
    job.until_output("^5$")
    job.checkpoint()
    os.kill(job.info()["ranks"][0]["pid"], signal.SIGKILL)
    job.until_says("all ranks run again")
    job.checkpoint()
    at = int(job.out().split()[-1])
    job.until_output(f"^{at + 5}$")
    s.write("stop", "")
    r = job.wait()
    printed = r.out.split()
    expect(r.status == 0 and printed == [str(i) for i in range(len(printed) - 1)] + ["done"], r)


@test
def a_program_asks_for_a_checkpoint_and_goes_back_to_it(s):
    exe = s.compile("asks")
    r = s.hale_run(3, exe, options=["--report", "report.json"])
    expect(r.status == 0, r)
    expect(sorted(r.out.splitlines()) == [f"rank {i}: restarted sum 126" for i in range(3)], r)
    expect(s.report()["restarts"] == 1, s.report())


@test
def who_leaves_the_library_when_asked_to_stop_holds_up_no_checkpoint(s):
    """The thread that was inside does not come back; the other one has to do it (program leaves)."""
    rounds = 3
    job = s.hale_start(1, s.compile("leaves", flags=["-pthread"]), rounds)
    for i in range(rounds):
        s.write(f"go.{i}", "")
        job.until(lambda: job.out().count("inside") == i + 1, "it is inside")
        time.sleep(0.1)  # and receives
        job.checkpoint()
    s.write("stop", "")
    r = job.wait()
    expect(r.status == 0 and r.out.endswith("done\n"), r)


@test
def who_is_in_the_library_and_waits_for_the_program_is_not_waited_for(s):
    """The request interrupts who holds the mutex that the other one wants (program mutual)."""
    job = s.hale_start(1, s.compile("mutual", flags=["-pthread"]))
    job.until_output("inside")
    time.sleep(0.1)  # and wants the mutex
    ckpt = s.start(HALE, "ckpt", job.id())
    time.sleep(0.5)  # both as they are
    s.write("go", "")
    r = ckpt.wait()
    expect(r.status == 0, r)
    s.write("stop", "")
    r = job.wait()
    expect(r.status == 0 and r.out.endswith("done\n"), r)


@test
def handlers_that_block_all_signals_hold_up_no_checkpoint(s):
    """One that runs, one that was left by longjmp, and one for each signal there is (program blocks)."""
    job = s.hale_start(3, s.compile("blocks"))
    job.until(lambda: job.out().count("ready") == 3, "they are ready")
    time.sleep(0.2)  # and in their handlers
    job.checkpoint()
    os.kill(job.ranks(3)[1], signal.SIGKILL)
    job.until_says("all ranks run again")
    job.checkpoint()
    s.write("go", "")
    r = job.wait()
    expect(r.status == 0 and sorted(r.out.splitlines())[:3] == [f"rank {k} of 3" for k in range(3)], r)


@test
def a_rank_that_stands_still_at_a_checkpoint_is_named(s):
    job = s.hale_start(4, *until_told(s), env={"HALE_CKPT_TIMEOUT": "3"})
    goes_on(job)
    pid = job.ranks(4)[2]
    os.kill(pid, signal.SIGSTOP)
    r = s.hale("ckpt", job.id())
    os.kill(pid, signal.SIGCONT)
    expect(r.status == 1 and "did not stop for it within 3 s; rank 2 is stopped" in r.err, r)
    job.checkpoint()
    stop(s, job)


@test
def a_checkpoint_that_waits_for_the_disk_is_not_given_up(s):
    """The file system stands still while an image is written, for longer than anything else may."""
    folder = s.disk("disk", 200)
    text = "import os, time\nm = os.urandom(60 << 20)\nprint('there', flush=True)\n" \
           "while not os.path.exists('go'): time.sleep(0.01)\nprint(len(m))"
    job = s.hale_start(1, PYTHON, "-c", text, options=["--no-mpi", "--ckpt-every", "1h", "--ckpt-dir", folder],
                       env={"HALE_CKPT_TIMEOUT": "2"})
    job.until_output("there")
    ckpt = s.start(HALE, "ckpt", job.id())
    job.until(lambda: [f for f in glob.glob(f"{folder}/*/1.tmp/*") if os.path.getsize(f) > 1 << 20], "the image to grow")
    r = s.run("fsfreeze", "-f", folder)
    expect(r.status == 0, r)
    try:
        job.until_says("checkpoint 1 waits for the disk: nothing more of it was written within 2 s")
    finally:
        r = s.run("fsfreeze", "-u", folder)
    expect(r.status == 0, r)
    r = ckpt.wait()
    expect(r.status == 0, r, job.err())
    os.kill(job.ranks(1)[0], signal.SIGKILL)
    job.until_says("all ranks run again from checkpoint 1")
    s.write("go", "")
    r = job.wait()
    expect(r.status == 0 and r.out == "there\n62914560\n", r)


@test
def who_is_late_for_a_checkpoint_does_not_write_into_the_next_one(s):
    """A thread that no signal reaches holds up the first one until it is given up (program late)."""
    job = s.hale_start(1, s.compile("late", flags=["-pthread"]), env={"HALE_CKPT_TIMEOUT": "3"})
    s.write("hold", "")
    job.until_output("held")
    r = s.hale("ckpt", job.id())
    expect(r.status == 1 and "did not stop for it within 3 s" in r.err, r)
    ckpt = s.start(HALE, "ckpt", job.id())
    job.until(lambda: glob.glob(s.path("hale-ckpt", "*", "2.tmp")), "the next one has begun")
    s.write("go", "")
    r = ckpt.wait()
    expect(r.status == 0, r, job.err())
    os.kill(job.ranks(1)[0], signal.SIGKILL)
    job.until_says("all ranks run again")
    s.write("stop", "")
    r = job.wait()
    expect(r.status == 0 and r.out.endswith("done\n"), r)


@test
def with_little_room_for_addresses_checkpoints_are_taken_and_used(s):
    """As under ulimit -v, or where all room counts (vm.overcommit_memory 2)."""
    have("prlimit")
    for more in [[], ["--incremental", "--restart", "lazy"]]:
        job = s.start("prlimit", f"--as={1 << 30}", HALE, "run", "-n", 2, *more, "--", *until_told(s))
        goes_on(job)
        for _ in range(2):
            r = s.hale("ckpt", job.id())
            expect(r.status == 0, r, job.err())
        os.kill(job.ranks(2)[1], signal.SIGKILL)
        job.until_says("all ranks run again from checkpoint 2")
        goes_on(job)
        stop(s, job)
        shutil.rmtree(s.path("hale-ckpt"))


@test
def a_request_that_found_no_room_among_the_signals_of_a_rank_comes_again(s):
    job = s.hale_start(2, *until_told(s))
    goes_on(job)
    pid = job.ranks(2)[1]
    _, most = resource.prlimit(pid, resource.RLIMIT_SIGPENDING)
    resource.prlimit(pid, resource.RLIMIT_SIGPENDING, (0, most))
    ckpt = s.start(HALE, "ckpt", job.id())
    time.sleep(0.5)  # it has been sent, in vain
    expect(ckpt.running(), ckpt)
    resource.prlimit(pid, resource.RLIMIT_SIGPENDING, (most, most))
    r = ckpt.wait()
    expect(r.status == 0, r)
    stop(s, job)


@test
def sigusr1_to_hale_run_takes_a_checkpoint(s):
    exe = s.compile("steps")
    job = s.hale_start(2, exe, "0", "5", options=["--report", "report.json"])
    job.until_output("rank 0 step 5 ")
    job.kill(signal.SIGUSR1)
    job.until(s.complete,
              "a checkpoint is there")
    s.write("stop", "")
    r = job.wait()
    expect(r.status == 0, r)
    done = [c for c in s.report()["checkpoints"] if c["complete"]]
    expect(len(done) == 1, s.report())


@test
def the_checkpoint_folder_is_private(s):
    exe = s.compile("steps")
    job = s.hale_start(2, exe, "0", "5")
    job.until_output("rank 0 step 5 ")
    path = job.checkpoint()
    modes = {p: os.stat(p).st_mode & 0o777 for p in
             [s.path("hale-ckpt")] + glob.glob(path + "/**", recursive=True)}
    s.write("stop", "")
    expect(job.wait().status == 0, job.result())
    expect(all(m & 0o077 == 0 for m in modes.values()), modes)


main()
