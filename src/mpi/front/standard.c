/* SPDX-License-Identifier: BSD-3-Clause */
/* What only the standard's ABI has: its predefined handles, MPI_Abi_*, fields of a status. */
#include <string.h>
#include "mpi/front/front.h"

#pragma GCC diagnostic ignored "-Woverride-init"
#define STANDARD_ENTRY(value, name) [value] = (void *)name,
void *const standard_predefined[STANDARD_LAST] = {
    FRONT_PREDEFINED_COMM(STANDARD_ENTRY) FRONT_PREDEFINED_GROUP(STANDARD_ENTRY)
	FRONT_PREDEFINED_TYPE(STANDARD_ENTRY) FRONT_PREDEFINED_OP(STANDARD_ENTRY)
	    FRONT_PREDEFINED_REQUEST(STANDARD_ENTRY) FRONT_PREDEFINED_MESSAGE(STANDARD_ENTRY)
		FRONT_PREDEFINED_ERRHANDLER(STANDARD_ENTRY) FRONT_PREDEFINED_INFO(STANDARD_ENTRY)
		    FRONT_PREDEFINED_WIN(STANDARD_ENTRY) FRONT_PREDEFINED_FILE(STANDARD_ENTRY)
			FRONT_PREDEFINED_SESSION(STANDARD_ENTRY)};

void *front_first_object(uint32_t index)
{
	return (void *)1;
}

FRONT(int, Abi_get_version, (int *major, int *minor))
{
	if (!major || !minor)
		return front_error_out(MPI_ERR_ARG);
	*major = 1;
	*minor = 0;
	return MPI_SUCCESS;
}

/* What the ABI leaves open of C: the sizes of these types. */
FRONT(int, Abi_get_info, (front_info *info))
{
	static const char *const sizes[][2] = {
	    {"mpi_aint_size", "8"}, {"mpi_count_size", "8"}, {"mpi_offset_size", "8"}};
	void *made = NULL;
	int rc = info ? core_Info_create(&made) : MPI_ERR_ARG;

	for (size_t i = 0; !rc && i < ARRAY_LEN(sizes); i++)
		rc = core_Info_set(made, sizes[i][0], sizes[i][1]);
	if (!rc)
		*info = front_info_out(made);
	return front_error_out(rc);
}

/* No Fortran library of this ABI has said yet what its logicals look like. */
static struct {
	int size;
	char yes[16], no[16];
} booleans;

FRONT(int, Abi_set_fortran_booleans, (int size, void *yes, void *no))
{
	if (!yes || !no || (size != 1 && size != 2 && size != 4 && size != 8 && size != 16))
		return front_error_out(MPI_ERR_ARG);
	memcpy(booleans.yes, yes, (size_t)size);
	memcpy(booleans.no, no, (size_t)size);
	booleans.size = size;
	return MPI_SUCCESS;
}
FRONT(int, Abi_get_fortran_booleans, (int size, void *yes, void *no, int *is_set))
{
	if (!yes || !no || !is_set || size < 1 || size > 16)
		return front_error_out(MPI_ERR_ARG);
	*is_set = booleans.size == size;
	if (*is_set) {
		memcpy(yes, booleans.yes, (size_t)size);
		memcpy(no, booleans.no, (size_t)size);
	}
	return MPI_SUCCESS;
}

static void *fortran_info;
FRONT(int, Abi_set_fortran_info, (front_info info))
{
	void *copy = NULL;
	int rc = core_Info_dup(front_info_in(info), &copy);

	if (!rc)
		fortran_info = copy;
	return front_error_out(rc);
}
FRONT(int, Abi_get_fortran_info, (front_info *info))
{
	void *copy = NULL;
	int rc = !info ? MPI_ERR_ARG : fortran_info ? core_Info_dup(fortran_info, &copy) : MPI_SUCCESS;

	if (!rc)
		*info = front_info_out(copy);
	return front_error_out(rc);
}
