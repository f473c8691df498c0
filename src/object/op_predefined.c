/* SPDX-License-Identifier: BSD-3-Clause */
/* The predefined operations, as large as Open MPI's. Executables may hold the live copies. */
#include "object/op_kernels.h"

struct ompi_predefined_op_t {
	struct op op;
	char reserved[2048 - sizeof(struct op)];
};

#define OP(symbol, label, index, more, ...)                                                        \
	struct ompi_predefined_op_t ompi_mpi_op_##symbol = {                                       \
	    .op = {.obj = {.kind = OBJECT_OP,                                                      \
			   .flags = OBJECT_PREDEFINED | (more),                                    \
			   .refs = 1,                                                              \
			   .f_index = (index)},                                                    \
		   .commutative = true,                                                            \
		   .name = label,                                                                  \
		   __VA_ARGS__}}

OP(null, "MPI_OP_NULL", 0, OBJECT_NULL);
OP(max, "MPI_MAX", 1, 0, .kernels = op_kernels_max);
OP(min, "MPI_MIN", 2, 0, .kernels = op_kernels_min);
OP(sum, "MPI_SUM", 3, 0, .kernels = op_kernels_sum);
OP(prod, "MPI_PROD", 4, 0, .kernels = op_kernels_prod);
OP(land, "MPI_LAND", 5, 0, .kernels = op_kernels_land);
OP(band, "MPI_BAND", 6, 0, .kernels = op_kernels_band);
OP(lor, "MPI_LOR", 7, 0, .kernels = op_kernels_lor);
OP(bor, "MPI_BOR", 8, 0, .kernels = op_kernels_bor);
OP(lxor, "MPI_LXOR", 9, 0, .kernels = op_kernels_lxor);
OP(bxor, "MPI_BXOR", 10, 0, .kernels = op_kernels_bxor);
OP(maxloc, "MPI_MAXLOC", 11, 0, .kernels = op_kernels_maxloc);
OP(minloc, "MPI_MINLOC", 12, 0, .kernels = op_kernels_minloc);
OP(replace, "MPI_REPLACE", 13, 0, .replace = true);
OP(no_op, "MPI_NO_OP", 14, 0, .no_op = true);

void op_select_kernels(void)
{
	__builtin_cpu_init();
	if (!__builtin_cpu_supports("avx2"))
		return;
	ompi_mpi_op_max.op.kernels = op_kernels_avx2_max;
	ompi_mpi_op_min.op.kernels = op_kernels_avx2_min;
	ompi_mpi_op_sum.op.kernels = op_kernels_avx2_sum;
	ompi_mpi_op_prod.op.kernels = op_kernels_avx2_prod;
	ompi_mpi_op_land.op.kernels = op_kernels_avx2_land;
	ompi_mpi_op_lor.op.kernels = op_kernels_avx2_lor;
	ompi_mpi_op_lxor.op.kernels = op_kernels_avx2_lxor;
	ompi_mpi_op_band.op.kernels = op_kernels_avx2_band;
	ompi_mpi_op_bor.op.kernels = op_kernels_avx2_bor;
	ompi_mpi_op_bxor.op.kernels = op_kernels_avx2_bxor;
	ompi_mpi_op_maxloc.op.kernels = op_kernels_avx2_maxloc;
	ompi_mpi_op_minloc.op.kernels = op_kernels_avx2_minloc;
}
