#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Datatypes: what Debian's Open MPI says about them and what Hale says."""

from lib import *


@test
def random_types_are_the_same_as_in_open_mpi(s):
    exe = s.compile("types")
    count = "20000" if LONG else "2000"
    theirs = s.openmpi(1, exe, count, str(SEED))
    ours = s.hale_run(1, exe, count, str(SEED))
    expect(theirs.status == 0, theirs)
    expect(ours.status == 0, ours)
    their_lines, our_lines = theirs.out.splitlines(), ours.out.splitlines()
    expect(len(our_lines) > 1500, ours)
    expect(our_lines == their_lines,
           "different: " + "\n".join(f"{a}\n{b}" for a, b in zip(their_lines, our_lines) if a != b))
    return f"{len(our_lines)} lines"


main()
