#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The three ABIs: one source, compiled for Open MPI, for MPICH and for the standard's ABI, prints
the same; each is checkpointed, loses a rank, and ends right; what hale has no library for is said."""

from lib import *

PROGRAMS = os.path.join(ROOT, "tests", "programs")
ABIS = ("openmpi", "mpich", "standard")


def header(s):
    """The folder of the standard ABI's mpi.h."""
    return os.path.join(BUILD, "include/mpi")


def build(s, name, abi, *flags):
    source = os.path.join(PROGRAMS, name + ".c")
    exe = s.path(f"{name}.{abi}")
    if abi == "standard":
        r = s.run("gcc", "-std=gnu17", "-O2", "-Wall", "-I", header(s), "-o", exe, source, *flags,
                  "-L", BUILD, "-lmpi_abi")
    else:
        have(f"mpicc.{abi}")
        r = s.run(f"mpicc.{abi}", "-std=gnu17", "-O2", "-w", "-o", exe, source, *flags)
    expect(r.status == 0, r)
    return exe


@test
def the_same_source_prints_the_same_for_each_abi(s):
    for ranks in (1, 3):
        outputs = []
        for abi in ABIS:
            r = s.hale_run(ranks, build(s, "abi_tour", abi))
            expect(r.status == 0 and "bad: 0" in r.out, abi, r)
            outputs.append(r.out)
        expect(len(set(outputs)) == 1, "not the same output", *outputs)


@test
def programs_of_each_abi_lose_a_rank_and_end_right(s):
    for abi in ABIS[1:]:
        exe = build(s, "abi_tour", abi)
        r = s.hale_run(3, exe, "800", options=["--ckpt-every", "50ms", "--inject",
                                               "kill:rank=1,at-ckpt=2"])
        expect(r.status == 0 and "bad: 0" in r.out, abi, r)
        expect("rolling back to checkpoint" in r.err, abi, r)


@test
def fortran_and_cxx_above_mpichs_own_libraries_work(s):
    for compiler, source, flags in (
            ("mpifort.mpich", "fortran_tour.f90", ["-J", s.dir, "-fallow-argument-mismatch"]),
            ("mpifort.mpich", "fortran_f08.f90", ["-J", s.dir]),
            ("mpifort.mpich", "fortran_old.f", ["-std=legacy"]),
            ("mpifort.mpich", "fortran_requests.f90", ["-J", s.dir]),
            ("mpicxx.mpich", "cxx_tour.cc", [])):
        have(compiler)
        exe = s.path(source.split(".")[0])
        r = s.run(compiler, "-w", "-o", exe, os.path.join(PROGRAMS, source), *flags)
        expect(r.status == 0, r)
        r = s.hale_run(3, exe)
        expect(r.status == 0, source, r)
        expect(not re.search(r"bad: [1-9]|\bNO\b", r.out), source, r)


@test
def dimensions_and_messages_of_nothing_are_as_the_programs_own_mpi_has_them(s):
    """Open MPI's dimensions are Open MPI's; the standard asks for close ones. MPICH takes a null type for nothing."""
    source = s.write("main.c", """
#include <mpi.h>
#include <stdio.h>
int main(int c, char **v) {
    int dims[2] = {0, 0};
    MPI_Init(&c, &v);
    MPI_Dims_create(72, 2, dims);
    printf("%d x %d\\n", dims[0], dims[1]);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int rc = MPI_Recv(NULL, 0, MPI_DATATYPE_NULL, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    int sent = MPI_Send(NULL, 1, MPI_DATATYPE_NULL, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
    printf("%d %d\\n", rc == MPI_SUCCESS, sent == MPI_ERR_TYPE);
    MPI_Finalize();
    return 0; }
""")
    for abi, wanted in (("openmpi", "12 x 6\n0 1\n"), ("mpich", "9 x 8\n1 1\n"), ("standard", "9 x 8\n1 1\n")):
        exe = s.path("main." + abi)
        if abi == "standard":
            r = s.run("gcc", "-I", header(s), "-o", exe, source, "-L", BUILD, "-lmpi_abi")
        else:
            have(f"mpicc.{abi}")
            r = s.run(f"mpicc.{abi}", "-w", "-o", exe, source)
        expect(r.status == 0, r)
        r = s.hale_run(1, exe)
        expect(r.status == 0 and r.out == wanted, abi, r)


@test
def mpichs_neighbourhoods_are_who_sees_a_folder(s):
    have("mpicc.mpich")
    source = s.write("main.c", """
#include <mpi.h>
#include <stdio.h>
static int members(const char *key, const char *value) {
    MPI_Info info;
    MPI_Comm made;
    int n = 0;
    MPI_Info_create(&info);
    MPI_Info_set(info, key, value);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPIX_COMM_TYPE_NEIGHBORHOOD, 0, info, &made);
    MPI_Info_free(&info);
    if (made != MPI_COMM_NULL) {
        MPI_Comm_size(made, &n);
        MPI_Comm_free(&made);
    }
    return n;
}
int main(int c, char **v) {
    int rank;
    MPI_Init(&c, &v);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int all = members("nbhd_common_dirname", "."), none = members("nbhd_common_dirname", "/no/such"),
        own = members("nbhd_common_dirname", rank ? "." : ".."), unknown = members("network_topo", "switch_level:2");
    if (rank == 0)
        printf("%d %d %d %d\\n", all, none, own, unknown);
    MPI_Finalize();
    return 0; }
""")
    exe = s.path("main")
    r = s.run("mpicc.mpich", "-w", "-o", exe, source)
    expect(r.status == 0, r)
    r = s.hale_run(3, exe)
    expect(r.status == 0 and r.out == "3 0 1 0\n", r)


def names(path, which="--defined-only"):
    out = subprocess.run(["nm", "-D", which, path], check=True, stdout=subprocess.PIPE,
                         text=True).stdout
    return {line.split()[-1].split("@")[0] for line in out.splitlines()}


@test
def every_name_of_mpichs_library_is_there(s):
    path = "/usr/lib/x86_64-linux-gnu/libmpich.so.12"
    if not os.path.exists(path):
        skip("Debian's MPICH is not installed")
    ours = names(os.path.join(BUILD, "libmpich.so.12"))
    wanted = {n for n in names(path) if re.match(r"P?MPIX?_", n)}
    for library in ("libmpichfort", "libmpichcxx"):
        imported = names(path.replace("libmpich", library), "--undefined-only")
        wanted |= {n for n in imported if n.startswith(("MPI", "PMPI"))}
    expect(wanted <= ours, "missing: " + " ".join(sorted(wanted - ours)))


@test
def every_name_of_the_standards_header_is_there(s):
    with open(os.path.join(header(s), "mpi.h")) as f:
        wanted = set(re.findall(r"^\w[\w\s\*]* \**(P?MPI_\w+)\(", f.read(), flags=re.M))
    wanted = {n for n in wanted if not n.endswith(("_function", "_function_c"))}
    expect(len(wanted) > 1300, len(wanted))
    ours = names(os.path.join(BUILD, "libmpi_abi.so.1"))
    expect(wanted <= ours, "missing: " + " ".join(sorted(wanted - ours)))


def library(s, soname):
    """A library of that name which has what the little programs here call."""
    source = s.write("other.c", "int MPI_Init(void *a, void *b) { return 0; }\n"
                     "int MPI_Comm_size(void *c, int *n) { return 0; }\n"
                     "int MPI_Finalize(void) { return 0; }\n")
    folder = s.path(soname + ".d")
    os.mkdir(folder)
    path = os.path.join(folder, soname)
    r = s.run("gcc", "-shared", "-fPIC", "-o", path, source, f"-Wl,-soname,{soname}")
    expect(r.status == 0, r)
    return path


@test
def the_library_is_found_by_each_of_its_names(s):
    source = s.write("main.c", "#include <mpi.h>\nint main(int c, char **v) { int n; MPI_Init(&c, &v);"
                     " MPI_Comm_size(MPI_COMM_WORLD, &n); MPI_Finalize(); return n != 2; }\n")
    for soname, include in (("libmpi.so.12", "/usr/include/x86_64-linux-gnu/mpich"),
                            ("libmpi_abi.so.0", header(s))):
        if not os.path.exists(include + "/mpi.h"):
            skip("Debian's MPICH is not installed")
        exe = s.path("main." + soname)
        r = s.run("gcc", "-w", "-I", include, "-o", exe, source, library(s, soname))
        expect(r.status == 0, r)
        r = s.hale_run(2, exe)
        expect(r.status == 0, soname, r)


@test
def another_mpi_first_in_the_rpath_is_passed_over(s):
    have("mpicc.mpich")
    exe = s.path("tour")
    r = s.run("mpicc.mpich", "-w", "-o", exe, os.path.join(PROGRAMS, "abi_tour.c"),
              "-Wl,--disable-new-dtags,-rpath,/usr/lib/x86_64-linux-gnu")
    expect(r.status == 0, r)
    r = s.hale_run(2, exe, options=["--verbose"])
    expect(r.status == 0 and "bad: 0" in r.out, r)
    expect("hale's libmpich.so.12 is preloaded" in r.err, r)


@test
def an_mpi_that_hale_has_no_library_for_is_named(s):
    source = s.write("main.c", "int MPI_Init(void *, void *); int main(void) { return MPI_Init(0, 0); }\n")
    for soname in ("libmpi.so.20", "libmpich.so.10", "libmpt.so"):
        exe = s.path("main." + soname)
        r = s.run("gcc", "-o", exe, source, library(s, soname))
        expect(r.status == 0, r)
        r = s.hale_run(2, exe)
        expect(r.status == EXIT_USAGE, r)
        expect(f"wants {soname}" in r.err and "no library for" in r.err, r)
    both = s.path("both")
    r = s.run("gcc", "-o", both, source, "-Wl,--no-as-needed", library(s, "libmpi.so.40"),
              library(s, "libmpich.so.12"))
    expect(r.status == 0, r)
    r = s.hale_run(2, both)
    expect(r.status == EXIT_USAGE and "linked with two MPIs" in r.err, r)


main()
