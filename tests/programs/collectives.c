// SPDX-License-Identifier: BSD-3-Clause
/* collectives [ROUNDS [SEED [MOST]]]: random collective operations, blocking and not, several at
 * once, on communicators that come and go, each result compared with what every rank computes by
 * itself. MOST: the largest number of elements. With TREE=1 in the environment reductions must
 * have the very bits of the tree over ranks that splits at the largest power of two; without it
 * (other libraries) sums of floating point numbers are not compared bit by bit. With STOP=FILE it
 * ends after ROUNDS, or when the file is there. */
#include <math.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RANKS = 64, JOBS = 4, COMMS = 6, UNIT = 3, GAPPED = 5 };

enum kind {
	BARRIER,
	BCAST,
	GATHER,
	GATHERV,
	SCATTER,
	SCATTERV,
	ALLGATHER,
	ALLGATHERV,
	ALLTOALL,
	ALLTOALLV,
	ALLTOALLW,
	REDUCE,
	ALLREDUCE,
	REDUCE_SCATTER,
	REDUCE_SCATTER_BLOCK,
	SCAN,
	EXSCAN,
	KINDS
};
static const char *const kind_name[] = {
    "barrier",	 "bcast",     "gather",	    "gatherv",	      "scatter",
    "scatterv",	 "allgather", "allgatherv", "alltoall",	      "alltoallv",
    "alltoallw", "reduce",    "allreduce",  "reduce_scatter", "reduce_scatter_block",
    "scan",	 "exscan"};

enum flavour { F_DOUBLE, F_FLOAT, F_INT, F_PAIR, F_MATRIX, F_GAPPED, FLAVOURS };

struct job {
	enum kind kind;
	MPI_Comm comm;
	int n, rank, root;
	uint64_t seed;
	int count, in_place, gap_send, gap_recv;
	int sc[RANKS], sd[RANKS], rc[RANKS], rd[RANKS];
	MPI_Datatype st[RANKS], rt[RANKS];
	enum flavour flavour;
	char *sbuf, *rbuf;
	size_t rbytes;
};

static uint64_t state;
static int exact, world_rank, failures;
static long round_now;
static MPI_Datatype dense, gapped, matrix, gapped_pair;
static MPI_Op op_matrix, op_gapped;

static uint64_t mix(uint64_t x)
{
	x ^= x >> 30;
	x *= 0xbf58476d1ce4e5b9u;
	x ^= x >> 27;
	x *= 0x94d049bb133111ebu;
	return x ^ x >> 31;
}
static uint64_t draw(void)
{
	return mix(state += 0x9e3779b97f4a7c15u);
}
static int below(int n)
{
	return (int)(draw() % (uint64_t)n);
}
static uint64_t value(uint64_t seed, int from, int to, size_t i)
{
	return mix(seed + (uint64_t)from * 1000003 + (uint64_t)to * 7919 + i * 0x9e3779b97f4a7c15u);
}

static void wrong(const struct job *j, const char *what)
{
	if (failures++ < 5)
		printf("wrong: round %ld %s rank %d of %d root %d count %d flavour %d in place %d "
		       "gaps %d %d: %s\n",
		       round_now, kind_name[j->kind], j->rank, j->n, j->root, j->count, j->flavour,
		       j->in_place, j->gap_send, j->gap_recv, what);
}

static void *room(size_t bytes)
{
	char *p = malloc(bytes + 64);
	memset(p, 0xab, bytes + 64);
	return p;
}

/* ---- movement: elements of three ints, close together or in five ---- */

static const int place[2][UNIT] = {{0, 1, 2}, {0, 1, 3}};
static int stride(int gap)
{
	return gap ? GAPPED : UNIT;
}
static MPI_Datatype element(int gap)
{
	return gap ? gapped : dense;
}

static void put(char *buf, int gap, int first, int count, uint64_t seed, int from, int to)
{
	int *p = (int *)buf + (size_t)first * stride(gap);
	for (int e = 0; e < count; e++, p += stride(gap))
		for (int i = 0; i < UNIT; i++)
			p[place[gap][i]] = (int)value(seed, from, to, (size_t)e * UNIT + i);
}

/* What the receive buffer must hold: its first filling, then the blocks put in. */
static char *expected(const struct job *j)
{
	char *e = room(j->rbytes);
	int n = j->n, me = j->rank, g = j->gap_recv;
	switch (j->kind) {
	case BCAST:
		put(e, g, 0, j->count, j->seed, j->root, 0);
		break;
	case GATHER:
	case GATHERV:
	case ALLGATHER:
	case ALLGATHERV:
		if (me == j->root || j->kind >= ALLGATHER)
			for (int i = 0; i < n; i++)
				put(e, g, j->rd[i], j->rc[i], j->seed, i, 0);
		break;
	case SCATTER:
	case SCATTERV:
		put(e, g, 0, j->rc[0], j->seed, j->root, me);
		break;
	case ALLTOALL:
	case ALLTOALLV:
	case ALLTOALLW:
		for (int i = 0; i < n; i++)
			put(e, g, j->rd[i], j->rc[i], j->seed, i, me);
		break;
	default:
		break;
	}
	return e;
}

static int size_of(uint64_t seed, int from, int to, int count)
{
	return count ? (int)(value(seed, from, to, 12345) % (uint64_t)(count + 1)) : 0;
}

static int layout(int *displs, const int *counts, int n)
{
	int at = 0;
	for (int i = 0; i < n; i++) {
		displs[i] = at;
		at += counts[i] + i % 2;
	}
	return at + 1;
}

static void prepare_vectors(struct job *j)
{
	int n = j->n, me = j->rank;
	int ragged = j->kind == GATHERV || j->kind == SCATTERV || j->kind == ALLGATHERV ||
		     j->kind == ALLTOALLV || j->kind == ALLTOALLW;
	int personal = j->kind >= ALLTOALL || j->kind == SCATTER || j->kind == SCATTERV;
	for (int i = 0; i < n; i++) {
		j->sc[i] = j->rc[i] = j->count;
		if (ragged && j->in_place && j->kind >= ALLTOALL) /* symmetric */
			j->sc[i] = j->rc[i] =
			    size_of(j->seed, me < i ? me : i, me < i ? i : me, j->count);
		else if (ragged && personal) {
			j->sc[i] = size_of(j->seed, me, i, j->count);
			j->rc[i] = size_of(j->seed, i, me, j->count);
		} else if (ragged)
			j->rc[i] = size_of(j->seed, i, 0, j->count);
	}
	if (j->kind == SCATTERV)
		j->rc[0] = size_of(j->seed, j->root, me, j->count);
	int regular = !ragged;
	int stotal = layout(j->sd, j->sc, n), rtotal = layout(j->rd, j->rc, n);
	for (int i = 0; regular && i < n; i++)
		j->sd[i] = j->rd[i] = i * j->count;
	j->sbuf = room((size_t)(stotal + n * j->count) * stride(j->gap_send) * sizeof(int));
	j->rbytes = (size_t)(rtotal + n * j->count) * stride(j->gap_recv) * sizeof(int);
	j->rbuf = room(j->rbytes);
	if (personal) {
		for (int i = 0; i < n; i++) {
			char *buf = j->in_place && j->kind >= ALLTOALL ? j->rbuf : j->sbuf;
			int at = j->in_place && j->kind >= ALLTOALL ? j->rd[i] : j->sd[i];
			put(buf, buf == j->rbuf ? j->gap_recv : j->gap_send, at, j->sc[i], j->seed,
			    me, i);
		}
		return;
	}
	if (j->in_place)
		put(j->rbuf, j->gap_recv, j->rd[me], j->rc[me], j->seed, me, 0);
	else
		put(j->sbuf, j->gap_send, 0, j->rc[me], j->seed, me, 0);
}

static void prepare_move(struct job *j)
{
	if (j->kind == BARRIER)
		return;
	if (j->kind == BCAST) {
		j->rbytes = (size_t)(j->count + 1) * stride(j->gap_recv) * sizeof(int);
		j->rbuf = room(j->rbytes);
		if (j->rank == j->root)
			put(j->rbuf, j->gap_recv, 0, j->count, j->seed, j->root, 0);
		return;
	}
	prepare_vectors(j);
}

static void check_move(const struct job *j)
{
	if (j->kind == BARRIER)
		return;
	char *e = expected(j);
	int scatter = j->kind == SCATTER || j->kind == SCATTERV;
	if (!(scatter && j->in_place && j->rank == j->root) && memcmp(e, j->rbuf, j->rbytes))
		wrong(j, "data");
	free(e);
}

/* ---- reductions ---- */

struct pair {
	double v;
	int i;
};
struct gap_pair { /* an element with a hole */
	int64_t a;
	char hole[8];
	int64_t b;
};

static void matrix_product(void *in, void *inout, int *len, MPI_Datatype *t)
{
	float *a = in, *b = inout;
	for (int i = 0; i < *len; i++, a += 4, b += 4) {
		float c[4] = {a[0] * b[0] + a[1] * b[2], a[0] * b[1] + a[1] * b[3],
			      a[2] * b[0] + a[3] * b[2], a[2] * b[1] + a[3] * b[3]};
		memcpy(b, c, sizeof(c));
	}
	(void)t;
}
/* affine maps mod 2^64: (a, b) then (c, d); associative, not commutative */
static void affine(void *in, void *inout, int *len, MPI_Datatype *t)
{
	struct gap_pair *x = in, *y = inout;
	for (int i = 0; i < *len; i++) {
		uint64_t a = (uint64_t)x[i].a * (uint64_t)y[i].a;
		uint64_t b = (uint64_t)x[i].b * (uint64_t)y[i].a + (uint64_t)y[i].b;
		y[i].a = (int64_t)a;
		y[i].b = (int64_t)b;
	}
	(void)t;
}

static const size_t flavour_size[] = {8, 4, 4, sizeof(struct pair), 16, sizeof(struct gap_pair)};
static MPI_Datatype flavour_type(enum flavour f)
{
	MPI_Datatype t[] = {MPI_DOUBLE, MPI_FLOAT, MPI_INT, MPI_DOUBLE_INT, matrix, gapped_pair};
	return t[f];
}
static MPI_Op flavour_op(enum flavour f)
{
	MPI_Op o[] = {MPI_SUM, MPI_PROD, MPI_BXOR, MPI_MAXLOC, op_matrix, op_gapped};
	return o[f];
}

static void give(enum flavour f, char *at, uint64_t seed, int from, size_t i)
{
	uint64_t v = value(seed, from, 0, i);
	if (f == F_DOUBLE)
		*(double *)at =
		    ((double)(v >> 11) / 9007199254740992.0 - 0.5) * exp2((double)(v % 40));
	else if (f == F_FLOAT)
		*(float *)at = 0.5f + (float)(v >> 40) / 16777216.0f;
	else if (f == F_INT)
		*(int *)at = (int)v;
	else if (f == F_PAIR)
		((struct pair *)at)->v = (double)(v % 3), ((struct pair *)at)->i = (int)(v >> 60);
	else if (f == F_MATRIX)
		for (int k = 0; k < 4; k++)
			((float *)at)[k] = (float)(v >> (16 * k) & 0xffff) / 65536.0f;
	else {
		((struct gap_pair *)at)->a = (int64_t)(v | 1);
		((struct gap_pair *)at)->b = (int64_t)mix(v);
	}
}

static void apply(enum flavour f, char *in, char *inout)
{
	int one = 1;
	if (f == F_DOUBLE)
		*(double *)inout = *(double *)in + *(double *)inout;
	else if (f == F_FLOAT)
		*(float *)inout = *(float *)in * *(float *)inout;
	else if (f == F_INT)
		*(int *)inout ^= *(int *)in;
	else if (f == F_PAIR) {
		struct pair *a = (void *)in, *b = (void *)inout;
		if (a->v > b->v || (a->v == b->v && a->i < b->i))
			*b = *a;
	} else if (f == F_MATRIX)
		matrix_product(in, inout, &one, NULL);
	else
		affine(in, inout, &one, NULL);
}

static void oracle(const struct job *j, int lo, int hi, size_t i, char *out)
{
	char left[32];
	if (hi - lo == 1) {
		give(j->flavour, out, j->seed, lo, i);
		return;
	}
	int mid = lo + 1;
	while ((mid - lo) * 2 < hi - lo)
		mid = lo + (mid - lo) * 2;
	oracle(j, lo, mid, i, left);
	oracle(j, mid, hi, i, out);
	apply(j->flavour, left, out);
}

static size_t vector_length(const struct job *j)
{
	size_t total = 0;
	if (j->kind != REDUCE_SCATTER && j->kind != REDUCE_SCATTER_BLOCK)
		return (size_t)j->count;
	for (int i = 0; i < j->n; i++)
		total += (size_t)j->rc[i];
	return total;
}

static void prepare_reduction(struct job *j)
{
	for (int i = 0; i < j->n; i++)
		j->rc[i] = j->kind == REDUCE_SCATTER ? size_of(j->seed, 0, i, j->count) : j->count;
	size_t len = vector_length(j), size = flavour_size[j->flavour];
	j->rbytes = (len + 1) * size;
	j->sbuf = room(j->rbytes);
	j->rbuf = room(j->rbytes);
	char *in = j->in_place ? j->rbuf : j->sbuf;
	for (size_t i = 0; i < len; i++)
		give(j->flavour, in + i * size, j->seed, j->rank, i);
}

static int same(const struct job *j, const char *a, const char *b)
{
	if (j->flavour == F_PAIR)
		return ((struct pair *)a)->v == ((struct pair *)b)->v &&
		       ((struct pair *)a)->i == ((struct pair *)b)->i;
	if (j->flavour == F_GAPPED)
		return ((struct gap_pair *)a)->a == ((struct gap_pair *)b)->a &&
		       ((struct gap_pair *)a)->b == ((struct gap_pair *)b)->b &&
		       (j->in_place ||
			((unsigned char)a[8] == 0xab && (unsigned char)a[15] == 0xab));
	if (!exact && j->flavour != F_INT)
		return 1;
	return memcmp(a, b, flavour_size[j->flavour]) == 0;
}

static void check_reduction(const struct job *j)
{
	size_t size = flavour_size[j->flavour], first = 0, count = (size_t)j->count;
	int hi = j->n;
	if (j->kind == REDUCE && j->rank != j->root)
		return;
	if (j->kind == REDUCE_SCATTER || j->kind == REDUCE_SCATTER_BLOCK) {
		for (int i = 0; i < j->rank; i++)
			first += (size_t)j->rc[i];
		count = (size_t)j->rc[j->rank];
	}
	if (j->kind == SCAN)
		hi = j->rank + 1;
	if (j->kind == EXSCAN)
		hi = j->rank;
	for (size_t i = 0; i < count && hi; i += 1 + (i > 50 ? i / 20 : 0)) {
		char want[32];
		oracle(j, 0, hi, first + i, want);
		if (!same(j, j->rbuf + i * size, want)) {
			wrong(j, "result");
			return;
		}
	}
}

/* ---- calls ---- */

static int call_move(struct job *j, MPI_Request *req)
{
	int root = j->root, me = j->rank;
	MPI_Datatype st = element(j->gap_send), rt = element(j->gap_recv);
	MPI_Comm c = j->comm;
	const void *s = j->in_place ? MPI_IN_PLACE : j->sbuf;
	void *r = j->rbuf;
	switch (j->kind) {
	case BARRIER:
		return req ? MPI_Ibarrier(c, req) : MPI_Barrier(c);
	case BCAST:
		return req ? MPI_Ibcast(r, j->count, rt, root, c, req)
			   : MPI_Bcast(r, j->count, rt, root, c);
	case GATHER:
		return req ? MPI_Igather(s, j->count, st, r, j->count, rt, root, c, req)
			   : MPI_Gather(s, j->count, st, r, j->count, rt, root, c);
	case GATHERV:
		return req ? MPI_Igatherv(s, j->rc[me], st, r, j->rc, j->rd, rt, root, c, req)
			   : MPI_Gatherv(s, j->rc[me], st, r, j->rc, j->rd, rt, root, c);
	case SCATTER:
		r = j->in_place ? MPI_IN_PLACE : r;
		return req ? MPI_Iscatter(j->sbuf, j->count, st, r, j->count, rt, root, c, req)
			   : MPI_Scatter(j->sbuf, j->count, st, r, j->count, rt, root, c);
	case SCATTERV:
		r = j->in_place ? MPI_IN_PLACE : r;
		return req ? MPI_Iscatterv(j->sbuf, j->sc, j->sd, st, r, j->rc[0], rt, root, c, req)
			   : MPI_Scatterv(j->sbuf, j->sc, j->sd, st, r, j->rc[0], rt, root, c);
	case ALLGATHER:
		return req ? MPI_Iallgather(s, j->count, st, r, j->count, rt, c, req)
			   : MPI_Allgather(s, j->count, st, r, j->count, rt, c);
	case ALLGATHERV:
		return req ? MPI_Iallgatherv(s, j->rc[me], st, r, j->rc, j->rd, rt, c, req)
			   : MPI_Allgatherv(s, j->rc[me], st, r, j->rc, j->rd, rt, c);
	case ALLTOALL:
		return req ? MPI_Ialltoall(s, j->count, st, r, j->count, rt, c, req)
			   : MPI_Alltoall(s, j->count, st, r, j->count, rt, c);
	case ALLTOALLV:
		return req ? MPI_Ialltoallv(s, j->sc, j->sd, st, r, j->rc, j->rd, rt, c, req)
			   : MPI_Alltoallv(s, j->sc, j->sd, st, r, j->rc, j->rd, rt, c);
	default:
		break;
	}
	int bytes_s[RANKS], bytes_r[RANKS];
	static int keep_s[JOBS][RANKS], keep_r[JOBS][RANKS], turn;
	turn = (turn + 1) % JOBS;
	for (int i = 0; i < j->n; i++) {
		bytes_s[i] = j->sd[i] * stride(j->gap_send) * (int)sizeof(int);
		bytes_r[i] = j->rd[i] * stride(j->gap_recv) * (int)sizeof(int);
		j->st[i] = st;
		j->rt[i] = rt;
	}
	memcpy(keep_s[turn], bytes_s, sizeof(bytes_s));
	memcpy(keep_r[turn], bytes_r, sizeof(bytes_r));
	return req ? MPI_Ialltoallw(s, j->sc, keep_s[turn], j->st, r, j->rc, keep_r[turn], j->rt, c,
				    req)
		   : MPI_Alltoallw(s, j->sc, keep_s[turn], j->st, r, j->rc, keep_r[turn], j->rt, c);
}

static int call_reduction(struct job *j, MPI_Request *req)
{
	MPI_Datatype t = flavour_type(j->flavour);
	MPI_Op op = flavour_op(j->flavour);
	MPI_Comm c = j->comm;
	const void *s = j->in_place ? MPI_IN_PLACE : j->sbuf;
	void *r = j->rbuf;
	if (j->kind == REDUCE && j->in_place && j->rank != j->root)
		s = j->rbuf;
	switch (j->kind) {
	case REDUCE:
		if (j->rank != j->root)
			r = NULL;
		return req ? MPI_Ireduce(s, r, j->count, t, op, j->root, c, req)
			   : MPI_Reduce(s, r, j->count, t, op, j->root, c);
	case ALLREDUCE:
		return req ? MPI_Iallreduce(s, r, j->count, t, op, c, req)
			   : MPI_Allreduce(s, r, j->count, t, op, c);
	case REDUCE_SCATTER:
		return req ? MPI_Ireduce_scatter(s, r, j->rc, t, op, c, req)
			   : MPI_Reduce_scatter(s, r, j->rc, t, op, c);
	case REDUCE_SCATTER_BLOCK:
		return req ? MPI_Ireduce_scatter_block(s, r, j->count, t, op, c, req)
			   : MPI_Reduce_scatter_block(s, r, j->count, t, op, c);
	case SCAN:
		return req ? MPI_Iscan(s, r, j->count, t, op, c, req)
			   : MPI_Scan(s, r, j->count, t, op, c);
	default:
		return req ? MPI_Iexscan(s, r, j->count, t, op, c, req)
			   : MPI_Exscan(s, r, j->count, t, op, c);
	}
}

/* About a power of two in bytes: there payloads go another way, or in one piece more. */
static int edge_count(int most)
{
	static const int size[] = {UNIT * sizeof(int), 4, 8, 16, 24};
	int n = (4096 << below(8)) / size[below(5)] + below(5);
	return n < most ? n : most;
}

static int some_count(int most)
{
	switch (below(16)) {
	case 0:
	case 1:
		return 0;
	case 2:
	case 3:
		return below(5000 < most ? 5000 : most) + 1;
	case 4:
	case 5:
		return below(most) + 1;
	case 6:
		return edge_count(most);
	default:
		return below(12) + 1;
	}
}

static void job_make(struct job *j, MPI_Comm comm, int most)
{
	memset(j, 0, sizeof(*j));
	j->comm = comm;
	/* drawn by everybody alike, in the communicator or not */
	j->kind = (enum kind)below(KINDS);
	j->seed = draw();
	j->count = some_count(most);
	j->in_place = below(3) == 0;
	j->gap_send = below(3) == 0;
	j->gap_recv = below(3) == 0;
	j->flavour = (enum flavour)below(FLAVOURS);
	j->root = below(1 << 20);
	if (comm == MPI_COMM_NULL)
		return;
	MPI_Comm_size(comm, &j->n);
	MPI_Comm_rank(comm, &j->rank);
	j->root %= j->n;
	if (j->kind >= GATHER && j->kind <= ALLTOALLW && j->count > 20000)
		j->count = j->count % 20000; /* there are n of them */
	if ((j->kind == GATHER || j->kind == GATHERV || j->kind == SCATTER ||
	     j->kind == SCATTERV) &&
	    j->rank != j->root)
		j->in_place = 0;
	if (j->kind >= REDUCE)
		prepare_reduction(j);
	else
		prepare_move(j);
}

static void job_end(struct job *j)
{
	if (j->comm == MPI_COMM_NULL)
		return;
	if (j->kind >= REDUCE)
		check_reduction(j);
	else
		check_move(j);
	free(j->sbuf);
	free(j->rbuf);
}

static void batch(MPI_Comm *comms, int most)
{
	struct job job[JOBS];
	MPI_Request req[JOBS];
	int n = below(3) ? 1 : 1 + below(JOBS), pending = 0;
	for (int i = 0; i < n; i++) {
		int nonblocking = n > 1 && i + 1 < n;
		req[i] = MPI_REQUEST_NULL;
		job_make(&job[i], comms[below(COMMS)], most);
		if (job[i].comm == MPI_COMM_NULL)
			continue;
		int rc = job[i].kind >= REDUCE
			     ? call_reduction(&job[i], nonblocking ? &req[i] : NULL)
			     : call_move(&job[i], nonblocking ? &req[i] : NULL);
		if (rc != MPI_SUCCESS)
			wrong(&job[i], "error class");
		pending += nonblocking;
	}
	if (pending)
		MPI_Waitall(n, req, MPI_STATUSES_IGNORE);
	for (int i = 0; i < n; i++)
		job_end(&job[i]);
}

static void comm_change(MPI_Comm *comms)
{
	int at = 1 + below(COMMS - 1), how = below(4);
	if (comms[at] != MPI_COMM_NULL)
		MPI_Comm_free(&comms[at]);
	uint64_t seed = draw();
	int colour = how == 0 ? 0 : (int)(value(seed, world_rank, 0, 0) % 3);
	int key = how == 1 ? -world_rank : (int)(value(seed, world_rank, 1, 0) % 100);
	if (how == 3) { /* dealt out in turn */
		colour = 0;
		key = world_rank % (int)(2 + value(seed, 0, 0, 0) % 3);
	}
	if (how == 2)
		MPI_Comm_dup(MPI_COMM_WORLD, &comms[at]);
	else
		MPI_Comm_split(MPI_COMM_WORLD, colour == 2 ? MPI_UNDEFINED : colour, key,
			       &comms[at]);
}

enum { LOOK = 20 };

static int stopped(void)
{
	const char *file = getenv("STOP");
	int mine = file && round_now % LOOK == 0 && access(file, F_OK) == 0, any = 0;
	if (file && round_now % LOOK == 0)
		MPI_Allreduce(&mine, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
	return any;
}

int main(int argc, char **argv)
{
	long rounds = argc > 1 ? atol(argv[1]) : 2000;
	int most = argc > 3 ? atoi(argv[3]) : 60000, total;
	state = argc > 2 ? (uint64_t)atol(argv[2]) : 1;
	exact = getenv("TREE") && atoi(getenv("TREE"));
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);

	int len[2] = {2, 1}, at[2] = {0, 3};
	MPI_Datatype t;
	MPI_Type_contiguous(UNIT, MPI_INT, &dense);
	MPI_Type_indexed(2, len, at, MPI_INT, &t);
	MPI_Type_create_resized(t, 0, GAPPED * sizeof(int), &gapped);
	MPI_Type_contiguous(4, MPI_FLOAT, &matrix);
	MPI_Type_vector(2, 1, 2, MPI_INT64_T, &gapped_pair);
	MPI_Type_commit(&dense);
	MPI_Type_commit(&gapped);
	MPI_Type_commit(&matrix);
	MPI_Type_commit(&gapped_pair);
	MPI_Op_create(matrix_product, 0, &op_matrix);
	MPI_Op_create(affine, 0, &op_gapped);

	MPI_Comm comms[COMMS] = {MPI_COMM_WORLD};
	for (int i = 1; i < COMMS; i++)
		comms[i] = MPI_COMM_NULL;
	for (round_now = 0; round_now < rounds && !stopped(); round_now++) {
		if (below(10) == 0)
			comm_change(comms);
		batch(comms, most);
	}
	MPI_Allreduce(&failures, &total, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (world_rank == 0)
		printf("%ld rounds, %d wrong\n", round_now, total);
	for (int i = 1; i < COMMS; i++)
		if (comms[i] != MPI_COMM_NULL)
			MPI_Comm_free(&comms[i]);
	MPI_Type_free(&t);
	MPI_Finalize();
	return total != 0;
}
