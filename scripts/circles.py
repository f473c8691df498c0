#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Who calls whom, as the linker sees it: circles between folders of src/, and the largest circle of files.

  scripts/circles.py [--build DIR] [--edges FOLDER FOLDER]

Include lines say what a file may use; the symbols of its object file say what it does use. This script
reads the object files of a finished build with nm. It fails when folders call each other in a circle
that KNOWN does not have, or when a circle of files inside one folder grows beyond FILES_MAX.
--edges A B: which symbols of B the files of A use.
"""

import argparse
import collections
import json
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FILES_MAX = 8

# Circles that are still there: folders that call each other, and why. docs/architecture.md, "Circles".
KNOWN = [
    {"ocl", "ocl/entry", "ocl/epoch", "ocl/log"},
    {"coll", "coll/cells", "coll/hier", "io", "rma", "mpi/abi", "mpi/coll", "mpi/comm", "mpi/datatype", "mpi/env", "mpi/p2p",
     "mpi/task", "mpi/win", "mpi/file"},
    {"image", "image/fd", "image/ipc", "image/live", "image/tree"},
    {"model", "model/sim"},
]
# Folders in which a larger circle of files is known.
LARGE = {"image", "match", "monitor", "ocl/remote", "task", "cli"}


def objects(build):
    """{source: object} of the product, without tests and those compiled twice."""
    found = {}
    with open(os.path.join(build, "compile_commands.json")) as f:
        for entry in json.load(f):
            full = os.path.realpath(os.path.join(entry["directory"], entry["file"]))
            path = os.path.relpath(full, os.path.join(ROOT, "src"))
            obj = os.path.join(entry["directory"], entry["output"])
            if path.startswith("..") or path.endswith("_test.c") or not os.path.exists(obj):
                continue
            found.setdefault(path, obj)
    return found


def symbols(sources):
    """Of each source what it defines, and what it takes from others. One nm for all, as starting it takes
    longer than its work."""
    defined, wanted = collections.defaultdict(set), {source: set() for source in sources}
    of = {obj: source for source, obj in sources.items()}
    out = subprocess.run(["nm", "-P", "-g", "-A", *of], stdout=subprocess.PIPE, text=True, check=True).stdout
    for line in out.splitlines():
        obj, _, rest = line.partition(": ")
        name, kind = rest.split()[:2]
        if kind in "Uvw":
            wanted[of[obj]].add(name)
        else:
            defined[name].add(of[obj])
    return defined, wanted


def names_of_libc():
    """libhale.so stands before some of these functions; a call of open() is no call of ckpt/files.c."""
    libc = subprocess.run(["cc", "-print-file-name=libc.so.6"], stdout=subprocess.PIPE, text=True).stdout.strip()
    out = subprocess.run(["nm", "-D", "-P", libc], stdout=subprocess.PIPE, text=True).stdout
    return {line.split()[0].split("@")[0] for line in out.splitlines()}


def calls(sources):
    """{source: {source: symbols}}. Where several libraries define a symbol, a file uses the one of its
    own folder, or none is sure."""
    defined, wanted = symbols(sources)
    graph = {source: collections.defaultdict(set) for source in sources}
    libc = names_of_libc()
    for source, names in wanted.items():
        for name in names - libc:
            owners = defined.get(name, set()) - {source}
            if len(owners) > 1:
                owners = {o for o in owners if o.split("/")[0] == source.split("/")[0]}
            if len(owners) == 1:
                graph[source][owners.pop()].add(name)
    return graph


def circles(graph):
    """Strongly connected parts of more than one node, largest first (Tarjan, without recursion)."""
    index, low, stack, on, found = {}, {}, [], set(), []
    for root in graph:
        if root in index:
            continue
        work = [(root, iter(graph[root]))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on.add(root)
        while work:
            node, rest = work[-1]
            for peer in rest:
                if peer not in index:
                    index[peer] = low[peer] = len(index)
                    stack.append(peer)
                    on.add(peer)
                    work.append((peer, iter(graph[peer])))
                    break
                if peer in on:
                    low[node] = min(low[node], index[peer])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    part = set()
                    while node not in part:
                        part.add(stack.pop())
                    on -= part
                    found.append(part)
    return sorted((c for c in found if len(c) > 1), key=lambda c: (-len(c), min(c)))


def by_folder(graph):
    folders = collections.defaultdict(lambda: collections.defaultdict(set))
    for source, peers in graph.items():
        a = os.path.dirname(source)
        folders[a].keys()
        for peer, names in peers.items():
            if os.path.dirname(peer) != a:
                folders[a][os.path.dirname(peer)] |= names
    for a in list(folders):
        for b in list(folders[a]):
            folders[b].keys()
    return folders


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--edges", nargs=2, metavar="FOLDER")
    args = parser.parse_args()
    graph = calls(objects(args.build))
    folders = by_folder(graph)
    problems = []

    if args.edges:
        for source in sorted(graph):
            for peer in sorted(graph[source]):
                if (os.path.dirname(source), os.path.dirname(peer)) == tuple(args.edges):
                    print(f"{source} -> {peer}: {', '.join(sorted(graph[source][peer]))}")
        return 0
    gone = list(KNOWN)
    for circle in circles(folders):
        known = any(circle <= k for k in KNOWN)
        gone = [k for k in gone if not circle <= k]
        print(f"folders{' (known)' if known else ''}: {' '.join(sorted(circle))}")
        if not known:
            problems.append("these folders call each other in a circle: " + " ".join(sorted(circle)))
    problems += [f"these folders call each other in no circle any more; take them out of KNOWN: {' '.join(sorted(k))}"
                 for k in gone]
    large = set(LARGE)
    for circle in circles(graph):
        rooms = {os.path.dirname(s) for s in circle}
        if len(circle) <= FILES_MAX:
            continue
        large -= rooms
        print(f"{len(circle)} files: {' '.join(sorted(circle))}")
        if len(rooms) == 1 and len(circle) > FILES_MAX and not rooms & LARGE:
            problems.append(f"{len(circle)} files of {rooms.pop()}/ call each other in a circle; at most {FILES_MAX}")
    problems += [f"no large circle is in {room}/ any more; take it out of LARGE" for room in sorted(large)]
    for p in problems:
        print(p)
    print(f"{len(graph)} object files, {len(problems)} problems")
    return 1 if problems else 0


sys.exit(main())
