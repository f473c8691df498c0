#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""embed.py FILE NAME OUT: a file as the C array NAME, with a zero behind it."""

import sys

with open(sys.argv[1], "rb") as f:
    data = f.read()
with open(sys.argv[3], "w") as f:
    f.write(f"static const char {sys.argv[2]}[] = {{\n")
    for i in range(0, len(data), 20):
        f.write(",".join(str(b if b < 128 else b - 256) for b in data[i:i + 20]) + ",\n")
    f.write("0};\n")
