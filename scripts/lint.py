#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What a careful reader would otherwise say: layering, format, clang-tidy, cppcheck. The last line is the
verdict: "lint: clean" or what is not.

  scripts/lint.py [--all] [--again] [--jobs N] [--build DIR] [FILE …]

Layering and format are looked at in the whole tree, which takes seconds. clang-tidy and cppcheck take
minutes, so they look at the sources that differ from the upstream branch, and at those that include a
header that does; --all: at every source; FILE …: at these. A source that was found clean is passed over
as long as it, its headers and the settings are what they were (BUILD/lint/clean says so), hence a
run that was ended goes on where it was; --again: it isn't. BUILD is configured, and built if headers
are to be followed.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FORMATTED = ["src", "include", "bench", "tests", "examples"]
TIDY = ["clang-tidy", "--quiet", "--extra-arg=-Wno-unknown-warning-option"]
CPPCHECK = ["cppcheck", "--quiet", "--error-exitcode=1", "--std=c17", "--enable=warning,portability",
            "--inline-suppr", "--suppress=missingIncludeSystem",
            "--suppressions-list=scripts/cppcheck.suppress", "-Isrc", "-Iinclude",
            "--include=src/base/names.h", "--library=posix", "--library=gnu"]
TOOLS = {"clang-tidy": (TIDY, ".clang-tidy"), "cppcheck": (CPPCHECK, "scripts/cppcheck.suppress")}


def output_of(*argv):
    r = subprocess.run(argv, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return r.stdout if r.returncode == 0 else ""


def sources():
    """Those of the product, with what they are compiled by: {path: entry}. Many are compiled for several
    libraries; clang-tidy would look at each as often."""
    found = {}
    with open(os.path.join(args.build, "compile_commands.json")) as f:
        for entry in json.load(f):
            full = os.path.realpath(os.path.join(entry["directory"], entry["file"]))
            path = os.path.relpath(full, ROOT)
            if path.startswith("src/") and not path.endswith("_test.c") and "/test/" not in path:
                found.setdefault(path, entry)
    return found


def headers_of():
    """{source: what it includes}, as ninja has seen it when it built."""
    found, source, mine = {}, None, []
    for line in output_of("ninja", "-C", args.build, "-t", "deps").splitlines() + [""]:
        if line.startswith("    "):
            path = os.path.realpath(os.path.join(args.build, line.strip()))
            if path.startswith(ROOT + "/"):
                mine.append(os.path.relpath(path, ROOT))
        elif not line and mine:
            source = next((p for p in mine if p.endswith(".c")), None)
            found.setdefault(source, set()).update(mine)
            mine = []
    return found


def changed():
    """Files that differ from the upstream branch; those that git does not know, too."""
    base = ""
    for upstream in ("@{upstream}", "origin/HEAD", "origin/main", "HEAD"):
        base = base or output_of("git", "merge-base", "HEAD", upstream).strip()
    names = output_of("git", "diff", "--name-only", base or "HEAD")
    names += output_of("git", "ls-files", "--others", "--exclude-standard")
    return set(names.splitlines())


class Clean:
    """What was found clean, by all that the finding depends on."""

    def __init__(self, headers):
        self.headers, self.hashes = headers, {}
        self.path = os.path.join(args.build, "lint", "clean")
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        self.known = set()
        if os.path.exists(self.path) and not args.again:
            with open(self.path) as f:
                self.known = set(f.read().split())
        self.settings = {tool: output_of(tool, "--version") + " ".join(argv) + self.hash(settings)
                         for tool, (argv, settings) in TOOLS.items()}

    def hash(self, path):
        if path not in self.hashes:
            try:
                with open(os.path.join(ROOT, path), "rb") as f:
                    self.hashes[path] = hashlib.sha256(f.read()).hexdigest()
            except OSError:
                self.hashes[path] = "gone"
        return self.hashes[path]

    def key(self, tool, path):
        about = tool + path + self.settings[tool]
        for name in sorted(self.headers.get(path, {path})):
            about += name + self.hash(name)
        return hashlib.sha256(about.encode()).hexdigest()

    def add(self, key):
        with open(self.path, "a") as f:
            f.write(key + "\n")


def looked_at(tool, path, folder):
    """(whether it is clean, what was said)"""
    argv = TIDY + ["-p", folder, path] if tool == "clang-tidy" else CPPCHECK + [path]
    r = subprocess.run(argv, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                       stderr=subprocess.DEVNULL if tool == "clang-tidy" else subprocess.STDOUT, text=True)
    return r.returncode == 0, r.stdout


def each(paths, entries, clean):
    """Both tools on all of these, as many at once as there are processors; who found something."""
    folder = os.path.join(args.build, "lint")
    with open(os.path.join(folder, "compile_commands.json"), "w") as f:
        json.dump(list(entries.values()), f)
    work = [(t, p, clean.key(t, p)) for p in sorted(paths) for t in TOOLS]
    left = [w for w in work if w[2] not in clean.known]
    print(f"lint: {len(paths)} sources, {len(work) - len(left)} of {len(work)} looks are known to be clean",
          flush=True)
    bad, done = set(), 0
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        waiting = {pool.submit(looked_at, t, p, folder): (t, p, key) for t, p, key in left}
        try:
            for one in concurrent.futures.as_completed(waiting):
                tool, path, key = waiting[one]
                good, said = one.result()
                done += 1
                if good:
                    clean.add(key)
                else:
                    bad.add(f"{tool} {path}")
                    print(said.rstrip() or f"{tool} can't read {path}", flush=True)
                if done % 50 == 0:
                    print(f"lint: {done} of {len(left)}", flush=True)
        except KeyboardInterrupt:
            for one in waiting:
                one.cancel()
            raise
    return sorted(bad)


def main():
    global args
    parser = argparse.ArgumentParser()
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("files", nargs="*")
    args = parser.parse_args()
    args.build = os.path.abspath(args.build)
    bad = []
    if subprocess.run([os.path.join(ROOT, "scripts/layering.py")], check=False).returncode != 0:
        bad.append("layering")
    files = [os.path.join(d, f) for top in FORMATTED for d, _, names in os.walk(os.path.join(ROOT, top))
             for f in names if f.endswith((".c", ".h"))]
    if subprocess.run(["clang-format", "--dry-run", "-Werror", *sorted(files)], check=False).returncode != 0:
        bad.append("format")

    entries, headers = sources(), headers_of()
    if args.files:
        paths = {os.path.relpath(os.path.abspath(f), ROOT) for f in args.files}
        unknown = sorted(paths - set(entries))
        if unknown:
            sys.exit(f"lint: not compiled in {args.build}: {' '.join(unknown)}")
    elif args.all:
        paths = set(entries)
    else:
        new = changed()
        paths = {p for p in entries if p in new or headers.get(p, set()) & new}
    bad += each(paths, entries, Clean(headers))
    print("lint: clean" if not bad else f"lint: {len(bad)} not clean: {', '.join(bad)}")
    sys.exit(1 if bad else 0)


try:
    main()
except KeyboardInterrupt:
    sys.exit(130)
