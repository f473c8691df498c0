# SPDX-License-Identifier: BSD-3-Clause
"""What scenario tests share. Python's own library only.

A test is a function with one argument, the scenario, marked with @test; its name says what holds.
Each runs in a new folder of its own, and passes if it returns and nothing is left behind: no
process, no file in $TMPDIR, nothing in /dev/shm (which is a private one where the rights suffice).

    from lib import *

    @test
    def the_answer_is_right(s):
        r = s.hale("run", "-n", "4", "--", "./program")
        expect(r.status == 0, r)

    main()

Waiting is by bounded numbers of tries and never part of what is tested.
"""

import ctypes
import errno
import glob
import json
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import traceback

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.path.abspath(os.environ.get("HALE_BUILD", os.path.join(ROOT, "build")))
HALE = os.path.join(BUILD, "hale")
PYTHON = "/usr/bin/python3"
LONG = os.environ.get("HALE_LONG", "0") not in ("", "0")
SEED = int(os.environ.get("HALE_SEED", "1"))
LIMIT = 180  # seconds after which something is taken to hang
WAIT = 120  # seconds in which something that a test waits for comes, however busy the machine is

EXIT_USAGE = 64
EXIT_UNRECOVERED = 70
EXIT_SDC = 73

__all__ = ["test", "main", "expect", "skip", "Failed", "ROOT", "BUILD", "HALE", "PYTHON", "LONG", "SEED", "some", "EXIT_USAGE",
           "EXIT_UNRECOVERED", "EXIT_SDC", "have", "alive", "life", "ids_allowed", "children", "flip_in_image", "image_covered",
           "name_of", "said", "thermo",
           "proc_figures", "json", "os", "random", "re", "shutil", "signal", "subprocess", "sys", "time", "glob"]


class Failed(Exception):
    pass


class Skipped(Exception):
    pass


def expect(condition, what="", *more):
    """what may be a Result: then all about it is shown."""
    if not condition:
        raise Failed("\n".join(str(w) for w in (what,) + more))


def some(cases, most):
    """So many of these, others on each day (of HALE_SEED, if it is set); all with HALE_LONG."""
    cases = list(cases)
    if LONG or len(cases) <= most:
        return cases
    draw = random.Random(os.environ.get("HALE_SEED", time.strftime("%Y-%m-%d")))
    return [cases[i] for i in sorted(draw.sample(range(len(cases)), most))]


def skip(why):
    raise Skipped(why)


def have(program):
    if not shutil.which(program):
        skip(f"{program} is not installed")


# ---- processes ----

def stat_of(pid):
    """(parent, state) or None."""
    try:
        with open(f"/proc/{pid}/stat") as f:
            rest = f.read().rsplit(")", 1)[1].split()
        return int(rest[1]), rest[0]
    except (OSError, IndexError):
        return None


def parent_of(pid):
    """None: it is gone."""
    st = stat_of(pid)
    return st[0] if st else None


def ids_allowed():
    """clone3 with the id of this process itself: whoever may ask for ids is told that it is taken."""
    args = (ctypes.c_uint64 * 11)(0, 0, 0, 0, signal.SIGCHLD, 0, 0, 0, 0, 1, 0)
    own = ctypes.c_int32(os.getpid())
    args[8] = ctypes.addressof(own)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(435, args, ctypes.sizeof(args)) == 0:
        os._exit(0)
    return ctypes.get_errno() == errno.EEXIST


def life(pid):
    """The process and when it began: after a rollback another one may have the same id. None: it is gone."""
    try:
        with open(f"/proc/{pid}/stat") as f:
            return pid, f.read().rsplit(")", 1)[1].split()[19]
    except OSError:
        return None


def stands_ready(pid):
    """It waits on a spare, to become a rank perhaps."""
    return name_of(pid).startswith("hale-sink")


def children(of, zombies=False, standing=False):
    """All descendants of a process, as they are now; without those that stand ready on spares, unless they are
    wanted, too."""
    parents = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            st = stat_of(name)
            if st and (zombies or st[1] not in "ZX"):
                parents[int(name)] = st[0]
    found, todo = [], [of]
    while todo:
        p = todo.pop()
        kids = [c for c, parent in parents.items() if parent == p]
        found += kids
        todo += kids
    return [p for p in found if standing or not stands_ready(p)]


def name_of(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as f:
            return f.read().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return "?"


def alive(pid):
    st = stat_of(pid)
    return st is not None and st[1] not in "ZX"


def proc_figures(pid):
    """What a process holds: for leak tests."""
    rss = 0
    with open(f"/proc/{pid}/status") as f:
        for line in f:
            if line.startswith("VmRSS:"):
                rss = int(line.split()[1]) * 1024
    with open(f"/proc/{pid}/maps") as f:
        maps = sum(1 for _ in f)
    return {"maps": maps, "fds": len(os.listdir(f"/proc/{pid}/fd")), "rss": rss}


class Result:
    def __init__(self, argv, status, out, err):
        self.argv, self.status, self.out, self.err = argv, status, out, err

    def __str__(self):
        def cut(text):
            lines = text.splitlines()
            return "\n".join("    " + x for x in (lines if len(lines) < 60 else
                                                  lines[:30] + ["…"] + lines[-30:]))
        return (f"status {self.status} of: {' '.join(self.argv)}\n"
                f"  stdout:\n{cut(self.out)}\n  stderr:\n{cut(self.err)}")


def said(r):
    """The lines of stderr, but for those that every job begins and ends with."""
    return [x for x in r.err.splitlines()
            if not re.match(r"hale: job \S+: (\d+ ranks? on \d+ |status \d+ after )", x)]


class Job:
    """A command in the background, usually `hale run`."""

    def __init__(self, scenario, argv, env, stdin):
        self.s, self.argv = scenario, argv
        n = len(scenario.jobs)
        self.out_path = os.path.join(scenario.dir, f"out.{n}")
        self.err_path = os.path.join(scenario.dir, f"err.{n}")
        with open(self.out_path, "wb") as out, open(self.err_path, "wb") as err:
            self.p = subprocess.Popen(argv, cwd=scenario.dir, env=env, stdout=out, stderr=err,
                                      stdin=stdin)
        self.pid = self.p.pid

    def out(self):
        with open(self.out_path, errors="replace") as f:
            return f.read()

    def err(self):
        with open(self.err_path, errors="replace") as f:
            return f.read()

    def running(self):
        return self.p.poll() is None

    def result(self):
        return Result(self.argv, self.p.poll(), self.out(), self.err())

    def wait(self, limit=LIMIT):
        """Its Result; status is negative if it ended by a signal itself."""
        try:
            self.p.wait(limit)
        except subprocess.TimeoutExpired:
            raise Failed(f"still running after {limit} s\n{self.result()}\n"
                         + self.s.process_table()) from None
        return self.result()

    def until(self, condition, what, limit=WAIT):
        """Tries until condition() is true; fails when the job ends before."""
        for _ in range(limit * 50):
            value = condition()
            if value:
                return value
            if not self.running():
                value = condition()
                if value:
                    return value
                raise Failed(f"ended before {what}\n{self.result()}")
            time.sleep(0.02)
        raise Failed(f"waited {limit} s in vain for: {what}\n{self.result()}\n"
                     + self.s.process_table())

    def until_output(self, pattern, limit=WAIT):
        return self.until(lambda: re.search(pattern, self.out(), re.M), f"output /{pattern}/",
                          limit)

    def until_says(self, pattern, limit=WAIT):
        return self.until(lambda: re.search(pattern, self.err(), re.M), f"stderr /{pattern}/",
                          limit)

    # -- hale's view --

    def info(self):
        """This job's entry in `hale ps --json`, or None."""
        r = self.s.hale("ps", "--json")
        expect(r.status == 0, r)
        mine = set(children(self.pid, zombies=True)) | {self.pid}
        for job in json.loads(r.out)["jobs"]:
            if any(rank.get("pid") in mine for rank in job["ranks"]):
                return job
        return None

    def id(self):
        return self.until(self.info, "hale ps lists the job")["id"]

    def ranks(self, count=None):
        """pids by rank, once all of them run."""
        def all_running():
            job = self.info()
            if not job or not job["ranks"]:
                return None
            pids = {r["rank"]: r["pid"] for r in job["ranks"]}
            if count is not None and len(pids) != count:
                return None
            return pids if all(p > 0 and alive(p) for p in pids.values()) else None
        return self.until(all_running, "all ranks run")

    def checkpoint(self):
        """Path of a new checkpoint."""
        r = self.s.hale("ckpt", self.id())
        expect(r.status == 0, r)
        path = r.out.strip().splitlines()[-1]
        path = path if os.path.isabs(path) else os.path.join(self.s.dir, path)
        expect(os.path.exists(path), f"hale ckpt printed {path!r}, which is not there", r)
        return path

    def kill(self, sig=signal.SIGKILL):
        self.p.send_signal(sig)


def image_covered(image):
    """Ranges of an image's bytes that count (src/image/frame.h): heads of frames, tables, data. What
    fills up pages between them is looked at by nobody."""
    ranges, at = [], 0
    up = lambda n: (n + 4095) & ~4095
    while at + 64 <= len(image):
        pad, table, data = struct.unpack_from("<IQQ", image, at + 12)
        ranges.append((at, at + 64 + table))
        data_at = at + up(64 + table)
        if data:
            ranges.append((data_at, data_at + data))
        at = data_at + up(data) + pad * 4096
    return ranges


def flip_in_image(path):
    """One bit, as near to the middle as one counts."""
    with open(path, "r+b") as f:
        image = f.read()
        middle = len(image) // 2
        at = min((min(max(middle, a), b - 1) for a, b in image_covered(image)),
                 key=lambda x: abs(x - middle))
        f.seek(at)
        f.write(bytes([image[at] ^ 0x10]))


class Scenario:
    def __init__(self, name):
        base = os.environ.get("HALE_TEST_DIR", "/var/tmp")
        self.dir = tempfile.mkdtemp(prefix="hale-test-", dir=base)
        self.name = name
        self.jobs = []
        self.mounts = []
        self.tmp = os.path.join(self.dir, "tmp")
        os.mkdir(self.tmp)
        self.env = dict(os.environ, TMPDIR=self.tmp, OMP_NUM_THREADS="1", LC_ALL="C.UTF-8",
                        PYTHONDONTWRITEBYTECODE="1", XDG_STATE_HOME=os.path.join(self.dir, ".state"))
        self.env.pop("HALE_CKPT_KEY", None)
        for v in ("HALE_LOG", "HALE_BUILD", "HALE_LONG", "HALE_SEED", "HALE_TEST_DIR"):
            self.env.pop(v, None)
        self.shm_before = set(os.listdir("/dev/shm"))

    # -- files and programs --

    def path(self, *parts):
        return os.path.join(self.dir, *parts)

    def write(self, name, text):
        with open(self.path(name), "w") as f:
            f.write(text)
        return self.path(name)

    def read(self, name):
        with open(self.path(name), errors="replace") as f:
            return f.read()

    def compile(self, name, mpi="openmpi", flags=()):
        """tests/programs/NAME.c with Debian's compiler wrapper; the program's path."""
        cc = f"mpicc.{mpi}" if mpi else "gcc"
        have(cc)
        source = os.path.join(ROOT, "tests", "programs", name + ".c")
        exe = self.path(name)
        r = self.run(cc, "-std=gnu17", "-O2", "-g", "-Wall", "-o", exe, source,
                     "-I", os.path.join(ROOT, "include"), *flags)
        expect(r.status == 0, r)
        return exe

    def tmpfs(self, name, size):
        """A file system of that size; skips where that is not allowed."""
        os.mkdir(self.path(name))
        r = self.run("mount", "-t", "tmpfs", "-o", f"size={size},mode=0700", "tmpfs",
                     self.path(name))
        if r.status != 0:
            skip("no right to mount a tmpfs here")
        self.mounts.append(self.path(name))
        return self.path(name)

    def disk(self, name, megabytes):
        """A file system on a disk (a file) that can be frozen; skips where that is not allowed."""
        os.mkdir(self.path(name))
        image = self.path(name + ".disk")
        with open(image, "wb") as f:
            f.truncate(megabytes << 20)
        r = self.run("sh", "-c", f"mkfs.ext4 -q {image} && mount -o loop {image} {self.path(name)}")
        if r.status != 0:
            skip("no right to mount a file here")
        self.mounts.append(self.path(name))
        return self.path(name)

    # -- running --

    def start(self, *argv, env=None, stdin=subprocess.DEVNULL):
        e = dict(self.env, **(env or {}))
        job = Job(self, [str(a) for a in argv], e, stdin)
        self.jobs.append(job)
        return job

    def run(self, *argv, env=None, stdin=None, limit=LIMIT, cwd=None):
        e = dict(self.env, **(env or {}))
        argv = [str(a) for a in argv]
        given = {"input": stdin} if stdin is not None else {"stdin": subprocess.DEVNULL}
        try:
            p = subprocess.run(argv, cwd=cwd or self.dir, env=e, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, errors="replace",
                               timeout=limit, **given)
        except subprocess.TimeoutExpired as t:
            raise Failed(f"still running after {limit} s: {' '.join(argv)}\n{t.stdout}\n{t.stderr}"
                         ) from None
        return Result(argv, p.returncode, p.stdout, p.stderr)

    def hale(self, *argv, **kw):
        return self.run(HALE, *argv, **kw)

    def hale_run(self, ranks, *argv, options=(), **kw):
        return self.hale("run", "-n", ranks, *options, "--", *argv, **kw)

    def hale_start(self, ranks, *argv, options=(), **kw):
        return self.start(HALE, "run", "-n", ranks, *options, "--", *argv, **kw)

    def openmpi(self, ranks, *argv, **kw):
        """The same program under Debian's Open MPI."""
        have("mpirun.openmpi")
        env = dict(kw.pop("env", None) or {}, OMPI_ALLOW_RUN_AS_ROOT="1",
                   OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_btl="self,vader",
                   OMPI_MCA_rmaps_base_oversubscribe="1")
        r = self.run("mpirun.openmpi", "--oversubscribe", "--bind-to", "none", "-n", ranks,
                     *argv, env=env, **kw)
        for left in glob.glob(os.path.join(self.tmp, "ompi.*")):
            shutil.rmtree(left, ignore_errors=True)
        return r

    def complete(self, folder="hale-ckpt"):
        """Folders of the complete checkpoints, oldest first."""
        found = [os.path.dirname(m) for m in glob.glob(self.path(folder, "*", "*", "manifest.json"))]
        return sorted((f for f in found if os.path.basename(f).isdigit()),
                      key=lambda f: int(os.path.basename(f)))

    def report(self, name="report.json"):
        with open(self.path(name)) as f:
            return json.load(f)

    # -- afterwards --

    def process_table(self):
        return "processes:\n" + "\n".join(
            f"    {p} {stat_of(p)} {name_of(p)}" for p in children(os.getpid(), zombies=True, standing=True))

    def until_nothing_runs(self):
        """Ranks notice by themselves that their launcher was killed."""
        for _ in range(250):
            if not children(os.getpid(), standing=True):
                return
            time.sleep(0.02)
        raise Failed(self.process_table())

    def end_processes(self):
        """Ends, by id, what still runs below us; returns what that was."""
        left = []
        for attempt in range(50):
            now = children(os.getpid(), standing=True)
            if not now:
                break
            if attempt >= 25:  # ranks get half a second to notice that their launcher is gone
                left += [(p, name_of(p)) for p in now if p not in [x for x, _ in left]]
                for p in now:
                    try:
                        os.kill(p, signal.SIGKILL)
                    except ProcessLookupError:
                        pass
            time.sleep(0.02)
        reap()
        return [f"{pid} {name}" for pid, name in left]

    def close(self, passed):
        for job in self.jobs:
            if job.running() and not passed:
                job.kill()
        problems = [f"process left: {x}" for x in self.end_processes()]
        for job in self.jobs:
            job.p.poll()
        for m in reversed(self.mounts):
            subprocess.run(["umount", "-l", m], check=False)
        problems += [f"file left in TMPDIR: {x}" for x in os.listdir(self.tmp)]
        new = set(os.listdir("/dev/shm")) - self.shm_before
        if not PRIVATE_SHM:
            new = {n for n in new if "hale" in n.lower()}
        problems += [f"segment left: /dev/shm/{x}" for x in sorted(new)]
        if os.environ.get("HALE_KEEP") and not passed:
            problems.append(f"kept: {self.dir}")
        else:
            shutil.rmtree(self.dir, ignore_errors=True)
        return problems


def reap():
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return


def thermo(text):
    """LAMMPS's thermo output: what must be the same to the last digit."""
    lines, inside = [], False
    for line in text.splitlines():
        if line.lstrip().startswith("Step "):
            inside = True
        elif line.startswith("Loop time"):
            inside = False
        if inside:
            lines.append(line.rstrip())
    return lines


# ---- running tests ----

TESTS = []
PRIVATE_SHM = False


def test(function):
    TESTS.append(function)
    return function


def run_one(function):
    s = Scenario(function.__name__)
    start = time.monotonic()
    verdict, why, detail = "ok", "", ""
    try:
        why = function(s) or ""
    except Skipped as e:
        verdict, why = "skipped", str(e)
    except Failed as e:
        where = traceback.extract_tb(e.__traceback__)
        line = [f for f in where if not f.filename.endswith("lib.py")][-1]
        verdict, detail = "FAILED", f"{os.path.basename(line.filename)}:{line.lineno}: {e}"
    except Exception:
        verdict, detail = "FAILED", traceback.format_exc()
    except BaseException:  # the runner itself is ended: nothing stays behind
        s.close(False)
        raise
    problems = s.close(verdict != "FAILED")
    if problems:
        verdict = "FAILED"
        detail += "\n" + "\n".join(problems)
    if detail:
        print(detail.strip())
    took = time.monotonic() - start
    print(f"{verdict}\t{function.__name__}\t{took:.1f}\t{why}", flush=True)
    return verdict != "FAILED"


def become_subreaper():
    """What outlives its launcher becomes our child, so that it is found."""
    ctypes.CDLL(None, use_errno=True).prctl(36, 1, 0, 0, 0)


def private_shm():
    """Once: run again in a mount namespace with an empty /dev/shm of its own."""
    global PRIVATE_SHM
    if os.environ.pop("HALE_PRIVATE_SHM", None):
        PRIVATE_SHM = True
        return
    script = "mount -t tmpfs -o mode=1777 tmpfs /dev/shm && exec \"$@\""
    env = dict(os.environ, HALE_PRIVATE_SHM="1")
    probe = ["unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh"]
    if os.getuid() == 0 and shutil.which("unshare") and subprocess.run(
            probe + ["true"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0:
        os.execvpe("unshare", probe + [sys.executable] + sys.argv, env)


def main():
    private_shm()
    become_subreaper()
    # a background shell has it ignored, and so would all that tests start
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for sig in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(sig, lambda number, frame: sys.exit(128 + number))
    without = sys.argv[2:] if sys.argv[1:2] == ["--without"] else []
    only = [] if without else sys.argv[2:] if sys.argv[1:2] == ["--only"] else sys.argv[1:]
    tests = [t for t in TESTS if t.__name__ not in without and (not only or any(o in t.__name__ for o in only))]
    if tests and not os.path.exists(HALE):
        print(f"FAILED\tall\t0.0\t{HALE} is not there: build first")
        sys.exit(1)
    sys.exit(0 if all([run_one(t) for t in tests]) else 1)
