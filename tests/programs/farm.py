# SPDX-License-Identifier: BSD-3-Clause
"""farm.py TASKS: a master that gives tasks to whoever answers first, in numpy. Its order is another one in each run;
what it prints, a sum and a product of matrices that all ranks share at the end, is not."""
import sys
import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
tasks = int(sys.argv[1])


def result(task):
    a = np.random.default_rng(task).integers(0, 1000, (40, 40))
    return int(np.linalg.matrix_power(a % 7, 3).sum() % 1000003)


def master():
    done, given, total, left = 0, 0, 0, comm.size - 1
    status = MPI.Status()
    while left:
        found = comm.recv(source=MPI.ANY_SOURCE, tag=MPI.ANY_TAG, status=status)
        if status.tag == 1:
            total += found
            done += 1
            if done % 100 == 0:
                print("done", done, flush=True)
        comm.send(given if given < tasks else None, dest=status.source)
        left -= given >= tasks
        given += given < tasks
    return total


def worker():
    comm.send(None, dest=0, tag=0)
    while True:
        task = comm.recv(source=0)
        if task is None:
            return 0
        comm.send(result(task), dest=0, tag=1)


if comm.rank == 0:
    total = master()
else:
    total = worker()
values = comm.allgather((comm.rank, result(comm.rank)))
mean = np.zeros(50)
comm.Allreduce(np.arange(50, dtype=float) / (comm.rank + 1), mean)
if comm.rank == 0:
    print("total", total, values, mean[-1])
