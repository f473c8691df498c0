// SPDX-License-Identifier: BSD-3-Clause
/* Counts beyond 2^31 in one call, without the memory that they stand for: types without bytes, types
 * without extent, messages that are shorter than their receive, memory that is never touched.
 * large_counts [BYTES]: with BYTES that many really travel. Prints "bad: 0", or what was wrong. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static const MPI_Count MANY = ((MPI_Count)1 << 31) + 5;
static int rank, size, bad;
static MPI_Count seen;

static void check(int ok, const char *what)
{
	if (ok)
		return;
	printf("rank %d: %s\n", rank, what);
	bad++;
}
#define OK(call) check((call) == MPI_SUCCESS, #call)

static char *reserve(MPI_Count bytes)
{
	char *p = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		exit(2);
	return p;
}

static void size_is(MPI_Datatype *t, MPI_Count bytes, MPI_Count extent, const char *what)
{
	MPI_Count n = 0, lb = -1, e = 0;
	MPI_Type_size_c(*t, &n);
	MPI_Type_get_extent_c(*t, &lb, &e);
	check(n == bytes && lb == 0 && e == extent, what);
	MPI_Type_free(t);
}

static void types(void)
{
	MPI_Count lengths[2] = {1, MANY}, displacements[2] = {0, 8};
	MPI_Datatype t, both[2] = {MPI_INT, MPI_CHAR};
	OK(MPI_Type_contiguous_c(MANY, MPI_INT, &t));
	MPI_Count i, a, l, n, made[5];
	MPI_Datatype of[2];
	int combiner, ints[3];
	OK(MPI_Type_get_envelope_c(t, &i, &a, &l, &n, &combiner));
	check(i == 0 && a == 0 && l == 1 && n == 1 && combiner == MPI_COMBINER_CONTIGUOUS,
	      "the envelope of a large type");
	OK(MPI_Type_get_contents_c(t, 0, 0, 1, 1, NULL, NULL, made, of));
	check(made[0] == MANY && of[0] == MPI_INT, "the contents of a large type");
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	check(MPI_Type_get_envelope(t, &ints[0], &ints[1], &ints[2], &combiner) ==
		  MPI_ERR_UNSUPPORTED_OPERATION, "its envelope in integers");
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
	size_is(&t, MANY * 4, MANY * 4, "contiguous");
	OK(MPI_Type_vector_c(2, 1, MANY, MPI_INT, &t));
	size_is(&t, 8, MANY * 4 + 4, "vector");
	OK(MPI_Type_create_hvector_c(2, MANY, MANY + 1, MPI_CHAR, &t));
	size_is(&t, MANY * 2, MANY * 2 + 1, "hvector");
	OK(MPI_Type_indexed_c(2, lengths, displacements, MPI_SHORT, &t));
	size_is(&t, (MANY + 1) * 2, (MANY + 8) * 2, "indexed");
	OK(MPI_Type_create_hindexed_c(2, lengths, displacements, MPI_CHAR, &t));
	size_is(&t, MANY + 1, MANY + 8, "hindexed");
	displacements[1] = MANY;
	OK(MPI_Type_create_indexed_block_c(2, 3, displacements, MPI_INT, &t));
	size_is(&t, 24, MANY * 4 + 12, "indexed block");
	OK(MPI_Type_create_hindexed_block_c(2, MANY, displacements, MPI_CHAR, &t));
	size_is(&t, MANY * 2, MANY * 2, "hindexed block");
	displacements[1] = 4;
	OK(MPI_Type_create_struct_c(2, lengths, displacements, both, &t));
	OK(MPI_Type_get_envelope_c(t, &i, &a, &l, &n, &combiner));
	check(l == 5 && n == 2 && combiner == MPI_COMBINER_STRUCT, "the envelope of a structure");
	OK(MPI_Type_get_contents_c(t, 0, 0, 5, 2, NULL, NULL, made, of));
	check(made[0] == 2 && made[1] == 1 && made[2] == MANY && made[4] == 4 && of[1] == MPI_CHAR,
	      "the contents of a structure");
	size_is(&t, MANY + 4, (MANY + 4 + 3) / 4 * 4, "struct");
	OK(MPI_Pack_size_c(MANY, MPI_INT, MPI_COMM_WORLD, &n));
	check(n >= MANY * 4, "pack size");
}

static void numbers(void)
{
	MPI_Status s;
	MPI_Count n = 0;
	memset(&s, 0, sizeof(s));
	OK(MPI_Status_set_elements_c(&s, MPI_INT, MANY));
	OK(MPI_Get_count_c(&s, MPI_INT, &n));
	check(n == MANY, "count of a status");
	OK(MPI_Get_elements_c(&s, MPI_SHORT, &n));
	check(n == MANY * 2, "elements of a status");
}

/* A receive that is large gets a message that is small. */
static void messages(void)
{
	char *buffer = reserve(MANY), ten[10] = "123456789";
	MPI_Datatype nothing;
	MPI_Request r;
	MPI_Status s;
	MPI_Count n = -1;
	if (rank == 0) {
		OK(MPI_Send_c(ten, 10, MPI_CHAR, 1, 1, MPI_COMM_WORLD));
		OK(MPI_Send_c(ten, 10, MPI_CHAR, 1, 2, MPI_COMM_WORLD));
	} else if (rank == 1) {
		OK(MPI_Recv_c(buffer, MANY, MPI_CHAR, 0, 1, MPI_COMM_WORLD, &s));
		OK(MPI_Get_count_c(&s, MPI_CHAR, &n));
		check(n == 10 && !memcmp(buffer, ten, 10), "a short message");
		OK(MPI_Irecv_c(buffer + 100, MANY - 100, MPI_CHAR, 0, 2, MPI_COMM_WORLD, &r));
		OK(MPI_Wait(&r, &s));
		check(!memcmp(buffer + 100, ten, 10), "another");
	}
	MPI_Type_contiguous(0, MPI_INT, &nothing);
	MPI_Type_commit(&nothing);
	int to = (rank + 1) % size, from = (rank + size - 1) % size;
	OK(MPI_Sendrecv_c(ten, MANY, nothing, to, 3, buffer, MANY + 1, nothing, from, 3, MPI_COMM_WORLD,
			  &s));
	OK(MPI_Bcast_c(buffer, MANY, nothing, 0, MPI_COMM_WORLD));
	OK(MPI_Alltoall_c(ten, MANY, nothing, buffer, MANY, nothing, MPI_COMM_WORLD));
	OK(MPI_Iallgather_c(ten, MANY, nothing, buffer, MANY, nothing, MPI_COMM_WORLD, &r));
	OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
	MPI_Win w;
	MPI_Win_create(buffer, 4096, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &w);
	MPI_Win_fence(0, w);
	OK(MPI_Put_c(ten, MANY, nothing, to, 0, MANY, nothing, w));
	MPI_Win_fence(0, w);
	MPI_Win_free(&w);
	MPI_Type_free(&nothing);
	munmap(buffer, (size_t)MANY);
}

static void added(void *a, void *b, MPI_Count *n, MPI_Datatype *t)
{
	seen += *n;
}

static void reductions(void)
{
	MPI_Datatype point, nothing; /* one byte without extent: any number lies in one byte */
	char a = 1, b = 2;
	MPI_Op op;
	MPI_Request r;
	MPI_Op_create_c(added, 1, &op);
	MPI_Type_create_resized(MPI_CHAR, 0, 0, &point);
	MPI_Type_commit(&point);
	MPI_Type_contiguous(0, MPI_CHAR, &nothing);
	MPI_Type_commit(&nothing);
	OK(MPI_Reduce_local_c(&a, &b, MANY, point, op));
	check(seen == MANY, "elements of a reduction");
	OK(MPI_Allreduce_c(&a, &b, MANY, nothing, op, MPI_COMM_WORLD));
	OK(MPI_Reduce_c(&a, &b, MANY, nothing, op, 0, MPI_COMM_WORLD));
	OK(MPI_Iscan_c(&a, &b, MANY, nothing, op, MPI_COMM_WORLD, &r));
	OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
	MPI_Op_free(&op);
	MPI_Type_free(&point);
	MPI_Type_free(&nothing);
}

/* Arrays of counts: large ones of a type without bytes, large displacements into memory that is
 * touched there only. */
static void arrays(void)
{
	enum { ROOM = 64 };
	char *far = reserve(MANY + ROOM), mine = (char)('a' + rank), got[16] = "";
	MPI_Count counts[16], ones[16];
	MPI_Aint places[16], near[16];
	MPI_Datatype nothing, nothings[16], chars[16];
	MPI_Request r;
	MPI_Type_contiguous(0, MPI_INT, &nothing);
	MPI_Type_commit(&nothing);
	for (int i = 0; i < size; i++) {
		counts[i] = MANY;
		ones[i] = 1;
		places[i] = MANY + i;
		near[i] = i;
		nothings[i] = nothing;
		chars[i] = MPI_CHAR;
	}
	OK(MPI_Allgatherv_c(&mine, MANY, nothing, got, counts, near, nothing, MPI_COMM_WORLD));
	OK(MPI_Alltoallw_c(got, counts, near, nothings, far, counts, near, nothings, MPI_COMM_WORLD));
	OK(MPI_Allgatherv_c(&mine, 1, MPI_CHAR, far, ones, places, MPI_CHAR, MPI_COMM_WORLD));
	for (int i = 0; i < size; i++)
		check(far[MANY + i] == 'a' + i, "allgatherv");
	memset(far + MANY, 0, ROOM);
	OK(MPI_Gatherv_c(&mine, 1, MPI_CHAR, far, ones, places, MPI_CHAR, 0, MPI_COMM_WORLD));
	for (int i = 0; rank == 0 && i < size; i++)
		check(far[MANY + i] == 'a' + i, "gatherv");
	OK(MPI_Scatterv_c(far, ones, places, MPI_CHAR, got, 1, MPI_CHAR, 0, MPI_COMM_WORLD));
	check(got[0] == mine, "scatterv");
	memset(far + MANY, mine, ROOM);
	memset(got, 0, sizeof(got));
	OK(MPI_Ialltoallv_c(far, ones, places, MPI_CHAR, got, ones, near, MPI_CHAR, MPI_COMM_WORLD, &r));
	OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
	for (int i = 0; i < size; i++)
		check(got[i] == 'a' + i, "ialltoallv");
	memset(got, 0, sizeof(got));
	OK(MPI_Alltoallw_init_c(far, ones, places, chars, got, ones, near, chars, MPI_COMM_WORLD,
				MPI_INFO_NULL, &r));
	for (int k = 0; k < 2; k++) {
		OK(MPI_Start(&r));
		OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
	}
	OK(MPI_Request_free(&r));
	for (int i = 0; i < size; i++)
		check(got[i] == 'a' + i, "alltoallw");
	int all[16], one = 0;
	for (int i = 0; i < size; i++)
		all[i] = i + 1;
	OK(MPI_Reduce_scatter_c(all, &one, ones, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
	check(one == size * (rank + 1), "reduce_scatter");
	MPI_Comm ring;
	OK(MPI_Cart_create(MPI_COMM_WORLD, 1, &size, (int[]){1}, 0, &ring));
	OK(MPI_Neighbor_alltoallv_c(far, ones, places, MPI_CHAR, got, ones, near, MPI_CHAR, ring));
	check(got[0] == 'a' + (rank + size - 1) % size && got[1] == 'a' + (rank + 1) % size,
	      "neighbours");
	MPI_Comm_free(&ring);
	MPI_Type_free(&nothing);
	munmap(far, (size_t)(MANY + ROOM));
}

/* Positions beyond 2^31, and arrays of which a corner is far away. */
static void packed(void)
{
	char *far = reserve(MANY + 64);
	int in[2] = {rank, 77}, out[2] = {0, 0};
	MPI_Count at = MANY, n = 0, sizes[2] = {MANY, 4}, parts[2] = {3, 2}, starts[2] = {MANY - 3, 1};
	MPI_Datatype t;
	OK(MPI_Pack_c(in, 2, MPI_INT, far, MANY + 64, &at, MPI_COMM_WORLD));
	check(at == MANY + 8, "the position after packing");
	at = MANY;
	OK(MPI_Unpack_c(far, MANY + 64, &at, out, 2, MPI_INT, MPI_COMM_WORLD));
	check(out[0] == rank && out[1] == 77 && at == MANY + 8, "what was packed");
	OK(MPI_Pack_external_c("external32", in, 2, MPI_INT, far, MANY + 64, &at));
	at = MANY + 8;
	OK(MPI_Unpack_external_c("external32", far, MANY + 64, &at, out, 2, MPI_INT));
	check(out[0] == rank && out[1] == 77 && at == MANY + 16, "what was packed for all");
	OK(MPI_Pack_external_size_c("external32", MANY, MPI_INT, &n));
	check(n == MANY * 4, "external size");
	OK(MPI_Type_create_subarray_c(2, sizes, parts, starts, MPI_ORDER_C, MPI_CHAR, &t));
	MPI_Count lb = 0, extent = 0;
	MPI_Type_get_true_extent_c(t, &lb, &extent);
	check(lb == (MANY - 3) * 4 + 1 && extent == 2 * 4 + 2, "where a subarray lies");
	MPI_Count i, a, l, types, made[6];
	int combiner, two[2];
	MPI_Datatype of;
	OK(MPI_Type_get_envelope_c(t, &i, &a, &l, &types, &combiner));
	check(i == 2 && a == 0 && l == 6 && types == 1 && combiner == MPI_COMBINER_SUBARRAY,
	      "the envelope of a subarray");
	OK(MPI_Type_get_contents_c(t, 2, 0, 6, 1, two, NULL, made, &of));
	check(two[0] == 2 && two[1] == MPI_ORDER_C && made[0] == MANY && made[4] == MANY - 3 && of == MPI_CHAR,
	      "the contents of a subarray");
	size_is(&t, 6, MANY * 4, "subarray");
	int block = MPI_DISTRIBUTE_BLOCK, dflt = MPI_DISTRIBUTE_DFLT_DARG;
	sizes[0] = MANY * 2;
	OK(MPI_Type_create_darray_c(2, 1, 1, sizes, &block, &dflt, (int[]){2}, MPI_ORDER_C, MPI_CHAR, &t));
	size_is(&t, MANY, MANY * 2, "distributed array");
	MPI_Buffer_attach_c(far, MANY);
	void *again;
	MPI_Buffer_detach_c(&again, &n);
	check(again == far && n == MANY, "a large buffer");
	munmap(far, (size_t)(MANY + 64));
	/* beyond 2^63 nothing can be */
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	sizes[0] = sizes[1] = (MPI_Count)1 << 40;
	check(MPI_Type_create_subarray_c(2, sizes, parts, starts, MPI_ORDER_C, MPI_CHAR, &t) ==
		  MPI_ERR_COUNT, "an array of more bytes than there are");
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

/* So many bytes travel: point to point, by a broadcast, by a reduction. */
static void really(MPI_Count bytes)
{
	char *buffer = reserve(bytes);
	MPI_Status s;
	MPI_Count n = 0;
	if (rank == 0) {
		buffer[0] = 'a';
		buffer[bytes - 1] = 'z';
		OK(MPI_Send_c(buffer, bytes, MPI_CHAR, 1, 0, MPI_COMM_WORLD));
	} else if (rank == 1) {
		OK(MPI_Recv_c(buffer, bytes, MPI_CHAR, 0, 0, MPI_COMM_WORLD, &s));
		OK(MPI_Get_count_c(&s, MPI_CHAR, &n));
		check(n == bytes && buffer[0] == 'a' && buffer[bytes - 1] == 'z', "a large message");
		memset(buffer + bytes - 4096, 0, 4096);
	}
	OK(MPI_Bcast_c(buffer, bytes, MPI_CHAR, 0, MPI_COMM_WORLD));
	check(buffer[bytes - 1] == 'z', "a large broadcast");
	buffer[bytes - 1] = (char)(rank + 1);
	OK(MPI_Allreduce_c(MPI_IN_PLACE, buffer, bytes, MPI_SIGNED_CHAR, MPI_MAX, MPI_COMM_WORLD));
	check(buffer[bytes - 1] == size, "a large reduction");
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (argc > 1) {
		really(atoll(argv[1]));
	} else {
		types();
		numbers();
		messages();
		reductions();
		arrays();
		packed();
	}
	MPI_Allreduce(MPI_IN_PLACE, &bad, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (rank == 0)
		printf("bad: %d\n", bad);
	MPI_Finalize();
	return 0;
}
