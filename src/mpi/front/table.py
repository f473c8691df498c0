# SPDX-License-Identifier: BSD-3-Clause
"""Reads functions.tsv and constants.tsv, and what the compiled library defines."""

import re
import subprocess

HANDLES = {
    'MPI_Comm': 'comm', 'MPI_Group': 'group', 'MPI_Datatype': 'type', 'MPI_Op': 'op',
    'MPI_Request': 'request', 'MPI_Message': 'message', 'MPI_Errhandler': 'errhandler',
    'MPI_Info': 'info', 'MPI_Win': 'win', 'MPI_File': 'file',
    'MPI_Session': 'session',
}
# Handles that the library itself makes as pointers, the same in every ABI.
POINTERS = {'MPI_T_enum', 'MPI_T_cvar_handle', 'MPI_T_pvar_handle', 'MPI_T_pvar_session',
            'MPI_T_event_registration', 'MPI_T_event_instance'}
INTEGERS = {'int': 'int', 'double': 'double', 'MPI_Aint': 'MPI_Aint', 'MPI_Count': 'MPI_Count',
            'MPI_Offset': 'MPI_Offset', 'MPI_Fint': 'MPI_Fint', 'MPI_T_cb_safety': 'int',
            'MPI_T_source_order': 'int', 'char': 'char', 'void': 'void'}


class Parameter:
    """base: the type without const, pointers and arrays; depth: how many of those there are."""

    def __init__(self, text):
        m = re.fullmatch(r'(const\s+)?(\w+)\s*([\s\*]*)(\w+)\s*((?:\[[^\]]*\])*)', text.strip())
        if not m:
            raise ValueError(f'parameter not understood: {text}')
        self.const = bool(m[1])
        self.base, self.name = m[2], m[4]
        self.stars = m[3].count('*')
        self.array = bool(m[5])
        self.brackets = m[5]
        self.depth = self.stars + (1 if self.array else 0)
        self.callback = self.base.endswith(('_function', '_function_c'))

    def declare(self, handle):
        """As C, with the name; handle gives the C type of a kind of handle."""
        if self.callback or self.base in POINTERS:
            base = 'void *'
            stars = self.stars if self.base in POINTERS else 0
        elif self.base in HANDLES:
            base, stars = handle(HANDLES[self.base]), self.stars
        elif self.base == 'MPI_Status':
            base, stars = handle('status'), self.stars
        else:
            base, stars = INTEGERS[self.base], self.stars
        space = '' if base.endswith('*') else ' '
        const = ' const ' if self.const and base.endswith('*') and (stars or self.array) else ''
        before = 'const ' if self.const and not const else ''
        return f'{before}{base}{space}{const}{"*" * stars}{self.name}{self.brackets}'


class Function:
    def __init__(self, name, result, parameters):
        self.name, self.result = name, result
        self.short = name[len('MPI_'):]
        parts = [] if parameters == 'void' else parameters.split(', ')
        self.variadic = bool(parts) and parts[-1] == '...'
        self.parameters = [Parameter(p) for p in parts if p != '...']


def functions(path):
    found = {}
    with open(path) as f:
        for line in f:
            if not line.startswith(('#', 'name\t')):
                name, result, parameters = line.rstrip('\n').split('\t')
                found[name] = (result, parameters)
    return [Function(name, *rest) for name, rest in found.items()]


def constants(path, abi):
    """name -> (value in the ABI, value in the core), each a string or ''."""
    out = {}
    with open(path) as f:
        for line in f:
            if line.startswith(('#', 'name\t')):
                continue
            name, standard, mpich, core = line.rstrip('\n').split('\t')
            out[name] = ({'standard': standard, 'mpich': mpich}[abi], core)
    return out


def core_handles(compiler, include):
    """Names that the core's mpi.h gives to predefined objects: its macros that stand for one."""
    text = subprocess.run([*compiler, '-dM', '-E', include + '/mpi.h'], check=True,
                          capture_output=True, text=True).stdout
    return set(re.findall(r'^#define (MPI_\w+) OMPI_PREDEFINED_GLOBAL\(', text, flags=re.M)) | {'MPI_SESSION_NULL'}  # mpi/mpi4.h


def defined_symbols(nm, library):
    out = subprocess.run([nm, '--defined-only', '-g', library], check=True, capture_output=True,
                         text=True).stdout
    return {line.split()[-1] for line in out.splitlines() if len(line.split()) == 3}


# Macros of the hand-written files that define functions, and how these are named.
DEFINING = {'FRONT': ['{1}'], 'STATUS_SET': ['{0}'], 'DARRAY': ['{0}'],
            'STATUS_FIELD': ['Status_get_{0}', 'Status_set_{0}'],
            'KEYVAL_FREE': ['{0}'], 'ERRHANDLER': ['{0}_create_errhandler'], 'INTEGERS': ['{0}_toint', '{0}_fromint']}


def written_by_hand(sources):
    """Names of the functions that the sources define."""
    names = set()
    for path in sources:
        with open(path) as f:
            text = f.read()
        for macro, words in re.findall(r'^(\w+)\(([\w\s\*]+(?:,\s*\w+)?)', text, flags=re.M):
            arguments = [w.strip() for w in words.split(',')]
            names |= {'MPI_' + n.format(*arguments, '') for n in DEFINING.get(macro, [])}
    return names
