/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives of five ranks on two nodes, with sizes that go each way through coll/, against what
 * the standard says of each element. */
#include <stdlib.h>
#include "mpi/test/ranks.h"

enum { RANKS = 5, MOST = 30000 };

static const int counts[] = {0, 1, 3, 100, 1025, MOST};
static int *in, *out;

/* Of all ranks; of some, in the other order; of two that are on different nodes. */
static MPI_Comm comm;
static int size, rank;

static void for_each_comm(void (*body)(int count))
{
	for (int kind = 0; kind < 3; kind++) {
		int color = kind == 2 && me % 4 != 0 ? MPI_UNDEFINED : 0;

		MPI_Comm_split(MPI_COMM_WORLD, color, kind == 1 ? -me : me, &comm);
		for (size_t i = 0; comm != MPI_COMM_NULL && i < sizeof(counts) / sizeof(*counts);
		     i++) {
			MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
			MPI_Comm_size(comm, &size);
			MPI_Comm_rank(comm, &rank);
			memset(out, 0xff, (size_t)RANKS * (MOST + 1) * sizeof(int));
			body(counts[i]);
		}
		if (comm != MPI_COMM_NULL)
			MPI_Comm_free(&comm);
	}
}

/* What a rank has at a place; no two are the same. */
static int value(int of, int to, int i)
{
	return of << 24 | to << 20 | i;
}

static void fill(int to, int at, int count)
{
	for (int i = 0; i < count; i++)
		in[at + i] = value(rank, to, i);
}

/* out[at, at + count) is what a rank had for another one, and nothing behind it has been touched.
 */
static void holds(int of, int to, int at, int count)
{
	for (int i = 0; i < count; i++)
		REQUIRE(out[at + i] == value(of, to, i));
}

static void ends_at(int at)
{
	REQUIRE(out[at] == -1);
}

#define OK(call) REQUIRE_CLASS(call, MPI_SUCCESS)

static void bcast(int count)
{
	for (int root = 0; root < size; root++) {
		if (rank == root) {
			fill(0, 0, count);
			memcpy(out, in, (size_t)count * sizeof(int));
		}
		OK(MPI_Bcast(out, count, MPI_INT, root, comm));
		holds(root, 0, 0, count);
		ends_at(count);
	}
}

static void gather_and_scatter(int count)
{
	for (int root = 0; root < size; root++) {
		fill(root, 0, count);
		memset(out, 0xff, (size_t)RANKS * (MOST + 1) * sizeof(int));
		OK(MPI_Gather(in, count, MPI_INT, out, count, MPI_INT, root, comm));
		for (int r = 0; rank == root && r < size; r++)
			holds(r, root, r * count, count);
		ends_at(rank == root ? size * count : 0);
		for (int r = 0; r < size; r++)
			fill(r, r * count, count);
		OK(MPI_Scatter(in, count, MPI_INT, out, count, MPI_INT, root, comm));
		holds(root, rank, 0, count);
	}
}

static void allgather(int count)
{
	fill(0, 0, count);
	OK(MPI_Allgather(in, count, MPI_INT, out, count, MPI_INT, comm));
	for (int r = 0; r < size; r++)
		holds(r, 0, r * count, count);
	ends_at(size * count);
}

static void alltoall(int count)
{
	for (int r = 0; r < size; r++)
		fill(r, r * count, count);
	OK(MPI_Alltoall(in, count, MPI_INT, out, count, MPI_INT, comm));
	for (int r = 0; r < size; r++)
		holds(r, rank, r * count, count);
	ends_at(size * count);
}

/* Rank r has r + 1 times as many shares as rank 0, of a fifth each. */
static void with_other_counts(int count)
{
	int n[RANKS], at[RANKS], all = 0, each[RANKS], apart[RANKS];

	for (int r = 0; r < size; r++) {
		n[r] = count / RANKS * (r + 1) / RANKS;
		at[r] = all;
		all += n[r];
	}
	for (int r = 0; r < size; r++) {
		each[r] = n[rank];
		apart[r] = r * n[rank];
	}
	fill(0, 0, n[rank]);
	OK(MPI_Allgatherv(in, n[rank], MPI_INT, out, n, at, MPI_INT, comm));
	for (int r = 0; r < size; r++)
		holds(r, 0, at[r], n[r]);
	ends_at(all);
	for (int root = 0; root < size; root++) {
		OK(MPI_Gatherv(in, n[rank], MPI_INT, out, n, at, MPI_INT, root, comm));
		for (int r = 0; rank == root && r < size; r++)
			holds(r, 0, at[r], n[r]);
	}
	/* each sends r what r takes from each */
	for (int r = 0; r < size; r++)
		fill(r, at[r], n[r]);
	for (int root = 0; root < size; root++) {
		OK(MPI_Scatterv(in, n, at, MPI_INT, out, n[rank], MPI_INT, root, comm));
		holds(root, rank, 0, n[rank]);
	}
	memset(out, 0xff, (size_t)RANKS * (MOST + 1) * sizeof(int));
	OK(MPI_Alltoallv(in, n, at, MPI_INT, out, each, apart, MPI_INT, comm));
	for (int r = 0; r < size; r++)
		holds(r, rank, r * n[rank], n[rank]);
	ends_at(size * n[rank]);
}

static int sum_to(int ranks_below, int i)
{
	return ranks_below * i + ranks_below * (ranks_below - 1) / 2;
}

static void small_fill(int count)
{
	for (int i = 0; i < count; i++)
		in[i] = rank + i;
}

static void reductions(int count)
{
	small_fill(count);
	OK(MPI_Allreduce(in, out, count, MPI_INT, MPI_SUM, comm));
	for (int i = 0; i < count; i++)
		REQUIRE(out[i] == sum_to(size, i));
	ends_at(count);
	OK(MPI_Allreduce(in, out, count, MPI_INT, MPI_MAX, comm));
	for (int i = 0; i < count; i++)
		REQUIRE(out[i] == size - 1 + i);
	memcpy(out, in, (size_t)count * sizeof(int));
	OK(MPI_Allreduce(MPI_IN_PLACE, out, count, MPI_INT, MPI_MIN, comm));
	for (int i = 0; i < count; i++)
		REQUIRE(out[i] == i);
	for (int root = 0; root < size; root++) {
		memset(out, 0xff, (size_t)(count + 1) * sizeof(int));
		OK(MPI_Reduce(in, out, count, MPI_INT, MPI_SUM, root, comm));
		for (int i = 0; i < count; i++)
			REQUIRE(out[i] == (rank == root ? sum_to(size, i) : -1));
		ends_at(count);
	}
}

static void scans(int count)
{
	small_fill(count);
	OK(MPI_Scan(in, out, count, MPI_INT, MPI_SUM, comm));
	for (int i = 0; i < count; i++)
		REQUIRE(out[i] == sum_to(rank + 1, i));
	memset(out, 0xff, (size_t)(count + 1) * sizeof(int));
	OK(MPI_Exscan(in, out, count, MPI_INT, MPI_SUM, comm));
	for (int i = 0; i < count && rank > 0; i++)
		REQUIRE(out[i] == sum_to(rank, i));
	ends_at(count);
}

static void reduce_scatters(int count)
{
	int each = count / size, n[RANKS];

	small_fill(each * size);
	OK(MPI_Reduce_scatter_block(in, out, each, MPI_INT, MPI_SUM, comm));
	for (int i = 0; i < each; i++)
		REQUIRE(out[i] == sum_to(size, rank * each + i));
	ends_at(each);
	for (int r = 0; r < size; r++)
		n[r] = r == 0 ? 0 : each;
	memset(out, 0xff, (size_t)(count + 1) * sizeof(int));
	OK(MPI_Reduce_scatter(in, out, n, MPI_INT, MPI_SUM, comm));
	for (int i = 0; i < n[rank]; i++)
		REQUIRE(out[i] == sum_to(size, (rank - 1) * each + i));
	ends_at(n[rank]);
}

/* Matrices of 2 by 2: ab is not ba, so the order of ranks shows. */
static void multiply(void *a, void *b, int *n, MPI_Datatype *type)
{
	const unsigned *x = a;
	unsigned *y = b;

	for (int i = 0; i < *n; i++, x += 4, y += 4) {
		unsigned r[4] = {x[0] * y[0] + x[1] * y[2], x[0] * y[1] + x[1] * y[3],
				 x[2] * y[0] + x[3] * y[2], x[2] * y[1] + x[3] * y[3]};

		memcpy(y, r, sizeof(r));
	}
}

static void ordered(int count)
{
	unsigned *mine = (unsigned *)in, *got = (unsigned *)out, wanted[4], next[4];
	int n = count / 4;
	MPI_Datatype matrix;
	MPI_Op op;

	MPI_Type_contiguous(4, MPI_UNSIGNED, &matrix);
	MPI_Type_commit(&matrix);
	MPI_Op_create(multiply, 0, &op);
	for (int i = 0; i < 4 * n; i++)
		mine[i] = (unsigned)(rank * 7 + i * 3 + 1);
	OK(MPI_Allreduce(mine, got, n, matrix, op, comm));
	for (int i = 0; i < n; i++) {
		for (int r = size - 1; r >= 0; r--) {
			for (int k = 0; k < 4; k++)
				next[k] = (unsigned)(r * 7 + (4 * i + k) * 3 + 1);
			if (r < size - 1)
				multiply(next, wanted, &(int){1}, &matrix);
			else
				memcpy(wanted, next, sizeof(wanted));
		}
		REQUIRE(memcmp(wanted, got + 4 * i, sizeof(wanted)) == 0);
	}
	MPI_Op_free(&op);
	MPI_Type_free(&matrix);
}

#define EACH(name, body)                                                                           \
	static void name(void **state)                                                             \
	{                                                                                          \
		for_each_comm(body);                                                               \
	}
EACH(the_root_s_data_is_everywhere, bcast)
EACH(the_root_has_all_and_gives_each_its_part, gather_and_scatter)
EACH(all_have_the_data_of_all, allgather)
EACH(each_has_what_each_sent_it, alltoall)
EACH(counts_may_differ, with_other_counts)
EACH(all_are_reduced, reductions)
EACH(those_before_are_reduced, scans)
EACH(each_has_its_part_of_what_is_reduced, reduce_scatters)
EACH(the_order_of_ranks_is_kept, ordered)

/* Started one after the other, and waited for from the last one. */
static void those_under_way_do_not_mix(void **state)
{
	enum { N = 20 };
	MPI_Request r[N];
	int sum[N], mine[N], told[N];

	for (int i = 0; i < N; i++) {
		mine[i] = me + i;
		told[i] = me == i % RANKS ? 100 + i : -1;
		if (i % 2)
			OK(MPI_Iallreduce(&mine[i], &sum[i], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD,
					  &r[i]));
		else
			OK(MPI_Ibcast(&told[i], 1, MPI_INT, i % RANKS, MPI_COMM_WORLD, &r[i]));
	}
	for (int i = N - 1; i >= 0; i--) {
		MPI_Wait(&r[i], MPI_STATUS_IGNORE);
		REQUIRE(i % 2 ? sum[i] == sum_to(RANKS, i) : told[i] == 100 + i);
	}
}

/* Nobody leaves before the last one has come, and that one waits for a message of each. */
static void a_barrier_keeps_all(void **state)
{
	for (int late = 0; late < RANKS; late++) {
		int flag = 0, word = late;
		MPI_Request r;

		for (int other = 0; me == late && other < RANKS; other++)
			if (other != me)
				MPI_Recv(&word, 1, MPI_INT, other, 5, MPI_COMM_WORLD,
					 MPI_STATUS_IGNORE);
		MPI_Ibarrier(MPI_COMM_WORLD, &r);
		for (int i = 0; me != late && i < 100; i++) {
			MPI_Test(&r, &flag, MPI_STATUS_IGNORE);
			REQUIRE(!flag);
		}
		if (me != late)
			MPI_Send(&word, 1, MPI_INT, late, 5, MPI_COMM_WORLD);
		MPI_Wait(&r, MPI_STATUS_IGNORE);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(the_root_s_data_is_everywhere),
	    cmocka_unit_test(the_root_has_all_and_gives_each_its_part),
	    cmocka_unit_test(all_have_the_data_of_all),
	    cmocka_unit_test(each_has_what_each_sent_it),
	    cmocka_unit_test(counts_may_differ),
	    cmocka_unit_test(all_are_reduced),
	    cmocka_unit_test(those_before_are_reduced),
	    cmocka_unit_test(each_has_its_part_of_what_is_reduced),
	    cmocka_unit_test(the_order_of_ranks_is_kept),
	    cmocka_unit_test(those_under_way_do_not_mix),
	    cmocka_unit_test(a_barrier_keeps_all),
	};

	ranks_start_on(RANKS, 2, &argc, &argv);
	in = calloc((size_t)RANKS * (MOST + 1), sizeof(int));
	out = calloc((size_t)RANKS * (MOST + 1), sizeof(int));
	REQUIRE(in && out);
	return ranks_run(tests, sizeof(tests) / sizeof(tests[0]));
}
