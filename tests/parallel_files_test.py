#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Parallel HDF5, h5py, netCDF and PnetCDF as Debian has them: ranks die in the middle of collective writes, and the
file has the bytes of an undisturbed run. HALE_LONG=1 has 50 seeded runs of each, every other one over two nodes, and
compares with what the MPI's own run leaves."""

import hashlib

from lib import *

RUNS = 50 if LONG else 2
ROUNDS = 24
RANKS = 4
LIBS = "/usr/lib/x86_64-linux-gnu"


def h5write(mpi):
    return dict(source="bench/files/h5write.c", mpi=mpi, rounds=ROUNDS, calls=("MPI_File_write_at_all", "MPI_File_set_view"),
                flags=[f"-I/usr/include/hdf5/{mpi}", f"-L{LIBS}/hdf5/{mpi}", "-lhdf5"], needs=f"{LIBS}/hdf5/{mpi}/libhdf5.so")


PROGRAMS = {
    "HDF5 for Open MPI": h5write("openmpi"),
    "HDF5 for MPICH": h5write("mpich"),
    "netCDF": dict(source="tests/programs/ncwrite.c", mpi="openmpi", rounds=ROUNDS, calls=("MPI_File_write_at_all",),
                   flags=[f"-I{LIBS}/netcdf/mpi/include", "-lnetcdf_mpi"], needs=f"{LIBS}/libnetcdf_mpi.so"),
    "PnetCDF": dict(source="tests/programs/pncwrite.c", mpi="openmpi", rounds=ROUNDS,
                    calls=("MPI_File_write_at_all", "MPI_File_set_view"), flags=["-lpnetcdf"],
                    needs=f"{LIBS}/libpnetcdf.so"),
    "h5py": dict(source="tests/programs/h5pywrite.py", mpi="openmpi", rounds=ROUNDS, calls=("MPI_File_write_at_all",),
                 needs="/usr/lib/python3/dist-packages/h5py/_debian_h5py_mpi"),
}


def command(s, p):
    source = os.path.join(ROOT, p["source"])
    if source.endswith(".py"):
        return [PYTHON, source]
    exe = s.path("writer")
    r = s.run(f"mpicc.{p['mpi']}", "-O2", "-w", "-o", exe, source, *p["flags"])
    expect(r.status == 0, r)
    return [exe]


def digest(path):
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


def own(s, p, argv, right):
    """The MPI that the program was built for prints the same and leaves the same bytes. MPICH's file differs in bytes
    that nobody wrote: the rest of chunks at the edge, where its buffer's old content is written along."""
    if p["mpi"] == "openmpi":
        r = s.openmpi(RANKS, *argv, s.path("own"), p["rounds"])
    else:
        have("mpirun.mpich")
        r = s.run("mpirun.mpich", "-n", RANKS, *argv, s.path("own"), p["rounds"])
    expect(r.status == 0 and r.out == right[0], "not what its own MPI prints", right, r)
    expect(p["mpi"] == "mpich" or digest(s.path("own")) == right[1], "not what its own MPI leaves")


def faults(chance, p):
    """One or two ranks die: when they begin the k'th call of a kind, while the others are in it, or at some time."""
    found = []
    for rank in chance.sample(range(RANKS), chance.choice([1, 1, 2])):
        at = f"at-call={chance.choice(p['calls'])}:{chance.randrange(p['rounds'] // 3, 2 * p['rounds'])}" \
            if chance.random() < 0.7 else f"after={chance.uniform(0.1, 0.8):.3f}s"
        found += ["--inject", f"kill:rank={rank},{at}"]
    return found


def killed(s, name, argv, right, turn):
    """Whether the run rolled back; odd ones are over two nodes."""
    p, path = PROGRAMS[name], s.path(f"file.{turn}")
    chance = random.Random(f"{SEED} {name} {turn}")
    options = ["--ckpt-every", "60ms", "--report", "report.json", *(["--nodes", 2] if turn % 2 else []), *faults(chance, p)]
    r = s.hale_run(RANKS, *argv, path, p["rounds"], options=options)
    expect(r.status == 0 and (r.out, digest(path)) == right, name, turn, options, r)
    os.unlink(path)
    shutil.rmtree(s.path("hale-ckpt"), ignore_errors=True)
    return s.report()["restarts"] > 0


def survives(s, name):
    p = PROGRAMS[name]
    if not os.path.exists(p["needs"]):
        skip(f"{p['needs']} is not there")
    argv = command(s, p)
    r = s.hale_run(RANKS, *argv, s.path("undisturbed"), p["rounds"])
    expect(r.status == 0, r)
    right = (r.out, digest(s.path("undisturbed")))
    if LONG:
        own(s, p, argv, right)
    rolled = sum(killed(s, name, argv, right, turn) for turn in range(RUNS))
    expect(rolled > 0, "nobody died before the end")
    return f"{rolled} of {RUNS} rolled back"


@test
def files_of_hdf5_survive_deaths(s):
    return survives(s, "HDF5 for Open MPI")


@test
def files_of_hdf5_for_mpich_survive_deaths(s):
    return survives(s, "HDF5 for MPICH")


@test
def files_of_netcdf_survive_deaths(s):
    return survives(s, "netCDF")


@test
def files_of_pnetcdf_survive_deaths(s):
    return survives(s, "PnetCDF")


@test
def files_of_h5py_survive_deaths(s):
    return survives(s, "h5py")


main()
