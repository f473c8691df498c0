#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs every test there is and says what passed. The last line is "N passed, N failed".

  scripts/check.py [--build DIR] [NAME …]     only tests whose file or name contains a NAME

Three kinds: rules that the source must keep (scripts/*), unit tests (cmocka, beside the code, run
by Meson), scenarios (tests/*_test.py: whole jobs with real programs). Each test is a line; the
output of those that fail is shown.
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
RULES = ["layering.py", "exports.py"]


class Tally:
    def __init__(self):
        self.passed = 0
        self.failed = []
        self.skipped = []

    def line(self, verdict, name, seconds=None, why=""):
        took = f"  {seconds:.1f} s" if seconds is not None and seconds >= 0.1 else ""
        print(f"{verdict:<7} {name}{took}{'  ' + why if why else ''}", flush=True)
        if verdict == "ok":
            self.passed += 1
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
    subprocess.run([MESON, "test", "-C", build, "--no-rebuild", "--quiet"] + tests,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
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


def lines_of(p):
    """What p prints; p ends with us, and cleans up, should we be ended before it."""
    try:
        yield from p.stdout
    finally:
        if p.poll() is None and sys.exc_info()[0] is not None:
            p.terminate()
            p.wait()


def run_scenarios(tally, names, build):
    folder = os.path.join(ROOT, "tests")
    scripts = [f for f in sorted(os.listdir(folder)) if f.endswith(".sh") and wanted(names, f)]
    for file in scripts:  # 0 passes, 77 says that something is missing
        start = time.monotonic()
        r = subprocess.run(["sh", os.path.join(folder, file)], cwd=ROOT,
                           env=dict(os.environ, HALE_BUILD=build), stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        verdict = {0: "ok", 77: "skipped"}.get(r.returncode, "FAILED")
        tally.line(verdict, file[:-3], time.monotonic() - start,
                   r.stdout.strip() if verdict == "skipped" else "")
        if verdict == "FAILED":
            show(r.stdout)
    env = dict(os.environ, HALE_BUILD=build, PYTHONDONTWRITEBYTECODE="1")
    for file in sorted(os.listdir(folder)):
        if not file.endswith("_test.py"):
            continue
        argv = ["/usr/bin/python3", os.path.join(folder, file)]
        if names and not any(n in file for n in names):
            argv += ["--only"] + names
        p = subprocess.Popen(argv, cwd=ROOT, env=env, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True)
        said = 0
        rest = []
        for line in lines_of(p):
            m = re.match(r"^(ok|FAILED|skipped)\t([^\t]*)\t([0-9.]+)\t(.*)$", line)
            if m:
                said += 1
                tally.line(m[1], f"{file[:-8]}: {m[2]}", float(m[3]), m[4])
                show("".join(rest))
                rest = []
            else:
                rest.append(line)
        code = p.wait()
        if code != 0 and code != 1:
            tally.line("FAILED", f"{file[:-8]}: the whole", why=f"ended with status {code}")
            show("".join(rest))
        elif said == 0 and not names:
            tally.line("FAILED", f"{file[:-8]}: the whole", why="ran nothing")


def main():
    global MESON
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    # a background shell has it ignored, and so would all that tests start
    signal.signal(signal.SIGINT, signal.default_int_handler)
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    MESON = os.environ.get("MESON", "/usr/bin/meson")
    build = os.path.abspath(args.build)
    tally = Tally()
    start = time.monotonic()
    run_rules(tally, args.names, build)
    run_units(tally, args.names, build)
    run_scenarios(tally, args.names, build)
    print()
    for s in tally.skipped:
        print("skipped " + s)
    for f in tally.failed:
        print("FAILED  " + f)
    print(f"{time.monotonic() - start:.0f} s")
    print(f"{tally.passed} passed, {len(tally.failed)} failed")
    sys.exit(1 if tally.failed or not tally.passed else 0)


main()
