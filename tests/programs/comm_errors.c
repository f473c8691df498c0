/* SPDX-License-Identifier: BSD-3-Clause */
/* The error class of wrong calls about communicators, groups, topologies, attributes, info and
 * error handlers, and in what order the callbacks of attributes and error handlers come. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

static int me;
#define TRY(call)                                                                                  \
	do {                                                                                       \
		int try_rc = call;                                                                 \
		if (me == 0)                                                                       \
			printf("%s: %d\n", #call, try_rc);                                         \
	} while (0)
#define SAY(...)                                                                                   \
	do {                                                                                       \
		if (me == 0)                                                                       \
			printf(__VA_ARGS__);                                                       \
	} while (0)

static void groups(void)
{
	MPI_Group w, g = MPI_GROUP_NULL;
	int ranks[3] = {0, 0, 9}, out[3], n;
	int back[1][3] = {{1, 0, 1}}, zero[1][3] = {{0, 1, 0}}, far[1][3] = {{0, 5, 1}};
	MPI_Comm_group(MPI_COMM_WORLD, &w);
	TRY(MPI_Group_size(MPI_GROUP_NULL, &n));
	TRY(MPI_Group_rank(w, NULL));
	TRY(MPI_Group_incl(w, 1, ranks + 2, &g));
	TRY(MPI_Group_incl(w, -1, ranks, &g));
	TRY(MPI_Group_incl(w, 3, ranks, &g));
	TRY(MPI_Group_incl(w, 0, NULL, &g));
	SAY("empty %d\n", g == MPI_GROUP_EMPTY);
	TRY(MPI_Group_excl(w, 1, ranks + 2, &g));
	TRY(MPI_Group_range_incl(w, 1, back, &g));
	TRY(MPI_Group_range_incl(w, 1, zero, &g));
	TRY(MPI_Group_range_incl(w, 1, far, &g));
	TRY(MPI_Group_range_excl(w, 1, far, &g));
	TRY(MPI_Group_range_excl(w, 1, back, &g));
	TRY(MPI_Group_translate_ranks(w, -1, ranks, w, out));
	TRY(MPI_Group_translate_ranks(MPI_GROUP_NULL, 1, ranks, w, out));
	TRY(MPI_Group_union(w, MPI_GROUP_NULL, &g));
	TRY(MPI_Group_intersection(MPI_GROUP_NULL, w, &g));
	TRY(MPI_Group_difference(w, MPI_GROUP_NULL, &g));
	TRY(MPI_Group_compare(w, MPI_GROUP_NULL, &n));
	TRY(MPI_Group_compare(w, w, NULL));
	g = MPI_GROUP_NULL;
	TRY(MPI_Group_free(&g));
	TRY(MPI_Group_difference(w, w, &g));
	TRY(MPI_Group_compare(g, MPI_GROUP_EMPTY, &n));
	SAY("empty groups compare %d\n", n);
	MPI_Group_free(&w);
}

static void comms(void)
{
	MPI_Comm c, d, none = MPI_COMM_NULL;
	int n, len;
	char name[MPI_MAX_OBJECT_NAME];
	MPI_Group g, other;
	TRY(MPI_Comm_size(MPI_COMM_NULL, &n));
	TRY(MPI_Comm_size(MPI_COMM_WORLD, NULL));
	TRY(MPI_Comm_rank(MPI_COMM_NULL, &n));
	TRY(MPI_Comm_rank(MPI_COMM_WORLD, NULL));
	TRY(MPI_Comm_dup(MPI_COMM_NULL, &c));
	TRY(MPI_Comm_dup(MPI_COMM_WORLD, NULL));
	TRY(MPI_Comm_split(MPI_COMM_NULL, 0, 0, &c));
	TRY(MPI_Comm_split(MPI_COMM_WORLD, -7, 0, &c));
	TRY(MPI_Comm_split(MPI_COMM_WORLD, 0, 0, NULL));
	TRY(MPI_Comm_split_type(MPI_COMM_WORLD, 99, 0, MPI_INFO_NULL, &c));
	TRY(MPI_Comm_create(MPI_COMM_WORLD, MPI_GROUP_NULL, &c));
	TRY(MPI_Comm_create(MPI_COMM_NULL, MPI_GROUP_EMPTY, &c));
	TRY(MPI_Comm_create(MPI_COMM_WORLD, MPI_GROUP_EMPTY, &c));
	SAY("create of nobody is null: %d\n", c == MPI_COMM_NULL);
	TRY(MPI_Comm_create_group(MPI_COMM_WORLD, MPI_GROUP_EMPTY, -1, &c));
	TRY(MPI_Comm_free(&none));
	TRY(MPI_Comm_remote_size(MPI_COMM_WORLD, &n));
	TRY(MPI_Comm_remote_group(MPI_COMM_WORLD, &g));
	TRY(MPI_Comm_test_inter(MPI_COMM_NULL, &n));
	TRY(MPI_Comm_compare(MPI_COMM_WORLD, MPI_COMM_NULL, &n));
	TRY(MPI_Comm_group(MPI_COMM_NULL, &g));
	TRY(MPI_Comm_get_name(MPI_COMM_NULL, name, &len));
	TRY(MPI_Comm_set_name(MPI_COMM_WORLD, NULL));
	TRY(MPI_Intercomm_merge(MPI_COMM_WORLD, 0, &c));
	TRY(MPI_Intercomm_create(MPI_COMM_SELF, 3, MPI_COMM_WORLD, 0, 0, &c));
	TRY(MPI_Intercomm_create(MPI_COMM_NULL, 0, MPI_COMM_WORLD, 0, 0, &c));
	MPI_Comm_dup(MPI_COMM_WORLD, &c);
	MPI_Comm_dup(MPI_COMM_WORLD, &d);
	TRY(MPI_Comm_compare(c, d, &n));
	SAY("compare %d\n", n);
	MPI_Comm_get_name(c, name, &len);
	SAY("name '%s' %d\n", name, len);
	MPI_Comm_set_name(c,
			  "0123456789012345678901234567890123456789012345678901234567890123456789");
	MPI_Comm_get_name(c, name, &len);
	SAY("name '%s' %d\n", name, len);
	MPI_Comm_group(c, &g);
	MPI_Comm_group(MPI_COMM_WORLD, &other);
	TRY(MPI_Group_compare(g, other, &n));
	SAY("groups compare %d\n", n);
	MPI_Group_free(&g);
	MPI_Group_free(&other);
	MPI_Comm_free(&c);
	MPI_Comm_free(&d);
	SAY("freed is null %d\n", c == MPI_COMM_NULL);
}

static void topologies(void)
{
	MPI_Comm c, g;
	int dims[3] = {2, 1, 1}, periods[3] = {0, 1, 0}, bad[3] = {0, 1, 1}, big[2] = {99, 99}, n,
	    m;
	int coords[3] = {5, 0, 0}, negative[2] = {-1, 2};
	int index[2] = {1, 2}, edges[2] = {1, 0};
	TRY(MPI_Cart_create(MPI_COMM_NULL, 1, dims, periods, 0, &c));
	TRY(MPI_Cart_create(MPI_COMM_WORLD, -1, dims, periods, 0, &c));
	TRY(MPI_Cart_create(MPI_COMM_WORLD, 1, NULL, periods, 0, &c));
	TRY(MPI_Cart_create(MPI_COMM_WORLD, 2, big, periods, 0, &c));
	TRY(MPI_Cart_create(MPI_COMM_WORLD, 0, NULL, NULL, 0, &c));
	if (me == 0) {
		MPI_Cartdim_get(c, &n);
		SAY("no dims: %d\n", n);
		MPI_Comm_free(&c);
	} else if (c != MPI_COMM_NULL) {
		printf("rank %d is in a grid of one\n", me);
	}
	TRY(MPI_Cart_create(MPI_COMM_WORLD, 3, dims, periods, 0, &c));
	MPI_Comm_set_errhandler(c, MPI_ERRORS_RETURN);
	TRY(MPI_Cart_rank(c, coords, &n));
	TRY(MPI_Cart_rank(MPI_COMM_WORLD, coords, &n));
	TRY(MPI_Cart_rank(c, NULL, &n));
	TRY(MPI_Cart_coords(c, 17, 3, coords));
	TRY(MPI_Cart_coords(c, 0, 2, coords));
	TRY(MPI_Cart_coords(c, 0, -1, coords));
	TRY(MPI_Cart_coords(c, -1, 3, coords));
	TRY(MPI_Cart_shift(c, -1, 1, &n, &m));
	TRY(MPI_Cart_shift(c, 0, 1, NULL, &m));
	TRY(MPI_Cart_shift(c, 1, 0, &n, &m));
	SAY("shift by 0: %d %d\n", n, m);
	TRY(MPI_Cart_shift(MPI_COMM_WORLD, 0, 1, &n, &m));
	TRY(MPI_Cart_get(c, 1, dims, periods, coords));
	TRY(MPI_Cart_get(c, -1, dims, periods, coords));
	TRY(MPI_Cart_get(c, 3, NULL, periods, coords));
	TRY(MPI_Cart_sub(MPI_COMM_WORLD, dims, &g));
	TRY(MPI_Cartdim_get(MPI_COMM_WORLD, &n));
	TRY(MPI_Cartdim_get(c, NULL));
	TRY(MPI_Graphdims_get(c, &n, &m));
	TRY(MPI_Graph_neighbors_count(c, 0, &n));
	TRY(MPI_Topo_test(MPI_COMM_WORLD, NULL));
	TRY(MPI_Topo_test(MPI_COMM_WORLD, &n));
	SAY("kind of world %d\n", n == MPI_UNDEFINED);
	MPI_Comm_free(&c);
	TRY(MPI_Graph_create(MPI_COMM_WORLD, -1, index, edges, 0, &g));
	TRY(MPI_Graph_create(MPI_COMM_WORLD, 99, index, edges, 0, &g));
	TRY(MPI_Graph_create(MPI_COMM_WORLD, 2, NULL, edges, 0, &g));
	TRY(MPI_Graph_create(MPI_COMM_WORLD, 2, index, edges, 0, &g));
	MPI_Comm_set_errhandler(g, MPI_ERRORS_RETURN);
	TRY(MPI_Graph_neighbors(g, 7, 1, edges));
	TRY(MPI_Graph_neighbors(g, 0, -1, edges));
	TRY(MPI_Graph_neighbors_count(g, -1, &n));
	TRY(MPI_Graph_get(g, -1, 1, index, edges));
	TRY(MPI_Graph_get(g, 1, 1, NULL, edges));
	TRY(MPI_Cartdim_get(g, &n));
	TRY(MPI_Dist_graph_neighbors_count(g, &n, &n, &n));
	MPI_Comm_free(&g);
	TRY(MPI_Graph_create(MPI_COMM_WORLD, 0, NULL, NULL, 0, &g));
	SAY("graph of nothing is null: %d\n", g == MPI_COMM_NULL);
	TRY(MPI_Dims_create(6, 2, negative));
	TRY(MPI_Dims_create(0, 2, bad));
	TRY(MPI_Dims_create(7, -2, bad));
	negative[0] = 4;
	TRY(MPI_Dims_create(6, 2, negative));
	TRY(MPI_Dims_create(6, 2, NULL));
	TRY(MPI_Dims_create(6, 0, NULL));
	TRY(MPI_Dims_create(1, 0, NULL));
	TRY(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, -1, edges, MPI_UNWEIGHTED, 0, edges,
					   MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &g));
	TRY(MPI_Dist_graph_create(MPI_COMM_WORLD, -1, edges, edges, edges, MPI_UNWEIGHTED,
				  MPI_INFO_NULL, 0, &g));
}

static int copies, deletes, refuse_copy, refuse_delete;

static int copy_fn(MPI_Comm c, int key, void *extra, void *in, void *out, int *flag)
{
	SAY("copy %s of %ld\n", (char *)extra, (long)in);
	copies++;
	*(void **)out = (char *)in + 1;
	*flag = 1;
	return refuse_copy ? MPI_ERR_OTHER : MPI_SUCCESS;
}

static int delete_fn(MPI_Comm c, int key, void *value, void *extra)
{
	SAY("delete %s of %ld\n", (char *)extra, (long)value);
	deletes++;
	return refuse_delete ? MPI_ERR_OTHER : MPI_SUCCESS;
}

static int last_delete(MPI_Comm c, int key, void *value, void *extra)
{
	int initialized, finalized;
	MPI_Initialized(&initialized);
	MPI_Finalized(&finalized);
	SAY("delete on self at the end: %ld, %d %d\n", (long)value, initialized, finalized);
	return MPI_SUCCESS;
}

static void attributes(void)
{
	int a, b, gone, flag, unset, type_key, bad = 5000;
	void *v;
	MPI_Comm c, d;
	MPI_Comm_dup(MPI_COMM_WORLD, &c);
	TRY(MPI_Comm_create_keyval(NULL, delete_fn, &a, NULL));
	TRY(MPI_Comm_create_keyval(copy_fn, NULL, &a, NULL));
	MPI_Comm_create_keyval(copy_fn, delete_fn, &a, "a");
	MPI_Comm_create_keyval(copy_fn, delete_fn, &b, "b");
	MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &unset, NULL);
	MPI_Type_create_keyval(MPI_TYPE_DUP_FN, MPI_TYPE_NULL_DELETE_FN, &type_key, NULL);
	TRY(MPI_Comm_set_attr(c, a, (void *)10));
	TRY(MPI_Comm_set_attr(c, b, (void *)20));
	TRY(MPI_Comm_set_attr(c, a, (void *)30));
	TRY(MPI_Comm_get_attr(c, a, &v, &flag));
	SAY("value %ld %d\n", (long)v, flag);
	TRY(MPI_Comm_get_attr(c, unset, &v, &flag));
	SAY("flag %d\n", flag);
	TRY(MPI_Comm_get_attr(c, MPI_KEYVAL_INVALID, &v, &flag));
	TRY(MPI_Comm_get_attr(c, bad, &v, &flag));
	TRY(MPI_Comm_set_attr(c, bad, NULL));
	TRY(MPI_Comm_set_attr(c, type_key, NULL));
	TRY(MPI_Comm_set_attr(c, MPI_TAG_UB, NULL));
	TRY(MPI_Comm_set_attr(MPI_COMM_NULL, a, NULL));
	TRY(MPI_Comm_delete_attr(c, unset));
	TRY(MPI_Comm_delete_attr(c, MPI_TAG_UB));
	TRY(MPI_Comm_free_keyval(&type_key));
	MPI_Type_free_keyval(&type_key);
	TRY(MPI_Comm_free_keyval(&bad));
	gone = b;
	TRY(MPI_Comm_free_keyval(&b));
	SAY("invalid %d\n", b == MPI_KEYVAL_INVALID);
	TRY(MPI_Comm_dup(c, &d));
	TRY(MPI_Comm_get_attr(d, a, &v, &flag));
	SAY("value %ld %d\n", (long)v, flag);
	TRY(MPI_Comm_get_attr(d, gone, &v, &flag));
	SAY("value %ld %d\n", (long)v, flag);
	/* one attribute from here on: in what order several are copied is left open */
	TRY(MPI_Comm_delete_attr(c, gone));
	TRY(MPI_Comm_delete_attr(d, gone));
	refuse_delete = 1;
	TRY(MPI_Comm_delete_attr(d, a));
	TRY(MPI_Comm_free(&d));
	SAY("still there %d\n", d != MPI_COMM_NULL);
	refuse_delete = 0;
	TRY(MPI_Comm_free(&d));
	refuse_copy = 1;
	TRY(MPI_Comm_dup(c, &d));
	refuse_copy = 0;
	TRY(MPI_Attr_put(c, a, (void *)50));
	TRY(MPI_Attr_get(c, a, &v, &flag));
	TRY(MPI_Attr_delete(c, a));
	TRY(MPI_Comm_free(&c));
	TRY(MPI_Keyval_free(&a));
	MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, last_delete, &a, NULL);
	MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, last_delete, &b, NULL);
	MPI_Comm_set_attr(MPI_COMM_SELF, a, (void *)1);
	MPI_Comm_set_attr(MPI_COMM_SELF, b, (void *)2);
	MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &v, &flag);
	SAY("tag ub %d %d\n", flag, *(int *)v);
	MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_WTIME_IS_GLOBAL, &v, &flag);
	SAY("wtime global %d %d\n", flag, *(int *)v);
	MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_HOST, &v, &flag);
	SAY("host %d %d\n", flag, *(int *)v);
	MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_IO, &v, &flag);
	SAY("io %d %d\n", flag, *(int *)v);
	MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &v, &flag);
	SAY("last used code %d %d\n", flag, *(int *)v);
}

static void info(void)
{
	MPI_Info i, j;
	int flag, n, len;
	char text[MPI_MAX_INFO_VAL + 1], key[MPI_MAX_INFO_KEY + 1];
	MPI_Info_create(&i);
	TRY(MPI_Info_set(i, "one", "1"));
	TRY(MPI_Info_set(i, "two", "2"));
	TRY(MPI_Info_set(i, "three", "3"));
	TRY(MPI_Info_set(i, "two", "another"));
	TRY(MPI_Info_delete(i, "one"));
	TRY(MPI_Info_delete(i, "one"));
	TRY(MPI_Info_get_nkeys(i, &n));
	for (int k = 0; k < n; k++) {
		MPI_Info_get_nthkey(i, k, key);
		MPI_Info_get(i, key, 3, text, &flag);
		MPI_Info_get_valuelen(i, key, &len, &flag);
		SAY("%s = %s, %d\n", key, text, len);
	}
	TRY(MPI_Info_get(i, "none", 3, text, &flag));
	SAY("flag %d\n", flag);
	TRY(MPI_Info_get_nthkey(i, 7, key));
	TRY(MPI_Info_get_nthkey(i, -1, key));
	TRY(MPI_Info_set(i, "", "x"));
	TRY(MPI_Info_set(i, NULL, "x"));
	TRY(MPI_Info_set(i, "x", ""));
	TRY(MPI_Info_set(i, "x", NULL));
	TRY(MPI_Info_set(i, "a key that is longer than thirty-six", "x"));
	TRY(MPI_Info_set(MPI_INFO_NULL, "x", "y"));
	TRY(MPI_Info_get(i, "two", -1, text, &flag));
	TRY(MPI_Info_get(i, "two", 3, NULL, &flag));
	TRY(MPI_Info_get(i, "two", 3, text, NULL));
	TRY(MPI_Info_get(MPI_INFO_NULL, "two", 3, text, &flag));
	TRY(MPI_Info_get_nkeys(i, NULL));
	TRY(MPI_Info_dup(i, &j));
	MPI_Info_set(i, "four", "4");
	MPI_Info_get_nkeys(j, &n);
	SAY("the copy has %d\n", n);
	TRY(MPI_Info_free(&i));
	SAY("null %d\n", i == MPI_INFO_NULL);
	TRY(MPI_Info_free(&i));
	MPI_Info_free(&j);
	MPI_Info_get(MPI_INFO_ENV, "maxprocs", MPI_MAX_INFO_VAL, text, &flag);
	SAY("maxprocs %d %s\n", flag, text);
	MPI_Info_get(MPI_INFO_ENV, "arch", MPI_MAX_INFO_VAL, text, &flag);
	SAY("arch %d %s\n", flag, text);
}

static void handler(MPI_Comm *c, int *code, ...)
{
	int same;
	MPI_Comm_compare(*c, MPI_COMM_WORLD, &same);
	SAY("handler: %d, compare %d\n", *code, same);
}

static void handlers(void)
{
	MPI_Errhandler h, got, win, null = MPI_ERRHANDLER_NULL;
	MPI_Comm c, d;
	int class, code, n, len;
	char text[MPI_MAX_ERROR_STRING];
	MPI_Comm_dup(MPI_COMM_WORLD, &c);
	TRY(MPI_Comm_create_errhandler(NULL, &h));
	TRY(MPI_Comm_create_errhandler(handler, &h));
	TRY(MPI_Comm_set_errhandler(c, MPI_ERRHANDLER_NULL));
	TRY(MPI_Comm_set_errhandler(MPI_COMM_NULL, h));
	TRY(MPI_Comm_set_errhandler(c, h));
	TRY(MPI_Comm_get_errhandler(c, &got));
	SAY("same %d\n", got == h);
	TRY(MPI_Errhandler_free(&got));
	TRY(MPI_Errhandler_free(&h));
	SAY("null %d\n", h == MPI_ERRHANDLER_NULL);
	TRY(MPI_Errhandler_free(&null));
	TRY(MPI_Comm_split(c, -9, 0, &d));
	TRY(MPI_Comm_dup(c, &d));
	TRY(MPI_Comm_split(d, -9, 0, NULL));
	TRY(MPI_Comm_call_errhandler(d, MPI_ERR_TAG));
	TRY(MPI_Comm_call_errhandler(d, MPI_SUCCESS));
	TRY(MPI_Send(NULL, -1, MPI_INT, 0, 0, d));
	TRY(MPI_Send(NULL, 0, MPI_INT, 99, 0, d));
	TRY(MPI_Send(NULL, 0, MPI_INT, 0, -5, d));
	TRY(MPI_Send(NULL, 0, MPI_DATATYPE_NULL, 0, 0, d));
	MPI_Win_create_errhandler((MPI_Win_errhandler_function *)handler, &win);
	TRY(MPI_Comm_set_errhandler(d, win));
	MPI_Errhandler_free(&win);
	TRY(MPI_Comm_get_errhandler(d, NULL));
	TRY(MPI_File_get_errhandler(MPI_FILE_NULL, &got));
	SAY("files return %d\n", got == MPI_ERRORS_RETURN);
	MPI_Comm_free(&d);
	MPI_Comm_free(&c);
	TRY(MPI_Add_error_class(&class));
	TRY(MPI_Add_error_code(class, &code));
	TRY(MPI_Add_error_string(code, "our own"));
	TRY(MPI_Error_class(code, &n));
	TRY(MPI_Error_string(code, text, &len));
	SAY("code %d of class %d: '%s' %d\n", code, n, text, len);
	TRY(MPI_Error_string(class, text, &len));
	SAY("'%s'\n", text);
	TRY(MPI_Add_error_code(3000, &code));
	TRY(MPI_Add_error_string(3, "no"));
	TRY(MPI_Error_class(-4, &n));
	TRY(MPI_Error_string(4000, text, &len));
	for (int i = 0; i <= MPI_ERR_LASTCODE; i++) {
		MPI_Error_class(i, &n);
		MPI_Error_string(i, text, &len);
		SAY("%d is %d: %s\n", i, n, text);
	}
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &me);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	groups();
	comms();
	topologies();
	attributes();
	info();
	handlers();
	MPI_Finalize();
	return 0;
}
