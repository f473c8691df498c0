#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Names that a reader, grep and a debugger tell apart: the tag of a struct, union or enum of src/ is
defined once. Tests stand for parts of the product, and may define its tags again."""

import collections
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# Each says what another front's library has under that name.
KNOWN = {"front_status"}


def sources():
    for folder, _, files in sorted(os.walk(os.path.join(ROOT, "src"))):
        for file in sorted(files):
            if file.endswith((".c", ".h")) and "_test" not in file and "/test" not in folder \
                    and file != "fixture.c":
                yield os.path.join(folder, file)


def main():
    where = collections.defaultdict(list)
    for path in sources():
        with open(path) as f:
            text = re.sub(r"/\*.*?\*/", "", f.read(), flags=re.S)
        for m in re.finditer(r"(?m)^[ \t]*(?:static |typedef |const )*(?:struct|union|enum) (\w+)\s*\{", text):
            where[m[1]].append(os.path.relpath(path, ROOT))
    problems = 0
    for tag, paths in sorted(where.items()):
        if len(paths) > 1 and tag not in KNOWN:
            print(f"the tag '{tag}' is defined {len(paths)} times: {', '.join(paths)}")
            problems += 1
    print(f"{len(where)} tags, {problems} problems")
    sys.exit(1 if problems else 0)


main()
