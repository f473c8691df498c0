#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Each layer includes headers of the layers below it only, and files stay readable.

The order is that of the layers in docs/architecture.md; a file may include what stands in
MAY_USE for its folder, and its own folder.
"""

import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# Inside the user's process, from the bottom up. Each may use all that stand before it.
RANK_SIDE = ["base", "node", "wire/seal", "image", "journal", "ckpt", "channel", "deliver", "object", "match",
             "coll", "rma", "io", "mpi"]
MAY_USE = {layer: set(RANK_SIDE[:i]) for i, layer in enumerate(RANK_SIDE)}
# Beside it, in the processes of `hale` itself.
MAY_USE["policy"] = {"base", "model", "node"}
MAY_USE["store"] = {"base", "image"}
MAY_USE["model"] = {"base"}
MAY_USE["rules"] = {"base"}
MAY_USE["monitor"] = {"base"}
MAY_USE["ftb"] = {"base"}
BELOW = {"base", "node", "policy", "ftb", "image", "journal", "store", "rules", "monitor", "model", "wire/seal"}
# The agent does, the head decides; neither knows anything of the other.
AGENT_SIDE = ["wire", "launch", "report", "agent/copier", "agent/supervisor", "agent"]
HEAD_SIDE = {"head/nodes", "head/output", "head/failover", "head/watch", "head/migration", "head"}
for i, folder in enumerate(AGENT_SIDE):
    MAY_USE[folder] = BELOW | set(AGENT_SIDE[:i])
for folder in HEAD_SIDE:
    MAY_USE[folder] = BELOW | HEAD_SIDE | {"wire", "launch", "report", "control"}
MAY_USE["control"] = BELOW | {"wire"}
MAY_USE["protect"] = {"base", "node"}  # inside the user's process, without libhale.so
MAY_USE["halecc"] = {"base"}
MAY_USE["ocl"] = {"base", "node"}  # inside OpenCL programs, without libhale.so
MAY_USE["ocl/remote"] = {"base", "node", "ocl", "rio"}  # in processes of its own, but for the driver
MAY_USE["task"] = {"base", "node"}  # inside programs with tasks, without libhale.so
MAY_USE["web"] = {"base", "node", "control"}  # the page, and a program of its own
MAY_USE["top"] = {"base", "node", "control"}  # a program of its own
MAY_USE["rio"] = {"base", "wire/seal"}
MAY_USE["offload"] = {"base", "node", "image", "rio"}
MAY_USE["cli"] = BELOW | {"rio", "offload", "ocl/remote"} | HEAD_SIDE | {"control", "web"} | set(AGENT_SIDE)

LINES_MAX = 800


def layer_of(path):
    """The innermost folder of the path that has a place in the order."""
    folder = os.path.dirname(path)
    while folder not in MAY_USE and "/" in folder:
        folder = os.path.dirname(folder)
    return folder


def includes(path):
    with open(path) as f:
        for number, line in enumerate(f, 1):
            m = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
            if m:
                yield number, m[1]


def check_file(src, rel):
    layer = layer_of(rel)
    if layer not in MAY_USE:
        yield f"src/{rel}:1: folder '{layer}' has no place in the order of layers; give it one"
        return
    allowed = MAY_USE[layer] | {layer}
    for number, name in includes(os.path.join(src, rel)):
        if name.startswith("hale/") or name.endswith(".inc"):  # .inc: made while building
            continue
        if name.startswith("..") or not os.path.exists(os.path.join(src, name)):
            yield f'src/{rel}:{number}: include "{name}" by its path from src/'
            continue
        used = layer_of(name)
        if used not in allowed:
            yield f'src/{rel}:{number}: {layer}/ is below {used}/ and may not include "{name}"'


def main():
    src = os.path.join(ROOT, "src")
    problems = []
    count = 0
    for folder, _, files in sorted(os.walk(src)):
        for file in sorted(files):
            if not file.endswith((".c", ".h")):
                continue
            rel = os.path.relpath(os.path.join(folder, file), src)
            count += 1
            problems += check_file(src, rel)
            with open(os.path.join(src, rel)) as f:
                lines = f.readlines()
            if not lines or "SPDX-License-Identifier: BSD-3-Clause" not in lines[0]:
                problems.append(f"src/{rel}:1: the first line is not the SPDX line")
            if len(lines) > LINES_MAX:
                problems.append(f"src/{rel}: {len(lines)} lines; divide it (at most {LINES_MAX})")
    for p in problems:
        print(p)
    print(f"{count} files, {len(problems)} problems")
    sys.exit(1 if problems else 0)


main()
