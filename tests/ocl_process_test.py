#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What surrounds OpenCL in a process: forks, exec, callbacks that end it, loaders that are closed, wrong settings, and disks
that fail at any call."""

from lib import *
from ocl_parts import *

LAYER = os.path.join(BUILD, "libhale_opencl.so")
REMOTE = {"OCL_ICD_VENDORS": os.path.join(BUILD, "libhale_opencl_remote.so")}


@test
def what_processes_do(s):
    exe = opencl(s, "ocl_process", "-ldl")
    for what in ["daemon", "fork", "exec", "closed", "callback"]:
        alone = s.run(exe, what)
        expect(alone.status == (7 if what == "callback" else 0) and alone.out, what, alone)
        for env in [{}, REMOTE] if what != "daemon" else [{}]:
            r = layered(s, "check=none inject=epoch:2", exe, what, **env)
            expect(r.status == alone.status and r.out == alone.out, what, env, r)
            expect(found(r)[:2] == ((0, 0) if what == "callback" else (1, 1)), what, env, r)
    # a thread that is cancelled, a handler that ends the program: while they wait for a read
    for env in [{}, REMOTE]:
        r = layered(s, "check=none ckpt=every-epoch", exe, "cancelled", **env)
        expect(r.status == 0 and r.out.startswith("work "), env, r)
        r = layered(s, "check=none", exe, "alarm", **env)
        expect(r.status == 9, env, r)
    # who forks first gets a sentence where a child can't be protected, or has no OpenCL
    r = layered(s, "check=none", exe, "child")
    expect(r.status == 0 and "child: a context\n" in r.out and "is not protected" in r.err, r)
    r = layered(s, "check=none", exe, "child", **REMOTE)
    expect(r.status == 0 and "child: none\n" in r.out and "by fork" in r.err and "work " in r.out, r)
    r = layered(s, "check=none", exe, "daemon", **REMOTE)
    expect(r.status == 3 and "after the fork" in r.err, r)
    r = s.run(exe, "twice", LAYER)
    expect(r.status == 0 and r.out == "once is enough\n" and "twice" in r.err, r)


@test
def a_callback_of_the_runtime_waits_for_no_transfer(s):
    """The first large one of a context finds pinned memory, by a command that the thread which calls back would run."""
    exe = opencl(s, "ocl_called")
    alone = s.run(exe)
    for where in [{}, REMOTE]:
        same(s, "check=none", exe, alone=alone, POCL_MAX_PTHREAD_COUNT="1", **where)


@test
def a_program_that_takes_anothers_place_leaves_no_server(s):
    exe = opencl(s, "ocl_process", "-ldl")
    job = s.start(exe, "sleeper", env=REMOTE, stdin=subprocess.PIPE)
    job.until_output(r"^asleep")
    for _ in range(400):
        if server_of(job.p.pid) is None:
            break
        time.sleep(0.05)
    expect(server_of(job.p.pid) is None, "the server of the program before is still there")
    job.p.stdin.close()
    expect(job.wait().status == 0, "the program that came after")


@test
def wrong_settings_are_told_at_the_beginning(s):
    exe = opencl(s, "ocl_process", "-ldl")
    for wrong in ["check=", "check=ecc", "check=file:", "ckpt=epochs:0", "ckpt=seconds:x", "opt=none,MOD", "opt=MOD,all",
                  "opt=SLOW", "dir=", "inject=epoch:0", "inject=7", "log=1k", "report=", "server=maybe", "colour=red", "x"]:
        r = layered(s, wrong, exe, "work")
        expect(r.status == EXIT_USAGE and r.out == "" and r.err.startswith("hale: HALE_OPENCL: "), wrong, r)
        expect(len(said(r)) == 1, wrong, r)
    alone = s.run(exe, "work")
    s.write("empty", "")
    for settings, told in [("check=file:/not/there", "No such file"), (f"check=file:{s.path('empty')}", "no number in it"),
                           ("check=none dir=/not/there", "no checkpoints: '/not/there': No such file")]:
        r = layered(s, settings, exe, "work")
        expect(r.status == 0 and r.out == alone.out and r.err.count(told) == 1, settings, r)


@test
def buffers_that_come_and_go_hold_up_no_checkpoint(s):
    """Under ckpt=auto what is released, and only the log has still, is no part of what a checkpoint would cost."""
    exe = opencl(s, "ocl_process", "-ldl")
    for env in [{}, REMOTE]:
        r = layered(s, "check=none", exe, "turnover", **env)
        expect(r.status == 0 and r.out == "0 wrong\n" and found(r)[3] > 0, env, r)


@test
def a_number_that_is_being_written_is_no_error(s):
    exe = opencl(s, "ocl_solver")
    s.write("count", "3\n")
    alone = s.run(exe, "500")
    job = s.start(exe, "-g", s.path("go"), "500", env={
        "OPENCL_LAYERS": LAYER, "HALE_OPENCL": f"check=file:{s.path('count')} ckpt=epochs:50"})
    job.until_output(r"^20 ")
    for _ in range(20):
        for text in ["", "3\n"]:
            s.write("count", text)
            time.sleep(0.01)
    s.write("go", "")
    r = job.wait()
    expect(r.status == 0 and r.out == alone.out and found(r)[:2] == (0, 0), r)


@test
def a_disk_that_fails_at_any_call(s):
    """Each call on the file of checkpoints in turn, once or from then on: the right result, or, where an error came when
    nothing could be restored, its code, and nothing wrong before."""
    exe = opencl(s, "ocl_solver")
    disk = s.compile("ocl_disk", mpi=None, flags=["-Wno-comment", "-shared", "-fPIC", "-ldl"])
    chance = random.Random(SEED)
    alone = s.run(exe, "6")
    told = 0
    for settings in ["ckpt=every-epoch inject=epoch:4", "ckpt=epochs:2 inject=epoch:5 opt=none"]:
        for call in ["open", "pwrite", "short", "pread", "fallocate"]:
            r = same(s, f"check=none {settings}", exe, "6", alone=alone, LD_PRELOAD=disk, OCL_DISK=f"{call}:1000000")
            calls = int(re.search(r"^calls (\d+)", r.err, re.M)[1])
            for at in sorted(chance.sample(range(1, calls + 1), min(calls, 4 if LONG else 2))):
                for once in [{}, {"OCL_DISK_ONCE": "1"}]:
                    r = layered(s, f"check=none {settings}", exe, "6", LD_PRELOAD=disk, OCL_DISK=f"{call}:{at}:28", **once)
                    lines = r.out.splitlines()
                    if r.status == 3:
                        told += 1
                        expect("can't be mended" in r.err and lines.pop().startswith("failed: -5 "), call, at, r)
                        expect(lines == alone.out.splitlines()[:len(lines)], call, at, alone, r)
                    else:
                        expect(r.status == 0 and r.out == alone.out and found(r)[:2] == (1, 1), call, at, settings, r)
                    expect(r.err.count("hale: opencl") < 8, "many words about one disk", r)
    expect(told > 0, "nothing that the disk did was ever noticed")


@test
def ranks_that_use_opencl_may_be_read_by_other_ranks_where_yama_lets_only_those_do_so_that_they_name(s):
    exe = opencl(s, "ocl_mpi", mpi="openmpi")
    rules = s.compile("yama", mpi=None, flags=["-shared", "-fPIC"])
    r = s.hale_run(2, "env", f"LD_PRELOAD={rules}", exe, "20", options=["--opencl"], env={"YAMA": s.path("named")})
    expect(r.status == 0 and r.out.startswith("0 "), r)


main()
