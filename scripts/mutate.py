#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Do the tests notice a mistake? Changes one operator, condition or call at a time and runs the room's own tests.

  scripts/mutate.py [--seed N] [--count N] [--limit SECONDS] [--work DIR] ROOM …     e.g. policy match head

A room is a folder of src/. A mutant is drawn by the seed from the room's code, built in a copy of the
tree, and given to the unit tests that stand in the room, or else those that compile the changed file. A mutant without
an effect (the same machine code) does not count. Of the job's own code, what unit tests do not notice is
given to the simulation of head and agents, too. Each mutant is a line: noticed, and by which test,
or MISSED, with the change. The last line is "N of M mutants noticed". Exit status 1: fewer than
--at-least percent.
"""

import argparse
import filecmp
import hashlib
import json
import os
import random
import re
import shutil
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# (what is found, what takes its place); of several places one is drawn
OPERATORS = [
    (r" < ", " <= "), (r" <= ", " < "), (r" > ", " >= "), (r" >= ", " > "), (r" == ", " != "),
    (r" != ", " == "), (r" && ", " || "), (r" \|\| ", " && "), (r" \+ ", " - "), (r" - ", " + "),
    (r" \+= ", " -= "), (r" \+ 1\b", ""), (r" - 1\b", ""), (r"\btrue\b", "false"), (r"\bfalse\b", "true"),
    (r"(?<=[(\s])!(?=[a-z(])", ""), (r"(?<= = )0(?=;)", "1"), (r"(?<=return )0(?=;)", "1"),
]
CONDITION = re.compile(r"\bif \((.*)\)( \{)?$")
SIMULATE = "tests/simulate/hale-simulate"
OTHERS = 3 # tests of other rooms that a file is given to, the smallest ones
CALL = re.compile(r"^\t+[a-z]\w*\([^;{}]*\);$")


def code_lines(text):
    """(number, line) of code: inside of functions, without comments, texts and asserts."""
    inside = comment = False
    for number, line in enumerate(text.split("\n")):
        if line == "{":
            inside = True
        elif line == "}":
            inside = False
        if "/*" in line and "*/" not in line:
            comment = True
        if inside and not comment and '"' not in line and "assert" not in line and line.startswith("\t"):
            if not re.match(r"\s*(/\*|\*|#|case |default:)", line):
                yield number, line
        if "*/" in line:
            comment = False


def changes(line):
    bare = line.split("/*")[0]
    found = [bare[:m.start()] + new + bare[m.end():] for old, new in OPERATORS for m in re.finditer(old, bare)]
    m = CONDITION.search(bare)
    if m:
        found += [bare[:m.start(1)] + f"!({m[1]})" + bare[m.end(1):]]
    if CALL.match(bare):
        found += [re.match(r"\t+", bare)[0] + ";"]
    return found


def run(argv, limit, **more):
    """(status, output); the status is None after limit seconds, and nothing of it is left."""
    p = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                         stdin=subprocess.DEVNULL, start_new_session=True, **more)
    try:
        out, _ = p.communicate(timeout=limit)
        return p.returncode, out
    except subprocess.TimeoutExpired:
        return None, ""
    finally:
        if p.returncode is None: # Ctrl-C, too
            os.killpg(p.pid, 9)
            p.communicate()


class Copy:
    """The tree again, with a build folder of its own, so that nobody's sources are ever wrong."""

    def __init__(self, folder):
        self.tree, self.build = os.path.join(folder, "tree"), os.path.join(folder, "build")
        names = [n for n in subprocess.check_output(["git", "ls-files"], cwd=ROOT, text=True).split("\n")
                 if n and os.path.isfile(os.path.join(ROOT, n))]
        for place, _, files in os.walk(self.tree):
            for name in files:
                if os.path.relpath(os.path.join(place, name), self.tree) not in names:
                    os.unlink(os.path.join(place, name))
        for name in names:
            path = os.path.join(self.tree, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            # What differs becomes newer than any object file: an old mutant would stay in one otherwise.
            if not os.path.exists(path) or not filecmp.cmp(os.path.join(ROOT, name), path, shallow=False):
                shutil.copyfile(os.path.join(ROOT, name), path)
                shutil.copymode(os.path.join(ROOT, name), path)
        if not os.path.exists(os.path.join(self.build, "build.ninja")):
            # Compiling takes most of the time. What has an effect is asked with -O3, below.
            self.must(["meson", "setup", self.build, self.tree, "-Dtests=enabled", "-Dwerror=false",
                       "-Doptimization=1"])
        self.must(["ninja", "-C", self.build, "build.ninja"])
        intro = os.path.join(self.build, "meson-info")
        self.targets = [t for t in json.load(open(os.path.join(intro, "intro-targets.json")))]
        tests = json.load(open(os.path.join(intro, "intro-tests.json")))
        self.tests = {t["cmd"][0]: t for t in tests}
        programs = {t["id"]: os.path.relpath(t["filename"][0], self.build) for t in self.targets}
        for t in tests:
            t["programs"] = [programs[i] for i in t["depends"] if i in programs]
        self.shipped = {os.path.relpath(s, self.tree) for t in self.targets if t["filename"][0] not in self.tests
                        for g in t["target_sources"] for s in g.get("sources", [])}
        self.of_mpi, self.simulated = self.sources_of("mpi_core"), self.sources_of("hale_job", "hale_policy")
        self.commands = json.load(open(os.path.join(self.build, "compile_commands.json")))

    def sources_of(self, *names):
        return {os.path.relpath(s, self.tree) for t in self.targets if t["name"] in names
                for g in t["target_sources"] for s in g.get("sources", [])}

    def must(self, argv):
        status, out = run(argv, 3600)
        if status != 0:
            sys.exit(f"{' '.join(argv)}\n{out}")

    def tests_of(self, room, path):
        """(name, command, programs) of the tests that stand in the room; if none of these compiles the file,
        a few others that do."""
        own, others, compiled = [], [], False
        for target in self.targets:
            test = self.tests.get(target["filename"][0])
            sources = {os.path.relpath(s, self.tree) for g in target["target_sources"] for s in g.get("sources", [])}
            if not test:
                continue
            # those that compile the file first, and small ones first
            what = (path not in sources, len(sources), test["name"], test["cmd"], test["programs"])
            if any(s.startswith(f"src/{room}/") and s.endswith("_test.c") for s in sources):
                own.append(what)
                compiled |= path in sources
            elif path in sources:
                others.append(what)
        found = sorted(own if compiled else own + sorted(others)[:OTHERS])
        if not compiled and not others and path in self.of_mpi: # programs of MPI with the whole library
            found += sorted((0, 0, t["name"], t["cmd"], t["programs"]) for t in self.tests.values()
                            if "hale:ranks" in t["suite"] and (t["name"], t["cmd"]) not in [w[2:4] for w in found])
        return [what[2:] for what in found]

    def object_of(self, path):
        """Machine code of the file, as the first of its targets compiles it; None: it does not compile."""
        for c in self.commands:
            if os.path.normpath(os.path.join(c["directory"], c["file"])) == os.path.join(self.tree, path):
                out = os.path.join(self.build, "mutant.o")
                command = re.sub(r" -o \S+", f" -o {out}", re.sub(r" -(MD|MQ \S+|MF \S+|g)\b", "", c["command"]))
                command = re.sub(r" -O1\b", " -O3", command)
                if run(["sh", "-c", command], 300, cwd=c["directory"])[0] != 0:
                    return None
                run(["objcopy", "--strip-debug", out], 60)
                return hashlib.sha256(open(out, "rb").read()).hexdigest()
        return None


def draw(copy, rooms, seed):
    """Mutants without end: (room, path, line number, the line, another one)."""
    rng = random.Random(seed)
    files = []
    for room in rooms:
        for folder, _, names in sorted(os.walk(os.path.join(copy.tree, "src", room))):
            files += [(room, os.path.relpath(os.path.join(folder, n), copy.tree)) for n in sorted(names)
                      if n.endswith(".c") and os.path.relpath(os.path.join(folder, n), copy.tree) in copy.shipped]
    places = [(room, path, number, line) for room, path in files
              for number, line in code_lines(open(os.path.join(copy.tree, path)).read()) if changes(line)]
    rng.shuffle(places)
    for room, path, number, line in places:
        yield room, path, number, line, rng.choice(changes(line))


def judge(copy, room, path, limit, usual):
    """Which test notices; '' when none does, None when there is none. usual: seconds that tests have taken unchanged."""
    tests = copy.tests_of(room, path)
    if not tests:
        return None
    for name, cmd, programs in tests:
        status, out = run(["ninja", "-C", copy.build, *programs], 600)
        if status != 0:
            return "the compiler"
        begun = time.monotonic()
        status, out = run(cmd, max(limit, 4 * usual.get(name, limit)), cwd=copy.build)
        if status != 0:
            failed = re.search(r"^\[  FAILED  \] (\w+)", out, re.M)
            return f"{name}: {failed[1] if failed else 'does not end' if status is None else f'status {status}'}"
        usual.setdefault(name, time.monotonic() - begun)
    return ""


def simulate(copy, path, schedules, limit):
    """What the simulation of head and agents says, where it has the file: '' nothing, None it has it not."""
    if not schedules or path not in copy.simulated:
        return None
    if run(["ninja", "-C", copy.build, SIMULATE], 900)[0] != 0:
        return "the compiler"
    status, out = run([os.path.join(copy.build, SIMULATE), "--seed", "1", "--runs", str(schedules)], limit)
    return "" if status == 0 else f"the simulation: {'does not end' if status is None else 'a schedule goes wrong'}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=30)
    parser.add_argument("--limit", type=float, default=60, help="seconds for one test, or four times what it takes unchanged")
    parser.add_argument("--schedules", type=int, default=500, help="of the simulation, where unit tests notice nothing")
    parser.add_argument("--at-least", type=float, default=0, help="percent")
    parser.add_argument("--work", default=os.path.join(ROOT, "build-mutate"))
    parser.add_argument("rooms", nargs="+")
    args = parser.parse_args()
    for room in args.rooms:
        if not os.path.isdir(os.path.join(ROOT, "src", room)):
            parser.error(f"src/{room} is no folder")
    copy = Copy(args.work)
    tried = noticed = 0
    plain, sound, usual = {}, set(), {}
    for room, path, number, line, other in draw(copy, args.rooms, args.seed):
        if tried == args.count:
            break
        full = os.path.join(copy.tree, path)
        text = open(full).read()
        if path not in plain:
            plain[path] = copy.object_of(path)
            names = tuple(name for name, _, _ in copy.tests_of(room, path))
            why = "" if names in sound else judge(copy, room, path, args.limit, usual)
            if why:
                sys.exit(f"{path}: its tests fail without any change: {why}")
            sound.add(names)
        lines = text.split("\n")
        lines[number] = other
        open(full, "w").write("\n".join(lines))
        try:
            if copy.object_of(path) in (None, plain[path]):
                continue
            why = judge(copy, room, path, args.limit, usual)
            if not why:
                said = simulate(copy, path, args.schedules, args.limit)
                why = why if said is None else said
        finally:
            open(full, "w").write(text)
        tried += 1
        noticed += bool(why)
        print(f"{'noticed' if why else 'MISSED '} {path}:{number + 1}: {line.strip()}  ->  {other.strip()}"
              f"{'   by ' + why if why else '   (no test)' if why is None else ''}", flush=True)
    print(f"{noticed} of {tried} mutants noticed")
    sys.exit(0 if tried and 100 * noticed >= args.at_least * tried else 1)


if __name__ == "__main__":
    main()
