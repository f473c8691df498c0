#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Makes the entry points of a front library (front.h) from functions.tsv and constants.tsv.

usage: gen_front.py ABI NM LIBRARY.a INCLUDE_DIR HEADER SOURCE HAND_WRITTEN.c… -- CC

HEADER gets the prototypes of the core (core_X) and of the front (front_X), the conversions of
constants, and the tables of predefined handles. SOURCE gets the entry points that no HAND_WRITTEN
file defines. A function that the core does not have fails with a sentence that names it."""

import os
import re
import sys

from table import (HANDLES, constants, core_handles, defined_symbols, functions, written_by_hand)

# Enumerations: what their names match. Single values, unless the family is one of bits.
FAMILIES = {
    'error': r'MPI_ERR_(?!LASTCODE)\w+|MPI_T_ERR_\w+|MPI_SUCCESS',
    'combiner': r'MPI_COMBINER_\w+',
    'typeclass': r'MPI_TYPECLASS_\w+',
    'compare': r'MPI_(IDENT|CONGRUENT|SIMILAR|UNEQUAL)',
    'topology': r'MPI_(CART|GRAPH|DIST_GRAPH)',
    'split': r'MPI_COMM_TYPE_\w+',
    'lock': r'MPI_LOCK_\w+',
    'flavor': r'MPI_WIN_FLAVOR_\w+',
    'model': r'MPI_WIN_(UNIFIED|SEPARATE)',
    'order': r'MPI_ORDER_\w+',
    'distribute': r'MPI_DISTRIBUTE_(NONE|BLOCK|CYCLIC)',
    'whence': r'MPI_SEEK_\w+',
    'thread': r'MPI_THREAD_\w+',
    'keyval': r'MPI_(TAG_UB|IO|HOST|WTIME_IS_GLOBAL|APPNUM|LASTUSEDCODE|UNIVERSE_SIZE|KEYVAL_INVALID)'
              r'|MPI_WIN_(BASE|DISP_UNIT|SIZE|CREATE_FLAVOR|MODEL)',
    'verbosity': r'MPI_T_VERBOSITY_\w+',
    'binding': r'MPI_T_BIND_\w+',
    'scope': r'MPI_T_SCOPE_\w+',
    'pvar': r'MPI_T_PVAR_CLASS_\w+',
}
BITS = {
    'assert': r'MPI_MODE_(NOCHECK|NOPRECEDE|NOPUT|NOSTORE|NOSUCCEED)',
    'amode': r'MPI_MODE_(APPEND|CREATE|DELETE_ON_CLOSE|EXCL|RDONLY|RDWR|SEQUENTIAL|UNIQUE_OPEN|WRONLY)',
}
# Single constants that the hand-written parts name: FRONT_X and the core's MPI_X.
SINGLES = ['BUFFER_AUTOMATIC', 'ANY_SOURCE', 'ANY_TAG', 'PROC_NULL', 'ROOT', 'UNDEFINED', 'IN_PLACE', 'ERR_LASTCODE',
           'DISTRIBUTE_DFLT_DARG', 'DISPLACEMENT_CURRENT', 'VERSION', 'SUBVERSION',
           'MAX_PROCESSOR_NAME', 'MAX_PORT_NAME', 'MAX_INFO_KEY', 'MAX_INFO_VAL',
           'MAX_OBJECT_NAME', 'MAX_ERROR_STRING', 'MAX_LIBRARY_VERSION_STRING']

# How an argument is converted: by its name, and where a name has two meanings by its function.
INTEGER_IN = {
    'source': 'rank', 'dest': 'rank', 'root': 'rank', 'target_rank': 'rank', 'rank': 'rank',
    'local_leader': 'rank', 'remote_leader': 'rank', 'tag': 'tag', 'sendtag': 'tag',
    'recvtag': 'tag', 'errorcode': 'error', 'errorclass': 'error', 'keyval': 'keyval',
    'comm_keyval': 'keyval', 'type_keyval': 'keyval', 'win_keyval': 'keyval',
    'lock_type': 'lock', 'assert': 'assert', 'amode': 'amode', 'whence': 'whence',
    'order': 'order', 'split_type': 'split', 'typeclass': 'typeclass', 'required': 'thread',
    'var_class': 'pvar',
}
INTEGER_OUT = {
    'provided': 'thread', 'errorcode': 'error', 'errorclass': 'error', 'combiner': 'combiner',
    'result': 'compare', 'rank_source': 'rank', 'rank_dest': 'rank', 'amode': 'amode',
    'verbosity': 'verbosity', 'bind': 'binding', 'scope': 'scope', 'var_class': 'pvar',
}
PLAIN = {('MPI_Abort', 'errorcode')}  # the job's exit status
SPECIAL_OUT = {('MPI_Topo_test', 'status'): 'topology'}
BUFFERS = {'sendbuf', 'recvbuf'}
WEIGHTS = {'sourceweights', 'destweights', 'weights'}
NULLS = {'type': 'MPI_DATATYPE_NULL', **{kind: f'MPI_{kind.upper()}_NULL' for kind in HANDLES.values()
                                         if kind != 'type'}}
# Messages of nothing may have the null type.
MESSAGES = {'MPI_' + name for name in (
    'Send Bsend Ssend Rsend Isend Ibsend Issend Irsend Send_init Bsend_init Ssend_init Rsend_init '
    'Recv Irecv Mrecv Imrecv Recv_init Sendrecv Isendrecv').split()}
# Functions that read the handle which they get by address.
IN_OUT = re.compile(r'MPI_(\w+_free|Comm_disconnect|Session_finalize|File_close|Type_commit|Wait|Test|Start|Cancel'
                    r'|Mrecv|Imrecv)(_c)?$')


def length_of(function, parameter):
    """How many elements an array has, as C in terms of the parameters."""
    neighbours = 'eighbor_' in function.name
    if parameter.name.startswith('array_of_'):
        return 'ndims' if any(p.name == 'ndims' for p in function.parameters) else 'count'
    if parameter.name.startswith('send') or parameter.name == 'sdispls':
        sent = f'front_outdegree(comm)' if neighbours else 'front_members(comm)'
        return sent if neighbours else f'(front_in_place(sendbuf) ? 0 : {sent})'
    return 'front_indegree(comm)' if neighbours else 'front_members(comm)'


class Entry:
    """The body of one function, put together parameter by parameter."""

    def __init__(self, function):
        self.f = function
        self.before, self.arguments, self.after = [], [], []
        for p in function.parameters:
            self.parameter(p)

    def parameter(self, p):
        n = p.name
        if p.base in HANDLES and not p.callback:
            self.handle(p, HANDLES[p.base])
        elif p.base == 'MPI_Status':
            self.status(p)
        elif p.base == 'int' and p.depth == 0 and n in INTEGER_IN and (self.f.name, n) not in PLAIN:
            self.arguments.append(f'front_{INTEGER_IN[n]}_in({n})')
        elif p.base == 'int' and p.depth == 1 and n.endswith('keyval'):
            self.before.append(f'int core_{n} = {n} ? front_keyval_in(*{n}) : 0;')
            self.arguments.append(f'{n} ? &core_{n} : NULL')
            self.after.append(f'if ({n})\n\t\t*{n} = front_keyval_out(core_{n});')
        elif p.base == 'int' and p.stars == 1 and not p.const and self.out(n):
            self.arguments.append(n)
            self.after.append(f'if (!rc && {n})\n\t\t*{n} = front_{self.out(n)}_out(*{n});')
        elif n == 'buffer' and 'attach' in self.f.name:
            self.arguments.append(f'front_attached_in({n})')
        elif n == 'buffer_addr' and 'detach' in self.f.name:
            self.arguments.append(n)
            self.after.append(f'if (!rc)\n\t\tfront_attached_out({n});')
        elif n in BUFFERS:
            self.arguments.append(f'front_buffer_in({n})')
        elif n in WEIGHTS:
            self.arguments.append(f'front_weights_in({n})')
        elif p.base == 'MPI_Offset' and n == 'disp' and p.depth == 0:
            self.arguments.append(f'front_displacement_in({n})')
        else:
            self.arguments.append(n)

    def out(self, name):
        return SPECIAL_OUT.get((self.f.name, name)) or INTEGER_OUT.get(name)

    def handle(self, p, kind):
        n = p.name
        before = self.f.parameters[self.f.parameters.index(p) - 1]
        if kind == 'type' and p.depth == 0 and before.base == 'int' and self.f.name in MESSAGES:
            self.arguments.append(f'front_type_of({n}, {before.name})')
        elif p.depth == 0:
            self.arguments.append(f'front_{kind}_in({n})')
        elif p.array and p.const and kind == 'type':
            self.before.append(f'struct front_array all_{n};\n\t'
                               f'front_array_types(&all_{n}, {n}, {length_of(self.f, p)});')
            self.arguments.append(f'all_{n}.at')
            self.after.append(f'front_array_drop(&all_{n});')
        elif p.array:
            sys.exit(f'{self.f.name}: the array {n} needs a function of its own')
        elif IN_OUT.fullmatch(self.f.name):
            self.before.append(f'void *core_{n} = {n} ? front_{kind}_in(*{n}) : NULL;')
            self.arguments.append(f'{n} ? &core_{n} : NULL')
            self.after.append(f'if (core_{n})\n\t\t*{n} = front_{kind}_out(core_{n});')
        else:
            # also where the call fails: the handle is null then, as MPICH makes it
            self.before.append(f'void *core_{n} = {NULLS[kind]};')
            self.arguments.append(f'{n} ? &core_{n} : NULL')
            self.after.append(f'if (LIKELY({n} != NULL))\n\t\t*{n} = front_{kind}_out(core_{n});')

    def status(self, p):
        n = p.name
        if p.const:
            self.before.append(f'MPI_Status core_{n};\n\tif ({n})\n\t\t'
                               f'front_status_in(&core_{n}, {n});')
            self.arguments.append(f'{n} ? &core_{n} : NULL')
            return
        self.before.append(f'MPI_Status core_{n};\n\tfront_status_begin(&core_{n});')
        self.arguments.append(f'front_ignored({n}) ? MPI_STATUS_IGNORE : &core_{n}')
        self.after.append(f'if (!front_ignored({n}))\n\t\tfront_status_end({n}, &core_{n});')

    def body(self):
        call = f'core_{self.f.short}({", ".join(self.arguments)})'
        if self.f.result != 'int':
            return f'\treturn {call};\n'
        if not self.after:
            return ''.join(f'\t{b}\n' for b in self.before) + f'\treturn front_error_out({call});\n'
        return (''.join(f'\t{b}\n' for b in self.before) + f'\tint rc = {call};\n' +
                ''.join(f'\t{a}\n' for a in self.after) + '\treturn front_error_out(rc);\n')


def prototype(function, prefix, handle):
    parameters = ', '.join(p.declare(handle) for p in function.parameters) or 'void'
    if function.variadic:
        parameters += ', ...'
    result = handle(HANDLES[function.result]) if function.result in HANDLES else function.result
    return f'{result} {prefix}{function.short}({parameters})'


def front_type(kind):
    return f'front_{kind}'


def core_type(kind):
    return 'MPI_Status' if kind == 'status' else 'void *'


def refused(function):
    """A body for what the core does not have."""
    scope, handle = 'ABI_WORLD', 'NULL'
    for p in function.parameters:
        if p.depth == 0 and p.base in ('MPI_Comm', 'MPI_Win', 'MPI_File'):
            kind = HANDLES[p.base]
            scope, handle = f'ABI_{kind.upper()}', f'front_{kind}_in({p.name})'
            break
    if function.result != 'int':
        return None
    return (f'\treturn front_error_out(abi_unsupported({scope}, {handle}, '
            f'"{function.name}"));\n')


def narrowed(large, small):
    """The body of X_c in terms of X; None where their parameters differ in more than width."""
    if len(large.parameters) != len(small.parameters):
        return None
    before, arguments, after, fits, typed = [], [], [], [], {}
    pairs = list(zip(large.parameters, small.parameters))
    for at, (p, q) in enumerate(pairs):
        if p.name != q.name or p.depth != q.depth or p.callback:
            return None
        following = pairs[at + 1][0] if at + 1 < len(pairs) else None
        if p.name in typed:
            arguments.append(typed[p.name])
        elif (p.base in WIDE and q.base == 'int' and p.depth == 0 and following
              and following.base == 'MPI_Datatype' and following.depth == 0):
            before.append(f'struct front_large large_{p.name} = {{0}};')
            fits.append(f'front_large_begin(&large_{p.name}, {p.name}, {following.name})')
            arguments.append(f'large_{p.name}.count')
            typed[following.name] = f'large_{p.name}.type'
            after.append(f'front_large_end(&large_{p.name});')
        elif p.base == q.base or (p.base in WIDE and q.base in WIDE):
            cast = '' if p.base == q.base or p.depth == 0 else '(void *)'
            arguments.append(f'{cast}{p.name}')
        elif p.depth == 0:
            before.append(f'if (UNLIKELY(!front_fits({p.name})))\n\t\t'
                          f'return front_too_large("{large.name}");')
            arguments.append(f'(int){p.name}')
        elif p.const and p.array:
            before.append(f'struct front_narrow all_{p.name} = {{0}};')
            fits.append(f'front_narrow(&all_{p.name}, {p.name}, {length_of(large, p)})')
            arguments.append(f'all_{p.name}.at')
            after.append(f'front_narrow_drop(&all_{p.name});')
        elif p.stars == 1 and not p.const:
            inward = f' = {p.name} ? (int)*{p.name} : 0' if p.name == 'position' else ' = 0'
            before.append(f'int small_{p.name}{inward};')
            arguments.append(f'{p.name} ? &small_{p.name} : NULL')
            after.append(f'if ({p.name} && !rc)\n\t\t*{p.name} = small_{p.name};')
        else:
            return None
    text = ''.join(f'\t{b}\n' for b in before)
    if fits:
        conditions = ' &&\n\t    '.join(fits)
        text += (f'\tint rc = {conditions}\n\t\t? front_{small.short}({", ".join(arguments)})\n'
                 f'\t\t: front_too_large("{large.name}");\n')
    else:
        text += f'\tint rc = front_{small.short}({", ".join(arguments)});\n'
    return text + ''.join(f'\t{a}\n' for a in after) + '\treturn rc;\n'


WIDE = {'MPI_Aint', 'MPI_Count', 'MPI_Offset'}


def missing_core(function):
    """A function of the core that the core does not have, for hand-written callers."""
    scope, handle = 'ABI_WORLD', 'NULL'
    for p in function.parameters:
        if p.depth == 0 and p.base in ('MPI_Comm', 'MPI_Win', 'MPI_File'):
            scope, handle = f'ABI_{HANDLES[p.base].upper()}', p.name
            break
    return (f'\n{prototype(function, "core_", core_type)}\n{{\n'
            f'\treturn abi_unsupported({scope}, {handle}, "{function.name}");\n}}\n')


def header(abi, table, values, have, predefined, ours):
    out = [f'/* Made by gen_front.py for the ABI {abi}. */']
    for name, (mine, core) in values.items():
        if core and not name.startswith('MPI_T_PVAR_ALL') and mine and in_family(name):
            out.append(f'_Static_assert((int)({name}) == (int)({core}), "{name}");')
    for name in SINGLES:
        mine = values['MPI_' + name][0]
        out.append(f'enum {{ FRONT_{name} = (int)({mine}) }};')
    for family, pattern in FAMILIES.items():
        pairs = [(core, mine, name) for name, (mine, core) in values.items()
                 if mine and core and re.fullmatch(pattern, name)]
        for way, a, b in (('in', 1, 0), ('out', 0, 1)):
            seen, cases = set(), []
            for pair in pairs:
                if pair[a] not in seen:
                    seen.add(pair[a])
                    cases.append(f'\tcase (int)({pair[a]}):\n\t\treturn (int)({pair[b]}); /* {pair[2]} */\n')
            out.append(f'static inline int front_{family}_{way}_known(int v, int other)\n{{\n'
                       '\tswitch (v) {\n' + ''.join(cases) + '\t}\n\treturn other;\n}')
    for family, pattern in BITS.items():
        pairs = [(core, mine) for name, (mine, core) in values.items()
                 if mine and core and re.fullmatch(pattern, name)]
        for way, a, b in (('in', 1, 0), ('out', 0, 1)):
            known = ' | '.join(p[a] for p in pairs)
            bits = ' |\n\t       '.join(f'(v & {p[a]} ? {p[b]} : 0)' for p in pairs)
            rest = f' |\n\t       (v & ~({known}) ? 1 << 30 : 0)' if way == 'in' else ''
            out.append(f'static inline int front_{family}_{way}(int v)\n{{\n\treturn {bits}{rest};\n}}')
    for kind in HANDLES.values():
        entries = [(values[n][0], n) for n in predefined.get(kind, [])]
        out.append(f'#define FRONT_PREDEFINED_{kind.upper()}(X) ' +
                   ' '.join(f'X({value}, {name})' for value, name in entries))
    for f in table:
        if f.name.replace('MPI', 'PMPI', 1) in have:
            out.append(f'{prototype(f, "core_", core_type)} __asm__("core_P{f.name}");')
        elif f.name in ours:
            out.append(f'{prototype(f, "core_", core_type)};')
        out.append(f'{prototype(f, "front_", front_type)} __asm__("P{f.name}");')
    return '\n'.join(out) + '\n'


def in_family(name):
    return any(re.fullmatch(p, name) for p in (*FAMILIES.values(), *BITS.values()))


KIND_PATTERN = {
    'comm': r'MPI_COMM_(NULL|WORLD|SELF)', 'group': r'MPI_GROUP_\w+', 'win': r'MPI_WIN_NULL',
    'file': r'MPI_FILE_NULL', 'session': r'MPI_SESSION_NULL', 'message': r'MPI_MESSAGE_\w+', 'info': r'MPI_INFO_(NULL|ENV)',
    'errhandler': r'MPI_ERRHANDLER_NULL|MPI_ERRORS_(ARE_FATAL|RETURN|ABORT)',
    'request': r'MPI_REQUEST_NULL',
    'op': r'MPI_(OP_NULL|SUM|MIN|MAX|PROD|BAND|BOR|BXOR|LAND|LOR|LXOR|MINLOC|MAXLOC|REPLACE|NO_OP)',
}


def predefined_handles(values, known):
    """kind -> names, in the order of constants.tsv; everything between types is a type."""
    out = {kind: [] for kind in HANDLES.values()}
    names = list(values)
    types = names[names.index('MPI_DATATYPE_NULL'):names.index('MPI_COMPLEX32') + 1]
    for name, (mine, _) in values.items():
        if not mine or name not in known:
            continue
        if name in types:
            # a type that this ABI has not is its null handle there
            if name == 'MPI_DATATYPE_NULL' or mine != values['MPI_DATATYPE_NULL'][0]:
                out['type'].append(name)
            continue
        for kind, pattern in KIND_PATTERN.items():
            if re.fullmatch(pattern, name):
                out[kind].append(name)
    return out


def entry(f, by_name, have):
    if f.name.replace('MPI', 'PMPI', 1) in have:
        return Entry(f).body()
    if f.name.endswith('_c') and f.name[:-2] in by_name:
        text = narrowed(f, by_name[f.name[:-2]])
        if text:
            return text
    return refused(f)


def main():
    abi, nm, library, include, header_path, source_path = sys.argv[1:7]
    cut = sys.argv.index('--')
    hand, compiler = sys.argv[7:cut], sys.argv[cut + 1:]
    here = os.path.dirname(os.path.abspath(__file__))
    table = functions(f'{here}/functions.tsv')
    values = constants(f'{here}/constants.tsv', abi)
    have = defined_symbols(nm, library)
    ours = written_by_hand(hand)
    by_name = {f.name: f for f in table}
    with open(header_path, 'w') as out:
        out.write(header(abi, table, values, have, predefined_handles(values, core_handles(compiler, include)),
                         ours))
    with open(source_path, 'w') as out:
        out.write(f'/* Made by gen_front.py for the ABI {abi}. */\n#include "mpi/front/front.h"\n')
        for f in table:
            if f.name in ours and f.name.replace('MPI', 'PMPI', 1) not in have and f.result == 'int':
                out.write(missing_core(f))
            if f.name in ours:
                continue
            text = entry(f, by_name, have)
            if text is None:
                sys.exit(f'{f.name} returns {f.result} and can say no error; write it by hand')
            out.write(f'\n{prototype(f, "front_", front_type)}\n{{\n{text}}}\nFRONT_ALIAS({f.short});\n')


main()
