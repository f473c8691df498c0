#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Ranks that have child processes: no image holds a child, so no checkpoint is taken meanwhile."""

from lib import *


@test
def statuses_of_shells_that_ranks_run_add_up_after_a_rollback(s):
    exe = s.compile("system_sums")
    for victim in range(2):
        r = s.hale_run(3, exe, "12", options=["--ckpt-every", "100ms", "--inject",
                                              f"kill:rank={victim},after=1.3s", "--report", "report.json"])
        expect(r.status == 0 and r.out == "sum 27648\n", r)
        expect(s.report()["restarts"] == 1, s.report())


@test
def a_shell_with_commands_in_the_background_of_its_loop_loses_no_line(s):
    lines = "".join(f"line {i}\n" for i in range(1, 6))
    r = s.hale_run(1, "sh", "-c", "for i in 1 2 3 4 5; do (sleep 0.2; echo line $i); done",
                   options=["--no-mpi", "--ckpt-every", "50ms", "--inject", "kill:rank=0,after=0.5s",
                            "--report", "report.json"])
    expect(r.status == 0 and r.out == lines, r)
    expect(s.report()["restarts"] == 1, s.report())


PYTHON = """
import subprocess, time
print([subprocess.call(["sh", "-c", "sleep 0.15; exit 2"]) for i in range(6)])
"""


@test
def statuses_of_pythons_subprocesses_are_right_after_a_rollback(s):
    r = s.hale_run(1, "/usr/bin/python3", "-c", PYTHON,
                   options=["--no-mpi", "--ckpt-every", "30ms", "--inject", "kill:rank=0,after=0.6s",
                            "--report", "report.json"])
    expect(r.status == 0 and r.out == "[2, 2, 2, 2, 2, 2]\n", r)
    expect(s.report()["restarts"] == 1, s.report())


@test
def a_job_that_always_has_children_is_told_since_when_it_is_unprotected(s):
    job = s.hale_start(1, "sh", "-c", "sleep 100 & while ! test -e stop; do read x < /dev/null; sleep 0.05; done;"
                       " kill $!; echo done",
                       options=["--no-mpi", "--ckpt-every", "150ms", "--ckpt-wait", "100ms", "--report",
                                "report.json"])
    job.until(lambda: "which no image holds; the job goes on" in job.err(), "a refusal")
    listed = [j for j in json.loads(s.hale("ps", "--json").out)["jobs"] if j["id"] == job.id()]
    expect(len(listed) == 1 and "(sleep) runs" in listed[0]["unprotected"]["why"], listed)
    expect(0 < listed[0]["unprotected"]["since_seconds"] <= listed[0]["seconds"], listed)
    expect("no checkpoint since" in s.hale("ps").out, s.hale("ps"))
    r = s.hale("ckpt", job.id())
    expect(r.status == 1 and "child process" in r.err, r)
    s.write("stop", "")
    r = job.wait()
    expect(r.status == 0 and r.out == "done\n", r)
    expect(r.err.count("waits for a moment without child processes") == 1, r)
    # told once, though the number of the process may differ
    expect(r.err.count("; the job goes on and it is tried again later") == 1, r)
    expect("child process" in s.report()["unprotected"]["why"], s.report())


@test
def a_child_that_nobody_has_waited_for_keeps_its_status(s):
    job = s.hale_start(1, "/usr/bin/python3", "-c", "import os, time\n"
                       "pid = os.fork() or os._exit(7)\n"
                       "while not os.path.exists('stop'): time.sleep(0.02)\n"
                       "print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)\n"
                       "while not os.path.exists('end'): time.sleep(0.02)\n",
                       options=["--no-mpi", "--ckpt-wait", "100ms"])
    ready = lambda: (r := s.hale("ckpt", job.id())).status == 1 and "has not waited for it yet" in r.err
    job.until(ready, "a checkpoint is refused for the sake of the status")
    s.write("stop", "")
    job.until_output("7")
    path = job.checkpoint()
    expect(os.path.exists(path), path)
    s.write("end", "")
    expect(job.wait().status == 0, job.err())


main()
