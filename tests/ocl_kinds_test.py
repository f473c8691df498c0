#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""OpenCL programs of several kinds: the same bits alone, with errors in any epoch, by a server, and with the server or
the whole program killed."""

import itertools

from lib import *
from ocl_parts import *

REMOTE = {"OCL_ICD_VENDORS": os.path.join(BUILD, "libhale_opencl_remote.so")}


def errors_leave_no_trace(s, exe, *args, tries=3, steady=True):
    """In some epochs, with and without the server, with checkpoints and without."""
    alone = s.run(exe, *args)
    chance = random.Random(SEED)
    for env in [{}, REMOTE]:
        _, _, epochs, checkpoints = found(same(s, "check=none ckpt=every-epoch", exe, *args, alone=alone, **env))
        expect(checkpoints > 0, "no checkpoint was taken", env)
        for ckpt, opt in some(itertools.product(["every-epoch", "epochs:3", "off"], ["all", "none"]), 2):
            # threads that wait at the same time may have one check together
            last = epochs if steady else epochs // 4
            for at in chance.sample(range(1, last + 1), min(tries, last)):
                r = same(s, f"check=none ckpt={ckpt} opt={opt} inject=epoch:{at}", exe, *args, alone=alone, **env)
                expect(found(r)[:2] == (1, 1), env, ckpt, opt, at, r)
    return alone


@test
def memory_that_the_host_may_not_read_or_write(s):
    exe = opencl(s, "ocl_barred")
    alone = errors_leave_no_trace(s, exe, "3", tries=2)
    for copies, opt in some(itertools.product(["", "staged"], ["all", "none", "HASH"]), 2):
        r = same(s, f"check=none ckpt=epochs:2 opt={opt} inject=epoch:5", exe, "3", alone=alone, HALE_OPENCL_COPIES=copies)
        expect(found(r)[:2] == (1, 1) and found(r)[3] > 0, copies, opt, r)
    for at in [3, 4]:  # while the host has mappings to write to what it may not read
        r = same(s, f"check=none ckpt=epochs:2 inject=epoch:{at}", exe, "3", alone=alone)
        expect(found(r)[:2] == (1, 1), at, r)
    for at in [3, 5]:
        r = same(s, f"check=none ckpt=epochs:2 inject=epoch:{at}:2", exe, "3", alone=alone, POCL_DEVICES="pthread pthread")
        expect(found(r)[:2] == (2, 1) and "moved to another device" in r.err, at, r)


@test
def events_of_another_context_are_none_to_wait_for(s):
    """Each call says so itself, and no later one."""
    exe = opencl(s, "ocl_foreign")
    alone = s.run(exe)
    expect(alone.status == 0 and alone.out == "-34 " * 5 + "4\n", alone)
    for env in [{}, REMOTE]:
        expect(found(same(s, "check=none", exe, alone=alone, **env))[:2] == (0, 0), env)


@test
def solvers_with_out_of_order_queues_and_threads(s):
    exe = opencl(s, "ocl_cg", "-lpthread")
    errors_leave_no_trace(s, exe, "6")
    for shared in [[], ["-s"]]:
        errors_leave_no_trace(s, exe, "-t", "3", *shared, "8", tries=1, steady=False)


@test
def filters_of_images(s):
    exe = opencl(s, "ocl_filter")
    for mode in [[], ["-o"]]:
        alone = errors_leave_no_trace(s, exe, *mode, "4", tries=2)
    r = same(s, "check=none ckpt=epochs:2 inject=epoch:7:2", exe, *mode, "4", alone=alone, POCL_DEVICES="pthread pthread")
    expect(found(r)[:2] == (2, 1) and "moved to another device" in r.err, r)


@test
def threads_share_a_context_whose_runtime_ends(s):
    """At any moment: while objects are made, while others wait for data. No thread may see data that never came."""
    exe = opencl(s, "ocl_cg", "-lpthread")
    chance = random.Random(SEED)
    for shared in [["-s"], []]:
        alone = s.run(exe, "-t", "3", *shared, "150")
        expect(alone.status == 0, alone)
        begun = time.monotonic()
        run_opencl(s, exe, "-t", "3", *shared, "150").wait()
        whole, hit = time.monotonic() - begun, 0
        for _ in range(60 if LONG else 4):
            job = run_opencl(s, exe, "-t", "3", *shared, "-g", s.path("go"), "150",
                             HALE_OPENCL="check=none ckpt=epochs:10")
            pid = job.ranks(1)[0]
            job.until(lambda: server_of(pid) or not alive(pid), "to start its server")
            time.sleep(chance.uniform(0, whole))
            server = server_of(pid)
            if server:
                os.kill(server, signal.SIGKILL)
            s.write("go", "")
            r = job.wait()
            os.unlink(s.path("go"))
            expect(r.status == 0 and r.out == alone.out, shared, alone, r)
            hit += "has ended" in r.err
        expect(hit > 0, "no runtime was killed in time")


main()
