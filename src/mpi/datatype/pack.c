/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Pack and its relatives. Packed data is the bytes themselves, without a header. */
#include <string.h>
#include "mpi/datatype/datatype.h"

/* Is there room for (or are there) `bytes` between position and size? */
static int check_room(size_t bytes, MPI_Aint position, MPI_Aint size)
{
	if (position < 0)
		return MPI_ERR_ARG;
	if (position > size || bytes > (size_t)(size - position))
		return MPI_ERR_TRUNCATE;
	return MPI_SUCCESS;
}

int PMPI_Pack(const void *inbuf, int incount, MPI_Datatype type, void *outbuf, int outsize,
	      int *position, MPI_Comm comm)
{
	API_ENTER("MPI_Pack");
	struct comm *c = comm_of(comm);
	const struct datatype *t = datatype_of(type);
	if (!comm_ok(c))
		return API_FAIL(NULL, MPI_ERR_COMM);
	if (!outbuf || !position || outsize < 0)
		return API_FAIL(c, MPI_ERR_ARG);
	int rc = check_buffer(inbuf, incount, t);
	if (rc != MPI_SUCCESS)
		return API_FAIL(c, rc);
	const size_t bytes = (size_t)incount * t->size;
	rc = check_room(bytes, *position, outsize);
	if (rc != MPI_SUCCESS)
		return API_FAIL(c, rc);
	datatype_pack(t, inbuf, (size_t)incount, 0, (char *)outbuf + *position, bytes);
	*position += (int)bytes;
	return API_LEAVE(c, MPI_SUCCESS);
}
API_ALIAS(Pack);

int PMPI_Unpack(const void *inbuf, int insize, int *position, void *outbuf, int outcount,
		MPI_Datatype type, MPI_Comm comm)
{
	API_ENTER("MPI_Unpack");
	struct comm *c = comm_of(comm);
	const struct datatype *t = datatype_of(type);
	if (!comm_ok(c))
		return API_FAIL(NULL, MPI_ERR_COMM);
	if (!inbuf || !position)
		return API_FAIL(c, MPI_ERR_ARG);
	int rc = check_buffer(outbuf, outcount, t);
	if (rc != MPI_SUCCESS)
		return API_FAIL(c, rc);
	const size_t bytes = (size_t)outcount * t->size;
	rc = check_room(bytes, *position, insize);
	if (rc != MPI_SUCCESS)
		return API_FAIL(c, rc);
	datatype_unpack(t, outbuf, (size_t)outcount, 0, (const char *)inbuf + *position, bytes);
	*position += (int)bytes;
	return API_LEAVE(c, MPI_SUCCESS);
}
API_ALIAS(Unpack);

int PMPI_Pack_size(int incount, MPI_Datatype type, MPI_Comm comm, int *size)
{
	API_ENTER("MPI_Pack_size");
	struct comm *c = comm_of(comm);
	const struct datatype *t = datatype_of(type);
	if (!comm_ok(c))
		return API_FAIL(NULL, MPI_ERR_COMM);
	if (!datatype_ok(t))
		return API_FAIL(c, MPI_ERR_TYPE);
	if (!size)
		return API_FAIL(c, MPI_ERR_ARG);
	if (incount < 0)
		return API_FAIL(c, MPI_ERR_COUNT);
	*size = type_int((size_t)incount * t->size);
	return API_LEAVE(c, MPI_SUCCESS);
}
API_ALIAS(Pack_size);

/* MPI-3.1 knows these three. */
static int representation(const char *name, bool *external)
{
	if (!name)
		return MPI_ERR_ARG;
	*external = strcmp(name, "external32") == 0;
	if (*external || strcmp(name, "native") == 0 || strcmp(name, "internal") == 0)
		return MPI_SUCCESS;
	return MPI_ERR_ARG;
}

static size_t external_size(const struct datatype *t, int count, bool external)
{
	return (size_t)count * (external ? signature_wire(t->elements) : t->size);
}

int PMPI_Pack_external(const char datarep[], const void *inbuf, int incount, MPI_Datatype type,
		       void *outbuf, MPI_Aint outsize, MPI_Aint *position)
{
	API_ENTER("MPI_Pack_external");
	const struct datatype *t = datatype_of(type);
	bool external;
	int rc = representation(datarep, &external);
	if (rc == MPI_SUCCESS && (!outbuf || !position || outsize < 0))
		rc = MPI_ERR_ARG;
	if (rc == MPI_SUCCESS)
		rc = check_buffer(inbuf, incount, t);
	if (rc != MPI_SUCCESS)
		return API_FAIL(NULL, rc);
	const size_t bytes = external_size(t, incount, external);
	rc = check_room(bytes, *position, outsize);
	if (rc != MPI_SUCCESS)
		return API_FAIL(NULL, rc);
	char *out = (char *)outbuf + *position;
	if (!external)
		datatype_pack(t, inbuf, (size_t)incount, 0, out, bytes);
	else if (!datatype_pack_external(t, inbuf, (size_t)incount, out))
		return API_FAIL(NULL, MPI_ERR_NO_MEM);
	*position += (MPI_Aint)bytes;
	return API_LEAVE(NULL, MPI_SUCCESS);
}
API_ALIAS(Pack_external);

int PMPI_Unpack_external(const char datarep[], const void *inbuf, MPI_Aint insize,
			 MPI_Aint *position, void *outbuf, int outcount, MPI_Datatype type)
{
	API_ENTER("MPI_Unpack_external");
	const struct datatype *t = datatype_of(type);
	bool external;
	int rc = representation(datarep, &external);
	if (rc == MPI_SUCCESS && (!inbuf || !position))
		rc = MPI_ERR_ARG;
	if (rc == MPI_SUCCESS)
		rc = check_buffer(outbuf, outcount, t);
	if (rc != MPI_SUCCESS)
		return API_FAIL(NULL, rc);
	const size_t bytes = external_size(t, outcount, external);
	rc = check_room(bytes, *position, insize);
	if (rc != MPI_SUCCESS)
		return API_FAIL(NULL, rc);
	const char *in = (const char *)inbuf + *position;
	if (!external)
		datatype_unpack(t, outbuf, (size_t)outcount, 0, in, bytes);
	else if (!datatype_unpack_external(t, outbuf, (size_t)outcount, in))
		return API_FAIL(NULL, MPI_ERR_NO_MEM);
	*position += (MPI_Aint)bytes;
	return API_LEAVE(NULL, MPI_SUCCESS);
}
API_ALIAS(Unpack_external);

int PMPI_Pack_external_size(const char datarep[], int incount, MPI_Datatype type, MPI_Aint *size)
{
	API_ENTER("MPI_Pack_external_size");
	const struct datatype *t = datatype_of(type);
	bool external;
	const int rc = representation(datarep, &external);
	if (rc != MPI_SUCCESS)
		return API_FAIL(NULL, rc);
	if (!datatype_ok(t))
		return API_FAIL(NULL, MPI_ERR_TYPE);
	if (!size)
		return API_FAIL(NULL, MPI_ERR_ARG);
	if (incount < 0)
		return API_FAIL(NULL, MPI_ERR_COUNT);
	*size = (MPI_Aint)external_size(t, incount, external);
	return API_LEAVE(NULL, MPI_SUCCESS);
}
API_ALIAS(Pack_external_size);
