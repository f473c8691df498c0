// SPDX-License-Identifier: BSD-3-Clause
/* types [COUNT [SEED]]: what this MPI says about its predefined datatypes and about COUNT random
 * ones: sizes, bounds, envelopes, packed bytes, element counts; which operation it defines for
 * which type; and the error class of calls that are wrong. Two libraries that agree print the same.
 * Strides and displacements are such that the known mistakes of Open MPI 4.1 (bounds of misaligned
 * types, vectors with blocks in reverse order, empty types, halves of pairs) don't show. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH = 4, PARTS = 6, REACH = 1 << 18, MOST = 1 << 15 };

static uint64_t state;

static int pick(int n)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (int)((state >> 33) % (uint64_t)n);
}

static const MPI_Datatype basics[] = {MPI_CHAR,	 MPI_SHORT,	  MPI_INT,
				      MPI_LONG,	 MPI_FLOAT,	  MPI_DOUBLE,
				      MPI_BYTE,	 MPI_LONG_DOUBLE, MPI_C_DOUBLE_COMPLEX,
				      MPI_WCHAR, MPI_REAL8,	  MPI_UINT16_T};

static MPI_Datatype slice(MPI_Datatype old)
{
	static const int kinds[] = {MPI_DISTRIBUTE_NONE, MPI_DISTRIBUTE_BLOCK,
				    MPI_DISTRIBUTE_CYCLIC};
	int size[3], part[3], start[3], kind[3], arg[3], grid[3], procs = 1;
	const int dims = 1 + pick(3), order = pick(2) ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
	MPI_Datatype type;
	for (int i = 0; i < dims; i++) {
		size[i] = 2 + pick(5);
		part[i] = 1 + pick(size[i]);
		start[i] = pick(size[i] - part[i] + 1);
		kind[i] = kinds[pick(3)];
		grid[i] = kind[i] == MPI_DISTRIBUTE_NONE ? 1 : 1 + pick(2);
		arg[i] = pick(2) ? MPI_DISTRIBUTE_DFLT_DARG : (size[i] + grid[i] - 1) / grid[i];
		procs *= grid[i];
	}
	if (pick(2))
		MPI_Type_create_subarray(dims, size, part, start, order, old, &type);
	else
		MPI_Type_create_darray(procs, pick(procs), dims, size, kind, arg, grid, order, old,
				       &type);
	return type;
}

static MPI_Datatype blocks(MPI_Datatype old, MPI_Datatype other)
{
	int length[PARTS], index[PARTS];
	MPI_Aint offset[PARTS], lb, extent, at = 0;
	MPI_Datatype types[PARTS], type;
	const int n = 1 + pick(PARTS), equal = 1 + pick(3);
	MPI_Type_get_extent(old, &lb, &extent);
	for (int i = 0; i < n; i++) {
		length[i] = 1 + pick(3);
		index[i] = (i ? index[i - 1] : 0) + pick(6);
		types[i] = pick(2) ? old : other;
		offset[i] = at;
		at += 16 * pick(20);
	}
	switch (pick(5)) {
	case 0:
		MPI_Type_indexed(n, length, index, old, &type);
		break;
	case 1:
		MPI_Type_create_indexed_block(n, equal, index, old, &type);
		break;
	case 2:
		MPI_Type_create_hindexed(n, length, offset, old, &type);
		break;
	case 3:
		MPI_Type_create_hindexed_block(n, equal, offset, old, &type);
		break;
	default:
		MPI_Type_create_struct(n, length, offset, types, &type);
	}
	return type;
}

static MPI_Datatype make(int depth)
{
	if (depth == 0)
		return basics[pick((int)(sizeof(basics) / sizeof(basics[0])))];
	MPI_Datatype old = make(depth - 1), other = make(pick(depth)), type;
	MPI_Aint lb, extent;
	MPI_Type_get_extent(old, &lb, &extent);
	switch (pick(7)) {
	case 0:
		MPI_Type_contiguous(1 + pick(4), old, &type);
		break;
	case 1:
		MPI_Type_vector(1 + pick(5), 1, 1 + pick(5), old, &type);
		break;
	case 2:
		MPI_Type_create_hvector(1 + pick(4), 1 + pick(3), 16 * pick(30), old, &type);
		break;
	case 3:
		MPI_Type_dup(old, &type);
		break;
	case 4:
		MPI_Type_create_resized(old, 16 * (pick(5) - 2), 16 * (1 + pick(20)), &type);
		break;
	case 5:
		type = slice(old);
		break;
	default:
		type = blocks(old, other);
	}
	int n1, n2, n3, combiner;
	MPI_Type_get_envelope(old, &n1, &n2, &n3, &combiner);
	if (combiner != MPI_COMBINER_NAMED)
		MPI_Type_free(&old);
	MPI_Type_get_envelope(other, &n1, &n2, &n3, &combiner);
	if (combiner != MPI_COMBINER_NAMED)
		MPI_Type_free(&other);
	return type;
}

static uint64_t hash(uint64_t h, const unsigned char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		h = (h ^ p[i]) * 1099511628211u;
	return h;
}

/* Two elements packed and unpacked; a hash of the packed bytes and of the memory afterwards. */
static uint64_t moved(MPI_Datatype type, int size)
{
	static unsigned char memory[REACH], packed[2 * MOST];
	int position = 0;
	for (size_t i = 0; i < REACH; i++)
		memory[i] = (unsigned char)(i * 2654435761u >> 13);
	MPI_Pack(memory + REACH / 2, 2, type, packed, 2 * size, &position, MPI_COMM_WORLD);
	uint64_t h = hash(14695981039346656037u, packed, (size_t)position);
	for (int i = 0; i < position; i++)
		packed[i] = (unsigned char)(7 * i + 1);
	memset(memory, 0, REACH);
	position = 0;
	MPI_Unpack(packed, 2 * size, &position, memory + REACH / 2, 2, type, MPI_COMM_WORLD);
	return hash(h, memory, REACH);
}

static void describe(const char *what, int number, MPI_Datatype type)
{
	int size, ints, addresses, types, combiner, count = -1, elements = -1;
	MPI_Aint lb, extent, true_lb, true_extent;
	MPI_Type_size(type, &size);
	MPI_Type_get_extent(type, &lb, &extent);
	MPI_Type_get_true_extent(type, &true_lb, &true_extent);
	MPI_Type_get_envelope(type, &ints, &addresses, &types, &combiner);
	if (size == 0)
		return;
	MPI_Status status;
	memset(&status, 0, sizeof(status));
	MPI_Status_set_elements(&status, MPI_BYTE, pick(3 * size));
	MPI_Get_count(&status, type, &count);
	MPI_Get_elements(&status, type, &elements);
	printf("%s %d: size %d, [%ld, +%ld), true [%ld, +%ld), made by %d with %d %d %d, "
	       "count %d, elements %d",
	       what, number, size, (long)lb, (long)extent, (long)true_lb, (long)true_extent,
	       combiner, ints, addresses, types, count, elements);
	const long reach = labs((long)true_lb) + (long)true_extent + labs((long)extent);
	if (size < MOST && reach < REACH / 4)
		printf(", bytes %016llx", (unsigned long long)moved(type, size));
	printf("\n");
}

static void predefined(void)
{
	const MPI_Datatype types[] = {MPI_CHAR,
				      MPI_SIGNED_CHAR,
				      MPI_UNSIGNED_CHAR,
				      MPI_SHORT,
				      MPI_UNSIGNED,
				      MPI_LONG_LONG,
				      MPI_UNSIGNED_LONG,
				      MPI_FLOAT,
				      MPI_DOUBLE,
				      MPI_LONG_DOUBLE,
				      MPI_WCHAR,
				      MPI_BYTE,
				      MPI_PACKED,
				      MPI_C_BOOL,
				      MPI_C_COMPLEX,
				      MPI_C_DOUBLE_COMPLEX,
				      MPI_AINT,
				      MPI_OFFSET,
				      MPI_COUNT,
				      MPI_INT8_T,
				      MPI_UINT64_T,
				      MPI_CHARACTER,
				      MPI_LOGICAL,
				      MPI_INTEGER2,
				      MPI_REAL,
				      MPI_DOUBLE_PRECISION,
				      MPI_COMPLEX,
				      MPI_DOUBLE_COMPLEX,
				      MPI_2REAL,
				      MPI_2DOUBLE_PRECISION,
				      MPI_2INTEGER,
				      MPI_FLOAT_INT,
				      MPI_DOUBLE_INT,
				      MPI_LONG_INT,
				      MPI_SHORT_INT,
				      MPI_2INT,
				      MPI_LONG_DOUBLE_INT,
				      MPI_CXX_BOOL,
				      MPI_CXX_DOUBLE_COMPLEX};
	const MPI_Op ops[] = {MPI_MAX, MPI_MIN, MPI_SUM,  MPI_PROD, MPI_LAND,	MPI_BAND,
			      MPI_LOR, MPI_BOR, MPI_LXOR, MPI_BXOR, MPI_MAXLOC, MPI_MINLOC};
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		char name[MPI_MAX_OBJECT_NAME], in[64] = {0}, inout[64] = {0};
		int length, size;
		MPI_Aint lb, extent, true_lb, true_extent;
		MPI_Type_get_name(types[i], name, &length);
		MPI_Type_size(types[i], &size);
		MPI_Type_get_extent(types[i], &lb, &extent);
		MPI_Type_get_true_extent(types[i], &true_lb, &true_extent);
		printf("%s: size %d, [%ld, +%ld), true [%ld, +%ld), Fortran %d, reductions ", name,
		       size, (long)lb, (long)extent, (long)true_lb, (long)true_extent,
		       (int)MPI_Type_c2f(types[i]));
		for (size_t k = 0; k < sizeof(ops) / sizeof(ops[0]); k++)
			printf("%c", MPI_Reduce_local(in, inout, 1, types[i], ops[k]) ? '-' : 'x');
		printf("\n");
	}
}

#define WRONG(call)                                                                                \
	do {                                                                                       \
		int class = -1, code = (call);                                                     \
		MPI_Error_class(code, &class);                                                     \
		printf("class %d: %s\n", class, #call);                                            \
	} while (0)

static void wrong(void)
{
	const MPI_Datatype none = MPI_DATATYPE_NULL;
	MPI_Datatype type, raw, types[2] = {MPI_INT, MPI_DATATYPE_NULL};
	int good[2] = {1, 1}, bad[2] = {1, -1}, position = 0, count;
	int sizes[2] = {4, 4}, parts[2] = {2, 2}, starts[2] = {3, 1};
	MPI_Aint offsets[2] = {0, 8};
	char buffer[16] = {0}, packed[16];
	MPI_Op op = MPI_SUM;
	MPI_Type_contiguous(2, MPI_INT, &raw); /* not committed */
	WRONG(MPI_Type_contiguous(-1, MPI_INT, &type));
	WRONG(MPI_Type_contiguous(1, none, &type));
	WRONG(MPI_Type_vector(-1, 1, 1, MPI_INT, &type));
	WRONG(MPI_Type_vector(1, -1, 1, MPI_INT, &type));
	WRONG(MPI_Type_create_hvector(1, -1, 1, MPI_INT, &type));
	WRONG(MPI_Type_indexed(-1, good, good, MPI_INT, &type));
	WRONG(MPI_Type_indexed(2, bad, good, MPI_INT, &type));
	WRONG(MPI_Type_indexed(2, NULL, good, MPI_INT, &type));
	WRONG(MPI_Type_create_hindexed(2, good, NULL, MPI_INT, &type));
	WRONG(MPI_Type_create_indexed_block(1, -1, good, MPI_INT, &type));
	WRONG(MPI_Type_create_hindexed_block(1, 1, NULL, MPI_INT, &type));
	WRONG(MPI_Type_create_struct(-1, good, offsets, types, &type));
	WRONG(MPI_Type_create_struct(2, bad, offsets, types, &type));
	WRONG(MPI_Type_create_struct(2, good, offsets, types, &type));
	WRONG(MPI_Type_create_resized(none, 0, 4, &type));
	WRONG(MPI_Type_create_subarray(-1, sizes, parts, good, MPI_ORDER_C, MPI_INT, &type));
	WRONG(MPI_Type_create_subarray(2, sizes, parts, starts, MPI_ORDER_C, MPI_INT, &type));
	WRONG(MPI_Type_create_subarray(2, sizes, parts, good, 77, MPI_INT, &type));
	WRONG(MPI_Type_dup(none, &type));
	WRONG(MPI_Type_commit(&types[1]));
	WRONG(MPI_Type_free(&types[0]));
	WRONG(MPI_Type_free(&types[1]));
	WRONG(MPI_Type_size(none, &count));
	WRONG(MPI_Type_size(MPI_INT, NULL));
	WRONG(MPI_Type_get_contents(MPI_INT, 1, 1, 1, good, offsets, types));
	WRONG(MPI_Type_get_contents(raw, 0, 0, 0, good, offsets, types));
	WRONG(MPI_Type_match_size(MPI_TYPECLASS_REAL, 3, &type));
	WRONG(MPI_Type_create_f90_real(100, MPI_UNDEFINED, &type));
	WRONG(MPI_Type_create_f90_integer(100, &type));
	WRONG(MPI_Pack(buffer, -1, MPI_INT, packed, 16, &position, MPI_COMM_WORLD));
	WRONG(MPI_Pack(buffer, 1, raw, packed, 16, &position, MPI_COMM_WORLD));
	WRONG(MPI_Pack(NULL, 1, MPI_INT, packed, 16, &position, MPI_COMM_WORLD));
	WRONG(MPI_Pack(buffer, 1, MPI_INT, NULL, 16, &position, MPI_COMM_WORLD));
	WRONG(MPI_Pack(buffer, 1, MPI_INT, packed, 2, &position, MPI_COMM_WORLD));
	WRONG(MPI_Pack(buffer, 1, MPI_INT, packed, 16, &position, MPI_COMM_NULL));
	position = 15;
	WRONG(MPI_Unpack(packed, 16, &position, buffer, 1, MPI_INT, MPI_COMM_WORLD));
	WRONG(MPI_Op_create(NULL, 1, &op));
	WRONG(MPI_Op_free(&op));
	WRONG(MPI_Reduce_local(buffer, packed, 1, MPI_INT, MPI_OP_NULL));
	WRONG(MPI_Reduce_local(buffer, packed, -1, MPI_INT, MPI_SUM));
	WRONG(MPI_Reduce_local(buffer, packed, 1, raw, MPI_SUM));
	WRONG(MPI_Reduce_local(buffer, packed, 1, MPI_INT, MPI_REPLACE));
	MPI_Type_free(&raw);
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	const int count = argc > 1 ? atoi(argv[1]) : 200, seed = argc > 2 ? atoi(argv[2]) : 1;
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	predefined();
	wrong();
	for (int i = 0; i < count; i++) {
		state = (uint64_t)seed * 1000003u + (uint64_t)i * 7919u;
		MPI_Datatype type = make(1 + pick(DEPTH));
		MPI_Type_commit(&type);
		describe("type", i, type);
		MPI_Type_free(&type);
	}
	MPI_Finalize();
	return 0;
}
