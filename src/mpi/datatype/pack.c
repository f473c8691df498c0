/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Pack and its relatives. Packed data is the bytes themselves, without a header. */
#include <string.h>
#include "mpi/datatype/datatype.h"

int PMPI_Pack_c(const void *inbuf, MPI_Count incount, MPI_Datatype type, void *outbuf,
		MPI_Count outsize, MPI_Count *position, MPI_Comm comm);
int PMPI_Unpack_c(const void *inbuf, MPI_Count insize, MPI_Count *position, void *outbuf,
		  MPI_Count outcount, MPI_Datatype type, MPI_Comm comm);

/* Is there room for (or are there) `bytes` between position and size? */
static int check_room(size_t bytes, MPI_Count position, MPI_Count size)
{
	if (position < 0)
		return MPI_ERR_ARG;
	if (position > size || bytes > (size_t)(size - position))
		return MPI_ERR_TRUNCATE;
	return MPI_SUCCESS;
}

static int pack(const void *inbuf, MPI_Count incount, const struct datatype *t, void *outbuf,
		MPI_Count outsize, MPI_Count *position)
{
	if (!outbuf || !position || outsize < 0)
		return MPI_ERR_ARG;
	int rc = check_buffer(inbuf, incount, t);
	if (rc != MPI_SUCCESS)
		return rc;
	size_t bytes;
	if (__builtin_mul_overflow((size_t)incount, t->size, &bytes))
		return MPI_ERR_COUNT;
	rc = check_room(bytes, *position, outsize);
	if (rc != MPI_SUCCESS)
		return rc;
	datatype_pack(t, inbuf, (size_t)incount, 0, (char *)outbuf + *position, bytes);
	*position += (MPI_Count)bytes;
	return MPI_SUCCESS;
}

static int unpack(const void *inbuf, MPI_Count insize, MPI_Count *position, void *outbuf,
		  MPI_Count outcount, const struct datatype *t)
{
	if (!inbuf || !position)
		return MPI_ERR_ARG;
	int rc = check_buffer(outbuf, outcount, t);
	if (rc != MPI_SUCCESS)
		return rc;
	size_t bytes;
	if (__builtin_mul_overflow((size_t)outcount, t->size, &bytes))
		return MPI_ERR_COUNT;
	rc = check_room(bytes, *position, insize);
	if (rc != MPI_SUCCESS)
		return rc;
	datatype_unpack(t, outbuf, (size_t)outcount, 0, (const char *)inbuf + *position, bytes);
	*position += (MPI_Count)bytes;
	return MPI_SUCCESS;
}

int PMPI_Pack(const void *inbuf, int incount, MPI_Datatype type, void *outbuf, int outsize,
	      int *position, MPI_Comm comm)
{
	API_ENTER("MPI_Pack");
	struct comm *c = comm_of(comm);
	if (!comm_ok(c))
		return API_FAIL(NULL, MPI_ERR_COMM);
	MPI_Count at = position ? *position : 0;
	int rc = pack(inbuf, incount, datatype_of(type), outbuf, outsize, position ? &at : NULL);
	if (rc == MPI_SUCCESS)
		*position = (int)at;
	return API_LEAVE(c, rc);
}
API_ALIAS(Pack);

int PMPI_Pack_c(const void *inbuf, MPI_Count incount, MPI_Datatype type, void *outbuf,
		MPI_Count outsize, MPI_Count *position, MPI_Comm comm)
{
	API_ENTER("MPI_Pack_c");
	struct comm *c = comm_of(comm);
	if (!comm_ok(c))
		return API_FAIL(NULL, MPI_ERR_COMM);
	return API_LEAVE(c, pack(inbuf, incount, datatype_of(type), outbuf, outsize, position));
}
API_ALIAS(Pack_c);

int PMPI_Unpack(const void *inbuf, int insize, int *position, void *outbuf, int outcount,
		MPI_Datatype type, MPI_Comm comm)
{
	API_ENTER("MPI_Unpack");
	struct comm *c = comm_of(comm);
	if (!comm_ok(c))
		return API_FAIL(NULL, MPI_ERR_COMM);
	MPI_Count at = position ? *position : 0;
	int rc = unpack(inbuf, insize, position ? &at : NULL, outbuf, outcount, datatype_of(type));
	if (rc == MPI_SUCCESS)
		*position = (int)at;
	return API_LEAVE(c, rc);
}
API_ALIAS(Unpack);

int PMPI_Unpack_c(const void *inbuf, MPI_Count insize, MPI_Count *position, void *outbuf,
		  MPI_Count outcount, MPI_Datatype type, MPI_Comm comm)
{
	API_ENTER("MPI_Unpack_c");
	struct comm *c = comm_of(comm);
	if (!comm_ok(c))
		return API_FAIL(NULL, MPI_ERR_COMM);
	return API_LEAVE(c, unpack(inbuf, insize, position, outbuf, outcount, datatype_of(type)));
}
API_ALIAS(Unpack_c);

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

/* False: more bytes than there are. */
static bool external_size(const struct datatype *t, MPI_Count count, bool external, size_t *bytes)
{
	return !__builtin_mul_overflow((size_t)count,
				       external ? signature_wire(t->elements) : t->size, bytes) &&
	       *bytes <= PTRDIFF_MAX;
}

static int pack_external(const char *datarep, const void *inbuf, MPI_Count incount,
			 const struct datatype *t, void *outbuf, MPI_Count outsize,
			 MPI_Count *position)
{
	bool external;
	size_t bytes;
	int rc = representation(datarep, &external);
	if (rc == MPI_SUCCESS && (!outbuf || !position || outsize < 0))
		rc = MPI_ERR_ARG;
	if (rc == MPI_SUCCESS)
		rc = check_buffer(inbuf, incount, t);
	if (rc == MPI_SUCCESS && !external_size(t, incount, external, &bytes))
		rc = MPI_ERR_COUNT;
	if (rc == MPI_SUCCESS)
		rc = check_room(bytes, *position, outsize);
	if (rc != MPI_SUCCESS)
		return rc;
	char *out = (char *)outbuf + *position;
	if (!external)
		datatype_pack(t, inbuf, (size_t)incount, 0, out, bytes);
	else if (!datatype_pack_external(t, inbuf, (size_t)incount, out))
		return MPI_ERR_NO_MEM;
	*position += (MPI_Count)bytes;
	return MPI_SUCCESS;
}

static int unpack_external(const char *datarep, const void *inbuf, MPI_Count insize,
			   MPI_Count *position, void *outbuf, MPI_Count outcount,
			   const struct datatype *t)
{
	bool external;
	size_t bytes;
	int rc = representation(datarep, &external);
	if (rc == MPI_SUCCESS && (!inbuf || !position))
		rc = MPI_ERR_ARG;
	if (rc == MPI_SUCCESS)
		rc = check_buffer(outbuf, outcount, t);
	if (rc == MPI_SUCCESS && !external_size(t, outcount, external, &bytes))
		rc = MPI_ERR_COUNT;
	if (rc == MPI_SUCCESS)
		rc = check_room(bytes, *position, insize);
	if (rc != MPI_SUCCESS)
		return rc;
	const char *in = (const char *)inbuf + *position;
	if (!external)
		datatype_unpack(t, outbuf, (size_t)outcount, 0, in, bytes);
	else if (!datatype_unpack_external(t, outbuf, (size_t)outcount, in))
		return MPI_ERR_NO_MEM;
	*position += (MPI_Count)bytes;
	return MPI_SUCCESS;
}

static int pack_external_size(const char *datarep, MPI_Count incount, const struct datatype *t,
			      MPI_Count *size)
{
	bool external;
	size_t bytes;
	int rc = representation(datarep, &external);
	if (rc != MPI_SUCCESS)
		return rc;
	if (!datatype_ok(t))
		return MPI_ERR_TYPE;
	if (!size)
		return MPI_ERR_ARG;
	if (incount < 0 || !external_size(t, incount, external, &bytes))
		return MPI_ERR_COUNT;
	*size = (MPI_Count)bytes;
	return MPI_SUCCESS;
}

/* MPI_Aint and MPI_Count are both of 64 bits: positions need no copies. */
#define PACKED_EXTERNAL(suffix, count, place)                                                      \
	int PMPI_Pack_external##suffix(const char datarep[], const void *inbuf, count incount,     \
				       MPI_Datatype type, void *outbuf, place outsize,             \
				       place *position);                                           \
	int PMPI_Pack_external##suffix(const char datarep[], const void *inbuf, count incount,     \
				       MPI_Datatype type, void *outbuf, place outsize,             \
				       place *position)                                            \
	{                                                                                          \
		API_ENTER("MPI_Pack_external" #suffix);                                            \
		return API_LEAVE(NULL, pack_external(datarep, inbuf, incount, datatype_of(type),   \
						     outbuf, outsize, (MPI_Count *)position));     \
	}                                                                                          \
	API_ALIAS(Pack_external##suffix);                                                          \
	int PMPI_Unpack_external##suffix(const char datarep[], const void *inbuf, place insize,    \
					 place *position, void *outbuf, count outcount,            \
					 MPI_Datatype type);                                       \
	int PMPI_Unpack_external##suffix(const char datarep[], const void *inbuf, place insize,    \
					 place *position, void *outbuf, count outcount,            \
					 MPI_Datatype type)                                        \
	{                                                                                          \
		API_ENTER("MPI_Unpack_external" #suffix);                                          \
		return API_LEAVE(NULL,                                                             \
				 unpack_external(datarep, inbuf, insize, (MPI_Count *)position,    \
						 outbuf, outcount, datatype_of(type)));            \
	}                                                                                          \
	API_ALIAS(Unpack_external##suffix);                                                        \
	int PMPI_Pack_external_size##suffix(const char datarep[], count incount,                   \
					    MPI_Datatype type, place *size);                       \
	int PMPI_Pack_external_size##suffix(const char datarep[], count incount,                   \
					    MPI_Datatype type, place *size)                        \
	{                                                                                          \
		API_ENTER("MPI_Pack_external_size" #suffix);                                       \
		return API_LEAVE(NULL, pack_external_size(datarep, incount, datatype_of(type),     \
							  (MPI_Count *)size));                     \
	}                                                                                          \
	API_ALIAS(Pack_external_size##suffix)

PACKED_EXTERNAL(, int, MPI_Aint);
PACKED_EXTERNAL(_c, MPI_Count, MPI_Count);
