#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What our libraries put into the user's process is either MPI's interface or has our name on it.

A library that exports `json_parse` takes the place of every other `json_parse` in the process, so
the dynamic symbols of libhale.so begin with hale_ or HALE_, and those of the MPI libraries are MPI's.
"""

import argparse
import os
import re
import subprocess
import sys

RULES = {
    # and the functions of libc that it stands before, src/ckpt/masks.c, clocks.c and files.c
    "libhale.so": r"(hale|HALE)_|(epoll_pwait|ppoll|pselect|pthread_sigmask|sigaction|signal|signalfd"
                  r"|sigprocmask|sigsuspend|sigtimedwait|sigwait|sigwaitinfo|clock_gettime|clock_nanosleep"
                  r"|pthread_(clockjoin_np|cond_clockwait|cond_timedwait|cond_wait"
                  r"|mutex_clocklock|mutex_(lock|timedlock|trylock|unlock)"
                  r"|rwlock_clock(rd|wr)lock)|sem_clockwait|syscall|timer(_create|fd_settime)"
                  # ckpt/libc_replay.c, files_replicas.c
                  r"|clock|getentropy|getrandom|getrusage|gettimeofday|lseek(64)?|times?"
                  r"|creat(64)?|f(re)?open(64)?|f?truncate(64)?|link(at)?|symlink(at)?|unlink(at)?|remove|rmdir"
                  r"|rename(at2?)?|mk(dir|fifo|nod)(at)?|mkdtemp|mko?stemps?(64)?|open(at)?(64)?"
                  r"|__open(at)?(64)?_2|posix_spawn(p|_file_actions_addopen)?"
                  # ckpt/files_append.c, files_names.c
                  r"|bind|fallocate(64)?|fcntl(64)?|mmap(64)?|(sem|shm)_(open|unlink)"
                  # ckpt/files_back.c
                  r"|fseek(o(64)?)?|fsetpos|pwritev?(64)?|rewind"
                  # ckpt/kernel_ipc.c
                  r"|connect|inotify_add_watch|listen|mq_open|(msg|sem|shm)(ctl|get)|sem(timed)?op)$",
    # and the functions of libomp and libc that it stands before: src/task/omp.c, lock.c
    "libhale_task.so": r"(hale_task|HALE)_|__kmpc_|omp_((un)?set|test)_(nest_)?lock$"
                       r"|pthread_(mutex_(lock|clocklock|timedlock|trylock|unlock)"
                       r"|rwlock_((clock|timed|try)?(rd|wr)lock|unlock)|spin_(lock|trylock|unlock))$"
                       r"|mtx_(lock|timedlock|trylock|unlock)$",
    "libhale_opencl.so": r"cl(GetLayerInfo|InitLayer)$",
    "libhale_protect.so": r"hale_",
    "libhale_rio.so": r"rio_",
    "libhale_offload.so": r"hale_|snapify_",
    "libftb.so.0": r"(FTB|HALE_FTB)_",
    # and what libhale_task.so asks of it, src/mpi/task/link.c
    "libmpi.so.40": r"(P?MPIX?|mpi|ompi|OMPI|hale_tasks)_",
    "libmpich.so.12": r"(P?MPIX?|MPII|MPIR|hale_tasks)_",
    "libmpi_abi.so.1": r"(P?MPIX?|hale_tasks)_",
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
            print(f"{library} exports {n}: hide it (src/hale.map, src/mpi/abi) or rename it for the linker (src/base/names.h)")
        print(f"{library}: {len(names)} names, {len(strangers)} that should not be there")
        bad += len(strangers)
    sys.exit(1 if bad else 0)


main()
