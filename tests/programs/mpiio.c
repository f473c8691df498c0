// SPDX-License-Identifier: BSD-3-Clause
/* mpiio FILE [PHASES [SEED [MOST]]]: random transfers to and from one file, compared with a serial
 * model.
 *
 * All ranks draw the same: in each phase places of the file are dealt to them (interleaved blocks,
 * random blocks with holes, a matrix in tiles), each writes its own through a view, by calls of one
 * kind, and then reads what others may have written, by calls of another kind. Every rank keeps the
 * file that there should be in its memory. Sizes are set, the shared pointer is used by all at once,
 * the file is closed and opened again. Ends after PHASES, or when the file that STOP names is there. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RANKS = 16, TAG_BYTES = 8 };

static int rank, nranks, failures;
static long phase, most;
static const char *path;
static MPI_File file;
static unsigned char *model;
static long length; /* of the file, as it should be */
static long room;

static uint64_t mix(uint64_t x)
{
	x ^= x >> 30;
	x *= 0xbf58476d1ce4e5b9u;
	x ^= x >> 27;
	x *= 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

static uint64_t drawn;
static long draw(long below)
{
	drawn += 0x9e3779b97f4a7c15u;
	return (long)(mix(drawn) % (uint64_t)below);
}

static void wrong(const char *what, long at)
{
	if (failures++ < 5)
		fprintf(stderr, "rank %d, phase %ld: %s (%ld)\n", rank, phase, what, at);
}

static void ok(int rc, const char *what)
{
	char text[MPI_MAX_ERROR_STRING];
	int n;
	if (rc == MPI_SUCCESS)
		return;
	MPI_Error_string(rc, text, &n);
	fprintf(stderr, "%s: %s\n", what, text);
	wrong(what, rc);
}

/* ---- what each rank has of the file: blocks in the order of its view ---- */

struct deal {
	long count, bytes; /* blocks; bytes of data */
	long *at, *len;
};

static struct deal deals[RANKS];
static MPI_Datatype filetype; /* ours */
static long disp, unit;
static MPI_Datatype etype;

static void deal_add(int r, long at, long len)
{
	struct deal *d = &deals[r];
	if (d->count && d->at[d->count - 1] + d->len[d->count - 1] == at) {
		d->len[d->count - 1] += len;
	} else {
		if (d->count % 64 == 0) {
			d->at = realloc(d->at, (size_t)(d->count + 64) * sizeof(long));
			d->len = realloc(d->len, (size_t)(d->count + 64) * sizeof(long));
		}
		d->at[d->count] = at;
		d->len[d->count++] = len;
	}
	d->bytes += len;
}

static void deals_clear(void)
{
	for (int r = 0; r < nranks; r++)
		deals[r].count = deals[r].bytes = 0;
}

/* Block b, b + nranks, … of equal blocks; a tile of the type is one of them. */
static void deal_interleaved(void)
{
	long block = (1 + draw(most / 8 + 1)) * unit, tiles = 1 + draw(20);
	MPI_Datatype one, shifted;
	for (int r = 0; r < nranks; r++)
		for (long t = 0; t < tiles; t++)
			deal_add(r, disp + (t * nranks + r) * block, block);
	int n = (int)(block / unit);
	MPI_Aint shift = rank * block;
	MPI_Type_contiguous(n, etype, &one);
	MPI_Type_create_hindexed(1, &(int){1}, &shift, one, &shifted);
	MPI_Type_create_resized(shifted, 0, nranks * block, &filetype);
	MPI_Type_free(&one);
	MPI_Type_free(&shifted);
}

/* Blocks of all lengths to anybody, or to nobody. */
static void deal_random(void)
{
	int n = 0, lengths[256], places[256];
	long at = 0, blocks = 1 + draw(200);
	for (long b = 0; b < blocks; b++) {
		long len = 1 + draw(1 + most / 16);
		int who = (int)draw(nranks + 1);
		if (who < nranks)
			deal_add(who, disp + at * unit, len * unit);
		if (who == rank) {
			lengths[n] = (int)len;
			places[n++] = (int)at;
		}
		at += len;
	}
	MPI_Type_indexed(n, lengths, places, etype, &filetype);
	if (n == 0) {
		MPI_Type_free(&filetype);
		MPI_Type_contiguous(1, etype, &filetype);
	}
}

static void deal_tiles(void)
{
	int py = nranks % 2 == 0 && nranks > 2 ? 2 : 1, px = nranks / py;
	int sub[2] = {1 + (int)draw(12), 1 + (int)draw(1 + most / 32)};
	int sizes[2] = {sub[0] * py, sub[1] * px};
	int starts[2] = {rank / px * sub[0], rank % px * sub[1]};
	for (int r = 0; r < nranks; r++)
		for (int y = 0; y < sub[0]; y++)
			deal_add(r,
				 disp + ((long)(r / px * sub[0] + y) * sizes[1] +
					 (long)(r % px) * sub[1]) *
					    unit,
				 sub[1] * unit);
	MPI_Type_create_subarray(2, sizes, sub, starts, MPI_ORDER_C, etype, &filetype);
}

static void deal(void)
{
	static const struct {
		MPI_Datatype type;
		long bytes;
	} units[] = {{MPI_BYTE, 1}, {MPI_INT, 4}, {MPI_DOUBLE, 8}};
	int u = (int)draw(3);
	etype = units[u].type;
	unit = units[u].bytes;
	disp = draw(3) ? draw(500) : 0;
	deals_clear();
	switch (draw(3)) {
	case 0:
		deal_interleaved();
		break;
	case 1:
		deal_random();
		break;
	default:
		deal_tiles();
	}
	MPI_Type_commit(&filetype);
}

/* ---- buffers: packed, or every other element ---- */

static void into(unsigned char *buf, const unsigned char *packed, long bytes, int spread)
{
	for (long i = 0; i < bytes; i++)
		buf[(i / unit) * unit * (spread ? 2 : 1) + i % unit] = packed[i];
}

static void out_of(unsigned char *packed, const unsigned char *buf, long bytes, int spread)
{
	for (long i = 0; i < bytes; i++)
		packed[i] = buf[(i / unit) * unit * (spread ? 2 : 1) + i % unit];
}

static unsigned char value(long at)
{
	return (unsigned char)(mix((uint64_t)at * 2654435761u + (uint64_t)phase) | 1);
}

static void counted(const MPI_Status *st, MPI_Datatype type, long expected)
{
	int n;
	MPI_Get_count(st, type, &n);
	if (n != expected)
		wrong("another count than was moved", n);
}

/* One transfer of all elements, or of a part after the other. */
static void transfer(int writes, int kind, unsigned char *buf, long elements, MPI_Datatype type,
		     int spread)
{
	MPI_Status st;
	MPI_Request req;
	int n = (int)elements;
	long first = elements / 3, step = unit * (spread ? 2 : 1);
	switch (kind) {
	case 0:
		ok(writes ? MPI_File_write_at_all(file, 0, buf, n, type, &st)
			  : MPI_File_read_at_all(file, 0, buf, n, type, &st),
		   "at_all");
		counted(&st, type, n);
		break;
	case 1:
		ok(writes ? MPI_File_write_all(file, buf, n, type, &st)
			  : MPI_File_read_all(file, buf, n, type, &st),
		   "all");
		counted(&st, type, n);
		break;
	case 2: /* the later part first */
		ok(writes ? MPI_File_write_at(file, first, buf + first * step, (int)(n - first), type, &st)
			  : MPI_File_read_at(file, first, buf + first * step, (int)(n - first), type, &st),
		   "at");
		counted(&st, type, n - first);
		ok(writes ? MPI_File_write_at(file, 0, buf, (int)first, type, &st)
			  : MPI_File_read_at(file, 0, buf, (int)first, type, &st),
		   "at");
		break;
	case 3:
		ok(writes ? MPI_File_iwrite_at_all(file, 0, buf, n, type, &req)
			  : MPI_File_iread_at_all(file, 0, buf, n, type, &req),
		   "iat_all");
		MPI_Wait(&req, &st);
		counted(&st, type, n);
		break;
	case 4:
		ok(writes ? MPI_File_write_all_begin(file, buf, n, type)
			  : MPI_File_read_all_begin(file, buf, n, type),
		   "begin");
		ok(writes ? MPI_File_write_all_end(file, buf, &st)
			  : MPI_File_read_all_end(file, buf, &st),
		   "end");
		counted(&st, type, n);
		break;
	default:
		ok(writes ? MPI_File_write(file, buf, (int)first, type, &st)
			  : MPI_File_read(file, buf, (int)first, type, &st),
		   "own");
		ok(writes ? MPI_File_iwrite(file, buf + first * step, (int)(n - first), type, &req)
			  : MPI_File_iread(file, buf + first * step, (int)(n - first), type, &req),
		   "own");
		MPI_Wait(&req, &st);
		counted(&st, type, n - first);
		MPI_Offset at;
		MPI_File_get_position(file, &at);
		if (at != elements)
			wrong("the pointer is elsewhere", (long)at);
	}
}

static void grow(long to)
{
	if (to > room) {
		model = realloc(model, (size_t)to * 2);
		memset(model + room, 0, (size_t)(to * 2 - room));
		room = to * 2;
	}
	if (to > length)
		length = to;
}

static void pass(int writes)
{
	int kind = (int)draw(6), spread = (int)draw(2);
	struct deal *mine = &deals[rank];
	long elements = mine->bytes / unit;
	MPI_Datatype type = etype;
	unsigned char *packed = malloc((size_t)mine->bytes + 1);
	unsigned char *buf = calloc((size_t)mine->bytes * 2 + 16, 1);
	if (spread) {
		MPI_Type_create_resized(etype, 0, 2 * unit, &type);
		MPI_Type_commit(&type);
	}
	ok(MPI_File_set_view(file, disp, etype, filetype, "native", MPI_INFO_NULL), "set_view");
	long i = 0;
	for (long b = 0; b < mine->count && writes; b++)
		for (long k = 0; k < mine->len[b]; k++)
			packed[i++] = value(mine->at[b] + k);
	if (writes)
		into(buf, packed, mine->bytes, spread);
	transfer(writes, kind, buf, elements, type, spread);
	if (writes) {
		for (int r = 0; r < nranks; r++)
			for (long b = 0; b < deals[r].count; b++) {
				grow(deals[r].at[b] + deals[r].len[b]);
				for (long k = 0; k < deals[r].len[b]; k++)
					model[deals[r].at[b] + k] = value(deals[r].at[b] + k);
			}
	} else {
		out_of(packed, buf, mine->bytes, spread);
		for (long b = 0; b < mine->count; b++)
			for (long k = 0; k < mine->len[b]; k++)
				if (packed[i++] != model[mine->at[b] + k])
					wrong("another byte than the model's", mine->at[b] + k);
	}
	if (spread)
		MPI_Type_free(&type);
	free(packed);
	free(buf);
}

/* Blocks of all ranks behind each other, from the shared pointer on. */
static void ordered(void)
{
	MPI_Status st;
	MPI_Offset from = draw(length + 1), now;
	long sizes[RANKS], before = 0, all = 0;
	MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
	ok(MPI_File_seek_shared(file, from, MPI_SEEK_SET), "seek_shared");
	for (int r = 0; r < nranks; r++) {
		sizes[r] = draw(most);
		before += r < rank ? sizes[r] : 0;
		all += sizes[r];
	}
	unsigned char *buf = malloc((size_t)sizes[rank] + 1);
	for (long i = 0; i < sizes[rank]; i++)
		buf[i] = value((long)from + before + i);
	ok(MPI_File_write_ordered(file, buf, (int)sizes[rank], MPI_BYTE, &st), "write_ordered");
	counted(&st, MPI_BYTE, sizes[rank]);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_File_get_position_shared(file, &now);
	if (now != from + all)
		wrong("the shared pointer is elsewhere", (long)now);
	grow((long)from + all);
	for (long i = 0; i < all; i++)
		model[from + i] = value((long)from + i);
	free(buf);
	MPI_Barrier(MPI_COMM_WORLD);
}

/* All write records at once, wherever the shared pointer is: each must be there once. */
static void shared(void)
{
	int each = 1 + (int)draw(6), seen[RANKS * 8] = {0};
	MPI_Offset from = draw(length + 1);
	MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
	ok(MPI_File_seek_shared(file, from, MPI_SEEK_SET), "seek_shared");
	for (int i = 0; i < each; i++) {
		uint64_t tag = (uint64_t)phase << 16 | (uint64_t)(rank * 8 + i);
		MPI_Request req;
		if (i % 2) {
			ok(MPI_File_iwrite_shared(file, &tag, TAG_BYTES, MPI_BYTE, &req), "iwrite_shared");
			MPI_Wait(&req, MPI_STATUS_IGNORE);
		} else {
			ok(MPI_File_write_shared(file, &tag, TAG_BYTES, MPI_BYTE, MPI_STATUS_IGNORE),
			   "write_shared");
		}
	}
	MPI_Barrier(MPI_COMM_WORLD);
	long all = (long)each * nranks;
	grow((long)from + all * TAG_BYTES);
	ok(MPI_File_read_at_all(file, from, model + from, (int)all * TAG_BYTES, MPI_BYTE,
				MPI_STATUS_IGNORE),
	   "read records");
	for (long i = 0; i < all; i++) {
		uint64_t tag;
		memcpy(&tag, model + from + i * TAG_BYTES, sizeof(tag));
		if (tag >> 16 != (uint64_t)phase || (tag & 0xffff) >= RANKS * 8 || seen[tag & 0xffff]++)
			wrong("a record twice, or none of this phase", i);
	}
	MPI_Barrier(MPI_COMM_WORLD);
}

static void resize(void)
{
	MPI_Offset size, to = draw(length + most);
	if (draw(2)) {
		ok(MPI_File_set_size(file, to), "set_size");
		grow(to);
		memset(model + to, 0, (size_t)(room - to));
		length = to;
	} else {
		ok(MPI_File_preallocate(file, to), "preallocate");
		grow(to);
	}
	MPI_File_get_size(file, &size);
	if (size != length)
		wrong("another size", (long)size);
	MPI_Barrier(MPI_COMM_WORLD);
}

static void open_it(int more)
{
	MPI_Info info;
	static const char *const sizes[] = {"4096", "65536", "4194304"};
	static const char *const choices[] = {"automatic", "enable", "disable"};
	MPI_Info_create(&info);
	MPI_Info_set(info, "cb_buffer_size", sizes[draw(3)]);
	MPI_Info_set(info, "romio_cb_write", choices[draw(3)]);
	MPI_Info_set(info, "romio_cb_read", choices[draw(3)]);
	if (draw(2))
		MPI_Info_set(info, "cb_nodes", draw(2) ? "2" : "3");
	ok(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR | more, info, &file), "open");
	MPI_Info_free(&info);
	MPI_File_set_atomicity(file, draw(4) == 0);
}

static void reopen(void)
{
	ok(MPI_File_close(&file), "close");
	if (draw(3) == 0) {
		if (rank == 0)
			ok(MPI_File_delete(path, MPI_INFO_NULL), "delete");
		length = 0;
		memset(model, 0, (size_t)room);
		MPI_Barrier(MPI_COMM_WORLD);
		open_it(MPI_MODE_CREATE | MPI_MODE_EXCL);
	} else {
		open_it(0);
	}
}

/* The whole file, past MPI. */
static void check_all(void)
{
	FILE *f = fopen(path, "rb");
	unsigned char *all = malloc((size_t)length + 1);
	if (!f || fread(all, 1, (size_t)length + 1, f) != (size_t)length)
		wrong("the file has another length", length);
	else if (memcmp(all, model, (size_t)length) != 0)
		wrong("the file is another one", 0);
	if (f)
		fclose(f);
	free(all);
	MPI_Barrier(MPI_COMM_WORLD);
}

static int is_over(long phases)
{
	int over = phase >= phases;
	const char *stop = getenv("STOP");
	if (stop && access(stop, F_OK) == 0)
		over = 1;
	MPI_Bcast(&over, 1, MPI_INT, 0, MPI_COMM_WORLD);
	return over;
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &nranks);
	path = argv[1];
	long phases = argc > 2 ? atol(argv[2]) : 100;
	drawn = argc > 3 ? strtoul(argv[3], NULL, 10) : 1;
	most = argc > 4 ? atol(argv[4]) : 1000;
	grow(1);
	length = 0;
	open_it(MPI_MODE_CREATE);
	ok(MPI_File_set_size(file, 0), "set_size");
	for (; !is_over(phases); phase++) {
		long what = draw(16);
		if (what == 0)
			resize();
		else if (what == 1)
			ordered();
		else if (what == 2)
			shared();
		else if (what == 3)
			reopen();
		else {
			deal();
			pass(1);
			MPI_File_sync(file);
			pass(0);
			MPI_Type_free(&filetype);
			MPI_Barrier(MPI_COMM_WORLD);
		}
		if (what < 4 || draw(4) == 0)
			check_all();
	}
	check_all();
	MPI_File_close(&file);
	int all = 0;
	MPI_Reduce(&failures, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
	if (rank == 0)
		printf("%ld phases, %d wrong\n", phase, all);
	MPI_Finalize();
	return 0;
}
