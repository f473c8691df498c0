#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What a fuzz target is linked with: the comment "/* links: … */" in it names sources, or patterns
of them without their tests. Prints them, relative to the repository's root.

  tests/fuzz/links.py NAME_fuzz.c [without FOLDER …]
"""
import glob
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))


def links(name):
    text = open(os.path.join(HERE, name)).read()
    found = re.search(r"^/\* links: (.*?) \*/$", text, re.M | re.S)
    for pattern in re.sub(r"\n \* ", " ", found[1]).split() if found else []:
        files = sorted(glob.glob(pattern, root_dir=ROOT))
        if not files:
            sys.exit(f"{name}: there is no {pattern}")
        yield from (f for f in files if not f.endswith(("_test.c", "_fixture.c")))


without = tuple(f"src/{folder}/" for folder in sys.argv[3:])
print("\n".join(f for f in links(sys.argv[1]) if not without or not f.startswith(without)))
