#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""OpenCL programs that others wrote, as Debian has them: pyopencl with numpy, and CLBlast's own tests."""

from lib import *
from ocl_parts import *

PYTHON = "/usr/bin/python3"
ARRAYS = """
import hashlib, os, sys, time
import numpy as np, pyopencl as cl, pyopencl.array as array, pyopencl.clmath as clmath
from pyopencl.elementwise import ElementwiseKernel
from pyopencl.reduction import ReductionKernel
from pyopencl.scan import InclusiveScanKernel

context = cl.create_some_context(interactive=False)
queue = cl.CommandQueue(context)
random, n, seen = np.random.default_rng(1), 100000, hashlib.sha1()
a, b = (array.to_device(queue, random.random(n).astype(np.float32)) for _ in range(2))
blend = ElementwiseKernel(context, "float *x, float *y, float c", "x[i] = c * x[i] + (1 - c) * y[i]", "blend")
modulo = ElementwiseKernel(context, "int *x", "x[i] = x[i] % 11", "modulo")
dot = ReductionKernel(context, np.float64, neutral="0", reduce_expr="a+b", map_expr="x[i]*y[i]",
                      arguments="__global float *x, __global float *y")
scan = InclusiveScanKernel(context, np.int32, "a+b", neutral="0")
counts = array.to_device(queue, np.arange(n, dtype=np.int32) % 7)
for step in range(int(sys.argv[1])):
    while step == 399 and not os.path.exists("go"):  # killed before that
        time.sleep(0.01)
    blend(a, b, 0.9)
    seen.update(dot(a, b).get().tobytes())
    b = clmath.sin(a) + b * 0.5
    scan(counts)
    modulo(counts)
    if step % 5 == 0:
        seen.update(a.get().tobytes() + counts.get().tobytes())
    if step % 20 == 0:
        print("step", step, seen.hexdigest(), flush=True)
print("end", seen.hexdigest(), hashlib.sha1(b.get().tobytes()).hexdigest())
"""


def arrays(s):
    try:
        subprocess.run([PYTHON, "-c", "import pyopencl"], check=True, stderr=subprocess.DEVNULL)
    except subprocess.CalledProcessError:
        skip("needs python3-pyopencl: scripts/deps.sh check")
    opencl(s, "ocl_misc")
    s.env["XDG_CACHE_HOME"] = s.path("cache")
    s.write("arrays.py", ARRAYS)
    return s.path("arrays.py")


@test
def pyopencl_survives_errors_in_any_epoch(s):
    program = arrays(s)
    alone = s.run(PYTHON, program, "20")
    epochs = found(same(s, "check=none ckpt=every-epoch", PYTHON, program, "20", alone=alone))[2]
    expect(epochs > 20, epochs)
    for at in sorted(random.Random(SEED).sample(range(1, epochs), 3)):
        for ckpt in ("every-epoch", "epochs:7"):
            r = same(s, f"check=none ckpt={ckpt} inject=epoch:{at}", PYTHON, program, "20", alone=alone)
            expect(found(r)[:2] == (1, 1), at, r)


@test
def pyopencl_goes_on_from_checkpoints(s):
    """Python, numpy and its arrays on the device, killed twice, with an error in device memory on top."""
    program = arrays(s)
    s.write("go", "")
    wanted = s.run(PYTHON, program, "400")
    expect(wanted.status == 0, wanted)
    os.unlink(s.path("go"))
    job = s.start(HALE, "run", "--opencl", "--ckpt-dir", "ckpt", "--", PYTHON, program, "400",
                  env=dict(HALE_OPENCL="check=none inject=epoch:60"))
    for step in (20, 160):
        job.until_output(rf"^step {step} ")
        pid = job.ranks(1)[0]
        job.checkpoint()
        before = life(pid)
        os.kill(pid, signal.SIGKILL)
        job.until(lambda: life(job.ranks(1)[0]) != before, "to restart")
    s.write("go", "")
    r = job.wait()
    expect(r.status == 0 and r.out == wanted.out, wanted, r)


@test
def clblasts_own_tests(s):
    """Each compares with an implementation of its own; so many pass with errors as pass alone."""
    if not os.path.exists("/usr/bin/clblast_test_xaxpy"):
        skip("needs clblast-tests: scripts/deps.sh check")
    opencl(s, "ocl_misc")
    for name in ("xaxpy", "xdot", "xscal", "xamax"):
        exe = f"/usr/bin/clblast_test_{name}"
        alone = s.run(exe, limit=300)
        counts = re.findall(r"(\d+) test\(s\) (passed|skipped|failed)", alone.out)
        expect(alone.status == 0 and counts, alone)
        r = layered(s, "check=none ckpt=every-epoch inject=epoch:40", exe)
        expect(re.findall(r"(\d+) test\(s\) (passed|skipped|failed)", r.out) == counts and found(r)[:2] == (1, 1), alone, r)
        r = s.run(HALE, "run", "--opencl", "--", exe, env=dict(HALE_OPENCL="check=none inject=epoch:25"), limit=300)
        expect(re.findall(r"(\d+) test\(s\) (passed|skipped|failed)", r.out) == counts and found(r)[:2] == (1, 1), alone, r)


main()
