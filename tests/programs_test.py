#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Programs that Debian carries, not recompiled: the same results as under Debian's Open MPI."""

from lib import *

MELT = "/usr/share/lammps/examples/melt/in.melt"


def same_output(s, ranks, *argv):
    theirs = s.openmpi(ranks, *argv)
    expect(theirs.status == 0, theirs)
    ours = s.hale_run(ranks, *argv)
    expect(ours.status == 0, ours)
    expect(sorted(ours.out.splitlines()) == sorted(theirs.out.splitlines()),
           "not the same output", ours, theirs)
    return ours


@test
def lammps_melt_on_4_ranks_prints_the_same_thermo_lines(s):
    have("lmp")
    argv = ["lmp", "-log", "none", "-in", MELT]
    theirs = s.openmpi(4, *argv)
    ours = s.hale_run(4, *argv)
    expect(theirs.status == 0, theirs)
    expect(ours.status == 0, ours)
    expect(len(thermo(theirs.out)) > 5, theirs)
    expect(thermo(ours.out) == thermo(theirs.out), "thermo differs", ours, theirs)


def hpcc_checks(text):
    """Every statement of the benchmark about its own correctness, in order, without times."""
    said = re.findall(r"PASSED|FAILED|passed|failed|Node\(s\) with error \d+|Found \d+ errors"
                      r"|Solution Validates|^Success=\d+|^MPIRandomAccess\w*Errors=\d+", text, re.M)
    return said


@test
def hpcc_passes_all_its_checks(s):
    have("hpcc")
    found = []
    for run in (s.openmpi, s.hale_run):
        for old in glob.glob(s.path("hpcc*.txt")):
            os.unlink(old)
        shutil.copy(os.path.join(ROOT, "tests/data/hpccinf.txt"), s.dir)
        r = run(4, "hpcc")
        expect(r.status == 0, r)
        found.append(hpcc_checks(s.read("hpccoutf.txt")))
    theirs, ours = found
    expect("Success=1" in ours and "FAILED" not in ours and len(ours) > 20, ours)
    # checks that several nodes find in turn may be counted differently, never their outcome
    expect(sorted(set(ours)) == sorted(set(theirs)), ours, theirs)
    return f"{len(ours)} checks"


@test
def hpcc_ends_with_replicas_whichever_of_them_die(s):
    have("hpcc")
    if not LONG:
        skip("half a minute: HALE_LONG=1")
    with open(os.path.join(ROOT, "tests/data/hpccinf.txt")) as f:
        s.write("hpccinf.txt", f.read().replace("2            Ps", "1            Ps"))
    found = []
    for options in ([], ["--replicas", "2", "--inject", "kill:rank=1,slot=0,after=4s"]):
        for old in glob.glob(s.path("hpccoutf.txt")):
            os.unlink(old)
        r = s.hale_run(2, "hpcc", options=options)
        expect(r.status == 0 and "roll" not in r.err, r)
        found.append(hpcc_checks(s.read("hpccoutf.txt")))
    expect("Success=1" in found[1] and sorted(set(found[0])) == sorted(set(found[1])), found)


@test
def mpi4py_hello_and_ring_run_on_4_ranks(s):
    same_output(s, 4, PYTHON, "-m", "mpi4py.bench", "helloworld")
    r = s.hale_run(4, PYTHON, "-m", "mpi4py.bench", "ringtest", "-l", "100", "-n", "1000")
    expect(r.status == 0, r)
    expect(re.search(r"time for 100 loops = \S+ seconds \(4 processes, 1000 bytes\)", r.out), r)


@test
def jacobi_in_numpy_is_the_same_to_the_last_bit(s):
    r = same_output(s, 4, PYTHON, os.path.join(ROOT, "examples/jacobi.py"), "1000")
    expect("iteration 1000: largest change" in r.out, r)


@test
def netpipe_finds_every_byte_intact(s):
    have("NPopenmpi")
    r = s.hale_run(2, "NPopenmpi", "-i", "-l", "1", "-u", "262144", "-n", "3", "-o", "np.out")
    expect(r.status == 0, r)
    said = r.out + r.err
    passed = said.count("Integrity check passed")
    expect(passed > 30 and "failed" not in said.lower(), r)
    return f"{passed} sizes"


@test
def netpipe_measures_all_sizes(s):
    have("NPopenmpi")
    r = s.hale_run(2, "NPopenmpi", "-l", "1", "-u", "4194304", "-n", "5", "-o", "np.out")
    expect(r.status == 0, r)
    rows = [line.split() for line in s.read("np.out").splitlines()]
    expect(len(rows) > 90 and int(float(rows[-1][0])) >= 4194304, r)


SCALAPACK = "/usr/lib/x86_64-linux-gnu/scalapack/openmpi-tests"


@test
def scalapack_passes_its_own_tests_over_two_nodes(s):
    """LU and QR: residuals of every size, block and grid of Debian's input files."""
    said = 0
    for program, data in (("xdlu", "LU.dat"), ("xdqr", "QR.dat")):
        have(f"{SCALAPACK}/{program}")
        shutil.copy(f"/usr/share/scalapack/{data}", s.dir)
        r = s.hale_run(4, f"{SCALAPACK}/{program}", options=["--nodes", "2"])
        expect(r.status == 0 and "END OF TESTS." in r.out, r)
        passed = int(re.search(r"(\d+) tests completed and passed", r.out)[1])
        expect(passed > 200 and "    0 tests completed and failed" in r.out, r)
        said += passed
    return f"{said} residuals"


@test
def openmp_and_mpi_together_give_the_same_result(s):
    exe = s.compile("omp_mpi", flags=["-fopenmp"])
    same_output(s, 4, exe)


@test
def more_ranks_than_cores_work(s):
    exe = s.compile("steps")
    theirs = s.openmpi(8, exe, "20")
    for old in glob.glob(s.path("log.*")) + glob.glob(s.path("state.*")):
        os.unlink(old)
    ours = s.hale_run(8, exe, "20")
    expect(ours.status == 0, ours)
    expect(sorted(ours.out.splitlines()) == sorted(theirs.out.splitlines()), ours, theirs)


main()
