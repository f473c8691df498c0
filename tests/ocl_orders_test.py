#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""OpenCL programs in which things run in another order than they were enqueued in, or that learn without waiting what has
run: the same bits with errors as without."""

import itertools

from lib import *
from ocl_parts import *

REMOTE = {"OCL_ICD_VENDORS": os.path.join(BUILD, "libhale_opencl_remote.so")}
TWO = dict(POCL_DEVICES="pthread pthread")


@test
def what_runs_later_than_what_was_enqueued_behind_it(s):
    """Commands that wait for user events, overtaken by others; data taken out of mappings that end; completion learnt from
    an event's times, or from a command that is running; functions of the program."""
    exe = opencl(s, "ocl_orders")
    for what in ["gated", "relayed", "woven", "unmapped", "profiled", "told", "left", "native"]:
        alone = s.run(exe, what)
        expect(alone.status == 0 and len(set(alone.out.split())) >= 5, what, alone)
        for env in [{}, REMOTE] if what != "native" else [{}]:
            for at, ckpt, opt in some(itertools.product([2, 5, 8], ["every-epoch", "off"], ["all", "none"]), 2):
                r = same(s, f"check=none ckpt={ckpt} opt={opt} inject=epoch:{at}", exe, what, alone=alone, **env)
                expect(found(r)[:2] in [(1, 1), (0, 0)], what, at, ckpt, opt, r)
        r = same(s, "check=none ckpt=epochs:3 inject=epoch:3:2", exe, what, alone=alone, **TWO)
        expect(found(r)[:2] == (2, 1) and "moved to another device" in r.err, what, r)


@test
def many_user_events_that_are_not_set(s):
    """What waits for up to 63 at a time is repeated; beyond, an error that comes before they are set and a checkpoint was
    taken is told, and nothing hangs."""
    exe = opencl(s, "ocl_orders")
    for count, epochs in [(20, [1, 3, 5]), (63, [2, 6])]:
        alone = s.run(exe, "gates", count)
        for env, at, ckpt in some(itertools.product([{}, REMOTE], epochs, ["every-epoch", "off"]), 4):
            r = same(s, f"check=none ckpt={ckpt} inject=epoch:{at}", exe, "gates", count, alone=alone, **env)
            expect(found(r)[:2] == (1, 1), count, env, at, ckpt, r)
        r = same(s, "check=none ckpt=epochs:2 inject=epoch:3:2", exe, "gates", count, alone=alone, **TWO)
        expect(found(r)[:2] == (2, 1) and "moved to another device" in r.err, count, r)
    alone = s.run(exe, "gates", "200")
    r = same(s, "check=none ckpt=every-epoch", exe, "gates", "200", alone=alone)
    expect("wait for more than 63 user events" in r.err and found(r)[3] > 1, r)
    epochs = found(r)[2]
    for at in some(range(1, epochs + 1, 3), 5):
        r = layered(s, f"check=none ckpt=every-epoch inject=epoch:{at}", exe, "gates", "200")
        told = r.out.splitlines()
        if r.status == 3:
            expect("can't be mended" in r.err and told.pop().startswith("failed: -5 "), at, r)
        expect(r.status in (0, 3) and told == alone.out.splitlines()[:len(told)], at, alone, r)


@test
def what_has_waited_for_a_user_event_does_not_wait_for_later_ones(s):
    """It isn't repeated twice, nor does it fail with them, when the context goes to another device."""
    exe = opencl(s, "ocl_orders")
    alone = s.run(exe, "outlived")
    expect(alone.status == 0 and len(set(alone.out.split())) >= 5, alone)
    for at, opt in some(itertools.product(range(2, 14), ["all", "none"]), 6):
        r = same(s, f"check=none ckpt=every-epoch opt={opt} inject=epoch:{at}:2", exe, "outlived", alone=alone, **TWO)
        expect(found(r)[:2] == (2, 1) and "moved to another device" in r.err, at, opt, r)


@test
def what_fails_waits_for_nothing_that_the_program_does_not_wait_for(s):
    """PoCL 3.1 ends programs in which what waits for an event that fails also waits for one that becomes complete just then:
    nothing of the layer's own may run there."""
    exe = opencl(s, "ocl_orders")
    below = s.compile("ocl_marked", mpi=None, flags=["-Wno-comment", "-shared", "-fPIC"])
    alone = s.run(exe, "failed", env=dict(OPENCL_LAYERS=below))
    expect(alone.status == 0 and not said(alone), alone)
    r = s.run(exe, "failed", env=dict(OPENCL_LAYERS=below + ":" + os.path.join(BUILD, "libhale_opencl.so"),
                                      HALE_OPENCL="check=none"))
    expect(r.status == 0 and r.out == alone.out and "a marker" not in r.err, r)


@test
def what_fails_has_the_same_code_when_the_runtime_ends_just_then(s):
    """PoCL's is not the one that the standard has for waits: what can't be asked any more, another runtime tells."""
    exe = opencl(s, "ocl_orders")
    below = s.compile("ocl_marked", mpi=None, flags=["-Wno-comment", "-shared", "-fPIC"])
    alone = s.run(exe, "failed")
    expect(alone.status == 0 and alone.out.count("codes ") == 3, alone)
    for nth in ["1", "2", "3"]:
        r = s.run("setsid", "-w", exe, "failed",  # only servers of its own group are killed
                  env=dict(REMOTE, OPENCL_LAYERS=below + ":" + os.path.join(BUILD, "libhale_opencl.so"),
                           HALE_OPENCL="check=none", KILL=nth))
        expect(r.status == 0 and r.out == alone.out and found(r)[:2] == (1, 1), nth, alone, r)


@test
def what_a_log_that_was_given_up_had_is_in_the_next_checkpoint(s):
    exe = opencl(s, "ocl_orders")
    alone = s.run(exe, "bounded")
    for env in [{}, REMOTE]:
        r = same(s, "check=none ckpt=every-epoch log=1M inject=epoch:7", exe, "bounded", alone=alone, **env)
        expect(found(r)[:2] == (1, 1) and "can't be kept any longer without a checkpoint" in r.err, r)


@test
def what_a_later_read_brings_is_put_there_later(s):
    """Into the same memory as what the one before it brings, though both arrive while others are put into theirs."""
    exe = opencl(s, "ocl_arrives", "-lpthread")
    for _ in range(3):
        r = s.run(exe, "twice", env=REMOTE)
        expect(r.status == 0 and r.out == "2 2\n", r)


@test
def a_write_waits_for_no_read_of_another_context(s):
    """Into the memory that it writes out of; one that waits for the program holds up nothing else."""
    exe = opencl(s, "ocl_arrives", "-lpthread")
    r = s.run(exe, "apart", env=REMOTE, limit=60)
    expect(r.status == 0 and r.out == "5 1\n", r)


@test
def what_a_thread_uses_outlasts_the_second_move(s):
    """It waits, or builds, with what took the place of the program's object at the first one."""
    exe = opencl(s, "ocl_used", "-lpthread")
    below = s.compile("ocl_inuse", mpi=None, flags=["-Wno-comment", "-shared", "-fPIC"])
    layers = below + ":" + os.path.join(BUILD, "libhale_opencl.so")
    for what in ["finish", "wait", "build"]:
        go = s.path(what)
        job = s.start(exe, what, go, env=dict(OPENCL_LAYERS=layers, POCL_DEVICES="pthread pthread pthread",
                                              HALE_OPENCL="check=none inject=epoch:1:2"))
        job.until_output(r"^ready")
        expect(s.hale("inject", "ecc", job.pid, "--times", "2").status == 0, "to take errors")
        s.write(what, "")
        r = job.wait()
        expect(r.status == 0 and r.out == "7\nready\n7\n" and found(r)[:2] == (4, 2), what, r)


main()
