#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Makes the core of a front library: the objects of mpi_core without those that know Open MPI's
Fortran, and with core_ before the names of MPI functions, which are the front's.

usage: gen_core.py NM OBJCOPY AR LIBRARY.a OUTPUT.a LEFT_OUT…"""

import os
import re
import shutil
import subprocess
import sys
import tempfile


def main():
    nm, objcopy, ar, library, output, *left_out = sys.argv[1:]
    names = subprocess.run([nm, '-g', library], check=True, capture_output=True, text=True).stdout
    renamed = sorted(set(re.findall(r' (P?MPIX?_\w+)$', names, flags=re.M)))
    with tempfile.TemporaryDirectory() as scratch:
        whole = scratch + '/whole.a'
        # a thin archive names its members by path: make an ordinary one of them
        members = subprocess.run([ar, 't', library], check=True, capture_output=True,
                                 text=True).stdout.split()
        base = os.path.dirname(os.path.abspath(library))
        if any('/' in m for m in members):
            keep = [m if os.path.exists(m) else os.path.join(base, m) for m in members
                    if not m.endswith(tuple(left_out))]
            subprocess.run([ar, 'cr', whole, *keep], check=True)
        else:
            shutil.copy(library, whole)
            gone = [m for m in members if m.endswith(tuple(left_out))]
            subprocess.run([ar, 'd', whole, *gone], check=True)
        with open(scratch + '/names', 'w') as f:
            f.writelines(f'{name} core_{name}\n' for name in renamed)
        if os.path.exists(output):
            os.unlink(output)
        subprocess.run([objcopy, '--redefine-syms', scratch + '/names', whole, output], check=True)


main()
