#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs every test there is and says what passed. The last line is "N passed, N failed".

  scripts/check.py [--build DIR] [--jobs N] [--all] [NAME …]   only tests whose file or name contains a NAME
  scripts/check.py --record                                    all tests, and the slow ones into tests/slow.tsv

Three kinds: rules that the source must keep (scripts/*), unit tests (cmocka, beside the code, run
by Meson), scenarios (tests/*_test.py: whole jobs with real programs). Each test is a line; the
output of those that fail is shown.

Scenarios mostly wait, for a lease to end for instance. So N files of them run side by side (as many
as there are processors), the tests of one file one after the other; and beside these, with lower
priority, one that only computes (model checking, emulated devices). With --jobs 1 nothing but that
runs beside a file that waits.

tests/slow.tsv has the scenarios that take long. Each of them has its turn on one day in TURNS, and the
others run every day. Named ones always run, and all do with --all or HALE_LONG=1. HALE_SEED takes the
place of the day.

What failed runs twice more at the end, with nothing beside it. Passing both counts as passed, and is told as
"unsteady": the machine was too busy, or a defect is rare. Each of these is to be looked at.
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
RULES = ["layering.py", "exports.py", "docs.py", "circles.py", "names.py"]
# scenarios that compute all the time; *.sh do, too
COMPUTING = ["simulate_test.py", "ocl_test.py", "ocl_restart_test.py", "ocl_programs_test.py", "ocl_kinds_test.py", "ocl_orders_test.py", "ocl_process_test.py", "ocl_random_test.py", "model_test.py", "sim_test.py", "types_test.py"]
# the longest ones begin first, so that none of them is left alone at the end
LONGEST = ["levels_test.py", "cutoff_hosts_test.py", "hosts_test.py", "attach_test.py", "nodes_test.py",
           "ocl_test.py", "spin_network.sh"]


SLOW = os.path.join(ROOT, "tests", "slow.tsv")
SLOW_SECONDS = 8  # a scenario is slow from here on
TURNS = 5
AGAIN_MOST = 12  # more failures than these have another reason than other tests beside them


class Tally:
    def __init__(self):
        self.passed = 0
        self.failed = []
        self.skipped = []
        self.unsteady = []
        self.took = {}  # seconds of scenarios

    def line(self, verdict, name, seconds=None, why=""):
        if seconds is not None:
            self.took[name] = seconds
        took = f"  {seconds:.1f} s" if seconds is not None and seconds >= 0.1 else ""
        print(f"{verdict:<7} {name}{took}{'  ' + why if why else ''}", flush=True)
        if verdict == "ok":
            self.passed += 1
        elif verdict == "unsteady":
            self.passed += 1
            self.unsteady.append(name)
        elif verdict == "skipped":
            self.skipped.append(f"{name}: {why}")
        else:
            self.failed.append(name)


def show(output):
    for line in output.rstrip().splitlines()[-200:]:
        print("    | " + line)


def wanted(names, *texts):
    return not names or any(n in t for n in names for t in texts)


def run_rules(tally, names, build):
    for script in RULES:
        if not wanted(names, script):
            continue
        r = subprocess.run(
            ["/usr/bin/python3", os.path.join(ROOT, "scripts", script), "--build", build],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        tally.line("ok" if r.returncode == 0 else "FAILED", "rule " + script[:-3])
        if r.returncode != 0:
            show(r.stdout)


def unit_results(entry):
    """(name, passed) of each test function in one cmocka program."""
    text = (entry.get("stdout") or "") + (entry.get("stderr") or "")
    good = re.findall(r"^\[       OK \] (\S+)", text, re.M)
    bad = sorted(set(re.findall(r"^\[  FAILED  \] (\S+)$", text, re.M)) - set(good))
    bad = [b for b in bad if not b.isdigit()]
    return [(g, True) for g in good] + [(b, False) for b in bad], text


def meson_test(build, tests):
    return subprocess.run([MESON, "test", "-C", build, "--no-rebuild", "--quiet"] + tests,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


def run_units(tally, names, build):
    listed = subprocess.run([MESON, "test", "-C", build, "--list", "--no-rebuild"],
                            stdout=subprocess.PIPE, text=True).stdout
    # "project:suite / name" or just "name"
    tests = [line.split(" / ")[-1].strip() for line in listed.splitlines()
             if line and not line.startswith("ninja")]
    tests = [t for t in tests if wanted(names, t)]
    if not tests:
        return
    log = os.path.join(build, "meson-logs", "testlog.json")
    if os.path.exists(log):
        os.unlink(log)
    meson_test(build, tests)
    if not os.path.exists(log):
        tally.line("FAILED", "unit tests", why="meson test wrote no log")
        return
    for line in open(log):
        entry = json.loads(line)
        if entry["result"] == "SKIP":
            tally.line("skipped", entry["name"], why="it says so itself")
            continue
        results, text = unit_results(entry)
        for name, good in results:
            tally.line("ok" if good else "FAILED", f"{entry['name'].split(' / ')[-1]}: {name}")
        died = entry["result"] != "OK" and all(good for _, good in results)
        if died or not results:
            ok = entry["result"] == "OK"
            tally.line("ok" if ok else "FAILED", f"{entry['name']}: the whole",
                       why="" if ok else f"{entry['result']}, status {entry.get('returncode')}")
        if entry["result"] != "OK":
            show(text)


def slow_tests():
    """The names in tests/slow.tsv, the slowest first."""
    with open(SLOW, encoding="utf-8") as f:
        return [line.split("\t")[0] for line in f if not line.startswith("#")]


def left_for_another_day():
    """Neighbours in the table have turns one after the other, so all days take equally long."""
    day = int(os.environ.get("HALE_SEED") or time.time() / 86400)
    return {name for i, name in enumerate(slow_tests()) if (i + day) % TURNS}


def record_slow(took):
    slow = sorted(((seconds, name) for name, seconds in took.items() if seconds >= SLOW_SECONDS), reverse=True)
    with open(SLOW, "w", encoding="utf-8") as f:
        f.write("# scenarios that take long, and their seconds on two cores: written by scripts/check.py --record\n")
        for seconds, name in slow:
            f.write(f"{name}\t{seconds:.0f}\n")


class Scenarios:
    """Files of tests, each a process; lanes (threads) that take one after the other."""

    def __init__(self, tally, names, build, left):
        self.tally, self.names, self.build = tally, names, build
        self.left = left  # names of tests whose turn is another day
        self.lock = threading.Lock()  # of tally and stdout
        self.env = dict(os.environ, HALE_BUILD=build, PYTHONDONTWRITEBYTECODE="1")
        self.running = {}
        self.ending = False
        self.lanes = []  # how long each one took
        folder = os.path.join(ROOT, "tests")
        files = [f for f in sorted(os.listdir(folder)) if f.endswith("_test.py") or
                 f.endswith(".sh") and wanted(names, f) and f[:-3] not in left]
        files.sort(key=lambda f: LONGEST.index(f) if f in LONGEST else len(LONGEST))
        self.computing = [f for f in files if f.endswith(".sh") or f in COMPUTING]
        self.waiting = [f for f in files if f not in self.computing]

    def run(self, jobs):
        aside = [self.computing] if jobs == 1 else [self.computing, self.waiting]
        # one that has nothing left to wait for computes, so that no core is idle at the end
        lanes = [(aside, 5), ([self.waiting, self.computing], 0)] + [([self.waiting], 0)] * (jobs - 1)
        threads = [threading.Thread(target=self.lane, args=lane) for lane in lanes]
        for t in threads:
            t.start()
        try:
            for t in threads:
                t.join()
        finally:  # we are ended ourselves: the tests clean up
            with self.lock:
                self.ending = True
                for p, file in self.running.items():
                    if file.endswith(".sh"):
                        os.killpg(p.pid, signal.SIGTERM)
                    else:
                        p.terminate()
            for t in threads:
                t.join()

    def lane(self, queues, nice):
        began = time.monotonic()
        self.take(queues, nice)
        with self.lock:
            self.lanes.append(f"{'computing' if nice else 'waiting'} {time.monotonic() - began:.0f} s")

    def take(self, queues, nice):
        for queue in queues:
            while True:
                with self.lock:
                    if self.ending or not queue:
                        break
                    file = queue.pop(0)
                    p = self.start(file, nice)
                (self.script if file.endswith(".sh") else self.tests)(file, p)
                with self.lock:
                    del self.running[p]

    def start(self, file, nice):
        path = os.path.join(ROOT, "tests", file)
        argv = ["nice", "-n", str(nice), "sh" if file.endswith(".sh") else "/usr/bin/python3", path]
        if file.endswith(".py") and self.names and not any(n in file for n in self.names):
            argv += ["--only"] + self.names
        left = [name.partition(": ")[2] for name in self.left if name.startswith(file[:-8] + ": ")]
        if left:
            argv += ["--without"] + left
        p = subprocess.Popen(argv, cwd=ROOT, env=self.env, stdin=subprocess.DEVNULL, text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace",
                             start_new_session=file.endswith(".sh"))
        self.running[p] = file
        return p

    def alone(self, name):
        """Whether a test that failed passes by itself; `name` as the tally has it."""
        file, _, test = name.partition(": ")
        if os.path.exists(os.path.join(ROOT, "tests", file + ".sh")):
            argv = ["sh", os.path.join(ROOT, "tests", file + ".sh")]
        elif os.path.exists(os.path.join(ROOT, "tests", file + "_test.py")):
            argv = ["/usr/bin/python3", os.path.join(ROOT, "tests", file + "_test.py")]
            argv += ["--only", test] if test != "the whole" else []
        else:
            return meson_test(self.build, [file])
        return subprocess.run(argv, cwd=ROOT, env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL).returncode == 0

    def again(self):
        """Twice more, with nothing beside it, what failed beside others."""
        failed = [f for f in self.tally.failed if not f.startswith("rule ")]
        if len(failed) > AGAIN_MOST:
            return
        for name in failed:
            if self.alone(name) and self.alone(name):
                self.tally.line("unsteady", name, why="failed beside others, passes by itself")
                self.tally.failed.remove(name)

    def script(self, file, p):
        """0 passes, 77 says that something is missing."""
        start = time.monotonic()
        said = p.stdout.read()
        verdict = {0: "ok", 77: "skipped"}.get(p.wait(), "FAILED")
        with self.lock:
            self.tally.line(verdict, file[:-3], time.monotonic() - start,
                            said.strip() if verdict == "skipped" else "")
            if verdict == "FAILED":
                show(said)

    def tests(self, file, p):
        said = failed = 0
        rest = []
        for line in p.stdout:
            m = re.match(r"^(ok|FAILED|skipped)\t([^\t]*)\t([0-9.]+)\t(.*)$", line)
            if not m:
                rest.append(line)
                continue
            said += 1
            failed += m[1] == "FAILED"
            with self.lock:
                self.tally.line(m[1], f"{file[:-8]}: {m[2]}", float(m[3]), m[4])
                show("".join(rest))
            rest = []
        code = p.wait()
        with self.lock:
            if code not in (0, 1) or bool(code) != bool(failed):
                self.tally.line("FAILED", f"{file[:-8]}: the whole", why=f"ended with status {code}")
                show("".join(rest))
            elif said == 0 and not self.names and not any(n.startswith(file[:-8] + ": ") for n in self.left):
                self.tally.line("FAILED", f"{file[:-8]}: the whole", why="ran nothing")


def main():
    global MESON
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    # a background shell has it ignored, and so would all that tests start
    signal.signal(signal.SIGINT, signal.default_int_handler)
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--jobs", type=int, default=min(8, len(os.sched_getaffinity(0))))
    parser.add_argument("--all", action="store_true", help="those whose turn is another day, too")
    parser.add_argument("--record", action="store_true", help="run all, and write tests/slow.tsv")
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    if args.record and args.names:
        parser.error("--record runs all tests: name none")
    MESON = os.environ.get("MESON", "/usr/bin/meson")
    build = os.path.abspath(args.build)
    tally = Tally()
    start = time.monotonic()
    run_rules(tally, args.names, build)
    run_units(tally, args.names, build)
    everything = args.all or args.record or args.names or os.environ.get("HALE_LONG", "0") not in ("", "0")
    left = set() if everything else left_for_another_day()
    scenarios = Scenarios(tally, args.names, build, left)
    scenarios.run(max(1, args.jobs))
    scenarios.again()
    if args.record:
        record_slow(tally.took)
    print()
    if left:
        print(f"{len(left)} slow tests have their turn on another day (--all runs them, too)")
    for s in tally.skipped:
        print("skipped " + s)
    for u in tally.unsteady:
        print("unsteady " + u)
    for f in tally.failed:
        print("FAILED  " + f)
    print(f"{time.monotonic() - start:.0f} s (lanes: {', '.join(scenarios.lanes)})")
    print(f"{tally.passed} passed, {len(tally.failed)} failed")
    sys.exit(1 if tally.failed or not tally.passed else 0)


main()
