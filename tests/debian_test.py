#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""MPI programs that Debian carries, for Open MPI and for MPICH, not recompiled. Each gives the result that it has under
its own MPI, also when a rank is killed after a checkpoint. HALE_LONG=1 runs all of them, with
HALE_PROGRAMS=REGEX those whose names match."""

from lib import *

LAMMPS = "/usr/share/lammps/examples"
SCALAPACK = "/usr/lib/x86_64-linux-gnu/scalapack"
MUMPS = "/usr/lib/mumps"
PHYML = "/usr/share/doc/phyml/examples/nucleic"

MDRUN = """
integrator = md
nsteps = 500
dt = 0.002
nstlog = 100
nstenergy = 100
nstxout = 100
coulombtype = PME
rlist = 0.85
rcoulomb = 0.85
rvdw = 0.85
gen-vel = yes
gen-seed = 1
gen-temp = 300
"""

WATER = """
#include "oplsaa.ff/forcefield.itp"
#include "oplsaa.ff/spce.itp"
[ system ]
water
[ molecules ]
SOL 216
"""

NWCHEM = """
start water
geometry units angstrom
 O 0 0 0
 H 0 0.757 0.587
 H 0 -0.757 0.587
end
basis
 * library cc-pvdz
end
task dft gradient
"""


def lines(pattern):
    """A result: every place of the output that looks so, in order."""
    return lambda folder, r: re.findall(pattern, r.out, re.M)


def unordered(pattern):
    """As lines, for what each rank prints when it comes to it."""
    return lambda folder, r: sorted(re.findall(pattern, r.out, re.M))


def thermo_lines(folder, r):
    return thermo(r.out)


def hpcc_checks(folder, r):
    """What the benchmark says of its own correctness."""
    text = text_of(folder, "hpccoutf.txt")
    said_so = re.findall(r"PASSED|FAILED|passed|failed|Found \d+ errors|Solution Validates|^Success=\d+", text, re.M)
    return sorted(set(said_so)) if "Success=1" in said_so else None


def text_of(folder, name):
    with open(os.path.join(folder, name), errors="replace") as f:
        return f.read()


def files(*names):
    return lambda folder, r: [text_of(folder, name) for name in names]


def gromacs(folder, r):
    """Coordinates and velocities of the last step, and the energies of all that are logged."""
    return text_of(folder, "confout.gro"), re.findall(r"^ +[-+0-9.e]+(?: +[-+0-9.e]+){3,4}$",
                                                       text_of(folder, "md.log").split("Started mdrun")[1], re.M)


def write(folder, name, text):
    with open(os.path.join(folder, name), "w") as f:
        f.write(text)


def hpcc_input(s, folder):
    shutil.copy(os.path.join(ROOT, "tests/data/hpccinf.txt"), folder)


def water(s, folder):
    write(folder, "topol.top", WATER)
    write(folder, "md.mdp", MDRUN)
    r = s.run("gmx", "grompp", "-f", "md.mdp", "-c", "/usr/share/gromacs/top/spc216.gro", "-p", "topol.top", "-o",
              "t.tpr", "-maxwarn", "5", cwd=folder)
    expect(r.status == 0, r)


def molecule(s, folder):
    write(folder, "water.nw", NWCHEM)


def data_of(*names):
    def copy(s, folder):
        for name in names:
            shutil.copy(name, folder)
    return copy


def scalapack(mpi, program, data, short=False, received=60):
    """The judgement on every size, block and grid of the input that Debian gives, in order. MPICH on two cores takes
    some eight milliseconds for a barrier of four ranks, so the short input has one block, and no more grids than it
    takes until one has four processes."""
    def prepare(s, folder):
        text = text_of("/usr/share/scalapack", data)
        if short:
            text = re.sub(r"^[234](\s+[nN]umber of (?:NB|blocking sizes))", r"1\1", text, flags=re.M)
            grids = 3 if data == "INV.dat" else 2
            text = re.sub(r"^\d(\s+[nN]umber of process(?:or)? grids)", rf"{grids}\1", text, flags=re.M)
        write(folder, data, text)
    return dict(mpi=mpi, ranks=4, argv=[f"{SCALAPACK}/{mpi}-tests/{program}"], prepare=prepare,
                kill=f"at-call=MPI_Recv:{received}", result=lines(r"PASSED|FAILED|passed|failed|\d+ tests .*"))


def mumps(precision, kind):
    return dict(mpi="openmpi", ranks=3, argv=[f"{MUMPS}/{precision}simpletest"], kill="at-call=MPI_Bcast:4",
                stdin=f"{MUMPS}/input_simpletest_{kind}", result=lines(r"(?<=Solution is)(?:\s+[-0-9.()E+, ]+\n)+"))


def nwchem(mpi):
    return dict(mpi=mpi, ranks=3, argv=[f"nwchem.{mpi}", "water.nw"], prepare=molecule,
                # dynamic balance of load: the order of sums, and so the last digits, differ from run to run
                result=lines(r"Total DFT energy = +-\d+\.\d{9}|^ +\d [OH] .*"))


def netpipe(program, mpi):
    return dict(mpi=mpi, ranks=2, argv=[program, "-i", "-l", "1", "-u", "262144", "-n", "3", "-o", "np.out"],
                kill="at-call=MPI_Recv:60", result=lambda folder, r: re.findall(r"Integrity check \w+", r.out + r.err))


PROGRAMS = {
    "LAMMPS, melt": dict(mpi="openmpi", ranks=4, argv=["lmp", "-log", "none", "-in", LAMMPS + "/melt/in.melt"],
                         result=thermo_lines),
    "LAMMPS, crack": dict(mpi="openmpi", ranks=2, argv=["lmp", "-log", "none", "-in", LAMMPS + "/crack/in.crack"],
                          result=thermo_lines, long=True),
    "LAMMPS, shear": dict(mpi="openmpi", ranks=2, argv=["lmp", "-log", "none", "-in", LAMMPS + "/shear/in.shear"],
                          prepare=data_of(*glob.glob(LAMMPS + "/shear/*.alloy")), result=thermo_lines, long=True),
    "GROMACS, water": dict(mpi="openmpi", ranks=2, argv=["gmx_mpi", "mdrun", "-s", "t.tpr", "-reprod", "-ntomp", "1"],
                           prepare=water, result=gromacs, long=True),
    "phyml": dict(mpi="openmpi", ranks=3, prepare=data_of(PHYML),
                  argv=["phyml-mpi", "-i", "nucleic", "-b", "6", "--r_seed", "5", "-o", "n", "--no_memory_check"],
                  result=files("nucleic_phyml_tree.txt", "nucleic_phyml_boot_trees.txt")),
    "mpi4py, Jacobi": dict(mpi="openmpi", ranks=4, argv=[PYTHON, os.path.join(ROOT, "examples/jacobi.py"), "1000"],
                           result=lines(r".+")),
    "MUMPS, real": mumps("d", "real"),
    "MUMPS, complex": dict(mumps("z", "cmplx"), long=True),
    "HPCC": dict(mpi="openmpi", ranks=4, argv=["hpcc"], prepare=hpcc_input, result=hpcc_checks, long=True),
    "NetPIPE for Open MPI": dict(netpipe("NPopenmpi", "openmpi"), long=True),
    "NetPIPE for MPICH": netpipe("NPmpich2", "mpich"),
    "NWChem for Open MPI": dict(nwchem("openmpi"), long=True),
    # MPICH's own run of it takes two minutes on two cores
    "NWChem for MPICH": dict(nwchem("mpich"), ranks=2, long=True),
    "ScaLAPACK for MPICH, LU": scalapack("mpich", "xdlu", "LU.dat", short=True),
}
for _mpi in ("openmpi", "mpich"):
    for _program, _data in (("xslu", "LU"), ("xzlu", "LU"), ("xdqr", "QR"), ("xcqr", "QR"), ("xdllt", "LLT"),
                            ("xdinv", "INV"), ("xdls", "LS"), ("xdhrd", "HRD"), ("xdbrd", "BRD"), ("xdtrd", "TRD"),
                            ("xdnep", "NEP"), ("xdgblu", "BLU"), ("xdpbllt", "BLLT")):
        # of a banded matrix a rank receives little
        PROGRAMS[f"ScaLAPACK for {_mpi}, {_program}"] = dict(
            scalapack(_mpi, _program, _data + ".dat", short=_mpi == "mpich",
                      received=8 if _program in ("xdgblu", "xdpbllt") else 60), long=True)


def under(s, name, kind, *launcher):
    """Runs the program in a folder of its own."""
    p = PROGRAMS[name]
    folder = s.path(kind + "." + re.sub(r"\W+", "_", name))
    os.mkdir(folder)
    p.get("prepare", lambda s, folder: None)(s, folder)
    stdin = text_of("/", p["stdin"]) if "stdin" in p else None
    argv = launcher + tuple(p["argv"])
    env = dict(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_btl="self,vader",
               OMPI_MCA_mpi_yield_when_idle="1")
    r = s.run(*argv, env=env, stdin=stdin, cwd=folder, limit=600 if LONG else 180)
    expect(r.status == 0, name, r)
    found = p["result"](folder, r)
    expect(found, name, "no result to compare", r)
    return r, found


def own(s, name):
    p = PROGRAMS[name]
    options = ["--oversubscribe", "--bind-to", "none"] if p["mpi"] == "openmpi" else []
    result = under(s, name, "own", f"mpirun.{p['mpi']}", *options, "-n", p["ranks"])[1]
    for left in glob.glob(os.path.join(s.tmp, "ompi.*")):
        shutil.rmtree(left, ignore_errors=True)
    return result


def three_ways(s, name):
    """Under its own MPI, under Hale, and with a rank killed; how often it went back, and from how many checkpoints."""
    p = PROGRAMS[name]
    theirs = own(s, name)
    r, ours = under(s, name, "ours", HALE, "run", "-n", p["ranks"], "--")
    expect(ours == theirs, name, "not the result of its own MPI", theirs, ours, r)
    report = s.path("report.json")
    # who is over within a second may have no checkpoint yet, and goes back to the beginning
    every, kill = ("20ms", p["kill"]) if "kill" in p else ("100ms", "at-ckpt=2")
    r, killed = under(s, name, "killed", HALE, "run", "-n", p["ranks"], "--ckpt-every", every, "--report", report,
                      "--inject", f"kill:rank={p['ranks'] - 1},{kill}", "--")
    expect(killed == theirs, name, "not the result of an undisturbed run", theirs, killed, r)
    with open(report) as f:
        told = json.load(f)
    expect(told["restarts"] > 0, name, "was over before the kill", r)
    return told["restarts"], sum(c["complete"] for c in told["checkpoints"])


def installed(name):
    p = PROGRAMS[name]
    return shutil.which(p["argv"][0]) and shutil.which(f"mpirun.{p['mpi']}") and \
        os.path.exists(p.get("stdin", "/")) and (p["argv"][0] != "lmp" or os.path.isdir(LAMMPS))


@test
def programs_of_debian_give_the_results_of_their_own_mpi(s):
    told, missing = [], []
    wanted = os.environ.get("HALE_PROGRAMS", "")
    for name, p in PROGRAMS.items():
        if (p.get("long") and not LONG) or not re.search(wanted, name):
            continue
        if not installed(name):
            missing.append(name)
            continue
        restarts, checkpoints = three_ways(s, name)
        told.append(f"{name}: {restarts} rollbacks, {checkpoints} checkpoints")
        if LONG:
            print("    " + told[-1], flush=True)
    if not told:
        skip("none of them is installed")
    return "; ".join(told) + ("; not installed: " + ", ".join(missing) if missing else "")


main()
