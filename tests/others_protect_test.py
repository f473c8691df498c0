#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Codes of others (HPC Challenge, kissfft: sources of Debian, fetched now) are given pragmas by a patch of ours, and
recover. With HALE_LONG=1, and a network."""

from lib import *

HALECC = os.path.join(BUILD, "halecc")
PATCHES = os.path.join(ROOT, "tests", "data", "others")
HPCC_MAKE = """SHELL = /bin/sh
CD = cd
MKDIR = mkdir -p
RM = /bin/rm -f
TOPdir = ../../..
INCdir = $(TOPdir)/include
LIBdir = $(TOPdir)/lib/hale
HPLlib = $(LIBdir)/libhpl.a
HPL_DEFS = -DAdd_ -DF77_INTEGER=int -DStringSunStyle -I$(INCdir)
CCNOOPT = $(HPL_DEFS) -w
CCFLAGS = $(HPL_DEFS) -O2 -w
LINKER = $(CC)
LINKFLAGS = $(CCFLAGS)
ARCHIVER = ar
ARFLAGS = r
RANLIB = ranlib
LAlib = -lopenblas
HPL_LIBS = $(HPLlib) $(LAlib) -lm
"""


def apt_folders(s):
    """This machine's lists of sources, with deb-src, in a folder of the test's own."""
    for d in ("apt", "apt/parts", "apt/lists", "apt/lists/partial", "apt/cache", "apt/cache/archives",
              "apt/cache/archives/partial"):
        os.mkdir(s.path(d))
    found = ""
    for path in ["/etc/apt/sources.list", *glob.glob("/etc/apt/sources.list.d/*")]:
        if not os.path.exists(path):
            continue
        with open(path) as f:
            text = f.read()
        found += text
        s.write("apt/parts/" + os.path.basename(path),
                re.sub(r"^Types:.*", "Types: deb-src", re.sub(r"^deb ", "deb-src ", text, flags=re.M), flags=re.M))
    if "deb" not in found:
        skip("this machine has no list of Debian's packages")
    return ["-oDir::Etc::sourcelist=/dev/null", f"-oDir::Etc::sourceparts={s.path('apt/parts')}",
            f"-oDir::State::lists={s.path('apt/lists')}", f"-oDir::Cache={s.path('apt/cache')}",
            "-oAPT::Sandbox::User=root"]


def source_of(s, package):
    """The unpacked source of a Debian package, with our patch."""
    if not LONG:
        skip("fetches sources: with HALE_LONG=1")
    if not os.path.exists(HALECC):
        skip("halecc is not built: libclang-14-dev is not installed")
    have("apt-get")
    have("patch")
    options = apt_folders(s)
    r = s.run("apt-get", *options, "update", limit=300)
    expect(r.status == 0, r)
    r = s.run("apt-get", *options, "-q", "--tar-only", "--download-only", "source", package, limit=300)
    tar = glob.glob(s.path(package + "_*.orig.tar.*"))
    expect(r.status == 0 and len(tar) == 1, r)
    os.mkdir(s.path(package))
    expect(s.run("tar", "xf", tar[0], "-C", s.path(package), "--strip-components=1").status == 0)
    r = s.run("patch", "-p1", "-d", s.path(package), "-i", os.path.join(PATCHES, package + ".patch"))
    expect(r.status == 0, r)
    return s.path(package)


def env_of(**more):
    return {"HALE_INCDIR": os.path.join(ROOT, "include"), "HALE_LIBDIR": BUILD, **more}


def mended(report):
    return {v["name"]: v["corrected"] + v["recomputed"] for v in report["variables"]}


@test
def kissfft_recovers_from_any_flip_in_its_signal_and_its_spectrum(s):
    folder = source_of(s, "kissfft")
    files = [os.path.join(folder, f) for f in ("test/twotonetest.c", "kiss_fft.c", "kiss_fftr.c")]
    r = s.run(HALECC, "-O2", "-w", "-I", folder, *files, "-o", "tones", "-lm", env=env_of())
    expect(r.status == 0, r)
    expect(s.run("gcc", "-O2", "-w", "-I", folder, *files, "-o", "plain", "-lm").status == 0)
    want = s.run(s.path("plain"))
    expect(want.status == 0 and "snr" in want.out, want)
    for var in ("tbuf", "kout"):
        for bits in (1, 2, 40):
            for run in (1, 9, 28):
                r = s.run(s.path("tones"), env={
                    "HALE_PROTECT": "report=report.json",
                    "HALE_PROTECT_INJECT": f"var={var},bits={bits},run={run},seed={SEED + bits}"})
                expect(r.status == 0 and r.out == want.out, var, bits, run, r)
                expect(mended(s.report())[var] == 1 and len(s.report()["injected"]) == bits, s.report())


@test
def the_matrix_product_of_hpc_challenge_recovers_in_each_rank(s):
    folder = source_of(s, "hpcc")
    path = os.path.join(folder, "hpl", "src", "comm", "HPL_packL.c")
    with open(path, encoding="latin-1") as f:
        text = f.read()
    with open(path, "w", encoding="latin-1") as f: # MPI 3 has these names only
        f.write(text.replace("MPI_Type_struct", "MPI_Type_create_struct").replace("MPI_Address", "MPI_Get_address"))
    with open(os.path.join(folder, "hpl", "Make.hale"), "w") as f:
        f.write(HPCC_MAKE)
    r = s.run("make", "-C", folder, "arch=hale", f"CC={HALECC}", env=env_of(HALE_CC="mpicc.openmpi"), limit=900)
    expect(r.status == 0, r)
    with open(os.path.join(folder, "_hpccinf.txt")) as f:
        s.write("hpccinf.txt", f.read().replace("1000 ", "120 ").replace("2            Qs", "1            Qs")
                .replace("1            Ps", "2            Ps"))
    s.write("one.sh", f"#!/bin/sh\nHALE_PROTECT=report=report.$OMPI_COMM_WORLD_RANK exec {folder}/hpcc\n")
    os.chmod(s.path("one.sh"), 0o755)
    for var, bits in (("a", 1), ("b", 3), ("c", 1), ("c", 64)):
        if os.path.exists(s.path("hpccoutf.txt")):
            os.unlink(s.path("hpccoutf.txt"))
        r = s.hale_run(2, s.path("one.sh"), env={"OPENBLAS_NUM_THREADS": "1",
                                                 "HALE_PROTECT_INJECT": f"var={var},bits={bits},seed={SEED}"})
        out = s.read("hpccoutf.txt")
        product = re.search(r"StarDGEMM section.*?Scaled residual: (\S+).*?Node\(s\) with error (\d+)", out, re.S)
        expect(r.status == 0 and product and float(product[1]) < 16 and product[2] == "0", var, r, out)
        for rank in range(2):
            expect(mended(s.report(f"report.{rank}"))[var] == 1, var, bits, s.report(f"report.{rank}"))


main()
