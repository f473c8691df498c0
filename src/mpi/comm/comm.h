/* SPDX-License-Identifier: BSD-3-Clause */
/* mpi/comm/: communicators, groups, topologies, attributes, info objects, error handlers.
 * May call: match/, coll/, object/, base/, the guard. Other folders of mpi/ reach it through
 * mpi/api.h and object/{comm,group}.h; this header is for the files of the folder and for mpi/abi/.
 *
 * How a communicator comes to be:
 *   context_agree…()   all members agree on a context id that is free at each of them (context.c)
 *   comm_create()      the object: groups, error handler; local
 *   comm_publish()     from now on comm_by_context() finds it and coll/ knows it; local
 */
#ifndef HALE_MPI_COMM_COMM_H
#define HALE_MPI_COMM_COMM_H

#include "mpi/api.h"

/* Bytes that Open MPI gives to its predefined handles, and that its C++ and Fortran libraries may
 * read: dynamic objects have them too. */
enum {
	COMM_BYTES = 512,
	GROUP_BYTES = 256,
	INFO_BYTES = 256,
	ERRHANDLER_BYTES = 1024,
};

/* ---- predefined objects, always by their symbol (handles.c) ---- */
struct ompi_predefined_communicator_t {
	struct comm comm;
	char pad[COMM_BYTES - sizeof(struct comm)];
};
struct ompi_predefined_group_t {
	struct group group;
	char pad[GROUP_BYTES - sizeof(struct group)];
};
#define COMM_WORLD  comm_of(MPI_COMM_WORLD)
#define COMM_SELF   comm_of(MPI_COMM_SELF)
#define GROUP_EMPTY group_of(MPI_GROUP_EMPTY)

/* ---- communicators (comm.c) ---- */
/* What C++ bindings look at to tell the kinds of communicators apart. */
enum { COMM_CXX_INTER = 0x1, COMM_CXX_CART = 0x100, COMM_CXX_GRAPH = 0x200 };

/* An object that is not yet published. Takes its own references to both groups (remote may be
 * NULL) and inherits the error handler of parent. NULL: no memory. */
struct comm *comm_create(struct comm *parent, struct group *local, struct group *remote);
/* Gives it an agreed context and makes it known. On failure the caller still owns it. */
int comm_publish(struct comm *c, uint32_t context);
/* agreement over parent's members, then comm_create and comm_publish; *out is NULL for callers that
 * pass no group. Collective over parent. */
int comm_make(struct comm *parent, struct group *group, struct comm **out);
/* Intercommunicators: publishes c and its own local communicator, with two agreed contexts. */
int comm_publish_inter(struct comm *c, const uint32_t *contexts);
/* For communicators without collectives, from comm_create: comm_by_context() finds them between
 * these two calls. */
void comm_know(struct comm *c, uint32_t context);
void comm_unknow(struct comm *c);
/* Copies those hints from `from` that communicators know. */
int comm_hints_set(struct comm *c, const struct info *from);
void comm_set_topology(struct comm *c, struct topology *topo); /* takes over the reference */
static inline bool comm_is_inter(const struct comm *c)
{
	return c->remote != NULL;
}

/* Ends this process's part of c, as MPI_Comm_free does, without communication. Returns an error
 * class if the delete callback of an attribute refuses. */
int comm_end(struct comm *c);

/* ---- context ids (context.c) ---- */
void context_init(void);
void context_reserve(uint32_t context); /* WORLD's and SELF's */
void context_release(uint32_t context);
/* All members of the intracommunicator parent agree. */
int context_agree(struct comm *parent, uint32_t *context);
/* The members ranks[0..n) of c only; the tag tells apart what runs at once on c. */
int context_agree_group(struct comm *c, const int *ranks, int n, int me, int tag,
			uint32_t *context);
/* The members of local and those behind bridge: bridge_rank is the remote leader's rank in
 * bridge, which only the leader (rank leader of local) uses. `key` orders agreements that
 * compete, and must be the same at all. */
struct context_bridge {
	struct comm *local;
	int leader;
	struct comm *bridge;
	int bridge_rank, tag;
	uint64_t key;
};
/* want (1 or 2) ids. */
int context_agree_bridge(const struct context_bridge *b, int want, uint32_t *contexts);
/* Without waiting: done(arg, error, contexts) is called from progress, once. A bridge gives two. */
typedef void(context_done_t)(void *arg, int error, const uint32_t *contexts);
int context_agree_start(struct comm *c, uint32_t sequence, context_done_t *done, void *arg);
int context_agree_start_bridge(const struct context_bridge *b, uint32_t sequence,
			       context_done_t *done, void *arg);
uint64_t context_bridge_key(uint32_t a, uint32_t b);
/* Tags of the library's own messages in the collective context of a communicator: below those that
 * coll/ uses. */
int context_tag(int user_tag);

/* ---- intercommunicators (intercomm.c) ---- */
/* The two leaders (rank 0) swap integers, and everybody gets the other group's. */
int inter_swap(struct comm *c, const int *mine, int count, int *theirs, int their_count);
/* Agreement of both groups on two contexts. */
int inter_agree(struct comm *c, uint32_t *contexts);
/* Makes an intercommunicator of a part of c's two groups; all members of c take part. Those that
 * are to be in none pass NULL for local, and get NULL in *out. */
int inter_make(struct comm *c, struct group *local, struct group *remote, struct comm **out);
void inter_bridge(struct comm *c, struct context_bridge *b);

/* Makes an intercommunicator of two groups whose leaders have the communicator `peer` in common.
 * Both sides call it, with the same tag. */
int intercomm_meet(struct comm *local, int leader, struct comm *peer, int remote_leader, int tag,
		   struct comm **out);

/* ---- worlds (world.c) ---- */
/* HALE_WORLD (node/spawn_layout.h); NULL: all processes of the job are one world. */
const char *world_text(void);
/* Is this process one of those that MPI_Comm_spawn may make into another program? */
bool world_in_reserve(void);
/* The members of this process's MPI_COMM_WORLD: from base/heap.h. NULL: no memory. */
int *world_members(int *count);
/* A communicator of all processes of the job, for messages of the library only. NULL: a job with
 * replicas has none. */
struct comm *world_all(void);
int world_all_make(void);
void world_all_end(void);
/* A tag for a meeting with that process that no other meeting of the two has. */
int world_tag(int peer);
/* Tags go on in the program that this process becomes. */
struct carry;
void world_carry(struct carry *c);

/* ---- groups (group.c) ---- */
/* A group of n world ranks: takes over world (from base/heap.h; may be NULL for n 0). n 0 gives
 * MPI_GROUP_EMPTY. NULL: no memory (world is freed then too). */
struct group *group_create(int *world, int n);
int group_find(const struct group *g, int world_rank);		 /* index, or MPI_UNDEFINED */
int group_compare(const struct group *a, const struct group *b); /* MPI_IDENT, SIMILAR, UNEQUAL */
/* to[i] = place in b of member ranks[i] of a. MPI_ERR_RANK for a bad rank. */
int group_translate(const struct group *a, int n, const int *ranks, const struct group *b, int *to);
int group_union(const struct group *a, const struct group *b, struct group **out);
int group_intersection(const struct group *a, const struct group *b, struct group **out);
int group_difference(const struct group *a, const struct group *b, struct group **out);
int group_incl(const struct group *g, int n, const int *ranks, struct group **out);
int group_excl(const struct group *g, int n, const int *ranks, struct group **out);
int group_range_incl(const struct group *g, int n, int ranges[][3], struct group **out);
int group_range_excl(const struct group *g, int n, int ranges[][3], struct group **out);

/* ---- topologies: never changed once made, shared by duplicates (topology.c …) ---- */
struct topology {
	int refs;
	int kind; /* MPI_CART, MPI_GRAPH, MPI_DIST_GRAPH */
	union {
		struct {
			int ndims;
			int *dims, *periods, *coords; /* coords: this process's */
		} cart;
		struct {
			int nnodes, nedges;
			int *index, *edges;
		} graph;
		struct {
			int indegree, outdegree;
			bool weighted;
			int *sources, *sweights, *destinations, *dweights;
		} dist;
	};
	int storage[]; /* what the pointers point into */
};
struct topology *topology_new(int kind,
			      size_t ints); /* with ints of zeroed storage; NULL: no memory */
void topology_release(struct topology *t);  /* NULL is fine */
struct topology *topology_of(const struct comm *c, int kind); /* NULL: another kind or none */
/* A communicator of the first `nodes` members of c with that topology, which is taken over in any
 * case. *out is NULL for the others. Collective over c. */
int topology_make(struct comm *c, int nodes, struct topology *t, struct comm **out);
/* Grids (grid.c). The first `count` coordinates of a rank. */
void grid_coords(const struct topology *t, int rank, int count, int *coords);
/* MPI_ERR_ARG for coordinates outside of a dimension that isn't periodic. */
int grid_rank(const struct topology *t, const int *coords, int *rank);
/* How many processes a grid takes, or -1 when it is none, or more than limit. */
int grid_size(int ndims, const int *dims, int limit);
/* The rank that is disp steps from ours along one dimension. */
int grid_neighbour(const struct topology *t, int rank, int direction, int disp);
/* Fills the zero entries of dims; MPI_SUCCESS, MPI_ERR_ARG, MPI_ERR_DIMS. */
int dims_create(int nnodes, int ndims, int *dims);
/* The same, as close to each other as possible: for programs that are not built for Open MPI. */
int dims_create_balanced(int nnodes, int ndims, int *dims);
/* bins[0..nbins) in descending order get factors of n (n >= 1). False: no memory. */
bool dims_balance(int n, int *bins, int nbins);

/* ---- attributes (attr.c) ---- */
enum attr_kind { ATTR_COMM = 1, ATTR_TYPE = 2, ATTR_WIN = 3 }; /* as Open MPI numbers them */
/* Who wrote a value, which decides how another language reads it (MPI-3.1 17.2.7). */
enum attr_language { ATTR_C, ATTR_FORTRAN_INT, ATTR_FORTRAN_AINT };
union attr_value {
	void *pointer;
	MPI_Fint fint;
	MPI_Aint aint;
};
/* Callbacks are Fortran's; with OLD their values are INTEGER; with SAME_LANGUAGE a copy counts as
 * written by who wrote the original. */
enum attr_flag { ATTR_FORTRAN = 2, ATTR_FORTRAN_OLD = 4, ATTR_SAME_LANGUAGE = 8 };
int attr_keyval_create(enum attr_kind kind, void *copy, void *del, int *keyval, void *extra,
		       int flags);
int attr_keyval_free(enum attr_kind kind, int *keyval);
/* From now on its callbacks are these, with Fortran's parameters and address-sized values, and
 * copies keep their language. Returns its extra state; NULL: no such key value. */
void *attr_keyval_in_fortran(int keyval, void *copy, void *del);
/* For a callback, at its begin: who wrote the attribute that it is called for. */
extern __thread enum attr_language attr_original;
/* All four: object is the handle's object, *attrs its list. Callbacks run outside the guard. */
int attr_set(enum attr_kind kind, void *object, struct attributes **attrs, int keyval,
	     enum attr_language language, union attr_value value);
int attr_get(enum attr_kind kind, struct attributes *attrs, int keyval, enum attr_language language,
	     union attr_value *value, int *flag);
/* One that the library gives to a window: MPI_WIN_BASE and so on. */
int attr_window_put(struct attributes **attrs, int keyval, enum attr_language language,
		    union attr_value value);
int attr_delete(enum attr_kind kind, void *object, struct attributes **attrs, int keyval);
/* In the reverse order of setting; stops at the first callback that fails. */
int attr_delete_all(enum attr_kind kind, void *object, struct attributes **attrs);
/* What a duplicate gets, by the copy callbacks, in the order of setting. */
int attr_copy_all(enum attr_kind kind, void *from, struct attributes *const *attrs, void *to,
		  struct attributes **copy);
void attr_last_used_code(int code); /* MPI_LASTUSEDCODE grew */

/* ---- info (info.c) ---- */
struct info_entry {
	struct info_entry *next;
	char *value; /* heap */
	char key[MPI_MAX_INFO_KEY + 1];
};
struct info {
	struct object obj;
	struct info_entry *first, **last; /* in the order of setting; last is NULL while empty */
	int count;
};
struct ompi_predefined_info_t {
	struct info info;
	char pad[INFO_BYTES - sizeof(struct info)];
};
static inline bool info_ok(const struct info *i)
{
	return object_is(i, OBJECT_INFO);
}
struct info *info_new(void);
int info_set(struct info *i, const char *key, const char *value);
const char *info_get(const struct info *i, const char *key);
/* An independent copy; from may be NULL (none). NULL: no memory. */
struct info *info_copy(const struct info *from);
void info_release(struct info *i); /* NULL is fine */
/* The lookups of a handle that a user may pass: fills MPI_INFO_ENV at its first use. */
struct info *info_handle_open(MPI_Info h);

/* ---- error handlers (errhandler.c) ---- */
enum errhandler_target {
	ERRHANDLER_COMM = 1,
	ERRHANDLER_WIN = 2,
	ERRHANDLER_FILE = 3,
	ERRHANDLER_SESSION = 4, /* its function stands in comm_fn */
};
enum errhandler_language { ERRHANDLER_C = 0, ERRHANDLER_CXX = 1, ERRHANDLER_FORTRAN = 2 };
enum errhandler_action { ERRHANDLER_CALL, ERRHANDLER_ABORT, ERRHANDLER_RETURN };
typedef void(errhandler_c_t)(void *handle, int *code, ...);
typedef void(errhandler_fortran_t)(MPI_Fint *handle, MPI_Fint *code);
typedef void(errhandler_cxx_t)(void *handle, int *code, const char *where, void *user);
struct errhandler {
	struct object obj;
	int32_t action;	  /* errhandler_action */
	int32_t target;	  /* errhandler_target; 0: any (predefined) */
	int32_t language; /* errhandler_language */
	char reserved[60];
	/* Debian's libmpi_cxx.so.40 writes these four where Open MPI has them */
	errhandler_c_t *comm_fn, *file_fn, *win_fn;
	errhandler_fortran_t *fortran_fn;
	errhandler_cxx_t *cxx_fn;
};
FORTRAN_OFFSET(struct errhandler, comm_fn, 0x58);
FORTRAN_OFFSET(struct errhandler, cxx_fn, 0x78);
struct ompi_predefined_errhandler_t {
	struct errhandler errhandler;
	char pad[ERRHANDLER_BYTES - sizeof(struct errhandler)];
};
extern struct ompi_predefined_errhandler_t ompi_mpi_errors_throw_exceptions;
static inline bool errhandler_ok(const struct errhandler *e)
{
	return object_is(e, OBJECT_ERRHANDLER);
}
/* Can e stand on an object of that kind? */
bool errhandler_fits(const struct errhandler *e, enum errhandler_target target);
struct errhandler *errhandler_new(enum errhandler_target target, enum errhandler_language language,
				  void *function);
void errhandler_release(struct errhandler *e); /* NULL is fine */
/* Runs e for an error of `function` on that object; outside the guard. */
int errhandler_run(struct errhandler *e, enum errhandler_target target, void *object, int code,
		   const char *function);
/* The same for functions on windows and files, with that kind's handler. */
int errhandler_file_error(int code, const char *function);
int errhandler_win_error(void *window, struct errhandler *e, int code, const char *function);
/* What files to come start with: MPI_FILE_NULL's. */
struct errhandler *errhandler_file_default(void);
void errhandler_file_default_set(struct errhandler *e);

/* ---- error classes and codes (errors.c) ---- */
const char *error_text(int code); /* NULL: no such code */
int error_class(int code);	  /* MPI_ERR_UNKNOWN for what is not a code; see error_known */
bool error_known(int code);

#endif
