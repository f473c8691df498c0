/* SPDX-License-Identifier: BSD-3-Clause */
/* Everything whose values or layout differ between ABIs, once: prints names and results, never
 * values of constants, so that the same source prints the same compiled for any of them. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size, bad;
static MPI_Comm comm;

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			bad++;                                                                     \
			printf("rank %d: line %d: not %s\n", rank, __LINE__, #condition);          \
		}                                                                                  \
	} while (0)

/* ---- statuses and special ranks ---- */

static void messages(void)
{
	MPI_Status s, all[40];
	MPI_Request r[40];
	int in[40], out[40], n, flag, index, done, indices[40], got = 0;
	int right = (rank + 1) % size, left = (rank + size - 1) % size;

	memset(&s, 0x55, sizeof(s));
	MPI_Recv(&n, 1, MPI_INT, MPI_PROC_NULL, MPI_ANY_TAG, comm, &s);
	MPI_Get_count(&s, MPI_INT, &n);
	CHECK(s.MPI_SOURCE == MPI_PROC_NULL && s.MPI_TAG == MPI_ANY_TAG && n == 0);
	/* more requests than fit a small array */
	for (int i = 0; i < 40; i++) {
		out[i] = 100 * rank + i;
		MPI_Irecv(&in[i], 1, MPI_INT, i % 2 ? MPI_ANY_SOURCE : left, i % 3 ? i : MPI_ANY_TAG,
			  comm, &r[i]);
	}
	MPI_Barrier(comm);
	for (int i = 0; i < 40; i++)
		MPI_Send(&out[i], 1, MPI_INT, right, i, comm);
	MPI_Waitall(40, r, all);
	for (int i = 0; i < 40; i++) {
		MPI_Get_count(&all[i], MPI_INT, &n);
		CHECK(r[i] == MPI_REQUEST_NULL && all[i].MPI_SOURCE == left && n == 1);
		MPI_Test_cancelled(&all[i], &flag);
		CHECK(!flag && in[i] / 100 == left);
	}
	for (int i = 0; i < 4; i++) {
		MPI_Recv_init(&in[i], 1, MPI_INT, left, i, comm, &r[i]);
		MPI_Send_init(&out[i], 1, MPI_INT, right, i, comm, &r[4 + i]);
	}
	MPI_Startall(8, r);
	while (got < 8) {
		MPI_Waitsome(8, r, &done, indices, all);
		CHECK(done != MPI_UNDEFINED);
		got += done;
	}
	MPI_Waitsome(8, r, &done, indices, all);
	CHECK(done == MPI_UNDEFINED && r[0] != MPI_REQUEST_NULL);
	for (int i = 0; i < 8; i++)
		MPI_Request_free(&r[i]);
	MPI_Testany(8, r, &index, &flag, &s);
	CHECK(r[7] == MPI_REQUEST_NULL && flag && index == MPI_UNDEFINED);
	MPI_Irecv(&n, 1, MPI_INT, left, 999, comm, &r[0]);
	MPI_Test(&r[0], &flag, MPI_STATUS_IGNORE);
	CHECK(!flag);
	MPI_Cancel(&r[0]);
	MPI_Wait(&r[0], &s);
	MPI_Test_cancelled(&s, &flag);
	CHECK(flag);
	MPI_Status_set_elements(&s, MPI_DOUBLE, 7);
	MPI_Status_set_cancelled(&s, 0);
	MPI_Get_elements(&s, MPI_DOUBLE, &n);
	MPI_Test_cancelled(&s, &flag);
	CHECK(n == 7 && !flag);

	MPI_Message m;
	MPI_Isend(out, 3, MPI_INT, right, 5, comm, &r[0]);
	MPI_Mprobe(MPI_ANY_SOURCE, 5, comm, &m, &s);
	MPI_Get_count(&s, MPI_INT, &n);
	CHECK(n == 3 && s.MPI_SOURCE == left && m != MPI_MESSAGE_NULL);
	MPI_Mrecv(in, 3, MPI_INT, &m, &s);
	CHECK(m == MPI_MESSAGE_NULL && in[2] == 100 * left + 2);
	MPI_Wait(&r[0], MPI_STATUS_IGNORE);
	MPI_Improbe(MPI_PROC_NULL, 0, comm, &flag, &m, &s);
	CHECK(flag && m == MPI_MESSAGE_NO_PROC && s.MPI_SOURCE == MPI_PROC_NULL);
	MPI_Mrecv(in, 0, MPI_INT, &m, MPI_STATUS_IGNORE);
}

/* ---- callbacks ---- */

static MPI_Datatype expected;
static int seen;
static void op_max(void *in, void *inout, int *n, MPI_Datatype *type)
{
	seen += *type == expected;
	for (int i = 0; i < *n; i++)
		if (((int *)in)[i] > ((int *)inout)[i])
			((int *)inout)[i] = ((int *)in)[i];
}

static int copied, deleted, key;
static int comm_copied(MPI_Comm c, int keyval, void *extra, void *value, void *out, int *flag)
{
	copied += c == comm && keyval == key && extra == &copied;
	*(void **)out = (char *)value + 1;
	*flag = 1;
	return MPI_SUCCESS;
}
static int comm_deleted(MPI_Comm c, int keyval, void *value, void *extra)
{
	deleted += keyval == key && extra == &copied;
	return value == (void *)0x77 ? MPI_ERR_ARG : MPI_SUCCESS;
}

static int handled_class, handled;
static void on_error(MPI_Comm *c, int *code, ...)
{
	handled += *c == comm;
	MPI_Error_class(*code, &handled_class);
}

static int queried(void *extra, MPI_Status *s)
{
	s->MPI_SOURCE = 3;
	s->MPI_TAG = 4;
	MPI_Status_set_elements(s, MPI_INT, 5);
	MPI_Status_set_cancelled(s, 0);
	++*(int *)extra;
	return MPI_SUCCESS;
}
static int freed(void *extra)
{
	*(int *)extra += 10;
	return MPI_SUCCESS;
}
static int cancelled(void *extra, int complete)
{
	return MPI_SUCCESS;
}

static void callbacks(void)
{
	int one = rank, most = -1, flag, class, code, length, calls = 0, n;
	void *value;
	char text[MPI_MAX_ERROR_STRING];
	MPI_Op op;
	MPI_Comm dup;
	MPI_Errhandler h, back;
	MPI_Request r;
	MPI_Status s;

	expected = MPI_INT;
	MPI_Op_create(op_max, 1, &op);
	MPI_Allreduce(&one, &most, 1, MPI_INT, op, comm);
	MPI_Allreduce(MPI_IN_PLACE, &seen, 1, MPI_INT, MPI_SUM, comm);
	CHECK(most == size - 1 && (size == 1 || seen > 0));
	MPI_Op_free(&op);
	CHECK(op == MPI_OP_NULL);

	MPI_Comm_create_keyval(comm_copied, comm_deleted, &key, &copied);
	MPI_Comm_set_attr(comm, key, (void *)0x40);
	MPI_Comm_dup(comm, &dup);
	MPI_Comm_get_attr(dup, key, &value, &flag);
	CHECK(flag && value == (void *)0x41 && copied == 1);
	MPI_Comm_free(&dup);
	CHECK(deleted == 1 && dup == MPI_COMM_NULL);
	MPI_Comm_delete_attr(comm, key);
	MPI_Comm_free_keyval(&key);
	CHECK(deleted == 2 && key == MPI_KEYVAL_INVALID);
	MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &key, NULL);
	MPI_Comm_set_attr(comm, key, (void *)0x50);
	MPI_Comm_dup(comm, &dup);
	MPI_Comm_get_attr(dup, key, &value, &flag);
	CHECK(flag && value == (void *)0x50);
	MPI_Comm_free(&dup);
	MPI_Comm_delete_attr(comm, key);
	MPI_Comm_free_keyval(&key);

	MPI_Comm_create_errhandler(on_error, &h);
	MPI_Comm_set_errhandler(comm, h);
	MPI_Comm_get_errhandler(comm, &back);
	CHECK(back == h);
	MPI_Errhandler_free(&back);
	code = MPI_Send(&one, 1, MPI_INT, size + 3, 0, comm);
	MPI_Error_class(code, &class);
	CHECK(class == MPI_ERR_RANK && handled == 1 && handled_class == MPI_ERR_RANK);
	code = MPI_Send(&one, 1, MPI_INT, 0, -5, comm);
	CHECK(handled == 2 && handled_class == MPI_ERR_TAG);
	code = MPI_Send(&one, 1, MPI_DATATYPE_NULL, 0, 0, comm);
	CHECK(handled_class == MPI_ERR_TYPE);
	MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	code = MPI_Bcast(&one, 1, MPI_INT, -8, comm);
	MPI_Error_class(code, &class);
	CHECK(class == MPI_ERR_ROOT);
	MPI_Errhandler_free(&h);
	MPI_Add_error_class(&class);
	MPI_Add_error_code(class, &code);
	MPI_Add_error_string(code, "of our own");
	CHECK(class > MPI_ERR_LASTCODE && code > class);
	MPI_Error_string(code, text, &length);
	MPI_Error_class(code, &n);
	CHECK(!strcmp(text, "of our own") && n == class);
	MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &value, &flag);
	CHECK(flag && *(int *)value == code);
	MPI_Comm_call_errhandler(comm, MPI_ERR_OTHER);

	MPI_Grequest_start(queried, freed, cancelled, &calls, &r);
	MPI_Grequest_complete(r);
	MPI_Wait(&r, &s);
	MPI_Get_count(&s, MPI_INT, &n);
	CHECK(n == 5 && s.MPI_SOURCE == 3 && s.MPI_TAG == 4 && calls == 11);
}

/* ---- datatypes ---- */

static const char *combiner_name(int c)
{
	static const struct {
		int combiner;
		const char *name;
	} names[] = {{MPI_COMBINER_NAMED, "named"},
		     {MPI_COMBINER_DUP, "dup"},
		     {MPI_COMBINER_CONTIGUOUS, "contiguous"},
		     {MPI_COMBINER_VECTOR, "vector"},
		     {MPI_COMBINER_HVECTOR, "hvector"},
		     {MPI_COMBINER_INDEXED, "indexed"},
		     {MPI_COMBINER_HINDEXED, "hindexed"},
		     {MPI_COMBINER_INDEXED_BLOCK, "indexed_block"},
		     {MPI_COMBINER_STRUCT, "struct"},
		     {MPI_COMBINER_SUBARRAY, "subarray"},
		     {MPI_COMBINER_DARRAY, "darray"},
		     {MPI_COMBINER_F90_REAL, "f90_real"},
		     {MPI_COMBINER_RESIZED, "resized"}};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].combiner == c)
			return names[i].name;
	return "?";
}

static void describe(const char *what, MPI_Datatype t)
{
	int ni, na, nt, combiner, integers[32], bytes;
	MPI_Aint addresses[8];
	MPI_Datatype types[8];

	MPI_Type_get_envelope(t, &ni, &na, &nt, &combiner);
	MPI_Type_size(t, &bytes);
	if (rank == 0)
		printf("%s: %s %d %d %d, %d bytes", what, combiner_name(combiner), ni, na, nt, bytes);
	if (combiner != MPI_COMBINER_NAMED) {
		MPI_Type_get_contents(t, ni, na, nt, integers, addresses, types);
		if (combiner == MPI_COMBINER_SUBARRAY)
			CHECK(integers[7] == MPI_ORDER_FORTRAN);
		if (combiner == MPI_COMBINER_DARRAY)
			CHECK(integers[5] == MPI_DISTRIBUTE_CYCLIC &&
			      integers[8] == MPI_DISTRIBUTE_DFLT_DARG &&
			      integers[11] == MPI_ORDER_FORTRAN);
		for (int i = 0; i < nt; i++) {
			CHECK(types[i] == MPI_INT || types[i] == MPI_DOUBLE);
		}
	}
	if (rank == 0)
		printf("\n");
	if (combiner != MPI_COMBINER_NAMED && combiner != MPI_COMBINER_F90_REAL)
		MPI_Type_free(&t);
}

static void datatypes(void)
{
	int lengths[2] = {1, 2}, places[2] = {0, 3}, sizes[2] = {8, 8}, sub[2] = {2, 3},
	    starts[2] = {1, 1}, name_length;
	int distribs[2] = {MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_CYCLIC},
	    dargs[2] = {MPI_DISTRIBUTE_DFLT_DARG, MPI_DISTRIBUTE_DFLT_DARG}, grid[2] = {1, 1};
	MPI_Aint bytes[2] = {0, 32};
	MPI_Datatype two[2] = {MPI_INT, MPI_DOUBLE}, t;
	char name[MPI_MAX_OBJECT_NAME];
	static const struct {
		const char *name;
		int bytes;
	} known[] = {{"MPI_LONG_DOUBLE", sizeof(long double)}, {"MPI_DOUBLE_INT", 12}};

	describe("int", MPI_INT);
	MPI_Type_dup(MPI_INT, &t), describe("dup", t);
	MPI_Type_contiguous(3, MPI_INT, &t), describe("contiguous", t);
	MPI_Type_vector(2, 1, 3, MPI_INT, &t), describe("vector", t);
	MPI_Type_create_hvector(2, 1, 12, MPI_INT, &t), describe("hvector", t);
	MPI_Type_indexed(2, lengths, places, MPI_INT, &t), describe("indexed", t);
	MPI_Type_create_hindexed(2, lengths, bytes, MPI_INT, &t), describe("hindexed", t);
	MPI_Type_create_indexed_block(2, 2, places, MPI_INT, &t), describe("indexed_block", t);
	MPI_Type_create_struct(2, lengths, bytes, two, &t), describe("struct", t);
	MPI_Type_create_subarray(2, sizes, sub, starts, MPI_ORDER_FORTRAN, MPI_INT, &t);
	describe("subarray", t);
	MPI_Type_create_darray(1, 0, 2, sizes, distribs, dargs, grid, MPI_ORDER_FORTRAN, MPI_DOUBLE,
			       &t);
	describe("darray", t);
	MPI_Type_create_resized(MPI_INT, 0, 16, &t), describe("resized", t);
	MPI_Type_create_f90_real(15, MPI_UNDEFINED, &t), describe("f90_real", t);
	MPI_Type_match_size(MPI_TYPECLASS_REAL, 8, &t);
	MPI_Type_get_name(t, name, &name_length);
	if (rank == 0)
		printf("real of 8 bytes: %s\n", name);
	MPI_Datatype pairs[] = {MPI_LONG_DOUBLE, MPI_DOUBLE_INT};
	for (int i = 0; i < 2; i++) {
		int n;
		MPI_Type_size(pairs[i], &n);
		MPI_Type_get_name(pairs[i], name, &name_length);
		CHECK(n == known[i].bytes && !strcmp(name, known[i].name));
	}
}

/* ---- groups, topologies, collectives with arrays of types ---- */

static void groups(void)
{
	int result, ranks[2] = {0, MPI_PROC_NULL}, translated[2], source, dest, dims[1] = {size},
					  periods[1] = {0}, kind, nothing = 0;
	MPI_Group all, some;
	MPI_Comm cart, graph, half, shared;

	MPI_Comm_compare(MPI_COMM_WORLD, comm, &result);
	CHECK(result == MPI_CONGRUENT);
	MPI_Comm_group(comm, &all);
	MPI_Group_incl(all, 1, &nothing, &some);
	MPI_Group_compare(all, some, &result);
	CHECK(result == (size == 1 ? MPI_IDENT : MPI_UNEQUAL));
	MPI_Group_translate_ranks(all, 2, ranks, some, translated);
	CHECK(translated[0] == 0 && translated[1] == MPI_PROC_NULL);
	MPI_Group_rank(some, &result);
	CHECK(result == (rank == 0 ? 0 : MPI_UNDEFINED));
	MPI_Group_free(&all);
	MPI_Group_free(&some);
	CHECK(all == MPI_GROUP_NULL);
	MPI_Cart_create(comm, 1, dims, periods, 0, &cart);
	MPI_Cart_shift(cart, 0, 1, &source, &dest);
	CHECK(source == (rank ? rank - 1 : MPI_PROC_NULL));
	CHECK(dest == (rank < size - 1 ? rank + 1 : MPI_PROC_NULL));
	MPI_Topo_test(cart, &kind);
	CHECK(kind == MPI_CART);
	MPI_Topo_test(comm, &kind);
	CHECK(kind == MPI_UNDEFINED);
	MPI_Comm_free(&cart);
	source = (rank + 1) % size;
	MPI_Dist_graph_create_adjacent(comm, 1, &source, MPI_UNWEIGHTED, 1, &source, MPI_UNWEIGHTED,
				       MPI_INFO_NULL, 0, &graph);
	MPI_Topo_test(graph, &kind);
	MPI_Dist_graph_neighbors_count(graph, &source, &dest, &result);
	CHECK(kind == MPI_DIST_GRAPH && source == 1 && !result);
	MPI_Comm_free(&graph);
	MPI_Comm_split(comm, rank % 2 ? MPI_UNDEFINED : 0, 0, &half);
	CHECK((half == MPI_COMM_NULL) == (rank % 2));
	if (half != MPI_COMM_NULL)
		MPI_Comm_free(&half);
	MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &shared);
	MPI_Comm_free(&shared);

	int counts[16], displs[16], in[16], out[16], sum[2] = {rank, 1};
	MPI_Datatype types[16];
	for (int i = 0; i < size; i++) {
		counts[i] = 1;
		displs[i] = 4 * i;
		types[i] = MPI_INT;
		out[i] = 10 * rank + i;
	}
	MPI_Alltoallw(out, counts, displs, types, in, counts, displs, types, comm);
	for (int i = 0; i < size; i++)
		CHECK(in[i] == 10 * i + rank);
	MPI_Request r;
	memset(in, 0, sizeof(in));
	MPI_Ialltoallw(out, counts, displs, types, in, counts, displs, types, comm, &r);
	MPI_Wait(&r, MPI_STATUS_IGNORE);
	for (int i = 0; i < size; i++)
		CHECK(in[i] == 10 * i + rank);
	MPI_Allreduce(MPI_IN_PLACE, sum, 2, MPI_INT, MPI_SUM, comm);
	CHECK(sum[0] == size * (size - 1) / 2 && sum[1] == size);
	struct {
		double value;
		int where;
	} pair = {rank == 1 ? -1 : rank, rank}, least;
	MPI_Allreduce(&pair, &least, 1, MPI_DOUBLE_INT, MPI_MINLOC, comm);
	CHECK(least.where == (size > 1));
}

/* ---- windows, attributes that are constants, the environment ---- */

static void windows(void)
{
	int *base, *flavor, *model, flag, value = rank + 1, before = -1;
	MPI_Win win;

	MPI_Win_allocate(2 * sizeof(int), sizeof(int), MPI_INFO_NULL, comm, &base, &win);
	base[0] = base[1] = 0;
	MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, &flavor, &flag);
	CHECK(flag && *flavor == MPI_WIN_FLAVOR_ALLOCATE);
	MPI_Win_get_attr(win, MPI_WIN_MODEL, &model, &flag);
	CHECK(flag && (*model == MPI_WIN_UNIFIED || *model == MPI_WIN_SEPARATE));
	MPI_Win_fence(MPI_MODE_NOPRECEDE, win);
	MPI_Accumulate(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_SUM, win);
	MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
	CHECK(rank || base[0] == size * (size + 1) / 2);
	MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
	MPI_Fetch_and_op(&value, &before, MPI_INT, 0, 1, MPI_NO_OP, win);
	MPI_Win_unlock(0, win);
	CHECK(before == 0);
	MPI_Barrier(comm);
	MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, MPI_MODE_NOCHECK, win);
	MPI_Put(&value, 1, MPI_INT, rank, 1, 1, MPI_INT, win);
	MPI_Win_unlock(rank, win);
	MPI_Win_free(&win);
	CHECK(win == MPI_WIN_NULL);
}

static void environment(void)
{
	int *value, flag, length, level;
	char name[MPI_MAX_PROCESSOR_NAME], text[MPI_MAX_INFO_VAL + 1];
	MPI_Info info, copy;

	MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &value, &flag);
	CHECK(flag && *value >= 32767);
	MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, &value, &flag);
	CHECK(flag && *value >= size);
	MPI_Get_processor_name(name, &length);
	CHECK((int)strlen(name) == length && length > 0);
	MPI_Query_thread(&level);
	CHECK(level == MPI_THREAD_SERIALIZED || level == MPI_THREAD_MULTIPLE);
	MPI_Info_create(&info);
	MPI_Info_set(info, "key", "value");
	MPI_Info_dup(info, &copy);
	MPI_Info_get(copy, "key", MPI_MAX_INFO_VAL, text, &flag);
	CHECK(flag && !strcmp(text, "value"));
	MPI_Info_free(&info);
	MPI_Info_free(&copy);
	CHECK(info == MPI_INFO_NULL);
}

int main(int argc, char **argv)
{
	int level, total, rounds = argc > 1 ? atoi(argv[1]) : 1;

	MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &level);
	CHECK(level >= MPI_THREAD_SERIALIZED);
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Comm_rank(comm, &rank);
	MPI_Comm_size(comm, &size);
	for (int i = 0; i < rounds; i++) {
		copied = deleted = handled = seen = 0;
		messages();
		callbacks();
		datatypes();
		groups();
		windows();
		environment();
	}
	MPI_Reduce(&bad, &total, 1, MPI_INT, MPI_SUM, 0, comm);
	MPI_Comm_free(&comm);
	if (rank == 0)
		printf("bad: %d\n", total);
	MPI_Finalize();
	return bad != 0;
}
