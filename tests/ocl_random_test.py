#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Legal OpenCL programs drawn by a seed: with errors, with the server, and with servers that are killed, each gives what it
gives alone. HALE_LONG=1: many more."""

from lib import *
from ocl_parts import *

REMOTE = {"OCL_ICD_VENDORS": os.path.join(BUILD, "libhale_opencl_remote.so")}
TWO = dict(POCL_DEVICES="pthread pthread")
OPTS = ["all", "none", "MOD", "MOD,RO,HB", "HD,CS", "HASH,MOD", "MOD,HB,HD,CS,AUTO,HASH", "AUTO,RO,MOD,CS"]
PROGRAMS = 40 if LONG else 2
PARTS = [os.path.join(ROOT, "tests", "programs", f"ocl_random_{part}.c") for part in ("images", "volumes", "seldom", "beside")]


def settings(r, error="", ckpt=("every-epoch", "every-epoch", "epochs:3", "epochs:10", "auto", "off")):
    """With an error in one of the first epochs, before or after a checkpoint, or while one is taken."""
    what = r.choice(["epoch", "epoch", "epoch", "checkpoint"])
    return (f"check={r.choice(['none', 'scrub'])} ckpt={r.choice(ckpt)} opt={r.choice(OPTS)} "
            f"inject={what}:{r.randint(1, 40)}{error or r.choice(['', ':1'])}" + r.choice(["", " log=2M"]))


def drawn(number, threads, commands=300, svm=True, native=False):
    """Random numbers, and the program's arguments. Every other program has what goes on beside, and, native, functions of
    its own as kernels."""
    r = random.Random(f"{SEED} {number} {threads} {native}")
    beside = (["-b", "-n"] if native else ["-b"]) if number % 2 else []
    return r, (["-s"] if svm else []) + beside + [r.randrange(1 << 20), commands // threads, threads]


# Where commands wait for the program a log that is full is given up, or data can't be kept: then an error is told.
UNPROTECTED = ["can't be kept any longer", "takes memory that is to be filled and used again"]


def as_alone(s, settings, exe, *args, alone, **env):
    """The same; but what is said to be unprotected ends at an error."""
    r = layered(s, settings, exe, *args, **env)
    told = r.status == 3 and any(why in r.err for why in UNPROTECTED) and "failed: -5 " in r.out
    expect(told or (r.status == 0 and r.out == alone.out), f"HALE_OPENCL='{settings}'", args, env, alone, r)


def rank_of(job, exe):
    return next((pid for pid in children(job.pid) if name_of(pid).startswith(exe)), None)


def under_the_layer(s, threads):
    exe = opencl(s, "ocl_random", *PARTS)
    for i in range(PROGRAMS):
        for native, where in [(True, [{}, {}, {"HALE_OPENCL_COPIES": "staged"}]), (False, [REMOTE])]:
            r, args = drawn(i, threads, native=native)
            alone = s.run(exe, *args)
            for env in where:
                as_alone(s, settings(r), exe, *args, alone=alone, **env)


@test
def a_random_program_with_errors_is_as_without(s):
    under_the_layer(s, 1)


@test
def a_random_program_of_threads_with_errors_is_as_without(s):
    under_the_layer(s, 3)


@test
def a_random_program_that_goes_to_another_device_is_as_without(s):
    exe = opencl(s, "ocl_random", *PARTS)
    for i in range(PROGRAMS):
        for threads in [1, 3]:  # also while others make objects
            r, args = drawn(i, threads, svm=False, native=True)
            alone = s.run(exe, *args, env=TWO)
            for copies in [{}, {}, {"HALE_OPENCL_COPIES": "staged"}]:
                as_alone(s, settings(r, ":2"), exe, *args, alone=alone, **TWO, **copies)


def begun(s, exe, r, args):
    """The run alone, how long it took, a job that runs the same, and its rank."""
    begin = time.monotonic()
    alone = s.run(exe, *args)
    took = time.monotonic() - begin
    job = run_opencl(s, exe, *args, HALE_OPENCL=f"check=none ckpt={r.choice(['every-epoch', 'epochs:3', 'auto'])}")
    return alone, took, job, job.until(lambda: rank_of(job, exe), "a rank runs")


@test
def a_random_program_whose_servers_are_killed_is_as_without(s):
    exe = opencl(s, "ocl_random", *PARTS)
    for i in range(PROGRAMS):
        r, args = drawn(i, 1 + 2 * (i % 2), 900)
        alone, took, job, pid = begun(s, exe, r, args)
        for _ in range(r.randint(1, 3)):
            time.sleep(r.random() * took)  # a random moment of its life
            server = server_of(pid)
            if server:
                try:
                    os.kill(server, signal.SIGKILL)
                except ProcessLookupError:
                    pass  # it has just ended
        ended = job.wait()
        expect(ended.status == 0 and ended.out == alone.out, alone, ended)


@test
def a_random_program_that_is_killed_goes_on_from_a_checkpoint(s):
    exe = opencl(s, "ocl_random", *PARTS)
    for i in range(PROGRAMS):
        r, args = drawn(i, 1 + 2 * (i % 2), 6000)
        alone, took, job, pid = begun(s, exe, r, args)
        time.sleep(r.random() * took)
        info = job.info()
        taken = info and s.hale("ckpt", info["id"]).status == 0  # or it has just ended
        if taken and alive(pid):
            os.kill(pid, signal.SIGKILL)
        ended = job.wait()
        expect(ended.status == 0 and ended.out == alone.out, taken, alone, ended)


main()
