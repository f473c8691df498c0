#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes predefined.inc: the integer that Open MPI's Fortran headers give to each predefined
handle, and the data symbol that mpi.h gives it in C.

usage: gen_handles.py INCLUDE_DIR OUTPUT"""

import re
import sys

KIND = {
    'MPI_Comm': 'OBJECT_COMM', 'MPI_Group': 'OBJECT_GROUP', 'MPI_Datatype': 'OBJECT_DATATYPE',
    'MPI_Op': 'OBJECT_OP', 'MPI_Request': 'OBJECT_REQUEST', 'MPI_Message': 'OBJECT_MESSAGE',
    'MPI_Errhandler': 'OBJECT_ERRHANDLER', 'MPI_Info': 'OBJECT_INFO', 'MPI_Win': 'OBJECT_WIN',
    'MPI_File': 'OBJECT_FILE',
}
# Types of Fortran that have no name in C.
FORTRAN_ONLY = {'MPI_REAL2': ('MPI_Datatype', 'ompi_mpi_real2')}


def c_handles(text):
    pattern = (r'#\s*define\s+(MPI_\w+)\s+OMPI_PREDEFINED_GLOBAL\(\s*(\w+)\s*,\s*(\w+)\s*\)')
    return {m[1]: (m[2], m[3]) for m in re.finditer(pattern, text)}


def fortran_integers(text):
    return [(m[1], int(m[2])) for m in re.finditer(r'parameter\s*\((MPI_\w+)=(\d+)\)', text)]


def main():
    include, output = sys.argv[1:]
    with open(include + '/mpi.h') as f:
        handles = c_handles(f.read())
    handles.update(FORTRAN_ONLY)
    entries = {}
    for header in ('mpif-handles.h', 'mpif-io-handles.h'):
        with open(f'{include}/{header}') as f:
            for name, index in fortran_integers(f.read()):
                if name not in handles:
                    sys.exit(f'{header} names {name}, which mpi.h does not define')
                handle_type, symbol = handles[name]
                entries[(KIND[handle_type], index)] = symbol
    if len(entries) < 80:
        sys.exit(f'only {len(entries)} handles found in {include}: not headers of Open MPI 4.1?')
    with open(output, 'w') as f:
        for (kind, index), symbol in sorted(entries.items()):
            f.write(f'PREDEFINED({kind}, {index}, {symbol})\n')


main()
