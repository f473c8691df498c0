#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Builds MPICH's test suite outside the tree and runs it with hale run.

usage: mpich_suite.py build SOURCE BUILD mpich|openmpi|standard [FOLDER…]
       mpich_suite.py run BUILD HALE [FOLDER…] [-- OPTIONS OF hale run]

SOURCE is a checkout of MPICH (git clone https://github.com/pmodels/mpich): its test/mpi and confdb are
used, nothing of it is copied into the tree. BUILD is an empty folder on first use. 'build' makes what the
interface's header can compile; the others are told by 'run' as not built. 'run' prints one line for each test
that fails and a table; its exit status is 0 when all passed. Tests that skip themselves, that the suite itself
expects to fail (xfail), or that need more memory than is free are printed and not counted. With
SUITE_KILL_EVERY=10 every tenth program loses a rank at its first checkpoint, with SUITE_KILL_AT=2 as well at its
second, so that it rolls back to the first one; the table says how many were rolled back. HALE is the program hale.
Needs autoconf, automake, libtool."""

import os
import re
import subprocess
import sys
import time

FOLDERS = ["attr", "coll", "comm", "datatype", "errhan", "group", "info", "init", "pt2pt", "rma", "topo",
           "threads", "io", "spawn", "session", "part", "f77", "f90", "f08"]
# These programs spawn, too, though they are in other folders than spawn/.
SPAWNERS = {"th_taskmanager"}
# Of the programs that are to lose a rank: how many ran to an end, how many of these had begun that checkpoint.
outcomes = {"killed": 0, "rolled back": 0}
HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def compilers(abi):
    """MPICC as well as CC: the suite's configure takes the mpicc in PATH otherwise, whatever CC says."""
    if abi == "standard":
        return [f"{name}={HERE}/build/hale cc" for name in ("CC", "MPICC")] + ["--disable-fortran"]
    wrappers = {"CC": "mpicc", "MPICC": "mpicc", "F77": "mpif77", "MPIF77": "mpif77", "FC": "mpif90",
                "MPIFC": "mpif90", "CXX": "mpicxx", "MPICXX": "mpicxx"}
    return [f"{name}={wrapper}.{abi}" for name, wrapper in wrappers.items()]


def check_interface(target, abi):
    """Programs of another interface than the one that is to be tried would give a table with a wrong name."""
    wanted = {"mpich": "libmpich.so", "openmpi": "libmpi.so.40", "standard": "libmpi_abi.so"}[abi]
    for folder, _, names in os.walk(target):
        for name in names:
            path = os.path.join(folder, name)
            if os.access(path, os.X_OK) and "." not in name:
                needed = subprocess.run(["readelf", "-d", path], capture_output=True, text=True).stdout
                mpi = re.findall(r"NEEDED.*\[(libmpi\.so\S*|libmpich\.so\S*|libmpi_abi\.so\S*)\]", needed)
                if mpi and not mpi[0].startswith(wanted):
                    sys.exit(f"{path} was built for {mpi[0]}, not for {abi}: begin in an empty folder")


def build(source, target, abi, folders):
    os.makedirs(target, exist_ok=True)
    suite = os.path.join(os.path.abspath(source), "test/mpi")
    if not os.path.exists(suite + "/configure"):
        env = dict(os.environ, MPICH_CONFDB=os.path.join(os.path.abspath(source), "confdb"))
        subprocess.run(["./autogen.sh"], cwd=suite, env=env, check=True)
    if not os.path.exists(target + "/Makefile"):
        subprocess.run([suite + "/configure", "--disable-cxx", "--disable-dependency-tracking", *compilers(abi)],
                       cwd=target, check=True)
    for folder in ["dtpools", "util", "threads/util", *folders]:
        if os.path.exists(f"{target}/{folder}/Makefile"):
            # some programs call functions that the header does not have: the others are made
            subprocess.run(["make", "-k", "-s", "-C", f"{target}/{folder}"], stderr=subprocess.DEVNULL)
    check_interface(target, abi)


class Test:
    """A line of a testlist: NAME RANKS KEY=VALUE…"""

    def __init__(self, line):
        words = line.split()
        self.name, self.ranks = words[0], int(words[1]) if len(words) > 1 else 1
        self.args, self.env, self.result, self.limit, self.expected_to_fail = [], {}, "no errors", 60, False
        self.gigabytes = 0
        for word in words[2:]:
            key, _, value = word.partition("=")
            if key == "arg":
                self.args.append(value)
            elif key == "env":
                name, _, setting = value.partition("=")
                self.env[name] = setting
            elif key == "resultTest":
                self.result = value
            elif key == "timeLimit":
                self.limit = max(self.limit, int(value))
            elif key == "mem":
                self.gigabytes = float(value)
            elif key == "xfail":
                self.expected_to_fail = True
        self.limit = min(self.limit, int(os.environ.get("SUITE_LIMIT", "180")))


def tests_of(target, folder):
    """(folder, Test) of its testlist, and of the testlists of its own folders."""
    path = f"{target}/{folder}/testlist"
    if not os.path.exists(path):
        with open(target + "/Makefile") as f:
            source = re.search(r"^srcdir = (.*)$", f.read(), flags=re.M)[1]
        path = os.path.normpath(os.path.join(target, source, folder, "testlist"))
    if not os.path.exists(path):
        return
    with open(path) as f:
        for line in f:
            line = line.split("#")[0].strip()
            if not line:
                continue
            name = line.split()[0]
            if os.path.isdir(f"{target}/{folder}/{name}"):
                yield from tests_of(target, f"{folder}/{name}")
            elif not name.startswith("!"):
                yield folder, Test(line)


def judge(test, status, out):
    """None when the test passed, else why not."""
    lines = [line for line in out.splitlines() if line.strip() and not line.startswith("hale: job")]
    if test.result == "TestStatus":
        return None if status != 0 else "status 0"
    if test.result == "TestStatusNoErrors":
        return None if status == 0 or "No Errors" in out else f"status {status}"
    if test.result in ("TestErrFatal", "TestTimeout"):
        return None if status != 0 else "status 0"
    if re.search(r"^test skipped", out, flags=re.I | re.M):
        return "skipped"
    if not re.search(r"no errors", out, flags=re.I):
        return f"status {status}: " + (lines[0][:160] if lines else "no output")
    wrong = [line for line in lines if not re.search(r"no errors", line, flags=re.I) and
             not line.startswith("hale")]
    if status != 0:
        return f"status {status}" + (": " + wrong[0][:160] if wrong else "")
    return None


def gigabytes_free():
    with open("/proc/meminfo") as f:
        return int(re.search(r"^MemAvailable:\s+(\d+)", f.read(), flags=re.M)[1]) / 1e6


def run_one(target, hale, folder, test, options, killed=False):
    path = f"{target}/{folder}"
    exe = f"{path}/{test.name}"
    if not os.access(exe, os.X_OK):
        return "not built"
    if test.gigabytes > gigabytes_free():  # it would be killed, and others with it
        return f"needs {test.gigabytes:.0f} GB of memory"
    if ("spawn" in folder or test.name in SPAWNERS) and "--spawn" not in options:
        options = ["--spawn", "64" if test.name == "concurrent_spawns" else "24", *options]
    if killed:
        options = [*options, "--inject", f"kill:rank={test.ranks - 1},at-ckpt={os.environ.get('SUITE_KILL_AT', '1')}"]
    command = [hale, "run", "-n", str(test.ranks), *options, "--", "./" + test.name, *test.args]
    started = time.monotonic()
    process = subprocess.Popen(command, cwd=path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               stdin=subprocess.DEVNULL,
                               env=dict(os.environ, MPIEXEC_TIMEOUT=str(test.limit), **test.env))
    try:
        out, _ = process.communicate(timeout=test.limit + 30)
    except subprocess.TimeoutExpired:
        process.terminate()
        try:
            process.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
        return f"not over after {int(time.monotonic() - started)} s"
    out = out.decode(errors="replace")
    if killed:
        outcomes["killed"] += 1
        outcomes["rolled back"] += bool(re.search(r"^hale: job .* [1-9][0-9]* rollback", out, flags=re.M))
    return judge(test, process.returncode, out)


def run(target, hale, folders, options):
    target, rows, failed, started = os.path.abspath(target), [], 0, 0
    every = int(os.environ.get("SUITE_KILL_EVERY", "0"))
    for folder in folders:
        passed = total = missing = 0
        for where, test in tests_of(target, folder):
            started += 1
            why = run_one(target, hale, where, test, options, every > 0 and started % every == 0)
            if why == "not built":
                missing += 1
                print(f"not built  {where}/{test.name}", flush=True)
                continue
            words = f"{where}/{test.name} {test.ranks} {' '.join(test.args)}"
            if why == "skipped" or (why and why.startswith("needs ")) or (why and test.expected_to_fail):
                print(f"not counted  {words}: {why}", flush=True)
                continue
            total += 1
            passed += why is None
            if why:
                print(f"FAILED  {words}: {why}", flush=True)
        failed += total - passed
        rows.append(f"{folder:10} {passed:4} of {total:4}  {missing:3} not built")
        print("==  " + rows[-1], flush=True)
    print("\n".join(rows))
    if every:
        print(f"{outcomes['rolled back']} of {outcomes['killed']} that were to lose a rank were rolled back")
    return 1 if failed else 0


def main():
    words = sys.argv[1:]
    options = words[words.index("--") + 1:] if "--" in words else []
    words = words[:words.index("--")] if "--" in words else words
    if len(words) >= 4 and words[0] == "build":
        build(words[1], words[2], words[3], words[4:] or FOLDERS)
    elif len(words) >= 3 and words[0] == "run":
        sys.exit(run(words[1], os.path.abspath(words[2]), words[3:] or FOLDERS, options))
    else:
        sys.exit(__doc__)


main()
