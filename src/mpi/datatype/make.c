/* SPDX-License-Identifier: BSD-3-Clause */
/* The constructors that take blocks: contiguous, vector, indexed, struct. */
#include <string.h>
#include "mpi/datatype/datatype.h"

int type_describe(struct datatype *t, int combiner, int nints, int naddrs, struct datatype *old,
		  int **ints, MPI_Aint **addrs)
{
	struct datatype **types;
	if (!t)
		return MPI_ERR_NO_MEM;
	if (!datatype_describe(t, combiner, nints, naddrs, 1, ints, addrs, &types)) {
		datatype_release(t);
		return MPI_ERR_NO_MEM;
	}
	datatype_retain(old);
	types[0] = old;
	return MPI_SUCCESS;
}

/* count blocks: MPI_ERR_COUNT for a bad count, MPI_ERR_ARG for missing arrays or bad lengths. */
static int check_blocks(int count, const int *lengths, const void *offsets)
{
	if (count < 0)
		return MPI_ERR_COUNT;
	if (count > 0 && (!lengths || !offsets))
		return MPI_ERR_ARG;
	for (int i = 0; i < count; i++) {
		if (lengths[i] < 0)
			return MPI_ERR_ARG;
	}
	return MPI_SUCCESS;
}

static int check_equal_blocks(int count, int length, const void *offsets)
{
	if (count < 0)
		return MPI_ERR_COUNT;
	return length < 0 || (count > 0 && !offsets) ? MPI_ERR_ARG : MPI_SUCCESS;
}

static int contiguous(int count, MPI_Datatype oldtype, MPI_Datatype *newtype)
{
	struct datatype *old = datatype_of(oldtype);
	int *ints, rc = type_check(old, newtype);
	if (rc == MPI_SUCCESS && count < 0)
		rc = MPI_ERR_COUNT;
	if (rc != MPI_SUCCESS)
		return rc;
	struct datatype *t = datatype_make_vector(old, 1, (size_t)count, 0);
	rc = type_describe(t, MPI_COMBINER_CONTIGUOUS, 1, 0, old, &ints, NULL);
	if (rc != MPI_SUCCESS)
		return rc;
	ints[0] = count;
	*newtype = datatype_handle(t);
	return MPI_SUCCESS;
}

int PMPI_Type_contiguous(int count, MPI_Datatype oldtype, MPI_Datatype *newtype)
{
	API_ENTER("MPI_Type_contiguous");
	return API_LEAVE(NULL, contiguous(count, oldtype, newtype));
}
API_ALIAS(Type_contiguous);

static int check_vector(int count, int blocklength, const struct datatype *old,
			const MPI_Datatype *newtype)
{
	const int rc = type_check(old, newtype);
	if (rc != MPI_SUCCESS)
		return rc;
	if (count < 0)
		return MPI_ERR_COUNT;
	return blocklength < 0 ? MPI_ERR_ARG : MPI_SUCCESS;
}

static int vector(int count, int blocklength, int stride, MPI_Datatype oldtype,
		  MPI_Datatype *newtype)
{
	struct datatype *old = datatype_of(oldtype);
	int *ints, rc = check_vector(count, blocklength, old, newtype);
	if (rc != MPI_SUCCESS)
		return rc;
	struct datatype *t =
	    datatype_make_vector(old, (size_t)count, (size_t)blocklength, stride * old->extent);
	rc = type_describe(t, MPI_COMBINER_VECTOR, 3, 0, old, &ints, NULL);
	if (rc != MPI_SUCCESS)
		return rc;
	ints[0] = count;
	ints[1] = blocklength;
	ints[2] = stride;
	*newtype = datatype_handle(t);
	return MPI_SUCCESS;
}

int PMPI_Type_vector(int count, int blocklength, int stride, MPI_Datatype oldtype,
		     MPI_Datatype *newtype)
{
	API_ENTER("MPI_Type_vector");
	return API_LEAVE(NULL, vector(count, blocklength, stride, oldtype, newtype));
}
API_ALIAS(Type_vector);

int type_hvector(int count, int blocklength, MPI_Aint stride, MPI_Datatype oldtype,
		 MPI_Datatype *newtype)
{
	struct datatype *old = datatype_of(oldtype);
	int *ints, rc = check_vector(count, blocklength, old, newtype);
	MPI_Aint *addrs;
	if (rc != MPI_SUCCESS)
		return rc;
	struct datatype *t = datatype_make_vector(old, (size_t)count, (size_t)blocklength, stride);
	rc = type_describe(t, MPI_COMBINER_HVECTOR, 2, 1, old, &ints, &addrs);
	if (rc != MPI_SUCCESS)
		return rc;
	ints[0] = count;
	ints[1] = blocklength;
	addrs[0] = stride;
	*newtype = datatype_handle(t);
	return MPI_SUCCESS;
}

int PMPI_Type_create_hvector(int count, int blocklength, MPI_Aint stride, MPI_Datatype oldtype,
			     MPI_Datatype *newtype)
{
	API_ENTER("MPI_Type_create_hvector");
	return API_LEAVE(NULL, type_hvector(count, blocklength, stride, oldtype, newtype));
}
API_ALIAS(Type_create_hvector);

static int indexed(int count, const int *lengths, const int *offsets, MPI_Datatype oldtype,
		   MPI_Datatype *newtype)
{
	struct datatype *old = datatype_of(oldtype);
	int *ints, rc = type_check(old, newtype);
	if (rc == MPI_SUCCESS)
		rc = check_blocks(count, lengths, offsets);
	if (rc != MPI_SUCCESS)
		return rc;
	struct datatype_builder b = {0};
	for (int i = 0; i < count; i++)
		datatype_builder_add(&b, old, (size_t)lengths[i], offsets[i] * old->extent);
	struct datatype *t = datatype_builder_finish(&b);
	rc = type_describe(t, MPI_COMBINER_INDEXED, 2 * count + 1, 0, old, &ints, NULL);
	if (rc != MPI_SUCCESS)
		return rc;
	ints[0] = count;
	for (int i = 0; i < count; i++) {
		ints[1 + i] = lengths[i];
		ints[1 + count + i] = offsets[i];
	}
	*newtype = datatype_handle(t);
	return MPI_SUCCESS;
}

int PMPI_Type_indexed(int count, const int lengths[], const int offsets[], MPI_Datatype oldtype,
		      MPI_Datatype *newtype)
{
	API_ENTER("MPI_Type_indexed");
	return API_LEAVE(NULL, indexed(count, lengths, offsets, oldtype, newtype));
}
API_ALIAS(Type_indexed);

int type_hindexed(int count, const int *lengths, const MPI_Aint *offsets, MPI_Datatype oldtype,
		  MPI_Datatype *newtype)
{
	struct datatype *old = datatype_of(oldtype);
	int *ints, rc = type_check(old, newtype);
	MPI_Aint *addrs;
	if (rc == MPI_SUCCESS)
		rc = check_blocks(count, lengths, offsets);
	if (rc != MPI_SUCCESS)
		return rc;
	struct datatype_builder b = {0};
	for (int i = 0; i < count; i++)
		datatype_builder_add(&b, old, (size_t)lengths[i], offsets[i]);
	struct datatype *t = datatype_builder_finish(&b);
	rc = type_describe(t, MPI_COMBINER_HINDEXED, count + 1, count, old, &ints, &addrs);
	if (rc != MPI_SUCCESS)
		return rc;
	ints[0] = count;
	for (int i = 0; i < count; i++) {
		ints[1 + i] = lengths[i];
		addrs[i] = offsets[i];
	}
	*newtype = datatype_handle(t);
	return MPI_SUCCESS;
}

int PMPI_Type_create_hindexed(int count, const int lengths[], const MPI_Aint offsets[],
			      MPI_Datatype oldtype, MPI_Datatype *newtype)
{
	API_ENTER("MPI_Type_create_hindexed");
	return API_LEAVE(NULL, type_hindexed(count, lengths, offsets, oldtype, newtype));
}
API_ALIAS(Type_create_hindexed);

static int indexed_block(int count, int length, const int *offsets, MPI_Datatype oldtype,
			 MPI_Datatype *newtype)
{
	struct datatype *old = datatype_of(oldtype);
	int *ints, rc = type_check(old, newtype);
	if (rc == MPI_SUCCESS)
		rc = check_equal_blocks(count, length, offsets);
	if (rc != MPI_SUCCESS)
		return rc;
	struct datatype_builder b = {0};
	for (int i = 0; i < count; i++)
		datatype_builder_add(&b, old, (size_t)length, offsets[i] * old->extent);
	struct datatype *t = datatype_builder_finish(&b);
	rc = type_describe(t, MPI_COMBINER_INDEXED_BLOCK, count + 2, 0, old, &ints, NULL);
	if (rc != MPI_SUCCESS)
		return rc;
	ints[0] = count;
	ints[1] = length;
	for (int i = 0; i < count; i++)
		ints[2 + i] = offsets[i];
	*newtype = datatype_handle(t);
	return MPI_SUCCESS;
}

int PMPI_Type_create_indexed_block(int count, int length, const int offsets[], MPI_Datatype oldtype,
				   MPI_Datatype *newtype)
{
	API_ENTER("MPI_Type_create_indexed_block");
	return API_LEAVE(NULL, indexed_block(count, length, offsets, oldtype, newtype));
}
API_ALIAS(Type_create_indexed_block);

static int hindexed_block(int count, int length, const MPI_Aint *offsets, MPI_Datatype oldtype,
			  MPI_Datatype *newtype)
{
	struct datatype *old = datatype_of(oldtype);
	int *ints, rc = type_check(old, newtype);
	MPI_Aint *addrs;
	if (rc == MPI_SUCCESS)
		rc = check_equal_blocks(count, length, offsets);
	if (rc != MPI_SUCCESS)
		return rc;
	struct datatype_builder b = {0};
	for (int i = 0; i < count; i++)
		datatype_builder_add(&b, old, (size_t)length, offsets[i]);
	struct datatype *t = datatype_builder_finish(&b);
	rc = type_describe(t, MPI_COMBINER_HINDEXED_BLOCK, 2, count, old, &ints, &addrs);
	if (rc != MPI_SUCCESS)
		return rc;
	ints[0] = count;
	ints[1] = length;
	for (int i = 0; i < count; i++)
		addrs[i] = offsets[i];
	*newtype = datatype_handle(t);
	return MPI_SUCCESS;
}

int PMPI_Type_create_hindexed_block(int count, int length, const MPI_Aint offsets[],
				    MPI_Datatype oldtype, MPI_Datatype *newtype)
{
	API_ENTER("MPI_Type_create_hindexed_block");
	return API_LEAVE(NULL, hindexed_block(count, length, offsets, oldtype, newtype));
}
API_ALIAS(Type_create_hindexed_block);

static int check_struct(int count, const int *lengths, const MPI_Aint *offsets,
			const MPI_Datatype *oldtypes, const MPI_Datatype *newtype)
{
	if (count < 0)
		return MPI_ERR_COUNT;
	if (!newtype)
		return MPI_ERR_TYPE;
	if (count > 0 && (!lengths || !offsets || !oldtypes))
		return MPI_ERR_ARG;
	for (int i = 0; i < count; i++) {
		if (!datatype_ok(datatype_of(oldtypes[i])))
			return MPI_ERR_TYPE;
		if (lengths[i] < 0)
			return MPI_ERR_ARG;
	}
	return MPI_SUCCESS;
}

int type_struct(int count, const int *lengths, const MPI_Aint *offsets,
		const MPI_Datatype *oldtypes, MPI_Datatype *newtype)
{
	const int rc = check_struct(count, lengths, offsets, oldtypes, newtype);
	if (rc != MPI_SUCCESS)
		return rc;
	struct datatype_builder b = {0};
	for (int i = 0; i < count; i++)
		datatype_builder_add(&b, datatype_of(oldtypes[i]), (size_t)lengths[i], offsets[i]);
	struct datatype *t = datatype_builder_finish(&b);
	int *ints;
	MPI_Aint *addrs;
	struct datatype **types;
	if (!t)
		return MPI_ERR_NO_MEM;
	if (!datatype_describe(t, MPI_COMBINER_STRUCT, count + 1, count, count, &ints, &addrs,
			       &types)) {
		datatype_release(t);
		return MPI_ERR_NO_MEM;
	}
	ints[0] = count;
	for (int i = 0; i < count; i++) {
		ints[1 + i] = lengths[i];
		addrs[i] = offsets[i];
		types[i] = datatype_of(oldtypes[i]);
		datatype_retain(types[i]);
	}
	*newtype = datatype_handle(t);
	return MPI_SUCCESS;
}

int PMPI_Type_create_struct(int count, const int lengths[], const MPI_Aint offsets[],
			    const MPI_Datatype oldtypes[], MPI_Datatype *newtype)
{
	API_ENTER("MPI_Type_create_struct");
	return API_LEAVE(NULL, type_struct(count, lengths, offsets, oldtypes, newtype));
}
API_ALIAS(Type_create_struct);
