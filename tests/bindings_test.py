#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The binary interface: programs in C, Fortran and C++, compiled with Debian's wrappers for Open
MPI, print the same under both MPIs; every name that Debian's library has is there."""

from lib import *

DEBIAN = "/usr/lib/x86_64-linux-gnu"


def build(s, compiler, source, *flags):
    have(compiler)
    exe = s.path(source.split(".")[0])
    r = s.run(compiler, "-O1", "-g", "-o", exe, os.path.join(ROOT, "tests/programs", source), *flags)
    expect(r.status == 0, r)
    return exe


def same_under_both(s, exe, ranks, *args):
    theirs = s.openmpi(ranks, exe, *args)
    expect(theirs.status == 0, theirs)
    ours = s.hale_run(ranks, exe, *args)
    expect(ours.status == 0, ours)
    expect(ours.out == theirs.out, "not the same output", ours, theirs)
    return ours


@test
def statuses_flags_indices_and_error_classes_are_open_mpis(s):
    exe = s.compile("status_rules")
    for ranks in (1, 2, 4):
        same_under_both(s, exe, ranks)


@test
def statuses_follow_the_standard_where_open_mpi_does_not(s):
    exe = s.compile("status_rules")
    r = s.hale_run(2, exe, "strict")
    expect(r.status == 0, r)
    for line in (r"waitall with an error +class 18", r"errors 15 0 0 null 1 1",
                 r"waitany with an error +class 15", r"waitsome with an error +class 18",
                 r"count 1 index 0 error 15 null 1", r"test with an error +class 15",
                 r"bsend without buffer +class +1\b", r"mrecv null +class +7"):
        expect(re.search(line, r.out), f"no line like /{line}/", r)


@test
def the_request_that_was_complete_first_is_told_first(s):
    """Several receives that match anything: the messages of one sender come out in order."""
    exe = s.compile("waitany_order")
    for options in ([], ["--nodes", "2"], ["--replicas", "2"], ["--shadows", "1"]):
        r = s.hale_run(3, exe, options=options)
        expect(r.status == 0 and r.out == "0 messages out of order\n", options, r)


@test
def fortran_integers_of_handles_are_open_mpis(s):
    r = same_under_both(s, s.compile("handles"), 1)
    expect("bad: 0" in r.out, r)


@test
def mpi_begins_answers_and_ends_as_open_mpi_does(s):
    exe = s.compile("life", flags=["-pthread"])
    for level in ((), ("0",), ("1",), ("2",), ("3",)):
        same_under_both(s, exe, 2, *level)


@test
def a_program_started_alone_is_a_job_of_one(s):
    exe = s.compile("life", flags=["-pthread"])
    r = s.run(exe, "3", env={"LD_LIBRARY_PATH": BUILD})
    expect(r.status == 0 and "callback 2" in r.out and "Hale" not in r.err, r)


@test
def fortran_with_the_mpi_module_works(s):
    exe = build(s, "mpifort.openmpi", "fortran_tour.f90", "-J", s.dir)
    for ranks in (1, 3, 4):
        r = same_under_both(s, exe, ranks)
        expect("bad: 0" in r.out, r)


@test
def what_fortrans_library_looks_at_is_there(s):
    """It reads fields of Open MPI's objects instead of asking, and crashes where they are not."""
    exe = build(s, "mpifort.openmpi", "fortran_fields.f90", "-J", s.dir)
    for ranks in (1, 2, 3):
        r = same_under_both(s, exe, ranks)
        expect("bad: 0" in r.out, r)


@test
def fortran_with_mpi_f08_works(s):
    exe = build(s, "mpifort.openmpi", "fortran_f08.f90", "-J", s.dir)
    for ranks in (1, 3):
        same_under_both(s, exe, ranks)


@test
def fortran_of_the_old_kind_works(s):
    exe = build(s, "mpifort.openmpi", "fortran_old.f", "-std=legacy", "-w")
    for ranks in (1, 3):
        r = same_under_both(s, exe, ranks)
        expect("bad" not in r.out, r)


@test
def cxx_bindings_work(s):
    exe = build(s, "mpicxx.openmpi", "cxx_tour.cc")
    for ranks in (1, 3, 4):
        r = same_under_both(s, exe, ranks)
        expect("bad: 0" in r.out, r)


@test
def programs_that_bind_all_names_at_start_load(s):
    exe = build(s, "mpicxx.openmpi", "cxx_tour.cc")
    r = s.hale_run(2, exe, env={"LD_BIND_NOW": "1"})
    expect(r.status == 0, r)


@test
def what_is_not_supported_says_so_and_can_be_handled(s):
    exe = s.path("unsupported")
    r = s.run("gcc", "-I", os.path.join(BUILD, "include/mpi"), "-o", exe,
              os.path.join(ROOT, "tests/programs/unsupported.c"), "-L", BUILD, "-lmpi_abi")
    expect(r.status == 0, r)
    r = s.hale_run(2, exe, "return")
    expect(r.status == 0 and "was changed" not in r.out, r)
    expect(r.out.count("refused: MPI_ERR_UNSUPPORTED_OPERATION") == 1, r)
    expect("sources: success, events: success, 0 and 0\nof a category: no such index, its events: no such index\n"
           "a source: no such index, a name: no such name, an event: no such index, to hold: no such index\n"
           "a handle: no such handle, an instance: no such handle\n" in r.out, r)
    expect("MPI_Register_datarep_c is not supported by this version of Hale" in r.err, r)
    r = s.hale_run(2, exe, "fatal")
    expect(r.status != 0, r)
    expect("MPI_Register_datarep_c" in r.err and "MPI_ERR_UNSUPPORTED_OPERATION" in r.err, r)


def dynamic_symbols(path, which):
    out = subprocess.run(["nm", "-D", which, path], check=True, stdout=subprocess.PIPE,
                         text=True).stdout
    return {line.split()[-1].split("@")[0] for line in out.splitlines()}


@test
def every_function_of_debians_library_is_there(s):
    theirs_path = f"{DEBIAN}/libmpi.so.40"
    if not os.path.exists(theirs_path):
        skip("Debian's Open MPI is not installed")
    ours = dynamic_symbols(os.path.join(BUILD, "libmpi.so.40"), "--defined-only")
    theirs = dynamic_symbols(theirs_path, "--defined-only")
    wanted = {n for n in theirs if re.match(r"P?MPIX?_|mpi_|OMPI_C_", n)}
    wanted -= {"mpi_conversion_fn_null_f"}  # a helper of its own
    expect(wanted <= ours, "missing: " + " ".join(sorted(wanted - ours)))
    return f"{len(wanted)} names"


@test
def what_debians_fortran_and_cxx_libraries_import_is_there(s):
    ours = dynamic_symbols(os.path.join(BUILD, "libmpi.so.40"), "--defined-only")
    theirs = dynamic_symbols(f"{DEBIAN}/libmpi.so.40", "--defined-only")
    for name in ("libmpi_mpifh", "libmpi_usempi_ignore_tkr", "libmpi_usempif08", "libmpi_cxx"):
        path = f"{DEBIAN}/{name}.so.40"
        if os.path.exists(path):
            missing = (dynamic_symbols(path, "--undefined-only") & theirs) - ours
            expect(not missing, f"{name} imports " + " ".join(sorted(missing)))


main()
