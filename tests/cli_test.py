#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""`hale run` as a launcher, and the commands around it."""

from lib import *
from lib import LIMIT, WAIT
from steps_parts import end, until_told


@test
def output_can_be_tagged_with_the_rank(s):
    r = s.hale_run(3, "/bin/sh", "-c", "echo one; echo two", options=["--tag"])
    if r.status == EXIT_USAGE:
        skip("needs an MPI program")
    expect(r.status == 0, r)
    expect(len(r.out.splitlines()) == 6, r)
    for rank in range(3):
        expect(len(re.findall(rf"^\[\D*{rank}\D*\].*(one|two)$", r.out, re.M)) == 2, r)


def into_head(s, options, *program):
    """hale run … | head -n 2: hale's status, what head printed, what was said."""
    command = " ".join([HALE, "run", "--no-mpi", "-n 2", *options, "--", *program])
    r = s.run("bash", "-c", command + " | head -n 2; exit ${PIPESTATUS[0]}")
    expect(r.out == "some line\n" * 2, r)
    return r


@test
def a_job_ends_when_nobody_reads_a_pipe_any_more(s):
    """Also where a process of its own writes the output."""
    for options in [], ["--head-grace", "1min", "--ckpt-dir", s.path("ckpt")]:
        r = into_head(s, options, "yes", "some line")
        expect(r.status == 141, r)
        expect(r.err.count("nobody reads the program's stdout any more: the job ends") == 1, r)


@test
def a_job_goes_on_unread_when_told_to(s):
    script = s.write("lines", "yes 'some line' | head -n 100000; echo whole > $1.$HALE_RANK\n")
    for options in [], ["--head-grace", "1min", "--ckpt-dir", s.path("ckpt")]:
        done = s.path(f"done{len(options)}")
        r = into_head(s, options + ["--on-closed-output", "continue"], "sh", script, done)
        expect(r.status == 0, r)
        for rank in range(2):
            expect(s.read(f"{done}.{rank}") == "whole\n", r)
    r = s.hale_run(1, "true", options=["--on-closed-output", "wait"])
    expect(r.status == EXIT_USAGE and "--on-closed-output takes end" in r.err, r)


def read_all(fd):
    """Of a terminal, until nobody has it open any more."""
    got = b""
    while True:
        try:
            more = os.read(fd, 65536)
        except OSError:
            return got.decode()
        if not more:
            return got.decode()
        got += more


@test
def nobody_waits_for_a_terminal_that_stands_still(s):
    """hale did, in the midst of a write: it granted no lease any more, and all nodes were lost."""
    here, terminal = os.openpty()
    hale = subprocess.Popen([HALE, "run", "-n", "1", "--", PYTHON, "-c", "import os, time\n"
                             "print('#' * 300000, flush=True)\nopen('printed', 'w').close()\n"
                             "while not os.path.exists('go'): time.sleep(0.02)\n"],
                            cwd=s.dir, env=s.env, stdin=subprocess.DEVNULL, stdout=terminal, stderr=terminal)
    os.close(terminal)

    def answers():
        r = s.hale("ps", "--json")
        return r.status == 0 and any(j["pid"] == hale.pid for j in json.loads(r.out)["jobs"] if "pid" in j)

    def until(condition, what):
        for _ in range(WAIT * 10):
            if condition():
                return
            time.sleep(0.1)
        hale.kill()
        raise Failed(f"waited in vain for {what}\n{read_all(here)[-2000:]}")

    try:
        until(lambda: os.path.exists(s.path("printed")), "all that is printed to be taken")
        until(answers, "an answer of hale")
        hale.send_signal(signal.SIGUSR1)  # it has something to say itself, too
        for _ in range(2):
            until(answers, "an answer of hale that has something to say")
        s.write("go", "")
        out = read_all(here)
        expect(hale.wait(LIMIT) == 0, out)
        expect(out.count("#") == 300000 and "hale: no checkpoint: " in out.replace("#", ""), out[-2000:])
    finally:
        os.close(here)


@test
def output_waits_for_room_on_a_full_disk(s):
    """What had no room was dropped for good, with all that came later, and the status was 0."""
    disk = s.tmpfs("disk", "1m")
    with open(os.path.join(disk, "filler"), "wb") as f:
        f.write(b"x" * 800000)
    job = s.start("/bin/sh", "-c", f"exec '{HALE}' run -n 1 -- {PYTHON} -c \"print('#' * 600000)\" >disk/out")
    job.until_says("no room for the program's stdout")
    os.unlink(os.path.join(disk, "filler"))
    r = job.wait()
    expect(r.status == 0 and os.path.getsize(os.path.join(disk, "out")) == 600001, r)


@test
def input_waits_for_room_on_a_full_disk(s):
    """Rank 0 was told that its input ends there, and the job ended well, with a part of it."""
    disk = s.tmpfs("disk", "1m")
    with open(os.path.join(disk, "filler"), "wb") as f:
        f.write(b"x" * 800000)
    given = "".join(f"{i}\n" for i in range(100000))
    s.write("given", given)
    job = s.start("/bin/sh", "-c", f"cat given | TMPDIR='{disk}' '{HALE}' run -n 1 -- cat")
    job.until_says("no room to keep the job's input")
    os.unlink(os.path.join(disk, "filler"))
    r = job.wait()
    expect(r.status == 0 and r.out == given and "goes on: there is room for it again" in r.err, r.err)


@test
def output_that_is_lost_is_no_good_end(s):
    """A limit on files (ulimit -f) ended hale by SIGXFSZ, and the job with it."""
    limit = 1 << 30
    with open(s.path("out"), "wb") as f:
        f.truncate(limit - 100000)
    for options, status in ("", EXIT_UNRECOVERED), ("--head-grace 1min", EXIT_UNRECOVERED), \
            ("--on-closed-output continue", 0):
        r = s.run("/bin/bash", "-c", f"ulimit -f {limit // 1024}; exec '{HALE}' run -n 1 {options} -- {PYTHON} -c "
                  "\"print('#' * 300000)\" >>out")
        expect(r.status == status and "File too large" in r.err, options, r)
        os.truncate(s.path("out"), limit - 100000)


def install_at(s, name):
    """Hale in a folder of that name; its path there."""
    os.mkdir(s.path(name))
    shutil.copy(HALE, s.path(name, "hale"))
    for library in glob.glob(os.path.join(BUILD, "lib*.so*")):
        if os.path.isfile(library):
            os.symlink(library, s.path(name, os.path.basename(library)))
    return s.path(name, "hale")


@test
def a_prefix_may_have_blanks_in_it(s):
    hale = install_at(s, "my apps")
    exe = s.compile("steps")
    wanted = sorted(s.hale_run(2, exe, 40, 20).out.splitlines())
    for options in [], ["--host", "a,b", "--launcher", "exec %c"]:
        r = s.run(hale, "run", "-n", 2, "--ckpt-every", "200ms", "--inject", "kill:rank=1,at-ckpt=2",
                  "--report", "report.json", *options, exe, 40, 20)
        expect(r.status == 0 and sorted(r.out.splitlines()) == wanted, r)
        expect("ld.so" not in r.err and json.loads(s.read("report.json"))["restarts"] == 1, r)
        shutil.rmtree(s.path("hale-ckpt"))
    r = s.run(hale, "run", "--no-mpi", "--ckpt-every", "100ms", "--report", "report.json", "sleep", 1)
    expect(r.status == 0 and not said(r), r)
    expect(json.loads(s.read("report.json"))["checkpoints"][0]["complete"], r)


@test
def make_install_takes_a_prefix_with_blanks(s):
    s.write("meson", "#!/bin/sh\nprintf '%s\\n' \"$@\" >> '" + s.path("said") + "'\n")
    os.chmod(s.path("meson"), 0o755)
    r = s.run("make", "-C", ROOT, "install", "BUILD=" + s.path("build"), "NINJA=true",
              "MESON=" + s.path("meson"), "PREFIX=" + s.path("my apps"))
    said = s.read("said").splitlines()
    expect(r.status == 0 and said.count("setup") == said.count("configure") == 1, r, said)
    expect(said.count(s.path("my apps")) == 2, said)


@test
def a_prefix_that_the_loader_cannot_take_is_refused(s):
    hale = install_at(s, "a:b")
    r = s.run(hale, "run", "-n", 2, "true")
    expect(r.status == EXIT_USAGE and "takes no folder with one of : ; $ in its name" in r.err, r)
    os.symlink("a:b", s.path("link"))
    r = s.run(hale, "run", "--no-mpi", "-n", 2, "true", env={"HALE_LIBDIR": s.path("link")})
    expect(r.status == 0 and not said(r), r)


@test
def stdin_goes_to_rank_0(s):
    script = s.write("read.py", "import sys\nfrom mpi4py import MPI\n"
                     "text = sys.stdin.read()\n"
                     "print(MPI.COMM_WORLD.rank, len(text), flush=True)\n")
    r = s.hale_run(3, PYTHON, script, stdin="x" * 200000)
    expect(r.status == 0, r)
    expect(sorted(r.out.splitlines()) == ["0 200000", "1 0", "2 0"], r)


@test
def folder_and_environment_reach_the_ranks(s):
    os.mkdir(s.path("elsewhere"))
    script = s.write("where.py", "import os\nfrom mpi4py import MPI\n"
                     "print(MPI.COMM_WORLD.rank, os.path.basename(os.getcwd()),"
                     " os.environ['COLOUR'], os.environ['SHAPE'], flush=True)\n")
    r = s.hale_run(2, PYTHON, script, options=["--wdir", s.path("elsewhere"), "-x", "COLOUR=blue",
                                               "-x", "SHAPE"], env={"SHAPE": "round"})
    expect(r.status == 0, r)
    expect(sorted(r.out.splitlines()) == ["0 elsewhere blue round", "1 elsewhere blue round"], r)


@test
def options_of_mpirun_are_understood(s):
    exe = s.compile("misuse")
    r = s.hale("run", "-np", "2", "--oversubscribe", "--bind-to", "none", "--mca", "btl", "self",
               exe, "nothing")
    expect(r.status == 0 and not said(r), r)


@test
def a_job_says_what_begins_and_what_it_came_to(s):
    r = s.hale_run(2, "sleep", 3, options=["--no-mpi", "--ckpt-every", "200ms", "--inject", "kill:rank=1,at-ckpt=2"])
    first, *_, last = r.err.splitlines()
    job = re.fullmatch(r"hale: job (sleep\.\S+): 2 ranks on \d+ cores?; a checkpoint every 200 ms, into hale-ckpt/\1",
                       first)
    expect(r.status == 0 and job, r)
    expect(re.fullmatch(rf"hale: job {re.escape(job[1])}: status 0 after [0-9.]+ s; \d+ checkpoints, 1 rollback "
                        r"\([0-9.]+ m?s lost, run again after [0-9.]+ m?s\); the newest are in hale-ckpt/\S+", last), r)
    r = s.hale_run(2, "true", options=["--no-mpi"])
    first, last = r.err.splitlines()
    expect("checkpoints from 30.0 s on, as often as it pays, into hale-ckpt/true." in first, r)
    expect(re.search(r": status 0 after .*; 0 checkpoints$", last), r)
    r = s.hale_run(2, "true", options=["--no-mpi", "--quiet"])
    expect(r.status == 0 and not r.err, r)


@test
def large_outputs_of_all_ranks_arrive_whole(s):
    script = s.write("much.py", "from mpi4py import MPI\nr = MPI.COMM_WORLD.rank\n"
                     "for i in range(20000):\n    print(r, i, 'x' * 50)\n")
    r = s.hale_run(4, PYTHON, script)  # as it comes, like mpirun: lines may be cut by others
    expect(r.status == 0, r)
    expect(len(r.out) == 4 * sum(len(f"0 {i} {'x' * 50}\n") for i in range(20000)), len(r.out))
    r = s.hale_run(4, PYTHON, script, options=["--tag"])  # whole lines
    expect(r.status == 0, r)
    for rank in range(4):
        mine = [x for x in r.out.splitlines() if x.startswith(f"[{rank}] ")]
        expect(mine == [f"[{rank}] {rank} {i} {'x' * 50}" for i in range(20000)], f"rank {rank}")


@test
def ps_shows_the_job_for_people_and_as_json(s):
    exe = s.compile("misuse")
    job = s.hale_start(3, exe, "spin")
    pids = job.ranks(3)
    job.until_output("spinning")
    info = job.info()
    expect(set(info) >= {"id", "program", "state", "ranks"}, info)
    expect("misuse" in info["program"], info)
    for rank in info["ranks"]:
        expect(set(rank) >= {"rank", "slot", "node", "pid", "state"}, info)
    r = s.hale("ps")
    expect(r.status == 0 and info["id"] in r.out and "misuse" in r.out, r)
    expect(all(os.path.basename(os.readlink(f"/proc/{p}/exe")) == "misuse" for p in pids.values()),
           pids)
    job.kill(signal.SIGTERM)
    job.wait()
    r = s.hale("ps", "--json")
    expect(info["id"] not in [j["id"] for j in json.loads(r.out)["jobs"]], r)


@test
def ps_tells_how_fast_memory_changes_by_what_is_not_compressed(s):
    exe = s.compile("misuse")
    for compress, told in (("none", True), ("lz4", False), ("zstd", False)):
        job = s.hale_start(1, exe, "spin", options=["--ckpt-every", "200ms", "--incremental", "--compress", compress])
        last = {}

        def changes():  # each eighth one is of all memory
            last.update(job.info() or {})
            return last.get("checkpoint", 0) % 8 > 2
        job.until(changes, "checkpoints of changes")
        expect(("dirty_bytes_per_second" in last) == told, compress, last)
        job.kill(signal.SIGTERM)
        job.wait()


@test
def ps_can_be_watched(s):
    watch = s.start(HALE, "ps", "--watch=100ms", "--json")
    job = s.hale_start(1, "sleep", 100, options=["--no-mpi"])
    name = job.id()
    watch.until(lambda: any(name in line for line in watch.out().splitlines()), "the job comes")
    job.kill(signal.SIGTERM)
    job.wait()
    watch.until(lambda: watch.out().endswith("\n") and name not in watch.out().splitlines()[-1], "and goes")
    for line in watch.out().splitlines():
        json.loads(line)
    watch.kill(signal.SIGTERM)
    watch.wait()
    expect(s.hale("ps", "--watch=soon").status == EXIT_USAGE, "no time")


@test
def a_stopped_job_does_not_keep_ps_waiting(s):
    exe = s.compile("misuse")
    stopped, other = s.hale_start(2, exe, "spin"), s.hale_start(2, exe, "spin")
    stopped_id, other_id = stopped.id(), other.id()
    os.kill(stopped.pid, signal.SIGSTOP)
    try:
        jobs = {j["id"]: j for j in json.loads(s.hale("ps", "--json").out)["jobs"]}
        expect(jobs[stopped_id]["state"] == "not answering", jobs)
        expect(len(jobs[other_id]["ranks"]) == 2, jobs)
        expect(re.search(stopped_id + " +not answering", s.hale("ps").out), "hale ps")
    finally:
        os.kill(stopped.pid, signal.SIGCONT)
    expect(stopped.info()["state"] != "not answering", "after SIGCONT")
    for job in stopped, other:
        job.kill(signal.SIGTERM)
        job.wait()


@test
def the_report_has_every_key(s):
    job = s.hale_start(2, *until_told(s), options=["--ckpt-every", "200ms", "--report", "report.json"])
    job.until(s.complete, "a checkpoint")
    end(s, job, ranks=2)
    report = s.report()
    expect(set(report) >= {"job", "exit", "ranks", "wall_seconds", "restarts", "checkpoints",
                           "failures"}, report)
    expect(report["exit"] == 0 and report["ranks"] == 2 and report["restarts"] == 0, report)
    done = [c for c in report["checkpoints"] if c["complete"]]
    expect(done, report)
    for c in done:
        expect(set(c) >= {"id", "bytes", "pause_seconds", "seconds", "complete"}, report)
        expect(c["bytes"] > 1 << 20 and c["seconds"] > 0 and c["pause_seconds"] > 0, report)


@test
def image_show_tells_what_is_in_an_image(s):
    exe = s.compile("steps")
    job = s.hale_start(2, exe, "0", "5", "3")
    job.until_output("rank 0 step 5 ")
    path = job.checkpoint()
    s.write("stop", "")
    expect(job.wait().status == 0, job.result())
    files = sorted((f for f in glob.glob(path + "/**", recursive=True) if os.path.isfile(f)),
                   key=os.path.getsize)
    r = s.hale("image", "show", files[-1])
    expect(r.status == 0 and "steps" in r.out, r)
    r = s.hale("image", "show", "--json", files[-1])
    expect(r.status == 0 and json.loads(r.out), r)


@test
def inject_kills_a_rank_of_a_running_job(s):
    exe = s.compile("steps")
    job = s.hale_start(2, exe, "0", "5", options=["--ckpt-every", "200ms", "--report",
                                                  "report.json"])
    job.ranks(2)
    job.until(s.complete,
              "a checkpoint is there")
    r = s.hale("inject", "kill", job.id(), "--rank", "1", "--after", "100ms")
    expect(r.status == 0, r)
    job.until_says("rank 1")
    printed = len(job.out())
    job.until(lambda: len(job.out()) > printed + 200, "the job is further than before")
    s.write("stop", "")
    r = job.wait()
    expect(r.status == 0, r)
    expect(s.report()["restarts"] == 1, s.report())
    steps = [int(x) for x in re.findall(r"^rank 0 step (\d+) ", r.out, re.M)]
    expect(steps == list(range(len(steps))), r)


@test
def help_and_version_are_there(s):
    for argv in (["--help"], ["run", "--help"], ["--version"]):
        r = s.hale(*argv)
        expect(r.status == 0 and r.out and not r.err, r)
    expect(s.hale("--version").out.startswith("hale "), s.hale("--version"))


IN_OVERVIEW_PAGE = ["restart", "ckpt", "ps", "nodes", "migrate", "attach", "inject", "image", "metrics", "top", "web", "report",
                    "stack"]
COMMANDS = IN_OVERVIEW_PAGE + ["run", "events", "backplane", "monitor", "rules", "model", "sim", "advise", "campaign"]


def options_in(text):
    """Of its own: neither those of mpirun that mean nothing, nor those of `hale run` that others mention."""
    text = re.sub(r"(?s)(Options of mpirun that mean nothing|Options are those of).*?\n\n", "", text + "\n\n")
    text = re.sub(r"(?<=[ =])'[^'\n]*'", "", text)  # those of another command
    return set(re.findall(r"(?<![\w…-])--?[a-z](?:[a-z-]*[a-z])?", text))


@test
def help_and_the_man_page_of_hale_have_the_same_options(s):
    """Pages of commands are made from --help (complete_test.py); this one is written by hand."""
    with open(os.path.join(ROOT, "docs/man/hale.1")) as f:
        macros = [x for x in f.read().splitlines() if x.startswith(".")]
    man = {"-" + o for x in macros for o in re.findall(r"\bFl (-?[a-z][a-z-]*)", x)} - {"--version", "--opencl"}
    said = set().union(*[options_in(s.hale(c, "--help").out) for c in IN_OVERVIEW_PAGE]) - {"--opencl"}
    expect(man == said, f"only in the man page {sorted(man - said)}, only in --help {sorted(said - man)}")


@test
def help_lists_each_command(s):
    overview = s.hale("help").out
    for command in COMMANDS:
        expect(f"  hale {command} " in overview, command)


@test
def hale_libraries_in_place_of_open_mpis_give_a_job_of_one(s):
    exe = s.compile("steps")
    r = s.run(exe, "5", env={"LD_LIBRARY_PATH": BUILD})
    expect(r.status == 0 and "done " in r.out, r)


main()
