/* SPDX-License-Identifier: BSD-3-Clause */
/* Null and no-process handles of the kinds that have no other home. As large as Open MPI's. */
#include "mpi/abi/abi.h"

struct ompi_predefined_message_t {
	struct object obj;
	char reserved[256 - sizeof(struct object)];
};
struct ompi_predefined_win_t {
	struct object obj;
	char reserved[512 - sizeof(struct object)];
};
struct ompi_predefined_file_t {
	struct object obj;
	char reserved[1536 - sizeof(struct object)];
};

struct ompi_predefined_message_t ompi_message_null = {
    .obj = OBJECT_STATIC(OBJECT_MESSAGE, OBJECT_NULL)};
struct ompi_predefined_message_t ompi_message_no_proc = {.obj = OBJECT_STATIC(OBJECT_MESSAGE, 0)};
struct ompi_predefined_win_t ompi_mpi_win_null = {.obj = OBJECT_STATIC(OBJECT_WIN, OBJECT_NULL)};
struct ompi_predefined_file_t ompi_mpi_file_null = {.obj = OBJECT_STATIC(OBJECT_FILE, OBJECT_NULL)};
