/* SPDX-License-Identifier: BSD-3-Clause */
/* How much a message held, in elements; and what generalized requests report. */
#include "mpi/datatype/datatype.h"

static bool usable(const struct datatype *t)
{
	return datatype_ok(t) && t->committed;
}

int PMPI_Get_count(const MPI_Status *status, MPI_Datatype type, int *count)
{
	API_ENTER("MPI_Get_count");
	const struct datatype *t = datatype_of(type);
	if (!usable(t))
		return API_FAIL(NULL, MPI_ERR_TYPE);
	if (!status || !count)
		return API_FAIL(NULL, MPI_ERR_ARG);
	const size_t bytes = status->_ucount;
	if (t->size == 0)
		*count = bytes ? MPI_UNDEFINED : 0;
	else
		*count = bytes % t->size ? MPI_UNDEFINED : type_int(bytes / t->size);
	return API_LEAVE(NULL, MPI_SUCCESS);
}
API_ALIAS(Get_count);

/* False: the message ends inside an element. */
static int elements(const MPI_Status *status, const struct datatype *t, size_t *n, bool *whole)
{
	if (!status)
		return MPI_ERR_ARG;
	if (!usable(t))
		return MPI_ERR_TYPE;
	*whole = signature_elements(t->elements, status->_ucount, n);
	return MPI_SUCCESS;
}

int PMPI_Get_elements(const MPI_Status *status, MPI_Datatype type, int *count)
{
	API_ENTER("MPI_Get_elements");
	size_t n;
	bool whole;
	if (!count)
		return API_FAIL(NULL, MPI_ERR_ARG);
	const int rc = elements(status, datatype_of(type), &n, &whole);
	if (rc == MPI_SUCCESS)
		*count = whole ? type_int(n) : MPI_UNDEFINED;
	return API_LEAVE(NULL, rc);
}
API_ALIAS(Get_elements);

int PMPI_Get_elements_x(const MPI_Status *status, MPI_Datatype type, MPI_Count *count)
{
	API_ENTER("MPI_Get_elements_x");
	size_t n;
	bool whole;
	if (!count)
		return API_FAIL(NULL, MPI_ERR_ARG);
	const int rc = elements(status, datatype_of(type), &n, &whole);
	if (rc == MPI_SUCCESS)
		*count = whole ? (MPI_Count)n : MPI_UNDEFINED;
	return API_LEAVE(NULL, rc);
}
API_ALIAS(Get_elements_x);

static int set_elements(MPI_Status *status, const struct datatype *t, MPI_Count count)
{
	if (!datatype_ok(t))
		return MPI_ERR_TYPE;
	if (count < 0)
		return MPI_ERR_COUNT;
	if (status != MPI_STATUS_IGNORE)
		status->_ucount = signature_bytes(t->elements, (size_t)count);
	return MPI_SUCCESS;
}

int PMPI_Status_set_elements(MPI_Status *status, MPI_Datatype type, int count)
{
	API_ENTER("MPI_Status_set_elements");
	return API_LEAVE(NULL, set_elements(status, datatype_of(type), count));
}
API_ALIAS(Status_set_elements);

int PMPI_Status_set_elements_x(MPI_Status *status, MPI_Datatype type, MPI_Count count)
{
	API_ENTER("MPI_Status_set_elements_x");
	return API_LEAVE(NULL, set_elements(status, datatype_of(type), count));
}
API_ALIAS(Status_set_elements_x);

int PMPI_Status_set_cancelled(MPI_Status *status, int flag)
{
	API_ENTER("MPI_Status_set_cancelled");
	if (status == MPI_STATUS_IGNORE)
		return API_FAIL(NULL, MPI_ERR_ARG);
	status->_cancelled = flag;
	return API_LEAVE(NULL, MPI_SUCCESS);
}
API_ALIAS(Status_set_cancelled);
