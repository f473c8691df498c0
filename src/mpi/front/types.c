/* SPDX-License-Identifier: BSD-3-Clause */
/* Datatypes' envelopes, arrays of types, groups' rank lists, spawned processes: arguments whose
 * meaning or length depends on another. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include "mpi/comm/comm.h"
#include "mpi/front/front.h"

/* ---- arrays of handles ---- */

bool front_array_reserve(struct front_array *a, int count)
{
	a->at = a->small;
	if (count > FRONT_ARRAY_SMALL)
		a->at = malloc((size_t)count * sizeof(void *));
	return a->at != NULL;
}

void front_array_types(struct front_array *a, const front_type *types, int count)
{
	a->at = NULL;
	if (!types || count < 0 || !front_array_reserve(a, count))
		return;
	for (int i = 0; i < count; i++)
		a->at[i] = front_type_in(types[i]);
}

void front_array_drop(struct front_array *a)
{
	if (a->at != a->small)
		free(a->at);
}

int front_members(front_comm comm)
{
	const struct comm *c = front_comm_in(comm);

	return comm_ok(c) ? c->peers : 0;
}

/* in: neighbours that send to this process; else those it sends to. */
static int degree(const struct comm *c, bool in)
{
	const struct topology *t = comm_ok(c) ? c->topo : NULL;

	if (!t)
		return 0;
	if (t->kind == MPI_CART)
		return 2 * t->cart.ndims;
	if (t->kind == MPI_GRAPH)
		return t->graph.index[c->rank] - (c->rank ? t->graph.index[c->rank - 1] : 0);
	return in ? t->dist.indegree : t->dist.outdegree;
}

int front_indegree(front_comm comm)
{
	return degree(front_comm_in(comm), true);
}

int front_outdegree(front_comm comm)
{
	return degree(front_comm_in(comm), false);
}

/* ---- what a type was made of ---- */

/* The integers of two constructors are constants: of a subarray its order, of a distributed array
 * the distributions, their arguments and the order. large: their sizes stand elsewhere. */
static void contents_out(int combiner, int *integers, bool large)
{
	if (combiner == MPI_COMBINER_SUBARRAY) {
		int *order = &integers[1 + (large ? 0 : 3 * integers[0])];
		*order = front_order_out(*order);
	} else if (combiner == MPI_COMBINER_DARRAY) {
		int n = integers[2], *distribs = &integers[3 + (large ? 0 : n)],
		    *args = distribs + n;
		int *order = distribs + 3 * (ptrdiff_t)n;
		for (int i = 0; i < n; i++) {
			distribs[i] = front_distribute_out(distribs[i]);
			if (args[i] == MPI_DISTRIBUTE_DFLT_DARG)
				args[i] = FRONT_DISTRIBUTE_DFLT_DARG;
		}
		*order = front_order_out(*order);
	}
}

static int clipped(MPI_Count n)
{
	return n > INT_MAX ? INT_MAX : n < 0 ? -1 : (int)n;
}

FRONT(int, Type_get_contents_c,
      (front_type type, MPI_Count max_integers, MPI_Count max_addresses, MPI_Count max_large,
       MPI_Count max_types, int integers[], MPI_Aint addresses[], MPI_Count large[],
       front_type types[]))
{
	MPI_Count ni = 0, na = 0, nl = 0, nt = 0;
	int combiner = 0;
	void *t = front_type_in(type);
	struct front_array all = {.at = NULL};
	int rc = core_Type_get_envelope_c(t, &ni, &na, &nl, &nt, &combiner);

	if (!rc && max_types > 0 && !front_array_reserve(&all, clipped(max_types)))
		rc = api_error(NULL, MPI_ERR_NO_MEM, "MPI_Type_get_contents_c");
	if (!rc)
		rc = core_Type_get_contents_c(t, max_integers, max_addresses, max_large, max_types,
					      integers, addresses, large, types ? all.at : NULL);
	if (!rc) {
		contents_out(combiner, integers, nl > 0);
		for (MPI_Count i = 0; i < nt; i++)
			types[i] = front_type_out(all.at[i]);
	}
	front_array_drop(&all);
	return front_error_out(rc);
}

FRONT(int, Type_get_contents,
      (front_type type, int max_integers, int max_addresses, int max_types, int integers[],
       MPI_Aint addresses[], front_type types[]))
{
	int ni = 0, na = 0, nt = 0, combiner = 0;
	void *t = front_type_in(type);
	struct front_array all = {.at = NULL};
	int rc = core_Type_get_envelope(t, &ni, &na, &nt, &combiner);

	if (!rc && max_types > 0 && !front_array_reserve(&all, max_types))
		rc = api_error(NULL, MPI_ERR_NO_MEM, "MPI_Type_get_contents");
	if (!rc)
		rc = core_Type_get_contents(t, max_integers, max_addresses, max_types, integers,
					    addresses, types ? all.at : NULL);
	if (!rc) {
		contents_out(combiner, integers, false);
		for (int i = 0; i < nt; i++)
			types[i] = front_type_out(all.at[i]);
	}
	front_array_drop(&all);
	return front_error_out(rc);
}

/* Distributions and their arguments as the core has them, one behind the other. */
static int *darray_in(int ndims, const int distribs[], const int dargs[])
{
	size_t n = ndims > 0 && distribs && dargs ? (size_t)ndims : 0;
	int *converted = malloc((2 * n + 1) * sizeof(int));

	for (size_t i = 0; converted && i < n; i++) {
		converted[i] = front_distribute_in(distribs[i]);
		converted[n + i] =
		    dargs[i] == FRONT_DISTRIBUTE_DFLT_DARG ? MPI_DISTRIBUTE_DFLT_DARG : dargs[i];
	}
	return converted;
}

#define DARRAY(name, size_type)                                                                    \
	FRONT(int, name,                                                                           \
	      (int size, int rank, int ndims, const size_type gsizes[], const int distribs[],      \
	       const int dargs[], const int psizes[], int order, front_type oldtype,               \
	       front_type *newtype))                                                               \
	{                                                                                          \
		void *made = NULL;                                                                 \
		int *converted = darray_in(ndims, distribs, dargs);                                \
		if (!converted)                                                                    \
			return front_error_out(api_error(NULL, MPI_ERR_NO_MEM, "MPI_" #name));     \
		int rc = core_##name(                                                              \
		    size, rank, ndims, gsizes, distribs ? converted : NULL,                        \
		    dargs ? converted + (ndims > 0 && distribs ? ndims : 0) : NULL, psizes,        \
		    front_order_in(order), front_type_in(oldtype), newtype ? &made : NULL);        \
		free(converted);                                                                   \
		if (!rc)                                                                           \
			*newtype = front_type_out(made);                                           \
		return front_error_out(rc);                                                        \
	}
DARRAY(Type_create_darray, int)
DARRAY(Type_create_darray_c, MPI_Count)

/* ---- groups: a rank may be MPI_PROC_NULL ---- */

FRONT(int, Group_translate_ranks,
      (front_group from, int n, const int ranks[], front_group to, int translated[]))
{
	int *converted = NULL;

	if (n > 0 && ranks) {
		converted = malloc((size_t)n * sizeof(int));
		if (!converted)
			return front_error_out(
			    api_error(NULL, MPI_ERR_NO_MEM, "MPI_Group_translate_ranks"));
		for (int i = 0; i < n; i++)
			converted[i] = front_rank_in(ranks[i]);
	}
	int rc = core_Group_translate_ranks(front_group_in(from), n, converted, front_group_in(to),
					    translated);
	free(converted);
	for (int i = 0; !rc && i < n; i++)
		translated[i] = front_rank_out(translated[i]);
	return front_error_out(rc);
}

/* ---- spawned processes ---- */

/* Only the root has said how many it asks for; everybody knows how many came. */
static void spawn_out(front_comm *intercomm, void *made, int *codes, int asked, int rc)
{
	const struct comm *c = made;
	int n = rc ? asked : c->peers;
	if (intercomm)
		*intercomm = front_comm_out(rc ? MPI_COMM_NULL : made);
	for (int i = 0; codes && i < n; i++)
		codes[i] = front_error_out(codes[i]);
}

static bool is_root(const struct comm *c, int root)
{
	return comm_ok(c) && c->rank == root;
}

FRONT(int, Comm_spawn,
      (const char *command, char *argv[], int maxprocs, front_info info, int root, front_comm comm,
       front_comm *intercomm, int codes[]))
{
	struct comm *c = front_comm_in(comm);
	void *made = NULL;
	int rc = core_Comm_spawn(command, argv, maxprocs, front_info_in(info), root, c,
				 intercomm ? &made : NULL, codes);

	spawn_out(intercomm, made, codes, is_root(c, root) ? maxprocs : 0, rc);
	return front_error_out(rc);
}

FRONT(int, Comm_spawn_multiple,
      (int count, char *commands[], char **argvs[], const int maxprocs[], const front_info infos[],
       int root, front_comm comm, front_comm *intercomm, int codes[]))
{
	struct comm *c = front_comm_in(comm);
	struct front_array all = {.at = NULL};
	void *made = NULL;
	int total = 0;
	/* only the root says what to start */
	bool here = is_root(c, root) && infos && count > 0;

	if (here && !front_array_reserve(&all, count))
		return front_error_out(api_error(c, MPI_ERR_NO_MEM, "MPI_Comm_spawn_multiple"));
	for (int i = 0; here && i < count; i++) {
		all.at[i] = front_info_in(infos[i]);
		total += maxprocs ? maxprocs[i] : 0;
	}
	int rc = core_Comm_spawn_multiple(count, commands, argvs, maxprocs, all.at, root, c,
					  intercomm ? &made : NULL, codes);
	front_array_drop(&all);
	spawn_out(intercomm, made, codes, total, rc);
	return front_error_out(rc);
}
