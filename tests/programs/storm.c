// SPDX-License-Identifier: BSD-3-Clause
/* storm ROUNDS [SEED]: in every round the ranks exchange messages that a common random generator
 * draws: sizes across all protocols, all send modes, wildcards, probes, matched probes, strided
 * memory, persistent requests. Every byte that arrives is checked. Prints one line per 100 rounds,
 * the same in every run with the same arguments and number of ranks. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MESSAGES = 24, SIZE_MAX_BYTES = 400000 };

struct draw {
	int from, to, tag, how_send, how_receive;
	size_t bytes;
	uint64_t seed;
};

static uint64_t state;
static int rank, ranks;
static uint64_t sum;

static uint64_t draw64(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state * 0x2545f4914f6cdd1dull;
}

static void fail(const char *what, const struct draw *d, int round)
{
	fprintf(stderr,
		"rank %d round %d: %s (from %d to %d tag %d bytes %zu send %d receive %d)\n", rank,
		round, what, d->from, d->to, d->tag, d->bytes, d->how_send, d->how_receive);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

static void fill(unsigned char *p, const struct draw *d, size_t stride)
{
	uint64_t x = d->seed | 1;
	for (size_t i = 0; i < d->bytes; i++) {
		if (i % 8 == 0)
			x = x * 6364136223846793005ull + 1442695040888963407ull;
		p[i / 4 * 4 * stride + i % 4] = (unsigned char)(x >> (i % 8 * 8));
	}
}

static void check(const unsigned char *p, const struct draw *d, size_t stride, int round)
{
	uint64_t x = d->seed | 1;
	for (size_t i = 0; i < d->bytes; i++) {
		if (i % 8 == 0)
			x = x * 6364136223846793005ull + 1442695040888963407ull;
		if (p[i / 4 * 4 * stride + i % 4] != (unsigned char)(x >> (i % 8 * 8)))
			fail("wrong content", d, round);
	}
	sum = sum * 31 + x;
}

static MPI_Datatype strided(size_t bytes)
{
	MPI_Datatype t;
	MPI_Type_vector((int)(bytes / 4), 1, 2, MPI_INT, &t);
	MPI_Type_commit(&t);
	return t;
}

static void draw_all(struct draw *d, int round)
{
	for (int i = 0; i < MESSAGES; i++) {
		uint64_t r = draw64();
		d[i].from = (int)(r % (unsigned)ranks);
		d[i].to = (int)(r / 64 % (unsigned)ranks);
		d[i].tag = i + MESSAGES * round; /* a rank may be a round ahead */
		d[i].how_send = (int)(r >> 20 & 3);
		d[i].how_receive = (int)(r >> 24) & 3;
		unsigned shape = r >> 30 & 7;
		d[i].bytes = shape < 4	 ? (r >> 40) % 100
			     : shape < 7 ? (r >> 40) % 20000
					 : (r >> 40) % SIZE_MAX_BYTES;
		d[i].bytes &= ~3ul;
		d[i].seed = draw64();
	}
}

static void round_run(int round)
{
	struct draw d[MESSAGES];
	MPI_Request s[MESSAGES], r[MESSAGES];
	unsigned char *out[MESSAGES] = {0}, *in[MESSAGES] = {0};
	MPI_Datatype types[2 * MESSAGES];
	int ns = 0, nr = 0, nt = 0;
	struct draw *posted[MESSAGES];

	draw_all(d, round);
	for (int i = 0; i < MESSAGES; i++) { /* posted receives */
		if (d[i].to != rank || d[i].how_receive > 1)
			continue;
		size_t stride = d[i].how_receive ? 2 : 1;
		in[i] = calloc(2 * d[i].bytes + 8, 1);
		posted[nr] = &d[i];
		if (stride == 2) {
			types[nt] = strided(d[i].bytes);
			MPI_Irecv(in[i], 1, types[nt++], d[i].from, d[i].tag, MPI_COMM_WORLD,
				  &r[nr++]);
		} else {
			MPI_Irecv(in[i], (int)d[i].bytes, MPI_BYTE, MPI_ANY_SOURCE, d[i].tag,
				  MPI_COMM_WORLD, &r[nr++]);
		}
	}
	for (int i = 0; i < MESSAGES; i++) {
		if (d[i].from != rank)
			continue;
		out[i] = calloc(2 * d[i].bytes + 8, 1);
		fill(out[i], &d[i], d[i].how_send == 2 ? 2 : 1);
		if (d[i].how_send == 1) {
			MPI_Issend(out[i], (int)d[i].bytes, MPI_BYTE, d[i].to, d[i].tag,
				   MPI_COMM_WORLD, &s[ns++]);
		} else if (d[i].how_send == 2) {
			types[nt] = strided(d[i].bytes);
			MPI_Isend(out[i], 1, types[nt++], d[i].to, d[i].tag, MPI_COMM_WORLD,
				  &s[ns++]);
		} else if (d[i].how_send == 3) {
			MPI_Send_init(out[i], (int)d[i].bytes, MPI_BYTE, d[i].to, d[i].tag,
				      MPI_COMM_WORLD, &s[ns]);
			MPI_Start(&s[ns++]);
		} else {
			MPI_Isend(out[i], (int)d[i].bytes, MPI_BYTE, d[i].to, d[i].tag,
				  MPI_COMM_WORLD, &s[ns++]);
		}
	}
	for (int i = 0; i < MESSAGES; i++) { /* probed ones */
		if (d[i].to != rank || d[i].how_receive < 2)
			continue;
		MPI_Status st;
		MPI_Message m;
		int n;
		if (d[i].how_receive == 2)
			MPI_Probe(MPI_ANY_SOURCE, d[i].tag, MPI_COMM_WORLD, &st);
		else
			MPI_Mprobe(d[i].from, d[i].tag, MPI_COMM_WORLD, &m, &st);
		MPI_Get_count(&st, MPI_BYTE, &n);
		if ((size_t)n != d[i].bytes || st.MPI_SOURCE != d[i].from)
			fail("wrong probe", &d[i], round);
		in[i] = calloc(d[i].bytes + 8, 1);
		if (d[i].how_receive == 2)
			MPI_Recv(in[i], n, MPI_BYTE, st.MPI_SOURCE, st.MPI_TAG, MPI_COMM_WORLD,
				 &st);
		else
			MPI_Mrecv(in[i], n, MPI_BYTE, &m, &st);
		check(in[i], &d[i], 1, round);
	}
	for (int done = 0; done < nr; done++) {
		int which;
		MPI_Status st;
		MPI_Waitany(nr, r, &which, &st);
		if (st.MPI_SOURCE != posted[which]->from)
			fail("wrong source", posted[which], round);
	}
	for (int i = 0; i < nr; i++)
		check(in[posted[i] - d], posted[i], posted[i]->how_receive ? 2 : 1, round);
	MPI_Waitall(ns, s, MPI_STATUSES_IGNORE);
	for (int i = 0; i < ns; i++)
		if (s[i] != MPI_REQUEST_NULL)
			MPI_Request_free(&s[i]);
	for (int i = 0; i < nt; i++)
		MPI_Type_free(&types[i]);
	for (int i = 0; i < MESSAGES; i++) {
		free(out[i]);
		free(in[i]);
	}
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 1000;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	state = argc > 2 ? strtoull(argv[2], NULL, 10) * 2 + 1 : 88172645463325252ull;
	for (int i = 1; i <= rounds; i++) {
		round_run(i);
		if (i % 100 == 0) {
			uint64_t all;
			MPI_Reduce(&sum, &all, 1, MPI_UINT64_T, MPI_BXOR, 0, MPI_COMM_WORLD);
			if (rank == 0) {
				printf("round %d: %016lx\n", i, (unsigned long)all);
				fflush(stdout);
			}
		}
	}
	MPI_Finalize();
	return 0;
}
