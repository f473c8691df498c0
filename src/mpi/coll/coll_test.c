/* SPDX-License-Identifier: BSD-3-Clause */
/* The collectives' bindings: which arguments are refused, and with which class. */
#include "mpi/test/ranks.h"

static int in[4] = {1, 2, 3, 4}, out[8];

static void reduce_refuses_roots_that_are_none(void **state)
{
	for (int i = 0; i < 2; i++) {
		int root = (int[]){-1, 2}[i];

		REQUIRE_CLASS(MPI_Reduce(in, out, 1, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD),
			      MPI_ERR_ROOT);
		REQUIRE_CLASS(MPI_Bcast(in, 1, MPI_INT, root, MPI_COMM_WORLD), MPI_ERR_ROOT);
		REQUIRE_CLASS(MPI_Gather(in, 1, MPI_INT, out, 1, MPI_INT, root, MPI_COMM_WORLD),
			      MPI_ERR_ROOT);
		REQUIRE_CLASS(MPI_Scatter(in, 1, MPI_INT, out, 1, MPI_INT, root, MPI_COMM_WORLD),
			      MPI_ERR_ROOT);
	}
}

static void reduce_refuses_what_it_cannot_reduce(void **state)
{
	MPI_Datatype raw;

	MPI_Type_contiguous(2, MPI_INT, &raw);
	REQUIRE_CLASS(MPI_Reduce(in, out, -1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD), MPI_ERR_COUNT);
	REQUIRE_CLASS(MPI_Reduce(in, out, 1, MPI_INT, MPI_OP_NULL, 0, MPI_COMM_WORLD), MPI_ERR_OP);
	REQUIRE_CLASS(MPI_Reduce(in, out, 1, MPI_2INT, MPI_SUM, 0, MPI_COMM_WORLD), MPI_ERR_OP);
	REQUIRE_CLASS(MPI_Reduce(in, out, 1, raw, MPI_SUM, 0, MPI_COMM_WORLD), MPI_ERR_OP);
	REQUIRE_CLASS(MPI_Reduce(in, out, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_NULL), MPI_ERR_COMM);
	MPI_Type_free(&raw);
}

/* Which buffers count depends on who is the root. */
static void reduce_refuses_buffers_where_they_count(void **state)
{
	const void *sbuf = me == 0 ? in : MPI_IN_PLACE;

	REQUIRE_CLASS(
	    MPI_Reduce(me == 0 ? NULL : sbuf, out, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD),
	    me == 0 ? MPI_ERR_BUFFER : MPI_ERR_ARG);
	REQUIRE_CLASS(MPI_Reduce(in, MPI_IN_PLACE, 1, MPI_INT, MPI_SUM, me, MPI_COMM_WORLD),
		      MPI_ERR_ARG);
	REQUIRE_CLASS(MPI_Reduce(in, in, 1, MPI_INT, MPI_SUM, me, MPI_COMM_WORLD), MPI_ERR_ARG);
	REQUIRE_CLASS(MPI_Reduce(in, NULL, 1, MPI_INT, MPI_SUM, me, MPI_COMM_WORLD),
		      MPI_ERR_BUFFER);
	REQUIRE_CLASS(MPI_Reduce(NULL, NULL, 1, MPI_INT, MPI_SUM, 1 - me, MPI_COMM_WORLD),
		      MPI_ERR_BUFFER);
	/* nothing to reduce needs no buffers */
	REQUIRE_CLASS(MPI_Reduce(NULL, NULL, 0, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD), MPI_SUCCESS);
}

static void reduce_gives_the_root_the_sum(void **state)
{
	for (int root = 0; root < 2; root++) {
		memset(out, 0, sizeof(out));
		REQUIRE_CLASS(MPI_Reduce(in, me == root ? out : NULL, 4, MPI_INT, MPI_SUM, root,
					 MPI_COMM_WORLD),
			      MPI_SUCCESS);
		REQUIRE(out[0] == (me == root ? 2 : 0) && out[3] == (me == root ? 8 : 0));
		memcpy(out, in, sizeof(in));
		REQUIRE_CLASS(MPI_Reduce(me == root ? MPI_IN_PLACE : in, out, 4, MPI_INT, MPI_PROD,
					 root, MPI_COMM_WORLD),
			      MPI_SUCCESS);
		REQUIRE(out[3] == (me == root ? 16 : 4));
	}
}

static void other_reductions_check_the_same(void **state)
{
	REQUIRE_CLASS(MPI_Allreduce(in, out, -1, MPI_INT, MPI_SUM, MPI_COMM_WORLD), MPI_ERR_COUNT);
	REQUIRE_CLASS(MPI_Allreduce(in, MPI_IN_PLACE, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD),
		      MPI_ERR_BUFFER);
	REQUIRE_CLASS(MPI_Allreduce(in, NULL, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD), MPI_ERR_BUFFER);
	REQUIRE_CLASS(MPI_Allreduce(NULL, out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD),
		      MPI_ERR_BUFFER);
	REQUIRE_CLASS(MPI_Scan(in, out, -1, MPI_INT, MPI_SUM, MPI_COMM_WORLD), MPI_ERR_COUNT);
	REQUIRE_CLASS(MPI_Exscan(in, out, 1, MPI_INT, MPI_OP_NULL, MPI_COMM_WORLD), MPI_ERR_OP);
	REQUIRE_CLASS(MPI_Reduce_scatter_block(in, out, -1, MPI_INT, MPI_SUM, MPI_COMM_WORLD),
		      MPI_ERR_COUNT);
	REQUIRE_CLASS(MPI_Reduce_scatter(in, out, (int[]){1, -1}, MPI_INT, MPI_SUM, MPI_COMM_WORLD),
		      MPI_ERR_COUNT);
	REQUIRE_CLASS(
	    MPI_Reduce_scatter(in, MPI_IN_PLACE, (int[]){1, 1}, MPI_INT, MPI_SUM, MPI_COMM_WORLD),
	    MPI_ERR_ARG);
	memset(out, 0, sizeof(out));
	REQUIRE_CLASS(MPI_Scan(in, out, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD), MPI_SUCCESS);
	REQUIRE(out[0] == 1 + me && out[1] == 2 + 2 * me);
	REQUIRE_CLASS(MPI_Reduce_scatter(in, out, (int[]){1, 3}, MPI_INT, MPI_SUM, MPI_COMM_WORLD),
		      MPI_SUCCESS);
	REQUIRE(out[0] == (me == 0 ? 2 : 4));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(reduce_refuses_roots_that_are_none),
	    cmocka_unit_test(reduce_refuses_what_it_cannot_reduce),
	    cmocka_unit_test(reduce_refuses_buffers_where_they_count),
	    cmocka_unit_test(reduce_gives_the_root_the_sum),
	    cmocka_unit_test(other_reductions_check_the_same),
	};
	ranks_start(2, &argc, &argv);
	return ranks_run(tests, sizeof(tests) / sizeof(tests[0]));
}
