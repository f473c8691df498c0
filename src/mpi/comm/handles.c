/* SPDX-License-Identifier: BSD-3-Clause */
/* The predefined objects of this folder. Executables may hold copies of them (R_X86_64_COPY), made
 * before any constructor runs: what depends on the job is filled in by comm_module_init. */
#include "mpi/comm/comm.h"

#define PREDEFINED(k, f, index)                                                                    \
	{                                                                                          \
		.kind = (k), .flags = OBJECT_PREDEFINED | (f), .refs = 1, .f_index = (index)       \
	}

struct ompi_predefined_group_t ompi_mpi_group_null = {
    .group = {.obj = PREDEFINED(OBJECT_GROUP, OBJECT_NULL, 0), .rank = MPI_UNDEFINED}};

struct ompi_predefined_communicator_t ompi_mpi_comm_world = {
    .comm = {.obj = PREDEFINED(OBJECT_COMM, 0, 0), .name = "MPI_COMM_WORLD"}};
struct ompi_predefined_communicator_t ompi_mpi_comm_self = {
    .comm = {.obj = PREDEFINED(OBJECT_COMM, 0, 1), .name = "MPI_COMM_SELF"}};
struct ompi_predefined_communicator_t ompi_mpi_comm_null = {
    .comm = {.obj = PREDEFINED(OBJECT_COMM, OBJECT_NULL, 2),
	     .rank = MPI_PROC_NULL,
	     .group = &ompi_mpi_group_null.group, /* MPI_ALLTOALLW of Fortran looks at its size */
	     .name = "MPI_COMM_NULL"}};

struct ompi_predefined_group_t ompi_mpi_group_empty = {
    .group = {.obj = PREDEFINED(OBJECT_GROUP, 0, 1), .rank = MPI_UNDEFINED, .fortran_index = 1}};

struct ompi_predefined_errhandler_t ompi_mpi_errhandler_null = {
    .errhandler = {.obj = PREDEFINED(OBJECT_ERRHANDLER, OBJECT_NULL, 0)}};
struct ompi_predefined_errhandler_t ompi_mpi_errors_are_fatal = {
    .errhandler = {.obj = PREDEFINED(OBJECT_ERRHANDLER, 0, 1), .action = ERRHANDLER_ABORT}};
struct ompi_predefined_errhandler_t ompi_mpi_errors_return = {
    .errhandler = {.obj = PREDEFINED(OBJECT_ERRHANDLER, 0, 2), .action = ERRHANDLER_RETURN}};
/* Fatal until libmpi_cxx.so.40 puts its throwing functions in (errhandler.c). */
struct ompi_predefined_errhandler_t ompi_mpi_errors_throw_exceptions = {
    .errhandler = {.obj = PREDEFINED(OBJECT_ERRHANDLER, 0, 3), .action = ERRHANDLER_CALL}};

struct ompi_predefined_info_t ompi_mpi_info_null = {
    .info = {.obj = PREDEFINED(OBJECT_INFO, OBJECT_NULL, 0)}};
struct ompi_predefined_info_t ompi_mpi_info_env = {.info = {.obj = PREDEFINED(OBJECT_INFO, 0, 1)}};
