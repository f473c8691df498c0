/* SPDX-License-Identifier: BSD-3-Clause */
/* Size, views, pointers, and what else one can ask a file. */
#include <string.h>
#include "mpi/file/file.h"

int PMPI_File_get_size(MPI_File fh, MPI_Offset *size)
{
	FILE_ENTER("MPI_File_get_size", f, fh);
	uint64_t bytes = 0;
	if (!size)
		return FILE_LEAVE(f, MPI_ERR_ARG);
	int rc = io_get_size(f, &bytes);
	if (!rc)
		*size = (MPI_Offset)bytes;
	return FILE_LEAVE(f, rc);
}
API_ALIAS(File_get_size);

static int size_check(const struct file *f, MPI_Offset size)
{
	if (size < 0)
		return MPI_ERR_ARG;
	if (f->amode & MPI_MODE_SEQUENTIAL)
		return MPI_ERR_UNSUPPORTED_OPERATION;
	return f->amode & MPI_MODE_RDONLY ? MPI_ERR_READ_ONLY : MPI_SUCCESS;
}

int PMPI_File_set_size(MPI_File fh, MPI_Offset size)
{
	FILE_ENTER("MPI_File_set_size", f, fh);
	return FILE_LEAVE(f, io_set_size(f, (uint64_t)size, size_check(f, size)));
}
API_ALIAS(File_set_size);

int PMPI_File_preallocate(MPI_File fh, MPI_Offset size)
{
	FILE_ENTER("MPI_File_preallocate", f, fh);
	return FILE_LEAVE(f, io_preallocate(f, (uint64_t)size, size_check(f, size)));
}
API_ALIAS(File_preallocate);

int PMPI_File_sync(MPI_File fh)
{
	FILE_ENTER("MPI_File_sync", f, fh);
	return FILE_LEAVE(f, io_sync(f));
}
API_ALIAS(File_sync);

int PMPI_File_get_group(MPI_File fh, MPI_Group *group)
{
	FILE_ENTER("MPI_File_get_group", f, fh);
	if (!group)
		return FILE_LEAVE(f, MPI_ERR_ARG);
	group_retain(f->comm->group);
	*group = group_handle(f->comm->group);
	return FILE_LEAVE(f, MPI_SUCCESS);
}
API_ALIAS(File_get_group);

int PMPI_File_get_amode(MPI_File fh, int *amode)
{
	FILE_ENTER("MPI_File_get_amode", f, fh);
	if (!amode)
		return FILE_LEAVE(f, MPI_ERR_ARG);
	*amode = f->amode;
	return FILE_LEAVE(f, MPI_SUCCESS);
}
API_ALIAS(File_get_amode);

int PMPI_File_set_atomicity(MPI_File fh, int flag)
{
	FILE_ENTER("MPI_File_set_atomicity", f, fh);
	return FILE_LEAVE(f, io_set_atomicity(f, flag != 0));
}
API_ALIAS(File_set_atomicity);

int PMPI_File_get_atomicity(MPI_File fh, int *flag)
{
	FILE_ENTER("MPI_File_get_atomicity", f, fh);
	if (!flag)
		return FILE_LEAVE(f, MPI_ERR_ARG);
	*flag = f->atomic;
	return FILE_LEAVE(f, MPI_SUCCESS);
}
API_ALIAS(File_get_atomicity);

/* ---- views ---- */

static int view_check(const struct file *f, MPI_Offset disp, const struct datatype *etype,
		      const struct datatype *filetype, const char *datarep, MPI_Info info)
{
	if (info != MPI_INFO_NULL && !info_ok(info_of(info)))
		return MPI_ERR_INFO;
	if (!datatype_ok(etype) || !datatype_ok(filetype) || !etype->committed ||
	    !filetype->committed)
		return MPI_ERR_TYPE;
	if (!datarep)
		return MPI_ERR_ARG;
	if (disp == MPI_DISPLACEMENT_CURRENT)
		return f->amode & MPI_MODE_SEQUENTIAL ? MPI_SUCCESS : MPI_ERR_ARG;
	return disp < 0 ? MPI_ERR_ARG : MPI_SUCCESS;
}

int PMPI_File_set_view(MPI_File fh, MPI_Offset disp, MPI_Datatype etype, MPI_Datatype filetype,
		       const char *datarep, MPI_Info info)
{
	FILE_ENTER("MPI_File_set_view", f, fh);
	struct datatype *e = datatype_of(etype), *t = datatype_of(filetype);
	int rc = view_check(f, disp, e, t, datarep, info);
	return FILE_LEAVE(f, io_set_view(f, disp, e, t, datarep, rc));
}
API_ALIAS(File_set_view);

/* A type that the user may free, and may ask how it was made. */
static MPI_Datatype view_type(struct datatype *t)
{
	if (!(t->obj.flags & OBJECT_PREDEFINED)) {
		datatype_retain(t);
		t->handles++;
	}
	return datatype_handle(t);
}

int PMPI_File_get_view(MPI_File fh, MPI_Offset *disp, MPI_Datatype *etype, MPI_Datatype *filetype,
		       char *datarep)
{
	FILE_ENTER("MPI_File_get_view", f, fh);
	if (!disp || !etype || !filetype || !datarep)
		return FILE_LEAVE(f, MPI_ERR_ARG);
	const char *name = io_representation_name(&f->view);
	*disp = f->view.disp;
	*etype = view_type(f->view.etype);
	*filetype = view_type(f->view.filetype);
	memcpy(datarep, name, strlen(name) + 1);
	return FILE_LEAVE(f, MPI_SUCCESS);
}
API_ALIAS(File_get_view);

int PMPI_File_get_type_extent(MPI_File fh, MPI_Datatype datatype, MPI_Aint *extent)
{
	FILE_ENTER("MPI_File_get_type_extent", f, fh);
	const struct datatype *t = datatype_of(datatype);
	if (!datatype_ok(t))
		return FILE_LEAVE(f, MPI_ERR_TYPE);
	if (!extent)
		return FILE_LEAVE(f, MPI_ERR_ARG);
	/* holes keep their width */
	*extent = t->extent - (MPI_Aint)t->size + (MPI_Aint)io_bytes(f, t, 1);
	return FILE_LEAVE(f, MPI_SUCCESS);
}
API_ALIAS(File_get_type_extent);

int PMPI_Register_datarep(const char *datarep, MPI_Datarep_conversion_function *read_conversion_fn,
			  MPI_Datarep_conversion_function *write_conversion_fn,
			  MPI_Datarep_extent_function *dtype_file_extent_fn, void *extra_state)
{
	API_ENTER("MPI_Register_datarep");
	static char known[16][MPI_MAX_DATAREP_STRING];
	size_t n = datarep ? strnlen(datarep, MPI_MAX_DATAREP_STRING) : 0, i = 0;
	static const char *const own[] = {"native", "internal", "external32"};
	if (n == 0 || n >= MPI_MAX_DATAREP_STRING)
		return FILE_LEAVE(NULL, MPI_ERR_ARG);
	for (size_t k = 0; k < ARRAY_LEN(own); k++)
		if (!strcmp(own[k], datarep))
			return FILE_LEAVE(NULL, MPI_ERR_DUP_DATAREP);
	while (i < ARRAY_LEN(known) && known[i][0]) {
		if (!strcmp(known[i], datarep))
			return FILE_LEAVE(NULL, MPI_ERR_DUP_DATAREP);
		i++;
	}
	if (i == ARRAY_LEN(known))
		return FILE_LEAVE(NULL, MPI_ERR_OTHER);
	memcpy(known[i], datarep, n + 1);
	return FILE_LEAVE(NULL, MPI_SUCCESS);
}
API_ALIAS(Register_datarep);

/* ---- pointers: in element types ---- */

static int pointer_check(const struct file *f, enum io_where where)
{
	return where == IO_OWN && f->amode & MPI_MODE_SEQUENTIAL ? MPI_ERR_UNSUPPORTED_OPERATION
								 : MPI_SUCCESS;
}

static int seek(struct file *f, enum io_where where, MPI_Offset offset, int whence)
{
	MPI_Offset unit = (MPI_Offset)f->view.etype_bytes;
	uint64_t bytes = 0;
	size_t now = 0;
	int rc = pointer_check(f, where);
	if (!rc && whence != MPI_SEEK_SET && whence != MPI_SEEK_CUR && whence != MPI_SEEK_END)
		rc = MPI_ERR_ARG;
	if (!rc && whence == MPI_SEEK_CUR)
		rc = io_position(f, where, &now);
	if (!rc && whence == MPI_SEEK_END) {
		rc = io_get_size(f, &bytes);
		now = io_view_before(&f->view, bytes);
		now = (now + (size_t)unit - 1) / (size_t)unit * (size_t)unit;
	}
	offset = offset * unit + (MPI_Offset)now;
	if (!rc && offset < 0)
		rc = MPI_ERR_ARG;
	return io_seek(f, (uint8_t)where, offset, rc);
}

int PMPI_File_seek(MPI_File fh, MPI_Offset offset, int whence)
{
	FILE_ENTER("MPI_File_seek", f, fh);
	return FILE_LEAVE(f, seek(f, IO_OWN, offset, whence));
}
API_ALIAS(File_seek);

int PMPI_File_seek_shared(MPI_File fh, MPI_Offset offset, int whence)
{
	FILE_ENTER("MPI_File_seek_shared", f, fh);
	return FILE_LEAVE(f, seek(f, IO_SHARED, offset, whence));
}
API_ALIAS(File_seek_shared);

static int position(struct file *f, enum io_where where, MPI_Offset *offset)
{
	size_t at;
	int rc = offset ? pointer_check(f, where) : MPI_ERR_ARG;
	if (!rc)
		rc = io_position(f, (uint8_t)where, &at);
	if (!rc)
		*offset = (MPI_Offset)(at / f->view.etype_bytes);
	return rc;
}

int PMPI_File_get_position(MPI_File fh, MPI_Offset *offset)
{
	FILE_ENTER("MPI_File_get_position", f, fh);
	return FILE_LEAVE(f, position(f, IO_OWN, offset));
}
API_ALIAS(File_get_position);

int PMPI_File_get_position_shared(MPI_File fh, MPI_Offset *offset)
{
	FILE_ENTER("MPI_File_get_position_shared", f, fh);
	return FILE_LEAVE(f, position(f, IO_SHARED, offset));
}
API_ALIAS(File_get_position_shared);

int PMPI_File_get_byte_offset(MPI_File fh, MPI_Offset offset, MPI_Offset *disp)
{
	FILE_ENTER("MPI_File_get_byte_offset", f, fh);
	if (!disp || offset < 0)
		return FILE_LEAVE(f, MPI_ERR_ARG);
	if (f->amode & MPI_MODE_SEQUENTIAL)
		return FILE_LEAVE(f, MPI_ERR_UNSUPPORTED_OPERATION);
	*disp = io_view_place(&f->view, (size_t)offset * f->view.etype_bytes);
	return FILE_LEAVE(f, MPI_SUCCESS);
}
API_ALIAS(File_get_byte_offset);
