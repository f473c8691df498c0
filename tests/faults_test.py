#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Bad input and faults: each gives one clear sentence and a defined exit status, and loses nothing."""

from lib import *
from lib import stat_of
from steps_parts import end, goes_on, last_step, last_step_of, lines, stop, undisturbed, until_told


def hale_lines(r):
    return [x for x in said(r) if x.startswith("hale: ")]


def refuses(r, status, *words):
    """One sentence of Hale's that has these words, and this exit status."""
    expect(r.status == status, f"status should be {status}", r)
    said = hale_lines(r)
    expect(len(said) == 1, f"{len(said)} sentences instead of one", r)
    for w in words:
        expect(re.search(w, said[0], re.I), f"no /{w}/ in: {said[0]}", r)


# ---- programs that can't run ----

@test
def a_program_that_is_not_there_is_refused_with_127(s):
    refuses(s.hale_run(2, "./no-such-program"), 127, "no-such-program", "not found|no such|there is no")
    refuses(s.hale_run(2, "no-such-program-in-path"), 127, "no-such-program-in-path")


@test
def a_program_that_may_not_be_executed_is_refused_with_126(s):
    s.write("plain.txt", "hello\n")
    refuses(s.hale_run(2, "./plain.txt"), 126, "plain.txt", "execut")
    refuses(s.hale_run(2, s.dir), 126, "a folder")


@test
def interfaces_that_are_not_there_are_named(s):
    r = s.hale_run(2, *until_told(s), options=["--nodes", "2"], env={"HALE_NET_DEVICES": "nonsense"})
    expect(r.status == 1 and "no interface of HALE_NET_DEVICES=nonsense" in r.err, r)
    expect("messages could not be set up" in r.err and "out of memory" not in r.err, r)


@test
def a_program_without_mpi_is_named(s):
    # mpirun starts such programs as well, so this is no error; but nothing of it can come back
    r = s.hale_run(2, "/bin/echo", "hello")
    expect(r.status in (0, EXIT_USAGE), r)
    if r.status == 0:
        expect(r.out == "hello\nhello\n", r)
    else:
        refuses(r, EXIT_USAGE, "echo", "MPI", "--no-mpi")


@test
def what_could_not_be_written_later_is_refused_before_the_job_begins(s):
    s.write("file", "")
    for options in (["--report", "none/r.json"], ["--profile", "none/p.json"], ["--report", s.dir],
                    ["--ckpt-every", "1h", "--ckpt-dir", "file"],
                    ["--ckpt-every", "1h", "--ckpt-dir", "file/below"],
                    ["--ckpt-every", "1h", "--ckpt-dir", "/proc/none/at/all"]):
        r = s.hale_run(2, "touch", s.path("begun"), options=options)
        refuses(r, EXIT_USAGE, re.escape(options[-1]))
        expect(not os.path.exists(s.path("begun")), "it has begun", r)
    # and where they can be, nothing is there before there is a checkpoint
    r = s.hale_run(1, "true", options=["--ckpt-every", "1h", "--ckpt-dir", s.path("a/b/"),
                                       "--report", "r.json"])
    expect(r.status == 0 and not os.path.exists(s.path("a")), r)
    expect("r.json" in os.listdir(s.dir) and not glob.glob(s.path("*.tmp")), os.listdir(s.dir))


@test
def bad_options_are_refused_with_64(s):
    refuses(s.hale("run", "--no-such-option", "x"), EXIT_USAGE, "no-such-option")
    refuses(s.hale("run", "-n", "0", "--", "true"), EXIT_USAGE, "-n")
    refuses(s.hale("run", "-n", "2x", "--", "true"), EXIT_USAGE, "2x")
    refuses(s.hale("run", "--ckpt-every", "soon", "--", "true"), EXIT_USAGE, "soon")
    refuses(s.hale("run", "-n", "2"), EXIT_USAGE, "program")
    refuses(s.hale("no-such-command"), EXIT_USAGE, "no-such-command")
    refuses(s.hale("restrat", "x"), EXIT_USAGE, "did you mean `hale restart`")
    slips = {"--folow": ["events"], "--jsno": ["ps"], "--lisen": ["web"], "--htlm": ["report"], "--plto": ["model", "interval"],
             "--works": ["sim"], "--nodse": ["advise"]}
    meant = {"--folow": "--follow", "--jsno": "--json", "--lisen": "--listen", "--htlm": "--html", "--plto": "--plot",
             "--works": "--work", "--nodse": "--nodes"}
    for slip, command in slips.items():
        r = s.hale(*command, slip, "3")
        expect(r.status == EXIT_USAGE and slip in r.err and r.err.count(f"did you mean {meant[slip]}?") == 1, r)
    r = s.hale("sim", "--frobnicate")
    expect(r.status == EXIT_USAGE and "did you mean" not in r.err, r)
    refuses(s.hale("/bin/true"), EXIT_USAGE, "hale run -n 4 /bin/true")
    refuses(s.hale("image", "show", "nosuch"), EXIT_USAGE, "there is no file 'nosuch'; images are")
    refuses(s.hale("inject", "kill"), EXIT_USAGE, "which rank is to die")
    refuses(s.hale("run", "-n", "1000000", "--", "true"), EXIT_USAGE, "1000000")


@test
def a_job_that_is_not_there_is_said_to_be_not_there(s):
    for command in ("ckpt", "inject"):
        argv = [command, "no-such-job"] if command == "ckpt" else [command, "kill", "no-such-job",
                                                                  "--rank", "0"]
        r = s.hale(*argv)
        expect(r.status != 0, r)
        expect(len(hale_lines(r)) == 1 and "no-such-job" in r.err, r)


# ---- programs that misuse MPI ----

@test
def a_call_before_init_ends_the_job_with_a_sentence(s):
    exe = s.compile("misuse")
    r = s.hale_run(2, exe, "before-init")
    expect(r.status not in (0, 139), r)
    expect("MPI_Comm_rank" in r.err and "MPI_Init" in r.err, r)


@test
def a_call_after_finalize_ends_the_job_with_a_sentence(s):
    exe = s.compile("misuse")
    r = s.hale_run(2, exe, "after-finalize")
    expect(r.status not in (0, 139), r)
    expect("MPI_Comm_rank" in r.err and "MPI_Finalize" in r.err, r)


@test
def mpi_abort_ends_all_ranks_with_its_code(s):
    exe = s.compile("misuse")
    r = s.hale_run(4, exe, "abort", options=["--report", "report.json"])
    expect(r.status == 7, r)
    expect(re.search(r"rank 1.*MPI_Abort|MPI_Abort.*rank 1", r.err), r)
    expect(s.report()["restarts"] == 0, s.report())


@test
def a_rank_that_exits_without_finalize_ends_the_job(s):
    exe = s.compile("misuse")
    r = s.hale_run(4, exe, "exit-without-finalize")
    expect(r.status == 3, r)
    expect("rank 1" in r.err and "MPI_Finalize" in r.err, r)
    r = s.hale_run(4, exe, "exit-0-without-finalize")
    expect(r.status not in (0, 139), r)
    expect("rank 1" in r.err and "MPI_Finalize" in r.err, r)


@test
def a_wrong_argument_is_an_mpi_error_never_a_crash(s):
    exe = s.compile("misuse")
    r = s.hale_run(2, exe, "bad-rank")
    expect(r.status not in (0, 139, 134), r)
    expect("MPI_Send" in r.err and "MPI_ERR_RANK" in r.err, r)
    r = s.hale_run(2, exe, "bad-rank-returned")
    expect(r.status == 0 and r.out == "class MPI_ERR_RANK\n", r)


@test
def exit_statuses_are_those_of_the_ranks(s):
    exe = s.compile("misuse")
    expect(s.hale_run(4, exe, "nothing").status == 0, "all zero")
    r = s.hale_run(4, exe, "exit-5")
    expect(r.status == 5, r)
    r = s.hale_run(4, exe, "exits")
    expect(r.status == 11, "the first non-zero rank's", r)


@test
def a_crash_of_the_program_itself_is_not_repeated_for_ever(s):
    exe = s.compile("misuse")
    r = s.hale_run(2, exe, "segv", options=["--max-restarts", "2", "--report", "report.json"])
    expect(r.status in (139, EXIT_UNRECOVERED), r)
    expect("rank 1" in r.err, r)
    expect(s.report()["restarts"] <= 2, s.report())


@test
def a_message_queue_is_saved_unless_it_tells_of_messages(s):
    exe = s.compile("queue", mpi=None, flags=["-lrt"])
    for how in [], ["gone"], ["told"]:
        go = s.path("go")
        job = s.hale_start(1, exe, go, *how, options=["--no-mpi"])
        job.until_output("begun")
        r = s.hale("ckpt", job.id())
        if how == ["told"]:
            expect(r.status != 0 and re.search(r"descriptor \d+ \(/hale-test\S+\) is a POSIX message queue that tells a "
                                               r"process of messages \(mq_notify\), which can't be saved", r.err), r)
        else:
            expect(r.status == 0, r)
        s.write("go", "")
        r = job.wait()
        expect(r.status == 0 and r.out == "begun\nkept\n", r)
        os.unlink(go)


@test
def a_checkpoint_says_which_rank_it_waits_for_that_somebody_has_stopped(s):
    exe = s.compile("steps")
    job = s.hale_start(3, exe, 0, 10)
    job.until_output("rank 2 step 3 ")
    pids = job.ranks(3)
    os.kill(pids[1], signal.SIGSTOP)
    ask = s.start(HALE, "ckpt", job.id())
    job.until_says(rf"checkpoint 1 waits for rank 1, which is stopped \(SIGSTOP or a debugger\); `kill "
                   rf"-CONT {pids[1]}`")
    states = [r["state"] for r in job.info()["ranks"]]
    expect(states == ["checkpointing", "stopped", "checkpointing"], states)
    os.kill(pids[1], signal.SIGCONT)
    r = ask.wait()
    expect(r.status == 0, r)
    job.until(lambda: [r["state"] for r in job.info()["ranks"]] == ["running"] * 3, "all run on")
    s.write("stop", "")
    r = job.wait()
    expect(r.status == 0 and "done" in r.out, r)


@test
def a_checkpoint_given_up_names_the_stopped_rank(s):
    exe = s.compile("steps")
    job = s.hale_start(2, exe, 0, 10, env={"HALE_CKPT_TIMEOUT": "2s"})
    job.until_output("rank 1 step 3 ")
    pids = job.ranks(2)
    os.kill(pids[0], signal.SIGSTOP)
    r = s.hale("ckpt", job.id())
    expect(r.status != 0 and "rank 0 is stopped (SIGSTOP or a debugger)" in r.err, r)
    os.kill(pids[0], signal.SIGCONT)
    s.write("stop", "")
    r = job.wait()
    expect(r.status == 0 and "done" in r.out, r)


# ---- stores and images ----

@test
def a_full_checkpoint_disk_costs_neither_the_job_nor_the_last_checkpoint(s):
    exe = s.compile("steps")
    disk = s.tmpfs("disk", "64m")
    # 2 x 14 MiB fit once or twice, not with a hog beside them
    job = s.hale_start(2, exe, "0", "5", "14", options=["--ckpt-dir", disk, "--keep", "1",
                                                        "--report", "report.json"])
    job.until_output("rank 0 step 5 ")
    good = job.checkpoint()
    with open(os.path.join(disk, "hog"), "wb") as f:
        try:
            while True:
                f.write(b"x" * (1 << 20))
                f.flush()
        except OSError:
            pass
    r = s.hale("ckpt", job.id())
    expect(r.status != 0, "a checkpoint on a full disk?", r)
    expect(re.search("full|no space|room", r.err, re.I), r)
    step = re.findall(r"^rank 0 step (\d+) ", job.out(), re.M)[-1]
    job.until_output(rf"rank 0 step {int(step) + 20} ")
    os.kill(job.ranks(2)[1], signal.SIGKILL)  # and the good one serves
    job.until_says("restart|roll")
    printed = len(job.out())
    job.until(lambda: len(job.out()) > printed + 200, "the job is further than before")
    s.write("stop", "")
    r = job.wait()
    expect(r.status == 0, r)
    expect(s.report()["restarts"] == 1, s.report())
    expect(os.path.exists(good), "the good checkpoint is gone")
    steps = [int(x) for x in re.findall(r"^rank 0 step (\d+) ", r.out, re.M)]
    expect(steps == list(range(len(steps))), r)


def images_of(path):
    """The files that hold the ranks' memory, largest first."""
    files = [f for f in glob.glob(path + "/**", recursive=True) if os.path.isfile(f)]
    return sorted(files, key=os.path.getsize, reverse=True)


def two_checkpoints(s):
    """A stopped job with two checkpoints: their paths, the older first, and a step between."""
    job = s.hale_start(2, *until_told(s, 2), options=["--keep", "2"])
    job.until_output("rank 0 step 5 ")
    older = job.checkpoint()
    between = 50 + last_step(job)  # output is read some steps late, beside load
    job.until_output(f"rank 0 step {between + 5} ")
    newer = job.checkpoint()
    job.kill()
    job.p.wait()
    s.until_nothing_runs()
    expect(older != newer and os.path.exists(older), "two checkpoints")
    return older, newer, between


def damage_truncate(path):
    with open(path, "r+b") as f:
        f.truncate(os.path.getsize(path) * 2 // 3)


def damage_flip(path):
    flip_in_image(path)


def damage_remove(path):
    os.unlink(path)


def restarted(s, path):
    """The Result of hale restart: refused, or stopped after some steps."""
    job = s.start(HALE, "restart", path)
    while job.running() and last_step(job) < 0:
        time.sleep(0.02)
    s.write("stop", "")
    return job.wait()


def the_one_before_serves(s, damage, *words):
    older, newer, between = two_checkpoints(s)
    image = images_of(newer)[0]
    damage(image)
    r = restarted(s, newer)
    said = "\n".join(hale_lines(r))
    for w in words:
        expect(re.search(w, said, re.I), f"no /{w}/", r)
    if r.status != 0:  # refused; then the one before, when asked for
        expect(r.status == EXIT_UNRECOVERED or r.status == EXIT_USAGE, r)
        expect(not r.out, "something ran although the image is damaged", r)
        r = restarted(s, older)
    expect(r.status == 0, r)
    first = int(re.findall(r"^rank 0 step (\d+) ", r.out, re.M)[0])
    expect(first < between, f"continued from step {first}: not the older one", r)
    wanted, _ = undisturbed(s, 2, last_step_of(r.out) + 1, 2)
    expect(set(lines(r.out)) <= set(lines(wanted)) and "\ndone " in r.out, r)


@test
def a_truncated_image_is_refused_and_the_one_before_used(s):
    the_one_before_serves(s, damage_truncate, r"truncated|torn|short|\d+ of \d+ bytes")


@test
def a_flipped_bit_is_found_and_the_one_before_used(s):
    the_one_before_serves(s, damage_flip, "checksum|corrupt|damaged")


@test
def a_missing_image_is_refused_and_the_one_before_used(s):
    the_one_before_serves(s, damage_remove, "missing|not there|no such|no image")


@test
def a_running_job_passes_over_a_damaged_checkpoint(s):
    job = s.hale_start(2, *until_told(s, 2), options=["--keep", "2", "--report", "report.json"])
    job.until_output("rank 0 step 5 ")
    job.checkpoint()
    goes_on(job)
    damage_flip(images_of(job.checkpoint())[0])
    os.kill(job.ranks(2)[0], signal.SIGKILL)
    job.until_says("(?i)checksum|corrupt|damaged")
    end(s, job, ranks=2, mib=[2], rollbacks=1)


@test
def no_damage_to_an_image_goes_unseen(s):
    exe = s.compile("steps")
    job = s.hale_start(1, exe, "0", "5", "0")
    job.until_output("rank 0 step 5 ")
    image = next(f for f in images_of(job.checkpoint()) if f.endswith(".img"))
    s.write("stop", "")
    expect(job.wait().status == 0, job.result())
    with open(image, "rb") as f:
        whole = f.read()
    expect(s.hale("image", "verify", image).status == 0, "the image as it was written")
    rng = random.Random(SEED)
    tries = 1000 if LONG else 120
    counts = image_covered(whole)
    bad = s.path("bad.img")
    for n in range(tries):
        damaged = bytearray(whole)
        # headers are small, so every other time one of the first bytes
        at = rng.randrange(4096 if n % 2 else len(whole))
        if n % 5 == 4:
            del damaged[at:]
        else:
            damaged[at] ^= 1 << rng.randrange(8)
        with open(bad, "wb") as f:
            f.write(damaged)
        about = f"try {n}, byte {at} of {len(whole)}"
        # what only fills up pages is nothing to a restart, and to this one
        harmless = len(damaged) == len(whole) and not any(a <= at < b for a, b in counts)
        r = s.hale("image", "verify", bad)
        expect(r.status == (0 if harmless else 1) and len(hale_lines(r)) == r.status, about, r)
        r = s.hale("image", "show", bad)
        expect(r.status in (0, 1), about, r)  # what it needs may be whole
    return f"{tries} damages of {len(whole)} bytes"


@test
def what_is_no_checkpoint_is_refused(s):
    s.write("note.txt", "not a checkpoint\n")
    for what in ("no-such-folder", "note.txt", "/etc"):
        r = s.hale("restart", what)
        expect(r.status in (EXIT_USAGE, EXIT_UNRECOVERED) and len(hale_lines(r)) == 1, r)
    r = s.hale("image", "show", s.path("note.txt"))
    expect(r.status != 0 and len(hale_lines(r)) == 1 and "note.txt" in r.err, r)


# ---- what can't be captured ----

@test
def a_rank_that_has_just_ended_is_named_in_place_of_its_descriptors(s):
    """Its supervisor, which would notice its end, stands still."""
    job = s.hale_start(2, *until_told(s), options=["--ckpt-every", "1h"])
    job.until_output("rank 0 step 2 ")
    supervisor = json.loads(s.hale("nodes", job.id(), "--json").out)["nodes"][0]["pid"]
    rank = job.ranks(2)[1]
    os.kill(supervisor, signal.SIGSTOP)
    try:
        os.kill(rank, signal.SIGKILL)
        job.until(lambda: stat_of(rank)[1] == "Z", "it has ended")
        r = s.hale("ckpt", job.id())
    finally:
        os.kill(supervisor, signal.SIGCONT)
    expect(r.status == 1 and "rank 1 has just ended" in r.err, r)
    job.until_says("rolling back to the beginning")
    expect(stop(s, job).status == 0, job.result())


@test
def a_socket_in_the_program_is_refused_before_anything_stops(s):
    exe = s.compile("misuse")
    job = s.hale_start(2, exe, "socket", options=["--report", "report.json"])
    m = job.until_output(r"socket is (\d+)")

    def refused():
        r = s.hale("ckpt", job.id())
        expect(r.status != 0, r)
        return None if "try again" in r.err else r  # rank 0 is still in MPI_Init
    r = job.until(refused, "it is refused")
    expect("socket" in r.err and re.search(rf"\b{m[1]}\b", r.err) and "rank 1" in r.err, r)
    s.write("stop", "")
    r = job.wait()
    expect(r.status == 0, "the job went on", r)
    expect(not [c for c in s.report()["checkpoints"] if c["complete"]], s.report())


@test
def a_thread_that_no_signal_reaches_is_refused_before_anything_stops(s):
    job = s.hale_start(2, s.compile("misuse"), "timer", options=["--report", "report.json"])
    job.until_output("timer")

    def refused():
        r = s.hale("ckpt", job.id())
        expect(r.status != 0, r)
        return None if "try again" in r.err else r  # rank 0 is still in MPI_Init
    r = job.until(refused, "it is refused")
    expect(re.search(r"rank 1 can't be captured: its thread \d+ blocks all signals", r.err), r)
    s.write("stop", "")
    r = job.wait()
    expect(r.status == 0, "the job went on", r)
    expect(s.report()["checkpoints"] == [], "none was begun", s.report())


# ---- hale run itself ----

@test
def ranks_do_not_outlive_hale_run(s):
    exe = s.compile("misuse")
    job = s.hale_start(4, exe, "spin")
    pids = list(job.ranks(4).values())
    job.until_output("spinning")
    job.kill(signal.SIGKILL)
    job.p.wait()
    for _ in range(250):
        if not any(stat for stat in map(os.path.exists, [f"/proc/{p}/exe" for p in pids])):
            break
        time.sleep(0.02)
    left = [p for p in pids if os.path.exists(f"/proc/{p}/exe") and p in children(os.getpid())]
    expect(not left, f"ranks {left} run on")


@test
def nothing_outlives_hale_run_killed_during_a_restart(s):
    exe = s.compile("steps")
    rng = random.Random(SEED)
    for n in range(3):
        shutil.rmtree(s.path("hale-ckpt"), ignore_errors=True)
        job = s.hale_start(4, exe, "0", "5", "20")
        job.until_output("rank 0 step 5 ")
        path = job.checkpoint()
        os.kill(job.ranks(4)[n], signal.SIGKILL)
        time.sleep(rng.uniform(0, 0.1))
        job.kill()
        job.p.wait()
        s.until_nothing_runs()
        again = s.start(HALE, "restart", path)
        again.until_output("rank 0 step ")
        s.write("stop", "")
        r = again.wait()
        os.unlink(s.path("stop"))
        expect(r.status == 0, f"round {n}", r)


@test
def sigint_and_sigterm_end_the_job_as_under_mpirun(s):
    exe = s.compile("misuse")
    for sig in (signal.SIGINT, signal.SIGTERM):
        job = s.hale_start(2, exe, "spin")
        job.ranks(2)
        job.until_output("spinning")
        job.kill(sig)
        r = job.wait(30)
        expect(r.status in (128 + sig, -sig), r)


@test
def jobs_of_containers_keep_apart_in_one_folder(s):
    container = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if s.run(*container, "true").status != 0:
        skip("no right to make a namespace of processes")
    exe = s.compile("misuse")
    pair = [s.start(*container, HALE, "run", "-n", "1", "--", exe, "spin") for _ in range(2)]
    for job in pair:
        job.until_output("spinning")
    ids = [j["id"] for j in json.loads(s.hale("ps", "--json").out)["jobs"] if j["program"] == exe]
    expect(len(set(ids)) == 2, ids)
    folders = {os.path.dirname(s.hale("ckpt", i).out.strip()) for i in ids}
    expect(len(folders) == 2 and all(map(os.path.isdir, folders)), folders)
    for job in pair:
        job.kill()
        job.wait()


@test
def the_folder_of_another_job_of_the_same_name_is_left_alone(s):
    job = s.hale_start(1, s.compile("misuse"), "spin")
    job.until_output("spinning")
    theirs = s.path("hale-ckpt", job.id())
    os.makedirs(theirs + "/1.tmp")  # it has begun since, on another machine, and just takes a checkpoint
    r = s.hale("ckpt", job.id())
    expect(r.status == 1 and re.search("(?i)same name.*--ckpt-dir", r.err), r)
    expect(os.listdir(theirs) == ["1.tmp"], os.listdir(theirs))
    shutil.rmtree(theirs)
    job.checkpoint()
    job.kill(signal.SIGTERM)
    job.wait()


@test
def hale_run_killed_during_a_checkpoint_leaves_no_half_one(s):
    exe = s.compile("steps")
    rng = random.Random(SEED)
    for n in range(3):
        shutil.rmtree(s.path("hale-ckpt"), ignore_errors=True)
        for old in glob.glob(s.path("log.*")):
            os.unlink(old)
        job = s.hale_start(2, exe, "0", "5", "30")
        job.until_output("rank 0 step 5 ")
        first = job.checkpoint()
        asks = s.start(HALE, "ckpt", job.id())
        time.sleep(rng.uniform(0, 0.15))
        job.kill()
        job.p.wait()
        asks.p.wait(60)
        s.until_nothing_runs()
        r = s.start(HALE, "restart", first)
        r.until_output("rank 0 step ")
        s.write("stop", "")
        done = r.wait()
        os.unlink(s.path("stop"))
        expect(done.status == 0, f"round {n}", done)


main()
