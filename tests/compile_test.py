#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""hale cc and hale cxx build programs of the standard's ABI, alone, for CMake and by pkg-config's words;
what goes wrong is said."""

import shutil

from lib import *

SOURCE = """#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
	int version, sub, size;
	MPI_Init(&argc, &argv);
	MPI_Get_version(&version, &sub);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	int rank;
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (rank == 0)
		printf("MPI %d, %d ranks\\n", version, size);
	return MPI_Finalize();
}
"""
WRAPPER = os.path.join(BUILD, "hale-mpicc")


@test
def a_program_is_compiled_and_linked_at_once_and_apart(s):
    for command, name in (("cc", "a.c"), ("cxx", "a.cc")):
        source = s.write(name, SOURCE)
        exe, part = s.path("exe" + name), s.path("part.o")
        r = s.run(HALE, command, "-O1", "-o", exe, source)
        expect(r.status == 0, r)
        r = s.run(exe)  # found without a path of libraries, as one process
        expect(r.status == 0 and r.out == "MPI 5, 1 ranks\n", r)
        r = s.hale_run(2, exe)
        expect(r.status == 0 and r.out == "MPI 5, 2 ranks\n", r)
        r = s.run(HALE, command, "-c", "-o", part, source)
        expect(r.status == 0 and not r.err, r)
        r = s.run(HALE, command, "-o", exe, part)
        expect(r.status == 0 and s.hale_run(2, exe).out == "MPI 5, 2 ranks\n", r)


@test
def cmake_finds_it(s):
    if not shutil.which("cmake"):
        skip("CMake is not installed")
    s.write("a.c", SOURCE)
    s.write("CMakeLists.txt", "cmake_minimum_required(VERSION 3.10)\nproject(a C)\n"
            "find_package(MPI REQUIRED COMPONENTS C)\nadd_executable(a a.c)\n"
            "target_link_libraries(a MPI::MPI_C)\n")
    r = s.run("cmake", "-S", s.dir, "-B", s.path("b"), "-DMPI_C_COMPILER=" + WRAPPER,
              "-DMPI_SKIP_MPICXX=ON")
    expect(r.status == 0 and "Found MPI_C" in r.out, r)
    r = s.run("cmake", "--build", s.path("b"))
    expect(r.status == 0, r)
    r = s.hale_run(2, s.path("b/a"))
    expect(r.status == 0 and r.out == "MPI 5, 2 ranks\n", r)


@test
def what_is_asked_is_shown_and_what_is_wrong_is_said(s):
    r = s.run(WRAPPER, "-showme:link")
    expect(r.status == 0 and r.out.startswith("-L") and r.out.endswith("-lmpi_abi\n"), r)
    r = s.run(WRAPPER, "-showme:compile")
    expect(r.status == 0 and r.out.startswith("-I") and "-l" not in r.out.split()[-1][:2], r)
    r = s.run(HALE, "cc", "-show", "x.c")
    expect(r.status == 0 and r.out.startswith("cc -I") and " x.c -L" in r.out, r)
    r = s.run(HALE, "cc", "x.c", env={"HALE_CC": "/nowhere/cc"})
    expect(r.status == 127 and "set HALE_CC" in r.err, r)
    r = s.run(HALE, "f90", "x.f90")
    expect(r.status == 64 and "mpif90.openmpi" in r.err, r)


main()
