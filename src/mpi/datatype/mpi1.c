/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of MPI-1 that MPI-3.0 removed and old programs still call. */
#include "mpi/datatype/datatype.h"

int PMPI_Type_hvector(int count, int blocklength, MPI_Aint stride, MPI_Datatype oldtype,
		      MPI_Datatype *newtype)
{
	API_ENTER("MPI_Type_hvector");
	return API_LEAVE(NULL, type_hvector(count, blocklength, stride, oldtype, newtype));
}
API_ALIAS(Type_hvector);

int PMPI_Type_hindexed(int count, int lengths[], MPI_Aint offsets[], MPI_Datatype oldtype,
		       MPI_Datatype *newtype)
{
	API_ENTER("MPI_Type_hindexed");
	return API_LEAVE(NULL, type_hindexed(count, lengths, offsets, oldtype, newtype));
}
API_ALIAS(Type_hindexed);

int PMPI_Type_struct(int count, int lengths[], MPI_Aint offsets[], MPI_Datatype oldtypes[],
		     MPI_Datatype *newtype)
{
	API_ENTER("MPI_Type_struct");
	return API_LEAVE(NULL, type_struct(count, lengths, offsets, oldtypes, newtype));
}
API_ALIAS(Type_struct);

static int bound(MPI_Datatype type, MPI_Aint *value, bool want_lb, bool want_ub)
{
	const struct datatype *t = datatype_of(type);
	if (!datatype_ok(t))
		return MPI_ERR_TYPE;
	if (!value)
		return MPI_ERR_ARG;
	*value = (want_lb ? t->lb : 0) + (want_ub ? t->extent : 0);
	return MPI_SUCCESS;
}

int PMPI_Type_extent(MPI_Datatype type, MPI_Aint *extent)
{
	API_ENTER("MPI_Type_extent");
	return API_LEAVE(NULL, bound(type, extent, false, true));
}
API_ALIAS(Type_extent);

int PMPI_Type_lb(MPI_Datatype type, MPI_Aint *lb)
{
	API_ENTER("MPI_Type_lb");
	return API_LEAVE(NULL, bound(type, lb, true, false));
}
API_ALIAS(Type_lb);

int PMPI_Type_ub(MPI_Datatype type, MPI_Aint *ub)
{
	API_ENTER("MPI_Type_ub");
	return API_LEAVE(NULL, bound(type, ub, true, true));
}
API_ALIAS(Type_ub);

/* Also before MPI_Init, as addresses need no library. */
int PMPI_Get_address(const void *location, MPI_Aint *address)
{
	static const char name[] = "MPI_Get_address";
	if (!address)
		return api_error(NULL, MPI_ERR_ARG, name);
	*address = (MPI_Aint)location;
	return MPI_SUCCESS;
}
API_ALIAS(Get_address);

int PMPI_Address(void *location, MPI_Aint *address)
{
	static const char name[] = "MPI_Address";
	if (!address)
		return api_error(NULL, MPI_ERR_ARG, name);
	*address = (MPI_Aint)location;
	return MPI_SUCCESS;
}
API_ALIAS(Address);
