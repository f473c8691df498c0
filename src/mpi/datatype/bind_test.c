/* SPDX-License-Identifier: BSD-3-Clause */
/* The bindings alone in one process, with stand-ins for the rest of the library. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "mpi/comm/comm.h"
#include "mpi/task/intask.h"

/* ---- stand-ins ---- */
__thread volatile int guard_inside __attribute__((tls_model("initial-exec")));
volatile int guard_attention;
_Atomic int call_gate;
bool guard_multiple;
api_state_t api_state = API_RUNNING;
static struct rank_meter meter;
struct rank_meter *profile_meter = &meter;
__thread struct match_call match_call;
void (*match_call_tell)(const char *name);
static int refuse_copy, refuse_delete, deleted, forgotten;

struct ompi_predefined_communicator_t ompi_mpi_comm_world = {
    .comm = {.obj = OBJECT_STATIC(OBJECT_COMM, 0)}};
struct ompi_predefined_communicator_t ompi_mpi_comm_null = {
    .comm = {.obj = OBJECT_STATIC(OBJECT_COMM, OBJECT_NULL)}};

/* no tasks here */
__thread struct tasklog *tasklog_now __attribute__((tls_model("initial-exec")));

void intask_enter(const char *function)
{
}

void intask_free(void *object, void (*end)(void *object))
{
	end(object);
}

void profile_sample(void)
{
}
void profile_note(void)
{
}
void guard_lock_slow(void)
{
}
void guard_unlock_slow(void)
{
}
void guard_attend(void)
{
}
void api_gate(const char *function)
{
	(void)function;
}
void api_not_running(const char *function)
{
	abort();
}
int api_error(struct comm *c, int cls, const char *function)
{
	assert_int_equal(guard_inside, 0);
	return cls;
}
int attr_copy_all(enum attr_kind kind, void *from, struct attributes *const *attrs, void *to,
		  struct attributes **copy)
{
	return refuse_copy;
}
int attr_delete_all(enum attr_kind kind, void *object, struct attributes **attrs)
{
	deleted++;
	return refuse_delete;
}
int object_to_fortran(struct object *o)
{
	return o->f_index;
}
void object_forget_fortran(struct object *o)
{
	forgotten++;
}

/* ---- tools ---- */
static unsigned state = 5;

static int pick(int n)
{
	state = state * 1664525u + 1013904223u;
	return (int)((state >> 8) % (unsigned)n);
}

static bool predefined(MPI_Datatype type)
{
	int a, b, c, combiner;
	assert_int_equal(MPI_Type_get_envelope(type, &a, &b, &c, &combiner), MPI_SUCCESS);
	return combiner == MPI_COMBINER_NAMED;
}

static void drop(MPI_Datatype *type)
{
	if (!predefined(*type))
		assert_int_equal(MPI_Type_free(type), MPI_SUCCESS);
}

/* One type of each constructor in turn over `old`. */
static MPI_Datatype derive(int how, MPI_Datatype old)
{
	const int lengths[3] = {2, 0, 3}, index[3] = {4, 9, 0}, sizes[2] = {4, 5},
		  parts[2] = {2, 3};
	const int starts[2] = {1, 2}, args[2] = {MPI_DISTRIBUTE_DFLT_DARG, 2}, grid[2] = {2, 2};
	const int kinds[2] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC};
	const MPI_Aint offsets[3] = {512, 8, -64};
	const MPI_Datatype types[3] = {old, MPI_CHAR, MPI_DOUBLE};
	MPI_Datatype t = MPI_DATATYPE_NULL;
	int rc = MPI_SUCCESS;
	switch (how) {
	case 0:
		rc = MPI_Type_contiguous(3, old, &t);
		break;
	case 1:
		rc = MPI_Type_vector(3, 2, -4, old, &t);
		break;
	case 2:
		rc = MPI_Type_create_hvector(3, 2, 100, old, &t);
		break;
	case 3:
		rc = MPI_Type_indexed(3, lengths, index, old, &t);
		break;
	case 4:
		rc = MPI_Type_create_hindexed(3, lengths, offsets, old, &t);
		break;
	case 5:
		rc = MPI_Type_create_indexed_block(3, 2, index, old, &t);
		break;
	case 6:
		rc = MPI_Type_create_hindexed_block(3, 2, offsets, old, &t);
		break;
	case 7:
		rc = MPI_Type_create_struct(3, lengths, offsets, types, &t);
		break;
	case 8:
		rc = MPI_Type_create_subarray(2, sizes, parts, starts, MPI_ORDER_FORTRAN, old, &t);
		break;
	case 9:
		rc =
		    MPI_Type_create_darray(4, 2, 2, sizes, kinds, args, grid, MPI_ORDER_C, old, &t);
		break;
	case 10:
		rc = MPI_Type_create_resized(old, -8, 200, &t);
		break;
	case 11:
		rc = MPI_Type_dup(old, &t);
		break;
	}
	assert_int_equal(rc, MPI_SUCCESS);
	return t;
}

struct contents {
	int nints, naddrs, ntypes, combiner;
	int ints[40];
	MPI_Aint addrs[8];
	MPI_Datatype types[8];
};

static void get_contents(MPI_Datatype t, struct contents *c)
{
	memset(c, 0, sizeof(*c));
	assert_int_equal(MPI_Type_get_envelope(t, &c->nints, &c->naddrs, &c->ntypes, &c->combiner),
			 MPI_SUCCESS);
	assert_int_equal(
	    MPI_Type_get_contents(t, c->nints, c->naddrs, c->ntypes, c->ints, c->addrs, c->types),
	    MPI_SUCCESS);
}

/* The type made anew from its contents alone. */
static MPI_Datatype rebuild(MPI_Datatype type)
{
	struct contents c;
	MPI_Datatype t = MPI_DATATYPE_NULL, parts[8];
	if (predefined(type))
		return type;
	get_contents(type, &c);
	for (int i = 0; i < c.ntypes; i++) {
		parts[i] = rebuild(c.types[i]);
		drop(&c.types[i]);
	}
	const int *k = c.ints;
	int rc = MPI_ERR_ARG;
	switch (c.combiner) {
	case MPI_COMBINER_CONTIGUOUS:
		rc = MPI_Type_contiguous(k[0], parts[0], &t);
		break;
	case MPI_COMBINER_VECTOR:
		rc = MPI_Type_vector(k[0], k[1], k[2], parts[0], &t);
		break;
	case MPI_COMBINER_HVECTOR:
		rc = MPI_Type_create_hvector(k[0], k[1], c.addrs[0], parts[0], &t);
		break;
	case MPI_COMBINER_INDEXED:
		rc = MPI_Type_indexed(k[0], k + 1, k + 1 + k[0], parts[0], &t);
		break;
	case MPI_COMBINER_HINDEXED:
		rc = MPI_Type_create_hindexed(k[0], k + 1, c.addrs, parts[0], &t);
		break;
	case MPI_COMBINER_INDEXED_BLOCK:
		rc = MPI_Type_create_indexed_block(k[0], k[1], k + 2, parts[0], &t);
		break;
	case MPI_COMBINER_HINDEXED_BLOCK:
		rc = MPI_Type_create_hindexed_block(k[0], k[1], c.addrs, parts[0], &t);
		break;
	case MPI_COMBINER_STRUCT:
		rc = MPI_Type_create_struct(k[0], k + 1, c.addrs, parts, &t);
		break;
	case MPI_COMBINER_SUBARRAY:
		rc = MPI_Type_create_subarray(k[0], k + 1, k + 1 + k[0], k + 1 + 2 * k[0],
					      k[1 + 3 * k[0]], parts[0], &t);
		break;
	case MPI_COMBINER_DARRAY:
		rc = MPI_Type_create_darray(k[0], k[1], k[2], k + 3, k + 3 + k[2], k + 3 + 2 * k[2],
					    k + 3 + 3 * k[2], k[3 + 4 * k[2]], parts[0], &t);
		break;
	case MPI_COMBINER_RESIZED:
		rc = MPI_Type_create_resized(parts[0], c.addrs[0], c.addrs[1], &t);
		break;
	case MPI_COMBINER_DUP:
		rc = MPI_Type_dup(parts[0], &t);
		break;
	}
	assert_int_equal(rc, MPI_SUCCESS);
	for (int i = 0; i < c.ntypes; i++)
		drop(&parts[i]);
	return t;
}

static void assert_same_type(MPI_Datatype a, MPI_Datatype b)
{
	const struct datatype *s = datatype_of(a), *t = datatype_of(b);
	assert_int_equal(s->size, t->size);
	assert_int_equal(s->lb, t->lb);
	assert_int_equal(s->extent, t->extent);
	assert_int_equal(s->true_lb, t->true_lb);
	assert_int_equal(s->true_extent, t->true_extent);
	char *const base = (char *)0x10000000; /* never touched */
	struct iovec iov[2][16];
	size_t n[2] = {0, 0}, done = 0;
	do {
		const size_t m = datatype_iov(s, base, 1, done, iov[0], 16, &n[0]);
		assert_int_equal(datatype_iov(t, base, 1, done, iov[1], 16, &n[1]), m);
		assert_int_equal(n[0], n[1]);
		assert_memory_equal(iov[0], iov[1], m * sizeof(iov[0][0]));
		done += n[0];
	} while (n[0]);
}

/* ---- tests ---- */
static void contents_are_enough_to_make_the_type_again(void **test)
{
	size_t before, after, mapped;
	heap_stats(&before, &mapped);
	for (int i = 0; i < 400; i++) {
		MPI_Datatype t = MPI_INT;
		const int depth = 1 + pick(3);
		for (int k = 0; k < depth; k++) {
			MPI_Datatype next = derive(i < 12 && k == 0 ? i : pick(12), t);
			drop(&t);
			t = next;
		}
		MPI_Datatype again = rebuild(t);
		assert_same_type(t, again);
		drop(&again);
		drop(&t);
		assert_ptr_equal(t, MPI_DATATYPE_NULL);
	}
	heap_stats(&after, &mapped);
	assert_int_equal(before, after);
}

static void a_type_outlives_the_handles_of_its_parts(void **test)
{
	MPI_Datatype inner, outer, seen;
	int count;
	deleted = 0;
	assert_int_equal(MPI_Type_contiguous(2, MPI_INT, &inner), MPI_SUCCESS);
	assert_int_equal(MPI_Type_vector(2, 1, 3, inner, &outer), MPI_SUCCESS);
	MPI_Datatype old_handle = inner;
	assert_int_equal(MPI_Type_free(&inner), MPI_SUCCESS);
	assert_int_equal(deleted, 1);
	struct contents c;
	get_contents(outer, &c);
	seen = c.types[0];
	assert_ptr_equal(seen, old_handle);
	assert_int_equal(MPI_Type_free(&outer), MPI_SUCCESS);
	assert_int_equal(MPI_Type_size(seen, &count), MPI_SUCCESS);
	assert_int_equal(count, 8);
	assert_int_equal(MPI_Type_free(&seen), MPI_SUCCESS);
	assert_int_equal(deleted, 3);
}

static void very_deep_types_are_freed_without_deep_recursion(void **test)
{
	size_t before, after, mapped;
	heap_stats(&before, &mapped);
	MPI_Datatype t = MPI_INT;
	for (int i = 0; i < 300000; i++) {
		MPI_Datatype next;
		assert_int_equal(MPI_Type_dup(t, &next), MPI_SUCCESS);
		if (i > 0)
			assert_int_equal(MPI_Type_free(&t), MPI_SUCCESS);
		t = next;
	}
	assert_int_equal(MPI_Type_free(&t), MPI_SUCCESS);
	heap_stats(&after, &mapped);
	assert_int_equal(before, after);
}

static void attribute_callbacks_can_refuse(void **test)
{
	MPI_Datatype t, copy = MPI_INT;
	assert_int_equal(MPI_Type_contiguous(2, MPI_INT, &t), MPI_SUCCESS);
	refuse_copy = MPI_ERR_OTHER;
	assert_int_equal(MPI_Type_dup(t, &copy), MPI_ERR_OTHER);
	assert_ptr_equal(copy, MPI_DATATYPE_NULL);
	refuse_copy = 0;
	refuse_delete = MPI_ERR_ARG;
	assert_int_equal(MPI_Type_free(&t), MPI_ERR_ARG);
	assert_true(datatype_ok(datatype_of(t)));
	refuse_delete = 0;
	assert_int_equal(MPI_Type_free(&t), MPI_SUCCESS);
}

static void markers_of_mpi_1_set_the_bounds(void **test)
{
	extern struct ompi_predefined_datatype_t ompi_mpi_lb, ompi_mpi_ub;
	MPI_Datatype types[3] = {(MPI_Datatype)&ompi_mpi_lb, MPI_INT, (MPI_Datatype)&ompi_mpi_ub};
	MPI_Datatype t, u, around[2];
	int lengths[3] = {1, 1, 1};
	MPI_Aint offsets[3] = {-8, 4, 24}, value, extent;
	assert_int_equal(MPI_Type_struct(3, lengths, offsets, types, &t), MPI_SUCCESS);
	MPI_Type_lb(t, &value);
	assert_int_equal(value, -8);
	MPI_Type_ub(t, &value);
	assert_int_equal(value, 24);
	MPI_Type_extent(t, &value);
	assert_int_equal(value, 32);
	/* explicit bounds win over natural ones in what is made from the type */
	around[0] = MPI_DOUBLE;
	around[1] = t;
	offsets[0] = -40;
	offsets[1] = 8;
	assert_int_equal(MPI_Type_create_struct(2, lengths, offsets, around, &u), MPI_SUCCESS);
	MPI_Type_get_extent(u, &value, &extent);
	assert_int_equal(value, 0);
	assert_int_equal(extent, 32);
	MPI_Type_get_true_extent(u, &value, &extent);
	assert_int_equal(value, -40);
	assert_int_equal(extent, 56);
	MPI_Type_free(&t);
	MPI_Type_free(&u);
}

static void packing_goes_on_at_the_position(void **test)
{
	const int a[3] = {1, 2, 3};
	double b = 4.5;
	char buffer[32];
	int position = 0, size;
	MPI_Datatype t;
	MPI_Type_vector(2, 1, 2, MPI_INT, &t);
	assert_int_equal(MPI_Pack(a, 1, t, buffer, 32, &position, MPI_COMM_WORLD), MPI_ERR_TYPE);
	MPI_Type_commit(&t);
	assert_int_equal(MPI_Pack_size(1, t, MPI_COMM_WORLD, &size), MPI_SUCCESS);
	assert_int_equal(size, 8);
	assert_int_equal(MPI_Pack(a, 1, t, buffer, 16, &position, MPI_COMM_WORLD), MPI_SUCCESS);
	assert_int_equal(position, 8);
	assert_int_equal(MPI_Pack(&b, 1, MPI_DOUBLE, buffer, 16, &position, MPI_COMM_WORLD),
			 MPI_SUCCESS);
	assert_int_equal(MPI_Pack(&b, 1, MPI_CHAR, buffer, 16, &position, MPI_COMM_WORLD),
			 MPI_ERR_TRUNCATE);
	assert_int_equal(position, 16);
	int c[3] = {0, 7, 0};
	double d = 0;
	position = 0;
	assert_int_equal(MPI_Unpack(buffer, 16, &position, c, 1, t, MPI_COMM_WORLD), MPI_SUCCESS);
	assert_int_equal(MPI_Unpack(buffer, 16, &position, &d, 1, MPI_DOUBLE, MPI_COMM_WORLD),
			 MPI_SUCCESS);
	assert_true(c[0] == 1 && c[1] == 7 && c[2] == 3 && d == 4.5);
	/* absolute addresses */
	MPI_Aint where;
	MPI_Datatype absolute;
	const int one = 1;
	MPI_Get_address(&b, &where);
	MPI_Type_create_hindexed(1, &one, &where, MPI_DOUBLE, &absolute);
	MPI_Type_commit(&absolute);
	position = 0;
	assert_int_equal(MPI_Pack(MPI_BOTTOM, 1, absolute, buffer, 8, &position, MPI_COMM_WORLD),
			 MPI_SUCCESS);
	assert_memory_equal(buffer, &b, 8);
	assert_int_equal(MPI_Pack(NULL, 1, MPI_DOUBLE, buffer, 8, &position, MPI_COMM_WORLD),
			 MPI_ERR_BUFFER);
	MPI_Type_free(&absolute);
	MPI_Type_free(&t);
}

static void counts_of_a_message_are_exact_or_undefined(void **test)
{
	MPI_Status status = {._ucount = 20};
	MPI_Datatype t, types[2] = {MPI_INT, MPI_DOUBLE};
	const int lengths[2] = {1, 1};
	const MPI_Aint offsets[2] = {0, 8};
	MPI_Count big;
	int n;
	MPI_Type_create_struct(2, lengths, offsets, types, &t);
	assert_int_equal(MPI_Get_count(&status, t, &n), MPI_ERR_TYPE);
	MPI_Type_commit(&t);
	assert_int_equal(MPI_Get_count(&status, t, &n), MPI_SUCCESS);
	assert_int_equal(n, MPI_UNDEFINED);
	assert_int_equal(MPI_Get_elements(&status, t, &n), MPI_SUCCESS);
	assert_int_equal(n, MPI_UNDEFINED);
	status._ucount = 16;
	MPI_Get_elements(&status, t, &n);
	assert_int_equal(n, 3);
	status._ucount = 24;
	MPI_Get_count(&status, t, &n);
	assert_int_equal(n, 2);
	status._ucount = (size_t)1 << 40;
	MPI_Get_count(&status, MPI_BYTE, &n);
	assert_int_equal(n, MPI_UNDEFINED);
	MPI_Get_elements_x(&status, MPI_BYTE, &big);
	assert_true(big == (MPI_Count)1 << 40);
	assert_int_equal(MPI_Status_set_elements(&status, t, 5), MPI_SUCCESS);
	assert_int_equal(status._ucount, 28);
	assert_int_equal(MPI_Status_set_elements(&status, t, -1), MPI_ERR_COUNT);
	assert_int_equal(MPI_Status_set_elements_x(MPI_STATUS_IGNORE, t, 1), MPI_SUCCESS);
	assert_int_equal(MPI_Status_set_cancelled(&status, 1), MPI_SUCCESS);
	assert_int_equal(status._cancelled, 1);
	MPI_Type_free(&t);
	/* nothing of an empty type is none; something of it is not to be told */
	MPI_Type_contiguous(0, MPI_INT, &t);
	MPI_Type_commit(&t);
	status._ucount = 0;
	MPI_Get_count(&status, t, &n);
	assert_int_equal(n, 0);
	MPI_Type_free(&t);
}

static void fortran_kinds_get_one_type_each(void **test)
{
	MPI_Datatype a, b;
	int size, ints[2];
	assert_int_equal(MPI_Type_create_f90_real(15, 300, &a), MPI_SUCCESS);
	assert_int_equal(MPI_Type_create_f90_real(15, 300, &b), MPI_SUCCESS);
	assert_ptr_equal(a, b);
	MPI_Type_size(a, &size);
	assert_int_equal(size, 8);
	struct contents c;
	get_contents(a, &c);
	assert_int_equal(c.combiner, MPI_COMBINER_F90_REAL);
	assert_true(c.ints[0] == 15 && c.ints[1] == 300);
	assert_int_equal(MPI_Type_create_f90_integer(9, &b), MPI_SUCCESS);
	MPI_Type_get_contents(b, 1, 0, 0, ints, NULL, NULL);
	assert_int_equal(ints[0], 9);
	assert_int_equal(MPI_Type_free(&b), MPI_ERR_TYPE);
	assert_int_equal(MPI_Type_create_f90_complex(30, MPI_UNDEFINED, &b), MPI_SUCCESS);
	MPI_Type_size(b, &size);
	assert_int_equal(size, 32);
	assert_int_equal(MPI_Type_create_f90_complex(99, MPI_UNDEFINED, &b), MPI_ERR_ARG);
	double x = 1, y = 2;
	assert_int_equal(MPI_Reduce_local(&x, &y, 1, a, MPI_SUM), MPI_SUCCESS);
	assert_true(y == 3);
	assert_int_equal(MPI_Type_match_size(MPI_TYPECLASS_COMPLEX, 16, &b), MPI_SUCCESS);
	assert_ptr_equal(b, MPI_COMPLEX16);
}

static void subtract(void *in, void *inout, int *n, MPI_Datatype *type)
{
	for (int i = 0; i < *n; i++)
		((int *)inout)[i] = ((int *)in)[i] - ((int *)inout)[i];
}

static void operations_come_and_go(void **test)
{
	MPI_Op op;
	int a[2] = {5, 6}, b[2] = {1, 2}, commutes = 7;
	forgotten = 0;
	assert_int_equal(MPI_Op_create(subtract, 0, &op), MPI_SUCCESS);
	assert_int_equal(MPI_Op_commutative(op, &commutes), MPI_SUCCESS);
	assert_int_equal(commutes, 0);
	assert_int_equal(MPI_Reduce_local(a, b, 2, MPI_INT, op), MPI_SUCCESS);
	assert_true(b[0] == 4 && b[1] == 4);
	assert_int_equal(MPI_Op_free(&op), MPI_SUCCESS);
	assert_ptr_equal(op, MPI_OP_NULL);
	assert_int_equal(forgotten, 1);
	assert_int_equal(MPI_Op_free(&op), MPI_ERR_OP);
	op = MPI_MAX;
	assert_int_equal(MPI_Op_free(&op), MPI_ERR_OP);
	assert_int_equal(MPI_Reduce_local(a, b, 2, MPI_INT, MPI_OP_NULL), MPI_ERR_OP);
	assert_int_equal(MPI_Reduce_local(a, b, -2, MPI_INT, MPI_SUM), MPI_ERR_COUNT);
}

static void names_can_be_set_and_are_cut(void **test)
{
	char long_name[100], name[MPI_MAX_OBJECT_NAME];
	MPI_Datatype t;
	int length;
	MPI_Type_contiguous(1, MPI_INT, &t);
	MPI_Type_get_name(t, name, &length);
	assert_int_equal(length, 0);
	memset(long_name, 'x', 99);
	long_name[99] = 0;
	assert_int_equal(MPI_Type_set_name(t, long_name), MPI_SUCCESS);
	MPI_Type_get_name(t, name, &length);
	assert_int_equal(length, MPI_MAX_OBJECT_NAME - 1);
	assert_int_equal(strlen(name), MPI_MAX_OBJECT_NAME - 1);
	MPI_Type_set_name(t, "short");
	MPI_Type_get_name(t, name, &length);
	assert_string_equal(name, "short");
	MPI_Type_free(&t);
	MPI_Type_get_name(MPI_DOUBLE_PRECISION, name, &length);
	assert_string_equal(name, "MPI_DOUBLE_PRECISION");
}

static void external32_counts_in_its_own_sizes(void **test)
{
	const long a[2] = {1, -1};
	long b[2] = {0, 0};
	char buffer[8];
	MPI_Aint size, position = 0;
	assert_int_equal(MPI_Pack_external_size("external32", 2, MPI_LONG, &size), MPI_SUCCESS);
	assert_int_equal(size, 8);
	assert_int_equal(MPI_Pack_external("external32", a, 2, MPI_LONG, buffer, 8, &position),
			 MPI_SUCCESS);
	assert_int_equal(position, 8);
	assert_int_equal(MPI_Pack_external("external32", a, 1, MPI_LONG, buffer, 8, &position),
			 MPI_ERR_TRUNCATE);
	position = 0;
	assert_int_equal(MPI_Unpack_external("external32", buffer, 8, &position, b, 2, MPI_LONG),
			 MPI_SUCCESS);
	assert_memory_equal(a, b, sizeof(a));
	assert_int_equal(MPI_Pack_external_size("native", 2, MPI_LONG, &size), MPI_SUCCESS);
	assert_int_equal(size, 16);
	assert_int_equal(MPI_Pack_external_size("parchment", 2, MPI_LONG, &size), MPI_ERR_ARG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(contents_are_enough_to_make_the_type_again),
	    cmocka_unit_test(a_type_outlives_the_handles_of_its_parts),
	    cmocka_unit_test(very_deep_types_are_freed_without_deep_recursion),
	    cmocka_unit_test(attribute_callbacks_can_refuse),
	    cmocka_unit_test(markers_of_mpi_1_set_the_bounds),
	    cmocka_unit_test(packing_goes_on_at_the_position),
	    cmocka_unit_test(counts_of_a_message_are_exact_or_undefined),
	    cmocka_unit_test(fortran_kinds_get_one_type_each),
	    cmocka_unit_test(operations_come_and_go),
	    cmocka_unit_test(names_can_be_set_and_are_cut),
	    cmocka_unit_test(external32_counts_in_its_own_sizes),
	};
	datatype_module_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
