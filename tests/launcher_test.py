#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The launcher by itself: output, input, signals, checkpoints and rollbacks of ranks that are no MPI
programs. tests/programs/fake_rank.c speaks their protocol; empty libraries stand for Hale's."""

from lib import *


class Fake:
    """fake_rank, compiled, and the environment that keeps Hale's own libraries out of it."""

    def __init__(self, s):
        self.s = s
        self.exe = s.compile("fake_rank", mpi=None,
                             flags=["-D_GNU_SOURCE", "-I" + os.path.join(ROOT, "src"),
                                    os.path.join(ROOT, "src/node/segment.c")])
        os.mkdir(s.path("empty"))
        source = s.write("empty.c", "extern int nothing; int nothing;\n")
        for name in ("libhale.so", "libmpi.so.40"):
            r = s.run("gcc", "-shared", "-o", s.path("empty", name), source)
            expect(r.status == 0, r)
        self.env = {"HALE_LIBDIR": s.path("empty")}

    def run(self, ranks, steps, *options, env=None, **kw):
        return self.s.hale_run(ranks, self.exe, steps, options=options,
                               env=dict(self.env, **(env or {})), **kw)

    def start(self, ranks, steps, *options, env=None, **kw):
        return self.s.hale_start(ranks, self.exe, steps, options=options,
                                 env=dict(self.env, **(env or {})), **kw)


def held(s, job, condition, what):
    """The Result of a job whose ranks wait at their end until this holds."""
    job.until(condition, what)
    os.unlink(s.path("hold"))
    return job.wait()


def steps_of(text, rank):
    return [int(x) for x in re.findall(rf"^(?:\[\d+\] )?rank {rank} step (\d+)$", text, re.M)]


def each_once(r, ranks, steps):
    for rank in range(ranks):
        expect(steps_of(r.out, rank) == list(range(steps)), f"rank {rank}", r)
        errors = [int(x) for x in re.findall(rf"^rank {rank} err (\d+)$", r.err, re.M)]
        expect(errors == list(range(steps)), f"rank {rank}'s stderr", r)


# ---- output and input ----

@test
def output_bytes_arrive_in_order_whoever_reads_slowly(s):
    r = s.run("/bin/sh", "-c", f"{HALE} run -n 1 -- seq 1 300000 | (sleep 1; md5sum)")
    wanted = s.run("/bin/sh", "-c", "seq 1 300000 | md5sum")
    expect(r.out == wanted.out, r, wanted)


@test
def a_reader_that_goes_away_is_told_of_and_the_job_goes_on(s):
    job = s.start("/bin/sh", "-c", f"{HALE} run -n 2 --on-closed-output continue -- sh -c "
                  "'i=0; while [ $i -lt 20000 ]; do echo $i; i=$((i+1)); done; echo ok > end.$HALE_RANK'"
                  " | head -1")
    r = job.wait()
    expect(r.out == "0\n", r)
    for _ in range(500):
        if os.path.exists(s.path("end.0")) and os.path.exists(s.path("end.1")):
            break
        time.sleep(0.02)
    expect(os.path.exists(s.path("end.0")) and os.path.exists(s.path("end.1")), r)
    expect("stdout" in r.err and "goes on" in r.err, r)


@test
def lines_of_ranks_are_not_mixed(s):
    r = s.hale_run(4, "/bin/sh", "-c",
                   "i=0; while [ $i -lt 200 ]; do printf 'a%s' $HALE_RANK; printf 'b%s\\n' $HALE_RANK;"
                   " i=$((i+1)); done", options=["--no-mpi"])
    expect(r.status == 0, r)
    expect(sorted(r.out.splitlines()) == sorted(f"a{k}b{k}" for k in range(4) for _ in range(200)), r)


@test
def an_unfinished_line_is_not_held_back(s):
    job = s.hale_start(2, "/bin/sh", "-c", "printf 'name? '; while [ ! -e go ]; do sleep 0.02; done",
                       options=["--no-mpi"])
    job.until(lambda: job.out() == "name? name? ", "the questions are there")
    s.write("go", "")
    expect(job.wait().status == 0, job.result())


@test
def stdin_reaches_rank_0_only_whatever_it_is(s):
    text = "".join(f"{i}\n" for i in range(50000))
    script = "wc -c"
    r = s.hale_run(2, "/bin/sh", "-c", script, stdin=text, options=["--no-mpi", "--tag"])
    expect(sorted(r.out.splitlines()) == [f"[0] {len(text)}", "[1] 0"], r)
    s.write("input", text)
    r = s.run("/bin/sh", "-c", f"{HALE} run --no-mpi -n 2 --tag -- sh -c 'wc -c' < input")
    expect(sorted(r.out.splitlines()) == [f"[0] {len(text)}", "[1] 0"], r)
    r = s.run("/bin/sh", "-c", f"{HALE} run --no-mpi -n 1 -- sh -c 'read a; echo got $a' < input")
    expect(r.out == "got 0\n" and r.status == 0, r)


# ---- signals and the end ----

@test
def a_job_that_ignores_signals_is_ended_by_the_second_one(s):
    job = s.hale_start(2, "/bin/sh", "-c", "trap '' TERM INT; echo ready; while :; do sleep 0.05; done",
                       options=["--no-mpi"])
    job.until(lambda: job.out().count("ready") == 2, "both are ready")
    job.kill(signal.SIGTERM)
    job.until_says("SIGTERM")
    job.kill(signal.SIGTERM)
    expect(job.wait().status == 137, job.result())


@test
def sigusr2_is_passed_on(s):
    job = s.hale_start(2, "/bin/sh", "-c", "trap 'echo got it; exit 0' USR2; echo ready;"
                       " while :; do sleep 0.05; done", options=["--no-mpi"])
    job.until(lambda: job.out().count("ready") == 2, "both are ready")
    job.kill(signal.SIGUSR2)
    r = job.wait()
    expect(r.status == 0 and r.out.count("got it") == 2, r)


def state(pid):
    with open(f"/proc/{pid}/stat") as f:
        return f.read().rsplit(")", 1)[1].split()[0]


@test
def stop_and_continue_reach_the_ranks(s):
    job = Fake(s).start(2, 100000)
    pids = list(job.ranks(2).values())
    job.until_output("rank 0 step 3$")
    job.kill(signal.SIGTSTP)
    job.until(lambda: all(state(p) == "T" for p in pids) and state(job.pid) == "T", "all stand")
    job.kill(signal.SIGCONT)
    job.until(lambda: all(state(p) != "T" for p in pids), "all run again")
    at = steps_of(job.out(), 0)[-1]
    job.until_output(rf"rank 0 step {at + 20}$")
    job.kill(signal.SIGTERM)
    expect(job.wait().status == 143, job.result())


@test
def what_a_rank_left_in_its_group_ends_with_the_job(s):
    r = s.hale_run(2, "/bin/sh", "-c", "sleep 1000 & exit 0", options=["--no-mpi"])
    expect(r.status == 0, r)  # the harness looks for processes that are left
    expect("has started in the background still runs" in r.err, r)


@test
def what_a_rank_left_behind_may_come_to_its_end(s):
    """As R's workers do, which remove their folders when the program has ended."""
    for kind in "", "setsid ":
        r = s.hale_run(1, "/bin/sh", "-c", f"{kind}sh -c 'echo > began; sleep 0.3; echo > ended' & while ! test -e began;"
                       " do sleep 0.01; done; exit 0", options=["--no-mpi"])
        expect(r.status == 0 and "still runs" not in r.err, kind, r)
        expect(os.path.exists(s.path("ended")), f"'{kind}': it was ended in the middle of its work", r)
        os.unlink(s.path("began"))
        os.unlink(s.path("ended"))


@test
def abort_crash_and_missing_finalize_give_their_statuses(s):
    f = Fake(s)
    r = f.run(3, 1000, env={"FAKE_ABORTS": "5"})
    expect(r.status == 42 and "rank 1 called MPI_Abort(42)" in r.err, r)
    r = f.run(3, 1000, env={"FAKE_CRASHES": "5"})
    expect(r.status == 139 and "rank 1" in r.err and "no checkpoint" in r.err, r)
    r = f.run(3, 5, env={"FAKE_NO_FINALIZE": "1"})
    expect(r.status == 1 and "MPI_Finalize" in r.err, r)
    r = f.run(3, 5, env={"FAKE_STATUS": "9"})
    expect(r.status == 9, r)


@test
def the_same_crash_again_ends_the_job(s):
    r = Fake(s).run(2, 1000, "--ckpt-every", "1h", "--report", "report.json",
                    env={"FAKE_CRASHES": "10"})
    expect(r.status == 139, r)
    expect(s.report()["restarts"] == 1 and len(s.report()["failures"]) == 2, s.report())


# ---- checkpoints ----

@test
def a_killed_rank_costs_no_line_and_doubles_none(s):
    s.write("hold", "")
    job = Fake(s).start(3, 200, "--ckpt-every", "100ms", "--report", "report.json",
                        "--inject", "kill:rank=any,at-ckpt=6", "--inject", "kill:rank=any,at-ckpt=2",
                        "--inject", "kill:rank=1,at-restart=1", "--seed", SEED)
    r = held(s, job, lambda: job.err().count("was killed by") == 3, "three deaths")
    expect(r.status == 0, r)
    each_once(r, 3, 200)
    expect(s.report()["restarts"] == 3 and len(s.report()["failures"]) == 3, s.report())


@test
def from_the_beginning_nothing_is_doubled_either(s):
    r = Fake(s).run(2, 100, "--ckpt-every", "1h", "--inject", "kill:rank=0,after=300ms")
    expect(r.status == 0 and "the beginning" in r.err, r)
    each_once(r, 2, 100)


@test
def input_is_fed_again_after_a_rollback(s):
    f = Fake(s)
    text = "".join(chr(65 + i * 7 % 58) for i in range(400))
    s.write("input", text)
    wanted = [(i, ord(c)) for i, c in enumerate(text)][:150]
    options = "--ckpt-every 100ms --inject kill:rank=0,after=350ms " \
              "--inject kill:rank=1,after=600ms"
    run = f"{HALE} run -n 2 {options} -- {f.exe} 150"
    for line in (f"{run} < input", f"cat input | {run}"):
        r = s.run("/bin/sh", "-c", line, env=dict(f.env, FAKE_READS="1"))
        expect(r.status == 0, r)
        got = [(int(a), int(b)) for a, b in re.findall(r"^read (\d+) (-?\d+)$", r.out, re.M)]
        expect(got == wanted, r)


@test
def other_output_the_second_time_is_said_once_a_stream(s):
    s.write("hold", "")
    job = Fake(s).start(2, 150, "--ckpt-every", "100ms", "--inject", "kill:rank=0,at-ckpt=2",
                        "--inject", "kill:rank=1,at-ckpt=4", env={"FAKE_DIFFERS": "1"})
    r = held(s, job, lambda: job.err().count("was killed by") == 2, "two deaths")
    expect(r.status == 0, r)
    expect(1 <= r.err.count("prints other text on stdout") <= 2, r)


@test
def a_rank_that_does_not_answer_costs_one_checkpoint_not_the_job(s):
    f = Fake(s)
    # long enough for the other one to answer on a busy machine
    job = f.start(2, 100000, env={"FAKE_DEAF": "1", "HALE_CKPT_TIMEOUT": "4s"})
    job.ranks(2)
    job.until_output("rank 1 step 3$")
    r = s.hale("ckpt", job.id())
    expect(r.status == 1 and re.search("rank 1 did not stop", r.err), r)
    at = steps_of(job.out(), 0)[-1]
    job.until_output(rf"rank 0 step {at + 20}$")
    job.kill(signal.SIGTERM)
    expect(job.wait().status == 143, job.result())
    expect(not glob.glob(s.path("hale-ckpt/*/*.tmp")), "something half written is left")


@test
def a_failing_checkpoint_is_said_once_and_the_job_goes_on(s):
    r = Fake(s).run(2, 150, "--ckpt-every", "50ms", env={"FAKE_FAILS": "1"})
    expect(r.status == 0, r)
    expect(r.err.count("this one always fails") == 1, r)
    expect(not glob.glob(s.path("hale-ckpt/*/*[0-9]")), "a checkpoint is left")


@test
def requests_while_one_is_written_are_one(s):
    job = Fake(s).start(2, 100000, "--report", "report.json", env={"FAKE_WRITE_US": "2000000"})
    name = job.id()
    job.until_output("rank 1 step 3$")
    asks = [s.start(HALE, "ckpt", name) for _ in range(4)]
    paths = {a.wait().out for a in asks}
    expect(len(paths) <= 2, paths)
    job.kill(signal.SIGTERM)
    job.wait()
    expect(len(s.report()["checkpoints"]) <= 2, s.report())


@test
def only_the_newest_checkpoints_are_kept_and_the_record_tells_all(s):
    s.write("hold", "")
    job = Fake(s).start(2, 150, "--ckpt-every", "60ms", "--keep", "3", "--report", "report.json")
    r = held(s, job, lambda: s.complete() and int(os.path.basename(s.complete()[-1])) > 4,
             "more than four checkpoints")
    expect(r.status == 0, r)
    done = s.report()["checkpoints"]
    kept = s.complete()
    expect(len(done) > 4 and len(kept) == 3, kept, s.report())
    with open(glob.glob(s.path("hale-ckpt/*/record.jsonl"))[0]) as f:
        events = [json.loads(line)["event"] for line in f]
    expect(events[0] == "launched" and events[-1] == "ended", events)
    expect(events.count("checkpoint") == len([c for c in done if c["complete"]]), events)


@test
def a_restart_goes_on_where_output_and_input_stood(s):
    f = Fake(s)
    text = "".join(chr(65 + i % 26) for i in range(3000))
    s.write("input", text)
    with open(s.path("input")) as stdin:
        job = f.start(2, 100000, env={"FAKE_READS": "1"}, stdin=stdin)
    job.until_output("rank 0 step 20$")
    path = job.checkpoint()
    job.until_output("rank 0 step 60$")
    job.kill()
    job.p.wait()
    again = s.start(HALE, "restart", path, env=dict(f.env, FAKE_READS="1"))
    again.until_output("rank 0 step 80$")
    again.kill(signal.SIGTERM)
    r = again.wait()
    steps = steps_of(r.out, 0)
    expect(20 <= steps[0] <= 61 and steps == list(range(steps[0], steps[0] + len(steps))), r)
    for at, byte in re.findall(r"^read (\d+) (\d+)$", r.out, re.M):
        expect(chr(int(byte)) == text[int(at)], f"input at step {at}", r)


@test
def ranks_that_have_ended_stay_ended_after_a_rollback(s):
    script = s.write("job.sh", '[ "$HALE_RANK" = 0 ] && { echo done; exit 0; }\n'
                     f'exec {Fake(s).exe} 120\n')
    r = s.hale_run(2, "/bin/sh", script, env={"HALE_LIBDIR": s.path("empty")},
                   options=["--no-mpi", "--ckpt-every", "100ms", "--report", "report.json",
                            "--inject", "kill:rank=1,after=400ms"])
    # the restarted rank is the shell again: sinks are the images' programs, and a fake has none
    expect(r.out.count("done") == 1, r)


@test
def a_program_that_executes_another_one_is_that_one(s):
    script = s.write("job.py", "import os, time\nfor i in range(60):\n    print(i, flush=True)\n"
                     "    time.sleep(0.02)\nwhile os.path.exists('hold'):\n    time.sleep(0.02)\n")
    s.write("hold", "")
    job = s.hale_start(1, "/bin/sh", "-c", f"exec sh -c 'exec {PYTHON} {script}'",
                       options=["--no-mpi", "--ckpt-every", "200ms", "--report", "report.json",
                                "--inject", "kill:rank=0,at-ckpt=3"])
    r = held(s, job, lambda: "all ranks run again" in job.err(), "a rollback")
    expect(r.status == 0 and r.out == "".join(f"{i}\n" for i in range(60)), r)
    expect(s.report()["restarts"] == 1 and s.report()["failures"][0]["rolled_back_to"] > 0,
           s.report())


@test
def a_killed_writer_of_an_image_costs_one_checkpoint_not_the_job(s):
    script = s.write("job.py", "import os, time\nmuch = bytearray(os.urandom(1 << 20) * 300)\n"
                     "print('ready', flush=True)\nwhile not os.path.exists('stop'):\n"
                     "    time.sleep(0.02)\n")
    job = s.hale_start(1, PYTHON, script, options=["--no-mpi"])
    job.until_output("ready")
    rank = job.ranks(1)[0]

    def killed():
        """The Result of hale ckpt whose writer was killed; None: it was done before."""
        asks = s.start(HALE, "ckpt", job.id())
        while asks.running():
            for writer in children(rank):
                os.kill(writer, signal.SIGKILL)
                return asks.wait()
        return None

    r = job.until(killed, "a writer is met while it writes")
    expect(r.status == 1 and "wrote an image" in r.err, r)
    job.checkpoint()
    s.write("stop", "")
    expect(job.wait().status == 0, job.result())


# ---- what it says ----

@test
def progress_is_shown_on_a_terminal(s):
    have("script")
    f = Fake(s)
    r = s.run("script", "-qec", f"{HALE} run -n 2 --ckpt-every 100ms -- {f.exe} 40",
              "/dev/null", env=dict(f.env, FAKE_WRITE_US="700000"))
    expect(r.status == 0, r)
    expect(re.search(r"checkpoint 1: .* of .*, [012]/2 ranks", r.out), r)


@test
def two_jobs_must_be_told_apart(s):
    f = Fake(s)
    jobs = [f.start(1, 100000) for _ in range(2)]
    names = {j.id() for j in jobs}
    expect(len(names) == 2, names)
    r = s.hale("ckpt")
    expect(r.status == EXIT_USAGE and "jobs are running" in r.err, r)
    for j in jobs:
        j.kill(signal.SIGTERM)
        j.wait()


main()
