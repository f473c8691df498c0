#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What people who write mpirun or mpiexec are used to give does here what it does there, or is named."""

import datetime

from lib import *

SHOW = "import os; print(os.environ.get('HALE_RANK'), sorted(os.sched_getaffinity(0)), os.environ.get('A'), flush=True)"


def shown(r):
    expect(r.status == 0, r)
    return sorted(r.out.splitlines())


@test
def localhost_needs_no_ssh(s):
    os.mkdir(s.path("bin"))
    s.write("bin/ssh", "#!/bin/sh\necho ssh was called >&2\nexit 1\n")
    os.chmod(s.path("bin/ssh"), 0o755)
    env = {"PATH": s.path("bin") + ":" + os.environ["PATH"]}
    for hosts in ("localhost:2", "127.0.0.1:2", os.uname().nodename + ":2"):
        r = s.hale("run", "-n", 2, "--no-mpi", "--host", hosts, "true", env=env)
        expect(r.status == 0 and not said(r), r)
    r = s.hale("run", "-n", 2, "--no-mpi", "--host", "elsewhere:2", "true", env=env)
    expect(r.status != 0 and "ssh was called" in r.err, "another host does", r)


@test
def ranks_are_bound_as_asked_and_it_is_told(s):
    mine = sorted(os.sched_getaffinity(0))
    r = s.hale("run", "-n", 1, "--no-mpi", "--cpu-set", mine[-1], "--bind-to", "core", "--report-bindings", PYTHON,
               "-c", SHOW)
    expect(shown(r) == [f"0 [{mine[-1]}] None"], r)
    expect(re.search(rf"rank 0 on \S+: cores {mine[-1]}$", r.err, re.M), r)
    r = s.hale("run", "-n", len(mine), "--no-mpi", "--bind-to", "core", PYTHON, "-c", SHOW)
    bound = [json.loads(re.search(r"\[.*\]", x)[0]) for x in shown(r)]
    expect(len(set(map(tuple, bound))) == len(mine), "each has a core of its own", r)
    r = s.hale("run", "-n", 1, "--no-mpi", "--bind-to", "socket", "--report-bindings", PYTHON, "-c", SHOW)
    package = s.run(PYTHON, "-c", "import glob; me = max(__import__('os').sched_getaffinity(0)); "
                    "print(open(f'/sys/devices/system/cpu/cpu{me}/topology/physical_package_id').read())").out
    expect(len(json.loads(re.search(r"\[.*\]", shown(r)[0])[0])) >= 1 and "rank 0 on" in r.err, r, package)
    r = s.hale("run", "-n", 1, "--no-mpi", "--cpu-set", "4000", "true")
    expect(r.status == EXIT_USAGE and "--cpu-set 4000: these are no cores" in r.err, r)


@test
def output_has_the_time_and_the_rank_before_each_line(s):
    r = s.hale("run", "-n", 2, "--no-mpi", "--timestamp-output", "-l", "sh", "-c", "echo a; echo b")
    expect(r.status == 0 and len(r.out.splitlines()) == 4, r)
    for x in r.out.splitlines():
        m = re.fullmatch(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}) \[[01]\] [ab]", x)
        expect(m and abs(datetime.datetime.fromisoformat(m[1]) - datetime.datetime.now()).total_seconds() < 100, x, r)


@test
def a_job_that_takes_too_long_is_ended(s):
    r = s.hale("run", "-n", 2, "--no-mpi", "--timeout", "1", "sleep", 100)
    expect(r.status == 124 and "it has run for 1.0 s (--timeout)" in r.err, r)
    r = s.hale("run", "-n", 2, "--no-mpi", "sleep", 100, env={"MPIEXEC_TIMEOUT": "1"})
    expect(r.status == 124 and "it has run for 1.0 s" in r.err, r)
    r = s.hale("run", "-n", 2, "--no-mpi", "true", env={"MPIEXEC_TIMEOUT": "soon"})
    expect(r.status == EXIT_USAGE and "MPIEXEC_TIMEOUT is 'soon'" in r.err, r)


@test
def stdin_is_for_nobody_where_that_is_asked(s):
    r = s.hale("run", "--no-mpi", "--stdin", "none", "cat", stdin="something")
    expect(r.status == 0 and r.out == "", r)
    r = s.hale("run", "--no-mpi", "--stdin", "0", "cat", stdin="something")
    expect(r.status == 0 and r.out == "something", r)


@test
def ranks_are_mapped_and_told_of(s):
    r = s.hale("run", "-n", 4, "--no-mpi", "--map-by", "ppr:2:node", "--display-map", "-genv", "A", "x y", PYTHON,
               "-c", SHOW)
    expect([x.split("] ")[1] for x in shown(r)] == ["x y"] * 4, r)
    expect("node node0: ranks 0-1\n" in r.err and "node node1: ranks 2-3\n" in r.err, r)


@test
def output_goes_into_files_once_also_through_a_death(s):
    """Numbered lines of both ranks, one of which is killed after the first checkpoint."""
    program = "import time\nfor i in range(25):\n print(i, flush=True)\n time.sleep(0.05)\nprint('end', file=__import__('sys').stderr)\n"
    job = s.hale_start(2, PYTHON, s.write("lines.py", program),
                       options=["--no-mpi", "--ckpt-every", "200ms", "--output-filename", "out:nocopy"])
    job.until(lambda: s.complete(), "to take a checkpoint")
    os.kill(job.ranks(2)[1], signal.SIGKILL)
    r = job.wait()
    expect(r.status == 0 and r.out == "" and "rolling back to checkpoint" in r.err, r)
    for rank in range(2):
        expect(s.read(f"out/rank.{rank}/stdout") == "".join(f"{i}\n" for i in range(25)), s.read(f"out/rank.{rank}/stdout"), r)
        expect(s.read(f"out/rank.{rank}/stderr") == "end\n", s.read(f"out/rank.{rank}/stderr"), r)


@test
def programs_can_be_named_in_a_file(s):
    s.write("app", "# two of one, one of another\n-n 2 sh -c 'echo \"$HALE_RANK  $HALE_APPNUM\"'\n\nsh -c 'echo c#$HALE_RANK # 1' # the last\n")
    r = s.hale("run", "--no-mpi", "--app", "app")
    expect(shown(r) == ["0  0", "1  0", "c#2"], r)
    s.write("app", "-n 2 true\n-n 1 a | b\n")
    r = s.hale("run", "--no-mpi", "--app", "app")
    expect(r.status == EXIT_USAGE and said(r) == ["hale: app:2: these are no words as a shell has them: quote what is special to it"], r)


@test
def ranks_are_counted_by_what_the_machine_has(s):
    r = s.hale("run", "--no-mpi", "--map-by", "ppr:1:core", "--report-bindings", "true")
    expect(r.status == 0 and len(re.findall(r"rank \d+ on \S+: cores \d+$", r.err, re.M)) >= 1, r)
    cores = s.run("sh", "-c", "lscpu -p=core,socket | grep -v ^# | sort -u | wc -l")
    expect(set(os.sched_getaffinity(0)) != set(range(os.cpu_count())) or f": {int(cores.out)} rank" in r.err, r, cores)


@test
def what_hale_does_not_have_is_named_in_one_line(s):
    r = s.hale("run", "--no-mpi", "--rank-by", "core", "--prefix", "/opt", "true")
    expect(r.status == 0 and said(r) == ["hale: the job runs without --rank-by, --prefix: hale has no such thing"], r)
    r = s.hale("run", "--no-mpi", "--verbose", "--rankfile", "out", "true")
    expect(r.err.count("the job runs without --rankfile") == 1, r)
    r = s.hale("run", "--no-mpi", "--quiet", "--rankfile", "out", "true")
    expect(r.status == 0 and not r.err, r)


main()
