#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""OpenCL programs under the layer, on PoCL: the same bits with errors in device memory as without.

A pretended error damages all device memory, so that what is not restored and repeated shows."""

import itertools
import subprocess

from lib import *
from ocl_parts import *

REMOTE = {"OCL_ICD_VENDORS": os.path.join(BUILD, "libhale_opencl_remote.so")}
MODES = [[], ["-q", "2", "-o"], ["-e", "-q", "2"], ["-m"], ["-w", "-q", "2"], ["-f"]]


@test
def an_error_in_any_epoch_leaves_no_trace(s):
    exe = opencl(s, "ocl_solver")
    alone = s.run(exe, "8")
    epochs = found(same(s, "check=none ckpt=every-epoch", exe, "8", alone=alone))[2]
    expect(epochs >= 8, epochs)
    for at in range(1, epochs + 1):
        r = same(s, f"check=none ckpt=every-epoch inject=epoch:{at}", exe, "8", alone=alone)
        expect(found(r)[:2] == (1, 1), r)


@test
def queues_events_mappings_and_forks_are_replayed(s):
    exe = opencl(s, "ocl_solver")
    for mode, ckpt in itertools.product(MODES, ["epochs:3", "off"]):
        r = same(s, f"check=none ckpt={ckpt} inject=epoch:5", exe, *mode, "8")
        expect(found(r)[:2] == (1, 1), mode, r)


@test
def every_optimisation_alone_and_none(s):
    exe = opencl(s, "ocl_solver")
    alone = s.run(exe, "8")
    for o in ["none", "MOD", "RO", "HB", "SB", "HD", "CS", "AUTO", "HASH", "MOD,RO,AUTO", "all"]:
        r = same(s, f"check=none ckpt=epochs:2 opt={o} inject=epoch:5", exe, "8", alone=alone)
        expect(found(r)[:2] == (1, 1), o, r)


@test
def copies_through_pinned_buffers_and_hashes_of_the_device(s):
    exe = opencl(s, "ocl_solver")
    r = same(s, "check=none ckpt=epochs:2 inject=epoch:7 report=r.json", exe, "10",
             HALE_OPENCL_COPIES="staged")
    expect(found(r)[:2] == (1, 1), r)
    report = s.report("r.json")
    expect(report["bytes"]["restore"] > 0 and report["checkpoints"] > 0, report)


@test
def images_shared_virtual_memory_and_callbacks(s):
    exe = opencl(s, "ocl_misc")
    for what in ["image", "svm", "callback"]:
        for settings in ["ckpt=every-epoch inject=epoch:3", "ckpt=epochs:4 inject=epoch:4"]:
            r = same(s, "check=none " + settings, exe, what)
            expect(found(r)[:2] == (1, 1), r)


@test
def a_callback_that_waits_holds_up_nobody_however_many_are_behind_it(s):
    """OpenCL leaves it undefined, and PoCL's own thread would wait for ever; with the server it works."""
    exe = opencl(s, "ocl_misc")
    r = s.run(exe, "many", env=REMOTE)
    expect(r.status == 0 and r.out == "failed 0\n", r)


@test
def what_a_read_brings_may_be_written_before_it_has_come(s):
    """A write out of host memory into which a read is under way, in its queue or in another one, also behind a user
    event: by the server, and in what is repeated."""
    exe = opencl(s, "ocl_misc")
    alone = s.run(exe, "echo")
    expect(alone.status == 0 and len(set(alone.out.split())) == 10, alone)
    for env in [{}, REMOTE]:
        r = s.run(exe, "echo", env=env)
        expect(r.status == 0 and r.out == alone.out, env, alone, r)
        for at, ckpt in itertools.product([2, 3, 4, 6, 9], ["off", "every-epoch"]):
            r = same(s, f"check=none ckpt={ckpt} inject=epoch:{at}", exe, "echo", alone=alone, **env)
            expect(found(r)[:2] == (1, 1), env, at, ckpt, r)
        same(s, "check=none ckpt=off opt=none inject=epoch:5", exe, "echo", alone=alone, **env)


@test
def pinned_memory_is_the_program_s_while_it_is_mapped(s):
    """Also what is mapped for reading only and takes what is read from elsewhere, as vendors' guides have it, or what the
    program puts there; and a read into such memory that brought wrong data brings the right ones after an error."""
    exe = opencl(s, "ocl_pinned")
    for access, env in itertools.product(["read", "write", "both"], [{}, REMOTE]):
        alone = s.run(exe, access)
        r = same(s, "check=scrub ckpt=every-epoch", exe, access, alone=alone, **env)
        expect(found(r)[0] == 0, "nothing was wrong", access, env, r)
        for settings in ["ckpt=every-epoch inject=epoch:5", "ckpt=epochs:3 inject=epoch:9", "ckpt=off opt=none inject=epoch:14"]:
            r = same(s, "check=none " + settings, exe, access, alone=alone, **env)
            expect(found(r)[:2] == (1, 1), access, settings, env, r)
    r = layered(s, "check=scrub ckpt=every-epoch", exe, "flip")
    expect(r.status == 0 and r.out == "2048 2048\n" and found(r)[:2] == (1, 1), r)


@test
def memory_that_released_buffers_lay_in_is_left_alone(s):
    """CL_MEM_USE_HOST_PTR: what only the log still has is restored and repeated elsewhere, on the same device, on
    another one, and with another server."""
    exe = opencl(s, "ocl_misc")
    alone = s.run(exe, "lent")
    expect(alone.status == 0 and len(set(alone.out.split())) == 9, alone)
    epochs = found(same(s, "check=scrub ckpt=off", exe, "lent", alone=alone))[2]
    for at, ckpt in itertools.product([3, epochs // 2, epochs], ["off", "epochs:7"]):
        r = same(s, f"check=scrub ckpt={ckpt} inject=epoch:{at}", exe, "lent", alone=alone)
        expect(found(r)[:2] == (1, 1), at, ckpt, r)
    r = same(s, f"check=none ckpt=off inject=epoch:{epochs}:2", exe, "lent", alone=alone,
             POCL_DEVICES="pthread pthread")
    expect(found(r)[:2] == (2, 1) and "moved to another device" in r.err, r)
    r = same(s, f"check=none ckpt=off inject=epoch:{epochs}:2", exe, "lent", alone=alone,
             POCL_DEVICES="pthread pthread", **REMOTE)
    expect(found(r)[:2] == (2, 1) and "moved to another device" in r.err, r)


@test
def native_kernels_are_run_again(s):
    """Functions of the program, with memory objects among their arguments, on this device and on another one."""
    exe = opencl(s, "ocl_misc")
    alone = s.run(exe, "native")
    expect(alone.status == 0 and len(set(alone.out.split())) == 4, alone)
    epochs = found(same(s, "check=none ckpt=every-epoch", exe, "native", alone=alone))[2]
    for at, ckpt in itertools.product(range(1, epochs + 1), ["every-epoch", "off"]):
        r = same(s, f"check=none ckpt={ckpt} inject=epoch:{at}", exe, "native", alone=alone)
        expect(found(r)[:2] == (1, 1) and "run again" in r.err, r)
    r = same(s, "check=none ckpt=off inject=epoch:3:2", exe, "native", alone=alone, POCL_DEVICES="pthread pthread")
    expect(found(r)[:2] == (2, 1) and "moved to another device" in r.err, r)
    r = s.run(exe, "native", env=REMOTE)
    expect(r.status == 0 and r.out == "no native kernels\n", r)


@test
def shared_virtual_memory_with_pointers_in_it(s):
    """A list of nodes that point to each other: by the runtime's own memory, and by the server's."""
    exe = opencl(s, "ocl_svm")
    alone = s.run(exe, "list", "6")
    expect(alone.status == 0 and alone.out.endswith("freed 2\n"), alone)
    for env in [{}, REMOTE]:
        r = s.run(exe, "list", "6", env=env)
        expect(r.status == 0 and r.out == alone.out, env, r)
        for at, ckpt in itertools.product([3, 206], ["every-epoch", "epochs:3", "off"]):
            r = same(s, f"check=none ckpt={ckpt} inject=epoch:{at}", exe, "list", "6", alone=alone, **env)
            expect(found(r)[:2] == (1, 1), env, at, ckpt, r)
        r = s.run(exe, "many", env=env)
        expect(r.status == 0 and r.out == "all were kept apart\n", env, r)
    wrong = s.run(exe, "errors")
    expect(wrong.status == 0 and len(wrong.out.splitlines()) == 4, wrong)
    for env in [{}, REMOTE]:
        expect(s.run(exe, "errors", env=env).out == wrong.out, env, wrong)
        same(s, "check=none", exe, "errors", alone=wrong, **env)
    both = dict(POCL_DEVICES="pthread pthread")
    r = same(s, "check=none ckpt=epochs:2 inject=epoch:203:2", exe, "list", "6", alone=alone, **both, **REMOTE)
    expect(found(r)[:2] == (2, 1) and "moved to another device" in r.err, r)
    r = layered(s, "check=none ckpt=epochs:2 inject=epoch:203:2", exe, "list", "6", **both)
    expect(r.status == 3 and "addresses of this device" in r.err, r)


@test
def shared_virtual_memory_gets_what_a_read_brings(s):
    """Copies out of host memory into which a read is under way that waits for the program."""
    exe = opencl(s, "ocl_svm")
    alone = s.run(exe, "echo")
    expect(alone.status == 0 and len(set(alone.out.split())) == 12, alone)
    for env in [{}, REMOTE]:
        r = s.run(exe, "echo", env=env)
        expect(r.status == 0 and r.out == alone.out, env, alone, r)
        for at, ckpt in itertools.product([2, 5], ["every-epoch", "off"]):
            r = same(s, f"check=none ckpt={ckpt} inject=epoch:{at}", exe, "echo", alone=alone, **env)
            expect(found(r)[:2] == (1, 1), env, at, ckpt, r)


@test
def shared_virtual_memory_that_commands_free(s):
    """Commands that wait for the program, and that the log has still when they have run."""
    exe = opencl(s, "ocl_svm")
    alone = s.run(exe, "later", "6")
    expect(alone.status == 0 and alone.out.endswith("freed 6\n"), alone)
    for env in [{}, REMOTE]:
        r = s.run(exe, "later", "6", env=env)
        expect(r.status == 0 and r.out == alone.out, env, r)
        for at, ckpt in itertools.product([1, 2, 7, 12], ["every-epoch", "epochs:3", "off"]):
            r = same(s, f"check=none ckpt={ckpt} inject=epoch:{at}", exe, "later", "6", alone=alone, **env)
            expect(found(r)[:2] == (1, 1), env, at, ckpt, r)


@test
def command_buffers_are_replayed(s):
    """The program compares what it reads with what it should be; here also errors' codes are compared."""
    exe = opencl(s, "ocl_recorded")
    alone = s.run(exe, "in", "6")
    expect(alone.status == 0 and len(alone.out.splitlines()) == 7, alone)
    for env, mode in itertools.product([{}, REMOTE], ["in", "out", "gate", "changed"]):
        r = s.run(exe, mode, "6", env=env)
        if env or mode != "changed":  # PoCL 3.1 alone takes the arguments that the kernel has later
            expect(r.status == 0 and r.out == alone.out, mode, env, r)
        for settings in ["ckpt=every-epoch inject=epoch:3", "ckpt=off inject=epoch:5"]:
            r = same(s, "check=none " + settings, exe, mode, "6", alone=alone, **env)
            expect(found(r)[:2] == (1, 1), mode, env, r)
    for mode in ["in", "out", "changed"]:  # on the other device they are not the runtime's any more
        r = same(s, "check=none ckpt=epochs:2 inject=epoch:3:2", exe, mode, "6", alone=alone,
                 POCL_DEVICES="pthread pthread")
        expect(found(r)[:2] == (2, 1) and "moved to another device" in r.err, mode, r)
    wrong = s.run(exe, "errors")
    for env in [{}, REMOTE]:
        r = same(s, "check=none", exe, "errors", alone=wrong, **env)
        expect(len(r.out.splitlines()) == 10, r)
    expect(s.run(exe, "errors", env=REMOTE).out == wrong.out, wrong)


@test
def parts_of_devices(s):
    exe = opencl(s, "ocl_misc")
    alone = s.run(exe, "parts")
    expect(alone.status == 0 and s.run(exe, "parts", env=REMOTE).out == alone.out, alone)
    for env in [{}, REMOTE]:
        r = same(s, "check=none ckpt=epochs:2 inject=epoch:4", exe, "parts", alone=alone, **env)
        expect(found(r)[:2] == (1, 1), r)
        r = same(s, "check=none ckpt=epochs:2 inject=epoch:4:2", exe, "parts", alone=alone,
                 POCL_DEVICES="pthread pthread", **env)
        expect(found(r)[:2] == (2, 1) and "moved to another device" in r.err, r)
        r = layered(s, "check=none inject=epoch:4:2", exe, "parts", POCL_DEVICES="pthread", **env)
        expect(r.status == 3 and "no other device" in r.err, "the memory of a part is that of the whole", r)


@test
def the_second_error_in_a_row_moves_to_another_device(s):
    exe = opencl(s, "ocl_solver")
    for mode in [[], ["-q", "2", "-o"], ["-m"]]:
        r = same(s, "check=none ckpt=epochs:2 inject=epoch:5:2", exe, *mode, "8",
                 POCL_DEVICES="pthread pthread")
        expect(found(r)[:2] == (2, 1) and "moved to another device" in r.err, r)


@test
def devices_of_one_context_are_tried_one_by_one(s):
    """A context with all devices: those that have no commands first, and then that which has had errors before, alone."""
    exe = opencl(s, "ocl_solver")
    two = dict(POCL_DEVICES="pthread pthread")
    for env, nth in itertools.product([{}, REMOTE], "12"):
        alone = s.run(exe, "-d", nth, "8", env=two)
        for times in [2, 3]:
            r = same(s, f"check=none ckpt=epochs:2 inject=epoch:5:{times}", exe, "-d", nth, "8", alone=alone, **two, **env)
            expect(found(r)[:2] == (times, 1) and "moved to another device" in r.err, env, nth, r)
        r = layered(s, "check=none ckpt=epochs:2 inject=epoch:5:4", exe, "-d", nth, "8", **two, **env)
        expect(r.status == 3 and found(r)[:2] == (4, 0) and "no other device" in r.err, env, nth, r)


@test
def what_waits_for_the_program_goes_along(s):
    """Commands that wait for user events, some of which are set to an error, when memory fails once and twice."""
    exe = opencl(s, "ocl_gates", "-lpthread")
    alone = s.run(exe)
    expect(alone.status == 0 and (ANY or alone.out.endswith("called: submitted 3, complete 2\n")), alone)
    for env, at in itertools.product([{}, REMOTE], [1, 2, 4, 7, 9]):
        r = same(s, f"check=none ckpt=epochs:2 inject=epoch:{at}", exe, alone=alone, **env)
        expect(found(r)[:2] == (1, 1), env, at, r)
        r = same(s, f"check=none ckpt=epochs:2 inject=epoch:{at}:2", exe, alone=alone,
                 POCL_DEVICES="pthread pthread", **env)
        expect(found(r)[:2] == (2, 1) and "moved to another device" in r.err, env, at, r)


@test
def without_another_device_the_program_is_told(s):
    exe = opencl(s, "ocl_solver")
    r = layered(s, "check=none inject=epoch:3:2", exe, "8", POCL_DEVICES="pthread")
    expect(r.status == 3 and "failed: -5 " in r.out, r)
    expect("no other device" in r.err and found(r)[:2] == (2, 0), r)
    alone = s.run(exe, "8").out.splitlines()
    told = r.out.splitlines()[:-1]
    expect(told == alone[:len(told)], "data of a bad epoch reached the program", r)


def with_device_lost(s, at, code, settings, exe, *args, more="", alone=None, devices="pthread pthread", **env):
    """Runs exe over a layer of ours that loses the device at a launch; the layer on top is the last."""
    below = s.compile("ocl_flaky", mpi=None, flags=["-Wno-comment", "-shared", "-fPIC"])
    return s.run(exe, *args, env=dict(
        env, OCL_FLAKY=f"{at}:{code}{more}", HALE_OPENCL=settings, POCL_DEVICES=devices,
        OPENCL_LAYERS=below + ":" + os.path.join(BUILD, "libhale_opencl.so")))


@test
def a_lost_device_is_left_for_another_one(s):
    exe, misc = opencl(s, "ocl_solver"), opencl(s, "ocl_misc")
    cases = [(exe, *mode, "8") for mode in ([], ["-q", "2", "-o"], ["-m"], ["-w", "-q", "2"])]
    for argv in [*cases, (misc, "image"), (misc, "callback")]:
        alone = s.run(*argv)
        for at, code, ckpt in some([(1, -5, "off"), (2, -2, "epochs:2"), (4, -36, "epochs:1")], 1):
            r = with_device_lost(s, at, code, f"check=none ckpt={ckpt}", *argv)
            expect(r.status == 0 and r.out == alone.out, argv, at, code, alone, r)
            expect(found(r)[:2] == (1, 1) and "moved to another device" in r.err, argv, r)
    r = with_device_lost(s, 3, -5, "check=none", exe, "8", more=":all", devices="pthread", OCL_FLAKY_ONCE="1")
    expect(r.status == 0 and r.out == s.run(exe, "8").out, "a new context on the same device", r)


@test
def constants_of_programs_go_with_them(s):
    """Specialization constants as of the build, and those set since, on the other device, too."""
    exe = opencl(s, "ocl_constants")
    below = s.compile("ocl_il", mpi=None, flags=["-Wno-comment", "-shared", "-fPIC"])
    alone = s.run(exe, env=dict(OPENCL_LAYERS=below))
    expect(alone.status == 0 and alone.out.count("\n") == 13, alone)
    both = dict(OPENCL_LAYERS=below + ":" + os.path.join(BUILD, "libhale_opencl.so"), POCL_DEVICES="pthread pthread")
    for at in some([2, 6, 10], 1):
        r = s.run(exe, env=dict(both, HALE_OPENCL=f"check=none inject=epoch:{at}:2"))
        expect(r.status == 0 and r.out == alone.out and "moved to another device" in r.err, at, alone, r)
    r = s.run(exe, env=dict(both, HALE_OPENCL="check=none ckpt=off"))  # built again: the log has kernels of before
    expect(r.status == 0 and r.out == alone.out and "is built anew" in r.err, alone, r)


@test
def a_lost_device_without_another_is_told(s):
    exe = opencl(s, "ocl_solver")
    alone = s.run(exe, "8").out.splitlines()
    for code in (-5, -2):
        r = with_device_lost(s, 9, code, "check=none", exe, "8", more=":all")
        expect(r.status == 3 and f"failed: {code} " in r.out, r)
        expect("the loss of a device can't be mended" in r.err and "no other device" in r.err, r)
        told = r.out.splitlines()[:-1]
        expect(told and told == alone[:len(told)], "data of a lost device reached the program", r)


@test
def a_bit_that_flips_is_found_by_scrubbing(s):
    exe = opencl(s, "ocl_misc")
    clean = s.run(exe, "corrupt", "clean")
    expect(s.run(exe, "corrupt").out != clean.out, "the flip does nothing")
    r = layered(s, "check=scrub ckpt=every-epoch", exe, "corrupt")
    expect(r.status == 0 and r.out == clean.out and found(r)[:2] == (1, 1), clean, r)


@test
def scrubbing_leaves_out_what_the_program_may_write_to(s):
    exe = opencl(s, "ocl_misc")
    alone = s.run(exe, "held")
    for ckpt, opt in itertools.product(["every-epoch", "epochs:3"], ["all", "MOD"]):
        r = same(s, f"check=scrub ckpt={ckpt} opt={opt}", exe, "held", alone=alone)
        expect(found(r)[:2] == (0, 0), ckpt, opt, r)
    r = same(s, "check=scrub ckpt=epochs:2 inject=epoch:4", exe, "held", alone=alone)
    expect(found(r)[:2] == (1, 1), r)


@test
def scratch_lasts_until_the_program_has_waited_for_what_uses_it(s):
    """Also where others are waited for before, and a checkpoint is taken then."""
    exe = opencl(s, "ocl_scratch")
    for how in ([], ["written"]):
        alone = s.run(exe, *how)
        for ckpt, at in [("every-epoch", 3), ("every-epoch", 6), ("epochs:2", 9), ("epochs:4", 6)]:
            r = same(s, f"check=none ckpt={ckpt} inject=epoch:{at}", exe, *how, alone=alone)
            expect(found(r)[:2] == (1, 1), r)


@test
def a_number_in_a_file_counts_errors(s):
    exe = opencl(s, "ocl_solver")
    s.write("count", "0\n")
    alone = s.run(exe, "500")
    job = s.start(exe, "-g", s.path("go"), "500",
                  env={"OPENCL_LAYERS": os.path.join(BUILD, "libhale_opencl.so"),
                       "HALE_OPENCL": f"check=file:{s.path('count')} ckpt=epochs:50"})
    job.until_output(r"^20 ")
    s.write("count", "1\n")
    s.write("go", "")
    r = job.wait()
    expect(r.status == 0 and r.out == alone.out and found(r)[:2] == (1, 1), r)


@test
def errors_that_the_driver_counts(s):
    """By NVML, which is the default; an error that it counted before the program began is no news."""
    exe = opencl(s, "ocl_solver")
    alone = s.run(exe, "500")
    below = s.compile("ocl_nvml", mpi=None, flags=["-Wno-comment", "-shared", "-fPIC"])
    shutil.copy(below, s.path("libnvidia-ml.so.1"))
    env = {"OPENCL_LAYERS": below + ":" + os.path.join(BUILD, "libhale_opencl.so"), "OCL_NVML": s.path("count"),
           "LD_LIBRARY_PATH": os.path.dirname(s.path("count")), "HALE_OPENCL": "ckpt=epochs:50"}
    s.write("count", "3\n")
    job = s.start(exe, "-g", s.path("go"), "500", env=env)
    job.until_output(r"^20 ")
    s.write("new", "5\n")
    os.rename(s.path("new"), s.path("count"))
    s.write("go", "")
    r = job.wait()
    expect(r.status == 0 and r.out == alone.out and found(r)[:2] == (1, 1), r)
    r = s.run(exe, "8", env=env)
    expect(r.status == 0 and found(r)[:2] == (0, 0), r)


@test
def what_the_program_has_released_is_not_kept_without_end(s):
    """256 MiB of buffers, one after the other: more than the log may keep ends an epoch."""
    exe = opencl(s, "ocl_misc")
    for more in ["", "inject=epoch:40"]:
        r = same(s, f"check=none ckpt=seconds:1000 log=16M {more}", exe, "brief")
        expect(found(r)[3] >= 8 and "can't be kept" not in r.err, r)
    r = same(s, "check=none inject=epoch:40", exe, "brief")  # auto: as soon as that frees much
    expect(found(r)[:2] == (1, 1) and found(r)[3] >= 3, r)
    r = same(s, "check=none ckpt=off log=16M inject=epoch:40", exe, "brief")
    expect(found(r)[:2] == (1, 1) and "can't be kept" not in r.err, r)


@test
def a_kernel_that_writes_to_a_read_only_buffer(s):
    exe = opencl(s, "ocl_misc")
    r = same(s, "check=scrub ckpt=every-epoch inject=epoch:3", exe, "liar")
    expect(found(r)[:2] == (1, 1) and "CL_MEM_READ_ONLY" in r.err, r)


@test
def a_kernel_that_casts_const_away(s):
    """What it writes to is saved all the same, also where the host writes there, too."""
    exe = opencl(s, "ocl_misc")
    every = itertools.product(("cast", "cast-some"), (2, 4, 6), ("", "opt=MOD,RO,AUTO,HASH,CS"))
    for what, epoch, opt in some(every, 4):
        r = same(s, f"check=none ckpt=every-epoch {opt} inject=epoch:{epoch}", exe, what)
        expect(found(r)[:2] == (1, 1), r)
        expect(what != "cast" or r.err.count("casts const away") == 1, r)


@test
def wrong_parameters_give_the_same_errors(s):
    exe = opencl(s, "ocl_misc")
    r = same(s, "check=none ckpt=every-epoch", exe, "errors")
    expect("refs 2" in r.out and len(r.out.splitlines()) >= 15, r)


# Where the server is stricter than PoCL 3.1, which takes what OpenCL calls an error, or says less than it does
# alone: which call, which argument, why.
STRICTER = [
    (r"clGetDeviceInfo argument 1 \S+ way 50 ", "fewer extensions"),
    (r"clCreateBuffer(WithProperties)? argument [23] n64 way 7 ", "memory that isn't there: PoCL finds out when it's used"),
    (r"clCreateImage(WithProperties)? argument [34] E way 10 ", "an image of a queue: PoCL looks at the image's support first"),
    (r"clSVMAlloc argument 1 ", "coarse-grained memory only, and unknown flags are wrong"),
    (r"clEnqueueSVM\w+ argument \d [hl]Y |clSetKernelArgSVMPointer argument 2 ", "any pointer is PoCL's shared virtual memory"),
    (r"clEnqueueSVMMap argument 2 |clEnqueueMapBuffer argument 3 ", "flags that exclude each other, or that nobody knows"),
    (r"clSetKernelExecInfo", "PoCL looks at nothing"),
    (r"clCreateSamplerWithProperties argument 1 p way 1 ", "no properties are the defaults"),
    (r"cl(Build|Compile|Link)Program argument 1 n1 ", "a list that is shorter: its devices are looked at first"),
    (r"clCreateProgramWithBuiltInKernels argument 2 ", "no device: PoCL looks at the names first"),
    (r"clCompileProgram argument [56] ", "headers, but none of them"),
    (r"clCreateKernelsInProgram argument 2 ", "nowhere to put them: only their number is asked for"),
    (r"clSetKernelArg argument 3 lM ", "no buffer: PoCL would find out when the kernel runs"),
    (r"clEnqueue(Read|Write)Image argument 5 ", "rows that overlap"),
    (r"clEnqueueUnmapMemObject argument 3 ", "two things are wrong: the mapping as well"),
    (r"clEnqueueNativeKernel", "not offered, nor claimed"),
    (r"clEnqueue(NDRangeKernel|Task|CopyImage) argument \d w ", "PoCL looks at other things first, or not at all"),
    (r"clEnqueueWaitForEvents argument [12] ", "of OpenCL 1.1, whose code it is"),
]


# No valid handle of that kind (ocl_wrong.c names them), or no valid wait list.
NO_SUCH = dict(L=-32, D=-33, C=-34, Q=-36, M=-38, I=-38, G=-44, g=-44, o=-44, K=-48, k=-48, V=-58, U=-58, X=-58,
               S=-41, Y=-30, w=-57)


# An image is a memory object as well; a new one may be where another was; platforms and devices are not released; no code is returned.
UNNOTICED = re.compile(r"(hM|hI) way 3 |lM way 4 |Copy\w+ argument 1 h[MI] way 4 | [hl][LD] way \d released|^clSVM|^clGetExtension")
NOT_THERE = ("clSetDefaultDeviceCommandQueue", "clGetDeviceAndHostTimer", "clGetHostTimer", "clGetKernelSubGroupInfo")


def what_wrong_calls_give(s, exe, *skipped, **env):
    r = s.run(exe, *skipped, env=dict(env, POCL_DEVICES="pthread"), limit=600)
    expect(r.status == 0, r)
    return dict(re.findall(r"^(\d+ cl\w.*?): (\S.*)$", r.out, re.M)), r


@test
def wrong_arguments_at_every_entry_point_give_the_same_errors(s):
    """Each call that PoCL alone survives. Handles that are none PoCL mostly takes for what they are not, and
    crashes: so without HALE_LONG these are only given to the server, which knows what they are not. Without it only
    one call of six is made, others on each day of the year."""
    exe = opencl(s, "ocl_wrong")
    share = {} if os.environ.get("HALE_LONG") else dict(OCL_WRONG_SHARE=f"{time.localtime().tm_yday % 6} 6")
    s.write("skipped", "")
    few = [] if os.environ.get("HALE_LONG") else ["null"]
    first, r = what_wrong_calls_give(s, exe, s.path("skipped"), *few, **share)
    s.write("skipped", "\n".join(["", *(k for k, v in first.items() if v in ("crashes", "hangs")), ""]))
    alone, r = what_wrong_calls_give(s, exe, s.path("skipped"), *few, **share)
    firm = {k: v for k, v in alone.items() if first.get(k) == v and v not in ("crashes", "hangs") and "released" not in k}
    expect(len(firm) > (500 if share else 3000), len(firm), r)
    layer = dict(OPENCL_LAYERS=os.path.join(BUILD, "libhale_opencl.so"), HALE_OPENCL="check=none ckpt=every-epoch")
    wrong = []
    ours, r = what_wrong_calls_give(s, exe, s.path("skipped"), *few, **share, **layer)
    wrong += [f"with the layer: {k}: {ours.get(k)}, alone {v}" for k, v in firm.items() if ours.get(k) != v]
    # a call that ends the server waits for what is built anew in the next one
    patient = dict(REMOTE, OCL_WRONG_SECONDS="120")
    for name, env in [("the server", patient), ("layer and server", dict(layer, **patient))]:
        ours, r = what_wrong_calls_give(s, exe, s.path("skipped"), **share, **env)
        for k, v in ours.items():
            call = re.sub(r"^\d+ ", "", k)
            right = [firm[k]] if k in firm else []
            kind = re.search(r" argument \d+ [hl]?(\w)", call)
            if call.endswith((" another", " none", " released")) and not UNNOTICED.search(call):
                kind = kind[1]
                right += ["-59 then 0"] if call.startswith(NOT_THERE) else []
                right += [f"{NO_SUCH[kind]} then 0", f"NULL {NO_SUCH[kind]} then 0"]
            if right and v not in right and not any(re.match(p, call) for p, _ in STRICTER):
                wrong.append(f"with {name}: {k}: {v}, not {right}")
        wrong += [f"with {name}: {k} {v}" for k, v in ours.items() if v in ("crashes", "hangs")]
        wrong += [f"with {name}: {k} has ended" for k in alone if k not in ours]
    expect(not wrong, share, "\n".join(wrong))


@test
def what_the_program_has_released_is_gone(s):
    """Also while the log still needs it: each call gives the code for no such object, with and without the server.
    What other objects of the program keep it may use, and retain again, and that is as protected as all else."""
    exe = opencl(s, "ocl_released")
    for r in [layered(s, "check=none ckpt=off", exe, "wrong"),
              s.hale("run", "--opencl", "--", exe, "wrong", env={"HALE_OPENCL": "check=none ckpt=off"})]:
        codes = [re.findall(r"-\d+", line.split(" cl")[0]) for line in r.out.splitlines()]
        expect(r.status == 0 and len(codes) == 47 and r.out.endswith("read 0 100 255\n"), r)
        wrong = [line for line in r.out.splitlines()[:-1]
                 if not re.match(r"(0 )?-38 .*MemObj|(0 )?-(38|65) cl(Get|Create|Enqueue)\w*(Image|Buffer)|-38 clSetKernelArg\(grow"
                                 r"|-41 .*Sampler|(0 )?-48 .*look|-58 .*Event|-57 clEnqueue.*&e, NULL\)"
                                 r"|(0 )?-44 cl.*rogram", line)]
        expect(not wrong, wrong, r)
    alone = s.run(exe, "kept")
    for epoch in some([1, 8, 20], 1):
        r = same(s, f"check=none ckpt=epochs:5 inject=epoch:{epoch}", exe, "kept", alone=alone)
        expect(found(r)[:2] == (1, 1), r)
        r = s.hale("run", "--opencl", "--", exe, "kept", env={"HALE_OPENCL": f"check=none inject=epoch:{epoch}"})
        expect(r.status == 0 and r.out == alone.out and found(r)[:2] == (1, 1), r)


@test
def what_is_being_released_while_another_thread_waits(s):
    """Its epoch, which closes then, finds no buffer that the runtime has no more, and waits for commands of such a queue."""
    exe = opencl(s, "ocl_released")
    alone = s.run(exe, "beside")
    for env in [{}, {"OCL_ICD_VENDORS": os.path.join(BUILD, "libhale_opencl_remote.so")}]:
        for epoch in [2, 4, 5]:
            r = same(s, f"check=none ckpt=every-epoch inject=epoch:{epoch}", exe, "beside", alone=alone, **env)
            expect(found(r)[:2] == (1, 1), epoch, r)


@test
def boxes_that_reach_beyond_numbers_are_refused_by_the_server(s):
    r = s.hale("run", "--opencl", "--", opencl(s, "ocl_wraps"))
    lines = r.out.splitlines()
    expect(r.status == 0 and lines[-1] == "nothing was written" and "has ended" not in r.err, r)
    expect(len(lines) == 24 and all(line.startswith("-30 ") for line in lines[:-1]), r)


@test
def who_never_synchronises_has_epochs_closed(s):
    exe = opencl(s, "ocl_misc")
    r = same(s, "check=none ckpt=every-epoch inject=epoch:1", exe, "endless", "300000")
    errors, recovered, epochs, checkpoints = found(r)
    expect((errors, recovered) == (1, 1) and epochs == 2 and checkpoints == 2, r)


@test
def enormous_logs_have_epochs_closed(s):
    """Host data beyond the bound, and beyond the 256 MiB that are kept in memory in any case."""
    exe = opencl(s, "ocl_misc")
    sizes = [("120", "1", "log=32M", 4), ("40", "8", "", 1)]
    if os.environ.get("HALE_LONG"):
        sizes.append(("70", "64", "", 2))
    for steps, mib, more, closed in sizes:
        r = same(s, f"check=none ckpt=epochs:1000 {more} inject=epoch:1", exe, "enormous", steps, mib)
        expect(found(r) == (1, 1, closed, closed - 1), steps, mib, r)
    # a disk that can't take a checkpoint: only protection is lost, and that is said
    small = s.tmpfs("small", "16m")
    r = same(s, f"check=none ckpt=epochs:1000 log=64M dir={small}", exe, "enormous", "20", "8")
    expect("No space left" in r.err and "can't be kept any longer without a checkpoint" in r.err, r)


@test
def writes_over_writes_leave_the_log(s):
    """As clpeak measures: 0.8 GB written to one buffer is 4 MiB of log, so no epoch has to be closed for it, and
    no checkpoint be taken; so are 0.4 GB written into mappings of it."""
    exe = opencl(s, "ocl_rewrite")
    for way, epochs in [("again", 1), ("mapped", 200)]:
        r = same(s, "check=none ckpt=epochs:1000 log=64M", exe, way)
        expect(found(r) == (0, 0, epochs, 0), way, r)
    for seed, way in itertools.product(random.Random(SEED).sample(range(1000), 3), [[], ["mapped"]]):
        alone = s.run(exe, str(seed), *way)
        for settings, env in some(itertools.product(
                ["ckpt=off inject=epoch:7", "ckpt=epochs:4 inject=epoch:9", "opt=none ckpt=epochs:7 log=1M inject=epoch:5"],
                [{}, REMOTE]), 1):
            r = same(s, "check=none " + settings, exe, str(seed), *way, alone=alone, **env)
            expect(found(r)[:2] == (1, 1), seed, way, settings, r)


@test
def reads_leave_the_log(s):
    """With the writes before them they are more than the log may have entries: no checkpoint has to be taken."""
    exe = opencl(s, "ocl_rewrite")
    for settings, errors in [("ckpt=epochs:1000000", (0, 0)), ("ckpt=off inject=epoch:149000", (1, 1))]:
        r = same(s, "check=none " + settings, exe, "read", POCL_DEVICES="basic")
        expect(found(r) == (*errors, 150000, 0), settings, r)


@test
def errors_in_checkpoints_and_in_replays(s):
    """Found by the check that validates a checkpoint: that one counts for nothing, the one before does. Found
    after commands have been repeated: to the other device, and there again, to none."""
    exe = opencl(s, "ocl_solver")
    alone = s.run(exe, "8")
    for at in [1, 2, 5]:
        r = same(s, f"check=none ckpt=every-epoch inject=checkpoint:{at}", exe, "8", alone=alone)
        expect(found(r)[:2] == (1, 1), at, r)
    two = dict(POCL_DEVICES="pthread pthread")
    r = same(s, "check=none ckpt=every-epoch inject=checkpoint:3:2", exe, "8", alone=alone)
    expect(found(r)[:2] == (2, 2), "the same checkpoint, taken three times", r)
    count = s.path("count")
    for times, status in [(1, 0), (2, 3)]:
        s.write("count", "0\n")
        job = s.start(exe, "-g", s.path("go"), "500", env=dict(two, OPENCL_LAYERS=os.path.join(BUILD, "libhale_opencl.so"),
                      HALE_OPENCL=f"check=file:{count} ckpt=epochs:50 inject=replay:1:{times}"))
        job.until_output(r"^20 ")
        s.write("count", "1\n")
        s.write("go", "")
        r = job.wait()
        os.unlink(s.path("go"))
        expect(r.status == status, times, r)
        if status == 0:
            expect(r.out == s.run(exe, "500").out and "moved to another device" in r.err, r)
        else:
            expect("failed: -5 " in r.out and "no other device" in r.err, r)


@test
def bad_folders_and_full_disks_stop_nothing(s):
    exe = opencl(s, "ocl_solver")
    alone = s.run(exe, "6")
    r = same(s, "check=none ckpt=every-epoch dir=/not/there inject=epoch:4", exe, "6", alone=alone)
    expect("'/not/there'" in r.err and found(r)[:2] == (1, 1), r)
    fixed = s.tmpfs("fixed", "1m")
    subprocess.run(["mount", "-o", "remount,ro", fixed], check=True)
    r = same(s, f"check=none ckpt=every-epoch dir={fixed} inject=epoch:4", exe, "6", alone=alone)
    expect("Read-only file system" in r.err and found(r)[:2] == (1, 1), r)
    small = s.tmpfs("small", "256k")
    r = same(s, f"check=none ckpt=every-epoch dir={small} inject=epoch:4", exe, "6", alone=alone)
    expect("No space left" in r.err and found(r)[:2] == (1, 1), r)
    r = layered(s, "ckpt=sometimes", exe, "6")
    expect(r.status == EXIT_USAGE and "HALE_OPENCL: ckpt takes" in r.err, r)


@test
def hale_run_and_hale_inject(s):
    exe = opencl(s, "ocl_solver")
    alone = s.run(exe, "500")
    job = s.start(HALE, "run", "--opencl", "--report", "report.json", "--", exe, "-g", s.path("go"), "500",
                  env={"HALE_OPENCL": "ckpt=epochs:20"})
    job.until_output(r"^20 ")
    pid = job.ranks(1)[0]
    r = s.hale("inject", "ecc", pid, "--epoch", "480")
    expect(r.status == 0, r)
    s.write("go", "")
    r = job.wait()
    expect(r.status == 0 and r.out == alone.out, r)
    report = s.report()["opencl"]
    expect(report["errors"] == 1 and report["recoveries"] == 1, report)
    expect(set(report["seconds"]) == {"log", "check", "checkpoint", "consolidate", "restore", "replay"}, report)
    r = s.hale("inject", "ecc", os.getpid())
    expect(r.status == 1 and "does not run OpenCL" in r.err, r)
    r = s.hale("inject", "ecc", "--epoch", "0")
    expect(r.status == EXIT_USAGE, r)


@test
def a_loader_without_layers_is_replaced(s):
    """CUDA's libOpenCL.so.1 is one. Here: Debian's, made to look for its layers under another name."""
    exe = opencl(s, "ocl_solver")
    alone = s.run(exe, "8")
    usual = next(p for p in glob.glob("/usr/lib/*/libOpenCL.so.1") + glob.glob("/usr/lib64/libOpenCL.so.1"))
    with open(usual, "rb") as f:
        loader = f.read()
    expect(b"OPENCL_LAYERS\0" in loader, usual)
    os.mkdir(s.path("other"))
    with open(s.path("other/libOpenCL.so.1"), "wb") as f:
        f.write(loader.replace(b"OPENCL_LAYERS\0", b"OPENCL_CUDA__\0"))
    env = {"LD_LIBRARY_PATH": s.path("other")}
    r = layered(s, "check=none inject=epoch:3", exe, "8", **env)
    expect(r.status == 0 and "opencl:" not in r.err, "the loader has layers all the same", r)
    for settings in ["check=none inject=epoch:3", "check=none inject=epoch:3 server=off"]:
        r = s.hale("run", "--opencl", "--", exe, "8", env=dict(env, HALE_OPENCL=settings))
        expect(r.status == 0 and r.out == alone.out and found(r)[:2] == (1, 1), settings, alone, r)


@test
def valgrind_finds_nothing_in_layer_and_driver(s):
    """The runtime is in a process of its own, which valgrind doesn't watch."""
    have("valgrind")
    if not LONG:
        skip("five minutes: HALE_LONG=1")
    exe = opencl(s, "ocl_solver")
    env = {"OPENCL_LAYERS": os.path.join(BUILD, "libhale_opencl.so"),
           "OCL_ICD_VENDORS": os.path.join(BUILD, "libhale_opencl_remote.so")}
    programs = [([exe, "-q", "2", "-o"], "ckpt=epochs:2 inject=epoch:4"),
                ([exe], "ckpt=every-epoch inject=epoch:3"), ([exe, "-m"], "ckpt=off inject=epoch:5 opt=none"),
                ([opencl(s, "ocl_recorded"), "out"], "ckpt=epochs:2 inject=epoch:4"),
                ([opencl(s, "ocl_svm"), "list"], "ckpt=epochs:60 inject=epoch:206")]
    for argv, settings in programs:
        alone = s.run(*argv, "6")
        r = s.run("valgrind", "-q", "--error-exitcode=9", "--leak-check=full", "--errors-for-leak-kinds=definite",
                  *argv, "6", env=dict(env, HALE_OPENCL="check=none " + settings), limit=600)
        expect(r.status == 0 and r.out == alone.out and found(r)[:2] == (1, 1), argv, alone, r)


@test
def reports_as_text_json_and_picture(s):
    exe = opencl(s, "ocl_solver")
    have("gnuplot")
    for name, what in [("r.txt", "checkpoint "), ("r.json", '"replay":'), ("r.svg", "<svg")]:
        same(s, f"check=none ckpt=every-epoch inject=epoch:2 report={s.path(name)}", exe, "4")
        expect(what in s.read(name), name, s.read(name)[:400])
    env = {"HALE_OPENCL": "check=none ckpt=every-epoch inject=epoch:2"}
    for name, what in [("all.txt", "recoveries       1"), ("all.json", '"opencl":{"processes":1'), ("all.svg", "<svg")]:
        r = s.hale("run", "--opencl", "--report", name, "--", exe, "4", env=env)
        expect(r.status == 0 and what in s.read(name), name, r, s.read(name)[:400])


@test
def processes_on_other_hosts_are_in_the_report(s):
    """Which share the folder of checkpoints, and not the one of temporary files."""
    exe = opencl(s, "ocl_mpi", mpi="openmpi")
    os.mkdir(s.path("own"))
    if s.run("unshare", "-m", "true").status != 0:
        skip("no right to have mounts of one's own here")
    hide = f"case %h in b) unshare -m sh -c 'mount -t tmpfs none {s.path('own')}; exec \"$@\"' - %c;; *) exec %c;; esac"
    r = s.hale("run", "-n", "2", "--host", "a,b", "--launcher", hide, "--opencl", "--report", "report.json", "--", exe, "10",
               env={"TMPDIR": s.path("own")})
    expect(r.status == 0 and "used OpenCL" not in r.err, r)
    report = s.report()["opencl"]
    expect(report["processes"] == 2 and report["epochs"] >= 20, report)
    expect(not os.path.exists(s.path("hale-ckpt")) and os.listdir(s.path("own")) == [], "something is left behind", r)


@test
def reports_that_can_t_be_written(s):
    """Said with the reason, by hale run before anything starts; what the program prints is its own."""
    exe = opencl(s, "ocl_solver")
    have("gnuplot")
    for end in some(["svg", "png", "txt", "json"], 1):
        name = s.path("nowhere/r." + end)
        r = same(s, f"check=none report={name}", exe, "4")
        expect(f"the report '{name}' could not be written: No such file or directory" in r.err, r)
        r = s.hale("run", "--opencl", "--report", name, "--", exe, "4")
        expect(r.status == 64 and r.out == "" and f"cannot write the report '{name}': No such file" in r.err, r)
    quoted = s.path("o'clock.svg")
    same(s, f"check=none report={quoted}", exe, "4")
    expect("<svg" in s.read(quoted), s.read(quoted)[:400])


main()
