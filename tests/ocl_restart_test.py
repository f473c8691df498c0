#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""OpenCL programs under `hale run`: checkpoints of the whole process, with its device memory; restarts
with a new OpenCL runtime; a runtime that ends by itself."""

import contextlib

from lib import *
from lib import alive
from ocl_parts import *


def killed_between(s, exe, *args, what=(), settings="check=none"):
    """ready, a checkpoint, killed, restarted from it, and on to the end."""
    job = run_opencl(s, exe, *what, s.path("go"), *args, options=["--report", "report.json"], HALE_OPENCL=settings)
    job.until_output(r"^ready")
    pid = job.ranks(1)[0]
    server = server_of(pid)
    job.checkpoint()
    before = life(pid)
    os.kill(pid, signal.SIGKILL)
    job.until(lambda: life(job.ranks(1)[0]) != before and (server is None or not alive(server)), "to restart")
    job.until_says(r"run again from checkpoint 1|rolling back to checkpoint 1")
    s.write("go", "")
    r = job.wait()
    os.unlink(s.path("go"))
    expect(s.report()["restarts"] == 1, r)
    return r, server


@test
def every_kind_of_object_survives_its_runtime(s):
    exe = opencl(s, "ocl_state")
    s.write("go", "")
    alone = s.run(exe, s.path("go"))
    expect(alone.status == 0 and "buffer" in alone.out and "image" in alone.out, alone)
    os.unlink(s.path("go"))
    r, server = killed_between(s, exe)
    expect(r.status == 0 and r.out == alone.out and server, alone, r)


@test
def parts_of_devices_survive_their_runtime(s):
    exe = opencl(s, "ocl_misc")
    s.write("go", "")
    alone = s.run(exe, "parts", s.path("go"))
    expect(alone.status == 0 and "references 2, of it 1" in alone.out, alone)
    os.unlink(s.path("go"))
    r, server = killed_between(s, exe, what=["parts"])
    expect(r.status == 0 and r.out == alone.out and server, alone, r)


@test
def shared_virtual_memory_is_where_it_was(s):
    """Pointers in it, a mapping that is written to before and after."""
    exe = opencl(s, "ocl_svm")
    s.write("go", "")
    alone = s.run(exe, "list", "12", s.path("go"))
    expect(alone.status == 0 and alone.out.endswith("freed 2\n"), alone)
    os.unlink(s.path("go"))
    for settings in ["check=none", "check=none ckpt=epochs:3 inject=epoch:210"]:
        job = run_opencl(s, exe, "list", "12", s.path("go"), options=["--report", "report.json"],
                         HALE_OPENCL=settings)
        job.until_output(r"^ready")
        for n in [1, 2]:  # the restarted one, too, is saved and restarted
            pid = job.ranks(1)[0]
            job.checkpoint()
            before = life(pid)
            os.kill(pid, signal.SIGKILL)
            job.until(lambda: life(job.ranks(1)[0]) != before, "to restart")
            job.until_says(f"(again from|back to) checkpoint {n}")
        s.write("go", "")
        r = job.wait()
        os.unlink(s.path("go"))
        expect(r.status == 0 and r.out == alone.out and s.report()["restarts"] == 2, settings, alone, r)
        shutil.rmtree(s.path("hale-ckpt"), ignore_errors=True)


@test
def a_runtime_of_plain_memory_may_stay_in_the_program(s):
    if ANY:
        skip("whether images can hold this device's runtime is not known")
    exe = opencl(s, "ocl_state")
    s.write("go", "")
    alone = s.run(exe, s.path("go"))
    os.unlink(s.path("go"))
    r, server = killed_between(s, exe, settings="check=none server=off")
    expect(r.status == 0 and r.out == alone.out and server is None, alone, r)


@test
def solvers_are_rolled_back(s):
    exe = opencl(s, "ocl_solver")
    for mode in [[], ["-q", "2", "-o"], ["-m", "-w", "-f"]]:
        alone = s.run(exe, *mode, "1000")
        job = run_opencl(s, exe, *mode, "-g", s.path("go"), "1000", options=["--ckpt-every", "100ms", "--report", "report.json"],
                         HALE_OPENCL="check=none ckpt=epochs:10")
        job.until(lambda: s.complete(), "to take a checkpoint")
        job.until_output(r"^100 ")
        os.kill(job.ranks(1)[0], signal.SIGKILL)
        s.write("go", "")
        r = job.wait()
        os.unlink(s.path("go"))
        expect(r.status == 0 and r.out == alone.out, mode, alone, r)
        expect(s.report()["restarts"] == 1, mode, r)
        shutil.rmtree(s.path("hale-ckpt"), ignore_errors=True)


@test
def errors_in_device_memory_are_mended_after_a_restart_too(s):
    exe = opencl(s, "ocl_solver")
    alone = s.run(exe, "2000")
    job = run_opencl(s, exe, "-g", s.path("go"), "2000", options=["--ckpt-every", "200ms", "--report", "report.json"],
                     HALE_OPENCL="check=none ckpt=epochs:10")
    job.until(lambda: s.complete(), "to take a checkpoint")
    job.until_output(r"^300 ")
    pid = job.ranks(1)[0]
    before = life(pid)
    os.kill(pid, signal.SIGKILL)
    job.until(lambda: life(job.ranks(1)[0]) != before, "to restart")
    job.until_output(r"^1000 ")  # the process is the program again, not still its sink
    job.until(lambda: s.hale("inject", "ecc", job.ranks(1)[0], "--epoch", "1980").status == 0, "to take an error")
    s.write("go", "")
    r = job.wait()
    expect(r.status == 0 and r.out == alone.out and found(r)[:2] == (1, 1), r)


@test
def what_the_layer_says_is_none_of_the_programs_output(s):
    """A line that it says before a rollback is not said again, and what comes then is not taken for it."""
    exe = opencl(s, "ocl_solver")
    alone = s.run(exe, "400")
    job = run_opencl(s, exe, "-r", "-g", s.path("go"), "400", HALE_OPENCL="check=none ckpt=epochs:10", HALE_LOG="info")
    job.until_output(r"^100 ")
    job.checkpoint()
    pid = job.ranks(1)[0]
    job.until(lambda: s.hale("inject", "ecc", pid).status == 0, "to take an error")
    job.until_says("going back and repeating")
    before = life(pid)
    os.kill(pid, signal.SIGKILL)
    job.until(lambda: life(job.ranks(1)[0]) != before, "to restart")
    s.write("go", "")
    r = job.wait()
    expect(r.status == 0 and r.out == alone.out, alone, r)
    expect(re.search(r"^hale: opencl: \d+ errors in device memory, .*; overhead .* s$", r.err, re.M), r)


@test
def what_cannot_be_mended_after_a_restart_costs_a_rollback(s):
    """Two errors in a row and no other device: the job goes back to its checkpoint; the second time, without another
    checkpoint between, it ends."""
    exe = opencl(s, "ocl_solver")
    alone = s.run(exe, "400")
    for times in [1, 2]:
        job = run_opencl(s, exe, "-r", "-g", s.path("go"), "400", options=["--report", "report.json"],
                         HALE_OPENCL="check=none ckpt=off", POCL_DEVICES="pthread")
        job.until_output(r"^100 ")
        job.checkpoint()
        pid = job.ranks(1)[0]
        before = life(pid)
        os.kill(pid, signal.SIGKILL)
        for _ in range(times):
            job.until(lambda: life(job.ranks(1)[0]) != before, "to restart")
            pid = job.ranks(1)[0]
            before = life(pid)
            job.until(lambda: s.hale("inject", "ecc", pid, "--times", "2").status == 0, "to take errors")
        if times == 1:
            job.until(lambda: life(job.ranks(1)[0]) != before, "to restart")
            s.write("go", "")
        r = job.wait()
        s.write("go", "")
        os.unlink(s.path("go"))
        expect("this process ends, so that its job goes back" in r.err, r)
        if times == 1:
            expect(r.status == 0 and r.out == alone.out and s.report()["restarts"] == 2, alone, r)
        else:
            expect(r.status == 128 + signal.SIGABRT and "another restart would not help" in r.err, r)
        shutil.rmtree(s.path("hale-ckpt"), ignore_errors=True)


@test
def what_the_first_command_after_a_restart_changes_is_saved_too(s):
    """An error after the next checkpoint; and a scrub doesn't take it for one."""
    exe = opencl(s, "ocl_first")
    s.write("go", "")
    alone = s.run(exe, s.path("go"))
    expect(alone.status == 0, alone)
    os.unlink(s.path("go"))
    for settings, errors in [("check=none inject=epoch:10", 1), ("check=scrub", 0)]:
        r, _ = killed_between(s, exe, settings=f"ckpt=every-epoch {settings}")
        expect(r.status == 0 and r.out == alone.out and found(r)[:2] == (errors, errors), settings, alone, r)
        shutil.rmtree(s.path("hale-ckpt"), ignore_errors=True)


@test
def ranks_with_devices_of_their_own(s):
    exe = opencl(s, "ocl_mpi", mpi="openmpi")
    alone = s.hale_run(2, exe, "2000")
    expect(alone.status == 0, alone)
    job = run_opencl(s, exe, "2000", s.path("go"), ranks=2,
                     options=["--ckpt-every", "200ms", "--report", "report.json"])
    job.until(lambda: s.complete(), "to take a checkpoint")
    job.until_output(r"^200 ")
    os.kill(job.ranks(2)[1], signal.SIGKILL)
    s.write("go", "")
    r = job.wait()
    expect(r.status == 0 and r.out == alone.out, alone, r)
    expect(s.report()["restarts"] == 1, r)


@test
def they_move_to_other_nodes_and_back(s):
    exe = opencl(s, "ocl_mpi", mpi="openmpi")
    s.write("go", "")
    alone = s.hale_run(2, exe, "2000", s.path("go"))
    expect(alone.status == 0, alone)
    os.unlink(s.path("go"))
    job = run_opencl(s, exe, "2000", s.path("go"), ranks=2, HALE_OPENCL="check=none inject=epoch:900",
                     options=["--nodes", "2", "--spares", "1", "--report", "report.json"])
    job.until_output(r"^200 ")
    for origin in ("node1", "node2", "node0"):
        r = s.hale("migrate", job.id(), "--from", origin)
        expect(r.status == 0 and "1 rank moved" in r.out, r)
    s.write("go", "")
    r = job.wait()
    expect(r.status == 0 and r.out == alone.out, alone, r)
    expect(s.report()["restarts"] == 0 and len(s.report()["migrations"]) == 3, s.report(), r)
    expect(s.report()["opencl"]["recoveries"] == s.report()["opencl"]["errors"] > 0, s.report(), r)


@test
def what_waits_for_the_program_is_no_time_for_a_checkpoint(s):
    exe = opencl(s, "ocl_state")
    job = run_opencl(s, exe, s.path("go"), "gate", HALE_OPENCL="check=none")
    job.until_output(r"^ready")
    r = s.hale("ckpt", job.id())
    expect(r.status != 0 and "user events that the program has not set" in r.err, r)
    s.write("go", "")
    r = job.wait()
    expect(r.status == 0, r)


@test
def a_runtime_that_ends_is_replaced(s):
    solver, recorded = opencl(s, "ocl_solver"), opencl(s, "ocl_recorded")
    svm = [opencl(s, "ocl_svm"), "steps", "1000", s.path("go")]
    chance = random.Random(SEED)
    waits = ["-g", s.path("go"), "1000"]
    for argv in [[solver, *waits], [solver, "-q", "2", "-o", *waits], [solver, "-m", *waits],
                 [recorded, "out", "4000", s.path("go")], *[svm] * (6 if LONG else 2)]:
        s.write("go", "")
        alone = s.run(*argv)
        os.unlink(s.path("go"))
        job = run_opencl(s, *argv, HALE_OPENCL="check=none ckpt=epochs:20")
        job.until_output(r"^100 ")
        server = server_of(job.ranks(1)[0])
        if argv is svm:  # in any call: also where the program has just ended a mapping of what it wrote
            time.sleep(chance.uniform(0, 0.03))
        os.kill(server, signal.SIGKILL)
        s.write("go", "")
        r = job.wait()
        expect(r.status == 0 and r.out == alone.out and found(r)[:2] == (1, 1), argv, alone, r)
        expect("has ended" in r.err, r)


@test
def no_image_is_taken_while_memory_is_being_restored(s):
    """One that is due when the runtime ends would be taken in the move to the next runtime, before the content is
    there, which is in a file that no image has: a program that is killed after it is to go on from another one."""
    exe = opencl(s, "ocl_solver")
    alone = s.run(exe, "3000")
    for _ in range(3 if LONG else 1):
        job = run_opencl(s, exe, "-g", s.path("go"), "3000", HALE_OPENCL="check=none ckpt=epochs:10",
                         options=["--ckpt-every", "30ms", "--keep", "1", "--no-fsync"])
        job.until_output(r"^100 ")
        pid = job.ranks(1)[0]
        before = newest(s)
        os.kill(server_of(pid), signal.SIGKILL)
        job.until(lambda: newest(s) > before, "to take another checkpoint")
        os.kill(pid, signal.SIGKILL)
        s.write("go", "")
        r = job.wait()
        os.unlink(s.path("go"))
        expect(r.status == 0 and r.out == alone.out, alone, r)
        shutil.rmtree(s.path("hale-ckpt"), ignore_errors=True)


def newest(s):
    return max((int(os.path.basename(f)) for f in s.complete()), default=0)


@test
def a_runtime_that_ends_before_any_call_is_replaced(s):
    """Each of the calls of a program that makes all kinds of them, in two contexts, is the one that finds out."""
    at_any_call(s, opencl(s, "ocl_killed"), 200)


def at_any_call(s, exe, least, *what):
    alone = s.run(exe, "0", *what)
    expect(alone.status == 0, alone)
    calls = int(re.search(r"^calls (\d+)$", s.run(exe, "-1", *what).out, re.M)[1])
    expect(calls > least, calls)
    for k in some(range(1, calls + 1), calls // 25):
        job = run_opencl(s, exe, str(k), *what, HALE_OPENCL="check=none")
        r = job.wait()
        expect(r.status == 0 and r.out == alone.out, k, alone, r)


@test
def objects_tell_what_the_program_gave(s):
    """Contexts, devices, programs, parents, also of what was made between two ends of the runtime, or on another
    device."""
    exe = opencl(s, "ocl_told")
    alone = s.run(exe)
    expect(alone.status == 0 and len(alone.out.splitlines()) == 6, alone)
    r = run_opencl(s, exe, "kill", HALE_OPENCL="check=none").wait()
    expect(r.status == 0 and r.out == alone.out and found(r)[:2] == (3, 3), alone, r)
    for env in [{}, {"OCL_ICD_VENDORS": os.path.join(BUILD, "libhale_opencl_remote.so")}]:
        r = same(s, "check=none inject=epoch:1:2", exe, alone=alone, POCL_DEVICES="pthread pthread", **env)
        expect(found(r)[:2] == (2, 1) and "moved to another device" in r.err, env, r)


@test
def commands_have_times_also_when_the_runtime_ends(s):
    """Asked for after a wait; by a program that waits by asking for them; and one before, one after the end of the runtime."""
    exe = opencl(s, "ocl_times")
    for mode in ["wait", "poll", "between"]:
        alone = s.run(exe, mode)
        expect(alone.status == 0 and alone.out.count("in order") == 5, alone)
        r = run_opencl(s, exe, mode, "kill", HALE_OPENCL="check=none").wait()
        expect(r.status == 0 and r.out == alone.out and found(r)[:2] == (2, 2), mode, alone, r)


@test
def programs_of_binaries_are_built_once_when_the_runtime_ends_in_it(s):
    """Some runtimes don't bear a second build of them. And a server that is killed before it is ready is begun again,
    twice in a row; the third time it must come so far."""
    exe = opencl(s, "ocl_built")
    alone = s.run(exe, 2000)
    expect(alone.status == 0 and alone.out == "sum 65280\n", alone)
    for first in range(2):  # the first kill at once, or not
        job = run_opencl(s, exe, 2000, HALE_OPENCL="check=none")
        pid = job.until(lambda: next((p for p in children(job.pid) if name_of(p).startswith(exe)), None), "a rank runs")
        killed = []
        while job.running() and len(killed) < 8:
            server = server_of(pid)
            if server and server not in killed:
                if len(killed) % 3 == 2:
                    job.until(lambda: is_ready(server) or not job.running(), "a server is ready")
                time.sleep(0.1 if killed or first else 0)
                with contextlib.suppress(ProcessLookupError):
                    os.kill(server, signal.SIGKILL)
                    killed.append(server)
            time.sleep(0.002)
        r = job.wait()
        expect(r.status == 0 and r.out == alone.out and len(killed) > 2, killed, alone, r)


@test
def a_program_that_is_linked_while_another_thread_moves_its_context(s):
    exe = opencl(s, "ocl_told")
    for env in [{}, {"OCL_ICD_VENDORS": os.path.join(BUILD, "libhale_opencl_remote.so")}]:
        r = same(s, "check=none inject=epoch:1:2", exe, "linked", POCL_DEVICES="pthread pthread", **env)
        expect(r.out == "linked: 510\n" and found(r)[:2] == (2, 1) and "moved to another device" in r.err, env, r)


@test
def parts_of_devices_are_known_to_another_runtime(s):
    """Of the same size as before, each queue with its own, also where others of them were released."""
    at_any_call(s, opencl(s, "ocl_killed"), 50, "parts")


@test
def what_waits_for_the_program_waits_in_another_runtime(s):
    """User events, set to an error or not, before or after the end: commands of all kinds, threads, callbacks."""
    at_any_call(s, opencl(s, "ocl_gates", "-lpthread"), 150)


@test
def mappings_and_events_outlive_the_runtime_that_they_were_made_in(s):
    """Held, or just ending, when the second runtime ends, too; callbacks for what is complete."""
    exe = opencl(s, "ocl_outlived")
    alone = s.run(exe)
    expect(alone.status == 0, alone)
    r = run_opencl(s, exe, "kill", HALE_OPENCL="check=none").wait()
    expect(r.status == 0 and r.out == alone.out and found(r)[:2] == (11, 11), alone, r)


@test
def what_is_released_while_a_read_is_under_way_brings_its_data(s):
    """The program keeps nothing but the event that it waits for, when the runtime has ended before or meanwhile."""
    exe = opencl(s, "ocl_let_go")
    alone = s.run(exe)
    expect(alone.status == 0 and len(alone.out.splitlines()) == 12, alone)
    r = run_opencl(s, exe, "kill", HALE_OPENCL="check=none").wait()
    expect(r.status == 0 and r.out == alone.out, alone, r)


@test
def callbacks_are_called_once_when_the_runtime_ends(s):
    exe = opencl(s, "ocl_misc")
    alone = s.run(exe, "once", "12000")
    expect(alone.status == 0 and alone.out.endswith("failed 0, destructors 1\n"), alone)
    job = run_opencl(s, exe, "once", "12000", HALE_OPENCL="check=none ckpt=epochs:20")
    job.until_output(r"^300$")
    os.kill(server_of(job.ranks(1)[0]), signal.SIGKILL)
    r = job.wait()
    expect(r.status == 0 and r.out == alone.out and found(r)[:2] == (1, 1), alone, r)


@test
def callbacks_for_what_never_happens(s):
    exe = opencl(s, "ocl_misc")
    job = s.start(exe, "left", s.path("go"), env={"OCL_ICD_VENDORS": os.path.join(BUILD, "libhale_opencl_remote.so")})
    job.until_output(r"^ready")
    os.kill(server_of(job.pid), signal.SIGKILL)
    s.write("go", "")
    r = job.wait()
    expect(r.status == 0 and "events 1 1 1, failed 3; context 1; destructors 2; builds 2, the last gave -2" in r.out, r)


@test
def callbacks_that_never_come_hold_up_no_checkpoint(s):
    """PoCL 3.1 tells nobody that a command has failed."""
    exe = opencl(s, "ocl_misc")
    r, server = killed_between(s, exe, what=["failing"])
    expect(r.status == 0 and r.out == "ready\n7 7\n" and server, r)


@test
def without_the_layer_a_runtime_that_ends_is_an_error(s):
    exe = opencl(s, "ocl_solver")
    driver = os.path.join(BUILD, "libhale_opencl_remote.so")
    job = s.start(exe, "100000", env={"OCL_ICD_VENDORS": driver})
    job.until_output(r"^100 ")
    os.kill(server_of(job.pid), signal.SIGKILL)
    r = job.wait()
    expect(r.status == 3 and "failed: -2 " in r.out and "has ended" in r.err, r)


@test
def the_runtime_ends_with_its_program(s):
    exe = opencl(s, "ocl_solver")
    job = run_opencl(s, exe, "100000", options=["--max-restarts", "0"])
    job.until_output(r"^100 ")
    pid = job.ranks(1)[0]
    server = server_of(pid)
    expect(alive(server), "no server")
    os.kill(pid, signal.SIGKILL)
    r = job.wait()
    expect(r.status == 137, r)
    end = time.monotonic() + 10
    while alive(server) and time.monotonic() < end:
        time.sleep(0.01)
    expect(not alive(server), "the server is still there")


main()
