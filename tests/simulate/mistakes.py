#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Does the simulation notice mistakes? Makes those of mistakes.txt one at a time, in a copy of the tree.

  tests/simulate/mistakes.py [--runs N] [--kinds KIND,…] [--work DIR] [WORD …]     only those whose name has a WORD

Each is a line: after how many schedules it was noticed, and by what. The last line is "N of M mistakes
noticed"; exit status 1: not all.
"""

import argparse
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts"))
from mutate import ROOT, Copy, run  # noqa: E402

LIST = os.path.join(os.path.dirname(os.path.abspath(__file__)), "mistakes.txt")
TARGET = "tests/simulate/hale-simulate"


def read_list(words):
    """(name, [(line, other line)]) of each mistake."""
    found = []
    for block in re.split(r"\n\n+", open(LIST).read().strip()):
        lines = [x for x in block.split("\n") if not x.startswith("#")]
        if not lines or (words and not any(w in lines[0] for w in words)):
            continue
        pairs = list(zip([x[2:] for x in lines if x.startswith("- ")], [x[2:] for x in lines if x.startswith("+ ")]))
        found.append((lines[0], pairs))
    return found


def place_of(tree, line):
    """The one file of src/ that has the line, and its number."""
    places = []
    for folder, _, names in os.walk(os.path.join(tree, "src")):
        for name in names:
            if name.endswith(".c") and not name.endswith("_test.c"):
                path = os.path.join(folder, name)
                places += [(path, i) for i, x in enumerate(open(path).read().split("\n")) if x.strip() == line]
    if len(places) != 1:
        sys.exit(f"mistakes.txt: this line stands {len(places)} times in src/, not once: {line}")
    return places[0]


def attempt(copy, pairs, args):
    """(schedules, failure) of the first schedule that goes wrong; (args.runs, '') if none does."""
    kept = {}
    try:
        for old, new in pairs:
            path, number = place_of(copy.tree, old)
            text = open(path).read()
            kept.setdefault(path, text)
            lines = text.split("\n")
            lines[number] = lines[number].replace(old, new)
            open(path, "w").write("\n".join(lines))
        copy.must(["ninja", "-C", copy.build, TARGET])
        kinds = ["--kinds", args.kinds] if args.kinds else []
        _, out = run([os.path.join(copy.build, TARGET), "--runs", str(args.runs), "--first", *kinds], 7200)
        m = re.search(r"^seed (\d+): (.*)$", out, re.M)
        return (int(m[1]), m[2]) if m else (args.runs, "" if " schedules, 0 wrong" in out else "it crashes")
    finally:
        for path, text in kept.items():
            open(path, "w").write(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=10000)
    parser.add_argument("--kinds")
    parser.add_argument("--work", default=os.path.join(ROOT, "build-mutate"))
    parser.add_argument("words", nargs="*")
    args = parser.parse_args()
    mistakes = read_list(args.words)
    copy = Copy(args.work)
    noticed = 0
    for name, pairs in mistakes:
        runs, why = attempt(copy, pairs, args)
        noticed += bool(why)
        print(f"{runs if why else 'MISSED':>7}  {name}{': ' + why[:150] if why else ''}", flush=True)
    print(f"{noticed} of {len(mistakes)} mistakes noticed")
    sys.exit(0 if noticed == len(mistakes) else 1)


main()
