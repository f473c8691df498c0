#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes mpi.h for the MPI standard's ABI, from functions.tsv and constants.tsv.

usage: gen_header.py OUTPUT"""

import os
import re
import sys

from table import HANDLES, POINTERS, constants

HEAD = '''/* The interface of MPI 5.0 with the ABI of the standard (its chapter 20): programs compiled with this
 * header run with every MPI that has libmpi_abi.so. Made from tables; see hale's docs/abi.md. */
#ifndef MPI_H_ABI
#define MPI_H_ABI
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef intptr_t MPI_Aint;
typedef int64_t MPI_Offset;
typedef int64_t MPI_Count;
typedef struct MPI_Status {
	int MPI_SOURCE, MPI_TAG, MPI_ERROR;
	int MPI_internal[5];
} MPI_Status;
'''

CALLBACKS = '''
typedef void MPI_User_function(void *, void *, int *, MPI_Datatype *);
typedef void MPI_User_function_c(void *, void *, MPI_Count *, MPI_Datatype *);
typedef int MPI_Grequest_query_function(void *, MPI_Status *);
typedef int MPI_Grequest_free_function(void *);
typedef int MPI_Grequest_cancel_function(void *, int);
typedef int MPI_Datarep_extent_function(MPI_Datatype, MPI_Aint *, void *);
typedef int MPI_Datarep_conversion_function(void *, MPI_Datatype, int, void *, MPI_Offset, void *);
typedef int MPI_Datarep_conversion_function_c(void *, MPI_Datatype, MPI_Count, void *, MPI_Offset,
					      void *);
typedef int MPI_Copy_function(MPI_Comm, int, void *, void *, void *, int *);
typedef int MPI_Delete_function(MPI_Comm, int, void *, void *);
'''

# Handles, and the first letters of the names of their values.
HANDLE_OF = [
    ('MPI_Comm', r'MPI_COMM_(NULL|WORLD|SELF)'), ('MPI_Group', r'MPI_GROUP_\w+'),
    ('MPI_Win', r'MPI_WIN_NULL'), ('MPI_File', r'MPI_FILE_NULL'),
    ('MPI_Session', r'MPI_SESSION_NULL'), ('MPI_Message', r'MPI_MESSAGE_\w+'),
    ('MPI_Info', r'MPI_INFO_(NULL|ENV)'), ('MPI_Request', r'MPI_REQUEST_NULL'),
    ('MPI_Errhandler', r'MPI_ERRHANDLER_NULL|MPI_ERRORS_\w+'),
    ('MPI_Op', r'MPI_(OP_NULL|SUM|MIN|MAX|PROD|BAND|BOR|BXOR|LAND|LOR|LXOR|MINLOC|MAXLOC|REPLACE|NO_OP)'),
    ('MPI_T_enum', r'MPI_T_ENUM_NULL'), ('MPI_T_cvar_handle', r'MPI_T_CVAR_HANDLE_NULL'),
    ('MPI_T_pvar_handle', r'MPI_T_PVAR_(HANDLE_NULL|ALL_HANDLES)'),
    ('MPI_T_pvar_session', r'MPI_T_PVAR_SESSION_NULL'),
    ('void *', r'MPI_(BOTTOM|IN_PLACE|BUFFER_AUTOMATIC)'), ('char **', r'MPI_ARGV_NULL'),
    ('char ***', r'MPI_ARGVS_NULL'), ('int *', r'MPI_ERRCODES_IGNORE'),
    ('MPI_Status *', r'MPI_STATUS(ES)?_IGNORE'),
    ('MPI_Datarep_conversion_function *', r'MPI_CONVERSION_FN_NULL'),
    ('MPI_Datarep_conversion_function_c *', r'MPI_CONVERSION_FN_NULL_C'),
    ('MPI_Offset', r'MPI_DISPLACEMENT_CURRENT'),
]


def values():
    here = os.path.dirname(os.path.abspath(__file__))
    table = {name: mine for name, (mine, _) in
             constants(f'{here}/constants.tsv', 'standard').items() if mine}
    names = list(table)
    first, last = names.index('MPI_DATATYPE_NULL'), names.index('MPI_COMPLEX32')
    for i, name in enumerate(names):
        kind = 'MPI_Datatype' if first <= i <= last else \
            next((k for k, pattern in HANDLE_OF if re.fullmatch(pattern, name)), None)
        value = f'({kind}){table[name]}' if kind else table[name]
        yield f'#define {name} ({value})'
    for name, value in (('MPI_UNWEIGHTED', 10), ('MPI_WEIGHTS_EMPTY', 11)):
        yield f'#define {name} ((int *){value})'
    for name, value in (('STATUS_SIZE', 8), ('SOURCE', 0), ('TAG', 1), ('ERROR', 2)):
        yield f'#define MPI_F_{name} {value}'


def callbacks():
    for kind, handle in (('Comm', 'MPI_Comm'), ('Type', 'MPI_Datatype'), ('Win', 'MPI_Win')):
        yield (f'typedef int MPI_{kind}_copy_attr_function({handle}, int, void *, void *, void *, '
               'int *);')
        yield f'typedef int MPI_{kind}_delete_attr_function({handle}, int, void *, void *);'
        upper = kind.upper()
        for name, which, value in (('NULL_COPY_FN', 'copy', 0), ('DUP_FN', 'copy', 1),
                                   ('NULL_DELETE_FN', 'delete', 0)):
            yield f'#define MPI_{upper}_{name} ((MPI_{kind}_{which}_attr_function *){value})'
    for name, which, value in (('NULL_COPY_FN', 'Copy', 0), ('DUP_FN', 'Copy', 1),
                               ('NULL_DELETE_FN', 'Delete', 0)):
        yield f'#define MPI_{name} ((MPI_{which}_function *){value})'
    for kind in ('Comm', 'File', 'Win', 'Session'):
        yield f'typedef void MPI_{kind}_errhandler_function(MPI_{kind} *, int *, ...);'
        yield f'typedef MPI_{kind}_errhandler_function MPI_{kind}_errhandler_fn;'
    event = 'MPI_T_event_registration'
    yield 'typedef int MPI_T_cb_safety, MPI_T_source_order;'
    yield f'typedef void MPI_T_event_cb_function(MPI_T_event_instance, {event}, int, void *);'
    yield f'typedef void MPI_T_event_free_cb_function({event}, int, void *);'
    yield f'typedef void MPI_T_event_dropped_cb_function(MPI_Count, {event}, int, int, void *);'


def prototypes():
    here = os.path.dirname(os.path.abspath(__file__))
    with open(f'{here}/functions.tsv') as f:
        rows = [line.rstrip('\n').split('\t') for line in f
                if not line.startswith(('#', 'name\t'))]
    removed = {'MPI_Address', 'MPI_Errhandler_create', 'MPI_Errhandler_get', 'MPI_Errhandler_set',
               'MPI_Type_extent', 'MPI_Type_hindexed', 'MPI_Type_hvector', 'MPI_Type_lb',
               'MPI_Type_struct', 'MPI_Type_ub'}
    for prefix in ('', 'P'):
        for name, result, parameters in rows:
            if name not in removed:
                yield f'{result} {prefix}{name}({parameters});'


def main():
    lines = [HEAD]
    for handle in sorted([*HANDLES, *POINTERS]):
        lines.append(f'typedef struct {handle.replace("MPI_", "MPI_ABI_", 1)} *{handle};')
    lines += [CALLBACKS, *callbacks(), '', *values(), '', *prototypes(), '', '#ifdef __cplusplus',
              '}', '#endif', '#endif']
    with open(sys.argv[1], 'w') as f:
        f.write('\n'.join(lines) + '\n')


main()
