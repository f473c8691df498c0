#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What our libraries put into the user's process is either MPI's interface or has our name on it.

A library that exports `json_parse` takes the place of every other `json_parse` in the process, so
the dynamic symbols of libhale.so begin with hale_ or HALE_, and those of libmpi.so.40 are MPI's.
"""

import argparse
import os
import re
import subprocess
import sys

RULES = {
    "libhale.so": r"(hale|HALE)_",
    "libmpi.so.40": r"(P?MPI_|P?MPIX_|mpi_|ompi_|OMPI_|MPIR_|opal_|pmpi_|hale_)",
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    args = parser.parse_args()
    bad = 0
    for library, rule in RULES.items():
        path = os.path.join(args.build, library)
        if not os.path.exists(path):
            print(f"{path} is not there: build first")
            bad += 1
            continue
        nm = subprocess.run(["nm", "-D", "--defined-only", path], stdout=subprocess.PIPE,
                            text=True, check=True)
        names = [line.split()[-1].split("@")[0] for line in nm.stdout.splitlines()]
        strangers = [n for n in names if not re.match(rule, n)]
        for n in strangers:
            print(f"{library} exports {n}: hide it (src/*.map) or name it in src/base/names.h")
        print(f"{library}: {len(names)} names, {len(strangers)} that should not be there")
        bad += len(strangers)
    sys.exit(1 if bad else 0)


main()
