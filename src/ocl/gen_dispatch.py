#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes the layer's dispatch table: gen_dispatch.py OUT.inc SOURCES…

For each `layer_clX` that the sources define, a declaration with the type that CL/cl_icd.h gives to
clX (so that a wrong parameter doesn't compile) and one line that puts it into the table. Names that
no OpenCL header has are an error. Everything else passes through to the next layer untouched.
"""
import re
import sys


def main():
    out, sources = sys.argv[1], sys.argv[2:]
    defined = []
    for path in sources:
        with open(path) as f:
            text = f.read()
        defined += re.findall(r"^[a-z_ ]+\*?\s*CL_API_CALL\s+layer_(cl\w+)\(", text, re.M)
    if not defined or len(set(defined)) != len(defined):
        sys.exit(f"{sys.argv[0]}: no definitions, or one twice: {sorted(defined)}")
    with open(out, "w") as f:
        f.write("/* made by gen_dispatch.py */\n")
        f.write("#ifdef LAYER_DECLARE\n")
        for name in sorted(defined):
            f.write(f"__typeof__(*(cl_api_{name})0) layer_{name};\n")
        f.write("#else\n")
        for name in sorted(defined):
            f.write(f"mine.{name} = layer_{name};\n")
        f.write("#endif\n")


main()
