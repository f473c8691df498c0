#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tools that people use on MPI programs, as docs/recipes.md shows them: gdb, valgrind, perf, a PMPI tool, a Python
environment with its own mpi4py. Each line is taken from that page. HALE_LONG=1: valgrind and perf as well."""

import shlex

from recipes_parts import *

SOLVER = """
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	volatile double x = 0;
	int rank, more, all = 1;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	for (int i = 1; all; i++) {
		for (int k = 0; k < 100000; k++)
			x += k;
		more = i < 100 || access("end", F_OK) != 0;
		MPI_Allreduce(&more, &all, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
	}
	printf("rank %d ends\\n", rank);
	return MPI_Finalize();
}
"""

# As people write them: it counts calls, and passes them on.
COUNT = """
#include <mpi.h>
#include <stdio.h>

static long calls;

int MPI_Allreduce(const void *from, void *to, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
	calls++;
	return PMPI_Allreduce(from, to, n, type, op, comm);
}

int MPI_Finalize(void)
{
	int rank;

	PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
	printf("rank %d: %ld calls of MPI_Allreduce\\n", rank, calls);
	return PMPI_Finalize();
}
"""

JOB = """
import sys, time
import mpi4py
from mpi4py import MPI
for i in range(30):
    total = MPI.COMM_WORLD.allreduce(i)
    time.sleep(0.05)
print("rank", MPI.COMM_WORLD.rank, "sum", total, mpi4py.__file__, flush=True)
"""


def line_with(word):
    """The command of the recipe that has this word."""
    lines = [re.sub(r"\s+#.*", "", x) for x in recipe("recipes.md", "valgrind").splitlines() if word in x]
    expect(len(lines) == 1, word, lines)
    return lines[0]


def build(s, ends=True):
    have("mpicc.openmpi")
    s.write("solver.c", SOLVER)
    r = s.run("mpicc.openmpi", "-O1", "-g", "-o", "solver", "solver.c")
    expect(r.status == 0, r)
    if ends:
        s.write("end", "")


def typed(s, command):
    r = s.run("bash", "-c", command, env=with_hale(s))
    expect(r.status == 0, r)
    return r


@test
def valgrind_looks_at_each_rank(s):
    if not LONG:
        skip("slow: with HALE_LONG=1")
    have("valgrind")
    build(s)
    r = typed(s, line_with("valgrind "))
    logs = glob.glob(s.path("valgrind.*"))
    expect(sorted(r.out.split("\n")[:2]) == ["rank 0 ends", "rank 1 ends"] and len(logs) == 2, r, logs)
    for log in logs:
        expect("ERROR SUMMARY" in s.read(os.path.basename(log)), log)


@test
def perf_samples_each_rank(s):
    if not LONG:
        skip("slow: with HALE_LONG=1")
    have("perf")
    build(s)
    typed(s, line_with("perf record"))
    for rank in 0, 1:
        r = s.run("perf", "script", "-i", f"perf.{rank}")
        expect(r.status == 0 and re.search(r"^ *solver .*\bmain\+", r.out, re.M), r)


@test
def a_tool_that_stands_before_mpi_sees_its_calls(s):
    build(s)
    s.write("count.c", COUNT)
    r = s.run("mpicc.openmpi", "-shared", "-fPIC", "-o", "count.so", "count.c")
    expect(r.status == 0, r)
    r = typed(s, line_with("count.so"))
    expect({f"rank {k}: 100 calls of MPI_Allreduce" for k in (0, 1)} <= set(r.out.splitlines()), r)


@test
def gdb_looks_into_a_rank_which_then_goes_on(s):
    have("gdb")
    build(s, ends=False)
    job = s.start("hale", "run", "-n", "2", "--ckpt-every", "200ms", "--", "./solver", env=with_hale(s))
    pid = job.ranks(2)[0]
    job.until(lambda: job.info()["checkpoint"], "a checkpoint")
    command = line_with("gdb -p").replace("PID", str(pid))
    # "shell sleep": while the rank stands still checkpoints wait for it
    r = s.run(*shlex.split(command), "-batch", "-ex", "bt", "-ex", "shell sleep 1")
    expect(r.status == 0 and re.search(r"#\d+ .*\bmain \(argc=", r.out), r)
    seen = job.info()["checkpoint"]
    job.until(lambda: job.info()["checkpoint"] > seen, "checkpoints after gdb has gone")
    s.write("end", "")
    r = job.wait()
    expect(r.status == 0 and sorted(r.out.splitlines()) == ["rank 0 ends", "rank 1 ends"], r)


@test
def an_environment_has_an_mpi4py_of_its_own(s):
    own = "/usr/lib/python3/dist-packages/mpi4py"
    if not os.path.isdir(own):
        skip("python3-mpi4py is not installed")
    r = s.run(PYTHON, "-m", "venv", "--without-pip", "env")
    if r.status != 0:
        skip("python3-venv is not installed")
    (packages,) = glob.glob(s.path("env/lib/python3*/site-packages"))
    shutil.copytree(own, os.path.join(packages, "mpi4py"))
    s.write("job.py", JOB)
    command = line_with("env/bin/python3").replace("hale run", "hale run --ckpt-every 200ms --inject kill:rank=1,at-ckpt=2")
    r = typed(s, command)
    expect("all ranks run again" in r.err, r)
    expect(sorted(r.out.splitlines()) == [f"rank {k} sum 58 {packages}/mpi4py/__init__.py" for k in (0, 1)], r)


main()
