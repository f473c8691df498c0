# SPDX-License-Identifier: BSD-3-Clause
"""What the tests of OpenCL programs share."""

import atexit
import contextlib
import shutil
import tempfile

from lib import *
from lib import alive, name_of
from lib import test as lib_test

CACHE = []  # what PoCL has compiled serves all tests
# HALE_TEST_OPENCL=any: on the first device of the first platform there is, a GPU for example.
ANY = os.environ.get("HALE_TEST_OPENCL") == "any"
# What PoCL's devices have and others need not: how programs say that it is missing.
MISSING = [("there is no other device to go to", "another device"),
           ("CL_DEVICE_SVM_COARSE_GRAIN_BUFFER", "shared virtual memory by the server"),
           ("shared_memory in line", "shared virtual memory by the server"),
           ("no cl_khr_command_buffer", "command buffers"), ("no native kernels", "native kernels"),
           ("failed: -30 at parts", "parts of devices"), ("ocl_killed 0 parts", "parts of devices"),
           ("failed: -33 at first_device", "a runtime that children of fork can use"),
           ("ocl_misc echo", "reads whose memory may be written from before they have come")]


def test(function):
    """Elsewhere than on PoCL a test ends where the device has not what the rest is about."""
    def run(s):
        try:
            return function(s)
        except Failed as e:
            for said, what in MISSING:
                if said in str(e):
                    skip(f"not here: {what}; what comes before that is right")
            raise

    run.__name__ = function.__name__
    lib_test(run if ANY else function)
    return function



def opencl(s, program, *libraries, mpi=None):
    there = glob.glob("/etc/OpenCL/vendors/" + ("*.icd" if ANY else "pocl*.icd"))
    if not there or not os.path.exists("/usr/include/CL/cl.h"):
        skip("needs PoCL and OpenCL's headers: scripts/deps.sh check")
    if not os.path.exists(os.path.join(BUILD, "libhale_opencl.so")):
        raise Failed("libhale_opencl.so was not built")
    if not CACHE:
        CACHE.append(tempfile.mkdtemp(prefix="hale-test-pocl-", dir=os.environ.get("HALE_TEST_DIR", "/var/tmp")))
        atexit.register(shutil.rmtree, CACHE[0], ignore_errors=True)
    s.env["POCL_CACHE_DIR"] = CACHE[0]
    return s.compile(program, mpi=mpi, flags=["-Wno-comment", "-lOpenCL", *libraries])


def layered(s, settings, exe, *args, **env):
    return s.run(exe, *args, env=dict(
        env, OPENCL_LAYERS=os.path.join(BUILD, "libhale_opencl.so"), HALE_OPENCL=settings))


def same(s, settings, exe, *args, alone=None, **env):
    """The layer's run, which gave what a run without it gives."""
    alone = alone or s.run(exe, *args, env=env)
    expect(alone.status == 0, alone)
    r = layered(s, settings, exe, *args, **env)
    expect(r.status == 0 and r.out == alone.out, f"HALE_OPENCL='{settings}'", alone, r)
    return r


def found(r):
    """(errors, recovered, epochs, checkpoints)"""
    m = re.search(r"opencl: (\d+) errors in device memory, (\d+) recovered.*?; (\d+) epochs, (\d+) checkpoints",
                  r.err)
    expect(m, "no line at the end", r)
    return tuple(int(x) for x in m.groups())


def server_of(pid):
    """The process with the OpenCL runtime of process pid: of the same group, and no child of it."""
    try:
        group = os.getpgid(pid)
    except ProcessLookupError:
        return None  # both have ended
    for p in glob.glob("/proc/[0-9]*"):
        other = int(p[6:])
        try:
            if name_of(other) == "hale-opencl-server" and alive(other) and os.getpgid(other) == group:
                return other
        except (ProcessLookupError, OSError):
            pass
    return None


def is_ready(server):
    """Whether it carries out requests: struct remote_wire's third word says so (src/ocl/remote/wire.h)."""
    with contextlib.suppress(OSError, StopIteration):
        with open(f"/proc/{server}/maps") as maps:
            at = int(next(m for m in maps if "/memfd:hale-opencl " in m).split("-")[0], 16)
        with open(f"/proc/{server}/mem", "rb") as memory:
            memory.seek(at + 8)
            return int.from_bytes(memory.read(4), "little") == 1
    return False


def run_opencl(s, exe, *args, ranks=1, options=(), **env):
    return s.start(HALE, "run", "-n", ranks, "--opencl", *options, "--", exe, *args, env=env)
