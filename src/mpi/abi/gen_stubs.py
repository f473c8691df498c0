#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes the functions of mpi.h and of its extensions that the library does not implement: each
raises MPI_ERR_UNSUPPORTED_OPERATION through the error handler of its communicator, window or file
argument and leaves its output arguments alone.

usage: gen_stubs.py NM LIBRARY.a INCLUDE_DIR OUTPUT"""

import re
import subprocess
import sys

EXTENSIONS = ['openmpi/mpiext/mpiext_pcollreq_c.h']

HEAD = '''/* Made by gen_stubs.py: what mpi.h declares and this library does not implement. */
#include "mpi/abi/abi.h"
'''


def declarations(text):
    """name (without the leading P) -> (return type, [parameter text])"""
    text = re.sub(r'/\*.*?\*/', ' ', text, flags=re.S)
    text = re.sub(r'__mpi_interface_\w+__\s*\((?:[^()]|\([^()]*\))*\)', ' ', text)
    found = {}
    for m in re.finditer(r'OMPI_DECLSPEC\s+([\w\s]+?[\s\*]+)(MPIX?_\w+)\s*\(([^;]*)\)\s*;', text):
        parameters = ' '.join(m[3].split())
        found[m[2]] = (' '.join(m[1].split()),
                       [] if parameters in ('', 'void') else parameters.split(','))
    return found


def defined_symbols(nm, library):
    out = subprocess.run([nm, '--defined-only', '-g', library], check=True, capture_output=True,
                         text=True).stdout
    return {line.split()[-1] for line in out.splitlines() if len(line.split()) == 3}


def join_parenthesised(parts):
    """Function pointer parameters contain commas: put them together again."""
    whole, depth = [], 0
    for part in parts:
        if depth:
            whole[-1] += ',' + part
        else:
            whole.append(part)
        depth += part.count('(') - part.count(')')
    return whole


def parameter(text):
    """(type, name, is_array): '' when the declaration has no name."""
    m = re.fullmatch(r'\s*(.*?[\s\*])(\w+)\s*((?:\[[^\]]*\])*)\s*', text)
    return (m[1].strip(), m[2], bool(m[3])) if m else (text.strip(), '', False)


def scope(name, parameters):
    if name.startswith('MPI_File_'):
        return 'ABI_FILE', 'NULL'
    for kind, handle in (('ABI_COMM', 'MPI_Comm'), ('ABI_WIN', 'MPI_Win')):
        for type_text, argument, is_array in parameters:
            if type_text == handle and argument and not is_array:
                return kind, argument
    return 'ABI_WORLD', 'NULL'


def stub(name, return_type, parts):
    if return_type != 'int':
        sys.exit(f'{name} returns {return_type}: it has no way to return an error; implement it')
    parts = join_parenthesised(parts)
    kind, handle = scope(name, [parameter(p) for p in parts])
    prototype = ','.join(parts).strip() or 'void'
    return f'''
int P{name}({prototype});
int P{name}({prototype})
{{
	return abi_unsupported({kind}, {handle}, "{name}");
}}
extern __typeof(P{name}) {name} __attribute__((weak, alias("P{name}")));
'''


def main():
    nm, library, include, output = sys.argv[1:]
    have = defined_symbols(nm, library)
    wanted = {}
    for header in ['mpi.h'] + EXTENSIONS:
        with open(f'{include}/{header}') as f:
            wanted.update(declarations(f.read()))
    if len(wanted) < 400:
        sys.exit(f'only {len(wanted)} functions found in {include}: not headers of Open MPI 4.1?')
    half = [n for n in wanted if ('P' + n in have) != (n in have)]
    if half:
        sys.exit('without its other name, MPI_ or PMPI_: ' + ' '.join(sorted(half)))
    with open(output, 'w') as f:
        f.write(HEAD)
        for name, (return_type, parts) in sorted(wanted.items()):
            if name not in have:
                f.write(stub(name, return_type, parts))


main()
