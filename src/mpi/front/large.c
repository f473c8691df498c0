/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts of 64 bits. The core's calls that move data have counts of 32: they get a larger one as
 * one element of a contiguous type. Types are made of large counts by object/ itself; sizes and
 * numbers of elements come from the core's calls with 64 bits. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include "mpi/front/front.h"

/* ---- calls that move data ---- */

bool front_large_make(struct front_large *l, MPI_Count count)
{
	struct datatype *old = front_type_in(l->type), *made;
	size_t bytes;

	l->count = count < 0 ? -1 : 1;
	if (count < 0 || !datatype_ok(old) || !old->committed)
		return true; /* the core says what is wrong */
	if (__builtin_mul_overflow((size_t)count, old->size, &bytes) || bytes > PTRDIFF_MAX)
		return false;
	guard_enter();
	made = datatype_make_vector(old, 1, (size_t)count, 0);
	if (made)
		made->committed = true;
	guard_leave();
	if (!made)
		return false;
	l->made = made;
	l->type = front_type_out(made);
	return true;
}

void front_large_drop(struct front_large *l)
{
	core_Type_free(&l->made);
}

/* ---- how much there is ---- */

FRONT(int, Get_count_c, (const front_status *status, front_type type, MPI_Count *count))
{
	const struct datatype *t = front_type_in(type);
	MPI_Status s;
	int rc = MPI_SUCCESS;

	if (!datatype_ok(t) || !t->committed)
		rc = MPI_ERR_TYPE;
	else if (!status || front_ignored(status) || !count)
		rc = MPI_ERR_ARG;
	if (rc)
		return front_error_out(api_error(NULL, rc, "MPI_Get_count_c"));
	front_status_in(&s, status);
	if (t->size == 0)
		*count = s._ucount ? FRONT_UNDEFINED : 0;
	else
		*count = s._ucount % t->size ? FRONT_UNDEFINED : (MPI_Count)(s._ucount / t->size);
	return MPI_SUCCESS;
}

FRONT(int, Type_size_c, (front_type type, MPI_Count *size))
{
	return front_Type_size_x(type, size);
}

FRONT(int, Pack_size_c, (MPI_Count count, front_type type, front_comm comm, MPI_Count *size))
{
	MPI_Count one = 0;
	int small = 0, rc = front_Pack_size(count > 0, type, comm, size ? &small : NULL);

	if (!rc)
		rc = front_Type_size_x(type, &one);
	if (!rc && (count < 0 || __builtin_mul_overflow(count, one, size)))
		rc = front_error_out(
		    api_error(front_comm_in(comm), MPI_ERR_COUNT, "MPI_Pack_size_c"));
	return rc;
}

/* ---- types ---- */

/* count blocks of one type or of a type each */
struct large_blocks {
	MPI_Count count, length; /* length: of each block, where lengths is NULL */
	const MPI_Count *lengths;
	const MPI_Count *displacements;
	const front_type *types; /* NULL: one for all */
	front_type type;
	bool in_extents; /* the displacements; else in bytes */
	int combiner;
};

static struct datatype *block_type(const struct large_blocks *b, MPI_Count i)
{
	return front_type_in(b->types ? b->types[i] : b->type);
}

static int blocks_check(const struct large_blocks *b)
{
	MPI_Count bytes = 0, block;

	if (b->count < 0)
		return MPI_ERR_COUNT;
	if (!b->types && !datatype_ok(block_type(b, 0)))
		return MPI_ERR_TYPE;
	if (b->length < 0 || (b->count > 0 && !b->displacements))
		return MPI_ERR_ARG;
	for (MPI_Count i = 0; i < b->count; i++) {
		const struct datatype *t = block_type(b, i);
		const MPI_Count length = b->lengths ? b->lengths[i] : b->length;
		if (!datatype_ok(t))
			return MPI_ERR_TYPE;
		if (length < 0)
			return MPI_ERR_ARG;
		if (__builtin_mul_overflow(length, (MPI_Count)t->size, &block) ||
		    __builtin_add_overflow(bytes, block, &bytes))
			return MPI_ERR_COUNT;
	}
	return MPI_SUCCESS;
}

/* Numbers of 64 bits that a type was made of, in the order in which MPI_Type_get_contents_c has
 * them: some, then arrays of `each` numbers. */
struct large_recipe {
	int combiner;
	MPI_Count first[3];
	int nfirst;
	MPI_Count each;
	const MPI_Count *arrays[2]; /* NULL: none */
};

/* t has been made of ntypes types; NULL: there was no memory. */
static int type_made(struct datatype *t, const struct large_recipe *r, struct datatype *const *olds,
		     MPI_Count ntypes, front_type *newtype)
{
	struct datatype **types;
	MPI_Aint *large;
	int *ints;
	MPI_Count n = r->nfirst;

	for (int k = 0; k < 2; k++)
		n += r->arrays[k] ? r->each : 0;
	if (!t)
		return MPI_ERR_NO_MEM;
	if (n > INT_MAX ||
	    !datatype_describe(t, r->combiner, 0, (int)n, (int)ntypes, &ints, &large, &types)) {
		datatype_release(t);
		return MPI_ERR_NO_MEM;
	}
	t->recipe->large = true;
	for (int i = 0; i < r->nfirst; i++)
		*large++ = r->first[i];
	for (int k = 0; k < 2; k++)
		for (MPI_Count i = 0; r->arrays[k] && i < r->each; i++)
			*large++ = r->arrays[k][i];
	for (MPI_Count i = 0; i < ntypes; i++) {
		types[i] = olds[i];
		datatype_retain(olds[i]);
	}
	*newtype = front_type_out(t);
	return MPI_SUCCESS;
}

/* The types of the blocks, for the recipe. NULL: no memory. */
static struct datatype **block_types(const struct large_blocks *b, MPI_Count *n)
{
	*n = b->types ? b->count : 1;
	struct datatype **olds = malloc((size_t)(*n ? *n : 1) * sizeof(struct datatype *));
	for (MPI_Count i = 0; olds && i < *n; i++)
		olds[i] = block_type(b, i);
	return olds;
}

static int blocks_make(const struct large_blocks *b, front_type *newtype, const char *function)
{
	int rc = newtype ? blocks_check(b) : MPI_ERR_ARG;

	if (!rc) {
		struct datatype_builder builder = {0};
		guard_enter();
		for (MPI_Count i = 0; i < b->count; i++) {
			const struct datatype *t = block_type(b, i);
			datatype_builder_add(
			    &builder, t, (size_t)(b->lengths ? b->lengths[i] : b->length),
			    (ptrdiff_t)b->displacements[i] * (b->in_extents ? t->extent : 1));
		}
		struct datatype *t = datatype_builder_finish(&builder), **olds;
		MPI_Count n;
		const struct large_recipe r = {.combiner = b->combiner,
					       .first = {b->count, b->length},
					       .nfirst = b->lengths ? 1 : 2,
					       .each = b->count,
					       .arrays = {b->lengths, b->displacements}};
		olds = block_types(b, &n);
		rc = type_made(olds ? t : NULL, &r, olds, n, newtype);
		guard_leave();
		free(olds);
	}
	return rc ? front_error_out(api_error(NULL, rc, function)) : rc;
}

static int vector_make(MPI_Count count, MPI_Count length, MPI_Count stride, bool in_extents,
		       int combiner, front_type type, front_type *newtype, const char *function)
{
	struct datatype *old = front_type_in(type);
	MPI_Count elements = 0, bytes = 0, step = stride;
	int rc = !datatype_ok(old) ? MPI_ERR_TYPE : count < 0 ? MPI_ERR_COUNT : MPI_SUCCESS;

	if (!rc && (length < 0 || !newtype))
		rc = MPI_ERR_ARG;
	if (!rc && (__builtin_mul_overflow(count, length, &elements) ||
		    __builtin_mul_overflow(elements, (MPI_Count)old->size, &bytes) ||
		    (in_extents && __builtin_mul_overflow(stride, (MPI_Count)old->extent, &step))))
		rc = MPI_ERR_COUNT;
	if (!rc) {
		guard_enter();
		struct datatype *t =
		    datatype_make_vector(old, (size_t)count, (size_t)length, (ptrdiff_t)step);
		const struct large_recipe r = {
		    .combiner = combiner,
		    .first = {combiner == MPI_COMBINER_CONTIGUOUS ? length : count, length, stride},
		    .nfirst = combiner == MPI_COMBINER_CONTIGUOUS ? 1 : 3};
		rc = type_made(t, &r, &old, 1, newtype);
		guard_leave();
	}
	return rc ? front_error_out(api_error(NULL, rc, function)) : rc;
}

FRONT(int, Type_contiguous_c, (MPI_Count count, front_type oldtype, front_type *newtype))
{
	if (front_fits(count))
		return front_Type_contiguous((int)count, oldtype, newtype);
	return vector_make(1, count, 0, false, MPI_COMBINER_CONTIGUOUS, oldtype, newtype,
			   "MPI_Type_contiguous_c");
}

FRONT(int, Type_vector_c,
      (MPI_Count count, MPI_Count blocklength, MPI_Count stride, front_type oldtype,
       front_type *newtype))
{
	if (front_fits(count) && front_fits(blocklength) && front_fits(stride))
		return front_Type_vector((int)count, (int)blocklength, (int)stride, oldtype,
					 newtype);
	return vector_make(count, blocklength, stride, true, MPI_COMBINER_VECTOR, oldtype, newtype,
			   "MPI_Type_vector_c");
}

FRONT(int, Type_create_hvector_c,
      (MPI_Count count, MPI_Count blocklength, MPI_Count stride, front_type oldtype,
       front_type *newtype))
{
	if (front_fits(count) && front_fits(blocklength))
		return front_Type_create_hvector((int)count, (int)blocklength, stride, oldtype,
						 newtype);
	return vector_make(count, blocklength, stride, false, MPI_COMBINER_HVECTOR, oldtype,
			   newtype, "MPI_Type_create_hvector_c");
}

/* Copies of arrays that fit into 32 bits; false: they don't, or are not there. */
struct narrow_blocks {
	struct front_narrow lengths, displacements;
};
static bool blocks_narrow(struct narrow_blocks *n, MPI_Count count, const MPI_Count *lengths,
			  const MPI_Count *displacements)
{
	*n = (struct narrow_blocks){0};
	return front_fits(count) && (!lengths || front_narrow(&n->lengths, lengths, (int)count)) &&
	       (!displacements || front_narrow(&n->displacements, displacements, (int)count));
}
static int blocks_end(struct narrow_blocks *n, int rc)
{
	front_narrow_drop(&n->lengths);
	front_narrow_drop(&n->displacements);
	return rc;
}

FRONT(int, Type_indexed_c,
      (MPI_Count count, const MPI_Count lengths[], const MPI_Count displacements[],
       front_type oldtype, front_type *newtype))
{
	struct narrow_blocks n;
	const struct large_blocks b = {.count = count,
				       .length = lengths ? 0 : -1,
				       .lengths = lengths,
				       .displacements = displacements,
				       .type = oldtype,
				       .in_extents = true,
				       .combiner = MPI_COMBINER_INDEXED};
	return blocks_end(&n, blocks_narrow(&n, count, lengths, displacements)
				  ? front_Type_indexed((int)count, n.lengths.at, n.displacements.at,
						       oldtype, newtype)
				  : blocks_make(&b, newtype, "MPI_Type_indexed_c"));
}

FRONT(int, Type_create_hindexed_c,
      (MPI_Count count, const MPI_Count lengths[], const MPI_Count displacements[],
       front_type oldtype, front_type *newtype))
{
	struct narrow_blocks n;
	const struct large_blocks b = {.count = count,
				       .length = lengths ? 0 : -1,
				       .lengths = lengths,
				       .displacements = displacements,
				       .type = oldtype,
				       .combiner = MPI_COMBINER_HINDEXED};
	return blocks_end(
	    &n, blocks_narrow(&n, count, lengths, NULL)
		    ? front_Type_create_hindexed((int)count, n.lengths.at,
						 (const MPI_Aint *)(const void *)displacements,
						 oldtype, newtype)
		    : blocks_make(&b, newtype, "MPI_Type_create_hindexed_c"));
}

FRONT(int, Type_create_struct_c,
      (MPI_Count count, const MPI_Count lengths[], const MPI_Count displacements[],
       const front_type types[], front_type *newtype))
{
	struct narrow_blocks n;
	const struct large_blocks b = {.count = types || !count ? count : -1,
				       .length = lengths ? 0 : -1,
				       .lengths = lengths,
				       .displacements = displacements,
				       .types = types,
				       .combiner = MPI_COMBINER_STRUCT};
	return blocks_end(
	    &n, blocks_narrow(&n, count, lengths, NULL)
		    ? front_Type_create_struct((int)count, n.lengths.at,
					       (const MPI_Aint *)(const void *)displacements, types,
					       newtype)
		    : blocks_make(&b, newtype, "MPI_Type_create_struct_c"));
}

FRONT(int, Type_create_indexed_block_c,
      (MPI_Count count, MPI_Count length, const MPI_Count displacements[], front_type oldtype,
       front_type *newtype))
{
	struct narrow_blocks n;
	const struct large_blocks b = {.count = count,
				       .length = length,
				       .displacements = displacements,
				       .type = oldtype,
				       .in_extents = true,
				       .combiner = MPI_COMBINER_INDEXED_BLOCK};
	return blocks_end(&n, front_fits(length) && blocks_narrow(&n, count, NULL, displacements)
				  ? front_Type_create_indexed_block((int)count, (int)length,
								    n.displacements.at, oldtype,
								    newtype)
				  : blocks_make(&b, newtype, "MPI_Type_create_indexed_block_c"));
}

FRONT(int, Type_create_hindexed_block_c,
      (MPI_Count count, MPI_Count length, const MPI_Count displacements[], front_type oldtype,
       front_type *newtype))
{
	const struct large_blocks b = {.count = count,
				       .length = length,
				       .displacements = displacements,
				       .type = oldtype,
				       .combiner = MPI_COMBINER_HINDEXED_BLOCK};
	if (front_fits(count) && front_fits(length))
		return front_Type_create_hindexed_block(
		    (int)count, (int)length, (const MPI_Aint *)(const void *)displacements, oldtype,
		    newtype);
	return blocks_make(&b, newtype, "MPI_Type_create_hindexed_block_c");
}
