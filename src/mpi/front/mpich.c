/* SPDX-License-Identifier: BSD-3-Clause */
/* What only MPICH's ABI has: its predefined handles, variables, and names beside MPI_X. */
#include <string.h>
#include <sys/stat.h>
#include "mpi/front/front.h"

/* A compiler warns of entries that are named twice: MPI_LONG_LONG is MPI_LONG_LONG_INT. */
#pragma GCC diagnostic ignored "-Woverride-init"
#define MPICH_ENTRY(value, name)                                                                   \
	[(unsigned)(value) >> 30 == 1 ? (value) & 0xff : 0xff] =                                   \
	    (unsigned)(value) >> 30 == 1 ? (void *)name : NULL,
void *const mpich_predefined[FRONT_KINDS][256] = {
    [FRONT_COMM] = {FRONT_PREDEFINED_COMM(MPICH_ENTRY)},
    [FRONT_GROUP] = {FRONT_PREDEFINED_GROUP(MPICH_ENTRY)},
    [FRONT_TYPE] = {FRONT_PREDEFINED_TYPE(MPICH_ENTRY)},
    [FRONT_OP] = {FRONT_PREDEFINED_OP(MPICH_ENTRY)},
    [FRONT_MESSAGE] = {FRONT_PREDEFINED_MESSAGE(MPICH_ENTRY)},
    [FRONT_ERRHANDLER] = {FRONT_PREDEFINED_ERRHANDLER(MPICH_ENTRY)},
    [FRONT_INFO] = {FRONT_PREDEFINED_INFO(MPICH_ENTRY)},
};
void *const mpich_null[FRONT_KINDS] = {
    [FRONT_COMM] = MPI_COMM_NULL,   [FRONT_GROUP] = MPI_GROUP_NULL,
    [FRONT_TYPE] = MPI_DATATYPE_NULL, [FRONT_OP] = MPI_OP_NULL,
    [FRONT_REQUEST] = MPI_REQUEST_NULL, [FRONT_MESSAGE] = MPI_MESSAGE_NULL,
    [FRONT_ERRHANDLER] = MPI_ERRHANDLER_NULL, [FRONT_INFO] = MPI_INFO_NULL,
    [FRONT_WIN] = MPI_WIN_NULL,	    [FRONT_FILE] = MPI_FILE_NULL,
    [FRONT_SESSION] = MPI_SESSION_NULL,
};
const unsigned char mpich_bits[FRONT_KINDS] = {
    [FRONT_COMM] = MPICH_COMM,	   [FRONT_GROUP] = MPICH_GROUP,
    [FRONT_TYPE] = MPICH_TYPE,	   [FRONT_OP] = MPICH_OP,
    [FRONT_REQUEST] = MPICH_REQUEST, [FRONT_MESSAGE] = MPICH_MESSAGE,
    [FRONT_ERRHANDLER] = MPICH_ERRHANDLER, [FRONT_INFO] = MPICH_INFO,
    [FRONT_WIN] = MPICH_WIN,	   [FRONT_FILE] = MPICH_FILE,
    [FRONT_SESSION] = MPICH_SESSION,
};

void *front_first_object(uint32_t index)
{
	static void *const pairs[MPICH_PAIRS] = {MPI_FLOAT_INT, MPI_DOUBLE_INT, MPI_LONG_INT,
						 MPI_SHORT_INT, MPI_LONG_DOUBLE_INT};
	return pairs[index];
}

/* ---- variables that mpi.h declares, and that MPICH's Fortran library names ---- */
static int mpich_unweighted[1], mpich_weights_empty[1];
int *front_unweighted = mpich_unweighted;
int *front_weights_empty = mpich_weights_empty;
#define MPICH_VARIABLE(type, name, label, value)                                                   \
	extern type name __asm__(label);                                                           \
	type name = value
MPICH_VARIABLE(int *, mpich_f_status_ignore, "MPI_F_STATUS_IGNORE", NULL);
MPICH_VARIABLE(int *, mpich_f_statuses_ignore, "MPI_F_STATUSES_IGNORE", NULL);
/* Their addresses are the special values of `use mpi_f08`; MPICH's Fortran library has them, too. */
MPICH_VARIABLE(int, mpich_f08_bottom, "MPIR_F08_MPI_BOTTOM", 0);
MPICH_VARIABLE(int, mpich_f08_in_place, "MPIR_F08_MPI_IN_PLACE", 0);
MPICH_VARIABLE(front_status, mpich_f08_ignored, "MPIR_F08_MPI_STATUS_IGNORE_OBJ", {0});
MPICH_VARIABLE(front_status, mpich_f08_all_ignored, "MPIR_F08_MPI_STATUSES_IGNORE_OBJ", {0});
MPICH_VARIABLE(front_status *, mpich_f08_status_ignore, "MPI_F08_STATUS_IGNORE",
	       &mpich_f08_ignored);
MPICH_VARIABLE(front_status *, mpich_f08_statuses_ignore, "MPI_F08_STATUSES_IGNORE",
	       &mpich_f08_all_ignored);
/* Copies of MPI_UNWEIGHTED and MPI_WEIGHTS_EMPTY, which that library reads. */
MPICH_VARIABLE(int *, mpich_c_unweighted, "MPIR_C_MPI_UNWEIGHTED", NULL);
MPICH_VARIABLE(int *, mpich_c_weights_empty, "MPIR_C_MPI_WEIGHTS_EMPTY", NULL);
__attribute__((constructor)) static void mpich_begin(void)
{
	mpich_c_unweighted = front_unweighted;
	mpich_c_weights_empty = front_weights_empty;
}
MPICH_VARIABLE(void *, mpich_all_pvars, "MPI_T_PVAR_ALL_HANDLES", (void *)-1);

/* ---- statuses of Fortran: the same five integers ---- */
FRONT_MORE(int, Status_c2f, (const front_status *c, int *fortran))
{
	if (!c || !fortran || front_ignored(c))
		return front_error_out(MPI_ERR_ARG);
	memcpy(fortran, c, sizeof(*c));
	return MPI_SUCCESS;
}
FRONT_MORE(int, Status_f2c, (const int *fortran, front_status *c))
{
	if (!c || !fortran || fortran == mpich_f_status_ignore || fortran == mpich_f_statuses_ignore)
		return front_error_out(MPI_ERR_ARG);
	memcpy(c, fortran, sizeof(*c));
	return MPI_SUCCESS;
}
FRONT_MORE(int, File_c2f, (front_file file))
{
	return file ? front_number(file) : 0;
}
FRONT_MORE(front_file, File_f2c, (int integer))
{
	return front_file_out(front_integer_in(FRONT_FILE, integer));
}

/* ---- the null copy and delete functions are NULL; this one is called ---- */
int mpich_dup(int handle, int keyval, void *extra, void *value, void *copy, int *flag)
    __asm__("MPIR_Dup_fn");
int mpich_dup(int handle, int keyval, void *extra, void *value, void *copy, int *flag)
{
	*(void **)copy = value;
	*flag = 1;
	return MPI_SUCCESS;
}

/* ---- MPIX_COMM_TYPE_NEIGHBORHOOD: processes of a node that see the same folder; of the network
 * nothing is known ---- */
enum { MPICH_SHARED = 1, MPICH_NEIGHBORHOOD = 4 };

/* A color for a folder; undefined where it is none. */
static int folder_color(const char *path)
{
	struct stat st;

	if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode))
		return FRONT_UNDEFINED;
	return (int)(((uint64_t)st.st_dev * 31 + (uint64_t)st.st_ino) & 0x7fffffff);
}

FRONT(int, Comm_split_type,
      (front_comm comm, int type, int key, front_info info, front_comm *newcomm))
{
	char folder[1024] = "";
	void *made = MPI_COMM_NULL;
	front_comm node;
	int there = 0;

	if (type != MPICH_NEIGHBORHOOD) {
		int rc = core_Comm_split_type(front_comm_in(comm),
					      front_split_in(type), key, front_info_in(info),
					      newcomm ? &made : NULL);
		if (newcomm)
			*newcomm = front_comm_out(made);
		return front_error_out(rc);
	}
	int rc = front_Comm_split_type(comm, MPICH_SHARED, key, info, &node);
	if (rc)
		return rc;
	if (front_info_in(info) != MPI_INFO_NULL)
		rc = front_Info_get(info, "nbhd_common_dirname", sizeof(folder) - 1, folder, &there);
	int color = there ? folder_color(folder) : FRONT_UNDEFINED;
	if (!rc)
		rc = front_Comm_split(node, color, key, newcomm);
	front_Comm_free(&node);
	return rc;
}

/* ---- extensions: no accelerator's memory is passed to MPI; ranks that die come back ---- */
#define MPICH_NO_DEVICE(name)                                                                      \
	int mpich_##name(void) __asm__("PMPIX_" #name);                                            \
	extern __typeof(mpich_##name) mpich_weak_##name __asm__("MPIX_" #name)                     \
	    __attribute__((weak, alias("PMPIX_" #name)));                                          \
	int mpich_##name(void)                                                                     \
	{                                                                                          \
		return 0;                                                                          \
	}
MPICH_NO_DEVICE(Query_cuda_support)
MPICH_NO_DEVICE(Query_hip_support)
MPICH_NO_DEVICE(Query_ze_support)

/* Fault-tolerance and error-code extensions: the class that says that they aren't there. */
#define MPICH_REFUSED(name)                                                                        \
	int mpich_##name(void) __asm__("PMPIX_" #name);                                            \
	extern __typeof(mpich_##name) mpich_weak_##name __asm__("MPIX_" #name)                     \
	    __attribute__((weak, alias("PMPIX_" #name)));                                          \
	int mpich_##name(void)                                                                     \
	{                                                                                          \
		return front_error_out(abi_unsupported(ABI_WORLD, NULL, "MPIX_" #name));           \
	}
MPICH_REFUSED(Comm_agree)
MPICH_REFUSED(Comm_failure_ack)
MPICH_REFUSED(Comm_failure_get_acked)
MPICH_REFUSED(Comm_revoke)
MPICH_REFUSED(Comm_shrink)
MPICH_REFUSED(Delete_error_class)
MPICH_REFUSED(Delete_error_code)
MPICH_REFUSED(Delete_error_string)
MPICH_REFUSED(GPU_query_support)
MPICH_REFUSED(Grequest_class_allocate)
MPICH_REFUSED(Grequest_class_create)
MPICH_REFUSED(Grequest_start)
