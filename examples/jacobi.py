#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Heat in a square plate by Jacobi's method, on as many ranks as there are.

  hale run -n 4 --ckpt-every 1s -- /usr/bin/python3 examples/jacobi.py [ITERATIONS [SIZE]]

The plate is cut into strips of rows; each iteration trades the rows at the cuts with the
neighbours and asks all ranks for the largest change. Numbers are printed to the last digit, so that
two runs, one of them through faults, can be compared byte by byte.
"""

import sys

import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size
iterations = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
n = int(sys.argv[2]) if len(sys.argv) > 2 else 512

rows = n // size + (rank < n % size)
plate = np.zeros((rows + 2, n + 2))
if rank == 0:
    plate[0, :] = 1.0  # the hot edge
up = rank - 1 if rank > 0 else MPI.PROC_NULL
down = rank + 1 if rank < size - 1 else MPI.PROC_NULL

for i in range(1, iterations + 1):
    comm.Sendrecv(plate[1], dest=up, recvbuf=plate[-1], source=down)
    comm.Sendrecv(plate[-2], dest=down, recvbuf=plate[0], source=up)
    new = 0.25 * (plate[:-2, 1:-1] + plate[2:, 1:-1] + plate[1:-1, :-2] + plate[1:-1, 2:])
    change = comm.allreduce(float(np.abs(new - plate[1:-1, 1:-1]).max()) if rows else 0.0, MPI.MAX)
    plate[1:-1, 1:-1] = new
    if rank == 0 and i % max(1, iterations // 20) == 0:
        print(f"iteration {i}: largest change {change!r}", flush=True)

strips = comm.gather(plate[1:-1, 1:-1], root=0)
if rank == 0:
    whole = np.concatenate(strips)
    mean, middle = float(whole.mean()), float(whole[n // 2, n // 2])
    print(f"mean temperature {mean!r}, in the middle {middle!r}")
