# SPDX-License-Identifier: BSD-3-Clause
"""Collective writes through h5py with mpio: h5pywrite.py FILE ROUNDS. Each round all ranks write every so many'th row
of a chunked array, blocks that cross chunks of another one, and a record of an array that grows. What is written
depends on round and place only, so the file of any run has the same bytes. Prints a sum over what is read back in
the end."""

import sys

import numpy as np
from mpi4py import MPI
import h5py

ROWS, COLUMNS, RECORD = 60, 420, 64

comm = MPI.COMM_WORLD
rank, size, rounds = comm.rank, comm.size, int(sys.argv[2])


def values(round_, rows, columns):
    rows, columns = np.asarray(rows, float), np.asarray(columns, float)
    return round_ * 1e6 + rows[:, None] * 1000 + columns[None, :] / 7


with h5py.File(sys.argv[1], "w", driver="mpio", comm=comm) as f:
    strided = f.create_dataset("strided", (ROWS, COLUMNS), "f8", chunks=(7, 60))
    blocks = f.create_dataset("blocks", (ROWS, COLUMNS), "f8", chunks=(11, 50))
    grown = f.create_dataset("grown", (1, size * RECORD), "f8", maxshape=(None, size * RECORD), chunks=(4, 50))
    mine = range(rank, ROWS, size)
    band = range(COLUMNS * rank // size, COLUMNS * (rank + 1) // size)
    for k in range(rounds):
        with strided.collective:
            strided[rank::size, :] = values(k, mine, range(COLUMNS))
        with blocks.collective:
            blocks[:, band.start:band.stop] = values(k, range(ROWS), band)
        grown.resize(k + 1, axis=0)
        with grown.collective:
            grown[k, rank * RECORD:(rank + 1) * RECORD] = values(k, [rank], range(RECORD))[0]
        if k % 10 == 9:
            f.flush()
    total = 0.0
    for d in (strided, blocks, grown):
        with d.collective:
            read = d[...]
        total += float((read.ravel() * (np.arange(read.size) % 13 + 1)).sum())
if rank == 0:
    print(f"sum {total:.6f}")
